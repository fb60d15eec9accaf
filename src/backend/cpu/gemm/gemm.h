/* The matrix-product engine of the CPU backend: C = A·B (+ C) (+ bias), any mix of formats, FP32 accumulation.
 *
 * Operands are repacked block by block into cache-sized FP32 (or BF16-pair) panels, so widening BF16/FP16, scaling what
 * has scales, transposes and gathers (convolution's patches) cost no extra pass. Threads split the result by blocks and
 * never the sum: the same bits for the same thread count.
 */
#ifndef MIXT_BACKEND_CPU_GEMM_GEMM_H
#define MIXT_BACKEND_CPU_GEMM_GEMM_H

#include "base/alloc.h"
#include "mixt/types.h"

/** Writes the FP32 values of rows [row, row + rows) × columns [col, col + cols) of a virtual matrix to
 *  dst[(r - row) * ld + (c - col)]: how convolution offers its patches as an operand. */
typedef void mixt__gemm_gather_fn(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols,
                                  float *dst, int64_t ld);

/** One operand. Element (r, c) stands at data[r * row_stride + c * col_stride]; one of the strides is 1.
 *  With `gather`, data and strides are not used. */
typedef struct mixt__gemm_operand {
    const void *data;
    mixt_dtype dtype; /**< FP32, FP16 or BF16; with scales what they scale */
    int64_t row_stride, col_stride;
    bool pair;           /**< of B: numbers to be multiplied by scales, … */
    bool scaled_columns; /**< … one for each column, else for each row; */
    const float *scales; /**< columns have unit stride along K then, rows along N */
    mixt__gemm_gather_fn *gather;
    const void *gather_argument;
} mixt__gemm_operand;

/** Called once for each finished block of C while it is hot in cache, in FP32, before it is rounded and stored.
 *  block[(r - row) * ld + (c - col)]. May change it, and may write elsewhere. Runs on several threads. */
typedef void mixt__gemm_epilogue_fn(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols,
                                    float *block, int64_t ld);

typedef struct mixt__gemm_plan mixt__gemm_plan;

typedef struct mixt__gemm_problem {
    int64_t m, n, k;
    mixt__gemm_operand a; /**< (m, k) */
    mixt__gemm_operand b; /**< (k, n) */
    void *c;              /**< (m, n), row-major with stride ldc */
    mixt_dtype c_dtype;   /**< FP32, FP16 or BF16 */
    int64_t ldc;
    float alpha;       /**< scales A·B */
    bool accumulate;   /**< add to what C holds instead of overwriting it */
    const float *bias; /**< (n), added to every row; NULL for none */
    mixt__gemm_epilogue_fn *epilogue;
    const void *epilogue_argument;
    float *row_sums;             /**< (m), of A's rows, for an A whose rows are its unit stride; NULL for none */
    bool add_row_sums;           /**< to what stands there */
    const void *b_packed;        /**< B as mixt__gemm_pack_whole_b left it: `b` is then not read; NULL for none */
    const mixt__gemm_plan *plan; /**< from mixt__gemm_plan_keep; NULL: made for each run */
    bool low; /**< both operands are BF16, or A is and B has scales: multiply them as BF16 pairs where the CPU can
                 (AVX512-BF16, AMX) */
} mixt__gemm_problem;

/** Scratch bytes that mixt__gemm_run needs for a problem of this shape and these formats, with the library's threads.
 */
size_t mixt__gemm_workspace(const mixt__gemm_problem *problem);

/** How to run problems of this shape and these formats with the library's threads, made once: small products notice.
 *  NULL when there is no memory. */
const mixt__gemm_plan *mixt__gemm_plan_keep(const mixt__gemm_problem *problem, mixt__arena *arena);

/** Runs on the whole thread team (inline when called inside a parallel region). m, n or k may be 0. */
void mixt__gemm_run(const mixt__gemm_problem *problem, void *workspace);

/** `count` products that differ only in where a, b and c start (byte distances from one to the next); threads split the
 * batch. The workspace of one problem times the thread count is enough. */
void mixt__gemm_run_batched(const mixt__gemm_problem *problem, int64_t count, int64_t a_step, int64_t b_step,
                            int64_t c_step, void *workspace);

/** B packed once for many products (a weight used at every time step): bytes, and the packing itself, for a problem
 * with the same n, k, low and formats of a and b. B must not be a gather. The panels suit this CPU and this process
 * only. */
size_t mixt__gemm_packed_bytes(const mixt__gemm_problem *problem);
void mixt__gemm_pack_whole_b(const mixt__gemm_problem *problem, void *packed);

/** The instruction path that will run ("avx512", "avx512bf16", "amx", "avx2", "scalar"). */
const char *mixt__gemm_path(const mixt__gemm_problem *problem);

#endif
