/* The typed attributes of each op. Plain data: backends and tests read them too. */
#ifndef MIXT_OPS_ATTRS_H
#define MIXT_OPS_ATTRS_H

#include "graph/graph.h"

/** Fused forms of ops that a backend has kernels for; the passes make only these. See the attributes below. */
typedef enum mixt__fused {
    MIXT_FUSED_MATMUL = 1 << 0,     // matmul with an activation, an activation's gradient or an addend
    MIXT_FUSED_NORM = 1 << 1,       // layer_norm_grad and rms_norm_grad with an addend, the first with column sums
    MIXT_FUSED_BATCH_NORM = 1 << 2, // batch_norm with an addend and ReLU, its gradient with ReLU
    MIXT_FUSED_LOSS = 1 << 3,       // cross_entropy_step, kl_step: loss and gradient in one pass over the logits
    MIXT_FUSED_RELU = 1 << 4,       // matmul with ReLU or its gradient
    MIXT_FUSED_ROW_SUMS = 1 << 5,   // matmul with the sums of its first operand's rows
    MIXT_FUSED_HEAD = 1 << 6,       // head_step: a classifier's head, its loss and all their gradients
} mixt__fused;

/** What the CUDA backend has: here, for those who plan for a GPU without one. */
#define MIXT_FUSED_CUDA (MIXT_FUSED_MATMUL | MIXT_FUSED_NORM | MIXT_FUSED_BATCH_NORM | MIXT_FUSED_LOSS)

/** What a product does to its result x before it is stored. Made by the epilogues pass only. */
typedef enum mixt__epilogue {
    MIXT_EPILOGUE_NONE,
    MIXT_EPILOGUE_RELU,      // dst = relu(x)
    MIXT_EPILOGUE_GELU,      // dst = gelu(x); x itself is output 1, for the gradient
    MIXT_EPILOGUE_GELU_GRAD, // dst = x · gelu'(pre); pre is the last input
    MIXT_EPILOGUE_RELU_GRAD, // dst = x where pre > 0, else 0; pre is the last input
} mixt__epilogue;

/** x = alpha · op(a) · op(b) (+ bias) (+ addend), then the epilogue. See ops/matmul.c for shapes.
 *  Inputs: a, b[, bias][, addend][, pre]. addend and pre have the result's shape and format. */
typedef struct mixt__matmul_attrs {
    bool trans_a, trans_b, bias;
    float alpha;
    bool addend;
    bool wide; // the result is FP32 whatever the operands are. Made by the precision pass only
    mixt_dtype
        made; // the result's format where operands are FP8 with scales; NONE: theirs. Made by the quantise pass only
    bool row_sums; // the sums of op(a)'s rows, in FP32, are the last output: a bias's gradient beside its weight's
    mixt__epilogue epilogue;
} mixt__matmul_attrs;

/** One spatial axis of a convolution. A dilation of 0 is one of 1. */
typedef struct mixt__conv_axis {
    int64_t kernel, stride, dilation;
    int64_t pad, pad_end; // zeros before and behind
    int64_t src;          // size of the forward input: the data gradient needs it
} mixt__conv_axis;

/** groups: channels and outputs are split into so many equal parts, each output sees its own part's channels alone.
 *  0: 1. The weight is (O, KH, KW, C / groups). */
typedef struct mixt__conv2d_attrs {
    mixt__conv_axis h, w;
    int64_t groups;
    bool bias;
} mixt__conv2d_attrs;

typedef struct mixt__conv3d_attrs {
    mixt__conv2d_attrs plane; // first, so that a pointer to the whole is one to it
    mixt__conv_axis d;
} mixt__conv3d_attrs;

static inline int64_t mixt__conv_dilation(const mixt__conv_axis *axis)
{
    return axis->dilation ? axis->dilation : 1;
}

static inline int64_t mixt__conv_groups(const mixt__conv2d_attrs *attrs)
{
    return attrs->groups ? attrs->groups : 1;
}

/** Which of the three ops of a convolution, whatever its dimensions. */
typedef enum mixt__conv_kind { MIXT_CONV_FORWARD, MIXT_CONV_GRAD_SRC, MIXT_CONV_GRAD_WEIGHT } mixt__conv_kind;

/** All sizes of a convolution: src (N, D, H, W, C), weight (O, KD, KH, KW, C / groups), dst (N, D', H', W', O). In
 * conv2d depth is 1: its sizes are those of one plane. Padding behind follows from the size of dst. */
typedef struct mixt__conv {
    mixt__conv_kind kind;
    int64_t n, d, h, w, c;                // src, grad_src
    int64_t out_d, out_h, out_w, o;       // dst, grad_dst
    int64_t kernel_d, kernel_h, kernel_w; // weight, grad_weight
    int64_t stride, pad;                  // of height; of width too unless `uneven`
    int64_t stride_w, pad_w;
    int64_t stride_d, pad_d;
    int64_t dilation_d, dilation_h, dilation_w;
    int64_t groups;
    bool uneven; // strides or paddings of height and width differ, or of their two sides
    bool dilated;
    bool volume; // conv3d
    bool bias;   // forward: a third input
} mixt__conv;

/** From an op's attributes and the shapes of its first two inputs and its output. */
static inline mixt__conv mixt__conv_sizes(mixt__conv_kind kind, const void *attrs, const mixt__shape *first,
                                          const mixt__shape *second, const mixt__shape *out)
{
    const mixt__conv2d_attrs *plane = (const mixt__conv2d_attrs *)attrs;
    const mixt__conv_axis *y = &plane->h, *x = &plane->w;
    const mixt__shape *src = kind == MIXT_CONV_GRAD_SRC ? out : first;
    const mixt__shape *dst = kind == MIXT_CONV_FORWARD ? out : kind == MIXT_CONV_GRAD_SRC ? first : second;
    const int64_t *s = src->dims + src->rank - 3, *t = dst->dims + dst->rank - 3; // height, width, channels
    mixt__conv v = {.kind = kind, .n = src->dims[0], .d = 1, .h = s[0], .w = s[1], .c = s[2]};
    v.out_d = v.kernel_d = v.stride_d = v.dilation_d = 1;
    v.out_h = t[0];
    v.out_w = t[1];
    v.o = t[2];
    v.kernel_h = y->kernel;
    v.kernel_w = x->kernel;
    v.stride = y->stride;
    v.stride_w = x->stride;
    v.pad = y->pad;
    v.pad_w = x->pad;
    v.dilation_h = mixt__conv_dilation(y);
    v.dilation_w = mixt__conv_dilation(x);
    v.groups = mixt__conv_groups(plane);
    v.uneven = y->stride != x->stride || y->pad != x->pad || y->pad != y->pad_end || x->pad != x->pad_end;
    v.volume = src->rank == 5;
    v.bias = kind == MIXT_CONV_FORWARD && plane->bias;
    if (v.volume) {
        const mixt__conv_axis *z = &((const mixt__conv3d_attrs *)attrs)->d;
        v.d = src->dims[1];
        v.out_d = dst->dims[1];
        v.kernel_d = z->kernel;
        v.stride_d = z->stride;
        v.pad_d = z->pad;
        v.dilation_d = mixt__conv_dilation(z);
        v.uneven = v.uneven || z->pad != z->pad_end;
    }
    v.dilated = v.dilation_d > 1 || v.dilation_h > 1 || v.dilation_w > 1;
    return v;
}

/** What of a convolution a kernel does not take that knows one group, no dilation and, unless `uneven`, one stride and
 * one padding; NULL: nothing. */
static inline const char *mixt__conv_unusual(const mixt__conv *v, bool uneven)
{
    return v->groups > 1          ? "not in groups"
           : v->dilated           ? "not dilated"
           : v->uneven && !uneven ? "only one stride and one padding on all sides"
                                  : (const char *)0;
}

typedef enum mixt__pool_kind { MIXT_POOL_MAX, MIXT_POOL_AVG } mixt__pool_kind;

/** A window along one axis. A dilation of 0 is one of 1; pad, pad_end: before and behind. */
typedef struct mixt__pool_axis {
    int64_t size, stride, dilation, pad, pad_end;
} mixt__pool_axis;

typedef struct mixt__pool_attrs {
    mixt__pool_kind kind;
    mixt__pool_axis h, w;
    mixt__pool_axis d; // of depth, in (N, D, H, W, C) only; else all 0
    bool ceil;         // a last window may reach beyond the padding, if it begins before that
    bool count_pad;    // averages divide by the window's elements in source and padding, else by those in the source
} mixt__pool_attrs;

/** masked: input 5 of batch_norm and of its gradient is a mask, FP32, of src's first dimensions. Rows where it is 0 do
 *  not count: statistics leave them out, and both dst and grad_src are 0 there.
 *  addend and relu are made by the epilogues pass only:
 *    batch_norm       addend: a last input, added to the normalised value; relu: then relu
 *    batch_norm_grad  relu: grad_dst counts only where the forward's result was above 0, found again from src; the bias
 *                     is a last input (never together with a forward addend)
 *    layer_norm_grad, rms_norm_grad  addend: a last input, added to grad_src */
typedef struct mixt__norm_attrs {
    float eps, momentum;
    bool training; // batch norm: use the batch's statistics and update the running ones
    bool repeated; // batch norm: with training, leave the running ones; they have been updated in this pass
    bool masked;
    bool addend, relu; // no addend where masked
    bool totals;       // layer_norm_grad: output 3 is grad_src summed over all but its last dimension
} mixt__norm_attrs;

/** Of embedding and embedding_grad. */
typedef struct mixt__embedding_attrs {
    int64_t count;    // rows of the table: of the gradient only
    mixt_dtype dtype; // of the result, where the table is a pair; NONE: the table's. Made by the precision pass only
} mixt__embedding_attrs;

typedef struct mixt__attention_attrs {
    int64_t heads;
    bool causal;
    float scale;
    int64_t window; // with causal: a query sees itself and the window - 1 keys before it; 0: all before it
    float softcap;  // above 0: scores become softcap · tanh(score / softcap)
    bool packed;    // several texts a row: the last input is each token's position in its own
} mixt__attention_attrs;

/** A plain recurrent layer: relu in place of tanh. */
typedef struct mixt__rnn_attrs {
    bool relu;
} mixt__rnn_attrs;

enum { MIXT_ROTARY_DIM_MAX = 512 };

/** The first `dim` numbers of each of the first `heads` heads of a row are turned; heads begin `width` numbers apart,
 * 0: dim. See ops/rotary.c. */
typedef struct mixt__rotary_attrs {
    int64_t heads, dim, width;
    bool inverse; // back again: the gradient
} mixt__rotary_attrs;

/** Angles of rotary positions: see ops/rotary.c. Frequencies are theta^(-2i / dim); with a factor above 0 those of
 *  wavelengths past original / low are divided by it, those below original / high stay, and between they change
 *  smoothly; with high 0 all are divided. Where there are divisors, each frequency is divided by its own instead. */
typedef struct mixt__rotary_table_attrs {
    int64_t dim;
    double theta, factor, low, high, original;
    bool places;     // the input tells places; else they count up from 0
    bool own;        // frequencies have divisors of their own
    float magnitude; // of cosines and sines
    float divisors[MIXT_ROTARY_DIM_MAX / 2];
} mixt__rotary_table_attrs;

typedef struct mixt__reduce_attrs {
    uint32_t axes; // bit i: dimension i is summed
    bool mean, keep_dims;
} mixt__reduce_attrs;

/** Of one value or an index instead of a sum: see ops/extreme.c. Dimensions [axis, axis + count) are reduced. */
typedef struct mixt__extreme_attrs {
    int axis, count;
    bool keep_dims;
    bool smallest;
    bool index; // of extreme: where it is, the first of equals, in INT32
} mixt__extreme_attrs;

/** Which positions of a dimension a result's position is made from: see ops/sample.c. */
typedef enum mixt__sample_kind {
    MIXT_SAMPLE_STEP,    // begin + i · step
    MIXT_SAMPLE_EDGE,    // i - begin, what lies outside at the edge
    MIXT_SAMPLE_REFLECT, // turned around there
    MIXT_SAMPLE_WRAP,    // at the other end
    MIXT_SAMPLE_RESIZE,  // by mode and place
} mixt__sample_kind;

/** full: size of that dimension before sampling. Modes and places are those of mixt/ops.h; scale is above 0. */
typedef struct mixt__sample_attrs {
    int axis;
    mixt__sample_kind kind;
    int64_t size, full, begin, step;
    int mode, place;
    double scale;
} mixt__sample_attrs;

typedef struct mixt__cumsum_attrs {
    int axis;
    bool exclusive, reverse;
} mixt__cumsum_attrs;

typedef struct mixt__trilu_attrs {
    bool upper;
    int64_t diagonal;
} mixt__trilu_attrs;

typedef struct mixt__reshape_attrs {
    mixt__shape shape;
} mixt__reshape_attrs;

typedef struct mixt__transpose_attrs {
    int order[MIXT_MAX_RANK];
} mixt__transpose_attrs;

typedef struct mixt__slice_attrs {
    int axis;
    int64_t begin, end, full; // full: size of that dimension before slicing
} mixt__slice_attrs;

typedef struct mixt__split_attrs {
    int parts;
    int64_t sizes[8]; // of the parts, 8 at most; all 0: equal ones
} mixt__split_attrs;

typedef struct mixt__concat_attrs {
    int axis;
} mixt__concat_attrs;

typedef struct mixt__loss_attrs {
    float smoothing; // cross-entropy: share of the target spread evenly over all classes
    int64_t classes; // cross-entropy: the first so many logits of a row count, the rest is padding; 0: all
} mixt__loss_attrs;

/** Divergence from a teacher, beside the cross-entropy with labels: see ops/kl.c. */
typedef struct mixt__kl_attrs {
    mixt__loss_attrs loss; // of the cross-entropy; its classes count for both
    float temperature;     // that scores are divided by
    float weight, task;    // of the divergence, of the cross-entropy
} mixt__kl_attrs;

/** Connectionist temporal classification: see ops/ctc.c. */
typedef struct mixt__ctc_attrs {
    int64_t blank;  // the class that says nothing
    int64_t stride; // of the lengths in frames: so many are one frame of the logits; 0: 1
    int64_t window; // so many of them a frame of the logits has seen, and counts only where a sample has all; 0: 1
} mixt__ctc_attrs;

/** The logarithm of a probability of 0 in CTC's tables: finite, so that what is added to it and taken from it stays so.
 */
#define MIXT_CTC_NEVER (-1e30f)

/** A classifier's head, its loss and all their gradients: see ops/head.c. Made by the classifier pass only. */
typedef struct mixt__head_attrs {
    bool bias;
    bool relu; // the input was made by a ReLU: its gradient counts only where it is above 0
    mixt__loss_attrs loss;
} mixt__head_attrs;

/** See ops/scaled_cast.c. Made by the keep and quantise passes only. */
typedef struct mixt__scaled_cast_attrs {
    mixt_dtype dtype; // FP8 E4M3, E5M2 or FP16
    bool flush;       // what is too small becomes 0: for products, whose sums lose nothing by it
} mixt__scaled_cast_attrs;

/** The scale of a scaled cast: bits of a power of two in FP32, from the bits of the largest finite magnitude in FP32.
 *  Whole numbers only, so that every backend gives the same. */
static inline uint32_t mixt__cast_scale_bits(uint32_t largest, mixt_dtype dtype)
{
    bool fp16 = dtype == MIXT_DTYPE_FP16; // no table here: kernels of all backends call this
    // of the format's largest number: (2 - 2^-10) · 2^15 of FP16, 1.75 · 2^8 of E4M3, 1.75 · 2^15 of E5M2
    uint32_t mantissa = fp16 ? 0x7fe000 : 0x600000;
    int32_t exponent =
        (int32_t)(largest >> 23) - (dtype == MIXT_DTYPE_FP8_E4M3 ? 8 : 15) + ((largest & 0x7fffff) > mantissa);
    if (largest == 0)
        return (uint32_t)127 << 23;
    return (uint32_t)(exponent < 1 ? 1 : exponent) << 23;
}

/** Classes in a row of `width` logits. */
static inline int64_t mixt__loss_classes(const mixt__loss_attrs *attrs, int64_t width)
{
    return attrs->classes > 0 && attrs->classes < width ? attrs->classes : width;
}

/* ---- statistics of values, and how two values differ: see ops/statistics.c ---- */

enum { MIXT_STATS_TARGETS = 3, MIXT_STATS_BINS = 256 };

/** Output 0 of tensor_stats, FP64: over what is finite. Of nothing: 0, 0, +infinity, -infinity, 0. */
typedef enum mixt__stats_number {
    MIXT_STATS_SUM,
    MIXT_STATS_SQUARES,
    MIXT_STATS_MIN,
    MIXT_STATS_MAX,
    MIXT_STATS_AMAX, // largest magnitude
    MIXT_STATS_NUMBERS
} mixt__stats_number;

/** Output 1 of tensor_stats, INT64. */
typedef enum mixt__stats_count {
    MIXT_STATS_COUNT, // elements
    MIXT_STATS_ZEROS,
    MIXT_STATS_NAN,
    MIXT_STATS_INF,
    MIXT_STATS_BEYOND,                                              // by target: finite, but rounded to it no more
    MIXT_STATS_FLUSHED = MIXT_STATS_BEYOND + MIXT_STATS_TARGETS,    // by target: not 0, but rounded to it 0
    MIXT_STATS_EXPONENTS = MIXT_STATS_FLUSHED + MIXT_STATS_TARGETS, // by the exponent field of FP32: bin e counts
                                                                    // magnitudes from 2^(e - 127) to below its double;
                                                                    // 0: zeros and subnormals, 255: not finite
    MIXT_STATS_COUNTS = MIXT_STATS_EXPONENTS + MIXT_STATS_BINS
} mixt__stats_count;

typedef struct mixt__tensor_stats_attrs {
    mixt_dtype targets[MIXT_STATS_TARGETS]; // formats that values are held against; NONE: counts 0
    int32_t tag;                            // for who put the node there; nobody else reads it
} mixt__tensor_stats_attrs;

/** Output 0 of tensor_error, FP64: over pairs of finite numbers, with e = other - reference and weight w. */
typedef enum mixt__diff_number {
    MIXT_DIFF_SQUARES,   // sum of e²
    MIXT_DIFF_REFERENCE, // sum of reference²
    MIXT_DIFF_OTHER,     // sum of other²
    MIXT_DIFF_PRODUCT,   // sum of reference · other
    MIXT_DIFF_LARGEST,   // largest |e|
    MIXT_DIFF_FIRST,     // sum of w · e; 0 without a weight
    MIXT_DIFF_SECOND,    // sum of w² · e²; 0 without a weight
    MIXT_DIFF_NUMBERS
} mixt__diff_number;

/** Output 1 of tensor_error, INT64. */
typedef enum mixt__diff_count {
    MIXT_DIFF_COUNT,   // elements
    MIXT_DIFF_SKIPPED, // the reference, or the weight, is not finite
    MIXT_DIFF_BROKEN,  // only the other is not finite
    MIXT_DIFF_FLUSHED, // the reference is not 0, the other is
    MIXT_DIFF_COUNTS
} mixt__diff_count;

typedef struct mixt__tensor_error_attrs {
    bool weight; // a third input
    int32_t tag; // for who put the node there; nobody else reads it
} mixt__tensor_error_attrs;

/* ---- pointwise programs ---- */

/** MIXT_PW(CODE, name, operands). Operand values are a, b, c; imm is a constant of the instruction. */
#define MIXT_POINTWISE_LIST(X)                                                                                         \
    X(COPY, "copy", 1)                   /* a */                                                                       \
    X(ADD, "add", 2)                     /* a + b */                                                                   \
    X(SUB, "sub", 2)                     /* a - b */                                                                   \
    X(MUL, "mul", 2)                     /* a · b */                                                                  \
    X(DIV, "div", 2)                     /* a / b */                                                                   \
    X(MAX, "max", 2)                     /* a > b ? a : b, NaN if either is */                                         \
    X(MIN, "min", 2)                     /* a < b ? a : b, NaN if either is */                                         \
    X(SELECT_GE, "select_ge", 3)         /* a >= b ? c : 0: gradient of MAX */                                         \
    X(SELECT_LT, "select_lt", 3)         /* a < b ? c : 0 */                                                           \
    X(WHERE, "where", 2)                 /* a > 0 ? b : 0: what a mask leaves */                                       \
    X(AFFINE, "affine", 1)               /* a · imm + imm2 */                                                         \
    X(RELU, "relu", 1)                   /* a > 0 ? a : 0, NaN stays */                                                \
    X(RELU_GRAD, "relu_grad", 2)         /* a (the output) > 0 ? b : 0 */                                              \
    X(GELU, "gelu", 1)                   /* tanh form */                                                               \
    X(GELU_GRAD, "gelu_grad", 2)         /* derivative at a (the input) · b */                                        \
    X(GELU_ERF, "gelu_erf", 1)           /* a · Φ(a): the exact form */                                              \
    X(GELU_ERF_GRAD, "gelu_erf_grad", 2) /* derivative at a (the input) · b */                                        \
    X(SILU, "silu", 1)                   /* a · sigmoid(a) */                                                         \
    X(SILU_GRAD, "silu_grad", 2)         /* derivative at a (the input) · b */                                        \
    X(SWIGLU, "swiglu", 2)               /* a · sigmoid(a) · b */                                                    \
    X(SIGMOID, "sigmoid", 1)                                                                                           \
    X(SIGMOID_GRAD, "sigmoid_grad", 2) /* a (the output) · (1 - a) · b */                                            \
    X(TANH, "tanh", 1)                                                                                                 \
    X(TANH_GRAD, "tanh_grad", 2) /* (1 - a²) · b, a the output */                                                    \
    X(EXP, "exp", 1)                                                                                                   \
    X(LOG, "log", 1)                                                                                                   \
    X(SQRT, "sqrt", 1)                                                                                                 \
    X(SQUARE, "square", 1)                                                                                             \
    X(DROPOUT, "dropout", 1) /* kept with probability 1 - imm (by key and element index): a / (1 - imm); else 0 */     \
    X(ABS, "abs", 1)                                                                                                   \
    X(ABS_GRAD, "abs_grad", 2) /* a (the input) > 0 ? b : a < 0 ? -b : 0 */                                            \
    X(FLOOR, "floor", 1)                                                                                               \
    X(CEIL, "ceil", 1)                                                                                                 \
    X(ROUND, "round", 1)                         /* to nearest, halves to even */                                      \
    X(RECIPROCAL, "reciprocal", 1)               /* 1 / a */                                                           \
    X(RECIPROCAL_GRAD, "reciprocal_grad", 2)     /* -a² · b, a the output */                                         \
    X(LEAKY_RELU, "leaky_relu", 1)               /* a > 0 ? a : a · imm */                                            \
    X(LEAKY_RELU_GRAD, "leaky_relu_grad", 2)     /* a (the input) > 0 ? b : b · imm */                                \
    X(HARD_SIGMOID, "hard_sigmoid", 1)           /* a · imm + imm2, from 0 to 1 */                                    \
    X(HARD_SIGMOID_GRAD, "hard_sigmoid_grad", 2) /* b · imm where that lies between them, a the input */              \
    X(HARD_SWISH, "hard_swish", 1)               /* a · (a / 6 + 1/2), 0 below -3, a above 3 */                       \
    X(HARD_SWISH_GRAD, "hard_swish_grad", 2)     /* derivative at a (the input) · b */                                \
    X(CLIP, "clip", 1)                           /* a, at least imm and at most imm2; NaN stays */                     \
    X(CLIP_GRAD, "clip_grad", 2)                 /* a (the input) from imm to imm2 ? b : 0 */                          \
    X(EQUAL, "equal", 2)                         /* a == b ? 1 : 0 */                                                  \
    X(LESS, "less", 2)                           /* a < b ? 1 : 0 */                                                   \
    X(WHERE_NOT, "where_not", 2)                 /* a > 0 ? 0 : b */                                                   \
    X(SELECT, "select", 3)                       /* a > 0 ? b : c */                                                   \
    X(SIN, "sin", 1)                                                                                                   \
    X(COS, "cos", 1)                                                                                                   \
    X(ERF, "erf", 1)                                                                                                   \
    X(ERF_GRAD, "erf_grad", 2)           /* derivative at a (the input) · b */                                        \
    X(POW, "pow", 2)                     /* a to the power b */                                                        \
    X(POWER, "power", 1)                 /* a to the power imm */                                                      \
    X(ELU, "elu", 1)                     /* imm2 · (a > 0 ? a : imm · (e^a - 1)) */                                  \
    X(ELU_GRAD, "elu_grad", 2)           /* derivative at a (the input) · b */                                        \
    X(SOFTPLUS, "softplus", 1)           /* log(1 + e^a) */                                                            \
    X(SOFTPLUS_GRAD, "softplus_grad", 2) /* sigmoid(a) · b, a the input */                                            \
    X(MISH, "mish", 1)                   /* a · tanh(log(1 + e^a)) */                                                 \
    X(MISH_GRAD, "mish_grad", 2)         /* derivative at a (the input) · b */

typedef enum mixt__pw_code {
#define MIXT_PW_ENUM(code, name, operands) MIXT_PW_##code,
    MIXT_POINTWISE_LIST(MIXT_PW_ENUM)
#undef MIXT_PW_ENUM
        MIXT_PW_COUNT
} mixt__pw_code;

enum { MIXT_PW_MAX_INSTRS = 32, MIXT_PW_MAX_INPUTS = 8, MIXT_PW_MAX_OUTPUTS = 4 };

/** Operands: 0 … inputs-1 are the node's inputs, inputs + i is the result of instruction i. */
typedef struct mixt__pw_instr {
    mixt__pw_code code;
    int a, b, c;
    float imm, imm2;
    uint32_t key; // random stream of DROPOUT
} mixt__pw_instr;

/** A small straight-line program over the elements of the output's shape, in FP32; inputs broadcast as in NumPy. */
typedef struct mixt__pointwise_attrs {
    int in_count, instr_count, out_count;
    mixt__pw_instr instrs[MIXT_PW_MAX_INSTRS];
    int outs[MIXT_PW_MAX_OUTPUTS];              // operand numbers that are stored
    mixt_dtype out_dtypes[MIXT_PW_MAX_OUTPUTS]; // NONE: widest of the inputs
    mixt__shape domain;                         // with has_domain: the outputs' shape, else the broadcast of the inputs
    bool has_domain;
    bool cast_by_hand; // the user chose this format: the precision pass leaves it
} mixt__pointwise_attrs;

/** Whether an instruction has constants beside its operands; DROPOUT's is another matter. */
static inline bool mixt__pw_has_constants(mixt__pw_code code)
{
    return code == MIXT_PW_AFFINE || code == MIXT_PW_LEAKY_RELU || code == MIXT_PW_LEAKY_RELU_GRAD ||
           code == MIXT_PW_HARD_SIGMOID || code == MIXT_PW_HARD_SIGMOID_GRAD || code == MIXT_PW_CLIP ||
           code == MIXT_PW_CLIP_GRAD || code == MIXT_PW_POWER || code == MIXT_PW_ELU || code == MIXT_PW_ELU_GRAD;
}

extern const char *const mixt__pw_names[MIXT_PW_COUNT];
extern const int mixt__pw_operands[MIXT_PW_COUNT];

#endif
