/* What does a model say about samples of my own? Pictures and arrays in the shape and the units of a data set, and the
 * classes that outputs stand for.
 *
 *   mixt_inputs_open("cat.jpg", mixt_run_facts(run), &inputs);
 *   mixt_inputs_read(inputs, 0, 1, sample);
 *   mixt_trainer_predict(trainer, sample, 1, logits);
 *   mixt_classes_rank(logits, classes, 3, best);
 */
#ifndef MIXT_PREDICT_H
#define MIXT_PREDICT_H

#include "mixt/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Samples without labels, in a file. Read-only once open: several threads may read it at once. */
typedef struct mixt_inputs mixt_inputs;

/**
 * Opens a picture (PPM, PGM, PNG, and JPEG where mixt was built with libjpeg), a clip (where samples are clips: a
 * folder of pictures of one size, in the order of their names), an array (.npy: one sample or several) or a file of IDX
 * images; where samples are rows of numbers or words, also a table (CSV, TSV), with its target or without, whose
 * columns are known by the names of its header. Samples are cropped, resized and normalised as evaluation does with
 * `like`; a picture of a set that never resizes has its largest middle part resized. FP32 arrays count as scaled to [0,
 * 1] already, bytes are scaled. Where samples are labelled texts: a file of one text a line, the column of texts of a
 * .tsv or .csv file, or "text:WORDS", which is a text itself.
 * @param like the data that the model was trained on (its training part), or what a run remembers of it
 *   (mixt_run_facts); borrowed: must stay open.
 * @param inputs set to the open file, or to NULL on failure.
 * @return MIXT_ERROR_SHAPE where the file's samples are no samples of that data; MIXT_ERROR_UNSUPPORTED for tokens.
 */
MIXT_API mixt_status mixt_inputs_open(const char *path, const mixt_data *like, mixt_inputs **inputs);
/**
 * The same of an array in memory, row after row, the samples in front; or one sample alone.
 * @param samples read where they are: they must stay until the inputs are closed.
 * @param dtype FP32, or UINT8, which is scaled as a picture's bytes are.
 * @param rank dimensions, from 2 to MIXT_MAX_RANK; images of one channel may do without its dimension.
 * @param like as of mixt_inputs_open; its samples are no texts.
 */
MIXT_API mixt_status mixt_inputs_from(const void *samples, mixt_dtype dtype, int rank, const int64_t *dims,
                                      const mixt_data *like, mixt_inputs **inputs);
/** NULL is allowed. */
MIXT_API void mixt_inputs_close(mixt_inputs *inputs);
/** Samples that there are. */
MIXT_API int64_t mixt_inputs_count(const mixt_inputs *inputs);
/** Line of its file, from 1, that a sample begins on, where samples are the texts of a file or the rows of a table; 0:
 * it has none. Empty lines are no samples, so that lines and samples need not agree. */
MIXT_API int64_t mixt_inputs_line(const mixt_inputs *inputs, int64_t index);
/** What in the file may not be meant, a line each: words of a table that the training part does not have, a picture of
 * another size than those that the model was trained on; NULL: nothing. Valid until it is closed. */
MIXT_API const char *mixt_inputs_warnings(const mixt_inputs *inputs);
/** Whether a sample is a text that is longer than the model has places: its end is not read. */
MIXT_API bool mixt_inputs_cut(const mixt_inputs *inputs, int64_t index);
/**
 * Reads samples first, first + 1, …
 * @param samples room for count × input_elements of the data; of several inputs as a batch of `count` has them.
 * @return MIXT_ERROR_ARGUMENT when there are not that many.
 */
MIXT_API mixt_status mixt_inputs_read(const mixt_inputs *inputs, int64_t first, int64_t count, float *samples);

/** A class and how probable it is, from 0 to 1. */
typedef struct mixt_guess {
    int64_t label;
    double probability;
} mixt_guess;

/**
 * The most probable classes of one sample, the best first; of equal ones the lower first. Probabilities are a softmax
 * in FP64.
 * @param logits of the sample, as mixt_trainer_predict gives them; `classes` numbers.
 * @param top how many to give, at most `classes`.
 * @param guesses room for `top`.
 * @return MIXT_ERROR_DATA where a logit is not finite: see mixt_outputs_check.
 */
MIXT_API mixt_status mixt_classes_rank(const float *logits, int64_t classes, int64_t top, mixt_guess *guesses);

/** MIXT_ERROR_DATA where an output is not finite, for no class is the most probable then: weights are damaged or
 *  diverged, or the input is far from what the model was trained on. */
MIXT_API mixt_status mixt_outputs_check(const float *outputs, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
