/* The units of a plain recurrent layer at one step, forward and gradient, compiled for AVX2 and AVX-512. */
#include "backend/cpu/recurrent/step_pass.h"

static bool is_relu(const mixt__recurrent_step *k)
{
    return ((const mixt__rnn_attrs *)k->call->attrs)->relu;
}

VEC_INLINE void forward_unit(mixt_dtype dtype, int64_t n, const mixt__recurrent_step *k, int64_t b, int64_t j)
{
    int64_t at = mixt__recurrent_place(k, b, k->s.hidden) + j;
    vec x = vec_get_part(k->call->in[0].data, dtype, at, n);
    if (k->t > 0)
        x = vec_add(x, vec_get_part(k->product, MIXT_DTYPE_FP32, b * k->s.hidden + j, n));
    vec_put_part(k->call->out[0].data, dtype, at, n, is_relu(k) ? vec_max(vec_zero(), x) : vec_tanh(x));
}

VEC_INLINE void grad_unit(mixt_dtype dtype, int64_t n, const mixt__recurrent_step *k, int64_t b, int64_t j)
{
    int64_t at = mixt__recurrent_place(k, b, k->s.hidden) + j;
    vec h = vec_get_part(k->call->in[1].data, dtype, at, n), grad = vec_get_part(k->call->in[2].data, dtype, at, n);
    if (k->t + 1 < k->s.steps)
        grad = vec_add(grad, vec_get_part(k->product, MIXT_DTYPE_FP32, b * k->s.hidden + j, n));
    grad = is_relu(k) ? vec_if_below(vec_zero(), h, grad, vec_zero()) : vec_mul(grad, tanh_slope(h));
    vec_put_part(k->grad_sums, dtype, at, n, grad);
}

RECURRENT_CANDIDATES(rnn, forward_unit, grad_unit);
