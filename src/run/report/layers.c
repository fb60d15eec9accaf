/* Watched updates: when they run, what they say, the rows that they leave. */
#include "run/report/layers.h"

#include "base/alloc.h"
#include "run/open/memory.h"
#include "run/run.h"
#include "store/json.h"
#include "store/json_rows.h"
#include "train/instrument.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const mixt__instrument look_at_layers = {.layers = true};

static mixt__trainer *core(mixt_run *run)
{
    return run->experiment.trainer->inner;
}

/** Room for what the instrumented step of now says. */
static mixt_status make_room(mixt__layers *l, const mixt__trainer *t)
{
    int64_t values = mixt__trainer_instrumented_count(t), params = mixt__trainer_params(t)->segment_count;
    if (values <= l->layer_room && params <= l->param_room)
        return MIXT_OK;
    mixt__free(l->layers);
    mixt__free(l->params);
    l->layers = mixt__alloc((size_t)values * sizeof *l->layers + 1);
    l->params = mixt__alloc((size_t)params * sizeof *l->params + 1);
    l->layer_room = l->layers ? values : 0;
    l->param_room = l->params ? params : 0;
    return l->layers && l->params ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for statistics of layers");
}

/* ---- when ---- */

bool mixt__layers_drop(mixt_run *run)
{
    mixt__trainer *t = core(run);
    if (!mixt__trainer_layers_wanted(t) || mixt__trainer_has_memory(t))
        return false;
    mixt__trainer_want_layers(t, false);
    if (mixt__trainer_recompile(t) != MIXT_OK)
        return false;
    mixt__run_note(run, true, "watch.every: no memory for statistics of layers: none are collected");
    return true;
}

/** The instrumented step, compiled: its graph is one more that the run holds. */
static mixt_status compile(mixt_run *run)
{
    size_t before = mixt__account_bytes(run->account);
    MIXT_TRY(mixt__trainer_instrument(core(run), &look_at_layers));
    MIXT_TRY(make_room(&run->layers, core(run)));
    if (run->graphs) // which are counted already
        run->graphs += mixt__account_bytes(run->account) - before;
    return MIXT_OK;
}

void mixt__layers_plan(mixt_run *run)
{
    mixt__trainer *t = core(run);
    int64_t every = mixt__config_int(run->config, MIXT_KEY_WATCH_EVERY);
    if (every && every <= run->experiment.total_steps && mixt__trainer_layers_count(t) &&
        !mixt__trainer_layers_ready(t) && !mixt__trainer_has_memory(t))
        (void)compile(run); // told when it is to run
}

void mixt__layers_prepare(mixt_run *run, int64_t step)
{
    mixt__trainer *t = core(run);
    int64_t every = mixt__config_int(run->config, MIXT_KEY_WATCH_EVERY);
    if (!every || step % every || !mixt__trainer_layers_count(t))
        return;
    // Another policy, or who looks into a step in another way, drops it.
    if (!mixt__trainer_layers_ready(t) && compile(run) != MIXT_OK)
        mixt__run_note(run, true, "step %lld: no statistics of layers: %s", (long long)step, mixt_error_text());
    else
        (void)mixt__trainer_instrument_next(t); // there is one
}

/* ---- what ---- */

void mixt__layers_close(mixt__layers *l)
{
    mixt__free(l->layers);
    mixt__free(l->params);
    mixt__free(l->names);
    *l = (mixt__layers){0};
}

/** The entry of a layer, which is made where there is none yet. */
static mixt_layer_signal *entry_of(mixt__layers *l, const char *layer)
{
    for (int64_t i = l->layer_count; i-- > 0;)
        if (!strcmp(l->layers[i].layer, layer))
            return &l->layers[i];
    l->layers[l->layer_count] = (mixt_layer_signal){.layer = layer};
    return &l->layers[l->layer_count++];
}

static double largest_of(mixt_dtype dtype)
{
    return mixt__format_narrow(dtype) ? mixt__format_of(dtype)->max : (double)FLT_MAX; // BF16 ends 0.4% below
}

/** Numbers that FP16 rounded to 0, judged by those that it rounded to its smallest ones. Going down by a power of two
 * at a time, from 2^-23 to 2^-24, their number is multiplied by `fall`, and is taken to go on so below, where they are
 * 0: where they are spread evenly around 0 it halves each time, and half as many became 0 as became 2^-24. Where
 * clearly more lie below than above, most of the tensor is down there, and all zeros are from there. */
static double flushed_count(const int64_t *counts)
{
    enum { CLEAR = 32 }; // numbers that are no chance
    const int64_t *exponents = counts + MIXT_STATS_EXPONENTS;
    double last = (double)exponents[127 - 24], above = (double)exponents[127 - 23], most = 0.95;
    double zeros = (double)counts[MIXT_STATS_ZEROS];
    if (last >= CLEAR && last >= 2 * above)
        return zeros;
    double fall = above > 0 ? fmin(most, last / above) : last > 0 ? 0.5 : 0;
    return fmin(zeros, 0.5 * last * fall / (1 - fall));
}

static void fill(mixt_tensor_signal *s, const mixt__instrumented_value *v)
{
    double count = (double)v->counts[MIXT_STATS_COUNT];
    double bad = (double)(v->counts[MIXT_STATS_NAN] + v->counts[MIXT_STATS_INF]), finite = count - bad;
    *s = (mixt_tensor_signal){.dtype = v->dtype};
    s->amax = finite > 0 ? v->numbers[MIXT_STATS_AMAX] : NAN;
    s->rms = finite > 0 ? sqrt(v->numbers[MIXT_STATS_SQUARES] / finite) : NAN;
    s->zero = count > 0 ? (double)v->counts[MIXT_STATS_ZEROS] / count : NAN;
    s->nonfinite = count > 0 ? bad / count : NAN;
    s->margin = bad > 0 ? 0 : s->amax > 0 ? log2(largest_of(v->dtype) / s->amax) : INFINITY;
    s->flushed = v->dtype == MIXT_DTYPE_FP16 && count > 0 ? flushed_count(v->counts) / count : 0;
}

/** The loss scale, and what passes were weighed with, divided out: what made the norm of the step out of these. */
static double unscaling(const mixt__trainer *t, const mixt__segment_stats *stats, const mixt_step *step)
{
    double squares = 0;
    for (int64_t i = 0; i < mixt__trainer_params(t)->segment_count; i++)
        squares += stats[i].sum_squares;
    return squares > 0 && isfinite(step->grad_norm) ? step->grad_norm / sqrt(squares) : 1 / step->scale;
}

static void fill_params(mixt__layers *l, const mixt__trainer *t, const mixt_step *step)
{
    const mixt__segment_stats *stats = mixt__trainer_instrumented_gradients(t, step->step);
    double unscale = unscaling(t, stats, step);
    l->param_count = mixt__trainer_params(t)->segment_count;
    for (int64_t i = 0; i < l->param_count; i++) {
        const mixt__segment *segment = &mixt__trainer_params(t)->segments[i];
        double count = (double)segment->count;
        l->params[i] = (mixt_param_signal){.name = mixt__trainer_params(t)->table[segment->param].name};
        l->params[i].amax = (double)stats[i].amax * unscale;
        l->params[i].rms = isfinite(stats[i].sum_squares) ? sqrt(stats[i].sum_squares / count) * unscale : NAN;
        l->params[i].zero = (double)stats[i].zeros / count;
        l->params[i].nonfinite = (double)stats[i].nonfinite / count;
    }
}

static mixt_status read_values(mixt__layers *l, const mixt__trainer *t, const mixt_step *step)
{
    mixt__instrumented_value *v = mixt__alloc(sizeof *v);
    mixt_status status = v ? make_room(l, t) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for statistics of layers");
    l->layer_count = 0; // names belong to the graph, which may be another by now
    for (int64_t i = 0; status == MIXT_OK && i < mixt__trainer_instrumented_count(t); i++) {
        const int64_t *counts;
        status = mixt__trainer_instrumented_result(t, step->step, i, v, &counts);
        if (status != MIXT_OK)
            break;
        mixt_layer_signal *layer = entry_of(l, v->layer);
        mixt_tensor_signal *signal = v->backward ? &layer->gradient : &layer->activation;
        fill(signal, v);
        signal->exponents = counts + MIXT_STATS_EXPONENTS;
    }
    mixt__free(v);
    if (status == MIXT_OK)
        fill_params(l, t, step);
    return status;
}

/* ---- rows ---- */

static void append(json_t *array, double value)
{
    char text[32]; // five digits: a row has hundreds of numbers, and they are read by eye
    snprintf(text, sizeof text, "%.5g", value);
    mixt__json_add(array, mixt__rows_number(strtod(text, NULL)));
}

#define COLUMN(object, name, count, value)                                                                             \
    do {                                                                                                               \
        json_t *column = json_array();                                                                                 \
        for (int64_t i = 0; i < (count); i++)                                                                          \
            append(column, value);                                                                                     \
        mixt__json_set(object, name, column);                                                                          \
    } while (0)

static const mixt_tensor_signal *tensor(const mixt__layers *l, int64_t layer, bool gradient)
{
    static const mixt_tensor_signal none = {.amax = NAN, .rms = NAN, .zero = NAN, .nonfinite = NAN, .margin = NAN};
    const mixt_tensor_signal *s = gradient ? &l->layers[layer].gradient : &l->layers[layer].activation;
    return s->dtype == MIXT_DTYPE_NONE ? &none : s;
}

static json_t *tensors_object(const mixt__layers *l, bool gradient)
{
    json_t *o = json_object();
    COLUMN(o, "amax", l->layer_count, tensor(l, i, gradient)->amax);
    COLUMN(o, "rms", l->layer_count, tensor(l, i, gradient)->rms);
    COLUMN(o, "zero", l->layer_count, tensor(l, i, gradient)->zero);
    COLUMN(o, "nonfinite", l->layer_count, tensor(l, i, gradient)->nonfinite);
    COLUMN(o, "margin", l->layer_count, tensor(l, i, gradient)->margin);
    COLUMN(o, "flushed", l->layer_count,
           tensor(l, i, gradient)->dtype == MIXT_DTYPE_NONE ? (double)NAN : tensor(l, i, gradient)->flushed);
    return o;
}

static json_t *params_object(const mixt__layers *l)
{
    json_t *o = json_object();
    COLUMN(o, "amax", l->param_count, l->params[i].amax);
    COLUMN(o, "rms", l->param_count, l->params[i].rms);
    COLUMN(o, "zero", l->param_count, l->params[i].zero);
    COLUMN(o, "nonfinite", l->param_count, l->params[i].nonfinite);
    return o;
}

/** Whose numbers stand in the columns of the rows that follow. */
static json_t *names_object(const mixt__layers *l)
{
    json_t *layers = json_array(), *params = json_array(), *formats[2] = {json_array(), json_array()};
    for (int64_t i = 0; i < l->layer_count; i++) {
        mixt__json_add(layers, mixt__json_string(l->layers[i].layer));
        for (int g = 0; g < 2; g++) {
            mixt_dtype dtype = tensor(l, i, g)->dtype;
            mixt__json_add(formats[g],
                           dtype == MIXT_DTYPE_NONE ? json_null() : mixt__json_string(mixt_dtype_name(dtype)));
        }
    }
    for (int64_t i = 0; i < l->param_count; i++)
        mixt__json_add(params, mixt__json_string(l->params[i].name));
    return json_pack("{s:o, s:o, s:o, s:o}", "layers", layers, "activations", formats[0], "gradients", formats[1],
                     "parameters", params);
}

/** A row of names, where those of the newest one no longer hold. */
static mixt_status write_names(mixt_run *run, int64_t step)
{
    mixt__layers *l = &run->layers;
    json_t *names = names_object(l);
    char *text = mixt__json_dumps(names, JSON_COMPACT | JSON_PRESERVE_ORDER), *copy = mixt__strdup(text ? text : "");
    free(text);
    if (!copy || (l->names && !strcmp(copy, l->names))) {
        json_decref(names);
        mixt__free(copy);
        return copy ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of layers");
    }
    mixt__free(l->names);
    l->names = copy;
    return mixt__rows_add(&run->dir.layers, json_pack("{s:I, s:o}", "step", (json_int_t)step, "names", names));
}

static mixt_status write_row(mixt_run *run, const mixt_step *step)
{
    const mixt__layers *l = &run->layers;
    char path[1200];
    if (run->dir.silent)
        return MIXT_OK;
    if (!run->dir.layers.open) // a short run has none
        MIXT_TRY(mixt__rows_open(&run->dir.layers, mixt__run_dir_file(&run->dir, "layers.jsonl", path), -1));
    MIXT_TRY(write_names(run, step->step));
    return mixt__rows_add(&run->dir.layers,
                          json_pack("{s:I, s:o, s:o, s:o, s:o}", "step", (json_int_t)step->step, "scale",
                                    mixt__rows_number(step->scale), "activations", tensors_object(l, false),
                                    "gradients", tensors_object(l, true), "parameters", params_object(l)));
}

static bool is_due(const mixt_run *run, int64_t step)
{
    int64_t every = mixt__config_int(run->config, MIXT_KEY_WATCH_EVERY);
    return every && step % every == 0;
}

mixt_status mixt__layers_take(mixt_run *run, const mixt_step *step)
{
    mixt__trainer *t = core(run);
    mixt__layers *l = &run->layers;
    bool instrumented = mixt__trainer_was_instrumented(t, step->step);
    if (run->group && is_due(run, step->step)) // on all ranks alike, whether it could be instrumented or not
        MIXT_TRY(mixt__trainer_join_instrumented(t, step->step, &instrumented));
    if (!instrumented)
        return MIXT_OK;
    MIXT_TRY(read_values(l, t, step));
    MIXT_TRY(write_row(run, step));
    mixt_layer_signals signals = {.step = step->step, .scale = step->scale};
    signals.scaling = mixt__trainer_settings_of(t)->scaling.enabled && mixt__trainer_settings_of(t)->scaling.dynamic;
    signals.layers = l->layers;
    signals.layer_count = l->layer_count;
    signals.params = l->params;
    signals.param_count = l->param_count;
    return mixt__run_tell(run, (mixt_event){.kind = MIXT_EVENT_LAYERS, .layers = &signals});
}

/* ---- the file ---- */

static mixt_status take_names(void *layers, const char *line, int64_t number)
{
    mixt__layers *l = layers;
    json_t *row;
    (void)number;
    if (!strstr(line, "\"names\":"))
        return MIXT_OK;
    MIXT_TRY(mixt__json_row(line, &row));
    const json_t *names = json_object_get(row, "names");
    char *text = names ? mixt__json_dumps(names, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    char *copy = text ? mixt__strdup(text) : NULL;
    if (copy) {
        mixt__free(l->names);
        l->names = copy;
    }
    bool lost = names && !copy;
    free(text);
    json_decref(row);
    return lost ? mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of layers") : MIXT_OK;
}

/** The names that the newest row of names has: a resumed run goes on under them. */
static mixt_status find_names(mixt__layers *l, const char *path)
{
    return mixt__json_lines_read(path, take_names, l);
}

mixt_status mixt__layers_return(mixt_run *run, int64_t bytes)
{
    mixt__rows *rows = &run->dir.layers;
    if (!rows->open)
        return MIXT_OK;
    MIXT_TRY(mixt__rows_cut(rows, bytes));
    mixt__free(run->layers.names);
    run->layers.names = NULL;
    return find_names(&run->layers, rows->path);
}

mixt_status mixt__layers_resume(mixt_run *run)
{
    char path[1200];
    int64_t keep = run->resume.state.layers_bytes;
    mixt__run_dir_file(&run->dir, "layers.jsonl", path);
    if (!run->resume.run[0] || run->dir.silent || access(path, F_OK))
        return MIXT_OK;
    if (!run->dir.layers.open) // a run that goes on elsewhere has its copy open already
        MIXT_TRY(mixt__rows_open(&run->dir.layers, path, keep));
    return find_names(&run->layers, path);
}
