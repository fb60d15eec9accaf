/* Matrix product: alpha · op(a) · op(b) + bias + addend, then an activation or its gradient, each sum in FP64.
 *
 * Bound: K products summed in any order in FP32 are off by at most (K + 1)·u·sum|a·b|; alpha, bias, addend and a final
 * addition add four roundings. Operands rounded on the way add what they are off by. In a low format the bias may be
 * rounded to it first, as libraries take it, and what GELU's gradient is multiplied with, as without fusion; GELU
 * itself may be good to a sixteenth of the format's roundoff. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

static const double ROOT = 0.79788456080286535588; // sqrt(2/pi)

static void make(test_case *c)
{
    static const char *const epilogues[] = {"none", "relu", "gelu", "gelu_grad", "relu_grad"};
    mixt__matmul_attrs *at = &c->attrs.matmul;
    *at = (mixt__matmul_attrs){.trans_a = problem_int(c, "trans_a", 0) != 0,
                               .trans_b = problem_int(c, "trans_b", 0) != 0};
    at->bias = problem_int(c, "bias", 0) != 0;
    at->alpha = (float)problem_real(c, "alpha", 1);
    at->addend = problem_int(c, "addend", 0) != 0;
    at->wide = problem_int(c, "wide", 0) != 0;
    at->row_sums = problem_int(c, "row_sums", 0) != 0;
    c->never_added = at->row_sums ? 0 : 2; // GELU's second output
    const char *epilogue = problem_text(c, "epilogue", "none");
    while (strcmp(epilogues[at->epilogue], epilogue))
        if (++at->epilogue > MIXT_EPILOGUE_RELU_GRAD) {
            c->error = "an epilogue is relu, gelu, gelu_grad or relu_grad";
            return;
        }
    mixt__shape a = problem_shape(c, "a"), b = problem_shape(c, "b"), y = a;
    const char *fp8 = problem_text(c, "fp8", NULL); // the format of a; b is in E4M3
    if (fp8)
        case_scaled(c, mixt_dtype_parse(fp8), a);
    else
        case_input(c, c->dtype, a);
    at->made = fp8 ? c->dtype : MIXT_DTYPE_NONE;
    if (fp8)
        case_scaled(c, MIXT_DTYPE_FP8_E4M3, b);
    else if (problem_int(c, "pair", 0))
        case_pair(c, b);
    else
        case_input(c, c->dtype, b);
    if (a.rank < 1 || b.rank < 2)
        return;
    int64_t n = b.dims[b.rank - (at->trans_b ? 2 : 1)];
    y.dims[y.rank - 1] = n;
    if (at->trans_a)
        y.dims[y.rank - 2] = a.dims[a.rank - 1];
    if (at->bias)
        case_input(c, MIXT_DTYPE_FP32, (mixt__shape){1, {n}});
    if (at->addend)
        case_input(c, c->dtype, y);
    if (at->epilogue >= MIXT_EPILOGUE_GELU_GRAD)
        case_input_between(c, c->dtype, y, -4, 4);
}

/** From element i of the product, off by at most `error`, to what is stored. Bounds of GELU as in pointwise.c. */
static void finish(test_case *c, int64_t i, double x, double error)
{
    const mixt__matmul_attrs *at = &c->attrs.matmul;
    test_tensor *y = &c->out[0];
    double u = fmax(number_roundoff(c->dtype), U32), maths = u > U32 ? 1.0 / 131072 : 2 * U_MATHS * U32, slope, pre = x;
    y->value[i] = x;
    y->slack[i] = error;
    if (at->epilogue == MIXT_EPILOGUE_NONE)
        return;
    if (at->epilogue == MIXT_EPILOGUE_RELU) {
        y->value[i] = x <= 0 ? 0 : x;
        return;
    }
    if (at->epilogue == MIXT_EPILOGUE_RELU_GRAD) {
        y->value[i] = c->in[c->in_count - 1].value[i] > 0 ? x : 0;
        y->slack[i] = c->in[c->in_count - 1].value[i] > 0 ? error : 0;
        return;
    }
    if (at->epilogue == MIXT_EPILOGUE_GELU_GRAD)
        pre = c->in[c->in_count - 1].value[i];
    double t = tanh(ROOT * (pre + 0.044715 * pre * pre * pre));
    if (at->epilogue == MIXT_EPILOGUE_GELU) {
        c->out[1].value[i] = x;
        c->out[1].slack[i] = error;
        y->value[i] = 0.5 * x * (1 + t);
        y->slack[i] = 1.13 * error + fabs(x) * maths; // the slope is below 1.13
        return;
    }
    slope = 0.5 * (1 + t) + 0.5 * pre * (1 - t * t) * ROOT * (1 + 3 * 0.044715 * pre * pre);
    y->value[i] = x * slope;
    y->slack[i] = fabs(slope) * (error + u * fabs(x)) + fabs(x) * maths * (2 + fabs(pre));
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
    double operands = 2 * number_operand(c); // cuBLAS multiplies
    if (b->scale && !a->scale)               // scaled in FP32, then perhaps rounded to the other operand's format
        operands += U32 + number_roundoff(c->dtype);
    int exponent;
    c->inexact = frexp(fabs((double)at->alpha), &exponent) != 0.5 || at->epilogue == MIXT_EPILOGUE_GELU ||
                 at->epilogue == MIXT_EPILOGUE_GELU_GRAD;
    int64_t a_row = rows || !at->trans_a ? k : 1, a_col = rows || !at->trans_a ? 1 : m;
    int64_t b_row = at->trans_b ? 1 : n, b_col = at->trans_b ? k : 1;
    for (int64_t i = 0; i < batch * m * n; i++) {
        int64_t z = i / (m * n), row = i / n % m, column = i % n;
        const double *pa = a->value + z * m * k + row * a_row, *pb = b->value + z * k * n + column * b_col;
        double sum = 0, size = 0, bias = at->bias ? c->in[2].value[column] : 0;
        double addend = at->addend ? c->in[at->bias ? 3 : 2].value[i] : 0;
        for (int64_t j = 0; j < k; j++) {
            sum += pa[j * a_col] * pb[j * b_row];
            size += fabs(pa[j * a_col] * pb[j * b_row]);
        }
        double products = fabs((double)at->alpha) * size;
        size = products + fabs(bias) + fabs(addend);
        double error = ((double)k + 5) * U32 * size + number_roundoff(y->dtype) * fabs(bias) +
                       operands * (2 + operands) * products;
        finish(c, i, at->alpha * sum + bias + addend, error);
    }
    for (int64_t row = 0; at->row_sums && row < m; row++) {
        double sum = 0, size = 0;
        for (int64_t j = 0; j < k; j++) {
            sum += a->value[row + j * m];
            size += fabs(a->value[row + j * m]);
        }
        c->out[1].value[row] = sum;
        c->out[1].slack[row] = ((double)k + 1) * U32 * size;
    }
}

const oracle oracle_matmul = {.op = "matmul", .make = make, .expect = expect, .exact_integers = true};
