/* What is wrong with the numbers of a step, and what to do about it.
 *
 * Limits are wide: what is named here costs accuracy or stops a run, it does not only look odd.
 */
#include "inspect/debug.h"

#include "num/num.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double tiny_limit = 0.25;    // share of numbers that are subnormal in their format
static const double flushed_limit = 0.05; // share of numbers that became 0
static const double margin_limit = 1.0;   // powers of two left before an overflow
static const double error_limit = 0.25;   // of a value's size
static const double jump_limit = 8.0;     // times the error of what its op read
static const double vanishing = 1e-6;     // of the usual size of a gradient
static const double exploding = 1e6;      // times that
static const double norm_limit = 100;     // of all gradients

/** An issue to be filled in; one that is thrown away when there are too many. */
static mixt_debug_issue *raise_issue(mixt_debug *d, mixt_debug_kind kind, int64_t value)
{
    static _Thread_local mixt_debug_issue unused;
    mixt_debug_issue *issue = d->info.issues == MIXT_DEBUG_ISSUES_MAX ? &unused : &d->issues[d->info.issues++];
    *issue = (mixt_debug_issue){.kind = kind, .value = value, .text = "", .remedy = ""};
    return issue;
}

#define SAY(issue, ...) ((issue)->text = mixt__arena_text(&d->arena, __VA_ARGS__))
#define ADVISE(issue, ...) ((issue)->remedy = mixt__arena_text(&d->arena, __VA_ARGS__))

static const char *pass_of(const mixt_debug_value *v)
{
    return v->backward ? "backward" : "forward";
}

/** "NaN", "Inf" or both. */
static const char *bad_words(const mixt_debug_value *v)
{
    return v->nan && v->inf ? "NaN and Inf" : v->nan ? "NaN" : "Inf";
}

/* ---- numbers that are not finite ---- */

/** What an op read, in words: "relu of fc.1 up to 812 in fp16; parameter fc.2.weight up to 6e+04 in fp16". */
static void say_inputs(const mixt_debug_origin *o, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < o->input_count && used < size; i++) {
        const mixt_debug_value *v = &o->inputs[i];
        used += (size_t)snprintf(text + used, size - used, "%s%s %s%s up to %.3g in %s", i ? "; " : "", v->op,
                                 *v->layer ? "of " : "", *v->layer ? v->layer : v->name, v->amax,
                                 mixt_dtype_name(v->dtype));
    }
}

/** A loss scale with which the op's result would fit its format, by FP32's numbers; 0: it is not the scale. */
static double scale_that_fits(const mixt_debug *d)
{
    const mixt_debug_value *v = &d->origin.value;
    double scale = d->info.step.scale, most = mixt__dtype_max(v->dtype);
    if (!d->origin.backward || scale <= 1 || !v->compared || !isfinite(v->reference) || v->reference <= most)
        return 0;
    return v->reference / scale < most ? exp2(floor(log2(scale * most / v->reference))) : 0;
}

/** The layer that a rule must name: a loss has the formats of the outputs that it reads. */
static const char *layer_to_raise(const mixt_debug_origin *o)
{
    return !strcmp(o->layer, "loss") && o->input_count && *o->inputs[0].layer ? o->inputs[0].layer : o->layer;
}

static void advise_op(mixt_debug *d, mixt_debug_issue *issue)
{
    const mixt_debug_origin *o = &d->origin;
    bool narrow = mixt__format_narrow(o->value.dtype), scaled = o->backward && d->info.step.scale > 1;
    double fits = narrow ? scale_that_fits(d) : 0;
    if (fits >= 1)
        ADVISE(issue,
               "use a loss scale of at most %g (train.loss_scale=dynamic lowers it by itself), or bf16 for this layer, "
               "with a policy rule: {layer: \"%s\", precision: bf16}",
               fits, layer_to_raise(o));
    else if (narrow && !d->info.full_nonfinite)
        ADVISE(
            issue,
            "%s ends at %g%s%s: use bf16 or fp32 for this layer, with a policy rule: {layer: \"%s\", precision: bf16}",
            mixt_dtype_name(o->value.dtype), mixt__dtype_max(o->value.dtype),
            scaled ? ", or lower the loss scale if a gradient is too large" : "",
            o->value.compared ? ", and FP32 holds this value" : "", layer_to_raise(o));
    else if (d->info.shadow && d->info.full_nonfinite)
        ADVISE(issue, "FP32 gives NaN or Inf too: no format helps. Check the inputs of this op, the learning rate "
                      "(train.lr, train.warmup) and clipping (train.clip) of the updates before, and this batch");
    else
        ADVISE(issue, "check the data and the learning rate: fp32 and bf16 reach 3.4e38");
}

static void judge_op(mixt_debug *d)
{
    const mixt_debug_origin *o = &d->origin;
    char inputs[200], pass[40] = "";
    mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_NONFINITE, d->info.first_nonfinite);
    say_inputs(o, inputs, sizeof inputs);
    if (o->pass)
        snprintf(pass, sizeof pass, " (in pass %lld)", (long long)o->pass + 1);
    SAY(issue, "%s pass%s: %s of %s is the first to give NaN or Inf, in %s (%lld NaN, %lld Inf of %lld)%s%s",
        pass_of(&o->value), pass, o->op, o->layer, mixt_dtype_name(o->value.dtype), (long long)o->value.nan,
        (long long)o->value.inf, (long long)o->value.count, *inputs ? ", out of " : "", inputs);
    advise_op(d, issue);
}

static void judge_outside(mixt_debug *d)
{
    const mixt_debug_origin *o = &d->origin;
    const mixt_debug_value *held = &o->value;
    const char *name = mixt_debug_cause_name(o->cause);
    for (int i = 0; i < o->input_count; i++)
        if (o->inputs[i].op[0] == name[0] && o->inputs[i].nan + o->inputs[i].inf)
            held = &o->inputs[i];
    mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_NONFINITE, d->info.first_nonfinite);
    const char *format = mixt_dtype_name(held->dtype);
    if (o->cause == MIXT_DEBUG_CAUSE_PARAMETER && o->rounded) {
        SAY(issue, "parameter %s is too large for %s: its copy there holds %s before the step; %s of %s reads it first",
            o->source, format, bad_words(held), o->op, o->layer);
        ADVISE(issue,
               "use bf16 or fp32 for this layer, with a policy rule: {layer: \"%s\", precision: bf16}; for such large "
               "weights also raise train.weight_decay or lower train.lr",
               o->layer);
    } else if (o->cause == MIXT_DEBUG_CAUSE_PARAMETER) {
        SAY(issue, "parameter %s holds %s before the step; %s of %s reads it first", o->source, bad_words(held), o->op,
            o->layer);
        ADVISE(issue,
               "go back to a checkpoint with finite weights; 'mixt debug RUN --step N' inspects the updates before");
    } else if (o->cause == MIXT_DEBUG_CAUSE_SCALE) {
        SAY(issue, "the loss scale is NaN or Inf before the step; %s of %s reads it first", o->op, o->layer);
        ADVISE(issue, "set train.loss_scale=dynamic or a number; train.inject_overflow causes this on purpose");
    } else {
        SAY(issue, "%s sample %lld (number %lld of the batch) holds %s; %s of %s reads it first", name,
            (long long)o->sample, (long long)o->place,
            o->rounded ? "a number that is too large for its format" : bad_words(held), o->op, o->layer);
        ADVISE(issue, "%s",
               o->rounded ? "normalise the data, or use bf16 for the first layer"
                          : "check that sample: remove it, or set data.missing=mean where cells are missing");
    }
}

static void judge_nonfinite(mixt_debug *d)
{
    const mixt_debug_origin *o = &d->origin;
    if (*d->info.source && (!o->op || o->cause != MIXT_DEBUG_CAUSE_PARAMETER)) {
        mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_NONFINITE, -1);
        SAY(issue, "parameter %s holds NaN or Inf before the step", d->info.source);
        ADVISE(issue, "go back to a checkpoint with finite weights");
    }
    if (o->op && o->cause == MIXT_DEBUG_CAUSE_OP)
        judge_op(d);
    else if (o->op)
        judge_outside(d);
}

/* ---- gradients ---- */

/** Root mean square of a gradient, without the loss scale. */
static double size_of(const mixt_debug *d, const mixt_debug_value *v)
{
    double scale = d->info.step.scale > 0 ? d->info.step.scale : 1;
    return sqrt(v->mean * v->mean + v->std * v->std) / scale;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** The median size of parameters' gradients that are not 0; NaN: there are none. */
static double usual_size(const mixt_debug *d)
{
    int64_t count = 0;
    double usual = NAN, *sizes = mixt__alloc((size_t)(d->info.values + 1) * sizeof *sizes);
    for (int64_t i = 0; sizes && i < d->info.values; i++)
        if (*d->values[i].name && size_of(d, &d->values[i]) > 0)
            sizes[count++] = size_of(d, &d->values[i]);
    if (count) {
        qsort(sizes, (size_t)count, sizeof *sizes, by_size);
        usual = sizes[count / 2];
    }
    mixt__free(sizes);
    return usual;
}

static void judge_gradient(mixt_debug *d, int64_t index, double usual)
{
    const mixt_debug_value *v = &d->values[index];
    double size = size_of(d, v);
    if (!v->count || v->nan || v->inf)
        return;
    if (v->zeros == v->count && !(v->reference > 0)) {
        mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_GRADIENT, index);
        SAY(issue, "dead: the gradient of %s is 0 everywhere%s", v->name, v->compared ? ", in FP32 too" : "");
        ADVISE(
            issue,
            "the layer does not learn: its units are never active (lower train.lr, another init), or nothing uses it");
    } else if (v->zeros < v->count && size < vanishing * usual) {
        mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_GRADIENT, index);
        SAY(issue, "vanishing: the gradient of %s is %.2g on average, of the others %.2g", v->name, size, usual);
        ADVISE(issue,
               "add a norm or a residual path before this layer, or a larger learning rate for it (train.lr_groups)");
    } else if (size > exploding * usual) {
        mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_GRADIENT, index);
        SAY(issue, "exploding: the gradient of %s is %.2g on average, of the others %.2g", v->name, size, usual);
        ADVISE(issue, "set train.clip=1, lower train.lr or lengthen train.warmup");
    }
}

/** The gradient that is most of a norm that is too large. */
static void judge_norm(mixt_debug *d)
{
    double most = 0;
    int64_t largest = -1;
    for (int64_t i = 0; i < d->info.values; i++) {
        const mixt_debug_value *v = &d->values[i];
        double norm = size_of(d, v) * sqrt((double)v->count);
        if (*v->name && norm > most) {
            most = norm;
            largest = i;
        }
    }
    if (!(d->info.step.grad_norm > norm_limit) || !isfinite(d->info.step.grad_norm) || largest < 0)
        return;
    mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_GRADIENT, largest);
    SAY(issue, "exploding: the gradient norm is %.4g, of which %s has %.4g", d->info.step.grad_norm,
        d->values[largest].name, most);
    ADVISE(issue, "set train.clip=1, lower train.lr or lengthen train.warmup; check this batch");
}

/* ---- formats ---- */

/** Whether the same was said of another value of this op: kernels may give several. */
static bool was_said(const mixt_debug *d, const mixt_debug_value *v, const char *words)
{
    for (int64_t i = 0; i < d->info.issues; i++) {
        const mixt_debug_value *other = d->issues[i].value >= 0 ? &d->values[d->issues[i].value] : NULL;
        if (other && other != v && !strcmp(other->layer, v->layer) && !strcmp(other->op, v->op) &&
            other->backward == v->backward && strstr(d->issues[i].text, words))
            return true;
    }
    return false;
}

static void judge_range(mixt_debug *d, int64_t index)
{
    const mixt_debug_value *v = &d->values[index];
    const char *format = mixt_dtype_name(v->dtype);
    if (v->nan || v->inf || v->dtype == MIXT_DTYPE_FP32 || !strcmp(v->op, "scaled_cast"))
        return; // a scaled cast fills its format on purpose
    if (v->margin < margin_limit && !was_said(d, v, " reaches ")) {
        mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_PRECISION, index);
        SAY(issue, "%s pass: %s of %s reaches %.4g in %s, which ends at %g", pass_of(v), v->op, v->layer, v->amax,
            format, mixt__dtype_max(v->dtype));
        ADVISE(issue, "use %sbf16 or fp32 for this layer, with a policy rule: {layer: \"%s\", precision: bf16}",
               v->backward ? "a smaller loss scale (train.loss_scale), or " : "", v->layer);
    } else if (v->compared && v->flushed > flushed_limit && !was_said(d, v, " became 0 ")) {
        mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_PRECISION, index);
        SAY(issue, "%s pass: %.0f%% of %s of %s became 0 in %s, and are not 0 in FP32", pass_of(v), 100 * v->flushed,
            v->op, v->layer, format);
        ADVISE(issue, "use %sbf16 or fp32 for this layer, with a policy rule: {layer: \"%s\", precision: bf16}",
               v->backward ? "a larger loss scale (train.loss_scale), or " : "", v->layer);
    } else if (v->tiny > tiny_limit && !was_said(d, v, " smallest normal ") && !was_said(d, v, " became 0 ")) {
        mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_PRECISION, index);
        SAY(issue, "%s pass: %.0f%% of %s of %s are below %s's smallest normal number and lose bits", pass_of(v),
            100 * v->tiny, v->op, v->layer, format);
        ADVISE(issue, "use %sbf16 or fp32 for this layer, with a policy rule: {layer: \"%s\", precision: bf16}",
               v->backward ? "a larger loss scale (train.loss_scale), or " : "", v->layer);
    }
}

/** An error that the op itself adds. */
static void judge_error(mixt_debug *d, int64_t index)
{
    const mixt_debug_value *v = &d->values[index];
    if (!v->compared || !isfinite(v->error) || v->error < error_limit || v->error < jump_limit * v->inherited ||
        was_said(d, v, " jumps "))
        return;
    mixt_debug_issue *issue = raise_issue(d, MIXT_DEBUG_PRECISION, index);
    SAY(issue, "%s pass: the error of %s of %s jumps to %.0f%% of its size; the error of its inputs is %.2g%%",
        pass_of(v), v->op, v->layer, 100 * v->error, 100 * v->inherited);
    ADVISE(issue,
           "use fp32 for this layer, with a policy rule: {layer: \"%s\", precision: fp32}; 'mixt sensitivity' measures "
           "the gain",
           v->layer);
}

void mixt__debug_judge(mixt_debug *d)
{
    double usual = usual_size(d);
    judge_nonfinite(d);
    if (!d->origin.op)
        judge_norm(d);
    for (int64_t i = 0; i < d->info.values; i++) {
        if (*d->values[i].name)
            judge_gradient(d, i, usual);
        judge_range(d, i);
        if (!d->origin.op)
            judge_error(d, i);
    }
}
