/* Telling a caller how far it is. */
#include "base/progress.h"

#include "base/status.h"

#include <math.h>

mixt_progress mixt__progress(mixt_progress_kind kind, const char *task)
{
    return (mixt_progress){.kind = kind,
                           .task = task,
                           .what = "",
                           .unit = "",
                           .text = "",
                           .seconds = NAN,
                           .budget = NAN,
                           .loss = NAN,
                           .accuracy = NAN};
}

mixt_status mixt__tell(mixt__teller teller, const mixt_progress *progress)
{
    if (!teller.progress || teller.progress(teller.user, progress))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_STATE, "%s%s%s was ended before it was done, as the program's progress function asked",
                      progress->task, *progress->what ? " " : "", progress->what);
}
