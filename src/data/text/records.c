/* Records of a CSV or TSV file, one after the other, unquoted in place. */
#include "data/text/records.h"

#include "data/table/json_lines.h"

#include <string.h>

static bool ends_with(const char *path, const char *ending)
{
    size_t length = strlen(path), tail = strlen(ending);
    if (length > 3 && !strcmp(path + length - 3, ".gz"))
        length -= 3;
    return length >= tail && !memcmp(path + length - tail, ending, tail);
}

bool mixt__records_are(const char *path)
{
    return ends_with(path, ".tsv") || ends_with(path, ".csv") || mixt__json_table_is(path);
}

/** What parts the fields of the first line. */
static char separator_of(const char *path, const unsigned char *at, const unsigned char *end)
{
    int64_t commas = 0, semicolons = 0;
    bool quoted = false;
    if (ends_with(path, ".tsv"))
        return '\t';
    if (mixt__json_table_is(path))
        return ',';
    for (; at < end && (quoted || *at != '\n'); at++) {
        quoted ^= *at == '"';
        if (*at == '\t' && !ends_with(path, ".csv"))
            return '\t';
        commas += !quoted && *at == ',';
        semicolons += !quoted && *at == ';';
    }
    return semicolons > commas ? ';' : ',';
}

mixt__records mixt__records_of(const char *path, mixt__bytes *file)
{
    mixt__records r = {.path = path, .at = file->bytes, .end = file->bytes + file->size};
    r.line = mixt__json_table_is(path) ? 0 : 1; // the header is none of the file's lines
    r.at += mixt__bytes_mark(file);
    r.separator = separator_of(path, r.at, r.end);
    return r;
}

/** The end of a field without quotes: a separator, a line end, or the end of the file. */
static unsigned char *plain_end(const mixt__records *r, unsigned char *at)
{
    while (at < r->end && *at != (unsigned char)r->separator && *at != '\n')
        at++;
    return at;
}

static mixt__span without_return(unsigned char *begin, const unsigned char *end, bool last)
{
    return (mixt__span){begin, end - begin - (last && end > begin && end[-1] == '\r')};
}

/** Drops one of each two quotes in [begin, end). */
static mixt__span unquote(unsigned char *begin, const unsigned char *end)
{
    unsigned char *to = begin;
    for (const unsigned char *from = begin; from < end; from++) {
        *to++ = *from;
        from += *from == '"';
    }
    return (mixt__span){begin, to - begin};
}

/** A field of TSV: in quotes as a whole, or as it is. */
static mixt__span field_of_tsv(mixt__span field)
{
    unsigned char *begin = (unsigned char *)(uintptr_t)field.bytes, *end = begin + field.size;
    if (field.size < 2 || *begin != '"' || end[-1] != '"')
        return field;
    for (unsigned char *at = begin + 1; at < end - 1; at++) {
        if (*at == '"' && (at + 1 == end - 1 || at[1] != '"'))
            return field;
        at += *at == '"';
    }
    return unquote(begin + 1, end - 1);
}

/** A field that begins with a quote, in CSV; r->at is behind it afterwards. */
static mixt_status take_quoted(mixt__records *r, int column, mixt__span *field)
{
    unsigned char *begin = r->at + 1, *at = begin;
    int64_t line = r->line;
    while (at < r->end && (*at != '"' || at[1] == '"')) { // the file ends with NUL
        r->line += *at == '\n';
        at += *at == '"' ? 2 : 1;
    }
    if (at >= r->end)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %d: the quote that opens the field is never closed",
                          r->path, (long long)line, column);
    r->at = at + 1;
    if (r->at < r->end && *r->at == '\r' && (r->at + 1 == r->end || r->at[1] == '\n'))
        r->at++;
    if (r->at < r->end && *r->at != (unsigned char)r->separator && *r->at != '\n')
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: line %lld, column %d: text after the closing quote; quotes inside a field are doubled",
                          r->path, (long long)r->line, column);
    *field = unquote(begin, at);
    return MIXT_OK;
}

static mixt_status take_field(mixt__records *r, int column, mixt__span *field)
{
    if (r->separator != '\t' && r->at < r->end && *r->at == '"')
        return take_quoted(r, column, field);
    unsigned char *end = plain_end(r, r->at);
    *field = without_return(r->at, end, end == r->end || *end == '\n');
    if (r->separator == '\t')
        *field = field_of_tsv(*field);
    r->at = end;
    return MIXT_OK;
}

static bool is_blank_line(const mixt__records *r)
{
    const unsigned char *at = r->at;
    return *at == '\n' || (*at == '\r' && (at + 1 == r->end || at[1] == '\n'));
}

mixt_status mixt__records_next(mixt__records *r, mixt__record *record)
{
    while (r->at < r->end && is_blank_line(r)) {
        r->at += *r->at == '\r';
        r->at += r->at < r->end;
        r->line++;
    }
    *record = (mixt__record){.line = r->line};
    if (r->at >= r->end)
        return MIXT_END;
    for (bool more = true; more;) {
        if (record->count == MIXT_RECORD_FIELDS)
            return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld has more than %d fields", r->path,
                              (long long)record->line, MIXT_RECORD_FIELDS);
        MIXT_TRY(take_field(r, record->count + 1, &record->field[record->count]));
        record->count++;
        more = r->at < r->end && *r->at == (unsigned char)r->separator;
        r->at += more;
    }
    r->line += r->at < r->end;
    r->at += r->at < r->end;
    return MIXT_OK;
}
