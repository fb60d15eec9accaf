/* All memory of the library: 64-byte aligned, counted, and able to fail on request.
 *
 * Large buffers are planned and taken once; small host structures live in an arena and die together.
 * mixt__alloc_count() lets tests assert that a training step takes nothing.
 */
#ifndef MIXT_BASE_ALLOC_H
#define MIXT_BASE_ALLOC_H

#include "mixt/types.h"

/** Zeroed, 64-byte aligned memory; NULL when there is none (bytes = 0 gives a valid pointer). */
void *mixt__alloc(size_t bytes);
/** The same, not zeroed. */
void *mixt__alloc_uninit(size_t bytes);
/** Grows or shrinks a block of mixt__alloc, keeping the first min(old, new) bytes; NULL keeps the old block valid. */
void *mixt__realloc(void *block, size_t bytes);
void mixt__free(void *block);
/** What is at this address may be written to for ever, by a message that comes late: mixt__free leaves its block where
 *  it is. */
void mixt__alloc_hold(const void *address);
/** Whether any is held: then memory that is not of mixt__alloc, as a GPU's for the host, stays too. */
bool mixt__alloc_holds(void);
/** Bytes that a block was asked for; 0 for NULL. */
size_t mixt__alloc_size(const void *block);
char *mixt__strdup(const char *text);

/** Allocations made by the library so far, and bytes now held. */
int64_t mixt__alloc_count(void);
size_t mixt__alloc_bytes(void);

/** A bump allocator for structures that live and die together. Pointers stay valid until it is freed. */
typedef struct mixt__arena {
    struct mixt__arena_block *newest;
    bool short_of_memory; // something was asked for that there was no memory for
} mixt__arena;

/** Zeroed memory aligned to 16 bytes; NULL when there is none. */
void *mixt__arena_alloc(mixt__arena *arena, size_t bytes);
char *mixt__arena_strdup(mixt__arena *arena, const char *text);
char *mixt__arena_printf(mixt__arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The same for a text that only people read: "" where memory ends. */
const char *mixt__arena_text(mixt__arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void mixt__arena_free(mixt__arena *arena);

/** Makes room for one more element in a growing array of mixt__alloc; false when out of memory. */
bool mixt__grow(void **array, int64_t *capacity, int64_t count, size_t element_size);

#endif
