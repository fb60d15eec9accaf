/* A search for a policy under way, for the files of this folder:
 *
 *   search.c         what is tried, in which order, and when it ends
 *   search_open.c    options, data, model, how long a trial is
 *   search_groups.c  which layers are decided together
 *   search_policy.c  from a format for each group to a policy and back
 *   search_loss.c    trials: a policy and FP32 trained on the same seeds
 *   search_judge.c   what pairs of trials tell: screening, and the final word
 *   search_rank.c    which layers lose most
 *   search_cost.c    bytes and milliseconds of a whole step
 *   search_state.c   what is on disk
 *   search_front.c   the Pareto front, as a list and as a picture
 *   search_result.c  what was found, for the caller
 *
 * What is tried follows from figures alone, and every figure is on disk before the next is measured: a search that goes
 * on makes the same decisions again, reading instead of measuring, until it comes to what was not measured yet.
 */
#ifndef MIXT_CHOOSE_SEARCH_H
#define MIXT_CHOOSE_SEARCH_H

#include "base/alloc.h"
#include "judge/judge.h"
#include "mixt/search.h"
#include "run/open/experiment.h"

#include <jansson.h>

/** What a group of layers may compute in; one letter each in candidates.jsonl. */
typedef struct mixt__search_level {
    char letter;
    const char *name; // "bf16", or with what is kept for the backward pass: "bf16/fp8_e4m3"
    mixt_dtype format;
    mixt_dtype keep; // NONE: activations are kept as they are
} mixt__search_level;

enum { MIXT_SEARCH_FULL = 'f' }; // the letter of FP32

#define MIXT_SEARCH_MADE_BY "mixt search" // in the policy file

/** The level of a letter; NULL: there is none. */
const mixt__search_level *mixt__search_level_of(char letter);
/** All levels but FP32, one after the other; NULL past the last. */
const mixt__search_level *mixt__search_level_at(int index);

/* ---- groups ---- */

/** Layers that take one format together. */
typedef struct mixt__search_group {
    const char **layers;
    int64_t count;
    double flops; // of their matrix work in one pass over a batch, forward and backward
} mixt__search_group;

typedef struct mixt__search_groups {
    mixt__arena arena;
    mixt__search_group *items;
    int64_t count;
    double flops; // of all
} mixt__search_groups;

/** Finds them in a compiled training step, in the order in which they run. */
mixt_status mixt__search_groups_find(const mixt__graph *graph, mixt__search_groups *groups);
void mixt__search_groups_free(mixt__search_groups *groups);
/** As JSON: a list of lists of names. NULL when memory ends. */
json_t *mixt__search_groups_json(const mixt__search_groups *groups);

/* ---- policies that are tried ---- */

typedef enum mixt__search_part {
    MIXT_SEARCH_SEEN,  // trials that the search goes by; all policies share FP32's
    MIXT_SEARCH_FRESH, // trials of the final word: seeds, FP32 runs and validation batches of their own
    MIXT_SEARCH_PARTS
} mixt__search_part;

enum {
    MIXT_SEARCH_MORE = 4, // where the first trials do not tell, so many times as many are made
    MIXT_SEARCH_TRIALS_ALL = MIXT_SEARCH_PAIRS_MAX, // MORE times the most trials
    MIXT_SEARCH_FINALISTS_MAX = 8,                  // policies whose final word is asked for
    MIXT_SEARCH_LOOKS_MAX = 8                       // at fresh pairs of one policy
};

/** Losses after each trial; INFINITY: it diverged. */
typedef struct mixt__search_losses {
    double at[MIXT_SEARCH_TRIALS_ALL];
    int64_t count;
} mixt__search_losses;

/** A policy and what is known of it. */
typedef struct mixt__search_try {
    char *levels;   // a letter for each group
    char *line;     // the policy for people
    double ms;      // NaN: not measured
    int64_t memory; // 0: not planned
    mixt__search_losses losses[MIXT_SEARCH_PARTS];
    mixt__search_losses fp32;             // FP32's on the seeds of the fresh trials
    int64_t finalist;                     // which policy it was whose final word was asked for, from 1; 0: none
    int64_t looks[MIXT_SEARCH_LOOKS_MAX]; // fresh pairs of each look: the last is the final word so far, or what is
    int look_count;                       // still to be made
} mixt__search_try;

/* ---- on disk ---- */

typedef struct mixt__search_state {
    char *path, *folder; // of the policy; of all that was tried
    int lock, rows;      // descriptors, -1: not open
    char config[20];     // checksum of the configuration
    json_t *facts;       // by name: what was settled once for all
    mixt__search_try **tries;
    int64_t count, capacity;
} mixt__search_state;

/** Opens the folder beside `path`, or makes it, and takes its lock. Rows that are there are read if they are of the
 *  same configuration and the same header; else the text says what differs.
 *  @param header what the search was asked for, a flat object; becomes the first row
 *  @param fresh forget all that is there */
mixt_status mixt__search_state_open(mixt__search_state *state, const char *path, const mixt_config *config,
                                    const json_t *header, bool fresh);
void mixt__search_state_close(mixt__search_state *state);
/** The try with these levels; made where it is not there yet. NULL when memory ends. */
mixt__search_try *mixt__search_state_find(mixt__search_state *state, const char *levels);
/** Appends what is known of it. */
mixt_status mixt__search_state_save(const mixt__search_state *state, const mixt__search_try *tried, json_t *derived);
/** What was settled under a name; NULL: nothing yet. Stays the state's. */
const json_t *mixt__search_state_fact(const mixt__search_state *state, const char *name);
/** Settles it. @param value taken over */
mixt_status mixt__search_state_settle(mixt__search_state *state, const char *name, json_t *value);
/** The path of a file in the folder; returns `path`. */
const char *mixt__search_state_file(const mixt__search_state *state, const char *name, char *path, size_t size);
/** Puts a text into a file of the folder, as a whole. */
mixt_status mixt__search_state_write(const mixt__search_state *state, const char *name, const char *text);

/* ---- the search ---- */

typedef struct mixt__search {
    mixt_search_options options;
    mixt_config *config;
    mixt__experiment e; // its trainer is never allocated: it plans
    mixt__search_groups groups;
    char *from;        // the checkpoint that trials go on from; NULL: they begin as a run does
    int64_t from_step; // its update
    mixt__search_state state;
    mixt__search_try *fp32, *best;
    int64_t steps[MIXT_SEARCH_PARTS], trials; // updates of a trial, 0: not settled; trials of a policy
    int64_t finalists;                        // whose final word was asked for
    bool complete, stopped;
    bool finishing;         // nothing is screened any more: the final word is on
    double started, budget; // seconds
    double trial_seconds;   // of one trial that is screened by, the longest so far
    double pair_seconds;    // of one fresh pair, likewise
    int64_t reserved;       // fresh pairs for which time is kept back
    const char *phase;
    char device[256]; // what bits and times depend on: "cuda: NVIDIA H200", "cpu: AMD EPYC …, avx512, 4 threads"
} mixt__search;

/** The try with these levels, with its line for people; made where it is not there yet. */
mixt_status mixt__search_get(mixt__search *s, const char *levels, mixt__search_try **tried);
/** Tells how far it is. @param text of a part or a note; of a step it is the best so far */
void mixt__search_tell(mixt__search *s, mixt_progress_kind kind, const char *text);
/** Whether to end now: someone asked, or the time is over. While policies are screened, time for the final word is kept
 *  back. */
bool mixt__search_halted(const mixt__search *s);
/** What is to be small, of a try; NaN: not known. */
double mixt__search_cost(const mixt__search *s, const mixt__search_try *tried);
/* ---- what pairs of trials tell ---- */

/** By how much a policy is worse than FP32, as a share of its loss, trial by trial; INFINITY: it diverged.
 *  @return how many trials both have */
int64_t mixt__search_pairs(const mixt__search *s, const mixt__search_try *tried, mixt__search_part part,
                           double worse[MIXT_SEARCH_TRIALS_ALL]);
/** What the search itself goes by: NO where a policy was shown to lose more than the tolerance, else YES where it has
 *  the trials that it is to have, or fewer tell. Not the final word. */
mixt_verdict mixt__search_screen(const mixt__search *s, const mixt__search_try *tried);
/** The final word on a policy by its fresh pairs; where it has none, what the pairs say that the search has seen. */
mixt_judgement mixt__search_judge(const mixt__search *s, const mixt__search_try *tried);
/** The same of one part. */
mixt_judgement mixt__search_judge_part(const mixt__search *s, const mixt__search_try *tried, mixt__search_part part);
/** Whether a policy is faster, or smaller, than FP32. */
mixt_judgement mixt__search_worth(const mixt__search *s, const mixt__search_try *tried);
/** Whether all fresh pairs are made that were asked for, and are the final word. */
bool mixt__search_has_word(const mixt__search_try *tried);
/** Fresh pairs that a first look at a policy takes, by the trials that the search has seen. */
int64_t mixt__search_planned(const mixt__search *s, const mixt__search_try *tried);
/** Makes fresh pairs until they tell, no more can be made in the time, or the search is halted. */
mixt_status mixt__search_finish(mixt__search *s, mixt__search_try *tried);

/** Puts what is known of a try on disk. */
mixt_status mixt__search_save(const mixt__search *s, const mixt__search_try *tried);

/** The policy with these levels, without evidence. */
mixt_status mixt__search_policy(const mixt__search_groups *groups, const char *levels, mixt_policy **policy);
/** The same for people: "fp16; fc.1, fc.2: fp32". For mixt__free; NULL when memory ends. */
char *mixt__search_line(const mixt__search_groups *groups, const char *levels);
/** Writes the policy of a try with its evidence into the file that the user named. */
mixt_status mixt__search_write_policy(mixt__search *s, const mixt__search_try *tried);

/** Plans its memory, and for the goal time measures its milliseconds, where that is not known yet. */
mixt_status mixt__search_measure_cost(mixt__search *s, mixt__search_try *tried);
/** Trains the trials that the search goes by and that are not known yet, until they tell, or the search is halted. */
mixt_status mixt__search_measure_loss(mixt__search *s, mixt__search_try *tried);
/** Trains a fresh pair: FP32, then the policy. */
mixt_status mixt__search_measure_pair(mixt__search *s, mixt__search_try *tried);
/** A trainer as the experiment's, with a policy of its own and another seed; for mixt__trainer_close. */
mixt_status mixt__search_trainer(mixt__search *s, const mixt_policy *policy, int64_t seed_offset, bool still,
                                 mixt_trainer **trainer);

/** The front of what is known so far: tries that nothing cheaper equals, the cheapest first. For mixt__free. */
mixt_status mixt__search_front(const mixt__search *s, mixt__search_try ***front, int64_t *count);
/** Writes it: front.json and front.svg. */
mixt_status mixt__search_write_front(const mixt__search *s);

/** Opens all that a search needs; `s` is all zero. */
mixt_status mixt__search_open(mixt__search *s, const mixt_config *config, const mixt_search_options *options);
/** Settles the updates of a trial where they are not: so many that the budget has time for all that a search usually
 *  tries. Not where it is halted before. */
mixt_status mixt__search_settle_seen(mixt__search *s);
/** The same of a fresh trial: what is left of the budget goes into longer ones. */
mixt_status mixt__search_settle_fresh(mixt__search *s, int64_t pairs);
/** All of it: `s` is all zero. Ends early where it is halted; what was found is in `s` for mixt__search_close. */
mixt_status mixt__search_run(mixt__search *s, const mixt_config *config, const mixt_search_options *options);
void mixt__search_close(mixt__search *s);

#endif
