/* What commands that print JSON share: values go in by functions that note what is missing, a document is printed whole
 * or not at all. tools/json_writer.sh refuses jansson's own functions for that. */
#ifndef MIXT_CLI_JSON_H
#define MIXT_CLI_JSON_H

#include <mixt/types.h>

#include <jansson.h>
#include <stdio.h>

/** From now on JSON that is incomplete for want of memory is known as lost output. */
void cli_json_watch(void);
/** json_pack; NULL, and output is lost: no memory, or a text that is not UTF-8. */
json_t *cli_json_pack(const char *format, ...);
/** Takes `value`; where it is not there afterwards, output is lost. */
void cli_json_set(json_t *object, const char *key, json_t *value);
void cli_json_add(json_t *array, json_t *value);
/** A number for JSON, which has no NaN and no infinity: null for those. */
json_t *cli_json_real(double value);
/** A text for JSON: null where there is none. */
json_t *cli_json_string(const char *text);
/** A text for JSON, as printf makes it. */
json_t *cli_json_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** What the library gave as text. */
json_t *cli_json_read(const char *text);
/** A document and a line's end, where no output is lost. Frees it. */
void cli_json_print(json_t *document, FILE *stream, size_t flags);
/** Fails where a name is not UTF-8, which JSON cannot hold: to be asked before the work, not after it. */
mixt_status cli_json_name(const char *name);

#endif
