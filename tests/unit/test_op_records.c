/* What the op records say about their nodes: kind of work, bytes, random numbers, inputs that are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/builder.h"
#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/passes.h"

#include <stdio.h>
#include <string.h>

/* ---- records by themselves ---- */

static void a_gradient_is_its_ops_kind_of_work(void **state)
{
    (void)state;
    int gradients = 0;
    for (int i = 0; mixt__op_list[i]; i++) {
        const mixt__op *op = mixt__op_list[i];
        char name[64];
        snprintf(name, sizeof name, "%s", op->name);
        char *suffix = strstr(name, "_grad");
        if (!suffix)
            continue;
        *suffix = '\0';
        assert_non_null(mixt__op_find(name));
        assert_int_equal(op->work, mixt__op_find(name)->work);
        gradients++;
    }
    assert_true(gradients > 8);
}

static void matrix_work_is_named(void **state)
{
    (void)state;
    for (int i = 0; mixt__op_list[i]; i++) {
        const mixt__op *op = mixt__op_list[i];
        bool matrix = op->work <= MIXT_WORK_RECURRENT || op == &mixt__op_head_step; // which has products and a loss
        assert_int_equal(op->matrix_work, matrix);
    }
}

/* ---- nodes ---- */

enum { ROWS = 6, WIDTH = 5, TABLE = 100 };

static mixt__graph *start(mixt_builder *b, bool training)
{
    mixt__graph *graph;
    assert_int_equal(mixt__graph_new(&graph), MIXT_OK);
    graph->training = training;
    mixt__builder_start(b, graph, NULL);
    return graph;
}

static mixt_value input(mixt__graph *graph, mixt_dtype dtype, int rank)
{
    mixt_value v;
    mixt__shape shape = {rank, {ROWS, WIDTH}};
    assert_int_equal(mixt__graph_value(graph, MIXT_ROLE_INPUT, dtype, &shape, "input", &v.id), MIXT_OK);
    return v;
}

static mixt__node *last(const mixt__graph *graph)
{
    return &graph->nodes[graph->node_count - 1];
}

static void bytes_count_each_value_once(void **state)
{
    (void)state;
    mixt_builder b;
    mixt__graph *graph = start(&b, true);
    mixt_value x = input(graph, MIXT_DTYPE_FP32, 2);
    mixt_mul(&b, x, x);
    assert_true(mixt__node_bytes(graph, last(graph)) == 2 * 4 * ROWS * WIDTH); // one read, one write
    mixt_linear(&b, "fc", x, .features = 3);
    double product = 4 * (ROWS * WIDTH + 3 * WIDTH + 3 + ROWS * 3);
    assert_true(mixt__node_bytes(graph, last(graph)) == product);
    last(graph)->accumulates = 1; // its result is read as well
    assert_true(mixt__node_bytes(graph, last(graph)) == product + 4 * ROWS * 3);
    mixt_reshape(&b, x, 1, (int64_t[]){ROWS * WIDTH});
    assert_true(mixt__node_bytes(graph, last(graph)) == 2 * 4 * ROWS * WIDTH);
    last(graph)->alias = true;
    assert_true(mixt__node_bytes(graph, last(graph)) == 0);
    mixt__graph_free(graph);
}

static void a_table_is_touched_where_it_is_read(void **state)
{
    (void)state;
    mixt_builder b;
    mixt__graph *graph = start(&b, true);
    mixt_value ids = input(graph, MIXT_DTYPE_INT32, 1);
    mixt_embedding(&b, "large", ids, .count = TABLE, .features = WIDTH);
    assert_true(mixt__node_bytes(graph, last(graph)) == 4 * (ROWS * WIDTH + ROWS + ROWS * WIDTH));
    mixt_embedding(&b, "small", ids, .count = 2, .features = WIDTH); // the whole table is less than what is read of it
    assert_true(mixt__node_bytes(graph, last(graph)) == 4 * (2 * WIDTH + ROWS + ROWS * WIDTH));
    mixt_value dy = input(graph, MIXT_DTYPE_FP32, 2);
    mixt__embedding_attrs at = {.count = TABLE};
    assert_int_equal(mixt__graph_node(graph, &mixt__op_embedding_grad, "", &at, (int32_t[]){ids.id, dy.id}, 2, NULL),
                     MIXT_OK);
    assert_true(mixt__node_bytes(graph, last(graph)) == 4 * (ROWS + ROWS * WIDTH + TABLE * WIDTH));
    last(graph)->accumulates = 1;
    assert_true(mixt__node_bytes(graph, last(graph)) == 4 * (ROWS + ROWS * WIDTH + 2 * ROWS * WIDTH));
    mixt__graph_free(graph);
}

static int random_nodes(const mixt__graph *graph)
{
    int count = 0;
    for (int64_t i = 0; i < graph->node_count; i++)
        count += mixt__node_random(&graph->nodes[i]);
    return count;
}

static void dropout_is_random_wherever_it_ends_up(void **state)
{
    (void)state;
    mixt_builder b;
    mixt__graph *graph = start(&b, true), *typed;
    mixt_value h = mixt_linear(&b, "fc", input(graph, MIXT_DTYPE_FP32, 2), .features = 3);
    assert_int_equal(random_nodes(graph), 0);
    mixt_value y = mixt_relu(&b, mixt_dropout(&b, mixt_tanh(&b, h), 0.5f));
    assert_int_equal(random_nodes(graph), 1);
    graph->loss = mixt_mean(&b, y).id;
    assert_int_equal(mixt__builder_finish(&b), MIXT_OK);
    mixt__compile_options options = {.policy = mixt__policy_of(MIXT_DTYPE_BF16), .backward = true};
    assert_int_equal(mixt__passes_run(graph, &options, &typed), MIXT_OK);
    assert_int_equal(random_nodes(typed), 2); // fused with its neighbours, and again in the gradient
    mixt__graph_free(typed);
    mixt__graph_free(graph);
}

static void written_inputs_are_statistics_and_caches(void **state)
{
    (void)state;
    mixt_builder b;
    mixt__graph *graph = start(&b, true);
    mixt_batch_norm(&b, "bn", input(graph, MIXT_DTYPE_FP32, 2));
    assert_int_equal(mixt__builder_finish(&b), MIXT_OK);
    const mixt__node *n = last(graph);
    for (int k = 0; k < n->in_count; k++)
        assert_int_equal(n->op->written_inputs >> k & 1, graph->values[n->in[k]].role == MIXT_ROLE_STATE);
    mixt__norm_attrs frozen = *(const mixt__norm_attrs *)n->attrs;
    assert_true(frozen.training);
    n->op->freeze(&frozen);
    assert_false(frozen.training);
    assert_int_equal(mixt__graph_verify(graph, "test"), MIXT_OK);
    n->in[4] = n->in[2]; // the bias in place of a running statistic
    assert_int_equal(mixt__graph_verify(graph, "test"), MIXT_ERROR_INTERNAL);
    mixt__graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gradient_is_its_ops_kind_of_work),
        cmocka_unit_test(matrix_work_is_named),
        cmocka_unit_test(bytes_count_each_value_once),
        cmocka_unit_test(a_table_is_touched_where_it_is_read),
        cmocka_unit_test(dropout_is_random_wherever_it_ends_up),
        cmocka_unit_test(written_inputs_are_statistics_and_caches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
