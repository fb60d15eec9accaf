/* Messages between ranks over NCCL, for machines without MPI: from host memory over the GPU's and back.
 *
 * All of a call go as one group. NCCL finds the ranks by its own socket, NCCL_COMM_ID=HOST:PORT, the same for all. A
 * rank that gives up cannot say why: the others see it end.
 */
#include "dist/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

typedef struct messages {
    mixt__transport transport; // the first field: what callers have is this object
    mixt__nccl_ranks *ranks;
    char *device, *host; // (capacity) each; pinned
    size_t capacity;
} messages;

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t total(const mixt__message *list, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += aligned(list[i].bytes);
    return bytes;
}

static void drop(messages *m)
{
    cudaFree(m->device);
    cudaFreeHost(m->host);
    m->device = m->host = NULL;
    m->capacity = 0;
}

static mixt_status grow(messages *m, size_t bytes)
{
    if (bytes <= m->capacity)
        return MIXT_OK;
    drop(m);
    MIXT_TRY_NCCL(mixt__nccl_check_cuda(cudaMalloc((void **)&m->device, bytes), "memory for messages"));
    MIXT_TRY_NCCL(
        mixt__nccl_check_cuda(cudaHostAlloc((void **)&m->host, bytes, cudaHostAllocDefault), "memory for messages"));
    m->capacity = bytes;
    return MIXT_OK;
}

/** Posts them; where they are received begins behind what is sent. */
static mixt_status post(const messages *m, const mixt__message *out, int outs, const mixt__message *in, int ins,
                        size_t sent)
{
    size_t at = 0;
    MIXT_TRY_NCCL(mixt__nccl_check(ncclGroupStart(), "sending messages"));
    for (int i = 0; i < outs; at += aligned(out[i++].bytes))
        MIXT_TRY_NCCL(mixt__nccl_check(
            ncclSend(m->device + at, out[i].bytes, ncclInt8, out[i].peer, m->ranks->comm, m->ranks->side),
            "sending messages"));
    at = sent;
    for (int i = 0; i < ins; at += aligned(in[i++].bytes))
        MIXT_TRY_NCCL(mixt__nccl_check(
            ncclRecv(m->device + at, in[i].bytes, ncclInt8, in[i].peer, m->ranks->comm, m->ranks->side),
            "receiving messages"));
    return mixt__nccl_check(ncclGroupEnd(), "sending messages");
}

static mixt_status exchange(mixt__transport *self, const mixt__message *out, int outs, const mixt__message *in, int ins,
                            const mixt__waiting *waiting, mixt__arrival *arrival)
{
    messages *m = (messages *)self;
    size_t sent = total(out, outs), got = total(in, ins), at = 0;
    *arrival = (mixt__arrival){.late = -1, .dead = -1, .gave_up = -1};
    if (!m->ranks->comm)
        return mixt__nccl_fail(MIXT_ERROR_STATE, "NCCL was aborted");
    if (!outs && !ins)
        return MIXT_OK;
    MIXT_TRY_NCCL(grow(m, sent + got));
    for (int i = 0; i < outs; at += aligned(out[i++].bytes))
        memcpy(m->host + at, out[i].data, out[i].bytes);
    MIXT_TRY_NCCL(mixt__nccl_check_cuda(
        cudaMemcpyAsync(m->device, m->host, sent, cudaMemcpyHostToDevice, m->ranks->side), "sending messages"));
    MIXT_TRY_NCCL(post(m, out, outs, in, ins, sent));
    MIXT_TRY_NCCL(mixt__nccl_check_cuda(
        cudaMemcpyAsync(m->host + sent, m->device + sent, got, cudaMemcpyDeviceToHost, m->ranks->side),
        "receiving messages"));
    MIXT_TRY_NCCL(mixt__nccl_wait(m->ranks, m->ranks->side, waiting, arrival));
    at = sent;
    for (int i = 0; i < ins; at += aligned(in[i++].bytes))
        memcpy(in[i].data, m->host + at, in[i].bytes);
    return MIXT_OK;
}

/** There is no way around the communicator: its abort ends the others' waits. */
static void give_up(mixt__transport *self, const char *why, int speaker)
{
    messages *m = (messages *)self;
    (void)why;
    (void)speaker;
    if (m->ranks->comm)
        ncclCommAbort(m->ranks->comm);
    m->ranks->comm = NULL;
}

static void close_transport(mixt__transport *self, bool whole)
{
    messages *m = (messages *)self;
    drop(m);
    mixt__nccl_close(m->ranks, whole);
    free(m);
}

mixt__nccl_ranks *mixt__nccl_ranks_of(mixt__transport *transport)
{
    return transport->close == close_transport ? ((messages *)transport)->ranks : NULL;
}

static mixt__transport_split_fn split;

/** Takes over one use of the ranks. */
static mixt_status open_on(mixt__nccl_ranks *ranks, mixt__transport **transport)
{
    messages *m = calloc(1, sizeof *m);
    if (!m) {
        mixt__nccl_close(ranks, false);
        return mixt__nccl_fail(MIXT_ERROR_MEMORY, "no memory for messages");
    }
    m->ranks = ranks;
    m->transport = (mixt__transport){.name = "nccl", .version = mixt_transport_version()};
    m->transport.rank = ranks->rank;
    m->transport.size = ranks->size;
    m->transport.exchange = exchange;
    m->transport.give_up = give_up;
    m->transport.split = split;
    m->transport.close = close_transport;
    *transport = &m->transport;
    return MIXT_OK;
}

static mixt_status split(mixt__transport *self, int colour, int key, mixt__transport **part)
{
    mixt__nccl_ranks *ranks;
    MIXT_TRY_NCCL(mixt__nccl_part(((const messages *)self)->ranks, colour, key, &ranks));
    return open_on(ranks, part);
}

mixt_status mixt_transport_open(const char *abi, int rank, int size, double timeout,
                                void (*error_set)(const char *text), mixt__transport **transport)
{
    (void)timeout; // NCCL has its own
    char id[MIXT_DEVICE_ID_SIZE];
    mixt__nccl_ranks *ranks;
    MIXT_TRY_NCCL(mixt__nccl_begin(abi, error_set));
    if (!getenv("NCCL_COMM_ID"))
        return mixt__nccl_fail(MIXT_ERROR_CONFIG,
                               "without MPI the ranks of NCCL find each other by NCCL_COMM_ID=HOST:PORT, an address of "
                               "rank 0's machine, the same for all: it is not set");
    MIXT_TRY_NCCL(mixt_device_id(error_set, id));              // NCCL makes it of that
    MIXT_TRY_NCCL(mixt__nccl_join(id, rank, size, 0, &ranks)); // each process of a machine sees one GPU
    return open_on(ranks, transport);
}
