/* Recomputation within a budget: what is computed again in the backward pass instead of being kept from the forward
 * pass, so that a step's activations fit.
 *
 * Three parts: recompute_problem.c reads a compiled graph into a small problem of units, values and times;
 * recompute_solve.c finds the cheapest set of units for a budget and knows nothing of graphs; recompute.c copies the
 * nodes of that set into the backward pass. Invariant: a copy is the same op with the same attributes, shapes, strides
 * and random keys on the same bits, so the step's results are the same bits with and without.
 */
#ifndef MIXT_PASSES_RECOMPUTE_H
#define MIXT_PASSES_RECOMPUTE_H

#include "graph/graph.h"

/* ---- the problem ---- */

/** Memory that a unit writes. A time is the index of a node; times before `late` are the forward pass, which runs as it
 *  is whatever is chosen. */
typedef struct mixt__recompute_value {
    int32_t unit;
    size_t bytes;
    int64_t last_early; // the last node of the forward pass that touches it
    int64_t first_late; // the first node after that which reads it; INT64_MAX: none
    int64_t last_late;  // the last one; -1: none
    bool taken;         // that one writes its result there: the memory counts as the result's from then on
} mixt__recompute_value;

/** What is computed again as a whole: a node with all its outputs. */
typedef struct mixt__recompute_unit {
    double seconds;
    bool may;             // false: its values are kept wherever someone needs them late
    int32_t first, count; // its values
    const int32_t *in;    // values that it reads, all of units before it
    int32_t in_count;
    int64_t node; // of the graph
} mixt__recompute_unit;

/** Units stand in the order in which they run. A value that is kept lives from its unit to its last reader; one that is
 *  computed again dies in the forward pass and is made once more before its first late reader, where its unit's inputs
 *  must be at hand: kept, or computed again themselves. What several units make again for one late node counts as if
 *  all of it were there at once. */
typedef struct mixt__recompute_problem {
    mixt__recompute_unit *units;
    int64_t unit_count;
    mixt__recompute_value *values;
    int64_t value_count;
    int64_t times, late;
    size_t *base; // by time: bytes of all that no choice changes, each value from its unit to its last_early among it
    mixt__arena arena;
} mixt__recompute_problem;

/** @param seconds of each node of the graph, by index */
mixt_status mixt__recompute_problem_make(const mixt__graph *graph, const double *seconds,
                                         mixt__recompute_problem *problem);
void mixt__recompute_problem_free(mixt__recompute_problem *problem);

/* ---- its solution ---- */

typedef struct mixt__recompute_answer {
    bool found;      // false: no set fits
    double seconds;  // of what is computed again
    double lower;    // no set that fits takes less; equal to seconds: this one is the best
    size_t peak;     // bytes at the worst time
    int64_t states;  // that were looked at
    int64_t dropped; // states left aside because there were too many: 0 where the answer is proven
} mixt__recompute_answer;

/** Seconds and peak of a set. @param again by unit; where a unit's flag is set but nobody needs it, it costs nothing.
 *  @return false when memory ends */
bool mixt__recompute_measure(const mixt__recompute_problem *problem, const bool *again, double *seconds, size_t *peak);

/** The cheapest set whose peak is at most `budget` bytes. The same problem gives the same answer on every machine: what
 *  ends the search early is a number of states, not time.
 *  @param quick follow the most promising choices only: to learn whether one fits
 *  @param again by unit: the set that was found; units that nobody needs are left out */
mixt_status mixt__recompute_solve(const mixt__recompute_problem *problem, size_t budget, bool quick, bool *again,
                                  mixt__recompute_answer *answer);
/** Until when a value's memory counts as its own where its last late reader is at `last`. */
static inline int64_t mixt__recompute_end(const mixt__recompute_value *value, int64_t last)
{
    return value->taken && last == value->last_late ? last - 1 : last;
}

/* ---- the pass ---- */

/** Seconds that one run of a node takes. @param device whatever the function needs to know */
typedef double mixt__node_seconds(const void *device, const mixt__graph *graph, const mixt__node *node);

/** What the pass chose. */
typedef struct mixt__recompute_choice {
    size_t budget;   // bytes of activations; 0: none was set
    size_t kept_all; // bytes that activations take without recomputation
    size_t least;    // where no set fits: the smallest budget that one fits
    int64_t nodes;   // that are computed again
    double flops;    // of those
    double seconds;  // predicted, of those
    double lower;    // bound of the seconds of any set that the solver's figure of memory lets pass
    int64_t states;  // that the solver looked at
} mixt__recompute_choice;

#endif
