/* Cross-entropy of each row, and its gradient. `skip=k` leaves every k-th label out; `classes=n`: logits past n are
 * padding. */
#include "oracle/oracle.h"

#include <math.h>

static void make(test_case *c)
{
    mixt__shape x = problem_shape(c, "logits"), labels = x;
    int64_t skip = problem_int(c, "skip", 0);
    double range = problem_real(c, "range", 4);
    c->attrs.loss.classes = problem_int(c, "classes", 0);
    labels.rank--;
    case_input_between(c, c->dtype, x, -range, range);
    test_tensor *t = case_indices(c, labels, 0, mixt__loss_classes(&c->attrs.loss, x.dims[x.rank - 1]));
    for (int64_t i = 0; skip && i < t->count; i += skip)
        t->value[i] = -1;
}

/** The log-sum-exp of a row. @param slack receives by how much FP32 may be off */
static double lse_of(const double *x, int64_t classes, double *slack)
{
    double most = -INFINITY, least = INFINITY, total = 0;
    for (int64_t i = 0; i < classes; i++) {
        most = fmax(most, x[i]);
        least = fmin(least, x[i]);
    }
    for (int64_t i = 0; i < classes; i++)
        total += exp(x[i] - most);
    double lse = most + log(total);
    *slack = U32 * ((double)classes + 2 * (most - least) + 2 * U_MATHS + 2 * fabs(lse) + fabs(most) + 4);
    return lse;
}

static void expect(test_case *c)
{
    const test_tensor *x = &c->in[0], *t = &c->in[1];
    int64_t pitch = x->shape.dims[x->shape.rank - 1], classes = mixt__loss_classes(&c->attrs.loss, pitch);
    for (int64_t i = 0; i < t->count; i++) {
        int64_t label = (int64_t)t->value[i];
        double slack, lse = lse_of(x->value + i * pitch, classes, &slack);
        if (label < 0) {
            c->out[1].slack[i] = INFINITY; // of a row left out nobody reads it
            continue;
        }
        c->out[0].value[i] = lse - x->value[i * pitch + label];
        c->out[0].slack[i] = slack + 4 * U32 * (fabs(lse) + fabs(x->value[i * pitch + label]));
        c->out[1].value[i] = lse;
        c->out[1].slack[i] = slack;
    }
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "cross_entropy_rows");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    case_copy(c, &f->in[0]);
    case_copy(c, &f->in[1]);
    case_copy(c, &f->out[1]);
    c->grad_dst = c->in_count;
    case_input_between(c, MIXT_DTYPE_FP32, f->out[0].shape, -2, 2);
}

static void expect_grad(test_case *c)
{
    const test_tensor *x = &c->in[0], *t = &c->in[1], *dx = &c->out[0];
    int64_t pitch = x->shape.dims[x->shape.rank - 1], classes = mixt__loss_classes(&c->attrs.loss, pitch);
    for (int64_t i = 0; i < x->count; i++) {
        int64_t row = i / pitch, label = (int64_t)t->value[row];
        if (label < 0 || i % pitch >= classes)
            continue;
        double lse = c->in[2].value[row], p = exp(x->value[i] - lse), seed = c->in[3].value[row];
        double q = label == i % pitch ? 1 : 0;
        dx->value[i] = seed * (p - q);
        dx->slack[i] = fabs(seed) * U32 * (p * (2 * fabs(x->value[i]) + 2 * fabs(lse) + U_MATHS) + 5 * (p + q));
    }
}

const oracle oracle_cross_entropy_rows = {.op = "cross_entropy_rows", .make = make, .expect = expect};
const oracle oracle_cross_entropy_rows_grad = {
    .op = "cross_entropy_rows_grad", .make = make_grad, .expect = expect_grad};
