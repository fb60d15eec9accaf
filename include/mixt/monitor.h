/* Is training going well, what is to be done when it is not, and what was to blame?
 *
 *   mixt_monitor *monitor;
 *   mixt_alert alerts[MIXT_ALERTS_MAX];
 *   mixt_monitor_new(NULL, &monitor);
 *   for (…) { // every update
 *       int n = mixt_monitor_step(monitor, &signals, alerts);
 *       …
 *   }
 *   mixt_monitor_free(monitor);
 *
 * The monitor raises alerts, the controller makes decisions of them, and a diagnosis finds the cause by computing the
 * updates again. A run (mixt/run.h) has all three of its own, writes what they say to events.jsonl and tells observers;
 * this header is for those who make their own loop, and for what an alert, a decision and a diagnosis are.
 */
#ifndef MIXT_MONITOR_H
#define MIXT_MONITOR_H

#include "mixt/judge.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the monitor: what is wrong ----
 *
 * What is unusual is judged by median and deviation of the newest updates, of the logarithm of losses, norms and times:
 * a net that learns fast, warms up or follows a schedule is not blamed for it. Limits that a user sets hold beside
 * that.
 */

typedef struct mixt_monitor mixt_monitor;

#define MIXT_CAUSE_LIST(X)                                                                                             \
    X(LOSS_ANOMALY, "loss_anomaly")         /* a loss that is not finite, stands out, or rises for good */             \
    X(GRADIENT_ANOMALY, "gradient_anomaly") /* a norm that stands out, is above or below its limit */                  \
    X(MEMORY_WARNING, "memory_warning")     /* more of the memory is in use than the limit */                          \
    X(OVERFLOW, "overflow")                 /* updates skipped: gradients that were not finite */                      \
    X(UNDERFLOW, "underflow")               /* numbers flushed to zero */                                              \
    X(SCALE_COLLAPSE, "scale_collapse")     /* the loss scale fell to where it is of no use */                         \
    X(HARDWARE, "hardware")                 /* the same computation gave other bits */                                 \
    X(PRECISION, "precision")               /* FP32 does not have the problem */                                       \
    X(DATA, "data")                         /* FP32 has it too */                                                      \
    X(STALL, "stall")                       /* an update, or all of them, took much longer than usual */               \
    X(OPTIMIZER, "optimizer")               /* a learning rate that is too high */

typedef enum mixt_cause {
#define MIXT_CAUSE_ENUM(name, text) MIXT_CAUSE_##name,
    MIXT_CAUSE_LIST(MIXT_CAUSE_ENUM)
#undef MIXT_CAUSE_ENUM
        MIXT_CAUSE_COUNT
} mixt_cause;

/** "loss_anomaly", …; "none" for anything else. */
MIXT_API const char *mixt_cause_name(mixt_cause cause);
/** What to do about it, in a sentence; "" for anything else. */
MIXT_API const char *mixt_cause_remedy(mixt_cause cause);

typedef enum mixt_severity {
    MIXT_SEVERITY_INFO,     /**< worth a row in the record */
    MIXT_SEVERITY_WARNING,  /**< worth a look */
    MIXT_SEVERITY_CRITICAL, /**< training is being lost */
} mixt_severity;

/** "info", "warning", "critical". */
MIXT_API const char *mixt_severity_name(mixt_severity severity);

/** One thing that is not as it should be. Its texts belong to the monitor until the function that found it is called
 *  again; those of an event until all have heard it. */
typedef struct mixt_alert {
    int64_t step; /**< the update */
    mixt_severity severity;
    mixt_cause cause;
    const char *layer; /**< parameter or layer at fault; "": not known */
    double value;      /**< what was found */
    double usual;      /**< the median of the updates before; NaN: not judged by it */
    double deviations; /**< how far off that is; NaN: not judged by it */
    double limit;      /**< that was passed; NaN: none */
    int64_t silenced;  /**< alerts of this cause that were held back since the last one */
    const char *text;  /**< all of it, for people */
} mixt_alert;

/** What the monitor holds figures against. */
typedef struct mixt_monitor_options {
    size_t struct_size;
    int64_t window;       /**< updates that "usual" is found from, 10 to 1024 */
    double loss_sigma;    /**< deviations above the usual loss that are too many; 0: not judged */
    double grad_sigma;    /**< the same of the gradient's norm */
    double grad_norm_max; /**< norm above which an alert is raised, once; 0: none */
    double grad_norm_min; /**< norm below which one is raised when it stays there; 0: none */
    double memory_warn;   /**< share of the memory that may be in use, 0 to 1; 0: not judged */
    int64_t cooldown;     /**< updates between two alerts of one cause, unless the second is worse; twice as many
                               after each that follows at once */
    double scale_floor;   /**< loss scale at which scaling has given up; 0: not judged */
} mixt_monitor_options;
MIXT_API void mixt_monitor_options_default(mixt_monitor_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_monitor_options                                                                             \
    .struct_size = sizeof(mixt_monitor_options), .window = 100, .loss_sigma = 6, .grad_sigma = 8,                      \
    .grad_norm_max = 100, .grad_norm_min = 0.001, .memory_warn = 0.9, .cooldown = 100, .scale_floor = 1

/** Figures of one update, as mixt_step has them, and of the machine. NaN: not known. */
typedef struct mixt_signals {
    int64_t step;
    double loss, grad_norm, lr, scale;
    double seconds;             /**< that the update took */
    double memory_used;         /**< bytes in use, and … */
    double memory_total;        /**< … there in all; judged whenever both are known */
    bool skipped;               /**< a gradient was not finite: nothing was changed */
    bool scaling;               /**< the loss is scaled, and the scale moves */
    const char *overflow_layer; /**< of a skipped update; NULL: not known */
} mixt_signals;

/** @param options NULL: the defaults. @param monitor set to NULL on failure. */
MIXT_API mixt_status mixt_monitor_new(const mixt_monitor_options *options, mixt_monitor **monitor);
/** NULL is allowed. */
MIXT_API void mixt_monitor_free(mixt_monitor *monitor);

/* ---- layers: looked at every now and then ---- */

/** Statistics of one tensor, as it lies in memory. NaN: not known. */
typedef struct mixt_tensor_signal {
    mixt_dtype dtype;         /**< its format; MIXT_DTYPE_NONE: it was not looked at, the rest means nothing */
    double amax, rms;         /**< largest magnitude and root of the mean square, over what is finite */
    double zero, nonfinite;   /**< shares of its numbers, 0 to 1 */
    double margin;            /**< powers of two from amax to the largest number of its format; infinity: all are 0 */
    double flushed;           /**< share that rounding to its format made 0, judged by how many lie just above that; 0
                                   but in FP16: other formats reach down to 1e-38 */
    const int64_t *exponents; /**< 256 counts by exponent: number e counts magnitudes from 2^(e - 127) to below its
                                   double, 0 zeros and subnormals of FP32, 255 what is not finite; NULL: not known */
} mixt_tensor_signal;

/** A layer with matrix work: its output, and the gradient that flows back into it, times the loss scale. */
typedef struct mixt_layer_signal {
    const char *layer;
    mixt_tensor_signal activation, gradient;
} mixt_layer_signal;

/** The gradient of a parameter, the loss scale taken out. */
typedef struct mixt_param_signal {
    const char *name;
    double amax, rms;
    double zero, nonfinite; /**< shares of its numbers, 0 to 1 */
} mixt_param_signal;

/** What one update showed when it was looked into. */
typedef struct mixt_layer_signals {
    int64_t step;
    double scale; /**< of the loss */
    bool scaling; /**< that scale moves: gradients come close to an overflow of their format by design */
    const mixt_layer_signal *layers;
    int64_t layer_count;
    const mixt_param_signal *params;
    int64_t param_count;
} mixt_layer_signals;

enum { MIXT_ALERTS_MAX = 8 };

/**
 * Takes in an update.
 * @param alerts receives what is wrong, the worst of each cause.
 * @return how many of them; 0 is good, and what a monitor that is not open answers.
 */
MIXT_API int mixt_monitor_step(mixt_monitor *monitor, const mixt_signals *signals, mixt_alert alerts[MIXT_ALERTS_MAX]);

/**
 * Takes in a look into the layers of an update: a layer whose output is less than one power of two from the end of FP16
 * (overflow), one of whose gradient most became 0 in two looks (underflow), a parameter whose gradient was 0 everywhere
 * in three (gradient_anomaly, or underflow where FP16 lost it). Cooldown and silence are those of mixt_monitor_step.
 * @param alerts receives what is wrong, with the layer or parameter.
 * @return how many of them.
 */
MIXT_API int mixt_monitor_layers(mixt_monitor *monitor, const mixt_layer_signals *layers,
                                 mixt_alert alerts[MIXT_ALERTS_MAX]);

/* ---- the controller: what to do about it ----
 *
 *   mixt_controller *controller;
 *   mixt_trouble trouble;
 *   mixt_decision decision;
 *   mixt_controller_new(NULL, &controller);
 *   for (…) { // every update, with the alerts of its monitor
 *       if (mixt_controller_step(controller, &signals, alerts, count, &trouble)) {
 *           …; // find out more, where that can be done
 *           mixt_controller_decide(controller, &finding, &decision);
 *       }
 *   }
 *   mixt_controller_free(controller);
 *
 * It computes nothing and touches no trainer: figures go in, decisions come out, the same for the same figures. A run
 * with auto.steer=true has one of its own and does what it says. What it does is bounded: a few attempts at one
 * trouble, each another remedy, then it stops with an explanation. A layer that it raised and lowered again is raised
 * once more at most, and stays so.
 */

#define MIXT_ACTION_LIST(X)                                                                                            \
    X(NONE, "none")                                                                                                    \
    X(PRECISION, "precision") /* another format for a layer, or for the whole model */                                 \
    X(SCALE, "scale")         /* another loss scaling */                                                               \
    X(ROLLBACK, "rollback")   /* back to the last good state, and the same again */                                    \
    X(SKIP, "skip")           /* a batch or a sample is left out */                                                    \
    X(CLIP, "clip")           /* another limit of the gradient's norm */                                               \
    X(LR, "lr")               /* another learning rate */                                                              \
    X(MEMORY, "memory")       /* another way to keep activations */                                                    \
    X(STOP, "stop")           /* nothing that is allowed helps: the run ends */

typedef enum mixt_action {
#define MIXT_ACTION_ENUM(name, text) MIXT_ACTION_##name,
    MIXT_ACTION_LIST(MIXT_ACTION_ENUM)
#undef MIXT_ACTION_ENUM
        MIXT_ACTION_COUNT
} mixt_action;

/** "precision", …; "none" for anything else. */
MIXT_API const char *mixt_action_name(mixt_action action);

/** Something that a run does differently from here on: a row of events.jsonl with kind "decision". Texts of a decision
 *  that is asked for are copied, NULL is ""; those of a controller's decision are its own until its next one, those of
 * an event until all have heard it. */
typedef struct mixt_decision {
    int64_t step; /**< the update after which it was made */
    int64_t back; /**< the update that the run goes back to before it acts; -1: it stays where it is */
    mixt_action action;
    mixt_severity severity;
    mixt_cause cause;  /**< MIXT_CAUSE_COUNT: none of them */
    const char *layer; /**< PRECISION: the layer, or a glob over layers; "": the whole model */
    const char *key;   /**< of the configuration, that is set to `to`; "": none; "sample": SKIP of a sample. For
                          MIXT_ACTION_SCALE, MIXT_ACTION_CLIP,   MIXT_ACTION_LR and MIXT_ACTION_MEMORY */
    const char *from;  /**< what was */
    const char *to; /**< what is from here on: a format, a setting's value, the number of a batch or a sample (SKIP) */
    const char *text;                  /**< why, for people */
    int64_t bytes_before, bytes_after; /**< MEMORY: of the step, measured when it was acted on; 0: it was not yet */
    const char *policy; /**< PRECISION of the whole model: the policy, as mixt_policy_parse reads it; NULL: as it is,
                             with the format `to` for `layer` */
} mixt_decision;

typedef struct mixt_controller mixt_controller;

/** What it may do, and how often. */
typedef struct mixt_controller_options {
    size_t struct_size;
    unsigned may;     /**< actions that are allowed: 1u << MIXT_ACTION_PRECISION | … */
    int64_t retries;  /**< attempts at one trouble, 1 to 100 */
    int64_t cooldown; /**< updates without trouble after which the next one is a new one */
    int64_t calm;     /**< updates without trouble after which one layer that was raised on suspicion is lowered again;
                           0: never */
    double scale_floor; /**< lowest value of a loss scale that moves */
} mixt_controller_options;
MIXT_API void mixt_controller_options_default(mixt_controller_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_controller_options                                                                          \
    .struct_size = sizeof(mixt_controller_options), .may = (1u << MIXT_ACTION_COUNT) - 1, .retries = 6,                \
    .cooldown = 200, .calm = 5000, .scale_floor = 1

/** @param options NULL: the defaults. @param controller set to NULL on failure. */
MIXT_API mixt_status mixt_controller_new(const mixt_controller_options *options, mixt_controller **controller);
/** NULL is allowed. */
MIXT_API void mixt_controller_free(mixt_controller *controller);

/** Why an update needs a decision. Texts are the controller's until it tells of another one; NULL is "". */
typedef struct mixt_trouble {
    int64_t step;
    mixt_cause cause;
    const char *layer; /**< whose gradient was not finite first; "": not known */
    bool forward;      /**< the loss itself is not finite: no loss scale can help */
    const char *text;  /**< for people */
} mixt_trouble;

/**
 * Takes in an update and the alerts that the monitor raised on it. Times and memory are not looked at: what is decided
 * depends on the numbers of training alone.
 * @param alerts of this update; NULL: none. @param count how many.
 * @param trouble filled where it returns true: something must be done, see mixt_controller_decide. Further updates are
 * not judged until that was called.
 */
MIXT_API bool mixt_controller_step(mixt_controller *controller, const mixt_signals *signals, const mixt_alert *alerts,
                                   int count, mixt_trouble *trouble);

/**
 * Tells of trouble that it has not seen itself: the next mixt_controller_decide is about it.
 * @return false where it waits for a decision about another one.
 */
MIXT_API bool mixt_controller_report(mixt_controller *controller, const mixt_trouble *trouble);

enum { MIXT_FINDING_LAYERS = 8 };

/** What is known about a trouble, from a replay or from its signs. Zero-initialised: nothing. Texts are only read; NULL
 *  is "". */
typedef struct mixt_finding {
    mixt_cause cause; /**< HARDWARE, PRECISION, DATA or OPTIMIZER where a replay found it; else the trouble's own */
    bool certain;     /**< a replay found it */
    bool persists;    /**< HARDWARE: other bits again when it was replayed once more */
    bool low;         /**< the policy has formats below FP32: precision can be to blame */
    int layer_count;  /**< layers to blame, the first is the worst; 0: not known */
    const char *layers[MIXT_FINDING_LAYERS];
    const char *format;  /**< in which those layers compute, or the model: "fp16" */
    const char *scaling; /**< how the loss is scaled: "none", "dynamic" or a number */
    double clip, lr;     /**< largest norm of the gradient, 0: no limit; learning rate */
    int64_t batch;       /**< that the trouble came with; -1: not known */
    int64_t good;        /**< the update of the last good state; -1: there is none */
    const char *text;    /**< what was found, for people; "": nothing */
    double calm_lr;      /**< a learning rate that a replay from the good state is calm with; 0: not known */
    const char *place;   /**< HARDWARE: the number that was wrong, as "fc.1.weight[17]"; "": not known */
    bool replayed;       /**< a replay found no cause, and FP32 is no better: neither is any other format */
    bool has_sample;     /**< DATA: a single sample is to blame, … */
    int64_t sample;      /**< … by its number in the data set */
    bool adaptive;       /**< the optimizer divides gradients by their own size: clipping them changes nothing */
} mixt_finding;

/**
 * Decides about the trouble that mixt_controller_step told last.
 * @return false where there was none: nothing is decided.
 */
MIXT_API bool mixt_controller_decide(mixt_controller *controller, const mixt_finding *finding, mixt_decision *decision);

/**
 * Whether a layer that was raised on suspicion can be tried in its lower format again.
 * @param decision receives that. @return false: not now.
 */
MIXT_API bool mixt_controller_lower(mixt_controller *controller, mixt_decision *decision);

/** Whether the state of training is good to go back to: nothing stood out in the last updates. */
MIXT_API bool mixt_controller_calm(const mixt_controller *controller);
/** Decisions so far, without those that lower a layer; and of them, those that went back. Either may be NULL. */
MIXT_API void mixt_controller_counts(const mixt_controller *controller, int64_t *decisions, int64_t *rollbacks);

/* ---- the diagnosis: what was to blame ----
 *
 * Training is bit-exact: the same state and the same batches give the same numbers. So a run that goes back to a good
 * state and computes the same updates again knows more than a loss curve tells:
 *
 *   other bits than before                -> hardware computed something wrong
 *   the same bits, and FP32 is calm       -> the number format could not hold a value: the layers are named
 *   the same bits, and FP32 has it too    -> a batch, a layer that is dead, or the learning rate, where a lower one is
 *                                            calm on the same batches
 *
 * What nothing explains is unknown.
 *
 *   mixt_snapshots *states;
 *   mixt_snapshots_new(trainer, data, 100, &states);
 *   for (…) { // every update
 *       mixt_trainer_step(trainer, data, &step);
 *       …; // a monitor says whether it is calm
 *       mixt_snapshots_note(states, &step, calm);
 *       if (trouble)
 *           mixt_snapshots_diagnose(states, alert.cause, &diagnosis); // and training goes on from a good state
 *   }
 *   mixt_snapshots_free(states);
 *
 * Trainers that have joined others (mixt/ranks.h) do all of this together, each at the same update. A run with
 * precision=auto asks for a diagnosis by itself and writes it as a row of events.jsonl, with kind "diagnosis".
 */

#define MIXT_DIAGNOSIS_LIST(X)                                                                                         \
    X(UNKNOWN, "unknown")       /* the same bits, and nothing in them that explains it */                              \
    X(HARDWARE, "hardware")     /* the same computation gave other bits */                                             \
    X(PRECISION, "precision")   /* FP32 does not have the problem */                                                   \
    X(BATCH, "batch")           /* samples of one batch are not like the others */                                     \
    X(OPTIMIZER, "optimizer")   /* the learning rate is too high for this state */                                     \
    X(DEAD_LAYER, "dead_layer") /* a layer learns nothing, in FP32 neither */                                          \
    X(MEMORY, "memory")         /* memory is short: nothing was computed wrong */

typedef enum mixt_diagnosis_kind {
#define MIXT_DIAGNOSIS_ENUM(name, text) MIXT_DIAGNOSIS_##name,
    MIXT_DIAGNOSIS_LIST(MIXT_DIAGNOSIS_ENUM)
#undef MIXT_DIAGNOSIS_ENUM
        MIXT_DIAGNOSIS_COUNT
} mixt_diagnosis_kind;

/** "nothing", "hardware", …; "none" for anything else. */
MIXT_API const char *mixt_diagnosis_name(mixt_diagnosis_kind kind);

enum { MIXT_DIAGNOSIS_LAYERS = 4 };

/** What was found, with the figures that say so. Texts belong to the snapshots until their next diagnosis; those of an
 *  event until all have heard it. */
typedef struct mixt_diagnosis {
    mixt_diagnosis_kind kind;
    mixt_cause cause;   /**< of the row: hardware, precision, data, optimizer, gradient_anomaly or memory_warning */
    mixt_cause symptom; /**< that was seen: overflow, underflow, scale_collapse, loss_anomaly, … */
    int64_t step;       /**< the update at which it began */
    int64_t good;       /**< the update of the last good state, where the trainer was left unless asked otherwise */
    int64_t replayed;   /**< updates that were computed again, all replays together */
    /** PRECISION: the layers at fault, the worst first; DEAD_LAYER: the one that is dead; HARDWARE: where the wrong
     *  number was, as far as it can be told. "" after the last one. */
    const char *layers[MIXT_DIAGNOSIS_LAYERS];
    const char *op;            /**< PRECISION: the op of the first layer that made such numbers; "": not known */
    const char *parameter;     /**< HARDWARE: the parameter that is furthest off, or whose gradient is; "": not known */
    int rank;                  /**< of several: the one to blame, or whose samples or values are; -1: not known */
    bool persists;             /**< HARDWARE: a second replay gave other bits once more */
    int64_t epoch, batch;      /**< BATCH: where it comes in the data: epochs from 1, batches from 0 */
    int64_t place, sample;     /**< BATCH: the sample's place in the batch and in the data set; -1: no single one */
    double value, usual, fp32; /**< loss of that update, of those before, of the same update in FP32; NaN: not known */
    const char *text;          /**< all of it, for people */
    double lr, calm_lr;        /**< OPTIMIZER: the learning rate as it is set, and one with which a replay from the good
                                    state is calm; 0: not known */
    int64_t element;           /**< HARDWARE: the number of `parameter` that is far off; -1: not known */
    mixt_judgement judged; /**< PRECISION that made nothing stand out: what FP32 made of the same updates; else without
                                pairs */
} mixt_diagnosis;

/** The last two good states of a trainer in host memory, with a record of what each update since has left. */
typedef struct mixt_snapshots mixt_snapshots;

/**
 * Takes the memory, and the state as it is as the first good one.
 * @param trainer compiled; nobody else may change its weights or its policy while the snapshots live.
 * @param data that it trains on: every update must come from mixt_trainer_step with it.
 * @param every updates between two states, 1 to 100000.
 * @param snapshots set to NULL on failure; free them before the trainer's context is closed.
 */
MIXT_API mixt_status mixt_snapshots_new(mixt_trainer *trainer, mixt_data *data, int64_t every,
                                        mixt_snapshots **snapshots);
/** NULL is allowed. */
MIXT_API void mixt_snapshots_free(mixt_snapshots *snapshots);
/**
 * Takes in an update, each one in its turn and before the next.
 * @param step its result. @param calm whether nothing stood out lately: else its state is not taken as a good one.
 */
MIXT_API mixt_status mixt_snapshots_note(mixt_snapshots *snapshots, const mixt_step *step, bool calm);
/**
 * Finds out what went wrong at the newest update, or shortly before, and leaves the trainer in the last good state.
 * @param symptom what was seen, as an alert has it.
 * @param diagnosis what was found.
 */
MIXT_API mixt_status mixt_snapshots_diagnose(mixt_snapshots *snapshots, mixt_cause symptom, mixt_diagnosis *diagnosis);

#ifdef __cplusplus
}
#endif
#endif
