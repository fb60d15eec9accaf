/* Max and average pooling and the gradient. Maxima are exact; averages round once an addition and once a division. */
#include "oracle/oracle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** One axis from keys like size_h; what an axis does not have is said for all. */
static mixt__pool_axis axis_of(test_case *c, const char *suffix, const mixt__pool_axis *all)
{
    char key[32];
#define KEY(name) (snprintf(key, sizeof key, "%s_%s", name, suffix), key)
    mixt__pool_axis a;
    a.size = problem_int(c, KEY("size"), all->size);
    a.stride = problem_int(c, KEY("stride"), all->stride ? all->stride : a.size);
    a.dilation = problem_int(c, KEY("dilation"), all->dilation);
    a.pad = problem_int(c, KEY("pad"), all->pad);
    a.pad_end = problem_int(c, KEY("pad_end"), all->pad_end < 0 ? a.pad : all->pad_end);
#undef KEY
    return a;
}

static void make(test_case *c)
{
    mixt__pool_attrs *at = &c->attrs.pool;
    at->kind = !strcmp(problem_text(c, "kind", "max"), "avg") ? MIXT_POOL_AVG : MIXT_POOL_MAX;
    mixt__pool_axis all = {problem_int(c, "size", 2), problem_int(c, "stride", 0), problem_int(c, "dilation", 1),
                           problem_int(c, "pad", 0), problem_int(c, "pad_end", -1)};
    mixt__shape src = problem_shape(c, "src");
    at->h = axis_of(c, "h", &all);
    at->w = axis_of(c, "w", &all);
    if (src.rank == 5) {
        all.stride = all.pad = 0;
        at->d = axis_of(c, "d", &all);
    }
    at->ceil = problem_int(c, "ceil", 0) != 0;
    at->count_pad = problem_int(c, "count_pad", 0) != 0;
    case_input(c, c->dtype, src);
}

/** Elements of a whole window, padding too. */
static int64_t window_size(const mixt__pool_attrs *at)
{
    return at->h.size * at->w.size * (at->d.size ? at->d.size : 1);
}

/** Positions of one window in the source; returns how many are real, and those that an average counts in *counted. */
static int64_t window(const mixt__pool_attrs *at, const mixt__shape *x, const mixt__shape *y, int64_t dst, int64_t *src,
                      int64_t *counted)
{
    const mixt__pool_axis none = {1, 1, 1, 0, 0}, *axes[3] = {at->d.size ? &at->d : &none, &at->h, &at->w};
    int64_t from[3] = {0}, dims[3] = {1}, rest = dst / y->dims[y->rank - 1], count = 0;
    int spatial = x->rank - 2;
    for (int i = 2; i >= 3 - spatial; i--) {
        int axis = i + spatial - 2;
        from[i] = rest % y->dims[axis] * axes[i]->stride - axes[i]->pad;
        rest /= y->dims[axis];
        dims[i] = x->dims[axis];
    }
    *counted = 0;
    for (int64_t k = 0; k < window_size(at); k++) {
        int64_t tap[3] = {k / axes[1]->size / axes[2]->size, k / axes[2]->size % axes[1]->size, k % axes[2]->size};
        bool real = true, padded = true;
        for (int i = 0; i < 3; i++) {
            tap[i] = from[i] + tap[i] * axes[i]->dilation;
            real = real && tap[i] >= 0 && tap[i] < dims[i];
            padded = padded && tap[i] < dims[i] + axes[i]->pad_end;
        }
        *counted += at->count_pad ? padded : real;
        if (real)
            src[count++] = (((rest * dims[0] + tap[0]) * dims[1] + tap[1]) * dims[2] + tap[2]) * x->dims[x->rank - 1] +
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
        int64_t divisor, count = window(at, &x->shape, &y->shape, i, src, &divisor);
        double sum = 0, size = 0;
        for (int64_t k = 0; k < count; k++) {
            sum += x->value[src[k]];
            size += fabs(x->value[src[k]]);
        }
        y->value[i] = at->kind == MIXT_POOL_MAX ? x->value[largest(x->value, src, count)] : sum / (double)divisor;
        y->slack[i] = at->kind == MIXT_POOL_MAX ? 0 : (double)(count + 2) * U32 * size / (double)divisor;
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
        int64_t divisor, count = window(at, &x->shape, &y->shape, i, src, &divisor);
        double g = c->in[2].value[i], share = at->kind == MIXT_POOL_MAX ? g : g / (double)divisor;
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
