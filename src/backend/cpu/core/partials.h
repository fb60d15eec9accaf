/* Sums over rows that threads make apart: each adds into doubles of its own, and the totals take them in thread order,
 * so that the same thread count gives the same bits. */
#ifndef MIXT_BACKEND_CPU_CORE_PARTIALS_H
#define MIXT_BACKEND_CPU_CORE_PARTIALS_H

#include "backend/backend.h"
#include "base/threads.h"

#include <string.h>

typedef struct mixt__partials {
    int64_t count, threads;
    int64_t *used; // by thread: it has started
    double *sums;  // (threads, count)
} mixt__partials;

/** Workspace for `count` sums; a multiple of 64. */
static inline size_t mixt__partials_bytes(int64_t count)
{
    size_t threads = (size_t)mixt__threads_count();
    return (threads * ((size_t)count * sizeof(double) + sizeof(int64_t)) + 63) / 64 * 64;
}

static inline mixt__partials mixt__partials_open(void *workspace, int64_t count)
{
    mixt__partials p = {.count = count, .threads = mixt__threads_count(), .used = workspace};
    p.sums = (double *)(void *)(p.used + p.threads);
    memset(p.used, 0, (size_t)p.threads * sizeof p.used[0]);
    return p;
}

/** The thread's own sums, cleared when it comes first. */
static inline double *mixt__partials_of(const mixt__partials *p, int thread)
{
    double *sums = p->sums + thread * p->count;
    if (!p->used[thread])
        memset(sums, 0, (size_t)p->count * sizeof(double));
    p->used[thread] = 1;
    return sums;
}

static inline double mixt__partials_total(const mixt__partials *p, int64_t i)
{
    double total = 0;
    for (int64_t t = 0; t < p->threads; t++)
        if (p->used[t])
            total += p->sums[t * p->count + i];
    return total;
}

#endif
