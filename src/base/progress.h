/* Telling a caller how far it is: see mixt/progress.h. */
#ifndef MIXT_BASE_PROGRESS_H
#define MIXT_BASE_PROGRESS_H

#include "mixt/progress.h"

/** Whom to tell. All zero: nobody. */
typedef struct mixt__teller {
    mixt_progress_fn *progress;
    void *user;
} mixt__teller;

/** One with all texts "" and no figures. */
mixt_progress mixt__progress(mixt_progress_kind kind, const char *task);

/** Whether to go on: what who hears it answers, or yes where nobody does. */
bool mixt__tell_on(mixt__teller teller, const mixt_progress *progress);
/** @return MIXT_ERROR_STATE where who hears it wants no more. */
mixt_status mixt__tell(mixt__teller teller, const mixt_progress *progress);

/* ---- figures in a text; each returns `text` ---- */

/** A loss with as many digits as tell it from others: "2.3026", "0.003412". */
const char *mixt__progress_loss(char text[32], double loss);
/** "812 B", "3.25 MiB". */
const char *mixt__progress_bytes(char text[32], double bytes);

#endif
