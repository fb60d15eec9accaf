/* Cumulative sums: n numbers added in any order in FP32 are off by at most n·u·sum|x|. Triangles are exact. */
#include "oracle/oracle.h"

#include <math.h>

static void cumsum_make(test_case *c)
{
    c->attrs.cumsum.axis = (int)problem_int(c, "axis", 0);
    c->attrs.cumsum.exclusive = problem_int(c, "exclusive", 0) != 0;
    c->attrs.cumsum.reverse = problem_int(c, "reverse", 0) != 0;
    case_input(c, c->dtype, problem_shape(c, "src"));
}

static void cumsum_expect(test_case *c)
{
    const mixt__cumsum_attrs *at = &c->attrs.cumsum;
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t size = x->shape.dims[at->axis], inner = 1;
    for (int d = at->axis + 1; d < x->shape.rank; d++)
        inner *= x->shape.dims[d];
    for (int64_t i = 0; i < x->count; i++)
        for (int64_t k = 0; k < size; k++) {
            int64_t place = i / inner % size, from = i + (k - place) * inner;
            bool counts = at->reverse ? k > place : k < place;
            if (!counts && (k != place || at->exclusive))
                continue;
            y->value[i] += x->value[from];
            y->slack[i] += (double)size * U32 * fabs(x->value[from]);
        }
}

static void trilu_make(test_case *c)
{
    c->attrs.trilu.upper = problem_int(c, "upper", 0) != 0;
    c->attrs.trilu.diagonal = problem_int(c, "diagonal", 0);
    case_input(c, c->dtype, problem_shape(c, "src"));
}

static void trilu_expect(test_case *c)
{
    const mixt__trilu_attrs *at = &c->attrs.trilu;
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t rows = x->shape.dims[x->shape.rank - 2], columns = x->shape.dims[x->shape.rank - 1];
    for (int64_t i = 0; i < x->count; i++) {
        int64_t distance = i % columns - i / columns % rows;
        y->value[i] = (at->upper ? distance >= at->diagonal : distance <= at->diagonal) ? x->value[i] : 0;
    }
}

const oracle oracle_cumsum = {.op = "cumsum", .make = cumsum_make, .expect = cumsum_expect, .exact_integers = true};
const oracle oracle_trilu = {.op = "trilu", .make = trilu_make, .expect = trilu_expect, .exact_integers = true};
