/* A group ahead of its use, on the device. */
#include "train/dist/device_gather.h"

#include "train/trainer_inside.h"

void mixt__device_gather_begin(mixt__trainer *t, int which)
{
    mixt__gather *a = t->ranks.shards.reading = &t->ranks.shards.gathers[which];
    a->own = mixt__params_weights(t->params);
    a->next = a->asked = 0;
}

static mixt_status put(void *user, void *to, const float *from, int64_t count, mixt_dtype format)
{
    mixt__device *device = ((mixt__trainer *)user)->device;
    return format == MIXT_DTYPE_FP32 ? mixt__device_copy(device, to, from, (size_t)count * sizeof *from)
                                     : mixt__device_narrow(device, to, format, from, count);
}

static mixt_status spread(void *user, void *data, const int64_t *cuts, size_t size)
{
    mixt__device_sums *sums = ((const mixt__trainer *)user)->ranks.discrete.sums;
    return sums->gather(sums, data, cuts, size);
}

/** The number of a stay among marks: behind those of sums. */
static int64_t mark_of(const mixt__ranks *r, int64_t stay)
{
    return r->overlap.bucket_count + stay;
}

mixt_status mixt__device_gather_prepare(mixt__trainer *t, int64_t next)
{
    mixt__ranks *r = &t->ranks;
    mixt__gather *a = r->shards.reading;
    mixt__device_sums *sums = r->discrete.sums;
    mixt__gather_means means = {.put = put, .spread = spread, .user = t};
    for (; a->asked < a->count && a->stays[a->asked].begin <= next; a->asked++) {
        MIXT_TRY(mixt__gather_fetch(a, a->asked, r->shards.cuts, &means));
        MIXT_TRY(sums->mark(sums, mark_of(r, a->asked)));
    }
    for (; a->next < a->count && a->stays[a->next].first <= next; a->next++)
        MIXT_TRY(sums->join(sums, mark_of(r, a->next)));
    return MIXT_OK;
}
