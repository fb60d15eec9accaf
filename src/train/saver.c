/* One thread that writes snapshots while training goes on. One save at a time: the next waits for the one before. */
#include "train/saver_inside.h"

#include "base/threads.h"
#include "train/trainer_inside.h"
#include "store/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

mixt_status mixt__save_folder(const mixt__save_request *r)
{
    return mkdir(r->folder, 0777) && errno != EEXIST
               ? mixt__fail(MIXT_ERROR_FILE, "cannot create folder %s: %s", r->folder, strerror(errno))
               : MIXT_OK;
}

mixt__checkpoint_content mixt__save_content(const mixt__save_request *r, const mixt__snapshot *snapshot,
                                            const json_t *scalars)
{
    return (mixt__checkpoint_content){.tensors = snapshot->tensors,
                                      .count = snapshot->count,
                                      .scalars = scalars,
                                      .files = r->files,
                                      .file_count = r->file_count};
}

static mixt_status write_checkpoint(const mixt__save_request *r, const mixt__snapshot *snapshot, const json_t *scalars)
{
    char path[MIXT_CHECKPOINT_PATH];
    MIXT_TRY(mixt__save_folder(r));
    mixt__checkpoint_content content = mixt__save_content(r, snapshot, scalars);
    MIXT_TRY(mixt__checkpoint_finite(&content, NULL, 0));
    return mixt__checkpoint_write(mixt__checkpoint_path(r->folder, r->step, path), &content);
}

mixt_status mixt__save_prune(const mixt__save_request *r)
{
    int64_t wanted[1 + sizeof r->wanted / sizeof *r->wanted] = {r->step};
    memcpy(wanted + 1, r->wanted, (size_t)r->wanted_count * sizeof *wanted);
    return mixt__checkpoints_prune(r->folder, r->keep, wanted, 1 + r->wanted_count);
}

/** What the thread is there for. */
static mixt_status do_job(mixt__saver *s)
{
    if (s->job == MIXT_SAVER_PART)
        return mixt__saver_write_part(s);
    if (s->job == MIXT_SAVER_FINISH)
        return mixt__saver_finish_parts(s);
    MIXT_TRY(write_checkpoint(&s->request, &s->snapshot, s->scalars));
    return mixt__save_prune(&s->request);
}

void mixt__saver_forget(mixt__saver *s)
{
    json_decref(s->scalars);
    json_decref(s->files);
    s->scalars = s->files = NULL;
}

/** Writes what was asked for; without the lock, as the request stays as it is while busy. */
static mixt__save_report serve(mixt__saver *s)
{
    double start = mixt__time_now();
    mixt__save_report report = {.step = s->request.step, .status = do_job(s)};
    report.seconds = mixt__time_now() - start;
    if (report.status != MIXT_OK)
        snprintf(report.error, sizeof report.error, "%s", mixt_error_text());
    if (s->job != MIXT_SAVER_PART) // which is half a save
        mixt__saver_forget(s);
    return report;
}

static void *work(void *argument)
{
    mixt__saver *s = argument;
    mixt__snapshot_touch(&s->snapshot);
    pthread_mutex_lock(&s->lock);
    s->busy = false;
    pthread_cond_broadcast(&s->changed);
    while (true) {
        while (!s->busy && !s->stop)
            pthread_cond_wait(&s->changed, &s->lock);
        if (!s->busy)
            break;
        pthread_mutex_unlock(&s->lock);
        mixt__save_report report = serve(s);
        pthread_mutex_lock(&s->lock);
        s->report = report;
        s->reported = s->job != MIXT_SAVER_PART;
        s->busy = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

mixt_status mixt__saver_start(mixt__trainer *trainer, mixt__saver **saver)
{
    *saver = NULL;
    mixt__saver *s = mixt__alloc(sizeof *s);
    if (!s)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to save checkpoints");
    s->trainer = trainer;
    mixt__snapshot_kind kind = mixt__snapshot_saved(trainer);
    mixt_status status = mixt__snapshot_open(&s->snapshot, trainer, kind, false);
    bool copied = status == MIXT_OK;
    if (!copied && trainer->device->backend->host_memory)
        status = mixt__snapshot_open(&s->snapshot, trainer, kind, true);
    if (status != MIXT_OK) {
        mixt__free(s);
        return status;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->busy = copied; // until the thread has touched the memory
    s->threaded = copied && pthread_create(&s->thread, NULL, work, s) == 0;
    if (!s->threaded)
        s->busy = false;
    *saver = s;
    return MIXT_OK;
}

mixt_status mixt__saver_collect(mixt__saver *s, mixt__trainer *trainer, const mixt__snapshot *from)
{
    static char *const none[MIXT_PARAM_ROLES];
    char *const *roles = s ? s->snapshot.blocks : none;
    float *feedback = s ? s->snapshot.feedback : NULL;
    if (s)
        mixt__saver_wait(s); // it may be writing them
    if (!from)
        return mixt__ranks_collect(trainer, NULL, roles, feedback);
    mixt__ranks_own own = {from->blocks, from->feedback};
    if (s)
        mixt__snapshot_fill(&s->snapshot, from);
    return mixt__ranks_collect(trainer, &own, roles, feedback);
}

/** The file of frozen parameters, by the process that writes files. */
static mixt_status add_frozen(mixt__trainer *t, mixt__save_request *request)
{
    if (t->ranks.group && t->ranks.group->rank)
        return MIXT_OK;
    MIXT_TRY(mixt__save_folder(request));
    return mixt__frozen_file_add(t->params, request->folder, &t->frozen_file, request->files, &request->file_count);
}

mixt_status mixt__saver_ask(mixt__saver *s, const mixt__save_request *request, json_t *trainer)
{
    s->request = *request;
    s->request.run = NULL;
    s->scalars = json_pack("{s:O}", "trainer", trainer);
    bool full = s->scalars && !request->run_lost &&
                (!request->run || !mixt__json_set(s->scalars, "run", json_incref(request->run)));
    json_decref(request->run);
    MIXT_TRY(add_frozen(s->trainer, &s->request));
    return full && mixt__json_whole(s->scalars) ? MIXT_OK
                                                : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a checkpoint's figures");
}

mixt_status mixt__saver_take(mixt__saver *s, const mixt__save_request *request)
{
    mixt_status taken = mixt__snapshot_take(&s->snapshot, s->trainer);
    mixt_status asked = mixt__saver_ask(s, request, taken == MIXT_OK ? s->snapshot.scalars : json_null());
    json_decref(s->snapshot.scalars); // from here on one thread alone holds what the scalars hold
    s->snapshot.scalars = NULL;
    return taken == MIXT_OK ? asked : taken;
}

mixt_status mixt__saver_save(mixt__saver *s, const mixt__save_request *request)
{
    mixt__saver_wait(s);
    mixt_status status = mixt__saver_take(s, request);
    if (status == MIXT_OK)
        mixt__saver_go(s, MIXT_SAVER_WHOLE);
    else
        mixt__saver_forget(s);
    return status;
}

void mixt__saver_go(mixt__saver *s, mixt__saver_job job)
{
    s->job = job;
    if (!s->threaded) {
        s->report = serve(s);
        s->reported = job != MIXT_SAVER_PART;
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->busy = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

mixt_status mixt__saver_write(mixt__saver *s, const mixt__snapshot *snapshot, const mixt__save_request *request)
{
    mixt__saver_wait(s);
    const mixt__snapshot *whole = snapshot->kind == MIXT_SNAPSHOT_OWN ? &s->snapshot : snapshot;
    json_t *scalars = json_pack("{s:O, s:O}", "trainer", snapshot->scalars, "run", request->run);
    mixt__save_request full = *request;
    mixt_status status = mixt__json_whole(scalars)
                             ? add_frozen(s->trainer, &full)
                             : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a checkpoint's figures");
    if (status == MIXT_OK)
        status = write_checkpoint(&full, whole, scalars);
    json_decref(scalars);
    json_decref(request->run);
    return status;
}

bool mixt__saver_report(mixt__saver *s, mixt__save_report *report)
{
    pthread_mutex_lock(&s->lock);
    bool there = s->reported && !s->busy;
    s->reported = s->reported && !there;
    if (there)
        *report = s->report;
    pthread_mutex_unlock(&s->lock);
    return there;
}

void mixt__saver_wait(mixt__saver *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->busy)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void mixt__saver_stop(mixt__saver *s)
{
    if (!s)
        return;
    if (s->threaded) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    mixt__saver_abandon(s);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    mixt__snapshot_close(&s->snapshot);
    mixt__free(s);
}
