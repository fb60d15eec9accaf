/* Whether a run ends worse than it began: the loss of its first update, when nothing was learned yet, against those of
 * its last ones.
 *
 * One update alone is noisy, so the last ones must be far above it, by their median: by five of their deviations and
 * 2%, all of logarithms. Losses that scatter by more than a factor of two are not judged so. Where targets are classes
 * or tokens a loss also has a scale of its own: if each of the last ones is above the first, and above twice what
 * guessing all classes alike costs, the run is lost however they scatter. Runs of less than 64 updates are never judged.
 */
#ifndef MIXT_RUN_COURSE_H
#define MIXT_RUN_COURSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { MIXT_COURSE_LAST = 32 };

/** Zero-initialised: nothing was seen. */
typedef struct mixt__course {
    double first;                  // the first finite loss
    int64_t seen;                  // finite losses
    double last[MIXT_COURSE_LAST]; // the newest, number `seen` at (seen - 1) % MIXT_COURSE_LAST
} mixt__course;

/** Takes in the loss of an update. One that is not finite tells nothing: see run/health.h. */
void mixt__course_take(mixt__course *course, double loss);
/** Whether it ends worse than it began.
 *  @param drifts samples come in an order of their own: losses may rise by what they are of, up to three times
 *  @param guess the loss of a model that finds all classes equally likely; 0: targets are no classes
 *  @param ended receives the median of the last losses */
bool mixt__course_worse(const mixt__course *course, bool drifts, double guess, double *ended);

json_t *mixt__course_pack(const mixt__course *course);
/** NULL: a checkpoint of an earlier version; what came before it is not judged. */
void mixt__course_unpack(mixt__course *course, const json_t *object);

#endif
