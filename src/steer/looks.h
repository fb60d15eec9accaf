/* Looks without being asked: when, and what many of them say together.
 *
 * A look (steer/glance.h) tells for each layer whether half of its gradient is lost. By chance that happens in one of
 * twenty looks at a healthy layer, at most; in four of five where a format loses what FP32 keeps. For each layer the
 * ratio of the two is multiplied from look to look, over every look at which the loss may have begun: a test martingale
 * against "it is chance". One that reaches the number of layers over the error is a suspicion: of all runs without such
 * a loss, however long, MIXT_LOOKS_ERROR at most have one. What a suspicion is worth is then measured (steer/pairs.h).
 */
#ifndef MIXT_STEER_LOOKS_H
#define MIXT_STEER_LOOKS_H

#include "steer/glance.h"

#include <jansson.h>

#define MIXT_LOOKS_ERROR 0.01

typedef struct mixt__looks_layer {
    char name[MIXT_GLANCE_LAYER];
    double odds; // of all looks so far
    double kept; // of its gradient, in the newest look
} mixt__looks_layer;

typedef struct mixt__looks {
    int64_t taken; // so far
    int64_t next;  // the update after which the next one is
    int64_t close; // in a row that followed each other, for something was seen
    int64_t asked; // suspicions that were measured
    int64_t free;  // the update from which one may be measured again
    int64_t count;
    mixt__looks_layer *layers;
} mixt__looks;

void mixt__looks_free(mixt__looks *looks);
/** Whether a look follows update `step`. */
bool mixt__looks_due(const mixt__looks *looks, int64_t step);
/** Takes in the look after update `step`. @param suspects whether a layer is suspected now */
mixt_status mixt__looks_take(mixt__looks *looks, int64_t step, const mixt__glance *look, bool *suspects);
/** The suspected layers of the newest look, the worst first. @return how many, `most` at most */
int mixt__looks_suspects(const mixt__looks *looks, const char **names, int most);
/** A suspicion was measured after update `step`. @param updates that it rests on; 0: it was too early
 *  @param cleared it means nothing: not to be measured again soon */
void mixt__looks_measured(mixt__looks *looks, int64_t step, int64_t updates, bool cleared);
/** Something else is computed from here on: what was seen before means nothing. */
void mixt__looks_restart(mixt__looks *looks, int64_t step);

json_t *mixt__looks_pack(const mixt__looks *looks);
void mixt__looks_unpack(mixt__looks *looks, const json_t *object);

#endif
