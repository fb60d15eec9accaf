/* Which precision should a configuration be trained in, and what holds its step back? Loss scaling, clipping, batch
 * and recomputation too, before the training, on this machine or on one that is not at hand.
 *
 *   mixt_advice *advice;
 *   if (mixt_advise(config, &advice, .machine = "a100", .lose = 0.005) == MIXT_OK)
 *       puts(mixt_advice_choose(advice)->why);
 *   mixt_advice_free(advice);
 *
 * Memory is planned, to the byte. Times on this machine are measured in a short trial; those of an assumed machine come
 * from its profile and the FLOPs and bytes of each op, and say so ("modelled").
 */
#ifndef MIXT_ADVISE_H
#define MIXT_ADVISE_H

#include "mixt/config.h"
#include "mixt/judge.h"
#include "mixt/plan.h"
#include "mixt/policy.h"
#include "mixt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- machines ---- */

/** A machine as a file describes it: a profile of profiles/, or one of your own. */
typedef struct mixt_machine mixt_machine;

typedef struct mixt_machine_info {
    const char *name;               /**< "h200" */
    const char *title;              /**< "NVIDIA H200 SXM, 141 GB" */
    const char *kind;               /**< "gpu" or "cpu" */
    int capability;                 /**< of a GPU: 10 × major + minor; 0 on a CPU */
    int cores;                      /**< multiprocessors of a GPU, cores of a CPU */
    size_t memory;                  /**< bytes */
    size_t reserved;                /**< of those, what driver and libraries take, or the system */
    double bytes_s;                 /**< bytes a second of that memory at most */
    double link;                    /**< bytes a second that it sends to its peers at most; NaN: not known */
    double launch;                  /**< seconds that an op costs beside its work */
    double price;                   /**< of an hour; NaN: not known */
    double flops[MIXT_DTYPE_COUNT]; /**< a second at most, products in this format; 0: no units */
    double reach[MIXT_DTYPE_COUNT][MIXT_WORK_COUNT]; /**< share of `flops` that such work reaches */
    double reach_bytes[MIXT_WORK_COUNT];             /**< share of `bytes_s` that such work reaches */
} mixt_machine_info;

/** How many profiles are built in. */
MIXT_API int mixt_machine_count(void);
/** The name of one of them; NULL past the last. @param index from 0. */
MIXT_API const char *mixt_machine_name(int index);
/**
 * Opens a profile.
 * @param name one that is built in, one NAME.yaml of the folder MIXT_PROFILES, or the path of a file.
 * @param machine set to NULL on failure; free it with mixt_machine_free. Messages name file, line and column.
 */
MIXT_API mixt_status mixt_machine_open(const char *name, mixt_machine **machine);
/** NULL is allowed. */
MIXT_API void mixt_machine_free(mixt_machine *machine);
/** What it is; NULL where there is no such machine. Valid until it is freed. */
MIXT_API const mixt_machine_info *mixt_machine_describe(const mixt_machine *machine);
/** Where a figure comes from. @param figure a key of the file: "bandwidth". NULL: no such figure. */
MIXT_API const char *mixt_machine_source(const mixt_machine *machine, const char *figure);

/* ---- precision=auto ---- */

/**
 * The format that precision=auto begins with: what the device has units for, BF16 before FP16 before TF32, else FP32.
 * Nothing is timed: the answer is the same on every call.
 * @param device as mixt_options.device has it; NULL: "auto".
 * @param format receives it.
 * @param why receives the reason, a sentence, for mixt_free; NULL: it is not asked for.
 */
MIXT_API mixt_status mixt_precision_pick(const char *device, mixt_dtype *format, char **why);

/* ---- advice ---- */

typedef struct mixt_advice mixt_advice;

typedef struct mixt_advise_options {
    size_t struct_size;
    const char *machine; /**< a profile, as mixt_machine_open takes it; default: this machine */
    size_t memory;       /**< bytes that the run may take; default: what the machine has free */
    double lose;         /**< share of the loss that may be lost next to FP32; default 0.005 */
    double price;        /**< of an hour on the machine; default MIXT_AUTO: what its profile says */
    const char *run; /**< folder of a run of this configuration: remedies are for its own precision, and its metrics say
                          how fast it was; default: none, and they are for the one chosen */
    double trial;    /**< seconds that trials may take in all, here alone; default 30; 0: none */
    mixt_progress_fn *progress; /**< hears which candidate is tried and how many seconds trials have taken and may take,
                                     before each of them, and of a text that is tokenised; default NULL: nobody does */
    void *user;                 /**< for it */
} mixt_advise_options;
MIXT_API void mixt_advise_options_default(mixt_advise_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_advise_options                                                                              \
    .struct_size = sizeof(mixt_advise_options), .lose = 0.005, .price = MIXT_AUTO, .trial = 30

/**
 * What a configuration should be trained in.
 * @param config only read; its precision and memory settings are what is asked about, the rest stays as it is.
 * @param options NULL: all defaults.
 * @param advice set to the answer, or to NULL on failure; free it with mixt_advice_free.
 * @return MIXT_ERROR_STATE when `progress` ended it.
 */
MIXT_API mixt_status mixt_advise_with(const mixt_config *config, const mixt_advise_options *options,
                                      mixt_advice **advice);
#ifndef __cplusplus
#define mixt_advise(config, advice, ...)                                                                               \
    mixt_advise_with((config), MIXT_OPTIONS_AT(mixt_advise_options, __VA_ARGS__), (advice))
#endif
/** NULL is allowed. */
MIXT_API void mixt_advice_free(mixt_advice *advice);

/** One precision that was looked at. Strings belong to the advice. */
typedef struct mixt_advice_candidate {
    const char *name;    /**< "bf16", "bf16, small layers fp32", or the name of a policy file */
    size_t memory;       /**< bytes that the run would hold: of a GPU's memory, or of the host's */
    double seconds;      /**< of an update; NaN: not known */
    double run_seconds;  /**< of all updates of the run */
    double cost;         /**< of the run; NaN: no price is known */
    double lost;         /**< share of the loss that it may lose next to FP32, from the evidence in `why` */
    mixt_judgement safe; /**< the same as a judgement: predicted from how the format rounds, or measured once in the
                            trial; mixt_verify measures it over whole runs */
    const char *source;  /**< of the time: "measured", "modelled" or "none" */
    const char *verdict; /**< "chosen", "slower", "no gain", "no units", "not trained", "too large" or "loses" */
    const char *why;     /**< a sentence */
} mixt_advice_candidate;

/** @param index from 0; NULL past the last. */
MIXT_API const mixt_advice_candidate *mixt_advice_candidate_at(const mixt_advice *advice, int index);

/** The strategy. Strings belong to the advice. */
typedef struct mixt_advice_choice {
    bool found;                 /**< false: nothing fits, and what follows is the candidate that comes closest */
    const char *machine;        /**< the profile's name, or "this machine" */
    const char *title;          /**< what it is */
    bool assumed;               /**< it is not this machine: times are modelled */
    size_t limit;               /**< bytes of memory that the run may take */
    const char *precision;      /**< "bf16", or the default of a policy with rules */
    const char *policy;         /**< the whole policy, a text for mixt_policy_parse, with what it rests on */
    int64_t batch;              /**< samples in one pass */
    int64_t accumulate;         /**< passes in an update */
    int64_t split;              /**< parts that a batch of the configuration is passed in, so that it fits; else 1 */
    int64_t largest_batch;      /**< the largest train.batch that fits in this precision; 0: not known */
    const char *largest_reason; /**< why not larger: memory, or that the data has no more samples; "": not known */
    mixt_judgement safe;        /**< of the one chosen; undecided where only a prediction speaks against it */
    mixt_judgement faster, smaller; /**< than FP32: times as in `source` of the candidate, memory as planned */
    double price;                   /**< of an hour; NaN: none is known */
    const char *price_source;       /**< where the price comes from, and its currency; "": it was asked for */
    bool recompute;                 /**< some activations are computed again in the backward pass */
    const char *loss_scale;         /**< "dynamic" or "none" */
    double clip;                    /**< largest norm of the gradient; 0: none */
    const char *decided;            /**< the requirement that decided: "time", "memory", "accuracy" or "hardware" */
    const char *why;                /**< a sentence or two */
    const char *looked_at;          /**< the candidate that the remedies are about */
} mixt_advice_choice;
MIXT_API const mixt_advice_choice *mixt_advice_choose(const mixt_advice *advice);

/** Something that holds the step back. Strings belong to the advice. */
typedef struct mixt_remedy {
    const char *what;  /**< what it is: "casts", "launches", "unaligned products", … */
    double share;      /**< of the step's time */
    double gain;       /**< share of the step's time that the remedy is expected to save */
    const char *where; /**< layers or ops that it is about; "" : the whole step */
    const char *text;  /**< why, and what to do */
} mixt_remedy;
/** Largest expected gain first. @param index from 0; NULL past the last. */
MIXT_API const mixt_remedy *mixt_advice_remedy(const mixt_advice *advice, int index);

/** Writes the chosen policy, with its evidence, as a file that `precision` takes.
 *  @param overwrite replace a file of that name; else it is refused. */
MIXT_API mixt_status mixt_advice_write(const mixt_advice *advice, const char *path, bool overwrite);

#ifdef __cplusplus
}
#endif
#endif
