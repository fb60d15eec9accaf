/* The CPU's backend with copies in place of sharing, and an account of what the device alone holds.
 *
 * Everything has run when a call returns: fences say nothing.
 */
#include "backend/cpu/apart.h"

#include "base/alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { HEADER = 64 }; // before each block, so that it stays aligned: its size

static mixt__backend apart;
static atomic_size_t held;

static void *take(size_t bytes)
{
    char *block = mixt__alloc_uninit(bytes + HEADER);
    if (!block)
        return NULL;
    memcpy(block, &bytes, sizeof bytes);
    atomic_fetch_add(&held, bytes);
    return block + HEADER;
}

static void give_back(void *block)
{
    size_t bytes;
    if (!block)
        return;
    memcpy(&bytes, (char *)block - HEADER, sizeof bytes);
    atomic_fetch_sub(&held, bytes);
    mixt__free((char *)block - HEADER);
}

static size_t held_bytes(void)
{
    return atomic_load(&held);
}

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

static mixt_status multiply(float *dst, const float *src, const float *factor, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        dst[i] = src[i] * *factor;
    return MIXT_OK;
}

static mixt_status copy_beside(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
    return MIXT_OK;
}

static mixt_status all_has_run(void)
{
    return MIXT_OK;
}

const mixt__beside mixt__beside_cpu_apart = {.copy = copy_beside, .join = all_has_run, .query = all_has_run};

static void fill(void)
{
    apart = mixt__backend_cpu;
    apart.host_memory = false;
    apart.alloc = take;
    apart.free = give_back;
    apart.allocated = held_bytes;
    apart.stage = stage;
    apart.fence = pass_fence;
    apart.wait = pass_fence;
    apart.multiply = multiply;
}

const mixt__backend *mixt__backend_cpu_apart(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    return &apart;
}
