/* Equality, order, membership, and going through what has items. */
#include "template/run.h"
#include "template/text.h"

#include <string.h>

static mixt_status equal_lists(mixt__tpl_run *run, const mixt__tpl_list *a, const mixt__tpl_list *b, bool *equal)
{
    *equal = a->count == b->count;
    for (int64_t i = 0; i < a->count && *equal; i++)
        MIXT_TRY(mixt__tpl_equal(run, &a->items[i], &b->items[i], equal));
    return MIXT_OK;
}

static mixt_status equal_dicts(mixt__tpl_run *run, const mixt__tpl_value *a, const mixt__tpl_value *b, bool *equal)
{
    *equal = a->dict->count == b->dict->count;
    for (int64_t i = 0; i < a->dict->count && *equal; i++) {
        const mixt__tpl_value *found;
        MIXT_TRY(mixt__tpl_dict_get(run, b, &a->dict->pairs[i].key, &found));
        *equal = found != NULL;
        if (found)
            MIXT_TRY(mixt__tpl_equal(run, &a->dict->pairs[i].value, found, equal));
    }
    return MIXT_OK;
}

mixt_status mixt__tpl_equal(mixt__tpl_run *run, const mixt__tpl_value *a, const mixt__tpl_value *b, bool *equal)
{
    *equal = false;
    if (mixt__tpl_is_number(a) && mixt__tpl_is_number(b)) {
        bool whole = a->kind != MIXT_TPL_FLOAT && b->kind != MIXT_TPL_FLOAT;
        *equal = whole ? a->whole == b->whole : mixt__tpl_number(a) == mixt__tpl_number(b);
        return MIXT_OK;
    }
    if (a->kind != b->kind)
        return MIXT_OK;
    MIXT_TRY(mixt__tpl_enter(run));
    switch (a->kind) {
    case MIXT_TPL_UNDEFINED:
    case MIXT_TPL_NONE:
        *equal = true;
        break;
    case MIXT_TPL_TEXT:
        *equal = a->size == b->size && (!a->size || !memcmp(a->text, b->text, a->size));
        MIXT_TRY(mixt__tpl_work_bytes(run, *equal ? a->size : 0));
        break;
    case MIXT_TPL_LIST:
    case MIXT_TPL_TUPLE:
    case MIXT_TPL_VIEW:
        MIXT_TRY(equal_lists(run, a->list, b->list, equal));
        break;
    case MIXT_TPL_DICT:
        MIXT_TRY(equal_dicts(run, a, b, equal));
        break;
    default:
        *equal = a->list == b->list; // the same object
    }
    mixt__tpl_leave(run);
    return MIXT_OK;
}

static mixt_status order_lists(mixt__tpl_run *run, const mixt__tpl_list *a, const mixt__tpl_list *b, const char *sign,
                               int *order)
{
    for (int64_t i = 0; i < a->count && i < b->count; i++) {
        bool equal;
        MIXT_TRY(mixt__tpl_equal(run, &a->items[i], &b->items[i], &equal));
        if (!equal)
            return mixt__tpl_order(run, &a->items[i], &b->items[i], sign, order);
    }
    *order = (a->count > b->count) - (a->count < b->count);
    return MIXT_OK;
}

mixt_status mixt__tpl_order(mixt__tpl_run *run, const mixt__tpl_value *a, const mixt__tpl_value *b, const char *sign,
                            int *order)
{
    MIXT_TRY(mixt__tpl_need(run, a));
    MIXT_TRY(mixt__tpl_need(run, b));
    if (mixt__tpl_is_number(a) && mixt__tpl_is_number(b)) {
        double x = mixt__tpl_number(a), y = mixt__tpl_number(b);
        bool whole = a->kind != MIXT_TPL_FLOAT && b->kind != MIXT_TPL_FLOAT;
        *order = whole ? (a->whole > b->whole) - (a->whole < b->whole) : (x > y) - (x < y);
        return MIXT_OK;
    }
    if (a->kind == MIXT_TPL_TEXT && b->kind == MIXT_TPL_TEXT) { // the order of UTF-8 is that of its characters
        size_t size = a->size < b->size ? a->size : b->size;
        int differ = size ? memcmp(a->text, b->text, size) : 0;
        *order = differ ? (differ > 0) - (differ < 0) : (a->size > b->size) - (a->size < b->size);
        return mixt__tpl_work_bytes(run, size);
    }
    if (a->kind == b->kind && (a->kind == MIXT_TPL_LIST || a->kind == MIXT_TPL_TUPLE)) {
        MIXT_TRY(mixt__tpl_enter(run));
        MIXT_TRY(order_lists(run, a->list, b->list, sign, order));
        mixt__tpl_leave(run);
        return MIXT_OK;
    }
    return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "'%s' not supported between instances of '%s' and '%s'", sign,
                             mixt__tpl_type_name(a), mixt__tpl_type_name(b));
}

mixt_status mixt__tpl_contains(mixt__tpl_run *run, const mixt__tpl_value *all, const mixt__tpl_value *item, bool *in)
{
    *in = false;
    if (all->kind == MIXT_TPL_TEXT) {
        MIXT_TRY(mixt__tpl_need(run, item));
        if (item->kind != MIXT_TPL_TEXT)
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "'in <string>' requires string as left operand, not %s",
                                     mixt__tpl_type_name(item));
        MIXT_TRY(mixt__tpl_work_bytes(run, all->size));
        *in = mixt__tpl_find_text(all->text, all->size, item->text, item->size) >= 0;
        return MIXT_OK;
    }
    if (all->kind == MIXT_TPL_DICT) {
        const mixt__tpl_value *found;
        MIXT_TRY(mixt__tpl_dict_get(run, all, item, &found));
        *in = found != NULL;
        return MIXT_OK;
    }
    const mixt__tpl_list *items;
    MIXT_TRY(mixt__tpl_items(run, all, &items));
    for (int64_t i = 0; i < items->count && !*in; i++) {
        MIXT_TRY(mixt__tpl_work(run, 1));
        MIXT_TRY(mixt__tpl_equal(run, &items->items[i], item, in));
    }
    return MIXT_OK;
}

static mixt_status characters(mixt__tpl_run *run, const mixt__tpl_value *text, mixt__tpl_value *list)
{
    uint32_t code;
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, mixt__tpl_characters(text->text, text->size), list));
    for (size_t at = 0, step; (step = mixt__tpl_forward(text->text + at, text->size - at, &code)); at += step)
        MIXT_TRY(mixt__tpl_list_add(run, list, mixt__tpl_text(text->text + at, step)));
    return MIXT_OK;
}

mixt_status mixt__tpl_items(mixt__tpl_run *run, const mixt__tpl_value *value, const mixt__tpl_list **items)
{
    static const mixt__tpl_list nothing;
    mixt__tpl_value list;
    *items = &nothing;
    if (value->kind == MIXT_TPL_ONCE) {
        if (!value->list->used)
            *items = value->list;
        value->list->used = true;
        return MIXT_OK;
    }
    if (mixt__tpl_has_list(value)) {
        *items = value->list;
        return MIXT_OK;
    }
    if (value->kind == MIXT_TPL_UNDEFINED)
        return MIXT_OK;
    if (value->kind == MIXT_TPL_TEXT) {
        MIXT_TRY(characters(run, value, &list));
    } else if (value->kind == MIXT_TPL_DICT) {
        MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, value->dict->count, &list));
        for (int64_t i = 0; i < value->dict->count; i++)
            MIXT_TRY(mixt__tpl_list_add(run, &list, value->dict->pairs[i].key));
    } else {
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "'%s' object is not iterable", mixt__tpl_type_name(value));
    }
    *items = list.list;
    return MIXT_OK;
}

mixt_status mixt__tpl_length(mixt__tpl_run *run, const mixt__tpl_value *value, int64_t *length)
{
    *length = 0;
    switch (value->kind) {
    case MIXT_TPL_UNDEFINED:
        return MIXT_OK;
    case MIXT_TPL_TEXT:
        *length = mixt__tpl_characters(value->text, value->size);
        return mixt__tpl_work_bytes(run, value->size);
    case MIXT_TPL_LIST:
    case MIXT_TPL_TUPLE:
    case MIXT_TPL_VIEW:
        *length = value->list->count;
        return MIXT_OK;
    case MIXT_TPL_DICT:
        *length = value->dict->count;
        return MIXT_OK;
    case MIXT_TPL_LOOP:
        *length = value->loop->items->count;
        return MIXT_OK;
    default:
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "object of type '%s' has no len()", mixt__tpl_type_name(value));
    }
}
