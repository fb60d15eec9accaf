/* Calls: arguments bound to names, macros, methods, and the functions that are always there. */
#include "template/run.h"

#include <string.h>

const mixt__tpl_function *mixt__tpl_function_of(const mixt__tpl_function *table, const char *name, size_t size)
{
    for (; table->name; table++)
        if (strlen(table->name) == size && !memcmp(table->name, name, size))
            return table;
    return NULL;
}

/** Index of a name in "a,b,c"; -1: it is not there. *count: of all names. */
static int index_of(const char *names, const mixt__tpl_value *name, int *count)
{
    int found = -1;
    *count = 0;
    for (const char *at = names; *at; ++*count) {
        size_t size = strcspn(at, ",");
        if (name && size == name->size && !memcmp(at, name->text, size))
            found = *count;
        at += size + (at[size] == ',');
    }
    return found;
}

mixt_status mixt__tpl_bind(mixt__tpl_run *run, const char *what, const mixt__tpl_args *args, const char *names,
                           mixt__tpl_value values[MIXT_TPL_ARGS_MAX])
{
    int count;
    (void)index_of(names, NULL, &count);
    for (int i = 0; i < MIXT_TPL_ARGS_MAX; i++)
        values[i] = (mixt__tpl_value){.kind = MIXT_TPL_ABSENT};
    if (args->count > count)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "%s takes %d arguments, not %lld", what, count,
                                 (long long)args->count);
    for (int64_t i = 0; i < args->count; i++)
        values[i] = args->values[i];
    for (int64_t i = 0; i < args->named; i++) {
        int at = index_of(names, &args->names[i], &count);
        if (at < 0 || values[at].kind != MIXT_TPL_ABSENT)
            return mixt__tpl_fail_at(run, at < 0 ? MIXT_ERROR_UNSUPPORTED : MIXT_ERROR_DATA,
                                     at < 0 ? "%s has no argument '%.*s' here" : "%s has argument '%.*s' twice", what,
                                     (int)args->names[i].size, args->names[i].text);
        values[at] = args->named_values[i];
    }
    return MIXT_OK;
}

static mixt_status raise_exception(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                                   mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    (void)self;
    MIXT_TRY(mixt__tpl_bind(run, "raise_exception", args, "message", values));
    if (values[0].kind == MIXT_TPL_ABSENT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "raise_exception needs a message");
    MIXT_TRY(mixt__tpl_string(run, &values[0], result));
    return mixt__fail(MIXT_ERROR_DATA, "%.*s", (int)(result->size < 2000 ? result->size : 2000), result->text);
}

static mixt_status strftime_now(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                                mixt__tpl_value *result)
{
    mixt__tpl_value values[MIXT_TPL_ARGS_MAX];
    (void)self;
    MIXT_TRY(mixt__tpl_bind(run, "strftime_now", args, "format", values));
    if (values[0].kind != MIXT_TPL_TEXT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "strftime_now needs a format");
    return mixt__tpl_strftime(run, &values[0], result);
}

/** namespace(...) and dict(...): named arguments, and perhaps a dict before them. */
static mixt_status make_dict(mixt__tpl_run *run, const mixt__tpl_args *args, mixt__tpl_kind kind,
                             mixt__tpl_value *result)
{
    if (args->count > 1 || (args->count && args->values[0].kind != MIXT_TPL_DICT))
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "%s of anything but named values or a dict",
                                 kind == MIXT_TPL_DICT ? "dict" : "namespace");
    MIXT_TRY(mixt__tpl_dict_new(run, kind, args->named, result));
    for (int64_t i = 0; args->count && i < args->values[0].dict->count; i++)
        MIXT_TRY(
            mixt__tpl_dict_put(run, result, args->values[0].dict->pairs[i].key, args->values[0].dict->pairs[i].value));
    for (int64_t i = 0; i < args->named; i++)
        MIXT_TRY(mixt__tpl_dict_put(run, result, args->names[i], args->named_values[i]));
    return MIXT_OK;
}

static mixt_status namespace(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                             mixt__tpl_value *result)
{
    (void)self;
    return make_dict(run, args, MIXT_TPL_NAMESPACE, result);
}

static mixt_status dict(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                        mixt__tpl_value *result)
{
    (void)self;
    return make_dict(run, args, MIXT_TPL_DICT, result);
}

static mixt_status range(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    enum { MOST = 100000 }; // as the sandbox has it
    int64_t bounds[3] = {0, 0, 1};
    (void)self;
    if (args->named || args->count < 1 || args->count > 3)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "range takes 1 to 3 numbers");
    for (int64_t i = 0; i < args->count; i++) {
        MIXT_TRY(mixt__tpl_need(run, &args->values[i]));
        if (args->values[i].kind != MIXT_TPL_INT && args->values[i].kind != MIXT_TPL_BOOL)
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "range of '%s'", mixt__tpl_type_name(&args->values[i]));
        bounds[args->count == 1 ? 1 : i] = args->values[i].whole;
    }
    if (!bounds[2])
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "range() arg 3 must not be zero");
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_VIEW, 0, result));
    for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1];) {
        if (result->list->count == MOST)
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "a range of more than %d numbers", MOST);
        MIXT_TRY(mixt__tpl_list_add(run, result, mixt__tpl_int(i)));
        if (__builtin_add_overflow(i, bounds[2], &i))
            break;
    }
    return MIXT_OK;
}

static const mixt__tpl_function globals[] = {
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"namespace", namespace},
    {"dict", dict},
    {"range", range},
    {"lipsum", NULL},
    {"cycler", NULL},
    {"joiner", NULL},
    {0},
};

const mixt__tpl_function *mixt__tpl_global(const char *name, size_t size)
{
    return mixt__tpl_function_of(globals, name, size);
}

/** Parameter number `index` of a macro: given, by its default, or undefined. */
static mixt_status parameter(mixt__tpl_run *run, const mixt__tpl_node *node, int64_t index, const mixt__tpl_args *args,
                             int64_t *used)
{
    mixt__tpl_value value;
    int given = 0;
    if (index < args->count) {
        value = args->values[index];
        given++;
    }
    for (int64_t i = 0; i < args->named; i++)
        if (args->names[i].size == node->value.size &&
            !memcmp(args->names[i].text, node->value.text, node->value.size)) {
            value = args->named_values[i];
            given++;
            ++*used;
        }
    if (given > 1)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "argument '%.*s' is given twice", (int)node->value.size,
                                 node->value.text);
    if (!given && node->a)
        MIXT_TRY(mixt__tpl_evaluate(run, node->a, &value));
    else if (!given)
        MIXT_TRY(mixt__tpl_undefined(run, &value, "parameter '%.*s' was not provided", (int)node->value.size,
                                     node->value.text));
    return mixt__tpl_set(run, node->value.text, node->value.size, value);
}

static mixt_status bind_macro(mixt__tpl_run *run, const mixt__tpl_macro *macro, const mixt__tpl_args *args)
{
    static const char caller[] = "caller";
    int64_t count = 0, used = 0;
    for (const mixt__tpl_node *node = macro->node->a; node; node = node->next)
        MIXT_TRY(parameter(run, node, count++, args, &used));
    for (int64_t i = 0; i < args->named; i++)
        if (mixt__tpl_is_text(&args->names[i], caller) && args->named_values[i].kind == MIXT_TPL_MACRO &&
            used < args->named) {
            MIXT_TRY(mixt__tpl_set(run, caller, strlen(caller), args->named_values[i]));
            used++;
        }
    if (args->count > count || used < args->named)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "macro '%.*s' does not take all of these arguments",
                                 (int)macro->node->value.size, macro->node->value.text);
    return MIXT_OK;
}

static mixt_status call_macro(mixt__tpl_run *run, const mixt__tpl_macro *macro, const mixt__tpl_args *args,
                              mixt__tpl_value *value)
{
    mixt__tpl_scope *scope = run->scope;
    mixt__tpl_flow flow;
    size_t mark = run->size;
    int line = run->line;
    run->scope = macro->scope;
    MIXT_TRY(mixt__tpl_scope_enter(run));
    MIXT_TRY(bind_macro(run, macro, args));
    MIXT_TRY(mixt__tpl_body(run, macro->node->list, &flow));
    run->scope = scope;
    run->line = line;
    return mixt__tpl_capture(run, mark, value);
}

mixt_status mixt__tpl_call(mixt__tpl_run *run, const mixt__tpl_value *callee, const mixt__tpl_args *args,
                           mixt__tpl_value *value)
{
    mixt_status status;
    MIXT_TRY(mixt__tpl_need(run, callee));
    MIXT_TRY(mixt__tpl_enter(run));
    if (callee->kind == MIXT_TPL_MACRO)
        status = call_macro(run, callee->macro, args, value);
    else if (callee->kind == MIXT_TPL_METHOD)
        status = callee->method->function->call(run, &callee->method->self, args, value);
    else if (callee->kind == MIXT_TPL_FUNCTION && callee->function->call)
        status = callee->function->call(run, NULL, args, value);
    else if (callee->kind == MIXT_TPL_FUNCTION)
        status =
            mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "function '%s' is not known here", callee->function->name);
    else
        status = mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "'%s' object is not callable", mixt__tpl_type_name(callee));
    mixt__tpl_leave(run);
    return status;
}
