/* Numbers with a scale: rounding, zero rows, and values of a graph that are pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/builder.h"
#include "num/quantise.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

enum { ROWS = 5, WIDTH = 7 };

static void rows_round_to_half_a_step(void **state)
{
    (void)state;
    float values[ROWS * WIDTH], scales[ROWS], back[WIDTH];
    int8_t numbers[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++)
        values[i] = sinf((float)(i * i)) * ldexpf(1, 10 * (i / WIDTH) - 20);
    for (int i = 0; i < WIDTH; i++)
        values[2 * WIDTH + i] = i % 2 ? 0.0f : -0.0f;
    mixt__quantise_rows(numbers, MIXT_DTYPE_INT8, scales, values, ROWS, WIDTH);
    for (int r = 0; r < ROWS; r++) {
        double largest = 0;
        int most = 0;
        mixt__dequantise(back, numbers + r * WIDTH, MIXT_DTYPE_INT8, WIDTH, scales[r]);
        for (int i = 0; i < WIDTH; i++)
            largest = fmax(largest, fabs((double)values[r * WIDTH + i]));
        for (int i = 0; i < WIDTH; i++) {
            int number = numbers[r * WIDTH + i], size = number < 0 ? -number : number;
            most = size > most ? size : most;
            // half a step, and the FP32 roundings of the scale, the quotient and the product
            assert_true(fabs((double)back[i] - (double)values[r * WIDTH + i]) <= largest / 254 * (1 + 0x1p-14));
        }
        assert_int_equal(most, r == 2 ? 0 : 127);
        assert_true(r == 2 ? scales[r] == 0 : scales[r] == (float)(largest / 127));
    }
}

/** Values that were rounded have the scale that they were rounded with, and stay what they are. */
static void rounding_twice_is_rounding_once(void **state)
{
    (void)state;
    float values[WIDTH], once[WIDTH], twice[WIDTH], scale;
    int8_t numbers[WIDTH];
    for (int k = 0; k < 4000; k++) {
        for (int i = 0; i < WIDTH; i++)
            values[i] = sinf((float)(k * WIDTH + i)) * ldexpf(1 + (float)k / 997, k % 40 - 20);
        mixt__quantise_rows(numbers, MIXT_DTYPE_INT8, &scale, values, 1, WIDTH);
        mixt__dequantise_rows(once, numbers, MIXT_DTYPE_INT8, &scale, 1, WIDTH);
        mixt__quantise_rows(numbers, MIXT_DTYPE_INT8, &scale, once, 1, WIDTH);
        mixt__dequantise_rows(twice, numbers, MIXT_DTYPE_INT8, &scale, 1, WIDTH);
        assert_memory_equal(once, twice, sizeof once);
    }
}

static void ties_go_to_even_and_nothing_passes_the_end(void **state)
{
    (void)state;
    const float values[] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 200, -200};
    int8_t numbers[8];
    const int8_t expected[] = {127, 0, 2, 2, 0, -2, 127, -127};
    mixt__quantise(numbers, MIXT_DTYPE_INT8, values, 8, 1);
    assert_memory_equal(numbers, expected, sizeof expected);
    mixt__quantise(numbers, MIXT_DTYPE_INT8, values, 8, 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(numbers[i], 0);
    const float tiny[] = {0x1p-149f, 0}; // too small for a scale
    assert_true(mixt__quantise_scale(MIXT_DTYPE_INT8, tiny, 2) == 0);
    assert_true(mixt__quantise_scale(MIXT_DTYPE_INT8, tiny, 0) == 0);
}

static mixt__graph *product(int32_t *weight, mixt__scale_kind kind)
{
    mixt__graph *graph;
    mixt__shape a = {2, {3, WIDTH}}, b = {2, {ROWS, WIDTH}};
    mixt__matmul_attrs at = {.trans_b = true, .alpha = 1};
    int32_t in[2];
    int64_t node;
    assert_int_equal(mixt__graph_new(&graph), MIXT_OK);
    assert_int_equal(mixt__graph_value(graph, MIXT_ROLE_INPUT, MIXT_DTYPE_BF16, &a, "x", &in[0]), MIXT_OK);
    assert_int_equal(mixt__graph_value(graph, MIXT_ROLE_INPUT, MIXT_DTYPE_INT8, &b, "w", &in[1]), MIXT_OK);
    assert_int_equal(mixt__graph_pair(graph, in[1], MIXT_ROLE_INPUT, kind, 4), MIXT_OK);
    *weight = in[1];
    mixt_status status = mixt__graph_node(graph, &mixt__op_matmul, "fc", &at, in, 2, &node);
    assert_int_equal(status, kind == MIXT_SCALE_CHANNEL ? MIXT_OK : MIXT_ERROR_DTYPE);
    return graph;
}

static void keep_line(void *argument, const char *line)
{
    strncat(argument, line, 1000);
}

static void a_pair_is_verified_printed_and_counted(void **state)
{
    (void)state;
    int32_t w;
    char text[1100] = "";
    mixt__graph *g = product(&w, MIXT_SCALE_CHANNEL);
    const mixt__node *n = &g->nodes[0];
    assert_int_equal(g->values[n->out[0]].dtype, MIXT_DTYPE_BF16);
    assert_int_equal(n->arithmetic, MIXT_DTYPE_BF16);
    assert_true(mixt__value_bytes(&g->values[w]) == ROWS * WIDTH + 4 * ROWS);
    assert_int_equal(mixt__graph_verify(g, "test"), MIXT_OK);
    mixt__graph_print(g, keep_line, text);
    assert_non_null(strstr(text, "w int8/channel(5, 7)"));
    mixt__value *scales = &g->values[g->values[w].scales.value];
    scales->shape.dims[0]++;
    assert_int_equal(mixt__graph_verify(g, "test"), MIXT_ERROR_INTERNAL);
    scales->shape.dims[0]--;
    g->values[w].scales.value = (int32_t)g->value_count;
    assert_int_equal(mixt__graph_verify(g, "test"), MIXT_ERROR_INTERNAL);
    mixt__graph_free(g);
    mixt__graph_free(product(&w, MIXT_SCALE_BLOCK));
    mixt__graph_free(product(&w, MIXT_SCALE_TENSOR));
}

static void scales_have_a_shape(void **state)
{
    (void)state;
    const mixt__shape shape = {2, {ROWS, WIDTH}};
    mixt__shape tensor = mixt__scale_shape(&shape, MIXT_SCALE_TENSOR, 0);
    mixt__shape channel = mixt__scale_shape(&shape, MIXT_SCALE_CHANNEL, 0);
    mixt__shape block = mixt__scale_shape(&shape, MIXT_SCALE_BLOCK, 4);
    assert_int_equal(mixt__shape_count(&tensor), 1);
    assert_int_equal(mixt__shape_count(&channel), ROWS);
    assert_int_equal(mixt__shape_count(&block), ROWS * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_round_to_half_a_step),
        cmocka_unit_test(rounding_twice_is_rounding_once),
        cmocka_unit_test(ties_go_to_even_and_nothing_passes_the_end),
        cmocka_unit_test(a_pair_is_verified_printed_and_counted),
        cmocka_unit_test(scales_have_a_shape),
    };
    return cmocka_run_group_tests_name("quantise", tests, NULL, NULL);
}
