/* The decisions of another run's record, each after the update that it was in force from. */
#include "run/auto/steer.h"

#include "base/alloc.h"
#include "base/status.h"
#include "run/run.h"
#include "steer/decision.h"
#include "store/json.h"
#include "store/json_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** The update after which a decision counts: where the run went back, that. */
static int64_t in_force(const mixt_decision *d)
{
    return d->back >= 0 ? d->back : d->step;
}

static mixt_status add(mixt__steer *s, int64_t *room, const mixt_decision *d)
{
    if (!mixt__grow((void **)&s->recorded, room, s->recorded_count, sizeof *s->recorded))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the decisions of auto.replay");
    mixt_decision *added = &s->recorded[s->recorded_count++];
    *added = *d;
    added->step = in_force(d);
    added->back = -1;
    return MIXT_OK;
}

/** A row of the file; what is no decision, and the end of that run, is passed over. */
static mixt_status take_row(mixt__steer *s, int64_t *room, const char *text)
{
    mixt_decision d;
    bool found = false;
    json_t *row;
    MIXT_TRY(mixt__json_row(text, &row));
    mixt_status status =
        row ? mixt__decision_read(row, &d, &found) : mixt__fail(MIXT_ERROR_FORMAT, "expected a row of JSON");
    json_decref(row);
    MIXT_TRY(status);
    bool chosen = found && !strcmp(d.from, "auto"); // what that run began with
    if (chosen) {
        mixt__decision_free(&s->chosen);
        s->chosen = d;
        s->chosen.policy = NULL; // it is written down anew
    } else if (found && d.action == MIXT_ACTION_STOP)
        mixt__decision_free(&d);
    if (!found || chosen || d.action == MIXT_ACTION_STOP)
        return MIXT_OK;
    status = add(s, room, &d);
    if (status != MIXT_OK)
        mixt__decision_free(&d);
    for (int64_t i = 0; i < s->recorded_count; i++) // it went back behind those: they are in force from there too
        s->recorded[i].step = s->recorded[i].step < in_force(&d) ? s->recorded[i].step : in_force(&d);
    return status;
}

typedef struct reading {
    mixt__steer *steer;
    int64_t room;
    const char *path;
} reading;

static mixt_status take_line(void *user, const char *text, int64_t line)
{
    reading *r = user;
    mixt_status status = take_row(r->steer, &r->room, text);
    return status == MIXT_OK ? MIXT_OK : mixt__fail_context(status, "auto.replay: %s:%lld", r->path, (long long)line);
}

mixt_status mixt__steer_read(mixt_run *run)
{
    reading r = {.steer = &run->steer, .path = mixt__config_string(run->config, MIXT_KEY_AUTO_REPLAY)};
    if (!*r.path)
        return MIXT_OK;
    if (access(r.path, F_OK))
        return mixt__fail(MIXT_ERROR_FILE, "auto.replay: %s cannot be opened: %s", r.path, strerror(errno));
    return mixt__json_lines_read(r.path, take_line, &r);
}

bool mixt__steer_recorded(const mixt_run *run, int64_t step)
{
    const mixt__steer *s = &run->steer;
    return s->replayed < s->recorded_count && s->recorded[s->replayed].step == step;
}

bool mixt__steer_replay(mixt_run *run, int64_t step)
{
    mixt__steer *s = &run->steer;
    bool any = false;
    while (mixt__steer_recorded(run, step) && s->asked_count < MIXT_DECISIONS_ASKED &&
           mixt_run_ask_decision(run, &s->recorded[s->replayed]) == MIXT_OK) {
        s->replayed++;
        any = true;
    }
    return any;
}
