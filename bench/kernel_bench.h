/* What the kernel benchmarks share: tensors with some values, and the best time of a candidate. */
#ifndef MIXT_BENCH_KERNEL_BENCH_H
#define MIXT_BENCH_KERNEL_BENCH_H

#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>
#include <stdio.h>

static inline mixt__tensor tensor_new(mixt_dtype dtype, int rank, const int64_t *dims)
{
    mixt__tensor t = {.dtype = dtype, .shape = mixt__shape_of(rank, dims), .contiguous = true};
    mixt__shape_strides(&t.shape, t.strides);
    int64_t count = mixt__shape_count(&t.shape);
    t.data = mixt__alloc((size_t)count * mixt_dtype_size(dtype));
    for (int64_t i = 0; t.data && i < count; i++)
        mixt__store(t.data, dtype, i, sinf((float)(i % 9973)));
    return t;
}

#define TENSOR(dtype, ...)                                                                                             \
    tensor_new(dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/** Best seconds of a candidate over about half a second; 0 when it cannot run here. */
static inline double best_time(const mixt__kernel *kernel, mixt__call *call)
{
    mixt__arena arena = {0};
    const char *reason;
    double best = INFINITY, end = mixt__time_now() + 0.5;
    call->workspace_bytes = 0;
    if ((kernel->supports && !kernel->supports(call, &reason)) ||
        (kernel->prepare && kernel->prepare(call, &arena) != MIXT_OK))
        return 0;
    call->workspace = mixt__alloc(call->workspace_bytes + 64);
    do {
        double start = mixt__time_now();
        kernel->run(call);
        double taken = mixt__time_now() - start;
        best = taken < best ? taken : best;
    } while (mixt__time_now() < end);
    mixt__free(call->workspace);
    mixt__arena_free(&arena);
    return best;
}

#endif
