/* The sensitivity analysis: injected weaknesses are found, ranks hold, nothing of the trainer changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 64, FEATURES = 16, CLASSES = 4, BATCH = 32 };

static mixt_data *make_data(mixt_context *context)
{
    static float inputs[SAMPLES * FEATURES];
    static int32_t targets[SAMPLES];
    mixt_data *data;
    for (int i = 0; i < SAMPLES; i++) {
        targets[i] = i % CLASSES;
        for (int k = 0; k < FEATURES; k++)
            inputs[i * FEATURES + k] = (float)((i * 31 + k * 17) % 23 - 11) / 8.0f + (k == targets[i] ? 2.0f : 0.0f);
    }
    mixt_data_arrays arrays =
        MIXT_OPTIONS(mixt_data_arrays, .samples = SAMPLES, .input_rank = 1, .input_dims = {FEATURES}, .inputs = inputs);
    arrays.target = MIXT_TARGET_CLASS;
    arrays.targets = targets;
    (void)context;
    assert_int_equal(mixt_data_from(&arrays, NULL, &data), MIXT_OK);
    return data;
}

/** An analysis of a model of one's own. */
typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
    mixt_sensitivity *s;
} fixture;

static void start(fixture *f, mixt_model_fn fn, uint64_t seed)
{
    f->context = mixt_open(.device = "cpu", .threads = 2);
    f->data = make_data(f->context);
    mixt_model *model = mixt_model_new(f->context, fn, MIXT_LOSS_CROSS_ENTROPY);
    f->trainer = mixt_trainer_new(model, .batch = BATCH, .seed = seed);
    f->s = NULL;
}

static void analyse(fixture *f, const mixt_sensitivity_options *options)
{
    mixt_status status = mixt_sensitivity_of(f->trainer, f->data, options, &f->s);
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

static void stop(fixture *f)
{
    mixt_sensitivity_free(f->s);
    mixt_close(f->context);
    mixt_data_close(f->data);
}

/** Place of the layer's first row among those of a mode and format, from 0; -1: none. */
static int64_t rank_of(const mixt_sensitivity *s, const char *layer, mixt_dtype format, mixt_sensitivity_mode mode)
{
    int64_t place = 0;
    for (int64_t i = 0; i < mixt_sensitivity_rows(s); i++) {
        const mixt_sensitivity_row *r = mixt_sensitivity_row_at(s, i);
        if (r->format != format || r->mode != mode)
            continue;
        if (!strcmp(r->layer, layer))
            return place;
        place++;
    }
    return -1;
}

static mixt_value healthy(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "one", x, .features = 24));
    x = mixt_relu(b, mixt_linear(b, "two", x, .features = 24));
    return mixt_linear(b, "three", x, .features = CLASSES);
}

/** "big" makes values around 1e6, which FP16 does not hold; a division behind it makes them small again. */
static mixt_value overflowing(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "one", x, .features = 24));
    x = mixt_affine(b, x, 1e3f, 0);
    mixt_scope_push(b, "big");
    x = mixt_affine(b, mixt_linear(b, "linear", x, .features = 24), 1e3f, 0);
    mixt_scope_pop(b);
    x = mixt_affine(b, mixt_cast(b, x, MIXT_DTYPE_FP32), 1e-6f, 0);
    return mixt_linear(b, "three", x, .features = CLASSES);
}

/** Overflow in one layer puts that layer first, in FP16 and not in BF16. */
static void finds_overflow(void **state)
{
    fixture f;
    (void)state;
    start(&f, overflowing, 1);
    analyse(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = "fp16,bf16", .trials = 3));
    const mixt_sensitivity_row *worst = mixt_sensitivity_row_at(f.s, 0);
    assert_int_equal(worst->format, MIXT_DTYPE_FP16);
    assert_non_null(strstr(worst->layer, "big"));
    assert_true(worst->score < 0.1 && worst->overflow > 0);
    assert_string_equal(worst->recommend, "bf16");
    const mixt_sensitivity_row *same =
        mixt_sensitivity_find(f.s, worst->layer, MIXT_DTYPE_BF16, MIXT_SENSITIVITY_LOWERED);
    assert_true(same->score > 0.5 && same->overflow == 0);
    stop(&f);
}

/** What reaches "faint" from the loss is 1e-12 of what reaches the others: no loss scale that the others bear lifts it
 *  into FP16's range. */
static mixt_value underflowing(mixt_builder *b, mixt_value x)
{
    mixt_value h = mixt_relu(b, mixt_linear(b, "one", x, .features = 24));
    mixt_value faint = mixt_affine(b, mixt_linear(b, "faint", x, .features = 24), 1e-12f, 0);
    return mixt_linear(b, "three", mixt_add(b, h, faint), .features = CLASSES);
}

static void finds_underflow(void **state)
{
    fixture f;
    (void)state;
    start(&f, underflowing, 1);
    analyse(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = "fp16,bf16", .trials = 3));
    const mixt_sensitivity_row *worst = mixt_sensitivity_row_at(f.s, 0);
    assert_string_equal(worst->layer, "faint");
    assert_int_equal(worst->format, MIXT_DTYPE_FP16);
    assert_true(worst->underflow > 0.1 && worst->grad_cosine < 0.5 && worst->score < 0.5);
    assert_string_equal(worst->recommend, "bf16");
    assert_true(worst->safe.verdict == MIXT_VERDICT_NO && worst->safe.evidence == MIXT_EVIDENCE_MEASURED);
    for (int64_t i = 0; i < mixt_sensitivity_layers(f.s); i++) {
        const mixt_sensitivity_layer *layer = mixt_sensitivity_layer_at(f.s, i);
        assert_string_equal(layer->recommend, strcmp(layer->name, "faint") ? "any" : "bf16");
    }
    assert_string_equal(mixt_sensitivity_find(f.s, "one", MIXT_DTYPE_FP16, MIXT_SENSITIVITY_LOWERED)->recommend,
                        "fp16");
    stop(&f);
}

/** "total" adds up numbers around 100 of which the last digits matter. */
static mixt_value summing(mixt_builder *b, mixt_value x)
{
    mixt_value h = mixt_relu(b, mixt_linear(b, "one", x, .features = 32));
    mixt_scope_push(b, "total");
    mixt_value sum = mixt_sum(b, mixt_affine(b, h, 1, 100), .axes = {1}, .axis_count = 1, .keep_dims = true); // (N, 1)
    mixt_scope_pop(b);
    sum = mixt_affine(b, mixt_cast(b, sum, MIXT_DTYPE_FP32), 0.2f, -640);
    return mixt_linear(b, "three", mixt_mul(b, h, sum), .features = CLASSES);
}

static void finds_a_sum_that_needs_fp32(void **state)
{
    fixture f;
    (void)state;
    start(&f, summing, 1);
    analyse(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = "fp16,bf16", .trials = 3));
    const mixt_sensitivity_row *worst = mixt_sensitivity_row_at(f.s, 0);
    assert_string_equal(worst->layer, "total");
    assert_int_equal(worst->format, MIXT_DTYPE_BF16);
    assert_true(worst->score < 0.5);
    assert_true(rank_of(f.s, "total", MIXT_DTYPE_BF16, MIXT_SENSITIVITY_KEPT) <= 1);
    // "one", whose low output makes the sum follow it, is as bad; what comes behind the sum is not
    assert_true(mixt_sensitivity_find(f.s, "one", MIXT_DTYPE_BF16, MIXT_SENSITIVITY_LOWERED)->score < 0.5);
    assert_true(mixt_sensitivity_find(f.s, "three", MIXT_DTYPE_BF16, MIXT_SENSITIVITY_LOWERED)->score > 0.9);
    stop(&f);
}

/* ---- estimates against direct replay ---- */

enum { CELLS_MAX = 256 };

static mixt_run *open_run(const char *const *settings)
{
    mixt_config *config;
    mixt_run *run;
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    for (; *settings; settings++)
        if (mixt_config_set(config, *settings, "test") != MIXT_OK)
            fail_msg("%s", mixt_error_text());
    if (mixt_run_open_config(config, NULL, &run) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    mixt_config_free(config);
    return run;
}

/** Scores of all cells in an order that does not depend on them. */
static int64_t scores(const char *const *settings, const mixt_sensitivity_options *options, double *found,
                      double *steps)
{
    mixt_run *run = open_run(settings);
    mixt_sensitivity *s;
    int64_t count = 0;
    if (mixt_sensitivity_new_with(run, options, &s) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    mixt_sensitivity_info info = mixt_sensitivity_describe(s);
    *steps = info.steps;
    for (int64_t l = 0; l < mixt_sensitivity_layers(s); l++)
        for (int i = 0; i < info.format_count * MIXT_SENSITIVITY_MODES; i++) {
            const mixt_sensitivity_row *row =
                mixt_sensitivity_find(s, mixt_sensitivity_layer_at(s, l)->name, info.formats[i % info.format_count],
                                      (mixt_sensitivity_mode)(i / info.format_count));
            if (row && count < CELLS_MAX)
                found[count++] = row->score;
        }
    mixt_sensitivity_free(s);
    mixt_run_close(run);
    return count;
}

/** Ranks from 0; equal numbers share the mean of theirs. */
static void rank(const double *x, int64_t count, double *ranks)
{
    for (int64_t i = 0; i < count; i++) {
        double below = 0, equal = 0;
        for (int64_t k = 0; k < count; k++) {
            below += x[k] < x[i];
            equal += x[k] == x[i];
        }
        ranks[i] = below + (equal - 1) / 2;
    }
}

static double spearman(const double *x, const double *y, int64_t count)
{
    double a[CELLS_MAX], b[CELLS_MAX], ab = 0, aa = 0, bb = 0, mean = (double)(count - 1) / 2;
    rank(x, count, a);
    rank(y, count, b);
    for (int64_t i = 0; i < count; i++) {
        ab += (a[i] - mean) * (b[i] - mean);
        aa += (a[i] - mean) * (a[i] - mean);
        bb += (b[i] - mean) * (b[i] - mean);
    }
    return ab / sqrt(aa * bb);
}

static const char *const models[][10] = {
    {"model=gpt", "net.layers=1", "net.width=32", "net.heads=2", "data.kind=random", "data.path=tokens", "data.seq=16",
     "train.batch=8", "threads=1"},
    {"model=lstm", "net.layers=2", "net.width=32", "data.kind=random", "data.path=tokens", "data.seq=16",
     "train.batch=8", "threads=1"},
    {"model=convnet", "net.channels=8,8,8", "data.kind=digits", "data.limit=128", "train.batch=32", "threads=1"},
};

/** What is estimated ranks the cells as running each of them does, for the work of ten steps at most. */
static void estimates_rank_as_replay(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        double estimated[CELLS_MAX], measured[CELLS_MAX], steps, unused;
        int64_t count = scores(models[m], MIXT_OPTIONS_AT(mixt_sensitivity_options, .confirm = -1), estimated, &steps);
        assert_int_equal(
            scores(models[m], MIXT_OPTIONS_AT(mixt_sensitivity_options, .replay_all = true), measured, &unused), count);
        double agreement = spearman(estimated, measured, count);
        if (!(agreement >= 0.9))
            fail_msg("%s: estimates and replay agree to %.3f only", models[m][0], agreement);
        if (!(steps <= 10))
            fail_msg("%s: estimating took the work of %.1f steps", models[m][0], steps);
    }
}

static void ranks_hold_over_seeds(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        double found[3][CELLS_MAX], steps;
        int64_t count = 0;
        for (int seed = 0; seed < 3; seed++) {
            const char *settings[11] = {0}, *const words[] = {"seed=1", "seed=2", "seed=3"};
            memcpy(settings, models[m], sizeof models[m]);
            for (int i = 0; i < 10; i++)
                if (!settings[i]) {
                    settings[i] = words[seed];
                    break;
                }
            count = scores(settings, NULL, found[seed], &steps);
        }
        for (int i = 0; i < 3; i++) {
            double agreement = spearman(found[i], found[(i + 1) % 3], count);
            if (!(agreement >= 0.8))
                fail_msg("%s: seeds %d and %d agree to %.3f only", models[m][0], i + 1, (i + 1) % 3 + 1, agreement);
        }
    }
}

/** Every layer has rows in each format and mode, figures are numbers, better formats score better. */
static void has_every_row(void **state)
{
    fixture f;
    (void)state;
    start(&f, healthy, 1);
    analyse(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = "fp16,bf16", .trials = 2));
    assert_int_equal(mixt_sensitivity_layers(f.s), 3);
    assert_int_equal(mixt_sensitivity_rows(f.s), 3 * 2 * 2);
    for (int64_t i = 0; i < mixt_sensitivity_rows(f.s); i++) {
        const mixt_sensitivity_row *r = mixt_sensitivity_row_at(f.s, i);
        assert_true(isfinite(r->loss_change) && isfinite(r->snr_db) && isfinite(r->update_error));
        assert_true((r->safe.verdict == MIXT_VERDICT_YES) == (r->score > 0.5) && r->safe.margin == 0.5);
        assert_int_equal(r->safe.evidence, r->measured ? MIXT_EVIDENCE_MEASURED : MIXT_EVIDENCE_PREDICTED);
        assert_true(r->grad_cosine > 0.99 && r->grad_cosine <= 1 + 1e-12);
        assert_true(r->score > 0.5 && r->score <= 1);
        assert_true(fabs(r->score - r->accuracy_score * r->stability_score) < 0.02);
        assert_int_equal(rank_of(f.s, r->layer, r->format, r->mode) >= 0, 1);
    }
    const mixt_sensitivity_row *a = mixt_sensitivity_find(f.s, "two", MIXT_DTYPE_FP16, MIXT_SENSITIVITY_LOWERED);
    const mixt_sensitivity_row *b = mixt_sensitivity_find(f.s, "two", MIXT_DTYPE_BF16, MIXT_SENSITIVITY_LOWERED);
    assert_true(a->snr_db > b->snr_db + 10 && a->update_error < b->update_error);
    assert_null(mixt_sensitivity_find(f.s, "four", MIXT_DTYPE_FP16, MIXT_SENSITIVITY_LOWERED));
    assert_null(mixt_sensitivity_row_at(f.s, -1));
    stop(&f);
}

/** "left" and "right" read one value; "sum", which alone reads what they make, is fused into them. */
static mixt_value branching(mixt_builder *b, mixt_value x)
{
    mixt_value h = mixt_relu(b, mixt_linear(b, "one", x, .features = 24));
    mixt_value left = mixt_linear(b, "left", h, .features = 24), right = mixt_linear(b, "right", h, .features = 24);
    mixt_scope_push(b, "sum");
    h = mixt_add(b, left, right);
    mixt_scope_pop(b);
    return mixt_linear(b, "three", h, .features = CLASSES);
}

static void names_groups(void **state)
{
    fixture f;
    static const char *const groups[][2] = {
        {"one", NULL}, {"left", "left"}, {"right", "left"}, {"sum", "left"}, {"three", NULL}};
    double share = 0;
    (void)state;
    start(&f, branching, 1);
    analyse(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = "bf16", .trials = 1, .confirm = -1));
    assert_int_equal(mixt_sensitivity_layers(f.s), 5);
    for (int i = 0; i < 5; i++) {
        const mixt_sensitivity_layer *layer = mixt_sensitivity_layer_at(f.s, i);
        assert_string_equal(layer->name, groups[i][0]);
        if (groups[i][1])
            assert_string_equal(layer->group, groups[i][1]);
        else
            assert_null(layer->group);
        share += layer->share;
    }
    assert_true(fabs(share - 1) < 1e-9);
    assert_int_equal(mixt_sensitivity_describe(f.s).measured, 0);
    stop(&f);
}

static void refuses(fixture *f, const mixt_sensitivity_options *options, const char *words)
{
    mixt_sensitivity *s;
    assert_int_equal(mixt_sensitivity_of(f->trainer, f->data, options, &s), MIXT_ERROR_ARGUMENT);
    assert_null(s);
    if (!strstr(mixt_error_text(), words))
        fail_msg("expected '%s' in '%s'", words, mixt_error_text());
}

static void refuses_bad_options(void **state)
{
    fixture f;
    (void)state;
    start(&f, healthy, 1);
    refuses(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = "int8"), "cannot be trained in 'int8'");
    refuses(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = "fp16,fp16"), "named twice");
    refuses(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = "fp32"), "compared with");
    refuses(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = ", "),
            "formats: the list is empty; expected some of fp16, bf16 and tf32");
    refuses(&f, MIXT_OPTIONS_AT(mixt_sensitivity_options, .trials = -1), "-1 trials");
    stop(&f);
}

/** A trainer that is analysed between two steps trains on with the same bits. */
static void leaves_the_trainer(void **state)
{
    fixture a, b;
    float *weights[2];
    (void)state;
    start(&a, healthy, 5);
    start(&b, healthy, 5);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mixt_trainer_step(a.trainer, a.data, NULL), MIXT_OK);
        assert_int_equal(mixt_trainer_step(b.trainer, b.data, NULL), MIXT_OK);
        if (i == 1)
            analyse(&b, MIXT_OPTIONS_AT(mixt_sensitivity_options, .formats = "bf16", .trials = 1));
    }
    fixture *both[2] = {&a, &b};
    int64_t count = FEATURES * 24;
    for (int i = 0; i < 2; i++) {
        weights[i] = calloc((size_t)count, sizeof(float));
        assert_int_equal(mixt_trainer_param_get(both[i]->trainer, 0, weights[i]), MIXT_OK);
    }
    assert_memory_equal(weights[0], weights[1], (size_t)count * sizeof(float));
    free(weights[0]);
    free(weights[1]);
    stop(&a);
    stop(&b);
}

static bool stop_at_three(void *user, const mixt_progress *p)
{
    *(int64_t *)user = p->done;
    assert_true(p->done <= p->total && *p->what && p->part == 1 && p->parts == 1);
    return p->done < 3;
}

static void stops_when_told(void **state)
{
    fixture f;
    int64_t done = 0;
    (void)state;
    start(&f, healthy, 1);
    mixt_sensitivity_options options =
        MIXT_OPTIONS(mixt_sensitivity_options, .trials = 1, .progress = stop_at_three, .user = &done);
    assert_int_equal(mixt_sensitivity_of(f.trainer, f.data, &options, &f.s), MIXT_ERROR_STATE);
    assert_null(f.s);
    assert_int_equal(done, 3);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_overflow),
        cmocka_unit_test(finds_underflow),
        cmocka_unit_test(finds_a_sum_that_needs_fp32),
        cmocka_unit_test(estimates_rank_as_replay),
        cmocka_unit_test(ranks_hold_over_seeds),
        cmocka_unit_test(has_every_row),
        cmocka_unit_test(names_groups),
        cmocka_unit_test(refuses_bad_options),
        cmocka_unit_test(leaves_the_trainer),
        cmocka_unit_test(stops_when_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
