/* What a run pads its batches to, for people and for mixt plan. */
#include "run/run.h"

#include "data/buckets.h"
#include "train/lengths.h"

int64_t mixt_run_buckets(const mixt_run *run)
{
    const mixt__experiment *e = &run->experiment;
    bool known = mixt__need_open(run, "run") == MIXT_OK && e->train && e->trainer;
    return known && mixt__lengths_count(e->trainer->inner) ? mixt__data_bucket_count(e->train) : 0;
}

mixt_status mixt_run_get_bucket(const mixt_run *run, int64_t index, mixt_run_bucket *bucket)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(bucket));
    int64_t count = mixt_run_buckets(run);
    if (index < 0 || index >= count)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "bucket %lld: the run has %lld", (long long)index, (long long)count);
    const mixt__experiment *e = &run->experiment;
    const mixt__trainer *t = e->trainer->inner;
    const mixt__data_bucket *b = mixt__data_bucket_at(e->train, (int)index);
    const mixt__executable *step = mixt__lengths_step_of(t, (int)index);
    *bucket = (mixt_run_bucket){.samples = b->samples};
    for (int x = 0; x < MIXT_BUCKET_AXES; x++) {
        bucket->names[x] = mixt__data_bucket_axis(e->train, x);
        bucket->lengths[x] = bucket->names[x] ? b->places[x] : 0;
    }
    bucket->updates = mixt__data_bucket_updates(
        e->train, (int)index, mixt__trainer_settings_of(t)->batch * mixt__trainer_settings_of(t)->accumulate);
    bucket->activations = step->plan.arena_bytes;
    bucket->workspace = step->workspace_bytes;
    return MIXT_OK;
}

mixt_status mixt_run_padding(const mixt_run *run, double *without, double *with)
{
    int64_t all, made, filled;
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(without));
    MIXT_TRY(mixt__need(with));
    if (!mixt_run_buckets(run))
        return mixt__fail(MIXT_ERROR_STATE, "the run pads all its batches to one length");
    mixt__data_bucket_elements(run->experiment.train, &all, &made, &filled);
    *without = 1 - (double)filled / (double)all;
    *with = 1 - (double)filled / (double)made;
    return MIXT_OK;
}
