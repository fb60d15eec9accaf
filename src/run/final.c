/* From the end of training to model.safetensors. */
#include "run/final.h"

#include "base/alloc.h"
#include "dist/keepalive.h"
#include "run/open/adapter.h"
#include "run/open/weights.h"
#include "train/dist/sharded.h"
#include "train/integrity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/** Gives the trainer the weights of the best checkpoint. */
static mixt_status take_best(mixt_run *run)
{
    char number[24], path[MIXT_WEIGHTS_PATH];
    snprintf(number, sizeof number, "%lld", (long long)run->result.best_step);
    MIXT_TRY(mixt__run_folder_weights(run->dir.path, number, path, sizeof path));
    return mixt_trainer_load(run->experiment.trainer, path);
}

/** Adapters as PEFT reads them, in a folder of their own. */
static mixt_status save_adapter(mixt_run *run)
{
    char folder[1200];
    mixt__run_dir_file(&run->dir, MIXT_ADAPTER_FOLDER, folder);
    if (mkdir(folder, 0777) && errno != EEXIST)
        return mixt__fail(MIXT_ERROR_FILE, "cannot create folder %s: %s", folder, strerror(errno));
    return mixt__experiment_adapter_write(&run->experiment, folder, true, NULL);
}

static mixt_status save(mixt_run *run)
{
    char path[1200];
    mixt_run_result *r = &run->result;
    bool wants_best = mixt__config_int(run->config, MIXT_KEY_TRAIN_EARLY_STOP) > 0; // also where the end came first
    if (wants_best && r->best_step >= 0 && r->best_step != r->steps) {
        if (take_best(run) == MIXT_OK)
            r->weights_step = r->best_step;
        else
            mixt__run_note(
                run, true,
                "the best weights, of step %lld, cannot be read: %s; model.safetensors has those of the last step",
                (long long)r->best_step, mixt_error_text());
    }
    if (mixt__config_int(run->config, MIXT_KEY_LORA_RANK))
        MIXT_TRY(save_adapter(run));
    mixt__run_dir_file(&run->dir, "model.safetensors", path);
    return mixt__trainer_save_of(run->experiment.trainer, path, r->weights_step, mixt__adapter_only(run->config));
}

/** By the one that saves; the others wait until it has. */
static mixt_status save_alone(mixt_run *run)
{
    mixt__keepalive meanwhile;
    mixt__keepalive_begin(&meanwhile, run->group);
    return mixt__keepalive_end(&meanwhile, run->dir.silent ? MIXT_OK : save(run));
}

/** Weights that ranks shard come to the one that saves. */
static mixt_status save_collected(mixt_run *run)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    bool saves = !run->dir.silent;
    float *all = saves ? mixt__alloc_uninit((size_t)mixt__trainer_params(t)->total * sizeof *all) : NULL;
    mixt_status status = !saves || all ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to save the weights");
    status = mixt__group_agree_soon(run->group, status);
    if (status == MIXT_OK)
        status = mixt__sharded_collect_masters(t, all);
    mixt__trainer_params(t)->whole = all;
    if (status == MIXT_OK)
        status = save_alone(run);
    mixt__trainer_params(t)->whole = NULL;
    mixt__free(all);
    return status;
}

mixt_status mixt__final_save(mixt_run *run)
{
    run->result.weights_step = run->result.steps;
    if (run->group) // what the last update has found on one rank, no other has heard of
        MIXT_TRY(mixt__group_agree_soon(run->group, mixt__integrity_verify(run->experiment.trainer->inner)));
    if (run->group && mixt__trainer_params(run->experiment.trainer->inner)->shard.masters)
        return save_collected(run);
    return save_alone(run);
}
