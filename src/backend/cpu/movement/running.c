/* Cumulative sums along a dimension, in double, and triangles of matrices. Threads split what stays apart. */
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

/** One element before and behind a dimension at a time. */
static void sum_lines(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const mixt__cumsum_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    int64_t size = dst->shape.dims[at->axis], inner = 1;
    (void)thread;
    for (int i = at->axis + 1; i < dst->shape.rank; i++)
        inner *= dst->shape.dims[i];
    for (int64_t line = begin; line < end; line++) {
        int64_t base = line / inner * size * inner + line % inner;
        double sum = 0;
        for (int64_t i = 0; i < size; i++) {
            int64_t place = base + (at->reverse ? size - 1 - i : i) * inner;
            double x = (double)mixt__load(src->data, src->dtype, place);
            mixt__store(dst->data, dst->dtype, place, (float)(at->exclusive ? sum : sum + x));
            sum += x;
        }
    }
}

static mixt_status cumsum_run(const mixt__call *call)
{
    const mixt__cumsum_attrs *at = call->attrs;
    int64_t count = mixt__shape_count(&call->out[0].shape), size = call->out[0].shape.dims[at->axis];
    mixt__parallel(size ? count / size : 0, 4096 / (size + 1) + 1, sum_lines, (void *)call);
    return MIXT_OK;
}

static void cut_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const mixt__trilu_attrs *at = call->attrs;
    const mixt__shape *s = &call->out[0].shape;
    int64_t rows = s->dims[s->rank - 2], columns = s->dims[s->rank - 1];
    size_t size = mixt_dtype_size(call->out[0].dtype);
    (void)thread;
    for (int64_t row = begin; row < end; row++) {
        // The diagonal of this row; upper keeps it and what is behind, lower it and what is before.
        int64_t edge = row % rows + at->diagonal + !at->upper;
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        int64_t first = at->upper ? edge : 0, last = at->upper ? columns : edge;
        const char *src = (const char *)call->in[0].data + (size_t)(row * columns) * size;
        char *dst = (char *)call->out[0].data + (size_t)(row * columns) * size;
        memset(dst, 0, (size_t)columns * size);
        memcpy(dst + (size_t)first * size, src + (size_t)first * size, (size_t)(last - first) * size);
    }
}

static mixt_status trilu_run(const mixt__call *call)
{
    const mixt__shape *s = &call->out[0].shape;
    int64_t columns = s->dims[s->rank - 1], count = mixt__shape_count(s);
    mixt__parallel(columns ? count / columns : 0, 8192 / (columns + 1) + 1, cut_rows, (void *)call);
    return MIXT_OK;
}

static const mixt__kernel cumsum = {.name = "plain", .run = cumsum_run};
static const mixt__kernel trilu = {.name = "plain", .run = trilu_run};

const mixt__kernel *const mixt__cpu_cumsum_kernels[] = {&cumsum, NULL};
const mixt__kernel *const mixt__cpu_trilu_kernels[] = {&trilu, NULL};
