/* The trainer: a model compiled for a batch shape and a policy, its parameters, and the step.
 *
 * What it is made of is in train/trainer_inside.h, which files of this folder alone include; all others ask through the
 * functions here. trainer.c compiles and owns memory, access.c answers those above, step.c runs steps, evaluate.c
 * evaluation, predict.c the model without its loss, manual.c offers the parts of a step by hand.
 */
#ifndef MIXT_TRAIN_TRAINER_H
#define MIXT_TRAIN_TRAINER_H

#include "mixt/train.h"
#include "runtime/compile.h"
#include "train/feed.h"
#include "train/dist/join.h"
#include "model/model.h"

#include <signal.h>

/** Whether a graph learns preferences: its metrics have the sum of margins too. */
static inline bool mixt__trainer_prefers(const mixt__graph *graph)
{
    return mixt__shape_count(&graph->values[graph->metrics].shape) == MIXT_PASS_FIGURES;
}

typedef struct mixt__prefetch mixt__prefetch;

enum {
    MIXT_PREFETCH_DEPTH = 3,   // batches made ahead
    MIXT_RNG_STREAM_PASS = 2,  // random numbers of one forward pass
    MIXT_PASSES_MAX = 1 << 20, // of an update
    MIXT_LENGTHS_MAX = MIXT_FEED_SHAPES,
};

typedef struct mixt__trainer_settings {
    mixt__policy policy; // borrowed: the caller keeps its rules alive
    mixt__optimizer optimizer;
    mixt__schedule schedule;
    mixt_policy_settings decided; // loss scaling ("none", "dynamic" or "fixed") and clipping (0: none): each is said
    mixt__scaling scaling;        // the same for a step
    mixt_dtype moments;           // format that they are kept in
    float weight_decay;
    int64_t batch, eval_batch, accumulate; // of a pass, of a pass of evaluation; passes of an update
    int64_t split;                         // passes of a part that share a batch of the data
    int64_t ranks;                         // parts of an update that are made apart: see train/dist/ranks.h
    uint64_t seed;
    bool no_fusion;
    size_t recompute_budget;                       // bytes of activations; 0: no limit
    const char *freeze, *lr_groups, *decay_groups; // lists of globs, borrowed; NULL: none
    mixt_dtype frozen;                             // see mixt__freeze
    int64_t inject_overflow;
    const char *faults;      // for tests, borrowed; NULL: none
    bool no_integrity;       // whether state is as it was written is not checked: see train/integrity.h
    int64_t integrity_every; // updates between checks of what an update does not read
} mixt__trainer_settings;

/** A teacher in the training step, beside what the model says of it: see model/teacher.c. */
typedef struct mixt__trainer_teacher {
    const mixt__policy *policy;                            // that it computes in, borrowed; NULL: there is no teacher
    mixt_status (*load)(void *user, mixt__params *params); // gives its parameters their values
    void *user;
    char sum[24]; // by which it is known again
} mixt__trainer_teacher;

/** Hears of each pass of an instrumented step. @param index of a pass of the update */
typedef mixt_status mixt__passed(void *user, int64_t index);

/** A trainer that is not compiled yet. @param settings copied. NULL: memory ended */
mixt__trainer *mixt__trainer_new(const mixt__model *model, mixt__device *device,
                                 const mixt__trainer_settings *settings);
/** NULL is allowed. */
void mixt__trainer_free(mixt__trainer *t);
/** Another trainer with the same model, settings, lengths and place among ranks, compiled, to plan with: without faults
 *  and without a group. For mixt__trainer_free. */
mixt_status mixt__trainer_new_planner(const mixt__trainer *t, mixt__trainer **planner);

/* ---- what it is ---- */

const mixt__trainer_settings *mixt__trainer_settings_of(const mixt__trainer *t);
const mixt__model *mixt__trainer_model(const mixt__trainer *t);
mixt__device *mixt__trainer_device(const mixt__trainer *t);
/** The compiled training step, of several lengths that of the longest; NULL: it is not compiled. */
mixt__executable *mixt__trainer_compiled(const mixt__trainer *t);
/** The batch that it is compiled for. */
const mixt__batch_spec *mixt__trainer_spec(const mixt__trainer *t);
/** Its parameters; NULL: it is not compiled. */
mixt__params *mixt__trainer_params(const mixt__trainer *t);
/** What is computed again in the newest step that was compiled, or could not be. */
const mixt__recompute_choice *mixt__trainer_recompute(const mixt__trainer *t);
/** Whether it has the memory of its step. */
bool mixt__trainer_has_memory(const mixt__trainer *t);
/** Whether evaluation and prediction have theirs. */
bool mixt__trainer_has_evaluation(const mixt__trainer *t);
bool mixt__trainer_has_prediction(const mixt__trainer *t);
/** A change of precision or a restore failed half way: nothing can run any more. */
bool mixt__trainer_is_broken(const mixt__trainer *t);
/** Gradients made by hand wait to be applied. */
bool mixt__trainer_has_hand_gradients(const mixt__trainer *t);

/* ---- what it is told ---- */

/** Other settings, which count from the next compile on; what they point to is borrowed. */
void mixt__trainer_set(mixt__trainer *t, const mixt__trainer_settings *settings);
/** Samples of a batch of evaluation, before that is planned. */
void mixt__trainer_set_eval_batch(mixt__trainer *t, int64_t batch);
/** Bytes of activations, 0: no limit; counts from the next compile on. */
void mixt__trainer_set_recompute(mixt__trainer *t, size_t budget);
/** Updates from here on are made with so many times the learning rate that is set, to see what would come of it; 1:
 * with that. It is no setting: checkpoints do not have it. */
void mixt__trainer_try_rate(mixt__trainer *t, double factor);
/** Before compile. */
void mixt__trainer_set_teacher(mixt__trainer *t, const mixt__trainer_teacher *teacher);
/** Who hears of the passes of instrumented steps; NULL: nobody does. */
void mixt__trainer_set_passed(mixt__trainer *t, mixt__passed *passed, void *user);

/* ---- where it is ---- */

/** Updates that were tried. */
int64_t mixt__trainer_steps(const mixt__trainer *t);
/** The next batch of the data, in passes. */
int64_t mixt__trainer_position(const mixt__trainer *t);
/** Goes on from another batch of the data. Nothing else changes. */
void mixt__trainer_seek(mixt__trainer *t, int64_t position);
/** The newest update's batches once more, with the same random numbers: where it was skipped. */
void mixt__trainer_seek_again(mixt__trainer *t);
/** Passes of an epoch; 0: no step from data was made. */
int64_t mixt__trainer_epoch_passes(const mixt__trainer *t);
/** Forward passes so far: by their number the next one draws its random numbers. */
int64_t mixt__trainer_runs(const mixt__trainer *t);
/** The control block as of the newest step whose result was read, or the state that was restored. */
const mixt__control *mixt__trainer_control(const mixt__trainer *t);
/** As it is in the device's memory now; waits for the steps issued so far. */
mixt_status mixt__trainer_fetch_control(const mixt__trainer *t, mixt__control *control);
/** The loss scale of a state that was made with one, for settings without. */
mixt_status mixt__trainer_drop_scale(mixt__trainer *t);

/* ---- for who runs or times its parts ---- */

/** Loss, hits and targets of each pass of a step whose result was read, the newest or the one before. */
mixt_status mixt__trainer_pass_figures(const mixt__trainer *t, int64_t step,
                                       const float (**figures)[MIXT_PASS_FIGURES]);
/** A key of random numbers where the device reads it, for a pass that is only timed. */
const uint64_t *mixt__trainer_any_key(const mixt__trainer *t);
/** The passes that end a step. */
const mixt__update *mixt__trainer_update(const mixt__trainer *t);

/* ---- compiling and memory ---- */

/** Shapes of a batch of this data, as long as its longest. */
mixt__batch_spec mixt__trainer_spec_of(const mixt_data *data, int64_t batch);
mixt__batch_spec mixt__trainer_spec_as(const mixt_data_info *info, int64_t batch);

/** Compiles the training step and lays out memory, taking none; again after the policy changed. */
mixt_status mixt__trainer_compile(mixt__trainer *t, const mixt__batch_spec *spec);
/** The same for batches of this data, in all its lengths. */
mixt_status mixt__trainer_compile_data(mixt__trainer *t, const mixt_data *data);
/** The training step once more, not in the trainer's place. @param instrument values to look at; NULL: none */
mixt_status mixt__trainer_compile_step(mixt__trainer *t, const mixt__instrument *instrument,
                                       mixt__executable **executable);
/** The same for another shape of batches. */
mixt_status mixt__trainer_compile_shape(mixt__trainer *t, const mixt__batch_spec *spec,
                                        const mixt__instrument *instrument, mixt__executable **executable);
/** Takes memory for the weights and draws the initial ones: all that evaluation and prediction need beside their own.
 *  Needs compile; does nothing the second time. */
mixt_status mixt__trainer_take_weights(mixt__trainer *t);
/** Takes all memory of the step, that of the weights too where it is still to be taken. Needs compile; does nothing the
 *  second time. */
mixt_status mixt__trainer_allocate(mixt__trainer *t);
/** Bytes of the weights, in the trainer's own memory. Needs compile. */
size_t mixt__trainer_weight_bytes(const mixt__trainer *t);
/** Whether the weights have values. */
bool mixt__trainer_has_weights(const mixt__trainer *t);
/** What a loss scale becomes when another policy goes on from it: it stays where it was `scaled` before and is dynamic
 *  now, within the limits of now; else it begins. */
void mixt__trainer_carry_scale(const mixt__trainer *t, bool scaled, mixt__control *control);
/** Recompiles for another policy (which the caller has put into settings); weights and moments stay. */
mixt_status mixt__trainer_recompile(mixt__trainer *t);
/** Ends the threads that make batches; the next step from data starts them again, at the batch that it is at. */
void mixt__trainer_stop_batches(mixt__trainer *t);
/** Forgets the compiled evaluation and prediction; the next one compiles again. */
void mixt__trainer_free_eval(mixt__trainer *t);

/** Compiles where that is still to be done, takes memory, and compiles anew where the coming update computes something
 *  else, as where a fault begins that a test injects. A step does so first; who compiles something beside it does so
 *  before. @param data NULL: the trainer is compiled and the caller brings batches */
mixt_status mixt__trainer_ready(mixt__trainer *t, const mixt_data *data);
mixt_status mixt__trainer_step(mixt__trainer *t, const mixt_data *data, mixt_step *result);
/** The format in which the compiled step reads the first input: that of the data, or a lower one if only that is
 *  needed. */
mixt_dtype mixt__trainer_fed_dtype(const mixt__trainer *t);
/** The same for all inputs: a batch as it is fed. */
mixt__batch_spec mixt__trainer_fed_spec(const mixt__trainer *t);
/** The same on a batch in memory (accumulate × batch samples, one micro-step's after the other).
 *  @param resident the batch lies in the device's memory, its inputs in the format in which they are fed, and does not
 *  change before the step has run */
mixt_status mixt__trainer_step_on(mixt__trainer *t, const void *input, const void *target, bool resident,
                                  mixt_step *result);
/** The result of a step, the newest or the one before; waits until that one has run, while the newest goes on. */
mixt_status mixt__trainer_result(mixt__trainer *t, int64_t step, mixt_step *result);
/** From the next step on the statistics of its gradients are kept for the host. Needs memory of the step. */
mixt_status mixt__trainer_keep_stats(mixt__trainer *t);
/** Bytes that keeping them takes of the host's memory. Needs compile. */
size_t mixt__trainer_kept_stats_bytes(const mixt__trainer *t);
/** Those of a step whose result is there, by segment; valid until the next but one is issued. They are of the gradients
 *  as they were added up, scaled with the loss. */
mixt_status mixt__trainer_stats_of(mixt__trainer *t, int64_t step, const mixt__segment_stats **stats);
/** Brings `control_copy` up to date; waits for the steps issued so far. */
mixt_status mixt__trainer_read_control(mixt__trainer *t);
/** Memory of one thing beside the step: in the host's, and in a device's own. */
typedef struct mixt__trainer_bytes {
    size_t host, device;
} mixt__trainer_bytes;
/** Bytes that the threads which make batches of `data` will take. Needs compile. */
size_t mixt__trainer_batches_ahead(const mixt__trainer *t, const mixt_data *data);
/** Plans evaluation, taking no memory: in batches of settings.eval_batch, which is halved until there is room beside
 *  training. Needs compile. */
mixt_status mixt__trainer_plan_evaluation(mixt__trainer *t, const mixt_data *data);
/** Plans it beside what is held by now, then takes its memory and, before that, the weights'. */
mixt_status mixt__trainer_prepare_evaluation(mixt__trainer *t, const mixt_data *data);
/** What evaluation takes, as it is planned; zeros: it is not. */
mixt__trainer_bytes mixt__trainer_evaluation_bytes(const mixt__trainer *t);
/** @param interrupt set by a signal's handler: evaluation ends after the current batch, with result->count -1; NULL:
 *  nobody asks */
mixt_status mixt__trainer_evaluate(mixt__trainer *t, const mixt_data *data, const volatile sig_atomic_t *interrupt,
                                   mixt_evaluation *result);
/** The same by all ranks of a group together, each in its turn a batch: figures are added in the order of batches, to
 *  the bits of one process. */
mixt_status mixt__trainer_evaluate_ranks(mixt__trainer *t, const mixt_data *data, mixt_evaluation *result);
/** Some samples of a set: `count` blocks of `size`, their beginnings `stride` apart, from sample `first` on. */
typedef struct mixt__trainer_blocks {
    int64_t first, size, stride, count;
} mixt__trainer_blocks;
/** The same over these samples alone, which are the same ones whatever batch there is room for. */
mixt_status mixt__trainer_evaluate_blocks(mixt__trainer *t, const mixt_data *data, const mixt__trainer_blocks *blocks,
                                          mixt_evaluation *result);
mixt_memory mixt__trainer_memory(const mixt__trainer *t);
/** The node after which a parameter's gradient is complete; -1: it has none. */
int64_t mixt__trainer_last_writer(const mixt__graph *graph, int32_t param);

/** Outputs of the model a sample. Compiles what predicts. */
mixt_status mixt__trainer_outputs(mixt__trainer *t, int64_t *outputs);
/** Outputs for `count` samples in host memory. */
mixt_status mixt__trainer_predict(mixt__trainer *t, const void *input, int64_t count, float *output);
/** Plans prediction, taking no memory. Needs compile. */
mixt_status mixt__trainer_plan_prediction(mixt__trainer *t);
/** What prediction takes, as it is planned; zeros: it is not. */
mixt__trainer_bytes mixt__trainer_prediction_bytes(const mixt__trainer *t);
/** Forgets what predicts; the next prediction compiles again. */
void mixt__trainer_free_predict(mixt__trainer *t);

mixt_status mixt__trainer_backward(mixt__trainer *t, const void *input, const void *target, float scale, double *loss);
mixt_status mixt__trainer_unscale(mixt__trainer *t, float scale, bool *finite);
mixt_status mixt__trainer_clip(mixt__trainer *t, float limit, double *norm);
mixt_status mixt__trainer_apply(mixt__trainer *t, float lr);
mixt_status mixt__trainer_discard(mixt__trainer *t);
/** Whether gradients made by hand are waiting: else what lies in their memory means nothing. */
mixt_status mixt__trainer_need_gradients(const mixt__trainer *t);

/** Turns option words and zeroes into settings, defaults filled in. The policy is borrowed, and decides what loss_scale
 *  "auto" means. */
mixt_status mixt__trainer_settings_parse(const mixt_trainer_options *options, const mixt_policy *policy,
                                         mixt__trainer_settings *settings);

#endif
