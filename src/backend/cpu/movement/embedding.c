/* Rows of a table by index, and the gradient that adds rows back into an FP32 table.
 *
 * The gradient is deterministic without atomics: each thread owns a block of columns and walks the indices in order, so
 * every element of the table sees its additions in the same order whatever the thread count.
 */
#include "backend/cpu/core/rows.h"
#include "backend/cpu/core/tensor.h"
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/quantise.h"

enum { LINE = 16, COLUMN_TILE = 1024, ZERO_GRAIN = 65536 };

/** Both ops: so many indices, so long rows, so many rows in the table. */
typedef struct lookup {
    const mixt__call *call;
    const int32_t *ids;
    int64_t id_count, columns, table_rows;
} lookup;

static mixt_status check_ids(const lookup *l)
{
    for (int64_t i = 0; i < l->id_count; i++)
        if (l->ids[i] < 0 || l->ids[i] >= l->table_rows)
            return mixt__fail(MIXT_ERROR_DATA, "index %d at position %lld: the embedding table has rows 0 to %lld",
                              (int)l->ids[i], (long long)i, (long long)l->table_rows - 1);
    return MIXT_OK;
}

/* ---- forward: (table, ids) → rows ---- */

static lookup forward_lookup(const mixt__call *call)
{
    const mixt__shape *table = &call->in[0].shape;
    return (lookup){.call = call,
                    .ids = call->in[1].data,
                    .id_count = mixt__shape_count(&call->in[1].shape),
                    .columns = table->dims[1],
                    .table_rows = table->dims[0]};
}

static void copy_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const lookup *l = argument;
    const mixt__tensor *table = &l->call->in[0], *dst = &l->call->out[0];
    size_t bytes = (size_t)l->columns * mixt_dtype_size(table->dtype);
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        memcpy((char *)dst->data + (size_t)i * bytes, (const char *)table->data + (size_t)l->ids[i] * bytes, bytes);
}

/** Rows of a table of pairs: a scale for each. */
static void widen_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const lookup *l = argument;
    const mixt__tensor *table = &l->call->in[0], *dst = &l->call->out[0];
    mixt__narrow_fn *narrow = mixt__narrow(dst->dtype);
    size_t number = mixt_dtype_size(table->dtype), element = mixt_dtype_size(dst->dtype);
    float tile[COLUMN_TILE];
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        for (int64_t c = 0; c < l->columns; c += COLUMN_TILE) {
            int64_t width = l->columns - c < COLUMN_TILE ? l->columns - c : COLUMN_TILE, row = l->ids[i];
            mixt__dequantise(tile, (const char *)table->data + (size_t)(row * l->columns + c) * number, table->dtype,
                             width, table->scales[row]);
            narrow((char *)dst->data + (size_t)(i * l->columns + c) * element, tile, width);
        }
}

static mixt_status forward_run(const mixt__call *call)
{
    lookup l = forward_lookup(call);
    MIXT_TRY(check_ids(&l));
    mixt__parallel(l.id_count, mixt__row_grain(l.columns), mixt__tensor_is_pair(&call->in[0]) ? widen_rows : copy_rows,
                   &l);
    return MIXT_OK;
}

static mixt_status forward_plain_run(const mixt__call *call)
{
    lookup l = forward_lookup(call);
    const mixt__tensor *table = &call->in[0], *dst = &call->out[0];
    MIXT_TRY(check_ids(&l));
    for (int64_t i = 0; i < l.id_count; i++)
        for (int64_t c = 0; c < l.columns; c++)
            mixt__store(dst->data, dst->dtype, i * l.columns + c, mixt__tensor_load(table, l.ids[i] * l.columns + c));
    return MIXT_OK;
}

/* ---- gradient: (ids, grad_dst) → grad_table ---- */

static lookup gradient_lookup(const mixt__call *call)
{
    const mixt__shape *table = &call->out[0].shape;
    return (lookup){.call = call,
                    .ids = call->in[0].data,
                    .id_count = mixt__shape_count(&call->in[0].shape),
                    .columns = table->dims[1],
                    .table_rows = table->dims[0]};
}

static void zero_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const lookup *l = argument;
    (void)thread;
    memset((float *)l->call->out[0].data + begin, 0, (size_t)(end - begin) * sizeof(float));
}

static void add_columns(void *argument, int64_t begin, int64_t end, int thread)
{
    const lookup *l = argument;
    const mixt__tensor *grad_dst = &l->call->in[1];
    const mixt__row_loops *loops = mixt__row_loops_best();
    float *table = l->call->out[0].data, tile[COLUMN_TILE];
    (void)thread;
    for (int64_t i = 0; i < l->id_count; i++)
        for (int64_t c = begin; c < end; c += COLUMN_TILE) {
            int64_t width = end - c < COLUMN_TILE ? end - c : COLUMN_TILE;
            const float *src = mixt__row_load(tile, grad_dst->data, grad_dst->dtype, i * l->columns + c, width);
            loops->add(table + l->ids[i] * l->columns + c, src, width);
        }
}

static mixt_status gradient_run(const mixt__call *call)
{
    lookup l = gradient_lookup(call);
    MIXT_TRY(check_ids(&l));
    if (!(call->accumulate & 1))
        mixt__parallel(l.table_rows * l.columns, ZERO_GRAIN, zero_range, &l);
    int64_t grain =
        LINE * (1 + 8192 / (LINE * (l.id_count + 1))); // whole cache lines, and enough work to wake a thread
    mixt__parallel(l.columns, grain, add_columns, &l);
    return MIXT_OK;
}

static mixt_status gradient_plain_run(const mixt__call *call)
{
    lookup l = gradient_lookup(call);
    const mixt__tensor *grad_dst = &call->in[1];
    float *table = call->out[0].data;
    MIXT_TRY(check_ids(&l));
    if (!(call->accumulate & 1))
        for (int64_t i = 0; i < l.table_rows * l.columns; i++)
            table[i] = 0;
    for (int64_t i = 0; i < l.id_count; i++)
        for (int64_t c = 0; c < l.columns; c++)
            table[l.ids[i] * l.columns + c] += mixt__load(grad_dst->data, grad_dst->dtype, i * l.columns + c);
    return MIXT_OK;
}

static const mixt__kernel forward_fast = {.name = "rows", .run = forward_run},
                          forward_plain = {.name = "plain", .run = forward_plain_run},
                          gradient_fast = {.name = "columns", .run = gradient_run},
                          gradient_plain = {.name = "plain", .run = gradient_plain_run};

const mixt__kernel *const mixt__cpu_embedding_kernels[] = {&forward_fast, &forward_plain, NULL};
const mixt__kernel *const mixt__cpu_embedding_grad_kernels[] = {&gradient_fast, &gradient_plain, NULL};
