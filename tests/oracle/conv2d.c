/* 2-D convolution and its two gradients, by their defining sums in FP64; bounds as for a matrix product, which a
 * library may make. */
#include "oracle/oracle.h"

#include <math.h>

static void make(test_case *c)
{
    mixt__shape x = problem_shape(c, "src");
    mixt__conv2d_attrs *at = &c->attrs.conv2d;
    int64_t kernel = problem_int(c, "kernel", 1), channels = problem_int(c, "channels", 1);
    *at = (mixt__conv2d_attrs){.kernel_h = problem_int(c, "kernel_h", kernel),
                               .kernel_w = problem_int(c, "kernel_w", kernel)};
    at->stride = problem_int(c, "stride", 1);
    at->pad = problem_int(c, "pad", 0);
    at->bias = problem_int(c, "bias", 0) != 0;
    at->src_h = x.dims[1];
    at->src_w = x.dims[2];
    case_input(c, c->dtype, x);
    case_input(c, c->dtype, (mixt__shape){4, {channels, at->kernel_h, at->kernel_w, x.dims[3]}});
    if (at->bias)
        case_input(c, MIXT_DTYPE_FP32, (mixt__shape){1, {channels}});
}

typedef struct tap { // one product: dst position, source position, weight position
    int64_t dst, src, weight;
} tap;

typedef void visit_fn(test_case *c, tap at);

/** Every product of the convolution once. */
static void each_product(test_case *c, const mixt__shape *x, const mixt__shape *w, const mixt__shape *y,
                         visit_fn *visit)
{
    const mixt__conv2d_attrs *at = &c->attrs.conv2d;
    const int64_t *dx = x->dims, *dw = w->dims, *dy = y->dims;
    for (int64_t i = 0; i < dy[0] * dy[1] * dy[2]; i++) {
        int64_t n = i / (dy[1] * dy[2]), oy = i / dy[2] % dy[1], ox = i % dy[2];
        for (int64_t k = 0; k < dw[1] * dw[2]; k++) {
            int64_t sy = oy * at->stride - at->pad + k / dw[2], sx = ox * at->stride - at->pad + k % dw[2];
            if (sy < 0 || sy >= dx[1] || sx < 0 || sx >= dx[2])
                continue;
            for (int64_t o = 0; o < dw[0]; o++)
                for (int64_t ch = 0; ch < dw[3]; ch++)
                    visit(c, (tap){i * dw[0] + o, ((n * dx[1] + sy) * dx[2] + sx) * dx[3] + ch,
                                   (o * dw[1] * dw[2] + k) * dw[3] + ch});
        }
    }
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
        y->value[i] = c->attrs.conv2d.bias ? c->in[2].value[i % w->dims[0]] : 0;
    each_product(c, &c->in[0].shape, w, &y->shape, forward_product);
    double products = (double)(w->dims[1] * w->dims[2] * w->dims[3]);
    bound(c, y, products);
    for (int64_t i = 0; c->attrs.conv2d.bias && i < y->count; i++)
        y->slack[i] += (products + 3) * U32 * fabs(c->in[2].value[i % w->dims[0]]);
}

/* ---- gradients ---- */

static void make_grad(test_case *c, bool of_src)
{
    test_case *f = case_inner(c, "conv2d");
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
    bound(c, &c->out[0], (double)(w->dims[0] * w->dims[1] * w->dims[2]));
}

static void expect_weight(test_case *c)
{
    const mixt__shape *y = &c->in[1].shape;
    each_product(c, &c->in[0].shape, &c->out[0].shape, y, weight_product);
    bound(c, &c->out[0], (double)(y->dims[0] * y->dims[1] * y->dims[2]));
}

const oracle oracle_conv2d = {.op = "conv2d", .make = make, .expect = expect, .exact_integers = true};
const oracle oracle_conv2d_grad_src = {
    .op = "conv2d_grad_src", .make = make_src, .expect = expect_src, .exact_integers = true};
const oracle oracle_conv2d_grad_weight = {
    .op = "conv2d_grad_weight", .make = make_weight, .expect = expect_weight, .exact_integers = true};
