/* Finding added tokens: the leftmost, and of those the longest. */
#include "data/text/added_tokens.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/unicode.h"

#include <string.h>

mixt_status mixt__added_put(mixt__added_tokens *added, const mixt__added_token *token)
{
    void *list = added->tokens;
    unsigned char *text = mixt__alloc((size_t)token->size + 1);
    if (!text || !mixt__grow(&list, &added->room, added->count, sizeof *added->tokens)) {
        mixt__free(text);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for added tokens");
    }
    memcpy(text, token->text, (size_t)token->size);
    added->tokens = list;
    int64_t at = added->count++;
    for (; at > 0 && added->tokens[at - 1].size < token->size; at--)
        added->tokens[at] = added->tokens[at - 1];
    added->tokens[at] = *token;
    added->tokens[at].text = text;
    added->begins[text[0]] = true;
    added->any_normal |= token->normal;
    return MIXT_OK;
}

void mixt__added_free(mixt__added_tokens *added)
{
    for (int64_t i = 0; i < added->count; i++)
        mixt__free(added->tokens[i].text);
    mixt__free(added->tokens);
    *added = (mixt__added_tokens){0};
}

/** Whether the character that ends, or begins, here belongs to a word. */
static bool is_word(const unsigned char *text, int64_t size, bool ends)
{
    int64_t at = 0;
    int bytes;
    if (size <= 0)
        return false;
    if (ends)
        for (at = size - 1; at > 0 && (text[at] & 0xc0) == 0x80; at--)
            ;
    uint32_t code = mixt__utf8_decode(text + at, size - at, &bytes);
    mixt__code_class kind = mixt__code_class_of(code);
    return kind == MIXT_CODE_LETTER || kind == MIXT_CODE_NUMBER || kind == MIXT_CODE_MARK || code == '_';
}

static bool is_space(const unsigned char *text, int64_t size, int *bytes)
{
    return mixt__code_class_of(mixt__utf8_decode(text, size, bytes)) == MIXT_CODE_SPACE;
}

/** The token that begins at a place of a text; NULL: none does. */
static const mixt__added_token *token_at(const mixt__added_tokens *added, const unsigned char *text, int64_t size,
                                         int64_t at, bool normal)
{
    if (!added->begins[text[at]])
        return NULL;
    for (int64_t i = 0; i < added->count; i++) {
        const mixt__added_token *token = &added->tokens[i];
        if (token->normal == normal && token->size <= size - at && !memcmp(token->text, text + at, (size_t)token->size))
            return token;
    }
    return NULL;
}

static mixt__stretch token_stretch(const mixt__added_token *token, const unsigned char *text, int64_t size, int64_t low,
                                   int64_t at)
{
    mixt__stretch found = {at, at + token->size, token->id};
    int bytes;
    while (token->left && found.begin > low) {
        int64_t before = found.begin - 1;
        while (before > low && (text[before] & 0xc0) == 0x80)
            before--;
        if (!is_space(text + before, found.begin - before, &bytes))
            break;
        found.begin = before;
    }
    while (token->right && found.end < size && is_space(text + found.end, size - found.end, &bytes))
        found.end += bytes;
    return found;
}

mixt__stretch mixt__added_next(const mixt__added_tokens *added, const unsigned char *text, int64_t size, int64_t begin,
                               bool normal)
{
    for (int64_t at = begin; at < size; at++) {
        const mixt__added_token *token = token_at(added, text, size, at, normal);
        if (!token)
            continue;
        int64_t end = at + token->size;
        if (token->word && (is_word(text, at, true) || is_word(text + end, size - end, false))) {
            at = end - 1;
            continue;
        }
        mixt__stretch found = token_stretch(token, text, size, begin, at);
        return found.begin > begin ? (mixt__stretch){begin, found.begin, -1} : found;
    }
    return (mixt__stretch){begin, size, -1};
}
