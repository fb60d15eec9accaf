/* The OpenMP team behind mixt__parallel, and the clock. */
#include "base/threads.h"

#include "base/env.h"

#include <omp.h>
#include <stdlib.h>
#include <time.h>

static int requested;

int mixt__threads_count(void)
{
    if (requested > 0)
        return requested;
    int from_env = atoi(mixt__env_get(MIXT_ENV_THREADS));
    requested = from_env > 0 ? from_env : omp_get_num_procs();
    return requested;
}

void mixt__threads_set(int count)
{
    requested = count > 0 ? count : 0;
    omp_set_num_threads(mixt__threads_count()); // libraries on the same runtime follow
}

void mixt__parallel(int64_t count, int64_t grain, mixt__range_fn *fn, void *argument)
{
    if (count <= 0)
        return;
    if (grain < 1)
        grain = 1;
    int64_t pieces = (count + grain - 1) / grain;
    int64_t team = mixt__threads_count();
    if (team > pieces)
        team = pieces;
    if (team <= 1 || omp_in_parallel()) {
        fn(argument, 0, count, 0);
        return;
    }
#pragma omp parallel num_threads((int)team)
    {
        int64_t id = omp_get_thread_num(), threads = omp_get_num_threads();
        int64_t begin = pieces * id / threads * grain, end = pieces * (id + 1) / threads * grain;
        if (end > count)
            end = count;
        if (begin < end)
            fn(argument, begin, end, (int)id);
    }
}

double mixt__time_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
