/* Methods of texts, as Python's str has them. */
#include "template/text_methods.h"

#include "template/text.h"

#include "base/unicode.h"

#include <string.h>

/** Binds arguments and refuses those that are no texts, but for those that may be left out or None. */
static mixt_status bind_texts(mixt__tpl_run *run, const char *what, const mixt__tpl_args *args, const char *names,
                              int texts, int needed, mixt__tpl_value values[MIXT_TPL_ARGS_MAX])
{
    MIXT_TRY(mixt__tpl_bind(run, what, args, names, values));
    for (int i = 0; i < texts; i++) {
        MIXT_TRY(mixt__tpl_need(run, &values[i]));
        bool left_out = values[i].kind == MIXT_TPL_ABSENT || values[i].kind == MIXT_TPL_NONE;
        if (values[i].kind != MIXT_TPL_TEXT && (!left_out || i < needed))
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "%s needs a str, not %s", what,
                                     mixt__tpl_type_name(&values[i]));
    }
    return MIXT_OK;
}

static mixt_status number_or(mixt__tpl_run *run, const mixt__tpl_value *value, int64_t otherwise, int64_t *number)
{
    *number = otherwise;
    if (value->kind == MIXT_TPL_ABSENT || value->kind == MIXT_TPL_NONE)
        return MIXT_OK;
    MIXT_TRY(mixt__tpl_need(run, value));
    *number = value->whole;
    return value->kind == MIXT_TPL_INT || value->kind == MIXT_TPL_BOOL
               ? MIXT_OK
               : mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "found '%s', expected a number", mixt__tpl_type_name(value));
}

static mixt_status strip_sides(mixt__tpl_run *run, const char *what, const mixt__tpl_value *self,
                               const mixt__tpl_args *args, bool left, bool right, mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(bind_texts(run, what, args, "chars", 1, 0, values));
    bool some = values[0].kind == MIXT_TPL_TEXT;
    MIXT_TRY(mixt__tpl_work(run, 1 + (int64_t)self->size / 16 * (1 + (some ? (int64_t)values[0].size : 0))));
    *result = *self;
    mixt__tpl_strip(result, some ? &values[0] : NULL, left, right);
    return MIXT_OK;
}

static mixt_status strip(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    return strip_sides(run, "strip", self, args, true, true, result);
}

static mixt_status lstrip(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                          mixt__tpl_value *result)
{
    return strip_sides(run, "lstrip", self, args, true, false, result);
}

static mixt_status rstrip(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                          mixt__tpl_value *result)
{
    return strip_sides(run, "rstrip", self, args, false, true, result);
}

/** Whether a text begins, or ends, with another one. */
static bool touches(const mixt__tpl_value *self, const mixt__tpl_value *part, bool end)
{
    return part->size <= self->size &&
           !memcmp(self->text + (end ? self->size - part->size : 0), part->text, part->size);
}

static mixt_status edge(mixt__tpl_run *run, const char *what, const mixt__tpl_value *self, const mixt__tpl_args *args,
                        bool end, mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(mixt__tpl_bind(run, what, args, "prefix", values));
    MIXT_TRY(mixt__tpl_need(run, &values[0]));
    *result = mixt__tpl_bool(false);
    if (values[0].kind == MIXT_TPL_TEXT) {
        *result = mixt__tpl_bool(touches(self, &values[0], end));
        return mixt__tpl_work_bytes(run, values[0].size);
    }
    bool tuple = values[0].kind == MIXT_TPL_TUPLE;
    for (int64_t i = 0; tuple && i < values[0].list->count; i++) {
        const mixt__tpl_value *part = &values[0].list->items[i];
        MIXT_TRY(mixt__tpl_work_bytes(run, part->kind == MIXT_TPL_TEXT ? part->size : 0));
        tuple = part->kind == MIXT_TPL_TEXT;
        if (tuple && touches(self, part, end))
            result->whole = true;
    }
    return tuple ? MIXT_OK
                 : mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "%s first arg must be str or a tuple of str", what);
}

static mixt_status startswith(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                              mixt__tpl_value *result)
{
    return edge(run, "startswith", self, args, false, result);
}

static mixt_status endswith(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                            mixt__tpl_value *result)
{
    return edge(run, "endswith", self, args, true, result);
}

static mixt_status remove_edge(mixt__tpl_run *run, const char *what, const mixt__tpl_value *self,
                               const mixt__tpl_args *args, bool end, mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(bind_texts(run, what, args, "prefix", 1, 1, values));
    *result = *self;
    if (touches(self, &values[0], end)) {
        result->text += end ? 0 : values[0].size;
        result->size -= values[0].size;
    }
    return mixt__tpl_work_bytes(run, values[0].size);
}

static mixt_status removeprefix(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                                mixt__tpl_value *result)
{
    return remove_edge(run, "removeprefix", self, args, false, result);
}

static mixt_status removesuffix(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                                mixt__tpl_value *result)
{
    return remove_edge(run, "removesuffix", self, args, true, result);
}

/** The next word of a text split at blanks; false: none is left. */
static bool next_word(mixt__tpl_value *rest, mixt__tpl_value *word)
{
    uint32_t code = 0;
    size_t step;
    mixt__tpl_strip(rest, NULL, true, false);
    *word = mixt__tpl_text(rest->text, 0);
    while ((step = mixt__tpl_forward(rest->text, rest->size, &code)) && !mixt__tpl_is_blank(code)) {
        rest->text += step;
        rest->size -= step;
        word->size += step;
    }
    return word->size > 0;
}

static mixt_status split_words(mixt__tpl_run *run, const mixt__tpl_value *self, int64_t most, mixt__tpl_value *list)
{
    mixt__tpl_value rest = *self, word;
    for (; most != 0 && next_word(&rest, &word); most--)
        MIXT_TRY(mixt__tpl_list_add(run, list, word));
    mixt__tpl_strip(&rest, NULL, true, false);
    return rest.size ? mixt__tpl_list_add(run, list, rest) : MIXT_OK;
}

static mixt_status split(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], rest = *self;
    int64_t most, at;
    MIXT_TRY(bind_texts(run, "split", args, "sep,maxsplit", 1, 0, values));
    MIXT_TRY(number_or(run, &values[1], -1, &most));
    MIXT_TRY(mixt__tpl_work_bytes(run, self->size));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, 0, result));
    if (values[0].kind != MIXT_TPL_TEXT)
        return split_words(run, self, most, result);
    if (!values[0].size)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "empty separator");
    while (most != 0 && (at = mixt__tpl_find_text(rest.text, rest.size, values[0].text, values[0].size)) >= 0) {
        MIXT_TRY(mixt__tpl_list_add(run, result, mixt__tpl_text(rest.text, (size_t)at)));
        rest.text += (size_t)at + values[0].size;
        rest.size -= (size_t)at + values[0].size;
        most--;
    }
    return mixt__tpl_list_add(run, result, rest);
}

static mixt_status rsplit(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                          mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], rest = *self;
    int64_t most, at;
    MIXT_TRY(bind_texts(run, "rsplit", args, "sep,maxsplit", 1, 0, values));
    MIXT_TRY(number_or(run, &values[1], -1, &most));
    if (most < 0)
        return split(run, self, args, result);
    if (values[0].kind != MIXT_TPL_TEXT || !values[0].size)
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "rsplit with a limit needs a separator here");
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, 0, result));
    for (; most > 0; most--) {
        MIXT_TRY(mixt__tpl_work_bytes(run, rest.size));
        at = mixt__tpl_find_text_last(rest.text, rest.size, values[0].text, values[0].size);
        if (at < 0)
            break;
        MIXT_TRY(mixt__tpl_list_add(
            run, result, mixt__tpl_text(rest.text + at + values[0].size, rest.size - (size_t)at - values[0].size)));
        rest.size = (size_t)at;
    }
    MIXT_TRY(mixt__tpl_list_add(run, result, rest));
    for (int64_t i = 0, j = result->list->count - 1; i < j; i++, j--) {
        mixt__tpl_value swap = result->list->items[i];
        result->list->items[i] = result->list->items[j];
        result->list->items[j] = swap;
    }
    return MIXT_OK;
}

/** The three parts of a text around the first, or last, separator. */
static mixt_status partition_at(mixt__tpl_run *run, const char *what, const mixt__tpl_value *self,
                                const mixt__tpl_args *args, bool last, mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(bind_texts(run, what, args, "sep", 1, 1, values));
    MIXT_TRY(mixt__tpl_work_bytes(run, self->size));
    if (!values[0].size)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "empty separator");
    int64_t at =
        (last ? mixt__tpl_find_text_last : mixt__tpl_find_text)(self->text, self->size, values[0].text, values[0].size);
    size_t before = at < 0 ? (last ? 0 : self->size) : (size_t)at, width = at < 0 ? 0 : values[0].size;
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_TUPLE, 3, result));
    MIXT_TRY(mixt__tpl_list_add(run, result, mixt__tpl_text(self->text, before)));
    MIXT_TRY(mixt__tpl_list_add(run, result, mixt__tpl_text(self->text + before, width)));
    return mixt__tpl_list_add(run, result, mixt__tpl_text(self->text + before + width, self->size - before - width));
}

static mixt_status partition(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                             mixt__tpl_value *result)
{
    return partition_at(run, "partition", self, args, false, result);
}

static mixt_status rpartition(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                              mixt__tpl_value *result)
{
    return partition_at(run, "rpartition", self, args, true, result);
}

mixt_status mixt__tpl_replace(mixt__tpl_run *run, const mixt__tpl_value *text, const mixt__tpl_value *old,
                              const mixt__tpl_value *new, int64_t most, mixt__tpl_value *result)
{
    size_t mark = run->size;
    mixt__tpl_value rest = *text;
    uint32_t code;
    MIXT_TRY(mixt__tpl_work_bytes(run, text->size));
    for (; most != 0; most--) {
        int64_t at = mixt__tpl_find_text(rest.text, rest.size, old->text, old->size);
        size_t keep =
            old->size ? 0 : mixt__tpl_forward(rest.text, rest.size, &code); // nothing is before every character
        if (at < 0)
            break;
        MIXT_TRY(mixt__tpl_write(run, rest.text, (size_t)at));
        MIXT_TRY(mixt__tpl_write(run, new->text, new->size));
        MIXT_TRY(mixt__tpl_write(run, rest.text, keep));
        rest.text += (size_t)at + old->size + keep;
        rest.size -= (size_t)at + old->size + keep;
        if (!old->size && !keep)
            break;
    }
    MIXT_TRY(mixt__tpl_write(run, rest.text, rest.size));
    return mixt__tpl_capture(run, mark, result);
}

static mixt_status replace(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                           mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    int64_t most;
    MIXT_TRY(bind_texts(run, "replace", args, "old,new,count", 2, 2, values));
    MIXT_TRY(number_or(run, &values[2], -1, &most));
    return mixt__tpl_replace(run, self, &values[0], &values[1], most, result);
}

static char in_case(char c, bool upper)
{
    if (upper)
        return c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/** Whether a letter may have two cases: those of scripts that have none are known by their ranges. */
static bool may_have_case(uint32_t code)
{
    static const uint32_t without[][2] = {{0x5d0, 0x109f},  {0x1100, 0x139f}, {0x1400, 0x1c7f}, {0x2d30, 0xa63f},
                                          {0xa800, 0xab2f}, {0xabc0, 0xfaff}, {0xfb1d, 0xff20}, {0xff66, 0xffff}};
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++)
        if (code >= without[i][0] && code <= without[i][1])
            return false;
    return mixt__code_class_of(code) == MIXT_CODE_LETTER;
}

mixt_status mixt__tpl_change_case(mixt__tpl_run *run, const mixt__tpl_value *text, mixt__tpl_case to,
                                  mixt__tpl_value *result)
{
    char *copy;
    bool inside = false; // of a word, or behind the first letter
    MIXT_TRY(mixt__tpl_work_bytes(run, text->size));
    MIXT_TRY(mixt__tpl_take_text(&run->heap, text->size, &copy));
    for (size_t i = 0; i < text->size; i++) {
        char c = text->text[i];
        uint32_t code = (unsigned char)c;
        if (code >= 0xc0) {
            (void)mixt__tpl_forward(text->text + i, text->size - i, &code);
            if (may_have_case(code))
                return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED,
                                         "upper and lower case of U+%04X are not known here, only those of A to Z",
                                         (unsigned)code);
        }
        bool letter = in_case(c, true) != in_case(c, false);
        copy[i] = in_case(c, to == MIXT_TPL_UPPER || (to >= MIXT_TPL_CAPITALIZE && !inside));
        inside = to == MIXT_TPL_CAPITALIZE || letter;
    }
    *result = mixt__tpl_text(copy, text->size);
    return MIXT_OK;
}

static mixt_status change_case(mixt__tpl_run *run, const char *what, const mixt__tpl_value *self,
                               const mixt__tpl_args *args, mixt__tpl_case to, mixt__tpl_value *result)
{
    mixt__tpl_value none[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(mixt__tpl_bind(run, what, args, "", none));
    return mixt__tpl_change_case(run, self, to, result);
}

static mixt_status upper(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    return change_case(run, "upper", self, args, MIXT_TPL_UPPER, result);
}

static mixt_status lower(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    return change_case(run, "lower", self, args, MIXT_TPL_LOWER, result);
}

static mixt_status title(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    return change_case(run, "title", self, args, MIXT_TPL_TITLE, result);
}

static mixt_status capitalize(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                              mixt__tpl_value *result)
{
    return change_case(run, "capitalize", self, args, MIXT_TPL_CAPITALIZE, result);
}

static mixt_status join(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                        mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    const mixt__tpl_list *items;
    size_t mark = run->size;
    MIXT_TRY(mixt__tpl_bind(run, "join", args, "iterable", values));
    MIXT_TRY(mixt__tpl_items(run, &values[0], &items));
    for (int64_t i = 0; i < items->count; i++) {
        if (items->items[i].kind != MIXT_TPL_TEXT)
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "sequence item %lld: expected str instance, %s found",
                                     (long long)i, mixt__tpl_type_name(&items->items[i]));
        if (i)
            MIXT_TRY(mixt__tpl_write(run, self->text, self->size));
        MIXT_TRY(mixt__tpl_write(run, items->items[i].text, items->items[i].size));
    }
    return mixt__tpl_capture(run, mark, result);
}

/** Where a part stands, in characters; -1: nowhere. */
static mixt_status find_part(mixt__tpl_run *run, const char *what, const mixt__tpl_value *self,
                             const mixt__tpl_args *args, bool last, int64_t *at)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(bind_texts(run, what, args, "sub", 1, 1, values));
    MIXT_TRY(mixt__tpl_work_bytes(run, self->size));
    *at =
        (last ? mixt__tpl_find_text_last : mixt__tpl_find_text)(self->text, self->size, values[0].text, values[0].size);
    if (*at > 0)
        *at = mixt__tpl_characters(self->text, (size_t)*at);
    return MIXT_OK;
}

static mixt_status find(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                        mixt__tpl_value *result)
{
    int64_t at;
    MIXT_TRY(find_part(run, "find", self, args, false, &at));
    *result = mixt__tpl_int(at);
    return MIXT_OK;
}

static mixt_status rfind(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    int64_t at;
    MIXT_TRY(find_part(run, "rfind", self, args, true, &at));
    *result = mixt__tpl_int(at);
    return MIXT_OK;
}

static mixt_status index_of(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                            mixt__tpl_value *result)
{
    MIXT_TRY(find(run, self, args, result));
    return result->whole < 0 ? mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "substring not found") : MIXT_OK;
}

static mixt_status count_of(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                            mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], rest = *self;
    int64_t count = 0, at;
    MIXT_TRY(bind_texts(run, "count", args, "sub", 1, 1, values));
    MIXT_TRY(mixt__tpl_work_bytes(run, self->size * 2));
    if (!values[0].size)
        count = mixt__tpl_characters(self->text, self->size) + 1;
    while (values[0].size && (at = mixt__tpl_find_text(rest.text, rest.size, values[0].text, values[0].size)) >= 0) {
        rest.text += (size_t)at + values[0].size;
        rest.size -= (size_t)at + values[0].size;
        count++;
    }
    *result = mixt__tpl_int(count);
    return MIXT_OK;
}

static bool is_break(uint32_t code)
{
    return (code >= 0xa && code <= 0xd) || (code >= 0x1c && code <= 0x1e) || code == 0x85 || code == 0x2028 ||
           code == 0x2029;
}

mixt_status mixt__tpl_lines(mixt__tpl_run *run, const mixt__tpl_value *text, bool keep_ends, mixt__tpl_value *list)
{
    size_t begin = 0;
    uint32_t code = 0;
    MIXT_TRY(mixt__tpl_work_bytes(run, text->size));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, 0, list));
    for (size_t at = 0, step; (step = mixt__tpl_forward(text->text + at, text->size - at, &code)); at += step) {
        if (!is_break(code))
            continue;
        if (code == '\r' && at + 1 < text->size && text->text[at + 1] == '\n')
            step = 2;
        MIXT_TRY(
            mixt__tpl_list_add(run, list, mixt__tpl_text(text->text + begin, at - begin + (keep_ends ? step : 0))));
        begin = at + step;
    }
    return begin < text->size ? mixt__tpl_list_add(run, list, mixt__tpl_text(text->text + begin, text->size - begin))
                              : MIXT_OK;
}

static mixt_status splitlines(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                              mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(mixt__tpl_bind(run, "splitlines", args, "keepends", values));
    return mixt__tpl_lines(run, self, mixt__tpl_truth(&values[0]), result);
}

/** Whether there are characters and all of them are of a kind. */
static mixt_status all_are(mixt__tpl_run *run, const char *what, const mixt__tpl_value *self,
                           const mixt__tpl_args *args, bool of_kind(uint32_t code), mixt__tpl_value *result)
{
    mixt__tpl_value none[MIXT_TPL_ARGS_MAX];
    bool all = self->size > 0;
    uint32_t code = 0;
    MIXT_TRY(mixt__tpl_bind(run, what, args, "", none));
    MIXT_TRY(mixt__tpl_work_bytes(run, self->size));
    for (size_t at = 0, step; all && (step = mixt__tpl_forward(self->text + at, self->size - at, &code)); at += step)
        all = of_kind(code);
    *result = mixt__tpl_bool(all);
    return MIXT_OK;
}

static bool is_letter(uint32_t code)
{
    return mixt__code_class_of(code) == MIXT_CODE_LETTER;
}

static bool is_digit(uint32_t code)
{
    return code >= '0' && code <= '9';
}

static mixt_status isspace_all(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                               mixt__tpl_value *result)
{
    return all_are(run, "isspace", self, args, mixt__tpl_is_blank, result);
}

static mixt_status isalpha_all(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                               mixt__tpl_value *result)
{
    return all_are(run, "isalpha", self, args, is_letter, result);
}

/** Digits of other scripts are refused, as their kinds are not told apart here. */
static mixt_status isdigit_all(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                               mixt__tpl_value *result)
{
    uint32_t code = 0;
    for (size_t at = 0, step; (step = mixt__tpl_forward(self->text + at, self->size - at, &code)); at += step)
        if (code > 127 && mixt__code_class_of(code) == MIXT_CODE_NUMBER)
            return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "isdigit of U+%04X is not known here",
                                     (unsigned)code);
    return all_are(run, "isdigit", self, args, is_digit, result);
}

const mixt__tpl_function *mixt__tpl_text_method(const char *name, size_t size)
{
    static const mixt__tpl_function table[] = {
        {"split", split},
        {"rsplit", rsplit},
        {"strip", strip},
        {"lstrip", lstrip},
        {"rstrip", rstrip},
        {"startswith", startswith},
        {"endswith", endswith},
        {"removeprefix", removeprefix},
        {"removesuffix", removesuffix},
        {"partition", partition},
        {"rpartition", rpartition},
        {"replace", replace},
        {"upper", upper},
        {"lower", lower},
        {"title", title},
        {"capitalize", capitalize},
        {"join", join},
        {"find", find},
        {"rfind", rfind},
        {"index", index_of},
        {"count", count_of},
        {"splitlines", splitlines},
        {"isspace", isspace_all},
        {"isalpha", isalpha_all},
        {"isdigit", isdigit_all},
        // Python's others
        {"casefold", NULL},
        {"center", NULL},
        {"encode", NULL},
        {"expandtabs", NULL},
        {"format", NULL},
        {"format_map", NULL},
        {"isalnum", NULL},
        {"isascii", NULL},
        {"isdecimal", NULL},
        {"isidentifier", NULL},
        {"islower", NULL},
        {"isnumeric", NULL},
        {"isprintable", NULL},
        {"istitle", NULL},
        {"isupper", NULL},
        {"ljust", NULL},
        {"maketrans", NULL},
        {"rindex", NULL},
        {"rjust", NULL},
        {"swapcase", NULL},
        {"translate", NULL},
        {"zfill", NULL},
        {0},
    };
    return mixt__tpl_function_of(table, name, size);
}
