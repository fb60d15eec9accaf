/* Packing what is known of a data set, and a set without samples made from that.
 *
 * Numbers are written with as many digits as FP32 needs to come back the same: a prediction from facts has the bits of
 * one made beside the data.
 */
#include "data/facts.h"
#include "data/table/schema.h"
#include "store/json.h"

#include <math.h>
#include <string.h>

static const char *const target_names[] = {"", "class", "values", "tokens", "text"};
static const char *const normalise_names[] = {"standard", "unit", "none"};
static const char *const missing_names[] = {"error", "mean", "zero", "drop", "fill"};

enum {
    TARGETS = sizeof target_names / sizeof target_names[0],
    NORMALISES = sizeof normalise_names / sizeof normalise_names[0],
    MISSINGS = sizeof missing_names / sizeof missing_names[0],
    FILL_MAX = 1 << 24, // elements of a row
    CLASSES_MAX = 1 << 24,
    SIDE_MAX = 65536, // of a picture, as options allow
};

/* ---- pack ---- */

/** A name as JSON can hold it. */
static json_t *text_of(const char *name)
{
    json_t *text = mixt__json_string(name);
    if (text)
        return text;
    char *plain = mixt__strdup(name);
    for (char *at = plain; at && *at; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    text = plain ? mixt__json_string(plain) : NULL;
    mixt__free(plain);
    return text;
}

static json_t *list_floats(const float *values, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        if (mixt__json_add(list, json_real((double)values[i])))
            return json_decref(list), NULL;
    return list;
}

static json_t *list_dims(const mixt_data_info *info)
{
    json_t *list = json_array();
    for (int i = 0; i < info->input_rank; i++)
        if (mixt__json_add(list, json_integer(info->input_dims[i])))
            return json_decref(list), NULL;
    return list;
}

static json_t *list_names(const mixt_data_info *info)
{
    if (!info->class_names)
        return json_null();
    json_t *list = json_array();
    for (int64_t i = 0; i < info->classes; i++)
        if (mixt__json_add(list, text_of(info->class_names[i])))
            return json_decref(list), NULL;
    return list;
}

/** How recordings become samples; null for other sets. */
static json_t *pack_audio(const mixt_data_options *o)
{
    return o->rate
               ? json_pack("{s:I, s:I, s:f, s:f, s:f, s:f}", "rate", (json_int_t)o->rate, "mels", (json_int_t)o->mels,
                           "window", o->window, "hop", o->hop, "seconds", o->seconds, "tail", o->tail)
               : json_null();
}

/** What ids of an array are called: a run finds them again by that. null: nothing, or not in UTF-8. */
static json_t *list_ids(const mixt_data_array *a)
{
    json_t *list = a->names ? json_array() : json_null();
    for (int64_t i = 0; a->names && i < a->ids; i++)
        if (mixt__json_add(list, mixt__json_string(a->names[i])))
            return json_decref(list), json_null();
    return list;
}

/** The arrays of a set that names them; else null. */
static json_t *list_arrays(const mixt_data_info *info)
{
    if (info->array_count <= 2)
        return json_null();
    json_t *list = json_array();
    for (int i = 0; i < info->array_count; i++) {
        const mixt_data_array *a = &info->arrays[i];
        json_t *shape = json_array();
        for (int k = 0; k < a->rank; k++)
            mixt__json_add(shape, json_integer(a->dims[k]));
        json_t *entry =
            json_pack("{s:s, s:b, s:s, s:o, s:I, s:o}", "name", a->name, "target", a->target, "dtype",
                      mixt_dtype_name(a->dtype), "shape", shape, "ids", (json_int_t)a->ids, "names", list_ids(a));
        if (mixt__json_add(list, entry))
            return json_decref(list), NULL;
    }
    return list;
}

json_t *mixt__data_facts_pack(const mixt_data *data)
{
    const mixt_data_info *info = &data->info;
    const mixt_data_options *o = &data->options;
    json_t *facts = json_object();
    const struct {
        const char *key;
        json_t *value;
    } fields[] = {
        {"kind", mixt__json_string(info->kind)},
        {"path", text_of(info->path)},
        {"input_dtype", mixt__json_string(mixt_dtype_name(info->input_dtype))},
        {"input_shape", list_dims(info)},
        {"normalise", mixt__json_string(normalise_names[o->normalise])},
        {"mean", list_floats(info->mean, info->channels)},
        {"std", list_floats(info->std, info->channels)},
        {"missing", mixt__json_string(missing_names[o->missing])},
        {"fill", list_floats(data->fill, data->fill_count)},
        {"crop", json_integer(o->crop)},
        {"resize", json_integer(o->resize)},
        {"min_area", json_real((double)o->min_area)},
        {"audio", pack_audio(o)},
        {"target", mixt__json_string(target_names[info->target])},
        {"targets", json_integer(info->target_elements)},
        {"next_tokens", json_boolean(info->next_tokens)},
        {"classes", json_integer(info->classes)},
        {"class_names", list_names(info)},
        {"samples", json_integer(info->samples)},
        {"arrays", list_arrays(info)},
        {"target_mean", json_real(info->target_mean)},
        {"target_scale", json_real(info->target_scale)},
        {"table", mixt__schema_pack(data->schema)},
    };
    bool complete = facts != NULL;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) // each value is taken over, also on failure
        complete = !mixt__json_set(facts, fields[i].key, fields[i].value) && complete;
    if (complete)
        return facts;
    json_decref(facts);
    return NULL;
}

/* ---- unpack ---- */

static mixt_status wrong(const char *key, const char *wanted)
{
    return mixt__fail(MIXT_ERROR_FORMAT, "\"%s\" is missing or wrong: expected %s", key, wanted);
}

static mixt_status get_int(const json_t *facts, const char *key, int64_t min, int64_t max, int64_t *value)
{
    const json_t *found = json_object_get(facts, key);
    *value = json_is_integer(found) ? (int64_t)json_integer_value(found) : min - 1;
    return *value >= min && *value <= max ? MIXT_OK : wrong(key, "a whole number in its range");
}

static mixt_status get_text(mixt_data *data, const json_t *facts, const char *key, const char **text)
{
    const char *found = json_string_value(json_object_get(facts, key));
    if (!found)
        return wrong(key, "a text");
    *text = mixt__arena_strdup(&data->arena, found);
    return *text ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the facts of a data set");
}

/** The place of a text among `names`. */
static mixt_status get_choice(const json_t *facts, const char *key, const char *const *names, int count, int *choice)
{
    const char *found = json_string_value(json_object_get(facts, key));
    for (*choice = 0; found && *found && *choice < count; ++*choice)
        if (!strcmp(names[*choice], found))
            return MIXT_OK;
    return wrong(key, "one of the words that mixt writes");
}

static mixt_status get_floats(mixt_data *data, const json_t *facts, const char *key, bool positive, int64_t count,
                              const float **values)
{
    const json_t *list = json_object_get(facts, key);
    if (!json_is_array(list) || (int64_t)json_array_size(list) != count)
        return wrong(key, "a number for each channel, the last dimension of a sample");
    float *made = mixt__arena_alloc(&data->arena, (size_t)(count + 1) * sizeof *made);
    if (!made)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the facts of a data set");
    for (int64_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        made[i] = (float)json_number_value(value);
        if (!json_is_number(value) || !isfinite(made[i]) || (positive && !(made[i] > 0)))
            return wrong(key, positive ? "finite numbers above 0" : "finite numbers");
    }
    *values = made;
    return MIXT_OK;
}

static mixt_status get_names(mixt_data *data, const json_t *facts)
{
    mixt_data_info *info = &data->info;
    const json_t *list = json_object_get(facts, "class_names");
    if (json_is_null(list))
        return MIXT_OK;
    if (!json_is_array(list) || (int64_t)json_array_size(list) != info->classes)
        return wrong("class_names", "null, or a name for each class");
    const char **names = mixt__arena_alloc(&data->arena, (size_t)(info->classes + 1) * sizeof *names);
    for (int64_t i = 0; names && i < info->classes; i++) {
        const char *name = json_string_value(json_array_get(list, (size_t)i));
        if (!name)
            return wrong("class_names", "texts");
        names[i] = mixt__arena_strdup(&data->arena, name);
        if (!names[i])
            names = NULL;
    }
    info->class_names = names;
    return names ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the facts of a data set");
}

static mixt_status get_input(mixt_data *data, const json_t *facts)
{
    mixt_data_info *info = &data->info;
    const char *dtype = json_string_value(json_object_get(facts, "input_dtype"));
    const json_t *shape = json_object_get(facts, "input_shape");
    info->input_dtype = mixt_dtype_parse(dtype ? dtype : "");
    if (info->input_dtype != MIXT_DTYPE_FP32 && info->input_dtype != MIXT_DTYPE_INT32)
        return wrong("input_dtype", "fp32 or int32");
    size_t rank = json_array_size(shape);
    bool named = json_is_array(json_object_get(facts, "arrays")); // then each array has its own
    if ((rank < 1 && !named) || rank >= MIXT_MAX_RANK)
        return wrong("input_shape", "1 to a few dimensions");
    info->input_rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        info->input_dims[i] = (int64_t)json_integer_value(json_array_get(shape, i));
        if (info->input_dims[i] < 1)
            return wrong("input_shape", "dimensions of at least 1");
    }
    if (!mixt__shape_elements(info->input_rank, info->input_dims, &info->input_elements))
        return wrong("input_shape", "a sample that fits into memory");
    bool as_is =
        info->input_dtype != MIXT_DTYPE_FP32 || !json_array_size(json_object_get(facts, "mean")); // random data
    info->channels = as_is || !rank ? 0 : info->input_dims[rank - 1];
    MIXT_TRY(get_floats(data, facts, "mean", false, info->channels, &info->mean));
    MIXT_TRY(get_floats(data, facts, "std", true, info->channels, &info->std));
    for (int64_t c = 0; c < info->channels; c++) // what a sample is multiplied by, and what is added
        if (!isfinite(1 / info->std[c]) || !isfinite(info->mean[c] / info->std[c]))
            return wrong("std", "numbers by which 1 and the mean can be divided");
    return MIXT_OK;
}

/** Facts of earlier versions do not speak of it. */
static mixt_status get_missing(mixt_data *data, const json_t *facts)
{
    const json_t *fill = json_object_get(facts, "fill");
    int64_t count = (int64_t)json_array_size(fill);
    int missing;
    if (!json_object_get(facts, "missing"))
        return MIXT_OK;
    MIXT_TRY(get_choice(facts, "missing", missing_names, MISSINGS, &missing));
    data->options.missing = (mixt_missing)missing;
    bool may = missing == MIXT_MISSING_MEAN || missing == MIXT_MISSING_FILL, must = missing == MIXT_MISSING_MEAN;
    if (!json_is_array(fill) || count > FILL_MAX || (count > 0 && !may) || (!count && must))
        return wrong("fill", "a list of numbers, empty unless \"missing\" is \"mean\" or \"fill\"");
    MIXT_TRY(get_floats(data, facts, "fill", false, count, &data->fill));
    data->fill_count = count;
    return MIXT_OK;
}

static mixt_status get_real(const json_t *facts, const char *key, double most, double *value)
{
    const json_t *found = json_object_get(facts, key);
    *value = json_number_value(found);
    return json_is_number(found) && *value > 0 && *value <= most ? MIXT_OK : wrong(key, "a number in its range");
}

/** Sets of no recordings have none, and facts of earlier versions do not speak of it. */
static mixt_status get_audio(mixt_data *data, const json_t *facts)
{
    mixt_data_options *o = &data->options;
    const json_t *audio = json_object_get(facts, "audio");
    if (!audio || json_is_null(audio))
        return MIXT_OK;
    MIXT_TRY(get_int(audio, "rate", 100, 768000, &o->rate));
    MIXT_TRY(get_int(audio, "mels", 1, 512, &o->mels));
    MIXT_TRY(get_real(audio, "window", 1000, &o->window));
    MIXT_TRY(get_real(audio, "hop", 1000, &o->hop));
    MIXT_TRY(get_real(audio, "seconds", 3600, &o->seconds));
    const json_t *tail = json_object_get(audio, "tail"); // those of earlier versions have none
    o->tail = tail ? json_number_value(tail) : -1;
    if (tail && !(json_is_number(tail) && o->tail >= -1 && o->tail <= 60))
        return wrong("tail", "a number in its range");
    return data->info.input_rank == 2 && data->info.input_dims[1] == o->mels ? MIXT_OK
                                                                             : wrong("mels", "the bands of a sample");
}

static mixt_status get_options(mixt_data *data, const json_t *facts)
{
    mixt_data_options *o = &data->options;
    int normalise;
    MIXT_TRY(get_choice(facts, "normalise", normalise_names, NORMALISES, &normalise));
    o->normalise = (mixt_normalise)normalise;
    MIXT_TRY(get_missing(data, facts));
    MIXT_TRY(get_audio(data, facts));
    MIXT_TRY(get_int(facts, "crop", 0, SIDE_MAX, &o->crop));
    MIXT_TRY(get_int(facts, "resize", 0, 2 * SIDE_MAX, &o->resize));
    const json_t *area = json_object_get(facts, "min_area");
    o->min_area = (float)json_number_value(area);
    return json_is_number(area) && o->min_area >= 0 && o->min_area <= 1 ? MIXT_OK : wrong("min_area", "0 to 1");
}

static mixt_status get_target(mixt_data *data, const json_t *facts)
{
    mixt_data_info *info = &data->info;
    const json_t *next = json_object_get(facts, "next_tokens");
    int target;
    MIXT_TRY(get_choice(facts, "target", target_names, TARGETS, &target));
    info->target = (mixt_target_kind)target;
    info->target_dtype = info->target == MIXT_TARGET_VALUES ? MIXT_DTYPE_FP32 : MIXT_DTYPE_INT32;
    data->options.target = info->target == MIXT_TARGET_TOKENS ? MIXT_TARGET_AUTO : info->target;
    MIXT_TRY(get_int(facts, "targets", 1, INT32_MAX, &info->target_elements));
    MIXT_TRY(get_int(facts, "classes", info->target != MIXT_TARGET_VALUES, CLASSES_MAX, &info->classes));
    MIXT_TRY(get_int(facts, "samples", 1, INT64_MAX / 2, &info->samples));
    info->target_mean = json_number_value(json_object_get(facts, "target_mean")); // 0 in those of earlier versions
    if (!isfinite(info->target_mean))
        return wrong("target_mean", "a finite number");
    info->target_scale = json_number_value(json_object_get(facts, "target_scale"));
    if (!(info->target_scale >= 0) || !isfinite(info->target_scale))
        return wrong("target_scale", "a finite number from 0");
    if (!json_is_boolean(next))
        return wrong("next_tokens", "true or false");
    info->next_tokens = json_is_true(next);
    return get_names(data, facts);
}

/** What ids are called; sets of earlier versions do not say. */
static mixt_status get_ids(mixt_data *data, const json_t *entry, mixt_data_array *a)
{
    const json_t *list = json_object_get(entry, "names");
    if (!json_is_array(list))
        return MIXT_OK;
    const char **names = mixt__arena_alloc(&data->arena, (size_t)(a->ids + 1) * sizeof *names);
    if (!names)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the facts of a data set");
    if (json_array_size(list) != (size_t)a->ids)
        return wrong("names", "as many as there are ids");
    for (int64_t i = 0; i < a->ids; i++) {
        const char *name = json_string_value(json_array_get(list, (size_t)i));
        if (!name)
            return wrong("names", "texts");
        if (!(names[i] = mixt__arena_strdup(&data->arena, name)))
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the facts of a data set");
    }
    a->names = names;
    return MIXT_OK;
}

static mixt_status get_array(mixt_data *data, const json_t *entry, mixt_data_array *a)
{
    const json_t *shape = json_object_get(entry, "shape"), *target = json_object_get(entry, "target");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    size_t rank = json_array_size(shape);
    MIXT_TRY(get_text(data, entry, "name", &a->name));
    MIXT_TRY(get_int(entry, "ids", 0, INT32_MAX, &a->ids));
    a->dtype = mixt_dtype_parse(dtype ? dtype : "");
    a->target = json_is_true(target);
    a->rank = (int)rank;
    if ((a->dtype != MIXT_DTYPE_FP32 && a->dtype != MIXT_DTYPE_INT32) || !json_is_boolean(target) ||
        !json_is_array(shape) || rank >= MIXT_MAX_RANK)
        return wrong("arrays", "name, target, dtype, shape and ids of each");
    for (size_t i = 0; i < rank; i++) {
        a->dims[i] = (int64_t)json_integer_value(json_array_get(shape, i));
        if (a->dims[i] < 1)
            return wrong("arrays", "dimensions of at least 1");
    }
    if (!mixt__shape_elements(a->rank, a->dims, &a->elements))
        return wrong("arrays", "samples that fit");
    return get_ids(data, entry, a);
}

/** Facts of sets with one input and one target, and those of earlier versions, name none. */
static mixt_status get_arrays(mixt_data *data, const json_t *facts)
{
    const json_t *list = json_object_get(facts, "arrays");
    size_t count = json_array_size(list);
    if (!list || json_is_null(list))
        return mixt__data_describe_arrays(data);
    if (count < 2 || count > MIXT_DATA_ARRAYS_MAX)
        return wrong("arrays", "a list of 2 to 16 arrays");
    mixt_data_array *arrays = mixt__arena_alloc(&data->arena, count * sizeof *arrays);
    if (!arrays)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the facts of a data set");
    for (size_t i = 0; i < count; i++) {
        MIXT_TRY(get_array(data, json_array_get(list, i), &arrays[i]));
        if (i && arrays[i - 1].target && !arrays[i].target)
            return wrong("arrays", "inputs first");
    }
    if (arrays[0].target || !arrays[count - 1].target)
        return wrong("arrays", "inputs first, then targets");
    data->info.arrays = arrays;
    data->info.array_count = (int)count;
    return mixt__data_describe_arrays(data);
}

/** Of a table: it must make the inputs that the arrays say. */
static mixt_status get_schema(mixt_data *data, const json_t *facts)
{
    MIXT_TRY(mixt__schema_unpack(&data->arena, json_object_get(facts, "table"), &data->schema));
    if (!data->schema)
        return MIXT_OK;
    const mixt_data_info *info = &data->info;
    int words = mixt_data_array_find(info, MIXT_WORDS_INPUT);
    int64_t embedded = words < 0 ? 0 : info->arrays[words].elements, ids = words < 0 ? 0 : info->arrays[words].ids;
    bool fits = data->schema->features == info->arrays[0].elements && data->schema->embedded == embedded &&
                data->schema->ids == ids;
    return fits ? MIXT_OK : wrong("table", "columns that make the inputs");
}

/* ---- the set ---- */

static mixt_status sample(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    (void)index;
    (void)epoch;
    (void)input;
    (void)target;
    return mixt__fail(MIXT_ERROR_STATE, "%s:%s: only its description is open, not its samples", data->info.kind,
                      data->path);
}

static void nothing(mixt_data *data)
{
    (void)data;
}

static const mixt__data_kind kind_facts = {
    .name = "facts",
    .what = "facts of a set",
    .sample = sample,
    .close = nothing,
};

int64_t mixt__data_facts_other_class(const char *const *now, int64_t now_count, const char *const *then,
                                     int64_t then_count)
{
    for (int64_t i = 0; now && then && i < now_count && i < then_count; i++)
        if (strcmp(now[i], then[i]) && !strchr(then[i], '?'))
            return i;
    return -1;
}

bool mixt__data_is_facts(const mixt_data *data)
{
    return data && data->kind == &kind_facts;
}

mixt_status mixt__data_facts_unpack(const json_t *facts, mixt_data **result)
{
    *result = NULL;
    mixt_data *data = mixt__alloc(sizeof *data);
    mixt_status status;
    if (!data)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the facts of a data set");
    data->kind = &kind_facts;
    data->part = MIXT_PART_TRAIN;
    data->options = MIXT_OPTIONS(mixt_data_options);
    data->info.split = mixt__part_names[MIXT_PART_TRAIN];
    MIXT_TRY_CLEANUP(get_text(data, facts, "kind", &data->info.kind));
    MIXT_TRY_CLEANUP(get_text(data, facts, "path", &data->path));
    data->info.path = data->path;
    MIXT_TRY_CLEANUP(get_input(data, facts));
    MIXT_TRY_CLEANUP(get_options(data, facts));
    MIXT_TRY_CLEANUP(get_target(data, facts));
    MIXT_TRY_CLEANUP(get_arrays(data, facts));
    MIXT_TRY_CLEANUP(get_schema(data, facts));
    mixt__handle_add(&data->handle, data, "data", NULL);
    *result = data;
    return MIXT_OK;
cleanup:
    mixt__data_drop(data);
    return status;
}
