/* The acceptance checklist, measured: strict FP32 and a mixed policy from the same weights on the same data, over
 * several seeds. verify.c trains, verify_lines.c turns what was measured into lines with a verdict.
 */
#ifndef MIXT_CLI_VERIFY_H
#define MIXT_CLI_VERIFY_H

#include "run/experiment.h"

enum { CLI_VERIFY_FP32, CLI_VERIFY_MIXED, CLI_VERIFY_SIDES };
enum { CLI_VERIFY_SEEDS_MAX = 100, CLI_VERIFY_LINES = 6 };

/** One training run. */
typedef struct cli_verify_run {
    double *losses; // of each update
    int64_t steps;
    double step_seconds;   // the median, without the first tenth
    double loss, accuracy; // on the validation part; without one: of the last tenth of the updates
    int64_t skipped;       // by the loss scaler: they change nothing
    int64_t not_finite;    // losses and gradients that were not and that no loss scaler caught; outputs
    mixt_memory memory;
    double tensor_cores; // share of the matrix work; NaN: not a GPU
    double difference;   // mixed: mean size of the outputs' difference to FP32, at the weights it begins with
    double trained;      // mixed: the same at the weights it ends with
    double output_size;  // mixed: mean size of FP32's outputs at the weights it begins with
} cli_verify_run;

typedef struct cli_verify {
    int64_t seeds, first_seed;
    char policy[256];                                            // name of the mixed one
    cli_verify_run runs[CLI_VERIFY_SEEDS_MAX][CLI_VERIFY_SIDES]; // by seed
    bool classes;                                                // accuracy counts; else the loss
    bool validated;                                              // there is a validation part
    bool host, fp16;                                             // on the CPU; the policy may use FP16
    bool interrupted;
} cli_verify;

/** Trains every seed in both precisions; `config` is changed. Stops at SIGINT or SIGTERM. */
mixt_status cli_verify_measure(cli_verify *v, mixt_config *config, bool quiet);
void cli_verify_free(cli_verify *v);

/** What a value must be next to its threshold. */
typedef enum cli_verify_rule { CLI_VERIFY_ABOVE, CLI_VERIFY_BELOW, CLI_VERIFY_AT_MOST } cli_verify_rule;

/** A line of the checklist. */
typedef struct cli_verify_line {
    const char *name, *what, *unit; // for scripts; for people
    double value, threshold;
    double low, high; // 95% interval over the seeds; NaN: none
    cli_verify_rule rule;
    bool measured, pass;
    char note[256];
} cli_verify_line;

void cli_verify_judge(const cli_verify *v, const mixt_config *config, cli_verify_line lines[CLI_VERIFY_LINES]);

#endif
