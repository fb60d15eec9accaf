/* From a run and a word to a file of weights: the final ones, or those of a checkpoint. */
#include "run/open/weights.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/status.h"
#include "run/open/hf_folder.h"
#include "run/report/history.h"
#include "store/checkpoint.h"
#include "store/json.h"
#include "store/safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** The newest checkpoint's step. */
static mixt_status newest(const char *run, const char *folder, int64_t *step)
{
    int64_t *steps, count;
    MIXT_TRY(mixt__checkpoints_list(folder, &steps, &count));
    *step = count ? steps[0] : -1;
    mixt__free(steps);
    return count ? MIXT_OK
                 : mixt__fail(MIXT_ERROR_FILE, "%s: has no checkpoint (train.checkpoint_every says how often)", run);
}

/** The step with the best validation, as the newest checkpoint remembers it. */
static mixt_status best(const char *run, const mixt__checkpoint *checkpoint, int64_t *step)
{
    const json_t *loop = json_object_get(json_object_get(checkpoint->scalars, "run"), "loop");
    MIXT_TRY(mixt__json_get_int(loop, "best_step", -1, INT64_MAX, step));
    return *step >= 0
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_STATE, "%s: has no best checkpoint: none was saved after a validation", run);
}

/** Names the steps of a run's checkpoints, where the one asked for is not among them. */
static mixt_status no_such_step(const char *run, const char *folder, const char *which)
{
    enum { SHOWN = 16 };
    char list[SHOWN * 24] = "";
    int64_t *steps, count;
    MIXT_TRY(mixt__checkpoints_list(folder, &steps, &count));
    int64_t hidden = count > SHOWN ? count - SHOWN : 0;
    for (int64_t i = count - 1 - hidden; i >= 0; i--) { // the newest are in front
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%lld", used ? ", " : "", (long long)steps[i]);
    }
    mixt__free(steps);
    if (!count)
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: has no checkpoint '%s', nor any other (train.checkpoint_every says how often)", run,
                          which);
    return mixt__fail(MIXT_ERROR_FILE, "%s: has no checkpoint '%s': there %s %s%s", run, which,
                      count == 1 ? "is that of step" : "are those of steps", hidden ? "..., " : "", list);
}

/** @param one the checkpoint that was looked at last, also on failure */
static mixt_status find_checkpoint(const char *run, const char *folder, const char *which,
                                   char one[MIXT_CHECKPOINT_PATH])
{
    mixt__checkpoint *checkpoint;
    int64_t step = 0;
    *one = '\0';
    if (strcmp(which, "best") && strcmp(which, "last"))
        step = strtoll(which, NULL, 10);
    else
        MIXT_TRY(newest(run, folder, &step));
    MIXT_TRY(mixt__checkpoint_open(mixt__checkpoint_path(folder, step, one), &checkpoint));
    mixt_status status = MIXT_OK;
    if (!strcmp(which, "best")) {
        int64_t newest_step = step;
        status = best(run, checkpoint, &step);
        if (status == MIXT_OK && step != newest_step) {
            mixt__checkpoint_close(checkpoint);
            status = mixt__checkpoint_open(mixt__checkpoint_path(folder, step, one), &checkpoint);
        }
    }
    mixt__checkpoint_close(checkpoint);
    return status;
}

/** A run that is going on removes old checkpoints: one that is gone by the time it is opened was not the one meant. */
static mixt_status checkpoint_path(const char *run, const char *which, char path[MIXT_WEIGHTS_PATH])
{
    enum { ATTEMPTS = 20 };
    char folder[MIXT_CHECKPOINT_PATH - 32], one[MIXT_CHECKPOINT_PATH];
    bool by_number = strcmp(which, "best") && strcmp(which, "last"), gone = true;
    mixt_status status = MIXT_OK;
    if (snprintf(folder, sizeof folder, "%s/checkpoints", run) >= (int)sizeof folder)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", run);
    for (int i = 0; i < ATTEMPTS && gone; i++) {
        status = find_checkpoint(run, folder, which, one);
        gone = status != MIXT_OK && !by_number && *one && access(one, F_OK);
    }
    if (by_number && status != MIXT_OK && access(one, F_OK))
        return no_such_step(run, folder, which);
    if (status == MIXT_OK)
        snprintf(path, MIXT_WEIGHTS_PATH, "%s/state.safetensors", one);
    return status;
}

/** Of the last whole row of a run's metrics; -1 in *last: there is none. */
static mixt_status last_row(const char *run, int64_t *last)
{
    enum { TAIL = 16384 }; // many times a row
    char path[MIXT_WEIGHTS_PATH + 16], text[TAIL + 1];
    snprintf(path, sizeof path, "%s/metrics.jsonl", run);
    *last = -1;
    FILE *f = mixt__file_open_stream(path);
    if (!f && errno == ENOENT)
        return MIXT_OK;
    if (!f)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", path, mixt__file_problem(errno));
    if (fseek(f, -TAIL, SEEK_END))
        rewind(f);
    text[fread(text, 1, TAIL, f)] = '\0';
    mixt_status status =
        ferror(f) ? mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", path, strerror(errno)) : MIXT_OK;
    fclose(f);
    char *end = strrchr(text, '\n');
    if (status != MIXT_OK || !end)
        return status;
    *end = '\0';
    const char *before = strrchr(text, '\n');
    json_t *row;
    MIXT_TRY(mixt__json_row(before ? before + 1 : text, &row));
    const json_t *step = json_object_get(row, "step");
    *last = json_is_integer(step) ? json_integer_value(step) : -1;
    json_decref(row);
    return MIXT_OK;
}

/** The update after which a file of weights was written; -1: it does not say, or cannot be read. */
static int64_t step_of(const char *path)
{
    mixt__safetensors *file;
    if (mixt__safetensors_open(path, &file) != MIXT_OK)
        return -1; // whoever loads it will say why
    const char *text = mixt__safetensors_metadata(file, "step");
    int64_t step = text ? strtoll(text, NULL, 10) : -1;
    mixt__safetensors_close(file);
    return step;
}

mixt_status mixt__run_weights_final(const char *run, const char *instead)
{
    char path[MIXT_WEIGHTS_PATH], folder[MIXT_WEIGHTS_PATH], older[128] = "";
    int64_t *steps, count;
    if (snprintf(path, sizeof path, "%s/model.safetensors", run) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", run);
    snprintf(folder, sizeof folder, "%s/checkpoints", run);
    if (access(folder, F_OK)) // a run without them does not go on
        return MIXT_OK;
    if (!access(path, F_OK)) {
        int64_t from, row;
        bool resumed;
        MIXT_TRY(last_row(run, &row));
        MIXT_TRY(mixt__history_unfinished(run, &resumed, &from));
        MIXT_TRY(mixt__checkpoints_list(folder, &steps, &count));
        int64_t mine = step_of(path), newest = count && steps[0] > row ? steps[0] : row;
        mixt__free(steps);
        if (mine < 0 || (newest <= mine && !resumed))
            return MIXT_OK;
        if (newest > mine)
            snprintf(older, sizeof older, " (model.safetensors is of step %lld, it went on to step %lld)",
                     (long long)mine, (long long)newest);
        else
            snprintf(older, sizeof older, " (model.safetensors is of step %lld, it was resumed from step %lld since)",
                     (long long)mine, (long long)from);
    }
    return mixt__fail(
        MIXT_ERROR_FILE,
        "%s: has no final weights, because its training is not finished%s: %s, 'mixt train --resume %s' continues it",
        run, older, instead, run);
}

mixt_status mixt__run_folder_weights(const char *folder, const char *weights, char *path, size_t size)
{
    char found[MIXT_WEIGHTS_PATH];
    MIXT_TRY(mixt__need(folder));
    MIXT_TRY(mixt__need(weights));
    if (mixt__hf_folder_is(folder)) {
        snprintf(found, sizeof found, "%s/model.safetensors", folder);
        if (strcmp(weights, "final"))
            return mixt__fail(MIXT_ERROR_FILE, "%s: is not a run of mixt: it has no checkpoint '%s'", folder, weights);
        if (access(found, F_OK))
            snprintf(found, sizeof found, "%s/model.safetensors.index.json", folder);
    } else if (strcmp(weights, "final")) {
        MIXT_TRY(checkpoint_path(folder, weights, found));
    } else {
        if (snprintf(found, sizeof found, "%s/model.safetensors", folder) >= (int)sizeof found)
            return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
        MIXT_TRY(mixt__run_weights_final(folder, "--checkpoint last takes those of its newest checkpoint"));
    }
    return snprintf(path, size, "%s", found) < (int)size
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_ARGUMENT, "%s: the path has no room in %zu bytes", found, size);
}

mixt_status mixt_run_folder_weights(const char *folder, const char *weights, char **path)
{
    char found[MIXT_WEIGHTS_PATH];
    MIXT_TRY(mixt__need(path));
    *path = NULL;
    MIXT_TRY(mixt__run_folder_weights(folder, weights, found, sizeof found));
    return mixt__give_text(path, "%s", found);
}
