/* AMX's tile instructions in plain C, as Intel's manual states them, so that the AMX kernel's use of tile registers,
 * strides and layouts is tested on any CPU. Include before the kernel's source: its intrinsics become these functions.
 *
 * Every access is checked against the shape that the thread configured; the flush of subnormals is not modelled.
 */
#ifndef TESTS_UNIT_AMX_EMULATION_H
#define TESTS_UNIT_AMX_EMULATION_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct amx_state {
    uint8_t palette, rows[8];
    uint16_t row_bytes[8];
    uint8_t data[8][16][64];
} amx_state;

static _Thread_local amx_state amx;

static void amx_require(int condition)
{
    if (!condition)
        abort(); // what the processor would answer with a fault
}

static void amx_loadconfig(const void *config)
{
    const uint8_t *bytes = config;
    memset(&amx, 0, sizeof amx);
    amx.palette = bytes[0];
    amx_require(amx.palette == 1 && bytes[1] == 0);
    for (int i = 2; i < 16; i++)
        amx_require(bytes[i] == 0);
    for (int i = 0; i < 16; i++) {
        uint16_t width;
        memcpy(&width, bytes + 16 + 2 * i, sizeof width);
        amx_require(i < 8 ? width <= 64 && bytes[48 + i] <= 16 : width == 0 && bytes[48 + i] == 0);
        if (i < 8) {
            amx.row_bytes[i] = width;
            amx.rows[i] = bytes[48 + i];
        }
    }
}

static void amx_release(void)
{
    memset(&amx, 0, sizeof amx);
}

static void amx_zero(int tile)
{
    amx_require(amx.palette == 1);
    memset(amx.data[tile], 0, sizeof amx.data[tile]);
}

static void amx_loadd(int tile, const void *base, int64_t stride)
{
    amx_require(amx.palette == 1);
    memset(amx.data[tile], 0, sizeof amx.data[tile]);
    for (int r = 0; r < amx.rows[tile]; r++)
        memcpy(amx.data[tile][r], (const char *)base + r * stride, amx.row_bytes[tile]);
}

static void amx_stored(int tile, void *base, int64_t stride)
{
    amx_require(amx.palette == 1);
    for (int r = 0; r < amx.rows[tile]; r++)
        memcpy((char *)base + r * stride, amx.data[tile][r], amx.row_bytes[tile]);
}

/** Between registers only: memory is touched by tile loads and stores, which a sanitizer sees. */
#define AMX_ARITHMETIC __attribute__((no_sanitize("address", "undefined")))

AMX_ARITHMETIC static float amx_bf16(const uint8_t *at)
{
    uint16_t half;
    memcpy(&half, at, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

AMX_ARITHMETIC static void amx_dpbf16ps(int dst, int a, int b)
{
    amx_require(amx.palette == 1 && amx.row_bytes[a] / 4 == amx.rows[b]);
    amx_require(amx.rows[dst] == amx.rows[a] && amx.row_bytes[dst] == amx.row_bytes[b]);
    for (int m = 0; m < amx.rows[dst]; m++)
        for (int k = 0; k < amx.row_bytes[a] / 4; k++)
            for (int n = 0; n < amx.row_bytes[dst] / 4; n++) {
                float sum;
                memcpy(&sum, &amx.data[dst][m][4 * n], sizeof sum);
                sum +=
                    amx_bf16(&amx.data[a][m][4 * k]) * amx_bf16(&amx.data[b][k][4 * n]); // exact product, one rounding
                sum += amx_bf16(&amx.data[a][m][4 * k + 2]) * amx_bf16(&amx.data[b][k][4 * n + 2]);
                memcpy(&amx.data[dst][m][4 * n], &sum, sizeof sum);
            }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _tile_loadconfig amx_loadconfig
#define _tile_release amx_release
#define _tile_zero amx_zero
#define _tile_loadd amx_loadd
#define _tile_stored amx_stored
#define _tile_dpbf16ps amx_dpbf16ps

#endif
