/* A step looked into: the passes that look, and their values put together. */
#include "inspect/debug.h"

#include "base/options.h"

#include "api/api.h"
#include "num/num.h"
#include "train/engine.h"
#include "train/instrument.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers ---- */

/** Exponent of the smallest normal number of a format. */
static int smallest_of(mixt_dtype dtype)
{
    return mixt_dtype_is_float(dtype) ? ilogb(mixt__format_of(dtype)->min_normal) : -126;
}

void mixt__debug_fill(mixt_debug_value *v, mixt_dtype dtype, const double *numbers, const int64_t *counts)
{
    double count = (double)counts[MIXT_STATS_COUNT];
    v->dtype = dtype;
    v->count = counts[MIXT_STATS_COUNT];
    v->zeros = counts[MIXT_STATS_ZEROS];
    v->nan = counts[MIXT_STATS_NAN];
    v->inf = counts[MIXT_STATS_INF];
    double finite = count - (double)(v->nan + v->inf);
    v->mean = finite > 0 ? numbers[MIXT_STATS_SUM] / finite : NAN;
    v->std = finite > 0 ? sqrt(fmax(0, numbers[MIXT_STATS_SQUARES] / finite - v->mean * v->mean)) : NAN;
    v->min = finite > 0 ? numbers[MIXT_STATS_MIN] : NAN;
    v->max = finite > 0 ? numbers[MIXT_STATS_MAX] : NAN;
    v->amax = finite > 0 ? numbers[MIXT_STATS_AMAX] : NAN;
    v->margin = v->amax > 0 ? log2(mixt__dtype_max(dtype) / v->amax) : INFINITY;
    int64_t below = counts[MIXT_STATS_EXPONENTS] - v->zeros; // FP32's subnormals
    for (int e = 1; e - 127 < smallest_of(dtype); e++)
        below += counts[MIXT_STATS_EXPONENTS + e];
    v->tiny = count > 0 ? (double)below / count : 0;
    v->error = v->inherited = v->snr = v->flushed = v->reference = NAN;
}

const char *mixt__debug_text(mixt_debug *d, const char *text)
{
    const char *kept = mixt__arena_strdup(&d->arena, text);
    return kept ? kept : "";
}

/** The histogram, and shares that FP16 could not hold or would make 0. */
static mixt_status add_counts(mixt_debug *d, mixt_debug_value *v, const int64_t *counts)
{
    int64_t *own = mixt__arena_alloc(&d->arena, MIXT_DEBUG_EXPONENTS * sizeof *own);
    if (!own)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the values of a step");
    memcpy(own, counts + MIXT_STATS_EXPONENTS, MIXT_DEBUG_EXPONENTS * sizeof *own);
    v->exponents = own;
    v->beyond_fp16 = v->count ? (double)counts[MIXT_STATS_BEYOND] / (double)v->count : 0;
    v->flushed_fp16 = v->count ? (double)counts[MIXT_STATS_FLUSHED] / (double)v->count : 0;
    return MIXT_OK;
}

/** How far a value is from FP32, as a share. */
static double error_of(const mixt__sight *s)
{
    double signal = fmax(s->signal, s->floor);
    if (s->broken)
        return INFINITY;
    return signal > 0 ? sqrt(s->noise / signal) : s->noise > 0 ? INFINITY : 0;
}

/** What the pass beside FP32 says of the value. */
static void add_error(mixt_debug_value *v, const mixt__sights *sights, int32_t value)
{
    const mixt__sight *s = &sights->by_value[value];
    const mixt__node *maker = &sights->low->executable->graph->nodes[s->node];
    v->compared = s->compared;
    if (!s->compared)
        return;
    v->error = error_of(s);
    v->inherited = 0;
    for (int k = 0; k < maker->in_count; k++)
        if (sights->by_value[maker->in[k]].compared)
            v->inherited = fmax(v->inherited, error_of(&sights->by_value[maker->in[k]]));
    v->snr = -20 * log10(v->error);
    v->flushed = v->count ? (double)s->flushed / (double)v->count : 0;
    v->reference = s->reference;
}

/* ---- values of the real step ---- */

/** Whether the walk saw the same value: it had the same graph, but for the nodes that look. */
static bool was_seen(const mixt__graph *real, const mixt__sights *s, int32_t value)
{
    const mixt__graph *low = s->low ? s->low->executable->graph : NULL;
    return low && value < low->value_count && s->by_value[value].made &&
           mixt__shape_equal(&real->values[value].shape, &low->values[value].shape);
}

static mixt_status take_value(mixt_debug *d, const mixt__graph *real, const mixt__sights *s,
                              const mixt__instrumented_value *w, const char *tensor, int64_t index)
{
    mixt_debug_value *v = &d->values[index];
    mixt__debug_fill(v, w->dtype, w->numbers, w->counts);
    MIXT_TRY(add_counts(d, v, w->counts));
    d->ids[index] = w->value;
    if (was_seen(real, s, w->value))
        add_error(v, s, w->value);
    v->backward = w->backward;
    v->layer = mixt__debug_text(d, w->layer);
    v->op = mixt__debug_text(d, mixt__debug_op(real, w->maker));
    v->tensor = tensor;
    v->name = w->gradient ? mixt__debug_text(d, w->name) : "";
    if (d->info.first_nonfinite < 0 && v->nan + v->inf)
        d->info.first_nonfinite = index;
    return MIXT_OK;
}

static mixt_status take_room(mixt_debug *d, int64_t values)
{
    d->info.values = values;
    d->values = mixt__alloc((size_t)(values + 1) * sizeof *d->values);
    d->ids = mixt__alloc((size_t)(values + 1) * sizeof *d->ids);
    return d->values && d->ids ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the values of a step");
}

static mixt_status read_real(mixt_debug *d, const mixt__trainer *t, const mixt__sights *s)
{
    const char **names = NULL;
    mixt__instrumented_value *w = mixt__alloc(sizeof *w);
    mixt_status status = w ? take_room(d, mixt__trainer_instrumented_count(t))
                           : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the values of a step");
    if (status == MIXT_OK)
        status = mixt__debug_name(mixt__trainer_instrumented_graph(t), &d->arena, &names);
    for (int64_t i = 0; i < d->info.values && status == MIXT_OK; i++) {
        status = mixt__trainer_instrumented_read(t, i, w);
        if (status == MIXT_OK)
            status = take_value(d, mixt__trainer_instrumented_graph(t), s, w, names[w->value], i);
    }
    mixt__free(names);
    mixt__free(w);
    return status;
}

/** Makes the step, instrumented. */
static mixt_status make_step(mixt_debug *d, mixt__trainer *t, mixt_data *data, const mixt__sights *s)
{
    const mixt__instrument instrument = {.targets = {MIXT_DTYPE_FP16}};
    MIXT_TRY(mixt__trainer_instrument(t, &instrument));
    mixt_status status = mixt__trainer_instrument_next(t);
    if (status == MIXT_OK)
        status = mixt__engine_make_one(&(mixt__engine){.trainer = t, .data = data}, &d->info.step);
    d->info.step.overflow_layer = NULL;
    if (status == MIXT_OK)
        status = read_real(d, t, s);
    if (status == MIXT_OK)
        status = mixt__debug_find_origin(d, s, mixt__trainer_instrumented_graph(t));
    mixt__trainer_drop_instrumented(t);
    return status;
}

/* ---- values of a look without a step ---- */

static mixt_status take_sight(mixt_debug *d, const mixt__sights *sights, int32_t value, int64_t index)
{
    const mixt__graph *g = sights->low->executable->graph;
    const mixt__sight *s = &sights->by_value[value];
    mixt_debug_value *v = &d->values[index];
    const mixt__node *n = &g->nodes[s->node];
    mixt__debug_fill(v, g->values[value].dtype, s->numbers, s->counts);
    MIXT_TRY(add_counts(d, v, s->counts));
    add_error(v, sights, value);
    d->ids[index] = value;
    v->backward = n->backward;
    v->layer = mixt__debug_text(d, n->layer);
    v->op = mixt__debug_text(d, mixt__debug_op(g, n));
    v->tensor = sights->names[value];
    v->name = g->values[value].role == MIXT_ROLE_GRAD ? mixt__debug_text(d, g->values[value].name) : "";
    if (d->info.first_nonfinite < 0 && v->nan + v->inf)
        d->info.first_nonfinite = index;
    return MIXT_OK;
}

/** Values in the order of the nodes that make them. */
static mixt_status read_sights(mixt_debug *d, const mixt__sights *s)
{
    const mixt__graph *g = s->low->executable->graph;
    int64_t count = 0;
    MIXT_TRY(take_room(d, g->value_count));
    for (int64_t i = 0; i < g->node_count; i++)
        for (int o = 0; o < g->nodes[i].out_count && !g->nodes[i].alias; o++) {
            const mixt__sight *sight = &s->by_value[g->nodes[i].out[o]];
            if (sight->made && sight->node == i)
                MIXT_TRY(take_sight(d, s, g->nodes[i].out[o], count++));
        }
    d->info.values = count;
    return mixt__debug_find_origin(d, s, g);
}

/* ---- making it ---- */

/** The first parameter that is not finite; NULL: none. */
static mixt_status bad_parameter(const mixt_trainer *t, const char **name)
{
    mixt_param_info info;
    *name = NULL;
    for (int64_t p = 0; p < mixt_trainer_param_count(t) && !*name; p++) {
        MIXT_TRY(mixt_trainer_param(t, p, &info));
        float *values = mixt__alloc((size_t)info.count * sizeof *values + 1);
        if (!values)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to inspect %s", info.name);
        mixt_status status = mixt_trainer_param_get(t, p, values);
        for (int64_t i = 0; status == MIXT_OK && i < info.count && !*name; i++)
            *name = isfinite(values[i]) ? NULL : info.name;
        mixt__free(values);
        MIXT_TRY(status);
    }
    return MIXT_OK;
}

/** The number and scale of the step that would be next. */
static mixt_status describe_next(mixt_debug *d, const mixt__trainer *t)
{
    mixt__control control;
    MIXT_TRY(mixt__trainer_fetch_control(t, &control));
    d->info.step =
        (mixt_step){.step = mixt__trainer_steps(t) + 1, .applied = control.step, .scale = (double)control.scale};
    d->info.step.loss = d->info.step.grad_norm = d->info.step.accuracy = d->info.step.margin = NAN;
    return MIXT_OK;
}

static mixt_status look(mixt_debug *d, mixt_trainer *trainer, mixt_data *data, const mixt_debug_options *o)
{
    mixt__trainer *t = trainer->inner;
    mixt__sights sights = {.first_bad = -1, .full_loss = NAN};
    mixt_status status = o->single ? MIXT_OK : mixt__sights_take(d, trainer, data, o, &sights);
    d->info.shadow = sights.full;
    d->info.why_not = mixt__debug_text(d, sights.why);
    d->info.full_nonfinite = sights.full_bad;
    d->info.full_loss = sights.full_loss;
    if (status == MIXT_OK && o->look && !sights.low)
        status = mixt__fail(MIXT_ERROR_MEMORY, "%s", sights.why);
    if (status == MIXT_OK && o->look)
        status = describe_next(d, t);
    if (status == MIXT_OK)
        status = o->look ? read_sights(d, &sights) : make_step(d, t, data, &sights);
    mixt__sights_free(&sights);
    return status;
}

static mixt_status make(mixt_trainer *t, mixt_data *data, const mixt_debug_options *o, mixt_debug *d)
{
    mixt__trainer *core = t->inner;
    const char *bad;
    d->info.first_nonfinite = -1;
    if ((o->look || o->dump) && o->single)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s needs the passes that 'single' skips",
                          o->dump ? "a dump" : "an inspection without an update");
    MIXT_TRY(mixt__trainer_ready(core, data)); // before the step is compiled once more
    MIXT_TRY(bad_parameter(t, &bad));
    d->info.source = mixt__debug_text(d, bad ? bad : "");
    MIXT_TRY(look(d, t, data, o));
    MIXT_TRY(mixt__debug_group(d));
    mixt__debug_count_use(d, core);
    mixt__debug_judge(d);
    return d->arena.short_of_memory ? mixt__fail(MIXT_ERROR_MEMORY, "no memory for the values of a step") : MIXT_OK;
}

static void discard(mixt_debug *d)
{
    mixt__free(d->values);
    mixt__free(d->ids);
    mixt__free(d->layers);
    mixt__free(d->blamed);
    mixt__arena_free(&d->arena);
    mixt__free(d);
}

mixt_status mixt_debug_step_with(mixt_trainer *t, mixt_data *data, const mixt_debug_options *options,
                                 mixt_debug **debug)
{
    mixt_debug_options wanted = MIXT_OPTIONS(mixt_debug_options);
    MIXT_TRY(mixt__options(mixt_debug_options, &wanted, options));
    wanted.folder = wanted.folder ? wanted.folder : ".";
    MIXT_TRY(mixt__need(debug));
    *debug = NULL;
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_open(data, "data"));
    mixt_debug *d = mixt__alloc(sizeof *d);
    if (!d)
        return mixt__context_note(t->context, mixt__fail(MIXT_ERROR_MEMORY, "no memory to inspect a step"));
    mixt_status status = make(t, data, &wanted, d);
    if (status != MIXT_OK) {
        discard(d);
        return mixt__context_note(t->context, status);
    }
    mixt__handle_add(&d->handle, d, "debug", NULL);
    *debug = d;
    return MIXT_OK;
}

mixt_status mixt_debug_step(mixt_trainer *t, mixt_data *data, mixt_debug **debug)
{
    return mixt_debug_step_with(t, data, NULL, debug);
}

void mixt_debug_free(mixt_debug *d)
{
    if (!d || mixt__need_open(d, "debug") != MIXT_OK)
        return;
    mixt__handle_remove(d);
    discard(d);
}

/* ---- reading it ---- */

static bool is_open(const mixt_debug *d)
{
    return d && mixt__need_open(d, "debug") == MIXT_OK;
}

mixt_debug_info mixt_debug_describe(const mixt_debug *d)
{
    return is_open(d) ? d->info
                      : (mixt_debug_info){.first_nonfinite = -1, .source = "", .why_not = "", .full_loss = NAN};
}

const mixt_debug_value *mixt_debug_value_at(const mixt_debug *d, int64_t index)
{
    return is_open(d) && index >= 0 && index < d->info.values ? &d->values[index] : NULL;
}

const mixt_debug_origin *mixt_debug_origin_of(const mixt_debug *d)
{
    return is_open(d) && d->origin.op ? &d->origin : NULL;
}

const mixt_debug_layer *mixt_debug_layer_at(const mixt_debug *d, int64_t index)
{
    return is_open(d) && index >= 0 && index < d->layer_count ? &d->layers[index] : NULL;
}

const mixt_debug_layer *mixt_debug_blamed_at(const mixt_debug *d, int64_t index)
{
    return is_open(d) && index >= 0 && index < d->layer_count ? &d->layers[d->blamed[index]] : NULL;
}

const mixt_debug_use *mixt_debug_use_at(const mixt_debug *d, int64_t index)
{
    for (int i = 0; is_open(d) && i < MIXT_DTYPE_COUNT; i++)
        if (d->uses[i].dtype != MIXT_DTYPE_NONE && index-- == 0)
            return &d->uses[i];
    return NULL;
}

const mixt_debug_issue *mixt_debug_issue_at(const mixt_debug *d, int64_t index)
{
    return is_open(d) && index >= 0 && index < d->info.issues ? &d->issues[index] : NULL;
}
