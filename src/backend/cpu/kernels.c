/* The CPU backend: its table of candidates and its memory. */
#include "backend/cpu/kernels.h"

#include "base/alloc.h"
#include "base/memory.h"
#include "backend/cpu/training.h"

#include <string.h>

static const struct {
    const mixt__op *op;
    const mixt__kernel *const *kernels;
} table[] = {
#define MIXT_OP(name) {&mixt__op_##name, mixt__cpu_##name##_kernels},
#include "ops/ops.def"
#undef MIXT_OP
};

static const mixt__kernel *const *kernels(const mixt__op *op)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].op == op)
            return table[i].kernels;
    return NULL;
}

static mixt_status zero(void *block, size_t bytes)
{
    memset(block, 0, bytes);
    return MIXT_OK;
}

static mixt_status copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
    return MIXT_OK;
}

static mixt_status synchronize(void)
{
    return MIXT_OK;
}

const mixt__backend mixt__backend_cpu = {
    .name = "cpu",
    .kernels = kernels,
    .alloc = mixt__alloc_uninit,
    .free = mixt__free,
    .available = mixt__memory_available,
    .zero = zero,
    .upload = copy,
    .download = copy,
    .synchronize = synchronize,
    .gradient_stats = mixt__cpu_gradient_stats,
    .step_control = mixt__cpu_step_control,
    .optimizer_step = mixt__cpu_optimizer_step,
};
