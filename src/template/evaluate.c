/* The value of an expression, kind of node by kind of node. */
#include "template/run.h"

#include <string.h>

typedef mixt_status evaluate_fn(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value);

static mixt_status constant(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    (void)run;
    *value = node->value;
    return MIXT_OK;
}

static mixt_status name(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    const mixt__tpl_value *found;
    MIXT_TRY(mixt__tpl_find(run, node->value.text, node->value.size, &found));
    if (found) {
        *value = *found;
        return MIXT_OK;
    }
    const mixt__tpl_function *function = mixt__tpl_global(node->value.text, node->value.size);
    if (!function)
        return mixt__tpl_undefined(run, value, "'%.*s' is undefined",
                                   (int)(node->value.size < 128 ? node->value.size : 128), node->value.text);
    *value = (mixt__tpl_value){.kind = MIXT_TPL_FUNCTION, .function = function};
    return MIXT_OK;
}

static mixt_status list_of(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_list_new(run, node->kind == MIXT_TPL_NODE_LIST_OF ? MIXT_TPL_LIST : MIXT_TPL_TUPLE, 0, value));
    for (const mixt__tpl_node *part = node->list; part; part = part->next) {
        mixt__tpl_value item;
        MIXT_TRY(mixt__tpl_evaluate(run, part, &item));
        MIXT_TRY(mixt__tpl_list_add(run, value, item));
    }
    return MIXT_OK;
}

static mixt_status dict_of(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_dict_new(run, MIXT_TPL_DICT, 0, value));
    for (const mixt__tpl_node *part = node->list; part; part = part->next) {
        mixt__tpl_value key, item;
        MIXT_TRY(mixt__tpl_evaluate(run, part->a, &key));
        MIXT_TRY(mixt__tpl_evaluate(run, part->b, &item));
        MIXT_TRY(mixt__tpl_dict_put(run, value, key, item));
    }
    return MIXT_OK;
}

static mixt_status attribute(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    mixt__tpl_value object;
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, &object));
    return mixt__tpl_attribute(run, &object, &node->value, value);
}

static mixt_status item(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    mixt__tpl_value object, key;
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, &object));
    MIXT_TRY(mixt__tpl_evaluate(run, node->b, &key));
    return mixt__tpl_item(run, &object, &key, value);
}

static mixt_status slice(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    mixt__tpl_value object, bounds[3];
    const mixt__tpl_node *part = node->list;
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, &object));
    for (int i = 0; i < 3; i++, part = part->next)
        MIXT_TRY(mixt__tpl_evaluate(run, part, &bounds[i]));
    return mixt__tpl_slice(run, &object, bounds, value);
}

static mixt_status not_of(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, value));
    *value = mixt__tpl_bool(!mixt__tpl_truth(value));
    return MIXT_OK;
}

static mixt_status sign(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    mixt__tpl_value of;
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, &of));
    MIXT_TRY(mixt__tpl_negate(run, &of, value));
    if (node->kind == MIXT_TPL_NODE_PLUS)
        *value = of.kind == MIXT_TPL_BOOL ? mixt__tpl_int(of.whole) : of;
    return MIXT_OK;
}

static mixt_status binary(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    mixt__tpl_value a, b;
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, &a));
    MIXT_TRY(mixt__tpl_evaluate(run, node->b, &b));
    run->line = node->line;
    return mixt__tpl_binary(run, node->op, &a, &b, value);
}

static mixt_status holds(mixt__tpl_run *run, mixt__tpl_op op, const mixt__tpl_value *a, const mixt__tpl_value *b,
                         bool *result)
{
    int order = 0;
    if (op == MIXT_TPL_OP_IN || op == MIXT_TPL_OP_NOT_IN) {
        MIXT_TRY(mixt__tpl_contains(run, b, a, result));
        *result = *result == (op == MIXT_TPL_OP_IN);
        return MIXT_OK;
    }
    if (op == MIXT_TPL_OP_EQUAL || op == MIXT_TPL_OP_UNEQUAL) {
        MIXT_TRY(mixt__tpl_equal(run, a, b, result));
        *result = *result == (op == MIXT_TPL_OP_EQUAL);
        return MIXT_OK;
    }
    MIXT_TRY(mixt__tpl_order(run, a, b, mixt__tpl_op_texts[op], &order));
    *result = op == MIXT_TPL_OP_LESS      ? order < 0
              : op == MIXT_TPL_OP_AT_MOST ? order <= 0
              : op == MIXT_TPL_OP_MORE    ? order > 0
                                          : order >= 0;
    return MIXT_OK;
}

static mixt_status compare(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    mixt__tpl_value a, b;
    bool result = true;
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, &a));
    for (const mixt__tpl_node *part = node->list; part && result; part = part->next) {
        MIXT_TRY(mixt__tpl_evaluate(run, part->a, &b));
        run->line = node->line;
        MIXT_TRY(holds(run, part->op, &a, &b, &result));
        a = b;
    }
    *value = mixt__tpl_bool(result);
    return MIXT_OK;
}

static mixt_status concat(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    *value = mixt__tpl_word("");
    for (const mixt__tpl_node *part = node->list; part; part = part->next) {
        mixt__tpl_value one;
        MIXT_TRY(mixt__tpl_evaluate(run, part, &one));
        MIXT_TRY(mixt__tpl_string(run, &one, &one));
        MIXT_TRY(mixt__tpl_join_texts(run, value, &one, value));
        value->safe = false;
    }
    return MIXT_OK;
}

static mixt_status and_or(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, value));
    return mixt__tpl_truth(value) == (node->kind == MIXT_TPL_NODE_AND) ? mixt__tpl_evaluate(run, node->b, value)
                                                                       : MIXT_OK;
}

static mixt_status choice(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_evaluate(run, node->b, value));
    if (mixt__tpl_truth(value))
        return mixt__tpl_evaluate(run, node->a, value);
    if (node->c)
        return mixt__tpl_evaluate(run, node->c, value);
    return mixt__tpl_undefined(run, value, "the inline if-expression evaluated to false and has no else");
}

static mixt_status arguments(mixt__tpl_run *run, const mixt__tpl_node *first, mixt__tpl_args *args)
{
    mixt__tpl_value values, names, named;
    *args = (mixt__tpl_args){0};
    if (!first)
        return MIXT_OK;
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, 0, &values));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, 0, &names));
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, 0, &named));
    for (const mixt__tpl_node *part = first; part; part = part->next) {
        mixt__tpl_value one;
        bool keyword = part->kind == MIXT_TPL_NODE_KEYWORD;
        MIXT_TRY(mixt__tpl_evaluate(run, keyword ? part->a : part, &one));
        MIXT_TRY(mixt__tpl_list_add(run, keyword ? &named : &values, one));
        if (keyword)
            MIXT_TRY(mixt__tpl_list_add(run, &names, part->value));
    }
    *args = (mixt__tpl_args){.count = values.list->count,
                             .values = values.list->items,
                             .named = named.list->count,
                             .names = names.list->items,
                             .named_values = named.list->items};
    return MIXT_OK;
}

static mixt_status call(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    mixt__tpl_value callee;
    mixt__tpl_args args;
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, &callee));
    MIXT_TRY(arguments(run, node->list, &args));
    run->line = node->line;
    return mixt__tpl_call(run, &callee, &args, value);
}

mixt_status mixt__tpl_filter(mixt__tpl_run *run, const mixt__tpl_node *node, const mixt__tpl_value *block,
                             mixt__tpl_value *value)
{
    mixt__tpl_value self;
    mixt__tpl_args args;
    MIXT_TRY(mixt__tpl_enter(run));
    if (block && !node->a)
        self = *block;
    else if (block)
        MIXT_TRY(mixt__tpl_filter(run, node->a, block, &self));
    else
        MIXT_TRY(mixt__tpl_evaluate(run, node->a, &self));
    MIXT_TRY(arguments(run, node->list, &args));
    run->line = node->line;
    mixt_status status = node->value.function->call(run, &self, &args, value);
    mixt__tpl_leave(run);
    return status;
}

static mixt_status filter(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    return mixt__tpl_filter(run, node, NULL, value);
}

mixt_status mixt__tpl_evaluate(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    static evaluate_fn *const by_kind[MIXT_TPL_NODE_EXPRESSIONS] = {
        [MIXT_TPL_NODE_CONSTANT] = constant, [MIXT_TPL_NODE_NAME] = name,       [MIXT_TPL_NODE_LIST_OF] = list_of,
        [MIXT_TPL_NODE_TUPLE_OF] = list_of,  [MIXT_TPL_NODE_DICT_OF] = dict_of, [MIXT_TPL_NODE_ATTRIBUTE] = attribute,
        [MIXT_TPL_NODE_ITEM] = item,         [MIXT_TPL_NODE_SLICE] = slice,     [MIXT_TPL_NODE_NOT] = not_of,
        [MIXT_TPL_NODE_NEGATE] = sign,       [MIXT_TPL_NODE_PLUS] = sign,       [MIXT_TPL_NODE_BINARY] = binary,
        [MIXT_TPL_NODE_COMPARE] = compare,   [MIXT_TPL_NODE_CONCAT] = concat,   [MIXT_TPL_NODE_AND] = and_or,
        [MIXT_TPL_NODE_OR] = and_or,         [MIXT_TPL_NODE_CHOICE] = choice,   [MIXT_TPL_NODE_CALL] = call,
        [MIXT_TPL_NODE_FILTER] = filter,     [MIXT_TPL_NODE_TEST] = filter, // a test is a filter that says yes or no
    };
    mixt__tpl_value made = {.kind = MIXT_TPL_NONE};
    run->line = node->line;
    MIXT_TRY(mixt__tpl_enter(run));
    mixt_status status = by_kind[node->kind](run, node, &made);
    mixt__tpl_leave(run);
    *value = made;
    return status;
}
