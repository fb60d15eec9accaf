/* Blocks in one range of addresses, lowest first, so that one call to the system opens or shuts them all: a pass does
 * that at every node. In huge pages, where the system has some, that takes 2 µs for a few MiB, in small ones 66.
 */
#include "backend/cpu/guard.h"

#include "base/alloc.h"

#include <pthread.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes) ((void)0)
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)0)
#endif

enum { ALIGNMENT = 64, GAP = 4096, HUGE_PAGE = 2 * 1024 * 1024 }; // a gap, behind each block, belongs to none
static const size_t range = (size_t)1 << 40;                      // of addresses: takes no memory

typedef struct block {
    struct block *next; // at a higher address
    char *data;
    size_t bytes;
} block;

static struct {
    pthread_mutex_t lock;
    char *start; // of the range; NULL: not taken yet
    block *blocks;
    size_t used;    // of the range, to the end of the last block
    size_t bytes;   // of all blocks
    int64_t inside; // calls that compute now
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t rounded(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* ---- open and shut ---- */

/** False: the system refuses, and who computes ends as who should not. That is seen when a block is taken. */
static bool protect(void)
{
    int access = guard.inside ? PROT_READ | PROT_WRITE : PROT_NONE;
    return !guard.used || !mprotect(guard.start, rounded(guard.used, HUGE_PAGE), access);
}

static void open_blocks(void)
{
    pthread_mutex_lock(&guard.lock);
    if (!guard.inside++)
        protect();
    pthread_mutex_unlock(&guard.lock);
}

static void shut_blocks(void)
{
    pthread_mutex_lock(&guard.lock);
    if (!--guard.inside)
        protect();
    pthread_mutex_unlock(&guard.lock);
}

const mixt__guard mixt__cpu_guard = {.open = open_blocks, .shut = shut_blocks};

/* ---- blocks ---- */

static size_t room_of(size_t bytes)
{
    return rounded(bytes, ALIGNMENT) + GAP;
}

static bool take_range(void)
{
    if (guard.start)
        return true;
    void *start = mmap(NULL, range + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return false;
    guard.start = (char *)rounded((uintptr_t)start, HUGE_PAGE);
    madvise(guard.start, range, MADV_HUGEPAGE); // a wish: without it everything works the same
    return true;
}

/** Its place, in the first gap that is large enough, and the link to it. */
static block **find_place(block *b)
{
    size_t room = room_of(b->bytes);
    block **link = &guard.blocks;
    b->data = guard.start;
    for (; *link && (size_t)((*link)->data - b->data) < room; link = &(*link)->next)
        b->data = (*link)->data + room_of((*link)->bytes);
    return link;
}

/** Opens the memory once: only then does the system say whether there is as much. */
static bool has_memory(size_t used)
{
    size_t before = guard.used;
    guard.used = used > before ? used : before;
    guard.inside++;
    bool has = guard.used <= range && protect();
    guard.inside--;
    guard.used = has ? guard.used : before;
    (void)protect();
    return has;
}

static bool insert(block *b)
{
    if (!take_range())
        return false;
    block **link = find_place(b);
    if (!has_memory((size_t)(b->data - guard.start) + room_of(b->bytes)))
        return false;
    b->next = *link;
    *link = b;
    guard.bytes += b->bytes;
    ASAN_POISON_MEMORY_REGION(b->data, room_of(b->bytes));
    ASAN_UNPOISON_MEMORY_REGION(b->data, b->bytes);
    return true;
}

void *mixt__guard_take(size_t bytes)
{
    block *b = bytes > range ? NULL : mixt__alloc_uninit(sizeof *b);
    if (!b)
        return NULL;
    b->bytes = bytes;
    pthread_mutex_lock(&guard.lock);
    bool taken = insert(b);
    pthread_mutex_unlock(&guard.lock);
    if (taken)
        return b->data;
    mixt__free(b);
    return NULL;
}

/** The huge pages that lie in it alone; the addresses stay. */
static void give_pages_back(const block *b)
{
    size_t first = rounded((size_t)(b->data - guard.start), HUGE_PAGE);
    size_t end = (size_t)(b->data - guard.start) + b->bytes;
    end -= end % HUGE_PAGE;
    if (first < end)
        madvise(guard.start + first, end - first, MADV_DONTNEED);
}

void mixt__guard_give_back(void *memory)
{
    pthread_mutex_lock(&guard.lock);
    block **link = &guard.blocks;
    while (*link && (*link)->data != memory)
        link = &(*link)->next;
    block *b = *link;
    if (b) {
        *link = b->next;
        guard.bytes -= b->bytes;
        ASAN_POISON_MEMORY_REGION(b->data, b->bytes);
        give_pages_back(b);
    }
    pthread_mutex_unlock(&guard.lock);
    mixt__free(b);
}

bool mixt__guard_holds(const void *memory)
{
    const char *p = memory;
    pthread_mutex_lock(&guard.lock);
    const block *b = guard.blocks;
    while (b && (p < b->data || p >= b->data + b->bytes))
        b = b->next;
    pthread_mutex_unlock(&guard.lock);
    return b;
}

size_t mixt__guard_bytes(void)
{
    pthread_mutex_lock(&guard.lock);
    size_t bytes = guard.bytes;
    pthread_mutex_unlock(&guard.lock);
    return bytes;
}
