/* Texts to be judged, as tokens in memory. */
#include "data/text/inputs_text.h"

#include "data/text/labelled.h"

#include <string.h>

struct mixt__input_texts {
    mixt__tokens tokens; // of all texts, one behind the other
    int64_t *begin;      // (count + 1)
    int64_t *line;       // (count) of the file; 0: none
    bool *cut;           // (count)
    int64_t count;
};

bool mixt__are_texts(const mixt_data_info *info)
{
    return info->array_count == 4 && !strcmp(info->arrays[0].name, "text") && info->target == MIXT_TARGET_CLASS;
}

/** One text, without a file. */
static mixt_status take_words(const char *words, mixt__text_rows *rows)
{
    rows->path = "text";
    if (!mixt__grow((void **)&rows->row, &rows->capacity, 0, sizeof *rows->row))
        return mixt__fail(MIXT_ERROR_MEMORY, "text: no memory");
    rows->row[rows->count++] =
        (mixt__text_row){.text = {(const unsigned char *)words, (int64_t)strlen(words)}, .line = 1};
    return *words ? MIXT_OK : mixt__fail(MIXT_ERROR_ARGUMENT, "text: is empty; expected text:WORDS");
}

static mixt_status encode(const mixt__text_rows *rows, const mixt_data *like, mixt__input_texts *t)
{
    const mixt_tokenizer *tokenizer = like->tokenizer;
    void *worker = NULL;
    t->begin = mixt__alloc((size_t)(rows->count + 1) * sizeof *t->begin);
    t->line = mixt__alloc((size_t)(rows->count + 1) * sizeof *t->line);
    t->cut = mixt__alloc((size_t)(rows->count + 1) * sizeof *t->cut);
    if (!t->begin || !t->line || !t->cut)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its texts", rows->path);
    mixt_status status = tokenizer->kind->worker_new ? tokenizer->kind->worker_new(tokenizer, &worker) : MIXT_OK;
    for (int64_t i = 0; i < rows->count && status == MIXT_OK; i++) {
        status =
            mixt__text_tokens(tokenizer, worker, rows->row[i].text, like->info.input_dims[0], &t->tokens, &t->cut[i]);
        t->begin[i + 1] = t->tokens.count;
        t->line[i] = rows->file.bytes ? rows->row[i].line : 0;
        if (status == MIXT_OK && t->begin[i + 1] == t->begin[i])
            status = mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: a text without a single token", rows->path,
                                (long long)rows->row[i].line);
    }
    t->count = rows->count;
    if (tokenizer->kind->worker_free && worker)
        tokenizer->kind->worker_free(worker);
    return status;
}

mixt_status mixt__input_texts_open(const char *path, const mixt_data *like, mixt__input_texts **texts)
{
    mixt__text_rows rows = {0};
    *texts = NULL;
    if (!like->tokenizer)
        return mixt__fail(MIXT_ERROR_STATE, "%s: the vocabulary of the model is not known", path);
    mixt__input_texts *t = mixt__alloc(sizeof *t);
    if (!t)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", path);
    mixt_status status = !strncmp(path, "text:", 5) && !mixt__path_is_file(path)
                             ? take_words(path + 5, &rows)
                             : mixt__text_rows_read_alone(like, path, &rows);
    if (status == MIXT_OK)
        status = encode(&rows, like, t);
    mixt__text_rows_free(&rows);
    if (status == MIXT_OK)
        *texts = t;
    else
        mixt__input_texts_close(t);
    return status;
}

void mixt__input_texts_close(mixt__input_texts *texts)
{
    if (!texts)
        return;
    mixt__tokens_free(&texts->tokens);
    mixt__free(texts->begin);
    mixt__free(texts->line);
    mixt__free(texts->cut);
    mixt__free(texts);
}

int64_t mixt__input_texts_count(const mixt__input_texts *texts)
{
    return texts->count;
}

int64_t mixt__input_texts_line(const mixt__input_texts *texts, int64_t index)
{
    return texts->line[index];
}

bool mixt__input_texts_cut(const mixt__input_texts *texts, int64_t index)
{
    return texts->cut[index];
}

void mixt__input_texts_read(const mixt__input_texts *texts, const mixt_data *like, int64_t first, int64_t count,
                            void *samples)
{
    mixt__data_places places = mixt__data_places_of(like, count, 0, samples, NULL);
    int64_t longest = like->info.input_dims[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t begin = texts->begin[first + i], length = texts->begin[first + i + 1] - begin;
        int32_t *tokens = (int32_t *)(void *)places.at[0] + i * longest;
        float *mask = (float *)(void *)places.at[2] + i * longest;
        memset(tokens, 0, (size_t)longest * sizeof *tokens);
        memcpy(tokens, texts->tokens.ids + begin, (size_t)length * sizeof *tokens);
        ((int32_t *)(void *)places.at[1])[i] = (int32_t)length;
        for (int64_t k = 0; k < longest; k++)
            mask[k] = k < length ? 1.0f : 0.0f;
    }
}
