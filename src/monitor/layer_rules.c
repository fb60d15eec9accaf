/* Three rules over the statistics of layers. A healthy run breaks none of them: gradients under a moving loss scale,
 * which looks for the overflow by itself, are left out of the first, and the other two wait for several looks. */
#include "monitor/layer_rules.h"

#include "base/alloc.h"
#include "num/format.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    DEAD_LOOKS = 3,    // in a row in which a gradient was 0 everywhere
    FLUSHED_LOOKS = 2, // the same of one that was mostly flushed
};
#define MARGIN 1.0  // powers of two to the end of the format that are too few
#define FLUSHED 0.5 // share of a gradient's numbers that became 0

#define SAY(finding, ...) snprintf((finding)->text, sizeof(finding)->text, __VA_ARGS__)

/** Counters for as many names as there are now; another policy or model begins anew. */
static uint8_t *fit(uint8_t *counters, int64_t *count, int64_t wanted)
{
    if (*count == wanted && counters)
        return counters;
    mixt__free(counters);
    counters = mixt__alloc((size_t)wanted + 1);
    *count = counters ? wanted : 0;
    return counters;
}

/** How long it holds by now. */
static int count_on(uint8_t *counter, bool holds)
{
    *counter = (uint8_t)(!holds ? 0 : *counter < 255 ? *counter + 1 : 255);
    return *counter;
}

/** Whether a format ends where training can reach it. */
static bool ends_early(const mixt_tensor_signal *s)
{
    return mixt__format_narrow(s->dtype);
}

/** The layer with the least margin, where that is too little. */
static bool find_overflow(const mixt_layer_signals *s, mixt__layer_finding *f)
{
    double least = MARGIN;
    bool found = false;
    for (int64_t i = 0; i < 2 * s->layer_count; i++) {
        const mixt_layer_signal *l = &s->layers[i / 2];
        const mixt_tensor_signal *t = i % 2 ? &l->gradient : &l->activation;
        if (!ends_early(t) || !(t->margin < least) || (i % 2 && s->scaling))
            continue;
        found = true;
        least = t->margin;
        const char *what = i % 2 ? "gradient of its output" : "output", *format = mixt_dtype_name(t->dtype);
        snprintf(f->layer, sizeof f->layer, "%s", l->layer);
        if (t->nonfinite > 0)
            SAY(f, "layer %.100s: %.3g%% of the %s is not finite in %s", l->layer, 100 * t->nonfinite, what, format);
        else
            SAY(f, "layer %.100s: the %s reaches %.4g in %s, %.2g powers of two from its end", l->layer, what, t->amax,
                format, t->margin);
    }
    f->cause = MIXT_CAUSE_OVERFLOW;
    f->value = least;
    f->limit = MARGIN;
    return found;
}

/** The layer of whose gradient the most became 0, where that stays. */
static bool find_underflow(const mixt__layer_memory *m, const mixt_layer_signals *s, mixt__layer_finding *f)
{
    double most = FLUSHED;
    bool found = false;
    for (int64_t i = 0; i < m->layers; i++) {
        const mixt_tensor_signal *t = &s->layers[i].gradient;
        bool holds = t->dtype != MIXT_DTYPE_NONE && t->flushed > FLUSHED;
        if (count_on(&m->flushed[i], holds) < FLUSHED_LOOKS || t->flushed <= most)
            continue;
        found = true;
        most = t->flushed;
        snprintf(f->layer, sizeof f->layer, "%s", s->layers[i].layer);
        SAY(f, "layer %.100s: about %.0f%% of the gradient of its output became 0 in %s", s->layers[i].layer,
            100 * t->flushed, mixt_dtype_name(t->dtype));
    }
    f->cause = MIXT_CAUSE_UNDERFLOW;
    f->value = most;
    f->limit = FLUSHED;
    return found;
}

/** Whether the layer that a parameter is of has a gradient in FP16 of which all is 0. */
static bool lost_in_fp16(const mixt_layer_signals *s, const char *param)
{
    for (int64_t i = 0; i < s->layer_count; i++) {
        const mixt_layer_signal *l = &s->layers[i];
        size_t length = strlen(l->layer);
        if (!strncmp(param, l->layer, length) && param[length] == '.')
            return l->gradient.dtype == MIXT_DTYPE_FP16 && l->gradient.zero >= 1;
    }
    return false;
}

/** The first parameter whose gradient stays 0, and how many there are. */
static bool find_dead(const mixt__layer_memory *m, const mixt_layer_signals *s, mixt__layer_finding *f)
{
    int64_t first = -1, count = 0;
    for (int64_t i = 0; i < m->params; i++)
        if (count_on(&m->dead[i], s->params[i].zero >= 1) >= DEAD_LOOKS) {
            first = first < 0 ? i : first;
            count++;
        }
    if (first < 0)
        return false;
    const char *name = s->params[first].name;
    f->cause = lost_in_fp16(s, name) ? MIXT_CAUSE_UNDERFLOW : MIXT_CAUSE_GRADIENT_ANOMALY;
    f->value = (double)count;
    f->limit = NAN;
    snprintf(f->layer, sizeof f->layer, "%s", name);
    if (count > 1)
        SAY(f, "the gradients of %lld parameters, %.100s the first of them, stay 0: they do not learn",
            (long long)count, name);
    else
        SAY(f, "the gradient of %.100s stays 0: it does not learn", name);
    return true;
}

int mixt__layer_rules(mixt__layer_memory *m, const mixt_layer_signals *s,
                      mixt__layer_finding found[MIXT_LAYER_FINDINGS])
{
    int count = 0;
    m->flushed = fit(m->flushed, &m->layers, s->layer_count);
    m->dead = fit(m->dead, &m->params, s->param_count);
    count += find_overflow(s, &found[count]);
    count += find_underflow(m, s, &found[count]);
    count += find_dead(m, s, &found[count]);
    return count;
}

void mixt__layer_memory_free(mixt__layer_memory *m)
{
    mixt__free(m->flushed);
    mixt__free(m->dead);
    *m = (mixt__layer_memory){0};
}

/* ---- saved and found again ---- */

static json_t *pack(const uint8_t *counters, int64_t count)
{
    json_t *values = json_array();
    for (int64_t i = 0; i < count; i++)
        mixt__json_add(values, json_integer(counters[i]));
    return values;
}

static uint8_t *unpack(const json_t *values, uint8_t *counters, int64_t *count)
{
    counters = fit(counters, count, (int64_t)json_array_size(values));
    for (int64_t i = 0; i < *count; i++) {
        json_int_t value = json_integer_value(json_array_get(values, (size_t)i));
        counters[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
    return counters;
}

json_t *mixt__layer_memory_pack(const mixt__layer_memory *m)
{
    return json_pack("{s:o, s:o}", "flushed", pack(m->flushed, m->layers), "dead", pack(m->dead, m->params));
}

void mixt__layer_memory_unpack(mixt__layer_memory *m, const json_t *object)
{
    m->flushed = unpack(json_object_get(object, "flushed"), m->flushed, &m->layers);
    m->dead = unpack(json_object_get(object, "dead"), m->dead, &m->params);
}
