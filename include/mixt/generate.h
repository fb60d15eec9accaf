/* How does a language model write? Tokens in, one token after another out.
 *
 * The model is any function over tokens (B, T) whose attention is causal, that finds places with
 * mixt_embedding_positions, or whose memory is mixt_lstm, mixt_gru or mixt_rnn. Keys, values and recurrent states are
 * kept from token to token, so that one more costs the products of one token and a look at what came before, not the
 * whole text again.
 */
#ifndef MIXT_GENERATE_H
#define MIXT_GENERATE_H

#include "mixt/tokenizer.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_generator mixt_generator;

typedef struct mixt_generator_options {
    size_t struct_size;
    const char *weights;       /**< .safetensors file with every parameter of the model; required */
    const char *precision;     /**< "fp32" (default), "tf32", "fp16", "bf16", or a policy file */
    const mixt_policy *policy; /**< in place of precision: copied; default NULL */
    int64_t context; /**< tokens that attention looks back at most, the model's positions at most; default 256 */
} mixt_generator_options;
MIXT_API void mixt_generator_options_default(mixt_generator_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_generator_options .struct_size = sizeof(mixt_generator_options), .context = 256
/** A generator that the context of the model owns. @param generator set to NULL on failure. */
MIXT_API mixt_status mixt_generator_new_with(mixt_model *model, const mixt_generator_options *options,
                                             mixt_generator **generator);
#ifndef __cplusplus
/** mixt_generator_new(model, .weights = "model.safetensors", .context = 1024) */
#define mixt_generator_new(...)                                                                                        \
    MIXT_MADE(mixt_generator, mixt_generator_new_with, MIXT_OPTIONS_FIRST(__VA_ARGS__, 0),                             \
              MIXT_OPTIONS_AT(mixt_generator_options, MIXT_OPTIONS_REST(__VA_ARGS__, )))
#endif

/**
 * A generator with the language model that a run has trained, in the run's precision and with its data.seq as context,
 * and the tokenizer of its texts. Neither the run's data nor the folder of its vocabulary is needed: its directory has
 * a copy (vocab/). A folder of a Hugging Face model (gpt2, llama) is taken as it stands, in FP32, with its positions as
 * context, 2048 at most.
 * @param folder of the run: see mixt/run.h.
 * @param weights "final", "best", "last", or the number of a checkpoint.
 * @param generator belongs to the context; only tokens that the tokenizer has a text for are drawn.
 * @param tokenizer to be closed with mixt_tokenizer_close; NULL on failure, for a folder without one, and for a run on
 *   ready tokens whose vocabulary nobody named.
 * @return MIXT_ERROR_UNSUPPORTED for a model that cannot write on; MIXT_ERROR_DATA where model and vocabulary do not
 *   belong together.
 */
MIXT_API mixt_status mixt_generator_load(mixt_context *context, const char *folder, const char *weights,
                                         mixt_generator **generator, mixt_tokenizer **tokenizer);

/** A line for people about the weights of a folder that another program wrote: it has tensors that the model here does
 *  not have, and may be another model. Valid as long as the generator; "": there is nothing to warn of. */
MIXT_API const char *mixt_generator_warning(const mixt_generator *generator);

/** How the next token is drawn. Zero-initialised: the most probable one, always. */
typedef struct mixt_sampling {
    double temperature; /**< logits are divided by it; 0: the most probable token */
    int64_t top_k;      /**< draw among the k most probable only; 0: all */
    double top_p;       /**< then among the fewest whose probabilities sum to p at least; 0 or 1: all */
    uint64_t seed;      /**< the same seed, prompt and weights give the same tokens */
} mixt_sampling;

/** Begins a text: forgets the one before and reads these tokens. At least one; of a prompt longer than the context,
 *  attention reads only the end, a recurrent layer all. */
MIXT_API mixt_status mixt_generator_start(mixt_generator *generator, const int32_t *tokens, int64_t count);
/** Draws the next token of the text and adds it. When the context is full, attention forgets the older half of it. */
MIXT_API mixt_status mixt_generator_next(mixt_generator *generator, const mixt_sampling *sampling, int32_t *token);
/** Logits of the token that comes next, `vocab` numbers: valid until the next call. */
MIXT_API mixt_status mixt_generator_logits(mixt_generator *generator, const float **logits, int64_t *vocab);

/* ---- stopping at a text ---- */

/** Looks for texts that end an answer in one that comes piece by piece, and holds back what may be their beginning. */
typedef struct mixt_stops mixt_stops;

/** @param texts of `count`, copied; empty ones are left out. @param stops NULL on failure. */
MIXT_API mixt_status mixt_stops_new(const char *const *texts, int64_t count, mixt_stops **stops);
/** NULL is allowed. */
MIXT_API void mixt_stops_free(mixt_stops *stops);
/**
 * Takes the next piece.
 * @param text set to what can be shown now, `size` bytes; valid until the next call.
 * @param found set where a stop has come: the text ends in front of it.
 */
MIXT_API mixt_status mixt_stops_put(mixt_stops *stops, const char *piece, int64_t length, const char **text,
                                    int64_t *size, bool *found);
/** What was held back when no more comes. Another text may follow. */
MIXT_API mixt_status mixt_stops_end(mixt_stops *stops, const char **text, int64_t *size);

#ifdef __cplusplus
}
#endif
#endif
