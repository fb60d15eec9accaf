/* Where the loop is: for loop.c and loop_state.c. */
#ifndef MIXT_RUN_LOOP_INSIDE_H
#define MIXT_RUN_LOOP_INSIDE_H

#include "run/loop.h"
#include "run/saves.h"
#include "train/engine.h"

typedef struct mixt__loop {
    mixt_run *run;
    mixt__experiment *e;
    mixt_run_result *result;
    mixt__engine engine;
    mixt__saves saves;
    bool due;  // a checkpoint, after the update under way
    bool wait; // for its result
    mixt__window window;
    mixt__usual usual; // of the loss
    mixt__course course;
    bool spike;                               // the newest update's loss stands out
    int64_t issued;                           // updates given to the device
    bool pending;                             // a signal came before the last update's validation was through
    mixt__loop_state before_row;              // as it was before a row that only the end of the run made
    bool extra_row;                           // there is such a row
    bool rows_wait;                           // the disk has no room for metrics.jsonl
    bool improved;                            // the newest validation is better than any that was kept
    double val_margin;                        // of the last validation
    double kept_loss;                         // of the best checkpoint; NaN: there is none
    bool stopping;                            // a signal came before the last update was issued
    double energy_start, energy, energy_time; // joules at the start and when last asked; NaN: the device does not count
    int64_t since_best;                       // validations without improvement
    bool stop;                                // this update is the last: what it logged is complete
    int64_t stuck;                            // skipped updates in a row that a smaller loss scale would not have saved
} mixt__loop;

/** What is true after the newest update whose result is there. */
mixt__loop_state mixt__loop_state_of(const mixt__loop *loop);
/** Puts the loop where a checkpoint left it. */
void mixt__loop_go_on(mixt__loop *loop, const mixt__loop_state *state);
bool mixt__loop_out_of_patience(const mixt__loop *loop);

#endif
