/* Which operations are there beside the layers of mixt/graph.h? Functions of values, each with its gradient unless said
 * otherwise: more activations, comparisons, ways to cut, pad, resize and gather, and reductions.
 *
 * Two operands broadcast as in NumPy. Conditions are numbers: above 0 is true.
 */
#ifndef MIXT_OPS_H
#define MIXT_OPS_H

#include "mixt/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- functions of each element ---- */
MIXT_API mixt_value mixt_abs(mixt_builder *b, mixt_value x);
/** To a whole number: down, up, to the nearest (halves to even). Their gradient is 0. */
MIXT_API mixt_value mixt_floor(mixt_builder *b, mixt_value x);
MIXT_API mixt_value mixt_ceil(mixt_builder *b, mixt_value x);
MIXT_API mixt_value mixt_round(mixt_builder *b, mixt_value x);
/** 1 / x */
MIXT_API mixt_value mixt_reciprocal(mixt_builder *b, mixt_value x);
MIXT_API mixt_value mixt_sin(mixt_builder *b, mixt_value x);
MIXT_API mixt_value mixt_cos(mixt_builder *b, mixt_value x);
/** The error function. */
MIXT_API mixt_value mixt_erf(mixt_builder *b, mixt_value x);
/** log(1 + e^x) */
MIXT_API mixt_value mixt_softplus(mixt_builder *b, mixt_value x);
/** x · tanh(softplus(x)) */
MIXT_API mixt_value mixt_mish(mixt_builder *b, mixt_value x);
/** x · (x / 6 + 1/2), 0 below -3, x above 3. */
MIXT_API mixt_value mixt_hard_swish(mixt_builder *b, mixt_value x);
/** x · slope + shift, at least 0 and at most 1; most often 0.2 or 1/6, and 0.5. */
MIXT_API mixt_value mixt_hard_sigmoid(mixt_builder *b, mixt_value x, float slope, float shift);
/** x above 0, else x · slope. */
MIXT_API mixt_value mixt_leaky_relu(mixt_builder *b, mixt_value x, float slope);
/** The same with slopes that are values: a parameter of x's channels, say. */
MIXT_API mixt_value mixt_prelu(mixt_builder *b, mixt_value x, mixt_value slope);
/** x above 0, else alpha · (e^x - 1). */
MIXT_API mixt_value mixt_elu(mixt_builder *b, mixt_value x, float alpha);
/** Scaled exponential linear unit. */
MIXT_API mixt_value mixt_selu(mixt_builder *b, mixt_value x);
/** x to the power y. Below 0 for whole numbers y only; y's gradient is 0 where x is not above 0. */
MIXT_API mixt_value mixt_pow(mixt_builder *b, mixt_value x, mixt_value y);
MIXT_API mixt_value mixt_power(mixt_builder *b, mixt_value x, float exponent);
/** x, at least low and at most high; -INFINITY and INFINITY for no bound. */
MIXT_API mixt_value mixt_clip(mixt_builder *b, mixt_value x, float low, float high);

/* ---- comparisons: 1 or 0, without a gradient ---- */
MIXT_API mixt_value mixt_equal(mixt_builder *b, mixt_value x, mixt_value y);
MIXT_API mixt_value mixt_less(mixt_builder *b, mixt_value x, mixt_value y);
MIXT_API mixt_value mixt_greater(mixt_builder *b, mixt_value x, mixt_value y);
/** 1 where x is not above 0. */
MIXT_API mixt_value mixt_not(mixt_builder *b, mixt_value x);
/** x where the condition is above 0, else y. */
MIXT_API mixt_value mixt_select(mixt_builder *b, mixt_value condition, mixt_value x, mixt_value y);

/* ---- shapes ---- */
/** x repeated to a shape that it broadcasts to. */
MIXT_API mixt_value mixt_expand(mixt_builder *b, mixt_value x, int rank, const int64_t *dims);
/** x repeated counts[i] times along dimension i. */
MIXT_API mixt_value mixt_tile(mixt_builder *b, mixt_value x, const int64_t *counts);
/** `count` positions of one dimension, from begin on, each step behind the last; a step below 0 goes back. */
MIXT_API mixt_value mixt_slice_step(mixt_builder *b, mixt_value x, int axis, int64_t begin, int64_t count,
                                    int64_t step);

typedef enum mixt_pad_mode {
    MIXT_PAD_ZERO,
    MIXT_PAD_EDGE,    /**< what stands at the edge */
    MIXT_PAD_REFLECT, /**< what stands behind the edge, turned around; less than the dimension's size */
    MIXT_PAD_WRAP,    /**< what stands at the other end */
} mixt_pad_mode;
/** One dimension made longer at both ends. */
MIXT_API mixt_value mixt_pad(mixt_builder *b, mixt_value x, int axis, int64_t before, int64_t behind,
                             mixt_pad_mode mode);

/** Where result position i of `size` lies among `from` of the source. */
typedef enum mixt_resize_place {
    MIXT_RESIZE_HALF_PIXEL,    /**< (i + 1/2) / scale - 1/2 */
    MIXT_RESIZE_ASYMMETRIC,    /**< i / scale */
    MIXT_RESIZE_ALIGN_CORNERS, /**< i · (from - 1) / (size - 1) */
    MIXT_RESIZE_HALF_PIXEL_ONE /**< as HALF_PIXEL, but 0 where size is 1 */
} mixt_resize_place;
typedef enum mixt_resize_mode {
    MIXT_RESIZE_NEAREST, /**< the nearest position, the lower of two */
    MIXT_RESIZE_NEAREST_UP,
    MIXT_RESIZE_FLOOR,
    MIXT_RESIZE_CEIL,
    MIXT_RESIZE_LINEAR,
} mixt_resize_mode;
/** One dimension resized to `size` positions. @param scale 0: size / from */
MIXT_API mixt_value mixt_resize(mixt_builder *b, mixt_value x, int axis, int64_t size, mixt_resize_mode mode,
                                mixt_resize_place place, double scale);
/** (N, H, W, C) → (N, H·block, W·block, C / block²). @param channels_first a channel's block² places lie together,
 *  instead of all channels of a place */
MIXT_API mixt_value mixt_depth_to_space(mixt_builder *b, mixt_value x, int64_t block, bool channels_first);
/** (N, H, W, C) → (N, H / block, W / block, C · block²), all channels of a place together. */
MIXT_API mixt_value mixt_space_to_depth(mixt_builder *b, mixt_value x, int64_t block);
/** Positions `ids` (INT32, any shape) of one dimension: their shape takes the dimension's place. */
MIXT_API mixt_value mixt_gather(mixt_builder *b, mixt_value x, mixt_value ids, int axis);
/** What lies on and above (or below) the diagonal of the last two dimensions, moved by `diagonal`; 0 elsewhere. */
MIXT_API mixt_value mixt_trilu(mixt_builder *b, mixt_value x, bool upper, int64_t diagonal);

/* ---- along dimensions ---- */
/** Sums of all positions up to each. @param exclusive without the position itself @param reverse from the end */
MIXT_API mixt_value mixt_cumsum(mixt_builder *b, mixt_value x, int axis, bool exclusive, bool reverse);
/** Largest and smallest element; equal ones share the gradient. NaN wins. */
MIXT_API mixt_value mixt_reduce_max_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *o);
MIXT_API mixt_value mixt_reduce_min_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *o);
/** INT32: where along one dimension the largest is, the first of equals. No gradient. */
MIXT_API mixt_value mixt_argmax(mixt_builder *b, mixt_value x, int axis, bool keep_dims);
/** Root of the sum of squares. */
MIXT_API mixt_value mixt_reduce_l2_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *o);
#define mixt_reduce_max(b, x, ...) mixt_reduce_max_with((b), (x), MIXT_OPTIONS_AT(mixt_reduce_options, __VA_ARGS__))
#define mixt_reduce_min(b, x, ...) mixt_reduce_min_with((b), (x), MIXT_OPTIONS_AT(mixt_reduce_options, __VA_ARGS__))
#define mixt_reduce_l2(b, x, ...) mixt_reduce_l2_with((b), (x), MIXT_OPTIONS_AT(mixt_reduce_options, __VA_ARGS__))
/** (N, H, W, C) or (N, D, H, W, C) → (N, C), the largest. */
MIXT_API mixt_value mixt_global_max_pool(mixt_builder *b, mixt_value x);
/** Logarithm of the softmax over one dimension. */
MIXT_API mixt_value mixt_log_softmax(mixt_builder *b, mixt_value x, int axis);
MIXT_API mixt_value mixt_softmax_over(mixt_builder *b, mixt_value x, int axis);

/** Products of matrices (…, M, K) and (…, K, N) whose leading dimensions broadcast as in NumPy. */
MIXT_API mixt_value mixt_matmul_broadcast(mixt_builder *b, mixt_value x, mixt_value y);

/* ---- norms ---- */
/** Of (N, …, C): each of `groups` equal parts of the channels minus its mean over all but N, divided by its standard
 *  deviation. */
MIXT_API mixt_value mixt_normalize_groups(mixt_builder *b, mixt_value x, int64_t groups, float eps);
/** The same, then times name.weight plus name.bias (C). With as many groups as channels: instance norm. Of the options
 *  eps and zero count. */
MIXT_API mixt_value mixt_group_norm_with(mixt_builder *b, const char *name, mixt_value x, int64_t groups,
                                         const mixt_norm_options *o);
#define mixt_group_norm(b, name, x, groups, ...)                                                                       \
    mixt_group_norm_with((b), (name), (x), (groups), MIXT_OPTIONS_AT(mixt_norm_options, __VA_ARGS__))
/** Layer norm over dimension `axis` and all behind it. Parameters name.weight and name.bias, as many as these hold. */
MIXT_API mixt_value mixt_layer_norm_over_with(mixt_builder *b, const char *name, mixt_value x, int axis,
                                              const mixt_norm_options *o);
#define mixt_layer_norm_over(b, name, x, axis, ...)                                                                    \
    mixt_layer_norm_over_with((b), (name), (x), (axis), MIXT_OPTIONS_AT(mixt_norm_options, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
