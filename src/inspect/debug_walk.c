/* The next step from the side: each op by itself, and FP32 beside it, node by node.
 *
 * A value is looked at right behind the node that makes it, before its memory is taken by others: so both passes need
 * no more memory than they need to run. Each FP32 node runs when its partner has run.
 */
#include "inspect/debug.h"

#include "base/rng.h"
#include "data/data.h"
#include "graph/op.h"
#include "num/num.h"
#include "ops/ops.h"
#include "train/pass_weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** A walk over both passes. */
typedef struct walk {
    mixt__sights *sights;
    mixt__run low_run, full_run;
    int32_t *partner;    // by node of low: FP32's; NULL: there is no FP32
    int64_t next_full;   // the first FP32 node that has not run
    float **references;  // by value of low: FP32's numbers, where a cast will want them; NULL: none
    int32_t *casts_left; // by value of low: casts that will read it
    void *raw;           // room for the largest value, as it lies on the device
    float *mine, *other; // and as FP32
} walk;

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to look into a step");
}

/* ---- numbers ---- */

void mixt__debug_count(const float *numbers, int64_t count, double *totals, int64_t *counts)
{
    double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
    float beyond = mixt__dtype_beyond(MIXT_DTYPE_FP16), flushed = mixt__dtype_flushed(MIXT_DTYPE_FP16);
    memset(counts, 0, MIXT_STATS_COUNTS * sizeof *counts);
    counts[MIXT_STATS_COUNT] = count;
    for (int64_t i = 0; i < count; i++) {
        float x = numbers[i];
        counts[MIXT_STATS_EXPONENTS + (mixt__fp32_bits(x) >> 23 & 255)]++;
        if (!isfinite(x)) {
            counts[isnan(x) ? MIXT_STATS_NAN : MIXT_STATS_INF]++;
            continue;
        }
        counts[MIXT_STATS_ZEROS] += x == 0;
        counts[MIXT_STATS_BEYOND] += fabsf(x) >= beyond;
        counts[MIXT_STATS_FLUSHED] += x != 0 && fabsf(x) <= flushed;
        sum += (double)x;
        squares += (double)x * (double)x;
        least = (double)x < least ? (double)x : least;
        most = (double)x > most ? (double)x : most;
    }
    totals[MIXT_STATS_SUM] = sum;
    totals[MIXT_STATS_SQUARES] = squares;
    totals[MIXT_STATS_MIN] = least;
    totals[MIXT_STATS_MAX] = most;
    totals[MIXT_STATS_AMAX] = least > most ? 0 : fmax(fabs(least), fabs(most));
}

/** Numbers that are 0 here and not in FP32. What FP32 has left of a sum that cancels, and the format could hold, is
 * none of them: there 0 is as good. */
static int64_t count_flushed(const float *mine, const float *full, int64_t count, mixt_dtype dtype, double largest)
{
    double flushed = (double)mixt__dtype_flushed(dtype), noise = 1e-6 * largest;
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        double y = fabs((double)full[i]);
        found += mine[i] == 0 && y > 0 && (y <= flushed || y >= noise);
    }
    return found;
}

static void compare(mixt__sight *s, mixt_dtype dtype, const float *mine, const float *full, int64_t count)
{
    s->compared = true;
    for (int64_t i = 0; i < count; i++) {
        double x = (double)mine[i], y = (double)full[i];
        if (!isfinite(y))
            continue;
        s->reference = fmax(s->reference, fabs(y));
        if (!isfinite(x)) {
            s->broken++;
            continue;
        }
        s->noise += (x - y) * (x - y);
        s->signal += y * y;
    }
    s->flushed = count_flushed(mine, full, count, dtype, s->reference);
}

/** Elements from the first to the last of a tensor as it lies in memory. */
static int64_t span_of(const mixt__tensor *t)
{
    int64_t span = 1;
    for (int i = 0; i < t->shape.rank; i++) {
        if (!t->shape.dims[i])
            return 0;
        span += (t->shape.dims[i] - 1) * t->strides[i];
    }
    return span;
}

mixt_status mixt__debug_read(const mixt__backend *backend, const mixt__tensor *t, void *raw, float *numbers)
{
    int64_t count = mixt__shape_count(&t->shape), span = t->contiguous ? count : span_of(t);
    size_t size = mixt_dtype_size(t->dtype);
    if (!count)
        return MIXT_OK;
    MIXT_TRY(backend->download(raw, t->data, (size_t)span * size));
    if (t->contiguous) {
        mixt__widen(t->dtype)(numbers, raw, count);
        return MIXT_OK;
    }
    int64_t at[MIXT_MAX_RANK] = {0}, place = 0;
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = mixt__load(raw, t->dtype, place);
        for (int d = t->shape.rank - 1; d >= 0; d--) {
            place += t->strides[d];
            if (++at[d] < t->shape.dims[d])
                break;
            place -= t->strides[d] * t->shape.dims[d];
            at[d] = 0;
        }
    }
    return MIXT_OK;
}

/* ---- a node ---- */

/** Whether statistics can be taken of it. */
static bool is_numbers(const mixt__value *v)
{
    return mixt_dtype_is_float(v->dtype) && v->dtype != MIXT_DTYPE_FP64;
}

/** Keeps FP32's numbers of a value for the casts that will read it, or gives them to one that just did. */
static mixt_status keep_reference(walk *w, int32_t value, int64_t count)
{
    if (!w->casts_left[value] || w->references[value])
        return MIXT_OK;
    w->references[value] = mixt__alloc_uninit((size_t)count * sizeof(float) + 1);
    if (!w->references[value])
        return no_memory();
    memcpy(w->references[value], w->other, (size_t)count * sizeof(float));
    return MIXT_OK;
}

/** Holds output o of low's node i, which lies in w->mine, against FP32. */
static mixt_status look_beside(walk *w, int64_t i, int o)
{
    const mixt__executable *low = w->sights->low->executable, *full = w->sights->full->executable;
    const mixt__node *n = &low->graph->nodes[i];
    int32_t value = n->out[o];
    mixt__sight *s = &w->sights->by_value[value];
    int64_t count = mixt__shape_count(&low->graph->values[value].shape);
    const float *reference = NULL;
    if (w->partner[i] >= 0) {
        const mixt__tensor *t = &full->calls[w->partner[i]].out[o];
        MIXT_TRY(mixt__debug_read(full->backend, t, w->raw, w->other));
        reference = w->other;
        for (int64_t k = 0; k < count; k++)
            if (!isfinite(reference[k])) {
                w->sights->full_bad++;
                break;
            }
    } else if (mixt__debug_is_cast(low->graph, n) && w->references[n->in[0]]) {
        memcpy(w->other, w->references[n->in[0]], (size_t)count * sizeof(float));
        reference = w->other;
    }
    if (!reference)
        return MIXT_OK;
    compare(s, low->graph->values[value].dtype, w->mine, reference, count);
    return keep_reference(w, value, count);
}

/** A view has the statistics of what it looks at. */
static void follow_view(walk *w, const mixt__node *n, int64_t node)
{
    for (int o = 0; o < n->out_count; o++) {
        mixt__sight *s = &w->sights->by_value[n->out[o]];
        *s = w->sights->by_value[n->in[0]];
        s->node = (int32_t)node;
    }
}

static void forget_references(walk *w, const mixt__node *n)
{
    for (int k = 0; k < n->in_count; k++)
        if (w->references[n->in[k]] && --w->casts_left[n->in[k]] == 0) {
            mixt__free(w->references[n->in[k]]);
            w->references[n->in[k]] = NULL;
        }
}

/** The mean square of what a node sums up; 0: it does something else. */
static double size_of_term(const walk *w, const mixt__node *n)
{
    const mixt__sight *in = &w->sights->by_value[n->in[0]];
    if (n->op != &mixt__op_reduce || !in->counts[MIXT_STATS_COUNT])
        return 0;
    return in->numbers[MIXT_STATS_SQUARES] / (double)in->counts[MIXT_STATS_COUNT];
}

static mixt_status look_at(walk *w, int64_t i)
{
    const mixt__executable *low = w->sights->low->executable;
    const mixt__node *n = &low->graph->nodes[i];
    for (int o = 0; o < n->out_count; o++) {
        const mixt__value *v = &low->graph->values[n->out[o]];
        mixt__sight *s = &w->sights->by_value[n->out[o]];
        if (!is_numbers(v))
            continue;
        int64_t count = mixt__shape_count(&v->shape);
        bool bad_before = s->made && mixt__sight_bad(s); // a parameter's gradient, which several nodes add to
        *s = (mixt__sight){.made = true, .node = bad_before ? s->node : (int32_t)i};
        MIXT_TRY(mixt__debug_read(low->backend, &low->calls[i].out[o], w->raw, w->mine));
        mixt__debug_count(w->mine, count, s->numbers, s->counts);
        if (mixt__sight_bad(s) && w->sights->first_bad < 0)
            w->sights->first_bad = (int32_t)i;
        s->floor = size_of_term(w, n) * (double)count;
        if (w->partner)
            MIXT_TRY(look_beside(w, i, o));
    }
    if (w->partner && mixt__debug_is_cast(low->graph, n))
        forget_references(w, n);
    return MIXT_OK;
}

/** Statistics of what the nodes read from outside, while the batch is there. */
static mixt_status look_outside(walk *w)
{
    const mixt__executable *low = w->sights->low->executable;
    for (int64_t i = 0; i < low->graph->node_count; i++)
        for (int k = 0; k < low->graph->nodes[i].in_count; k++) {
            int32_t value = low->graph->nodes[i].in[k];
            const mixt__value *v = &low->graph->values[value];
            mixt__sight *s = &w->sights->by_value[value];
            if (s->made || s->counts[MIXT_STATS_COUNT] || !is_numbers(v) || !low->calls[i].in[k].data)
                continue;
            MIXT_TRY(mixt__debug_read(low->backend, &low->calls[i].in[k], w->raw, w->mine));
            mixt__debug_count(w->mine, mixt__shape_count(&v->shape), s->numbers, s->counts);
        }
    return MIXT_OK;
}

static mixt_status walk_nodes(walk *w)
{
    mixt__executable *low = w->sights->low->executable;
    for (int64_t i = 0; i < low->graph->node_count; i++) {
        const mixt__node *n = &low->graph->nodes[i];
        if (n->alias) {
            follow_view(w, n, i);
            continue;
        }
        MIXT_TRY(mixt__executable_run_node(low, &w->low_run, i));
        while (w->partner && w->next_full <= w->partner[i])
            MIXT_TRY(mixt__executable_run_node(w->sights->full->executable, &w->full_run, w->next_full++));
        MIXT_TRY(look_at(w, i));
    }
    return w->sights->first_bad >= 0 ? look_outside(w) : MIXT_OK;
}

/* ---- a pass ---- */

static void raise_to(const mixt__tensor *t, size_t *bytes, int64_t *count)
{
    int64_t elements = mixt__shape_count(&t->shape), span = t->contiguous ? elements : span_of(t);
    size_t size = (size_t)span * mixt_dtype_size(t->dtype);
    *bytes = size > *bytes ? size : *bytes;
    *count = elements > *count ? elements : *count;
}

/** Bytes and elements of the largest value of a graph. */
static void largest(const mixt__executable *e, size_t *bytes, int64_t *count)
{
    for (int64_t i = 0; e && i < e->graph->node_count; i++) {
        for (int k = 0; k < e->graph->nodes[i].in_count; k++)
            raise_to(&e->calls[i].in[k], bytes, count);
        for (int o = 0; o < e->graph->nodes[i].out_count; o++)
            raise_to(&e->calls[i].out[o], bytes, count);
    }
}

static void count_casts(walk *w, const mixt__graph *low)
{
    for (int64_t i = 0; i < low->node_count; i++)
        if (mixt__debug_is_cast(low, &low->nodes[i]))
            w->casts_left[low->nodes[i].in[0]]++;
}

static mixt_status take_room(walk *w)
{
    const mixt__executable *low = w->sights->low->executable, *full = NULL;
    size_t bytes = 1, values = (size_t)low->graph->value_count;
    int64_t count = 1;
    if (w->sights->full)
        full = w->sights->full->executable;
    largest(low, &bytes, &count);
    largest(full, &bytes, &count);
    w->raw = mixt__alloc_uninit(bytes);
    w->mine = mixt__alloc_uninit((size_t)count * sizeof *w->mine);
    w->other = mixt__alloc_uninit((size_t)count * sizeof *w->other);
    w->references = mixt__alloc(values * sizeof *w->references);
    w->casts_left = mixt__alloc(values * sizeof *w->casts_left);
    if (!w->raw || !w->mine || !w->other || !w->references || !w->casts_left)
        return no_memory();
    count_casts(w, low->graph);
    return full ? mixt__debug_match(low->graph, full->graph, &w->partner) : MIXT_OK;
}

static void free_room(walk *w)
{
    int64_t values = w->sights->low->executable->graph->value_count;
    for (int64_t v = 0; w->references && v < values; v++)
        mixt__free(w->references[v]);
    mixt__free(w->references);
    mixt__free(w->casts_left);
    mixt__free(w->raw);
    mixt__free(w->mine);
    mixt__free(w->other);
    mixt__free(w->partner);
}

static mixt_status walk_pass(mixt__sights *s, const mixt__shadow_batch *batch)
{
    walk w = {.sights = s};
    size_t values = (size_t)s->low->executable->graph->value_count;
    memset(s->by_value, 0, values * sizeof *s->by_value);
    s->first_bad = -1;
    s->full_bad = 0;
    mixt_status status = mixt__shadow_begin(s->low, batch, &w.low_run);
    if (status == MIXT_OK && s->full)
        status = mixt__shadow_begin(s->full, batch, &w.full_run);
    if (status == MIXT_OK)
        status = take_room(&w);
    if (status == MIXT_OK)
        status = walk_nodes(&w);
    free_room(&w);
    return status;
}

/* ---- the step's batches ---- */

/** The batch of a pass, in host memory, as the trainer will get it. */
typedef struct batch_room {
    void *input, *target;
    int64_t batch, split;
} batch_room;

/** A number of FP32 data that is not finite, or not any more in the format `fed`: that of its sample in the batch; -1:
 *  none. A NaN among targets is left out by losses of values. */
static int64_t bad_sample(const void *numbers, mixt_dtype dtype, mixt_dtype fed, const mixt__shape *shape,
                          bool allow_nan)
{
    float beyond = mixt__dtype_beyond(fed);
    int64_t count = mixt__shape_count(shape), each = shape->dims[0] ? count / shape->dims[0] : 1;
    for (int64_t i = 0; dtype == MIXT_DTYPE_FP32 && i < count; i++) {
        float x = ((const float *)numbers)[i];
        if ((!isfinite(x) && !(allow_nan && isnan(x))) || fabsf(x) >= beyond)
            return i / each;
    }
    return -1;
}

/** Which sample of the set stands at a place of a batch. */
static int64_t sample_at(const mixt_data *data, const batch_room *r, int64_t number, int64_t place)
{
    int64_t whole = r->batch * r->split, per_epoch = data->info.samples / whole, n = number / r->split;
    int64_t epoch = n / per_epoch, at = n % per_epoch * whole + number % r->split * r->batch + place;
    uint64_t key = mixt__rng_key(mixt__data_order_seed(data, epoch), MIXT_STREAM_ORDER, (uint64_t)epoch);
    return data->options.in_order ? at : mixt__order_at(key, data->info.samples, at);
}

static void find_bad_sample(mixt__sights *s, const mixt__trainer *t, const mixt_data *data, const batch_room *r,
                            int64_t number)
{
    s->place = bad_sample(r->input, t->spec.input_dtype, mixt__trainer_fed_dtype(t), &t->spec.input, false);
    s->rounded = s->place >= 0 && bad_sample(r->input, t->spec.input_dtype, MIXT_DTYPE_FP32, &t->spec.input, false) < 0;
    s->target = s->place < 0;
    if (s->target)
        s->place = bad_sample(r->target, t->spec.target_dtype, t->spec.target_dtype, &t->spec.target, true);
    s->sample = s->place < 0 ? -1 : sample_at(data, r, number, s->place);
}

static mixt_status walk_passes(mixt__sights *s, mixt__trainer *t, const mixt_data *data, const batch_room *r)
{
    mixt__control control;
    mixt__pass_weights weights = {0};
    MIXT_TRY(t->backend->download(&control, t->control, sizeof control));
    float seed = t->attempts + 1 == t->settings.inject_overflow ? INFINITY : control.seed;
    for (int64_t p = 0; p < t->settings.accumulate; p++) {
        int64_t number = t->next_batch + p;
        MIXT_TRY(mixt__data_batch_piece(data, r->batch * r->split, number / r->split, number % r->split * r->batch,
                                        r->batch, r->input, r->target));
        mixt__shadow_batch batch = {.input = r->input, .target = r->target, .scale = seed};
        batch.key = mixt__rng_key(t->settings.seed, MIXT_RNG_STREAM_PASS, (uint64_t)(t->runs + p));
        if (t->settings.accumulate > 1)
            batch.scale *= mixt__pass_weight(
                &weights, mixt__targets_count(r->target, t->spec.target_dtype, mixt__shape_count(&t->spec.target)));
        s->pass = p;
        s->seed = batch.scale;
        MIXT_TRY(walk_pass(s, &batch));
        if (s->first_bad >= 0) {
            find_bad_sample(s, t, data, r, number);
            return MIXT_OK;
        }
    }
    return MIXT_OK;
}

/* ---- making them ---- */

/** Compiles a shadow; a lack of memory is no failure. */
static mixt_status make_shadow(mixt__sights *s, const mixt__trainer *t, const mixt__shadow_options *options,
                               mixt__shadow **shadow)
{
    mixt_status status = mixt__shadow_new(t, options, shadow);
    if (status != MIXT_ERROR_MEMORY)
        return status;
    snprintf(s->why, sizeof s->why, "%s", mixt_error_text());
    return MIXT_OK;
}

mixt_status mixt__sights_take(mixt__trainer *t, const mixt_data *data, mixt__sights *s)
{
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    const mixt__shadow_options low = {.policy = &t->settings.policy, .no_fusion = true, .like_step = true};
    const mixt__shadow_options full = {.policy = &fp32, .no_fusion = true};
    *s = (mixt__sights){.first_bad = -1, .sample = -1, .place = -1};
    MIXT_TRY(make_shadow(s, t, &low, &s->low));
    if (!s->low)
        return MIXT_OK;
    MIXT_TRY(make_shadow(s, t, &full, &s->full));
    size_t input = (size_t)mixt__shape_count(&t->spec.input) * mixt_dtype_size(t->spec.input_dtype);
    size_t target = (size_t)mixt__shape_count(&t->spec.target) * mixt_dtype_size(t->spec.target_dtype);
    batch_room r = {.batch = t->settings.batch, .split = t->settings.split};
    r.input = mixt__alloc_uninit(input + 1);
    r.target = mixt__alloc_uninit(target + 1);
    s->by_value = mixt__alloc((size_t)s->low->executable->graph->value_count * sizeof *s->by_value);
    mixt_status status = r.input && r.target && s->by_value ? walk_passes(s, t, data, &r) : no_memory();
    mixt__free(r.input);
    mixt__free(r.target);
    return status;
}

void mixt__sights_free(mixt__sights *s)
{
    mixt__shadow_free(s->low);
    mixt__shadow_free(s->full);
    mixt__free(s->by_value);
    *s = (mixt__sights){0};
}
