/* What the files of the matrix product share: the call as a batch of equal products, and that batch as cuBLASLt sees
 * it.
 *
 * Rows of our tensors are columns of cuBLAS's: it is asked for the transposed result, op(b)ᵀ · op(a)ᵀ, so its first
 * operand is our b, and its bias runs along our columns.
 */
#ifndef MIXT_BACKEND_CUDA_GEMM_MATMUL_H
#define MIXT_BACKEND_CUDA_GEMM_MATMUL_H

#include "backend/cuda/core/cuda.h"

#include <cublasLt.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One product when b is a plain matrix (the leading dimensions of a are rows), else one per leading index. */
typedef struct mixt__cuda_product {
    bool rows;
    int64_t batch, m, n, k;
    int64_t a_ld, b_ld;     // from one stored row to the next, in elements
    int64_t a_step, b_step; // from one product of the batch to the next; where `regular`
    bool regular;           // one stride walks all leading dimensions of each operand
} mixt__cuda_product;

mixt__cuda_product mixt__cuda_product_of(const mixt__call *call);

/** The inputs beyond a and b; NULL where the call has none. */
const mixt__tensor *mixt__cuda_product_bias(const mixt__call *call);
const mixt__tensor *mixt__cuda_product_addend(const mixt__call *call);
const mixt__tensor *mixt__cuda_product_pre(const mixt__call *call);
/** Why no kernel here takes a form of the product; NULL: one may. */
const char *mixt__cuda_product_refused(const mixt__call *call);

/* ---- cuBLASLt ---- */

typedef struct mixt__cuda_lt {
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c; // of our tensors; c: result and addend
    cublasLtMatmulAlgo_t algo;
    size_t algo_bytes; // of workspace
    size_t bias_bytes; // of workspace before that: the bias in the result's format; 0: taken as it is
    float alpha;
    bool fused_gelu;           // GELU or its gradient is in the epilogue
    uint32_t a_align, b_align; // bytes that the algorithm was asked to count on
} mixt__cuda_lt;

typedef struct mixt__cuda_lt_data {
    const void *a, *b, *c, *bias;
    void *d, *aux, *workspace;
    float beta;
} mixt__cuda_lt_data;

cublasLtHandle_t mixt__cuda_lt_handle(mixt__cuda_device *gpu); // NULL when cuBLASLt cannot start
cublasStatus_t mixt__cuda_lt_issue(mixt__cuda_device *gpu, mixt__cuda_lt *lt, const mixt__cuda_lt_data *data);

/** Sets algo and algo_bytes: what was chosen earlier for this form, else the fastest by the clock. */
mixt_status mixt__cuda_lt_choose(const mixt__call *call, mixt__cuda_lt *lt);
/** The heuristic's answers, best first; how many there are. */
int mixt__cuda_lt_algorithms(mixt__cuda_device *gpu, mixt__cuda_lt *lt, cublasLtMatmulHeuristicResult_t *results,
                             int capacity);

/* ---- own kernels ---- */

extern const mixt__kernel mixt__cuda_matmul_plain; // needs no workspace: others may run it instead of themselves
extern const mixt__kernel mixt__cuda_matmul_tiles;
extern const mixt__kernel mixt__cuda_matmul_scaled; // another one behind it

/** The activation after a product that left its input in output 0 (GELU: in output 1). */
mixt_status mixt__cuda_activation(const mixt__call *call);
/** An FP32 vector into another float format. */
mixt_status mixt__cuda_convert(const mixt__cuda_device *gpu, void *dst, mixt_dtype dtype, const float *src,
                               int64_t count);
/** Numbers in [-1, 1), the same each time: for timing. */
mixt_status mixt__cuda_fill_random(const mixt__cuda_device *gpu, void *dst, mixt_dtype dtype, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
