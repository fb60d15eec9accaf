/* mixt_compute: products, sums and views of arrays in each format against loops in double precision; arrays that do not
 * fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"

#include <math.h>
#include <string.h>

static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};

static void must(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

/** Small whole numbers: exact in every format, and so are their products' sums. */
static void fill(void *array, mixt_dtype dtype, int64_t count, int period)
{
    for (int64_t i = 0; i < count; i++) {
        float value = (float)(i * 7 % period - period / 2);
        must(mixt_convert((char *)array + (size_t)i * mixt_dtype_size(dtype), dtype, &value, MIXT_DTYPE_FP32, 1, NULL));
    }
}

static double get(const void *array, mixt_dtype dtype, int64_t i)
{
    float value;
    must(mixt_convert(&value, MIXT_DTYPE_FP32, (const char *)array + (size_t)i * mixt_dtype_size(dtype), dtype, 1,
                      NULL));
    return value;
}

static mixt_value product(mixt_builder *b, const mixt_value *in)
{
    return mixt_matmul(b, in[0], in[1], .trans_b = true);
}

static mixt_value fused_sum(mixt_builder *b, const mixt_value *in)
{
    return mixt_relu(b, mixt_add(b, mixt_mul(b, in[0], in[1]), in[2]));
}

static mixt_value flipped(mixt_builder *b, const mixt_value *in)
{
    return mixt_transpose(b, in[0], (int[]){1, 0});
}

static mixt_value itself(mixt_builder *b, const mixt_value *in)
{
    (void)b;
    return in[0];
}

static mixt_value with_weights(mixt_builder *b, const mixt_value *in)
{
    return mixt_linear(b, "fc", in[0], .features = 3);
}

static mixt_value rows_of(mixt_builder *b, const mixt_value *in)
{
    return mixt_embedding_lookup(b, in[0], in[1]);
}

static void products_are_exact_on_whole_numbers(void **state)
{
    enum { M = 13, N = 9, K = 37 };
    float a[M * K], b[N * K], c[M * N];
    for (int f = 0; f < 3; f++) {
        mixt_array in[] = {{a, formats[f], 2, {M, K}}, {b, formats[f], 2, {N, K}}},
                   out = {c, MIXT_DTYPE_FP32, 2, {M, N}};
        fill(a, formats[f], M * K, 11);
        fill(b, formats[f], N * K, 5);
        must(mixt_compute(*state, product, in, 2, &out));
        for (int i = 0; i < M * N; i++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += get(a, formats[f], i / N * K + k) * get(b, formats[f], i % N * K + k);
            if (c[i] != sum) // FP32 all the way
                fail_msg("%s: element %d is %g, expected %g", mixt_dtype_name(formats[f]), i, (double)c[i], sum);
        }
    }
}

static mixt_value whole_sum(mixt_builder *b, const mixt_value *in)
{
    return mixt_sum(b, in[0]);
}

static mixt_value reshaped_sum(mixt_builder *b, const mixt_value *in)
{
    mixt_value sum = mixt_reshape(b, mixt_sum(b, in[0]), 1, (int64_t[]){1});
    return mixt_affine(b, mixt_add(b, sum, sum), 2, 1);
}

static mixt_value whole_square(mixt_builder *b, const mixt_value *in)
{
    return mixt_matmul(b, in[0], in[0], .trans_b = true);
}

static mixt_value product_of_sums(mixt_builder *b, const mixt_value *in)
{
    mixt_value sum = mixt_sum(b, in[0], .axes = {1}, .axis_count = 1, .keep_dims = true);
    return mixt_matmul(b, sum, sum, .trans_a = true);
}

static mixt_value sum_and_more(mixt_builder *b, const mixt_value *in)
{
    return mixt_add(b, mixt_sum(b, in[0]), in[1]);
}

/** Numbers past the inputs' largest on the way to a result that holds them. */
static void results_are_rounded_once(void **state)
{
    enum { COUNT = 70000 };
    static uint16_t ones[COUNT];
    float result[2] = {0};
    uint16_t low;
    const struct {
        mixt_compute_fn fn;
        int rank;
        double want;
    } cases[] = {
        {whole_sum, 0, COUNT},
        {reshaped_sum, 1, 4 * COUNT + 1},
        {whole_square, 2, COUNT},
        {product_of_sums, 2, (double)COUNT * COUNT},
    };
    for (int i = 0; i < COUNT; i++)
        ones[i] = 0x3c00;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_array in = {ones, MIXT_DTYPE_FP16, 2, {1, COUNT}}, out = {result, MIXT_DTYPE_FP32, cases[i].rank, {1, 1}};
        must(mixt_compute(*state, cases[i].fn, &in, 1, &out));
        assert_true(result[0] == (float)cases[i].want);
    }
    float more = 2;
    mixt_array in[] = {{ones, MIXT_DTYPE_FP16, 2, {1, COUNT}}, {&more, MIXT_DTYPE_FP32, 0, {0}}},
               wide = {result, MIXT_DTYPE_FP32, 0, {0}}, out = {&low, MIXT_DTYPE_BF16, 0, {0}};
    must(mixt_compute(*state, sum_and_more, in, 2, &wide));
    assert_true(result[0] == COUNT + 2);
    must(mixt_compute(*state, whole_sum, in, 1, &out));
    assert_true(get(&low, MIXT_DTYPE_BF16, 0) == 70144); // 70000 in steps of 512
    out.dtype = MIXT_DTYPE_FP16;
    must(mixt_compute(*state, whole_sum, in, 1, &out));
    assert_true(isinf(get(&low, MIXT_DTYPE_FP16, 0)));
}

static void pointwise_broadcasts_in_mixed_formats(void **state)
{
    enum { ROWS = 5, COLUMNS = 23 };
    float x[ROWS * COLUMNS], y[COLUMNS], z[ROWS * COLUMNS], r[ROWS * COLUMNS];
    for (int f = 0; f < 3; f++) {
        mixt_array in[] = {{x, formats[f], 2, {ROWS, COLUMNS}},
                           {y, MIXT_DTYPE_FP32, 1, {COLUMNS}},
                           {z, MIXT_DTYPE_BF16, 2, {ROWS, COLUMNS}}};
        mixt_array out = {r, formats[f], 2, {ROWS, COLUMNS}};
        fill(x, formats[f], ROWS * COLUMNS, 9);
        fill(y, MIXT_DTYPE_FP32, COLUMNS, 7);
        fill(z, MIXT_DTYPE_BF16, ROWS * COLUMNS, 15);
        must(mixt_compute(*state, fused_sum, in, 3, &out));
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            double want = get(x, formats[f], i) * y[i % COLUMNS] + get(z, MIXT_DTYPE_BF16, i);
            assert_true(get(r, formats[f], i) == (want > 0 ? want : 0));
        }
    }
}

static void views_and_inputs_become_arrays(void **state)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    mixt_array in = {x, MIXT_DTYPE_FP32, 2, {2, 3}}, out = {y, MIXT_DTYPE_FP32, 2, {3, 2}};
    must(mixt_compute(*state, flipped, &in, 1, &out));
    assert_memory_equal(y, ((float[]){1, 4, 2, 5, 3, 6}), sizeof y);
    mixt_array same = {y, MIXT_DTYPE_FP32, 2, {2, 3}};
    must(mixt_compute(*state, itself, &in, 1, &same));
    assert_memory_equal(y, x, sizeof y);
}

static void indices_choose_rows(void **state)
{
    float table[8] = {0, 1, 10, 11, 20, 21, 30, 31}, y[6];
    int32_t ids[3] = {3, 0, 3};
    mixt_array in[] = {{table, MIXT_DTYPE_FP32, 2, {4, 2}}, {ids, MIXT_DTYPE_INT32, 1, {3}}},
               out = {y, MIXT_DTYPE_FP32, 2, {3, 2}};
    must(mixt_compute(*state, rows_of, in, 2, &out));
    assert_memory_equal(y, ((float[]){30, 31, 0, 1, 30, 31}), sizeof y);
}

static void refused(mixt_context *ctx, mixt_compute_fn fn, const mixt_array *in, int count, const mixt_array *out,
                    const char *words)
{
    if (mixt_compute(ctx, fn, in, count, out) == MIXT_OK || !strstr(mixt_error_text(), words))
        fail_msg("expected \"%s\", got \"%s\"", words, mixt_error_text());
}

static void arrays_that_do_not_fit_are_refused(void **state)
{
    float x[12] = {0}, y[12] = {0}, r[16];
    mixt_array in[] = {{x, MIXT_DTYPE_FP32, 2, {3, 4}}, {y, MIXT_DTYPE_FP32, 2, {3, 4}}},
               out = {r, MIXT_DTYPE_FP32, 2, {3, 3}};
    must(mixt_compute(*state, product, in, 2, &out));
    mixt_array wide = out, whole = out, none = in[0], empty = in[0];
    wide.dims[1] = 4;
    refused(*state, product, in, 2, &wide, "the result has shape (3, 3), but its array has (3, 4)");
    whole.dtype = MIXT_DTYPE_INT32;
    refused(*state, product, in, 2, &whole, "the result array is int32");
    none.data = NULL;
    refused(*state, itself, &none, 1, &out, "an input array needs data");
    empty.dims[0] = 0;
    refused(*state, itself, &empty, 1, &out, "dimension 0 is 0");
    refused(*state, with_weights, in, 1, &out, "parameter 'fc.weight': a function with parameters needs a trainer");
    refused(*state, product, in, 17, &out, "17 input arrays: at most 16");
    in[1].dims[1] = 3;
    refused(*state, product, in, 2, &out, "the inner sizes differ");
    refused(*state, NULL, in, 2, &out, "mixt_compute needs a function");
    assert_string_equal(mixt_error(*state),
                        "the result has shape (3, 3), but its array has (3, 4)"); // the first one stays
}

static int open_context(void **state)
{
    *state = mixt_open(.device = "cpu");
    return *state ? 0 : -1;
}

static int close_context(void **state)
{
    mixt_close(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_exact_on_whole_numbers), cmocka_unit_test(pointwise_broadcasts_in_mixed_formats),
        cmocka_unit_test(views_and_inputs_become_arrays),      cmocka_unit_test(indices_choose_rows),
        cmocka_unit_test(arrays_that_do_not_fit_are_refused),  cmocka_unit_test(results_are_rounded_once),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
