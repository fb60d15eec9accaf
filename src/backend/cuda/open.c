/* Opening and closing GPUs, by their numbers.
 *
 * A device that was closed waits here for the next who opens its GPU, with its streams, its libraries' handles and the
 * plans of cuDNN that it has: a program that opens one context after the other makes them once. What a run of its own
 * brought, choices adopted from a checkpoint, goes when that closes.
 */
#include "backend/cuda/open.h"

#include "backend/cuda/core/cudnn_graph.h"
#include "backend/cuda/info.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/status.h"

#include <pthread.h>
#include <string.h>

#define CHECK(call, what) MIXT_TRY(mixt__cuda_check((call), (what)))

static struct {
    pthread_mutex_t lock;
    mixt__cuda_device *list;
    uint64_t seen; // GPUs that were opened, by their numbers
} closed = {.lock = PTHREAD_MUTEX_INITIALIZER};

void mixt__cuda_enter(mixt__device *device)
{
    (void)cudaSetDevice(device->number); // what follows says what is wrong
}

bool mixt__cuda_was_opened(int number)
{
    pthread_mutex_lock(&closed.lock);
    bool opened = closed.seen >> number & 1;
    pthread_mutex_unlock(&closed.lock);
    return opened;
}

/* ---- making one ---- */

static mixt_status describe(mixt__cuda_device *gpu)
{
    struct cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, gpu->base.number), "asking for the GPU's properties");
    gpu->sm = 10 * properties.major + properties.minor;
    gpu->multiprocessors = properties.multiProcessorCount;
    gpu->shared_limit = (int)properties.sharedMemPerBlockOptin;
    memcpy(gpu->name, properties.name, sizeof gpu->name - 1);
    if (gpu->sm < 70)
        return mixt__fail(MIXT_ERROR_DEVICE, "%s has compute capability %d.%d: mixt needs 7.0 or later", gpu->name,
                          properties.major, properties.minor);
    return MIXT_OK;
}

static mixt_status make_event(cudaEvent_t *event)
{
    return mixt__cuda_check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
}

static mixt_status make(mixt__cuda_device *gpu)
{
    mixt__cuda_copies *c = &gpu->copies;
    const size_t bytes = MIXT_CUDA_COUNTERS * sizeof *gpu->counters;
    CHECK(cudaSetDevice(gpu->base.number), "opening the GPU");
    MIXT_TRY(describe(gpu));
    CHECK(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking), "making a stream");
    CHECK(cudaStreamCreateWithFlags(&c->batches, cudaStreamNonBlocking), "making a stream");
    CHECK(cudaStreamCreateWithFlags(&c->fetches, cudaStreamNonBlocking), "making a stream");
    MIXT_TRY(make_event(&c->made));
    MIXT_TRY(make_event(&c->fetched));
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++) {
        MIXT_TRY(make_event(&c->ready[i]));
        MIXT_TRY(make_event(&c->read[i]));
    }
    CHECK(cudaMalloc((void **)&gpu->counters, bytes), "memory for counters");
    CHECK(cudaMemsetAsync(gpu->counters, 0, bytes, gpu->stream), "clearing counters");
    MIXT_LOG(PLAN, "GPU %d, %s, compute capability %d.%d", gpu->base.number, gpu->name, gpu->sm / 10, gpu->sm % 10);
    return MIXT_OK;
}

static void destroy_event(cudaEvent_t event)
{
    if (event)
        cudaEventDestroy(event);
}

/** One that could not be made whole. */
static void destroy(mixt__cuda_device *gpu)
{
    mixt__cuda_copies *c = &gpu->copies;
    const cudaStream_t streams[] = {gpu->stream, c->batches, c->fetches};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++)
        if (streams[i])
            cudaStreamDestroy(streams[i]);
    destroy_event(c->made);
    destroy_event(c->fetched);
    for (int i = 0; i < MIXT_STAGE_SLOTS; i++) {
        destroy_event(c->ready[i]);
        destroy_event(c->read[i]);
    }
    cudaFree(gpu->counters);
    (void)cudaGetLastError(); // the first failure stands
    mixt__free(gpu);
}

static mixt_status check_number(int number)
{
    int count = 0;
    CHECK(cudaGetDeviceCount(&count), "looking for a GPU");
    if (!count)
        return mixt__cuda_check(cudaErrorNoDevice, "looking for a GPU");
    if (number < 0 || number >= count)
        return mixt__fail(MIXT_ERROR_DEVICE, "there is no GPU %d: CUDA shows %d, from 0 on (see `mixt info`)", number,
                          count);
    return MIXT_OK;
}

/* ---- opening and closing ---- */

/** The one of this number that was closed last; NULL: there is none. */
static mixt__cuda_device *take_closed(int number)
{
    pthread_mutex_lock(&closed.lock);
    mixt__cuda_device **at = &closed.list;
    while (*at && (*at)->base.number != number)
        at = &(*at)->next;
    mixt__cuda_device *gpu = *at;
    if (gpu)
        *at = gpu->next;
    pthread_mutex_unlock(&closed.lock);
    return gpu;
}

mixt_status mixt__cuda_open(int number, int threads, mixt__device **device)
{
    (void)threads;
    MIXT_TRY(check_number(number));
    mixt__cuda_device *gpu = take_closed(number);
    if (!gpu) {
        gpu = mixt__alloc(sizeof *gpu);
        if (!gpu)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a device");
        gpu->base = (mixt__device){.backend = &mixt__cuda_backend, .number = number, .own = gpu};
        mixt_status status = make(gpu);
        if (status != MIXT_OK) {
            destroy(gpu);
            return status;
        }
        pthread_mutex_lock(&closed.lock);
        closed.seen |= (uint64_t)1 << number;
        pthread_mutex_unlock(&closed.lock);
    }
    mixt__cuda_enter(&gpu->base);
    gpu->base.rough = false;
    *device = &gpu->base;
    return MIXT_OK;
}

void mixt__cuda_close(mixt__device *device)
{
    mixt__cuda_device *gpu = mixt__cuda_device_of(device);
    mixt__cuda_enter(device);
    if (gpu->choices.adopted) {
        mixt__cudnn_drop(gpu);
        mixt__cuda_choices_drop(gpu);
    }
    pthread_mutex_lock(&closed.lock);
    gpu->next = closed.list;
    closed.list = gpu;
    pthread_mutex_unlock(&closed.lock);
}

mixt_status mixt_cuda_open(const char *abi, void (*error_set)(const char *text), const mixt__backend **opened)
{
    *opened = NULL;
    mixt__error_forward(error_set);
    if (strcmp(abi, MIXT_CUDA_ABI))
        return mixt__fail(MIXT_ERROR_DEVICE,
                          "libmixt_cuda.so is from another build ('%s', wanted '%s'): install them together",
                          MIXT_CUDA_ABI, abi);
    *opened = &mixt__cuda_backend;
    return MIXT_OK;
}
