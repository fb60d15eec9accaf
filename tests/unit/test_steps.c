/* Whole training steps: a skipped update changes nothing, the same seed gives the same bits, a step takes no memory,
 * the plan is what is allocated, and fusion, accumulation and changes of precision keep the result.
 */
#include "../support/temp_folder.h"
#include "api/api.h"
#include "train/trainer_inside.h"
#include "mixt/mixt.h"

#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- every allocation of the process, counted ---- */

static int64_t heap_calls;

#ifndef __SANITIZE_ADDRESS__
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t bytes)
{
    __atomic_add_fetch(&heap_calls, 1, __ATOMIC_RELAXED);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    __atomic_add_fetch(&heap_calls, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    __atomic_add_fetch(&heap_calls, 1, __ATOMIC_RELAXED);
    return __libc_realloc(block, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    __atomic_add_fetch(&heap_calls, 1, __ATOMIC_RELAXED);
    return __libc_memalign(alignment, bytes);
}
#endif

/* ---- two small models ---- */

static mixt_value small_net(mixt_builder *b, mixt_value x) // (N, 28, 28, 1)
{
    x = mixt_relu(b, mixt_conv2d(b, "conv", x, .channels = 8, .kernel = 3, .stride = 2, .pad = 1));
    x = mixt_relu(b, mixt_batch_norm(b, "norm", x));
    x = mixt_max_pool(b, x, .size = 2);
    x = mixt_dropout(b, mixt_flatten(b, x), 0.1f);
    return mixt_linear(b, "fc", x, .features = 10);
}

static mixt_value small_gpt(mixt_builder *b, mixt_value ids) // (B, T)
{
    mixt_value part[3], x = mixt_embedding(b, "wte", ids, .count = 256, .features = 32);
    mixt_value y = mixt_layer_norm(b, "ln", x);
    mixt_split(b, mixt_linear(b, "qkv", y, .features = 96), 3, part);
    y = mixt_attention(b, part[0], part[1], part[2], .heads = 2, .causal = true);
    x = mixt_add(b, x, mixt_linear(b, "proj", y, .features = 32));
    x = mixt_add(b, x, mixt_linear(b, "out", mixt_gelu(b, mixt_linear(b, "fc", x, .features = 64)), .features = 32));
    return mixt_linear(b, "head", x, .features = 256);
}

typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
} fixture;

static fixture start(bool gpt, mixt_trainer_options options)
{
    fixture f = {.context = mixt_open(.threads = 2)};
    assert_non_null(f.context);
    if (gpt)
        f.data = mixt_data_new(f.context, "random:tokens", .seq = 16, .classes = 256, .samples = 256, .seed = 3);
    else
        f.data = mixt_data_new(f.context, "digits:", .samples = 512, .seed = 3);
    mixt_model *model = mixt_model_new(f.context, gpt ? small_gpt : small_net, MIXT_LOSS_CROSS_ENTROPY);
    f.trainer = MIXT_MADE(mixt_trainer, mixt_trainer_new_with, model, &options);
    if (!f.data || !f.trainer)
        fail_msg("%s", mixt_error(f.context));
    return f;
}

static mixt_step step(fixture *f)
{
    mixt_step result;
    if (mixt_trainer_step(f->trainer, f->data, &result) != MIXT_OK)
        fail_msg("%s", mixt_error(f->context));
    return result;
}

/** Masters, moments, working copies and running statistics, one after the other. */
static float *snapshot(const fixture *f, size_t *bytes)
{
    const mixt__params *p = f->trainer->inner->params;
    size_t fp32 = (size_t)p->total * 4, low = (size_t)p->roles[MIXT_PARAM_COPY + MIXT_DTYPE_FP16].elements * 2, at = 0;
    size_t statistics = (size_t)p->state_total * 4;
    char *copy = calloc(1, 3 * fp32 + low + statistics + 64);
    const struct {
        const void *data;
        size_t bytes;
    } arenas[] = {{mixt__params_weights(p), fp32},
                  {mixt__role_fp32(&p->roles[MIXT_PARAM_MOMENT1]), fp32},
                  {mixt__role_fp32(&p->roles[MIXT_PARAM_MOMENT2]), fp32},
                  {p->roles[MIXT_PARAM_COPY + MIXT_DTYPE_FP16].data, low},
                  {p->roles[MIXT_PARAM_STATE].data, statistics}};
    for (size_t i = 0; i < sizeof arenas / sizeof arenas[0]; i++) {
        if (arenas[i].data && arenas[i].bytes)
            memcpy(copy + at, arenas[i].data, arenas[i].bytes);
        at += arenas[i].bytes;
    }
    *bytes = at;
    return (float *)copy;
}

static float *weights(const fixture *f, int64_t *count)
{
    const mixt__params *p = f->trainer->inner->params;
    float *copy = malloc((size_t)p->total * sizeof *copy);
    memcpy(copy, mixt__params_weights(p), (size_t)p->total * sizeof *copy);
    *count = p->total;
    return copy;
}

/* ---- tests ---- */

static void overflow_changes_nothing(void **state)
{
    (void)state;
    fixture f = start(false, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp16", .batch = 32, .inject_overflow = 4,
                                          .schedule = "cosine", .total_steps = 20, .weight_decay = 0.1f));
    for (int i = 0; i < 3; i++)
        assert_false(step(&f).skipped);
    size_t before_bytes, after_bytes;
    float *before = snapshot(&f, &before_bytes);
    double scale = f.trainer->inner->control_copy.scale;
    mixt_step bad = step(&f);
    float *after = snapshot(&f, &after_bytes);
    assert_true(bad.skipped);
    assert_int_equal(bad.applied, 3);
    assert_non_null(bad.overflow_layer);
    assert_string_equal(bad.overflow_layer, "fc.weight"); // the backward pass starts there
    assert_int_equal(before_bytes, after_bytes);
    assert_memory_equal(before, after, before_bytes);
    assert_true((double)f.trainer->inner->control_copy.scale == scale / 2);
    mixt_step good = step(&f);
    assert_false(good.skipped);
    assert_int_equal(good.applied, 4);
    assert_true(isfinite(good.loss));
    free(before);
    free(after);
    mixt_close(f.context);
}

/** Passes that lead to no update leave the running statistics as they were: a step that fails, gradients that are made
 * by hand and discarded. An update keeps them. */
static void statistics_move_with_updates(void **state)
{
    (void)state;
    fixture f = start(false, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp16", .batch = 32, .accumulate = 2));
    static float input[64 * 28 * 28];
    int32_t labels[64] = {0};
    size_t bytes[4];
    float *seen[4];
    step(&f);
    for (int i = 0; i < 64 * 28 * 28; i++)
        input[i] = (float)(i % 7);
    seen[0] = snapshot(&f, &bytes[0]);
    labels[63] = 10; // a class that is not there, in the second pass
    assert_int_equal(mixt_trainer_step_on(f.trainer, input, labels, NULL), MIXT_ERROR_DATA);
    seen[1] = snapshot(&f, &bytes[1]);
    assert_int_equal(mixt_trainer_backward(f.trainer, input, labels, 1, NULL), MIXT_OK);
    seen[2] = snapshot(&f, &bytes[2]);
    assert_int_equal(mixt_trainer_discard(f.trainer), MIXT_OK);
    seen[3] = snapshot(&f, &bytes[3]);
    assert_memory_equal(seen[0], seen[1], bytes[0]);
    assert_memory_not_equal(seen[0], seen[2], bytes[0]);
    assert_memory_equal(seen[0], seen[3], bytes[0]);
    for (int i = 0; i < 4; i++)
        free(seen[i]);
    mixt_close(f.context);
}

/** A schedule counts applied updates: a skipped one does not move it. */
static void overflow_keeps_the_schedule(void **state)
{
    (void)state;
    double lr[2];
    for (int k = 0; k < 2; k++) {
        fixture f = start(false, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp16", .batch = 32,
                                              .inject_overflow = k ? 2 : 0, .schedule = "linear", .total_steps = 20));
        for (int i = 0; i < 3 + k; i++)
            lr[k] = step(&f).lr;
        mixt_close(f.context);
    }
    assert_true(lr[0] == lr[1]);
}

static void same_seed_same_bits(void **state)
{
    (void)state;
    const char *const precisions[] = {"fp32", "fp16", "bf16"};
    for (int model = 0; model < 2; model++)
        for (int p = 0; p < 3; p++) {
            float *first = NULL;
            for (int run = 0; run < 2; run++) {
                fixture f = start(model, MIXT_OPTIONS(mixt_trainer_options, .precision = precisions[p], .batch = 32,
                                                      .seed = 7, .settings.clip = 1));
                for (int i = 0; i < 6; i++)
                    step(&f);
                int64_t count;
                float *w = weights(&f, &count);
                if (first)
                    assert_memory_equal(first, w, (size_t)count * sizeof *w);
                if (run)
                    free(w);
                else
                    first = w;
                mixt_close(f.context);
            }
            free(first);
        }
}

/** Another policy is another plan on the same data, in the same order. */
static void policy_keeps_data_order(void **state)
{
    (void)state;
    double loss[2];
    for (int p = 0; p < 2; p++) {
        fixture f =
            start(true, MIXT_OPTIONS(mixt_trainer_options, .precision = p ? "bf16" : "fp32", .batch = 32, .seed = 7));
        for (int i = 0; i < 5; i++)
            loss[p] = step(&f).loss;
        mixt_close(f.context);
    }
    assert_true(fabs(loss[0] - loss[1]) <
                0.02 * loss[0]); // BF16 rounds at 2^-8; a different batch would differ by more
    assert_true(loss[0] != loss[1]);
}

static void steady_state_allocates_nothing(void **state)
{
    (void)state;
    for (int model = 0; model < 2; model++) {
        fixture f = start(model, MIXT_OPTIONS(mixt_trainer_options, .precision = "bf16", .batch = 16, .accumulate = 2,
                                              .settings.clip = 1));
        step(&f);
        step(&f);
        int64_t library = mixt__alloc_count(), heap = __atomic_load_n(&heap_calls, __ATOMIC_RELAXED);
        for (int i = 0; i < 10; i++)
            step(&f);
        assert_int_equal(mixt__alloc_count() - library, 0);
        assert_int_equal(__atomic_load_n(&heap_calls, __ATOMIC_RELAXED) - heap, 0);
        mixt_close(f.context);
    }
}

static void plan_is_what_is_allocated(void **state)
{
    (void)state;
    const char *const precisions[] = {"fp32", "fp16", "bf16"};
    for (int model = 0; model < 2; model++)
        for (int p = 0; p < 3; p++) {
            fixture f = start(model, MIXT_OPTIONS(mixt_trainer_options, .precision = precisions[p], .batch = 16));
            mixt_memory planned, after;
            assert_int_equal(mixt_trainer_compile(f.trainer, f.data), MIXT_OK);
            assert_int_equal(mixt_trainer_memory(f.trainer, &planned), MIXT_OK);
            assert_int_equal(planned.allocated, 0);
            assert_int_equal(planned.total, planned.masters + planned.copies + planned.gradients + planned.moments +
                                                planned.state + planned.activations + planned.workspace +
                                                planned.batches + planned.control);
            step(&f);
            assert_int_equal(mixt_trainer_memory(f.trainer, &after), MIXT_OK);
            assert_int_equal(after.total, planned.total);
            assert_int_equal(after.allocated, planned.total);
            mixt_close(f.context);
        }
}

static double largest_difference(const float *a, const float *b, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/** SGD makes the weights a linear picture of the gradients, so a bound on those carries over. */
static void fusion_keeps_the_result(void **state)
{
    (void)state;
    float *w[2];
    int64_t count = 0;
    for (int k = 0; k < 2; k++) {
        fixture f = start(true, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp32", .optimizer = "sgd", .lr = 0.1f,
                                             .batch = 16, .no_fusion = k));
        step(&f);
        w[k] = weights(&f, &count);
        mixt_close(f.context);
    }
    // one update of lr 0.1 with gradients below 1: FP32 rounding (2^-24) grown by the longest sum (16·16 rows of 256)
    assert_true(largest_difference(w[0], w[1], count) < 0.1 * 0x1p-24 * 4096);
    free(w[0]);
    free(w[1]);
}

static void accumulation_equals_a_larger_batch(void **state)
{
    (void)state;
    float *w[2];
    int64_t count = 0;
    for (int k = 0; k < 2; k++) {
        fixture f = start(true, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp32", .optimizer = "sgd", .lr = 0.1f,
                                             .batch = k ? 8 : 32, .accumulate = k ? 4 : 1));
        step(&f);
        w[k] = weights(&f, &count);
        mixt_close(f.context);
    }
    assert_true(largest_difference(w[0], w[1], count) < 0.1 * 0x1p-24 * 8192);
    free(w[0]);
    free(w[1]);
}

static void precision_changes_between_steps(void **state)
{
    (void)state;
    fixture f = start(true, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp16", .batch = 16));
    step(&f);
    int64_t count;
    float *before = weights(&f, &count);
    assert_int_equal(mixt_trainer_set_precision(f.trainer, "bf16"), MIXT_OK);
    float *after = weights(&f, &count);
    assert_memory_equal(before, after, (size_t)count * sizeof *before);
    mixt_step next = step(&f);
    assert_true(next.scale == 1.0 && !next.skipped && isfinite(next.loss));
    assert_int_equal(next.applied, 2);
    assert_int_equal(mixt_trainer_set_precision(f.trainer, "fp4"), MIXT_ERROR_FILE);
    assert_true(isfinite(step(&f).loss)); // the failed change left the trainer as it was
    free(before);
    free(after);
    mixt_close(f.context);
}

/** Between compile and the first step there are no values yet; and the caller's strings may be gone by then. */
static void precision_changes_before_the_first_step(void **state)
{
    (void)state;
    char optimizer[] = "momentum";
    fixture f =
        start(true, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp32", .optimizer = optimizer, .batch = 16));
    memset(optimizer, 'x', sizeof optimizer - 1);
    assert_int_equal(mixt_trainer_compile(f.trainer, f.data), MIXT_OK);
    assert_int_equal(mixt_trainer_set_precision(f.trainer, "bf16"), MIXT_OK);
    assert_true(isfinite(step(&f).loss));
    mixt_memory memory;
    assert_int_equal(mixt_trainer_memory(f.trainer, &memory), MIXT_OK);
    assert_true(memory.copies > 0 && memory.allocated == memory.total);
    mixt_close(f.context);
}

/** Samples of another length need another plan and larger buffers. */
static void evaluation_follows_the_data(void **state)
{
    (void)state;
    fixture f = start(true, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp32", .batch = 16));
    mixt_data *longer = mixt_data_new(f.context, "random:tokens", .seq = 64, .classes = 256, .samples = 256, .seed = 3);
    mixt_evaluation found;
    step(&f);
    assert_int_equal(mixt_trainer_evaluate(f.trainer, f.data, &found), MIXT_OK);
    assert_int_equal(found.count, 256 * 16);
    assert_int_equal(mixt_trainer_evaluate(f.trainer, longer, &found), MIXT_OK);
    assert_int_equal(found.count, 256 * 64);
    mixt_close(f.context);
}

/** A model that cannot fit is refused with figures, as often as it is tried, before the system is asked for memory. */
static void lack_of_memory_is_said(void **state)
{
    (void)state;
    fixture f = start(false, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp32", .batch = 1 << 24));
    float *batch = malloc(16);
    assert_int_equal(mixt_trainer_compile(f.trainer, f.data), MIXT_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mixt_trainer_step_on(f.trainer, batch, batch, NULL), MIXT_ERROR_MEMORY);
        assert_non_null(strstr(mixt_error_text(), "training needs "));
    }
    free(batch);
    mixt_close(f.context);
}

/** What failed is said, also by calls on what was never made. */
static void wrong_options_are_said(void **state)
{
    (void)state;
    fixture f = start(false, MIXT_OPTIONS(mixt_trainer_options, .batch = 32));
    mixt_model *model = mixt_model_new(f.context, small_net, MIXT_LOSS_CROSS_ENTROPY);
    assert_null(mixt_trainer_new(model, .lr = NAN));
    assert_non_null(strstr(mixt_error_text(), "lr nan"));
    assert_null(mixt_trainer_new(model, .momentum = 1));
    assert_non_null(strstr(mixt_error_text(), "momentum 1: must be from 0 to below 1"));
    assert_null(mixt_trainer_new(model, .batch = -1));
    assert_null(mixt_trainer_new(model, .optimizer = "sdg"));
    assert_null(mixt_trainer_new(NULL));
    assert_null(mixt_data_new(NULL, "digits:"));
    assert_null(mixt_model_new(NULL, small_net, MIXT_LOSS_CROSS_ENTROPY));
    assert_int_equal(mixt_trainer_step(NULL, f.data, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_trainer_step(f.trainer, NULL, NULL), MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_error(f.context), "lr nan")); // the first failure stays
    mixt_close(f.context);
}

/** One update by hand equals one update by mixt_trainer_step. */
static void by_hand_equals_whole_step(void **state)
{
    (void)state;
    float *w[2];
    int64_t count = 0;
    for (int k = 0; k < 2; k++) {
        fixture f = start(true, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp16", .batch = 16, .lr = 1e-3f,
                                             .settings.clip = k ? 0 : 0.5f));
        if (!k) {
            step(&f);
        } else {
            int32_t input[16 * 16], target[16 * 16];
            bool finite;
            assert_int_equal(mixt_data_batch(f.data, 16, 0, input, target), MIXT_OK);
            assert_int_equal(mixt_trainer_compile(f.trainer, f.data), MIXT_OK);
            assert_int_equal(mixt_trainer_backward(f.trainer, input, target, 65536, NULL), MIXT_OK);
            assert_int_equal(mixt_trainer_unscale(f.trainer, 65536, &finite), MIXT_OK);
            assert_true(finite);
            assert_int_equal(mixt_trainer_clip(f.trainer, 0.5f, NULL), MIXT_OK);
            assert_int_equal(mixt_trainer_apply(f.trainer, 1e-3f), MIXT_OK);
        }
        w[k] = weights(&f, &count);
        mixt_close(f.context);
    }
    assert_true(largest_difference(w[0], w[1], count) <=
                1e-3 * 1e-3); // AdamW's first update is lr·sign(g), wherever |g| >> eps
    free(w[0]);
    free(w[1]);
}

/** Gradients made by hand, discarded, refused or applied with a rate of 0, change nothing about the whole steps around
 *  them, except that updates count. */
static void by_hand_between_whole_steps(void **state)
{
    (void)state;
    enum { NEVER, DISCARDED, REFUSED, APPLIED, WAYS };
    mixt_step last[WAYS];
    for (int way = 0; way < WAYS; way++) {
        fixture f =
            start(true, MIXT_OPTIONS(mixt_trainer_options, .precision = "fp32", .batch = 16, .optimizer = "sgd"));
        int32_t input[16 * 16], target[16 * 16];
        assert_int_equal(mixt_data_batch(f.data, 16, 0, input, target), MIXT_OK);
        if (way == REFUSED)
            target[3] = 1 << 20;
        step(&f);
        for (int i = 0; way && i < 2; i++) {
            mixt_status status = mixt_trainer_backward(f.trainer, input, target, 1000, NULL);
            assert_int_equal(status, way == REFUSED ? MIXT_ERROR_DATA : MIXT_OK);
            assert_int_equal(way == APPLIED ? mixt_trainer_apply(f.trainer, 0) : mixt_trainer_discard(f.trainer),
                             MIXT_OK);
        }
        step(&f);
        last[way] = step(&f);
        mixt_close(f.context);
    }
    for (int way = DISCARDED; way < WAYS; way++) {
        assert_true(last[way].loss == last[NEVER].loss && last[way].grad_norm == last[NEVER].grad_norm);
        assert_int_equal(last[way].applied, way == APPLIED ? 5 : 3);
        assert_int_equal(last[way].step, way == APPLIED ? 5 : 3);
    }
}

static void weights_survive_a_file(void **state)
{
    (void)state;
    temp_folder_make();
    const char *path = temp_path("weights");
    fixture f = start(false, MIXT_OPTIONS(mixt_trainer_options, .precision = "bf16", .batch = 32, .seed = 1));
    step(&f);
    mixt_evaluation a, b;
    assert_int_equal(mixt_trainer_evaluate(f.trainer, f.data, &a), MIXT_OK);
    assert_int_equal(mixt_trainer_save(f.trainer, path), MIXT_OK);
    mixt_close(f.context);
    f = start(false, MIXT_OPTIONS(mixt_trainer_options, .precision = "bf16", .batch = 32, .seed = 2));
    assert_int_equal(mixt_trainer_compile(f.trainer, f.data), MIXT_OK);
    assert_int_equal(mixt_trainer_load(f.trainer, path), MIXT_OK);
    assert_int_equal(mixt_trainer_evaluate(f.trainer, f.data, &b), MIXT_OK);
    assert_true(a.loss == b.loss && a.accuracy == b.accuracy && a.count == b.count);
    mixt_close(f.context);
    temp_folder_remove();
}

static void training_learns(void **state)
{
    (void)state;
    fixture f = start(false, MIXT_OPTIONS(mixt_trainer_options, .precision = "bf16", .batch = 32, .lr = 3e-3f));
    double first = step(&f).loss, last = 0;
    for (int i = 0; i < 100; i++)
        last = step(&f).loss;
    assert_true(last < 0.5 * first);
    mixt_close(f.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflow_changes_nothing),
        cmocka_unit_test(statistics_move_with_updates),
        cmocka_unit_test(overflow_keeps_the_schedule),
        cmocka_unit_test(same_seed_same_bits),
        cmocka_unit_test(policy_keeps_data_order),
        cmocka_unit_test(steady_state_allocates_nothing),
        cmocka_unit_test(plan_is_what_is_allocated),
        cmocka_unit_test(fusion_keeps_the_result),
        cmocka_unit_test(accumulation_equals_a_larger_batch),
        cmocka_unit_test(precision_changes_between_steps),
        cmocka_unit_test(by_hand_equals_whole_step),
        cmocka_unit_test(by_hand_between_whole_steps),
        cmocka_unit_test(weights_survive_a_file),
        cmocka_unit_test(training_learns),
        cmocka_unit_test(precision_changes_before_the_first_step),
        cmocka_unit_test(evaluation_follows_the_data),
        cmocka_unit_test(lack_of_memory_is_said),
        cmocka_unit_test(wrong_options_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
