/* JSON that is complete or not written.
 *
 * Values are jansson's. Where one cannot be put into its object or array, for want of memory say, the container is
 * known as incomplete from then on, and no text is made of it nor of anything that holds it. So who builds a document
 * need not look at each value: it is enough to look at the text, once, at the end.
 */
#ifndef MIXT_STORE_JSON_H
#define MIXT_STORE_JSON_H

#include "mixt/types.h"

#include <jansson.h>

/** Takes `value`. -1: it is not there, and `object` is incomplete; NULL for a value counts as one that failed. */
int mixt__json_set(json_t *object, const char *key, json_t *value);
int mixt__json_add(json_t *array, json_t *value);
/** Puts `value`, which it does not take, in the place of an array's element. */
int mixt__json_replace(json_t *array, size_t index, json_t *value);
/** Leaves the key out where the number is not finite: JSON has none such. */
int mixt__json_set_real(json_t *object, const char *key, double value);
/** Puts null where the number is not finite: the others keep their places. */
int mixt__json_add_real(json_t *array, double value);
/** All of `other`'s keys, which stays as it is. */
int mixt__json_merge(json_t *object, const json_t *other);
/** A deep copy; NULL: no memory for all of it. */
json_t *mixt__json_copy(const json_t *value);
/** Leaves the key out where there is no text. */
int mixt__json_set_text(json_t *object, const char *key, const char *text);
/** Bytes that are no UTF-8, of a file's name say, become U+FFFD. NULL: no memory, or no text. */
json_t *mixt__json_string(const char *text);
/** Whether nothing is missing anywhere in it; NULL is not whole. */
bool mixt__json_whole(const json_t *value);
/** json_dumps of what is whole, else NULL: freed with free(). */
char *mixt__json_dumps(const json_t *value, size_t flags);
/** json_loadb, but for want of memory: then always json_error_out_of_memory, never another error or an abort. */
json_t *mixt__json_load(const void *text, size_t bytes, size_t flags, json_error_t *error);
/** Reads a document. MIXT_ERROR_MEMORY, or MIXT_ERROR_FORMAT naming `path`, line and column. */
mixt_status mixt__json_parse(const char *path, const void *text, size_t bytes, size_t flags, json_t **value);
/** Reads a row, of a file some of whose rows may be damaged: NULL in *row for such a one. Fails for want of memory. */
mixt_status mixt__json_row(const char *text, json_t **row);

#endif
