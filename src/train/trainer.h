/* The trainer: a model compiled for a batch shape and a policy, its parameters, and the step.
 *
 * trainer.c compiles and owns memory, step.c runs steps, evaluate.c evaluation, predict.c the model without its loss,
 * manual.c offers the parts of a step by hand.
 */
#ifndef MIXT_TRAIN_TRAINER_H
#define MIXT_TRAIN_TRAINER_H

#include "mixt/train.h"
#include "runtime/compile.h"
#include "train/feed.h"
#include "train/ranks.h"
#include "model/model.h"

#include <signal.h>

typedef struct mixt__prefetch mixt__prefetch;
typedef struct mixt__faults mixt__faults; // train/faults.h

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
    mixt__scaling scaling;
    float weight_decay, clip_norm, clip_value;
    int64_t batch, eval_batch, accumulate; // of a pass, of a pass of evaluation; passes of an update
    int64_t split;                         // passes of a part that share a batch of the data
    int64_t ranks;                         // parts of an update that are made apart: see train/ranks.h
    uint64_t seed;
    bool no_fusion;
    size_t recompute_budget;                       // bytes of activations; 0: no limit
    const char *freeze, *lr_groups, *decay_groups; // lists of globs, borrowed; NULL: none
    int64_t inject_overflow;
    const char *faults; // for tests, borrowed; NULL: none
} mixt__trainer_settings;

/** Environment variables that change the bits of a step, as they were when it was compiled. */
typedef struct mixt__trainer_environment {
    const char *fusion; // "0" or "1"
    char *candidate;    // owned
} mixt__trainer_environment;

/** A teacher in the training step, beside what the model says of it: see model/teacher.c. */
typedef struct mixt__trainer_teacher {
    const mixt__policy *policy;                            // that it computes in, borrowed; NULL: there is no teacher
    mixt_status (*load)(void *user, mixt__params *params); // gives its parameters their values
    void *user;
    char sum[24]; // by which it is known again
} mixt__trainer_teacher;

/** Steps of all buckets of the data but the last, which is the trainer's own: see train/lengths.h. */
typedef struct mixt__length_steps {
    mixt__executable *step[MIXT_LENGTHS_MAX];
} mixt__length_steps;

typedef struct mixt__trainer_lengths {
    int count;                               // buckets; 0: all batches are as long as each other
    int now;                                 // the one that the coming pass is of
    bool fed;                                // batches come as long as their bucket
    int slots[MIXT_STAGE_SLOTS];             // buckets of the newest steps
    mixt__batch_spec spec[MIXT_LENGTHS_MAX]; // of each bucket
    mixt__length_steps steps, watched;
    mixt__executable *watched_whole; // the watched step of the longest
} mixt__trainer_lengths;

/** Steps whose layers are looked into: see train/watch.h. */
typedef struct mixt__layer_watch {
    bool wanted;                    // memory for it is planned and taken with the step's
    bool running;                   // `watched` is such a step
    int64_t values;                 // that it looks at
    char *device;                   // where it leaves their statistics; NULL: not taken yet
    void *host[MIXT_STAGE_SLOTS];   // pinned: where those wait to be read, a slot for each of the feed's
    int64_t step[MIXT_STAGE_SLOTS]; // whose they are; 0: nobody's
} mixt__layer_watch;

/** @param index of a pass of the update */
typedef mixt_status mixt__passed(void *user, int64_t index);

struct mixt__trainer {
    mixt__model model;
    mixt__trainer_settings settings;
    mixt__trainer_environment environment;
    mixt__trainer_teacher teacher;
    const mixt__backend *backend;
    mixt__batch_spec spec;
    mixt__executable *train, *eval;
    mixt__executable *watched; // the step with statistics of its values, in the memory of `train`; NULL: none; of
                               // several lengths the one that ran last
    bool watching;             // the next step runs that one: see train/watch.h
    mixt__passed *passed;      // of a watched step: hears of each pass that has run; NULL: nobody does
    void *passed_user;
    mixt__layer_watch layers;
    mixt__trainer_lengths lengths;
    mixt__ranks ranks;
    mixt__recompute_choice recompute; // of the newest step that was compiled, or could not be
    mixt__params *params;
    mixt__control *control;     // device
    mixt__control control_copy; // on the host, as of the newest step whose result was read
    mixt__feed feed;
    mixt__segment_stats *stats;
    mixt__segment_stats *kept_stats[MIXT_STAGE_SLOTS]; // those of the newest steps, pinned; NULL: nobody asks
    int32_t *backward_order;
    void *workspace; // of the update
    size_t workspace_bytes, allocated;
    mixt__update update;
    mixt__prefetch *prefetch;
    const mixt_data *prefetched;           // the set the prefetch thread reads
    int64_t batches_per_epoch, next_batch; // in passes
    int64_t attempts, runs;
    int64_t first_step;             // attempts when a checkpoint was restored or an update made by hand: steps up to
                                    // there have no results here
    mixt__batch_spec eval_spec;     // that `eval` is planned for
    void *eval_input, *eval_target; // host buffers of one evaluation batch
    char *eval_window;              // where evaluation gathers weights that ranks share out; NULL: they do not
    char *eval_gathered;            // the host's part of that, beside a device with memory of its own
    void *eval_device[2];           // the same on a device with memory of its own
    mixt__executable *predict;      // the model without its loss
    void *predict_input, *predict_output, *predict_device;
    char overflow_layer[128];
    mixt__faults *faults; // that tests let happen; NULL: none
    bool broken;          // a change of precision or a restore failed half way: nothing can run any more
    bool hand_gradients;  // gradients of mixt__trainer_backward wait to be applied
};

/** Shapes of a batch of this data, as long as its longest. */
mixt__batch_spec mixt__trainer_spec_of(const mixt_data *data, int64_t batch);
mixt__batch_spec mixt__trainer_spec_as(const mixt_data_info *info, int64_t batch);

/** Compiles the training step and lays out memory, taking none; again after the policy changed. */
mixt_status mixt__trainer_compile(mixt__trainer *t, const mixt__batch_spec *spec);
/** The same for batches of this data, in all its lengths. */
mixt_status mixt__trainer_compile_data(mixt__trainer *t, const mixt_data *data);
/** The training step once more, not in the trainer's place. @param watch values to look at; NULL: none */
mixt_status mixt__trainer_compile_step(mixt__trainer *t, const mixt__watch *watch, mixt__executable **executable);
/** The same for another shape of batches. */
mixt_status mixt__trainer_compile_shape(mixt__trainer *t, const mixt__batch_spec *spec, const mixt__watch *watch,
                                        mixt__executable **executable);
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
void mixt__trainer_free(mixt__trainer *t);
/** Ends the threads that make batches; the next step from data starts them again, at the batch that it is at. */
void mixt__trainer_stop_batches(mixt__trainer *t);
/** Forgets the compiled evaluation and prediction; the next one compiles again. */
void mixt__trainer_free_eval(mixt__trainer *t);

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
mixt_status mixt__trainer_evaluate_together(mixt__trainer *t, const mixt_data *data, mixt_evaluation *result);
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
