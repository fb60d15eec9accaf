/* The typed graph as text, one line a node; nodes of matrix work with the format in which they multiply:
 *   12  h.0.attn.qkv     matmul:bf16 %31 bf16(8, 256, 1152) = %29 bf16(8, 256, 384), h.0.attn.qkv.weight bf16(1152,
 * 384)
 */
#include "graph/graph.h"

#include "graph/op.h"
#include "num/num.h"

#include <stdio.h>

static void print_value(const mixt__graph *graph, int32_t id, char *text, size_t size)
{
    const mixt__value *v = &graph->values[id];
    static const char *const scales[] = {"", "/tensor", "/channel", "/block", "/nested"};
    char shape[128], name[96];
    if (v->role == MIXT_ROLE_ACTIVATION)
        snprintf(name, sizeof name, "%%%d", id);
    else
        snprintf(name, sizeof name, "%s%.80s", v->role == MIXT_ROLE_GRAD ? "grad:" : "", v->name);
    snprintf(text, size, "%s %s%s%s", name, mixt_dtype_name(v->dtype), scales[v->scales.kind],
             mixt__shape_text(&v->shape, shape, sizeof shape));
}

void mixt__graph_print(const mixt__graph *graph, void (*write)(void *argument, const char *line), void *argument)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        char line[2048], piece[256], op[64];
        snprintf(op, sizeof op, "%s%s%s", n->op->name, n->op->matrix_work ? ":" : "",
                 n->op->matrix_work ? mixt_dtype_name(n->arithmetic) : "");
        size_t used = (size_t)snprintf(line, sizeof line, "%4lld %c %-24s %-18s ", (long long)i,
                                       n->recomputed ? 'r'
                                       : n->backward ? 'b'
                                                     : 'f',
                                       n->layer, op);
        for (int o = 0; o < n->out_count && used < sizeof line; o++) {
            print_value(graph, n->out[o], piece, sizeof piece);
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", o ? ", " : "", piece);
        }
        for (int k = 0; k < n->in_count && used < sizeof line; k++) {
            print_value(graph, n->in[k], piece, sizeof piece);
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", k ? ", " : " = ", piece);
        }
        if (n->op->describe && used < sizeof line) {
            n->op->describe(n->attrs, piece, sizeof piece);
            used += (size_t)snprintf(line + used, sizeof line - used, "  [%s]", piece);
        }
        if (n->alias && used < sizeof line)
            snprintf(line + used, sizeof line - used, "  (view)");
        write(argument, line);
    }
}
