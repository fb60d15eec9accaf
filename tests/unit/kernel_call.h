/* Calls to single kernels for unit tests: tensors with guard bytes, poisoned outputs, workspace of the exact size. */
#ifndef MIXT_TESTS_KERNEL_CALL_H
#define MIXT_TESTS_KERNEL_CALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

enum { GUARD = 64, MAX_TENSORS = 8 };

static const mixt_dtype kernel_dtypes[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};

/** A row-major tensor of the first `rank` dims, in memory of its own, filled with bytes that read as NaN. */
static inline mixt__tensor tensor_new(mixt_dtype dtype, int rank, const int64_t *dims)
{
    mixt__tensor t = {.dtype = dtype, .shape = mixt__shape_of(rank, dims), .contiguous = true};
    mixt__shape_strides(&t.shape, t.strides);
    size_t bytes = (size_t)mixt__shape_count(&t.shape) * mixt_dtype_size(dtype);
    char *block = malloc(bytes + 2 * GUARD);
    assert_non_null(block);
    memset(block, 0xff, bytes + 2 * GUARD);
    t.data = block + GUARD;
    return t;
}

#define TENSOR(dtype, ...)                                                                                             \
    tensor_new(dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static inline void tensor_free(mixt__tensor *t)
{
    const unsigned char *block = (const unsigned char *)t->data - GUARD;
    size_t bytes = (size_t)mixt__shape_count(&t->shape) * mixt_dtype_size(t->dtype);
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(block[i], 0xff);
        assert_int_equal(block[GUARD + bytes + i], 0xff);
    }
    free((char *)t->data - GUARD);
}

static inline uint32_t test_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/** Values in [-1, 1) · size, rounded to the tensor's format. */
static inline void tensor_fill(mixt__tensor *t, uint32_t *seed, float size)
{
    for (int64_t i = 0; i < mixt__shape_count(&t->shape); i++)
        mixt__store(t->data, t->dtype, i, ((float)test_random(seed) / 8388608.0f - 1) * size);
}

static inline double tensor_at(const mixt__tensor *t, int64_t i)
{
    return (double)mixt__load(t->data, t->dtype, i);
}

/** False, with a line, where this machine lacks what the candidate needs. */
static inline bool kernel_can_run(const mixt__kernel *kernel, const mixt__call *call)
{
    const char *reason = NULL;
    if (!kernel->supports || kernel->supports(call, &reason))
        return true;
    printf("skipped: %s %s\n", kernel->name, reason);
    return false;
}

/** Prepares and runs one candidate. */
static inline void kernel_run(const mixt__kernel *kernel, mixt__call *call)
{
    mixt__arena arena = {0};
    call->workspace_bytes = 0;
    call->state = NULL;
    if (kernel->prepare)
        assert_int_equal(kernel->prepare(call, &arena), MIXT_OK);
    char *block = aligned_alloc(64, (call->workspace_bytes + 127) / 64 * 64 + 64);
    assert_non_null(block);
    memset(block, 0xff, call->workspace_bytes + 64);
    call->workspace = block;
    assert_int_equal(kernel->run(call), MIXT_OK);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal((unsigned char)block[call->workspace_bytes + i], 0xff);
    free(block);
    if (kernel->release)
        kernel->release(call);
    mixt__arena_free(&arena);
}

/** Largest |got - want| over the tensor, as a multiple of the unit roundoff times `size`, the magnitude that rounds. */
static inline double tensor_error(const mixt__tensor *got, const double *want, double size)
{
    double worst = 0;
    for (int64_t i = 0; i < mixt__shape_count(&got->shape); i++) {
        double e = fabs(tensor_at(got, i) - want[i]);
        if (!(e <= worst))
            worst = e;
    }
    return worst / (size * mixt__dtype_roundoff(got->dtype));
}

#endif
