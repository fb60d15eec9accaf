/* Byte-pair encoding of one piece of text: the merge table and the merging.
 *
 * Of all neighbours that the table knows, the pair with the lowest rank is merged, the leftmost first, until none is
 * left. Knows nothing of words: the caller cuts text into pieces.
 */
#ifndef MIXT_DATA_BPE_H
#define MIXT_DATA_BPE_H

#include "data/text/tokenizer.h"

typedef struct mixt__bpe_merge {
    uint64_t pair; // left << 32 | right, plus 1 (0: empty slot)
    uint32_t rank, id;
} mixt__bpe_merge;

typedef struct mixt__bpe {
    mixt__bpe_merge *slots;
    uint64_t mask;
    uint32_t byte_ids[256];
    uint64_t joined[1024]; // bit (a << 8 | b): some merged token has byte b right after byte a
} mixt__bpe;

/** Room for `count` merges. */
mixt_status mixt__bpe_init(mixt__bpe *bpe, int64_t count);
/** False when the pair is there already. `token` is the merged token's bytes. */
bool mixt__bpe_add(mixt__bpe *bpe, uint32_t left, uint32_t right, uint32_t rank, uint32_t id, mixt__span token);
void mixt__bpe_free(mixt__bpe *bpe);

typedef struct mixt__bpe_worker mixt__bpe_worker;

mixt_status mixt__bpe_worker_new(mixt__bpe_worker **worker);
void mixt__bpe_worker_free(mixt__bpe_worker *worker);

/** The same of a piece that is symbols already; they are changed. */
mixt_status mixt__bpe_merge_symbols(const mixt__bpe *bpe, mixt__bpe_worker *worker, uint32_t *symbols, int64_t count,
                                    mixt__tokens *tokens);
/** Appends the tokens of one piece of any length. */
mixt_status mixt__bpe_encode(const mixt__bpe *bpe, mixt__bpe_worker *worker, const unsigned char *piece, int64_t size,
                             mixt__tokens *tokens);

#endif
