/* The CUDA backend: a device's memory, its streams, recorded steps, and the table of candidates. open.c makes devices.
 *
 * Two streams of a device: one computes, one brings batches. A slot of staging memory is free again once the work
 * issued before its fence has run; the copy stream waits for that, and the computing stream for the copy.
 */
#include "backend/cuda/kernels.h"

#include "backend/beside.h"
#include "backend/cuda/core/cudnn_graph.h"
#include "backend/cuda/info.h"
#include "backend/cuda/update/table.h"
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/** The device of a call of the seam, entered. */
static mixt__cuda_device *enter(mixt__device *device)
{
    mixt__cuda_enter(device);
    return mixt__cuda_device_of(device);
}

mixt_status mixt__cuda_check(cudaError_t error, const char *what)
{
    switch (error) {
    case cudaSuccess:
        return MIXT_OK;
    case cudaErrorMemoryAllocation:
        (void)cudaGetLastError();
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: the GPU has no memory left", what);
    case cudaErrorNoDevice:
        return mixt__fail(MIXT_ERROR_DEVICE, "%s: there is no GPU that CUDA can use", what);
    case cudaErrorInsufficientDriver:
        return mixt__fail(
            MIXT_ERROR_DEVICE,
            "%s: the NVIDIA driver is missing or older than this build's CUDA %d.%d: install a newer driver", what,
            CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    default:
        (void)cudaGetLastError();
        return mixt__fail(MIXT_ERROR_DEVICE, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
    }
}

#define CHECK(call, what) MIXT_TRY(mixt__cuda_check((call), (what)))

/* ---- memory ---- */

static void *device_alloc(size_t bytes)
{
    void *block = NULL;
    if (cudaMalloc(&block, bytes ? bytes : 1) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return block;
}

struct mixt__cuda_block {
    void *data;
    size_t bytes;
};

static void *take(mixt__device *device, size_t bytes)
{
    mixt__cuda_blocks *blocks = &enter(device)->blocks;
    if (!mixt__grow((void **)&blocks->list, &blocks->capacity, blocks->count, sizeof *blocks->list))
        return NULL;
    void *data = device_alloc(bytes);
    if (data) {
        blocks->list[blocks->count++] = (struct mixt__cuda_block){data, bytes};
        device->held += bytes;
    }
    return data;
}

static void give_back(mixt__device *device, void *data)
{
    mixt__cuda_blocks *blocks = &enter(device)->blocks;
    for (int64_t i = 0; data && i < blocks->count; i++)
        if (blocks->list[i].data == data) {
            size_t bytes = blocks->list[i].bytes;
            device->held -= bytes;
            mixt__cuda_table_forget(device, data, bytes); // of updates whose workspaces it holds
            blocks->list[i] = blocks->list[--blocks->count];
            cudaFree(data);
            return;
        }
}

static size_t held_bytes(mixt__device *device)
{
    return device->held;
}

static void *alloc_host(mixt__device *device, size_t bytes)
{
    enter(device);
    void *block = NULL;
    if (cudaHostAlloc(&block, bytes ? bytes : 1, cudaHostAllocDefault) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return block;
}

static void free_host(mixt__device *device, void *block)
{
    enter(device);
    if (block)
        cudaFreeHost(block);
}

static size_t available(mixt__device *device)
{
    enter(device);
    size_t free_bytes = 0, total = 0;
    return cudaMemGetInfo(&free_bytes, &total) == cudaSuccess ? free_bytes : 0;
}

void *mixt__cuda_scratch(size_t bytes)
{
    return device_alloc(bytes);
}

void mixt__cuda_scratch_free(void *block)
{
    if (block)
        cudaFree(block);
}

/* ---- copies ---- */

static mixt_status zero(mixt__device *device, void *block, size_t bytes)
{
    mixt__cuda_device *gpu = enter(device);
    return mixt__cuda_check(cudaMemsetAsync(block, 0, bytes, gpu->stream), "clearing device memory");
}

static mixt_status synchronize(mixt__device *device)
{
    mixt__cuda_device *gpu = enter(device);
    return mixt__cuda_check(cudaStreamSynchronize(gpu->stream), "waiting for the GPU");
}

static mixt_status copy(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    mixt__cuda_device *gpu = enter(device);
    return mixt__cuda_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, gpu->stream), "copying");
}

static mixt_status copy_and_wait(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    MIXT_TRY(copy(device, dst, src, bytes));
    return synchronize(device);
}

static mixt_status stage(mixt__device *device, int slot, const mixt__piece *pieces, int count, bool wait)
{
    mixt__cuda_device *gpu = enter(device);
    CHECK(cudaStreamWaitEvent(gpu->copies.batches, gpu->copies.read[slot], 0), "waiting for a batch's place");
    for (int i = 0; i < count; i++)
        CHECK(cudaMemcpyAsync(pieces[i].dst, pieces[i].src, pieces[i].bytes, cudaMemcpyDefault, gpu->copies.batches),
              "copying a batch to the GPU");
    CHECK(cudaEventRecord(gpu->copies.ready[slot], gpu->copies.batches), "copying a batch to the GPU");
    CHECK(cudaStreamWaitEvent(gpu->stream, gpu->copies.ready[slot], 0), "waiting for a batch");
    return wait ? mixt__cuda_check(cudaEventSynchronize(gpu->copies.ready[slot]), "copying a batch to the GPU")
                : MIXT_OK;
}

static mixt_status fence(mixt__device *device, int slot)
{
    mixt__cuda_device *gpu = enter(device);
    return mixt__cuda_check(cudaEventRecord(gpu->copies.read[slot], gpu->stream), "marking the end of a step");
}

static mixt_status wait(mixt__device *device, int slot)
{
    mixt__cuda_device *gpu = enter(device);
    return mixt__cuda_check(cudaEventSynchronize(gpu->copies.read[slot]), "waiting for a step");
}

/* ---- copies beside what is computed ---- */

static mixt_status copy_beside(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    mixt__cuda_device *gpu = enter(device);
    CHECK(cudaEventRecord(gpu->copies.made, gpu->stream), "marking what is made");
    CHECK(cudaStreamWaitEvent(gpu->copies.fetches, gpu->copies.made, 0), "waiting for what is made");
    return mixt__cuda_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, gpu->copies.fetches), "copying");
}

static mixt_status join_copies(mixt__device *device)
{
    mixt__cuda_device *gpu = enter(device);
    CHECK(cudaEventRecord(gpu->copies.fetched, gpu->copies.fetches), "marking copies");
    return mixt__cuda_check(cudaStreamWaitEvent(gpu->stream, gpu->copies.fetched, 0), "waiting for copies");
}

static mixt_status query(mixt__device *device)
{
    mixt__cuda_device *gpu = enter(device);
    cudaError_t error = cudaStreamQuery(gpu->stream);
    if (error == cudaSuccess)
        error = cudaStreamQuery(gpu->copies.fetches); // which nobody may have joined yet
    return error == cudaErrorNotReady ? MIXT_END : mixt__cuda_check(error, "waiting for the GPU");
}

static void *stream(mixt__device *device)
{
    return mixt__cuda_device_of(device)->stream;
}

static const mixt__beside beside = {.stream = stream, .copy = copy_beside, .join = join_copies, .query = query};

/* ---- recording ---- */

struct mixt__recording {
    cudaGraphExec_t graph;
};

static mixt_status end_capture(const mixt__cuda_device *gpu, mixt_status issued, mixt__recording *recording)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamEndCapture(gpu->stream, &graph);
    if (issued == MIXT_OK)
        issued = mixt__cuda_check(error, "recording a step");
    if (issued == MIXT_OK)
        issued = mixt__cuda_check(cudaGraphInstantiate(&recording->graph, graph, 0), "preparing a recorded step");
    if (graph)
        cudaGraphDestroy(graph);
    return issued;
}

static mixt_status record(mixt__device *device, mixt_status (*issue)(void *argument), void *argument,
                          mixt__recording **recording)
{
    mixt__cuda_device *gpu = enter(device);
    *recording = mixt__alloc(sizeof **recording);
    if (!*recording)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to record a step");
    mixt_status status =
        mixt__cuda_check(cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeThreadLocal), "recording a step");
    if (status == MIXT_OK)
        status = end_capture(gpu, issue(argument), *recording);
    if (status != MIXT_OK) {
        mixt__free(*recording);
        *recording = NULL;
    }
    return status;
}

static mixt_status replay(mixt__device *device, mixt__recording *recording)
{
    mixt__cuda_device *gpu = enter(device);
    return mixt__cuda_check(cudaGraphLaunch(recording->graph, gpu->stream), "starting a recorded step");
}

static void forget(mixt__device *device, mixt__recording *recording)
{
    if (!recording)
        return;
    enter(device);
    cudaGraphExecDestroy(recording->graph);
    mixt__free(recording);
}

/* ---- time ---- */

static mixt_status mark(mixt__device *device, int64_t index)
{
    mixt__cuda_device *gpu = enter(device);
    while (gpu->marks.count <= index) {
        if (!mixt__grow((void **)&gpu->marks.list, &gpu->marks.capacity, gpu->marks.count, sizeof *gpu->marks.list))
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for time marks");
        CHECK(cudaEventCreate(&gpu->marks.list[gpu->marks.count]), "making a time mark");
        gpu->marks.count++;
    }
    return mixt__cuda_check(cudaEventRecord(gpu->marks.list[index], gpu->stream), "setting a time mark");
}

static mixt_status between(mixt__device *device, int64_t first, int64_t last, double *seconds)
{
    mixt__cuda_device *gpu = enter(device);
    float milliseconds = 0;
    CHECK(cudaEventSynchronize(gpu->marks.list[last]), "waiting for a time mark");
    CHECK(cudaEventElapsedTime(&milliseconds, gpu->marks.list[first], gpu->marks.list[last]), "reading a time mark");
    *seconds = 1e-3 * (double)milliseconds;
    return MIXT_OK;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

double mixt__cuda_time(mixt__cuda_device *gpu, mixt_status (*run)(void *argument), void *argument)
{
    mixt__device *device = &gpu->base;
    enum { RUNS = 5 };
    const double once = 3e-3; // what takes this long is the same every time
    double seconds[RUNS];
    int runs = 0;
    if (run(argument) != MIXT_OK || synchronize(device) != MIXT_OK) // the first run may compile or load something
        return -1;
    while (runs < RUNS && (!runs || seconds[0] < once)) {
        if (mark(device, 0) != MIXT_OK || run(argument) != MIXT_OK || mark(device, 1) != MIXT_OK ||
            between(device, 0, 1, &seconds[runs]) != MIXT_OK)
            return -1;
        runs++;
    }
    qsort(seconds, (size_t)runs, sizeof seconds[0], by_value);
    return seconds[runs / 2];
}

/* ---- the table ---- */

/** Not made for this backend: MIXT_FUSED_HEAD. */
const mixt__kernel *const mixt__cuda_head_step_kernels[] = {NULL};

static const struct {
    const char *op;
    const mixt__kernel *const *kernels;
} table[] = {
#define MIXT_OP(name) {#name, mixt__cuda_##name##_kernels},
#include "ops/ops.def"
#undef MIXT_OP
};

static const mixt__kernel *const *kernels(const mixt__op *op)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (!strcmp(table[i].op, op->name))
            return table[i].kernels;
    return NULL;
}

/** Graphs of cuDNN are what takes long to build; they are found by asking candidates as choosing one will. */
static void foresee(mixt__device *device, const mixt__call *calls, int64_t count)
{
    mixt__cuda_device *gpu = enter(device);
    mixt__cudnn_foresee(gpu, true);
    for (int64_t i = 0; i < count; i++) {
        const char *op = calls[i].op->name, *reason;
        if (strncmp(op, "conv2d", 6) && strncmp(op, "attention", 9))
            continue;
        const mixt__kernel *const *k = kernels(calls[i].op);
        while (*k && (*k)->supports && !(*k)->supports(&calls[i], &reason))
            k++;
    }
    mixt__cudnn_foresee(gpu, false);
}

const mixt__backend mixt__cuda_backend = {
    .name = "cuda",
    .open = mixt__cuda_open,
    .close = mixt__cuda_close,
    .enter = mixt__cuda_enter,
    .beside = &beside,
    .fused = MIXT_FUSED_CUDA,
    .multiplies = MIXT_MAY_MULTIPLY_CUDA,
    .kernels = kernels,
    .alloc = take,
    .free = give_back,
    .alloc_host = alloc_host,
    .free_host = free_host,
    .available = available,
    .allocated = held_bytes,
    .zero = zero,
    .upload = copy_and_wait,
    .download = copy_and_wait,
    .copy = copy,
    .stage = stage,
    .fence = fence,
    .wait = wait,
    .synchronize = synchronize,
    .record = record,
    .replay = replay,
    .forget = forget,
    .mark = mark,
    .between = between,
    .describe = mixt__cuda_describe,
    .devices = mixt__cuda_devices,
    .describe_at = mixt__cuda_describe_at,
    .energy = mixt__cuda_energy,
    .activity = mixt__cuda_activity,
    .choices = mixt__cuda_choices_print,
    .choose = mixt__cuda_choices_adopt,
    .foresee = foresee,
    .update_workspace = mixt__cuda_update_workspace,
    .multiply = mixt__cuda_multiply,
    .narrow = mixt__cuda_narrow,
    .gradient_stats = mixt__cuda_gradient_stats,
    .update_chunk = MIXT_CUDA_CHUNK,
    .join_stats = mixt__cuda_join_stats,
    .step_control = mixt__cuda_step_control,
    .optimizer_step = mixt__cuda_optimizer_step,
    .lamb_moments = mixt__cuda_lamb_moments,
    .lamb_ratio = mixt__cuda_lamb_ratio,
    .lamb_weights = mixt__cuda_lamb_weights,
};
