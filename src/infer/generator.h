/* A language model with the memory of its text: caches, and plans for a piece of prompt and for one token.
 *
 * The token drawn last is read only when the one after it is asked for: the end of a text costs nothing.
 */
#ifndef MIXT_INFER_GENERATOR_H
#define MIXT_INFER_GENERATOR_H

#include "infer/forward.h"
#include "infer/sample.h"

/** Tokens of a prompt that are read in one run at most: beyond that products get no faster, only memory grows. */
enum { MIXT_PIECE_MAX = 256 };

typedef struct mixt__generator {
    mixt__model model;
    mixt__policy policy; // borrowed: the caller keeps its rules alive
    mixt__device *device;
    int64_t context, vocab;
    int64_t row; // logits of a token: vocab, and padding behind it that is never drawn
    mixt__params *params;
    mixt__forward *one, *piece; // piece: for a prompt's pieces, made anew for another length
    void **caches;
    int64_t cache_count;
    bool endless;  // recurrent: nothing depends on places, the context never fills
    int32_t *text; // of the context, `read` of `known` tokens are in the caches
    int64_t read, known, drawn;
    float *logits; // after the last token that was read
    mixt__candidate *scratch;
} mixt__generator;

/** Compiles for one token and takes all memory; weights are still to be put into `params`.
 *  @param context places that attention keeps */
mixt_status mixt__generator_open(mixt__generator *g, const mixt__model *model, const mixt__policy *policy,
                                 mixt__device *device, int64_t context);
void mixt__generator_close(mixt__generator *g);

mixt_status mixt__generator_start(mixt__generator *g, const int32_t *tokens, int64_t count);
/** The same, remembering what both texts begin with where attention can: only the rest is read.
 *  @param read tokens that were; may be NULL */
mixt_status mixt__generator_start_again(mixt__generator *g, const int32_t *tokens, int64_t count, int64_t *read);
mixt_status mixt__generator_next(mixt__generator *g, const mixt_sampling *sampling, int32_t *token);
/** Reads what is still unread: `logits` are then those of the token that comes next. */
mixt_status mixt__generator_catch_up(mixt__generator *g);

#endif
