/* The process's signal handlers while a run trains. */
#include "run/signals.h"

#include <stddef.h>

volatile sig_atomic_t mixt__signals_stop;

static void request_stop(int signal_number)
{
    if (!mixt__signals_stop)
        mixt__signals_stop = signal_number;
}

typedef enum reaction { STOP_THEN_DIE, STOP, IGNORE } reaction;

static const struct {
    int number;
    reaction reaction;
} caught[] = {{SIGINT, STOP_THEN_DIE}, {SIGTERM, STOP_THEN_DIE}, {SIGHUP, STOP},   {SIGUSR1, STOP},
              {SIGUSR2, STOP},         {SIGXFSZ, IGNORE},        {SIGPIPE, IGNORE}};
enum { CAUGHT = sizeof caught / sizeof caught[0] };

static struct sigaction before[CAUGHT];

void mixt__signals_catch(void)
{
    mixt__signals_stop = 0;
    for (int i = 0; i < CAUGHT; i++) {
        struct sigaction action = {.sa_handler = caught[i].reaction == IGNORE ? SIG_IGN : request_stop};
        action.sa_flags = SA_RESTART; // the loop looks at the flag: no call need fail for it
        if (caught[i].reaction == STOP_THEN_DIE)
            action.sa_flags |= (int)SA_RESETHAND;
        sigaction(caught[i].number, NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(caught[i].number, &action, NULL);
    }
}

void mixt__signals_release(void)
{
    for (int i = 0; i < CAUGHT; i++)
        if (caught[i].reaction != IGNORE)
            sigaction(caught[i].number, &before[i], NULL);
}
