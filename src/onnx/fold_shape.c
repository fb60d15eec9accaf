/* Constants whose elements are moved, or made. */
#include "onnx/fold.h"

#include <math.h>
#include <string.h>

/** Strides of a constant, row by row. */
static void strides_of(const mixt__item *item, int64_t strides[MIXT_ONNX_RANK])
{
    int64_t stride = 1;
    for (int i = item->rank - 1; i >= 0; stride *= item->dims[i--])
        strides[i] = stride;
}

/** A constant whose element at each place is one of `from`. @param base where the first lies */
static mixt_status pick(mixt__import *m, const mixt__onnx_node *n, mixt__item *from, int rank, const int64_t *dims,
                        const int64_t *steps, int64_t base)
{
    const double *x = mixt__item_numbers(m, from);
    double *out;
    if (!x)
        return MIXT_ERROR_MEMORY;
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), from->type, rank, dims, &out));
    mixt__walk w = mixt__walk_start(rank, dims);
    for (int64_t i = 0; mixt__walk_more(&w); mixt__walk_next(&w), i++)
        out[i] = x[base + mixt__walk_at(&w, steps)];
    return MIXT_OK;
}

/** The same elements in another shape. */
static mixt_status shape_as(mixt__import *m, const mixt__onnx_node *n, int rank, const int64_t *dims)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    int64_t count = mixt__item_count(a), wanted = 1;
    double *out;
    for (int i = 0; i < rank; i++)
        wanted *= dims[i];
    const double *x = mixt__item_numbers(m, a);
    if (!x || wanted != count)
        return mixt__import_refuse(m, "a constant of %lld elements in a shape of %lld", (long long)count,
                                   (long long)wanted);
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), a->type, rank, dims, &out));
    memcpy(out, x, (size_t)count * sizeof *out);
    return MIXT_OK;
}

static mixt_status fold_reshape(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    int64_t dims[MIXT_ONNX_RANK];
    int rank = mixt__import_list(m, n, "shape", 1, dims, MIXT_ONNX_RANK);
    if (rank < 0 || !mixt__import_shape(a, rank, dims, mixt__onnx_int(n, "allowzero", 0) != 0, 0))
        return mixt__import_refuse(m, "a shape that does not fit");
    return shape_as(m, n, rank, dims);
}

static mixt_status fold_squeeze(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    int64_t dims[MIXT_ONNX_RANK];
    int rank = mixt__import_squeezed(m, n, a, dims);
    return rank < 0 ? mixt__import_refuse(m, "axes that do not fit") : shape_as(m, n, rank, dims);
}

static mixt_status fold_transpose(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    int64_t order[MIXT_ONNX_RANK], dims[MIXT_ONNX_RANK], steps[MIXT_ONNX_RANK], strides[MIXT_ONNX_RANK];
    if (!mixt__import_perm(n, a->rank, order))
        return mixt__import_refuse(m, "perm is not a permutation");
    strides_of(a, strides);
    for (int i = 0; i < a->rank; i++) {
        dims[i] = a->dims[order[i]];
        steps[i] = strides[order[i]];
    }
    return pick(m, n, a, a->rank, dims, steps, 0);
}

static mixt_status fold_expand(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    int64_t wanted[MIXT_ONNX_RANK], dims[MIXT_ONNX_RANK], steps[MIXT_ONNX_RANK], strides[MIXT_ONNX_RANK];
    int count = mixt__import_list(m, n, "shape", 1, wanted, MIXT_ONNX_RANK), rank = count > a->rank ? count : a->rank;
    if (count < 0)
        return mixt__import_refuse(m, "a shape that does not fit");
    strides_of(a, strides);
    for (int i = 0; i < rank; i++) {
        int own = i - (rank - a->rank), given = i - (rank - count);
        int64_t have = own >= 0 ? a->dims[own] : 1, want = given >= 0 ? wanted[given] : 1;
        if (have != 1 && want != 1 && have != want)
            return mixt__import_refuse(m, "a shape that does not fit");
        dims[i] = have != 1 ? have : want;
        steps[i] = own >= 0 && have != 1 ? strides[own] : 0;
    }
    return pick(m, n, a, rank, dims, steps, 0);
}

static mixt_status fold_slice(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    mixt__slice_range ranges[MIXT_ONNX_RANK];
    int64_t dims[MIXT_ONNX_RANK], steps[MIXT_ONNX_RANK], strides[MIXT_ONNX_RANK], base = 0;
    MIXT_TRY(mixt__import_slices(m, n, a, ranges));
    strides_of(a, strides);
    for (int i = 0; i < a->rank; i++) {
        dims[i] = ranges[i].count;
        steps[i] = strides[i] * ranges[i].step;
        base += strides[i] * ranges[i].begin;
    }
    return pick(m, n, a, a->rank, dims, steps, base);
}

static mixt_status fold_gather(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0), *b = mixt__import_in(m, n, 1);
    const double *x = a ? mixt__item_numbers(m, a) : NULL, *ids = b ? mixt__item_numbers(m, b) : NULL;
    int axis = a ? mixt__import_axis(mixt__onnx_int(n, "axis", 0), a->rank) : -1;
    int64_t dims[MIXT_ONNX_RANK], inner = 1, outer = 1, k = 0;
    double *out;
    if (!x || !ids || axis < 0 || a->rank - 1 + b->rank > MIXT_ONNX_RANK)
        return mixt__import_refuse(m, "indices that do not fit");
    int rank = 0;
    for (int i = 0; i < axis; i++)
        outer *= dims[rank++] = a->dims[i];
    for (int i = 0; i < b->rank; i++)
        dims[rank++] = b->dims[i];
    for (int i = axis + 1; i < a->rank; i++)
        inner *= dims[rank++] = a->dims[i];
    int64_t size = a->dims[axis], count = mixt__item_count(b);
    mixt__onnx_type type = a->type;
    for (int64_t i = 0; i < count; i++)
        if (!(ids[i] >= (double)-size && ids[i] < (double)size))
            return mixt__import_refuse(m, "index %g of %lld", ids[i], (long long)size);
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), type, rank, dims, &out));
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < count; i++)
            for (int64_t e = 0, id = (int64_t)ids[i]; e < inner; e++)
                out[k++] = x[(o * size + (id < 0 ? id + size : id)) * inner + e];
    return MIXT_OK;
}

static mixt_status fold_concat(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *first = mixt__import_in(m, n, 0);
    int axis = first ? mixt__import_axis(mixt__onnx_int(n, "axis", 0), first->rank) : -1;
    int64_t dims[MIXT_ONNX_RANK], outer = 1, inner = 1, done = 0;
    double *out;
    if (axis < 0)
        return mixt__import_refuse(m, "an axis that does not fit");
    memcpy(dims, first->dims, sizeof dims);
    dims[axis] = 0;
    for (int k = 0; k < n->in_count; k++) {
        const mixt__item *a = mixt__import_in(m, n, k);
        bool fits = a && a->rank == first->rank;
        for (int i = 0; fits && i < a->rank; i++)
            fits = i == axis || a->dims[i] == first->dims[i];
        if (!fits)
            return mixt__import_refuse(m, "parts that do not fit");
        dims[axis] += a->dims[axis];
    }
    for (int i = 0; i < axis; i++)
        outer *= dims[i];
    for (int i = axis + 1; i < first->rank; i++)
        inner *= dims[i];
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), first->type, first->rank, dims, &out));
    for (int k = 0; k < n->in_count; k++) {
        mixt__item *a = mixt__import_in(m, n, k);
        const double *x = mixt__item_numbers(m, a);
        int64_t row = a->dims[axis] * inner;
        if (!x)
            return MIXT_ERROR_MEMORY;
        for (int64_t o = 0; o < outer; o++)
            memcpy(out + o * dims[axis] * inner + done, x + o * row, (size_t)row * sizeof *out);
        done += row;
    }
    return MIXT_OK;
}

static mixt_status fold_range(mixt__import *m, const mixt__onnx_node *n)
{
    double ends[3], *out;
    for (int k = 0; k < 3; k++)
        if (!mixt__item_scalar(m, mixt__import_in(m, n, k), &ends[k]))
            return mixt__import_refuse(m, "begin, end and step are needed");
    double length = ends[2] != 0 ? ceil((ends[1] - ends[0]) / ends[2]) : 0;
    int64_t count = length > 0 && length < 1e12 ? (int64_t)length : 0;
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), mixt__import_in(m, n, 0)->type, 1, &count, &out));
    for (int64_t i = 0; i < count; i++)
        out[i] = ends[0] + (double)i * ends[2];
    return MIXT_OK;
}

static mixt_status fold_trilu(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    double shift = 0, *out;
    const double *x = mixt__item_numbers(m, a);
    if (n->in_count > 1 && n->in[1] && !mixt__item_scalar(m, mixt__import_in(m, n, 1), &shift))
        return mixt__import_refuse(m, "k is not known");
    if (!x || a->rank < 2)
        return mixt__import_refuse(m, "a matrix is needed");
    bool upper = mixt__onnx_int(n, "upper", 1) != 0;
    int64_t rows = a->dims[a->rank - 2], columns = a->dims[a->rank - 1], count = mixt__item_count(a);
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), a->type, a->rank, a->dims, &out));
    for (int64_t i = 0; i < count; i++) {
        double off = (double)(i % columns - i / columns % rows);
        out[i] = (upper ? off >= shift : off <= shift) ? x[i] : 0;
    }
    return MIXT_OK;
}

static mixt_status fold_filled(mixt__import *m, const mixt__onnx_node *n)
{
    int64_t dims[MIXT_ONNX_RANK];
    int rank = mixt__item_ints(m, mixt__import_in(m, n, 0), dims, MIXT_ONNX_RANK);
    mixt__onnx_attribute a = mixt__onnx_attribute_of(n, "value");
    mixt__onnx_tensor t = {.type = MIXT_ONNX_FLOAT, .count = 0};
    double value = 0, *out;
    if (rank < 0)
        return mixt__import_refuse(m, "the shape is not known");
    if (a.type == MIXT_ONNX_IS_TENSOR) {
        MIXT_TRY(mixt__onnx_tensor_read(m->onnx->file, a.s, &t));
        if (t.count == 1)
            MIXT_TRY(mixt__onnx_tensor_doubles(&t, &value));
    }
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), t.type, rank, dims, &out));
    int64_t count = mixt__item_count(mixt__import_out(m, n, 0));
    for (int64_t i = 0; i < count; i++)
        out[i] = value;
    return MIXT_OK;
}

static mixt_status fold_tile(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *a = mixt__import_in(m, n, 0);
    int64_t times[MIXT_ONNX_RANK], dims[MIXT_ONNX_RANK];
    const double *x = mixt__item_numbers(m, a);
    double *out;
    if (!x || mixt__item_ints(m, mixt__import_in(m, n, 1), times, MIXT_ONNX_RANK) != a->rank)
        return mixt__import_refuse(m, "repeats that do not fit");
    mixt__item from = *a;
    for (int i = 0; i < a->rank; i++)
        if (times[i] < 0 || __builtin_mul_overflow(a->dims[i], times[i], &dims[i]))
            return mixt__import_refuse(m, "repeats that do not fit");
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), from.type, from.rank, dims, &out));
    mixt__walk w = mixt__walk_start(from.rank, dims);
    for (int64_t i = 0; mixt__walk_more(&w); mixt__walk_next(&w), i++) {
        int64_t at = 0;
        for (int d = 0; d < from.rank; d++)
            at = at * from.dims[d] + w.at[d] % from.dims[d];
        out[i] = x[at];
    }
    return MIXT_OK;
}

static const struct {
    const char *op;
    mixt__onnx_make *fold;
} folds[] = {{"Reshape", fold_reshape},        {"Squeeze", fold_squeeze}, {"Unsqueeze", fold_squeeze},
             {"Transpose", fold_transpose},    {"Expand", fold_expand},   {"Slice", fold_slice},
             {"Gather", fold_gather},          {"Concat", fold_concat},   {"Range", fold_range},
             {"ConstantOfShape", fold_filled}, {"Trilu", fold_trilu},     {"Tile", fold_tile}};

enum { FOLDS = sizeof folds / sizeof folds[0] };

static int find(mixt__wire_span op)
{
    int i = 0;
    while (i < FOLDS && !mixt__wire_is(op, folds[i].op))
        i++;
    return i;
}

bool mixt__onnx_folds_shape(mixt__wire_span op)
{
    return find(op) < FOLDS;
}

mixt_status mixt__onnx_fold_shape(mixt__import *m, const mixt__onnx_node *n)
{
    int i = find(n->op);
    if (i == FOLDS)
        return MIXT_ERROR_UNSUPPORTED;
    return n->in_count && n->in[0] ? folds[i].fold(m, n) : mixt__import_refuse(m, "an input is needed");
}
