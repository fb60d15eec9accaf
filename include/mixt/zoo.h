/* Which ready models are there? Architectures by name, made to fit a data set.
 *
 *   mixt_model *model = mixt_zoo_model(context, "gpt", data, .layers = 4, .width = 256);
 *
 * Sizes that are left out are the model's own; classes, vocabulary and positions follow the data.
 */
#ifndef MIXT_ZOO_H
#define MIXT_ZOO_H

#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a model reads. */
typedef enum mixt_zoo_input {
    MIXT_ZOO_NUMBERS, /**< images or rows of numbers */
    MIXT_ZOO_IMAGES,  /**< (height, width, channels) */
    MIXT_ZOO_TOKENS,
    MIXT_ZOO_FRAMES,    /**< (frames, features), as recordings are */
    MIXT_ZOO_CLIPS,     /**< (frames, height, width, channels) */
    MIXT_ZOO_PAIRS,     /**< a user and an item */
    MIXT_ZOO_SENTENCES, /**< sentences and their translations */
    MIXT_ZOO_TEXTS,     /**< tokens of different lengths, with a class */
    MIXT_ZOO_CAPTIONS,  /**< pictures and what is said of them */
    MIXT_ZOO_FILE,      /**< what the model's file says: "net.onnx" */
} mixt_zoo_input;

typedef struct mixt_zoo_info {
    const char *name, *summary; /**< "gpt"; one line */
    mixt_zoo_input input;
    bool bidirectional; /**< reads the tokens to come as well: it fills gaps and cannot write on */
    int64_t tokens;     /**< tokens in a sample where nothing else is asked for; 0: it takes none */
} mixt_zoo_info;

/** The models in the order of the table: false past the last. */
MIXT_API bool mixt_zoo_at(int64_t index, mixt_zoo_info *info);
/** The model of a name; MIXT_ERROR_CONFIG with the names that there are, and a guess which was meant. */
MIXT_API mixt_status mixt_zoo_find(const char *name, mixt_zoo_info *info);

enum { MIXT_ZOO_SIZES_MAX = 32 };

/** A size that a model has. */
typedef struct mixt_zoo_size {
    const char *name;     /**< as in mixt_zoo_options: "width" */
    const char *fallback; /**< its default: "384", "512, 512", "none"; "": it follows the data or another size */
} mixt_zoo_size;
/** The sizes that may be chosen for a model. Returns how many were written; 0 for a name that there is not. */
MIXT_API int mixt_zoo_sizes(const char *model, mixt_zoo_size sizes[MIXT_ZOO_SIZES_MAX]);

/** Sizes of a model. Of a count, and of rope_low, rope_high and rope_original, 0 is "not given": the model's own, or as
 *  the data has it. A size that the model does not have is an error. */
typedef struct mixt_zoo_options {
    size_t struct_size;
    const int64_t *hidden; /**< mlp, ncf, vgg, c3d, speech: widths of hidden layers, at most 16; copied */
    int64_t hidden_count;
    const int64_t
        *channels; /**< convnet, speech, pair: of each convolution, at most 16; c3d: of each stage, at most 5; copied */
    int64_t channel_count;
    int64_t layers, width, heads; /**< transformers, lstm, gru, rnn, speech, pair; width: also resnet, mf, ncf */
    int64_t vocab;                /**< tokens; default: the data's */
    int64_t depth;                /**< resnet, vgg */
    int64_t classes;              /**< outputs; default: the data's classes, or values of a target */
    int64_t seq;                  /**< positions that a transformer can tell apart */
    float dropout;                /**< share of activations that is left out in training; default 0 */
    const char *norm;             /**< "none", "batch" or "layer" */
    const char *shortcut;         /**< resnet: "projection" or "pad" where a block changes the shape */
    bool zero_init;               /**< resnet: the last norm of each block begins at 0 */
    int64_t kv_heads;             /**< llama: heads of keys and values, a divisor of heads; default: as many */
    int64_t inner;     /**< llama: width of a block's perceptron; default: 8/3 of width, whole blocks of 64 */
    bool tied;         /**< llama: the output head is the embedding */
    double rope_theta; /**< llama: as mixt_rotary_options has them, above 0; default MIXT_AUTO: 10000 … */
    double rope_factor, rope_low, rope_high, rope_original; /**< … and 0 */
    double eps;            /**< llama: of the norms, above 0; default MIXT_AUTO: 1e-5 */
    float penalty;         /**< mf, ncf: weight in the loss of the squares of a rating's factors and biases */
    const char *pool;      /**< bert_classify: "first" ([CLS]) or "mean" (of the tokens) stands for a text */
    float label_smoothing; /**< share of the target spread over all classes; default 0; not for values */
    int64_t head_dim;      /**< decoders (llama, mistral, qwen2, …): numbers of a head; default: width / heads */
    int64_t window;        /**< mistral, qwen2, qwen3, phi3, gemma2, gemma3: tokens that attention sees; default: all */
    int64_t full_every;    /**< gemma2, gemma3: each of these layers has no window; default 2, 6 */
    int64_t nope_every;    /**< smollm3: each of these layers has no positions; default 4 */
    double softcap;        /**< gemma2: scores s become softcap · tanh(s / softcap); default 0: they stay */
    double logit_cap;      /**< gemma2, gemma3: the same of logits */
    double query_scale;    /**< gemma2, gemma3: scores are divided by its root; default 0: head_dim */
    int64_t rope_dim;      /**< phi3: numbers of a head that have positions; default: all */
    double rope_local;     /**< gemma3: rope_theta of layers with a window; default 0: 10000 */
    double rope_magnitude; /**< phi3: cosines and sines are multiplied by it; default 0: 1 */
    const float *rope_short; /**< phi3: (rope_pairs) divisors of frequencies in texts up to rope_original; copied */
    const float *rope_long;  /**< the same for longer texts */
    int64_t rope_pairs;      /**< half of rope_dim; default 0: frequencies have no divisors of their own */
} mixt_zoo_options;
MIXT_API void mixt_zoo_options_default(mixt_zoo_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_zoo_options                                                                                 \
    .struct_size = sizeof(mixt_zoo_options), .rope_theta = MIXT_AUTO, .eps = MIXT_AUTO

/**
 * A model for samples like those of `data`, with cross-entropy for classes and tokens, mean squared error for values
 * and CTC for texts of recordings. It belongs to the context.
 * @param data only looked at.
 * @param options NULL: all defaults.
 * @param model set to NULL on failure.
 */
MIXT_API mixt_status mixt_zoo_model_with(mixt_context *context, const char *name, const mixt_data *data,
                                         const mixt_zoo_options *options, mixt_model **model);
#ifndef __cplusplus
/** mixt_zoo_model(context, "mlp", data, .dropout = 0.1f): what is not named has its default. */
#define mixt_zoo_model(context, name, ...)                                                                             \
    MIXT_MADE(mixt_model, mixt_zoo_model_with, (context), (name), MIXT_OPTIONS_FIRST(__VA_ARGS__, 0),                  \
              MIXT_OPTIONS_AT(mixt_zoo_options, MIXT_OPTIONS_REST(__VA_ARGS__, )))
#endif

#ifdef __cplusplus
}
#endif
#endif
