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

static void *take(mixt__device *device, size_t bytes)
{
    void *block = mixt__alloc_uninit(bytes);
    __atomic_add_fetch(&device->held, mixt__alloc_size(block), __ATOMIC_RELAXED);
    return block;
}

static void give_back(mixt__device *device, void *block)
{
    __atomic_sub_fetch(&device->held, mixt__alloc_size(block), __ATOMIC_RELAXED);
    mixt__free(block);
}

static size_t available(mixt__device *device)
{
    (void)device;
    return mixt__memory_available();
}

static size_t allocated(mixt__device *device)
{
    return __atomic_load_n(&device->held, __ATOMIC_RELAXED);
}

static mixt_status zero(mixt__device *device, void *block, size_t bytes)
{
    mixt__device_enter(device);
    mixt__parallel_zero(block, bytes);
    return MIXT_OK;
}

static mixt_status copy(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    (void)device;
    memcpy(dst, src, bytes);
    return MIXT_OK;
}

static mixt_status synchronize(mixt__device *device)
{
    (void)device;
    return MIXT_OK;
}

enum { MARKS_MAX = 1 << 16 };

static mixt_status mark(mixt__device *device, int64_t index)
{
    if (index >= MARKS_MAX)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "a plan of more than %d calls cannot be timed call by call",
                          MARKS_MAX);
    if (!device->own)
        device->own = mixt__alloc(MARKS_MAX * sizeof(double));
    if (!device->own)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for time marks");
    ((double *)device->own)[index] = mixt__time_now();
    return MIXT_OK;
}

static mixt_status between(mixt__device *device, int64_t first, int64_t last, double *seconds)
{
    const double *marks = device->own;
    *seconds = marks[last] - marks[first];
    return MIXT_OK;
}

static size_t update_workspace(mixt__device *device, const mixt__segment *segments, int64_t segment_count)
{
    (void)device;
    return mixt__update_workspace(segments, segment_count);
}

static mixt_status gradient_stats(mixt__device *device, const mixt__update *update)
{
    mixt__device_enter(device);
    return mixt__cpu_gradient_stats(update);
}

static mixt_status step_control(mixt__device *device, const mixt__update *update)
{
    mixt__device_enter(device);
    return mixt__cpu_step_control(update);
}

static mixt_status optimizer_step(mixt__device *device, const mixt__update *update)
{
    mixt__device_enter(device);
    return mixt__cpu_optimizer_step(update);
}

static mixt_status lamb_moments(mixt__device *device, const mixt__update *update)
{
    mixt__device_enter(device);
    return mixt__cpu_lamb_moments(update);
}

static mixt_status lamb_weights(mixt__device *device, const mixt__update *update, const float *ratios)
{
    mixt__device_enter(device);
    return mixt__cpu_lamb_weights(update, ratios);
}

static mixt_status sum_segments(mixt__device *device, const mixt__update *update)
{
    mixt__device_enter(device);
    return mixt__cpu_sum_segments(update);
}

static mixt_status check_segments(mixt__device *device, const mixt__update *update)
{
    mixt__device_enter(device);
    return mixt__cpu_check_segments(update);
}

static mixt_status judge_sums(mixt__device *device, const mixt__update *update)
{
    mixt__device_enter(device);
    return mixt__cpu_judge_sums(update);
}

static mixt_status check_statistics(mixt__device *device, const mixt__update *update)
{
    mixt__device_enter(device);
    return mixt__cpu_check_statistics(update);
}

static mixt_status sum_blocks(mixt__device *device, mixt__still_block *blocks, int64_t count, mixt__damage *damage)
{
    mixt__device_enter(device);
    return mixt__cpu_sum_blocks(blocks, count, damage);
}

static mixt_status open_device(int number, int threads, mixt__device **device)
{
    mixt__device *d = mixt__alloc(sizeof *d);
    *device = d;
    if (d)
        d->team = mixt__team_open(threads);
    if (!d || !d->team) {
        mixt__free(d);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a CPU's threads");
    }
    d->backend = &mixt__backend_cpu;
    d->number = number;
    return MIXT_OK;
}

static void close_device(mixt__device *device)
{
    if (device == &mixt__device_cpu)
        return;
    mixt__team_close(device->team);
    mixt__free(device->own);
    mixt__free(device);
}

const mixt__backend mixt__backend_cpu = {
    .name = "cpu",
    .open = open_device,
    .close = close_device,
    .kernels = kernels,
    .fused = MIXT_FUSED_RELU | MIXT_FUSED_ROW_SUMS | MIXT_FUSED_LOSS | MIXT_FUSED_HEAD,
    .host_memory = true,
    .multiplies = MIXT_MAY_MULTIPLY_CPU,
    .alloc = take,
    .free = give_back,
    .alloc_host = take,
    .free_host = give_back,
    .available = available,
    .allocated = allocated,
    .zero = zero,
    .upload = copy,
    .download = copy,
    .copy = copy,
    .synchronize = synchronize,
    .mark = mark,
    .between = between,
    .update_workspace = update_workspace,
    .gradient_stats = gradient_stats,
    .update_chunk = MIXT_CPU_CHUNK,
    .coded_moments = true,
    .join_stats = mixt__cpu_join_stats,
    .step_control = step_control,
    .optimizer_step = optimizer_step,
    .lamb_moments = lamb_moments,
    .lamb_ratio = mixt__cpu_lamb_ratio,
    .lamb_weights = lamb_weights,
    .sum_segments = sum_segments,
    .check_segments = check_segments,
    .judge_sums = judge_sums,
    .check_statistics = check_statistics,
    .sum_blocks = sum_blocks,
};

mixt__device mixt__device_cpu = {.backend = &mixt__backend_cpu};
