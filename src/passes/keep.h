/* What the two halves of the keep pass share: keep.c finds what may be kept and rewrites the graph, keep_choose.c says
 * which of it saves memory.
 */
#ifndef MIXT_PASSES_KEEP_H
#define MIXT_PASSES_KEEP_H

#include "graph/op.h"

enum {
    MIXT_KEEP_NEAR = 16, // nodes between two readers that share a widened value: it lives until the last of them
};

/** What is known of a value that has memory of its own, over all its views. */
typedef struct mixt__saved {
    int64_t last_forward, first_backward; // nodes; -1: none
    mixt__node wish;                      // saves and saves_why of its backward readers, joined
    bool whole;                           // some reader must have it as it is
    mixt_dtype dtype;                     // in which it is kept; NONE: as it is
} mixt__saved;

typedef struct mixt__keeper {
    mixt__graph *graph;
    bool fusion, all;   // see mixt__pass_keep
    int64_t node_count; // of old nodes, which come first until all are put in order
    int32_t value_count;
    bool *forward;      // by old node
    int32_t *root;      // by old value: itself, or the value that it is a forward view of
    mixt__saved *saved; // by root
    int32_t *widened;   // by old value: what backward readers of the current group read; 0: not made yet
} mixt__keeper;

/** Whether fusion will merge a pointwise program of the value's shape into this reader of it. */
bool mixt__keep_merges(const mixt__keeper *keeper, int64_t reader, int32_t value);

/** Leaves as they are those values whose keeping does not lower the most memory that is in use at any node. */
mixt_status mixt__keep_choose(mixt__keeper *keeper);

#endif
