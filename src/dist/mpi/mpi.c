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
    SHORT = 16384, // bytes of a message that is copied
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

/** A group of ranks; what is in it goes with it. */
typedef struct ranks {
    mixt__transport transport; // first: the rest is behind it
    MPI_Comm comm;
    double timeout;
    int tag;
    MPI_Request *requests;
    int capacity;
    char *copies; // of short messages
    size_t copies_size;
    MPI_Request awaited; // the notice
    notice notice, mine; // that of another, and this rank's own
    bool unfinished;     // MPI may still write to something here: it is left behind
    int colour, key;     // of a split under way
    MPI_Comm from;
} ranks;

/** MPI is the process's. */
static struct {
    bool own;  // it was begun here
    bool lost; // a group was not whole when it was closed: MPI is not ended
    int open;  // groups
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    void (*error_set)(const char *text);
} process;

static mixt_status fail(mixt_status status, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    process.error_set(text);
    return status;
}

/* ---- what waits for all ranks ---- */

/** Beginning, splitting and ending MPI wait for every rank, and nothing ends that where one is stopped: a thread of its
 * own does it, which is left behind then. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int error, level;
} beside = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *finish(int error, int level)
{
    pthread_mutex_lock(&beside.lock);
    beside.done = true;
    beside.error = error;
    beside.level = level;
    pthread_cond_signal(&beside.changed);
    pthread_mutex_unlock(&beside.lock);
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

static void *split_comm(void *argument)
{
    ranks *g = argument;
    return finish(MPI_Comm_split(g->from, g->colour, g->key, &g->comm), 0);
}

/** Starts a thread that takes no signals: those are the program's. */
static bool start(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, work, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        pthread_detach(thread);
    return !error;
}

/** Whether it has come to its end within so many seconds. */
static bool within(double seconds, void *(*work)(void *), void *argument)
{
    struct timespec until;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&beside.changed, &clock);
    pthread_condattr_destroy(&clock);
    beside.done = false;
    if (!start(work, argument))
        work(argument); // as well as it goes
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds + 1;
    pthread_mutex_lock(&beside.lock);
    for (int error = 0; !beside.done && !error;)
        error = pthread_cond_timedwait(&beside.changed, &beside.lock, &until);
    bool done = beside.done;
    pthread_mutex_unlock(&beside.lock);
    return done;
}

/* ---- messages ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Room for so many requests, and for copies of messages. */
static bool grow(ranks *g, int count, size_t bytes)
{
    if (count > g->capacity) {
        MPI_Request *more = realloc(g->requests, (size_t)count * sizeof *more);
        if (!more)
            return false;
        g->requests = more;
        g->capacity = count;
    }
    if (bytes > g->copies_size) {
        char *more = realloc(g->copies, bytes);
        if (!more)
            return false;
        g->copies = more;
        g->copies_size = bytes;
    }
    return true;
}

/** Short messages go through memory of the group, since they may lie on a stack that is gone when one comes late. */
static size_t copied(const mixt__message *m)
{
    return m->bytes <= SHORT ? m->bytes : 0;
}

static size_t copied_all(const mixt__message *messages, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += copied(&messages[i]);
    return bytes;
}

static mixt_status check_sizes(const mixt__message *messages, int count)
{
    for (int i = 0; i < count; i++)
        if (messages[i].bytes > INT_MAX)
            return fail(MIXT_ERROR_ARGUMENT, "a message of %zu bytes is more than MPI takes: use a smaller dist.bucket",
                        messages[i].bytes);
    return MIXT_OK;
}

static mixt_status post(ranks *g, const mixt__message *out, int outs, const mixt__message *in, int ins)
{
    int error = MPI_SUCCESS;
    char *copy = g->copies;
    for (int i = 0; i < ins && error == MPI_SUCCESS; copy += copied(&in[i++]))
        error = MPI_Irecv(copied(&in[i]) ? copy : in[i].data, (int)in[i].bytes, MPI_BYTE, in[i].peer, g->tag, g->comm,
                          &g->requests[i]);
    for (int i = 0; i < outs && error == MPI_SUCCESS; copy += copied(&out[i++])) {
        if (copied(&out[i]))
            memcpy(copy, out[i].data, out[i].bytes);
        error = MPI_Isend(copied(&out[i]) ? copy : out[i].data, (int)out[i].bytes, MPI_BYTE, out[i].peer, g->tag,
                          g->comm, &g->requests[ins + i]);
    }
    return error == MPI_SUCCESS ? MIXT_OK : fail(MIXT_ERROR_STATE, "MPI cannot send a message (error %d)", error);
}

static void copy_received(const ranks *g, const mixt__message *in, int ins)
{
    const char *copy = g->copies;
    for (int i = 0; i < ins; copy += copied(&in[i++]))
        if (copied(&in[i]))
            memcpy(in[i].data, copy, in[i].bytes);
}

static void nap(double waited)
{
    struct timespec t = {.tv_nsec = waited < NAPPING_SECONDS ? NAP_NANOSECONDS : LONG_NAP_NANOSECONDS};
    nanosleep(&t, NULL);
}

/** Whether all of them are through, some only because they were cancelled, within the time that a notice takes. */
static bool finish_requests(MPI_Request *requests, int count)
{
    int flag = 0;
    for (double start = now(); !flag && now() - start < GIVE_UP_SECONDS; nap(1))
        if (MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
            return false;
    return flag;
}

/** After a failure nothing may come late: receives are cancelled. One whose message has begun to come cannot be, and
 *  MPI cancels no message that is sent: where their other rank does not go on, their memory is held for ever. */
static void take_back(ranks *g, const mixt__message *out, int outs, const mixt__message *in, int ins,
                      const mixt__waiting *waiting)
{
    for (int i = 0; i < ins; i++)
        if (g->requests[i] != MPI_REQUEST_NULL)
            MPI_Cancel(&g->requests[i]);
    if (finish_requests(g->requests, ins + outs))
        return;
    for (int i = 0; i < ins + outs; i++) {
        int flag = 0;
        const mixt__message *m = i < ins ? &in[i] : &out[i - ins];
        if (g->requests[i] == MPI_REQUEST_NULL ||
            (MPI_Test(&g->requests[i], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag))
            continue;
        g->unfinished = true;
        if (!copied(m) && m->bytes)
            waiting->hold(m->data);
    }
    g->requests = NULL; // what MPI still works on stays as it is
    g->copies = NULL;
    g->capacity = 0;
    g->copies_size = 0;
}

/** Whether a peer gave up: its notice is here. */
static bool noticed(ranks *g, mixt__arrival *arrival)
{
    MPI_Status status;
    int flag = 0;
    if (g->awaited == MPI_REQUEST_NULL || MPI_Test(&g->awaited, &flag, &status) != MPI_SUCCESS || !flag)
        return false;
    arrival->gave_up = status.MPI_SOURCE;
    arrival->speaker = g->notice.speaker;
    snprintf(arrival->notice, sizeof arrival->notice, "%s", g->notice.text);
    return true;
}

/** A peer of a message that is not through: one of those awaited before one that does not take.
 *  @param all (ranks) set for that one and any others
 *  @param several set where there are others too */
static int find_late(ranks *g, const mixt__message *out, int outs, const mixt__message *in, int ins, bool *all,
                     bool *several)
{
    int flag, late = -1;
    *several = false;
    memset(all, 0, (size_t)g->transport.size * sizeof *all);
    for (int i = 0; i < ins + outs; i++) {
        int peer = i < ins ? in[i].peer : out[i - ins].peer;
        if (g->requests[i] == MPI_REQUEST_NULL ||
            (MPI_Test(&g->requests[i], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag))
            continue;
        *several = *several || (late >= 0 && late != peer);
        late = late < 0 ? peer : late;
        all[peer] = true;
    }
    return late;
}

/** A rank that died may have said why before, and another may have said who. */
static bool look(ranks *g, const mixt__waiting *waiting, mixt__arrival *arrival)
{
    if (noticed(g, arrival))
        return true;
    int dead = waiting->dead ? waiting->dead(waiting->user) : -1;
    if (dead < 0)
        return false;
    for (int i = 0; i < 100; i++) {
        if (noticed(g, arrival))
            return true;
        nap(0);
    }
    arrival->dead = dead;
    return true;
}

/** Until all are through, or one will not be. */
static mixt_status await(ranks *g, const mixt__message *out, int outs, const mixt__message *in, int ins,
                         const mixt__waiting *waiting, mixt__arrival *arrival)
{
    double start = now(), looked = start;
    for (int64_t spins = 0;; spins++) {
        int flag = 0, error = MPI_Testall(outs + ins, g->requests, &flag, MPI_STATUSES_IGNORE);
        if (error != MPI_SUCCESS)
            return fail(MIXT_ERROR_STATE, "unexpected message from another rank (MPI error %d)", error);
        if (flag)
            return MIXT_OK;
        if (spins < SPINS)
            continue;
        double t = now();
        if (t - looked > LOOK_SECONDS) {
            looked = t;
            if (look(g, waiting, arrival))
                return fail(MIXT_ERROR_STATE, "a rank is gone");
        }
        if (t - start > waiting->seconds) {
            bool several;
            int late = find_late(g, out, outs, in, ins, waiting->late, &several);
            if (!several || t - start > waiting->seconds + SUSPECT_SECONDS) {
                arrival->late = late;
                return fail(MIXT_ERROR_STATE, "a rank does not answer");
            }
        }
        nap(t - start);
    }
}

static mixt_status exchange(mixt__transport *self, const mixt__message *out, int outs, const mixt__message *in, int ins,
                            const mixt__waiting *waiting, mixt__arrival *arrival)
{
    ranks *g = (ranks *)self;
    *arrival = (mixt__arrival){.late = -1, .dead = -1, .gave_up = -1};
    if (check_sizes(in, ins) != MIXT_OK || check_sizes(out, outs) != MIXT_OK)
        return MIXT_ERROR_ARGUMENT;
    if (!grow(g, outs + ins, copied_all(in, ins) + copied_all(out, outs)))
        return fail(MIXT_ERROR_MEMORY, "no memory for messages to other ranks");
    for (int i = 0; i < outs + ins; i++)
        g->requests[i] = MPI_REQUEST_NULL;
    g->tag = (g->tag + 1) % TAGS;
    mixt_status status = post(g, out, outs, in, ins);
    if (status == MIXT_OK)
        status = await(g, out, outs, in, ins, waiting, arrival);
    if (status == MIXT_OK)
        copy_received(g, in, ins);
    else
        take_back(g, out, outs, in, ins, waiting);
    return status;
}

static void give_up(mixt__transport *self, const char *why, int speaker)
{
    ranks *g = (ranks *)self;
    notice *mine = &g->mine; // MPI reads it for as long as it likes
    int count = 0;
    *mine = (notice){.speaker = speaker};
    snprintf(mine->text, sizeof mine->text, "%s", why);
    if (!grow(g, g->transport.size, 0))
        return;
    for (int peer = 0; peer < g->transport.size; peer++)
        if (peer != g->transport.rank &&
            MPI_Isend(mine, sizeof *mine, MPI_BYTE, peer, TAG_NOTICE, g->comm, &g->requests[count]) == MPI_SUCCESS)
            count++;
    g->unfinished = !finish_requests(g->requests, count) || g->unfinished;
}

static void close_transport(mixt__transport *self, bool whole)
{
    ranks *g = (ranks *)self;
    MPI_Cancel(&g->awaited);
    g->unfinished = !finish_requests(&g->awaited, 1) || g->unfinished;
    process.lost = process.lost || !whole;
    process.open--;
    if (whole && g->comm != MPI_COMM_WORLD)
        MPI_Comm_free(&g->comm);
    if (process.own && !process.lost && !process.open)
        (void)within(g->timeout, finalize, NULL);
    if (g->unfinished)
        return;
    free(g->requests);
    free(g->copies);
    free(g);
}

/** A program that has begun MPI itself keeps it; its messages and these do not meet. */
static mixt_status begin(ranks *g)
{
    int begun = 0, ended = 0, level;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (ended)
        return fail(MIXT_ERROR_STATE, "MPI was finalized in this process: it cannot start again");
    process.own = !begun;
    if (!begun && !within(OPENING * g->timeout, init, NULL))
        return fail(MIXT_ERROR_STATE,
                    "not all ranks have started within %.0f s (ten times dist.timeout): one of them hangs, or is not "
                    "mixt train",
                    OPENING * g->timeout);
    if (!begun && beside.error != MPI_SUCCESS)
        return fail(MIXT_ERROR_DEVICE, "MPI does not start");
    level = beside.level;
    if (begun)
        MPI_Query_thread(&level);
    if (level < MPI_THREAD_SERIALIZED)
        return fail(MIXT_ERROR_UNSUPPORTED, "MPI must support MPI_THREAD_SERIALIZED%s",
                    begun ? ": initialise it with MPI_Init_thread" : ", and this MPI does not");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    g->comm = MPI_COMM_WORLD;
    if (begun && MPI_Comm_dup(MPI_COMM_WORLD, &g->comm) != MPI_SUCCESS)
        return fail(MIXT_ERROR_DEVICE, "MPI cannot create a communicator");
    return MIXT_OK;
}

mixt__transport_version_fn mixt_transport_version;

const char *mixt_transport_version(void)
{
    int length = 0;
    if (!process.version[0])
        MPI_Get_library_version(process.version, &length); // also before MPI has begun
    process.version[strcspn(process.version, ",\n")] = 0;
    return process.version;
}

static mixt__transport_split_fn split;

/** Fills it in once it has its communicator. */
static mixt_status equip(ranks *g)
{
    MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
    g->transport = (mixt__transport){.name = "mpi", .version = mixt_transport_version(), .exchange = exchange};
    g->transport.give_up = give_up;
    g->transport.split = split;
    g->transport.close = close_transport;
    MPI_Comm_rank(g->comm, &g->transport.rank);
    MPI_Comm_size(g->comm, &g->transport.size);
    if (MPI_Irecv(&g->notice, sizeof g->notice, MPI_BYTE, MPI_ANY_SOURCE, TAG_NOTICE, g->comm, &g->awaited) !=
        MPI_SUCCESS)
        return fail(MIXT_ERROR_DEVICE, "MPI cannot send a message");
    process.open++;
    return MIXT_OK;
}

static mixt_status split(mixt__transport *self, int colour, int key, mixt__transport **part)
{
    const ranks *g = (const ranks *)self;
    ranks *p = calloc(1, sizeof *p);
    if (!p)
        return fail(MIXT_ERROR_MEMORY, "no memory for a group of ranks");
    p->timeout = g->timeout;
    p->from = g->comm;
    p->colour = colour;
    p->key = key;
    if (!within(g->timeout, split_comm, p)) { // its thread may still use it
        process.lost = true;
        return fail(MIXT_ERROR_STATE, "not all ranks have joined the split of their group within %.0f s (dist.timeout)",
                    g->timeout);
    }
    mixt_status status =
        beside.error == MPI_SUCCESS ? equip(p) : fail(MIXT_ERROR_DEVICE, "MPI cannot create a communicator");
    if (status != MIXT_OK) {
        free(p);
        return status;
    }
    *part = &p->transport;
    return MIXT_OK;
}

mixt__transport_open_fn mixt_transport_open;

mixt_status mixt_transport_open(const char *abi, int rank, int size, double timeout,
                                void (*error_set)(const char *text), mixt__transport **transport)
{
    (void)rank; // MPI knows
    (void)size;
    process.error_set = error_set;
    if (strcmp(abi, MIXT_TRANSPORT_ABI))
        return fail(MIXT_ERROR_DEVICE, "libmixt_mpi.so is from another build: '%s', this is '%s'", MIXT_TRANSPORT_ABI,
                    abi);
    ranks *g = calloc(1, sizeof *g);
    if (!g)
        return fail(MIXT_ERROR_MEMORY, "no memory for a group of ranks");
    g->timeout = timeout;
    mixt_status status = begin(g);
    if (status == MIXT_OK)
        status = equip(g);
    if (status == MIXT_OK)
        *transport = &g->transport;
    else
        free(g);
    return status;
}
