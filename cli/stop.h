/* Ctrl-C and SIGTERM for commands that stop cleanly and go on later: the first one asks, a second one kills. */
#ifndef MIXT_CLI_STOP_H
#define MIXT_CLI_STOP_H

/** From now on both only ask. One that was ignored before, as under nohup, stays so. */
void cli_stop_catch(void);
/** As it was before. */
void cli_stop_release(void);
/** The number of the signal that came; 0: none. */
int cli_stopped_by(void);

#endif
