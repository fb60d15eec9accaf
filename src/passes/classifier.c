/* A small classifier's head becomes one node, where the backend has such a form (mixt__fused):
 *
 *   logits = x·W + b;  grad = cross_entropy_step(logits);  grad_W, grad_b = gradᵀ·x;  grad_x = grad·Wᵀ   →   head_step
 *
 * Each of the four takes a few microseconds of work: what they cost apart is threads that wait for each other, and rows
 * that move from cache to cache.
 */
#include "passes/passes.h"

#include "graph/op.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

enum {
    CLASSES_MAX = 32,     // more are worth the matrix engine
    WEIGHT_MAX = 1 << 16, // elements: every thread reads all of them
};

/** The nodes of a head. */
typedef struct head {
    mixt__node *product, *step, *grad_x, *grad_w;
} head;

static bool plain_product(const mixt__graph *graph, const mixt__node *n)
{
    const mixt__matmul_attrs *at = n->attrs;
    return n->op == &mixt__op_matmul && at->alpha == 1 && !at->addend && graph->values[n->in[0]].shape.rank == 2 &&
           graph->values[n->in[1]].shape.rank == 2;
}

/** Whether `n` makes the gradient of the product's input from the gradient of its result. */
static bool makes_grad_x(const mixt__graph *graph, const head *h, const mixt__node *n)
{
    const mixt__matmul_attrs *at = n->attrs;
    if (!plain_product(graph, n) || n->in[0] != h->step->out[0] || n->in[1] != h->product->in[1] || at->trans_a ||
        at->trans_b || at->bias)
        return false;
    return at->epilogue == MIXT_EPILOGUE_NONE ||
           (at->epilogue == MIXT_EPILOGUE_RELU_GRAD && n->in[2] == h->product->in[0]);
}

/** Whether `n` makes the gradients of the product's parameters, and is the first to do so. */
static bool makes_grad_w(const mixt__graph *graph, const head *h, const mixt__node *n)
{
    const mixt__matmul_attrs *at = n->attrs, *forward = h->product->attrs;
    return plain_product(graph, n) && n->in[0] == h->step->out[0] && n->in[1] == h->product->in[0] && at->trans_a &&
           !at->trans_b && at->epilogue == MIXT_EPILOGUE_NONE && at->row_sums == forward->bias && !n->accumulates &&
           graph->values[n->out[0]].role == MIXT_ROLE_GRAD;
}

static bool find_head(mixt__graph *graph, const int32_t *uses, mixt__node *step, head *h)
{
    const mixt__value *logits = &graph->values[step->in[0]];
    if (step->op != &mixt__op_cross_entropy_step || step->in_count != 3 || logits->producer < 0 ||
        uses[step->in[0]] != 1)
        return false;
    *h = (head){.product = &graph->nodes[logits->producer], .step = step};
    const mixt__matmul_attrs *at = h->product->attrs;
    if (!plain_product(graph, h->product) || at->trans_a || !at->trans_b || at->epilogue != MIXT_EPILOGUE_NONE ||
        uses[step->out[0]] != 2)
        return false;
    const mixt__shape *weight = &graph->values[h->product->in[1]].shape;
    if (weight->dims[0] > CLASSES_MAX || mixt__shape_count(weight) > WEIGHT_MAX)
        return false;
    for (mixt__node *n = step + 1; n < graph->nodes + graph->node_count; n++)
        if (makes_grad_x(graph, h, n))
            h->grad_x = n;
        else if (makes_grad_w(graph, h, n))
            h->grad_w = n;
    return h->grad_x && h->grad_w && h->grad_x->arithmetic == h->product->arithmetic &&
           h->grad_w->arithmetic == h->product->arithmetic;
}

/** The step becomes the head; the others are no more. */
static mixt_status join(mixt__graph *graph, const head *h)
{
    const mixt__matmul_attrs *forward = h->product->attrs, *backward = h->grad_x->attrs;
    int32_t *in = mixt__arena_alloc(&graph->arena, 5 * sizeof *in);
    int32_t *out = mixt__arena_alloc(&graph->arena, 5 * sizeof *out);
    mixt__head_attrs *at = mixt__arena_alloc(&graph->arena, sizeof *at);
    if (!in || !out || !at)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to join a classifier's head");
    *at = (mixt__head_attrs){.bias = forward->bias, .relu = backward->epilogue == MIXT_EPILOGUE_RELU_GRAD};
    memcpy(&at->loss, h->step->attrs, sizeof at->loss);
    int count = 2 + forward->bias;
    memcpy(in, h->product->in, (size_t)count * sizeof *in);
    in[count++] = h->step->in[1];
    in[count++] = h->step->in[2];
    memcpy(out, (int32_t[]){h->grad_x->out[0], h->step->out[1], h->step->out[2]}, 3 * sizeof *out);
    memcpy(out + 3, h->grad_w->out, (size_t)h->grad_w->out_count * sizeof *out);
    mixt__node *n = h->step;
    n->op = &mixt__op_head_step;
    n->attrs = at;
    n->layer = h->product->layer;
    n->arithmetic = h->product->arithmetic;
    n->rule = h->product->rule;
    n->why = h->product->why;
    n->in = in;
    n->in_count = count;
    n->out = out;
    n->out_count = 3 + h->grad_w->out_count;
    for (int o = 0; o < n->out_count; o++)
        graph->values[out[o]].producer = (int32_t)(n - graph->nodes);
    return MIXT_OK;
}

mixt_status mixt__pass_classifier(mixt__graph *graph)
{
    int32_t *uses = mixt__graph_use_counts(graph);
    bool *keep = mixt__alloc((size_t)(graph->node_count + 1) * sizeof *keep);
    mixt_status status = uses && keep ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to look for classifiers");
    if (status == MIXT_OK)
        memset(keep, 1, (size_t)graph->node_count * sizeof *keep);
    for (int64_t i = 0; status == MIXT_OK && i < graph->node_count; i++) {
        head h;
        if (!find_head(graph, uses, &graph->nodes[i], &h))
            continue;
        status = join(graph, &h);
        keep[h.product - graph->nodes] = keep[h.grad_x - graph->nodes] = keep[h.grad_w - graph->nodes] = false;
    }
    if (status == MIXT_OK)
        mixt__graph_compact(graph, keep);
    mixt__free(uses);
    mixt__free(keep);
    return status;
}
