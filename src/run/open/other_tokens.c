/* Tokens of two models compared by their texts: two vocabularies of one size are as different as any others. A teacher
 * that reads other words teaches noise, and rows of other words are noise to begin with.
 */
#include "run/open/other_tokens.h"

#include "base/unicode.h"

#include "base/status.h"
#include "data/facts.h"
#include "data/text/tokenizer.h"
#include "data/text/windows.h"
#include "run/open/inputs.h"

#include <stdio.h>
#include <string.h>

enum { QUOTED = 128 };

static const char *text(const mixt_config *config, mixt__config_key key)
{
    return mixt__config_string(config, key);
}

/* ---- open ---- */

/** The tokenizer that a configuration names, with the files of `vocab`; none for data that is no text, and for token
 * files and parallel text unless it is named. */
static mixt_status open_named(const mixt_config *config, const char *kind, const char *vocab,
                              mixt_tokenizer **tokenizer)
{
    bool reads = !strcmp(kind, "text") || !strcmp(kind, "labelled") || !strcmp(kind, "chat");
    bool named = !strcmp(kind, "tokens") || !strcmp(kind, "parallel"); // which have none of themselves
    if (!reads && !(named && *vocab))
        return MIXT_OK;
    return mixt_tokenizer_open(text(config, MIXT_KEY_DATA_TOKENIZER), vocab, tokenizer);
}

mixt_status mixt__other_tokens_open(mixt__other_tokens *t, const char *run, mixt_config *config, const char *kind)
{
    MIXT_TRY(mixt__run_inputs_vocab(run, config));
    if (snprintf(t->vocab, sizeof t->vocab, "%s", text(config, MIXT_KEY_DATA_VOCAB)) >= (int)sizeof t->vocab)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path of its vocabulary is too long", t->path);
    mixt_status status = open_named(config, kind, t->vocab, &t->theirs);
    bool copied = !strncmp(t->vocab, run, strlen(run));
    return status == MIXT_ERROR_FILE && !copied ? MIXT_OK : status;
}

mixt_status mixt__other_tokens_of(mixt__other_tokens *t, const mixt__experiment *e)
{
    const mixt_data *data = e->facts;
    if (data->tokenizer) {
        t->mine = mixt__tokenizer_hold(data->tokenizer);
        return MIXT_OK;
    }
    if (!strcmp(data->info.kind, "tokens") && !mixt__data_is_facts(data)) {
        t->file = data->info.path;
        t->fingerprint = mixt__windows_tokenizer(data);
    }
    const char *vocab = data->options.vocab; // also one that was learned from the data
    return open_named(e->config, data->info.kind, vocab ? vocab : text(e->config, MIXT_KEY_DATA_VOCAB), &t->mine);
}

void mixt__other_tokens_close(mixt__other_tokens *t)
{
    mixt__tokenizer_drop(t->theirs);
    mixt__tokenizer_drop(t->mine);
    *t = (mixt__other_tokens){0};
}

/* ---- compare ---- */

/** How a text is read as the teacher reads it. */
static const char *advice(const mixt__other_tokens *t, char room[sizeof t->vocab + 64])
{
    *room = '\0';
    if (t->theirs && *t->vocab && !t->file)
        snprintf(room, sizeof t->vocab + 64, ": data.vocab=%s reads it as the teacher does", t->vocab);
    return room;
}

static void print_count(char *room, size_t size, int64_t count, const mixt_tokenizer *tokenizer)
{
    if (tokenizer)
        snprintf(room, size, "%lld (%s)", (long long)count, tokenizer->kind->name);
    else
        snprintf(room, size, "%lld", (long long)count);
}

mixt_status mixt__other_tokens_count(const mixt__other_tokens *t, int64_t mine, int64_t theirs)
{
    char a[64], b[64], todo[sizeof t->vocab + 64];
    if (mine == theirs)
        return MIXT_OK;
    bool both = t->mine && t->theirs;
    print_count(a, sizeof a, theirs, both ? t->theirs : NULL);
    print_count(b, sizeof b, mine, both ? t->mine : NULL);
    return mixt__fail(MIXT_ERROR_CONFIG, "distill.teacher=%s: other tokens: the teacher's %s, the data's %s%s", t->path,
                      a, b, advice(t, todo));
}

/** The text of a token; bytes have no vocabulary. @param byte room for one of them */
static mixt__span text_of(const mixt_tokenizer *t, int64_t id, unsigned char *byte)
{
    *byte = (unsigned char)id;
    return t->vocabulary.count ? mixt__vocabulary_at(&t->vocabulary, id) : (mixt__span){byte, 1};
}

/** For people: what does not print as its code, what is long without its end. */
static const char *quote(mixt__span token, char room[QUOTED])
{
    size_t used = 0;
    for (int64_t i = 0; i < token.size && used + 8 < QUOTED; i++) {
        unsigned char c = token.bytes[i];
        int length;
        bool whole = mixt__utf8_decode(token.bytes + i, token.size - i, &length) != MIXT_CODE_INVALID && length > 1;
        if (whole) {
            used += (size_t)snprintf(room + used, QUOTED - used, "%.*s", length, (const char *)token.bytes + i);
            i += length - 1;
        } else {
            used += (size_t)snprintf(room + used, QUOTED - used, c >= ' ' && c < 0x7f ? "%c" : "\\x%02x", c);
        }
        if (used + 8 >= QUOTED && i + 1 < token.size)
            snprintf(room + used, QUOTED - used, "...");
    }
    if (!token.size)
        *room = '\0';
    return room;
}

bool mixt__other_tokens_differ(const mixt__other_tokens *t, char why[MIXT_TOKENS_WHY])
{
    char a[QUOTED], b[QUOTED];
    unsigned char byte[2];
    if (t->theirs && !t->mine && t->fingerprint && t->fingerprint != t->theirs->fingerprint) {
        snprintf(why, MIXT_TOKENS_WHY,
                 "%s was made with another tokenizer than %s: set data.vocab=FOLDER, its own vocabulary, to compare "
                 "their tokens",
                 t->file, t->whose);
        return true;
    }
    int64_t count = t->mine && t->theirs ? t->mine->size : 0;
    if (count && t->theirs->size < count)
        count = t->theirs->size;
    for (int64_t i = 0; i < count; i++) {
        mixt__span mine = text_of(t->mine, i, &byte[0]), theirs = text_of(t->theirs, i, &byte[1]);
        if (mine.size == theirs.size && !memcmp(mine.bytes, theirs.bytes, (size_t)mine.size))
            continue;
        snprintf(why, MIXT_TOKENS_WHY, "token %lld is '%s' %s, '%s' in the data", (long long)i, quote(theirs, a), t->to,
                 quote(mine, b));
        return true;
    }
    return false;
}

mixt_status mixt__other_tokens_check(const mixt__other_tokens *t)
{
    char todo[sizeof t->vocab + 64], why[MIXT_TOKENS_WHY];
    if (!mixt__other_tokens_differ(t, why))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "distill.teacher=%s: other tokens: %s%s", t->path, why, advice(t, todo));
}
