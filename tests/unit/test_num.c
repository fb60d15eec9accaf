/* Number formats against an independent double oracle, at every instruction-set level of this processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/num_oracle.h"
#include "base/isa.h"
#include "base/rng.h"
#include "base/threads.h"
#include "mixt/num.h"
#include "num/format.h"
#include "num/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { BLOCK = 4096 };

static const mixt_dtype kernel_dtypes[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_TF32,  MIXT_DTYPE_FP16,     MIXT_DTYPE_BF16,
                                           MIXT_DTYPE_INT8, MIXT_DTYPE_UINT8, MIXT_DTYPE_FP8_E4M3, MIXT_DTYPE_FP8_E5M2};
enum { KERNEL_DTYPES = sizeof kernel_dtypes / sizeof kernel_dtypes[0] };

static uint32_t read_code(const void *array, size_t size, int64_t i)
{
    uint32_t code = 0;
    memcpy(&code, (const char *)array + (size_t)i * size, size);
    return code;
}

static uint32_t bits_of(float value)
{
    return mixt__fp32_bits(value);
}

/** FP32 inputs where rounding is decided: around every value of `f` and halfway to its neighbours, ±3 ulp. */
static int64_t boundary_inputs(const oracle_format *f, float **inputs)
{
    int64_t codes = (int64_t)1 << (f->bits - f->shift), used = 0;
    if (codes > 65536)
        codes = 0; // TF32: its neighbourhoods are sampled below
    int64_t capacity = (codes + 4096) * 14;
    float *out = malloc((size_t)capacity * sizeof *out);
    assert_non_null(out);
    for (int64_t code = 0; code < codes; code++) {
        double value = oracle_decode(f, (uint32_t)code << f->shift);
        double above = oracle_decode(f, (uint32_t)(code + 1 < codes ? code + 1 : code) << f->shift);
        const double centres[2] = {value, isfinite(value) && isfinite(above) ? (value + above) / 2 : value * 1.0625};
        for (int c = 0; c < 2; c++)
            for (int ulp = -3; ulp <= 3; ulp++)
                out[used++] = mixt__fp32_of_bits(bits_of((float)centres[c]) + (uint32_t)ulp);
    }
    const double edges[] = {f->max, f->max * (1 + ldexp(0.5, -f->mantissa_bits)), ldexp(1, 1 - f->bias),
                            ldexp(1, 1 - f->bias - f->mantissa_bits), ldexp(0.5, 1 - f->bias - f->mantissa_bits)};
    for (size_t e = 0; e < sizeof edges / sizeof edges[0]; e++)
        for (int ulp = -64; ulp <= 64; ulp++)
            for (int sign = 0; sign < 2; sign++)
                out[used++] = mixt__fp32_of_bits((bits_of((float)edges[e]) + (uint32_t)ulp) | (uint32_t)sign << 31);
    const uint32_t special[] = {0,          1,          0x7fffff,   0x800000,   0x7f7fffff, 0x7f800000,
                                0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff, 0x7f802000, 0x7fa00000};
    for (size_t s = 0; s < sizeof special / sizeof special[0]; s++)
        for (int sign = 0; sign < 2; sign++)
            out[used++] = mixt__fp32_of_bits(special[s] | (uint32_t)sign << 31);
    assert_true(used <= capacity);
    *inputs = out;
    return used;
}

/** Every level on `count` inputs: the scalar one against the oracle, the others (streaming too) against the scalar. */
static void check_narrow(const oracle_format *f, const float *inputs, int64_t count)
{
    static _Alignas(64) char want[BLOCK * 4], got[BLOCK * 4];
    const size_t size = mixt_dtype_size(f->dtype);
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t n = count - first < BLOCK ? count - first : BLOCK;
        mixt__narrow_at(MIXT_ISA_SCALAR, f->dtype, false)(want, inputs + first, n);
        for (int64_t i = 0; i < n; i++)
            if (!oracle_accepts(f, (double)inputs[first + i], read_code(want, size, i)))
                fail_msg("%s: %a (0x%08x) became 0x%x, expected %a", mixt_dtype_name(f->dtype),
                         (double)inputs[first + i], bits_of(inputs[first + i]), read_code(want, size, i),
                         oracle_round(f, (double)inputs[first + i]));
        for (int level = 1; level <= (int)mixt__isa_level(); level++)
            for (int stream = 0; stream < 2; stream++) {
                memset(got, 0x55, sizeof got);
                mixt__narrow_at((mixt__isa)level, f->dtype, stream)(got, inputs + first, n);
                for (int64_t i = 0; i < n; i++)
                    if (read_code(want, size, i) != read_code(got, size, i))
                        fail_msg("%s at %s: 0x%08x became 0x%x, the reference says 0x%x", mixt_dtype_name(f->dtype),
                                 mixt__isa_name((mixt__isa)level), bits_of(inputs[first + i]), read_code(got, size, i),
                                 read_code(want, size, i));
            }
    }
}

static void test_boundaries(void **state)
{
    (void)state;
    for (int k = 0; k < ORACLE_FORMATS; k++)
        for (int other = 0; other < ORACLE_FORMATS; other++) { // each format's edges are input to all
            float *inputs;
            int64_t count = boundary_inputs(&oracle_formats[other], &inputs);
            check_narrow(&oracle_formats[k], inputs, count);
            free(inputs);
        }
}

static void test_strided_sample(void **state)
{
    (void)state;
    enum { STRIDE = 1021 }; // prime: all low bit patterns occur; about 2^22 inputs a format
    static float inputs[BLOCK];
    for (int k = 0; k < ORACLE_FORMATS; k++) {
        uint64_t next = (uint64_t)k;
        while (next < (uint64_t)1 << 32) {
            int64_t n = 0;
            for (; n < BLOCK && next < (uint64_t)1 << 32; next += STRIDE)
                inputs[n++] = mixt__fp32_of_bits((uint32_t)next);
            check_narrow(&oracle_formats[k], inputs, n);
        }
    }
}

static void test_single_value_functions(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 65521) {
        float x = mixt__fp32_of_bits((uint32_t)bits);
        assert_true(oracle_accepts(&oracle_formats[0], (double)x, mixt_fp16_from_fp32(x)));
        assert_true(oracle_accepts(&oracle_formats[1], (double)x, mixt_bf16_from_fp32(x)));
        assert_true(oracle_accepts(&oracle_formats[2], (double)x, bits_of(mixt_tf32_round(x))));
        assert_true(oracle_accepts(&oracle_formats[3], (double)x, mixt_fp8_e4m3_from_fp32(x)));
        assert_true(oracle_accepts(&oracle_formats[4], (double)x, mixt_fp8_e5m2_from_fp32(x)));
    }
    assert_int_equal(mixt_fp8_e4m3_from_fp32(1e9f), 0x7f);
    assert_int_equal(mixt_fp8_e4m3_from_fp32(-INFINITY), 0xff);
    assert_int_equal(mixt_fp8_e5m2_from_fp32(-INFINITY), 0xfc);
    assert_true(mixt_fp8_e4m3_to_fp32(0x7e) == 448 && mixt_fp8_e5m2_to_fp32(0x7b) == 57344);
    assert_true(mixt_fp16_to_fp32(0x7bff) == 65504 && mixt_bf16_to_fp32(0x3f80) == 1);
}

/** Widening every code gives its value, and narrowing that gives the code back (NaN: quiet, same sign). */
static void test_every_code_round_trips(void **state)
{
    (void)state;
    static _Alignas(64) float wide[65536];
    static _Alignas(64) uint16_t codes[65536], back[65536];
    for (int k = 0; k < ORACLE_FORMATS; k++) {
        const oracle_format *f = &oracle_formats[k];
        if (f->bits == 32)
            continue;
        const size_t size = (size_t)f->bits / 8;
        const int64_t count = (int64_t)1 << f->bits;
        for (int64_t i = 0; i < count; i++)
            memcpy((char *)codes + (size_t)i * size, &i, size);
        for (int level = 0; level <= (int)mixt__isa_level(); level++)
            for (int stream = 0; stream < 2; stream++) {
                memset(wide, 0x55, sizeof wide);
                mixt__widen_at((mixt__isa)level, f->dtype, stream)(wide, codes, count);
                mixt__narrow_at((mixt__isa)level, f->dtype, stream)(back, wide, count);
                for (int64_t i = 0; i < count; i++) {
                    double value = oracle_decode(f, (uint32_t)i);
                    uint32_t code = read_code(back, size, i);
                    bool same = isnan(value) ? isnan(wide[i]) && isnan(oracle_decode(f, code))
                                             : (double)wide[i] == value && code == (uint32_t)i;
                    bool sign = (bits_of(wide[i]) >> 31) == (uint32_t)(i >> (f->bits - 1)) &&
                                code >> (f->bits - 1) == (uint32_t)(i >> (f->bits - 1));
                    if (!same || !sign)
                        fail_msg("%s at %s: code 0x%x is %a, came back as 0x%x", mixt_dtype_name(f->dtype),
                                 mixt__isa_name((mixt__isa)level), (unsigned)i, (double)wide[i], code);
                }
            }
    }
}

/** NaN payloads: FP16 and FP8 become quiet as F16C does; all levels agree bit by bit when widening. */
static void test_widen_levels_agree(void **state)
{
    (void)state;
    static _Alignas(64) uint16_t codes[65536];
    static _Alignas(64) float want[65536], got[65536];
    for (int k = 0; k < KERNEL_DTYPES; k++) {
        mixt_dtype dtype = kernel_dtypes[k];
        size_t size = mixt_dtype_size(dtype);
        int64_t count = size == 1 ? 256 : size == 2 ? 65536 : 32768;
        for (int64_t i = 0; i < count; i++)
            memcpy((char *)codes + (size_t)i * size, &i, size);
        mixt__widen_at(MIXT_ISA_SCALAR, dtype, false)(want, codes, count);
        for (int level = 1; level <= (int)mixt__isa_level(); level++) {
            mixt__widen_at((mixt__isa)level, dtype, false)(got, codes, count);
            assert_memory_equal(want, got, (size_t)count * 4);
        }
    }
    assert_int_equal(bits_of(mixt_fp16_to_fp32(0x7c01)), 0x7fc02000);
    assert_int_equal(mixt_fp16_from_fp32(mixt__fp32_of_bits(0xff802000)), 0xfe01);
    assert_int_equal(mixt_bf16_from_fp32(mixt__fp32_of_bits(0x7f800001)), 0x7fc0);
    assert_int_equal(bits_of(mixt_tf32_round(mixt__fp32_of_bits(0xff800001))), 0xffc00000);
    assert_int_equal(mixt_fp8_e5m2_from_fp32(mixt__fp32_of_bits(0x7f800001)), 0x7e);
}

static void test_integers(void **state)
{
    (void)state;
    static float inputs[BLOCK];
    static uint8_t want[BLOCK], got[BLOCK];
    for (int i = 0; i < BLOCK - 8; i++)
        inputs[i] = (float)(i - 1024) * 0.25f; // ties, and past both ends
    const float special[8] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, -0.0f, 0x1p-140f, 2147483648.0f};
    memcpy(inputs + BLOCK - 8, special, sizeof special);
    for (int s = 0; s < 2; s++) {
        mixt_dtype dtype = s ? MIXT_DTYPE_INT8 : MIXT_DTYPE_UINT8;
        double low = s ? -128 : 0, high = s ? 127 : 255;
        mixt__narrow_at(MIXT_ISA_SCALAR, dtype, false)(want, inputs, BLOCK);
        for (int i = 0; i < BLOCK; i++) {
            double value = isnan(inputs[i]) ? 0 : fmin(fmax(nearbyint((double)inputs[i]), low), high);
            assert_true((s ? (double)(int8_t)want[i] : (double)want[i]) == value);
        }
        for (int level = 1; level <= (int)mixt__isa_level(); level++) {
            mixt__narrow_at((mixt__isa)level, dtype, false)(got, inputs, BLOCK);
            assert_memory_equal(want, got, BLOCK);
        }
    }
}

/** Odd counts at odd addresses write what they should and not a byte more. */
static void test_odd_counts_and_addresses(void **state)
{
    (void)state;
    enum { GUARD = 80, ROOM = 100 * 4 + 2 * GUARD };
    static char src[ROOM], dst[ROOM], want[ROOM];
    mixt__rng rng = mixt__rng_start(7);
    for (int i = 0; i < ROOM; i++)
        src[i] = (char)mixt__rng_u32(&rng);
    for (int k = 0; k < KERNEL_DTYPES; k++)
        for (int level = 0; level <= (int)mixt__isa_level(); level++)
            for (int64_t count = 0; count <= 100; count += count < 40 ? 1 : 7)
                for (int offset = 0; offset < 4; offset++)
                    for (int direction = 0; direction < 2; direction++) {
                        mixt_dtype dtype = kernel_dtypes[k];
                        char *out = dst + GUARD + offset, *expected = want + GUARD + offset;
                        const char *in = src + GUARD + 3 - offset;
                        memset(dst, 0x5a, ROOM);
                        memset(want, 0x5a, ROOM);
                        if (direction) {
                            mixt__widen_at((mixt__isa)level, dtype, false)((float *)(void *)out, in, count);
                            for (int64_t i = 0; i < count; i++) {
                                float value;
                                mixt__widen_at(MIXT_ISA_SCALAR, dtype,
                                               false)(&value, in + i * (int64_t)mixt_dtype_size(dtype), 1);
                                memcpy(expected + 4 * i, &value, 4);
                            }
                        } else {
                            mixt__narrow_at((mixt__isa)level, dtype, false)(out, (const float *)(const void *)in,
                                                                            count);
                            for (int64_t i = 0; i < count; i++) {
                                float value;
                                memcpy(&value, in + 4 * i, 4);
                                mixt__narrow_at(MIXT_ISA_SCALAR, dtype,
                                                false)(expected + i * (int64_t)mixt_dtype_size(dtype), &value, 1);
                            }
                        }
                        if (memcmp(dst, want, ROOM))
                            fail_msg("%s %s at %s: count %d, offset %d", mixt_dtype_name(dtype),
                                     direction ? "widen" : "narrow", mixt__isa_name((mixt__isa)level), (int)count,
                                     offset);
                    }
}

/** Streaming stores start anywhere on an element boundary. */
static void test_streaming_heads_and_tails(void **state)
{
    (void)state;
    enum { COUNT = 200, PAD = 64 };
    static float values[COUNT];
    static _Alignas(64) char got[COUNT * 4 + 2 * PAD], want[COUNT * 4 + 2 * PAD];
    static uint16_t codes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[i] = (float)i * 1.37f - 100;
        codes[i] = (uint16_t)(i * 331);
    }
    const mixt_dtype dtypes[2] = {MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    for (int k = 0; k < 2; k++)
        for (int level = 0; level <= (int)mixt__isa_level(); level++)
            for (int start = 0; start < 32; start++)
                for (int64_t count = 0; count < COUNT - 32; count += 1 + count / 3) {
                    memset(got, 0x5a, sizeof got);
                    memset(want, 0x5a, sizeof want);
                    mixt__narrow_at((mixt__isa)level, dtypes[k], true)(got + PAD + 2 * start, values, count);
                    mixt__narrow_at(MIXT_ISA_SCALAR, dtypes[k], false)(want + PAD + 2 * start, values, count);
                    assert_memory_equal(got, want, sizeof got);
                    char *wide = got + PAD + 4 * start, *expected = want + PAD + 4 * start;
                    mixt__widen_at((mixt__isa)level, dtypes[k], true)((float *)(void *)wide, codes, count);
                    mixt__widen_at(MIXT_ISA_SCALAR, dtypes[k], false)((float *)(void *)expected, codes, count);
                    assert_memory_equal(got, want, sizeof got);
                }
}

static void test_dtype_table(void **state)
{
    (void)state;
    for (int d = 1; d < MIXT_DTYPE_COUNT; d++) {
        mixt_dtype dtype = (mixt_dtype)d;
        assert_int_equal(mixt_dtype_parse(mixt_dtype_name(dtype)), dtype);
        assert_true(mixt_dtype_size(dtype) > 0);
    }
    assert_int_equal(mixt_dtype_parse("fp31"), MIXT_DTYPE_NONE);
    assert_int_equal(mixt_dtype_parse(NULL), MIXT_DTYPE_NONE);
    assert_string_equal(mixt_dtype_name((mixt_dtype)99), "none");
    assert_int_equal(mixt_dtype_size((mixt_dtype)-1), 0);
    assert_true(mixt_dtype_is_float(MIXT_DTYPE_FP8_E5M2) && !mixt_dtype_is_float(MIXT_DTYPE_INT8));
    for (int k = 0; k < ORACLE_FORMATS; k++) {
        const oracle_format *f = &oracle_formats[k];
        assert_true(mixt__dtype_max(f->dtype) == f->max);
        assert_true(mixt__dtype_roundoff(f->dtype) == ldexp(0.5, -f->mantissa_bits));
        assert_true(mixt__dtype_min_subnormal(f->dtype) == ldexp(1, 1 - f->bias - f->mantissa_bits));
        assert_true(mixt__format_of(f->dtype)->min_normal == ldexp(1, 1 - f->bias));
        assert_int_equal(mixt__format_of(f->dtype)->mantissa_bits, f->mantissa_bits);
        assert_int_equal(mixt__format_narrow(f->dtype), f->bias < 127);
    }
}

/** What the table answers fits together, whatever rows come to it. */
static void formats_answer(void **state)
{
    (void)state;
    char names[MIXT_FORMAT_NAMES];
    for (int d = 1; d < MIXT_DTYPE_COUNT; d++) {
        const mixt_dtype dtype = (mixt_dtype)d;
        const mixt__format *f = mixt__format_of(dtype);
        int bits = f->is_float ? 1 + f->exponent_bits + f->mantissa_bits : (int)(8 * f->size);
        assert_true(bits == (int)(8 * f->size) || mixt__dtype_way(dtype));
        assert_true(mixt_dtype_size(mixt__dtype_stored(dtype)) == f->size);
        assert_true(!mixt__format_may(dtype, MIXT_MAY_COPY) || mixt__format_low(dtype));
        assert_true(!mixt__format_may(dtype, MIXT_MAY_HOLD) || mixt__narrow(dtype));
        assert_true(!f->loss_scaling || mixt__format_narrow(dtype));
        assert_true(!f->preference || mixt__format_may(dtype, MIXT_MAY_MULTIPLY));
    }
    assert_int_equal(mixt__format_lower(0), MIXT_DTYPE_BF16);
    assert_int_equal(mixt__format_lower(1), MIXT_DTYPE_FP16);
    assert_int_equal(mixt__format_lower(2), MIXT_DTYPE_TF32);
    assert_int_equal(mixt__format_lower(3), MIXT_DTYPE_NONE);
    assert_int_equal(mixt__format_lower(-1), MIXT_DTYPE_NONE);
    assert_int_equal(mixt__format_keep(2), MIXT_DTYPE_BF16);
    assert_int_equal(mixt__format_keep(1), MIXT_DTYPE_FP8_E4M3);
    assert_int_equal(mixt__format_keep(3), MIXT_DTYPE_NONE);
    mixt__format_names(MIXT_MAY_KEEP, "or", names, sizeof names);
    assert_string_equal(names, "fp32, fp16, bf16 or fp8_e4m3");
    assert_string_equal(mixt__format_names(MIXT_MAY_COPY, "and", names, sizeof names), "fp16 and bf16");
    assert_string_equal(mixt__format_names(0, "and", names, sizeof names), "");
}

static void csr_of_thread(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)end;
    (void)thread;
#if defined(__x86_64__)
    ((unsigned *)argument)[begin] = _mm_getcsr();
#endif
}

/** Neither the library nor anything that it loads may turn on flush-to-zero or denormals-are-zero, in any thread. */
static void test_subnormals_are_not_flushed(void **state)
{
    (void)state;
    unsigned csr[2] = {0, 0};
    mixt__threads_set(2);
    mixt__parallel(2, 1, csr_of_thread, csr);
    mixt__threads_set(0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(csr[i] & 0x8040, 0);
    volatile float tiny = 0x1p-149f;
    assert_true(tiny * 1.0f > 0 && tiny + tiny == 0x1p-148f);
}

static void random_numbers_begin_anywhere(void **state)
{
    (void)state;
    for (uint64_t words = 0; words < 11; words++) {
        mixt__rng whole = mixt__rng_start(7), part = mixt__rng_start_at(7, words);
        for (uint64_t i = 0; i < words; i++)
            mixt__rng_u32(&whole);
        for (int i = 0; i < 9; i++)
            assert_int_equal(mixt__rng_u32(&part), mixt__rng_u32(&whole));
    }
}

/** What a float becomes in a format and back. */
static float rounded(float x, mixt_dtype dtype)
{
    char low[8];
    mixt__narrow(dtype)(low, &x, 1);
    mixt__widen(dtype)(&x, low, 1);
    return x;
}

/** The limits where numbers round to no finite one and to 0 are those of the conversions, to the last bit. */
static void limits_are_those_of_rounding(void **state)
{
    static const mixt_dtype dtypes[] = {MIXT_DTYPE_FP16, MIXT_DTYPE_BF16, MIXT_DTYPE_TF32, MIXT_DTYPE_FP8_E5M2,
                                        MIXT_DTYPE_FP8_E4M3};
    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        float beyond = mixt__dtype_beyond(dtypes[i]), flushed = mixt__dtype_flushed(dtypes[i]);
        float largest = (float)mixt__dtype_max(dtypes[i]);
        assert_true(rounded(nextafterf(beyond, 0), dtypes[i]) == largest);
        assert_true(dtypes[i] == MIXT_DTYPE_FP8_E4M3 || isinf(rounded(beyond, dtypes[i])));
        assert_true(rounded(flushed, dtypes[i]) == 0);
        assert_true(rounded(nextafterf(flushed, 1), dtypes[i]) > 0);
    }
    assert_true(isinf(mixt__dtype_beyond(MIXT_DTYPE_FP32)) && mixt__dtype_flushed(MIXT_DTYPE_FP32) == 0);
    assert_true(isinf(mixt__dtype_beyond(MIXT_DTYPE_NONE)) && mixt__dtype_flushed(MIXT_DTYPE_NONE) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_begin_anywhere),
        cmocka_unit_test(limits_are_those_of_rounding),
        cmocka_unit_test(test_dtype_table),
        cmocka_unit_test(formats_answer),
        cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_strided_sample),
        cmocka_unit_test(test_single_value_functions),
        cmocka_unit_test(test_every_code_round_trips),
        cmocka_unit_test(test_widen_levels_agree),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_odd_counts_and_addresses),
        cmocka_unit_test(test_streaming_heads_and_tails),
        cmocka_unit_test(test_subnormals_are_not_flushed),
    };
    return cmocka_run_group_tests_name("num", tests, NULL, NULL);
}
