/* Moments of a checkpoint: 'moment1/NAME' has numbers or codes, 'moment1.scale/NAME' the scales of codes. */
#include "train/moments_file.h"

#include "num/blocks.h"
#include "runtime/codes.h"
#include "train/trainer_inside.h"

#include <stdio.h>
#include <string.h>

mixt_status mixt__moments_check(const mixt__trainer *t)
{
    const char *name = mixt_dtype_name(t->settings.moments);
    if (t->settings.moments != MIXT_DTYPE_FP32 && t->ranks.local.compression.kind != MIXT_COMPRESS_NONE)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "moments in %s cannot be combined with dist.compress, which sends moments in fp32", name);
    if (mixt__blocks_possible(t->settings.moments) && !t->device->backend->coded_moments)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "moments in %s are kept on CPUs alone so far, not on %s: use bf16 or fp32 there", name,
                          t->device->backend->name);
    return MIXT_OK;
}

bool mixt__moments_in_codes(const mixt__trainer *t, const mixt__checkpoint *c)
{
    bool codes = t->params->codes.begin[0];
    for (int64_t i = 0; i < c->state->count && !codes; i++)
        codes = !strncmp(c->state->tensors[i].name, "moment1.scale/", 14);
    return codes;
}

/** A moment as a checkpoint has it. */
typedef struct saved {
    const mixt__file_tensor *numbers, *scales; // scales NULL: the numbers mean themselves
} saved;

static mixt_status find(const mixt__checkpoint *c, const mixt__param *param, int which, saved *found)
{
    char name[1200];
    snprintf(name, sizeof name, "moment%d/%s", which + 1, param->name);
    const mixt__file_tensor *t = found->numbers = mixt__safetensors_find(c->state, name);
    if (!t)
        return mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s' is missing: it is of another model", name);
    bool same = t->rank == param->shape.rank;
    for (int i = 0; same && i < t->rank; i++)
        same = t->dims[i] == param->shape.dims[i];
    snprintf(name, sizeof name, "moment%d.scale/%s", which + 1, param->name);
    const mixt__file_tensor *s = found->scales = mixt__safetensors_find(c->state, name);
    bool codes = s && s->dtype == MIXT_DTYPE_FP32 && s->rank == 1 &&
                 s->dims[0] == (param->count + MIXT_BLOCK - 1) / MIXT_BLOCK && mixt__blocks_possible(t->dtype);
    if (same && (codes || (!s && mixt_dtype_is_float(t->dtype))))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s' is %s %s%s, and the model has another shape, or it lacks scales",
                      t->name, mixt_dtype_name(t->dtype), mixt__dims_print(t->rank, t->dims).text,
                      s ? " with scales" : "");
}

static mixt_status put(mixt__trainer *t, int role, int64_t param, const void *values, int64_t count)
{
    const mixt__param_role *r = &t->params->roles[role];
    int64_t offset = mixt__params_offset(t->params, role, param);
    if (r->owner == MIXT_OWNER_SHARD)
        return mixt__params_set_slices(t->params, r, offset, count, values);
    return mixt__device_upload(t->device, mixt__role_at(r, offset), values, mixt__role_size(r, count));
}

/** FP32 values of what was saved. */
static mixt_status widen(const saved *s, int64_t count, float *values)
{
    if (!s->scales)
        return mixt_convert(values, MIXT_DTYPE_FP32, s->numbers->data, s->numbers->dtype, count, NULL);
    float *scales = mixt__alloc_uninit(s->scales->bytes + 1); // a file's tensors need not begin where floats do
    if (!scales)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for scales");
    memcpy(scales, s->scales->data, s->scales->bytes);
    mixt__codes_open(values, s->numbers->data, scales, s->numbers->dtype, count);
    mixt__free(scales);
    return MIXT_OK;
}

/** The role in which a parameter has its numbers. */
static int role_of(const mixt__params *p, int64_t param, int which)
{
    bool wide = p->codes.begin[0] && !mixt__params_coded(p, param);
    return (wide ? MIXT_PARAM_WIDE : MIXT_PARAM_MOMENT1) + which;
}

/** By way of FP32. @param room for the values, then for what they become */
static mixt_status convert(mixt__trainer *t, const saved *s, int64_t param, int which, float *room)
{
    const mixt__params *p = t->params;
    int64_t count = p->table[param].count, blocks = (count + MIXT_BLOCK - 1) / MIXT_BLOCK;
    int role = role_of(p, param, which);
    mixt_dtype format = p->roles[role].format;
    MIXT_TRY(widen(s, count, room));
    if (format == MIXT_DTYPE_FP32)
        return put(t, role, param, room, count);
    float *scales = room + count;
    void *codes = scales + blocks;
    if (mixt__params_coded(p, param))
        mixt__codes_close(codes, scales, room, format, count);
    else
        mixt__narrow(format)(codes, room, count);
    MIXT_TRY(put(t, role, param, codes, count));
    return mixt__params_coded(p, param) ? put(t, MIXT_PARAM_SCALE + which, param, scales, blocks) : MIXT_OK;
}

static mixt_status restore(mixt__trainer *t, const saved *s, int64_t param, int which)
{
    const mixt__params *p = t->params;
    int64_t count = p->table[param].count, blocks = (count + MIXT_BLOCK - 1) / MIXT_BLOCK;
    int role = role_of(p, param, which);
    bool coded = mixt__params_coded(p, param);
    if (s->numbers->dtype == p->roles[role].format && coded == (s->scales != NULL)) {
        MIXT_TRY(put(t, role, param, s->numbers->data, count));
        return coded ? put(t, MIXT_PARAM_SCALE + which, param, s->scales->data, blocks) : MIXT_OK;
    }
    float *room = mixt__alloc_uninit((size_t)(2 * count + blocks + 1) * sizeof *room);
    if (!room)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to convert moments to %s",
                          mixt_dtype_name(p->roles[role].format));
    mixt_status status = convert(t, s, param, which, room);
    mixt__free(room);
    return status;
}

mixt_status mixt__moments_restore(mixt__trainer *t, const mixt__checkpoint *c, bool load, int64_t *used)
{
    const mixt__params *p = t->params;
    for (int which = 0; which < p->moments; which++)
        for (int64_t i = 0; i < p->count; i++) {
            saved s;
            if (p->segment_of[i] < 0)
                continue;
            MIXT_TRY(find(c, &p->table[i], which, &s));
            *used += 1 + (s.scales != NULL);
            if (load)
                MIXT_TRY(restore(t, &s, i, which));
        }
    return MIXT_OK;
}
