/* Adapters of a run: what its configuration says of them. */
#ifndef MIXT_RUN_LORA_H
#define MIXT_RUN_LORA_H

#include "config/config.h"
#include "model/lora.h"
#include "base/alloc.h"

/** The adapters that a configuration describes. @param arena of the texts */
mixt_status mixt__experiment_lora(const mixt_config *config, mixt__arena *arena, mixt__lora *lora);

#endif
