/* What is training to make small? Losses as functions of the builder: a model that was made with MIXT_LOSS_CUSTOM says
 * it itself:
 *
 *     static mixt_value ratings(mixt_builder *b, mixt_value user)
 *     {
 *         mixt_value item = mixt_input(b, "item");
 *         …
 *         mixt_loss_add(b, mixt_loss_mse(b, rating, mixt_target(b, "rating")), 1);
 *         return rating;
 *     }
 *
 * Every loss is one FP32 number, the mean over what counts, whatever the formats of the model; so are sums of losses.
 * What a loss must not count is marked in the targets: a negative label, a NaN among values.
 */
#ifndef MIXT_LOSS_H
#define MIXT_LOSS_H

#include "mixt/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_cross_entropy_options {
    size_t struct_size;
    float smoothing; /**< share of the target spread over all classes while training; default 0 */
    int64_t classes; /**< outputs that count, those behind are padding; default: all */
} mixt_cross_entropy_options;
MIXT_API void mixt_cross_entropy_options_default(mixt_cross_entropy_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_cross_entropy_options .struct_size = sizeof(mixt_cross_entropy_options)
/** Cross-entropy of logits (…, classes) with INT32 labels (…); a negative label is left out. */
MIXT_API mixt_value mixt_loss_cross_entropy_with(mixt_builder *b, mixt_value logits, mixt_value labels,
                                                 const mixt_cross_entropy_options *o);
#define mixt_loss_cross_entropy(b, logits, labels, ...)                                                                \
    mixt_loss_cross_entropy_with((b), (logits), (labels), MIXT_OPTIONS_AT(mixt_cross_entropy_options, __VA_ARGS__))
/** Mean squared error against as many FP32 values; a NaN is left out. */
MIXT_API mixt_value mixt_loss_mse(mixt_builder *b, mixt_value outputs, mixt_value values);
/** Binary cross-entropy of logits with as many FP32 values from 0 to 1; a NaN is left out. */
MIXT_API mixt_value mixt_loss_bce(mixt_builder *b, mixt_value logits, mixt_value values);

/**
 * Cross-entropy of each row for itself: FP32 (…), 0 where the label is negative. For losses that weigh rows, or that
 * compare sums of them: what comes of it goes to mixt_loss_add, by mixt_loss_mean or mixt_loss_bce say. On CPUs alone.
 * @param logits (…, classes)
 * @param labels INT32 (…)
 * @param classes outputs that count, those behind are padding; 0: all
 */
MIXT_API mixt_value mixt_loss_cross_entropy_rows(mixt_builder *b, mixt_value logits, mixt_value labels,
                                                 int64_t classes);

typedef struct mixt_kl_options {
    size_t struct_size;
    float temperature; /**< that both scores are divided by, above 0; default 1 */
    int64_t classes;   /**< scores of a row that count, those behind are padding; default: all */
    mixt_value labels; /**< INT32, one a row: a negative one leaves its row out; default: all rows count */
} mixt_kl_options;
MIXT_API void mixt_kl_options_default(mixt_kl_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_kl_options .struct_size = sizeof(mixt_kl_options), .temperature = 1
/**
 * Kullback-Leibler divergence from a teacher: of softmax(logits / T) from softmax(teacher / T), the mean over rows.
 * @param logits (…, classes)
 * @param teacher scores, as many rows of as many classes, in any float format; taken as given: no gradient flows to
 * them
 */
MIXT_API mixt_value mixt_loss_kl_with(mixt_builder *b, mixt_value logits, mixt_value teacher, const mixt_kl_options *o);
#define mixt_loss_kl(b, logits, teacher, ...)                                                                          \
    mixt_loss_kl_with((b), (logits), (teacher), MIXT_OPTIONS_AT(mixt_kl_options, __VA_ARGS__))

typedef struct mixt_distill_options {
    size_t struct_size;
    float weight;      /**< the teacher's share w, above 0 and at most 1; default 0.5 */
    float temperature; /**< T, above 0, that scores are divided by; default 1 */
    float smoothing;   /**< of the labels, as for cross-entropy; default 0 */
    int64_t classes;   /**< scores of a row that count; default: all */
} mixt_distill_options;
MIXT_API void mixt_distill_options_default(mixt_distill_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_distill_options .struct_size = sizeof(mixt_distill_options), .weight = 0.5f, .temperature = 1
/**
 * What a student learns from a teacher and from labels: (1 - w) · cross-entropy + w · T² · KL. The same as the sum of
 * the two losses, but the logits are read once for both; accuracy is that of the cross-entropy.
 */
MIXT_API mixt_value mixt_loss_distill_with(mixt_builder *b, mixt_value logits, mixt_value teacher, mixt_value labels,
                                           const mixt_distill_options *o);
#define mixt_loss_distill(b, logits, teacher, labels, ...)                                                             \
    mixt_loss_distill_with((b), (logits), (teacher), (labels), MIXT_OPTIONS_AT(mixt_distill_options, __VA_ARGS__))

typedef struct mixt_ctc_options {
    size_t struct_size;
    int64_t blank;     /**< the class that says nothing; default 0 */
    mixt_value frames; /**< INT32 (N): frames that each sample has; default: all have all */
    int64_t stride;    /**< of `frames`: so many of them are one frame of the logits, as where a model pools them;
                            default 1 */
    int64_t window; /**< of `frames`: so many of them a frame of the logits has seen. It counts where a sample has all
                         of them, as in a sample that is not padded; default 1: any of them */
} mixt_ctc_options;
MIXT_API void mixt_ctc_options_default(mixt_ctc_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_ctc_options .struct_size = sizeof(mixt_ctc_options), .stride = 1, .window = 1
/**
 * Connectionist temporal classification: -log of how likely the labels are over all ways to place them on the frames,
 * with repeats and blanks between. The mean over samples; those that cannot be, because their labels need more frames
 * than there are, or are no classes, are left out, as are samples of a negative length. Accuracy is the share of
 * samples whose most likely frames spell the labels.
 * @param logits (N, frames, classes)
 * @param labels INT32 (N, S); what lies behind a sample's length is not looked at
 * @param lengths INT32 (N): labels that each sample has; 0: none, all frames are blank
 */
MIXT_API mixt_value mixt_loss_ctc_with(mixt_builder *b, mixt_value logits, mixt_value labels, mixt_value lengths,
                                       const mixt_ctc_options *o);
#define mixt_loss_ctc(b, logits, labels, lengths, ...)                                                                 \
    mixt_loss_ctc_with((b), (logits), (labels), (lengths), MIXT_OPTIONS_AT(mixt_ctc_options, __VA_ARGS__))

/** The place of each sample in its batch, INT32, and -1 where its target is negative: labels for losses that tell a
 *  sample's own partner from those of the others, as a contrastive one does.
 *  @param targets INT32 (N) */
MIXT_API mixt_value mixt_places(mixt_builder *b, mixt_value targets);

/** A loss of one's own: the mean of `each`, made from ops, over the elements whose target counts.
 *  @param each one number for each target, at places that do not count too
 *  @param targets as many FP32 values (NaN: left out) or INT32 labels (negative: left out); the null value: all count
 */
MIXT_API mixt_value mixt_loss_mean(mixt_builder *b, mixt_value each, mixt_value targets);

/**
 * Adds weight × loss to what the model is trained for. What is shown as the loss is that sum; accuracy and the number
 * of targets are those of the loss that was added first. Graphs without a loss (mixt_builder_has_loss) pass over it.
 * @param loss one number: of a function above, or made from such by ops
 * @param weight finite
 */
MIXT_API void mixt_loss_add(mixt_builder *b, mixt_value loss, float weight);

#ifdef __cplusplus
}
#endif
#endif
