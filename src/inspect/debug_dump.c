/* Values of a step as NumPy files.
 *
 * All names are checked before the first file is written. BF16 and FP8, which such files do not have, become FP32: the
 * same numbers.
 */
#include "inspect/debug.h"

#include "api/api.h"
#include "num/num.h"
#include "store/npy.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_wanted(const mixt_debug_options *o, const char *name)
{
    return name && !fnmatch(o->dump, name, 0);
}

static const char *path_of(const mixt_debug_options *o, const char *name, char path[MIXT_DEBUG_PATH])
{
    snprintf(path, MIXT_DEBUG_PATH, "%s/%s.npy", o->folder, name);
    return path;
}

/** Room for the file: there is none of its name, or it may be replaced. */
static mixt_status check_file(const mixt_debug_options *o, const char *name)
{
    char path[MIXT_DEBUG_PATH];
    if (strlen(o->folder) + strlen(name) + 16 > MIXT_DEBUG_PATH)
        return mixt__fail(MIXT_ERROR_FILE, "%s/%s.npy: the name is too long for a file", o->folder, name);
    if (!o->overwrite && !access(path_of(o, name, path), F_OK))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: exists already and is not overwritten unless you ask for it (--overwrite)", path);
    return MIXT_OK;
}

mixt_status mixt__debug_dump_check(const mixt_trainer *t, const mixt__graph *graph, const char *const *names,
                                   const mixt_debug_options *o)
{
    int64_t count = 0;
    mixt_param_info info;
    for (int64_t v = 1; v < graph->value_count; v++)
        if (is_wanted(o, names[v])) {
            MIXT_TRY(check_file(o, names[v]));
            count++;
        }
    for (int64_t p = 0; p < mixt_trainer_param_count(t); p++) {
        MIXT_TRY(mixt_trainer_param(t, p, &info));
        if (is_wanted(o, info.name)) {
            MIXT_TRY(check_file(o, info.name));
            count++;
        }
    }
    if (!count)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "'%s': no value has such a name; values are LAYER.OP.forward, LAYER.OP.backward, "
                          "PARAMETER.grad and PARAMETER, as 'mixt debug --json' names them",
                          o->dump);
    if (mkdir(o->folder, 0777) && errno != EEXIST)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be created: %s", o->folder, strerror(errno));
    return MIXT_OK;
}

/** @param numbers as FP32 */
static mixt_status write_npy(const char *path, mixt_dtype dtype, int rank, const int64_t *dims, const float *numbers,
                             bool overwrite)
{
    bool half = mixt__format_low(dtype) && mixt__npy_descr(dtype);
    mixt__file_tensor t = {.name = "array", .dtype = half ? dtype : MIXT_DTYPE_FP32, .rank = rank, .data = numbers};
    int64_t count = 1;
    void *low = NULL;
    for (int i = 0; i < rank; i++)
        count *= t.dims[i] = dims[i];
    if (half) {
        low = mixt__alloc_uninit((size_t)count * 2 + 1);
        if (!low)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to write %s", path);
        mixt__narrow(dtype)(low, numbers, count);
        t.data = low;
    }
    t.bytes = (size_t)count * mixt_dtype_size(t.dtype);
    mixt_status status = mixt__npy_write(path, &t, overwrite);
    mixt__free(low);
    return status;
}

mixt_status mixt__debug_dump_value(const mixt_debug_options *o, const char *name, const mixt__value *value,
                                   const float *numbers)
{
    char path[MIXT_DEBUG_PATH];
    if (!o->dump || !is_wanted(o, name))
        return MIXT_OK;
    return write_npy(path_of(o, name, path), value->dtype, value->shape.rank, value->shape.dims, numbers, o->overwrite);
}

mixt_status mixt__debug_dump_params(const mixt_trainer *t, const mixt_debug_options *o)
{
    mixt_param_info info;
    char path[MIXT_DEBUG_PATH];
    for (int64_t p = 0; p < mixt_trainer_param_count(t); p++) {
        MIXT_TRY(mixt_trainer_param(t, p, &info));
        if (!is_wanted(o, info.name))
            continue;
        float *numbers = mixt__alloc_uninit((size_t)info.count * sizeof *numbers + 1);
        if (!numbers)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to write %s", info.name);
        mixt_status status = mixt_trainer_param_get(t, p, numbers);
        if (status == MIXT_OK)
            status =
                write_npy(path_of(o, info.name, path), MIXT_DTYPE_FP32, info.rank, info.dims, numbers, o->overwrite);
        mixt__free(numbers);
        MIXT_TRY(status);
    }
    return MIXT_OK;
}
