/* Numbers that are too large, and NULL, where a size, a name or a count is expected: refused, or no size at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"

#include <string.h>

static void sizes_do_not_overflow(void **state)
{
    (void)state;
    mixt_data *data;
    assert_int_equal(mixt_data_open("digits:", &data), MIXT_OK);
    size_t one = mixt_data_input_bytes(data, 1);
    assert_true(one > 0 && mixt_data_input_bytes(data, 1000) >= 1000 * (one / 2));
    static const int64_t batches[] = {INT64_MAX, INT64_MAX / 784, (int64_t)1 << 56, -1};
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        assert_true(mixt_data_input_bytes(data, batches[i]) == SIZE_MAX);
    assert_true(mixt_data_target_bytes(data, INT64_MAX) == SIZE_MAX);
    mixt_data_close(data);
}

static void a_benchmark_needs_a_name(void **state)
{
    (void)state;
    assert_true(mixt_bench_flops(NULL, 4, 0) == 0);
    assert_non_null(strstr(mixt_error_text(), "model"));
}

static mixt_value nine_parts(mixt_builder *b, mixt_value x)
{
    struct {
        mixt_value parts[8], behind; // room for as many as there may be
    } split;
    mixt_value before = split.behind = mixt_linear(b, "behind", x, .features = 2);
    mixt_split(b, mixt_linear(b, "fc", x, .features = 18), 9, split.parts);
    assert_memory_equal(&before, &split.behind, sizeof before);
    return before;
}

static void a_split_writes_no_more_than_it_may(void **state)
{
    (void)state;
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *data = mixt_data_new(context, "random:3", .samples = 16, .classes = 2);
    mixt_model *model = mixt_model_new(context, nine_parts, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *trainer = mixt_trainer_new(model, .batch = 4);
    assert_int_not_equal(mixt_trainer_compile(trainer, data), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "split into 9 parts: at most 8"));
    mixt_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_do_not_overflow),
        cmocka_unit_test(a_benchmark_needs_a_name),
        cmocka_unit_test(a_split_writes_no_more_than_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
