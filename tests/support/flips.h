/* Bits that flip in the memory of a run while it trains: any bit of any of the state, between two updates. The run has
 * a controller, which is to find each at the next update, name it, and end with the bits of a run without. */
#ifndef MIXT_TESTS_FLIPS_H
#define MIXT_TESTS_FLIPS_H

#include "mixt/mixt.h"
#include "base/rng.h"
#include "run/run.h"
#include "train/trainer_inside.h"

#include <stdio.h>
#include <string.h>

enum { FLIPS_APART = 9 }; // updates, at most

/** Runs of the trials. */
typedef struct flip_model {
    const char *name;
    const char *settings[12];
} flip_model;

static const flip_model flip_models[] = {
    {"mlp", {"model=mlp", "net.hidden=24", "precision=bf16", "data.samples=2000"}},
    {"convnet",
     {"model=convnet", "net.channels=6,8", "net.norm=batch", "precision=fp16", "train.optimizer=momentum",
      "data.samples=2000"}},
    {"lstm",
     {"model=lstm", "net.width=24", "net.layers=1", "precision=fp32", "train.optimizer=adam", "data.kind=text",
      "data.seq=16"}},
    {"gpt",
     {"model=gpt", "net.width=32", "net.layers=1", "net.heads=2", "data.kind=text", "data.seq=16", "precision=bf16",
      "train.moments=bf16"}},
    {"coded", {"model=mlp", "net.hidden=24", "precision=bf16", "data.samples=2000", "train.moments=int8"}},
    {"frozen",
     {"model=gpt", "net.width=32", "net.layers=2", "net.heads=2", "data.kind=text", "data.seq=16", "precision=bf16",
      "train.freeze=h.0.*", "train.frozen=int8"}},
    {"lamb",
     {"model=mlp", "net.hidden=24", "precision=bf16", "train.optimizer=lamb", "train.accumulate=2",
      "data.samples=2000"}},
};
enum { FLIP_MODELS = 7 };

typedef struct flips {
    mixt__rng rng;
    int wanted, made, found, wrong, late; // wrong: another parameter or part was named
    int64_t wait, step;                   // updates until the next flip; the one after which the newest was made
    bool pending;
    char parameter[128], what[32];
    bool print;
} flips;

/** Memory of one kind, in pieces that have a name each. */
typedef struct flip_piece {
    char *data;
    int64_t bytes;
    const char *parameter, *what;
} flip_piece;

enum { FLIP_PIECES_MAX = 512 };

static void flip_add(flip_piece *list, int *count, void *data, int64_t bytes, const char *parameter, const char *what)
{
    if (data && bytes > 0 && *count < FLIP_PIECES_MAX)
        list[(*count)++] = (flip_piece){data, bytes, parameter, what};
}

/** Those of one role of the trainer. @return how many */
static int flip_pieces(mixt__trainer *t, int role, flip_piece *list)
{
    static const char *const names[] = {
        [MIXT_PARAM_WEIGHT] = "weights",           [MIXT_PARAM_MOMENT1] = "first moments",
        [MIXT_PARAM_MOMENT2] = "second moments",   [MIXT_PARAM_WIDE] = "first moments",
        [MIXT_PARAM_WIDE + 1] = "second moments",  [MIXT_PARAM_SCALE] = "first moments",
        [MIXT_PARAM_SCALE + 1] = "second moments", [MIXT_PARAM_STATE] = "running statistics",
        [MIXT_PARAM_KEPT] = "running statistics"};
    const mixt__params *p = t->params;
    const mixt__param_role *r = &p->roles[role];
    int count = 0;
    if (role == MIXT_PARAM_GRADIENT) // stands for the control block here
        flip_add(list, &count, t->control, sizeof *t->control, "", "control block");
    for (int32_t i = 0; i < p->count && role != MIXT_PARAM_GRADIENT && r->data; i++) {
        int64_t bytes = mixt__role_elements(r, p->table[i].count) * (int64_t)mixt_dtype_size(r->format);
        bool copy = role >= MIXT_PARAM_COPY && role < MIXT_PARAM_FROZEN;
        if (copy && (int)p->copies[i].dtype == role - MIXT_PARAM_COPY && p->frozen.home[i] != p->copies[i].dtype)
            flip_add(list, &count, mixt__role_at(r, p->copies[i].offset), bytes, p->table[i].name,
                     mixt__params_is_frozen(p, i) ? "frozen weights" : "working copy");
        else if (!copy && mixt__params_offset(p, role, i) >= 0)
            flip_add(list, &count, mixt__role_at(r, mixt__params_offset(p, role, i)), bytes, p->table[i].name,
                     role >= MIXT_PARAM_FROZEN ? "frozen weights" : names[role]);
    }
    return count;
}

/** Flips one bit of a random role, a random parameter where it has any, in the device's memory. */
static mixt_status flip_one(flips *f, mixt__trainer *t)
{
    flip_piece list[FLIP_PIECES_MAX];
    int roles[MIXT_PARAM_ROLES], count = 0;
    for (int role = 0; role < MIXT_PARAM_ROLES; role++) {
        bool state = role <= MIXT_PARAM_STATE || role == MIXT_PARAM_KEPT || role == MIXT_PARAM_GRADIENT ||
                     mixt__params_space_of(role) >= 0 || role >= MIXT_PARAM_COPY;
        if (state && flip_pieces(t, role, list))
            roles[count++] = role;
    }
    int role = roles[mixt__rng_below(&f->rng, (uint64_t)count)], pieces = flip_pieces(t, role, list);
    const flip_piece *p = &list[mixt__rng_below(&f->rng, (uint64_t)pieces)];
    int64_t bit = (int64_t)mixt__rng_below(&f->rng, (uint64_t)p->bytes * 8);
    char byte;
    MIXT_TRY(mixt__device_synchronize(t->device));
    MIXT_TRY(mixt__device_download(t->device, &byte, p->data + bit / 8, 1));
    byte = (char)(byte ^ 1 << bit % 8);
    MIXT_TRY(mixt__device_upload(t->device, p->data + bit / 8, &byte, 1));
    snprintf(f->parameter, sizeof f->parameter, "%s", p->parameter);
    snprintf(f->what, sizeof f->what, "%s", p->what);
    f->step = t->attempts;
    f->pending = true;
    f->made++;
    if (f->print)
        printf("  after update %lld: bit %lld of the %s%s%s\n", (long long)f->step, (long long)bit, p->what,
               *p->parameter ? " of " : "", p->parameter);
    return MIXT_OK;
}

static void flip_found(flips *f, const mixt_diagnosis *d)
{
    bool named = f->pending && d->kind == MIXT_DIAGNOSIS_HARDWARE && !strcmp(d->parameter, f->parameter) &&
                 strstr(d->text, f->what);
    f->found += named;
    f->wrong += !named;
    f->late += named && d->step > f->step + 1;
    if (f->print || !named)
        printf("  %s%s\n", named ? "" : "not what was flipped: ", d->text);
    f->pending = false;
}

static mixt_status flip_hear(void *user, mixt_run *run, const mixt_event *event)
{
    flips *f = user;
    mixt__trainer *t = run->experiment.trainer->inner;
    if (event->kind == MIXT_EVENT_DIAGNOSIS)
        flip_found(f, event->diagnosis);
    if (event->kind != MIXT_EVENT_STEP || f->made == f->wanted || f->pending || mixt__trainer_damage(t))
        return MIXT_OK;
    bool last = t->attempts + 2 > run->experiment.total_steps;
    if (f->wait-- > 0 || last)
        return MIXT_OK;
    f->wait = (int64_t)mixt__rng_below(&f->rng, FLIPS_APART);
    return flip_one(f, t);
}

/** Trains a model with or without flips. @param f NULL: without @param more settings, ended by NULL */
static mixt_status flip_train(const flip_model *m, const char *out, flips *f, const char *const *more)
{
    const char *settings[48] = {"device=cpu",       "threads=1",       "train.steps=90",
                                "train.batch=8",    "auto.steer=true", "auto.snapshot_every=5",
                                "auto.retries=100", "auto.cooldown=1", "train.validate_every=90",
                                "watch.every=0",    "seed=3"};
    char folder[600];
    int count = 11;
    snprintf(folder, sizeof folder, "out=%s", out);
    settings[count++] = folder;
    for (int i = 0; m->settings[i]; i++)
        settings[count++] = m->settings[i];
    for (int i = 0; more && more[i]; i++)
        settings[count++] = more[i];
    mixt_run *run = NULL;
    mixt_config *config = NULL;
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .settings = settings, .ranks = true);
    MIXT_TRY(mixt_config_new(&config));
    mixt_status status = mixt_run_open_config(config, &options, &run);
    mixt_config_free(config);
    MIXT_TRY(status);
    status = f ? mixt_run_observe(run, flip_hear, f) : MIXT_OK;
    mixt_run_result result;
    if (status == MIXT_OK)
        status = mixt_run_train(run, &result);
    mixt_run_close(run);
    return status;
}

/** Whether two files have the same bytes. */
static bool flip_same(const char *a, const char *b)
{
    FILE *x = fopen(a, "rb"), *y = fopen(b, "rb");
    bool same = x && y;
    for (int c = 0; same && c != EOF;) {
        c = getc(x);
        same = c == getc(y);
    }
    if (x)
        fclose(x);
    if (y)
        fclose(y);
    return same;
}

#endif
