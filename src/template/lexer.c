/* A template cut into texts and the tokens of its tags, one at a time.
 *
 * What stands between tags loses blanks as transformers asks Jinja for: a line break after a tag of a block or a
 * comment goes (trim_blocks), and so do blanks before one that begins its line (lstrip_blocks). A minus inside a tag's
 * edge takes all blanks on that side, a plus keeps them.
 */
#include "template/tree.h"

#include "template/text.h"

#include "base/unicode.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const mixt__tpl_op_texts[MIXT_TPL_OP_COUNT] = {
#define OP_TEXT(name, text) [MIXT_TPL_OP_##name] = text,
    MIXT_TPL_OPS(OP_TEXT)
#undef OP_TEXT
        [MIXT_TPL_OP_IN] = "in",
    [MIXT_TPL_OP_NOT_IN] = "not in",
};

mixt_status mixt__tpl_syntax(const char *name, int line, mixt_status status, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return mixt__fail(status, "%s:%d: %s", name, line, text);
}

mixt_status mixt__tpl_lexer_begin(mixt__tpl_lexer *lexer, mixt__tpl_heap *heap, const char *name, const char *text,
                                  size_t size)
{
    int64_t valid = mixt__utf8_valid((const unsigned char *)text, (int64_t)size);
    char *copy, *to;
    MIXT_TRY(mixt__tpl_take_text(heap, size + 1, &copy));
    to = copy;
    for (size_t i = 0; i < size; i++) { // all line breaks are \n
        if (text[i] != '\r')
            *to++ = text[i];
        else if (i + 1 == size || text[i + 1] != '\n')
            *to++ = '\n';
    }
    if (to > copy && to[-1] == '\n') // the last one is the file's
        to--;
    *to = 0;
    *lexer = (mixt__tpl_lexer){
        .heap = heap, .name = name, .at = copy, .end = to, .line = 1, .line_starting = true, .in = MIXT_TPL_TOKEN_END};
    if (valid < (int64_t)size)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: byte %lld of the template is not UTF-8", name, (long long)valid);
    return MIXT_OK;
}

static void pass(mixt__tpl_lexer *lexer, size_t bytes)
{
    for (const char *end = lexer->at + bytes; lexer->at < end; lexer->at++)
        lexer->line += *lexer->at == '\n';
    lexer->line_starting = bytes && lexer->at[-1] == '\n';
}

static size_t left(const mixt__tpl_lexer *lexer)
{
    return (size_t)(lexer->end - lexer->at);
}

static bool begins(const mixt__tpl_lexer *lexer, const char *word)
{
    return left(lexer) >= strlen(word) && !memcmp(lexer->at, word, strlen(word));
}

static void pass_blanks(mixt__tpl_lexer *lexer)
{
    uint32_t code;
    for (size_t step; (step = mixt__tpl_forward(lexer->at, left(lexer), &code)) && mixt__tpl_is_blank(code);)
        pass(lexer, step);
}

/** Passes a tag's end with its sign, where one stands here: "%}", "#}" or "}}". A plus has no meaning at a print's. */
static bool pass_end(mixt__tpl_lexer *lexer, const char *end)
{
    bool print = end[0] == '}', sign = begins(lexer, "-") || (!print && begins(lexer, "+"));
    if (left(lexer) < 2 + (size_t)sign || memcmp(lexer->at + sign, end, 2))
        return false;
    bool minus = *lexer->at == '-', plus = *lexer->at == '+';
    pass(lexer, 2 + (size_t)sign);
    if (minus)
        pass_blanks(lexer);
    else if (!plus && !print && begins(lexer, "\n"))
        pass(lexer, 1);
    return true;
}

/** Cuts off the end of a text before a tag, by the tag's sign. */
static void strip_before(mixt__tpl_value *text, char sign, bool print, bool line_starting)
{
    if (sign == '-') {
        mixt__tpl_strip(text, NULL, false, true);
        return;
    }
    if (sign == '+' || print)
        return;
    mixt__tpl_value cut = *text;
    uint32_t code = 0;
    for (size_t step; (step = mixt__tpl_backward(cut.text, cut.size, &code)) && code != '\n';) {
        if (!mixt__tpl_is_blank(code))
            return;
        cut.size -= step;
    }
    if (cut.size || line_starting)
        *text = cut;
}

static mixt_status skip_comment(mixt__tpl_lexer *lexer)
{
    int line = lexer->line;
    while (left(lexer)) {
        if (pass_end(lexer, "#}"))
            return MIXT_OK;
        pass(lexer, 1);
    }
    return mixt__tpl_syntax(lexer->name, line, MIXT_ERROR_FORMAT, "this comment has no end '#}'");
}

/** Whether the block here is {% word %}, behind whose sign the lexer stands; passes it then. */
static bool pass_word_block(mixt__tpl_lexer *lexer, const char *word)
{
    mixt__tpl_lexer before = *lexer;
    pass_blanks(lexer);
    if (begins(lexer, word)) {
        pass(lexer, strlen(word));
        pass_blanks(lexer);
        bool begin = *word == 'r'; // {% raw %} keeps the line break behind it
        if (!begin && pass_end(lexer, "%}"))
            return true;
        if (begin && begins(lexer, "-%}") && pass_end(lexer, "%}"))
            return true;
        if (begin && begins(lexer, "%}")) {
            pass(lexer, 2);
            return true;
        }
    }
    *lexer = before;
    return false;
}

static char pass_sign(mixt__tpl_lexer *lexer)
{
    char sign = begins(lexer, "-") || begins(lexer, "+") ? *lexer->at : 0;
    if (sign)
        pass(lexer, 1);
    return sign;
}

static mixt_status raw_text(mixt__tpl_lexer *lexer, mixt__tpl_token *token)
{
    bool line_starting = lexer->line_starting;
    const char *begin = lexer->at;
    token->line = lexer->line;
    while (left(lexer)) {
        if (begins(lexer, "{%")) {
            token->value = mixt__tpl_text(begin, (size_t)(lexer->at - begin));
            pass(lexer, 2);
            char sign = pass_sign(lexer);
            if (pass_word_block(lexer, "endraw")) {
                token->kind = MIXT_TPL_TOKEN_DATA;
                strip_before(&token->value, sign, false, line_starting);
                return MIXT_OK;
            }
            continue;
        }
        pass(lexer, 1);
    }
    return mixt__tpl_syntax(lexer->name, token->line, MIXT_ERROR_FORMAT, "'raw' has no 'endraw'");
}

/** The text up to the next tag, which becomes the waiting token or, being a comment or raw text, is dealt with. */
static mixt_status data(mixt__tpl_lexer *lexer, mixt__tpl_token *token)
{
    bool line_starting = lexer->line_starting;
    const char *begin = lexer->at;
    *token = (mixt__tpl_token){.kind = MIXT_TPL_TOKEN_DATA, .line = lexer->line};
    while (left(lexer) && !begins(lexer, "{{") && !begins(lexer, "{%") && !begins(lexer, "{#"))
        pass(lexer, 1);
    token->value = mixt__tpl_text(begin, (size_t)(lexer->at - begin));
    if (!left(lexer)) {
        if (!token->value.size)
            token->kind = MIXT_TPL_TOKEN_END;
        return MIXT_OK;
    }
    char what = lexer->at[1];
    lexer->waiting = (mixt__tpl_token){.line = lexer->line};
    pass(lexer, 2);
    char sign = pass_sign(lexer);
    strip_before(&token->value, sign, what == '{', line_starting);
    if (what == '#')
        return skip_comment(lexer);
    if (what == '%' && pass_word_block(lexer, "raw"))
        MIXT_TRY(raw_text(lexer, &lexer->waiting));
    else
        lexer->waiting.kind = lexer->in = what == '{' ? MIXT_TPL_TOKEN_PRINT_BEGIN : MIXT_TPL_TOKEN_BLOCK_BEGIN;
    lexer->has_waiting = true;
    return MIXT_OK;
}

/** Keeps count of brackets: inside of some, "}}" are two braces. */
static mixt_status bracket(mixt__tpl_lexer *lexer, char mark)
{
    static const char pairs[] = "()[]{}";
    const char *pair = strchr(pairs, mark);
    if (!pair)
        return MIXT_OK;
    if ((pair - pairs) % 2 == 0) {
        if (lexer->opened == (int)sizeof lexer->open)
            return mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_UNSUPPORTED, "more than %d open brackets",
                                    lexer->opened);
        lexer->open[lexer->opened++] = pair[1];
        return MIXT_OK;
    }
    if (!lexer->opened)
        return mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_FORMAT, "'%c' closes nothing", mark);
    char wanted = lexer->open[--lexer->opened];
    if (wanted != mark)
        return mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_FORMAT, "'%c' where '%c' is to close", mark,
                                wanted);
    return MIXT_OK;
}

static bool is_name(char c, bool first)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!first && c >= '0' && c <= '9');
}

static mixt_status quoted(mixt__tpl_lexer *lexer, mixt__tpl_token *token)
{
    char quote = *lexer->at;
    size_t size = 1;
    while (size < left(lexer) && lexer->at[size] != quote)
        size += lexer->at[size] == '\\' ? 2 : 1;
    if (size >= left(lexer))
        return mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_FORMAT, "this text has no closing %c", quote);
    token->kind = MIXT_TPL_TOKEN_CONSTANT;
    MIXT_TRY(mixt__tpl_read_text(lexer, lexer->at + 1, size - 1, &token->value));
    pass(lexer, size + 1);
    return MIXT_OK;
}

static mixt_status mark(mixt__tpl_lexer *lexer, mixt__tpl_token *token)
{
    token->kind = MIXT_TPL_TOKEN_OP;
    for (int op = 0; op < MIXT_TPL_OP_IN; op++)
        if (begins(lexer, mixt__tpl_op_texts[op])) {
            token->op = (mixt__tpl_op)op;
            MIXT_TRY(bracket(lexer, *lexer->at));
            pass(lexer, strlen(mixt__tpl_op_texts[op]));
            return MIXT_OK;
        }
    uint32_t code = 0;
    mixt__tpl_forward(lexer->at, left(lexer), &code);
    return mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_FORMAT, "unexpected character U+%04X in a tag",
                            (unsigned)code);
}

/** A token inside of a tag. */
static mixt_status inside(mixt__tpl_lexer *lexer, mixt__tpl_token *token)
{
    bool print = lexer->in == MIXT_TPL_TOKEN_PRINT_BEGIN;
    pass_blanks(lexer);
    *token = (mixt__tpl_token){.line = lexer->line};
    if (!left(lexer))
        return mixt__tpl_syntax(lexer->name, lexer->line, MIXT_ERROR_FORMAT, "the template ends inside a tag");
    if (!lexer->opened && pass_end(lexer, print ? "}}" : "%}")) {
        token->kind = print ? MIXT_TPL_TOKEN_PRINT_END : MIXT_TPL_TOKEN_BLOCK_END;
        lexer->in = MIXT_TPL_TOKEN_END;
        return MIXT_OK;
    }
    char c = *lexer->at;
    if (c == '"' || c == '\'')
        return quoted(lexer, token);
    if (c >= '0' && c <= '9') {
        const char *before = lexer->at;
        token->kind = MIXT_TPL_TOKEN_CONSTANT;
        mixt_status status = mixt__tpl_read_number(lexer, &token->value);
        lexer->line_starting = false;
        return status == MIXT_OK && lexer->at == before ? MIXT_ERROR_INTERNAL : status;
    }
    if (!is_name(c, true))
        return mark(lexer, token);
    size_t size = 1;
    while (size < left(lexer) && is_name(lexer->at[size], false))
        size++;
    token->kind = MIXT_TPL_TOKEN_NAME;
    token->value = mixt__tpl_text(lexer->at, size);
    pass(lexer, size);
    return MIXT_OK;
}

mixt_status mixt__tpl_lexer_next(mixt__tpl_lexer *lexer, mixt__tpl_token *token)
{
    do {
        if (lexer->has_waiting) {
            *token = lexer->waiting;
            lexer->has_waiting = false;
        } else {
            MIXT_TRY(lexer->in == MIXT_TPL_TOKEN_END ? data(lexer, token) : inside(lexer, token));
        }
    } while (token->kind == MIXT_TPL_TOKEN_DATA && !token->value.size);
    return MIXT_OK;
}
