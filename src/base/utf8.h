/* Bytes that come one after another, made into whole UTF-8 characters: what a terminal or a JSON writer may be given.
 *
 * A character is handed on when its last byte is there; what can never become one is replaced by U+FFFD.
 */
#ifndef MIXT_BASE_UTF8_H
#define MIXT_BASE_UTF8_H

#include <stddef.h>

typedef struct mixt__utf8 {
    unsigned char held[4]; // the beginning of a character
    int count;
} mixt__utf8;

enum { MIXT_UTF8_ROOM = 8 }; // bytes that one call writes at most, the final zero included

/** Takes a byte; writes what it completes (nothing, a character, U+FFFD, or both) and a zero. Returns its length. */
size_t mixt__utf8_put(mixt__utf8 *state, unsigned char byte, char text[MIXT_UTF8_ROOM]);
/** No more bytes come: half a character becomes U+FFFD. */
size_t mixt__utf8_end(mixt__utf8 *state, char text[MIXT_UTF8_ROOM]);

#endif
