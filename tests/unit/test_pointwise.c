/* The vector maths of pointwise programs (accuracy, special values, every level the same bits), dropout, and whole
 * programs: the tiled candidate against the plain one on random straight-line code, broadcasts and in-place outputs. */
#include "backend/cpu/kernels.h"
#include "backend/cpu/pointwise/pointwise.h"
#include "base/rng.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static double gelu_reference(double x)
{
    return x / (1.0 + exp(-2.0 * 0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

static double gelu_slope_reference(double x)
{
    double s = 1.0 / (1.0 + exp(-2.0 * 0.79788456080286536 * (x + 0.044715 * x * x * x)));
    return s + x * s * (1.0 - s) * 2.0 * 0.79788456080286536 * (1.0 + 3.0 * 0.044715 * x * x);
}

static double sigmoid_reference(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double gelu_slack(double x)
{
    return 1.0 + fabs(2.0 * 0.79788456080286536 * (x + 0.044715 * x * x * x));
}

/** The slope is a sum that cancels at x = -0.75: its error is counted against the sum of its terms' sizes. */
static double gelu_slope_slack(double x)
{
    double s = sigmoid_reference(2.0 * 0.79788456080286536 * (x + 0.044715 * x * x * x)), y = gelu_slope_reference(x);
    return gelu_slack(x) * (s + fabs(y - s)) / fabs(y);
}

static double gelu_erf_reference(double x)
{
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double gelu_erf_slope_reference(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2) + x * 0.39894228040143268 * exp(-0.5 * x * x);
}

/** As above, cancelling at x = -0.75. */
static double gelu_erf_slope_slack(double x)
{
    double share = 0.5 * erfc(-x * M_SQRT1_2), y = gelu_erf_slope_reference(x);
    return (share + fabs(y - share)) / fabs(y);
}

static double silu_reference(double x)
{
    return x / (1.0 + exp(-x));
}

static double silu_slope_reference(double x)
{
    double s = sigmoid_reference(x);
    return s + x * s * sigmoid_reference(-x);
}

/** As above, cancelling at x = -1.28. */
static double silu_slope_slack(double x)
{
    double s = sigmoid_reference(x), y = silu_slope_reference(x);
    return (s + fabs(y - s)) / fabs(y);
}

/** Where the argument of exp is itself rounded, its error is multiplied by its size: `slack` says by how much. */
static const struct accuracy {
    mixt__pw_code code;
    double (*reference)(double);
    double (*slack)(double);
    double from, to, ulps;
} accuracies[] = {
    {MIXT_PW_SILU, silu_reference, NULL, -80, 100, 4},
    {MIXT_PW_SILU_GRAD, silu_slope_reference, silu_slope_slack, -80, 100, 4},
    {MIXT_PW_EXP, exp, NULL, -104, 89, 1.5},
    {MIXT_PW_LOG, log, NULL, 0, 3.4e38, 2},
    {MIXT_PW_TANH, tanh, NULL, -12, 12, 2.5},
    {MIXT_PW_SIGMOID, sigmoid_reference, NULL, -104, 104, 2.5},
    {MIXT_PW_GELU, gelu_reference, gelu_slack, -9, 100, 2.5},
    {MIXT_PW_GELU_GRAD, gelu_slope_reference, gelu_slope_slack, -9, 20, 2.5},
    {MIXT_PW_GELU_ERF, gelu_erf_reference, NULL, -13, 100, 8},
    {MIXT_PW_GELU_ERF_GRAD, gelu_erf_slope_reference, gelu_erf_slope_slack, -13, 20, 8},
};

/** Error of an FP32 result in units of its last place (of the smallest subnormal below that). */
static double ulps_off(float got, double expected)
{
    if ((double)got == expected || (isinf(got) && fabs(expected) > 0x1.ffffffp127 && signbit(got) == signbit(expected)))
        return 0;
    int exponent;
    frexp(expected, &exponent);
    return fabs((double)got - expected) / ldexp(1.0, exponent - 24 < -149 ? -149 : exponent - 24);
}

enum { BLOCK = 1021 }; // odd, so that remainders of vector loops are met

static const mixt__isa levels[] = {MIXT_ISA_SCALAR, MIXT_ISA_AVX2, MIXT_ISA_AVX512};

static void run_level(mixt__isa level, mixt__pw_code code, float *dst, const float *a, const float *b, int64_t count)
{
    mixt__pw_loops_at(level)->fp32[code](&(mixt__pw_span){.dst = dst, .a = a, .b = b, .count = count});
}

static void check_block(const struct accuracy *t, const float *x, const float *ones, double *worst)
{
    float got[3][BLOCK];
    for (int l = 0; l < 3 && levels[l] <= mixt__isa_level(); l++) {
        run_level(levels[l], t->code, got[l], x, ones, BLOCK);
        if (memcmp(got[l], got[0], sizeof got[0]))
            fail_msg("%s: level %s differs from scalar", mixt__pw_names[t->code], mixt__isa_name(levels[l]));
    }
    for (int i = 0; i < BLOCK; i++) {
        double off = ulps_off(got[0][i], t->reference((double)x[i]));
        if (t->slack)
            off /= t->slack((double)x[i]);
        if (off > *worst)
            *worst = off;
        if (!(off <= t->ulps))
            fail_msg("%s(%a) = %a, expected %a: %g ulp", mixt__pw_names[t->code], (double)x[i], (double)got[0][i],
                     t->reference((double)x[i]), off);
    }
}

/** Every 2^32/4e5-th bit pattern in the function's range, so that all exponents are met. */
static void maths_accuracy(void **state)
{
    (void)state;
    float x[BLOCK], ones[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        ones[i] = 1;
    for (size_t f = 0; f < sizeof accuracies / sizeof accuracies[0]; f++) {
        double worst = 0;
        int used = 0;
        for (uint64_t bits = 0; bits < 0x100000000u; bits += 10007) {
            float value = mixt__fp32_of_bits((uint32_t)bits);
            if (!((double)value >= accuracies[f].from && (double)value <= accuracies[f].to))
                continue;
            x[used++] = value;
            if (used == BLOCK) {
                check_block(&accuracies[f], x, ones, &worst);
                used = 0;
            }
        }
        print_message("%-10s at most %.2f ulp\n", mixt__pw_names[accuracies[f].code], worst);
    }
}

static bool same_value(float a, float b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

/** The smallest subnormal. */
#define TINY 0x1p-149f

static const struct {
    mixt__pw_code code;
    float a, b, result;
} cases[] = {
    {MIXT_PW_EXP, INFINITY, 0, INFINITY},
    {MIXT_PW_EXP, -INFINITY, 0, 0},
    {MIXT_PW_EXP, NAN, 0, NAN},
    {MIXT_PW_EXP, 0, 0, 1},
    {MIXT_PW_EXP, TINY, 0, 1},
    {MIXT_PW_EXP, -103.0f, 0, 0x1p-149f},
    {MIXT_PW_EXP, 1e30f, 0, INFINITY},
    {MIXT_PW_EXP, -1e30f, 0, 0},
    {MIXT_PW_LOG, INFINITY, 0, INFINITY},
    {MIXT_PW_LOG, 0, 0, -INFINITY},
    {MIXT_PW_LOG, -0.0f, 0, -INFINITY},
    {MIXT_PW_LOG, -1, 0, NAN},
    {MIXT_PW_LOG, -INFINITY, 0, NAN},
    {MIXT_PW_LOG, NAN, 0, NAN},
    {MIXT_PW_LOG, 1, 0, 0},
    {MIXT_PW_TANH, INFINITY, 0, 1},
    {MIXT_PW_TANH, -INFINITY, 0, -1},
    {MIXT_PW_TANH, NAN, 0, NAN},
    {MIXT_PW_TANH, TINY, 0, TINY},
    {MIXT_PW_TANH, -TINY, 0, -TINY},
    {MIXT_PW_SIGMOID, INFINITY, 0, 1},
    {MIXT_PW_SIGMOID, -INFINITY, 0, 0},
    {MIXT_PW_SIGMOID, NAN, 0, NAN},
    {MIXT_PW_SIGMOID, 0, 0, 0.5f},
    {MIXT_PW_GELU, INFINITY, 0, INFINITY},
    {MIXT_PW_GELU, -1e30f, 0, 0},
    {MIXT_PW_GELU, NAN, 0, NAN},
    {MIXT_PW_GELU, 1e30f, 0, 1e30f},
    {MIXT_PW_GELU_GRAD, INFINITY, 3, 3},
    {MIXT_PW_GELU_GRAD, -INFINITY, 3, 0},
    {MIXT_PW_GELU_GRAD, NAN, 3, NAN},
    {MIXT_PW_GELU_GRAD, 0, 3, 1.5f},
    {MIXT_PW_GELU_ERF, INFINITY, 0, INFINITY},
    {MIXT_PW_GELU_ERF, -1e30f, 0, 0},
    {MIXT_PW_GELU_ERF, NAN, 0, NAN},
    {MIXT_PW_GELU_ERF, 1e30f, 0, 1e30f},
    {MIXT_PW_GELU_ERF_GRAD, INFINITY, 3, 3},
    {MIXT_PW_GELU_ERF_GRAD, -INFINITY, 3, 0},
    {MIXT_PW_GELU_ERF_GRAD, NAN, 3, NAN},
    {MIXT_PW_GELU_ERF_GRAD, 0, 3, 1.5f},
    {MIXT_PW_SILU, INFINITY, 0, INFINITY},
    {MIXT_PW_SILU, -1e30f, 0, 0},
    {MIXT_PW_SILU, NAN, 0, NAN},
    {MIXT_PW_SILU_GRAD, INFINITY, 3, 3},
    {MIXT_PW_SILU_GRAD, -INFINITY, 3, 0},
    {MIXT_PW_SILU_GRAD, NAN, 3, NAN},
    {MIXT_PW_SILU_GRAD, 0, 3, 1.5f},
    {MIXT_PW_SWIGLU, 0, 3, 0},
    {MIXT_PW_SWIGLU, 0x1p99f, 4, 0x1p101f},
    {MIXT_PW_SWIGLU, NAN, 3, NAN},
    {MIXT_PW_RELU, NAN, 0, NAN},
    {MIXT_PW_RELU, -INFINITY, 0, 0},
    {MIXT_PW_RELU, TINY, 0, TINY},
    {MIXT_PW_MAX, NAN, 1, NAN},
    {MIXT_PW_MAX, 1, NAN, NAN},
    {MIXT_PW_MIN, NAN, 1, NAN},
    {MIXT_PW_MIN, 1, NAN, NAN},
    {MIXT_PW_MAX, -INFINITY, -2, -2},
    {MIXT_PW_RELU_GRAD, NAN, 3, 0},
    {MIXT_PW_WHERE, 1, NAN, NAN},
    {MIXT_PW_WHERE, 0, NAN, 0},
    {MIXT_PW_WHERE, NAN, 3, 0},
    {MIXT_PW_SQRT, -1, 0, NAN},
    {MIXT_PW_MUL, TINY, 1, TINY},
    {MIXT_PW_ADD, 0x1p-140f, TINY, 0x1.008p-140f},
};

static void special_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int l = 0; l < 3 && levels[l] <= mixt__isa_level(); l++)
            for (int count = 1; count <= 33; count += 16) { // in the vector loop and in its remainder
                float a[33], b[33], dst[33];
                for (int j = 0; j < count; j++) {
                    a[j] = cases[i].a;
                    b[j] = cases[i].b;
                }
                run_level(levels[l], cases[i].code, dst, a, b, count);
                for (int j = 0; j < count; j++)
                    if (!same_value(dst[j], cases[i].result))
                        fail_msg("%s(%g, %g) at level %s: %g, expected %g", mixt__pw_names[cases[i].code],
                                 (double)cases[i].a, (double)cases[i].b, mixt__isa_name(levels[l]), (double)dst[j],
                                 (double)cases[i].result);
            }
}

/* ---- calls ---- */

static void set_tensor(mixt__tensor *t, mixt_dtype dtype, const mixt__shape *shape)
{
    *t = (mixt__tensor){.dtype = dtype, .shape = *shape, .contiguous = true};
    mixt__shape_strides(shape, t->strides);
}

static void run_kernel(const mixt__kernel *kernel, mixt__call call)
{
    mixt__arena arena = {0};
    if (kernel->prepare)
        assert_int_equal(kernel->prepare(&call, &arena), MIXT_OK);
    assert_int_equal(kernel->run(&call), MIXT_OK);
    mixt__arena_free(&arena);
}

static mixt__call dropout_call(const mixt__pointwise_attrs *at, mixt__tensor *in, mixt__tensor *out)
{
    static const uint64_t key = 77;
    return (mixt__call){.attrs = at, .in_count = 1, .out_count = 1, .in = in, .out = out, .rng_key = &key};
}

/** Share kept, its scale, no correlation between neighbours, and every candidate, level and format the same mask. */
static void dropout_statistics(void **state)
{
    (void)state;
    enum { COUNT = 400003 };
    const float rates[] = {0.1f, 0.5f, 0.9f};
    static float x[COUNT], tiled[COUNT], plain[COUNT];
    mixt__shape shape = {1, {COUNT}};
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    for (int r = 0; r < 3; r++) {
        mixt__pointwise_attrs at = {.in_count = 1, .instr_count = 1, .out_count = 1, .outs = {1}};
        at.instrs[0] = (mixt__pw_instr){.code = MIXT_PW_DROPOUT, .imm = rates[r], .key = 5};
        mixt__tensor in, out;
        set_tensor(&in, MIXT_DTYPE_FP32, &shape);
        set_tensor(&out, MIXT_DTYPE_FP32, &shape);
        in.data = x;
        out.data = tiled;
        run_kernel(&mixt__cpu_pointwise_tiled, dropout_call(&at, &in, &out));
        out.data = plain;
        run_kernel(&mixt__cpu_pointwise_plain, dropout_call(&at, &in, &out));
        assert_memory_equal(tiled, plain, sizeof tiled);
        for (int l = 0; l < 3 && levels[l] <= mixt__isa_level(); l++) {
            mixt__pw_span span = {
                .dst = plain, .a = x, .count = COUNT, .imm = rates[r], .key = mixt__pw_dropout_key(77, 5)};
            mixt__pw_loops_at(levels[l])->fp32[MIXT_PW_DROPOUT](&span);
            assert_memory_equal(tiled, plain, sizeof tiled);
        }
        double kept = 0, pairs = 0, keep = 1 - (double)rates[r];
        for (int i = 0; i < COUNT; i++) {
            assert_true(tiled[i] == 0 || tiled[i] == mixt__pw_dropout_scale(rates[r]));
            kept += tiled[i] != 0;
            pairs += i > 0 && tiled[i] != 0 && tiled[i - 1] != 0;
        }
        assert_true(fabs(kept / COUNT - keep) < 5 * sqrt(keep * (1 - keep) / COUNT));
        assert_true(fabs(pairs / (COUNT - 1) - keep * keep) < 5 * sqrt(keep * keep / COUNT));
    }
}

/* ---- random programs ---- */

enum { CASES = 600, MAX_ELEMENTS = 6000 };

static mixt__rng rng;

static int64_t below(int64_t limit)
{
    return (int64_t)mixt__rng_below(&rng, (uint64_t)limit);
}

static mixt_dtype random_dtype(void)
{
    const mixt_dtype dtypes[3] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    return dtypes[below(3)];
}

/** Instructions whose plain and tiled forms must agree to the bit. */
static mixt__pw_instr random_instr(int operands)
{
    const mixt__pw_code codes[] = {MIXT_PW_COPY,   MIXT_PW_ADD,     MIXT_PW_SUB,  MIXT_PW_MUL,       MIXT_PW_MAX,
                                   MIXT_PW_MIN,    MIXT_PW_RELU,    MIXT_PW_SQRT, MIXT_PW_SELECT_GE, MIXT_PW_SELECT_LT,
                                   MIXT_PW_SQUARE, MIXT_PW_DROPOUT, MIXT_PW_DIV,  MIXT_PW_RELU_GRAD, MIXT_PW_WHERE};
    mixt__pw_instr in = {.code = codes[below((int64_t)(sizeof codes / sizeof codes[0]))]};
    in.a = (int)below(operands);
    in.b = (int)below(operands);
    in.c = (int)below(operands);
    in.imm = 0.25f;
    in.key = (uint32_t)below(100);
    return in;
}

static mixt__shape random_domain(void)
{
    mixt__shape shape = {.rank = (int)below(5)};
    int64_t count = 1;
    for (int d = 0; d < shape.rank; d++) {
        int64_t most = MAX_ELEMENTS / count;
        shape.dims[d] = below(40) == 0 ? 0 : 1 + below(below(3) ? (most < 13 ? most : 13) : most);
        count *= shape.dims[d] ? shape.dims[d] : 1;
    }
    return shape;
}

/** The domain, or a shape that broadcasts to it. */
static mixt__shape random_input(const mixt__shape *domain)
{
    mixt__shape shape = *domain;
    if (below(2))
        return shape;
    int dropped = (int)below(domain->rank + 1);
    shape.rank = domain->rank - dropped;
    for (int d = 0; d < shape.rank; d++)
        shape.dims[d] = below(3) ? domain->dims[d + dropped] : 1;
    return shape;
}

static void fill(mixt__tensor *t, void *data)
{
    t->data = data;
    for (int64_t i = 0; i < mixt__shape_count(&t->shape); i++)
        mixt__store(data, t->dtype, i, mixt__rng_normal(&rng));
}

static void random_program(int number)
{
    static float in_data[MIXT_PW_MAX_INPUTS][MAX_ELEMENTS], out_data[2][MIXT_PW_MAX_OUTPUTS][MAX_ELEMENTS];
    mixt__shape domain = random_domain();
    mixt__pointwise_attrs at = {.in_count = 1 + (int)below(MIXT_PW_MAX_INPUTS),
                                .instr_count = 1 + (int)below(MIXT_PW_MAX_INSTRS)};
    mixt__tensor in[MIXT_PW_MAX_INPUTS], out[2][MIXT_PW_MAX_OUTPUTS];
    at.out_count = 1 + (int)below(MIXT_PW_MAX_OUTPUTS);
    if (below(3) == 0)
        at.instr_count = at.out_count = 1;
    for (int i = 0; i < at.in_count; i++) {
        mixt__shape shape = random_input(&domain);
        set_tensor(&in[i], random_dtype(), &shape);
        fill(&in[i], in_data[i]);
    }
    for (int k = 0; k < at.instr_count; k++)
        at.instrs[k] = random_instr(at.in_count + k);
    for (int o = 0; o < at.out_count; o++) {
        at.outs[o] = below(6) ? at.in_count + at.instr_count - 1 - (int)below(at.instr_count) : (int)below(at.in_count);
        for (int v = 0; v < 2; v++) {
            set_tensor(&out[v][o], v ? out[0][o].dtype : random_dtype(), &domain);
            out[v][o].data = out_data[v][o];
        }
    }
    mixt__call call = {.attrs = &at,
                       .in_count = at.in_count,
                       .out_count = at.out_count,
                       .in = in,
                       .out = out[0],
                       .rng_key = &(const uint64_t){9}};
    run_kernel(&mixt__cpu_pointwise_plain, call);
    int host = (int)below(at.in_count); // sometimes the first output takes the memory of an input
    if (mixt__shape_equal(&in[host].shape, &domain) &&
        mixt_dtype_size(in[host].dtype) == mixt_dtype_size(out[1][0].dtype))
        out[1][0].data = in[host].data;
    call.out = out[1];
    run_kernel(&mixt__cpu_pointwise_tiled, call);
    for (int o = 0; o < at.out_count; o++)
        for (int64_t i = 0; i < mixt__shape_count(&domain); i++) {
            float expected = mixt__load(out[0][o].data, out[0][o].dtype, i),
                  got = mixt__load(out[1][o].data, out[1][o].dtype, i);
            if (!same_value(expected, got))
                fail_msg("program %d, output %d, element %lld: %a, expected %a", number, o, (long long)i, (double)got,
                         (double)expected);
        }
}

static void random_programs(void **state)
{
    (void)state;
    for (int number = 0; number < CASES; number++) {
        rng = mixt__rng_start(mixt__rng_key(2024, (uint64_t)number, 0));
        random_program(number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(maths_accuracy), cmocka_unit_test(special_values),
                                       cmocka_unit_test(dropout_statistics), cmocka_unit_test(random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
