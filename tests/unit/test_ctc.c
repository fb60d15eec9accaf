/* CTC as a loss of a model: rows of letters are learned in every format, with and without frames of their own, and
 * lengths that do not fit are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixt/mixt.h>

#include "base/rng.h"

#include <string.h>

enum { SAMPLES = 64, FRAMES = 12, LETTERS = 4, CLASSES = 5, POOLED = FRAMES / 2 };

static float sounds[SAMPLES][FRAMES][CLASSES];
static int32_t letters[SAMPLES][LETTERS], lengths[SAMPLES], frames[SAMPLES];

/** Each letter sounds for two frames or three; noise all over. */
static void draw(void)
{
    mixt__rng rng = mixt__rng_start(3);
    for (int s = 0; s < SAMPLES; s++) {
        int at = 0;
        lengths[s] = (int32_t)mixt__rng_below(&rng, LETTERS + 1);
        for (int t = 0; t < FRAMES * CLASSES; t++)
            sounds[s][t / CLASSES][t % CLASSES] = 0.1f * mixt__rng_normal(&rng);
        for (int i = 0; i < LETTERS; i++) {
            int32_t before = i ? letters[s][i - 1] : 0, letter = 1 + (int32_t)mixt__rng_below(&rng, CLASSES - 1);
            letters[s][i] = letter == before ? letter % (CLASSES - 1) + 1 : letter;
            for (int until = at + 2 + (int)mixt__rng_below(&rng, 2); i < lengths[s] && at < until; at++)
                sounds[s][at][letters[s][i]] += 1;
        }
        frames[s] = FRAMES;
    }
}

static mixt_value plain(mixt_builder *b, mixt_value x)
{
    mixt_value logits = mixt_linear(b, "out", x, .features = CLASSES);
    if (mixt_builder_has_loss(b))
        mixt_loss_add(b, mixt_loss_ctc(b, logits, mixt_target(b, "letters"), mixt_target(b, "length")), 1);
    return logits;
}

/** Frames two by two: `frames` of the data are twice those of the logits. */
static mixt_value pooled(mixt_builder *b, mixt_value x)
{
    x = mixt_reshape(b, x, 3, (int64_t[]){mixt_value_dim(b, x, 0), POOLED, 2 * CLASSES});
    mixt_value logits = mixt_linear(b, "out", x, .features = CLASSES);
    if (mixt_builder_has_loss(b))
        mixt_loss_add(b,
                      mixt_loss_ctc(b, logits, mixt_target(b, "letters"), mixt_target(b, "length"),
                                    .frames = mixt_input(b, "frames"), .stride = 2),
                      1);
    return logits;
}

static mixt_value wrong(mixt_builder *b, mixt_value x)
{
    mixt_loss_add(b, mixt_loss_ctc(b, x, mixt_target(b, "letters"), mixt_target(b, "letters")), 1);
    return x;
}

static mixt_data *open_data(void)
{
    const mixt_data_column columns[] = {
        {.name = "sound", .rank = 2, .dims = {FRAMES, CLASSES}, .values = sounds},
        {.name = "frames", .dtype = MIXT_DTYPE_INT32, .values = frames},
        {.name = "letters", .target = true, .dtype = MIXT_DTYPE_INT32, .rank = 1, .dims = {LETTERS}, .values = letters},
        {.name = "length", .target = true, .dtype = MIXT_DTYPE_INT32, .values = lengths},
    };
    mixt_data *data;
    draw();
    if (mixt_data_from_columns("letters", columns, 4, SAMPLES, NULL, &data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return data;
}

/** Accuracy after training: the share of rows that are spelled right. */
static double learn(mixt_model_fn fn, const char *precision)
{
    mixt_data *data = open_data();
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_model *model = mixt_model_new(context, fn, MIXT_LOSS_CUSTOM);
    mixt_trainer *trainer = mixt_trainer_new(model, .batch = 16, .precision = precision, .lr = 0.03f);
    mixt_evaluation before, after;
    if (mixt_trainer_compile(trainer, data) != MIXT_OK || mixt_trainer_evaluate(trainer, data, &before) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    for (int i = 0; i < 200; i++)
        if (mixt_trainer_step(trainer, data, NULL) != MIXT_OK)
            fail_msg("%s", mixt_error_text());
    if (mixt_trainer_evaluate(trainer, data, &after) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    assert_int_equal(after.count, SAMPLES);
    assert_true(after.loss < 0.3 * before.loss);
    mixt_close(context);
    mixt_data_close(data);
    return after.accuracy;
}

static void rows_of_letters_are_learned(void **state)
{
    (void)state;
    static const char *const formats[] = {"fp32", "bf16", "fp16"};
    for (int i = 0; i < 3; i++)
        assert_true(learn(plain, formats[i]) > 0.9);
    assert_true(learn(pooled, "fp32") > 0.5); // letters of three frames share one with the next
}

static void lengths_must_fit(void **state)
{
    (void)state;
    mixt_data *data = open_data();
    mixt_context *context = mixt_open(.device = "cpu");
    mixt_trainer *trainer = mixt_trainer_new(mixt_model_new(context, wrong, MIXT_LOSS_CUSTOM), .batch = 4);
    assert_int_not_equal(mixt_trainer_compile(trainer, data), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "CTC needs logits (batch, frames, classes), INT32 labels (batch,"));
    mixt_close(context);
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_letters_are_learned),
        cmocka_unit_test(lengths_must_fit),
    };
    return cmocka_run_group_tests_name("ctc", tests, NULL, NULL);
}
