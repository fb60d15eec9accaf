/* What the recurrent ops (lstm, gru, rnn) share: shapes, cost, and the parameters of a layer. */
#ifndef MIXT_OPS_RECURRENT_H
#define MIXT_OPS_RECURRENT_H

#include "ops/rules.h"

typedef struct mixt__recurrent_kind {
    const char *name; // of the op
    const char *rows; // of weight_hh, in words: "4H"
    int64_t gates;    // rows of weight_hh for each unit
} mixt__recurrent_kind;

/** That inputs 0 and 1 are gates (B, T, gates·H) and weight_hh (gates·H, H); then *state is (B, T, H). */
mixt_status mixt__recurrent_shapes(const mixt__graph *graph, const mixt__node *node, const mixt__recurrent_kind *kind,
                                   mixt__shape *state);

/** The same for an op that goes on from earlier runs: its inputs from `first` on are caches (B, H), the last of which
 * is FP32 where `whole` says so and all others have the gates' format. */
mixt_status mixt__recurrent_cached_shapes(const mixt__graph *graph, const mixt__node *node,
                                          const mixt__recurrent_kind *kind, int first, bool whole, mixt__shape *state);

/** Multiply-adds with weight_hh, counted as two, for states (B, T, H). */
double mixt__recurrent_flops(const mixt__recurrent_kind *kind, const mixt__shape *states);

typedef struct mixt__recurrent_layer {
    mixt_value gates; // (B, T, gates·H): the product of the inputs, for all steps at once
    mixt_value weight_hh;
} mixt__recurrent_layer;

/** Makes name.weight_ih, name.weight_hh and name.bias and the product of the inputs; false: the builder has failed. */
bool mixt__recurrent_begin(mixt_builder *b, const char *name, mixt_value x, int64_t features,
                           const mixt__recurrent_kind *kind, mixt__recurrent_layer *layer);

/** A parameter of a layer with this state size, drawn like its siblings. */
mixt_value mixt__recurrent_param(mixt_builder *b, const char *name, const char *part, int64_t features,
                                 mixt__shape shape);

/** A cache (B, H) for the state of a layer that goes on from what earlier runs left. */
mixt_value mixt__recurrent_cache(mixt_builder *b, const mixt__recurrent_layer *layer);

#endif
