/* Rows of a table by index; the gradient sums the rows of each index. */
#include "oracle/oracle.h"

#include <math.h>

static void make(test_case *c)
{
    mixt__shape table = problem_shape(c, "table");
    if (problem_int(c, "pair", 0)) {
        case_pair(c, table);
        c->attrs.embedding.dtype = c->dtype;
    } else {
        case_input(c, c->dtype, table);
    }
    case_indices(c, problem_shape(c, "ids"), 0, table.dims[0]);
}

static void expect(test_case *c)
{
    int64_t width = c->in[0].shape.dims[1];
    for (int64_t i = 0; i < c->out[0].count; i++) {
        c->out[0].value[i] = c->in[0].value[(int64_t)c->in[1].value[i / width] * width + i % width];
        c->out[0].slack[i] = c->in[0].scale ? U32 * fabs(c->out[0].value[i]) : 0; // scaled in FP32
    }
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "embedding");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs.embedding.count = f->in[0].shape.dims[0];
    c->grad_dst = 1;
    case_copy(c, &f->in[1]);
    case_input(c, c->dtype, f->out[0].shape);
}

static void expect_grad(test_case *c)
{
    const test_tensor *ids = &c->in[0], *dy = &c->in[1], *table = &c->out[0];
    int64_t width = table->shape.dims[1];
    double *uses = case_alloc(c, (size_t)table->shape.dims[0] * sizeof(double));
    for (int64_t i = 0; i < ids->count; i++)
        uses[(int64_t)ids->value[i]]++;
    for (int64_t i = 0; i < dy->count; i++) {
        int64_t row = (int64_t)ids->value[i / width], at = row * width + i % width;
        table->value[at] += dy->value[i];
        table->slack[at] += uses[row] * U32 * fabs(dy->value[i]);
    }
}

const oracle oracle_embedding = {.op = "embedding", .make = make, .expect = expect, .exact_integers = true};
const oracle oracle_embedding_grad = {
    .op = "embedding_grad", .make = make_grad, .expect = expect_grad, .exact_integers = true};
