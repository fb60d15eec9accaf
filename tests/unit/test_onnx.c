/* Models from ONNX files: the numbers that they give against sums by hand, every element type, and damaged files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "base/alloc.h"
#include "onnx/onnx.h"

#include "../support/onnx_file.h"
#include "../support/temp_folder.h"

enum { IN = 3, HIDDEN = 4, OUT = 2, SAMPLES = 5 };

static const float w1[HIDDEN * IN] = {.5f, -1, 2, 1, 1, -1, -.25f, .5f, 1, 3, -2, .125f};
static const float b1[HIDDEN] = {.25f, -.5f, 0, 1};
static const float w2[HIDDEN * OUT] = {1, -1, .5f, 2, -2, .25f, 1, 1}; // (K, N), as MatMul has it
static const float b2[OUT] = {.75f, -1.5f};

/** Gemm, Relu, MatMul, Add: a perceptron as exporters write it. */
static mixt__wire_out perceptron(void)
{
    onnx_graph g = {0};
    onnx_floats(&g, "fc1.weight", 2, (int64_t[]){HIDDEN, IN}, w1);
    onnx_floats(&g, "fc1.bias", 1, (int64_t[]){HIDDEN}, b1);
    onnx_floats(&g, "fc2.weight", 2, (int64_t[]){HIDDEN, OUT}, w2);
    onnx_floats(&g, "fc2.bias", 1, (int64_t[]){OUT}, b2);
    onnx_value(&g, true, "x", 2, (int64_t[]){-1, IN});
    onnx_value(&g, false, "y", 2, (int64_t[]){-1, OUT});
    onnx_node(&g, "Gemm", "x fc1.weight fc1.bias", "h", &(onnx_int){"transB", 1});
    onnx_node(&g, "Relu", "h", "r", NULL);
    onnx_node(&g, "MatMul", "r fc2.weight", "m", NULL);
    onnx_node(&g, "Add", "m fc2.bias", "y", NULL);
    return onnx_finish(&g);
}

static const char *write_file(const char *name, mixt__wire_out *file)
{
    const char *path = temp_path(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file->bytes, 1, (size_t)file->count, f), file->count);
    fclose(f);
    return path;
}

static mixt_data *some_data(void)
{
    static float x[SAMPLES * IN], y[SAMPLES * OUT];
    mixt_data *data;
    for (int i = 0; i < SAMPLES * IN; i++)
        x[i] = (float)(i % 7) - 3;
    mixt_data_arrays a = MIXT_OPTIONS(mixt_data_arrays, .samples = SAMPLES, .input_rank = 1, .input_dims = {IN},
                                      .inputs = x, .target = MIXT_TARGET_VALUES, .targets = y, .target_elements = OUT);
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .normalise = MIXT_NORMALISE_NONE);
    assert_int_equal(mixt_data_from(&a, &o, &data), MIXT_OK);
    return data;
}

static void forward_by_hand(const float *x, float *y)
{
    float h[HIDDEN];
    for (int i = 0; i < HIDDEN; i++) {
        h[i] = b1[i];
        for (int k = 0; k < IN; k++)
            h[i] += w1[i * IN + k] * x[k];
        h[i] = h[i] > 0 ? h[i] : 0;
    }
    for (int o = 0; o < OUT; o++) {
        y[o] = b2[o];
        for (int k = 0; k < HIDDEN; k++)
            y[o] += h[k] * w2[k * OUT + o];
    }
}

static void numbers_of_a_perceptron(void **state)
{
    (void)state;
    mixt__wire_out file = perceptron();
    const char *path = write_file("net.onnx", &file);
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *data = some_data();
    mixt_model *model = mixt_onnx_model(context, path, data);
    mixt_trainer *t = mixt_trainer_new(model, .precision = "fp32", .batch = 2, .eval_batch = 3, .lr = 0.01f);
    float x[4 * IN], y[4 * OUT], expected[OUT];
    for (int i = 0; i < 4 * IN; i++)
        x[i] = (float)(i * 5 % 11) / 4 - 1;
    assert_int_equal(mixt_trainer_compile(t, data), MIXT_OK);
    if (mixt_trainer_predict(t, x, 4, y) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    for (int s = 0; s < 4; s++) {
        forward_by_hand(x + s * IN, expected);
        for (int o = 0; o < OUT; o++)
            assert_float_equal(y[s * OUT + o], expected[o], 1e-5f);
    }
    mixt_param_info info;
    assert_int_equal(mixt_trainer_param_count(t), 4);
    assert_int_equal(mixt_trainer_param(t, 2, &info), MIXT_OK);
    assert_string_equal(info.name, "fc2.weight");
    mixt_step first, last = {0};
    for (int i = 0; i < 40; i++)
        assert_int_equal(mixt_trainer_step(t, data, i ? &last : &first), MIXT_OK);
    assert_true(last.loss < 0.5 * first.loss);
    mixt_close(context);
    mixt_data_close(data);
    mixt__wire_out_free(&file);
}

static void new_last_layer(void **state)
{
    (void)state;
    mixt__wire_out file = perceptron();
    const char *path = write_file("head.onnx", &file);
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *data = some_data();
    assert_null(mixt_onnx_model(context, path, data, .head = 7));
    assert_non_null(strstr(mixt_error_text(), "model.head=2"));
    mixt_model *model = mixt_onnx_model(context, path, data, .head = OUT);
    mixt_trainer *t = mixt_trainer_new(model, .precision = "fp32", .batch = 2);
    float weight[HIDDEN * OUT], x[IN] = {1, 2, 3}, y[OUT];
    assert_int_equal(mixt_trainer_compile(t, data), MIXT_OK);
    assert_int_equal(mixt_trainer_predict(t, x, 1, y), MIXT_OK);
    assert_int_equal(mixt_trainer_param_get(t, 2, weight), MIXT_OK);
    assert_memory_not_equal(weight, w2, sizeof weight);
    mixt_close(context);
    mixt_data_close(data);
    mixt__wire_out_free(&file);
}

/** A file with one initializer of a type. */
static mixt_status read_type(mixt__onnx_type type, const void *raw, size_t bytes, int64_t count, double *numbers)
{
    onnx_graph g = {0};
    mixt__onnx_file *f;
    mixt__onnx_tensor t;
    onnx_raw(&g, "w", (int)type, 1, &count, raw, bytes);
    onnx_value(&g, true, "x", 1, (int64_t[]){1});
    onnx_value(&g, false, "y", 1, (int64_t[]){1});
    onnx_node(&g, "Add", "x w", "y", NULL);
    mixt__wire_out file = onnx_finish(&g);
    mixt_status status = mixt__onnx_file_open(write_file("type.onnx", &file), &f);
    mixt__wire_out_free(&file);
    assert_int_equal(status, MIXT_OK);
    status = mixt__onnx_tensor_read(f, f->initializers[0], &t);
    if (status == MIXT_OK)
        status = mixt__onnx_tensor_doubles(&t, numbers);
    mixt__onnx_file_close(f);
    return status;
}

static void all_types(void **state)
{
    (void)state;
    static const struct {
        mixt__onnx_type type;
        uint8_t raw[16];
        size_t bytes;
        double expected[2];
    } cases[] = {
        {MIXT_ONNX_FLOAT, {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, 8, {1, -2}},
        {MIXT_ONNX_DOUBLE, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0}, 16, {1, -2}},
        {MIXT_ONNX_FLOAT16, {0, 0x3c, 0, 0xc0}, 4, {1, -2}},
        {MIXT_ONNX_BFLOAT16, {0x80, 0x3f, 0, 0xc0}, 4, {1, -2}},
        {MIXT_ONNX_FLOAT8E4M3FN, {0x38, 0xc0}, 2, {1, -2}},
        {MIXT_ONNX_FLOAT8E5M2, {0x3c, 0xc0}, 2, {1, -2}},
        {MIXT_ONNX_FLOAT8E4M3FNUZ, {0x40, 0xc8}, 2, {1, -2}},
        {MIXT_ONNX_FLOAT8E5M2FNUZ, {0x40, 0xc4}, 2, {1, -2}},
        {MIXT_ONNX_FLOAT4E2M1, {0xc2}, 1, {1, -2}},
        {MIXT_ONNX_INT4, {0xe1}, 1, {1, -2}},
        {MIXT_ONNX_UINT4, {0xe1}, 1, {1, 14}},
        {MIXT_ONNX_INT8, {1, 0xfe}, 2, {1, -2}},
        {MIXT_ONNX_UINT8, {1, 0xfe}, 2, {1, 254}},
        {MIXT_ONNX_BOOL, {1, 0}, 2, {1, 0}},
        {MIXT_ONNX_INT16, {1, 0, 0xfe, 0xff}, 4, {1, -2}},
        {MIXT_ONNX_UINT16, {1, 0, 0xfe, 0xff}, 4, {1, 65534}},
        {MIXT_ONNX_INT32, {1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff}, 8, {1, -2}},
        {MIXT_ONNX_UINT32, {1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff}, 8, {1, 4294967294.0}},
        {MIXT_ONNX_INT64, {1, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 16, {1, -2}},
        {MIXT_ONNX_UINT64, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 16, {1, 65536}},
    };
    double numbers[2];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (read_type(cases[i].type, cases[i].raw, cases[i].bytes, 2, numbers) != MIXT_OK)
            fail_msg("%s: %s", mixt__onnx_type_name(cases[i].type), mixt_error_text());
        if (numbers[0] != cases[i].expected[0] || numbers[1] != cases[i].expected[1])
            fail_msg("%s: %g, %g", mixt__onnx_type_name(cases[i].type), numbers[0], numbers[1]);
    }
    assert_int_equal(read_type(MIXT_ONNX_STRING, "ab", 2, 2, numbers), MIXT_ERROR_UNSUPPORTED);
    assert_int_equal(read_type(MIXT_ONNX_INT64, "ab", 2, 2, numbers), MIXT_ERROR_FORMAT);
    assert_int_equal(read_type(MIXT_ONNX_FLOAT, "abcd", 4, INT64_MAX / 2, numbers), MIXT_ERROR_FORMAT);
}

/** Opens, explains and closes whatever the bytes are. */
static void open_any(const uint8_t *bytes, size_t count)
{
    mixt__wire_out file = {.bytes = (uint8_t *)(uintptr_t)bytes, .count = (int64_t)count};
    char *text = NULL;
    const char *path = write_file("any.onnx", &file);
    mixt_status status = mixt_onnx_explain(path, NULL, &text);
    assert_true(status == MIXT_OK ? text != NULL : *mixt_error_text() != 0);
    mixt_free(text);
}

static void damaged_files(void **state)
{
    (void)state;
    mixt__wire_out file = perceptron();
    size_t held = mixt__alloc_bytes();
    for (int64_t n = 0; n < file.count; n += 1 + n / 40)
        open_any(file.bytes, (size_t)n);
    for (int64_t i = 0; i < file.count; i++) {
        uint8_t kept = file.bytes[i];
        file.bytes[i] = (uint8_t)(kept ^ (1u << (i % 8)));
        open_any(file.bytes, (size_t)file.count);
        file.bytes[i] = kept;
    }
    assert_int_equal(mixt__alloc_bytes(), held);
    mixt__wire_out_free(&file);
}

static void writing_reads_back(void **state)
{
    (void)state;
    mixt__wire_out file = perceptron();
    mixt__onnx *o, *again;
    mixt__onnx_tensor t;
    float values[16];
    assert_int_equal(mixt__onnx_open(write_file("whole.onnx", &file), &(mixt__onnx_options){0}, &o), MIXT_OK);
    const char *path = temp_path("graph.onnx");
    assert_int_equal(mixt__onnx_write_graph(o, path), MIXT_OK);
    assert_int_equal(mixt__onnx_open(path, &(mixt__onnx_options){0}, &again), MIXT_OK);
    assert_true(again->file->without_weights);
    assert_true((int64_t)again->file->map.bytes < file.count);
    assert_int_equal(mixt__onnx_tensor_read(again->file, again->file->initializers[0], &t), MIXT_OK);
    assert_true(t.absent && t.dims[0] == HIDDEN && t.dims[1] == IN);
    assert_int_equal(mixt__onnx_tensor_floats(&t, values), MIXT_ERROR_STATE);
    mixt__onnx_close(o);
    mixt__onnx_close(again);
    mixt__wire_out_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_a_perceptron), cmocka_unit_test(new_last_layer),     cmocka_unit_test(all_types),
        cmocka_unit_test(damaged_files),           cmocka_unit_test(writing_reads_back),
    };
    temp_folder_make();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_remove();
    return failed;
}
