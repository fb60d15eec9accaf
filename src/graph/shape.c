/* Shapes: counts, strides, text. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

mixt_status mixt__shape_check(const mixt__shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0 || shape->dims[i] > MIXT_ELEMENTS_MAX / count) {
            char text[160];
            return mixt__fail(MIXT_ERROR_SHAPE, "shape %s: no size may be below 0, nor their product above 2^44",
                              mixt__shape_text(shape, text, sizeof text));
        }
        count *= shape->dims[i] ? shape->dims[i] : 1; // strides are products of some of the sizes only
    }
    return MIXT_OK;
}

int64_t mixt__shape_count(const mixt__shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= shape->dims[i];
    return count;
}

mixt__shape mixt__scale_shape(const mixt__shape *shape, mixt__scale_kind kind, int64_t block)
{
    mixt__shape scales = {0};
    if (kind == MIXT_SCALE_CHANNEL && shape->rank)
        scales = (mixt__shape){1, {shape->dims[0]}};
    if (kind == MIXT_SCALE_NESTED)
        scales = (mixt__shape){1, {block}};
    if (kind == MIXT_SCALE_BLOCK && shape->rank && block > 0) {
        scales = *shape;
        scales.dims[scales.rank - 1] = (scales.dims[scales.rank - 1] + block - 1) / block;
    }
    return scales;
}

bool mixt__shape_equal(const mixt__shape *a, const mixt__shape *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]);
}

void mixt__shape_strides(const mixt__shape *shape, int64_t *strides)
{
    int64_t step = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= shape->dims[i];
    }
}

bool mixt__value_contiguous(const mixt__value *value)
{
    int64_t expected = 1;
    for (int i = value->shape.rank - 1; i >= 0; i--) {
        if (value->shape.dims[i] != 1 && value->strides[i] != expected)
            return false;
        expected *= value->shape.dims[i];
    }
    return true;
}

const char *mixt__shape_text(const mixt__shape *shape, char *buffer, size_t size)
{
    size_t used = (size_t)snprintf(buffer, size, "(");
    for (int i = 0; i < shape->rank && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%lld", i ? ", " : "", (long long)shape->dims[i]);
    if (used < size)
        snprintf(buffer + used, size - used, ")");
    return buffer;
}

mixt__shape mixt__shape_of(int rank, const int64_t *dims)
{
    mixt__shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    return shape;
}
