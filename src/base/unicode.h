/* What tokenizers need to know of Unicode: UTF-8 decoding, the classes that their rules speak of, and folding.
 *
 * The tables are those of Unicode 16, made by tools/unicode_tables.py. This is no normalisation library: folding is
 * exactly what BERT's uncased vocabularies were made with, mark order included only as far as marks survive it.
 */
#ifndef MIXT_BASE_UNICODE_H
#define MIXT_BASE_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum mixt__code_class {
    MIXT_CODE_OTHER,
    MIXT_CODE_LETTER,      // \p{L}
    MIXT_CODE_NUMBER,      // \p{N}
    MIXT_CODE_SPACE,       // \s: White_Space
    MIXT_CODE_PUNCTUATION, // \p{P}
    MIXT_CODE_MARK,        // \p{Mn}
    MIXT_CODE_CONTROL,     // Cc, Cf, Co, spaces apart
} mixt__code_class;

enum { MIXT_CODE_INVALID = 0x110000, MIXT_FOLD_MAX = 4, MIXT_UTF8_MAX = 4 };

/** Classes of the first 128 code points. */
extern const uint8_t mixt__code_ascii[128];

mixt__code_class mixt__code_class_of(uint32_t code);

/** The code point at `text` (size at least 1) and the bytes it takes. MIXT_CODE_INVALID, of one byte, where the bytes
 *  are not UTF-8: too short, too long a form, a surrogate, past U+10FFFF. */
uint32_t mixt__utf8_decode(const unsigned char *text, int64_t size, int *bytes);
/** Writes a code point (below MIXT_CODE_INVALID); returns the bytes. */
int mixt__utf8_encode(uint32_t code, unsigned char bytes[MIXT_UTF8_MAX]);
/** Bytes before the first that is not part of valid UTF-8; `size` when all are. */
int64_t mixt__utf8_valid(const unsigned char *text, int64_t size);

/** Canonical decomposition without non-spacing marks, in lower case; returns how many code points (0 for a mark). */
int mixt__code_fold(uint32_t code, uint32_t folded[MIXT_FOLD_MAX]);

#endif
