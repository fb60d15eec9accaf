/* What a batch of a data set looks like to a model. */
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

/** Named arrays in place of one input and one target. */
static void name_arrays(const mixt_data_info *info, int64_t batch, mixt__batch_spec *spec)
{
    bool has_target = false;
    for (int i = 0; i < info->array_count; i++) {
        const mixt_data_array *a = &info->arrays[i];
        mixt__array array = {.target = a->target, .dtype = a->dtype, .shape = {a->rank + 1, {batch}}};
        memcpy(array.shape.dims + 1, a->dims, (size_t)a->rank * sizeof *a->dims);
        snprintf(array.name, sizeof array.name, "%s", a->name);
        if (i == 0) {
            memcpy(spec->input_name, array.name, sizeof spec->input_name);
        } else if (a->target && !has_target) {
            memcpy(spec->target_name, array.name, sizeof spec->target_name);
            spec->target_dtype = array.dtype;
            spec->target = array.shape;
            has_target = true;
        } else {
            spec->more[spec->more_count++] = array;
        }
    }
}

mixt__batch_spec mixt__trainer_spec_of(const mixt_data *data, int64_t batch)
{
    return mixt__trainer_spec_as(mixt_data_describe(data), batch);
}

mixt__batch_spec mixt__trainer_spec_as(const mixt_data_info *info, int64_t batch)
{
    mixt__batch_spec spec = {.input_dtype = info->input_dtype, .target_dtype = info->target_dtype};
    spec.input = (mixt__shape){info->input_rank + 1, {batch}};
    for (int i = 0; i < info->input_rank; i++)
        spec.input.dims[i + 1] = info->input_dims[i];
    spec.target = (mixt__shape){1, {batch}};
    if (info->target != MIXT_TARGET_CLASS)
        spec.target = (mixt__shape){2, {batch, info->target_elements}};
    if (info->array_count > 2)
        name_arrays(info, batch, &spec);
    return spec;
}
