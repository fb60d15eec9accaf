/* Lines, fields and numbers of a CSV file, one after the other; nothing is copied. */
#include "data/table/csv_text.h"

#include "base/c_locale.h"

#include <string.h>

enum { QUOTED_MAX = 1 << 16 }; // characters of a field in quotes

static bool separates(const mixt__csv_text *text, char c)
{
    return text->separator ? c == text->separator : c == ';' || c == '\t' || c == ',' || c == ' ';
}

/** Behind the closing quote of the field that begins with one at `at`; NULL when none closes it. */
static const char *quoted_end(const mixt__csv_text *text, const char *at)
{
    const char *limit = text->end - at > QUOTED_MAX ? at + QUOTED_MAX : text->end;
    for (const char *c = at + 1; c < limit; c++) {
        if (*c != '"')
            continue;
        if (c[1] == '"') { // the text ends with NUL
            c++;
            continue;
        }
        const char *after = c + 1;
        while (after < text->end && !separates(text, *after) && (*after == ' ' || *after == '\r' || *after == '\t'))
            after++;
        return after == text->end || *after == '\n' || separates(text, *after) ? c + 1 : NULL;
    }
    return NULL;
}

/** The end of the line that begins at `at`: a line end that is not in quotes. */
static const char *line_end(mixt__csv_text *text, const char *at)
{
    const char *newline = memchr(at, '\n', (size_t)(text->end - at)), *stop = newline ? newline : text->end;
    text->inside = 0;
    if (!memchr(at, '"', (size_t)(stop - at)))
        return stop;
    bool begins = true;
    while (at < text->end && *at != '\n') {
        const char *behind = begins && *at == '"' ? quoted_end(text, at) : NULL;
        for (; behind && at < behind; at++)
            text->inside += *at == '\n';
        if (behind) {
            begins = false;
            continue;
        }
        begins = separates(text, *at) || (begins && (*at == ' ' || *at == '\t'));
        at++;
    }
    return at;
}

bool mixt__csv_next_line(mixt__csv_text *text, mixt__csv_field *line)
{
    while (text->at < text->end) {
        text->line += 1 + text->inside;
        const char *stop = line_end(text, text->at);
        line->text = text->at;
        text->at = stop < text->end ? stop + 1 : text->end;
        while (stop > line->text && (stop[-1] == '\r' || stop[-1] == ' '))
            stop--;
        while (line->text < stop && *line->text == ' ')
            line->text++;
        line->length = stop - line->text;
        if (line->length > 0 && *line->text != '#')
            return true;
    }
    return false;
}

bool mixt__csv_next_field(const mixt__csv_text *text, mixt__csv_field *rest, mixt__csv_field *field)
{
    if (!rest->text)
        return false;
    const char *end = rest->text + rest->length, *from = rest->text;
    while (from < end && !separates(text, *from) && (*from == ' ' || *from == '\t'))
        from++;
    const char *behind = from < end && *from == '"' ? quoted_end(text, from) : NULL;
    from = behind && behind <= end ? behind : rest->text;
    const char *stop = memchr(from, text->separator, (size_t)(end - from));
    *field = (mixt__csv_field){rest->text, (stop ? stop : end) - rest->text, false};
    while (stop && text->separator == ' ' && stop[1] == ' ')
        stop++;
    *rest = stop ? (mixt__csv_field){stop + 1, end - stop - 1, false} : (mixt__csv_field){NULL, 0, false};
    while (field->length > 0 && (*field->text == ' ' || *field->text == '\t')) {
        field->text++;
        field->length--;
    }
    while (field->length > 0 && (field->text[field->length - 1] == ' ' || field->text[field->length - 1] == '\t'))
        field->length--;
    if (field->length >= 2 && *field->text == '"' && field->text[field->length - 1] == '"') {
        field->text++;
        field->length -= 2;
        field->quoted = true;
    }
    return true;
}

bool mixt__csv_plain_number(const mixt__csv_field *field, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *at = field->text, *end = at + field->length;
    bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    uint64_t mantissa = 0;
    int digits = 0, decimals = 0;
    bool point = false;
    for (; at < end; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (*at < '0' || *at > '9' || digits == 15)
            return false;
        mantissa = mantissa * 10 + (uint64_t)(*at - '0');
        digits++;
        decimals += point;
    }
    double magnitude = (double)mantissa / powers[decimals];
    *value = negative ? -magnitude : magnitude;
    return digits > 0;
}

bool mixt__csv_number(const mixt__csv_field *field, double *value)
{
    if (field->length == 0)
        return false;
    if (mixt__csv_plain_number(field, value))
        return true;
    char first = *field->text;
    if (first == ' ' || first == '\t' || first == '\r' || first == '\v' || first == '\f' || first == '\n')
        return false; // strtod would skip it, over the end of the field
    if (memchr(field->text, 'x', (size_t)field->length) || memchr(field->text, 'X', (size_t)field->length))
        return false; // strtod knows hexadecimal, too
    char *end;
    *value = mixt__read_double(field->text, &end);
    return end == field->text + field->length;
}

char mixt__csv_separator(const mixt__csv_text *text, const mixt__csv_field *line)
{
    static const char candidates[] = {';', '\t', ',', ' '};
    bool seen[sizeof candidates] = {false}, begins = true;
    for (const char *at = line->text; at < line->text + line->length; at++) {
        const char *behind = begins && *at == '"' ? quoted_end(text, at) : NULL;
        at = behind ? behind - 1 : at;
        begins = !behind && separates(text, *at);
        for (size_t i = 0; i < sizeof candidates && !behind; i++)
            seen[i] |= *at == candidates[i];
    }
    for (size_t i = 0; i < sizeof candidates; i++)
        if (seen[i])
            return candidates[i];
    return ',';
}

int64_t mixt__csv_count_fields(const mixt__csv_text *text, mixt__csv_field line)
{
    mixt__csv_field field;
    int64_t count = 0;
    while (mixt__csv_next_field(text, &line, &field))
        count++;
    return count;
}

bool mixt__csv_missing(const mixt__csv_field *field)
{
    static const char *const words[] = {"", "NA", "N/A", "?", "null", "NULL", "None", "-", "nan", "NaN", "NAN"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((int64_t)strlen(words[i]) == field->length && !memcmp(field->text, words[i], (size_t)field->length))
            return true;
    return false;
}
