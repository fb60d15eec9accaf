/* What the training loop itself remembers from update to update: figures so far, the row of metrics under way, how long
 * validation has not improved. Saved in each checkpoint, so that metrics too go on as if never stopped. Not the
 * trainer's state: that is train/checkpoint.h.
 */
#ifndef MIXT_CLI_LOOP_STATE_H
#define MIXT_CLI_LOOP_STATE_H

#include "mixt/types.h"

#include <jansson.h>

/** What accumulates between two rows of metrics. */
typedef struct cli_window {
    double loss, accuracy, seconds;
    int64_t steps, skipped, samples;
    char overflow_layer[128];
} cli_window;

typedef struct cli_loop_state {
    cli_window window;
    int64_t steps, samples, skipped, validations;
    int64_t since_best; // validations without improvement
    int64_t best_step;  // of the checkpoint with the best validation loss; -1: none
    int64_t hopeless;   // skipped updates in a row that a smaller loss scale would not have saved
    int64_t metrics_bytes;
    int64_t
        pending;   // 1: a signal came before the last step's validation was through, and its row is still to be written
    int64_t epoch; // of the last step, from here …
    double lr, scale, grad_norm;
    double loss, accuracy;         // … to here
    double val_loss, val_accuracy; // of the last validation; NaN: none
    double best_val_loss;          // of all validations
    double kept_val_loss;          // of the checkpoint at best_step; NaN: none
    double seconds, step_seconds;  // in all; in steps alone
    double energy;                 // joules so far; NaN: not known
} cli_loop_state;

/** Before the first update. */
cli_loop_state cli_loop_state_start(void);
json_t *cli_loop_state_pack(const cli_loop_state *state);
mixt_status cli_loop_state_unpack(const json_t *object, cli_loop_state *state);

#endif
