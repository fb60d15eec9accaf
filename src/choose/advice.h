/* The object behind mixt_advice, for the files of this folder: advise.c makes candidates, trial.c times them,
 * verdict.c judges them, remedies.c says what holds the chosen one back. */
#ifndef MIXT_CHOOSE_ADVICE_H
#define MIXT_CHOOSE_ADVICE_H

#include "choose/cost.h"
#include "machine/machine.h"
#include "mixt/run.h"

enum {
    MIXT_CANDIDATES_MAX = 8, // the four names, a policy of one's own, FP8, two by layer
    MIXT_REMEDIES_MAX = 12
};

/** What a candidate costs in exactness and trouble, least first: of two that are equally fast, the first is taken. */
typedef enum mixt__rank {
    MIXT_RANK_FP32,
    MIXT_RANK_TF32,
    MIXT_RANK_BF16,
    MIXT_RANK_FP16,
    MIXT_RANK_RULES, // a policy with rules
    MIXT_RANK_FP8,
} mixt__rank;

typedef struct mixt__contender {
    mixt_advice_candidate out;
    mixt_policy *policy; // NULL: mixt cannot train in it
    mixt_dtype format;   // of most of its matrix work
    mixt__rank rank;
    bool units;   // the machine multiplies in it
    bool storage; // it has no units, and yet saves memory: a CPU widens it on the way
    bool fits;
    bool compiled; // memory and cost are known
    bool paired;   // `lost` was measured on the same batches as FP32
    bool recompute;
    size_t activations; // bytes that they may take, with recompute
    int64_t batch, accumulate;
    int64_t split;        // parts that a batch is passed in, so that it fits
    mixt__step_cost cost; // modelled, also where it was measured
    size_t step_memory;   // of the step alone
    double noise;         // standard error of a measured time, as a share of it
} mixt__contender;

struct mixt_advice {
    mixt__handle handle;
    mixt__arena arena; // of the texts
    mixt_machine *machine;
    bool assumed;
    size_t limit;
    double lose, price;
    int64_t updates; // of the run
    int64_t split;   // parts of a batch, as the configuration has it
    mixt__contender candidates[MIXT_CANDIDATES_MAX];
    int count;
    mixt_advice_choice choice;
    mixt_remedy remedies[MIXT_REMEDIES_MAX];
    int remedy_count;
};

/** A text in the advice's arena; "" when memory has ended, which the caller may ignore. */
const char *mixt__advice_text(mixt_advice *advice, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Chooses among the candidates, and gives each a verdict and a reason. Returns the chosen one; where nothing fits, the
 *  one that comes closest, with choice.found false. */
mixt__contender *mixt__verdict(mixt_advice *advice);

/** Sets the time of an update, and what follows from it. */
void mixt__advice_time(const mixt_advice *advice, mixt__contender *contender, double seconds, const char *source);

#endif
