/* The ops of mixt as ONNX nodes; functions of each element and attention are made elsewhere. */
#include "onnx/export.h"

#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

/** Swaps the last two dimensions. */
static const char *swap_last(mixt__export *m, const char *name, int rank)
{
    int64_t perm[MIXT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return mixt__export_node(m, "Transpose", MIXT_TAKES(name), MIXT_GIVES(MIXT_GIVE_INTS("perm", perm, rank)));
}

static void put_matmul(mixt__export *m, const mixt__node *n)
{
    const mixt__matmul_attrs *at = n->attrs;
    if (mixt__export_is_in_cell(m, n))
        return;
    int rank_a = m->g->values[n->in[0]].shape.rank, rank_b = m->g->values[n->in[1]].shape.rank;
    const char *a = mixt__export_in(m, 0, MIXT_ONNX_NATURAL), *b = mixt__export_in(m, 1, MIXT_ONNX_NATURAL);
    const char *bias = at->bias ? mixt__export_in(m, 2, MIXT_ONNX_NATURAL) : NULL, *v;
    if (rank_a == 2 && rank_b == 2) {
        v = mixt__export_node(m, "Gemm", bias ? MIXT_TAKES(a, b, bias) : MIXT_TAKES(a, b),
                              MIXT_GIVES(MIXT_GIVE_FLOAT("alpha", at->alpha), MIXT_GIVE_INT("transA", at->trans_a),
                                         MIXT_GIVE_INT("transB", at->trans_b)));
        mixt__export_give(m, 0, MIXT_ONNX_NATURAL, v);
        return;
    }
    if (at->trans_a)
        a = swap_last(m, a, rank_a);
    if (at->trans_b)
        b = swap_last(m, b, rank_b);
    v = mixt__export_node(m, "MatMul", MIXT_TAKES(a, b), NULL);
    if (at->alpha != 1)
        v = mixt__export_node(m, "Mul", MIXT_TAKES(v, mixt__export_float(m, at->alpha)), NULL);
    if (bias)
        v = mixt__export_node(m, "Add", MIXT_TAKES(v, bias), NULL);
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL, v);
}

/* ---- windows ---- */

static void put_conv(mixt__export *m, const mixt__node *n)
{
    const mixt__conv2d_attrs *at = n->attrs;
    bool volume = n->op == &mixt__op_conv3d;
    const mixt__conv_axis axes[3] = {volume ? ((const mixt__conv3d_attrs *)n->attrs)->d : at->h, volume ? at->h : at->w,
                                     at->w};
    int count = volume ? 3 : 2;
    int64_t kernel[3], stride[3], dilation[3], pads[6];
    for (int i = 0; i < count; i++) {
        kernel[i] = axes[i].kernel;
        stride[i] = axes[i].stride;
        dilation[i] = mixt__conv_dilation(&axes[i]);
        pads[i] = axes[i].pad;
        pads[i + count] = axes[i].pad_end;
    }
    const char *x = mixt__export_in(m, 0, MIXT_ONNX_FIRST), *w = mixt__export_in(m, 1, MIXT_ONNX_FIRST);
    const char *bias = at->bias ? mixt__export_in(m, 2, MIXT_ONNX_NATURAL) : NULL;
    const char *v = mixt__export_node(
        m, "Conv", bias ? MIXT_TAKES(x, w, bias) : MIXT_TAKES(x, w),
        MIXT_GIVES(MIXT_GIVE_INTS("kernel_shape", kernel, count), MIXT_GIVE_INTS("strides", stride, count),
                   MIXT_GIVE_INTS("pads", pads, 2 * count), MIXT_GIVE_INTS("dilations", dilation, count),
                   MIXT_GIVE_INT("group", mixt__conv_groups(at))));
    mixt__export_give(m, 0, MIXT_ONNX_FIRST, v);
}

static void put_pool(mixt__export *m, const mixt__node *n)
{
    const mixt__pool_attrs *at = n->attrs;
    bool volume = m->g->values[n->in[0]].shape.rank == 5, average = at->kind == MIXT_POOL_AVG;
    const mixt__pool_axis axes[3] = {volume ? at->d : at->h, volume ? at->h : at->w, at->w};
    int count = volume ? 3 : 2;
    int64_t size[3], stride[3], dilation[3], pads[6];
    for (int i = 0; i < count; i++) {
        size[i] = axes[i].size;
        stride[i] = axes[i].stride;
        dilation[i] = axes[i].dilation ? axes[i].dilation : 1;
        pads[i] = axes[i].pad;
        pads[i + count] = axes[i].pad_end;
    }
    mixt__onnx_give counts = {0}; // MaxPool has no such attribute
    if (average)
        counts = MIXT_GIVE_INT("count_include_pad", at->count_pad);
    const char *v = mixt__export_node(
        m, average ? "AveragePool" : "MaxPool", MIXT_TAKES(mixt__export_in(m, 0, MIXT_ONNX_FIRST)),
        MIXT_GIVES(MIXT_GIVE_INTS("kernel_shape", size, count), MIXT_GIVE_INTS("strides", stride, count),
                   MIXT_GIVE_INTS("pads", pads, 2 * count), MIXT_GIVE_INTS("dilations", dilation, count),
                   MIXT_GIVE_INT("ceil_mode", at->ceil), counts));
    mixt__export_give(m, 0, MIXT_ONNX_FIRST, v);
}

/* ---- norms ---- */

/** 0 where a mask of the first dimensions is. */
static void hide_masked(mixt__export *m, const mixt__node *n)
{
    const mixt__shape *x = &m->g->values[n->out[0]].shape, *mask = &m->g->values[n->in[5]].shape;
    int64_t dims[MIXT_MAX_RANK];
    bool known = mixt__export_dims(m, n->in[5], dims);
    for (int i = mask->rank; i < x->rank; i++)
        dims[i] = 1;
    if (!known) {
        mixt__export_refuse(m, "several sizes of its mask depend on the number of samples");
        return;
    }
    const char *there = mixt__export_in(m, 5, MIXT_ONNX_NATURAL), *zero = mixt__export_float(m, 0);
    there = mixt__export_node(m, "Reshape", MIXT_TAKES(there, mixt__export_ints(m, dims, x->rank)), NULL);
    there = mixt__export_node(m, "Greater", MIXT_TAKES(there, zero), NULL);
    const char *v = mixt__export_value(m, n->out[0], MIXT_ONNX_NATURAL);
    mixt__export_give(m, 0, MIXT_ONNX_FIRST, NULL); // that was without the mask
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL, mixt__export_node(m, "Where", MIXT_TAKES(there, v, zero), NULL));
}

static void put_batch_norm(mixt__export *m, const mixt__node *n)
{
    const mixt__norm_attrs *at = n->attrs;
    const char *in[5];
    mixt__onnx_order order = m->g->values[n->in[0]].shape.rank > 2 ? MIXT_ONNX_FIRST : MIXT_ONNX_NATURAL;
    for (int i = 0; i < 5; i++)
        in[i] = mixt__export_in(m, i, i ? MIXT_ONNX_NATURAL : order);
    mixt__export_give(m, 0, order,
                      mixt__export_node(m, "BatchNormalization", MIXT_TAKES(in[0], in[1], in[2], in[3], in[4]),
                                        MIXT_GIVES(MIXT_GIVE_FLOAT("epsilon", at->eps))));
    if (at->masked)
        hide_masked(m, n);
}

static void put_layer_norm(mixt__export *m, const mixt__node *n)
{
    const mixt__norm_attrs *at = n->attrs;
    mixt__export_give(
        m, 0, MIXT_ONNX_NATURAL,
        mixt__export_node(m, "LayerNormalization",
                          MIXT_TAKES(mixt__export_in(m, 0, MIXT_ONNX_NATURAL), mixt__export_in(m, 1, MIXT_ONNX_NATURAL),
                                     mixt__export_in(m, 2, MIXT_ONNX_NATURAL)),
                          MIXT_GIVES(MIXT_GIVE_INT("axis", -1), MIXT_GIVE_FLOAT("epsilon", at->eps))));
}

/** Written out: an op of its own came with opset 23. */
static void put_rms_norm(mixt__export *m, const mixt__node *n)
{
    const mixt__norm_attrs *at = n->attrs;
    const char *x = mixt__export_in(m, 0, MIXT_ONNX_NATURAL), *w = mixt__export_in(m, 1, MIXT_ONNX_NATURAL);
    const char *v = mixt__export_node(m, "Mul", MIXT_TAKES(x, x), NULL);
    v = mixt__export_node(m, "ReduceMean", MIXT_TAKES(v, mixt__export_ints(m, (int64_t[]){-1}, 1)),
                          MIXT_GIVES(MIXT_GIVE_INT("keepdims", 1)));
    v = mixt__export_node(m, "Add", MIXT_TAKES(v, mixt__export_float(m, at->eps)), NULL);
    v = mixt__export_node(m, "Sqrt", MIXT_TAKES(v), NULL);
    v = mixt__export_node(m, "Div", MIXT_TAKES(x, v), NULL);
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL, mixt__export_node(m, "Mul", MIXT_TAKES(v, w), NULL));
}

static void put_softmax(mixt__export *m, const mixt__node *n)
{
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL,
                      mixt__export_node(m, n->op == &mixt__op_softmax ? "Softmax" : "LogSoftmax",
                                        MIXT_TAKES(mixt__export_in(m, 0, MIXT_ONNX_NATURAL)),
                                        MIXT_GIVES(MIXT_GIVE_INT("axis", -1))));
}

static void put_embedding(mixt__export *m, const mixt__node *n)
{
    (void)n;
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL,
                      mixt__export_node(m, "Gather",
                                        MIXT_TAKES(mixt__export_in(m, 0, MIXT_ONNX_NATURAL),
                                                   mixt__export_in(m, 1, MIXT_ONNX_NATURAL)),
                                        MIXT_GIVES(MIXT_GIVE_INT("axis", 0))));
}

/* ---- shapes ---- */

/** Over the axes between samples and channels, wherever the channels are; else over those as in mixt. */
static void put_reduce(mixt__export *m, const mixt__node *n)
{
    const mixt__reduce_attrs *at = n->attrs;
    int rank = m->g->values[n->in[0]].shape.rank, count = 0;
    uint32_t between = ((1u << (rank - 1)) - 1) & ~1u;
    bool first = mixt__export_is_first(m, n->in[0]) && at->axes == between && !at->keep_dims;
    int64_t axes[MIXT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (at->axes >> i & 1)
            axes[count++] = first ? i + 1 : i;
    const char *x = mixt__export_in(m, 0, first ? MIXT_ONNX_FIRST : MIXT_ONNX_NATURAL);
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL,
                      mixt__export_node(m, at->mean ? "ReduceMean" : "ReduceSum",
                                        MIXT_TAKES(x, mixt__export_ints(m, axes, count)),
                                        MIXT_GIVES(MIXT_GIVE_INT("keepdims", at->keep_dims))));
}

static void put_reshape(mixt__export *m, const mixt__node *n)
{
    int64_t dims[MIXT_MAX_RANK];
    int rank = m->g->values[n->out[0]].shape.rank;
    if (!mixt__export_dims(m, n->out[0], dims)) {
        mixt__export_refuse(m, "several sizes of a reshape depend on the number of samples");
        return;
    }
    mixt__export_give(
        m, 0, MIXT_ONNX_NATURAL,
        mixt__export_node(m, "Reshape",
                          MIXT_TAKES(mixt__export_in(m, 0, MIXT_ONNX_NATURAL), mixt__export_ints(m, dims, rank)),
                          NULL));
}

static void put_transpose(mixt__export *m, const mixt__node *n)
{
    const mixt__transpose_attrs *at = n->attrs;
    int64_t perm[MIXT_MAX_RANK];
    int rank = m->g->values[n->out[0]].shape.rank;
    for (int i = 0; i < rank; i++)
        perm[i] = at->order[i];
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL,
                      mixt__export_node(m, "Transpose", MIXT_TAKES(mixt__export_in(m, 0, MIXT_ONNX_NATURAL)),
                                        MIXT_GIVES(MIXT_GIVE_INTS("perm", perm, rank))));
}

static void put_slice(mixt__export *m, const mixt__node *n)
{
    const mixt__slice_attrs *at = n->attrs;
    int64_t dims[MIXT_MAX_RANK];
    if (!mixt__export_dims(m, n->in[0], dims) || dims[at->axis] < 0) {
        mixt__export_refuse(m, "a slice of the samples is not written");
        return;
    }
    mixt__export_give(
        m, 0, MIXT_ONNX_NATURAL,
        mixt__export_node(m, "Slice",
                          MIXT_TAKES(mixt__export_in(m, 0, MIXT_ONNX_NATURAL), mixt__export_ints(m, &at->begin, 1),
                                     mixt__export_ints(m, &at->end, 1), mixt__export_ints(m, (int64_t[]){at->axis}, 1)),
                          NULL));
}

static void put_split(mixt__export *m, const mixt__node *n)
{
    int64_t sizes[MIXT_MAX_OUTPUTS];
    const char *out[MIXT_MAX_OUTPUTS];
    for (int i = 0; i < n->out_count; i++) {
        const mixt__shape *s = &m->g->values[n->out[i]].shape;
        sizes[i] = s->dims[s->rank - 1];
    }
    mixt__export_nodes(m, "Split",
                       MIXT_TAKES(mixt__export_in(m, 0, MIXT_ONNX_NATURAL), mixt__export_ints(m, sizes, n->out_count)),
                       MIXT_GIVES(MIXT_GIVE_INT("axis", -1)), out, n->out_count);
    for (int i = 0; i < n->out_count; i++)
        mixt__export_give(m, i, MIXT_ONNX_NATURAL, out[i]);
}

static void put_concat(mixt__export *m, const mixt__node *n)
{
    const mixt__concat_attrs *at = n->attrs;
    const char *in[65] = {NULL};
    int rank = m->g->values[n->out[0]].shape.rank;
    bool first = rank > 2;
    for (int i = 0; i < n->in_count; i++)
        first = first && mixt__export_is_first(m, n->in[i]);
    mixt__onnx_order order = first ? MIXT_ONNX_FIRST : MIXT_ONNX_NATURAL;
    for (int i = 0; i < n->in_count && i < 64; i++)
        in[i] = mixt__export_in(m, i, order);
    int64_t axis = !first || at->axis == 0 ? at->axis : at->axis == rank - 1 ? 1 : at->axis + 1;
    mixt__export_give(m, 0, order, mixt__export_node(m, "Concat", in, MIXT_GIVES(MIXT_GIVE_INT("axis", axis))));
}

static void put_extreme(mixt__export *m, const mixt__node *n)
{
    const mixt__extreme_attrs *at = n->attrs;
    int64_t axes[MIXT_MAX_RANK];
    if (at->index) {
        mixt__export_refuse(m, "the place of the largest is not written yet");
        return;
    }
    for (int i = 0; i < at->count; i++)
        axes[i] = at->axis + i;
    mixt__export_give(
        m, 0, MIXT_ONNX_NATURAL,
        mixt__export_node(m, at->smallest ? "ReduceMin" : "ReduceMax",
                          MIXT_TAKES(mixt__export_in(m, 0, MIXT_ONNX_NATURAL), mixt__export_ints(m, axes, at->count)),
                          MIXT_GIVES(MIXT_GIVE_INT("keepdims", at->keep_dims))));
}

/* ---- the list ---- */

mixt__onnx_put *mixt__onnx_put_find(const mixt__op *op)
{
    static const struct {
        const mixt__op *op;
        mixt__onnx_put *put;
    } list[] = {
        {&mixt__op_matmul, put_matmul},
        {&mixt__op_conv2d, put_conv},
        {&mixt__op_conv3d, put_conv},
        {&mixt__op_pool, put_pool},
        {&mixt__op_batch_norm, put_batch_norm},
        {&mixt__op_layer_norm, put_layer_norm},
        {&mixt__op_rms_norm, put_rms_norm},
        {&mixt__op_softmax, put_softmax},
        {&mixt__op_embedding, put_embedding},
        {&mixt__op_reduce, put_reduce},
        {&mixt__op_reshape, put_reshape},
        {&mixt__op_transpose, put_transpose},
        {&mixt__op_slice, put_slice},
        {&mixt__op_split, put_split},
        {&mixt__op_attention, mixt__onnx_put_attention},
        {&mixt__op_rotary_table, mixt__onnx_put_rotary_table},
        {&mixt__op_rotary, mixt__onnx_put_rotary},
        {&mixt__op_lstm, mixt__onnx_put_recurrent},
        {&mixt__op_gru, mixt__onnx_put_recurrent},
        {&mixt__op_rnn, mixt__onnx_put_recurrent},
        {&mixt__op_log_softmax, put_softmax},
        {&mixt__op_extreme, put_extreme},
        {&mixt__op_concat, put_concat},
        {&mixt__op_pointwise, mixt__onnx_put_pointwise},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (list[i].op == op)
            return list[i].put;
    return NULL;
}
