/* Looking into a compiled step from C: its nodes, formats, kernels, memory and times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#include <math.h>
#include <string.h>

enum { BATCH = 8 };

static mixt_value net(mixt_builder *b, mixt_value x) // (N, 28, 28, 1)
{
    x = mixt_relu(b, mixt_linear(b, "fc.0", mixt_flatten(b, x), .features = 32));
    return mixt_linear(b, "fc.1", x, .features = 10);
}

typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
} fixture;

static fixture start(const char *precision)
{
    fixture f = {.context = mixt_open(.device = "cpu", .threads = 2)};
    f.data = mixt_data_new(f.context, "digits:", .samples = 64);
    mixt_model *model = mixt_model_new(f.context, net, MIXT_LOSS_CROSS_ENTROPY);
    f.trainer = mixt_trainer_new(model, .batch = BATCH, .precision = precision);
    assert_int_equal(mixt_trainer_compile(f.trainer, f.data), MIXT_OK);
    return f;
}

/** The forward product of a layer. */
static int64_t product_of(const mixt_trainer *trainer, const char *layer, mixt_plan_node *node)
{
    for (int64_t i = 0; (i = mixt_plan_next(trainer, layer, i)) >= 0; i++) {
        assert_int_equal(mixt_plan_node_at(trainer, i, node), MIXT_OK);
        if (!node->backward && !strcmp(node->op, "matmul"))
            return i;
    }
    fail_msg("%s has no product", layer);
    return -1;
}

static void test_nodes(void **state)
{
    (void)state;
    fixture f = start("bf16");
    mixt_plan_info info;
    assert_int_equal(mixt_plan_describe(f.trainer, &info), MIXT_OK);
    assert_string_equal(info.device, "cpu");
    assert_string_equal(info.device_name, "");
    assert_true(info.nodes > 3 && info.matrix_flops > 0 && info.matrix_flops <= info.flops);
    double flops = 0, matrix = 0;
    for (int64_t i = 0; i < info.nodes; i++) {
        mixt_plan_node n;
        assert_int_equal(mixt_plan_node_at(f.trainer, i, &n), MIXT_OK);
        assert_true(n.layer && n.op && n.kernel && n.inputs >= 1 && n.outputs >= 1 && n.work < MIXT_WORK_OPTIMIZER);
        assert_true(n.view ? !strcmp(n.kernel, "view") && n.bytes == 0 : n.bytes > 0);
        flops += n.flops;
        matrix += n.matrix ? n.flops : 0;
    }
    assert_true(fabs(flops - info.flops) <= 1e-9 * flops && fabs(matrix - info.matrix_flops) <= 1e-9 * flops);
    mixt_close(f.context);
}

/** (8, 784) × (32, 784): shapes, formats, work and bytes of one product. */
static void test_values(void **state)
{
    (void)state;
    fixture f = start("bf16");
    mixt_plan_node n;
    mixt_plan_value v;
    int64_t index = product_of(f.trainer, "fc.0", &n);
    assert_true(n.matrix && n.work == MIXT_WORK_PRODUCTS);
    assert_true(n.flops == 2.0 * BATCH * 784 * 32);
    assert_int_equal(mixt_plan_input(f.trainer, index, 1, &v), MIXT_OK);
    assert_string_equal(v.name, "fc.0.weight");
    assert_string_equal(v.role, "parameter");
    assert_int_equal(v.dtype, MIXT_DTYPE_BF16);
    assert_true(v.rank == 2 && v.dims[0] == 32 && v.dims[1] == 784);
    assert_int_equal(mixt_plan_output(f.trainer, index, 0, &v), MIXT_OK);
    assert_string_equal(v.role, "activation");
    assert_true(v.dtype == MIXT_DTYPE_BF16 && v.rank == 2 && v.dims[0] == BATCH && v.dims[1] == 32);
    for (int r = 0; r < n.refusals; r++) {
        const char *kernel = NULL, *reason = NULL;
        assert_int_equal(mixt_plan_refusal(f.trainer, index, r, &kernel, &reason), MIXT_OK);
        assert_true(*kernel && *reason && strcmp(kernel, n.kernel));
    }
    mixt_close(f.context);
}

static void test_refused_arguments(void **state)
{
    (void)state;
    fixture f = start("fp32");
    mixt_plan_info info;
    mixt_plan_node n;
    mixt_plan_value v;
    const char *a, *b;
    assert_int_equal(mixt_plan_describe(f.trainer, &info), MIXT_OK);
    assert_int_equal(mixt_plan_node_at(f.trainer, info.nodes, &n), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_plan_node_at(f.trainer, -1, &n), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_plan_node_at(f.trainer, 0, &n), MIXT_OK);
    assert_int_equal(mixt_plan_input(f.trainer, 0, n.inputs, &v), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_plan_output(f.trainer, 0, -1, &v), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_plan_refusal(f.trainer, 0, n.refusals, &a, &b), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_plan_describe(NULL, &info), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_plan_text(f.trainer, NULL, NULL, NULL), MIXT_ERROR_ARGUMENT);
    mixt_model *model = mixt_model_new(f.context, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *raw = mixt_trainer_new(model, .batch = BATCH);
    mixt_profile *profile;
    assert_int_equal(mixt_plan_describe(raw, &info), MIXT_ERROR_STATE);
    assert_int_equal(mixt_plan_next(raw, NULL, 0), -1);
    assert_int_equal(mixt_profile_new(raw, f.data, 1, &profile), MIXT_ERROR_STATE);
    assert_int_equal(mixt_profile_new(f.trainer, f.data, 0, &profile), MIXT_ERROR_ARGUMENT);
    mixt_data *rows = mixt_data_new(f.context, "random:784", .samples = 64);
    assert_int_equal(mixt_profile_new(f.trainer, rows, 1, &profile), MIXT_ERROR_SHAPE);
    assert_null(profile);
    mixt_close(f.context);
}

/** Lines seen, and whether each was of the layer asked for. */
typedef struct seen {
    const mixt_trainer *trainer;
    int64_t lines, last;
} seen;

static void count_line(void *user, int64_t index, const char *line)
{
    seen *s = user;
    assert_true(index > s->last);
    s->last = index;
    s->lines++;
    assert_non_null(strstr(line, "fc.1"));
}

static void test_layers(void **state)
{
    (void)state;
    fixture f = start("fp16");
    int64_t found = 0;
    for (int64_t i = 0; (i = mixt_plan_next(f.trainer, "fc.1", i)) >= 0; i++)
        found++;
    assert_true(found > 0);
    seen s = {.trainer = f.trainer, .last = -1};
    assert_int_equal(mixt_plan_text(f.trainer, "fc.1", count_line, &s), MIXT_OK);
    assert_int_equal(s.lines, found);
    assert_int_equal(mixt_plan_next(f.trainer, "conv*", 0), -1);
    assert_int_equal(mixt_plan_next(f.trainer, NULL, 2), 2);
    mixt_close(f.context);
}

/** What decided the formats of products, and of a cast, under a policy with a rule. */
static void test_explanation(void **state)
{
    (void)state;
    fixture f = start("bf16");
    mixt_plan_node n;
    char *why;
    const char *path = temp_path("mine.yaml"), *text = "default: bf16\nrules:\n  - {layer: fc.1, precision: fp32}\n";
    assert_true(temp_write(path, text, strlen(text)));
    assert_int_equal(mixt_trainer_set_precision(f.trainer, path), MIXT_OK);
    int64_t index = product_of(f.trainer, "fc.0", &n);
    assert_int_equal(n.rule, -1);
    assert_int_equal(n.arithmetic, MIXT_DTYPE_BF16);
    assert_int_equal(mixt_plan_explain(f.trainer, index, &why), MIXT_OK);
    assert_true(!strncmp(why, "bf16: default, ", 15) && strstr(why, "mine.yaml:1"));
    mixt_free(why);
    bool cast = false, ruled = false;
    for (int64_t i = 0; (i = mixt_plan_next(f.trainer, "fc.1", i)) >= 0; i++) {
        assert_int_equal(mixt_plan_node_at(f.trainer, i, &n), MIXT_OK);
        assert_int_equal(mixt_plan_explain(f.trainer, i, &why), MIXT_OK);
        cast = cast || strstr(why, "wants fp32, fc.0 gives bf16");
        ruled = ruled || (n.rule == 0 && n.matrix && !strncmp(why, "fp32: ", 6) && strstr(why, "mine.yaml:3"));
        mixt_free(why);
    }
    assert_true(cast && ruled);
    assert_int_equal(mixt_plan_explain(f.trainer, -1, &why), MIXT_ERROR_ARGUMENT);
    assert_null(why);
    mixt_close(f.context);
}

static void test_memory_roles(void **state)
{
    (void)state;
    fixture f = start("fp16");
    mixt_memory memory;
    mixt_memory_role roles[MIXT_MEMORY_ROLES];
    assert_int_equal(mixt_trainer_memory(f.trainer, &memory), MIXT_OK);
    mixt_memory_roles(&memory, roles);
    size_t sum = 0;
    for (int i = 0; i + 1 < MIXT_MEMORY_ROLES; i++)
        sum += roles[i].bytes;
    assert_string_equal(roles[MIXT_MEMORY_ROLES - 1].name, "total");
    assert_int_equal(roles[MIXT_MEMORY_ROLES - 1].bytes, sum);
    assert_int_equal(sum, memory.total);
    mixt_close(f.context);
}

/** Its rows add up, and it outlives the trainer. */
static void test_profile(void **state)
{
    (void)state;
    fixture f = start("bf16");
    mixt_profile *profile;
    assert_int_equal(mixt_profile_new(f.trainer, f.data, 2, &profile), MIXT_OK);
    mixt_close(f.context);
    mixt_profile_info info = mixt_profile_describe(profile);
    double seconds = 0, by_work = 0;
    int64_t ops = 0;
    bool named = false;
    for (int64_t i = 0; i < info.rows; i++) {
        const mixt_profile_row *r = mixt_profile_at(profile, i);
        assert_true(r->seconds >= 0 && r->flops >= 0 && r->bytes >= 0);
        assert_true(info.limits || isnan(r->limit_share));
        named = named || (!strcmp(r->layer, "fc.0") && !strcmp(r->op, "matmul") && r->format == MIXT_DTYPE_BF16);
        seconds += r->seconds;
    }
    assert_true(named);
    assert_string_equal(mixt_profile_at(profile, info.rows - 1)->op, "optimizer_step");
    assert_null(mixt_profile_at(profile, info.rows));
    for (int w = 0; w < MIXT_WORK_COUNT; w++) {
        mixt_profile_sum sum = mixt_profile_work(profile, (mixt_work)w);
        by_work += sum.seconds;
        ops += sum.ops;
    }
    assert_true(ops == info.rows && fabs(seconds - info.seconds) <= 1e-9 && fabs(by_work - seconds) <= 1e-9);
    assert_int_equal(mixt_profile_work(profile, MIXT_WORK_OPTIMIZER).ops, 3);
    assert_int_equal(mixt_profile_work(profile, MIXT_WORK_RECURRENT).ops, 0);
    mixt_profile_free(profile);
    mixt_profile_free(NULL);
}

static void test_bench(void **state)
{
    (void)state;
    mixt_bench_model model;
    mixt_bench_result r;
    int count = mixt_bench_count();
    assert_true(count > 0 && mixt_bench_at(count - 1, &model) && !mixt_bench_at(count, &model));
    assert_int_equal(mixt_bench_run("mlp", &r, .precision = "bf16", .device = "cpu", .threads = 1, .batch = 4,
                                    .steps = 1, .profile = true),
                     MIXT_OK);
    assert_true(r.seconds > 0 && r.spread >= 0 && r.batch == 4 && r.items == 4 && r.seq == 0 && r.threads == 1);
    assert_true(r.flops == mixt_bench_flops("mlp", 4, 0) && isfinite(r.loss) && !r.gpu && isnan(r.watts));
    assert_true(r.memory.allocated == r.memory.total && mixt_profile_describe(r.profile).rows > 3);
    mixt_bench_free(&r);
    assert_int_equal(mixt_bench_run("mpl", &r), MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_error_text(), "did you mean mlp?"));
    assert_int_equal(mixt_bench_run("mlp", &r, .seq = 16), MIXT_ERROR_ARGUMENT);
    mixt_bench_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused_arguments),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_explanation),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_memory_roles),
        cmocka_unit_test(test_bench),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
