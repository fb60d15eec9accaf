/* A small trainer for tests of the public functions' arguments, and what is expected of a call that is refused. */
#ifndef MIXT_TESTS_API_FIXTURE_H
#define MIXT_TESTS_API_FIXTURE_H

#include "mixt/mixt.h"

#include <string.h>

enum { BATCH = 8, PIXELS = 784, CLASSES = 10 };

static inline mixt_value net(mixt_builder *b, mixt_value x) // (N, 28, 28, 1)
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

static inline fixture start(void)
{
    fixture f = {.context = mixt_open(.device = "cpu", .threads = 2)};
    f.data = mixt_data_new(f.context, "digits:", .samples = 64);
    f.model = mixt_model_new(f.context, net, MIXT_LOSS_CROSS_ENTROPY);
    f.trainer = mixt_trainer_new(f.model, .batch = BATCH);
    assert_int_equal(mixt_trainer_compile(f.trainer, f.data), MIXT_OK);
    assert_string_equal(mixt_error(f.context), "");
    return f;
}

/** The call fails with `status`, and the context of `f` says what the thread's error text says. */
static inline void expect_noted(fixture *f, mixt_status got, mixt_status status)
{
    assert_int_equal(got, status);
    assert_true(*mixt_error(f->context));
    assert_string_equal(mixt_error(f->context), mixt_error_text());
    mixt_close(f->context);
    *f = start();
}

/** The call was refused for its arguments, and the text names them. */
static inline void expect_refused(mixt_status got, const char *words)
{
    if (got != MIXT_ERROR_ARGUMENT || !strstr(mixt_error_text(), words))
        fail_msg("expected \"%s\", got %d: \"%s\"", words, (int)got, mixt_error_text());
}

#endif
