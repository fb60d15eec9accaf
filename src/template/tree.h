/* The tree that a template is read into, and the reader's parts. */
#ifndef MIXT_TEMPLATE_TREE_H
#define MIXT_TEMPLATE_TREE_H

#include "template/value.h"

/** Operators and marks: X(name, text); longer ones first. */
#define MIXT_TPL_OPS(X)                                                                                                \
    X(FLOOR_DIVIDE, "//")                                                                                              \
    X(POWER, "**")                                                                                                     \
    X(EQUAL, "==")                                                                                                     \
    X(UNEQUAL, "!=")                                                                                                   \
    X(AT_LEAST, ">=")                                                                                                  \
    X(AT_MOST, "<=")                                                                                                   \
    X(ADD, "+")                                                                                                        \
    X(SUBTRACT, "-")                                                                                                   \
    X(DIVIDE, "/")                                                                                                     \
    X(MULTIPLY, "*")                                                                                                   \
    X(REMAINDER, "%")                                                                                                  \
    X(TILDE, "~")                                                                                                      \
    X(OPEN_BRACKET, "[")                                                                                               \
    X(CLOSE_BRACKET, "]")                                                                                              \
    X(OPEN, "(")                                                                                                       \
    X(CLOSE, ")")                                                                                                      \
    X(OPEN_BRACE, "{")                                                                                                 \
    X(CLOSE_BRACE, "}")                                                                                                \
    X(MORE, ">")                                                                                                       \
    X(LESS, "<")                                                                                                       \
    X(ASSIGN, "=")                                                                                                     \
    X(DOT, ".")                                                                                                        \
    X(COLON, ":")                                                                                                      \
    X(BAR, "|")                                                                                                        \
    X(COMMA, ",")                                                                                                      \
    X(SEMICOLON, ";")

typedef enum mixt__tpl_op {
#define MIXT_TPL_OP_ENUM(name, text) MIXT_TPL_OP_##name,
    MIXT_TPL_OPS(MIXT_TPL_OP_ENUM)
#undef MIXT_TPL_OP_ENUM
        MIXT_TPL_OP_IN, // these are words
    MIXT_TPL_OP_NOT_IN,
    MIXT_TPL_OP_COUNT
} mixt__tpl_op;

extern const char *const mixt__tpl_op_texts[MIXT_TPL_OP_COUNT];

/** Which fields of a node have a meaning, by kind. */
typedef enum mixt__tpl_node_kind {
    MIXT_TPL_NODE_CONSTANT,  // value
    MIXT_TPL_NODE_NAME,      // value: the name
    MIXT_TPL_NODE_LIST_OF,   // list
    MIXT_TPL_NODE_TUPLE_OF,  // list
    MIXT_TPL_NODE_DICT_OF,   // list of PAIR
    MIXT_TPL_NODE_PAIR,      // a: b
    MIXT_TPL_NODE_ATTRIBUTE, // a . value
    MIXT_TPL_NODE_ITEM,      // a [ b ]
    MIXT_TPL_NODE_SLICE,     // a [ list of three ]
    MIXT_TPL_NODE_NOT,       // a
    MIXT_TPL_NODE_NEGATE,    // a
    MIXT_TPL_NODE_PLUS,      // a
    MIXT_TPL_NODE_BINARY,    // a op b
    MIXT_TPL_NODE_COMPARE,   // a, list of COMPARED
    MIXT_TPL_NODE_COMPARED,  // op a
    MIXT_TPL_NODE_CONCAT,    // list
    MIXT_TPL_NODE_AND,       // a, b
    MIXT_TPL_NODE_OR,        // a, b
    MIXT_TPL_NODE_CHOICE,    // a if b else c (NULL: none)
    MIXT_TPL_NODE_CALL,      // a ( list, of which KEYWORD last )
    MIXT_TPL_NODE_KEYWORD,   // value = a
    MIXT_TPL_NODE_FILTER,    // a (NULL: a block) | function ( list )
    MIXT_TPL_NODE_TEST,      // a is function ( list )
    MIXT_TPL_NODE_EXPRESSIONS,
    MIXT_TPL_NODE_TEXT = MIXT_TPL_NODE_EXPRESSIONS, // value
    MIXT_TPL_NODE_PRINT,                            // a
    MIXT_TPL_NODE_IF,                               // a, list, other
    MIXT_TPL_NODE_FOR,                              // target a in b if c, list, other
    MIXT_TPL_NODE_SET,                              // target a = b
    MIXT_TPL_NODE_SET_BLOCK,                        // target a, filter b or NULL, list
    MIXT_TPL_NODE_MACRO,                            // value: name; a: first of KEYWORD (a NULL: no default); list
    MIXT_TPL_NODE_CALL_BLOCK,                       // a: MACRO that is the caller; b: CALL
    MIXT_TPL_NODE_FILTER_BLOCK,                     // a: FILTER, list
    MIXT_TPL_NODE_SCOPE,                            // list
    MIXT_TPL_NODE_WITH,                             // other: list of SET, evaluated outside; list
    MIXT_TPL_NODE_BREAK,
    MIXT_TPL_NODE_CONTINUE,
    MIXT_TPL_NODE_COUNT
} mixt__tpl_node_kind;

typedef struct mixt__tpl_node {
    mixt__tpl_node_kind kind;
    mixt__tpl_op op;
    int line;
    mixt__tpl_value value; // of a FILTER or TEST the FUNCTION
    struct mixt__tpl_node *a, *b, *c;
    struct mixt__tpl_node *list, *other; // the first of some
    struct mixt__tpl_node *next;         // of those in the same list
} mixt__tpl_node;

// lexer.c

typedef enum mixt__tpl_token_kind {
    MIXT_TPL_TOKEN_END,
    MIXT_TPL_TOKEN_DATA,
    MIXT_TPL_TOKEN_PRINT_BEGIN,
    MIXT_TPL_TOKEN_PRINT_END,
    MIXT_TPL_TOKEN_BLOCK_BEGIN,
    MIXT_TPL_TOKEN_BLOCK_END,
    MIXT_TPL_TOKEN_NAME,
    MIXT_TPL_TOKEN_CONSTANT, // a text or a number
    MIXT_TPL_TOKEN_OP,
} mixt__tpl_token_kind;

typedef struct mixt__tpl_token {
    mixt__tpl_token_kind kind;
    mixt__tpl_op op;
    int line;
    mixt__tpl_value value; // of DATA, NAME, CONSTANT
} mixt__tpl_token;

typedef struct mixt__tpl_lexer {
    mixt__tpl_heap *heap;
    const char *name; // of the file
    const char *at, *end;
    int line;
    mixt__tpl_token_kind in;      // END: in text; else how the tag around it began
    bool line_starting, brackets; // what came last ended a line; some are open
    char open[64];                // brackets, the innermost last
    int opened;
    mixt__tpl_token waiting; // the tag after a text
    bool has_waiting;
} mixt__tpl_lexer;

mixt_status mixt__tpl_lexer_begin(mixt__tpl_lexer *lexer, mixt__tpl_heap *heap, const char *name, const char *text,
                                  size_t size);
mixt_status mixt__tpl_lexer_next(mixt__tpl_lexer *lexer, mixt__tpl_token *token);
mixt_status mixt__tpl_syntax(const char *name, int line, mixt_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// literal.c

/** A literal without its quotes, escapes undone. */
mixt_status mixt__tpl_read_text(mixt__tpl_lexer *lexer, const char *text, size_t size, mixt__tpl_value *value);
/** Reads a number at the lexer's place. */
mixt_status mixt__tpl_read_number(mixt__tpl_lexer *lexer, mixt__tpl_value *value);

// parse.c, parse_expression.c

typedef struct mixt__tpl_parser {
    mixt__tpl_lexer lexer;
    mixt__tpl_token token, next; // the one to be taken, and that after it
    int depth;                   // of what is being read
    int loops;                   // around it
} mixt__tpl_parser;

/** Reads a whole template. */
mixt_status mixt__tpl_parse(mixt__tpl_heap *heap, const char *name, const char *text, size_t size,
                            const mixt__tpl_node **body);
mixt_status mixt__tpl_advance(mixt__tpl_parser *parser);
bool mixt__tpl_at_op(const mixt__tpl_parser *parser, mixt__tpl_op op);
bool mixt__tpl_at_name(const mixt__tpl_parser *parser, const char *name);
mixt_status mixt__tpl_expect_op(mixt__tpl_parser *parser, mixt__tpl_op op);
mixt_status mixt__tpl_new_node(mixt__tpl_parser *parser, mixt__tpl_node_kind kind, mixt__tpl_node **node);
mixt_status mixt__tpl_unexpected(mixt__tpl_parser *parser, const char *wanted);
mixt_status mixt__tpl_deeper(mixt__tpl_parser *parser);

mixt_status mixt__tpl_parse_expression(mixt__tpl_parser *parser, mixt__tpl_node **node);
/** Expressions with commas between them are a tuple; `choice`: a condition may follow (x if y else z). */
mixt_status mixt__tpl_parse_tuple(mixt__tpl_parser *parser, bool choice, mixt__tpl_node **node);
/** A filter whose bar, if it has one, is taken; `object` stands before it. */
mixt_status mixt__tpl_parse_filter(mixt__tpl_parser *parser, mixt__tpl_node *object, mixt__tpl_node **node);
/** Filters, tests and calls, as many as follow. */
mixt_status mixt__tpl_parse_filters(mixt__tpl_parser *parser, mixt__tpl_node **node);
mixt_status mixt__tpl_parse_postfix(mixt__tpl_parser *parser, mixt__tpl_node **node);
mixt_status mixt__tpl_parse_primary(mixt__tpl_parser *parser, mixt__tpl_node **node);
mixt_status mixt__tpl_parse_unary(mixt__tpl_parser *parser, bool filters, mixt__tpl_node **node);
mixt_status mixt__tpl_parse_arguments(mixt__tpl_parser *parser, mixt__tpl_node **list);

#endif
