/* Statements: a template as a tree. */
#include "template/run.h"

#include <string.h>

typedef mixt_status statement_fn(mixt__tpl_parser *parser, mixt__tpl_node **node);

mixt_status mixt__tpl_advance(mixt__tpl_parser *parser)
{
    parser->token = parser->next;
    return parser->token.kind == MIXT_TPL_TOKEN_END ? MIXT_OK : mixt__tpl_lexer_next(&parser->lexer, &parser->next);
}

bool mixt__tpl_at_op(const mixt__tpl_parser *parser, mixt__tpl_op op)
{
    return parser->token.kind == MIXT_TPL_TOKEN_OP && parser->token.op == op;
}

bool mixt__tpl_at_name(const mixt__tpl_parser *parser, const char *name)
{
    return parser->token.kind == MIXT_TPL_TOKEN_NAME && mixt__tpl_is_text(&parser->token.value, name);
}

mixt_status mixt__tpl_unexpected(mixt__tpl_parser *parser, const char *wanted)
{
    const mixt__tpl_token *token = &parser->token;
    const char *const what[] = {[MIXT_TPL_TOKEN_END] = "the end of the template",
                                [MIXT_TPL_TOKEN_DATA] = "text",
                                [MIXT_TPL_TOKEN_PRINT_BEGIN] = "'{{'",
                                [MIXT_TPL_TOKEN_PRINT_END] = "'}}'",
                                [MIXT_TPL_TOKEN_BLOCK_BEGIN] = "'{%'",
                                [MIXT_TPL_TOKEN_BLOCK_END] = "'%}'",
                                [MIXT_TPL_TOKEN_CONSTANT] = "a value"};
    if (token->kind == MIXT_TPL_TOKEN_NAME)
        return mixt__tpl_syntax(parser->lexer.name, token->line, MIXT_ERROR_FORMAT, "found '%.*s', expected %s",
                                (int)(token->value.size < 64 ? token->value.size : 64), token->value.text, wanted);
    if (token->kind == MIXT_TPL_TOKEN_OP)
        return mixt__tpl_syntax(parser->lexer.name, token->line, MIXT_ERROR_FORMAT, "found '%s', expected %s",
                                mixt__tpl_op_texts[token->op], wanted);
    return mixt__tpl_syntax(parser->lexer.name, token->line, MIXT_ERROR_FORMAT, "found %s, expected %s",
                            what[token->kind], wanted);
}

mixt_status mixt__tpl_expect_op(mixt__tpl_parser *parser, mixt__tpl_op op)
{
    char wanted[8];
    snprintf(wanted, sizeof wanted, "'%s'", mixt__tpl_op_texts[op]);
    return mixt__tpl_at_op(parser, op) ? mixt__tpl_advance(parser) : mixt__tpl_unexpected(parser, wanted);
}

mixt_status mixt__tpl_new_node(mixt__tpl_parser *parser, mixt__tpl_node_kind kind, mixt__tpl_node **node)
{
    void *made;
    MIXT_TRY(mixt__tpl_take(parser->lexer.heap, sizeof **node, &made));
    *node = made;
    **node = (mixt__tpl_node){.kind = kind, .line = parser->token.line};
    return MIXT_OK;
}

mixt_status mixt__tpl_deeper(mixt__tpl_parser *parser)
{
    if (++parser->depth > MIXT_TPL_NESTING)
        return mixt__tpl_syntax(parser->lexer.name, parser->token.line, MIXT_ERROR_UNSUPPORTED,
                                "more than %d parts inside one another, or in one chain", MIXT_TPL_NESTING);
    return MIXT_OK;
}

static mixt_status body(mixt__tpl_parser *parser, const char *const *ends, mixt__tpl_node **last);

/** The end of a block's tag, its body, and the word that ends it, which is taken. */
static mixt_status block(mixt__tpl_parser *parser, const char *end, mixt__tpl_node **list)
{
    const char *const ends[] = {end, NULL};
    if (parser->token.kind != MIXT_TPL_TOKEN_BLOCK_END)
        return mixt__tpl_unexpected(parser, "'%}'");
    MIXT_TRY(mixt__tpl_advance(parser));
    MIXT_TRY(body(parser, ends, list));
    return mixt__tpl_advance(parser);
}

static mixt_status if_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    for (;;) { // each elif hangs below the one before, and is evaluated without going deeper
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_IF, node));
        MIXT_TRY(mixt__tpl_parse_tuple(parser, false, &(*node)->a));
        if (parser->token.kind != MIXT_TPL_TOKEN_BLOCK_END)
            return mixt__tpl_unexpected(parser, "'%}'");
        MIXT_TRY(mixt__tpl_advance(parser));
        MIXT_TRY(body(parser, ends, &(*node)->list));
        bool elif = mixt__tpl_at_name(parser, "elif"), other = mixt__tpl_at_name(parser, "else");
        MIXT_TRY(mixt__tpl_advance(parser));
        if (other)
            return block(parser, "endif", &(*node)->other);
        if (!elif)
            return MIXT_OK;
        node = &(*node)->other;
    }
}

/** A name; or several with commas between them, also in brackets. */
static mixt_status names(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    mixt__tpl_node *list = NULL, **last = &list;
    bool brackets = mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN), comma = false;
    if (brackets)
        MIXT_TRY(mixt__tpl_advance(parser));
    while (parser->token.kind == MIXT_TPL_TOKEN_NAME && !mixt__tpl_at_name(parser, "in")) {
        MIXT_TRY(mixt__tpl_parse_primary(parser, last));
        if ((*last)->kind != MIXT_TPL_NODE_NAME)
            return mixt__tpl_unexpected(parser, "a name that can be set before this");
        last = &(*last)->next;
        if (!mixt__tpl_at_op(parser, MIXT_TPL_OP_COMMA))
            break;
        comma = true;
        MIXT_TRY(mixt__tpl_advance(parser));
    }
    if (!list)
        return mixt__tpl_unexpected(parser, "a name");
    if (brackets)
        MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_CLOSE));
    *node = list;
    if (!comma)
        return MIXT_OK;
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_TUPLE_OF, node));
    (*node)->list = list;
    return MIXT_OK;
}

/** What is set: names, or, with `member`, one of a namespace. */
static mixt_status target(mixt__tpl_parser *parser, bool member, mixt__tpl_node **node)
{
    if (member && parser->token.kind == MIXT_TPL_TOKEN_NAME && parser->next.kind == MIXT_TPL_TOKEN_OP &&
        parser->next.op == MIXT_TPL_OP_DOT) {
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_NAME, node));
        (*node)->value = parser->token.value;
        MIXT_TRY(mixt__tpl_advance(parser));
        mixt__tpl_node *object = *node;
        MIXT_TRY(mixt__tpl_advance(parser));
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_ATTRIBUTE, node));
        (*node)->a = object;
        (*node)->value = parser->token.value;
        return parser->token.kind == MIXT_TPL_TOKEN_NAME ? mixt__tpl_advance(parser)
                                                         : mixt__tpl_unexpected(parser, "a name");
    }
    return names(parser, node);
}

static mixt_status for_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_FOR, node));
    MIXT_TRY(target(parser, false, &(*node)->a));
    if (!mixt__tpl_at_name(parser, "in"))
        return mixt__tpl_unexpected(parser, "'in'");
    MIXT_TRY(mixt__tpl_advance(parser));
    MIXT_TRY(mixt__tpl_parse_tuple(parser, false, &(*node)->b));
    if (mixt__tpl_at_name(parser, "if")) {
        MIXT_TRY(mixt__tpl_advance(parser));
        MIXT_TRY(mixt__tpl_parse_expression(parser, &(*node)->c));
    }
    if (mixt__tpl_at_name(parser, "recursive"))
        return mixt__tpl_syntax(parser->lexer.name, parser->token.line, MIXT_ERROR_UNSUPPORTED,
                                "'recursive' loops are not known here");
    if (parser->token.kind != MIXT_TPL_TOKEN_BLOCK_END)
        return mixt__tpl_unexpected(parser, "'%}'");
    MIXT_TRY(mixt__tpl_advance(parser));
    parser->loops++;
    MIXT_TRY(body(parser, ends, &(*node)->list));
    parser->loops--;
    bool other = mixt__tpl_at_name(parser, "else");
    MIXT_TRY(mixt__tpl_advance(parser));
    return other ? block(parser, "endfor", &(*node)->other) : MIXT_OK;
}

static mixt_status set_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_SET, node));
    MIXT_TRY(target(parser, true, &(*node)->a));
    if (mixt__tpl_at_op(parser, MIXT_TPL_OP_ASSIGN)) {
        MIXT_TRY(mixt__tpl_advance(parser));
        return mixt__tpl_parse_tuple(parser, true, &(*node)->b);
    }
    (*node)->kind = MIXT_TPL_NODE_SET_BLOCK;
    MIXT_TRY(mixt__tpl_parse_filters(parser, &(*node)->b));
    return block(parser, "endset", &(*node)->list);
}

/** What a macro or the body of a call block takes. */
static mixt_status parameters(mixt__tpl_parser *parser, mixt__tpl_node **last)
{
    MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_OPEN));
    while (!mixt__tpl_at_op(parser, MIXT_TPL_OP_CLOSE)) {
        if (parser->token.kind != MIXT_TPL_TOKEN_NAME)
            return mixt__tpl_unexpected(parser, "the name of a parameter");
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_KEYWORD, last));
        (*last)->value = parser->token.value;
        MIXT_TRY(mixt__tpl_advance(parser));
        if (mixt__tpl_at_op(parser, MIXT_TPL_OP_ASSIGN)) {
            MIXT_TRY(mixt__tpl_advance(parser));
            MIXT_TRY(mixt__tpl_parse_expression(parser, &(*last)->a));
        }
        last = &(*last)->next;
        if (!mixt__tpl_at_op(parser, MIXT_TPL_OP_CLOSE))
            MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_COMMA));
    }
    return mixt__tpl_advance(parser);
}

static mixt_status macro_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    int loops = parser->loops;
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_MACRO, node));
    if (parser->token.kind != MIXT_TPL_TOKEN_NAME)
        return mixt__tpl_unexpected(parser, "the name of a macro");
    (*node)->value = parser->token.value;
    MIXT_TRY(mixt__tpl_advance(parser));
    MIXT_TRY(parameters(parser, &(*node)->a));
    parser->loops = 0;
    MIXT_TRY(block(parser, "endmacro", &(*node)->list));
    parser->loops = loops;
    return MIXT_OK;
}

static mixt_status call_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    int loops = parser->loops;
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_CALL_BLOCK, node));
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_MACRO, &(*node)->a));
    (*node)->a->value = mixt__tpl_word("caller");
    if (mixt__tpl_at_op(parser, MIXT_TPL_OP_OPEN))
        MIXT_TRY(parameters(parser, &(*node)->a->a));
    MIXT_TRY(mixt__tpl_parse_expression(parser, &(*node)->b));
    if ((*node)->b->kind != MIXT_TPL_NODE_CALL)
        return mixt__tpl_unexpected(parser, "a call");
    parser->loops = 0;
    MIXT_TRY(block(parser, "endcall", &(*node)->a->list));
    parser->loops = loops;
    return MIXT_OK;
}

static mixt_status filter_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_FILTER_BLOCK, node));
    MIXT_TRY(mixt__tpl_parse_filter(parser, NULL, &(*node)->a));
    MIXT_TRY(mixt__tpl_parse_filters(parser, &(*node)->a));
    return block(parser, "endfilter", &(*node)->list);
}

static mixt_status generation_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    int loops = parser->loops;
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_SCOPE, node));
    parser->loops = 0;
    MIXT_TRY(block(parser, "endgeneration", &(*node)->list));
    parser->loops = loops;
    return MIXT_OK;
}

static mixt_status with_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_WITH, node));
    for (mixt__tpl_node **last = &(*node)->other; parser->token.kind != MIXT_TPL_TOKEN_BLOCK_END;
         last = &(*last)->next) {
        if ((*node)->other)
            MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_COMMA));
        if (parser->token.kind != MIXT_TPL_TOKEN_NAME)
            return mixt__tpl_unexpected(parser, "a name");
        MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_KEYWORD, last));
        (*last)->value = parser->token.value;
        MIXT_TRY(mixt__tpl_advance(parser));
        MIXT_TRY(mixt__tpl_expect_op(parser, MIXT_TPL_OP_ASSIGN));
        MIXT_TRY(mixt__tpl_parse_expression(parser, &(*last)->a));
    }
    return block(parser, "endwith", &(*node)->list);
}

static mixt_status jump(mixt__tpl_parser *parser, mixt__tpl_node_kind kind, mixt__tpl_node **node)
{
    if (!parser->loops)
        return mixt__tpl_unexpected(parser, "a statement: there is no loop around it");
    return mixt__tpl_new_node(parser, kind, node);
}

static mixt_status break_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    return jump(parser, MIXT_TPL_NODE_BREAK, node);
}

static mixt_status continue_statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    return jump(parser, MIXT_TPL_NODE_CONTINUE, node);
}

static mixt_status statement(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    static const struct {
        const char *word;
        statement_fn *read;
    } statements[] = {{"if", if_statement},
                      {"for", for_statement},
                      {"set", set_statement},
                      {"macro", macro_statement},
                      {"call", call_statement},
                      {"filter", filter_statement},
                      {"with", with_statement},
                      {"break", break_statement},
                      {"generation", generation_statement},
                      {"continue", continue_statement}};
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        if (mixt__tpl_at_name(parser, statements[i].word)) {
            MIXT_TRY(mixt__tpl_advance(parser));
            MIXT_TRY(statements[i].read(parser, node));
            return parser->token.kind == MIXT_TPL_TOKEN_BLOCK_END ? mixt__tpl_advance(parser)
                                                                  : mixt__tpl_unexpected(parser, "'%}'");
        }
    if (parser->token.kind != MIXT_TPL_TOKEN_NAME)
        return mixt__tpl_unexpected(parser, "a statement");
    return mixt__tpl_syntax(parser->lexer.name, parser->token.line, MIXT_ERROR_UNSUPPORTED,
                            "'{%% %.*s %%}' is not known here, or not at this place",
                            (int)(parser->token.value.size < 64 ? parser->token.value.size : 64),
                            parser->token.value.text);
}

static mixt_status print(mixt__tpl_parser *parser, mixt__tpl_node **node)
{
    MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_PRINT, node));
    MIXT_TRY(mixt__tpl_advance(parser));
    MIXT_TRY(mixt__tpl_parse_tuple(parser, true, &(*node)->a));
    return parser->token.kind == MIXT_TPL_TOKEN_PRINT_END ? mixt__tpl_advance(parser)
                                                          : mixt__tpl_unexpected(parser, "'}}'");
}

/** Statements up to a tag with one of the words `ends`, at which the parser then stands; NULL: up to the end. */
static mixt_status body(mixt__tpl_parser *parser, const char *const *ends, mixt__tpl_node **last)
{
    int depth = parser->depth;
    MIXT_TRY(mixt__tpl_deeper(parser));
    for (; parser->token.kind != MIXT_TPL_TOKEN_END; last = &(*last)->next) {
        if (parser->token.kind == MIXT_TPL_TOKEN_DATA) {
            MIXT_TRY(mixt__tpl_new_node(parser, MIXT_TPL_NODE_TEXT, last));
            (*last)->value = parser->token.value;
            MIXT_TRY(mixt__tpl_advance(parser));
            continue;
        }
        if (parser->token.kind == MIXT_TPL_TOKEN_PRINT_BEGIN) {
            MIXT_TRY(print(parser, last));
            continue;
        }
        MIXT_TRY(mixt__tpl_advance(parser));
        for (int i = 0; ends && ends[i]; i++)
            if (mixt__tpl_at_name(parser, ends[i])) {
                parser->depth = depth;
                return MIXT_OK;
            }
        MIXT_TRY(statement(parser, last));
    }
    parser->depth = depth;
    return ends ? mixt__tpl_unexpected(parser, ends[0]) : MIXT_OK;
}

mixt_status mixt__tpl_parse(mixt__tpl_heap *heap, const char *name, const char *text, size_t size,
                            const mixt__tpl_node **first)
{
    mixt__tpl_parser parser = {.token.kind = MIXT_TPL_TOKEN_END};
    mixt__tpl_node *made = NULL;
    MIXT_TRY(mixt__tpl_lexer_begin(&parser.lexer, heap, name, text, size));
    MIXT_TRY(mixt__tpl_lexer_next(&parser.lexer, &parser.next));
    MIXT_TRY(mixt__tpl_advance(&parser));
    MIXT_TRY(body(&parser, NULL, &made));
    *first = made;
    return MIXT_OK;
}
