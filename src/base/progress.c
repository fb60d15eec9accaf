/* Telling a caller how far it is. */
#include "base/progress.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>

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

bool mixt__tell_on(mixt__teller teller, const mixt_progress *progress)
{
    return !teller.progress || teller.progress(teller.user, progress);
}

mixt_status mixt__tell(mixt__teller teller, const mixt_progress *progress)
{
    if (mixt__tell_on(teller, progress))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_STATE, "%s%s%s was stopped by the program's progress function", progress->task,
                      *progress->what ? " " : "", progress->what);
}

const char *mixt__progress_loss(char text[32], double loss)
{
    double size = fabs(loss);
    bool plain = loss == 0 || (size >= 0.01 && size < 1000); // beyond, four decimals show too little or too much
    snprintf(text, 32, plain ? "%.4f" : "%.4g", loss);
    return text;
}

const char *mixt__progress_bytes(char text[32], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 5) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, "%.*f %s", unit == 0 ? 0 : bytes < 10 ? 2 : bytes < 100 ? 1 : 0, bytes, units[unit]);
    return text;
}
