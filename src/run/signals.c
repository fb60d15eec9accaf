/* The process's signal handlers while a run trains. */
#include "run/signals.h"

#include <stdbool.h>
#include <stddef.h>

volatile sig_atomic_t mixt__signals_stop;

static void request_stop(int signal_number)
{
    (void)signal_number;
    mixt__signals_stop = 1;
}

static const struct {
    int number;
    bool ignored;
} caught[] = {{SIGINT, false}, {SIGTERM, false}, {SIGXFSZ, true}, {SIGPIPE, true}};
enum { CAUGHT = sizeof caught / sizeof caught[0] };

static struct sigaction before[CAUGHT];

void mixt__signals_catch(void)
{
    struct sigaction stop = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND},
                     ignore = {.sa_handler = SIG_IGN};
    mixt__signals_stop = 0;
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i].number, caught[i].ignored ? &ignore : &stop, &before[i]);
}

void mixt__signals_release(void)
{
    for (int i = 0; i < CAUGHT; i++)
        if (!caught[i].ignored)
            sigaction(caught[i].number, &before[i], NULL);
}
