/* The LSTM recurrence that goes on from a state, compiled for AVX2 and AVX-512.
 *
 * A step reads weight_hh once, row by row, in its own format: with few sequences that is all its cost, and nothing is
 * gained by packing. Threads split the units; each makes its four gates and its cell. The state before step t is row
 * t - 1 of dst, so that nobody overwrites what others still read.
 */
#include "backend/cpu/attention/cached.h"
#include "backend/cpu/core/maths.h"
#include "backend/cpu/core/vecmath.h"
#include "backend/cpu/recurrent/lstm.h"
#include "base/threads.h"

typedef struct task {
    const mixt__call *call;
    mixt__lstm_sizes s;
    int64_t b, t;
    float *state; // before this step, in FP32, padded with zeros to whole vectors
} task;

enum { GRAIN = 8 }; // units a thread takes at least

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    int64_t hidden = mixt__lstm_sizes_of(&call->in[0]).hidden;
    call->workspace_bytes = (size_t)(hidden + VEC_LANES) * sizeof(float);
    return MIXT_OK;
}

/** Rows j, j + H, j + 2H, j + 3H of the weight times the state. */
VEC_INLINE void products(mixt_dtype dtype, const task *k, int64_t j, float *result)
{
    const void *weight = k->call->in[1].data;
    int64_t n = k->s.hidden, i = 0;
    vec sum[4] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        vec h = vec_load(k->state + i);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            sum[g] = vec_fma(vec_get(weight, dtype, (g * n + j) * n + i), h, sum[g]);
    }
    for (int g = 0; g < 4; g++) {
        if (i < n)
            sum[g] = vec_fma(vec_get_part(weight, dtype, (g * n + j) * n + i, n - i), vec_load(k->state + i), sum[g]);
        result[g] = vec_sum(sum[g]);
    }
}

VEC_INLINE void units(mixt_dtype dtype, const task *k, int64_t begin, int64_t end)
{
    const mixt__call *call = k->call;
    int64_t n = k->s.hidden, at = k->b * k->s.steps + k->t;
    float *cell = (float *)call->in[3].data + k->b * n;
    for (int64_t j = begin; j < end; j++) {
        float gate[4];
        products(dtype, k, j, gate);
        for (int g = 0; g < 4; g++) {
            gate[g] += mixt__load(call->in[0].data, dtype, (at * 4 + g) * n + j);
            gate[g] = g == 2 ? mixt__maths_tanh(gate[g]) : mixt__maths_sigmoid(gate[g]);
        }
        cell[j] = fmaf(gate[1], cell[j], gate[0] * gate[2]);
        mixt__store(call->out[0].data, dtype, at * n + j, gate[3] * mixt__maths_tanh(cell[j]));
    }
}

static void range(void *argument, int64_t begin, int64_t end, int thread)
{
    const task *k = argument;
    (void)thread;
    switch (k->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        units(MIXT_DTYPE_FP32, k, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        units(MIXT_DTYPE_BF16, k, begin, end);
        break;
    default:
        units(MIXT_DTYPE_FP16, k, begin, end);
    }
}

static mixt_status run(const mixt__call *call)
{
    task k = {.call = call, .s = mixt__lstm_sizes_of(&call->in[0]), .state = call->workspace};
    mixt_dtype dtype = call->in[0].dtype;
    int64_t n = k.s.hidden;
    size_t row = (size_t)n * mixt_dtype_size(dtype);
    memset(k.state + n, 0, VEC_LANES * sizeof *k.state);
    for (k.b = 0; k.b < k.s.batch; k.b++) {
        mixt__widen(dtype)(k.state, (const char *)call->in[2].data + (size_t)k.b * row, n);
        for (k.t = 0; k.t < k.s.steps; k.t++) {
            const char *after = (const char *)call->out[0].data + (size_t)(k.b * k.s.steps + k.t) * row;
            mixt__parallel(n, GRAIN, range, &k);
            mixt__widen(dtype)(k.state, after, n);
            if (k.t + 1 == k.s.steps)
                memcpy((char *)call->in[2].data + (size_t)k.b * row, after, row);
        }
    }
    return MIXT_OK;
}

const mixt__kernel MIXT_AT(mixt__lstm_cached) = {
    .name = MIXT_AT_NAME, .supports = vec_supports, .prepare = prepare, .run = run};
