/* Writing a checkpoint: a folder under another name, then one rename. */
#include "store/checkpoint.h"

#include "base/alloc.h"
#include "base/status.h"
#include "store/checkpoint_inside.h"
#include "store/checksum.h"
#include "store/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *hex(uint64_t sum)
{
    char text[20];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    return json_string(text);
}

static mixt_status no_memory(const char *path)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write it", path);
}

/** The state file and its record: {bytes, header, tensors: {name: checksum}}. */
static mixt_status write_state(const char *folder, const mixt__checkpoint_content *content, json_t *record)
{
    char path[MIXT_CHECKPOINT_INSIDE];
    mixt__file_map map;
    snprintf(path, sizeof path, "%s/%s", folder, MIXT_CHECKPOINT_STATE);
    MIXT_TRY(mixt__safetensors_write(path, content->tensors, content->count, NULL));
    json_t *tensors = json_object();
    bool good = tensors != NULL;
    for (int64_t i = 0; good && i < content->count; i++) {
        const mixt__file_tensor *t = &content->tensors[i];
        size_t bytes = (size_t)mixt__file_tensor_count(t->dtype, t->rank, t->dims) * mixt_dtype_size(t->dtype);
        good = !json_object_set_new(tensors, t->name, hex(mixt__checksum(t->data, bytes)));
    }
    mixt_status status = mixt__file_map_open(path, &map);
    if (status == MIXT_OK) {
        uint64_t header = mixt__checksum(map.data, mixt__checkpoint_header_bytes(&map));
        good = good && !json_object_set_new(record, "bytes", json_integer((json_int_t)map.bytes)) &&
               !json_object_set_new(record, "header", hex(header)) && !json_object_set(record, "tensors", tensors);
        mixt__file_map_close(&map);
    }
    json_decref(tensors);
    return status != MIXT_OK ? status : good ? MIXT_OK : no_memory(path);
}

static mixt_status write_file(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[MIXT_CHECKPOINT_INSIDE];
    snprintf(path, sizeof path, "%s/%.200s", folder, name);
    return mixt__file_put(path, data, bytes, true);
}

static mixt_status write_files(const char *folder, const mixt__checkpoint_content *content, json_t *records)
{
    for (int64_t i = 0; i < content->file_count; i++) {
        const mixt__checkpoint_file *f = &content->files[i];
        MIXT_TRY(write_file(folder, f->name, f->data, f->bytes));
        json_t *record =
            json_pack("{s:I, s:o}", "bytes", (json_int_t)f->bytes, "checksum", hex(mixt__checksum(f->data, f->bytes)));
        if (json_object_set_new(records, f->name, record))
            return no_memory(folder);
    }
    return MIXT_OK;
}

/** The manifest's text ends with its own checksum, at a fixed distance from the end. */
static mixt_status write_manifest(const char *folder, const json_t *manifest)
{
    char *text = json_dumps(manifest, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    size_t length = text ? strlen(text) : 0, room = length + MIXT_CHECKPOINT_SEAL + 1;
    char *sealed = mixt__alloc(room);
    if (!sealed || length < 2) {
        free(text);
        mixt__free(sealed);
        return no_memory(folder);
    }
    memcpy(sealed, text, length + 1);
    length -= 2; // without "\n}"
    mixt__checkpoint_seal(sealed + length, mixt__checksum(sealed, length));
    mixt_status status = write_file(folder, MIXT_CHECKPOINT_MANIFEST, sealed, length + MIXT_CHECKPOINT_SEAL);
    free(text);
    mixt__free(sealed);
    return status;
}

static mixt_status fill(const char *folder, const mixt__checkpoint_content *content)
{
    json_t *state = json_object(), *files = json_object();
    json_t *manifest = json_pack("{s:s, s:i, s:O, s:O, s:O}", "format", MIXT_CHECKPOINT_FORMAT, "version",
                                 MIXT_CHECKPOINT_VERSION, "scalars", content->scalars, "files", files, "state", state);
    mixt_status status = manifest ? MIXT_OK : no_memory(folder);
    if (status == MIXT_OK)
        status = write_state(folder, content, state);
    if (status == MIXT_OK)
        status = write_files(folder, content, files);
    if (status == MIXT_OK)
        status = write_manifest(folder, manifest);
    json_decref(manifest);
    json_decref(state);
    json_decref(files);
    return status;
}

static mixt_status sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); // some file systems cannot sync a folder
    int problem = errno;
    if (fd >= 0)
        close(fd);
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_FILE, "%s: cannot be brought to disk: %s", path, strerror(problem));
}

/** Puts `from` in the place of `to`; what was there ends up under the name of `from`. */
static mixt_status swap_in(const char *from, const char *to)
{
    if (rename(from, to) == 0)
        return MIXT_OK;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be put in place: %s", to, strerror(errno));
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
        return MIXT_OK;
    char aside[MIXT_CHECKPOINT_INSIDE]; // a file system that cannot exchange: two renames, the old one out first
    mixt__checkpoint_aside(to, aside);
    mixt__checkpoint_remove(aside); // of a process that was killed between the two
    int problem = rename(to, aside) ? errno : 0;
    if (!problem && rename(from, to)) {
        problem = errno;
        (void)rename(aside, to);
    }
    if (problem)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be put in place: %s", to, strerror(problem));
    mixt__checkpoint_remove(aside);
    return MIXT_OK;
}

/** The names of a save: `folder` without slashes at its end, the folder around it, and the one to fill beside it. */
typedef struct places {
    char target[MIXT_CHECKPOINT_PATH], parent[MIXT_CHECKPOINT_PATH], temporary[MIXT_CHECKPOINT_PATH + 64];
} places;

static mixt_status find_places(const char *folder, places *p)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    if (length + 64 > MIXT_CHECKPOINT_PATH || !length)
        return mixt__fail(MIXT_ERROR_FILE, "%.60s…: a checkpoint's path has 1 to %d bytes", folder,
                          MIXT_CHECKPOINT_PATH - 64);
    snprintf(p->target, sizeof p->target, "%.*s", (int)length, folder);
    const char *slash = strrchr(p->target, '/');
    if (slash)
        snprintf(p->parent, sizeof p->parent, "%.*s", slash == p->target ? 1 : (int)(slash - p->target), p->target);
    else
        snprintf(p->parent, sizeof p->parent, ".");
    return MIXT_OK;
}

/** The folder to fill. A killed process, in a container say, may have had the number of this one and left its own. */
static mixt_status make_temporary(places *p)
{
    static unsigned number;
    int failed;
    do {
        snprintf(p->temporary, sizeof p->temporary, "%s/" MIXT_CHECKPOINT_TEMPORARY "%ld-%u", p->parent, (long)getpid(),
                 __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
        failed = mkdir(p->temporary, 0777);
    } while (failed && errno == EEXIST);
    return failed ? mixt__fail(MIXT_ERROR_FILE, "checkpoint %s: cannot be made: %s", p->target, strerror(errno))
                  : MIXT_OK;
}

/** The end of making p->temporary, which `made` says the result of. */
static mixt_status put_in_place(const places *p, mixt_status made)
{
    mixt_status status = made;
    if (status == MIXT_OK)
        status = sync_folder(p->temporary);
    if (status == MIXT_OK)
        status = swap_in(p->temporary, p->target);
    if (status != MIXT_OK)
        mixt__fail_context(status, "checkpoint %s", p->target);
    mixt__checkpoint_remove(p->temporary); // after a failure: the new one; after an exchange: the old one; else nothing
    return status == MIXT_OK ? sync_folder(p->parent) : status;
}

mixt_status mixt__checkpoint_write(const char *folder, const mixt__checkpoint_content *content)
{
    places p;
    MIXT_TRY(find_places(folder, &p));
    MIXT_TRY(mixt__checkpoint_replaceable(p.target, content));
    MIXT_TRY(make_temporary(&p));
    return put_in_place(&p, fill(p.temporary, content));
}

/* ---- copies ---- */

/** The same file under a second name where that can be had: what is in a checkpoint is never written to again. */
static mixt_status share_file(const char *from, const char *folder, const char *name)
{
    char to[MIXT_CHECKPOINT_INSIDE];
    mixt__file_map map;
    snprintf(to, sizeof to, "%s/%s", folder, name);
    if (link(from, to) == 0)
        return MIXT_OK;
    MIXT_TRY(mixt__file_map_open(from, &map));
    mixt_status status = write_file(folder, name, map.data, map.bytes);
    mixt__file_map_close(&map);
    return status;
}

mixt_status mixt__checkpoint_share(const char *from, const char *folder)
{
    places p;
    char inside[MIXT_CHECKPOINT_INSIDE];
    DIR *entries = opendir(from);
    if (!entries)
        return mixt__fail(MIXT_ERROR_FILE, "checkpoint %s: cannot be read: %s", from, strerror(errno));
    mixt_status status = find_places(folder, &p);
    if (status == MIXT_OK)
        status = make_temporary(&p);
    if (status != MIXT_OK) {
        closedir(entries);
        return status;
    }
    for (struct dirent *entry; status == MIXT_OK && (entry = readdir(entries));)
        if (entry->d_name[0] != '.') {
            snprintf(inside, sizeof inside, "%s/%s", from, entry->d_name);
            status = share_file(inside, p.temporary, entry->d_name);
        }
    closedir(entries);
    return put_in_place(&p, status);
}
