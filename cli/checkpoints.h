/* Checkpoints of a run of the command: when one is due, what it holds beside the trainer, what is said when one fails.
 */
#ifndef MIXT_CLI_CHECKPOINTS_H
#define MIXT_CLI_CHECKPOINTS_H

#include "cli/experiment.h"
#include "cli/loop_state.h"
#include "cli/progress.h"
#include "cli/run_dir.h"
#include "train/checkpoint.h"

#define CLI_CHOICES_FILE "choices.txt"

typedef struct cli_checkpoints {
    cli_experiment *e; // borrowed, as all three
    const cli_run_dir *dir;
    cli_progress *progress;
    mixt__saver *saver;
    json_t *surroundings;
    char *config; // the resolved configuration as YAML
    size_t config_bytes;
    char *choices; // algorithms that the device chose; NULL: it chooses none
    size_t choices_bytes;
    int64_t every, keep;
    double interval; // seconds; 0: none
    double last;     // when the last one was made, or the run began
    double stall;    // seconds that training stood still since it was last asked
    bool active;     // there are checkpoints or will be: the best and the last state are saved too
    bool hopeless;   // there is no memory for them
    bool failed;     // the newest save did not succeed
    int64_t lost;    // saves that did not succeed
    int64_t newest;  // step of the newest that did, an earlier session's included; -1: none
} cli_checkpoints;

/** @param resumed the step of the checkpoint that the run goes on from; -1: none */
void cli_checkpoints_open(cli_checkpoints *c, cli_experiment *e, const cli_run_dir *dir, cli_progress *progress,
                          int64_t resumed);
/** Takes memory and thread, once the trainer has its memory; at the first save at the latest. */
void cli_checkpoints_prepare(cli_checkpoints *c);
/** Whether one is due after update number `step`. */
bool cli_checkpoints_due(const cli_checkpoints *c, int64_t step);
/** Saves the state after the update just done; writing goes on beside training, after the save before it has ended. A
 * failure is said on standard error and training goes on. */
void cli_checkpoints_save(cli_checkpoints *c, const cli_loop_state *state);
/** Says what failed meanwhile. */
void cli_checkpoints_poll(cli_checkpoints *c);
/** Waits for the save under way and says how many were lost. False when the newest save failed. */
bool cli_checkpoints_finish(cli_checkpoints *c);
void cli_checkpoints_close(cli_checkpoints *c);

/** What a run depends on beside its configuration: device, threads, instruction set, the data's size and first batch.
 */
json_t *cli_surroundings(const cli_experiment *e);

#endif
