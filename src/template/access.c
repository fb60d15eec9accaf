/* What stands behind a dot or in brackets: attributes, items, slices, as Jinja's sandbox looks them up. */
#include "template/run.h"
#include "template/text.h"

#include <string.h>

static mixt_status method(mixt__tpl_run *run, const mixt__tpl_value *object, const mixt__tpl_function *function,
                          mixt__tpl_value *value)
{
    void *made;
    if (!function->call)
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "method '%s' of %s is not known here", function->name,
                                 mixt__tpl_type_name(object));
    if (object->safe)
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "methods of a safe text are not known here");
    MIXT_TRY(mixt__tpl_take(&run->heap, sizeof(mixt__tpl_method), &made));
    *(mixt__tpl_method *)made = (mixt__tpl_method){*object, function};
    *value = (mixt__tpl_value){.kind = MIXT_TPL_METHOD, .method = made};
    return MIXT_OK;
}

static mixt_status loop_neighbour(mixt__tpl_run *run, const mixt__tpl_loop *loop, int64_t at, mixt__tpl_value *value)
{
    if (at < 0 || at >= loop->items->count)
        return mixt__tpl_undefined(run, value, "there is no %s item", at < 0 ? "previous" : "next");
    *value = loop->items->items[at];
    return MIXT_OK;
}

static mixt_status loop_attribute(mixt__tpl_run *run, const mixt__tpl_value *object, const mixt__tpl_value *name,
                                  mixt__tpl_value *value)
{
    const mixt__tpl_loop *loop = object->loop;
    int64_t count = loop->items->count;
    const struct {
        const char *name;
        mixt__tpl_value value;
    } members[] = {
        {"index", mixt__tpl_int(loop->index + 1)},
        {"index0", mixt__tpl_int(loop->index)},
        {"first", mixt__tpl_bool(loop->index == 0)},
        {"last", mixt__tpl_bool(loop->index + 1 == count)},
        {"length", mixt__tpl_int(count)},
        {"revindex", mixt__tpl_int(count - loop->index)},
        {"depth", mixt__tpl_int(loop->depth)},
        {"revindex0", mixt__tpl_int(count - loop->index - 1)},
        {"depth0", mixt__tpl_int(loop->depth - 1)},
    };
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (mixt__tpl_is_text(name, members[i].name)) {
            *value = members[i].value;
            return MIXT_OK;
        }
    if (mixt__tpl_is_text(name, "previtem"))
        return loop_neighbour(run, loop, loop->index - 1, value);
    if (mixt__tpl_is_text(name, "nextitem"))
        return loop_neighbour(run, loop, loop->index + 1, value);
    const mixt__tpl_function *function = mixt__tpl_method_of(object, name->text, name->size);
    if (function)
        return method(run, object, function, value);
    return mixt__tpl_undefined(run, value, "loop has no attribute '%.*s'", (int)name->size, name->text);
}

static mixt_status missing(mixt__tpl_run *run, const mixt__tpl_value *object, const mixt__tpl_value *name,
                           mixt__tpl_value *value)
{
    const char *type = mixt__tpl_type_name(object), *word = object->kind == MIXT_TPL_NONE ? "" : " object";
    if (name->kind != MIXT_TPL_TEXT)
        return mixt__tpl_undefined(run, value, "%s%s has no element of this %s", type, word, mixt__tpl_type_name(name));
    return mixt__tpl_undefined(run, value, "'%s%s' has no attribute '%.*s'", type, word,
                               (int)(name->size < 128 ? name->size : 128), name->text);
}

mixt_status mixt__tpl_attribute(mixt__tpl_run *run, const mixt__tpl_value *object, const mixt__tpl_value *name,
                                mixt__tpl_value *value)
{
    const mixt__tpl_value *found = NULL;
    MIXT_TRY(mixt__tpl_need(run, object));
    if (object->kind == MIXT_TPL_LOOP)
        return loop_attribute(run, object, name, value);
    if (object->kind != MIXT_TPL_NAMESPACE) {
        const mixt__tpl_function *function = mixt__tpl_method_of(object, name->text, name->size);
        if (function)
            return method(run, object, function, value);
    }
    if (object->kind == MIXT_TPL_NAMESPACE || object->kind == MIXT_TPL_DICT)
        MIXT_TRY(mixt__tpl_dict_get(run, object, name, &found));
    if (found) {
        *value = *found;
        return MIXT_OK;
    }
    return missing(run, object, name, value);
}

mixt_status mixt__tpl_item(mixt__tpl_run *run, const mixt__tpl_value *object, const mixt__tpl_value *key,
                           mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_need(run, object));
    bool index = key->kind == MIXT_TPL_INT || key->kind == MIXT_TPL_BOOL;
    bool list = object->kind == MIXT_TPL_LIST || object->kind == MIXT_TPL_TUPLE;
    if (index && (list || object->kind == MIXT_TPL_TEXT)) {
        int64_t count, at;
        MIXT_TRY(mixt__tpl_length(run, object, &count));
        at = key->whole < 0 ? key->whole + count : key->whole;
        if (at < 0 || at >= count)
            return mixt__tpl_undefined(run, value, "%s object has no element %lld", mixt__tpl_type_name(object),
                                       (long long)key->whole);
        if (list) {
            *value = object->list->items[at];
            return MIXT_OK;
        }
        size_t begin = mixt__tpl_character_at(object->text, object->size, at);
        uint32_t code;
        *value =
            mixt__tpl_text(object->text + begin, mixt__tpl_forward(object->text + begin, object->size - begin, &code));
        return MIXT_OK;
    }
    if (object->kind == MIXT_TPL_DICT) {
        const mixt__tpl_value *found;
        MIXT_TRY(mixt__tpl_dict_get(run, object, key, &found));
        if (found) {
            *value = *found;
            return MIXT_OK;
        }
    }
    return key->kind == MIXT_TPL_TEXT ? mixt__tpl_attribute(run, object, key, value) : missing(run, object, key, value);
}

/** A bound of a slice, made to lie in the list as Python does it. */
static int64_t bound(const mixt__tpl_value *value, int64_t count, int64_t otherwise, bool backwards)
{
    if (value->kind == MIXT_TPL_NONE)
        return otherwise;
    int64_t at = value->whole < 0 ? value->whole + count : value->whole;
    if (at < 0)
        return backwards ? -1 : 0;
    return at >= count ? (backwards ? count - 1 : count) : at;
}

static mixt_status slice_text(mixt__tpl_run *run, const mixt__tpl_value *object, int64_t begin, int64_t end,
                              int64_t step, mixt__tpl_value *value)
{
    if (step == 1) {
        size_t from = mixt__tpl_character_at(object->text, object->size, begin);
        size_t to = end > begin ? mixt__tpl_character_at(object->text, object->size, end) : from;
        *value = mixt__tpl_text(object->text + from, to - from);
        return MIXT_OK;
    }
    const mixt__tpl_list *items;
    size_t mark = run->size;
    MIXT_TRY(mixt__tpl_items(run, object, &items));
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step)
        MIXT_TRY(mixt__tpl_write(run, items->items[i].text, items->items[i].size));
    return mixt__tpl_capture(run, mark, value);
}

mixt_status mixt__tpl_slice(mixt__tpl_run *run, const mixt__tpl_value *object, const mixt__tpl_value bounds[3],
                            mixt__tpl_value *value)
{
    int64_t count;
    MIXT_TRY(mixt__tpl_need(run, object));
    if (object->kind != MIXT_TPL_LIST && object->kind != MIXT_TPL_TUPLE && object->kind != MIXT_TPL_TEXT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "'%s' object is not subscriptable by a slice",
                                 mixt__tpl_type_name(object));
    for (int i = 0; i < 3; i++)
        if (bounds[i].kind != MIXT_TPL_NONE && bounds[i].kind != MIXT_TPL_INT && bounds[i].kind != MIXT_TPL_BOOL)
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "slice indices must be integers or None");
    MIXT_TRY(mixt__tpl_length(run, object, &count));
    int64_t step = bounds[2].kind == MIXT_TPL_NONE ? 1 : bounds[2].whole;
    if (!step)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "slice step cannot be zero");
    if (step > count + 1 || step < -count - 1)
        step = step > 0 ? count + 1 : -count - 1; // goes past the end all the same
    int64_t begin = bound(&bounds[0], count, step > 0 ? 0 : count - 1, step < 0);
    int64_t end = bound(&bounds[1], count, step > 0 ? count : -1, step < 0);
    MIXT_TRY(mixt__tpl_work_bytes(run, object->kind == MIXT_TPL_TEXT ? object->size : 0));
    if (object->kind == MIXT_TPL_TEXT)
        return slice_text(run, object, begin, end, step, value);
    if (step == 1 && end > begin) { // shares the items
        MIXT_TRY(mixt__tpl_list_new(run, object->kind, 0, value));
        *value->list = (mixt__tpl_list){.items = object->list->items + begin, .count = end - begin, .room = 0};
        return MIXT_OK;
    }
    MIXT_TRY(mixt__tpl_list_new(run, object->kind, 0, value));
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step)
        MIXT_TRY(mixt__tpl_list_add(run, value, object->list->items[i]));
    return MIXT_OK;
}
