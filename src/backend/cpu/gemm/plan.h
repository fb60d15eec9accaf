/* How one product is cut: passes over K, steps over C, the grid of threads, and where each buffer stands in the
 * workspace.
 *
 * A step is (columns, rows, pass over K). In it the team packs B (and sometimes A) together, waits at a barrier, and
 * each thread multiplies its own rectangle of C. Buffers filled by the team alternate between two copies, so that a
 * fast thread may pack the next step while a slow one still reads: one barrier a step is enough. Where every thread
 * packs just what it reads itself, there is none.
 *
 * The cut along K depends only on K and the kernel. Every element of C is therefore one fixed chain of sums, and its
 * bits do not depend on the number of threads.
 */
#ifndef MIXT_BACKEND_CPU_GEMM_PLAN_H
#define MIXT_BACKEND_CPU_GEMM_PLAN_H

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/kernel.h"

struct mixt__gemm_plan {
    const mixt__gemm_kernel *kernel;
    int threads, grid_m, grid_n;                 /**< threads = grid_m · grid_n */
    int64_t kc, k_blocks;                        /**< elements of K in a pass, passes */
    int64_t units;                               /**< of a panel in a whole pass */
    int64_t nc, mo;                              /**< columns and rows of C in a step */
    int64_t mc;                                  /**< rows that a thread multiplies at once */
    int64_t fc;                                  /**< columns that a thread finishes (epilogue, rounding) at once */
    bool direct;                                 /**< A is not packed: tiles read its rows, or gathered rows, … */
    int64_t a_ld;                                /**< … which stand this many elements apart */
    bool share_a;                                /**< the team packs A together */
    bool keep_b;                                 /**< each thread packs all of B that it reads, for itself */
    bool scattered;                              /**< a small product for a large team: operands lie in the caches of
                                                    those who wrote them, and getting them costs more than multiplying */
    bool barrier;                                /**< in every step, between packing and multiplying */
    bool scratch;                                /**< sums grow outside C: in a block of mc × fc, or, … */
    bool scratch_whole;                          /**< … with several passes over K, in one of mo × nc */
    size_t b_size, a_size;                       /**< bytes of one copy of the team's panels */
    size_t a_part;                               /**< of which belong to one row of the grid */
    size_t a_offset, scratch_offset, own_offset; /**< from the workspace; B stands at 0 */
    size_t own_size;                             /**< bytes of a thread's part, … */
    size_t own_scratch, own_gather, own_b;       /**< … and from there its scratch, gather buffer and B */
    size_t total;
};

/** The kernel for a problem on this CPU. */
const mixt__gemm_kernel *mixt__gemm_kernel_for(const mixt__gemm_problem *problem);

/** Cuts a problem for at most `threads` threads. */
mixt__gemm_plan mixt__gemm_plan_make(const mixt__gemm_problem *problem, int threads);

/** Panels of all of B, packed once: bytes from the start to a panel of a pass. */
size_t mixt__gemm_packed_offset(const mixt__gemm_plan *plan, int64_t n, int64_t k, int64_t k_block, int64_t panel);

/** Units of a panel that holds k elements. */
int64_t mixt__gemm_units(const mixt__gemm_kernel *kernel, int64_t k);

/** Packs rows [row, row + rows) × [k0, k0 + k) of A, or the same of B's columns, as panels. `own` is the thread's
 *  gather buffer. */
void mixt__gemm_pack_a(const mixt__gemm_problem *problem, const mixt__gemm_kernel *kernel, int64_t row, int64_t rows,
                       int64_t k0, int64_t k, void *dst, void *own);
void mixt__gemm_pack_b(const mixt__gemm_problem *problem, const mixt__gemm_kernel *kernel, int64_t col, int64_t cols,
                       int64_t k0, int64_t k, void *dst, void *own);
/** Bytes of that gather buffer; 0 when nothing is gathered on the way to a panel. */
size_t mixt__gemm_gather_bytes(const mixt__gemm_problem *problem, const mixt__gemm_plan *plan);

#endif
