/* A batch's blocks: where each named array lies in them. */
#include "data/data.h"

#include "base/block.h"

#include <string.h>

/** The arrays of a set of one input and one target. */
static mixt_status describe_pair(mixt_data *data)
{
    mixt_data_info *info = &data->info;
    mixt_data_array *arrays = mixt__arena_alloc(&data->arena, 2 * sizeof *arrays);
    if (!arrays)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory", info->kind, info->path);
    if (!mixt__shape_elements(info->input_rank, info->input_dims, &info->input_elements))
        return mixt__fail(MIXT_ERROR_SHAPE, "%s:%s: a sample is too large", info->kind, info->path);
    bool tokens = info->input_dtype == MIXT_DTYPE_INT32;
    arrays[0] = (mixt_data_array){.name = "input",
                                  .dtype = info->input_dtype,
                                  .rank = info->input_rank,
                                  .elements = info->input_elements,
                                  .ids = tokens ? info->classes : 0};
    memcpy(arrays[0].dims, info->input_dims, sizeof arrays[0].dims);
    arrays[1] = (mixt_data_array){.name = "target",
                                  .target = true,
                                  .dtype = info->target_dtype,
                                  .rank = info->target != MIXT_TARGET_CLASS,
                                  .dims = {info->target_elements},
                                  .elements = info->target_elements,
                                  .ids = info->classes};
    info->arrays = arrays;
    info->array_count = 2;
    return MIXT_OK;
}

mixt_status mixt__data_describe_arrays(mixt_data *data)
{
    mixt_data_info *info = &data->info;
    int64_t elements[2] = {0, 0};
    if (!info->arrays)
        return describe_pair(data);
    if (info->array_count < 2 || info->array_count > MIXT_DATA_ARRAYS_MAX)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s:%s: %d arrays, expected 2 to %d", info->kind, info->path,
                          info->array_count, MIXT_DATA_ARRAYS_MAX);
    for (int i = 0; i < info->array_count; i++) {
        const mixt_data_array *a = &info->arrays[i];
        if (__builtin_add_overflow(elements[a->target], a->elements, &elements[a->target]) ||
            elements[a->target] > INT64_MAX / 64)
            return mixt__fail(MIXT_ERROR_SHAPE, "%s:%s: a sample is too large", info->kind, info->path);
    }
    const mixt_data_array *first = &info->arrays[0];
    info->input_dtype = first->dtype;
    info->input_rank = first->rank;
    memcpy(info->input_dims, first->dims, sizeof info->input_dims);
    info->input_elements = elements[0];
    info->target_elements = elements[1];
    return MIXT_OK;
}

int mixt_data_array_find(const mixt_data_info *info, const char *name)
{
    for (int i = 0; info && name && i < info->array_count; i++)
        if (!strcmp(info->arrays[i].name, name))
            return i;
    return -1;
}

/** Where array `index` begins in its block; with -1 the bytes of all of it. SIZE_MAX: more than can be. */
static size_t block_bytes(const mixt_data_info *info, int64_t batch, bool target, int index)
{
    mixt__block block = {0};
    for (int i = 0; i < info->array_count; i++) {
        int64_t elements;
        if (info->arrays[i].target != target)
            continue;
        if (batch < 0 || __builtin_mul_overflow(batch, info->arrays[i].elements, &elements) ||
            elements > INT64_MAX / 64)
            return SIZE_MAX;
        size_t begin = mixt__block_add(&block, (size_t)elements * 4);
        if (i == index)
            return begin;
    }
    return mixt__block_bytes(&block);
}

size_t mixt_data_input_bytes(const mixt_data *data, int64_t batch)
{
    return block_bytes(mixt_data_describe(data), batch, false, -1);
}

size_t mixt_data_target_bytes(const mixt_data *data, int64_t batch)
{
    return block_bytes(mixt_data_describe(data), batch, true, -1);
}

size_t mixt_data_array_at(const mixt_data *data, int64_t batch, int index)
{
    const mixt_data_info *info = mixt_data_describe(data);
    return index >= 0 && index < info->array_count ? block_bytes(info, batch, info->arrays[index].target, index) : 0;
}

mixt__data_places mixt__data_places_of(const mixt_data *data, int64_t batch, int64_t first, void *input, void *target)
{
    return mixt__data_places_as(&data->info, batch, first, input, target);
}

mixt__data_places mixt__data_places_as(const mixt_data_info *info, int64_t batch, int64_t first, void *input,
                                       void *target)
{
    mixt__data_places places = {{0}};
    for (int i = 0; i < info->array_count; i++)
        places.at[i] = (char *)(info->arrays[i].target ? target : input) +
                       block_bytes(info, batch, info->arrays[i].target, i) + first * info->arrays[i].elements * 4;
    return places;
}

void mixt__data_copy_samples(const mixt_data *data, int64_t batch, int64_t begin, int64_t end, const void *input,
                             const void *target, void *to_input, void *to_target)
{
    mixt__data_places from =
        mixt__data_places_of(data, batch, begin, (void *)(uintptr_t)input, (void *)(uintptr_t)target);
    mixt__data_places to = mixt__data_places_of(data, batch, begin, to_input, to_target);
    for (int i = 0; i < data->info.array_count; i++)
        memcpy(to.at[i], from.at[i], (size_t)((end - begin) * data->info.arrays[i].elements) * 4);
}
