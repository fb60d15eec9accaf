/* NF4: numbers of 4 bits in blocks of 64 along the rows of a matrix, each block with its largest magnitude, which is
 * itself a number of 8 bits with a scale for each 256 of them and an offset for all: 4.127 bits a number. Byte for byte
 * what bitsandbytes has, but for where that leaves things to the machine: see nf4.c.
 *
 * A matrix may be several side by side, one's rows behind the other's; each has scales and an offset of its own. Its
 * rows hold whole blocks.
 */
#ifndef MIXT_NUM_NF4_H
#define MIXT_NUM_NF4_H

#include "mixt/types.h"

#include <stddef.h>
#include <stdint.h>

enum { MIXT_NF4_BLOCK = 64, MIXT_NF4_NESTED = 256, MIXT_NF4_PARTS = 8 };

extern const float mixt__nf4_numbers[16];
extern const float mixt__nf4_dynamic[256];

/** A matrix, as one or as parts. */
typedef struct mixt__nf4_matrix {
    int64_t rows, cols;
    int part_count; // 0: it is one
    int64_t parts[MIXT_NF4_PARTS];
} mixt__nf4_matrix;

/** What one part has beside its codes, within a matrix's scales. */
typedef struct mixt__nf4_part {
    int64_t row, rows;  // of the matrix
    float *nested;      // (nested_count) of 256 blocks each
    float *offset;      // one
    uint8_t *magnitude; // (blocks) codes of the largest magnitudes
    int64_t blocks, nested_count;
} mixt__nf4_part;

/** Whether its rows hold whole blocks. */
bool mixt__nf4_fits(const mixt__nf4_matrix *matrix);
/** FP32 words that the scales of a matrix take: its parts' rows (8), then each part's. */
int64_t mixt__nf4_words(const mixt__nf4_matrix *matrix);
/** Writes the rows of the parts, by which scales are found; all else stays as it is. */
void mixt__nf4_lay_out(const mixt__nf4_matrix *matrix, float *scales);
/** Part `index` of scales that were laid out; false past the last. */
bool mixt__nf4_part_at(float *scales, int64_t cols, int index, mixt__nf4_part *part);

/** Rounds a matrix; false: no memory. @param codes (rows · cols / 2), two numbers a byte, the first in its upper half
 *  @param scales (words) */
bool mixt__nf4_quantise(const mixt__nf4_matrix *matrix, const float *values, uint8_t *codes, float *scales);
/** `count` values of a row, from column `col` on. */
void mixt__nf4_row(const uint8_t *codes, const float *scales, int64_t cols, int64_t row, int64_t col, int64_t count,
                   float *values);
/** All values. */
void mixt__nf4_values(const mixt__nf4_matrix *matrix, const uint8_t *codes, const float *scales, float *values);

#endif
