/* How do I build a model? By a function from values to a value. Nothing is checked by hand until compile: ops on a
 * failed builder do nothing, and the first error, with layer, shapes and formats, is reported when the model is
 * compiled.
 *
 * Images are (N, H, W, C). Optional arguments are designated initialisers of an options struct; a field left out takes
 * its default. Each macro has a plain function behind it, named …_with, for C++ and other languages; there
 * NULL stands for all defaults.
 */
#ifndef MIXT_GRAPH_H
#define MIXT_GRAPH_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_builder mixt_builder;

/** A value of the graph under construction. Zero means none. */
typedef struct mixt_value {
    int32_t id;
} mixt_value;

/** A model: makes the outputs (logits, predictions) from the input x, the first of the data's inputs. It may ask for
 *  others by name (mixt_input), and add losses of its own (mixt/loss.h). */
typedef mixt_value (*mixt_model_fn)(mixt_builder *b, mixt_value x);

/** The pointer given as `user` when the model was made; NULL if none. */
MIXT_API void *mixt_builder_user(mixt_builder *b);
/** True while building the graph that trains (dropout active, batch statistics). */
MIXT_API bool mixt_builder_training(const mixt_builder *b);
/** True while building a graph that has a loss: one that trains or evaluates. */
MIXT_API bool mixt_builder_has_loss(const mixt_builder *b);
/** Reports a failure of the model's own: sticky, shown by compile. Always returns the null value. */
MIXT_API mixt_value mixt_builder_fail(mixt_builder *b, const char *message);

/** Layers made between push and pop get "name." before their names. */
MIXT_API void mixt_scope_push(mixt_builder *b, const char *name);
MIXT_API void mixt_scope_pop(mixt_builder *b);

MIXT_API int mixt_value_rank(mixt_builder *b, mixt_value x);
/** Size of dimension `axis`; negative counts from the end; 0 on a failed builder. */
MIXT_API int64_t mixt_value_dim(mixt_builder *b, mixt_value x, int axis);

/* ---- what the data offers ----
 *
 * A data set offers arrays by name, inputs and targets (arrays of mixt_data_info), the batch's dimension in front. Sets
 * of one input and one target call them "input" and "target". */

/** An input by its name; NULL: the first. A name that the data does not have fails the build and is told. */
MIXT_API mixt_value mixt_input(mixt_builder *b, const char *name);
/** A target by its name; NULL: the first. For losses alone: where there is none (generating text), the build fails. */
MIXT_API mixt_value mixt_target(mixt_builder *b, const char *name);
/** Whether the data has an input of this name. */
MIXT_API bool mixt_builder_has_input(const mixt_builder *b, const char *name);
/** INT32 (N): how long each sample of an input of variable length is; what lies behind in the batch is padding. */
MIXT_API mixt_value mixt_input_lengths(mixt_builder *b, const char *name);
/** FP32 (N, T) of such an input: 1 where a sample has something, 0 where there is padding. */
MIXT_API mixt_value mixt_input_mask(mixt_builder *b, const char *name);

/* ---- parameters of one's own ---- */
typedef struct mixt_param_options {
    size_t struct_size;
    int rank;
    int64_t dims[MIXT_MAX_RANK];
    float normal;  /**< initial standard deviation; default 0 */
    float uniform; /**< or half-width of a uniform range */
    bool ones;     /**< or all ones; default zeros */
    bool no_decay; /**< leave out of weight decay */
} mixt_param_options;
MIXT_API void mixt_param_options_default(mixt_param_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_param_options .struct_size = sizeof(mixt_param_options)
MIXT_API mixt_value mixt_param_with(mixt_builder *b, const char *name, const mixt_param_options *o);
#define mixt_param(b, name, ...) mixt_param_with((b), (name), MIXT_OPTIONS_AT(mixt_param_options, __VA_ARGS__))

/* ---- layers with parameters ---- */
typedef struct mixt_linear_options {
    size_t struct_size;
    int64_t features; /**< outputs; required */
    bool no_bias;
    float init; /**< standard deviation of the weights; default MIXT_AUTO: uniform in ±1/sqrt(inputs) */
    /** Outputs of the layers that lie side by side in this one, as queries, keys and values do: each has an adapter of
     *  its own (mixt_lora_options). Default: it is one layer. */
    int64_t parts[8];
} mixt_linear_options;
MIXT_API void mixt_linear_options_default(mixt_linear_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_linear_options .struct_size = sizeof(mixt_linear_options), .init = MIXT_AUTO
/** (…, K) → (…, features). Parameters name.weight (features, K) and name.bias (features). */
MIXT_API mixt_value mixt_linear_with(mixt_builder *b, const char *name, mixt_value x, const mixt_linear_options *o);
#define mixt_linear(b, name, x, ...)                                                                                   \
    mixt_linear_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_linear_options, __VA_ARGS__))

typedef struct mixt_conv2d_options {
    size_t struct_size;
    int64_t channels;           /**< outputs; required */
    int64_t kernel;             /**< height and width; required unless kernel_h and kernel_w are given */
    int64_t kernel_h, kernel_w; /**< default MIXT_AUTO: kernel */
    int64_t stride;             /**< at least 1; default 1 */
    int64_t pad;                /**< zeros on each side; default 0 */
    bool no_bias;
    float init; /**< standard deviation of the weights, the bias then begins at 0; default MIXT_AUTO: both uniform in
                     ±1/sqrt(inputs) */
    int64_t groups;   /**< channels and outputs are split into so many parts, each of which sees itself alone; as many
                           as there are channels: depthwise. Default 1 */
    int64_t dilation; /**< from one element of the kernel to the next; default 1 */
    int64_t stride_h, stride_w;                       /**< default MIXT_AUTO: stride */
    int64_t dilation_h, dilation_w;                   /**< default MIXT_AUTO: dilation */
    int64_t pad_top, pad_bottom, pad_left, pad_right; /**< default MIXT_AUTO: pad */
} mixt_conv2d_options;
MIXT_API void mixt_conv2d_options_default(mixt_conv2d_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_conv2d_options                                                                              \
    .struct_size = sizeof(mixt_conv2d_options), .kernel_h = MIXT_AUTO, .kernel_w = MIXT_AUTO, .stride = 1,             \
    .init = MIXT_AUTO, .groups = 1, .dilation = 1, .stride_h = MIXT_AUTO, .stride_w = MIXT_AUTO,                       \
    .dilation_h = MIXT_AUTO, .dilation_w = MIXT_AUTO, .pad_top = MIXT_AUTO, .pad_bottom = MIXT_AUTO,                   \
    .pad_left = MIXT_AUTO, .pad_right = MIXT_AUTO
/** (N, H, W, C) → (N, H', W', channels). Parameters name.weight (channels, kh, kw, C / groups) and name.bias. */
MIXT_API mixt_value mixt_conv2d_with(mixt_builder *b, const char *name, mixt_value x, const mixt_conv2d_options *o);
#define mixt_conv2d(b, name, x, ...)                                                                                   \
    mixt_conv2d_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_conv2d_options, __VA_ARGS__))
/** The same with a weight (channels, kh, kw, C / groups) and a bias (channels) that are values already; bias may be the
 *  null value. Of the options those of channels, kernel, bias and init do not count. */
MIXT_API mixt_value mixt_conv2d_of_with(mixt_builder *b, mixt_value x, mixt_value weight, mixt_value bias,
                                        const mixt_conv2d_options *o);
#define mixt_conv2d_of(b, x, weight, bias, ...)                                                                        \
    mixt_conv2d_of_with((b), (x), (weight), (bias), MIXT_OPTIONS_AT(mixt_conv2d_options, __VA_ARGS__))

typedef struct mixt_conv_transpose2d_options {
    size_t struct_size;
    int64_t channels;           /**< outputs; required */
    int64_t kernel;             /**< height and width; required unless kernel_h and kernel_w are given */
    int64_t kernel_h, kernel_w; /**< default MIXT_AUTO: kernel */
    int64_t stride;             /**< how many times larger the result is; default 1 */
    int64_t pad;                /**< taken off on each side; default 0 */
    int64_t output_pad; /**< added at the bottom and at the right; below the stride or the dilation; default 0 */
    bool no_bias;
    float init; /**< standard deviation of the weights, the bias then begins at 0; default MIXT_AUTO: both uniform in
                     ±1/sqrt(channels / groups · kh · kw) */
    int64_t groups;                                   /**< default 1 */
    int64_t dilation;                                 /**< default 1 */
    int64_t stride_h, stride_w;                       /**< default MIXT_AUTO: stride */
    int64_t dilation_h, dilation_w;                   /**< default MIXT_AUTO: dilation */
    int64_t pad_top, pad_bottom, pad_left, pad_right; /**< default MIXT_AUTO: pad */
    int64_t output_pad_h, output_pad_w;               /**< default MIXT_AUTO: output_pad */
} mixt_conv_transpose2d_options;
MIXT_API void mixt_conv_transpose2d_options_default(mixt_conv_transpose2d_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_conv_transpose2d_options                                                                    \
    .struct_size = sizeof(mixt_conv_transpose2d_options), .kernel_h = MIXT_AUTO, .kernel_w = MIXT_AUTO, .stride = 1,   \
    .init = MIXT_AUTO, .groups = 1, .dilation = 1, .stride_h = MIXT_AUTO, .stride_w = MIXT_AUTO,                       \
    .dilation_h = MIXT_AUTO, .dilation_w = MIXT_AUTO, .pad_top = MIXT_AUTO, .pad_bottom = MIXT_AUTO,                   \
    .pad_left = MIXT_AUTO, .pad_right = MIXT_AUTO, .output_pad_h = MIXT_AUTO, .output_pad_w = MIXT_AUTO
/** Transposed convolution: the gradient of a convolution with respect to its source, as a layer. (N, H, W, C) → (N, H',
 *  W', channels) with H' = (H - 1) · stride + dilation · (kh - 1) + 1 + output_pad - pads. Parameters name.weight (C,
 * kh, kw, channels / groups) and name.bias. */
MIXT_API mixt_value mixt_conv_transpose2d_with(mixt_builder *b, const char *name, mixt_value x,
                                               const mixt_conv_transpose2d_options *o);
#define mixt_conv_transpose2d(b, name, x, ...)                                                                         \
    mixt_conv_transpose2d_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_conv_transpose2d_options, __VA_ARGS__))
/** The same with a weight (C, kh, kw, channels / groups) and a bias that are values already: see mixt_conv2d_of_with.
 */
MIXT_API mixt_value mixt_conv_transpose2d_of_with(mixt_builder *b, mixt_value x, mixt_value weight, mixt_value bias,
                                                  const mixt_conv_transpose2d_options *o);
#define mixt_conv_transpose2d_of(b, x, weight, bias, ...)                                                              \
    mixt_conv_transpose2d_of_with((b), (x), (weight), (bias),                                                          \
                                  MIXT_OPTIONS_AT(mixt_conv_transpose2d_options, __VA_ARGS__))

typedef struct mixt_conv1d_options {
    size_t struct_size;
    int64_t channels; /**< outputs; required */
    int64_t kernel;   /**< required */
    int64_t stride;   /**< default 1 */
    int64_t pad;      /**< zeros at each end; default 0 */
    bool no_bias;
    float init;                 /**< as in mixt_conv2d_options */
    int64_t groups, dilation;   /**< default 1 */
    int64_t pad_begin, pad_end; /**< default MIXT_AUTO: pad */
} mixt_conv1d_options;
MIXT_API void mixt_conv1d_options_default(mixt_conv1d_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_conv1d_options                                                                              \
    .struct_size = sizeof(mixt_conv1d_options), .stride = 1, .init = MIXT_AUTO, .groups = 1, .dilation = 1,            \
    .pad_begin = MIXT_AUTO, .pad_end = MIXT_AUTO
/** (N, T, C) → (N, T', channels): a convolution of planes of one row. Parameters name.weight (channels, 1, kernel,
 *  C / groups) and name.bias. */
MIXT_API mixt_value mixt_conv1d_with(mixt_builder *b, const char *name, mixt_value x, const mixt_conv1d_options *o);
#define mixt_conv1d(b, name, x, ...)                                                                                   \
    mixt_conv1d_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_conv1d_options, __VA_ARGS__))

typedef struct mixt_conv3d_options {
    size_t struct_size;
    int64_t channels; /**< outputs; required */
    int64_t kernel;   /**< height and width; required */
    int64_t kernel_d; /**< depth: frames that one result sees; default MIXT_AUTO: kernel */
    int64_t stride;   /**< of height and width; default 1 */
    int64_t stride_d; /**< of depth; default MIXT_AUTO: stride */
    int64_t pad;      /**< zeros on each side of height and width; default 0 */
    int64_t pad_d;    /**< zeros before the first and behind the last plane; default 0 */
    bool no_bias;
    float init; /**< standard deviation of the weights, the bias then begins at 0; default MIXT_AUTO: both uniform in
                     ±1/sqrt(inputs) */
    int64_t groups, dilation;                         /**< as in mixt_conv2d_options; default 1 */
    int64_t kernel_h, kernel_w;                       /**< default MIXT_AUTO: kernel */
    int64_t stride_h, stride_w;                       /**< default MIXT_AUTO: stride */
    int64_t dilation_d, dilation_h, dilation_w;       /**< default MIXT_AUTO: dilation */
    int64_t pad_front, pad_back;                      /**< of depth; default MIXT_AUTO: pad_d */
    int64_t pad_top, pad_bottom, pad_left, pad_right; /**< default MIXT_AUTO: pad */
} mixt_conv3d_options;
MIXT_API void mixt_conv3d_options_default(mixt_conv3d_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_conv3d_options                                                                              \
    .struct_size = sizeof(mixt_conv3d_options), .kernel_d = MIXT_AUTO, .stride = 1, .stride_d = MIXT_AUTO,             \
    .init = MIXT_AUTO, .groups = 1, .dilation = 1, .kernel_h = MIXT_AUTO, .kernel_w = MIXT_AUTO,                       \
    .stride_h = MIXT_AUTO, .stride_w = MIXT_AUTO, .dilation_d = MIXT_AUTO, .dilation_h = MIXT_AUTO,                    \
    .dilation_w = MIXT_AUTO, .pad_front = MIXT_AUTO, .pad_back = MIXT_AUTO, .pad_top = MIXT_AUTO,                      \
    .pad_bottom = MIXT_AUTO, .pad_left = MIXT_AUTO, .pad_right = MIXT_AUTO
/** (N, D, H, W, C) → (N, D', H', W', channels). Parameters name.weight (channels, kd, kh, kw, C / groups) and
 * name.bias. */
MIXT_API mixt_value mixt_conv3d_with(mixt_builder *b, const char *name, mixt_value x, const mixt_conv3d_options *o);
#define mixt_conv3d(b, name, x, ...)                                                                                   \
    mixt_conv3d_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_conv3d_options, __VA_ARGS__))
/** The same with a weight (channels, kd, kh, kw, C / groups) and a bias that are values already: see
 *  mixt_conv2d_of_with. */
MIXT_API mixt_value mixt_conv3d_of_with(mixt_builder *b, mixt_value x, mixt_value weight, mixt_value bias,
                                        const mixt_conv3d_options *o);
#define mixt_conv3d_of(b, x, weight, bias, ...)                                                                        \
    mixt_conv3d_of_with((b), (x), (weight), (bias), MIXT_OPTIONS_AT(mixt_conv3d_options, __VA_ARGS__))

typedef struct mixt_norm_options {
    size_t struct_size;
    float eps;       /**< default 1e-5 */
    float momentum;  /**< batch norm: weight of the new batch in the running statistics; default 0.1 */
    bool zero;       /**< begin with weights of 0 instead of 1: a residual block then begins as the identity */
    bool from_one;   /**< rms norm: weights are counted from 1, so that they begin at 0; not with zero */
    mixt_value mask; /**< batch norm of samples of different lengths: FP32 of the first dimensions of x, (N, T) of
                          (N, T, …, C). What lies where it is 0 does not count: statistics leave it out, and the
                          result there is 0. Default: all of x counts */
} mixt_norm_options;
MIXT_API void mixt_norm_options_default(mixt_norm_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_norm_options .struct_size = sizeof(mixt_norm_options), .eps = 1e-5f, .momentum = 0.1f
/** Normalises the last dimension. Parameters name.weight and name.bias. */
MIXT_API mixt_value mixt_layer_norm_with(mixt_builder *b, const char *name, mixt_value x, const mixt_norm_options *o);
#define mixt_layer_norm(b, name, x, ...)                                                                               \
    mixt_layer_norm_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_norm_options, __VA_ARGS__))
/** Divides the last dimension by its root mean square. Parameter name.weight; of the options eps, zero and from_one
 * count. */
MIXT_API mixt_value mixt_rms_norm_with(mixt_builder *b, const char *name, mixt_value x, const mixt_norm_options *o);
#define mixt_rms_norm(b, name, x, ...)                                                                                 \
    mixt_rms_norm_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_norm_options, __VA_ARGS__))
/** Normalises each channel (last dimension) over all others; running statistics name.running_mean and running_var. */
MIXT_API mixt_value mixt_batch_norm_with(mixt_builder *b, const char *name, mixt_value x, const mixt_norm_options *o);
#define mixt_batch_norm(b, name, x, ...)                                                                               \
    mixt_batch_norm_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_norm_options, __VA_ARGS__))

typedef struct mixt_embedding_options {
    size_t struct_size;
    int64_t count;    /**< rows of the table; required */
    int64_t features; /**< columns; required */
    float init;       /**< standard deviation; default 0.02 */
} mixt_embedding_options;
MIXT_API void mixt_embedding_options_default(mixt_embedding_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_embedding_options .struct_size = sizeof(mixt_embedding_options), .init = 0.02f
/** INT32 (…) → (…, features). Parameter name.weight (count, features). */
MIXT_API mixt_value mixt_embedding_with(mixt_builder *b, const char *name, mixt_value ids,
                                        const mixt_embedding_options *o);
#define mixt_embedding(b, name, ids, ...)                                                                              \
    mixt_embedding_with((b), (name), (ids), MIXT_OPTIONS_AT(mixt_embedding_options, __VA_ARGS__))
/** Rows of an existing table (a parameter), for tied weights. */
MIXT_API mixt_value mixt_embedding_lookup(mixt_builder *b, mixt_value table, mixt_value ids);
/** One row of a table (places, features) for each token of ids (…, T), by its place in the text: (T, features). */
MIXT_API mixt_value mixt_embedding_positions(mixt_builder *b, mixt_value table, mixt_value ids);

typedef struct mixt_lstm_options {
    size_t struct_size;
    int64_t features; /**< state size; required */
} mixt_lstm_options;
MIXT_API void mixt_lstm_options_default(mixt_lstm_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_lstm_options .struct_size = sizeof(mixt_lstm_options)
/** (B, T, I) → (B, T, features), state zero at t = 0, gates in the order input, forget, cell, output.
 *  Parameters name.weight_ih (4·features, I), name.weight_hh (4·features, features), name.bias (4·features). */
MIXT_API mixt_value mixt_lstm_with(mixt_builder *b, const char *name, mixt_value x, const mixt_lstm_options *o);
#define mixt_lstm(b, name, x, ...) mixt_lstm_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_lstm_options, __VA_ARGS__))

typedef struct mixt_gru_options {
    size_t struct_size;
    int64_t features; /**< state size; required */
} mixt_gru_options;
MIXT_API void mixt_gru_options_default(mixt_gru_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_gru_options .struct_size = sizeof(mixt_gru_options)
/** (B, T, I) → (B, T, features), state zero at t = 0, gates in the order reset, update, new; the reset gate acts on the
 *  product with the state and its bias, as in cuDNN and PyTorch. Parameters name.weight_ih (3·features, I),
 *  name.weight_hh (3·features, features), name.bias (3·features), name.bias_hn (features): of the new gate's product
 *  with the state. */
MIXT_API mixt_value mixt_gru_with(mixt_builder *b, const char *name, mixt_value x, const mixt_gru_options *o);
#define mixt_gru(b, name, x, ...) mixt_gru_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_gru_options, __VA_ARGS__))

typedef struct mixt_rnn_options {
    size_t struct_size;
    int64_t features; /**< state size; required */
    bool relu;        /**< in place of tanh; default false */
} mixt_rnn_options;
MIXT_API void mixt_rnn_options_default(mixt_rnn_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_rnn_options .struct_size = sizeof(mixt_rnn_options)
/** (B, T, I) → (B, T, features), h = tanh(weight_ih x + weight_hh h + bias), state zero at t = 0. Parameters
 *  name.weight_ih (features, I), name.weight_hh (features, features), name.bias (features). */
MIXT_API mixt_value mixt_rnn_with(mixt_builder *b, const char *name, mixt_value x, const mixt_rnn_options *o);
#define mixt_rnn(b, name, x, ...) mixt_rnn_with((b), (name), (x), MIXT_OPTIONS_AT(mixt_rnn_options, __VA_ARGS__))

/* ---- ops without parameters ---- */
typedef struct mixt_matmul_options {
    size_t struct_size;
    bool trans_a, trans_b; /**< use the transpose of the last two dimensions */
    float alpha;           /**< factor; default 1 */
} mixt_matmul_options;
MIXT_API void mixt_matmul_options_default(mixt_matmul_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_matmul_options .struct_size = sizeof(mixt_matmul_options), .alpha = 1
/** (…, M, K)·(…, K, N) → (…, M, N); leading dimensions equal, or y is a plain matrix used for all. With a stack
 *  x and a plain matrix y, trans_a is refused. */
MIXT_API mixt_value mixt_matmul_with(mixt_builder *b, mixt_value x, mixt_value y, const mixt_matmul_options *o);
#define mixt_matmul(b, x, y, ...) mixt_matmul_with((b), (x), (y), MIXT_OPTIONS_AT(mixt_matmul_options, __VA_ARGS__))

typedef struct mixt_attention_options {
    size_t struct_size;
    int64_t heads;        /**< of q; required; divides its last dimension */
    bool causal;          /**< position t sees positions up to t only; needs T = S */
    float scale;          /**< of the scores; default MIXT_AUTO: 1/sqrt(head size) */
    mixt_value lengths;   /**< INT32 (B), 0 to S: only so many keys of an entry are there, the others are padding;
                             default: all are */
    int64_t window;       /**< with causal: position t sees itself and window - 1 positions before it; default 0: all */
    float softcap;        /**< scores become softcap · tanh(score / softcap); default 0: they stay */
    mixt_value positions; /**< with causal: INT32 (B, T), the place of each token in its own text, 0, 1, 2, …, where a
                             row holds several, one behind the other: a token sees those of its own text alone;
                             default: a row is one text */
} mixt_attention_options;
MIXT_API void mixt_attention_options_default(mixt_attention_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_attention_options .struct_size = sizeof(mixt_attention_options), .scale = MIXT_AUTO
/** q (B, T, C), k and v (B, S, C) → (B, T, C): within one sequence, or from one to another (cross attention). Grouped
 * heads: k and v may be narrower, with a whole number of heads of q's size that divides q's; neighbouring heads of q
 * then share one. */
MIXT_API mixt_value mixt_attention_with(mixt_builder *b, mixt_value q, mixt_value k, mixt_value v,
                                        const mixt_attention_options *o);
#define mixt_attention(b, q, k, v, ...)                                                                                \
    mixt_attention_with((b), (q), (k), (v), MIXT_OPTIONS_AT(mixt_attention_options, __VA_ARGS__))

typedef struct mixt_pool_options {
    size_t struct_size;
    int64_t size;               /**< window height and width; required */
    int64_t stride;             /**< default MIXT_AUTO: size */
    int64_t pad;                /**< default 0 */
    int64_t size_d;             /**< depth of the window, of (N, D, H, W, C) only; default MIXT_AUTO: size */
    int64_t stride_d;           /**< of depth; default MIXT_AUTO: size_d */
    int64_t pad_d;              /**< of depth; default 0 */
    int64_t size_h, size_w;     /**< default MIXT_AUTO: size */
    int64_t stride_h, stride_w; /**< default MIXT_AUTO: stride */
    int64_t dilation;           /**< from one element of the window to the next; default 1 */
    int64_t dilation_d, dilation_h, dilation_w;       /**< default MIXT_AUTO: dilation */
    int64_t pad_front, pad_back;                      /**< of depth; default MIXT_AUTO: pad_d */
    int64_t pad_top, pad_bottom, pad_left, pad_right; /**< default MIXT_AUTO: pad */
    bool ceil;      /**< a last window that begins inside counts, though it ends beyond the padding */
    bool count_pad; /**< averages divide by the padding's elements too */
} mixt_pool_options;
MIXT_API void mixt_pool_options_default(mixt_pool_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_pool_options                                                                                \
    .struct_size = sizeof(mixt_pool_options), .stride = MIXT_AUTO, .size_d = MIXT_AUTO, .stride_d = MIXT_AUTO,         \
    .size_h = MIXT_AUTO, .size_w = MIXT_AUTO, .stride_h = MIXT_AUTO, .stride_w = MIXT_AUTO, .dilation = 1,             \
    .dilation_d = MIXT_AUTO, .dilation_h = MIXT_AUTO, .dilation_w = MIXT_AUTO, .pad_front = MIXT_AUTO,                 \
    .pad_back = MIXT_AUTO, .pad_top = MIXT_AUTO, .pad_bottom = MIXT_AUTO, .pad_left = MIXT_AUTO,                       \
    .pad_right = MIXT_AUTO
/** Over windows of (N, T, C), (N, H, W, C) or (N, D, H, W, C); of the first, options of width count. Averages divide by
 *  the elements that are not padding. */
MIXT_API mixt_value mixt_max_pool_with(mixt_builder *b, mixt_value x, const mixt_pool_options *o);
MIXT_API mixt_value mixt_avg_pool_with(mixt_builder *b, mixt_value x, const mixt_pool_options *o);
#define mixt_max_pool(b, x, ...) mixt_max_pool_with((b), (x), MIXT_OPTIONS_AT(mixt_pool_options, __VA_ARGS__))
#define mixt_avg_pool(b, x, ...) mixt_avg_pool_with((b), (x), MIXT_OPTIONS_AT(mixt_pool_options, __VA_ARGS__))
/** (N, H, W, C) or (N, D, H, W, C) → (N, C), the mean. */
MIXT_API mixt_value mixt_global_avg_pool(mixt_builder *b, mixt_value x);

/* pointwise; two operands broadcast as in NumPy */
MIXT_API mixt_value mixt_add(mixt_builder *b, mixt_value x, mixt_value y);
MIXT_API mixt_value mixt_sub(mixt_builder *b, mixt_value x, mixt_value y);
MIXT_API mixt_value mixt_mul(mixt_builder *b, mixt_value x, mixt_value y);
MIXT_API mixt_value mixt_div(mixt_builder *b, mixt_value x, mixt_value y);
MIXT_API mixt_value mixt_maximum(mixt_builder *b, mixt_value x, mixt_value y);
MIXT_API mixt_value mixt_minimum(mixt_builder *b, mixt_value x, mixt_value y);
/** x where mask is above 0, else 0, whatever x is there: what lies behind the end of a sample says nothing. */
MIXT_API mixt_value mixt_where(mixt_builder *b, mixt_value mask, mixt_value x);
MIXT_API mixt_value mixt_neg(mixt_builder *b, mixt_value x);
/** x · factor + shift */
MIXT_API mixt_value mixt_affine(mixt_builder *b, mixt_value x, float factor, float shift);
MIXT_API mixt_value mixt_relu(mixt_builder *b, mixt_value x);
/** Gaussian error linear unit, tanh form. */
MIXT_API mixt_value mixt_gelu(mixt_builder *b, mixt_value x);
/** The same, exact: x times the normal distribution's share below x. */
MIXT_API mixt_value mixt_gelu_erf(mixt_builder *b, mixt_value x);
/** x · sigmoid(x) */
MIXT_API mixt_value mixt_silu(mixt_builder *b, mixt_value x);
/** silu(gate) · x */
MIXT_API mixt_value mixt_swiglu(mixt_builder *b, mixt_value gate, mixt_value x);
MIXT_API mixt_value mixt_sigmoid(mixt_builder *b, mixt_value x);
MIXT_API mixt_value mixt_tanh(mixt_builder *b, mixt_value x);
MIXT_API mixt_value mixt_exp(mixt_builder *b, mixt_value x);
MIXT_API mixt_value mixt_log(mixt_builder *b, mixt_value x);
MIXT_API mixt_value mixt_sqrt(mixt_builder *b, mixt_value x);
MIXT_API mixt_value mixt_square(mixt_builder *b, mixt_value x);
/** Zeroes each element with probability `rate` and scales the others by 1/(1 - rate); nothing outside training. */
MIXT_API mixt_value mixt_dropout(mixt_builder *b, mixt_value x, float rate);
/** Changes the format by hand; the policy leaves such a value alone, and of a parameter the FP32 master is read. An op
 *  that takes the value still computes in the format that the policy gives it: with "bf16" a product of two values cast
 *  to FP32 rounds them to BF16 first. A rule of a policy file for its layer says otherwise. */
MIXT_API mixt_value mixt_cast(mixt_builder *b, mixt_value x, mixt_dtype dtype);

/** Over the last dimension. */
MIXT_API mixt_value mixt_softmax(mixt_builder *b, mixt_value x);

/* rotary positions */
typedef struct mixt_rotary_options {
    size_t struct_size;
    int64_t dim;           /**< numbers of a head, even, at most 512; required */
    double theta;          /**< base of the frequencies, above 0; default 10000 */
    double factor;         /**< frequencies are divided by it; default 0: they are as they are */
    double low;            /**< with high: only those whose wavelength is past original / low, … */
    double high;           /**< … in part those between that and original / high, and no others; default 0: all */
    double original;       /**< tokens that the model first learned with */
    double magnitude;      /**< cosines and sines are multiplied by it, above 0; default 1 */
    int64_t divisor_count; /**< dim / 2, where each frequency has a divisor of its own in place of factor; default 0 */
    float divisors[256];   /**< (divisor_count) of the frequencies, the largest first, above 0 */
    bool places;           /**< ids (B, T) are the places themselves: the table is (B, T, dim); default false */
} mixt_rotary_options;
MIXT_API void mixt_rotary_options_default(mixt_rotary_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_rotary_options .struct_size = sizeof(mixt_rotary_options), .theta = 10000, .magnitude = 1
/** Cosines and sines for each token of ids (…, T) by its place in the text: FP32 (T, dim), made once for all layers. */
MIXT_API mixt_value mixt_rotary_table_with(mixt_builder *b, mixt_value ids, const mixt_rotary_options *o);
#define mixt_rotary_table(b, ids, ...)                                                                                 \
    mixt_rotary_table_with((b), (ids), MIXT_OPTIONS_AT(mixt_rotary_options, __VA_ARGS__))
/** Turns the first `heads` heads of each row of x (B, T, C) by the angles of a table (T, dim) or (B, T, dim), number i
 * of a head together with number i + dim / 2; what is behind them in the row stays. So q and k out of one packed
 * product take one pass. */
MIXT_API mixt_value mixt_rotary(mixt_builder *b, mixt_value x, mixt_value table, int64_t heads);
/** The same of heads of `width` numbers, of which only the first dim are turned, dim being that of the table. */
MIXT_API mixt_value mixt_rotary_part(mixt_builder *b, mixt_value x, mixt_value table, int64_t heads, int64_t width);

typedef struct mixt_reduce_options {
    size_t struct_size;
    int axes[MIXT_MAX_RANK]; /**< which dimensions, each once; negative counts from the end */
    int axis_count;          /**< how many of them; default MIXT_AUTO: all dimensions */
    bool keep_dims;          /**< leave them as size 1 */
} mixt_reduce_options;
MIXT_API void mixt_reduce_options_default(mixt_reduce_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_reduce_options .struct_size = sizeof(mixt_reduce_options), .axis_count = MIXT_AUTO
MIXT_API mixt_value mixt_sum_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *o);
MIXT_API mixt_value mixt_mean_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *o);
#define mixt_sum(b, x, ...) mixt_sum_with((b), (x), MIXT_OPTIONS_AT(mixt_reduce_options, __VA_ARGS__))
#define mixt_mean(b, x, ...) mixt_mean_with((b), (x), MIXT_OPTIONS_AT(mixt_reduce_options, __VA_ARGS__))

/* shape */
/** At most one dimension may be -1: it takes what is left. */
MIXT_API mixt_value mixt_reshape(mixt_builder *b, mixt_value x, int rank, const int64_t *dims);
/** (N, …) → (N, rest) */
MIXT_API mixt_value mixt_flatten(mixt_builder *b, mixt_value x);
/** Dimension i of the result is dimension order[i] of x. */
MIXT_API mixt_value mixt_transpose(mixt_builder *b, mixt_value x, const int *order);
/** Positions [begin, end) of one dimension. */
MIXT_API mixt_value mixt_slice(mixt_builder *b, mixt_value x, int axis, int64_t begin, int64_t end);
/** Equal parts of the last dimension, at most 8. */
MIXT_API void mixt_split(mixt_builder *b, mixt_value x, int parts, mixt_value *result);
/** Parts of the last dimension of chosen sizes, which add up to it; at most 8. */
MIXT_API void mixt_split_at(mixt_builder *b, mixt_value x, int parts, const int64_t *sizes, mixt_value *result);
/** Parts one behind the other along a dimension, the other dimensions equal; 64 parts at most. */
MIXT_API mixt_value mixt_concat(mixt_builder *b, const mixt_value *parts, int count, int axis);

/** How a model's output is judged: its first target, by one of these; mixt/loss.h for anything else. */
typedef enum mixt_loss {
    MIXT_LOSS_CROSS_ENTROPY, /**< logits (…, classes), labels INT32 (…); a negative label is left out */
    MIXT_LOSS_MSE,           /**< mean squared error; a NaN target is left out */
    MIXT_LOSS_BCE,           /**< binary cross-entropy on logits; a NaN target is left out */
    MIXT_LOSS_CUSTOM,        /**< what the model function adds by mixt_loss_add */
} mixt_loss;

#ifdef __cplusplus
}
#endif
#endif
