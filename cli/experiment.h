/* An experiment: what a configuration describes, opened. Data, model and trainer, ready to step. */
#ifndef MIXT_CLI_EXPERIMENT_H
#define MIXT_CLI_EXPERIMENT_H

#include "api/api.h"
#include "config/config.h"
#include "models/models.h"

typedef struct cli_experiment {
    const mixt_config *config; // borrowed
    mixt_context *context;
    mixt_data *train, *val; // val NULL: the data has no validation part
    mixt__model_sizes sizes;
    mixt_trainer *trainer;
    int64_t total_steps, steps_per_epoch; // in updates
    const char *item;                     // what is counted a second: "samples" or "tokens"
    int64_t items_per_sample;
    char loss_scale[32]; // a fixed loss scale as text
} cli_experiment;

/** Opens everything and compiles the training step; no large memory is taken yet. */
mixt_status cli_experiment_open(cli_experiment *e, const mixt_config *config);
/** Another part of the same data ("train", "val", "test"). Belongs to the experiment. */
mixt_status cli_experiment_data(cli_experiment *e, const char *split, mixt_data **data);
/** Fills `sizes` from the configuration alone: for commands that open a model without its data. */
mixt_status cli_experiment_sizes(cli_experiment *e);
/** Fails where the run's model sees all tokens, with what can be done with it: it neither writes nor predicts. */
mixt_status cli_refuse_masked(const mixt_config *config, const char *run);
void cli_experiment_close(cli_experiment *e);

#endif
