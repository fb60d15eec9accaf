/* How does a trained model translate, and how good is that? Beam search with seq2seq of the zoo or with an encoder and
 * decoder of one's own, and BLEU.
 *
 *   mixt_tokenizer_open(NULL, "runs/en-de/vocab", &tokenizer);
 *   mixt_translate(mixt_run_trainer(run), tokenizer, sentences, count, NULL, translations);
 *   mixt_bleu_of(texts, references, count, &bleu);
 */
#ifndef MIXT_TASKS_TRANSLATE_H
#define MIXT_TASKS_TRANSLATE_H

#include "mixt/data.h"
#include "mixt/tokenizer.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MIXT_BEAMS_MAX = 64 }; /**< texts that are followed at once, at most */

typedef struct mixt_translate_options {
    size_t struct_size;
    int64_t beams; /**< texts that are followed at once, 1 to MIXT_BEAMS_MAX; default 5; 1: the most probable token at
                      each step */
    double length_penalty;      /**< scores are divided by length^this: 0 favours short texts; default 1 */
    int64_t batch;              /**< sentences at once; default 64 */
    mixt_progress_fn *progress; /**< hears of sentences done and in all; default NULL: nobody does */
    void *user;                 /**< for it */
    /** Of a model of one's own, whose data are as of kind parallel ("source" (B, S), "source.length" (B), "previous"
     *  (B, T)): a function of the same inputs, parameters and `user` that returns what the decoder looks at in
     *  sentences, (B, S, any). It makes the whole model; what is not returned is not computed. Default NULL: the model
     *  is seq2seq of the zoo. */
    mixt_model_fn read;
    /** Beside read: makes the logits of the next token, (B · beams, 1, tokens), from "previous" (B · beams, 1), what
     *  read returned, as the input "memory" (B, S, any), "source" and "source.length". What came before is found by
     *  causal mixt_attention and recurrent layers, and its place by mixt_embedding_positions, as in mixt/generate.h.
     *  Default NULL: the model's own function, which looks for "memory" with mixt_builder_has_input. */
    mixt_model_fn write;
    int64_t positions; /**< beside read: tokens of a sentence and of its translation at most; required there */
} mixt_translate_options;
MIXT_API void mixt_translate_options_default(mixt_translate_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_translate_options                                                                           \
    .struct_size = sizeof(mixt_translate_options), .beams = 5, .length_penalty = 1, .batch = 64

typedef struct mixt_translation {
    char *text;   /**< UTF-8, without a line's end; of an empty sentence "" */
    double score; /**< log-probability, the end's included, over length^penalty; of an empty sentence 0 */
    bool cut; /**< the sentence has more tokens than the model has places, or the translation would: it ends there */
} mixt_translation;

/**
 * Translates sentences.
 * @param trainer of a model seq2seq, or of one that the options describe, compiled, with trained weights
 *   (mixt_run_trainer of a loaded run).
 * @param tokenizer of the run's vocabulary; it has a token that ends a text.
 * @param sentences each ends with a zero byte; a line's end in them is a character like others.
 * @param options NULL: the defaults.
 * @param translations room for `count`; filled, to be freed with mixt_translations_free; nothing on failure.
 */
MIXT_API mixt_status mixt_translate(mixt_trainer *trainer, const mixt_tokenizer *tokenizer,
                                    const char *const *sentences, int64_t count, const mixt_translate_options *options,
                                    mixt_translation *translations);
/** Frees the texts. NULL is allowed. */
MIXT_API void mixt_translations_free(mixt_translation *translations, int64_t count);

/** BLEU of a corpus, as sacrebleu has it by default. */
typedef struct mixt_bleu {
    double score;         /**< 0 to 100 */
    double precisions[4]; /**< of one to four words, in percent, smoothed where nothing fits */
    double brevity;       /**< factor for translations that are shorter than the references, 0 to 1 */
    int64_t words, reference_words;
    int64_t sentences;
} mixt_bleu;

/**
 * Compares translations with one reference each: words as tokenizer "13a" of sacrebleu cuts them, with upper and lower
 * case, exponential smoothing.
 * @param texts, references `count` of each.
 */
MIXT_API mixt_status mixt_bleu_of(const char *const *texts, const char *const *references, int64_t count,
                                  mixt_bleu *bleu);

/**
 * Translates all sentences of a set of kind parallel and compares them with its translations.
 * @param options as of mixt_translate.
 */
MIXT_API mixt_status mixt_translate_score(mixt_trainer *trainer, const mixt_tokenizer *tokenizer, const mixt_data *data,
                                          const mixt_translate_options *options, mixt_bleu *bleu);

#ifdef __cplusplus
}
#endif
#endif
