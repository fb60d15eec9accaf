/* CPU devices with threads of their own: two trainers train at once, each to the bits that it has alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/threads.h"
#include "mixt/mixt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRAINERS = 2, STEPS = 12, BATCH = 96, PARAMS = 32 };

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_conv2d(b, "conv", x, .channels = 8, .kernel = 3, .pad = 1));
    x = mixt_layer_norm(b, "norm", mixt_flatten(b, mixt_max_pool(b, x, .size = 2)));
    x = mixt_dropout(b, mixt_relu(b, mixt_linear(b, "hidden", x, .features = 64)), 0.1F);
    return mixt_linear(b, "fc", x, .features = 10);
}

/** One trainer, and what came of it. */
typedef struct job {
    const char *precision;
    mixt_context *context;
    mixt_status status;
    char why[512]; // of a failure; cmocka's assertions are for one thread
    double losses[STEPS];
    float *weights[PARAMS];
    size_t bytes[PARAMS];
} job;

static bool good(job *j, mixt_status status)
{
    if (status != MIXT_OK && j->status == MIXT_OK) {
        j->status = status;
        snprintf(j->why, sizeof j->why, "%s", mixt_error_text());
    }
    return j->status == MIXT_OK;
}

static void keep_weights(job *j, mixt_trainer *t)
{
    mixt_param_info info;
    for (int64_t p = 0; p < PARAMS && mixt_trainer_param(t, p, &info) == MIXT_OK; p++) {
        j->bytes[p] = (size_t)info.count * sizeof(float);
        j->weights[p] = malloc(j->bytes[p]);
        good(j, mixt_trainer_param_get(t, p, j->weights[p]));
    }
}

static void *train(void *argument)
{
    job *j = argument;
    mixt_step step;
    mixt_evaluation evaluation;
    mixt_data *data = mixt_data_new(j->context, "digits:", .samples = 640, .seed = 3);
    mixt_model *model = mixt_model_new(j->context, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(model, .precision = j->precision, .batch = BATCH, .seed = 5);
    for (int i = 0; i < STEPS && good(j, mixt_trainer_step(t, data, &step)); i++)
        j->losses[i] = step.loss;
    if (good(j, mixt_trainer_evaluate(t, data, &evaluation)))
        keep_weights(j, t);
    return NULL;
}

static void start(job *j, const char *precision, int threads)
{
    *j = (job){.precision = precision, .context = mixt_open(.device = "cpu", .threads = threads)};
    assert_non_null(j->context);
}

static void forget(job *j)
{
    for (int p = 0; p < PARAMS; p++)
        free(j->weights[p]);
}

/** Fails where a job has failed. */
static bool same(const job *a, const job *b)
{
    bool equal = !memcmp(a->losses, b->losses, sizeof a->losses);
    assert_string_equal(a->why, "");
    assert_string_equal(b->why, "");
    assert_true(a->bytes[0] > 0);
    for (int p = 0; p < PARAMS; p++) {
        assert_int_equal(a->bytes[p], b->bytes[p]);
        equal = equal && (!a->bytes[p] || !memcmp(a->weights[p], b->weights[p], a->bytes[p]));
    }
    return equal;
}

/** Each with its own threads: with the other's it would have other bits. */
static void two_train_at_once(const char *const formats[TRAINERS])
{
    static const int threads[TRAINERS] = {1, 3};
    job alone[TRAINERS], other, at_once[TRAINERS];
    pthread_t runs[TRAINERS];
    for (int i = 0; i < TRAINERS; i++) {
        start(&alone[i], formats[i], threads[i]);
        train(&alone[i]);
        mixt_close(alone[i].context);
    }
    start(&other, formats[0], threads[1]);
    train(&other);
    mixt_close(other.context);
    assert_false(same(&alone[0], &other)); // this test can fail
    for (int i = 0; i < TRAINERS; i++)
        start(&at_once[i], formats[i], threads[i]);
    for (int i = 0; i < TRAINERS; i++)
        assert_int_equal(pthread_create(&runs[i], NULL, train, &at_once[i]), 0);
    for (int i = 0; i < TRAINERS; i++)
        pthread_join(runs[i], NULL);
    for (int i = 0; i < TRAINERS; i++) {
        assert_true(same(&alone[i], &at_once[i]));
        mixt_close(at_once[i].context);
        forget(&alone[i]);
        forget(&at_once[i]);
    }
    forget(&other);
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
