/* CPU devices with threads of their own: two trainers train at once, each to the bits that it has alone. */
#include "../support/trainers_at_once.h"

#include "base/threads.h"

enum { TRAINERS = 2, BATCH = 96 };

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_conv2d(b, "conv", x, .channels = 8, .kernel = 3, .pad = 1));
    x = mixt_layer_norm(b, "norm", mixt_flatten(b, mixt_max_pool(b, x, .size = 2)));
    x = mixt_dropout(b, mixt_relu(b, mixt_linear(b, "hidden", x, .features = 64)), 0.1F);
    return mixt_linear(b, "fc", x, .features = 10);
}

static mixt_trainer *make_net(const job *j, mixt_data **data)
{
    *data = mixt_data_new(j->context, "digits:", .samples = 640, .seed = 3);
    mixt_model *model = mixt_model_new(j->context, net, MIXT_LOSS_CROSS_ENTROPY);
    return mixt_trainer_new(model, .precision = j->precision, .batch = BATCH, .seed = j->seed);
}

static const job_kind digits = {.make = make_net, .steps = 12, .evaluates = true};

static job on_cpu(const char *precision, int threads)
{
    return (job){.kind = &digits, .device = "cpu", .precision = precision, .threads = threads, .seed = 5};
}

/** Each with its own threads: with the other's it would have other bits. */
static void two_train_at_once(const char *const formats[TRAINERS])
{
    static const int threads[TRAINERS] = {1, 3};
    job alone[TRAINERS], at_once[TRAINERS];
    for (int i = 0; i < TRAINERS; i++) {
        alone[i] = job_alone(on_cpu(formats[i], threads[i]));
        at_once[i] = on_cpu(formats[i], threads[i]);
    }
    job other = job_alone(on_cpu(formats[0], threads[1]));
    assert_false(jobs_same(&alone[0], &other)); // this test can fail
    jobs_at_once(at_once, TRAINERS);
    for (int i = 0; i < TRAINERS; i++) {
        assert_true(jobs_same(&alone[i], &at_once[i]));
        job_forget(&alone[i]);
        job_forget(&at_once[i]);
    }
    job_forget(&other);
}

static void test_fp32_beside_bf16(void **state)
{
    (void)state;
    two_train_at_once((const char *const[]){"fp32", "bf16"});
    two_train_at_once((const char *const[]){"bf16", "fp32"});
}

static void test_two_of_a_format(void **state)
{
    (void)state;
    two_train_at_once((const char *const[]){"fp32", "fp32"});
    two_train_at_once((const char *const[]){"bf16", "bf16"});
}

/** A thread that opened a context goes back to the process's threads when that is closed, whoever closes it. */
static void test_closed_devices(void **state)
{
    (void)state;
    int before = mixt__threads_count();
    mixt_context *first = mixt_open(.device = "cpu", .threads = before + 1);
    assert_int_equal(mixt__threads_count(), before + 1);
    mixt_context *second = mixt_open(.device = "cpu", .threads = before + 2);
    assert_int_equal(mixt__threads_count(), before + 2);
    mixt_close(second);
    assert_int_equal(mixt__threads_count(), before);
    mixt_close(first);
    assert_int_equal(mixt__threads_count(), before);
    for (int i = 0; i < 50; i++) { // a closed team is opened again, and its threads are joined
        mixt_context *again = mixt_open(.device = "cpu", .threads = 1 + i % 5);
        assert_int_equal(mixt__threads_count(), 1 + i % 5);
        char block[4096];
        mixt__parallel_zero(block, sizeof block);
        mixt_close(again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32_beside_bf16),
        cmocka_unit_test(test_two_of_a_format),
        cmocka_unit_test(test_closed_devices),
    };
    return cmocka_run_group_tests_name("devices", tests, NULL, NULL);
}
