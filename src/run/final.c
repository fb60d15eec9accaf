/* From the end of training to model.safetensors. */
#include "run/final.h"

#include "run/weights.h"

#include <stdio.h>

/** Gives the trainer the weights of the best checkpoint. */
static mixt_status take_best(mixt_run *run)
{
    char number[24], path[MIXT_WEIGHTS_PATH];
    snprintf(number, sizeof number, "%lld", (long long)run->result.best_step);
    MIXT_TRY(mixt_run_folder_weights(run->dir.path, number, path, sizeof path));
    return mixt_trainer_load(run->experiment.trainer, path);
}

mixt_status mixt__final_save(mixt_run *run)
{
    char path[1200];
    mixt_run_result *r = &run->result;
    r->weights_step = r->steps;
    if (run->dir.silent)
        return MIXT_OK;
    if (r->stopped_early && r->best_step >= 0 && r->best_step != r->steps) {
        if (take_best(run) == MIXT_OK)
            r->weights_step = r->best_step;
        else
            mixt__run_note(run, true,
                           "the best weights, of step %lld, cannot be read: %s; model.safetensors has the last",
                           (long long)r->best_step, mixt_error_text());
    }
    mixt__run_dir_file(&run->dir, "model.safetensors", path);
    return mixt__trainer_save_of(run->experiment.trainer, path, r->weights_step);
}
