/* Lists of globs over dotted names, as people write them: "h.0, wte*", or with a value each: "h.*=0.1, head=10".
 *
 * A glob also matches everything below what it names: "h.0" is "h.0.attn.qkv.weight" too. The last that matches counts.
 */
#ifndef MIXT_BASE_GLOBS_H
#define MIXT_BASE_GLOBS_H

#include "base/alloc.h"

typedef struct mixt__glob {
    const char *pattern;
    double value; // 0 where the list has none
    bool used;    // matched something so far
} mixt__glob;

typedef struct mixt__globs {
    mixt__glob *items;
    int64_t count;
    mixt__arena arena;
    char first[160], last[64]; // names that were looked up: some for a message
    int shown;
} mixt__globs;

/** @param list NULL or "": none
 *  @param values each glob has "=number", finite and at least 0
 *  @param what begins messages: the option that the list is of */
mixt_status mixt__globs_parse(mixt__globs *globs, const char *list, bool values, const char *what);
/** The last glob that matches; NULL: none. Marks every one that matches as used. */
const mixt__glob *mixt__globs_find(mixt__globs *globs, const char *name);
/** Fails with the first glob that has matched nothing.
 *  @param those what the names had in common that were looked up, as in "with weight decay "; "" for all */
mixt_status mixt__globs_check(const mixt__globs *globs, const char *what, const char *those);
void mixt__globs_free(mixt__globs *globs);

#endif
