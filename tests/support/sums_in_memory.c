/* In place of libmixt_nccl.so where there is no GPU: sums of ranks on one machine, over memory that they share.
 *
 * In the order of ranks, so that the bits are those of dist.ranks in one process. For the CPU as a device with memory
 * of its own (MIXT_DISCRETE=1), whose stream is the guard of that memory. What is asked for is done as late as it may
 * be, when it is joined: who overwrites what is still to be sent, or reads what has not come, has other bits.
 */
#include "backend/cpu/guard.h"
#include "dist/transport.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 8, ROOM = 1 << 20, MOST = 1024 }; // bytes of a slot; what may be asked for at once

typedef struct shared {
    atomic_long arrived;
    float slots[RANKS][ROOM / sizeof(float)];
} shared;

static shared *all;
static const mixt__guard *guard;
static int own, ranks;
static long rounds;
static char name[MIXT_DEVICE_ID_SIZE];

static void meet(void)
{
    rounds++;
    atomic_fetch_add(&all->arrived, 1);
    while (atomic_load(&all->arrived) < rounds * ranks)
        sched_yield();
}

/* ---- what is asked for ---- */

typedef enum kind { SUM, REDUCE, GATHER } kind;

typedef struct asked {
    kind kind;
    char *data;
    float *mine;
    int64_t cuts[RANKS + 1]; // in bytes from `data`
} asked;

static struct {
    asked list[MOST];    // in turn
    int64_t marks[MOST]; // how many had been asked for
    int64_t count, done;
} queue;

static mixt_status ask(asked a)
{
    if (queue.count - queue.done == MOST)
        return MIXT_ERROR_INTERNAL;
    queue.list[queue.count++ % MOST] = a;
    return MIXT_OK;
}

static mixt_status ask_parts(kind kind, void *data, const int64_t *cuts, size_t size, float *mine)
{
    asked a = {.kind = kind, .data = data, .mine = mine};
    for (int r = 0; r <= ranks; r++)
        a.cuts[r] = (cuts[r] - cuts[0]) * (int64_t)size;
    return ask(a);
}

static mixt_status sum(mixt__device_sums *self, float *data, int64_t count)
{
    (void)self;
    return ask((asked){SUM, (char *)data, data, {0, count * (int64_t)sizeof *data}});
}

static mixt_status reduce(mixt__device_sums *self, float *data, const int64_t *cuts, float *mine)
{
    (void)self;
    return ask_parts(REDUCE, data, cuts, sizeof *data, mine);
}

static mixt_status gather(mixt__device_sums *self, void *data, const int64_t *cuts, size_t size)
{
    (void)self;
    return ask_parts(GATHER, data, cuts, size, NULL);
}

/* ---- doing it ---- */

/** to = the sum over ranks of what each has at `from`; NULL: it is another rank's. */
static void add(const char *from, float *to, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += ROOM) {
        int64_t n = bytes - at < ROOM ? bytes - at : ROOM;
        float *sums = to ? to + at / (int64_t)sizeof *to : NULL;
        memcpy(all->slots[own], from + at, (size_t)n);
        meet();
        for (int r = 0; r < ranks && sums; r++)
            for (int64_t i = 0; i < n / (int64_t)sizeof *sums; i++)
                sums[i] = r ? sums[i] + all->slots[r][i] : all->slots[0][i];
        meet();
    }
}

/** What rank number `rank` has, to all. */
static void spread(char *data, int64_t bytes, int rank)
{
    for (int64_t at = 0; at < bytes; at += ROOM) {
        int64_t n = bytes - at < ROOM ? bytes - at : ROOM;
        if (rank == own)
            memcpy(all->slots[0], data + at, (size_t)n);
        meet();
        memcpy(data + at, all->slots[0], (size_t)n);
        meet();
    }
}

static void finish(const asked *a)
{
    guard->open();
    if (a->kind == SUM)
        add(a->data, a->mine, a->cuts[1]);
    for (int r = 0; r < ranks && a->kind != SUM; r++) {
        char *part = a->data + a->cuts[r];
        int64_t bytes = a->cuts[r + 1] - a->cuts[r];
        if (a->kind == REDUCE)
            add(part, r == own ? a->mine : NULL, bytes);
        else
            spread(part, bytes, r);
    }
    guard->shut();
}

static mixt_status mark(mixt__device_sums *self, int64_t number)
{
    (void)self;
    if (number >= MOST)
        return MIXT_ERROR_INTERNAL;
    queue.marks[number] = queue.count;
    return MIXT_OK;
}

static mixt_status join(mixt__device_sums *self, int64_t number)
{
    (void)self;
    int64_t until = number < 0 ? queue.count : queue.marks[number];
    for (; queue.done < until; queue.done++)
        finish(&queue.list[queue.done % MOST]);
    return MIXT_OK;
}

static mixt_status wait_for_all(mixt__device_sums *self, const mixt__waiting *waiting, mixt__arrival *arrival)
{
    (void)waiting;
    (void)arrival;
    return join(self, -1);
}

static void leave(mixt__device_sums *self, bool whole)
{
    (void)self;
    (void)whole;
    munmap(all, sizeof *all);
    if (!own)
        shm_unlink(name);
}

mixt__transport_version_fn mixt_transport_version;
mixt__device_id_fn mixt_device_id;
mixt__device_sums_open_fn mixt_device_sums_open;

const char *mixt_transport_version(void)
{
    return "memory";
}

mixt_status mixt_device_id(void (*error_set)(const char *text), char *id)
{
    snprintf(id, MIXT_DEVICE_ID_SIZE, "/mixt-sums-%ld", (long)getpid());
    int file = shm_open(id, O_CREAT | O_RDWR, 0600);
    bool made = file >= 0 && !ftruncate(file, sizeof(shared));
    if (file >= 0)
        close(file);
    if (!made)
        error_set("no shared memory");
    return made ? MIXT_OK : MIXT_ERROR_MEMORY;
}

mixt_status mixt_device_sums_open(const char *abi, void (*error_set)(const char *text), const mixt__sums_place *place,
                                  mixt__device_sums **sums)
{
    static mixt__device_sums opened = {.version = "memory",
                                       .sum = sum,
                                       .reduce = reduce,
                                       .gather = gather,
                                       .mark = mark,
                                       .join = join,
                                       .wait = wait_for_all,
                                       .close = leave};
    int file = shm_open(place->id, O_RDWR, 0600);
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (strcmp(abi, MIXT_TRANSPORT_ABI) || place->size > RANKS || memory == MAP_FAILED || !place->stream) {
        error_set("no sums over memory");
        return MIXT_ERROR_DEVICE;
    }
    snprintf(name, sizeof name, "%s", place->id);
    all = memory;
    guard = place->stream;
    own = place->rank;
    ranks = place->size;
    *sums = &opened;
    return MIXT_OK;
}
