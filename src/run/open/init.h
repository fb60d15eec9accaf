/* What the zoo's models are called in files of other programs, and beginning a run with such a file. */
#ifndef MIXT_RUN_INIT_H
#define MIXT_RUN_INIT_H

#include "run/open/experiment.h"
#include "store/weights.h"

/** The names of a configuration's model in other programs (NULL: it has none there), and what shapes do not tell. */
mixt_status mixt__experiment_names(const mixt_config *config, const mixt__names **names, mixt__name_facts *facts);

/** Takes a line for people. */
typedef void mixt__note(void *user, const char *format, ...);

/** Loads all weights of a compiled trainer from a folder of another program. `warn` hears what it has beside them. */
mixt_status mixt__experiment_load(mixt__experiment *e, const char *folder, mixt__note *warn, void *user);

/** Loads the weights that `init` names into parameters that are no adapters'. */
mixt_status mixt__experiment_base(mixt__experiment *e);
/** Loads the weights that `init` names, and the adapter of `lora.init`, if it names any; without `load` only sees
 * whether that file is there and fits the model. `note` hears what was taken and what was not; NULL: nobody does. */
mixt_status mixt__experiment_init(mixt__experiment *e, bool load, mixt__note *note, void *user);

#endif
