/* A node's outputs are what its oracle expects of its inputs. Views and fused programs are ops like others here. */
#include "graph/interpret.h"

#include "oracle/oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *take(size_t bytes)
{
    void *block = calloc(1, bytes + 8);
    if (!block) {
        fprintf(stderr, "graph: out of memory\n");
        exit(2);
    }
    return block;
}

interpretation *interpretation_new(const mixt__graph *graph, double **param, const double *input, const double *target)
{
    interpretation *x = take(sizeof *x);
    *x = (interpretation){.graph = graph, .value = take((size_t)graph->value_count * sizeof(double *)), .param = param};
    for (int64_t id = 1; id < graph->value_count; id++) {
        const mixt__value *v = &graph->values[id];
        size_t bytes = (size_t)mixt__shape_count(&v->shape) * sizeof(double);
        if (v->role == MIXT_ROLE_PARAM || v->role == MIXT_ROLE_STATE) {
            x->value[id] = param[v->param];
            continue;
        }
        x->value[id] = take(bytes);
        if (id == graph->input)
            memcpy(x->value[id], input, bytes);
        if (id == graph->target)
            memcpy(x->value[id], target, bytes);
        if (id == graph->seed)
            x->value[id][0] = 1;
    }
    return x;
}

static bool run_node(interpretation *x, const mixt__node *node)
{
    test_case *c = case_new(node->op->name, NULL, MIXT_DTYPE_FP64, 0);
    memcpy(&c->attrs, node->attrs, node->op->attrs_size);
    c->in_count = node->in_count;
    for (int i = 0; i < node->in_count; i++) {
        const mixt__value *v = &x->graph->values[node->in[i]];
        c->in[i] = (test_tensor){.dtype = v->dtype,
                                 .shape = v->shape,
                                 .count = mixt__shape_count(&v->shape),
                                 .value = x->value[node->in[i]]};
    }
    case_run(c);
    for (int o = 0; o < node->out_count && !c->error; o++) {
        double *to = x->value[node->out[o]];
        if (!mixt__shape_equal(&c->out[o].shape, &x->graph->values[node->out[o]].shape))
            c->error = "the graph has another shape than the op infers";
        for (int64_t i = 0; i < c->out[o].count && !c->error; i++)
            to[i] = c->out[o].value[i] + (node->accumulates >> o & 1 ? to[i] : 0);
    }
    bool good = !c->error;
    if (!good)
        printf("%s in layer '%s': %s\n", node->op->name, node->layer, c->error);
    case_free(c);
    return good;
}

bool interpretation_run(interpretation *x)
{
    for (int64_t i = 0; i < x->graph->node_count; i++)
        if (!run_node(x, &x->graph->nodes[i]))
            return false;
    return true;
}

void interpretation_free(interpretation *x)
{
    for (int64_t id = 1; id < x->graph->value_count; id++) {
        mixt__role role = x->graph->values[id].role;
        if (role != MIXT_ROLE_PARAM && role != MIXT_ROLE_STATE)
            free(x->value[id]);
    }
    free(x->value);
    free(x);
}
