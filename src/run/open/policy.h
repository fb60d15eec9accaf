/* Loss scaling and clipping that a policy brings, as keys of a run's configuration. */
#ifndef MIXT_RUN_POLICY_H
#define MIXT_RUN_POLICY_H

#include "run/run.h"

/** Whether a key of the configuration is one of loss scaling and clipping, which a policy decides where it is not set.
 */
bool mixt__policy_decides(mixt__config_key key);
/** What the configuration sets of those. @param loss_scale memory of one that is a number */
mixt_policy_settings mixt__policy_settings_set(const mixt_config *config, char loss_scale[MIXT_POLICY_SETTING_TEXT]);

/** Sets what the configuration leaves to its policy (the one that `precision` names) to what that policy says. */
mixt_status mixt__run_take_policy(mixt_config *config);
/** The same for a run that goes on under another policy, whose configuration has every key set: what `before` had from
 *  its own policy, or had not set, is now what the new one says, else the default. */
mixt_status mixt__run_change_policy(mixt_config *config, const mixt_config *before);

/** A copy of a configuration whose policy is `policy`, under the one `now`, a phase of it: what it has from the policy,
 *  or has not set, is what `now` says. */
mixt_status mixt__policy_config(const mixt_config *config, const mixt_policy *policy, const mixt_policy *now,
                                mixt_config **copy);

/** What a run under this policy ends with: of phases the last one. */
mixt_status mixt__run_last_policy(const mixt_policy *all, mixt_policy **policy);

/** Gives the configuration of a run the policy of `before`, with what that decided, where it has another by now. */
mixt_status mixt__run_return_policy(mixt_config *config, const mixt_config *before);

/** Lets the run go on under the policy that was asked for, where the trainer takes it: directory, configuration and
 *  history too. What it does not take, or cannot be written, is told as a warning. True when the policy is the new one.
 */
bool mixt__run_set_policy(mixt_run *run);
/** The same for a policy that it takes over; a failure is returned, and the run goes on as it was. */
mixt_status mixt__run_adopt_policy(mixt_run *run, mixt_policy *policy);
/** The same for another configuration under the policy that the run has: numbers of the update. Taken over unless it
 *  fails. */
mixt_status mixt__run_adopt_config(mixt_run *run, mixt_config *next);
/** Gives a run's configuration the values that `before` has of all that decisions set. */
mixt_status mixt__run_return_decided(mixt_config *config, const mixt_config *before);

#endif
