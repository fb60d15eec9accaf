/* libmixt_nccl.so: ranks with a GPU each, over NCCL.
 *
 * Ranks that are joined are an object, and a part of them is another one, with a communicator of its own. It carries
 * sums of device memory (sums.c) and, where there is no MPI, messages between hosts' memories (messages.c). Who waits
 * looks at the clock and at the other processes; where one is lost the communicator is aborted, which ends what runs on
 * the GPU. The library carries no copy of mixt: what fails is told as text.
 */
#include "dist/nccl/nccl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double LOOK_SECONDS = 0.05, NAPPING_SECONDS = 0.002;
enum { SPINS = 200, NAP_NANOSECONDS = 20000, LONG_NAP_NANOSECONDS = 200000 };

static void (*error_text_set)(const char *text); // the loader's: always the same

mixt_status mixt__nccl_fail(mixt_status status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_text_set(text);
    return status;
}

mixt_status mixt__nccl_check(ncclResult_t result, const char *what)
{
    if (result == ncclSuccess)
        return MIXT_OK;
    return mixt__nccl_fail(MIXT_ERROR_DEVICE, "%s: %s (NCCL: %s)", what, ncclGetErrorString(result),
                           ncclGetLastError(NULL));
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
static mixt_status abort_all(mixt__nccl_ranks *ranks, const char *why)
{
    ncclCommAbort(ranks->comm);
    ranks->comm = NULL;
    return mixt__nccl_fail(MIXT_ERROR_STATE, "%s", why);
}

mixt_status mixt__nccl_wait(mixt__nccl_ranks *ranks, cudaStream_t stream, const mixt__waiting *waiting,
                            mixt__arrival *arrival)
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
                return abort_all(ranks, "a rank is gone");
            if (ncclCommGetAsyncError(ranks->comm, &failed) != ncclSuccess || failed != ncclSuccess)
                return abort_all(ranks, ncclGetErrorString(failed));
        }
        if (t - start > waiting->seconds) {
            arrival->late = (ranks->rank + 1) % ranks->size; // NCCL does not say which
            return abort_all(ranks, "a rank does not answer");
        }
        nap(t - start);
    }
}

/* ---- joining and parting ---- */

void mixt__nccl_close(mixt__nccl_ranks *ranks, bool whole)
{
    ranks->broken = ranks->broken || !whole;
    if (--ranks->users > 0)
        return;
    if (ranks->comm && !ranks->broken)
        ncclCommDestroy(ranks->comm);
    else if (ranks->comm)
        ncclCommAbort(ranks->comm);
    if (ranks->side)
        cudaStreamDestroy(ranks->side);
    free(ranks);
}

static mixt_status make_ranks(int rank, int size, int gpu, mixt__nccl_ranks **made)
{
    mixt__nccl_ranks *ranks = calloc(1, sizeof *ranks);
    if (!ranks)
        return mixt__nccl_fail(MIXT_ERROR_MEMORY, "no memory for a group of ranks");
    *ranks = (mixt__nccl_ranks){.rank = rank, .size = size, .gpu = gpu, .users = 1};
    mixt_status status = mixt__nccl_check_cuda(cudaSetDevice(gpu), "opening the GPU");
    if (status == MIXT_OK)
        status =
            mixt__nccl_check_cuda(cudaStreamCreateWithFlags(&ranks->side, cudaStreamNonBlocking), "making a stream");
    if (status != MIXT_OK) {
        mixt__nccl_close(ranks, false);
        return status;
    }
    *made = ranks;
    return MIXT_OK;
}

static mixt_status join_others(mixt__nccl_ranks *ranks, const char *id)
{
    ncclUniqueId given;
    memcpy(&given, id, sizeof given);
    ncclResult_t result = ncclCommInitRank(&ranks->comm, ranks->size, given, ranks->rank);
    if (result == ncclInvalidUsage)
        return mixt__nccl_fail(MIXT_ERROR_DEVICE,
                               "NCCL takes one rank per GPU (%s): start as many ranks on a machine as it has GPUs, or "
                               "set dist.transport=mpi, where ranks can share a GPU",
                               ncclGetLastError(NULL));
    return mixt__nccl_check(result, "joining the other ranks over NCCL");
}

mixt_status mixt__nccl_join(const char *id, int rank, int size, int gpu, mixt__nccl_ranks **ranks)
{
    MIXT_TRY_NCCL(make_ranks(rank, size, gpu, ranks));
    mixt_status status = join_others(*ranks, id);
    if (status != MIXT_OK)
        mixt__nccl_close(*ranks, false);
    return status;
}

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 1)

static mixt_status part_from(const mixt__nccl_ranks *whole, int colour, int key, mixt__nccl_ranks *part)
{
    MIXT_TRY_NCCL(mixt__nccl_check(ncclCommSplit(whole->comm, colour, key, &part->comm, NULL), "parting ranks"));
    MIXT_TRY_NCCL(mixt__nccl_check(ncclCommUserRank(part->comm, &part->rank), "parting ranks"));
    return mixt__nccl_check(ncclCommCount(part->comm, &part->size), "parting ranks");
}

#else

static mixt_status part_from(const mixt__nccl_ranks *whole, int colour, int key, mixt__nccl_ranks *part)
{
    (void)whole, (void)colour, (void)key, (void)part;
    return mixt__nccl_fail(MIXT_ERROR_UNSUPPORTED, "this build's NCCL cannot split groups: 2.18.1 or later is needed");
}

#endif

mixt_status mixt__nccl_part(const mixt__nccl_ranks *whole, int colour, int key, mixt__nccl_ranks **part)
{
    if (!whole->comm)
        return mixt__nccl_fail(MIXT_ERROR_STATE, "NCCL was aborted");
    MIXT_TRY_NCCL(make_ranks(0, 0, whole->gpu, part));
    mixt_status status = part_from(whole, colour, key, *part);
    if (status != MIXT_OK)
        mixt__nccl_close(*part, false);
    return status;
}

/* ---- what the library exports ---- */

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
    error_text_set = error_set;
    MIXT_TRY_NCCL(mixt__nccl_check(ncclGetUniqueId(&made), "beginning NCCL"));
    _Static_assert(sizeof made == MIXT_DEVICE_ID_SIZE, "an id is as large as NCCL's");
    memcpy(id, &made, sizeof made);
    return MIXT_OK;
}

mixt_status mixt__nccl_begin(const char *abi, void (*error_set)(const char *text))
{
    error_text_set = error_set;
    if (!strcmp(abi, MIXT_TRANSPORT_ABI))
        return MIXT_OK;
    return mixt__nccl_fail(MIXT_ERROR_DEVICE, "libmixt_nccl.so is from another build: '%s', this is '%s'",
                           MIXT_TRANSPORT_ABI, abi);
}
