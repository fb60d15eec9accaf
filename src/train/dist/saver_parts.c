/* Saves of which every rank writes its part, beside training.
 *
 * Rank 0 makes the folder and the file, all write into it, each by its own thread; no thread of these talks to another
 * rank. What they have come to is told where the ranks' main threads meet: then rank 0 puts the checkpoint in place, or
 * nobody does. A rank that waits for another's disk tells that it is alive four times in dist.timeout.
 */
#include "train/saver_inside.h"

#include "dist/keepalive.h"
#include "train/trainer_inside.h"

#include <stdio.h>
#include <string.h>

static mixt__group *group_of(const mixt__saver *s)
{
    return s->trainer->ranks.group;
}

/* ---- the thread's work ---- */

mixt_status mixt__saver_write_part(mixt__saver *s)
{
    const mixt__snapshot *snapshot = &s->snapshot;
    mixt__checkpoint_content content = mixt__save_content(&s->request, snapshot, s->scalars);
    MIXT_TRY(mixt__checkpoint_finite(&content, snapshot->pieces, snapshot->piece_count));
    MIXT_TRY(mixt__checkpoint_add(&s->draft, &content, snapshot->pieces, snapshot->piece_count, snapshot->sums));
    return s->files ? mixt__checkpoint_add_files(&s->draft, &content, s->files) : MIXT_OK;
}

mixt_status mixt__saver_finish_parts(mixt__saver *s)
{
    mixt__checkpoint_content content = mixt__save_content(&s->request, &s->snapshot, s->scalars);
    mixt_status status = mixt__checkpoint_finish(&s->draft, &content, s->files, s->sums, s->sum_count);
    mixt__free(s->sums);
    s->sums = NULL;
    return status == MIXT_OK ? mixt__save_prune(&s->request) : status;
}

/* ---- beats ---- */

/** Until no rank's thread has anything to do; what each came to is in the group's words. */
static mixt_status beat_until_done(mixt__saver *s)
{
    mixt__group *g = group_of(s);
    bool busy = true;
    while (busy) {
        mixt__word mine = {.count = s->snapshot.piece_count};
        pthread_mutex_lock(&s->lock);
        mixt__wait_some(&s->changed, &s->lock, &s->busy, false, g->timeout / MIXT_BEATS);
        mine.busy = s->busy;
        pthread_mutex_unlock(&s->lock);
        if (!mine.busy && s->report.status != MIXT_OK) {
            mine.status = (int32_t)s->report.status;
            snprintf(mine.text, sizeof mine.text, "%.500s", s->report.error);
        }
        MIXT_TRY(mixt__group_beat(g, &mine, &busy));
    }
    return MIXT_OK;
}

/** The first failure is everyone's; not one that ends the run. */
static mixt_status judge(const mixt__group *g)
{
    for (int rank = 0; rank < g->size; rank++)
        if (g->words[rank].status != MIXT_OK)
            return mixt__fail((mixt_status)g->words[rank].status, "rank %d: %s", rank, g->words[rank].text);
    return MIXT_OK;
}

/* ---- a save from its begin to its end, by all ranks ---- */

/** What rank 0 tells when it begins: where to write, or why nothing can be. */
typedef struct opening {
    int32_t status;
    char text[512];
    mixt__checkpoint_draft draft;
} opening;

static mixt_status begin(mixt__saver *s, const mixt__save_request *request)
{
    char path[MIXT_CHECKPOINT_PATH];
    mixt__checkpoint_content content = mixt__save_content(request, &s->snapshot, NULL);
    s->files = json_object();
    if (!s->files)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a checkpoint's figures");
    MIXT_TRY(mixt__save_folder(request));
    return mixt__checkpoint_begin(mixt__checkpoint_path(request->folder, request->step, path), &content, &s->draft);
}

/** Rank 0's words to all. @param begun how it went there */
static mixt_status share_draft(mixt__saver *s, mixt_status begun)
{
    mixt__group *g = group_of(s);
    opening told = {.status = (int32_t)begun, .draft = s->draft};
    if (begun != MIXT_OK)
        snprintf(told.text, sizeof told.text, "%.500s", mixt_error_text());
    MIXT_TRY(mixt__group_broadcast(g, &told, sizeof told, 1));
    s->draft = told.draft;
    return told.status == MIXT_OK ? MIXT_OK : mixt__fail((mixt_status)told.status, "%s", told.text);
}

/** The same on all ranks, unless one is lost. */
static mixt_status open_draft(mixt__saver *s, const mixt__save_request *request)
{
    bool first = group_of(s)->rank == 0;
    mixt__saver_settle(s, true);
    if (s->stage != MIXT_SAVER_IDLE) // its thread may be at work still
        return mixt__fail(MIXT_ERROR_STATE, "%s", group_of(s)->why);
    mixt__saver_wait(s);
    mixt_status begun = first ? begin(s, request) : MIXT_OK, status = share_draft(s, begun);
    if (first && status != MIXT_OK && begun == MIXT_OK)
        mixt__checkpoint_discard(&s->draft);
    return status;
}

/** The same; the request is the caller's no more where it fails. */
static mixt_status open_save(mixt__saver *s, const mixt__save_request *request)
{
    mixt_status status = open_draft(s, request);
    if (status == MIXT_OK) {
        s->stage = MIXT_SAVER_WRITING;
        return MIXT_OK;
    }
    json_decref(request->run);
    if (s->stage == MIXT_SAVER_IDLE)
        mixt__saver_forget(s);
    return status;
}

/** Lets the thread write this rank's part. @param ready whether there is one; a failure the others learn when they
 *  settle */
static void write_part(mixt__saver *s, int64_t step, mixt_status ready)
{
    if (ready == MIXT_OK) {
        mixt__saver_go(s, MIXT_SAVER_PART);
        return;
    }
    s->report = (mixt__save_report){.step = step, .status = ready};
    snprintf(s->report.error, sizeof s->report.error, "%s", mixt_error_text());
}

mixt_status mixt__saver_save_part(mixt__saver *s, const mixt__save_request *request)
{
    MIXT_TRY(open_save(s, request));
    write_part(s, request->step, mixt__saver_take(s, request));
    return MIXT_OK;
}

/** Everyone's checksums to rank 0. */
static mixt_status collect_sums(mixt__saver *s)
{
    mixt__group *g = group_of(s);
    int outs = 0, ins = 0;
    s->sum_count = 0;
    for (int rank = 0; rank < g->size; rank++)
        s->sum_count += g->words[rank].count;
    if (g->rank) {
        g->out[outs++] = (mixt__message){0, s->snapshot.sums, (size_t)s->snapshot.piece_count * sizeof *s->sums};
        return mixt__group_exchange(g, outs, ins, 1);
    }
    s->sums = mixt__alloc((size_t)(s->sum_count + 1) * sizeof *s->sums);
    if (!s->sums)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the checksums of a checkpoint");
    memcpy(s->sums, s->snapshot.sums, (size_t)g->words[0].count * sizeof *s->sums);
    int64_t used = g->words[0].count;
    for (int rank = 1; rank < g->size; used += g->words[rank++].count)
        g->in[ins++] = (mixt__message){rank, s->sums + used, (size_t)g->words[rank].count * sizeof *s->sums};
    return mixt__group_exchange(g, outs, ins, 1);
}

/** A save that is over, on this rank. */
static void end(mixt__saver *s, mixt_status status)
{
    s->stage = MIXT_SAVER_IDLE;
    s->report.step = s->request.step;
    s->report.status = status;
    s->report.error[0] = '\0';
    if (status != MIXT_OK)
        snprintf(s->report.error, sizeof s->report.error, "%s", mixt_error_text());
    s->reported = true;
    mixt__saver_forget(s);
}

/** All have written, or one could not. */
static mixt_status settle_parts(mixt__saver *s)
{
    const mixt__group *g = group_of(s);
    MIXT_TRY(beat_until_done(s));
    mixt_status status = judge(g);
    if (status == MIXT_OK) {
        MIXT_TRY(collect_sums(s));
        s->stage = MIXT_SAVER_FINISHING;
        if (g->rank == 0)
            mixt__saver_go(s, MIXT_SAVER_FINISH);
        return MIXT_OK;
    }
    end(s, status);
    if (g->rank == 0)
        mixt__checkpoint_discard(&s->draft);
    return MIXT_OK;
}

/** Rank 0 has put it in place, or could not. */
static mixt_status settle_place(mixt__saver *s)
{
    const mixt__group *g = group_of(s);
    MIXT_TRY(beat_until_done(s));
    if (g->rank)
        end(s, judge(g));
    s->stage = MIXT_SAVER_IDLE;
    return MIXT_OK;
}

void mixt__saver_settle(mixt__saver *s, bool all)
{
    if (s->stage == MIXT_SAVER_IDLE || (s->stage == MIXT_SAVER_FINISHING && !all))
        return;
    mixt_status status = MIXT_OK;
    if (s->stage == MIXT_SAVER_WRITING)
        status = settle_parts(s);
    if (status == MIXT_OK && s->stage == MIXT_SAVER_FINISHING && all)
        status = settle_place(s);
    if (status != MIXT_OK)
        mixt__group_give_up(group_of(s)); // nobody will answer any more: the run ends at its next update
}

mixt_status mixt__saver_write_parts(mixt__saver *s, const mixt__snapshot *snapshot, const mixt__save_request *request)
{
    MIXT_TRY(open_save(s, request));
    mixt_status ready = mixt__saver_ask(s, request, snapshot->scalars);
    s->request.keep = INT64_MAX; // nothing is pruned
    mixt__snapshot_point(&s->snapshot, snapshot);
    write_part(s, request->step, ready);
    mixt__saver_settle(s, true);
    if (s->stage != MIXT_SAVER_IDLE) { // a rank is lost; no thread of this one may read what its caller has any more
        mixt__saver_wait(s);
        return mixt__fail(MIXT_ERROR_STATE, "%s", group_of(s)->why);
    }
    mixt__snapshot_point(&s->snapshot, &s->snapshot);
    s->reported = false;
    return s->report.status == MIXT_OK ? MIXT_OK : mixt__fail(s->report.status, "%s", s->report.error);
}

bool mixt__saver_writing(mixt__saver *s)
{
    pthread_mutex_lock(&s->lock);
    bool busy = s->busy;
    pthread_mutex_unlock(&s->lock);
    return s->stage == MIXT_SAVER_WRITING && busy;
}

bool mixt__saver_pending(const mixt__saver *s)
{
    return s->stage == MIXT_SAVER_WRITING;
}

void mixt__saver_abandon(mixt__saver *s)
{
    if (s->stage == MIXT_SAVER_WRITING && group_of(s)->rank == 0)
        mixt__checkpoint_discard(&s->draft);
    mixt__saver_forget(s);
    mixt__free(s->sums);
}
