/* Texts and numbers as a template writes them: Python's escapes, digits with underscores between them. */
#include "template/tree.h"

#include "base/c_locale.h"
#include "base/unicode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

/** The code of an escape with digits, of which `text` holds the first; *used: how many there are. -1: too few. */
static int64_t code_of(const char *text, size_t size, int base, size_t least, size_t most, size_t *used)
{
    int64_t code = 0;
    size_t i = 0;
    for (; i < size && i < most && digit(text[i]) < base; i++)
        code = code * base + digit(text[i]);
    *used = i;
    return i < least ? -1 : code;
}

/** Undoes the escape behind a backslash: writes to *to, returns how many bytes of `text` it took; 0: it is damaged. */
static size_t escape(const char *text, size_t size, char **to)
{
    static const char simple[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    for (const char *pair = simple; *pair; pair += 2)
        if (*pair == *text) {
            *(*to)++ = pair[1];
            return 1;
        }
    if (*text == '\n')
        return 1; // a line goes on
    size_t used = 0, lead = 1, digits = *text == 'x' ? 2 : *text == 'u' ? 4 : *text == 'U' ? 8 : 0;
    int64_t code;
    if (digits) {
        code = code_of(text + 1, size - 1, 16, digits, digits, &used);
    } else if (*text >= '0' && *text <= '7') {
        lead = 0;
        code = code_of(text, size, 8, 1, 3, &used);
    } else if (*text == 'N') {
        return 0;
    } else { // Python keeps both
        *(*to)++ = '\\';
        *(*to)++ = *text;
        return 1;
    }
    if (code < 0 || code >= MIXT_CODE_INVALID || (code >= 0xd800 && code < 0xe000))
        return 0;
    *to += mixt__utf8_encode((uint32_t)code, (unsigned char *)*to);
    return lead + used;
}

mixt_status mixt__tpl_read_text(mixt__tpl_lexer *lexer, const char *text, size_t size, mixt__tpl_value *value)
{
    if (!memchr(text, '\\', size)) {
        *value = mixt__tpl_text(text, size);
        return MIXT_OK;
    }
    char *copy, *to;
    MIXT_TRY(mixt__tpl_take_text(lexer->heap, size, &copy)); // no escape is shorter than what it stands for
    to = copy;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != '\\') {
            *to++ = text[i];
            continue;
        }
        size_t used = escape(text + i + 1, size - i - 1, &to);
        if (!used)
            return mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_FORMAT,
                                    "escape '\\%c' in a text is not known here", text[i + 1]);
        i += used;
    }
    *value = mixt__tpl_text(copy, (size_t)(to - copy));
    return MIXT_OK;
}

/** Copies digits without the underscores between them; returns the bytes of both. */
static size_t digits_of(const char *text, size_t size, int base, char *to, size_t room)
{
    size_t used = 0, kept = 0;
    while (used < size && kept + 1 < room) {
        if (text[used] == '_' && kept && used + 1 < size && digit(text[used + 1]) < base)
            used++;
        if (digit(text[used]) >= base)
            break;
        to[kept++] = text[used++];
    }
    to[kept] = 0;
    return used;
}

static mixt_status whole(mixt__tpl_lexer *lexer, const char *digits, int base, mixt__tpl_value *value)
{
    errno = 0;
    *value = mixt__tpl_int(strtoll(digits, NULL, base));
    if (errno)
        return mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_UNSUPPORTED, "number %s does not fit 64 bits",
                                digits);
    return MIXT_OK;
}

mixt_status mixt__tpl_read_number(mixt__tpl_lexer *lexer, mixt__tpl_value *value)
{
    enum { ROOM = 72 };
    char text[3 * ROOM + 4];
    const char *at = lexer->at;
    size_t size = (size_t)(lexer->end - at), used;
    char second = size > 1 ? (char)(at[1] | 0x20) : 0;
    int base = *at != '0' ? 10 : second == 'x' ? 16 : second == 'o' ? 8 : second == 'b' ? 2 : 10;
    if (base != 10) {
        used = digits_of(at + 2, size - 2, base, text, ROOM);
        lexer->at += used ? 2 + used : 1;
        return used ? whole(lexer, text, base, value)
                    : mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_FORMAT, "a number without digits");
    }
    used = digits_of(at, size, 10, text, ROOM);
    size_t length = strlen(text), whole_used = used;
    bool after_dot = at[-1] == '.'; // x.0.1 are two subscripts
    if (!after_dot && used + 1 < size && at[used] == '.' && digit(at[used + 1]) < 10) {
        text[length++] = '.';
        used += 1 + digits_of(at + used + 1, size - used - 1, 10, text + length, ROOM);
        length = strlen(text);
    }
    size_t sign = used + 1 < size && (at[used + 1] == '-' || at[used + 1] == '+');
    if (!after_dot && used + 1 + sign < size && (at[used] | 0x20) == 'e' && digit(at[used + 1 + sign]) < 10) {
        text[length++] = 'e';
        if (sign)
            text[length++] = at[used + 1];
        used += 1 + sign + digits_of(at + used + 1 + sign, size - used - 1 - sign, 10, text + length, ROOM);
    }
    lexer->at += used;
    if (used > whole_used) {
        *value = mixt__tpl_float(mixt__read_double(text, NULL));
        return MIXT_OK;
    }
    if (text[0] == '0' && strspn(text, "0") != strlen(text))
        return mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_FORMAT, "number %s begins with 0", text);
    return whole(lexer, text, 10, value);
}
