/* Methods of dicts, lists and loops. Those that would change something are refused, as the sandbox refuses them. */
#include "template/run.h"

static mixt_status get(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                       mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    const mixt__tpl_value *found;
    MIXT_TRY(mixt__tpl_bind(run, "get", args, "key,default", values));
    if (values[0].kind == MIXT_TPL_ABSENT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "get needs a key");
    MIXT_TRY(mixt__tpl_dict_get(run, self, &values[0], &found));
    *result = found ? *found : values[1].kind != MIXT_TPL_ABSENT ? values[1] : mixt__tpl_none();
    return MIXT_OK;
}

/** Keys, values or both of a dict. */
static mixt_status view(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args, bool keys,
                        bool values, mixt__tpl_value *result)
{
    mixt__tpl_value none[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(mixt__tpl_bind(run, "this method of a dict", args, "", none));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_VIEW, self->dict->count, result));
    for (int64_t i = 0; i < self->dict->count; i++) {
        mixt__tpl_value item = keys ? self->dict->pairs[i].key : self->dict->pairs[i].value;
        if (keys && values) {
            MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_TUPLE, 2, &item));
            MIXT_TRY(mixt__tpl_list_add(run, &item, self->dict->pairs[i].key));
            MIXT_TRY(mixt__tpl_list_add(run, &item, self->dict->pairs[i].value));
        }
        MIXT_TRY(mixt__tpl_list_add(run, result, item));
    }
    return MIXT_OK;
}

static mixt_status items(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    return view(run, self, args, true, true, result);
}

static mixt_status keys(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                        mixt__tpl_value *result)
{
    return view(run, self, args, true, false, result);
}

static mixt_status values_of(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                             mixt__tpl_value *result)
{
    return view(run, self, args, false, true, result);
}

/** Nothing changes, so a copy is the thing itself. */
static mixt_status copy(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                        mixt__tpl_value *result)
{
    mixt__tpl_value none[MIXT_TPL_ARGS_MAX];
    MIXT_TRY(mixt__tpl_bind(run, "copy", args, "", none));
    *result = *self;
    return MIXT_OK;
}

/** Where an item first stands, and how often it does. */
static mixt_status find(mixt__tpl_run *run, const char *what, const mixt__tpl_value *self, const mixt__tpl_args *args,
                        int64_t *first, int64_t *count)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    *first = -1;
    *count = 0;
    MIXT_TRY(mixt__tpl_bind(run, what, args, "value", values));
    for (int64_t i = 0; i < self->list->count; i++) {
        bool equal;
        MIXT_TRY(mixt__tpl_work(run, 1));
        MIXT_TRY(mixt__tpl_equal(run, &self->list->items[i], &values[0], &equal));
        if (equal && !(*count)++)
            *first = i;
    }
    return MIXT_OK;
}

static mixt_status index_of(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                            mixt__tpl_value *result)
{
    int64_t first, count;
    MIXT_TRY(find(run, "index", self, args, &first, &count));
    *result = mixt__tpl_int(first);
    return count ? MIXT_OK : mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "index: this value is not in the list");
}

static mixt_status count_of(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                            mixt__tpl_value *result)
{
    int64_t first, count;
    MIXT_TRY(find(run, "count", self, args, &first, &count));
    *result = mixt__tpl_int(count);
    return MIXT_OK;
}

static mixt_status cycle(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    if (!args->count || args->named)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "no items for cycling given");
    *result = args->values[self->loop->index % args->count];
    return MIXT_OK;
}

static mixt_status changed(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                           mixt__tpl_value *result)
{
    bool equal = false;
    mixt__tpl_value now;
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_TUPLE, args->count, &now));
    for (int64_t i = 0; i < args->count; i++)
        MIXT_TRY(mixt__tpl_list_add(run, &now, args->values[i]));
    MIXT_TRY(mixt__tpl_equal(run, &self->loop->changed, &now, &equal));
    self->loop->changed = now;
    *result = mixt__tpl_bool(!equal);
    return MIXT_OK;
}

const mixt__tpl_function *mixt__tpl_method_of(const mixt__tpl_value *object, const char *name, size_t size)
{
    static const mixt__tpl_function none[] = {{0}};
    static const mixt__tpl_function of_dict[] = {
        {"get", get},         {"items", items}, {"keys", keys},     {"values", values_of},
        {"copy", copy},       {"pop", NULL},    {"popitem", NULL},  {"update", NULL},
        {"setdefault", NULL}, {"clear", NULL},  {"fromkeys", NULL}, {0},
    };
    static const mixt__tpl_function of_list[] = {
        {"index", index_of}, {"count", count_of}, {"copy", copy},  {"append", NULL},
        {"extend", NULL},    {"insert", NULL},    {"pop", NULL},   {"remove", NULL},
        {"reverse", NULL},   {"sort", NULL},      {"clear", NULL}, {0},
    };
    static const mixt__tpl_function of_tuple[] = {{"index", index_of}, {"count", count_of}, {0}};
    static const mixt__tpl_function of_loop[] = {{"cycle", cycle}, {"changed", changed}, {0}};
    switch (object->kind) {
    case MIXT_TPL_TEXT:
        return mixt__tpl_text_method(name, size);
    case MIXT_TPL_DICT:
        return mixt__tpl_function_of(of_dict, name, size);
    case MIXT_TPL_LIST:
        return mixt__tpl_function_of(of_list, name, size);
    case MIXT_TPL_TUPLE:
        return mixt__tpl_function_of(of_tuple, name, size);
    case MIXT_TPL_LOOP:
        return mixt__tpl_function_of(of_loop, name, size);
    default:
        return mixt__tpl_function_of(none, name, size);
    }
}
