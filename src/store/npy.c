/* .npy: magic, version, header length, a Python dictionary as text, the array. */
#include "store/npy.h"

#include "base/status.h"
#include "num/format.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAGIC = 6, VERSION = 2, HEADER_LIMIT = 65536, ALIGNMENT = 64 };

static const char magic[MAGIC + 1] = "\x93NUMPY";

static const struct {
    const char *descr;
    mixt_dtype dtype;
} descrs[] = {
    {"<f4", MIXT_DTYPE_FP32},  {"<f2", MIXT_DTYPE_FP16},  {"<f8", MIXT_DTYPE_FP64},  {"|i1", MIXT_DTYPE_INT8},
    {"|u1", MIXT_DTYPE_UINT8}, {"<i4", MIXT_DTYPE_INT32}, {"<i8", MIXT_DTYPE_INT64},
};
enum { DESCRS = sizeof descrs / sizeof descrs[0] };

static const struct {
    const char *descr;
    mixt__npy_numbers numbers;
    size_t size;
} others[] = {
    {"|b1", MIXT_NPY_BOOL, 1}, {"<i2", MIXT_NPY_INT16, 2}, {"<u2", MIXT_NPY_UINT16, 2}, {"<u4", MIXT_NPY_UINT32, 4}};
enum { OTHERS = sizeof others / sizeof others[0] };

/** The header text while it is read. */
typedef struct parser {
    const char *path, *text;
    size_t length, at;
    size_t file_offset; // of text[0]
} parser;

const char *mixt__npy_descr(mixt_dtype dtype)
{
    for (int i = 0; i < DESCRS; i++)
        if (descrs[i].dtype == mixt__dtype_stored(dtype))
            return descrs[i].descr;
    return NULL;
}

static mixt_status parse_error(const parser *p, const char *expected)
{
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: header at offset %zu: expected %s", p->path, p->file_offset + p->at,
                      expected);
}

static void skip_spaces(parser *p)
{
    while (p->at < p->length && strchr(" \t\r\n", p->text[p->at]) && p->text[p->at])
        p->at++;
}

/** Takes `token` when it comes next. */
static bool take(parser *p, const char *token)
{
    skip_spaces(p);
    size_t length = strlen(token);
    if (p->length - p->at < length || memcmp(p->text + p->at, token, length))
        return false;
    p->at += length;
    return true;
}

/** A quoted text without escapes, at most `size` - 1 characters. */
static bool take_quoted(parser *p, char *out, size_t size)
{
    skip_spaces(p);
    if (p->at >= p->length || (p->text[p->at] != '\'' && p->text[p->at] != '"'))
        return false;
    char quote = p->text[p->at];
    size_t begin = p->at + 1, end = begin;
    while (end < p->length && p->text[end] != quote && p->text[end] != '\\')
        end++;
    if (end >= p->length || p->text[end] != quote || end - begin >= size)
        return false;
    memcpy(out, p->text + begin, end - begin);
    out[end - begin] = '\0';
    p->at = end + 1;
    return true;
}

static bool take_number(parser *p, int64_t *number)
{
    skip_spaces(p);
    size_t begin = p->at;
    *number = 0;
    for (; p->at < p->length && isdigit((unsigned char)p->text[p->at]); p->at++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, p->text[p->at] - '0', number))
            return false;
    return p->at > begin;
}

static mixt_status parse_descr(parser *p, mixt__npy *file)
{
    char descr[32];
    if (!take_quoted(p, descr, sizeof descr))
        return parse_error(p, "a plain type such as '<f4' (structured arrays are not read)");
    if (descr[0] == '>')
        return mixt__fail(
            MIXT_ERROR_UNSUPPORTED,
            "%s: type '%s' is big-endian; save it little-endian, in Python a.astype(a.dtype.newbyteorder('<'))",
            p->path, descr);
    for (int i = 0; i < DESCRS; i++)
        if (!strcmp(descr, descrs[i].descr) || (descrs[i].descr[0] == '|' && !strcmp(descr + 1, descrs[i].descr + 1))) {
            file->tensor.dtype = descrs[i].dtype;
            file->element = mixt_dtype_size(descrs[i].dtype);
        }
    for (int i = 0; i < OTHERS; i++)
        if (!strcmp(descr, others[i].descr)) {
            file->numbers = others[i].numbers;
            file->element = others[i].size;
        }
    if (!file->element)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: type '%s' is not one that mixt reads (<f2, <f4, <f8, |i1, |u1, <i4, <i8, in data sets "
                          "also |b1, <i2, <u2, <u4)",
                          p->path, descr);
    return MIXT_OK;
}

static mixt_status parse_shape(parser *p, mixt__file_tensor *tensor)
{
    if (!take(p, "("))
        return parse_error(p, "'(' of the shape");
    bool comma = true;
    while (!take(p, ")")) {
        int64_t dim;
        if (!comma || !take_number(p, &dim))
            return parse_error(p, "a dimension (a whole number of at least 0) or ')'");
        if (tensor->rank == MIXT__FILE_RANK)
            return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: has more than %d dimensions", p->path, MIXT__FILE_RANK);
        tensor->dims[tensor->rank++] = dim;
        comma = take(p, ",");
    }
    return tensor->rank == 1 && !comma ? parse_error(p, "(n,) as the shape of one dimension") : MIXT_OK;
}

/** The dictionary: its three keys in any order, each once. */
static mixt_status parse_dictionary(parser *p, mixt__npy *file, bool *fortran)
{
    static const char *const keys[3] = {"descr", "fortran_order", "shape"};
    unsigned seen = 0;
    if (!take(p, "{"))
        return parse_error(p, "'{'");
    bool comma = true;
    while (!take(p, "}")) {
        char key[24];
        if (!comma || !take_quoted(p, key, sizeof key) || !take(p, ":"))
            return parse_error(p, "'descr', 'fortran_order' or 'shape' with its value, or '}'");
        int k = 0;
        while (k < 3 && strcmp(key, keys[k]))
            k++;
        if (k == 3 || (seen & (1u << k)))
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: header key '%s' is unknown or there twice", p->path, key);
        seen |= 1u << k;
        if (k == 0)
            MIXT_TRY(parse_descr(p, file));
        else if (k == 2)
            MIXT_TRY(parse_shape(p, &file->tensor));
        else if (take(p, "True"))
            *fortran = true;
        else if (!take(p, "False"))
            return parse_error(p, "True or False");
        comma = take(p, ",");
    }
    skip_spaces(p);
    if (p->at != p->length)
        return parse_error(p, "the end of the header");
    return seen == 7 ? MIXT_OK
                     : mixt__fail(MIXT_ERROR_FORMAT, "%s: header lacks one of descr, fortran_order, shape", p->path);
}

/** Finds the header text by magic, version and length. */
static mixt_status find_header(const char *path, const mixt__file_map *map, parser *p)
{
    if (map->bytes < MAGIC + VERSION || memcmp(map->data, magic, MAGIC))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: does not start with \\x93NUMPY: not a .npy file, or cut short", path);
    int version = map->data[MAGIC];
    if (version < 1 || version > 3 || map->data[MAGIC + 1] != 0)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: .npy version %d.%d at offset %d is not 1.0, 2.0 or 3.0", path,
                          version, map->data[MAGIC + 1], MAGIC);
    size_t width = version == 1 ? 2 : 4, start = MAGIC + VERSION + width, length = 0;
    if (map->bytes < start)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: ends within its header length at offset %d", path, MAGIC + VERSION);
    for (size_t i = 0; i < width; i++)
        length |= (size_t)map->data[MAGIC + VERSION + i] << (8 * i);
    if (length > HEADER_LIMIT || length > map->bytes - start)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: header length %zu at offset %d is past the end of the file or above %d", path, length,
                          MAGIC + VERSION, HEADER_LIMIT);
    *p = (parser){path, (const char *)map->data + start, length, 0, start};
    return MIXT_OK;
}

mixt_status mixt__npy_read_header(const char *path, const unsigned char *bytes, size_t size, mixt__npy *file)
{
    parser p = {0};
    bool fortran = false;
    mixt__file_map map = {.data = bytes, .bytes = size};
    mixt__file_tensor *tensor = &file->tensor;
    *file = (mixt__npy){.tensor = {.name = "array"}};
    MIXT_TRY(find_header(path, &map, &p));
    MIXT_TRY(parse_dictionary(&p, file, &fortran));
    if (fortran && tensor->rank > 1)
        return mixt__fail(
            MIXT_ERROR_UNSUPPORTED,
            "%s: is in Fortran (column-major) order; save it in C order, in Python numpy.ascontiguousarray(a)", path);
    int64_t count = mixt__file_tensor_count(tensor->dtype, tensor->rank, tensor->dims);
    if (count < 0 || __builtin_mul_overflow((size_t)count, file->element, &tensor->bytes) ||
        tensor->bytes > INT64_MAX / 4)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: shape %s is too large for any file", path,
                          mixt__dims_print(tensor->rank, tensor->dims).text);
    file->start = p.file_offset + p.length;
    return MIXT_OK;
}

/** Holds the header against the file's size, and against what the caller can use. */
static mixt_status check_file(const char *path, const mixt__npy *file, bool any)
{
    const mixt__file_tensor *tensor = &file->tensor;
    size_t have = file->map.bytes - file->start;
    const char *name = mixt_dtype_name(tensor->dtype);
    for (int i = 0; i < OTHERS; i++)
        name = others[i].numbers == file->numbers ? others[i].descr : name;
    if (file->numbers != MIXT_NPY_DTYPE && !any)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: type '%s' is not one that mixt reads here (<f2, <f4, <f8, |i1, |u1, <i4, <i8)", path,
                          name);
    if (have != tensor->bytes)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: shape %s of %s needs %zu bytes from offset %zu on, but the file has %zu there", path,
                          mixt__dims_print(tensor->rank, tensor->dims).text, name, tensor->bytes, file->start, have);
    return MIXT_OK;
}

static mixt_status open_file(const char *path, bool any, mixt__npy *file)
{
    mixt__file_map map;
    *file = (mixt__npy){0};
    MIXT_TRY(mixt__file_map_open(path, &map));
    mixt_status status = mixt__npy_read_header(path, map.data, map.bytes, file);
    file->map = map;
    if (status == MIXT_OK)
        status = check_file(path, file, any);
    if (status == MIXT_OK)
        file->tensor.data = map.data + file->start;
    else
        mixt__npy_close(file);
    return status;
}

mixt_status mixt__npy_open(const char *path, mixt__npy *file)
{
    return open_file(path, false, file);
}

mixt_status mixt__npy_open_numbers(const char *path, mixt__npy *file)
{
    return open_file(path, true, file);
}

void mixt__npy_close(mixt__npy *file)
{
    mixt__file_map_close(&file->map);
    file->tensor.data = NULL;
}

/** Magic, version 1.0, length and dictionary, padded so that the array is aligned; the bytes used. */
static size_t build_header(char header[4 * ALIGNMENT], const mixt__file_tensor *tensor)
{
    char shape[MIXT__FILE_RANK * 22 + 1] = "";
    size_t used = 0;
    for (int i = 0; i < tensor->rank; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld%s", i ? ", " : "",
                                 (long long)tensor->dims[i], tensor->rank == 1 ? "," : "");
    const size_t start = MAGIC + VERSION + 2, size = 4 * ALIGNMENT;
    size_t text =
        (size_t)snprintf(header + start, size - start, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                         mixt__npy_descr(tensor->dtype), shape);
    size_t total = (start + text + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(header + start + text, ' ', total - start - text);
    header[total - 1] = '\n';
    memcpy(header, magic, MAGIC);
    header[MAGIC] = 1;
    header[MAGIC + 1] = 0;
    header[MAGIC + 2] = (char)((total - start) & 0xff);
    header[MAGIC + 3] = (char)((total - start) >> 8);
    return total;
}

mixt_status mixt__npy_write(const char *path, const mixt__file_tensor *tensor, bool overwrite)
{
    if (!mixt__npy_descr(tensor->dtype))
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: .npy has no format for %s; write a .safetensors file instead", path,
                          mixt_dtype_name(tensor->dtype));
    int64_t count = -1;
    if (tensor->rank >= 0 && tensor->rank <= MIXT__FILE_RANK)
        count = mixt__file_tensor_count(tensor->dtype, tensor->rank, tensor->dims);
    if (count < 0)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: shape %s of rank %d is not possible", path,
                          mixt__dims_print(tensor->rank, tensor->dims).text, tensor->rank);
    char header[4 * ALIGNMENT];
    size_t header_bytes = build_header(header, tensor);
    mixt__file_writer writer;
    MIXT_TRY(mixt__file_writer_open(&writer, path, overwrite));
    mixt_status status = mixt__file_writer_append(&writer, header, header_bytes);
    if (status == MIXT_OK)
        status = mixt__file_writer_append(&writer, tensor->data, (size_t)count * mixt_dtype_size(tensor->dtype));
    if (status == MIXT_OK)
        return mixt__file_writer_commit(&writer);
    mixt__file_writer_abandon(&writer);
    return status;
}
