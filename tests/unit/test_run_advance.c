/* Updates made by hand on the way to one of a run's past have the bits of training, and change nothing on disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../support/temp_folder.h"

#include <mixt/mixt.h>

#include <stdio.h>
#include <string.h>

enum { STEPS = 9 };

static double losses[STEPS + 1];

static mixt_status hear(void *user, mixt_run *run, const mixt_event *event)
{
    (void)user;
    (void)run;
    if (event->kind == MIXT_EVENT_STEP)
        losses[event->step->step] = event->step->loss;
    return MIXT_OK;
}

static const char *run_folder(void)
{
    return temp_path("run");
}

static int train(void **state)
{
    (void)state;
    char out[600];
    temp_folder_make();
    snprintf(out, sizeof out, "out=%s", run_folder());
    const char *const settings[] = {"model=mlp",
                                    "net.hidden=8",
                                    "net.dropout=0.1",
                                    "data.kind=random",
                                    "data.shape=6",
                                    "data.classes=3",
                                    "data.samples=64",
                                    "device=cpu",
                                    "threads=1",
                                    "train.batch=8",
                                    "precision=fp16",
                                    "train.steps=9",
                                    "train.checkpoint_every=3",
                                    "train.keep=9",
                                    out,
                                    NULL};
    mixt_config *config;
    mixt_run *run;
    mixt_status status = mixt_config_new(&config);
    if (status == MIXT_OK)
        status = mixt_run_open_config(config, MIXT_OPTIONS_AT(mixt_run_options, .settings = settings, .observer = hear),
                                      &run);
    if (status == MIXT_OK) {
        status = mixt_run_train(run, NULL);
        mixt_run_close(run);
    }
    mixt_config_free(config);
    return status == MIXT_OK ? 0 : -1;
}

static mixt_run *open_before(int64_t step)
{
    mixt_run *run;
    if (mixt_run_resume_with(run_folder(), MIXT_OPTIONS_AT(mixt_run_options, .before = step), &run) != MIXT_OK)
        fail_msg("before %lld: %s", (long long)step, mixt_error_text());
    return run;
}

/** Every update once more, from the checkpoint before it. */
static void test_bits(void **state)
{
    (void)state;
    for (int64_t step = 1; step <= STEPS; step++) {
        mixt_run *run = open_before(step);
        mixt_data *data;
        mixt_step made;
        const char *from = strstr(mixt_run_describe(run).checkpoint, "step-");
        int64_t at = from ? atoll(from + 5) : 0;
        assert_true(at < step && at >= (step - 1) / 3 * 3); // validations may have kept more
        assert_int_equal(mixt_run_advance(run, step - 1), MIXT_OK);
        assert_int_equal(mixt_run_data(run, "train", &data), MIXT_OK);
        assert_int_equal(mixt_trainer_step(mixt_run_trainer(run), data, &made), MIXT_OK);
        assert_int_equal(made.step, step);
        assert_true(made.loss == losses[step]);
        mixt_run_close(run);
    }
}

static void test_misuse(void **state)
{
    (void)state;
    mixt_run *run = open_before(5);
    assert_int_equal(mixt_run_advance(NULL, 1), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_run_advance(run, 4), MIXT_OK);
    assert_int_equal(mixt_run_advance(run, 4), MIXT_OK); // it is there
    assert_int_equal(mixt_run_advance(run, 2), MIXT_ERROR_STATE);
    assert_int_equal(mixt_run_advance(run, INT64_MAX), MIXT_ERROR_ARGUMENT); // would not end
    assert_non_null(strstr(mixt_error_text(), "the run ends with update 9"));
    assert_non_null(strstr(mixt_error_text(), "4"));
    assert_int_equal(mixt_run_train(run, NULL), MIXT_ERROR_STATE); // newer checkpoints would be lost
    mixt_run_close(run);
}

static bool refused; // to be closed

static mixt_status close_it(void *user, mixt_run *run, const mixt_event *event)
{
    (void)user;
    if (event->kind == MIXT_EVENT_STEP) {
        mixt_run_close(run);
        refused = strstr(mixt_error_text(), "cannot be closed by its observer") != NULL;
    }
    return MIXT_OK;
}

static void test_close_while_it_tells(void **state)
{
    (void)state;
    char config[600], out[600];
    mixt_run *run;
    mixt_run_result result;
    snprintf(config, sizeof config, "%s/config.yaml", run_folder());
    snprintf(out, sizeof out, "out=%s", temp_path("closed"));
    const char *const settings[] = {out, NULL};
    assert_int_equal(mixt_run_open(config, &run, .settings = settings, .observer = close_it), MIXT_OK);
    assert_int_equal(mixt_run_train(run, &result), MIXT_OK);
    assert_true(refused && result.steps == STEPS);
    mixt_run_close(run);
}

static void test_planned_ranks(void **state)
{
    (void)state;
    char config[600];
    mixt_run *run;
    snprintf(config, sizeof config, "%s/config.yaml", run_folder());
    assert_int_equal(mixt_run_open(config, &run, .plan_ranks = 2), MIXT_OK);
    assert_int_equal(mixt_run_advance(run, 1), MIXT_ERROR_STATE);
    assert_non_null(strstr(mixt_error_text(), "to plan 2 ranks"));
    mixt_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_misuse),
                                       cmocka_unit_test(test_close_while_it_tells),
                                       cmocka_unit_test(test_planned_ranks)};
    return cmocka_run_group_tests(tests, train, temp_folder_teardown);
}
