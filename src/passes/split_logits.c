/* Logits in parts: those of a large vocabulary are the largest tensor of a language model, and nobody needs all of them
 * at once.
 *
 *   logits = x·W;  grad = cross_entropy_step(logits);  grad_x = grad·Wᵀ;  grad_W += gradᵀ·x
 *
 * becomes the same four for one part of the batch after the other. Each part's logits die before the next part's are
 * made; losses and counts are summed, grad_x is written part by part, and all parts add to grad_W. Every part divides
 * by the number of targets of the whole batch, so the result is the one of the whole up to the order of sums. Where the
 * backward pass has a format of its own, casts of grad, x and W stand before its products: they are cut too. Where a
 * student learns from a teacher (kl_step), the product that makes the teacher's scores is a fifth node of each part.
 */
#include "passes/passes.h"

#include "graph/op.h"
#include "num/num.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

/** The nodes of a head, by index. */
typedef struct head {
    int64_t product, step, grad_x, flat_grad, flat_x, grad_w;
    int64_t cast_grad, cast_x, cast_w; // for the backward products; -1: they take the value as it is
    int32_t x, w, target, seed;        // values
    int64_t teacher;                   // the product that makes a teacher's scores; -1: there is none
    int32_t teacher_x, teacher_w;
    int64_t batch; // size of the dimension that is cut
} head;

/** The only node that reads a value; -1: none or several. */
static int64_t only_reader(const mixt__graph *graph, int32_t value, int64_t except)
{
    int64_t found = -1;
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].in_count; k++)
            if (graph->nodes[i].in[k] == value && i != except) {
                if (found >= 0)
                    return -1;
                found = i;
            }
    return found;
}

static const mixt__matmul_attrs *plain_product(const mixt__graph *graph, int64_t index)
{
    if (index < 0 || graph->nodes[index].op != &mixt__op_matmul)
        return NULL;
    const mixt__matmul_attrs *at = graph->nodes[index].attrs;
    return at->epilogue == MIXT_EPILOGUE_NONE && !at->addend && !at->bias ? at : NULL;
}

/** The reader of `value` that is a reshape (or not), when it has two readers of which one is. */
static int64_t reader(const mixt__graph *graph, int32_t value, bool reshape)
{
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int k = 0; k < graph->nodes[i].in_count; k++)
            if (graph->nodes[i].in[k] == value && (graph->nodes[i].op == &mixt__op_reshape) == reshape)
                return only_reader(graph, value, i) >= 0 ? i : -1;
    return -1;
}

static bool is_cast(const mixt__node *n)
{
    const mixt__pointwise_attrs *at = n->attrs;
    return n->op == &mixt__op_pointwise && at->instr_count == 1 && at->instrs[0].code == MIXT_PW_COPY;
}

/** The cast that makes a value from `source`, which may be another format of the same parameter; -1: none. */
static int64_t cast_between(const mixt__graph *graph, int32_t source, int32_t value)
{
    int64_t producer = graph->values[value].producer;
    if (producer < 0 || !is_cast(&graph->nodes[producer]))
        return -1;
    int32_t from = graph->nodes[producer].in[0], param = graph->values[source].param;
    return from == source || (param >= 0 && graph->values[from].param == param) ? producer : -1;
}

/** Finds what the backward products read: x and W themselves, or casts of them. */
static bool find_casts(const mixt__graph *graph, head *h)
{
    int32_t x = graph->nodes[h->flat_x].in[0], w = graph->nodes[h->grad_x].in[1], param = graph->values[h->w].param;
    h->cast_x = cast_between(graph, h->x, x);
    h->cast_w = cast_between(graph, h->w, w);
    bool same_w = w == h->w || (param >= 0 && graph->values[w].param == param);
    return (x == h->x || h->cast_x >= 0) && (same_w || h->cast_w >= 0);
}

/** Whether the teacher's scores, where a step has some, are made by a product that can be cut as well. */
static bool find_teacher(const mixt__graph *graph, const mixt__node *s, head *h)
{
    h->teacher = -1;
    if (s->op != &mixt__op_kl_step)
        return s->in_count == 3;
    h->teacher = graph->values[s->in[1]].producer;
    if (s->in_count != 4 || !plain_product(graph, h->teacher) || only_reader(graph, s->in[1], -1) != h->step)
        return false;
    const mixt__node *product = &graph->nodes[h->teacher];
    h->teacher_x = product->in[0];
    h->teacher_w = product->in[1];
    const mixt__shape *x = &graph->values[h->teacher_x].shape;
    return x->rank >= 3 && x->dims[0] == graph->values[s->in[0]].shape.dims[0];
}

/** Whether node `step` ends a head of the shape above. */
static bool find_head(const mixt__graph *graph, int64_t step, head *h)
{
    const mixt__node *s = &graph->nodes[step];
    *h = (head){.step = step, .product = graph->values[s->in[0]].producer, .seed = s->in[2]};
    if (!find_teacher(graph, s, h) || !plain_product(graph, h->product) || only_reader(graph, s->in[0], -1) != step)
        return false;
    h->target = s->in[h->teacher < 0 ? 1 : 3];
    const mixt__node *product = &graph->nodes[h->product];
    h->x = product->in[0];
    h->w = product->in[1];
    h->cast_grad = only_reader(graph, s->out[0], -1);
    if (h->cast_grad >= 0 && !is_cast(&graph->nodes[h->cast_grad]))
        return false;
    int32_t grad = h->cast_grad >= 0 ? graph->nodes[h->cast_grad].out[0] : s->out[0];
    h->grad_x = reader(graph, grad, false);
    h->flat_grad = reader(graph, grad, true);
    const mixt__matmul_attrs *data = plain_product(graph, h->grad_x);
    if (!data || h->flat_grad < 0 || graph->nodes[h->grad_x].in[0] != grad)
        return false;
    h->grad_w = only_reader(graph, graph->nodes[h->flat_grad].out[0], -1);
    const mixt__matmul_attrs *weight = plain_product(graph, h->grad_w);
    const mixt__node *w = &graph->nodes[h->grad_w];
    if (!weight || !weight->trans_a || w->in[0] != graph->nodes[h->flat_grad].out[0] ||
        graph->values[w->out[0]].role != MIXT_ROLE_GRAD)
        return false;
    h->flat_x = graph->values[w->in[1]].producer;
    if (h->flat_x < 0 || graph->nodes[h->flat_x].op != &mixt__op_reshape || !find_casts(graph, h))
        return false;
    h->batch = graph->values[h->x].shape.dims[0];
    return graph->values[h->x].shape.rank >= 3 && graph->values[h->target].shape.dims[0] == h->batch;
}

/* ---- emitting ---- */

/** Appends a node that stands in for node `like`; its outputs in `out`. */
static mixt_status emit(mixt__graph *graph, int64_t like, const mixt__op *op, const void *attrs, const int32_t *in,
                        int in_count, const int32_t **out)
{
    int64_t index;
    MIXT_TRY(mixt__graph_node(graph, op, graph->nodes[like].layer, attrs, in, in_count, &index));
    bool same = graph->nodes[like].op == op;
    graph->nodes[index].backward = graph->nodes[like].backward;
    graph->nodes[index].rule = same ? graph->nodes[like].rule : -1;
    graph->nodes[index].why = same ? graph->nodes[like].why : "cuts the logits into parts of the batch";
    graph->nodes[index].arithmetic = mixt__node_arithmetic(graph, &graph->nodes[index], graph->nodes[like].arithmetic);
    graph->nodes[index].saves = graph->nodes[like].saves;
    graph->nodes[index].saves_why = graph->nodes[like].saves_why;
    *out = graph->nodes[index].out;
    return MIXT_OK;
}

static mixt_status emit_slice(mixt__graph *graph, int64_t like, int32_t value, int64_t begin, int64_t end, int32_t *out)
{
    mixt__slice_attrs at = {.axis = 0, .begin = begin, .end = end, .full = graph->values[value].shape.dims[0]};
    const int32_t *made;
    MIXT_TRY(emit(graph, like, &mixt__op_slice, &at, &value, 1, &made));
    *out = made[0];
    return MIXT_OK;
}

static mixt_status emit_rows(mixt__graph *graph, int64_t like, int32_t value, int32_t *out)
{
    const mixt__shape *s = &graph->values[value].shape;
    int64_t columns = s->dims[s->rank - 1];
    mixt__reshape_attrs at = {.shape = {2, {mixt__shape_count(s) / columns, columns}}};
    const int32_t *made;
    MIXT_TRY(emit(graph, like, &mixt__op_reshape, &at, &value, 1, &made));
    *out = made[0];
    return MIXT_OK;
}

/** The value through a cast like the given one; the value itself without one. */
static mixt_status emit_cast(mixt__graph *graph, int64_t like, int32_t value, int32_t *out)
{
    const int32_t *made = &value;
    if (like >= 0)
        MIXT_TRY(emit(graph, like, &mixt__op_pointwise, graph->nodes[like].attrs, &value, 1, &made));
    *out = made[0];
    return MIXT_OK;
}

/** *sum += value; the first value is the sum itself. */
static mixt_status emit_sum(mixt__graph *graph, int64_t like, int32_t *sum, int32_t value)
{
    mixt__pointwise_attrs add = {.in_count = 2, .instr_count = 1, .out_count = 1, .outs = {2}};
    add.instrs[0] = (mixt__pw_instr){.code = MIXT_PW_ADD, .a = 0, .b = 1};
    add.out_dtypes[0] = MIXT_DTYPE_FP32;
    const int32_t *made;
    if (!*sum) {
        *sum = value;
        return MIXT_OK;
    }
    MIXT_TRY(emit(graph, like, &mixt__op_pointwise, &add, (int32_t[]){*sum, value}, 2, &made));
    *sum = made[0];
    return MIXT_OK;
}

/** The loss of a part and its gradient, from the part's logits and targets; its outputs in `made`. */
static mixt_status emit_step(mixt__graph *graph, const head *h, int32_t logits, int32_t target, int64_t begin,
                             int64_t end, const int32_t **made)
{
    mixt__node step = graph->nodes[h->step];
    int32_t x;
    const int32_t *scores;
    if (h->teacher < 0)
        return emit(graph, h->step, step.op, step.attrs, (int32_t[]){logits, target, h->seed, h->target}, 4, made);
    MIXT_TRY(emit_slice(graph, h->teacher, h->teacher_x, begin, end, &x));
    MIXT_TRY(emit(graph, h->teacher, &mixt__op_matmul, graph->nodes[h->teacher].attrs, (int32_t[]){x, h->teacher_w}, 2,
                  &scores));
    return emit(graph, h->step, step.op, step.attrs, (int32_t[]){logits, scores[0], h->seed, target, h->target}, 5,
                made);
}

/** One part of the head, whose backward pass reads the weight as `w_back`; its gradient of x in *grad_x, its loss and
 *  metrics added to the sums. */
static mixt_status emit_part(mixt__graph *graph, const head *h, int32_t w_back, int64_t begin, int64_t end,
                             int32_t *grad_x, int32_t sums[2])
{
    int32_t x, target, flat_x, flat_grad, grad;
    const int32_t *logits, *made, *unused;
    MIXT_TRY(emit_slice(graph, h->product, h->x, begin, end, &x));
    MIXT_TRY(emit_slice(graph, h->product, h->target, begin, end, &target));
    MIXT_TRY(
        emit(graph, h->product, &mixt__op_matmul, graph->nodes[h->product].attrs, (int32_t[]){x, h->w}, 2, &logits));
    MIXT_TRY(emit_step(graph, h, logits[0], target, begin, end, &made));
    MIXT_TRY(emit_sum(graph, h->step, &sums[0], made[1]));
    MIXT_TRY(emit_sum(graph, h->step, &sums[1], made[2]));
    MIXT_TRY(emit_cast(graph, h->cast_grad, made[0], &grad));
    MIXT_TRY(emit_cast(graph, h->cast_x, x, &x));
    MIXT_TRY(emit_rows(graph, h->flat_x, x, &flat_x));
    MIXT_TRY(emit_rows(graph, h->flat_grad, grad, &flat_grad));
    MIXT_TRY(emit(graph, h->grad_w, &mixt__op_matmul, graph->nodes[h->grad_w].attrs, (int32_t[]){flat_grad, flat_x}, 2,
                  &unused));
    mixt__node *w = &graph->nodes[graph->node_count - 1];
    w->out[0] = graph->nodes[h->grad_w].out[0];
    w->accumulates = begin ? 1u : graph->nodes[h->grad_w].accumulates;
    MIXT_TRY(
        emit(graph, h->grad_x, &mixt__op_matmul, graph->nodes[h->grad_x].attrs, (int32_t[]){grad, w_back}, 2, &made));
    *grad_x = made[0];
    return MIXT_OK;
}

/** The newest node makes `value` from now on. */
static void stand_in(mixt__graph *graph, int32_t made, int32_t value)
{
    for (int64_t i = graph->node_count - 1; i >= 0; i--)
        for (int o = 0; o < graph->nodes[i].out_count; o++)
            if (graph->nodes[i].out[o] == made) {
                graph->nodes[i].out[o] = value;
                return;
            }
}

/** The new nodes, which stand behind `count` old ones, move to the place of the loss; the old head goes. */
static mixt_status reorder(mixt__graph *graph, const head *h, int64_t count)
{
    int64_t made = graph->node_count - count;
    mixt__node *order = mixt__alloc((size_t)graph->node_count * sizeof *order);
    bool *keep = mixt__alloc((size_t)graph->node_count * sizeof *keep);
    if (order && keep) {
        memcpy(order, graph->nodes, (size_t)h->step * sizeof *order);
        memcpy(order + h->step, graph->nodes + count, (size_t)made * sizeof *order);
        memcpy(order + h->step + made, graph->nodes + h->step, (size_t)(count - h->step) * sizeof *order);
        bool own_x = h->cast_x >= 0 && only_reader(graph, graph->nodes[h->cast_x].out[0], -1) == h->flat_x;
        bool own_w = h->cast_w >= 0 && only_reader(graph, graph->nodes[h->cast_w].out[0], -1) == h->grad_x;
        const int64_t gone[] = {h->product,
                                h->teacher,
                                h->step,
                                h->grad_x,
                                h->flat_grad,
                                h->grad_w,
                                h->cast_grad,
                                own_x ? h->cast_x : -1,
                                own_x ? h->flat_x : -1,
                                own_w ? h->cast_w : -1};
        memset(keep, 1, (size_t)graph->node_count * sizeof *keep);
        for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
            if (gone[i] >= 0)
                keep[gone[i] < h->step ? gone[i] : gone[i] + made] = false;
        memcpy(graph->nodes, order, (size_t)graph->node_count * sizeof *order);
        mixt__graph_compact(graph, keep);
    }
    mixt_status status = order && keep ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to cut the output head");
    mixt__free(order);
    mixt__free(keep);
    return status;
}

enum { PARTS_MAX = 64 };

static mixt_status cut(mixt__graph *graph, const head *h, int64_t parts)
{
    int64_t count = graph->node_count, size = h->batch / parts;
    int32_t grads[PARTS_MAX], sums[2] = {0};
    mixt__concat_attrs join = {.axis = 0};
    const int32_t *joined;
    const mixt__node step = graph->nodes[h->step];
    int32_t w_back = graph->nodes[h->grad_x].in[1];
    if (h->cast_w >= 0)
        MIXT_TRY(emit_cast(graph, h->cast_w, graph->nodes[h->cast_w].in[0], &w_back));
    for (int64_t p = 0; p < parts; p++)
        MIXT_TRY(emit_part(graph, h, w_back, p * size, (p + 1) * size, &grads[p], sums));
    stand_in(graph, sums[0], step.out[1]);
    stand_in(graph, sums[1], step.out[2]);
    MIXT_TRY(emit(graph, h->grad_x, &mixt__op_concat, &join, grads, (int)parts, &joined));
    stand_in(graph, joined[0], graph->nodes[h->grad_x].out[0]);
    return reorder(graph, h, count);
}

/** The fewest parts that divide the batch and leave each part's logits within the limit; 1: nothing to do. */
static int64_t parts_for(int64_t batch, size_t bytes, size_t limit)
{
    for (int64_t parts = 1; parts <= batch && parts <= PARTS_MAX; parts++)
        if (batch % parts == 0 && bytes / (size_t)parts <= limit)
            return parts;
    return 1;
}

mixt_status mixt__pass_split_logits(mixt__graph *graph, size_t limit)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        head h;
        const mixt__op *op = graph->nodes[i].op;
        if ((op != &mixt__op_cross_entropy_step && op != &mixt__op_kl_step) || !find_head(graph, i, &h))
            continue;
        const mixt__value *logits = &graph->values[graph->nodes[i].in[0]],
                          *scores = &graph->values[graph->nodes[i].in[1]];
        size_t bytes = (size_t)mixt__shape_count(&logits->shape) * mixt_dtype_size(logits->dtype);
        if (h.teacher >= 0)
            bytes += (size_t)mixt__shape_count(&scores->shape) * mixt_dtype_size(scores->dtype);
        int64_t parts = parts_for(h.batch, bytes, limit);
        return parts > 1 ? cut(graph, &h, parts) : MIXT_OK;
    }
    return MIXT_OK;
}
