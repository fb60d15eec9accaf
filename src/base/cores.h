/* How many cores this process may use. */
#ifndef MIXT_BASE_CORES_H
#define MIXT_BASE_CORES_H

/** Cores that the process may run on, but no more than the CPU time that its container is given: threads beyond that
 *  only use up each other's. At least 1. */
int mixt__cores_usable(void);

/** The CPU time that the control group at `mount` gives, in cores, a part of one counting as one; 0: no limit. */
int mixt__cores_given(const char *mount);

#endif
