/* The arithmetic of a step: under one policy, every product of every model of the zoo is made in the policy's format,
 * those of the backward pass and of fused forms too. Needs no device: it reads the compiled graphs. */
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

/** Data that the model takes: small images, or short texts. */
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
    info.input_dtype = MIXT_DTYPE_FP32;
    info.input_rank = 3;
    memcpy(info.input_dims, (int64_t[]){64, 64, 3}, 3 * sizeof(int64_t));
    info.classes = 10;
    info.target = MIXT_TARGET_CLASS;
    info.target_elements = 1;
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
    spec.target = (mixt__shape){entry->input == MIXT_MODEL_TOKENS ? 2 : 1, {BATCH, info.target_elements}};
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

static void every_product_has_the_policys_arithmetic(void **state)
{
    (void)state;
    for (const mixt__zoo_entry *entry = mixt__zoo; entry->name; entry++) {
        mixt__graph *graph = build(entry);
        for (int f = 0; f < FORMATS * FUSED; f++) {
            mixt__compile_options options = {.policy = {.forward = formats[f / FUSED], .backward = formats[f / FUSED]},
                                             .fused = fused[f % FUSED],
                                             .backward = true,
                                             .logits_limit = 4096}; // of a text: two parts and more
            mixt__graph *typed;
            if (mixt__passes_run(graph, &options, &typed) != MIXT_OK)
                fail_msg("%s: %s", entry->name, mixt_error_text());
            int64_t forward = count_products(entry->name, typed, formats[f / FUSED], false);
            int64_t backward = count_products(entry->name, typed, formats[f / FUSED], true);
            assert_true(forward > 1);
            assert_true(backward > forward); // of the data and of the weights
            mixt__graph_free(typed);
        }
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
        cmocka_unit_test(a_rule_reaches_the_gradients_of_its_layer),
        cmocka_unit_test(the_verifier_refuses_another_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
