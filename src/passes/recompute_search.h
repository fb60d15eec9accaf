/* Partial decisions of the solver, and leaving out those that others beat. */
#ifndef MIXT_PASSES_RECOMPUTE_SEARCH_H
#define MIXT_PASSES_RECOMPUTE_SEARCH_H

#include "passes/recompute.h"

/** Some units decided, from the last on. What its key says is in recompute_solve.c, where keys are packed. */
typedef struct mixt__recompute_state {
    int64_t closed; // bytes at the worst closed time
    double cost, bound;
    uint64_t hash;     // of its key
    int64_t key;       // where its key begins in the pool
    int32_t key_count; // numbers of its key
    int32_t link;      // the decision that led here; -1: the start
} mixt__recompute_state;

/** A growing list of states and the pool of their keys. */
typedef struct mixt__recompute_states {
    mixt__recompute_state *list;
    int64_t count, capacity;
    int64_t *pool;
    int64_t pool_count, pool_capacity;
} mixt__recompute_states;

/** Order by bound, then by load: for qsort. */
int mixt__recompute_by_bound(const void *a, const void *b);

/** Leaves out what another state beats, then the least promising beyond `width`.
 *  @param dropped grows by the number of those
 *  @param dropped_bound falls to the lowest bound among them */
void mixt__recompute_thin(mixt__recompute_states *list, int64_t width, int64_t *dropped, double *dropped_bound);

#endif
