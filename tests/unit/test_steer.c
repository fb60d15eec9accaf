/* A run and decisions from C: an observer asks for them and hears of them, they are rows and survive a resume; without
 * memory for good states the run goes back to its newest checkpoint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/settings.h"
#include "../support/temp_folder.h"
#include "mixt/mixt.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%d: %s", (int)status, mixt_error_text());
}

/** What an observer asks for, and what it heard. */
typedef struct seen {
    int64_t ask_at; // the update after which it asks for clipping; 0: never
    bool back;      // from the good state on
    bool no_memory; // as if there were none for good states
    int heard;
    mixt_decision last;
    char to[64]; // of the last: its own texts are gone
} seen;

static mixt_decision clipping(bool back)
{
    mixt_decision d = {.back = back ? 0 : -1, .action = MIXT_ACTION_CLIP, .cause = MIXT_CAUSE_COUNT};
    d.key = "train.clip";
    d.from = "0";
    d.to = "0.25";
    d.text = "a test asks for it";
    return d;
}

static mixt_status watch(void *user, mixt_run *run, const mixt_event *event)
{
    seen *s = user;
    if (event->kind == MIXT_EVENT_START && s->no_memory)
        mixt__good_states_close(&run->steer.good);
    if (event->kind == MIXT_EVENT_DECISION) {
        s->heard++;
        s->last = *event->decision;
        snprintf(s->to, sizeof s->to, "%s", event->decision->to);
    }
    if (event->kind != MIXT_EVENT_STEP || event->step->step != s->ask_at || s->heard)
        return MIXT_OK;
    mixt_decision d = clipping(s->back);
    return mixt_run_ask_decision(run, &d);
}

static mixt_run *open_run(const char *out, const char *more, seen *s)
{
    mixt_run *run;
    mixt_config *config = settings_new();
    settings_add(config, "model=mlp precision=fp32 threads=1 net.hidden=16 data.kind=digits data.limit=256");
    settings_add(config, "train.epochs=0 train.steps=40 train.batch=16 train.checkpoint_every=6 auto.snapshot_every=8");
    settings_add(config, "out=%s %s", temp_path(out), more);
    ok(mixt_run_open_config(config, MIXT_OPTIONS_AT(mixt_run_options, .observer = watch, .user = s), &run));
    mixt_config_free(config);
    return run;
}

static mixt_run_result train(const char *out, const char *more, seen *s)
{
    mixt_run_result result;
    mixt_run *run = open_run(out, more, s);
    ok(mixt_run_train(run, &result));
    mixt_run_close(run);
    return result;
}

/** Whether the weights of two runs are the same, to the bit. */
static bool same_weights(const char *a, const char *b)
{
    char path[64];
    size_t sizes[2];
    snprintf(path, sizeof path, "%s/model.safetensors", a);
    void *first = temp_read(temp_path(path), &sizes[0]);
    snprintf(path, sizeof path, "%s/model.safetensors", b);
    void *second = temp_read(temp_path(path), &sizes[1]);
    bool same = first && second && sizes[0] == sizes[1] && !memcmp(first, second, sizes[0]);
    free(first);
    free(second);
    return same;
}

static void an_observer_decides(void **state)
{
    (void)state;
    char replay[600];
    seen s = {.ask_at = 21}, half = {.ask_at = 21}, none = {0};
    mixt_run_result r = train("asked", "", &s);
    assert_int_equal(s.heard, 1);
    assert_true(s.last.step == 21 && s.last.back == -1 && s.last.action == MIXT_ACTION_CLIP);
    assert_true(r.decisions == 1 && r.rollbacks == 0);
    train("plain", "", &none);
    assert_false(same_weights("asked", "plain"));
    snprintf(replay, sizeof replay, "auto.replay=%s", temp_path("asked/events.jsonl"));
    train("again", replay, &none);
    assert_true(same_weights("asked", "again"));
    // a run that stops behind it has it still
    train("half", "train.steps=22", &half);
    mixt_run *run;
    const char *const longer[] = {"train.steps=40", NULL};
    ok(mixt_run_resume(temp_path("half"), &run, .settings = longer));
    ok(mixt_run_train(run, &r));
    mixt_run_close(run);
    assert_int_equal(r.decisions, 1);
    assert_true(same_weights("asked", "half"));
}

static void it_goes_back_where_good_states_are_kept(void **state)
{
    (void)state;
    seen s = {.ask_at = 21, .back = true}, without = {.ask_at = 21, .back = true, .no_memory = true};
    mixt_run_result r = train("back", "auto.steer=true", &s);
    assert_true(s.last.back == 16 && r.steps == 40 && r.rollbacks == 1);
    r = train("disk", "auto.steer=true", &without);
    assert_true(without.last.back == 18 && r.steps == 40 && r.rollbacks == 1); // the newest checkpoint
}

/** A batch with a NaN is left out also where nothing can be replayed. */
static void trouble_without_memory(void **state)
{
    (void)state;
    seen s = {.no_memory = true};
    mixt_run_result r = train("short", "auto.steer=true faults=nan_data@27", &s);
    assert_int_equal(s.last.action, MIXT_ACTION_SKIP);
    assert_string_equal(s.to, "26");
    assert_true(s.last.back == 24 && r.decisions == 1 && r.steps == 40);
}

static void bad_decisions_are_refused(void **state)
{
    (void)state;
    seen s = {0};
    mixt_decision d = clipping(false);
    mixt_run *run = open_run("bad", "", &s);
    d.action = MIXT_ACTION_COUNT;
    assert_int_equal(mixt_run_ask_decision(run, &d), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_run_ask_decision(run, NULL), MIXT_ERROR_ARGUMENT);
    d = clipping(false);
    for (int i = 0; i < MIXT_DECISIONS_ASKED; i++)
        ok(mixt_run_ask_decision(run, &d));
    assert_int_equal(mixt_run_ask_decision(run, &d), MIXT_ERROR_STATE);
    mixt_run_close(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_observer_decides),
        cmocka_unit_test(it_goes_back_where_good_states_are_kept),
        cmocka_unit_test(trouble_without_memory),
        cmocka_unit_test(bad_decisions_are_refused),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
