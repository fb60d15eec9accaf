/* A search for a policy under way, for the files of this folder:
 *
 *   search.c         what is tried, in which order, and when it ends
 *   search_open.c    options, data, model, how long a trial is
 *   search_groups.c  which layers are decided together
 *   search_policy.c  from a format for each group to a policy and back
 *   search_loss.c    training and comparing: the measure of what a policy loses
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
    MIXT_SEARCH_SEEN,     // trials that the search decides by
    MIXT_SEARCH_HELD_OUT, // trials with seeds and validation batches of their own
    MIXT_SEARCH_PARTS
} mixt__search_part;

/** Where the first trials do not tell, so many times as many are made. */
enum { MIXT_SEARCH_MORE = 4, MIXT_SEARCH_TRIALS_ALL = MIXT_SEARCH_MORE * MIXT_SEARCH_TRIALS_MAX };

/** A policy and what is known of it. */
typedef struct mixt__search_try {
    char *levels;                                             // a letter for each group
    char *line;                                               // the policy for people
    double ms;                                                // NaN: not measured
    int64_t memory;                                           // 0: not planned
    double losses[MIXT_SEARCH_PARTS][MIXT_SEARCH_TRIALS_ALL]; // after each trial; INFINITY: it diverged
    int64_t trials[MIXT_SEARCH_PARTS];
} mixt__search_try;

/** Mean and standard error of the relative change against FP32, over the trials that both have. */
typedef struct mixt__search_change {
    double mean, error; // mean INFINITY: one diverged; NaN: no trial. error NaN: one trial says nothing about it
    int64_t trials;
} mixt__search_change;

mixt__search_change mixt__search_change_of(const mixt__search_try *tried, const mixt__search_try *fp32,
                                           mixt__search_part part);

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
    mixt__search_state state;
    mixt__search_try *fp32, *best;
    int64_t steps[MIXT_SEARCH_PARTS], trials; // updates of a trial, 0: not settled; trials of a policy
    bool validated, complete, stopped;
    bool validating;        // the search itself is over
    double started, budget; // seconds
    double trial_seconds;   // of one trial, the longest so far
    const char *phase;
    char device[256]; // what bits and times depend on: "cuda: NVIDIA H200", "cpu: AMD EPYC …, avx512, 4 threads"
} mixt__search;

/** The try with these levels, with its line for people; made where it is not there yet. */
mixt_status mixt__search_get(mixt__search *s, const char *levels, mixt__search_try **tried);
/** Tells how far it is. @param text of a part or a note; of a step it is the best so far */
void mixt__search_tell(mixt__search *s, mixt_progress_kind kind, const char *text);
/** Whether to end now: someone asked, or the time is over. While the search is under way, time to validate what it
 *  found is kept back. */
bool mixt__search_halted(const mixt__search *s);
/** What is to be small, of a try; NaN: not known. */
double mixt__search_cost(const mixt__search *s, const mixt__search_try *tried);
/** Trials of a part that a try has to have. */
int64_t mixt__search_wanted(const mixt__search *s, const mixt__search_try *tried, mixt__search_part part);
/** Whether its change on a part and the standard error of that are within the tolerance. */
bool mixt__search_within(const mixt__search *s, const mixt__search_try *tried, mixt__search_part part);

/** Whether the trials made so far tell that it loses too much: the rest need not be made. */
bool mixt__search_lost(const mixt__search *s, const mixt__search_try *tried, mixt__search_part part);
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
/** Trains the trials of a part that are not known yet, until they are enough to tell, or the search is halted. Of
 * held-out trials there are as many as the search has needed: a number that they themselves do not move. */
mixt_status mixt__search_measure_loss(mixt__search *s, mixt__search_try *tried, mixt__search_part part);
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
/** The same of a held-out trial: what is left of the budget goes into longer ones. */
mixt_status mixt__search_settle_held_out(mixt__search *s);
/** All of it: `s` is all zero. Ends early where it is halted; what was found is in `s` for mixt__search_close. */
mixt_status mixt__search_run(mixt__search *s, const mixt_config *config, const mixt_search_options *options);
void mixt__search_close(mixt__search *s);

#endif
