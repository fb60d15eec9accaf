/* Loss scaling and clipping that a policy brings, as keys of a run's configuration. */
#ifndef MIXT_RUN_POLICY_H
#define MIXT_RUN_POLICY_H

#include "config/config.h"

/** Sets what the configuration leaves to its policy (the one that `precision` names) to what that policy says. */
mixt_status mixt__run_take_policy(mixt_config *config);
/** The same for a run that goes on under another policy, whose configuration has every key set: what `before` had from
 *  its own policy, or had not set, is now what the new one says, else the default. */
mixt_status mixt__run_change_policy(mixt_config *config, const mixt_config *before);

#endif
