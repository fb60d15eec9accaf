/* The vocabulary of parallel text: one for both languages, given or learned. A learned one lies in the cache folder
 * under a hash of all that it depends on, so that every part of a set, and the next run, finds the same. */
#include "data/text/bpe_learn.h"
#include "data/hash.h"
#include "data/text/parallel.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4400, DEFAULT_SIZE = 8000 };

static int64_t wanted_size(const mixt_data *data)
{
    return data->options.vocab_size ? data->options.vocab_size : DEFAULT_SIZE;
}

/** All lines of both sides. */
static uint64_t hash_of(const mixt__pairs *p, int64_t size)
{
    uint64_t h = mixt__hash_word(0x70616972, (uint64_t)size);
    for (int side = 0; side < MIXT_SIDES; side++)
        for (int64_t i = 0; i < p->count; i++)
            h = mixt__hash_bytes(h, p->line[side][i].bytes, p->line[side][i].size);
    return h;
}

static bool is_there(const char *folder)
{
    char path[PATH_SIZE + 32];
    snprintf(path, sizeof path, "%s/vocab.bpe", folder); // written last
    return mixt__path_is_file(path);
}

/** Learns from lines as they are encoded: each for itself. */
static mixt_status learn(const mixt_data *data, const mixt__pairs *p, int64_t size, const char *folder)
{
    mixt__span *texts = mixt__alloc_uninit((size_t)(MIXT_SIDES * p->count) * sizeof *texts);
    mixt__bpe_learned learned;
    mixt__teller teller = {data->options.progress, data->options.user};
    if (!texts)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory to learn a vocabulary", data->kind->name, data->path);
    for (int side = 0; side < MIXT_SIDES; side++)
        memcpy(texts + side * p->count, p->line[side], (size_t)p->count * sizeof *texts);
    mixt_status status = mixt__bpe_learn(texts, MIXT_SIDES * p->count, size, teller, &learned);
    mixt__free(texts);
    MIXT_TRY(status);
    status = mixt__bpe_write(&learned, folder, true);
    MIXT_LOG(DATA, "%s: learned a vocabulary of %lld tokens, kept in %s", data->path,
             (long long)(MIXT_BPE_LEAST + learned.count), folder);
    mixt__bpe_learned_free(&learned);
    return status;
}

/** The folder of the vocabulary that training pairs give. */
static mixt_status learned_folder(mixt_data *data, const mixt__pairs *p, const char **folder)
{
    char path[PATH_SIZE];
    int64_t size = wanted_size(data);
    if (!mixt__cache_folder("vocabularies", path, sizeof path - 32))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s:%s: no vocabulary is set, and no cache folder is writable to keep a learned one: set "
                          "MIXT_CACHE to a folder, or learn one with 'mixt tokenize --train' and set data.vocab",
                          data->kind->name, data->path);
    size_t used = strlen(path);
    snprintf(path + used, sizeof path - used, "/%016llx", (unsigned long long)hash_of(p, size));
    if (!is_there(path))
        MIXT_TRY(learn(data, p, size, path));
    *folder = mixt__arena_strdup(&data->arena, path);
    return *folder ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
}

static mixt_status find_folder(mixt_data *data)
{
    mixt__pairs pairs = {0};
    bool shared;
    mixt_status status = *data->path ? mixt__pairs_read(data, MIXT_PART_TRAIN, &pairs, &shared)
                                     : mixt__pairs_draw(data, MIXT_PART_TRAIN, &pairs);
    if (status == MIXT_OK)
        status = learned_folder(data, &pairs, &data->options.vocab);
    mixt__pairs_free(&pairs);
    return status;
}

static mixt_status wrong_kind(const char *what)
{
    return mixt__fail(
        MIXT_ERROR_CONFIG,
        "%s: parallel text needs a vocabulary of byte pairs (encoder.json, vocab.bpe) with <|endoftext|>, "
        "such as 'mixt tokenize --train' makes",
        what);
}

mixt_status mixt__pairs_tokenizer(mixt_data *data, mixt_tokenizer **tokenizer)
{
    mixt_data_options *o = &data->options;
    *tokenizer = NULL;
    if (o->tokenizer && *o->tokenizer && strcmp(o->tokenizer, "auto") && strcmp(o->tokenizer, "gpt2"))
        return wrong_kind(o->tokenizer);
    if (!o->vocab || !*o->vocab)
        MIXT_TRY(find_folder(data));
    MIXT_TRY(mixt_tokenizer_open(o->tokenizer, o->vocab, tokenizer));
    if ((*tokenizer)->kind == &mixt__tokenizer_gpt2 && (*tokenizer)->special.end >= 0)
        return MIXT_OK;
    mixt_tokenizer_close(*tokenizer);
    *tokenizer = NULL;
    return wrong_kind(o->vocab);
}
