/* In place of libmixt_nccl.so where there is no GPU: sums of ranks on one machine, over memory that they share.
 *
 * In the order of ranks, so that the bits are those of dist.ranks in one process. For the CPU as a device with memory
 * of its own (MIXT_APART=1), whose stream is the guard of that memory; everything has run when a call returns.
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

enum { RANKS = 8, ROOM = 1 << 18 }; // elements of a sum at most

typedef struct shared {
    atomic_long arrived;
    float slots[RANKS][ROOM];
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

static mixt_status sum(float *data, int64_t count)
{
    for (int64_t at = 0; at < count; at += ROOM) {
        int64_t n = count - at < ROOM ? count - at : ROOM;
        guard->open();
        memcpy(all->slots[own], data + at, (size_t)n * sizeof *data);
        meet();
        memcpy(data + at, all->slots[0], (size_t)n * sizeof *data);
        for (int r = 1; r < ranks; r++)
            for (int64_t i = 0; i < n; i++)
                data[at + i] += all->slots[r][i];
        guard->shut();
        meet();
    }
    return MIXT_OK;
}

static mixt_status gather(float *data, const int64_t *cuts)
{
    for (int r = 0; r < ranks; r++)
        for (int64_t at = cuts[r]; at < cuts[r + 1]; at += ROOM) {
            size_t bytes = (size_t)(cuts[r + 1] - at < ROOM ? cuts[r + 1] - at : ROOM) * sizeof *data;
            guard->open();
            if (r == own)
                memcpy(all->slots[0], data + at, bytes);
            meet();
            memcpy(data + at, all->slots[0], bytes);
            guard->shut();
            meet();
        }
    return MIXT_OK;
}

static mixt_status join(void)
{
    return MIXT_OK;
}

static mixt_status wait_for_all(const mixt__waiting *waiting, mixt__arrival *arrival)
{
    (void)waiting;
    (void)arrival;
    return MIXT_OK;
}

static void leave(bool whole)
{
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

mixt_status mixt_device_sums_open(const char *abi, void (*error_set)(const char *text), const char *id, int rank,
                                  int size, void *stream, const mixt__device_sums **sums)
{
    static const mixt__device_sums opened = {
        .version = "memory", .sum = sum, .gather = gather, .join = join, .wait = wait_for_all, .close = leave};
    int file = shm_open(id, O_RDWR, 0600);
    void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (strcmp(abi, MIXT_TRANSPORT_ABI) || size > RANKS || memory == MAP_FAILED || !stream) {
        error_set("no sums over memory");
        return MIXT_ERROR_DEVICE;
    }
    snprintf(name, sizeof name, "%s", id);
    all = memory;
    guard = stream;
    own = rank;
    ranks = size;
    *sums = &opened;
    return MIXT_OK;
}
