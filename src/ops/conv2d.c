/* 2-D convolution: src (N, H, W, C), weight (O, KH, KW, C), dst (N, H', W', O); and its two gradients. */
#include "ops/rules.h"

#include <math.h>
#include <stdio.h>

static int64_t out_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad)
{
    return (size + 2 * pad - kernel) / stride + 1;
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__conv2d_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    char tx[128], tw[128];
    mixt__shape_text(&x->shape, tx, sizeof tx);
    mixt__shape_text(&w->shape, tw, sizeof tw);
    if (x->shape.rank != 4 || w->shape.rank != 4 || x->shape.dims[3] != w->shape.dims[3])
        return mixt__fail(MIXT_ERROR_SHAPE, "conv2d: source %s must be (N, H, W, C) and weight %s (O, KH, KW, C)", tx,
                          tw);
    if (x->dtype != w->dtype)
        return mixt__fail(MIXT_ERROR_DTYPE, "conv2d: source is %s, weight %s", mixt_dtype_name(x->dtype),
                          mixt_dtype_name(w->dtype));
    if (at->kernel_h > x->shape.dims[1] + 2 * at->pad || at->kernel_w > x->shape.dims[2] + 2 * at->pad)
        return mixt__fail(MIXT_ERROR_SHAPE, "conv2d: a %lld x %lld kernel does not fit into %s with pad %lld",
                          (long long)at->kernel_h, (long long)at->kernel_w, tx, (long long)at->pad);
    mixt__shape out = {4,
                       {x->shape.dims[0], out_size(x->shape.dims[1], at->kernel_h, at->stride, at->pad),
                        out_size(x->shape.dims[2], at->kernel_w, at->stride, at->pad), w->shape.dims[0]}};
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

/** 2 · outputs · kernel elements, the same for the forward and both gradients. */
static double conv_flops(const mixt__shape *dst, const mixt__conv2d_attrs *at, int64_t channels)
{
    return 2.0 * (double)mixt__shape_count(dst) * (double)(at->kernel_h * at->kernel_w * channels);
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return conv_flops(&graph->values[node->out[0]].shape, node->attrs, mixt__in(graph, node, 0)->shape.dims[3]);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    const mixt__conv2d_attrs *at = node->attrs;
    int32_t x = node->in[0], w = node->in[1], dy = mixt__gradient_of(g, node->out[0]);
    if (at->bias && mixt__gradient_wanted(g, node->in[2])) {
        mixt__reduce_attrs channels = {.axes = 7};
        MIXT_TRY(mixt__gradient_emit(g, &mixt__op_reduce, &channels, &dy, 1, &node->in[2]));
    }
    if (mixt__gradient_wanted(g, w))
        MIXT_TRY(mixt__gradient_emit(g, &mixt__op_conv2d_grad_weight, at, (int32_t[]){x, dy}, 2, &w));
    if (mixt__gradient_wanted(g, x))
        MIXT_TRY(mixt__gradient_emit(g, &mixt__op_conv2d_grad_src, at, (int32_t[]){dy, w}, 2, &x));
    return MIXT_OK;
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__conv2d_attrs *at = attrs;
    snprintf(text, size, "%lldx%lld stride %lld pad %lld%s", (long long)at->kernel_h, (long long)at->kernel_w,
             (long long)at->stride, (long long)at->pad, at->bias ? " +bias" : "");
}

const mixt__op mixt__op_conv2d = {
    .name = "conv2d",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_CONVOLUTION,
    .attrs_size = sizeof(mixt__conv2d_attrs),
    .fp32_inputs = 1u << 2,
    .matrix_work = true,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .describe = describe,
};

/* ---- gradient with respect to the source: (grad_dst, weight) → grad_src ---- */

static mixt_status src_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__conv2d_attrs *at = node->attrs;
    const mixt__value *dy = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    mixt__shape out = {4, {dy->shape.dims[0], at->src_h, at->src_w, w->shape.dims[3]}};
    mixt__set_out(r, 0, &out, dy->dtype);
    return MIXT_OK;
}

static double src_flops(const mixt__graph *graph, const mixt__node *node)
{
    return conv_flops(&mixt__in(graph, node, 0)->shape, node->attrs, mixt__in(graph, node, 1)->shape.dims[3]);
}

const mixt__op mixt__op_conv2d_grad_src = {
    .name = "conv2d_grad_src",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_CONVOLUTION,
    .attrs_size = sizeof(mixt__conv2d_attrs),
    .matrix_work = true,
    .infer = src_infer,
    .flops = src_flops,
    .describe = describe,
};

/* ---- gradient with respect to the weight: (src, grad_dst) → grad_weight ---- */

static mixt_status weight_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__conv2d_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0), *dy = mixt__in(graph, node, 1);
    mixt__shape out = {4, {dy->shape.dims[3], at->kernel_h, at->kernel_w, x->shape.dims[3]}};
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static double weight_flops(const mixt__graph *graph, const mixt__node *node)
{
    return conv_flops(&mixt__in(graph, node, 1)->shape, node->attrs, mixt__in(graph, node, 0)->shape.dims[3]);
}

const mixt__op mixt__op_conv2d_grad_weight = {
    .name = "conv2d_grad_weight",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_CONVOLUTION,
    .attrs_size = sizeof(mixt__conv2d_attrs),
    .accumulate_outputs = 1,
    .matrix_work = true,
    .infer = weight_infer,
    .flops = weight_flops,
    .describe = describe,
};

mixt_value mixt_conv2d_with(mixt_builder *b, const char *name, mixt_value x, const mixt_conv2d_options *o)
{
    if (!mixt__builder_ready(b, name, &x, 1))
        return (mixt_value){0};
    o = o ? o : &(mixt_conv2d_options){0};
    mixt__shape s = b->graph->values[x.id].shape;
    mixt__conv2d_attrs at = {.kernel_h = o->kernel_h ? o->kernel_h : o->kernel,
                             .kernel_w = o->kernel_w ? o->kernel_w : o->kernel};
    at.stride = o->stride ? o->stride : 1;
    at.pad = o->pad;
    at.bias = !o->no_bias;
    if (s.rank != 4) {
        char text[128];
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, name, "conv2d needs (N, H, W, C), got %s",
                                   mixt__shape_text(&s, text, sizeof text));
    }
    if (o->channels <= 0 || at.kernel_h <= 0 || at.kernel_w <= 0 || at.stride <= 0)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name,
                                   "conv2d needs .channels and .kernel of at least 1 and a stride of at least 1");
    if (at.pad < 0 || at.pad > MIXT_ELEMENTS_MAX)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name, "conv2d with a pad of %lld: must be from 0 to 2^44",
                                   (long long)at.pad);
    if (!mixt__builder_number(b, name, ".init", o->init))
        return (mixt_value){0};
    at.src_h = s.dims[1];
    at.src_w = s.dims[2];
    float width = 1.0f / sqrtf((float)((double)at.kernel_h * (double)at.kernel_w * (double)s.dims[3]));
    mixt__param weight = {
        .shape = {4, {o->channels, at.kernel_h, at.kernel_w, s.dims[3]}}, .trainable = true, .decay = true};
    weight.init = MIXT_INIT_UNIFORM;
    weight.init_scale = width;
    mixt__param bias = {.shape = {1, {o->channels}}, .trainable = true, .init = MIXT_INIT_UNIFORM, .init_scale = width};
    if (o->init > 0) {
        weight.init = MIXT_INIT_NORMAL;
        weight.init_scale = o->init;
        bias.init = MIXT_INIT_ZERO;
    }
    mixt_value in[3] = {x, mixt__builder_param(b, name, "weight", &weight)};
    if (at.bias)
        in[2] = mixt__builder_param(b, name, "bias", &bias);
    return mixt__builder_node(b, &mixt__op_conv2d, name, &at, in, at.bias ? 3 : 2);
}
