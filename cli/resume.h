/* Going on with a run: the newest checkpoint that is whole, the configuration it was made with and what may change in
 * it, the directory and its metrics brought back to that update.
 */
#ifndef MIXT_CLI_RESUME_H
#define MIXT_CLI_RESUME_H

#include "cli/cli.h"
#include "cli/experiment.h"
#include "cli/loop_state.h"
#include "cli/run_dir.h"
#include "store/checkpoint.h"

typedef struct cli_resume {
    char run[1024];
    char out[1024];               // another directory to go on in; "": the run's own
    mixt__checkpoint *checkpoint; // NULL: the run was ended before its first one, and begins anew
    cli_loop_state state;
    bool device_given; // on this command line
} cli_resume;

/** Finds the checkpoint (damaged ones are named on standard error) and makes the configuration: the run's, with the
 * settings of the command line. What may not change is refused with old and new values. CLI_OK, or the exit status
 * after a message. */
int cli_resume_open(cli_resume *resume, const cli_args *args, const char *run, mixt_config **config);
/** Hands the algorithms that the run chose to the device: before the experiment is opened. */
mixt_status cli_resume_choose(const cli_resume *resume, const mixt_config *config);
/** Puts the trainer into the checkpoint's state and opens the directory. Nothing on disk is changed when it fails. */
mixt_status cli_resume_restore(cli_resume *resume, cli_experiment *e, mixt_config *config, cli_run_dir *dir);
void cli_resume_close(cli_resume *resume);

#endif
