/* Products on AMX tile registers, for files compiled for AMX: up to 32 × 32 of C, 32 values of K a step.
 *
 * Registers 0..3 hold C (row-major 2 × 2), 4 and 5 the two halves of A's rows, 6 and 7 the two halves of B's columns.
 * A tile of A is 16 rows of 16 BF16 pairs along K; a tile of B is 16 pairs along K by 16 columns; so tdpbf16ps does
 * C[m][n] += A[m][2k] B[2k][n] + A[m][2k+1] B[2k+1][n] for 16 pairs. Like vdpbf16ps it treats subnormal inputs and
 * results as zero. Register numbers are part of the instruction, hence one function for each shape instead of a loop.
 */
#ifndef MIXT_BACKEND_CPU_CORE_AMX_H
#define MIXT_BACKEND_CPU_CORE_AMX_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

enum { AMX_TILE = 16, AMX_SIDE = 32, AMX_STEP = 32, AMX_ROW_BYTES = 64 };

/** All distances in bytes. */
typedef struct amx_product {
    const char *a;
    int64_t a_row, a_half, a_step; // from a row to the next, to row 16, to the next 32 of K
    const char *b;
    int64_t b_row; // from a row of pairs to the next; a row holds the pairs of 32 columns
    int64_t steps; // of 32 values of K
    float *c;
    int64_t c_row;
    bool add; // to what C holds
} amx_product;

/** The 64 bytes that ldtilecfg reads: palette 1, every register 16 rows of 64 bytes. */
typedef struct amx_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_config;

/** Static data: the compiler's header tells it that ldtilecfg reads 8 bytes, so it would drop stores to a local one. */
static const amx_config amx_full_tiles = {
    .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

/** The configuration belongs to the thread: begin and end surround its work. */
static inline void amx_begin(void)
{
    _tile_loadconfig(&amx_full_tiles);
}

static inline void amx_end(void)
{
    _tile_release();
}

/** What C holds, or zeros: columns from `from` on in register `tile`. */
#define AMX_BEGIN(p, tile, from)                                                                                       \
    do {                                                                                                               \
        if ((p)->add)                                                                                                  \
            _tile_loadd(tile, from, (p)->c_row);                                                                       \
        else                                                                                                           \
            _tile_zero(tile);                                                                                          \
    } while (0)

static inline void amx_32x32(const amx_product *p)
{
    const char *a = p->a, *a1 = a + p->a_half, *b = p->b;
    char *c = (char *)p->c, *c1 = c + AMX_TILE * p->c_row;
    AMX_BEGIN(p, 0, c);
    AMX_BEGIN(p, 1, c + AMX_ROW_BYTES);
    AMX_BEGIN(p, 2, c1);
    AMX_BEGIN(p, 3, c1 + AMX_ROW_BYTES);
    for (int64_t i = 0; i < p->steps; i++, a += p->a_step, a1 += p->a_step, b += AMX_TILE * p->b_row) {
        _tile_loadd(6, b, p->b_row);
        _tile_loadd(4, a, p->a_row);
        _tile_loadd(7, b + AMX_ROW_BYTES, p->b_row);
        _tile_loadd(5, a1, p->a_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, p->c_row);
    _tile_stored(1, c + AMX_ROW_BYTES, p->c_row);
    _tile_stored(2, c1, p->c_row);
    _tile_stored(3, c1 + AMX_ROW_BYTES, p->c_row);
}

static inline void amx_16x32(const amx_product *p)
{
    const char *a = p->a, *b = p->b;
    char *c = (char *)p->c;
    AMX_BEGIN(p, 0, c);
    AMX_BEGIN(p, 1, c + AMX_ROW_BYTES);
    for (int64_t i = 0; i < p->steps; i++, a += p->a_step, b += AMX_TILE * p->b_row) {
        _tile_loadd(4, a, p->a_row);
        _tile_loadd(6, b, p->b_row);
        _tile_loadd(7, b + AMX_ROW_BYTES, p->b_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, c, p->c_row);
    _tile_stored(1, c + AMX_ROW_BYTES, p->c_row);
}

static inline void amx_32x16(const amx_product *p)
{
    const char *a = p->a, *a1 = a + p->a_half, *b = p->b;
    char *c = (char *)p->c, *c1 = c + AMX_TILE * p->c_row;
    AMX_BEGIN(p, 0, c);
    AMX_BEGIN(p, 2, c1);
    for (int64_t i = 0; i < p->steps; i++, a += p->a_step, a1 += p->a_step, b += AMX_TILE * p->b_row) {
        _tile_loadd(6, b, p->b_row);
        _tile_loadd(4, a, p->a_row);
        _tile_loadd(5, a1, p->a_row);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(2, 5, 6);
    }
    _tile_stored(0, c, p->c_row);
    _tile_stored(2, c1, p->c_row);
}

static inline void amx_16x16(const amx_product *p)
{
    const char *a = p->a, *b = p->b;
    AMX_BEGIN(p, 0, (char *)p->c);
    for (int64_t i = 0; i < p->steps; i++, a += p->a_step, b += AMX_TILE * p->b_row) {
        _tile_loadd(4, a, p->a_row);
        _tile_loadd(6, b, p->b_row);
        _tile_dpbf16ps(0, 4, 6);
    }
    _tile_stored(0, p->c, p->c_row);
}

#endif
