/* Sums over the state of a recurrence, with their errors. */
#include "oracle/recurrent.h"

#include <math.h>

recurrent_sizes recurrent_sizes_of(const test_case *c, const test_tensor *sequence, const test_tensor *weight)
{
    bool low = c->dtype == MIXT_DTYPE_FP16 || c->dtype == MIXT_DTYPE_BF16;
    return (recurrent_sizes){sequence->shape.dims[0], sequence->shape.dims[1], weight->shape.dims[1],
                             weight->shape.dims[0], low ? number_roundoff(c->dtype) : 0};
}

flow recurrent_sum(const recurrent_sizes *s, double start, const double *weight, int64_t stride, const double *x,
                   const double *e, int64_t n)
{
    flow sum = {start, 0};
    double size = fabs(start);
    for (int64_t i = 0; x && i < n; i++) {
        double w = weight[i * stride];
        sum.value += w * x[i];
        size += fabs(w * x[i]);
        sum.error += fabs(w) * (e[i] + s->low * fabs(x[i]));
    }
    sum.error += ((double)n + 2) * U32 * size;
    return sum;
}

void recurrent_weight_grad(test_case *c, const recurrent_sizes *s, int64_t step, const flow *grad)
{
    double terms = (double)(s->batch * s->steps) + 2, operands = 2 * number_operand(c); // a library multiplies
    for (int64_t i = 0; step % s->steps && i < s->rows * s->hidden; i++) {
        double h = c->in[1].value[(step - 1) * s->hidden + i % s->hidden], size = fabs(grad[i / s->hidden].value);
        double error = grad[i / s->hidden].error;
        c->out[1].value[i] += grad[i / s->hidden].value * h;
        c->out[1].slack[i] += fabs(h) * (error + s->low * size + terms * U32 * size);
        c->out[1].slack[i] += fabs(h) * operands * (2 + operands) * (size + error);
    }
}
