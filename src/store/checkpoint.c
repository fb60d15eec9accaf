/* Opening a checkpoint: the manifest first, then every byte of every file against it. */
#include "store/checkpoint.h"

#include "base/alloc.h"
#include "base/status.h"
#include "store/checkpoint_inside.h"
#include "store/checksum.h"
#include "store/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void mixt__checkpoint_aside(const char *folder, char path[MIXT_CHECKPOINT_INSIDE])
{
    int length = (int)strlen(folder), base;
    while (length > 1 && folder[length - 1] == '/')
        length--;
    for (base = length; base > 0 && folder[base - 1] != '/'; base--)
        ;
    snprintf(path, MIXT_CHECKPOINT_INSIDE, "%.*s.replaced-%.*s", base, folder, length - base, folder + base);
}

void mixt__checkpoint_seal(char *text, uint64_t sum)
{
    snprintf(text, MIXT_CHECKPOINT_SEAL + 1, ",\n \"checksum\": \"%016llx\"\n}\n", (unsigned long long)sum);
}

size_t mixt__checkpoint_header_bytes(const mixt__file_map *map)
{
    uint64_t length = 0;
    for (size_t i = 0; i < 8 && i < map->bytes; i++)
        length |= (uint64_t)map->data[i] << (8 * i);
    if (map->bytes < 8)
        return map->bytes;
    return length > map->bytes - 8 || length > MIXT_SAFETENSORS_HEADER_MOST ? 8 : (size_t)length + 8;
}

json_t *mixt__json_double(double value)
{
    if (isnan(value))
        return json_string("nan");
    return isinf(value) ? json_string(value > 0 ? "inf" : "-inf") : json_real(value);
}

mixt_status mixt__json_get_double(const json_t *object, const char *key, double *value)
{
    const json_t *found = json_object_get(object, key);
    const char *word = json_string_value(found);
    if (json_is_number(found))
        *value = json_number_value(found);
    else if (word && !strcmp(word, "nan"))
        *value = (double)NAN;
    else if (word && (!strcmp(word, "inf") || !strcmp(word, "-inf")))
        *value = *word == '-' ? (double)-INFINITY : (double)INFINITY;
    else
        return mixt__fail(MIXT_ERROR_FORMAT, "'%s' is %s: expected a number", key, found ? "no number" : "missing");
    return MIXT_OK;
}

mixt_status mixt__json_get_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *value)
{
    const json_t *found = json_object_get(object, key);
    if (!json_is_integer(found))
        return mixt__fail(MIXT_ERROR_FORMAT, "'%s' is %s: expected a whole number", key,
                          found ? "something else" : "missing");
    *value = json_integer_value(found);
    if (*value < min || *value > max)
        return mixt__fail(MIXT_ERROR_FORMAT, "'%s' is %lld: expected %lld to %lld", key, (long long)*value,
                          (long long)min, (long long)max);
    return MIXT_OK;
}

/** Compares a checksum with the 16 hexadecimal digits of the manifest. */
static bool matches(const json_t *expected, uint64_t sum)
{
    char text[20];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    return json_is_string(expected) && !strcmp(json_string_value(expected), text);
}

static mixt_status parse_manifest(const char *path, const mixt__file_map *map, json_t **manifest)
{
    char seal[MIXT_CHECKPOINT_SEAL + 1];
    if (map->bytes <= MIXT_CHECKPOINT_SEAL || map->bytes > MIXT_CHECKPOINT_MANIFEST_MOST)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: is damaged: %zu bytes are not the size of a manifest", path,
                          map->bytes);
    size_t body = map->bytes - MIXT_CHECKPOINT_SEAL;
    mixt__checkpoint_seal(seal, mixt__checksum(map->data, body));
    if (memcmp(seal, map->data + body, MIXT_CHECKPOINT_SEAL))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: is damaged: its checksum is wrong", path);
    MIXT_TRY(mixt__json_parse(path, map->data, map->bytes, JSON_REJECT_DUPLICATES, manifest));
    const char *format = json_string_value(json_object_get(*manifest, "format"));
    int64_t version;
    if (!format || strcmp(format, MIXT_CHECKPOINT_FORMAT))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: is not the manifest of a mixt checkpoint", path);
    mixt_status status =
        mixt__json_get_int(*manifest, "version", MIXT_CHECKPOINT_VERSION, MIXT_CHECKPOINT_VERSION_CUT, &version);
    return status == MIXT_OK ? MIXT_OK : mixt__fail_context(status, "%s", path);
}

/** A file that belongs to a checkpoint: that it is missing is damage, that it cannot be read now is not. */
static mixt_status map_own(const char *path, mixt__file_map *map)
{
    char folder[MIXT_CHECKPOINT_INSIDE];
    struct stat info;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (lstat(path, &info) && errno == ENOENT && !stat(folder, &info)) {
        *map = (mixt__file_map){0};
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: is damaged: it is missing", path);
    }
    return mixt__file_map_open(path, map);
}

static mixt_status read_manifest(const char *folder, json_t **manifest)
{
    char path[MIXT_CHECKPOINT_INSIDE];
    mixt__file_map map;
    *manifest = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, MIXT_CHECKPOINT_MANIFEST);
    MIXT_TRY(map_own(path, &map));
    mixt_status status = parse_manifest(path, &map, manifest);
    mixt__file_map_close(&map);
    return status;
}

mixt_status mixt__checkpoint_read_back(const char *folder, const json_t *written)
{
    json_t *found;
    MIXT_TRY(read_manifest(folder, &found));
    (void)json_object_del(found, "checksum"); // which its text alone has
    bool same = mixt__json_whole(written) && json_equal(found, written);
    json_decref(found);
    return same ? MIXT_OK
                : mixt__fail(MIXT_ERROR_FILE, "%s/%s: reads back differently from what was written", folder,
                             MIXT_CHECKPOINT_MANIFEST);
}

static mixt_status wrong_size(const char *path, size_t bytes, int64_t expected)
{
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: is damaged: it has %zu bytes and should have %lld", path, bytes,
                      (long long)expected);
}

static mixt_status check_file(const char *folder, const char *name, const json_t *record)
{
    char path[MIXT_CHECKPOINT_INSIDE];
    mixt__file_map map;
    int64_t bytes = 0;
    if (!*name || strchr(name, '/') || strlen(name) > 200)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s/%s: names the file '%.60s'", folder, MIXT_CHECKPOINT_MANIFEST, name);
    snprintf(path, sizeof path, "%s/%.200s", folder, name);
    MIXT_TRY(mixt__json_get_int(record, "bytes", 0, INT64_MAX, &bytes));
    MIXT_TRY(map_own(path, &map));
    mixt_status status = MIXT_OK;
    if ((int64_t)map.bytes != bytes)
        status = wrong_size(path, map.bytes, bytes);
    else if (!matches(json_object_get(record, "checksum"), mixt__checksum(map.data, map.bytes)))
        status = mixt__fail(MIXT_ERROR_FORMAT, "%s: is damaged: its checksum is wrong", path);
    mixt__file_map_close(&map);
    return status;
}

static mixt_status check_files(const char *folder, json_t *files)
{
    const char *name;
    json_t *record;
    if (!json_is_object(files))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s/%s: has no list of files", folder, MIXT_CHECKPOINT_MANIFEST);
    json_object_foreach(files, name, record) MIXT_TRY(check_file(folder, name, record));
    return MIXT_OK;
}

/** Size and header: before anything inside is believed. */
static mixt_status check_header(const char *path, const json_t *record)
{
    mixt__file_map map;
    int64_t bytes = 0;
    MIXT_TRY(mixt__json_get_int(record, "bytes", 0, INT64_MAX, &bytes));
    MIXT_TRY(map_own(path, &map));
    mixt_status status = MIXT_OK;
    if ((int64_t)map.bytes != bytes)
        status = wrong_size(path, map.bytes, bytes);
    else if (!matches(json_object_get(record, "header"), mixt__checksum(map.data, mixt__checkpoint_header_bytes(&map))))
        status = mixt__fail(MIXT_ERROR_FORMAT, "%s: is damaged: the checksum of its header is wrong", path);
    mixt__file_map_close(&map);
    return status;
}

/** Which bytes of the tensors are compared with their checksums: what begins in a share of them. */
typedef struct share {
    const unsigned char *begin, *end;
} share;

static share share_of(const mixt__safetensors *state, int which, int shares)
{
    if (!state->count)
        return (share){0};
    const mixt__file_tensor *last = &state->tensors[state->count - 1];
    const unsigned char *first = state->tensors[0].data;
    size_t bytes = (size_t)((const unsigned char *)last->data + last->bytes - first) / (size_t)shares;
    return (share){first + bytes * (size_t)which, which + 1 == shares ? NULL : first + bytes * (size_t)(which + 1)};
}

/** Whether some bytes are right, or are not of the share. */
static bool part_matches(const share *s, const json_t *expected, const unsigned char *at, size_t bytes)
{
    bool inside = at >= s->begin && (!s->end || at < s->end);
    return inside ? matches(expected, mixt__checksum(at, bytes)) : json_is_string(expected);
}

/** Against the checksums of its parts, or its own. */
static bool tensor_matches(const share *s, const json_t *expected, const mixt__file_tensor *t)
{
    const unsigned char *at = t->data;
    size_t left = t->bytes;
    if (!json_is_array(expected))
        return part_matches(s, expected, at, left);
    for (size_t i = 0; i < json_array_size(expected); i++) {
        const json_t *part = json_array_get(expected, i);
        json_int_t bytes = json_integer_value(json_array_get(part, 0));
        if (bytes < 1 || (uint64_t)bytes > left || !part_matches(s, json_array_get(part, 1), at, (size_t)bytes))
            return false;
        at += bytes;
        left -= (size_t)bytes;
    }
    return !left;
}

static mixt_status check_tensors(const mixt__checkpoint *c, int which, int shares)
{
    share s = share_of(c->state, which, shares);
    for (int64_t i = 0; i < c->state->count; i++) {
        const mixt__file_tensor *t = &c->state->tensors[i];
        if (!tensor_matches(&s, json_object_get(c->sums, t->name), t))
            return mixt__fail(MIXT_ERROR_FORMAT, "%s/%s: is damaged: the checksum of tensor '%s' is wrong", c->folder,
                              MIXT_CHECKPOINT_STATE, t->name);
    }
    return MIXT_OK;
}

static mixt_status open_state(const char *folder, const json_t *record, mixt__checkpoint *c)
{
    char path[MIXT_CHECKPOINT_INSIDE];
    snprintf(path, sizeof path, "%s/%s", folder, MIXT_CHECKPOINT_STATE);
    MIXT_TRY(check_header(path, record));
    MIXT_TRY(mixt__safetensors_open(path, &c->state));
    c->sums = json_incref(json_object_get(record, "tensors"));
    if ((int64_t)json_object_size(c->sums) != c->state->count)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: holds %lld tensors, the manifest %zu", path,
                          (long long)c->state->count, json_object_size(c->sums));
    return MIXT_OK;
}

/** Parameters that are frozen, if the manifest names such a file; its bytes have been checked. */
static mixt_status open_frozen(const char *folder, const json_t *files, mixt__checkpoint *c)
{
    char path[MIXT_CHECKPOINT_INSIDE];
    if (!json_object_get(files, MIXT_CHECKPOINT_FROZEN))
        return MIXT_OK;
    snprintf(path, sizeof path, "%s/%s", folder, MIXT_CHECKPOINT_FROZEN);
    return mixt__safetensors_open(path, &c->frozen);
}

static mixt_status open_checked(const char *folder, mixt__checkpoint *c, int which, int shares)
{
    json_t *manifest;
    if (strlen(folder) >= MIXT_CHECKPOINT_PATH)
        return mixt__fail(MIXT_ERROR_FILE, "%.60s…: the path is too long", folder);
    mixt_status status = read_manifest(folder, &manifest);
    if (status == MIXT_OK)
        status = check_files(folder, json_object_get(manifest, "files"));
    if (status == MIXT_OK)
        status = open_state(folder, json_object_get(manifest, "state"), c);
    if (status == MIXT_OK)
        status = open_frozen(folder, json_object_get(manifest, "files"), c);
    if (status == MIXT_OK)
        status = check_tensors(c, which, shares);
    c->scalars = json_incref(json_object_get(manifest, "scalars"));
    json_decref(manifest);
    if (status == MIXT_OK && !json_is_object(c->scalars))
        status = mixt__fail(MIXT_ERROR_FORMAT, "%s/%s: has no scalars", folder, MIXT_CHECKPOINT_MANIFEST);
    return status;
}

mixt_status mixt__checkpoint_open_share(const char *folder, int which, int shares, mixt__checkpoint **checkpoint)
{
    char aside[MIXT_CHECKPOINT_INSIDE];
    *checkpoint = NULL;
    mixt__checkpoint *c = mixt__alloc(sizeof *c);
    mixt__checkpoint_aside(folder, aside);
    const char *from = access(folder, F_OK) && !access(aside, F_OK) ? aside : folder; // killed while replacing it
    if (c)
        c->folder = mixt__strdup(from);
    mixt_status status = c && c->folder ? open_checked(from, c, which, shares)
                                        : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open it", folder);
    if (status != MIXT_OK) {
        mixt__checkpoint_close(c);
        return status;
    }
    *checkpoint = c;
    return MIXT_OK;
}

mixt_status mixt__checkpoint_open(const char *folder, mixt__checkpoint **checkpoint)
{
    return mixt__checkpoint_open_share(folder, 0, 1, checkpoint);
}

mixt_status mixt__checkpoint_check(const mixt__checkpoint *c)
{
    return check_tensors(c, 0, 1);
}

void mixt__checkpoint_close(mixt__checkpoint *c)
{
    if (!c)
        return;
    mixt__safetensors_close(c->state);
    mixt__safetensors_close(c->frozen);
    json_decref(c->scalars);
    json_decref(c->sums);
    mixt__free(c->folder);
    mixt__free(c);
}
