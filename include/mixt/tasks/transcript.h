/* What was said? Letters from the outputs of a model that was trained with CTC (mixt/loss.h), and how far they are
 * from what should have come out.
 *
 *   mixt_trainer_predict(trainer, sample, 1, outputs);
 *   mixt_transcript_decode(outputs, output_count / classes, classes, 1, letters, &count);
 *   mixt_transcript_text(mixt_run_facts(run), letters, count, text, sizeof text);
 *
 * Class 0 is the blank, which says nothing; the others are letters, by class_names of the data.
 */
#ifndef MIXT_TASKS_TRANSCRIPT_H
#define MIXT_TASKS_TRANSCRIPT_H

#include "mixt/data.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The letters that outputs stand for.
 * @param outputs (frames, classes) logits of one sample.
 * @param frames, classes at least 1 and 2.
 * @param beam 1: the most likely class of each frame, repeats and blanks left out. More: the row of letters that is the
 *   most likely over all its ways through the frames, as far as so many rows are followed at once; at most 1000.
 * @param letters room for `frames`.
 * @param count set to how many there are.
 * @return MIXT_ERROR_DATA where an output is not finite.
 */
MIXT_API mixt_status mixt_transcript_decode(const float *outputs, int64_t frames, int64_t classes, int64_t beam,
                                            int32_t *letters, int64_t *count);

/**
 * Letters as text.
 * @param data whose class_names the letters are; a set of transcripts, or what a run remembers of it (mixt_run_facts).
 * @param letters, count as decoded, or as they stand in a target; one that is not known becomes "?".
 * @param text receives it, for mixt_free; NULL on failure.
 */
MIXT_API mixt_status mixt_transcript_text(const mixt_data *data, const int32_t *letters, int64_t count, char **text);

/**
 * The fewest changes that turn one row of numbers into another: one put in, left out or replaced.
 * @param a, b rows of a_count and b_count numbers, at least 0; NULL where there are none.
 * @param distance set to it.
 */
MIXT_API mixt_status mixt_edit_distance(const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count,
                                        int64_t *distance);

/** How far transcripts are from what was said. */
typedef struct mixt_transcript_rates {
    int64_t samples, exact;             /**< samples, and those without a mistake */
    int64_t letters, letter_errors;     /**< letters of what was said, and changes that are needed to come to it */
    int64_t words, word_errors;         /**< the same of words, between spaces */
    double character_error, word_error; /**< errors / letters, errors / words; NaN where nothing was said */
} mixt_transcript_rates;

/**
 * Decodes every sample of a set and compares.
 * @param trainer compiled, of a model whose outputs are letters.
 * @param data transcripts (MIXT_TARGET_TEXT).
 * @param beam as of mixt_transcript_decode.
 * @param rates set to what was found.
 */
MIXT_API mixt_status mixt_transcript_measure(mixt_trainer *trainer, const mixt_data *data, int64_t beam,
                                             mixt_transcript_rates *rates);

#ifdef __cplusplus
}
#endif
#endif
