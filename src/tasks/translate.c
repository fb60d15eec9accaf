/* Sentences through a trained translator, by beam search.
 *
 * Sentences go through in batches of like lengths, are read once, and then written a token at a time
 * (infer/writer.h). Lengths are rounded up to a few, so that there are few plans; what is padding is never looked at.
 */
#include "mixt/tasks/translate.h"

#include "base/options.h"
#include "base/progress.h"

#include "api/api.h"
#include "data/data.h"
#include "data/text/tokenizer.h"
#include "infer/beam.h"
#include "infer/writer.h"
#include "models/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHORTEST = 16, BATCH_MAX = 4096, POSITIONS_MAX = 1 << 20 };

/** A sentence as tokens. */
typedef struct sentence {
    const int32_t *tokens;
    int64_t length, number; // number: in the caller's order
    bool cut;
} sentence;

typedef struct job {
    mixt_trainer *trainer;
    const mixt_tokenizer *tokenizer;
    mixt_translate_options o;
    int64_t places; // that the model can tell apart
    mixt__writer writer;
    mixt__beams *beams;
    int32_t *tokens;  // (batch, places) of sentences
    int32_t *lengths; // (batch)
    int32_t *newest;  // (batch · beams)
    float *logits;    // (batch · beams, writer.row)
} job;

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to translate");
}

/* ---- opening ---- */

static mixt_status take_options(job *j, const mixt_translate_options *options)
{
    j->o = MIXT_OPTIONS(mixt_translate_options);
    MIXT_TRY(mixt__options(mixt_translate_options, &j->o, options));
    if (j->o.beams < 1 || j->o.beams > MIXT_BEAMS_MAX || j->o.batch < 1 || j->o.batch > BATCH_MAX ||
        !isfinite(j->o.length_penalty) || j->o.length_penalty < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld beams of %lld sentences: expected 1 to %d of 1 to %d",
                          (long long)j->o.beams, (long long)j->o.batch, MIXT_BEAMS_MAX, BATCH_MAX);
    return MIXT_OK;
}

/** A model of the caller's: what the options say of it. */
static mixt_status take_own_model(job *j)
{
    if (j->o.positions < 1 || j->o.positions > POSITIONS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "mixt_translate_options: %lld positions of a model of one's own: "
                          "expected 1 to %d",
                          (long long)j->o.positions, POSITIONS_MAX);
    j->places = j->o.positions;
    return MIXT_OK;
}

/** The zoo's translator, which knows its own sizes. */
static mixt_status take_zoo_model(job *j, const mixt__model *model)
{
    const mixt__model_sizes *sizes = model->user;
    if (j->o.write || j->o.positions)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "mixt_translate_options: write and positions belong to a model of one's own: set read too");
    if (model->fn != mixt__model_seq2seq)
        return mixt__fail(
            MIXT_ERROR_UNSUPPORTED,
            "the model does not translate: it is not seq2seq of the zoo, and the options name no function "
            "that reads sentences (mixt_translate_options.read)");
    if (j->tokenizer->size != sizes->vocab)
        return mixt__fail(MIXT_ERROR_DATA, "the model knows %lld tokens, the vocabulary has %lld: it is another one",
                          (long long)sizes->vocab, (long long)j->tokenizer->size);
    j->o.read = mixt__model_seq2seq_read;
    j->places = sizes->seq;
    return MIXT_OK;
}

static mixt_status open_job(job *j, mixt_trainer *trainer, const mixt_tokenizer *tokenizer,
                            const mixt_translate_options *options)
{
    mixt__trainer *t = trainer->inner;
    *j = (job){.trainer = trainer, .tokenizer = tokenizer};
    MIXT_TRY(take_options(j, options));
    MIXT_TRY(j->o.read ? take_own_model(j) : take_zoo_model(j, mixt__trainer_model(t)));
    if (tokenizer->special.end < 0)
        return mixt__fail(MIXT_ERROR_DATA, "the vocabulary has no token that ends a text: a translation would not end");
    if (!mixt__trainer_compiled(t))
        return mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: it has no weights");
    return mixt__trainer_take_weights(t);
}

/** Everything for `count` sentences, or for a batch of them. */
static mixt_status take_room(job *j, int64_t count)
{
    mixt__trainer *t = j->trainer->inner;
    j->o.batch = count < j->o.batch ? count : j->o.batch;
    int64_t batch = j->o.batch, rows = batch * j->o.beams;
    mixt__beam_options beams = {.texts = batch,
                                .beams = j->o.beams,
                                .penalty = j->o.length_penalty,
                                .end = (int32_t)j->tokenizer->special.end,
                                .longest = j->places,
                                .vocab = j->tokenizer->size};
    mixt__writer_options writer = {.read = *mixt__trainer_model(t),
                                   .write = *mixt__trainer_model(t),
                                   .policy = mixt__trainer_settings_of(t)->policy,
                                   .device = mixt__trainer_device(t),
                                   .params = mixt__trainer_params(t),
                                   .texts = batch,
                                   .beams = j->o.beams};
    writer.read.fn = j->o.read;
    if (j->o.write)
        writer.write.fn = j->o.write;
    mixt__writer_open(&j->writer, &writer);
    MIXT_TRY(mixt__beams_new(&beams, &j->beams));
    j->tokens = mixt__alloc((size_t)(batch * j->places) * sizeof *j->tokens);
    j->lengths = mixt__alloc((size_t)batch * sizeof *j->lengths);
    j->newest = mixt__alloc((size_t)rows * sizeof *j->newest);
    return j->tokens && j->lengths && j->newest ? MIXT_OK : no_memory();
}

static void close_job(job *j)
{
    mixt__writer_close(&j->writer);
    mixt__beams_free(j->beams);
    mixt__free(j->tokens);
    mixt__free(j->lengths);
    mixt__free(j->newest);
    mixt__free(j->logits);
}

/* ---- a batch ---- */

/** Lengths that plans are made for: doubled from the shortest on. */
static int64_t round_up(const job *j, int64_t length)
{
    int64_t rounded = SHORTEST;
    while (rounded < length)
        rounded *= 2;
    return rounded < j->places ? rounded : j->places;
}

/** Tokens that a translation of so many may have. */
static int64_t longest_of(int64_t source)
{
    return 2 * source + SHORTEST;
}

/** Room for logits, whose number the first plan says. */
static mixt_status take_logits(job *j)
{
    if (j->logits)
        return MIXT_OK;
    if (j->writer.row < j->tokenizer->size)
        return mixt__fail(MIXT_ERROR_DATA, "the model makes %lld logits of a token, the vocabulary has %lld tokens",
                          (long long)j->writer.row, (long long)j->tokenizer->size);
    j->logits = mixt__alloc_uninit((size_t)(j->o.batch * j->o.beams * j->writer.row) * sizeof *j->logits);
    return j->logits ? MIXT_OK : no_memory();
}

static mixt_status read_batch(job *j, const sentence *batch, int64_t count)
{
    int64_t most = 1;
    for (int64_t i = 0; i < count; i++)
        most = batch[i].length > most ? batch[i].length : most;
    int64_t source = round_up(j, most);
    memset(j->tokens, 0, (size_t)(j->o.batch * source) * sizeof *j->tokens);
    for (int64_t i = 0; i < j->o.batch; i++) {
        j->lengths[i] = i < count ? (int32_t)batch[i].length : 1;
        if (i < count)
            memcpy(j->tokens + i * source, batch[i].tokens, (size_t)batch[i].length * sizeof *j->tokens);
    }
    int64_t context = longest_of(source);
    MIXT_TRY(mixt__writer_read(&j->writer, source, j->tokens, j->lengths, context < j->places ? context : j->places));
    return take_logits(j);
}

static mixt_status translate_batch(job *j, const sentence *batch, int64_t count)
{
    int64_t longest[BATCH_MAX] = {0};
    for (int64_t i = 0; i < count; i++)
        longest[i] = longest_of(batch[i].length);
    MIXT_TRY(read_batch(j, batch, count));
    mixt__beams_start(j->beams, longest);
    while (!mixt__beams_done(j->beams)) {
        mixt__beams_newest(j->beams, j->newest);
        MIXT_TRY(mixt__writer_next(&j->writer, j->newest, mixt__beams_length(j->beams), j->logits));
        mixt__beams_step(j->beams, j->logits, j->writer.row);
        if (!mixt__beams_done(j->beams))
            MIXT_TRY(mixt__writer_move(&j->writer, mixt__beams_from(j->beams), mixt__beams_length(j->beams)));
    }
    return MIXT_OK;
}

/* ---- text ---- */

/** Tokens as text in memory of malloc's. */
static mixt_status to_text(const mixt_tokenizer *tokenizer, const int32_t *tokens, int64_t count, char **text)
{
    mixt_decoder *decoder;
    const char *part;
    int64_t size, used = 0;
    *text = NULL;
    MIXT_TRY(mixt_decoder_new(tokenizer, false, &decoder));
    mixt_status status = mixt_decoder_put(decoder, tokens, count, &part, &size);
    if (status == MIXT_OK && (*text = malloc((size_t)size + 8))) {
        memcpy(*text, part, (size_t)size);
        used = size;
        status = mixt_decoder_end(decoder, &part, &size); // of half a character three bytes
        if (status == MIXT_OK)
            memcpy(*text + used, part, (size_t)size);
        (*text)[used + (status == MIXT_OK ? size : 0)] = '\0';
    } else if (status == MIXT_OK) {
        status = no_memory();
    }
    mixt_decoder_free(decoder);
    return status;
}

static mixt_status take_results(const job *j, const sentence *batch, int64_t count, mixt_translation *translations)
{
    for (int64_t i = 0; i < count; i++) {
        mixt_translation *t = &translations[batch[i].number];
        int64_t length;
        bool whole;
        const int32_t *tokens = mixt__beams_best(j->beams, i, &length, &t->score, &whole);
        if (t->score == -INFINITY)
            return mixt__fail(MIXT_ERROR_DATA,
                              "outputs of the model are not finite: its weights are damaged or diverged");
        t->cut = batch[i].cut || !whole;
        MIXT_TRY(to_text(j->tokenizer, tokens, length, &t->text));
    }
    return MIXT_OK;
}

static int by_length(const void *a, const void *b)
{
    const sentence *x = a, *y = b;
    if (x->length != y->length)
        return x->length < y->length ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static mixt_status tell(const job *j, int64_t done, int64_t count)
{
    mixt_progress p = mixt__progress(MIXT_PROGRESS_STEP, "translating");
    p.unit = "sentences";
    p.done = done;
    p.total = count;
    return mixt__tell((mixt__teller){j->o.progress, j->o.user}, &p);
}

/** Translates all sentences that have tokens, shortest first. `sentences` change their order. */
static mixt_status translate_all(job *j, sentence *sentences, int64_t count, mixt_translation *translations)
{
    int64_t done = 0;
    qsort(sentences, (size_t)count, sizeof *sentences, by_length);
    while (done < count && !sentences[done].length) {
        translations[sentences[done].number].text = calloc(1, 1);
        if (!translations[sentences[done++].number].text)
            return no_memory();
    }
    if (done < count)
        MIXT_TRY(take_room(j, count - done));
    while (done < count) {
        int64_t some = count - done < j->o.batch ? count - done : j->o.batch;
        for (int64_t i = done; i < done + some; i++)
            if (sentences[i].length > j->places) {
                sentences[i].length = j->places;
                sentences[i].cut = true;
            }
        MIXT_TRY(translate_batch(j, sentences + done, some));
        MIXT_TRY(take_results(j, sentences + done, some, translations));
        done += some;
        MIXT_TRY(tell(j, done, count));
    }
    return MIXT_OK;
}

void mixt_translations_free(mixt_translation *translations, int64_t count)
{
    for (int64_t i = 0; translations && i < count; i++) {
        free(translations[i].text);
        translations[i].text = NULL;
    }
}

/* ---- sentences of a caller ---- */

/** Tokens of all sentences, one behind the other; `begin` says where. */
static mixt_status encode_all(const mixt_tokenizer *tokenizer, const char *const *texts, int64_t count,
                              mixt__tokens *tokens, int64_t *begin)
{
    void *worker;
    MIXT_TRY(tokenizer->kind->worker_new(tokenizer, &worker));
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; i < count && status == MIXT_OK; i++) {
        begin[i] = tokens->count;
        status = texts[i]
                     ? tokenizer->kind->encode(tokenizer, worker, (const unsigned char *)texts[i],
                                               (int64_t)strlen(texts[i]), tokens)
                     : mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_translate: sentence %lld must not be NULL", (long long)i);
    }
    begin[count] = tokens->count;
    tokenizer->kind->worker_free(worker);
    return status;
}

static mixt_status translate_texts(job *j, const char *const *texts, int64_t count, mixt_translation *translations)
{
    mixt__tokens tokens = {0};
    int64_t *begin = mixt__alloc((size_t)(count + 1) * sizeof *begin);
    sentence *sentences = mixt__alloc((size_t)count * sizeof *sentences);
    mixt_status status = begin && sentences ? encode_all(j->tokenizer, texts, count, &tokens, begin) : no_memory();
    if (status == MIXT_OK) {
        for (int64_t i = 0; i < count; i++)
            sentences[i] = (sentence){(const int32_t *)tokens.ids + begin[i], begin[i + 1] - begin[i], i, false};
        status = translate_all(j, sentences, count, translations);
    }
    mixt__free(begin);
    mixt__free(sentences);
    mixt__tokens_free(&tokens);
    return status;
}

mixt_status mixt_translate(mixt_trainer *trainer, const mixt_tokenizer *tokenizer, const char *const *sentences,
                           int64_t count, const mixt_translate_options *options, mixt_translation *translations)
{
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__context_note(trainer->context, mixt__need_open(tokenizer, "tokenizer")));
    if (count < 0 || (count && (!sentences || !translations)))
        return mixt__context_note(trainer->context,
                                  mixt__fail(MIXT_ERROR_ARGUMENT,
                                             "mixt_translate: %lld sentences: expected a count from 0, the sentences, "
                                             "and room for their translations",
                                             (long long)count));
    job j;
    if (count)
        memset(translations, 0, (size_t)count * sizeof *translations);
    mixt_status status = open_job(&j, trainer, tokenizer, options);
    if (status == MIXT_OK && count)
        status = translate_texts(&j, sentences, count, translations);
    close_job(&j);
    if (status != MIXT_OK)
        mixt_translations_free(translations, count);
    return mixt__context_note(trainer->context, status);
}

/* ---- sentences of a set ---- */

/** A set's sentences and what they should become. */
typedef struct pairs {
    int32_t *source;     // (samples, seq)
    sentence *sentences; // (samples)
    const char **texts;  // (samples) of translations, which are not owned
    char **references;   // (samples) owned
    mixt_translation *translations;
    int64_t count;
} pairs;

static void free_pairs(pairs *p)
{
    mixt_translations_free(p->translations, p->count);
    for (int64_t i = 0; p->references && i < p->count; i++)
        free(p->references[i]);
    mixt__free(p->source);
    mixt__free(p->sentences);
    mixt__free(p->texts);
    mixt__free(p->references);
    mixt__free(p->translations);
}

static mixt_status check_data(const mixt_data *data)
{
    const mixt_data_info *info = mixt_data_describe(data);
    if (info->array_count == 4 && !strcmp(info->arrays[0].name, "source") && !strcmp(info->arrays[3].name, "target") &&
        info->arrays[0].rank == 1 && info->arrays[3].rank == 1)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: these are not sentences and their translations", info->path);
}

static mixt_status read_pair(const mixt_data *data, const mixt_tokenizer *tokenizer, int64_t i, char *input,
                             int32_t *target, pairs *p)
{
    const mixt_data_array *arrays = mixt_data_describe(data)->arrays;
    int64_t seq = arrays[0].elements, valid, length = 0;
    MIXT_TRY(mixt_data_read(data, i, 1, input, target, &valid));
    memcpy(p->source + i * seq, input + mixt_data_array_at(data, 1, 0), (size_t)seq * sizeof *p->source);
    int32_t source_length = *(const int32_t *)(const void *)(input + mixt_data_array_at(data, 1, 1));
    p->sentences[i] = (sentence){p->source + i * seq, source_length, i, false};
    while (length < arrays[3].elements && target[length] >= 0)
        length++;
    length -= length && target[length - 1] == tokenizer->special.end;
    return to_text(tokenizer, target, length, &p->references[i]);
}

static mixt_status read_pairs(const mixt_data *data, const mixt_tokenizer *tokenizer, pairs *p)
{
    const mixt_data_info *info = mixt_data_describe(data);
    size_t n = (size_t)info->samples;
    *p = (pairs){.count = info->samples};
    p->source = mixt__alloc(n * (size_t)info->arrays[0].elements * sizeof *p->source);
    p->sentences = mixt__alloc(n * sizeof *p->sentences);
    p->texts = mixt__alloc(n * sizeof *p->texts);
    p->references = mixt__alloc(n * sizeof *p->references);
    p->translations = mixt__alloc(n * sizeof *p->translations);
    char *input = mixt__alloc(mixt_data_input_bytes(data, 1));
    int32_t *target = mixt__alloc(mixt_data_target_bytes(data, 1));
    mixt_status status = MIXT_OK;
    if (!p->source || !p->sentences || !p->texts || !p->references || !p->translations || !input || !target)
        status = no_memory();
    for (int64_t i = 0; i < p->count && status == MIXT_OK; i++)
        status = read_pair(data, tokenizer, i, input, target, p);
    mixt__free(input);
    mixt__free(target);
    return status;
}

static mixt_status score(mixt_trainer *trainer, const mixt_tokenizer *tokenizer, const mixt_data *data,
                         const mixt_translate_options *options, mixt_bleu *bleu)
{
    pairs p = {0};
    job j = {0};
    MIXT_TRY(check_data(data));
    mixt_status status = open_job(&j, trainer, tokenizer, options);
    if (status == MIXT_OK)
        status = read_pairs(data, tokenizer, &p);
    if (status == MIXT_OK)
        status = translate_all(&j, p.sentences, p.count, p.translations);
    for (int64_t i = 0; i < p.count && status == MIXT_OK; i++)
        p.texts[i] = p.translations[i].text;
    if (status == MIXT_OK)
        status = mixt_bleu_of(p.texts, (const char *const *)p.references, p.count, bleu);
    close_job(&j);
    free_pairs(&p);
    return status;
}

mixt_status mixt_translate_score(mixt_trainer *trainer, const mixt_tokenizer *tokenizer, const mixt_data *data,
                                 const mixt_translate_options *options, mixt_bleu *bleu)
{
    MIXT_TRY(mixt__need(bleu));
    *bleu = (mixt_bleu){0};
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__context_note(trainer->context, mixt__need_open(tokenizer, "tokenizer")));
    MIXT_TRY(mixt__context_note(trainer->context, mixt__need_made(data, "data")));
    return mixt__context_note(trainer->context, score(trainer, tokenizer, data, options, bleu));
}
