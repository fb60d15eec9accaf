/* Reads a configuration file with libyaml's event parser, so that every message can name line and column.
 *
 * Only what a configuration needs is accepted: one document, nested maps, scalars and lists of scalars. Anchors,
 * aliases and tags are refused, which also rules out cycles and documents that expand without bound. Depth is bounded
 * by the table: a map is entered only where some key lives below it.
 */
#include "config/config.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/handles.h"
#include "base/status.h"
#include "config/value.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <yaml.h>

enum { FILE_MAX = 1 << 20, PATH_LENGTH_MAX = 512 };

typedef struct seen_key {
    char *name;
    size_t line;
} seen_key;

typedef struct reader {
    mixt_config *config;
    const char *path;
    const char *text; // the whole file
    size_t size;
    yaml_parser_t parser;
    yaml_event_t event; // the current one
    bool has_event;
    mixt__arena names;
    seen_key *seen; // every key and section met in this file
    int64_t seen_count, seen_capacity;
} reader;

static mixt_status fail_mark(const reader *r, size_t line, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static mixt_status fail_mark(const reader *r, size_t line, size_t column, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return mixt__fail(MIXT_ERROR_CONFIG, "%s:%zu:%zu: %s", r->path, line + 1, column + 1, text);
}

/** Fails at the start of the current event. */
#define fail_here(r, ...) fail_mark((r), (r)->event.start_mark.line, (r)->event.start_mark.column, __VA_ARGS__)

/** Puts the place of the current event before a message that has none yet. */
static mixt_status add_place(const reader *r, mixt_status status)
{
    return mixt__fail_context(status, "%s:%zu:%zu", r->path, r->event.start_mark.line + 1,
                              r->event.start_mark.column + 1);
}

/** What libyaml did not like, with a hint where the cause is a tab. */
static mixt_status fail_syntax(const reader *r)
{
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", r->path);
    if (p->error == YAML_READER_ERROR) {
        size_t line = 0, column = 0;
        for (size_t i = 0; i < p->problem_offset && i < r->size; i++) {
            column = r->text[i] == '\n' ? 0 : column + 1;
            line += r->text[i] == '\n';
        }
        return fail_mark(r, line, column, "not valid text: %s", p->problem);
    }
    size_t index = p->problem_mark.index;
    const char *begin = r->text + (index < r->size ? index : r->size);
    while (begin > r->text && begin[-1] != '\n')
        begin--;
    bool tab = memchr(begin, '\t', strcspn(begin, "\n")) != NULL;
    return fail_mark(r, p->problem_mark.line, p->problem_mark.column, "not valid YAML: %s%s%s%s", p->problem,
                     p->context ? " " : "", p->context ? p->context : "",
                     tab ? " (the line has a tab: YAML is indented with spaces)" : "");
}

static mixt_status next_event(reader *r)
{
    if (r->has_event)
        yaml_event_delete(&r->event);
    r->has_event = false;
    if (!yaml_parser_parse(&r->parser, &r->event))
        return fail_syntax(r);
    r->has_event = true;
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (r->event.type) {
    case YAML_ALIAS_EVENT:
        return fail_here(r, "aliases (*%s) are not supported: write the value out", r->event.data.alias.anchor);
    case YAML_SCALAR_EVENT:
        anchor = r->event.data.scalar.anchor;
        tag = r->event.data.scalar.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = r->event.data.mapping_start.anchor;
        tag = r->event.data.mapping_start.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = r->event.data.sequence_start.anchor;
        tag = r->event.data.sequence_start.tag;
        break;
    default:
        break;
    }
    if (anchor)
        return fail_here(r, "anchors (&%s) are not supported: write the value where it is used", anchor);
    if (tag)
        return fail_here(r, "tags (%s) are not supported", tag);
    return MIXT_OK;
}

static bool is_quoted(const yaml_event_t *event)
{
    return event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
}

/** Refuses a key that this file has already set, in whichever spelling (nested or dotted). */
static mixt_status remember(reader *r, const char *name)
{
    for (int64_t i = 0; i < r->seen_count; i++)
        if (!strcmp(r->seen[i].name, name))
            return fail_here(r, "%s is given twice: first in line %zu", name, r->seen[i].line);
    char *copy = mixt__arena_strdup(&r->names, name);
    if (!copy || !mixt__grow((void **)&r->seen, &r->seen_capacity, r->seen_count, sizeof *r->seen))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", r->path);
    r->seen[r->seen_count++] = (seen_key){copy, r->event.start_mark.line + 1};
    return MIXT_OK;
}

/** The elements of a list, up to and with its end. */
static mixt_status read_list(reader *r, mixt__config_value *value, const mixt_config_record *record)
{
    for (;;) {
        MIXT_TRY(next_event(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return MIXT_OK;
        if (r->event.type != YAML_SCALAR_EVENT)
            return fail_here(r, "%s: expected a list of %s, found a list of %s", record->name,
                             record->type == MIXT_CONFIG_INTS ? "integers" : "words",
                             r->event.type == YAML_MAPPING_START_EVENT ? "maps" : "lists");
        mixt_status status =
            mixt__value_append(value, record, (const char *)r->event.data.scalar.value, is_quoted(&r->event));
        if (status != MIXT_OK)
            return add_place(r, status);
    }
}

/** The value of a known key; the current event is its first. */
static mixt_status read_value(reader *r, mixt__config_key key)
{
    const mixt_config_record *record = &mixt__config_table[key];
    char expected[320], origin[PATH_LENGTH_MAX];
    mixt__config_expects(record, expected, sizeof expected);
    snprintf(origin, sizeof origin, "%.400s:%zu:%zu", r->path, r->event.start_mark.line + 1,
             r->event.start_mark.column + 1);
    mixt__config_value value = {.choice = -1};
    if (r->event.type == YAML_MAPPING_START_EVENT)
        return fail_here(r, "%s: expected %s, found a map", record->name, expected);
    if (r->event.type == YAML_SEQUENCE_START_EVENT) {
        if (record->type != MIXT_CONFIG_INTS && record->type != MIXT_CONFIG_WORDS)
            return fail_here(r, "%s: expected %s, found a list", record->name, expected);
        MIXT_TRY(read_list(r, &value, record));
    } else {
        const char *text = (const char *)r->event.data.scalar.value;
        if (!*text && !is_quoted(&r->event))
            return fail_here(r, "%s has no value: expected %s%s", record->name, expected,
                             record->type == MIXT_CONFIG_STRING ? " (\"\" for empty text)" : "");
        if (strlen(text) != r->event.data.scalar.length)
            return fail_here(r, "%s: text has the control character U+0000", record->name);
        mixt_status status = mixt__value_parse(&value, record, text, is_quoted(&r->event));
        if (status != MIXT_OK)
            return add_place(r, status);
    }
    return mixt__config_assign_take(r->config, key, &value, origin);
}

static mixt_status read_map(reader *r, const char *prefix);

/** One key and its value; the current event is the key. */
static mixt_status read_pair(reader *r, const char *prefix)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return fail_here(r, "a key must be a name, found a %s",
                         r->event.type == YAML_MAPPING_START_EVENT ? "map" : "list");
    char name[128];
    const char *text = (const char *)r->event.data.scalar.value;
    if (!*text)
        return fail_here(r, "a key is missing before ':'");
    snprintf(name, sizeof name, "%s%s%.60s", prefix, *prefix ? "." : "", text);
    mixt__config_key key = mixt__config_find(name);
    bool section = mixt__config_is_section(name);
    if (key == MIXT_KEY_COUNT && !section)
        return add_place(r, mixt__config_unknown(name));
    MIXT_TRY(remember(r, name));
    MIXT_TRY(next_event(r));
    if (!section || (key != MIXT_KEY_COUNT && r->event.type != YAML_MAPPING_START_EVENT)) // model is both
        return read_value(r, key);
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return fail_here(r, "%s is a section: expected a map of its keys, found a %s", name,
                         r->event.type == YAML_SCALAR_EVENT ? "single value" : "list");
    return read_map(r, name);
}

/** Pairs up to the end of a map whose start is the current event. */
static mixt_status read_map(reader *r, const char *prefix)
{
    for (;;) {
        MIXT_TRY(next_event(r));
        if (r->event.type == YAML_MAPPING_END_EVENT)
            return MIXT_OK;
        MIXT_TRY(read_pair(r, prefix));
    }
}

static mixt_status read_stream(reader *r)
{
    MIXT_TRY(next_event(r)); // start of the stream
    MIXT_TRY(next_event(r));
    if (r->event.type == YAML_STREAM_END_EVENT)
        return fail_mark(r, 0, 0, "the file has no settings: expected a map of keys, as in 'model: convnet'");
    MIXT_TRY(next_event(r));
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return fail_here(r, "expected a map of keys at the top, as in 'model: convnet', found a %s",
                         r->event.type == YAML_SEQUENCE_START_EVENT ? "list" : "single value");
    MIXT_TRY(read_map(r, ""));
    MIXT_TRY(next_event(r)); // end of the document
    MIXT_TRY(next_event(r));
    if (r->event.type != YAML_STREAM_END_EVENT)
        return fail_here(r, "a second document begins here: a configuration is one document");
    return MIXT_OK;
}

/** The whole file as text with a NUL after it. */
static mixt_status read_file(const char *path, char **text, size_t *size)
{
    FILE *file = mixt__file_open_stream(path);
    if (!file)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be opened: %s", path, mixt__file_problem(errno));
    mixt_status status = MIXT_OK;
    char *buffer = mixt__alloc_uninit(FILE_MAX + 2);
    if (!buffer) {
        status = mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", path);
        goto cleanup;
    }
    *size = fread(buffer, 1, FILE_MAX + 1, file);
    if (ferror(file))
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    else if (*size > FILE_MAX)
        status = mixt__fail(MIXT_ERROR_CONFIG, "%s:1:1: more than 1 MiB: not a configuration", path);
    buffer[*size] = 0;
cleanup:
    fclose(file);
    if (status == MIXT_OK)
        *text = buffer;
    else
        mixt__free(buffer);
    return status;
}

static mixt_status check_nul(const reader *r)
{
    const char *nul = memchr(r->text, 0, r->size);
    if (!nul)
        return MIXT_OK;
    size_t line = 0, column = 0;
    for (const char *at = r->text; at < nul; at++) {
        column = *at == '\n' ? 0 : column + 1;
        line += *at == '\n';
    }
    return fail_mark(r, line, column, "the file has a NUL byte: not a text file");
}

static mixt_status parse(mixt_config *config, const char *path, const char *text, size_t size)
{
    size_t mark = size >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0; // byte-order mark, as some editors write
    reader r = {.config = config, .path = path, .text = text + mark, .size = size - mark};
    mixt_status status = check_nul(&r);
    if (status == MIXT_OK && !yaml_parser_initialize(&r.parser)) {
        status = mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", path);
    } else if (status == MIXT_OK) {
        yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&r.parser, (const unsigned char *)r.text, r.size);
        status = read_stream(&r);
        if (r.has_event)
            yaml_event_delete(&r.event);
        yaml_parser_delete(&r.parser);
    }
    mixt__free(r.seen);
    mixt__arena_free(&r.names);
    return status;
}

mixt_status mixt_config_load(mixt_config *config, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    MIXT_TRY(mixt__need_open(config, "configuration"));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(read_file(path, &text, &size));
    mixt_status status = parse(config, path, text, size);
    mixt__free(text);
    return status;
}

mixt_status mixt_config_parse(mixt_config *config, const char *yaml, const char *name)
{
    MIXT_TRY(mixt__need_open(config, "configuration"));
    MIXT_TRY(mixt__need(yaml));
    return parse(config, name ? name : "text", yaml, strlen(yaml));
}
