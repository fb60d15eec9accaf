/* Activations kept for the backward pass in a lower format: the forward pass does not change by a bit, gradients are
 * off by what the format rounds, memory falls by what arithmetic says, and every model trains with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/sanitized.h"

#include "graph/op.h"
#include "mixt/mixt.h"
#include "model/model.h"
#include "num/num.h"
#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/passes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

static mixt_policy *policy_of(mixt_dtype format, mixt_dtype keep)
{
    mixt_policy *policy;
    ok(mixt_policy_new(format, MIXT_DTYPE_NONE, &policy));
    ok(mixt_policy_set_keep(policy, keep));
    return policy;
}

/** Nodes of the compiled step that say so. */
static int64_t kept_nodes(const mixt_trainer *trainer, const char *reason)
{
    char *text;
    int64_t count = 0;
    for (int64_t i = 0; (i = mixt_plan_next(trainer, NULL, i)) >= 0; i++) {
        ok(mixt_plan_explain(trainer, i, &text));
        count += strstr(text, reason) != NULL;
        mixt_free(text);
    }
    return count;
}

static size_t activations(const mixt_trainer *trainer)
{
    mixt_memory memory;
    ok(mixt_trainer_memory(trainer, &memory));
    return memory.activations;
}

static double bytes_of(const mixt_plan_value *value)
{
    double bytes = (double)mixt_dtype_size(value->dtype);
    for (int i = 0; i < value->rank; i++)
        bytes *= (double)value->dims[i];
    return bytes;
}

/** Bytes that all values together have less while they wait, and the most bytes that one of them has when it is whole.
 *  Of formats with a scale. */
static double saved_bytes(const mixt_trainer *trainer, double *largest)
{
    double saved = 0;
    *largest = 0;
    for (int64_t i = 0; (i = mixt_plan_next(trainer, NULL, i)) >= 0; i++) {
        mixt_plan_node node;
        mixt_plan_value whole, rounded;
        ok(mixt_plan_node_at(trainer, i, &node));
        if (strcmp(node.op, "scaled_cast"))
            continue;
        ok(mixt_plan_input(trainer, i, 0, &whole));
        ok(mixt_plan_output(trainer, i, 0, &rounded));
        saved += bytes_of(&whole) - bytes_of(&rounded);
        *largest = fmax(*largest, bytes_of(&whole));
    }
    return saved;
}

/* ---- gradients of a perceptron ---- */

// The input of the last hidden layer is not worth keeping: its gradient comes first, when memory is at its most.
enum { BATCH = 48, WIDTH = 96, LAYERS = 6, KEPT = LAYERS - 2, CLASSES = 5, SLACK = 4096 };

static mixt_value perceptron(mixt_builder *b, mixt_value x)
{
    char name[16];
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "fc.%d", i);
        x = mixt_relu(b, mixt_linear(b, name, x, .features = WIDTH));
    }
    return mixt_linear(b, "out", x, .features = CLASSES);
}

typedef struct perceptron_run {
    float *grad[LAYERS]; // of weights, (WIDTH, WIDTH)
    float *weight[LAYERS + 1], *bias[LAYERS + 1];
    double loss;
    size_t activations;
    int64_t kept;
} perceptron_run;

static float *read_param(const mixt_trainer *t, const char *layer, const char *part, bool gradient)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        mixt_param_info info;
        ok(mixt_trainer_param(t, i, &info));
        if (strcmp(info.name, name))
            continue;
        float *values = calloc((size_t)info.count, sizeof *values);
        ok(gradient ? mixt_trainer_grad_get(t, i, values) : mixt_trainer_param_get(t, i, values));
        return values;
    }
    fail_msg("no parameter %s", name);
    return NULL;
}

static perceptron_run run_perceptron(mixt_dtype keep, const float *x, const int32_t *target)
{
    mixt_policy *policy = policy_of(MIXT_DTYPE_FP32, keep);
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_model *model = mixt_model_new(context, perceptron, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(model, .policy = policy, .batch = BATCH, .seed = 5);
    mixt_sample_shape shape = {.input_dtype = MIXT_DTYPE_FP32, .input_rank = 1, .input_dims = {WIDTH}, .targets = 1};
    perceptron_run r = {0};
    ok(mixt_trainer_compile_for(t, &shape));
    ok(mixt_trainer_backward(t, x, target, 1, &r.loss));
    for (int i = 0; i <= LAYERS; i++) {
        char layer[16];
        snprintf(layer, sizeof layer, i < LAYERS ? "fc.%d" : "out", i);
        if (i < LAYERS)
            r.grad[i] = read_param(t, layer, "weight", true);
        r.weight[i] = read_param(t, layer, "weight", false);
        r.bias[i] = read_param(t, layer, "bias", false);
    }
    r.activations = activations(t);
    r.kept = kept_nodes(t, "for the backward pass: keep of the policy");
    mixt_close(context);
    mixt_policy_free(policy);
    return r;
}

static void free_run(perceptron_run *r)
{
    for (int i = 0; i <= LAYERS; i++) {
        if (i < LAYERS)
            free(r->grad[i]);
        free(r->weight[i]);
        free(r->bias[i]);
    }
}

/** The same in FP64: activations h[i] before layer i, gradients d[i] of its result. */
typedef struct reference {
    double h[LAYERS + 1][BATCH][WIDTH], d[LAYERS + 1][BATCH][WIDTH];
} reference;

static void forward_layer(reference *r, const perceptron_run *run, int i)
{
    for (int n = 0; n < BATCH; n++)
        for (int o = 0; o < WIDTH; o++) {
            double sum = (double)run->bias[i][o];
            for (int k = 0; k < WIDTH; k++)
                sum += (double)run->weight[i][o * WIDTH + k] * r->h[i][n][k];
            r->h[i + 1][n][o] = sum > 0 ? sum : 0;
        }
}

static void softmax_gradient(reference *r, const perceptron_run *run, const int32_t *target)
{
    for (int n = 0; n < BATCH; n++) {
        double logits[CLASSES], total = 0;
        for (int o = 0; o < CLASSES; o++) {
            logits[o] = (double)run->bias[LAYERS][o];
            for (int k = 0; k < WIDTH; k++)
                logits[o] += (double)run->weight[LAYERS][o * WIDTH + k] * r->h[LAYERS][n][k];
            total += exp(logits[o]);
        }
        for (int o = 0; o < CLASSES; o++)
            r->d[LAYERS][n][o] = (exp(logits[o]) / total - (target[n] == o)) / BATCH;
    }
}

static void backward_layer(reference *r, const perceptron_run *run, int i)
{
    int outputs = i == LAYERS ? CLASSES : WIDTH;
    for (int n = 0; n < BATCH; n++)
        for (int k = 0; k < WIDTH; k++) {
            double sum = 0;
            for (int o = 0; o < outputs; o++)
                sum += (double)run->weight[i][o * WIDTH + k] * r->d[i][n][o];
            r->d[i - 1][n][k] = r->h[i][n][k] > 0 ? sum : 0;
        }
}

/** How far a kept activation may be off. */
static double rounding(mixt_dtype keep, double x, double largest)
{
    double u = mixt__dtype_roundoff(keep), scale = keep == MIXT_DTYPE_BF16 ? 1 : exp2(ceil(log2(largest / 448)));
    if (keep == MIXT_DTYPE_FP16)
        scale = exp2(ceil(log2(largest / 65504)));
    return fmax(u * fabs(x), scale * mixt__dtype_min_subnormal(keep));
}

/** Masks are exact and weights are whole, so that an error comes from the layer's own input alone. */
static void check_gradients(const reference *r, const perceptron_run *exact, const perceptron_run *kept,
                            mixt_dtype keep)
{
    for (int i = 1; i < LAYERS; i++) {
        double largest = 0, worst = 0;
        for (int n = 0; n < BATCH; n++)
            for (int k = 0; k < WIDTH; k++)
                largest = fmax(largest, r->h[i][n][k]);
        for (int o = 0; o < WIDTH; o++)
            for (int k = 0; k < WIDTH; k++) {
                double bound = 0, size = 0;
                for (int n = 0; n < BATCH; n++) {
                    bound += fabs(r->d[i][n][o]) * rounding(keep, r->h[i][n][k], largest);
                    size += fabs(r->d[i][n][o] * r->h[i][n][k]);
                }
                double off = fabs((double)kept->grad[i][o * WIDTH + k] - (double)exact->grad[i][o * WIDTH + k]);
                if (!(off <= bound + 0x1p-20 * size)) // and products of FP32 numbers, summed in another order
                    fail_msg("layer %d, weight %d, %d: off by %g, bound %g", i, o, k, off, bound);
                worst = fmax(worst, off);
            }
        assert_true((worst > 0) == (i <= KEPT)); // it is the kept value that is read
    }
}

static void gradients_are_off_by_what_the_format_rounds(void **state)
{
    (void)state;
    static float x[BATCH * WIDTH];
    static reference r;
    int32_t target[BATCH];
    uint32_t random = 1;
    for (int i = 0; i < BATCH * WIDTH; i++)
        x[i] = (float)((random = random * 1664525 + 1013904223) >> 8) * 0x1p-24f;
    for (int n = 0; n < BATCH; n++)
        target[n] = n % CLASSES;
    perceptron_run exact = run_perceptron(MIXT_DTYPE_NONE, x, target);
    assert_int_equal(exact.kept, 0);
    for (int n = 0; n < BATCH; n++)
        for (int k = 0; k < WIDTH; k++)
            r.h[0][n][k] = (double)x[n * WIDTH + k];
    for (int i = 0; i < LAYERS; i++)
        forward_layer(&r, &exact, i);
    softmax_gradient(&r, &exact, target);
    for (int i = LAYERS; i > 0; i--)
        backward_layer(&r, &exact, i);
    static const mixt_dtype formats[] = {MIXT_DTYPE_BF16, MIXT_DTYPE_FP16, MIXT_DTYPE_FP8_E4M3};
    for (int f = 0; f < 3; f++) {
        perceptron_run kept = run_perceptron(formats[f], x, target);
        assert_true(kept.loss == exact.loss);
        assert_true(kept.kept > 0);
        // KEPT inputs as they are kept; the last hidden layer's input, its result and the gradient of that
        double one = 4.0 * BATCH * WIDTH, share = (double)mixt_dtype_size(formats[f]) / 4;
        assert_true(fabs((double)exact.activations - (KEPT + 3) * one) < SLACK);
        assert_true(fabs((double)kept.activations - (KEPT * share + 3) * one) < SLACK);
        check_gradients(&r, &exact, &kept, formats[f]);
        free_run(&kept);
    }
    free_run(&exact);
}

/* ---- every model ---- */

typedef struct zoo_case {
    const char *model, *data;
    int64_t batch, seq;
    mixt_zoo_options sizes;
    bool saves; // in FP32, keeping lowers the memory of a step so small
    bool slow;  // trained with one format, compiled with the others
} zoo_case;

static const int64_t wide[] = {256, 256, 256, 256}, channels[] = {8, 8, 16, 16};

static const zoo_case zoo[] = {
    {.model = "mlp",
     .data = "digits:",
     .batch = 32,
     .sizes = {.hidden = wide, .hidden_count = 4, .norm = "batch", .dropout = 0.1f},
     .saves = true},
    {.model = "convnet",
     .data = "digits:",
     .batch = 4,
     .sizes = {.channels = channels, .channel_count = 4, .norm = "batch"}},
    {.model = "resnet", .data = "digits:", .batch = 2, .sizes = {.depth = 20}, .saves = true},
    {.model = "vgg",
     .data = "random:32x32x3",
     .batch = 2,
     .sizes = {.depth = 11, .hidden = wide, .hidden_count = 1, .dropout = 0.1f},
     .slow = true},
    {.model = "gpt",
     .data = "random:tokens",
     .batch = 2,
     .seq = 64,
     .sizes = {.layers = 4, .width = 64, .heads = 4, .dropout = 0.1f},
     .saves = true},
    {.model = "bert",
     .data = "random:tokens",
     .batch = 2,
     .seq = 64,
     .sizes = {.layers = 4, .width = 64, .heads = 4, .dropout = 0.1f},
     .saves = true},
    {.model = "bert_mlm",
     .data = "random:tokens",
     .batch = 2,
     .seq = 64,
     .sizes = {.layers = 4, .width = 64, .heads = 4},
     .saves = true},
    {.model = "lstm",
     .data = "random:tokens",
     .batch = 4,
     .seq = 32,
     .sizes = {.layers = 3, .width = 64, .dropout = 0.1f},
     .saves = true},
};

enum { STEPS = 3 };

typedef struct zoo_run {
    int steps;
    double loss[STEPS];
    size_t activations;
    int64_t kept;
    double saved, largest; // see saved_bytes
} zoo_run;

typedef struct how {
    int steps;
    bool no_fusion;
    size_t budget; // of activations, beyond which they are computed again
} how;

static zoo_run run_zoo(const zoo_case *c, mixt_dtype format, mixt_dtype keep, how how)
{
    mixt_policy *policy = policy_of(format, keep);
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_data *data = mixt_data_new(context, c->data, .samples = 64, .seq = c->seq, .classes = 20, .seed = 3);
    mixt_zoo_options sizes = c->sizes;
    sizes.struct_size = sizeof sizes;
    sizes.eps = sizes.rope_theta = MIXT_AUTO; // as the macro has them
    mixt_model *model = MIXT_MADE(mixt_model, mixt_zoo_model_with, context, c->model, data, &sizes);
    mixt_trainer *t = mixt_trainer_new(model, .policy = policy, .batch = c->batch, .seed = 7, .lr = 1e-3f,
                                       .optimizer = "sgd", .no_fusion = how.no_fusion, .recompute_budget = how.budget);
    zoo_run r = {.steps = how.steps};
    if (*mixt_error(context))
        fail_msg("%s: %s", c->model, mixt_error(context));
    ok(mixt_trainer_compile(t, data));
    for (int i = 0; i < how.steps; i++) {
        mixt_step step;
        ok(mixt_trainer_step(t, data, &step));
        r.loss[i] = step.loss;
    }
    r.activations = activations(t);
    r.saved = saved_bytes(t, &r.largest);
    r.kept = kept_nodes(t, "for the backward pass: keep of the policy");
    mixt_close(context);
    mixt_policy_free(policy);
    return r;
}

static void check_zoo(const zoo_case *c, mixt_dtype format, bool no_fusion)
{
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP8_E4M3, MIXT_DTYPE_BF16, MIXT_DTYPE_FP16};
    zoo_run whole = run_zoo(c, format, MIXT_DTYPE_NONE, (how){.steps = STEPS, .no_fusion = no_fusion});
    assert_int_equal(whole.kept, 0);
    for (int f = 0; f < 3; f++) {
        bool lower = mixt_dtype_size(formats[f]) < mixt_dtype_size(format);
        how how = {.steps = lower && (!c->slow || f == 0) ? STEPS : 0, .no_fusion = no_fusion};
        zoo_run kept = run_zoo(c, format, formats[f], how);
        if (kept.steps && kept.loss[0] != whole.loss[0])
            fail_msg("%s in %s, keep %s: the first loss is %.17g, else %.17g", c->model, mixt_dtype_name(format),
                     mixt_dtype_name(formats[f]), kept.loss[0], whole.loss[0]);
        for (int i = 1; i < kept.steps; i++) // another rounding of gradients, not another direction
            assert_true(isfinite(kept.loss[i]) && fabs(kept.loss[i] - whole.loss[i]) < 0.1);
        if (kept.activations > whole.activations || (kept.kept > 0) != (kept.activations < whole.activations))
            fail_msg("%s in %s, keep %s: %zu bytes with %lld nodes for it, else %zu", c->model, mixt_dtype_name(format),
                     mixt_dtype_name(formats[f]), kept.activations, (long long)kept.kept, whole.activations);
        assert_true(lower || kept.kept == 0);
        // All that waits does so at the end of the forward pass; later a widened one is there beside what is left.
        double fell = (double)whole.activations - (double)kept.activations;
        if (formats[f] != MIXT_DTYPE_BF16 && (fell > kept.saved || fell < kept.saved - kept.largest))
            fail_msg("%s in %s, keep %s: %g bytes less, though %g wait; %g is the largest", c->model,
                     mixt_dtype_name(format), mixt_dtype_name(formats[f]), fell, kept.saved, kept.largest);
        assert_true(!c->saves || format != MIXT_DTYPE_FP32 || kept.kept > 0);
    }
}

static void every_model_trains(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof zoo / sizeof zoo[0]; i++) {
        if (CASE_STRIDE == 1 || i % 2)
            check_zoo(&zoo[i], MIXT_DTYPE_FP32, false);
        if (CASE_STRIDE == 1 || i % 2 == 0)
            check_zoo(&zoo[i], MIXT_DTYPE_BF16, false);
    }
}

static void a_model_without_fusion_too(void **state)
{
    (void)state;
    check_zoo(&zoo[4], MIXT_DTYPE_FP32, true);
    check_zoo(&zoo[2], MIXT_DTYPE_BF16, true);
}

/** Recomputation changes no bit beside it either: it starts from whole values, never from rounded ones. */
static void recomputation_goes_with_it(void **state)
{
    (void)state;
    static const struct {
        int model; // batch norm and dropout, attention, LSTM
        mixt_dtype keep;
    } pairs[] = {{0, MIXT_DTYPE_FP8_E4M3}, {0, MIXT_DTYPE_BF16}, {4, MIXT_DTYPE_BF16}, {7, MIXT_DTYPE_FP8_E4M3}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const zoo_case *c = &zoo[pairs[i].model];
        zoo_run kept = run_zoo(c, MIXT_DTYPE_FP32, pairs[i].keep, (how){.steps = STEPS});
        how less = {.steps = STEPS, .budget = kept.activations - 1}; // something must be made again
        zoo_run both = run_zoo(c, MIXT_DTYPE_FP32, pairs[i].keep, less);
        assert_true(kept.kept > 0 && both.kept > 0);
        if (both.activations > less.budget)
            fail_msg("%s, keep %s: %zu bytes, the budget is %zu", c->model, mixt_dtype_name(pairs[i].keep),
                     both.activations, less.budget);
        for (int step = 0; step < STEPS; step++)
            assert_true(both.loss[step] == kept.loss[step]);
    }
}

/* ---- which values ---- */

static mixt_value branches(mixt_builder *b, mixt_value x)
{
    mixt_value part[3];
    x = mixt_gelu(b, mixt_linear(b, "fc1", x, .features = 16));
    x = mixt_layer_norm(b, "ln", mixt_add(b, x, mixt_linear(b, "fc2", x, .features = 16)));
    mixt_split(b, mixt_linear(b, "qkv", x, .features = 48), 3, part);
    x = mixt_attention(b, part[0], part[1], part[2], .heads = 2);
    return mixt_linear(b, "out", x, .features = 4);
}

/** Everything that may be kept is. */
static mixt__graph *compile(const mixt__policy *policy)
{
    mixt__model m = {.fn = branches, .loss = MIXT_LOSS_CROSS_ENTROPY};
    mixt__batch_spec batch = {.input_dtype = MIXT_DTYPE_FP32,
                              .target_dtype = MIXT_DTYPE_INT32,
                              .input = {3, {2, 8, 12}},
                              .target = {2, {2, 8}}};
    mixt__graph *source = NULL, *graph = NULL;
    mixt__compile_options options = {.policy = *policy, .backward = true, .keep_all = true};
    ok(mixt__model_build(&m, &batch, true, &source));
    ok(mixt__passes_run(source, &options, &graph));
    mixt__graph_free(source);
    return graph;
}

/** The node that rounds what a node of this layer and op made; NULL: none does. *count: how many there are. */
static const mixt__node *rounds(const mixt__graph *graph, const char *layer, const mixt__op *op, int *count)
{
    const mixt__node *found = NULL;
    *count = 0;
    for (int64_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == &mixt__op_scaled_cast && !strcmp(graph->nodes[i].layer, layer) &&
            graph->nodes[graph->values[graph->nodes[i].in[0]].producer].op == op) {
            found = &graph->nodes[i];
            ++*count;
        }
    return found;
}

static int all_rounds(const mixt__graph *graph)
{
    int count = 0;
    for (int64_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].op == &mixt__op_scaled_cast;
    return count;
}

/** q, k and v are windows on one product: it is kept once, and the gradient reads windows on what it is widened to. */
static void views_are_kept_as_one(void **state)
{
    (void)state;
    mixt__policy policy = {.forward = MIXT_DTYPE_BF16,
                           .backward = MIXT_DTYPE_BF16,
                           .keep = MIXT_DTYPE_FP8_E4M3,
                           .keep_origin = "p.yaml:2"};
    mixt__graph *g = compile(&policy);
    int count;
    const mixt__node *n = rounds(g, "qkv", &mixt__op_matmul, &count);
    assert_int_equal(count, 1);
    assert_int_equal(g->values[n->out[0]].dtype, MIXT_DTYPE_FP8_E4M3);
    assert_string_equal(n->why, "kept in fp8_e4m3 for the backward pass: p.yaml:2");
    assert_false(n->backward);
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *reader = &g->nodes[i];
        if (reader->op != &mixt__op_attention_grad)
            continue;
        int32_t base = mixt__value_base(g, reader->in[0]);
        const mixt__node *widens = &g->nodes[g->values[base].producer];
        assert_true(base == mixt__value_base(g, reader->in[1]) && base == mixt__value_base(g, reader->in[2]));
        assert_true(widens->backward && widens->in[0] == n->out[0] && widens->in[1] == n->out[1]);
        assert_int_equal(g->values[base].dtype, MIXT_DTYPE_BF16);
        assert_int_equal(g->values[reader->in[4]].dtype, MIXT_DTYPE_FP32); // the statistics are what they were
        assert_false(g->nodes[g->values[reader->in[4]].producer].backward);
    }
    mixt__graph_free(g);
}

/** A rule is about what its layer saves; a value that another layer saves whole stays. */
static void a_rule_keeps_what_its_layer_saves(void **state)
{
    (void)state;
    mixt__policy_rule rule = {.layer = "out",
                              .forward = MIXT_DTYPE_BF16,
                              .backward = MIXT_DTYPE_BF16,
                              .keep = MIXT_DTYPE_FP8_E4M3,
                              .origin = "policy.yaml:7"};
    mixt__policy policy = {.forward = MIXT_DTYPE_BF16, .backward = MIXT_DTYPE_BF16, .rules = &rule, .rule_count = 1};
    mixt__graph *g = compile(&policy); // attention saves its result too, for its own gradient
    assert_int_equal(all_rounds(g), 0);
    mixt__graph_free(g);
    int count;
    rule.layer = "qkv"; // reads what ln makes; ln itself saves what it reads
    rule.op = "matmul";
    g = compile(&policy);
    const mixt__node *n = rounds(g, "ln", &mixt__op_layer_norm, &count);
    assert_true(count == 1 && all_rounds(g) == 1);
    assert_string_equal(n->why, "kept in fp8_e4m3 for the backward pass: policy.yaml:7");
    mixt__graph_free(g);
    policy.keep = MIXT_DTYPE_FP8_E4M3; // and the other way round: all but one
    rule.keep = MIXT_DTYPE_FP32;
    g = compile(&policy);
    rounds(g, "ln", &mixt__op_layer_norm, &count);
    assert_true(count == 0 && all_rounds(g) > 3);
    mixt__graph_free(g);
}

static void a_format_that_is_not_lower_changes_nothing(void **state)
{
    (void)state;
    static const mixt_dtype same[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    mixt__policy policy = {.forward = MIXT_DTYPE_BF16, .backward = MIXT_DTYPE_BF16};
    mixt__graph *plain = compile(&policy);
    for (int i = 0; i < 3; i++) {
        policy.keep = same[i];
        mixt__graph *g = compile(&policy);
        assert_int_equal(g->node_count, plain->node_count);
        mixt__graph_free(g);
    }
    mixt__graph_free(plain);
}

static void a_forward_pass_alone_keeps_nothing(void **state)
{
    (void)state;
    mixt__model m = {.fn = branches, .loss = MIXT_LOSS_CROSS_ENTROPY};
    mixt__batch_spec batch = {.input_dtype = MIXT_DTYPE_FP32,
                              .target_dtype = MIXT_DTYPE_INT32,
                              .input = {3, {2, 8, 12}},
                              .target = {2, {2, 8}}};
    mixt__graph *source = NULL, *graph = NULL;
    mixt__compile_options options = {.policy = mixt__policy_of(MIXT_DTYPE_FP32), .keep_all = true};
    options.policy.keep = MIXT_DTYPE_FP8_E4M3;
    ok(mixt__model_build(&m, &batch, false, &source));
    ok(mixt__passes_run(source, &options, &graph));
    assert_int_equal(all_rounds(graph), 0);
    mixt__graph_free(source);
    mixt__graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_off_by_what_the_format_rounds),
        cmocka_unit_test(every_model_trains),
        cmocka_unit_test(a_model_without_fusion_too),
        cmocka_unit_test(recomputation_goes_with_it),
        cmocka_unit_test(views_are_kept_as_one),
        cmocka_unit_test(a_rule_keeps_what_its_layer_saves),
        cmocka_unit_test(a_format_that_is_not_lower_changes_nothing),
        cmocka_unit_test(a_forward_pass_alone_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
