/* Structs of options: what a program compiled with another version of a struct gets, and what 0 means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <mixt/mixt.h>

static mixt_value net(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", x, .features = 2);
}

typedef struct fixture {
    mixt_context *context;
    mixt_model *model;
} fixture;

static int open_all(void **state)
{
    static fixture f;
    f.context = mixt_open(.device = "cpu", .threads = 1);
    f.model = mixt_model_new(f.context, net, MIXT_LOSS_CROSS_ENTROPY);
    *state = &f;
    return f.model ? 0 : -1;
}

static int close_all(void **state)
{
    mixt_close(((fixture *)*state)->context);
    return 0;
}

static void defaults_are_those_of_the_macro(void **state)
{
    (void)state;
    mixt_trainer_options filled, made = MIXT_OPTIONS(mixt_trainer_options);
    mixt_trainer_options_default(&filled, sizeof filled);
    assert_int_equal(filled.struct_size, sizeof filled);
    assert_int_equal(filled.batch, made.batch);
    assert_string_equal(filled.optimizer, made.optimizer);
    assert_true(filled.lr == 1e-3f && filled.clip == MIXT_AUTO && filled.seed == 0);
    mixt_trainer_options_default(NULL, sizeof filled);
}

/** As an older program has it, whose struct ends behind `lr`: with a wall where its memory ends. */
static void an_older_struct_gets_defaults_for_the_rest(void **state)
{
    fixture *f = *state;
    enum { OLD = offsetof(mixt_trainer_options, momentum) };
    unsigned char *old = malloc(OLD); // a sanitizer sees a byte read or written behind it
    mixt_trainer_options_default((mixt_trainer_options *)old, OLD);
    size_t size;
    memcpy(&size, old, sizeof size);
    assert_int_equal(size, OLD);
    float lr = -1; // refused: so that what was set is seen to arrive
    memcpy(old + offsetof(mixt_trainer_options, lr), &lr, sizeof lr);
    assert_null(MIXT_MADE(mixt_trainer, mixt_trainer_new_with, f->model, (const mixt_trainer_options *)old));
    assert_non_null(strstr(mixt_error_text(), "lr"));
    lr = 0.5f;
    memcpy(old + offsetof(mixt_trainer_options, lr), &lr, sizeof lr);
    assert_non_null(MIXT_MADE(mixt_trainer, mixt_trainer_new_with, f->model,
                              (const mixt_trainer_options *)old)); // beta1 … are the defaults
    free(old);
}

static void a_newer_struct_is_taken_where_it_sets_nothing_new(void **state)
{
    fixture *f = *state;
    struct {
        mixt_trainer_options known;
        double unknown;
    } newer = {0};
    mixt_trainer_options_default(&newer.known, sizeof newer);
    assert_int_equal(newer.known.struct_size, sizeof newer);
    assert_non_null(MIXT_MADE(mixt_trainer, mixt_trainer_new_with, f->model, &newer.known));
    newer.unknown = 1;
    assert_null(MIXT_MADE(mixt_trainer, mixt_trainer_new_with, f->model, &newer.known));
    assert_non_null(strstr(mixt_error_text(), "mixt_trainer_options: sets an option that mixt " MIXT_VERSION));
}

static void what_was_not_filled_is_refused(void **state)
{
    fixture *f = *state;
    mixt_trainer_options zeros;
    memset(&zeros, 0, sizeof zeros);
    assert_null(MIXT_MADE(mixt_trainer, mixt_trainer_new_with, f->model, &zeros));
    assert_non_null(strstr(mixt_error_text(), "mixt_trainer_options: its struct_size is 0: fill it first"));
    zeros.struct_size = (size_t)-1;
    assert_null(MIXT_MADE(mixt_trainer, mixt_trainer_new_with, f->model, &zeros));
    mixt_context_options context;
    memset(&context, 0, sizeof context);
    assert_null(MIXT_MADE(mixt_context, mixt_open_with, &context));
    mixt_data *data;
    mixt_data_options reading;
    memset(&reading, 0, sizeof reading);
    assert_int_equal(mixt_data_open_with("digits:", &reading, &data), MIXT_ERROR_ARGUMENT);
    mixt_convert_options convert;
    memset(&convert, 0, sizeof convert);
    float x = 1;
    assert_int_equal(mixt_convert(&x, MIXT_DTYPE_FP32, &x, MIXT_DTYPE_FP32, 1, &convert), MIXT_ERROR_ARGUMENT);
}

/* ---- 0 is 0 ---- */

static float alpha;

static mixt_value scaled(mixt_builder *b, mixt_value x)
{
    mixt_value w = mixt_param(b, "w", .rank = 2, .dims = {4, 2}, .ones = true);
    return mixt_matmul(b, x, w, .alpha = alpha);
}

static mixt_value begun_at_zero(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", x, .features = 2, .init = 0);
}

/** The first output of an untrained model for ones. */
static float first_output(mixt_model_fn fn)
{
    float in[4] = {1, 1, 1, 1}, out[2] = {-1, -1};
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, fn, MIXT_LOSS_MSE), .batch = 1);
    mixt_sample_shape shape = {.input_dtype = MIXT_DTYPE_FP32, .input_rank = 1, .input_dims = {4}, .targets = 2};
    assert_int_equal(mixt_trainer_compile_for(t, &shape), MIXT_OK);
    assert_int_equal(mixt_trainer_predict(t, in, 1, out), MIXT_OK);
    mixt_close(context);
    return out[0];
}

static void zero_is_zero(void **state)
{
    (void)state;
    alpha = 2;
    assert_true(first_output(scaled) == 8);
    alpha = 0;
    assert_true(first_output(scaled) == 0);
    assert_true(first_output(begun_at_zero) == 0);
    assert_true(first_output(net) != 0);
    mixt_norm_options norm = MIXT_OPTIONS(mixt_norm_options, .momentum = 0);
    assert_true(norm.momentum == 0 && norm.eps == 1e-5f);
    mixt_search_options search = MIXT_OPTIONS(mixt_search_options, .lose = 0);
    assert_true(search.lose == 0 && search.budget == 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_macro),
        cmocka_unit_test(an_older_struct_gets_defaults_for_the_rest),
        cmocka_unit_test(a_newer_struct_is_taken_where_it_sets_nothing_new),
        cmocka_unit_test(what_was_not_filled_is_refused),
        cmocka_unit_test(zero_is_zero),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
