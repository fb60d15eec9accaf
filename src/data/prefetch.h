/* Batches made ahead by one or several threads, in order, in a ring of buffers that is taken once. */
#ifndef MIXT_DATA_PREFETCH_H
#define MIXT_DATA_PREFETCH_H

#include "mixt/data.h"

typedef struct mixt__prefetch mixt__prefetch;

enum { MIXT_PREFETCH_INPUTS = 16 };

/** What mixt_data_batch gives for a number, or a part of that, inputs in the ring's format. Valid from take to release.
 */
typedef struct mixt__batch {
    int64_t number;
    int bucket; // of the data's (data/buckets.h), whose lengths it has; 0 where there are none
    void *input, *target;
} mixt__batch;

/** How batches lie in the ring. */
typedef struct mixt__prefetch_form {
    void *(*alloc)(void *user, size_t bytes); // a GPU copies fastest from memory of its own driver
    void (*free)(void *user, void *block);
    void *user;
    mixt_dtype input; // that the first input in FP32 is rounded to; NONE: as the data has it
    int64_t parts;    // a batch of the data comes as so many of the ring's, one after the other; 0: as one
    mixt_dtype more[MIXT_PREFETCH_INPUTS - 1]; // formats of the other inputs
    int64_t run, of;                           // the ring's are `run` in a row of every `of`: a rank's share; 0: all
    bool whole;                                // of data in buckets too: as long as the set says
} mixt__prefetch_form;

/** Bytes that a ring takes, all at its start; 0 where no such ring can be. Parameters as of mixt__prefetch_start. */
size_t mixt__prefetch_bytes(const mixt_data *data, int64_t batch, int depth, const mixt__prefetch_form *form);

/**
 * Starts the threads, which make the batches first, first + 1, … without end: options.threads of the data, or one a
 * core, of which one works and more wake while batches come too slowly. `data` is held until stop, also when its owner
 * closes it before; mixt_data_batch and mixt_data_read stay usable beside it.
 * @param depth buffers in the ring, at least 1; 2 to 4 hide the making of a batch behind a step.
 * @param form NULL: ordinary memory, inputs as the data has them
 */
mixt_status mixt__prefetch_start(const mixt_data *data, int64_t batch, int depth, int64_t first,
                                 const mixt__prefetch_form *form, mixt__prefetch **prefetch);

/** Waits for the next batch, in order. Up to `depth` may be held at once (one more is MIXT_ERROR_STATE). A
 *  failure in the thread arrives here with its text, after the batches before it. In the child of a fork, which has
 *  no threads, MIXT_ERROR_STATE. */
mixt_status mixt__prefetch_take(mixt__prefetch *prefetch, const mixt__batch **batch);

/** Gives the oldest taken buffer back to be filled again. */
void mixt__prefetch_release(mixt__prefetch *prefetch);

/** Threads that are awake. */
int mixt__prefetch_threads(mixt__prefetch *prefetch);

/** Ends the threads, at any moment, and frees everything; NULL is allowed. */
void mixt__prefetch_stop(mixt__prefetch *prefetch);

#endif
