/* The level of the loss: where it began, where it was at its best, where it is.
 *
 * What is usual in a window that moves along follows a loss that explodes; these two do not. Values are logarithms.
 */
#ifndef MIXT_MONITOR_LEVEL_H
#define MIXT_MONITOR_LEVEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { MIXT_LEVEL_LAST = 32, MIXT_LEVEL_NEW = 8 }; // losses that tell a level; that tell what it is now

/** Zero-initialised: nothing was seen. */
typedef struct mixt__level {
    int64_t seen;                 // finite losses
    double first;                 // the first one
    double best;                  // lowest median of so many in a row; the first loss before there are so many
    double last[MIXT_LEVEL_LAST]; // the newest, number `seen` at (seen - 1) % MIXT_LEVEL_LAST
} mixt__level;

/** How a loss stands to where it was healthy. */
typedef enum mixt__level_sign {
    MIXT_LEVEL_FINE,
    MIXT_LEVEL_EXPLODED, // far above the first loss from the first updates on
    MIXT_LEVEL_ABOVE,    // after dozens of updates above the first one
    MIXT_LEVEL_RISEN,    // above its best by more than the newest losses scatter
} mixt__level_sign;

/** Takes in the logarithm of a finite loss. */
void mixt__level_take(mixt__level *level, double value);
/** @param now the median of the newest losses */
mixt__level_sign mixt__level_sign_of(const mixt__level *level, double *now);
/** The level that the run was healthy at: its best, or where it began; NaN: nothing was seen. */
double mixt__level_healthy(const mixt__level *level);
/** What the losses are now is how they are to be: nothing was found wrong. */
void mixt__level_accept(mixt__level *level);

json_t *mixt__level_pack(const mixt__level *level);
void mixt__level_unpack(mixt__level *level, const json_t *object);

#endif
