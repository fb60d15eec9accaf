/* A step looked into: the op that made the first bad number is found wherever it was injected, and looking changes no
 * bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const settings[] = {"model=mlp",           "net.hidden=16,16,16",
                                       "net.norm=none",       "data.kind=random",
                                       "data.shape=12",       "data.classes=4",
                                       "data.samples=64",     "device=cpu",
                                       "threads=1",           "train.batch=16",
                                       "precision=fp16",      "train.lr=0.01",
                                       "train.optimizer=sgd", NULL};

static mixt_run *open_run(mixt_data **data)
{
    mixt_config *config;
    mixt_run *run;
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    if (mixt_run_open_config(config, MIXT_OPTIONS_AT(mixt_run_options, .settings = settings), &run) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    mixt_config_free(config);
    assert_int_equal(mixt_run_data(run, "train", data), MIXT_OK);
    mixt_step step;
    assert_int_equal(mixt_trainer_step(mixt_run_trainer(run), *data, &step), MIXT_OK); // weights are there
    return run;
}

/** Multiplies a parameter's numbers, then adds. Returns how many it has. */
static int64_t change(mixt_trainer *t, const char *name, float factor, float plus)
{
    mixt_param_info info;
    for (int64_t p = 0; p < mixt_trainer_param_count(t); p++) {
        assert_int_equal(mixt_trainer_param(t, p, &info), MIXT_OK);
        if (strcmp(info.name, name))
            continue;
        float values[4096];
        assert_true(info.count <= 4096);
        assert_int_equal(mixt_trainer_param_get(t, p, values), MIXT_OK);
        for (int64_t i = 0; i < info.count; i++)
            values[i] = values[i] * factor + plus;
        assert_int_equal(mixt_trainer_param_set(t, p, values), MIXT_OK);
        return info.count;
    }
    fail_msg("no parameter %s", name);
    return 0;
}

static mixt_debug *look(mixt_run *run, mixt_data *data)
{
    mixt_debug *d;
    if (mixt_debug_step(mixt_run_trainer(run), data, &d) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return d;
}

static void test_healthy(void **state)
{
    (void)state;
    mixt_data *data, *other_data;
    mixt_run *run = open_run(&data), *other = open_run(&other_data);
    mixt_debug *d = look(run, data);
    mixt_debug_info info = mixt_debug_describe(d);
    mixt_step step;
    assert_int_equal(mixt_trainer_step(mixt_run_trainer(other), other_data, &step), MIXT_OK);
    assert_true(info.step.loss == step.loss && info.step.grad_norm == step.grad_norm);
    assert_int_equal(info.step.step, 2);
    assert_int_equal(info.first_nonfinite, -1);
    assert_int_equal(info.issues, 0);
    assert_true(info.values >= 12);
    int64_t gradients = 0;
    for (int64_t i = 0; i < info.values; i++) {
        const mixt_debug_value *v = mixt_debug_value_at(d, i);
        assert_true(v->count > 0 && v->amax >= fabs(v->mean) && v->min <= v->max &&
                    v->amax == fmax(fabs(v->min), fabs(v->max)));
        gradients += *v->name != '\0';
    }
    for (int64_t p = 0; p < mixt_trainer_param_count(mixt_run_trainer(run)); p++) { // the same update
        float a[4096], b[4096];
        mixt_param_info param;
        assert_int_equal(mixt_trainer_param(mixt_run_trainer(run), p, &param), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(mixt_run_trainer(run), p, a), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(mixt_run_trainer(other), p, b), MIXT_OK);
        assert_memory_equal(a, b, (size_t)param.count * sizeof *a);
    }
    assert_int_equal(gradients, mixt_trainer_param_count(mixt_run_trainer(run)));
    assert_null(mixt_debug_value_at(d, info.values));
    assert_null(mixt_debug_issue_at(d, 0));
    mixt_debug_free(d);
    mixt_run_close(run);
    mixt_run_close(other);
}

/** Large weights of one layer overflow FP16 there, and all layers behind it only pass that on. The last one's results
 *  are FP32; what it sends back is not. */
static void test_overflow(void **state)
{
    (void)state;
    const char *const layers[] = {"fc.0", "fc.1", "fc.2", "fc.3"};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        mixt_data *data;
        mixt_run *run = open_run(&data);
        char name[64];
        snprintf(name, sizeof name, "%s.weight", layers[i]);
        change(mixt_run_trainer(run), name, 0, 60000);
        mixt_debug *d = look(run, data);
        mixt_debug_info info = mixt_debug_describe(d);
        const mixt_debug_value *v = mixt_debug_value_at(d, info.first_nonfinite);
        if (!v || strcmp(v->layer, layers[i]) || v->backward != (i == 3))
            fail_msg("injected in %s: found %s", layers[i], v ? v->layer : "nothing");
        assert_string_equal(info.source, "");
        assert_int_equal(mixt_debug_issue_at(d, 0)->kind, MIXT_DEBUG_NONFINITE);
        assert_non_null(strstr(mixt_debug_issue_at(d, 0)->text, layers[i]));
        mixt_debug_free(d);
        mixt_run_close(run);
    }
}

static void test_bad_parameter(void **state)
{
    (void)state;
    mixt_data *data;
    mixt_run *run = open_run(&data);
    change(mixt_run_trainer(run), "fc.2.bias", 1, NAN);
    mixt_debug *d = look(run, data);
    mixt_debug_info info = mixt_debug_describe(d);
    assert_string_equal(info.source, "fc.2.bias");
    assert_string_equal(mixt_debug_value_at(d, info.first_nonfinite)->layer, "fc.2");
    assert_true(info.step.skipped);
    mixt_debug_free(d);
    mixt_run_close(run);
}

/** Units that are never above 0: nothing before them learns. */
static void test_dead_layer(void **state)
{
    (void)state;
    mixt_data *data;
    mixt_run *run = open_run(&data);
    change(mixt_run_trainer(run), "fc.1.bias", 0, -1000);
    mixt_debug *d = look(run, data);
    bool found = false;
    for (int64_t i = 0; i < mixt_debug_describe(d).issues; i++)
        found = found || (mixt_debug_issue_at(d, i)->kind == MIXT_DEBUG_GRADIENT &&
                          strstr(mixt_debug_issue_at(d, i)->text, "fc.0.weight"));
    assert_true(found);
    mixt_debug_free(d);
    mixt_run_close(run);
}

static void test_misuse(void **state)
{
    (void)state;
    mixt_data *data;
    mixt_run *run = open_run(&data);
    mixt_debug *d = (mixt_debug *)1;
    assert_int_equal(mixt_debug_step(NULL, data, &d), MIXT_ERROR_ARGUMENT);
    assert_null(d);
    assert_int_not_equal(mixt_debug_step(mixt_run_trainer(run), NULL, &d), MIXT_OK);
    assert_int_equal(mixt_debug_step(mixt_run_trainer(run), data, NULL), MIXT_ERROR_ARGUMENT);
    mixt_debug_free(NULL);
    assert_int_equal(mixt_debug_describe(NULL).values, 0);
    assert_int_equal(mixt_trainer_steps(mixt_run_trainer(run)), 1);
    d = look(run, data);
    mixt_run_close(run); // it does not need the run any more
    assert_true(mixt_debug_describe(d).values > 0);
    mixt_debug_free(d);
    mixt_debug_free(d); // said, not crashed
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy),    cmocka_unit_test(test_overflow), cmocka_unit_test(test_bad_parameter),
        cmocka_unit_test(test_dead_layer), cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
