/* Files of rows of JSON that must be read whole or not at all, because something is removed or concluded on the
 * strength of them. Each row ends with a checksum of its text; a row without one is of an older version.
 */
#ifndef MIXT_STORE_JSON_ROWS_H
#define MIXT_STORE_JSON_ROWS_H

#include "mixt/types.h"

#include <jansson.h>
#include <stdio.h>

/** A row's text, an object, with its checksum as the last key: freed with free(), as `text` is by this. NULL: no
 * memory. @param text may be NULL */
char *mixt__json_row_seal(char *text);
/** Hands out the rows of a file, one by one, without their checksums. What the end of the file cuts short is no row: a
 * process was killed while it wrote. Fails where a row is damaged, with file and line, and where reading fails or
 * memory: then the rows so far are not all.
 *  @param path for messages @param take borrows the row; a failure of it ends the reading */
mixt_status mixt__json_rows_read(FILE *file, const char *path, mixt_status (*take)(void *user, json_t *row),
                                 void *user);
/** Hands out the lines of a file some of whose rows may be damaged: each with its end, the last one also without. None
 * where there is no such file. Fails where not all could be read, and as `take` does. */
mixt_status mixt__json_lines_read(const char *path, mixt_status (*take)(void *user, const char *text, int64_t line),
                                  void *user);

#endif
