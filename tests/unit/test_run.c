/* Runs from C: events in their documented order, what observers ask for, resuming to the same bits, failures that end a
 * run, and runs opened, loaded and refused.
 */
#include "../support/temp_folder.h"
#include "mixt/mixt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const tiny = "model: mlp\n"
                                "precision: bf16\n"
                                "threads: 2\n"
                                "net: {hidden: [16]}\n"
                                "data: {kind: digits, limit: 256}\n"
                                "train: {epochs: 2, batch: 32, lr: 0.01}\n";

/** What a run told. */
typedef struct heard {
    char order[4096]; // a letter an event; a save ends when the disk is done: not in it
    int counts[MIXT_EVENT_END + 1];
    int64_t stop_at, validate_at, save_at, fail_at, policy_at; // updates at which to ask; 0: never
    int64_t signal_at;                                         // update at which SIGUSR1 comes; the run catches it
    const char *policy;                                        // for policy_at, as YAML
    int warnings;
    double last_loss;
    char checkpoint[1300];
    mixt_status end;
} heard;

static mixt_status listen(void *user, mixt_run *run, const mixt_event *event)
{
    static const char letters[] = "SuvrcnE";
    heard *h = user;
    if (event->kind > MIXT_EVENT_END)
        return MIXT_OK;
    size_t length = strlen(h->order);
    if (length + 1 < sizeof h->order && event->kind != MIXT_EVENT_NOTE && event->kind != MIXT_EVENT_CHECKPOINT)
        h->order[length] = letters[event->kind];
    h->counts[event->kind]++;
    h->warnings += event->kind == MIXT_EVENT_NOTE && event->warning;
    if (event->kind == MIXT_EVENT_CHECKPOINT)
        snprintf(h->checkpoint, sizeof h->checkpoint, "%s", event->text);
    if (event->kind == MIXT_EVENT_END)
        h->end = event->status;
    if (event->kind != MIXT_EVENT_STEP)
        return MIXT_OK;
    h->last_loss = event->step->loss;
    assert_int_equal(event->result->steps, event->step->step);
    if (event->step->step == h->signal_at)
        raise(SIGUSR1);
    if (event->step->step == h->stop_at)
        mixt_run_ask_stop(run);
    if (event->step->step == h->validate_at)
        mixt_run_ask_validation(run);
    if (event->step->step == h->save_at)
        mixt_run_ask_checkpoint(run);
    if (event->step->step == h->policy_at) {
        mixt_policy *policy;
        assert_int_equal(mixt_policy_parse(h->policy, "test", &policy), MIXT_OK);
        assert_int_equal(mixt_run_ask_policy(run, policy), MIXT_OK);
        mixt_policy_free(policy);
    }
    return event->step->step == h->fail_at ? mixt_fail(MIXT_ERROR_DATA, "enough") : MIXT_OK;
}

static mixt_run *open_run(const char *out, heard *h, const char *const *more)
{
    mixt_config *config;
    mixt_run *run;
    char setting[1200];
    const char *settings[8] = {setting};
    for (int i = 0; more && more[i]; i++)
        settings[i + 1] = more[i];
    snprintf(setting, sizeof setting, "out=%s", temp_path(out));
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    assert_int_equal(mixt_config_parse(config, tiny, "tiny"), MIXT_OK);
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .settings = settings, .observer = listen, .user = h,
                                            .signals = h->signal_at > 0);
    mixt_status status = mixt_run_open_config(config, &options, &run);
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    mixt_config_free(config);
    return run;
}

/** A whole file of a run, ended by 0; freed by the caller. */
static char *contents(const char *run, const char *name, size_t *size)
{
    char file[64];
    snprintf(file, sizeof file, "%s/%s", run, name);
    char *text = (char *)temp_read(temp_path(file), size);
    assert_non_null(text);
    text[*size] = '\0'; // there is room for it
    return text;
}

static void test_order(void **state)
{
    heard h = {0};
    (void)state;
    mixt_run_result result;
    mixt_run *run = open_run("order", &h, NULL);
    assert_string_equal(mixt_run_describe(run).folder, "");
    assert_int_equal(mixt_run_train(run, &result), MIXT_OK);
    assert_string_equal(h.order, "SurururururururuvrurururururururuvrE"); // 8 updates an epoch
    assert_int_equal(result.steps, 16);
    assert_int_equal(result.validations, 2);
    assert_int_equal(result.val_step, 16);
    assert_int_equal(result.weights_step, 16);
    assert_int_equal(result.signal, 0);
    assert_int_equal(h.counts[MIXT_EVENT_CHECKPOINT], 2); // a first validation is the best so far; the end
    assert_int_equal(result.memory.allocated, result.memory.total);
    assert_string_equal(mixt_run_describe(run).folder, temp_path("order"));
    assert_int_equal(mixt_run_train(run, NULL), MIXT_ERROR_STATE); // it has been
    mixt_evaluation found;
    assert_int_equal(mixt_run_evaluate(run, "val", &found), MIXT_OK);
    assert_true(found.loss == result.val_loss);
    mixt_run_close(run);
}

/** Which signal ended it, and which update the validation is of that the figures come from. */
static void test_signal(void **state)
{
    heard h = {.signal_at = 10};
    (void)state;
    mixt_run_result result;
    mixt_run *run = open_run("signal", &h, NULL);
    assert_int_equal(mixt_run_train(run, &result), MIXT_OK);
    assert_true(result.interrupted);
    assert_int_equal(result.signal, SIGUSR1);
    assert_in_range(result.steps, 10, 11); // it came while the result of update 10 was told
    assert_int_equal(result.val_step, 8);
    assert_int_equal(result.weights_step, result.steps);
    mixt_run_close(run);
}

static void test_asks(void **state)
{
    heard h = {.validate_at = 3, .save_at = 5, .stop_at = 7};
    (void)state;
    mixt_run_result result;
    mixt_run *run = open_run("asks", &h, NULL);
    assert_int_equal(mixt_run_train(run, &result), MIXT_OK);
    assert_int_equal(result.steps, 7);
    assert_true(result.stopped);
    assert_false(result.stopped_early);
    assert_int_equal(result.validations, 1);
    assert_int_equal(strncmp(h.order, "SururuvrurururX", 8), 0); // the validation asked for in the third update
    assert_true(h.counts[MIXT_EVENT_CHECKPOINT] >= 1);
    assert_non_null(strstr(h.checkpoint, "checkpoints/step-0000000"));
    mixt_run_close(run);
}

/** Stopped by an observer and resumed, a run has the bits of one that never stopped. */
static void test_resume(void **state)
{
    heard whole = {0}, first = {.stop_at = 5, .save_at = 5}, second = {0};
    (void)state;
    const char *const longer[] = {"train.epochs=2", NULL};
    size_t sizes[2];
    mixt_run *run = open_run("whole", &whole, NULL);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    run = open_run("parts", &first, NULL);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    assert_int_equal(mixt_run_resume(temp_path("parts"), &run, .observer = listen, .user = &second, .settings = longer),
                     MIXT_OK);
    assert_true(strlen(mixt_run_describe(run).checkpoint) > 0);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    assert_int_equal(second.counts[MIXT_EVENT_STEP], 11);
    assert_true(whole.last_loss == second.last_loss);
    char *x = contents("whole", "model.safetensors", &sizes[0]), *y = contents("parts", "model.safetensors", &sizes[1]);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(x, y, sizes[0]);
    free(x);
    free(y);
    x = contents("parts", "history.jsonl", &sizes[0]);
    assert_non_null(strstr(x, "\"event\":\"resumed\""));
    assert_non_null(strstr(x, "\"step\":5"));
    free(x);
}

static const char *const mixed = "default: fp16\nclip: 0.5\nrules: [{layer: \"fc.1\", precision: fp32}]\n";

static void check_weights(const char *a, const char *b)
{
    size_t sizes[2];
    char *x = contents(a, "model.safetensors", &sizes[0]), *y = contents(b, "model.safetensors", &sizes[1]);
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(x, y, sizes[0]);
    free(x);
    free(y);
}

/** Another policy from the fifth update on: the run records it, and resumed from before or after the change it has the
 *  same bits as one that never stopped. */
static void test_policy(void **state)
{
    heard whole = {.policy_at = 4, .policy = mixed}, first = {.policy_at = 4, .policy = mixed, .save_at = 3};
    heard second = {.policy_at = 4, .policy = mixed}, third = {0};
    const mixt_policy *policy;
    mixt_policy_settings settings;
    size_t size;
    (void)state;
    mixt_run *run = open_run("changed", &whole, NULL);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    policy = mixt_trainer_policy(mixt_run_trainer(run));
    mixt_policy_get_settings(policy, &settings);
    assert_int_equal(mixt_policy_count(policy), 1);
    assert_true(settings.clip == 0.5f);
    assert_true(mixt_config_float(mixt_run_config(run), "train.clip") == 0.5);
    mixt_run_close(run);
    assert_int_equal(whole.warnings, 0);
    char *history = contents("changed", "history.jsonl", &size);
    assert_non_null(strstr(history, "\"event\":\"policy\""));
    assert_non_null(strstr(history, "\"step\":4"));
    free(history);
    first.stop_at = 6;
    run = open_run("stopped", &first, NULL);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK); // leaves checkpoints of updates 3 and 6
    mixt_run_close(run);
    assert_int_equal(mixt_run_resume(temp_path("stopped"), &run, .observer = listen, .user = &third), MIXT_OK);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK); // from 6, which has the policy already
    mixt_run_close(run);
    assert_int_equal(third.counts[MIXT_EVENT_STEP], 10);
    check_weights("changed", "stopped");
    first = (heard){.policy_at = 4, .policy = mixed, .save_at = 3, .stop_at = 6};
    run = open_run("early", &first, NULL);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    assert_int_equal(rename(temp_path("early/checkpoints/step-00000006"), temp_path("lost")), 0);
    assert_int_equal(remove(temp_path("early/model.safetensors")), 0);
    assert_int_equal(mixt_run_resume(temp_path("early"), &run, .observer = listen, .user = &second), MIXT_OK);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK); // from 3, under the policy of then
    mixt_run_close(run);
    assert_int_equal(second.counts[MIXT_EVENT_STEP], 13);
    check_weights("changed", "early");
}

/** A policy that the model cannot take is told, and changes nothing. */
static void test_policy_refused(void **state)
{
    heard plain = {0}, asks = {.policy_at = 4, .policy = "default: fp16\nrules: [{layer: nowhere, precision: fp32}]\n"};
    (void)state;
    mixt_run *run = open_run("plain", &plain, NULL);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    run = open_run("kept", &asks, NULL);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    assert_int_equal(asks.warnings, 1);
    check_weights("plain", "kept");
}

static void test_refused(void **state)
{
    heard h = {.stop_at = 3, .save_at = 3};
    (void)state;
    const char *const other[] = {"train.lr=0.5", NULL};
    mixt_run *run;
    run = open_run("refused", &h, NULL);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    mixt_run_close(run);
    assert_int_equal(mixt_run_resume(temp_path("refused"), &run, .settings = other), MIXT_ERROR_CONFIG);
    assert_null(run);
    assert_non_null(strstr(mixt_error_text(), "train.lr: 0.01 -> 0.5"));
    assert_int_equal(mixt_run_resume(temp_path("refused"), &run, .settings = other, .allow = "model"),
                     MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_error_text(), "'model' cannot change at a resume: precision, the learning rate and"));
    assert_int_equal(mixt_run_resume("/nonexistent", &run), MIXT_ERROR_FILE);
    assert_int_equal(mixt_run_open("/nonexistent.yaml", &run), MIXT_ERROR_FILE);
    assert_int_equal(mixt_run_load(temp_path("refused"), "7", &run), MIXT_ERROR_FILE); // no such checkpoint
    assert_int_equal(mixt_run_load(temp_path("refused"), "final", &run), MIXT_OK);
    assert_int_equal(mixt_run_evaluate(run, "nonsense", NULL), MIXT_ERROR_CONFIG);
    mixt_run_close(run);
    mixt_run_close(NULL);
}

/** An observer's failure ends the run with its status and text; what was done stays. */
static void test_failing_observer(void **state)
{
    heard h = {.fail_at = 4};
    (void)state;
    mixt_run_result result;
    size_t size;
    mixt_run *run = open_run("failing", &h, NULL);
    assert_int_equal(mixt_run_train(run, &result), MIXT_ERROR_DATA);
    assert_string_equal(mixt_error_text(), "enough");
    assert_int_equal(result.steps, 4);
    assert_int_equal(h.end, MIXT_ERROR_DATA);
    char *rows = contents("failing", "metrics.jsonl", &size);
    assert_non_null(strstr(rows, "\"step\":4"));
    free(rows);
    mixt_run_close(run);
}

static mixt_status linger(void *user, mixt_run *run, const mixt_event *event)
{
    (void)user;
    (void)run;
    return event->kind == MIXT_EVENT_STEP && usleep(5000) ? MIXT_ERROR_STATE : MIXT_OK;
}

/** What listeners take is time of the run: of 16 updates 15 have at least 5 ms of it before their result. */
static void test_rate_counts_listeners(void **state)
{
    heard h = {0};
    (void)state;
    mixt_run_result result;
    mixt_run *run = open_run("slow", &h, NULL);
    assert_int_equal(mixt_run_observe(run, linger, NULL), MIXT_OK);
    assert_int_equal(mixt_run_train(run, &result), MIXT_OK);
    assert_int_equal(result.steps, 16);
    assert_true(result.samples_s > 0 && result.samples_s <= 16 * 32 / (15 * 0.005));
    mixt_run_close(run);
}

/** Alerts that were heard, and how many of those came before the update that they are about. */
typedef struct alerts {
    int64_t step; // the newest STEP
    int heard, early;
} alerts;

static mixt_status hear_alerts(void *user, mixt_run *run, const mixt_event *event)
{
    alerts *a = user;
    (void)run;
    if (event->kind == MIXT_EVENT_STEP)
        a->step = event->step->step;
    if (event->kind == MIXT_EVENT_ALERT) {
        a->heard++;
        a->early += event->alert->step > a->step;
    }
    return MIXT_OK;
}

/** An update is heard of before what is wrong with it. */
static void test_alerts_follow(void **state)
{
    const char *const settings[] = {"faults=nan_data@5", "auto.steer=true", NULL};
    heard h = {0};
    alerts a = {0};
    (void)state;
    mixt_run *run = open_run("alerts", &h, settings);
    assert_int_equal(mixt_run_observe(run, hear_alerts, &a), MIXT_OK);
    (void)mixt_run_train(run, NULL);
    assert_true(a.heard > 0);
    assert_int_equal(a.early, 0);
    mixt_run_close(run);
}

static void test_too_many_observers(void **state)
{
    heard h = {0};
    (void)state;
    mixt_run *run = open_run("many", &h, NULL);
    for (int i = 0; i < 15; i++)
        assert_int_equal(mixt_run_observe(run, listen, &h), MIXT_OK);
    assert_int_equal(mixt_run_observe(run, listen, &h), MIXT_ERROR_STATE);
    mixt_run_close(run);
    assert_int_equal(access(temp_path("many"), F_OK), -1); // never trained: nothing was written
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_asks),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_policy),
        cmocka_unit_test(test_policy_refused),
        cmocka_unit_test(test_failing_observer),
        cmocka_unit_test(test_rate_counts_listeners),
        cmocka_unit_test(test_alerts_follow),
        cmocka_unit_test(test_too_many_observers),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
