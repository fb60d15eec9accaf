/* A translator of one's own: an encoder, a recurrent decoder that looks at it, and beam search by mixt.
 *
 * The model is one function. Where sentences were read before, it finds what it made of them as the input "memory";
 * a second function returns just that. The sentences are numbers in words, translated from English to German.
 */
#include <mixt/mixt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 48, PLACES = 48, SENTENCES = 400, WORDS = 10, TOKENS = 300, TABLE = 320, STEPS = 300 };

static const char *const words[2][WORDS] = {
    {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"},
    {"null", "eins", "zwei", "drei", "vier", "fuenf", "sechs", "sieben", "acht", "neun"},
};

/** The whole model: logits (B · beams, T, TABLE). @param memory what the decoder looks at, (B, S, WIDTH) */
static mixt_value translator(mixt_builder *b, mixt_value *memory)
{
    mixt_value source = mixt_input(b, "source"), previous = mixt_input(b, "previous");
    mixt_value places = mixt_param(b, "places", .rank = 2, .dims = {PLACES, WIDTH}, .normal = 0.1f);
    mixt_value x = mixt_embedding(b, "source", source, .count = TABLE, .features = WIDTH, .init = 0.1f);
    x = mixt_add(b, x, mixt_embedding_positions(b, places, source));
    *memory = mixt_layer_norm(b, "read", mixt_add(b, x, mixt_gelu(b, mixt_linear(b, "mix", x, .features = WIDTH))));
    mixt_value seen = mixt_builder_has_input(b, "memory") ? mixt_input(b, "memory") : *memory;

    mixt_value y = mixt_embedding(b, "previous", previous, .count = TABLE, .features = WIDTH, .init = 0.1f);
    y = mixt_gru(b, "write", y, .features = WIDTH); // (B · beams, T, WIDTH): its states are kept from token to token
    int64_t rows = mixt_value_dim(b, y, 0), length = mixt_value_dim(b, y, 1), batch = mixt_value_dim(b, seen, 0);
    mixt_value q = mixt_reshape(b, mixt_linear(b, "ask", y, .features = WIDTH), 3, (int64_t[]){batch, -1, WIDTH});
    mixt_value k = mixt_linear(b, "key", seen, .features = WIDTH), v = mixt_linear(b, "value", seen, .features = WIDTH);
    mixt_value found = mixt_attention(b, q, k, v, .heads = 2, .lengths = mixt_input(b, "source.length"));
    y = mixt_add(b, y, mixt_reshape(b, found, 3, (int64_t[]){rows, length, WIDTH}));
    y = mixt_add(b, y, mixt_gelu(b, mixt_linear(b, "think", mixt_layer_norm(b, "norm", y), .features = WIDTH)));
    return mixt_linear(b, "say", y, .features = TABLE);
}

static mixt_value model_fn(mixt_builder *b, mixt_value x)
{
    mixt_value memory;
    (void)x;
    return translator(b, &memory);
}

static mixt_value read_fn(mixt_builder *b, mixt_value x)
{
    mixt_value memory;
    (void)x;
    (void)translator(b, &memory);
    return memory;
}

/** Sentence i in a language: one to four numbers. */
static void sentence(int i, int language, char *text, size_t room)
{
    int count = 1 + i % 4, digits = i / 4 * 37 + 11;
    text[0] = '\0';
    for (int k = 0; k < count; k++, digits = digits / 10 + i * (k + 3))
        snprintf(text + strlen(text), room - strlen(text), "%s%s", k ? " " : "", words[language][digits % 10]);
}

static mixt_status write_sentences(const char *path, int language)
{
    char text[80];
    FILE *file = fopen(path, "w");
    for (int i = 0; file && i < SENTENCES; i++) {
        sentence(i, language, text, sizeof text);
        fprintf(file, "%s\n", text);
    }
    return file && fclose(file) == 0 ? MIXT_OK : mixt_fail(MIXT_ERROR_FILE, "%s: cannot be written", path);
}

/** Data and vocabulary in a folder that is removed at the end. */
typedef struct set {
    char folder[32], english[64], german[64], vocab[64], spec[64];
    mixt_data *data;
    mixt_tokenizer *tokenizer;
} set;

static mixt_status make_set(set *s)
{
    memcpy(s->folder, "/tmp/own_translator.XXXXXX", 27);
    if (!mkdtemp(s->folder))
        return mixt_fail(MIXT_ERROR_FILE, "%s: no such folder can be made", s->folder);
    snprintf(s->english, sizeof s->english, "%s/train.en", s->folder);
    snprintf(s->german, sizeof s->german, "%s/train.de", s->folder);
    snprintf(s->vocab, sizeof s->vocab, "%s/vocab", s->folder);
    snprintf(s->spec, sizeof s->spec, "parallel:%s", s->folder);
    mixt_status status = write_sentences(s->english, 0);
    if (status == MIXT_OK)
        status = write_sentences(s->german, 1);
    if (status == MIXT_OK)
        status = mixt_tokenizer_train((const char *const[]){s->english, s->german}, 2, TOKENS, s->vocab, false, NULL,
                                      NULL, NULL);
    if (status == MIXT_OK)
        status = mixt_tokenizer_open(NULL, s->vocab, &s->tokenizer);
    if (status == MIXT_OK)
        status = mixt_data_open(s->spec, &s->data, .split = "all", .seq = PLACES, .source_name = "en",
                                .target_name = "de", .vocab = s->vocab);
    return status;
}

static void remove_set(set *s)
{
    char path[96];
    const char *const files[] = {"train.en", "train.de", "vocab/encoder.json", "vocab/vocab.bpe", "vocab", ""};
    mixt_data_close(s->data);
    mixt_tokenizer_close(s->tokenizer);
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/%s", s->folder, files[i]);
        remove(path);
    }
}

int main(void)
{
    set s = {.data = NULL};
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_model *model = mixt_model_new(context, model_fn, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *trainer = mixt_trainer_new(model, .precision = "bf16", .batch = 40, .lr = 0.005f);
    mixt_translate_options options =
        MIXT_OPTIONS(mixt_translate_options, .read = read_fn, .positions = PLACES, .beams = 3);
    const char *english = "seven one two nine";
    mixt_translation german = {.text = NULL};
    mixt_bleu bleu = {.score = 0};
    mixt_status status = make_set(&s);
    for (int i = 0; i < STEPS && status == MIXT_OK; i++)
        status = mixt_trainer_step(trainer, s.data, NULL);
    if (status == MIXT_OK)
        status = mixt_translate_score(trainer, s.tokenizer, s.data, &options, &bleu);
    if (status == MIXT_OK)
        status = mixt_translate(trainer, s.tokenizer, &english, 1, &options, &german);
    if (status == MIXT_OK) {
        printf("%s: %s (BLEU over all sentences: %.1f)\n", english, german.text, bleu.score);
        status = bleu.score > 90 ? MIXT_OK : MIXT_ERROR_INTERNAL;
    } else {
        fprintf(stderr, "own_translator: %s\n", mixt_error_text());
    }
    mixt_translations_free(&german, 1);
    remove_set(&s);
    mixt_close(context);
    return status == MIXT_OK ? 0 : 1;
}
