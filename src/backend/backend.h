/* The only seam between mixt and a device: kernels as ordered candidates, memory, and the training passes.
 *
 * A candidate is asked at plan time whether it supports a call (shapes and formats known, data not) and how much
 * workspace it needs; at run time it allocates nothing. The last candidate of every op on the CPU is plain C and
 * supports everything.
 */
#ifndef MIXT_BACKEND_BACKEND_H
#define MIXT_BACKEND_BACKEND_H

#include "backend/device.h"
#include "backend/training.h"
#include "base/threads.h"
#include "graph/op.h"
#include "ops/attrs.h"

typedef struct mixt__tensor {
    void *data; // NULL at plan time
    mixt_dtype dtype;
    mixt__shape shape;
    int64_t strides[MIXT_MAX_RANK]; // in elements
    bool contiguous;                // row-major without gaps; always so unless the op's record allows strides
    mixt__scale_kind scale_kind;    // of a pair, whose numbers are multiplied by scales (graph.h); NONE: it is none
    int64_t scale_block;
    float *scales;
} mixt__tensor;

/** A device that was opened. */
typedef struct mixt__device mixt__device;

typedef struct mixt__call {
    mixt__device *device;
    const mixt__op *op;
    const void *attrs;
    const char *layer;
    mixt_dtype arithmetic; // of the node (graph.h); TF32: FP32 operands may be rounded to TF32
    int in_count, out_count;
    mixt__tensor *in, *out;
    uint32_t accumulate; // bit o: add to output o (a parameter gradient) instead of overwriting it; may change from run
                         // to run
    const uint64_t *rng_key; // device memory; its value changes with the step; dropout mixes its own stream number in
    void *workspace;         // 64-byte aligned, workspace_bytes long
    size_t workspace_bytes;
    void *state;       // the candidate's own, from prepare
    bool tensor_cores; // from prepare: the products of this call run on the device's matrix units
} mixt__call;

typedef struct mixt__kernel {
    const char *name; // strategy, as `mixt plan --explain` prints it: "packed", "plain"
    /** Whether it can run the call; if not, *reason says why in words. NULL: always. */
    bool (*supports)(const mixt__call *call, const char **reason);
    /** Sets workspace_bytes and state (from the arena). NULL: needs nothing. */
    mixt_status (*prepare)(mixt__call *call, mixt__arena *arena);
    mixt_status (*run)(const mixt__call *call);
    /** Frees what prepare took outside the arena. NULL: nothing. */
    void (*release)(mixt__call *call);
} mixt__kernel;

typedef struct mixt__piece {
    void *dst;
    const void *src; // host or device memory
    size_t bytes;
} mixt__piece;

/** Slots of staging memory: one is filled while the work on the other runs. */
enum { MIXT_STAGE_SLOTS = 2 };

/** Work recorded once and replayed as a whole. */
typedef struct mixt__recording mixt__recording;

/** A kind of device. */
typedef struct mixt__backend {
    const char *name;    // "cpu", "cuda"
    bool host_memory;    // the host's pointers are the device's: batches need no copy
    bool coded_moments;  // its optimizer knows moments in codes of blocks: see mixt__update_role
    unsigned fused;      // of mixt__fused
    unsigned multiplies; // MIXT_MAY_MULTIPLY_CPU or _CUDA: which formats matrix work may be in
    /** One of them, by its number; the failure says what is missing. One may be opened more than once.
     *  @param threads of a CPU; 0: MIXT_THREADS, else all usable cores */
    mixt_status (*open)(int number, int threads, mixt__device **device);
    void (*close)(mixt__device *device);
    /** What the calling thread does next it does on this device; each of the calls below does it by itself. NULL: that
     *  needs nothing. */
    void (*enter)(mixt__device *device);
    /** The candidates of an op, best first, ended by NULL; NULL when the backend does not have the op. */
    const mixt__kernel *const *(*kernels)(const mixt__op *op);
    /** Device memory, 64-byte aligned, not cleared; NULL when there is none. */
    void *(*alloc)(mixt__device *device, size_t bytes);
    void (*free)(mixt__device *device, void *block);
    /** Host memory that copies run fastest from and to. */
    void *(*alloc_host)(mixt__device *device, size_t bytes);
    void (*free_host)(mixt__device *device, void *block);
    /** Bytes of device memory that are free now; 0 when that is not known. */
    size_t (*available)(mixt__device *device);
    /** Bytes of device memory taken through alloc and not given back. */
    size_t (*allocated)(mixt__device *device);
    mixt_status (*zero)(mixt__device *device, void *block, size_t bytes);
    mixt_status (*upload)(mixt__device *device, void *dst, const void *host, size_t bytes);
    mixt_status (*download)(mixt__device *device, void *host, const void *src, size_t bytes);
    /** In order with the kernels and without waiting, between device memory and memory of alloc_host, either way. */
    mixt_status (*copy)(mixt__device *device, void *dst, const void *src, size_t bytes);
    /** Copies into device memory beside the kernels: begins when what was issued before the last `fence` of this slot
     *  has run, and what is issued after the call waits for it. With `wait` it returns when the sources may be changed
     *  again. NULL with host_memory. */
    mixt_status (*stage)(mixt__device *device, int slot, const mixt__piece *pieces, int count, bool wait);
    /** What was issued so far is the last reader of this slot's memory. */
    mixt_status (*fence)(mixt__device *device, int slot);
    /** Until what was issued before the last fence of this slot has run; later work goes on meanwhile. */
    mixt_status (*wait)(mixt__device *device, int slot);
    /** Waits for everything issued so far and reports what failed. */
    mixt_status (*synchronize)(mixt__device *device);
    /** Records what `issue` issues instead of running it; NULL: the backend runs things as they come. */
    mixt_status (*record)(mixt__device *device, mixt_status (*issue)(void *argument), void *argument,
                          mixt__recording **recording);
    mixt_status (*replay)(mixt__device *device, mixt__recording *recording);
    void (*forget)(mixt__device *device, mixt__recording *recording);
    /** A point in the order of issued work, and the seconds that the device took between two of them (waits). */
    mixt_status (*mark)(mixt__device *device, int64_t index);
    mixt_status (*between)(mixt__device *device, int64_t first, int64_t last, double *seconds);
    /** What the device is and what it can do at most; NULL: the backend cannot say. */
    mixt_status (*describe)(mixt__device *device, mixt_gpu_info *info);
    /** Devices that the driver shows, and one of them by its number. NULL with `describe`. */
    int (*devices)(void);
    mixt_status (*describe_at)(int index, mixt_gpu_info *info);
    /** Joules that the device has used since some moment; NaN when it does not count them. NULL: never known. */
    double (*energy)(mixt__device *device);
    /** With NULL: a span begins. Else: what the units did since, at least 0.1 s later. False when the device does not
     *  count that. NULL: never known. */
    bool (*activity)(mixt__device *device, mixt__device_activity *since);
    /** Algorithms that were timed and chosen so far, as text: writes at most `room` bytes, returns how many there are.
     * NULL: nothing is timed. */
    size_t (*choices)(mixt__device *device, char *text, size_t room);
    /** Takes over the choices of an earlier run, so that it goes on with the same bits: before anything is compiled.
     * Those of another GPU or of other libraries are left out. NULL with `choices`. */
    void (*choose)(mixt__device *device, const char *text, size_t bytes);
    /** Calls whose candidates will be asked for next, one after the other: what takes long to prepare can be done for
     *  all of them at once. Changes nothing but the time. NULL: nothing does. */
    void (*foresee)(mixt__device *device, const mixt__call *calls, int64_t count);
    /** dst[i] = src[i] × *factor for a few numbers, in order with the kernels; all in device memory. NULL with
     * host_memory. */
    mixt_status (*multiply)(mixt__device *device, float *dst, const float *src, const float *factor, int64_t count);
    /** dst[i] = src[i] rounded to a low format, to the bits of a working copy, in order with the kernels; all in device
     *  memory, both at multiples of 32 bytes. NULL with host_memory. */
    mixt_status (*narrow)(mixt__device *device, void *dst, mixt_dtype format, const float *src, int64_t count);
    /** Copies beside the kernels; NULL: it has none. */
    const struct mixt__beside *beside;
    /* the last three passes of a step: see training.h */
    /** Bytes of update->workspace that they need for these segments: all the memory that they use beside the update's
     *  own. */
    size_t (*update_workspace)(mixt__device *device, const mixt__segment *segments, int64_t segment_count);
    mixt_status (*gradient_stats)(mixt__device *device, const mixt__update *update);
    /** Elements of a segment's chunk, whose statistics are partial sums of gradient_stats; and on the host, from those
     *  of all chunks of a segment, each measured as a segment of its own, to the bits of the segment's. */
    int64_t update_chunk;
    void (*join_stats)(const mixt__segment_stats *chunks, int64_t count, mixt__segment_stats *stats);
    mixt_status (*step_control)(mixt__device *device, const mixt__update *update);
    mixt_status (*optimizer_step)(mixt__device *device, const mixt__update *update);
    /* LAMB's optimizer_step in two halves, for segments that are parts of others': between the two the sums of all
     * parts are put together. */
    /** Moments; squares of weights and of their directions, two sums a chunk, to the beginning of the workspace. */
    mixt_status (*lamb_moments)(mixt__device *device, const mixt__update *update);
    /** On the host, from those of all chunks of a segment, in their order: what its rate is multiplied with, to the
     *  bits of optimizer_step. @param sums (count, 2) */
    float (*lamb_ratio)(const double *sums, int64_t count);
    /** Weights, working copies, statistics. @param ratios by segment, in memory of alloc_host */
    mixt_status (*lamb_weights)(mixt__device *device, const mixt__update *update, const float *ratios);
    /* Integrity, where update->sums are there: whoever writes state takes sums, and whoever reads it again takes them
     * off, so that what is left must be 0. All are in order with the kernels; what they find is noted in
     * update->damage, and nobody waits. All are NULL where a device has none of it. */
    /** Sums of the state as it is: after it was written by others than an update. */
    mixt_status (*sum_segments)(mixt__device *device, const mixt__update *update);
    /** Between step_control and the update: takes off what that does not read, the working copies where they are due;
     *  of an update that is skipped all. */
    mixt_status (*check_segments)(mixt__device *device, const mixt__update *update);
    /** After the update: whether it has read what was written before. */
    mixt_status (*judge_sums)(mixt__device *device, const mixt__update *update);
    /** Before the passes that move them: whether running statistics are those that were kept. */
    mixt_status (*check_statistics)(mixt__device *device, const mixt__update *update);
    /** Sums of memory that no update writes. @param blocks (count) in device memory; their pointers are the device's
     *  @param damage NULL: as it is it is right; else it is compared with how it was then */
    mixt_status (*sum_blocks)(mixt__device *device, mixt__still_block *blocks, int64_t count, mixt__damage *damage);
} mixt__backend;

struct mixt__device {
    const mixt__backend *backend;
    int number; // of its kind, from 0
    bool rough; // algorithms that are not known yet are taken untimed and not kept: for plans that are counted and not
                // run, whose workspaces may differ a little from those of the plan that runs
    mixt__team *team; // a CPU's own threads; NULL: the process's
    size_t held;      // bytes of its memory, for `allocated`
    void *own;        // what its kind keeps of it
};

/** The CPU with the process's own threads. */
extern mixt__device mixt__device_cpu;

extern const mixt__backend mixt__backend_cpu;

/** The GPU's backend from libmixt_cuda.so, loaded at the first call; a failure says what is missing. */
mixt_status mixt__backend_cuda(const mixt__backend **backend);
/** The same for those who can do without. A machine without NVIDIA's driver pays one failed look-up: loading CUDA's
 *  libraries, which can take a second, waits until there is one. */
mixt_status mixt__backend_gpu(const mixt__backend **backend);
#include "backend/calls.h"

#endif
