/* Why nodes have their formats: reasons name the rule, the default or the class, casts name who wanted them, and all of
 * them survive the passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/op.h"
#include "mixt/graph.h"
#include "model/model.h"
#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/passes.h"

#include <string.h>

static mixt_value model(mixt_builder *b, mixt_value x)
{
    x = mixt_gelu(b, mixt_linear(b, "fc1", x, .features = 16));
    x = mixt_layer_norm(b, "ln", x);
    x = mixt_relu(b, mixt_linear(b, "fc2", x, .features = 16));
    return mixt_linear(b, "fc3", mixt_cast(b, x, MIXT_DTYPE_FP32), .features = 4);
}

static mixt__graph *compile(const mixt__policy *policy, unsigned fused)
{
    mixt__model m = {.fn = model, .loss = MIXT_LOSS_CROSS_ENTROPY};
    mixt__batch_spec batch = {
        .input_dtype = MIXT_DTYPE_FP32, .target_dtype = MIXT_DTYPE_INT32, .input = {2, {8, 12}}, .target = {1, {8}}};
    mixt__graph *source = NULL, *graph = NULL;
    mixt__compile_options options = {.policy = *policy, .backward = true, .fused = fused};
    assert_int_equal(mixt__model_build(&m, &batch, true, &source), MIXT_OK);
    assert_int_equal(mixt__passes_run(source, &options, &graph), MIXT_OK);
    mixt__graph_free(source);
    return graph;
}

/** Whether some node of the layer is explained so. */
static bool explains(const mixt__graph *graph, const char *layer, const mixt__op *op, bool backward, const char *text)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        char *got;
        assert_int_equal(mixt__node_explain(graph, i, &got), MIXT_OK);
        bool found = !strcmp(n->layer, layer) && n->op == op && n->backward == backward && !strcmp(got, text);
        mixt_free(got);
        if (found)
            return true;
    }
    return false;
}

#define EXPECT(graph, layer, op, backward, text)                                                                       \
    if (!explains(graph, layer, &mixt__op_##op, backward, text))                                                       \
    fail_msg("no %s of layer '%s' says \"%s\"", #op, layer, text)

static void the_default_and_the_class_decide(void **state)
{
    (void)state;
    mixt__policy policy = mixt__policy_of(MIXT_DTYPE_BF16);
    mixt__graph *g = compile(&policy, 0);
    EXPECT(g, "fc1", matmul, false, "bf16: default of the policy");
    EXPECT(g, "fc1", matmul, true, "bf16: default of the policy");
    EXPECT(g, "ln", layer_norm, false, "class of the op: takes what comes, computes in fp32 inside");
    EXPECT(g, "ln", layer_norm_grad, true, "class of the op: takes what comes, computes in fp32 inside");
    EXPECT(g, "fc1", pointwise, true, "class of the op: follows its inputs");
    EXPECT(g, "fc1", pointwise, false, "input 0 of fc1 wants bf16, input gives fp32");
    EXPECT(g, "fc2", pointwise, false, "cast by the model");
    mixt__graph_free(g);
}

static void a_rule_is_named_by_its_origin(void **state)
{
    (void)state;
    const mixt__policy_rule rules[] = {
        {.layer = "fc*", .forward = MIXT_DTYPE_FP16, .backward = MIXT_DTYPE_FP16},
        {.layer = "fc2",
         .op = "matmul",
         .forward = MIXT_DTYPE_FP32,
         .backward = MIXT_DTYPE_TF32,
         .origin = "policy.yaml:7"},
    };
    mixt__policy policy = {
        .forward = MIXT_DTYPE_BF16, .backward = MIXT_DTYPE_BF16, .rules = rules, .rule_count = 2, .origin = "bf16"};
    mixt__graph *g = compile(&policy, ~0u);
    EXPECT(g, "fc1", matmul, false, "fp16: rule 1 (layer 'fc*', op '*')");
    EXPECT(g, "fc2", matmul, false, "fp32: policy.yaml:7 (layer 'fc2', op 'matmul')");
    EXPECT(g, "fc2", matmul, true, "tf32: policy.yaml:7 (layer 'fc2', op 'matmul')");
    EXPECT(g, "fc2", pointwise, false, "input 0 of fc2 wants fp32, ln gives fp16");
    EXPECT(g, "fc2", pointwise, true, "gradient of a cast: input 0 of fc2 wants fp32, ln gives fp16");
    for (int64_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].op->matrix_work)
            assert_int_equal(g->nodes[i].rule, !strcmp(g->nodes[i].layer, "fc2") ? 1 : 0);
    mixt__graph_free(g);
}

static void casts_of_a_backward_pass_say_who_wanted_them(void **state)
{
    (void)state;
    mixt__policy policy = {.forward = MIXT_DTYPE_FP16, .backward = MIXT_DTYPE_BF16};
    mixt__graph *g = compile(&policy, 0);
    EXPECT(g, "fc2", pointwise, true, "the gradient of matmul in fc2 wants bf16, ln gives fp16");
    EXPECT(g, "fc2", pointwise, true, "the gradient of matmul in fc2 wants bf16, fc2.weight gives fp32");
    EXPECT(g, "fc3", pointwise, true, "the gradient of matmul in fc3 wants bf16, loss gives fp16");
    mixt__graph_free(g);
}

static void every_node_has_a_reason_after_all_passes(void **state)
{
    (void)state;
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_TF32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    for (int f = 0; f < 4 * 4 * 2; f++) {
        mixt__policy policy = {.forward = formats[f / 2 / 4], .backward = formats[f / 2 % 4]};
        mixt__graph *g = compile(&policy, f % 2 ? ~0u : 0);
        for (int64_t i = 0; i < g->node_count; i++)
            assert_true(strlen(g->nodes[i].why) > 3);
        mixt__graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_and_the_class_decide),
        cmocka_unit_test(a_rule_is_named_by_its_origin),
        cmocka_unit_test(casts_of_a_backward_pass_say_who_wanted_them),
        cmocka_unit_test(every_node_has_a_reason_after_all_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
