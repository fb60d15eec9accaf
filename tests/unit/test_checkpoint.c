/* Checkpoints: what comes back is what was saved, bit for bit; any flipped byte, cut or missing file is found; training
 * goes on as if it had never stopped; a full disk leaves what was there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "base/alloc.h"
#include "mixt/mixt.h"
#include "store/checkpoint.h"
#include "store/checksum.h"
#include "store/file.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

static const char *const names[] = {"manifest.json", "state.safetensors", "config.yaml"};

/** A small checkpoint with two tensors, one of them empty of elements, and one file. */
static void write_small(const char *folder, int64_t step)
{
    static const float values[] = {1.5f, -0.0f, 3e-42f, 7, 8, 9};
    const mixt__file_tensor tensors[] = {
        {.name = "master/a.weight", .dtype = MIXT_DTYPE_FP32, .rank = 2, .dims = {2, 3}, .data = values},
        {.name = "state/b", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {1}, .data = values + 3},
    };
    const mixt__checkpoint_file file = {.name = "config.yaml", .data = "model: mlp\n", .bytes = 11};
    json_t *scalars = json_pack("{s:I}", "step", (json_int_t)step);
    json_object_set_new(scalars, "odd", mixt__json_double((double)-INFINITY));
    mixt__checkpoint_content content = {
        .tensors = tensors, .count = 2, .scalars = scalars, .files = &file, .file_count = 1};
    assert_int_equal(mixt__checkpoint_write(folder, &content), MIXT_OK);
    json_decref(scalars);
}

static void test_round_trip(void **state)
{
    (void)state;
    mixt__checkpoint *c;
    int64_t step;
    double odd;
    const char *folder = temp_path("small");
    write_small(folder, 17);
    assert_int_equal(mixt__checkpoint_open(folder, &c), MIXT_OK);
    assert_int_equal(mixt__json_get_int(c->scalars, "step", 0, 100, &step), MIXT_OK);
    assert_int_equal(step, 17);
    assert_int_equal(mixt__json_get_int(c->scalars, "step", 0, 16, &step), MIXT_ERROR_FORMAT);
    assert_int_equal(mixt__json_get_double(c->scalars, "odd", &odd), MIXT_OK);
    assert_true(odd < 0 && odd * 0 != 0);
    assert_int_equal(mixt__json_get_double(c->scalars, "absent", &odd), MIXT_ERROR_FORMAT);
    const mixt__file_tensor *a = mixt__safetensors_find(c->state, "master/a.weight");
    const float expected[] = {1.5f, -0.0f, 3e-42f, 7, 8, 9};
    assert_non_null(a);
    assert_memory_equal(a->data, expected, sizeof expected);
    mixt__checkpoint_close(c);
    write_small(folder, 18); // replaces
    assert_int_equal(mixt__checkpoint_open(folder, &c), MIXT_OK);
    assert_int_equal(mixt__json_get_int(c->scalars, "step", 18, 18, &step), MIXT_OK);
    mixt__checkpoint_close(c);
}

static size_t slurp(const char *path, unsigned char **bytes)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    *bytes = malloc(1 << 20);
    size_t n = fread(*bytes, 1, 1 << 20, f);
    fclose(f);
    return n;
}

static void spill(const char *path, const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/** It does not open, and the message names the file. */
static void assert_refused(const char *folder, const char *name, const char *what, size_t at)
{
    mixt__checkpoint *c = NULL;
    mixt_status status = mixt__checkpoint_open(folder, &c);
    if (status == MIXT_OK || !strstr(mixt_error_text(), name)) {
        print_message("%s, %s at %zu: status %d, '%s'\n", name, what, at, status, status ? mixt_error_text() : "");
        fail();
    }
}

static void test_every_flip_and_cut(void **state)
{
    (void)state;
    char folder[256], path[400];
    mixt__checkpoint *c;
    snprintf(folder, sizeof folder, "%s", temp_path("flips"));
    write_small(folder, 5);
    for (int f = 0; f < 3; f++) {
        unsigned char *bytes;
        snprintf(path, sizeof path, "%s/%s", folder, names[f]);
        size_t n = slurp(path, &bytes);
        for (size_t i = 0; i < n; i++) {
            unsigned char right = bytes[i];
            bytes[i] = (unsigned char)(right ^ (1u << (i % 8)));
            spill(path, bytes, n);
            assert_refused(folder, names[f], "bit flipped", i);
            bytes[i] = (unsigned char)~right;
            spill(path, bytes, n);
            assert_refused(folder, names[f], "byte changed", i);
            bytes[i] = right;
        }
        for (size_t i = 0; i < n; i++) {
            spill(path, bytes, i);
            assert_refused(folder, names[f], "cut", i);
        }
        bytes[n] = '\n';
        spill(path, bytes, n + 1);
        assert_refused(folder, names[f], "grown", n);
        unlink(path);
        assert_refused(folder, names[f], "missing", 0);
        spill(path, bytes, n);
        assert_int_equal(mixt__checkpoint_open(folder, &c), MIXT_OK);
        mixt__checkpoint_close(c);
        free(bytes);
    }
}

static void test_hf_folder(void **state)
{
    (void)state;
    char folder[256], path[400];
    snprintf(folder, sizeof folder, "%s", temp_path("foreign"));
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/letter.txt", folder);
    spill(path, (const unsigned char *)"dear", 4);
    json_t *scalars = json_object();
    mixt__checkpoint_content content = {.scalars = scalars};
    assert_int_equal(mixt__checkpoint_write(folder, &content), MIXT_ERROR_FILE);
    assert_non_null(strstr(mixt_error_text(), ": exists and is not a checkpoint: choose another place (nothing"));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(mixt__checkpoint_write(path, &content), MIXT_ERROR_FILE);
    // a file of the same name makes no checkpoint, and a checkpoint is no excuse for what lies beside it
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    spill(path, (const unsigned char *)"{\"name\": \"another\"}", 19);
    assert_int_equal(mixt__checkpoint_write(folder, &content), MIXT_ERROR_FILE);
    snprintf(folder, sizeof folder, "%s", temp_path("joined"));
    write_small(folder, 3);
    write_small(folder, 4);
    snprintf(path, sizeof path, "%s/letter.txt", folder);
    spill(path, (const unsigned char *)"dear", 4);
    assert_int_equal(mixt__checkpoint_write(folder, &content), MIXT_ERROR_FILE);
    assert_non_null(strstr(mixt_error_text(), "holds 'letter.txt' and a checkpoint"));
    assert_int_equal(access(path, F_OK), 0);
    json_decref(scalars);
}

/** Where two folders cannot be exchanged, a kill between two renames leaves the old one under another name. */
static void test_found_aside(void **state)
{
    (void)state;
    char folder[256], aside[256];
    mixt__checkpoint *checkpoint;
    snprintf(folder, sizeof folder, "%s", temp_path("replaced/"));
    snprintf(aside, sizeof aside, "%s", temp_path(".replaced-replaced"));
    write_small(folder, 7);
    assert_int_equal(rename(folder, aside), 0);
    assert_int_equal(mixt__checkpoint_open(folder, &checkpoint), MIXT_OK);
    mixt__checkpoint_close(checkpoint);
}

static void test_shared(void **state)
{
    (void)state;
    char from[256], to[256];
    mixt__checkpoint *checkpoint;
    snprintf(from, sizeof from, "%s", temp_path("original"));
    snprintf(to, sizeof to, "%s", temp_path("second"));
    write_small(from, 7);
    assert_int_equal(mixt__checkpoint_share(from, to), MIXT_OK);
    write_small(from, 8); // replaces the folder, not the files that are shared
    assert_int_equal(mixt__checkpoint_open(to, &checkpoint), MIXT_OK);
    int64_t step;
    assert_int_equal(mixt__json_get_int(checkpoint->scalars, "step", 0, 100, &step), MIXT_OK);
    assert_int_equal(step, 7);
    mixt__checkpoint_close(checkpoint);
    assert_int_equal(mixt__checkpoint_share(temp_path("nothing"), to), MIXT_ERROR_FILE);
}

static int64_t entries(const char *folder)
{
    int64_t n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return n;
}

static void test_keep(void **state)
{
    (void)state;
    char folder[256], path[MIXT_CHECKPOINT_PATH];
    int64_t *steps, count;
    snprintf(folder, sizeof folder, "%s", temp_path("kept"));
    assert_int_equal(mixt__checkpoints_list(folder, &steps, &count), MIXT_OK);
    assert_int_equal(count, 0);
    mkdir(folder, 0777);
    for (int64_t step = 5; step <= 40; step += 5)
        write_small(mixt__checkpoint_path(folder, step, path), step);
    snprintf(path, sizeof path, "%s/.saving-0-1", folder); // what a killed save leaves
    mkdir(path, 0777);
    assert_int_equal(mixt__checkpoints_prune(folder, 2, (const int64_t[]){15, 5}, 2), MIXT_OK);
    assert_int_equal(mixt__checkpoints_list(folder, &steps, &count), MIXT_OK);
    const int64_t left[] = {40, 35, 15, 5};
    assert_int_equal(count, 4);
    assert_memory_equal(steps, left, sizeof left);
    assert_int_equal(entries(folder), 4);
    mixt__free(steps);
}

static void test_checksum(void **state)
{
    (void)state;
    unsigned char bytes[100] = {0};
    uint64_t seen[101];
    for (size_t n = 0; n <= 100; n++) { // lengths of zeros differ
        seen[n] = mixt__checksum(bytes, n);
        for (size_t k = 0; k < n; k++)
            assert_true(seen[k] != seen[n]);
    }
    for (size_t i = 0; i < 800; i++) {
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
        assert_true(mixt__checksum(bytes, 100) != seen[100]);
        bytes[i / 8] ^= (unsigned char)(1u << i % 8);
    }
}

/* ---- training ---- */

static mixt_value net(mixt_builder *b, mixt_value x) // (N, 28, 28, 1)
{
    x = mixt_conv2d(b, "conv", x, .channels = 4, .kernel = 3, .stride = 2);
    x = mixt_relu(b, mixt_batch_norm(b, "norm", x));
    x = mixt_dropout(b, mixt_flatten(b, x), 0.2f);
    return mixt_linear(b, "fc", x, .features = 10);
}

typedef struct session {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
} session;

static session begin(const mixt_trainer_options *options)
{
    session s = {.context = mixt_open(.device = "cpu", .threads = 1)};
    s.data = mixt_data_new(s.context, "digits:", .limit = 96);
    s.trainer = MIXT_MADE(mixt_trainer, mixt_trainer_new_with, mixt_model_new(s.context, net, MIXT_LOSS_CROSS_ENTROPY),
                          options);
    assert_int_equal(mixt_trainer_compile(s.trainer, s.data), MIXT_OK);
    return s;
}

static void steps(session *s, int count, mixt_step *last)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(mixt_trainer_step(s->trainer, s->data, last), MIXT_OK);
}

static void assert_same(session *a, session *b)
{
    int64_t n = mixt_trainer_param_count(a->trainer);
    assert_int_equal(n, mixt_trainer_param_count(b->trainer));
    for (int64_t i = 0; i < n; i++) {
        mixt_param_info info;
        mixt_trainer_param(a->trainer, i, &info);
        float *x = malloc((size_t)info.count * sizeof *x), *y = malloc((size_t)info.count * sizeof *y);
        assert_int_equal(mixt_trainer_param_get(a->trainer, i, x), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(b->trainer, i, y), MIXT_OK);
        if (memcmp(x, y, (size_t)info.count * sizeof *x))
            fail_msg("%s differs", info.name);
        free(x);
        free(y);
    }
}

/** Seven steps in one go, and four, a checkpoint, another process's worth of new objects, three more: the same bits.
 * The checkpoint lies inside an epoch (six batches by two) and, in FP16, after a skipped update. */
static void test_goes_on(void **state)
{
    (void)state;
    const char *const optimizers[] = {"adamw", "nesterov", "sgd"}, *const formats[] = {"fp32", "fp16", "bf16"};
    for (int k = 0; k < 3; k++) {
        mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .precision = formats[k], .optimizer = optimizers[k],
                                              .batch = 16, .accumulate = 2);
        o.lr = 0.01f;
        o.weight_decay = 0.1f;
        o.settings.clip = 1;
        o.schedule = "cosine";
        o.warmup = 2;
        o.total_steps = 20;
        o.seed = 3;
        o.settings.scale_interval = 2;
        o.inject_overflow = 3;
        const char *folder = temp_path(formats[k]);
        session whole = begin(&o), first = begin(&o), second = begin(&o);
        mixt_step a, b;
        steps(&whole, 7, &a);
        steps(&first, 4, &b);
        assert_int_equal(mixt_trainer_checkpoint(first.trainer, folder), MIXT_OK);
        steps(&first, 1, &b); // going on does not change what was saved
        steps(&second, 2, &b);
        assert_int_equal(mixt_trainer_restore(second.trainer, folder), MIXT_OK);
        assert_int_equal(mixt_trainer_epoch(second.trainer), 1);
        steps(&second, 3, &b);
        assert_same(&whole, &second);
        assert_true(a.step == b.step && a.applied == b.applied && a.epoch == b.epoch && a.loss == b.loss &&
                    a.lr == b.lr && a.scale == b.scale && a.grad_norm == b.grad_norm);
        mixt_close(whole.context);
        mixt_close(first.context);
        mixt_close(second.context);
    }
}

/** Batches of the caller's own between those of the loader: a restored run takes the loader's where they were left. */
static void test_own_batches_between(void **state)
{
    (void)state;
    static float input[16 * 784];
    static int32_t target[16];
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .batch = 16, .lr = 0.01f);
    const char *folder = temp_path("between");
    session first = begin(&o), second = begin(&o);
    mixt_step a, b;
    steps(&first, 2, &a);
    for (int i = 0; i < 3; i++)
        assert_int_equal(mixt_trainer_step_on(first.trainer, input, target, NULL), MIXT_OK);
    assert_int_equal(mixt_trainer_checkpoint(first.trainer, folder), MIXT_OK);
    assert_int_equal(mixt_trainer_restore(second.trainer, folder), MIXT_OK);
    for (int i = 0; i < 6; i++) {
        steps(&first, 1, &a);
        steps(&second, 1, &b);
        assert_true(a.loss == b.loss && a.epoch == b.epoch);
    }
    assert_same(&first, &second);
    mixt_close(first.context);
    mixt_close(second.context);
}

/** What a compiled trainer saves before its first step is what it begins with. */
static void test_before_the_first_step(void **state)
{
    (void)state;
    char folder[256], file[256];
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .batch = 16, .seed = 3);
    session a = begin(&o), b = begin(&o), c = begin(&o);
    mixt_step first, second;
    snprintf(folder, sizeof folder, "%s", temp_path("unstepped"));
    snprintf(file, sizeof file, "%s", temp_path("unstepped.safetensors"));
    assert_int_equal(mixt_trainer_checkpoint(a.trainer, folder), MIXT_OK);
    assert_int_equal(mixt_trainer_save(a.trainer, file), MIXT_OK);
    assert_int_equal(mixt_trainer_restore(b.trainer, folder), MIXT_OK);
    assert_int_equal(mixt_trainer_load(c.trainer, file), MIXT_OK);
    assert_same(&a, &c);
    steps(&a, 3, &first);
    steps(&b, 3, &second);
    assert_true(first.loss == second.loss && first.step == 3 && second.step == 3);
    assert_same(&a, &b);
    mixt_close(a.context);
    mixt_close(b.context);
    mixt_close(c.context);
}

static void test_other_settings(void **state)
{
    (void)state;
    char folder[256];
    mixt_trainer_options o =
        MIXT_OPTIONS(mixt_trainer_options, .batch = 16, .seed = 1, .schedule = "linear", .total_steps = 4);
    mixt_step step;
    session a = begin(&o);
    snprintf(folder, sizeof folder, "%s", temp_path("settings"));
    steps(&a, 1, &step);
    assert_int_equal(mixt_trainer_checkpoint(a.trainer, folder), MIXT_OK);
    o.total_steps = 9; // may change
    session b = begin(&o);
    assert_int_equal(mixt_trainer_restore(b.trainer, folder), MIXT_OK);
    assert_int_equal(mixt_trainer_restore(b.trainer, temp_path("nowhere")), MIXT_ERROR_FILE);
    o.seed = 2;
    o.lr = 0.5f;
    o.precision = "bf16";
    session c = begin(&o);
    steps(&c, 1, &step);
    assert_int_equal(mixt_trainer_restore(c.trainer, folder), MIXT_ERROR_CONFIG);
    const char *const differences[] = {"seed: 1 -> 2", "precision: fp32 -> bf16", "lr: 0.00100000005 -> 0.5"};
    for (int i = 0; i < 3; i++)
        if (!strstr(mixt_error_text(), differences[i]))
            fail_msg("no '%s' in '%s'", differences[i], mixt_error_text());
    assert_null(strstr(mixt_error_text(), "batch"));
    steps(&c, 1, &step); // goes on as it was
    assert_int_equal(step.step, 2);
    mixt_close(a.context);
    mixt_close(b.context);
    mixt_close(c.context);
}

/** Each write of a save in turn finds the disk full. */
static void test_disk_full(void **state)
{
    (void)state;
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .batch = 16, .seed = 1);
    mixt_step step;
    char folder[256];
    session a = begin(&o), b = begin(&o);
    snprintf(folder, sizeof folder, "%s", temp_path("full"));
    steps(&a, 2, &step);
    assert_int_equal(mixt_trainer_checkpoint(a.trainer, folder), MIXT_OK);
    int64_t before = entries(temp_folder);
    steps(&a, 1, &step);
    int failed = 0;
    for (; failed < 1000; failed++) {
        mixt__file_fail_write(failed + 1);
        if (mixt_trainer_checkpoint(a.trainer, folder) == MIXT_OK)
            break;
        assert_non_null(strstr(mixt_error_text(), "No space left"));
        assert_int_equal(entries(temp_folder), before); // nothing half done lies about
        assert_int_equal(mixt_trainer_restore(b.trainer, folder), MIXT_OK);
    }
    mixt__file_fail_write(0);
    assert_in_range(failed, 5, 999); // length, header, tensors, manifest
    steps(&a, 1, &step);
    assert_int_equal(step.step, 4);
    mixt_close(a.context);
    mixt_close(b.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_flip_and_cut),
        cmocka_unit_test(test_hf_folder),
        cmocka_unit_test(test_found_aside),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_own_batches_between),
        cmocka_unit_test(test_before_the_first_step),
        cmocka_unit_test(test_other_settings),
        cmocka_unit_test(test_disk_full),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
