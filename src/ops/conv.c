/* Convolution of planes and of volumes (frames of a clip), and the two gradients of each.
 *
 *   conv2d  src (N, H, W, C), weight (O, KH, KW, C), dst (N, H', W', O)
 *   conv3d  src (N, D, H, W, C), weight (O, KD, KH, KW, C), dst (N, D', H', W', O)
 *
 * One set of rules for both: a spatial axis is a kernel, a stride, a pad and the source's size, two or three of them.
 */
#include "ops/rules.h"

#include <math.h>
#include <stdio.h>

enum { AXES = 3 };

typedef struct axis {
    int64_t kernel, stride, pad, src;
} axis;

static bool is_3d(const mixt__op *op)
{
    return op == &mixt__op_conv3d || op == &mixt__op_conv3d_grad_src || op == &mixt__op_conv3d_grad_weight;
}

/** The spatial axes of a node, depth first where it has one. Returns how many they are. */
static int axes_of(const mixt__op *op, const void *attrs, axis axes[AXES])
{
    const mixt__conv2d_attrs *plane = attrs;
    int count = 0;
    if (is_3d(op)) {
        const mixt__conv3d_attrs *at = attrs;
        axes[count++] = (axis){at->kernel_d, at->stride_d, at->pad_d, at->src_d};
    }
    axes[count++] = (axis){plane->kernel_h, plane->stride, plane->pad, plane->src_h};
    axes[count++] = (axis){plane->kernel_w, plane->stride, plane->pad, plane->src_w};
    return count;
}

/** A kernel that is larger than what it slides over. */
static mixt_status too_large(const mixt__op *op, const void *attrs, const char *src)
{
    const mixt__conv3d_attrs *at = attrs;
    const mixt__conv2d_attrs *plane = attrs;
    if (is_3d(op))
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "conv3d: a %lld x %lld x %lld kernel does not fit into %s with pad %lld, %lld in depth",
                          (long long)at->kernel_d, (long long)plane->kernel_h, (long long)plane->kernel_w, src,
                          (long long)plane->pad, (long long)at->pad_d);
    return mixt__fail(MIXT_ERROR_SHAPE, "conv2d: a %lld x %lld kernel does not fit into %s with pad %lld",
                      (long long)plane->kernel_h, (long long)plane->kernel_w, src, (long long)plane->pad);
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    axis axes[AXES];
    int count = axes_of(node->op, node->attrs, axes), rank = count + 2;
    const mixt__value *x = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    char tx[128], tw[128];
    mixt__shape_text(&x->shape, tx, sizeof tx);
    mixt__shape_text(&w->shape, tw, sizeof tw);
    if (x->shape.rank != rank || w->shape.rank != rank || x->shape.dims[rank - 1] != w->shape.dims[rank - 1])
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: source %s must be (N, %sH, W, C) and weight %s (O, %sKH, KW, C)",
                          node->op->name, tx, count == AXES ? "D, " : "", tw, count == AXES ? "KD, " : "");
    if (x->dtype != w->dtype)
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: source is %s, weight %s", node->op->name, mixt_dtype_name(x->dtype),
                          mixt_dtype_name(w->dtype));
    mixt__shape out = {.rank = rank, .dims = {x->shape.dims[0]}};
    for (int i = 0; i < count; i++) {
        int64_t room = x->shape.dims[i + 1] + 2 * axes[i].pad - axes[i].kernel;
        if (room < 0)
            return too_large(node->op, node->attrs, tx);
        out.dims[i + 1] = room / axes[i].stride + 1;
    }
    out.dims[rank - 1] = w->shape.dims[0];
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

/** 2 · outputs · kernel elements, the same for the forward and both gradients. */
static double conv_flops(const mixt__node *node, const mixt__shape *dst, const mixt__shape *channels)
{
    axis axes[AXES];
    double products = (double)mixt__last_dim(channels);
    for (int i = 0, count = axes_of(node->op, node->attrs, axes); i < count; i++)
        products *= (double)axes[i].kernel;
    return 2.0 * (double)mixt__shape_count(dst) * products;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return conv_flops(node, &graph->values[node->out[0]].shape, &mixt__in(graph, node, 0)->shape);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    const mixt__conv2d_attrs *at = node->attrs;
    bool deep = is_3d(node->op);
    int32_t x = node->in[0], w = node->in[1], dy = mixt__gradient_of(g, node->out[0]);
    if (at->bias && mixt__gradient_wanted(g, node->in[2])) {
        mixt__reduce_attrs channels = {.axes = deep ? 15 : 7};
        MIXT_TRY(mixt__gradient_emit(g, &mixt__op_reduce, &channels, &dy, 1, &node->in[2]));
    }
    if (mixt__gradient_wanted(g, w))
        MIXT_TRY(mixt__gradient_emit(g, deep ? &mixt__op_conv3d_grad_weight : &mixt__op_conv2d_grad_weight, at,
                                     (int32_t[]){x, dy}, 2, &w));
    if (mixt__gradient_wanted(g, x))
        MIXT_TRY(mixt__gradient_emit(g, deep ? &mixt__op_conv3d_grad_src : &mixt__op_conv2d_grad_src, at,
                                     (int32_t[]){dy, w}, 2, &x));
    return MIXT_OK;
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__conv2d_attrs *at = attrs;
    snprintf(text, size, "%lldx%lld stride %lld pad %lld%s", (long long)at->kernel_h, (long long)at->kernel_w,
             (long long)at->stride, (long long)at->pad, at->bias ? " +bias" : "");
}

static void describe_3d(const void *attrs, char *text, size_t size)
{
    const mixt__conv3d_attrs *at = attrs;
    const mixt__conv2d_attrs *plane = &at->plane;
    snprintf(text, size, "%lldx%lldx%lld stride %lldx%lld pad %lldx%lld%s", (long long)at->kernel_d,
             (long long)plane->kernel_h, (long long)plane->kernel_w, (long long)at->stride_d, (long long)plane->stride,
             (long long)at->pad_d, (long long)plane->pad, plane->bias ? " +bias" : "");
}

/* ---- gradient with respect to the source: (grad_dst, weight) → grad_src ---- */

static mixt_status src_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    axis axes[AXES];
    int count = axes_of(node->op, node->attrs, axes);
    const mixt__value *dy = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    mixt__shape out = {.rank = count + 2, .dims = {dy->shape.dims[0]}};
    for (int i = 0; i < count; i++)
        out.dims[i + 1] = axes[i].src;
    out.dims[count + 1] = mixt__last_dim(&w->shape);
    mixt__set_out(r, 0, &out, dy->dtype);
    return MIXT_OK;
}

static double src_flops(const mixt__graph *graph, const mixt__node *node)
{
    return conv_flops(node, &mixt__in(graph, node, 0)->shape, &mixt__in(graph, node, 1)->shape);
}

/* ---- gradient with respect to the weight: (src, grad_dst) → grad_weight ---- */

static mixt_status weight_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    axis axes[AXES];
    int count = axes_of(node->op, node->attrs, axes);
    const mixt__value *x = mixt__in(graph, node, 0), *dy = mixt__in(graph, node, 1);
    mixt__shape out = {.rank = count + 2, .dims = {mixt__last_dim(&dy->shape)}};
    for (int i = 0; i < count; i++)
        out.dims[i + 1] = axes[i].kernel;
    out.dims[count + 1] = mixt__last_dim(&x->shape);
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static double weight_flops(const mixt__graph *graph, const mixt__node *node)
{
    return conv_flops(node, &mixt__in(graph, node, 1)->shape, &mixt__in(graph, node, 0)->shape);
}

/* ---- records ---- */

#define CONVOLUTION(kind, description)                                                                                 \
    const mixt__op mixt__op_##kind = {                                                                                 \
        .name = #kind,                                                                                                 \
        .precision = MIXT_CLASS_LOW,                                                                                   \
        .work = MIXT_WORK_CONVOLUTION,                                                                                 \
        .attrs_size = sizeof(mixt__##kind##_attrs),                                                                    \
        .fp32_inputs = 1u << 2,                                                                                        \
        .matrix_work = true,                                                                                           \
        .infer = infer,                                                                                                \
        .grad = grad,                                                                                                  \
        .flops = flops,                                                                                                \
        .describe = description,                                                                                       \
    };                                                                                                                 \
    const mixt__op mixt__op_##kind##_grad_src = {                                                                      \
        .name = #kind "_grad_src",                                                                                     \
        .precision = MIXT_CLASS_LOW,                                                                                   \
        .work = MIXT_WORK_CONVOLUTION,                                                                                 \
        .attrs_size = sizeof(mixt__##kind##_attrs),                                                                    \
        .matrix_work = true,                                                                                           \
        .infer = src_infer,                                                                                            \
        .flops = src_flops,                                                                                            \
        .describe = description,                                                                                       \
    };                                                                                                                 \
    const mixt__op mixt__op_##kind##_grad_weight = {                                                                   \
        .name = #kind "_grad_weight",                                                                                  \
        .precision = MIXT_CLASS_LOW,                                                                                   \
        .work = MIXT_WORK_CONVOLUTION,                                                                                 \
        .attrs_size = sizeof(mixt__##kind##_attrs),                                                                    \
        .accumulate_outputs = 1,                                                                                       \
        .matrix_work = true,                                                                                           \
        .infer = weight_infer,                                                                                         \
        .flops = weight_flops,                                                                                         \
        .describe = description,                                                                                       \
    }

CONVOLUTION(conv2d, describe);
CONVOLUTION(conv3d, describe_3d);

/* ---- builder ---- */

/** What both builder functions take besides the attributes. */
typedef struct layer {
    const mixt__op *op;
    int64_t channels;
    float init;
} layer;

/** Refuses what makes no convolution; false: an error has been recorded. */
static bool is_sound(mixt_builder *b, const char *name, const layer *l, const axis *axes, int count)
{
    bool sound = l->channels > 0;
    for (int i = 0; i < count; i++)
        sound = sound && axes[i].kernel > 0 && axes[i].stride > 0;
    if (!sound) {
        mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name,
                            "%s needs .channels and .kernel of at least 1 and a stride of at least 1", l->op->name);
        return false;
    }
    for (int i = 0; i < count; i++)
        if (axes[i].pad < 0 || axes[i].pad > MIXT_ELEMENTS_MAX) {
            mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name, "%s with a pad of %lld: must be from 0 to 2^44",
                                l->op->name, (long long)axes[i].pad);
            return false;
        }
    return l->init == MIXT_AUTO || mixt__builder_number(b, name, ".init", l->init);
}

/** A convolution whose attributes are filled in but for the sizes of the source. */
static mixt_value convolve(mixt_builder *b, const char *name, mixt_value x, const layer *l, mixt__conv3d_attrs *at)
{
    if (!mixt__builder_ready(b, name, &x, 1))
        return (mixt_value){0};
    axis axes[AXES];
    mixt__shape s = b->graph->values[x.id].shape;
    int count = axes_of(l->op, at, axes), rank = count + 2;
    if (s.rank != rank) {
        char text[128];
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, name, "%s needs (N, %sH, W, C), got %s", l->op->name,
                                   count == AXES ? "D, " : "", mixt__shape_text(&s, text, sizeof text));
    }
    if (!is_sound(b, name, l, axes, count))
        return (mixt_value){0};
    at->src_d = s.dims[1];
    at->plane.src_h = s.dims[rank - 3];
    at->plane.src_w = s.dims[rank - 2];
    double inputs = (double)s.dims[rank - 1];
    mixt__param weight = {.shape = {.rank = rank, .dims = {l->channels}}, .trainable = true, .decay = true};
    for (int i = 0; i < count; i++) {
        weight.shape.dims[i + 1] = axes[i].kernel;
        inputs *= (double)axes[i].kernel;
    }
    weight.shape.dims[rank - 1] = s.dims[rank - 1];
    weight.init = MIXT_INIT_UNIFORM;
    weight.init_scale = 1.0f / sqrtf((float)inputs);
    mixt__param bias = {
        .shape = {1, {l->channels}}, .trainable = true, .init = MIXT_INIT_UNIFORM, .init_scale = weight.init_scale};
    if (l->init != MIXT_AUTO) {
        weight.init = l->init > 0 ? MIXT_INIT_NORMAL : MIXT_INIT_ZERO;
        weight.init_scale = l->init;
        bias.init = MIXT_INIT_ZERO;
    }
    mixt_value in[3] = {x, mixt__builder_param(b, name, "weight", &weight)};
    if (at->plane.bias)
        in[2] = mixt__builder_param(b, name, "bias", &bias);
    return mixt__builder_node(b, l->op, name, at, in, at->plane.bias ? 3 : 2);
}

MIXT_PLAY(mixt_conv2d_with, out[0] = mixt_conv2d_with(b, c->name, in[0], options))

mixt_value mixt_conv2d_with(mixt_builder *b, const char *name, mixt_value x, const mixt_conv2d_options *given)
{
    mixt_conv2d_options own = MIXT_OPTIONS(mixt_conv2d_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_conv2d_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_conv2d_with, .name = name, .in = {x}, .in_count = 1, .options = &own,
                .options_size = sizeof own);
    mixt__conv3d_attrs at = {.plane = {.kernel_h = o->kernel_h == MIXT_AUTO ? o->kernel : o->kernel_h,
                                       .kernel_w = o->kernel_w == MIXT_AUTO ? o->kernel : o->kernel_w,
                                       .stride = o->stride,
                                       .pad = o->pad,
                                       .bias = !o->no_bias}};
    layer l = {&mixt__op_conv2d, o->channels, o->init};
    return convolve(b, name, x, &l, &at);
}

MIXT_PLAY(mixt_conv3d_with, out[0] = mixt_conv3d_with(b, c->name, in[0], options))

mixt_value mixt_conv3d_with(mixt_builder *b, const char *name, mixt_value x, const mixt_conv3d_options *given)
{
    mixt_conv3d_options own = MIXT_OPTIONS(mixt_conv3d_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_conv3d_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_conv3d_with, .name = name, .in = {x}, .in_count = 1, .options = &own,
                .options_size = sizeof own);
    mixt__conv3d_attrs at = {.plane = {.kernel_h = o->kernel,
                                       .kernel_w = o->kernel,
                                       .stride = o->stride,
                                       .pad = o->pad,
                                       .bias = !o->no_bias},
                             .kernel_d = o->kernel_d == MIXT_AUTO ? o->kernel : o->kernel_d,
                             .stride_d = o->stride_d == MIXT_AUTO ? o->stride : o->stride_d,
                             .pad_d = o->pad_d};
    layer l = {&mixt__op_conv3d, o->channels, o->init};
    return convolve(b, name, x, &l, &at);
}
