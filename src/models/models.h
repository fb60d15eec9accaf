/* The model zoo: a table of architectures, the sizes a user may choose, and how both meet the data.
 *
 * A model is a plain mixt_model_fn that finds its sizes through mixt_builder_user. Sizes that are 0 take the model's
 * own default; classes, vocabulary and positions follow the data. After mixt__zoo_model every size that the model uses
 * is filled in and has been checked, so the functions themselves check nothing.
 */
#ifndef MIXT_MODELS_MODELS_H
#define MIXT_MODELS_MODELS_H

#include "mixt/data.h"
#include "model/model.h"

typedef struct mixt__onnx mixt__onnx; // onnx/onnx.h: a model that is a file

enum { MIXT_SIZES_MAX = 16, MIXT_ROPE_PAIRS_MAX = 256, MIXT_VOCAB_STEP = 64 }; // hidden layers, convolutions

/** In the order of the choices of the key net.norm. */
typedef enum mixt__model_norm { MIXT_NORM_AUTO, MIXT_NORM_NONE, MIXT_NORM_BATCH, MIXT_NORM_LAYER } mixt__model_norm;

/** In the order of the choices of the key net.shortcut. */
typedef enum mixt__model_shortcut {
    MIXT_SHORTCUT_AUTO,
    MIXT_SHORTCUT_PROJECTION,
    MIXT_SHORTCUT_PAD
} mixt__model_shortcut;

/** In the order of the choices of the key net.pool: the vector that stands for a text. */
typedef enum mixt__model_pool { MIXT_POOL_AUTO, MIXT_POOL_FIRST, MIXT_POOL_MEAN } mixt__model_pool;

typedef enum mixt__model_input {
    MIXT_MODEL_NUMBERS, // images or rows of numbers
    MIXT_MODEL_IMAGES,
    MIXT_MODEL_CLIPS, // (frames, height, width, channels)
    MIXT_MODEL_TOKENS,
    MIXT_MODEL_FRAMES,    // (frames, features)
    MIXT_MODEL_PAIRS,     // of a user and an item
    MIXT_MODEL_SENTENCES, // and what has been written of their translations
    MIXT_MODEL_CAPTIONS,  // pictures and what is said of them
    MIXT_MODEL_TEXTS,     // tokens of different lengths, with a class
    MIXT_MODEL_FILE,      // what the model's file says
} mixt__model_input;

/** Families of one decoder: rows of the table in decoder.c. */
typedef enum mixt__decoder {
    MIXT_DECODER_LLAMA,
    MIXT_DECODER_MISTRAL,
    MIXT_DECODER_QWEN2,
    MIXT_DECODER_QWEN3,
    MIXT_DECODER_PHI3,
    MIXT_DECODER_SMOLLM3,
    MIXT_DECODER_GEMMA2,
    MIXT_DECODER_GEMMA3,
    MIXT_DECODER_OLMO2
} mixt__decoder;

/** A number for each pair of a head that turns. */
typedef struct mixt__rope_divisors {
    int64_t count;
    float of[MIXT_ROPE_PAIRS_MAX];
} mixt__rope_divisors;

/** What may be chosen about a model. Zero: the model's own, or what the data says. */
typedef struct mixt__model_sizes {
    int64_t hidden[MIXT_SIZES_MAX], channels[MIXT_SIZES_MAX];
    int64_t hidden_count, channel_count;
    int64_t layers, width, heads, vocab, depth, classes;
    int64_t seq;  // positions that the model can tell apart
    int64_t rows; // of the token table: vocab and padding; filled in, never chosen
    float dropout;
    mixt__model_norm norm;
    mixt__model_shortcut shortcut;
    bool zero_init;          // the last norm of a residual block begins at 0
    bool transcribes;        // targets are letters of what is said; filled in, never chosen
    bool prefers;            // data are pairs of answers: models/preference.c; filled in, never chosen
    float beta;              // of those: what a preference is multiplied by
    int64_t kv_heads, inner; // heads of keys and values; width inside the perceptron of a block
    bool tied;               // the output head is the embedding
    double rope_theta, rope_factor, rope_low, rope_high, rope_original; // as mixt_rotary_options has them
    double eps;                                                         // of the norms
    float penalty;                                                      // of the squares of what a rating is made from
    int64_t words, ids, word_width;       // of tables, columns whose words are embedded; filled in, never chosen
    int64_t users, items;                 // of ratings, and their mean; filled in, never chosen
    int64_t user_features, item_features; // the same; 0: there are none
    int64_t days;                         // of users, the same
    float shift;
    mixt__model_pool pool;
    mixt__decoder decoder;                     // filled in, never chosen
    int64_t head_dim;                          // numbers of a head; 0: width / heads
    int64_t window, full_every;                // tokens that attention sees; layers that see all are each full_every-th
    int64_t nope_every;                        // each of these layers has no positions
    double softcap, logit_cap;                 // of scores and of logits; 0: none
    double query_scale;                        // scores are divided by its root; 0: head_dim
    int64_t rope_dim;                          // numbers of a head that turn; 0: all
    double rope_local;                         // theta of layers with a window; 0: rope_theta
    double rope_magnitude;                     // of cosines and sines; 0: 1
    mixt__rope_divisors rope_short, rope_long; // of frequencies, in texts up to rope_original tokens and longer ones
    mixt__onnx *onnx;                          // borrowed: the file that the model is; NULL: it is one of the zoo
    int onnx_loss;                             // of the choices of the key model.loss
} mixt__model_sizes;

/** Which sizes a model uses, a bit of 64 each: setting another is an error. */
#define MIXT_USES_HIDDEN (UINT64_C(1) << 0)
#define MIXT_USES_CHANNELS (UINT64_C(1) << 1)
#define MIXT_USES_LAYERS (UINT64_C(1) << 2)
#define MIXT_USES_WIDTH (UINT64_C(1) << 3)
#define MIXT_USES_HEADS (UINT64_C(1) << 4)
#define MIXT_USES_VOCAB (UINT64_C(1) << 5)
#define MIXT_USES_DEPTH (UINT64_C(1) << 6)
#define MIXT_USES_CLASSES (UINT64_C(1) << 7)
#define MIXT_USES_SEQ (UINT64_C(1) << 8)
#define MIXT_USES_DROPOUT (UINT64_C(1) << 9)
#define MIXT_USES_NORM (UINT64_C(1) << 10)
#define MIXT_USES_SHORTCUT (UINT64_C(1) << 11)
#define MIXT_USES_ZERO_INIT (UINT64_C(1) << 12)
#define MIXT_USES_KV_HEADS (UINT64_C(1) << 13)
#define MIXT_USES_INNER (UINT64_C(1) << 14)
#define MIXT_USES_TIED (UINT64_C(1) << 15)
#define MIXT_USES_ROPE (UINT64_C(31) << 16) // theta, factor, low, high, original
#define MIXT_USES_EPS (UINT64_C(1) << 21)
#define MIXT_USES_PENALTY (UINT64_C(1) << 22)
#define MIXT_USES_POOL (UINT64_C(1) << 23)
#define MIXT_USES_HEAD_DIM (UINT64_C(1) << 24)
#define MIXT_USES_WINDOW (UINT64_C(1) << 25)
#define MIXT_USES_FULL_EVERY (UINT64_C(1) << 26)
#define MIXT_USES_SOFTCAP (UINT64_C(1) << 27)
#define MIXT_USES_LOGIT_CAP (UINT64_C(1) << 28)
#define MIXT_USES_QUERY_SCALE (UINT64_C(1) << 29)
#define MIXT_USES_ROPE_DIM (UINT64_C(1) << 30)
#define MIXT_USES_ROPE_LOCAL (UINT64_C(1) << 31)
#define MIXT_USES_NOPE_EVERY (UINT64_C(1) << 32)
#define MIXT_USES_LONGROPE (UINT64_C(7) << 33) // magnitude, short, long

typedef struct mixt__zoo_entry {
    const char *name, *summary;
    mixt_model_fn fn;
    mixt__model_input input;
    uint64_t uses;           // bits MIXT_USES_…
    mixt__decoder decoder;   // of mixt__model_decoder
    mixt__model_sizes sizes; // defaults
    const char *names;       // family of names in other programs' files (store/names.h); NULL: there is none
    int64_t tokens;          // tokens in a sample where the data leaves that open; 0: the model takes no tokens
    bool own_loss;           // it adds its losses itself
    bool compares;           // its loss holds samples of a pass against each other
    bool either;             // hidden layers take the place of its convolutions
    bool packs;              // it keeps texts that share a row apart
    bool bidirectional;      // also the tokens to come: to predict the next one teaches it nothing
    /** Rules between sizes, and between sizes and data; NULL: none. All defaults are filled in. */
    mixt_status (*check)(const mixt__model_sizes *sizes, const mixt_data_info *data);
} mixt__zoo_entry;

/** Whether a name is that of an ONNX file. */
bool mixt__model_is_file(const char *name);
/** A model that is a file, model=net.onnx: not in the list. */
extern const mixt__zoo_entry mixt__zoo_onnx;

/** Ends with a record whose name is NULL. */
extern const mixt__zoo_entry mixt__zoo[];

/** Whether a model takes such data; else what it wants and what this is. */
mixt_status mixt__model_check_input(const mixt__zoo_entry *entry, const mixt_data_info *data);
/** Whether samples are rows that several texts share, with "positions" beside their tokens. */
bool mixt__model_packed(const mixt_data_info *data);
/** Whether samples are pairs of answers: packed rows of two texts. */
bool mixt__model_prefers(const mixt_data_info *data);
/** Of pairs of answers by how much more than the reference the model prefers the chosen one (B, 1), which is what it is
 *  then trained for; of other data the logits as they are. */
mixt_value mixt__model_margins(mixt_builder *b, const mixt__model_sizes *sizes, mixt_value logits);
/** The place of each token in its own text, INT32 (B, T), where the data has rows that several share; else no value. */
mixt_value mixt__model_places(mixt_builder *b);
/** How many features of this name ratings have; 0: none. */
int64_t mixt__model_features(const mixt_data_info *data, const char *name);
/** The input that numbers the words of a table's columns; NULL: the data is no such table. */
const mixt_data_array *mixt__model_words(const mixt_data_info *data);
/** Days of users that ratings know apart, and one for others; 0: they say nothing of days. */
int64_t mixt__model_days(const mixt_data_info *data);

/** The record of a name, which may be that of a file; the failure lists the names and guesses which was meant. */
mixt_status mixt__model_find(const char *name, const mixt__zoo_entry **entry);

/** The size of a bit MIXT_USES_… by its name, and a model's default for it as text: "" where that follows the
 *  data or another size. NULL past the last. */
const char *mixt__model_size(const mixt__zoo_entry *entry, int bit, char *fallback, size_t room);

/** Attention heads of a width where none were chosen: about 64 numbers each. */
int64_t mixt__model_default_heads(int64_t width);

/** Makes a zoo model for a data set: cross-entropy for classes and tokens, mean squared error for values.
 *  @param sizes what the user chose; filled in. The model points at it: it must live as long. */
mixt_status mixt__zoo_model(const char *name, const mixt_data_info *data, mixt__model_sizes *sizes, mixt__model *model);
/** The same of a file that sizes->onnx has open. */
mixt_status mixt__onnx_model(const char *name, const mixt_data_info *data, mixt__model_sizes *sizes, mixt__model *model);

// The architectures, one file each.

/** (N, …) → (N, classes): linear layers with ReLU between them; words of a table, where there are any, are embedded and
 *  stand beside its numbers. */
mixt_value mixt__model_mlp(mixt_builder *b, mixt_value x);
/** (N, H, W, C) → (N, classes): 3×3 convolution, ReLU, pooling by 2 for each entry of channels; linear. */
mixt_value mixt__model_convnet(mixt_builder *b, mixt_value x);
mixt_status mixt__convnet_check(const mixt__model_sizes *sizes, const mixt_data_info *data);
/** (N, H, W, C) → (N, classes): residual network of the given depth. */
mixt_value mixt__model_resnet(mixt_builder *b, mixt_value x);
mixt_status mixt__resnet_check(const mixt__model_sizes *sizes, const mixt_data_info *data);
/** (N, H, W, C) → (N, classes): VGG of the given depth; `hidden` are the widths of its classifier. */
mixt_value mixt__model_vgg(mixt_builder *b, mixt_value x);
mixt_status mixt__vgg_check(const mixt__model_sizes *sizes, const mixt_data_info *data);
/** (N, D, H, W, C) → (N, classes): stages of 3×3×3 convolutions, one for each entry of channels, pooled; `hidden` are
 * the widths of its classifier. */
mixt_value mixt__model_c3d(mixt_builder *b, mixt_value x);
mixt_status mixt__c3d_check(const mixt__model_sizes *sizes, const mixt_data_info *data);
/** Tokens (B, T) → (B, T, vocab): causal, normalised before each part of a block. */
mixt_value mixt__model_gpt(mixt_builder *b, mixt_value x);
/** The same, seeing both ways and normalised after each part. */
mixt_value mixt__model_bert(mixt_builder *b, mixt_value x);
/** BERT with all its parts, for masked tokens. */
mixt_value mixt__model_bert_mlm(mixt_builder *b, mixt_value x);
/** Its encoder, (B, T, width). @param lengths INT32 (B) of the texts; none: all are whole. @param words the embedding
 */
mixt_value mixt__bert_encode(mixt_builder *b, mixt_value ids, mixt_value lengths, mixt_value *words);
/** The encoder with a head for classes: tokens (B, T) → (B, classes). */
mixt_value mixt__model_bert_classify(mixt_builder *b, mixt_value x);
/** Without the number of positions, which rotary ones do not have. */
mixt_status mixt__heads_check(const mixt__model_sizes *sizes);
mixt_status mixt__transformer_check(const mixt__model_sizes *sizes, const mixt_data_info *data);
/** Tokens (B, T) → (B, T, vocab): causal, with rotary positions and shared heads of keys and values; sizes.decoder says
 *  of which family. */
mixt_value mixt__model_decoder(mixt_builder *b, mixt_value x);
mixt_status mixt__decoder_check(const mixt__model_sizes *sizes, const mixt_data_info *data);
/** Pictures (N, H, W, C), and captions by name → (N, 2 width): both in one space. */
mixt_value mixt__model_pair(mixt_builder *b, mixt_value x);
/** Tokens (B, T) → (B, T, vocab): embedding, stacked LSTM layers, linear. */
mixt_value mixt__model_lstm(mixt_builder *b, mixt_value x);
/** The same with GRU layers, and with plain ones of tanh. */
mixt_value mixt__model_gru(mixt_builder *b, mixt_value x);
mixt_value mixt__model_rnn(mixt_builder *b, mixt_value x);

/** Features (N, T, F) → (N, classes): 3×3 convolutions, each pooled by 2, or with `hidden` a perceptron over windows of
 *  frames; LSTM layers where there are any; the mean over time, linear. Where it transcribes there is no mean: outputs
 *  are (N, T', classes), and its loss is CTC. With "input.length" and "input.mask" beside the features, what lies
 * behind a sample's end is not heard: its outputs are those of the sample alone, and behind its end they say blank. */
mixt_value mixt__model_speech(mixt_builder *b, mixt_value x);
mixt_status mixt__speech_check(const mixt__model_sizes *sizes, const mixt_data_info *data);
/** Frames that it has seen for one of its outputs, and how many lie between the beginnings of two. */
void mixt__speech_window(const mixt__model_sizes *sizes, int64_t *window, int64_t *stride);

/** (N, H, W, C): 3×3 convolution, normalisation, ReLU, pooling by 2 for each entry of channels.
 *  @param mask (N, H) of what counts, made that of the result; none (id 0): all does */
mixt_value mixt__model_conv_stack(mixt_builder *b, mixt_value x, mixt_value *mask);
/** User and item (N), and their features where the data has some → (N, 1): the mean of all ratings, biases, what
 *  features add, and the product of factors. */
mixt_value mixt__model_mf(mixt_builder *b, mixt_value x);
/** The same with hidden layers beside the product. */
mixt_value mixt__model_ncf(mixt_builder *b, mixt_value x);
/** What a user adds to the mean of all ratings, in both. */
#define MIXT_RATINGS_BIAS "user.bias"
/** The array of ids that a parameter of both has a row for each of: "user", "item", "user.day"; NULL: of none. */
const char *mixt__ratings_rows_of(const char *parameter);
mixt_status mixt__ncf_check(const mixt__model_sizes *sizes, const mixt_data_info *data);

/** Sentences (B, S) with their lengths and what comes before each token of their translations (B, T) → (B, T, vocab).
 *  Translations may be several of each sentence, (B · beams, T). With an input "memory", what _read makes of the
 *  sentences, those are not read again. */
mixt_value mixt__model_seq2seq(mixt_builder *b, mixt_value x);
/** What the decoder's layers look at in sentences → (B, S, layers · 2 · width). */
mixt_value mixt__model_seq2seq_read(mixt_builder *b, mixt_value x);

/** The normalisation that the sizes ask for; x itself for none. */
mixt_value mixt__model_norm_layer(mixt_builder *b, const char *name, mixt_value x, mixt__model_norm norm);
/** The same where a mask (N, T) says what of x (N, T, …) counts; none (id 0): all does. */
mixt_value mixt__model_norm_masked(mixt_builder *b, const char *name, mixt_value x, mixt__model_norm norm,
                                   mixt_value mask);

// lengths.c: masks (N, T) of samples of different lengths. None (id 0): all of each sample counts.

/** The mask of windows over time: those that lie inside a sample. */
mixt_value mixt__mask_of_windows(mixt_builder *b, mixt_value mask, int64_t window, int64_t stride);
/** x (N, T, …) with 0 where the mask is. */
mixt_value mixt__masked(mixt_builder *b, mixt_value mask, mixt_value x);
/** (N, T, C) → (N, C): the mean over what counts, in FP32. */
mixt_value mixt__mean_of_masked(mixt_builder *b, mixt_value mask, mixt_value x);

#endif
