/* Several conversations in a row of a batch: each there once, from place 0 on, and of no effect on the others: losses
 * and gradients are those of rows that each has to itself. And the loss is the mean over trained tokens of an update,
 * however it is cut into passes.
 *
 * The bound of a gradient is FP32's: 2^-24 times the longest sum on its way, of the gradient's own size, and the
 * weights' rounding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "data_files.h"
#include "mixt/mixt.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 32, SEQ = 96, PARAMS_MAX = 64, VOCAB = 256, WIDTH = 32, LAYERS = 2 };
enum { CHAIN = SAMPLES * SEQ + 2 * VOCAB + 2 * LAYERS * (12 * WIDTH + SEQ) };

static mixt_context *context;

/** Rows of lengths from 4 to SEQ, some of them nearly all prompt. */
static void write_rows(void)
{
    FILE *file = fopen(temp_path("rows.jsonl"), "w");
    assert_non_null(file);
    for (int i = 0; i < SAMPLES; i++) {
        int length = 4 + i * i * 7 % (SEQ - 4), prompt = 1 + i * 5 % (length - 2);
        fputs("{\"prompt\": \"", file);
        for (int k = 0; k < length; k++) {
            if (k == prompt)
                fputs("\", \"completion\": \"", file);
            fputc('a' + (i * 31 + k * (i % 7 + 1)) % 26, file);
        }
        fputs("\"}\n", file);
    }
    fclose(file);
}

static mixt_data *open_rows(bool unpacked, int64_t seq, bool in_order)
{
    return open_ok("chat:%s/rows.jsonl",
                   MIXT_OPTIONS(mixt_data_options, .split = "all", .seq = seq, .tokenizer = "bytes",
                                .unpacked = unpacked, .in_order = in_order));
}

static void every_sample_is_there_once(void **state)
{
    (void)state;
    write_rows();
    for (int order = 0; order < 2; order++) {
        mixt_data *data = open_rows(false, SEQ, order);
        const mixt_data_info *info = mixt_data_describe(data);
        int64_t filled = 0, begun = 0, valid;
        bool seen[SAMPLES] = {0};
        assert_int_equal(info->array_count, 3);
        assert_string_equal(info->arrays[1].name, "positions");
        assert_int_equal(info->input_dims[0], SEQ);
        for (int64_t r = 0; r < info->samples; r++) {
            int32_t input[2 * SEQ + 16], target[SEQ];
            check_ok(mixt_data_read(data, r, 1, input, target, &valid));
            const int32_t *places = input + mixt_data_array_at(data, 1, 1) / 4;
            for (int64_t t = 0; t < SEQ; t++) {
                bool begins = places[t] == 0, text = input[t] != 0;
                assert_true(begins || (t && places[t] == places[t - 1] + 1 && text));
                assert_true(text || target[t] == -1);
                filled += text;
                begun += begins && text;
                for (int i = 0; begins && text && i < SAMPLES; i++) { // which one it is
                    mixt_chat_sample s;
                    int32_t tokens[SEQ + 1];
                    bool trained[SEQ + 1], same = true;
                    check_ok(mixt_chat_read(data, i, &s, tokens, trained));
                    for (int64_t k = 0; k < s.count - 1 && same; k++)
                        same = t + k < SEQ && input[t + k] == tokens[k] && places[t + k] == k &&
                               target[t + k] == (trained[k + 1] ? tokens[k + 1] : -1);
                    same &= t + s.count - 1 >= SEQ || places[t + s.count - 1] == 0;
                    assert_false(same && seen[i]);
                    seen[i] |= same;
                }
            }
        }
        const mixt_chat_info *chat;
        check_ok(mixt_chat_describe(data, &chat));
        assert_int_equal(filled, chat->tokens - chat->samples);
        assert_int_equal(begun, SAMPLES);
        for (int i = 0; i < SAMPLES; i++)
            assert_true(seen[i]);
        if (!order)
            assert_true(info->samples <= filled * 11 / 9 / SEQ + 1); // as near the fewest as best fit is known to come
        mixt_data_close(data);
    }
}

typedef struct outcome {
    mixt_step step;
    int64_t count;
    mixt_param_info info[PARAMS_MAX];
    float *change[PARAMS_MAX], size[PARAMS_MAX]; // what a step of SGD with a rate of 1 did to weights of such a norm
} outcome;

static double norm_of(const float *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/** Takes a trainer's memory and draws its weights, which an update does otherwise. */
static void draw_weights(mixt_trainer *t, const mixt_data *data, int64_t batch)
{
    void *input = malloc(mixt_data_input_bytes(data, batch)), *target = malloc(mixt_data_target_bytes(data, batch));
    check_ok(mixt_data_batch(data, batch, 0, input, target));
    check_ok(mixt_trainer_backward(t, input, target, 1, NULL));
    check_ok(mixt_trainer_discard(t));
    free(input);
    free(target);
}

/** One update over all rows, in passes of `batch`. */
static outcome update(const char *name, const char *precision, bool unpacked, int64_t batch)
{
    outcome o = {.count = 0};
    mixt_data *data = open_rows(unpacked, SEQ, false);
    int64_t rows = mixt_data_describe(data)->samples;
    batch = batch ? batch : rows;
    mixt_model *model = mixt_zoo_model(context, name, data, .layers = LAYERS, .width = WIDTH, .heads = 2);
    mixt_trainer *t = mixt_trainer_new(model, .precision = precision, .optimizer = "sgd", .lr = 1, .seed = 3,
                                       .batch = batch, .accumulate = rows / batch);
    assert_non_null(t);
    check_ok(mixt_trainer_compile(t, data));
    draw_weights(t, data, batch);
    o.count = mixt_trainer_param_count(t);
    assert_in_range(o.count, 1, PARAMS_MAX);
    for (int64_t i = 0; i < o.count; i++) {
        check_ok(mixt_trainer_param(t, i, &o.info[i]));
        o.change[i] = malloc((size_t)o.info[i].count * sizeof(float));
        check_ok(mixt_trainer_param_get(t, i, o.change[i]));
        o.size[i] = (float)norm_of(o.change[i], o.info[i].count);
    }
    check_ok(mixt_trainer_step(t, data, &o.step));
    for (int64_t i = 0; i < o.count; i++) {
        float *after = malloc((size_t)o.info[i].count * sizeof(float));
        check_ok(mixt_trainer_param_get(t, i, after));
        for (int64_t k = 0; k < o.info[i].count; k++)
            o.change[i][k] -= after[k];
        free(after);
    }
    mixt_data_close(data);
    return o;
}

static void free_outcome(outcome *o)
{
    for (int64_t i = 0; i < o->count; i++)
        free(o->change[i]);
}

static void expect_same(const outcome *a, const outcome *b)
{
    assert_true(fabs(a->step.loss - b->step.loss) <= 1e-6 * b->step.loss);
    for (int64_t i = 0; i < a->count; i++) {
        double difference = 0;
        int64_t count = a->info[i].count < b->info[i].count ? a->info[i].count : b->info[i].count;
        for (int64_t k = 0; k < count; k++) {
            double d = (double)a->change[i][k] - (double)b->change[i][k];
            difference += d * d;
        }
        double bound = 0x1p-24 * (CHAIN * norm_of(b->change[i], count) + 2 * (double)b->size[i]);
        if (!(sqrt(difference) <= bound))
            fail_msg("%s: %g apart, of %g at most", a->info[i].name, sqrt(difference), bound);
    }
}

static void packed_is_unpacked(void **state)
{
    static const char *const models[] = {"gpt", "llama"};
    (void)state;
    write_rows();
    for (int m = 0; m < 2; m++) {
        outcome packed = update(models[m], "fp32", false, 0), alone = update(models[m], "fp32", true, 0);
        expect_same(&packed, &alone);
        free_outcome(&packed);
        free_outcome(&alone);
    }
}

static void passes_are_one_large_batch(void **state)
{
    (void)state;
    write_rows();
    outcome whole = update("llama", "fp32", true, SAMPLES), parts = update("llama", "fp32", true, 1);
    expect_same(&parts, &whole);
    free_outcome(&whole);
    free_outcome(&parts);
}

static void models_that_cannot_are_refused(void **state)
{
    (void)state;
    write_rows();
    mixt_data *data = open_rows(false, SEQ, false);
    assert_null(mixt_zoo_model(context, "lstm", data, .layers = 1, .width = 16));
    assert_non_null(strstr(mixt_error_text(), "model lstm cannot keep texts apart that share a row"));
    mixt_data_close(data);
}

static int open_context(void **state)
{
    (void)state;
    temp_folder_make();
    context = mixt_open(.device = "cpu", .threads = 2);
    return context ? 0 : -1;
}

static int close_context(void **state)
{
    mixt_close(context);
    return temp_folder_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_is_there_once),
        cmocka_unit_test(packed_is_unpacked),
        cmocka_unit_test(passes_are_one_large_batch),
        cmocka_unit_test(models_that_cannot_are_refused),
    };
    return cmocka_run_group_tests_name("chat_pack", tests, open_context, close_context);
}
