/* Two slots that take turns, and the trace that goes with them. */
#include "steer/snapshots.h"

#include "store/json.h"

#include <math.h>

enum {
    TRACES = 3, // intervals that the trace has room for: two, and one in which no state was good
    DEAD = 3,   // updates in a row without any gradient
};

static int64_t rows_of(int64_t every)
{
    return TRACES * every;
}

size_t mixt__snapshots_bytes(const mixt__trainer *t, int64_t every)
{
    return (MIXT_SNAPSHOTS + 1) * mixt__snapshot_bytes(t, mixt__snapshot_kept(t)) + mixt__trainer_kept_stats_bytes(t) +
           mixt__trace_bytes(t, rows_of(every));
}

mixt_status mixt__snapshots_open(mixt__snapshots *s, mixt__trainer *t, int64_t every)
{
    *s = (mixt__snapshots){.trainer = t, .every = every, .at = {-1, -1}};
    mixt_status status = mixt__trainer_keep_stats(t);
    for (int i = 0; i <= MIXT_SNAPSHOTS && status == MIXT_OK; i++)
        status = mixt__snapshot_open(&s->states[i], t, mixt__snapshot_kept(t), false);
    if (status == MIXT_OK)
        status = mixt__trace_open(&s->trace, t, rows_of(every));
    if (status != MIXT_OK)
        mixt__snapshots_close(s);
    return status;
}

void mixt__snapshots_close(mixt__snapshots *s)
{
    for (int i = 0; i <= MIXT_SNAPSHOTS; i++)
        if (s->states[i].trainer)
            mixt__snapshot_close(&s->states[i]);
    mixt__trace_close(&s->trace);
    *s = (mixt__snapshots){.at = {-1, -1}};
}

/** The slot of the older state, or an empty one. */
static int older(const mixt__snapshots *s)
{
    return s->at[0] <= s->at[1] ? 0 : 1;
}

mixt_status mixt__snapshots_take(mixt__snapshots *s)
{
    int64_t now = mixt__trainer_steps(s->trainer);
    int slot = s->at[0] == now ? 0 : s->at[1] == now ? 1 : older(s);
    s->at[slot] = -1; // in case that it fails
    MIXT_TRY(mixt__snapshot_take(&s->states[slot], s->trainer));
    s->at[slot] = now;
    s->known[slot] = true;
    return MIXT_OK;
}

void mixt__snapshots_drop(mixt__snapshots *s, int64_t at)
{
    for (int i = 0; i < MIXT_SNAPSHOTS; i++)
        s->at[i] = s->at[i] == at ? -1 : s->at[i];
}

void mixt__snapshots_forget(mixt__snapshots *s)
{
    for (int i = 0; i < MIXT_SNAPSHOTS; i++)
        s->at[i] = -1;
}

mixt_status mixt__snapshots_restart(mixt__snapshots *s)
{
    mixt__snapshots_forget(s);
    mixt__trace_start(&s->trace, mixt__trainer_steps(s->trainer) + 1);
    return mixt__snapshots_take(s);
}

/** Rows of the oldest updates go; behind a gap they begin anew. */
static void make_room(mixt__snapshots *s, int64_t step)
{
    mixt__trace *t = &s->trace;
    if (step != t->first + t->count)
        mixt__trace_start(t, step);
    if (mixt__trace_full(t))
        mixt__trace_drop_before(t, t->first + t->capacity / TRACES);
}

mixt_status mixt__snapshots_add(mixt__snapshots *s, const mixt_step *step)
{
    make_room(s, step->step);
    return mixt__trace_add(&s->trace, s->trainer, step);
}

static bool has_settings(const mixt__snapshot *state, const json_t *now)
{
    return json_equal(json_object_get(state->scalars, "settings"), now);
}

void mixt__snapshots_check(mixt__snapshots *s)
{
    json_t *now = mixt__trainer_settings_json(s->trainer);
    for (int i = 0; i < MIXT_SNAPSHOTS; i++)
        s->known[i] = s->at[i] >= 0 && s->at[i] + 1 >= s->trace.first &&
                      s->at[i] <= s->trace.first + s->trace.count - 1 && has_settings(&s->states[i], now);
    json_decref(now);
}

const char *mixt__snapshots_dead(const mixt__snapshots *s)
{
    const mixt__params *p = mixt__trainer_params(s->trainer);
    int64_t newest = s->trace.first + s->trace.count - 1, segment = -1;
    for (int64_t i = newest; i > newest - DEAD; i--) {
        const mixt__segment_stats *stats = mixt__trace_stats_of(&s->trace, i);
        segment = stats && !mixt__trace_row_of(&s->trace, i)->skipped
                      ? mixt__trace_dead(&s->trace, newest - DEAD + 1, stats, p->segments)
                      : -1;
        if (segment < 0)
            return NULL;
    }
    return p->table[p->segments[segment].param].name;
}

int64_t mixt__snapshots_before(const mixt__snapshots *s, int64_t step)
{
    int64_t found = -1;
    for (int i = 0; i < MIXT_SNAPSHOTS; i++)
        if (s->known[i] && s->at[i] < step && s->at[i] > found)
            found = s->at[i];
    return found;
}

int64_t mixt__snapshots_oldest(const mixt__snapshots *s)
{
    int64_t newest = mixt__snapshots_before(s, INT64_MAX), before = mixt__snapshots_before(s, newest);
    return before >= 0 ? before : newest;
}

const mixt__snapshot *mixt__snapshots_state(const mixt__snapshots *s, int64_t at)
{
    for (int i = 0; i < MIXT_SNAPSHOTS; i++)
        if (s->at[i] == at && at >= 0)
            return &s->states[i];
    return NULL;
}

mixt_status mixt__snapshots_restore(const mixt__snapshots *s, int64_t at)
{
    const mixt__snapshot *state = mixt__snapshots_state(s, at);
    return state ? mixt__snapshot_restore(state, s->trainer)
                 : mixt__fail(MIXT_ERROR_STATE, "no state of update %lld is kept", (long long)at);
}

/* ---- what was before training went back ---- */

static void keep_former(mixt__snapshots *s, int64_t at)
{
    mixt__former *f = &s->former;
    *f = (mixt__former){.at = at};
    for (const mixt__trace_row *row; f->count < MIXT_FORMER; f->losses[f->count++] = row->loss)
        if (!(row = mixt__trace_row_of(&s->trace, at + f->count + 1)))
            break;
}

double mixt__snapshots_former(const mixt__snapshots *s, int64_t step)
{
    int64_t index = step - s->former.at - 1;
    return index >= 0 && index < s->former.count ? s->former.losses[index] : (double)NAN;
}

void mixt__snapshots_forget_former(mixt__snapshots *s)
{
    s->former.count = 0;
}

json_t *mixt__snapshots_pack_former(const mixt__snapshots *s)
{
    json_t *losses = json_array();
    for (int64_t i = 0; i < s->former.count; i++)
        mixt__json_add_real(losses, s->former.losses[i]);
    return json_pack("{s:I, s:o}", "at", (json_int_t)s->former.at, "losses", losses);
}

void mixt__snapshots_unpack_former(mixt__snapshots *s, const json_t *object)
{
    const json_t *losses = json_object_get(object, "losses");
    s->former = (mixt__former){.at = json_integer_value(json_object_get(object, "at"))};
    for (size_t i = 0; i < json_array_size(losses) && s->former.count < MIXT_FORMER; i++) {
        const json_t *loss = json_array_get(losses, i);
        s->former.losses[s->former.count++] = json_is_number(loss) ? json_number_value(loss) : (double)NAN;
    }
}

mixt_status mixt__snapshots_go_back(mixt__snapshots *s, int64_t at)
{
    MIXT_TRY(mixt__snapshots_restore(s, at));
    keep_former(s, at);
    for (int i = 0; i < MIXT_SNAPSHOTS; i++)
        s->at[i] = s->at[i] > at ? -1 : s->at[i];
    mixt__trace_cut(&s->trace, at + 1);
    return MIXT_OK;
}
