/* Looking into layers: what observers are told is true, training has the same bits with and without, rows are those of
 * a run that was never stopped, and there is memory for it or it is left out. */
#include "../support/temp_folder.h"

#include "mixt/mixt.h"
#include "run/run.h"
#include "train/instrument.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SETTINGS = 24, STEPS = 12, EVERY = 3 };

#define check_ok(call)                                                                                                 \
    do {                                                                                                               \
        if ((call) != MIXT_OK)                                                                                         \
            fail_msg("%s: %s", #call, mixt_error_text());                                                              \
    } while (0)

/** What was heard in a run. */
typedef struct heard {
    int looks, steps, notes;
    int64_t last; // step
    double losses[STEPS + 1];
    char order[64];      // of STEP (s), LAYERS (l) and VALIDATION (v)
    mixt_policy *policy; // to go on under from step 5 on; NULL: none
} heard;

static void check_tensor(const mixt_tensor_signal *s, mixt_dtype dtype)
{
    int64_t count = 0;
    assert_int_equal(s->dtype, dtype);
    assert_true(s->amax > 0 && s->rms > 0 && s->rms <= s->amax && s->zero >= 0 && s->zero < 1 && s->nonfinite == 0);
    if (dtype == MIXT_DTYPE_FP16)
        assert_true(fabs(s->margin - log2(65504 / s->amax)) < 1e-9 && s->flushed <= s->zero);
    assert_non_null(s->exponents);
    for (int e = 0; e < 256; e++)
        count += s->exponents[e];
    assert_true(s->exponents[0] >= (int64_t)(s->zero * (double)count + 0.5));
    int top = 255;
    while (top && !s->exponents[top])
        top--;
    assert_int_equal(top - 127, ilogb(s->amax));
}

/** All numbers of the step are in the policy's format or in FP32, which has more of the bytes than of the numbers. */
static void check_shares(const mixt_run_row *row, mixt_dtype low)
{
    double values = 0, bytes = 0;
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
        values += row->share_values[d];
        bytes += row->share_bytes[d];
    }
    assert_true(fabs(values - 1) < 1e-9 && fabs(bytes - 1) < 1e-9);
    assert_true(row->share_values[low] > 0.2 && row->share_bytes[MIXT_DTYPE_FP32] > row->share_values[MIXT_DTYPE_FP32]);
    assert_true(fabs(row->share_values[low] + row->share_values[MIXT_DTYPE_FP32] - 1) < 1e-9);
}

static mixt_status hear(void *user, mixt_run *run, const mixt_event *event)
{
    heard *h = user;
    size_t used = strlen(h->order);
    h->notes += event->kind == MIXT_EVENT_NOTE && strstr(event->text, "watch.every") != NULL;
    if (event->kind == MIXT_EVENT_STEP)
        h->losses[h->steps++ % (STEPS + 1)] = event->step->loss;
    if (event->kind == MIXT_EVENT_ROW)
        check_shares(event->row, h->policy && event->step->step > 5 ? MIXT_DTYPE_BF16 : MIXT_DTYPE_FP16);
    if (event->kind == MIXT_EVENT_STEP && event->step->step == 5 && h->policy)
        return mixt_run_ask_policy(run, h->policy);
    const char *letter = event->kind == MIXT_EVENT_STEP         ? "s"
                         : event->kind == MIXT_EVENT_LAYERS     ? "l"
                         : event->kind == MIXT_EVENT_VALIDATION ? "v"
                                                                : "";
    snprintf(h->order + used, sizeof h->order - used, "%s", letter);
    if (event->kind != MIXT_EVENT_LAYERS) {
        assert_null(event->layers);
        return MIXT_OK;
    }
    const mixt_layer_signals *s = event->layers;
    mixt_dtype dtype = h->policy && s->step > 5 ? MIXT_DTYPE_BF16 : MIXT_DTYPE_FP16;
    h->looks++;
    h->last = s->step;
    assert_int_equal(s->step, event->step->step);
    assert_int_equal(s->layer_count, 2);
    assert_string_equal(s->layers[0].layer, "fc.0");
    for (int i = 0; i < 2; i++) {
        check_tensor(&s->layers[i].activation, dtype);
        check_tensor(&s->layers[i].gradient, dtype);
    }
    double squares = 0;
    assert_int_equal(s->param_count, 6);
    for (int64_t i = 0; i < s->param_count; i++) {
        mixt_param_info info;
        const mixt_param_signal *p = &s->params[i];
        check_ok(mixt_trainer_param(mixt_run_trainer(run), i, &info));
        assert_string_equal(p->name, info.name);
        assert_true(p->amax >= p->rms && p->rms > 0 && p->zero < 1 && p->nonfinite == 0);
        squares += p->rms * p->rms * (double)info.count;
    }
    assert_true(fabs(sqrt(squares) - event->step->grad_norm) < 1e-4 * event->step->grad_norm);
    return MIXT_OK;
}

static void train(const char *name, const char *more, heard *h, size_t *planned)
{
    char text[2048];
    const char *settings[SETTINGS];
    int count = 0;
    snprintf(text, sizeof text,
             "model=mlp precision=fp16 threads=2 net.hidden=24,16 net.dropout=0.1 data.kind=random data.shape=12 "
             "data.classes=3 data.samples=160 train.epochs=0 train.steps=%d train.batch=16 train.checkpoint_every=4 "
             "train.validate_every=6 out=%s/%s %s",
             STEPS, temp_folder, name, more);
    for (char *word = strtok(text, " "); word && count + 1 < SETTINGS; word = strtok(NULL, " "))
        settings[count++] = word;
    settings[count] = NULL;
    mixt_config *config;
    mixt_run *run;
    mixt_run_result result;
    check_ok(mixt_config_new(&config));
    check_ok(mixt_run_open_config(
        config, MIXT_OPTIONS_AT(mixt_run_options, .settings = settings, .observer = hear, .user = h), &run));
    check_ok(mixt_run_train(run, &result));
    assert_int_equal(result.memory.total, result.memory.allocated);
    assert_true(result.run_memory.allocated.host < result.run_memory.total.host + (64 << 10)); // rows under way
    if (planned)
        *planned = result.memory.total;
    mixt_run_close(run);
    mixt_config_free(config);
}

static char *read_rows(const char *name)
{
    char path[1200];
    size_t room = 1 << 20;
    char *text = calloc(1, room);
    snprintf(path, sizeof path, "%s/%s/layers.jsonl", temp_folder, name);
    FILE *file = fopen(path, "r");
    size_t got = file ? fread(text, 1, room - 1, file) : 0;
    if (file)
        fclose(file);
    text[got] = '\0';
    return text;
}

static int lines(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

/** Every third update of twelve, in order with the other events; the same losses as without. */
static void observers_hear_of_layers(void **state)
{
    heard looked = {0}, plain = {0};
    size_t with, without;
    (void)state;
    train("looked", "watch.every=3", &looked, &with);
    train("plain", "watch.every=0", &plain, &without);
    assert_int_equal(looked.looks, STEPS / EVERY);
    assert_int_equal(looked.last, STEPS);
    assert_string_equal(looked.order, "ssslssslvssslssslv");
    assert_int_equal(plain.looks, 0);
    assert_memory_equal(looked.losses, plain.losses, sizeof plain.losses);
    assert_true(with > without);
    char *rows = read_rows("looked"), *none = read_rows("plain");
    assert_int_equal(lines(rows), 1 + STEPS / EVERY);
    assert_string_equal(none, "");
    free(rows);
    free(none);
}

/** Stopped and gone on, the file is that of a run that was never stopped. */
static void rows_survive_a_stop(void **state)
{
    heard h = {0};
    char folder[1200];
    mixt_run *run;
    (void)state;
    train("whole", "watch.every=3", &h, NULL);
    train("stopped", "watch.every=3 train.steps=7", &h, NULL);
    snprintf(folder, sizeof folder, "%s/stopped", temp_folder);
    const char *const longer[] = {"train.steps=12", NULL};
    check_ok(mixt_run_resume(folder, &run, .settings = longer));
    check_ok(mixt_run_train(run, NULL));
    mixt_run_close(run);
    char *whole = read_rows("whole"), *stopped = read_rows("stopped");
    assert_string_equal(whole, stopped);
    free(whole);
    free(stopped);
}

/** Another policy brings another step: it is looked into too, under a row of names with its formats. */
static void another_policy_is_looked_into(void **state)
{
    heard h = {0};
    (void)state;
    check_ok(mixt_policy_open("bf16", &h.policy));
    train("policy", "watch.every=3", &h, NULL);
    assert_int_equal(h.looks, STEPS / EVERY);
    char *rows = read_rows("policy"), *second;
    assert_int_equal(lines(rows), 2 + STEPS / EVERY);
    second = strstr(strstr(rows, "\"names\":") + 1, "\"names\":");
    assert_non_null(second);
    assert_non_null(strstr(second, "\"activations\":[\"bf16\",\"bf16\"]"));
    free(rows);
    mixt_policy_free(h.policy);
}

/** Where there is no room for it the run trains without, in the memory of a run that never wanted it, and says so. */
static void no_room_is_told(void **state)
{
    heard h = {0};
    char setting[512];
    mixt_run *run[2];
    mixt_run_memory memory[3];
    mixt_config *config;
    (void)state;
    snprintf(setting, sizeof setting, "out=%s/dropped", temp_folder);
    const char *settings[] = {"watch.every=0",    setting,
                              "model=mlp",        "net.hidden=24,16",
                              "data.kind=random", "data.shape=12",
                              "data.classes=3",   "data.samples=160",
                              "train.epochs=0",   "train.steps=12",
                              "train.batch=16",   "precision=fp16",
                              "threads=2",        NULL};
    check_ok(mixt_config_new(&config));
    for (int i = 0; i < 2; i++) {
        mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .settings = settings, .observer = hear, .user = &h);
        check_ok(mixt_run_open_config(config, &options, &run[i]));
        check_ok(mixt_run_plan_memory(run[i], &memory[i]));
        settings[0] = "watch.every=3";
    }
    assert_true(memory[1].step.host > memory[0].step.host && memory[1].batches.host > memory[0].batches.host);
    assert_false(mixt__layers_drop(run[0]));
    assert_true(mixt__layers_drop(run[1]));
    assert_false(mixt__layers_drop(run[1]));
    assert_int_equal(h.notes, 1);
    check_ok(mixt_run_plan_memory(run[1], &memory[2]));
    assert_int_equal(memory[2].step.host, memory[0].step.host);
    assert_int_equal(memory[2].batches.host, memory[0].batches.host);
    check_ok(mixt_run_train(run[1], NULL));
    assert_int_equal(h.looks, 0);
    mixt_run_close(run[0]);
    mixt_run_close(run[1]);
    mixt_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(observers_hear_of_layers),
        cmocka_unit_test(rows_survive_a_stop),
        cmocka_unit_test(another_policy_is_looked_into),
        cmocka_unit_test(no_room_is_told),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
