/* PEFT's adapter files of a run: settings taken from them, weights to begin with, written at the end. */
#ifndef MIXT_RUN_ADAPTER_H
#define MIXT_RUN_ADAPTER_H

#include "run/open/experiment.h"
#include "run/open/init.h"
#include "store/adapter.h"

#define MIXT_ADAPTER_FOLDER "adapter" // of a run

/** Gives a configuration that begins with an adapter (lora.init) what its files say and nobody has set. */
mixt_status mixt__adapter_config_fill(mixt_config *config);
/** Loads the adapter that `lora.init` names, if it names any; without `load` only sees whether it fits. */
mixt_status mixt__experiment_adapter_init(mixt__experiment *e, bool load, mixt__note *note, void *user);
/** Writes the adapters of a trainer into a folder that is there. @param tensors receives how many; NULL: nobody asks */
mixt_status mixt__experiment_adapter_write(mixt__experiment *e, const char *folder, bool overwrite, int64_t *tensors);
/** Whether a run's own files leave away what is frozen: it has adapters on weights that are elsewhere. */
bool mixt__adapter_only(const mixt_config *config);
/** A checksum of the weights that a run's adapters stand beside, as a text; NULL: they cannot be read, or there is no
 *  memory. */
json_t *mixt__adapter_base_sum(mixt__experiment *e);
/** Loads weights of a run, with those that its file leaves away: what the run began with. */
mixt_status mixt__experiment_load_weights(mixt__experiment *e, const char *path);
/** Loads the adapter that `lora.init` names into parameters that hold all other weights already. */
mixt_status mixt__adapter_load(const mixt_config *config, mixt__params *params);

#endif
