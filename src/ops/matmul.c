/* Matrix product with optional bias; linear layers are this op with a parameter as second operand.
 *
 * Either b is a plain matrix and all leading dimensions of a are rows, (…, K)·(K, N) → (…, N), or both have the same
 * leading (batch) dimensions, (…, M, K)·(…, K, N) → (…, M, N). trans_a and trans_b swap the last two dimensions.
 *
 * A plain b may be a pair: numbers with a scale for each of its rows as it is stored. Its values are rounded to a's
 * format, or left in FP32, before they are multiplied.
 *
 * Both may be in FP8, each with one scale for all of it (the quantise pass): E4M3, or E5M2 of what is a gradient.
 */
#include "ops/rules.h"

#include <math.h>
#include <stdio.h>

static bool rows_times_matrix(const mixt__shape *a, const mixt__shape *b)
{
    return b->rank == 2 && a->rank != 2;
}

static mixt_status misfit(const mixt__shape *a, const mixt__shape *b, const char *why)
{
    char ta[128], tb[128];
    return mixt__fail(MIXT_ERROR_SHAPE, "cannot multiply %s by %s: %s", mixt__shape_text(a, ta, sizeof ta),
                      mixt__shape_text(b, tb, sizeof tb), why);
}

static bool is_scaled(const mixt__value *v)
{
    return v->scales.kind == MIXT_SCALE_TENSOR;
}

/** Whether the operands' formats go together; *made receives the result's. */
static mixt_status check_formats(const mixt__matmul_attrs *at, const mixt__value *a, const mixt__value *b,
                                 mixt_dtype *made)
{
    bool pair = b->scales.kind != MIXT_SCALE_NONE;
    bool by_rows = b->scales.kind == MIXT_SCALE_CHANNEL || b->scales.kind == MIXT_SCALE_NESTED;
    *made = at->wide ? MIXT_DTYPE_FP32 : is_scaled(a) ? at->made : a->dtype;
    if (is_scaled(a) && is_scaled(b) && mixt__format_may(at->made, MIXT_MAY_HOLD))
        return MIXT_OK;
    if (is_scaled(a) || is_scaled(b))
        return mixt__fail(MIXT_ERROR_DTYPE,
                          "operands are %s and %s: with scales must be both, and the result's format given",
                          mixt_dtype_name(a->dtype), mixt_dtype_name(b->dtype));
    if (pair && (!by_rows || b->shape.rank != 2 || !mixt__format_may(a->dtype, MIXT_MAY_HOLD)))
        return mixt__fail(MIXT_ERROR_DTYPE, "a weight of %s must be a matrix with a scale for each of its rows",
                          mixt_dtype_name(b->dtype));
    if (!pair && a->dtype != b->dtype)
        return mixt__fail(MIXT_ERROR_DTYPE, "operands are %s and %s: both must have one format",
                          mixt_dtype_name(a->dtype), mixt_dtype_name(b->dtype));
    return MIXT_OK;
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__matmul_attrs *at = node->attrs;
    const mixt__value *va = mixt__in(graph, node, 0), *vb = mixt__in(graph, node, 1);
    const mixt__shape *a = &va->shape, *b = &vb->shape;
    mixt_dtype made;
    MIXT_TRY(check_formats(at, va, vb, &made));
    if (a->rank < 1 || b->rank < 2)
        return misfit(a, b, "the first needs at least 1 dimension, the second 2");
    int64_t k_b = b->dims[b->rank - 2 + at->trans_b], n = b->dims[b->rank - 1 - at->trans_b];
    mixt__shape out = *a;
    int64_t k_a;
    if (rows_times_matrix(a, b)) {
        if (at->trans_a)
            return misfit(a, b, "a stack of matrices cannot be transposed against one plain matrix");
        k_a = mixt__last_dim(a);
    } else {
        if (a->rank != b->rank)
            return misfit(a, b, "the batch dimensions differ");
        for (int i = 0; i < a->rank - 2; i++)
            if (a->dims[i] != b->dims[i])
                return misfit(a, b, "the batch dimensions differ");
        k_a = a->dims[a->rank - 1 - at->trans_a];
        out.dims[a->rank - 2] = a->dims[a->rank - 2 + at->trans_a];
    }
    if (k_a != k_b)
        return misfit(a, b, "the inner sizes differ");
    out.dims[out.rank - 1] = n;
    if (at->bias && mixt__shape_count(&mixt__in(graph, node, 2)->shape) != n)
        return misfit(a, b, "the bias has another size than the result's columns");
    int next = 2 + at->bias, extra = at->addend + (at->epilogue >= MIXT_EPILOGUE_GELU_GRAD);
    for (int i = next; i < next + extra; i++)
        if (!mixt__shape_equal(&mixt__in(graph, node, i)->shape, &out))
            return misfit(a, b, "what is added to the result or scales it has another shape");
    mixt__set_out(r, 0, &out, made);
    if (at->epilogue == MIXT_EPILOGUE_GELU)
        mixt__set_out(r, 1, &out, made);
    if (at->row_sums && (!at->trans_a || a->rank != 2 || at->epilogue == MIXT_EPILOGUE_GELU))
        return misfit(a, b, "sums of rows are for a plain transposed matrix");
    if (at->row_sums)
        mixt__set_out(r, 1, &(mixt__shape){1, {out.dims[0]}}, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__matmul_attrs *at = node->attrs;
    const mixt__shape *a = &mixt__in(graph, node, 0)->shape;
    int64_t k = a->dims[a->rank - 1 - (at->trans_a && a->rank > 1)];
    return 2.0 * (double)k * (double)mixt__shape_count(&graph->values[node->out[0]].shape);
}

static mixt_status emit_product(mixt__gradients *g, int32_t x, bool trans_x, int32_t y, bool trans_y, float alpha,
                                int32_t target)
{
    mixt__matmul_attrs at = {.trans_a = trans_x, .trans_b = trans_y, .alpha = alpha};
    int32_t in[2] = {x, y};
    return mixt__gradient_emit(g, &mixt__op_matmul, &at, in, 2, &target);
}

/** (…, C) seen as (rows, C). */
static mixt_status as_rows(mixt__gradients *g, int32_t value, int32_t *out)
{
    const mixt__shape *s = &g->graph->values[value].shape;
    mixt__shape rows = {.rank = 2, .dims = {mixt__row_count(s), mixt__last_dim(s)}};
    return mixt__gradient_reshape(g, value, &rows, out);
}

static mixt_status grad_rows(mixt__gradients *g, int32_t a, int32_t b, int32_t dc, const mixt__matmul_attrs *at)
{
    if (mixt__gradient_wanted(g, b)) {
        int32_t a2, dc2;
        MIXT_TRY(as_rows(g, a, &a2));
        MIXT_TRY(as_rows(g, dc, &dc2));
        if (at->trans_b)
            MIXT_TRY(emit_product(g, dc2, true, a2, false, at->alpha, b));
        else
            MIXT_TRY(emit_product(g, a2, true, dc2, false, at->alpha, b));
    }
    return mixt__gradient_wanted(g, a) ? emit_product(g, dc, false, b, !at->trans_b, at->alpha, a) : MIXT_OK;
}

static mixt_status grad_batched(mixt__gradients *g, int32_t a, int32_t b, int32_t dc, const mixt__matmul_attrs *at)
{
    if (mixt__gradient_wanted(g, b)) {
        if (at->trans_b)
            MIXT_TRY(emit_product(g, dc, true, a, at->trans_a, at->alpha, b));
        else
            MIXT_TRY(emit_product(g, a, !at->trans_a, dc, false, at->alpha, b));
    }
    if (!mixt__gradient_wanted(g, a))
        return MIXT_OK;
    if (at->trans_a)
        return emit_product(g, b, at->trans_b, dc, true, at->alpha, a);
    return emit_product(g, dc, false, b, !at->trans_b, at->alpha, a);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    mixt__matmul_attrs at = *(const mixt__matmul_attrs *)node->attrs;
    int32_t a = node->in[0], b = node->in[1], bias = at.bias ? node->in[2] : 0, dc = mixt__gradient_of(g, node->out[0]);
    if (bias && mixt__gradient_wanted(g, bias)) {
        mixt__reduce_attrs columns = {.axes = (1u << (g->graph->values[dc].shape.rank - 1)) - 1};
        MIXT_TRY(mixt__gradient_emit(g, &mixt__op_reduce, &columns, &dc, 1, &bias));
    }
    bool rows = rows_times_matrix(&g->graph->values[a].shape, &g->graph->values[b].shape);
    return rows ? grad_rows(g, a, b, dc, &at) : grad_batched(g, a, b, dc, &at);
}

/** The gradient of a transposed first operand has the second as its first, where kernels take no pair. */
static bool pair_grad(const void *attrs)
{
    return !((const mixt__matmul_attrs *)attrs)->trans_a;
}

static void widen(void *attrs)
{
    ((mixt__matmul_attrs *)attrs)->wide = true;
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__matmul_attrs *at = attrs;
    static const char *const epilogues[] = {"", " relu", " gelu", " gelu_grad", " relu_grad"};
    snprintf(text, size, "%c%c%s%s%s%s", at->trans_a ? 't' : 'n', at->trans_b ? 't' : 'n', at->bias ? "+bias" : "",
             at->addend ? "+addend" : "", epilogues[at->epilogue], at->row_sums ? " row_sums" : "");
}

const mixt__op mixt__op_matmul = {
    .name = "matmul",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_PRODUCTS,
    .attrs_size = sizeof(mixt__matmul_attrs),
    .fp32_inputs = 1u << 2,
    .pair_inputs = 1u << 1,
    .scaled_inputs = 3,
    .strided_inputs = 3,
    .accumulate_outputs = 3,
    .matrix_work = true,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .widen = widen,
    .pair_grad = pair_grad,
    .describe = describe,
};

MIXT_PLAY(mixt_matmul_with, out[0] = mixt_matmul_with(b, in[0], in[1], options))

mixt_value mixt_matmul_with(mixt_builder *b, mixt_value x, mixt_value y, const mixt_matmul_options *given)
{
    mixt_matmul_options own = MIXT_OPTIONS(mixt_matmul_options), *o = &own;
    if (!mixt__builder_options(b, NULL, mixt_matmul_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_matmul_with, .in = {x, y}, .in_count = 2, .options = &own, .options_size = sizeof own);
    mixt__matmul_attrs at = {.trans_a = o->trans_a, .trans_b = o->trans_b, .alpha = o->alpha};
    return mixt__builder_node(b, &mixt__op_matmul, NULL, &at, (mixt_value[]){x, y}, 2);
}

/** The layers that lie side by side in a linear layer. */
static bool take_parts(mixt_builder *b, const char *name, const mixt_linear_options *o, mixt__param *weight)
{
    int64_t sum = 0;
    for (int i = 0; i < MIXT_PARTS_MAX && o->parts[i]; i++) {
        if (o->parts[i] < 0 || o->parts[i] > o->features - sum) {
            sum = -1;
            break;
        }
        sum += weight->parts[weight->part_count++] = o->parts[i];
    }
    if (!sum || sum == o->features)
        return true;
    mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name, ".parts must add up to .features, %lld", (long long)o->features);
    return false;
}

MIXT_PLAY(mixt_linear_with, out[0] = mixt_linear_with(b, c->name, in[0], options))

mixt_value mixt_linear_with(mixt_builder *b, const char *name, mixt_value x, const mixt_linear_options *given)
{
    if (!mixt__builder_ready(b, name, &x, 1))
        return (mixt_value){0};
    mixt_linear_options own = MIXT_OPTIONS(mixt_linear_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_linear_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_linear_with, .name = name, .in = {x}, .in_count = 1, .options = &own,
                .options_size = sizeof own);
    if (o->features <= 0)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, name, "linear needs .features of at least 1, got %lld",
                                   (long long)o->features);
    if (o->init != MIXT_AUTO && !mixt__builder_number(b, name, ".init", o->init))
        return (mixt_value){0};
    int64_t k = mixt__last_dim(&b->graph->values[x.id].shape);
    float width = 1.0f / sqrtf((float)(k > 0 ? k : 1));
    mixt__param weight = {.shape = {2, {o->features, k}}, .trainable = true, .decay = true};
    bool own_width = o->init == MIXT_AUTO;
    weight.init = own_width ? MIXT_INIT_UNIFORM : o->init > 0 ? MIXT_INIT_NORMAL : MIXT_INIT_ZERO;
    weight.init_scale = own_width ? width : o->init;
    if (!take_parts(b, name, o, &weight))
        return (mixt_value){0};
    mixt__param bias = {
        .shape = {1, {o->features}}, .trainable = true, .init = own_width ? MIXT_INIT_UNIFORM : MIXT_INIT_ZERO};
    bias.init_scale = width;
    mixt__matmul_attrs at = {.trans_b = true, .bias = !o->no_bias, .alpha = 1.0f};
    mixt_value in[3] = {x, mixt__builder_param(b, name, "weight", &weight)};
    if (at.bias)
        in[2] = mixt__builder_param(b, name, "bias", &bias);
    return mixt__builder_node(b, &mixt__op_matmul, name, &at, in, at.bias ? 3 : 2);
}
