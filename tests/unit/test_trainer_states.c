/* What a trainer is after a change that was refused, after one that was made, and in the child of a fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/** A policy that this model has no layer for: the change of precision is refused after everything was read. */
static void a_refused_precision_changes_nothing(void **state)
{
    (void)state;
    temp_folder_make();
    const char *path = temp_path("policy");
    const char rule[] = "default: bf16\nrules:\n  - {layer: nowhere, precision: fp32}\n";
    assert_true(temp_write(path, rule, sizeof rule - 1));
    fixture f = start();
    static float input[BATCH * PIXELS];
    int32_t target[BATCH] = {0};
    mixt_memory before, after;
    for (int steps = 0; steps < 2; steps++) {
        assert_int_equal(mixt_trainer_memory(f.trainer, &before), MIXT_OK);
        assert_int_equal(mixt_trainer_set_precision(f.trainer, path), MIXT_ERROR_CONFIG);
        assert_non_null(strstr(mixt_error_text(), "matches nothing"));
        assert_int_equal(mixt_trainer_memory(f.trainer, &after), MIXT_OK);
        assert_memory_equal(&after, &before, sizeof after);
        assert_int_equal(mixt_trainer_step_on(f.trainer, input, target, NULL), MIXT_OK);
    }
    mixt_close(f.context);
    temp_folder_remove();
}

static void memory_is_measured_again(void **state)
{
    (void)state;
    const char *const precisions[] = {"bf16", "fp16", "fp32", "bf16"};
    fixture f = start();
    mixt_memory memory;
    assert_int_equal(mixt_trainer_step(f.trainer, f.data, NULL), MIXT_OK);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mixt_trainer_set_precision(f.trainer, precisions[i]), MIXT_OK);
        assert_int_equal(mixt_trainer_memory(f.trainer, &memory), MIXT_OK);
        assert_int_equal(memory.allocated, memory.total);
    }
    mixt_close(f.context);
}

static mixt_value one_value(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", x, .features = 1);
}

/** A trainer compiled for a shape takes data of that shape and what a trainer of that data has saved. */
static void compiled_for_a_shape_is_compiled_for_its_data(void **state)
{
    (void)state;
    const char rows[] = "0.5,1.5,0\n1,2,1\n3,4,0\n5,6,1\n7,8,0\n9,1,1\n2,2,0\n4,4,1\n";
    char command[300];
    temp_folder_make();
    const char *path = temp_path("rows.csv"), *checkpoint = temp_path("saved");
    assert_true(temp_write(path, rows, sizeof rows - 1));
    fixture f = start();
    mixt_data *data = mixt_data_new(f.context, path, .split = "all", .target = MIXT_TARGET_VALUES);
    const mixt_loss losses[] = {MIXT_LOSS_MSE, MIXT_LOSS_BCE};
    mixt_sample_shape shape = {MIXT_DTYPE_FP32, 1, {2}, 1};
    for (int i = 0; i < 2; i++) {
        mixt_model *model = mixt_model_new(f.context, one_value, losses[i]);
        mixt_trainer *by_data = mixt_trainer_new(model, .batch = 4), *by_shape = mixt_trainer_new(model, .batch = 4);
        assert_int_equal(mixt_trainer_step(by_data, data, NULL), MIXT_OK);
        assert_int_equal(mixt_trainer_checkpoint(by_data, checkpoint), MIXT_OK);
        assert_int_equal(mixt_trainer_compile_for(by_shape, &shape), MIXT_OK);
        assert_int_equal(mixt_trainer_restore(by_shape, checkpoint), MIXT_OK);
        assert_int_equal(mixt_trainer_step(by_shape, data, NULL), MIXT_OK);
    }
    assert_string_equal(mixt_error(f.context), "");
    mixt_close(f.context);
    snprintf(command, sizeof command, "rm -r %s", temp_folder);
    assert_int_equal(system(command), 0);
}

static mixt_value two_values(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", mixt_flatten(b, x), .features = 2);
}

static void misfits_name_inputs_or_targets(void **state)
{
    (void)state;
    fixture f = start();
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(f.context, two_values, MIXT_LOSS_MSE), .batch = BATCH);
    mixt_sample_shape shape = {MIXT_DTYPE_FP32, 3, {28, 28, 1}, 2};
    assert_int_equal(mixt_trainer_compile_for(t, &shape), MIXT_OK);
    assert_int_equal(mixt_trainer_step(t, f.data, NULL), MIXT_ERROR_SHAPE);
    assert_string_equal(mixt_error_text(),
                        "the data's batches have targets int32 (8), the model is compiled for fp32 (8, 2)");
    mixt_data *tokens = mixt_data_new(f.context, "random:tokens", .seq = 8, .classes = 16, .samples = 64);
    assert_int_equal(mixt_trainer_step(t, tokens, NULL), MIXT_ERROR_SHAPE);
    assert_string_equal(mixt_error_text(),
                        "the data's batches have inputs int32 (8, 8), the model is compiled for fp32 (8, 28, 28, 1)");
    mixt_close(f.context);
}

/** What a child does with the trainer it inherited; 0: all as it should be. The alarm ends what waits for ever. */
static int use_inherited(fixture *f)
{
    static float input[BATCH * PIXELS];
    int32_t target[BATCH] = {0};
    alarm(10);
    if (mixt_trainer_step(f->trainer, f->data, NULL) != MIXT_ERROR_STATE || !strstr(mixt_error_text(), "forked"))
        return 1;
    if (mixt_trainer_step_on(f->trainer, input, target, NULL) != MIXT_OK) // the caller's batch needs no thread
        return 2;
    mixt_data *own = mixt_data_new(f->context, "digits:", .samples = 64);
    if (mixt_trainer_step(f->trainer, own, NULL) != MIXT_OK)
        return 3;
    mixt_close(f->context);
    return 0;
}

static void a_child_refuses_the_parents_batches(void **state)
{
    (void)state;
    fixture f = start();
    assert_int_equal(mixt_trainer_step(f.trainer, f.data, NULL), MIXT_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(use_inherited(&f));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(mixt_trainer_step(f.trainer, f.data, NULL), MIXT_OK);
    mixt_close(f.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_precision_changes_nothing),
        cmocka_unit_test(memory_is_measured_again),
        cmocka_unit_test(compiled_for_a_shape_is_compiled_for_its_data),
        cmocka_unit_test(a_child_refuses_the_parents_batches),
        cmocka_unit_test(misfits_name_inputs_or_targets),
    };
    return cmocka_run_group_tests_name("trainer states", tests, NULL, NULL);
}
