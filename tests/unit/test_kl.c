/* Losses with a teacher, as losses of a model: gradients against ones worked out by hand in double precision, the fused
 * forms of single losses and of sums, their memory, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/api.h"
#include "train/trainer_inside.h"
#include "graph/op.h"
#include "mixt/mixt.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 24, INPUTS = 6, CLASSES = 40 };

static float features[ROWS][INPUTS], scores[ROWS][CLASSES];
static int32_t label[ROWS];
static const float temperature = 2, share = 0.25f;

static mixt_data *open_data(void)
{
    const mixt_data_column columns[] = {
        {.name = "x", .rank = 1, .dims = {INPUTS}, .values = features},
        {.name = "teacher", .rank = 1, .dims = {CLASSES}, .values = scores},
        {.name = "label", .target = true, .dtype = MIXT_DTYPE_INT32, .values = label, .ids = CLASSES},
    };
    mixt_data *data;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < INPUTS; k++)
            features[i][k] = sinf((float)(i * INPUTS + k));
        for (int k = 0; k < CLASSES; k++)
            scores[i][k] = 3 * cosf((float)(i * CLASSES + k));
        label[i] = i % 7 == 6 ? -1 : i % CLASSES; // some are left out
    }
    if (mixt_data_from_columns("rows", columns, 3, ROWS, NULL, &data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return data;
}

static mixt_value logits_of(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "out", x, .features = CLASSES);
}

static mixt_value task(mixt_builder *b, mixt_value x)
{
    mixt_value logits = logits_of(b, x);
    mixt_loss_add(b, mixt_loss_cross_entropy(b, logits, mixt_target(b, "label")), 1);
    return logits;
}

static mixt_value joint(mixt_builder *b, mixt_value x)
{
    mixt_value logits = logits_of(b, x);
    mixt_loss_add(b,
                  mixt_loss_distill(b, logits, mixt_input(b, "teacher"), mixt_target(b, "label"), .weight = share,
                                    .temperature = temperature),
                  1);
    return logits;
}

static mixt_value sum(mixt_builder *b, mixt_value x)
{
    mixt_value logits = logits_of(b, x), labels = mixt_target(b, "label");
    mixt_loss_add(b, mixt_loss_cross_entropy(b, logits, labels), 1 - share);
    mixt_loss_add(b, mixt_loss_kl(b, logits, mixt_input(b, "teacher"), .temperature = temperature, .labels = labels),
                  share * temperature * temperature);
    return logits;
}

/** What one backward pass gives. */
typedef struct pass {
    float weight[CLASSES][INPUTS];               // its gradient
    float start[CLASSES][INPUTS], bias[CLASSES]; // what it was taken at
    double loss;
    size_t activations;
    int64_t whole, step; // loss nodes that are not fused, and those that are
} pass;

static void count_nodes(const mixt__graph *graph, pass *p)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__op *op = graph->nodes[i].op;
        p->whole += op == &mixt__op_cross_entropy || op == &mixt__op_kl || op == &mixt__op_cross_entropy_grad ||
                    op == &mixt__op_kl_grad;
        p->step += op == &mixt__op_cross_entropy_step || op == &mixt__op_kl_step;
    }
}

static void run(mixt_model_fn fn, const char *precision, pass *p)
{
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_data *data = open_data();
    mixt_model *model = mixt_model_new(context, fn, MIXT_LOSS_CUSTOM);
    mixt_trainer *t = mixt_trainer_new(model, .batch = ROWS, .precision = precision, .lr = 0.01f);
    mixt_memory memory;
    *p = (pass){0};
    if (mixt_trainer_compile(t, data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    void *inputs = calloc(1, mixt_data_input_bytes(data, ROWS)), *targets = calloc(1, sizeof label);
    int64_t valid;
    assert_int_equal(mixt_data_read(data, 0, ROWS, inputs, targets, &valid), MIXT_OK);
    assert_int_equal(mixt_trainer_backward(t, inputs, targets, 1, &p->loss), MIXT_OK);
    assert_int_equal(mixt_trainer_param_get(t, 0, &p->start[0][0]), MIXT_OK);
    assert_int_equal(mixt_trainer_grad_get(t, 0, &p->weight[0][0]), MIXT_OK);
    assert_int_equal(mixt_trainer_param_get(t, 1, p->bias), MIXT_OK);
    assert_int_equal(mixt_trainer_memory(t, &memory), MIXT_OK);
    assert_int_equal(memory.total, memory.allocated);
    p->activations = memory.activations;
    count_nodes(t->inner->train->graph, p);
    free(inputs);
    free(targets);
    mixt_close(context);
    mixt_data_close(data);
}

static void softmax(const double *x, double by, double *p)
{
    double total = 0;
    for (int k = 0; k < CLASSES; k++)
        total += p[k] = exp(x[k] / by);
    for (int k = 0; k < CLASSES; k++)
        p[k] /= total;
}

/** The gradient of the weight by hand, and the loss. */
static double by_hand(const pass *p, double grad[CLASSES][INPUTS])
{
    double loss = 0, counted = 0, w = (double)share, hot = (double)temperature;
    memset(grad, 0, sizeof(double[CLASSES][INPUTS]));
    for (int i = 0; i < ROWS; i++)
        counted += label[i] >= 0;
    for (int i = 0; i < ROWS; i++) {
        double x[CLASSES], t[CLASSES], plain[CLASSES], warm[CLASSES], teacher[CLASSES];
        for (int k = 0; k < CLASSES; k++) {
            x[k] = (double)p->bias[k];
            t[k] = (double)scores[i][k];
            for (int f = 0; f < INPUTS; f++)
                x[k] += (double)p->start[k][f] * (double)features[i][f];
        }
        softmax(x, 1, plain);
        softmax(x, hot, warm);
        softmax(t, hot, teacher);
        for (int k = 0; k < CLASSES && label[i] >= 0; k++) {
            double slope = (1 - w) * (plain[k] - (k == label[i])) + w * hot * (warm[k] - teacher[k]);
            loss += w * hot * hot * teacher[k] * log(teacher[k] / warm[k]) / counted;
            loss -= k == label[i] ? (1 - w) * log(plain[k]) / counted : 0;
            for (int f = 0; f < INPUTS; f++)
                grad[k][f] += slope * (double)features[i][f] / counted;
        }
    }
    return loss;
}

/** A student's gradient is the one that its formula gives, as one loss and as a sum of two. */
static void gradients_are_those_by_hand(void **state)
{
    static pass p;
    static double wanted[CLASSES][INPUTS];
    (void)state;
    const mixt_model_fn models[] = {joint, sum};
    for (int m = 0; m < 2; m++) {
        run(models[m], "fp32", &p);
        double loss = by_hand(&p, wanted);
        assert_true(fabs(p.loss - loss) < 1e-6 * loss);
        for (int k = 0; k < CLASSES; k++)
            for (int f = 0; f < INPUTS; f++)
                assert_true(fabs((double)p.weight[k][f] - wanted[k][f]) < 1e-7);
    }
}

/** Every loss is one node with its gradient, in a sum too, and logits are not held twice: beside the sum's own
 *  numbers, which are few, a student needs no more than one that learns from labels. */
static void sums_are_fused(void **state)
{
    static pass alone, one, two, other;
    enum { FEW = 4096 };
    (void)state;
    run(task, "bf16", &alone);
    run(joint, "bf16", &one);
    run(sum, "bf16", &two);
    run(sum, "fp32", &other);
    assert_int_equal(one.whole + two.whole + other.whole, 0);
    assert_int_equal(one.step, 1);
    assert_int_equal(two.step, 2);
    assert_int_equal(other.step, 2);
    assert_true(one.activations <= alone.activations + FEW);
    assert_true(two.activations <= alone.activations + ROWS * CLASSES * 2 + FEW); // two gradients, added up
    assert_true(fabs(one.loss - two.loss) < 1e-5 * two.loss);
}

/* ---- a teacher in the training step ---- */

static float lesson[CLASSES * INPUTS]; // the teacher's weight

static mixt_value teacher_fn(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "big", x, .features = CLASSES, .no_bias = true);
}

static mixt_status give_distillation(void *user, mixt__params *params)
{
    (void)user;
    assert_int_equal(params->fixed_count, 1);
    assert_string_equal(params->table[params->count].name, "teacher.big.weight");
    return mixt__params_give(params, 0, lesson);
}

/** The step of a student with a teacher, whose scores by hand are left in `scores`. */
static mixt_trainer *start_taught(mixt_context *context, const mixt__teacher *teacher, const mixt__policy *policy,
                                  const mixt_data *data)
{
    const mixt__model model = {.fn = logits_of, .loss = MIXT_LOSS_CROSS_ENTROPY, .teacher = teacher};
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .batch = ROWS, .precision = "fp32", .lr = 0.01f);
    mixt_trainer *t;
    assert_int_equal(mixt__trainer_open(context, &model, &o, &t), MIXT_OK);
    t->inner->teacher = (mixt__trainer_teacher){.policy = policy, .load = give_distillation, .sum = "1"};
    if (mixt_trainer_compile(t, data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    for (int i = 0; i < CLASSES * INPUTS; i++)
        lesson[i] = 0.5f * sinf((float)(3 * i));
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < CLASSES; k++) {
            double score = 0;
            for (int f = 0; f < INPUTS; f++)
                score += (double)lesson[k * INPUTS + f] * (double)features[i][f];
            scores[i][k] = (float)score;
        }
    return t;
}

static void teachers_are_part_of_the_step(void **state)
{
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16};
    static const double bounds[] = {1e-7, 2e-3}; // a teacher in BF16 rounds its scores
    static double wanted[CLASSES][INPUTS];
    static pass p;
    const mixt__teacher teacher = {.fn = teacher_fn, .weight = share, .temperature = temperature};
    (void)state;
    for (int i = 0; i < 2; i++) {
        mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
        mixt_data *data = open_data();
        mixt__policy policy = mixt__policy_of(formats[i]);
        mixt_trainer *t = start_taught(context, &teacher, &policy, data);
        mixt_memory memory;
        mixt_evaluation alone;
        assert_int_equal(mixt_trainer_param_count(t), 2); // the student's
        void *inputs = calloc(1, mixt_data_input_bytes(data, ROWS)), *targets = calloc(1, sizeof label);
        int64_t valid;
        assert_int_equal(mixt_data_read(data, 0, ROWS, inputs, targets, &valid), MIXT_OK);
        assert_int_equal(mixt_trainer_backward(t, inputs, targets, 1, &p.loss), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(t, 0, &p.start[0][0]), MIXT_OK);
        assert_int_equal(mixt_trainer_param_get(t, 1, p.bias), MIXT_OK);
        assert_int_equal(mixt_trainer_grad_get(t, 0, &p.weight[0][0]), MIXT_OK);
        double loss = by_hand(&p, wanted);
        assert_true(fabs(p.loss - loss) < 10 * bounds[i] * loss);
        for (int k = 0; k < CLASSES * INPUTS; k++)
            assert_true(fabs((double)p.weight[k / INPUTS][k % INPUTS] - wanted[k / INPUTS][k % INPUTS]) < bounds[i]);
        assert_int_equal(mixt_trainer_memory(t, &memory), MIXT_OK);
        assert_int_equal(memory.total, memory.allocated);
        assert_int_equal(memory.state,
                         (CLASSES * INPUTS * mixt_dtype_size(formats[i]) + 63) / 64 * 64); // in that format alone
        assert_int_equal(mixt_trainer_evaluate(t, data, &alone), MIXT_OK);
        assert_int_equal(t->inner->eval->graph->param_count, 2); // validation knows no teacher
        free(inputs);
        free(targets);
        mixt_close(context);
        mixt_data_close(data);
    }
}

static float odd[3]; // weight, temperature, smoothing

static mixt_value misused(mixt_builder *b, mixt_value x)
{
    mixt_value logits = logits_of(b, x);
    mixt_loss_add(b,
                  mixt_loss_distill(b, logits, mixt_input(b, "teacher"), mixt_target(b, "label"), .weight = odd[0],
                                    .temperature = odd[1], .smoothing = odd[2]),
                  1);
    return logits;
}

static mixt_value narrow(mixt_builder *b, mixt_value x)
{
    mixt_value logits = mixt_linear(b, "out", x, .features = CLASSES - 1);
    mixt_loss_add(b, mixt_loss_kl(b, logits, mixt_input(b, "teacher")), 1);
    return logits;
}

static mixt_value short_rows(mixt_builder *b, mixt_value x)
{
    mixt_value logits = logits_of(b, x);
    mixt_loss_add(b, mixt_loss_kl(b, logits, mixt_slice(b, mixt_input(b, "teacher"), 0, 0, 3)), 1);
    return logits;
}

static mixt_value cold(mixt_builder *b, mixt_value x)
{
    mixt_value logits = logits_of(b, x);
    mixt_loss_add(b, mixt_loss_kl(b, logits, mixt_input(b, "teacher"), .temperature = 0), 1);
    return logits;
}

static void refused(mixt_model_fn fn, const char *text)
{
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *data = open_data();
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, fn, MIXT_LOSS_CUSTOM), .batch = ROWS);
    assert_int_not_equal(mixt_trainer_compile(t, data), MIXT_OK);
    if (!strstr(mixt_error_text(), text))
        fail_msg("'%s' in '%s'", text, mixt_error_text());
    mixt_close(context);
    mixt_data_close(data);
}

static void misuse_is_named(void **state)
{
    static const struct {
        float options[3];
        const char *text;
    } cases[] = {
        {{1.5f, 1, 0}, ".weight 1.5"},
        {{-0.5f, 1, 0}, ".weight -0.5"},
        {{NAN, 1, 0}, ".weight nan"},
        {{0.5f, -2, 0}, ".temperature -2"},
        {{0.5f, INFINITY, 0}, ".temperature inf"},
        {{0.5f, 0, 0}, ".temperature 0"},
        {{0, 1, 0}, ".weight 0"},
        {{0.5f, 1, 1}, ".smoothing 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(odd, cases[i].options, sizeof odd);
        refused(misused, cases[i].text);
    }
    refused(cold, ".temperature 0: must be finite and above 0");
    refused(narrow, "(24, 39) from (24, 40): the classes differ");
    refused(short_rows, "(24, 40) from (3, 40): both must have rows of classes, as many of them");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_by_hand),
        cmocka_unit_test(sums_are_fused),
        cmocka_unit_test(teachers_are_part_of_the_step),
        cmocka_unit_test(misuse_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
