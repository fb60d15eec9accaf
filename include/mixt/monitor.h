/* The monitor: says when the figures of training are not as they should be.
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
 * A run (mixt/run.h) has one of its own, which writes events.jsonl and tells observers MIXT_EVENT_ALERT; this header is
 * for those who make their own loop, and for what an alert is.
 *
 * What is unusual is judged by median and deviation of the newest updates, of the logarithm of losses, norms and times:
 * a net that learns fast, warms up or follows a schedule is not blamed for it. Limits that a user sets hold beside
 * that.
 */
#ifndef MIXT_MONITOR_H
#define MIXT_MONITOR_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

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
    X(STALL, "stall")                       /* an update, or all of them, took much longer than usual */

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

/** One thing that is not as it should be. */
typedef struct mixt_alert {
    int64_t step; /**< the update */
    mixt_severity severity;
    mixt_cause cause;
    char layer[128];   /**< parameter or layer at fault; "": not known */
    double value;      /**< what was found */
    double usual;      /**< the median of the updates before; NaN: not judged by it */
    double deviations; /**< how far off that is; NaN: not judged by it */
    double limit;      /**< that was passed; NaN: none */
    int64_t silenced;  /**< alerts of this cause that were held back since the last one */
    char text[256];    /**< all of it, for people */
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

#ifdef __cplusplus
}
#endif
#endif
