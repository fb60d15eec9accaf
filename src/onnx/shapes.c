/* Sizes, axes and ranges as nodes say them. */
#include "onnx/import.h"

#include <string.h>

bool mixt__import_shape(const mixt__item *item, int rank, int64_t *dims, bool allow_zero, int64_t batch)
{
    int64_t count = mixt__item_count(item), rest = 1;
    int open = -1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0 && !allow_zero) {
            if (i >= item->rank)
                return false;
            dims[i] = item->dims[i];
        }
        if (dims[i] < -1 || (dims[i] == -1 && open >= 0))
            return false;
        if (dims[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(rest, dims[i], &rest))
            return false;
    }
    if (open < 0 && rest != count && batch && rank && dims[0] > 0 && rest / dims[0] * batch == count) {
        dims[0] = batch;
        return true;
    }
    if (open > 0 && batch && dims[0] > 0 && dims[0] < batch && item->rank && item->dims[0] == batch &&
        count % (rest / dims[0] * batch) == 0) {
        rest = rest / dims[0] * batch;
        dims[0] = batch;
    }
    if (open < 0)
        return rest == count;
    if (rest == 0 || count % rest)
        return false;
    dims[open] = count / rest;
    return true;
}

int mixt__import_squeezed(mixt__import *m, const mixt__onnx_node *n, const mixt__item *item, int64_t *dims)
{
    int64_t axes[MIXT_ONNX_RANK];
    int count = mixt__import_list(m, n, "axes", 1, axes, MIXT_ONNX_RANK), rank = 0;
    bool add = mixt__wire_is(n->op, "Unsqueeze");
    int whole = add ? item->rank + count : item->rank;
    unsigned mask = 0;
    if (count > MIXT_ONNX_RANK || whole > MIXT_ONNX_RANK || (add && count < 0))
        return -1;
    for (int i = 0; i < count; i++) {
        int axis = mixt__import_axis(axes[i], whole);
        if (axis < 0 || mask >> axis & 1)
            return -1;
        mask |= 1u << axis;
    }
    if (add) {
        for (int i = 0, next = 0; i < whole; i++)
            dims[rank++] = mask >> i & 1 ? 1 : item->dims[next++];
        return rank;
    }
    for (int i = 0; i < item->rank; i++) {
        bool drop = count >= 0 ? mask >> i & 1 : item->dims[i] == 1;
        if (drop && item->dims[i] != 1)
            return -1;
        if (!drop)
            dims[rank++] = item->dims[i];
    }
    return rank;
}

bool mixt__import_perm(const mixt__onnx_node *n, int rank, int64_t *order)
{
    int count = mixt__onnx_ints(n, "perm", order, MIXT_ONNX_RANK);
    unsigned seen = 0;
    for (int i = 0; count < 0 && i < rank; i++)
        order[i] = rank - 1 - i;
    if (count >= 0 && count != rank)
        return false;
    for (int i = 0; i < rank; i++) {
        if (order[i] < 0 || order[i] >= rank || seen >> order[i] & 1)
            return false;
        seen |= 1u << order[i];
    }
    return true;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void set_range(mixt__slice_range *r, int64_t size, int64_t begin, int64_t end, int64_t step)
{
    begin = begin < 0 ? (begin < -size ? -1 : begin + size) : begin;
    end = end < 0 ? (end < -size ? -1 : end + size) : end;
    if (step > 0) {
        begin = clamp(begin, 0, size);
        end = clamp(end, 0, size);
        r->count = end > begin ? (end - begin - 1) / step + 1 : 0;
    } else {
        begin = clamp(begin, -1, size - 1);
        end = clamp(end, -1, size - 1);
        r->count = begin > end ? (begin - end - 1) / -step + 1 : 0;
    }
    r->begin = begin;
    r->step = step;
}

mixt_status mixt__import_slices(mixt__import *m, const mixt__onnx_node *n, const mixt__item *item,
                                mixt__slice_range ranges[MIXT_ONNX_RANK])
{
    int64_t begins[MIXT_ONNX_RANK], ends[MIXT_ONNX_RANK], axes[MIXT_ONNX_RANK], steps[MIXT_ONNX_RANK];
    int count = mixt__import_list(m, n, "starts", 1, begins, MIXT_ONNX_RANK);
    int named = mixt__import_list(m, n, "axes", 3, axes, MIXT_ONNX_RANK);
    int stepped = mixt__import_in(m, n, 4) ? mixt__import_list(m, n, "steps", 4, steps, MIXT_ONNX_RANK) : -1;
    if (count < 0 || mixt__import_list(m, n, "ends", 2, ends, MIXT_ONNX_RANK) != count || count > item->rank ||
        (named >= 0 && named != count) || (stepped >= 0 && stepped != count) ||
        (mixt__import_in(m, n, 3) && named < 0) || (mixt__import_in(m, n, 4) && stepped < 0))
        return mixt__import_refuse(m, "ranges that are not known, or do not fit");
    for (int i = 0; i < item->rank; i++)
        ranges[i] = (mixt__slice_range){0, item->dims[i], 1};
    for (int i = 0; i < count; i++) {
        int axis = mixt__import_axis(named >= 0 ? axes[i] : i, item->rank);
        int64_t step = stepped >= 0 ? steps[i] : 1;
        if (axis < 0 || step == 0 || step < -INT32_MAX || step > INT32_MAX)
            return mixt__import_refuse(m, "a range along an axis that is not there, or in steps of 0");
        set_range(&ranges[axis], item->dims[axis], begins[i], ends[i], step);
    }
    return MIXT_OK;
}
