/* Small helpers that several op files share. */
#ifndef MIXT_OPS_RULES_H
#define MIXT_OPS_RULES_H

#include "graph/builder.h"
#include "ops/attrs.h"
#include "ops/gradients.h"
#include "ops/ops.h"

/** The value behind input i of a node. */
static inline const mixt__value *mixt__in(const mixt__graph *graph, const mixt__node *node, int i)
{
    return &graph->values[node->in[i]];
}

static inline mixt__shape mixt__scalar_shape(void)
{
    return (mixt__shape){.rank = 0};
}

static inline mixt__shape mixt__vector_shape(int64_t count)
{
    return (mixt__shape){.rank = 1, .dims = {count}};
}

/** Elements in all dimensions but the last. */
static inline int64_t mixt__row_count(const mixt__shape *shape)
{
    int64_t rows = 1;
    for (int i = 0; i + 1 < shape->rank; i++)
        rows *= shape->dims[i];
    return rows;
}

static inline int64_t mixt__last_dim(const mixt__shape *shape)
{
    return shape->rank ? shape->dims[shape->rank - 1] : 1;
}

static inline void mixt__set_out(mixt__inferred *r, int o, const mixt__shape *shape, mixt_dtype dtype)
{
    r->out[o].shape = *shape;
    r->out[o].dtype = dtype;
    if (r->count <= o)
        r->count = o + 1;
}

/** Emits a reshape as part of a gradient rule. */
mixt_status mixt__gradient_reshape(mixt__gradients *g, int32_t value, const mixt__shape *shape, int32_t *out);

/** Emits one pointwise instruction; `dtype` of the result (NONE: widest of the inputs). */
mixt_status mixt__gradient_pointwise(mixt__gradients *g, mixt__pw_instr instr, const int32_t *in, int in_count,
                                     mixt_dtype dtype, int32_t *out);

/** Builds one pointwise instruction over its operands; `domain`: the result's shape, where they alone do not say it. */
mixt_value mixt__pointwise_apply(mixt_builder *b, mixt__pw_instr instr, const mixt_value *in,
                                 const mixt__shape *domain);

#endif
