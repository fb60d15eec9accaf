/* A small builder over cuDNN's graph API: tensors and operations in, a chosen execution plan out.
 *
 * Tensors are small handles of the graph that made them; 0 is none. A failure sticks: later calls on the graph do
 * nothing, and mixt__cudnn_choose reports it. Plans never change, so calls of a
 * device that build the same graph share one. Only
 * engines that give the same bits every time are taken.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_CUDNN_GRAPH_H
#define MIXT_BACKEND_CUDA_CORE_CUDNN_GRAPH_H

#include "backend/cuda/core/cuda.h"

#include <cudnn_backend.h>

enum { MIXT_CUDNN_TENSORS = 64, MIXT_CUDNN_OPS = 40 };

typedef struct mixt__cudnn_shape {
    cudnnDataType_t type;
    int rank;
    int64_t dims[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX]; // in elements
    bool by_batch; // dims[0] is the batch: engines are shared with batches that are near
} mixt__cudnn_shape;

typedef struct mixt__cudnn_graph {
    mixt__cuda_device *gpu;
    const char *name; // for the log and for the key of the choice
    mixt_status status;
    uint64_t hash; // of everything that was described
    uint64_t kind; // the same without the batch
    int64_t batch; // 0: nothing was said of one
    int tensor_count, op_count, extra_count;
    cudnnBackendDescriptor_t tensors[MIXT_CUDNN_TENSORS + 1];
    size_t bytes[MIXT_CUDNN_TENSORS + 1];  // in device memory; 0: virtual or by value
    bool by_value[MIXT_CUDNN_TENSORS + 1]; // value below
    uint64_t value[MIXT_CUDNN_TENSORS + 1];
    cudnnBackendDescriptor_t ops[MIXT_CUDNN_OPS];
    cudnnBackendDescriptor_t extras[MIXT_CUDNN_OPS]; // what operations refer to besides tensors
    cudnnBackendDescriptor_t graph;
} mixt__cudnn_graph;

/** A graph with nothing in it; `name` is borrowed. */
void mixt__cudnn_begin(mixt__cudnn_graph *g, mixt__cuda_device *gpu, const char *name);
/** Makes one graph of all that was described, with a handle that this thread alone uses. */
mixt_status mixt__cudnn_finish(mixt__cudnn_graph *g, cudnnHandle_t handle);
/** Frees the descriptors; a plan that was chosen stays. */
void mixt__cudnn_end(mixt__cudnn_graph *g);

cudnnDataType_t mixt__cudnn_type(mixt_dtype dtype);

/* ---- tensors ---- */

/** In device memory, 16-byte aligned. mixt__cudnn_run takes pointers in the order of these calls. */
int mixt__cudnn_memory(mixt__cudnn_graph *g, const mixt__cudnn_shape *shape);
/** Between two operations, never in memory. */
int mixt__cudnn_virtual(mixt__cudnn_graph *g, const mixt__cudnn_shape *shape);
/** One value known now, of rank dimensions. */
int mixt__cudnn_scalar(mixt__cudnn_graph *g, float value, int rank);

/** The same with rank 4, for virtual tensors in row-major order. */
int mixt__cudnn_virtual4(mixt__cudnn_graph *g, cudnnDataType_t type, int64_t a, int64_t b, int64_t c, int64_t d);

/* ---- operations: everything computes in FP32 unless said otherwise ---- */

typedef enum mixt__cudnn_conv_kind {
    MIXT_CUDNN_CONV_FORWARD,
    MIXT_CUDNN_CONV_GRAD_SRC,
    MIXT_CUDNN_CONV_GRAD_WEIGHT,
} mixt__cudnn_conv_kind;

typedef struct mixt__cudnn_conv {
    mixt__cudnn_conv_kind kind;
    int spatial; // dimensions after (N, C)
    int64_t pad_before[3], pad_after[3], stride[3], dilation[3];
    int src, weight, dst; // or their gradients: dims (N, C, H, W), (O, C, R, S), (N, O, P, Q), strides say the layout
    float beta;           // what the result's old value counts
} mixt__cudnn_conv;

void mixt__cudnn_convolve(mixt__cudnn_graph *g, const mixt__cudnn_conv *conv);

/** dst (…, M, N) = a (…, M, K) · b (…, K, N). */
void mixt__cudnn_matmul(mixt__cudnn_graph *g, int a, int b, int dst);

typedef struct mixt__cudnn_pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t compute; // 0: FP32
    int64_t axis;            // of GEN_INDEX
    int x, b, t, dst;        // dst = mode(x, b, t); a gradient mode: x forward's input, b gradient of its output
} mixt__cudnn_pointwise;

void mixt__cudnn_map(mixt__cudnn_graph *g, const mixt__cudnn_pointwise *pointwise);

/** Over the dimensions in which dst has size 1. */
void mixt__cudnn_reduce(mixt__cudnn_graph *g, cudnnReduceTensorOp_t op, int src, int dst);
/** The same elements under other dims and strides. */
void mixt__cudnn_reshape(mixt__cudnn_graph *g, int src, int dst);

/* ---- plans ---- */

typedef struct mixt__cudnn_wish {
    bool strict_fp32;       // no TF32 and nothing that rounds FP32 operands
    bool any_order;         // also engines whose sums may change order from run to run
    bool few;               // its engines are compiled when they are built: fewer of them are compared
    size_t workspace_limit; // 0: 1 GiB
} mixt__cudnn_wish;

typedef struct mixt__cudnn_plan mixt__cudnn_plan;

/** The fastest engine that the wish allows: remembered, or timed on scratch memory when the data is large enough for
 *  that to matter. Fails when cuDNN has none, with its reason. Plans stay as long as the device: asking again for the
 *  same graph, from supports and then from prepare, or for the next layer, costs next to nothing. */
mixt_status mixt__cudnn_choose(mixt__cudnn_graph *g, const mixt__cudnn_wish *wish, const mixt__cudnn_plan **plan);

/** While it is on, mixt__cudnn_choose fails for graphs that it does not know yet, and remembers them; when it ends,
 * their plans are built on all cores, so that choosing them finds the slow part done. */
void mixt__cudnn_foresee(mixt__cuda_device *gpu, bool on);
/** Forgets the plans of a device that nobody works with. */
void mixt__cudnn_drop(mixt__cuda_device *gpu);

size_t mixt__cudnn_workspace(const mixt__cudnn_plan *plan);
/** Seconds that the chosen engine took; 0 when it was not timed. */
double mixt__cudnn_seconds(const mixt__cudnn_plan *plan);

/** Issues the plan on the stream; one pointer a tensor of mixt__cudnn_memory. */
mixt_status mixt__cudnn_run(const mixt__cudnn_plan *plan, void *const *pointers, void *workspace);

/** A handle bound to the stream; NULL after a failure, which has been recorded. */
cudnnHandle_t mixt__cudnn_handle(mixt__cuda_device *gpu);
/** A failure in cuDNN's words, or MIXT_OK. */
mixt_status mixt__cudnn_check(cudnnStatus_t status, const char *what);

#endif
