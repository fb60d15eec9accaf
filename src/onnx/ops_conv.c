/* Convolutions and pooling, channels last in memory. */
#include "onnx/ops.h"

#include "mixt/ops.h"

#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

/** Sizes along the spatial axes of a node. */
typedef struct window {
    int rank; // of those
    int64_t kernel[3], stride[3], dilation[3], begin[3], end[3];
} window;

/** Pads that make the result as large as the source over the stride. */
static void pad_same(window *w, const int64_t *source, bool lower)
{
    for (int i = 0; i < w->rank; i++) {
        int64_t out = (source[i] + w->stride[i] - 1) / w->stride[i];
        int64_t all = (out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - source[i];
        all = all > 0 ? all : 0;
        w->begin[i] = lower ? all - all / 2 : all / 2;
        w->end[i] = all - w->begin[i];
    }
}

/** @param kernel sizes where the node says none; NULL: it must */
static mixt_status read_window(mixt__import *m, const mixt__onnx_node *n, const mixt__item *x, const int64_t *kernel,
                               window *w)
{
    int64_t pads[6] = {0};
    *w = (window){.rank = x->rank - 2};
    if (w->rank < 1 || w->rank > 3)
        return mixt__import_refuse(m, "values of %d dimensions: 3 to 5", x->rank);
    for (int i = 0; i < w->rank; i++) {
        w->stride[i] = w->dilation[i] = 1;
        w->kernel[i] = kernel ? kernel[i] : 0;
    }
    int count = mixt__onnx_ints(n, "kernel_shape", w->kernel, w->rank);
    if ((count >= 0 && count != w->rank) || (count < 0 && !kernel))
        return mixt__import_refuse(m, "kernel_shape does not fit");
    if (mixt__onnx_ints(n, "strides", w->stride, w->rank) > w->rank ||
        mixt__onnx_ints(n, "dilations", w->dilation, w->rank) > w->rank ||
        mixt__onnx_ints(n, "pads", pads, 2 * w->rank) > 2 * w->rank)
        return mixt__import_refuse(m, "strides, dilations or pads do not fit");
    for (int i = 0; i < w->rank; i++) {
        w->begin[i] = pads[i];
        w->end[i] = pads[i + w->rank];
        if (w->kernel[i] < 1 || w->kernel[i] > INT32_MAX || w->stride[i] < 1 || w->stride[i] > INT32_MAX ||
            w->dilation[i] < 1 || w->dilation[i] > INT32_MAX || pads[i] < 0 || pads[i] > INT32_MAX ||
            pads[i + w->rank] < 0 || pads[i + w->rank] > INT32_MAX)
            return mixt__import_refuse(m, "sizes out of range");
    }
    if (mixt__onnx_text_is(n, "auto_pad", "SAME_UPPER") || mixt__onnx_text_is(n, "auto_pad", "SAME_LOWER"))
        pad_same(w, x->dims + 2, mixt__onnx_text_is(n, "auto_pad", "SAME_LOWER"));
    return MIXT_OK;
}

/** Channels last in memory, of any number of axes. */
static void last_order(int rank, int order[MIXT_ONNX_RANK])
{
    order[0] = 0;
    for (int i = 1; i < rank - 1; i++)
        order[i] = i + 1;
    order[rank - 1] = 1;
}

/** One axis as two, the first of size 1: (N, L, C) → (N, 1, L, C). */
static mixt_value as_plane(mixt__import *m, mixt_value v)
{
    mixt_builder *b = m->b;
    return mixt_reshape(b, v, 4,
                        (int64_t[]){mixt_value_dim(b, v, 0), 1, mixt_value_dim(b, v, 1), mixt_value_dim(b, v, 2)});
}

/** What a node convolves, channels last, and the layer that it is. */
typedef struct convolution {
    mixt_value x, weight, bias;
    const char *layer;
} convolution;

static mixt_value convolve(mixt__import *m, const convolution *c, const window *w, int64_t groups)
{
    int last = w->rank - 1, above = w->rank - 2;
    if (w->rank == 3) {
        mixt_conv3d_options o = MIXT_OPTIONS(mixt_conv3d_options, .groups = groups, .stride_d = w->stride[0],
                                             .stride_h = w->stride[1], .stride_w = w->stride[2]);
        o.dilation_d = w->dilation[0];
        o.dilation_h = w->dilation[1];
        o.dilation_w = w->dilation[2];
        o.pad_front = w->begin[0];
        o.pad_back = w->end[0];
        o.pad_top = w->begin[1];
        o.pad_bottom = w->end[1];
        o.pad_left = w->begin[2];
        o.pad_right = w->end[2];
        return mixt_conv3d_of_with(m->b, c->x, c->weight, c->bias, &o);
    }
    mixt_conv2d_options o =
        MIXT_OPTIONS(mixt_conv2d_options, .groups = groups, .stride_w = w->stride[last],
                     .dilation_w = w->dilation[last], .pad_left = w->begin[last], .pad_right = w->end[last]);
    o.stride_h = above < 0 ? 1 : w->stride[0];
    o.dilation_h = above < 0 ? 1 : w->dilation[0];
    o.pad_top = above < 0 ? 0 : w->begin[0];
    o.pad_bottom = above < 0 ? 0 : w->end[0];
    return mixt_conv2d_of_with(m->b, c->x, c->weight, c->bias, &o);
}

/** The source, weight and bias of a convolution in mixt's order. @param outputs which axis of the weight they are */
static mixt_status read_convolution(mixt__import *m, const mixt__onnx_node *n, int outputs, convolution *c)
{
    mixt__item *x = mixt__import_in(m, n, 0), *weight = mixt__import_in(m, n, 1), *bias = mixt__import_in(m, n, 2);
    int order[MIXT_ONNX_RANK];
    *c = (convolution){.layer = mixt__import_layer(m, n, weight)};
    last_order(x->rank, order);
    mixt_scope_push(m->b, c->layer);
    MIXT_TRY(mixt__item_full(m, x, order, &c->x));
    mixt_scope_pop(m->b);
    if (weight->kind == MIXT_ITEM_PARAMETER)
        MIXT_TRY(mixt__onnx_weight(m, n, weight, order, outputs, true, &c->weight));
    else
        MIXT_TRY(mixt__item_full(m, weight, order, &c->weight));
    if (bias && bias->kind == MIXT_ITEM_PARAMETER)
        MIXT_TRY(mixt__onnx_weight(m, n, bias, NULL, 0, false, &c->bias));
    else if (bias)
        MIXT_TRY(mixt__item_full(m, bias, NULL, &c->bias));
    if (x->rank == 3) {
        c->x = as_plane(m, c->x);
        c->weight = as_plane(m, c->weight);
    }
    return mixt__import_check(m);
}

/** Gives what a convolution has made. */
static void give_convolved(mixt__import *m, const mixt__onnx_node *n, mixt_value v, int rank)
{
    int order[MIXT_ONNX_RANK];
    mixt_builder *b = m->b;
    last_order(rank, order);
    if (rank == 3 && v.id)
        v = mixt_reshape(b, v, 3,
                         (int64_t[]){mixt_value_dim(b, v, 0), mixt_value_dim(b, v, 2), mixt_value_dim(b, v, 3)});
    mixt__item_give_in(m, mixt__import_out(m, n, 0), mixt__import_in(m, n, 0)->type, v, order);
}

mixt_status mixt__onnx_conv(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *weight = mixt__import_in(m, n, 1);
    window w;
    convolution c;
    if (!x || !weight || x->rank != weight->rank)
        return mixt__import_refuse(m, "its weight does not fit");
    MIXT_TRY(read_window(m, n, x, weight->dims + 2, &w));
    int rank = x->rank;
    MIXT_TRY(read_convolution(m, n, 0, &c));
    mixt_scope_push(m->b, c.layer);
    mixt_value v = convolve(m, &c, &w, mixt__onnx_int(n, "group", 1));
    give_convolved(m, n, v, rank);
    mixt_scope_pop(m->b);
    return MIXT_OK;
}

/** Pads that an output of a chosen size, or SAME, asks for. */
static void pads_of_output(const mixt__onnx_node *n, const int64_t *source, const int64_t *more, window *w)
{
    int64_t wanted[3];
    bool lower = mixt__onnx_text_is(n, "auto_pad", "SAME_LOWER"),
         same = lower || mixt__onnx_text_is(n, "auto_pad", "SAME_UPPER");
    bool sized = mixt__onnx_ints(n, "output_shape", wanted, 3) == w->rank;
    for (int i = 0; i < w->rank && (sized || same); i++) {
        int64_t out = sized ? wanted[i] : source[i] * w->stride[i];
        int64_t all = w->stride[i] * (source[i] - 1) + more[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - out;
        w->begin[i] = lower ? all - all / 2 : all / 2;
        w->end[i] = all - w->begin[i];
    }
}

mixt_status mixt__onnx_conv_transpose(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *weight = mixt__import_in(m, n, 1);
    int64_t more[3] = {0};
    window w;
    convolution c;
    if (!x || !weight || x->rank != weight->rank || x->rank > 4)
        return mixt__import_refuse(m, "its weight does not fit, or there are more than two axes");
    MIXT_TRY(read_window(m, n, x, weight->dims + 2, &w));
    if (mixt__onnx_ints(n, "output_padding", more, w.rank) > w.rank)
        return mixt__import_refuse(m, "output_padding does not fit");
    pads_of_output(n, x->dims + 2, more, &w);
    int rank = x->rank, last = w.rank - 1;
    for (int i = 0; i < w.rank; i++)
        if (w.begin[i] < 0 || w.end[i] < 0)
            return mixt__import_refuse(m, "an output larger than its windows reach");
    MIXT_TRY(read_convolution(m, n, 1, &c));
    mixt_conv_transpose2d_options o =
        MIXT_OPTIONS(mixt_conv_transpose2d_options, .groups = mixt__onnx_int(n, "group", 1), .stride_w = w.stride[last],
                     .dilation_w = w.dilation[last], .pad_left = w.begin[last], .pad_right = w.end[last]);
    o.stride_h = last ? w.stride[0] : 1;
    o.dilation_h = last ? w.dilation[0] : 1;
    o.pad_top = last ? w.begin[0] : 0;
    o.pad_bottom = last ? w.end[0] : 0;
    o.output_pad_h = last ? more[0] : 0;
    o.output_pad_w = more[last];
    mixt_scope_push(m->b, c.layer);
    give_convolved(m, n, mixt_conv_transpose2d_of_with(m->b, c.x, c.weight, c.bias, &o), rank);
    mixt_scope_pop(m->b);
    return MIXT_OK;
}

mixt_status mixt__onnx_pool(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0);
    int order[MIXT_ONNX_RANK];
    window w;
    mixt_value v;
    if (!x)
        return mixt__import_refuse(m, "it has no input");
    MIXT_TRY(read_window(m, n, x, NULL, &w));
    if (n->out_count > 1 && n->out[1] && m->f->values[n->out[1]].uses)
        return mixt__import_refuse(m, "the places of the largest as an output");
    bool average = mixt__wire_is(n->op, "AveragePool"), plane = w.rank > 1;
    int last = w.rank - 1, above = w.rank - 2;
    mixt__onnx_type type = x->type;
    mixt_pool_options o = MIXT_OPTIONS(mixt_pool_options, .size = w.kernel[last], .size_w = w.kernel[last],
                                       .stride_w = w.stride[last], .dilation_w = w.dilation[last]);
    o.pad_left = w.begin[last];
    o.pad_right = w.end[last];
    if (plane) {
        o.size_h = w.kernel[above];
        o.stride_h = w.stride[above];
        o.dilation_h = w.dilation[above];
        o.pad_top = w.begin[above];
        o.pad_bottom = w.end[above];
    }
    if (w.rank == 3) {
        o.size_d = w.kernel[0];
        o.stride_d = w.stride[0];
        o.dilation_d = w.dilation[0];
        o.pad_front = w.begin[0];
        o.pad_back = w.end[0];
    }
    o.ceil = mixt__onnx_int(n, "ceil_mode", 0) != 0;
    o.count_pad = average && mixt__onnx_int(n, "count_include_pad", 0) != 0;
    last_order(x->rank, order);
    MIXT_TRY(mixt__item_full(m, x, order, &v));
    v = average ? mixt_avg_pool_with(m->b, v, &o) : mixt_max_pool_with(m->b, v, &o);
    mixt__item_give_in(m, mixt__import_out(m, n, 0), type, v, order);
    return MIXT_OK;
}

mixt_status mixt__onnx_global_pool(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0);
    mixt_reduce_options o = MIXT_OPTIONS(mixt_reduce_options, .keep_dims = true, .axis_count = 0);
    mixt_value v;
    if (!x || x->rank < 3)
        return mixt__import_refuse(m, "values of fewer than 3 dimensions");
    MIXT_TRY(mixt__item_compute(m, x));
    mixt__item from = *x;
    MIXT_TRY(mixt__item_full(m, x, from.order, &v));
    for (int i = 0; i < from.rank; i++)
        if (from.order[i] > 1)
            o.axes[o.axis_count++] = i;
    mixt__item_give_in(m, mixt__import_out(m, n, 0), from.type,
                       mixt__wire_is(n->op, "GlobalMaxPool") ? mixt_reduce_max_with(m->b, v, &o)
                                                             : mixt_mean_with(m->b, v, &o),
                       from.order);
    return MIXT_OK;
}
