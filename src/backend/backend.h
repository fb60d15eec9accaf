/* The only seam between mixt and a device: kernels as ordered candidates, memory, and the training passes.
 *
 * A candidate is asked at plan time whether it supports a call (shapes and formats known, data not) and how much
 * workspace it needs; at run time it allocates nothing. The last candidate of every op on the CPU is plain C and
 * supports everything.
 */
#ifndef MIXT_BACKEND_BACKEND_H
#define MIXT_BACKEND_BACKEND_H

#include "backend/training.h"
#include "graph/op.h"

typedef struct mixt__tensor {
    void *data; // NULL at plan time
    mixt_dtype dtype;
    mixt__shape shape;
    int64_t strides[MIXT_MAX_RANK]; // in elements
    bool contiguous;                // row-major without gaps; always so unless the op's record allows strides
} mixt__tensor;

typedef struct mixt__call {
    const mixt__op *op;
    const void *attrs;
    const char *layer;
    mixt_dtype math; // TF32: FP32 operands may be rounded to TF32
    int in_count, out_count;
    mixt__tensor *in, *out;
    uint32_t accumulate; // bit o: add to output o (a parameter gradient) instead of overwriting it; may change from run
                         // to run
    uint64_t rng_key;    // of this run: changes with the step; dropout mixes its own stream number in
    void *workspace;     // 64-byte aligned, workspace_bytes long
    size_t workspace_bytes;
    void *state; // the candidate's own, from prepare
} mixt__call;

typedef struct mixt__kernel {
    const char *name; // strategy, as `mixt plan --explain` prints it: "packed", "onednn", "plain"
    /** Whether it can run the call; if not, *reason says why in words. NULL: always. */
    bool (*supports)(const mixt__call *call, const char **reason);
    /** Sets workspace_bytes and state (from the arena). NULL: needs nothing. */
    mixt_status (*prepare)(mixt__call *call, mixt__arena *arena);
    mixt_status (*run)(const mixt__call *call);
    /** Frees what prepare took outside the arena. NULL: nothing. */
    void (*release)(mixt__call *call);
} mixt__kernel;

typedef struct mixt__backend {
    const char *name; // "cpu", "cuda"
    /** The candidates of an op, best first, ended by NULL; NULL when the backend does not have the op. */
    const mixt__kernel *const *(*kernels)(const mixt__op *op);
    /** Device memory, 64-byte aligned, not cleared; NULL when there is none. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *block);
    /** Bytes that are free now; 0 when that is not known. */
    size_t (*available)(void);
    mixt_status (*zero)(void *block, size_t bytes);
    mixt_status (*upload)(void *device, const void *host, size_t bytes);
    mixt_status (*download)(void *host, const void *device, size_t bytes);
    /** Waits for everything issued so far and reports what failed. */
    mixt_status (*synchronize)(void);
    /* the last three passes of a step: see training.h */
    mixt_status (*gradient_stats)(const mixt__update *update);
    mixt_status (*step_control)(const mixt__update *update);
    mixt_status (*optimizer_step)(const mixt__update *update);
} mixt__backend;

extern const mixt__backend mixt__backend_cpu;

#endif
