/* The CUDA backend below its kernels: memory, copies, staging, recordings, time marks, what it says about itself.
 *
 * Needs a GPU: without one every test here fails, since a test that cannot run did not pass.
 */
#include "backend/backend.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static mixt__device *gpu;

enum { BYTES = 1 << 20 };

static void check(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

static int open_gpu(void **state)
{
    (void)state;
    const mixt__backend *cuda;
    if (mixt__backend_cuda(&cuda) == MIXT_OK && cuda->open(0, 0, &gpu) == MIXT_OK)
        return 0;
    print_error("%s\n", mixt_error_text());
    return -1;
}

static void fill(unsigned char *bytes, unsigned seed)
{
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(seed = seed * 1664525u + 1013904223u, seed >> 24);
}

static void describes_itself(void **state)
{
    mixt_gpu_info d;
    (void)state;
    check(mixt__device_describe(gpu, &d));
    print_message("%s, %d multiprocessors, %.0f TFLOP/s fp16, %.2f TB/s, %s, %s\n", d.name, d.multiprocessors,
                  d.flops[MIXT_DTYPE_FP16] / 1e12, d.bytes_s / 1e12, d.driver, d.libraries);
    assert_true(d.name[0] && d.multiprocessors > 0 && d.capability >= 70 && d.tensor_cores >= 1);
    assert_true(d.memory_free <= d.memory_bytes && d.memory_bytes > (size_t)1 << 30);
    assert_true(d.clock > 1e8 && d.clock < 1e10 && d.bytes_s > 1e10);
    assert_true(d.flops[MIXT_DTYPE_FP16] > d.flops[MIXT_DTYPE_FP32] && d.flops[MIXT_DTYPE_FP32] > 1e11);
    assert_int_equal(d.flops[MIXT_DTYPE_BF16] > 0, d.capability >= 80);
    assert_int_equal(d.flops[MIXT_DTYPE_TF32] > 0, d.capability >= 80);
    assert_int_equal(d.flops[MIXT_DTYPE_FP8_E4M3] > 0, d.capability >= 89);
    assert_true(isnan(d.power_limit) || d.power_limit > 1);
    assert_non_null(strstr(d.libraries, "cuDNN 9."));
}

static void counts_memory_to_the_byte(void **state)
{
    (void)state;
    size_t before = mixt__device_allocated(gpu);
    void *a = mixt__device_alloc(gpu, 1000), *b = mixt__device_alloc(gpu, 0), *c = mixt__device_alloc(gpu, BYTES);
    assert_true(a && b && c);
    assert_int_equal(mixt__device_allocated(gpu) - before, 1000 + BYTES);
    assert_int_equal((uintptr_t)a % 64, 0);
    mixt__device_free(gpu, a);
    mixt__device_free(gpu, b);
    assert_int_equal(mixt__device_allocated(gpu) - before, BYTES);
    mixt__device_free(gpu, c);
    mixt__device_free(gpu, NULL);
    assert_int_equal(mixt__device_allocated(gpu), before);
}

/** Asking for more than there is fails without spoiling anything. */
static void outlives_a_full_memory(void **state)
{
    unsigned char sent[64] = {1, 2, 3}, back[64] = {0};
    (void)state;
    size_t before = mixt__device_allocated(gpu);
    assert_null(mixt__device_alloc(gpu, (size_t)1 << 60));
    assert_int_equal(mixt__device_allocated(gpu), before);
    void *block = mixt__device_alloc(gpu, sizeof sent);
    assert_non_null(block);
    check(mixt__device_upload(gpu, block, sent, sizeof sent));
    check(mixt__device_download(gpu, back, block, sizeof back));
    check(mixt__device_synchronize(gpu));
    assert_memory_equal(sent, back, sizeof sent);
    mixt__device_free(gpu, block);
}

static void copies_both_ways(void **state)
{
    (void)state;
    unsigned char *sent = mixt__device_alloc_host(gpu, BYTES), *back = mixt__device_alloc_host(gpu, BYTES);
    void *a = mixt__device_alloc(gpu, BYTES), *b = mixt__device_alloc(gpu, BYTES);
    assert_true(sent && back && a && b);
    fill(sent, 1);
    check(mixt__device_copy(gpu, a, sent, BYTES));
    check(mixt__device_copy(gpu, b, a, BYTES));
    check(mixt__device_copy(gpu, back, b, BYTES));
    check(mixt__device_synchronize(gpu));
    assert_memory_equal(sent, back, BYTES);
    check(mixt__device_zero(gpu, (char *)b + 3, 5));
    check(mixt__device_download(gpu, back, b, BYTES));
    memset(sent + 3, 0, 5);
    assert_memory_equal(sent, back, BYTES);
    mixt__device_free(gpu, a);
    mixt__device_free(gpu, b);
    mixt__device_free_host(gpu, sent);
    mixt__device_free_host(gpu, back);
}

/** Batches through two slots in turn: each reader sees its own batch, however late it runs. */
static void stages_beside_the_kernels(void **state)
{
    enum { BATCHES = 16 };
    (void)state;
    unsigned char *host = mixt__device_alloc_host(gpu, BYTES), *expected = malloc(BYTES), *back = malloc(BYTES);
    char *slots[2] = {mixt__device_alloc(gpu, BYTES), mixt__device_alloc(gpu, BYTES)},
         *kept = mixt__device_alloc(gpu, (size_t)BATCHES * BYTES);
    assert_true(host && expected && back && slots[0] && slots[1] && kept);
    for (int i = 0; i < BATCHES; i++) {
        int slot = i % 2;
        fill(host, (unsigned)i);
        mixt__piece pieces[2] = {{slots[slot], host, BYTES / 4},
                                 {slots[slot] + BYTES / 4, host + BYTES / 4, BYTES - BYTES / 4}};
        check(mixt__device_stage(gpu, slot, pieces, 2, true)); // host may change again
        for (int again = 0; again < 20; again++)               // a step that takes longer than the copy
            check(mixt__device_copy(gpu, kept + (size_t)i * BYTES, slots[slot], BYTES));
        check(mixt__device_fence(gpu, slot));
    }
    for (int i = 0; i < BATCHES; i++) {
        fill(expected, (unsigned)i);
        check(mixt__device_download(gpu, back, kept + (size_t)i * BYTES, BYTES));
        assert_memory_equal(expected, back, BYTES);
    }
    mixt__device_free(gpu, slots[0]);
    mixt__device_free(gpu, slots[1]);
    mixt__device_free(gpu, kept);
    mixt__device_free_host(gpu, host);
    free(expected);
    free(back);
}

typedef struct chain {
    char *block;
    int issued;
} chain;

/** Shifts the block's bytes by one place, as a step that depends on the one before. */
static mixt_status shift(void *argument)
{
    chain *c = argument;
    c->issued++;
    mixt_status status = mixt__device_copy(gpu, c->block + 512, c->block, 256);
    return status == MIXT_OK ? mixt__device_copy(gpu, c->block + 1, c->block + 512, 255) : status;
}

static mixt_status refuse(void *argument)
{
    (void)argument;
    return MIXT_ERROR_UNSUPPORTED;
}

static void replays_what_it_recorded(void **state)
{
    chain c = {.block = mixt__device_alloc(gpu, 1024)};
    mixt__recording *recording = NULL;
    unsigned char back[1024];
    (void)state;
    check(mixt__device_zero(gpu, c.block, 1024));
    check(mixt__device_zero(gpu, c.block, 1));
    unsigned char one = 7;
    check(mixt__device_upload(gpu, c.block, &one, 1));
    check(mixt__device_record(gpu, shift, &c, &recording));
    check(mixt__device_download(gpu, back, c.block, 1024));
    assert_int_equal(back[1], 0); // recording runs nothing
    for (int i = 0; i < 5; i++)
        check(mixt__device_replay(gpu, recording));
    check(mixt__device_download(gpu, back, c.block, 1024));
    assert_int_equal(c.issued, 1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(back[i], i <= 5 ? 7 : 0);
    mixt__device_forget(gpu, recording);
    assert_int_equal(mixt__device_record(gpu, refuse, NULL, &recording), MIXT_ERROR_UNSUPPORTED);
    assert_null(recording);
    check(shift(&c)); // the stream is usable again
    check(mixt__device_synchronize(gpu));
    mixt__device_free(gpu, c.block);
}

static void times_what_runs(void **state)
{
    double first, second, both;
    (void)state;
    char *a = mixt__device_alloc(gpu, 64 * BYTES), *b = mixt__device_alloc(gpu, 64 * BYTES);
    assert_true(a && b);
    for (int round = 0; round < 2; round++) { // the first warms up
        check(mixt__device_mark(gpu, 0));
        check(mixt__device_copy(gpu, a, b, BYTES));
        check(mixt__device_mark(gpu, 1));
        for (int i = 0; i < 8; i++)
            check(mixt__device_copy(gpu, a, b, 64 * BYTES));
        check(mixt__device_mark(gpu, 2));
        check(mixt__device_between(gpu, 0, 1, &first));
        check(mixt__device_between(gpu, 1, 2, &second));
        check(mixt__device_between(gpu, 0, 2, &both));
    }
    assert_true(first > 0 && second > first && fabs(first + second - both) < 1e-5);
    mixt__device_free(gpu, a);
    mixt__device_free(gpu, b);
}

static void energy_never_falls(void **state)
{
    (void)state;
    double last = mixt__device_energy(gpu);
    if (isnan(last)) {
        print_message("this GPU does not count its energy\n");
        return;
    }
    char *a = mixt__device_alloc(gpu, 256 * BYTES), *b = mixt__device_alloc(gpu, 256 * BYTES);
    assert_true(a && b);
    double begin = last;
    for (int i = 0; i < 50; i++) {
        for (int k = 0; k < 50; k++)
            check(mixt__device_copy(gpu, a, b, 256 * BYTES));
        check(mixt__device_synchronize(gpu));
        double now = mixt__device_energy(gpu);
        assert_true(now >= last);
        last = now;
    }
    print_message("%.1f J for 50 x 50 copies of 256 MiB\n", last - begin);
    assert_true(last > begin);
    mixt__device_free(gpu, a);
    mixt__device_free(gpu, b);
}

/** Copies keep the memory busy and no Tensor Core. */
static void counts_what_units_do(void **state)
{
    mixt__device_activity seen;
    (void)state;
    if (!gpu->backend->activity(gpu, NULL)) {
        print_message("this GPU does not count what its units do\n");
        return;
    }
    char *a = mixt__device_alloc(gpu, 256 * BYTES), *b = mixt__device_alloc(gpu, 256 * BYTES);
    assert_true(a && b);
    for (int i = 0; i < 2000; i++)
        check(mixt__device_copy(gpu, a, b, 256 * BYTES));
    check(mixt__device_synchronize(gpu));
    assert_true(gpu->backend->activity(gpu, &seen));
    print_message("copies: multiprocessors %.2f, Tensor Cores %.2f, memory %.2f\n", seen.multiprocessors,
                  seen.tensor_cores, seen.memory);
    assert_true(seen.memory > 0.2 && seen.memory <= 1.01 && seen.tensor_cores < 0.05);
    mixt__device_free(gpu, a);
    mixt__device_free(gpu, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_itself),          cmocka_unit_test(counts_memory_to_the_byte),
        cmocka_unit_test(outlives_a_full_memory),    cmocka_unit_test(copies_both_ways),
        cmocka_unit_test(stages_beside_the_kernels), cmocka_unit_test(replays_what_it_recorded),
        cmocka_unit_test(times_what_runs),           cmocka_unit_test(energy_never_falls),
        cmocka_unit_test(counts_what_units_do),
    };
    return cmocka_run_group_tests(tests, open_gpu, NULL);
}
