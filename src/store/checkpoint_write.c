/* Writing a checkpoint: a folder under another name, then one rename. */
#include "store/checkpoint.h"

#include "base/alloc.h"
#include "base/signal_at.h"
#include "base/status.h"
#include "store/checkpoint_inside.h"
#include "store/checksum.h"
#include "store/file.h"
#include "store/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mixt_status no_memory(const char *path)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write it", path);
}

static mixt_status write_file(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[MIXT_CHECKPOINT_INSIDE];
    snprintf(path, sizeof path, "%s/%.200s", folder, name);
    return mixt__file_put(path, data, bytes, true);
}

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

mixt_status mixt__checkpoint_add_files(const mixt__checkpoint_draft *d, const mixt__checkpoint_content *content,
                                       json_t *records)
{
    for (int64_t i = 0; i < content->file_count; i++) {
        const mixt__checkpoint_file *f = &content->files[i];
        MIXT_TRY(f->from ? share_file(f->from, d->temporary, f->name)
                         : write_file(d->temporary, f->name, f->data, f->bytes));
        uint64_t sum = f->from ? f->sum : mixt__checksum(f->data, f->bytes);
        json_t *record = json_pack("{s:I, s:o}", "bytes", (json_int_t)f->bytes, "checksum", mixt__checkpoint_hex(sum));
        if (mixt__json_set(records, f->name, record))
            return no_memory(d->target);
    }
    return MIXT_OK;
}

/** The manifest's text ends with its own checksum, at a fixed distance from the end. */
static mixt_status write_manifest(const char *folder, const json_t *manifest)
{
    char *text = mixt__json_dumps(manifest, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
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
    length += MIXT_CHECKPOINT_SEAL;
    mixt_status status = length > MIXT_CHECKPOINT_MANIFEST_MOST
                             ? mixt__fail(MIXT_ERROR_FILE, "its manifest would have %zu bytes, readers take up to %d",
                                          length, MIXT_CHECKPOINT_MANIFEST_MOST)
                             : write_file(folder, MIXT_CHECKPOINT_MANIFEST, sealed, length);
    free(text);
    mixt__free(sealed);
    return status;
}

static mixt_status sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); // some file systems cannot sync a folder
    int problem = errno;
    if (fd >= 0)
        close(fd);
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_FILE, "%s: cannot be flushed to disk: %s", path, strerror(problem));
}

/** Puts `from` in the place of `to`; what was there ends up under the name of `from`. */
static mixt_status swap_in(const char *from, const char *to)
{
    mixt__signal_at(MIXT_PLACE_WRITE);
    if (rename(from, to) == 0)
        return MIXT_OK;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be renamed to its final name: %s", to, strerror(errno));
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
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be renamed to its final name: %s", to, strerror(problem));
    mixt__checkpoint_remove(aside);
    return MIXT_OK;
}

/** The names of a save. */
static mixt_status find_places(const char *folder, mixt__checkpoint_draft *p)
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
static mixt_status make_temporary(mixt__checkpoint_draft *p)
{
    static unsigned number;
    int failed;
    do {
        snprintf(p->temporary, sizeof p->temporary, "%s/" MIXT_CHECKPOINT_TEMPORARY "%ld-%u", p->parent, (long)getpid(),
                 __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
        failed = mkdir(p->temporary, 0777);
    } while (failed && errno == EEXIST);
    return failed ? mixt__fail(MIXT_ERROR_FILE, "checkpoint %s: cannot be created: %s", p->target, strerror(errno))
                  : MIXT_OK;
}

/** The end of making p->temporary, which `made` says the result of. */
static mixt_status put_in_place(const mixt__checkpoint_draft *p, mixt_status made)
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

/* ---- from the first byte to the last ---- */

void mixt__checkpoint_discard(const mixt__checkpoint_draft *d)
{
    mixt__checkpoint_remove(d->temporary);
}

mixt_status mixt__checkpoint_begin(const char *folder, const mixt__checkpoint_content *content,
                                   mixt__checkpoint_draft *d)
{
    *d = (mixt__checkpoint_draft){0};
    MIXT_TRY(find_places(folder, d));
    MIXT_TRY(mixt__checkpoint_replaceable(d->target, content));
    MIXT_TRY(make_temporary(d));
    mixt_status status = mixt__checkpoint_state_make(d, content);
    if (status != MIXT_OK) {
        mixt__checkpoint_discard(d);
        mixt__fail_context(status, "checkpoint %s", d->target);
    }
    return status;
}

/** All that is left to write. */
static mixt_status complete(const mixt__checkpoint_draft *d, const mixt__checkpoint_content *content, json_t *files,
                            mixt__checkpoint_sum *sums, int64_t count)
{
    json_t *state = json_object();
    bool cut = false;
    mixt_status status =
        state ? mixt__checkpoint_state_record(d, content, sums, count, state, &cut) : no_memory(d->target);
    json_t *manifest = json_pack("{s:s, s:i, s:O, s:O, s:O}", "format", MIXT_CHECKPOINT_FORMAT, "version",
                                 cut ? MIXT_CHECKPOINT_VERSION_CUT : MIXT_CHECKPOINT_VERSION, "scalars",
                                 content->scalars, "files", files, "state", state);
    if (status == MIXT_OK)
        status = manifest ? write_manifest(d->temporary, manifest) : no_memory(d->target);
    if (status == MIXT_OK)
        status = mixt__checkpoint_read_back(d->temporary, manifest);
    json_decref(manifest);
    json_decref(state);
    return status;
}

mixt_status mixt__checkpoint_finish(const mixt__checkpoint_draft *d, const mixt__checkpoint_content *content,
                                    json_t *files, mixt__checkpoint_sum *sums, int64_t count)
{
    return put_in_place(d, complete(d, content, files, sums, count));
}

/** By this process alone. */
static mixt_status fill(const mixt__checkpoint_draft *d, const mixt__checkpoint_content *content, json_t *files,
                        mixt__checkpoint_sum *sums, int64_t *used)
{
    mixt__checkpoint_piece *pieces = mixt__alloc((size_t)(content->count + 1) * sizeof *pieces);
    if (!pieces)
        return no_memory(d->target);
    for (int64_t i = 0; i < content->count; i++) {
        const mixt__file_tensor *t = &content->tensors[i];
        int64_t bytes = mixt__file_tensor_count(t->dtype, t->rank, t->dims) * (int64_t)mixt_dtype_size(t->dtype);
        if (bytes)
            pieces[(*used)++] = (mixt__checkpoint_piece){
                .tensor = i, .bytes = bytes, .data = t->data, .summed = t->summed, .words = t->words};
    }
    mixt_status status = mixt__checkpoint_add(d, content, pieces, *used, sums);
    mixt__free(pieces);
    return status == MIXT_OK ? mixt__checkpoint_add_files(d, content, files) : status;
}

mixt_status mixt__checkpoint_write(const char *folder, const mixt__checkpoint_content *content)
{
    mixt__checkpoint_draft d;
    int64_t used = 0;
    MIXT_TRY(mixt__checkpoint_begin(folder, content, &d));
    mixt__checkpoint_sum *sums = mixt__alloc((size_t)(content->count + 1) * sizeof *sums);
    json_t *files = json_object();
    mixt_status status = sums && files ? fill(&d, content, files, sums, &used) : no_memory(folder);
    if (status == MIXT_OK)
        status = complete(&d, content, files, sums, used);
    status = put_in_place(&d, status);
    json_decref(files);
    mixt__free(sums);
    return status;
}

/* ---- copies ---- */

mixt_status mixt__checkpoint_share(const char *from, const char *folder)
{
    mixt__checkpoint_draft p;
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
    struct dirent *entry;
    while (status == MIXT_OK && (errno = 0, entry = readdir(entries)))
        if (entry->d_name[0] != '.') {
            snprintf(inside, sizeof inside, "%s/%s", from, entry->d_name);
            status = share_file(inside, p.temporary, entry->d_name);
        }
    if (status == MIXT_OK && errno)
        status = mixt__fail(MIXT_ERROR_FILE, "checkpoint %s: cannot be read: %s", from, strerror(errno));
    closedir(entries);
    return put_in_place(&p, status);
}
