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

#include "../support/temp_folder.h"

enum { SAMPLES = 3, SIDE = 12, CHANNELS = 3, CLASSES = 5, SETTINGS = 16 };

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

/** Writes a run, reads the file back, and compares the outputs of some samples. */
static void comes_back(const char *name, const char *const *settings)
{
    char file[64];
    float x[SAMPLES * SIDE * SIDE * CHANNELS], y[SAMPLES * CLASSES], again[SAMPLES * CLASSES];
    mixt_onnx_report made;
    mixt_run *run = trained(name, images, settings);
    snprintf(file, sizeof file, "%s.onnx", name);
    mixt_onnx_write_options o = MIXT_OPTIONS(mixt_onnx_write_options, .file = temp_path(file));
    if (mixt_onnx_write(temp_path(name), &o, &made) != MIXT_OK)
        fail_msg("%s: %s", name, mixt_error_text());
    assert_true(made.nodes > 2 && made.tensors > 2 && made.bytes > 1000);
    for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
        x[i] = sinf((float)i * 0.7f) * 2;
    assert_int_equal(mixt_trainer_predict(mixt_run_trainer(run), x, SAMPLES, y), MIXT_OK);
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_model *model = mixt_onnx_model(context, made.file, mixt_run_facts(run));
    mixt_trainer *t = mixt_trainer_new(model, .precision = "fp32", .batch = 2);
    if (!t || mixt_trainer_compile(t, mixt_run_facts(run)) != MIXT_OK)
        fail_msg("%s: %s", name, mixt_error_text());
    assert_int_equal(mixt_trainer_predict(t, x, SAMPLES, again), MIXT_OK);
    float largest = 1;
    for (int i = 0; i < SAMPLES * CLASSES; i++)
        largest = fmaxf(largest, fabsf(y[i]));
    for (int i = 0; i < SAMPLES * CLASSES; i++) // the same sums; products may be added in another order
        assert_float_equal(again[i], y[i], 2e-6f * largest);
    assert_int_equal(mixt_onnx_write(temp_path(name), &o, NULL), MIXT_ERROR_FILE); // it is there
    mixt_free(made.file);
    mixt_close(context);
    mixt_run_close(run);
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

/** All layers that cannot be written are named, and there is no file. */
static void what_is_not_written(void **state)
{
    (void)state;
    char path[600];
    FILE *text = fopen(temp_path("words.txt"), "w");
    assert_non_null(text);
    for (int i = 0; i < 400; i++)
        fprintf(text, "the quick brown fox %d\n", i);
    fclose(text);
    snprintf(path, sizeof path, "data.path=%s", temp_path("words.txt"));
    mixt_run *run = trained("gru", (const char *const[]){"data.kind=text", path, "data.seq=8", NULL},
                            (const char *const[]){"model=gru", "net.layers=2", "net.width=8", NULL});
    mixt_run_close(run);
    mixt_onnx_write_options o = MIXT_OPTIONS(mixt_onnx_write_options, .file = temp_path("gru.onnx"));
    assert_int_equal(mixt_onnx_write(temp_path("gru"), &o, NULL), MIXT_ERROR_UNSUPPORTED);
    assert_non_null(strstr(mixt_error_text(), "gru is not written yet"));
    assert_int_not_equal(access(o.file, F_OK), 0);
    assert_int_equal(mixt_onnx_write(temp_path("nowhere"), NULL, NULL), MIXT_ERROR_FILE);
    assert_int_equal(mixt_onnx_write(NULL, NULL, NULL), MIXT_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perceptrons),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(residual_networks),
        cmocka_unit_test(what_is_not_written),
    };
    temp_folder_make();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_remove();
    return failed;
}
