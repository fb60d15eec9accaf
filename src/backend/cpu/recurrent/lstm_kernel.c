/* The units of an LSTM at one step, forward and gradient, compiled for AVX2 and AVX-512. */
#include "backend/cpu/recurrent/step_pass.h"

/** Gates, cell and state after this step. */
VEC_INLINE void forward_unit(mixt_dtype dtype, int64_t n, const mixt__recurrent_step *k, int64_t b, int64_t j)
{
    const mixt__call *call = k->call;
    int64_t hidden = k->s.hidden, gates = mixt__recurrent_place(k, b, 4 * hidden) + j;
    int64_t state = mixt__recurrent_place(k, b, hidden) + j;
    float *cell = call->out[2].data;
    vec gate[4];
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        vec x = vec_get_part(call->in[0].data, dtype, gates + g * hidden, n);
        if (k->t > 0)
            x = vec_add(x, vec_get_part(k->product, MIXT_DTYPE_FP32, b * 4 * hidden + g * hidden + j, n));
        gate[g] = g == 2 ? vec_tanh(x) : vec_sigmoid(x);
        vec_put_part(call->out[1].data, dtype, gates + g * hidden, n, gate[g]);
    }
    vec c = vec_mul(gate[0], gate[2]);
    if (k->t > 0)
        c = vec_fma(gate[1], vec_get_part(cell, MIXT_DTYPE_FP32, state - hidden, n), c);
    vec_put_part(cell, MIXT_DTYPE_FP32, state, n, c);
    vec_put_part(call->out[0].data, dtype, state, n, vec_mul(gate[3], vec_tanh(c)));
}

VEC_INLINE void grad_unit(mixt_dtype dtype, int64_t n, const mixt__recurrent_step *k, int64_t b, int64_t j)
{
    const mixt__call *call = k->call;
    int64_t hidden = k->s.hidden, gates = mixt__recurrent_place(k, b, 4 * hidden) + j;
    int64_t state = mixt__recurrent_place(k, b, hidden) + j;
    const float *cell = call->in[3].data;
    vec gate[4], before = vec_zero(), grad_c = vec_zero();
    vec grad_h = vec_get_part(call->in[4].data, dtype, state, n);
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++)
        gate[g] = vec_get_part(call->in[2].data, dtype, gates + g * hidden, n);
    if (k->t + 1 < k->s.steps) {
        grad_h = vec_add(grad_h, vec_get_part(k->product, MIXT_DTYPE_FP32, b * hidden + j, n));
        grad_c = vec_get_part(k->flow, MIXT_DTYPE_FP32, b * hidden + j, n);
    }
    if (k->t > 0)
        before = vec_get_part(cell, MIXT_DTYPE_FP32, state - hidden, n);
    vec out = vec_tanh(vec_get_part(cell, MIXT_DTYPE_FP32, state, n));
    grad_c = vec_fma(vec_mul(grad_h, gate[3]), tanh_slope(out), grad_c);
    vec result[4] = {vec_mul(vec_mul(grad_c, gate[2]), logistic_slope(gate[0])),
                     vec_mul(vec_mul(grad_c, before), logistic_slope(gate[1])),
                     vec_mul(vec_mul(grad_c, gate[0]), tanh_slope(gate[2])),
                     vec_mul(vec_mul(grad_h, out), logistic_slope(gate[3]))};
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++)
        vec_put_part(k->grad_sums, dtype, gates + g * hidden, n, result[g]);
    vec_put_part(k->flow, MIXT_DTYPE_FP32, b * hidden + j, n, vec_mul(grad_c, gate[1]));
}

RECURRENT_CANDIDATES(lstm, forward_unit, grad_unit);
