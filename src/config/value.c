/* Parsing and printing of single values. Numbers are read and written in the C locale whatever the program's is, so
 * that a configuration means the same everywhere. */
#include "config/value.h"

#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/range.h"
#include "base/sizes.h"
#include "base/words.h"
#include "base/status.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *mixt__config_expects(const mixt_config_record *record, char *text, size_t size)
{
    static const char *const nouns[] = {"text",
                                        "an integer",
                                        "a number",
                                        "true or false",
                                        "one of",
                                        "one of",
                                        "a list of integers",
                                        "a list of",
                                        "an amount of memory as in 900M or 12G"};
    char words[160] = "", range[96];
    mixt__choice_list(record->choices, words, sizeof words);
    mixt__range_words(record->range, range, sizeof range);
    snprintf(text, size, "%s%s%s%s%s%s", nouns[record->type], *words ? " " : "", words,
             record->type == MIXT_CONFIG_CHOICE_OR_FLOAT ? ", or a number" : "", *range ? " " : "", range);
    return text;
}

mixt_status mixt_config_expects(const mixt_config_record *record, char **text)
{
    char words[MIXT_EXPECTS_TEXT];
    MIXT_TRY(mixt__need(record));
    MIXT_TRY(mixt__need(text));
    return mixt__give_text(text, "%s", mixt__config_expects(record, words, sizeof words));
}

static mixt_status fail_type(const mixt_config_record *record, const char *text, bool quoted)
{
    char expected[MIXT_EXPECTS_TEXT];
    mixt__config_expects(record, expected, sizeof expected);
    if (!quoted && (!*text || !strcmp(text, "~") || !strcmp(text, "null")))
        return mixt__fail(MIXT_ERROR_CONFIG, "%s has no value: expected %s", record->name, expected);
    return mixt__fail(MIXT_ERROR_CONFIG, "%s: expected %s, found %s%.80s%s%s", record->name, expected,
                      quoted ? "the text \"" : "'", text, quoted ? "\"" : "'",
                      quoted && record->type != MIXT_CONFIG_CHOICE ? " (remove the quotes)" : "");
}

static mixt_status check_range(const mixt_config_record *record, double number, const char *text)
{
    bool good = mixt__range_has(record->range, number);
    char words[96];
    mixt__range_words(record->range, words, sizeof words);
    return good ? MIXT_OK
                : mixt__fail(MIXT_ERROR_CONFIG, "%s: %.80s is out of range: must be %s", record->name, text, words);
}

static mixt_status parse_integer(int64_t *integer, const mixt_config_record *record, const char *text, bool quoted)
{
    size_t sign = *text == '-' || *text == '+';
    size_t digits = strspn(text + sign, "0123456789");
    if (quoted || !digits || text[sign + digits])
        return fail_type(record, text, quoted);
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: %.80s does not fit 64 bits", record->name, text);
    *integer = value;
    return check_range(record, (double)value, text);
}

static mixt_status parse_number(double *number, const mixt_config_record *record, const char *text, bool quoted)
{
    // Only decimal notation: strtod would also take hexadecimal, "nan" and "infinity".
    if (quoted || !*text || strspn(text, "+-.0123456789eE") != strlen(text))
        return fail_type(record, text, quoted);
    char *end;
    double value = mixt__read_double(text, &end);
    if (*end || end == text)
        return fail_type(record, text, quoted);
    MIXT_TRY(check_range(record, value, text));
    if (!isfinite((float)value)) // numbers are used as FP32: not finite or 0 there would mean something else
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: %.80s is too large: at most 3.4e38 in size", record->name, text);
    if (value != 0 && (float)value == 0)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: %.80s is too small: FP32 cannot distinguish it from 0", record->name,
                          text);
    *number = value;
    return MIXT_OK;
}

/** The next code point of UTF-8 text, advancing *at; 0xFFFFFFFF when the bytes are not UTF-8. */
static uint32_t next_code_point(const unsigned char **at)
{
    const unsigned char *p = *at;
    int more = p[0] < 0x80 ? 0 : (p[0] & 0xe0) == 0xc0 ? 1 : (p[0] & 0xf0) == 0xe0 ? 2 : (p[0] & 0xf8) == 0xf0 ? 3 : -1;
    if (more < 0)
        return UINT32_MAX;
    static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
    uint32_t code = more ? p[0] & (0x3fu >> more) : p[0];
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return UINT32_MAX;
        code = code << 6 | (p[i] & 0x3f);
    }
    *at = p + more + 1;
    return code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? UINT32_MAX : code;
}

/** YAML cannot hold bytes that are not UTF-8, and control characters have no place in a name or path. */
static mixt_status parse_string(char **string, const mixt_config_record *record, const char *text, bool quoted)
{
    if (!quoted && (!strcmp(text, "~") || !strcmp(text, "null")))
        return fail_type(record, text, quoted);
    if (strlen(text) > MIXT_CONFIG_TEXT_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: text of %zu bytes: at most %d", record->name, strlen(text),
                          MIXT_CONFIG_TEXT_MAX);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        long offset = at - (const unsigned char *)text;
        uint32_t code = next_code_point(&at);
        if (code == UINT32_MAX)
            return mixt__fail(MIXT_ERROR_CONFIG, "%s: text is not UTF-8 at byte %ld", record->name, offset);
        if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029 || code == 0xfeff ||
            (code & 0xfffe) == 0xfffe)
            return mixt__fail(MIXT_ERROR_CONFIG, "%s: text has the control character U+%04X at byte %ld", record->name,
                              (unsigned)code, offset);
    }
    *string = mixt__strdup(text);
    return *string ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its text", record->name);
}

/** A word that is none of the choices, with the one that was perhaps meant. */
static mixt_status fail_choice(const mixt_config_record *record, const char *text, bool quoted)
{
    char hint[96];
    mixt_status status = fail_type(record, text, quoted);
    return mixt__fail(status, "%s%s", mixt_error_text(), mixt__choice_hint(record->choices, text, hint, sizeof hint));
}

static mixt_status parse_choice(mixt__config_value *value, const mixt_config_record *record, const char *text,
                                bool quoted)
{
    value->choice = mixt__choice_find(record->choices, text);
    if (value->choice >= 0)
        return parse_string(&value->text, record, text, true);
    if (record->type == MIXT_CONFIG_CHOICE_OR_FLOAT && (isdigit((unsigned char)*text) || strchr("+-.", *text)))
        return parse_number(&value->number, record, text, quoted);
    return fail_choice(record, text, quoted);
}

/** The text is kept: it is what was meant, and what is written again. */
static mixt_status parse_size(mixt__config_value *value, const mixt_config_record *record, const char *text)
{
    if (!mixt__size_parse(text, &value->integer))
        return fail_type(record, text, false);
    return parse_string(&value->text, record, text, true);
}

static mixt_status parse_boolean(bool *boolean, const mixt_config_record *record, const char *text, bool quoted)
{
    bool yes = !strcmp(text, "true") || !strcmp(text, "yes") || !strcmp(text, "on");
    bool no = !strcmp(text, "false") || !strcmp(text, "no") || !strcmp(text, "off");
    if (quoted || (!yes && !no))
        return fail_type(record, text, quoted);
    *boolean = yes;
    return MIXT_OK;
}

mixt_status mixt__value_append(mixt__config_value *value, const mixt_config_record *record, const char *text,
                               bool quoted)
{
    if (value->count == MIXT_CONFIG_LIST_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: more than %d elements", record->name, MIXT_CONFIG_LIST_MAX);
    if (record->type == MIXT_CONFIG_INTS)
        return parse_integer(&value->list[value->count++], record, text, quoted);
    int position = mixt__choice_find(record->choices, text);
    if (position < 0)
        return fail_choice(record, text, false);
    value->list[value->count++] = position;
    return MIXT_OK;
}

/** "1,2", "[1, 2]" or "[]"; of words also nothing at all: none of them. */
static mixt_status parse_list(mixt__config_value *value, const mixt_config_record *record, const char *text,
                              bool quoted)
{
    size_t length = strlen(text);
    bool brackets = length >= 2 && text[0] == '[' && text[length - 1] == ']';
    const char *at = text + brackets, *end = text + length - brackets;
    bool blank = strspn(at, " ") == (size_t)(end - at);
    if (quoted || (blank && !brackets && record->type != MIXT_CONFIG_WORDS) || length > MIXT_CONFIG_TEXT_MAX)
        return fail_type(record, text, quoted);
    while (!blank && at <= end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        while (at < stop && *at == ' ')
            at++;
        char element[32];
        int width = (int)(stop - at);
        while (width > 0 && at[width - 1] == ' ')
            width--;
        snprintf(element, sizeof element, "%.*s", width, at);
        if (!width || width >= (int)sizeof element)
            return fail_type(record, text, quoted);
        MIXT_TRY(mixt__value_append(value, record, element, quoted));
        at = stop + 1;
    }
    return MIXT_OK;
}

mixt_status mixt__value_parse(mixt__config_value *value, const mixt_config_record *record, const char *text,
                              bool quoted)
{
    *value = (mixt__config_value){.choice = -1};
    switch (record->type) {
    case MIXT_CONFIG_STRING:
        return parse_string(&value->text, record, text, quoted);
    case MIXT_CONFIG_INT:
        return parse_integer(&value->integer, record, text, quoted);
    case MIXT_CONFIG_FLOAT:
        return parse_number(&value->number, record, text, quoted);
    case MIXT_CONFIG_BOOL:
        return parse_boolean(&value->boolean, record, text, quoted);
    case MIXT_CONFIG_CHOICE:
    case MIXT_CONFIG_CHOICE_OR_FLOAT:
        return parse_choice(value, record, text, quoted);
    case MIXT_CONFIG_INTS:
    case MIXT_CONFIG_WORDS:
        return parse_list(value, record, text, quoted);
    case MIXT_CONFIG_SIZE:
        return parse_size(value, record, text);
    }
    return mixt__fail(MIXT_ERROR_INTERNAL, "%s: type %d has no parser", record->name, (int)record->type);
}
