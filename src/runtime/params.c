/* Laying out, allocating, initialising and reading the flat parameter arenas. Segments start at multiples of 16
 * elements, working copies at multiples of 64 bytes: vendors' products count on those, and others are slow. The padding
 * between them holds zeros.
 */
#include "runtime/params.h"

#include "base/rng.h"
#include "base/threads.h"
#include "num/num.h"
#include "runtime/codes.h"

#include <string.h>

enum { SEGMENT_ALIGNMENT = 16, LINE = 64, RNG_STREAM_INIT = 1, DRAW_GRAIN = 4096 };

static int64_t padded(int64_t count)
{
    return (count + SEGMENT_ALIGNMENT - 1) / SEGMENT_ALIGNMENT * SEGMENT_ALIGNMENT;
}

int64_t mixt__params_copy_room(int64_t count, mixt_dtype format)
{
    int64_t line = LINE / (int64_t)mixt_dtype_size(format);
    count = mixt__format_of(format)->together ? (int64_t)mixt__format_bytes(format, count) : count;
    return (count + line - 1) / line * line;
}

/** Copies of all parameters, of frozen ones where they are kept in FP32; the optimizer finds those it writes in its
 * segments. */
static void lay_out_copies(mixt__params *p, const mixt__graph *graph)
{
    mixt__param_role *of = p->roles + MIXT_PARAM_COPY; // by format
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
        of[d].elements = 0;
    for (int64_t i = 0; i < p->count; i++) {
        mixt__param_copy *copy = &p->copies[i];
        *copy = (mixt__param_copy){.dtype = MIXT_DTYPE_NONE};
        for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
            if (graph->params[i].low[d]) {
                *copy = (mixt__param_copy){.dtype = (mixt_dtype)d, .offset = of[d].elements};
                if (p->frozen.home[i] == (mixt_dtype)d)
                    continue;                                  // it is kept in that format: there is nothing to copy
                if (p->segment_of[i] < 0 || !p->shard.masters) // else they are gathered in that format
                    of[d].elements += mixt__params_copy_room(p->table[i].count, (mixt_dtype)d);
            }
        if (p->segment_of[i] < 0)
            continue;
        p->segments[p->segment_of[i]].low = copy->dtype;
        p->segments[p->segment_of[i]].low_offset = copy->offset;
    }
    mixt__params_lay_out_roles(p);
}

/** Places the running statistics in the arena of state. */
static void lay_out_state(mixt__params *p)
{
    for (int64_t i = 0; i < p->count; i++)
        if (!p->table[i].trainable) {
            p->state_offset[i] = p->state_total;
            p->state_total += padded(p->table[i].count);
        }
}

static mixt_status lay_out(mixt__params *p, const mixt__graph *graph)
{
    for (int64_t i = 0; i < p->count; i++) {
        p->segment_of[i] = -1;
        p->state_offset[i] = p->offset[i] = -1;
    }
    lay_out_state(p);
    mixt__frozen_lay_out(p, graph);
    for (int64_t i = 0; i < p->count; i++) {
        const mixt__param *param = &p->table[i];
        if (!param->trainable || param->frozen)
            continue;
        p->segment_of[i] = (int32_t)p->segment_count;
        p->offset[i] = p->total;
        p->segments[p->segment_count++] =
            (mixt__segment){.offset = p->total, .count = param->count, .lr_scale = 1.0f, .param = (int32_t)i};
        p->segments[p->segment_count - 1].first = p->total;
        p->total += padded(param->count);
    }
    MIXT_TRY(mixt__codes_lay_out(p, graph));
    lay_out_copies(p, graph);
    return MIXT_OK;
}

/** The model's own parameters: a teacher's stand behind them. */
static int64_t own_count(const mixt__graph *graph)
{
    int64_t count = graph->param_count;
    while (count && graph->params[count - 1].teacher)
        count--;
    return count;
}

mixt_status mixt__params_new(const mixt__graph *graph, mixt__device *device, bool training, int moments,
                             mixt_dtype moment_format, mixt__params **params)
{
    mixt__params *p = mixt__alloc(sizeof *p);
    *params = p;
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the parameter table");
    size_t n = (size_t)graph->param_count + 1;
    p->device = device;
    p->count = own_count(graph);
    p->fixed_count = graph->param_count - p->count;
    p->moments = training ? moments : -1; // -1: no gradients either
    p->moment_format = moment_format;
    p->table = mixt__alloc(n * sizeof *p->table);
    p->segments = mixt__alloc(n * sizeof *p->segments);
    p->segment_of = mixt__alloc(n * sizeof *p->segment_of);
    p->offset = mixt__alloc(n * sizeof *p->offset);
    p->state_offset = mixt__alloc(n * sizeof *p->state_offset);
    p->copies = mixt__alloc(n * sizeof *p->copies);
    p->frozen.home = mixt__alloc(n * sizeof *p->frozen.home);
    p->frozen.offset = mixt__alloc(n * MIXT_DTYPE_COUNT * sizeof *p->frozen.offset);
    p->frozen.scale = mixt__alloc(n * sizeof *p->frozen.scale);
    bool complete = p->table && p->segments && p->segment_of && p->offset && p->state_offset && p->copies &&
                    p->frozen.home && p->frozen.offset && p->frozen.scale;
    for (int64_t i = 0; complete && i < graph->param_count; i++) {
        p->table[i] = graph->params[i];
        p->table[i].name = mixt__arena_strdup(&p->names, graph->params[i].name);
        complete = p->table[i].name != NULL;
    }
    if (!complete || mixt__params_lay_out_fixed(p, graph) != MIXT_OK) {
        mixt__params_free(p);
        *params = NULL;
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the parameter table");
    }
    mixt_status status = lay_out(p, graph);
    if (status != MIXT_OK) {
        mixt__params_free(p);
        *params = NULL;
    }
    return status;
}

void mixt__params_place_copies(mixt__params *p, const mixt__graph *graph)
{
    lay_out_copies(p, graph);
}

mixt_status mixt__params_share_out(mixt__params *p, const mixt__params_shard *shard)
{
    size_t slices = (size_t)shard->slice_count * sizeof *shard->slices;
    size_t places = (size_t)p->segment_count * sizeof *shard->window_at;
    mixt__params_shard *own = &p->shard;
    mixt__params_drop_roles(p, MIXT_LIFE_GRADIENTS);
    mixt__free(own->slices);
    mixt__free(own->window_at);
    *own = *shard;
    own->slices = mixt__alloc(slices + 1);
    own->window_at = shard->gradients ? mixt__alloc(places + 1) : NULL;
    if (!own->slices || (shard->gradients && !own->window_at))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to shard the state between ranks");
    memcpy(own->slices, shard->slices, slices);
    if (own->window_at)
        memcpy(own->window_at, shard->window_at, places);
    MIXT_TRY(mixt__codes_share_out(p));
    mixt__params_lay_out_roles(p);
    return MIXT_OK;
}

mixt_status mixt__params_allocate(mixt__params *p)
{
    MIXT_TRY(mixt__params_take_roles(p, MIXT_LIFE_WEIGHTS));
    if (p->fixed_bytes) {
        p->fixed_block = mixt__device_alloc(p->device, p->fixed_bytes);
        if (!p->fixed_block)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %zu bytes of a teacher's parameters on %s",
                              p->fixed_bytes, p->device->backend->name);
        MIXT_TRY(mixt__device_zero(p->device, p->fixed_block, p->fixed_bytes));
    }
    p->taken = true;
    return mixt__params_take_roles(p, MIXT_LIFE_COPIES);
}

mixt_status mixt__params_allocate_gradients(mixt__params *p)
{
    return mixt__params_take_roles(p, MIXT_LIFE_GRADIENTS);
}

mixt_status mixt__params_allocate_training(mixt__params *p)
{
    MIXT_TRY(mixt__params_take_roles(p, MIXT_LIFE_GRADIENTS));
    MIXT_TRY(mixt__params_take_roles(p, MIXT_LIFE_TRAINING));
    return mixt__params_keep_statistics(p);
}

mixt_status mixt__params_share(mixt__params *p, const mixt__params *owner)
{
    mixt__param_role *weight = &p->roles[MIXT_PARAM_WEIGHT];
    if (p->total != owner->total || p->state_total != owner->state_total ||
        (p->fixed_count && p->fixed_bytes != owner->fixed_bytes))
        return mixt__fail(MIXT_ERROR_STATE, "parameters of another layout: %lld and %lld numbers, not %lld and %lld",
                          (long long)p->total, (long long)p->state_total, (long long)owner->total,
                          (long long)owner->state_total);
    p->shared = p->taken = weight->borrowed = true;
    weight->data = owner->roles[MIXT_PARAM_WEIGHT].data;
    p->fixed_block = owner->fixed_block;
    MIXT_TRY(mixt__params_take_roles(p, MIXT_LIFE_WEIGHTS));
    MIXT_TRY(mixt__params_take_roles(p, MIXT_LIFE_GRADIENTS));
    MIXT_TRY(mixt__params_take_roles(p, MIXT_LIFE_COPIES));
    MIXT_TRY(mixt__params_follow(p, owner));
    return mixt__params_refresh_copies(p);
}

mixt_status mixt__params_follow(mixt__params *p, const mixt__params *owner)
{
    const mixt__param_role *state = &p->roles[MIXT_PARAM_STATE];
    MIXT_TRY(mixt__device_copy(p->device, state->data, owner->roles[MIXT_PARAM_STATE].data, state->bytes));
    return mixt__frozen_follow(p, owner);
}

void mixt__params_release_training(mixt__params *p)
{
    mixt__params_drop_roles(p, MIXT_LIFE_TRAINING);
    mixt__params_drop_roles(p, MIXT_LIFE_GRADIENTS);
}

void mixt__params_release(mixt__params *p)
{
    if (p->shared)
        p->fixed_block = NULL;
    mixt__params_release_training(p);
    mixt__params_drop_roles(p, MIXT_LIFE_WEIGHTS);
    mixt__params_drop_roles(p, MIXT_LIFE_COPIES);
    mixt__device_free(p->device, p->fixed_block);
    p->fixed_block = NULL;
    p->taken = false;
}

void mixt__params_free(mixt__params *p)
{
    if (!p)
        return;
    mixt__params_release(p);
    mixt__arena_free(&p->names);
    mixt__free(p->table);
    mixt__free(p->segments);
    mixt__free(p->segment_of);
    mixt__free(p->offset);
    mixt__free(p->state_offset);
    mixt__free(p->copies);
    mixt__free(p->frozen.home);
    mixt__free(p->frozen.offset);
    mixt__free(p->frozen.scale);
    mixt__free(p->fixed);
    mixt__free(p->shard.slices);
    mixt__free(p->shard.window_at);
    mixt__codes_free(p);
    mixt__free(p);
}

static uint64_t name_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
    return hash;
}

typedef struct drawing {
    const mixt__param *param;
    uint64_t key;
    float *values;
} drawing;

static void draw_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const drawing *d = argument;
    const mixt__param *param = d->param;
    uint64_t words = param->init == MIXT_INIT_NORMAL ? 2 : 1;
    mixt__rng rng = mixt__rng_start_at(d->key, words * (uint64_t)begin);
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        switch (param->init) {
        case MIXT_INIT_ZERO:
            d->values[i] = 0.0f;
            break;
        case MIXT_INIT_ONE:
            d->values[i] = 1.0f;
            break;
        case MIXT_INIT_NORMAL:
            d->values[i] = param->init_scale * mixt__rng_normal(&rng);
            break;
        case MIXT_INIT_UNIFORM:
            d->values[i] = param->init_scale * (2.0f * mixt__rng_uniform(&rng) - 1.0f);
            break;
        }
    }
}

/** The same values on any number of threads. */
static void draw(const mixt__param *param, uint64_t seed, float *values)
{
    drawing d = {param, mixt__rng_key(seed, RNG_STREAM_INIT, name_hash(param->name)), values};
    mixt__parallel(param->count, DRAW_GRAIN, draw_range, &d);
}

static int64_t largest(const mixt__params *p)
{
    int64_t most = 1;
    for (int64_t i = 0; i < p->count; i++)
        if (p->table[i].count > most)
            most = p->table[i].count;
    return most;
}

mixt_status mixt__params_initialise(mixt__params *p, uint64_t seed)
{
    float *values = mixt__alloc_uninit((size_t)largest(p) * sizeof *values);
    if (!values)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to initialise the parameters");
    mixt_status status = MIXT_OK;
    for (int32_t i = 0; status == MIXT_OK && i < p->count; i++) {
        draw(&p->table[i], seed, values);
        status = mixt__params_set(p, i, values);
    }
    mixt__free(values);
    return status == MIXT_OK ? mixt__params_refresh_copies(p) : status;
}

mixt_status mixt__params_refresh_copies(mixt__params *p)
{
    float *values = mixt__alloc_uninit((size_t)largest(p) * sizeof *values);
    void *low = mixt__alloc_uninit((size_t)largest(p) * sizeof *values);
    mixt_status status = values && low ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to round the parameters");
    p->written++;
    for (int32_t i = 0; status == MIXT_OK && i < p->count; i++) {
        const mixt__param_copy *copy = &p->copies[i];
        if (copy->dtype == MIXT_DTYPE_NONE || copy->dtype == p->frozen.home[i] ||
            (p->shard.masters && p->segment_of[i] >= 0))
            continue;
        const mixt__param_role *role = &p->roles[MIXT_PARAM_COPY + (int)copy->dtype];
        status = mixt__params_get(p, i, values);
        mixt__narrow(copy->dtype)(low, values, p->table[i].count);
        if (status == MIXT_OK)
            status = mixt__device_upload(p->device, mixt__role_at(role, copy->offset), low,
                                         mixt__role_size(role, p->table[i].count));
    }
    mixt__free(values);
    mixt__free(low);
    return status;
}

int32_t mixt__params_find(const mixt__params *p, const char *name)
{
    for (int32_t i = 0; i < p->count; i++)
        if (!strcmp(p->table[i].name, name))
            return i;
    return -1;
}

static void *address(const mixt__params *p, int32_t index)
{
    if (mixt__params_is_frozen(p, index))
        return mixt__frozen_place(p, index, NULL);
    if (p->segment_of[index] < 0)
        return mixt__role_at(&p->roles[MIXT_PARAM_STATE], p->state_offset[index]);
    return p->whole ? p->whole + p->offset[index] : mixt__role_at(&p->roles[MIXT_PARAM_WEIGHT], p->offset[index]);
}

/** Whether only this rank's slices of a parameter are here. */
static bool is_cut(const mixt__params *p, int32_t index)
{
    return p->shard.masters && !p->whole && p->segment_of[index] >= 0;
}

mixt_status mixt__params_set_slices(const mixt__params *p, const mixt__param_role *role, int64_t offset, int64_t count,
                                    const void *values)
{
    for (int64_t i = 0; i < p->shard.slice_count; i++) {
        const mixt__param_slice *slice = &role->slices[i];
        int64_t begin = slice->begin > offset ? slice->begin : offset, end = slice->begin + slice->count;
        end = end < offset + count ? end : offset + count;
        if (begin < end)
            MIXT_TRY(mixt__device_upload(p->device, mixt__role_at(role, slice->at + (begin - slice->begin)),
                                         (const char *)values + mixt__role_size(role, begin - offset),
                                         mixt__role_size(role, end - begin)));
    }
    return MIXT_OK;
}

static mixt_status place_of_weight(const mixt__params *p, int32_t index, void **place, mixt_dtype *format)
{
    *format = MIXT_DTYPE_FP32;
    if (is_cut(p, index))
        return mixt__fail(MIXT_ERROR_STATE, "'%s' is sharded between ranks (dist.zero=3)", p->table[index].name);
    if (!mixt__params_is_frozen(p, index)) {
        *place = address(p, index);
        return MIXT_OK;
    }
    *place = mixt__frozen_place(p, index, format);
    return mixt__format_of(*format)->scale == MIXT_SCALE_NONE
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_STATE,
                            "'%s' is frozen and kept in %s, whose numbers mean nothing without scales",
                            p->table[index].name, mixt_dtype_name(*format));
}

static mixt_status place_of_gradient(const mixt__params *p, int32_t index, void **place)
{
    const mixt__param_role *grad = &p->roles[MIXT_PARAM_GRADIENT];
    if (!grad->data || p->segment_of[index] < 0 || p->shard.gradients)
        return mixt__fail(MIXT_ERROR_STATE, "'%s' has no gradient%s", p->table[index].name,
                          p->shard.gradients ? " here: it is sharded between ranks" : "");
    *place = mixt__role_at(grad, p->offset[index]);
    return MIXT_OK;
}

mixt_status mixt__params_place(const mixt__params *p, int32_t index, bool gradient, void **place, mixt_dtype *format)
{
    *format = MIXT_DTYPE_FP32;
    return gradient ? place_of_gradient(p, index, place) : place_of_weight(p, index, place, format);
}

mixt_status mixt__params_get(const mixt__params *p, int32_t index, float *values)
{
    void *place = NULL;
    mixt_dtype format;
    if (mixt__params_is_frozen(p, index))
        return mixt__frozen_get(p, index, values);
    MIXT_TRY(place_of_weight(p, index, &place, &format));
    return mixt__device_download(p->device, values, place, (size_t)p->table[index].count * sizeof *values);
}

mixt_status mixt__params_set(mixt__params *p, int32_t index, const float *values)
{
    size_t bytes = (size_t)p->table[index].count * sizeof *values;
    const mixt__param_role *kept = &p->roles[MIXT_PARAM_KEPT];
    p->written++;
    if (mixt__params_is_frozen(p, index))
        return mixt__frozen_set(p, index, values);
    if (is_cut(p, index))
        return mixt__params_set_slices(p, &p->roles[MIXT_PARAM_WEIGHT], p->offset[index], p->table[index].count,
                                       values);
    if (kept->data && !p->table[index].trainable)
        MIXT_TRY(mixt__device_upload(p->device, mixt__role_at(kept, p->state_offset[index]), values, bytes));
    return mixt__device_upload(p->device, address(p, index), values, bytes);
}

/** Between the running statistics and what is kept of them. */
static mixt_status copy_statistics(const mixt__params *p, int to, int from)
{
    const mixt__param_role *kept = &p->roles[MIXT_PARAM_KEPT];
    return kept->data ? mixt__device_copy(p->device, p->roles[to].data, p->roles[from].data, kept->bytes) : MIXT_OK;
}

mixt_status mixt__params_keep_statistics(mixt__params *p)
{
    return copy_statistics(p, MIXT_PARAM_KEPT, MIXT_PARAM_STATE);
}

mixt_status mixt__params_restore_statistics(mixt__params *p)
{
    return copy_statistics(p, MIXT_PARAM_STATE, MIXT_PARAM_KEPT);
}

mixt_status mixt__params_get_grad(const mixt__params *p, int32_t index, float *values)
{
    void *place = NULL;
    MIXT_TRY(place_of_gradient(p, index, &place));
    return mixt__device_download(p->device, values, place,
                                 mixt__role_size(&p->roles[MIXT_PARAM_GRADIENT], p->table[index].count));
}

void *mixt__params_address(const mixt__params *p, const mixt__value *value, int64_t node)
{
    if (value->param >= p->count)
        return mixt__params_fixed_address(p, value->param, value->dtype);
    if (value->role == MIXT_ROLE_SCALE)
        return mixt__frozen_scales(p, value->param, NULL);
    if (value->role == MIXT_ROLE_GRAD) {
        int32_t segment = p->segment_of[value->param];
        return mixt__role_at(&p->roles[MIXT_PARAM_GRADIENT],
                             p->shard.gradients ? p->shard.window_at[segment] : p->segments[segment].offset);
    }
    if (p->shard.masters && p->segment_of[value->param] >= 0)
        return p->shard.place(p->shard.user, value, node);
    if (value->dtype == MIXT_DTYPE_FP32 || value->dtype == p->frozen.home[value->param])
        return address(p, value->param);
    return mixt__role_at(&p->roles[MIXT_PARAM_COPY + (int)value->dtype], p->copies[value->param].offset);
}

mixt_status mixt__params_match(const mixt__params *p, const mixt__graph *graph)
{
    if (p->count != own_count(graph))
        return mixt__fail(MIXT_ERROR_STATE, "the graph has %lld parameters, the model %lld",
                          (long long)own_count(graph), (long long)p->count);
    char here[128], there[128];
    for (int64_t i = 0; i < p->count; i++)
        if (strcmp(p->table[i].name, graph->params[i].name) ||
            !mixt__shape_equal(&p->table[i].shape, &graph->params[i].shape))
            return mixt__fail(MIXT_ERROR_STATE, "parameter %lld is '%s' %s in the graph and '%s' %s in the model",
                              (long long)i, graph->params[i].name,
                              mixt__shape_text(&graph->params[i].shape, here, sizeof here), p->table[i].name,
                              mixt__shape_text(&p->table[i].shape, there, sizeof there));
    return MIXT_OK;
}

mixt_status mixt__params_retype(mixt__params *p, const mixt__graph *graph)
{
    MIXT_TRY(mixt__params_match(p, graph));
    if (p->fixed_count)
        MIXT_TRY(mixt__params_lay_out_fixed(p, graph));
    mixt__params_drop_roles(p, MIXT_LIFE_COPIES);
    MIXT_TRY(mixt__frozen_retype(p, graph));
    lay_out_copies(p, graph);
    MIXT_TRY(mixt__params_take_roles(p, MIXT_LIFE_COPIES));
    return mixt__params_refresh_copies(p);
}
