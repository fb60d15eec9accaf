/* Frozen weights in a byte a number, INT8 or FP8, with a scale for each row: how far they and what is computed with
 * them are from what was given, and that training with them is training with their values, to the bit. */
#include "../support/temp_folder.h"
#include "api/api.h"
#include "mixt/plan.h"
#include "store/pairs.h"
#include "train/trainer_inside.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { BATCH = 8, SIDE = 6, WIDTH = 24, CLASSES = 5, TOKENS = 10, TABLE = 12, MOST = 4096, STEPS = 4 };

/** A format of a byte, and how far its numbers are from what was given. */
typedef struct base {
    const char *name;
    mixt_dtype format;
    double row;   // half a step where steps are largest, as a share of a row's largest weight
    double value; // the same as a share of the weight itself; 0: steps have one size
    double least; // half a step where steps are smallest, as a share of a row's largest weight
    int range;    // whole numbers up to this one are exact
    float most;   // the largest number
} base;

static const base bases[] = {{"int8", MIXT_DTYPE_INT8, 1.0 / 254, 0, 0, 31, 127},
                             {"fp8", MIXT_DTYPE_FP8_E4M3, 16.0 / 448, 1.0 / 16, 0x1p-10 / 448, 15, 448}};
static const base *kind = bases; // what is tested
static mixt_context *context;
static float pixels[BATCH * SIDE * SIDE], values[BATCH * CLASSES];
static int32_t labels[BATCH], tokens[BATCH * TOKENS], next[BATCH * TOKENS];

/** Frozen layers between layers that are trained. */
static mixt_value body(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_conv2d(b, "conv", x, .channels = 4, .kernel = 3, .pad = 1));
    x = mixt_relu(b, mixt_linear(b, "fc1", mixt_flatten(b, x), .features = WIDTH));
    x = mixt_gelu_erf(b, mixt_linear(b, "fc2", mixt_layer_norm(b, "norm", x), .features = WIDTH));
    return mixt_linear(b, "head", x, .features = CLASSES);
}

/** A table that is looked up and is the head too, and one of which a slice is added. */
static mixt_value tied(mixt_builder *b, mixt_value ids)
{
    mixt_value table = mixt_param(b, "table", .rank = 2, .dims = {TABLE, WIDTH}, .normal = 0.5f);
    mixt_value places = mixt_param(b, "places", .rank = 2, .dims = {2 * TOKENS, WIDTH}, .normal = 0.5f);
    mixt_value x = mixt_embedding_lookup(b, table, ids);
    x = mixt_add(b, x, mixt_slice(b, places, 0, 0, TOKENS));
    x = mixt_gelu_erf(b, mixt_linear(b, "fc", x, .features = WIDTH));
    return mixt_matmul(b, x, table, .trans_b = true);
}

/** A table of which a slice is added, beside rows that are looked up. */
static mixt_value sliced(mixt_builder *b, mixt_value ids)
{
    mixt_value table = mixt_param(b, "table", .rank = 2, .dims = {TABLE, WIDTH}, .normal = 0.5f);
    mixt_value x = mixt_add(b, mixt_embedding_lookup(b, table, ids), mixt_slice(b, table, 0, 0, TOKENS));
    return mixt_linear(b, "fc", mixt_linear(b, "first", x, .features = WIDTH), .features = TABLE);
}

/** One layer: predictions are linear in its weight. */
static mixt_value line(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", mixt_flatten(b, x), .features = CLASSES);
}

/** A product whose gradient takes the weight as its first operand. */
static mixt_value turned(mixt_builder *b, mixt_value x)
{
    mixt_value w = mixt_param(b, "w", .rank = 2, .dims = {BATCH, CLASSES}, .normal = 0.5f);
    x = mixt_linear(b, "fc", mixt_flatten(b, x), .features = BATCH);
    return mixt_matmul(b, x, w, .trans_a = true);
}

typedef struct net {
    mixt_value (*function)(mixt_builder *b, mixt_value x);
    mixt_loss loss;
    const char *freeze;
    bool text;
} net;

static const net with_body = {body, MIXT_LOSS_CROSS_ENTROPY, "fc1, fc2, norm", false};
static const net with_table = {tied, MIXT_LOSS_CROSS_ENTROPY, "table, places", true};
static const net with_sliced = {sliced, MIXT_LOSS_CROSS_ENTROPY, "table, first", true};
static const net with_turned = {turned, MIXT_LOSS_MSE, "w", false};
static const net with_line = {line, MIXT_LOSS_MSE, "fc.weight", false};

static mixt_status open_net(const net *n, mixt_trainer_options o, mixt_trainer **t)
{
    o.batch = BATCH;
    o.seed = 3;
    o.freeze = o.freeze ? o.freeze : n->freeze;
    *t = NULL;
    mixt_model *model = mixt_model_new(context, n->function, n->loss);
    mixt_status status = mixt_trainer_new_with(model, &o, t);
    mixt_sample_shape image = {MIXT_DTYPE_FP32, 3, {SIDE, SIDE, 1}, n->loss == MIXT_LOSS_MSE ? CLASSES : 1},
                      text = {MIXT_DTYPE_INT32, 1, {TOKENS}, TOKENS};
    if (status == MIXT_OK)
        status = mixt_trainer_compile_for(*t, n->text ? &text : &image);
    return status == MIXT_OK ? mixt__trainer_allocate((*t)->inner) : status;
}

static mixt_trainer *must_open(const net *n, const char *precision, const char *frozen)
{
    mixt_trainer *t;
    mixt_trainer_options o =
        MIXT_OPTIONS(mixt_trainer_options, .precision = precision, .optimizer = "sgd", .lr = 0.05f, .frozen = frozen);
    if (open_net(n, o, &t) != MIXT_OK)
        fail_msg("%s, frozen in %s: %s", precision, frozen, mixt_error_text());
    return t;
}

static void train(const net *n, mixt_trainer *t)
{
    const void *input = n->text ? (void *)tokens : (void *)pixels;
    const void *target = n->text ? (void *)next : n->loss == MIXT_LOSS_MSE ? (void *)values : (void *)labels;
    for (int i = 0; i < STEPS; i++)
        assert_int_equal(mixt_trainer_step_on(t, input, target, NULL), MIXT_OK);
}

static int64_t find(mixt_trainer *t, const char *name, mixt_param_info *info)
{
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        assert_int_equal(mixt_trainer_param(t, i, info), MIXT_OK);
        if (!strcmp(info->name, name))
            return i;
    }
    fail_msg("no parameter %s", name);
    return -1;
}

static int64_t get(mixt_trainer *t, const char *name, float *to)
{
    mixt_param_info info;
    int64_t index = find(t, name, &info);
    assert_in_range(info.count, 1, MOST);
    assert_int_equal(mixt_trainer_param_get(t, index, to), MIXT_OK);
    return info.count;
}

/** Half of what numbers there differ by, and the FP32 roundings of scale, quotient and product. */
static double half_a_step(const float *row, int64_t width, int64_t index)
{
    double largest = 0;
    for (int64_t i = 0; i < width; i++)
        largest = fmax(largest, fabs((double)row[i]));
    double here = kind->value > 0 ? fabs((double)row[index]) * kind->value + largest * kind->least : INFINITY;
    return fmin(here, largest * kind->row) * (1 + 0x1p-14);
}

/** The call was refused, with these words. */
static void expect(mixt_status got, mixt_status status, const char *words)
{
    assert_int_equal(got, status);
    if (!strstr(mixt_error_text(), words))
        fail_msg("'%s' is not in: %s", words, mixt_error_text());
}

/* ---- weights ---- */

static void check_rows(const char *name, const float *given, const float *kept, int64_t rows, int64_t width)
{
    bool other = false;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = r * width; i < (r + 1) * width; i++) {
            double difference = fabs((double)given[i] - (double)kept[i]);
            if (difference > half_a_step(given + r * width, width, i - r * width))
                fail_msg("%s[%lld]: %g became %g", name, (long long)i, (double)given[i], (double)kept[i]);
            other |= difference > 0;
        }
    assert_true(other);
}

static void weights_are_rounded_to_half_a_step(void **state)
{
    (void)state;
    static float given[MOST], kept[MOST], again[MOST];
    mixt_trainer *whole = must_open(&with_body, "fp32", "auto"), *t = must_open(&with_body, "fp32", kind->name);
    const char *const names[] = {"fc1.weight", "fc2.weight"};
    for (int i = 0; i < 2; i++) {
        mixt_param_info info;
        int64_t index = find(t, names[i], &info);
        get(whole, names[i], given);
        int64_t count = get(t, names[i], kept);
        check_rows(names[i], given, kept, info.dims[0], info.dims[1]);
        assert_int_equal(info.copy, kind->format);
        assert_int_equal(mixt_trainer_param_set(t, index, kept), MIXT_OK);
        get(t, names[i], again);
        assert_memory_equal(kept, again, (size_t)count * sizeof *kept);
    }
    int64_t count = get(whole, "norm.weight", given);
    get(t, "norm.weight", kept);
    assert_memory_equal(given, kept, (size_t)count * sizeof *kept);
}

/** A byte a number and four a row: half of BF16's, and the scales. */
static void memory_is_a_byte_a_number(void **state)
{
    (void)state;
    mixt_memory whole, half, quarter;
    mixt_plan_frozen f;
    const int64_t fc1 = WIDTH * 4 * SIDE * SIDE, fc2 = WIDTH * WIDTH; // multiples of 64: no gaps
    mixt_trainer *t = must_open(&with_body, "bf16", kind->name);
    assert_int_equal(mixt_plan_frozen_in(t, kind->format, &f), MIXT_OK);
    assert_int_equal(f.parameters, 2);
    assert_int_equal(f.numbers, fc1 + fc2);
    assert_int_equal(f.scales, 2 * WIDTH);
    assert_int_equal(f.bytes, fc1 + fc2 + 2 * WIDTH * 4);
    assert_int_equal(mixt_plan_frozen_in(t, MIXT_DTYPE_FP32, &f), MIXT_OK);
    assert_int_equal(f.parameters, 4); // biases and the norm's
    assert_int_equal(mixt_trainer_memory(t, &quarter), MIXT_OK);
    assert_int_equal(mixt_trainer_memory(must_open(&with_body, "bf16", "auto"), &half), MIXT_OK);
    assert_int_equal(mixt_trainer_memory(must_open(&with_body, "fp32", "auto"), &whole), MIXT_OK);
    assert_int_equal(whole.state - half.state, 2 * (fc1 + fc2));
    assert_int_equal(half.state - quarter.state, fc1 + fc2 - 2 * WIDTH * 4);
    assert_int_equal(quarter.allocated, quarter.total);
    assert_int_equal(mixt_plan_frozen_in(t, (mixt_dtype)99, &f), MIXT_ERROR_ARGUMENT);
}

/* ---- outputs ---- */

/** Half a step of each weight times what it is multiplied by, and the FP32 roundings of two sums. */
static double output_bound(const float *weight, const float *x, int64_t width)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++)
        sum += fabs((double)x[i]) *
               (half_a_step(weight, width, i) + 2 * (double)width * 0x1p-24 * fabs((double)weight[i]));
    return sum;
}

static void outputs_stay_within_the_rounding(void **state)
{
    (void)state;
    static float weight[MOST], a[BATCH * CLASSES], b[BATCH * CLASSES];
    const int64_t width = SIDE * SIDE;
    mixt_trainer *whole = must_open(&with_line, "fp32", "auto"), *t = must_open(&with_line, "fp32", kind->name);
    get(whole, "fc.weight", weight);
    assert_int_equal(mixt_trainer_predict(whole, pixels, BATCH, a), MIXT_OK);
    assert_int_equal(mixt_trainer_predict(t, pixels, BATCH, b), MIXT_OK);
    double most = 0;
    for (int n = 0; n < BATCH; n++)
        for (int c = 0; c < CLASSES; c++) {
            double bound = output_bound(weight + c * width, pixels + n * width, width);
            double difference = fabs((double)a[n * CLASSES + c] - (double)b[n * CLASSES + c]);
            assert_true(difference <= bound);
            most = fmax(most, difference / bound);
        }
    assert_true(most > 0.01); // the bound says something
}

/** Of a squared error and a frozen weight each bias goes to the mean of what is left: what is left differs by no more
 *  than the outputs do, and so do biases, however long they are trained. */
static void trained_biases_stay_within_it_too(void **state)
{
    (void)state;
    static float weight[MOST], a[CLASSES], b[CLASSES], first[CLASSES];
    const int64_t width = SIDE * SIDE;
    mixt_trainer *whole = must_open(&with_line, "fp32", "auto"), *t = must_open(&with_line, "fp32", kind->name);
    get(whole, "fc.weight", weight);
    get(whole, "fc.bias", first);
    for (int i = 0; i < 20; i++) {
        train(&with_line, whole);
        train(&with_line, t);
    }
    get(whole, "fc.bias", a);
    get(t, "fc.bias", b);
    for (int c = 0; c < CLASSES; c++) {
        double bound = 0;
        for (int n = 0; n < BATCH; n++)
            bound += output_bound(weight + c * width, pixels + n * width, width) / BATCH;
        double difference = fabs((double)a[c] - (double)b[c]);
        if (difference > bound)
            fail_msg("bias %d: %g and %g, at most %g apart", c, (double)a[c], (double)b[c], bound);
        assert_true(fabs((double)a[c] - (double)first[c]) > bound); // it has moved further than that
    }
}

/* ---- the same bits ---- */

/** Whole multiples of 1/256, the largest number of them in each row: those that a byte holds with that scale, and any
 *  low format too. */
static void give_exact(mixt_trainer *t, int64_t index, const mixt_param_info *info)
{
    static float numbers[MOST];
    for (int64_t i = 0; i < info->count; i++)
        numbers[i] = (i % info->dims[1] ? (float)(i * 37 % (2 * kind->range + 1) - kind->range) : kind->most) / 256;
    assert_int_equal(mixt_trainer_param_set(t, index, numbers), MIXT_OK);
}

/** A trainer over weights in a byte, and one that was given their values, train alike. */
static void check_alike(const net *n, const char *precision, bool exact)
{
    static float numbers[MOST], others[MOST];
    mixt_trainer *t = must_open(n, precision, kind->name), *same = must_open(n, precision, "auto");
    mixt_param_info info;
    int64_t moved = 0;
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        assert_int_equal(mixt_trainer_param(t, i, &info), MIXT_OK);
        assert_in_range(info.count, 1, MOST);
        if (exact && info.copy == kind->format)
            give_exact(t, i, &info);
        assert_int_equal(mixt_trainer_param_get(t, i, numbers), MIXT_OK);
        assert_int_equal(mixt_trainer_param_set(same, i, numbers), MIXT_OK);
    }
    train(n, t);
    train(n, same);
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        assert_int_equal(mixt_trainer_param(t, i, &info), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(t, i, numbers), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(same, i, others), MIXT_OK);
        if (info.trainable && memcmp(numbers, others, (size_t)info.count * sizeof *numbers))
            fail_msg("%s%s: %s has other bits", precision, exact ? ", exact" : "", info.name);
        moved += info.trainable;
    }
    assert_true(moved > 0);
}

static void training_is_that_over_their_values(void **state)
{
    (void)state;
    static const char *const precisions[] = {"fp32", "tf32", "bf16", "fp16"};
    check_alike(&with_body, "fp32", false);
    check_alike(&with_table, "fp32", false);
    for (int p = 0; p < 4; p++) {
        check_alike(&with_body, precisions[p], true);
        check_alike(&with_table, precisions[p], true);
    }
}

/* ---- files ---- */

static void a_checkpoint_goes_on_alike(void **state)
{
    (void)state;
    static float a[MOST], b[MOST];
    const char *folder = temp_path("checkpoint");
    mixt_param_info info;
    mixt_trainer *t = must_open(&with_body, "bf16", kind->name), *other = must_open(&with_body, "bf16", kind->name);
    train(&with_body, t);
    assert_int_equal(mixt_trainer_checkpoint(t, folder), MIXT_OK);
    memset(a, 0, sizeof a);
    assert_int_equal(mixt_trainer_param_set(other, find(other, "fc1.weight", &info), a), MIXT_OK);
    if (mixt_trainer_restore(other, folder) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    train(&with_body, t);
    train(&with_body, other);
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        assert_int_equal(mixt_trainer_param(t, i, &info), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(t, i, a), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(other, i, b), MIXT_OK);
        assert_memory_equal(a, b, (size_t)info.count * sizeof *a);
    }
    mixt_trainer *half = must_open(&with_body, "bf16", "auto");
    char words[64];
    snprintf(words, sizeof words, "frozen: %s -> auto", mixt_dtype_name(kind->format));
    expect(mixt_trainer_restore(half, folder), MIXT_ERROR_CONFIG, words);
}

/** Numbers without scales, or with those of other rows, are named. */
static void scales_are_looked_for(void **state)
{
    (void)state;
    const int8_t numbers[6] = {1, -2, 3, 127, 0, -127};
    const float scales[3] = {0.5f, 2, 1}, want[6] = {0.5f, -1, 1.5f, 254, 0, -254};
    const char *path = temp_path("pairs.safetensors");
    for (int64_t rows = 1; rows <= 3; rows++) {
        const mixt__file_tensor tensors[] = {
            {.name = "scale/w", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {rows}, .data = scales},
            {.name = "w", .dtype = MIXT_DTYPE_INT8, .rank = 2, .dims = {2, 3}, .data = numbers}};
        mixt__safetensors *file;
        assert_int_equal(mixt__safetensors_write(path, tensors, 2, NULL), MIXT_OK);
        assert_int_equal(mixt__safetensors_open(path, &file), MIXT_OK);
        mixt_status status = mixt__pairs_widen(path, file);
        if (rows == 2) {
            assert_int_equal(status, MIXT_OK);
            assert_int_equal(file->count, 1);
            assert_int_equal(file->tensors[0].dtype, MIXT_DTYPE_FP32);
            assert_memory_equal(file->tensors[0].data, want, sizeof want);
        } else {
            expect(status, MIXT_ERROR_FORMAT, "no tensor 'scale/w' of an FP32 scale for each row");
        }
        mixt__safetensors_close(file);
    }
}

/* ---- what is kept so ---- */

static mixt_dtype copy_of(mixt_trainer *t, const char *name)
{
    mixt_param_info info;
    find(t, name, &info);
    return info.copy;
}

static void only_weights_that_are_multiplied_or_looked_up(void **state)
{
    (void)state;
    mixt_trainer *t = must_open(&with_table, "bf16", kind->name);
    assert_int_equal(copy_of(t, "table"), kind->format);
    assert_int_equal(copy_of(t, "places"), MIXT_DTYPE_BF16);
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .precision = "bf16", .frozen = kind->name);
    o.freeze = "conv, fc1";
    assert_int_equal(open_net(&with_body, o, &t), MIXT_OK);
    assert_int_equal(copy_of(t, "conv.weight"), MIXT_DTYPE_BF16);
    assert_int_equal(copy_of(t, "fc1.weight"), kind->format);
    assert_int_equal(copy_of(t, "fc2.weight"), MIXT_DTYPE_BF16);
    assert_int_equal(copy_of(t, "fc1.bias"), MIXT_DTYPE_NONE);
    o.freeze = "fc.weight, w"; // whose gradients would take w as the first operand
    assert_int_equal(open_net(&with_turned, o, &t), MIXT_OK);
    assert_int_equal(copy_of(t, "fc.weight"), kind->format);
    assert_int_equal(copy_of(t, "w"), MIXT_DTYPE_BF16);
    train(&with_turned, t);
    t = must_open(&with_sliced, "bf16", kind->name);
    assert_int_equal(copy_of(t, "first.weight"), kind->format);
    assert_int_equal(copy_of(t, "table"), MIXT_DTYPE_BF16);
    train(&with_sliced, t);
}

static void bad_wishes_are_refused(void **state)
{
    (void)state;
    static float bad[MOST];
    mixt_trainer *t;
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .precision = "bf16", .frozen = "int4");
    expect(open_net(&with_body, o, &t), MIXT_ERROR_ARGUMENT, "frozen 'int4': must be auto, fp8, int8 or nf4");
    o.frozen = kind->name;
    o.freeze = "";
    expect(open_net(&with_body, o, &t), MIXT_ERROR_CONFIG, "freeze names none");
    o.freeze = "norm, conv";
    expect(open_net(&with_body, o, &t), MIXT_ERROR_CONFIG, "freeze names none of them");
    o.freeze = "w";
    expect(open_net(&with_turned, o, &t), MIXT_ERROR_CONFIG, "freeze names none of them");
    mixt_param_info info;
    t = must_open(&with_body, "bf16", kind->name);
    int64_t index = find(t, "fc2.weight", &info);
    bad[7] = NAN;
    expect(mixt_trainer_param_set(t, index, bad), MIXT_ERROR_DATA, "'fc2.weight' holds a value that is not finite");
    bad[7] = INFINITY;
    expect(mixt_trainer_param_set(t, index, bad), MIXT_ERROR_DATA, mixt_dtype_name(kind->format));
}

static int open_all(void **state)
{
    (void)state;
    for (int i = 0; i < BATCH * SIDE * SIDE; i++)
        pixels[i] = sinf(0.37f * (float)i) + 0.2f;
    for (int i = 0; i < BATCH * CLASSES; i++)
        values[i] = 3 + cosf((float)i);
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % CLASSES;
    for (int i = 0; i < BATCH * TOKENS; i++) {
        tokens[i] = i * 7 % TABLE;
        next[i] = (i + 1) * 7 % TABLE;
    }
    temp_folder_make();
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
        cmocka_unit_test(weights_are_rounded_to_half_a_step),
        cmocka_unit_test(memory_is_a_byte_a_number),
        cmocka_unit_test(outputs_stay_within_the_rounding),
        cmocka_unit_test(trained_biases_stay_within_it_too),
        cmocka_unit_test(training_is_that_over_their_values),
        cmocka_unit_test(a_checkpoint_goes_on_alike),
        cmocka_unit_test(scales_are_looked_for),
        cmocka_unit_test(only_weights_that_are_multiplied_or_looked_up),
        cmocka_unit_test(bad_wishes_are_refused),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        kind = &bases[i];
        failed += cmocka_run_group_tests_name(kind->name, tests, open_all, close_all);
    }
    return failed;
}
