/* Event files for TensorBoard, read back by a small reader of their own: checksums, every scalar against
 * metrics.jsonl, histograms against the weights, notes, what a resumed run takes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include "../support/temp_folder.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- the reader ---- */

typedef struct bytes {
    const unsigned char *at, *end;
} bytes;

typedef struct field {
    int number, wire;
    uint64_t value; // of a varint
    bytes data;     // of everything else
} field;

static uint32_t crc_of(const unsigned char *data, size_t count)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < count; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static uint64_t varint(bytes *b)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(b->at < b->end && shift < 64);
        value |= (uint64_t)(*b->at & 127) << shift;
        if (!(*b->at++ & 128))
            return value;
    }
}

static int next_field(bytes *b, field *f)
{
    if (b->at == b->end)
        return 0;
    uint64_t key = varint(b);
    *f = (field){.number = (int)(key >> 3), .wire = (int)(key & 7)};
    if (f->wire == 0) {
        f->value = varint(b);
        return 1;
    }
    size_t size = f->wire == 1 ? 8 : f->wire == 5 ? 4 : (size_t)varint(b);
    assert_true(size <= (size_t)(b->end - b->at));
    f->data = (bytes){b->at, b->at + size};
    b->at += size;
    return 1;
}

static field need(bytes message, int number)
{
    field f;
    while (next_field(&message, &f))
        if (f.number == number)
            return f;
    fail_msg("no field %d", number);
    return f;
}

static double double_at(bytes b, size_t index)
{
    double value;
    assert_true((index + 1) * sizeof value <= (size_t)(b.end - b.at));
    memcpy(&value, b.at + index * sizeof value, sizeof value);
    return value;
}

static void text_of(bytes b, char *text, size_t size)
{
    snprintf(text, size, "%.*s", (int)(b.end - b.at), (const char *)b.at);
}

enum { EVERY = 5 }; // updates between looks into the layers

/** What was found, and what it is held against. */
typedef struct found {
    int64_t restart; // step of a session's start; -1: none
    int records, scalars, histograms, texts;
    int exponents, margins; // of layers
    mixt_metrics *metrics;
    mixt_trainer *trainer;
    int64_t steps; // of the run
} found;

static void check_scalar(found *f, int64_t step, const char *tag, bytes data)
{
    static const char *const names[][2] = {{"train/loss", "loss"},
                                           {"train/accuracy", "accuracy"},
                                           {"train/lr", "lr"},
                                           {"train/grad_norm", "grad_norm"},
                                           {"train/loss_scale", "scale"},
                                           {"train/skipped", "skipped"},
                                           {"train/epoch", "epoch"},
                                           {"machine/samples_s", "samples_s"},
                                           {"machine/memory", "memory"},
                                           {"val/loss", "val_loss"},
                                           {"val/accuracy", "val_accuracy"},
                                           {"formats/values/fp32", "share_values_fp32"},
                                           {"formats/bytes/fp32", "share_bytes_fp32"},
                                           {"formats/values/fp16", "share_values_fp16"},
                                           {"formats/bytes/fp16", "share_bytes_fp16"},
                                           {"formats/values/bf16", "share_values_bf16"},
                                           {"formats/bytes/bf16", "share_bytes_bf16"}};
    float value;
    memcpy(&value, data.at, sizeof value);
    if (!strncmp(tag, "margin/", 7)) {
        assert_true(value > 0 && step % EVERY == 0);
        f->margins++;
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(tag, names[i][0])) {
            const double *column = mixt_metrics_column(f->metrics, names[i][1]);
            const double *steps = mixt_metrics_column(f->metrics, "step");
            for (int64_t r = 0; r < mixt_metrics_describe(f->metrics).rows; r++)
                if ((int64_t)steps[r] == step) {
                    // rows have nine digits: of samples_s and others, which are no FP32 numbers, the last may differ
                    assert_true(fabs(column[r] - (double)value) <= 1.2e-7 * fabs(column[r]));
                    f->scalars++;
                    return;
                }
            fail_msg("%s of step %lld is not in metrics.jsonl", tag, (long long)step);
        }
    fail_msg("unexpected scalar %s", tag);
}

static void check_histogram(found *f, int64_t step, const char *tag, bytes data)
{
    double counted = 0, last = -INFINITY;
    bytes limits = need(data, 6).data, buckets = need(data, 7).data;
    size_t n = (size_t)(limits.end - limits.at) / 8;
    assert_true(n > 0 && buckets.end - buckets.at == limits.end - limits.at);
    for (size_t i = 0; i < n; i++) {
        assert_true(double_at(limits, i) > last);
        last = double_at(limits, i);
        counted += double_at(buckets, i);
    }
    assert_true(counted == double_at(need(data, 3).data, 0));
    if (!strncmp(tag, "exponents/", 10)) { // of 16 samples in 8 units: half are near 1 or below, or 0
        double low = double_at(need(data, 1).data, 0), high = double_at(need(data, 2).data, 0);
        assert_true(counted == 16 * 8 && step % EVERY == 0 && last == high + 0.5 && high < 16 && high - low == 63);
        f->exponents++;
        return;
    }
    f->histograms++;
    if (step != f->steps)
        return;
    for (int64_t p = 0; p < mixt_trainer_param_count(f->trainer); p++) {
        mixt_param_info info;
        float values[4096];
        double sum = 0, largest = -INFINITY;
        assert_int_equal(mixt_trainer_param(f->trainer, p, &info), MIXT_OK);
        if (strcmp(tag + strlen("weights/"), info.name))
            continue;
        assert_true(info.count <= 4096);
        assert_int_equal(mixt_trainer_param_get(f->trainer, p, values), MIXT_OK);
        for (int64_t i = 0; i < info.count; i++) {
            sum += (double)values[i];
            largest = (double)values[i] > largest ? (double)values[i] : largest;
        }
        assert_true(counted == (double)info.count);
        assert_true(double_at(need(data, 2).data, 0) == largest);
        assert_true(double_at(need(data, 4).data, 0) == sum);
        return;
    }
    fail_msg("%s is no parameter", tag);
}

static void check_value(found *f, int64_t step, bytes value)
{
    char tag[256];
    field v;
    text_of(need(value, 1).data, tag, sizeof tag);
    while (next_field(&value, &v)) {
        if (v.number == 2)
            check_scalar(f, step, tag, v.data);
        if (v.number == 5)
            check_histogram(f, step, tag, v.data);
        if (v.number == 8) {
            assert_int_equal(need(v.data, 1).value, 7); // a string
            char text[2048];
            text_of(need(v.data, 8).data, text, sizeof text);
            assert_true(strlen(text) > 0);
            f->texts++;
        }
    }
}

static void check_event(found *f, bytes message)
{
    field e;
    int64_t step = 0;
    assert_true(double_at(need(message, 1).data, 0) > 1.6e9);
    while (next_field(&message, &e)) {
        if (e.number == 2)
            step = (int64_t)e.value;
        if (e.number == 3)
            assert_true(f->records == 0 && !memcmp(e.data.at, "brain.Event:2", 13));
        if (e.number == 7)
            f->restart = step;
        for (field v; e.number == 5 && next_field(&e.data, &v);)
            check_value(f, step, v.data);
    }
    f->records++;
}

static void check_file(found *f, const char *path)
{
    size_t count;
    unsigned char *data = temp_read(path, &count);
    assert_non_null(data);
    f->records = 0;
    for (size_t at = 0; at < count;) {
        uint64_t length;
        uint32_t crc;
        assert_true(at + 16 <= count);
        memcpy(&length, data + at, 8);
        memcpy(&crc, data + at + 8, 4);
        assert_int_equal(crc, crc_of(data + at, 8));
        assert_true(at + 16 + length <= count);
        memcpy(&crc, data + at + 12 + length, 4);
        assert_int_equal(crc, crc_of(data + at + 12, length));
        check_event(f, (bytes){data + at + 12, data + at + 12 + length});
        at += 16 + length;
    }
    free(data);
}

/** The n-th event file of a folder by name; returns how many there are. */
static int event_file(const char *folder, int n, char *path, size_t size)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort), found = 0;
    for (int i = 0; i < count; i++) {
        if (!strncmp(entries[i]->d_name, "events.out.tfevents.", 20) && found++ == n)
            snprintf(path, size, "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return found;
}

/* ---- the tests ---- */

static const char *settings_with(const char *last, const char *const **settings)
{
    static char out[600];
    static const char *list[16];
    snprintf(out, sizeof out, "out=%s", temp_path("board"));
    const char *const all[] = {"model=mlp",
                               "net.hidden=8",
                               "data.samples=160",
                               "train.batch=16",
                               "device=cpu",
                               "threads=1",
                               "data.shape=12",
                               "data.kind=random",
                               "train.epochs=2",
                               "data.classes=3",
                               "watch.every=5",
                               out,
                               last,
                               NULL};
    memcpy(list, all, sizeof all);
    *settings = list;
    return temp_path("board");
}

static mixt_run *open_run(const char *const *settings)
{
    mixt_config *config;
    mixt_run *run;
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    if (mixt_run_open_config(config, MIXT_OPTIONS_AT(mixt_run_options, .settings = settings), &run) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    mixt_config_free(config);
    return run;
}

static void check_run(const char *folder, mixt_run *run, const mixt_run_result *result, int file, found *f)
{
    char path[1024];
    *f = (found){.restart = -1, .trainer = mixt_run_trainer(run), .steps = result->steps};
    assert_int_equal(mixt_metrics_read(folder, &f->metrics), MIXT_OK);
    assert_int_equal(event_file(folder, file, path, sizeof path), file + 1);
    check_file(f, path);
}

static void test_all_is_there(void **state)
{
    (void)state;
    const char *const *settings, *folder = settings_with("train.tensorboard=true", &settings);
    mixt_run *run = open_run(settings);
    mixt_run_result result;
    found f;
    if (mixt_run_train(run, &result) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    check_run(folder, run, &result, 0, &f);
    int64_t rows = mixt_metrics_describe(f.metrics).rows;
    assert_int_equal(rows, result.steps);
    assert_true(f.scalars >= 9 * rows + 2 * result.validations);
    assert_int_equal(f.histograms, result.validations * mixt_trainer_param_count(mixt_run_trainer(run)));
    assert_true(f.texts >= 5);                               // what is told at the start
    assert_int_equal(f.exponents, result.steps / EVERY * 2); // of one layer, its output and the gradient of that
    assert_int_equal(f.margins, f.exponents);
    assert_int_equal(f.restart, -1);
    mixt_metrics_free(f.metrics);
    mixt_run_close(run);

    int64_t before = result.steps;
    // going on begins another file, which takes back what was said from there on
    char more[] = "train.epochs=3";
    const char *const longer[] = {more, NULL};
    if (mixt_run_resume_with(folder, MIXT_OPTIONS_AT(mixt_run_options, .settings = longer), &run) != MIXT_OK ||
        mixt_run_train(run, &result) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    check_run(folder, run, &result, 1, &f);
    assert_int_equal(f.restart, before + 1);
    mixt_metrics_free(f.metrics);
    mixt_run_close(run);
    temp_folder_empty();
}

static void test_not_asked_for(void **state)
{
    (void)state;
    char path[1024];
    const char *const *settings, *folder = settings_with("seed=2", &settings);
    mixt_run *run = open_run(settings);
    assert_int_equal(mixt_run_train(run, NULL), MIXT_OK);
    assert_int_equal(event_file(folder, 0, path, sizeof path), 0);
    mixt_run_close(run);
    temp_folder_empty();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_there),
        cmocka_unit_test(test_not_asked_for),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
