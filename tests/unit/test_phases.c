/* Phases: as part of a policy's value and text, and as a run goes through them. Where a phase ends is a function of the
 * update alone: a run that is stopped anywhere and resumed ends with the same bits, and each phase holds what was
 * planned for it, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/settings.h"
#include "../support/temp_folder.h"
#include "mixt/mixt.h"
#include "policy_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values and texts ---- */

static const char whole[] = "version: 1\nmade_by: hand\ndefault: bf16\nkeep: fp8_e4m3\nclip: 1\n"
                            "rules:\n  - layer: a\n    precision: fp16\n"
                            "phases:\n"
                            "  - name: warm-up\n    until: 2.5%\n    default: fp32\n    keep: fp32\n"
                            "  - name: \"2nd\"\n    until: 3 epochs\n    loss_scale: 128\n    clip: 2\n"
                            "    rules:\n      - layer: a\n        op: matmul\n        forward: bf16\n"
                            "        backward: fp32\n        keep: bf16\n"
                            "  - name: calm\n"
                            "evidence:\n  why: measured\n";

static void texts_come_back(void **unused)
{
    (void)unused;
    mixt_policy *policy = parse(whole), *copy, *other;
    mixt_policy_phase phase;
    char *yaml = print(policy);
    assert_string_equal(yaml, whole);
    free(yaml);
    assert_int_equal(mixt_policy_phases(policy), 3);
    ok(mixt_policy_get_phase(policy, 1, &phase));
    assert_string_equal(phase.name, "2nd");
    assert_true(phase.until == 3 && phase.unit == MIXT_PHASE_EPOCHS);
    assert_string_equal(phase.origin, "text:14");
    assert_int_equal(mixt_policy_get_phase(policy, 3, &phase), MIXT_ERROR_ARGUMENT);
    ok(mixt_policy_copy(policy, &copy));
    yaml = print(copy);
    assert_string_equal(yaml, whole);
    assert_true(mixt_policy_equal(policy, copy));
    mixt_policy_free(policy);
    free(yaml);
    other = parse("default: bf16");
    assert_false(mixt_policy_equal(copy, other));
    assert_false(mixt_policy_equal(other, copy));
    mixt_policy_free(other);
    mixt_policy_free(copy);
    copy = parse("default: bf16\nphases: [{name: a, until: 5, clip: 1}, {name: b}]");
    other = parse("default: bf16\nphases: [{name: a, until: 5, clip: 2}, {name: b}]");
    assert_false(mixt_policy_equal(copy, other));
    mixt_policy_free(other);
    other = parse("default: bf16\nphases: [{name: a, until: 6, clip: 1}, {name: b}]");
    assert_false(mixt_policy_equal(copy, other));
    mixt_policy_free(other);
    mixt_policy_free(copy);
}

static void phases_lie_on_top(void **unused)
{
    (void)unused;
    mixt_policy *policy = parse(whole), *now;
    mixt_policy_settings settings;
    mixt_dtype forward, backward;
    char *line;
    ok(mixt_policy_of_phase(policy, 0, &now));
    mixt_policy_default(now, &forward, &backward);
    assert_true(forward == MIXT_DTYPE_FP32 && backward == MIXT_DTYPE_FP32);
    assert_int_equal(mixt_policy_phases(now), 0);
    mixt_policy_get_settings(now, &settings);
    assert_true(settings.clip == 1 && !settings.loss_scale);
    line = mixt__policy_line(&now->formats);
    assert_string_equal(line, "fp32; layer a, op *: fp16");
    free(line);
    assert_string_equal(mixt_policy_made_by(now), "hand");
    mixt_policy_free(now);
    ok(mixt_policy_of_phase(policy, 1, &now));
    mixt_policy_get_settings(now, &settings);
    assert_true(settings.clip == 2);
    assert_string_equal(settings.loss_scale, "128");
    line = mixt__policy_line(&now->formats);
    assert_string_equal(line, "bf16 (keep fp8_e4m3); layer a, op *: fp16 (keep fp8_e4m3); "
                              "layer a, op matmul: bf16 (backward fp32) (keep bf16)");
    free(line);
    mixt_policy_free(now);
    assert_int_equal(mixt_policy_of_phase(policy, 3, &now), MIXT_ERROR_ARGUMENT);
    mixt_policy_free(policy);
}

static void ends_become_updates(void **unused)
{
    (void)unused;
    mixt_policy *policy = parse(whole), *resolved;
    mixt_policy_phase phase;
    ok(mixt_policy_resolve_phases(policy, 1000, 20, &resolved));
    ok(mixt_policy_get_phase(resolved, 0, &phase));
    assert_true(phase.until == 25 && phase.unit == MIXT_PHASE_UPDATES);
    ok(mixt_policy_get_phase(resolved, 1, &phase));
    assert_true(phase.until == 60 && phase.unit == MIXT_PHASE_UPDATES);
    assert_int_equal(mixt__policy_phase_at(resolved, 1), 0);
    assert_int_equal(mixt__policy_phase_at(resolved, 25), 0);
    assert_int_equal(mixt__policy_phase_at(resolved, 26), 1);
    assert_int_equal(mixt__policy_phase_at(resolved, 61), 2);
    assert_int_equal(mixt__policy_phase_at(resolved, INT64_MAX), 2);
    mixt_policy_free(resolved);
    ok(mixt_policy_resolve_phases(policy, 10, 20, &resolved)); // a part of an update counts as one
    ok(mixt_policy_get_phase(resolved, 0, &phase));
    assert_true(phase.until == 1);
    mixt_policy_free(resolved);
    assert_int_equal(mixt_policy_resolve_phases(policy, 0, 20, &resolved), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "a run that has no end"));
    assert_null(resolved);
    assert_int_equal(mixt_policy_resolve_phases(policy, 1000, 0, &resolved), MIXT_ERROR_CONFIG);
    assert_int_equal(mixt_policy_resolve_phases(policy, 100000, 20, &resolved), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "text:14: phase '2nd' (until 3 epochs) ends at update 60 of 100000, not "
                                              "after 'warm-up', which ends at update 2500"));
    mixt_policy_free(policy);
}

static void phases_by_hand(void **unused)
{
    (void)unused;
    mixt_policy *policy = parse("default: bf16"), *fp32 = parse("default: fp32"), *two, *read, *one;
    mixt_policy_phase warm = {.name = "warm", .until = 5}, rest = {.name = "rest"};
    ok(mixt_policy_add_phase(policy, &warm, fp32));
    assert_int_equal(mixt_policy_resolve_phases(policy, 10, 1, &two), MIXT_ERROR_CONFIG); // no last one
    assert_int_equal(mixt_policy_add_phase(policy, &warm, NULL), MIXT_ERROR_ARGUMENT);    // the name, and the end
    assert_int_equal(mixt_policy_add_phase(policy, &(mixt_policy_phase){.name = "x", .until = 5}, NULL),
                     MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_policy_add_phase(policy, &(mixt_policy_phase){.name = "", .until = 9}, NULL),
                     MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_policy_add_phase(policy, &(mixt_policy_phase){.name = "x", .until = 9.5}, NULL),
                     MIXT_ERROR_ARGUMENT);
    ok(mixt_policy_add_phase(policy, &rest, NULL));
    assert_int_equal(mixt_policy_add_phase(policy, &(mixt_policy_phase){.name = "x"}, NULL), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_policy_add_phase(fp32, &rest, policy), MIXT_ERROR_ARGUMENT); // phases in a phase
    read = parse("default: bf16\nphases: [{name: a, until: 5, default: fp32}, {name: b}]");
    assert_true(mixt_policy_equal(policy, read)); // whatever they are called
    ok(mixt_policy_of_phase(policy, 1, &one));
    mixt_policy *bf16 = parse("default: bf16");
    assert_true(mixt_policy_equal(one, bf16));
    mixt_policy_free(bf16);
    mixt_policy_free(one);
    mixt_policy_free(read);
    mixt_policy_free(fp32);
    mixt_policy_free(policy);
}

static void mistakes_are_named(void **unused)
{
    (void)unused;
    static const struct {
        const char *phases, *text;
    } wrong[] = {
        {"phases: bf16", "text:2:9: phases must be a list with at least one"},
        {"phases: []", "text:2:9: phases must be a list"},
        {"phases:\n  - until: 5\n  - name: b", "text:3:5: the phase has no name"},
        {"phases:\n  - name: a\n    until: 0\n  - name: b", "text:4:12: until: '0' is not a number of updates"},
        {"phases:\n  - name: a\n    until: 1.5\n  - name: b", "text:4:12: until: '1.5' is not"},
        {"phases:\n  - name: a\n    until: 100%\n  - name: b", "text:4:12: until: '100%' is not"},
        {"phases:\n  - name: a\n    until: 3 weeks\n  - name: b", "text:4:12: until: '3 weeks' is not"},
        {"phases:\n  - name: a\n    until: -1\n  - name: b", "text:4:12: until: '-1' is not"},
        {"phases:\n  - name: a\n    until: 9\n  - name: b\n    until: 9\n  - name: c",
         "text:5:5: phase 'b' ends at 9, not after 'a', which ends at 9"},
        {"phases:\n  - name: a\n  - name: b", "text:4:5: phase 'b' never starts: 'a' before it has no until"},
        {"phases:\n  - name: a\n    until: 5", "text:3:5: the last phase, 'a', has an until"},
        {"phases:\n  - name: a\n    until: 5\n  - name: a", "text:5:5: two phases are called 'a'"},
        {"phases:\n  - name: a\n    format: bf16", "text:4:5: unknown key of a phase"},
        {"phases:\n  - name: a\n    default: fp4", "text:4:14: a precision must be"},
        {"phases:\n  - name: a\n    rules: [{layer: b}]", "text:4:13: the rule has no precision"},
        {"phases:\n  - name: a\n    phases: []", "text:4:5: unknown key of a phase"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char yaml[512];
        mixt_policy *policy;
        snprintf(yaml, sizeof yaml, "default: bf16\n%s\n", wrong[i].phases);
        assert_int_equal(mixt_policy_parse(yaml, "text", &policy), MIXT_ERROR_CONFIG);
        assert_null(policy);
        if (!strstr(mixt_error_text(), wrong[i].text))
            fail_msg("%s: expected '%s'", mixt_error_text(), wrong[i].text);
    }
}

/* ---- runs ---- */

enum { STEPS = 14, SMALL = 64 << 10 };

static const char policy_text[] = "default: bf16\nphases:\n"
                                  "  - name: warm\n    until: 25%\n    default: fp32\n    clip: 0.5\n"
                                  "  - name: half\n    until: 9\n    default: fp16\n    scale_init: 512\n"
                                  "  - name: calm\n";

static mixt_config *config_of(const char *out)
{
    mixt_config *config = settings_new();
    settings_add(config, "model=mlp net.hidden=[32] threads=1 data.kind=digits data.limit=512 train.batch=32");
    settings_add(config, "train.epochs=0 train.steps=%d train.checkpoint_every=1", STEPS);
    settings_add(config, "out=%s precision=%s", temp_path(out), temp_path("p.yaml"));
    return config;
}

typedef struct seen {
    mixt_dtype formats[STEPS + 1];
    double scales[STEPS + 1], losses[STEPS + 1];
    int64_t stop; // after this update; 0: at the end
} seen;

static mixt_status look(void *user, mixt_run *run, const mixt_event *event)
{
    seen *s = user;
    if (event->kind != MIXT_EVENT_STEP)
        return MIXT_OK;
    mixt_policy_default(mixt_trainer_policy(mixt_run_trainer(run)), &s->formats[event->step->step], NULL);
    s->scales[event->step->step] = event->step->scale;
    s->losses[event->step->step] = event->step->loss;
    if (event->step->step == s->stop)
        mixt_run_ask_stop(run);
    return MIXT_OK;
}

static char *file_text(const char *run, const char *name)
{
    char path[256], *text = NULL;
    size_t size = 0, got;
    snprintf(path, sizeof path, "%s/%s", run, name);
    FILE *from = fopen(temp_path(path), "rb"), *to = open_memstream(&text, &size);
    assert_non_null(from);
    for (char piece[4096]; (got = fread(piece, 1, sizeof piece, from)) > 0;)
        fwrite(piece, 1, got, to);
    fclose(from);
    fclose(to);
    return text;
}

/** A step, a format and a loss for each update of a run that was never stopped. */
static void train_whole(const char *out, seen *s, mixt_run_phase phases[3])
{
    mixt_run *run;
    mixt_run_result result;
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .observer = look, .user = s);
    mixt_config *config = config_of(out);
    ok(mixt_run_open_config(config, &options, &run));
    assert_int_equal(mixt_run_phases(run), 3);
    for (int i = 0; i < 3; i++)
        ok(mixt_run_get_phase(run, i, &phases[i]));
    ok(mixt_run_plan_phase(run, 2)); // looking changes nothing
    ok(mixt_run_train(run, &result));
    assert_int_equal(result.memory.allocated, result.memory.total); // of the last phase, to the byte
    assert_int_equal(result.run_memory.step.host, result.memory.total);
    assert_true(result.run_memory.total.host <= phases[2].memory.total.host + SMALL);
    assert_true(result.run_memory.total.host + SMALL >= phases[2].memory.total.host);
    mixt_run_close(run);
    mixt_config_free(config);
}

static void runs_go_through_phases(void **unused)
{
    (void)unused;
    seen s = {0};
    mixt_run_phase phases[3];
    FILE *file = fopen(temp_path("p.yaml"), "w");
    fputs(policy_text, file);
    fclose(file);
    train_whole("whole", &s, phases);
    assert_true(phases[0].first == 1 && phases[0].last == 4); // 25% of 14
    assert_true(phases[1].first == 5 && phases[1].last == 9);
    assert_true(phases[2].first == 10 && phases[2].last == STEPS);
    for (int i = 1; i <= STEPS; i++) {
        assert_int_equal(s.formats[i], i <= 4 ? MIXT_DTYPE_FP32 : i <= 9 ? MIXT_DTYPE_FP16 : MIXT_DTYPE_BF16);
        assert_true(s.scales[i] == (i > 4 && i <= 9 ? 512 : 1));
    }
    char *rows = file_text("whole", "events.jsonl");
    const char *first = strstr(rows, "\"kind\":\"decision\""), *second = first ? strstr(first + 1, "\"kind\"") : NULL;
    assert_non_null(second);
    assert_non_null(strstr(rows, "\"from\":\"warm\",\"to\":\"half\",\"action\":\"phase\""));
    assert_non_null(strstr(second, "\"from\":\"half\",\"to\":\"calm\",\"action\":\"phase\""));
    assert_int_equal(strncmp(rows, "{\"step\":4,", 10), 0);
    free(rows);
    char *kept = file_text("whole", "policy.yaml");
    assert_non_null(strstr(kept, "until: 4\n")); // no longer a share: the run may be made longer
    free(kept);
}

/** Rows without their times: those differ. */
static char *decisions(const char *run)
{
    char *rows = file_text(run, "events.jsonl"), *to = rows;
    for (const char *at = rows; *at;) {
        if (!strncmp(at, "\"time\":", 7))
            at += strcspn(at, ",");
        *to++ = *at++;
    }
    *to = 0;
    return rows;
}

static void stopped_runs_end_with_the_same_bits(void **unused)
{
    (void)unused;
    seen all = {0};
    mixt_run_phase phases[3];
    train_whole("again", &all, phases);
    for (int64_t stop = 1; stop < STEPS; stop++) { // right before, at and behind every change
        char out[32], path[1200];
        seen s = {.stop = stop};
        mixt_run *run;
        mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .observer = look, .user = &s);
        snprintf(out, sizeof out, "stop-%lld", (long long)stop);
        mixt_config *config = config_of(out);
        ok(mixt_run_open_config(config, &options, &run));
        ok(mixt_run_train(run, NULL));
        mixt_run_close(run);
        mixt_config_free(config);
        s.stop = 0;
        snprintf(path, sizeof path, "%s", temp_path(out));
        ok(mixt_run_resume_with(path, &options, &run));
        ok(mixt_run_train(run, NULL));
        mixt_run_close(run);
        assert_memory_equal(s.losses, all.losses, sizeof all.losses);
        assert_memory_equal(s.formats, all.formats, sizeof all.formats);
        assert_memory_equal(s.scales, all.scales, sizeof all.scales);
        char *here = decisions(out), *there = decisions("again");
        assert_string_equal(here, there);
        free(here);
        free(there);
    }
}

/** Without a run there is nothing to go through. */
static void trainers_take_one_phase(void **unused)
{
    (void)unused;
    mixt_run *run;
    mixt_policy *policy = parse("default: bf16\nphases: [{name: a, until: 5, default: fp32}, {name: b}]");
    mixt_config *config = config_of("refused");
    settings_add(config, "precision=fp32");
    ok(mixt_run_open_config(config, NULL, &run));
    assert_int_equal(mixt_run_phases(run), 0);
    assert_int_equal(mixt_run_plan_phase(run, 0), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_trainer_set_policy(mixt_run_trainer(run), policy), MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_error_text(), "mixt_policy_of_phase"));
    mixt_run_close(run);
    mixt_config_free(config);
    mixt_policy_free(policy);
}

/** Phases that share a budget: in the same parts, each within it. */
static void phases_fit_together(void **unused)
{
    (void)unused;
    mixt_run *run;
    mixt_run_phase phase;
    mixt_fit fit;
    mixt_run_result result;
    size_t most = 0;
    mixt_config *config = config_of("fit");
    settings_add(config, "train.batch=256");
    ok(mixt_run_open_config(config, NULL, &run));
    for (int i = 0; i < 3; i++) {
        ok(mixt_run_get_phase(run, i, &phase));
        most = phase.memory.total.host > most ? phase.memory.total.host : most;
    }
    ok(mixt_plan_fit(run, most - 200000, &fit));
    assert_true(fit.memory <= fit.budget && fit.asked > fit.budget);
    for (int i = 0; i < 3; i++) {
        ok(mixt_run_get_phase(run, i, &phase));
        assert_true(phase.memory.total.host <= fit.budget);
        assert_true(phase.memory.total.host <= fit.memory + SMALL);
    }
    ok(mixt_run_train(run, &result));
    assert_true(result.run_memory.allocated.host <= fit.budget + SMALL);
    mixt_run_close(run);
    mixt_config_free(config);
}

/** The largest batch is the one that fits in all of them. */
static void largest_batches_fit_in_every_phase(void **unused)
{
    (void)unused;
    mixt_largest_batch all, one;
    mixt_config *config = config_of("largest");
    int64_t least = INT64_MAX;
    ok(mixt_plan_largest_batch(config, NULL, 4 << 20, &all));
    static const char *const formats[] = {"precision=fp32", "precision=fp16", "precision=bf16"};
    for (int i = 0; i < 3; i++) {
        settings_add(config, "%s", formats[i]);
        ok(mixt_plan_largest_batch(config, NULL, 4 << 20, &one));
        least = one.batch < least ? one.batch : least;
        mixt_free(one.reason);
    }
    print_message("largest batch: %lld, by phase at least %lld\n", (long long)all.batch, (long long)least);
    assert_in_range(all.batch, least - least / 4, least); // phases themselves take some memory too
    assert_non_null(strstr(all.reason, "would not fit into"));
    mixt_free(all.reason);
    assert_true(all.batch < 512 && all.memory <= 4 << 20 && all.next > 4 << 20);
    mixt_config_free(config);
}

/** Fewer bytes of activations than a phase can do with: it has the least that does, and no other has more by that. */
static void phases_recompute_as_little_as_they_must(void **unused)
{
    (void)unused;
    mixt_run *run;
    mixt_plan_info info[3];
    mixt_run_result result;
    size_t least = SIZE_MAX;
    for (int round = 0; round < 2; round++) {
        mixt_config *config = config_of("little");
        settings_add(config, "model=gpt net.hidden=[] net.layers=3 net.width=32 net.heads=2 data.kind=random");
        settings_add(config, "data.limit=0 data.path=tokens data.samples=64 data.seq=32 data.classes=50 train.batch=8");
        settings_add(config, "train.recompute=%zu", round ? least : 0);
        ok(mixt_run_open_config(config, NULL, &run));
        for (int i = 0; i < 3; i++) {
            ok(mixt_run_plan_phase(run, i));
            ok(mixt_plan_describe(mixt_run_trainer(run), &info[i]));
            mixt_memory m;
            ok(mixt_trainer_memory(mixt_run_trainer(run), &m));
            least = !round && m.activations / 5 < least ? m.activations / 5 : least;
        }
        if (round) {
            assert_true(info[0].recompute_budget > least && info[2].recompute_budget < info[0].recompute_budget);
            ok(mixt_run_train(run, &result));
            assert_int_equal(result.memory.allocated, result.memory.total);
        }
        mixt_run_close(run);
        mixt_config_free(config);
    }
}

/** A policy with phases in the place of another one, while the run trains: the phase is that of the update. */
static mixt_status ask(void *user, mixt_run *run, const mixt_event *event)
{
    if (event->kind == MIXT_EVENT_STEP && event->step->step == 2) {
        mixt_policy *policy = parse("default: fp16\nphases: [{name: a, until: 6, default: fp32}, {name: b}]");
        ok(mixt_run_ask_policy(run, policy));
        mixt_policy_free(policy);
    }
    return look(user, run, event);
}

static void phases_can_be_asked_for(void **unused)
{
    (void)unused;
    seen s = {0};
    mixt_run *run;
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .observer = ask, .user = &s);
    mixt_config *config = config_of("asked");
    settings_add(config, "precision=bf16");
    ok(mixt_run_open_config(config, &options, &run));
    ok(mixt_run_train(run, NULL));
    assert_int_equal(mixt_run_phases(run), 2);
    for (int i = 1; i <= STEPS; i++)
        assert_int_equal(s.formats[i], i <= 2 ? MIXT_DTYPE_BF16 : i <= 6 ? MIXT_DTYPE_FP32 : MIXT_DTYPE_FP16);
    mixt_run_close(run);
    mixt_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(phases_lie_on_top),
        cmocka_unit_test(ends_become_updates),
        cmocka_unit_test(phases_by_hand),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(runs_go_through_phases),
        cmocka_unit_test(stopped_runs_end_with_the_same_bits),
        cmocka_unit_test(trainers_take_one_phase),
        cmocka_unit_test(phases_fit_together),
        cmocka_unit_test(largest_batches_fit_in_every_phase),
        cmocka_unit_test(phases_recompute_as_little_as_they_must),
        cmocka_unit_test(phases_can_be_asked_for),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
