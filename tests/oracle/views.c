/* Shape ops run as copies: every one is exact. */
#include "oracle/oracle.h"

#include <stdlib.h>

static void reshape_make(test_case *c)
{
    case_input(c, c->dtype, problem_shape(c, "src"));
    c->attrs.reshape.shape = problem_shape(c, "to");
}

static void reshape_expect(test_case *c)
{
    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].value[i] = c->in[0].value[i];
}

static void transpose_make(test_case *c)
{
    const char *order = problem_text(c, "order", "10"); // one digit a dimension
    for (int i = 0; i < MIXT_MAX_RANK && order[i]; i++)
        c->attrs.transpose.order[i] = order[i] - '0';
    case_input(c, c->dtype, problem_shape(c, "src"));
}

static void transpose_expect(test_case *c)
{
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    int rank = x->shape.rank;
    for (int64_t i = 0; i < y->count; i++) {
        int64_t index[MIXT_MAX_RANK], rest = i, from = 0;
        for (int d = rank - 1; d >= 0; d--) {
            index[c->attrs.transpose.order[d]] = rest % y->shape.dims[d];
            rest /= y->shape.dims[d];
        }
        for (int d = 0; d < rank; d++)
            from = from * x->shape.dims[d] + index[d];
        y->value[i] = x->value[from];
    }
}

/** Sizes before and after the axis, in elements. */
static void around(const mixt__shape *shape, int axis, int64_t *outer, int64_t *inner)
{
    *outer = *inner = 1;
    for (int d = 0; d < axis; d++)
        *outer *= shape->dims[d];
    for (int d = axis + 1; d < shape->rank; d++)
        *inner *= shape->dims[d];
}

static void slice_make(test_case *c)
{
    mixt__shape x = problem_shape(c, "src");
    mixt__slice_attrs *at = &c->attrs.slice;
    at->axis = (int)problem_int(c, "axis", 0);
    at->full = x.dims[at->axis];
    at->begin = problem_int(c, "begin", 0);
    at->end = problem_int(c, "end", at->full);
    case_input(c, c->dtype, x);
}

/** Element i of the slice stands here in the whole. */
static int64_t slice_place(const mixt__slice_attrs *at, const mixt__shape *part, int64_t i)
{
    int64_t outer, inner, size = at->end - at->begin;
    around(part, at->axis, &outer, &inner);
    return (i / (inner * size) * at->full + at->begin + i / inner % size) * inner + i % inner;
}

static void slice_expect(test_case *c)
{
    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].value[i] = c->in[0].value[slice_place(&c->attrs.slice, &c->out[0].shape, i)];
}

static void slice_grad_make(test_case *c)
{
    test_case *f = case_inner(c, "slice");
    slice_make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    c->grad_dst = 0;
    case_input(c, c->dtype, f->out[0].shape);
}

static void slice_grad_expect(test_case *c)
{
    for (int64_t i = 0; i < c->in[0].count; i++)
        c->out[0].value[slice_place(&c->attrs.slice, &c->in[0].shape, i)] = c->in[0].value[i];
}

static void split_make(test_case *c)
{
    const char *sizes = problem_text(c, "sizes", NULL);
    c->attrs.split.parts = (int)problem_int(c, "parts", 2);
    for (int o = 0; sizes && o < c->attrs.split.parts; o++) { // "5,1,2"
        char *end;
        c->attrs.split.sizes[o] = strtoll(sizes, &end, 10);
        sizes = end + (*end == ',');
    }
    case_input(c, c->dtype, problem_shape(c, "src"));
}

static void split_expect(test_case *c)
{
    int64_t full = c->in[0].shape.dims[c->in[0].shape.rank - 1], begin = 0;
    for (int o = 0; o < c->out_count; o++) {
        int64_t width = c->out[o].shape.dims[c->out[o].shape.rank - 1];
        for (int64_t i = 0; i < c->out[o].count; i++)
            c->out[o].value[i] = c->in[0].value[i / width * full + begin + i % width];
        begin += width;
    }
}

static void concat_make(test_case *c)
{
    const char *keys[] = {"a", "b", "c", "d"};
    c->attrs.concat.axis = (int)problem_int(c, "axis", 0);
    for (int i = 0; i < 4 && problem_has(c, keys[i]); i++)
        case_input(c, c->dtype, problem_shape(c, keys[i]));
}

static void concat_expect(test_case *c)
{
    const test_tensor *y = &c->out[0];
    int64_t outer, inner, begin = 0, full = y->shape.dims[c->attrs.concat.axis];
    around(&y->shape, c->attrs.concat.axis, &outer, &inner);
    for (int p = 0; p < c->in_count; p++) {
        int64_t size = c->in[p].shape.dims[c->attrs.concat.axis];
        for (int64_t i = 0; i < c->in[p].count; i++)
            y->value[(i / (inner * size) * full + begin + i / inner % size) * inner + i % inner] = c->in[p].value[i];
        begin += size;
    }
}

const oracle oracle_reshape = {.op = "reshape", .make = reshape_make, .expect = reshape_expect};
const oracle oracle_transpose = {.op = "transpose", .make = transpose_make, .expect = transpose_expect};
const oracle oracle_slice = {.op = "slice", .make = slice_make, .expect = slice_expect};
const oracle oracle_slice_grad = {.op = "slice_grad", .make = slice_grad_make, .expect = slice_grad_expect};
const oracle oracle_split = {.op = "split", .make = split_make, .expect = split_expect};
const oracle oracle_concat = {.op = "concat", .make = concat_make, .expect = concat_expect};
