/* Runs as ONNX files: read back by mixt's own importer they give the same outputs; what cannot be written is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include <math.h>

#include "base/alloc.h"

#include "../support/onnx_file.h"
#include "../support/temp_folder.h"

enum { SAMPLES = 3, SIDE = 12, CHANNELS = 3, TOKENS = 8, SETTINGS = 16 };

static const char *const images[] = {"data.kind=random", "data.path=12x12x3", "data.classes=5", "data.samples=32",
                                     NULL};

/** Trains a small run for a few updates and gives the run opened again. */
static mixt_run *trained(const char *name, const char *const *data, const char *const *more)
{
    char out[600];
    const char *settings[SETTINGS + 1] = {"precision=fp32", "threads=1",     "train.steps=2",
                                          "train.batch=8",  "train.lr=0.05", out};
    int count = 6;
    snprintf(out, sizeof out, "out=%s", temp_path(name));
    while (*data)
        settings[count++] = *data++;
    while (*more)
        settings[count++] = *more++;
    mixt_run *run;
    mixt_config *config;
    mixt_run_options o = MIXT_OPTIONS(mixt_run_options, .settings = settings);
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    if (mixt_run_open_config(config, &o, &run) != MIXT_OK || mixt_run_train(run, NULL) != MIXT_OK)
        fail_msg("%s: %s", name, mixt_error_text());
    mixt_config_free(config);
    mixt_run_close(run);
    if (mixt_run_load(temp_path(name), "final", &run) != MIXT_OK)
        fail_msg("%s: %s", name, mixt_error_text());
    return run;
}

/** Writes a run, reads the file back, and compares the outputs of SAMPLES samples. @param x as the data has them */
static void same_outputs(const char *name, mixt_run *run, const void *x)
{
    char file[64];
    int64_t outputs;
    mixt_onnx_report made;
    snprintf(file, sizeof file, "%s.onnx", name);
    mixt_onnx_write_options o = MIXT_OPTIONS(mixt_onnx_write_options, .file = temp_path(file));
    if (mixt_onnx_write(temp_path(name), &o, &made) != MIXT_OK)
        fail_msg("%s: %s", name, mixt_error_text());
    assert_true(made.nodes > 2 && made.tensors > 2 && made.bytes > 1000);
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_model *model = mixt_onnx_model(context, made.file, mixt_run_facts(run));
    mixt_trainer *t = mixt_trainer_new(model, .precision = "fp32", .batch = 2);
    if (!t || mixt_trainer_compile(t, mixt_run_facts(run)) != MIXT_OK)
        fail_msg("%s: %s", name, mixt_error_text());
    assert_int_equal(mixt_trainer_outputs(t, &outputs), MIXT_OK);
    float *y = malloc((size_t)(2 * SAMPLES * outputs) * sizeof *y), *again = y + SAMPLES * outputs, largest = 1;
    assert_non_null(y);
    assert_int_equal(mixt_trainer_predict(mixt_run_trainer(run), x, SAMPLES, y), MIXT_OK);
    assert_int_equal(mixt_trainer_predict(t, x, SAMPLES, again), MIXT_OK);
    for (int64_t i = 0; i < SAMPLES * outputs; i++)
        largest = fmaxf(largest, fabsf(y[i]));
    for (int64_t i = 0; i < SAMPLES * outputs; i++) // the same sums, some in another order
        assert_float_equal(again[i], y[i], 2e-6f * largest);
    assert_int_equal(mixt_onnx_write(temp_path(name), &o, NULL), MIXT_ERROR_FILE); // it is there
    free(y);
    mixt_free(made.file);
    mixt_close(context);
}

static void comes_back(const char *name, const char *const *settings)
{
    float x[SAMPLES * SIDE * SIDE * CHANNELS];
    mixt_run *run = trained(name, images, settings);
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = sinf((float)i * 0.7f) * 2;
    same_outputs(name, run, x);
    mixt_run_close(run);
}

/** A run on the bytes of a text. */
static mixt_run *trained_on_text(const char *name, const char *const *settings)
{
    char path[600];
    FILE *text = fopen(temp_path("words.txt"), "w");
    assert_non_null(text);
    for (int i = 0; i < 400; i++)
        fprintf(text, "the quick brown fox %d\n", i);
    fclose(text);
    snprintf(path, sizeof path, "data.path=%s", temp_path("words.txt"));
    return trained(name, (const char *const[]){"data.kind=text", path, "data.seq=8", NULL}, settings);
}

static void text_comes_back(const char *name, const char *const *settings)
{
    int32_t x[SAMPLES * TOKENS];
    mixt_run *run = trained_on_text(name, settings);
    for (int i = 0; i < SAMPLES * TOKENS; i++)
        x[i] = i * 37 % 256;
    same_outputs(name, run, x);
    mixt_run_close(run);
}

static void language_models(void **state)
{
    (void)state;
    text_comes_back("gpt", (const char *const[]){"model=gpt", "net.layers=2", "net.width=8", "net.heads=2", NULL});
    text_comes_back("llama", (const char *const[]){"model=llama", "net.layers=2", "net.width=16", "net.heads=4",
                                                   "net.kv_heads=2", NULL});
}

static void perceptrons(void **state)
{
    (void)state;
    comes_back("mlp", (const char *const[]){"model=mlp", "net.hidden=16,8", NULL});
    comes_back("mlp-norm", (const char *const[]){"model=mlp", "net.hidden=16,8", "net.norm=batch", NULL});
}

static void convolutions(void **state)
{
    (void)state;
    comes_back("convnet", (const char *const[]){"model=convnet", "net.channels=4,6", NULL});
    comes_back("convnet-norm", (const char *const[]){"model=convnet", "net.channels=4,6", "net.norm=batch", NULL});
}

static void residual_networks(void **state)
{
    (void)state;
    comes_back("resnet18", (const char *const[]){"model=resnet", "net.depth=18", "net.width=4", NULL});
    comes_back("resnet20",
               (const char *const[]){"model=resnet", "net.depth=20", "net.width=4", "net.shortcut=pad", NULL});
}

static void recurrent_models(void **state)
{
    (void)state;
    static const char *const models[] = {"model=lstm", "model=gru", "model=rnn"};
    for (int i = 0; i < 3; i++)
        text_comes_back(models[i] + 6, (const char *const[]){models[i], "net.layers=2", "net.width=8", NULL});
}

/** A run of the graph of a file. */
static mixt_run *trained_on_file(const char *name, onnx_graph *g)
{
    char model[600];
    mixt__wire_out file = onnx_finish(g);
    FILE *f = fopen(temp_path("in.onnx"), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file.bytes, 1, (size_t)file.count, f), file.count);
    fclose(f);
    mixt__wire_out_free(&file);
    snprintf(model, sizeof model, "model=%s", temp_path("in.onnx"));
    return trained(name, images, (const char *const[]){model, NULL});
}

/** A graph that came as ONNX goes out again: slices, extremes, and other functions. */
static void graphs_of_files(void **state)
{
    (void)state;
    float x[SAMPLES * SIDE * SIDE * CHANNELS], w[5 * 3 * 6];
    const int64_t begin = 5, end = 11, axis = 2, step = 1, columns = 3, one = 1;
    onnx_graph g = {0};
    for (int i = 0; i < 5 * 3 * 6; i++)
        w[i] = cosf((float)i);
    onnx_floats(&g, "fc.weight", 2, (int64_t[]){5, 3 * 6}, w);
    onnx_raw(&g, "begin", MIXT_ONNX_INT64, 1, &one, &begin, sizeof begin);
    onnx_raw(&g, "end", MIXT_ONNX_INT64, 1, &one, &end, sizeof end);
    onnx_raw(&g, "axis", MIXT_ONNX_INT64, 1, &one, &axis, sizeof axis);
    onnx_raw(&g, "step", MIXT_ONNX_INT64, 1, &one, &step, sizeof step);
    onnx_raw(&g, "columns", MIXT_ONNX_INT64, 1, &one, &columns, sizeof columns);
    onnx_value(&g, true, "x", 4, (int64_t[]){-1, 3, 12, 12});
    onnx_value(&g, false, "y", 2, (int64_t[]){-1, 5});
    onnx_node(&g, "Slice", "x begin end axis step", "a", NULL);
    onnx_node(&g, "ReduceMax", "a columns", "b", &(onnx_int){"keepdims", 0});
    onnx_node(&g, "HardSwish", "b", "c", NULL);
    onnx_node(&g, "LogSoftmax", "c", "d", &(onnx_int){"axis", -1});
    onnx_node(&g, "Flatten", "d", "e", NULL);
    onnx_node(&g, "Gemm", "e fc.weight", "y", &(onnx_int){"transB", 1});
    mixt_run *run = trained_on_file("graph", &g);
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = sinf((float)i * 0.7f) * 2;
    same_outputs("graph", run, x);
    mixt_run_close(run);
}

/** All layers that cannot be written are named, and there is no file. */
static void what_is_not_written(void **state)
{
    (void)state;
    static const float up[3 * 2 * 2 * 2], fc[5 * 2 * 13 * 13];
    onnx_graph g = {0};
    onnx_floats(&g, "up.weight", 4, (int64_t[]){3, 2, 2, 2}, up);
    onnx_floats(&g, "fc.weight", 2, (int64_t[]){5, 2 * 13 * 13}, fc);
    onnx_value(&g, true, "x", 4, (int64_t[]){-1, 3, 12, 12});
    onnx_value(&g, false, "y", 2, (int64_t[]){-1, 5});
    onnx_node(&g, "ConvTranspose", "x up.weight", "a", NULL);
    onnx_node(&g, "Flatten", "a", "b", NULL);
    onnx_node(&g, "Gemm", "b fc.weight", "y", &(onnx_int){"transB", 1});
    mixt_run_close(trained_on_file("up", &g));
    mixt_onnx_write_options o = MIXT_OPTIONS(mixt_onnx_write_options, .file = temp_path("out.onnx"));
    assert_int_equal(mixt_onnx_write(temp_path("up"), &o, NULL), MIXT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(mixt_error_text(), "up: conv2d_grad_src is not written yet"));
    assert_int_not_equal(access(o.file, F_OK), 0);
    assert_int_equal(mixt_onnx_write(temp_path("nowhere"), NULL, NULL), MIXT_ERROR_FILE);
    assert_int_equal(mixt_onnx_write(NULL, NULL, NULL), MIXT_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perceptrons),         cmocka_unit_test(convolutions),     cmocka_unit_test(residual_networks),
        cmocka_unit_test(language_models),     cmocka_unit_test(recurrent_models), cmocka_unit_test(graphs_of_files),
        cmocka_unit_test(what_is_not_written),
    };
    temp_folder_make();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_remove();
    return failed;
}
