/* Pointwise programs: every unary and binary map is a one-instruction program; fusion concatenates them. */
#include "ops/rules.h"

#include <stdio.h>
#include <string.h>

const char *const mixt__pw_names[MIXT_PW_COUNT] = {
#define MIXT_PW_NAME(code, name, operands) name,
    MIXT_POINTWISE_LIST(MIXT_PW_NAME)
#undef MIXT_PW_NAME
};

const int mixt__pw_operands[MIXT_PW_COUNT] = {
#define MIXT_PW_OPERANDS(code, name, operands) operands,
    MIXT_POINTWISE_LIST(MIXT_PW_OPERANDS)
#undef MIXT_PW_OPERANDS
};

/** Extends `shape` so that `other` broadcasts to it; false when they do not fit. */
static bool broadcast(mixt__shape *shape, const mixt__shape *other)
{
    mixt__shape result = {.rank = shape->rank > other->rank ? shape->rank : other->rank};
    for (int i = 1; i <= result.rank; i++) {
        int64_t a = i <= shape->rank ? shape->dims[shape->rank - i] : 1;
        int64_t b = i <= other->rank ? other->dims[other->rank - i] : 1;
        if (a != b && a != 1 && b != 1)
            return false;
        result.dims[result.rank - i] = a == 1 ? b : a;
    }
    *shape = result;
    return true;
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__pointwise_attrs *at = node->attrs;
    mixt__shape shape = at->has_domain ? at->domain : mixt__in(graph, node, 0)->shape;
    mixt_dtype dtype = MIXT_DTYPE_NONE;
    if (node->in_count != at->in_count)
        return mixt__fail(MIXT_ERROR_INTERNAL, "pointwise program of %d inputs got %d", at->in_count, node->in_count);
    for (int i = 0; i < node->in_count; i++) {
        const mixt__value *v = mixt__in(graph, node, i);
        char ta[128], tb[128];
        mixt__shape before = shape;
        if (!mixt_dtype_is_float(v->dtype))
            return mixt__fail(MIXT_ERROR_DTYPE, "%s needs floating-point operands, got %s",
                              mixt__pw_names[at->instrs[0].code], mixt_dtype_name(v->dtype));
        if (!broadcast(&shape, &v->shape) || (at->has_domain && !mixt__shape_equal(&shape, &at->domain)))
            return mixt__fail(MIXT_ERROR_SHAPE, "%s: %s and %s do not broadcast", mixt__pw_names[at->instrs[0].code],
                              mixt__shape_text(&before, ta, sizeof ta), mixt__shape_text(&v->shape, tb, sizeof tb));
        dtype = mixt__dtype_widest(dtype, v->dtype);
    }
    for (int o = 0; o < at->out_count; o++)
        mixt__set_out(r, o, &shape, at->out_dtypes[o] != MIXT_DTYPE_NONE ? at->out_dtypes[o] : dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__pointwise_attrs *at = node->attrs;
    return (double)at->instr_count * (double)mixt__shape_count(&graph->values[node->out[0]].shape);
}

mixt_status mixt__gradient_pointwise(mixt__gradients *g, mixt__pw_instr instr, const int32_t *in, int in_count,
                                     mixt_dtype dtype, int32_t *out)
{
    mixt__pointwise_attrs at = {.in_count = in_count, .instr_count = 1, .out_count = 1};
    instr.a = 0;
    instr.b = in_count > 1 ? 1 : 0;
    instr.c = in_count > 2 ? 2 : 0;
    at.instrs[0] = instr;
    at.outs[0] = in_count;
    at.out_dtypes[0] = dtype;
    return mixt__gradient_node(g, &mixt__op_pointwise, &at, in, in_count, out);
}

/** Sums a contribution of the output's shape down to the shape of a broadcast operand, then adds it. */
static mixt_status contribute(mixt__gradients *g, int32_t target, int32_t contribution)
{
    mixt__shape from = g->graph->values[contribution].shape, to = g->graph->values[target].shape;
    if (mixt__shape_equal(&from, &to))
        return mixt__gradient_add(g, target, contribution);
    mixt__reduce_attrs sum = {.keep_dims = true};
    for (int i = 0; i < from.rank; i++) {
        int j = i - (from.rank - to.rank);
        if (j < 0 || (to.dims[j] == 1 && from.dims[i] != 1))
            sum.axes |= 1u << i;
    }
    int32_t reduced = contribution;
    if (sum.axes)
        MIXT_TRY(mixt__gradient_node(g, &mixt__op_reduce, &sum, &contribution, 1, &reduced));
    MIXT_TRY(mixt__gradient_reshape(g, reduced, &to, &reduced));
    return mixt__gradient_add(g, target, reduced);
}

/** A one-instruction contribution to input `i` of the node. */
static mixt_status emit(mixt__gradients *g, int32_t target, mixt__pw_instr instr, const int32_t *in, int in_count)
{
    int32_t out;
    if (!mixt__gradient_wanted(g, target))
        return MIXT_OK;
    mixt_dtype dtype = g->graph->values[target].gradient;
    MIXT_TRY(mixt__gradient_pointwise(g, instr, in, in_count, dtype, &out));
    return contribute(g, target, out);
}

/** Functions whose derivative is an instruction of its own that reads the input and has the same constants. */
static mixt_status grad_by_input(mixt__gradients *g, mixt__pw_instr f, int32_t x, int32_t dy)
{
    static const mixt__pw_code pairs[][2] = {{MIXT_PW_ABS, MIXT_PW_ABS_GRAD},
                                             {MIXT_PW_LEAKY_RELU, MIXT_PW_LEAKY_RELU_GRAD},
                                             {MIXT_PW_HARD_SIGMOID, MIXT_PW_HARD_SIGMOID_GRAD},
                                             {MIXT_PW_HARD_SWISH, MIXT_PW_HARD_SWISH_GRAD},
                                             {MIXT_PW_CLIP, MIXT_PW_CLIP_GRAD},
                                             {MIXT_PW_ERF, MIXT_PW_ERF_GRAD},
                                             {MIXT_PW_ELU, MIXT_PW_ELU_GRAD},
                                             {MIXT_PW_SOFTPLUS, MIXT_PW_SOFTPLUS_GRAD},
                                             {MIXT_PW_MISH, MIXT_PW_MISH_GRAD}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (pairs[i][0] == f.code)
            return emit(g, x, (mixt__pw_instr){.code = pairs[i][1], .imm = f.imm, .imm2 = f.imm2}, (int32_t[]){x, dy},
                        2);
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "'%s' has no gradient", mixt__pw_names[f.code]);
}

static mixt_status grad_unary(mixt__gradients *g, mixt__pw_instr f, int32_t x, int32_t y, int32_t dy)
{
#define EMIT(code_, ...)                                                                                               \
    emit(g, x, (mixt__pw_instr){.code = MIXT_PW_##code_}, (int32_t[]){__VA_ARGS__},                                    \
         (int)(sizeof((int32_t[]){__VA_ARGS__}) / 4))
    int32_t t;
    switch (f.code) {
    case MIXT_PW_COPY:
        return EMIT(COPY, dy);
    case MIXT_PW_RELU:
        return EMIT(RELU_GRAD, y, dy);
    case MIXT_PW_GELU:
        return EMIT(GELU_GRAD, x, dy);
    case MIXT_PW_GELU_ERF:
        return EMIT(GELU_ERF_GRAD, x, dy);
    case MIXT_PW_SILU:
        return EMIT(SILU_GRAD, x, dy);
    case MIXT_PW_SIGMOID:
        return EMIT(SIGMOID_GRAD, y, dy);
    case MIXT_PW_TANH:
        return EMIT(TANH_GRAD, y, dy);
    case MIXT_PW_EXP:
        return EMIT(MUL, y, dy);
    case MIXT_PW_LOG:
        return EMIT(DIV, dy, x);
    case MIXT_PW_SQRT:
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_AFFINE, .imm = 2}, &y, 1, MIXT_DTYPE_NONE,
                                          &t));
        return EMIT(DIV, dy, t);
    case MIXT_PW_SQUARE:
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_AFFINE, .imm = 2}, &x, 1, MIXT_DTYPE_NONE,
                                          &t));
        return EMIT(MUL, dy, t);
    case MIXT_PW_AFFINE:
        return emit(g, x, (mixt__pw_instr){.code = MIXT_PW_AFFINE, .imm = f.imm}, &dy, 1);
    case MIXT_PW_DROPOUT: // the same stream and element index give the same mask
        return emit(g, x, (mixt__pw_instr){.code = MIXT_PW_DROPOUT, .imm = f.imm, .key = f.key}, &dy, 1);
    case MIXT_PW_RECIPROCAL:
        return EMIT(RECIPROCAL_GRAD, y, dy);
    case MIXT_PW_COS:
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_SIN}, &x, 1, MIXT_DTYPE_NONE, &t));
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_AFFINE, .imm = -1}, &t, 1,
                                          MIXT_DTYPE_NONE, &t));
        return EMIT(MUL, dy, t);
    case MIXT_PW_SIN:
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_COS}, &x, 1, MIXT_DTYPE_NONE, &t));
        return EMIT(MUL, dy, t);
    case MIXT_PW_POWER: // imm · x^(imm - 1) · dy
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_POWER, .imm = f.imm - 1}, &x, 1,
                                          MIXT_DTYPE_NONE, &t));
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_AFFINE, .imm = f.imm}, &t, 1,
                                          MIXT_DTYPE_NONE, &t));
        return EMIT(MUL, dy, t);
    case MIXT_PW_FLOOR:
    case MIXT_PW_CEIL:
    case MIXT_PW_ROUND: // flat but for steps
        return MIXT_OK;
    default:
        return grad_by_input(g, f, x, dy);
    }
#undef EMIT
}

/** Both from what came in, so that nothing but that is kept; by one program that reads it once where it can. */
static mixt_status grad_swiglu(mixt__gradients *g, int32_t a, int32_t b, int32_t dy)
{
    const mixt__value *values = g->graph->values;
    const mixt__pw_instr mul = {.code = MIXT_PW_MUL}, slope = {.code = MIXT_PW_SILU_GRAD},
                         same = {.code = MIXT_PW_SWIGLU};
    bool both = mixt__gradient_wanted(g, a) && mixt__gradient_wanted(g, b) &&
                mixt__shape_equal(&values[a].shape, &values[dy].shape) &&
                mixt__shape_equal(&values[b].shape, &values[dy].shape);
    int32_t t;
    if (both) {
        mixt__pointwise_attrs at = {.in_count = 3, .instr_count = 3, .out_count = 2, .outs = {4, 5}};
        at.instrs[0] = (mixt__pw_instr){.code = MIXT_PW_MUL, .a = 2, .b = 1};
        at.instrs[1] = (mixt__pw_instr){.code = MIXT_PW_SILU_GRAD, .a = 0, .b = 3};
        at.instrs[2] = (mixt__pw_instr){.code = MIXT_PW_SWIGLU, .a = 0, .b = 2};
        at.out_dtypes[0] = values[a].gradient;
        at.out_dtypes[1] = values[b].gradient;
        return mixt__gradient_emit(g, &mixt__op_pointwise, &at, (int32_t[]){a, b, dy}, 3, (int32_t[]){a, b});
    }
    if (mixt__gradient_wanted(g, a)) {
        MIXT_TRY(mixt__gradient_pointwise(g, mul, (int32_t[]){dy, b}, 2, MIXT_DTYPE_NONE, &t));
        MIXT_TRY(emit(g, a, slope, (int32_t[]){a, t}, 2));
    }
    return emit(g, b, same, (int32_t[]){a, dy}, 2);
}

/** a^b: dy · b · a^(b - 1), and dy · a^b · log(a) where a is above 0. */
static mixt_status grad_pow(mixt__gradients *g, int32_t a, int32_t b, int32_t y, int32_t dy)
{
    const mixt__pw_instr mul = {.code = MIXT_PW_MUL};
    int32_t t;
    if (mixt__gradient_wanted(g, a)) {
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_AFFINE, .imm = 1, .imm2 = -1}, &b, 1,
                                          MIXT_DTYPE_NONE, &t));
        MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_POW}, (int32_t[]){a, t}, 2,
                                          MIXT_DTYPE_NONE, &t));
        MIXT_TRY(mixt__gradient_pointwise(g, mul, (int32_t[]){t, b}, 2, MIXT_DTYPE_NONE, &t));
        MIXT_TRY(emit(g, a, mul, (int32_t[]){dy, t}, 2));
    }
    if (!mixt__gradient_wanted(g, b))
        return MIXT_OK;
    MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_LOG}, &a, 1, MIXT_DTYPE_NONE, &t));
    MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_WHERE}, (int32_t[]){a, t}, 2, MIXT_DTYPE_NONE,
                                      &t));
    MIXT_TRY(mixt__gradient_pointwise(g, mul, (int32_t[]){t, y}, 2, MIXT_DTYPE_NONE, &t));
    return emit(g, b, mul, (int32_t[]){dy, t}, 2);
}

static mixt_status grad_binary(mixt__gradients *g, mixt__pw_instr f, int32_t a, int32_t b, int32_t y, int32_t dy)
{
    const mixt__pw_instr copy = {.code = MIXT_PW_COPY}, mul = {.code = MIXT_PW_MUL}, div = {.code = MIXT_PW_DIV},
                         minus = {.code = MIXT_PW_AFFINE, .imm = -1};
    int32_t t;
    switch (f.code) {
    case MIXT_PW_ADD:
        MIXT_TRY(emit(g, a, copy, &dy, 1));
        return emit(g, b, copy, &dy, 1);
    case MIXT_PW_SUB:
        MIXT_TRY(emit(g, a, copy, &dy, 1));
        return emit(g, b, minus, &dy, 1);
    case MIXT_PW_MUL:
        MIXT_TRY(emit(g, a, mul, (int32_t[]){dy, b}, 2));
        return emit(g, b, mul, (int32_t[]){dy, a}, 2);
    case MIXT_PW_DIV: // d(a/b) = dy/b and -(dy/b)·y
        MIXT_TRY(emit(g, a, div, (int32_t[]){dy, b}, 2));
        if (!mixt__gradient_wanted(g, b))
            return MIXT_OK;
        MIXT_TRY(mixt__gradient_pointwise(g, div, (int32_t[]){dy, b}, 2, MIXT_DTYPE_NONE, &t));
        MIXT_TRY(mixt__gradient_pointwise(g, minus, &t, 1, MIXT_DTYPE_NONE, &t));
        return emit(g, b, mul, (int32_t[]){t, y}, 2);
    case MIXT_PW_SWIGLU:
        return grad_swiglu(g, a, b, dy);
    case MIXT_PW_WHERE: // what chooses has no slope
        return emit(g, b, (mixt__pw_instr){.code = MIXT_PW_WHERE}, (int32_t[]){a, dy}, 2);
    case MIXT_PW_WHERE_NOT:
        return emit(g, b, (mixt__pw_instr){.code = MIXT_PW_WHERE_NOT}, (int32_t[]){a, dy}, 2);
    case MIXT_PW_POW:
        return grad_pow(g, a, b, y, dy);
    case MIXT_PW_EQUAL:
    case MIXT_PW_LESS: // flat but for steps
        return MIXT_OK;
    case MIXT_PW_MAX:
        MIXT_TRY(emit(g, a, (mixt__pw_instr){.code = MIXT_PW_SELECT_GE}, (int32_t[]){a, b, dy}, 3));
        return emit(g, b, (mixt__pw_instr){.code = MIXT_PW_SELECT_LT}, (int32_t[]){a, b, dy}, 3);
    case MIXT_PW_MIN:
        MIXT_TRY(emit(g, a, (mixt__pw_instr){.code = MIXT_PW_SELECT_LT}, (int32_t[]){a, b, dy}, 3));
        return emit(g, b, (mixt__pw_instr){.code = MIXT_PW_SELECT_GE}, (int32_t[]){a, b, dy}, 3);
    default:
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "'%s' has no gradient", mixt__pw_names[f.code]);
    }
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    const mixt__pointwise_attrs *at = node->attrs;
    int32_t dy = mixt__gradient_of(g, node->out[0]);
    if (at->instr_count != 1)
        return mixt__fail(MIXT_ERROR_INTERNAL, "differentiation runs before fusion");
    if (at->instrs[0].code == MIXT_PW_SELECT) { // what chooses has no slope
        const mixt__pw_instr yes = {.code = MIXT_PW_WHERE}, no = {.code = MIXT_PW_WHERE_NOT};
        MIXT_TRY(emit(g, node->in[1], yes, (int32_t[]){node->in[0], dy}, 2));
        return emit(g, node->in[2], no, (int32_t[]){node->in[0], dy}, 2);
    }
    if (at->in_count == 1)
        return grad_unary(g, at->instrs[0], node->in[0], node->out[0], dy);
    return grad_binary(g, at->instrs[0], node->in[0], node->in[1], node->out[0], dy);
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__pointwise_attrs *at = attrs;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < at->instr_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "", mixt__pw_names[at->instrs[i].code]);
}

static bool is_random(const mixt__node *node)
{
    const mixt__pointwise_attrs *at = node->attrs;
    for (int i = 0; i < at->instr_count; i++)
        if (at->instrs[i].code == MIXT_PW_DROPOUT)
            return true;
    return false;
}

const mixt__op mixt__op_pointwise = {
    .name = "pointwise",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_POINTWISE,
    .attrs_size = sizeof(mixt__pointwise_attrs),
    .in_place_inputs = (1u << MIXT_PW_MAX_INPUTS) - 1,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .random = is_random,
    .describe = describe,
};

/* ---- accumulate: a parameter gradient gains a value of any float format ---- */

static mixt_status accumulate_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__set_out(r, 0, &mixt__in(graph, node, 0)->shape, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

const mixt__op mixt__op_accumulate = {
    .name = "accumulate",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_POINTWISE,
    .accumulate_outputs = 1,
    .infer = accumulate_infer,
};

/* ---- the public functions ---- */

mixt_value mixt__pointwise_apply(mixt_builder *b, mixt__pw_instr instr, const mixt_value *in, const mixt__shape *domain)
{
    int count = mixt__pw_operands[instr.code];
    mixt__pointwise_attrs at = {.in_count = count, .instr_count = 1, .out_count = 1};
    instr.b = count > 1;
    instr.c = count > 2 ? 2 : 0;
    at.instrs[0] = instr;
    at.outs[0] = count;
    if (domain) {
        at.has_domain = true;
        at.domain = *domain;
    }
    return mixt__builder_node(b, &mixt__op_pointwise, NULL, &at, in, count);
}

static mixt_value apply(mixt_builder *b, mixt__pw_instr instr, mixt_value x, mixt_value y, mixt_dtype dtype)
{
    int count = mixt__pw_operands[instr.code];
    mixt__pointwise_attrs at = {.in_count = count, .instr_count = 1, .out_count = 1};
    instr.b = count > 1;
    at.instrs[0] = instr;
    at.outs[0] = count;
    at.out_dtypes[0] = dtype;
    at.cast_by_hand = dtype != MIXT_DTYPE_NONE;
    return mixt__builder_node(b, &mixt__op_pointwise, NULL, &at, (mixt_value[]){x, y}, count);
}

#define DEFINE_UNARY(function, code_)                                                                                  \
    MIXT_PLAY(function, out[0] = function(b, in[0]))                                                                   \
    mixt_value function(mixt_builder *b, mixt_value x)                                                                 \
    {                                                                                                                  \
        MIXT_RECORD(b, function, .in = {x}, .in_count = 1);                                                            \
        return apply(b, (mixt__pw_instr){.code = MIXT_PW_##code_}, x, x, MIXT_DTYPE_NONE);                             \
    }
#define DEFINE_BINARY(function, code_)                                                                                 \
    MIXT_PLAY(function, out[0] = function(b, in[0], in[1]))                                                            \
    mixt_value function(mixt_builder *b, mixt_value x, mixt_value y)                                                   \
    {                                                                                                                  \
        MIXT_RECORD(b, function, .in = {x, y}, .in_count = 2);                                                         \
        return apply(b, (mixt__pw_instr){.code = MIXT_PW_##code_}, x, y, MIXT_DTYPE_NONE);                             \
    }
DEFINE_UNARY(mixt_relu, RELU)
DEFINE_UNARY(mixt_gelu, GELU)
DEFINE_UNARY(mixt_gelu_erf, GELU_ERF)
DEFINE_UNARY(mixt_silu, SILU)
DEFINE_UNARY(mixt_sigmoid, SIGMOID)
DEFINE_UNARY(mixt_tanh, TANH)
DEFINE_UNARY(mixt_exp, EXP)
DEFINE_UNARY(mixt_log, LOG)
DEFINE_UNARY(mixt_sqrt, SQRT)
DEFINE_UNARY(mixt_square, SQUARE)
DEFINE_BINARY(mixt_add, ADD)
DEFINE_BINARY(mixt_sub, SUB)
DEFINE_BINARY(mixt_mul, MUL)
DEFINE_BINARY(mixt_div, DIV)
DEFINE_BINARY(mixt_swiglu, SWIGLU)
DEFINE_BINARY(mixt_maximum, MAX)
DEFINE_BINARY(mixt_minimum, MIN)
DEFINE_BINARY(mixt_where, WHERE)
#undef DEFINE_UNARY
#undef DEFINE_BINARY

mixt_value mixt_neg(mixt_builder *b, mixt_value x)
{
    return mixt_affine(b, x, -1.0f, 0.0f);
}

MIXT_PLAY(mixt_affine, out[0] = mixt_affine(b, in[0], c->reals[0], c->reals[1]))
mixt_value mixt_affine(mixt_builder *b, mixt_value x, float factor, float shift)
{
    MIXT_RECORD(b, mixt_affine, .in = {x}, .in_count = 1, .reals = {factor, shift});
    return apply(b, (mixt__pw_instr){.code = MIXT_PW_AFFINE, .imm = factor, .imm2 = shift}, x, x, MIXT_DTYPE_NONE);
}

MIXT_PLAY(mixt_dropout, out[0] = mixt_dropout(b, in[0], c->reals[0]))
mixt_value mixt_dropout(mixt_builder *b, mixt_value x, float rate)
{
    MIXT_RECORD(b, mixt_dropout, .in = {x}, .in_count = 1, .reals = {rate});
    if (!(rate >= 0 && rate < 1))
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "dropout rate %g: must be at least 0 and below 1",
                                   (double)rate);
    if (rate == 0 || !mixt_builder_training(b))
        return x;
    return apply(b, (mixt__pw_instr){.code = MIXT_PW_DROPOUT, .imm = rate, .key = ++b->rng_streams}, x, x,
                 MIXT_DTYPE_NONE);
}

MIXT_PLAY(mixt_cast, out[0] = mixt_cast(b, in[0], (mixt_dtype)c->numbers[0]))
mixt_value mixt_cast(mixt_builder *b, mixt_value x, mixt_dtype dtype)
{
    MIXT_RECORD(b, mixt_cast, .in = {x}, .in_count = 1, .numbers = {dtype});
    char names[MIXT_FORMAT_NAMES];
    if (!mixt__format_may(dtype, MIXT_MAY_HOLD))
        return mixt__builder_error(b, MIXT_ERROR_DTYPE, NULL, "cast to %s: a model's values are %s",
                                   mixt_dtype_name(dtype),
                                   mixt__format_names(MIXT_MAY_HOLD, "or", names, sizeof names));
    return apply(b, (mixt__pw_instr){.code = MIXT_PW_COPY}, x, x, dtype);
}
