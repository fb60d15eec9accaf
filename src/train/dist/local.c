/* A rank's own weights put in the masters' place and put back again, and one decision on overflows. */
#include "train/dist/local.h"

#include "base/threads.h"
#include "train/dist/discrete.h"
#include "train/trainer_inside.h"

#include <math.h>

/* ---- planning ---- */

static mixt__compress_piece add_segment(const mixt__params *params, mixt__compressor *c, int64_t index)
{
    const mixt__segment *s = &params->segments[index];
    const mixt__shape *shape = &params->table[s->param].shape;
    int64_t rows = shape->rank > 1 ? shape->dims[0] : 1;
    return mixt__compress_add(&c->how, &c->counts, s->offset, rows, s->count / rows);
}

bool mixt__local_plan(const mixt__trainer *t, mixt__compressor *c)
{
    const mixt__ranks *r = &t->ranks;
    *c = (mixt__compressor){.how = r->local.compression, .group = r->group, .ranks = t->settings.ranks};
    if (c->how.kind == MIXT_COMPRESS_NONE || c->ranks == 1 || (!r->group && !r->planned))
        return false;
    c->total = t->params->total;
    c->bucket = r->overlap.bucket;
    for (int64_t i = 0; i < t->params->segment_count; i++)
        (void)add_segment(t->params, c, i);
    return true;
}

void mixt__local_prepare(mixt__trainer *t)
{
    mixt__compressor *c = &t->ranks.local.compressor, planned;
    (void)mixt__local_plan(t, &planned);
    planned.pieces = c->pieces;
    planned.factors = c->factors;
    planned.workspace = c->workspace;
    planned.seconds = c->seconds;
    *c = planned;
    c->counts = (mixt__compress_counts){0};
    for (int64_t i = 0; i < t->params->segment_count; i++)
        c->pieces[i] = add_segment(t->params, c, i);
}

/** What ranks tell each other before they decide. */
typedef struct found {
    int32_t overflow, segment; // mixt__control's bad_segment
    float norm;
} found;

int64_t mixt__local_sent(const mixt__trainer *t, bool whole)
{
    mixt__compressor c;
    if (!mixt__local_plan(t, &c))
        return 0;
    return mixt__compress_sent(&c, c.group ? c.group->rank : 0, whole) + (c.ranks - 1) * (int64_t)sizeof(found);
}

/* ---- whose weights the masters are ---- */

/** The masters where the host can work on them. */
static float *host_masters(const mixt__trainer *t)
{
    return t->device->backend->host_memory ? mixt__params_weights(t->params) : t->ranks.discrete.staged;
}

static size_t bytes_of(const mixt__params *params)
{
    return (size_t)params->total * sizeof(float);
}

static mixt_status fetch(const mixt__trainer *t)
{
    return t->device->backend->host_memory
               ? MIXT_OK
               : mixt__device_download(t->device, t->ranks.discrete.staged, mixt__params_weights(t->params),
                                       bytes_of(t->params));
}

/** Back to the device, and rounded to the working copies. */
static mixt_status store(const mixt__trainer *t)
{
    if (!t->device->backend->host_memory)
        MIXT_TRY(mixt__device_upload(t->device, mixt__params_weights(t->params), t->ranks.discrete.staged,
                                     bytes_of(t->params)));
    return mixt__discrete_round_copies(t);
}

typedef struct exchanged {
    float *weights, *feedback;
} exchanged;

static void take_own(void *argument, int64_t begin, int64_t end, int thread)
{
    const exchanged *e = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        float common = e->weights[i];
        e->weights[i] = common - e->feedback[i];
        e->feedback[i] = common;
    }
}

static void subtract(void *argument, int64_t begin, int64_t end, int thread)
{
    const exchanged *e = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        e->weights[i] = e->feedback[i] - e->weights[i];
}

static void swap(void *argument, int64_t begin, int64_t end, int thread)
{
    const exchanged *e = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        float common = e->feedback[i];
        e->feedback[i] = e->weights[i];
        e->weights[i] = common;
    }
}

static void for_all(const mixt__trainer *t, mixt__range_fn *work)
{
    enum { GRAIN = 4096 };
    exchanged e = {host_masters(t), t->ranks.local.feedback};
    mixt__parallel(t->params->total, GRAIN, work, &e);
}

mixt_status mixt__local_begin(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    bool local = r->local.feedback && t->attempts > r->local.compress_after;
    if (local != r->local.local &&
        !t->device->backend->host_memory) { // passes were recorded with sums of gradients, or without
        MIXT_TRY(mixt__device_synchronize(t->device));
        mixt__feed_forget(&t->feed);
    }
    r->local.local = local;
    if (!local)
        return MIXT_OK;
    MIXT_TRY(fetch(t));
    for_all(t, take_own);
    r->local.own_weights = true;
    return store(t);
}

/** @param exchange else everything stays unsent */
static mixt_status make_common(mixt__trainer *t, bool exchange)
{
    mixt__ranks *r = &t->ranks;
    bool last = t->attempts == t->settings.schedule.total_steps;
    mixt_status status = MIXT_OK;
    MIXT_TRY(fetch(t));
    for_all(t, subtract);
    if (exchange)
        status = mixt__compress_exchange(&r->local.compressor, host_masters(t), r->local.feedback, last);
    for_all(t, swap);
    r->local.own_weights = false;
    MIXT_TRY(store(t));
    return status;
}

mixt_status mixt__local_finish(mixt__trainer *t)
{
    return make_common(t, !t->ranks.local.overflowed);
}

void mixt__local_leave(mixt__trainer *t)
{
    if (t->ranks.local.own_weights)
        (void)make_common(t, false); // what failed first is what is told
}

/* ---- one decision ---- */

mixt_status mixt__local_control(mixt__trainer *t, mixt__update *update)
{
    mixt__ranks *r = &t->ranks;
    mixt__group *g = r->group;
    mixt__control before, after;
    found *all = (found *)(void *)g->words;
    double squares = 0;
    MIXT_TRY(mixt__device_download(t->device, &before, t->control, sizeof before));
    MIXT_TRY(mixt__device_step_control(t->device, update));
    MIXT_TRY(mixt__device_download(t->device, &after, t->control, sizeof after));
    found mine = {after.found_inf, after.bad_segment, after.grad_norm};
    MIXT_TRY(mixt__group_gather(g, &mine, sizeof mine, all, 1));
    r->local.overflowed = false;
    int32_t segment = -1; // the first rank's that has one
    for (int rank = 0; rank < g->size; rank++) {
        r->local.overflowed = r->local.overflowed || all[rank].overflow;
        segment = segment < 0 ? all[rank].segment : segment;
        squares += (double)all[rank].norm * (double)all[rank].norm;
    }
    if (r->local.overflowed && !after.found_inf) {
        update->skip = true;
        MIXT_TRY(mixt__device_upload(t->device, t->control, &before, sizeof before));
        MIXT_TRY(mixt__device_step_control(t->device, update));
        MIXT_TRY(mixt__device_download(t->device, &after, t->control, sizeof after));
    }
    after.bad_segment = segment;
    after.grad_norm = (float)sqrt(squares / g->size);
    return mixt__trainer_put_control(t, &after);
}
