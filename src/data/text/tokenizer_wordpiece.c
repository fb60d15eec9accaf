/* BERT's tokenizer: words and single punctuation marks, each cut into the longest pieces that vocab.txt has.
 *
 * Controls are dropped, CJK ideographs stand alone, and (wordpiece, not wordpiece-cased) text is folded: lower case
 * without accents. A word of more than 100 characters, or one that cannot be put together, becomes [UNK]. The names of
 * the special tokens in a text are those tokens. Bytes that are not UTF-8 count as U+FFFD and are dropped with it.
 */
#include "data/data.h"
#include "data/text/gpt2_files.h"
#include "data/hash.h"
#include "data/text/tokenizer.h"
#include "base/unicode.h"
#include "data/text/words_learn.h"

#include <string.h>

enum { WORD_MAX = 100, FILE_MAX = 1 << 28 };

/* ---- words into pieces ---- */

typedef struct word_state {
    const mixt_tokenizer *tokenizer; // NULL: words are taken whole
    mixt__tokens *tokens;
    mixt__word_taker *take;
    void *user;
    bool fold;     // to lower case, without accents
    int64_t chars; // in the word, counted past WORD_MAX too
    int64_t size;
    unsigned char bytes[2 + WORD_MAX * MIXT_UTF8_MAX]; // two for "##"
} word_state;

/** Appends the pieces; false when some part of the word is in no token. `text` has two bytes before it to write to. */
static bool cut_word(const mixt_tokenizer *t, unsigned char *text, int64_t size, mixt__tokens *tokens)
{
    int64_t begin = 0;
    while (begin < size) {
        int64_t end = size, id = -1, prefix = begin ? 2 : 0;
        unsigned char kept[2], *from = text + begin - prefix;
        memcpy(kept, text + begin - 2, 2);
        if (prefix)
            from[0] = from[1] = '#';
        for (; end > begin; end--) {
            if (end < size && (text[end] & 0xc0) == 0x80)
                continue; // not between two characters
            id = mixt__vocabulary_find(&t->vocabulary, from, end - begin + prefix);
            if (id >= 0)
                break;
        }
        memcpy(text + begin - 2, kept, 2);
        if (id < 0)
            return false;
        tokens->ids[tokens->count++] = (uint32_t)id;
        begin = end;
    }
    return true;
}

static mixt_status flush(word_state *w)
{
    if (!w->chars)
        return MIXT_OK;
    if (w->take) {
        bool whole = w->chars <= WORD_MAX;
        int64_t size = w->size;
        w->chars = w->size = 0;
        return whole ? w->take(w->user, w->bytes + 2, size) : MIXT_OK;
    }
    MIXT_TRY(mixt__tokens_reserve(w->tokens, WORD_MAX));
    int64_t before = w->tokens->count;
    if (w->chars > WORD_MAX || !cut_word(w->tokenizer, w->bytes + 2, w->size, w->tokens)) {
        w->tokens->count = before;
        w->tokens->ids[w->tokens->count++] = (uint32_t)w->tokenizer->special.unknown;
    }
    w->chars = w->size = 0;
    return MIXT_OK;
}

static void push(word_state *w, uint32_t code)
{
    if (w->chars++ < WORD_MAX)
        w->size += mixt__utf8_encode(code, w->bytes + 2 + w->size);
}

/* ---- text into words ---- */

static bool is_dropped(uint32_t code)
{
    if (code == '\t' || code == '\n' || code == '\r')
        return false;
    return code >= MIXT_CODE_INVALID || code == 0xfffd || code == 0x0b || code == 0x0c || code == 0x85 ||
           mixt__code_class_of(code) == MIXT_CODE_CONTROL;
}

static bool is_ideograph(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } blocks[] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0xf900, 0xfaff},   {0x20000, 0x2a6df},
                  {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    if (code < 0x3400)
        return false;
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if (code >= blocks[i].first && code <= blocks[i].last)
            return true;
    return false;
}

static bool is_punctuation(uint32_t code)
{
    if (code < 128)
        return code > 32 && code < 127 && mixt__code_ascii[code] != MIXT_CODE_LETTER &&
               mixt__code_ascii[code] != MIXT_CODE_NUMBER;
    return mixt__code_class_of(code) == MIXT_CODE_PUNCTUATION;
}

static mixt_status add_code(word_state *w, uint32_t code)
{
    if (is_dropped(code))
        return MIXT_OK;
    if (mixt__code_class_of(code) == MIXT_CODE_SPACE)
        return flush(w);
    uint32_t folded[MIXT_FOLD_MAX] = {code};
    bool alone = is_ideograph(code);
    int count = w->fold ? mixt__code_fold(code, folded) : 1;
    if (alone)
        MIXT_TRY(flush(w));
    for (int i = 0; i < count; i++) {
        bool single = is_punctuation(folded[i]);
        if (single)
            MIXT_TRY(flush(w));
        push(w, folded[i]);
        if (single)
            MIXT_TRY(flush(w));
    }
    return alone ? flush(w) : MIXT_OK;
}

/** The special token whose name stands at `text`; its length in *size. -1: none. */
static int64_t special_at(const mixt_tokenizer *t, const unsigned char *text, int64_t left, int64_t *size)
{
    const int64_t ids[] = {t->special.mask, t->special.start, t->special.end, t->special.unknown, t->special.pad};
    for (int i = 0; i < 5; i++) {
        if (ids[i] < 0)
            continue;
        mixt__span name = mixt__vocabulary_at(&t->vocabulary, ids[i]);
        if (name.size <= left && !memcmp(name.bytes, text, (size_t)name.size)) {
            *size = name.size;
            return ids[i];
        }
    }
    return -1;
}

static mixt_status encode(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                          mixt__tokens *tokens)
{
    (void)worker;
    word_state w = {.tokenizer = t, .tokens = tokens, .fold = t->kind == &mixt__tokenizer_wordpiece};
    for (int64_t at = 0; at < size;) {
        int64_t length;
        int64_t special = text[at] == '[' ? special_at(t, text + at, size - at, &length) : -1;
        if (special >= 0) {
            MIXT_TRY(flush(&w));
            MIXT_TRY(mixt__tokens_reserve(tokens, 1));
            tokens->ids[tokens->count++] = (uint32_t)special;
            at += length;
            continue;
        }
        int bytes;
        uint32_t code = mixt__utf8_decode(text + at, size - at, &bytes);
        MIXT_TRY(add_code(&w, code));
        at += bytes;
    }
    return flush(&w);
}

mixt_status mixt__wordpiece_words(const unsigned char *text, int64_t size, bool fold, mixt__word_taker *take,
                                  void *user)
{
    word_state w = {.take = take, .user = user, .fold = fold};
    for (int64_t at = 0; at < size;) {
        int bytes;
        uint32_t code = mixt__utf8_decode(text + at, size - at, &bytes);
        MIXT_TRY(add_code(&w, code));
        at += bytes;
    }
    return flush(&w);
}

static int64_t boundary(const unsigned char *text, int64_t low, int64_t high)
{
    for (int64_t at = high; at > low; at--)
        if (text[at] == ' ' || text[at] == '\n')
            return at;
    return low;
}

static mixt_status decode(const mixt_tokenizer *t, uint32_t id, bool first, FILE *stream)
{
    mixt__span token = mixt__vocabulary_at(&t->vocabulary, id);
    bool inside = token.size > 2 && !memcmp(token.bytes, "##", 2);
    if (!first && !inside)
        fputc(' ', stream);
    fwrite(token.bytes + (inside ? 2 : 0), 1, (size_t)(token.size - (inside ? 2 : 0)), stream);
    return MIXT_OK;
}

/* ---- vocab.txt ---- */

static mixt_status read_lines(const char *path, const mixt__bytes *file, mixt__span *tokens, int64_t *count)
{
    const unsigned char *at = file->bytes, *end = at + file->size;
    for (*count = 0; at < end; ++*count) {
        const unsigned char *stop = memchr(at, '\n', (size_t)(end - at));
        int64_t size = (stop ? stop : end) - at;
        tokens[*count] = (mixt__span){at, size && at[size - 1] == '\r' ? size - 1 : size};
        at += size + 1;
        if (!tokens[*count].size)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s:%lld: an empty line; expected one token per line", path,
                              (long long)*count + 1);
    }
    return MIXT_OK;
}

static mixt_status parse_vocabulary(mixt_tokenizer *t, const char *path, const mixt__bytes *file)
{
    int64_t lines = 1, count = 0, twice = -1;
    for (int64_t i = 0; i < file->size; i++)
        lines += file->bytes[i] == '\n';
    if (file->size > FILE_MAX || lines > MIXT_VOCABULARY_MAX)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %lld lines: a vocabulary has at most %d", path, (long long)lines,
                          MIXT_VOCABULARY_MAX);
    mixt__span *tokens = mixt__alloc((size_t)lines * sizeof *tokens);
    if (!tokens)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld tokens", path, (long long)lines);
    mixt_status status = read_lines(path, file, tokens, &count);
    if (status == MIXT_OK)
        status = mixt__vocabulary_make(&t->vocabulary, tokens, count, &twice);
    if (twice >= 0)
        status = mixt__fail(MIXT_ERROR_FORMAT, "%s:%lld: '%.*s' is there twice", path, (long long)twice + 1,
                            (int)(tokens[twice].size < 60 ? tokens[twice].size : 60), tokens[twice].bytes);
    mixt__free(tokens);
    return status;
}

mixt_status mixt__wordpiece_finish(mixt_tokenizer *t, const char *path)
{
    const mixt__vocabulary *v = &t->vocabulary;
    t->special = (mixt__special_tokens){
        .mask = mixt__vocabulary_find(v, "[MASK]", 6),
        .start = mixt__vocabulary_find(v, "[CLS]", 5),
        .end = mixt__vocabulary_find(v, "[SEP]", 5),
        .unknown = mixt__vocabulary_find(v, "[UNK]", 5),
        .pad = mixt__vocabulary_find(v, "[PAD]", 5),
    };
    t->fingerprint = mixt__hash_bytes(0, v->bytes, v->offsets[v->count]);
    for (int64_t i = 0; i < v->count; i++)
        t->fingerprint = mixt__hash_word(t->fingerprint, (uint64_t)v->offsets[i]);
    return t->special.unknown >= 0 ? MIXT_OK
                                   : mixt__fail(MIXT_ERROR_FORMAT, "%s: has no token [UNK]; is it BERT's?", path);
}

static mixt_status open_wordpiece(mixt_tokenizer *t, const char *folder)
{
    char path[4200];
    mixt__bytes file;
    if (!mixt__vocabulary_file(folder, "vocab.txt", NULL, path, sizeof path))
        return mixt__fail(MIXT_ERROR_FILE, "%s: has no vocab.txt; name the folder of BERT's vocabulary", folder);
    MIXT_TRY(mixt__bytes_read_most(path, FILE_MAX, &file));
    mixt_status status = parse_vocabulary(t, path, &file);
    mixt__bytes_free(&file);
    MIXT_TRY(status);
    return mixt__wordpiece_finish(t, path);
}

mixt_status mixt__wordpiece_make(const mixt__span *tokens, int64_t count, bool fold, mixt_tokenizer **result)
{
    const mixt__tokenizer_kind *kind = fold ? &mixt__tokenizer_wordpiece : &mixt__tokenizer_wordpiece_cased;
    int64_t twice = -1;
    *result = NULL;
    mixt_tokenizer *t = mixt__alloc(sizeof *t);
    if (!t)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a tokenizer");
    mixt__handle_add(&t->handle, t, "tokenizer", NULL);
    t->kind = kind;
    mixt_status status = mixt__vocabulary_make(&t->vocabulary, tokens, count, &twice);
    if (status == MIXT_OK)
        status = mixt__wordpiece_finish(t, "a vocabulary");
    t->size = t->vocabulary.count;
    t->fingerprint = mixt__hash_bytes(t->fingerprint, kind->name, (int64_t)strlen(kind->name));
    if (status == MIXT_OK)
        *result = t;
    else
        mixt_tokenizer_close(t);
    return status;
}

#define WORDPIECE .files = "vocab.txt", .open = open_wordpiece, .encode = encode, .boundary = boundary, .decode = decode

const mixt__tokenizer_kind mixt__tokenizer_wordpiece = {.name = "wordpiece", WORDPIECE};
const mixt__tokenizer_kind mixt__tokenizer_wordpiece_cased = {.name = "wordpiece-cased", WORDPIECE};
