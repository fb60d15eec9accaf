/* Memory planning: which activations live when, and where each stands in one arena.
 *
 * Offsets are found once, before anything runs; what the plan says is what is allocated, to the byte.
 */
#ifndef MIXT_PASSES_MEMORY_H
#define MIXT_PASSES_MEMORY_H

#include "graph/graph.h"

enum { MIXT_MEMORY_ALIGNMENT = 64 };

typedef struct mixt__memory_plan {
    size_t *offset;     // by value id, for values that own memory; SIZE_MAX: none
    size_t arena_bytes; // all activations, with reuse
    size_t naive_bytes; // without reuse: what keeping everything would take
    size_t side_bytes;  // values that lie outside the arena (MIXT_ROLE_SIDE), one after the other
    int64_t in_place;   // outputs that took over an input's memory
} mixt__memory_plan;

/** Bytes that a value takes in the arena. */
size_t mixt__memory_bytes(const mixt__value *value);
/** Bytes in use while each node runs by memory that is first written at node `from` or later.
 *  @param loads by node
 *  @param taken by value: whether its memory, written before `from`, is taken over by an output of its last reader;
 *  each of them counts for itself */
mixt_status mixt__memory_loads(const mixt__graph *graph, int64_t from, size_t *loads, bool *taken);

mixt_status mixt__memory_plan_make(const mixt__graph *graph, mixt__memory_plan *plan);
void mixt__memory_plan_free(mixt__memory_plan *plan);

#endif
