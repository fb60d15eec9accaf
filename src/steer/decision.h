/* Decisions as rows of events.jsonl, and rows as decisions again: what a replay reads. */
#ifndef MIXT_STEER_DECISION_H
#define MIXT_STEER_DECISION_H

#define MIXT_SKIP_SAMPLE "sample" // the key of a decision that leaves out a sample; else it is a batch

#include "mixt/monitor.h"
#include "mixt/policy.h"

#include <jansson.h>

/** A copy that owns its texts, for mixt__decision_free; those that are NULL become "", but for the policy. */
mixt_status mixt__decision_copy(const mixt_decision *decision, mixt_decision *copy);
void mixt__decision_free(mixt_decision *decision);

enum { MIXT_DECISION_TEXT = 1152 };
/** All of it for people: "back to step 100, fc.0 from fp16 to fp32: the loss is not finite". Returns `text`. */
const char *mixt__decision_text(const mixt_decision *decision, char text[MIXT_DECISION_TEXT]);

/** The row; NULL when memory ends. @param time seconds since the run began */
json_t *mixt__decision_row(const mixt_decision *decision, double time);
/** The decision of a row, for mixt__decision_free.
 *  @param found false where the row is of another kind, or says that a phase began. Fails on a row of this kind that
 * cannot be read. */
mixt_status mixt__decision_read(const json_t *row, mixt_decision *decision, bool *found);

/** The policy with the format that a PRECISION decision gives its layer, or its whole policy; for mixt_policy_free. */
mixt_status mixt__decision_policy(const mixt_decision *decision, const mixt_policy *now, mixt_policy **policy);

#endif
