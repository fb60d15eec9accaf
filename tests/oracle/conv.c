/* Convolution of planes and volumes and the two gradients of each, by their defining sums in FP64; bounds as for a
 * matrix product, which a library may make. */
#include "oracle/oracle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** One axis from the keys `name`, `name_h` and the like; `pad_end` alone is behind on all axes. */
static mixt__conv_axis axis_of(test_case *c, const char *suffix, const mixt__conv_axis *all, int64_t src)
{
    char key[32];
#define KEY(name) (snprintf(key, sizeof key, "%s_%s", name, suffix), key)
    mixt__conv_axis at = {.src = src};
    at.kernel = problem_int(c, KEY("kernel"), all->kernel);
    at.stride = problem_int(c, KEY("stride"), all->stride);
    at.dilation = problem_int(c, KEY("dilation"), all->dilation);
    at.pad = problem_int(c, KEY("pad"), suffix[0] == 'd' ? 0 : all->pad);
    at.pad_end = problem_int(c, KEY("pad_end"), all->pad_end < 0 ? at.pad : all->pad_end);
#undef KEY
    return at;
}

/** Fills the attributes and inputs of conv2d or, with a source of five dimensions, conv3d. */
static void make(test_case *c)
{
    mixt__shape x = problem_shape(c, "src");
    mixt__conv3d_attrs *whole = &c->attrs.conv3d;
    mixt__conv2d_attrs *at = &whole->plane;
    bool deep = !strcmp(c->op->name, "conv3d");
    mixt__conv_axis all = {problem_int(c, "kernel", 1), problem_int(c, "stride", 1),   problem_int(c, "dilation", 1),
                           problem_int(c, "pad", 0),    problem_int(c, "pad_end", -1), 0};
    int64_t channels = problem_int(c, "channels", 1);
    *at = (mixt__conv2d_attrs){.groups = problem_int(c, "groups", 1), .bias = problem_int(c, "bias", 0) != 0};
    at->h = axis_of(c, "h", &all, x.dims[deep + 1]);
    at->w = axis_of(c, "w", &all, x.dims[deep + 2]);
    case_input(c, c->dtype, x);
    if (deep) {
        whole->d = axis_of(c, "d", &all, x.dims[1]);
        case_input(c, c->dtype,
                   (mixt__shape){5, {channels, whole->d.kernel, at->h.kernel, at->w.kernel, x.dims[4] / at->groups}});
    } else {
        case_input(c, c->dtype, (mixt__shape){4, {channels, at->h.kernel, at->w.kernel, x.dims[3] / at->groups}});
    }
    if (at->bias)
        case_input(c, MIXT_DTYPE_FP32, (mixt__shape){1, {channels}});
}

typedef struct tap { // one product: dst position, source position, weight position
    int64_t dst, src, weight;
} tap;

typedef void visit_fn(test_case *c, tap at);

/** Sizes of a tensor as (N, D, H, W, C), D 1 where it has none. */
static void volume(const mixt__shape *shape, int64_t dims[5])
{
    bool deep = shape->rank == 5;
    dims[0] = shape->dims[0];
    dims[1] = deep ? shape->dims[1] : 1;
    for (int i = 2; i < 5; i++)
        dims[i] = shape->dims[i - !deep];
}

/** Every product of the convolution once. */
static void each_product(test_case *c, const mixt__shape *x, const mixt__shape *w, const mixt__shape *y,
                         visit_fn *visit)
{
    const mixt__conv3d_attrs *whole = &c->attrs.conv3d;
    const mixt__conv_axis *h = &whole->plane.h, *v = &whole->plane.w, none = {1, 1, 1, 0, 0, 1},
                          *d = x->rank == 5 ? &whole->d : &none;
    int64_t dx[5], dw[5], dy[5], groups = whole->plane.groups;
    volume(x, dx);
    volume(w, dw);
    volume(y, dy);
    for (int64_t i = 0; i < dy[0] * dy[1] * dy[2] * dy[3]; i++) {
        int64_t n = i / (dy[1] * dy[2] * dy[3]), oz = i / dy[3] / dy[2] % dy[1], oy = i / dy[3] % dy[2], ox = i % dy[3];
        for (int64_t k = 0; k < dw[1] * dw[2] * dw[3]; k++) {
            int64_t sz = oz * d->stride - d->pad + k / dw[3] / dw[2] * d->dilation;
            int64_t sy = oy * h->stride - h->pad + k / dw[3] % dw[2] * h->dilation;
            int64_t sx = ox * v->stride - v->pad + k % dw[3] * v->dilation;
            if (sz < 0 || sz >= dx[1] || sy < 0 || sy >= dx[2] || sx < 0 || sx >= dx[3])
                continue;
            for (int64_t o = 0; o < dw[0]; o++)
                for (int64_t ch = 0; ch < dw[4]; ch++)
                    visit(c, (tap){i * dw[0] + o,
                                   (((n * dx[1] + sz) * dx[2] + sy) * dx[3] + sx) * dx[4] + o * groups / dw[0] * dw[4] +
                                       ch,
                                   (o * dw[1] * dw[2] * dw[3] + k) * dw[4] + ch});
        }
    }
}

/** Product of the dimensions from `first` to before `last`. */
static double product(const mixt__shape *shape, int first, int last)
{
    double count = 1;
    for (int i = first; i < last; i++)
        count *= (double)shape->dims[i];
    return count;
}

static void add_product(test_tensor *sum, int64_t at, double product)
{
    sum->value[at] += product;
    sum->slack[at] += fabs(product);
}

static void bound(const test_case *c, test_tensor *sum, double products)
{
    double operands = 2 * number_operand(c);
    for (int64_t i = 0; i < sum->count; i++)
        sum->slack[i] *= (products + 3) * U32 + operands * (2 + operands);
}

static void forward_product(test_case *c, tap at)
{
    add_product(&c->out[0], at.dst, c->in[0].value[at.src] * c->in[1].value[at.weight]);
}

static void expect(test_case *c)
{
    test_tensor *y = &c->out[0];
    const mixt__shape *w = &c->in[1].shape;
    for (int64_t i = 0; i < y->count; i++)
        y->value[i] = c->attrs.conv3d.plane.bias ? c->in[2].value[i % w->dims[0]] : 0;
    each_product(c, &c->in[0].shape, w, &y->shape, forward_product);
    double products = product(w, 1, w->rank);
    bound(c, y, products);
    for (int64_t i = 0; c->attrs.conv3d.plane.bias && i < y->count; i++)
        y->slack[i] += (products + 3) * U32 * fabs(c->in[2].value[i % w->dims[0]]);
}

/* ---- gradients ---- */

static void make_grad(test_case *c, bool of_src)
{
    test_case *f = case_inner(c, strncmp(c->op->name, "conv3d", 6) ? "conv2d" : "conv3d");
    make(f);
    case_run(f);
    c->error = f->error;
    c->attrs = f->attrs;
    c->grad_of[0] = of_src ? 0 : 1;
    c->grad_dst = of_src ? 0 : 1;
    if (!of_src)
        case_copy(c, &f->in[0]);
    if (!c->error)
        case_input(c, c->dtype, f->out[0].shape);
    if (of_src)
        case_copy(c, &f->in[1]);
}

static void make_src(test_case *c)
{
    make_grad(c, true);
}

static void make_weight(test_case *c)
{
    make_grad(c, false);
}

static void src_product(test_case *c, tap at)
{
    add_product(&c->out[0], at.src, c->in[0].value[at.dst] * c->in[1].value[at.weight]);
}

static void weight_product(test_case *c, tap at)
{
    add_product(&c->out[0], at.weight, c->in[0].value[at.src] * c->in[1].value[at.dst]);
}

static void expect_src(test_case *c)
{
    const mixt__shape *w = &c->in[1].shape;
    each_product(c, &c->out[0].shape, w, &c->in[0].shape, src_product);
    bound(c, &c->out[0], product(w, 0, w->rank - 1) / (double)c->attrs.conv3d.plane.groups);
}

static void expect_weight(test_case *c)
{
    const mixt__shape *y = &c->in[1].shape;
    each_product(c, &c->in[0].shape, &c->out[0].shape, y, weight_product);
    bound(c, &c->out[0], product(y, 0, y->rank - 1));
}

#define CONVOLUTION(kind)                                                                                              \
    const oracle oracle_##kind = {.op = #kind, .make = make, .expect = expect, .exact_integers = true};                \
    const oracle oracle_##kind##_grad_src = {                                                                          \
        .op = #kind "_grad_src", .make = make_src, .expect = expect_src, .exact_integers = true};                      \
    const oracle oracle_##kind##_grad_weight = {                                                                       \
        .op = #kind "_grad_weight", .make = make_weight, .expect = expect_weight, .exact_integers = true}

CONVOLUTION(conv2d);
CONVOLUTION(conv3d);
