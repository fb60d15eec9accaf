/* One flag that a handler sets. */
#include "cli/stop.h"

#include <signal.h>
#include <stddef.h>

static const int numbers[] = {SIGINT, SIGTERM};
static struct sigaction before[2];
static volatile sig_atomic_t stopped_by;

static void request_stop(int signal_number)
{
    stopped_by = signal_number;
}

void cli_stop_catch(void)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND};
    for (int i = 0; i < 2; i++) {
        sigaction(numbers[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

void cli_stop_release(void)
{
    for (int i = 0; i < 2; i++)
        sigaction(numbers[i], &before[i], NULL);
}

int cli_stopped_by(void)
{
    return (int)stopped_by;
}
