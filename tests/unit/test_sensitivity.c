/* The sensitivity analysis: planted weaknesses are found, ranks hold, nothing of the trainer changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 64, FEATURES = 16, CLASSES = 4, BATCH = 32 };

static mixt_data *make_data(mixt_context *context)
{
    static float inputs[SAMPLES * FEATURES];
    static int32_t targets[SAMPLES];
    mixt_data *data;
    for (int i = 0; i < SAMPLES; i++) {
        targets[i] = i % CLASSES;
        for (int k = 0; k < FEATURES; k++)
            inputs[i * FEATURES + k] = (float)((i * 31 + k * 17) % 23 - 11) / 8.0f + (k == targets[i] ? 2.0f : 0.0f);
    }
    mixt_data_arrays arrays = {.samples = SAMPLES, .input_rank = 1, .input_dims = {FEATURES}, .inputs = inputs};
    arrays.target = MIXT_TARGET_CLASS;
    arrays.targets = targets;
    (void)context;
    assert_int_equal(mixt_data_from(&arrays, NULL, &data), MIXT_OK);
    return data;
}

/** An analysis of a model of one's own. */
typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
    mixt_sensitivity *s;
} fixture;

static void start(fixture *f, mixt_model_fn fn, uint64_t seed)
{
    f->context = mixt_open(.device = "cpu", .threads = 2);
    f->data = make_data(f->context);
    mixt_model *model = mixt_model_new(f->context, fn, MIXT_LOSS_CROSS_ENTROPY);
    f->trainer = mixt_trainer_new(model, .batch = BATCH, .seed = seed);
    f->s = NULL;
}

static void analyse(fixture *f, const mixt_sensitivity_options *options)
{
    mixt_status status = mixt_sensitivity_of(f->trainer, f->data, options, &f->s);
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

static void stop(fixture *f)
{
    mixt_sensitivity_free(f->s);
    mixt_close(f->context);
    mixt_data_close(f->data);
}

/** Place of the layer's first row among those of a mode and format, from 0; -1: none. */
static int64_t rank_of(const mixt_sensitivity *s, const char *layer, mixt_dtype format, mixt_sensitivity_mode mode)
{
    int64_t place = 0;
    for (int64_t i = 0; i < mixt_sensitivity_rows(s); i++) {
        const mixt_sensitivity_row *r = mixt_sensitivity_row_at(s, i);
        if (r->format != format || r->mode != mode)
            continue;
        if (!strcmp(r->layer, layer))
            return place;
        place++;
    }
    return -1;
}

static mixt_value healthy(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "one", x, .features = 24));
    x = mixt_relu(b, mixt_linear(b, "two", x, .features = 24));
    return mixt_linear(b, "three", x, .features = CLASSES);
}

/** "big" makes values around 1e6, which FP16 does not hold; a division behind it makes them small again. */
static mixt_value overflowing(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "one", x, .features = 24));
    x = mixt_affine(b, x, 1e3f, 0);
    mixt_scope_push(b, "big");
    x = mixt_affine(b, mixt_linear(b, "linear", x, .features = 24), 1e3f, 0);
    mixt_scope_pop(b);
    x = mixt_affine(b, mixt_cast(b, x, MIXT_DTYPE_FP32), 1e-6f, 0);
    return mixt_linear(b, "three", x, .features = CLASSES);
}

/** Overflow in one layer puts that layer first, in FP16 and not in BF16. */
static void finds_overflow(void **state)
{
    fixture f;
    (void)state;
    start(&f, overflowing, 1);
    analyse(&f, &(mixt_sensitivity_options){.formats = "fp16,bf16", .trials = 3});
    const mixt_sensitivity_row *worst = mixt_sensitivity_row_at(f.s, 0);
    assert_int_equal(worst->format, MIXT_DTYPE_FP16);
    assert_non_null(strstr(worst->layer, "big"));
    assert_true(worst->score < 0.1 && worst->overflow > 0);
    assert_string_equal(worst->recommend, "bf16");
    const mixt_sensitivity_row *same =
        mixt_sensitivity_find(f.s, worst->layer, MIXT_DTYPE_BF16, MIXT_SENSITIVITY_LOWERED);
    assert_true(same->score > 0.5 && same->overflow == 0);
    stop(&f);
}

/** Every layer has rows in each format and mode, figures are numbers, better formats score better. */
static void has_every_row(void **state)
{
    fixture f;
    (void)state;
    start(&f, healthy, 1);
    analyse(&f, &(mixt_sensitivity_options){.formats = "fp16,bf16", .trials = 2});
    assert_int_equal(mixt_sensitivity_layers(f.s), 3);
    assert_int_equal(mixt_sensitivity_rows(f.s), 3 * 2 * 2);
    for (int64_t i = 0; i < mixt_sensitivity_rows(f.s); i++) {
        const mixt_sensitivity_row *r = mixt_sensitivity_row_at(f.s, i);
        assert_true(isfinite(r->loss_change) && isfinite(r->snr_db) && isfinite(r->update_error));
        assert_true(r->grad_cosine > 0.99 && r->grad_cosine <= 1 + 1e-12);
        assert_true(r->score > 0.5 && r->score <= 1);
        assert_true(fabs(r->score - r->accuracy_score * r->stability_score) < 0.02);
        assert_int_equal(rank_of(f.s, r->layer, r->format, r->mode) >= 0, 1);
    }
    const mixt_sensitivity_row *a = mixt_sensitivity_find(f.s, "two", MIXT_DTYPE_FP16, MIXT_SENSITIVITY_LOWERED);
    const mixt_sensitivity_row *b = mixt_sensitivity_find(f.s, "two", MIXT_DTYPE_BF16, MIXT_SENSITIVITY_LOWERED);
    assert_true(a->snr_db > b->snr_db + 10 && a->update_error < b->update_error);
    assert_null(mixt_sensitivity_find(f.s, "four", MIXT_DTYPE_FP16, MIXT_SENSITIVITY_LOWERED));
    assert_null(mixt_sensitivity_row_at(f.s, -1));
    stop(&f);
}

static void refuses(fixture *f, const mixt_sensitivity_options *options, const char *words)
{
    mixt_sensitivity *s;
    assert_int_equal(mixt_sensitivity_of(f->trainer, f->data, options, &s), MIXT_ERROR_ARGUMENT);
    assert_null(s);
    if (!strstr(mixt_error_text(), words))
        fail_msg("expected '%s' in '%s'", words, mixt_error_text());
}

static void refuses_bad_options(void **state)
{
    fixture f;
    (void)state;
    start(&f, healthy, 1);
    refuses(&f, &(mixt_sensitivity_options){.formats = "fp8_e4m3"}, "cannot be trained in 'fp8_e4m3'");
    refuses(&f, &(mixt_sensitivity_options){.formats = "fp16,fp16"}, "named twice");
    refuses(&f, &(mixt_sensitivity_options){.formats = "fp32"}, "compared with");
    refuses(&f, &(mixt_sensitivity_options){.formats = ", "}, "none is named");
    refuses(&f, &(mixt_sensitivity_options){.trials = -1}, "-1 trials");
    stop(&f);
}

/** A trainer that is analysed between two steps trains on with the same bits. */
static void leaves_the_trainer(void **state)
{
    fixture a, b;
    float *weights[2];
    (void)state;
    start(&a, healthy, 5);
    start(&b, healthy, 5);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mixt_trainer_step(a.trainer, a.data, NULL), MIXT_OK);
        assert_int_equal(mixt_trainer_step(b.trainer, b.data, NULL), MIXT_OK);
        if (i == 1)
            analyse(&b, &(mixt_sensitivity_options){.formats = "bf16", .trials = 1});
    }
    fixture *both[2] = {&a, &b};
    int64_t count = FEATURES * 24;
    for (int i = 0; i < 2; i++) {
        weights[i] = calloc((size_t)count, sizeof(float));
        assert_int_equal(mixt_trainer_param_get(both[i]->trainer, 0, weights[i]), MIXT_OK);
    }
    assert_memory_equal(weights[0], weights[1], (size_t)count * sizeof(float));
    free(weights[0]);
    free(weights[1]);
    stop(&a);
    stop(&b);
}

static bool stop_at_three(void *user, const mixt_sensitivity_event *event)
{
    *(int64_t *)user = event->done;
    assert_true(event->done <= event->total);
    return event->done < 3;
}

static void stops_when_told(void **state)
{
    fixture f;
    int64_t done = 0;
    (void)state;
    start(&f, healthy, 1);
    mixt_sensitivity_options options = {.trials = 1, .watch = stop_at_three, .user = &done};
    assert_int_equal(mixt_sensitivity_of(f.trainer, f.data, &options, &f.s), MIXT_ERROR_STATE);
    assert_null(f.s);
    assert_int_equal(done, 3);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_overflow),     cmocka_unit_test(has_every_row),   cmocka_unit_test(refuses_bad_options),
        cmocka_unit_test(leaves_the_trainer), cmocka_unit_test(stops_when_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
