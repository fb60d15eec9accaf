/* The CUDA backend: the device, its memory, its streams, recorded steps, and the table of candidates.
 *
 * Two streams: one computes, one brings batches. A slot of staging memory is free again once the work issued before its
 * fence has run; the copy stream waits for that, and the computing stream for the copy.
 */
#include "backend/cuda/kernels.h"

#include "backend/beside.h"
#include "backend/cuda/core/cudnn_graph.h"
#include "backend/cuda/info.h"
#include "backend/cuda/open.h"
#include "backend/cuda/update/table.h"
#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "base/status.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = MIXT_STAGE_SLOTS };

mixt__cuda_device mixt__cuda;

static struct {
    cudaStream_t copies;
    cudaStream_t fetches; // copies beside what is computed
    cudaEvent_t made, fetched;
    cudaEvent_t ready[SLOTS], read[SLOTS];
    cudaEvent_t *marks;
    int64_t mark_count, mark_capacity;
    size_t allocated;
} state;

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

typedef struct held {
    void *block;
    size_t bytes;
} held;

static struct {
    held *list;
    int64_t count, capacity;
} blocks;

static void *take(mixt__device *device, size_t bytes)
{
    (void)device;
    if (!mixt__grow((void **)&blocks.list, &blocks.capacity, blocks.count, sizeof *blocks.list))
        return NULL;
    void *block = device_alloc(bytes);
    if (block) {
        blocks.list[blocks.count++] = (held){block, bytes};
        state.allocated += bytes;
    }
    return block;
}

static void give_back(mixt__device *device, void *block)
{
    (void)device;
    for (int64_t i = 0; block && i < blocks.count; i++)
        if (blocks.list[i].block == block) {
            state.allocated -= blocks.list[i].bytes;
            mixt__cuda_table_forget(block, blocks.list[i].bytes); // of updates whose workspaces it holds
            blocks.list[i] = blocks.list[--blocks.count];
            cudaFree(block);
            return;
        }
}

static size_t held_bytes(mixt__device *device)
{
    (void)device;
    return state.allocated;
}

static void *alloc_host(mixt__device *device, size_t bytes)
{
    (void)device;
    void *block = NULL;
    if (cudaHostAlloc(&block, bytes ? bytes : 1, cudaHostAllocDefault) != cudaSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    return block;
}

static void free_host(mixt__device *device, void *block)
{
    (void)device;
    if (block)
        cudaFreeHost(block);
}

static size_t available(mixt__device *device)
{
    (void)device;
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
    (void)device;
    return mixt__cuda_check(cudaMemsetAsync(block, 0, bytes, mixt__cuda.stream), "clearing device memory");
}

static mixt_status synchronize(mixt__device *device)
{
    (void)device;
    return mixt__cuda_check(cudaStreamSynchronize(mixt__cuda.stream), "waiting for the GPU");
}

static mixt_status copy(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    (void)device;
    return mixt__cuda_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, mixt__cuda.stream), "copying");
}

static mixt_status copy_and_wait(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    MIXT_TRY(copy(device, dst, src, bytes));
    return synchronize(device);
}

static mixt_status stage(mixt__device *device, int slot, const mixt__piece *pieces, int count, bool wait)
{
    (void)device;
    CHECK(cudaStreamWaitEvent(state.copies, state.read[slot], 0), "waiting for a batch's place");
    for (int i = 0; i < count; i++)
        CHECK(cudaMemcpyAsync(pieces[i].dst, pieces[i].src, pieces[i].bytes, cudaMemcpyDefault, state.copies),
              "copying a batch to the GPU");
    CHECK(cudaEventRecord(state.ready[slot], state.copies), "copying a batch to the GPU");
    CHECK(cudaStreamWaitEvent(mixt__cuda.stream, state.ready[slot], 0), "waiting for a batch");
    return wait ? mixt__cuda_check(cudaEventSynchronize(state.ready[slot]), "copying a batch to the GPU") : MIXT_OK;
}

static mixt_status fence(mixt__device *device, int slot)
{
    (void)device;
    return mixt__cuda_check(cudaEventRecord(state.read[slot], mixt__cuda.stream), "marking the end of a step");
}

static mixt_status wait(mixt__device *device, int slot)
{
    (void)device;
    return mixt__cuda_check(cudaEventSynchronize(state.read[slot]), "waiting for a step");
}

/* ---- copies beside what is computed ---- */

static mixt_status copy_beside(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    (void)device;
    CHECK(cudaEventRecord(state.made, mixt__cuda.stream), "marking what is made");
    CHECK(cudaStreamWaitEvent(state.fetches, state.made, 0), "waiting for what is made");
    return mixt__cuda_check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, state.fetches), "copying");
}

static mixt_status join_copies(mixt__device *device)
{
    (void)device;
    CHECK(cudaEventRecord(state.fetched, state.fetches), "marking copies");
    return mixt__cuda_check(cudaStreamWaitEvent(mixt__cuda.stream, state.fetched, 0), "waiting for copies");
}

static mixt_status query(mixt__device *device)
{
    (void)device;
    cudaError_t error = cudaStreamQuery(mixt__cuda.stream);
    if (error == cudaSuccess)
        error = cudaStreamQuery(state.fetches); // which nobody may have joined yet
    return error == cudaErrorNotReady ? MIXT_END : mixt__cuda_check(error, "waiting for the GPU");
}

static void *stream(mixt__device *device)
{
    (void)device;
    return mixt__cuda.stream;
}

static const mixt__beside beside = {.stream = stream, .copy = copy_beside, .join = join_copies, .query = query};

/* ---- recording ---- */

struct mixt__recording {
    cudaGraphExec_t graph;
};

static mixt_status end_capture(mixt_status issued, mixt__recording *recording)
{
    cudaGraph_t graph = NULL;
    cudaError_t error = cudaStreamEndCapture(mixt__cuda.stream, &graph);
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
    (void)device;
    *recording = mixt__alloc(sizeof **recording);
    if (!*recording)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to record a step");
    mixt_status status = mixt__cuda_check(cudaStreamBeginCapture(mixt__cuda.stream, cudaStreamCaptureModeThreadLocal),
                                          "recording a step");
    if (status == MIXT_OK)
        status = end_capture(issue(argument), *recording);
    if (status != MIXT_OK) {
        mixt__free(*recording);
        *recording = NULL;
    }
    return status;
}

static mixt_status replay(mixt__device *device, mixt__recording *recording)
{
    (void)device;
    return mixt__cuda_check(cudaGraphLaunch(recording->graph, mixt__cuda.stream), "starting a recorded step");
}

static void forget(mixt__device *device, mixt__recording *recording)
{
    (void)device;
    if (!recording)
        return;
    cudaGraphExecDestroy(recording->graph);
    mixt__free(recording);
}

/* ---- time ---- */

static mixt_status mark(mixt__device *device, int64_t index)
{
    (void)device;
    while (state.mark_count <= index) {
        if (!mixt__grow((void **)&state.marks, &state.mark_capacity, state.mark_count, sizeof *state.marks))
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for time marks");
        CHECK(cudaEventCreate(&state.marks[state.mark_count]), "making a time mark");
        state.mark_count++;
    }
    return mixt__cuda_check(cudaEventRecord(state.marks[index], mixt__cuda.stream), "setting a time mark");
}

static mixt_status between(mixt__device *device, int64_t first, int64_t last, double *seconds)
{
    (void)device;
    float milliseconds = 0;
    CHECK(cudaEventSynchronize(state.marks[last]), "waiting for a time mark");
    CHECK(cudaEventElapsedTime(&milliseconds, state.marks[first], state.marks[last]), "reading a time mark");
    *seconds = 1e-3 * (double)milliseconds;
    return MIXT_OK;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

double mixt__cuda_time(mixt_status (*run)(void *argument), void *argument)
{
    enum { RUNS = 5 };
    const double once = 3e-3; // what takes this long is the same every time
    double seconds[RUNS];
    int runs = 0;
    if (run(argument) != MIXT_OK ||
        synchronize(&mixt__cuda.base) != MIXT_OK) // the first run may compile or load something
        return -1;
    while (runs < RUNS && (!runs || seconds[0] < once)) {
        if (mark(&mixt__cuda.base, 0) != MIXT_OK || run(argument) != MIXT_OK || mark(&mixt__cuda.base, 1) != MIXT_OK ||
            between(&mixt__cuda.base, 0, 1, &seconds[runs]) != MIXT_OK)
            return -1;
        runs++;
    }
    qsort(seconds, (size_t)runs, sizeof seconds[0], by_value);
    return seconds[runs / 2];
}

/* ---- opening ---- */

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
    (void)device;
    mixt__cudnn_foresee(true);
    for (int64_t i = 0; i < count; i++) {
        const char *op = calls[i].op->name, *reason;
        if (strncmp(op, "conv2d", 6) && strncmp(op, "attention", 9))
            continue;
        const mixt__kernel *const *k = kernels(calls[i].op);
        while (*k && (*k)->supports && !(*k)->supports(&calls[i], &reason))
            k++;
    }
    mixt__cudnn_foresee(false);
}

static mixt_status open_numbered(int number, int threads, mixt__device **device);

static void close_device(mixt__device *device)
{
    (void)device;
}

static const mixt__backend backend = {
    .name = "cuda",
    .open = open_numbered,
    .close = close_device,
    .beside = &beside,
    .fused = MIXT_FUSED_CUDA,
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

static mixt_status open_device(void)
{
    struct cudaDeviceProp properties;
    int count = 0;
    CHECK(cudaGetDeviceCount(&count), "looking for a GPU");
    if (!count)
        return mixt__cuda_check(cudaErrorNoDevice, "looking for a GPU");
    CHECK(cudaSetDevice(0), "opening the GPU");
    CHECK(cudaGetDeviceProperties(&properties, 0), "asking the GPU what it is");
    mixt__cuda.sm = 10 * properties.major + properties.minor;
    mixt__cuda.multiprocessors = properties.multiProcessorCount;
    mixt__cuda.shared_limit = (int)properties.sharedMemPerBlockOptin;
    memcpy(mixt__cuda.name, properties.name, sizeof mixt__cuda.name - 1);
    if (mixt__cuda.sm < 70)
        return mixt__fail(MIXT_ERROR_DEVICE, "%s has compute capability %d.%d: mixt needs 7.0 or later",
                          mixt__cuda.name, properties.major, properties.minor);
    CHECK(cudaStreamCreateWithFlags(&mixt__cuda.stream, cudaStreamNonBlocking), "making a stream");
    CHECK(cudaStreamCreateWithFlags(&state.copies, cudaStreamNonBlocking), "making a stream");
    CHECK(cudaStreamCreateWithFlags(&state.fetches, cudaStreamNonBlocking), "making a stream");
    CHECK(cudaEventCreateWithFlags(&state.made, cudaEventDisableTiming), "making an event");
    CHECK(cudaEventCreateWithFlags(&state.fetched, cudaEventDisableTiming), "making an event");
    for (int i = 0; i < SLOTS; i++) {
        CHECK(cudaEventCreateWithFlags(&state.ready[i], cudaEventDisableTiming), "making an event");
        CHECK(cudaEventCreateWithFlags(&state.read[i], cudaEventDisableTiming), "making an event");
    }
    MIXT_LOG(PLAN, "GPU %s, compute capability %d.%d", mixt__cuda.name, properties.major, properties.minor);
    return MIXT_OK;
}

static mixt_status open_numbered(int number, int threads, mixt__device **device)
{
    static bool opened;
    (void)number;
    (void)threads;
    if (!opened)
        MIXT_TRY(open_device());
    opened = true;
    mixt__cuda.base.backend = &backend;
    *device = &mixt__cuda.base;
    return MIXT_OK;
}

mixt_status mixt_cuda_open(const char *abi, void (*error_set)(const char *text), const mixt__backend **opened)
{
    *opened = NULL;
    mixt__error_forward(error_set);
    if (strcmp(abi, MIXT_CUDA_ABI))
        return mixt__fail(MIXT_ERROR_DEVICE,
                          "libmixt_cuda.so is of another build ('%s', wanted '%s'): install them together",
                          MIXT_CUDA_ABI, abi);
    *opened = &backend;
    return MIXT_OK;
}
