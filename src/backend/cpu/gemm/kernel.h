/* What an instruction-set file of the matrix-product engine offers: a register tile and the packing it reads.
 *
 * Packed panels are made of 32-bit units: one FP32 value, or two BF16 values that follow each other along K.
 * A panel of B holds `nr` columns, unit by unit: unit u of column c stands at u * nr + c. A panel of A holds
 * `a_width` rows the same way, except where the kernel says otherwise in its own pack_a. Lanes past the matrix are
 * zero, so a tile may read whole panels of B; its stores are cut to `rows` and `cols`.
 */
#ifndef MIXT_BACKEND_CPU_GEMM_KERNEL_H
#define MIXT_BACKEND_CPU_GEMM_KERNEL_H

#include "base/isa.h"
#include "mixt/types.h"

/** One product of two panels: c = alpha · a·b (+ bias) (+ c). */
typedef struct mixt__gemm_tile {
    const void *a, *b; /**< panels; for tile_direct, a is the first of rows of FP32 (BF16, where the kernel multiplies
                            pairs) that stand a_stride apart and hold a_count elements */
    int64_t a_stride, a_count;
    int64_t k; /**< units, a multiple of the kernel's k_step */
    float *c;
    int64_t ldc;
    int rows, cols; /**< 1..mr, 1..nr */
    float alpha;
    const float *bias; /**< of the tile's first column; NULL for none */
    bool add;          /**< add what c holds */
    const void *next;  /**< readable soon: a kernel may prefetch 64 bytes a unit from here */
} mixt__gemm_tile;

typedef void mixt__gemm_tile_fn(const mixt__gemm_tile *tile);

/** Panels that follow each other, and their source: element k of lane l stands at src[l * lane_stride + k * k_stride],
 * one stride being 1. */
typedef struct mixt__gemm_pack {
    const void *src;
    mixt_dtype dtype;
    int64_t lane_stride, k_stride;
    int64_t lanes;       /**< in all panels together */
    int64_t k;           /**< elements */
    int64_t units;       /**< of a panel: those past k become zero */
    int64_t used, width; /**< lanes of the source in a panel (the last may have fewer), and its lanes */
    void *dst;           /**< 64-byte aligned; panels of units · width */
} mixt__gemm_pack;

typedef void mixt__gemm_pack_fn(const mixt__gemm_pack *pack);

typedef struct mixt__gemm_kernel {
    const char *name;
    mixt__isa isa;
    bool pairs;      /**< units are BF16 pairs: for problems marked `low` */
    int mr, nr;      /**< rows and columns of the register tile */
    int a_width;     /**< lanes of a panel of A, at least mr */
    int k_step;      /**< units that a tile consumes at once */
    int m_grain;     /**< rows are split between threads at multiples of this */
    int64_t kc_max;  /**< elements of K in one pass: what keeps panels in the first two cache levels */
    int64_t a_block; /**< bytes of A that a thread packs at once: part of its second-level cache */
    double macs;     /**< multiply-adds a cycle, for the choice of the thread grid */
    mixt__gemm_tile_fn *tile;
    mixt__gemm_tile_fn *tile_direct; /**< the same on rows of A as they are, without packing; NULL where there is none.
                                        A kernel of pairs takes whole m_grains of rows */
    mixt__gemm_pack_fn *pack_a, *pack_b;
    void (*begin)(void), (*end)(void); /**< around the work of each thread; NULL for nothing */
} mixt__gemm_kernel;

extern const mixt__gemm_kernel mixt__gemm_kernel_scalar, mixt__gemm_kernel_avx2, mixt__gemm_kernel_avx512,
    mixt__gemm_kernel_avx512bf16, mixt__gemm_kernel_amx;

/** Packers and the tile's end of the AVX-512 file, shared with the BF16 kernels. */
mixt__gemm_pack_fn mixt__gemm_pack_avx512, mixt__gemm_pack_pairs_avx512, mixt__gemm_pack_rows_avx512;
/** Finishes a tile whose product stands in `sums`, row-major with stride `ld`. */
void mixt__gemm_store_avx512(const mixt__gemm_tile *tile, const float *sums, int64_t ld);

/** Tests: every product runs on this kernel, whatever the CPU's level; NULL for the normal choice. */
void mixt__gemm_force(const mixt__gemm_kernel *kernel);

#endif
