/* Opening a group, watching over its ranks, what they tell each other. */
#include "dist/group.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/status.h"
#include "dist/launcher.h"
#include "dist/load.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/** The command waits for longer than that before it ends, so that who has spoken is not taken for lost. */
static const double SETTLE_SECONDS = 0.3;

/* ---- ranks that are lost ---- */

/** Whether a process of this machine is gone. */
static bool is_gone(const mixt__group *g, int rank)
{
    struct pollfd wait = {.fd = g->handles[rank], .events = POLLIN};
    if (g->handles[rank] >= 0)
        return poll(&wait, 1, 0) > 0; // readable: it has ended, also when nobody has asked how
    const mixt__peer *peer = &g->peers[rank], *own = &g->peers[g->rank];
    bool here = !strcmp(peer->host, own->host) && peer->space == own->space;
    return here && peer->process && kill((pid_t)peer->process, 0) && errno == ESRCH;
}

static int find_dead(void *user)
{
    const mixt__group *g = user;
    for (int rank = 0; rank < g->size; rank++)
        if (rank != g->rank && is_gone(g, rank))
            return rank;
    return -1;
}

void mixt__group_describe(const mixt__group *g, int rank, char *text, size_t size)
{
    const mixt__peer *peer = &g->peers[rank];
    if (peer->process)
        snprintf(text, size, "rank %d (process %lld on %s)", peer->number, (long long)peer->process, peer->host);
    else
        snprintf(text, size, "rank %d", peer->number);
}

/** The first rank that is left, which tells people. Ranks that are killed together do not end at the same moment: one
 *  before this one may be about to. */
static int find_speaker(mixt__group *g, const mixt__arrival *arrival)
{
    const struct timespec nap = {.tv_nsec = 10000000};
    int rank = 0;
    if (arrival->late >= 0)
        g->late[arrival->late] = true;
    else
        memset(g->late, 0, (size_t)g->size * sizeof *g->late); // who was late once, and answered
    for (double start = mixt__time_now(); mixt__time_now() - start < SETTLE_SECONDS; nanosleep(&nap, NULL)) {
        while (rank < g->rank && (g->late[rank] || is_gone(g, rank)))
            rank++;
        if (rank == g->rank)
            break;
    }
    return rank;
}

/** The group is at its end: says why, to this rank and to the others. */
static mixt_status lose(mixt__group *g, const mixt__arrival *arrival, double seconds)
{
    char who[MIXT_HOST_SIZE + 64];
    int rank = arrival->dead >= 0 ? arrival->dead : arrival->late;
    g->broken = true;
    if (arrival->gave_up >= 0) {
        snprintf(g->why, sizeof g->why, "%s", arrival->notice);
        mixt__ranks_speaker(arrival->speaker);
        return mixt__fail(MIXT_ERROR_STATE, "%s", g->why);
    }
    if (rank < 0) {
        snprintf(g->why, sizeof g->why, "rank %d: %.400s", g->peers[g->rank].number, mixt_error_text());
    } else {
        mixt__group_describe(g, rank, who, sizeof who);
        if (arrival->dead >= 0)
            snprintf(g->why, sizeof g->why, "%s ended before the run did: its state is lost", who);
        else
            snprintf(g->why, sizeof g->why, "%s has not answered for %.0f s (dist.timeout)", who, seconds);
    }
    if (g->transport) {
        int speaker = g->peers[rank < 0 ? 0 : find_speaker(g, arrival)].number;
        mixt__ranks_speaker(speaker);
        g->transport->give_up(g->transport, g->why, speaker);
    }
    return mixt__fail(MIXT_ERROR_STATE, "%s", g->why);
}

static mixt_status carry(mixt__group *g, int outs, int ins, const mixt__waiting *waiting, mixt__arrival *arrival)
{
    if (g->transport)
        return g->transport->exchange(g->transport, g->out, outs, g->in, ins, waiting, arrival);
    *arrival = (mixt__arrival){.late = -1, .dead = -1, .gave_up = -1};
    mixt_status status = g->own.exchange(g->own.user, g->out, outs, g->in, ins, waiting->seconds);
    return status == MIXT_OK ? MIXT_OK
                             : mixt__fail(status, "the communicator has failed (%s)", mixt_status_text(status));
}

mixt_status mixt__group_exchange(mixt__group *g, int outs, int ins, double patience)
{
    mixt__arrival arrival;
    mixt__waiting waiting = {
        .seconds = g->timeout * patience, .dead = find_dead, .user = g, .hold = mixt__alloc_hold, .late = g->late};
    if (g->broken)
        return mixt__fail(MIXT_ERROR_STATE, "%s", g->why);
    for (int i = 0; i < outs; i++)
        g->bytes += (int64_t)g->out[i].bytes;
    if (carry(g, outs, ins, &waiting, &arrival) == MIXT_OK)
        return MIXT_OK;
    return lose(g, &arrival, waiting.seconds);
}

mixt_status mixt__group_await(mixt__group *g, mixt__device_sums *sums)
{
    mixt__arrival arrival;
    mixt__waiting waiting = {
        .seconds = g->timeout, .dead = find_dead, .user = g, .hold = mixt__alloc_hold, .late = g->late};
    if (g->broken)
        return mixt__fail(MIXT_ERROR_STATE, "%s", g->why);
    return sums->wait(sums, &waiting, &arrival) == MIXT_OK ? MIXT_OK : lose(g, &arrival, waiting.seconds);
}

void mixt__group_give_up(mixt__group *g)
{
    if (g->broken || g->settled)
        return;
    g->broken = true;
    snprintf(g->why, sizeof g->why, "rank %d: %.400s", g->peers[g->rank].number, mixt_error_text());
    if (g->transport)
        g->transport->give_up(g->transport, g->why, g->peers[0].number);
}

/* ---- opening ---- */

static void fill_own(mixt__peer *peer)
{
    struct stat space;
    gethostname(peer->host, sizeof peer->host - 1);
    peer->space = stat("/proc/self/ns/pid", &space) ? 0 : (uint64_t)space.st_ino;
    peer->process = (int64_t)getpid();
}

/** Handles tell at once when a process ends; where the system has none, its number must do. */
void mixt__group_watch(mixt__group *g)
{
    const mixt__peer *own = &g->peers[g->rank];
    for (int i = 0; i < g->size; i++) {
        const mixt__peer *peer = &g->peers[i];
        bool here = i != g->rank && !strcmp(peer->host, own->host) && peer->space == own->space;
#ifdef SYS_pidfd_open
        if (here)
            g->handles[i] = (int)syscall(SYS_pidfd_open, (pid_t)peer->process, 0);
#else
        (void)here;
#endif
    }
}

size_t mixt__group_memory(int64_t ranks)
{
    const mixt__group *g = NULL;
    size_t each = sizeof *g->peers + sizeof *g->handles + sizeof *g->out + sizeof *g->in + sizeof *g->ranges +
                  sizeof *g->cuts + sizeof *g->words + sizeof *g->late;
    return sizeof *g + (size_t)ranks * each + sizeof *g->cuts;
}

mixt_status mixt__group_prepare(mixt__group *g)
{
    size_t n = (size_t)g->size;
    g->peers = mixt__alloc(n * sizeof *g->peers);
    g->handles = mixt__alloc(n * sizeof *g->handles);
    g->out = mixt__alloc(n * sizeof *g->out);
    g->in = mixt__alloc(n * sizeof *g->in);
    g->ranges = mixt__alloc(n * sizeof *g->ranges);
    g->cuts = mixt__alloc((n + 1) * sizeof *g->cuts);
    g->words = mixt__alloc(n * sizeof *g->words);
    g->late = mixt__alloc(n * sizeof *g->late);
    if (!g->peers || !g->handles || !g->out || !g->in || !g->ranges || !g->cuts || !g->words || !g->late)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %d ranks", g->size);
    for (int i = 0; i < g->size; i++) {
        g->handles[i] = -1;
        g->peers[i].number = i;
    }
    return MIXT_OK;
}

static mixt_status meet(mixt__group *g)
{
    mixt__peer own = {.number = g->rank};
    MIXT_TRY(mixt__group_prepare(g));
    fill_own(&own);
    MIXT_TRY(mixt__group_gather(g, &own, sizeof own, g->peers, 1));
    mixt__group_watch(g);
    return MIXT_OK;
}

mixt_status mixt__group_open(const char *transport, double timeout, mixt__group **group)
{
    mixt__group *g = mixt__alloc(sizeof *g);
    *group = NULL;
    if (!g)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a group of ranks");
    mixt_ranks found = mixt_ranks_find();
    mixt_status status = mixt__transport_load(transport, found.rank, found.size, timeout, &g->transport);
    if (status == MIXT_OK) {
        g->rank = g->transport->rank;
        g->size = g->transport->size;
        g->timeout = timeout;
        mixt__ranks_have_joined();
        status = meet(g);
        g->broken = g->broken || status != MIXT_OK;
    }
    if (status != MIXT_OK) {
        mixt__group_close(g);
        return status;
    }
    *group = g;
    return MIXT_OK;
}

mixt_status mixt__group_open_own(const mixt_communicator *own, double timeout, mixt__group **group)
{
    mixt__group *g = mixt__alloc(sizeof *g);
    *group = NULL;
    if (!g)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a group of ranks");
    g->own = *own;
    g->rank = own->rank;
    g->size = own->size;
    g->timeout = timeout;
    mixt_status status = mixt__group_prepare(g); // of processes behind it nothing is known
    if (status == MIXT_OK) {
        *group = g;
        return MIXT_OK;
    }
    mixt__group_close(g);
    return status;
}

void mixt__group_close(mixt__group *g)
{
    char mine = 0;
    if (!g)
        return;
    if (g->transport) {
        bool whole = !g->broken && mixt__group_gather(g, &mine, 1, g->words, 1) == MIXT_OK;
        g->transport->close(g->transport, whole);
    }
    for (int i = 0; g->handles && i < g->size; i++)
        if (g->handles[i] >= 0)
            close(g->handles[i]);
    mixt__free(g->members);
    mixt__free(g->peers);
    mixt__free(g->handles);
    mixt__free(g->out);
    mixt__free(g->in);
    mixt__free(g->ranges);
    mixt__free(g->cuts);
    mixt__free(g->words);
    mixt__free(g->late);
    mixt__free(g);
}

/* ---- telling and agreeing ---- */

mixt_status mixt__group_gather(mixt__group *g, const void *mine, size_t bytes, void *all, double patience)
{
    int count = 0;
    memcpy((char *)all + (size_t)g->rank * bytes, mine, bytes);
    for (int peer = 0; peer < g->size; peer++) {
        if (peer == g->rank)
            continue;
        g->out[count] = (mixt__message){peer, (void *)(uintptr_t)mine, bytes};
        g->in[count++] = (mixt__message){peer, (char *)all + (size_t)peer * bytes, bytes};
    }
    return mixt__group_exchange(g, count, count, patience);
}

mixt_status mixt__group_broadcast(mixt__group *g, void *data, size_t bytes, double patience)
{
    int count = 0;
    for (int peer = 1; peer < g->size && g->rank == 0; peer++)
        g->out[count++] = (mixt__message){peer, data, bytes};
    if (g->rank != 0)
        g->in[0] = (mixt__message){0, data, bytes};
    return mixt__group_exchange(g, count, g->rank != 0, patience);
}

/** What the others have is in `words`. */
static mixt_status tell(mixt__group *g, mixt_status status, const char *text, double patience)
{
    mixt__word mine = {.status = (int32_t)status};
    snprintf(mine.text, sizeof mine.text, "%s", text);
    return mixt__group_gather(g, &mine, sizeof mine, g->words, patience);
}

mixt_status mixt__group_judge(mixt__group *g)
{
    const mixt__word *words = g->words;
    int bad = 0;
    while (bad < g->size && words[bad].status == MIXT_OK)
        bad++;
    g->settled = bad < g->size;
    if (!g->settled)
        return MIXT_OK;
    bool all = true;
    for (int i = 0; i < g->size; i++)
        all = all && !strcmp(words[i].text, words[bad].text);
    return all ? mixt__fail((mixt_status)words[bad].status, "%s", words[bad].text)
               : mixt__fail((mixt_status)words[bad].status, "rank %d: %s", g->peers[bad].number, words[bad].text);
}

static mixt_status agree(mixt__group *g, mixt_status mine, double patience)
{
    if (g->broken)
        return mixt__fail(MIXT_ERROR_STATE, "%s", g->why);
    MIXT_TRY(tell(g, mine, mine == MIXT_OK ? "" : mixt_error_text(), patience));
    return mixt__group_judge(g);
}

mixt_status mixt__group_agree(mixt__group *g, mixt_status mine)
{
    return agree(g, mine, MIXT_PATIENCE);
}

mixt_status mixt__group_agree_soon(mixt__group *g, mixt_status mine)
{
    return agree(g, mine, 1);
}

mixt_status mixt__group_same(mixt__group *g, const char *what, const char *text)
{
    MIXT_TRY(tell(g, MIXT_OK, text, 1));
    const mixt__word *words = g->words;
    for (int i = 1; i < g->size; i++)
        if ((g->settled = strcmp(words[i].text, words[0].text)))
            return mixt__fail(MIXT_ERROR_CONFIG, "ranks differ in their %s: rank %d has %.200s, rank %d has %.200s",
                              what, g->peers[0].number, words[0].text, g->peers[i].number, words[i].text);
    return MIXT_OK;
}
