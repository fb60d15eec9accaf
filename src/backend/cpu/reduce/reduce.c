/* Sums and means over neighbouring dimensions, and in plain C over any.
 *
 * With the summed dimensions next to each other a tensor is (outer, summed, inner): row sums have inner = 1, column
 * sums (bias gradients) outer = 1, global pooling both. The summed rows are cut into chunks whose number depends on the
 * shape only; each chunk's FP32 sums go to the workspace, then chunks are added up in order, in double. So neither the
 * number of threads nor luck changes a bit. Bytes moved: the input once.
 *
 * Short inner rows (few channels) are taken several at a time as one wide row, whose parts are added up at the end.
 */
#include "backend/cpu/core/rows.h"
#include "backend/cpu/kernels.h"
#include "backend/reduce.h"
#include "base/threads.h"

enum {
    MAX_CHUNKS = 32,
    CHUNK_ELEMENTS = 8192,
    WIDE_ROW = 512,      // inner rows shorter than half of this are put together
    BLOCK = 4096,        // columns summed in one go, in L1
    TILE = 512,          // columns widened in one go
    FINISH_GRAIN = 4096, // sums
};

typedef struct layout {
    mixt__reduce_layout axes;
    int64_t together;    // inner rows in a wide row
    int64_t width, rows; // of wide rows; summed % together inner rows are left over
    int64_t chunks, chunk_rows;
    int64_t blocks; // of BLOCK columns
} layout;

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__reduce_layout l;
    *reason = "summed dimensions are not next to each other";
    return mixt__reduce_find(call, &l);
}

static void plan_chunks(layout *l)
{
    l->together = l->axes.inner > 1 && l->axes.inner <= WIDE_ROW / 2 ? WIDE_ROW / l->axes.inner : 1;
    if (l->together > l->axes.summed)
        l->together = l->axes.summed > 0 ? l->axes.summed : 1;
    if (l->axes.inner == 1) { // row sums: one long row each
        l->width = l->axes.summed;
        l->rows = l->axes.summed > 0;
        l->chunk_rows = 1;
        l->chunks = 1;
        l->blocks = 1;
        if (l->axes.outer < MAX_CHUNKS && l->axes.summed > CHUNK_ELEMENTS)
            l->chunks = divide_up(l->axes.summed, CHUNK_ELEMENTS);
        return;
    }
    l->width = l->axes.inner * l->together;
    l->rows = l->axes.summed / l->together;
    l->chunks = 1;
    if (l->axes.outer < MAX_CHUNKS)
        l->chunks = l->rows * (l->width < BLOCK ? l->width : BLOCK) / CHUNK_ELEMENTS;
    l->chunks = l->chunks < 1 ? 1 : l->chunks > MAX_CHUNKS ? MAX_CHUNKS : l->chunks;
    l->chunk_rows = divide_up(divide_up(l->rows, l->chunks), MIXT__ROW_GROUP) * MIXT__ROW_GROUP;
    l->chunks = l->rows > 0 ? divide_up(l->rows, l->chunk_rows) : 1;
    l->blocks = divide_up(l->width, BLOCK);
}

/** Workspace: (outer, chunks, width) partial sums, width 1 for row sums. */
static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    layout *l = mixt__arena_alloc(arena, sizeof *l);
    if (!l)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the layout of a reduction");
    mixt__reduce_find(call, &l->axes);
    plan_chunks(l);
    call->state = l;
    call->workspace_bytes = (size_t)(l->axes.outer * l->chunks * (l->axes.inner == 1 ? 1 : l->width)) * sizeof(float);
    return MIXT_OK;
}

/* ---- partial sums ---- */

static void sum_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const layout *l = call->state;
    const mixt__tensor *src = &call->in[0];
    float *partial = call->workspace, tile[MIXT__ROW_TILE];
    (void)thread;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit / l->chunks, first = l->chunks > 1 ? unit % l->chunks * CHUNK_ELEMENTS : 0;
        int64_t last =
            l->chunks > 1 && first + CHUNK_ELEMENTS < l->axes.summed ? first + CHUNK_ELEMENTS : l->axes.summed;
        double sum = 0;
        for (int64_t i = first; i < last; i += MIXT__ROW_TILE) {
            int64_t width = last - i < MIXT__ROW_TILE ? last - i : MIXT__ROW_TILE;
            sum += (double)mixt__row_loops_best()->sum(
                mixt__row_load(tile, src->data, src->dtype, row * l->axes.summed + i, width), width);
        }
        partial[unit] = (float)sum;
    }
}

/** Adds up to MIXT__ROW_GROUP rows that start at element `index` to the sums. */
static void add_rows(float *sums, const mixt__tensor *src, int64_t index, int64_t rows, int64_t stride, int64_t width)
{
    const mixt__row_loops *loops = mixt__row_loops_best();
    float tile[MIXT__ROW_GROUP * TILE];
    if (rows == MIXT__ROW_GROUP && src->dtype == MIXT_DTYPE_FP32) {
        loops->add_group(sums, (const float *)src->data + index, stride, width);
        return;
    }
    if (rows == MIXT__ROW_GROUP && src->dtype == MIXT_DTYPE_BF16) {
        loops->add_group_bf16(sums, (const uint16_t *)src->data + index, stride, width);
        return;
    }
    for (int64_t c = 0; c < width; c += TILE) {
        int64_t count = width - c < TILE ? width - c : TILE;
        for (int64_t r = 0; r < rows; r++) {
            const float *row = mixt__row_load(tile + r * TILE, src->data, src->dtype, index + r * stride + c, count);
            if (rows < MIXT__ROW_GROUP)
                loops->add(sums + c, row, count);
        }
        if (rows == MIXT__ROW_GROUP)
            loops->add_group(sums + c, tile, TILE, count);
    }
}

static void sum_columns(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const layout *l = call->state;
    (void)thread;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t column = unit % l->blocks * BLOCK, chunk = unit / l->blocks % l->chunks,
                outer = unit / l->blocks / l->chunks;
        int64_t width = l->width - column < BLOCK ? l->width - column : BLOCK;
        int64_t first = chunk * l->chunk_rows, last = first + l->chunk_rows < l->rows ? first + l->chunk_rows : l->rows;
        float *sums = (float *)call->workspace + (outer * l->chunks + chunk) * l->width + column;
        memset(sums, 0, (size_t)width * sizeof *sums);
        for (int64_t r = first; r < last; r += MIXT__ROW_GROUP)
            add_rows(sums, &call->in[0], outer * l->axes.summed * l->axes.inner + r * l->width + column,
                     last - r < MIXT__ROW_GROUP ? last - r : MIXT__ROW_GROUP, l->width, width);
    }
}

/* ---- the end ---- */

/** Adds up the partial sums of `count` neighbouring columns of one outer row. */
static void add_partials(double *sums, const mixt__call *call, int64_t outer, int64_t column, int64_t count)
{
    const layout *l = call->state;
    int64_t width = l->axes.inner == 1 ? 1 : l->width, covered = l->rows * l->together;
    const float *partial = (const float *)call->workspace + outer * l->chunks * width;
    memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t chunk = 0; chunk < l->chunks; chunk++)
        for (int64_t part = 0; part < l->together; part++) {
            const float *from = partial + chunk * width + part * l->axes.inner + column;
            for (int64_t i = 0; i < count; i++)
                sums[i] += (double)from[i];
        }
    if (l->axes.inner == 1)
        return;
    for (int64_t r = covered; r < l->axes.summed; r++) // rows too few for a wide row
        for (int64_t i = 0; i < count; i++)
            sums[i] += (double)mixt__load(call->in[0].data, call->in[0].dtype,
                                          (outer * l->axes.summed + r) * l->axes.inner + column + i);
}

static void finish(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const mixt__reduce_attrs *at = call->attrs;
    const layout *l = call->state;
    const mixt__tensor *dst = &call->out[0];
    double sums[TILE];
    float results[TILE], *total = dst->data;
    (void)thread;
    for (int64_t i = begin, count; i < end; i += count) {
        int64_t outer = i / l->axes.inner, column = i % l->axes.inner;
        count = l->axes.inner - column < TILE ? l->axes.inner - column : TILE;
        count = end - i < count ? end - i : count;
        add_partials(sums, call, outer, column, count);
        for (int64_t k = 0; k < count; k++)
            results[k] = (float)(at->mean ? sums[k] / (double)l->axes.summed : sums[k]);
        if (call->accumulate & 1)
            mixt__row_loops_best()->add(total + i, results, count);
        else
            mixt__narrow(dst->dtype)(mixt__row_at(dst->data, dst->dtype, i), results, count);
    }
}

static mixt_status run(const mixt__call *call)
{
    const layout *l = call->state;
    if (l->axes.outer * l->axes.inner == 0)
        return MIXT_OK;
    int64_t work = l->axes.summed * l->axes.inner / (l->chunks * l->blocks); // elements in a unit
    int64_t grain = 1 + CHUNK_ELEMENTS / 2 / (work > 0 ? work : 1);
    mixt__parallel(l->axes.outer * l->chunks * l->blocks, grain, l->axes.inner == 1 ? sum_rows : sum_columns,
                   (void *)call);
    mixt__parallel(l->axes.outer * l->axes.inner, FINISH_GRAIN, finish, (void *)call);
    return MIXT_OK;
}

/* ---- plain ---- */

/** The sum that belongs to one output element: a walk over all combinations of summed positions. */
static double plain_sum(const mixt__tensor *src, uint32_t axes, int64_t output)
{
    int64_t base = 0, combinations = 1;
    double sum = 0;
    for (int d = src->shape.rank - 1; d >= 0; d--) {
        if (axes >> d & 1) {
            combinations *= src->shape.dims[d];
            continue;
        }
        base += output % src->shape.dims[d] * src->strides[d];
        output /= src->shape.dims[d];
    }
    for (int64_t k = 0; k < combinations; k++) {
        int64_t rest = k, offset = base;
        for (int d = src->shape.rank - 1; d >= 0; d--)
            if (axes >> d & 1) {
                offset += rest % src->shape.dims[d] * src->strides[d];
                rest /= src->shape.dims[d];
            }
        sum += (double)mixt__load(src->data, src->dtype, offset);
    }
    return sum;
}

static mixt_status plain_run(const mixt__call *call)
{
    const mixt__reduce_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    double divisor = 1;
    for (int d = 0; d < src->shape.rank && at->mean; d++)
        if (at->axes >> d & 1)
            divisor *= (double)src->shape.dims[d];
    for (int64_t i = 0; i < mixt__shape_count(&dst->shape); i++) {
        double result = plain_sum(src, at->axes, i) / divisor;
        if (call->accumulate & 1)
            result += (double)mixt__load(dst->data, dst->dtype, i);
        mixt__store(dst->data, dst->dtype, i, (float)result);
    }
    return MIXT_OK;
}

static const mixt__kernel chunked = {.name = "chunked", .supports = supports, .prepare = prepare, .run = run},
                          plain = {.name = "plain", .run = plain_run};

const mixt__kernel *const mixt__cpu_reduce_kernels[] = {&chunked, &plain, NULL};
