/* Filters of what has items: choosing, ordering, joining. */
#include "template/filters.h"

#include "template/text.h"
#include "template/text_methods.h"

#include <string.h>

#define FILTER(name)                                                                                                   \
    static mixt_status name(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,               \
                            mixt__tpl_value *result)

/** A member by a path such as "function.name" or "0.role"; a number is an index. */
static mixt_status member(mixt__tpl_run *run, const mixt__tpl_value *of, const mixt__tpl_value *path,
                          mixt__tpl_value *value)
{
    *value = *of;
    if (path->kind == MIXT_TPL_INT)
        return mixt__tpl_item(run, of, path, value);
    if (path->kind != MIXT_TPL_TEXT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "the name of an attribute is a text, not a %s",
                                 mixt__tpl_type_name(path));
    for (size_t at = 0; at <= path->size;) {
        const char *dot = memchr(path->text + at, '.', path->size - at);
        size_t size = dot ? (size_t)(dot - path->text) - at : path->size - at;
        mixt__tpl_value key = mixt__tpl_text(path->text + at, size), object = *value;
        int64_t number = 0;
        bool digits = size > 0 && size < 10;
        for (size_t i = 0; i < size && digits; i++) {
            digits = key.text[i] >= '0' && key.text[i] <= '9';
            number = number * 10 + (key.text[i] - '0');
        }
        if (digits)
            key = mixt__tpl_int(number);
        MIXT_TRY(mixt__tpl_item(run, &object, &key, value));
        at += size + 1;
    }
    return MIXT_OK;
}

/** What an item is ordered or told apart by: itself or a member, letters in lower case unless case matters. */
static mixt_status key_of(mixt__tpl_run *run, const mixt__tpl_value *item, const mixt__tpl_value *attribute,
                          bool with_case, mixt__tpl_value *key)
{
    *key = *item;
    if (attribute->kind != MIXT_TPL_ABSENT && attribute->kind != MIXT_TPL_NONE)
        MIXT_TRY(member(run, item, attribute, key));
    mixt__tpl_value text = *key;
    return text.kind == MIXT_TPL_TEXT && !with_case ? mixt__tpl_change_case(run, &text, MIXT_TPL_LOWER, key) : MIXT_OK;
}

FILTER(first)
{
    const mixt__tpl_list *items;
    (void)args;
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    if (!items->count)
        return mixt__tpl_undefined(run, result, "No first item, sequence was empty.");
    *result = items->items[0];
    return MIXT_OK;
}

FILTER(last)
{
    const mixt__tpl_list *items;
    (void)args;
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    if (!items->count)
        return mixt__tpl_undefined(run, result, "No last item, sequence was empty.");
    *result = items->items[items->count - 1];
    return MIXT_OK;
}

static mixt_status copy(mixt__tpl_run *run, const mixt__tpl_list *items, mixt__tpl_kind kind, bool backwards,
                        mixt__tpl_value *result)
{
    MIXT_TRY(mixt__tpl_list_new(run, kind, items->count, result));
    for (int64_t i = 0; i < items->count; i++)
        MIXT_TRY(mixt__tpl_list_add(run, result, items->items[backwards ? items->count - 1 - i : i]));
    return MIXT_OK;
}

FILTER(list)
{
    const mixt__tpl_list *items;
    (void)args;
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    return copy(run, items, MIXT_TPL_LIST, false, result);
}

FILTER(reverse)
{
    const mixt__tpl_list *items;
    size_t mark = run->size;
    (void)args;
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    if (self->kind != MIXT_TPL_TEXT)
        return copy(run, items, MIXT_TPL_ONCE, true, result);
    for (int64_t i = items->count; i-- > 0;)
        MIXT_TRY(mixt__tpl_write(run, items->items[i].text, items->items[i].size));
    return mixt__tpl_capture(run, mark, result);
}

FILTER(join)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], between = mixt__tpl_word("");
    const mixt__tpl_list *items;
    size_t mark = run->size;
    MIXT_TRY(mixt__tpl_bind(run, "join", args, "d,attribute", values));
    if (values[0].kind != MIXT_TPL_ABSENT)
        MIXT_TRY(mixt__tpl_string(run, &values[0], &between));
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    for (int64_t i = 0; i < items->count; i++) {
        mixt__tpl_value item = items->items[i];
        if (values[1].kind != MIXT_TPL_ABSENT && values[1].kind != MIXT_TPL_NONE)
            MIXT_TRY(member(run, &items->items[i], &values[1], &item));
        if (i)
            MIXT_TRY(mixt__tpl_write(run, between.text, between.size));
        MIXT_TRY(mixt__tpl_print(run, &item));
    }
    return mixt__tpl_capture(run, mark, result);
}

FILTER(items_of)
{
    static const mixt__tpl_args none;
    mixt__tpl_value method;
    (void)args;
    if (self->kind == MIXT_TPL_UNDEFINED)
        return mixt__tpl_list_new(run, MIXT_TPL_ONCE, 0, result);
    if (self->kind != MIXT_TPL_DICT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "Can only get item pairs from a mapping.");
    mixt__tpl_value name = mixt__tpl_word("items");
    MIXT_TRY(mixt__tpl_attribute(run, self, &name, &method));
    MIXT_TRY(mixt__tpl_call(run, &method, &none, result));
    result->kind = MIXT_TPL_ONCE;
    return MIXT_OK;
}

/** Whether an item is chosen: by its truth, or by a test of it or of a member. `args` begin with the test's name. */
static mixt_status holds(mixt__tpl_run *run, const mixt__tpl_value *item, const mixt__tpl_args *args, bool *yes)
{
    *yes = mixt__tpl_truth(item);
    if (!args->count)
        return MIXT_OK;
    mixt__tpl_args rest = *args;
    rest.values++;
    rest.count--;
    return mixt__tpl_apply_test(run, &args->values[0], item, &rest, yes);
}

static mixt_status choose(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args, bool of_member,
                          bool wanted, mixt__tpl_value *result)
{
    const mixt__tpl_list *items;
    mixt__tpl_args tests = *args;
    if (of_member && !args->count)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "Missing parameter for attribute name");
    if (of_member) {
        tests.values++;
        tests.count--;
    }
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_ONCE, 0, result));
    for (int64_t i = 0; i < items->count; i++) {
        mixt__tpl_value item = items->items[i];
        bool yes;
        MIXT_TRY(mixt__tpl_work(run, 1));
        if (of_member)
            MIXT_TRY(member(run, &items->items[i], &args->values[0], &item));
        MIXT_TRY(holds(run, &item, &tests, &yes));
        if (yes == wanted)
            MIXT_TRY(mixt__tpl_list_add(run, result, items->items[i]));
    }
    return MIXT_OK;
}

FILTER(select_items)
{
    return choose(run, self, args, false, true, result);
}

FILTER(reject)
{
    return choose(run, self, args, false, false, result);
}

FILTER(selectattr)
{
    return choose(run, self, args, true, true, result);
}

FILTER(rejectattr)
{
    return choose(run, self, args, true, false, result);
}

/** map(attribute="name", default=…), or map("filter", …). */
FILTER(map)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    const mixt__tpl_list *items;
    const mixt__tpl_function *filter = NULL;
    mixt__tpl_args rest = *args;
    if (args->count) {
        if (args->values[0].kind == MIXT_TPL_TEXT)
            filter = mixt__tpl_filter_of(args->values[0].text, args->values[0].size);
        if (!filter)
            return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "map: this filter is not known here");
        rest.values++;
        rest.count--;
    } else {
        MIXT_TRY(mixt__tpl_bind(run, "map", args, "attribute,default", values));
    }
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_ONCE, items->count, result));
    for (int64_t i = 0; i < items->count; i++) {
        mixt__tpl_value item;
        MIXT_TRY(filter ? filter->call(run, &items->items[i], &rest, &item)
                        : member(run, &items->items[i], &values[0], &item));
        if (!filter && item.kind == MIXT_TPL_UNDEFINED && values[1].kind != MIXT_TPL_ABSENT)
            item = values[1];
        MIXT_TRY(mixt__tpl_list_add(run, result, item));
    }
    return MIXT_OK;
}

/** Puts an item behind those that are not greater: what is equal stays in its order, also backwards. */
static mixt_status insert(mixt__tpl_run *run, mixt__tpl_value *list, mixt__tpl_value *keys, mixt__tpl_value item,
                          mixt__tpl_value key, bool backwards)
{
    int64_t at = list->list->count;
    MIXT_TRY(mixt__tpl_list_add(run, list, item));
    MIXT_TRY(mixt__tpl_list_add(run, keys, key));
    for (int order = 1; at > 0; at--) {
        MIXT_TRY(mixt__tpl_work(run, 1));
        MIXT_TRY(mixt__tpl_order(run, &keys->list->items[at - 1], &key, "<", &order));
        if (backwards ? order >= 0 : order <= 0)
            break;
        list->list->items[at] = list->list->items[at - 1];
        keys->list->items[at] = keys->list->items[at - 1];
    }
    list->list->items[at] = item;
    keys->list->items[at] = key;
    return MIXT_OK;
}

FILTER(sort)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], keys, key;
    const mixt__tpl_list *items;
    MIXT_TRY(mixt__tpl_bind(run, "sort", args, "reverse,case_sensitive,attribute", values));
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, items->count, result));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, items->count, &keys));
    for (int64_t i = 0; i < items->count; i++) {
        MIXT_TRY(key_of(run, &items->items[i], &values[2], mixt__tpl_truth(&values[1]), &key));
        MIXT_TRY(insert(run, result, &keys, items->items[i], key, mixt__tpl_truth(&values[0])));
    }
    return MIXT_OK;
}

FILTER(dictsort)
{
    static const mixt__tpl_value none = {.kind = MIXT_TPL_ABSENT};
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], pairs, keys, key;
    MIXT_TRY(mixt__tpl_bind(run, "dictsort", args, "case_sensitive,by,reverse", values));
    MIXT_TRY(items_of(run, self, args, &pairs));
    bool by_value = mixt__tpl_is_text(&values[1], "value");
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, pairs.list->count, result));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, pairs.list->count, &keys));
    for (int64_t i = 0; i < pairs.list->count; i++) {
        const mixt__tpl_value *pair = &pairs.list->items[i];
        MIXT_TRY(key_of(run, &pair->list->items[by_value], &none, mixt__tpl_truth(&values[0]), &key));
        MIXT_TRY(insert(run, result, &keys, *pair, key, mixt__tpl_truth(&values[2])));
    }
    return MIXT_OK;
}

FILTER(unique)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], keys, key;
    const mixt__tpl_list *items;
    MIXT_TRY(mixt__tpl_bind(run, "unique", args, "case_sensitive,attribute", values));
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_ONCE, 0, result));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, 0, &keys));
    for (int64_t i = 0; i < items->count; i++) {
        bool known;
        MIXT_TRY(key_of(run, &items->items[i], &values[1], mixt__tpl_truth(&values[0]), &key));
        MIXT_TRY(mixt__tpl_contains(run, &keys, &key, &known));
        if (known)
            continue;
        MIXT_TRY(mixt__tpl_list_add(run, &keys, key));
        MIXT_TRY(mixt__tpl_list_add(run, result, items->items[i]));
    }
    return MIXT_OK;
}

static mixt_status extreme(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args, int sign,
                           mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX], best, key;
    const mixt__tpl_list *items;
    MIXT_TRY(mixt__tpl_bind(run, "min and max", args, "case_sensitive,attribute", values));
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    if (!items->count)
        return mixt__tpl_undefined(run, result, "No aggregated item, sequence was empty.");
    for (int64_t i = 0; i < items->count; i++) {
        int order = sign;
        MIXT_TRY(key_of(run, &items->items[i], &values[1], mixt__tpl_truth(&values[0]), &key));
        if (i)
            MIXT_TRY(mixt__tpl_order(run, &key, &best, "<", &order));
        if (order == sign) {
            best = key;
            *result = items->items[i];
        }
    }
    return MIXT_OK;
}

FILTER(least)
{
    return extreme(run, self, args, -1, result);
}

FILTER(greatest)
{
    return extreme(run, self, args, 1, result);
}

FILTER(sum)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    const mixt__tpl_list *items;
    MIXT_TRY(mixt__tpl_bind(run, "sum", args, "attribute,start", values));
    MIXT_TRY(mixt__tpl_items(run, self, &items));
    *result = values[1].kind == MIXT_TPL_ABSENT ? mixt__tpl_int(0) : values[1];
    for (int64_t i = 0; i < items->count; i++) {
        mixt__tpl_value item = items->items[i], before = *result;
        if (values[0].kind != MIXT_TPL_ABSENT && values[0].kind != MIXT_TPL_NONE)
            MIXT_TRY(member(run, &items->items[i], &values[0], &item));
        MIXT_TRY(mixt__tpl_binary(run, MIXT_TPL_OP_ADD, &before, &item, result));
    }
    return MIXT_OK;
}

const mixt__tpl_function *mixt__tpl_list_filter(const char *name, size_t size)
{
    static const mixt__tpl_function table[] = {
        {"first", first},
        {"last", last},
        {"list", list},
        {"reverse", reverse},
        {"join", join},
        {"items", items_of},
        {"select", select_items},
        {"reject", reject},
        {"selectattr", selectattr},
        {"map", map},
        {"rejectattr", rejectattr},
        {"sort", sort},
        {"dictsort", dictsort},
        {"unique", unique},
        {"min", least},
        {"max", greatest},
        {"sum", sum},
        {0},
    };
    return mixt__tpl_function_of(table, name, size);
}
