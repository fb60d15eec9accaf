/* Making values, and what can be said of one alone. */
#include "template/run.h"

#include <string.h>

mixt__tpl_value mixt__tpl_none(void)
{
    return (mixt__tpl_value){.kind = MIXT_TPL_NONE};
}

mixt__tpl_value mixt__tpl_bool(bool value)
{
    return (mixt__tpl_value){.kind = MIXT_TPL_BOOL, .whole = value};
}

mixt__tpl_value mixt__tpl_int(int64_t value)
{
    return (mixt__tpl_value){.kind = MIXT_TPL_INT, .whole = value};
}

mixt__tpl_value mixt__tpl_float(double value)
{
    return (mixt__tpl_value){.kind = MIXT_TPL_FLOAT, .real = value};
}

mixt__tpl_value mixt__tpl_text(const char *text, size_t size)
{
    return (mixt__tpl_value){.kind = MIXT_TPL_TEXT, .text = text, .size = size};
}

mixt__tpl_value mixt__tpl_word(const char *text)
{
    return mixt__tpl_text(text, strlen(text));
}

bool mixt__tpl_is_text(const mixt__tpl_value *value, const char *text)
{
    return value->kind == MIXT_TPL_TEXT && value->size == strlen(text) && !memcmp(value->text, text, value->size);
}

bool mixt__tpl_is_number(const mixt__tpl_value *value)
{
    return value->kind == MIXT_TPL_BOOL || value->kind == MIXT_TPL_INT || value->kind == MIXT_TPL_FLOAT;
}

double mixt__tpl_number(const mixt__tpl_value *value)
{
    return value->kind == MIXT_TPL_FLOAT ? value->real : (double)value->whole;
}

bool mixt__tpl_has_list(const mixt__tpl_value *value)
{
    return value->kind >= MIXT_TPL_LIST && value->kind <= MIXT_TPL_VIEW;
}

bool mixt__tpl_truth(const mixt__tpl_value *value)
{
    switch (value->kind) {
    case MIXT_TPL_UNDEFINED:
    case MIXT_TPL_NONE:
    case MIXT_TPL_ABSENT:
        return false;
    case MIXT_TPL_BOOL:
    case MIXT_TPL_INT:
        return value->whole != 0;
    case MIXT_TPL_FLOAT:
        return value->real != 0;
    case MIXT_TPL_TEXT:
        return value->size > 0;
    case MIXT_TPL_LIST:
    case MIXT_TPL_TUPLE:
    case MIXT_TPL_VIEW:
        return value->list->count > 0;
    case MIXT_TPL_DICT:
        return value->dict->count > 0;
    default:
        return true;
    }
}

const char *mixt__tpl_type_name(const mixt__tpl_value *value)
{
    static const char *const names[] = {
        [MIXT_TPL_UNDEFINED] = "Undefined", [MIXT_TPL_NONE] = "None",
        [MIXT_TPL_BOOL] = "bool",           [MIXT_TPL_INT] = "int",
        [MIXT_TPL_FLOAT] = "float",         [MIXT_TPL_TEXT] = "str",
        [MIXT_TPL_LIST] = "list",           [MIXT_TPL_TUPLE] = "tuple",
        [MIXT_TPL_ONCE] = "generator",      [MIXT_TPL_VIEW] = "view",
        [MIXT_TPL_DICT] = "dict",           [MIXT_TPL_NAMESPACE] = "Namespace",
        [MIXT_TPL_LOOP] = "LoopContext",    [MIXT_TPL_MACRO] = "Macro",
        [MIXT_TPL_METHOD] = "method",       [MIXT_TPL_FUNCTION] = "function",
        [MIXT_TPL_ABSENT] = "no argument",
    };
    return names[value->kind];
}

/** Makes room for one more element: what the array had before is lost to the heap. */
static mixt_status grow(mixt__tpl_run *run, void **array, int64_t *room, int64_t count, size_t element)
{
    if (count < *room)
        return MIXT_OK;
    int64_t more = *room < 4 ? 4 : *room * 2;
    void *made;
    MIXT_TRY(mixt__tpl_take(&run->heap, (size_t)more * element, &made));
    if (count)
        memcpy(made, *array, (size_t)count * element);
    *array = made;
    *room = more;
    return MIXT_OK;
}

mixt_status mixt__tpl_list_new(mixt__tpl_run *run, mixt__tpl_kind kind, int64_t room, mixt__tpl_value *list)
{
    void *made, *items = NULL;
    MIXT_TRY(mixt__tpl_work(run, 1 + room / 8));
    MIXT_TRY(mixt__tpl_take(&run->heap, sizeof(mixt__tpl_list), &made));
    if (room)
        MIXT_TRY(mixt__tpl_take(&run->heap, (size_t)room * sizeof(mixt__tpl_value), &items));
    *list = (mixt__tpl_value){.kind = kind, .list = made};
    *list->list = (mixt__tpl_list){.items = items, .room = room};
    return MIXT_OK;
}

mixt_status mixt__tpl_list_add(mixt__tpl_run *run, mixt__tpl_value *list, mixt__tpl_value item)
{
    mixt__tpl_list *to = list->list;
    void *items = to->items;
    MIXT_TRY(mixt__tpl_work(run, 1));
    MIXT_TRY(grow(run, &items, &to->room, to->count, sizeof item));
    to->items = items;
    to->items[to->count++] = item;
    return MIXT_OK;
}

mixt_status mixt__tpl_dict_new(mixt__tpl_run *run, mixt__tpl_kind kind, int64_t room, mixt__tpl_value *dict)
{
    void *made, *pairs = NULL;
    MIXT_TRY(mixt__tpl_work(run, 1 + room / 8));
    MIXT_TRY(mixt__tpl_take(&run->heap, sizeof(mixt__tpl_dict), &made));
    if (room)
        MIXT_TRY(mixt__tpl_take(&run->heap, (size_t)room * sizeof(mixt__tpl_pair), &pairs));
    *dict = (mixt__tpl_value){.kind = kind, .dict = made};
    *dict->dict = (mixt__tpl_dict){.pairs = pairs, .room = room};
    return MIXT_OK;
}

mixt_status mixt__tpl_dict_get(mixt__tpl_run *run, const mixt__tpl_value *dict, const mixt__tpl_value *key,
                               const mixt__tpl_value **found)
{
    *found = NULL;
    MIXT_TRY(mixt__tpl_work(run, dict->dict->count / 8));
    if (mixt__tpl_has_list(key) || key->kind == MIXT_TPL_DICT) {
        if (key->kind != MIXT_TPL_TUPLE)
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "a %s cannot be a key", mixt__tpl_type_name(key));
    }
    for (int64_t i = 0; i < dict->dict->count; i++) {
        const mixt__tpl_pair *pair = &dict->dict->pairs[i];
        bool equal;
        if (pair->key.kind == MIXT_TPL_TEXT && key->kind == MIXT_TPL_TEXT)
            equal = pair->key.size == key->size && !memcmp(pair->key.text, key->text, key->size);
        else
            MIXT_TRY(mixt__tpl_equal(run, &pair->key, key, &equal));
        if (equal) {
            *found = &pair->value;
            return MIXT_OK;
        }
    }
    return MIXT_OK;
}

mixt_status mixt__tpl_dict_put(mixt__tpl_run *run, mixt__tpl_value *dict, mixt__tpl_value key, mixt__tpl_value value)
{
    const mixt__tpl_value *found;
    mixt__tpl_dict *to = dict->dict;
    MIXT_TRY(mixt__tpl_dict_get(run, dict, &key, &found));
    if (found) {
        ((mixt__tpl_pair *)((char *)found - offsetof(mixt__tpl_pair, value)))->value = value;
        return MIXT_OK;
    }
    void *pairs = to->pairs;
    MIXT_TRY(mixt__tpl_work(run, 1));
    MIXT_TRY(grow(run, &pairs, &to->room, to->count, sizeof *to->pairs));
    to->pairs = pairs;
    to->pairs[to->count++] = (mixt__tpl_pair){key, value};
    return MIXT_OK;
}

static mixt_status from_object(mixt__tpl_run *run, const json_t *json, mixt__tpl_value *value)
{
    void *iterator = json_object_iter((json_t *)json);
    MIXT_TRY(mixt__tpl_dict_new(run, MIXT_TPL_DICT, (int64_t)json_object_size(json), value));
    for (; iterator; iterator = json_object_iter_next((json_t *)json, iterator)) {
        mixt__tpl_pair *pair = &value->dict->pairs[value->dict->count]; // the keys of a JSON object differ
        pair->key = mixt__tpl_word(json_object_iter_key(iterator));
        MIXT_TRY(mixt__tpl_from_json(run, json_object_iter_value(iterator), &pair->value));
        value->dict->count++;
    }
    return MIXT_OK;
}

mixt_status mixt__tpl_from_json(mixt__tpl_run *run, const json_t *json, mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_enter(run));
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        MIXT_TRY(from_object(run, json, value));
        break;
    case JSON_ARRAY:
        MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, (int64_t)json_array_size(json), value));
        for (size_t i = 0; i < json_array_size(json); i++) {
            MIXT_TRY(mixt__tpl_from_json(run, json_array_get(json, i), &value->list->items[i]));
            value->list->count++;
        }
        break;
    case JSON_STRING:
        *value = mixt__tpl_text(json_string_value(json), json_string_length(json));
        break;
    case JSON_INTEGER:
        *value = mixt__tpl_int(json_integer_value(json));
        break;
    case JSON_REAL:
        *value = mixt__tpl_float(json_real_value(json));
        break;
    case JSON_NULL:
        *value = mixt__tpl_none();
        break;
    default:
        *value = mixt__tpl_bool(json_is_true(json));
    }
    mixt__tpl_leave(run);
    return MIXT_OK;
}
