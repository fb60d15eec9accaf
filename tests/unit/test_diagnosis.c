/* Diagnosis by replay: the ring of good states, and the right finding for faults that are injected. */
#include <setjmp.h>
#include "train/trainer_inside.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/sanitized.h"
#include "../support/fault_trial.h"

/** Two trainers at the same update have the same bits. */
static void same_state(const mixt__trainer *a, const mixt__trainer *b)
{
    size_t bytes = (size_t)a->params->total * sizeof(float);
    assert_int_equal(a->attempts, b->attempts);
    assert_int_equal(a->next_batch, b->next_batch);
    assert_memory_equal(mixt__params_weights(a->params), mixt__params_weights(b->params), bytes);
    assert_memory_equal(mixt__role_fp32(&a->params->roles[MIXT_PARAM_MOMENT1]),
                        mixt__role_fp32(&b->params->roles[MIXT_PARAM_MOMENT1]), bytes);
    assert_memory_equal(mixt__role_fp32(&a->params->roles[MIXT_PARAM_MOMENT2]),
                        mixt__role_fp32(&b->params->roles[MIXT_PARAM_MOMENT2]), bytes);
    assert_memory_equal(a->control, b->control, sizeof *a->control);
}

static void update(trial_state *s, int64_t until)
{
    bool wrong;
    mixt_cause cause;
    while (s->e.trainer->inner->attempts < until)
        assert_int_equal(trial_update(s, &wrong, &cause), MIXT_OK);
}

/** A diagnosis of a healthy run finds nothing, and training goes on as if it had never been asked for. */
static void leaves_no_trace(void **state)
{
    static const char *const precisions[] = {"fp16", "bf16", "fp32"};
    (void)state;
    for (int i = 0; i < 3; i += CASE_STRIDE) {
        trial t = {.model = &trial_models[i % 2], .kind = MIXT_FAULT_MEMORY, .step = 90000, .seed = 4};
        t.precision = precisions[i];
        trial_state asked = {0}, plain = {0};
        assert_int_equal(trial_open(&t, &asked), MIXT_OK);
        assert_int_equal(trial_open(&t, &plain), MIXT_OK);
        update(&asked, 60);
        update(&plain, 60);
        mixt__diagnose_request r = {.ring = &asked.ring, .data = asked.e.train, .symptom = MIXT_CAUSE_LOSS_ANOMALY};
        mixt_diagnosis d;
        mixt__diagnosis_words words;
        r.words = &words;
        r.stay = true;
        assert_int_equal(mixt__diagnose(&r, &d), MIXT_OK);
        assert_int_equal(d.kind, MIXT_DIAGNOSIS_UNKNOWN);
        same_state(asked.e.trainer->inner, plain.e.trainer->inner);
        update(&asked, 70);
        update(&plain, 70);
        same_state(asked.e.trainer->inner, plain.e.trainer->inner);
        trial_close(&asked);
        trial_close(&plain);
    }
}

/** The ring keeps two states and goes back to either; what it holds is what it said it would. */
static void goes_back(void **state)
{
    trial t = {.model = &trial_models[0], .kind = MIXT_FAULT_MEMORY, .step = 90000, .seed = 2, .precision = "bf16"};
    trial_state s = {0}, plain = {0};
    (void)state;
    assert_int_equal(trial_open(&t, &s), MIXT_OK);
    assert_int_equal(trial_open(&t, &plain), MIXT_OK);
    assert_int_equal(mixt__snapshots_before(&s.ring, 1), 0);
    update(&s, 230);
    assert_int_equal(mixt__snapshots_before(&s.ring, 230), 200);
    assert_int_equal(mixt__snapshots_before(&s.ring, 200), 100);
    update(&plain, 100);
    assert_int_equal(mixt__snapshots_go_back(&s.ring, 100), MIXT_OK);
    same_state(s.e.trainer->inner, plain.e.trainer->inner);
    assert_int_equal(mixt__snapshots_before(&s.ring, 230), 100);
    assert_int_equal(s.ring.trace.first + s.ring.trace.count, 101);
    update(&s, 130);
    update(&plain, 130);
    same_state(s.e.trainer->inner, plain.e.trainer->inner);
    trial_close(&s);
    trial_close(&plain);
}

static void expect_right(trial t)
{
    trial_run(&t);
    if (!trial_right(&t)) {
        trial_print(&t);
        fail_msg("%s: wrong diagnosis", mixt__fault_name(t.kind));
    }
    assert_true(t.kind == MIXT_FAULT_MEMORY || t.d.good < t.step);
    assert_true(t.step - t.d.good <= 2 * TRIAL_EVERY);
}

/** A kind of each sort in a net of each sort; all kinds are in tests/cli/diagnosis.sh, many trials in tests/slow. */
static void finds_each_sort(void **state)
{
    static const struct {
        mixt__fault_kind kind;
        int model;
        const char *layer;
    } trials[] = {{MIXT_FAULT_OVERFLOW, 3, "h.0.mlp.fc"},
                  {MIXT_FAULT_DEAD_LAYER, 2, "rnn.0"},
                  {MIXT_FAULT_LABEL, 3, NULL},
                  {MIXT_FAULT_FLIP_WEIGHT, 1, "conv2"}};
    (void)state;
    for (size_t i = CASE_STRIDE / 2; i < sizeof trials / sizeof trials[0]; i += CASE_STRIDE) {
        trial t = {.kind = trials[i].kind, .model = &trial_models[trials[i].model], .layer = trials[i].layer};
        t.step = 131 + (int64_t)i;
        t.seed = 3;
        t.precision = "fp16";
        expect_right(t);
    }
}

/** A weight that flips right before a state is kept is in that state: the one before is the good one. */
static void warns_of_its_states(void **state)
{
    trial t = {.model = &trial_models[0], .kind = MIXT_FAULT_FLIP_WEIGHT, .layer = "fc.1", .seed = 3};
    (void)state;
    t.step = 2 * TRIAL_EVERY;
    t.precision = "fp16";
    trial_run(&t);
    assert_true(trial_right(&t));
    assert_int_equal(t.d.step, 2 * TRIAL_EVERY);
    assert_int_equal(t.d.good, TRIAL_EVERY);
}

/** A flip that comes again in each replay is told from one that happened once. */
static void tells_what_persists(void **state)
{
    (void)state;
    trial t = {.model = &trial_models[0], .kind = MIXT_FAULT_FLIP_ACTIVATION, .step = 130, .layer = "fc.1", .seed = 5};
    t.precision = "bf16";
    t.always = true;
    expect_right(t);
}

/** A list that cannot be meant is refused with the word that is wrong. */
static void refuses_lists(void **state)
{
    static const struct {
        const char *list, *text;
    } bad[] = {{"nan@5", "no kind 'nan'"},
               {"lr", "'lr': write kind@step"},
               {"lr@0", "the update '0'"},
               {"lr@5x", "the update '5x'"},
               {"lr@5, overflow@6", "'overflow@6': name the layer"},
               {"memory@5:fc", "memory is not of a layer"},
               {"overflow@5:fc:always", "':always' is for flips"},
               {"flip_weight@5:fc:often", "':often'"},
               {"flip_weight@5:", "a layer's name has 1 to"}};
    mixt__faults faults;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(mixt__faults_parse(bad[i].list, &faults), MIXT_ERROR_CONFIG);
        if (!strstr(mixt_error_text(), bad[i].text))
            fail_msg("%s: %s", bad[i].list, mixt_error_text());
    }
    assert_int_equal(mixt__faults_parse("lr@3, flip_weight@9:h.0.mlp:always", &faults), MIXT_OK);
    assert_int_equal(faults.count, 2);
    assert_true(faults.items[1].always);
    assert_string_equal(faults.items[1].layer, "h.0.mlp");
    assert_int_equal(mixt__faults_last("lr@3, flip_weight@9:h.0.mlp:always"), 9);
    assert_int_equal(mixt__faults_last(""), 0);
}

/** The row of events.jsonl has the names that scripts rely on. */
static void makes_rows(void **state)
{
    mixt_diagnosis d = {.kind = MIXT_DIAGNOSIS_BATCH, .cause = MIXT_CAUSE_DATA, .step = 7, .good = 5, .sample = 11};
    (void)state;
    d.value = NAN;
    d.op = d.parameter = d.text = "";
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS; i++)
        d.layers[i] = "";
    json_t *row = mixt__diagnosis_row(&d, 9, 1.5);
    assert_int_equal(json_integer_value(json_object_get(row, "step")), 9);
    assert_string_equal(json_string_value(json_object_get(row, "kind")), "diagnosis");
    assert_string_equal(json_string_value(json_object_get(row, "cause")), "data");
    assert_string_equal(json_string_value(json_object_get(row, "severity")), "critical");
    assert_true(json_is_null(json_object_get(row, "layer")));
    const json_t *evidence = json_object_get(row, "evidence");
    assert_string_equal(json_string_value(json_object_get(evidence, "found")), "batch");
    assert_int_equal(json_integer_value(json_object_get(evidence, "sample")), 11);
    assert_true(json_is_null(json_object_get(evidence, "loss")));
    json_decref(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_lists),       cmocka_unit_test(makes_rows),      cmocka_unit_test(goes_back),
        cmocka_unit_test(leaves_no_trace),     cmocka_unit_test(finds_each_sort), cmocka_unit_test(warns_of_its_states),
        cmocka_unit_test(tells_what_persists),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
