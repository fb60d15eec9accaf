/* Recurrent layers: gates in mixt's order, (B, T, …) in memory. */
#include "onnx/ops.h"

#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

enum { GATES = 4, STEPS = 4096, PARTS = 64 };

typedef struct cell {
    const char *op;
    int gates;
    int from[GATES]; // gate i is this one of the file's
} cell;

static const cell cells[] = {{"LSTM", 4, {0, 2, 3, 1}}, {"GRU", 3, {1, 0, 2}}, {"RNN", 1, {0}}};

typedef struct layer {
    const cell *cell;
    int64_t hidden, steps, directions;
    mixt_value x, w, r, b; // b: none where id is 0
    mixt_value zeros;      // in place of the state's bias where there is none
    bool relu;
} layer;

/** Rows of one direction, its gates in mixt's order. @param first row within the direction */
static mixt_value gates_of(mixt__import *m, const layer *l, mixt_value from, int64_t direction, int64_t first)
{
    mixt_builder *b = m->b;
    mixt_value parts[GATES];
    int64_t columns = mixt_value_rank(b, from) == 3 ? mixt_value_dim(b, from, 2) : 0;
    int64_t rows = mixt_value_dim(b, from, 1);
    mixt_value own = l->directions > 1 ? mixt_slice(b, from, 0, direction, direction + 1) : from;
    own = mixt__import_reshape(m, own, columns ? 2 : 1, (int64_t[]){rows, columns});
    for (int g = 0; g < l->cell->gates; g++) {
        int64_t at = first + l->cell->from[g] * l->hidden;
        parts[g] = l->hidden == rows ? own : mixt_slice(b, own, 0, at, at + l->hidden);
    }
    return l->cell->gates == 1 ? parts[0] : mixt_concat(b, parts, l->cell->gates, 0);
}

/** The steps of (B, T, …) from the last to the first. */
static mixt_value backwards(mixt_builder *b, mixt_value x, int64_t steps)
{
    mixt_value whole[PARTS], parts[PARTS];
    int count = 0;
    for (int64_t end = steps; end > 0; end -= PARTS) {
        int n = 0;
        for (int64_t t = end; t-- > (end > PARTS ? end - PARTS : 0);)
            parts[n++] = mixt_slice(b, x, 1, t, t + 1);
        whole[count++] = n > 1 ? mixt_concat(b, parts, n, 1) : parts[0];
    }
    return count > 1 ? mixt_concat(b, whole, count, 1) : whole[0];
}

/** Biases of the inputs and of the state as one. @param state receives that of the new gate's product with the state */
static mixt_value biases(mixt__import *m, const layer *l, int64_t direction, mixt_value *state)
{
    int64_t h = l->hidden, rows = l->cell->gates * h;
    mixt_value in = gates_of(m, l, l->b, direction, 0), own = gates_of(m, l, l->b, direction, rows);
    bool gru = l->cell->gates == 3;
    if (!gru)
        return mixt_add(m->b, in, own);
    *state = mixt_slice(m->b, own, 0, 2 * h, rows);
    mixt_value parts[2] = {mixt_add(m->b, mixt_slice(m->b, in, 0, 0, 2 * h), mixt_slice(m->b, own, 0, 0, 2 * h)),
                           mixt_slice(m->b, in, 0, 2 * h, rows)};
    return mixt_concat(m->b, parts, 2, 0);
}

/** A bias of zeros, for a cell that needs one. */
static mixt_status no_bias(mixt__import *m, const char *name, int64_t count, mixt_value *value)
{
    mixt__onnx_recipe none = {.kind = MIXT_ONNX_AS_IS, .initializer = -1};
    mixt__param zero = {.shape = {1, {count}}, .trainable = true, .frozen = true, .constant = true};
    zero.name = mixt__arena_printf(&m->b->graph->arena, "%s.no_bias", name);
    return mixt__import_parameter(m, &none, &zero, value);
}

/** One direction: (B, T, I) → (B, T, H). */
static mixt_status run(mixt__import *m, const layer *l, int64_t direction, bool reverse, mixt_value *states)
{
    static const mixt__op *const ops[] = {&mixt__op_lstm, &mixt__op_gru, &mixt__op_rnn};
    mixt__matmul_attrs product = {.trans_b = true, .bias = l->b.id != 0, .alpha = 1};
    mixt__rnn_attrs relu = {.relu = l->relu};
    int kind = (int)(l->cell - cells);
    mixt_value in[3] = {reverse ? backwards(m->b, l->x, l->steps) : l->x}, bias = {0};
    in[1] = gates_of(m, l, l->w, direction, 0);
    if (product.bias)
        in[2] = biases(m, l, direction, &bias);
    mixt_value gates = mixt__builder_node(m->b, &mixt__op_matmul, NULL, &product, in, product.bias ? 3 : 2);
    mixt_value cell_in[3] = {gates, gates_of(m, l, l->r, direction, 0), bias.id ? bias : l->zeros};
    *states = mixt__builder_node(m->b, ops[kind], NULL, kind == 2 ? &relu : NULL, cell_in, kind == 1 ? 3 : 2);
    if (reverse)
        *states = backwards(m->b, *states, l->steps);
    return mixt__import_check(m);
}

static bool is_zero(mixt__import *m, mixt__item *item)
{
    const double *x = item ? mixt__item_numbers(m, item) : NULL;
    int64_t count = item ? mixt__item_count(item) : 0;
    for (int64_t i = 0; i < count; i++)
        if (!x || x[i] != 0)
            return false;
    return true;
}

static bool is_used(const mixt__import *m, const mixt__onnx_node *n, int k)
{
    return k < n->out_count && n->out[k] && m->f->values[n->out[k]].uses;
}

static mixt_status check(mixt__import *m, const mixt__onnx_node *n, const layer *l)
{
    if (mixt__onnx_int(n, "layout", 0) || mixt__onnx_attribute_of(n, "clip").type)
        return mixt__import_refuse(m, "layout=1, or a clip of its gates");
    if (mixt__import_in(m, n, 4) || !is_zero(m, mixt__import_in(m, n, 5)) || !is_zero(m, mixt__import_in(m, n, 6)) ||
        mixt__import_in(m, n, 7))
        return mixt__import_refuse(m, "lengths, a state to begin with other than zeros, or peepholes");
    if (l->cell->gates == 3 && !mixt__onnx_int(n, "linear_before_reset", 0))
        return mixt__import_refuse(m, "linear_before_reset=0: mixt's GRU resets behind the product, as PyTorch's");
    if (mixt__onnx_attribute_of(n, "activations").type && l->cell->gates > 1)
        return mixt__import_refuse(m, "activations of its own");
    if (is_used(m, n, 2))
        return mixt__import_refuse(m, "the last cell state as an output");
    if (l->steps > STEPS || l->directions > 2)
        return mixt__import_refuse(m, "more than %d steps", STEPS);
    return MIXT_OK;
}

/** Y (T, directions, B, H), and the last states (directions, B, H). */
static void give(mixt__import *m, const mixt__onnx_node *n, const layer *l, const mixt_value *states, bool reverse)
{
    static const int order[4] = {2, 0, 1, 3}, last_order[3] = {1, 0, 2};
    mixt_value parts[2], ends[2];
    int64_t batch = mixt_value_dim(m->b, states[0], 0);
    for (int64_t d = 0; d < l->directions; d++) {
        bool first = d == 1 || reverse; // its last state is that of the first step
        parts[d] = mixt_reshape(m->b, states[d], 4, (int64_t[]){batch, l->steps, 1, l->hidden});
        ends[d] = mixt_slice(m->b, states[d], 1, first ? 0 : l->steps - 1, first ? 1 : l->steps);
    }
    mixt_value y = l->directions > 1 ? mixt_concat(m->b, parts, 2, 2) : parts[0];
    mixt_value end = l->directions > 1 && is_used(m, n, 1) ? mixt_concat(m->b, ends, 2, 1) : ends[0];
    if (n->out_count > 0 && n->out[0])
        mixt__item_give_in(m, mixt__import_out(m, n, 0), MIXT_ONNX_FLOAT, y, order);
    if (is_used(m, n, 1))
        mixt__item_give_in(m, mixt__import_out(m, n, 1), MIXT_ONNX_FLOAT, end, last_order);
}

mixt_status mixt__onnx_recurrent(mixt__import *m, const mixt__onnx_node *n)
{
    static const int order[3] = {1, 0, 2};
    mixt__item *x = mixt__import_in(m, n, 0), *w = mixt__import_in(m, n, 1), *r = mixt__import_in(m, n, 2),
               *b = mixt__import_in(m, n, 3);
    layer l = {.cell = cells};
    mixt_value states[2];
    while (!mixt__wire_is(n->op, l.cell->op))
        l.cell++;
    if (!x || !w || !r || x->rank != 3 || w->rank != 3 || r->rank != 3 || (b && b->rank != 2))
        return mixt__import_refuse(m, "it needs x, W and R of three dimensions");
    l.hidden = r->dims[2];
    l.steps = x->dims[0];
    l.directions = w->dims[0];
    l.relu = mixt__onnx_texts_are(n, "activations", "Relu");
    bool reverse = mixt__onnx_text_is(n, "direction", "reverse");
    if (w->dims[1] != l.cell->gates * l.hidden || r->dims[1] != w->dims[1] || r->dims[0] != l.directions ||
        w->dims[2] != x->dims[2] || (b && (b->dims[1] != 2 * w->dims[1] || b->dims[0] != l.directions)))
        return mixt__import_refuse(m, "weights that do not fit its hidden_size");
    MIXT_TRY(check(m, n, &l));
    const char *name = mixt__import_layer(m, n, w);
    mixt_scope_push(m->b, name);
    MIXT_TRY(mixt__item_full(m, x, order, &l.x));
    mixt_scope_pop(m->b); // parameters have the file's names alone
    MIXT_TRY(mixt__item_full(m, w, NULL, &l.w));
    MIXT_TRY(mixt__item_full(m, r, NULL, &l.r));
    if (b)
        MIXT_TRY(mixt__item_full(m, b, NULL, &l.b));
    if (l.cell->gates == 3 && !b)
        MIXT_TRY(no_bias(m, name, l.hidden, &l.zeros));
    mixt_scope_push(m->b, name);
    for (int64_t d = 0; d < l.directions; d++)
        MIXT_TRY(run(m, &l, d, reverse || d == 1, &states[d]));
    give(m, n, &l, states, reverse);
    mixt_scope_pop(m->b);
    return MIXT_OK;
}
