/* What a gradient rule works with: the gradient so far of every value, and ways to add to it.
 *
 * A contribution to a parameter goes straight into its FP32 gradient, in place; one to an activation is kept as it
 * comes, and further ones are added with pointwise nodes (which fusion then merges), in the activation's `gradient`.
 *
 * Rules do not care for formats. The gradient of matrix work takes what flows in and what the forward pass saved in the
 * format that the forward node's `gradient` asks for; other nodes take their inputs in the widest of their formats.
 * Where all of that is one format already, as it is unless the policy types backward passes apart, nothing is cast.
 */
#ifndef MIXT_OPS_GRADIENTS_H
#define MIXT_OPS_GRADIENTS_H

#include "graph/op.h"

struct mixt__gradients {
    mixt__graph *graph;
    int32_t *grad;          // by value id; 0: none yet
    bool *wanted;           // by value id: depends on a parameter that is trained
    int64_t capacity;       // of both arrays: values of the forward graph
    bool *written;          // by parameter: its gradient has a writer already
    const mixt__node *node; // the forward node that is differentiated
};

/** Before the rule of a forward node: its nodes are that node's gradient from now on. */
mixt_status mixt__gradients_begin(mixt__gradients *g, const mixt__node *node);

/** The gradient of a value, 0 when nothing flows to it. */
int32_t mixt__gradient_of(const mixt__gradients *g, int32_t value);
bool mixt__gradient_wanted(const mixt__gradients *g, int32_t value);

/** Emits a node whose output o is a contribution to the gradient of targets[o] (0: an output nobody needs). */
mixt_status mixt__gradient_emit(mixt__gradients *g, const mixt__op *op, const void *attrs, const int32_t *in,
                                int in_count, const int32_t *targets);

/** Emits a node for use inside a rule; its first output. */
mixt_status mixt__gradient_node(mixt__gradients *g, const mixt__op *op, const void *attrs, const int32_t *in,
                                int in_count, int32_t *out);

/** Adds a value already made to the gradient of `target`. */
mixt_status mixt__gradient_add(mixt__gradients *g, int32_t target, int32_t contribution);

#endif
