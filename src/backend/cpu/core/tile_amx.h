/* tile_multiply on AMX tile registers: for tile.h. Masks skip whole tiles of 32 columns and 32 numbers of depth. */
#include "backend/cpu/core/amx.h"

static void tile_begin(void)
{
    amx_begin();
}

static void tile_end(void)
{
    amx_end();
}

static int64_t tile_depth_up(int64_t numbers)
{
    return (numbers + TILE_PACK * TILE_DEPTH - 1) / (TILE_PACK * TILE_DEPTH) * TILE_DEPTH;
}

static void tile_multiply(const tile_product *p)
{
    enum { WORD = sizeof(float) };
    for (int64_t i = 0; i < p->m; i += AMX_SIDE) {
        int64_t rows = p->m - i < AMX_SIDE ? p->m - i : AMX_SIDE, from = 0, to = p->k, n = p->n;
        int64_t seen = i + rows + p->diagonal; // columns, or depth, up to the last row's end
        if (p->mask == TILE_COLUMNS && n > seen)
            n = seen;
        if (p->mask == TILE_DEPTH_BELOW && to > tile_depth_up(seen))
            to = tile_depth_up(seen);
        if (p->mask == TILE_DEPTH_FROM && i + p->diagonal > 0)
            from = (i + p->diagonal) / (TILE_PACK * TILE_DEPTH) * TILE_DEPTH;
        amx_product q = {.a = (const char *)(p->a + i * p->a_row + from), .a_row = WORD * p->a_row};
        q.a_half = AMX_TILE * q.a_row;
        q.a_step = AMX_ROW_BYTES;
        q.b_row = WORD * p->ldb;
        q.steps = (to - from) / TILE_DEPTH;
        q.c_row = WORD * p->ldc;
        q.add = p->add;
        for (int64_t c = 0; c < n; c += AMX_SIDE) {
            q.b = (const char *)(p->b + c / TILE_COLS * p->b_panel + c % TILE_COLS + from * p->ldb);
            q.c = p->c + i * p->ldc + c;
            (rows > AMX_TILE ? amx_32x32 : amx_16x32)(&q);
        }
    }
}
