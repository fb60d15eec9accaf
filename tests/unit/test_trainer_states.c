/* What a trainer is after a change that was refused, and after one that was made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/** A policy that this model has no layer for: the change of precision is refused after everything was read. */
static void a_refused_precision_changes_nothing(void **state)
{
    (void)state;
    char path[] = "/tmp/mixt-policy-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    write_file(path, "default: bf16\nrules:\n  - {layer: nowhere, precision: fp32}\n");
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
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_precision_changes_nothing),
    };
    return cmocka_run_group_tests_name("trainer states", tests, NULL, NULL);
}
