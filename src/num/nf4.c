/* Rounding to NF4 and back.
 *
 * A code is that of the nearest number; of a number halfway the lower one. bitsandbytes leaves two things open: the
 * offset is the mean of the blocks' magnitudes in FP32, which it adds up in an order of the machine's and which here is
 * the exact mean rounded once; and on the CPU, not on a GPU, it takes a magnitude's code by a table of 65536 places,
 * which for about one in 40,000 is not the nearest.
 */
#include "num/nf4.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "num/nf4_tables.h"

#include <math.h>
#include <string.h>

const float mixt__nf4_numbers[16] = {MIXT_NF4_NUMBERS};
const float mixt__nf4_dynamic[256] = {MIXT_NF4_DYNAMIC};

enum { HEADER = MIXT_NF4_PARTS, GRAIN = 256 };

bool mixt__nf4_fits(const mixt__nf4_matrix *m)
{
    return m->cols > 0 && m->cols % MIXT_NF4_BLOCK == 0 && m->rows > 0 && m->part_count <= MIXT_NF4_PARTS;
}

static int64_t up(int64_t count, int64_t by)
{
    return (count + by - 1) / by;
}

static int64_t part_words(int64_t rows, int64_t cols)
{
    int64_t blocks = rows * (cols / MIXT_NF4_BLOCK);
    return up(blocks, MIXT_NF4_NESTED) + 1 + up(blocks, (int64_t)sizeof(float));
}

static int64_t rows_of(const mixt__nf4_matrix *m, int index)
{
    return m->part_count ? m->parts[index] : m->rows;
}

int64_t mixt__nf4_words(const mixt__nf4_matrix *m)
{
    int64_t words = HEADER;
    for (int i = 0; i < (m->part_count ? m->part_count : 1); i++)
        words += part_words(rows_of(m, i), m->cols);
    return words;
}

void mixt__nf4_lay_out(const mixt__nf4_matrix *m, float *scales)
{
    int32_t rows[HEADER] = {0};
    for (int i = 0; i < (m->part_count ? m->part_count : 1); i++)
        rows[i] = (int32_t)rows_of(m, i);
    memcpy(scales, rows, sizeof rows);
}

bool mixt__nf4_part_at(float *scales, int64_t cols, int index, mixt__nf4_part *part)
{
    int32_t rows[HEADER];
    memcpy(rows, scales, sizeof rows);
    if (index >= HEADER || !rows[index])
        return false;
    *part = (mixt__nf4_part){.rows = rows[index]};
    float *at = scales + HEADER;
    for (int i = 0; i < index; i++) {
        part->row += rows[i];
        at += part_words(rows[i], cols);
    }
    part->blocks = part->rows * (cols / MIXT_NF4_BLOCK);
    part->nested_count = up(part->blocks, MIXT_NF4_NESTED);
    part->nested = at;
    part->offset = at + part->nested_count;
    part->magnitude = (uint8_t *)(part->offset + 1);
    return true;
}

/* ---- rounding ---- */

static float largest(const float *values, int64_t count)
{
    float most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
    return most;
}

/** The code of the nearest of `count` numbers in rising order; of two as near, the lower. */
static int nearest(const float *numbers, int count, float x)
{
    int low = 0, high = count - 1; // places of bounds between neighbours that are below x
    while (low < high) {
        int middle = (low + high) / 2;
        if ((numbers[middle] + numbers[middle + 1]) / 2 < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

typedef struct rounding {
    const float *values; // of a part
    uint8_t *codes;
    float *magnitudes; // by block
} rounding;

static void round_blocks(void *argument, int64_t begin, int64_t end, int thread)
{
    const rounding *r = argument;
    (void)thread;
    for (int64_t b = begin; b < end; b++) {
        const float *x = r->values + b * MIXT_NF4_BLOCK;
        uint8_t *codes = r->codes + b * (MIXT_NF4_BLOCK / 2);
        r->magnitudes[b] = largest(x, MIXT_NF4_BLOCK);
        float factor = 1.0f / fmaxf(r->magnitudes[b], 1e-38f);
        for (int i = 0; i < MIXT_NF4_BLOCK; i += 2) {
            int first = nearest(mixt__nf4_numbers, 16, fminf(fmaxf(x[i] * factor, -1), 1));
            int second = nearest(mixt__nf4_numbers, 16, fminf(fmaxf(x[i + 1] * factor, -1), 1));
            codes[i / 2] = (uint8_t)(first << 4 | second);
        }
    }
}

/** Rounds the magnitudes of a part's blocks. */
static void round_magnitudes(mixt__nf4_part *part, float *magnitudes)
{
    double sum = 0;
    for (int64_t b = 0; b < part->blocks; b++)
        sum += (double)magnitudes[b];
    *part->offset = (float)(sum / (double)part->blocks);
    for (int64_t b = 0; b < part->blocks; b++)
        magnitudes[b] -= *part->offset;
    for (int64_t n = 0; n < part->nested_count; n++) {
        int64_t first = n * MIXT_NF4_NESTED, last = first + MIXT_NF4_NESTED;
        last = last < part->blocks ? last : part->blocks;
        part->nested[n] = largest(magnitudes + first, last - first);
        for (int64_t b = first; b < last; b++) {
            float x = part->nested[n] > 0 ? magnitudes[b] / part->nested[n] : 0.0f;
            part->magnitude[b] = (uint8_t)nearest(mixt__nf4_dynamic, 256, x);
        }
    }
}

bool mixt__nf4_quantise(const mixt__nf4_matrix *m, const float *values, uint8_t *codes, float *scales)
{
    mixt__nf4_part part;
    memset(scales, 0, (size_t)mixt__nf4_words(m) * sizeof *scales);
    mixt__nf4_lay_out(m, scales);
    for (int i = 0; mixt__nf4_part_at(scales, m->cols, i, &part); i++) {
        rounding r = {.values = values + part.row * m->cols, .codes = codes + part.row * m->cols / 2};
        r.magnitudes = mixt__alloc_uninit((size_t)part.blocks * sizeof *r.magnitudes);
        if (!r.magnitudes)
            return false;
        mixt__parallel(part.blocks, GRAIN, round_blocks, &r);
        round_magnitudes(&part, r.magnitudes);
        mixt__free(r.magnitudes);
    }
    return true;
}

/* ---- values ---- */

void mixt__nf4_row(const uint8_t *codes, const float *scales, int64_t cols, int64_t row, int64_t col, int64_t count,
                   float *values)
{
    mixt__nf4_part part = {.rows = 0};
    for (int i = 0; mixt__nf4_part_at((float *)(uintptr_t)scales, cols, i, &part) && row >= part.row + part.rows; i++)
        ;
    if (!part.rows) { // memory that has no weights yet
        memset(values, 0, (size_t)count * sizeof *values);
        return;
    }
    int64_t element = (row - part.row) * cols + col; // of the part
    codes += part.row * cols / 2;
    while (count > 0) {
        int64_t block = element / MIXT_NF4_BLOCK, n = MIXT_NF4_BLOCK - element % MIXT_NF4_BLOCK;
        n = n < count ? n : count;
        float magnitude = mixt__nf4_dynamic[part.magnitude[block]] * part.nested[block / MIXT_NF4_NESTED];
        magnitude += *part.offset;
        float table[16];
        for (int i = 0; i < 16; i++)
            table[i] = mixt__nf4_numbers[i] * magnitude;
        for (int64_t i = 0; i < n; i++) {
            uint8_t two = codes[(element + i) / 2];
            values[i] = table[(element + i) % 2 ? two & 15 : two >> 4];
        }
        element += n;
        values += n;
        count -= n;
    }
}

void mixt__nf4_values(const mixt__nf4_matrix *m, const uint8_t *codes, const float *scales, float *values)
{
    for (int64_t r = 0; r < m->rows; r++)
        mixt__nf4_row(codes, scales, m->cols, r, 0, m->cols, values + r * m->cols);
}
