/* A table of fixed size, which a signal handler can read at any time: a place is in use while its size is not 0. */
#include "base/mappings.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PLACES = 1024 };

struct mixt__mapping {
    uintptr_t begin;
    size_t bytes; // 0: free
    bool cut;
};

static struct mixt__mapping places[PLACES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static uintptr_t page;

/** Puts a page of zeros where the file has no more. */
static bool fill(uintptr_t address)
{
    for (int i = 0; i < PLACES; i++) {
        size_t bytes = __atomic_load_n(&places[i].bytes, __ATOMIC_ACQUIRE);
        if (!bytes || address - places[i].begin >= bytes)
            continue;
        void *zeros = mmap((void *)(address & ~(page - 1)), page, PROT_READ, // NOLINT: an address from the system
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        __atomic_store_n(&places[i].cut, true, __ATOMIC_RELEASE);
        return zeros != MAP_FAILED;
    }
    return false;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    int problem = errno;
    bool ours = fill((uintptr_t)info->si_addr);
    errno = problem;
    if (ours)
        return;
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signal, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(signal);
    else
        (void)sigaction(signal, &before, NULL); // the same access faults again, without this handler
}

/** Once, and again where the program has set another handler since. */
static void handle_faults(void)
{
    struct sigaction now, mine = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (sigaction(SIGBUS, NULL, &now) || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault))
        return;
    page = (uintptr_t)sysconf(_SC_PAGESIZE);
    before = now;
    sigemptyset(&mine.sa_mask);
    (void)sigaction(SIGBUS, &mine, NULL);
}

struct mixt__mapping *mixt__mapping_watch(const void *data, size_t bytes)
{
    struct mixt__mapping *mapping = NULL;
    pthread_mutex_lock(&lock);
    handle_faults();
    for (int i = 0; i < PLACES && !mapping; i++)
        mapping = places[i].bytes ? NULL : &places[i];
    if (mapping) {
        mapping->begin = (uintptr_t)data;
        mapping->cut = false;
        __atomic_store_n(&mapping->bytes, bytes, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return mapping;
}

void mixt__mapping_leave(struct mixt__mapping *mapping)
{
    if (mapping)
        __atomic_store_n(&mapping->bytes, 0, __ATOMIC_RELEASE);
}

bool mixt__mapping_is_cut(const struct mixt__mapping *mapping)
{
    return mapping && __atomic_load_n(&mapping->cut, __ATOMIC_ACQUIRE);
}
