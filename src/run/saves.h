/* Checkpoints of a run: when one is due, what it holds beside the trainer, what is said when one fails. The best and
 * the last state of every run are saved, whatever else is asked for.
 */
#ifndef MIXT_RUN_SAVES_H
#define MIXT_RUN_SAVES_H

#include "run/run.h"
#include "train/checkpoint.h"

#define MIXT_CHOICES_FILE "choices.txt"

typedef struct mixt__saves {
    mixt_run *run; // borrowed
    mixt__saver *saver;
    json_t *conditions;
    char *config; // the resolved configuration as YAML
    size_t config_bytes;
    char *policy;  // as YAML, where it is not one by name; else NULL
    char *choices; // algorithms that the device chose; NULL: it chooses none
    size_t choices_bytes;
    void *trace; // see MIXT_TRACE_FILE; NULL: none
    size_t trace_bytes;
    int64_t every, keep;
    double interval; // seconds; 0: none
    double last;     // when the last one was made, or the run began
    double stall;    // seconds that training stood still since it was last asked
    bool impossible; // there is no memory for them
    bool told;       // where ranks save their parts: since the newest save they have heard who is still writing
    bool failed;     // the newest save did not succeed
    int64_t lost;    // saves that did not succeed
    int64_t newest;  // step of the newest that did, an earlier part of the run included; -1: none
} mixt__saves;

/** @param resumed the step of the checkpoint that the run goes on from; -1: none */
void mixt__saves_open(mixt__saves *c, mixt_run *run, int64_t resumed);
/** Waits for the save under way: what its thread takes and gives back would be counted as the step's. */
void mixt__saves_wait(mixt__saves *c);
/** Takes up what the configuration and the policy have become. */
void mixt__saves_refresh(mixt__saves *c);
/** Takes memory and thread, once the trainer has its memory; at the first save at the latest. */
void mixt__saves_prepare(mixt__saves *c);
/** Whether one is due after update number `step`. */
bool mixt__saves_due(const mixt__saves *c, int64_t step);
/** Whether the clock says so: of several ranks, one asks the others. */
bool mixt__saves_late(const mixt__saves *c);
/** Saves the state after the update just done; writing goes on beside training, after the save before it has ended. A
 * failure is told as a note and training goes on. */
void mixt__saves_save(mixt__saves *c, const mixt__loop_state *state);
/** The run goes back to update number `step`: what was saved of later ones is no longer so. Waits for the save under
 * way. */
void mixt__saves_return(mixt__saves *c, int64_t step);
/** Says what failed meanwhile. Of several ranks, all do so between the same updates: a save whose parts are written is
 *  put in place then. */
void mixt__saves_poll(mixt__saves *c);
/** Before an update: tells the other ranks whether this one is still writing. */
void mixt__saves_tell(mixt__saves *c);
/** Waits for the save under way and says how many were lost. False when the newest save failed.
 *  @param together all ranks do so; else one of which not all is written yet is lost */
bool mixt__saves_finish(mixt__saves *c, bool together);
void mixt__saves_close(mixt__saves *c);

/** What a run depends on beside its configuration: device, threads, instruction set, the data's size and first batch.
 */
json_t *mixt__run_conditions(mixt__experiment *e);

#endif
