/* Bringing batches to the device, once. */
#include "train/resident.h"

#include "train/lengths.h"
#include "train/trainer_inside.h"

/** One update's batches, each made in `staged` (inputs, targets). */
static mixt_status fill(const mixt__resident *r, const mixt_data *data, int64_t update, void *const staged[2])
{
    mixt__trainer *t = r->trainer;
    size_t input = t->feed.input_bytes, target = t->feed.target_bytes;
    for (int64_t i = 0; i < r->passes; i++) {
        const void *rounded;
        int64_t number = update * r->passes + i;
        MIXT_TRY(mixt_data_batch(data, t->settings.batch, number, staged[0], staged[1]));
        MIXT_TRY(mixt__feed_round(&t->feed, staged[0], &rounded));
        MIXT_TRY(mixt__device_upload(t->device, (char *)r->at[update][0] + (size_t)i * input, rounded, input));
        MIXT_TRY(mixt__device_upload(t->device, (char *)r->at[update][1] + (size_t)i * target, staged[1], target));
    }
    return MIXT_OK;
}

static mixt_status take(mixt__resident *r)
{
    const mixt__trainer *t = r->trainer;
    size_t passes = (size_t)r->passes;
    size_t input = passes * t->feed.input_bytes, target = passes * t->feed.target_bytes;
    size_t need = (size_t)r->count * (input + target), room = mixt__device_available(t->device);
    if (room && need > room)
        return mixt__fail(MIXT_ERROR_MEMORY,
                          "%lld batches of %lld samples need %.2f GiB, %.2f are free: use a smaller batch",
                          (long long)(r->count * r->passes), (long long)t->settings.batch, (double)need / 1073741824.0,
                          (double)room / 1073741824.0);
    bool complete = true;
    r->at = mixt__alloc((size_t)r->count * sizeof *r->at);
    for (int64_t i = 0; r->at && complete && i < r->count; i++) {
        r->at[i][0] = mixt__device_alloc(t->device, input);
        r->at[i][1] = mixt__device_alloc(t->device, target);
        complete = r->at[i][0] && r->at[i][1];
    }
    if (r->at && complete)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld batches of %lld samples (%.2f GiB)",
                      (long long)(r->count * r->passes), (long long)t->settings.batch, (double)need / 1073741824.0);
}

static mixt_status open(mixt__resident *r, mixt__trainer *t, const mixt_data *data)
{
    MIXT_TRY(mixt__trainer_allocate(t)); // first: its message names all that the model needs
    mixt__lengths_select_whole(t);
    void *staged[2] = {mixt__alloc_uninit(t->feed.input_room), mixt__alloc_uninit(t->feed.target_room)};
    mixt_status status = take(r);
    if (status == MIXT_OK && !(staged[0] && staged[1]))
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a batch");
    for (int64_t i = 0; status == MIXT_OK && i < r->count; i++)
        status = fill(r, data, i, staged);
    mixt__free(staged[0]);
    mixt__free(staged[1]);
    if (status != MIXT_OK)
        mixt__resident_close(r);
    return status;
}

mixt_status mixt__resident_open(mixt__resident *r, mixt__trainer *t, const mixt_data *data, int64_t updates)
{
    *r = (mixt__resident){.trainer = t, .count = updates, .passes = mixt__trainer_settings_of(t)->accumulate};
    return open(r, t, data);
}

mixt_status mixt__resident_open_pass(mixt__resident *r, mixt__trainer *t, const mixt_data *data)
{
    *r = (mixt__resident){.trainer = t, .count = 1, .passes = 1};
    return open(r, t, data);
}

void mixt__resident_close(mixt__resident *r)
{
    for (int64_t i = 0; r->at && i < r->count; i++)
        for (int part = 0; part < 2; part++)
            if (r->at[i][part])
                mixt__device_free(r->trainer->device, r->at[i][part]);
    mixt__free(r->at);
    *r = (mixt__resident){0};
}

mixt_status mixt__resident_step(const mixt__resident *r, int64_t index, mixt_step *result)
{
    void *const *at = r->at[index % r->count];
    return mixt__trainer_step_on(r->trainer, at[0], at[1], true, result);
}
