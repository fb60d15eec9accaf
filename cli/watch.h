/* The observer behind the command's progress line and notes. */
#ifndef MIXT_CLI_WATCH_H
#define MIXT_CLI_WATCH_H

#include "cli/progress.h"
#include "mixt/run.h"

enum { CLI_WATCH_SAID = 4 };

typedef struct cli_watch {
    bool quiet;                      // no progress line, no notes: only warnings
    char said[CLI_WATCH_SAID][1024]; // the newest sentences about trouble on the screen
    int next;                        // place of the one to come
    cli_progress progress;
    cli_progress_info shown;
    bool started;
} cli_watch;

/** A mixt_observer; `user` is a cli_watch, all zero but for `quiet`. */
mixt_observer cli_watch_observe;

/** Takes sentences out of a text that stand on the screen already. */
void cli_watch_trim(const cli_watch *watch, char *text);

/** An observer for commands that do not train: prints what must be seen. */
mixt_status cli_warn(void *user, mixt_run *run, const mixt_event *event);

#endif
