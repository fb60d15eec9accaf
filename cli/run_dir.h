/* A run directory: config.yaml, metrics.jsonl, model.safetensors, checkpoints/, and policy.yaml where a policy file was
 * used. Made new, never overwritten; enough to evaluate the run from any folder, as long as the data stays where it is.
 */
#ifndef MIXT_CLI_RUN_DIR_H
#define MIXT_CLI_RUN_DIR_H

#include "cli/metrics.h"
#include "config/config.h"

typedef struct cli_run_dir {
    char path[1024]; // "": not made
    cli_metrics metrics;
    bool resumed; // was there before: never discarded
} cli_run_dir;

/** Creates the directory that the configuration names (or runs/<model>-<precision>-<number>), copies the policy file
 * into it, makes the configuration's names of files absolute, and writes config.yaml. `kind` is that of the opened
 * data. */
mixt_status cli_run_dir_create(cli_run_dir *dir, mixt_config *config, const char *kind);
/** Opens a directory that is there, to go on in it: metrics.jsonl keeps its first `keep` bytes, config.yaml is replaced
 * by `config`. */
mixt_status cli_run_dir_reopen(cli_run_dir *dir, const char *run, const mixt_config *config, int64_t keep);
/** Takes back a directory in which nothing has happened yet, so that the same command can be tried again; closes one
 * that was there before. */
void cli_run_dir_discard(cli_run_dir *dir);
/** The configuration of a finished run, with the policy that lies beside it. */
mixt_status cli_run_dir_config(const char *run, mixt_config **config);
/** Path of a file inside; `text` has room for 1200 bytes. */
const char *cli_run_dir_file(const cli_run_dir *dir, const char *name, char text[1200]);
void cli_run_dir_close(cli_run_dir *dir);

/** Finds and makes the first free runs/demo-<number>. */
mixt_status cli_demo_folder(char *path, size_t size);

#endif
