/* Memory pressure while a run trains: each tier frees what it says, what is held is what is planned, to the byte, the
 * update stays that of the whole batch, and a resumed run and a replay of the events end with the same bits. The budget
 * is squeezed by hand: what else the machine does plays no part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/sanitized.h"
#include "../support/settings.h"
#include "../support/temp_folder.h"
#include "mixt/mixt.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 24, FIRST = 3, SECOND = 10, TEXT = 1200 };

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%d: %s", (int)status, mixt_error_text());
}

/** @param more settings, separated by spaces */
static mixt_config *config_of(const char *out, const char *more)
{
    mixt_config *config = settings_new();
    settings_add(config, "model=gpt precision=fp32 net.layers=2 net.width=32 net.heads=2 threads=1 data.kind=text");
    settings_add(config, "data.path=%s data.seq=32 train.batch=16 train.epochs=0 train.steps=%d",
                 temp_path("words.txt"), STEPS);
    settings_add(config, "train.checkpoint_every=5 watch.every=7 auto.steer=true out=%s %s", temp_path(out), more);
    return config;
}

/** What an observer does and sees. */
typedef struct seen {
    double share[2]; // of the budget that the run then holds, from updates FIRST and SECOND on; 0: none
    int64_t stop;    // after this update; 0: at the end
    double losses[STEPS + 1];
    size_t bytes[STEPS + 1]; // of the step
    int64_t samples;
} seen;

static mixt_status look(void *user, mixt_run *run, const mixt_event *event)
{
    seen *s = user;
    mixt_memory m;
    int64_t step = event->step->step;
    if (event->kind != MIXT_EVENT_STEP)
        return MIXT_OK;
    ok(mixt_trainer_memory(mixt_run_trainer(run), &m));
    if (m.allocated != m.total)
        fail_msg("step %lld: %zu bytes planned, %zu allocated", (long long)step, m.total, m.allocated);
    s->losses[step] = event->step->loss;
    s->bytes[step] = m.total;
    s->samples += event->step->samples;
    for (int i = 0; i < 2; i++)
        if (step == (i ? SECOND : FIRST) && s->share[i] > 0)
            run->pressure.squeezed = (size_t)((double)run->result.run_memory.total.host / s->share[i]);
    if (step == s->stop)
        mixt_run_ask_stop(run);
    return MIXT_OK;
}

static void train(const char *out, const char *more, seen *s)
{
    mixt_run *run;
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .observer = look, .user = s);
    mixt_config *config = config_of(out, more);
    ok(mixt_run_open_config(config, &options, &run));
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    mixt_config_free(config);
}

typedef struct row {
    int64_t step;
    char key[48], to[64], cause[32];
    int64_t before, after;
} row;

/** The decisions of a run, in their order. */
static int decisions(const char *run, row *rows, int most)
{
    char path[64], line[4096];
    int count = 0;
    snprintf(path, sizeof path, "%s/events.jsonl", run);
    FILE *file = fopen(temp_path(path), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *o = json_loads(line, 0, NULL), *evidence = json_object_get(o, "evidence");
        if (!strcmp(json_string_value(json_object_get(o, "kind")), "decision")) {
            assert_true(count < most);
            row *r = &rows[count++];
            r->step = json_integer_value(json_object_get(o, "step"));
            snprintf(r->cause, sizeof r->cause, "%s", json_string_value(json_object_get(o, "cause")));
            snprintf(r->to, sizeof r->to, "%s", json_string_value(json_object_get(o, "to")));
            snprintf(r->key, sizeof r->key, "%s", json_string_value(json_object_get(evidence, "key")));
            r->before = json_integer_value(json_object_get(evidence, "bytes_before"));
            r->after = json_integer_value(json_object_get(evidence, "bytes_after"));
            assert_string_equal(json_string_value(json_object_get(o, "action")), "memory"); // no phases in these runs
        }
        json_decref(o);
    }
    fclose(file);
    return count;
}

static void tiers_free_memory(void **unused)
{
    (void)unused;
    seen calm = {0}, s = {.share = {0.75, 0.95}};
    row rows[8];
    train("calm", "", &calm);
    assert_int_equal(decisions("calm", rows, 8), 0);
    train("tiers", "", &s);
    int count = decisions("tiers", rows, 8);
    assert_true(count >= 2);
    assert_string_equal(rows[0].key, "train.activations"); // the first tier, a few looks after it was squeezed
    assert_string_equal(rows[0].to, "bf16");
    assert_int_equal(rows[0].step, FIRST + 3); // observers of the test hear last
    for (int i = 0; i < count; i++) {
        assert_string_equal(rows[i].cause, "memory_warning");
        assert_int_equal(rows[i].before, s.bytes[rows[i].step]);
        assert_true(rows[i].after < rows[i].before);
    }
    for (int i = 1; i < count; i++) // the second one
        assert_true(rows[i].step >= SECOND &&
                    (!strcmp(rows[i].key, "train.split") || !strcmp(rows[i].key, "train.recompute")));
    assert_int_equal(rows[count - 1].after, s.bytes[STEPS]);
    assert_int_equal(s.samples, calm.samples); // the update is that of the batch
    for (int i = 1; i <= STEPS; i++)
        if (i <= rows[0].step + 1) // the loss of the next update is of the same weights
            assert_true(s.losses[i] == calm.losses[i]);
        else
            assert_true(fabs(s.losses[i] - calm.losses[i]) < 0.05);
}

/** From any update on: before, between and behind the decisions that the record holds. */
static void stopped_runs_and_replays_are_the_same(void **unused)
{
    (void)unused;
    seen all = {.share = {0.75, 0.95}}, again = {0};
    char setting[TEXT], path[TEXT];
    train("all", "", &all);
    snprintf(setting, sizeof setting, "auto.replay=%s", temp_path("all/events.jsonl"));
    train("replay", setting, &again);
    assert_memory_equal(all.losses, again.losses, sizeof all.losses);
    assert_memory_equal(all.bytes, again.bytes, sizeof all.bytes);
    for (int64_t stop = 5; stop < STEPS; stop += 4 * CASE_STRIDE) {
        char out[32];
        seen s = {.share = {0.75, 0.95}, .stop = stop};
        mixt_run *run;
        mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .observer = look, .user = &s);
        snprintf(out, sizeof out, "stop-%lld", (long long)stop);
        train(out, "", &s);
        s.stop = 0;
        snprintf(path, sizeof path, "%s", temp_path(out));
        ok(mixt_run_resume_with(path, &options, &run));
        run->pressure.most = SIZE_MAX; // what the budget was when the run began
        ok(mixt_run_train(run, NULL));
        mixt_run_close(run);
        if (stop > SECOND + 4) { // all was decided before: nothing presses any more
            assert_memory_equal(s.losses, all.losses, sizeof all.losses);
            assert_memory_equal(s.bytes, all.bytes, sizeof all.bytes);
        }
        row rows[8];
        int count = decisions(out, rows, 8);
        assert_true(count >= 1);
    }
}

/** A run with phases: what a tier changed holds in those to come, too. */
static void phases_under_pressure(void **unused)
{
    (void)unused;
    seen all = {.share = {0.75, 0.95}}, again = {0}, s = {.share = {0.75, 0.95}, .stop = 16};
    char setting[TEXT], replay[2 * TEXT];
    mixt_run *run;
    FILE *file = fopen(temp_path("p.yaml"), "w");
    fputs("default: fp32\nphases:\n  - {name: a, until: 8, clip: 1}\n  - {name: b, until: 20, default: bf16}\n"
          "  - {name: c}\n",
          file);
    fclose(file);
    snprintf(setting, sizeof setting, "precision=%s", temp_path("p.yaml"));
    train("phased", setting, &all);
    snprintf(replay, sizeof replay, "%s auto.replay=%s", setting, temp_path("phased/events.jsonl"));
    train("phased-again", replay, &again);
    assert_memory_equal(all.losses, again.losses, sizeof all.losses);
    assert_memory_equal(all.bytes, again.bytes, sizeof all.bytes);
    train("phased-stop", setting, &s);
    s.stop = 0;
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .observer = look, .user = &s);
    ok(mixt_run_resume_with(temp_path("phased-stop"), &options, &run));
    ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    assert_memory_equal(all.losses, s.losses, sizeof all.losses);
    assert_memory_equal(all.bytes, s.bytes, sizeof all.bytes);
    assert_true(all.bytes[STEPS] < all.bytes[1]); // fp32 again, in parts
}

/** What the policy says of activations stays, and what may not be done is not. */
static void what_is_said_stays(void **unused)
{
    (void)unused;
    seen s = {.share = {0.95, 0}};
    row rows[8];
    train("said", "train.activations=bf16 train.memory_may=recompute", &s);
    int count = decisions("said", rows, 8);
    for (int i = 0; i < count; i++)
        assert_string_equal(rows[i].key, "train.recompute");
    assert_true(count >= 1);
    s = (seen){.share = {0.95, 0}};
    train("off", "auto.memory=false", &s);
    assert_int_equal(decisions("off", rows, 8), 0);
}

static int set_up(void **state)
{
    temp_folder_setup(state);
    FILE *words = fopen(temp_path("words.txt"), "w");
    for (int i = 0; words && i < 2000; i++)
        fprintf(words, "the quick brown fox jumps %d\n", i);
    return !words || fclose(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiers_free_memory),
        cmocka_unit_test(stopped_runs_and_replays_are_the_same),
        cmocka_unit_test(phases_under_pressure),
        cmocka_unit_test(what_is_said_stays),
    };
    return cmocka_run_group_tests(tests, set_up, temp_folder_teardown);
}
