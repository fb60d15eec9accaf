/* The recurrences that go on from a state, compiled for AVX2 and AVX-512.
 *
 * A step reads weight_hh once, row by row, in its own format: with few sequences that is all its cost, and nothing is
 * gained by packing. Threads split the units; each makes its gates and its state. The state before step t is row t - 1
 * of dst, so that nobody overwrites what others still read.
 */
#include "backend/cpu/core/maths.h"
#include "backend/cpu/core/vecmath.h"
#include "backend/cpu/recurrent/recurrent.h"
#include "base/threads.h"

#include <string.h>

enum { LSTM = 4, GRU = 3, RNN = 1 }; // by the gates of a unit

typedef struct task {
    const mixt__call *call;
    mixt__recurrent_sizes s;
    int64_t b, t;
    float *state; // before this step, in FP32, padded with zeros to whole vectors
} task;

enum { GRAIN = 8 }; // units a thread takes at least

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    int64_t hidden = mixt__recurrent_sizes_of(call).hidden;
    call->workspace_bytes = (size_t)(hidden + VEC_LANES) * sizeof(float);
    return MIXT_OK;
}

/** Rows j, j + H, … of the weight times the state. */
VEC_INLINE void products(mixt_dtype dtype, int gates, const task *k, int64_t j, float *result)
{
    const void *weight = k->call->in[1].data;
    int64_t n = k->s.hidden, i = 0;
    vec sum[LSTM] = {vec_zero(), vec_zero(), vec_zero(), vec_zero()};
    for (; i + VEC_LANES <= n; i += VEC_LANES) {
        vec h = vec_load(k->state + i);
#pragma GCC unroll 4
        for (int g = 0; g < gates; g++)
            sum[g] = vec_fma(vec_get(weight, dtype, (g * n + j) * n + i), h, sum[g]);
    }
    for (int g = 0; g < gates; g++) {
        if (i < n)
            sum[g] = vec_fma(vec_get_part(weight, dtype, (g * n + j) * n + i, n - i), vec_load(k->state + i), sum[g]);
        result[g] = vec_sum(sum[g]);
    }
}

/** The new state of an LSTM's unit j from its products and inputs. */
static float lstm_unit(const task *k, int64_t j, const float *product, const float *x)
{
    float *cell = (float *)k->call->in[3].data + k->b * k->s.hidden + j, gate[LSTM];
    for (int g = 0; g < LSTM; g++) {
        float sum = product[g] + x[g];
        gate[g] = g == 2 ? mixt__maths_tanh(sum) : mixt__maths_sigmoid(sum);
    }
    *cell = fmaf(gate[1], *cell, gate[0] * gate[2]);
    return gate[3] * mixt__maths_tanh(*cell);
}

static float gru_unit(const task *k, int64_t j, const float *product, const float *x)
{
    float *state = (float *)k->call->in[3].data + k->b * k->s.hidden + j;
    float reset = mixt__maths_sigmoid(product[0] + x[0]), update = mixt__maths_sigmoid(product[1] + x[1]);
    float new = mixt__maths_tanh(fmaf(reset, product[2] + ((const float *)k->call->in[2].data)[j], x[2]));
    *state = fmaf(update, *state - new, new);
    return *state;
}

static float rnn_unit(const task *k, const float *product, const float *x)
{
    float sum = product[0] + x[0];
    if (((const mixt__rnn_attrs *)k->call->attrs)->relu)
        return sum < 0 ? 0 : sum;
    return mixt__maths_tanh(sum);
}

VEC_INLINE void units(mixt_dtype dtype, int gates, const task *k, int64_t begin, int64_t end)
{
    const mixt__call *call = k->call;
    int64_t n = k->s.hidden, at = k->b * k->s.steps + k->t;
    for (int64_t j = begin; j < end; j++) {
        float product[LSTM], x[LSTM];
        products(dtype, gates, k, j, product);
        for (int g = 0; g < gates; g++)
            x[g] = mixt__load(call->in[0].data, dtype, (at * gates + g) * n + j);
        float h = gates == LSTM  ? lstm_unit(k, j, product, x)
                  : gates == GRU ? gru_unit(k, j, product, x)
                                 : rnn_unit(k, product, x);
        mixt__store(call->out[0].data, dtype, at * n + j, h);
    }
}

VEC_INLINE void units_of(int gates, const task *k, int64_t begin, int64_t end)
{
    switch (k->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        units(MIXT_DTYPE_FP32, gates, k, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        units(MIXT_DTYPE_BF16, gates, k, begin, end);
        break;
    default:
        units(MIXT_DTYPE_FP16, gates, k, begin, end);
    }
}

static void lstm_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    units_of(LSTM, argument, begin, end);
}

static void gru_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    units_of(GRU, argument, begin, end);
}

static void rnn_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    units_of(RNN, argument, begin, end);
}

/** The state that a sequence goes on from: a GRU's is FP32, and multiplied as the operands' format has it. */
static void first_state(const task *k, const mixt__tensor *cache, mixt_dtype dtype, void *rounded)
{
    int64_t n = k->s.hidden;
    const char *from = (const char *)cache->data + (size_t)(k->b * n) * mixt_dtype_size(cache->dtype);
    if (cache->dtype == dtype) {
        mixt__widen(dtype)(k->state, from, n);
        return;
    }
    mixt__narrow(dtype)(rounded, (const float *)(const void *)from, n);
    mixt__widen(dtype)(k->state, rounded, n);
}

static mixt_status run(const mixt__call *call, mixt__range_fn *range)
{
    task k = {.call = call, .s = mixt__recurrent_sizes_of(call), .state = call->workspace};
    const mixt__tensor *dst = &call->out[0], *cache = &call->in[range == gru_range ? 3 : 2];
    mixt_dtype dtype = call->in[0].dtype;
    int64_t n = k.s.hidden;
    size_t row = (size_t)n * mixt_dtype_size(dtype);
    memset(k.state + n, 0, VEC_LANES * sizeof *k.state);
    for (k.b = 0; k.s.steps && k.b < k.s.batch; k.b++) {
        char *after = (char *)dst->data + (size_t)(k.b * k.s.steps) * row;
        first_state(&k, cache, dtype, after); // dst's row is written last
        for (k.t = 0; k.t < k.s.steps; k.t++, after += row) {
            mixt__parallel(n, GRAIN, range, &k);
            mixt__widen(dtype)(k.state, after, n);
        }
        if (range != gru_range)
            memcpy((char *)cache->data + (size_t)k.b * row, after - row, row);
    }
    return MIXT_OK;
}

static mixt_status lstm_run(const mixt__call *call)
{
    return run(call, lstm_range);
}

static mixt_status gru_run(const mixt__call *call)
{
    return run(call, gru_range);
}

static mixt_status rnn_run(const mixt__call *call)
{
    return run(call, rnn_range);
}

const mixt__kernel MIXT_AT(mixt__lstm_cached) = {
    .name = MIXT_AT_NAME, .supports = vec_supports, .prepare = prepare, .run = lstm_run};
const mixt__kernel MIXT_AT(mixt__gru_cached) = {
    .name = MIXT_AT_NAME, .supports = vec_supports, .prepare = prepare, .run = gru_run};
const mixt__kernel MIXT_AT(mixt__rnn_cached) = {
    .name = MIXT_AT_NAME, .supports = vec_supports, .prepare = prepare, .run = rnn_run};
