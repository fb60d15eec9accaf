/* GPT-2's tokenizer: text is cut into pieces by the rule
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * and each piece is byte-pair encoded on its own. No text becomes <|endoftext|>.
 *
 * Text that is not UTF-8 goes the way of tiktoken's encode_bytes: from the last piece before the first bad byte, the
 * rest is one piece, since the rule is about characters. Decoding gives back every byte.
 */
#include "data/text/bpe.h"
#include "data/text/gpt2_files.h"
#include "base/unicode.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

/* ---- pieces ---- */

static bool is_space(uint32_t code)
{
    return mixt__code_class_of(code) == MIXT_CODE_SPACE;
}

/** Letters and numbers are classes of their own, all that is no space a third. */
static mixt__code_class class_at(const unsigned char *text, int64_t size, int64_t at, int *bytes)
{
    *bytes = 1;
    mixt__code_class kind = text[at] < 128 ? (mixt__code_class)mixt__code_ascii[text[at]]
                                           : mixt__code_class_of(mixt__utf8_decode(text + at, size - at, bytes));
    return kind > MIXT_CODE_SPACE ? MIXT_CODE_OTHER : kind;
}

static int64_t run_end(const unsigned char *text, int64_t size, int64_t at, mixt__code_class kind)
{
    int bytes;
    while (at < size && class_at(text, size, at, &bytes) == kind)
        at += bytes;
    return at;
}

/** The end of the contraction at an apostrophe; `at` when there is none. */
static int64_t contraction_end(const unsigned char *text, int64_t size, int64_t at)
{
    int64_t left = size - at;
    if (left >= 2 && strchr("stmd", text[at + 1]) && text[at + 1])
        return at + 2;
    if (left >= 3 &&
        (!memcmp(text + at + 1, "re", 2) || !memcmp(text + at + 1, "ve", 2) || !memcmp(text + at + 1, "ll", 2)))
        return at + 3;
    return at;
}

/** A run of spaces leaves its last one to the word behind it. */
static int64_t spaces_end(const unsigned char *text, int64_t size, int64_t begin)
{
    int64_t at = begin, last = begin;
    int bytes;
    while (at < size && class_at(text, size, at, &bytes) == MIXT_CODE_SPACE) {
        last = at;
        at += bytes;
    }
    return at < size && last > begin ? last : at;
}

int64_t mixt__gpt2_piece_end(const unsigned char *text, int64_t size, int64_t at)
{
    if (text[at] == '\'') {
        int64_t end = contraction_end(text, size, at);
        if (end > at)
            return end;
    }
    int64_t word = at + (text[at] == ' ' && at + 1 < size);
    int bytes;
    mixt__code_class kind = class_at(text, size, word, &bytes);
    if (kind == MIXT_CODE_SPACE)
        return spaces_end(text, size, at);
    return run_end(text, size, word + bytes, kind);
}

/** Between a word and the space after it, whatever is around: no piece reaches across, none looks beyond. */
static int64_t boundary(const unsigned char *text, int64_t low, int64_t high)
{
    for (int64_t at = high; at > low; at--) {
        if (text[at] != ' ' && text[at] != '\n')
            continue;
        int64_t before = at - 1;
        while (before > low && (text[before] & 0xc0) == 0x80 && at - before < MIXT_UTF8_MAX)
            before--;
        int bytes;
        uint32_t code = mixt__utf8_decode(text + before, at - before, &bytes);
        if (code != MIXT_CODE_INVALID && before + bytes == at && !is_space(code))
            return at;
    }
    return low;
}

static int64_t divisible(const unsigned char *text, int64_t size)
{
    int64_t valid = mixt__utf8_valid(text, size);
    return valid == size ? size : boundary(text, 0, valid);
}

/* ---- encode ---- */

static bool is_blank(const mixt_tokenizer *t, uint32_t id)
{
    mixt__span token = mixt__vocabulary_at(&t->vocabulary, id);
    for (int64_t i = 0; i < token.size; i++)
        if (token.bytes[i] != ' ' && token.bytes[i] != '\n' && token.bytes[i] != '\t')
            return false;
    return true;
}

/** Takes the tokens of the last piece back, and blank ones before a blank piece; returns the bytes they stand for. */
static int64_t take_back(const mixt_tokenizer *t, mixt__tokens *tokens, int64_t first, int64_t last_piece)
{
    int64_t from = last_piece, bytes = 0;
    if (from < tokens->count && is_blank(t, tokens->ids[from]))
        while (from > first && is_blank(t, tokens->ids[from - 1]))
            from--;
    for (int64_t i = from; i < tokens->count; i++)
        bytes += mixt__vocabulary_at(&t->vocabulary, tokens->ids[i]).size;
    tokens->count = from;
    return bytes;
}

static mixt_status encode(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                          mixt__tokens *tokens)
{
    const mixt__bpe *bpe = t->state;
    int64_t valid = mixt__utf8_valid(text, size), first = tokens->count, last_piece = first;
    for (int64_t at = 0; at < valid;) {
        int64_t end = mixt__gpt2_piece_end(text, valid, at);
        last_piece = tokens->count;
        MIXT_TRY(mixt__bpe_encode(bpe, worker, text + at, end - at, tokens));
        at = end;
    }
    if (valid == size)
        return MIXT_OK;
    int64_t begin = valid - take_back(t, tokens, first, last_piece);
    return mixt__bpe_encode(bpe, worker, text + begin, size - begin, tokens);
}

static mixt_status decode(const mixt_tokenizer *t, uint32_t id, bool first, FILE *stream)
{
    (void)first;
    mixt__span token = mixt__vocabulary_at(&t->vocabulary, id);
    fwrite(token.bytes, 1, (size_t)token.size, stream);
    return MIXT_OK;
}

/* ---- record ---- */

static mixt_status open_gpt2(mixt_tokenizer *t, const char *folder)
{
    mixt__bpe *bpe = t->state = mixt__alloc(sizeof *bpe);
    if (!bpe)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its vocabulary", folder);
    MIXT_TRY(mixt__gpt2_read(folder, &t->vocabulary, bpe, &t->fingerprint));
    t->special.end = mixt__vocabulary_find(&t->vocabulary, "<|endoftext|>", 13);
    return MIXT_OK;
}

static void close_gpt2(mixt_tokenizer *t)
{
    if (t->state)
        mixt__bpe_free(t->state);
    mixt__free(t->state);
}

static mixt_status worker_new(const mixt_tokenizer *t, void **worker)
{
    (void)t;
    return mixt__bpe_worker_new((mixt__bpe_worker **)worker);
}

static void worker_free(void *worker)
{
    mixt__bpe_worker_free(worker);
}

const mixt__tokenizer_kind mixt__tokenizer_gpt2 = {
    .name = "gpt2",
    .files = "encoder.json and vocab.bpe (or vocab.json and merges.txt)",
    .open = open_gpt2,
    .worker_new = worker_new,
    .worker_free = worker_free,
    .encode = encode,
    .boundary = boundary,
    .divisible = divisible,
    .decode = decode,
    .close = close_gpt2,
};
