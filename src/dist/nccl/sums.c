/* Sums over ranks in a GPU's memory.
 *
 * They run on a stream of their own that branches off the device's and joins it again: both may be under capture, and
 * are replayed as a part of the step then. Which ranks add what is NCCL's choice: the same every time on the same
 * machines, but not the order of ranks.
 */
#include "dist/nccl/nccl.h"

#include <stdlib.h>

/** Sums of some ranks. */
typedef struct device_sums {
    mixt__device_sums base; // the first field: what callers have is this object
    mixt__nccl_ranks *ranks;
    cudaStream_t stream;      // the device's own, of the GPU's backend
    cudaEvent_t made, summed; // where that of the sums branches off, and joins again
    cudaEvent_t *marks;       // (mark_count) where it may be joined before
    int64_t mark_count;
} device_sums;

/* ---- sums ---- */

/** What is issued on the stream of sums waits for what was issued on the device's. */
static mixt_status branch(const device_sums *s)
{
    MIXT_TRY_NCCL(mixt__nccl_check_cuda(cudaEventRecord(s->made, s->stream), "marking gradients"));
    return mixt__nccl_check_cuda(cudaStreamWaitEvent(s->ranks->side, s->made, 0), "waiting for gradients");
}

static mixt_status sum(mixt__device_sums *self, float *data, int64_t count)
{
    const device_sums *s = (const device_sums *)self;
    MIXT_TRY_NCCL(branch(s));
    return mixt__nccl_check(
        ncclAllReduce(data, data, (size_t)count, ncclFloat32, ncclSum, s->ranks->comm, s->ranks->side),
        "summing gradients");
}

/** What is done with one rank's part of the bytes. */
typedef ncclResult_t part_fn(const mixt__nccl_ranks *ranks, void *part, size_t bytes, int rank, void *user);

/** One for each rank's part, as one piece of work. */
static mixt_status each_part(mixt__device_sums *self, void *data, const int64_t *cuts, size_t size, part_fn *fn,
                             void *user, const char *what)
{
    const device_sums *s = (const device_sums *)self;
    MIXT_TRY_NCCL(branch(s));
    MIXT_TRY_NCCL(mixt__nccl_check(ncclGroupStart(), what));
    for (int rank = 0; rank < s->ranks->size; rank++) {
        char *part = (char *)data + (size_t)(cuts[rank] - cuts[0]) * size;
        size_t bytes = (size_t)(cuts[rank + 1] - cuts[rank]) * size;
        if (bytes)
            MIXT_TRY_NCCL(mixt__nccl_check(fn(s->ranks, part, bytes, rank, user), what));
    }
    return mixt__nccl_check(ncclGroupEnd(), what);
}

static ncclResult_t reduce_part(const mixt__nccl_ranks *ranks, void *part, size_t bytes, int rank, void *mine)
{
    return ncclReduce(part, rank == ranks->rank ? mine : part, bytes / sizeof(float), ncclFloat32, ncclSum, rank,
                      ranks->comm, ranks->side);
}

static mixt_status reduce(mixt__device_sums *self, float *data, const int64_t *cuts, float *mine)
{
    return each_part(self, data, cuts, sizeof *data, reduce_part, mine, "summing gradients");
}

static ncclResult_t gather_part(const mixt__nccl_ranks *ranks, void *part, size_t bytes, int rank, void *unused)
{
    (void)unused;
    return ncclBroadcast(part, part, bytes, ncclInt8, rank, ranks->comm, ranks->side);
}

static mixt_status gather(mixt__device_sums *self, void *data, const int64_t *cuts, size_t size)
{
    return each_part(self, data, cuts, size, gather_part, NULL, "collecting shares");
}

/* ---- their order ---- */

static mixt_status make_event(cudaEvent_t *event)
{
    return mixt__nccl_check_cuda(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event");
}

static mixt_status mark(mixt__device_sums *self, int64_t number)
{
    device_sums *s = (device_sums *)self;
    if (number >= s->mark_count) {
        cudaEvent_t *more = realloc(s->marks, (size_t)(number + 1) * sizeof *more);
        if (!more)
            return mixt__nccl_fail(MIXT_ERROR_MEMORY, "no memory for marks of sums");
        s->marks = more;
    }
    for (; s->mark_count <= number; s->mark_count++)
        MIXT_TRY_NCCL(make_event(&s->marks[s->mark_count]));
    return mixt__nccl_check_cuda(cudaEventRecord(s->marks[number], s->ranks->side), "marking sums");
}

static mixt_status join(mixt__device_sums *self, int64_t number)
{
    const device_sums *s = (const device_sums *)self;
    cudaEvent_t end = number < 0 ? s->summed : s->marks[number];
    if (number < 0)
        MIXT_TRY_NCCL(mixt__nccl_check_cuda(cudaEventRecord(end, s->ranks->side), "marking sums"));
    return mixt__nccl_check_cuda(cudaStreamWaitEvent(s->stream, end, 0), "waiting for sums");
}

static mixt_status wait_for_device(mixt__device_sums *self, const mixt__waiting *waiting, mixt__arrival *arrival)
{
    const device_sums *s = (const device_sums *)self;
    return mixt__nccl_wait(s->ranks, s->stream, waiting, arrival);
}

/* ---- opening, parting, closing ---- */

static void close_sums(mixt__device_sums *self, bool whole)
{
    device_sums *s = (device_sums *)self;
    mixt__nccl_close(s->ranks, whole);
    for (int64_t i = 0; i < s->mark_count; i++)
        cudaEventDestroy(s->marks[i]);
    free(s->marks);
    if (s->made)
        cudaEventDestroy(s->made);
    if (s->summed)
        cudaEventDestroy(s->summed);
    free(s);
}

static mixt__device_sums_split_fn split;

/** Takes over one use of the ranks. */
static mixt_status open_on(mixt__nccl_ranks *ranks, cudaStream_t stream, mixt__device_sums **sums)
{
    device_sums *s = calloc(1, sizeof *s);
    if (!s) {
        mixt__nccl_close(ranks, false);
        return mixt__nccl_fail(MIXT_ERROR_MEMORY, "no memory for sums over ranks");
    }
    s->ranks = ranks;
    s->stream = stream;
    s->base = (mixt__device_sums){.version = mixt_transport_version(), .sum = sum, .reduce = reduce, .gather = gather};
    s->base.mark = mark;
    s->base.join = join;
    s->base.wait = wait_for_device;
    s->base.split = split;
    s->base.close = close_sums;
    mixt_status status = make_event(&s->made);
    if (status == MIXT_OK)
        status = make_event(&s->summed);
    if (status != MIXT_OK) {
        close_sums(&s->base, false);
        return status;
    }
    *sums = &s->base;
    return MIXT_OK;
}

static mixt_status split(mixt__device_sums *self, int colour, int key, mixt__device_sums **part)
{
    const device_sums *s = (const device_sums *)self;
    mixt__nccl_ranks *ranks;
    MIXT_TRY_NCCL(mixt__nccl_part(s->ranks, colour, key, &ranks));
    return open_on(ranks, s->stream, part);
}

mixt_status mixt_device_sums_open(const char *abi, void (*error_set)(const char *text), const mixt__sums_place *place,
                                  mixt__device_sums **sums)
{
    MIXT_TRY_NCCL(mixt__nccl_begin(abi, error_set));
    mixt__nccl_ranks *ranks = place->transport ? mixt__nccl_ranks_of(place->transport) : NULL;
    if (ranks) // which carries messages too
        ranks->users++;
    else
        MIXT_TRY_NCCL(mixt__nccl_join(place->id, place->rank, place->size, place->gpu, &ranks));
    return open_on(ranks, place->stream, sums);
}
