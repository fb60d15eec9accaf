/* Values of the file in the graph: constants, parameters, and the order in which dimensions lie in memory. */
#include "onnx/import.h"

#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

/** Numbers that are known while a graph is built take at most so much, and four times the file. */
enum { CONSTANT_BYTES = 64 << 20 };

static void natural(mixt__item *item)
{
    for (int i = 0; i < MIXT_ONNX_RANK; i++)
        item->order[i] = i;
}

int64_t mixt__item_count(const mixt__item *item)
{
    int64_t count = 1;
    for (int i = 0; i < item->rank; i++)
        if (__builtin_mul_overflow(count, item->dims[i], &count))
            return INT64_MAX;
    return count;
}

bool mixt__item_is(const mixt__item *item, mixt__item_kind kind)
{
    return item && item->kind == kind;
}

/* ---- constants ---- */

static mixt_status take_numbers(mixt__import *m, int64_t count, double **numbers)
{
    size_t limit = CONSTANT_BYTES + 4 * m->f->map.bytes;
    *numbers = NULL;
    if (count < 0 || (uint64_t)count > limit / sizeof **numbers ||
        m->constant_bytes + (size_t)count * sizeof **numbers > limit)
        return mixt__import_refuse(m, "constants would take more memory than four times the file");
    m->constant_bytes += (size_t)count * sizeof **numbers;
    *numbers = mixt__arena_alloc(&m->arena, (size_t)(count + 1) * sizeof **numbers);
    return *numbers ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a constant of an ONNX file");
}

mixt_status mixt__item_constant(mixt__import *m, mixt__item *item, mixt__onnx_type type, int rank, const int64_t *dims,
                                double **numbers)
{
    mixt__item made = {.kind = MIXT_ITEM_CONSTANT, .type = type, .rank = rank, .initializer = -1};
    natural(&made);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return mixt__import_refuse(m, "a constant with a size below 0");
        made.dims[i] = dims[i];
    }
    MIXT_TRY(take_numbers(m, mixt__item_count(&made), numbers));
    made.numbers = *numbers;
    *item = made;
    return MIXT_OK;
}

const double *mixt__item_numbers(mixt__import *m, mixt__item *item)
{
    mixt__onnx_tensor t;
    double *numbers;
    if (item->kind != MIXT_ITEM_CONSTANT || item->numbers)
        return item->numbers;
    if (mixt__onnx_tensor_read(m->onnx->file, m->f->initializers[item->initializer], &t) != MIXT_OK ||
        take_numbers(m, t.count, &numbers) != MIXT_OK || mixt__onnx_tensor_doubles(&t, numbers) != MIXT_OK)
        return NULL;
    item->numbers = numbers;
    return numbers;
}

bool mixt__item_scalar(mixt__import *m, mixt__item *item, double *number)
{
    if (!mixt__item_is(item, MIXT_ITEM_CONSTANT) || mixt__item_count(item) != 1 || !mixt__item_numbers(m, item))
        return false;
    *number = item->numbers[0];
    return true;
}

int mixt__item_ints(mixt__import *m, mixt__item *item, int64_t *numbers, int most)
{
    if (!mixt__item_is(item, MIXT_ITEM_CONSTANT) || mixt__item_count(item) > most || !mixt__item_numbers(m, item))
        return -1;
    int count = (int)mixt__item_count(item);
    for (int i = 0; i < count; i++)
        numbers[i] = item->numbers[i] >= 9e18    ? INT64_MAX
                     : item->numbers[i] <= -9e18 ? INT64_MIN
                                                 : (int64_t)item->numbers[i];
    return count;
}

/* ---- values of the graph ---- */

void mixt__item_give_in(mixt__import *m, mixt__item *item, mixt__onnx_type type, mixt_value value, const int *order)
{
    *item = (mixt__item){.kind = MIXT_ITEM_COMPUTED, .type = type, .value = value, .initializer = -1};
    natural(item);
    if (!value.id) { // the builder has failed, and says so
        item->kind = MIXT_ITEM_NONE;
        return;
    }
    const mixt__shape *shape = &m->b->graph->values[value.id].shape;
    item->rank = shape->rank;
    for (int i = 0; i < shape->rank; i++) {
        item->order[i] = order ? order[i] : i;
        item->dims[item->order[i]] = shape->dims[i];
    }
}

void mixt__item_give(mixt__import *m, mixt__item *item, mixt__onnx_type type, mixt_value value)
{
    mixt__item_give_in(m, item, type, value, NULL);
}

mixt_value mixt__import_reshape(mixt__import *m, mixt_value value, int rank, const int64_t *dims)
{
    mixt__shape wanted = mixt__shape_of(rank, dims);
    if (m->b->status != MIXT_OK || mixt__shape_equal(&m->b->graph->values[value.id].shape, &wanted))
        return value;
    return mixt_reshape(m->b, value, rank, dims);
}

/** The dimensions above 1 of a value, in the order in which they lie, as the file's numbers. */
static int large_dims(const mixt__import *m, const mixt__item *item, int shift, int list[MIXT_ONNX_RANK])
{
    const mixt__shape *shape = &m->b->graph->values[item->value.id].shape;
    int count = 0;
    for (int i = 0; i < item->rank; i++)
        if (shape->dims[i] != 1)
            list[count++] = item->order[i] + shift;
    return count;
}

mixt_status mixt__item_value(mixt__import *m, mixt__item *item, int rank, const int *order, mixt_value *value)
{
    int have[MIXT_ONNX_RANK], shift = rank - item->rank, sorted = 0;
    int64_t sizes[MIXT_ONNX_RANK], dims[MIXT_ONNX_RANK];
    MIXT_TRY(mixt__item_compute(m, item));
    if (rank > MIXT_MAX_RANK || shift < 0)
        return mixt__import_refuse(m, "values of %d dimensions: %d at most", rank, MIXT_MAX_RANK);
    const mixt__shape shape = m->b->graph->values[item->value.id].shape;
    for (int i = 0; i < rank; i++)
        sizes[i] = 1;
    for (int i = 0; i < item->rank; i++)
        sizes[item->order[i] + shift] = shape.dims[i];
    int count = large_dims(m, item, shift, have);
    bool same = true;
    for (int i = 0; i < rank; i++) {
        int axis = order ? order[i] : i;
        dims[i] = sizes[axis];
        if (sizes[axis] != 1)
            same = same && sorted < count && have[sorted++] == axis;
    }
    *value = item->value;
    if (!same) {
        int moves[MIXT_ONNX_RANK] = {0}, next = 0, where[MIXT_ONNX_RANK];
        for (int i = 0; i < item->rank; i++)
            where[item->order[i] + shift] = i;
        for (int i = 0; i < rank; i++)
            if ((order ? order[i] : i) >= shift)
                moves[next++] = where[order ? order[i] : i];
        *value = mixt_transpose(m->b, *value, moves);
    }
    *value = mixt__import_reshape(m, *value, rank, dims);
    return mixt__import_check(m);
}

mixt_status mixt__item_full(mixt__import *m, mixt__item *item, const int *order, mixt_value *value)
{
    mixt__pointwise_attrs at = {.in_count = 1, .instr_count = 1, .out_count = 1, .outs = {1}, .has_domain = true};
    MIXT_TRY(mixt__item_value(m, item, item->rank, order, value));
    at.domain.rank = item->rank;
    for (int i = 0; i < item->rank; i++)
        at.domain.dims[i] = item->dims[order ? order[i] : i];
    if (mixt__shape_equal(&at.domain, &m->b->graph->values[value->id].shape))
        return MIXT_OK;
    at.instrs[0].code = MIXT_PW_COPY;
    *value = mixt__builder_node(m->b, &mixt__op_pointwise, NULL, &at, value, 1);
    return mixt__import_check(m);
}
