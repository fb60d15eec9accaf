/* Expressions, by Jinja's grammar: the further down a rule stands here, the tighter it binds. */
#include "template/run.h"

#include <string.h>

typedef mixt_status rule(mixt__tpl_parser *parser, mixt__tpl_node **node);

/** a op b op c, from the left, of a table of operators. */
static mixt_status left_to_right(mixt__tpl_parser *parser, const mixt__tpl_op *ops, int count, rule *operand,
                                 mixt__tpl_node **node)
{
    MIXT_TRY(operand(parser, node));
    for (int i = 0; i < count;) {
        if (!mixt__tpl_at_op(parser, ops[i])) {
            i++;
            continue;
        }
        mixt__tpl_node *made;
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_BINARY, &made));
        made->op = ops[i];
        made->a = *node;
        MIXT_TRY(mixt__tpl_advance(parser));
        MIXT_TRY(operand(parser, &made->b));
        *node = made;
        MIXT_TRY(mixt__tpl_deeper(parser)); // a chain is as deep as it is long
        i = 0;
    }
    return MIXT_OK;
}

static mixt_status unary(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    return mixt__tpl_parse_unary(parser, true, node);
}

static mixt_status power(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    static const mixt__tpl_op ops[] = {MIXT_TPL_OP_POWER};
    return left_to_right(parser, ops, 1, unary, node);
}

static mixt_status product(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    static const mixt__tpl_op ops[] = {MIXT_TPL_OP_MULTIPLY, MIXT_TPL_OP_DIVIDE, MIXT_TPL_OP_FLOOR_DIVIDE,
                                       MIXT_TPL_OP_REMAINDER};
    return left_to_right(parser, ops, 4, power, node);
}

static mixt_status concat(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    MIXT_TRY(product(parser, node));
    if (!mixt__tpl_at_op(parser, MIXT_TPL_OP_TILDE))
        return MIXT_OK;
    mixt__tpl_node *made;
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_CONCAT, &made));
    made->list = *node;
    *node = made;
    for (mixt__tpl_node **last = &made->list->next; mixt__tpl_at_op(parser, MIXT_TPL_OP_TILDE); last = &(*last)->next) {
        MIXT_TRY(mixt__tpl_advance(parser));
        MIXT_TRY(product(parser, last));
    }
    return MIXT_OK;
}

static mixt_status sum(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    static const mixt__tpl_op ops[] = {MIXT_TPL_OP_ADD, MIXT_TPL_OP_SUBTRACT};
    return left_to_right(parser, ops, 2, concat, node);
}

/** Takes an operator that compares, if one is next. */
static mixt_status take_comparison(mixt__tpl_parser *parser, mixt__tpl_op *op)
{
    static const mixt__tpl_op ops[] = {MIXT_TPL_OP_EQUAL,   MIXT_TPL_OP_UNEQUAL, MIXT_TPL_OP_LESS,
                                       MIXT_TPL_OP_AT_MOST, MIXT_TPL_OP_MORE,    MIXT_TPL_OP_AT_LEAST};
    *op = MIXT_TPL_OP_COUNT;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (mixt__tpl_at_op(parser, ops[i]))
            *op = ops[i];
    if (mixt__tpl_at_name(parser, "in"))
        *op = MIXT_TPL_OP_IN;
    if (mixt__tpl_at_name(parser, "not") && parser->next.kind == MIXT_TPL_TOKEN_NAME &&
        mixt__tpl_is_text(&parser->next.value, "in")) {
        *op = MIXT_TPL_OP_NOT_IN;
        MIXT_TRY(mixt__tpl_advance(parser));
    }
    return *op == MIXT_TPL_OP_COUNT ? MIXT_OK : mixt__tpl_advance(parser);
}

static mixt_status comparison(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    mixt__tpl_op op;
    MIXT_TRY(sum(parser, node));
    MIXT_TRY(take_comparison(parser, &op));
    if (op == MIXT_TPL_OP_COUNT)
        return MIXT_OK;
    mixt__tpl_node *made;
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_COMPARE, &made));
    made->a = *node;
    *node = made;
    for (mixt__tpl_node **last = &made->list; op != MIXT_TPL_OP_COUNT; last = &(*last)->next) {
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_COMPARED, last));
        (*last)->op = op;
        MIXT_TRY(sum(parser, &(*last)->a));
        MIXT_TRY(take_comparison(parser, &op));
    }
    return MIXT_OK;
}

static mixt_status negation(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    if (!mixt__tpl_at_name(parser, "not"))
        return comparison(parser, node);
    MIXT_TRY(mixt__tpl_deeper(parser));
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_NOT, node));
    MIXT_TRY(mixt__tpl_advance(parser));
    MIXT_TRY(negation(parser, &(*node)->a));
    parser->depth--;
    return MIXT_OK;
}

static mixt_status words(mixt__tpl_parser *parser, const char *word, mixt__tpl_node_kind kind, rule *operand,
                         mixt__tpl_node **node)
{
    MIXT_TRY(operand(parser, node));
    while (mixt__tpl_at_name(parser, word)) {
        mixt__tpl_node *made;
        MIXT_TRY(mixt__tpl_new_node(parser, kind, &made));
        made->a = *node;
        *node = made;
        MIXT_TRY(mixt__tpl_advance(parser));
        MIXT_TRY(operand(parser, &made->b));
        MIXT_TRY(mixt__tpl_deeper(parser));
    }
    return MIXT_OK;
}

static mixt_status conjunction(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    return words(parser, "and", MIXT_TPL_NODE_AND, negation, node);
}

static mixt_status disjunction(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    return words(parser, "or", MIXT_TPL_NODE_OR, conjunction, node);
}

/** x if y else z, from the left. Depth that chains have added is given back here: what is around it starts anew. */
mixt_status mixt__tpl_parse_expression(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    int depth = parser->depth;
    MIXT_TRY(mixt__tpl_deeper(parser));
    MIXT_TRY(disjunction(parser, node));
    while (mixt__tpl_at_name(parser, "if")) {
        mixt__tpl_node *made;
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_CHOICE, &made));
        made->a = *node;
        *node = made;
        MIXT_TRY(mixt__tpl_advance(parser));
        MIXT_TRY(disjunction(parser, &made->b));
        if (mixt__tpl_at_name(parser, "else")) {
            MIXT_TRY(mixt__tpl_advance(parser));
            MIXT_TRY(mixt__tpl_parse_expression(parser, &made->c));
        }
        MIXT_TRY(mixt__tpl_deeper(parser));
    }
    parser->depth = depth;
    return MIXT_OK;
}

mixt_status mixt__tpl_parse_unary(mixt__tpl_parser *parser, bool filters, mixt__tpl_node **node)
{
    bool minus = mixt__tpl_at_op(parser, MIXT_TPL_OP_SUBTRACT);
    if (minus || mixt__tpl_at_op(parser, MIXT_TPL_OP_ADD)) {
        MIXT_TRY(mixt__tpl_deeper(parser));
        MIXT_TRY(mixt__tpl_new_node(parser, minus ? MIXT_TPL_NODE_NEGATE : MIXT_TPL_NODE_PLUS, node));
        MIXT_TRY(mixt__tpl_advance(parser));
        MIXT_TRY(mixt__tpl_parse_unary(parser, false, &(*node)->a));
        parser->depth--;
    } else {
        MIXT_TRY(mixt__tpl_parse_primary(parser, node));
    }
    MIXT_TRY(mixt__tpl_parse_postfix(parser, node));
    return filters ? mixt__tpl_parse_filters(parser, node) : MIXT_OK;
}

/** What ends a tuple that has no brackets of its own. */
static bool tuple_ends(const mixt__tpl_parser *parser)
{
    return parser->token.kind == MIXT_TPL_TOKEN_PRINT_END || parser->token.kind == MIXT_TPL_TOKEN_BLOCK_END ||
           mixt__tpl_at_op(parser, MIXT_TPL_OP_CLOSE) || mixt__tpl_at_name(parser, "in") ||
           mixt__tpl_at_name(parser, "recursive");
}

mixt_status mixt__tpl_parse_tuple(mixt__tpl_parser *parser, bool choice, mixt__tpl_node **node)
{
    mixt__tpl_node *list = NULL, **last = &list;
    bool comma = false;
    int depth = parser->depth;
    while (!tuple_ends(parser)) {
        MIXT_TRY((choice ? mixt__tpl_parse_expression : disjunction)(parser, last));
        last = &(*last)->next;
        if (!mixt__tpl_at_op(parser, MIXT_TPL_OP_COMMA))
            break;
        comma = true;
        MIXT_TRY(mixt__tpl_advance(parser));
    }
    parser->depth = depth;
    if (!list)
        return mixt__tpl_unexpected(parser, "an expression");
    if (!comma) {
        *node = list;
        return MIXT_OK;
    }
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_TUPLE_OF, node));
    (*node)->list = list;
    return MIXT_OK;
}
