/* Which number format does each layer and op compute in? A precision policy says it, as a value in memory.
 *
 * A policy is a format for everything (the default), rules that give some layers and ops another one, and, where it
 * says so, the loss scaling and clipping that go with it. It is made by name, from a YAML file, from a text or rule by
 * rule, belongs to no context, and is copied by whoever takes it: change yours or free it at any time. One thread at a
 * time may use a policy.
 *
 *   version: 1
 *   made_by: who or what made it          # a text, optional
 *   default: bf16                         # or {forward: bf16, backward: fp32}
 *   keep: fp8_e4m3                        # what the backward pass reads again is kept in it; left out: as it is
 *   rules:                                # the last rule that matches decides
 *     - layer: "h.*.attn*"                # glob over layer names; left out: all
 *       op: matmul                        # glob over op names; left out: all
 *       precision: fp32                   # or both of forward and backward
 *       keep: bf16                        # left out: as the policy's
 *   loss_scale: dynamic                   # auto, dynamic, none or a number; with scale_init, scale_growth,
 *   clip: 1                               #   scale_backoff, scale_floor, …, clip_value: see mixt_policy_settings
 *   phases:                               # parts of a run one after the other; left out: it is the same throughout
 *     - name: warm-up
 *       until: 10%                        # the last update of it: a number, "2 epochs", or a share of the run
 *       default: fp32                     # default, keep, rules, loss_scale, clip, …: on top of what stands above
 *     - name: calm                        # the last one has no until
 *   evidence: {...}                       # any map: kept and printed, never read
 *
 * Formats are FP32, TF32, FP16, BF16, FP8 E4M3 and FP8 E5M2; "fp8" is E4M3 forward and E5M2 backward. Those of keep are
 * FP32, FP16, BF16 and FP8 E4M3. Only `default` must be there.
 */
#ifndef MIXT_POLICY_H
#define MIXT_POLICY_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_policy mixt_policy;

/* ---- making one: all give it in *policy, for mixt_policy_free; NULL when they fail ---- */

/**
 * One format for everything, to which rules can be added.
 * @param forward of the ops of the model.
 * @param backward of their gradients; MIXT_DTYPE_NONE: as forward.
 */
MIXT_API mixt_status mixt_policy_new(mixt_dtype forward, mixt_dtype backward, mixt_policy **policy);
/** @param name "fp32", "tf32", "fp16", "bf16" or "fp8". */
MIXT_API mixt_status mixt_policy_named(const char *name, mixt_policy **policy);
/** @param path of a YAML file. Messages name file, line and column. */
MIXT_API mixt_status mixt_policy_load(const char *path, mixt_policy **policy);
/**
 * From a text, as a file would hold it.
 * @param yaml the text.
 * @param name what messages and origins call it, in place of a file's name.
 */
MIXT_API mixt_status mixt_policy_parse(const char *yaml, const char *name, mixt_policy **policy);
/** @param name_or_path one of the names, else the path of a file: what a trainer's `precision` takes. */
MIXT_API mixt_status mixt_policy_open(const char *name_or_path, mixt_policy **policy);
/** An equal policy that shares nothing with this one. */
MIXT_API mixt_status mixt_policy_copy(const mixt_policy *policy, mixt_policy **copy);
/** NULL is allowed. */
MIXT_API void mixt_policy_free(mixt_policy *policy);

/* ---- formats ---- */

/** The formats for what no rule matches; either pointer may be NULL. */
MIXT_API void mixt_policy_default(const mixt_policy *policy, mixt_dtype *forward, mixt_dtype *backward);
/** @param backward MIXT_DTYPE_NONE: as forward. */
MIXT_API mixt_status mixt_policy_set_default(mixt_policy *policy, mixt_dtype forward, mixt_dtype backward);
/** The format in which activations lie between the forward and the backward pass where no rule says another; NONE: each
 *  in its own. */
MIXT_API mixt_dtype mixt_policy_keep(const mixt_policy *policy);
/**
 * Activations that the backward pass reads are rounded to this format once the forward pass has read them for the last
 * time, and widened again before the backward pass reads them. Results of the forward pass do not change. A value whose
 * own format is not wider stays as it is.
 * @param keep MIXT_DTYPE_FP16, MIXT_DTYPE_BF16 or MIXT_DTYPE_FP8_E4M3; MIXT_DTYPE_NONE or MIXT_DTYPE_FP32: each in its
 * own.
 */
MIXT_API mixt_status mixt_policy_set_keep(mixt_policy *policy, mixt_dtype keep);

typedef struct mixt_policy_rule {
    const char *layer;   /**< glob over layer names, "h.*.attn*"; NULL: every layer */
    const char *op;      /**< glob over op names, "matmul"; NULL: every op */
    mixt_dtype forward;  /**< format of the ops that match */
    mixt_dtype backward; /**< of their gradients; MIXT_DTYPE_NONE: as forward */
    mixt_dtype keep;     /**< of what they save for their gradients, see mixt_policy_set_keep; NONE: as the policy's */
    /** Where it stands, in words: "policy.yaml:7", "rule 2 of the policy". Only read: adding a rule ignores it. */
    const char *origin;
} mixt_policy_rule;

/** Adds a rule at the end, where it wins over all before it. At most 4096. The texts are copied. */
MIXT_API mixt_status mixt_policy_add(mixt_policy *policy, const mixt_policy_rule *rule);
/** @param index where the rule will stand, from 0 to the number of rules; those from there on move up by one. */
MIXT_API mixt_status mixt_policy_insert(mixt_policy *policy, int64_t index, const mixt_policy_rule *rule);
/** @param index of the rule that goes, from 0. */
MIXT_API mixt_status mixt_policy_remove(mixt_policy *policy, int64_t index);
/** Number of rules. */
MIXT_API int64_t mixt_policy_count(const mixt_policy *policy);
/**
 * @param index from 0, in the order in which they stand.
 * @param rule receives it; its texts are valid until the policy is changed or freed.
 */
MIXT_API mixt_status mixt_policy_get(const mixt_policy *policy, int64_t index, mixt_policy_rule *rule);

/* ---- phases of a run ---- */

/** What a phase's end is counted in. */
typedef enum mixt_phase_unit {
    MIXT_PHASE_UPDATES, /**< updates from the beginning of the run */
    MIXT_PHASE_EPOCHS,  /**< passes over the training data, from the beginning; 0.5 is half of the first */
    MIXT_PHASE_PERCENT, /**< of all updates that the run will make; what is left of an update counts as one */
} mixt_phase_unit;

typedef struct mixt_policy_phase {
    const char *name;     /**< 1 to 64 bytes, no other phase's */
    double until;         /**< its last update, by `unit`, counted from the beginning of the run; 0: it is the last */
    mixt_phase_unit unit; /**< of until */
    const char *origin;   /**< where it stands, in words: "policy.yaml:7". Only read: adding one ignores it */
} mixt_policy_phase;

/**
 * Adds a phase behind those there are. A run goes through them, see mixt/run.h; what has no beginning and no end, a
 * trainer or a generator, takes the policy of one (mixt_policy_of_phase). At most 256.
 * @param phase its name and end, which must be later than that of the phase before where both are counted in the same
 * unit; nothing comes behind one without an end. The texts are copied.
 * @param changes what it changes: its default formats are those of the phase, its rules come behind the policy's, its
 * keep, loss scaling and clipping count where it says them. Copied; without phases of its own. NULL: nothing.
 */
MIXT_API mixt_status mixt_policy_add_phase(mixt_policy *policy, const mixt_policy_phase *phase,
                                           const mixt_policy *changes);
/** Number of phases; 0: the policy is the same throughout. */
MIXT_API int64_t mixt_policy_phases(const mixt_policy *policy);
/**
 * @param index from 0, in their order.
 * @param phase receives it; its texts are valid until the policy is changed or freed.
 */
MIXT_API mixt_status mixt_policy_get_phase(const mixt_policy *policy, int64_t index, mixt_policy_phase *phase);
/**
 * What counts in one phase, as a policy without phases.
 * @param index from 0.
 * @param of_phase receives it, for mixt_policy_free.
 */
MIXT_API mixt_status mixt_policy_of_phase(const mixt_policy *policy, int64_t index, mixt_policy **of_phase);
/**
 * An equal policy, but for its phases: their ends are counted in updates. It then is a function of the update alone.
 * @param total updates of the run; 0: it has no end, and no share of it can be told.
 * @param epoch updates of a pass over the training data; 0: not known.
 * @param resolved receives it, for mixt_policy_free. Fails where a phase would not end after the one before it, or the
 * last one has an end.
 */
MIXT_API mixt_status mixt_policy_resolve_phases(const mixt_policy *policy, int64_t total, int64_t epoch,
                                                mixt_policy **resolved);

/* ---- what goes with the formats ---- */

/** Loss scaling and clipping, of a policy and of a trainer's options. NULL and 0: not said. What a trainer's options or
 *  a configuration say wins over the policy; what neither says has the default named here. */
typedef struct mixt_policy_settings {
    const char *loss_scale; /**< "auto" (default: dynamic with FP16, else none), "dynamic", "none", or a number from
                               2^-24 to 2^126 */
    float scale_init;       /**< first loss scale (dynamic), above 0, from floor to ceiling; default 65536 */
    float scale_growth;     /**< factor after scale_interval good updates, at least 1; default 2 */
    float scale_backoff;    /**< factor after an overflow, below 1; default 0.5 */
    float scale_floor;      /**< smallest loss scale; default 1 */
    float scale_ceiling;    /**< largest loss scale; default 2^24 */
    int64_t scale_interval; /**< good updates in a row before the scale grows; default 2000 */
    int scale_hysteresis;   /**< overflows in a row before it falls; default 1 */
    /** Largest norm of the unscaled gradient; default, and INFINITY: no clipping. The factor is clip / (norm + 1e-6), 1
     *  at most, as PyTorch's. */
    float clip;
    float clip_value; /**< largest magnitude of a gradient element; default, and INFINITY: no clipping */
} mixt_policy_settings;

/** The names of the settings, in this order, as policy files have them: "loss_scale", "scale_init", …; `train.` before
 *  them makes keys of a configuration. @param index from 0. NULL behind the last one. */
MIXT_API const char *mixt_policy_setting(int64_t index);

/** @param settings receives them; the text is valid until the policy is changed or freed. */
MIXT_API void mixt_policy_get_settings(const mixt_policy *policy, mixt_policy_settings *settings);
/** @param settings all of them anew; copied. */
MIXT_API mixt_status mixt_policy_set_settings(mixt_policy *policy, const mixt_policy_settings *settings);

/** Who or what made the policy; "" when it does not say. Valid until it is set again. */
MIXT_API const char *mixt_policy_made_by(const mixt_policy *policy);
/** @param made_by any text; NULL or "": none. */
MIXT_API mixt_status mixt_policy_set_made_by(mixt_policy *policy, const char *made_by);
/**
 * What the policy rests on: measurements, names of runs, anything.
 * @param yaml receives the map as YAML, for mixt_free; "" when there is none.
 */
MIXT_API mixt_status mixt_policy_evidence(const mixt_policy *policy, char **yaml);
/** @param yaml a map, nested to depth 32 and with 16384 values at most; NULL or "": none. */
MIXT_API mixt_status mixt_policy_set_evidence(mixt_policy *policy, const char *yaml);

/* ---- comparing, printing ---- */

/** Whether both give the same bits: formats, rules in order, loss scaling and clipping, phases; who made them and why
 *  does not count, nor where their rules stand or what their phases are called. */
MIXT_API bool mixt_policy_equal(const mixt_policy *a, const mixt_policy *b);
/** @param yaml receives the policy as a text that mixt_policy_parse reads to the same policy, for mixt_free. */
MIXT_API mixt_status mixt_policy_print(const mixt_policy *policy, char **yaml);
/** The same into a file, written whole or not at all; a file of that name is replaced. */
MIXT_API mixt_status mixt_policy_write(const mixt_policy *policy, const char *path);

#ifdef __cplusplus
}
#endif
#endif
