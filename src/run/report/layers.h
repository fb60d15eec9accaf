/* Looking into the layers of a run: every watch.every updates the instrumented step (train/instrument.h) runs in place
 * of the plain one, and what it saw becomes a row of layers.jsonl and an event for observers.
 *
 * Which updates are looked into follows from their number alone, and the file is cut back to the checkpoint that a run
 * goes on from: a run that was stopped has the same rows as one that was not. The look costs memory that is planned
 * with the run's; where there is none left for it, it is left out and told.
 */
#ifndef MIXT_RUN_LAYERS_H
#define MIXT_RUN_LAYERS_H

#include "mixt/run.h"
#include "train/trainer.h"

typedef struct mixt__layers {
    mixt_layer_signal *layers;
    mixt_param_signal *params;
    int64_t layer_count, layer_room, param_count, param_room;
    char *names; // the newest row of names in the file; NULL: none
} mixt__layers;

/** Compiles its step, where the run is long enough to need one, so that its graph is counted with the others. */
void mixt__layers_plan(mixt_run *run);
/** Leaves it out, because there is no memory for it, and tells; false: it was not wanted, or is left out already. The
 *  step is planned anew, before its memory is taken. */
bool mixt__layers_drop(mixt_run *run);
/** Opens the layers.jsonl of a run that goes on, cut back to its checkpoint. The directory must be open. A new run
 * makes the file with its first row. */
mixt_status mixt__layers_resume(mixt_run *run);
/** Cuts the file back to its first `bytes`: the run goes back. */
mixt_status mixt__layers_return(mixt_run *run, int64_t bytes);
/** Before an update: makes it an instrumented one where that is due. */
void mixt__layers_prepare(mixt_run *run, int64_t step);
/** After its result was taken in: the row and the event, where it was instrumented. */
mixt_status mixt__layers_take(mixt_run *run, const mixt_step *step);
void mixt__layers_close(mixt__layers *layers);

#endif
