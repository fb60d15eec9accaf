/* The units of a GRU at one step, forward and gradient, compiled for AVX2 and AVX-512. See ops/gru.c. */
#include "backend/cpu/recurrent/step_pass.h"

/** What is kept of a unit, in this order, each for all units of a step. */
enum { RESET, UPDATE, NEW, PRODUCT, SAVED };

/** Gate g's product with the state before; zero before a sequence's first step. */
VEC_INLINE vec product_of(const mixt__recurrent_step *k, int64_t b, int64_t g, int64_t j, int64_t n)
{
    int64_t hidden = k->s.hidden;
    return k->t > 0 ? vec_get_part(k->product, MIXT_DTYPE_FP32, (b * 3 + g) * hidden + j, n) : vec_zero();
}

VEC_INLINE void forward_unit(mixt_dtype dtype, int64_t n, const mixt__recurrent_step *k, int64_t b, int64_t j)
{
    const mixt__call *call = k->call;
    int64_t hidden = k->s.hidden, gates = mixt__recurrent_place(k, b, 3 * hidden) + j;
    int64_t saved = mixt__recurrent_place(k, b, SAVED * hidden) + j, at = mixt__recurrent_place(k, b, hidden) + j;
    float *state = call->out[2].data;
    vec kept[SAVED], x[3], before = vec_zero();
#pragma GCC unroll 3
    for (int g = 0; g < 3; g++)
        x[g] = vec_get_part(call->in[0].data, dtype, gates + g * hidden, n);
    if (k->t > 0)
        before = vec_get_part(state, MIXT_DTYPE_FP32, at - hidden, n);
    kept[RESET] = vec_sigmoid(vec_add(x[0], product_of(k, b, 0, j, n)));
    kept[UPDATE] = vec_sigmoid(vec_add(x[1], product_of(k, b, 1, j, n)));
    kept[PRODUCT] = vec_add(vec_get_part(call->in[2].data, MIXT_DTYPE_FP32, j, n), product_of(k, b, 2, j, n));
    kept[NEW] = vec_tanh(vec_fma(kept[RESET], kept[PRODUCT], x[2]));
#pragma GCC unroll 4
    for (int i = 0; i < SAVED; i++)
        vec_put_part(call->out[1].data, dtype, saved + i * hidden, n, kept[i]);
    vec h = vec_fma(kept[UPDATE], vec_sub(before, kept[NEW]), kept[NEW]);
    vec_put_part(state, MIXT_DTYPE_FP32, at, n, h);
    vec_put_part(call->out[0].data, dtype, at, n, h);
}

VEC_INLINE void grad_unit(mixt_dtype dtype, int64_t n, const mixt__recurrent_step *k, int64_t b, int64_t j)
{
    const mixt__call *call = k->call;
    int64_t hidden = k->s.hidden, gates = mixt__recurrent_place(k, b, 3 * hidden) + j;
    int64_t saved = mixt__recurrent_place(k, b, SAVED * hidden) + j, at = mixt__recurrent_place(k, b, hidden) + j;
    vec kept[SAVED], before = vec_zero(), grad_h = vec_get_part(call->in[4].data, dtype, at, n);
#pragma GCC unroll 4
    for (int i = 0; i < SAVED; i++)
        kept[i] = vec_get_part(call->in[2].data, dtype, saved + i * hidden, n);
    if (k->t + 1 < k->s.steps) {
        grad_h = vec_add(grad_h, vec_get_part(k->product, MIXT_DTYPE_FP32, b * hidden + j, n));
        grad_h = vec_add(grad_h, vec_get_part(k->flow, MIXT_DTYPE_FP32, b * hidden + j, n));
    }
    if (k->t > 0)
        before = vec_get_part(call->in[3].data, MIXT_DTYPE_FP32, at - hidden, n);
    vec grad_new = vec_mul(vec_fnma(grad_h, kept[UPDATE], grad_h), tanh_slope(kept[NEW]));
    vec grad_reset = vec_mul(vec_mul(grad_new, kept[PRODUCT]), logistic_slope(kept[RESET]));
    vec grad_update = vec_mul(vec_mul(grad_h, vec_sub(before, kept[NEW])), logistic_slope(kept[UPDATE]));
    vec flow[3] = {grad_reset, grad_update, vec_mul(grad_new, kept[RESET])};
#pragma GCC unroll 3
    for (int g = 0; g < 3; g++) {
        vec_put_part(k->grad_sums, dtype, gates + g * hidden, n, flow[g]);
        vec_put_part(call->out[0].data, dtype, gates + g * hidden, n, g == 2 ? grad_new : flow[g]);
    }
    vec_put_part(k->flow, MIXT_DTYPE_FP32, b * hidden + j, n, vec_mul(grad_h, kept[UPDATE]));
}

RECURRENT_CANDIDATES(gru, forward_unit, grad_unit);
