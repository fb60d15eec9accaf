/* Attributes of nodes, shapes of inputs and outputs, files of external data. */
#include "base/status.h"
#include "onnx/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return (double)value;
}

static bool is_named(mixt__wire_span message, const char *name)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    while (mixt__wire_next(&w, &field))
        if (field.number == MIXT_ONNX_ATTRIBUTE_NAME && field.type == MIXT_WIRE_BYTES)
            return mixt__wire_is(field.bytes, name);
    return false;
}

static mixt__onnx_attribute read_attribute(mixt__wire_span message)
{
    mixt__onnx_attribute a = {.message = message};
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    int found = 0; // by the field that is there, where no type is said
    while (mixt__wire_next(&w, &field)) {
        switch (field.number) {
        case MIXT_ONNX_ATTRIBUTE_TYPE:
            a.type = field.value < 32 ? (int)field.value : 0;
            break;
        case MIXT_ONNX_ATTRIBUTE_F:
            a.f = float_of(field.value);
            found = MIXT_ONNX_IS_FLOAT;
            break;
        case MIXT_ONNX_ATTRIBUTE_I:
            a.i = (int64_t)field.value;
            found = MIXT_ONNX_IS_INT;
            break;
        case MIXT_ONNX_ATTRIBUTE_S:
            a.s = field.bytes;
            found = MIXT_ONNX_IS_STRING;
            break;
        case MIXT_ONNX_ATTRIBUTE_T:
        case MIXT_ONNX_ATTRIBUTE_G:
            a.s = field.bytes;
            found = field.number == MIXT_ONNX_ATTRIBUTE_T ? MIXT_ONNX_IS_TENSOR : MIXT_ONNX_IS_GRAPH;
            break;
        case MIXT_ONNX_ATTRIBUTE_FLOATS:
            found = MIXT_ONNX_IS_FLOATS;
            break;
        case MIXT_ONNX_ATTRIBUTE_INTS:
            found = MIXT_ONNX_IS_INTS;
            break;
        default:
            break;
        }
    }
    a.type = a.type ? a.type : found;
    return a;
}

mixt__onnx_attribute mixt__onnx_attribute_of(const mixt__onnx_node *node, const char *name)
{
    mixt__wire w = mixt__wire_read(node->message);
    mixt__wire_field field;
    while (mixt__wire_next(&w, &field))
        if (field.number == MIXT_ONNX_NODE_ATTRIBUTE && field.type == MIXT_WIRE_BYTES && is_named(field.bytes, name))
            return read_attribute(field.bytes);
    return (mixt__onnx_attribute){0};
}

int64_t mixt__onnx_int(const mixt__onnx_node *node, const char *name, int64_t fallback)
{
    mixt__onnx_attribute a = mixt__onnx_attribute_of(node, name);
    return a.type == MIXT_ONNX_IS_INT ? a.i : fallback;
}

double mixt__onnx_float(const mixt__onnx_node *node, const char *name, double fallback)
{
    mixt__onnx_attribute a = mixt__onnx_attribute_of(node, name);
    return a.type == MIXT_ONNX_IS_FLOAT ? a.f : fallback;
}

bool mixt__onnx_text_is(const mixt__onnx_node *node, const char *name, const char *text)
{
    mixt__onnx_attribute a = mixt__onnx_attribute_of(node, name);
    return a.type == MIXT_ONNX_IS_STRING && mixt__wire_is(a.s, text);
}

bool mixt__onnx_texts_are(const mixt__onnx_node *node, const char *name, const char *text)
{
    mixt__onnx_attribute a = mixt__onnx_attribute_of(node, name);
    mixt__wire w = mixt__wire_read(a.message);
    mixt__wire_field field;
    bool all = true, any = false;
    while (mixt__wire_next(&w, &field))
        if (field.number == MIXT_ONNX_ATTRIBUTE_STRINGS && field.type == MIXT_WIRE_BYTES) {
            any = true;
            all = all && mixt__wire_is(field.bytes, text);
        }
    return any && all;
}

int mixt__onnx_ints(const mixt__onnx_node *node, const char *name, int64_t *numbers, int most)
{
    mixt__onnx_attribute a = mixt__onnx_attribute_of(node, name);
    mixt__wire w = mixt__wire_read(a.message);
    mixt__wire_field field;
    uint64_t value;
    int count = 0;
    if (a.type != MIXT_ONNX_IS_INTS)
        return -1;
    while (mixt__wire_next(&w, &field)) {
        if (field.number != MIXT_ONNX_ATTRIBUTE_INTS)
            continue;
        mixt__wire packed = mixt__wire_read(field.bytes);
        bool single = field.type == MIXT_WIRE_VARINT;
        for (value = field.value; count < INT32_MAX && (single || mixt__wire_varint(&packed, &value)); single = false) {
            if (count < most)
                numbers[count] = (int64_t)value;
            count++;
        }
    }
    return count;
}

int mixt__onnx_floats(const mixt__onnx_node *node, const char *name, double *numbers, int most)
{
    mixt__onnx_attribute a = mixt__onnx_attribute_of(node, name);
    mixt__wire w = mixt__wire_read(a.message);
    mixt__wire_field field;
    int count = 0;
    if (a.type != MIXT_ONNX_IS_FLOATS)
        return -1;
    while (mixt__wire_next(&w, &field)) {
        bool packed = field.type == MIXT_WIRE_BYTES;
        if (field.number != MIXT_ONNX_ATTRIBUTE_FLOATS)
            continue;
        for (size_t at = 0; count < INT32_MAX && at < (packed ? field.bytes.bytes / 4 : 1); at++) {
            uint32_t bits = (uint32_t)field.value;
            if (packed)
                memcpy(&bits, field.bytes.at + 4 * at, sizeof bits);
            if (count < most)
                numbers[count] = float_of(bits);
            count++;
        }
    }
    return count;
}

/* ---- shapes ---- */

/** The last field of a number within a message; at NULL: it has none. */
static mixt__wire_span part_of(mixt__wire_span message, uint32_t number)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    mixt__wire_span part = {0};
    while (mixt__wire_next(&w, &field))
        if (field.number == number && field.type == MIXT_WIRE_BYTES)
            part = field.bytes;
    return part;
}

static int64_t dim_of(mixt__wire_span message)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    int64_t dim = -1;
    while (mixt__wire_next(&w, &field))
        if (field.number == MIXT_ONNX_DIM_VALUE && field.type == MIXT_WIRE_VARINT && field.value <= INT32_MAX)
            dim = (int64_t)field.value;
    return dim ? dim : -1; // 0 stands for "not known" in some writers' files
}

bool mixt__onnx_value_shape(const mixt__onnx_value *value, mixt__onnx_type *type, int *rank,
                            int64_t dims[MIXT_ONNX_RANK])
{
    mixt__wire_span tensor = part_of(value->type, MIXT_ONNX_TYPE_TENSOR), shape = part_of(tensor, MIXT_ONNX_TYPE_SHAPE);
    mixt__wire w = mixt__wire_read(tensor);
    mixt__wire_field field;
    *type = MIXT_ONNX_UNDEFINED;
    *rank = 0;
    while (mixt__wire_next(&w, &field))
        if (field.number == MIXT_ONNX_TYPE_ELEMENT && field.type == MIXT_WIRE_VARINT &&
            field.value < MIXT_ONNX_TYPE_COUNT)
            *type = (mixt__onnx_type)field.value;
    if (!shape.at)
        return false;
    w = mixt__wire_read(shape);
    while (mixt__wire_next(&w, &field)) {
        if (field.number != MIXT_ONNX_SHAPE_DIM || field.type != MIXT_WIRE_BYTES)
            continue;
        if (*rank == MIXT_ONNX_RANK)
            return false;
        dims[(*rank)++] = dim_of(field.bytes);
    }
    return true;
}

/* ---- external data ---- */

struct mixt__onnx_external {
    mixt__wire_span location;
    mixt__file_map map;
    struct mixt__onnx_external *next;
};

/** Whether a place stays below the folder of the model: relative, and no step up. */
static bool stays_below(mixt__wire_span location)
{
    for (size_t begin = 0, end; begin <= location.bytes; begin = end + 1) {
        for (end = begin; end < location.bytes && location.at[end] != '/' && location.at[end] != '\\'; end++)
            ;
        if (end - begin == 2 && location.at[begin] == '.' && location.at[begin + 1] == '.')
            return false;
    }
    return location.bytes && location.at[0] != '/' && mixt__wire_is_text(location);
}

/** The same where links are followed: a folder below it may be one. */
static bool lies_below(const char *path, const char *model)
{
    const char *slash = strrchr(model, '/');
    char *folder = slash ? strndup(model, (size_t)(slash - model) + 1) : strdup(".");
    char *below = folder ? realpath(folder, NULL) : NULL, *real = realpath(path, NULL);
    size_t length = below ? strlen(below) : 0;
    bool lies = !real || (below && !strncmp(real, below, length) && (real[length] == '/' || !strcmp(below, "/")));
    free(folder);
    free(below);
    free(real);
    return lies; // of a file that is not there opening tells
}

mixt_status mixt__onnx_external_open(mixt__onnx_file *f, mixt__wire_span location, mixt__wire_span *whole)
{
    char name[256], path[4400];
    for (mixt__onnx_external *e = f->external; e; e = e->next)
        if (mixt__wire_equal(e->location, location)) {
            *whole = (mixt__wire_span){e->map.data, e->map.bytes};
            return MIXT_OK;
        }
    mixt__onnx_text(location, name, sizeof name);
    if (!stays_below(location) || location.bytes >= sizeof name)
        return mixt__fail(
            MIXT_ERROR_FORMAT,
            "%s: external data in '%s': files of external data must lie in the model's folder or below it", f->path,
            stays_below(location) ? "a name of more than 255 bytes" : name);
    const char *slash = strrchr(f->path, '/');
    int folder = slash ? (int)(slash - f->path) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*s%s", folder, f->path, name) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path of its external data is too long", f->path);
    if (!lies_below(path, f->path))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: external data in '%s' leads out of the model's folder", f->path,
                          name);
    mixt__onnx_external *e = mixt__arena_alloc(&f->arena, sizeof *e);
    if (!e)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open its external data", f->path);
    mixt_status status = mixt__file_map_open_own(path, &e->map); // a link could lead anywhere
    if (status != MIXT_OK)
        return mixt__fail_context(status, "%s: external data", f->path);
    e->location = location;
    e->next = f->external;
    f->external = e;
    *whole = (mixt__wire_span){e->map.data, e->map.bytes};
    return MIXT_OK;
}

void mixt__onnx_external_close(mixt__onnx_file *f)
{
    for (mixt__onnx_external *e = f->external; e; e = e->next)
        if (e->map.path)
            mixt__file_map_close(&e->map);
    f->external = NULL;
}
