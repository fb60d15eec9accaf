/* Files as mixt reads and writes them: mapped whole for reading; for writing, all or nothing.
 *
 * A writer fills a temporary file beside the destination and renames it when everything is on disk. Whatever fails
 * before that leaves the destination as it was and removes the temporary file.
 */
#ifndef MIXT_STORE_FILE_H
#define MIXT_STORE_FILE_H

#include "base/account.h"
#include "mixt/types.h"

#include <stdint.h>
#include <sys/types.h>

typedef struct mixt__file_map {
    const unsigned char *data; /**< NULL for an empty file */
    size_t bytes;
    mixt__account *account;        /**< that it is booked on */
    struct mixt__mapping *mapping; /**< watched for cuts; NULL: not */
    char *path;
    uint64_t device, inode; /**< of the file that is mapped, whatever has its name since */
} mixt__file_map;

/** Maps a regular file read-only. What somebody cuts off it while it is mapped reads as zeros. */
mixt_status mixt__file_map_open(const char *path, mixt__file_map *map);
/** The same of a file that we wrote: not through a link as the last name. */
mixt_status mixt__file_map_open_own(const char *path, mixt__file_map *map);
/** Fails where the file has been cut, so that zeros may have been read. */
mixt_status mixt__file_map_check(const mixt__file_map *map);
void mixt__file_map_close(mixt__file_map *map);

typedef struct mixt__file_writer {
    char *path, *temporary; /**< NULL when not open */
    int fd;
    bool overwrite;
} mixt__file_writer;

/** Fails when `path` exists and `overwrite` is false, or when its folder cannot be written. */
mixt_status mixt__file_writer_open(mixt__file_writer *writer, const char *path, bool overwrite);
mixt_status mixt__file_writer_append(mixt__file_writer *writer, const void *data, size_t bytes);
/** Puts the file in its place; after this, or a failure of it, the writer is closed. */
mixt_status mixt__file_writer_commit(mixt__file_writer *writer);
/** Removes what was written; nothing to do on a closed writer. */
void mixt__file_writer_abandon(mixt__file_writer *writer);

/** Writes into an open file at an offset: one that several processes fill, each its own bytes.
 *  @param path its name, for messages */
mixt_status mixt__file_write_at(int fd, const char *path, const void *data, size_t bytes, int64_t at);

/** write(2), or pwrite(2) where `at` is not below 0: what they say, or would on the full disk that a test wants. A
 * signal that is due (base/signal_at.h) comes when half is written. */
ssize_t mixt__file_write_some(int fd, const void *from, size_t bytes, int64_t at);

/** Some bytes as a file, all or nothing. */
mixt_status mixt__file_put(const char *path, const void *data, size_t bytes, bool overwrite);
/** Copies a file, all or nothing; replaces `to`. */
mixt_status mixt__file_copy(const char *from, const char *to);
/** The same of a file that we wrote: not through a link as the last name of `from`. */
mixt_status mixt__file_copy_own(const char *from, const char *to);

/** Removes what killed writers of `path` have left beside it; opening a writer does so too. */
void mixt__file_remove_left_behind(const char *path);

/** Lets the write number `number` from now (from 1) find the disk full, as MIXT_FAIL_WRITE does for a process; 0: none.
 * For tests. */
void mixt__file_fail_write(int64_t number);

/** Whether both names lead to the same file or folder, which is there. */
bool mixt__same_file(const char *a, const char *b);

/** True when `path` ends with `extension` (".npy"). */
bool mixt__path_has_extension(const char *path, const char *extension);

#endif
