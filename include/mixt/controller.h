/* The controller: what to do about trouble in training. Decisions, and the machine that makes them.
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
 * with auto.steer=true (mixt/run.h) has one of its own and does what it says; this header is for those who make their
 * own loop, and for what a decision is.
 *
 * What it does is bounded: a few attempts at one trouble, each another remedy, then it stops with an explanation. A
 * layer that it raised and lowered again is raised once more at most, and stays so.
 */
#ifndef MIXT_CONTROLLER_H
#define MIXT_CONTROLLER_H

#include "mixt/monitor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- decisions ---- */

#define MIXT_ACTION_LIST(X)                                                                                            \
    X(NONE, "none")                                                                                                    \
    X(PRECISION, "precision") /* another format for a layer, or for the whole model */                                 \
    X(SCALE, "scale")         /* another loss scaling */                                                               \
    X(ROLLBACK, "rollback")   /* back to the last good state, and the same again */                                    \
    X(SKIP, "skip")           /* a batch is left out */                                                                \
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

/** Something that a run does differently from here on: a row of events.jsonl with kind "decision". */
typedef struct mixt_decision {
    int64_t step; /**< the update after which it was made */
    int64_t back; /**< the update that the run goes back to before it acts; -1: it stays where it is */
    mixt_action action;
    mixt_severity severity;
    mixt_cause cause; /**< MIXT_CAUSE_COUNT: none of them */
    char layer[128];  /**< PRECISION: the layer, or a glob over layers; "": the whole model */
    char key[48];     /**< of the configuration, that is set to `to`; "": none. For MIXT_ACTION_SCALE, MIXT_ACTION_CLIP,
                           MIXT_ACTION_LR and MIXT_ACTION_MEMORY */
    char from[64];    /**< what was */
    char to[64];      /**< what is from here on: a format, a setting's value, the number of a batch (SKIP) */
    char text[896];   /**< why, for people */
    int64_t bytes_before, bytes_after; /**< MEMORY: of the step, measured when it was acted on; 0: it was not yet */
    const char *policy; /**< PRECISION of the whole model: the policy, as mixt_policy_parse reads it; NULL: as it is,
                             with the format `to` for `layer` */
} mixt_decision;

/* ---- the machine that makes them ---- */

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
    .struct_size = sizeof(mixt_controller_options), .may = ((1u << MIXT_ACTION_COUNT) - 1) & ~(1u << MIXT_ACTION_LR),  \
    .retries = 6, .cooldown = 200, .calm = 5000, .scale_floor = 1

/** @param options NULL: the defaults. @param controller set to NULL on failure. */
MIXT_API mixt_status mixt_controller_new(const mixt_controller_options *options, mixt_controller **controller);
/** NULL is allowed. */
MIXT_API void mixt_controller_free(mixt_controller *controller);

/** Why an update needs a decision. */
typedef struct mixt_trouble {
    int64_t step;
    mixt_cause cause;
    char layer[128]; /**< whose gradient was not finite first; "": not known */
    bool forward;    /**< the loss itself is not finite: no loss scale can help */
    char text[256];  /**< for people */
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

/** What is known about a trouble, from a replay or from its signs. Zero-initialised: nothing. */
typedef struct mixt_finding {
    mixt_cause cause; /**< HARDWARE, PRECISION or DATA where a replay found it; else the trouble's own */
    bool certain;     /**< a replay found it */
    bool persists;    /**< HARDWARE: other bits again when it was replayed once more */
    bool low;         /**< the policy has formats below FP32: precision can be to blame */
    int layer_count;  /**< layers to blame, the first is the worst; 0: not known */
    char layers[MIXT_FINDING_LAYERS][128];
    char format[16];  /**< in which those layers compute, or the model: "fp16" */
    char scaling[32]; /**< how the loss is scaled: "none", "dynamic" or a number */
    double clip, lr;  /**< largest norm of the gradient, 0: no limit; learning rate */
    int64_t batch;    /**< that the trouble came with; -1: not known */
    int64_t good;     /**< the update of the last good state; -1: there is none */
    char text[512];   /**< what was found, for people; "": nothing */
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

#ifdef __cplusplus
}
#endif
#endif
