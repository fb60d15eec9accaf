/* Products of matrices: linear layers where one factor is a weight. */
#include "onnx/ops.h"

#include "ops/attrs.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

int64_t mixt__onnx_head(const mixt__import *m, const mixt__onnx_node *n, int64_t outputs)
{
    return m->onnx->head == n - m->f->nodes ? m->onnx->options.head : outputs;
}

mixt_status mixt__onnx_weight(mixt__import *m, const mixt__onnx_node *n, mixt__item *item, const int *order, int axis,
                              bool decay, mixt_value *value)
{
    if (m->onnx->head != n - m->f->nodes)
        return mixt__item_parameter(m, item, order, decay, value);
    if (item->kind != MIXT_ITEM_PARAMETER)
        return mixt__import_refuse(m, "a new last layer in place of one whose weight is not a parameter");
    mixt__onnx_recipe none = {.kind = MIXT_ONNX_AS_IS, .initializer = -1}; // drawn
    mixt__param p = {.shape = {.rank = item->rank}, .trainable = true, .decay = decay, .init = MIXT_INIT_UNIFORM};
    int64_t inputs = 1;
    for (int i = 0; i < item->rank; i++) {
        int at = order ? order[i] : i;
        p.shape.dims[i] = at == axis ? m->onnx->options.head : item->dims[at];
        inputs *= at == axis ? 1 : item->dims[at];
    }
    p.init = item->rank > 1 ? MIXT_INIT_UNIFORM : MIXT_INIT_ZERO;
    p.init_scale = 1.0f / sqrtf((float)inputs);
    p.name = mixt__import_name(m, m->f->values[item->owner].name);
    return mixt__import_parameter(m, &none, &p, value);
}

/** A vector of parameters that is added to what a node makes, and by nothing else: its bias. */
static mixt__item *bias_behind(mixt__import *m, const mixt__onnx_node *n, int64_t outputs, const mixt__onnx_node **add)
{
    *add = mixt__import_only_user(m, n->out[0], "Add");
    if (!*add || (*add)->in_count != 2)
        return NULL;
    mixt__item *bias = mixt__import_in(m, *add, (*add)->in[0] == n->out[0] ? 1 : 0);
    return mixt__item_is(bias, MIXT_ITEM_PARAMETER) && bias->rank == 1 && bias->dims[0] == outputs ? bias : NULL;
}

/** x (…, K) times a weight, whose dimensions are (K, outputs), with or without a bias.
 *  @param gives the node whose output it is */
static mixt_status linear(mixt__import *m, const mixt__onnx_node *n, mixt__item *x, mixt__item *weight,
                          mixt__item *bias, const mixt__onnx_node *gives)
{
    static const int rows[2] = {1, 0};
    mixt__matmul_attrs at = {.trans_b = true, .bias = bias != NULL, .alpha = 1};
    mixt_value in[3], v;
    mixt__item from = *x;
    int natural[MIXT_ONNX_RANK];
    for (int i = 0; i < MIXT_ONNX_RANK; i++)
        natural[i] = i;
    bool last = from.kind == MIXT_ITEM_COMPUTED && from.order[from.rank - 1] == from.rank - 1;
    const int *order = last ? from.order : natural;
    const char *layer = mixt__import_layer(m, n, weight);
    mixt_scope_push(m->b, layer);
    MIXT_TRY(mixt__item_full(m, x, order, &in[0]));
    mixt_scope_pop(m->b);
    MIXT_TRY(mixt__onnx_weight(m, n, weight, rows, 1, true, &in[1]));
    if (bias)
        MIXT_TRY(mixt__onnx_weight(m, n, bias, NULL, 0, false, &in[2]));
    v = mixt__builder_node(m->b, &mixt__op_matmul, layer, &at, in, bias ? 3 : 2);
    mixt__item_give_in(m, mixt__import_out(m, gives, 0), from.type, v, order);
    return MIXT_OK;
}

/** Of two computed stacks of matrices. */
static mixt_status product(mixt__import *m, const mixt__onnx_node *n, mixt__item *x, mixt__item *y)
{
    int rank = x->rank > y->rank ? x->rank : y->rank;
    mixt_matmul_options o = MIXT_OPTIONS(mixt_matmul_options);
    mixt_value v[2];
    mixt__item *out = mixt__import_out(m, n, 0);
    mixt__onnx_type type = x->type;
    if (x->rank < 2 || y->rank < 2)
        return mixt__import_refuse(m, "a product with a vector");
    if (y->rank == 2 && x->rank > 2) { // one matrix for all
        MIXT_TRY(mixt__item_full(m, x, NULL, &v[0]));
        MIXT_TRY(mixt__item_full(m, y, NULL, &v[1]));
        mixt__item_give(m, out, type, mixt_matmul_with(m->b, v[0], v[1], &o));
        return MIXT_OK;
    }
    for (int i = 0; i < rank - 2; i++) {
        int64_t a = i + x->rank - rank >= 0 ? x->dims[i + x->rank - rank] : 1,
                b = i + y->rank - rank >= 0 ? y->dims[i + y->rank - rank] : 1;
        if (a != b)
            return mixt__import_refuse(m, "stacks of matrices of different sizes");
    }
    // the last two of the second factor may lie the other way round: no transpose is made then
    int order[MIXT_ONNX_RANK];
    for (int i = 0; i < rank; i++)
        order[i] = i;
    MIXT_TRY(mixt__item_compute(m, y));
    bool turned = y->rank == rank && y->order[rank - 1] == rank - 2;
    if (turned) {
        order[rank - 1] = rank - 2;
        order[rank - 2] = rank - 1;
        o.trans_b = true;
    }
    MIXT_TRY(mixt__item_full(m, x, NULL, &v[0]));
    MIXT_TRY(mixt__item_full(m, y, order, &v[1]));
    mixt__item_give(m, out, type, mixt_matmul_with(m->b, v[0], v[1], &o));
    return MIXT_OK;
}

mixt_status mixt__onnx_matmul(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *y = mixt__import_in(m, n, 1);
    const mixt__onnx_node *add;
    if (!x || !y)
        return mixt__import_refuse(m, "it needs two inputs");
    if (y->kind != MIXT_ITEM_PARAMETER || y->rank != 2 || x->rank < 2)
        return product(m, n, x, y);
    mixt__item *bias = bias_behind(m, n, y->dims[1], &add);
    if (!bias)
        return linear(m, n, x, y, NULL, n);
    mixt__import_done(m, add);
    return linear(m, n, x, y, bias, add);
}

mixt_status mixt__onnx_gemm(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *y = mixt__import_in(m, n, 1), *c = mixt__import_in(m, n, 2);
    double alpha = mixt__onnx_float(n, "alpha", 1), beta = mixt__onnx_float(n, "beta", 1);
    if (!x || !y || x->rank != 2 || y->rank != 2)
        return mixt__import_refuse(m, "it needs two matrices");
    mixt__item a = *x, w = *y;
    if (mixt__onnx_int(n, "transA", 0)) {
        MIXT_TRY(mixt__item_compute(m, x));
        a = *x;
        a.dims[0] = x->dims[1];
        a.dims[1] = x->dims[0];
        a.order[0] = 1 - x->order[0];
        a.order[1] = 1 - x->order[1];
    }
    if (mixt__onnx_int(n, "transB", 0)) {
        if (w.kind == MIXT_ITEM_CONSTANT)
            MIXT_TRY(mixt__item_compute(m, y));
        w = *y;
        w.dims[0] = y->dims[1];
        w.dims[1] = y->dims[0];
        w.order[0] = 1 - y->order[0];
        w.order[1] = 1 - y->order[1];
    }
    bool plain =
        alpha == 1 && (!c || (beta == 1 && c->kind == MIXT_ITEM_PARAMETER && c->rank == 1 && c->dims[0] == w.dims[1]));
    if (plain && w.kind == MIXT_ITEM_PARAMETER)
        return linear(m, n, &a, &w, c, n);
    mixt__item *out = mixt__import_out(m, n, 0);
    mixt_value v, added;
    mixt__import_enter(m, n, NULL);
    MIXT_TRY(product(m, n, &a, &w));
    v = out->value;
    if (alpha != 1)
        v = mixt_affine(m->b, v, (float)alpha, 0);
    if (c) {
        MIXT_TRY(mixt__item_value(m, c, 2, NULL, &added));
        v = mixt_add(m->b, v, beta == 1 ? added : mixt_affine(m->b, added, (float)beta, 0));
    }
    mixt__import_leave(m);
    mixt__item_give(m, out, x->type, v);
    return MIXT_OK;
}
