/* libmixt_nccl.so: ranks with a GPU each, over NCCL.
 *
 * Sums run on a stream of their own that branches off the device's and joins it again: both may be under capture, and
 * are replayed as a part of the step then. Which ranks add what is NCCL's choice: the same every time on the same
 * machines, but not the order of ranks. Who waits looks at the clock and at the other processes; where one is lost the
 * communicator is aborted, which ends what runs on the GPU.
 *
 * It also carries messages between hosts' memories, where there is no MPI (messages.c). It carries no copy of mixt:
 * what fails is told as text.
 */
#include "dist/nccl/nccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double LOOK_SECONDS = 0.05, NAPPING_SECONDS = 0.002;
enum { SPINS = 200, NAP_NANOSECONDS = 20000, LONG_NAP_NANOSECONDS = 200000 };

mixt__nccl_state mixt__nccl;

mixt_status mixt__nccl_fail(mixt_status status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mixt__nccl.error_set(text);
    return status;
}

mixt_status mixt__nccl_check(ncclResult_t result, const char *what)
{
    if (result == ncclSuccess)
        return MIXT_OK;
    return mixt__nccl_fail(MIXT_ERROR_DEVICE, "%s: %s (NCCL: %s)", what, ncclGetErrorString(result),
                           ncclGetLastError(mixt__nccl.comm));
}

mixt_status mixt__nccl_check_cuda(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return MIXT_OK;
    return mixt__nccl_fail(MIXT_ERROR_DEVICE, "%s: %s", what, cudaGetErrorString(error));
}

/* ---- waiting ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void nap(double waited)
{
    struct timespec t = {.tv_nsec = waited < NAPPING_SECONDS ? NAP_NANOSECONDS : LONG_NAP_NANOSECONDS};
    nanosleep(&t, NULL);
}

/** Ends what waits on the GPU for a rank that is lost. */
static mixt_status abort_all(const char *why)
{
    ncclCommAbort(mixt__nccl.comm);
    mixt__nccl.comm = NULL;
    return mixt__nccl_fail(MIXT_ERROR_STATE, "%s", why);
}

mixt_status mixt__nccl_wait(cudaStream_t stream, const mixt__waiting *waiting, mixt__arrival *arrival)
{
    double start = now(), looked = start;
    *arrival = (mixt__arrival){.late = -1, .dead = -1, .gave_up = -1};
    for (int64_t spins = 0;; spins++) {
        ncclResult_t failed = ncclSuccess;
        cudaError_t error = cudaStreamQuery(stream);
        if (error != cudaErrorNotReady)
            return mixt__nccl_check_cuda(error, "waiting for the GPU");
        if (spins < SPINS)
            continue;
        double t = now();
        if (t - looked > LOOK_SECONDS) {
            looked = t;
            arrival->dead = waiting->dead ? waiting->dead(waiting->user) : -1;
            if (arrival->dead >= 0)
                return abort_all("a rank is gone");
            if (ncclCommGetAsyncError(mixt__nccl.comm, &failed) != ncclSuccess || failed != ncclSuccess)
                return abort_all(ncclGetErrorString(failed));
        }
        if (t - start > waiting->seconds) {
            arrival->late = (mixt__nccl.rank + 1) % mixt__nccl.size; // NCCL does not say which
            return abort_all("a rank does not answer");
        }
        nap(t - start);
    }
}

/* ---- sums ---- */

/** What is issued on the stream of sums waits for what was issued on the device's. */
static mixt_status branch(void)
{
    MIXT_TRY_NCCL(mixt__nccl_check_cuda(cudaEventRecord(mixt__nccl.made, mixt__nccl.stream), "marking gradients"));
    return mixt__nccl_check_cuda(cudaStreamWaitEvent(mixt__nccl.side, mixt__nccl.made, 0), "waiting for gradients");
}

static mixt_status sum(float *data, int64_t count)
{
    MIXT_TRY_NCCL(branch());
    return mixt__nccl_check(
        ncclAllReduce(data, data, (size_t)count, ncclFloat32, ncclSum, mixt__nccl.comm, mixt__nccl.side),
        "summing gradients");
}

/** What is done with one rank's part of the bytes. */
typedef ncclResult_t part_fn(void *part, size_t bytes, int rank, void *user);

/** One for each rank's part, as one piece of work. */
static mixt_status each_part(void *data, const int64_t *cuts, size_t size, part_fn *fn, void *user, const char *what)
{
    MIXT_TRY_NCCL(branch());
    MIXT_TRY_NCCL(mixt__nccl_check(ncclGroupStart(), what));
    for (int rank = 0; rank < mixt__nccl.size; rank++) {
        char *part = (char *)data + (size_t)(cuts[rank] - cuts[0]) * size;
        size_t bytes = (size_t)(cuts[rank + 1] - cuts[rank]) * size;
        if (bytes)
            MIXT_TRY_NCCL(mixt__nccl_check(fn(part, bytes, rank, user), what));
    }
    return mixt__nccl_check(ncclGroupEnd(), what);
}

static ncclResult_t reduce_part(void *part, size_t bytes, int rank, void *mine)
{
    return ncclReduce(part, rank == mixt__nccl.rank ? mine : part, bytes / sizeof(float), ncclFloat32, ncclSum, rank,
                      mixt__nccl.comm, mixt__nccl.side);
}

static mixt_status reduce(float *data, const int64_t *cuts, float *mine)
{
    return each_part(data, cuts, sizeof *data, reduce_part, mine, "summing gradients");
}

static ncclResult_t gather_part(void *part, size_t bytes, int rank, void *unused)
{
    (void)unused;
    return ncclBroadcast(part, part, bytes, ncclInt8, rank, mixt__nccl.comm, mixt__nccl.side);
}

static mixt_status gather(void *data, const int64_t *cuts, size_t size)
{
    return each_part(data, cuts, size, gather_part, NULL, "collecting shares");
}

/* ---- their order ---- */

static mixt_status make_event(cudaEvent_t *event)
{
    return mixt__nccl_check_cuda(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
}

static mixt_status mark(int64_t number)
{
    if (number >= mixt__nccl.mark_count) {
        cudaEvent_t *more = realloc(mixt__nccl.marks, (size_t)(number + 1) * sizeof *more);
        if (!more)
            return mixt__nccl_fail(MIXT_ERROR_MEMORY, "no memory for marks of sums");
        mixt__nccl.marks = more;
    }
    for (; mixt__nccl.mark_count <= number; mixt__nccl.mark_count++)
        MIXT_TRY_NCCL(make_event(&mixt__nccl.marks[mixt__nccl.mark_count]));
    return mixt__nccl_check_cuda(cudaEventRecord(mixt__nccl.marks[number], mixt__nccl.side), "marking sums");
}

static mixt_status join(int64_t number)
{
    cudaEvent_t end = number < 0 ? mixt__nccl.summed : mixt__nccl.marks[number];
    if (number < 0)
        MIXT_TRY_NCCL(mixt__nccl_check_cuda(cudaEventRecord(end, mixt__nccl.side), "marking sums"));
    return mixt__nccl_check_cuda(cudaStreamWaitEvent(mixt__nccl.stream, end, 0), "waiting for sums");
}

static mixt_status wait_for_device(const mixt__waiting *waiting, mixt__arrival *arrival)
{
    return mixt__nccl_wait(mixt__nccl.stream, waiting, arrival);
}

void mixt__nccl_close(bool whole)
{
    mixt__nccl.broken = mixt__nccl.broken || !whole;
    if (--mixt__nccl.users > 0)
        return;
    if (mixt__nccl.comm && !mixt__nccl.broken)
        ncclCommDestroy(mixt__nccl.comm);
    else if (mixt__nccl.comm)
        ncclCommAbort(mixt__nccl.comm);
    mixt__nccl.comm = NULL;
    for (int64_t i = 0; i < mixt__nccl.mark_count; i++)
        cudaEventDestroy(mixt__nccl.marks[i]);
    free(mixt__nccl.marks);
    mixt__nccl.marks = NULL;
    mixt__nccl.mark_count = 0;
    if (mixt__nccl.made)
        cudaEventDestroy(mixt__nccl.made);
    if (mixt__nccl.summed)
        cudaEventDestroy(mixt__nccl.summed);
    if (mixt__nccl.side)
        cudaStreamDestroy(mixt__nccl.side);
    mixt__nccl.made = mixt__nccl.summed = NULL;
    mixt__nccl.side = NULL;
}

/* ---- opening ---- */

const char *mixt_transport_version(void)
{
    static char text[64];
    int v = 0;
    if (ncclGetVersion(&v) == ncclSuccess)
        snprintf(text, sizeof text, "NCCL %d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    return text;
}

mixt_status mixt_device_id(void (*error_set)(const char *text), char *id)
{
    ncclUniqueId made;
    mixt__nccl.error_set = error_set;
    MIXT_TRY_NCCL(mixt__nccl_check(ncclGetUniqueId(&made), "beginning NCCL"));
    _Static_assert(sizeof made == MIXT_DEVICE_ID_SIZE, "an id is as large as NCCL's");
    memcpy(id, &made, sizeof made);
    return MIXT_OK;
}

static mixt_status join_others(const char *id, int rank, int size)
{
    ncclUniqueId given;
    memcpy(&given, id, sizeof given);
    mixt__nccl.rank = rank;
    mixt__nccl.size = size;
    MIXT_TRY_NCCL(mixt__nccl_check_cuda(cudaSetDevice(0), "opening the GPU"));
    ncclResult_t result = ncclCommInitRank(&mixt__nccl.comm, size, given, rank);
    if (result == ncclInvalidUsage)
        return mixt__nccl_fail(
            MIXT_ERROR_DEVICE,
            "NCCL takes one rank a GPU (%s): start as many ranks on a machine as it has GPUs, or set "
            "dist.transport=mpi, over which ranks can share one",
            ncclGetLastError(NULL));
    MIXT_TRY_NCCL(mixt__nccl_check(result, "joining the other ranks over NCCL"));
    MIXT_TRY_NCCL(
        mixt__nccl_check_cuda(cudaStreamCreateWithFlags(&mixt__nccl.side, cudaStreamNonBlocking), "making a stream"));
    MIXT_TRY_NCCL(make_event(&mixt__nccl.made));
    return make_event(&mixt__nccl.summed);
}

mixt_status mixt__nccl_join(const char *id, int rank, int size)
{
    mixt_status status = mixt__nccl.users++ ? MIXT_OK : join_others(id, rank, size);
    if (status != MIXT_OK)
        mixt__nccl_close(false);
    return status;
}

mixt_status mixt__nccl_begin(const char *abi, void (*error_set)(const char *text))
{
    mixt__nccl.error_set = error_set;
    if (!strcmp(abi, MIXT_TRANSPORT_ABI))
        return MIXT_OK;
    return mixt__nccl_fail(MIXT_ERROR_DEVICE, "libmixt_nccl.so is of another build: '%s', this is '%s'",
                           MIXT_TRANSPORT_ABI, abi);
}

mixt_status mixt_device_sums_open(const char *abi, void (*error_set)(const char *text), const char *id, int rank,
                                  int size, void *stream, const mixt__device_sums **sums)
{
    static mixt__device_sums opened;
    MIXT_TRY_NCCL(mixt__nccl_begin(abi, error_set));
    mixt__nccl.stream = stream;
    MIXT_TRY_NCCL(mixt__nccl_join(id, rank, size));
    opened = (mixt__device_sums){.version = mixt_transport_version(), .sum = sum, .reduce = reduce, .gather = gather};
    opened.mark = mark;
    opened.join = join;
    opened.wait = wait_for_device;
    opened.close = mixt__nccl_close;
    *sums = &opened;
    return MIXT_OK;
}
