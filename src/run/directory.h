/* A run directory: config.yaml, inputs.json, metrics.jsonl, events.jsonl, layers.jsonl, history.jsonl,
 * model.safetensors, predictions.json, checkpoints/, policy.yaml where a policy file was used and vocab/ where text was tokenised with a
 * vocabulary. Made new, never overwritten; enough to predict and to generate from any folder, without the data.
 */
#ifndef MIXT_RUN_DIRECTORY_H
#define MIXT_RUN_DIRECTORY_H

#include "run/report/rows.h"
#include "config/config.h"
#include "mixt/policy.h"

#define MIXT_POLICY_FILE "policy.yaml"

/** Whether a run whose model was a file goes on with the graph that lies beside it. */
bool mixt__run_has_own_graph(const mixt_config *before, const mixt_config *now);
/** Sets the model of a run that has its graph beside it, wherever the file is that it came from. */
mixt_status mixt__run_own_graph(const char *run, mixt_config *config);

typedef struct mixt__run_dir {
    char path[1024]; // "": not made
    mixt__rows metrics, events;
    mixt__rows layers; // not open where no update is looked into
    bool silent;       // another process writes it: rows go nowhere
    bool resumed;      // was there before: never discarded
    int beginning;     // the handle and 1 of a file that is there until all else is; 0: all is
} mixt__run_dir;

/** Creates the directory that the configuration names (or runs/<model>-<precision>-<number>), copies the policy file
 * into it, makes the configuration's names of files absolute, and writes config.yaml. `kind` is that of the opened
 * data. Until mixt__run_dir_begun the directory counts as unfinished: where a process ended before that, the next one
 * that is to make a directory of this name removes it. */
mixt_status mixt__run_dir_create(mixt__run_dir *dir, mixt_config *config, const char *kind);
/** All that a run begins with is there: it can be resumed. */
mixt_status mixt__run_dir_begun(mixt__run_dir *dir);
/** Opens a directory that is there, to go on in it: metrics.jsonl keeps its first `keep` bytes, events.jsonl its first
 * `keep_events`, config.yaml is replaced by `config`. */
mixt_status mixt__run_dir_reopen(mixt__run_dir *dir, const char *run, mixt_config *config, const char *kind,
                                 int64_t keep, int64_t keep_events);
/** Writes the configuration anew, where this process writes the directory. */
mixt_status mixt__run_dir_config(const mixt__run_dir *dir, const mixt_config *config);
/** Gives a configuration that a run has kept the values that hold where it does not say: those of the version that
 * wrote it. */
mixt_status mixt__run_settle_config(mixt_config *config);
/** Makes `policy` the run's own: its policy.yaml, and the configuration that names it. */
mixt_status mixt__run_dir_policy(mixt__run_dir *dir, mixt_config *config, const mixt_policy *policy);
/** Takes back a directory in which nothing has happened yet, so that the same command can be tried again; closes one
 * that was there before. */
void mixt__run_dir_discard(mixt__run_dir *dir);
/** Path of a file inside; `text` has room for 1200 bytes. */
const char *mixt__run_dir_file(const mixt__run_dir *dir, const char *name, char text[1200]);
void mixt__run_dir_close(mixt__run_dir *dir);

#endif
