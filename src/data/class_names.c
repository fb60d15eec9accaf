/* Names of classes that the data does not know: given as a list, or as a file with one a line. */
#include "data/data.h"

#include <string.h>

enum { NAMES_MAX = 1 << 16, NAME_BYTES = 256 };

/** Cuts a text into names; those of a file stand in lines, of which empty ones count for nothing. */
static mixt_status cut(mixt_data *data, const char *text, const char *ends, const char **names, int64_t *count)
{
    *count = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ends), from = strspn(at, " \t"), size = length;
        while (size > from && strchr(" \t\r", at[size - 1]))
            size--;
        from = from < size ? from : size;
        if (size - from >= NAME_BYTES)
            return mixt__fail(MIXT_ERROR_CONFIG, "data.names: name %lld is longer than %d bytes", (long long)*count,
                              NAME_BYTES - 1);
        if (size > from && *count == NAMES_MAX)
            return mixt__fail(MIXT_ERROR_CONFIG, "data.names: more than %d names", NAMES_MAX);
        if (size > from) {
            const char *name = mixt__arena_printf(&data->arena, "%.*s", (int)(size - from), at + from);
            if (!name)
                return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of classes");
            names[(*count)++] = name;
        }
        at += length + (at[length] != '\0');
    }
    return MIXT_OK;
}

static mixt_status read_names(mixt_data *data, const char ***names, int64_t *count)
{
    const char *given = data->options.names;
    mixt__bytes file = {0};
    *names = mixt__arena_alloc(&data->arena, NAMES_MAX * sizeof **names);
    if (!*names)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of classes");
    bool list = strchr(given, ',') != NULL || !mixt__path_is_file(given);
    if (list && !strchr(given, ','))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "data.names=%s: no such file; expected one with a name a line, or names as in cat,dog",
                          given);
    if (list)
        return cut(data, given, ",", *names, count);
    MIXT_TRY(mixt__bytes_read(given, &file));
    mixt_status status = mixt__text_check(given, file.bytes, file.size);
    if (status == MIXT_OK)
        status = cut(data, (const char *)file.bytes + mixt__bytes_mark(&file), "\n", *names, count);
    mixt__bytes_free(&file);
    return status;
}

mixt_status mixt__class_names_take(mixt_data *data)
{
    mixt_data_info *info = &data->info;
    const mixt_data *like = data->options.like;
    const char **names;
    int64_t count;
    if (info->target != MIXT_TARGET_CLASS && data->options.names)
        return mixt__fail(MIXT_ERROR_CONFIG, "data.names are for classes, but the targets of %s are none", data->path);
    if (info->target == MIXT_TARGET_CLASS && !info->class_names && like && like->info.class_names &&
        like->info.classes == info->classes) { // as they were when the run was trained
        names = mixt__arena_alloc(&data->arena, (size_t)info->classes * sizeof *names);
        for (int64_t i = 0; names && i < info->classes; i++)
            if (!(names[i] = mixt__arena_strdup(&data->arena, like->info.class_names[i])))
                names = NULL;
        info->class_names = names;
        return names ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of classes");
    }
    if (!data->options.names)
        return MIXT_OK;
    MIXT_TRY(read_names(data, &names, &count));
    if (count != info->classes)
        return mixt__fail(MIXT_ERROR_CONFIG, "data.names: %lld names, but %s has %lld classes%s", (long long)count,
                          data->path, (long long)info->classes,
                          count > info->classes ? ": data.classes says how many there may be" : "");
    info->class_names = names;
    return MIXT_OK;
}
