/* Convolution of planes and of volumes (frames of a clip), and the two gradients of each.
 *
 *   conv2d  src (N, H, W, C), weight (O, KH, KW, C / groups), dst (N, H', W', O)
 *   conv3d  src (N, D, H, W, C), weight (O, KD, KH, KW, C / groups), dst (N, D', H', W', O)
 *
 * One set of rules for both: a spatial axis is a kernel, a stride, a dilation, two pads and the source's size, two or
 * three of them. A transposed convolution is the gradient with respect to a convolution's source, as a forward op: its
 * own gradients are that convolution and the gradient of that convolution's weight.
 */
#include "ops/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { AXES = 3 };

static bool is_3d(const mixt__op *op)
{
    return op == &mixt__op_conv3d || op == &mixt__op_conv3d_grad_src || op == &mixt__op_conv3d_grad_weight;
}

/** The spatial axes of a node, depth first where it has one. Returns how many they are. */
static int axes_of(const mixt__op *op, const void *attrs, mixt__conv_axis axes[AXES])
{
    const mixt__conv2d_attrs *plane = attrs;
    int count = 0;
    if (is_3d(op))
        axes[count++] = ((const mixt__conv3d_attrs *)attrs)->d;
    axes[count++] = plane->h;
    axes[count++] = plane->w;
    return count;
}

/** What a kernel spans, its holes counted. */
static int64_t reach(const mixt__conv_axis *axis)
{
    return (axis->kernel - 1) * mixt__conv_dilation(axis) + 1;
}

/** A kernel that is larger than what it slides over. */
static mixt_status too_large(const mixt__op *op, const mixt__conv_axis *axes, int count, const char *src)
{
    char kernel[96] = "", pads[160] = "", dilation[48] = "";
    size_t k = 0, p = 0;
    for (int i = 0; i < count; i++) {
        const mixt__conv_axis *a = &axes[i];
        k += (size_t)snprintf(kernel + k, sizeof kernel - k, "%s%lld", i ? " x " : "", (long long)a->kernel);
        p += (size_t)snprintf(pads + p, sizeof pads - p, a->pad == a->pad_end ? "%s%lld" : "%s%lld+%lld",
                              i ? " x " : "", (long long)a->pad, (long long)a->pad_end);
        if (mixt__conv_dilation(a) > 1)
            snprintf(dilation, sizeof dilation, " with dilation %lld", (long long)a->dilation);
    }
    return mixt__fail(MIXT_ERROR_SHAPE, "%s: a %s kernel%s does not fit into %s with pad %s", op->name, kernel,
                      dilation, src, pads);
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__conv_axis axes[AXES];
    int count = axes_of(node->op, node->attrs, axes), rank = count + 2;
    const mixt__value *x = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    int64_t groups = mixt__conv_groups(node->attrs);
    char tx[128], tw[128];
    mixt__shape_text(&x->shape, tx, sizeof tx);
    mixt__shape_text(&w->shape, tw, sizeof tw);
    if (x->shape.rank != rank || w->shape.rank != rank || x->shape.dims[rank - 1] != w->shape.dims[rank - 1] * groups)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: source %s must be (N, %sH, W, C) and weight %s (O, %sKH, KW, C%s)",
                          node->op->name, tx, count == AXES ? "D, " : "", tw, count == AXES ? "KD, " : "",
                          groups > 1 ? " / groups" : "");
    if (w->shape.dims[0] % groups)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: %lld outputs in %lld groups: must be a multiple", node->op->name,
                          (long long)w->shape.dims[0], (long long)groups);
    if (x->dtype != w->dtype)
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: source is %s, weight %s", node->op->name, mixt_dtype_name(x->dtype),
                          mixt_dtype_name(w->dtype));
    mixt__shape out = {.rank = rank, .dims = {x->shape.dims[0]}};
    for (int i = 0; i < count; i++) {
        int64_t room = x->shape.dims[i + 1] + axes[i].pad + axes[i].pad_end - reach(&axes[i]);
        if (room < 0)
            return too_large(node->op, axes, count, tx);
        out.dims[i + 1] = room / axes[i].stride + 1;
    }
    out.dims[rank - 1] = w->shape.dims[0];
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

/** 2 · outputs · kernel elements, the same for the forward and both gradients. */
static double conv_flops(const mixt__node *node, const mixt__shape *dst, double channels)
{
    mixt__conv_axis axes[AXES];
    double products = channels / (double)mixt__conv_groups(node->attrs);
    for (int i = 0, count = axes_of(node->op, node->attrs, axes); i < count; i++)
        products *= (double)axes[i].kernel;
    return 2.0 * (double)mixt__shape_count(dst) * products;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return conv_flops(node, &graph->values[node->out[0]].shape,
                      (double)mixt__last_dim(&mixt__in(graph, node, 0)->shape));
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

/** Appends to `text` as printf does; a text that is full stays as it is. */
static void append(char *text, size_t size, const char *separator, int64_t number)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%lld", separator, (long long)number);
}

/** "3x3 stride 2x1 pad 1x0+1 dilation 2x2 groups 4 +bias"; what says nothing is left out, sizes that agree are said
 *  once. */
static void describe_axes(const mixt__op *op, const void *attrs, char *text, size_t size)
{
    mixt__conv_axis axes[AXES], *last;
    const mixt__conv2d_attrs *plane = attrs;
    int count = axes_of(op, attrs, axes);
    bool even = count == 2 && plane->h.stride == plane->w.stride && plane->h.pad == plane->w.pad &&
                plane->h.pad_end == plane->w.pad_end,
         dilated = false;
    last = axes + (even ? 1 : count);
    text[0] = '\0';
    for (const mixt__conv_axis *a = axes; a < axes + count; a++) {
        append(text, size, a == axes ? "" : "x", a->kernel);
        dilated |= mixt__conv_dilation(a) > 1;
    }
    for (const mixt__conv_axis *a = axes; a < last; a++)
        append(text, size, a == axes ? " stride " : "x", a->stride);
    for (const mixt__conv_axis *a = axes; a < last; a++) {
        append(text, size, a == axes ? " pad " : "x", a->pad);
        if (a->pad != a->pad_end)
            append(text, size, "+", a->pad_end);
    }
    for (const mixt__conv_axis *a = axes; dilated && a < axes + count; a++)
        append(text, size, a == axes ? " dilation " : "x", mixt__conv_dilation(a));
    if (mixt__conv_groups(plane) > 1)
        append(text, size, " groups ", plane->groups);
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", plane->bias ? " +bias" : "");
}

static void describe(const void *attrs, char *text, size_t size)
{
    describe_axes(&mixt__op_conv2d, attrs, text, size);
}

static void describe_3d(const void *attrs, char *text, size_t size)
{
    describe_axes(&mixt__op_conv3d, attrs, text, size);
}

/* ---- gradient with respect to the source: (grad_dst, weight) → grad_src ---- */

static mixt_status src_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__conv_axis axes[AXES];
    int count = axes_of(node->op, node->attrs, axes);
    const mixt__value *dy = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    mixt__shape out = {.rank = count + 2, .dims = {dy->shape.dims[0]}};
    for (int i = 0; i < count; i++)
        out.dims[i + 1] = axes[i].src;
    out.dims[count + 1] = mixt__last_dim(&w->shape) * mixt__conv_groups(node->attrs);
    mixt__set_out(r, 0, &out, dy->dtype);
    return MIXT_OK;
}

/** Of a transposed convolution: the same convolution forwards, and the gradient of its weight. */
static mixt_status src_grad(mixt__gradients *g, const mixt__node *node)
{
    bool deep = is_3d(node->op);
    mixt__conv3d_attrs at = {0};
    int32_t x = node->in[0], w = node->in[1], dy = mixt__gradient_of(g, node->out[0]);
    memcpy(&at, node->attrs, node->op->attrs_size);
    at.plane.bias = false;
    if (mixt__gradient_wanted(g, w))
        MIXT_TRY(mixt__gradient_emit(g, deep ? &mixt__op_conv3d_grad_weight : &mixt__op_conv2d_grad_weight, &at,
                                     (int32_t[]){dy, x}, 2, &w));
    if (mixt__gradient_wanted(g, x))
        MIXT_TRY(mixt__gradient_emit(g, deep ? &mixt__op_conv3d : &mixt__op_conv2d, &at, (int32_t[]){dy, w}, 2, &x));
    return MIXT_OK;
}

static double src_flops(const mixt__graph *graph, const mixt__node *node)
{
    return conv_flops(node, &mixt__in(graph, node, 0)->shape,
                      (double)mixt__last_dim(&graph->values[node->out[0]].shape));
}

/* ---- gradient with respect to the weight: (src, grad_dst) → grad_weight ---- */

static mixt_status weight_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__conv_axis axes[AXES];
    int count = axes_of(node->op, node->attrs, axes);
    const mixt__value *x = mixt__in(graph, node, 0), *dy = mixt__in(graph, node, 1);
    mixt__shape out = {.rank = count + 2, .dims = {mixt__last_dim(&dy->shape)}};
    for (int i = 0; i < count; i++)
        out.dims[i + 1] = axes[i].kernel;
    out.dims[count + 1] = mixt__last_dim(&x->shape) / mixt__conv_groups(node->attrs);
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static double weight_flops(const mixt__graph *graph, const mixt__node *node)
{
    return conv_flops(node, &mixt__in(graph, node, 1)->shape, (double)mixt__last_dim(&mixt__in(graph, node, 0)->shape));
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
        .acts_as = #kind,                                                                                              \
        .precision = MIXT_CLASS_LOW,                                                                                   \
        .work = MIXT_WORK_CONVOLUTION,                                                                                 \
        .attrs_size = sizeof(mixt__##kind##_attrs),                                                                    \
        .matrix_work = true,                                                                                           \
        .infer = src_infer,                                                                                            \
        .grad = src_grad,                                                                                              \
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
