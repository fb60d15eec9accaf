/* Recurrent layers as ONNX nodes: the product with the inputs and the cell are one there, with gates in another order.
 */
#include "onnx/export.h"

#include "base/status.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

enum { GATES = 4 };

typedef struct cell {
    const mixt__op *op;
    const char *name;
    int gates;
    int from[GATES]; // gate i of ONNX is this one of mixt
} cell;

static const cell cells[] = {
    {&mixt__op_lstm, "LSTM", 4, {0, 3, 1, 2}}, {&mixt__op_gru, "GRU", 3, {1, 0, 2}}, {&mixt__op_rnn, "RNN", 1, {0}}};

static const cell *cell_of(const mixt__op *op)
{
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        if (cells[i].op == op)
            return &cells[i];
    return NULL;
}

static bool is_param(const mixt__export *m, int32_t value)
{
    return m->g->values[value].role == MIXT_ROLE_PARAM;
}

/** The linear layer that makes a cell's gates, if it does nothing else. */
static const mixt__node *product_of(const mixt__export *m, const mixt__node *n)
{
    int32_t gates = n->in[0], users = 0, maker = m->g->values[gates].producer;
    const mixt__node *product = maker >= 0 ? &m->g->nodes[maker] : NULL;
    if (!product || product->op != &mixt__op_matmul || gates == m->g->logits)
        return NULL;
    const mixt__matmul_attrs *at = product->attrs;
    for (int64_t i = 0; i < m->g->node_count; i++)
        for (int k = 0; k < m->g->nodes[i].in_count; k++)
            users += m->g->nodes[i].in[k] == gates;
    bool plain = !at->trans_a && at->trans_b && at->alpha == 1 && is_param(m, product->in[1]) &&
                 (!at->bias || is_param(m, product->in[2]));
    return users == 1 && plain && is_param(m, n->in[1]) ? product : NULL;
}

bool mixt__export_is_in_cell(const mixt__export *m, const mixt__node *product)
{
    for (const mixt__node *n = product + 1; n < m->g->nodes + m->g->node_count; n++)
        if (cell_of(n->op) && n->in[0] == product->out[0])
            return product_of(m, n) == product;
    return false;
}

/** Numbers of a parameter with its gates in ONNX's order. @param to as many as it has */
static void read_gates(mixt__export *m, int32_t value, const cell *c, float *to)
{
    int32_t index = m->g->values[value].param;
    int64_t part = m->g->params[index].count / c->gates;
    float *from = mixt__alloc_uninit((size_t)m->g->params[index].count * sizeof *from + 1);
    mixt_status status = from ? m->model->values(m->model->user, index, from)
                              : mixt__fail(MIXT_ERROR_MEMORY, "no memory to write the ONNX file");
    for (int g = 0; status == MIXT_OK && g < c->gates; g++)
        memcpy(to + g * part, from + c->from[g] * part, (size_t)part * sizeof *to);
    if (m->status == MIXT_OK)
        m->status = status;
    mixt__free(from);
}

/** A weight (gates · H, I) as (1, gates · H, I). */
static const char *put_weight(mixt__export *m, int32_t value, const cell *c)
{
    const mixt__param *p = &m->g->params[m->g->values[value].param];
    float *numbers = mixt__arena_alloc(&m->arena, (size_t)p->count * sizeof *numbers + 1);
    if (!numbers) {
        mixt__export_refuse(m, "no memory for its weights");
        return "";
    }
    read_gates(m, value, c, numbers);
    return mixt__export_named(m, p->name, 3, (int64_t[]){1, p->shape.dims[0], p->shape.dims[1]}, numbers);
}

/** Biases of the inputs, then those of the state, (1, 2 · gates · H); the latter are 0 but for the new gate of a GRU.
 */
static const char *put_biases(mixt__export *m, const mixt__node *n, const mixt__node *product, const cell *c,
                              int64_t hidden)
{
    const mixt__matmul_attrs *at = product->attrs;
    int64_t rows = c->gates * hidden;
    float *numbers = mixt__arena_alloc(&m->arena, (size_t)(2 * rows) * sizeof *numbers); // zeros
    if (!numbers) {
        mixt__export_refuse(m, "no memory for its biases");
        return "";
    }
    if (at->bias)
        read_gates(m, product->in[2], c, numbers);
    if (n->in_count > 2 && m->status == MIXT_OK)
        m->status = m->model->values(m->model->user, m->g->values[n->in[2]].param, numbers + 2 * rows - hidden);
    const char *name = mixt__arena_printf(&m->arena, "%s.bias", n->layer);
    return mixt__export_named(m, name ? name : "bias", 2, (int64_t[]){1, 2 * rows}, numbers);
}

static const char *turn(mixt__export *m, const char *x)
{
    return mixt__export_node(m, "Transpose", MIXT_TAKES(x),
                             MIXT_GIVES(MIXT_GIVE_INTS("perm", ((const int64_t[]){1, 0, 2}), 3)));
}

void mixt__onnx_put_recurrent(mixt__export *m, const mixt__node *n)
{
    const cell *c = cell_of(n->op);
    const mixt__node *product = product_of(m, n);
    int64_t hidden = m->g->values[n->out[0]].shape.dims[2];
    if (!product || (n->in_count > 2 && !is_param(m, n->in[2]))) {
        mixt__export_refuse(m, "%s whose weights or gates are computed is not written yet", n->op->name);
        return;
    }
    bool relu = n->op == &mixt__op_rnn && ((const mixt__rnn_attrs *)n->attrs)->relu;
    mixt__onnx_give gives[4] = {MIXT_GIVE_INT("hidden_size", hidden)};
    if (n->op == &mixt__op_gru)
        gives[1] = MIXT_GIVE_INT("linear_before_reset", 1);
    else if (relu)
        gives[1] = (mixt__onnx_give){.name = "activations", .type = MIXT_ONNX_IS_STRINGS, .s = "Relu"};
    const char *x = turn(m, mixt__export_value(m, product->in[0], MIXT_ONNX_NATURAL));
    const char *v = mixt__export_node(m, c->name,
                                      MIXT_TAKES(x, put_weight(m, product->in[1], c), put_weight(m, n->in[1], c),
                                                 put_biases(m, n, product, c, hidden)),
                                      gives);
    v = mixt__export_node(m, "Squeeze", MIXT_TAKES(v, mixt__export_ints(m, (int64_t[]){1}, 1)), NULL);
    mixt__export_give(m, 0, MIXT_ONNX_NATURAL, turn(m, v));
}
