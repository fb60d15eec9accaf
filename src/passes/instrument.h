/* Statistics nodes on the values of a compiled graph.
 *
 * The pass comes after all others, so that nodes, formats and fused forms are those of the graph without it: the same
 * kernels compute the same bits, and behind a node that makes a wanted value stands one that looks at it. Who compiled
 * the graph finds those nodes by their op (tensor_stats): input 0 is the value, the outputs are kept.
 */
#ifndef MIXT_PASSES_WATCH_H
#define MIXT_PASSES_WATCH_H

#include "ops/attrs.h"
#include "passes/passes.h"

struct mixt__instrument {
    /** Whether to look at output `output` of a node; NULL: at every float value and every gradient of a parameter. */
    bool (*wanted)(void *user, const mixt__graph *graph, const mixt__node *node, int output);
    void *user;                             // for it
    bool layers;                            // only the values that stand for layers: see mixt__instrument_layers
    mixt_dtype targets[MIXT_STATS_TARGETS]; // formats that values are held against; NONE: none
};

/** The values that stand for layers, the output of each and its gradient.
 *  @param layers receives by value the layer that it stands for; the caller clears it */
void mixt__instrument_layers(const mixt__graph *graph, const char **layers);
/** What an instrumented step of layers will look at, known from the plain one: how many values, and the numbers in the
 * largest of them. Its statistics lie outside the arena, so that all else lies as it does without. */
mixt_status mixt__instrument_count_layers(const mixt__graph *graph, int64_t *values, int64_t *largest);

#endif
