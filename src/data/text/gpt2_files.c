/* Reading a GPT-2 vocabulary. Both files write bytes as printable characters: those of Latin-1 that print stand for
 * themselves, the other 68 for U+0100 onwards, in order.
 *
 * Ids must be 0 to count - 1, each once, every byte must be a token, and a merge must name three tokens.
 */
#include "data/text/gpt2_files.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/data.h"
#include "data/hash.h"
#include "base/unicode.h"
#include "store/json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 1 << 28, PRINTED = 324 }; // code points that stand for a byte lie below 324

/** Bytes by code point; -1 where none. */
static void make_alphabet(int16_t bytes[PRINTED])
{
    int extra = 256;
    for (int i = 0; i < PRINTED; i++)
        bytes[i] = -1;
    for (int byte = 0; byte < 256; byte++) {
        bool prints = (byte > 32 && byte < 127) || (byte > 160 && byte < 256 && byte != 173);
        bytes[prints ? byte : extra++] = (int16_t)byte;
    }
}

/** Bytes that a printed token stands for. Text with other characters (a special token) stands for itself. */
static int64_t unprint(const int16_t alphabet[PRINTED], const char *text, int64_t size, unsigned char *bytes)
{
    int64_t count = 0;
    for (int64_t at = 0; at < size;) {
        int length;
        uint32_t code = mixt__utf8_decode((const unsigned char *)text + at, size - at, &length);
        if (code >= PRINTED || alphabet[code] < 0) {
            memcpy(bytes, text, (size_t)size);
            return size;
        }
        bytes[count++] = (unsigned char)alphabet[code];
        at += length;
    }
    return count;
}

int64_t mixt__gpt2_unprint(const char *text, int64_t size, unsigned char *bytes)
{
    int16_t alphabet[PRINTED];
    make_alphabet(alphabet);
    return unprint(alphabet, text, size, bytes);
}

bool mixt__vocabulary_file(const char *folder, const char *name, const char *other, char *path, size_t size)
{
    const char *names[] = {name, other};
    for (int i = 0; i < 4; i++) { // each as it is, or gzip
        const char *of = names[i / 2], *suffix = i % 2 ? ".gz" : "";
        if (of && snprintf(path, size, "%s/%s%s", folder, of, suffix) < (int)size && mixt__path_is_file(path))
            return true;
    }
    return false;
}

static mixt_status read_file(const char *path, mixt__bytes *file)
{
    MIXT_TRY(mixt__bytes_read_most(path, FILE_MAX, file));
    if (file->size <= FILE_MAX)
        return MIXT_OK;
    mixt__bytes_free(file);
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: more than %d MiB: this is not a vocabulary", path, FILE_MAX >> 20);
}

/* ---- encoder.json ---- */

/** Puts every key at its id; *tokens is an array of the file's count. */
static mixt_status order_tokens(const char *path, json_t *root, mixt__arena *arena, mixt__span *tokens)
{
    int16_t alphabet[PRINTED];
    const char *key;
    size_t length;
    json_t *value;
    int64_t count = (int64_t)json_object_size(root);
    make_alphabet(alphabet);
    json_object_keylen_foreach(root, key, length, value)
    {
        int64_t id = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
        if (id < 0 || id >= count)
            return mixt__fail(MIXT_ERROR_FORMAT,
                              "%s: token '%.40s' needs an id from 0 to %lld, as there are %lld tokens", path, key,
                              (long long)count - 1, (long long)count);
        if (tokens[id].bytes)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: id %lld is given twice, to '%.40s' too", path, (long long)id,
                              key);
        unsigned char *bytes = mixt__arena_alloc(arena, length + 1);
        if (!bytes)
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its tokens", path);
        if (!length)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: token %lld is empty", path, (long long)id);
        tokens[id] = (mixt__span){bytes, unprint(alphabet, key, (int64_t)length, bytes)};
    }
    return MIXT_OK;
}

static mixt_status parse_tokens(const char *path, const mixt__bytes *file, mixt__vocabulary *vocabulary)
{
    json_t *root;
    MIXT_TRY(mixt__json_parse(path, file->bytes, (size_t)file->size, JSON_REJECT_DUPLICATES, &root));
    mixt__arena arena = {0};
    mixt__span *tokens = NULL;
    int64_t count = (int64_t)json_object_size(root), twice = 0;
    mixt_status status = MIXT_OK;
    if (!json_is_object(root) || count < 256 || count > MIXT_VOCABULARY_MAX)
        status = mixt__fail(MIXT_ERROR_FORMAT, "%s: expected an object of 256 to %d tokens and their ids", path,
                            MIXT_VOCABULARY_MAX);
    if (status == MIXT_OK && !(tokens = mixt__alloc((size_t)count * sizeof *tokens)))
        status = mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld tokens", path, (long long)count);
    if (status == MIXT_OK)
        status = order_tokens(path, root, &arena, tokens);
    if (status == MIXT_OK && (status = mixt__vocabulary_make(vocabulary, tokens, count, &twice)) != MIXT_OK)
        mixt__fail_context(status, "%s", path);
    mixt__free(tokens);
    mixt__arena_free(&arena);
    json_decref(root);
    return status;
}

static mixt_status find_bytes(const char *path, const mixt__vocabulary *vocabulary, mixt__bpe *bpe)
{
    for (int byte = 0; byte < 256; byte++) {
        unsigned char text = (unsigned char)byte;
        int64_t id = mixt__vocabulary_find(vocabulary, &text, 1);
        if (id < 0)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: no token for byte 0x%02x; a byte-pair vocabulary has all 256",
                              path, (unsigned)byte);
        bpe->byte_ids[byte] = (uint32_t)id;
    }
    return MIXT_OK;
}

/* ---- vocab.bpe ---- */

typedef struct merge_reader {
    const char *path;
    const mixt__vocabulary *vocabulary;
    mixt__bpe *bpe;
    int16_t alphabet[PRINTED];
    unsigned char *room; // for one line's bytes
    uint64_t fingerprint;
} merge_reader;

static mixt_status add_merge(merge_reader *r, const char *line, int64_t size, int64_t number, uint32_t rank)
{
    const char *blank = memchr(line, ' ', (size_t)size);
    int64_t left_size = blank ? blank - line : 0, right_size = size - left_size - 1;
    if (!blank || !left_size || right_size < 1 || memchr(blank + 1, ' ', (size_t)right_size))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s:%lld: expected two tokens with a blank between them", r->path,
                          (long long)number);
    int64_t left_bytes = unprint(r->alphabet, line, left_size, r->room);
    int64_t bytes = left_bytes + unprint(r->alphabet, blank + 1, right_size, r->room + left_bytes);
    int64_t left = mixt__vocabulary_find(r->vocabulary, r->room, left_bytes);
    int64_t right = mixt__vocabulary_find(r->vocabulary, r->room + left_bytes, bytes - left_bytes);
    int64_t both = mixt__vocabulary_find(r->vocabulary, r->room, bytes);
    if (left < 0 || right < 0 || both < 0)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s:%lld: '%.*s' %s not in the vocabulary; do both files belong together?",
                          r->path, (long long)number, (int)(size < 60 ? size : 60), line,
                          left < 0 || right < 0 ? "names" : "makes");
    if (!mixt__bpe_add(r->bpe, (uint32_t)left, (uint32_t)right, rank, (uint32_t)both,
                       mixt__vocabulary_at(r->vocabulary, both)))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s:%lld: the merge '%.*s' is there twice", r->path, (long long)number,
                          (int)(size < 60 ? size : 60), line);
    r->fingerprint = mixt__hash_word(r->fingerprint, (uint64_t)left << 32 | (uint64_t)right);
    return MIXT_OK;
}

static mixt_status parse_merges(merge_reader *r, const mixt__bytes *file)
{
    const char *at = (const char *)file->bytes, *end = at + file->size;
    int64_t lines = 1;
    for (const char *p = at; p < end; p++)
        lines += *p == '\n';
    if (lines > MIXT_VOCABULARY_MAX)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: more than %d lines: this is not a list of merges", r->path,
                          MIXT_VOCABULARY_MAX);
    MIXT_TRY(mixt__bpe_init(r->bpe, lines));
    make_alphabet(r->alphabet);
    uint32_t rank = 0;
    for (int64_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        int64_t size = (stop ? stop : end) - at;
        const char *line = at;
        at += size + 1;
        if (size && line[size - 1] == '\r')
            size--;
        bool version = number == 1 && size >= 8 && !memcmp(line, "#version", 8);
        if (size && !version)
            MIXT_TRY(add_merge(r, line, size, number, rank++));
    }
    return MIXT_OK;
}

mixt_status mixt__gpt2_read(const char *folder, mixt__vocabulary *vocabulary, mixt__bpe *bpe, uint64_t *fingerprint)
{
    char tokens[4200], merges[4200];
    mixt__bytes file = {0};
    if (!mixt__vocabulary_file(folder, "encoder.json", "vocab.json", tokens, sizeof tokens))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: has no encoder.json (or vocab.json); name the folder of GPT-2's vocabulary", folder);
    if (!mixt__vocabulary_file(folder, "vocab.bpe", "merges.txt", merges, sizeof merges))
        return mixt__fail(MIXT_ERROR_FILE, "%s: has no vocab.bpe (or merges.txt) beside %s", folder, tokens);
    MIXT_TRY(read_file(tokens, &file));
    mixt_status status = parse_tokens(tokens, &file, vocabulary);
    mixt__bytes_free(&file);
    MIXT_TRY(status);
    MIXT_TRY(find_bytes(tokens, vocabulary, bpe));
    MIXT_TRY(read_file(merges, &file));
    merge_reader r = {.path = merges, .vocabulary = vocabulary, .bpe = bpe};
    r.room = mixt__alloc_uninit((size_t)file.size);
    status = r.room ? parse_merges(&r, &file) : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", merges);
    mixt__free(r.room);
    mixt__bytes_free(&file);
    *fingerprint = mixt__hash_bytes(r.fingerprint, vocabulary->bytes, vocabulary->offsets[vocabulary->count]);
    return status;
}
