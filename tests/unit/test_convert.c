/* mixt_convert: every pair of formats, options, threads, in-place use, stochastic rounding, misuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../support/num_oracle.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "base/threads.h"
#include "mixt/num.h"
#include "num/num.h"

enum { COUNT = 5003, SEED = 20240611 }; // odd, several tiles

static double value_at(const void *array, mixt_dtype dtype, int64_t i)
{
    const char *at = (const char *)array + (size_t)i * mixt_dtype_size(dtype);
    double fp64;
    float fp32;
    int32_t int32;
    int64_t int64;
    uint32_t code = 0;
    switch (dtype) {
    case MIXT_DTYPE_FP64:
        return memcpy(&fp64, at, 8), fp64;
    case MIXT_DTYPE_FP32:
        return memcpy(&fp32, at, 4), (double)fp32;
    case MIXT_DTYPE_INT32:
        return memcpy(&int32, at, 4), (double)int32;
    case MIXT_DTYPE_INT64:
        return memcpy(&int64, at, 8), (double)int64;
    case MIXT_DTYPE_INT8:
        return (double)*(const int8_t *)at;
    case MIXT_DTYPE_UINT8:
        return (double)*(const uint8_t *)at;
    default:
        memcpy(&code, at, mixt_dtype_size(dtype));
        for (int k = 0; k < ORACLE_FORMATS; k++)
            if (oracle_formats[k].dtype == dtype)
                return oracle_decode(&oracle_formats[k], code);
        fail();
        return 0;
    }
}

/** What `value` should become in `dtype`, rounding once from double. */
static double expected_value(double value, mixt_dtype dtype)
{
    for (int k = 0; k < ORACLE_FORMATS; k++)
        if (oracle_formats[k].dtype == dtype)
            return oracle_round(&oracle_formats[k], value);
    const double low[MIXT_DTYPE_COUNT] = {
        [MIXT_DTYPE_INT8] = -128, [MIXT_DTYPE_INT32] = INT32_MIN, [MIXT_DTYPE_INT64] = (double)INT64_MIN};
    const double high[MIXT_DTYPE_COUNT] = {
        [MIXT_DTYPE_INT8] = 127, [MIXT_DTYPE_UINT8] = 255, [MIXT_DTYPE_INT32] = INT32_MAX, [MIXT_DTYPE_INT64] = 0x1p63};
    if (dtype == MIXT_DTYPE_FP32)
        return (double)(float)value;
    if (dtype == MIXT_DTYPE_FP64)
        return value;
    return isnan(value) ? 0 : fmin(fmax(nearbyint(value), low[dtype]), high[dtype]);
}

/** Values of many magnitudes, in the source format. */
static void fill(void *array, mixt_dtype dtype, int64_t count)
{
    mixt__rng rng = mixt__rng_start(SEED);
    for (int64_t i = 0; i < count; i++) {
        char *at = (char *)array + (size_t)i * mixt_dtype_size(dtype);
        uint64_t bits = (uint64_t)mixt__rng_u32(&rng) << 32 | mixt__rng_u32(&rng);
        double value = ldexp((double)(int64_t)bits, -63 + (int)(mixt__rng_u32(&rng) % 60) - 30);
        if (dtype == MIXT_DTYPE_INT64)
            bits = (uint64_t)((int64_t)bits >> (mixt__rng_u32(&rng) % 64));
        if (dtype == MIXT_DTYPE_INT32)
            bits = (uint64_t)((int32_t)bits >> (mixt__rng_u32(&rng) % 32));
        float single = (float)value;
        if (dtype == MIXT_DTYPE_TF32)
            single = mixt_tf32_round(single);
        if (dtype == MIXT_DTYPE_FP64)
            memcpy(at, &value, 8);
        else if (mixt_dtype_size(dtype) == 4 && mixt_dtype_is_float(dtype))
            memcpy(at, &single, 4);
        else
            memcpy(at, &bits, mixt_dtype_size(dtype));
    }
}

static void test_every_pair(void **state)
{
    (void)state;
    static char src[COUNT * 8], dst[COUNT * 8 + 1];
    for (int s = 1; s < MIXT_DTYPE_NF4; s++)
        for (int d = 1; d < MIXT_DTYPE_NF4; d++) {
            mixt_dtype from = (mixt_dtype)s, to = (mixt_dtype)d;
            fill(src, from, COUNT);
            memset(dst, 0x5a, sizeof dst);
            assert_int_equal(mixt_convert(dst, to, src, from, COUNT, NULL), MIXT_OK);
            assert_int_equal(dst[COUNT * mixt_dtype_size(to)], 0x5a);
            for (int64_t i = 0; i < COUNT; i++) {
                double value = value_at(src, from, i), want = expected_value(value, to), got = value_at(dst, to, i);
                if (from == MIXT_DTYPE_INT64 && !(fabs(value) < 0x1p53))
                    continue; // double cannot hold the source: see test_wide_sources_round_once
                if (!(want == got || (isnan(want) && isnan(got))))
                    fail_msg("%s to %s: %a became %a, expected %a (seed %d)", mixt_dtype_name(from),
                             mixt_dtype_name(to), value, got, want, SEED);
            }
        }
}

static void test_wide_sources_round_once(void **state)
{
    (void)state;
    // Just above a tie of the target: rounding to FP32 first would land on the tie and then go down to even.
    const double above = 1 + 0x1p-11 + 0x1p-40;
    uint16_t half;
    assert_int_equal(mixt_convert(&half, MIXT_DTYPE_FP16, &above, MIXT_DTYPE_FP64, 1, NULL), MIXT_OK);
    assert_int_equal(half, 0x3c01);
    const int64_t big[4] = {(1ll << 62) + (1ll << 38) + 1, (1ll << 62) + (1ll << 38), INT64_MAX, INT64_MIN};
    float single[4];
    assert_int_equal(mixt_convert(single, MIXT_DTYPE_FP32, big, MIXT_DTYPE_INT64, 4, NULL), MIXT_OK);
    for (int i = 0; i < 4; i++)
        assert_true(single[i] == (float)big[i]);
    uint16_t brain[2];
    const int64_t ties[2] = {(1ll << 62) + (1ll << 54) + 1, -(1ll << 62) - (1ll << 54) - 1};
    assert_int_equal(mixt_convert(brain, MIXT_DTYPE_BF16, ties, MIXT_DTYPE_INT64, 2, NULL), MIXT_OK);
    assert_int_equal(brain[0], 0x5e81);
    assert_int_equal(brain[1], 0xde81);
    double exact[2];
    assert_int_equal(mixt_convert(exact, MIXT_DTYPE_FP64, big + 2, MIXT_DTYPE_INT64, 2, NULL), MIXT_OK);
    assert_true(exact[0] == 0x1p63 && exact[1] == -0x1p63);
    const double past[3] = {1e300, -1e300, NAN};
    int64_t clamped[3];
    assert_int_equal(mixt_convert(clamped, MIXT_DTYPE_INT64, past, MIXT_DTYPE_FP64, 3, NULL), MIXT_OK);
    assert_true(clamped[0] == INT64_MAX && clamped[1] == INT64_MIN && clamped[2] == 0);
}

static void test_scale_and_saturate(void **state)
{
    (void)state;
    const float values[6] = {1, -3.1f, 1000, -1e30f, INFINITY, NAN};
    mixt_convert_options options = MIXT_OPTIONS(mixt_convert_options, .scale = 0.5f);
    int8_t bytes[6];
    assert_int_equal(mixt_convert(bytes, MIXT_DTYPE_INT8, values, MIXT_DTYPE_FP32, 6, &options), MIXT_OK);
    const int8_t want[6] = {2, -6, 127, -128, 127, 0};
    assert_memory_equal(bytes, want, 6);
    float back[6];
    assert_int_equal(mixt_convert(back, MIXT_DTYPE_FP32, bytes, MIXT_DTYPE_INT8, 6, &options), MIXT_OK);
    assert_true(back[0] == 1 && back[1] == -3 && back[2] == 63.5f);
    const double doubles[2] = {1, -3.1};
    assert_int_equal(mixt_convert(bytes, MIXT_DTYPE_INT8, doubles, MIXT_DTYPE_FP64, 2, &options), MIXT_OK);
    assert_memory_equal(bytes, want, 2);

    options = MIXT_OPTIONS(mixt_convert_options, .saturate = true);
    const mixt_dtype bounded[3] = {MIXT_DTYPE_FP16, MIXT_DTYPE_FP8_E4M3, MIXT_DTYPE_FP8_E5M2};
    for (int k = 0; k < 3; k++) {
        uint16_t codes[6];
        assert_int_equal(mixt_convert(codes, bounded[k], values, MIXT_DTYPE_FP32, 6, &options), MIXT_OK);
        assert_true(value_at(codes, bounded[k], 3) == -mixt__dtype_max(bounded[k]));
        assert_true(value_at(codes, bounded[k], 4) == mixt__dtype_max(bounded[k]));
        assert_true(isnan(value_at(codes, bounded[k], 5)));
    }
    uint16_t half = 0xfc00; // an infinity already there is clamped too
    assert_int_equal(mixt_convert(&half, MIXT_DTYPE_FP16, &half, MIXT_DTYPE_FP16, 1, &options), MIXT_OK);
    assert_int_equal(half, 0xfbff);
}

static void test_in_place(void **state)
{
    (void)state;
    static uint16_t array[COUNT], want[COUNT];
    for (int i = 0; i < COUNT; i++)
        array[i] = (uint16_t)(i * 13);
    assert_int_equal(mixt_convert(want, MIXT_DTYPE_BF16, array, MIXT_DTYPE_FP16, COUNT, NULL), MIXT_OK);
    assert_int_equal(mixt_convert(array, MIXT_DTYPE_BF16, array, MIXT_DTYPE_FP16, COUNT, NULL), MIXT_OK);
    assert_memory_equal(array, want, sizeof want);
    static float floats[COUNT], rounded[COUNT];
    fill(floats, MIXT_DTYPE_FP32, COUNT);
    assert_int_equal(mixt_convert(rounded, MIXT_DTYPE_TF32, floats, MIXT_DTYPE_FP32, COUNT, NULL), MIXT_OK);
    assert_int_equal(mixt_convert(floats, MIXT_DTYPE_TF32, floats, MIXT_DTYPE_FP32, COUNT, NULL), MIXT_OK);
    assert_memory_equal(floats, rounded, sizeof rounded);
}

/** Enough elements for streaming stores on usual caches, with a head that is not aligned, and no allocation. */
static void test_large_arrays_and_threads(void **state)
{
    (void)state;
    const int64_t count = ((int64_t)12 << 20) + 17;
    float *src = malloc((size_t)count * 4), *back = malloc((size_t)count * 4 + 64);
    uint16_t *dst = malloc((size_t)count * 2 + 64), *one = malloc((size_t)count * 2 + 64);
    assert_true(src && back && dst && one);
    for (int64_t i = 0; i < count; i++)
        src[i] = mixt__fp32_of_bits((uint32_t)i * 2654435761u);
    const int64_t allocations = mixt__alloc_count();
    for (int k = 0; k < 2; k++) {
        mixt_dtype dtype = oracle_formats[k].dtype;
        mixt__threads_set(3);
        assert_int_equal(mixt_convert(dst + 3, dtype, src, MIXT_DTYPE_FP32, count, NULL), MIXT_OK);
        mixt__threads_set(1);
        assert_int_equal(mixt_convert(one + 3, dtype, src, MIXT_DTYPE_FP32, count, NULL), MIXT_OK);
        assert_memory_equal(dst + 3, one + 3, (size_t)count * 2);
        for (int64_t i = 0; i < count; i += 997)
            assert_true(oracle_accepts(&oracle_formats[k], (double)src[i], dst[i + 3]));
        assert_int_equal(mixt_convert(back + 1, MIXT_DTYPE_FP32, dst + 3, dtype, count, NULL), MIXT_OK);
        for (int64_t i = 0; i < count; i++) {
            float value = k ? mixt_bf16_to_fp32(dst[i + 3]) : mixt_fp16_to_fp32(dst[i + 3]);
            assert_int_equal(mixt__fp32_bits(back[i + 1]), mixt__fp32_bits(value));
        }
    }
    assert_int_equal(mixt__alloc_count(), allocations);
    mixt__threads_set(0);
    free(src);
    free(back);
    free(dst);
    free(one);
}

/** The mean of many roundings of one value is that value, within five standard errors; only neighbours occur. */
static void check_unbiased(mixt_dtype from, mixt_dtype to, double value, double low, double high)
{
    enum { DRAWS = 200000 };
    static char src[DRAWS * 8], dst[DRAWS * 8];
    float single = (float)value;
    for (int64_t i = 0; i < DRAWS; i++)
        memcpy(src + (size_t)i * mixt_dtype_size(from), from == MIXT_DTYPE_FP64 ? (void *)&value : (void *)&single,
               mixt_dtype_size(from));
    mixt_convert_options options = MIXT_OPTIONS(mixt_convert_options, .stochastic = true, .seed = SEED);
    assert_int_equal(mixt_convert(dst, to, src, from, DRAWS, &options), MIXT_OK);
    int64_t up = 0;
    for (int64_t i = 0; i < DRAWS; i++) {
        double got = value_at(dst, to, i);
        assert_true(got == low || got == high);
        up += got == high;
    }
    double probability = (value - low) / (high - low);
    double bound = 5 * sqrt(probability * (1 - probability) / DRAWS) + 0x1p-32;
    if (!(fabs((double)up / DRAWS - probability) <= bound))
        fail_msg("%s: %a went up %lld of %d times, expected share %g +- %g (seed %d)", mixt_dtype_name(to), value,
                 (long long)up, DRAWS, probability, bound, SEED);
}

static void test_stochastic_is_unbiased(void **state)
{
    (void)state;
    const mixt_dtype fp32 = MIXT_DTYPE_FP32;
    check_unbiased(fp32, MIXT_DTYPE_FP16, 1 + 0.3125 * 0x1p-10, 1, 1 + 0x1p-10);
    check_unbiased(fp32, MIXT_DTYPE_FP16, -1 - 0.25 * 0x1p-10, -1 - 0x1p-10, -1);
    check_unbiased(fp32, MIXT_DTYPE_FP16, 0.125 * 0x1p-24, 0, 0x1p-24);
    check_unbiased(fp32, MIXT_DTYPE_FP16, 5.75 * 0x1p-24, 5 * 0x1p-24, 6 * 0x1p-24);
    check_unbiased(fp32, MIXT_DTYPE_BF16, 3 + 0.1 * 0x1p-6, 3, 3 + 0x1p-6);
    check_unbiased(fp32, MIXT_DTYPE_BF16, 0x1.4p-132, 0x1p-132, 0x1.8p-132);
    check_unbiased(fp32, MIXT_DTYPE_TF32, 1 + 0.4375 * 0x1p-10, 1, 1 + 0x1p-10);
    check_unbiased(fp32, MIXT_DTYPE_FP8_E4M3, 17, 16, 18);
    check_unbiased(fp32, MIXT_DTYPE_FP8_E4M3, 0x1p-12, 0, 0x1p-9);
    check_unbiased(fp32, MIXT_DTYPE_FP8_E5M2, 4.25, 4, 5);
    check_unbiased(fp32, MIXT_DTYPE_INT8, -2.75, -3, -2);
    check_unbiased(MIXT_DTYPE_FP64, MIXT_DTYPE_FP32, 1 + 0.7 * 0x1p-23, 1, 1 + 0x1p-23);
    check_unbiased(MIXT_DTYPE_FP64, MIXT_DTYPE_FP16, 1 + 0.7 * 0x1p-10, 1, 1 + 0x1p-10);
}

static void test_stochastic_is_reproducible(void **state)
{
    (void)state;
    enum { MANY = 100003 };
    static float src[MANY];
    static uint16_t one[MANY], three[MANY], part[MANY], other[MANY];
    fill(src, MIXT_DTYPE_FP32, MANY);
    mixt_convert_options options = MIXT_OPTIONS(mixt_convert_options, .stochastic = true, .seed = SEED);
    mixt__threads_set(1);
    assert_int_equal(mixt_convert(one, MIXT_DTYPE_BF16, src, MIXT_DTYPE_FP32, MANY, &options), MIXT_OK);
    mixt__threads_set(3);
    assert_int_equal(mixt_convert(three, MIXT_DTYPE_BF16, src, MIXT_DTYPE_FP32, MANY, &options), MIXT_OK);
    assert_int_equal(mixt_convert(part, MIXT_DTYPE_BF16, src, MIXT_DTYPE_FP32, 999, &options), MIXT_OK);
    options.seed++;
    assert_int_equal(mixt_convert(other, MIXT_DTYPE_BF16, src, MIXT_DTYPE_FP32, MANY, &options), MIXT_OK);
    mixt__threads_set(0);
    assert_memory_equal(one, three, sizeof one);
    assert_memory_equal(one, part, 999 * sizeof *one);
    assert_memory_not_equal(one, other, sizeof one);
}

/** Values that a format holds are left alone; NaN and infinity survive. */
static void test_stochastic_keeps_exact_values(void **state)
{
    (void)state;
    static uint16_t codes[65536], back[65536];
    static float wide[65536];
    for (int i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    mixt_convert_options options = MIXT_OPTIONS(mixt_convert_options, .stochastic = true, .seed = SEED);
    for (int k = 0; k < 2; k++) {
        mixt_dtype dtype = oracle_formats[k].dtype;
        assert_int_equal(mixt_convert(wide, MIXT_DTYPE_FP32, codes, dtype, 65536, NULL), MIXT_OK);
        assert_int_equal(mixt_convert(back, dtype, wide, MIXT_DTYPE_FP32, 65536, &options), MIXT_OK);
        for (int64_t i = 0; i < 65536; i++)
            assert_true(back[i] == codes[i] || (isnan(wide[i]) && isnan(value_at(back, dtype, i))));
    }
}

static void test_misuse(void **state)
{
    (void)state;
    float values[4] = {0};
    uint16_t codes[4];
    mixt_convert_options options = MIXT_OPTIONS(mixt_convert_options, .scale = -1);
    assert_int_equal(mixt_convert(codes, MIXT_DTYPE_NONE, values, MIXT_DTYPE_FP32, 4, NULL), MIXT_ERROR_DTYPE);
    assert_int_equal(mixt_convert(codes, MIXT_DTYPE_FP16, values, (mixt_dtype)77, 4, NULL), MIXT_ERROR_DTYPE);
    assert_non_null(strstr(mixt_error_text(), "77"));
    assert_int_equal(mixt_convert(codes, MIXT_DTYPE_FP16, values, MIXT_DTYPE_FP32, -1, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_convert(codes, MIXT_DTYPE_FP16, values, MIXT_DTYPE_FP32, 4, &options), MIXT_ERROR_ARGUMENT);
    options.scale = NAN;
    assert_int_equal(mixt_convert(codes, MIXT_DTYPE_FP16, values, MIXT_DTYPE_FP32, 4, &options), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_convert(NULL, MIXT_DTYPE_FP16, values, MIXT_DTYPE_FP32, 4, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_convert(values, MIXT_DTYPE_FP16, values, MIXT_DTYPE_FP32, 4, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_convert(NULL, MIXT_DTYPE_FP16, NULL, MIXT_DTYPE_FP32, 0, NULL), MIXT_OK);
}

static void test_load_and_store(void **state)
{
    (void)state;
    char array[3 * 8];
    for (int d = 1; d < MIXT_DTYPE_NF4; d++) {
        memset(array, 0, sizeof array);
        mixt__store(array, (mixt_dtype)d, 2, 5);
        assert_true(mixt__load(array, (mixt_dtype)d, 2) == 5);
        assert_true(mixt__load(array, (mixt_dtype)d, 1) == 0);
        assert_true(value_at(array, (mixt_dtype)d, 2) == 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair),
        cmocka_unit_test(test_wide_sources_round_once),
        cmocka_unit_test(test_scale_and_saturate),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_large_arrays_and_threads),
        cmocka_unit_test(test_stochastic_is_unbiased),
        cmocka_unit_test(test_stochastic_is_reproducible),
        cmocka_unit_test(test_stochastic_keeps_exact_values),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_load_and_store),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
