/* Pointwise programs, element by element in double: obvious, slow, right. */
#include "backend/cpu/kernels.h"
#include "backend/cpu/pointwise/pointwise.h"
#include "base/rng.h"
#include "num/num.h"

#include <math.h>

/** Half of 1 + tanh(u), u = sqrt(2/pi)·(x + 0.044715·x³). */
static double gelu_gate(double x)
{
    return 1.0 / (1.0 + exp(-2.0 * 0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    if (fabs(x) > 40) // where the limits are reached and x³ may not be finite
        return x > 0;
    double s = gelu_gate(x);
    return s + x * s * (1.0 - s) * 2.0 * 0.79788456080286536 * (1.0 + 3.0 * 0.044715 * x * x);
}

/** Of the normal distribution, what lies below x. */
static double normal_share(double x)
{
    return 0.5 * erfc(x * -0.70710678118654752);
}

/** Far out, where a times the other share would be infinity times 0, the limit is reached. */
static double silu_slope(double x)
{
    double s = 1.0 / (1.0 + exp(-x)), near = x < -800 ? -800 : x > 800 ? 800 : x;
    return s * (1.0 + near * (1.0 - s));
}

static double dropout(const mixt__pw_instr *in, double a, uint64_t rng_key, int64_t index)
{
    mixt__rng_block block = mixt__rng_block_at(mixt__pw_dropout_key(rng_key, in->key), (uint64_t)index / 4);
    bool kept = block.word[index % 4] >> 8 >= mixt__pw_dropout_threshold(in->imm);
    return kept ? a * (double)mixt__pw_dropout_scale(in->imm) : 0.0;
}

static double arithmetic(const mixt__pw_instr *in, double a, double b, double c)
{
    switch (in->code) {
    case MIXT_PW_ADD:
        return a + b;
    case MIXT_PW_SUB:
        return a - b;
    case MIXT_PW_MUL:
        return a * b;
    case MIXT_PW_DIV:
        return a / b;
    case MIXT_PW_MAX:
        return isnan(a) || a > b ? a : b;
    case MIXT_PW_MIN:
        return isnan(a) || a < b ? a : b;
    case MIXT_PW_SELECT_GE:
        return a >= b ? c : 0;
    case MIXT_PW_SELECT_LT:
        return a < b ? c : 0;
    case MIXT_PW_WHERE:
        return a > 0 ? b : 0;
    case MIXT_PW_AFFINE:
        return a * (double)in->imm + (double)in->imm2;
    case MIXT_PW_SQUARE:
        return a * a;
    default:
        return a; // COPY
    }
}

static double function(const mixt__pw_instr *in, double a, double b)
{
    switch (in->code) {
    case MIXT_PW_RELU:
        return a <= 0 ? 0 : a;
    case MIXT_PW_RELU_GRAD:
        return a > 0 ? b : 0;
    case MIXT_PW_GELU:
        return a * gelu_gate(a);
    case MIXT_PW_GELU_GRAD:
        return gelu_slope(a) * b;
    case MIXT_PW_GELU_ERF:
        return a * normal_share(a);
    case MIXT_PW_GELU_ERF_GRAD:
        return (fabs(a) > 40 ? a > 0 : normal_share(a) + a * 0.3989422804014327 * exp(-0.5 * a * a)) * b;
    case MIXT_PW_SILU:
        return a / (1.0 + exp(-a));
    case MIXT_PW_SILU_GRAD:
        return silu_slope(a) * b;
    case MIXT_PW_SWIGLU:
        return a / (1.0 + exp(-a)) * b;
    case MIXT_PW_SIGMOID:
        return 1.0 / (1.0 + exp(-a));
    case MIXT_PW_SIGMOID_GRAD:
        return a * (1.0 - a) * b;
    case MIXT_PW_TANH:
        return tanh(a);
    case MIXT_PW_TANH_GRAD:
        return (1.0 - a * a) * b;
    case MIXT_PW_EXP:
        return exp(a);
    case MIXT_PW_LOG:
        return log(a);
    default:
        return sqrt(a); // SQRT
    }
}

static double pieces(const mixt__pw_instr *in, double a, double b, double c)
{
    double low = (double)in->imm, high = (double)in->imm2, line = a * low + high;
    switch (in->code) {
    case MIXT_PW_ABS:
        return fabs(a);
    case MIXT_PW_ABS_GRAD:
        return a > 0 ? b : a < 0 ? -b : 0;
    case MIXT_PW_FLOOR:
        return floor(a);
    case MIXT_PW_CEIL:
        return ceil(a);
    case MIXT_PW_ROUND:
        return rint(a);
    case MIXT_PW_RECIPROCAL:
        return 1 / a;
    case MIXT_PW_RECIPROCAL_GRAD:
        return -a * a * b;
    case MIXT_PW_LEAKY_RELU:
        return a > 0 ? a : a * low;
    case MIXT_PW_LEAKY_RELU_GRAD:
        return a > 0 ? b : b * low;
    case MIXT_PW_HARD_SIGMOID:
        return line < 0 ? 0 : line > 1 ? 1 : line;
    case MIXT_PW_HARD_SIGMOID_GRAD:
        return line > 0 && line < 1 ? b * low : 0;
    case MIXT_PW_HARD_SWISH:
        return a <= -3 ? 0 : a >= 3 ? a : a * (a / 6 + 0.5);
    case MIXT_PW_HARD_SWISH_GRAD:
        return a <= -3 ? 0 : a >= 3 ? b : (a / 3 + 0.5) * b;
    case MIXT_PW_CLIP:
        return a < low ? low : a > high ? high : a;
    case MIXT_PW_CLIP_GRAD:
        return a >= low && a <= high ? b : 0;
    case MIXT_PW_EQUAL:
        return a == b;
    case MIXT_PW_LESS:
        return a < b;
    case MIXT_PW_WHERE_NOT:
        return a > 0 ? 0 : b;
    default:
        return a > 0 ? b : c; // SELECT
    }
}

static double log_one_plus_exp(double a)
{
    return (a > 0 ? a : 0) + log1p(exp(-fabs(a)));
}

static double mish_slope(double a)
{
    double near = a < -800 ? -800 : a > 800 ? 800 : a, gate = tanh(log_one_plus_exp(near));
    return gate + near / (1 + exp(-near)) * (1 - gate * gate);
}

static double curves(const mixt__pw_instr *in, double a, double b)
{
    double slope = (double)in->imm, scale = (double)in->imm2;
    switch (in->code) {
    case MIXT_PW_SIN:
        return sin(a);
    case MIXT_PW_COS:
        return cos(a);
    case MIXT_PW_ERF:
        return erf(a);
    case MIXT_PW_ERF_GRAD:
        return 1.1283791670955126 * exp(-a * a) * b;
    case MIXT_PW_POW:
        return pow(a, b);
    case MIXT_PW_POWER:
        return pow(a, slope);
    case MIXT_PW_ELU:
        return scale * (a > 0 ? a : slope * expm1(a));
    case MIXT_PW_ELU_GRAD:
        return scale * (a > 0 ? 1 : slope * exp(a)) * b;
    case MIXT_PW_SOFTPLUS:
        return isnan(a) ? a : log_one_plus_exp(a);
    case MIXT_PW_SOFTPLUS_GRAD:
        return b / (1 + exp(-a));
    case MIXT_PW_MISH:
        return a * tanh(log_one_plus_exp(a));
    default:
        return mish_slope(a) * b; // MISH_GRAD
    }
}

static bool is_function(mixt__pw_code code)
{
    return code >= MIXT_PW_RELU && code <= MIXT_PW_SQRT;
}

/** Where element `index` of the domain lies in an input that broadcasts to it. */
static int64_t broadcast_index(const mixt__shape *domain, const mixt__tensor *in, int64_t index)
{
    int64_t offset = 0;
    for (int d = domain->rank - 1, i = in->shape.rank - 1; i >= 0; d--, i--) {
        int64_t position = index % domain->dims[d];
        index /= domain->dims[d];
        if (in->shape.dims[i] != 1)
            offset += position * in->strides[i];
    }
    return offset;
}

/** Each instruction's result is rounded to FP32, as the program's definition says. */
static void element(const mixt__call *call, int64_t index)
{
    const mixt__pointwise_attrs *at = call->attrs;
    float values[MIXT_PW_MAX_INPUTS + MIXT_PW_MAX_INSTRS];
    for (int i = 0; i < at->in_count; i++)
        values[i] =
            mixt__load(call->in[i].data, call->in[i].dtype, broadcast_index(&call->out[0].shape, &call->in[i], index));
    for (int k = 0; k < at->instr_count; k++) {
        const mixt__pw_instr *in = &at->instrs[k];
        double a = (double)values[in->a], b = 0, c = 0;
        if (mixt__pw_operands[in->code] > 1)
            b = (double)values[in->b];
        if (mixt__pw_operands[in->code] > 2)
            c = (double)values[in->c];
        double result = in->code == MIXT_PW_DROPOUT ? dropout(in, a, *call->rng_key, index)
                        : in->code >= MIXT_PW_SIN   ? curves(in, a, b)
                        : in->code >= MIXT_PW_ABS   ? pieces(in, a, b, c)
                        : is_function(in->code)     ? function(in, a, b)
                                                    : arithmetic(in, a, b, c);
        values[at->in_count + k] = (float)result;
    }
    for (int o = 0; o < at->out_count; o++)
        mixt__store(call->out[o].data, call->out[o].dtype, index, values[at->outs[o]]);
}

static mixt_status run(const mixt__call *call)
{
    int64_t count = mixt__shape_count(&call->out[0].shape);
    for (int64_t i = 0; i < count; i++)
        element(call, i);
    return MIXT_OK;
}

const mixt__kernel mixt__cpu_pointwise_plain = {.name = "plain", .run = run};
