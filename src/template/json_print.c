/* json.dumps of values, with its separators and indents. */
#include "template/number.h"
#include "template/run.h"
#include "template/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static mixt_status dump(mixt__tpl_run *run, const mixt__tpl_value *value, const mixt__tpl_json *how, int level);

static mixt_status write_text(mixt__tpl_run *run, const mixt__tpl_value *text)
{
    return mixt__tpl_write(run, text->text, text->size);
}

static mixt_status dump_code(mixt__tpl_run *run, const char *text, size_t bytes, uint32_t code, bool ascii)
{
    static const char letters[] = "\nn\rr\tt\bb\ff\"\"\\\\";
    char escaped[16];
    for (const char *pair = letters; *pair; pair += 2)
        if (code == (uint32_t)(unsigned char)*pair) {
            snprintf(escaped, sizeof escaped, "\\%c", pair[1]);
            return mixt__tpl_write_word(run, escaped);
        }
    if (code >= 0x20 && (code < 0x80 || !ascii))
        return mixt__tpl_write(run, text, bytes);
    if (code < 0x10000)
        snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned)code);
    else
        snprintf(escaped, sizeof escaped, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((code - 0x10000) >> 10)),
                 (unsigned)(0xdc00 + (code & 0x3ff)));
    return mixt__tpl_write_word(run, escaped);
}

static mixt_status dump_text(mixt__tpl_run *run, const mixt__tpl_value *value, bool ascii)
{
    uint32_t code;
    MIXT_TRY(mixt__tpl_write_word(run, "\""));
    for (size_t at = 0, step; (step = mixt__tpl_forward(value->text + at, value->size - at, &code)); at += step)
        MIXT_TRY(dump_code(run, value->text + at, step, code, ascii));
    return mixt__tpl_write_word(run, "\"");
}

/** A new line, where there is an indent, with as much of it as the level asks for. */
static mixt_status new_line(mixt__tpl_run *run, const mixt__tpl_json *how, int level)
{
    if (!how->indent)
        return MIXT_OK;
    MIXT_TRY(mixt__tpl_write_word(run, "\n"));
    for (int i = 0; i < level; i++)
        MIXT_TRY(write_text(run, how->indent));
    return MIXT_OK;
}

static mixt_status dump_key(mixt__tpl_run *run, const mixt__tpl_value *key, const mixt__tpl_json *how)
{
    if (key->kind == MIXT_TPL_TEXT)
        return dump_text(run, key, how->ascii);
    if (key->kind != MIXT_TPL_NONE && !mixt__tpl_is_number(key))
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "keys must be str, int, float, bool or None, not %s",
                                 mixt__tpl_type_name(key));
    MIXT_TRY(mixt__tpl_write_word(run, "\""));
    MIXT_TRY(dump(run, key, how, 0));
    return mixt__tpl_write_word(run, "\"");
}

/** The pairs of a dict in the order of their keys, all of which are texts. */
static mixt_status sorted(mixt__tpl_run *run, const mixt__tpl_dict *dict, mixt__tpl_pair **pairs)
{
    void *made;
    MIXT_TRY(mixt__tpl_take(&run->heap, (size_t)(dict->count + 1) * sizeof **pairs, &made));
    *pairs = made;
    for (int64_t i = 0; i < dict->count; i++) {
        int64_t at = i;
        for (int order = 1; at > 0; at--) {
            MIXT_TRY(mixt__tpl_order(run, &(*pairs)[at - 1].key, &dict->pairs[i].key, "<", &order));
            MIXT_TRY(mixt__tpl_work(run, 1));
            if (order <= 0)
                break;
            (*pairs)[at] = (*pairs)[at - 1];
        }
        (*pairs)[at] = dict->pairs[i];
    }
    return MIXT_OK;
}

static mixt_status dump_dict(mixt__tpl_run *run, const mixt__tpl_dict *dict, const mixt__tpl_json *how, int level)
{
    mixt__tpl_pair *pairs = dict->pairs;
    if (!dict->count)
        return mixt__tpl_write_word(run, "{}");
    if (how->sort)
        MIXT_TRY(sorted(run, dict, &pairs));
    MIXT_TRY(mixt__tpl_write_word(run, "{"));
    for (int64_t i = 0; i < dict->count; i++) {
        if (i)
            MIXT_TRY(write_text(run, how->item));
        MIXT_TRY(new_line(run, how, level + 1));
        MIXT_TRY(dump_key(run, &pairs[i].key, how));
        MIXT_TRY(write_text(run, how->key));
        MIXT_TRY(dump(run, &pairs[i].value, how, level + 1));
    }
    MIXT_TRY(new_line(run, how, level));
    return mixt__tpl_write_word(run, "}");
}

static mixt_status dump_list(mixt__tpl_run *run, const mixt__tpl_list *list, const mixt__tpl_json *how, int level)
{
    if (!list->count)
        return mixt__tpl_write_word(run, "[]");
    MIXT_TRY(mixt__tpl_write_word(run, "["));
    for (int64_t i = 0; i < list->count; i++) {
        if (i)
            MIXT_TRY(write_text(run, how->item));
        MIXT_TRY(new_line(run, how, level + 1));
        MIXT_TRY(dump(run, &list->items[i], how, level + 1));
    }
    MIXT_TRY(new_line(run, how, level));
    return mixt__tpl_write_word(run, "]");
}

static mixt_status dump_number(mixt__tpl_run *run, const mixt__tpl_value *value)
{
    char number[MIXT_TPL_NUMBER_ROOM];
    if (value->kind == MIXT_TPL_INT)
        snprintf(number, sizeof number, "%" PRId64, value->whole);
    else if (isfinite(value->real))
        mixt__tpl_print_float(number, value->real);
    else
        snprintf(number, sizeof number, "%s", isnan(value->real) ? "NaN" : value->real > 0 ? "Infinity" : "-Infinity");
    return mixt__tpl_write_word(run, number);
}

static mixt_status dump(mixt__tpl_run *run, const mixt__tpl_value *value, const mixt__tpl_json *how, int level)
{
    mixt_status status;
    MIXT_TRY(mixt__tpl_enter(run));
    switch (value->kind) {
    case MIXT_TPL_NONE:
        status = mixt__tpl_write_word(run, "null");
        break;
    case MIXT_TPL_BOOL:
        status = mixt__tpl_write_word(run, value->whole ? "true" : "false");
        break;
    case MIXT_TPL_INT:
    case MIXT_TPL_FLOAT:
        status = dump_number(run, value);
        break;
    case MIXT_TPL_TEXT:
        status = dump_text(run, value, how->ascii);
        break;
    case MIXT_TPL_LIST:
    case MIXT_TPL_TUPLE:
        status = dump_list(run, value->list, how, level);
        break;
    case MIXT_TPL_DICT:
        status = dump_dict(run, value->dict, how, level);
        break;
    default:
        status = mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "Object of type %s is not JSON serializable",
                                   mixt__tpl_type_name(value));
    }
    mixt__tpl_leave(run);
    return status;
}

mixt_status mixt__tpl_print_json(mixt__tpl_run *run, const mixt__tpl_value *value, const mixt__tpl_json *how)
{
    return dump(run, value, how, 0);
}
