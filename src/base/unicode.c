/* UTF-8, and tables that are searched by halving; ASCII has a table of its own. */
#include "base/unicode.h"

#include <string.h>

typedef struct code_range {
    uint32_t first, last;
    mixt__code_class kind;
} code_range;

typedef struct code_fold {
    uint32_t code, to[MIXT_FOLD_MAX]; // ends at the first 0
} code_fold;

#define L MIXT_CODE_LETTER
#define N MIXT_CODE_NUMBER
#define S MIXT_CODE_SPACE
#define P MIXT_CODE_PUNCTUATION
#define M MIXT_CODE_MARK
#define C MIXT_CODE_CONTROL
#include "base/unicode_tables.inc"

// clang-format off
const uint8_t mixt__code_ascii[128] = {
    C, C, C, C, C, C, C, C, C, S, S, S, S, S, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C, C,
    S, P, P, P, 0, P, P, P, P, P, P, 0, P, P, P, P, N, N, N, N, N, N, N, N, N, N, P, P, 0, 0, 0, P,
    P, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, P, P, P, 0, P,
    0, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, P, 0, P, 0, C,
};
// clang-format on
#undef L
#undef N
#undef S
#undef P
#undef M
#undef C

enum { RANGES = sizeof ranges / sizeof ranges[0], FOLDS = sizeof folds / sizeof folds[0] };

mixt__code_class mixt__code_class_of(uint32_t code)
{
    if (code < 128)
        return (mixt__code_class)mixt__code_ascii[code];
    int low = 0, high = RANGES;
    while (low < high) {
        int middle = (low + high) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < RANGES && code >= ranges[low].first ? ranges[low].kind : MIXT_CODE_OTHER;
}

uint32_t mixt__utf8_decode(const unsigned char *text, int64_t size, int *bytes)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code = text[0];
    *bytes = 1;
    if (code < 0x80)
        return code;
    int length = code >= 0xc2 && code < 0xe0 ? 2 : (code & 0xf0) == 0xe0 ? 3 : code >= 0xf0 && code < 0xf5 ? 4 : 0;
    if (!length || length > size)
        return MIXT_CODE_INVALID;
    code &= 0x7fu >> length;
    for (int i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return MIXT_CODE_INVALID;
        code = code << 6 | (text[i] & 0x3f);
    }
    if (code < least[length] || code >= MIXT_CODE_INVALID || (code >= 0xd800 && code < 0xe000))
        return MIXT_CODE_INVALID;
    *bytes = length;
    return code;
}

int mixt__utf8_encode(uint32_t code, unsigned char bytes[MIXT_UTF8_MAX])
{
    int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = length - 1; i > 0; i--, code >>= 6)
        bytes[i] = (unsigned char)(0x80 | (code & 0x3f));
    bytes[0] = (unsigned char)(lead[length] | code);
    return length;
}

int64_t mixt__utf8_valid(const unsigned char *text, int64_t size)
{
    int64_t at = 0;
    while (at < size) {
        uint64_t eight;
        while (at + 8 <= size && (memcpy(&eight, text + at, 8), !(eight & 0x8080808080808080u)))
            at += 8;
        if (at >= size)
            break;
        int bytes;
        if (mixt__utf8_decode(text + at, size - at, &bytes) == MIXT_CODE_INVALID)
            return at;
        at += bytes;
    }
    return size;
}

/** Hangul syllables are arithmetic: a leading consonant, a vowel, perhaps a trailing consonant. */
static int fold_hangul(uint32_t code, uint32_t *folded)
{
    uint32_t index = code - 0xac00, tail = index % 28;
    folded[0] = 0x1100 + index / 588;
    folded[1] = 0x1161 + index % 588 / 28;
    folded[2] = 0x11a7 + tail;
    return tail ? 3 : 2;
}

int mixt__code_fold(uint32_t code, uint32_t folded[MIXT_FOLD_MAX])
{
    folded[0] = code >= 'A' && code <= 'Z' ? code + 32 : code;
    if (code < 128)
        return 1;
    if (code >= 0xac00 && code <= 0xd7a3)
        return fold_hangul(code, folded);
    int low = 0, high = FOLDS;
    while (low < high) {
        int middle = (low + high) / 2;
        if (code > folds[middle].code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == FOLDS || folds[low].code != code)
        return mixt__code_class_of(code) == MIXT_CODE_MARK ? 0 : 1;
    int count = 0;
    while (count < MIXT_FOLD_MAX && folds[low].to[count]) {
        folded[count] = folds[low].to[count];
        count++;
    }
    return count;
}
