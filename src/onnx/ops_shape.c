/* Ops that move elements: reshapes, transposes, slices, parts and wholes. */
#include "onnx/ops.h"

#include <string.h>

/** The output is the input. */
static void pass(mixt__import *m, const mixt__onnx_node *n)
{
    *mixt__import_out(m, n, 0) = *mixt__import_in(m, n, 0);
}

mixt_status mixt__onnx_identity(mixt__import *m, const mixt__onnx_node *n)
{
    if (!mixt__import_in(m, n, 0))
        return mixt__import_refuse(m, "it has no input");
    if (n->out_count && m->onnx->sources[n->out[0]] >= 0) // another parameter, or constant, with the same numbers
        return mixt__item_begin(m, n->out[0]);
    pass(m, n);
    return MIXT_OK;
}

mixt_status mixt__onnx_cast(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0), *out = mixt__import_out(m, n, 0);
    mixt__onnx_type to = (mixt__onnx_type)mixt__onnx_int(n, "to", a ? a->type : 0);
    if (!a)
        return mixt__import_refuse(m, "it has no input");
    bool from_float = mixt__onnx_type_is_float(a->type), to_float = mixt__onnx_type_is_float(to);
    pass(m, n);
    out->type = to;
    if (from_float == to_float || a->type == MIXT_ONNX_BOOL) // formats are the policy's choice; truth is 0 and 1
        return MIXT_OK;
    bool whole = a->kind == MIXT_ITEM_COMPUTED && m->b->graph->values[a->value.id].dtype == MIXT_DTYPE_INT32;
    if (!from_float && whole)
        return mixt__import_refuse(m, "whole numbers of the data as numbers with a fraction");
    return from_float ? mixt__import_refuse(m, "computed numbers as %s", mixt__onnx_type_name(to)) : MIXT_OK;
}

mixt_status mixt__onnx_shape(mixt__import *m, const mixt__onnx_node *n)
{
    const mixt__item *a = mixt__import_in(m, n, 0);
    double *out;
    if (!a)
        return mixt__import_refuse(m, "it has no input");
    mixt__item from = *a;
    int64_t begin = mixt__onnx_int(n, "start", 0), end = mixt__onnx_int(n, "end", from.rank);
    begin += begin < 0 ? from.rank : 0;
    end += end < 0 ? from.rank : 0;
    begin = begin < 0 ? 0 : begin > from.rank ? from.rank : begin;
    end = end < begin ? begin : end > from.rank ? from.rank : end;
    int64_t count = end - begin;
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), MIXT_ONNX_INT64, 1, &count, &out));
    for (int64_t i = 0; i < count; i++)
        out[i] = (double)from.dims[begin + i];
    return MIXT_OK;
}

mixt_status mixt__onnx_size(mixt__import *m, const mixt__onnx_node *n)
{
    const mixt__item *a = mixt__import_in(m, n, 0);
    double *out;
    if (!a)
        return mixt__import_refuse(m, "it has no input");
    int64_t count = mixt__item_count(a);
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), MIXT_ONNX_INT64, 0, NULL, &out));
    out[0] = (double)count;
    return MIXT_OK;
}

mixt_status mixt__onnx_constant(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__onnx_attribute value = mixt__onnx_attribute_of(n, "value");
    mixt__item *item = mixt__import_out(m, n, 0);
    mixt__onnx_tensor t;
    double *out;
    int64_t one = 1, whole[1];
    if (value.type == MIXT_ONNX_IS_TENSOR) {
        MIXT_TRY(mixt__onnx_tensor_read(m->onnx->file, value.s, &t));
        MIXT_TRY(mixt__item_constant(m, item, t.type, t.rank, t.dims, &out));
        return mixt__onnx_tensor_doubles(&t, out);
    }
    int floats = mixt__onnx_floats(n, "value_floats", NULL, 0), ints = mixt__onnx_ints(n, "value_ints", whole, 0);
    if (floats >= 0) {
        MIXT_TRY(mixt__item_constant(m, item, MIXT_ONNX_FLOAT, 1, &(int64_t){floats}, &out));
        mixt__onnx_floats(n, "value_floats", out, floats);
        return MIXT_OK;
    }
    if (ints >= 0) {
        int64_t *numbers = mixt__arena_alloc(&m->arena, (size_t)(ints + 1) * sizeof *numbers);
        if (!numbers)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a constant");
        MIXT_TRY(mixt__item_constant(m, item, MIXT_ONNX_INT64, 1, &(int64_t){ints}, &out));
        mixt__onnx_ints(n, "value_ints", numbers, ints);
        for (int i = 0; i < ints; i++)
            out[i] = (double)numbers[i];
        return MIXT_OK;
    }
    mixt__onnx_attribute f = mixt__onnx_attribute_of(n, "value_float"), i = mixt__onnx_attribute_of(n, "value_int");
    if (!f.type && !i.type)
        return mixt__import_refuse(m, "it says no number");
    MIXT_TRY(mixt__item_constant(m, item, f.type ? MIXT_ONNX_FLOAT : MIXT_ONNX_INT64, 0, &one, &out));
    out[0] = f.type ? f.f : (double)i.i;
    return MIXT_OK;
}

/** A value in another shape, its elements in the file's order. */
static mixt_status reshape_to(mixt__import *m, const mixt__onnx_node *n, int rank, const int64_t *dims)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    mixt__onnx_type type = a->type;
    mixt_value v;
    if (rank > MIXT_MAX_RANK)
        return mixt__import_refuse(m, "a value of %d dimensions: %d at most", rank, MIXT_MAX_RANK);
    MIXT_TRY(mixt__item_full(m, a, NULL, &v));
    mixt__item_give(m, mixt__import_out(m, n, 0), type, mixt__import_reshape(m, v, rank, dims));
    return MIXT_OK;
}

mixt_status mixt__onnx_reshape(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    int64_t dims[MIXT_ONNX_RANK];
    int rank = mixt__import_list(m, n, "shape", 1, dims, MIXT_ONNX_RANK);
    if (!a || rank < 0)
        return mixt__import_refuse(m, "its shape depends on values of the data, or has more than 8 sizes");
    if (!mixt__import_shape(a, rank, dims, mixt__onnx_int(n, "allowzero", 0) != 0, m->batch))
        return mixt__import_refuse(m,
                                   "%lld elements do not fit into its shape, which was written for another batch or "
                                   "size: export the file with dynamic axes",
                                   (long long)mixt__item_count(a));
    return reshape_to(m, n, rank, dims);
}

mixt_status mixt__onnx_flatten(mixt__import *m, const mixt__onnx_node *n)
{
    const mixt__item *a = mixt__import_in(m, n, 0);
    int64_t dims[2] = {1, 1}, axis = mixt__onnx_int(n, "axis", 1);
    if (!a)
        return mixt__import_refuse(m, "it has no input");
    axis += axis < 0 ? a->rank : 0;
    for (int i = 0; i < a->rank; i++)
        dims[i >= axis] *= a->dims[i];
    return reshape_to(m, n, 2, dims);
}

mixt_status mixt__onnx_squeeze(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    int64_t dims[MIXT_ONNX_RANK];
    int rank = a ? mixt__import_squeezed(m, n, a, dims) : -1;
    if (rank < 0 || rank > MIXT_MAX_RANK)
        return mixt__import_refuse(m, "axes that do not fit");
    return reshape_to(m, n, rank, dims);
}

mixt_status mixt__onnx_transpose(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0), *out = mixt__import_out(m, n, 0);
    int64_t perm[MIXT_ONNX_RANK];
    if (!a || !mixt__import_perm(n, a->rank, perm))
        return mixt__import_refuse(m, "perm is not a permutation");
    if (a->kind == MIXT_ITEM_CONSTANT)
        MIXT_TRY(mixt__item_compute(m, a));
    mixt__item from = *a;
    *out = from;
    for (int i = 0; i < from.rank; i++) {
        out->dims[i] = from.dims[perm[i]];
        for (int k = 0; k < from.rank; k++)
            if (from.order[k] == perm[i])
                out->order[k] = i;
    }
    return MIXT_OK;
}

mixt_status mixt__onnx_expand(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0), *out = mixt__import_out(m, n, 0);
    int64_t wanted[MIXT_ONNX_RANK];
    int count = mixt__import_list(m, n, "shape", 1, wanted, MIXT_ONNX_RANK);
    int rank = a && count > a->rank ? count : a ? a->rank : 0;
    mixt_value v;
    if (!a || count < 0 || rank > MIXT_MAX_RANK)
        return mixt__import_refuse(m, "its shape depends on values of the data");
    mixt__item from = *a;
    MIXT_TRY(mixt__item_value(m, a, rank, NULL, &v));
    mixt__item_give(m, out, from.type, v);
    for (int i = 0; i < rank; i++) {
        int own = i - (rank - from.rank), given = i - (rank - count);
        int64_t have = own >= 0 ? from.dims[own] : 1, want = given >= 0 ? wanted[given] : 1;
        if (have != 1 && want != 1 && want != have)
            return mixt__import_refuse(m, "a shape that does not fit");
        out->dims[i] = have != 1 ? have : want; // left to broadcasting
    }
    return MIXT_OK;
}

mixt_status mixt__onnx_slice(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    mixt__slice_range ranges[MIXT_ONNX_RANK];
    mixt_value v;
    if (!a)
        return mixt__import_refuse(m, "it has no input");
    MIXT_TRY(mixt__import_slices(m, n, a, ranges));
    MIXT_TRY(mixt__item_compute(m, a));
    mixt__item from = *a;
    MIXT_TRY(mixt__item_full(m, a, from.order, &v));
    for (int i = 0; i < from.rank; i++) {
        const mixt__slice_range *r = &ranges[from.order[i]];
        if (r->step != 1 && r->count != from.dims[from.order[i]])
            return mixt__import_refuse(m, "slices in steps of %lld", (long long)r->step);
        if (r->step != 1 && r->count > 1)
            return mixt__import_refuse(m, "a slice that runs backwards");
        if (r->count < 1)
            return mixt__import_refuse(m, "a slice of nothing");
        if (r->count != from.dims[from.order[i]])
            v = mixt_slice(m->b, v, i, r->begin, r->begin + r->count);
    }
    mixt__item_give_in(m, mixt__import_out(m, n, 0), from.type, v, from.order);
    return MIXT_OK;
}

/** Where an axis of the file's lies in memory. */
static int place_of(const mixt__item *item, int axis)
{
    for (int i = 0; i < item->rank; i++)
        if (item->order[i] == axis)
            return i;
    return 0;
}

mixt_status mixt__onnx_split(mixt__import *m, const mixt__onnx_node *n)
{
    enum { PARTS = 64 };
    mixt__item *a = mixt__import_in(m, n, 0);
    int axis = a ? mixt__import_axis(mixt__onnx_int(n, "axis", 0), a->rank) : -1;
    int64_t sizes[PARTS], at = 0;
    mixt_value v;
    if (axis < 0 || n->out_count > PARTS)
        return mixt__import_refuse(m, "an axis that is not there, or more than %d parts", PARTS);
    int count = mixt__import_list(m, n, "split", 1, sizes, PARTS);
    int64_t even = (a->dims[axis] + n->out_count - 1) / n->out_count;
    for (int k = 0; count < 0 && k < n->out_count; k++)
        sizes[k] = even * (k + 1) <= a->dims[axis] ? even : a->dims[axis] - even * k;
    if (count >= 0 && count != n->out_count)
        return mixt__import_refuse(m, "sizes that do not fit its outputs");
    MIXT_TRY(mixt__item_compute(m, a));
    mixt__item from = *a;
    MIXT_TRY(mixt__item_full(m, a, from.order, &v));
    for (int k = 0; k < n->out_count; at += sizes[k++]) {
        if (sizes[k] < 1 || sizes[k] > from.dims[axis] - at)
            return mixt__import_refuse(m, "sizes that do not fit");
        mixt_value part = mixt_slice(m->b, v, place_of(&from, axis), at, at + sizes[k]);
        if (n->out[k])
            mixt__item_give_in(m, mixt__import_out(m, n, k), from.type, part, from.order);
    }
    return MIXT_OK;
}

mixt_status mixt__onnx_concat(mixt__import *m, const mixt__onnx_node *n)
{
    mixt_value parts[64];
    mixt__item *first = NULL;
    for (int k = 0; k < n->in_count; k++) // the order of the first that is computed already
        if (mixt__item_is(mixt__import_in(m, n, k), MIXT_ITEM_COMPUTED) && !first)
            first = mixt__import_in(m, n, k);
    first = first ? first : mixt__import_in(m, n, 0);
    int axis = first ? mixt__import_axis(mixt__onnx_int(n, "axis", 0), first->rank) : -1;
    if (axis < 0 || n->in_count > 64)
        return mixt__import_refuse(m, "an axis that is not there, or more than 64 parts");
    MIXT_TRY(mixt__item_compute(m, first));
    mixt__item like = *first;
    for (int k = 0; k < n->in_count; k++) {
        mixt__item *part = mixt__import_in(m, n, k);
        if (!part || part->rank != like.rank)
            return mixt__import_refuse(m, "parts that do not fit");
        for (int i = 0; i < like.rank; i++) // what was written for one sample
            if (i == 0 && i != axis && part->dims[0] == 1 && like.dims[0] == m->batch)
                part->dims[0] = m->batch;
        MIXT_TRY(mixt__item_full(m, part, like.order, &parts[k]));
    }
    mixt_value v = n->in_count == 1 ? parts[0] : mixt_concat(m->b, parts, n->in_count, place_of(&like, axis));
    mixt__item_give_in(m, mixt__import_out(m, n, 0), like.type, v, like.order);
    return MIXT_OK;
}

/** Whole numbers that run from one to the next, or are all the same. */
static bool is_run(const double *ids, int64_t count, int64_t size, int64_t *begin, bool *same)
{
    *begin = (int64_t)ids[0] + (ids[0] < 0 ? size : 0);
    *same = true;
    bool run = true;
    for (int64_t i = 1; i < count; i++) {
        *same = *same && ids[i] == ids[0];
        run = run && ids[i] == ids[i - 1] + 1;
    }
    return (run || *same) && *begin >= 0 && *begin + (*same ? 1 : count) <= size;
}

/** Of indices that are known: a slice. */
static mixt_status gather_known(mixt__import *m, const mixt__onnx_node *n, int axis)
{
    mixt__item *a = mixt__import_in(m, n, 0), *ids = mixt__import_in(m, n, 1), *out = mixt__import_out(m, n, 0);
    int64_t count = mixt__item_count(ids), begin, dims[MIXT_ONNX_RANK], full[MIXT_ONNX_RANK];
    const double *numbers = mixt__item_numbers(m, ids);
    bool same;
    mixt_value v;
    mixt__onnx_type type = a->type;
    if (!numbers || count < 1 || a->rank - 1 + ids->rank > MIXT_MAX_RANK)
        return mixt__import_refuse(m, "indices that do not fit");
    int64_t last = ids->rank ? ids->dims[ids->rank - 1] : 1;
    bool rows = true; // the same ids for all samples
    for (int64_t i = last; i < count; i++)
        rows = rows && numbers[i] == numbers[i % last];
    if (!rows || !is_run(numbers, last, a->dims[axis], &begin, &same))
        return mixt__import_refuse(m, "known indices that are neither one number nor a run of them");
    MIXT_TRY(mixt__item_full(m, a, NULL, &v));
    v = mixt_slice(m->b, v, axis, begin, begin + (same ? 1 : last));
    int rank = 0;
    for (int i = 0; i < axis; i++)
        dims[rank] = full[rank] = a->dims[i], rank++;
    for (int i = 0; i < ids->rank; i++, rank++) {
        full[rank] = ids->dims[i];
        dims[rank] = i == ids->rank - 1 && !same ? last : 1;
    }
    for (int i = axis + 1; i < a->rank; i++)
        dims[rank] = full[rank] = a->dims[i], rank++;
    mixt__item_give(m, out, type, mixt__import_reshape(m, v, rank, dims));
    for (int i = 0; i < rank; i++)
        out->dims[i] = full[i];
    return MIXT_OK;
}

mixt_status mixt__onnx_gather(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0), *ids = mixt__import_in(m, n, 1);
    int axis = a ? mixt__import_axis(mixt__onnx_int(n, "axis", 0), a->rank) : -1;
    mixt_value table, rows;
    if (axis < 0 || !ids)
        return mixt__import_refuse(m, "an axis that is not there");
    if (ids->kind == MIXT_ITEM_CONSTANT)
        return gather_known(m, n, axis);
    if (axis != 0 || a->rank != 2 || mixt__onnx_type_is_float(ids->type))
        return mixt__import_refuse(m, "of indices that are computed only rows of a table (an embedding) are taken");
    mixt__onnx_type type = a->type;
    mixt__import_enter(m, n, a);
    MIXT_TRY(a->kind == MIXT_ITEM_PARAMETER ? mixt__item_parameter(m, a, NULL, true, &table)
                                            : mixt__item_full(m, a, NULL, &table));
    MIXT_TRY(mixt__item_full(m, ids, NULL, &rows));
    mixt__item_give(m, mixt__import_out(m, n, 0), type, mixt_embedding_lookup(m->b, table, rows));
    mixt__import_leave(m);
    return MIXT_OK;
}
