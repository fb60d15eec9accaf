/* Calls of a device: backend.h says what each does.
 *
 * Those that a backend may not have are called only where it has them: device->backend->energy is NULL or not.
 */
#ifndef MIXT_BACKEND_CALLS_H
#define MIXT_BACKEND_CALLS_H

#include "backend/backend.h"
#include "base/alloc.h"

static inline void *mixt__device_alloc(mixt__device *device, size_t bytes)
{
    return device->backend->alloc(device, bytes);
}

static inline void mixt__device_free(mixt__device *device, void *block)
{
    device->backend->free(device, block);
}

static inline void *mixt__device_alloc_host(mixt__device *device, size_t bytes)
{
    return device->backend->alloc_host(device, bytes);
}

static inline void mixt__device_free_host(mixt__device *device, void *block)
{
    if (device->backend->host_memory || !mixt__alloc_holds()) // messages of ranks go there
        device->backend->free_host(device, block);
}

static inline size_t mixt__device_available(mixt__device *device)
{
    return device->backend->available(device);
}

static inline size_t mixt__device_allocated(mixt__device *device)
{
    return device->backend->allocated(device);
}

static inline mixt_status mixt__device_zero(mixt__device *device, void *block, size_t bytes)
{
    return device->backend->zero(device, block, bytes);
}

static inline mixt_status mixt__device_upload(mixt__device *device, void *dst, const void *host, size_t bytes)
{
    return device->backend->upload(device, dst, host, bytes);
}

static inline mixt_status mixt__device_download(mixt__device *device, void *host, const void *src, size_t bytes)
{
    return device->backend->download(device, host, src, bytes);
}

static inline mixt_status mixt__device_copy(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    return device->backend->copy(device, dst, src, bytes);
}

static inline mixt_status mixt__device_stage(mixt__device *device, int slot, const mixt__piece *pieces, int count,
                                             bool wait)
{
    return device->backend->stage(device, slot, pieces, count, wait);
}

static inline mixt_status mixt__device_fence(mixt__device *device, int slot)
{
    return device->backend->fence(device, slot);
}

static inline mixt_status mixt__device_wait(mixt__device *device, int slot)
{
    return device->backend->wait(device, slot);
}

static inline mixt_status mixt__device_synchronize(mixt__device *device)
{
    return device->backend->synchronize(device);
}

static inline mixt_status mixt__device_record(mixt__device *device, mixt_status (*issue)(void *argument),
                                              void *argument, mixt__recording **recording)
{
    return device->backend->record(device, issue, argument, recording);
}

static inline mixt_status mixt__device_replay(mixt__device *device, mixt__recording *recording)
{
    return device->backend->replay(device, recording);
}

static inline void mixt__device_forget(mixt__device *device, mixt__recording *recording)
{
    device->backend->forget(device, recording);
}

static inline mixt_status mixt__device_mark(mixt__device *device, int64_t index)
{
    return device->backend->mark(device, index);
}

static inline mixt_status mixt__device_between(mixt__device *device, int64_t first, int64_t last, double *seconds)
{
    return device->backend->between(device, first, last, seconds);
}

static inline mixt_status mixt__device_describe(mixt__device *device, mixt_gpu_info *info)
{
    return device->backend->describe(device, info);
}

static inline double mixt__device_energy(mixt__device *device)
{
    return device->backend->energy(device);
}

static inline size_t mixt__device_choices(mixt__device *device, char *text, size_t room)
{
    return device->backend->choices(device, text, room);
}

static inline void mixt__device_choose(mixt__device *device, const char *text, size_t bytes)
{
    device->backend->choose(device, text, bytes);
}

static inline void mixt__device_foresee(mixt__device *device, const mixt__call *calls, int64_t count)
{
    device->backend->foresee(device, calls, count);
}

static inline mixt_status mixt__device_multiply(mixt__device *device, float *dst, const float *src, const float *factor,
                                                int64_t count)
{
    return device->backend->multiply(device, dst, src, factor, count);
}

static inline mixt_status mixt__device_narrow(mixt__device *device, void *dst, mixt_dtype format, const float *src,
                                              int64_t count)
{
    return device->backend->narrow(device, dst, format, src, count);
}

static inline size_t mixt__device_update_workspace(mixt__device *device, const mixt__segment *segments,
                                                   int64_t segment_count)
{
    return device->backend->update_workspace(device, segments, segment_count);
}

static inline mixt_status mixt__device_gradient_stats(mixt__device *device, const mixt__update *update)
{
    return device->backend->gradient_stats(device, update);
}

static inline mixt_status mixt__device_step_control(mixt__device *device, const mixt__update *update)
{
    return device->backend->step_control(device, update);
}

static inline mixt_status mixt__device_optimizer_step(mixt__device *device, const mixt__update *update)
{
    return device->backend->optimizer_step(device, update);
}

static inline mixt_status mixt__device_lamb_moments(mixt__device *device, const mixt__update *update)
{
    return device->backend->lamb_moments(device, update);
}

static inline mixt_status mixt__device_lamb_weights(mixt__device *device, const mixt__update *update,
                                                    const float *ratios)
{
    return device->backend->lamb_weights(device, update, ratios);
}

static inline mixt_status mixt__device_sum_segments(mixt__device *device, const mixt__update *update)
{
    return device->backend->sum_segments(device, update);
}

static inline mixt_status mixt__device_check_segments(mixt__device *device, const mixt__update *update)
{
    return device->backend->check_segments(device, update);
}

static inline mixt_status mixt__device_judge_sums(mixt__device *device, const mixt__update *update)
{
    return device->backend->judge_sums(device, update);
}

static inline mixt_status mixt__device_check_statistics(mixt__device *device, const mixt__update *update)
{
    return device->backend->check_statistics(device, update);
}

static inline mixt_status mixt__device_sum_blocks(mixt__device *device, mixt__still_block *blocks, int64_t count,
                                                  mixt__damage *damage)
{
    return device->backend->sum_blocks(device, blocks, count, damage);
}

/** NULL is allowed. */
static inline void mixt__device_close(mixt__device *device)
{
    if (device)
        device->backend->close(device);
}

/** What the calling thread does next it does on this device, with its threads. */
static inline void mixt__device_enter(mixt__device *device)
{
    if (device->team)
        mixt__team_use(device->team);
    if (device->backend->enter)
        device->backend->enter(device);
}

/** Threads of a CPU, whoever asks. */
static inline int mixt__device_threads(const mixt__device *device)
{
    return device->team ? mixt__team_threads(device->team) : mixt__threads_count();
}

/** Sets device->rough and returns what it was. */
static inline bool mixt__device_plan_roughly(mixt__device *device, bool on)
{
    bool before = device->rough;
    device->rough = on;
    return before;
}

#endif
