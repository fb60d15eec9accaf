/* The process's signal handlers while a run trains. */
#include "run/signals.h"

#include <pthread.h>
#include <stddef.h>

volatile sig_atomic_t mixt__signals_stop;

static void request_stop(int signal_number);

typedef enum reaction { STOP_THEN_DIE, STOP, IGNORE } reaction;

static const struct {
    int number;
    reaction reaction;
} caught[] = {{SIGINT, STOP_THEN_DIE}, {SIGTERM, STOP_THEN_DIE}, {SIGHUP, STOP},   {SIGUSR1, STOP},
              {SIGUSR2, STOP},         {SIGXFSZ, IGNORE},        {SIGPIPE, IGNORE}};
enum { CAUGHT = sizeof caught / sizeof caught[0] };

static struct sigaction before[CAUGHT];
static int catching; // runs that train at once, in threads: the first takes the handlers over, the last gives them back
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static volatile sig_atomic_t came[CAUGHT];

/** The second of a signal that kills goes to whoever had it before: that is the end, or a language's own handler. */
static void request_stop(int signal_number)
{
    for (int i = 0; i < CAUGHT; i++) {
        if (caught[i].number != signal_number || caught[i].reaction != STOP_THEN_DIE)
            continue;
        if (came[i]) {
            sigaction(signal_number, &before[i], NULL);
            raise(signal_number);
        }
        came[i] = 1;
    }
    if (!mixt__signals_stop)
        mixt__signals_stop = signal_number;
}

static void catch_all(void)
{
    mixt__signals_stop = 0;
    for (int i = 0; i < CAUGHT; i++) {
        struct sigaction action = {.sa_handler = caught[i].reaction == IGNORE ? SIG_IGN : request_stop};
        came[i] = 0;
        action.sa_flags = SA_RESTART; // the loop looks at the flag: no call need fail for it
        sigaction(caught[i].number, NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(caught[i].number, &action, NULL);
    }
}

void mixt__signals_catch(void)
{
    pthread_mutex_lock(&lock);
    if (!catching++)
        catch_all();
    pthread_mutex_unlock(&lock);
}

void mixt__signals_release(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; catching == 1 && i < CAUGHT; i++)
        if (caught[i].reaction != IGNORE)
            sigaction(caught[i].number, &before[i], NULL);
    catching--;
    pthread_mutex_unlock(&lock);
}
