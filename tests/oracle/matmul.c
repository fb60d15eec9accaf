/* Matrix product: alpha · op(a) · op(b) + bias, each sum in FP64.
 *
 * Bound: K products summed in any order in FP32 are off by at most (K + 1)·u·sum|a·b|; alpha, bias and a final addition
 * add three roundings. */
#include "oracle/oracle.h"

#include <math.h>

static void make(test_case *c)
{
    c->attrs.matmul = (mixt__matmul_attrs){.trans_a = problem_int(c, "trans_a", 0) != 0,
                                           .trans_b = problem_int(c, "trans_b", 0) != 0};
    c->attrs.matmul.bias = problem_int(c, "bias", 0) != 0;
    c->attrs.matmul.alpha = (float)problem_real(c, "alpha", 1);
    mixt__shape b = problem_shape(c, "b");
    case_input(c, c->dtype, problem_shape(c, "a"));
    case_input(c, c->dtype, b);
    if (c->attrs.matmul.bias && b.rank >= 2)
        case_input(c, MIXT_DTYPE_FP32, (mixt__shape){1, {b.dims[b.rank - (c->attrs.matmul.trans_b ? 2 : 1)]}});
}

static void expect(test_case *c)
{
    const mixt__matmul_attrs *at = &c->attrs.matmul;
    const test_tensor *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    bool rows = b->shape.rank == 2 && a->shape.rank != 2;
    const int64_t *db = b->shape.dims + b->shape.rank - 2, *da = a->shape.dims + a->shape.rank - 2;
    int64_t n = at->trans_b ? db[0] : db[1], k = at->trans_b ? db[1] : db[0];
    int64_t m = rows ? y->count / (n > 0 ? n : 1) : at->trans_a ? da[1] : da[0];
    int64_t batch = rows || m * n == 0 ? 1 : y->count / (m * n);
    int exponent;
    c->inexact = frexp(fabs((double)at->alpha), &exponent) != 0.5;
    int64_t a_row = rows || !at->trans_a ? k : 1, a_col = rows || !at->trans_a ? 1 : m;
    int64_t b_row = at->trans_b ? 1 : n, b_col = at->trans_b ? k : 1;
    for (int64_t i = 0; i < batch * m * n; i++) {
        int64_t z = i / (m * n), row = i / n % m, column = i % n;
        const double *pa = a->value + z * m * k + row * a_row, *pb = b->value + z * k * n + column * b_col;
        double sum = 0, size = 0, bias = at->bias ? c->in[2].value[column] : 0;
        for (int64_t j = 0; j < k; j++) {
            sum += pa[j * a_col] * pb[j * b_row];
            size += fabs(pa[j * a_col] * pb[j * b_row]);
        }
        y->value[i] = at->alpha * sum + bias;
        y->slack[i] = ((double)k + 4) * U32 * (fabs((double)at->alpha) * size + fabs(bias));
    }
}

const oracle oracle_matmul = {.op = "matmul", .make = make, .expect = expect, .exact_integers = true};
