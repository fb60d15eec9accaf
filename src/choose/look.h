/* One step looked at op by op, for the remedies. */
#ifndef MIXT_CHOOSE_LOOK_H
#define MIXT_CHOOSE_LOOK_H

#include "choose/advice.h"

/**
 * Finds what holds a candidate's step back: on this machine by a profile, where there is time for one, else by the
 * model.
 * @param folder of the run that is asked about, whose metrics say how fast it really was; NULL: none.
 * @param limit seconds that it may take.
 */
mixt_status mixt__look(mixt_advice *advice, mixt_run *run, const mixt__contender *contender, const char *folder,
                       double limit);

#endif
