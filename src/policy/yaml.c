/* YAML documents as trees of nodes, opened from memory; every message names line and column. */
#include "policy/inside.h"

#include "base/words.h"

#include <stdarg.h>
#include <string.h>

enum { DEPTH_MAX = 64 }; // more than evidence may have; the time that libyaml takes grows with the square of the depth

/** What libyaml did not like. Bytes that are no text have an offset in place of a line. */
static mixt_status not_yaml(const yaml_parser_t *p, const char *text, size_t size, const char *name)
{
    size_t line = p->problem_mark.line, column = p->problem_mark.column;
    if (p->error == YAML_MEMORY_ERROR)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s", name);
    if (p->error == YAML_READER_ERROR) {
        line = column = 0;
        for (size_t i = 0; i < p->problem_offset && i < size; i++) {
            column = text[i] == '\n' ? 0 : column + 1;
            line += text[i] == '\n';
        }
    }
    return mixt__fail(MIXT_ERROR_CONFIG, "%s:%zu:%zu: not YAML: %s", name, line + 1, column + 1,
                      p->problem ? p->problem : "cannot be read");
}

/** A second document would be ignored: better to say so. */
static mixt_status check_end(yaml_parser_t *parser, const char *text, size_t size, const char *name)
{
    mixt__yaml second = {.name = name};
    if (!yaml_parser_load(parser, &second.document))
        return not_yaml(parser, text, size, name);
    const yaml_node_t *root = yaml_document_get_root_node(&second.document);
    mixt_status status =
        root ? mixt__yaml_bad(&second, root, "a second document begins here: a policy is one document") : MIXT_OK;
    yaml_document_delete(&second.document);
    return status;
}

/** Reads up to where lists and maps are too deep, or to the end; what else is wrong is found when nodes are made. */
static mixt_status check_depth(const char *text, size_t size, const char *name)
{
    yaml_parser_t parser;
    yaml_event_t event;
    mixt_status status = MIXT_OK;
    if (!yaml_parser_initialize(&parser))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s", name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    for (int depth = 0, end = 0; status == MIXT_OK && !end && yaml_parser_parse(&parser, &event);) {
        depth += event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
        depth -= event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        end = event.type == YAML_STREAM_END_EVENT;
        if (depth > DEPTH_MAX)
            status = mixt__fail(MIXT_ERROR_CONFIG, "%s:%zu:%zu: lists and maps are nested deeper than %d", name,
                                event.start_mark.line + 1, event.start_mark.column + 1, DEPTH_MAX);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

mixt_status mixt__yaml_open(mixt__yaml *yaml, const char *text, size_t size, const char *name, const char *empty)
{
    yaml_parser_t parser;
    *yaml = (mixt__yaml){.name = name};
    MIXT_TRY(check_depth(text, size, name));
    if (!yaml_parser_initialize(&parser))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s", name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    if (!yaml_parser_load(&parser, &yaml->document)) {
        mixt_status status = not_yaml(&parser, text, size, name);
        yaml_parser_delete(&parser);
        return status;
    }
    mixt_status status = yaml_document_get_root_node(&yaml->document)
                             ? check_end(&parser, text, size, name)
                             : mixt__fail(MIXT_ERROR_CONFIG, "%s: empty: %s", name, empty);
    if (status != MIXT_OK)
        mixt__yaml_close(yaml);
    yaml_parser_delete(&parser);
    return status;
}

void mixt__yaml_close(mixt__yaml *yaml)
{
    yaml_document_delete(&yaml->document);
}

yaml_node_t *mixt__yaml_node(const mixt__yaml *yaml, int index)
{
    return &yaml->document.nodes.start[index - 1]; // libyaml's own function wants a document that can be written to
}

const char *mixt__yaml_text(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : "";
}

mixt_status mixt__yaml_bad(const mixt__yaml *yaml, const yaml_node_t *node, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return mixt__yaml_at(yaml, node, mixt__fail(MIXT_ERROR_CONFIG, "%s", text));
}

mixt_status mixt__yaml_at(const mixt__yaml *yaml, const yaml_node_t *node, mixt_status status)
{
    return mixt__fail_context(status, "%s:%zu:%zu", yaml->name, node->start_mark.line + 1, node->start_mark.column + 1);
}

mixt_status mixt__yaml_check_twice(const mixt__yaml *yaml, const yaml_node_t *map)
{
    const yaml_node_pair_t *start = map->data.mapping.pairs.start;
    for (const yaml_node_pair_t *p = start; p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = mixt__yaml_node(yaml, p->key);
        for (const yaml_node_pair_t *q = start; q < p && key->type == YAML_SCALAR_NODE; q++)
            if (mixt__yaml_node(yaml, q->key)->type == YAML_SCALAR_NODE &&
                !strcmp(mixt__yaml_text(mixt__yaml_node(yaml, q->key)), mixt__yaml_text(key)))
                return mixt__yaml_bad(yaml, key, "this key is given twice");
    }
    return MIXT_OK;
}

const yaml_node_t *mixt__yaml_find(const mixt__yaml *yaml, const yaml_node_t *map, const char *name)
{
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++)
        if (!strcmp(mixt__yaml_text(mixt__yaml_node(yaml, p->key)), name))
            return mixt__yaml_node(yaml, p->value);
    return NULL;
}

mixt_status mixt__yaml_check_map(const mixt__yaml *yaml, const yaml_node_t *map, const char *what, const char *known)
{
    char list[320], hint[80];
    if (map->type != YAML_MAPPING_NODE)
        return mixt__yaml_bad(yaml, map, "%s must be a map with %s", what, mixt__choice_list(known, list, sizeof list));
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = mixt__yaml_node(yaml, p->key);
        const char *name = mixt__yaml_text(key);
        if (mixt__choice_find(known, name) < 0)
            return mixt__yaml_bad(yaml, key, "unknown key of %s%s: expected one of %s", what,
                                  mixt__choice_hint(known, name, hint, sizeof hint),
                                  mixt__choice_list(known, list, sizeof list));
    }
    return mixt__yaml_check_twice(yaml, map);
}
