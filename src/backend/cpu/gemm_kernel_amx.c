/* AMX BF16 products: a 32 × 32 tile of C in four tile registers, fed by two of A and two of B, 32 values of K a step.
 *
 * Tile registers 0..3 hold C (row-major 2 × 2), 4 and 5 the two halves of A's rows, 6 and 7 the two halves of B's
 * columns. A tile of A is 16 rows of 16 BF16 pairs along K; a tile of B is 16 pairs along K by 16 columns; so
 * tdpbf16ps does C[m][n] += A[m][2k] B[2k][n] + A[m][2k+1] B[2k+1][n] for 16 pairs. Like vdpbf16ps it treats
 * subnormal inputs and results as zero. The configuration belongs to the thread: begin and end surround its work.
 */
#include "backend/cpu/gemm_kernel.h"

#include <immintrin.h>

enum { TILE = 16, SIDE = 32, UNIT = 4, STEP_UNITS = 16 * SIDE };

/** The 64 bytes that ldtilecfg reads: palette 1, every register 16 rows of 64 bytes. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/** Static data: the compiler's header tells it that ldtilecfg reads 8 bytes, so it would drop stores to a local one. */
static const tile_config eight_full_tiles = {.palette = 1,
                                             .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                             .rows = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};

static void configure(void)
{
    _tile_loadconfig(&eight_full_tiles);
}

static void release(void)
{
    _tile_release();
}

/* Register numbers are part of the instruction, hence one function for each shape of the tile instead of a loop. */

static void sums_32x32(const char *a, const char *b, int64_t steps, float *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (; steps > 0; steps--, a += STEP_UNITS * UNIT, b += STEP_UNITS * UNIT) {
        _tile_loadd(6, b, SIDE * UNIT);
        _tile_loadd(4, a, TILE * UNIT);
        _tile_loadd(7, b + TILE * UNIT, SIDE * UNIT);
        _tile_loadd(5, a + TILE * TILE * UNIT, TILE * UNIT);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, SIDE * UNIT);
    _tile_stored(1, sums + TILE, SIDE * UNIT);
    _tile_stored(2, sums + TILE * SIDE, SIDE * UNIT);
    _tile_stored(3, sums + TILE * SIDE + TILE, SIDE * UNIT);
}

static void sums_16x32(const char *a, const char *b, int64_t steps, float *sums)
{
    _tile_zero(0);
    _tile_zero(1);
    for (; steps > 0; steps--, a += STEP_UNITS * UNIT, b += STEP_UNITS * UNIT) {
        _tile_loadd(4, a, TILE * UNIT);
        _tile_loadd(6, b, SIDE * UNIT);
        _tile_loadd(7, b + TILE * UNIT, SIDE * UNIT);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, sums, SIDE * UNIT);
    _tile_stored(1, sums + TILE, SIDE * UNIT);
}

static void sums_32x16(const char *a, const char *b, int64_t steps, float *sums)
{
    _tile_zero(0);
    _tile_zero(2);
    for (; steps > 0; steps--, a += STEP_UNITS * UNIT, b += STEP_UNITS * UNIT) {
        _tile_loadd(6, b, SIDE * UNIT);
        _tile_loadd(4, a, TILE * UNIT);
        _tile_loadd(5, a + TILE * TILE * UNIT, TILE * UNIT);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(2, 5, 6);
    }
    _tile_stored(0, sums, SIDE * UNIT);
    _tile_stored(2, sums + TILE * SIDE, SIDE * UNIT);
}

static void sums_16x16(const char *a, const char *b, int64_t steps, float *sums)
{
    _tile_zero(0);
    for (; steps > 0; steps--, a += STEP_UNITS * UNIT, b += STEP_UNITS * UNIT) {
        _tile_loadd(4, a, TILE * UNIT);
        _tile_loadd(6, b, SIDE * UNIT);
        _tile_dpbf16ps(0, 4, 6);
    }
    _tile_stored(0, sums, SIDE * UNIT);
}

static void tile_any(const mixt__gemm_tile *t)
{
    typedef void sums_fn(const char *a, const char *b, int64_t steps, float *sums);
    static sums_fn *const shapes[2][2] = {{sums_16x16, sums_16x32}, {sums_32x16, sums_32x32}};
    _Alignas(64) float sums[SIDE * SIDE];
    shapes[t->rows > TILE][t->cols > TILE](t->a, t->b, t->k / TILE, sums);
    mixt__gemm_store_avx512(t, sums, SIDE);
}

const mixt__gemm_kernel mixt__gemm_kernel_amx = {.name = "amx",
                                                 .isa = MIXT_ISA_AMX,
                                                 .pairs = true,
                                                 .mr = SIDE,
                                                 .nr = SIDE,
                                                 .a_width = SIDE,
                                                 .k_step = TILE,
                                                 .m_grain = TILE,
                                                 .kc_max = 1024,
                                                 .a_block = 1024 * 1024,
                                                 .macs = 512,
                                                 .tile = tile_any,
                                                 .pack_a = mixt__gemm_pack_rows_avx512,
                                                 .pack_b = mixt__gemm_pack_pairs_avx512,
                                                 .begin = configure,
                                                 .end = release};
