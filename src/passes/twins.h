/* Twins: beside the nodes of an FP32 graph the same nodes in lower formats, and how their results differ.
 *
 * A twin reads what its node reads, cast to the format, so that one run shows for every node what it alone would lose
 * in each format while everything before it is exact. What a twin gives is followed through norms and pointwise nodes
 * to the next matrix work: where it ends up decides the slopes that the backward pass takes. The nodes themselves
 * compute as ever. Where a value has a gradient, the difference is also weighed by it: how much the loss would change.
 */
#ifndef MIXT_PASSES_TWINS_H
#define MIXT_PASSES_TWINS_H

#include "passes/passes.h"

enum { MIXT_TWIN_FORMATS = 3, MIXT_TWIN_VALUES = 12 };

typedef enum mixt__twin_kind {
    MIXT_TWIN_FORWARD,  // the first output of a forward node, from inputs in the format
    MIXT_TWIN_ROUNDED,  // the same, its inputs exact and only its output in the format
    MIXT_TWIN_WEIGHT,   // a parameter that matrix work reads, rounded to the format
    MIXT_TWIN_BACKWARD, // a gradient that flows on
    MIXT_TWIN_PARAM,    // a gradient of a parameter
    MIXT_TWIN_SLOPE,    // a gradient behind a non-linear node, whose slope is taken where the low forward node put it
} mixt__twin_kind;

/** One comparison; its number is the tag of its tensor_error node. */
typedef struct mixt__twin {
    mixt__twin_kind kind;
    int format;                       // index in formats
    int32_t source;                   // node of the graph as it was built; SLOPE: the one that is low
    int32_t param;                    // PARAM, WEIGHT: the parameter; else -1
    int32_t numbers;                  // value of the results: see mixt__diff_number
    int32_t counts;                   // and mixt__diff_count
    int32_t values[MIXT_TWIN_VALUES]; // what it has in the format: tags of tensor_stats nodes
    int value_count;
} mixt__twin;

/** Statistics of one value, held against all formats; its number is the tag of its tensor_stats node. */
typedef struct mixt__twin_stats {
    int32_t numbers, counts; // values of the results: see mixt__stats_number, mixt__stats_count
    bool backward;           // of a gradient
} mixt__twin_stats;

/** What is wanted, and what the pass made. */
struct mixt__twins {
    mixt_dtype formats[MIXT_TWIN_FORMATS];
    int format_count;
    mixt__twin *twins;
    int64_t count, capacity;
    mixt__twin_stats *stats;
    int64_t stats_count, stats_capacity;
};

void mixt__twins_free(mixt__twins *twins);

#endif
