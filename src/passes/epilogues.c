/* Epilogues: a pointwise node that does one thing to the result of a product or a norm moves into it, where the
 * backend has such a form (mixt__fused). Saves a pass over memory each time.
 *
 *   product → relu | gelu            the product stores the activation (and, for gelu, what it was applied to)
 *   product → gelu_grad | relu_grad  the product of the backward pass multiplies by the slope
 *   product | norm's gradient → add  the other summand is added before the result is stored
 *   layer_norm_grad → reduce         a bias's gradient is summed while the result is made
 *   product, reduce                  a bias's gradient is summed while its weight's is made
 *   batch_norm (→ add) → relu        one pass normalises, adds and clips; its gradient finds the mask again
 *
 * A node is only changed when nobody else reads what disappears, and only takes values that are made before it.
 */
#include "passes/passes.h"

#include "graph/op.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

typedef struct rewriter {
    mixt__graph *graph;
    unsigned fused;
    int32_t *uses; // by value
    bool *keep;    // by node
} rewriter;

/** The only instruction of a pointwise node that keeps the format and shape of its inputs; NULL: another node. */
static const mixt__pw_instr *single(const rewriter *r, const mixt__node *n)
{
    const mixt__pointwise_attrs *at = n->attrs;
    if (n->op != &mixt__op_pointwise || at->instr_count != 1 || at->out_count != 1 || at->cast_by_hand)
        return NULL;
    const mixt__value *out = &r->graph->values[n->out[0]];
    for (int i = 0; i < n->in_count; i++) {
        const mixt__value *in = &r->graph->values[n->in[i]];
        if (in->dtype != out->dtype || !mixt__shape_equal(&in->shape, &out->shape))
            return NULL;
    }
    return &at->instrs[0];
}

/** The node that makes an activation as its output `o`, if that is an op of this kind; NULL: not so. */
static mixt__node *producer(const rewriter *r, int32_t value, const mixt__op *op, int o)
{
    const mixt__value *v = &r->graph->values[value];
    if (v->role != MIXT_ROLE_ACTIVATION || v->producer < 0 || v->output)
        return NULL;
    mixt__node *n = &r->graph->nodes[v->producer];
    return n->op == op && n->out[o] == value ? n : NULL;
}

/** Whether `value` exists before node n runs. */
static bool before(const rewriter *r, int32_t value, const mixt__node *n)
{
    const mixt__value *v = &r->graph->values[value];
    return v->producer < 0 || v->producer < n - r->graph->nodes;
}

/** A copy of the node's attributes that may be changed. */
static void *own_attrs(rewriter *r, mixt__node *n)
{
    void *copy = mixt__arena_alloc(&r->graph->arena, n->op->attrs_size);
    if (copy)
        n->attrs = memcpy(copy, n->attrs, n->op->attrs_size);
    return copy;
}

/** Inserts an input at a position. */
static bool add_input(rewriter *r, mixt__node *n, int at, int32_t value)
{
    int32_t *in = mixt__arena_alloc(&r->graph->arena, (size_t)(n->in_count + 1) * sizeof *in);
    if (!in)
        return false;
    memcpy(in, n->in, (size_t)at * sizeof *in);
    in[at] = value;
    memcpy(in + at + 1, n->in + at, (size_t)(n->in_count - at) * sizeof *in);
    n->in = in;
    n->in_count++;
    r->uses[value]++;
    return true;
}

/** Node n makes from now on what pointwise node p made, and p goes. */
static void take_result(rewriter *r, mixt__node *n, mixt__node *p)
{
    n->out[0] = p->out[0];
    mixt__node_saves_join(n, p);
    r->graph->values[p->out[0]].producer = (int32_t)(n - r->graph->nodes);
    for (int i = 0; i < p->in_count; i++)
        r->uses[p->in[i]]--;
    r->keep[p - r->graph->nodes] = false;
}

static const mixt__matmul_attrs *plain_product(const mixt__node *n)
{
    const mixt__matmul_attrs *at = n->attrs;
    return at->epilogue == MIXT_EPILOGUE_NONE && !at->addend && !at->row_sums ? at : NULL;
}

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to fuse epilogues");
}

/* ---- products ---- */

static mixt_status fuse_activation(rewriter *r, mixt__node *p, mixt__epilogue epilogue)
{
    int32_t x = p->in[0];
    mixt__node *m = producer(r, x, &mixt__op_matmul, 0);
    if (!m || !plain_product(m) || (epilogue == MIXT_EPILOGUE_RELU && r->uses[x] > 1))
        return MIXT_OK;
    mixt__matmul_attrs *at = own_attrs(r, m);
    int32_t *out = mixt__arena_alloc(&r->graph->arena, 2 * sizeof *out);
    if (!at || !out)
        return no_memory();
    at->epilogue = epilogue;
    out[1] = x;
    m->out = out;
    m->out_count = epilogue == MIXT_EPILOGUE_GELU ? 2 : 1;
    take_result(r, m, p);
    return MIXT_OK;
}

/** The gradient of an activation: `pre` is what that was applied to, or for ReLU made. */
static mixt_status fuse_slope(rewriter *r, mixt__node *p, const mixt__pw_instr *instr, mixt__epilogue epilogue)
{
    int32_t pre = p->in[instr->a], grad = p->in[instr->b];
    mixt__node *m = producer(r, grad, &mixt__op_matmul, 0);
    if (!m || !plain_product(m) || r->uses[grad] > 1 || !before(r, pre, m))
        return MIXT_OK;
    mixt__matmul_attrs *at = own_attrs(r, m);
    if (!at || !add_input(r, m, m->in_count, pre))
        return no_memory();
    at->epilogue = epilogue;
    take_result(r, m, p);
    return MIXT_OK;
}

/* ---- sums ---- */

/** Moves the sum p = made + other into the node that makes `made`, if that can take it. */
static mixt_status fuse_addend(rewriter *r, mixt__node *p, int32_t made, int32_t other, bool *done)
{
    mixt__node *m = producer(r, made, &mixt__op_matmul, 0), *n = producer(r, made, &mixt__op_layer_norm_grad, 0);
    n = n ? n : producer(r, made, &mixt__op_rms_norm_grad, 0);
    bool product = r->fused & MIXT_FUSED_MATMUL && m && plain_product(m);
    bool norm = r->fused & MIXT_FUSED_NORM && n && !((const mixt__norm_attrs *)n->attrs)->addend;
    mixt__node *into = product ? m : norm ? n : NULL;
    if (!into || made == other || r->uses[made] > 1 || !before(r, other, into))
        return MIXT_OK;
    void *attrs = own_attrs(r, into);
    int at = into->in_count;
    if (!attrs || !add_input(r, into, at, other))
        return no_memory();
    if (product)
        ((mixt__matmul_attrs *)attrs)->addend = true;
    else
        ((mixt__norm_attrs *)attrs)->addend = true;
    take_result(r, into, p);
    *done = true;
    return MIXT_OK;
}

/** Whether a node makes a bias's gradient: the sums of its input's columns, written by no other node. */
static bool sums_columns(const rewriter *r, const mixt__node *p)
{
    if (p->op != &mixt__op_reduce)
        return false;
    const mixt__reduce_attrs *sums = p->attrs;
    const mixt__value *x = &r->graph->values[p->in[0]], *total = &r->graph->values[p->out[0]];
    if (sums->mean || total->role != MIXT_ROLE_GRAD || total->shape.rank != 1 ||
        sums->axes != (1u << (x->shape.rank - 1)) - 1)
        return false;
    for (int64_t i = 0; i < r->graph->node_count; i++)
        for (int o = 0; o < r->graph->nodes[i].out_count; o++)
            if (&r->graph->nodes[i] != p && r->keep[i] && r->graph->nodes[i].out[o] == p->out[0])
                return false;
    return true;
}

/** Output o of node n is from now on what p made, and p goes. */
static void take_sums(rewriter *r, mixt__node *n, int o, mixt__node *p)
{
    n->out[o] = p->out[0];
    n->out_count = o + 1;
    r->graph->values[p->out[0]].producer = (int32_t)(n - r->graph->nodes);
    r->uses[p->in[0]]--;
    r->keep[p - r->graph->nodes] = false;
}

/** A value as a matrix of rows: the value itself, or the one it is a reshaped view of. */
static int32_t reshaped_from(const rewriter *r, int32_t value)
{
    int32_t producer = r->graph->values[value].producer;
    const mixt__node *n = producer < 0 ? NULL : &r->graph->nodes[producer];
    return n && n->op == &mixt__op_reshape ? n->in[0] : value;
}

/** A bias's gradient: the sums of the rows of the transposed operand from which its weight's gradient is made. */
static mixt_status fuse_row_sums(rewriter *r, mixt__node *p)
{
    for (int64_t i = 0; i < r->graph->node_count; i++) {
        mixt__node *m = &r->graph->nodes[i];
        const mixt__matmul_attrs *at = m->op == &mixt__op_matmul && r->keep[i] ? plain_product(m) : NULL;
        if (!at || !at->trans_a || at->bias || r->graph->values[m->in[0]].shape.rank != 2 ||
            r->graph->values[m->out[0]].role != MIXT_ROLE_GRAD ||
            (m->in[0] != p->in[0] && reshaped_from(r, m->in[0]) != p->in[0]))
            continue;
        mixt__matmul_attrs *own = own_attrs(r, m);
        int32_t *out = mixt__arena_alloc(&r->graph->arena, 2 * sizeof *out);
        if (!own || !out)
            return no_memory();
        own->row_sums = true;
        out[0] = m->out[0];
        m->out = out;
        take_sums(r, m, 1, p);
        break;
    }
    return MIXT_OK;
}

/** A bias's gradient: the sums of the columns of what a layer_norm_grad makes. */
static mixt_status fuse_totals(rewriter *r, mixt__node *p)
{
    mixt__node *n = producer(r, p->in[0], &mixt__op_layer_norm_grad, 0);
    if (!n || ((const mixt__norm_attrs *)n->attrs)->totals)
        return MIXT_OK;
    mixt__norm_attrs *at = own_attrs(r, n);
    int32_t *out = mixt__arena_alloc(&r->graph->arena, 4 * sizeof *out);
    if (!at || !out)
        return no_memory();
    memcpy(out, n->out, 3 * sizeof *out);
    at->totals = true;
    n->out = out;
    take_sums(r, n, 3, p);
    return MIXT_OK;
}

/* ---- batch norm ---- */

/** relu(batch_norm) or relu(batch_norm + other); the sum may be the other way round. */
static mixt_status fuse_batch_norm(rewriter *r, mixt__node *p)
{
    int32_t x = p->in[0], other = 0;
    mixt__node *sum = producer(r, x, &mixt__op_pointwise, 0), *n = producer(r, x, &mixt__op_batch_norm, 0);
    if (r->uses[x] > 1)
        return MIXT_OK;
    const mixt__pw_instr *instr = sum ? single(r, sum) : NULL;
    for (int i = 0; !n && instr && instr->code == MIXT_PW_ADD && i < 2; i++) {
        int32_t made = sum->in[i ? instr->b : instr->a];
        other = sum->in[i ? instr->a : instr->b];
        n = producer(r, made, &mixt__op_batch_norm, 0);
        if (n && (made == other || r->uses[made] > 1 || !before(r, other, n)))
            n = NULL;
    }
    const mixt__norm_attrs *plain = n ? n->attrs : NULL;
    if (!n || plain->relu || (plain->masked && other))
        return MIXT_OK;
    mixt__norm_attrs *at = own_attrs(r, n);
    if (!at || (other && !add_input(r, n, n->in_count, other)))
        return no_memory();
    at->relu = true;
    at->addend = other != 0;
    take_result(r, n, p);
    if (other) {
        r->uses[other]--;
        r->keep[sum - r->graph->nodes] = false;
    }
    return MIXT_OK;
}

/** The gradient of relu(batch_norm): the norm's gradient finds the mask again. */
static mixt_status fuse_batch_norm_grad(rewriter *r, mixt__node *g)
{
    const mixt__pw_instr *instr = NULL;
    mixt__node *p = producer(r, g->in[4], &mixt__op_pointwise, 0);
    if (p)
        instr = single(r, p);
    if (!instr || instr->code != MIXT_PW_RELU_GRAD || r->uses[g->in[4]] > 1)
        return MIXT_OK;
    int32_t y = p->in[instr->a], dy = p->in[instr->b];
    mixt__node *n = producer(r, y, &mixt__op_batch_norm, 0);
    const mixt__norm_attrs *forward = n ? n->attrs : NULL;
    if (!n || !forward->relu || forward->addend || n->in[0] != g->in[0])
        return MIXT_OK;
    mixt__norm_attrs *at = own_attrs(r, g);
    int32_t *in = mixt__arena_alloc(&r->graph->arena, (size_t)(g->in_count + 1) * sizeof *in);
    if (!at || !in)
        return no_memory();
    memcpy(in, g->in, (size_t)g->in_count * sizeof *in); // a mask behind the gradient stays
    in[4] = dy;
    in[g->in_count++] = n->in[2];
    g->in = in;
    at->relu = true;
    r->uses[y]--;
    r->keep[p - r->graph->nodes] = false;
    return MIXT_OK;
}

static mixt_status fuse_pointwise(rewriter *r, mixt__node *n, const mixt__pw_instr *instr)
{
    bool done = false;
    switch (instr->code) {
    case MIXT_PW_RELU:
        if (r->fused & (MIXT_FUSED_MATMUL | MIXT_FUSED_RELU))
            MIXT_TRY(fuse_activation(r, n, MIXT_EPILOGUE_RELU));
        if (r->fused & MIXT_FUSED_BATCH_NORM && r->keep[n - r->graph->nodes])
            MIXT_TRY(fuse_batch_norm(r, n));
        return MIXT_OK;
    case MIXT_PW_GELU:
        return r->fused & MIXT_FUSED_MATMUL ? fuse_activation(r, n, MIXT_EPILOGUE_GELU) : MIXT_OK;
    case MIXT_PW_GELU_GRAD:
        return r->fused & MIXT_FUSED_MATMUL ? fuse_slope(r, n, instr, MIXT_EPILOGUE_GELU_GRAD) : MIXT_OK;
    case MIXT_PW_RELU_GRAD:
        return r->fused & MIXT_FUSED_RELU ? fuse_slope(r, n, instr, MIXT_EPILOGUE_RELU_GRAD) : MIXT_OK;
    case MIXT_PW_ADD:
        MIXT_TRY(fuse_addend(r, n, n->in[instr->b], n->in[instr->a], &done));
        return done ? MIXT_OK : fuse_addend(r, n, n->in[instr->a], n->in[instr->b], &done);
    default:
        return MIXT_OK;
    }
}

static mixt_status fuse_sums(rewriter *r, mixt__node *p)
{
    if (r->fused & MIXT_FUSED_NORM)
        MIXT_TRY(fuse_totals(r, p));
    return r->fused & MIXT_FUSED_ROW_SUMS && r->keep[p - r->graph->nodes] ? fuse_row_sums(r, p) : MIXT_OK;
}

static mixt_status rewrite(rewriter *r)
{
    for (int64_t i = 0; i < r->graph->node_count; i++) {
        mixt__node *n = &r->graph->nodes[i];
        const mixt__pw_instr *instr = r->keep[i] ? single(r, n) : NULL;
        if (instr)
            MIXT_TRY(fuse_pointwise(r, n, instr));
        else if (r->fused & MIXT_FUSED_BATCH_NORM && n->op == &mixt__op_batch_norm_grad)
            MIXT_TRY(fuse_batch_norm_grad(r, n));
        else if (sums_columns(r, n))
            MIXT_TRY(fuse_sums(r, n));
    }
    return MIXT_OK;
}

mixt_status mixt__pass_epilogues(mixt__graph *graph, unsigned fused)
{
    rewriter r = {.graph = graph, .fused = fused, .uses = mixt__graph_use_counts(graph)};
    r.keep = mixt__alloc((size_t)(graph->node_count + 1) * sizeof *r.keep);
    mixt_status status = r.uses && r.keep ? MIXT_OK : no_memory();
    if (status == MIXT_OK) {
        memset(r.keep, 1, (size_t)graph->node_count * sizeof *r.keep);
        status = rewrite(&r);
    }
    if (status == MIXT_OK)
        mixt__graph_compact(graph, r.keep);
    mixt__free(r.uses);
    mixt__free(r.keep);
    return status;
}
