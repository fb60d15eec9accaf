/* Filters that make one value of one value. */
#include "template/filters.h"

#include "template/text.h"
#include "template/text_methods.h"

#include "base/c_locale.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILTER(name)                                                                                                   \
    static mixt_status name(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,               \
                            mixt__tpl_value *result)

static mixt_status no_arguments(mixt__tpl_run *run, const char *what, const mixt__tpl_args *args)
{
    mixt__tpl_value none[MIXT_TPL_ARGS_MAX];
    return mixt__tpl_bind(run, what, args, "", none);
}

FILTER(string)
{
    MIXT_TRY(no_arguments(run, "string", args));
    return mixt__tpl_string(run, self, result);
}

FILTER(trim)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(mixt__tpl_bind(run, "trim", args, "chars", values));
    MIXT_TRY(mixt__tpl_string(run, self, result));
    bool some = values[0].kind == MIXT_TPL_TEXT;
    if (!some && values[0].kind != MIXT_TPL_ABSENT && values[0].kind != MIXT_TPL_NONE)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "trim needs a str, not %s", mixt__tpl_type_name(&values[0]));
    MIXT_TRY(mixt__tpl_work(run, 1 + (int64_t)result->size / 16 * (1 + (some ? (int64_t)values[0].size : 0))));
    mixt__tpl_strip(result, some ? &values[0] : NULL, true, true);
    return MIXT_OK;
}

static mixt_status change_case(mixt__tpl_run *run, const char *what, const mixt__tpl_value *self,
                               const mixt__tpl_args *args, mixt__tpl_case to, mixt__tpl_value *result)
{
    mixt__tpl_value text;
    MIXT_TRY(no_arguments(run, what, args));
    MIXT_TRY(mixt__tpl_string(run, self, &text));
    return mixt__tpl_change_case(run, &text, to, result);
}

FILTER(upper)
{
    return change_case(run, "upper", self, args, MIXT_TPL_UPPER, result);
}

FILTER(lower)
{
    return change_case(run, "lower", self, args, MIXT_TPL_LOWER, result);
}

FILTER(capitalize)
{
    return change_case(run, "capitalize", self, args, MIXT_TPL_CAPITALIZE, result);
}

/** Unlike the method, begins words at blanks, hyphens and opening brackets only. */
FILTER(title)
{
    MIXT_TRY(change_case(run, "title", self, args, MIXT_TPL_LOWER, result));
    char *text = (char *)result->text; // made just now
    for (size_t i = 0; i < result->size; i++)
        if ((!i || strchr("-({[< \t\n\r\f\v", text[i - 1])) && text[i] >= 'a' && text[i] <= 'z')
            text[i] = (char)(text[i] - 32);
    return MIXT_OK;
}

FILTER(replace)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], text, old, new;
    MIXT_TRY(mixt__tpl_bind(run, "replace", args, "old,new,count", values));
    if (values[0].kind == MIXT_TPL_ABSENT || values[1].kind == MIXT_TPL_ABSENT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "replace needs two texts");
    MIXT_TRY(mixt__tpl_string(run, self, &text));
    MIXT_TRY(mixt__tpl_string(run, &values[0], &old));
    MIXT_TRY(mixt__tpl_string(run, &values[1], &new));
    return mixt__tpl_replace(run, &text, &old, &new, values[2].kind == MIXT_TPL_INT ? values[2].whole : -1, result);
}

FILTER(escape)
{
    size_t mark = run->size;
    mixt__tpl_value text;
    MIXT_TRY(no_arguments(run, "escape", args));
    MIXT_TRY(mixt__tpl_string(run, self, &text));
    for (size_t i = 0; i < text.size && !text.safe; i++) {
        char c = text.text[i];
        const char *word = c == '&'    ? "&amp;"
                           : c == '<'  ? "&lt;"
                           : c == '>'  ? "&gt;"
                           : c == '\'' ? "&#39;"
                           : c == '"'  ? "&#34;"
                                       : NULL;
        MIXT_TRY(word ? mixt__tpl_write_word(run, word) : mixt__tpl_write(run, &c, 1));
    }
    *result = text;
    if (!text.safe)
        MIXT_TRY(mixt__tpl_capture(run, mark, result));
    result->safe = true;
    return MIXT_OK;
}

FILTER(safe)
{
    MIXT_TRY(no_arguments(run, "safe", args));
    MIXT_TRY(mixt__tpl_string(run, self, result));
    result->safe = true;
    return MIXT_OK;
}

FILTER(otherwise)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(mixt__tpl_bind(run, "default", args, "default_value,boolean", values));
    bool missing = self->kind == MIXT_TPL_UNDEFINED || (mixt__tpl_truth(&values[1]) && !mixt__tpl_truth(self));
    *result = !missing ? *self : values[0].kind == MIXT_TPL_ABSENT ? mixt__tpl_word("") : values[0];
    return MIXT_OK;
}

FILTER(length)
{
    int64_t count;
    MIXT_TRY(no_arguments(run, "length", args));
    MIXT_TRY(mixt__tpl_length(run, self, &count));
    *result = mixt__tpl_int(count);
    return MIXT_OK;
}

FILTER(absolute)
{
    MIXT_TRY(no_arguments(run, "abs", args));
    MIXT_TRY(mixt__tpl_negate(run, self, result));
    if (mixt__tpl_number(self) >= 0)
        *result = self->kind == MIXT_TPL_BOOL ? mixt__tpl_int(self->whole) : *self;
    return MIXT_OK;
}

/** A number that a text holds, blanks around it apart; false: it holds none. */
static bool read_number(const mixt__tpl_value *text, bool whole, mixt__tpl_value *number)
{
    char copy[64], *end;
    mixt__tpl_value part = *text;
    mixt__tpl_strip(&part, NULL, true, true);
    if (!part.size || part.size >= sizeof copy || memchr(part.text, 0, part.size) || memchr(part.text, 'x', part.size))
        return false;
    memcpy(copy, part.text, part.size);
    copy[part.size] = 0;
    errno = 0;
    *number = mixt__tpl_int(strtoll(copy, &end, 10));
    if (whole && !*end && !errno)
        return true;
    *number = mixt__tpl_float(mixt__read_double(copy, &end));
    return !*end;
}

FILTER(to_int)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], number = *self;
    MIXT_TRY(mixt__tpl_bind(run, "int", args, "default,base", values));
    MIXT_TRY(mixt__tpl_need(run, self));
    if (values[1].kind != MIXT_TPL_ABSENT && !(values[1].kind == MIXT_TPL_INT && values[1].whole == 10))
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "int knows base 10 only here");
    *result = values[0].kind == MIXT_TPL_ABSENT ? mixt__tpl_int(0) : values[0];
    if (self->kind == MIXT_TPL_TEXT && !read_number(self, true, &number))
        return MIXT_OK;
    if (number.kind == MIXT_TPL_FLOAT && fabs(number.real) < 9e18)
        *result = mixt__tpl_int((int64_t)number.real);
    else if (number.kind == MIXT_TPL_INT || number.kind == MIXT_TPL_BOOL)
        *result = mixt__tpl_int(number.whole);
    return MIXT_OK;
}

FILTER(to_float)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], number = *self;
    MIXT_TRY(mixt__tpl_bind(run, "float", args, "default", values));
    MIXT_TRY(mixt__tpl_need(run, self));
    *result = values[0].kind == MIXT_TPL_ABSENT ? mixt__tpl_float(0) : values[0];
    if (self->kind == MIXT_TPL_TEXT && !read_number(self, false, &number))
        return MIXT_OK;
    if (mixt__tpl_is_number(&number))
        *result = mixt__tpl_float(mixt__tpl_number(&number));
    return MIXT_OK;
}

FILTER(round_off)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    char text[400];
    MIXT_TRY(mixt__tpl_bind(run, "round", args, "precision,method", values));
    MIXT_TRY(mixt__tpl_need(run, self));
    int64_t digits = values[0].kind == MIXT_TPL_INT ? values[0].whole : 0;
    if (!mixt__tpl_is_number(self) || digits < 0 || digits > 15)
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "round of '%s' to %lld digits is not known here",
                                 mixt__tpl_type_name(self), (long long)digits);
    bool up = mixt__tpl_is_text(&values[1], "ceil"), down = mixt__tpl_is_text(&values[1], "floor");
    double value = mixt__tpl_number(self), scale = pow(10, (double)digits);
    if (self->kind != MIXT_TPL_FLOAT && !up && !down) {
        *result = mixt__tpl_int(self->whole);
        return MIXT_OK;
    }
    mixt__print_number(text, sizeof text, "%.*f", (int)digits, value); // rounds as Python does, ties to even
    *result = mixt__tpl_float(up     ? ceil(value * scale) / scale
                              : down ? floor(value * scale) / scale
                                     : mixt__read_double(text, NULL));
    return MIXT_OK;
}

FILTER(indent)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], text, lines;
    char blanks[257];
    size_t mark = run->size;
    MIXT_TRY(mixt__tpl_bind(run, "indent", args, "width,first,blank", values));
    int64_t width = values[0].kind == MIXT_TPL_INT ? values[0].whole : 4;
    if (width < 0 || width > 256)
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "an indent of %lld is not known here", (long long)width);
    snprintf(blanks, sizeof blanks, "%*s", (int)width, "");
    mixt__tpl_value by = values[0].kind == MIXT_TPL_TEXT ? values[0] : mixt__tpl_word(blanks),
                    end = mixt__tpl_word("\n");
    MIXT_TRY(mixt__tpl_string(run, self, &text));
    MIXT_TRY(mixt__tpl_join_texts(run, &text, &end, &text));
    MIXT_TRY(mixt__tpl_lines(run, &text, false, &lines));
    for (int64_t i = 0; i < lines.list->count; i++) {
        bool indented = i ? lines.list->items[i].size || mixt__tpl_truth(&values[2]) : mixt__tpl_truth(&values[1]);
        if (i)
            MIXT_TRY(mixt__tpl_write_word(run, "\n"));
        if (indented)
            MIXT_TRY(mixt__tpl_write(run, by.text, by.size));
        MIXT_TRY(mixt__tpl_write(run, lines.list->items[i].text, lines.list->items[i].size));
    }
    return mixt__tpl_capture(run, mark, result);
}

FILTER(tojson)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], item = mixt__tpl_word(", "), key = mixt__tpl_word(": "), indent;
    char blanks[33];
    size_t mark = run->size;
    MIXT_TRY(mixt__tpl_bind(run, "tojson", args, "ensure_ascii,indent,separators,sort_keys", values));
    mixt__tpl_json how = {.ascii = mixt__tpl_truth(&values[0]), .sort = mixt__tpl_truth(&values[3])};
    if (values[1].kind == MIXT_TPL_INT || values[1].kind == MIXT_TPL_TEXT) {
        int64_t width = values[1].kind == MIXT_TPL_INT && values[1].whole > 0 ? values[1].whole : 0;
        if (width > 32)
            return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED,
                                     "tojson: an indent of more than 32 is not known here");
        snprintf(blanks, sizeof blanks, "%*s", (int)width, "");
        indent = values[1].kind == MIXT_TPL_TEXT ? values[1] : mixt__tpl_word(blanks);
        how.indent = &indent;
        item = mixt__tpl_word(",");
    }
    if (mixt__tpl_has_list(&values[2])) {
        const mixt__tpl_list *both = values[2].list;
        if (both->count != 2 || both->items[0].kind != MIXT_TPL_TEXT || both->items[1].kind != MIXT_TPL_TEXT)
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "tojson: separators are two texts");
        item = both->items[0];
        key = both->items[1];
    }
    how.item = &item;
    how.key = &key;
    MIXT_TRY(mixt__tpl_need(run, self));
    MIXT_TRY(mixt__tpl_print_json(run, self, &how));
    return mixt__tpl_capture(run, mark, result);
}

const mixt__tpl_function *mixt__tpl_filter_of(const char *name, size_t size)
{
    static const mixt__tpl_function table[] = {
        {"string", string},
        {"trim", trim},
        {"upper", upper},
        {"lower", lower},
        {"capitalize", capitalize},
        {"title", title},
        {"replace", replace},
        {"escape", escape},
        {"e", escape},
        {"safe", safe},
        {"default", otherwise},
        {"d", otherwise},
        {"length", length},
        {"count", length},
        {"abs", absolute},
        {"int", to_int},
        {"float", to_float},
        {"round", round_off},
        {"indent", indent},
        {"tojson", tojson},
        {0},
    };
    const mixt__tpl_function *found = mixt__tpl_function_of(table, name, size);
    return found ? found : mixt__tpl_list_filter(name, size);
}
