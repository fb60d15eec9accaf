/* The byte ranges of well-formed UTF-8 (Unicode standard, table 3-7). */
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

/** Bytes of the character that begins so; 0: none does. */
static int length_of(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/** Whether a byte may come next; the second has narrower limits behind some first bytes: no overlong forms, no
 *  surrogates, nothing past U+10FFFF. */
static bool fits(const mixt__utf8 *s, unsigned char byte)
{
    unsigned char low = 0x80, high = 0xbf, first = s->held[0];
    if (s->count == 1) {
        low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : low;
        high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : high;
    }
    return byte >= low && byte <= high;
}

static size_t begin(mixt__utf8 *s, unsigned char byte, char *text)
{
    if (!length_of(byte)) {
        memcpy(text, replacement, sizeof replacement);
        return strlen(replacement);
    }
    if (length_of(byte) == 1) {
        text[0] = (char)byte;
        text[1] = '\0';
        return 1;
    }
    s->held[0] = byte;
    s->count = 1;
    text[0] = '\0';
    return 0;
}

size_t mixt__utf8_put(mixt__utf8 *s, unsigned char byte, char text[MIXT_UTF8_ROOM])
{
    if (!s->count)
        return begin(s, byte, text);
    if (!fits(s, byte)) {
        size_t used = mixt__utf8_end(s, text);
        return used + begin(s, byte, text + used);
    }
    s->held[s->count++] = byte;
    if (s->count < length_of(s->held[0])) {
        text[0] = '\0';
        return 0;
    }
    size_t length = (size_t)s->count;
    memcpy(text, s->held, length);
    text[length] = '\0';
    s->count = 0;
    return length;
}

size_t mixt__utf8_end(mixt__utf8 *s, char text[MIXT_UTF8_ROOM])
{
    bool half = s->count > 0;
    s->count = 0;
    memcpy(text, half ? replacement : "", half ? sizeof replacement : 1);
    return half ? strlen(replacement) : 0;
}
