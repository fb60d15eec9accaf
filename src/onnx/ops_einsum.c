/* Einsum: of one operand transposes and sums, of two a product of stacks of matrices. */
#include "onnx/ops.h"

#include <string.h>

enum { LABELS = 6 };

/** The letters of an operand or the result, in their order. */
typedef struct labels {
    int count;
    char of[LABELS];
} labels;

typedef struct equation {
    int operands;
    labels in[2], out;
} equation;

static bool has(const labels *l, char label)
{
    return l->count && memchr(l->of, label, (size_t)l->count) != NULL;
}

/** False: an ellipsis, a letter twice in one operand, more than two operands or six dimensions. */
static bool parse(mixt__wire_span text, equation *e)
{
    labels *now = &e->in[0];
    bool arrow = false;
    *e = (equation){.operands = 1};
    for (size_t i = 0; i < text.bytes; i++) {
        char c = (char)text.at[i];
        if (c == ' ' || (c == '>' && arrow))
            continue;
        if (c == ',' && e->operands == 1 && !arrow) {
            now = &e->in[e->operands++];
        } else if (c == '-' && !arrow) {
            arrow = true;
            now = &e->out;
        } else if (((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) && now->count < LABELS && !has(now, c)) {
            now->of[now->count++] = c;
        } else {
            return false;
        }
    }
    return arrow;
}

/** Sums what neither the result nor the other operand has, and puts the rest into an order.
 *  @param wanted letters, those that the operand has first */
static mixt_status operand(mixt__import *m, mixt__item *item, const labels *own, const labels *wanted,
                           mixt_value *value, int64_t sizes[128])
{
    int order[MIXT_ONNX_RANK], next = 0;
    mixt_reduce_options o = MIXT_OPTIONS(mixt_reduce_options, .axis_count = 0);
    if (item->rank != own->count)
        return mixt__import_refuse(m, "an operand of %d dimensions for %d letters", item->rank, own->count);
    for (int i = 0; i < own->count; i++)
        sizes[(int)own->of[i]] = item->dims[i];
    for (int k = 0; k < wanted->count; k++)
        for (int i = 0; i < own->count; i++)
            if (own->of[i] == wanted->of[k])
                order[next++] = i;
    for (int i = 0; i < own->count; i++)
        if (!has(wanted, own->of[i])) {
            o.axes[o.axis_count++] = next;
            order[next++] = i;
        }
    MIXT_TRY(mixt__item_full(m, item, order, value));
    if (o.axis_count)
        *value = mixt_sum_with(m->b, *value, &o);
    return mixt__import_check(m);
}

static void add(labels *l, char label)
{
    l->of[l->count++] = label;
}

static int64_t product_of(const labels *l, int from, int to, const int64_t *sizes)
{
    int64_t size = 1;
    for (int i = from; i < to; i++)
        size *= sizes[(int)l->of[i]];
    return size;
}

/** The result with its letters in an order of ours, given in the file's. */
static void give(mixt__import *m, const mixt__onnx_node *n, mixt_value v, const labels *have, const equation *e,
                 const int64_t *sizes)
{
    int order[MIXT_ONNX_RANK];
    int64_t dims[MIXT_ONNX_RANK];
    for (int i = 0; i < have->count; i++) {
        dims[i] = sizes[(int)have->of[i]];
        for (int k = 0; k < e->out.count; k++)
            if (e->out.of[k] == have->of[i])
                order[i] = k;
    }
    mixt__onnx_type type = mixt__import_in(m, n, 0)->type;
    mixt__item_give_in(m, mixt__import_out(m, n, 0), type, mixt__import_reshape(m, v, have->count, dims), order);
}

/** (batch, rows, K) · (batch, columns, K)ᵀ */
static mixt_status multiply(mixt__import *m, const mixt__onnx_node *n, const equation *e)
{
    labels left = {0}, right = {0}, result = {0};
    int64_t sizes[128] = {0};
    int batch, rows, columns;
    mixt_value v[2];
    for (int i = 0; i < e->in[0].count; i++) // in both, and in the result
        if (has(&e->in[1], e->in[0].of[i]) && has(&e->out, e->in[0].of[i]))
            add(&left, e->in[0].of[i]);
    batch = left.count;
    right = result = left;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < e->in[k].count; i++)
            if (!has(&e->in[1 - k], e->in[k].of[i]) && has(&e->out, e->in[k].of[i])) {
                add(k ? &right : &left, e->in[k].of[i]);
                if (result.count == LABELS)
                    return mixt__import_refuse(m, "a result of more than %d dimensions", LABELS);
                add(&result, e->in[k].of[i]);
            }
    rows = left.count;
    columns = right.count;
    for (int i = 0; i < e->in[0].count; i++) // summed over
        if (has(&e->in[1], e->in[0].of[i]) && !has(&e->out, e->in[0].of[i])) {
            add(&left, e->in[0].of[i]);
            add(&right, e->in[0].of[i]);
        }
    MIXT_TRY(operand(m, mixt__import_in(m, n, 0), &e->in[0], &left, &v[0], sizes));
    MIXT_TRY(operand(m, mixt__import_in(m, n, 1), &e->in[1], &right, &v[1], sizes));
    int64_t stack = product_of(&left, 0, batch, sizes), inner = product_of(&left, rows, left.count, sizes);
    v[0] = mixt__import_reshape(m, v[0], 3, (int64_t[]){stack, product_of(&left, batch, rows, sizes), inner});
    v[1] = mixt__import_reshape(m, v[1], 3, (int64_t[]){stack, product_of(&right, batch, columns, sizes), inner});
    give(m, n, mixt_matmul(m->b, v[0], v[1], .trans_b = true), &result, e, sizes);
    return MIXT_OK;
}

mixt_status mixt__onnx_einsum(mixt__import *m, const mixt__onnx_node *n)
{
    equation e;
    int64_t sizes[128] = {0};
    mixt_value v;
    mixt__onnx_attribute text = mixt__onnx_attribute_of(n, "equation");
    if (!parse(text.s, &e) || n->in_count != e.operands || !mixt__import_in(m, n, 0) ||
        (e.operands == 2 && !mixt__import_in(m, n, 1)))
        return mixt__import_refuse(m, "an equation with dots, a letter twice, no arrow, or more than two operands");
    for (int i = 0; i < e.out.count; i++)
        if (!has(&e.in[0], e.out.of[i]) && !(e.operands == 2 && has(&e.in[1], e.out.of[i])))
            return mixt__import_refuse(m, "a letter of the result that no operand has");
    if (e.operands == 2)
        return multiply(m, n, &e);
    MIXT_TRY(operand(m, mixt__import_in(m, n, 0), &e.in[0], &e.out, &v, sizes));
    give(m, n, v, &e.out, &e, sizes);
    return MIXT_OK;
}
