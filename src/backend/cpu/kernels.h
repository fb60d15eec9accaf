/* The candidates of each op on the CPU: each kernel file exports one NULL-ended list, best first, plain C last. */
#ifndef MIXT_BACKEND_CPU_KERNELS_H
#define MIXT_BACKEND_CPU_KERNELS_H

#include "backend/backend.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#define MIXT_OP(name) extern const mixt__kernel *const mixt__cpu_##name##_kernels[];
#include "ops/ops.def"
#undef MIXT_OP

#endif
