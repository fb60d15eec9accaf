/* Values that a loss compares with real numbers are made in FP32 under every policy: predictions are not rounded to
 * eight bits, training in BF16 fits as well as in FP32, and models of classes keep their graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/op.h"
#include "mixt/mixt.h"
#include "model/model.h"
#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/passes.h"

#include <math.h>
#include <string.h>

/* ---- graphs ---- */

static mixt_value linear_output(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "out", mixt_relu(b, mixt_linear(b, "fc", x, .features = 16)), .features = 4);
}

static mixt_value through_views(mixt_builder *b, mixt_value x)
{
    return mixt_reshape(b, linear_output(b, x), 2, (int64_t[]){8, 4});
}

static mixt_value through_an_activation(mixt_builder *b, mixt_value x)
{
    return mixt_sigmoid(b, linear_output(b, x));
}

static mixt_value rounded_by_hand(mixt_builder *b, mixt_value x)
{
    return mixt_cast(b, linear_output(b, x), MIXT_DTYPE_BF16);
}

static mixt_value convolved(mixt_builder *b, mixt_value x)
{
    x = mixt_reshape(b, x, 4, (int64_t[]){8, 2, 2, 3});
    x = mixt_conv2d(b, "fc", x, .channels = 8, .kernel = 1);
    return mixt_reshape(b, mixt_conv2d(b, "out", x, .channels = 1, .kernel = 1), 2, (int64_t[]){8, 4});
}

static mixt__graph *compile(mixt_model_fn fn, mixt_loss loss, const mixt__policy *policy)
{
    bool classes = loss == MIXT_LOSS_CROSS_ENTROPY;
    mixt__model m = {.fn = fn, .loss = loss};
    mixt__batch_spec batch = {.input_dtype = MIXT_DTYPE_FP32,
                              .target_dtype = classes ? MIXT_DTYPE_INT32 : MIXT_DTYPE_FP32,
                              .input = {2, {8, 12}},
                              .target = {classes ? 1 : 2, {8, 4}}};
    mixt__graph *source = NULL, *graph = NULL;
    mixt__compile_options options = {.policy = *policy, .backward = true};
    assert_int_equal(mixt__model_build(&m, &batch, true, &source), MIXT_OK);
    assert_int_equal(mixt__passes_run(source, &options, &graph), MIXT_OK);
    mixt__graph_free(source);
    return graph;
}

/** The node of layer "out" that does matrix work forward, or makes the gradient of its weight. */
static const mixt__node *product(const mixt__graph *g, bool backward)
{
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        if (n->op->matrix_work && n->backward == backward && !strcmp(n->layer, "out"))
            return n;
    }
    fail_msg("no matrix work in layer 'out'");
    return NULL;
}

/** Whether the layer's product and all that comes after it on the way to the loss give FP32. */
static bool output_is_full(const mixt__graph *g)
{
    for (int64_t i = product(g, false) - g->nodes; i < g->node_count; i++)
        if (!g->nodes[i].backward && g->values[g->nodes[i].out[0]].dtype != MIXT_DTYPE_FP32)
            return false;
    return true;
}

static void the_output_is_fp32_and_its_operands_stay_low(void **state)
{
    (void)state;
    static const mixt_model_fn fns[] = {linear_output, through_views, through_an_activation};
    static const mixt_dtype formats[] = {MIXT_DTYPE_BF16, MIXT_DTYPE_FP16};
    for (int f = 0; f < 3; f++)
        for (int k = 0; k < 4; k++) {
            mixt_dtype low = formats[k % 2];
            mixt__policy policy = mixt__policy_of(low);
            mixt__graph *g = compile(fns[f], k < 2 ? MIXT_LOSS_MSE : MIXT_LOSS_BCE, &policy);
            const mixt__node *n = product(g, false), *back = product(g, true);
            char *text;
            assert_true(output_is_full(g));
            assert_int_equal(g->values[n->in[0]].dtype, low);
            assert_int_equal(g->values[n->in[1]].dtype, low);
            assert_int_equal(n->arithmetic, low);
            assert_int_equal(back->arithmetic, low); // the gradient is cast
            assert_int_equal(mixt__node_explain(g, n - g->nodes, &text), MIXT_OK);
            assert_non_null(strstr(text, "default of the policy; the loss reads it: fp32"));
            mixt_free(text);
            assert_int_equal(mixt__node_explain(g, back - g->nodes, &text), MIXT_OK);
            assert_null(strstr(text, "the loss reads it"));
            mixt_free(text);
            mixt__graph_free(g);
        }
}

static void a_convolution_takes_fp32_for_it(void **state)
{
    (void)state;
    mixt__policy policy = mixt__policy_of(MIXT_DTYPE_BF16);
    mixt__graph *g = compile(convolved, MIXT_LOSS_MSE, &policy);
    char *text;
    assert_true(output_is_full(g));
    assert_int_equal(mixt__node_explain(g, product(g, false) - g->nodes, &text), MIXT_OK);
    assert_string_equal(text, "fp32: the loss reads it");
    mixt_free(text);
    mixt__graph_free(g);
}

static void a_cast_by_hand_and_classes_stay(void **state)
{
    (void)state;
    mixt__policy policy = mixt__policy_of(MIXT_DTYPE_BF16);
    mixt__graph *g = compile(rounded_by_hand, MIXT_LOSS_MSE, &policy);
    assert_int_equal(g->values[product(g, false)->out[0]].dtype, MIXT_DTYPE_BF16);
    assert_false(((const mixt__matmul_attrs *)product(g, false)->attrs)->wide);
    mixt__graph_free(g);
    g = compile(linear_output, MIXT_LOSS_CROSS_ENTROPY, &policy);
    assert_int_equal(g->values[product(g, false)->out[0]].dtype, MIXT_DTYPE_BF16);
    assert_false(((const mixt__matmul_attrs *)product(g, false)->attrs)->wide);
    mixt__graph_free(g);
}

/* ---- training ---- */

enum { ROWS = 512, BATCH = 64, STEPS = 1000, SEEDS = 5 };

typedef struct regression {
    const char *name;
    double (*y)(double a, double b);
    double noise;
    mixt_model_fn fn;
    float lr;
} regression;

static mixt_value line(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "out", x, .features = 1);
}

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_gelu(b, mixt_linear(b, "fc", x, .features = 32));
    return mixt_linear(b, "out", x, .features = 1);
}

static double far_from_zero(double a, double b)
{
    return 300 + 50 * a - 20 * b;
}

static double wide_range(double a, double b)
{
    return 400 * a + 150 * a * b;
}

static double small_range(double a, double b)
{
    return 1 + 0.01 * a + 0.02 * sin(2 * b);
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static double gauss(uint64_t *state)
{
    double u = uniform(state), v = uniform(state);
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

typedef struct samples {
    float x[ROWS][2], y[ROWS];
} samples;

static void make_samples(const regression *r, uint64_t seed, samples *s)
{
    uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
    for (int i = 0; i < ROWS; i++) {
        double a = 4 * uniform(&state) - 2, b = 4 * uniform(&state) - 2;
        s->x[i][0] = (float)a;
        s->x[i][1] = (float)b;
        s->y[i] = (float)(r->y(a, b) + r->noise * gauss(&state));
    }
}

/** Mean squared error over the training samples after training, from predictions. */
static double fit(const regression *r, const samples *s, const char *precision, uint64_t seed)
{
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_trainer *t =
        mixt_trainer_new(mixt_model_new(context, r->fn, MIXT_LOSS_MSE), .precision = precision, .lr = r->lr,
                         .batch = BATCH, .seed = seed, .schedule = "cosine", .total_steps = STEPS, .eval_batch = ROWS);
    mixt_sample_shape shape = {.input_dtype = MIXT_DTYPE_FP32, .input_rank = 1, .input_dims = {2}, .targets = 1};
    static float predicted[ROWS];
    assert_int_equal(mixt_trainer_compile_for(t, &shape), MIXT_OK);
    for (int i = 0; i < STEPS; i++) {
        int first = i * BATCH % ROWS;
        if (mixt_trainer_step_on(t, s->x[first], s->y + first, NULL) != MIXT_OK)
            fail_msg("%s", mixt_error(context));
    }
    if (mixt_trainer_predict(t, s->x, ROWS, predicted) != MIXT_OK)
        fail_msg("%s", mixt_error(context));
    double sum = 0;
    for (int i = 0; i < ROWS; i++)
        sum += pow((double)predicted[i] - s->y[i], 2) / ROWS;
    mixt_close(context);
    return sum;
}

/** Over five seeds, the error of training in a low format is that of FP32 within a tenth. */
static void low_formats_fit_as_well(void **state)
{
    (void)state;
    static const regression sets[] = {
        {"far from zero", far_from_zero, 0.5, line, 3.0f},
        {"wide range", wide_range, 20, net, 0.5f},
        {"small range", small_range, 0.01, net, 0.01f},
    };
    static samples s;
    for (size_t r = 0; r < sizeof sets / sizeof sets[0]; r++) {
        double full = 0, bf16 = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            make_samples(&sets[r], seed, &s);
            full += fit(&sets[r], &s, "fp32", seed) / SEEDS;
            bf16 += fit(&sets[r], &s, "bf16", seed) / SEEDS;
        }
        print_message("%s: MSE %g in FP32, %g in BF16 (%+.1f%%)\n", sets[r].name, full, bf16, 100 * (bf16 / full - 1));
        assert_true(isfinite(full) && full < 1.5 * sets[r].noise * sets[r].noise);
        assert_true(bf16 < 1.1 * full);
    }
}

/** Predictions near 300 lie 2 apart in BF16; in FP32 nearly all of them differ. */
static void predictions_are_not_rounded(void **state)
{
    (void)state;
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, line, MIXT_LOSS_MSE), .precision = "bf16", .batch = 4);
    mixt_sample_shape shape = {.input_dtype = MIXT_DTYPE_FP32, .input_rank = 1, .input_dims = {2}, .targets = 1};
    float inputs[64][2], outputs[64];
    assert_int_equal(mixt_trainer_compile_for(t, &shape), MIXT_OK);
    assert_int_equal(mixt_trainer_param_set(t, 0, (float[]){1, 0}), MIXT_OK);     // out.weight
    assert_int_equal(mixt_trainer_param_set(t, 1, (float[]){300.125f}), MIXT_OK); // out.bias
    for (int i = 0; i < 64; i++) {
        inputs[i][0] = (float)i / 64;
        inputs[i][1] = 0;
    }
    assert_int_equal(mixt_trainer_predict(t, inputs, 64, outputs), MIXT_OK);
    for (int i = 0; i < 64; i++)
        assert_true(outputs[i] == 300.125f + (float)i / 64);
    mixt_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_output_is_fp32_and_its_operands_stay_low),
        cmocka_unit_test(a_convolution_takes_fp32_for_it),
        cmocka_unit_test(a_cast_by_hand_and_classes_stay),
        cmocka_unit_test(predictions_are_not_rounded),
        cmocka_unit_test(low_formats_fit_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
