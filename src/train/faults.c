/* Letting faults happen. Reading their list is faults_parse.c. */
#include "train/faults.h"

#include "base/memory.h"
#include "base/rng.h"
#include "base/words.h"
#include "data/data.h"
#include "graph/op.h"
#include "train/trainer_inside.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STREAM_FAULTS = 0x6661756c, LOOKED_AT = 1024 }; // random numbers: which weight, which activation; of how many
static const float exploded = 100;                     // times the learning rate that was meant
static const double squeezed = 0.99; // share of the memory that somebody else takes: what is left, programs have

/* ---- a list that fits the model ---- */

static mixt_status check_layer(const mixt__trainer *t, const mixt__fault *f)
{
    char name[MIXT_FAULT_LAYER], best[MIXT_FAULT_LAYER], hint[MIXT_FAULT_LAYER + 24] = "";
    mixt__nearest nearest = {.wanted = f->layer};
    for (int64_t i = 0; i < t->params->count; i++) {
        if (!*f->layer || mixt__injection_covers(f->layer, t->params->table[i].name))
            return MIXT_OK;
        snprintf(name, sizeof name, "%s", t->params->table[i].name);
        char *dot = strrchr(name, '.'); // the layer is what stands before the parameter's own name
        if (dot)
            *dot = '\0';
        mixt__nearest_offer(&nearest, name);
        if (nearest.best == name) // a buffer that the next name overwrites
            nearest.best = memcpy(best, name, sizeof best);
    }
    if (mixt__nearest_get(&nearest))
        snprintf(hint, sizeof hint, " (did you mean %s?)", mixt__nearest_get(&nearest));
    return mixt__fail(MIXT_ERROR_CONFIG, "faults: %s@%lld: the model has no layer '%s'%s", mixt__fault_name(f->kind),
                      (long long)f->step, f->layer, hint);
}

/** The layer's last forward node that leaves numbers behind; -1: none. */
static int64_t find_activation(const mixt__graph *g, const char *layer)
{
    for (int64_t i = g->node_count - 1; i >= 0; i--) {
        const mixt__node *n = &g->nodes[i];
        int32_t out = n->out_count ? n->out[0] : 0;
        const mixt__value *v = &g->values[out];
        if (!n->backward && !n->alias && mixt__injection_covers(layer, n->layer) && v->role == MIXT_ROLE_ACTIVATION &&
            mixt_dtype_is_float(v->dtype) && out != g->loss && out != g->metrics)
            return i;
    }
    return -1;
}

static mixt_status check_fits(const mixt__trainer *t, const mixt__fault *f)
{
    MIXT_TRY(check_layer(t, f));
    if (f->kind == MIXT_FAULT_NAN_DATA && t->spec.input_dtype != MIXT_DTYPE_FP32)
        return mixt__fail(MIXT_ERROR_CONFIG, "faults: nan_data@%lld: the inputs are %s, which cannot be NaN",
                          (long long)f->step, mixt_dtype_name(t->spec.input_dtype));
    if (f->kind == MIXT_FAULT_FLIP_ACTIVATION && find_activation(t->train->graph, f->layer) < 0)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "faults: flip_activation@%lld: layer '%s' is computed together with another one and leaves "
                          "no activation of its own",
                          (long long)f->step, f->layer);
    return MIXT_OK;
}

/* ---- what is injected in the step ---- */

/** The first layer that multiplies matrices. */
static const char *any_layer(const mixt__graph *g)
{
    for (int64_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].op->matrix_work)
            return g->nodes[i].layer;
    return "";
}

/** What is injected in update number `step`. */
static mixt__injections injections_at(const mixt__faults *faults, int64_t step)
{
    static const int kinds[MIXT_FAULT_COUNT] = {
        [MIXT_FAULT_DEAD_LAYER] = MIXT_INJECT_DEAD + 1,
        [MIXT_FAULT_OVERFLOW] = MIXT_INJECT_OVERFLOW + 1,
        [MIXT_FAULT_UNDERFLOW] = MIXT_INJECT_UNDERFLOW + 1,
        [MIXT_FAULT_SCALE_COLLAPSE] = MIXT_INJECT_GRADIENT + 1,
    };
    mixt__injections injections = {.count = 0};
    for (int i = 0; i < faults->count; i++) {
        const mixt__fault *f = &faults->items[i];
        if (kinds[f->kind] && step >= f->step)
            injections.items[injections.count++] =
                (mixt__injection){.kind = (mixt__injection_kind)(kinds[f->kind] - 1), .layer = f->layer};
    }
    return injections;
}

/** Compiles with everything injected, to be told now what cannot be. */
static mixt_status try_injections(mixt__trainer *t, mixt__faults *faults)
{
    mixt__executable *step = NULL;
    faults->injections = injections_at(faults, INT64_MAX);
    t->faults = faults;
    mixt_status status = faults->injections.count ? mixt__trainer_compile_step(t, NULL, &step) : MIXT_OK;
    mixt__executable_free(step);
    t->faults = NULL;
    faults->injections.count = 0;
    return status;
}

static mixt_status check(mixt__trainer *t, mixt__faults *faults)
{
    for (int i = 0; i < faults->count; i++) {
        mixt__fault *f = &faults->items[i];
        if (f->kind == MIXT_FAULT_SCALE_COLLAPSE && !*f->layer)
            snprintf(f->layer, sizeof f->layer, "%s", any_layer(t->train->graph));
        MIXT_TRY(check_fits(t, f));
    }
    return try_injections(t, faults);
}

mixt_status mixt__faults_open(mixt__trainer *t)
{
    if (t->faults || !t->settings.faults || !*t->settings.faults)
        return MIXT_OK;
    mixt__faults *faults = mixt__alloc(sizeof *faults);
    if (!faults)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for faults");
    mixt_status status = mixt__faults_parse(t->settings.faults, faults);
    if (status == MIXT_OK)
        status = check(t, faults);
    if (status == MIXT_OK)
        t->faults = faults;
    else
        mixt__free(faults);
    return status;
}

void mixt__faults_close(mixt__trainer *t)
{
    if (t->faults)
        mixt__memory_withhold(0);
    mixt__free(t->faults);
    t->faults = NULL;
}

/** Gives the data its faults: the batches that an update reads where none was left out. */
static void spoil(mixt__trainer *t, const mixt_data *data)
{
    mixt__faults *faults = t->faults;
    mixt__data_fault injected[MIXT_DATA_FAULTS_MAX];
    int count = 0;
    int64_t parts = t->settings.split * t->settings.ranks; // of a batch of the data
    int64_t batches = t->settings.accumulate / parts, size = t->settings.batch * parts;
    for (int i = 0; i < faults->count && count < MIXT_DATA_FAULTS_MAX; i++) {
        const mixt__fault *f = &faults->items[i];
        if (f->kind != MIXT_FAULT_NAN_DATA && f->kind != MIXT_FAULT_LABEL)
            continue;
        mixt__rng rng = mixt__rng_start(mixt__rng_key(t->settings.seed, STREAM_FAULTS, (uint64_t)f->step));
        int64_t place = (int64_t)mixt__rng_below(&rng, (uint64_t)size);
        injected[count++] = (mixt__data_fault){size, (f->step - 1) * batches, place, f->kind == MIXT_FAULT_LABEL};
    }
    mixt__data_inject(data, injected, count);
    faults->spoilt = data;
}

const mixt__injections *mixt__faults_injections(const mixt__trainer *t)
{
    return t->faults ? &t->faults->injections : NULL;
}

mixt_status mixt__faults_prepare(mixt__trainer *t, const mixt_data *data)
{
    mixt__faults *faults = t->faults;
    if (!faults)
        return MIXT_OK;
    mixt__injections before = faults->injections;
    if (data && faults->spoilt != data)
        spoil(t, data);
    faults->injections = injections_at(faults, t->attempts + 1);
    if (faults->injections.count == before.count)
        return MIXT_OK; // they only ever come with the number of the update: as many are the same
    mixt_status status = mixt__trainer_recompile(t);
    if (status != MIXT_OK)
        faults->injections = before;
    return status;
}

/* ---- what happens to the machine ---- */

/** Whether this one is to happen now; counts it. */
static bool strikes(const mixt__trainer *t, mixt__fault *f, mixt__fault_kind kind)
{
    bool now = f->kind == kind && f->step == t->attempts && (!f->times || f->always);
    now = now || (f->kind == kind && f->stuck && f->times);
    f->times += now;
    return now;
}

/** The element to flip: of many from a random place on the largest whose highest exponent bit is clear, so that it
 *  becomes huge or no number at all. -1: none */
static int64_t choose_element(const mixt__trainer *t, const mixt__fault *f, const void *values, mixt_dtype dtype,
                              int64_t count)
{
    mixt__rng rng = mixt__rng_start(
        mixt__rng_key(t->settings.seed, STREAM_FAULTS + 1, (uint64_t)f->step * 1000 + (uint64_t)f->times));
    int64_t start = (int64_t)mixt__rng_below(&rng, (uint64_t)count), found = -1;
    bool wide = mixt_dtype_size(dtype) == 4;
    uint32_t largest = 0;
    if (f->same || f->stuck) {
        rng = mixt__rng_start(mixt__rng_key(t->settings.seed, STREAM_FAULTS + 2, (uint64_t)count));
        return (int64_t)mixt__rng_below(&rng, (uint64_t)count);
    }
    for (int64_t k = 0; k < count && k < LOOKED_AT; k++) {
        int64_t i = (start + k) % count;
        uint32_t bits = wide ? ((const uint32_t *)values)[i] : (uint32_t)((const uint16_t *)values)[i] << 16;
        if (!(bits >> 31) && !(bits >> 30 & 1) && bits > largest) {
            largest = bits;
            found = i;
        }
    }
    return found;
}

static void flip(const mixt__fault *f, void *values, mixt_dtype dtype, int64_t i)
{
    if (mixt_dtype_size(dtype) == 4 && f->stuck)
        ((uint32_t *)values)[i] |= (uint32_t)1 << 30;
    else if (mixt_dtype_size(dtype) == 4)
        ((uint32_t *)values)[i] ^= (uint32_t)1 << 30;
    else
        ((uint16_t *)values)[i] ^= (uint16_t)(1 << 14);
}

/** In device memory: read, changed, written. */
static mixt_status flip_one(mixt__trainer *t, const mixt__fault *f, void *address, mixt_dtype dtype, int64_t count)
{
    size_t bytes = (size_t)count * mixt_dtype_size(dtype);
    void *values = mixt__alloc_uninit(bytes);
    mixt_status status =
        values ? mixt__device_synchronize(t->device) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a fault");
    if (status == MIXT_OK)
        status = mixt__device_download(t->device, values, address, bytes);
    int64_t element = status == MIXT_OK ? choose_element(t, f, values, dtype, count) : -1;
    if (element >= 0) {
        flip(f, values, dtype, element);
        status = mixt__device_upload(t->device, address, values, bytes);
    }
    mixt__free(values);
    return status;
}

/** The layer's largest parameter; NULL: it has none that is trained. */
static const mixt__segment *find_weight(const mixt__params *p, const char *layer)
{
    const mixt__segment *found = NULL;
    for (int64_t s = 0; s < p->segment_count; s++)
        if (mixt__injection_covers(layer, p->table[p->segments[s].param].name) &&
            (!found || p->segments[s].count > found->count))
            found = &p->segments[s];
    return found;
}

/** What somebody else could take from. */
static size_t memory_of(mixt__device *device)
{
    return device->backend->host_memory ? mixt__memory_total() : mixt__device_available(device);
}

/** The learning rate of the update that begins. */
static void set_rate(mixt__trainer *t)
{
    float more = 1;
    for (int i = 0; i < t->faults->count; i++)
        if (t->faults->items[i].kind == MIXT_FAULT_LR && t->attempts >= t->faults->items[i].step)
            more *= exploded;
    mixt__trainer_set_rate(t, more);
}

/** A loss that is scaled by infinity has gradients that overflow. */
static mixt_status scale_by_infinity(mixt__trainer *t)
{
    mixt__control control;
    MIXT_TRY(mixt__trainer_fetch_control(t, &control));
    control.seed = INFINITY;
    return mixt__trainer_put_control(t, &control);
}

mixt_status mixt__faults_begin(mixt__trainer *t)
{
    if (t->attempts == t->settings.inject_overflow)
        MIXT_TRY(scale_by_infinity(t));
    if (!t->faults)
        return MIXT_OK;
    set_rate(t);
    for (int i = 0; i < t->faults->count; i++) {
        mixt__fault *f = &t->faults->items[i];
        if (strikes(t, f, MIXT_FAULT_MEMORY))
            mixt__memory_withhold((size_t)(squeezed * (double)memory_of(t->device)));
        bool written = strikes(t, f, MIXT_FAULT_FLIP_WEIGHT),
             flipped = written || strikes(t, f, MIXT_FAULT_FLIP_MEMORY);
        const mixt__segment *weight = flipped ? find_weight(t->params, f->layer) : NULL;
        if (weight)
            MIXT_TRY(flip_one(t, f, mixt__params_weights(t->params) + weight->offset, MIXT_DTYPE_FP32, weight->count));
        if (weight && written)
            mixt__integrity_renew_later(t); // as if the update had computed it so
    }
    return MIXT_OK;
}

mixt_status mixt__faults_run(mixt__trainer *t, mixt__executable *step, const mixt__run *run)
{
    const mixt__graph *g = step->graph;
    for (int i = 0; t->faults && i < t->faults->count; i++) {
        mixt__fault *f = &t->faults->items[i];
        int64_t node = f->kind == MIXT_FAULT_FLIP_ACTIVATION ? find_activation(g, f->layer) : -1;
        if (node < 0 || run->accumulate || !strikes(t, f, MIXT_FAULT_FLIP_ACTIVATION))
            continue;
        const mixt__value *v = &g->values[g->nodes[node].out[0]];
        for (int64_t n = 0; n <= node; n++)
            MIXT_TRY(mixt__executable_run_node(step, run, n));
        MIXT_TRY(flip_one(t, f, mixt__executable_address(step, g->nodes[node].out[0]), v->dtype,
                          mixt__value_contiguous(v) ? mixt__shape_count(&v->shape) : 1));
        for (int64_t n = node + 1; n < g->node_count; n++)
            MIXT_TRY(mixt__executable_run_node(step, run, n));
        return MIXT_OK;
    }
    return mixt__executable_run(step, run);
}

/* ---- kept with a checkpoint ---- */

void mixt__faults_pack(const mixt__trainer *t, json_t *figures)
{
    if (!t->faults || !figures)
        return;
    json_t *times = json_array();
    for (int i = 0; i < t->faults->count; i++)
        mixt__json_add(times, json_integer(t->faults->items[i].times));
    mixt__json_set(figures, "faults", times);
}

void mixt__faults_unpack(mixt__trainer *t, const json_t *figures)
{
    const json_t *times = json_object_get(figures, "faults");
    for (int i = 0; t->faults && i < t->faults->count; i++)
        t->faults->items[i].times = json_integer_value(json_array_get(times, (size_t)i));
}
