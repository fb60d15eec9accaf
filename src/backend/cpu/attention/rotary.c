/* Rotary positions on the CPU: the table of angles, and turning the heads of rows.
 *
 * Rows are divided among threads; a head is widened, turned and narrowed while it lies in the first-level cache. The
 * plain candidate turns one pair at a time in double.
 */
#include "ops/rotary_attrs.h"

#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

/* ---- the table ---- */

static mixt_status table_run(const mixt__call *call)
{
    const mixt__rotary_table_attrs *at = call->attrs;
    const int32_t *places = call->in[0].data;
    float *table = call->out[0].data;
    int64_t rows = mixt__shape_count(&call->out[0].shape) / at->dim, half = at->dim / 2;
    for (int64_t i = 0; i < half; i++) {
        float frequency = mixt__rotary_frequency(at, i);
        for (int64_t t = 0; t < rows; t++) {
            float angle = (float)(at->places ? places[t] : t) * frequency;
            table[t * at->dim + i] = (float)cos((double)angle) * at->magnitude;
            table[t * at->dim + half + i] = (float)sin((double)angle) * at->magnitude;
        }
    }
    return MIXT_OK;
}

static const mixt__kernel table_plain = {.name = "plain", .run = table_run};

const mixt__kernel *const mixt__cpu_rotary_table_kernels[] = {&table_plain, NULL};

/* ---- turning ---- */

typedef struct task {
    const mixt__call *call;
    int64_t tokens, cols; // T and C
    int64_t angles;       // rows of the table: T, or B · T
} task;

static task task_of(const mixt__call *call)
{
    const mixt__shape *src = &call->in[0].shape, *table = &call->in[1].shape;
    return (task){call, src->dims[1], src->dims[2], mixt__shape_count(table) / table->dims[table->rank - 1]};
}

/** Columns [from, to) of one row, which are not turned. */
static void copy_columns(const task *t, int64_t row, int64_t from, int64_t to)
{
    const mixt__tensor *src = &t->call->in[0], *dst = &t->call->out[0];
    size_t size = mixt_dtype_size(src->dtype), begin = (size_t)(row * t->cols + from) * size;
    if (src->data != dst->data)
        memcpy((char *)dst->data + begin, (const char *)src->data + begin, (size_t)(to - from) * size);
}

/** The columns that are not turned, of one row. */
static void copy_rest(const task *t, int64_t row)
{
    const mixt__rotary_attrs *at = t->call->attrs;
    int64_t width = mixt__rotary_width(at);
    for (int64_t head = 0; width > at->dim && head < at->heads; head++)
        copy_columns(t, row, head * width + at->dim, (head + 1) * width);
    copy_columns(t, row, at->heads * width, t->cols);
}

static void rows_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const task *t = argument;
    const mixt__rotary_attrs *at = t->call->attrs;
    const mixt__tensor *src = &t->call->in[0], *dst = &t->call->out[0];
    mixt__widen_fn *widen = mixt__widen(src->dtype);
    mixt__narrow_fn *narrow = mixt__narrow(src->dtype);
    size_t size = mixt_dtype_size(src->dtype);
    int64_t half = at->dim / 2;
    float x[MIXT_ROTARY_DIM_MAX], y[MIXT_ROTARY_DIM_MAX];
    (void)thread;
    for (int64_t row = begin; row < end; row++) {
        const float *cosines = (const float *)t->call->in[1].data + row % t->angles * at->dim, *sines = cosines + half;
        for (int64_t head = 0; head < at->heads; head++) {
            size_t place = (size_t)(row * t->cols + head * mixt__rotary_width(at)) * size;
            widen(x, (const char *)src->data + place, at->dim);
            for (int64_t i = 0; i < half; i++) {
                float sine = at->inverse ? -sines[i] : sines[i];
                y[i] = x[i] * cosines[i] - x[half + i] * sine;
                y[half + i] = x[half + i] * cosines[i] + x[i] * sine;
            }
            narrow((char *)dst->data + place, y, at->dim);
        }
        copy_rest(t, row);
    }
}

static mixt_status rows_run(const mixt__call *call)
{
    task t = task_of(call);
    const mixt__rotary_attrs *at = call->attrs;
    mixt__parallel(call->in[0].shape.dims[0] * t.tokens, 8192 / (at->heads * at->dim) + 1, rows_range, &t);
    return MIXT_OK;
}

static bool rows_support(const mixt__call *call, const char **reason)
{
    *reason = "heads of more than 512 numbers";
    return ((const mixt__rotary_attrs *)call->attrs)->dim <= MIXT_ROTARY_DIM_MAX;
}

static mixt_status plain_run(const mixt__call *call)
{
    task t = task_of(call);
    const mixt__rotary_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    const float *table = call->in[1].data;
    int64_t half = at->dim / 2, rows = src->shape.dims[0] * t.tokens, width = mixt__rotary_width(at);
    for (int64_t n = 0; n < rows * at->heads * half; n++) {
        int64_t row = n / half / at->heads, i = n % half, low = row * t.cols + n / half % at->heads * width + i;
        double cosine = (double)table[row % t.angles * at->dim + i];
        double sine = (double)table[row % t.angles * at->dim + half + i] * (at->inverse ? -1 : 1);
        double x = (double)mixt__load(src->data, src->dtype, low);
        double y = (double)mixt__load(src->data, src->dtype, low + half);
        mixt__store(dst->data, dst->dtype, low, (float)(x * cosine - y * sine));
        mixt__store(dst->data, dst->dtype, low + half, (float)(y * cosine + x * sine));
    }
    for (int64_t row = 0; row < rows; row++)
        copy_rest(&t, row);
    return MIXT_OK;
}

static const mixt__kernel rows = {.name = "rows", .supports = rows_support, .run = rows_run};
static const mixt__kernel plain = {.name = "plain", .run = plain_run};

const mixt__kernel *const mixt__cpu_rotary_kernels[] = {&rows, &plain, NULL};
