/* Slow loss of precision: nothing stands out, and FP32 would be better. What a suspicion of looks (steer/looks.h) is
 * worth, as a diagnosis. */
#ifndef MIXT_STEER_SLOW_H
#define MIXT_STEER_SLOW_H

#include "steer/diagnosis.h"
#include "steer/fragile.h"
#include "steer/looks.h"

typedef struct mixt__slow_request {
    mixt__snapshots *ring; // with its trainer
    const mixt_data *data;
    const mixt__looks *looks;
    double began;                 // the first loss of all; 0 or NaN: not known
    mixt__diagnosis_words *words; // of the diagnosis
    mixt__fragile *fragile;       // receives the layers to raise, where a few explain it
} mixt__slow_request;

/** Measures (steer/pairs.h) and, where FP32 is shown to be better, finds the layers. diagnosis->kind is PRECISION then,
 * else UNKNOWN; `judged` says what was measured. The trainer is left as it was; its evaluation is to be planned anew.
 */
mixt_status mixt__slow_diagnose(const mixt__slow_request *request, mixt_diagnosis *diagnosis);

#endif
