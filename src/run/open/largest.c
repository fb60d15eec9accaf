/* The largest batch by calculation. Between a batch that fits and one that does not, the next to be compiled is where a
 * line through the newest two counts meets the limit: memory grows almost evenly with the batch. Almost, because of
 * kernels' scratch and logits in parts: the search ends only at two neighbours of which one fits and the other does
 * not, and halves the gap where the line does not close it. Where a device times its algorithms, the way there is made
 * without timing, and only its end is counted as it will run. */
#include "base/sizes.h"
#include "base/threads.h"
#include "run/open/fit.h"
#include "run/open/phases.h"
#include "train/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOW = 3 };                                      // probes that may fail to halve the gap
static const size_t DEVICE_RESERVE = (size_t)512 << 20; // kernels loaded late, blocks rounded up to pages
static const size_t HOST_RESERVE = (size_t)16 << 20;    // stacks, the C library's own; beside a twentieth

static const double LONG = 1; // seconds after which the search tells where it is: a GPU times its algorithms meanwhile

/** A batch that was counted. */
typedef struct probe {
    int64_t batch;
    size_t bytes; // SIZE_MAX: it cannot be planned, see `reason`
} probe;

typedef struct search {
    mixt_run *run;
    size_t limit;
    int64_t ranks;      // a batch here is that of one of them; what is told is that of all
    int64_t unit, most; // batches are multiples of unit; most: that the data has samples for
    probe fits, above;  // the largest known to fit; the smallest known not to (most + unit, not counted, at first)
    probe newest[2];
    double seconds;   // that the search may take; 0: as many as it needs
    char reason[256]; // why `above` cannot be planned
} search;

static int64_t setting(const mixt_run *run, mixt__config_key key)
{
    return mixt__config_int(run->config, key);
}

static mixt_status compile(const search *s, int64_t batch, int64_t eval, size_t *bytes)
{
    mixt__trainer *t = s->run->experiment.trainer->inner;
    mixt__fit_count c = {s->run, eval};
    double seconds;
    MIXT_TRY(mixt__trainer_replan(t, batch, mixt__trainer_settings_of(t)->split,
                                  mixt__trainer_settings_of(t)->recompute_budget));
    return mixt__fit_measure(&c, t, s->limit, bytes, &seconds);
}

/** Compiles for this batch and counts the run. What fails twice is the batch's fault: it does not fit. Once may be that
 *  the process was short of memory for a moment.
 *  @param eval samples in a pass of validation, fewer where so many do not fit */
static size_t count(search *s, int64_t batch, int64_t eval)
{
    size_t bytes = SIZE_MAX;
    mixt_status status = compile(s, batch, eval, &bytes);
    if (status == MIXT_ERROR_MEMORY)
        status = compile(s, batch, eval, &bytes);
    if (status != MIXT_OK) {
        snprintf(s->reason, sizeof s->reason, "%.250s", mixt_error_text());
        return SIZE_MAX;
    }
    return bytes;
}

/** As train.eval_batch says, else of all ranks. */
static int64_t eval_batch(const search *s, int64_t batch)
{
    int64_t given = setting(s->run, MIXT_KEY_TRAIN_EVAL_BATCH);
    return given ? given : s->ranks * batch;
}

/** A batch fits if it does so with the smallest validation, whose memory grows with nothing: counts lie on a line.
 * Where validation may not be cut, it fits with all of it. */
static void try_batch(search *s, int64_t batch)
{
    bool whole = mixt__trainer_model(s->run->experiment.trainer->inner)->compares;
    probe p = {batch, count(s, batch, whole ? eval_batch(s, batch) : 1)};
    if (p.bytes <= s->limit)
        s->fits = p;
    else
        s->above = p;
    if (p.bytes != SIZE_MAX) {
        s->newest[0] = s->newest[1];
        s->newest[1] = p;
    }
}

/** Where the line through the newest two counts meets the limit; at most far enough to see the slope again. */
static int64_t guess(const search *s)
{
    const probe *a = &s->newest[0], *b = &s->newest[1];
    double step = (double)(b->batch - a->batch), slope = ((double)b->bytes - (double)a->bytes) / step;
    if (!a->batch || !(slope > 0))
        return 8 * s->fits.batch;
    double at = (double)b->batch + ((double)s->limit - (double)b->bytes) / slope;
    return (int64_t)fmax(0, fmin(at, 64.0 * (double)b->batch));
}

static int64_t between(const search *s, int64_t batch)
{
    int64_t low = s->fits.batch + s->unit, high = s->above.batch - s->unit;
    batch -= batch % s->unit;
    return batch < low ? low : batch > high ? high : batch;
}

/** Until the smallest that does not fit follows the largest that does; false: the time was up before. */
static bool narrow(search *s)
{
    int slow = 0;
    double began = mixt__time_now(), told = began;
    while (s->above.batch - s->fits.batch > s->unit) {
        int64_t gap = s->above.batch - s->fits.batch;
        if (s->seconds > 0 && mixt__time_now() - began > s->seconds)
            return false;
        bool open = s->above.batch > s->most; // nothing is known to be too large yet
        int64_t stride = llabs(s->newest[1].batch - s->newest[0].batch);
        int64_t next = slow < SLOW ? guess(s) : s->fits.batch + (open ? 2 * stride : gap / 2);
        try_batch(s, between(s, next));
        slow = 2 * (s->above.batch - s->fits.batch) > gap ? slow + 1 : 0;
        if (mixt__time_now() - told > LONG) {
            told = mixt__time_now();
            mixt__run_note(s->run, false, "a batch of %lld fits; up to %lld is tried",
                           (long long)(s->ranks * s->fits.batch), (long long)(s->ranks * (s->above.batch - s->unit)));
        }
    }
    return true;
}

/** The first batches: the smallest, or, where a device times its algorithms, the answer for plans that are not timed.
 *  Their slope is taken over: what timing changes is the scratch of kernels, about the same for every batch. */
static void begin(search *s)
{
    mixt__device *device = s->run->experiment.context->device;
    search rough = *s;
    if (!device->backend->choices) {
        try_batch(s, s->unit);
        return;
    }
    mixt__device_plan_roughly(device, true);
    try_batch(&rough, s->unit);
    if (rough.fits.batch)
        narrow(&rough);
    mixt__device_plan_roughly(device, false);
    try_batch(s, rough.fits.batch ? rough.fits.batch : s->unit);
    probe *a = rough.newest, *b = rough.newest + 1, *here = s->newest + 1;
    if (a->batch && here->batch) {
        s->newest[0].batch = here->batch + a->batch - b->batch;
        s->newest[0].bytes = here->bytes + a->bytes - b->bytes;
    }
}

size_t mixt__fit_room(const mixt_run *run)
{
    mixt__device *device = run->experiment.context->device;
    size_t free = mixt__device_available(device);
    if (!free)
        return 0;
    free += device->backend->host_memory ? mixt__account_bytes(run->account) : mixt__device_allocated(device);
    size_t reserve = device->backend->host_memory ? HOST_RESERVE + free / 20 : DEVICE_RESERVE;
    return free > reserve ? free - reserve : 1;
}

static mixt_status tell(const search *s, mixt_largest_batch *largest)
{
    char limit[MIXT_SIZE_TEXT];
    bool counted = s->above.bytes != SIZE_MAX && s->above.batch <= s->most;
    *largest = (mixt_largest_batch){.batch = s->ranks * s->fits.batch, .memory = s->fits.bytes, .limit = s->limit};
    largest->device = !s->run->experiment.context->device->backend->host_memory;
    largest->next = counted ? s->above.bytes : 0;
    if (counted)
        return mixt__give_text(&largest->reason, "%lld would not fit into %s", (long long)(s->ranks * s->above.batch),
                               mixt__size_text(s->limit, limit));
    if (s->above.batch > s->most)
        return mixt__give_text(&largest->reason, "the data has no more samples for an update");
    return mixt__give_text(&largest->reason, "%lld: %s", (long long)(s->ranks * s->above.batch), s->reason);
}

mixt_status mixt__largest_find(mixt_run *run, size_t memory, double seconds, mixt_largest_batch *largest)
{
    char least[MIXT_SIZE_TEXT], limit[MIXT_SIZE_TEXT];
    search s = {.run = run, .unit = run->split, .seconds = seconds};
    s.ranks = mixt__trainer_settings_of(run->experiment.trainer->inner)->ranks;
    s.limit = memory ? memory : mixt__fit_room(run);
    int64_t samples = mixt_data_describe(run->experiment.train)->samples / setting(run, MIXT_KEY_TRAIN_ACCUMULATE);
    int64_t most = (int64_t)strtoll(strchr(mixt__config_table[MIXT_KEY_TRAIN_BATCH].range, ',') + 1, NULL, 10);
    if (!s.limit)
        return mixt__fail(MIXT_ERROR_STATE, "the free memory is not known here: give the size");
    s.most = (samples < most ? samples : most) / s.ranks / s.unit * s.unit;
    if (!s.most)
        return mixt__fail(MIXT_ERROR_DATA, "the data has fewer samples than an update of %lld ranks needs",
                          (long long)s.ranks);
    s.above = (probe){s.most + s.unit, SIZE_MAX};
    begin(&s);
    bool found = narrow(&s);
    if (found && !s.fits.batch)
        return s.above.bytes == SIZE_MAX
                   ? mixt__fail(MIXT_ERROR_MEMORY, "%s", s.reason)
                   : mixt__fail(MIXT_ERROR_MEMORY, "not even a batch of %lld fits: the run takes %s (%zu bytes), of %s",
                                (long long)(s.ranks * s.unit), mixt__size_text(s.above.bytes, least), s.above.bytes,
                                mixt__size_text(s.limit, limit));
    if (!found)
        return mixt__fail(MIXT_ERROR_STATE, "the largest batch was not found in %g s: it is at least %lld", seconds,
                          (long long)(s.ranks * s.fits.batch));
    s.fits.bytes = count(&s, s.fits.batch, eval_batch(&s, s.fits.batch));
    return tell(&s, largest);
}

/** The configuration with the smallest batch, and no plan to fit: that is what is looked for. */
static mixt_status smallest(const mixt_config *config, const mixt_run_options *options, mixt_config **copy)
{
    char setting[64];
    MIXT_TRY(mixt_config_copy(config, copy));
    int64_t asked = mixt__config_int(*copy, MIXT_KEY_DIST_RANKS), ranks = asked ? asked : 1;
    if (options && options->plan_ranks)
        ranks = options->plan_ranks;
    snprintf(setting, sizeof setting, "train.batch=%lld",
             (long long)(ranks * mixt__config_int(*copy, MIXT_KEY_TRAIN_SPLIT)));
    mixt_status status = mixt_config_set(*copy, setting, "largest batch");
    if (status == MIXT_OK)
        status = mixt_config_set(*copy, "train.memory=0", "largest batch");
    if (status != MIXT_OK)
        mixt_config_free(*copy);
    return status;
}

/** A batch fits where it does so in every phase: the smallest of their answers. */
static mixt_status find_in_phases(mixt_run *run, size_t memory, mixt_largest_batch *largest)
{
    int64_t count = mixt_run_phases(run);
    if (!count)
        return mixt__largest_find(run, memory, 0, largest);
    for (int64_t i = 0; i < count; i++) {
        mixt_largest_batch found;
        MIXT_TRY(mixt__phases_enter(&run->experiment, i));
        MIXT_TRY(mixt__largest_find(run, memory, 0, &found));
        if (!i || found.batch < largest->batch || (found.batch == largest->batch && found.memory > largest->memory)) {
            mixt_free(largest->reason);
            *largest = found;
        } else
            mixt_free(found.reason);
    }
    return MIXT_OK;
}

mixt_status mixt_plan_largest_batch(const mixt_config *config, const mixt_run_options *options, size_t memory,
                                    mixt_largest_batch *largest)
{
    mixt_config *copy;
    mixt_run *run;
    MIXT_TRY(mixt__need(largest));
    *largest = (mixt_largest_batch){0};
    MIXT_TRY(smallest(config, options, &copy));
    mixt__device_open_roughly(true); // the smallest batch is only where the search begins
    mixt_status status = mixt_run_open_config(copy, options, &run);
    mixt__device_open_roughly(false);
    mixt_config_free(copy);
    MIXT_TRY(status);
    mixt__account *before = mixt__account_use(run->account);
    mixt__device_plan_roughly(run->experiment.context->device, false);
    status = find_in_phases(run, memory ? memory : (size_t)mixt__config_int(config, MIXT_KEY_TRAIN_MEMORY), largest);
    mixt__account_use(before);
    mixt_run_close(run);
    if (status != MIXT_OK) {
        mixt_free(largest->reason); // of a phase before
        *largest = (mixt_largest_batch){0};
    }
    return status;
}
