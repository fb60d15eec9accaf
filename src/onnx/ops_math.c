/* Pointwise ops and sums. */
#include "onnx/ops.h"

#include "mixt/ops.h"

#include "ops/attrs.h"
#include "ops/ops.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- two operands ---- */

typedef mixt_value binary_fn(mixt_builder *b, mixt_value x, mixt_value y);

static mixt_value less(mixt_builder *b, mixt_value x, mixt_value y)
{
    return mixt_sub(b, x, y);
}

/** Both operands in one order in memory, that of the larger. */
static mixt_status align(mixt__import *m, mixt__item *x, mixt__item *y, mixt_value v[2], int order[MIXT_ONNX_RANK],
                         int *rank)
{
    *rank = x->rank > y->rank ? x->rank : y->rank;
    bool first = x->kind == MIXT_ITEM_COMPUTED &&
                 (x->rank > y->rank || y->kind != MIXT_ITEM_COMPUTED || mixt__item_count(x) >= mixt__item_count(y));
    mixt__item *like = first || y->kind != MIXT_ITEM_COMPUTED ? x : y;
    MIXT_TRY(mixt__item_compute(m, like));
    for (int i = 0; i < *rank; i++)
        order[i] = i;
    for (int i = 0; i < like->rank; i++)
        order[i + *rank - like->rank] = like->order[i] + *rank - like->rank;
    MIXT_TRY(mixt__item_value(m, x, *rank, order, &v[0]));
    return mixt__item_value(m, y, *rank, order, &v[1]);
}

/** The sizes that two items broadcast to. */
static void join_dims(const mixt__item *x, const mixt__item *y, int rank, int64_t dims[MIXT_ONNX_RANK])
{
    for (int i = 0; i < rank; i++) {
        int a = i - (rank - x->rank), b = i - (rank - y->rank);
        int64_t have = a >= 0 ? x->dims[a] : 1, want = b >= 0 ? y->dims[b] : 1;
        dims[i] = have != 1 ? have : want;
    }
}

static mixt_status join(mixt__import *m, mixt__item *x, mixt__item *y, binary_fn *fn, mixt__item *out)
{
    mixt_value v[2];
    int order[MIXT_ONNX_RANK], rank;
    int64_t dims[MIXT_ONNX_RANK];
    MIXT_TRY(align(m, x, y, v, order, &rank));
    join_dims(x, y, rank, dims);
    mixt__item_give_in(m, out, x->type, fn(m->b, v[0], v[1]), order);
    memcpy(out->dims, dims, (size_t)rank * sizeof *dims); // both may be left to broadcasting
    return MIXT_OK;
}

/** One operand is a number. @param left it stands before the operator */
static mixt_value with_number(mixt_builder *b, mixt__wire_span op, mixt_value x, double number, bool left)
{
    float f = (float)number;
    if (mixt__wire_is(op, "Add"))
        return f == 0 ? x : mixt_affine(b, x, 1, f);
    if (mixt__wire_is(op, "Mul"))
        return f == 1 ? x : mixt_affine(b, x, f, 0);
    if (mixt__wire_is(op, "Sub"))
        return left ? mixt_affine(b, x, -1, f) : f == 0 ? x : mixt_affine(b, x, 1, -f);
    if (!left)
        return f == 1 ? x : mixt_affine(b, x, (float)(1 / number), 0);
    mixt_value one = mixt_div(b, mixt_affine(b, x, 0, 1), x);
    return f == 1 ? one : mixt_affine(b, one, f, 0);
}

/** Where all elements of a constant are the same. */
static bool is_uniform(mixt__import *m, mixt__item *item, double *number)
{
    int64_t count = mixt__item_count(item);
    const double *x = mixt__item_is(item, MIXT_ITEM_CONSTANT) && count > 0 ? mixt__item_numbers(m, item) : NULL;
    for (int64_t i = 1; x && i < count; i++)
        if (x[i] != x[0])
            return false;
    if (x)
        *number = x[0];
    return x != NULL;
}

/** The output has the input's order in memory. */
static void give_like(mixt__import *m, const mixt__onnx_node *n, const mixt__item *from, mixt_value v)
{
    mixt__item like = *from, *out = mixt__import_out(m, n, 0);
    mixt__item_give_in(m, out, like.type, v, like.order);
    memcpy(out->dims, like.dims, sizeof out->dims);
}

mixt_status mixt__onnx_binary(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *y = mixt__import_in(m, n, 1);
    mixt_status status = MIXT_OK;
    double number;
    if (!x || !y)
        return mixt__import_refuse(m, "it needs two inputs");
    if (mixt__onnx_take_gelu(m, n, &status))
        return status;
    if (!mixt__onnx_type_is_float(x->type) && x->type != MIXT_ONNX_BOOL)
        return mixt__import_refuse(m, "arithmetic on whole numbers of the data");
    for (int k = 0; k < 2; k++) {
        mixt__item *constant = k ? y : x, *other = k ? x : y;
        if (constant->rank <= other->rank && is_uniform(m, constant, &number) && mixt__item_count(constant) <= 1) {
            MIXT_TRY(mixt__item_compute(m, other));
            give_like(m, n, other, with_number(m->b, n->op, other->value, number, !k));
            return MIXT_OK;
        }
    }
    binary_fn *fn = mixt__wire_is(n->op, "Add")   ? mixt_add
                    : mixt__wire_is(n->op, "Mul") ? mixt_mul
                    : mixt__wire_is(n->op, "Div") ? mixt_div
                                                  : less;
    return join(m, x, y, fn, mixt__import_out(m, n, 0));
}

static mixt_value at_most(mixt_builder *b, mixt_value x, mixt_value y)
{
    return mixt_not(b, mixt_greater(b, x, y));
}

static mixt_value at_least(mixt_builder *b, mixt_value x, mixt_value y)
{
    return mixt_not(b, mixt_less(b, x, y));
}

mixt_status mixt__onnx_compare(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *y = mixt__import_in(m, n, 1), *out = mixt__import_out(m, n, 0);
    binary_fn *fn = mixt__wire_is(n->op, "Equal")         ? mixt_equal
                    : mixt__wire_is(n->op, "Less")        ? mixt_less
                    : mixt__wire_is(n->op, "Greater")     ? mixt_greater
                    : mixt__wire_is(n->op, "LessOrEqual") ? at_most
                    : mixt__wire_is(n->op, "And")         ? mixt_minimum
                    : mixt__wire_is(n->op, "Or")          ? mixt_maximum
                                                          : at_least;
    if (!x || !y)
        return mixt__import_refuse(m, "it needs two inputs");
    MIXT_TRY(join(m, x, y, fn, out));
    out->type = MIXT_ONNX_BOOL;
    return MIXT_OK;
}

mixt_status mixt__onnx_many(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *out = mixt__import_out(m, n, 0), *first = mixt__import_in(m, n, 0);
    binary_fn *fn = mixt__wire_is(n->op, "Max") ? mixt_maximum : mixt__wire_is(n->op, "Min") ? mixt_minimum : mixt_add;
    if (!first)
        return mixt__import_refuse(m, "it has no input");
    mixt__item sum = *first;
    for (int k = 1; k < n->in_count; k++) {
        mixt__item left = sum, *right = mixt__import_in(m, n, k);
        if (!right)
            return mixt__import_refuse(m, "an input is left out");
        MIXT_TRY(join(m, &left, right, fn, &sum));
    }
    *out = sum;
    if (mixt__wire_is(n->op, "Mean") && n->in_count > 1) {
        MIXT_TRY(mixt__item_compute(m, out));
        give_like(m, n, out, mixt_affine(m->b, out->value, 1.0f / (float)n->in_count, 0));
    }
    return MIXT_OK;
}

mixt_status mixt__onnx_pow(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0);
    double power;
    if (!x || !mixt__import_in(m, n, 1))
        return mixt__import_refuse(m, "it needs two inputs");
    if (!is_uniform(m, mixt__import_in(m, n, 1), &power) || mixt__item_count(mixt__import_in(m, n, 1)) > 1)
        return join(m, x, mixt__import_in(m, n, 1), mixt_pow, mixt__import_out(m, n, 0));
    MIXT_TRY(mixt__item_compute(m, x));
    give_like(m, n, x, power == 2 ? mixt_square(m->b, x->value) : mixt_power(m->b, x->value, (float)power));
    return MIXT_OK;
}

/** Where a mask is known, what it hides: 1 or 0 for each element. */
static mixt_status mask_item(mixt__import *m, mixt__item *mask, bool keep, mixt__item *result)
{
    const double *x = mixt__item_numbers(m, mask);
    int64_t count = mixt__item_count(mask);
    double *out;
    if (!x)
        return MIXT_ERROR_MEMORY;
    MIXT_TRY(mixt__item_constant(m, result, MIXT_ONNX_FLOAT, mask->rank, mask->dims, &out));
    for (int64_t i = 0; i < count; i++)
        out[i] = (x[i] != 0) == keep;
    return MIXT_OK;
}

/** Any condition, element by element. */
static mixt_status choose(mixt__import *m, const mixt__onnx_node *n, mixt__item *mask, mixt__item *x, mixt__item *y)
{
    mixt__item *const in[3] = {mask, x, y}, *out = mixt__import_out(m, n, 0);
    mixt_value v[3];
    int rank = 0;
    mixt__onnx_type type = x->type;
    for (int k = 0; k < 3; k++)
        rank = in[k]->rank > rank ? in[k]->rank : rank;
    for (int k = 0; k < 3; k++)
        MIXT_TRY(mixt__item_value(m, in[k], rank, NULL, &v[k]));
    mixt__item_give(m, out, type, mixt_select(m->b, v[0], v[1], v[2]));
    return MIXT_OK;
}

/** Of a mask that is known and a number: x where it is kept, and the number added elsewhere, which is what masks of
 *  scores do. */
mixt_status mixt__onnx_where(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *mask = mixt__import_in(m, n, 0), *x = mixt__import_in(m, n, 1), *y = mixt__import_in(m, n, 2);
    mixt__item kept, hidden, left, filled;
    double number = 0, *out;
    if (!mask || !x || !y)
        return mixt__import_refuse(m, "it needs three inputs");
    bool x_is_number = is_uniform(m, x, &number), y_is_number = !x_is_number && is_uniform(m, y, &number);
    if (!mixt__item_is(mask, MIXT_ITEM_CONSTANT) || (!x_is_number && !y_is_number))
        return choose(m, n, mask, x, y);
    MIXT_TRY(mask_item(m, mask, y_is_number, &kept));
    MIXT_TRY(mask_item(m, mask, x_is_number, &hidden));
    number = number < -3e38 ? -3e38 : number > 3e38 ? 3e38 : number;
    out = (double *)(uintptr_t)hidden.numbers;
    for (int64_t i = 0; i < mixt__item_count(&hidden); i++)
        out[i] *= number;
    MIXT_TRY(join(m, &kept, y_is_number ? x : y, mixt_where, &left)); // 0 whatever was there
    MIXT_TRY(join(m, &left, &hidden, mixt_add, &filled));
    *mixt__import_out(m, n, 0) = filled;
    return MIXT_OK;
}

/* ---- one operand ---- */

static mixt_value softsign(mixt_builder *b, mixt_value x)
{
    return mixt_div(b, x, mixt_affine(b, mixt_abs(b, x), 1, 1));
}

typedef mixt_value unary_fn(mixt_builder *b, mixt_value x);

static const struct {
    const char *op;
    unary_fn *fn;
} unaries[] = {{"Neg", mixt_neg},      {"Relu", mixt_relu}, {"Sigmoid", mixt_sigmoid},  {"Tanh", mixt_tanh},
               {"Exp", mixt_exp},      {"Log", mixt_log},   {"Sqrt", mixt_sqrt},        {"Abs", mixt_abs},
               {"Floor", mixt_floor},  {"Ceil", mixt_ceil}, {"Round", mixt_round},      {"Sin", mixt_sin},
               {"Cos", mixt_cos},      {"Not", mixt_not},   {"Mish", mixt_mish},        {"Reciprocal", mixt_reciprocal},
               {"Softsign", softsign}, {"Erf", mixt_erf},   {"Softplus", mixt_softplus}};

mixt_status mixt__onnx_unary(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0);
    mixt_status status;
    if (!x)
        return mixt__import_refuse(m, "it has no input");
    MIXT_TRY(mixt__item_compute(m, x));
    if (mixt__onnx_take_silu(m, n, &status))
        return status;
    for (size_t i = 0; i < sizeof unaries / sizeof unaries[0]; i++)
        if (mixt__wire_is(n->op, unaries[i].op))
            give_like(m, n, x, unaries[i].fn(m->b, x->value));
    return MIXT_OK;
}

bool mixt__onnx_take_silu(mixt__import *m, const mixt__onnx_node *n, mixt_status *status)
{
    const mixt__onnx_node *mul = mixt__wire_is(n->op, "Sigmoid") ? mixt__import_only_user(m, n->out[0], "Mul") : NULL;
    *status = MIXT_OK;
    if (!mul || mul->in_count != 2 || (mul->in[0] != n->in[0] && mul->in[1] != n->in[0]))
        return false;
    mixt__item *x = mixt__import_in(m, n, 0);
    give_like(m, mul, x, mixt_silu(m->b, x->value));
    mixt__import_done(m, mul);
    return true;
}

/** One step with a number of its own. */
static mixt_status shaped(mixt__import *m, const mixt__onnx_node *n,
                          mixt_value (*fn)(mixt_builder *, mixt_value, float, float), double a, double b)
{
    mixt__item *x = mixt__import_in(m, n, 0);
    if (!x)
        return mixt__import_refuse(m, "it has no input");
    MIXT_TRY(mixt__item_compute(m, x));
    give_like(m, n, x, fn(m->b, x->value, (float)a, (float)b));
    return MIXT_OK;
}

static mixt_value hard_swish(mixt_builder *b, mixt_value x, float unused, float none)
{
    (void)unused, (void)none;
    return mixt_hard_swish(b, x);
}

static mixt_value leaky(mixt_builder *b, mixt_value x, float alpha, float unused)
{
    (void)unused;
    if (alpha >= 0 && alpha <= 1)
        return mixt_maximum(b, x, mixt_affine(b, x, alpha, 0));
    return mixt_add(b, mixt_relu(b, x), mixt_affine(b, mixt_relu(b, mixt_neg(b, x)), -alpha, 0));
}

/** gamma · (max(x, 0) + alpha · (exp(min(x, 0)) - 1)) */
static mixt_value elu(mixt_builder *b, mixt_value x, float alpha, float gamma)
{
    mixt_value below = mixt_exp(b, mixt_neg(b, mixt_relu(b, mixt_neg(b, x))));
    return mixt_add(b, mixt_affine(b, mixt_relu(b, x), gamma, 0), mixt_affine(b, below, gamma * alpha, -gamma * alpha));
}

static mixt_value celu(mixt_builder *b, mixt_value x, float alpha, float unused)
{
    (void)unused;
    mixt_value below = mixt_exp(b, mixt_affine(b, mixt_relu(b, mixt_neg(b, x)), -1 / alpha, 0));
    return mixt_add(b, mixt_relu(b, x), mixt_affine(b, below, alpha, -alpha));
}

mixt_status mixt__onnx_hard_sigmoid(mixt__import *m, const mixt__onnx_node *n)
{
    return shaped(m, n, mixt_hard_sigmoid, mixt__onnx_float(n, "alpha", 0.2), mixt__onnx_float(n, "beta", 0.5));
}

mixt_status mixt__onnx_hard_swish(mixt__import *m, const mixt__onnx_node *n)
{
    return shaped(m, n, hard_swish, 1.0 / 6, 0.5);
}

mixt_status mixt__onnx_leaky(mixt__import *m, const mixt__onnx_node *n)
{
    return shaped(m, n, leaky, mixt__onnx_float(n, "alpha", 0.01), 0);
}

mixt_status mixt__onnx_elu(mixt__import *m, const mixt__onnx_node *n)
{
    if (mixt__wire_is(n->op, "Celu"))
        return shaped(m, n, celu, mixt__onnx_float(n, "alpha", 1), 0);
    if (mixt__wire_is(n->op, "Selu"))
        return shaped(m, n, elu, mixt__onnx_float(n, "alpha", 1.67326319217681884765625),
                      mixt__onnx_float(n, "gamma", 1.05070102214813232421875));
    return shaped(m, n, elu, mixt__onnx_float(n, "alpha", 1), 1);
}

mixt_status mixt__onnx_clip(mixt__import *m, const mixt__onnx_node *n)
{
    double low = mixt__onnx_float(n, "min", -INFINITY), high = mixt__onnx_float(n, "max", INFINITY);
    if ((mixt__import_in(m, n, 1) && !mixt__item_scalar(m, mixt__import_in(m, n, 1), &low)) ||
        (mixt__import_in(m, n, 2) && !mixt__item_scalar(m, mixt__import_in(m, n, 2), &high)))
        return mixt__import_refuse(m, "limits that are not known");
    return shaped(m, n, mixt_clip, low, high);
}

mixt_status mixt__onnx_gelu(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0);
    if (!x)
        return mixt__import_refuse(m, "it has no input");
    MIXT_TRY(mixt__item_compute(m, x));
    bool tanh_form = mixt__onnx_text_is(n, "approximate", "tanh");
    give_like(m, n, x, tanh_form ? mixt_gelu(m->b, x->value) : mixt_gelu_erf(m->b, x->value));
    return MIXT_OK;
}

mixt_status mixt__onnx_prelu(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *slope = mixt__import_in(m, n, 1), above, below, down;
    if (!x || !slope)
        return mixt__import_refuse(m, "it needs two inputs");
    MIXT_TRY(mixt__item_compute(m, x));
    above = below = *x;
    above.value = mixt_relu(m->b, x->value);
    below.value = mixt_neg(m->b, mixt_relu(m->b, mixt_neg(m->b, x->value)));
    MIXT_TRY(join(m, &below, slope, mixt_mul, &down));
    return join(m, &above, &down, mixt_add, mixt__import_out(m, n, 0));
}

mixt_status mixt__onnx_dropout(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0);
    double ratio = mixt__onnx_float(n, "ratio", 0.5);
    if (!x || (mixt__import_in(m, n, 1) && !mixt__item_scalar(m, mixt__import_in(m, n, 1), &ratio)) ||
        !(ratio >= 0 && ratio < 1))
        return mixt__import_refuse(m, "a ratio that is not known, or not from 0 to below 1");
    MIXT_TRY(mixt__item_compute(m, x));
    give_like(m, n, x, mixt_dropout(m->b, x->value, (float)ratio));
    return MIXT_OK;
}

/* ---- over dimensions ---- */

/** An order in memory whose last dimension is this axis. */
static void last_is(const mixt__item *x, int axis, int order[MIXT_ONNX_RANK])
{
    int next = 0;
    for (int i = 0; i < x->rank; i++)
        if (x->order[i] != axis)
            order[next++] = x->order[i];
    order[next] = axis;
}

mixt_status mixt__onnx_softmax(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0);
    bool old = m->f->opset < 13; // then all dimensions from axis on are one
    int axis = x ? mixt__import_axis(mixt__onnx_int(n, "axis", old ? 1 : -1), x->rank) : -1, order[MIXT_ONNX_RANK];
    mixt_value v;
    if (axis < 0)
        return mixt__import_refuse(m, "an axis that is not there");
    for (int i = axis + 1; old && i < x->rank; i++)
        if (x->dims[i] != 1)
            return mixt__import_refuse(m, "several dimensions at once (opset below 13)");
    MIXT_TRY(mixt__item_compute(m, x));
    mixt__item from = *x;
    last_is(&from, axis, order);
    MIXT_TRY(mixt__item_full(m, x, order, &v));
    mixt_value out = mixt_softmax(m->b, v);
    if (mixt__wire_is(n->op, "LogSoftmax"))
        out = mixt_log(m->b, out);
    mixt__item_give_in(m, mixt__import_out(m, n, 0), from.type, out, order);
    return MIXT_OK;
}

static mixt_value reduced(mixt__import *m, const mixt__onnx_node *n, mixt_value v, const mixt_reduce_options *o)
{
    if (mixt__wire_is(n->op, "ReduceMean"))
        return mixt_mean_with(m->b, v, o);
    if (mixt__wire_is(n->op, "ReduceMax"))
        return mixt_reduce_max_with(m->b, v, o);
    if (mixt__wire_is(n->op, "ReduceMin"))
        return mixt_reduce_min_with(m->b, v, o);
    if (mixt__wire_is(n->op, "ReduceSum"))
        return mixt_sum_with(m->b, v, o);
    if (mixt__wire_is(n->op, "ReduceLogSumExp"))
        return mixt_log(m->b, mixt_sum_with(m->b, mixt_exp(m->b, v), o));
    mixt_value squares = mixt_sum_with(m->b, mixt_square(m->b, v), o);
    return mixt__wire_is(n->op, "ReduceL2") ? mixt_sqrt(m->b, squares) : squares;
}

mixt_status mixt__onnx_reduce(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *x = mixt__import_in(m, n, 0), *out = mixt__import_out(m, n, 0);
    mixt_reduce_options o = MIXT_OPTIONS(mixt_reduce_options, .keep_dims = true);
    int64_t axes[MIXT_ONNX_RANK], dims[MIXT_ONNX_RANK];
    mixt_status status;
    mixt_value v;
    if (!x)
        return mixt__import_refuse(m, "it has no input");
    if (mixt__onnx_take_layer_norm(m, n, &status))
        return status;
    int count = mixt__import_list(m, n, "axes", 1, axes, MIXT_ONNX_RANK), rank = 0;
    if ((mixt__import_in(m, n, 1) && count < 0) || count > x->rank)
        return mixt__import_refuse(m, "axes that are not known");
    if (count <= 0 && mixt__onnx_int(n, "noop_with_empty_axes", 0))
        return mixt__onnx_identity(m, n);
    unsigned mask = count <= 0 ? ~0u : 0;
    for (int i = 0; i < count; i++) {
        int axis = mixt__import_axis(axes[i], x->rank);
        if (axis < 0)
            return mixt__import_refuse(m, "an axis that is not there");
        mask |= 1u << axis;
    }
    MIXT_TRY(mixt__item_compute(m, x));
    mixt__item from = *x;
    MIXT_TRY(mixt__item_full(m, x, from.order, &v));
    o.axis_count = 0;
    for (int i = 0; i < from.rank; i++)
        if (mask >> from.order[i] & 1)
            o.axes[o.axis_count++] = i;
    mixt__item_give_in(m, out, from.type, o.axis_count ? reduced(m, n, v, &o) : v, from.order);
    if (mixt__onnx_int(n, "keepdims", 1))
        return MIXT_OK;
    for (int i = 0; i < from.rank; i++)
        if (!(mask >> i & 1))
            dims[rank++] = from.dims[i];
    MIXT_TRY(mixt__item_full(m, out, NULL, &v));
    mixt__item_give(m, out, from.type, mixt__import_reshape(m, v, rank, dims));
    return MIXT_OK;
}
