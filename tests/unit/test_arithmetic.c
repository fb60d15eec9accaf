/* The arithmetic of a step: every product of every model of the zoo is made in the policy's format, those of the
 * backward pass and of fused forms too, with one format for both passes and with two. Needs no device: it reads the
 * compiled graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/op.h"
#include "models/models.h"
#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/passes.h"

#include <string.h>

static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_TF32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
enum { FORMATS = sizeof formats / sizeof formats[0], BATCH = 4 };

/** Fused forms as they are made for a CPU, for a GPU, and none. */
static const unsigned fused[] = {MIXT_FUSED_LOSS | MIXT_FUSED_RELU | MIXT_FUSED_ROW_SUMS | MIXT_FUSED_HEAD,
                                 MIXT_FUSED_MATMUL | MIXT_FUSED_NORM | MIXT_FUSED_BATCH_NORM | MIXT_FUSED_LOSS, 0};
enum { FUSED = sizeof fused / sizeof fused[0] };

/** Data that the model takes: small images or clips, short texts or recordings. */
static mixt_data_info data_for(const mixt__zoo_entry *entry)
{
    mixt_data_info info = {.target_dtype = MIXT_DTYPE_INT32};
    if (entry->input == MIXT_MODEL_TOKENS) {
        info.input_dtype = MIXT_DTYPE_INT32;
        info.input_rank = 1;
        info.input_dims[0] = info.target_elements = 16;
        info.classes = 64;
        info.target = MIXT_TARGET_TOKENS;
        return info;
    }
    if (entry->input == MIXT_MODEL_SENTENCES) {
        static const mixt_data_array arrays[] = {
            {.name = "source"}, {.name = "source.length"}, {.name = "previous"}, {.name = "target", .target = true}};
        info.input_dtype = MIXT_DTYPE_INT32;
        info.input_rank = 1;
        info.input_dims[0] = info.target_elements = 16;
        info.classes = 64;
        info.target = MIXT_TARGET_TOKENS;
        info.arrays = arrays;
        info.array_count = 4;
        return info;
    }
    info.input_dtype = MIXT_DTYPE_FP32;
    static const int64_t image[] = {64, 64, 3}, clip[] = {16, 32, 32, 3}, recording[] = {64, 40};
    bool clips = entry->input == MIXT_MODEL_CLIPS, frames = entry->input == MIXT_MODEL_FRAMES;
    info.input_rank = clips ? 4 : frames ? 2 : 3;
    memcpy(info.input_dims, clips ? clip : frames ? recording : image, (size_t)info.input_rank * sizeof(int64_t));
    info.classes = 10;
    info.target = MIXT_TARGET_CLASS;
    info.target_elements = 1;
    if (entry->input == MIXT_MODEL_CAPTIONS) {
        static const mixt_data_array arrays[] = {{.name = "picture"},
                                                 {.name = "caption"},
                                                 {.name = "caption.length"},
                                                 {.name = "caption.mask"},
                                                 {.name = "target", .target = true}};
        info.arrays = arrays;
        info.array_count = 5;
    }
    return info;
}

static mixt__graph *build(const mixt__zoo_entry *entry)
{
    mixt_data_info info = data_for(entry);
    mixt__model_sizes sizes = {0};
    mixt__model model;
    mixt__graph *graph = NULL;
    mixt__batch_spec spec = {.input_dtype = info.input_dtype, .target_dtype = info.target_dtype};
    spec.input = (mixt__shape){info.input_rank + 1, {BATCH}};
    memcpy(spec.input.dims + 1, info.input_dims, (size_t)info.input_rank * sizeof(int64_t));
    spec.target = (mixt__shape){info.target == MIXT_TARGET_TOKENS ? 2 : 1, {BATCH, info.target_elements}};
    if (entry->input == MIXT_MODEL_SENTENCES) {
        strcpy(spec.input_name, "source");
        spec.more[0] = (mixt__array){.name = "source.length", .dtype = MIXT_DTYPE_INT32, .shape = {1, {BATCH}}};
        spec.more[1] = (mixt__array){.name = "previous", .dtype = MIXT_DTYPE_INT32, .shape = {2, {BATCH, 16}}};
        spec.more_count = 2;
    } else if (entry->input == MIXT_MODEL_CAPTIONS) {
        strcpy(spec.input_name, "picture");
        spec.more[0] = (mixt__array){.name = "caption", .dtype = MIXT_DTYPE_INT32, .shape = {2, {BATCH, 16}}};
        spec.more[1] = (mixt__array){.name = "caption.length", .dtype = MIXT_DTYPE_INT32, .shape = {1, {BATCH}}};
        spec.more[2] = (mixt__array){.name = "caption.mask", .dtype = MIXT_DTYPE_FP32, .shape = {2, {BATCH, 16}}};
        spec.more_count = 3;
    }
    if (mixt__zoo_model(entry->name, &info, &sizes, &model) != MIXT_OK ||
        mixt__model_build(&model, &spec, true, &graph) != MIXT_OK)
        fail_msg("%s: %s", entry->name, mixt_error_text());
    return graph;
}

/** Nodes of matrix work in one direction; each must multiply in `format`. */
static int64_t count_products(const char *model, const mixt__graph *graph, mixt_dtype format, bool backward)
{
    int64_t products = 0;
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        if (!n->op->matrix_work || n->backward != backward)
            continue;
        products++;
        if (n->arithmetic != format)
            fail_msg("%s in %s: node %lld, %s of layer '%s'%s, multiplies in %s", model, mixt_dtype_name(format),
                     (long long)i, n->op->name, n->layer, backward ? " (backward)" : "",
                     mixt_dtype_name(n->arithmetic));
    }
    return products;
}

/** Compiles a model with one pair of formats and one set of forms, and looks at its products. */
static void check_pair(const char *model, const mixt__graph *graph, mixt_dtype forward, mixt_dtype backward,
                       unsigned forms)
{
    mixt__compile_options options = {.policy = {.forward = forward, .backward = backward},
                                     .fused = forms,
                                     .backward = true,
                                     .logits_limit = 4096}; // of a text: two parts and more
    mixt__graph *typed;
    if (mixt__passes_run(graph, &options, &typed) != MIXT_OK)
        fail_msg("%s: %s", model, mixt_error_text());
    int64_t there = count_products(model, typed, forward, false);
    assert_true(there > 1);
    assert_true(count_products(model, typed, backward, true) > there); // of the data and of the weights
    mixt__graph_free(typed);
}

static void every_product_has_the_policys_arithmetic(void **state)
{
    (void)state;
    for (const mixt__zoo_entry *entry = mixt__zoo; entry->name; entry++) {
        if (entry->input == MIXT_MODEL_PAIRS ||
            entry->input == MIXT_MODEL_TEXTS) // takes several arrays, which this test does not make
            continue;
        mixt__graph *graph = build(entry);
        for (int f = 0; f < FORMATS * FORMATS * FUSED; f++)
            check_pair(entry->name, graph, formats[f / FUSED / FORMATS], formats[f / FUSED % FORMATS],
                       fused[f % FUSED]);
        mixt__graph_free(graph);
    }
}

static bool has_op(const mixt__graph *graph, const mixt__op *op, mixt_dtype arithmetic)
{
    for (int64_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == op && graph->nodes[i].arithmetic == arithmetic)
            return true;
    return false;
}

static mixt__graph *compile(const char *model, unsigned forms, const mixt__policy *policy)
{
    const mixt__zoo_entry *entry;
    mixt__graph *typed = NULL;
    assert_int_equal(mixt__model_find(model, &entry), MIXT_OK);
    mixt__graph *graph = build(entry);
    mixt__compile_options options = {.policy = *policy, .fused = forms, .backward = true};
    if (mixt__passes_run(graph, &options, &typed) != MIXT_OK)
        fail_msg("%s: %s", model, mixt_error_text());
    mixt__graph_free(graph);
    return typed;
}

/** The test above would pass over forms that are not made. */
static void fused_forms_are_among_them(void **state)
{
    (void)state;
    mixt__policy tf32 = {.forward = MIXT_DTYPE_TF32, .backward = MIXT_DTYPE_TF32};
    mixt__graph *mlp = compile("mlp", fused[0], &tf32), *lstm = compile("lstm", fused[1], &tf32),
                *gpt = compile("gpt", fused[1], &tf32), *convnet = compile("convnet", fused[1], &tf32);
    assert_true(has_op(mlp, &mixt__op_head_step, MIXT_DTYPE_TF32));
    assert_true(has_op(lstm, &mixt__op_lstm_grad, MIXT_DTYPE_TF32));
    assert_true(has_op(gpt, &mixt__op_attention_grad, MIXT_DTYPE_TF32));
    assert_true(has_op(convnet, &mixt__op_conv2d_grad_src, MIXT_DTYPE_TF32));
    assert_true(has_op(convnet, &mixt__op_conv2d_grad_weight, MIXT_DTYPE_TF32));
    mixt__graph_free(mlp);
    mixt__graph_free(lstm);
    mixt__graph_free(gpt);
    mixt__graph_free(convnet);
}

static void a_rule_reaches_the_gradients_of_its_layer(void **state)
{
    (void)state;
    const mixt__policy_rule rule = {.layer = "fc.1", .forward = MIXT_DTYPE_TF32, .backward = MIXT_DTYPE_TF32};
    mixt__policy policy = {.forward = MIXT_DTYPE_FP32, .backward = MIXT_DTYPE_FP32, .rules = &rule, .rule_count = 1};
    mixt__graph *mlp = compile("mlp", 0, &policy);
    int64_t products = 0;
    for (int64_t i = 0; i < mlp->node_count; i++) {
        const mixt__node *n = &mlp->nodes[i];
        bool ruled = n->op->matrix_work && !strcmp(n->layer, "fc.1");
        assert_int_equal(n->arithmetic, ruled ? MIXT_DTYPE_TF32 : MIXT_DTYPE_FP32);
        products += ruled;
    }
    assert_int_equal(products, 3);
    mixt__graph_free(mlp);
}

/* ---- FP8 ---- */

/** A product of two numbers of 8 bits, each with its scale: E5M2 is what flows backwards, the rest E4M3. */
static void check_operands(const mixt__graph *graph, const mixt__node *n)
{
    for (int k = 0; k < 2; k++) {
        const mixt__value *v = &graph->values[n->in[k]];
        const mixt__node *cast = &graph->nodes[v->producer];
        assert_int_equal(v->scales.kind, MIXT_SCALE_TENSOR);
        assert_int_equal(v->scales.value, cast->out[1]);
        assert_ptr_equal(cast->op, &mixt__op_scaled_cast);
        bool backward = n->backward && graph->values[cast->in[0]].role != MIXT_ROLE_PARAM;
        assert_int_equal(v->dtype, backward ? MIXT_DTYPE_FP8_E5M2 : MIXT_DTYPE_FP8_E4M3);
    }
    assert_int_equal(graph->values[n->out[0]].dtype, MIXT_DTYPE_BF16);
}

/** Each value is rounded to a format once. */
static void check_casts(const mixt__graph *graph)
{
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int64_t j = 0; graph->nodes[i].op == &mixt__op_scaled_cast && j < i; j++) {
            const mixt__node *a = &graph->nodes[i], *b = &graph->nodes[j];
            assert_false(b->op == a->op && b->in[0] == a->in[0] &&
                         graph->values[b->out[0]].dtype == graph->values[a->out[0]].dtype);
        }
}

/** By layer, of a GPT: linear layers of a block both ways, their weights' gradients in BF16, the head in BF16. */
static void fp8_is_for_the_linear_layers_inside(void **state)
{
    (void)state;
    mixt__policy fp8 = mixt__policy_of(MIXT_DTYPE_FP8_E4M3);
    for (int forms = 0; forms < FUSED; forms++) {
        mixt__graph *gpt = compile("gpt", fused[forms], &fp8);
        int64_t forward = 0, backward = 0, weights = 0, head = 0;
        for (int64_t i = 0; i < gpt->node_count; i++) {
            const mixt__node *n = &gpt->nodes[i];
            bool is_head = !strcmp(n->layer, "head");
            if (n->op != &mixt__op_matmul) {
                assert_true(!n->op->matrix_work || n->arithmetic == MIXT_DTYPE_BF16); // attention
                continue;
            }
            bool weight = gpt->values[n->out[0]].role == MIXT_ROLE_GRAD;
            assert_true(strlen(n->why) > 0);
            head += is_head;
            weights += !is_head && weight;
            if (is_head || weight) {
                assert_int_equal(n->arithmetic, MIXT_DTYPE_BF16);
                continue;
            }
            assert_int_equal(n->arithmetic, n->backward ? MIXT_DTYPE_FP8_E5M2 : MIXT_DTYPE_FP8_E4M3);
            check_operands(gpt, n);
            forward += !n->backward;
            backward += n->backward;
        }
        assert_true(forward > 4 && forward == backward && weights == forward && head >= 3);
        check_casts(gpt);
        mixt__graph_free(gpt);
    }
}

static const mixt__node *forward_product(const mixt__graph *graph, const char *layer)
{
    for (int64_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op->matrix_work && !graph->nodes[i].backward && !strcmp(graph->nodes[i].layer, layer))
            return &graph->nodes[i];
    fail_msg("no product in layer '%s'", layer);
    return NULL;
}

/** Sizes that the units cannot take stay in BF16 even where a rule names them; first and last layers go by a rule. */
static void fp8_goes_where_it_can(void **state)
{
    (void)state;
    mixt__policy fp8 = mixt__policy_of(MIXT_DTYPE_FP8_E4M3);
    mixt__policy_rule rule = {.layer = "head", .forward = MIXT_DTYPE_FP8_E4M3, .backward = MIXT_DTYPE_FP8_E5M2};
    mixt__policy ruled = mixt__policy_of(MIXT_DTYPE_BF16);
    ruled.rules = &rule;
    ruled.rule_count = 1;
    mixt__graph *gpt = compile("gpt", 0, &ruled), *mlp = compile("mlp", 0, &fp8),
                *convnet = compile("convnet", 0, &fp8);
    assert_int_equal(forward_product(gpt, "head")->arithmetic, MIXT_DTYPE_FP8_E4M3);
    const mixt__node *last = forward_product(mlp, "fc.2"), *conv = forward_product(convnet, "conv1");
    assert_int_equal(last->arithmetic, MIXT_DTYPE_BF16);
    assert_non_null(strstr(last->why, "multiples of 16"));
    assert_int_equal(forward_product(mlp, "fc.0")->arithmetic, MIXT_DTYPE_BF16);
    assert_non_null(strstr(forward_product(mlp, "fc.0")->why, "first layer"));
    assert_int_equal(forward_product(mlp, "fc.1")->arithmetic, MIXT_DTYPE_FP8_E4M3);
    assert_int_equal(conv->arithmetic, MIXT_DTYPE_BF16);
    assert_non_null(strstr(conv->why, "no FP8 kernels"));
    mixt__graph_free(gpt);
    mixt__graph_free(mlp);
    mixt__graph_free(convnet);
}

/** Of the inputs of products, the first value behind a chain of views. */
static const mixt__value *origin(const mixt__graph *graph, int32_t value)
{
    const mixt__value *v = &graph->values[value];
    while (v->producer >= 0 && graph->nodes[v->producer].op->view)
        v = &graph->values[graph->nodes[v->producer].in[0]];
    return v;
}

/** Products of the backward pass that read a parameter in memory of its own, and those that read it through a cast. */
static void count_params(const mixt__graph *graph, int *own, int *cast)
{
    *own = *cast = 0;
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        for (int k = 0; n->backward && n->op->matrix_work && k < n->in_count; k++) {
            const mixt__value *v = origin(graph, n->in[k]);
            const mixt__node *p = v->producer < 0 ? NULL : &graph->nodes[v->producer];
            *own += v->role == MIXT_ROLE_PARAM;
            *cast += p && p->in_count == 1 && origin(graph, p->in[0])->role == MIXT_ROLE_PARAM;
        }
    }
}

static void a_parameter_is_cast_only_where_it_has_no_copy(void **state)
{
    (void)state;
    static const struct {
        mixt_dtype forward, backward;
        bool cast;
    } pairs[] = {
        {MIXT_DTYPE_BF16, MIXT_DTYPE_BF16, false}, {MIXT_DTYPE_BF16, MIXT_DTYPE_FP32, false},
        {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16, false}, {MIXT_DTYPE_BF16, MIXT_DTYPE_TF32, false},
        {MIXT_DTYPE_FP16, MIXT_DTYPE_BF16, true}, // one working copy a parameter: the second format is cast
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        mixt__policy policy = {.forward = pairs[i].forward, .backward = pairs[i].backward};
        mixt__graph *gpt = compile("gpt", 0, &policy);
        int own, cast;
        count_params(gpt, &own, &cast);
        assert_int_equal(pairs[i].cast ? own : cast, 0);
        assert_true((pairs[i].cast ? cast : own) > 4);
        mixt__graph_free(gpt);
    }
}

/** Between products gradients lose nothing that the backward format holds: an FP32 backward pass of a BF16 forward
 *  pass adds them up in FP32, not in the format of the activations. */
static void gradients_flow_in_the_backward_format(void **state)
{
    (void)state;
    mixt__policy policy = {.forward = MIXT_DTYPE_BF16, .backward = MIXT_DTYPE_FP32};
    mixt__graph *gpt = compile("gpt", fused[1], &policy);
    int seen = 0;
    for (int64_t i = 0; i < gpt->node_count; i++) {
        const mixt__node *n = &gpt->nodes[i];
        for (int o = 0; n->backward && o < n->out_count; o++)
            if (gpt->values[n->out[o]].dtype != MIXT_DTYPE_FP32) {
                assert_ptr_equal(n->op, &mixt__op_cross_entropy_step); // takes and gives logits
                seen++;
            }
    }
    assert_int_equal(seen, 1);
    mixt__graph_free(gpt);
}

/** Large logits are made in parts whatever the formats of the two passes. */
static void logits_are_split_with_formats_apart(void **state)
{
    (void)state;
    const mixt__zoo_entry *entry;
    assert_int_equal(mixt__model_find("gpt", &entry), MIXT_OK);
    mixt__graph *graph = build(entry);
    for (int f = 0; f < FORMATS * FORMATS; f++) {
        mixt__compile_options options = {.policy = {.forward = formats[f / FORMATS], .backward = formats[f % FORMATS]},
                                         .fused = fused[1],
                                         .backward = true,
                                         .logits_limit = 4096};
        mixt__graph *typed;
        int64_t steps = 0, casts = 0;
        assert_int_equal(mixt__passes_run(graph, &options, &typed), MIXT_OK);
        int32_t *uses = mixt__graph_use_counts(typed);
        for (int64_t i = 0; i < typed->node_count; i++) {
            const mixt__node *n = &typed->nodes[i];
            steps += n->op == &mixt__op_cross_entropy_step;
            casts += n->op == &mixt__op_pointwise && !uses[n->out[0]]; // of the whole, which nobody reads any more
        }
        assert_true(steps > 1);
        assert_int_equal(casts, 0);
        mixt__free(uses);
        mixt__graph_free(typed);
    }
    mixt__graph_free(graph);
}

static void the_verifier_refuses_another_arithmetic(void **state)
{
    (void)state;
    static const struct {
        mixt_dtype policy, set;
    } wrong[] = {
        {MIXT_DTYPE_BF16, MIXT_DTYPE_FP32}, {MIXT_DTYPE_BF16, MIXT_DTYPE_TF32}, {MIXT_DTYPE_FP16, MIXT_DTYPE_BF16},
        {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16}, {MIXT_DTYPE_FP32, MIXT_DTYPE_NONE},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mixt__policy policy = {.forward = wrong[i].policy, .backward = wrong[i].policy};
        mixt__graph *mlp = compile("mlp", 0, &policy);
        assert_int_equal(mixt__graph_verify(mlp, "test"), MIXT_OK);
        for (int64_t k = 0; k < mlp->node_count; k++)
            if (mlp->nodes[k].op->matrix_work && mlp->nodes[k].backward)
                mlp->nodes[k].arithmetic = wrong[i].set;
        assert_int_equal(mixt__graph_verify(mlp, "test"), MIXT_ERROR_INTERNAL);
        mixt__graph_free(mlp);
    }
    mixt__policy policy = {.forward = MIXT_DTYPE_TF32, .backward = MIXT_DTYPE_TF32};
    mixt__graph *mlp = compile("mlp", 0, &policy);
    for (int64_t k = 0; k < mlp->node_count; k++)
        mlp->nodes[k].arithmetic = MIXT_DTYPE_TF32; // of pointwise nodes too
    assert_int_equal(mixt__graph_verify(mlp, "test"), MIXT_ERROR_INTERNAL);
    mixt__graph_free(mlp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_product_has_the_policys_arithmetic),
        cmocka_unit_test(fused_forms_are_among_them),
        cmocka_unit_test(fp8_is_for_the_linear_layers_inside),
        cmocka_unit_test(fp8_goes_where_it_can),
        cmocka_unit_test(a_rule_reaches_the_gradients_of_its_layer),
        cmocka_unit_test(a_parameter_is_cast_only_where_it_has_no_copy),
        cmocka_unit_test(gradients_flow_in_the_backward_format),
        cmocka_unit_test(logits_are_split_with_formats_apart),
        cmocka_unit_test(the_verifier_refuses_another_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
