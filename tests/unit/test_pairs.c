/* Pictures with captions: what a sample is, the contrastive loss by hand, padding that changes nothing, recall by hand,
 * and folders that are not as they should be. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 20, WIDTH = 8, OUTPUTS = 2 * WIDTH };

static mixt_data *open_pairs(const char *split, int64_t samples, const mixt_data *like)
{
    mixt_data *data;
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .split = split, .samples = samples, .like = like, .seed = 3);
    if (mixt_data_open_with("pairs:", &o, &data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return data;
}

/** Bytes of the sample's caption are the name of its target; the same sample comes twice, other parts have others. */
static void samples_are_pictures_and_words(void **state)
{
    static const char *const names[] = {"picture", "caption", "caption.length", "caption.mask", "target"};
    mixt_data *train = open_pairs("train", SAMPLES, NULL), *val = open_pairs("val", SAMPLES, train);
    const mixt_data_info *info = mixt_data_describe(train);
    char *input[2] = {calloc(1, mixt_data_input_bytes(train, 1)), calloc(1, mixt_data_input_bytes(train, 1))};
    int32_t target[2];
    int64_t valid;
    (void)state;
    assert_int_equal(info->array_count, 5);
    for (int i = 0; i < 5; i++)
        assert_string_equal(info->arrays[i].name, names[i]);
    assert_int_equal(mixt_data_describe(val)->arrays[1].dims[0], info->arrays[1].dims[0]);
    for (int i = 0; i < SAMPLES; i++) {
        char text[128] = "";
        for (int k = 0; k < 2; k++)
            assert_int_equal(mixt_data_read(train, i, 1, input[k], &target[k], &valid), MIXT_OK);
        assert_memory_equal(input[0], input[1], mixt_data_input_bytes(train, 1));
        const int32_t *bytes = (const int32_t *)(const void *)(input[0] + mixt_data_array_at(train, 1, 1));
        const int32_t *length = (const int32_t *)(const void *)(input[0] + mixt_data_array_at(train, 1, 2));
        const float *mask = (const float *)(const void *)(input[0] + mixt_data_array_at(train, 1, 3));
        for (int k = 0; k < info->arrays[1].dims[0]; k++) {
            text[k] = (char)bytes[k];
            assert_true(mask[k] == (k < *length ? 1.0f : 0.0f));
            assert_true(k < *length || bytes[k] == 0);
        }
        assert_string_equal(text, info->arrays[4].names[target[0]]);
        assert_int_equal(mixt_data_read(val, i, 1, input[1], &target[1], &valid), MIXT_OK);
        assert_memory_not_equal(input[0], input[1], mixt_data_array_at(train, 1, 1));
    }
    free(input[0]);
    free(input[1]);
    mixt_data_close(val);
    mixt_data_close(train);
}

typedef struct fixture {
    mixt_context *context;
    mixt_data *data;
    mixt_trainer *trainer;
    float vectors[SAMPLES][OUTPUTS];
    int32_t caption[SAMPLES];
} fixture;

static void start(fixture *f, int64_t eval_batch)
{
    static const int64_t channels[] = {4};
    f->context = mixt_open(.device = "cpu", .threads = 2);
    f->data = open_pairs("train", SAMPLES, NULL);
    mixt_model *model = mixt_zoo_model(f->context, "pair", f->data, .width = WIDTH, .channels = channels,
                                       .channel_count = 1, .norm = "none");
    f->trainer = mixt_trainer_new(model, .batch = 8, .eval_batch = eval_batch, .precision = "fp32", .seed = 5);
    if (mixt_trainer_compile(f->trainer, f->data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    char *input = calloc(1, mixt_data_input_bytes(f->data, SAMPLES));
    int64_t valid, outputs;
    assert_int_equal(mixt_data_read(f->data, 0, SAMPLES, input, f->caption, &valid), MIXT_OK);
    assert_int_equal(mixt_trainer_outputs(f->trainer, &outputs), MIXT_OK);
    assert_int_equal(outputs, OUTPUTS);
    assert_int_equal(mixt_trainer_predict(f->trainer, input, SAMPLES, &f->vectors[0][0]), MIXT_OK);
    free(input);
}

static void stop(fixture *f)
{
    mixt_close(f->context);
    mixt_data_close(f->data);
}

static double cosine(const fixture *f, int picture, int caption)
{
    double sum = 0;
    for (int i = 0; i < WIDTH; i++)
        sum += (double)f->vectors[picture][i] * (double)f->vectors[caption][WIDTH + i];
    return sum;
}

/** -log of the share that the right one has, of sample `own` among [first, end). */
static double surprise(const fixture *f, int own, int first, int end, bool from_picture)
{
    double scale = exp(2.659), total = 0;
    for (int i = first; i < end; i++)
        total += exp(scale * (from_picture ? cosine(f, own, i) : cosine(f, i, own)));
    return log(total) - scale * cosine(f, own, own);
}

/** The loss is the one by hand, in batches that divide the set and in ones that do not. */
static void losses_are_those_by_hand(void **state)
{
    static const int batches[] = {SAMPLES, 8, 32};
    (void)state;
    for (int b = 0; b < 3; b++) {
        fixture f;
        mixt_evaluation result;
        double wanted = 0;
        start(&f, batches[b]);
        for (int i = 0; i < SAMPLES; i++) {
            int first = i / batches[b] * batches[b], end = first + batches[b] < SAMPLES ? first + batches[b] : SAMPLES;
            wanted += (surprise(&f, i, first, end, true) + surprise(&f, i, first, end, false)) / 2 / SAMPLES;
        }
        assert_int_equal(mixt_trainer_evaluate(f.trainer, f.data, &result), MIXT_OK);
        assert_int_equal(result.count, SAMPLES);
        if (fabs(result.loss - wanted) > 1e-5 * wanted)
            fail_msg("batches of %d: loss %.9g, by hand %.9g", batches[b], result.loss, wanted);
        for (int i = 0; i < SAMPLES; i++) {
            double length = 0;
            for (int k = 0; k < WIDTH; k++)
                length += (double)f.vectors[i][k] * (double)f.vectors[i][k];
            assert_true(fabs(length - 1) < 1e-4);
        }
        stop(&f);
    }
}

/** Steps are taken in every format, with the memory that was planned. */
static void steps_are_as_planned(void **state)
{
    static const char *const precisions[] = {"fp32", "bf16", "fp16"};
    static const int64_t channels[] = {4};
    (void)state;
    for (int p = 0; p < 3; p++) {
        mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
        mixt_data *data = open_pairs("train", SAMPLES, NULL);
        mixt_model *model =
            mixt_zoo_model(context, "pair", data, .width = WIDTH, .channels = channels, .channel_count = 1);
        mixt_trainer *t = mixt_trainer_new(model, .batch = 10, .precision = precisions[p], .lr = 0.01f);
        mixt_memory memory;
        mixt_step step = {0};
        double first = 0;
        for (int i = 0; i < 12; i++) {
            if (mixt_trainer_step(t, data, &step) != MIXT_OK)
                fail_msg("%s", mixt_error_text());
            first = i ? first : step.loss;
        }
        assert_true(step.loss < first);
        assert_int_equal(mixt_trainer_memory(t, &memory), MIXT_OK);
        assert_int_equal(memory.total, memory.allocated);
        mixt_close(context);
        mixt_data_close(data);
    }
}

/** Wrong captions at least as close as the picture's own; each caption once. */
static int place_by_hand(const fixture *f, int picture)
{
    int ahead = 0;
    for (int c = 0; c < SAMPLES; c++) {
        bool again = f->caption[c] == f->caption[picture];
        for (int before = 0; before < c; before++)
            again |= f->caption[before] == f->caption[c];
        ahead += !again && cosine(f, picture, c) >= cosine(f, picture, picture);
    }
    return ahead;
}

static void recall_is_that_by_hand(void **state)
{
    fixture f;
    mixt_recall recall;
    mixt_match matches[SAMPLES * 3];
    int64_t found;
    double hits[2] = {0};
    (void)state;
    start(&f, 8);
    assert_int_equal(mixt_pairs_recall(f.trainer, f.data, &recall), MIXT_OK);
    assert_int_equal(mixt_pairs_best(f.trainer, f.data, 0, SAMPLES, 3, matches, &found), MIXT_OK);
    assert_int_equal(found, 3);
    for (int i = 0; i < SAMPLES; i++) {
        int place = place_by_hand(&f, i);
        hits[0] += place < 1;
        hits[1] += place < 5;
        assert_true(matches[3 * i].cosine >= matches[3 * i + 1].cosine);
        assert_int_equal(matches[3 * i].caption == f.caption[i], place < 1);
    }
    assert_int_equal(recall.pictures, SAMPLES);
    assert_true(fabs(recall.captions_found[0] - hits[0] / SAMPLES) < 1e-9);
    assert_true(fabs(recall.captions_found[1] - hits[1] / SAMPLES) < 1e-9);
    assert_true(recall.pictures_found[0] <= recall.pictures_found[1]);
    assert_int_not_equal(mixt_pairs_best(f.trainer, f.data, SAMPLES, 1, 3, matches, &found), MIXT_OK);
    stop(&f);
}

/** A folder with these captions. */
static void refused(const char *captions, const char *text)
{
    static const char picture[] = "P6 2 2 255\nabcdefghijkl";
    char spec[300];
    mixt_data *data;
    assert_true(temp_write(temp_path("a.ppm"), picture, sizeof picture - 1));
    assert_true(temp_write(temp_path("captions.tsv"), captions, strlen(captions)));
    snprintf(spec, sizeof spec, "pairs:%s", temp_folder);
    assert_int_not_equal(mixt_data_open_with(spec, NULL, &data), MIXT_OK);
    if (!strstr(mixt_error_text(), text))
        fail_msg("'%s' in '%s'", text, mixt_error_text());
}

static void captions_are_checked(void **state)
{
    (void)state;
    refused("", "captions.tsv: the file is empty");
    refused("\n\n", "captions.tsv: holds no captions");
    refused("a.ppm\tone\na.ppm two\n", "captions.tsv:2: expected an image's file, a tab and its caption");
    refused("a.ppm\t\n", "captions.tsv:1: expected");
    refused("\tone\n", "captions.tsv:1: expected");
    refused("a.ppm\tone\r\n\nb.ppm\ttwo\n", "captions.tsv:3:");
    refused("b.ppm\ttwo\n", "b.ppm: no such file");
    refused("a.ppm\t\xff\xfe\xfd\xfc\xff\xfe\xfd\xfc\xff\xff\xff\n", "captions.tsv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_pictures_and_words), cmocka_unit_test(losses_are_those_by_hand),
        cmocka_unit_test(steps_are_as_planned),           cmocka_unit_test(recall_is_that_by_hand),
        cmocka_unit_test(captions_are_checked),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
