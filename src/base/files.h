/* Opening and removing by handle: what the name of a file or folder of ours may have become since.
 *
 * A run's folder may come from somebody else. A pipe in it would hold its reader for ever, a symbolic link would lead
 * whoever writes or removes to another place. So readers take regular files only, writers and removers follow no link
 * at the last name of a path. The folders that a user names on the way there may be links.
 */
#ifndef MIXT_BASE_FILES_H
#define MIXT_BASE_FILES_H

#include <stdbool.h>
#include <stdio.h>

/** Opens a regular file to read, also through links; -1 with errno, EINVAL where it is none. A name under /dev may be a
 * pipe: the user, or the user's shell, has put it there. */
int mixt__file_open_read(const char *path);
/** The same as a stream; NULL with errno. */
FILE *mixt__file_open_stream(const char *path);
/** Opens a regular file by `flags` of open(2), never through a link; -1 with errno, EMLINK where it is one. */
int mixt__file_open_write(const char *path, int flags);
/** The text of errno after the three above. */
const char *mixt__file_problem(int problem);

/** Opens a folder, not through a link as the last name; -1 with errno. @param at a folder's handle, or AT_FDCWD */
int mixt__folder_open(int at, const char *name);
/** Removes a folder with the regular files in it; links, devices and folders in it stay, and so it does then. Does
 * nothing where `name` is no folder but a link to one. Names that are not NULL are removed first and last. */
void mixt__folder_remove_files(int at, const char *name, const char *first, const char *last);
/** Removes a file, a link as such, or a folder with all in it; follows no link. Nothing is there: nothing to do. */
void mixt__folder_remove_all(const char *path);
/** Removes a regular file of a folder, unless the folder's last name is a link. */
void mixt__folder_remove_file(const char *folder, const char *name);

#endif
