/* Adapters of a user's own model: what a layer computes with one, what is trained and what keeps every bit, that they
 * cost what was planned, and what is refused. */
#include "../support/temp_folder.h"
#include "api/api.h"
#include "base/rng.h"
#include "train/trainer_inside.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { BATCH = 8, INPUTS = 12, WIDTH = 16, CLASSES = 5, MOST = 1024, PARAMS = 32, STEPS = 4, RANK = 3 };

static mixt_context *context;
static float samples[BATCH * INPUTS];
static int32_t labels[BATCH];

/** A layer with parts of different sizes, plain ones, a norm, one that leads nowhere if asked for. */
static mixt_value net(mixt_builder *b, mixt_value x)
{
    mixt_value parts[3];
    const int64_t sizes[3] = {WIDTH, 4, 8};
    const char *more = mixt_builder_user(b);
    x = mixt_linear(b, "body.parts", x, .features = WIDTH + 12, .parts = {WIDTH, 4, 8});
    mixt_split_at(b, x, 3, sizes, parts);
    mixt_value left = mixt_linear(b, "body.left", mixt_gelu_erf(b, parts[0]), .features = WIDTH);
    x = mixt_linear(b, "body.right", mixt_concat(b, parts + 1, 2, 1), .features = WIDTH, .no_bias = true);
    x = mixt_add(b, left, x);
    if (more && !strcmp(more, "idle"))
        mixt_linear(b, "idle", x, .features = WIDTH);
    return mixt_linear(b, "head", mixt_layer_norm(b, "norm", x), .features = CLASSES);
}

static mixt_value bad_parts(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "head", x, .features = CLASSES, .parts = {2, 2});
}

/** One layer that makes the outputs, of three side by side. */
static mixt_value line(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "line", x, .features = CLASSES, .parts = {2, 1, 2});
}

static mixt_status open_net(mixt_model_fn fn, const char *user, const mixt_lora_options *lora, mixt_trainer_options o,
                            mixt_trainer **t)
{
    *t = NULL;
    o.batch = BATCH;
    o.seed = 3;
    mixt_model *model = mixt_model_new(context, fn, MIXT_LOSS_CROSS_ENTROPY, .user = (void *)(uintptr_t)user);
    mixt_status status = model ? MIXT_OK : MIXT_ERROR_ARGUMENT;
    if (status == MIXT_OK && lora)
        status = mixt_model_lora(model, lora);
    if (status == MIXT_OK)
        status = mixt_trainer_new_with(model, &o, t);
    const mixt_sample_shape shape = {MIXT_DTYPE_FP32, 1, {INPUTS}, 1};
    if (status == MIXT_OK)
        status = mixt_trainer_compile_for(*t, &shape);
    return status == MIXT_OK ? mixt__trainer_allocate((*t)->inner) : status;
}

static mixt_trainer *must_open(const mixt_lora_options *lora, mixt_trainer_options o)
{
    mixt_trainer *t;
    if (open_net(net, NULL, lora, o, &t) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return t;
}

static int64_t find(mixt_trainer *t, const char *name, mixt_param_info *info)
{
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        assert_int_equal(mixt_trainer_param(t, i, info), MIXT_OK);
        if (!strcmp(info->name, name))
            return i;
    }
    fail_msg("no parameter %s", name);
    return -1;
}

static void get(mixt_trainer *t, const char *name, float values[MOST])
{
    mixt_param_info info;
    int64_t index = find(t, name, &info);
    assert_in_range(info.count, 1, MOST);
    assert_int_equal(mixt_trainer_param_get(t, index, values), MIXT_OK);
}

/** All parameters of a trainer. */
typedef struct weights {
    float values[PARAMS][MOST];
    mixt_param_info info[PARAMS];
    int64_t count;
} weights;

static void read_weights(mixt_trainer *t, weights *w)
{
    w->count = mixt_trainer_param_count(t);
    assert_in_range(w->count, 1, PARAMS);
    for (int64_t i = 0; i < w->count; i++) {
        assert_int_equal(mixt_trainer_param(t, i, &w->info[i]), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(t, i, w->values[i]), MIXT_OK);
    }
}

static void train(mixt_trainer *t, int steps)
{
    for (int i = 0; i < steps; i++)
        assert_int_equal(mixt_trainer_step_on(t, samples, labels, NULL), MIXT_OK);
}

static bool same(const weights *a, const weights *b, int64_t i)
{
    return !memcmp(a->values[i], b->values[i], (size_t)a->info[i].count * sizeof(float));
}

/* ---- what is computed ---- */

/** x W^T + bias + scale x A^T B^T in FP64, part by part. @param bits parts that have adapters */
static void check_line(mixt_trainer *t, unsigned bits, double scale)
{
    static const int sizes[3] = {2, 1, 2};
    static float w[MOST], bias[MOST], a[MOST], up[3][MOST], got[BATCH * CLASSES];
    get(t, "line.weight", w);
    get(t, "line.bias", bias);
    get(t, "line.lora_a", a);
    for (int k = 0; k < 3; k++) {
        char name[32];
        snprintf(name, sizeof name, "line.lora_b.%d", k);
        if (bits >> k & 1)
            get(t, name, up[k]);
    }
    assert_int_equal(mixt_trainer_predict(t, samples, BATCH, got), MIXT_OK);
    for (int s = 0; s < BATCH; s++)
        for (int k = 0, out = 0, slot = 0; k < 3; slot += bits >> k & 1, k++)
            for (int r = 0; r < sizes[k]; r++, out++) {
                double sum = (double)bias[out];
                for (int i = 0; i < INPUTS; i++)
                    sum += (double)w[out * INPUTS + i] * (double)samples[s * INPUTS + i];
                for (int c = 0; c < RANK && bits >> k & 1; c++) {
                    double low = 0;
                    for (int i = 0; i < INPUTS; i++)
                        low += (double)a[(slot * RANK + c) * INPUTS + i] * (double)samples[s * INPUTS + i];
                    sum += scale * low * (double)up[k][r * RANK + c];
                }
                if (!(fabs(sum - (double)got[s * CLASSES + out]) < 1e-5))
                    fail_msg("part %d, output %d: %g, expected %g", k, out, (double)got[s * CLASSES + out], sum);
            }
}

static void layers_add_what_adapters_say(void **state)
{
    (void)state;
    const struct {
        mixt_lora_options lora;
        unsigned bits;
        double scale;
    } cases[] = {
        {MIXT_OPTIONS(mixt_lora_options, .rank = RANK, .layers = "line"), 7, 2},
        {MIXT_OPTIONS(mixt_lora_options, .rank = RANK, .layers = "line.0,line.2", .alpha = 12), 5, 4},
        {MIXT_OPTIONS(mixt_lora_options, .rank = RANK, .layers = "line.1", .alpha = 6, .rslora = true), 2,
         6 / sqrt(RANK)},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        mixt_trainer *t;
        assert_int_equal(open_net(line, NULL, &cases[c].lora, MIXT_OPTIONS(mixt_trainer_options, .lr = 0.1f), &t),
                         MIXT_OK);
        check_line(t, cases[c].bits, cases[c].scale); // B is zero
        train(t, STEPS);
        check_line(t, cases[c].bits, cases[c].scale);
    }
}

/** A begins as PEFT's does, and the model as it is without. */
static void begins_as_without(void **state)
{
    (void)state;
    static float a[MOST], b[MOST], with[BATCH * CLASSES], without[BATCH * CLASSES];
    mixt_lora_options lora = MIXT_OPTIONS(mixt_lora_options, .rank = RANK);
    mixt_trainer *t = must_open(&lora, MIXT_OPTIONS(mixt_trainer_options)),
                 *plain = must_open(NULL, MIXT_OPTIONS(mixt_trainer_options));
    assert_int_equal(mixt_trainer_predict(t, samples, BATCH, with), MIXT_OK);
    assert_int_equal(mixt_trainer_predict(plain, samples, BATCH, without), MIXT_OK);
    assert_memory_equal(with, without, sizeof with);
    get(t, "body.parts.lora_a", a);
    get(t, "body.parts.lora_b.1", b);
    double largest = 0;
    for (int i = 0; i < 3 * RANK * INPUTS; i++)
        largest = fmax(largest, fabs((double)a[i]));
    assert_true(largest < 1 / sqrt(INPUTS) && largest > 0.9 / sqrt(INPUTS));
    for (int i = 0; i < 4 * RANK; i++)
        assert_true(b[i] == 0);
}

/* ---- what is trained ---- */

static void only_adapters_change(void **state)
{
    (void)state;
    static weights before, after;
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    for (int p = 0; p < 3; p++)
        for (int frozen = 0; frozen < 2; frozen++) {
            mixt_lora_options lora = MIXT_OPTIONS(mixt_lora_options, .rank = RANK, .also = "norm,body.left.bias");
            mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .precision = precisions[p], .lr = 0.05f);
            o.weight_decay = 0.1f;
            o.frozen = frozen ? "int8" : NULL;
            mixt_trainer *t = must_open(&lora, o);
            read_weights(t, &before);
            train(t, STEPS);
            read_weights(t, &after);
            for (int64_t i = 0; i < after.count; i++) {
                const char *name = after.info[i].name;
                bool trained = strstr(name, "lora_") || !strncmp(name, "norm.", 5) || !strcmp(name, "body.left.bias");
                if (after.info[i].trainable != trained || same(&before, &after, i) == trained)
                    fail_msg("%s: %s %s", precisions[p], name, trained ? "did not change" : "changed");
            }
            mixt_memory memory;
            assert_int_equal(mixt_trainer_memory(t, &memory), MIXT_OK);
            assert_int_equal(memory.allocated, memory.total);
        }
}

/** Gradients of A and B against differences of the loss. */
static void gradients(void **state)
{
    (void)state;
    static float values[MOST], gradient[MOST];
    mixt_lora_options lora = MIXT_OPTIONS(mixt_lora_options, .rank = RANK);
    mixt_trainer *t = must_open(&lora, MIXT_OPTIONS(mixt_trainer_options, .lr = 0.1f));
    static const char *const names[] = {"body.parts.lora_a", "body.parts.lora_b.1", "body.left.lora_a",
                                        "body.right.lora_b"};
    train(t, 2); // B is no longer zero
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        mixt_param_info info;
        int64_t index = find(t, names[n], &info);
        assert_int_equal(mixt_trainer_discard(t), MIXT_OK);
        assert_int_equal(mixt_trainer_backward(t, samples, labels, 1, NULL), MIXT_OK);
        assert_int_equal(mixt_trainer_grad_get(t, index, gradient), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(t, index, values), MIXT_OK);
        for (int64_t i = 0; i < info.count; i += 5) {
            const float h = 1e-2f, kept = values[i];
            double loss[2];
            for (int side = 0; side < 2; side++) {
                values[i] = kept + (side ? h : -h);
                assert_int_equal(mixt_trainer_param_set(t, index, values), MIXT_OK);
                assert_int_equal(mixt_trainer_discard(t), MIXT_OK);
                assert_int_equal(mixt_trainer_backward(t, samples, labels, 1, &loss[side]), MIXT_OK);
            }
            values[i] = kept;
            assert_int_equal(mixt_trainer_param_set(t, index, values), MIXT_OK);
            double expected = (loss[1] - loss[0]) / (2 * (double)h);
            if (!(fabs(expected - (double)gradient[i]) < 2e-3))
                fail_msg("%s[%lld]: %g, differences give %g", names[n], (long long)i, (double)gradient[i], expected);
        }
    }
}

/** Dropout is for training alone, and draws anew for each layer and pass. */
static void dropout(void **state)
{
    (void)state;
    static weights plain, dropped, again;
    static float first[BATCH * CLASSES], second[BATCH * CLASSES];
    mixt_lora_options lora = MIXT_OPTIONS(mixt_lora_options, .rank = RANK);
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .lr = 0.05f);
    mixt_trainer *t = must_open(&lora, o);
    train(t, 1);
    read_weights(t, &plain);
    lora.dropout = 0.5f;
    for (int k = 0; k < 2; k++) {
        t = must_open(&lora, o);
        train(t, 1);
        read_weights(t, k ? &again : &dropped);
    }
    int64_t a = find(t, "body.left.lora_b", &(mixt_param_info){0});
    assert_false(same(&plain, &dropped, a));
    assert_true(same(&again, &dropped, a));
    train(t, STEPS);
    assert_int_equal(mixt_trainer_predict(t, samples, BATCH, first), MIXT_OK);
    assert_int_equal(mixt_trainer_predict(t, samples, BATCH, second), MIXT_OK);
    assert_memory_equal(first, second, sizeof first);
}

/** The same bits after a restore, within a budget for activations, and of parts made apart on ranks. */
static void same_bits(void **state)
{
    (void)state;
    static weights straight, other;
    mixt_lora_options lora = MIXT_OPTIONS(mixt_lora_options, .rank = RANK, .dropout = 0.25f, .also = "norm");
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .lr = 0.05f, .precision = "bf16");
    mixt_trainer *t = must_open(&lora, o);
    train(t, 2 * STEPS);
    read_weights(t, &straight);
    t = must_open(&lora, o);
    train(t, STEPS);
    const char *folder = temp_path("checkpoint");
    assert_int_equal(mixt_trainer_checkpoint(t, folder), MIXT_OK);
    t = must_open(&lora, o);
    if (mixt_trainer_restore(t, folder) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    train(t, STEPS);
    read_weights(t, &other);
    for (int64_t i = 0; i < other.count; i++)
        assert_true(same(&straight, &other, i));
    lora.alpha = 5;
    t = must_open(&lora, o);
    assert_int_not_equal(mixt_trainer_restore(t, folder), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "lora: rank 3, scale 2"));
}

/* ---- what is refused ---- */

static void refused(void **state)
{
    (void)state;
    const struct {
        mixt_model_fn fn;
        const char *user;
        mixt_lora_options lora;
        mixt_trainer_options options;
        const char *words;
    } cases[] = {
        {net, NULL, MIXT_OPTIONS(mixt_lora_options, .layers = "body.parts,mid"), MIXT_OPTIONS(mixt_trainer_options),
         "lora.layers: 'mid' matches no linear layer of this model, which has body.parts.0, body.parts.1, "
         "body.parts.2, "
         "body.left, body.right, head"},
        {net, NULL, MIXT_OPTIONS(mixt_lora_options, .also = "norms"), MIXT_OPTIONS(mixt_trainer_options),
         "lora.also: 'norms' matches no parameter of this model, which has body.parts.weight, body.parts.bias, "},
        {net, NULL, MIXT_OPTIONS(mixt_lora_options, .also = "body.left"), MIXT_OPTIONS(mixt_trainer_options),
         "lora.also: 'body.left.weight' has an adapter, which trains it"},
        {net, "idle", MIXT_OPTIONS(mixt_lora_options, .rank = 2), MIXT_OPTIONS(mixt_trainer_options),
         "'idle.lora_a' gets no gradient: the loss does not depend on its layer"},
        {net, NULL, MIXT_OPTIONS(mixt_lora_options, .rank = 2),
         MIXT_OPTIONS(mixt_trainer_options, .freeze = "body.left"),
         "freeze 'body.left': a model with adapters (lora.rank) is frozen without it"},
        {net, NULL, MIXT_OPTIONS(mixt_lora_options, .rank = 0), MIXT_OPTIONS(mixt_trainer_options),
         "rank 0: must be at least 1"},
        {net, NULL, MIXT_OPTIONS(mixt_lora_options, .dropout = 1), MIXT_OPTIONS(mixt_trainer_options),
         "lora.dropout 1: must be from 0 to below 1"},
        {net, NULL, MIXT_OPTIONS(mixt_lora_options, .alpha = -1), MIXT_OPTIONS(mixt_trainer_options),
         "lora.alpha -1: must be finite and above 0"},
        {line, NULL, MIXT_OPTIONS(mixt_lora_options, .rank = 2), MIXT_OPTIONS(mixt_trainer_options),
         "lora.layers: 'all-linear' matches no linear layer"},
        {bad_parts, NULL, MIXT_OPTIONS(mixt_lora_options, .rank = 2), MIXT_OPTIONS(mixt_trainer_options),
         ".parts must add up to .features, 5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_trainer *t;
        mixt_status status = open_net(cases[i].fn, cases[i].user, &cases[i].lora, cases[i].options, &t);
        if (status == MIXT_OK || !strstr(mixt_error_text(), cases[i].words))
            fail_msg("case %zu: '%s' is not in: %s", i, cases[i].words, mixt_error_text());
    }
}

static int open_all(void **state)
{
    (void)state;
    temp_folder_make();
    mixt__rng rng = mixt__rng_start(11);
    for (int i = 0; i < BATCH * INPUTS; i++)
        samples[i] = mixt__rng_normal(&rng);
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % CLASSES;
    context = mixt_open(.device = "cpu", .threads = 2);
    return context ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    mixt_close(context);
    temp_folder_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_add_what_adapters_say),
        cmocka_unit_test(begins_as_without),
        cmocka_unit_test(only_adapters_change),
        cmocka_unit_test(gradients),
        cmocka_unit_test(dropout),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
