/* Recordings of different lengths in the speech model: what stands behind their ends is heard by nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "mixt/mixt.h"
#include "api/api.h"
#include "data/buckets.h"
#include "train/lengths.h"
#include "train/trainer_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 24, BATCH = 4, MELS = 12 };

static void ok(mixt_status status)
{
    if (status != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

/** A shape of the model. */
typedef struct shape {
    bool text;
    int64_t layers;
    const char *norm;
    bool hidden;
} shape;

static const shape shapes[] = {
    {false, 0, "batch", false}, {true, 1, "batch", false}, {false, 1, "layer", false},
    {true, 0, "none", false},   {true, 1, "batch", true},  {false, 0, "none", true},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
    char *input, *fed, *target; // room for a batch as long as the longest
} fixture;

static fixture start(const shape *s, const char *precision)
{
    static const int64_t sizes[] = {6, 5};
    fixture f = {.context = mixt_open(.device = "cpu", .threads = 1)};
    mixt_zoo_options o = MIXT_OPTIONS(mixt_zoo_options, .layers = s->layers, .norm = s->norm);
    *(s->hidden ? &o.hidden : &o.channels) = sizes;
    *(s->hidden ? &o.hidden_count : &o.channel_count) = 2;
    o.width = s->layers ? 7 : 0;
    ok(mixt_data_open("audio:", &f.data, .samples = SAMPLES, .mels = MELS, .hop = 5, .buckets = 4,
                      .target = s->text ? MIXT_TARGET_TEXT : MIXT_TARGET_CLASS));
    assert_true(mixt__data_bucket_count(f.data) > 2);
    mixt_model *model = MIXT_MADE(mixt_model, mixt_zoo_model_with, f.context, "speech", f.data, &o);
    if (!model)
        fail_msg("%s", mixt_error_text());
    f.trainer = mixt_trainer_new(model, .batch = BATCH, .precision = precision, .seed = 3);
    ok(mixt_trainer_compile(f.trainer, f.data));
    ok(mixt__trainer_allocate(f.trainer->inner));
    f.input = malloc(mixt_data_input_bytes(f.data, BATCH));
    f.fed = malloc(mixt_data_input_bytes(f.data, BATCH));
    f.target = malloc(mixt_data_target_bytes(f.data, BATCH));
    return f;
}

static void end(fixture *f)
{
    mixt_close(f->context);
    mixt_data_close(f->data);
    free(f->input);
    free(f->fed);
    free(f->target);
}

/** Writes what no recording looks like behind the ends of those in a batch; says how many numbers that are. */
static int64_t spoil(const mixt_data_info *info, char *input)
{
    mixt__data_places at = mixt__data_places_as(info, BATCH, 0, input, NULL);
    int64_t spoiled = 0, each = info->arrays[0].elements;
    const int32_t *lengths = (const int32_t *)(const void *)at.at[mixt_data_array_find(info, "input.length")];
    float *features = (float *)(void *)at.at[0];
    for (int64_t i = 0; i < BATCH; i++)
        for (int64_t k = lengths[i] * MELS; k < each; k++, spoiled++)
            features[i * each + k] = k % 3 ? (k % 2 ? 3e4f : -7) : (float)NAN;
    return spoiled;
}

/** Loss and gradients of a batch by the step of a bucket. */
static float run_pass(const fixture *f, int bucket, float *grad)
{
    mixt__trainer *t = f->trainer->inner;
    mixt__executable *step = bucket < t->lengths.count - 1 ? t->lengths.steps.step[bucket] : t->train;
    mixt__batch_spec fed = mixt__spec_fed(&t->lengths.spec[bucket], step->graph);
    const float one = 1;
    const uint64_t key = 9;
    mixt__run run = {.input = f->input, .target = f->target, .seed = &one, .rng_key = &key};
    if (mixt__spec_rounds(&t->lengths.spec[bucket], &fed)) {
        mixt__spec_round(&t->lengths.spec[bucket], &fed, f->input, f->fed);
        run.input = f->fed;
    }
    ok(mixt__executable_run(step, &run));
    memcpy(grad, mixt__params_gradients(t->params), (size_t)t->params->total * sizeof *grad);
    return *(float *)mixt__executable_address(step, step->graph->loss);
}

static void make_batch(const fixture *f, const mixt_data_info *info, int64_t number)
{
    mixt__data_places at = mixt__data_places_as(info, BATCH, 0, f->input, f->target);
    ok(mixt__data_batch_piece(f->data, &(mixt__data_which){BATCH, 1, number}, info, 0, BATCH, &at));
}

static void padding_changes_no_bit(void **state)
{
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    (void)state;
    for (int p = 0; p < 3 * SHAPES; p++) {
        fixture f = start(&shapes[p / 3], precisions[p % 3]);
        size_t total = (size_t)f.trainer->inner->params->total;
        float *grad = malloc(total * 2 * sizeof *grad);
        int64_t spoiled = 0;
        for (int64_t n = 0; n < SAMPLES / BATCH; n++) {
            int bucket = mixt__data_bucket_of(f.data, &(mixt__data_which){BATCH, 1, n});
            const mixt_data_info *info = &mixt__data_bucket_at(f.data, bucket)->info;
            make_batch(&f, info, n);
            float loss = run_pass(&f, bucket, grad);
            spoiled += spoil(info, f.input);
            float same = run_pass(&f, bucket, grad + total);
            assert_true(isfinite(loss) && loss > 0);
            assert_memory_equal(&loss, &same, sizeof loss);
            assert_memory_equal(grad, grad + total, total * sizeof *grad);
        }
        assert_true(spoiled > 0);
        free(grad);
        end(&f);
    }
}

/** How much padding there is changes nothing but the order of sums. */
static void a_bucket_has_the_loss_of_the_longest(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        fixture f = start(&shapes[s], "fp32");
        size_t total = (size_t)f.trainer->inner->params->total;
        float *grad = malloc(total * 2 * sizeof *grad);
        int last = mixt__data_bucket_count(f.data) - 1, shorter = 0;
        for (int64_t n = 0; n < SAMPLES / BATCH; n++) {
            int bucket = mixt__data_bucket_of(f.data, &(mixt__data_which){BATCH, 1, n});
            double difference = 0, size = 0;
            make_batch(&f, &mixt__data_bucket_at(f.data, bucket)->info, n);
            float loss = run_pass(&f, bucket, grad);
            make_batch(&f, &f.data->info, n);
            float whole = run_pass(&f, last, grad + total);
            for (size_t i = 0; i < total; i++) {
                difference += pow((double)grad[i] - (double)grad[total + i], 2);
                size += pow((double)grad[i], 2);
            }
            shorter += bucket < last;
            assert_true(fabsf(loss - whole) <= 64 * 0x1p-24f * loss);
            assert_true(difference <= pow(2e-5, 2) * size);
        }
        assert_true(shorter > 0);
        free(grad);
        end(&f);
    }
}

/** Outputs are those of the recording alone, and behind its end they spell nothing. */
static void predictions_end_with_the_recording(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        fixture f = start(&shapes[s], "bf16");
        int64_t outputs, valid, classes = f.data->info.classes;
        ok(mixt_trainer_outputs(f.trainer, &outputs));
        float *made = malloc((size_t)(2 * BATCH * outputs) * sizeof *made), *again = made + BATCH * outputs;
        ok(mixt_data_read(f.data, 0, BATCH, f.input, f.target, &valid));
        ok(mixt_trainer_predict(f.trainer, f.input, BATCH, made));
        assert_true(spoil(&f.data->info, f.input) > 0);
        ok(mixt_trainer_predict(f.trainer, f.input, BATCH, again));
        assert_memory_equal(made, again, (size_t)(BATCH * outputs) * sizeof *made);
        const float *behind = made + outputs - classes; // the last frame of the first, shorter than the longest
        for (int64_t k = 1; k < classes && shapes[s].text; k++)
            assert_true(behind[0] - behind[k] >= 30);
        free(made);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_changes_no_bit),
        cmocka_unit_test(a_bucket_has_the_loss_of_the_longest),
        cmocka_unit_test(predictions_end_with_the_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
