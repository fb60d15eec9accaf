/* What launchers say of ranks: see mixt/ranks.h. */
#ifndef MIXT_DIST_LAUNCHER_H
#define MIXT_DIST_LAUNCHER_H

#include "mixt/ranks.h"

/** That rank tells people from now on: those before it are lost. */
void mixt__ranks_speaker(int rank);
/** Ranks have found each other. */
void mixt__ranks_have_joined(void);

#endif
