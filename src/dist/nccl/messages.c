/* Messages between ranks over NCCL, for machines without MPI: from host memory over the GPU's and back.
 *
 * All of a call go as one group. NCCL finds the ranks by its own socket, NCCL_COMM_ID=HOST:PORT, the same for all. A
 * rank that gives up cannot say why: the others see it end.
 */
#include "dist/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

static struct {
    mixt__transport transport;
    char *device, *host; // (capacity) each; pinned
    size_t capacity;
} box;

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t total(const mixt__message *messages, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += aligned(messages[i].bytes);
    return bytes;
}

static void drop(void)
{
    cudaFree(box.device);
    cudaFreeHost(box.host);
    box.device = box.host = NULL;
    box.capacity = 0;
}

static mixt_status grow(size_t bytes)
{
    if (bytes <= box.capacity)
        return MIXT_OK;
    drop();
    MIXT_TRY_NCCL(mixt__nccl_check_cuda(cudaMalloc((void **)&box.device, bytes), "memory for messages"));
    MIXT_TRY_NCCL(
        mixt__nccl_check_cuda(cudaHostAlloc((void **)&box.host, bytes, cudaHostAllocDefault), "memory for messages"));
    box.capacity = bytes;
    return MIXT_OK;
}

/** Posts them; where they are received begins behind what is sent. */
static mixt_status post(const mixt__message *out, int outs, const mixt__message *in, int ins, size_t sent)
{
    size_t at = 0;
    MIXT_TRY_NCCL(mixt__nccl_check(ncclGroupStart(), "sending messages"));
    for (int i = 0; i < outs; at += aligned(out[i++].bytes))
        MIXT_TRY_NCCL(mixt__nccl_check(
            ncclSend(box.device + at, out[i].bytes, ncclInt8, out[i].peer, mixt__nccl.comm, mixt__nccl.side),
            "sending messages"));
    at = sent;
    for (int i = 0; i < ins; at += aligned(in[i++].bytes))
        MIXT_TRY_NCCL(mixt__nccl_check(
            ncclRecv(box.device + at, in[i].bytes, ncclInt8, in[i].peer, mixt__nccl.comm, mixt__nccl.side),
            "receiving messages"));
    return mixt__nccl_check(ncclGroupEnd(), "sending messages");
}

static mixt_status exchange(mixt__transport *self, const mixt__message *out, int outs, const mixt__message *in, int ins,
                            const mixt__waiting *waiting, mixt__arrival *arrival)
{
    (void)self;
    size_t sent = total(out, outs), got = total(in, ins), at = 0;
    *arrival = (mixt__arrival){.late = -1, .dead = -1, .gave_up = -1};
    if (!mixt__nccl.comm)
        return mixt__nccl_fail(MIXT_ERROR_STATE, "NCCL was aborted");
    if (!outs && !ins)
        return MIXT_OK;
    MIXT_TRY_NCCL(grow(sent + got));
    for (int i = 0; i < outs; at += aligned(out[i++].bytes))
        memcpy(box.host + at, out[i].data, out[i].bytes);
    MIXT_TRY_NCCL(mixt__nccl_check_cuda(
        cudaMemcpyAsync(box.device, box.host, sent, cudaMemcpyHostToDevice, mixt__nccl.side), "sending messages"));
    MIXT_TRY_NCCL(post(out, outs, in, ins, sent));
    MIXT_TRY_NCCL(mixt__nccl_check_cuda(
        cudaMemcpyAsync(box.host + sent, box.device + sent, got, cudaMemcpyDeviceToHost, mixt__nccl.side),
        "receiving messages"));
    MIXT_TRY_NCCL(mixt__nccl_wait(mixt__nccl.side, waiting, arrival));
    at = sent;
    for (int i = 0; i < ins; at += aligned(in[i++].bytes))
        memcpy(in[i].data, box.host + at, in[i].bytes);
    return MIXT_OK;
}

/** There is no way around the communicator: its abort ends the others' waits. */
static void give_up(mixt__transport *self, const char *why, int speaker)
{
    (void)self;
    (void)why;
    (void)speaker;
    if (mixt__nccl.comm)
        ncclCommAbort(mixt__nccl.comm);
    mixt__nccl.comm = NULL;
}

static void close_transport(mixt__transport *self, bool whole)
{
    (void)self;
    drop();
    mixt__nccl_close(whole);
}

mixt_status mixt_transport_open(const char *abi, int rank, int size, double timeout,
                                void (*error_set)(const char *text), mixt__transport **transport)
{
    (void)timeout; // NCCL has its own
    char id[MIXT_DEVICE_ID_SIZE];
    MIXT_TRY_NCCL(mixt__nccl_begin(abi, error_set));
    if (!getenv("NCCL_COMM_ID"))
        return mixt__nccl_fail(MIXT_ERROR_CONFIG,
                               "without MPI the ranks of NCCL find each other by NCCL_COMM_ID=HOST:PORT, an address of "
                               "rank 0's machine, the same for all: it is not set");
    MIXT_TRY_NCCL(mixt_device_id(error_set, id)); // NCCL makes it of that
    MIXT_TRY_NCCL(mixt__nccl_join(id, rank, size));
    box.transport = (mixt__transport){.name = "nccl", .version = mixt_transport_version(), .rank = rank, .size = size};
    box.transport.exchange = exchange;
    box.transport.give_up = give_up;
    box.transport.close = close_transport;
    *transport = &box.transport;
    return MIXT_OK;
}
