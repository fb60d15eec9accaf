/* What the files of libmixt_nccl.so share: a communicator of some ranks, with a stream of the GPU beside its own. */
#ifndef MIXT_DIST_NCCL_NCCL_H
#define MIXT_DIST_NCCL_NCCL_H

#include "dist/transport.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

/** Ranks that are joined: all, or a part. */
typedef struct mixt__nccl_ranks {
    ncclComm_t comm; // NULL: aborted
    int rank, size;
    int gpu;           // number of this rank's
    int users;         // sums, messages: the last that closes it leaves the others
    bool broken;       // one of them was closed without the others
    cudaStream_t side; // sums and messages
} mixt__nccl_ranks;

/* what the library exports */
mixt__transport_version_fn mixt_transport_version;
mixt__transport_open_fn mixt_transport_open;
mixt__device_id_fn mixt_device_id;
mixt__device_sums_open_fn mixt_device_sums_open;

/** Passes a failure on. */
#define MIXT_TRY_NCCL(call)                                                                                            \
    do {                                                                                                               \
        mixt_status status_ = (call);                                                                                  \
        if (status_ != MIXT_OK)                                                                                        \
            return status_;                                                                                            \
    } while (0)

mixt_status mixt__nccl_fail(mixt_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
mixt_status mixt__nccl_check(ncclResult_t result, const char *what);
mixt_status mixt__nccl_check_cuda(cudaError_t error, const char *what);

/** Whether the loader is of this build; takes its setter of error texts. */
mixt_status mixt__nccl_begin(const char *abi, void (*error_set)(const char *text));
/** Waits for the others. @param id of rank 0 @param ranks has one user */
mixt_status mixt__nccl_join(const char *id, int rank, int size, int gpu, mixt__nccl_ranks **ranks);
/** Those of the same colour, who all call it: see mixt__transport_split_fn. @param part has one user */
mixt_status mixt__nccl_part(const mixt__nccl_ranks *whole, int colour, int key, mixt__nccl_ranks **part);
/** Until a stream has run; where a rank is lost, nothing can be carried any more. */
mixt_status mixt__nccl_wait(mixt__nccl_ranks *ranks, cudaStream_t stream, const mixt__waiting *waiting,
                            mixt__arrival *arrival);
/** One user less; the last leaves them. @param whole all do */
void mixt__nccl_close(mixt__nccl_ranks *ranks, bool whole);

/** The ranks that a transport of this library joins; NULL: it is another library's. */
mixt__nccl_ranks *mixt__nccl_ranks_of(mixt__transport *transport);

#endif
