/* Learning a vocabulary of words. */
#include "data/text/words_learn.h"

#include "base/status.h"
#include "store/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RARE = 2 }; // a word that came up less often is unknown

static const char *const special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

enum { SPECIAL = sizeof special / sizeof special[0] };

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to learn a vocabulary");
}

static mixt_status count_word(void *user, const unsigned char *word, int64_t size)
{
    mixt__word_counts *c = user;
    int64_t known = c->words.count, number = mixt__names_add(&c->words, (const char *)word, size);
    if (number < 0)
        return no_memory();
    if (number == known) {
        if (!mixt__grow((void **)&c->counts, &c->capacity, known, sizeof *c->counts))
            return no_memory();
        c->counts[number] = 0;
    }
    c->counts[number]++;
    return MIXT_OK;
}

mixt_status mixt__word_counts_add(mixt__word_counts *counts, const unsigned char *text, int64_t size, bool fold)
{
    return mixt__wordpiece_words(text, size, fold, count_word, counts);
}

void mixt__word_counts_free(mixt__word_counts *counts)
{
    mixt__names_free(&counts->words);
    mixt__free(counts->counts);
    *counts = (mixt__word_counts){0};
}

typedef struct counted {
    const char *word;
    int64_t count;
} counted;

static int more_frequent(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->word, y->word);
}

/** A word of a text that is called as a special token is that token already. */
static bool is_special(const char *word)
{
    for (int i = 0; i < SPECIAL; i++)
        if (!strcmp(word, special[i]))
            return true;
    return false;
}

static mixt_status make(const counted *sorted, int64_t words, int64_t most, bool fold, mixt_tokenizer **tokenizer)
{
    int64_t count = 0;
    mixt__span *tokens = mixt__alloc((size_t)(SPECIAL + words) * sizeof *tokens);
    if (!tokens)
        return no_memory();
    for (int i = 0; i < SPECIAL; i++)
        tokens[count++] = (mixt__span){(const unsigned char *)special[i], (int64_t)strlen(special[i])};
    for (int64_t i = 0; i < words && count < most && sorted[i].count >= RARE; i++)
        if (!is_special(sorted[i].word))
            tokens[count++] = (mixt__span){(const unsigned char *)sorted[i].word, (int64_t)strlen(sorted[i].word)};
    mixt_status status = mixt__wordpiece_make(tokens, count, fold, tokenizer);
    mixt__free(tokens);
    return status;
}

mixt_status mixt__words_learn(const mixt__word_counts *counts, int64_t most, bool fold, mixt_tokenizer **tokenizer)
{
    int64_t words = counts->words.count;
    counted *sorted = mixt__alloc((size_t)(words + 1) * sizeof *sorted);
    *tokenizer = NULL;
    if (!sorted)
        return no_memory();
    for (int64_t i = 0; i < words; i++)
        sorted[i] = (counted){counts->words.text + counts->words.begin[i], counts->counts[i]};
    qsort(sorted, (size_t)words, sizeof *sorted, more_frequent);
    mixt_status status = make(sorted, words, most, fold, tokenizer);
    mixt__free(sorted);
    return status;
}

/** All tokens, a line each; NULL: no memory. */
static char *lines_of(const mixt__vocabulary *v, size_t *bytes)
{
    *bytes = (size_t)(v->offsets[v->count] + v->count);
    char *lines = mixt__alloc_uninit(*bytes), *to = lines;
    for (int64_t i = 0; lines && i < v->count; i++) {
        mixt__span token = mixt__vocabulary_at(v, i);
        memcpy(to, token.bytes, (size_t)token.size);
        to += token.size;
        *to++ = '\n';
    }
    return lines;
}

mixt_status mixt__vocabulary_write(const mixt__vocabulary *vocabulary, const char *folder)
{
    char path[4400];
    size_t bytes;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return mixt__fail(MIXT_ERROR_FILE, "cannot create folder %s: %s", folder, strerror(errno));
    if (snprintf(path, sizeof path, "%s/vocab.txt", folder) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    char *lines = lines_of(vocabulary, &bytes);
    if (!lines)
        return no_memory();
    mixt_status status = mixt__file_put(path, lines, bytes, true);
    mixt__free(lines);
    return status;
}
