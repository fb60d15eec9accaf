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
    assert_true(filled.lr == 1e-3f && filled.settings.clip == 0 && filled.seed == 0);
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
    assert_non_null(
        strstr(mixt_error_text(), "mixt_trainer_options: its struct_size is 0: initialise it with MIXT_OPTIONS or"));
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

/** The first inputs of generated digits. */
static void first_digits(const mixt_data_options *options, float *inputs)
{
    mixt_data *data;
    int32_t labels[4];
    assert_int_equal(mixt_data_open_with("digits:", options, &data), MIXT_OK);
    assert_int_equal(mixt_data_batch(data, 4, 0, inputs, labels), MIXT_OK);
    mixt_data_close(data);
}

/** 0 is a seed like any other; "as the other seed" is not what it says. */
static void a_seed_of_zero_is_one(void **state)
{
    (void)state;
    static float zero[4 * 784], asked[4 * 784], other[4 * 784];
    mixt_data_options options = MIXT_OPTIONS(mixt_data_options, .samples = 64, .seed = 0);
    first_digits(&options, zero);
    options.seed = 4;
    first_digits(&options, other);
    options.draw_seed = options.order_seed = 0;
    first_digits(&options, asked);
    assert_memory_equal(zero, asked, sizeof zero);
    assert_memory_not_equal(zero, other, sizeof zero);
}

/** Where 0 cannot be meant, it is refused by its name. */
static void zero_is_refused_where_it_means_nothing(void **state)
{
    const fixture *f = *state;
    mixt_data *data;
    mixt_model *model;
    assert_int_equal(mixt_data_open("audio:", &data, .samples = 4, .seconds = 0), MIXT_ERROR_CONFIG);
    assert_string_equal(mixt_error_text(), "data: seconds 0: must be above 0");
    assert_int_equal(mixt_data_open("audio:", &data, .samples = 4, .window = 0), MIXT_ERROR_CONFIG);
    assert_string_equal(mixt_error_text(), "data: window 0: must be above 0");
    assert_int_equal(mixt_data_open("audio:", &data, .samples = 4, .hop = 0), MIXT_ERROR_CONFIG);
    assert_string_equal(mixt_error_text(), "data: hop 0: must be above 0");
    assert_int_equal(mixt_data_open("random:", &data, .samples = 8, .shape = "8", .seq = 8), MIXT_OK);
    const mixt_zoo_options eps = MIXT_OPTIONS(mixt_zoo_options, .eps = 0);
    const mixt_zoo_options theta = MIXT_OPTIONS(mixt_zoo_options, .rope_theta = 0);
    assert_int_equal(mixt_zoo_model_with(f->context, "llama", data, &eps, &model), MIXT_ERROR_ARGUMENT);
    assert_string_equal(mixt_error_text(), "eps 0: must be above 0");
    assert_int_equal(mixt_zoo_model_with(f->context, "llama", data, &theta, &model), MIXT_ERROR_ARGUMENT);
    assert_string_equal(mixt_error_text(), "rope_theta 0: must be above 0");
    mixt_data_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_macro),
        cmocka_unit_test(an_older_struct_gets_defaults_for_the_rest),
        cmocka_unit_test(a_newer_struct_is_taken_where_it_sets_nothing_new),
        cmocka_unit_test(what_was_not_filled_is_refused),
        cmocka_unit_test(zero_is_zero),
        cmocka_unit_test(a_seed_of_zero_is_one),
        cmocka_unit_test(zero_is_refused_where_it_means_nothing),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
