/* What a trainer is made of, for the files of this folder alone; all others use train/trainer.h. */
#ifndef MIXT_TRAIN_TRAINER_INSIDE_H
#define MIXT_TRAIN_TRAINER_INSIDE_H

#include "train/frozen_file.h"
#include "train/integrity.h"
#include "train/dist/ranks.h"
#include "train/trainer.h"

/** Environment variables that change the bits of a step, as they were when it was compiled. */
typedef struct mixt__trainer_environment {
    const char *fusion; // "0" or "1"
    char *candidate;    // owned
} mixt__trainer_environment;

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
    mixt__length_steps steps, instrumented;
    mixt__executable *instrumented_whole; // the instrumented step of the longest
} mixt__trainer_lengths;

/** Steps whose layers are looked into: see train/instrument.h. */
typedef struct mixt__instrumented_layers {
    bool wanted;                    // memory for it is planned and taken with the step's
    bool running;                   // `instrumented` is such a step
    int64_t values;                 // that it looks at
    char *device;                   // where it leaves their statistics; NULL: not taken yet
    void *host[MIXT_STAGE_SLOTS];   // pinned: where those wait to be read, a slot for each of the feed's
    int64_t step[MIXT_STAGE_SLOTS]; // whose they are; 0: nobody's
} mixt__instrumented_layers;

struct mixt__trainer {
    mixt__model model;
    mixt__trainer_settings settings;
    mixt__trainer_environment environment;
    mixt__trainer_teacher teacher;
    mixt__device *device;
    mixt__batch_spec spec;
    mixt__executable *train, *eval;
    mixt__executable *instrumented; // the step with statistics of its values, in the memory of `train`; NULL: none; of
                                    // several lengths the one that ran last
    bool instrumenting;             // the next step runs that one: see train/instrument.h
    mixt__passed *passed;           // of an instrumented step: hears of each pass that has run; NULL: nobody does
    void *passed_user;
    mixt__instrumented_layers layers;
    mixt__trainer_lengths lengths;
    mixt__ranks ranks;
    mixt__recompute_choice recompute; // of the newest step that was compiled, or could not be
    mixt__params *params;
    mixt__frozen_file frozen_file; // of the newest save; all zeros: there was none
    mixt__control *control;        // device
    mixt__control control_copy;    // on the host, as of the newest step whose result was read
    mixt__feed feed;
    mixt__segment_stats *stats;
    mixt__segment_stats *kept_stats[MIXT_STAGE_SLOTS]; // those of the newest steps, pinned; NULL: nobody asks
    int32_t *backward_order;
    void *workspace; // of the update
    size_t workspace_bytes, allocated;
    mixt__update update;
    mixt__integrity integrity;
    float rate; // times the learning rate that updates are tried with; 1: as it is set
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
    struct mixt__faults *faults; // that tests let happen; NULL: none
    bool broken;                 // a change of precision or a restore failed half way: nothing can run any more
    bool hand_gradients;         // gradients of mixt__trainer_backward wait to be applied
};

/** What each step of the trainer and each shadow of it is compiled with, under a policy. */
mixt__compile_options mixt__trainer_compile_options(const mixt__trainer *t, const mixt__policy *policy);

/** The schedule of the coming update: `more` times what is set and tried. */
static inline void mixt__trainer_set_rate(mixt__trainer *t, float more)
{
    t->update.schedule = t->settings.schedule;
    t->update.schedule.lr *= t->rate * more;
    t->update.schedule.min_lr *= t->rate * more;
}

/** Whether the coming update runs the nodes that work beside it was planned for: instrumented steps and those with
 *  faults have others. */
static inline bool mixt__trainer_runs_planned(const mixt__trainer *t)
{
    return !t->instrumenting && !t->faults;
}

#endif
