/* str and repr of values, as Python has them. */
#include "template/number.h"
#include "template/run.h"
#include "template/text.h"

#include "base/c_locale.h"
#include "base/unicode.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mixt__tpl_print_float(char text[MIXT_TPL_NUMBER_ROOM], double value)
{
    char digits[MIXT_TPL_NUMBER_ROOM];
    if (!isfinite(value)) {
        snprintf(text, MIXT_TPL_NUMBER_ROOM, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    int precision = 0;
    do
        mixt__print_number(digits, sizeof digits, "%.*e", precision, value);
    while (mixt__read_double(digits, NULL) != value && ++precision < 17);
    int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent >= -4 && exponent < 16) {
        int decimals = precision > exponent ? precision - exponent : 0;
        mixt__print_number(text, MIXT_TPL_NUMBER_ROOM, "%.*f", decimals ? decimals : 1, value);
        return;
    }
    *strchr(digits, 'e') = 0;
    snprintf(text, MIXT_TPL_NUMBER_ROOM, "%.24se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
}

/** Whether repr shows the character as it is. Categories that no table here tells apart from others count as shown. */
static bool shown(uint32_t code)
{
    if (code < 0x80)
        return code >= 0x20 && code < 0x7f;
    mixt__code_class kind = mixt__code_class_of(code);
    return kind != MIXT_CODE_SPACE && kind != MIXT_CODE_CONTROL;
}

static mixt_status write_escaped(mixt__tpl_run *run, const char *text, size_t bytes, uint32_t code, char quote)
{
    char escaped[16];
    if (code == (uint32_t)quote || code == '\\')
        snprintf(escaped, sizeof escaped, "\\%c", (char)code);
    else if (code == '\n' || code == '\r' || code == '\t')
        snprintf(escaped, sizeof escaped, "\\%c", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
    else if (shown(code))
        return mixt__tpl_write(run, text, bytes);
    else
        snprintf(escaped, sizeof escaped, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    return mixt__tpl_write_word(run, escaped);
}

static mixt_status repr_text(mixt__tpl_run *run, const mixt__tpl_value *value)
{
    bool single = memchr(value->text, '\'', value->size) && !memchr(value->text, '"', value->size);
    char quote = single ? '"' : '\'';
    uint32_t code;
    MIXT_TRY(mixt__tpl_write(run, &quote, 1));
    for (size_t at = 0, step; (step = mixt__tpl_forward(value->text + at, value->size - at, &code)); at += step)
        MIXT_TRY(write_escaped(run, value->text + at, step, code, quote));
    return mixt__tpl_write(run, &quote, 1);
}

static mixt_status repr(mixt__tpl_run *run, const mixt__tpl_value *value);

static mixt_status repr_list(mixt__tpl_run *run, const mixt__tpl_value *value)
{
    bool tuple = value->kind == MIXT_TPL_TUPLE;
    MIXT_TRY(mixt__tpl_write_word(run, tuple ? "(" : "["));
    for (int64_t i = 0; i < value->list->count; i++) {
        if (i)
            MIXT_TRY(mixt__tpl_write_word(run, ", "));
        MIXT_TRY(repr(run, &value->list->items[i]));
    }
    return mixt__tpl_write_word(run, !tuple ? "]" : value->list->count == 1 ? ",)" : ")");
}

static mixt_status repr_dict(mixt__tpl_run *run, const mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_write_word(run, "{"));
    for (int64_t i = 0; i < value->dict->count; i++) {
        if (i)
            MIXT_TRY(mixt__tpl_write_word(run, ", "));
        MIXT_TRY(repr(run, &value->dict->pairs[i].key));
        MIXT_TRY(mixt__tpl_write_word(run, ": "));
        MIXT_TRY(repr(run, &value->dict->pairs[i].value));
    }
    return mixt__tpl_write_word(run, "}");
}

static mixt_status repr_number(mixt__tpl_run *run, const mixt__tpl_value *value)
{
    char number[MIXT_TPL_NUMBER_ROOM];
    if (value->kind == MIXT_TPL_INT)
        snprintf(number, sizeof number, "%" PRId64, value->whole);
    else
        mixt__tpl_print_float(number, value->real);
    return mixt__tpl_write_word(run, number);
}

static mixt_status repr(mixt__tpl_run *run, const mixt__tpl_value *value)
{
    mixt_status status;
    MIXT_TRY(mixt__tpl_enter(run));
    switch (value->kind) {
    case MIXT_TPL_UNDEFINED:
        status = mixt__tpl_write_word(run, "Undefined");
        break;
    case MIXT_TPL_NONE:
        status = mixt__tpl_write_word(run, "None");
        break;
    case MIXT_TPL_BOOL:
        status = mixt__tpl_write_word(run, value->whole ? "True" : "False");
        break;
    case MIXT_TPL_INT:
    case MIXT_TPL_FLOAT:
        status = repr_number(run, value);
        break;
    case MIXT_TPL_TEXT:
        status = value->safe ? mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "repr of a safe text is not known here")
                             : repr_text(run, value);
        break;
    case MIXT_TPL_LIST:
    case MIXT_TPL_TUPLE:
        status = repr_list(run, value);
        break;
    case MIXT_TPL_DICT:
        status = repr_dict(run, value);
        break;
    default:
        status =
            mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "a %s cannot be printed here", mixt__tpl_type_name(value));
    }
    mixt__tpl_leave(run);
    return status;
}

mixt_status mixt__tpl_print(mixt__tpl_run *run, const mixt__tpl_value *value)
{
    if (value->kind == MIXT_TPL_UNDEFINED)
        return MIXT_OK;
    return value->kind == MIXT_TPL_TEXT ? mixt__tpl_write(run, value->text, value->size) : repr(run, value);
}

mixt_status mixt__tpl_string(mixt__tpl_run *run, const mixt__tpl_value *value, mixt__tpl_value *text)
{
    size_t from = run->size;
    if (value->kind == MIXT_TPL_TEXT) {
        *text = *value;
        return MIXT_OK;
    }
    MIXT_TRY(mixt__tpl_print(run, value));
    return mixt__tpl_capture(run, from, text);
}
