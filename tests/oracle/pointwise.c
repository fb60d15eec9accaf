/* Pointwise programs: values and error bounds carried through the instructions together. And `accumulate`.
 *
 * Lines: prog=add:0:1;relu:2 (operands as numbers, constants after @), inputs a, b, c, d by shape, outs=3,2 (default:
 * the last result), fmt_b=fp32 (another format for an input), out=fp32 (for all outputs), low and high (range of
 * inputs). */
#include "oracle/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bounded {
    double value, error;
} bounded;

static const double ROOT = 0.79788456080286535588; // sqrt(2/pi)

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(ROOT * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    double t = tanh(ROOT * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT * (1 + 3 * 0.044715 * x * x);
}

static double normal_share(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static double gelu_erf_slope(double x)
{
    return fabs(x) > 40 ? x > 0 : normal_share(x) + x * 0.5 * ROOT * exp(-0.5 * x * x);
}

/** A result with the carried error and one rounding. */
static bounded rounded(double value, double carried)
{
    return (bounded){value, carried + U32 * (fabs(value) + carried)};
}

static bounded arithmetic(const mixt__pw_instr *in, bounded a, bounded b, bounded c)
{
    double near = a.error + b.error; // a comparison that close may go either way
    switch (in->code) {
    case MIXT_PW_COPY:
        return a;
    case MIXT_PW_ADD:
        return rounded(a.value + b.value, a.error + b.error);
    case MIXT_PW_SUB:
        return rounded(a.value - b.value, a.error + b.error);
    case MIXT_PW_MUL:
        return rounded(a.value * b.value, fabs(a.value) * b.error + fabs(b.value) * a.error + a.error * b.error);
    case MIXT_PW_DIV:
        return rounded(a.value / b.value, (a.error + fabs(a.value / b.value) * b.error) / (fabs(b.value) - b.error));
    case MIXT_PW_MAX:
        return (bounded){isnan(a.value) || isnan(b.value) ? NAN : fmax(a.value, b.value), fmax(a.error, b.error)};
    case MIXT_PW_MIN:
        return (bounded){isnan(a.value) || isnan(b.value) ? NAN : fmin(a.value, b.value), fmax(a.error, b.error)};
    case MIXT_PW_SELECT_GE:
        return (bounded){a.value >= b.value ? c.value : 0,
                         near > 0 && fabs(a.value - b.value) <= near ? fabs(c.value) + c.error : c.error};
    case MIXT_PW_SELECT_LT:
        return (bounded){a.value < b.value ? c.value : 0,
                         near > 0 && fabs(a.value - b.value) <= near ? fabs(c.value) + c.error : c.error};
    case MIXT_PW_WHERE:
        return (bounded){a.value > 0 ? b.value : 0,
                         a.error > 0 && fabs(a.value) <= a.error ? fabs(b.value) + b.error : b.error};
    case MIXT_PW_AFFINE: {
        double product = a.value * in->imm, error = fabs((double)in->imm) * a.error;
        bool exact = in->imm == 1 || in->imm == -1;
        bounded first = exact ? (bounded){product, error} : rounded(product, error);
        return in->imm2 == 0 ? first : rounded(product + in->imm2, first.error);
    }
    default:
        return rounded(a.value * a.value, (2 * fabs(a.value) + a.error) * a.error); // SQUARE
    }
}

static double silu_slope(double x)
{
    double s = 1 / (1 + exp(-x));
    return s + x * s * (1 - s);
}

static bounded function(const mixt__pw_instr *in, bounded a, bounded b)
{
    double x = a.value, s, e = U32 * U_MATHS;
    switch (in->code) {
    case MIXT_PW_RELU:
        return (bounded){x <= 0 ? 0 : x, a.error}; // NaN stays
    case MIXT_PW_RELU_GRAD:
        return (bounded){x > 0 ? b.value : 0, a.error > 0 && fabs(x) <= a.error ? fabs(b.value) + b.error : b.error};
    case MIXT_PW_GELU: // its slope is below 1.13; 1 + tanh is off by e, times x/2, wherever it cancels
        return rounded(gelu(x), 1.13 * a.error + fabs(x) * 2 * e);
    case MIXT_PW_GELU_GRAD: // second derivative below 1.2; the factor of x/2·(1 - t²) is below 1.2 where it is not 0
        s = gelu_slope(x);
        return rounded(s * b.value, fabs(b.value) * (1.2 * a.error + 2 * e * (2 + fabs(x))) + fabs(s) * b.error);
    case MIXT_PW_GELU_ERF: // the share is off by e, times x
        return rounded(x * normal_share(x), 1.13 * a.error + fabs(x) * 2 * e);
    case MIXT_PW_GELU_ERF_GRAD: // second derivative below 0.8
        s = gelu_erf_slope(x);
        return rounded(s * b.value, fabs(b.value) * (0.8 * a.error + 2 * e * (2 + fabs(x))) + fabs(s) * b.error);
    case MIXT_PW_SILU: // slope below 1.1; the share is off by e, times x
        return rounded(x / (1 + exp(-x)), 1.1 * a.error + fabs(x) * 2 * e);
    case MIXT_PW_SILU_GRAD: // second derivative at most 0.5
        s = silu_slope(x);
        return rounded(s * b.value, fabs(b.value) * (0.5 * a.error + 2 * e * (2 + fabs(x))) + fabs(s) * b.error);
    case MIXT_PW_SWIGLU:
        s = x / (1 + exp(-x));
        return rounded(s * b.value, (fabs(b.value) + b.error) * (1.1 * a.error + fabs(x) * 3 * e) + fabs(s) * b.error);
    case MIXT_PW_SIGMOID:
        s = 1 / (1 + exp(-x));
        return rounded(s, 0.25 * a.error + s * 2 * e);
    case MIXT_PW_SIGMOID_GRAD:
        return rounded(x * (1 - x) * b.value, fabs(1 - 2 * x) * a.error * fabs(b.value) + 3 * U32 * fabs(x * b.value) +
                                                  fabs(x * (1 - x)) * b.error);
    case MIXT_PW_TANH:
        return rounded(tanh(x), a.error + fabs(tanh(x)) * 2 * e);
    case MIXT_PW_TANH_GRAD:
        return rounded((1 - x * x) * b.value,
                       2 * fabs(x) * a.error * fabs(b.value) + 3 * U32 * fabs(b.value) + fabs(1 - x * x) * b.error);
    case MIXT_PW_EXP:
        return rounded(exp(x), exp(x) * (expm1(a.error) + e));
    case MIXT_PW_LOG:
        return rounded(log(x), a.error / (x - a.error) + fabs(log(x)) * e);
    case MIXT_PW_SQRT:
        return rounded(sqrt(x), a.error / sqrt(x));
    default: // DROPOUT, where kept: 1/(1 - rate) and the product are rounded
        return rounded(x / (1 - (double)in->imm), (a.error + 3 * U32 * fabs(x)) / (1 - (double)in->imm));
    }
}

/** Comparisons and choices: what comes out where an operand that carries an error decides. */
static bounded choice(bool yes, bool sure, bounded b, bounded c)
{
    bounded r = yes ? b : c;
    if (!sure)
        r.error += fabs(b.value - c.value) + b.error + c.error;
    return r;
}

static bounded pieces(const mixt__pw_instr *in, bounded a, bounded b, bounded c)
{
    double x = a.value, low = (double)in->imm, high = (double)in->imm2, line = low * x + high, f;
    const bounded zero = {0, 0}, one = {1, 0}, minus = {-b.value, b.error};
    bool sure = a.error == 0 || fabs(x) > a.error;
    double near = a.error + b.error;
    switch (in->code) {
    case MIXT_PW_ABS:
        return (bounded){fabs(x), a.error};
    case MIXT_PW_ABS_GRAD:
        return choice(x > 0, sure, b, choice(x < 0, sure, minus, zero));
    case MIXT_PW_FLOOR:
        return (bounded){floor(x), a.error > 0 ? 1 + a.error : 0};
    case MIXT_PW_CEIL:
        return (bounded){ceil(x), a.error > 0 ? 1 + a.error : 0};
    case MIXT_PW_ROUND:
        return (bounded){nearbyint(x), a.error > 0 ? 1 + a.error : 0};
    case MIXT_PW_RECIPROCAL:
        return rounded(1 / x, a.error / (x * x - fabs(x) * a.error));
    case MIXT_PW_RECIPROCAL_GRAD:
        return rounded(-x * x * b.value, fabs(b.value) * (2 * fabs(x) + a.error) * a.error + x * x * b.error +
                                             2 * U32 * x * x * fabs(b.value));
    case MIXT_PW_LEAKY_RELU:
        return rounded(x > 0 ? x : x * low, a.error * fmax(1, fabs(low)));
    case MIXT_PW_LEAKY_RELU_GRAD:
        return choice(x > 0, sure, b, rounded(b.value * low, b.error * fabs(low)));
    case MIXT_PW_HARD_SIGMOID: // the line loses one rounding or two
        return (bounded){fmin(1, fmax(0, line)), fabs(low) * a.error + 2 * U32 * (fabs(low * x) + fabs(high))};
    case MIXT_PW_HARD_SIGMOID_GRAD:
        f = fabs(low) * a.error + 2 * U32 * (fabs(low * x) + fabs(high));
        return choice(line > 0 && line<1, fabs(line)> f && fabs(line - 1) > f,
                      rounded(b.value * low, b.error * fabs(low)), zero);
    case MIXT_PW_HARD_SWISH: // slope at most 1.5
        return rounded(x <= -3 ? 0 : x >= 3 ? x : x * (x / 6 + 0.5), 1.5 * a.error + 3 * U32 * fabs(x));
    case MIXT_PW_HARD_SWISH_GRAD:
        f = x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
        return choice(true, a.error == 0 || fabs(fabs(x) - 3) > a.error,
                      rounded(f * b.value, fabs(f) * b.error + fabs(b.value) * (a.error / 3 + 4 * U32)), zero);
    case MIXT_PW_CLIP:
        return (bounded){fmin(high, fmax(low, x)), a.error};
    case MIXT_PW_CLIP_GRAD:
        return choice(x >= low && x <= high, a.error == 0 || (fabs(x - low) > a.error && fabs(x - high) > a.error), b,
                      zero);
    case MIXT_PW_EQUAL:
        return choice(x == b.value, near == 0 || fabs(x - b.value) > near, one, zero);
    case MIXT_PW_LESS:
        return choice(x < b.value, near == 0 || fabs(x - b.value) > near, one, zero);
    case MIXT_PW_WHERE_NOT:
        return choice(x > 0, sure, zero, b);
    default:
        return choice(x > 0, sure, b, c); // SELECT
    }
}

static double mish(double x)
{
    return x * tanh(x > 30 ? x : log1p(exp(x)));
}

static double mish_slope(double x)
{
    double gate = tanh(x > 30 ? x : log1p(exp(x)));
    return gate + x / (1 + exp(-x)) * (1 - gate * gate);
}

static bounded curves(const mixt__pw_instr *in, bounded a, bounded b)
{
    double x = a.value, slope = (double)in->imm, scale = (double)in->imm2, e = U32 * U_MATHS, y, s;
    switch (in->code) {
    case MIXT_PW_SIN:
        return rounded(sin(x), a.error + e * fabs(sin(x)));
    case MIXT_PW_COS:
        return rounded(cos(x), a.error + e * fabs(cos(x)));
    case MIXT_PW_ERF:
        return rounded(erf(x), 1.13 * a.error + e * fabs(erf(x)));
    case MIXT_PW_ERF_GRAD: // second derivative below 1; the square is rounded before the exponential
        s = 2 * M_2_SQRTPI / 2 * exp(-x * x);
        return rounded(s * b.value, fabs(b.value) * (a.error + e * s * (1 + x * x)) + s * b.error);
    case MIXT_PW_POW:
    case MIXT_PW_POWER:
        b = in->code == MIXT_PW_POW ? b : (bounded){slope, 0};
        y = pow(x, b.value);
        s = a.error > 0 ? fabs(b.value) * a.error / (fabs(x) - a.error) : 0;
        return rounded(y, fabs(y) * (expm1(s + (b.error > 0 ? fabs(log(fabs(x))) * b.error : 0)) + e));
    case MIXT_PW_ELU:
        y = scale * (x > 0 ? x : slope * expm1(x));
        return rounded(y, fabs(scale) * fmax(1, fabs(slope)) * a.error + e * fabs(y));
    case MIXT_PW_ELU_GRAD:
        s = scale * (x > 0 ? 1 : slope * exp(x));
        y = fabs(scale) * fmax(1, fabs(slope)) * fabs(b.value) * a.error; // within a branch; across 0 for slope 1
        return rounded(s * b.value, fabs(s) * b.error + y + e * fabs(s * b.value));
    case MIXT_PW_SOFTPLUS:
        y = x > 30 ? x : log1p(exp(x));
        return rounded(y, a.error + 2 * e * y);
    case MIXT_PW_SOFTPLUS_GRAD:
        s = 1 / (1 + exp(-x));
        return rounded(s * b.value, fabs(b.value) * (0.25 * a.error + 2 * e * s) + s * b.error);
    case MIXT_PW_MISH: // slope below 1.1; the gate is off by 2e, times x
        return rounded(mish(x), 1.1 * a.error + 2 * e * fabs(x));
    default: // MISH_GRAD: second derivative below 0.7
        s = mish_slope(x);
        return rounded(s * b.value, fabs(b.value) * (0.7 * a.error + 2 * e * (2 + fabs(x))) + fabs(s) * b.error);
    }
}

static bool is_arithmetic(mixt__pw_code code)
{
    return code <= MIXT_PW_AFFINE || code == MIXT_PW_SQUARE;
}

/* ---- programs from text ---- */

static const char *read_instr(test_case *c, const char *text, mixt__pw_instr *in)
{
    size_t length = strcspn(text, ":;");
    int code = 0, *operand[3] = {&in->a, &in->b, &in->c};
    float *constant[2] = {&in->imm, &in->imm2};
    while (code < MIXT_PW_COUNT &&
           (strlen(mixt__pw_names[code]) != length || strncmp(mixt__pw_names[code], text, length)))
        code++;
    if (code == MIXT_PW_COUNT) {
        c->error = "unknown pointwise instruction";
        return "";
    }
    in->code = (mixt__pw_code)code;
    in->key = 7;
    text += length;
    char *end = (char *)text;
    for (int i = 0; i < 3 && *end == ':'; i++)
        *operand[i] = (int)strtol(end + 1, &end, 10);
    for (int i = 0; i < 2 && *end == '@'; i++)
        *constant[i] = strtof(end + 1, &end);
    return *end == ';' ? end + 1 : end;
}

static void read_outputs(test_case *c, mixt__pointwise_attrs *at)
{
    const char *outs = problem_text(c, "outs", NULL);
    mixt_dtype dtype = mixt_dtype_parse(problem_text(c, "out", "none"));
    at->outs[0] = at->in_count + at->instr_count - 1;
    at->out_count = 1;
    for (int i = 0; outs && i < MIXT_PW_MAX_OUTPUTS; i++) {
        char *end;
        at->outs[i] = (int)strtol(outs, &end, 10);
        at->out_count = i + 1;
        outs = *end == ',' ? end + 1 : NULL;
    }
    for (int o = 0; o < at->out_count; o++)
        at->out_dtypes[o] = dtype;
}

static void make(test_case *c)
{
    mixt__pointwise_attrs *at = &c->attrs.pointwise;
    const char *keys[] = {"a", "b", "c", "d"}, *program = problem_text(c, "prog", "copy:0");
    double low = problem_real(c, "low", -2), high = problem_real(c, "high", 2);
    for (int i = 0; i < 4 && problem_has(c, keys[i]); i++) {
        char format[8];
        snprintf(format, sizeof format, "fmt_%s", keys[i]);
        mixt_dtype dtype = mixt_dtype_parse(problem_text(c, format, "none"));
        case_input_between(c, dtype != MIXT_DTYPE_NONE ? dtype : c->dtype, problem_shape(c, keys[i]), low, high);
        at->in_count++;
    }
    if (problem_has(c, "domain")) {
        at->has_domain = true;
        at->domain = problem_shape(c, "domain");
    }
    while (*program && at->instr_count < MIXT_PW_MAX_INSTRS)
        program = read_instr(c, program, &at->instrs[at->instr_count++]);
    read_outputs(c, at);
    c->zero_or_value = at->instrs[0].code == MIXT_PW_DROPOUT;
    c->zero_share = at->instrs[0].imm;
}

/** Element of an input that belongs to element i of the outputs. */
static int64_t source(const mixt__shape *x, const mixt__shape *y, int64_t i)
{
    int64_t place = 0, stride = 1;
    for (int d = 1; d <= y->rank; d++) {
        int64_t index = i % y->dims[y->rank - d];
        i /= y->dims[y->rank - d];
        if (d <= x->rank && x->dims[x->rank - d] != 1) {
            place += index * stride;
            stride *= x->dims[x->rank - d];
        }
    }
    return place;
}

static void expect(test_case *c)
{
    const mixt__pointwise_attrs *at = &c->attrs.pointwise;
    bounded r[MIXT_PW_MAX_INPUTS + MIXT_PW_MAX_INSTRS];
    for (int64_t i = 0; i < c->out[0].count; i++) {
        for (int k = 0; k < at->in_count; k++)
            r[k] = (bounded){c->in[k].value[source(&c->in[k].shape, &c->out[0].shape, i)], 0};
        for (int k = 0; k < at->instr_count; k++) {
            const mixt__pw_instr *in = &at->instrs[k];
            r[at->in_count + k] = is_arithmetic(in->code)   ? arithmetic(in, r[in->a], r[in->b], r[in->c])
                                  : in->code >= MIXT_PW_SIN ? curves(in, r[in->a], r[in->b])
                                  : in->code >= MIXT_PW_ABS ? pieces(in, r[in->a], r[in->b], r[in->c])
                                                            : function(in, r[in->a], r[in->b]);
        }
        for (int o = 0; o < at->out_count; o++) {
            c->out[o].value[i] = r[at->outs[o]].value;
            c->out[o].slack[i] = r[at->outs[o]].error;
        }
    }
}

static bounded any_function(const mixt__pw_instr *in, bounded a, bounded b)
{
    return in->code >= MIXT_PW_SIN   ? curves(in, a, b)
           : in->code >= MIXT_PW_ABS ? pieces(in, a, b, b)
                                     : function(in, a, b);
}

/** Each …_GRAD formula against central differences of its function. */
static bool self_check(void)
{
    const mixt__pw_code pairs[][2] = {{MIXT_PW_RELU, MIXT_PW_RELU_GRAD},
                                      {MIXT_PW_GELU, MIXT_PW_GELU_GRAD},
                                      {MIXT_PW_GELU_ERF, MIXT_PW_GELU_ERF_GRAD},
                                      {MIXT_PW_SILU, MIXT_PW_SILU_GRAD},
                                      {MIXT_PW_SIGMOID, MIXT_PW_SIGMOID_GRAD},
                                      {MIXT_PW_TANH, MIXT_PW_TANH_GRAD},
                                      {MIXT_PW_ABS, MIXT_PW_ABS_GRAD},
                                      {MIXT_PW_ERF, MIXT_PW_ERF_GRAD},
                                      {MIXT_PW_RECIPROCAL, MIXT_PW_RECIPROCAL_GRAD},
                                      {MIXT_PW_LEAKY_RELU, MIXT_PW_LEAKY_RELU_GRAD},
                                      {MIXT_PW_HARD_SIGMOID, MIXT_PW_HARD_SIGMOID_GRAD},
                                      {MIXT_PW_HARD_SWISH, MIXT_PW_HARD_SWISH_GRAD},
                                      {MIXT_PW_CLIP, MIXT_PW_CLIP_GRAD},
                                      {MIXT_PW_ELU, MIXT_PW_ELU_GRAD},
                                      {MIXT_PW_SOFTPLUS, MIXT_PW_SOFTPLUS_GRAD},
                                      {MIXT_PW_MISH, MIXT_PW_MISH_GRAD}};
    const double h = 1e-5;
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
        for (double x = -5.015; x < 5; x += 0.11) {
            mixt__pw_instr f = {.code = pairs[p][0], .imm = 0.3f, .imm2 = 0.7f}, g = f;
            g.code = pairs[p][1];
            bounded none = {0, 0}, above = any_function(&f, (bounded){x + h, 0}, none),
                    below = any_function(&f, (bounded){x - h, 0}, none);
            bool of_input = g.code == MIXT_PW_GELU_GRAD || g.code == MIXT_PW_GELU_ERF_GRAD ||
                            g.code == MIXT_PW_SILU_GRAD ||
                            (g.code > MIXT_PW_DROPOUT && g.code != MIXT_PW_RECIPROCAL_GRAD);
            bounded at = of_input ? (bounded){x, 0} : any_function(&f, (bounded){x, 0}, none);
            double expected = 1.5 * (above.value - below.value) / (2 * h),
                   got = any_function(&g, at, (bounded){1.5, 0}).value;
            if (!(fabs(got - expected) < 1e-8 * (1 + fabs(expected) * 100))) {
                printf("oracle pointwise: %s at %g gives %.12g, differences give %.12g\n", mixt__pw_names[g.code], x,
                       got, expected);
                return false;
            }
        }
    return true;
}

static void accumulate_make(test_case *c)
{
    case_input(c, c->dtype, problem_shape(c, "src"));
}

static void accumulate_expect(test_case *c)
{
    for (int64_t i = 0; i < c->out[0].count; i++)
        c->out[0].value[i] = c->in[0].value[i];
}

const oracle oracle_pointwise = {.op = "pointwise", .make = make, .expect = expect, .self_check = self_check};
const oracle oracle_accumulate = {.op = "accumulate", .make = accumulate_make, .expect = accumulate_expect};
