/* Kinds of work and bytes of nodes. */
#include "inspect/nodes.h"

#include "ops/ops.h"

#include <string.h>

const char *mixt_work_name(mixt_work work)
{
    static const char *const names[MIXT_WORK_COUNT] = {
        "products", "attention", "convolution", "recurrent", "norms", "pointwise", "loss", "other", "optimizer",
    };
    return (unsigned)work < MIXT_WORK_COUNT ? names[work] : "none";
}

mixt_work mixt__node_work(const mixt__node *node)
{
    // by the start of the op's name; the first that fits
    static const struct {
        const char *start;
        mixt_work work;
    } kinds[] = {
        {"matmul", MIXT_WORK_PRODUCTS},
        {"attention", MIXT_WORK_ATTENTION},
        {"conv2d", MIXT_WORK_CONVOLUTION},
        {"lstm", MIXT_WORK_RECURRENT},
        {"batch_norm", MIXT_WORK_NORMS},
        {"layer_norm", MIXT_WORK_NORMS},
        {"pointwise", MIXT_WORK_POINTWISE},
        {"accumulate", MIXT_WORK_POINTWISE},
        {"cross_entropy", MIXT_WORK_LOSS},
        {"head_step", MIXT_WORK_LOSS},
        {"mse", MIXT_WORK_LOSS},
        {"bce", MIXT_WORK_LOSS},
        {"", MIXT_WORK_OTHER},
    };
    size_t i = 0;
    while (strncmp(node->op->name, kinds[i].start, strlen(kinds[i].start)))
        i++;
    return kinds[i].work;
}

static double value_bytes(const mixt__value *v)
{
    return (double)mixt__shape_count(&v->shape) * (double)mixt_dtype_size(v->dtype);
}

/** What a node touches of a value: of an embedding's table only as many rows as there are indices. */
static double touched_bytes(const mixt__graph *g, const mixt__node *n, int32_t id)
{
    const mixt__value *v = &g->values[id];
    bool read = n->op == &mixt__op_embedding && id == n->in[0];
    bool added = n->op == &mixt__op_embedding_grad && id == n->out[0] && n->accumulates & 1;
    double whole = value_bytes(v);
    if (!read && !added)
        return whole;
    const mixt__value *rows = &g->values[read ? n->out[0] : n->in[1]];
    double part = (double)mixt__shape_count(&rows->shape) * (double)mixt_dtype_size(v->dtype);
    return part < whole ? part : whole;
}

double mixt__node_bytes(const mixt__graph *g, const mixt__node *n)
{
    double bytes = 0;
    for (int k = 0; k < n->in_count; k++) {
        bool again = false;
        for (int earlier = 0; earlier < k; earlier++)
            again = again || n->in[earlier] == n->in[k];
        bytes += again ? 0 : touched_bytes(g, n, n->in[k]);
    }
    for (int o = 0; o < n->out_count; o++)
        bytes += touched_bytes(g, n, n->out[o]) * (n->accumulates >> o & 1 ? 2 : 1);
    return bytes;
}
