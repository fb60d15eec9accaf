/* The prefetch threads: the same batches as without them, errors that arrive with their text, and stopping at any
 * moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/threads.h"
#include "data/data.h"
#include "data/prefetch.h"
#include "mixt/num.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 16, PIXELS = 784 };

static int no_leak(void **state)
{
    (void)state;
    return mixt__alloc_bytes() == 0 ? 0 : -1;
}

static mixt_data *open_digits(int64_t samples)
{
    mixt_data *data;
    assert_int_equal(mixt_data_open("digits:", &data, .samples = samples, .seed = 9), MIXT_OK);
    return data;
}

static void test_training_batches_equal_direct_ones(void **state)
{
    (void)state;
    mixt_data *data = open_digits(100);
    static float input[BATCH * PIXELS];
    int32_t target[BATCH];
    for (int depth = 1; depth <= 4; depth++) {
        mixt__prefetch *prefetch;
        const mixt__batch *batch;
        assert_int_equal(mixt__prefetch_start(data, BATCH, depth, 5, NULL, &prefetch), MIXT_OK);
        int64_t before = mixt__alloc_count();
        for (int64_t number = 5; number < 30; number++) {
            assert_int_equal(mixt__prefetch_take(prefetch, &batch), MIXT_OK);
            assert_int_equal(batch->number, number);
            assert_int_equal(mixt_data_batch(data, BATCH, number, input, target), MIXT_OK);
            assert_memory_equal(batch->input, input, sizeof input);
            assert_memory_equal(batch->target, target, sizeof target);
            assert_int_equal((uintptr_t)batch->input % 64 + (uintptr_t)batch->target % 64, 0);
            mixt__prefetch_release(prefetch);
        }
        assert_int_equal(mixt__alloc_count(), before); // nothing is allocated after the start
        mixt__prefetch_stop(prefetch);
    }
    mixt_data_close(data);
}

/** Augmented batches: the same bits from any number of threads, from the start and from the middle. */
static void test_threads_do_not_change_batches(void **state)
{
    (void)state;
    static float input[BATCH * PIXELS];
    int32_t target[BATCH];
    for (int threads = 1; threads <= 6; threads++) {
        mixt_data *data;
        mixt__prefetch *prefetch;
        const mixt__batch *batch;
        assert_int_equal(
            mixt_data_open("digits:", &data, .samples = 100, .seed = 9, .pad = 3, .flip = true, .threads = threads),
            MIXT_OK);
        for (int64_t first = 0; first < 12; first += 7) {
            assert_int_equal(mixt__prefetch_start(data, BATCH, 1 + threads % 3, first, NULL, &prefetch), MIXT_OK);
            assert_int_equal(mixt__prefetch_threads(prefetch), threads);
            for (int64_t number = first; number < first + 15; number++) {
                assert_int_equal(mixt__prefetch_take(prefetch, &batch), MIXT_OK);
                assert_int_equal(batch->number, number);
                assert_int_equal(mixt_data_batch(data, BATCH, number, input, target), MIXT_OK);
                assert_memory_equal(batch->input, input, sizeof input);
                assert_memory_equal(batch->target, target, sizeof target);
                mixt__prefetch_release(prefetch);
            }
            mixt__prefetch_stop(prefetch);
        }
        mixt_data_close(data);
    }
}

/** Rounded inputs are those of the same batch, rounded; targets stay. */
static void test_inputs_are_rounded(void **state)
{
    (void)state;
    static const mixt_dtype formats[] = {MIXT_DTYPE_BF16, MIXT_DTYPE_FP16};
    static float input[BATCH * PIXELS];
    static uint16_t expected[BATCH * PIXELS];
    int32_t target[BATCH];
    for (int run = 0; run < 6; run++) {
        mixt_data *data;
        mixt__prefetch *prefetch;
        const mixt__batch *batch;
        mixt__prefetch_form form = {.input = formats[run % 2], .parts = 1};
        assert_int_equal(mixt_data_open("digits:", &data, .samples = 100, .seed = 9, .pad = 3, .threads = run),
                         MIXT_OK);
        assert_int_equal(mixt__prefetch_start(data, BATCH, 3, 0, &form, &prefetch), MIXT_OK);
        int64_t before = mixt__alloc_count();
        for (int64_t number = 0; number < 15; number++) {
            assert_int_equal(mixt__prefetch_take(prefetch, &batch), MIXT_OK);
            assert_int_equal(mixt_data_batch(data, BATCH, number, input, target), MIXT_OK);
            assert_int_equal(mixt_convert(expected, form.input, input, MIXT_DTYPE_FP32, BATCH * PIXELS, NULL), MIXT_OK);
            assert_memory_equal(batch->input, expected, sizeof expected);
            assert_memory_equal(batch->target, target, sizeof target);
            mixt__prefetch_release(prefetch);
        }
        assert_int_equal(mixt__alloc_count(), before);
        mixt__prefetch_stop(prefetch);
        mixt_data_close(data);
    }
}

/** An owner that closes the set first leaves it to the threads. */
static void test_closed_data_is_read_on(void **state)
{
    (void)state;
    mixt_data *data = open_digits(100);
    mixt__prefetch *prefetch;
    const mixt__batch *batch;
    assert_int_equal(mixt__prefetch_start(data, BATCH, 2, 0, NULL, &prefetch), MIXT_OK);
    mixt_data_close(data);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(mixt__prefetch_take(prefetch, &batch), MIXT_OK);
        mixt__prefetch_release(prefetch);
    }
    mixt__prefetch_stop(prefetch);
}

static void test_held_buffers_stay_untouched(void **state)
{
    (void)state;
    mixt_data *data = open_digits(100);
    mixt__prefetch *prefetch;
    const mixt__batch *held[3], *more;
    static float input[BATCH * PIXELS];
    int32_t target[BATCH];
    assert_int_equal(mixt__prefetch_start(data, BATCH, 3, 0, NULL, &prefetch), MIXT_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mixt__prefetch_take(prefetch, &held[i]), MIXT_OK);
    assert_int_equal(mixt__prefetch_take(prefetch, &more), MIXT_ERROR_STATE); // it would wait for ever
    assert_non_null(strstr(mixt_error_text(), "release"));
    usleep(2000);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mixt_data_batch(data, BATCH, i, input, target), MIXT_OK);
        assert_memory_equal(held[i]->input, input, sizeof input);
    }
    mixt__prefetch_release(prefetch);
    assert_int_equal(mixt__prefetch_take(prefetch, &more), MIXT_OK);
    assert_int_equal(more->number, 3);
    mixt__prefetch_stop(prefetch);
    mixt_data_close(data);
}

static const mixt_data_array pair[] = {{.name = "input", .dtype = MIXT_DTYPE_FP32, .elements = 1},
                                       {.name = "target", .target = true, .dtype = MIXT_DTYPE_INT32, .elements = 1}};

/** A kind whose sample 6 cannot be read. */
static mixt_status fragile_sample(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    (void)data;
    (void)epoch;
    if (index == 6)
        return mixt__fail(MIXT_ERROR_FILE, "fragile: sample 6 is gone");
    *(float *)input = (float)index;
    *(int32_t *)target = 0;
    return MIXT_OK;
}

static void test_errors_arrive_with_their_text(void **state)
{
    (void)state;
    static const mixt__data_kind fragile = {.name = "fragile", .sample = fragile_sample};
    mixt_data data = {.kind = &fragile,
                      .path = "x",
                      .options = {.in_order = true},
                      .info = {.kind = "fragile",
                               .split = "train",
                               .samples = 12,
                               .input_dtype = MIXT_DTYPE_FP32,
                               .input_elements = 1,
                               .target_elements = 1,
                               .array_count = 2,
                               .arrays = pair}};
    for (int run = 0; run < 8; run++) {
        mixt__prefetch *prefetch;
        const mixt__batch *batch;
        data.options.threads = run / 2;
        assert_int_equal(mixt__prefetch_start(&data, 2, 4, 0, NULL, &prefetch), MIXT_OK);
        for (int i = 0; i < 3; i++) { // the batches before it are still good
            assert_int_equal(mixt__prefetch_take(prefetch, &batch), MIXT_OK);
            assert_true(*(float *)batch->input == (float)(2 * i));
            mixt__prefetch_release(prefetch);
        }
        mixt__error_set("");
        for (int again = 0; again < 2; again++) {
            assert_int_equal(mixt__prefetch_take(prefetch, &batch), MIXT_ERROR_FILE);
            assert_string_equal(mixt_error_text(), "fragile: sample 6 is gone");
        }
        mixt__prefetch_stop(prefetch);
    }
}

/** A kind that takes its time. */
static mixt_status slow_sample(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    (void)data;
    (void)epoch;
    usleep(500);
    *(float *)input = (float)index;
    *(int32_t *)target = 0;
    return MIXT_OK;
}

static void test_more_threads_join_a_slow_loader(void **state)
{
    (void)state;
    static const mixt__data_kind slow = {.name = "slow", .sample = slow_sample};
    mixt_data data = {.kind = &slow,
                      .path = "x",
                      .options = {.in_order = true},
                      .info = {.kind = "slow",
                               .split = "train",
                               .samples = 12,
                               .input_dtype = MIXT_DTYPE_FP32,
                               .input_elements = 1,
                               .target_elements = 1,
                               .array_count = 2,
                               .arrays = pair}};
    mixt__threads_set(4);
    for (int threads = 0; threads < 3; threads++) { // 0: as many as it takes
        mixt__prefetch *prefetch;
        const mixt__batch *batch;
        data.options.threads = threads;
        assert_int_equal(mixt__prefetch_start(&data, 4, 3, 0, NULL, &prefetch), MIXT_OK);
        for (int i = 0; i < 30; i++) {
            assert_int_equal(mixt__prefetch_take(prefetch, &batch), MIXT_OK);
            for (int k = 0; k < 4; k++)
                assert_true(((float *)batch->input)[k] == (float)(i % 3 * 4 + k));
            mixt__prefetch_release(prefetch);
        }
        int count = mixt__prefetch_threads(prefetch);
        if (threads)
            assert_int_equal(count, threads);
        else
            assert_in_range(count, 2, 4);
        mixt__prefetch_stop(prefetch);
    }
    mixt__threads_set(0);
}

static void test_wrong_arguments(void **state)
{
    (void)state;
    mixt_data *data = open_digits(10);
    mixt__prefetch *prefetch;
    assert_int_equal(mixt__prefetch_start(data, 0, 2, 0, NULL, &prefetch), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt__prefetch_start(data, 4, 0, 0, NULL, &prefetch), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt__prefetch_start(data, 4, 2, -1, NULL, &prefetch), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt__prefetch_start(data, 11, 2, 0, NULL, &prefetch), MIXT_ERROR_ARGUMENT);
    assert_null(prefetch);
    mixt__prefetch_stop(NULL);
    mixt_data_close(data);
}

/** Start, take a few, hold or release them, wait a little, stop: 300 times with fixed seeds. */
static void test_stop_at_any_moment(void **state)
{
    (void)state;
    mixt_data *data = open_digits(64);
    for (uint64_t seed = 0; seed < 300; seed++) {
        mixt__rng rng = mixt__rng_start(mixt__rng_key(seed, 0, 0));
        mixt__prefetch *prefetch;
        const mixt__batch *batch;
        int depth = 1 + (int)mixt__rng_below(&rng, 4), takes = (int)mixt__rng_below(&rng, 6), held = 0;
        data->options.threads = (int)mixt__rng_below(&rng, 5);
        assert_int_equal(mixt__prefetch_start(data, BATCH, depth, 0, NULL, &prefetch), MIXT_OK);
        for (int i = 0; i < takes && held < depth; i++) {
            if (mixt__prefetch_take(prefetch, &batch) != MIXT_OK)
                fail_msg("seed %d: %s", (int)seed, mixt_error_text());
            held++;
            if (mixt__rng_below(&rng, 2)) {
                mixt__prefetch_release(prefetch);
                held--;
            }
        }
        usleep((useconds_t)mixt__rng_below(&rng, 300));
        mixt__prefetch_stop(prefetch);
    }
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_training_batches_equal_direct_ones, no_leak),
        cmocka_unit_test_teardown(test_threads_do_not_change_batches, no_leak),
        cmocka_unit_test_teardown(test_inputs_are_rounded, no_leak),
        cmocka_unit_test_teardown(test_closed_data_is_read_on, no_leak),
        cmocka_unit_test_teardown(test_held_buffers_stay_untouched, no_leak),
        cmocka_unit_test_teardown(test_errors_arrive_with_their_text, no_leak),
        cmocka_unit_test_teardown(test_more_threads_join_a_slow_loader, no_leak),
        cmocka_unit_test_teardown(test_wrong_arguments, no_leak),
        cmocka_unit_test_teardown(test_stop_at_any_moment, no_leak),
    };
    return cmocka_run_group_tests_name("prefetch", tests, NULL, NULL);
}
