/* Arrays one behind the other in one block: a batch's inputs, a batch's targets.
 *
 * Every array but the first begins at a multiple of 64 bytes, where kernels read fastest, and a block of several ends
 * at one. A block of one array is that array: no byte more.
 */
#ifndef MIXT_BASE_BLOCK_H
#define MIXT_BASE_BLOCK_H

#include <stddef.h>

enum { MIXT_BLOCK_ALIGNMENT = 64 };

/** A block under construction; begins as zeros. */
typedef struct mixt__block {
    size_t end;
    int count; // of arrays
} mixt__block;

static inline size_t mixt__block_aligned(size_t bytes)
{
    return (bytes + MIXT_BLOCK_ALIGNMENT - 1) / MIXT_BLOCK_ALIGNMENT * MIXT_BLOCK_ALIGNMENT;
}

/** Puts an array behind the others; returns where it begins. */
static inline size_t mixt__block_add(mixt__block *block, size_t bytes)
{
    size_t begin = mixt__block_aligned(block->end);
    block->end = begin + bytes;
    block->count++;
    return begin;
}

static inline size_t mixt__block_bytes(const mixt__block *block)
{
    return block->count > 1 ? mixt__block_aligned(block->end) : block->end;
}

#endif
