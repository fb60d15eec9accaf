/* MIXT_SIGNAL, read once; places counted from 1. */
#include "base/signal_at.h"

#include "base/env.h"
#include "base/status.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const places[MIXT_PLACE_COUNT] = {"write", "update", "validation"};

static const struct {
    const char *name;
    int number;
} signals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"KILL", SIGKILL},
               {"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};

static struct {
    int number; // 0: none
    mixt__place place;
    int64_t target, reached;
} due;

static void read_variable(void)
{
    const char *text = mixt__env_get(MIXT_ENV_SIGNAL), *at = strchr(text, '@'), *colon = strchr(text, ':');
    if (!at || !colon || colon < at)
        return;
    int place = 0, number = 0;
    while (place < MIXT_PLACE_COUNT && (strlen(places[place]) != (size_t)(colon - at - 1) ||
                                        strncmp(places[place], at + 1, (size_t)(colon - at - 1))))
        place++;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (strlen(signals[i].name) == (size_t)(at - text) && !strncmp(signals[i].name, text, (size_t)(at - text)))
            number = signals[i].number;
    char *end;
    due.place = (mixt__place)place;
    due.target = strtoll(colon + 1, &end, 10);
    due.number = place < MIXT_PLACE_COUNT && due.target > 0 && !*end ? number : 0;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

mixt_status mixt__signal_check(void)
{
    const char *text = mixt__env_get(MIXT_ENV_SIGNAL);
    pthread_once(&once, read_variable);
    return due.number || !*text
               ? MIXT_OK
               : mixt__fail(
                     MIXT_ERROR_ARGUMENT,
                     "MIXT_SIGNAL: '%s' is not a signal at a place: expected SIGNAL@PLACE:N with HUP, INT, KILL, "
                     "TERM, USR1 or USR2, write, update or validation, and a number from 1, as in KILL@write:30",
                     text);
}

bool mixt__signal_due(mixt__place place)
{
    pthread_once(&once, read_variable);
    return due.number && place == due.place && __atomic_add_fetch(&due.reached, 1, __ATOMIC_RELAXED) == due.target;
}

void mixt__signal_send(void)
{
    raise(due.number);
}

void mixt__signal_at(mixt__place place)
{
    if (mixt__signal_due(place))
        mixt__signal_send();
}
