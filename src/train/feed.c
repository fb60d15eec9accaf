/* Slots, recordings and results of a device with memory of its own. */
#include "train/feed.h"

#include "base/env.h"
#include "base/alloc.h"
#include "train/pass_weights.h"

#include <string.h>

enum { ALIGNMENT = 256 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/** Bytes of one slot. */
static size_t slot_bytes(const mixt__batch_spec *spec, int64_t batches, int64_t held)
{
    size_t batch = aligned(mixt__spec_input_bytes(spec)) + aligned(mixt__spec_target_bytes(spec));
    size_t weights = batches > 1 ? 2 * aligned((size_t)held * sizeof(float)) : 0;
    return (size_t)held * batch + aligned((size_t)held * sizeof(uint64_t)) + weights;
}

size_t mixt__feed_bytes(mixt__device *device, const mixt__batch_spec *spec, int64_t batches, int64_t held)
{
    return device->backend->host_memory ? 0 : MIXT_STAGE_SLOTS * slot_bytes(spec, batches, held);
}

/** Bytes of a step's result. */
static size_t result_bytes(int64_t batches)
{
    return sizeof(mixt__step_result) + (size_t)batches * MIXT_PASS_FIGURES * sizeof(float);
}

size_t mixt__feed_host_bytes(int64_t batches)
{
    const mixt__feed *feed = NULL; // for its types alone
    return (size_t)batches * (sizeof *feed->host_keys + sizeof *feed->host_weights + sizeof *feed->counts) +
           MIXT_STAGE_SLOTS * result_bytes(batches);
}

mixt_status mixt__feed_open(mixt__feed *feed, mixt__device *device, const mixt__batch_spec *spec,
                            const mixt__batch_spec *fed, int64_t batches, int64_t held, bool random)
{
    size_t result = result_bytes(batches);
    *feed = (mixt__feed){.device = device, .batches = batches, .held = held, .random = random};
    MIXT_TRY(mixt__env_on(MIXT_ENV_REPLAY, &feed->replays));
    feed->given = *spec;
    feed->given_bytes = mixt__spec_input_bytes(spec);
    feed->target_bytes = mixt__spec_target_bytes(spec);
    feed->input_room = aligned(feed->given_bytes);
    mixt__feed_retype(feed, fed);
    feed->target_room = aligned(feed->target_bytes);
    feed->host_keys = mixt__device_alloc_host(device, (size_t)batches * sizeof *feed->host_keys);
    feed->host_weights = mixt__device_alloc_host(device, (size_t)batches * sizeof *feed->host_weights);
    feed->counts = mixt__alloc((size_t)batches * sizeof *feed->counts);
    bool complete = feed->host_keys && feed->host_weights && feed->counts;
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++) {
        feed->results[i] = mixt__device_alloc_host(device, result);
        complete = complete && feed->results[i];
        if (feed->results[i])
            memset(feed->results[i], 0, result);
    }
    for (int i = 0; complete && !device->backend->host_memory && i < MIXT_STAGE_SLOTS; i++) {
        feed->slots[i] = mixt__device_alloc(device, slot_bytes(spec, batches, held));
        complete = feed->slots[i] != NULL;
    }
    if (!complete)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory on %s for the batches of a step", device->backend->name);
    return MIXT_OK;
}

void mixt__feed_forget_step(mixt__feed *feed, mixt__feed_kind kind)
{
    for (int shape = 0; shape < MIXT_FEED_SHAPES; shape++) {
        for (int i = 0; i < MIXT_STAGE_SLOTS; i++) {
            if (feed->recordings[kind][shape][i])
                mixt__device_forget(feed->device, feed->recordings[kind][shape][i]);
            feed->recordings[kind][shape][i] = NULL;
        }
        feed->issued[kind][shape] = false;
    }
}

void mixt__feed_forget(mixt__feed *feed)
{
    mixt__feed_forget_step(feed, MIXT_FEED_PLAIN);
    mixt__feed_forget_step(feed, MIXT_FEED_WATCHED);
}

void mixt__feed_retype(mixt__feed *feed, const mixt__batch_spec *fed)
{
    feed->fed = *fed;
    feed->input_bytes = mixt__spec_input_bytes(fed);
}

void mixt__feed_reshape(mixt__feed *feed, const mixt__batch_spec *spec, const mixt__batch_spec *fed, int shape)
{
    feed->given = *spec;
    feed->given_bytes = mixt__spec_input_bytes(spec);
    feed->target_bytes = mixt__spec_target_bytes(spec);
    feed->shape = shape;
    mixt__feed_retype(feed, fed);
}

mixt_status mixt__feed_round(mixt__feed *feed, const void *input, const void **rounded)
{
    *rounded = input;
    if (!mixt__spec_rounds(&feed->given, &feed->fed))
        return MIXT_OK;
    if (!feed->rounded)
        feed->rounded = mixt__device_alloc_host(feed->device, feed->input_room); // in whatever formats it is fed later
    if (!feed->rounded)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a batch in %s", mixt_dtype_name(feed->fed.input_dtype));
    mixt__spec_round(&feed->given, &feed->fed, input, feed->rounded);
    *rounded = feed->rounded;
    return MIXT_OK;
}

void mixt__feed_close(mixt__feed *feed)
{
    if (!feed->device)
        return;
    mixt__feed_forget(feed);
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++) {
        mixt__device_free(feed->device, feed->slots[i]);
        mixt__device_free_host(feed->device, feed->results[i]);
    }
    mixt__device_free_host(feed->device, feed->host_keys);
    mixt__device_free_host(feed->device, feed->host_weights);
    mixt__free(feed->counts);
    mixt__device_free_host(feed->device, feed->rounded);
    *feed = (mixt__feed){0};
}

static int slot_of(const mixt__feed *feed)
{
    return (int)(feed->turn % MIXT_STAGE_SLOTS);
}

mixt__step_result *mixt__feed_result(const mixt__feed *feed)
{
    return feed->results[slot_of(feed)];
}

mixt_status mixt__feed_result_of(const mixt__feed *feed, int64_t back, const mixt__step_result **result)
{
    int slot = (int)((feed->turn - 1 - back) % MIXT_STAGE_SLOTS);
    *result = feed->results[slot];
    return feed->device->backend->host_memory ? MIXT_OK : mixt__device_wait(feed->device, slot);
}

const void *mixt__feed_input(const mixt__feed *feed, int64_t index)
{
    return feed->slots[slot_of(feed)] + (size_t)index * feed->input_room;
}

const void *mixt__feed_target(const mixt__feed *feed, int64_t index)
{
    return feed->slots[slot_of(feed)] + (size_t)feed->held * feed->input_room + (size_t)index * feed->target_room;
}

const uint64_t *mixt__feed_key(const mixt__feed *feed, int64_t index)
{
    char *keys = feed->slots[slot_of(feed)] + (size_t)feed->held * (feed->input_room + feed->target_room);
    return (uint64_t *)keys + index;
}

const float *mixt__feed_weights(const mixt__feed *feed)
{
    const char *keys = (const char *)mixt__feed_key(feed, 0);
    return (const float *)(keys + aligned((size_t)feed->held * sizeof(uint64_t)));
}

float *mixt__feed_seeds(const mixt__feed *feed)
{
    const char *weights = (const char *)mixt__feed_weights(feed);
    return (float *)(uintptr_t)(weights + aligned((size_t)feed->held * sizeof(float)));
}

mixt_status mixt__feed_weigh(mixt__feed *feed)
{
    bool known = true;
    if (feed->batches == 1)
        return MIXT_OK;
    for (int64_t i = 0; i < feed->batches; i++)
        known = known && feed->counts[i] >= 0;
    for (int64_t i = 0; !known && i < feed->batches; i++)
        feed->counts[i] = 1;
    mixt__pass_weights_of(feed->counts, feed->batches, feed->host_weights);
    return mixt__feed_send_weights(feed);
}

mixt_status mixt__feed_send_weights(mixt__feed *feed)
{
    mixt__piece piece = {(void *)(uintptr_t)mixt__feed_weights(feed), feed->host_weights,
                         (size_t)feed->held * sizeof *feed->host_weights};
    return mixt__device_stage(feed->device, slot_of(feed), &piece, 1, true);
}

mixt_status mixt__feed_put(mixt__feed *feed, int64_t index, const void *input, const void *target, uint64_t key,
                           int64_t count, bool wait)
{
    feed->counts[index] = count;
    feed->host_keys[index] = key;
    mixt__piece pieces[3] = {
        {(void *)(uintptr_t)mixt__feed_input(feed, index), input, feed->input_bytes},
        {(void *)(uintptr_t)mixt__feed_target(feed, index), target, feed->target_bytes},
        {(void *)(uintptr_t)mixt__feed_key(feed, index), &feed->host_keys[index], sizeof key},
    };
    return mixt__device_stage(feed->device, slot_of(feed), pieces, feed->random ? 3 : 2, wait || feed->random);
}

static bool may_record(const mixt__feed *feed, mixt__feed_kind kind)
{
    return feed->device->backend->record && feed->issued[kind][feed->shape] && feed->replays;
}

mixt_status mixt__feed_issue(mixt__feed *feed, mixt__feed_kind kind, bool record, mixt_status (*issue)(void *argument),
                             void *argument)
{
    int slot = slot_of(feed);
    if (record && may_record(feed, kind)) {
        mixt__recording **recording = &feed->recordings[kind][feed->shape][slot];
        if (!*recording)
            MIXT_TRY(mixt__device_record(feed->device, issue, argument, recording));
        MIXT_TRY(mixt__device_replay(feed->device, *recording));
    } else {
        MIXT_TRY(issue(argument));
        feed->issued[kind][feed->shape] = true;
    }
    return MIXT_OK;
}

mixt_status mixt__feed_turn(mixt__feed *feed)
{
    MIXT_TRY(mixt__device_fence(feed->device, slot_of(feed)));
    feed->turn++;
    return MIXT_OK;
}
