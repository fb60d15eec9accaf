/* Snapshots of a trainer, and a trainer put back into one. */
#include "train/checkpoint.h"

#include "base/memory.h"
#include "base/threads.h"
#include "mixt/num.h"
#include "store/checksum.h"
#include "store/json.h"
#include "train/arenas.h"
#include "train/faults.h"
#include "train/frozen_file.h"
#include "train/moments_file.h"
#include "train/dist/feedback.h"
#include "train/trainer_inside.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the control block, field by field ---- */

typedef enum field_kind { FIELD_FLOAT, FIELD_INT32, FIELD_INT64 } field_kind;
#define FIELD(name, kind)                                                                                              \
    {                                                                                                                  \
#name, FIELD_##kind, offsetof(mixt__control, name)                                                             \
    }

static const struct {
    const char *name;
    field_kind kind;
    size_t offset;
} fields[] = {
    FIELD(scale, FLOAT),     FIELD(used_scale, FLOAT),  FIELD(seed, FLOAT),        FIELD(lr, FLOAT),
    FIELD(grad_norm, FLOAT), FIELD(grad_factor, FLOAT), FIELD(inv_bias1, FLOAT),   FIELD(inv_sqrt_bias2, FLOAT),
    FIELD(found_inf, INT32), FIELD(bad_segment, INT32), FIELD(clean_steps, INT32), FIELD(overflows_left, INT32),
    FIELD(step, INT64),      FIELD(skipped, INT64),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static json_t *control_pack(const mixt__control *control)
{
    json_t *o = json_object();
    for (int i = 0; i < FIELDS; i++) {
        const char *at = (const char *)control + fields[i].offset;
        float real;
        int32_t small;
        int64_t large;
        memcpy(&real, at, sizeof real);
        memcpy(&small, at, sizeof small);
        memcpy(&large, at, fields[i].kind == FIELD_INT64 ? sizeof large : sizeof small);
        mixt__json_set(o, fields[i].name,
                       fields[i].kind == FIELD_FLOAT   ? mixt__json_double((double)real)
                       : fields[i].kind == FIELD_INT32 ? json_integer(small)
                                                       : json_integer(large));
    }
    return o;
}

static mixt_status control_unpack(const json_t *o, mixt__control *control)
{
    for (int i = 0; i < FIELDS; i++) {
        char *at = (char *)control + fields[i].offset;
        double real = 0;
        int64_t whole = 0;
        if (fields[i].kind == FIELD_FLOAT) {
            MIXT_TRY(mixt__json_get_double(o, fields[i].name, &real));
            float narrow = (float)real;
            memcpy(at, &narrow, sizeof narrow);
        } else if (fields[i].kind == FIELD_INT32) {
            MIXT_TRY(mixt__json_get_int(o, fields[i].name, INT32_MIN, INT32_MAX, &whole));
            int32_t small = (int32_t)whole;
            memcpy(at, &small, sizeof small);
        } else {
            MIXT_TRY(mixt__json_get_int(o, fields[i].name, 0, INT64_MAX, &whole));
            memcpy(at, &whole, sizeof whole);
        }
    }
    return MIXT_OK;
}

/* ---- snapshots ---- */

/** Bytes of the tensors' list, and of their names. */
static void list_bytes(const mixt__trainer *t, size_t *list, size_t *names)
{
    const mixt__params *p = t->params;
    int order[MIXT_PARAM_ROLES];
    *list =
        (size_t)(p->count * mixt__arenas_saved(p, order) + 1 + mixt__feedback_tensors(t)) * sizeof(mixt__file_tensor);
    *names = 1 + mixt__feedback_name_bytes(t);
    for (int which = 0; which < MIXT_PARAM_ROLES; which++)
        for (int64_t i = 0; i < p->count; i++)
            if (mixt__role_saved(&p->roles[which]) && mixt__params_offset(p, which, i) >= 0)
                *names += strlen(p->roles[which].prefix) + strlen(p->table[i].name) + 1;
}

static size_t copies_bytes(const mixt__trainer *t, mixt__snapshot_kind kind)
{
    size_t bytes = 0;
    for (int which = 0; which < MIXT_PARAM_ROLES; which++)
        bytes += mixt__role_saved(&t->params->roles[which])
                     ? mixt__role_size(&t->params->roles[which], mixt__arena_copied_most(t, which, kind))
                     : 0;
    return bytes;
}

static void list_tensors(mixt__snapshot *s, size_t names)
{
    const mixt__params *p = s->trainer->params;
    size_t used = 0;
    int order[MIXT_PARAM_ROLES], roles = mixt__arenas_saved(p, order);
    for (int r = 0; r < roles; r++)
        for (int64_t i = 0; i < p->count; i++) {
            const mixt__param_role *role = &p->roles[order[r]];
            int64_t offset = mixt__params_offset(p, order[r], i);
            if (offset < 0)
                continue;
            const char *base = s->blocks[order[r]] ? s->blocks[order[r]] : role->data;
            mixt__file_tensor *t = &s->tensors[s->count++];
            mixt__shape shape = mixt__role_shape(role, &p->table[i].shape);
            *t = (mixt__file_tensor){.dtype = role->format, .rank = shape.rank};
            memcpy(t->dims, shape.dims, (size_t)shape.rank * sizeof t->dims[0]);
            t->data = s->kind == MIXT_SNAPSHOT_PART ? NULL : base + mixt__role_size(role, offset);
            t->name = s->names + used;
            used += (size_t)snprintf(s->names + used, names - used, "%s%s", role->prefix, p->table[i].name) + 1;
        }
    mixt__feedback_list(s, s->names + used);
}

/** What this rank writes of all tensors. @param of where that lies @param pieces NULL: they are only counted */
static int64_t list_pieces(const mixt__trainer *t, const mixt__snapshot *of, mixt__checkpoint_piece *pieces)
{
    int64_t tensors, used = mixt__arenas_pieces(t, of->blocks, of->kind, pieces, &tensors);
    return used + mixt__feedback_pieces(t, of, tensors, pieces ? pieces + used : NULL);
}

/** At most, on any rank. */
static int64_t count_pieces(const mixt__trainer *t)
{
    return mixt__arenas_pieces_most(t) + mixt__feedback_tensors(t);
}

static size_t pieces_bytes(const mixt__trainer *t)
{
    return (size_t)(count_pieces(t) + 1) * (sizeof(mixt__checkpoint_piece) + sizeof(mixt__checkpoint_sum));
}

mixt__snapshot_kind mixt__snapshot_saved(const mixt__trainer *t)
{
    return mixt__ranks_save_parts(t) ? MIXT_SNAPSHOT_PART : MIXT_SNAPSHOT_WHOLE;
}

mixt__snapshot_kind mixt__snapshot_kept(const mixt__trainer *t)
{
    bool several = t->ranks.group || t->ranks.planned; // as mixt__ranks_discrete, before there is any memory
    bool apart = t->ranks.shards.owners.ranks || mixt__feedback_tensors(t);
    return several && apart ? MIXT_SNAPSHOT_OWN : MIXT_SNAPSHOT_WHOLE;
}

size_t mixt__snapshot_bytes(const mixt__trainer *t, mixt__snapshot_kind kind)
{
    size_t list, names;
    list_bytes(t, &list, &names);
    size_t copies = copies_bytes(t, kind) + (size_t)mixt__feedback_elements(t, kind) * sizeof(float);
    size_t lists = kind == MIXT_SNAPSHOT_OWN ? 0 : list + names;
    return copies + lists + (kind == MIXT_SNAPSHOT_PART ? pieces_bytes(t) : 0);
}

void mixt__snapshot_point(mixt__snapshot *s, const mixt__snapshot *of)
{
    s->piece_count = list_pieces(s->trainer, of, s->pieces);
}

static mixt_status take_lists(mixt__snapshot *s)
{
    const mixt__trainer *t = s->trainer;
    bool part = s->kind == MIXT_SNAPSHOT_PART;
    size_t list, names, count = part ? (size_t)count_pieces(t) + 1 : 0;
    list_bytes(t, &list, &names);
    s->tensors = mixt__alloc(list);
    s->names = mixt__alloc(names);
    s->pieces = part ? mixt__alloc(count * sizeof *s->pieces) : NULL;
    s->sums = part ? mixt__alloc(count * sizeof *s->sums) : NULL;
    if (!s->tensors || !s->names || (part && (!s->pieces || !s->sums)))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to list the tensors of a checkpoint");
    list_tensors(s, names);
    if (part)
        mixt__snapshot_point(s, s);
    return MIXT_OK;
}

static mixt_status take_blocks(mixt__snapshot *s)
{
    const mixt__trainer *t = s->trainer;
    size_t need = copies_bytes(t, s->kind), room = mixt__memory_available();
    int64_t from;
    if (room && need > room)
        return mixt__fail(MIXT_ERROR_MEMORY, "a copy of the training state needs %.2f GiB, %.2f GiB are free",
                          (double)need / 1073741824.0, (double)room / 1073741824.0);
    for (int which = 0; which < MIXT_PARAM_ROLES; which++) {
        const mixt__param_role *role = &t->params->roles[which];
        if (!mixt__role_saved(role) || !mixt__arena_copied(t, which, s->kind, &from))
            continue;
        size_t bytes = mixt__role_size(role, mixt__arena_copied_most(t, which, s->kind)); // as planned
        s->blocks[which] = mixt__device_alloc_host(t->device, bytes);
        if (!s->blocks[which])
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a copy of the training state (%.2f GiB)",
                              (double)need / 1073741824.0);
    }
    return MIXT_OK;
}

mixt_status mixt__snapshot_open(mixt__snapshot *s, const mixt__trainer *t, mixt__snapshot_kind kind, bool in_place)
{
    *s = (mixt__snapshot){.trainer = t, .kind = kind};
    mixt_status status = t->control ? MIXT_OK
                                    : mixt__fail(MIXT_ERROR_STATE, "nothing to save yet: the trainer has no memory, it "
                                                                   "has made no step");
    bool collected = kind == MIXT_SNAPSHOT_WHOLE && mixt__ranks_discrete(t);
    if (status == MIXT_OK && (!in_place || !t->device->backend->host_memory || collected))
        status = take_blocks(s);
    if (status == MIXT_OK)
        status = mixt__feedback_open(s);
    if (status == MIXT_OK && kind != MIXT_SNAPSHOT_OWN)
        status = take_lists(s);
    if (status != MIXT_OK)
        mixt__snapshot_close(s);
    return status;
}

void mixt__snapshot_touch(mixt__snapshot *s)
{
    int64_t from;
    for (int which = 0; which < MIXT_PARAM_ROLES; which++)
        if (s->blocks[which])
            mixt__parallel_zero(s->blocks[which],
                                mixt__role_size(&s->trainer->params->roles[which],
                                                mixt__arena_copied(s->trainer, which, s->kind, &from)));
}

/** Whether rank 0 has collected such a copy, so that it is not this process's arena. */
static bool is_collected(const mixt__snapshot *s, int which)
{
    return s->kind == MIXT_SNAPSHOT_WHOLE && s->trainer->params->roles[which].owner == MIXT_OWNER_SHARD;
}

static mixt_status copy_arenas(mixt__snapshot *s, const mixt__trainer *t)
{
    for (int which = 0; which < MIXT_PARAM_ROLES; which++) {
        const mixt__param_role *role = &t->params->roles[which];
        int64_t from, count = s->blocks[which] ? mixt__arena_copied(t, which, s->kind, &from) : 0;
        if (s->blocks[which] && !is_collected(s, which))
            MIXT_TRY(mixt__device_copy(t->device, s->blocks[which], mixt__role_at(role, from),
                                       mixt__role_size(role, count)));
    }
    return MIXT_OK;
}

static mixt_status take_scalars(mixt__snapshot *s, const mixt__trainer *t)
{
    mixt__control control;
    MIXT_TRY(mixt__device_download(t->device, &control, t->control, sizeof control));
    json_decref(s->scalars);
    s->scalars = json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "step", (json_int_t)t->attempts, "next_batch",
                           (json_int_t)t->next_batch, "runs", (json_int_t)t->runs, "batches_per_epoch",
                           (json_int_t)t->batches_per_epoch, "control", control_pack(&control), "settings",
                           mixt__trainer_settings_json(t));
    mixt__faults_pack(t, s->scalars);
    return mixt__json_whole(s->scalars) ? MIXT_OK
                                        : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a checkpoint's figures");
}

/** What the tensors' data should be where they are written: the sums that updates carry, or else of what was taken. */
static mixt_status take_words(mixt__snapshot *s, mixt__trainer *t)
{
    mixt__integrity_words words;
    MIXT_TRY(mixt__integrity_words_read(t, &words));
    int64_t used = 0;
    int order[MIXT_PARAM_ROLES], roles = mixt__arenas_saved(t->params, order);
    bool whole = s->kind == MIXT_SNAPSHOT_WHOLE;
    for (int r = 0; r < roles && whole; r++)
        for (int32_t i = 0; i < t->params->count; i++)
            if (mixt__params_offset(t->params, order[r], i) >= 0) {
                mixt__file_tensor *tensor = &s->tensors[used++];
                tensor->summed = mixt__integrity_words_of(t, &words, order[r], i, &tensor->words);
            }
    for (int64_t i = 0; i < s->count && whole && words.sums; i++) {
        mixt__file_tensor *tensor = &s->tensors[i];
        size_t count = (size_t)mixt__file_tensor_count(tensor->dtype, tensor->rank, tensor->dims);
        if (!tensor->summed)
            tensor->words = mixt__checksum_words(tensor->data, count * mixt_dtype_size(tensor->dtype));
        tensor->summed = true;
    }
    for (int64_t i = 0; i < s->piece_count; i++) {
        mixt__checkpoint_piece *piece = &s->pieces[i];
        piece->summed = piece->data && !t->settings.no_integrity;
        piece->words = piece->summed ? mixt__checksum_words(piece->data, (size_t)piece->bytes) : 0;
    }
    mixt__integrity_words_free(&words);
    return MIXT_OK;
}

mixt_status mixt__snapshot_take(mixt__snapshot *s, mixt__trainer *t)
{
    if (t->hand_gradients)
        return mixt__fail(MIXT_ERROR_STATE,
                          "gradients are pending (mixt_trainer_backward): apply or discard them before a checkpoint");
    if (t->broken)
        return mixt__fail(MIXT_ERROR_STATE,
                          "a change of precision or a restore failed halfway: there is no valid state to save");
    MIXT_TRY(mixt__integrity_verify(t));
    MIXT_TRY(copy_arenas(s, t));
    MIXT_TRY(mixt__feedback_take(s, t));
    MIXT_TRY(mixt__device_synchronize(t->device));
    MIXT_TRY(take_words(s, t));
    return take_scalars(s, t);
}

void mixt__snapshot_fill(mixt__snapshot *s, const mixt__snapshot *own)
{
    const mixt__params *p = s->trainer->params;
    for (int which = 0; which < MIXT_PARAM_ROLES; which++)
        if (s->blocks[which] && !is_collected(s, which))
            memcpy(s->blocks[which], own->blocks[which], mixt__role_size(&p->roles[which], p->roles[which].elements));
    if (s->feedback)
        mixt__feedback_fill(s, own);
}

void mixt__snapshot_close(mixt__snapshot *s)
{
    for (int which = 0; which < MIXT_PARAM_ROLES; which++)
        if (s->blocks[which])
            mixt__device_free_host(s->trainer->device, s->blocks[which]);
    if (s->feedback)
        mixt__device_free_host(s->trainer->device, s->feedback);
    json_decref(s->scalars);
    mixt__free(s->tensors);
    mixt__free(s->names);
    mixt__free(s->pieces);
    mixt__free(s->sums);
    *s = (mixt__snapshot){0};
}

const float *mixt__snapshot_weights(const mixt__snapshot *s)
{
    return (const float *)(const void *)s->blocks[MIXT_PARAM_WEIGHT];
}

/* ---- back ---- */

static mixt_status check_settings(const mixt__trainer *t, const json_t *scalars, const char *const *may_differ)
{
    char *differences = NULL;
    mixt_status status =
        mixt__trainer_settings_differences(t, json_object_get(scalars, "settings"), may_differ, &differences);
    if (status == MIXT_OK && differences)
        status = mixt__fail(MIXT_ERROR_CONFIG, "made with other settings (then -> now): %s", differences);
    mixt__free(differences);
    return status;
}

static mixt_status find(const mixt__checkpoint *c, const mixt__param *param, const mixt__param_role *role,
                        const mixt__file_tensor **found)
{
    char name[1200], wanted[128];
    mixt__shape shape = mixt__role_shape(role, &param->shape);
    snprintf(name, sizeof name, "%s%s", role->prefix, param->name);
    const mixt__file_tensor *t = *found = mixt__safetensors_find(c->state, name);
    if (!t)
        return mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s' is missing: it is of another model", name);
    bool moments = role->counts == MIXT_COUNTS_MOMENTS && mixt_dtype_is_float(t->dtype); // which are converted
    bool same = t->rank == shape.rank && (t->dtype == role->format || moments);
    for (int i = 0; same && i < t->rank; i++)
        same = t->dims[i] == shape.dims[i];
    return same ? MIXT_OK
                : mixt__fail(MIXT_ERROR_FORMAT, "tensor '%s' is %s %s, the model has %s %s", name,
                             mixt_dtype_name(t->dtype), mixt__dims_print(t->rank, t->dims).text,
                             mixt_dtype_name(role->format), mixt__shape_text(&shape, wanted, sizeof wanted));
}

/** Numbers of a tensor in the format of a role. @param values in FP32, in place of the tensor's; NULL: the tensor's
 *  @param converted owned; NULL: they are in that format already, and *data is theirs */
static mixt_status convert(const mixt__file_tensor *tensor, const float *values, const mixt__param_role *role,
                           const void **data, void **converted)
{
    mixt_dtype from = values ? MIXT_DTYPE_FP32 : tensor->dtype;
    int64_t count = (int64_t)(tensor->bytes / mixt_dtype_size(tensor->dtype));
    *data = values ? (const void *)values : tensor->data;
    *converted = NULL;
    if (from == role->format)
        return MIXT_OK;
    void *to = *converted = mixt__alloc_uninit(mixt__role_size(role, count) + 1);
    if (!to)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to convert '%s' to %s", tensor->name,
                          mixt_dtype_name(role->format));
    mixt_status status = mixt_convert(to, role->format, *data, from, count, NULL);
    *data = to;
    return status;
}

/** Of what ranks share out, this one's part. */
static mixt_status put(mixt__trainer *t, const mixt__checkpoint *c, int which, int64_t offset,
                       const mixt__file_tensor *tensor)
{
    const mixt__param_role *role = &t->params->roles[which];
    float *values;
    mixt_status status;
    MIXT_TRY(mixt__feedback_values(t, c, which, offset, tensor, &values));
    const void *data;
    void *converted;
    int64_t count = (int64_t)(tensor->bytes / mixt_dtype_size(tensor->dtype));
    status = convert(tensor, values, role, &data, &converted);
    if (status == MIXT_OK && role->owner == MIXT_OWNER_SHARD)
        status = mixt__params_set_slices(t->params, role, offset, count, data);
    else if (status == MIXT_OK)
        status = mixt__device_upload(t->device, mixt__role_at(role, offset), data, mixt__role_size(role, count));
    mixt__free(converted);
    mixt__free(values);
    return status;
}

void mixt__trainer_frozen_elsewhere(mixt__trainer *t)
{
    t->frozen_file.elsewhere = true;
}

/** The same of frozen parameters. @param used counts those of the state, and those of the file beside it */
static mixt_status visit_frozen(mixt__trainer *t, const mixt__checkpoint *c, bool load, int64_t *used)
{
    for (int32_t i = 0; i < t->params->count && !t->frozen_file.elsewhere; i++) {
        mixt__frozen_tensor found;
        if (!mixt__params_is_frozen(t->params, i))
            continue;
        MIXT_TRY(mixt__frozen_file_find(c, &t->params->table[i], &found));
        if (load)
            MIXT_TRY(mixt__frozen_file_put(t->params, i, &found));
        *used += found.count;
    }
    return MIXT_OK;
}

static bool is_moment(int which)
{
    return mixt__params_space_of(which) >= 0;
}

/** Goes over all tensors of the trainer: with `load` clear checks that they are there, else uploads them. */
static mixt_status visit(mixt__trainer *t, const mixt__checkpoint *c, bool load)
{
    const mixt__params *p = t->params;
    bool codes = mixt__moments_in_codes(t, c);
    int64_t used = 0;
    if (codes)
        MIXT_TRY(mixt__moments_restore(t, c, load, &used));
    for (int which = 0; which < MIXT_PARAM_ROLES; which++)
        for (int64_t i = 0; i < p->count; i++) {
            const mixt__param_role *role = &p->roles[which];
            const mixt__file_tensor *tensor;
            int64_t offset =
                mixt__role_saved(role) && !(codes && is_moment(which)) ? mixt__params_offset(p, which, i) : -1;
            if (offset < 0)
                continue;
            used++;
            MIXT_TRY(find(c, &p->table[i], role, &tensor));
            if (load)
                MIXT_TRY(put(t, c, which, offset, tensor));
        }
    MIXT_TRY(visit_frozen(t, c, load, &used));
    MIXT_TRY(mixt__feedback_restore(t, c, load));
    for (int64_t i = 0; i < c->state->count; i++)
        used += mixt__feedback_is(c->state->tensors[i].name);
    int64_t held = c->state->count + (c->frozen ? c->frozen->count : 0);
    return used == held
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_FORMAT, "holds %lld tensors, the model has %lld: it is of another model",
                            (long long)held, (long long)used);
}

typedef struct progress {
    int64_t step, next_batch, runs, batches_per_epoch;
    mixt__control control;
} progress;

/** Passes are counted in those of all ranks, which may have been more or fewer. */
static void count_ranks(const mixt__trainer *t, const json_t *scalars, progress *p)
{
    int64_t then = json_integer_value(json_object_get(json_object_get(scalars, "settings"), "ranks"));
    int64_t now = t->settings.ranks;
    if (then < 1)
        then = 1; // of a version that knew of none
    p->next_batch = p->next_batch / then * now;
    p->runs = p->runs / then * now;
    p->batches_per_epoch = p->batches_per_epoch / then * now;
}

static mixt_status read_progress(const json_t *scalars, progress *p)
{
    const int64_t most = INT64_MAX / 2; // so that counting on cannot overflow
    *p = (progress){0};
    MIXT_TRY(mixt__json_get_int(scalars, "step", 0, most, &p->step));
    MIXT_TRY(mixt__json_get_int(scalars, "next_batch", 0, most, &p->next_batch));
    MIXT_TRY(mixt__json_get_int(scalars, "runs", 0, most, &p->runs));
    MIXT_TRY(mixt__json_get_int(scalars, "batches_per_epoch", 0, most, &p->batches_per_epoch));
    return control_unpack(json_object_get(scalars, "control"), &p->control);
}

mixt_status mixt__trainer_scalars_check(const json_t *scalars)
{
    progress p;
    return read_progress(json_object_get(scalars, "trainer"), &p);
}

/** After the arenas have their values. */
static mixt_status go_on(mixt__trainer *t, const progress *p)
{
    MIXT_TRY(mixt__params_refresh_copies(t->params));
    MIXT_TRY(mixt__params_keep_statistics(t->params));
    t->control_copy = p->control;
    MIXT_TRY(mixt__trainer_put_control(t, &t->control_copy));
    mixt__integrity_renew_later(t);
    t->attempts = t->first_step = p->step;
    t->next_batch = p->next_batch;
    t->runs = p->runs;
    t->batches_per_epoch = p->batches_per_epoch;
    t->hand_gradients = false;
    return MIXT_OK;
}

static mixt_status load(mixt__trainer *t, const mixt__checkpoint *c, const progress *p)
{
    MIXT_TRY(mixt__device_synchronize(t->device));
    MIXT_TRY(visit(t, c, true));
    return go_on(t, p);
}

static mixt_status load_copies(mixt__trainer *t, const mixt__snapshot *s, const progress *p)
{
    int64_t from;
    for (int which = 0; which < MIXT_PARAM_ROLES; which++)
        if (s->blocks[which])
            MIXT_TRY(mixt__device_copy(
                t->device, t->params->roles[which].data, s->blocks[which],
                mixt__role_size(&t->params->roles[which], mixt__arena_copied(t, which, s->kind, &from))));
    mixt__feedback_put_back(s, t);
    MIXT_TRY(mixt__device_synchronize(t->device));
    return go_on(t, p);
}

mixt_status mixt__snapshot_restore(const mixt__snapshot *s, mixt__trainer *t)
{
    progress p;
    MIXT_TRY(read_progress(s->scalars, &p));
    MIXT_TRY(mixt__device_synchronize(t->device));
    mixt__trainer_stop_batches(t); // they are at others
    mixt_status status = load_copies(t, s, &p);
    t->broken = status != MIXT_OK; // some of the old state and some of the new
    return status;
}

static bool was_scaled(const json_t *scalars)
{
    const char *word = json_string_value(json_object_get(json_object_get(scalars, "settings"), "loss_scale"));
    return word && strcmp(word, "none");
}

static mixt_status restore(mixt__trainer *t, const mixt__checkpoint *c, const char *const *may_differ)
{
    progress p;
    const json_t *scalars = json_object_get(c->scalars, "trainer");
    MIXT_TRY(check_settings(t, scalars, may_differ));
    MIXT_TRY(read_progress(scalars, &p));
    count_ranks(t, scalars, &p);
    MIXT_TRY(visit(t, c, false));
    MIXT_TRY(mixt__trainer_allocate(t));
    if (may_differ) // no change where loss scaling is the same
        mixt__trainer_carry_scale(t, was_scaled(scalars), &p.control);
    mixt__trainer_stop_batches(t); // they are at others
    mixt_status status = load(t, c, &p);
    if (status == MIXT_OK)
        status = mixt__safetensors_check(c->state);
    if (status == MIXT_OK)
        status = mixt__safetensors_check(c->frozen);
    mixt__faults_unpack(t, scalars);
    t->broken = status != MIXT_OK; // some of the old state and some of the new
    return status;
}

mixt_status mixt__trainer_restore(mixt__trainer *t, const mixt__checkpoint *c, const char *const *may_differ)
{
    if (!t->train)
        return mixt__fail(MIXT_ERROR_STATE,
                          "compile the trainer before restoring it: mixt_trainer_compile(trainer, data)");
    mixt_status status = restore(t, c, may_differ);
    return status == MIXT_OK ? MIXT_OK : mixt__fail_context(status, "checkpoint %s", c->folder);
}
