/* One pass over the units of a step, by vectors: for sources that are compiled once for each instruction set.
 *
 * `unit` works on n units from unit j on of batch entry b, n at most a vector; it is inlined for each format.
 */
#ifndef MIXT_BACKEND_CPU_RECURRENT_STEP_PASS_H
#define MIXT_BACKEND_CPU_RECURRENT_STEP_PASS_H

#include "backend/cpu/core/vecmath.h"
#include "backend/cpu/recurrent/steps.h"

typedef void unit_fn(mixt_dtype dtype, int64_t n, const mixt__recurrent_step *k, int64_t b, int64_t j);

VEC_INLINE void step_typed(unit_fn *unit, mixt_dtype dtype, const mixt__recurrent_step *k, int64_t begin, int64_t end)
{
    int64_t hidden = k->s.hidden, whole = hidden / VEC_LANES * VEC_LANES;
    for (int64_t b = begin; b < end; b++) {
        for (int64_t j = 0; j < whole; j += VEC_LANES)
            unit(dtype, VEC_LANES, k, b, j);
        if (whole < hidden)
            unit(dtype, hidden - whole, k, b, whole);
    }
}

VEC_INLINE void step_pass(unit_fn *unit, const mixt__recurrent_step *k, int64_t begin, int64_t end)
{
    switch (k->call->out[0].dtype) {
    case MIXT_DTYPE_FP32:
        step_typed(unit, MIXT_DTYPE_FP32, k, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        step_typed(unit, MIXT_DTYPE_BF16, k, begin, end);
        break;
    default:
        step_typed(unit, MIXT_DTYPE_FP16, k, begin, end);
    }
}

/** x · (1 - x), the derivative of the logistic function by its value. */
VEC_INLINE vec logistic_slope(vec x)
{
    return vec_fnma(x, x, x);
}

/** 1 - x², the derivative of tanh by its value. */
VEC_INLINE vec tanh_slope(vec x)
{
    return vec_fnma(x, x, vec_set(1));
}

/** The candidates `op` and `op`_grad from their unit functions. */
#define RECURRENT_CANDIDATES(op, forward_unit, grad_unit)                                                              \
    static void op##_forward_pass(void *step, int64_t begin, int64_t end, int thread)                                  \
    {                                                                                                                  \
        (void)thread;                                                                                                  \
        step_pass(forward_unit, step, begin, end);                                                                     \
    }                                                                                                                  \
    static void op##_grad_pass(void *step, int64_t begin, int64_t end, int thread)                                     \
    {                                                                                                                  \
        (void)thread;                                                                                                  \
        step_pass(grad_unit, step, begin, end);                                                                        \
    }                                                                                                                  \
    static mixt_status op##_run(const mixt__call *call)                                                                \
    {                                                                                                                  \
        return mixt__recurrent_forward(call, op##_forward_pass);                                                       \
    }                                                                                                                  \
    static mixt_status op##_grad_run(const mixt__call *call)                                                           \
    {                                                                                                                  \
        return mixt__recurrent_backward(call, op##_grad_pass);                                                         \
    }                                                                                                                  \
    const mixt__kernel MIXT_AT(mixt__##op) = {                                                                         \
        .name = MIXT_AT_NAME, .supports = vec_supports, .prepare = mixt__recurrent_forward_prepare, .run = op##_run};  \
    const mixt__kernel MIXT_AT(mixt__##op##_grad) = {.name = MIXT_AT_NAME,                                             \
                                                     .supports = vec_supports,                                         \
                                                     .prepare = mixt__recurrent_backward_prepare,                      \
                                                     .run = op##_grad_run}

#endif
