/* How do I train what a configuration describes? As a run: opened, trained with observers, kept in a directory,
 * resumed, evaluated.
 *
 *   mixt_run *run;
 *   if (mixt_run_open("digits.yaml", &run, .observer = watch) == MIXT_OK)
 *       mixt_run_train(run, NULL);
 *   mixt_run_close(run);
 *
 * Training tells its observers what happens; nothing else in it knows who listens. For each update they hear STEP, then
 * LAYERS where it was looked into, VALIDATION where one was due, then ROW where metrics are due; an ALERT follows the
 * STEP or LAYERS that it is about; CHECKPOINT when a save has ended, NOTE at any time, END last. All observers hear an
 * event in the order in which they were added before the next event comes; the run's own metrics file is the first of
 * them. Observers run in the thread that trains, which waits for them.
 */
#ifndef MIXT_RUN_H
#define MIXT_RUN_H

#include "mixt/config.h"
#include "mixt/monitor.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_run mixt_run;

/** Bytes in the host's memory, and in that of a GPU; on the CPU all are the host's. */
typedef struct mixt_bytes {
    size_t host, device;
} mixt_bytes;

/** What a run holds while it trains, by what it is for. Known before any of it is taken, but for the data and the
 *  graphs, which are there once the run is open. */
typedef struct mixt_run_memory {
    mixt_bytes step;        /**< the training step: mixt_memory.total of its trainer */
    mixt_bytes validation;  /**< activations, workspace and batch of validation; taken before the first update */
    mixt_bytes batches;     /**< batches made ahead by other threads, and results of updates */
    mixt_bytes checkpoints; /**< the copy of the state that is written while training goes on, and the room for saving
                                 the weights at the end */
    mixt_bytes snapshots;   /**< good states that auto.steer goes back to; 0 without */
    mixt_bytes data;        /**< data sets in memory, but for tokens */
    mixt_bytes tokens;      /**< tokens and texts in memory */
    mixt_bytes graphs;      /**< graphs, kernel calls, names, the configuration: what is small, and held already */
    mixt_bytes total;       /**< sum of the above */
    mixt_bytes allocated;   /**< measured when training ends; 0 before. Pinned host memory of a GPU's driver, where the
                                 batches and the checkpoint's copy lie, is not counted in it */
    mixt_bytes prediction;  /**< mixt_trainer_predict, in batches as large as validation's. Not in total: training does
                                 not predict */
    mixt_bytes weights;     /**< of step: what prediction or evaluation takes beside its own where nothing is trained */
    size_t mapped;          /**< files that are mapped: the system's page cache, which gives way. Not in total */
    int64_t eval_batch;     /**< samples in one pass of validation: train.eval_batch, or less where there is no room */
} mixt_run_memory;

/** One field of it, with words for people. */
typedef struct mixt_run_memory_part {
    const char *name; /**< "step", "validation", …, "total" */
    const char *text; /**< what that is, in a few words */
    mixt_bytes bytes;
} mixt_run_memory_part;

enum { MIXT_RUN_MEMORY_PARTS = 9 };

/** The parts of a run's memory in a fixed order; the last is the total of the others. */
MIXT_API void mixt_run_memory_parts(const mixt_run_memory *memory, mixt_run_memory_part parts[MIXT_RUN_MEMORY_PARTS]);

/** Figures of a run so far. NaN: not known. */
typedef struct mixt_run_result {
    int64_t steps, skipped, validations; /**< updates tried, of those skipped; validations */
    int64_t samples;                     /**< trained on */
    double loss, accuracy;               /**< of the last update */
    double val_loss, val_accuracy;       /**< of the last validation */
    double best_val_loss;                /**< of all validations */
    double seconds, step_seconds;        /**< in all; in updates alone, validation and logging left out */
    double samples_s;                    /**< a second of step_seconds */
    double energy;                       /**< joules of the device, validation included */
    bool stopped_early;                  /**< validation no longer improved */
    bool stopped;                        /**< an observer asked for it */
    bool diverged;                       /**< it ends worse than it began: `mixt train` has status 1 then */
    bool interrupted;                    /**< a signal ended it; only with mixt_run_options.signals */
    int signal;                          /**< the number of that signal, as SIGTERM; 0: none */
    int64_t checkpoints_lost;            /**< that could not be saved */
    int64_t val_step;                    /**< the update that the last validation followed; -1: none, or not known */
    int64_t best_step;                   /**< of the checkpoint with the best validation loss; -1: none */
    int64_t weights_step;                /**< of the weights in model.safetensors: `steps`, or best_step (see
                                              mixt_run_train) */
    int64_t decisions, rollbacks;        /**< that changed something; of those, that went back to a good state */
    mixt_memory memory;                  /**< of the step; known from the first update on */
    mixt_run_memory run_memory;          /**< of all of the run; known from the first update on */
} mixt_run_result;

/** One row of metrics: means over the updates since the row before. NaN: not known, or not there. */
typedef struct mixt_run_row {
    int64_t step, epoch; /**< the update and the pass over the data that it is of, both from 1 */
    int64_t skipped, memory;
    double loss, accuracy, lr, scale, grad_norm, samples_s;
    double val_loss, val_accuracy; /**< of a validation after this update */
    double time;                   /**< seconds since the run began, going on over a resume */
    double energy;                 /**< joules since the run began */
    double checkpoint_stall;       /**< seconds that training stood still for checkpoints since the last row */
    /** By format, of all numbers that the step makes or reads, 0 to 1: by their count, and by their bytes. Known from
     * its plan: the same until the policy changes. */
    double share_values[MIXT_DTYPE_COUNT], share_bytes[MIXT_DTYPE_COUNT];
    const char *overflow_layer; /**< the parameter whose gradient was not finite first; NULL: none */
    double margin, val_margin;  /**< of rewards, of this update and of a validation, where preferences are learned */
} mixt_run_row;

typedef enum mixt_event_kind {
    MIXT_EVENT_START,      /**< training begins: the directory is there */
    MIXT_EVENT_STEP,       /**< the result of one update */
    MIXT_EVENT_VALIDATION, /**< loss and accuracy over the validation part */
    MIXT_EVENT_ROW,        /**< a row of metrics */
    MIXT_EVENT_CHECKPOINT, /**< a save has ended: `text` is its folder, `status` how it went */
    MIXT_EVENT_NOTE,       /**< something that a user should know: `text`. Also while a run is opened */
    MIXT_EVENT_END,        /**< training is over; `status` says how */
    MIXT_EVENT_ALERT,      /**< the monitor found something that is not as it should be: `alert`, `text` */
    MIXT_EVENT_DECISION,   /**< the run does something differently from here on: `decision`, `text` */
    MIXT_EVENT_DIAGNOSIS,  /**< what made training go wrong was found: `diagnosis`, `text` */
    MIXT_EVENT_LAYERS,     /**< an update was looked into (watch.every): `layers` */
} mixt_event_kind;

/** What happened. Pointers are valid during the call only. */
typedef struct mixt_event {
    mixt_event_kind kind;
    const mixt_step *step; /**< the update; of other events the newest, whose number is 0 before the first */
    const mixt_evaluation *validation; /**< VALIDATION, else NULL */
    const mixt_run_row *row;           /**< ROW, else NULL */
    const mixt_alert *alert;           /**< ALERT, else NULL */
    const mixt_decision *decision;     /**< DECISION, else NULL */
    const mixt_diagnosis *diagnosis;   /**< DIAGNOSIS, else NULL */
    const mixt_layer_signals *layers;  /**< LAYERS, else NULL */
    const mixt_run_result *result;     /**< figures so far; never NULL */
    double time;                       /**< seconds since the run began, going on over a resume; 0 before START */
    const char *text;                  /**< NOTE, ALERT, DECISION, DIAGNOSIS, CHECKPOINT, else "" */
    bool warning;                      /**< NOTE: to be shown also where little is shown */
    mixt_status status;                /**< CHECKPOINT, END; else MIXT_OK */
} mixt_event;

/** Hears one event. A status other than MIXT_OK ends the run with it (set its text with mixt_fail). */
typedef mixt_status mixt_observer(void *user, mixt_run *run, const mixt_event *event);

/** Adds an observer; at most 16. */
MIXT_API mixt_status mixt_run_observe(mixt_run *run, mixt_observer *observer, void *user);

/* What an observer may ask for. One place acts on it: after the update that is under way (on a GPU that can be the one
 * after the update just heard of), before the next is begun. */

/** To end training there, as if it had come to its end: weights are saved, resuming goes on. */
MIXT_API void mixt_run_ask_stop(mixt_run *run);
MIXT_API void mixt_run_ask_validation(mixt_run *run);
MIXT_API void mixt_run_ask_checkpoint(mixt_run *run);
/** To go on under another policy, which is copied: see mixt_trainer_set_policy. The run's directory, its checkpoints
 * and its history (history.jsonl) follow. One that cannot be compiled for the model is told as a warning, and the run
 * goes on as it was. Loss scaling and clipping that the configuration had set stay. Of several ranks it is enough that
 * one asks: all take the policy at the same update; where ranks ask for different ones none is taken, with a warning.
 */
MIXT_API mixt_status mixt_run_ask_policy(mixt_run *run, const mixt_policy *policy);
/** To do what a decision says, which is copied: the same that auto.steer does. It becomes a row of events.jsonl with
 * its evidence, a checkpoint follows, and a replay (auto.replay) does it too. `step` is filled in by the run; `back` of
 * 0 or above goes back to the last good state first, where auto.steer keeps one. SCALE, CLIP, LR and MEMORY set `key`
 * of the configuration to `to`, over what the configuration said. At most 8 wait at a time. Of several ranks all must
 * ask for the same after the same update: else the run ends and says who did not. */
MIXT_API mixt_status mixt_run_ask_decision(mixt_run *run, const mixt_decision *decision);

/** How to open a run. */
typedef struct mixt_run_options {
    size_t struct_size;
    const char *const *settings; /**< "key=value" that win over the file, ended by NULL; NULL: none */
    const char *allow;           /**< resume: keys, separated by commas, that may differ from the run's; see there */
    int64_t before;          /**< resume: go on from the newest checkpoint that was made before this update, or from the
                                beginning          where none was, to look at the update (mixt_run_advance); such a run is not
                                trained.          Default 0:          the newest checkpoint */
    mixt_observer *observer; /**< the first one; also hears NOTEs while the run is opened */
    void *user;              /**< for it */
    bool signals; /**< SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 end training after the update under way, with a
                     checkpoint (mixt_run_result.signal says which); a second SIGINT or SIGTERM goes to the handler
                     that was there before, and kills where there was none. Those that were
                     ignored before stay so. SIGPIPE and SIGXFSZ are ignored meanwhile */
    bool ranks;   /**< where a launcher (mpirun, srun) has started several processes they train the run together, as
                     ranks: see mixt/ranks.h and the keys dist.*. The run's directory is written by rank 0, checkpoints
                     by all; all ranks return the same status. Default: every process trains a run of its own */
    int64_t plan_ranks; /**< plan the run as one of so many ranks that a launcher would start: its memory, what it
                           sends. It cannot be trained. dist.ranks must not say another number. Default 0: not */
    mixt_progress_fn *progress; /**< hears, with the same `user`, of a text that is tokenised; default NULL: nobody */
} mixt_run_options;
MIXT_API void mixt_run_options_default(mixt_run_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_run_options .struct_size = sizeof(mixt_run_options)

/**
 * Opens data and model and compiles the training step; large memory is not taken yet and nothing is written.
 * @param path a YAML file; `mixt help config` shows the keys.
 * @param run set to NULL on failure; close it with mixt_run_close.
 */
MIXT_API mixt_status mixt_run_open_with(const char *path, const mixt_run_options *options, mixt_run **run);
/** The same from a configuration in memory, which is copied. */
MIXT_API mixt_status mixt_run_open_config(const mixt_config *config, const mixt_run_options *options, mixt_run **run);
/**
 * Opens the run of a directory where its newest whole checkpoint left it; mixt_run_train goes on with the same bits as
 * if it had never stopped. Settings may change how long it trains, how often it logs, validates and saves, where it
 * goes on (out), and with other bits the device and threads. Other keys are refused, with old and new values, unless
 * `allow` names them: "precision" lets the run go on under another policy, "train.lr,train.clip" with other numbers of
 * the update from the next one on. The run's history (history.jsonl) says so.
 */
MIXT_API mixt_status mixt_run_resume_with(const char *folder, const mixt_run_options *options, mixt_run **run);
/**
 * Opens the run of a directory with its weights, to evaluate or to predict. Its data is opened when a part of it is
 * asked for (mixt_run_data), not before; a run of a mixt that did not write inputs.json needs it at once.
 * @param weights "final", "best", "last", or the number of a checkpoint.
 */
MIXT_API mixt_status mixt_run_load_with(const char *folder, const char *weights, const mixt_run_options *options,
                                        mixt_run **run);
#ifndef __cplusplus
#define mixt_run_open(path, run, ...) mixt_run_open_with((path), MIXT_OPTIONS_AT(mixt_run_options, __VA_ARGS__), (run))
#define mixt_run_resume(folder, run, ...)                                                                              \
    mixt_run_resume_with((folder), MIXT_OPTIONS_AT(mixt_run_options, __VA_ARGS__), (run))
#define mixt_run_load(folder, weights, run, ...)                                                                       \
    mixt_run_load_with((folder), (weights), MIXT_OPTIONS_AT(mixt_run_options, __VA_ARGS__), (run))
#endif
/** NULL is allowed. */
MIXT_API void mixt_run_close(mixt_run *run);

/** Trains to the end of the configuration, to an early stop, or until someone asks to stop; then saves the weights as
 *  model.safetensors in the run's directory, which it makes: those of the last update, with train.early_stop those of the
 *  best validation. The best and the last state lie there as checkpoints. result may be NULL; it is filled also when
 *  training fails. */
MIXT_API mixt_status mixt_run_train(mixt_run *run, mixt_run_result *result);
/** Makes updates up to number `step`, counted from the run's beginning, with the bits that training makes them with, in
 *  the policy of its phases; tells and writes nothing. The next update is then step + 1: to look at it
 *  (mixt_debug_step) from a run that was opened `before` it, or from its configuration. Not for a run that has been
 *  trained; fails where more updates than that are made already. */
MIXT_API mixt_status mixt_run_advance(mixt_run *run, int64_t step);
/** What it will hold while it trains, by part; takes none of it. Of a run with phases: in the one that it is compiled
 * for. Validation is planned for that, in smaller batches
 * than train.eval_batch where there is no room for those. */
MIXT_API mixt_status mixt_run_plan_memory(mixt_run *run, mixt_run_memory *memory);
/** A phase of a run, see mixt/policy.h: updates made under a policy of its own. */
typedef struct mixt_run_phase {
    const char *name;       /**< belongs to the run */
    int64_t first, last;    /**< its updates, from 1; last below first: the run ends before it */
    mixt_run_memory memory; /**< what the run holds in it, planned. The run's memory is that of the largest */
} mixt_run_phase;

/** Number of its phases; 0: its policy is the same throughout. A run goes from one to the next between two updates: a
 *  function of the update's number alone, the same after a resume. Weights, moments and the place in the data stay to
 *  the bit; of the loss scale see mixt_trainer_set_policy. A row of events.jsonl (kind "decision", action "phase") says
 *  when. */
MIXT_API int64_t mixt_run_phases(const mixt_run *run);
/** @param index from 0. @param phase receives it. */
MIXT_API mixt_status mixt_run_get_phase(const mixt_run *run, int64_t index, mixt_run_phase *phase);
/** Compiles the run for one of its phases, so that its trainer, its plan and its memory can be looked at; before
 *  training, which begins with the first all the same. @param index from 0. */
MIXT_API mixt_status mixt_run_plan_phase(mixt_run *run, int64_t index);
/** A length that batches of training are padded to, and the step that is compiled for it: see data.buckets. */
typedef struct mixt_run_bucket {
    const char *names[2]; /**< arrays whose length it is, "source" and "target"; NULL: there is one, or none. Belong to
                               the run */
    int64_t lengths[2];   /**< of those */
    int64_t samples;      /**< of the training part that are no longer, and longer than the bucket before */
    int64_t updates;      /**< of an epoch, in every epoch as many */
    size_t activations;   /**< bytes of its step. All steps share those of the largest, which are mixt_memory's */
    size_t workspace;     /**< the same */
} mixt_run_bucket;
/** Lengths that the run pads batches of training to; 0: to one. */
MIXT_API int64_t mixt_run_buckets(const mixt_run *run);
/** @param index from 0, the shortest first. @param bucket receives it. */
MIXT_API mixt_status mixt_run_get_bucket(const mixt_run *run, int64_t index, mixt_run_bucket *bucket);
/** Share of the elements of arrays with lengths that is padding, 0 to 1; an error where there is one length.
 *  @param without if all were padded to the longest. @param with as it is */
MIXT_API mixt_status mixt_run_padding(const mixt_run *run, double *without, double *with);
/** Loss and accuracy over a part of the data, "train", "val" or "test". */
MIXT_API mixt_status mixt_run_evaluate(mixt_run *run, const char *split, mixt_evaluation *result);

/** What a run is. Texts belong to the run. */
typedef struct mixt_run_info {
    const char *folder;     /**< its directory; "" before it has one */
    const char *checkpoint; /**< the folder of the checkpoint that it goes on from; "": none */
    int64_t total_steps;    /**< updates that it will make in all */
    int64_t steps_per_epoch, epochs;
    int rank, ranks;          /**< of this process, and how many train the run together; 0 and 1: it is alone */
    const char *item;         /**< what is counted a second: "samples" or "tokens" */
    int64_t items_per_sample; /**< 1, or tokens in a sample */
    bool scaling;             /**< the loss is scaled */
} mixt_run_info;
MIXT_API mixt_run_info mixt_run_describe(const mixt_run *run);
MIXT_API const mixt_config *mixt_run_config(const mixt_run *run);

enum { MIXT_SUMMARY_LINES = 5 };

/** What a run will do, known as soon as it is open. Pointers belong to the run; those of `lines` until it is asked for
 *  its next summary. */
typedef struct mixt_summary {
    const mixt_data_info *train, *val; /**< samples, classes, shape and normalisation of each part; val NULL: none */
    const char *model;                 /**< of the zoo */
    mixt_loss loss;
    const char *teacher;            /**< what it learns from beside the labels; "": nothing */
    int64_t parameters, frozen;     /**< numbers in all; of those, numbers that stay as they are */
    const char *policy;             /**< name or file, as it was given */
    double share[MIXT_DTYPE_COUNT]; /**< of the matrix work of a step that is multiplied in this format, 0 to 1 */
    double loss_scale;              /**< that a new run begins with; 0: the loss is not scaled */
    bool scale_moves;               /**< the loss scale is dynamic */
    int64_t lengths;                /**< that batches of training are padded to; 0: one */
    const char *device;             /**< "cpu" or "cuda" */
    mixt_memory memory;             /**< of the step */
    mixt_run_memory run_memory;     /**< of all of the run, but for prediction */
    /** The same for people, each behind a word for what it speaks of. Training tells them as NOTEs before START, and
     *  behind them, as NOTEs with `warning`, settings that cannot be meant: a warm-up longer than the run, … */
    const char *lines[MIXT_SUMMARY_LINES];
} mixt_summary;
/** Of a run that was loaded without its data, the data is opened for it. Validation is planned for it, as
 * mixt_run_plan_memory does. */
MIXT_API mixt_status mixt_run_summary(mixt_run *run, mixt_summary *summary);

/** Its trainer, to step by hand, look at parameters or predict; it stays the run's. */
MIXT_API mixt_trainer *mixt_run_trainer(mixt_run *run);
/** What its samples are like: shape, normalisation, classes (mixt_data_describe), for mixt_inputs_open; it stays the
 *  run's. Of a run that mixt_run_load opened it comes from the run's directory and has no samples to read: the data
 *  that it was trained on is not looked at, and may be gone. */
MIXT_API const mixt_data *mixt_run_facts(const mixt_run *run);
/** A part of its data; it stays the run's. MIXT_ERROR_UNSUPPORTED where there is no such part. A run that mixt_run_load
 *  opened looks for its data only now; samples are normalised as in training, and a NOTE warns where they are not those
 *  that it was trained on. */
MIXT_API mixt_status mixt_run_data(mixt_run *run, const char *split, mixt_data **data);
/** The part to judge a model by on data of which it has learned nothing: of data that has parts of its own "test", else
 *  "val"; else "all", of which no share is held out.
 *  @param split receives the name, a constant. */
MIXT_API mixt_status mixt_run_part(const mixt_run *run, const char **split);

/** The configuration of a directory's run, with the policy that lies beside it. */
MIXT_API mixt_status mixt_run_folder_config(const char *folder, mixt_config **config);
/** The file with a run's weights: see mixt_run_load_with. A checkpoint is checked whole. Fails where the final ones are
 *  asked for and training is not over. @param path receives its name, for mixt_free; NULL on failure. */
MIXT_API mixt_status mixt_run_folder_weights(const char *folder, const char *weights, char **path);

#ifdef __cplusplus
}
#endif
#endif
