/* Pointwise fusion: a producer moves down into its consumer when every other reader comes later.
 *
 * The merged node stands where the consumer stood, so nothing is read before it is made. What further readers need of
 * the producer becomes an extra output. Forward nodes are not moved into the backward pass: that would keep their
 * inputs alive. Values inside a group stay in FP32 and are not rounded to their format: closer to the exact result,
 * never further.
 */
#include "passes/passes.h"

#include "graph/op.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

typedef struct fuser {
    mixt__graph *graph;
    int32_t *last_reader; // by value: index of the last node that reads it
    int32_t *first_reader;
    bool *removed; // by node
} fuser;

static bool is_pointwise(const mixt__node *n)
{
    return n->op == &mixt__op_pointwise;
}

static void find_readers(fuser *f)
{
    for (int64_t v = 0; v < f->graph->value_count; v++)
        f->first_reader[v] = f->last_reader[v] = -1;
    for (int64_t i = 0; i < f->graph->node_count; i++) {
        const mixt__node *n = &f->graph->nodes[i];
        for (int k = 0; k < n->in_count && !f->removed[i]; k++) {
            if (f->first_reader[n->in[k]] < 0)
                f->first_reader[n->in[k]] = (int32_t)i;
            f->last_reader[n->in[k]] = (int32_t)i;
        }
    }
}

static bool rounds_by_hand(const mixt__node *n)
{
    return ((const mixt__pointwise_attrs *)n->attrs)->cast_by_hand;
}

/** Whether node p may move into node c. */
static bool may_merge(const fuser *f, int64_t p, int64_t c)
{
    const mixt__graph *graph = f->graph;
    const mixt__node *a = &graph->nodes[p], *b = &graph->nodes[c];
    if (!is_pointwise(a) || f->removed[p] || a->backward != b->backward || rounds_by_hand(a) || rounds_by_hand(b))
        return false;
    if (!mixt__shape_equal(&graph->values[a->out[0]].shape, &graph->values[b->out[0]].shape))
        return false;
    for (int o = 0; o < a->out_count; o++)
        if (f->first_reader[a->out[o]] >= 0 && f->first_reader[a->out[o]] < c)
            return false;
    return true;
}

/** Adds a value to the merged node's inputs if it is not there yet; its position or -1 when full. */
static int add_input(int32_t *in, int *count, int32_t value)
{
    for (int i = 0; i < *count; i++)
        if (in[i] == value)
            return i;
    if (*count == MIXT_PW_MAX_INPUTS)
        return -1;
    in[*count] = value;
    return (*count)++;
}

/* While merging, operands are kept apart by tag: inputs as they are, instruction i as RESULT + i. */
enum { RESULT = 1000 };

typedef struct merged {
    mixt__pointwise_attrs at;
    int32_t in[MIXT_PW_MAX_INPUTS], out[MIXT_PW_MAX_OUTPUTS];
} merged;

/** Appends the instructions of node n; operand(n's operand) → tag in the merged program. */
static bool append_instrs(merged *m, const mixt__node *n, const int *input_tags)
{
    const mixt__pointwise_attrs *at = n->attrs;
    int base = m->at.instr_count;
    if (base + at->instr_count > MIXT_PW_MAX_INSTRS)
        return false;
    for (int i = 0; i < at->instr_count; i++) {
        mixt__pw_instr instr = at->instrs[i];
        int *operands[3] = {&instr.a, &instr.b, &instr.c};
        for (int k = 0; k < 3; k++)
            *operands[k] =
                *operands[k] < at->in_count ? input_tags[*operands[k]] : RESULT + base + *operands[k] - at->in_count;
        m->at.instrs[base + i] = instr;
    }
    m->at.instr_count += at->instr_count;
    return true;
}

static int result_tag(const mixt__node *n, int base, int operand)
{
    const mixt__pointwise_attrs *at = n->attrs;
    return RESULT + base + operand - at->in_count;
}

static bool add_output(merged *m, const mixt__graph *graph, int32_t value, int tag)
{
    if (m->at.out_count == MIXT_PW_MAX_OUTPUTS)
        return false;
    m->out[m->at.out_count] = value;
    m->at.outs[m->at.out_count] = tag;
    m->at.out_dtypes[m->at.out_count++] = graph->values[value].dtype;
    return true;
}

/** Builds the program of p followed by c; false when it would be too large. */
static bool merge_programs(const fuser *f, int64_t p, int64_t c, merged *m)
{
    const mixt__graph *graph = f->graph;
    const mixt__node *a = &graph->nodes[p], *b = &graph->nodes[c];
    const mixt__pointwise_attrs *pa = a->attrs, *pb = b->attrs;
    int tags_a[MIXT_PW_MAX_INPUTS], tags_b[MIXT_PW_MAX_INPUTS];
    for (int i = 0; i < a->in_count; i++)
        if ((tags_a[i] = add_input(m->in, &m->at.in_count, a->in[i])) < 0)
            return false;
    if (!append_instrs(m, a, tags_a))
        return false;
    for (int i = 0; i < b->in_count; i++) {
        tags_b[i] = -1;
        for (int o = 0; o < a->out_count; o++)
            if (b->in[i] == a->out[o])
                tags_b[i] = result_tag(a, 0, pa->outs[o]);
        if (tags_b[i] < 0 && (tags_b[i] = add_input(m->in, &m->at.in_count, b->in[i])) < 0)
            return false;
    }
    int base = m->at.instr_count;
    if (!append_instrs(m, b, tags_b))
        return false;
    for (int o = 0; o < b->out_count; o++)
        if (!add_output(m, graph, b->out[o], result_tag(b, base, pb->outs[o])))
            return false;
    for (int o = 0; o < a->out_count; o++) {
        bool needed = graph->values[a->out[o]].output || f->last_reader[a->out[o]] > c;
        if (needed && !add_output(m, graph, a->out[o], result_tag(a, 0, pa->outs[o])))
            return false;
    }
    return true;
}

/** An operand that is an input reaches outs only through COPY, so every tag in outs is a result. */
static void number_operands(merged *m)
{
    for (int i = 0; i < m->at.instr_count; i++) {
        int *operands[3] = {&m->at.instrs[i].a, &m->at.instrs[i].b, &m->at.instrs[i].c};
        for (int k = 0; k < 3; k++)
            if (*operands[k] >= RESULT)
                *operands[k] += m->at.in_count - RESULT;
    }
    for (int o = 0; o < m->at.out_count; o++)
        m->at.outs[o] += m->at.in_count - RESULT;
}

static mixt_status merge(fuser *f, int64_t p, int64_t c, bool *done)
{
    mixt__graph *graph = f->graph;
    merged m = {.at = {.has_domain = true, .domain = graph->values[graph->nodes[c].out[0]].shape}};
    *done = merge_programs(f, p, c, &m);
    if (!*done)
        return MIXT_OK;
    number_operands(&m);
    mixt__pointwise_attrs *own = mixt__arena_alloc(&graph->arena, sizeof *own);
    int32_t *in = mixt__arena_alloc(&graph->arena, sizeof m.in);
    if (!own || !in)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to fuse pointwise nodes");
    *own = m.at;
    memcpy(in, m.in, sizeof m.in);
    mixt__node *node = &graph->nodes[c];
    node->why = mixt__reason_join(graph, node->op, graph->nodes[p].why, node->why);
    if (!node->why)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to fuse pointwise nodes");
    node->attrs = own;
    node->in = in;
    node->in_count = m.at.in_count;
    node->out_count = m.at.out_count;
    for (int o = 0; o < m.at.out_count; o++) {
        node->out[o] = m.out[o];
        graph->values[m.out[o]].producer = (int32_t)c;
    }
    f->removed[p] = true;
    return MIXT_OK;
}

/** Merges producers into node c until none fits. */
static mixt_status absorb(fuser *f, int64_t c)
{
    for (bool again = true; again;) {
        again = false;
        const mixt__node *n = &f->graph->nodes[c];
        for (int k = 0; k < n->in_count && !again; k++) {
            const mixt__value *v = &f->graph->values[n->in[k]];
            if (v->role != MIXT_ROLE_ACTIVATION || !may_merge(f, v->producer, c))
                continue;
            MIXT_TRY(merge(f, v->producer, c, &again));
            if (again)
                find_readers(f);
        }
    }
    return MIXT_OK;
}

mixt_status mixt__pass_fuse(mixt__graph *graph)
{
    fuser f = {.graph = graph};
    size_t values = (size_t)graph->value_count;
    f.last_reader = mixt__alloc(values * sizeof *f.last_reader);
    f.first_reader = mixt__alloc(values * sizeof *f.first_reader);
    f.removed = mixt__alloc((size_t)(graph->node_count + 1) * sizeof *f.removed);
    mixt_status status = MIXT_OK;
    if (!f.last_reader || !f.first_reader || !f.removed)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to fuse pointwise nodes");
    if (status == MIXT_OK)
        find_readers(&f);
    for (int64_t i = 0; status == MIXT_OK && i < graph->node_count; i++)
        if (is_pointwise(&graph->nodes[i]) && !f.removed[i])
            status = absorb(&f, i);
    if (status == MIXT_OK) {
        for (int64_t i = 0; i < graph->node_count; i++)
            f.removed[i] = !f.removed[i];
        mixt__graph_compact(graph, f.removed);
    }
    mixt__free(f.last_reader);
    mixt__free(f.first_reader);
    mixt__free(f.removed);
    return status;
}
