/* Ops that move or count along one dimension, and norms of groups of channels. */
#include "onnx/ops.h"

#include "mixt/ops.h"

#include <string.h>

/** The input in the file's order, every dimension in its full size. */
static mixt_status input(mixt__import *m, const mixt__onnx_node *n, mixt__item *from, mixt_value *v)
{
    mixt__item *x = mixt__import_in(m, n, 0);
    if (!x)
        return mixt__import_refuse(m, "it has no input");
    MIXT_TRY(mixt__item_full(m, x, NULL, v));
    *from = *x;
    return MIXT_OK;
}

mixt_status mixt__onnx_argmax(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item from = {.rank = 0};
    mixt_value v;
    MIXT_TRY(input(m, n, &from, &v));
    int axis = mixt__import_axis(mixt__onnx_int(n, "axis", 0), from.rank);
    if (axis < 0 || mixt__onnx_int(n, "select_last_index", 0))
        return mixt__import_refuse(m, "an axis that is not there, or the last of equal ones");
    mixt__item_give(m, mixt__import_out(m, n, 0), MIXT_ONNX_INT64,
                    mixt_argmax(m->b, v, axis, mixt__onnx_int(n, "keepdims", 1) != 0));
    return MIXT_OK;
}

mixt_status mixt__onnx_cumsum(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item from = {.rank = 0};
    mixt_value v;
    double axis;
    MIXT_TRY(input(m, n, &from, &v));
    if (!mixt__item_scalar(m, mixt__import_in(m, n, 1), &axis) || mixt__import_axis((int64_t)axis, from.rank) < 0)
        return mixt__import_refuse(m, "an axis that is not known");
    v = mixt_cumsum(m->b, v, mixt__import_axis((int64_t)axis, from.rank), mixt__onnx_int(n, "exclusive", 0) != 0,
                    mixt__onnx_int(n, "reverse", 0) != 0);
    mixt__item_give(m, mixt__import_out(m, n, 0), from.type, v);
    return MIXT_OK;
}

mixt_status mixt__onnx_trilu(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item from = {.rank = 0};
    mixt_value v;
    double shift = 0;
    MIXT_TRY(input(m, n, &from, &v));
    if (from.rank < 2 || (mixt__import_in(m, n, 1) && !mixt__item_scalar(m, mixt__import_in(m, n, 1), &shift)))
        return mixt__import_refuse(m, "k is not known");
    v = mixt_trilu(m->b, v, mixt__onnx_int(n, "upper", 1) != 0, (int64_t)shift);
    mixt__item_give(m, mixt__import_out(m, n, 0), from.type, v);
    return MIXT_OK;
}

mixt_status mixt__onnx_tile(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item from = {.rank = 0};
    mixt_value v;
    int64_t counts[MIXT_ONNX_RANK];
    MIXT_TRY(input(m, n, &from, &v));
    if (mixt__item_ints(m, mixt__import_in(m, n, 1), counts, MIXT_ONNX_RANK) != from.rank)
        return mixt__import_refuse(m, "repeats that are not known");
    mixt__item_give(m, mixt__import_out(m, n, 0), from.type, mixt_tile(m->b, v, counts));
    return MIXT_OK;
}

/** Blocks of channels and of places, channels last in memory. */
mixt_status mixt__onnx_blocks(mixt__import *m, const mixt__onnx_node *n)
{
    static const int last[4] = {0, 2, 3, 1};
    mixt__item *x = mixt__import_in(m, n, 0);
    int64_t block = mixt__onnx_int(n, "blocksize", 0);
    mixt_value v;
    if (!x || x->rank != 4 || block < 1)
        return mixt__import_refuse(m, "blocksize is missing, or x is not (N, C, H, W)");
    mixt__onnx_type type = x->type;
    MIXT_TRY(mixt__item_full(m, x, last, &v));
    v = mixt__wire_is(n->op, "SpaceToDepth")
            ? mixt_space_to_depth(m->b, v, block)
            : mixt_depth_to_space(m->b, v, block, mixt__onnx_text_is(n, "mode", "CRD"));
    mixt__item_give_in(m, mixt__import_out(m, n, 0), type, v, last);
    return MIXT_OK;
}

/** Instance and group norm: groups of channels, then a scale and a bias for each channel. */
mixt_status mixt__onnx_group_norm(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *scale = mixt__import_in(m, n, 1), *bias = mixt__import_in(m, n, 2);
    int order[MIXT_ONNX_RANK];
    mixt_value v, weights[2];
    if (!x || !scale || !bias || x->rank < 3 || scale->rank != 1 || scale->dims[0] != x->dims[1] || bias->rank != 1 ||
        bias->dims[0] != x->dims[1])
        return mixt__import_refuse(m, "scale and bias that are not one number a channel");
    mixt__onnx_type type = x->type;
    int rank = x->rank;
    int64_t groups = mixt__wire_is(n->op, "GroupNormalization") ? mixt__onnx_int(n, "num_groups", 1) : x->dims[1];
    for (int i = 0; i < rank; i++)
        order[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
    const char *layer = mixt__import_layer(m, n, scale);
    MIXT_TRY(mixt__item_full(m, x, order, &v));
    MIXT_TRY(mixt__item_full(m, scale, NULL, &weights[0]));
    MIXT_TRY(mixt__item_full(m, bias, NULL, &weights[1]));
    mixt_scope_push(m->b, layer);
    v = mixt_normalize_groups(m->b, v, groups, (float)mixt__onnx_float(n, "epsilon", 1e-5));
    v = mixt_add(m->b, mixt_mul(m->b, v, weights[0]), weights[1]);
    mixt_scope_pop(m->b);
    mixt__item_give_in(m, mixt__import_out(m, n, 0), type, v, order);
    return MIXT_OK;
}
