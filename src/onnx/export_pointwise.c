/* Functions of each element as ONNX nodes: a node of mixt is a small program, each of its instructions one or a few. */
#include "onnx/export.h"

#include "ops/attrs.h"

#include <math.h>

/** Instructions that are one op of the same operands. */
static const char *const plain[MIXT_PW_COUNT] = {
    [MIXT_PW_ADD] = "Add",
    [MIXT_PW_SUB] = "Sub",
    [MIXT_PW_MUL] = "Mul",
    [MIXT_PW_DIV] = "Div",
    [MIXT_PW_MAX] = "Max",
    [MIXT_PW_MIN] = "Min",
    [MIXT_PW_RELU] = "Relu",
    [MIXT_PW_SIGMOID] = "Sigmoid",
    [MIXT_PW_TANH] = "Tanh",
    [MIXT_PW_EXP] = "Exp",
    [MIXT_PW_LOG] = "Log",
    [MIXT_PW_SQRT] = "Sqrt",
    [MIXT_PW_ABS] = "Abs",
    [MIXT_PW_FLOOR] = "Floor",
    [MIXT_PW_CEIL] = "Ceil",
    [MIXT_PW_ROUND] = "Round",
    [MIXT_PW_RECIPROCAL] = "Reciprocal",
    [MIXT_PW_HARD_SWISH] = "HardSwish",
    [MIXT_PW_SIN] = "Sin",
    [MIXT_PW_COS] = "Cos",
    [MIXT_PW_ERF] = "Erf",
    [MIXT_PW_POW] = "Pow",
    [MIXT_PW_SOFTPLUS] = "Softplus",
    [MIXT_PW_MISH] = "Mish",
};

static const char *binary(mixt__export *m, const char *op, const char *a, const char *b)
{
    return mixt__export_node(m, op, MIXT_TAKES(a, b), NULL);
}

/** A condition as ONNX has it: whether a number is above 0. */
static const char *above_zero(mixt__export *m, const char *a)
{
    return binary(m, "Greater", a, mixt__export_float(m, 0));
}

/** A truth as 1 or 0. */
static const char *as_number(mixt__export *m, const char *truth)
{
    return mixt__export_node(m, "Cast", MIXT_TAKES(truth), MIXT_GIVES(MIXT_GIVE_INT("to", MIXT_ONNX_FLOAT)));
}

static const char *where(mixt__export *m, const char *condition, const char *yes, const char *no)
{
    return mixt__export_node(m, "Where", MIXT_TAKES(above_zero(m, condition), yes, no), NULL);
}

static const char *scaled(mixt__export *m, const char *a, float factor, float shift)
{
    if (factor != 1)
        a = binary(m, "Mul", a, mixt__export_float(m, factor));
    if (shift != 0)
        a = binary(m, "Add", a, mixt__export_float(m, shift));
    return a;
}

static const char *sigmoid_times(mixt__export *m, const char *a)
{
    return binary(m, "Mul", a, mixt__export_node(m, "Sigmoid", MIXT_TAKES(a), NULL));
}

static const char *clip(mixt__export *m, const char *a, float low, float high)
{
    return mixt__export_node(
        m, "Clip",
        MIXT_TAKES(a, isinf(low) ? "" : mixt__export_float(m, low), isinf(high) ? "" : mixt__export_float(m, high)),
        NULL);
}

/** Those with numbers of their own. @return NULL: it is none of them */
static const char *with_numbers(mixt__export *m, const mixt__pw_instr *f, const char *a)
{
    switch (f->code) {
    case MIXT_PW_AFFINE:
        return scaled(m, a, f->imm, f->imm2);
    case MIXT_PW_LEAKY_RELU:
        return mixt__export_node(m, "LeakyRelu", MIXT_TAKES(a), MIXT_GIVES(MIXT_GIVE_FLOAT("alpha", f->imm)));
    case MIXT_PW_HARD_SIGMOID:
        return mixt__export_node(m, "HardSigmoid", MIXT_TAKES(a),
                                 MIXT_GIVES(MIXT_GIVE_FLOAT("alpha", f->imm), MIXT_GIVE_FLOAT("beta", f->imm2)));
    case MIXT_PW_CLIP:
        return clip(m, a, f->imm, f->imm2);
    case MIXT_PW_POWER:
        return binary(m, "Pow", a, mixt__export_float(m, f->imm));
    case MIXT_PW_ELU:
        a = mixt__export_node(m, "Elu", MIXT_TAKES(a), MIXT_GIVES(MIXT_GIVE_FLOAT("alpha", f->imm)));
        return scaled(m, a, f->imm2, 0);
    default:
        return NULL;
    }
}

/** One instruction. @return NULL: there is no such in a model that predicts */
static const char *instruction(mixt__export *m, const mixt__pw_instr *f, const char *a, const char *b, const char *c)
{
    int operands = mixt__pw_operands[f->code];
    if (plain[f->code])
        return mixt__export_node(m, plain[f->code], operands > 1 ? MIXT_TAKES(a, b) : MIXT_TAKES(a), NULL);
    switch (f->code) {
    case MIXT_PW_COPY:
    case MIXT_PW_DROPOUT: // outside of training
        return a;
    case MIXT_PW_GELU:
        return mixt__export_node(m, "Gelu", MIXT_TAKES(a), MIXT_GIVES(MIXT_GIVE_TEXT("approximate", "tanh")));
    case MIXT_PW_GELU_ERF:
        return mixt__export_node(m, "Gelu", MIXT_TAKES(a), NULL);
    case MIXT_PW_SILU:
        return sigmoid_times(m, a);
    case MIXT_PW_SWIGLU:
        return binary(m, "Mul", sigmoid_times(m, a), b);
    case MIXT_PW_SQUARE:
        return binary(m, "Mul", a, a);
    case MIXT_PW_EQUAL:
        return as_number(m, binary(m, "Equal", a, b));
    case MIXT_PW_LESS:
        return as_number(m, binary(m, "Less", a, b));
    case MIXT_PW_WHERE:
        return where(m, a, b, mixt__export_float(m, 0));
    case MIXT_PW_WHERE_NOT:
        return where(m, a, mixt__export_float(m, 0), b);
    case MIXT_PW_SELECT:
        return where(m, a, b, c);
    default:
        return with_numbers(m, f, a);
    }
}

/** Channels stay in front where an operand has them there and all are of the result's dimensions. */
static mixt__onnx_order order_of(const mixt__export *m, const mixt__node *n)
{
    int rank = m->g->values[n->out[0]].shape.rank;
    bool first = false;
    for (int i = 0; i < n->in_count; i++) {
        if (m->g->values[n->in[i]].shape.rank != rank)
            return MIXT_ONNX_NATURAL;
        first = first || mixt__export_is_first(m, n->in[i]);
    }
    return first ? MIXT_ONNX_FIRST : MIXT_ONNX_NATURAL;
}

/** Whether a result is larger than its operands make it. */
static bool is_expanded(const mixt__export *m, const mixt__node *n)
{
    const mixt__shape *out = &m->g->values[n->out[0]].shape;
    for (int i = 1; i <= out->rank; i++) {
        int64_t most = 1;
        for (int k = 0; k < n->in_count; k++) {
            const mixt__shape *s = &m->g->values[n->in[k]].shape;
            if (i <= s->rank && s->dims[s->rank - i] > most)
                most = s->dims[s->rank - i];
        }
        if (most != out->dims[out->rank - i])
            return true;
    }
    return false;
}

void mixt__onnx_put_pointwise(mixt__export *m, const mixt__node *n)
{
    const mixt__pointwise_attrs *at = n->attrs;
    const char *operands[MIXT_PW_MAX_INPUTS + MIXT_PW_MAX_INSTRS];
    mixt__onnx_order order = order_of(m, n);
    if (is_expanded(m, n)) {
        mixt__export_refuse(m, "a value that is repeated to a larger shape is not written yet");
        return;
    }
    for (int i = 0; i < n->in_count; i++)
        operands[i] = mixt__export_in(m, i, order);
    for (int i = 0; i < at->instr_count; i++) {
        const mixt__pw_instr *f = &at->instrs[i];
        int count = mixt__pw_operands[f->code];
        const char *made =
            instruction(m, f, operands[f->a], count > 1 ? operands[f->b] : NULL, count > 2 ? operands[f->c] : NULL);
        if (!made) {
            mixt__export_refuse(m, "%s is not written yet", mixt__pw_names[f->code]);
            return;
        }
        operands[at->in_count + i] = made;
    }
    for (int o = 0; o < at->out_count; o++)
        mixt__export_give(m, o, order, operands[at->outs[o]]);
}
