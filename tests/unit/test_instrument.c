/* Watched steps: the same bits as plain ones, and statistics that are true. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"
#include "api/api.h"
#include "train/trainer_inside.h"
#include "train/instrument.h"

#include <math.h>
#include <string.h>

enum { BATCH = 8, SIDE = 8, CLASSES = 4, STEPS = 4 };

/** Convolution, norm, pooling, dropout and a classifier's head: what is fused, in place or a view is there. */
static mixt_value net(mixt_builder *b, mixt_value x) // (N, 8, 8, 1)
{
    x = mixt_relu(b, mixt_batch_norm(b, "bn", mixt_conv2d(b, "conv", x, .channels = 8, .kernel = 3, .pad = 1)));
    x = mixt_flatten(b, mixt_max_pool(b, x, .size = 2));
    x = mixt_dropout(b, mixt_gelu(b, mixt_linear(b, "fc", x, .features = 32)), 0.1f);
    return mixt_linear(b, "head", x, .features = CLASSES);
}

typedef struct fixture {
    mixt_context *context;
    mixt_trainer *trainer;
    float input[2 * BATCH * SIDE * SIDE];
    int32_t target[2 * BATCH];
} fixture;

static void start(fixture *f, const char *precision, int64_t accumulate)
{
    f->context = mixt_open(.device = "cpu", .threads = 2);
    mixt_model *model = mixt_model_new(f->context, net, MIXT_LOSS_CROSS_ENTROPY);
    f->trainer = mixt_trainer_new(model, .batch = BATCH, .precision = precision, .seed = 3, .lr = 0.01f,
                                  .accumulate = accumulate);
    mixt_sample_shape shape = {
        .input_dtype = MIXT_DTYPE_FP32, .input_rank = 3, .input_dims = {SIDE, SIDE, 1}, .targets = 1};
    assert_int_equal(mixt_trainer_compile_for(f->trainer, &shape), MIXT_OK);
    for (int i = 0; i < 2 * BATCH * SIDE * SIDE; i++)
        f->input[i] = (float)((i * 37 % 101) - 50) / 25.0f;
    for (int i = 0; i < 2 * BATCH; i++)
        f->target[i] = i % CLASSES;
}

static void step(fixture *f, mixt_step *result)
{
    if (mixt_trainer_step_on(f->trainer, f->input, f->target, result) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

static void same_state(const fixture *x, const fixture *y)
{
    const mixt__params *a = x->trainer->inner->params, *b = y->trainer->inner->params;
    size_t bytes = (size_t)a->total * sizeof(float);
    assert_memory_equal(mixt__params_weights(a), mixt__params_weights(b), bytes);
    assert_memory_equal(mixt__role_fp32(&a->roles[MIXT_PARAM_MOMENT1]), mixt__role_fp32(&b->roles[MIXT_PARAM_MOMENT1]),
                        bytes);
    assert_memory_equal(mixt__role_fp32(&a->roles[MIXT_PARAM_MOMENT2]), mixt__role_fp32(&b->roles[MIXT_PARAM_MOMENT2]),
                        bytes);
    assert_memory_equal(mixt__params_state(a), mixt__params_state(b), (size_t)a->state_total * sizeof(float));
}

static const mixt__instrument everything = {.targets = {MIXT_DTYPE_FP16, MIXT_DTYPE_BF16}};

/** Every other step is watched; weights, moments, statistics and losses are those of a trainer that is not watched. */
static void the_same_bits(void **state)
{
    static const char *const names[] = {"fp32", "bf16", "fp16"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        fixture plain, watched;
        start(&plain, names[i % 3], 1 + i / 3);
        start(&watched, names[i % 3], 1 + i / 3);
        if (i % 2) { // compiled before memory is taken, or after
            step(&plain, NULL);
            step(&watched, NULL);
        }
        assert_int_equal(mixt__trainer_instrument(watched.trainer->inner, &everything), MIXT_OK);
        for (int k = 0; k < STEPS; k++) {
            mixt_step a, b;
            if (k % 2 == 0)
                assert_int_equal(mixt__trainer_instrument_next(watched.trainer->inner), MIXT_OK);
            step(&plain, &a);
            step(&watched, &b);
            assert_true(a.loss == b.loss && a.grad_norm == b.grad_norm && a.scale == b.scale);
            same_state(&plain, &watched);
        }
        mixt_close(plain.context);
        mixt_close(watched.context);
    }
}

/** The kernels of the watched step are those of the plain one, node by node. */
static void the_same_kernels(void **state)
{
    fixture f;
    (void)state;
    start(&f, "bf16", 1);
    mixt__trainer *t = f.trainer->inner;
    assert_int_equal(mixt__trainer_instrument(t, &everything), MIXT_OK);
    int64_t at = 0, watched = 0;
    for (int64_t i = 0; i < t->instrumented->graph->node_count; i++) {
        if (!strcmp(t->instrumented->graph->nodes[i].op->name, "tensor_stats")) {
            watched++;
            continue;
        }
        assert_ptr_equal(t->instrumented->graph->nodes[i].op, t->train->graph->nodes[at].op);
        assert_ptr_equal(t->instrumented->choices[i].kernel, t->train->choices[at++].kernel);
    }
    assert_int_equal(at, t->train->graph->node_count);
    assert_int_equal(watched, mixt__trainer_instrumented_count(t));
    assert_true(watched > 10);
    mixt_close(f.context);
}

static bool only_gradients(void *user, const mixt__graph *graph, const mixt__node *node, int output)
{
    (*(int *)user)++;
    return graph->values[node->out[output]].role == MIXT_ROLE_GRAD;
}

/** What is said of parameters' gradients is what lies in their memory after the step. */
static void statistics_are_true(void **state)
{
    fixture f;
    int asked = 0;
    (void)state;
    start(&f, "fp32", 1);
    mixt__trainer *t = f.trainer->inner;
    mixt__instrument instrument = {.wanted = only_gradients, .user = &asked, .targets = {MIXT_DTYPE_FP16}};
    assert_int_equal(mixt__trainer_instrument(t, &instrument), MIXT_OK);
    assert_int_equal(mixt__trainer_instrumented_count(t), t->params->segment_count);
    assert_true(asked > t->params->segment_count);
    assert_int_equal(mixt__trainer_instrument_next(t), MIXT_OK);
    step(&f, NULL);
    for (int64_t i = 0; i < mixt__trainer_instrumented_count(t); i++) {
        mixt__instrumented_value v;
        assert_int_equal(mixt__trainer_instrumented_read(t, i, &v), MIXT_OK);
        assert_true(v.gradient && v.backward);
        const mixt__segment *s = &t->params->segments[t->params->segment_of[mixt__params_find(t->params, v.name)]];
        double sum = 0, amax = 0;
        int64_t zeros = 0, flushed = 0;
        for (int64_t k = 0; k < s->count; k++) {
            double g = (double)mixt__params_gradients(t->params)[s->offset + k];
            sum += g;
            amax = fmax(amax, fabs(g));
            zeros += g == 0;
            flushed += g != 0 && fabs(g) <= 0x1p-25;
        }
        assert_int_equal(v.counts[MIXT_STATS_COUNT], s->count);
        assert_int_equal(v.counts[MIXT_STATS_ZEROS], zeros);
        assert_int_equal(v.counts[MIXT_STATS_FLUSHED], flushed);
        assert_true(v.numbers[MIXT_STATS_AMAX] == amax);
        assert_true(fabs(v.numbers[MIXT_STATS_SUM] - sum) <= 1e-12 * (fabs(sum) + amax * (double)s->count));
    }
    mixt_close(f.context);
}

/** The plan's memory is what is allocated, also where the watched step needs more; it needs little more. */
static void memory_is_planned(void **state)
{
    fixture f;
    mixt_memory before, after;
    (void)state;
    start(&f, "bf16", 1);
    step(&f, NULL);
    assert_int_equal(mixt_trainer_memory(f.trainer, &before), MIXT_OK);
    assert_int_equal(mixt__trainer_instrument(f.trainer->inner, &everything), MIXT_OK);
    assert_int_equal(mixt_trainer_memory(f.trainer, &after), MIXT_OK);
    assert_int_equal(before.total, before.allocated);
    assert_int_equal(after.total, after.allocated);
    assert_true(after.total >= before.total);
    mixt_close(f.context);
}

/** A change of policy drops the watched step; without one nothing can be watched. */
static void a_change_drops_it(void **state)
{
    fixture f;
    mixt__instrumented_value v;
    (void)state;
    start(&f, "bf16", 1);
    mixt__trainer *t = f.trainer->inner;
    assert_int_equal(mixt__trainer_instrument_next(t), MIXT_ERROR_STATE);
    assert_int_equal(mixt__trainer_instrument(t, &everything), MIXT_OK);
    step(&f, NULL);
    assert_int_equal(mixt_trainer_set_precision(f.trainer, "fp16"), MIXT_OK);
    assert_int_equal(mixt__trainer_instrumented_count(t), 0);
    assert_int_equal(mixt__trainer_instrument_next(t), MIXT_ERROR_STATE);
    assert_int_equal(mixt__trainer_instrumented_read(t, 0, &v), MIXT_ERROR_ARGUMENT);
    step(&f, NULL);
    assert_int_equal(mixt__trainer_instrument(t, &everything), MIXT_OK);
    assert_int_equal(mixt__trainer_instrument_next(t), MIXT_OK);
    step(&f, NULL);
    assert_int_equal(mixt__trainer_instrumented_read(t, 0, &v), MIXT_OK);
    mixt_close(f.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits),     cmocka_unit_test(the_same_kernels),  cmocka_unit_test(statistics_are_true),
        cmocka_unit_test(memory_is_planned), cmocka_unit_test(a_change_drops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
