/* Frozen parameters, learning rates and weight decay by group: what is frozen keeps every bit and costs no gradient,
 * the rest trains as if nothing were frozen above it. */
#include "api/api.h"
#include "base/rng.h"
#include "mixt/num.h"
#include "mixt/tensor.h"
#include "train/trainer_inside.h"
#include "graph/op.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { BATCH = 8, SIDE = 6, CLASSES = 3, PARAMS = 24, MOST = 1024, STEPS = 3 };

static mixt_context *context;
static float pixels[BATCH * SIDE * SIDE];
static int32_t labels[BATCH];

static mixt_value small_net(mixt_builder *b, mixt_value x)
{
    x = mixt_conv2d(b, "conv1", x, .channels = 4, .kernel = 3, .pad = 1);
    x = mixt_relu(b, mixt_batch_norm(b, "bn1", x));
    x = mixt_conv2d(b, "conv2", x, .channels = 8, .kernel = 3, .pad = 1, .stride = 2);
    x = mixt_relu(b, mixt_batch_norm(b, "bn2", x));
    x = mixt_layer_norm(b, "norm", mixt_linear(b, "fc1", mixt_global_avg_pool(b, x), .features = 8));
    return mixt_linear(b, "fc2", mixt_gelu_erf(b, x), .features = CLASSES);
}

/** All parameters of a trained net, by index. */
typedef struct result {
    float values[PARAMS][MOST];
    mixt_param_info info[PARAMS];
    int64_t count;
    mixt_memory memory;
    int64_t gradients; // parameters that nodes write gradients of
} result;

static result base, got;

static mixt_trainer *open_trainer(mixt_trainer_options o)
{
    o.batch = BATCH;
    o.seed = 3;
    mixt_model *model = mixt_model_new(context, small_net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = MIXT_MADE(mixt_trainer, mixt_trainer_new_with, model, &o);
    assert_non_null(t);
    return t;
}

static mixt_status compile(mixt_trainer *t)
{
    mixt_sample_shape shape = {MIXT_DTYPE_FP32, 3, {SIDE, SIDE, 1}, 1};
    return mixt_trainer_compile_for(t, &shape);
}

static void read_result(mixt_trainer *t, result *r)
{
    r->count = mixt_trainer_param_count(t);
    assert_in_range(r->count, 1, PARAMS);
    for (int64_t i = 0; i < r->count; i++) {
        assert_int_equal(mixt_trainer_param(t, i, &r->info[i]), MIXT_OK);
        assert_in_range(r->info[i].count, 1, MOST);
        assert_int_equal(mixt_trainer_param_get(t, i, r->values[i]), MIXT_OK);
    }
    assert_int_equal(mixt_trainer_memory(t, &r->memory), MIXT_OK);
    const mixt__graph *graph = t->inner->train->graph;
    r->gradients = 0;
    for (int64_t i = 0; i < graph->param_count; i++)
        r->gradients += graph->params[i].grad != 0;
}

static void train(mixt_trainer_options options, int steps, result *r)
{
    mixt_trainer *t = open_trainer(options);
    assert_int_equal(compile(t), MIXT_OK);
    assert_int_equal(mixt__trainer_allocate(t->inner), MIXT_OK);
    for (int i = 0; i < steps; i++)
        assert_int_equal(mixt_trainer_step_on(t, pixels, labels, NULL), MIXT_OK);
    read_result(t, r);
}

static bool same(const result *a, const result *b, int64_t i)
{
    return !memcmp(a->values[i], b->values[i], (size_t)a->info[i].count * sizeof(float));
}

/** The same of a frozen parameter in `b`: it was rounded once to the format in which it is read. */
static bool same_rounded(const result *a, const result *b, int64_t i)
{
    static float values[MOST];
    uint16_t low[MOST];
    mixt_dtype copy = b->info[i].copy;
    if (copy == MIXT_DTYPE_NONE)
        return same(a, b, i);
    assert_int_equal(mixt_dtype_size(copy), sizeof low[0]);
    assert_int_equal(mixt_convert(low, copy, a->values[i], MIXT_DTYPE_FP32, a->info[i].count, NULL), MIXT_OK);
    assert_int_equal(mixt_convert(values, MIXT_DTYPE_FP32, low, copy, a->info[i].count, NULL), MIXT_OK);
    return !memcmp(values, b->values[i], (size_t)a->info[i].count * sizeof(float));
}

/** Bytes of running statistics, as they are and as they were after the last update, and of parameters that are kept
 *  once, in the format in which they are read. */
static size_t state_bytes(const result *r)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const mixt_param_info *p = &r->info[i];
        size_t size = p->copy != MIXT_DTYPE_NONE ? mixt_dtype_size(p->copy) : sizeof(float);
        size_t lines = ((size_t)p->count * size + 63) / 64 * 64;
        if (!p->trainable)
            bytes += strstr(p->name, "running") ? 2 * lines : lines;
    }
    return bytes;
}

static bool begins(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

static void freeze_keeps_bits(void **state)
{
    (void)state;
    static result start;
    static const char *const precisions[] = {"fp32", "bf16"};
    for (int p = 0; p < 2; p++) {
        mixt_trainer_options o =
            MIXT_OPTIONS(mixt_trainer_options, .precision = precisions[p], .lr = 0.05f, .weight_decay = 0.1f);
        train(o, 0, &start);
        train(o, STEPS, &base);
        o.freeze = "conv1, bn1, fc1.bias";
        train(o, STEPS, &got);
        for (int64_t i = 0; i < got.count; i++) {
            const char *name = got.info[i].name;
            bool frozen = begins(name, "conv1.") || begins(name, "bn1.") || !strcmp(name, "fc1.bias");
            if (frozen ? !same_rounded(&start, &got, i) : same(&start, &got, i))
                fail_msg("%s: %s %s", precisions[p], name, frozen ? "is frozen, but changed" : "did not change");
            assert_int_equal(got.info[i].trainable, !frozen && !strstr(name, "running"));
            assert_int_equal(got.info[i].copy, base.info[i].copy);
        }
        assert_int_equal(got.gradients, base.gradients - 5); // two each of conv1 and bn1, one bias
        assert_true(got.memory.gradients < base.memory.gradients && got.memory.moments < base.memory.moments);
        assert_int_equal(got.memory.allocated, got.memory.total);
        assert_int_equal(got.memory.state, state_bytes(&got));
    }
}

/** With a learning rate of 0 a parameter stays where it is too, at full cost: the others must train alike. Statistics
 *  are not frozen here, so both nets compute the same. */
static void freeze_equals_rate_of_zero(void **state)
{
    (void)state;
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    for (int p = 0; p < 3; p++) {
        mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .precision = precisions[p], .lr = 0.02f);
        o.lr_groups = "conv?.*=0, bn1=0, norm=0";
        train(o, STEPS, &base);
        o.lr_groups = NULL;
        o.freeze = "conv?.*, bn1.weight, bn1.bias, norm";
        train(o, STEPS, &got);
        for (int64_t i = 0; i < got.count; i++)
            if (got.info[i].trainable ? !same(&base, &got, i) : !same_rounded(&base, &got, i))
                fail_msg("%s: %s differs", precisions[p], got.info[i].name);
    }
}

/** A frozen parameter's tensor has the format that it is kept in, and its numbers, without a copy. */
static void a_frozen_tensor_has_its_own_format(void **state)
{
    (void)state;
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16, MIXT_DTYPE_FP16};
    for (int f = 0; f < 3; f++) {
        static float values[MOST];
        mixt_trainer *t = open_trainer(
            MIXT_OPTIONS(mixt_trainer_options, .precision = mixt_dtype_name(formats[f]), .freeze = "conv2.weight"));
        assert_int_equal(compile(t), MIXT_OK);
        assert_int_equal(mixt__trainer_take_weights(t->inner), MIXT_OK);
        int lower = 0;
        for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
            mixt_param_info info;
            mixt_tensor *tensor;
            assert_int_equal(mixt_trainer_param(t, i, &info), MIXT_OK);
            assert_int_equal(mixt_trainer_param_tensor(t, i, &tensor), MIXT_OK);
            bool frozen = !strcmp(info.name, "conv2.weight");
            assert_int_equal(mixt_tensor_dtype(tensor), frozen ? formats[f] : MIXT_DTYPE_FP32);
            assert_int_equal(mixt_tensor_elements(tensor), info.count);
            assert_int_equal(mixt_trainer_param_get(t, i, values), MIXT_OK);
            const void *data = mixt_tensor_data(tensor);
            for (int64_t k = 0; frozen && k < info.count; k++) {
                float one = formats[f] == MIXT_DTYPE_BF16   ? mixt_bf16_to_fp32(((const uint16_t *)data)[k])
                            : formats[f] == MIXT_DTYPE_FP16 ? mixt_fp16_to_fp32(((const uint16_t *)data)[k])
                                                            : ((const float *)data)[k];
                assert_true(one == values[k]);
            }
            lower += frozen;
            mixt_tensor_free(tensor);
        }
        assert_int_equal(lower, 1);
    }
}

/** The gradient through a batch norm with frozen statistics, against differences of the loss. */
static void frozen_statistics(void **state)
{
    (void)state;
    static float values[MOST], gradient[MOST];
    mixt_trainer *t =
        open_trainer(MIXT_OPTIONS(mixt_trainer_options, .precision = "fp32", .freeze = "bn2.running_*, bn1"));
    assert_int_equal(compile(t), MIXT_OK);
    assert_int_equal(mixt_trainer_backward(t, pixels, labels, 1, NULL), MIXT_OK);
    const char *const names[] = {"conv1.weight", "conv2.weight", "bn2.weight", "bn2.bias"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        int32_t index = mixt__params_find(t->inner->params, names[n]);
        mixt_param_info info;
        assert_int_equal(mixt_trainer_param(t, index, &info), MIXT_OK);
        assert_int_equal(mixt_trainer_discard(t), MIXT_OK);
        assert_int_equal(mixt_trainer_backward(t, pixels, labels, 1, NULL), MIXT_OK);
        assert_int_equal(mixt_trainer_grad_get(t, index, gradient), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(t, index, values), MIXT_OK);
        for (int64_t i = 0; i < info.count; i += 7) {
            const float h = 1e-2f, kept = values[i];
            double loss[2];
            for (int side = 0; side < 2; side++) {
                values[i] = kept + (side ? h : -h);
                assert_int_equal(mixt_trainer_param_set(t, index, values), MIXT_OK);
                assert_int_equal(mixt_trainer_discard(t), MIXT_OK);
                assert_int_equal(mixt_trainer_backward(t, pixels, labels, 1, &loss[side]), MIXT_OK);
            }
            values[i] = kept;
            assert_int_equal(mixt_trainer_param_set(t, index, values), MIXT_OK);
            double expected = (loss[1] - loss[0]) / (2 * (double)h);
            if (!(fabs(expected - (double)gradient[i]) < 2e-3))
                fail_msg("%s[%lld]: %g, differences give %g", names[n], (long long)i, (double)gradient[i], expected);
        }
    }
    assert_int_equal(mixt_trainer_grad_get(t, mixt__params_find(t->inner->params, "bn1.weight"), values),
                     MIXT_ERROR_STATE);
}

/** Powers of two as factors: another rate for a group is exactly the same as that rate for all. */
static void rates_by_group(void **state)
{
    (void)state;
    static result half;
    train(MIXT_OPTIONS(mixt_trainer_options, .optimizer = "sgd", .lr = 0.25f), 1, &base);
    train(MIXT_OPTIONS(mixt_trainer_options, .optimizer = "sgd", .lr = 0.125f), 1, &half);
    train(MIXT_OPTIONS(mixt_trainer_options, .optimizer = "sgd", .lr = 0.25f,
                       .lr_groups = "*=1, conv1=0.5, fc*.weight=0.5"),
          1, &got);
    for (int64_t i = 0; i < got.count; i++) {
        const char *name = got.info[i].name;
        bool slow = begins(name, "conv1.") || (begins(name, "fc") && strstr(name, "weight"));
        assert_true(same(&got, slow ? &half : &base, i));
        assert_false(slow && strstr(name, "weight") && same(&base, &half, i)); // the test can fail
    }
}

static void decay_by_group(void **state)
{
    (void)state;
    static result none;
    train(MIXT_OPTIONS(mixt_trainer_options, .lr = 0.25f, .weight_decay = 0.5f), 1, &base);
    train(MIXT_OPTIONS(mixt_trainer_options, .lr = 0.25f), 1, &none);
    train(MIXT_OPTIONS(mixt_trainer_options, .lr = 0.25f, .decay_groups = "fc1=0.5"), 1, &got);
    for (int64_t i = 0; i < got.count; i++) {
        bool decays = !strcmp(got.info[i].name, "fc1.weight");
        assert_true(same(&got, decays ? &base : &none, i));
        assert_false(decays && same(&base, &none, i));
    }
}

static void bad_lists(void **state)
{
    (void)state;
    const struct {
        mixt_trainer_options options;
        const char *text;
    } cases[] = {
        {MIXT_OPTIONS(mixt_trainer_options, .freeze = "conv9*"), "freeze: 'conv9*' matches no parameter"},
        {MIXT_OPTIONS(mixt_trainer_options, .freeze = "*"), "leaves no parameter to train"},
        {MIXT_OPTIONS(mixt_trainer_options, .lr_groups = "conv1"), "lr_groups: 'conv1' has no value"},
        {MIXT_OPTIONS(mixt_trainer_options, .lr_groups = "conv1=fast"), "'fast' of 'conv1' is not a number"},
        {MIXT_OPTIONS(mixt_trainer_options, .lr_groups = "conv9=1"), "lr_groups: 'conv9' matches no parameter"},
        {MIXT_OPTIONS(mixt_trainer_options, .decay_groups = "fc1=0.1, fc7=0.1"),
         "decay_groups: 'fc7' matches no parameter"},
        {MIXT_OPTIONS(mixt_trainer_options, .decay_groups = "fc1=0.1, norm=0.1"),
         "decay_groups: 'norm' matches no parameter with weight decay"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_trainer *t = open_trainer(cases[i].options);
        assert_int_equal(compile(t), MIXT_ERROR_CONFIG);
        if (!strstr(mixt_error_text(), cases[i].text))
            fail_msg("'%s' says nothing of '%s'", mixt_error_text(), cases[i].text);
    }
}

static int open_all(void **state)
{
    (void)state;
    mixt__rng rng = mixt__rng_start(11);
    for (int i = 0; i < BATCH * SIDE * SIDE; i++)
        pixels[i] = mixt__rng_normal(&rng);
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % CLASSES;
    context = mixt_open(.device = "cpu", .threads = 2);
    return context ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    mixt_close(context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freeze_keeps_bits),
        cmocka_unit_test(freeze_equals_rate_of_zero),
        cmocka_unit_test(a_frozen_tensor_has_its_own_format),
        cmocka_unit_test(frozen_statistics),
        cmocka_unit_test(rates_by_group),
        cmocka_unit_test(decay_by_group),
        cmocka_unit_test(bad_lists),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
