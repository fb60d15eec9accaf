/* Odds that grow from look to look. */
#include "steer/looks.h"

#include "base/alloc.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    FIRST = 8,       // update of the first look: before 16 nothing can be measured about what it finds
    DENSE = 256,     // updates up to which looks follow at powers of two, ...
    APART = 256,     // ... and from there on so many updates apart
    CLOSE_MOST = 12, // looks in a row, one after each update
    AGAIN = 16,      // updates until a suspicion is measured again that could not be decided, ...
    CLEARED = 512,   // ... and one that meant nothing; twice as many each time
};
static const double by_chance = 0.05, by_loss = 0.8; // that a look at a layer finds half of its gradient lost

void mixt__looks_free(mixt__looks *l)
{
    mixt__free(l->layers);
    *l = (mixt__looks){0};
}

bool mixt__looks_due(const mixt__looks *l, int64_t step)
{
    return step >= (l->next ? l->next : FIRST);
}

static mixt__looks_layer *find(mixt__looks *l, const char *name)
{
    for (int64_t i = 0; i < l->count; i++)
        if (!strcmp(l->layers[i].name, name))
            return &l->layers[i];
    return NULL;
}

static mixt_status make_room(mixt__looks *l, const mixt__glance *look)
{
    if (l->count == look->count)
        return MIXT_OK;
    mixt__free(l->layers);
    l->count = 0;
    l->layers = mixt__alloc((size_t)look->count * sizeof *l->layers);
    if (!l->layers)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for what looks have found");
    l->count = look->count;
    for (int64_t i = 0; i < look->count; i++)
        memcpy(l->layers[i].name, look->layers[i].name, sizeof l->layers[i].name);
    return MIXT_OK;
}

/** The look that comes next in a run in which nothing is seen. */
static int64_t scheduled(int64_t step)
{
    int64_t next = FIRST;
    while (next <= step && next < DENSE)
        next *= 2;
    return next > step ? next : (step / APART + 1) * APART;
}

static void schedule(mixt__looks *l, int64_t step, bool seen)
{
    l->close = seen && l->close < CLOSE_MOST ? l->close + 1 : 0;
    l->next = l->close ? step + 1 : scheduled(step);
}

static double limit(const mixt__looks *l)
{
    return (double)l->count / MIXT_LOOKS_ERROR;
}

mixt_status mixt__looks_take(mixt__looks *l, int64_t step, const mixt__glance *look, bool *suspects)
{
    bool seen = false;
    *suspects = false;
    MIXT_TRY(make_room(l, look));
    l->taken++;
    double begins = 1 / ((double)l->taken * (double)(l->taken + 1)); // adds up to 1 over all looks
    for (int64_t i = 0; i < look->count; i++) {
        mixt__looks_layer *layer = find(l, look->layers[i].name);
        bool lost = mixt__glance_lost(&look->layers[i]);
        double ratio = lost ? by_loss / by_chance : (1 - by_loss) / (1 - by_chance);
        if (!layer)
            continue;
        layer->odds = fmin((layer->odds + begins) * ratio, 1e12);
        layer->kept = look->layers[i].kept;
        seen |= lost;
        *suspects |= lost && layer->odds >= limit(l);
    }
    schedule(l, step, seen && step >= l->free);
    *suspects = *suspects && step >= l->free;
    return MIXT_OK;
}

int mixt__looks_suspects(const mixt__looks *l, const char **names, int most)
{
    int found = 0;
    for (int64_t i = 0; i < l->count && found < most; i++)
        if (l->layers[i].odds >= limit(l))
            names[found++] = l->layers[i].name;
    return found;
}

/** A first wait, twice as long each time. */
static int64_t wait(int64_t first, int64_t times)
{
    return first << (times < 20 ? times : 20);
}

void mixt__looks_measured(mixt__looks *l, int64_t step, int64_t updates, bool cleared)
{
    l->free = step + (!updates ? AGAIN : wait(cleared ? CLEARED : AGAIN, l->asked));
    l->asked += updates > 0;
    l->close = 0;
    l->next = cleared ? scheduled(step) : l->free;
    for (int64_t i = 0; i < l->count && cleared; i++)
        l->layers[i].odds = 0;
}

void mixt__looks_restart(mixt__looks *l, int64_t step)
{
    for (int64_t i = 0; i < l->count; i++)
        l->layers[i].odds = 0;
    l->close = l->asked = 0;
    l->free = step;
    l->next = step + 2;
}

/* ---- saved with a run ---- */

json_t *mixt__looks_pack(const mixt__looks *l)
{
    json_t *layers = json_array();
    for (int64_t i = 0; i < l->count; i++)
        mixt__json_add(layers, json_pack("[s,f]", l->layers[i].name, l->layers[i].odds));
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "taken", (json_int_t)l->taken, "next", (json_int_t)l->next,
                     "close", (json_int_t)l->close, "asked", (json_int_t)l->asked, "free", (json_int_t)l->free,
                     "layers", layers);
}

void mixt__looks_unpack(mixt__looks *l, const json_t *object)
{
    const json_t *layers = json_object_get(object, "layers");
    const char *name;
    mixt__looks_free(l);
    l->taken = json_integer_value(json_object_get(object, "taken"));
    l->next = json_integer_value(json_object_get(object, "next"));
    l->close = json_integer_value(json_object_get(object, "close"));
    l->asked = json_integer_value(json_object_get(object, "asked"));
    l->free = json_integer_value(json_object_get(object, "free"));
    l->layers = json_array_size(layers) ? mixt__alloc(json_array_size(layers) * sizeof *l->layers) : NULL;
    for (size_t i = 0; l->layers && i < json_array_size(layers); i++) {
        double odds;
        if (json_unpack(json_array_get(layers, i), "[s,F]", &name, &odds))
            continue;
        snprintf(l->layers[l->count].name, sizeof l->layers[l->count].name, "%s", name);
        l->layers[l->count++].odds = odds;
    }
}
