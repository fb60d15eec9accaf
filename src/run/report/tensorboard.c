/* Rows as scalars, weights as histograms at each validation and at the end, notes as text. */
#include "run/report/tensorboard.h"

#include "base/alloc.h"
#include "base/threads.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

/** Seconds between two writes: a killed run loses no more of its charts. */
#define FLUSH_EVERY 1.0

/** Says once that there will be no charts, or none any more. */
static void give_up(mixt__tensorboard *b, mixt_run *run)
{
    if (!b->failed)
        mixt__run_note(run, true, "no more rows for TensorBoard: %s", mixt_error_text());
    b->failed = true;
}

void mixt__tensorboard_open(mixt__tensorboard *b, mixt_run *run, const char *folder, int64_t resumed)
{
    *b = (mixt__tensorboard){.weights = -1};
    mixt_status status = mixt__tfevents_open(&b->events, folder);
    if (status == MIXT_OK && resumed >= 0)
        status = mixt__tfevents_restart(&b->events, resumed + 1);
    if (status == MIXT_OK)
        status = mixt__tfevents_flush(&b->events);
    if (status != MIXT_OK)
        give_up(b, run);
}

void mixt__tensorboard_return(mixt__tensorboard *b, mixt_run *run, int64_t step)
{
    b->weights = -1;
    if (b->events.open && !b->failed && mixt__tfevents_restart(&b->events, step + 1) != MIXT_OK)
        give_up(b, run);
}

void mixt__tensorboard_close(mixt__tensorboard *b, bool discard)
{
    if (discard && b->events.open)
        unlink(b->events.path);
    mixt__tfevents_close(&b->events);
}

/** A figure that not every run has. */
static void known(mixt__tensorboard *b, const char *tag, double value)
{
    if (!isnan(value))
        mixt__tfevents_scalar(&b->events, tag, (float)value);
}

static void put_share(mixt__tensorboard *b, const char *of, mixt_dtype dtype, double share)
{
    char tag[64];
    snprintf(tag, sizeof tag, "formats/%s/%s", of, mixt_dtype_name(dtype));
    if (share > 0)
        mixt__tfevents_scalar(&b->events, tag, (float)share);
}

static mixt_status tell_row(mixt__tensorboard *b, const mixt_run_row *row)
{
    mixt__tfevents_begin(&b->events, row->step);
    mixt__tfevents_scalar(&b->events, "train/loss", (float)row->loss); // also one that is not finite
    known(b, "train/accuracy", row->accuracy);
    known(b, "train/lr", row->lr);
    mixt__tfevents_scalar(&b->events, "train/grad_norm", (float)row->grad_norm);
    known(b, "train/loss_scale", row->scale);
    known(b, "train/skipped", (double)row->skipped);
    known(b, "train/epoch", (double)row->epoch);
    known(b, "machine/samples_s", row->samples_s);
    known(b, "machine/memory", (double)row->memory);
    known(b, "machine/energy", row->energy);
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
        put_share(b, "values", (mixt_dtype)d, row->share_values[d]);
        put_share(b, "bytes", (mixt_dtype)d, row->share_bytes[d]);
    }
    known(b, "val/loss", row->val_loss);
    known(b, "val/accuracy", row->val_accuracy);
    return mixt__tfevents_end(&b->events);
}

static mixt_status tell_weights(mixt__tensorboard *b, mixt_run *run, int64_t step)
{
    const mixt_trainer *trainer = run->experiment.trainer;
    mixt_param_info info;
    mixt__histogram histogram;
    if (b->weights == step)
        return MIXT_OK;
    b->weights = step;
    mixt__tfevents_begin(&b->events, step);
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; i < mixt_trainer_param_count(trainer) && status == MIXT_OK; i++) {
        MIXT_TRY(mixt_trainer_param(trainer, i, &info));
        float *values = mixt__alloc((size_t)info.count * sizeof *values + 1);
        char tag[512];
        if (!values)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a histogram of %s", info.name);
        status = mixt_trainer_param_get(trainer, i, values);
        if (status == MIXT_OK) {
            mixt__histogram_make(&histogram, values, info.count);
            snprintf(tag, sizeof tag, "weights/%s", info.name);
            mixt__tfevents_histogram(&b->events, tag, &histogram);
        }
        mixt__free(values);
    }
    mixt_status ended = mixt__tfevents_end(&b->events);
    return status == MIXT_OK ? ended : status;
}

/** Exponents of a tensor's numbers, a bucket a power of two; zeros stand in the bucket below the least. What is not
 *  finite is not counted. */
static void put_exponents(mixt__tensorboard *b, const char *of, const char *layer, const mixt_tensor_signal *s)
{
    enum { BINS = 256, BIAS = 127 };
    char tag[512];
    mixt__histogram h = {.buckets = MIXT_TFEVENTS_BUCKETS};
    int top = BINS - 2;
    if (s->dtype == MIXT_DTYPE_NONE || !s->exponents)
        return;
    while (top > MIXT_TFEVENTS_BUCKETS && !s->exponents[top])
        top--;
    int low = top - MIXT_TFEVENTS_BUCKETS + 1; // the exponent field of the lowest bucket, which takes all below too
    h.min = low - BIAS;
    h.max = top - BIAS;
    for (int e = 0; e <= top; e++) {
        int bucket = e < low ? 0 : e - low;
        double count = (double)s->exponents[e], at = bucket + low - BIAS;
        h.bucket[bucket] += count;
        h.count += count;
        h.sum += count * at;
        h.sum_squares += count * at * at;
    }
    for (int i = 0; i < MIXT_TFEVENTS_BUCKETS; i++)
        h.limit[i] = low - BIAS + i + 0.5;
    snprintf(tag, sizeof tag, "exponents/%s/%s", of, layer);
    mixt__tfevents_histogram(&b->events, tag, &h);
}

static void put_margin(mixt__tensorboard *b, const char *of, const char *layer, const mixt_tensor_signal *s)
{
    char tag[512];
    snprintf(tag, sizeof tag, "margin/%s/%s", of, layer);
    if (s->dtype != MIXT_DTYPE_NONE && isfinite(s->margin))
        mixt__tfevents_scalar(&b->events, tag, (float)s->margin);
}

static mixt_status tell_layers(mixt__tensorboard *b, const mixt_layer_signals *s)
{
    mixt__tfevents_begin(&b->events, s->step);
    for (int64_t i = 0; i < s->layer_count; i++) {
        const mixt_layer_signal *l = &s->layers[i];
        put_exponents(b, "activations", l->layer, &l->activation);
        put_exponents(b, "gradients", l->layer, &l->gradient);
        put_margin(b, "activations", l->layer, &l->activation);
        put_margin(b, "gradients", l->layer, &l->gradient);
    }
    return mixt__tfevents_end(&b->events);
}

static mixt_status tell_note(mixt__tensorboard *b, const mixt_event *event)
{
    mixt__tfevents_begin(&b->events, event->result->steps);
    const char *tag = event->kind == MIXT_EVENT_ALERT       ? "alerts"
                      : event->kind == MIXT_EVENT_DECISION  ? "decisions"
                      : event->kind == MIXT_EVENT_DIAGNOSIS ? "diagnoses"
                      : event->warning                      ? "warnings"
                                                            : "notes";
    mixt__tfevents_text(&b->events, tag, event->text);
    return mixt__tfevents_end(&b->events);
}

static mixt_status tell(mixt__tensorboard *b, mixt_run *run, const mixt_event *event)
{
    switch (event->kind) {
    case MIXT_EVENT_ROW:
        return tell_row(b, event->row);
    case MIXT_EVENT_ALERT:
    case MIXT_EVENT_DECISION:
    case MIXT_EVENT_DIAGNOSIS:
    case MIXT_EVENT_NOTE:
        return tell_note(b, event);
    case MIXT_EVENT_LAYERS:
        return tell_layers(b, event->layers);
    case MIXT_EVENT_VALIDATION:
        return tell_weights(b, run, event->step->step);
    case MIXT_EVENT_END:
        return event->status == MIXT_OK ? tell_weights(b, run, event->result->steps) : MIXT_OK;
    default:
        return MIXT_OK;
    }
}

mixt_status mixt__tensorboard_observe(void *user, mixt_run *run, const mixt_event *event)
{
    mixt__tensorboard *b = user;
    if (!b->events.open || b->failed || b->busy || event->kind == MIXT_EVENT_STEP)
        return MIXT_OK;
    b->busy = true;
    mixt_status status = tell(b, run, event);
    double now = mixt__time_now();
    if (status == MIXT_OK && (now - b->flushed > FLUSH_EVERY || event->kind == MIXT_EVENT_END)) {
        status = mixt__tfevents_flush(&b->events);
        b->flushed = now;
    }
    if (status != MIXT_OK)
        give_up(b, run);
    b->busy = false;
    return MIXT_OK;
}
