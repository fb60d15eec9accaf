/* The CPU backend: its table of candidates and its memory. */
#include "backend/cpu/kernels.h"

#include "backend/cpu/update/segment_chunks.h"
#include "backend/cpu/update/training.h"
#include "base/alloc.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/threads.h"

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
    mixt__parallel_zero(block, bytes);
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

enum { MARKS_MAX = 1 << 16 };
static double marks[MARKS_MAX];

static mixt_status mark(int64_t index)
{
    if (index >= MARKS_MAX)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "a plan of more than %d calls cannot be timed call by call",
                          MARKS_MAX);
    marks[index] = mixt__time_now();
    return MIXT_OK;
}

static mixt_status between(int64_t first, int64_t last, double *seconds)
{
    *seconds = marks[last] - marks[first];
    return MIXT_OK;
}

const mixt__backend mixt__backend_cpu = {
    .name = "cpu",
    .kernels = kernels,
    .fused = MIXT_FUSED_RELU | MIXT_FUSED_ROW_SUMS | MIXT_FUSED_LOSS | MIXT_FUSED_HEAD,
    .host_memory = true,
    .alloc = mixt__alloc_uninit,
    .free = mixt__free,
    .alloc_host = mixt__alloc_uninit,
    .free_host = mixt__free,
    .available = mixt__memory_available,
    .allocated = mixt__alloc_bytes,
    .zero = zero,
    .upload = copy,
    .download = copy,
    .copy = copy,
    .synchronize = synchronize,
    .mark = mark,
    .between = between,
    .update_workspace = mixt__update_workspace,
    .gradient_stats = mixt__cpu_gradient_stats,
    .update_chunk = MIXT_CPU_CHUNK,
    .join_stats = mixt__cpu_join_stats,
    .step_control = mixt__cpu_step_control,
    .optimizer_step = mixt__cpu_optimizer_step,
    .lamb_moments = mixt__cpu_lamb_moments,
    .lamb_ratio = mixt__cpu_lamb_ratio,
    .lamb_weights = mixt__cpu_lamb_weights,
};
