/* Statistics of a watched step, and the rules that find what is wrong in them.
 *
 * Values come in the order in which they are made. The first that is not finite was therefore made out of finite ones,
 * unless the step began with something else: parameters are looked at before it.
 */
#include "mixt/debug.h"

#include "api/api.h"
#include "base/handles.h"
#include "num/num.h"
#include "train/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ISSUES_MAX = 64 };
static const double tiny_limit = 0.25;  // share of FP16 numbers that are subnormal or close to it
static const double margin_limit = 1.0; // powers of two left before an overflow

struct mixt_debug {
    mixt__handle handle;
    mixt__arena arena; // names
    mixt_debug_info info;
    mixt_debug_value *values;
    mixt_debug_issue issues[ISSUES_MAX];
};

/* ---- numbers ---- */

/** Exponents of the largest number and the smallest normal one of a format. */
static void range_of(mixt_dtype dtype, double *largest, int *smallest)
{
    *largest = dtype == MIXT_DTYPE_FP16 ? 65504 : 3.4e38; // BF16 and TF32 reach as far as FP32
    *smallest = dtype == MIXT_DTYPE_FP16 ? -14 : -126;
}

static void fill(mixt_debug_value *v, const mixt__watched_value *w)
{
    double largest, count = (double)w->counts[MIXT_STATS_COUNT];
    int smallest;
    range_of(w->dtype, &largest, &smallest);
    v->backward = w->backward;
    v->dtype = w->dtype;
    v->count = w->counts[MIXT_STATS_COUNT];
    v->zeros = w->counts[MIXT_STATS_ZEROS];
    v->nan = w->counts[MIXT_STATS_NAN];
    v->inf = w->counts[MIXT_STATS_INF];
    double finite = count - (double)(v->nan + v->inf);
    v->mean = finite > 0 ? w->numbers[MIXT_STATS_SUM] / finite : NAN;
    v->std = finite > 0 ? sqrt(fmax(0, w->numbers[MIXT_STATS_SQUARES] / finite - v->mean * v->mean)) : NAN;
    v->min = finite > 0 ? w->numbers[MIXT_STATS_MIN] : NAN;
    v->max = finite > 0 ? w->numbers[MIXT_STATS_MAX] : NAN;
    v->amax = finite > 0 ? w->numbers[MIXT_STATS_AMAX] : NAN;
    v->margin = v->amax > 0 ? log2(largest / v->amax) : INFINITY;
    int64_t below = w->counts[MIXT_STATS_EXPONENTS] - v->zeros; // FP32's subnormals
    for (int e = 1; e - 127 < smallest; e++)
        below += w->counts[MIXT_STATS_EXPONENTS + e];
    v->tiny = count > 0 ? (double)below / count : 0;
    v->beyond_fp16 = count > 0 ? (double)w->counts[MIXT_STATS_BEYOND] / count : 0;
    v->flushed_fp16 = count > 0 ? (double)w->counts[MIXT_STATS_FLUSHED] / count : 0;
}

/* ---- what is wrong ---- */

static mixt_debug_issue *raise_issue(mixt_debug *d, mixt_debug_kind kind, int64_t value, const char *remedy)
{
    if (d->info.issues == ISSUES_MAX)
        return NULL;
    mixt_debug_issue *issue = &d->issues[d->info.issues++];
    *issue = (mixt_debug_issue){.kind = kind, .value = value, .remedy = remedy};
    return issue;
}

#define SAY(issue, ...) snprintf((issue)->text, sizeof(issue)->text, __VA_ARGS__)

static void judge_nonfinite(mixt_debug *d)
{
    const char *source = d->info.source;
    mixt_debug_issue *issue;
    if (*source) {
        issue = raise_issue(d, MIXT_DEBUG_NONFINITE, -1, "go back to a checkpoint whose weights are finite");
        SAY(issue, "parameter %s was not finite before the step", source);
    }
    if (d->info.first_nonfinite < 0)
        return;
    const mixt_debug_value *v = &d->values[d->info.first_nonfinite];
    bool narrow = v->dtype == MIXT_DTYPE_FP16, scaled = v->backward && d->info.step.scale > 1;
    issue = raise_issue(d, MIXT_DEBUG_NONFINITE, d->info.first_nonfinite,
                        *source  ? "the parameter is the cause"
                        : scaled ? "a smaller loss scale: a dynamic one falls by itself; else bf16 for this layer"
                        : narrow ? "FP16 ends at 65504: keep this layer in bf16 or fp32 by a policy's rule"
                                 : "look at the data and the learning rate: fp32 and bf16 reach to 3.4e38");
    SAY(issue, "%s pass: %s of %s is the first to make numbers that are not finite, in %s (%lld NaN, %lld Inf of %lld)",
        v->backward ? "backward" : "forward", v->op, v->layer, mixt_dtype_name(v->dtype), (long long)v->nan,
        (long long)v->inf, (long long)v->count);
}

static void judge_value(mixt_debug *d, int64_t index)
{
    const mixt_debug_value *v = &d->values[index];
    const char *pass = v->backward ? "backward" : "forward";
    mixt_debug_issue *issue = NULL;
    if (*v->name && v->count && v->zeros == v->count) {
        issue = raise_issue(d, MIXT_DEBUG_GRADIENT, index,
                            "the layer does not learn: dead units, an unused layer, or gradients that became 0");
        if (issue)
            SAY(issue, "the gradient of %s is 0 everywhere", v->name);
    } else if (v->dtype == MIXT_DTYPE_FP16 && !v->nan && !v->inf && v->margin < margin_limit) {
        issue = raise_issue(d, MIXT_DEBUG_PRECISION, index,
                            v->backward ? "a smaller loss scale, or bf16 for this layer"
                                        : "bf16 or fp32 for this layer, by a policy's rule");
        if (issue)
            SAY(issue, "%s pass: %s of %s reaches %.4g in fp16, which ends at 65504", pass, v->op, v->layer, v->amax);
    } else if (v->dtype == MIXT_DTYPE_FP16 && v->tiny > tiny_limit) {
        issue = raise_issue(d, MIXT_DEBUG_PRECISION, index,
                            v->backward ? "a larger loss scale, or bf16 for this layer"
                                        : "bf16 or fp32 for this layer, by a policy's rule");
        if (issue)
            SAY(issue, "%s pass: %.0f%% of %s of %s are below fp16's smallest normal number and lose bits", pass,
                100 * v->tiny, v->op, v->layer);
    }
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
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to look at %s", info.name);
        mixt_status status = mixt_trainer_param_get(t, p, values);
        for (int64_t i = 0; status == MIXT_OK && i < info.count && !*name; i++)
            *name = isfinite(values[i]) ? NULL : info.name;
        mixt__free(values);
        MIXT_TRY(status);
    }
    return MIXT_OK;
}

static const char *keep_text(mixt_debug *d, const char *text)
{
    const char *kept = mixt__arena_strdup(&d->arena, text);
    return kept ? kept : "";
}

static mixt_status read_values(mixt_debug *d, const mixt__trainer *core)
{
    mixt__watched_value *w = mixt__alloc(sizeof *w);
    mixt_status status = w ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the values of a step");
    d->info.values = mixt__trainer_watched_count(core);
    d->info.first_nonfinite = -1;
    d->values = mixt__alloc((size_t)(d->info.values + 1) * sizeof *d->values);
    if (!d->values)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for the values of a step");
    for (int64_t i = 0; i < d->info.values && status == MIXT_OK; i++) {
        status = mixt__trainer_watched_read(core, i, w);
        if (status != MIXT_OK)
            break;
        mixt_debug_value *v = &d->values[i];
        fill(v, w);
        v->layer = keep_text(d, w->layer);
        v->op = keep_text(d, w->op);
        v->name = w->gradient ? keep_text(d, w->name) : "";
        if (d->info.first_nonfinite < 0 && v->nan + v->inf)
            d->info.first_nonfinite = i;
    }
    mixt__free(w);
    return status;
}

static mixt_status make(mixt_trainer *t, mixt_data *data, mixt_debug *d)
{
    mixt__trainer *core = &t->core;
    const mixt__watch watch = {.targets = {MIXT_DTYPE_FP16}};
    const char *bad;
    if (!core->train) {
        mixt__batch_spec spec = mixt__trainer_spec_of(data, core->settings.batch);
        MIXT_TRY(mixt__trainer_compile(core, &spec));
    }
    MIXT_TRY(mixt__trainer_allocate(core));
    MIXT_TRY(bad_parameter(t, &bad));
    d->info.source = keep_text(d, bad ? bad : "");
    MIXT_TRY(mixt__trainer_watch(core, &watch));
    mixt_status status = mixt__trainer_watch_next(core);
    if (status == MIXT_OK)
        status = mixt__trainer_step(core, data, &d->info.step);
    d->info.step.overflow_layer = NULL;
    if (status == MIXT_OK)
        status = read_values(d, core);
    mixt__trainer_unwatch(core);
    MIXT_TRY(status);
    judge_nonfinite(d);
    for (int64_t i = 0; i < d->info.values; i++)
        judge_value(d, i);
    return MIXT_OK;
}

static void discard(mixt_debug *d)
{
    mixt__free(d->values);
    mixt__arena_free(&d->arena);
    mixt__free(d);
}

mixt_status mixt_debug_step(mixt_trainer *t, mixt_data *data, mixt_debug **debug)
{
    MIXT_TRY(mixt__need(debug));
    *debug = NULL;
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_open(data, "data"));
    mixt_debug *d = mixt__alloc(sizeof *d);
    if (!d)
        return mixt__context_note(t->context, mixt__fail(MIXT_ERROR_MEMORY, "no memory to look into a step"));
    mixt_status status = make(t, data, d);
    if (status != MIXT_OK) {
        discard(d);
        return mixt__context_note(t->context, status);
    }
    mixt__handle_add(&d->handle, d, "debug", NULL);
    *debug = d;
    return MIXT_OK;
}

void mixt_debug_free(mixt_debug *d)
{
    if (!d || mixt__need_open(d, "debug") != MIXT_OK)
        return;
    mixt__handle_remove(d);
    discard(d);
}

mixt_debug_info mixt_debug_describe(const mixt_debug *d)
{
    return d && mixt__need_open(d, "debug") == MIXT_OK ? d->info
                                                       : (mixt_debug_info){.first_nonfinite = -1, .source = ""};
}

const mixt_debug_value *mixt_debug_value_at(const mixt_debug *d, int64_t index)
{
    if (!d || mixt__need_open(d, "debug") != MIXT_OK)
        return NULL;
    return index >= 0 && index < d->info.values ? &d->values[index] : NULL;
}

const mixt_debug_issue *mixt_debug_issue_at(const mixt_debug *d, int64_t index)
{
    if (!d || mixt__need_open(d, "debug") != MIXT_OK)
        return NULL;
    return index >= 0 && index < d->info.issues ? &d->issues[index] : NULL;
}
