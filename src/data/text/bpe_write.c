/* Writing a learned vocabulary as GPT-2's two files: encoder.json, tokens and their ids, and vocab.bpe, the merges in
 * order. Bytes are written as gpt2_files.c reads them. */
#include "data/text/bpe_learn.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/data.h"
#include "base/unicode.h"
#include "mixt/tokenizer.h"
#include "store/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/** The character that stands for each byte, in UTF-8. */
typedef struct alphabet {
    unsigned char text[256][MIXT_UTF8_MAX];
    int size[256];
} alphabet;

static void make_alphabet(alphabet *a)
{
    uint32_t extra = 256;
    for (uint32_t byte = 0; byte < 256; byte++) {
        bool prints = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        a->size[byte] = mixt__utf8_encode(prints ? byte : extra++, a->text[byte]);
    }
}

static void print_byte(FILE *f, const alphabet *a, unsigned byte, bool json)
{
    if (json && (byte == '"' || byte == '\\'))
        fputc('\\', f);
    fwrite(a->text[byte], 1, (size_t)a->size[byte], f);
}

/** All tokens' bytes, from the merges. */
typedef struct spelling {
    mixt__span *tokens;
    mixt__arena arena;
} spelling;

static mixt_status spell(const mixt__bpe_learned *l, spelling *s)
{
    s->tokens = mixt__alloc((size_t)(256 + l->count) * sizeof *s->tokens);
    for (int64_t i = 0; s->tokens && i < 256 + l->count; i++) {
        mixt__span left = {0}, right = {0};
        if (i >= 256) {
            left = s->tokens[l->merges[i - 256][0]];
            right = s->tokens[l->merges[i - 256][1]];
        }
        int64_t size = i < 256 ? 1 : left.size + right.size;
        unsigned char *bytes = mixt__arena_alloc(&s->arena, (size_t)size);
        if (!bytes)
            break;
        bytes[0] = (unsigned char)i;
        if (i >= 256) {
            memcpy(bytes, left.bytes, (size_t)left.size);
            memcpy(bytes + left.size, right.bytes, (size_t)right.size);
        }
        s->tokens[i] = (mixt__span){bytes, size};
        if (i == 255 + l->count)
            return MIXT_OK;
    }
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to write a vocabulary");
}

static void print_token(FILE *f, const alphabet *a, mixt__span token, bool json)
{
    for (int64_t i = 0; i < token.size; i++)
        print_byte(f, a, token.bytes[i], json);
}

static void print_tokens(FILE *f, const alphabet *a, const mixt__bpe_learned *l, const spelling *s)
{
    fputs("{", f);
    for (int64_t i = 0; i < 256 + l->count; i++) {
        fputs("\"", f);
        print_token(f, a, s->tokens[i], true);
        fprintf(f, "\": %lld, ", (long long)i);
    }
    fprintf(f, "\"<|endoftext|>\": %lld}\n", (long long)(256 + l->count));
}

static void print_merges(FILE *f, const alphabet *a, const mixt__bpe_learned *l, const spelling *s)
{
    fputs("#version: 0.2\n", f);
    for (int64_t i = 0; i < l->count; i++) {
        print_token(f, a, s->tokens[l->merges[i][0]], false);
        fputc(' ', f);
        print_token(f, a, s->tokens[l->merges[i][1]], false);
        fputc('\n', f);
    }
}

typedef void print_fn(FILE *f, const alphabet *a, const mixt__bpe_learned *l, const spelling *s);

static mixt_status write_file(const char *folder, const char *name, bool overwrite, print_fn *print,
                              const mixt__bpe_learned *l, const spelling *s)
{
    char path[4400];
    alphabet a;
    char *text = NULL;
    size_t size = 0;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    make_alphabet(&a);
    FILE *f = open_memstream(&text, &size);
    if (f)
        print(f, &a, l, s);
    if (!f || fclose(f)) {
        free(text);
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write it", path);
    }
    mixt_status status = mixt__file_put(path, text, size, overwrite);
    free(text);
    return status;
}

mixt_status mixt__bpe_write(const mixt__bpe_learned *l, const char *folder, bool overwrite)
{
    spelling s = {0};
    if (mkdir(folder, 0777) && errno != EEXIST)
        return mixt__fail(MIXT_ERROR_FILE, "cannot create folder %s: %s", folder, strerror(errno));
    mixt_status status = spell(l, &s);
    if (status == MIXT_OK)
        status = write_file(folder, "encoder.json", overwrite, print_tokens, l, &s);
    if (status == MIXT_OK)
        status = write_file(folder, "vocab.bpe", overwrite, print_merges, l, &s);
    mixt__free(s.tokens);
    mixt__arena_free(&s.arena);
    return status;
}

/* ---- from files ---- */

/** Reads texts one after the other; those read are the caller's to free, also on failure. */
static mixt_status read_texts(const char *const *files, int64_t count, mixt__bytes *texts)
{
    for (int64_t i = 0; i < count; i++) {
        if (!files[i])
            return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_tokenizer_train: file %lld must not be NULL", (long long)i);
        MIXT_TRY(mixt__bytes_read(files[i], &texts[i]));
        if (!texts[i].size)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: the file is empty", files[i]);
        MIXT_TRY(mixt__text_check(files[i], texts[i].bytes, texts[i].size));
    }
    return MIXT_OK;
}

mixt_status mixt_tokenizer_train(const char *const *files, int64_t count, int64_t size, const char *folder,
                                 bool overwrite, mixt_progress_fn *progress, void *user, int64_t *made)
{
    if (made)
        *made = 0;
    if (!files || !folder || count < 1 || count > 1 << 16)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_tokenizer_train: needs 1 to %d files and a folder", 1 << 16);
    mixt__bytes *texts = mixt__alloc((size_t)count * sizeof *texts);
    mixt__span *spans = mixt__alloc((size_t)count * sizeof *spans);
    mixt__bpe_learned learned = {0};
    mixt_status status =
        texts && spans ? read_texts(files, count, texts) : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read texts");
    for (int64_t i = 0; i < count && status == MIXT_OK; i++)
        spans[i] = (mixt__span){texts[i].bytes, texts[i].size};
    if (status == MIXT_OK)
        status = mixt__bpe_learn(spans, count, size, (mixt__teller){progress, user}, &learned);
    if (status == MIXT_OK)
        status = mixt__bpe_write(&learned, folder, overwrite);
    if (status == MIXT_OK && made)
        *made = MIXT_BPE_LEAST + learned.count;
    for (int64_t i = 0; texts && i < count; i++)
        mixt__bytes_free(&texts[i]);
    mixt__free(texts);
    mixt__free(spans);
    mixt__bpe_learned_free(&learned);
    return status;
}
