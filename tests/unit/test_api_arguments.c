/* What a public function does with arguments that cannot be meant: it fails with a text that names function and
 * argument, its context remembers the first failure, and nothing else changes.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"

#include <string.h>

enum { BATCH = 8, PIXELS = 784, CLASSES = 10 };

static mixt_value net(mixt_builder *b, mixt_value x) // (N, 28, 28, 1)
{
    return mixt_linear(b, "fc", mixt_flatten(b, x), .features = CLASSES);
}

/** A context with data, a model, and a trainer; compiled, but without a step. */
typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_model *model;
    mixt_trainer *trainer;
} fixture;

static fixture start(void)
{
    fixture f = {.context = mixt_open(.device = "cpu", .threads = 2)};
    f.data = mixt_data_new(f.context, "digits:", .samples = 64);
    f.model = mixt_model_new(f.context, net, MIXT_LOSS_CROSS_ENTROPY);
    f.trainer = mixt_trainer_new(f.model, .batch = BATCH);
    assert_int_equal(mixt_trainer_compile(f.trainer, f.data), MIXT_OK);
    assert_string_equal(mixt_error(f.context), "");
    return f;
}

/* ---- the context's first failure ---- */

/** The call fails with `status`, and the context of `f` says what the thread's error text says. */
static void expect_noted(fixture *f, mixt_status got, mixt_status status)
{
    assert_int_equal(got, status);
    assert_true(*mixt_error(f->context));
    assert_string_equal(mixt_error(f->context), mixt_error_text());
    mixt_close(f->context);
    *f = start();
}

static void failures_are_noted(void **state)
{
    (void)state;
    fixture f = start();
    mixt_param_info info;
    mixt_memory memory;
    static float values[CLASSES * PIXELS];
    expect_noted(&f, mixt_trainer_save(f.trainer, "/tmp/never.safetensors"), MIXT_ERROR_STATE);
    expect_noted(&f, mixt_trainer_param(f.trainer, 2, &info), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_trainer_param_get(f.trainer, 0, values), MIXT_ERROR_STATE);
    expect_noted(&f, mixt_trainer_grad_get(f.trainer, 0, values), MIXT_ERROR_STATE);
    expect_noted(&f, mixt_trainer_param_set(f.trainer, -1, values), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_trainer_checkpoint(f.trainer, ""), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_trainer_restore(f.trainer, NULL), MIXT_ERROR_ARGUMENT);
    expect_noted(&f, mixt_compute(f.context, NULL, NULL, 0, NULL), MIXT_ERROR_ARGUMENT);
    mixt_trainer *unstarted = mixt_trainer_new(f.model);
    expect_noted(&f, mixt_trainer_memory(unstarted, &memory), MIXT_ERROR_STATE);
    unstarted = mixt_trainer_new(f.model);
    expect_noted(&f, mixt_trainer_load(unstarted, "/tmp/never.safetensors"), MIXT_ERROR_STATE);
    mixt_close(f.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
