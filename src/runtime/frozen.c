/* Frozen parameters: each is kept once, in the format in which the compiled graph reads it. Nothing updates them, so they
 * need no FP32 weight beside that: they are rounded when they are given their values. One that is read in FP32 too, or
 * not at all, is kept in FP32; what reads it in a low format has a working copy.
 */
#include "runtime/params.h"

#include "num/num.h"

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
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
        role_of(p, (mixt_dtype)d)->elements = 0;
    for (int64_t i = 0; i < p->count * MIXT_DTYPE_COUNT; i++)
        p->frozen.offset[i] = -1;
    for (int64_t i = 0; i < p->count; i++) {
        mixt_dtype home = p->frozen.home[i] = home_of(&p->table[i], &graph->params[i]);
        if (home == MIXT_DTYPE_NONE)
            continue;
        p->frozen.offset[(int)home * p->count + i] = role_of(p, home)->elements;
        role_of(p, home)->elements += mixt__params_copy_room(p->table[i].count, home);
    }
}

void *mixt__frozen_place(const mixt__params *p, int32_t index, mixt_dtype *dtype)
{
    mixt_dtype home = p->frozen.home[index];
    if (dtype)
        *dtype = home;
    return mixt__role_at(&p->roles[MIXT_PARAM_FROZEN + (int)home], p->frozen.offset[(int)home * p->count + index]);
}

static mixt_status no_memory(const mixt__params *p, int32_t index)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to convert '%s'", p->table[index].name);
}

mixt_status mixt__frozen_get(const mixt__params *p, int32_t index, float *values)
{
    mixt_dtype home;
    const void *place = mixt__frozen_place(p, index, &home);
    int64_t count = p->table[index].count;
    size_t bytes = (size_t)count * mixt_dtype_size(home);
    if (home == MIXT_DTYPE_FP32)
        return mixt__device_download(p->device, values, place, bytes);
    void *narrow = mixt__alloc_uninit(bytes);
    mixt_status status =
        narrow ? mixt__device_download(p->device, narrow, place, bytes) : no_memory(p, index);
    if (status == MIXT_OK)
        mixt__widen(home)(values, narrow, count);
    mixt__free(narrow);
    return status;
}

mixt_status mixt__frozen_set(mixt__params *p, int32_t index, const float *values)
{
    mixt_dtype home;
    void *place = mixt__frozen_place(p, index, &home);
    int64_t count = p->table[index].count;
    size_t bytes = (size_t)count * mixt_dtype_size(home);
    p->frozen.version++;
    if (home == MIXT_DTYPE_FP32)
        return mixt__device_upload(p->device, place, values, bytes);
    void *narrow = mixt__alloc_uninit(bytes);
    if (!narrow)
        return no_memory(p, index);
    mixt__narrow(home)(narrow, values, count);
    mixt_status status = mixt__device_upload(p->device, place, narrow, bytes);
    mixt__free(narrow);
    return status;
}

static mixt_status follow_one(mixt__params *p, const mixt__params *owner, int32_t index)
{
    mixt_dtype here, there;
    void *to = mixt__frozen_place(p, index, &here);
    const void *from = mixt__frozen_place(owner, index, &there);
    size_t bytes = (size_t)p->table[index].count * mixt_dtype_size(here);
    if (here == there)
        return mixt__device_copy(p->device, to, from, bytes);
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

/** Of all frozen parameters, in host memory, each as it is kept. */
static mixt_status download_all(const mixt__params *p, void **kept)
{
    for (int32_t i = 0; i < p->count; i++) {
        mixt_dtype home = p->frozen.home[i];
        if (home == MIXT_DTYPE_NONE)
            continue;
        size_t bytes = (size_t)p->table[i].count * mixt_dtype_size(home);
        kept[i] = mixt__alloc_uninit(bytes + 1);
        if (!kept[i])
            return no_memory(p, i);
        MIXT_TRY(mixt__device_download(p->device, kept[i], mixt__frozen_place(p, i, NULL), bytes));
    }
    return MIXT_OK;
}

/** @param before by parameter: the format in which it is kept there */
static mixt_status upload_all(mixt__params *p, void *const *kept, const mixt_dtype *before)
{
    for (int32_t i = 0; i < p->count; i++) {
        if (!mixt__params_is_frozen(p, i))
            continue;
        float *values = mixt__alloc_uninit((size_t)p->table[i].count * sizeof *values);
        if (!values)
            return no_memory(p, i);
        mixt__widen(before[i])(values, kept[i], p->table[i].count);
        mixt_status status = mixt__frozen_set(p, i, values);
        mixt__free(values);
        MIXT_TRY(status);
    }
    return MIXT_OK;
}

static mixt_status move(mixt__params *p, const mixt__graph *graph, void **kept, mixt_dtype *before)
{
    MIXT_TRY(download_all(p, kept));
    for (int64_t i = 0; i < p->count; i++)
        before[i] = p->frozen.home[i];
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
        mixt__param_role *role = role_of(p, (mixt_dtype)d);
        mixt__device_free(p->device, role->data);
        role->data = NULL;
    }
    mixt__frozen_lay_out(p, graph);
    mixt__params_lay_out_roles(p);
    MIXT_TRY(mixt__params_take_roles(p, MIXT_LIFE_WEIGHTS));
    return upload_all(p, kept, before);
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
    size_t n = (size_t)p->count;
    void **kept = mixt__alloc((n + 1) * sizeof *kept);
    mixt_dtype *before = mixt__alloc((n + 1) * sizeof *before);
    mixt_status status = kept && before ? move(p, graph, kept, before)
                                        : mixt__fail(MIXT_ERROR_MEMORY, "no memory to move frozen parameters");
    for (size_t i = 0; kept && i < n; i++)
        mixt__free(kept[i]);
    mixt__free(kept);
    mixt__free(before);
    return status;
}

mixt_status mixt__frozen_check(const mixt__params *p, const mixt__graph *graph)
{
    for (int64_t i = 0; i < p->count; i++) {
        mixt_dtype home = p->frozen.home[i];
        if (home == MIXT_DTYPE_NONE || home == MIXT_DTYPE_FP32 || !graph->params[i].value)
            continue;
        return mixt__fail(MIXT_ERROR_INTERNAL, "'%s' is frozen and kept in %s, and is read in fp32 here",
                          p->table[i].name, mixt_dtype_name(home));
    }
    return MIXT_OK;
}
