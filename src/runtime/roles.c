/* The table of roles: sizes, bytes, memory. */
#include "runtime/params.h"

#include "base/rng.h"
#include "base/status.h"
#include "num/blocks.h"
#include "num/num.h"

#include <string.h>

enum { LINE = 64, RNG_STREAM_ROUND = 6 };

/* ---- one role ---- */

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

mixt__update_role mixt__role_for_update(const mixt__param_role *role, uint64_t key)
{
    return (mixt__update_role){.data = role->data, .format = role->format, .stochastic = role->stochastic, .key = key};
}

float *mixt__role_fp32(const mixt__param_role *role)
{
    return role->format == MIXT_DTYPE_FP32 ? (float *)(void *)role->data : NULL;
}

size_t mixt__role_size(const mixt__param_role *role, int64_t elements)
{
    return (size_t)elements * mixt_dtype_size(role->format);
}

int64_t mixt__role_elements(const mixt__param_role *role, int64_t count)
{
    return role->per ? (count + role->per - 1) / role->per : count;
}

void *mixt__role_at(const mixt__param_role *role, int64_t element)
{
    return role->data + mixt__role_size(role, element);
}

mixt__shape mixt__role_shape(const mixt__param_role *role, const mixt__shape *shape)
{
    mixt__shape turned = *shape;
    if (role->per) {
        turned = (mixt__shape){.rank = 1};
        turned.dims[0] = mixt__role_elements(role, mixt__shape_count(shape));
    }
    if (role->layout == MIXT_ROLE_TRANSPOSED && shape->rank == 2) {
        turned.dims[0] = shape->dims[1];
        turned.dims[1] = shape->dims[0];
    }
    return turned;
}

float *mixt__role_scales_at(const mixt__param_role *role, int64_t scale)
{
    return (float *)(void *)(role->data + lines(mixt__role_size(role, role->here))) + scale;
}

bool mixt__role_saved(const mixt__param_role *role)
{
    return role->name && role->prefix;
}

/* ---- the table ---- */

/** What every table has, where it has it. */
static const mixt__param_role known[] = {
    [MIXT_PARAM_WEIGHT] = {.name = "parameters", .prefix = "master/", .counts = MIXT_COUNTS_MASTERS},
    [MIXT_PARAM_MOMENT1] = {.name = "first moments",
                            .prefix = "moment1/",
                            .counts = MIXT_COUNTS_MOMENTS,
                            .life = MIXT_LIFE_TRAINING},
    [MIXT_PARAM_MOMENT2] = {.name = "second moments",
                            .prefix = "moment2/",
                            .counts = MIXT_COUNTS_MOMENTS,
                            .life = MIXT_LIFE_TRAINING},
    [MIXT_PARAM_WIDE] = {.name = "first moments",
                         .prefix = "moment1/",
                         .counts = MIXT_COUNTS_MOMENTS,
                         .life = MIXT_LIFE_TRAINING},
    [MIXT_PARAM_WIDE + 1] = {.name = "second moments",
                             .prefix = "moment2/",
                             .counts = MIXT_COUNTS_MOMENTS,
                             .life = MIXT_LIFE_TRAINING},
    [MIXT_PARAM_SCALE] = {.name = "scales of first moments",
                          .prefix = "moment1.scale/",
                          .counts = MIXT_COUNTS_MOMENTS,
                          .life = MIXT_LIFE_TRAINING,
                          .per = MIXT_BLOCK},
    [MIXT_PARAM_SCALE + 1] = {.name = "scales of second moments",
                              .prefix = "moment2.scale/",
                              .counts = MIXT_COUNTS_MOMENTS,
                              .life = MIXT_LIFE_TRAINING,
                              .per = MIXT_BLOCK},
    [MIXT_PARAM_STATE] = {.name = "running statistics", .prefix = "state/", .counts = MIXT_COUNTS_STATE},
    [MIXT_PARAM_GRADIENT] = {.name = "gradients", .counts = MIXT_COUNTS_GRADIENTS, .life = MIXT_LIFE_GRADIENTS},
    [MIXT_PARAM_OWN_GRADIENT] = {.name = "gradients", .counts = MIXT_COUNTS_GRADIENTS, .life = MIXT_LIFE_GRADIENTS},
    [MIXT_PARAM_KEPT] = {.name = "running statistics", .counts = MIXT_COUNTS_STATE, .life = MIXT_LIFE_TRAINING},
    [MIXT_PARAM_GATHERED] = {.name = "gathered parameters",
                             .counts = MIXT_COUNTS_COPIES,
                             .life = MIXT_LIFE_COPIES,
                             .format = MIXT_DTYPE_UINT8},
    [MIXT_PARAM_COPY] = {.name = "working copies", .counts = MIXT_COUNTS_COPIES, .life = MIXT_LIFE_COPIES},
    [MIXT_PARAM_COPY + 1] = {.name = "frozen parameters", .counts = MIXT_COUNTS_STATE},
};

/** The row of `known` for a place in the table. */
static int kind_of(int id)
{
    if (id >= MIXT_PARAM_FROZEN)
        return MIXT_PARAM_COPY + 1;
    return id < MIXT_PARAM_COPY ? id : MIXT_PARAM_COPY;
}

int64_t mixt__role_scales(const mixt__param_role *role, const mixt__param *param)
{
    switch (role->scales) {
    case MIXT_SCALE_TENSOR:
        return 1;
    case MIXT_SCALE_CHANNEL:
        return param->shape.rank ? param->shape.dims[0] : 1;
    case MIXT_SCALE_NESTED: {
        mixt__nf4_matrix matrix = mixt__param_matrix(param);
        return mixt__nf4_words(&matrix);
    }
    case MIXT_SCALE_BLOCK:
        return (param->count + role->block - 1) / role->block;
    default:
        return 0;
    }
}

/** Sizes of a role that is there. @param elements of all ranks @param here of this one */
static void size(const mixt__params *p, mixt__param_role *role, int64_t elements, int64_t here)
{
    role->elements = elements;
    role->here = here;
    role->scale_count = 0;
    for (int64_t i = 0; role->scales && role->offset && i < p->count; i++)
        role->scale_count += role->offset[i] >= 0 ? mixt__role_scales(role, &p->table[i]) : 0;
    size_t bytes = mixt__role_size(role, here);
    role->bytes = role->scale_count ? lines(bytes) + (size_t)role->scale_count * sizeof(float) : bytes;
}

/** Whether a table has a role that others may have. */
static bool exists(const mixt__params *p, int id)
{
    bool training = p->moments >= 0;
    if (id >= MIXT_PARAM_COPY)
        return p->roles[id].elements > 0;
    int space = mixt__params_space_of(id);
    if (space > MIXT_SPACE_CODES)
        return p->moments >= 1 + (id - MIXT_PARAM_WIDE) % 2 && p->codes.begin[space] &&
               p->codes.begin[space][p->segment_count] > 0;
    switch (id) {
    case MIXT_PARAM_MOMENT1:
        return p->moments >= 1;
    case MIXT_PARAM_MOMENT2:
        return p->moments >= 2;
    case MIXT_PARAM_OWN_GRADIENT:
        return training && p->shard.gradients;
    case MIXT_PARAM_GRADIENT:
    case MIXT_PARAM_KEPT:
        return training;
    case MIXT_PARAM_GATHERED:
        return p->shard.gathered > 0;
    default:
        return true;
    }
}

/** Elements of a role that every table has. */
static int64_t elements_of(const mixt__params *p, int id)
{
    if (id >= MIXT_PARAM_COPY)
        return p->roles[id].elements;
    int space = mixt__params_space_of(id);
    if (space >= 0 && p->codes.begin[space])
        return p->codes.begin[space][p->segment_count];
    switch (id) {
    case MIXT_PARAM_STATE:
    case MIXT_PARAM_KEPT:
        return p->state_total;
    case MIXT_PARAM_GRADIENT:
        return p->shard.gradients ? p->shard.window : p->total;
    case MIXT_PARAM_OWN_GRADIENT:
        return p->shard.room;
    case MIXT_PARAM_GATHERED:
        return (int64_t)p->shard.gathered;
    default:
        return p->total;
    }
}

/** In codes a second moment has no sign; in FP8 it has the format of the wider range. */
static mixt_dtype moment_format(const mixt__params *p, int id)
{
    if (id == MIXT_PARAM_MOMENT1 || !mixt__blocks_possible(p->moment_format))
        return p->moment_format;
    return p->moment_format == MIXT_DTYPE_INT8 ? MIXT_DTYPE_UINT8 : MIXT_DTYPE_FP8_E5M2;
}

/** The record without its sizes. */
static void describe(const mixt__params *p, int id, mixt__param_role *role)
{
    const mixt__param_role before = *role;
    int space = mixt__params_space_of(id);
    bool moment = space == MIXT_SPACE_CODES, sharded = space >= 0 && p->shard.moments;
    *role = known[kind_of(id)];
    role->elements = before.elements;
    role->name = exists(p, id) ? role->name : NULL;
    role->data = before.data;
    role->borrowed = before.borrowed;
    if (!role->format)
        role->format = id < MIXT_PARAM_COPY ? MIXT_DTYPE_FP32 : (mixt_dtype)((id - MIXT_PARAM_COPY) % MIXT_DTYPE_COUNT);
    if (moment)
        role->format = moment_format(p, id);
    role->stochastic = id == MIXT_PARAM_MOMENT2 && role->format != MIXT_DTYPE_FP32; // whose steps are below half a unit
    if (id == MIXT_PARAM_WEIGHT || moment)
        role->offset = p->offset;
    role->slices = p->shard.slices;
    if (space >= 0 && p->codes.begin[space]) {
        role->offset = p->codes.offset[space];
        role->slices = p->codes.slices[space];
    }
    if (id == MIXT_PARAM_STATE || id == MIXT_PARAM_KEPT)
        role->offset = p->state_offset;
    if (id >= MIXT_PARAM_FROZEN) {
        role->offset = p->frozen.offset + (id - MIXT_PARAM_FROZEN) * p->count;
        role->scales = mixt__format_of(role->format)->scale;
    }
    if (sharded || (id == MIXT_PARAM_WEIGHT && p->shard.masters))
        role->owner = MIXT_OWNER_SHARD;
}

/** Elements of what is sharded, in this rank's memory. */
static int64_t room_of(const mixt__params *p, int id)
{
    int space = mixt__params_space_of(id);
    return space >= 0 && p->codes.begin[space] ? p->shard.space_room[space] : p->shard.room;
}

static bool is_added(int id)
{
    return id >= MIXT_PARAM_ADDED && id < MIXT_PARAM_WIDE;
}

void mixt__params_lay_out_roles(mixt__params *p)
{
    for (int id = 0; id < MIXT_PARAM_ROLES; id++) {
        mixt__param_role *role = &p->roles[id];
        if (is_added(id)) {
            role->owner = p->shard.moments ? MIXT_OWNER_SHARD : MIXT_OWNER_ALL;
            role->slices = p->shard.slices;
        } else {
            describe(p, id, role);
        }
        int64_t elements = role->name ? elements_of(p, id) : 0;
        size(p, role, elements, role->owner == MIXT_OWNER_SHARD && role->name ? room_of(p, id) : elements);
    }
}

int mixt__params_add_role(mixt__params *p, const mixt__param_role *role)
{
    int id = MIXT_PARAM_ADDED;
    while (id < MIXT_PARAM_WIDE && p->roles[id].name)
        id++;
    if (id == MIXT_PARAM_WIDE)
        return -1;
    p->roles[id] = *role;
    p->roles[id].offset = p->offset;
    p->roles[id].data = NULL;
    mixt__params_lay_out_roles(p);
    return id;
}

/* ---- memory ---- */

static mixt_status take(const mixt__params *p, mixt__param_role *role)
{
    mixt__device *d = p->device;
    bool host = role->place == MIXT_PLACE_HOST;
    if (!role->name || role->data)
        return MIXT_OK;
    role->data = host ? mixt__device_alloc_host(d, role->bytes) : mixt__device_alloc(d, role->bytes);
    if (!role->data)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %zu bytes of %s on %s", role->bytes, role->name,
                          host ? "the host" : d->backend->name);
    if (!host)
        return mixt__device_zero(d, role->data, role->bytes);
    memset(role->data, 0, role->bytes);
    return MIXT_OK;
}

mixt_status mixt__params_take_roles(mixt__params *p, mixt__role_life life)
{
    for (int id = 0; id < MIXT_PARAM_ROLES; id++)
        if (p->roles[id].life == life)
            MIXT_TRY(take(p, &p->roles[id]));
    return MIXT_OK;
}

void mixt__params_drop_roles(mixt__params *p, mixt__role_life life)
{
    for (int id = 0; id < MIXT_PARAM_ROLES; id++) {
        mixt__param_role *role = &p->roles[id];
        if (role->life != life)
            continue;
        if (role->data && !role->borrowed && role->place == MIXT_PLACE_HOST)
            mixt__device_free_host(p->device, role->data);
        else if (role->data && !role->borrowed)
            mixt__device_free(p->device, role->data);
        role->data = NULL;
        role->borrowed = false;
    }
}

/* ---- what others ask ---- */

char *mixt__params_gathered(const mixt__params *p)
{
    return p->roles[MIXT_PARAM_GATHERED].data;
}

float *mixt__params_weights(const mixt__params *p)
{
    return mixt__role_fp32(&p->roles[MIXT_PARAM_WEIGHT]);
}

float *mixt__params_gradients(const mixt__params *p)
{
    return mixt__role_fp32(&p->roles[MIXT_PARAM_GRADIENT]);
}

float *mixt__params_own_gradients(const mixt__params *p)
{
    return mixt__role_fp32(&p->roles[MIXT_PARAM_OWN_GRADIENT]);
}

float *mixt__params_state(const mixt__params *p)
{
    return mixt__role_fp32(&p->roles[MIXT_PARAM_STATE]);
}

static mixt__update_role for_update(const mixt__params *p, int id, uint64_t seed)
{
    return mixt__role_for_update(&p->roles[id], mixt__rng_key(seed, RNG_STREAM_ROUND, (uint64_t)id));
}

void mixt__params_fill_update(const mixt__params *p, uint64_t seed, mixt__update *update)
{
    update->weight = for_update(p, MIXT_PARAM_WEIGHT, seed);
    update->gradient = for_update(p, MIXT_PARAM_GRADIENT, seed);
    update->moments[0] = for_update(p, MIXT_PARAM_MOMENT1, seed);
    update->moments[1] = for_update(p, MIXT_PARAM_MOMENT2, seed);
    for (int i = 0; i < 2; i++) {
        update->moments[i].scales = (float *)(void *)p->roles[MIXT_PARAM_SCALE + i].data;
        update->moments[i].wide = (float *)(void *)p->roles[MIXT_PARAM_WIDE + i].data;
    }
    update->statistics = mixt__params_state(p);
    update->kept = mixt__role_fp32(&p->roles[MIXT_PARAM_KEPT]);
    update->statistics_count = p->state_total;
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
        update->low[d] = p->roles[MIXT_PARAM_COPY + d].data;
}

int64_t mixt__params_offset(const mixt__params *p, int id, int64_t param)
{
    const mixt__param_role *role = &p->roles[id];
    return role->name && role->offset ? role->offset[param] : -1;
}

mixt__params_bytes mixt__params_bytes_of(const mixt__params *p)
{
    size_t sums[MIXT_COUNTS] = {0};
    for (int id = 0; id < MIXT_PARAM_ROLES; id++)
        sums[p->roles[id].counts] += p->roles[id].bytes;
    return (mixt__params_bytes){.masters = sums[MIXT_COUNTS_MASTERS],
                                .copies = sums[MIXT_COUNTS_COPIES],
                                .gradients = sums[MIXT_COUNTS_GRADIENTS],
                                .moments = sums[MIXT_COUNTS_MOMENTS],
                                .state = sums[MIXT_COUNTS_STATE] + (p->shared ? 0 : p->fixed_bytes)};
}

size_t mixt__params_weight_bytes(const mixt__params *p)
{
    size_t bytes = p->fixed_bytes;
    for (int id = 0; id < MIXT_PARAM_ROLES; id++)
        if (p->roles[id].life == MIXT_LIFE_WEIGHTS || p->roles[id].life == MIXT_LIFE_COPIES)
            bytes += p->roles[id].bytes;
    return bytes;
}
