/* The parts of expressions: names, literals, brackets, and what follows them: attributes, items, calls, filters, tests.
 */
#include "template/run.h"

static mixt_status list_until(mixt__tpl_parser *parser, mixt__tpl_op end, mixt__tpl_node **last)
{
    while (!mixt__tpl_at_op(parser, end)) {
        MIXT_TRY(mixt__tpl_parse_expression(parser, last));
        last = &(*last)->next;
        if (!mixt__tpl_at_op(parser, end))
            MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_COMMA));
    }
    return mixt__tpl_advance(parser);
}

static mixt_status dict(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_DICT_OF, node));
    MIXT_TRY(mixt__tpl_advance(parser));
    for (mixt__tpl_node **last = &(*node)->list; !mixt__tpl_at_op(parser, MIXT_TPL_OP_CLOSE_BRACE);
         last = &(*last)->next) {
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_PAIR, last));
        MIXT_TRY(mixt__tpl_parse_expression(parser, &(*last)->a));
        MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_COLON));
        MIXT_TRY(mixt__tpl_parse_expression(parser, &(*last)->b));
        if (!mixt__tpl_at_op(parser, MIXT_TPL_OP_CLOSE_BRACE))
            MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_COMMA));
    }
    return mixt__tpl_advance(parser);
}

static mixt_status parentheses(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_advance(parser));
    if (mixt__tpl_at_op(parser, MIXT_TPL_OP_CLOSE))
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_TUPLE_OF, node));
    else
        MIXT_TRY(mixt__tpl_parse_tuple(parser, true, node));
    return mixt__tpl_expect_op(parser, MIXT_TPL_OP_CLOSE);
}

/** A name, or one of the words that are values. */
static mixt_status name(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    static const struct {
        const char *word;
        mixt__tpl_kind kind;
        int64_t value;
    } words[] = {{"true", MIXT_TPL_BOOL, 1},  {"True", MIXT_TPL_BOOL, 1}, {"false", MIXT_TPL_BOOL, 0},
                 {"False", MIXT_TPL_BOOL, 0}, {"none", MIXT_TPL_NONE, 0}, {"None", MIXT_TPL_NONE, 0}};
    mixt__tpl_value text = parser->token.value;
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_NAME, node));
    (*node)->value = text;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (mixt__tpl_is_text(&text, words[i].word)) {
            (*node)->kind = MIXT_TPL_NODE_CONSTANT;
            (*node)->value = (mixt__tpl_value){.kind = words[i].kind, .whole = words[i].value};
        }
    return mixt__tpl_advance(parser);
}

/** A number, or texts one behind the other, which are one. */
static mixt_status constant(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_CONSTANT, node));
    (*node)->value = parser->token.value;
    MIXT_TRY(mixt__tpl_advance(parser));
    if ((*node)->value.kind != MIXT_TPL_TEXT || parser->token.kind != MIXT_TPL_TOKEN_CONSTANT ||
        parser->token.value.kind != MIXT_TPL_TEXT)
        return MIXT_OK;
    mixt__tpl_node *made, **last;
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_CONCAT, &made));
    made->list = *node;
    *node = made;
    for (last = &made->list->next;
         parser->token.kind == MIXT_TPL_TOKEN_CONSTANT && parser->token.value.kind == MIXT_TPL_TEXT;
         last = &(*last)->next) {
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_CONSTANT, last));
        (*last)->value = parser->token.value;
        MIXT_TRY(mixt__tpl_advance(parser));
    }
    return MIXT_OK;
}

mixt_status mixt__tpl_parse_primary(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    if (parser->token.kind == MIXT_TPL_TOKEN_NAME)
        return name(parser, node);
    if (parser->token.kind == MIXT_TPL_TOKEN_CONSTANT)
        return constant(parser, node);
    if (mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN))
        return parentheses(parser, node);
    if (mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN_BRACE))
        return dict(parser, node);
    if (!mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN_BRACKET))
        return mixt__tpl_unexpected(parser, "an expression");
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_LIST_OF, node));
    MIXT_TRY(mixt__tpl_advance(parser));
    return list_until(parser, MIXT_TPL_OP_CLOSE_BRACKET, &(*node)->list);
}

/** What stands in brackets behind a value: an index, or a slice. */
static mixt_status subscript(mixt__tpl_parser *parser, mixt__tpl_node *object, mixt__tpl_node **node)
{
    mixt__tpl_node *bounds[3] = {NULL, NULL, NULL};
    int colons = 0;
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_ITEM, node));
    (*node)->a = object;
    MIXT_TRY(mixt__tpl_advance(parser));
    while (!mixt__tpl_at_op(parser, MIXT_TPL_OP_CLOSE_BRACKET)) {
        if (mixt__tpl_at_op(parser, MIXT_TPL_OP_COLON) && colons < 2) {
            colons++;
            MIXT_TRY(mixt__tpl_advance(parser));
            continue;
        }
        if (bounds[colons])
            return mixt__tpl_unexpected(parser, "']'");
        MIXT_TRY(mixt__tpl_parse_expression(parser, &bounds[colons]));
    }
    MIXT_TRY(mixt__tpl_advance(parser));
    (*node)->b = bounds[0];
    if (!colons)
        return bounds[0] ? MIXT_OK : mixt__tpl_unexpected(parser, "an index");
    (*node)->kind = MIXT_TPL_NODE_SLICE;
    mixt__tpl_node **last = &(*node)->list;
    for (int i = 0; i < 3; i++, last = &(*last)->next) {
        *last = bounds[i];
        if (!bounds[i]) {
            MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_CONSTANT, last));
            (*last)->value = mixt__tpl_none();
        }
    }
    return MIXT_OK;
}

static mixt_status attribute(mixt__tpl_parser *parser, mixt__tpl_node *object, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_ATTRIBUTE, node));
    (*node)->a = object;
    MIXT_TRY(mixt__tpl_advance(parser));
    (*node)->value = parser->token.value;
    if (parser->token.kind == MIXT_TPL_TOKEN_CONSTANT && parser->token.value.kind == MIXT_TPL_INT) {
        (*node)->kind = MIXT_TPL_NODE_ITEM;
        return mixt__tpl_parse_primary(parser, &(*node)->b);
    }
    if (parser->token.kind != MIXT_TPL_TOKEN_NAME)
        return mixt__tpl_unexpected(parser, "the name of an attribute");
    return mixt__tpl_advance(parser);
}

mixt_status mixt__tpl_parse_arguments(mixt__tpl_parser *parser, mixt__tpl_node **last)
{
    bool named = false;
    MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_OPEN));
    while (!mixt__tpl_at_op(parser, MIXT_TPL_OP_CLOSE)) {
        if (mixt__tpl_at_op(parser, MIXT_TPL_OP_MULTIPLY) || mixt__tpl_at_op(parser, MIXT_TPL_OP_POWER))
            return mixt__tpl_syntax(parser->lexer.name, parser->token.line, MIXT_ERROR_UNSUPPORTED,
                                    "arguments by * and ** are not known here");
        bool keyword = parser->token.kind == MIXT_TPL_TOKEN_NAME && parser->next.kind == MIXT_TPL_TOKEN_OP &&
                       parser->next.op == MIXT_TPL_OP_ASSIGN;
        if (named && !keyword)
            return mixt__tpl_unexpected(parser, "an unnamed argument after a named one");
        named = keyword;
        if (keyword) {
            MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_KEYWORD, last));
            (*last)->value = parser->token.value;
            MIXT_TRY(mixt__tpl_advance(parser));
            MIXT_TRY(mixt__tpl_advance(parser));
        }
        MIXT_TRY(mixt__tpl_parse_expression(parser, keyword ? &(*last)->a : last));
        last = &(*last)->next;
        if (!mixt__tpl_at_op(parser, MIXT_TPL_OP_CLOSE))
            MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_COMMA));
    }
    return mixt__tpl_advance(parser);
}

static mixt_status call(mixt__tpl_parser *parser, mixt__tpl_node *callee, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_CALL, node));
    (*node)->a = callee;
    return mixt__tpl_parse_arguments(parser, &(*node)->list);
}

/** Attributes, items and calls, as many as there are; each makes the tree deeper by one. */
mixt_status mixt__tpl_parse_postfix(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    int depth = parser->depth;
    for (;;) {
        mixt__tpl_node *object = *node;
        if (mixt__tpl_at_op(parser, MIXT_TPL_OP_DOT))
            MIXT_TRY(attribute(parser, object, node));
        else if (mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN_BRACKET))
            MIXT_TRY(subscript(parser, object, node));
        else if (mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN))
            MIXT_TRY(call(parser, object, node));
        else
            break;
        MIXT_TRY(mixt__tpl_deeper(parser));
    }
    parser->depth = depth;
    return MIXT_OK;
}

mixt_status mixt__tpl_parse_filter(mixt__tpl_parser *parser, mixt__tpl_node *object, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_FILTER, node));
    (*node)->a = object;
    if (parser->token.kind != MIXT_TPL_TOKEN_NAME)
        return mixt__tpl_unexpected(parser, "the name of a filter");
    mixt__tpl_value word = parser->token.value;
    const mixt__tpl_function *function = mixt__tpl_filter_of(word.text, word.size);
    if (!function)
        return mixt__tpl_syntax(parser->lexer.name, parser->token.line, MIXT_ERROR_UNSUPPORTED,
                                "filter '%.*s' is not known here", (int)word.size, word.text);
    (*node)->value = (mixt__tpl_value){.kind = MIXT_TPL_FUNCTION, .function = function};
    MIXT_TRY(mixt__tpl_advance(parser));
    return mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN) ? mixt__tpl_parse_arguments(parser, &(*node)->list) : MIXT_OK;
}

/** Whether the one argument of a test that has no brackets stands here. */
static bool test_argument(const mixt__tpl_parser *parser)
{
    static const char *const words[] = {"else", "or", "and", "is", "if", "in", "not", "recursive"};
    if (parser->token.kind == MIXT_TPL_TOKEN_CONSTANT)
        return true;
    if (parser->token.kind != MIXT_TPL_TOKEN_NAME)
        return mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN_BRACKET) || mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN_BRACE);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (mixt__tpl_at_name(parser, words[i]))
            return false;
    return true;
}

static mixt_status test(mixt__tpl_parser *parser, mixt__tpl_node *object, mixt__tpl_node **node)
{
    mixt__tpl_node *made;
    MIXT_TRY(mixt__tpl_advance(parser));
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_TEST, &made));
    made->a = object;
    *node = made;
    if (mixt__tpl_at_name(parser, "not")) {
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_NOT, node));
        (*node)->a = made;
        MIXT_TRY(mixt__tpl_advance(parser));
    }
    if (parser->token.kind != MIXT_TPL_TOKEN_NAME)
        return mixt__tpl_unexpected(parser, "the name of a test");
    mixt__tpl_value word = parser->token.value;
    const mixt__tpl_function *function = mixt__tpl_test_of(word.text, word.size);
    if (!function)
        return mixt__tpl_syntax(parser->lexer.name, parser->token.line, MIXT_ERROR_UNSUPPORTED,
                                "test '%.*s' is not known here", (int)word.size, word.text);
    made->value = (mixt__tpl_value){.kind = MIXT_TPL_FUNCTION, .function = function};
    MIXT_TRY(mixt__tpl_advance(parser));
    if (mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN))
        return mixt__tpl_parse_arguments(parser, &made->list);
    if (!test_argument(parser))
        return mixt__tpl_at_name(parser, "is") ? mixt__tpl_unexpected(parser, "no second test") : MIXT_OK;
    MIXT_TRY(mixt__tpl_parse_primary(parser, &made->list));
    return mixt__tpl_parse_postfix(parser, &made->list);
}

mixt_status mixt__tpl_parse_filters(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    int depth = parser->depth;
    for (;;) {
        mixt__tpl_node *object = *node;
        if (mixt__tpl_at_op(parser, MIXT_TPL_OP_BAR)) {
            MIXT_TRY(mixt__tpl_advance(parser));
            MIXT_TRY(mixt__tpl_parse_filter(parser, object, node));
        } else if (object && mixt__tpl_at_name(parser, "is"))
            MIXT_TRY(test(parser, object, node));
        else if (object && mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN))
            MIXT_TRY(call(parser, object, node));
        else
            break;
        MIXT_TRY(mixt__tpl_deeper(parser));
    }
    parser->depth = depth;
    return MIXT_OK;
}
