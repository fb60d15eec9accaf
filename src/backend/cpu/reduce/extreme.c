/* The largest or smallest element over neighbouring dimensions, where it is, and the gradient. The tensor is (outer,
 * reduced, inner); threads split (outer, inner).
 */
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>

typedef struct job {
    const mixt__call *call;
    const mixt__extreme_attrs *at;
    int64_t outer, reduced, inner;
} job;

static job job_of(const mixt__call *call)
{
    job j = {.call = call, .at = call->attrs, .outer = 1, .reduced = 1, .inner = 1};
    const mixt__shape *s = &call->in[0].shape;
    for (int i = 0; i < s->rank; i++)
        *(i < j.at->axis ? &j.outer : i < j.at->axis + j.at->count ? &j.reduced : &j.inner) *= s->dims[i];
    return j;
}

static float load(const mixt__tensor *t, int64_t i)
{
    return mixt__load(t->data, t->dtype, i);
}

static void find(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__tensor *src = &j->call->in[0], *dst = &j->call->out[0];
    (void)thread;
    for (int64_t o = begin; o < end; o++) {
        int64_t base = o / j->inner * j->reduced * j->inner + o % j->inner, place = 0;
        float best = load(src, base);
        for (int64_t i = 1; i < j->reduced && !isnan(best); i++) {
            float x = load(src, base + i * j->inner);
            if (isnan(x) || (j->at->smallest ? x < best : x > best)) {
                best = x;
                place = i;
            }
        }
        if (j->at->index)
            ((int32_t *)dst->data)[o] = (int32_t)place;
        else
            mixt__store(dst->data, dst->dtype, o, best);
    }
}

static mixt_status run(const mixt__call *call)
{
    job j = job_of(call);
    mixt__parallel(j.outer * j.inner, 8192 / (j.reduced + 1) + 1, find, &j);
    return MIXT_OK;
}

/** Elements that equal the result share its gradient; of a NaN all that are NaN. */
static void share(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__tensor *src = &j->call->in[0], *dst = &j->call->in[1], *grad = &j->call->in[2], *out = &j->call->out[0];
    (void)thread;
    for (int64_t o = begin; o < end; o++) {
        int64_t base = o / j->inner * j->reduced * j->inner + o % j->inner, equal = 0;
        float best = load(dst, o);
        for (int64_t i = 0; i < j->reduced; i++) {
            float x = load(src, base + i * j->inner);
            equal += x == best || (isnan(x) && isnan(best));
        }
        float part = equal ? load(grad, o) / (float)equal : 0;
        for (int64_t i = 0; i < j->reduced; i++) {
            float x = load(src, base + i * j->inner);
            mixt__store(out->data, out->dtype, base + i * j->inner, x == best || (isnan(x) && isnan(best)) ? part : 0);
        }
    }
}

static mixt_status grad_run(const mixt__call *call)
{
    job j = job_of(call);
    mixt__parallel(j.outer * j.inner, 8192 / (j.reduced + 1) + 1, share, &j);
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = run};
static const mixt__kernel plain_grad = {.name = "plain", .run = grad_run};

const mixt__kernel *const mixt__cpu_extreme_kernels[] = {&plain, NULL};
const mixt__kernel *const mixt__cpu_extreme_grad_kernels[] = {&plain_grad, NULL};
