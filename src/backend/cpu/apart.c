/* The CPU's backend with copies in place of sharing, and an account of what the device alone holds.
 *
 * Kernels have run when a call returns, and fences say nothing. Copies are made as late as a device may make them, so
 * that who does not wait for one is found out here: those beside the kernels take what is there when they are joined,
 * what goes to the host is there once it waits. What comes from the host must stay as it was until then.
 */
#include "backend/cpu/apart.h"

#include "base/alloc.h"
#include "base/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { HEADER = 64 }; // before each block, so that it stays aligned: its place in the list of all

typedef struct block {
    struct block *before, *after;
    size_t bytes;
} block;

static mixt__backend apart;
static atomic_size_t held;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of both lists
static block *blocks;

/* ---- copies that wait ---- */

typedef enum copy_kind { COPY_BESIDE, COPY_TO_HOST, COPY_FROM_HOST } copy_kind;

typedef struct pending {
    copy_kind kind;
    char *dst;
    const char *src;
    size_t bytes;
    char *kept; // what the source was when the kernels came to it; NULL: they have not
} pending;

static struct {
    pending *list;
    int64_t count, capacity;
    bool broken; // a source was changed before it was copied
} queue;

static bool in_device(const void *at)
{
    const char *p = at;
    for (const block *b = blocks; b; b = b->after)
        if (p >= (const char *)b + HEADER && p < (const char *)b + HEADER + b->bytes)
            return true;
    return false;
}

static void finish_copy(const pending *p)
{
    if (p->kind == COPY_FROM_HOST)
        queue.broken = queue.broken || memcmp(p->src, p->kept, p->bytes);
    else
        memcpy(p->dst, p->kept ? p->kept : p->src, p->bytes); // NULL: there was no memory for it
    mixt__free(p->kept);
}

/** Those that are in order with the kernels. */
static void finish_copies(void)
{
    int64_t left = 0;
    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < queue.count; i++) {
        if (queue.list[i].kind == COPY_BESIDE)
            queue.list[left++] = queue.list[i];
        else
            finish_copy(&queue.list[i]);
    }
    queue.count = left;
    if (!left) {
        mixt__free(queue.list);
        queue.list = NULL;
        queue.capacity = 0;
    }
    pthread_mutex_unlock(&lock);
}

static mixt_status wait_for_copies(void)
{
    finish_copies();
    return queue.broken ? mixt__fail(MIXT_ERROR_INTERNAL, "memory was changed before it was copied to the device")
                        : MIXT_OK;
}

/** Keeps what the source is now. */
static bool keep_source(pending *p)
{
    p->kept = mixt__alloc_uninit(p->bytes);
    if (p->kept)
        memcpy(p->kept, p->src, p->bytes);
    return p->kept;
}

static mixt_status put_off(copy_kind kind, void *dst, const void *src, size_t bytes)
{
    pending p = {.kind = kind, .dst = dst, .src = src, .bytes = bytes};
    pthread_mutex_lock(&lock);
    bool room = mixt__grow((void **)&queue.list, &queue.capacity, queue.count, sizeof *queue.list);
    room = room && (kind == COPY_BESIDE || keep_source(&p));
    if (room)
        queue.list[queue.count++] = p;
    pthread_mutex_unlock(&lock);
    return room ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to put off a copy");
}

static mixt_status copy(void *dst, const void *src, size_t bytes)
{
    pthread_mutex_lock(&lock);
    bool to_device = in_device(dst), from_device = in_device(src);
    pthread_mutex_unlock(&lock);
    if (to_device)
        memcpy(dst, src, bytes);
    if (!bytes || (to_device && from_device))
        return MIXT_OK;
    return put_off(to_device ? COPY_FROM_HOST : COPY_TO_HOST, dst, src, bytes);
}

static mixt_status copy_and_wait(void *dst, const void *src, size_t bytes)
{
    MIXT_TRY(wait_for_copies());
    memcpy(dst, src, bytes);
    return MIXT_OK;
}

static mixt_status copy_beside(void *dst, const void *src, size_t bytes)
{
    return put_off(COPY_BESIDE, dst, src, bytes);
}

/** The device waits for them, the host does not: from here on they are in order with the kernels. */
static mixt_status join_copies(void)
{
    bool room = true;
    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < queue.count && room; i++) {
        if (queue.list[i].kind != COPY_BESIDE)
            continue;
        room = keep_source(&queue.list[i]);
        queue.list[i].kind = COPY_TO_HOST;
    }
    pthread_mutex_unlock(&lock);
    return room ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to put off a copy");
}

static mixt_status query(void)
{
    MIXT_TRY(join_copies());
    return wait_for_copies();
}

const mixt__beside mixt__beside_cpu_apart = {.copy = copy_beside, .join = join_copies, .query = query};

/* ---- memory ---- */

static void *take(size_t bytes)
{
    block *b = mixt__alloc_uninit(bytes + HEADER);
    if (!b)
        return NULL;
    pthread_mutex_lock(&lock);
    *b = (block){.after = blocks, .bytes = bytes};
    if (blocks)
        blocks->before = b;
    blocks = b;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&held, bytes);
    return (char *)b + HEADER;
}

static void give_back(void *memory)
{
    if (!memory)
        return;
    block *b = (block *)(void *)((char *)memory - HEADER);
    (void)query(); // as of a GPU's: what was issued has run before memory is given back
    pthread_mutex_lock(&lock);
    *(b->before ? &b->before->after : &blocks) = b->after;
    if (b->after)
        b->after->before = b->before;
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&held, b->bytes);
    mixt__free(b);
}

static void give_back_host(void *memory)
{
    (void)query();
    mixt__free(memory);
}

static size_t held_bytes(void)
{
    return atomic_load(&held);
}

/* ---- batches ---- */

static mixt_status stage(int slot, const mixt__piece *pieces, int count, bool wait)
{
    (void)slot;
    (void)wait;
    for (int i = 0; i < count; i++)
        memcpy(pieces[i].dst, pieces[i].src, pieces[i].bytes);
    return MIXT_OK;
}

static mixt_status pass_fence(int slot)
{
    (void)slot;
    return MIXT_OK;
}

static mixt_status wait_for_step(int slot)
{
    (void)slot;
    return wait_for_copies();
}

static mixt_status multiply(float *dst, const float *src, const float *factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = src[i] * *factor;
    return MIXT_OK;
}

static void fill(void)
{
    apart = mixt__backend_cpu;
    apart.host_memory = false;
    apart.alloc = take;
    apart.free = give_back;
    apart.free_host = give_back_host;
    apart.allocated = held_bytes;
    apart.upload = copy_and_wait;
    apart.download = copy_and_wait;
    apart.copy = copy;
    apart.synchronize = wait_for_copies;
    apart.stage = stage;
    apart.fence = pass_fence;
    apart.wait = wait_for_step;
    apart.multiply = multiply;
}

const mixt__backend *mixt__backend_cpu_apart(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    return &apart;
}
