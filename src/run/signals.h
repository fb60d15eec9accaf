/* Signals while a run trains: the first SIGINT or SIGTERM asks for a clean stop, a second one kills as usual. A limit
 * on file sizes is met as a failed write, and whoever reads the progress line may go away: hours of training must not
 * go with him.
 */
#ifndef MIXT_RUN_SIGNALS_H
#define MIXT_RUN_SIGNALS_H

#include <signal.h>

/** Set by a signal since the last mixt__signals_catch. */
extern volatile sig_atomic_t mixt__signals_stop;

/** One catcher at a time: signals belong to the process. */
void mixt__signals_catch(void);
/** Gives SIGINT and SIGTERM back; what is ignored stays so: rows of metrics may still wait. */
void mixt__signals_release(void);

#endif
