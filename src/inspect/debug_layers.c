/* Errors layer by layer, and which layers are to blame for them.
 *
 * A layer is blamed for what begins in it: an op that makes numbers that are not finite while FP32's are, numbers that
 * become 0, an error that is much larger than that of what the layer reads. What it passes on is not its own.
 */
#include "inspect/debug.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double jump_limit = 4.0;      // times the error of what is read
static const double jump_least = 0.05;     // of a value's size: less is no jump worth a word
static const double flushed_least = 0.001; // share

static mixt_debug_layer *layer_of(mixt_debug *d, const char *name)
{
    for (int64_t i = 0; i < d->layer_count; i++)
        if (!strcmp(d->layers[i].name, name))
            return &d->layers[i];
    mixt_debug_layer *l = &d->layers[d->layer_count++];
    *l = (mixt_debug_layer){.name = name, .why = ""};
    mixt_debug_side *sides[2] = {&l->forward, &l->backward};
    for (int i = 0; i < 2; i++) {
        sides[i]->error = sides[i]->inherited = sides[i]->flushed = NAN;
        sides[i]->margin = INFINITY;
    }
    return l;
}

/** What a layer reads from others has the error of the value that its first op inherits. */
static void add(mixt_debug_side *s, const mixt_debug_value *v)
{
    s->nonfinite += v->nan + v->inf;
    if (v->margin < s->margin)
        s->margin = v->margin;
    if (v->compared) {
        s->inherited = isnan(s->inherited) ? v->inherited : s->inherited;
        s->error = fmax(s->error, v->error); // the larger of a number and NaN is the number
        s->flushed = fmax(s->flushed, v->flushed);
    }
    s->values++;
}

/** Whether a side's error is much larger than that of what it reads. */
static bool jumps(const mixt_debug_side *s)
{
    return isfinite(s->error) && s->error > jump_least && s->error > jump_limit * s->inherited;
}

/** A side's own part in the trouble, from 0. */
static double trouble(const mixt_debug_side *s, const char **why)
{
    double own = s->error > s->inherited ? sqrt(s->error * s->error - s->inherited * s->inherited) : 0;
    double lost = isnan(s->flushed) || s->flushed < flushed_least ? 0 : s->flushed;
    double error = jumps(s) ? own / (1 + own) : 0;
    *why = lost > error ? "underflow" : error > 0 ? "error" : "";
    return lost > error ? lost : error;
}

static void blame(const mixt_debug *d, mixt_debug_layer *l)
{
    const mixt_debug_origin *o = &d->origin;
    const char *forward, *backward;
    double f = trouble(&l->forward, &forward), b = trouble(&l->backward, &backward);
    l->blame = f >= b ? f : b;
    l->why = f >= b ? forward : backward;
    l->jumps = jumps(&l->forward) || jumps(&l->backward);
    bool own = o->op && (o->cause == MIXT_DEBUG_CAUSE_OP || o->rounded) && !strcmp(o->layer, l->name);
    if (own && !d->info.full_nonfinite) {
        l->blame += 2;
        l->why = "overflow";
    }
}

static void sort_blamed(mixt_debug *d)
{
    for (int64_t i = 0; i < d->layer_count; i++) { // insertion: layers are few
        int64_t at = i;
        for (; at > 0 && d->layers[d->blamed[at - 1]].blame < d->layers[i].blame; at--)
            d->blamed[at] = d->blamed[at - 1];
        d->blamed[at] = i;
    }
}

mixt_status mixt__debug_group(mixt_debug *d)
{
    d->layers = mixt__alloc((size_t)(d->info.values + 1) * sizeof *d->layers);
    d->blamed = mixt__alloc((size_t)(d->info.values + 1) * sizeof *d->blamed);
    if (!d->layers || !d->blamed)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the layers of a step");
    for (int64_t i = 0; i < d->info.values; i++) {
        const mixt_debug_value *v = &d->values[i];
        mixt_debug_layer *l = layer_of(d, v->layer);
        add(v->backward ? &l->backward : &l->forward, v);
    }
    for (int64_t i = 0; i < d->layer_count; i++)
        blame(d, &d->layers[i]);
    sort_blamed(d);
    return MIXT_OK;
}
