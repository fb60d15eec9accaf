/* The last good state stays: weights that are not finite are not saved, a checkpoint that lacks something gives way to
 * the one before it, one that cannot be read at the moment is left alone, and no memory for a manifest writes none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "base/alloc.h"
#include "mixt/mixt.h"
#include "store/checkpoint.h"
#include "train/checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const tiny = "model: mlp\n"
                                "precision: fp32\n"
                                "threads: 1\n"
                                "net: {hidden: [16]}\n"
                                "data: {kind: digits, limit: 64}\n"
                                "train: {steps: 6, epochs: 0, batch: 8, lr: 0.01, checkpoint_every: 2, keep: 9}\n";

/** Sets one element of the second parameter. */
static void spoil(mixt_trainer *t, float value)
{
    mixt_param_info info;
    assert_int_equal(mixt_trainer_param(t, 1, &info), MIXT_OK);
    float *values = calloc((size_t)info.count, sizeof *values);
    assert_int_equal(mixt_trainer_param_get(t, 1, values), MIXT_OK);
    values[3] = value;
    assert_int_equal(mixt_trainer_param_set(t, 1, values), MIXT_OK);
    free(values);
}

static mixt_status spoil_at(void *user, mixt_run *run, const mixt_event *event)
{
    if (event->kind == MIXT_EVENT_STEP && event->step->step == *(int64_t *)user)
        spoil(mixt_run_trainer(run), (float)NAN);
    return MIXT_OK;
}

static mixt_run *open_run(const char *name, int64_t *spoiled)
{
    char setting[600];
    mixt_config *config;
    mixt_run *run;
    snprintf(setting, sizeof setting, "out=%s", temp_path(name));
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    assert_int_equal(mixt_config_parse(config, tiny, "test"), MIXT_OK);
    assert_int_equal(mixt_config_set(config, setting, "test"), MIXT_OK);
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .observer = spoil_at, .user = spoiled);
    assert_int_equal(mixt_run_open_config(config, &options, &run), MIXT_OK);
    mixt_config_free(config);
    return run;
}

static const char *step_path(const char *run, int64_t step, char path[MIXT_CHECKPOINT_PATH])
{
    char folder[600];
    snprintf(folder, sizeof folder, "%s/checkpoints", temp_path(run));
    return mixt__checkpoint_path(folder, step, path);
}

static bool there(const char *run, int64_t step)
{
    char path[MIXT_CHECKPOINT_PATH];
    return !access(step_path(run, step, path), F_OK);
}

static void test_not_finite(void **state)
{
    (void)state;
    int64_t at = 5;
    struct stat info;
    mixt_run *run = open_run("spoiled", &at);
    assert_int_not_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    char path[600];
    snprintf(path, sizeof path, "%s/model.safetensors", temp_path("spoiled"));
    assert_int_not_equal(stat(path, &info), 0);
    assert_true(there("spoiled", 4) && there("spoiled", 2) && !there("spoiled", 6));

    at = 6; // in the last update, of which no loss tells
    run = open_run("late", &at);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_ERROR_DATA);
    assert_non_null(strstr(mixt_error_text(), "element 3"));
    assert_int_equal(mixt_trainer_check_finite(mixt_run_trainer(run)), MIXT_ERROR_DATA);
    char folder[600];
    snprintf(folder, sizeof folder, "%s", temp_path("checkpoint"));
    assert_int_equal(mixt_trainer_checkpoint(mixt_run_trainer(run), folder), MIXT_ERROR_DATA);
    assert_int_not_equal(stat(folder, &info), 0);
    spoil(mixt_run_trainer(run), 1);
    assert_int_equal(mixt_trainer_check_finite(mixt_run_trainer(run)), MIXT_OK);
    assert_int_equal(mixt_trainer_save(mixt_run_trainer(run), temp_path("good.safetensors")), MIXT_OK);
    stat(temp_path("good.safetensors"), &info);
    struct stat before = info;
    spoil(mixt_run_trainer(run), (float)-INFINITY);
    assert_int_equal(mixt_trainer_save(mixt_run_trainer(run), temp_path("good.safetensors")), MIXT_ERROR_DATA);
    stat(temp_path("good.safetensors"), &info);
    assert_true(info.st_ino == before.st_ino && info.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
    mixt_run_close(run);
}

/** Writes a checkpoint anew without one key of the loss scaler's state, as builds did that ran out of memory. */
static void cut_key(const char *run, int64_t step)
{
    char path[MIXT_CHECKPOINT_PATH];
    mixt__checkpoint *c;
    assert_int_equal(mixt__checkpoint_open(step_path(run, step, path), &c), MIXT_OK);
    json_t *control = json_object_get(json_object_get(c->scalars, "trainer"), "control");
    assert_int_equal(json_object_del(control, "found_inf"), 0);
    char *text[2] = {0};
    mixt__checkpoint_file files[2];
    int64_t count = 0;
    static const char *const names[] = {"config.yaml", "policy.yaml"};
    for (int i = 0; i < 2; i++) {
        char name[MIXT_CHECKPOINT_PATH + 32];
        snprintf(name, sizeof name, "%s/%s", path, names[i]);
        FILE *f = fopen(name, "rb");
        if (!f)
            continue;
        text[i] = calloc(1, 1 << 20);
        files[count++] =
            (mixt__checkpoint_file){.name = names[i], .data = text[i], .bytes = fread(text[i], 1, 1 << 20, f)};
        fclose(f);
    }
    mixt__checkpoint_content content = {.tensors = c->state->tensors,
                                        .count = c->state->count,
                                        .scalars = c->scalars,
                                        .files = files,
                                        .file_count = count};
    char twin[MIXT_CHECKPOINT_PATH], old[MIXT_CHECKPOINT_PATH];
    snprintf(twin, sizeof twin, "%s", temp_path("twin"));
    snprintf(old, sizeof old, "%s", temp_path("old"));
    assert_int_equal(mixt__checkpoint_write(twin, &content), MIXT_OK);
    mixt__checkpoint_close(c);
    assert_int_equal(rename(path, old), 0);
    assert_int_equal(rename(twin, path), 0);
    free(text[0]);
    free(text[1]);
}

static void test_lacks_a_key(void **state)
{
    (void)state;
    int64_t never = -1;
    char damaged[700];
    static const char *const longer[] = {"train.steps=8", NULL};
    mixt_run *run = open_run("cut", &never);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    cut_key("cut", 6);
    assert_int_equal(mixt_run_resume(temp_path("cut"), &run, .settings = longer), MIXT_OK);
    assert_non_null(strstr(mixt_run_describe(run).checkpoint, "step-00000004"));
    mixt_run_result result;
    assert_int_equal(mixt_run_train(run, &result), MIXT_OK);
    assert_int_equal(result.steps, 8);
    mixt_run_close(run);
    snprintf(damaged, sizeof damaged, "%s/checkpoints/damaged-00000006", temp_path("cut"));
    assert_int_equal(access(damaged, F_OK), 0);
}

/** A manifest that is a link to itself cannot be opened: as with too many open files, nothing is known of it. */
static void test_error_of_a_moment(void **state)
{
    (void)state;
    int64_t never = -1;
    char path[MIXT_CHECKPOINT_PATH], name[MIXT_CHECKPOINT_PATH + 32], aside[600];
    static const char *const longer[] = {"train.steps=8", NULL};
    mixt_run *run = open_run("moment", &never);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    snprintf(name, sizeof name, "%s/manifest.json", step_path("moment", 6, path));
    snprintf(aside, sizeof aside, "%s", temp_path("manifest"));
    assert_int_equal(rename(name, aside), 0);
    assert_int_equal(symlink("manifest.json", name), 0);
    assert_int_equal(mixt_run_resume(temp_path("moment"), &run, .settings = longer), MIXT_ERROR_FILE);
    assert_non_null(strstr(mixt_error_text(), "cannot be read now"));
    assert_true(there("moment", 6));
    assert_int_equal(unlink(name), 0); // now it is missing, which is damage
    assert_int_equal(mixt_run_resume(temp_path("moment"), &run, .settings = longer), MIXT_OK);
    assert_non_null(strstr(mixt_run_describe(run).checkpoint, "step-00000004"));
    mixt_run_close(run);
    assert_int_equal(rename(aside, name), 0); // the moment is over
    assert_int_equal(mixt_run_resume(temp_path("moment"), &run, .settings = longer), MIXT_OK);
    assert_non_null(strstr(mixt_run_describe(run).checkpoint, "step-00000006"));
    mixt_run_close(run);
}

static int64_t countdown, calls;

static void *failing(size_t bytes)
{
    calls++;
    return countdown && --countdown == 0 ? NULL : malloc(bytes);
}

/** With every allocation of the JSON library failing once: the file is right or the old one stays. */
static void test_no_memory_for_a_manifest(void **state)
{
    (void)state;
    int64_t never = -1, refused = 0;
    char path[MIXT_CHECKPOINT_PATH];
    mixt__checkpoint *c;
    mixt_run *run = open_run("memory", &never);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    snprintf(path, sizeof path, "%s", temp_path("manifest"));
    json_set_alloc_funcs(failing, free);
    assert_int_equal(mixt_trainer_checkpoint(mixt_run_trainer(run), path), MIXT_OK);
    int64_t total = calls;
    for (int64_t n = 1; n <= total; n += 7) { // test_json has every one
        countdown = n;
        mixt_status status = mixt_trainer_checkpoint(mixt_run_trainer(run), path);
        countdown = 0;
        refused += status != MIXT_OK;
        assert_int_equal(mixt__checkpoint_open(path, &c), MIXT_OK);
        assert_int_equal(mixt__trainer_scalars_check(c->scalars), MIXT_OK);
        mixt__checkpoint_close(c);
    }
    json_set_alloc_funcs(malloc, free);
    assert_true(refused > total / 20);
    assert_int_equal(mixt_trainer_restore(mixt_run_trainer(run), path), MIXT_OK);
    mixt_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_lacks_a_key),
        cmocka_unit_test(test_error_of_a_moment),
        cmocka_unit_test(test_no_memory_for_a_manifest),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
