/* The CPU's versions of the passes that end a training step. */
#ifndef MIXT_BACKEND_CPU_UPDATE_TRAINING_H
#define MIXT_BACKEND_CPU_UPDATE_TRAINING_H

#include "backend/training.h"

mixt_status mixt__cpu_gradient_stats(const mixt__update *update);
mixt_status mixt__cpu_step_control(const mixt__update *update);
mixt_status mixt__cpu_optimizer_step(const mixt__update *update);

#endif
