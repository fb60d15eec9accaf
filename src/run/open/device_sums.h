/* Joins the GPUs of ranks, so that gradients are summed where they lie (dist.transport=nccl). */
#ifndef MIXT_RUN_DEVICE_SUMS_H
#define MIXT_RUN_DEVICE_SUMS_H

#include "run/open/experiment.h"

/** Whether a configuration asks for it and can have it; failures name what does not go together. */
mixt_status mixt__device_sums_asked(const mixt_config *config, bool *asked);
/** Joins them where the experiment is to; all ranks call it once the device is open and the trainer made. */
mixt_status mixt__device_sums_join(mixt__experiment *e);

#endif
