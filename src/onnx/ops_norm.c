/* Norms, whole and in parts, and the Gelu that is written in parts. */
#include "onnx/ops.h"

#include "ops/attrs.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

/** Channels last in memory: the order of (N, C, …). */
static void channels_last(int rank, int order[MIXT_ONNX_RANK])
{
    order[0] = 0;
    for (int i = 1; i < rank - 1; i++)
        order[i] = i + 1;
    order[rank - 1] = rank > 1 ? 1 : 0;
}

mixt_status mixt__onnx_batch_norm(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__norm_attrs at = {.eps = (float)mixt__onnx_float(n, "epsilon", 1e-5),
                           .momentum = (float)(1 - mixt__onnx_float(n, "momentum", 0.9)),
                           .training = m->b->graph->training};
    mixt__item *x = mixt__import_in(m, n, 0), *out = mixt__import_out(m, n, 0);
    mixt_value in[5];
    int order[MIXT_ONNX_RANK];
    if (!x || n->in_count < 5 || x->rank < 2)
        return mixt__import_refuse(m, "it needs x, scale, bias, mean and variance");
    for (int k = 1; k < 5; k++) {
        mixt__item *p = mixt__import_in(m, n, k);
        if (!mixt__item_is(p, MIXT_ITEM_PARAMETER) || p->rank != 1 || p->dims[0] != x->dims[1])
            return mixt__import_refuse(m, "scale, bias, mean and variance must be initializers, one number a channel");
    }
    MIXT_TRY(mixt__item_compute(m, x));
    mixt__item from = *x;
    channels_last(from.rank, order);
    MIXT_TRY(mixt__item_full(m, x, order, &in[0]));
    for (int k = 1; k < 5; k++)
        MIXT_TRY(mixt__item_parameter(m, mixt__import_in(m, n, k), NULL, false, &in[k]));
    mixt_value v =
        mixt__builder_node(m->b, &mixt__op_batch_norm, mixt__import_layer(m, n, mixt__import_in(m, n, 1)), &at, in, 5);
    mixt__item_give_in(m, out, from.type, v, order);
    return MIXT_OK;
}

/** The layer of a norm over the last dimension. @param bias NULL: there is none @param root RMS norm */
static mixt_status norm(mixt__import *m, const mixt__onnx_node *n, mixt__item *x, mixt__item *scale, mixt__item *bias,
                        double eps, bool root, mixt__item *out)
{
    mixt__norm_attrs at = {.eps = (float)eps};
    mixt_value in[3], v;
    mixt__item from = *x;
    int order[MIXT_ONNX_RANK], next = 0;
    MIXT_TRY(mixt__item_compute(m, x));
    from = *x;
    for (int i = 0; i < from.rank; i++)
        if (from.order[i] != from.rank - 1)
            order[next++] = from.order[i];
    order[next] = from.rank - 1;
    const char *layer = mixt__import_layer(m, n, scale);
    mixt_scope_push(m->b, layer);
    MIXT_TRY(mixt__item_full(m, x, order, &in[0]));
    mixt_scope_pop(m->b);
    MIXT_TRY(mixt__item_parameter(m, scale, NULL, false, &in[1]));
    if (bias && !root)
        MIXT_TRY(mixt__item_parameter(m, bias, NULL, false, &in[2]));
    else if (!root) {
        mixt__onnx_recipe none = {.kind = MIXT_ONNX_AS_IS, .initializer = -1};
        mixt__param zero = {.shape = {1, {scale->dims[0]}}, .trainable = true, .frozen = true, .constant = true};
        zero.name = mixt__arena_printf(&m->b->graph->arena, "%s.no_bias", layer);
        MIXT_TRY(mixt__import_parameter(m, &none, &zero, &in[2]));
    }
    v = mixt__builder_node(m->b, root ? &mixt__op_rms_norm : &mixt__op_layer_norm, layer, &at, in, root ? 2 : 3);
    mixt__item_give_in(m, out, from.type, v, order);
    return MIXT_OK;
}

static bool is_vector(const mixt__item *p, int64_t size)
{
    return mixt__item_is(p, MIXT_ITEM_PARAMETER) && p->rank == 1 && p->dims[0] == size;
}

mixt_status mixt__onnx_layer_norm(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *scale = mixt__import_in(m, n, 1), *bias = mixt__import_in(m, n, 2);
    bool root = !mixt__wire_is(n->op, "LayerNormalization");
    int axis = x ? mixt__import_axis(mixt__onnx_int(n, "axis", -1), x->rank) : -1;
    if (axis < 0 || axis != x->rank - 1 || !is_vector(scale, x->dims[axis]) ||
        (bias && !is_vector(bias, x->dims[axis])))
        return mixt__import_refuse(m, "other than over the last dimension, with scale and bias as initializers");
    for (int k = 1; k < n->out_count; k++)
        if (n->out[k] && m->f->values[n->out[k]].uses)
            return mixt__import_refuse(m, "its mean and deviation as outputs");
    return norm(m, n, x, scale, bias, mixt__onnx_float(n, "epsilon", 1e-5), root, mixt__import_out(m, n, 0));
}

/* ---- norms in parts ---- */

/** The other input of a node of two; NULL: it is none of such. */
static mixt__item *other(mixt__import *m, const mixt__onnx_node *n, int32_t value)
{
    return n->in_count == 2 && (n->in[0] == value || n->in[1] == value)
               ? mixt__import_in(m, n, n->in[0] == value ? 1 : 0)
               : NULL;
}

static bool is_number(mixt__import *m, mixt__item *item, double wanted)
{
    double number;
    return item && mixt__item_scalar(m, item, &number) && fabs(number - wanted) < 1e-5;
}

/** Whether a mean is taken over the last dimension alone, which stays as one of size 1. */
static bool is_last_mean(mixt__import *m, const mixt__onnx_node *n, int rank)
{
    int64_t axes[MIXT_ONNX_RANK];
    int count = n ? mixt__import_list(m, n, "axes", 1, axes, MIXT_ONNX_RANK) : 0;
    return count == 1 && mixt__import_axis(axes[0], rank) == rank - 1 && mixt__onnx_int(n, "keepdims", 1);
}

typedef struct norm_parts {
    const mixt__onnx_node *nodes[10];
    int count;
    mixt__item *scale, *bias;
    double eps;
    const mixt__onnx_node *last;
} norm_parts;

static const mixt__onnx_node *take_part(norm_parts *p, const mixt__onnx_node *n)
{
    if (n)
        p->nodes[p->count++] = n;
    return n;
}

/** The node that uses a value beside `first`, among the few behind it: the file has them one after the other. */
static const mixt__onnx_node *user_after(const mixt__import *m, int32_t value, const mixt__onnx_node *first,
                                         const char *op)
{
    enum { NEAR = 12 };
    const mixt__onnx_node *end = m->f->nodes + m->f->node_count;
    for (const mixt__onnx_node *n = first + 1; n < end && n <= first + NEAR; n++)
        for (int k = 0; k < n->in_count; k++)
            if (n->in[k] == value && mixt__wire_is(n->op, op))
                return n;
    return NULL;
}

/** Behind the normalised value: a scale, and a bias. */
static bool find_scale(mixt__import *m, norm_parts *p, int64_t size)
{
    const mixt__onnx_node *mul = mixt__import_only_user(m, p->last->out[0], "Mul");
    if (!mul || !is_vector(p->scale = other(m, mul, p->last->out[0]), size))
        return false;
    p->last = take_part(p, mul);
    const mixt__onnx_node *add = mixt__import_only_user(m, mul->out[0], "Add");
    if (add && is_vector(p->bias = other(m, add, mul->out[0]), size))
        p->last = take_part(p, add);
    else
        p->bias = NULL;
    return true;
}

/** From the mean on: x - mean, its square's mean, + eps, root, quotient, scale, bias. */
static bool find_norm(mixt__import *m, const mixt__onnx_node *mean, norm_parts *p)
{
    mixt__item *x = mixt__import_in(m, mean, 0), *eps;
    if (!x || x->rank < 2 || !is_last_mean(m, mean, x->rank))
        return false;
    const mixt__onnx_node *sub = take_part(p, mixt__import_only_user(m, mean->out[0], "Sub"));
    if (!sub || sub->in[0] != mean->in[0] || m->f->values[sub->out[0]].uses != 2)
        return false;
    const mixt__onnx_node *square = user_after(m, sub->out[0], sub, "Pow");
    if (square && !is_number(m, mixt__import_in(m, square, 1), 2))
        return false;
    square = take_part(p, square ? square : user_after(m, sub->out[0], sub, "Mul"));
    if (!square || square->in[0] != sub->out[0])
        return false;
    const mixt__onnx_node *variance = take_part(p, mixt__import_only_user(m, square->out[0], "ReduceMean"));
    if (!variance || !is_last_mean(m, variance, x->rank))
        return false;
    const mixt__onnx_node *add = take_part(p, mixt__import_only_user(m, variance->out[0], "Add"));
    if (!add || !(eps = other(m, add, variance->out[0])) || !mixt__item_scalar(m, eps, &p->eps))
        return false;
    const mixt__onnx_node *root = take_part(p, mixt__import_only_user(m, add->out[0], "Sqrt"));
    const mixt__onnx_node *div = root ? take_part(p, mixt__import_only_user(m, root->out[0], "Div")) : NULL;
    if (!div || div->in[0] != sub->out[0] || div->in[1] != root->out[0])
        return false;
    p->last = div;
    return find_scale(m, p, x->dims[x->rank - 1]);
}

/** Scale and bias come later in the file than the mean: they must not be made of anything that is not there yet. */
bool mixt__onnx_take_layer_norm(mixt__import *m, const mixt__onnx_node *n, mixt_status *status)
{
    norm_parts p = {.count = 0};
    *status = MIXT_OK;
    if (!mixt__wire_is(n->op, "ReduceMean") || !find_norm(m, n, &p))
        return false;
    *status = norm(m, n, mixt__import_in(m, n, 0), p.scale, p.bias, p.eps, false, mixt__import_out(m, p.last, 0));
    for (int i = 0; i < p.count; i++)
        mixt__import_done(m, p.nodes[i]);
    return true;
}

/* ---- Gelu in parts ---- */

/** x / √2 → Erf → + 1 → · x → · 0.5, or with x · 0.5 before. */
static const mixt__onnx_node *find_gelu(mixt__import *m, const mixt__onnx_node *n, int32_t *x, norm_parts *p)
{
    double number;
    bool div = mixt__wire_is(n->op, "Div"), mul = mixt__wire_is(n->op, "Mul");
    int k = 0;
    if ((!div && !mul) || n->in_count != 2)
        return NULL;
    if (mul && mixt__item_scalar(m, mixt__import_in(m, n, 0), &number))
        k = 1;
    if (!mixt__item_scalar(m, mixt__import_in(m, n, 1 - k), &number) ||
        fabs(number - (div ? sqrt(2) : sqrt(0.5))) > 1e-5)
        return NULL;
    *x = n->in[k];
    const mixt__onnx_node *erf = take_part(p, mixt__import_only_user(m, n->out[0], "Erf"));
    const mixt__onnx_node *add = erf ? take_part(p, mixt__import_only_user(m, erf->out[0], "Add")) : NULL;
    if (!add || !is_number(m, other(m, add, erf->out[0]), 1))
        return NULL;
    const mixt__onnx_node *times = take_part(p, mixt__import_only_user(m, add->out[0], "Mul"));
    if (!times || times->in_count != 2)
        return NULL;
    int32_t factor = times->in[0] == add->out[0] ? times->in[1] : times->in[0];
    const mixt__onnx_node *half = factor == *x ? take_part(p, mixt__import_only_user(m, times->out[0], "Mul")) : NULL;
    if (half)
        return is_number(m, other(m, half, times->out[0]), 0.5) ? half : NULL;
    half = mixt__import_maker(m, factor, "Mul"); // 0.5 · x · (1 + erf)
    if (!half || !is_number(m, other(m, half, *x), 0.5))
        return NULL;
    return times;
}

bool mixt__onnx_take_gelu(mixt__import *m, const mixt__onnx_node *n, mixt_status *status)
{
    norm_parts p = {.count = 0};
    int32_t x = 0;
    *status = MIXT_OK;
    const mixt__onnx_node *last = find_gelu(m, n, &x, &p);
    mixt__item *item = last ? &m->items[x] : NULL;
    if (!last || item->kind == MIXT_ITEM_NONE)
        return false;
    *status = mixt__item_compute(m, item);
    if (*status != MIXT_OK)
        return true;
    mixt__item from = *item, *out = mixt__import_out(m, last, 0);
    mixt__item_give_in(m, out, from.type, mixt_gelu_erf(m->b, from.value), from.order);
    memcpy(out->dims, from.dims, sizeof out->dims);
    for (int i = 0; i < p.count; i++)
        mixt__import_done(m, p.nodes[i]);
    return true;
}
