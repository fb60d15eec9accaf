/* An experiment: what a configuration describes, opened. Data, model and trainer, ready to step. */
#ifndef MIXT_RUN_EXPERIMENT_H
#define MIXT_RUN_EXPERIMENT_H

#include "api/api.h"
#include "base/progress.h"
#include "config/config.h"
#include "data/audio/audio.h"
#include "models/models.h"

#include <jansson.h>

/** The parts of a run that its policy tells apart: see run/open/phases.h. */
typedef struct mixt__phases {
    mixt_policy *policy; // all of them, their ends counted in updates; NULL: the policy is the same throughout
    mixt_config *config; // the experiment's, with the loss scaling and clipping of the phase that counts
    int64_t current;
} mixt__phases;

typedef struct mixt__distillation mixt__distillation; // run/open/teacher.h

typedef struct mixt__experiment {
    const mixt_config *config;      // borrowed
    int64_t ranks;                  // that share an update; 0: one
    bool planned;                   // they are processes that are not here: only to be looked at
    mixt__group *group;             // of those, where they are processes; borrowed
    bool on_device;                 // gradients are to be summed over ranks in the device's memory
    bool lost;                      // a rank is: what joins devices is not left together
    mixt__device_sums *device_sums; // what sums them; NULL: nothing is open
    const char *choices;            // file of algorithms that the device is to take; borrowed; NULL: none
    int threads;                    // of the CPU where the configuration does not say; 0: as usual
    int64_t update;                 // that it is opened for, from 1; 0: the first
    mixt__phases phases;
    mixt_context *context;
    mixt_data *train, *val;   // val NULL: the data has no validation part; train too: it is not open
    mixt_data *facts;         // what samples are like: the training part, or what the run remembers of it
    const json_t *remembered; // inputs.json of a run that goes on with other data, which is normalised as its own was;
                              // borrowed; NULL: the data is the run's
    mixt_data *remembered_facts; // what that says, once the data is open
    uint64_t sums[2];            // of train and val: see mixt__experiment_sums
    bool summed;
    char base_sum[24]; // see mixt__adapter_base_sum
    bool base_summed;
    mixt__distillation *distillation; // what distill.teacher names; NULL: none
    int64_t positions;                // places of a text that the weights to begin with know; 0: none
    mixt__model_sizes sizes;
    mixt__onnx *onnx; // the file that the model is; NULL: it is one of the zoo
    mixt_trainer *trainer;
    int64_t total_steps, steps_per_epoch; // in updates
    const char *item;                     // what is counted a second: "samples" or "tokens"
    int64_t items_per_sample;
    char loss_scale[MIXT_POLICY_SETTING_TEXT]; // a fixed loss scale as text
    mixt__teller teller;                       // hears of texts that are tokenised
} mixt__experiment;

/** Opens everything and compiles the training step; no large memory is taken yet. `e` is all zero but for teller,
 *  update, ranks, group, on_device, choices and threads. */
mixt_status mixt__experiment_open(mixt__experiment *e, const mixt_config *config);
/** The same without the data, from what a run remembers of it: inputs.json, which is no longer needed after that. */
mixt_status mixt__experiment_open_without_data(mixt__experiment *e, const mixt_config *config, const json_t *inputs);
/** Opens the training part where it is not open, with the normalisation and classes that are known. */
mixt_status mixt__experiment_open_train(mixt__experiment *e);
/** Checksums by which the parts that are open, training and validation, are known again; computed once. */
const uint64_t *mixt__experiment_sums(mixt__experiment *e);
/** Another part of the same data ("train", "val", "test"). Belongs to the experiment. */
mixt_status mixt__experiment_data(mixt__experiment *e, const char *split, mixt_data **data);
/** The same, but the caller's to close; of an experiment only the configuration need be known. */
mixt_status mixt__experiment_part(const mixt__experiment *e, const char *split, mixt_data **data);
/** Whether the data has files of its own for a part, or names for it in its file. Opens it, and closes it again. */
mixt_status mixt__experiment_has_part(const mixt__experiment *e, const char *split, bool *has);
/** Fills `sizes` from the configuration alone: for commands that open a model without its data. */
mixt_status mixt__experiment_sizes(mixt__experiment *e);
/** Recordings to train on whose texts the model has no outputs enough for, one every `stride` frames; none of other
 *  data. */
mixt_status mixt__experiment_ctc_too_short(const mixt__experiment *e, mixt__ctc_too_short *too_short, int64_t *stride);
/** Puts the format of train.activations into a policy that says none. */
mixt_status mixt__experiment_keep(const mixt__experiment *e, mixt_policy *policy);
/** Fills what a policy may decide, loss scaling and clipping, from the configuration. */
void mixt__experiment_settings(mixt__experiment *e, mixt_trainer_options *options);
void mixt__experiment_close(mixt__experiment *e);

#endif
