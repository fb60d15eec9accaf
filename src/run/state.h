/* What the training loop itself remembers from update to update: figures so far, the row of metrics under way, how long
 * validation has not improved. Saved in each checkpoint, so that metrics too go on as if never stopped. Not the
 * trainer's state: that is train/checkpoint.h.
 */
#ifndef MIXT_RUN_STATE_H
#define MIXT_RUN_STATE_H

#include "run/course.h"
#include "run/report/thinning.h"

#include <jansson.h>

/** What accumulates between two rows of metrics. */
typedef struct mixt__window {
    double loss, accuracy, seconds;
    int64_t steps, skipped, samples;
    char overflow_layer[128];
} mixt__window;

typedef struct mixt__loop_state {
    mixt__window window;
    mixt__usual usual; // of the loss
    mixt__course course;
    int64_t steps, samples, skipped, validations;
    int64_t since_best; // validations without improvement
    int64_t best_step;  // of the checkpoint with the best validation loss; -1: none
    int64_t stuck;      // skipped updates in a row that a smaller loss scale would not have saved
    int64_t metrics_bytes, events_bytes, layers_bytes; // of the files of rows
    int64_t
        pending; // 1: a signal came before the last step's validation was through, and its row is still to be written
    int64_t val_step; // of the last validation; -1: none, or not known
    int64_t epoch;    // of the last step, from 0 in checkpoints of all versions; from here …
    double lr, scale, grad_norm;
    double loss, accuracy;         // … to here
    double val_loss, val_accuracy; // of the last validation; NaN: none
    double best_val_loss;          // of all validations
    double kept_val_loss;          // of the checkpoint at best_step; NaN: none
    double seconds, step_seconds;  // in all; in steps alone
    double energy;                 // joules so far; NaN: not known
} mixt__loop_state;

/** Before the first update. */
mixt__loop_state mixt__loop_state_start(void);
json_t *mixt__loop_state_pack(const mixt__loop_state *state);
mixt_status mixt__loop_state_unpack(const json_t *object, mixt__loop_state *state);

#endif
