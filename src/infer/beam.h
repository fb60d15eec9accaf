/* Beam search over several texts at once: which texts are being written, and which of them go on.
 *
 * Knows nothing of models: it hands out what has been written and takes the logits of what may come next. A text's
 * score is the sum of its tokens' log-probabilities over length^penalty, the end counted. Equal scores: the earlier
 * beam, then the lower token, so that the result is a function of the logits.
 */
#ifndef MIXT_INFER_BEAM_H
#define MIXT_INFER_BEAM_H

#include "mixt/tasks/translate.h"

typedef struct mixt__beam_options {
    int64_t texts; // at once
    int64_t beams; // 1: the most probable token at each step
    double penalty;
    int32_t end;     // the token that begins and ends a text
    int64_t longest; // tokens of a text, the end counted
    int64_t vocab;   // tokens that may be written
} mixt__beam_options;

typedef struct mixt__beams mixt__beams;

mixt_status mixt__beams_new(const mixt__beam_options *options, mixt__beams **beams);
/** NULL is allowed. */
void mixt__beams_free(mixt__beams *beams);

/** Texts begin anew. @param longest (texts) of each, at most that of the options; 0: there is no such text */
void mixt__beams_start(mixt__beams *beams, const int64_t *longest);
/** Whether every text has come to its end. */
bool mixt__beams_done(const mixt__beams *beams);
/** Tokens that each text has so far, which is the place that the next logits are for. */
int64_t mixt__beams_length(const mixt__beams *beams);
/** The token that each beam has written last, `end` where none has: (texts · beams). */
void mixt__beams_newest(const mixt__beams *beams, int32_t *tokens);
/** Which beam of its text each has gone on from with the last step: (texts · beams). */
const int32_t *mixt__beams_from(const mixt__beams *beams);
/** Takes the logits of the next token, (texts · beams, width), and goes a step on. */
void mixt__beams_step(mixt__beams *beams, const float *logits, int64_t width);
/** The best text, without its end; `whole`: it has one. */
const int32_t *mixt__beams_best(const mixt__beams *beams, int64_t text, int64_t *length, double *score, bool *whole);

#endif
