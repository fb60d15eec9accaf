/* What the zoo's models are called in files of other programs, and beginning a run with such a file. */
#ifndef MIXT_CLI_INTERCHANGE_H
#define MIXT_CLI_INTERCHANGE_H

#include "cli/experiment.h"
#include "store/weights.h"

/** The names of a configuration's model in other programs (NULL: it has none there), and what shapes do not tell. */
mixt_status cli_names(const mixt_config *config, const mixt__names **names, mixt__name_facts *facts);

/** Loads the weights that `init` names, if it names any, and says on stderr what was taken and what was not. */
mixt_status cli_init(cli_experiment *e, bool quiet);

/** Whether that file is there and fits the model; loads nothing. */
mixt_status cli_init_check(cli_experiment *e);

#endif
