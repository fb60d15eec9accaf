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

/** @return MIXT_ERROR_STATE where who hears it wants no more. */
mixt_status mixt__tell(mixt__teller teller, const mixt_progress *progress);

#endif
