/* Diagnosis of a run's trouble by replay (steer/diagnosis.h): its row of events.jsonl, and what the controller makes of
 * it. */
#ifndef MIXT_RUN_DIAGNOSE_H
#define MIXT_RUN_DIAGNOSE_H

#include "run/run.h"

/** Finds out what went wrong at update `step`, writes the row and tells observers. The trainer is left as it was. False
 *  where updates cannot be computed again: nothing is known then. */
bool mixt__run_diagnose(mixt_run *run, int64_t step, mixt_cause symptom, mixt_diagnosis *diagnosis);
/** Writes the row of a diagnosis and tells observers. */
void mixt__run_tell_diagnosis(mixt_run *run, int64_t step, const mixt_diagnosis *diagnosis);
/** After the trainer was compiled otherwise for a while: evaluation is planned anew. @param before what it was */
void mixt__run_replan(mixt_run *run, const mixt__executable *before);
/** What the controller is told; lets the run go back to the state that the diagnosis calls good. */
void mixt__run_finding(mixt_run *run, const mixt_diagnosis *diagnosis, mixt_finding *finding);

#endif
