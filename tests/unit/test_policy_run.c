/* A run under a policy file: its loss scaling and clipping are the run's, unless the configuration says otherwise, and
 * a resume goes on with them, or with another policy where that is allowed.
 */
#include "../support/temp_folder.h"
#include "mixt/mixt.h"
#include "run/run.h"
#include "train/trainer_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const tiny = "model: mlp\n"
                                "threads: 2\n"
                                "net: {hidden: [16]}\n"
                                "data: {kind: digits, limit: 256}\n"
                                "train: {steps: 8, epochs: 0, batch: 32, lr: 0.01, checkpoint_every: 4}\n";

static const char *const first = "version: 1\nmade_by: a test\ndefault: fp16\nloss_scale: dynamic\nscale_init: 64\n"
                                 "clip: 0.5\nrules: [{layer: \"fc.1\", forward: fp16, backward: fp32}]\n";
static const char *const second = "default: bf16\nclip: 0.25\n";

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%d: %s", (int)status, mixt_error_text());
}

/** "key=path in the folder", good until eight calls later. */
static const char *setting(const char *key, const char *name)
{
    static char texts[8][600];
    static int next;
    char *text = texts[next++ % 8];
    snprintf(text, sizeof texts[0], "%s=%s", key, temp_path(name));
    return text;
}

static mixt_run *open_run(const char *out, const char *more)
{
    mixt_config *config;
    mixt_run *run;
    assert_true(temp_write(temp_path("first.yaml"), first, strlen(first)));
    assert_true(temp_write(temp_path("second.yaml"), second, strlen(second)));
    const char *const settings[] = {setting("out", out), setting("precision", "first.yaml"), more, NULL};
    ok(mixt_config_new(&config));
    ok(mixt_config_parse(config, tiny, "tiny"));
    ok(mixt_run_open_config(config, MIXT_OPTIONS_AT(mixt_run_options, .settings = settings), &run));
    mixt_config_free(config);
    return run;
}

static const mixt__trainer_settings *settings_of(const mixt_run *run)
{
    return &run->experiment.trainer->inner->settings;
}

/** A whole file of a run, ended by 0; freed by the caller. */
static char *contents(const char *run, const char *name)
{
    char file[64];
    size_t size;
    snprintf(file, sizeof file, "%s/%s", run, name);
    char *text = (char *)temp_read(temp_path(file), &size);
    assert_non_null(text);
    text[size] = '\0'; // there is room for it
    return text;
}

static void expect_in(const char *run, const char *name, const char *words)
{
    char *text = contents(run, name);
    if (!strstr(text, words))
        fail_msg("%s/%s has no '%s':\n%s", run, name, words, text);
    free(text);
}

static void the_policy_decides_what_is_not_set(void **state)
{
    (void)state;
    mixt_run *run = open_run("decides", NULL);
    assert_true(settings_of(run)->decided.clip == 0.5f && settings_of(run)->scaling.initial == 64);
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    expect_in("decides", "config.yaml", "\n  clip: 0.5\n");
    expect_in("decides", "config.yaml", "\n  scale_init: 64\n");
    expect_in("decides", "policy.yaml", "made_by: \"a test\"\n");
    run = open_run("set", "train.clip=0");
    assert_true(settings_of(run)->decided.clip == 0 && settings_of(run)->scaling.initial == 64);
    mixt_run_close(run);
}

static void it_goes_on_with_the_same_bits(void **state)
{
    (void)state;
    const char *const longer[] = {"train.steps=8", NULL};
    mixt_run *run = open_run("whole", NULL);
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    run = open_run("parts", "train.steps=4");
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    assert_true(temp_write(temp_path("first.yaml"), "default: fp32\n", 14)); // the run has its own copy
    ok(mixt_run_resume(temp_path("parts"), &run, .settings = longer));
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    size_t sizes[2];
    void *whole = temp_read(temp_path("whole/model.safetensors"), &sizes[0]);
    void *parts = temp_read(temp_path("parts/model.safetensors"), &sizes[1]);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(whole, parts, sizes[0]);
    free(whole);
    free(parts);
}

/** Resumes under another policy; twice, the second time without a word about it. */
static void change_policy(const char *name, const char *precision, float clip)
{
    mixt_run *run;
    const char *const longer[] = {precision, "train.steps=12", NULL}, *const longest[] = {"train.steps=16", NULL};
    assert_int_equal(mixt_run_resume(temp_path(name), &run, .settings = longer), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "--allow precision"));
    ok(mixt_run_resume(temp_path(name), &run, .settings = longer, .allow = "precision"));
    assert_int_equal(settings_of(run)->policy.forward, MIXT_DTYPE_BF16);
    assert_true(settings_of(run)->decided.clip == clip);
    assert_false(settings_of(run)->scaling.enabled);
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    ok(mixt_run_resume(temp_path(name), &run, .settings = longest));
    assert_int_equal(settings_of(run)->policy.forward, MIXT_DTYPE_BF16);
    assert_true(settings_of(run)->decided.clip == clip);
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    expect_in(name, "history.jsonl", "precision");
}

static void it_goes_on_under_another_policy(void **state)
{
    (void)state;
    mixt_run *run = open_run("file", NULL);
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    change_policy("file", setting("precision", "second.yaml"), 0.25f);
    expect_in("file", "policy.yaml", "default: bf16\nclip: 0.25\n");
    run = open_run("name", NULL);
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    change_policy("name", "precision=bf16", 0); // which brings no clipping
    assert_int_equal(access(temp_path("name/policy.yaml"), F_OK), -1);
    run = open_run("own", "train.clip=2");
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    change_policy("own", setting("precision", "second.yaml"), 2); // the run's own setting stays
}

/* ---- its file, once the run is open ---- */

enum { STAYS, VANISHES, CHANGES };

/** Does with both files of the policy, the one that was named and the run's own, what `user` says, and then asks for
 *  another policy. */
static mixt_status disturb(void *user, mixt_run *run, const mixt_event *event)
{
    char own[1200];
    mixt_policy *policy;
    int what = *(const int *)user;
    if (event->kind != MIXT_EVENT_STEP || event->step->step != 3)
        return MIXT_OK;
    snprintf(own, sizeof own, "%s/policy.yaml", run->dir.path);
    const char *const files[] = {own, temp_path("first.yaml")};
    for (int i = 0; i < 2; i++) {
        if (what == VANISHES)
            assert_int_equal(unlink(files[i]), 0);
        if (what == CHANGES)
            assert_true(temp_write(files[i], "no policy", 9));
    }
    ok(mixt_policy_parse(second, "second", &policy));
    ok(mixt_run_ask_policy(run, policy));
    mixt_policy_free(policy);
    return MIXT_OK;
}

static void a_file_does_not_matter_once_the_run_is_open(void **state)
{
    (void)state;
    static const char *const names[] = {"stays", "vanishes", "changes"};
    void *weights[3];
    size_t sizes[3];
    for (int what = STAYS; what <= CHANGES; what++) {
        char file[64];
        mixt_run *run = open_run(names[what], NULL);
        if (what != STAYS) // before the run has a directory
            assert_true(temp_write(temp_path("first.yaml"), second, strlen(second)));
        ok(mixt_run_observe(run, disturb, &what));
        ok(mixt_run_train(run, NULL));
        assert_true(settings_of(run)->decided.clip == 0.25f && settings_of(run)->policy.forward == MIXT_DTYPE_BF16);
        mixt_run_close(run);
        expect_in(names[what], "config.yaml", "\n  clip: 0.25\n");
        expect_in(names[what], "config.yaml", "\n  scale_init: 65536\n"); // no longer the first policy's
        expect_in(names[what], "policy.yaml", "default: bf16\nclip: 0.25\n");
        snprintf(file, sizeof file, "%s/model.safetensors", names[what]);
        weights[what] = temp_read(temp_path(file), &sizes[what]);
        assert_int_equal(sizes[what], sizes[0]);
        assert_memory_equal(weights[what], weights[0], sizes[0]);
    }
    for (int what = STAYS; what <= CHANGES; what++)
        free(weights[what]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_policy_decides_what_is_not_set),
        cmocka_unit_test(it_goes_on_with_the_same_bits),
        cmocka_unit_test(it_goes_on_under_another_policy),
        cmocka_unit_test(a_file_does_not_matter_once_the_run_is_open),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
