/* How do I get from FP32 to mixed precision? By one piece of work in stages, which can be ended and gone on with at
 * any moment.
 *
 *   mixt_adoption *a;
 *   if (mixt_adopt(config, &a, .name = "digits", .margin = 0.01) == MIXT_OK)
 *       printf("%s\n", mixt_adoption_describe(a).config);
 *   mixt_adoption_free(a);
 *
 * Five stages, each with figures and a decision: `baseline` trains in FP32; `formats` tries each lower format that the
 * machine has, for a quarter of the updates; `mixed` trains with the cheapest of them; `tuned` searches a format for
 * each layer (mixt_search); `validated` judges the result (judge.h): is it safe, by pairs of whole runs, and is it
 * worth it here? Pairs of the search that were as long as the run are taken over, else mixt_compare makes them. It is
 * adopted where both are yes; FP32 stays where one is shown to be no. Worth it is any gain that can be measured, or
 * what verify.speedup and verify.memory ask for where they are set. All is kept in runs/adopt-NAME, with report.html
 * for people. history.jsonl there is only ever appended to; what is known is what it says. A second call with the same
 * arguments goes on where the first one ended, however it ended.
 */
#ifndef MIXT_ADOPT_H
#define MIXT_ADOPT_H

#include "mixt/config.h"
#include "mixt/judge.h"
#include "mixt/progress.h"
#include "mixt/search.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_adoption mixt_adoption;

typedef enum mixt_adopt_stage {
    MIXT_ADOPT_BASELINE,
    MIXT_ADOPT_FORMATS,
    MIXT_ADOPT_MIXED,
    MIXT_ADOPT_TUNED,
    MIXT_ADOPT_VALIDATED,
    MIXT_ADOPT_STAGES, /**< how many there are */
} mixt_adopt_stage;

/** "baseline", …; "" for what is no stage. */
MIXT_API const char *mixt_adopt_stage_name(mixt_adopt_stage stage);
/** The stage of a name; MIXT_ADOPT_STAGES where there is none. @param name NULL is allowed */
MIXT_API mixt_adopt_stage mixt_adopt_stage_find(const char *name);

typedef struct mixt_adopt_options {
    size_t struct_size;
    const char *name;      /**< letters, digits, '.', '_' and '-', at most 80; must be given */
    const char *to;        /**< the stage after which to end; default: the last */
    const char *from;      /**< undo this stage and those after it first; default: go on */
    double margin;         /**< by which the loss may be worse, as a share: 0.005 for 0.5%, the default */
    int64_t pairs;         /**< of the proof, as mixt_compare_options.pairs; default: as the pilot says */
    mixt_search_goal goal; /**< what is to be small; default: time */
    double budget;         /**< seconds of the search, in each call; default 600 */
    int64_t search_steps;  /**< updates of a trial of the search; default: as its budget allows */
    /** Hears of updates (`task` is the stage, `what` what it trains, the part its number), how each stage ended and
     * why, and of a text that is tokenised; false ends it there. Default NULL: nobody does. */
    mixt_progress_fn *progress;
    void *user; /**< for it */
} mixt_adopt_options;
MIXT_API void mixt_adopt_options_default(mixt_adopt_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_adopt_options .struct_size = sizeof(mixt_adopt_options), .margin = 0.005, .budget = 600

/**
 * Goes the road, or goes on with it.
 * @param config only read; its precision and `out` do not count. It needs a validation part.
 * @param options NULL is refused: `name` must be given.
 * @param adoption set to what is known now, or to NULL on failure; free it with mixt_adoption_free.
 * @return MIXT_ERROR_STATE where another configuration has that name: the text says what differs.
 */
MIXT_API mixt_status mixt_adopt_with(const mixt_config *config, const mixt_adopt_options *options,
                                     mixt_adoption **adoption);
#ifndef __cplusplus
#define mixt_adopt(config, adoption, ...)                                                                              \
    mixt_adopt_with((config), MIXT_OPTIONS_AT(mixt_adopt_options, __VA_ARGS__), (adoption))
#endif
/** What is known, without doing anything. @param name as in the options. @return MIXT_ERROR_FILE: nothing is there. */
MIXT_API mixt_status mixt_adopt_open(const char *name, mixt_adoption **adoption);
/** Takes back the newest stage: its runs go, its versions and its lines in the history stay. @param name as in the
 *  options. @return MIXT_ERROR_STATE where no stage is done. */
MIXT_API mixt_status mixt_adopt_undo(const char *name, mixt_adoption **adoption);
/** NULL is allowed. */
MIXT_API void mixt_adoption_free(mixt_adoption *adoption);

/* ---- what is known ---- */

/** What came out of the whole road. */
typedef enum mixt_adopt_outcome {
    MIXT_ADOPT_UNDER_WAY, /**< stages are left */
    MIXT_ADOPT_ADOPTED,   /**< shown to be safe, and worth it */
    MIXT_ADOPT_KEPT,      /**< FP32 stays: shown not to be safe, or not to be worth it */
    MIXT_ADOPT_UNDECIDED, /**< more pairs are needed; FP32 is used until then, and `best` names what is in question */
} mixt_adopt_outcome;
/** "under way", "adopted", "kept", "undecided". */
MIXT_API const char *mixt_adopt_outcome_name(mixt_adopt_outcome outcome);

typedef struct mixt_adoption_info {
    mixt_adopt_outcome outcome;
    int64_t done;          /**< stages */
    int64_t figures;       /**< of all stages */
    int64_t entries;       /**< of the history */
    const char *folder;    /**< runs/adopt-NAME */
    const char *config;    /**< the configuration to use now; "" before the first stage is done */
    const char *policy;    /**< its policy, with the evidence; "" likewise */
    const char *precision; /**< a format's name, or "tuned": one for each layer; "" likewise */
    const char *best;      /**< undecided: the configuration of the best policy that was not shown to lose; else "" */
    const char *best_precision; /**< its format's name, or "tuned"; "" likewise */
    bool stopped;               /**< `progress` ended it: the same call goes on */
} mixt_adoption_info;
/** Texts belong to the adoption. Of none, or one that was freed, nothing is known. */
MIXT_API mixt_adoption_info mixt_adoption_describe(const mixt_adoption *adoption);

/** What was concluded of the policy in question, by the newest stage that has: SAFE, FASTER, SMALLER.
 *  @param judgement receives it. @return false where nothing was concluded yet. */
MIXT_API bool mixt_adoption_judgement(const mixt_adoption *adoption, mixt_claim claim, mixt_judgement *judgement);

/** What was measured in a stage. NaN: not known. */
typedef struct mixt_adopt_figure {
    mixt_adopt_stage stage;
    const char *name;    /**< the format, "search", "compare" */
    double loss;         /**< at the end, of the validation */
    double accuracy;     /**< likewise */
    double step_seconds; /**< of an update */
    double memory;       /**< bytes of the step */
    bool good;           /**< it can be gone on with */
    const char *note;    /**< what stands behind it, in a sentence */
} mixt_adopt_figure;
/** @param index from 0. @param figure receives it, with texts that belong to the adoption. @return false past the last.
 */
MIXT_API bool mixt_adoption_figure(const mixt_adoption *adoption, int64_t index, mixt_adopt_figure *figure);

/** A line of the history: a stage that was done, or taken back. */
typedef struct mixt_adopt_entry {
    mixt_adopt_stage stage;
    bool undo;             /**< taken back; then only stage and time count */
    int64_t version;       /**< from 1 on; no number comes twice */
    const char *time;      /**< UTC, "2026-01-31T12:00:00Z" */
    const char *precision; /**< a format's name, or "tuned" */
    const char *decision;  /**< in a few words */
    const char *reason;    /**< why, in a sentence */
    const char *evidence;  /**< the folder or file that shows it */
    const char *config;    /**< the configuration of this version, a file */
    const char *policy;    /**< its policy, a file */
} mixt_adopt_entry;
/** @param index from 0, the oldest first. @param entry receives it, with texts that belong to the adoption. @return
 *  false past the last. */
MIXT_API bool mixt_adoption_entry(const mixt_adoption *adoption, int64_t index, mixt_adopt_entry *entry);

#ifdef __cplusplus
}
#endif
#endif
