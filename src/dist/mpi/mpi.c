/* libmixt_mpi.so: ranks over MPI.
 *
 * Only non-blocking messages between two ranks, tested until they are through or the deadline is: a collective call of
 * MPI waits for ever for a rank that died. Each call has a tag of its own, so that ranks that are not at the same place
 * wait for each other instead of taking one message for another. It carries no copy of mixt: what fails is told as
 * text.
 */
#include "dist/transport.h"

#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TAGS = 30000, // MPI promises 32767
    TAG_NOTICE = 32000,
    SPINS = 200, // tests before the core is given to others
    NAP_NANOSECONDS = 20000,
    LONG_NAP_NANOSECONDS = 200000,
};

static const double LOOK_SECONDS = 0.05, NAPPING_SECONDS = 0.002;
/** A notice to a rank that has died is never taken. The others end half a second after theirs, and then the launcher
 *  ends this one: it must have spoken by then. */
static const double GIVE_UP_SECONDS = 0.2;
/** Where several peers are late, all but one wait for that one themselves. Who waits for it alone knows, and says so.
 */
static const double SUSPECT_SECONDS = 1.0;
static const double OPENING = 10; // times as long as usual, since files are read

/** What a rank that gives up sends, as bytes. */
typedef struct notice {
    int32_t speaker;
    char text[MIXT_NOTICE_SIZE];
} notice;

static struct {
    mixt__transport transport;
    MPI_Comm comm;
    bool own; // MPI was begun here
    double timeout;
    int tag;
    MPI_Request *requests;
    int capacity;
    MPI_Request awaited; // the notice
    notice notice, mine; // that of another, and this rank's own
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    void (*error_set)(const char *text);
} state;

static mixt_status fail(mixt_status status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    state.error_set(text);
    return status;
}

/* ---- what waits for all ranks ---- */

/** Beginning and ending MPI wait for every rank, and nothing ends that where one is stopped: a thread of its own does
 *  it, which is left behind then. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int error, level;
} apart = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *finish(int error, int level)
{
    pthread_mutex_lock(&apart.lock);
    apart.done = true;
    apart.error = error;
    apart.level = level;
    pthread_cond_signal(&apart.changed);
    pthread_mutex_unlock(&apart.lock);
    return NULL;
}

static void *init(void *unused)
{
    int level = MPI_THREAD_SINGLE, error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    (void)unused;
    return finish(error, level);
}

static void *finalize(void *unused)
{
    (void)unused;
    return finish(MPI_Finalize(), 0);
}

/** Starts a thread that takes no signals: those are the program's. */
static bool start(void *(*work)(void *))
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_detach(thread);
    return !error;
}

/** Whether it has come to its end within so many seconds. */
static bool within(double seconds, void *(*work)(void *))
{
    struct timespec until;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&apart.changed, &clock);
    pthread_condattr_destroy(&clock);
    apart.done = false;
    if (!start(work))
        work(NULL); // as well as it goes
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds + 1;
    pthread_mutex_lock(&apart.lock);
    for (int error = 0; !apart.done && !error;)
        error = pthread_cond_timedwait(&apart.changed, &apart.lock, &until);
    bool done = apart.done;
    pthread_mutex_unlock(&apart.lock);
    return done;
}

/* ---- messages ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool grow(int count)
{
    if (count <= state.capacity)
        return true;
    MPI_Request *more = realloc(state.requests, (size_t)count * sizeof *more);
    if (!more)
        return false;
    state.requests = more;
    state.capacity = count;
    return true;
}

static mixt_status post(const mixt__message *out, int outs, const mixt__message *in, int ins)
{
    int error = MPI_SUCCESS;
    for (int i = 0; i < ins + outs; i++) {
        size_t bytes = i < ins ? in[i].bytes : out[i - ins].bytes;
        if (bytes > INT_MAX)
            return fail(MIXT_ERROR_ARGUMENT, "a message of %zu bytes is more than MPI takes: use a smaller dist.bucket",
                        bytes);
    }
    for (int i = 0; i < ins && error == MPI_SUCCESS; i++)
        error =
            MPI_Irecv(in[i].data, (int)in[i].bytes, MPI_BYTE, in[i].peer, state.tag, state.comm, &state.requests[i]);
    for (int i = 0; i < outs && error == MPI_SUCCESS; i++)
        error = MPI_Isend(out[i].data, (int)out[i].bytes, MPI_BYTE, out[i].peer, state.tag, state.comm,
                          &state.requests[ins + i]);
    return error == MPI_SUCCESS ? MIXT_OK : fail(MIXT_ERROR_STATE, "MPI takes no message (error %d)", error);
}

/** Whether a peer gave up: its notice is here. */
static bool noticed(mixt__arrival *arrival)
{
    MPI_Status status;
    int flag = 0;
    if (state.awaited == MPI_REQUEST_NULL || MPI_Test(&state.awaited, &flag, &status) != MPI_SUCCESS || !flag)
        return false;
    arrival->gave_up = status.MPI_SOURCE;
    arrival->speaker = state.notice.speaker;
    snprintf(arrival->notice, sizeof arrival->notice, "%s", state.notice.text);
    return true;
}

/** A peer of a message that is not through: one of those awaited before one that does not take.
 *  @param all (ranks) set for that one and any others
 *  @param several set where there are others too */
static int find_late(const mixt__message *out, int outs, const mixt__message *in, int ins, bool *all, bool *several)
{
    int flag, late = -1;
    *several = false;
    memset(all, 0, (size_t)state.transport.size * sizeof *all);
    for (int i = 0; i < ins + outs; i++) {
        int peer = i < ins ? in[i].peer : out[i - ins].peer;
        if (state.requests[i] == MPI_REQUEST_NULL ||
            (MPI_Test(&state.requests[i], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag))
            continue;
        *several = *several || (late >= 0 && late != peer);
        late = late < 0 ? peer : late;
        all[peer] = true;
    }
    return late;
}

static void nap(double waited)
{
    struct timespec t = {.tv_nsec = waited < NAPPING_SECONDS ? NAP_NANOSECONDS : LONG_NAP_NANOSECONDS};
    nanosleep(&t, NULL);
}

/** A rank that died may have said why before, and another may have said who. */
static bool look(const mixt__waiting *waiting, mixt__arrival *arrival)
{
    if (noticed(arrival))
        return true;
    int dead = waiting->dead ? waiting->dead(waiting->user) : -1;
    if (dead < 0)
        return false;
    for (int i = 0; i < 100; i++) {
        if (noticed(arrival))
            return true;
        nap(0);
    }
    arrival->dead = dead;
    return true;
}

static mixt_status exchange(const mixt__message *out, int outs, const mixt__message *in, int ins,
                            const mixt__waiting *waiting, mixt__arrival *arrival)
{
    *arrival = (mixt__arrival){.late = -1, .dead = -1, .gave_up = -1};
    if (!grow(outs + ins))
        return fail(MIXT_ERROR_MEMORY, "no memory for messages to other ranks");
    for (int i = 0; i < outs + ins; i++)
        state.requests[i] = MPI_REQUEST_NULL;
    state.tag = (state.tag + 1) % TAGS;
    if (post(out, outs, in, ins) != MIXT_OK)
        return MIXT_ERROR_STATE;
    double start = now(), looked = start;
    for (int64_t spins = 0;; spins++) {
        int flag = 0, error = MPI_Testall(outs + ins, state.requests, &flag, MPI_STATUSES_IGNORE);
        if (error != MPI_SUCCESS)
            return fail(MIXT_ERROR_STATE, "a message of another rank is not the one awaited (MPI error %d)", error);
        if (flag)
            return MIXT_OK;
        if (spins < SPINS)
            continue;
        double t = now();
        if (t - looked > LOOK_SECONDS) {
            looked = t;
            if (look(waiting, arrival))
                return fail(MIXT_ERROR_STATE, "a rank is gone");
        }
        if (t - start > waiting->seconds) {
            bool several;
            int late = find_late(out, outs, in, ins, waiting->late, &several);
            if (!several || t - start > waiting->seconds + SUSPECT_SECONDS) {
                arrival->late = late;
                return fail(MIXT_ERROR_STATE, "a rank does not answer");
            }
        }
        nap(t - start);
    }
}

static void give_up(const char *why, int speaker)
{
    notice *mine = &state.mine; // MPI reads it for as long as it likes
    *mine = (notice){.speaker = speaker};
    snprintf(mine->text, sizeof mine->text, "%s", why);
    if (!grow(state.transport.size))
        return;
    int count = 0, flag = 0;
    for (int peer = 0; peer < state.transport.size; peer++)
        if (peer != state.transport.rank && MPI_Isend(mine, sizeof *mine, MPI_BYTE, peer, TAG_NOTICE, state.comm,
                                                      &state.requests[count]) == MPI_SUCCESS)
            count++;
    for (double start = now(); !flag && now() - start < GIVE_UP_SECONDS; nap(1))
        if (MPI_Testall(count, state.requests, &flag, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
            return;
}

static void close_transport(bool whole)
{
    if (whole) {
        MPI_Cancel(&state.awaited);
        MPI_Wait(&state.awaited, MPI_STATUS_IGNORE);
        if (state.own) // else the caller does
            (void)within(state.timeout, finalize);
        else
            MPI_Comm_free(&state.comm);
    }
    free(state.requests);
    state.requests = NULL;
    state.capacity = 0;
}

/** A program that has begun MPI itself keeps it; its messages and these do not meet. */
static mixt_status begin(void)
{
    int begun = 0, ended = 0, level;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (ended)
        return fail(MIXT_ERROR_STATE, "MPI was ended in this process: it cannot begin again");
    state.own = !begun;
    if (!begun && !within(OPENING * state.timeout, init))
        return fail(MIXT_ERROR_STATE,
                    "not all ranks have come within %.0f s (ten times dist.timeout): one of them hangs, or is no mixt "
                    "train",
                    OPENING * state.timeout);
    if (!begun && apart.error != MPI_SUCCESS)
        return fail(MIXT_ERROR_DEVICE, "MPI does not begin");
    level = apart.level;
    if (begun)
        MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED)
        return fail(MIXT_ERROR_UNSUPPORTED, "MPI must allow one thread after the other (MPI_THREAD_SERIALIZED)%s",
                    begun ? ": begin it so, with MPI_Init_thread" : ", and this one does not");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    state.comm = MPI_COMM_WORLD;
    if (begun && MPI_Comm_dup(MPI_COMM_WORLD, &state.comm) != MPI_SUCCESS)
        return fail(MIXT_ERROR_DEVICE, "MPI gives no communicator");
    return MIXT_OK;
}

mixt__transport_version_fn mixt_transport_version;

const char *mixt_transport_version(void)
{
    int length = 0;
    if (!state.version[0])
        MPI_Get_library_version(state.version, &length); // also before MPI has begun
    state.version[strcspn(state.version, ",\n")] = 0;
    return state.version;
}

mixt__transport_open_fn mixt_transport_open;

mixt_status mixt_transport_open(const char *abi, int rank, int size, double timeout,
                                void (*error_set)(const char *text), const mixt__transport **transport)
{
    (void)rank; // MPI knows
    (void)size;
    state.error_set = error_set;
    state.timeout = timeout;
    if (strcmp(abi, MIXT_TRANSPORT_ABI))
        return fail(MIXT_ERROR_DEVICE, "libmixt_mpi.so is of another build: '%s', this is '%s'", MIXT_TRANSPORT_ABI,
                    abi);
    mixt_status status = begin();
    if (status != MIXT_OK)
        return status;
    state.transport = (mixt__transport){.name = "mpi", .version = mixt_transport_version(), .exchange = exchange};
    state.transport.give_up = give_up;
    state.transport.close = close_transport;
    MPI_Comm_rank(state.comm, &state.transport.rank);
    MPI_Comm_size(state.comm, &state.transport.size);
    if (MPI_Irecv(&state.notice, sizeof state.notice, MPI_BYTE, MPI_ANY_SOURCE, TAG_NOTICE, state.comm,
                  &state.awaited) != MPI_SUCCESS)
        return fail(MIXT_ERROR_DEVICE, "MPI takes no message");
    *transport = &state.transport;
    return MIXT_OK;
}
