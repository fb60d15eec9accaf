/* The compiler passes, in the order in which they run. Each leaves a graph that mixt__graph_verify accepts.
 *
 *   precision:    a new graph in which every value has the format that the policy gives it
 *   autodiff:     appends the backward nodes, in the formats that the policy gives to them
 *   twins:        puts beside nodes what they would give in lower formats, and how that differs; only where asked for
 *   inject:        lets a layer overflow, underflow or die; only in tests of what happens then
 *   simplify:     drops copies that change nothing, shares equal casts, removes what nobody uses
 *   losses:       joins losses with their gradients, where the backend can
 *   epilogues:    moves single pointwise nodes into the product or norm before them, where the backend can
 *   classifier:   joins a small classifier's product, loss and their gradients, where the backend can
 *   split_logits: makes large logits, their loss and their gradients in parts of the batch
 *   quantise:     makes operands of products in FP8 pairs of numbers and a scale
 *   keep:         rounds activations between the forward and the backward pass, where the policy says so
 *   fuse:         merges chains of pointwise nodes into one program
 *   views:        turns reshapes, slices, splits and concats into views where the neighbours can read strides
 *   recompute:    copies forward nodes into the backward pass, so that activations fit a budget
 *   instrument:        puts statistics behind nodes, last of all; only where asked for
 *   memory:       liveness and offsets (memory.h)
 */
#ifndef MIXT_PASSES_PASSES_H
#define MIXT_PASSES_PASSES_H

#include "graph/graph.h"
#include "passes/recompute.h"
#include "policy/policy.h"

/** @param teacher of a teacher's nodes; NULL: as the others
 *  @param typed_input give the input the format in which all its users want it: who feeds it converts */
mixt_status mixt__pass_precision(const mixt__graph *source, const mixt__policy *policy, const mixt__policy *teacher,
                                 bool typed_input, mixt__graph **result);
/** @param gradients receives the gradient of each value of the forward graph, by id (0: none), for mixt__free; NULL:
 *  nobody asks */
mixt_status mixt__pass_autodiff(mixt__graph *graph, int32_t **gradients);
typedef struct mixt__twins mixt__twins; // passes/twins.h
mixt_status mixt__pass_twins(mixt__graph *graph, const int32_t *gradients, mixt__twins *twins);
typedef struct mixt__instrument mixt__instrument; // passes/instrument.h
typedef struct mixt__injections mixt__injections; // passes/inject.h
mixt_status mixt__pass_instrument(mixt__graph *graph, const mixt__instrument *instrument);
mixt_status mixt__pass_simplify(mixt__graph *graph);
mixt_status mixt__pass_losses(mixt__graph *graph);
mixt_status mixt__pass_epilogues(mixt__graph *graph, unsigned fused);
mixt_status mixt__pass_classifier(mixt__graph *graph);
/** Logits beyond `limit` bytes are made in parts. */
mixt_status mixt__pass_split_logits(mixt__graph *graph, size_t limit);
mixt_status mixt__pass_quantise(mixt__graph *graph);
/** @param fusion pointwise nodes are merged afterwards
 *  @param all every value that may be kept in a lower format is, however small and whatever it saves */
mixt_status mixt__pass_keep(mixt__graph *graph, bool fusion, bool all);
mixt_status mixt__pass_fuse(mixt__graph *graph);
mixt_status mixt__pass_views(mixt__graph *graph);
/** The cheapest recomputation with which the memory plan takes at most `budget` bytes. MIXT_ERROR_MEMORY with the
 *  smallest budget possible where none does. */
mixt_status mixt__pass_recompute(mixt__graph *graph, size_t budget, mixt__node_seconds *seconds, const void *device,
                                 mixt__recompute_choice *choice);

/** Parts of this size still fill a GPU; the weights' gradient is read and written once for each. */
#define MIXT_LOGITS_LIMIT ((size_t)1 << 30)

typedef struct mixt__compile_options {
    mixt__policy policy;
    const mixt__policy *teacher;        // of a teacher's nodes; NULL: as the others
    bool typed_input;                   // see mixt__pass_precision
    bool backward;                      // differentiate
    bool no_fusion;                     // for tests: fusion on equals fusion off within the bound
    bool keep_all;                      // for tests: see mixt__pass_keep
    size_t logits_limit;                // bytes of logits that exist at once; 0: MIXT_LOGITS_LIMIT
    unsigned fused;                     // mixt__fused: forms that the backend has kernels for
    size_t activation_budget;           // bytes of activations: what does not fit is computed again; 0: no limit
    mixt__node_seconds *seconds;        // with a budget: what computing a node again costs
    const void *device;                 // for `seconds`
    mixt__recompute_choice *recompute;  // filled in, also where nothing fits; NULL: nobody asks
    mixt__twins *twins;                 // of an FP32 graph; NULL: none
    const mixt__instrument *instrument; // values to look at; NULL: none
    const mixt__injections *injections; // faults to inject; NULL: none
} mixt__compile_options;

/** All passes, verified after each. The source stays as it is. */
mixt_status mixt__passes_run(const mixt__graph *source, const mixt__compile_options *options, mixt__graph **result);

/** Removes the nodes whose keep flag is false, renumbers producers. */
void mixt__graph_compact(mixt__graph *graph, const bool *keep);

/** Whether every output of a node can be a window on its input's memory, as its readers are now. */
bool mixt__node_can_view(const mixt__graph *graph, const mixt__node *node);

/** How often each value is read by nodes; one extra for values that are kept. Caller frees with mixt__free. */
int32_t *mixt__graph_use_counts(const mixt__graph *graph);

#endif
