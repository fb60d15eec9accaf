/* Logarithm of the softmax over the last dimension, in double; threads split the rows. */
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>

static void rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__call *call = argument;
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    int64_t columns = dst->shape.dims[dst->shape.rank - 1];
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        double peak = -INFINITY, sum = 0;
        for (int64_t c = 0; c < columns; c++)
            peak = fmax(peak, (double)mixt__load(src->data, src->dtype, r * columns + c));
        for (int64_t c = 0; c < columns; c++)
            sum += exp((double)mixt__load(src->data, src->dtype, r * columns + c) - peak);
        for (int64_t c = 0; c < columns; c++)
            mixt__store(dst->data, dst->dtype, r * columns + c,
                        (float)((double)mixt__load(src->data, src->dtype, r * columns + c) - peak - log(sum)));
    }
}

static mixt_status run(const mixt__call *call)
{
    const mixt__shape *s = &call->out[0].shape;
    int64_t columns = s->dims[s->rank - 1], count = mixt__shape_count(s);
    mixt__parallel(columns ? count / columns : 0, 2048 / (columns + 1) + 1, rows, (void *)call);
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = run};

const mixt__kernel *const mixt__cpu_log_softmax_kernels[] = {&plain, NULL};
