/* From a run and a word to a file of weights. */
#include "cli/weights.h"

#include "base/alloc.h"
#include "base/status.h"
#include "store/checkpoint.h"

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
    return *step >= 0 ? MIXT_OK
                      : mixt__fail(MIXT_ERROR_STATE,
                                   "%s: no checkpoint of it is the best: it has none from after a "
                                   "validation",
                                   run);
}

static mixt_status checkpoint_path(const char *run, const char *which, char path[CLI_WEIGHTS_PATH])
{
    char folder[MIXT_CHECKPOINT_PATH - 32], one[MIXT_CHECKPOINT_PATH];
    mixt__checkpoint *checkpoint;
    int64_t step = 0;
    if (snprintf(folder, sizeof folder, "%s/checkpoints", run) >= (int)sizeof folder)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", run);
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
    if (status == MIXT_OK)
        snprintf(path, CLI_WEIGHTS_PATH, "%s/state.safetensors", one);
    mixt__checkpoint_close(checkpoint);
    return status;
}

mixt_status cli_weights_path(const char *run, const char *which, char path[CLI_WEIGHTS_PATH])
{
    if (strcmp(which, "final"))
        return checkpoint_path(run, which, path);
    if (snprintf(path, CLI_WEIGHTS_PATH, "%s/model.safetensors", run) >= CLI_WEIGHTS_PATH)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", run);
    char folder[CLI_WEIGHTS_PATH + 16];
    snprintf(folder, sizeof folder, "%s/checkpoints", run);
    if (access(path, F_OK) && !access(folder, F_OK))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: has no final weights, its training is not over: --checkpoint last takes those of its "
                          "newest checkpoint, 'mixt train --resume %s' goes on",
                          run, run);
    return MIXT_OK;
}
