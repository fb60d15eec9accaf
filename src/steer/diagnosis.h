/* Diagnosis by replay: what made training go wrong. See mixt/monitor.h for what comes out. */
#ifndef MIXT_STEER_DIAGNOSIS_H
#define MIXT_STEER_DIAGNOSIS_H

#include "mixt/monitor.h"
#include "steer/snapshots.h"

#include <jansson.h>

/** The texts of a diagnosis, which its pointers lead to. */
typedef struct mixt__diagnosis_words {
    char layers[MIXT_DIAGNOSIS_LAYERS][128];
    char op[48], parameter[128], text[512];
} mixt__diagnosis_words;

typedef struct mixt__diagnose_request {
    mixt__snapshots *ring;        // with its trainer
    const mixt_data *data;        // that it trains on
    int64_t step;                 // the update at which something was seen; 0: the newest
    mixt_cause symptom;           // what was seen
    mixt__diagnosis_words *words; // for what is found: they must live as long as it is looked at
    double healthy;               // the loss at which training was healthy; 0 or NaN: not known
    double began;                 // the first loss, before anything was learned; likewise
    bool stay; // leave the trainer where it was, and the ring as it is; else both go back to the good state
} mixt__diagnose_request;

/** Goes back to a good state, computes the same updates again, and compares. The trainer has its own policy and, to the
 *  bit, the state of update diagnosis->good afterwards (or, with `stay`, the one that it had); its evaluation is to be
 *  planned anew. Where it fails half way, the trainer is put back with `stay`, else it is somewhere in between; one
 *  that is broken is of no use any more. Ranks ask all at the same update, and it fails on all of them.
 *  @param diagnosis filled in on success, whatever was found */
mixt_status mixt__diagnose(const mixt__diagnose_request *request, mixt_diagnosis *diagnosis);

/** The row of events.jsonl. @param step, time as of any row */
json_t *mixt__diagnosis_row(const mixt_diagnosis *diagnosis, int64_t step, double time);

#endif
