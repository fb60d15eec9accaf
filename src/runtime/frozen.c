/* Frozen parameters: each is kept once, in the format in which the compiled graph reads it. Nothing updates them, so
 * they need no FP32 weight beside that: they are rounded when they are given their values. One that is read in FP32
 * too, or not at all, is kept in FP32; what reads it in a low format has a working copy. A format with scales is not
 * one that a policy asks for: whoever freezes a parameter says so, and whatever its readers compute in they read it so.
 */
#include "runtime/params.h"

#include "num/num.h"
#include "num/quantise.h"

#include <math.h>
#include <string.h>

bool mixt__params_is_frozen(const mixt__params *p, int32_t index)
{
    return p->frozen.home[index] != MIXT_DTYPE_NONE;
}

bool mixt__params_have_frozen(const mixt__params *p)
{
    for (int64_t i = 0; i < p->count; i++)
        if (mixt__params_is_frozen(p, (int32_t)i))
            return true;
    return false;
}

/** Where a frozen parameter is kept that this graph reads. */
static mixt_dtype home_of(const mixt__param *own, const mixt__param *read)
{
    if (!own->trainable || !own->frozen)
        return MIXT_DTYPE_NONE;
    for (int d = 0; d < MIXT_DTYPE_COUNT && !read->value; d++)
        if (read->low[d])
            return (mixt_dtype)d;
    return MIXT_DTYPE_FP32;
}

static mixt__param_role *role_of(mixt__params *p, mixt_dtype dtype)
{
    return &p->roles[MIXT_PARAM_FROZEN + (int)dtype];
}

void mixt__frozen_lay_out(mixt__params *p, const mixt__graph *graph)
{
    int64_t scales[MIXT_DTYPE_COUNT] = {0};
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
        role_of(p, (mixt_dtype)d)->elements = 0;
    for (int64_t i = 0; i < p->count * MIXT_DTYPE_COUNT; i++)
        p->frozen.offset[i] = -1;
    for (int64_t i = 0; i < p->count; i++) {
        mixt_dtype home = p->frozen.home[i] = home_of(&p->table[i], &graph->params[i]);
        if (home == MIXT_DTYPE_NONE)
            continue;
        p->frozen.offset[(int)home * p->count + i] = role_of(p, home)->elements;
        p->frozen.scale[i] = scales[home];
        role_of(p, home)->elements += mixt__params_copy_room(p->table[i].count, home);
        role_of(p, home)->scales = mixt__format_of(home)->scale;
        scales[home] += mixt__role_scales(role_of(p, home), &p->table[i]);
    }
}

void *mixt__frozen_place(const mixt__params *p, int32_t index, mixt_dtype *dtype)
{
    mixt_dtype home = p->frozen.home[index];
    if (dtype)
        *dtype = home;
    return mixt__role_at(&p->roles[MIXT_PARAM_FROZEN + (int)home], p->frozen.offset[(int)home * p->count + index]);
}

float *mixt__frozen_scales(const mixt__params *p, int32_t index, int64_t *count)
{
    const mixt__param_role *role = &p->roles[MIXT_PARAM_FROZEN + (int)p->frozen.home[index]];
    int64_t n = mixt__role_scales(role, &p->table[index]);
    if (count)
        *count = n;
    return n ? mixt__role_scales_at(role, p->frozen.scale[index]) : NULL;
}

static mixt_status no_memory(const mixt__params *p, int32_t index)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to convert '%s'", p->table[index].name);
}

/* ---- as it is kept, in host memory ---- */

/** Numbers of a parameter, and its scales if it has any. */
typedef struct kept {
    mixt_dtype dtype;
    mixt__nf4_matrix matrix;
    size_t bytes; // of the numbers
    int64_t scale_count;
    void *numbers; // one block with the scales, which begin it
    float *scales;
} kept;

/** Room for a parameter as it is kept now. */
static mixt_status make_kept(const mixt__params *p, int32_t index, kept *k)
{
    *k = (kept){.dtype = p->frozen.home[index]};
    mixt__frozen_scales(p, index, &k->scale_count);
    k->matrix = mixt__param_matrix(&p->table[index]);
    k->bytes = mixt__format_bytes(k->dtype, p->table[index].count);
    size_t scales = (size_t)k->scale_count * sizeof(float);
    k->scales = mixt__alloc_uninit(scales + k->bytes + 1);
    k->numbers = (char *)k->scales + scales;
    return k->scales ? MIXT_OK : no_memory(p, index);
}

static void free_kept(kept *k)
{
    mixt__free(k->scales);
}

static mixt_status download(const mixt__params *p, int32_t index, kept *k)
{
    size_t scales = (size_t)k->scale_count * sizeof *k->scales;
    if (scales)
        MIXT_TRY(mixt__device_download(p->device, k->scales, mixt__frozen_scales(p, index, NULL), scales));
    return mixt__device_download(p->device, k->numbers, mixt__frozen_place(p, index, NULL), k->bytes);
}

static mixt_status upload(const mixt__params *p, int32_t index, const kept *k)
{
    size_t scales = (size_t)k->scale_count * sizeof *k->scales;
    if (scales)
        MIXT_TRY(mixt__device_upload(p->device, mixt__frozen_scales(p, index, NULL), k->scales, scales));
    return mixt__device_upload(p->device, mixt__frozen_place(p, index, NULL), k->numbers, k->bytes);
}

static void widen(const kept *k, int64_t count, float *values)
{
    if (k->dtype == MIXT_DTYPE_NF4)
        mixt__nf4_values(&k->matrix, k->numbers, k->scales, values);
    else if (!k->scale_count)
        mixt__widen(k->dtype)(values, k->numbers, count);
    else
        mixt__dequantise_rows(values, k->numbers, k->dtype, k->scales, k->scale_count, count / k->scale_count);
}

static mixt_status narrow(const mixt__params *p, int32_t index, const float *values, kept *k)
{
    const mixt__param *param = &p->table[index];
    for (int64_t i = 0; k->scale_count && i < param->count; i++)
        if (!isfinite(values[i]))
            return mixt__fail(MIXT_ERROR_DATA, "'%s' holds a value that is not finite: it cannot be kept in %s",
                              param->name, mixt_dtype_name(k->dtype));
    if (k->dtype == MIXT_DTYPE_NF4)
        return mixt__nf4_quantise(&k->matrix, values, k->numbers, k->scales) ? MIXT_OK : no_memory(p, index);
    if (k->scale_count)
        mixt__quantise_rows(k->numbers, k->dtype, k->scales, values, k->scale_count, param->count / k->scale_count);
    else
        mixt__narrow(k->dtype)(k->numbers, values, param->count);
    return MIXT_OK;
}

mixt_status mixt__frozen_get(const mixt__params *p, int32_t index, float *values)
{
    mixt_dtype home;
    const void *place = mixt__frozen_place(p, index, &home);
    int64_t count = p->table[index].count;
    if (home == MIXT_DTYPE_FP32)
        return mixt__device_download(p->device, values, place, (size_t)count * sizeof *values);
    kept k;
    MIXT_TRY(make_kept(p, index, &k));
    mixt_status status = download(p, index, &k);
    if (status == MIXT_OK)
        widen(&k, count, values);
    free_kept(&k);
    return status;
}

mixt_status mixt__frozen_set_kept(mixt__params *p, int32_t index, const void *numbers, const float *scales)
{
    kept k;
    p->written++;
    p->frozen.version++;
    MIXT_TRY(make_kept(p, index, &k));
    memcpy(k.numbers, numbers, k.bytes);
    if (k.scale_count)
        memcpy(k.scales, scales, (size_t)k.scale_count * sizeof *scales);
    mixt_status status = upload(p, index, &k);
    free_kept(&k);
    return status;
}

mixt_status mixt__frozen_set(mixt__params *p, int32_t index, const float *values)
{
    mixt_dtype home;
    void *place = mixt__frozen_place(p, index, &home);
    p->frozen.version++;
    if (home == MIXT_DTYPE_FP32)
        return mixt__device_upload(p->device, place, values, (size_t)p->table[index].count * sizeof *values);
    kept k;
    MIXT_TRY(make_kept(p, index, &k));
    mixt_status status = narrow(p, index, values, &k);
    if (status == MIXT_OK)
        status = upload(p, index, &k);
    free_kept(&k);
    return status;
}

static mixt_status follow_one(mixt__params *p, const mixt__params *owner, int32_t index)
{
    mixt_dtype here, there;
    int64_t scales;
    void *to = mixt__frozen_place(p, index, &here);
    const void *from = mixt__frozen_place(owner, index, &there);
    if (here == there) {
        float *to_scales = mixt__frozen_scales(p, index, &scales);
        if (to_scales)
            MIXT_TRY(mixt__device_copy(p->device, to_scales, mixt__frozen_scales(owner, index, NULL),
                                       (size_t)scales * sizeof(float)));
        return mixt__device_copy(p->device, to, from, mixt__format_bytes(here, p->table[index].count));
    }
    float *values = mixt__alloc_uninit((size_t)p->table[index].count * sizeof *values);
    mixt_status status = values ? mixt__frozen_get(owner, index, values) : no_memory(p, index);
    if (status == MIXT_OK)
        status = mixt__frozen_set(p, index, values);
    mixt__free(values);
    return status;
}

mixt_status mixt__frozen_follow(mixt__params *p, const mixt__params *owner)
{
    int64_t version = owner->frozen.version + 1; // 0: never
    if (p->frozen.followed == version)
        return MIXT_OK;
    for (int32_t i = 0; i < p->count; i++)
        if (mixt__params_is_frozen(p, i))
            MIXT_TRY(follow_one(p, owner, i));
    p->frozen.followed = version;
    return MIXT_OK;
}

/* ---- another policy ---- */

/** Of all frozen parameters. */
static mixt_status download_all(const mixt__params *p, kept *all)
{
    for (int32_t i = 0; i < p->count; i++) {
        if (!mixt__params_is_frozen(p, i))
            continue;
        MIXT_TRY(make_kept(p, i, &all[i]));
        MIXT_TRY(download(p, i, &all[i]));
    }
    return MIXT_OK;
}

static mixt_status upload_all(mixt__params *p, const kept *all)
{
    for (int32_t i = 0; i < p->count; i++) {
        if (!mixt__params_is_frozen(p, i))
            continue;
        if (all[i].dtype == p->frozen.home[i]) {
            MIXT_TRY(upload(p, i, &all[i]));
            continue;
        }
        float *values = mixt__alloc_uninit((size_t)p->table[i].count * sizeof *values);
        if (!values)
            return no_memory(p, i);
        widen(&all[i], p->table[i].count, values);
        mixt_status status = mixt__frozen_set(p, i, values);
        mixt__free(values);
        MIXT_TRY(status);
    }
    return MIXT_OK;
}

static mixt_status move(mixt__params *p, const mixt__graph *graph, kept *all)
{
    MIXT_TRY(download_all(p, all));
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
        mixt__param_role *role = role_of(p, (mixt_dtype)d);
        mixt__device_free(p->device, role->data);
        role->data = NULL;
    }
    mixt__frozen_lay_out(p, graph);
    mixt__params_lay_out_roles(p);
    MIXT_TRY(mixt__params_take_roles(p, MIXT_LIFE_WEIGHTS));
    return upload_all(p, all);
}

/** Whether a graph reads all of them as they are kept. */
static bool stays(const mixt__params *p, const mixt__graph *graph)
{
    for (int64_t i = 0; i < p->count; i++)
        if (p->frozen.home[i] != home_of(&p->table[i], &graph->params[i]))
            return false;
    return true;
}

mixt_status mixt__frozen_retype(mixt__params *p, const mixt__graph *graph)
{
    if (stays(p, graph))
        return MIXT_OK;
    kept *all = mixt__alloc((size_t)(p->count + 1) * sizeof *all);
    mixt_status status =
        all ? move(p, graph, all) : mixt__fail(MIXT_ERROR_MEMORY, "no memory to move frozen parameters");
    for (int64_t i = 0; all && i < p->count; i++)
        free_kept(&all[i]);
    mixt__free(all);
    return status;
}

void mixt__frozen_mark(const mixt__params *p, mixt__graph *graph)
{
    for (int64_t i = 0; i < p->count && i < graph->param_count; i++)
        if (p->frozen.home[i] != MIXT_DTYPE_FP32)
            graph->params[i].frozen_in = p->frozen.home[i];
}

/** Whether a graph can read a format where a frozen parameter is kept in `home`: of FP32 there are working copies. */
static bool can_read(mixt_dtype format, mixt_dtype home)
{
    return format == home || (home == MIXT_DTYPE_FP32 && mixt__format_of(format)->scale == MIXT_SCALE_NONE);
}

mixt_status mixt__frozen_check(const mixt__params *p, const mixt__graph *graph)
{
    for (int64_t i = 0; i < p->count; i++)
        for (int d = 0; d < MIXT_DTYPE_COUNT && mixt__params_is_frozen(p, (int32_t)i); d++) {
            const mixt__param *param = &graph->params[i];
            bool reads = d == MIXT_DTYPE_FP32 ? param->value : param->low[d];
            if (reads && !can_read((mixt_dtype)d, p->frozen.home[i]))
                return mixt__fail(MIXT_ERROR_INTERNAL, "'%s' is frozen and stored in %s, but is read in %s here",
                                  p->table[i].name, mixt_dtype_name(p->frozen.home[i]), mixt_dtype_name((mixt_dtype)d));
        }
    return MIXT_OK;
}
