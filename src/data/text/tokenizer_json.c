/* The tokenizer of a tokenizer.json: Llama 3's and GPT-2's over bytes, Llama 2's over characters.
 *
 * Over bytes, pieces are cut by a rule and merged one by one. Llama 3's rule, with n digits of a number at most:
 *     (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,n}|
 * ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ Over characters, blanks become U+2581 and a text is one piece;
 * where no token goes on past a word's end, words are merged one by one, which is the same. A text's first blank takes
 * part, so a text is never cut for threads. No text becomes a special token.
 */
#include "data/text/tokenizer_json.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/normal.h"
#include "data/text/gpt2_files.h"
#include "base/unicode.h"
#include "data/text/words_learn.h"

#include <string.h>

/* ---- Llama 3's rule ---- */

static mixt__code_class class_at(const unsigned char *text, int64_t size, int64_t at, int *bytes)
{
    mixt__code_class kind = mixt__code_class_of(mixt__utf8_decode(text + at, size - at, bytes));
    return kind > MIXT_CODE_SPACE ? MIXT_CODE_OTHER : kind;
}

static bool is_line_end(unsigned char c)
{
    return c == '\r' || c == '\n';
}

/** 's, 't, 're, 've, 'm, 'll, 'd in either case: the bytes, 0 where there is none. U+017F folds to s as well. */
static int64_t contraction(const unsigned char *text, int64_t size)
{
    static const char *const pairs[] = {"re", "ve", "ll"};
    int64_t left = size - 1;
    if (size < 2 || text[0] != '\'')
        return 0;
    if (left >= 2 && text[1] == 0xc5 && text[2] == 0xbf)
        return 3;
    int a = text[1] | 0x20, b = left >= 2 ? text[2] | 0x20 : 0;
    if (text[1] < 128 && strchr("stmd", a))
        return 2;
    for (int i = 0; i < 3 && left >= 2; i++)
        if (text[1] < 128 && text[2] < 128 && a == pairs[i][0] && b == pairs[i][1])
            return 3;
    return 0;
}

static int64_t run_of(const unsigned char *text, int64_t size, int64_t at, mixt__code_class kind, int most)
{
    int bytes;
    for (int n = 0; at < size && (most == 0 || n < most) && class_at(text, size, at, &bytes) == kind; n++)
        at += bytes;
    return at;
}

/** Spaces: up to their last line end, or all but the last in front of something, or all. */
static int64_t spaces_end(const unsigned char *text, int64_t size, int64_t begin)
{
    int64_t at = begin, last = begin, lines = begin;
    int bytes;
    while (at < size && class_at(text, size, at, &bytes) == MIXT_CODE_SPACE) {
        last = at;
        at += bytes;
        if (is_line_end(text[last]))
            lines = at;
    }
    if (lines > begin)
        return lines;
    return at < size && last > begin ? last : at;
}

static int64_t llama3_end(const unsigned char *text, int64_t size, int64_t at, int digits)
{
    int64_t short_form = contraction(text + at, size - at);
    int bytes, next;
    if (short_form)
        return at + short_form;
    mixt__code_class kind = class_at(text, size, at, &bytes);
    if (kind == MIXT_CODE_LETTER)
        return run_of(text, size, at, MIXT_CODE_LETTER, 0);
    if (kind == MIXT_CODE_NUMBER)
        return run_of(text, size, at, MIXT_CODE_NUMBER, digits);
    int64_t after = at + bytes;
    if (!is_line_end(text[at]) && after < size && class_at(text, size, after, &next) == MIXT_CODE_LETTER)
        return run_of(text, size, after, MIXT_CODE_LETTER, 0);
    int64_t other = at + (text[at] == ' ');
    if (other < size && class_at(text, size, other, &next) == MIXT_CODE_OTHER) {
        int64_t end = run_of(text, size, other, MIXT_CODE_OTHER, 0);
        while (end < size && is_line_end(text[end]))
            end++;
        return end;
    }
    return spaces_end(text, size, at);
}

/** GPT-2's rule between digits, each of which is a piece of its own. */
static int64_t digits_end(const unsigned char *text, int64_t size, int64_t begin)
{
    int bytes;
    int64_t at = begin;
    if (class_at(text, size, at, &bytes) == MIXT_CODE_NUMBER)
        return at + bytes;
    while (at < size && class_at(text, size, at, &bytes) != MIXT_CODE_NUMBER)
        at += bytes; // the rule sees no further
    return mixt__gpt2_piece_end(text, at, begin);
}

/* ---- over bytes ---- */

/** Between something and the blank behind it: no piece of either rule reaches across. */
static int64_t boundary(const unsigned char *text, int64_t low, int64_t high)
{
    for (int64_t at = high; at > low; at--) {
        int64_t before = at - 1;
        int bytes;
        while (before > low && (text[before] & 0xc0) == 0x80)
            before--;
        if (text[at] == ' ' && class_at(text, at, before, &bytes) != MIXT_CODE_SPACE)
            return at;
    }
    return low;
}

/** Where there are bytes that are no UTF-8 the rest is one piece: such a text is not cut. */
static int64_t divisible(const unsigned char *text, int64_t size)
{
    return mixt__utf8_valid(text, size) == size ? size : 0;
}

static mixt_status encode_piece(const mixt_tokenizer *t, void *worker, const unsigned char *piece, int64_t size,
                                mixt__tokens *tokens)
{
    const mixt__json_tables *j = t->state;
    int64_t id = j->whole ? mixt__vocabulary_find(&t->vocabulary, piece, size) : -1;
    if (id < 0 || id == j->start || id == j->end)
        return mixt__bpe_encode(&j->bpe, worker, piece, size, tokens);
    MIXT_TRY(mixt__tokens_reserve(tokens, 1));
    tokens->ids[tokens->count++] = (uint32_t)id;
    return MIXT_OK;
}

static mixt_status encode_composed(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                                   mixt__tokens *tokens)
{
    const mixt__json_tables *j = t->state;
    int64_t valid = mixt__utf8_valid(text, size);
    for (int64_t at = 0; at < valid;) {
        int64_t end = j->rule == MIXT_JSON_LLAMA3   ? llama3_end(text, valid, at, j->digits)
                      : j->rule == MIXT_JSON_DIGITS ? digits_end(text, valid, at)
                                                    : mixt__gpt2_piece_end(text, valid, at);
        MIXT_TRY(encode_piece(t, worker, text + at, end - at, tokens));
        at = end;
    }
    return mixt__bpe_encode(&j->bpe, worker, text + valid, size - valid, tokens); // what is no UTF-8 is one piece
}

/** As a normalizer writes it. A text is cut for threads at blanks, which compose with nothing. */
static mixt_status compose(const mixt_tokenizer *t, const unsigned char *text, int64_t size, bool first,
                           unsigned char **made, int64_t *bytes)
{
    const mixt__json_tables *j = t->state;
    (void)first;
    if (j->compose && mixt__utf8_valid(text, size) == size)
        return mixt__normal_compose(text, size, made, bytes);
    *made = mixt__alloc_uninit((size_t)size);
    *bytes = size;
    if (!*made)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to tokenise in");
    memcpy(*made, text, (size_t)size);
    return MIXT_OK;
}

static mixt_status encode_bytes(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                                mixt__tokens *tokens)
{
    const mixt__json_tables *j = t->state;
    int64_t valid = mixt__utf8_valid(text, size), bytes;
    unsigned char *made;
    if (!j->compose || valid < size || !mixt__normal_may_change(text, size))
        return encode_composed(t, worker, text, size, tokens);
    MIXT_TRY(mixt__normal_compose(text, size, &made, &bytes));
    mixt_status status = encode_composed(t, worker, made, bytes, tokens);
    mixt__free(made);
    return status;
}

static mixt_status encode_bytes_part(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                                     bool first, mixt__tokens *tokens)
{
    (void)first;
    return encode_bytes(t, worker, text, size, tokens);
}

static mixt_status decode_bytes(const mixt_tokenizer *t, uint32_t id, bool first, FILE *stream)
{
    (void)first;
    mixt__span token = mixt__vocabulary_at(&t->vocabulary, id);
    fwrite(token.bytes, 1, (size_t)token.size, stream);
    return MIXT_OK;
}

/* ---- over characters ---- */

/** Appends the symbols that one character begins as: itself, its bytes, or the unknown token; a blank is U+2581. */
static mixt_status add_symbol(const mixt_tokenizer *t, const unsigned char *bytes, int size, mixt__tokens *symbols)
{
    const mixt__json_tables *j = t->state;
    bool blank = size == 1 && bytes[0] == ' ', fallback = true;
    int64_t id = blank ? mixt__vocabulary_find(&t->vocabulary, MIXT_SENTENCE_BLANK, 3)
                       : mixt__vocabulary_find(&t->vocabulary, bytes, size);
    const unsigned char *raw = blank ? (const unsigned char *)MIXT_SENTENCE_BLANK : bytes;
    int count = blank ? 3 : size;
    MIXT_TRY(mixt__tokens_reserve(symbols, MIXT_UTF8_MAX));
    if (id >= 0) {
        symbols->ids[symbols->count++] = (uint32_t)id;
        return MIXT_OK;
    }
    for (int i = 0; i < count; i++)
        fallback = fallback && j->bytes[raw[i]] >= 0;
    for (int i = 0; fallback && i < count; i++)
        symbols->ids[symbols->count++] = (uint32_t)j->bytes[raw[i]];
    if (!fallback && j->unknown >= 0)
        symbols->ids[symbols->count++] = (uint32_t)j->unknown;
    return MIXT_OK;
}

/** The end of a word with the blanks in front of it; of everything, where tokens may go on past words. */
static int64_t word_end(const unsigned char *text, int64_t size, int64_t at, bool words)
{
    if (!words)
        return size;
    while (at < size && text[at] == ' ')
        at++;
    while (at < size && text[at] != ' ')
        at++;
    return at;
}

static mixt_status encode_words(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                                bool prefix, mixt__tokens *tokens)
{
    const mixt__json_tables *j = t->state;
    mixt__tokens symbols = {0};
    mixt_status status = MIXT_OK;
    for (int64_t at = 0; status == MIXT_OK && at < size;) {
        int64_t end = word_end(text, size, at, j->words);
        symbols.count = 0;
        if (at == 0 && prefix)
            status = add_symbol(t, (const unsigned char *)" ", 1, &symbols);
        while (status == MIXT_OK && at < end) {
            int bytes;
            mixt__utf8_decode(text + at, end - at, &bytes);
            status = add_symbol(t, text + at, bytes, &symbols);
            at += bytes;
        }
        if (status == MIXT_OK)
            status = mixt__bpe_merge_symbols(&j->bpe, worker, symbols.ids, symbols.count, tokens);
    }
    mixt__tokens_free(&symbols);
    return status;
}

/** Whether a blank goes in front of a part of a text; `first`: of its beginning. */
static bool prefixed(const mixt__json_tables *j, const unsigned char *text, int64_t size, bool first)
{
    bool blank = size > 0 && (text[0] == ' ' || (size >= 3 && !memcmp(text, MIXT_SENTENCE_BLANK, 3)));
    return j->prefix && (first || !j->prefix_first) && !(j->prefix_lone && blank);
}

static mixt_status encode_sentence(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                                   mixt__tokens *tokens)
{
    return encode_words(t, worker, text, size, prefixed(t->state, text, size, true), tokens);
}

static mixt_status encode_sentence_part(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                                        bool first, mixt__tokens *tokens)
{
    return encode_words(t, worker, text, size, prefixed(t->state, text, size, first), tokens);
}

static mixt_status encode_replaced(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                                   mixt__tokens *tokens)
{
    return encode_words(t, worker, text, size, false, tokens);
}

/** Blanks as U+2581, one in front where the vocabulary wants it. */
static mixt_status replace_blanks(const mixt_tokenizer *t, const unsigned char *text, int64_t size, bool first,
                                  unsigned char **made, int64_t *bytes)
{
    unsigned char *to = *made = mixt__alloc_uninit((size_t)size * 3 + 4);
    if (!to)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to tokenise in");
    if (prefixed(t->state, text, size, first))
        to = (unsigned char *)memcpy(to, MIXT_SENTENCE_BLANK, 3) + 3;
    for (int64_t i = 0; i < size; i++) {
        if (text[i] == ' ')
            to = (unsigned char *)memcpy(to, MIXT_SENTENCE_BLANK, 3) + 3;
        else
            *to++ = text[i];
    }
    *bytes = to - *made;
    return MIXT_OK;
}

/** The byte that a token like <0x0A> stands for; -1: none. */
static int byte_of(mixt__span token)
{
    unsigned byte;
    char text[8] = "", end;
    if (token.size != 6 || memcmp(token.bytes, "<0x", 3) || token.bytes[5] != '>')
        return -1;
    memcpy(text, token.bytes, 6);
    return sscanf(text, "<0x%2X%c", &byte, &end) == 2 ? (int)byte : -1;
}

static mixt_status decode_sentence(const mixt_tokenizer *t, uint32_t id, bool first, FILE *stream)
{
    const mixt__json_tables *j = t->state;
    mixt__span token = mixt__vocabulary_at(&t->vocabulary, id);
    int byte = byte_of(token);
    if (byte >= 0) {
        fputc(byte, stream);
        return MIXT_OK;
    }
    for (int64_t i = 0; i < token.size;) {
        bool blank = i + 3 <= token.size && !memcmp(token.bytes + i, MIXT_SENTENCE_BLANK, 3);
        if (!blank)
            fputc(token.bytes[i], stream);
        else if (!(first && i == 0 && j->prefix)) // that one was not in the text
            fputc(' ', stream);
        i += blank ? 3 : 1;
    }
    return MIXT_OK;
}

static int64_t nowhere(const unsigned char *text, int64_t low, int64_t high)
{
    (void)text;
    (void)high;
    return low;
}

/** 0: a text is one chunk. */
static int64_t never(const unsigned char *text, int64_t size)
{
    (void)text;
    (void)size;
    return 0;
}

/* ---- records ---- */

static mixt_status worker_new(const mixt_tokenizer *t, void **worker)
{
    (void)t;
    return mixt__bpe_worker_new((mixt__bpe_worker **)worker);
}

static void worker_free(void *worker)
{
    mixt__bpe_worker_free(worker);
}

static void close_json(mixt_tokenizer *t)
{
    if (t->state)
        mixt__bpe_free(&((mixt__json_tables *)t->state)->bpe);
    mixt__free(t->state);
}

static const mixt__tokenizer_kind sentence = {
    .name = "json",
    .files = "tokenizer.json",
    .worker_new = worker_new,
    .worker_free = worker_free,
    .encode = encode_sentence,
    .part = encode_sentence_part,
    .normalise = replace_blanks,
    .encode_normal = encode_replaced,
    .boundary = nowhere,
    .divisible = never,
    .decode = decode_sentence,
    .close = close_json,
};

static mixt_status open_json(mixt_tokenizer *t, const char *folder)
{
    bool fold = false;
    mixt_status pieces = mixt__tokenizer_json_pieces(folder, &t->vocabulary, &fold);
    if (pieces != MIXT_END) { // another kind, with another close
        t->kind = fold ? &mixt__tokenizer_wordpiece : &mixt__tokenizer_wordpiece_cased;
        return pieces == MIXT_OK ? mixt__wordpiece_finish(t, folder) : pieces;
    }
    mixt__json_tables *j = t->state = mixt__alloc(sizeof *j);
    if (!j)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its vocabulary", folder);
    j->start = j->end = j->unknown = -1;
    MIXT_TRY(mixt__tokenizer_json_read(folder, &t->vocabulary, j, &t->added, &t->fingerprint));
    t->special.start = j->start;
    t->special.end = j->end;
    t->special.unknown = j->unknown;
    if (j->rule == MIXT_JSON_SENTENCE)
        t->kind = &sentence;
    return MIXT_OK;
}

const mixt__tokenizer_kind mixt__tokenizer_json = {
    .name = "json",
    .files = "tokenizer.json",
    .open = open_json,
    .worker_new = worker_new,
    .worker_free = worker_free,
    .encode = encode_bytes,
    .part = encode_bytes_part,
    .normalise = compose,
    .encode_normal = encode_composed,
    .boundary = boundary,
    .divisible = divisible,
    .decode = decode_bytes,
    .close = close_json,
};
