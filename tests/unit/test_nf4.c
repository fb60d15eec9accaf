/* NF4: rounding to the nearest number of each block, scales that are rounded too, parts that have theirs apart; frozen
 * weights of adapters in it are read as their values, cost what was planned, and come back as they were. */
#include "../support/temp_folder.h"
#include "api/api.h"
#include "base/rng.h"
#include "mixt/num.h"
#include "num/nf4.h"
#include "store/nf4_file.h"
#include "train/trainer_inside.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { ROWS = 40, COLS = 192, MOST = ROWS * COLS, BATCH = 6, CLASSES = 5, STEPS = 3 };

static mixt_context *context;
static float given[MOST], kept[MOST], scales[2000];
static uint8_t codes[MOST / 2];
static float samples[BATCH * COLS];
static int32_t labels[BATCH];

static void draw(float *values, int64_t count, float deviation, uint64_t seed)
{
    mixt__rng rng = mixt__rng_start(seed);
    for (int64_t i = 0; i < count; i++)
        values[i] = deviation * mixt__rng_normal(&rng);
}

/* ---- numbers ---- */

/** Each value is that of the nearest of 16 numbers times its block's magnitude, which is off by what 8 bits allow. */
static void rounds_to_the_nearest(void **state)
{
    (void)state;
    const mixt__nf4_matrix m = {.rows = ROWS, .cols = COLS, .part_count = 3, .parts = {24, 8, 8}};
    draw(given, MOST, 0.05f, 3);
    memset(given + COLS, 0, MIXT_NF4_BLOCK * sizeof *given); // a block of zeros
    assert_in_range(mixt__nf4_words(&m), 1, 2000);
    assert_true(mixt__nf4_quantise(&m, given, codes, scales));
    mixt__nf4_values(&m, codes, scales, kept);
    mixt__nf4_part part;
    int64_t parts = 0, next = 0;
    for (; mixt__nf4_part_at(scales, COLS, (int)parts, &part); parts++) {
        assert_int_equal(part.row, next);
        next += part.rows;
        double mean = 0, farthest = 0;
        for (int64_t b = 0; b < part.blocks; b++) {
            double most = 0;
            for (int i = 0; i < MIXT_NF4_BLOCK; i++)
                most = fmax(most, fabs((double)given[part.row * COLS + b * MIXT_NF4_BLOCK + i]));
            mean += most / (double)part.blocks;
        }
        assert_true(*part.offset == (float)mean || fabs((double)*part.offset / mean - 1) < 1e-7);
        for (int64_t b = 0; b < part.blocks; b++) {
            const float *x = given + part.row * COLS + b * MIXT_NF4_BLOCK, *y = kept + (x - given);
            double most = 0;
            for (int i = 0; i < MIXT_NF4_BLOCK; i++)
                most = fmax(most, fabs((double)x[i]));
            double magnitude =
                (double)mixt__nf4_dynamic[part.magnitude[b]] * (double)part.nested[b / 256] + (double)*part.offset;
            farthest = fmax(farthest, fabs((double)part.nested[b / 256]));
            assert_true(fabs(magnitude - most) <= farthest * 0.5 * 0.0142); // half of the widest step of 256
            for (int i = 0; i < MIXT_NF4_BLOCK; i++) {
                double near = 9, unit = most > 0 ? (double)x[i] / most : 0;
                for (int k = 0; k < 16; k++)
                    near = fmin(near, fabs((double)mixt__nf4_numbers[k] - unit));
                assert_true(fabs((double)y[i] / magnitude - unit) <= near + 1e-6);
            }
        }
    }
    assert_int_equal(parts, 3);
}

static void parts_of_rows_are_those_of_all(void **state)
{
    (void)state;
    const mixt__nf4_matrix m = {.rows = ROWS, .cols = COLS, .part_count = 2, .parts = {30, 10}};
    float some[COLS];
    draw(given, MOST, 1, 4);
    assert_true(mixt__nf4_quantise(&m, given, codes, scales));
    mixt__nf4_values(&m, codes, scales, kept);
    for (int64_t row = 0; row < ROWS; row += 7)
        for (int64_t col = 0; col < COLS; col += 13) {
            int64_t count = col % 5 ? 1 + col % 90 : COLS - col;
            count = col + count <= COLS ? count : COLS - col;
            mixt__nf4_row(codes, scales, COLS, row, col, count, some);
            assert_memory_equal(some, kept + row * COLS + col, (size_t)count * sizeof *some);
        }
    assert_false(mixt__nf4_fits(&(mixt__nf4_matrix){.rows = 4, .cols = 96}));
}

/** What bitsandbytes has made of a matrix (tests/peers/golden_nf4.py): the same bytes; of the offset, whose sum it adds
 * up in FP32, the last bit aside. */
static void as_bitsandbytes(void **state)
{
    (void)state;
    const mixt__nf4_matrix m = {.rows = ROWS, .cols = COLS}, behind = {ROWS + 8, COLS, 2, {8, ROWS}};
    static uint8_t put[(ROWS + 8) * COLS / 2];
    static float put_scales[2000];
    mixt__safetensors *file;
    assert_int_equal(mixt__safetensors_open("tests/data/nf4/weight.safetensors", &file), MIXT_OK);
    const mixt__file_tensor *values = mixt__safetensors_find(file, "values");
    assert_int_equal(mixt_convert(given, MIXT_DTYPE_FP32, values->data, values->dtype, MOST, NULL), MIXT_OK);
    const void *theirs = mixt__safetensors_find(file, "weight")->data;
    const uint8_t *magnitudes = mixt__safetensors_find(file, "weight.absmax")->data;
    assert_true(mixt__nf4_quantise(&m, given, codes, scales));
    assert_memory_equal(codes, theirs, sizeof codes);
    assert_int_equal(mixt__nf4_show("weight.safetensors", file), MIXT_OK);
    const mixt__file_tensor *weight = mixt__safetensors_find(file, "weight");
    assert_int_equal(weight->dtype, MIXT_DTYPE_NF4);
    assert_int_equal(weight->dims[0], ROWS);
    assert_null(mixt__safetensors_find(file, "weight.quant_map"));
    const mixt__nf4_stored *stored = weight->data;
    mixt__nf4_part part;
    assert_true(mixt__nf4_part_at(scales, COLS, 0, &part));
    assert_true(fabs((double)stored->offset / (double)*part.offset - 1) < 1.2e-7);
    for (int64_t b = 0; b < part.blocks; b++)
        assert_int_equal(part.magnitude[b], magnitudes[b]);
    assert_true(fabs((double)stored->nested[0] / (double)part.nested[0] - 1) < 1e-5);
    assert_int_equal(mixt__nf4_tensor_values(weight, kept), MIXT_OK);
    assert_memory_equal(kept, mixt__safetensors_find(file, "dequantised")->data, sizeof kept);
    mixt__nf4_lay_out(&behind, put_scales);
    assert_false(mixt__nf4_put(weight, &behind, 0, put, put_scales));
    assert_true(mixt__nf4_put(weight, &behind, 8, put, put_scales));
    mixt__nf4_row(put, put_scales, COLS, 8 + 17, 0, COLS, given);
    assert_memory_equal(given, kept + 17 * COLS, COLS * sizeof(float));
    mixt__safetensors_close(file);
}

/* ---- below adapters ---- */

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_linear(b, "one", x, .features = 128, .parts = {64, 32, 32});
    x = mixt_linear(b, "two", mixt_gelu_erf(b, x), .features = 64);
    return mixt_linear(b, "head", mixt_layer_norm(b, "norm", x), .features = CLASSES);
}

static mixt_trainer *open_net(const char *precision, const char *frozen, bool adapters, mixt_status expected)
{
    mixt_trainer *t = NULL;
    mixt_lora_options lora = MIXT_OPTIONS(mixt_lora_options, .rank = 2);
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .precision = precision, .optimizer = "sgd", .lr = 0.05f,
                                          .batch = BATCH, .seed = 3, .frozen = frozen);
    mixt_model *model = mixt_model_new(context, net, MIXT_LOSS_CROSS_ENTROPY);
    const mixt_sample_shape shape = {MIXT_DTYPE_FP32, 1, {COLS}, 1};
    assert_non_null(model);
    if (adapters)
        assert_int_equal(mixt_model_lora(model, &lora), MIXT_OK);
    mixt_status status = mixt_trainer_new_with(model, &o, &t);
    if (status == MIXT_OK)
        status = mixt_trainer_compile_for(t, &shape);
    if (status == MIXT_OK)
        status = mixt__trainer_allocate(t->inner);
    if (status != expected)
        fail_msg("%s, %s: %s", precision, frozen, mixt_error_text());
    return t;
}

static void get(mixt_trainer *t, const char *name, float *values)
{
    int32_t index = mixt__params_find(t->inner->params, name);
    assert_true(index >= 0);
    assert_int_equal(mixt_trainer_param_get(t, index, values), MIXT_OK);
}

static void set(mixt_trainer *t, const char *name, const float *values)
{
    assert_int_equal(mixt_trainer_param_set(t, mixt__params_find(t->inner->params, name), values), MIXT_OK);
}

static void train(mixt_trainer *t)
{
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(mixt_trainer_step_on(t, samples, labels, NULL), MIXT_OK);
}

static const char *const weights[] = {"one.weight", "two.weight"};

/** A model whose weights are in NF4 trains as one that has their values: in FP32 to the bit, in BF16 too, which rounds
 *  the values as it rounds a weight. */
static void trains_as_with_its_values(void **state)
{
    (void)state;
    static float values[128 * COLS], a[2][6 * COLS], b[2][128 * 2];
    static const char *const precisions[] = {"fp32", "bf16"};
    for (int p = 0; p < 2; p++) {
        mixt_trainer *low = open_net(precisions[p], "nf4", true, MIXT_OK),
                     *wide = open_net(precisions[p], "auto", true, MIXT_OK);
        for (int i = 0; i < 2; i++) {
            get(low, weights[i], values);
            set(wide, weights[i], values);
            assert_int_equal(low->inner->params->frozen.home[mixt__params_find(low->inner->params, weights[i])],
                             MIXT_DTYPE_NF4);
        }
        assert_int_not_equal(low->inner->params->frozen.home[mixt__params_find(low->inner->params, "head.weight")],
                             MIXT_DTYPE_NF4);
        train(low);
        train(wide);
        for (int k = 0; k < 2; k++) {
            get(k ? wide : low, "one.lora_a", a[k]);
            get(k ? wide : low, "two.lora_b", b[k]);
        }
        assert_memory_equal(a[0], a[1], sizeof a[0]);
        assert_memory_equal(b[0], b[1], 64 * 2 * sizeof(float));
        mixt_memory memory;
        assert_int_equal(mixt_trainer_memory(low, &memory), MIXT_OK);
        assert_int_equal(memory.allocated, memory.total);
    }
}

/** Half a byte a number, a byte a block, four for 256 of those; and of each part an offset. */
static void costs_what_it_says(void **state)
{
    (void)state;
    mixt_trainer *t = open_net("bf16", "nf4", true, MIXT_OK);
    const mixt__param_role *role = &t->inner->params->roles[MIXT_PARAM_FROZEN + MIXT_DTYPE_NF4];
    int64_t one = 128 * COLS, two = 64 * 128, words = 0;
    const int64_t parts[] = {64 * COLS, 32 * COLS, 32 * COLS, two};
    for (int i = 0; i < 4; i++)
        words += (parts[i] / 64 + 255) / 256 + 1 + (parts[i] / 64 + 3) / 4;
    assert_int_equal(role->bytes, (one + two) / 2 + (words + 2 * 8) * (int64_t)sizeof(float));
}

/** What a checkpoint has is what is restored, to the bit, whatever rounding it again would give. */
static void comes_back(void **state)
{
    (void)state;
    static float before[128 * COLS], after[128 * COLS];
    const char *folder = temp_path("nf4");
    mixt_trainer *t = open_net("bf16", "nf4", true, MIXT_OK), *again;
    train(t);
    assert_int_equal(mixt_trainer_checkpoint(t, folder), MIXT_OK);
    get(t, "one.weight", before);
    again = open_net("bf16", "nf4", true, MIXT_OK);
    draw(after, 128 * COLS, 1, 9);
    set(again, "one.weight", after);
    if (mixt_trainer_restore(again, folder) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    get(again, "one.weight", after);
    assert_memory_equal(before, after, sizeof before);
}

static void refused(void **state)
{
    (void)state;
    (void)open_net("bf16", "nf4", false, MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "frozen=nf4 is for what stands below adapters"));
    mixt_trainer *t = open_net("bf16", "nf4", true, MIXT_OK);
    static float weight[128 * 64];
    draw(weight, 128 * 64, 1, 5);
    weight[77] = NAN;
    assert_int_equal(mixt_trainer_param_set(t, mixt__params_find(t->inner->params, "two.weight"), weight),
                     MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "it cannot be kept in nf4"));
}

static int open_all(void **state)
{
    (void)state;
    temp_folder_make();
    draw(samples, BATCH * COLS, 1, 11);
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % CLASSES;
    context = mixt_open(.device = "cpu", .threads = 2);
    return context ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    mixt_close(context);
    temp_folder_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_to_the_nearest),
        cmocka_unit_test(parts_of_rows_are_those_of_all),
        cmocka_unit_test(as_bitsandbytes),
        cmocka_unit_test(trains_as_with_its_values),
        cmocka_unit_test(costs_what_it_says),
        cmocka_unit_test(comes_back),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
