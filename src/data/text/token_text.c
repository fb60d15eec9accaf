/* The public side of token files: a text file to a token file, and back to text. */
#include "mixt/tokenizer.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/text/token_cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct mixt_token_file {
    mixt__handle handle;
    mixt__token_file core;
    char *path;
};

static mixt_token_file_info describe(const mixt__token_file *file)
{
    return (mixt_token_file_info){file->count, file->facts.vocabulary, (int64_t)file->map.bytes};
}

/** The result is put in its place when it is whole: in that of its source, the source would be gone. */
static mixt_status keep_source(const char *source, const char *path)
{
    return mixt__same_file(source, path)
               ? mixt__fail(MIXT_ERROR_FILE, "%s: is the input file itself: choose another name", path)
               : MIXT_OK;
}

mixt_status mixt_token_file_make(const mixt_tokenizer *tokenizer, const char *text, const char *path, bool overwrite,
                                 mixt_progress_fn *progress, void *user, mixt_token_file_info *made)
{
    mixt__token_file file;
    uint64_t source;
    MIXT_TRY(mixt__need_open(tokenizer, "tokenizer"));
    MIXT_TRY(mixt__need(text));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(keep_source(text, path));
    MIXT_TRY(mixt__text_fingerprint(text, &source));
    MIXT_TRY(mixt__text_to_tokens(tokenizer, text, source, path, overwrite, (mixt__teller){progress, user}));
    if (!made)
        return MIXT_OK;
    MIXT_TRY(mixt__token_file_open(path, 0, true, &file));
    *made = describe(&file);
    mixt__token_file_close(&file);
    return MIXT_OK;
}

mixt_status mixt_token_file_open(const char *path, const mixt_tokenizer *tokenizer, mixt_token_file **result)
{
    MIXT_TRY(mixt__need(result));
    *result = NULL;
    MIXT_TRY(mixt__need(path));
    if (tokenizer)
        MIXT_TRY(mixt__need_open(tokenizer, "tokenizer"));
    mixt_token_file *file = mixt__alloc(sizeof *file);
    if (!file || !(file->path = mixt__strdup(path))) {
        mixt__free(file);
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open it", path);
    }
    mixt__handle_add(&file->handle, file, "token file", NULL);
    mixt_status status = mixt__token_file_open(path, tokenizer ? tokenizer->size : 0, false, &file->core);
    uint64_t fingerprint = file->core.facts.fingerprint; // 0: a raw file
    if (status == MIXT_OK && tokenizer && fingerprint && fingerprint != tokenizer->fingerprint)
        status =
            mixt__fail(MIXT_ERROR_DATA, "%s: was made with another vocabulary or tokenizer than the given one", path);
    if (status == MIXT_OK)
        *result = file;
    else
        mixt_token_file_close(file);
    return status;
}

void mixt_token_file_close(mixt_token_file *file)
{
    if (!file || mixt__need_open(file, "token file") != MIXT_OK)
        return;
    mixt__handle_remove(file);
    mixt__token_file_close(&file->core);
    mixt__free(file->path);
    mixt__free(file);
}

mixt_token_file_info mixt_token_file_describe(const mixt_token_file *file)
{
    return mixt__need_open(file, "token file") == MIXT_OK ? describe(&file->core) : (mixt_token_file_info){0};
}

mixt_status mixt_token_file_read(const mixt_token_file *file, int64_t first, int64_t count, int32_t *tokens)
{
    MIXT_TRY(mixt__need_open(file, "token file"));
    MIXT_TRY(mixt__need(tokens));
    const mixt__token_file *f = &file->core;
    if (first < 0 || count < 0 || first > f->count || count > f->count - first)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: %lld tokens from %lld on, but there are %lld", file->path,
                          (long long)count, (long long)first, (long long)f->count);
    for (int64_t i = 0; i < count; i++)
        tokens[i] = f->width == 2 ? ((const uint16_t *)f->ids)[first + i] : ((const int32_t *)f->ids)[first + i];
    return MIXT_OK;
}

static mixt_status print(const mixt_token_file *file, const mixt_tokenizer *tokenizer, FILE *stream)
{
    enum { STRETCH = 4096 };
    int32_t ids[STRETCH];
    for (int64_t first = 0; first < file->core.count; first += STRETCH) {
        int64_t rest = file->core.count - first, count = rest < STRETCH ? rest : STRETCH;
        MIXT_TRY(mixt_token_file_read(file, first, count, ids));
        MIXT_TRY(mixt__tokenizer_decode(tokenizer, (const uint32_t *)ids, count, first > 0, stream));
    }
    return fflush(stream) || ferror(stream)
               ? mixt__fail(MIXT_ERROR_FILE, "the text cannot be written: %s", strerror(errno))
               : MIXT_OK;
}

mixt_status mixt_token_file_print(const mixt_token_file *file, const mixt_tokenizer *tokenizer, int descriptor)
{
    MIXT_TRY(mixt__need_open(file, "token file"));
    MIXT_TRY(mixt__need_open(tokenizer, "tokenizer"));
    int copy = dup(descriptor);
    FILE *stream = copy < 0 ? NULL : fdopen(copy, "wb");
    mixt_status status = stream ? print(file, tokenizer, stream)
                                : mixt__fail(MIXT_ERROR_FILE, "the text cannot be written: %s", strerror(errno));
    if (stream)
        fclose(stream);
    else if (copy >= 0)
        close(copy);
    return status;
}

mixt_status mixt_token_file_write_text(const mixt_token_file *file, const mixt_tokenizer *tokenizer, const char *path,
                                       bool overwrite)
{
    mixt__file_writer writer;
    MIXT_TRY(mixt__need_open(file, "token file"));
    MIXT_TRY(mixt__need_open(tokenizer, "tokenizer"));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(keep_source(file->path, path));
    MIXT_TRY(mixt__file_writer_open(&writer, path, overwrite));
    mixt_status status = mixt_token_file_print(file, tokenizer, writer.fd);
    if (status == MIXT_OK)
        return mixt__file_writer_commit(&writer);
    mixt__fail_context(status, "%s", writer.path);
    mixt__file_writer_abandon(&writer);
    return status;
}
