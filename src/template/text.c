/* UTF-8 gone through character by character; where all is ASCII, bytes are characters. */
#include "template/text.h"

#include "base/unicode.h"

#include <string.h>

bool mixt__tpl_is_blank(uint32_t code)
{
    return (code >= 0x1c && code <= 0x1f) || mixt__code_class_of(code) == MIXT_CODE_SPACE;
}

size_t mixt__tpl_forward(const char *text, size_t size, uint32_t *code)
{
    int bytes;
    if (!size)
        return 0;
    *code = mixt__utf8_decode((const unsigned char *)text, (int64_t)size, &bytes);
    return (size_t)bytes;
}

size_t mixt__tpl_backward(const char *text, size_t size, uint32_t *code)
{
    size_t begin = size;
    while (begin > 0 && (text[--begin] & 0xc0) == 0x80)
        ;
    return mixt__tpl_forward(text + begin, size - begin, code);
}

static bool goes(uint32_t code, const mixt__tpl_value *which)
{
    if (!which)
        return mixt__tpl_is_blank(code);
    uint32_t other = 0;
    for (size_t at = 0, step; (step = mixt__tpl_forward(which->text + at, which->size - at, &other)); at += step)
        if (other == code)
            return true;
    return false;
}

void mixt__tpl_strip(mixt__tpl_value *text, const mixt__tpl_value *which, bool left, bool right)
{
    uint32_t code = 0;
    size_t step;
    while (left && (step = mixt__tpl_forward(text->text, text->size, &code)) && goes(code, which)) {
        text->text += step;
        text->size -= step;
    }
    while (right && (step = mixt__tpl_backward(text->text, text->size, &code)) && goes(code, which))
        text->size -= step;
}

int64_t mixt__tpl_find_text(const char *text, size_t size, const char *part, size_t part_size)
{
    if (part_size > size)
        return -1;
    const char *found = part_size ? memmem(text, size, part, part_size) : text;
    return found ? found - text : -1;
}

int64_t mixt__tpl_find_text_last(const char *text, size_t size, const char *part, size_t part_size)
{
    if (part_size > size)
        return -1;
    for (size_t at = size - part_size + 1; at-- > 0;)
        if (!memcmp(text + at, part, part_size))
            return (int64_t)at;
    return -1;
}

int64_t mixt__tpl_characters(const char *text, size_t size)
{
    int64_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += (text[i] & 0xc0) != 0x80;
    return count;
}

size_t mixt__tpl_character_at(const char *text, size_t size, int64_t index)
{
    size_t at = 0;
    for (int64_t i = 0; at < size; at++) {
        if ((text[at] & 0xc0) == 0x80)
            continue;
        if (i++ == index)
            return at;
    }
    return size;
}
