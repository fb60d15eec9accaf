/* Signals while a run trains: SIGINT, SIGTERM, SIGHUP (a closed terminal), SIGUSR1 and SIGUSR2 (a scheduler's warning)
 * ask for a clean stop. A second SIGINT or SIGTERM goes to whoever had it before, and kills as usual where nobody had;
 * the others may come twice for one cause, as when the shell of a closed terminal passes on what the system has sent
 * already. What was ignored before, as SIGHUP is under nohup, stays ignored. A limit on file sizes is met as a failed
 * write, and whoever reads the progress line may go away: hours of training must not go with him.
 */
#ifndef MIXT_RUN_SIGNALS_H
#define MIXT_RUN_SIGNALS_H

#include <signal.h>

/** The number of the first signal since the last mixt__signals_catch; 0: none came. */
extern volatile sig_atomic_t mixt__signals_stop;

/** Signals belong to the process: of runs that train at once the first takes them, and all stop. */
void mixt__signals_catch(void);
/** Gives back the signals that stop; SIGPIPE and SIGXFSZ stay ignored: rows of metrics may still wait. */
void mixt__signals_release(void);

#endif
