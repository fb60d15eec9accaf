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
            r[at->in_count + k] = is_arithmetic(in->code) ? arithmetic(in, r[in->a], r[in->b], r[in->c])
                                                          : function(in, r[in->a], r[in->b]);
        }
        for (int o = 0; o < at->out_count; o++) {
            c->out[o].value[i] = r[at->outs[o]].value;
            c->out[o].slack[i] = r[at->outs[o]].error;
        }
    }
}

/** Each …_GRAD formula against central differences of its function. */
static bool self_check(void)
{
    const mixt__pw_code pairs[][2] = {{MIXT_PW_RELU, MIXT_PW_RELU_GRAD},         {MIXT_PW_GELU, MIXT_PW_GELU_GRAD},
                                      {MIXT_PW_GELU_ERF, MIXT_PW_GELU_ERF_GRAD}, {MIXT_PW_SILU, MIXT_PW_SILU_GRAD},
                                      {MIXT_PW_SIGMOID, MIXT_PW_SIGMOID_GRAD},   {MIXT_PW_TANH, MIXT_PW_TANH_GRAD}};
    const double h = 1e-5;
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
        for (double x = -5.015; x < 5; x += 0.11) {
            mixt__pw_instr f = {.code = pairs[p][0]}, g = {.code = pairs[p][1]};
            bounded none = {0, 0}, above = function(&f, (bounded){x + h, 0}, none),
                    below = function(&f, (bounded){x - h, 0}, none);
            bool of_input =
                g.code == MIXT_PW_GELU_GRAD || g.code == MIXT_PW_GELU_ERF_GRAD || g.code == MIXT_PW_SILU_GRAD;
            bounded at = of_input ? (bounded){x, 0} : function(&f, (bounded){x, 0}, none);
            double expected = 1.5 * (above.value - below.value) / (2 * h),
                   got = function(&g, at, (bounded){1.5, 0}).value;
            if (!(fabs(got - expected) < 1e-8)) {
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
