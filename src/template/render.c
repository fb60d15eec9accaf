/* Statements, and a rendering from its beginning to its end. */
#include "template/run.h"

#include "base/alloc.h"
#include "base/env.h"

#include <stdio.h>
#include <string.h>

typedef mixt_status statement_fn(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow);

/** Gives a value to names, or to a member of a namespace. */
static mixt_status assign(mixt__tpl_run *run, const mixt__tpl_node *target, const mixt__tpl_value *value)
{
    if (target->kind == MIXT_TPL_NODE_NAME)
        return mixt__tpl_set(run, target->value.text, target->value.size, *value);
    if (target->kind == MIXT_TPL_NODE_ATTRIBUTE) {
        mixt__tpl_value object;
        MIXT_TRY(mixt__tpl_evaluate(run, target->a, &object));
        if (object.kind != MIXT_TPL_NAMESPACE)
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "cannot assign attribute on non-namespace object");
        return mixt__tpl_dict_put(run, &object, target->value, *value);
    }
    const mixt__tpl_list *items;
    int64_t count = 0;
    MIXT_TRY(mixt__tpl_items(run, value, &items));
    for (const mixt__tpl_node *part = target->list; part; part = part->next)
        count++;
    if (items->count != count)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "%lld values for %lld names", (long long)items->count,
                                 (long long)count);
    count = 0;
    for (const mixt__tpl_node *part = target->list; part; part = part->next)
        MIXT_TRY(assign(run, part, &items->items[count++]));
    return MIXT_OK;
}

static mixt_status text(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    (void)flow;
    return mixt__tpl_write(run, node->value.text, node->value.size);
}

static mixt_status print(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    mixt__tpl_value value;
    (void)flow;
    MIXT_TRY(mixt__tpl_evaluate(run, node->a, &value));
    return mixt__tpl_print(run, &value);
}

static mixt_status if_statement(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    for (;;) {
        mixt__tpl_value value;
        MIXT_TRY(mixt__tpl_evaluate(run, node->a, &value));
        if (mixt__tpl_truth(&value))
            return mixt__tpl_body(run, node->list, flow);
        if (!node->other || node->other->kind != MIXT_TPL_NODE_IF || node->other->next)
            return mixt__tpl_body(run, node->other, flow);
        node = node->other; // elif, or an if that is all of an else
    }
}

/** Those of `all` that the loop's condition holds for. */
static mixt_status chosen(mixt__tpl_run *run, const mixt__tpl_node *node, const mixt__tpl_list *all,
                          const mixt__tpl_list **items)
{
    mixt__tpl_value list, value;
    MIXT_TRY(mixt__tpl_list_new(run, MIXT_TPL_LIST, 0, &list));
    for (int64_t i = 0; i < all->count; i++) {
        MIXT_TRY(mixt__tpl_scope_enter(run));
        MIXT_TRY(assign(run, node->a, &all->items[i]));
        MIXT_TRY(mixt__tpl_evaluate(run, node->c, &value));
        mixt__tpl_scope_leave(run);
        if (mixt__tpl_truth(&value))
            MIXT_TRY(mixt__tpl_list_add(run, &list, all->items[i]));
    }
    *items = list.list;
    return MIXT_OK;
}

static mixt_status for_statement(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    mixt__tpl_value value;
    const mixt__tpl_list *items;
    void *made;
    MIXT_TRY(mixt__tpl_evaluate(run, node->b, &value));
    MIXT_TRY(mixt__tpl_items(run, &value, &items));
    if (node->c)
        MIXT_TRY(chosen(run, node, items, &items));
    MIXT_TRY(mixt__tpl_take(&run->heap, sizeof(mixt__tpl_loop), &made));
    mixt__tpl_loop *loop = made;
    *loop = (mixt__tpl_loop){.items = items, .depth = 1, .changed.kind = MIXT_TPL_ABSENT};
    for (; loop->index < items->count && *flow != MIXT_TPL_BREAK; loop->index++) {
        *flow = MIXT_TPL_ON;
        MIXT_TRY(mixt__tpl_scope_enter(run)); // what an iteration sets, the next does not see
        MIXT_TRY(assign(run, node->a, &items->items[loop->index]));
        MIXT_TRY(mixt__tpl_set(run, "loop", strlen("loop"), (mixt__tpl_value){.kind = MIXT_TPL_LOOP, .loop = loop}));
        MIXT_TRY(mixt__tpl_body(run, node->list, flow));
        mixt__tpl_scope_leave(run);
    }
    if (loop->index == items->count && loop->index)
        loop->index--; // whoever kept the loop sees its last item
    *flow = MIXT_TPL_ON;
    if (items->count || !node->other)
        return MIXT_OK;
    MIXT_TRY(mixt__tpl_scope_enter(run));
    MIXT_TRY(mixt__tpl_body(run, node->other, flow));
    mixt__tpl_scope_leave(run);
    return MIXT_OK;
}

static mixt_status set(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    mixt__tpl_value value;
    (void)flow;
    MIXT_TRY(mixt__tpl_evaluate(run, node->b, &value));
    return assign(run, node->a, &value);
}

/** What statements write, as a text, through filters where there are any. */
static mixt_status captured(mixt__tpl_run *run, const mixt__tpl_node *list, const mixt__tpl_node *filters,
                            mixt__tpl_flow *flow, mixt__tpl_value *value)
{
    size_t mark = run->size;
    mixt__tpl_value block;
    MIXT_TRY(mixt__tpl_scope_enter(run));
    MIXT_TRY(mixt__tpl_body(run, list, flow));
    mixt__tpl_scope_leave(run);
    MIXT_TRY(mixt__tpl_capture(run, mark, &block));
    *value = block;
    return filters ? mixt__tpl_filter(run, filters, &block, value) : MIXT_OK;
}

static mixt_status set_block(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    mixt__tpl_value value;
    MIXT_TRY(captured(run, node->list, node->b, flow, &value));
    return assign(run, node->a, &value);
}

static mixt_status filter_block(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    mixt__tpl_value value;
    MIXT_TRY(captured(run, node->list, node->a, flow, &value));
    return mixt__tpl_print(run, &value);
}

static mixt_status macro_value(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value)
{
    void *made;
    MIXT_TRY(mixt__tpl_take(&run->heap, sizeof(mixt__tpl_macro), &made));
    *value = (mixt__tpl_value){.kind = MIXT_TPL_MACRO, .macro = made};
    *value->macro = (mixt__tpl_macro){.node = node, .scope = run->scope};
    return MIXT_OK;
}

static mixt_status macro(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    mixt__tpl_value value;
    (void)flow;
    MIXT_TRY(macro_value(run, node, &value));
    return mixt__tpl_set(run, node->value.text, node->value.size, value);
}

/** A call whose macro may call the block's body as caller(). */
static mixt_status call_block(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    mixt__tpl_value callee, value, args[MIXT_TPL_ARGS_MAX], names[MIXT_TPL_ARGS_MAX], named[MIXT_TPL_ARGS_MAX];
    mixt__tpl_args all = {.values = args, .names = names, .named_values = named};
    (void)flow;
    MIXT_TRY(mixt__tpl_evaluate(run, node->b->a, &callee));
    for (const mixt__tpl_node *part = node->b->list; part; part = part->next) {
        if (all.count == MIXT_TPL_ARGS_MAX || all.named + 1 == MIXT_TPL_ARGS_MAX)
            return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "more than %d arguments in a call block",
                                     MIXT_TPL_ARGS_MAX - 1);
        if (part->kind == MIXT_TPL_NODE_KEYWORD) {
            MIXT_TRY(mixt__tpl_evaluate(run, part->a, &named[all.named]));
            names[all.named++] = part->value;
        } else {
            MIXT_TRY(mixt__tpl_evaluate(run, part, &args[all.count++]));
        }
    }
    names[all.named] = node->a->value;
    MIXT_TRY(macro_value(run, node->a, &named[all.named++]));
    MIXT_TRY(mixt__tpl_call(run, &callee, &all, &value));
    return mixt__tpl_print(run, &value);
}

static mixt_status scope(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    MIXT_TRY(mixt__tpl_scope_enter(run));
    MIXT_TRY(mixt__tpl_body(run, node->list, flow));
    mixt__tpl_scope_leave(run);
    return MIXT_OK;
}

static mixt_status with(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    mixt__tpl_scope *outer = run->scope;
    MIXT_TRY(mixt__tpl_scope_enter(run));
    mixt__tpl_scope *inner = run->scope;
    for (const mixt__tpl_node *part = node->other; part; part = part->next) {
        mixt__tpl_value value;
        run->scope = outer; // values do not see one another
        MIXT_TRY(mixt__tpl_evaluate(run, part->a, &value));
        run->scope = inner;
        MIXT_TRY(mixt__tpl_set(run, part->value.text, part->value.size, value));
    }
    MIXT_TRY(mixt__tpl_body(run, node->list, flow));
    mixt__tpl_scope_leave(run);
    return MIXT_OK;
}

static mixt_status jump(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_flow *flow)
{
    (void)run;
    *flow = node->kind == MIXT_TPL_NODE_BREAK ? MIXT_TPL_BREAK : MIXT_TPL_CONTINUE;
    return MIXT_OK;
}

mixt_status mixt__tpl_body(mixt__tpl_run *run, const mixt__tpl_node *first, mixt__tpl_flow *flow)
{
    static statement_fn *const by_kind[MIXT_TPL_NODE_COUNT] = {
        [MIXT_TPL_NODE_TEXT] = text,
        [MIXT_TPL_NODE_PRINT] = print,
        [MIXT_TPL_NODE_IF] = if_statement,
        [MIXT_TPL_NODE_FOR] = for_statement,
        [MIXT_TPL_NODE_SET] = set,
        [MIXT_TPL_NODE_SET_BLOCK] = set_block,
        [MIXT_TPL_NODE_MACRO] = macro,
        [MIXT_TPL_NODE_CALL_BLOCK] = call_block,
        [MIXT_TPL_NODE_FILTER_BLOCK] = filter_block,
        [MIXT_TPL_NODE_SCOPE] = scope,
        [MIXT_TPL_NODE_WITH] = with,
        [MIXT_TPL_NODE_BREAK] = jump,
        [MIXT_TPL_NODE_CONTINUE] = jump,
    };
    *flow = MIXT_TPL_ON;
    MIXT_TRY(mixt__tpl_enter(run));
    for (const mixt__tpl_node *node = first; node && *flow == MIXT_TPL_ON; node = node->next) {
        run->line = node->line;
        MIXT_TRY(mixt__tpl_work(run, 1));
        MIXT_TRY(by_kind[node->kind](run, node, flow));
    }
    mixt__tpl_leave(run);
    return MIXT_OK;
}

mixt_status mixt__template_read(const char *name, const char *text_of, size_t size, mixt__template **read)
{
    mixt__template *made = NULL;
    *read = NULL;
    if (size > MIXT_TEMPLATE_SOURCE_MAX)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: a template of %zu bytes; at most %d KiB are read", name, size,
                          MIXT_TEMPLATE_SOURCE_MAX >> 10);
    made = mixt__alloc(sizeof *made);
    if (!made)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the template", name);
    made->heap.most = MIXT_TPL_TREE_MAX;
    char *copy;
    mixt_status status = mixt__tpl_take_text(&made->heap, strlen(name) + 1, &copy);
    if (status == MIXT_OK) {
        made->name = memcpy(copy, name, strlen(name) + 1);
        status = mixt__tpl_parse(&made->heap, made->name, text_of, size, &made->body);
    }
    if (status != MIXT_OK) {
        mixt__template_free(made);
        return status;
    }
    *read = made;
    return MIXT_OK;
}

void mixt__template_free(mixt__template *read)
{
    if (read)
        mixt__tpl_heap_free(&read->heap);
    mixt__free(read);
}

static mixt_status render(mixt__tpl_run *run, const json_t *variables)
{
    mixt__tpl_value all;
    mixt__tpl_flow flow;
    MIXT_TRY(mixt__tpl_scope_enter(run));
    MIXT_TRY(mixt__tpl_from_json(run, variables, &all));
    for (int64_t i = 0; i < all.dict->count; i++)
        MIXT_TRY(
            mixt__tpl_set(run, all.dict->pairs[i].key.text, all.dict->pairs[i].key.size, all.dict->pairs[i].value));
    MIXT_TRY(mixt__tpl_scope_enter(run));
    MIXT_TRY(mixt__tpl_body(run, run->read->body, &flow));
    return mixt__tpl_write(run, "", 1); // the zero at the end
}

mixt_status mixt__template_render(const mixt__template *read, const json_t *variables, char **text_of, size_t *size)
{
    mixt__tpl_run run = {.read = read, .steps = MIXT_TEMPLATE_STEPS, .heap.most = MIXT_TPL_HEAP_MAX};
    *text_of = NULL;
    *size = 0;
    mixt_status status = render(&run, variables);
    mixt__tpl_heap_free(&run.heap);
    if (status != MIXT_OK) {
        mixt__free(run.out);
        return status;
    }
    *text_of = run.out;
    *size = run.size - 1;
    return MIXT_OK;
}
