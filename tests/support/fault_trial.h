/* One trial: a small net that trains well, a fault that is injected, what the monitor sees of it, and the diagnosis. */
#ifndef MIXT_TESTS_FAULT_TRIAL_H
#define MIXT_TESTS_FAULT_TRIAL_H

#include "mixt/mixt.h"
#include "base/memory.h"
#include "base/rng.h"
#include "run/open/experiment.h"
#include "steer/diagnosis.h"
#include "train/faults.h"
#include "train/trainer_inside.h"

#include "temp_folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** Models of the trials: settings, and layers to choose from. */
typedef struct trial_model {
    const char *name;
    const char *settings[10];
    const char *layers[5];      // with a product of their own
    const char *activations[4]; // that leave an activation behind
    bool tokens;
} trial_model;

static const trial_model trial_models[] = {
    {"mlp",
     {"model=mlp", "net.hidden=48,32", "train.batch=32", "data.samples=3000", "train.lr=0.003"},
     {"fc.0", "fc.1", "fc.2"},
     {"fc.0", "fc.1"},
     false},
    {"convnet",
     {"model=convnet", "net.channels=6,8", "train.batch=24", "data.samples=2000", "train.lr=0.004"},
     {"conv1", "conv2", "fc"},
     {"conv1", "conv2"},
     false},
    {"lstm",
     {"model=lstm", "net.width=48", "net.layers=1", "train.batch=16", "data.seq=24", "train.lr=0.005"},
     {"rnn.0", "out"},
     {"rnn.0", "out"},
     true},
    {"gpt",
     {"model=gpt", "net.width=32", "net.layers=1", "net.heads=2", "train.batch=16", "data.seq=24", "train.lr=0.003"},
     {"h.0.attn.qkv", "h.0.attn.proj", "h.0.mlp.fc", "h.0.mlp.out"},
     {"h.0.attn.qkv", "h.0.mlp.fc", "h.0.mlp.out"},
     true},
};
enum { TRIAL_MODELS = 4, TRIAL_EVERY = 100, TRIAL_PATIENCE = 60 };

typedef struct trial {
    const trial_model *model;
    mixt__fault_kind kind;
    int64_t step;
    const char *layer; // NULL: the kind is of none
    bool always;
    uint64_t seed;
    const char *precision;
    // what came out
    mixt_status status;
    bool seen;            // the monitor, or the trace, raised something
    int64_t seen_at;      // when
    int64_t false_alarms; // before the fault
    mixt_diagnosis d;
    mixt__diagnosis_words words; // of d: what came out is looked at where it was found
} trial;

typedef struct trial_state {
    mixt_config *config;
    mixt__experiment e;
    mixt_monitor *monitor;
    mixt__snapshots ring;
    int64_t quiet; // updates without an alert
} trial_state;

static inline mixt_status trial_set(mixt_config *config, const char *text)
{
    return mixt_config_set(config, text, "trial");
}

/** A text of a few words in random order, from which a small net learns to spell. @return its path */
static inline const char *trial_text(void)
{
    static const char *const words[] = {"the ",    "layer ", "of ", "a ",    "number ", "has ",
                                        "format ", "and ",   "in ", "step ", "loss ",   "is "};
    const char *path = temp_path("text.txt");
    FILE *file = access(path, F_OK) ? fopen(path, "w") : NULL;
    mixt__rng rng = mixt__rng_start(7);
    for (int i = 0; file && i < 6000; i++)
        fputs(words[mixt__rng_below(&rng, 12)], file);
    if (file)
        fclose(file);
    return path;
}

static inline mixt_status trial_configure(const trial *t, mixt_config *config)
{
    char faults[160], text[640];
    for (int i = 0; i < 10 && t->model->settings[i]; i++)
        MIXT_TRY(trial_set(config, t->model->settings[i]));
    snprintf(faults, sizeof faults, "%s@%lld%s%s%s", mixt__fault_name(t->kind), (long long)t->step, t->layer ? ":" : "",
             t->layer ? t->layer : "", t->always ? ":always" : "");
    snprintf(text, sizeof text, "faults=%s", faults);
    MIXT_TRY(trial_set(config, text));
    snprintf(text, sizeof text, "data.path=%s", t->model->tokens ? trial_text() : "");
    MIXT_TRY(trial_set(config, text));
    snprintf(text, sizeof text, "seed=%llu", (unsigned long long)t->seed);
    MIXT_TRY(trial_set(config, text));
    snprintf(text, sizeof text, "precision=%s", t->precision);
    MIXT_TRY(trial_set(config, text));
    MIXT_TRY(trial_set(config, "device=cpu"));
    MIXT_TRY(trial_set(config, "threads=1"));
    MIXT_TRY(trial_set(config, "train.epochs=0"));
    return trial_set(config, "train.steps=100000");
}

static inline mixt_status trial_open(const trial *t, trial_state *s)
{
    MIXT_TRY(mixt_config_new(&s->config));
    MIXT_TRY(trial_configure(t, s->config));
    MIXT_TRY(mixt__experiment_open(&s->e, s->config));
    MIXT_TRY(mixt__trainer_allocate(s->e.trainer->inner));
    MIXT_TRY(mixt_monitor_new(NULL, &s->monitor));
    MIXT_TRY(mixt__snapshots_open(&s->ring, s->e.trainer->inner, TRIAL_EVERY));
    return mixt__snapshots_restart(&s->ring);
}

static inline void trial_close(trial_state *s)
{
    mixt__snapshots_close(&s->ring);
    mixt_monitor_free(s->monitor);
    mixt__experiment_close(&s->e);
    mixt_config_free(s->config);
}

/** One update, and whether something is wrong with it. */
static inline mixt_status trial_update(trial_state *s, bool *wrong, mixt_cause *cause)
{
    mixt__trainer *t = s->e.trainer->inner;
    mixt_alert alerts[MIXT_ALERTS_MAX];
    mixt_step step;
    MIXT_TRY(mixt__trainer_step(t, s->e.train, &step));
    mixt_signals g = {.step = step.step, .loss = step.loss, .grad_norm = step.grad_norm, .lr = step.lr};
    double taken = (double)mixt__memory_withheld();
    g.scale = step.scale;
    g.seconds = NAN;
    g.memory_used = taken;
    g.memory_total = taken > 0 ? taken / 0.99 : (double)NAN;
    g.skipped = step.skipped;
    g.scaling = t->settings.scaling.enabled && t->settings.scaling.dynamic;
    g.overflow_layer = step.overflow_layer;
    int count = mixt_monitor_step(s->monitor, &g, alerts);
    *wrong = false;
    for (int i = 0; i < count; i++)
        if (alerts[i].severity >= MIXT_SEVERITY_WARNING && !*wrong) {
            *wrong = true;
            *cause = alerts[i].cause;
        }
    s->quiet = count ? 0 : s->quiet + 1;
    MIXT_TRY(mixt__snapshots_add(&s->ring, &step));
    if (s->quiet >= 8 && step.step % TRIAL_EVERY == 0)
        MIXT_TRY(mixt__snapshots_take(&s->ring));
    if (!*wrong && mixt__snapshots_dead(&s->ring)) {
        *wrong = true;
        *cause = MIXT_CAUSE_GRADIENT_ANOMALY;
    }
    return MIXT_OK;
}

static inline mixt_status trial_train(trial *t, trial_state *s)
{
    bool wrong = false;
    mixt_cause cause = MIXT_CAUSE_COUNT;
    while (!wrong && s->e.trainer->inner->attempts < t->step + TRIAL_PATIENCE) {
        MIXT_TRY(trial_update(s, &wrong, &cause));
        t->false_alarms += wrong && s->e.trainer->inner->attempts < t->step;
        wrong = wrong && s->e.trainer->inner->attempts >= t->step;
    }
    t->seen = wrong;
    t->seen_at = s->e.trainer->inner->attempts;
    if (!wrong)
        return MIXT_OK;
    mixt__diagnose_request request = {.ring = &s->ring, .data = s->e.train, .symptom = cause, .words = &t->words};
    return mixt__diagnose(&request, &t->d);
}

/** Trains until the fault is seen and asks for a diagnosis. */
static inline void trial_run(trial *t)
{
    trial_state s = {0};
    t->status = trial_open(t, &s);
    if (t->status == MIXT_OK)
        t->status = trial_train(t, &s);
    trial_close(&s);
}

/** Whether the update that is named is the right one: a flipped master shows when the working copies are next made. */
static inline bool trial_right_step(const trial *t)
{
    int64_t late = t->d.step - t->step;
    return late == 0 || (late == 1 && t->kind == MIXT_FAULT_FLIP_WEIGHT);
}

static inline bool trial_right_layer(const trial *t)
{
    return t->layer && mixt__injection_covers(t->layer, t->d.layers[0]);
}

/** Whether the diagnosis is the right one, with what it must name. */
static inline bool trial_right(const trial *t)
{
    const mixt_diagnosis *d = &t->d;
    if (t->status != MIXT_OK || !t->seen)
        return false;
    switch (t->kind) {
    case MIXT_FAULT_NAN_DATA:
        return d->kind == MIXT_DIAGNOSIS_BATCH && trial_right_step(t) && d->sample >= 0;
    case MIXT_FAULT_LABEL:
        return d->kind == MIXT_DIAGNOSIS_BATCH && trial_right_step(t);
    case MIXT_FAULT_LR:
        return d->kind == MIXT_DIAGNOSIS_OPTIMIZER && trial_right_step(t);
    case MIXT_FAULT_DEAD_LAYER:
        return d->kind == MIXT_DIAGNOSIS_DEAD_LAYER && trial_right_step(t) && trial_right_layer(t);
    case MIXT_FAULT_OVERFLOW:
    case MIXT_FAULT_UNDERFLOW:
    case MIXT_FAULT_SCALE_COLLAPSE:
        return d->kind == MIXT_DIAGNOSIS_PRECISION && trial_right_step(t) && trial_right_layer(t);
    case MIXT_FAULT_MEMORY:
        return d->kind == MIXT_DIAGNOSIS_MEMORY && trial_right_step(t);
    case MIXT_FAULT_FLIP_WEIGHT:
        return d->kind == MIXT_DIAGNOSIS_HARDWARE && trial_right_step(t) && trial_right_layer(t) &&
               d->persists == t->always;
    default:
        return d->kind == MIXT_DIAGNOSIS_HARDWARE && trial_right_step(t) && d->persists == t->always;
    }
}

/** A trial with random model, layer and update. */
static inline trial trial_draw(mixt__fault_kind kind, uint64_t seed)
{
    mixt__rng rng = mixt__rng_start(mixt__rng_key(seed, 0x747269616cu, (uint64_t)kind));
    trial t = {.kind = kind, .seed = seed, .precision = "fp16"};
    do
        t.model = &trial_models[mixt__rng_below(&rng, TRIAL_MODELS)];
    while (kind == MIXT_FAULT_NAN_DATA && t.model->tokens);
    t.step = 250 + (int64_t)mixt__rng_below(&rng, 200);
    bool activation = kind == MIXT_FAULT_FLIP_ACTIVATION;
    const char *const *layers = activation ? t.model->activations : t.model->layers;
    int count = 0;
    while (count < (activation ? 4 : 5) && layers[count])
        count++;
    bool none =
        kind == MIXT_FAULT_NAN_DATA || kind == MIXT_FAULT_LABEL || kind == MIXT_FAULT_LR || kind == MIXT_FAULT_MEMORY;
    t.layer = none ? NULL : layers[mixt__rng_below(&rng, (uint64_t)count)];
    return t;
}

/** One line for people. */
static inline void trial_print(const trial *t)
{
    printf("%-15s %-8s step %lld layer %-14s seed %llu: %s%s at %lld, %s: %s\n", mixt__fault_name(t->kind),
           t->model->name, (long long)t->step, t->layer ? t->layer : "-", (unsigned long long)t->seed,
           trial_right(t) ? "right" : "WRONG", t->seen ? "" : " (not seen)", (long long)t->seen_at,
           t->status == MIXT_OK ? mixt_diagnosis_name(t->d.kind) : mixt_error_text(), t->d.text);
}

#endif
