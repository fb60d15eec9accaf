/* A model's forward pass as a plan of its own: no loss, no gradients, FP32 outputs that the host can read.
 *
 * With cache_rows it is a piece of a text that goes on from the caches: see ops/attention_cached.c. Caches are given at
 * each run, so that plans for pieces of different lengths share them.
 */
#ifndef MIXT_INFER_FORWARD_H
#define MIXT_INFER_FORWARD_H

#include "passes/passes.h"
#include "runtime/executable.h"
#include "runtime/params.h"
#include "model/model.h"

typedef struct mixt__forward {
    mixt__executable *executable;
    const void **by_value; // addresses of inputs and caches
    void *input;           // device
    int32_t *positions;    // device; NULL: not generating
    size_t input_bytes;
    int64_t tokens; // generating: of a piece
} mixt__forward;

typedef struct mixt__forward_shape {
    mixt_dtype dtype;
    mixt__shape input;            // with the batch
    int64_t cache_rows;           // generating: places of a cache; 0: whole inputs
    const mixt__batch_spec *spec; // in place of dtype and input where a batch has several arrays; NULL: one input
    const mixt__params *params;   // that it will be bound to; NULL: some that are laid out for it
    int given;                    // the last so many arrays of it are on the device already: mixt__forward_give
} mixt__forward_shape;

mixt_status mixt__forward_new(const mixt__model *model, const mixt__policy *policy, mixt__device *device,
                              const mixt__forward_shape *shape, mixt__forward **forward);
void mixt__forward_free(mixt__forward *forward);

/** Takes memory and points the plan at parameters, whose working copies must be those of the same policy or which are
 *  read in FP32. */
mixt_status mixt__forward_bind(mixt__forward *forward, const mixt__params *params);

/** Bytes of cache number i, -1 past the last. Plans of one model and policy have the same caches. */
int64_t mixt__forward_cache_bytes(const mixt__forward *forward, int64_t i);
/** Places of a text that a cache of keys or values has a row for; 0: it is a recurrent state. */
int64_t mixt__forward_cache_places(const mixt__forward *f, int64_t i);
/** Whether anything depends on the tokens' places, or is kept by place: then a text has an end. */
bool mixt__forward_has_places(const mixt__forward *forward);

/** Points an array that is given at memory of the device. */
void mixt__forward_give(mixt__forward *forward, const char *name, const void *address);
/** Where the output is, on the device. */
const void *mixt__forward_result(const mixt__forward *forward);

/** One run on an input in host memory; `first` is the place of its first token. `caches` may be NULL without any. */
mixt_status mixt__forward_run(mixt__forward *forward, const void *input, int64_t first, void *const *caches);
/** The model's output after a run: its shape, and `count` numbers from `from` on. */
const mixt__shape *mixt__forward_output_shape(const mixt__forward *forward);
mixt_status mixt__forward_output(const mixt__forward *forward, int64_t from, int64_t count, float *values);

#endif
