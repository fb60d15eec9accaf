/* The CPU's backend with copies in place of sharing, in memory that is shut while none of its functions runs.
 *
 * Kernels have run when a call returns, and fences say nothing. Copies are made as late as a device may make them, so
 * that who does not wait for one is found out here: those beside the kernels take what is there when they are joined,
 * what goes to the host is there once it waits. What comes from the host must stay as it was until then.
 */
#include "backend/cpu/discrete.h"

#include "backend/cpu/guard.h"
#include "base/alloc.h"
#include "base/status.h"
#include "num/num.h"
#include "ops/ops.h"

#include <pthread.h>
#include <string.h>

static mixt__backend discrete;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of the copies that wait

/** Of a function that began with `begin`: its last. */
static mixt_status end(mixt_status status)
{
    mixt__cpu_guard.shut();
    return status;
}

static void begin(void)
{
    mixt__cpu_guard.open();
}

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
    begin();
    finish_copies();
    end(MIXT_OK);
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
    return room ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to delay a copy");
}

static mixt_status copy_now(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    (void)device;
    begin();
    memcpy(dst, src, bytes);
    return end(MIXT_OK);
}

static mixt_status copy(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    (void)device;
    bool to_device = mixt__guard_holds(dst), from_device = mixt__guard_holds(src);
    begin();
    if (to_device)
        memcpy(dst, src, bytes);
    if (!bytes || (to_device && from_device))
        return end(MIXT_OK);
    return end(put_off(to_device ? COPY_FROM_HOST : COPY_TO_HOST, dst, src, bytes));
}

static mixt_status copy_and_wait(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    MIXT_TRY(wait_for_copies());
    return copy_now(device, dst, src, bytes);
}

static mixt_status copy_beside(mixt__device *device, void *dst, const void *src, size_t bytes)
{
    (void)device;
    return put_off(COPY_BESIDE, dst, src, bytes);
}

/** The device waits for them, the host does not: from here on they are in order with the kernels. */
static mixt_status join_copies(mixt__device *device)
{
    (void)device;
    bool room = true;
    begin();
    pthread_mutex_lock(&lock);
    for (int64_t i = 0; i < queue.count && room; i++) {
        if (queue.list[i].kind != COPY_BESIDE)
            continue;
        room = keep_source(&queue.list[i]);
        queue.list[i].kind = COPY_TO_HOST;
    }
    pthread_mutex_unlock(&lock);
    return end(room ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to delay a copy"));
}

static mixt_status query(mixt__device *device)
{
    MIXT_TRY(join_copies(device));
    return wait_for_copies();
}

static void *stream(mixt__device *device)
{
    (void)device;
    return (void *)(uintptr_t)&mixt__cpu_guard;
}

static const mixt__beside beside = {.stream = stream, .copy = copy_beside, .join = join_copies, .query = query};

/* ---- memory ---- */

static void *take(mixt__device *device, size_t bytes)
{
    (void)device;
    return mixt__guard_take(bytes);
}

static size_t allocated(mixt__device *device)
{
    (void)device;
    return mixt__guard_bytes();
}

static void give_back(mixt__device *device, void *memory)
{
    if (!memory)
        return;
    (void)query(device); // as of a GPU's: what was issued has run before memory is given back
    mixt__guard_give_back(memory);
}

static void give_back_host(mixt__device *device, void *memory)
{
    (void)query(device);
    mixt__free(memory);
}

static mixt_status synchronize(mixt__device *device)
{
    (void)device;
    return wait_for_copies();
}

/* ---- batches ---- */

static mixt_status stage(mixt__device *device, int slot, const mixt__piece *pieces, int count, bool wait)
{
    (void)device;
    (void)slot;
    (void)wait;
    begin();
    for (int i = 0; i < count; i++)
        memcpy(pieces[i].dst, pieces[i].src, pieces[i].bytes);
    return end(MIXT_OK);
}

static mixt_status pass_fence(mixt__device *device, int slot)
{
    (void)device;
    (void)slot;
    return MIXT_OK;
}

static mixt_status wait_for_step(mixt__device *device, int slot)
{
    (void)device;
    (void)slot;
    return wait_for_copies();
}

/* ---- what computes ---- */

static mixt_status multiply(mixt__device *device, float *dst, const float *src, const float *factor, int64_t count)
{
    (void)device;
    begin();
    for (int64_t i = 0; i < count; i++)
        dst[i] = src[i] * *factor;
    return end(MIXT_OK);
}

static mixt_status narrow(mixt__device *device, void *dst, mixt_dtype format, const float *src, int64_t count)
{
    (void)device;
    begin();
    mixt__narrow(format)(dst, src, count);
    return end(MIXT_OK);
}

static mixt_status zero(mixt__device *device, void *block, size_t bytes)
{
    begin();
    return end(mixt__backend_cpu.zero(device, block, bytes));
}

static mixt_status gradient_stats(mixt__device *device, const mixt__update *update)
{
    begin();
    return end(mixt__backend_cpu.gradient_stats(device, update));
}

static mixt_status step_control(mixt__device *device, const mixt__update *update)
{
    begin();
    return end(mixt__backend_cpu.step_control(device, update));
}

static mixt_status optimizer_step(mixt__device *device, const mixt__update *update)
{
    begin();
    return end(mixt__backend_cpu.optimizer_step(device, update));
}

static mixt_status lamb_moments(mixt__device *device, const mixt__update *update)
{
    begin();
    return end(mixt__backend_cpu.lamb_moments(device, update));
}

static mixt_status lamb_weights(mixt__device *device, const mixt__update *update, const float *ratios)
{
    begin();
    return end(mixt__backend_cpu.lamb_weights(device, update, ratios));
}

static mixt_status sum_segments(mixt__device *device, const mixt__update *update)
{
    begin();
    return end(mixt__backend_cpu.sum_segments(device, update));
}

static mixt_status check_segments(mixt__device *device, const mixt__update *update)
{
    begin();
    return end(mixt__backend_cpu.check_segments(device, update));
}

static mixt_status judge_sums(mixt__device *device, const mixt__update *update)
{
    begin();
    return end(mixt__backend_cpu.judge_sums(device, update));
}

static mixt_status check_statistics(mixt__device *device, const mixt__update *update)
{
    begin();
    return end(mixt__backend_cpu.check_statistics(device, update));
}

static mixt_status sum_blocks(mixt__device *device, mixt__still_block *blocks, int64_t count, mixt__damage *damage)
{
    begin();
    return end(mixt__backend_cpu.sum_blocks(device, blocks, count, damage));
}

/* A candidate's `run` is told the call alone: so there is one for the first of every op's, one for the second, … */

#define MIXT_CANDIDATES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define MIXT_RUN(place)                                                                                                \
    static mixt_status run_##place(const mixt__call *call)                                                             \
    {                                                                                                                  \
        begin();                                                                                                       \
        return end(mixt__backend_cpu.kernels(call->op)[place]->run(call));                                             \
    }
#define MIXT_NAME(place) run_##place,
MIXT_CANDIDATES(MIXT_RUN)

enum { CANDIDATES = 8 };
static mixt_status (*const runs[CANDIDATES])(const mixt__call *call) = {MIXT_CANDIDATES(MIXT_NAME)};

static struct {
    const mixt__op *op;
    mixt__kernel kernels[CANDIDATES];
    const mixt__kernel *list[CANDIDATES + 1];
} table[] = {
#define MIXT_OP(name) {.op = &mixt__op_##name},
#include "ops/ops.def"
#undef MIXT_OP
};

static const mixt__kernel *const *kernels(const mixt__op *op)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].op == op)
            return table[i].list;
    return NULL;
}

static void fill_table(void)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const mixt__kernel *const *list = mixt__backend_cpu.kernels(table[i].op);
        for (int k = 0; k < CANDIDATES && list[k]; k++) {
            table[i].kernels[k] = *list[k];
            table[i].kernels[k].run = runs[k];
            table[i].list[k] = &table[i].kernels[k];
        }
    }
}

static mixt_status open_device(int number, int threads, mixt__device **device)
{
    (void)number;
    mixt__threads_set(threads);
    *device = mixt__device_cpu_discrete();
    return MIXT_OK;
}

/** There is one, which stays. */
static void close_device(mixt__device *device)
{
    (void)device;
}

static void fill(void)
{
    discrete = mixt__backend_cpu;
    discrete.host_memory = false;
    discrete.beside = &beside;
    discrete.open = open_device;
    discrete.close = close_device;
    discrete.kernels = kernels;
    discrete.alloc = take;
    discrete.free = give_back;
    discrete.free_host = give_back_host;
    discrete.allocated = allocated;
    discrete.zero = zero;
    discrete.upload = copy_and_wait;
    discrete.download = copy_and_wait;
    discrete.copy = copy;
    discrete.synchronize = synchronize;
    discrete.stage = stage;
    discrete.fence = pass_fence;
    discrete.wait = wait_for_step;
    discrete.multiply = multiply;
    discrete.narrow = narrow;
    discrete.gradient_stats = gradient_stats;
    discrete.step_control = step_control;
    discrete.optimizer_step = optimizer_step;
    discrete.lamb_moments = lamb_moments;
    discrete.lamb_weights = lamb_weights;
    discrete.sum_segments = sum_segments;
    discrete.check_segments = check_segments;
    discrete.judge_sums = judge_sums;
    discrete.check_statistics = check_statistics;
    discrete.sum_blocks = sum_blocks;
    fill_table();
}

mixt__device *mixt__device_cpu_discrete(void)
{
    static mixt__device device = {.backend = &discrete};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    return &device;
}
