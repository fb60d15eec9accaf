/* Why nodes have the formats that they have: reasons in words, which the precision pass and the gradient rules leave on
 * nodes and the other passes keep. Not here: why a kernel was chosen.
 */
#include "graph/op.h"

#include <stdio.h>
#include <string.h>

const char *mixt__class_reason(const mixt__op *op)
{
    static const char *const reasons[] = {
        [MIXT_CLASS_LOW] = "class of the op: takes the policy's format",
        [MIXT_CLASS_FULL] = "class of the op: takes fp32",
        [MIXT_CLASS_INSIDE] = "class of the op: takes what comes, computes in fp32 inside",
        [MIXT_CLASS_FOLLOW] = "class of the op: follows its inputs",
    };
    return reasons[op->precision];
}

const char *mixt__reason_join(mixt__graph *graph, const mixt__op *op, const char *first, const char *second)
{
    const char *class = mixt__class_reason(op);
    if (!strcmp(first, second) || !strcmp(first, class))
        return second;
    if (!strcmp(second, class))
        return first;
    return mixt__arena_printf(&graph->arena, "%s; %s", first, second);
}

mixt_status mixt__node_explain(const mixt__graph *graph, int64_t node, char **text)
{
    const mixt__node *n = &graph->nodes[node];
    bool widened = n->op->matrix_work && !n->backward && graph->values[n->out[0]].dtype == MIXT_DTYPE_FP32 &&
                   graph->values[n->in[0]].dtype != MIXT_DTYPE_FP32;
    if (n->op->matrix_work)
        return mixt__give_text(text, "%s: %s%s", mixt_dtype_name(n->arithmetic), n->why,
                               widened ? "; the loss reads it: fp32" : "");
    return mixt__give_text(text, "%s", n->why);
}
