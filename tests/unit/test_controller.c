/* The controller without a trainer: figures and findings go in, decisions come out, bounded and the same for the same
 * figures; and a decision as a row, and back. */
#include "mixt/mixt.h"
#include "steer/controller.h"
#include "steer/decision.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAY_ALL = (1u << MIXT_ACTION_COUNT) - 1 };

static mixt_controller *open_with(unsigned may, int64_t retries, int64_t calm)
{
    mixt_controller_options o = MIXT_OPTIONS(mixt_controller_options);
    mixt_controller *c;
    o.may = may;
    o.retries = retries;
    o.calm = calm;
    o.cooldown = 50;
    assert_int_equal(mixt_controller_new(&o, &c), MIXT_OK);
    return c;
}

static mixt_signals healthy(int64_t step)
{
    return (mixt_signals){.step = step, .loss = 1, .grad_norm = 1, .lr = 0.1, .scale = 1, .seconds = 0.1};
}

static bool step(mixt_controller *c, const mixt_signals *s, mixt_trouble *t)
{
    return mixt_controller_step(c, s, NULL, 0, t);
}

static void rest(mixt_controller *c, int64_t updates)
{
    mixt_trouble t;
    for (int64_t i = 1; i <= updates; i++) {
        mixt_signals s = healthy(i);
        assert_false(step(c, &s, &t));
    }
}

/** A finding of nothing but signs, in a model with low formats. */
static mixt_finding signs(const char *layer)
{
    mixt_finding f = {.cause = MIXT_CAUSE_COUNT, .low = true, .clip = 0, .lr = 0.1, .batch = 17, .good = 100};
    f.layer_count = *layer != 0;
    f.layers[0] = layer;
    f.format = "fp16";
    f.scaling = "none";
    return f;
}

/** The loss is not finite; what is decided. */
static mixt_decision nan_loss(mixt_controller *c, const mixt_finding *f)
{
    mixt_trouble t;
    mixt_decision d;
    mixt_signals s = healthy(150);
    s.loss = NAN;
    s.skipped = true;
    s.overflow_layer = "fc.weight";
    assert_true(step(c, &s, &t));
    assert_true(t.forward && t.step == 150);
    assert_string_equal(t.layer, "fc.weight");
    assert_false(step(c, &s, &t)); // it waits for an answer
    assert_true(mixt_controller_decide(c, f, &d));
    assert_false(mixt_controller_decide(c, f, &d)); // one
    return d;
}

static void calm_runs_get_no_decisions(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 100);
    mixt_trouble t;
    mixt_decision d;
    int64_t decisions, rollbacks;
    for (int64_t i = 1; i <= 1000; i++) {
        mixt_signals s = healthy(i);
        s.scaling = true;
        s.scale = 1024;
        s.skipped = i % 97 == 0; // a scale that finds its place
        // what was slow, or short of memory, or once off, decides nothing
        mixt_alert alerts[3] = {{.step = i, .severity = MIXT_SEVERITY_CRITICAL, .cause = MIXT_CAUSE_STALL},
                                {.step = i, .severity = MIXT_SEVERITY_CRITICAL, .cause = MIXT_CAUSE_MEMORY_WARNING},
                                {.step = i, .severity = MIXT_SEVERITY_WARNING, .cause = MIXT_CAUSE_LOSS_ANOMALY}};
        assert_false(mixt_controller_step(c, &s, alerts, i % 50 ? 0 : 3, &t));
        assert_false(mixt_controller_lower(c, &d));
    }
    mixt_controller_counts(c, &decisions, &rollbacks);
    assert_true(!decisions && !rollbacks);
    mixt_controller_free(c);
}

static void a_state_is_good_after_calm_updates(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 100);
    mixt_trouble t;
    assert_true(mixt_controller_calm(c));
    mixt_signals s = healthy(1);
    s.skipped = s.scaling = true;
    s.scale = 1024;
    assert_false(step(c, &s, &t));
    assert_false(mixt_controller_calm(c));
    rest(c, 7);
    assert_false(mixt_controller_calm(c));
    rest(c, 1);
    assert_true(mixt_controller_calm(c));
    mixt_controller_free(c);
}

static void blamed_layers_are_raised_then_all(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 0);
    mixt_finding f = signs("fc.0");
    mixt_decision d = nan_loss(c, &f);
    assert_int_equal(d.action, MIXT_ACTION_PRECISION);
    assert_string_equal(d.layer, "fc.0");
    assert_string_equal(d.from, "fp16");
    assert_string_equal(d.to, "fp32");
    assert_true(d.back == 100 && d.step == 150 && *d.text);
    d = nan_loss(c, &f); // it is raised already
    assert_int_equal(d.action, MIXT_ACTION_PRECISION);
    assert_string_equal(d.layer, "");
    f.low = false;
    d = nan_loss(c, &f);
    assert_int_equal(d.action, MIXT_ACTION_SKIP);
    assert_string_equal(d.to, "17");
    mixt_controller_free(c);
}

static void attempts_are_bounded(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 4, 0);
    mixt_finding f = signs("");
    f.low = false;
    static const mixt_action expected[] = {MIXT_ACTION_SKIP, MIXT_ACTION_SKIP, MIXT_ACTION_CLIP, MIXT_ACTION_LR,
                                           MIXT_ACTION_STOP};
    for (int i = 0; i < 5; i++) {
        mixt_decision d = nan_loss(c, &f);
        assert_string_equal(mixt_action_name(d.action), mixt_action_name(expected[i]));
        assert_true((d.severity == MIXT_SEVERITY_CRITICAL) == (i == 4));
        rest(c, 40); // less than a cooldown
    }
    rest(c, 60); // and more: the next trouble is a new one
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_SKIP);
    mixt_controller_free(c);
}

static void only_what_is_allowed_is_done(void **state)
{
    (void)state;
    mixt_finding f = signs("fc.0");
    mixt_controller *c = open_with(1u << MIXT_ACTION_CLIP, 6, 0);
    mixt_decision d = nan_loss(c, &f);
    assert_int_equal(d.action, MIXT_ACTION_CLIP);
    assert_string_equal(d.key, "train.clip");
    assert_string_equal(d.to, "1");
    assert_int_equal(d.back, -1);
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_STOP);
    mixt_controller_free(c);
    c = open_with(0, 6, 0);
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_STOP);
    mixt_controller_free(c);
}

static void a_replay_decides_the_remedy(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 0);
    mixt_finding f = signs("fc.0");
    f.certain = true;
    f.cause = MIXT_CAUSE_HARDWARE;
    mixt_decision d = nan_loss(c, &f);
    assert_true(d.action == MIXT_ACTION_ROLLBACK && d.cause == MIXT_CAUSE_HARDWARE && d.back == 100);
    f.persists = true;
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_STOP);
    f.cause = MIXT_CAUSE_DATA;
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_SKIP); // no layer is to blame
    f.cause = MIXT_CAUSE_PRECISION;
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_PRECISION);
    mixt_controller_free(c);
}

static void the_third_fault_of_a_place_is_a_broken_machine(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 0), *again = open_with(MAY_ALL, 6, 0);
    mixt_finding f = signs("");
    f.certain = true;
    f.cause = MIXT_CAUSE_HARDWARE;
    static const char *const places[] = {"fc.0.weight[3]", "fc.1.weight[3]", "fc.0.weight[3]", "fc.1.weight[3]"};
    for (int i = 0; i < 4; i++) {
        f.place = places[i];
        assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_ROLLBACK);
        rest(c, 60); // each a trouble of its own
    }
    f.place = ""; // where it was is not known: not counted
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_ROLLBACK);
    json_t *packed = mixt__controller_pack(c);
    mixt__controller_unpack(again, packed);
    json_decref(packed);
    f.place = "fc.0.weight[3]";
    mixt_decision d = nan_loss(again, &f);
    assert_int_equal(d.action, MIXT_ACTION_STOP);
    assert_non_null(strstr(d.text, "fc.0.weight[3] was wrong 3 times in this run: this machine is broken"));
    mixt_controller_free(c);
    mixt_controller_free(again);
}

static void a_rate_that_is_too_high_is_lowered(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 0);
    mixt_finding f = signs("fc.0");
    f.certain = f.adaptive = true;
    f.cause = MIXT_CAUSE_OPTIMIZER;
    static const double calm[] = {0.025, 0, 0.2}; // not known, then no lower than it is: half of it
    static const char *const lowered[] = {"0.025", "0.05", "0.05"};
    for (int i = 0; i < 3; i++) {
        f.calm_lr = calm[i];
        mixt_decision d = nan_loss(c, &f);
        assert_true(d.action == MIXT_ACTION_LR && d.cause == MIXT_CAUSE_OPTIMIZER && d.back == 100);
        assert_string_equal(d.key, "train.lr");
        assert_string_equal(d.to, lowered[i]);
    }
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_STOP); // nothing that Adam ignores, no other format
    mixt_controller_free(c);
    c = open_with(MAY_ALL & ~(1u << MIXT_ACTION_LR), 6, 0);
    f.adaptive = false;
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_CLIP);
    mixt_controller_free(c);
}

static void a_fixed_scale_becomes_a_moving_one(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 0);
    mixt_finding f = signs("fc.0");
    mixt_trouble t;
    mixt_decision d;
    mixt_signals s = healthy(3);
    f.scaling = "1048576";
    s.skipped = true;
    assert_false(step(c, &s, &t)); // a single one has changed nothing
    assert_true(step(c, &s, &t));
    assert_true(t.cause == MIXT_CAUSE_OVERFLOW && !t.forward);
    assert_true(mixt_controller_decide(c, &f, &d));
    assert_int_equal(d.action, MIXT_ACTION_SCALE);
    assert_string_equal(d.from, "1048576");
    assert_string_equal(d.to, "dynamic");
    mixt_controller_free(c);
}

static void what_was_lowered_and_raised_stays_raised(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 200);
    mixt_finding f = signs("fc.0");
    mixt_decision d;
    nan_loss(c, &f);
    rest(c, 199);
    assert_false(mixt_controller_lower(c, &d));
    rest(c, 1);
    assert_true(mixt_controller_lower(c, &d));
    assert_string_equal(d.layer, "fc.0");
    assert_string_equal(d.to, "fp16");
    assert_int_equal(d.back, -1);
    assert_int_equal(nan_loss(c, &f).action, MIXT_ACTION_PRECISION);
    rest(c, 1000);
    assert_false(mixt_controller_lower(c, &d)); // never again
    f.certain = true;
    f.cause = MIXT_CAUSE_PRECISION;
    f.layers[0] = "fc.1";
    assert_string_equal(nan_loss(c, &f).layer, "fc.1");
    rest(c, 1000);
    assert_false(mixt_controller_lower(c, &d)); // a replay blamed it
    mixt_controller_free(c);
}

static void a_loss_that_stays_off_is_trouble(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 0);
    mixt_trouble t;
    mixt_signals s = healthy(9);
    mixt_alert alert = {.step = 9, .severity = MIXT_SEVERITY_CRITICAL, .cause = MIXT_CAUSE_LOSS_ANOMALY, .text = "off"};
    assert_true(mixt_controller_step(c, &s, &alert, 1, &t));
    assert_string_equal(t.text, "off");
    assert_false(mixt_controller_calm(c));
    mixt_controller_free(c);
}

static void what_a_look_confirms_is_decided(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 0);
    mixt_finding f = signs("fc.0");
    mixt_trouble t = {.step = 9, .cause = MIXT_CAUSE_LOSS_ANOMALY, .text = "a spike"};
    mixt_decision d;
    assert_false(mixt_controller_decide(c, &f, &d)); // nothing was reported
    f.certain = true;
    f.cause = MIXT_CAUSE_HARDWARE;
    mixt_controller_report(c, &t);
    assert_true(mixt_controller_decide(c, &f, &d));
    assert_true(d.action == MIXT_ACTION_ROLLBACK && d.step == 9);
    mixt_controller_free(c);
}

static mixt_decision a_spike(mixt_controller *c, const mixt_finding *f)
{
    mixt_trouble t = {.step = 9, .cause = MIXT_CAUSE_LOSS_ANOMALY, .text = "a spike"};
    mixt_decision d;
    mixt_controller_report(c, &t);
    assert_true(mixt_controller_decide(c, f, &d));
    return d;
}

static void bad_data_goes_and_the_run_goes_on(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 2, 0);
    mixt_finding f = signs("fc.0");
    mixt_signals s = healthy(10);
    mixt_trouble t;
    f.certain = f.has_sample = true;
    f.cause = MIXT_CAUSE_DATA;
    for (f.sample = 0; f.sample < 20; f.sample++) { // which is no attempt
        mixt_decision d = a_spike(c, &f);
        assert_true(d.action == MIXT_ACTION_SKIP && d.back == 100 && atoi(d.to) == f.sample);
        assert_string_equal(d.key, "sample");
    }
    f.has_sample = false;
    for (int i = 0; i < 32; i++) {
        mixt_decision d = a_spike(c, &f);
        assert_int_equal(d.action, MIXT_ACTION_SKIP);
        assert_true(!*d.key && !strcmp(d.to, "17"));
    }
    assert_int_equal(a_spike(c, &f).action, MIXT_ACTION_NONE); // no other format, no stop
    mixt_alert alert = {.severity = MIXT_SEVERITY_CRITICAL, .cause = MIXT_CAUSE_LOSS_ANOMALY};
    assert_false(mixt_controller_step(c, &s, &alert, 1, &t)); // it is known
    s.loss = NAN;
    assert_true(mixt_controller_step(c, &s, NULL, 0, &t));
    mixt_controller_free(c);

    c = open_with(MAY_ALL, 4, 0);
    f = signs("fc.0");
    f.replayed = true; // FP32 is no better
    static const mixt_action expected[] = {MIXT_ACTION_SKIP, MIXT_ACTION_SKIP, MIXT_ACTION_CLIP, MIXT_ACTION_NONE};
    for (int i = 0; i < 4; i++)
        assert_int_equal(a_spike(c, &f).action, expected[i]);
    mixt_controller_free(c);
}

static void its_memory_is_found_again(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 4, 200), *again = open_with(MAY_ALL, 4, 200);
    mixt_finding f = signs("fc.0");
    nan_loss(c, &f);
    rest(c, 30);
    json_t *packed = mixt__controller_pack(c);
    mixt__controller_unpack(again, packed);
    json_t *twice = mixt__controller_pack(again);
    assert_true(json_equal(packed, twice));
    json_decref(packed);
    json_decref(twice);
    for (int i = 0; i < 5; i++) { // the same from here on
        mixt_decision a = nan_loss(c, &f), b = nan_loss(again, &f);
        assert_true(a.action == b.action && !strcmp(a.to, b.to) && !strcmp(a.text, b.text));
    }
    mixt_controller_free(c);
    mixt_controller_free(again);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    mixt_controller_options o = MIXT_OPTIONS(mixt_controller_options);
    mixt_controller *c;
    o.retries = 0;
    assert_int_equal(mixt_controller_new(&o, &c), MIXT_ERROR_ARGUMENT);
    assert_null(c);
    mixt_controller_free(NULL);
    assert_false(mixt_controller_calm(NULL));
}

/* ---- rows ---- */

static void a_row_reads_back(void **state)
{
    (void)state;
    mixt_decision d = {.step = 150, .back = 100, .action = MIXT_ACTION_CLIP, .severity = MIXT_SEVERITY_WARNING}, again;
    bool found;
    d.cause = MIXT_CAUSE_DATA;
    d.key = "train.clip";
    d.from = "0";
    d.to = "1";
    d.text = "why";
    d.policy = "default: fp32\n";
    json_t *row = mixt__decision_row(&d, 2.5);
    assert_string_equal(json_string_value(json_object_get(row, "kind")), "decision");
    assert_int_equal(mixt__decision_read(row, &again, &found), MIXT_OK);
    assert_true(found && again.step == 150 && again.back == 100 && again.action == d.action && again.cause == d.cause);
    assert_true(!strcmp(again.key, d.key) && !strcmp(again.to, "1") && !strcmp(again.policy, d.policy));
    mixt__decision_free(&again);
    json_object_set_new(row, "action", json_string("dance"));
    assert_int_equal(mixt__decision_read(row, &again, &found), MIXT_ERROR_FORMAT);
    json_object_set_new(row, "kind", json_string("alert"));
    assert_int_equal(mixt__decision_read(row, &again, &found), MIXT_OK);
    assert_false(found);
    json_decref(row);
}

/** What is asked for is copied; a text that is too long is refused by name. */
static void a_copy_owns_its_texts(void **state)
{
    (void)state;
    char to[80] = "0.25";
    mixt_decision d = {.action = MIXT_ACTION_CLIP, .key = "train.clip", .to = to}, copy = {0};
    assert_int_equal(mixt__decision_copy(&d, &copy), MIXT_OK);
    to[0] = '9';
    assert_string_equal(copy.to, "0.25");
    assert_true(!*copy.layer && !*copy.from && !*copy.text && !copy.policy); // NULL is none
    mixt__decision_free(&copy);
    memset(to, '1', sizeof to - 1);
    assert_int_equal(mixt__decision_copy(&d, &copy), MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_error_text(), "to of a decision"));
}

/** A finding with nothing in it: its texts are NULL. */
static void nothing_is_known(void **state)
{
    (void)state;
    mixt_controller *c = open_with(MAY_ALL, 6, 100);
    mixt_finding f = {.cause = MIXT_CAUSE_COUNT, .batch = -1, .good = -1};
    mixt_decision d = nan_loss(c, &f);
    assert_true(d.action == MIXT_ACTION_CLIP && *d.text && !*d.layer);
    mixt_controller_free(c);
}

static void a_decision_changes_a_policy(void **state)
{
    (void)state;
    mixt_policy *now, *next;
    mixt_policy_rule rule;
    mixt_decision d = {.step = 7, .action = MIXT_ACTION_PRECISION, .cause = MIXT_CAUSE_PRECISION, .text = "it broke"};
    char *evidence;
    d.layer = "fc.0";
    d.from = "fp16";
    d.to = "fp32";
    assert_int_equal(mixt_policy_parse("default: fp16\nclip: 1\nevidence: {a: b}\n", "test", &now), MIXT_OK);
    assert_int_equal(mixt__decision_policy(&d, now, &next), MIXT_OK);
    assert_int_equal(mixt_policy_count(next), 1);
    assert_int_equal(mixt_policy_get(next, 0, &rule), MIXT_OK);
    assert_string_equal(rule.layer, "fc.0");
    assert_int_equal(rule.forward, MIXT_DTYPE_FP32);
    assert_int_equal(mixt_policy_evidence(next, &evidence), MIXT_OK);
    assert_true(strstr(evidence, "a: b") && strstr(evidence, "it broke"));
    free(evidence);
    mixt_policy_free(now);
    d.to = "fp16"; // and back: the rule is replaced
    assert_int_equal(mixt__decision_policy(&d, next, &now), MIXT_OK);
    assert_int_equal(mixt_policy_count(now), 1);
    mixt_policy_free(next);
    d.layer = "";
    d.to = "fp32";
    assert_int_equal(mixt__decision_policy(&d, now, &next), MIXT_OK);
    mixt_dtype forward;
    mixt_policy_default(next, &forward, NULL);
    assert_true(forward == MIXT_DTYPE_FP32 && !mixt_policy_count(next));
    mixt_policy_free(next);
    d.to = "fp5";
    assert_int_equal(mixt__decision_policy(&d, now, &next), MIXT_ERROR_ARGUMENT);
    assert_null(next);
    mixt_policy_free(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calm_runs_get_no_decisions),
        cmocka_unit_test(a_state_is_good_after_calm_updates),
        cmocka_unit_test(blamed_layers_are_raised_then_all),
        cmocka_unit_test(attempts_are_bounded),
        cmocka_unit_test(only_what_is_allowed_is_done),
        cmocka_unit_test(a_replay_decides_the_remedy),
        cmocka_unit_test(the_third_fault_of_a_place_is_a_broken_machine),
        cmocka_unit_test(a_rate_that_is_too_high_is_lowered),
        cmocka_unit_test(a_fixed_scale_becomes_a_moving_one),
        cmocka_unit_test(what_was_lowered_and_raised_stays_raised),
        cmocka_unit_test(a_loss_that_stays_off_is_trouble),
        cmocka_unit_test(what_a_look_confirms_is_decided),
        cmocka_unit_test(bad_data_goes_and_the_run_goes_on),
        cmocka_unit_test(its_memory_is_found_again),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(a_row_reads_back),
        cmocka_unit_test(a_copy_owns_its_texts),
        cmocka_unit_test(nothing_is_known),
        cmocka_unit_test(a_decision_changes_a_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
