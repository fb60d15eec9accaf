/* Several named inputs and targets, and losses as functions of the builder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/api.h"
#include "train/trainer_inside.h"
#include "mixt/mixt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 45, BATCH = 10, LEFT = 3, RIGHT = 5, IDS = 7, STEPS = 6, CLASSES = 4 };

static float left[ROWS][LEFT], right[ROWS][RIGHT], value[ROWS];
static int32_t id[ROWS], label[ROWS];

static void fill_arrays(void)
{
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < LEFT; k++)
            left[i][k] = sinf((float)(i * LEFT + k));
        for (int k = 0; k < RIGHT; k++)
            right[i][k] = cosf((float)(i * RIGHT + k));
        id[i] = i * 5 % IDS;
        label[i] = i % 9 == 8 ? -1 : i * 3 % CLASSES; // some are left out
        value[i] = sinf((float)i) + 0.5f * (float)id[i];
    }
}

static mixt_data *open_columns(void)
{
    const mixt_data_column columns[] = {
        {.name = "left", .rank = 1, .dims = {LEFT}, .values = left},
        {.name = "value", .target = true, .values = value}, // targets may stand between inputs
        {.name = "id", .dtype = MIXT_DTYPE_INT32, .values = id, .ids = IDS},
        {.name = "right", .rank = 1, .dims = {RIGHT}, .values = right},
        {.name = "label", .target = true, .dtype = MIXT_DTYPE_INT32, .values = label, .ids = CLASSES},
    };
    mixt_data *data;
    fill_arrays();
    if (mixt_data_from_columns("rows", columns, 5, ROWS, NULL, &data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return data;
}

static mixt_value hidden(mixt_builder *b)
{
    mixt_value a = mixt_linear(b, "left", mixt_input(b, "left"), .features = 8);
    mixt_value c = mixt_linear(b, "right", mixt_input(b, "right"), .features = 8);
    mixt_value e = mixt_embedding(b, "id", mixt_input(b, "id"), .count = IDS, .features = 8, .init = 0.5f);
    return mixt_tanh(b, mixt_add(b, mixt_add(b, a, c), e));
}

static mixt_value rate(mixt_builder *b, mixt_value x)
{
    mixt_value rating = mixt_linear(b, "out", hidden(b), .features = 1);
    (void)x;
    mixt_loss_add(b, mixt_loss_mse(b, rating, mixt_target(b, "value")), 1);
    return rating;
}

/** How much of each loss `both` is trained for. */
static float weights[2];

static mixt_value both(mixt_builder *b, mixt_value x)
{
    mixt_value h = hidden(b), rating = mixt_linear(b, "out", h, .features = 1);
    mixt_value logits = mixt_linear(b, "class", h, .features = CLASSES);
    (void)x;
    mixt_value losses[2] = {mixt_loss_mse(b, rating, mixt_target(b, "value")),
                            mixt_loss_cross_entropy(b, logits, mixt_target(b, "label"))};
    for (int i = 0; i < 2; i++)
        if (weights[i] != 0)
            mixt_loss_add(b, losses[i], weights[i]);
    return rating;
}

typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
} fixture;

static fixture start(mixt_model_fn fn, const char *precision, int64_t accumulate)
{
    fixture f = {.context = mixt_open(.device = "cpu", .threads = 2), .data = open_columns()};
    mixt_model *model = mixt_model_new(f.context, fn, MIXT_LOSS_CUSTOM);
    f.trainer = mixt_trainer_new(model, .batch = BATCH, .precision = precision, .accumulate = accumulate, .lr = 0.01f);
    if (mixt_trainer_compile(f.trainer, f.data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return f;
}

static void stop(fixture *f)
{
    mixt_close(f->context);
    mixt_data_close(f->data);
}

/** All parameters, one behind the other; returns how many numbers. */
static int64_t read_params(mixt_trainer *t, float *values, bool gradients)
{
    int64_t used = 0;
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++) {
        mixt_param_info info;
        assert_int_equal(mixt_trainer_param(t, i, &info), MIXT_OK);
        assert_int_equal(gradients ? mixt_trainer_grad_get(t, i, values + used)
                                   : mixt_trainer_param_get(t, i, values + used),
                         MIXT_OK);
        used += info.count;
    }
    return used;
}

static void arrays_are_described_in_order(void **state)
{
    static const char *const names[] = {"left", "id", "right", "value", "label"};
    mixt_data *data = open_columns();
    const mixt_data_info *info = mixt_data_describe(data);
    (void)state;
    assert_int_equal(info->array_count, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(info->arrays[i].name, names[i]);
    assert_int_equal(info->arrays[1].ids, IDS);
    assert_int_equal(info->input_elements, LEFT + 1 + RIGHT);
    assert_int_equal(mixt_data_array_at(data, BATCH, 1), 128); // 120 bytes of "left", to the next multiple of 64
    assert_int_equal(mixt_data_array_at(data, BATCH, 4), 64);
    assert_int_equal(mixt_data_input_bytes(data, BATCH) % 64, 0);
    mixt_data_close(data);
}

/** Batches made ahead, inputs rounded there, and a caller's own give the same weights, to the bit. */
static void batches_ahead_and_from_memory_agree(void **state)
{
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    static float ahead[4096], own[4096];
    (void)state;
    for (int p = 0; p < 3; p++)
        for (int64_t accumulate = 1; accumulate <= 2; accumulate++) {
            fixture a = start(rate, precisions[p], accumulate), b = start(rate, precisions[p], accumulate);
            size_t input = mixt_data_input_bytes(b.data, BATCH), target = mixt_data_target_bytes(b.data, BATCH);
            char *inputs = calloc(2, input), *targets = calloc(2, target);
            for (int s = 0; s < STEPS; s++) {
                assert_int_equal(mixt_trainer_step(a.trainer, a.data, NULL), MIXT_OK);
                for (int64_t i = 0; i < accumulate; i++)
                    assert_int_equal(
                        mixt_data_next(b.data, BATCH, inputs + (size_t)i * input, targets + (size_t)i * target),
                        MIXT_OK);
                assert_int_equal(mixt_trainer_step_on(b.trainer, inputs, targets, NULL), MIXT_OK);
            }
            int64_t count = read_params(a.trainer, ahead, false);
            assert_int_equal(read_params(b.trainer, own, false), count);
            assert_memory_equal(ahead, own, (size_t)count * sizeof *ahead);
            free(inputs);
            free(targets);
            stop(&a);
            stop(&b);
        }
}

static mixt_value classes(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", mixt_flatten(b, x), .features = 10);
}

static mixt_value classes_own(mixt_builder *b, mixt_value x)
{
    mixt_value logits = classes(b, x);
    mixt_loss_add(b, mixt_loss_cross_entropy(b, logits, mixt_target(b, "target"), .smoothing = 0.1f), 1);
    return logits;
}

/** A plain cross-entropy is fused and planned the same, whoever asks for it. */
static void own_cross_entropy_is_the_closed_one(void **state)
{
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    static float closed[8192], own[8192];
    (void)state;
    for (int p = 0; p < 3; p++) {
        mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
        mixt_data *data = mixt_data_new(context, "digits:", .samples = 70);
        mixt_model *models[2] = {mixt_model_new(context, classes, MIXT_LOSS_CROSS_ENTROPY, .label_smoothing = 0.1f),
                                 mixt_model_new(context, classes_own, MIXT_LOSS_CUSTOM)};
        mixt_memory memory[2];
        mixt_evaluation result[2];
        int64_t nodes[2], count = 0;
        for (int i = 0; i < 2; i++) {
            mixt_trainer *t = mixt_trainer_new(models[i], .batch = 8, .eval_batch = 32, .precision = precisions[p]);
            for (int s = 0; s < STEPS; s++)
                assert_int_equal(mixt_trainer_step(t, data, NULL), MIXT_OK);
            assert_int_equal(mixt_trainer_evaluate(t, data, &result[i]), MIXT_OK);
            assert_int_equal(mixt_trainer_memory(t, &memory[i]), MIXT_OK);
            nodes[i] = t->inner->train->graph->node_count;
            count = read_params(t, i ? own : closed, false);
        }
        assert_memory_equal(closed, own, (size_t)count * sizeof *own);
        assert_memory_equal(&memory[0], &memory[1], sizeof memory[0]);
        assert_memory_equal(&result[0], &result[1], sizeof result[0]);
        assert_int_equal(nodes[0], nodes[1]);
        mixt_close(context);
    }
}

/** The gradients of `both` on the first batch, and the loss. */
static int64_t gradients_of(float first, float second, float *values, double *loss)
{
    weights[0] = first;
    weights[1] = second;
    fixture f = start(both, "fp32", 1);
    size_t input = mixt_data_input_bytes(f.data, BATCH), target = mixt_data_target_bytes(f.data, BATCH);
    void *inputs = calloc(1, input), *targets = calloc(1, target);
    assert_int_equal(mixt_data_batch(f.data, BATCH, 0, inputs, targets), MIXT_OK);
    assert_int_equal(mixt_trainer_backward(f.trainer, inputs, targets, 1, loss), MIXT_OK);
    int64_t count = read_params(f.trainer, values, true);
    free(inputs);
    free(targets);
    stop(&f);
    return count;
}

static void weighted_sums_have_summed_gradients(void **state)
{
    static float a[4096], c[4096], sum[4096];
    double loss_a, loss_c, loss;
    (void)state;
    int64_t count = gradients_of(1, 0, a, &loss_a);
    gradients_of(0, 1, c, &loss_c);
    gradients_of(0.5f, 3, sum, &loss);
    assert_true(fabs(loss - (0.5 * loss_a + 3 * loss_c)) < 1e-5 * loss);
    for (int64_t i = 0; i < count; i++)
        assert_true(fabsf(sum[i] - (0.5f * a[i] + 3 * c[i])) <= 1e-5f * (1 + fabsf(a[i]) + fabsf(c[i])));
}

/** Evaluation in batches that do not divide the set counts each sample once; so does a sum of losses. */
static void short_batches_count_once(void **state)
{
    (void)state;
    weights[0] = 2;
    weights[1] = 0;
    fixture whole = start(rate, "fp32", 1), twice = start(both, "fp32", 1);
    mixt_evaluation one, two;
    assert_int_equal(mixt_trainer_evaluate(whole.trainer, whole.data, &one), MIXT_OK);
    assert_int_equal(mixt_trainer_evaluate(twice.trainer, twice.data, &two), MIXT_OK);
    assert_int_equal(one.count, ROWS);
    assert_int_equal(two.count, ROWS);
    assert_true(isnan(one.accuracy));
    stop(&whole);
    stop(&twice);
}

/** Samples predicted together are those predicted alone, though batches cut them elsewhere. */
static void predictions_take_every_input(void **state)
{
    fixture f = start(rate, "fp32", 1);
    float together[ROWS], alone;
    int64_t valid;
    double square = 0;
    mixt_evaluation result;
    (void)state;
    char *inputs = calloc(1, mixt_data_input_bytes(f.data, ROWS)),
         *targets = calloc(1, mixt_data_target_bytes(f.data, ROWS));
    assert_int_equal(mixt_data_read(f.data, 0, ROWS, inputs, targets, &valid), MIXT_OK);
    assert_int_equal(mixt_trainer_predict(f.trainer, inputs, ROWS, together), MIXT_OK);
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(mixt_data_read(f.data, i, 1, inputs, targets, &valid), MIXT_OK);
        assert_int_equal(mixt_trainer_predict(f.trainer, inputs, 1, &alone), MIXT_OK);
        assert_true(alone == together[i]);
        square += (double)(alone - value[i]) * (double)(alone - value[i]) / ROWS;
    }
    assert_int_equal(mixt_trainer_evaluate(f.trainer, f.data, &result), MIXT_OK);
    assert_true(fabs(result.loss - square) < 1e-5 * square);
    free(inputs);
    free(targets);
    stop(&f);
}

/* ---- a loss of one's own ---- */

static mixt_value by_hand(mixt_builder *b, mixt_value x)
{
    mixt_value rating = mixt_linear(b, "out", hidden(b), .features = 1), wanted = mixt_target(b, "value");
    mixt_value flat = mixt_reshape(b, rating, 1, (int64_t[]){-1});
    (void)x;
    mixt_loss_add(b, mixt_loss_mean(b, mixt_square(b, mixt_sub(b, flat, wanted)), wanted), 1);
    return rating;
}

static mixt_value from_one_number(mixt_builder *b, mixt_value x)
{
    mixt_value rating = mixt_linear(b, "out", hidden(b), .features = 1), wanted = mixt_target(b, "value");
    mixt_value flat = mixt_reshape(b, rating, 1, (int64_t[]){-1});
    (void)x;
    mixt_loss_add(b, mixt_mean(b, mixt_square(b, mixt_sub(b, flat, wanted))), 1);
    return rating;
}

static void a_loss_from_ops_is_the_loss(void **state)
{
    static const mixt_model_fn models[] = {rate, by_hand, from_one_number};
    (void)state;
    double losses[3];
    for (int i = 0; i < 3; i++) {
        fixture f = start(models[i], "fp32", 1);
        mixt_step step;
        for (int s = 0; s < STEPS; s++)
            assert_int_equal(mixt_trainer_step(f.trainer, f.data, &step), MIXT_OK);
        losses[i] = step.loss;
        stop(&f);
    }
    assert_true(fabs(losses[1] - losses[0]) < 1e-5 * losses[0]);
    assert_true(fabs(losses[2] - losses[0]) < 1e-5 * losses[0]);
}

/* ---- different lengths ---- */

enum { WORDS = 9, PLACES = 6, KEPT = 12 };

static int32_t word_count[KEPT];

/** Sentences of 1 to PLACES words, the mean of whose vectors is wanted to be their sum of numbers.
 *  @param room places of a sample in a batch; 0: as many as the longest has */
static mixt_data *open_sentences(int64_t room)
{
    static int32_t words[KEPT * PLACES], tags[KEPT * PLACES];
    static float wanted[KEPT];
    int64_t used = 0;
    for (int i = 0; i < KEPT; i++) {
        word_count[i] = 1 + i * 5 % PLACES;
        wanted[i] = 0;
        for (int k = 0; k < word_count[i]; k++, used++) {
            words[used] = (i * 3 + k * 2) % WORDS;
            tags[used] = words[used] % 2;
            wanted[i] += (float)words[used] / (float)(4 * word_count[i]);
        }
    }
    const mixt_data_column columns[] = {
        {.name = "text",
         .dtype = MIXT_DTYPE_INT32,
         .rank = 1,
         .dims = {room},
         .values = words,
         .lengths = word_count,
         .ids = WORDS},
        {.name = "worth", .target = true, .values = wanted},
        {.name = "tag",
         .target = true,
         .dtype = MIXT_DTYPE_INT32,
         .rank = 1,
         .dims = {room},
         .values = tags,
         .lengths = word_count,
         .ids = 2},
    };
    mixt_data *data;
    if (mixt_data_from_columns("sentences", columns, 3, KEPT, MIXT_OPTIONS_AT(mixt_data_options, .in_order = true),
                               &data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return data;
}

/** The mean vector of a text by its mask; each word's tag, where padding has none. */
static mixt_value read_sentence(mixt_builder *b, mixt_value x)
{
    mixt_value mask = mixt_input_mask(b, "text");
    int64_t n = mixt_value_dim(b, mask, 0), t = mixt_value_dim(b, mask, 1);
    mixt_value h = mixt_embedding(b, "word", x, .count = WORDS, .features = 8, .init = 0.5f); // (N, T, 8)
    mixt_value kept = mixt_mul(b, h, mixt_reshape(b, mask, 3, (int64_t[]){n, t, 1}));
    mixt_value sum = mixt_sum(b, kept, .axes = {1}, .axis_count = 1);
    mixt_value mean = mixt_div(b, sum, mixt_sum(b, mask, .axes = {1}, .axis_count = 1, .keep_dims = true));
    mixt_value worth = mixt_linear(b, "worth", mean, .features = 1);
    mixt_value tags = mixt_linear(b, "tag", mixt_tanh(b, h), .features = 2);
    mixt_loss_add(b, mixt_loss_mse(b, worth, mixt_target(b, "worth")), 1);
    mixt_loss_add(b, mixt_loss_cross_entropy(b, tags, mixt_target(b, "tag")), 0.5f);
    return worth;
}

static void short_samples_are_padded(void **state)
{
    mixt_data *data = open_sentences(0);
    const mixt_data_info *info = mixt_data_describe(data);
    static const char *const names[] = {"text", "text.length", "text.mask", "worth", "tag", "tag.length"};
    int32_t input[256], target[256];
    int64_t valid;
    (void)state;
    assert_int_equal(info->array_count, 6);
    for (int i = 0; i < 6; i++)
        assert_string_equal(info->arrays[i].name, names[i]);
    assert_int_equal(info->arrays[0].dims[0], PLACES);
    for (int i = 0; i < KEPT; i++) {
        assert_int_equal(mixt_data_read(data, i, 1, input, target, &valid), MIXT_OK);
        const int32_t *length = input + mixt_data_array_at(data, 1, 1) / 4,
                      *tags = target + mixt_data_array_at(data, 1, 4) / 4;
        const float *mask = (const float *)(const void *)(input + mixt_data_array_at(data, 1, 2) / 4);
        assert_int_equal(*length, word_count[i]);
        for (int k = 0; k < PLACES; k++) {
            assert_int_equal(input[k], k < word_count[i] ? (i * 3 + k * 2) % WORDS : 0);
            assert_true(mask[k] == (k < word_count[i] ? 1.0f : 0.0f));
            assert_int_equal(tags[k], k < word_count[i] ? input[k] % 2 : -1);
        }
    }
    mixt_data_close(data);
}

/** What lies in the padding changes neither loss nor gradient, to the bit. */
static void padding_changes_nothing(void **state)
{
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    static float clean[1024], dirty[1024];
    (void)state;
    for (int p = 0; p < 3; p++) {
        mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
        mixt_data *data = open_sentences(PLACES + 3);
        mixt_model *model = mixt_model_new(context, read_sentence, MIXT_LOSS_CUSTOM);
        mixt_trainer *t = mixt_trainer_new(model, .batch = KEPT, .precision = precisions[p]);
        if (mixt_trainer_compile(t, data) != MIXT_OK)
            fail_msg("%s", mixt_error_text());
        int32_t *input = calloc(1, mixt_data_input_bytes(data, KEPT));
        void *target = calloc(1, mixt_data_target_bytes(data, KEPT));
        double losses[2];
        int64_t count = 0;
        assert_int_equal(mixt_data_batch(data, KEPT, 0, input, target), MIXT_OK);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; round && i < KEPT * (PLACES + 3); i++)
                if (i % (PLACES + 3) >= word_count[i / (PLACES + 3)])
                    input[i] = 1 + i % (WORDS - 1);
            assert_int_equal(mixt_trainer_backward(t, input, target, 1, &losses[round]), MIXT_OK);
            count = read_params(t, round ? dirty : clean, true);
            assert_int_equal(mixt_trainer_discard(t), MIXT_OK);
        }
        assert_true(losses[0] == losses[1]);
        assert_memory_equal(clean, dirty, (size_t)count * sizeof *clean);
        free(input);
        free(target);
        mixt_close(context);
        mixt_data_close(data);
    }
}

/* ---- mistakes ---- */

static mixt_value wrong_input(mixt_builder *b, mixt_value x)
{
    (void)x;
    return mixt_input(b, "lefty");
}

static mixt_value wrong_target(mixt_builder *b, mixt_value x)
{
    mixt_loss_add(b, mixt_loss_mse(b, x, mixt_target(b, "rating")), 1);
    return x;
}

static mixt_value no_loss(mixt_builder *b, mixt_value x)
{
    (void)b;
    return x;
}

static mixt_value wide_loss(mixt_builder *b, mixt_value x)
{
    mixt_loss_add(b, x, 1);
    return x;
}

static mixt_value endless_weight(mixt_builder *b, mixt_value x)
{
    mixt_loss_add(b, mixt_mean(b, x), INFINITY);
    return x;
}

static void mistakes_are_told(void **state)
{
    static const struct {
        mixt_model_fn fn;
        const char *words;
    } cases[] = {
        {wrong_input, "the data has no input 'lefty': it offers 'left', 'id', 'right'"},
        {wrong_target, "the data has no target 'rating': it offers 'value', 'label'"},
        {no_loss, "adds no loss"},
        {wide_loss, "a loss of one number"},
        {endless_weight, "a finite weight"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_context *context = mixt_open(.device = "cpu");
        mixt_data *data = open_columns();
        mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, cases[i].fn, MIXT_LOSS_CUSTOM), .batch = BATCH);
        assert_int_not_equal(mixt_trainer_compile(t, data), MIXT_OK);
        if (!strstr(mixt_error_text(), cases[i].words))
            fail_msg("expected \"%s\", got \"%s\"", cases[i].words, mixt_error_text());
        mixt_close(context);
        mixt_data_close(data);
    }
}

static void refuse(const mixt_data_column *columns, int count, const char *words)
{
    mixt_data *data = (mixt_data *)1;
    assert_int_not_equal(mixt_data_from_columns("rows", columns, count, 2, NULL, &data), MIXT_OK);
    assert_null(data);
    if (!strstr(mixt_error_text(), words))
        fail_msg("expected \"%s\", got \"%s\"", words, mixt_error_text());
}

static void columns_are_checked(void **state)
{
    const float good[2] = {1, 2}, bad[2] = {1, NAN};
    const int32_t ids[2] = {0, 9};
    const mixt_data_column target = {.name = "y", .target = true, .values = good};
    (void)state;
    refuse((mixt_data_column[]){{.name = "x", .values = bad}, target}, 2, "'x': number 1 is nan");
    refuse((mixt_data_column[]){{.name = "x", .values = ids, .dtype = MIXT_DTYPE_INT32, .ids = 9}, target}, 2,
           "number 1 is 9: expected 0 to 8");
    refuse((mixt_data_column[]){{.name = "y", .values = good}, target}, 2, "two columns are called 'y'");
    refuse((mixt_data_column[]){{.name = "x.y", .values = good}, target}, 2, "without a dot");
    refuse((mixt_data_column[]){{.name = "x", .values = NULL}, target}, 2, "needs .values");
    const int32_t lengths[2] = {1, 3};
    refuse((mixt_data_column[]){{.name = "x", .values = good, .rank = 1, .dims = {2}, .lengths = lengths}, target}, 2,
           "sample 1 has length 3: expected 0 to 2");
    refuse((mixt_data_column[]){{.name = "x", .values = good, .lengths = lengths}, target}, 2, "a first dimension");
    refuse((mixt_data_column[]){target}, 1, "2 to 16");
    refuse((mixt_data_column[]){{.name = "x", .target = true, .values = good}, target}, 2, "one input and one target");
    refuse((mixt_data_column[]){{.name = "x", .values = good, .rank = 1, .dims = {0}}, target}, 2, "dimension 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_described_in_order),
        cmocka_unit_test(batches_ahead_and_from_memory_agree),
        cmocka_unit_test(own_cross_entropy_is_the_closed_one),
        cmocka_unit_test(weighted_sums_have_summed_gradients),
        cmocka_unit_test(short_batches_count_once),
        cmocka_unit_test(predictions_take_every_input),
        cmocka_unit_test(a_loss_from_ops_is_the_loss),
        cmocka_unit_test(short_samples_are_padded),
        cmocka_unit_test(padding_changes_nothing),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(columns_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
