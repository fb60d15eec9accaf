/* Max and average pooling and the gradient. Maxima are exact; averages round once an addition and once a division. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

static void make(test_case *c)
{
    mixt__pool_attrs *at = &c->attrs.pool;
    at->kind = !strcmp(problem_text(c, "kind", "max"), "avg") ? MIXT_POOL_AVG : MIXT_POOL_MAX;
    at->size = problem_int(c, "size", 2);
    at->stride = problem_int(c, "stride", at->size);
    at->pad = problem_int(c, "pad", 0);
    mixt__shape src = problem_shape(c, "src");
    if (src.rank == 5) {
        at->size_d = problem_int(c, "size_d", at->size);
        at->stride_d = problem_int(c, "stride_d", at->size_d);
        at->pad_d = problem_int(c, "pad_d", 0);
    }
    case_input(c, c->dtype, src);
}

/** Elements of a whole window, padding too. */
static int64_t window_size(const mixt__pool_attrs *at)
{
    return at->size * at->size * (at->size_d ? at->size_d : 1);
}

/** Positions of one window in the source; returns how many are real. */
static int64_t window(const mixt__pool_attrs *at, const mixt__shape *x, const mixt__shape *y, int64_t dst, int64_t *src)
{
    int64_t from[3], size[3] = {1, at->size, at->size}, dims[3] = {1}, rest = dst / y->dims[y->rank - 1], count = 0;
    int spatial = x->rank - 2;
    for (int i = 2; i >= 3 - spatial; i--) {
        bool depth = i == 0;
        int axis = i + spatial - 2;
        from[i] = rest % y->dims[axis] * (depth ? at->stride_d : at->stride) - (depth ? at->pad_d : at->pad);
        rest /= y->dims[axis];
        dims[i] = x->dims[axis];
    }
    if (spatial == 3)
        size[0] = at->size_d;
    else
        from[0] = 0;
    for (int64_t k = 0; k < window_size(at); k++) {
        int64_t z = from[0] + k / (size[1] * size[2]), sy = from[1] + k / size[2] % size[1], sx = from[2] + k % size[2];
        if (z >= 0 && z < dims[0] && sy >= 0 && sy < dims[1] && sx >= 0 && sx < dims[2])
            src[count++] = (((rest * dims[0] + z) * dims[1] + sy) * dims[2] + sx) * x->dims[x->rank - 1] +
                           dst % y->dims[y->rank - 1];
    }
    return count;
}

static int64_t largest(const double *x, const int64_t *src, int64_t count)
{
    int64_t best = src[0];
    for (int64_t i = 1; i < count; i++)
        if (x[src[i]] > x[best] || (isnan(x[src[i]]) && !isnan(x[best]))) // the first of equals stays, NaN wins
            best = src[i];
    return best;
}

static void expect(test_case *c)
{
    const mixt__pool_attrs *at = &c->attrs.pool;
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t *src = case_alloc(c, (size_t)window_size(at) * sizeof *src);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t count = window(at, &x->shape, &y->shape, i, src);
        double sum = 0, size = 0;
        for (int64_t k = 0; k < count; k++) {
            sum += x->value[src[k]];
            size += fabs(x->value[src[k]]);
        }
        y->value[i] = at->kind == MIXT_POOL_MAX ? x->value[largest(x->value, src, count)] : sum / (double)count;
        y->slack[i] = at->kind == MIXT_POOL_MAX ? 0 : (double)(count + 2) * U32 * size / (double)count;
    }
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "pool");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    c->grad_dst = 2;
    case_copy(c, &f->in[0]);
    case_copy(c, &f->out[0]);
    case_input(c, c->dtype, f->out[0].shape);
}

static void expect_grad(test_case *c)
{
    const mixt__pool_attrs *at = &c->attrs.pool;
    const test_tensor *x = &c->in[0], *y = &c->in[1], *dx = &c->out[0];
    int64_t *src = case_alloc(c, (size_t)window_size(at) * sizeof *src);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t count = window(at, &x->shape, &y->shape, i, src);
        double g = c->in[2].value[i], share = at->kind == MIXT_POOL_MAX ? g : g / (double)count;
        int64_t best = largest(x->value, src, count);
        for (int64_t k = 0; k < count; k++)
            if (at->kind == MIXT_POOL_AVG || src[k] == best) {
                dx->value[src[k]] += share;
                dx->slack[src[k]] += fabs(share);
            }
    }
    for (int64_t i = 0; i < dx->count;
         i++) // additions of at most as many shares as a window has elements, each rounded twice (1/count, product)
        dx->slack[i] *= (double)(window_size(at) + 2) * U32;
}

const oracle oracle_pool = {.op = "pool", .make = make, .expect = expect};
const oracle oracle_pool_grad = {.op = "pool_grad", .make = make_grad, .expect = expect_grad};
