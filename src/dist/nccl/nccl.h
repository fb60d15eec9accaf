/* What the files of libmixt_nccl.so share: one communicator a process, two streams of its GPU. */
#ifndef MIXT_DIST_NCCL_NCCL_H
#define MIXT_DIST_NCCL_NCCL_H

#include "dist/transport.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

typedef struct mixt__nccl_state {
    ncclComm_t comm; // NULL: not joined yet, or aborted
    int rank, size;
    int users;                // sums, messages: the last that closes it leaves the others
    bool broken;              // one of them was closed without the others
    cudaStream_t stream;      // the device's own, of the GPU's backend
    cudaStream_t side;        // sums and messages
    cudaEvent_t made, summed; // where the second branches off, and joins again
    cudaEvent_t *marks;       // (mark_count) where it may be joined before
    int64_t mark_count;
    void (*error_set)(const char *text);
} mixt__nccl_state;

extern mixt__nccl_state mixt__nccl;

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
/** Waits for the others. @param id of rank 0 */
mixt_status mixt__nccl_join(const char *id, int rank, int size);
/** Until a stream has run; where a rank is lost, nothing can be carried any more. */
mixt_status mixt__nccl_wait(cudaStream_t stream, const mixt__waiting *waiting, mixt__arrival *arrival);
/** One user less; the last leaves them. @param whole all do */
void mixt__nccl_close(bool whole);

#endif
