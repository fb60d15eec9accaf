/* Logarithm of the softmax: x - peak - log(sum of e^(x - peak)), whose parts are each off by a few roundings. */
#include "oracle/oracle.h"

#include <math.h>

static void make(test_case *c)
{
    double range = problem_real(c, "range", 3);
    case_input_between(c, c->dtype, problem_shape(c, "src"), -range, range);
}

static void expect(test_case *c)
{
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t columns = x->shape.dims[x->shape.rank - 1];
    for (int64_t r = 0; r < x->count; r += columns) {
        double sum = 0;
        for (int64_t i = 0; i < columns; i++)
            sum += exp(x->value[r + i]);
        for (int64_t i = 0; i < columns; i++) {
            y->value[r + i] = x->value[r + i] - log(sum);
            y->slack[r + i] = (U_MATHS + (double)columns) * U32 + 3 * U32 * (fabs(x->value[r + i]) + fabs(log(sum)));
        }
    }
}

const oracle oracle_log_softmax = {.op = "log_softmax", .make = make, .expect = expect};
