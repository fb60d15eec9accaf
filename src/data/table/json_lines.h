/* Tables of JSON lines, an object a row, read as the CSV that they say. */
#ifndef MIXT_DATA_JSON_LINES_H
#define MIXT_DATA_JSON_LINES_H

#include "data/data.h"

/** Whether a name is one of JSON lines: .jsonl, .ndjson, plain or gzip. */
bool mixt__json_table_is(const char *path);
/** Turns a file's bytes into CSV where its name is one of JSON lines: a header of all keys, each row in its own line.
 *  @param lines set to the number of the line that the header takes: 1, or 0 where rows keep those of the file */
mixt_status mixt__json_table_convert(const char *path, mixt__bytes *file, int64_t *lines);
/** mixt__bytes_read, and that. */
mixt_status mixt__json_table_read(const char *path, mixt__bytes *file, int64_t *lines);

#endif
