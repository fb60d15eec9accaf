/* Mapped reading and all-or-nothing writing. */
#include "store/file.h"

#include "base/alloc.h"
#include "base/env.h"
#include "base/files.h"
#include "base/mappings.h"
#include "base/signal_at.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static mixt_status map_open(const char *path, int flags, mixt__file_map *map)
{
    *map = (mixt__file_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags); // a FIFO would wait for its writer
    if (fd < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be opened: %s", path,
                          flags && errno == ELOOP ? mixt__file_problem(EMLINK) : strerror(errno));
    struct stat info;
    mixt_status status = MIXT_OK;
    if (fstat(fd, &info) < 0)
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be examined: %s", path, strerror(errno));
    else if (!S_ISREG(info.st_mode))
        status = mixt__fail(MIXT_ERROR_FILE, "%s: is not a regular file", path);
    if (status == MIXT_OK && info.st_size > 0) {
        char *name = mixt__strdup(path);
        void *data = name ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
        if (data == MAP_FAILED) {
            status = mixt__fail(name ? MIXT_ERROR_FILE : MIXT_ERROR_MEMORY, "%s: cannot be mapped: %s", path,
                                strerror(name ? errno : ENOMEM));
            mixt__free(name);
        } else {
            *map = (mixt__file_map){.data = data,
                                    .bytes = (size_t)info.st_size,
                                    .account = mixt__account_add_mapped((size_t)info.st_size),
                                    .mapping = mixt__mapping_watch(data, (size_t)info.st_size),
                                    .path = name,
                                    .device = info.st_dev,
                                    .inode = info.st_ino};
        }
    }
    close(fd);
    return status;
}

mixt_status mixt__file_map_open(const char *path, mixt__file_map *map)
{
    return map_open(path, 0, map);
}

mixt_status mixt__file_map_open_own(const char *path, mixt__file_map *map)
{
    return map_open(path, O_NOFOLLOW, map);
}

mixt_status mixt__file_map_check(const mixt__file_map *map)
{
    struct stat info;
    bool cut = mixt__mapping_is_cut(map->mapping);
    if (!cut && map->data && !stat(map->path, &info)) // of its last page the rest is zeros, and no fault
        cut = info.st_dev == map->device && info.st_ino == map->inode && (uint64_t)info.st_size < map->bytes;
    return cut ? mixt__fail(MIXT_ERROR_FILE, "%s: was truncated while it was read: restore it", map->path) : MIXT_OK;
}

void mixt__file_map_close(mixt__file_map *map)
{
    if (map->data) {
        mixt__mapping_leave(map->mapping);
        munmap((void *)(uintptr_t)map->data, map->bytes);
        mixt__account_remove_mapped(map->account, map->bytes);
        mixt__free(map->path);
    }
    *map = (mixt__file_map){0};
}

static mixt_status refuse_existing(const char *path)
{
    return mixt__fail(MIXT_ERROR_FILE, "%s: exists already and is not overwritten unless you ask for it (--overwrite)",
                      path);
}

static const char temporary_mark[] = ".tmp-"; // behind the name to be; then the process and the writer's number

enum { SILENT = 600 }; // seconds without a write after which a writer on another machine counts as dead too

/** Whether a file in `folder`, of which "PROCESS-NUMBER" is the end of the name, is that of a writer which was killed.
 */
static bool left_behind(int folder, const char *name, const char *end_of_name)
{
    char *end;
    struct stat info;
    long process = strtol(end_of_name, &end, 10);
    bool ours = process > 0 && *end == '-' && strspn(end + 1, "0123456789") == strlen(end + 1);
    if (!ours || process == (long)getpid() || !kill((pid_t)process, 0) || errno != ESRCH)
        return false;
    return !fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) && S_ISREG(info.st_mode) &&
           time(NULL) - info.st_mtim.tv_sec > SILENT;
}

void mixt__file_remove_left_behind(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = strlen(base), mark = strlen(temporary_mark);
    char *folder = mixt__strdup(path);
    DIR *entries = folder ? opendir(dirname(folder)) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        if (!strncmp(name, base, length) && !strncmp(name + length, temporary_mark, mark) &&
            left_behind(dirfd(entries), name, name + length + mark))
            unlinkat(dirfd(entries), name, 0);
    }
    if (entries)
        closedir(entries);
    mixt__free(folder);
}

/** A name beside `path` that no other writer of this machine uses. */
static char *temporary_name(const char *path)
{
    static unsigned number;
    unsigned mine = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
    size_t size = strlen(path) + 48;
    char *name = mixt__alloc(size);
    if (name)
        snprintf(name, size, "%s%s%ld-%u", path, temporary_mark, (long)getpid(), mine);
    return name;
}

static void writer_close(mixt__file_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    mixt__free(writer->path);
    mixt__free(writer->temporary);
    *writer = (mixt__file_writer){.fd = -1};
}

mixt_status mixt__file_writer_open(mixt__file_writer *writer, const char *path, bool overwrite)
{
    *writer = (mixt__file_writer){.fd = -1, .overwrite = overwrite};
    struct stat info;
    if (!*path)
        return mixt__fail(MIXT_ERROR_FILE, "the name of the file to write is empty");
    if (lstat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return mixt__fail(MIXT_ERROR_FILE, "%s: is a directory; name a file in it", path);
        if (!overwrite)
            return refuse_existing(path);
        if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) // a device or pipe would be gone
            return mixt__fail(MIXT_ERROR_FILE, "%s: is not a regular file and cannot be replaced", path);
    }
    mixt__file_remove_left_behind(path);
    writer->path = mixt__strdup(path);
    do { // a killed process, in a container say, may have had the number of this one
        mixt__free(writer->temporary);
        writer->temporary = temporary_name(path);
        if (!writer->path || !writer->temporary) {
            writer_close(writer);
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write it", path);
        }
        writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (writer->fd < 0 && errno == EEXIST);
    if (writer->fd < 0) {
        mixt_status status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be created: %s", path, strerror(errno));
        writer_close(writer);
        return status;
    }
    return MIXT_OK;
}

static int64_t writes, fail_at = -1; // fail_at -1: MIXT_FAIL_WRITE was not read yet
static bool fail_on;                 // and every write after that one

void mixt__file_fail_write(int64_t number)
{
    writes = 0;
    fail_at = number;
    fail_on = false;
}

/** Whether this write shall find the disk full. */
static bool must_fail(void)
{
    if (fail_at < 0) {
        char *end;
        fail_at = strtoll(mixt__env_get(MIXT_ENV_FAIL_WRITE), &end, 10);
        fail_on = *end == '+';
    }
    int64_t mine = __atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED);
    return fail_at > 0 && (mine == fail_at || (fail_on && mine > fail_at));
}

ssize_t mixt__file_write_some(int fd, const void *from, size_t bytes, int64_t at)
{
    bool signal_due = mixt__signal_due(MIXT_PLACE_WRITE);
    size_t part = signal_due && bytes > 1 ? bytes / 2 : bytes;
    errno = ENOSPC;
    ssize_t done = must_fail() ? -1 : at < 0 ? write(fd, from, part) : pwrite(fd, from, part, (off_t)at);
    if (signal_due)
        mixt__signal_send();
    return done;
}

/** All of it. @param at in the file; -1: behind what was written before */
static mixt_status write_all(int fd, const char *path, const void *data, size_t bytes, int64_t at)
{
    const char *from = data;
    size_t left = bytes;
    while (left > 0) {
        size_t piece = left < (size_t)1 << 30 ? left : (size_t)1 << 30;
        ssize_t done = mixt__file_write_some(fd, from, piece, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be written (%zu of %zu bytes of this part are missing): %s",
                              path, left, bytes, done < 0 ? strerror(errno) : "no space left");
        from += done;
        left -= (size_t)done;
        at += at < 0 ? 0 : (int64_t)done;
    }
    return MIXT_OK;
}

mixt_status mixt__file_writer_append(mixt__file_writer *writer, const void *data, size_t bytes)
{
    return write_all(writer->fd, writer->path, data, bytes, -1);
}

mixt_status mixt__file_write_at(int fd, const char *path, const void *data, size_t bytes, int64_t at)
{
    return write_all(fd, path, data, bytes, at);
}

/** Best effort: makes the rename itself survive a power cut. */
static void sync_folder(const char *path)
{
    char *copy = mixt__strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    mixt__free(copy);
}

static mixt_status move_into_place(const mixt__file_writer *writer)
{
    int failed;
    mixt__signal_at(MIXT_PLACE_WRITE);
    if (writer->overwrite) {
        failed = rename(writer->temporary, writer->path);
    } else {
        failed = renameat2(AT_FDCWD, writer->temporary, AT_FDCWD, writer->path, RENAME_NOREPLACE);
        if (failed && (errno == EINVAL || errno == ENOSYS)) // a file system without it: check, then rename
            failed = access(writer->path, F_OK) == 0 ? (errno = EEXIST, -1) : rename(writer->temporary, writer->path);
        if (failed && errno == EEXIST)
            return refuse_existing(writer->path);
    }
    if (failed)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be renamed to its final name: %s", writer->path,
                          strerror(errno));
    return MIXT_OK;
}

mixt_status mixt__file_writer_commit(mixt__file_writer *writer)
{
    mixt_status status = MIXT_OK;
    if (fsync(writer->fd) < 0) // delayed allocation reports a full disk here
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be flushed to disk: %s", writer->path, strerror(errno));
    int fd = writer->fd;
    writer->fd = -1;
    if (close(fd) < 0 && status == MIXT_OK)
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be closed: %s", writer->path, strerror(errno));
    if (status == MIXT_OK)
        status = move_into_place(writer);
    if (status != MIXT_OK) {
        mixt__file_writer_abandon(writer);
        return status;
    }
    sync_folder(writer->path);
    writer_close(writer);
    return MIXT_OK;
}

void mixt__file_writer_abandon(mixt__file_writer *writer)
{
    if (!writer->temporary)
        return;
    unlink(writer->temporary);
    writer_close(writer);
}

bool mixt__same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool mixt__path_has_extension(const char *path, const char *extension)
{
    size_t length = strlen(path), tail = strlen(extension);
    return length > tail && !strcmp(path + length - tail, extension);
}

mixt_status mixt__file_put(const char *path, const void *data, size_t bytes, bool overwrite)
{
    mixt__file_writer writer;
    MIXT_TRY(mixt__file_writer_open(&writer, path, overwrite));
    mixt_status status = mixt__file_writer_append(&writer, data, bytes);
    if (status == MIXT_OK)
        return mixt__file_writer_commit(&writer);
    mixt__file_writer_abandon(&writer);
    return status;
}

static mixt_status copy(const char *from, int flags, const char *to)
{
    mixt__file_map map;
    MIXT_TRY(map_open(from, flags, &map));
    mixt_status status = mixt__file_put(to, map.data, map.bytes, true);
    mixt__file_map_close(&map);
    return status;
}

mixt_status mixt__file_copy(const char *from, const char *to)
{
    return copy(from, 0, to);
}

mixt_status mixt__file_copy_own(const char *from, const char *to)
{
    return copy(from, O_NOFOLLOW, to);
}
