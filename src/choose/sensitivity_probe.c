/* The cheap look at all cells at once: one FP32 pass with twins (passes/twins.h) beside its nodes, and one pass with
 * every layer in a format.
 *
 * Lowered alone, a layer's nodes have exact inputs: their errors are those of the twins. To first order the loss
 * changes by the sum of gradient times error; to second order, with Fisher's diagonal for the curvature, half the sum
 * of gradient² times error² over the targets comes on top. The error of a layer's own gradient has a part that its twin
 * shows, and one that flows to it from errors elsewhere: of that, as the pass with every layer low shows it, a layer
 * gets the share that it has in the second-order term. Kept alone is that pass without the layer's own part.
 *
 * Which nodes a cell puts into the format is asked of the precision pass, with the cell's policy.
 */
#include "choose/sensitivity.h"

#include "num/num.h"
#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/passes.h"
#include "train/finetune.h"

#include <math.h>
#include <string.h>

/** What a policy does to a node: bits. */
enum {
    LOWERED = 1,   // all of it, from inputs that are cast for it alone
    WEIGHTS = 2,   // its parameters; its inputs come in the format
    ROUNDED = 4,   // its output
    IN_FORMAT = 8, // it computes in the format, one way or the other: so does its gradient
};

/** Of the error that flows to a layer's gradient with every layer low, what comes from forward passes beyond the slopes
 *  that twins show; the rest comes from the backward passes of others. As found on small models of four kinds. */
static const double FORWARD_SHARE = 0.25;

/** The results of one twin. */
typedef struct difference {
    double numbers[MIXT_DIFF_NUMBERS];
    int64_t counts[MIXT_DIFF_COUNTS];
} difference;

typedef struct value_stats {
    double amax;
    int64_t count, beyond[MIXT_STATS_TARGETS], flushed[MIXT_STATS_TARGETS];
} value_stats;

struct mixt__probe {
    mixt_sensitivity *s;
    mixt__replay *replay;
    mixt__twins twins;
    mixt__shadow *shadow;
    mixt__graph *source;
    int64_t *layer_of;       // by node of the source: its layer; -1: none of those listed
    char *states;            // (cells, nodes), then (formats, nodes) of every layer low
    difference *differences; // (trials, twins)
    value_stats *stats;      // (trials, values)
    double targets;          // that a batch has
    mixt__seen *all_low_own; // (formats, trials, layers): each layer's own gradients with every layer low
    mixt__seen *all_low;     // (formats, trials)
};

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the estimates of all layers");
}

/* ---- which nodes a policy lowers ---- */

/** Whether a node only chooses among its inputs: what is rounded before is not rounded again. */
static bool only_chooses(const mixt__node *node)
{
    if (node->op == &mixt__op_pool)
        return ((const mixt__pool_attrs *)node->attrs)->kind == MIXT_POOL_MAX;
    const mixt__pointwise_attrs *at = node->attrs;
    return node->op == &mixt__op_pointwise && at->instr_count == 1 &&
           (at->instrs[0].code == MIXT_PW_RELU || at->instrs[0].code == MIXT_PW_COPY);
}

/** Marks the values that come to lie in memory in the format. Between pointwise nodes, which are fused, none does. */
static void mark_stored(const mixt__graph *typed, mixt_dtype stored, bool *low)
{
    for (int64_t v = 1; v < typed->value_count; v++) {
        const mixt__value *value = &typed->values[v];
        low[v] = value->dtype == stored && stored != MIXT_DTYPE_FP32 &&
                 (value->producer < 0 || typed->nodes[value->producer].op != &mixt__op_pointwise);
    }
    for (int64_t i = typed->node_count - 1; i >= 0; i--) {
        const mixt__node *n = &typed->nodes[i];
        for (int k = 0; k < n->in_count && n->op != &mixt__op_pointwise; k++) {
            bool reads = !n->op->view; // of a view, those who read it count
            for (int o = 0; o < n->out_count && !reads; o++)
                reads = low[n->out[o]];
            low[n->in[k]] |= reads && typed->values[n->in[k]].dtype == stored && stored != MIXT_DTYPE_FP32;
        }
        for (int o = 0; o < n->out_count && n->op->view; o++) // a view of what lies there in the format
            low[n->out[o]] = typed->values[n->out[o]].dtype == stored && stored != MIXT_DTYPE_FP32;
    }
}

/** Whether an activation that a node reads is cast for it, and whether any comes in the format. */
static void look_at_inputs(const mixt__graph *typed, const mixt__node *n, const bool *low, bool *cast, bool *given)
{
    *cast = *given = false;
    for (int k = 0; k < n->in_count; k++) {
        const mixt__value *v = &typed->values[n->in[k]];
        if (v->role == MIXT_ROLE_PARAM || !low[n->in[k]])
            continue;
        bool made_for_it = v->producer >= 0 && typed->nodes[v->producer].source < 0;
        *cast |= made_for_it || v->role == MIXT_ROLE_INPUT;
        *given |= !made_for_it;
    }
}

static void mark_nodes(const mixt__graph *typed, mixt_dtype format, const bool *low, char *states)
{
    for (int64_t i = 0; i < typed->node_count; i++) {
        const mixt__node *n = &typed->nodes[i];
        bool cast, given, out = low[n->out[0]], matrix = n->op->matrix_work && n->arithmetic == format;
        if (n->source < 0 || n->op->view)
            continue;
        look_at_inputs(typed, n, low, &cast, &given);
        char *state = &states[n->source];
        if (matrix && mixt__dtype_way(format))
            *state = LOWERED | IN_FORMAT;
        else if (matrix)
            *state = (char)((cast || !given ? LOWERED : WEIGHTS | (out ? ROUNDED : 0)) | IN_FORMAT);
        else if (cast && out && n->op != &mixt__op_pointwise)
            *state = LOWERED | IN_FORMAT;
        else if (out)
            *state = (char)((only_chooses(n) && given ? 0 : ROUNDED) | IN_FORMAT);
        else
            *state = 0;
    }
}

static mixt_status mark_policy(const mixt__probe *p, const mixt__policy *policy, mixt_dtype format, char *states)
{
    mixt__graph *typed;
    MIXT_TRY(mixt__pass_precision(p->source, policy, NULL, false, &typed));
    bool *low = mixt__alloc((size_t)typed->value_count * sizeof *low);
    if (low) {
        mark_stored(typed, mixt__dtype_carrier(format), low);
        mark_nodes(typed, format, low, states);
    }
    mixt__free(low);
    mixt__graph_free(typed);
    return low ? MIXT_OK : no_memory();
}

static int64_t cell_count(const mixt_sensitivity *s)
{
    return s->layers.count * s->info.format_count * MIXT_SENSITIVITY_MODES;
}

static const char *states_of(const mixt__probe *p, int64_t cell)
{
    return p->states + cell * p->source->node_count;
}

static mixt_status mark_all(mixt__probe *p)
{
    mixt_sensitivity *s = p->s;
    mixt__policy_rule rule;
    int64_t cells = cell_count(s);
    for (int64_t i = 0; i < cells; i++) {
        int mode = (int)(i % MIXT_SENSITIVITY_MODES), format = (int)(i / MIXT_SENSITIVITY_MODES % s->info.format_count);
        int64_t layer = i / MIXT_SENSITIVITY_MODES / s->info.format_count;
        mixt__policy policy = mixt__sense_policy(s, layer, format, mode, &rule);
        if (s->cells[i].exists)
            MIXT_TRY(mark_policy(p, &policy, s->info.formats[format], p->states + i * p->source->node_count));
    }
    for (int f = 0; f < s->info.format_count; f++) {
        mixt__policy policy = mixt__policy_of(s->info.formats[f]);
        MIXT_TRY(mark_policy(p, &policy, s->info.formats[f], p->states + (cells + f) * p->source->node_count));
    }
    return MIXT_OK;
}

/* ---- making one ---- */

static mixt_status build_source(mixt__probe *p)
{
    const mixt__trainer *t = p->replay->trainer;
    mixt__batch_spec spec = *mixt__trainer_spec(t);
    mixt__spec_resize(&spec, p->replay->batch);
    mixt__model model = *mixt__trainer_model(t);
    model.teacher = NULL; // whose formats nobody asks about
    MIXT_TRY(mixt__model_build(&model, &spec, true, &p->source));
    const mixt__trainer_settings *s = mixt__trainer_settings_of(t);
    MIXT_TRY(mixt__freeze(p->source, s->freeze, s->frozen));
    p->targets = (double)mixt__shape_count(&spec.target);
    p->layer_of = mixt__alloc((size_t)(p->source->node_count + 1) * sizeof *p->layer_of);
    if (!p->layer_of)
        return no_memory();
    for (int64_t i = 0; i < p->source->node_count; i++)
        p->layer_of[i] = mixt__sense_layer_find(&p->s->layers, p->source->nodes[i].layer);
    return MIXT_OK;
}

static mixt_status take_memory(mixt__probe *p)
{
    int64_t cells = cell_count(p->s), trials = p->replay->trials, formats = p->s->info.format_count;
    p->states = mixt__alloc((size_t)((cells + formats) * p->source->node_count + 1));
    p->differences = mixt__alloc((size_t)(trials * p->twins.count + 1) * sizeof *p->differences);
    p->stats = mixt__alloc((size_t)(trials * p->twins.stats_count + 1) * sizeof *p->stats);
    p->all_low = mixt__alloc((size_t)(formats * trials) * sizeof *p->all_low);
    p->all_low_own = mixt__alloc((size_t)(formats * trials * p->s->layers.count) * sizeof *p->all_low_own);
    return p->states && p->differences && p->stats && p->all_low && p->all_low_own ? MIXT_OK : no_memory();
}

static mixt_status open(mixt__probe *p)
{
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__shadow_options options = {.policy = &fp32, .batch = p->replay->batch, .no_fusion = true, .keep_logits = true};
    MIXT_TRY(build_source(p));
    p->twins.format_count = p->s->info.format_count;
    memcpy(p->twins.formats, p->s->info.formats, sizeof p->twins.formats);
    options.twins = &p->twins;
    MIXT_TRY(mixt__shadow_new(p->replay->trainer, &options, &p->shadow));
    MIXT_TRY(take_memory(p));
    return mark_all(p);
}

void mixt__probe_close(mixt__probe *p)
{
    if (!p)
        return;
    mixt__shadow_free(p->shadow);
    mixt__twins_free(&p->twins);
    mixt__graph_free(p->source);
    mixt__free(p->layer_of);
    mixt__free(p->states);
    mixt__free(p->differences);
    mixt__free(p->stats);
    mixt__free(p->all_low);
    mixt__free(p->all_low_own);
    mixt__free(p);
}

mixt_status mixt__probe_open(mixt_sensitivity *s, mixt__replay *replay, mixt__probe **probe)
{
    mixt__probe *p = mixt__alloc(sizeof *p);
    *probe = NULL;
    if (!p)
        return no_memory();
    p->s = s;
    p->replay = replay;
    mixt_status status = open(p);
    if (status == MIXT_OK)
        *probe = p;
    else
        mixt__probe_close(p);
    return status;
}

/* ---- reading a run ---- */

static mixt_status fetch(const mixt__probe *p, int32_t value, void *to, size_t bytes)
{
    return mixt__device_download(mixt__trainer_device(p->replay->trainer), to,
                                 mixt__executable_address(p->shadow->executable, value), bytes);
}

/** Of values that are rounded with a scale of their own: nothing is beyond the format's end, and what becomes 0 is
 * small beside the largest. Counted by powers of two. */
static void count_scaled(value_stats *v, int f, mixt_dtype format, const int64_t *exponents)
{
    const mixt__format *about = mixt__format_of(format);
    int64_t small = 0;
    if (!mixt__format_scales_operands(format))
        return;
    int last = v->amax > 0 ? ilogb(v->amax * about->min_subnormal / about->max) + 127 : 0;
    for (int e = 1; e < last && e < MIXT_STATS_BINS - 1; e++)
        small += exponents[e];
    v->beyond[f] = 0;
    v->flushed[f] = small;
}

static mixt_status read_results(mixt__probe *p, int64_t trial)
{
    double numbers[MIXT_STATS_NUMBERS];
    int64_t counts[MIXT_STATS_COUNTS];
    for (int64_t i = 0; i < p->twins.count; i++) {
        difference *d = &p->differences[trial * p->twins.count + i];
        MIXT_TRY(fetch(p, p->twins.twins[i].numbers, d->numbers, sizeof d->numbers));
        MIXT_TRY(fetch(p, p->twins.twins[i].counts, d->counts, sizeof d->counts));
    }
    for (int64_t i = 0; i < p->twins.stats_count; i++) {
        value_stats *v = &p->stats[trial * p->twins.stats_count + i];
        MIXT_TRY(fetch(p, p->twins.stats[i].numbers, numbers, sizeof numbers));
        MIXT_TRY(fetch(p, p->twins.stats[i].counts, counts, sizeof counts));
        v->amax = numbers[MIXT_STATS_AMAX];
        v->count = counts[MIXT_STATS_COUNT];
        memcpy(v->beyond, counts + MIXT_STATS_BEYOND, sizeof v->beyond);
        memcpy(v->flushed, counts + MIXT_STATS_FLUSHED, sizeof v->flushed);
        for (int f = 0; f < p->s->info.format_count; f++)
            count_scaled(v, f, p->s->info.formats[f], counts + MIXT_STATS_EXPONENTS);
    }
    return MIXT_OK;
}

/* ---- what a set of nodes loses ---- */

/** Sums over the twins of the nodes that a policy lowers. */
typedef struct losses {
    double first, second;           // of the loss, not scaled
    double signal, noise;           // of a layer's own outputs
    double own[MIXT_DIFF_NUMBERS];  // of a layer's own gradients
    double slope;                   // square of the error of a gradient that comes in through slopes, relative to it
    double values, beyond, flushed; // in the format
    double margin;                  // powers of two
    double broken;
} losses;

static void add_values(const mixt__probe *p, int64_t trial, const mixt__twin *t, losses *l)
{
    mixt_dtype format = p->s->info.formats[t->format];
    float limit = mixt__format_scales_operands(format) ? INFINITY : mixt__dtype_beyond(format);
    for (int i = 0; i < t->value_count; i++) {
        const value_stats *v = &p->stats[trial * p->twins.stats_count + t->values[i]];
        l->values += (double)v->count;
        l->beyond += (double)v->beyond[t->format];
        l->flushed += (double)v->flushed[t->format];
        // gradients stand near the largest number on purpose: the loss scale sees to that, and to their overflow
        if (v->amax > 0 && isfinite(limit) && !p->twins.stats[t->values[i]].backward)
            l->margin = fmin(l->margin, log2((double)limit / v->amax));
    }
}

/** Whether a twin counts for a node in this state. */
static bool counts_for(const mixt__twin *t, int state)
{
    switch (t->kind) {
    case MIXT_TWIN_FORWARD:
        return state & LOWERED;
    case MIXT_TWIN_ROUNDED:
        return state & ROUNDED;
    case MIXT_TWIN_WEIGHT:
        return state & WEIGHTS;
    case MIXT_TWIN_BACKWARD:
    case MIXT_TWIN_PARAM:
    case MIXT_TWIN_SLOPE:
        return state & IN_FORMAT;
    }
    return false;
}

/** Adds what a twin shows of a layer's own outputs and gradients. */
static void add_own(const mixt__probe *p, const mixt__twin *t, const double *n, const mixt__sense_layer *own, losses *l)
{
    int32_t segment = t->param >= 0 ? mixt__trainer_params(p->replay->trainer)->segment_of[t->param] : -1;
    if (t->kind == MIXT_TWIN_FORWARD || t->kind == MIXT_TWIN_ROUNDED) {
        l->signal += n[MIXT_DIFF_REFERENCE];
        l->noise += n[MIXT_DIFF_SQUARES];
    }
    if (t->kind == MIXT_TWIN_SLOPE)
        l->slope += n[MIXT_DIFF_REFERENCE] > 0 ? n[MIXT_DIFF_SQUARES] / n[MIXT_DIFF_REFERENCE] : 0;
    bool gradient = own->own_params ? t->kind == MIXT_TWIN_PARAM && segment >= 0 && own->own[segment]
                                    : t->kind == MIXT_TWIN_BACKWARD;
    for (int k = 0; k < MIXT_DIFF_NUMBERS && gradient; k++)
        l->own[k] += n[k];
}

/** @param layer whose own outputs and gradients are added up; -1: nobody's */
static losses add_up(const mixt__probe *p, int64_t trial, const char *states, int format, int64_t layer)
{
    losses l = {.margin = INFINITY};
    double scale = (double)p->replay->scale;
    for (int64_t i = 0; i < p->twins.count; i++) {
        const mixt__twin *t = &p->twins.twins[i];
        const difference *d = &p->differences[trial * p->twins.count + i];
        if (t->format != format || !counts_for(t, states[t->source]))
            continue;
        add_values(p, trial, t, &l);
        l.broken += (double)d->counts[MIXT_DIFF_BROKEN];
        if (t->kind == MIXT_TWIN_FORWARD || t->kind == MIXT_TWIN_ROUNDED || t->kind == MIXT_TWIN_WEIGHT)
            l.first += d->numbers[MIXT_DIFF_FIRST] / scale;
        if (t->kind == MIXT_TWIN_FORWARD || t->kind == MIXT_TWIN_ROUNDED)
            l.second += 0.5 * p->targets * d->numbers[MIXT_DIFF_SECOND] / (scale * scale);
        if (layer >= 0 && p->layer_of[t->source] == layer)
            add_own(p, t, d->numbers, &p->s->layers.layers[layer], &l);
    }
    return l;
}

/* ---- estimates ---- */

static double ratio(double part, double whole)
{
    return whole > 0 && isfinite(whole) && isfinite(part) ? part / whole : 0;
}

/** Square of the error of a layer's gradients that it makes itself, relative to them. */
static double local_error(const losses *l)
{
    return ratio(l->own[MIXT_DIFF_SQUARES], l->own[MIXT_DIFF_REFERENCE]) + l->slope;
}

static void fill_range(const losses *l, mixt__seen *seen)
{
    seen->overflow = fmax(ratio(l->beyond, l->values), l->broken > 0 ? ratio(fmax(l->broken, 1), l->values) : 0);
    seen->underflow = ratio(l->flushed, l->values);
    seen->margin = l->margin;
}

/** Cosine and length from the local sums, and what an error that flows in does to them. */
static void fill_gradient(const losses *l, double flowing, mixt__seen *seen)
{
    double reference = l->own[MIXT_DIFF_REFERENCE], other = l->own[MIXT_DIFF_OTHER];
    double cosine = reference > 0 && other > 0 ? l->own[MIXT_DIFF_PRODUCT] / sqrt(reference * other) : 1;
    seen->grad_error = sqrt(ratio(l->own[MIXT_DIFF_SQUARES], reference) + flowing);
    seen->grad_cosine = reference > 0 && !(other > 0) ? 0 : fmin(1, cosine) / sqrt(1 + flowing);
    seen->grad_norm_error = reference > 0 ? fabs(sqrt((other / reference) + flowing) - 1) : 0;
}

/** An optimizer that divides by the gradient's size makes small errors larger: as much as with every layer low. */
static void fill_update(const mixt__seen *own_all, mixt__seen *seen)
{
    double all = own_all->grad_error;
    bool known = isfinite(all) && all > 0 && isfinite(own_all->update_error);
    seen->update_error = known ? own_all->update_error * fmin(1, seen->grad_error / all) : seen->grad_error;
}

static void estimate_lowered(const mixt__probe *p, int64_t layer, int format, int64_t trial, const losses *all,
                             const losses *own, mixt__seen *seen)
{
    const mixt__seen *own_all =
        &p->all_low_own[((int64_t)format * p->replay->trials + trial) * p->s->layers.count + layer];
    double flowing = own_all->grad_error * own_all->grad_error - local_error(own);
    flowing = isfinite(flowing) && flowing > 0 ? FORWARD_SHARE * flowing * ratio(own->second, all->second) : 0;
    seen->loss_change = own->first + own->second;
    seen->snr_db = mixt__sense_decibels(own->signal, own->noise);
    fill_gradient(own, flowing + own->slope, seen);
    fill_update(own_all, seen);
    fill_range(own, seen);
}

static void estimate_kept(const mixt__probe *p, int64_t layer, int format, int64_t trial, const losses *all,
                          const losses *rest, const losses *own, mixt__seen *seen)
{
    const mixt__seen *low = &p->all_low[format * p->replay->trials + trial];
    const mixt__seen *own_all =
        &p->all_low_own[((int64_t)format * p->replay->trials + trial) * p->s->layers.count + layer];
    double share = ratio(rest->second, all->second);
    double squares = own_all->grad_error * own_all->grad_error, local = local_error(own);
    double flowing = squares > 0 ? squares * squares / (squares + local) : squares; // less what it makes itself
    bool whole = isfinite(low->loss_change);
    seen->loss_change =
        whole ? low->loss_change - (all->first + all->second - rest->first - rest->second) : rest->first + rest->second;
    seen->snr_db = whole ? fmin(low->snr_db - 10 * log10(fmax(share, 1e-15)), MIXT_SENSE_EXACT_DB) : (double)NAN;
    seen->grad_error = isfinite(flowing) ? sqrt(fmax(flowing, 0) * share) : sqrt(rest->second);
    seen->grad_cosine = 1 / sqrt(1 + seen->grad_error * seen->grad_error);
    seen->grad_norm_error =
        isfinite(own_all->grad_norm_error) ? own_all->grad_norm_error * sqrt(share) : seen->grad_error;
    fill_update(own_all, seen);
    fill_range(rest, seen);
}

/** What one layer's cells look like in a format, on one batch. */
static void estimate_layer(const mixt__probe *p, int64_t trial, int format, int64_t layer, const losses *all)
{
    mixt_sensitivity *s = p->s;
    int64_t at = (layer * s->info.format_count + format) * MIXT_SENSITIVITY_MODES;
    mixt__seen lowered = {.loss = p->replay->losses[trial]}, kept = lowered;
    if (!s->cells[at].exists)
        return;
    losses own = add_up(p, trial, states_of(p, at + MIXT_SENSITIVITY_LOWERED), format, layer);
    losses rest = add_up(p, trial, states_of(p, at + MIXT_SENSITIVITY_KEPT), format, -1);
    estimate_lowered(p, layer, format, trial, all, &own, &lowered);
    estimate_kept(p, layer, format, trial, all, &rest, &own, &kept);
    mixt__seen_add(&s->cells[at + MIXT_SENSITIVITY_LOWERED].estimated, &lowered);
    mixt__seen_add(&s->cells[at + MIXT_SENSITIVITY_KEPT].estimated, &kept);
}

static void estimate(const mixt__probe *p)
{
    const mixt_sensitivity *s = p->s;
    int64_t cells = cell_count(s);
    for (int64_t trial = 0; trial < p->replay->trials; trial++)
        for (int f = 0; f < s->info.format_count; f++) {
            losses all = add_up(p, trial, states_of(p, cells + f), f, -1);
            mixt__seen *low = &p->all_low[f * p->replay->trials + trial];
            fill_range(&all, low);
            mixt__seen_add(&p->s->all_low[f], low);
            for (int64_t layer = 0; layer < s->layers.count; layer++)
                estimate_layer(p, trial, f, layer, &all);
        }
}

mixt_status mixt__probe_reference(mixt__probe *p)
{
    for (int64_t i = 0; i < p->replay->trials; i++) {
        mixt__shadow_batch batch = mixt__replay_batch(p->replay, i);
        MIXT_TRY(mixt__shadow_run(p->shadow, &batch, &p->replay->losses[i]));
        MIXT_TRY(mixt__replay_take(p->replay, p->shadow, i));
        MIXT_TRY(read_results(p, i));
    }
    return MIXT_OK;
}

mixt_status mixt__probe_formats(mixt__probe *p)
{
    for (int f = 0; f < p->s->info.format_count; f++) {
        mixt__policy policy = mixt__policy_of(p->s->info.formats[f]);
        MIXT_TRY(mixt__replay_layers(p->replay, &policy, &p->s->layers, p->all_low + f * p->replay->trials,
                                     p->all_low_own + f * p->replay->trials * p->s->layers.count));
    }
    estimate(p);
    return MIXT_OK;
}
