/* Accumulated passes give the gradient of one large batch, also where targets are left out and no two passes have the
 * same number of them: a masked language model, on the device that MIXT_TEST_DEVICE names when this is compiled.
 *
 * The bound is FP32's: a sum of n terms is off by n · 2^-24 of the sum of their magnitudes at most. On the way from a
 * weight to the loss and back the sums are as long as CHAIN says; the magnitudes are those of the passes' gradients.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "mixt/mixt.h"
#include "train/pass_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef MIXT_TEST_DEVICE
#define MIXT_TEST_DEVICE "cpu"
#endif

enum { PASSES = 4, BATCH = 2, TOKENS = 24, VOCAB = 96, LAYERS = 2, WIDTH = 32, PARAMS_MAX = 64 };
enum { ROWS = PASSES * BATCH * TOKENS };
enum { CHAIN = ROWS + 2 * VOCAB + 2 * LAYERS * (3 * WIDTH + TOKENS + WIDTH + WIDTH + 4 * WIDTH + 4 * WIDTH) };

static mixt_context *context;
static mixt_data *shape; // of samples only
static int32_t tokens[ROWS], targets[ROWS];

/** Hides `counts[p]` tokens of each pass and asks for those alone. */
static void mask(const int *counts, uint64_t key)
{
    mixt__rng rng = mixt__rng_start(key);
    for (int i = 0; i < ROWS; i++) {
        tokens[i] = (int32_t)mixt__rng_below(&rng, VOCAB);
        targets[i] = -1;
    }
    for (int p = 0; p < PASSES; p++)
        for (int left = counts[p]; left;) {
            int at = p * BATCH * TOKENS + (int)mixt__rng_below(&rng, BATCH * TOKENS);
            if (targets[at] >= 0)
                continue;
            targets[at] = tokens[at];
            tokens[at] = VOCAB - 1;
            left--;
        }
}

static mixt_trainer *open_trainer(const char *precision, int64_t batch, int64_t accumulate)
{
    mixt_model *model = mixt_zoo_model(context, "bert_mlm", shape, .layers = LAYERS, .width = WIDTH, .heads = 2);
    mixt_trainer *t = mixt_trainer_new(model, .precision = precision, .optimizer = "sgd", .lr = 1, .seed = 3,
                                       .batch = batch, .accumulate = accumulate);
    if (!t || mixt_trainer_compile(t, shape) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return t;
}

typedef struct tensors {
    int64_t count;
    mixt_param_info info[PARAMS_MAX];
    float *values[PARAMS_MAX];
} tensors;

static tensors read_all(mixt_trainer *t, bool gradients)
{
    tensors r = {.count = mixt_trainer_param_count(t)};
    assert_in_range(r.count, 1, PARAMS_MAX);
    for (int64_t i = 0; i < r.count; i++) {
        assert_int_equal(mixt_trainer_param(t, i, &r.info[i]), MIXT_OK);
        r.values[i] = malloc((size_t)r.info[i].count * sizeof(float));
        assert_int_equal((gradients ? mixt_trainer_grad_get : mixt_trainer_param_get)(t, i, r.values[i]), MIXT_OK);
    }
    return r;
}

static void free_all(tensors *t)
{
    for (int64_t i = 0; i < t->count; i++)
        free(t->values[i]);
}

static double norm_of(const float *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/** What one step of SGD with a learning rate of 1 takes from the weights: the gradient, and the weights' rounding. The
 * weights are put back, so that the next step begins where this one did. */
static tensors gradient_of_step(mixt_trainer *t, const tensors *start, mixt_step *step)
{
    if (mixt_trainer_step_on(t, tokens, targets, step) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    assert_false(step->skipped);
    tensors after = read_all(t, false);
    for (int64_t i = 0; i < after.count; i++) {
        for (int64_t k = 0; k < after.info[i].count; k++)
            after.values[i][k] = start->values[i][k] - after.values[i][k];
        assert_int_equal(mixt_trainer_param_set(t, i, start->values[i]), MIXT_OK);
    }
    return after;
}

/** Gradients of each pass by itself, each the mean over its own targets. */
static void gradients_of_passes(mixt_trainer *t, tensors *passes)
{
    for (int p = 0; p < PASSES; p++) {
        int64_t at = (int64_t)p * BATCH * TOKENS;
        assert_int_equal(mixt_trainer_backward(t, tokens + at, targets + at, 1, NULL), MIXT_OK);
        passes[p] = read_all(t, true);
        assert_int_equal(mixt_trainer_discard(t), MIXT_OK);
    }
}

/** How far two gradients of a parameter are apart, over what rounding may do; `plain`: the second is the mean of the
 * passes with equal weights. */
static double distance(const tensors *whole, const tensors *sum, const tensors *passes, const int *counts,
                       const tensors *start, int64_t i, bool plain)
{
    int64_t count = whole->info[i].count, total = 0;
    double difference = 0, magnitude = 0;
    for (int p = 0; p < PASSES; p++)
        total += counts[p];
    for (int p = 0; p < PASSES; p++)
        magnitude += (double)counts[p] / (double)total * norm_of(passes[p].values[i], count);
    for (int64_t k = 0; k < count; k++) {
        double other = plain ? 0 : (double)sum->values[i][k];
        for (int p = 0; plain && p < PASSES; p++)
            other += (double)passes[p].values[i][k] / PASSES;
        double d = other - (double)whole->values[i][k];
        difference += d * d;
    }
    double bound = 0x1p-24 * (CHAIN * magnitude + 2 * norm_of(start->values[i], count));
    return sqrt(difference) / bound;
}

static void passes_equal_a_large_batch(void **state)
{
    (void)state;
    static const int counts[][PASSES] = {{3, 20, 9, 14}, {40, 1, 2, 3}, {0, 7, 0, 12}, {10, 10, 10, 10}, {1, 1, 47, 0}};
    mixt_trainer *small = open_trainer("fp32", BATCH, PASSES), *large = open_trainer("fp32", PASSES * BATCH, 1);
    mixt_trainer *alone = open_trainer("fp32", BATCH, 1);
    mask(counts[0], 1);
    assert_int_equal(mixt_trainer_backward(alone, tokens, targets, 1, NULL), MIXT_OK); // takes memory, draws weights
    assert_int_equal(mixt_trainer_discard(alone), MIXT_OK);
    tensors start = read_all(alone, false);
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) { // on a GPU from the second on by replay
        mixt_step a, b;
        tensors passes[PASSES];
        bool plain_is_wrong = false;
        mask(counts[c], c + 1);
        tensors sum = gradient_of_step(small, &start, &a), whole = gradient_of_step(large, &start, &b);
        gradients_of_passes(alone, passes);
        assert_true(fabs(a.loss - b.loss) <= CHAIN * 0x1p-24 * b.loss);
        assert_true(fabs(a.grad_norm - b.grad_norm) <= CHAIN * 0x1p-24 * PASSES * b.grad_norm);
        for (int64_t i = 0; i < start.count; i++) {
            double off = distance(&whole, &sum, passes, counts[c], &start, i, false);
            if (!(off <= 1))
                fail_msg("case %zu: the gradient of %s is off by %g of the bound", c, start.info[i].name, off);
            plain_is_wrong |= distance(&whole, &sum, passes, counts[c], &start, i, true) > 100;
        }
        assert_int_equal(plain_is_wrong, c != 3); // equal weights would be seen, but where they are right
        for (int p = 0; p < PASSES; p++)
            free_all(&passes[p]);
        free_all(&sum);
        free_all(&whole);
    }
    free_all(&start);
}

/** In FP16 the scaled gradients of passes differ as their counts do, and none overflows for that. */
static void low_formats_stay_near(void **state)
{
    (void)state;
    static const int counts[PASSES] = {5, 31, 2, 17};
    static const struct {
        const char *name;
        double unit;
    } formats[] = {{"fp16", 0x1p-11}, {"bf16", 0x1p-8}};
    for (int f = 0; f < 2; f++) {
        mixt_trainer *small = open_trainer(formats[f].name, BATCH, PASSES);
        mixt_trainer *large = open_trainer(formats[f].name, PASSES * BATCH, 1);
        for (uint64_t i = 0; i < 3; i++) {
            mixt_step a, b;
            mask(counts, 100 + i);
            assert_int_equal(mixt_trainer_step_on(small, tokens, targets, &a), MIXT_OK);
            assert_int_equal(mixt_trainer_step_on(large, tokens, targets, &b), MIXT_OK);
            assert_false(a.skipped || b.skipped);
            assert_true(a.scale == b.scale);
            assert_true(fabs(a.loss - b.loss) <= 4 * formats[f].unit * b.loss);
            assert_true(fabs(a.grad_norm - b.grad_norm) <= 4 * formats[f].unit * b.grad_norm);
        }
    }
}

static void weights_of_equal_counts_are_one(void **state)
{
    (void)state;
    for (int64_t passes = 1; passes < 50; passes++)
        for (int64_t count = 1; count < 3000000; count = 3 * count + 1) {
            mixt__pass_weights w = {0};
            int64_t counts[50];
            float weights[50];
            for (int64_t i = 0; i < passes; i++) {
                counts[i] = count;
                assert_true(mixt__pass_weight(&w, count) == 1.0f);
            }
            assert_true(mixt__pass_weights_factor(&w, passes) == 1.0);
            mixt__pass_weights_of(counts, passes, weights);
            for (int64_t i = 0; i < passes; i++)
                assert_true(weights[i] == 1.0f);
        }
    mixt__pass_weights none = {0};
    assert_true(mixt__pass_weight(&none, 0) == 0 && mixt__pass_weights_factor(&none, 1) == 1);
    assert_int_equal(mixt__targets_count((int32_t[]){0, -1, 7, -100, 3}, MIXT_DTYPE_INT32, 5), 3);
    assert_int_equal(mixt__targets_count((float[]){0, NAN, -1, INFINITY}, MIXT_DTYPE_FP32, 4), 3);
}

static int open_all(void **state)
{
    (void)state;
    context = mixt_open(.device = MIXT_TEST_DEVICE, .threads = 2);
    shape = context ? mixt_data_new(context, "random:tokens", .seq = TOKENS, .classes = VOCAB, .samples = 64) : NULL;
    if (!shape)
        print_error("%s\n", mixt_error_text());
    return shape ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    mixt_close(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_equal_a_large_batch),
        cmocka_unit_test(low_formats_stay_near),
        cmocka_unit_test(weights_of_equal_counts_are_one),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
