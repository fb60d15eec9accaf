/* Public functions of each element, made of one pointwise instruction or a few. */
#include "ops/rules.h"

#include "mixt/ops.h"

static mixt_value one(mixt_builder *b, mixt__pw_instr instr, mixt_value x)
{
    return mixt__pointwise_apply(b, instr, &x, NULL);
}

static mixt_value two(mixt_builder *b, mixt__pw_code code, mixt_value x, mixt_value y)
{
    return mixt__pointwise_apply(b, (mixt__pw_instr){.code = code}, (mixt_value[]){x, y}, NULL);
}

#define UNARY(function, code_)                                                                                         \
    MIXT_PLAY(function, out[0] = function(b, in[0]))                                                                   \
    mixt_value function(mixt_builder *b, mixt_value x)                                                                 \
    {                                                                                                                  \
        MIXT_RECORD(b, function, .in = {x}, .in_count = 1);                                                            \
        return one(b, (mixt__pw_instr){.code = MIXT_PW_##code_}, x);                                                   \
    }
#define BINARY(function, code_)                                                                                        \
    MIXT_PLAY(function, out[0] = function(b, in[0], in[1]))                                                            \
    mixt_value function(mixt_builder *b, mixt_value x, mixt_value y)                                                   \
    {                                                                                                                  \
        MIXT_RECORD(b, function, .in = {x, y}, .in_count = 2);                                                         \
        return two(b, MIXT_PW_##code_, x, y);                                                                          \
    }
UNARY(mixt_abs, ABS)
UNARY(mixt_floor, FLOOR)
UNARY(mixt_ceil, CEIL)
UNARY(mixt_round, ROUND)
UNARY(mixt_reciprocal, RECIPROCAL)
UNARY(mixt_sin, SIN)
UNARY(mixt_cos, COS)
UNARY(mixt_erf, ERF)
UNARY(mixt_softplus, SOFTPLUS)
UNARY(mixt_mish, MISH)
UNARY(mixt_hard_swish, HARD_SWISH)
BINARY(mixt_pow, POW)
BINARY(mixt_equal, EQUAL)
BINARY(mixt_less, LESS)
#undef UNARY
#undef BINARY

/** A function with one constant or two that have to be finite; `unbounded`: infinities too. */
static mixt_value constant(mixt_builder *b, const char *what, mixt__pw_instr instr, mixt_value x, bool unbounded)
{
    const float values[2] = {instr.imm, instr.imm2};
    for (int i = 0; i < 2; i++)
        if (values[i] != values[i] || (!unbounded && values[i] - values[i] != 0))
            return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "%s with a constant of %g", what,
                                       (double)values[i]);
    return one(b, instr, x);
}

#define CONSTANT(function, code_, name, unbounded, first, second)                                                      \
    MIXT_RECORD(b, function, .in = {x}, .in_count = 1, .reals = {first, second});                                      \
    return constant(b, name, (mixt__pw_instr){.code = MIXT_PW_##code_, .imm = (first), .imm2 = (second)}, x, unbounded)

MIXT_PLAY(mixt_hard_sigmoid, out[0] = mixt_hard_sigmoid(b, in[0], c->reals[0], c->reals[1]))
mixt_value mixt_hard_sigmoid(mixt_builder *b, mixt_value x, float slope, float shift)
{
    CONSTANT(mixt_hard_sigmoid, HARD_SIGMOID, "hard_sigmoid", false, slope, shift);
}

MIXT_PLAY(mixt_leaky_relu, out[0] = mixt_leaky_relu(b, in[0], c->reals[0]))
mixt_value mixt_leaky_relu(mixt_builder *b, mixt_value x, float slope)
{
    CONSTANT(mixt_leaky_relu, LEAKY_RELU, "leaky_relu", false, slope, 0.0f);
}

MIXT_PLAY(mixt_elu, out[0] = mixt_elu(b, in[0], c->reals[0]))
mixt_value mixt_elu(mixt_builder *b, mixt_value x, float alpha)
{
    CONSTANT(mixt_elu, ELU, "elu", false, alpha, 1.0f);
}

MIXT_PLAY(mixt_selu, out[0] = mixt_selu(b, in[0]))
mixt_value mixt_selu(mixt_builder *b, mixt_value x)
{
    MIXT_RECORD(b, mixt_selu, .in = {x}, .in_count = 1);
    return one(b, (mixt__pw_instr){.code = MIXT_PW_ELU, .imm = 1.67326324f, .imm2 = 1.05070099f}, x);
}

MIXT_PLAY(mixt_power, out[0] = mixt_power(b, in[0], c->reals[0]))
mixt_value mixt_power(mixt_builder *b, mixt_value x, float exponent)
{
    if (exponent == 2)
        return mixt_square(b, x);
    CONSTANT(mixt_power, POWER, "power", false, exponent, 0.0f);
}

MIXT_PLAY(mixt_clip, out[0] = mixt_clip(b, in[0], c->reals[0], c->reals[1]))
mixt_value mixt_clip(mixt_builder *b, mixt_value x, float low, float high)
{
    if (low > high)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "clip from %g to %g: the first is above the second",
                                   (double)low, (double)high);
    CONSTANT(mixt_clip, CLIP, "clip", true, low, high);
}

mixt_value mixt_greater(mixt_builder *b, mixt_value x, mixt_value y)
{
    return mixt_less(b, y, x);
}

MIXT_PLAY(mixt_not, out[0] = mixt_not(b, in[0]))
mixt_value mixt_not(mixt_builder *b, mixt_value x)
{
    MIXT_RECORD(b, mixt_not, .in = {x}, .in_count = 1);
    return mixt_affine(b, two(b, MIXT_PW_WHERE, x, mixt_equal(b, x, x)), -1.0f, 1.0f);
}

MIXT_PLAY(mixt_select, out[0] = mixt_select(b, in[0], in[1], in[2]))
mixt_value mixt_select(mixt_builder *b, mixt_value condition, mixt_value x, mixt_value y)
{
    MIXT_RECORD(b, mixt_select, .in = {condition, x, y}, .in_count = 3);
    return mixt__pointwise_apply(b, (mixt__pw_instr){.code = MIXT_PW_SELECT}, (mixt_value[]){condition, x, y}, NULL);
}

MIXT_PLAY(mixt_prelu, out[0] = mixt_prelu(b, in[0], in[1]))
mixt_value mixt_prelu(mixt_builder *b, mixt_value x, mixt_value slope)
{
    MIXT_RECORD(b, mixt_prelu, .in = {x, slope}, .in_count = 2);
    return mixt_select(b, x, x, mixt_mul(b, x, slope));
}
