/* Canonical composition of Unicode (NFC): one way to write what may be written in several, as e with an acute accent.
 */
#ifndef MIXT_BASE_NORMAL_H
#define MIXT_BASE_NORMAL_H

#include "mixt/types.h"

/** Whether a text of valid UTF-8 may change: it has a character that composes or is to be ordered. */
bool mixt__normal_may_change(const unsigned char *text, int64_t size);

/** A text of valid UTF-8 composed. @param made set to `bytes` bytes, freed with mixt__free */
mixt_status mixt__normal_compose(const unsigned char *text, int64_t size, unsigned char **made, int64_t *bytes);

#endif
