/* Phases of a run: its policy may change at updates that are known before it begins.
 *
 * Which phase counts is a function of the update's number alone, so that a run that goes on from a checkpoint and one
 * that never stopped have the same one. Ends are counted in updates from the run's beginning on (the run's policy.yaml
 * has them so): making a run longer does not move them.
 */
#ifndef MIXT_RUN_PHASES_H
#define MIXT_RUN_PHASES_H

#include "run/run.h"

/** Takes a policy, with phases or without, as the experiment's from update number `update` on (0: the first).
 *  @param now receives what counts there, the format of train.activations included, for mixt_policy_free. What the
 *  experiment had stays on failure. */
mixt_status mixt__phases_take(mixt__experiment *e, const mixt_policy *policy, int64_t update, mixt_policy **now);
void mixt__phases_close(mixt__phases *phases);

/** Whether update number `update` is made in another phase than the one that counts now. */
bool mixt__phases_due(const mixt__experiment *e, int64_t update);
/** Whether a phase cannot be compiled because activations were given fewer bytes (train.recompute) than it can do with:
 *  what is enough for one may not be for another. It then has the least that does. */
bool mixt__phases_too_little(const mixt__experiment *e, mixt_status status);
/** The phase of update number `update`: entered where it is another one. */
mixt_status mixt__phases_reach(mixt__experiment *e, int64_t update);
/** Compiles the step for a phase, which then counts; what was compiled stays when that fails. */
mixt_status mixt__phases_enter(mixt__experiment *e, int64_t index);

/** The run's policy: all phases of it. */
const mixt_policy *mixt__run_policy(const mixt_run *run);
/** Compiles every phase, which takes no memory, and counts what the run holds in it, validation cut to train.memory:
 *  before it trains. The one that counts is compiled last. A device that chooses algorithms by time has then chosen for
 *  all of them, so that they are the same in a run that goes on from any checkpoint. */
mixt_status mixt__run_plan_phases(mixt_run *run);
/** The one in which the run takes the most memory, by that plan. */
int64_t mixt__run_largest_phase(const mixt_run *run);
/** The phase that training begins in, or goes on in, where another one was looked at. Refuses a run that has no room
 * for one to come. */
mixt_status mixt__run_first_phase(mixt_run *run);
/** Writes the phases with their ends in updates into the run's directory, where there are any. */
mixt_status mixt__run_keep_phases(mixt_run *run);
/** Tells of phases, and of those that are never reached, as NOTEs; nothing without phases. */
void mixt__run_tell_phases(mixt_run *run);
/** Goes on in the phase of update number `update`, the next one: an event of the run. All results are in. */
mixt_status mixt__run_next_phase(mixt_run *run, int64_t update);

#endif
