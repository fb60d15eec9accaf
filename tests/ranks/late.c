/* A message that comes after its group has failed lands in nothing that was given back. Under mpirun -n 2: rank 1 is
 * stopped for longer than the timeout, before it sends (`before`) or while it does (`during`); rank 0 goes on using
 * MPI, as a program does that began it. */
#include "base/alloc.h"
#include "dist/group.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { SHORT = 512, LONG = 96 * 1024 * 1024, POISON = 0x5a };

static void pause_rank(int signal)
{
    (void)signal;
    sleep(3);
}

/** As a scheduler would: somewhere within what is sent. */
static void pause_soon(void)
{
    struct itimerval after = {.it_value.tv_usec = 8000};
    signal(SIGALRM, pause_rank);
    setitimer(ITIMER_REAL, &after, NULL);
}

/** Lets MPI take what comes. */
static void progress(int seconds)
{
    for (int i = 0, flag; i < 1000 * seconds; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        usleep(1000);
    }
}

static int is_poisoned(const unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != POISON)
            return printf("byte %zu of %zu was written after the exchange had failed\n", i, bytes), 0;
    return 1;
}

/** Of rank 0: keeps the memory to look at it, or frees it while the message is on its way. */
static int receive(mixt__group *g, size_t bytes, int during)
{
    unsigned char *data = mixt__alloc(bytes);
    g->in[0] = (mixt__message){1, data, bytes};
    if (mixt__group_exchange(g, 0, 1, 1) == MIXT_OK)
        return printf("rank 1 was in time\n"), 1;
    if (!during)
        memset(data, POISON, bytes);
    else
        mixt__free(data);
    progress(4);
    int good = during || is_poisoned(data, bytes);
    if (!during)
        mixt__free(data);
    return !good;
}

static void send_late(mixt__group *g, size_t bytes, int during)
{
    unsigned char *data = mixt__alloc(bytes);
    if (during)
        pause_soon();
    else
        pause_rank(0);
    g->out[0] = (mixt__message){0, data, bytes};
    (void)mixt__group_exchange(g, 1, 0, 1); // rank 0 has given up by then
    progress(2);
    mixt__free(data);
}

int main(int count, char **arguments)
{
    int level, rank, bad = 0;
    mixt__group *g;
    int during = count > 2 && !strcmp(arguments[2], "during");
    size_t bytes = count > 1 && !strcmp(arguments[1], "long") ? LONG : SHORT;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (mixt__group_open("mpi", 1, &g) != MIXT_OK)
        return printf("no group: %s\n", mixt_error_text()), 1;
    if (rank == 0)
        bad = receive(g, bytes, during);
    else
        send_late(g, bytes, during);
    mixt__group_close(g);
    MPI_Finalize();
    return bad;
}
