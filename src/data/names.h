/* Names that get numbers in the order in which they come up. */
#ifndef MIXT_DATA_NAMES_H
#define MIXT_DATA_NAMES_H

#include "base/alloc.h"

/** Begins as zeros. */
typedef struct mixt__names {
    char *text; // one behind the other, each with its end
    int64_t text_size, text_capacity;
    int64_t *begin; // (count) where each begins
    int64_t count, capacity;
    int32_t *slots; // (slot_count) numbers + 1 by hash; 0: free
    int64_t slot_count;
} mixt__names;

/** The number of a name, a new one where it is new; -1: memory ends, or there are 2^31 - 1 of them. */
int64_t mixt__names_add(mixt__names *names, const char *text, int64_t length);
/** The number of a name that is known; -1: it is not. */
int64_t mixt__names_number(const mixt__names *names, const char *text, int64_t length);
/** All names by number, in an arena; NULL when memory ends. */
const char *const *mixt__names_list(const mixt__names *names, mixt__arena *arena);
void mixt__names_free(mixt__names *names);

#endif
