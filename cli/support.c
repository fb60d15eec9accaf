/* Memory, time and files, as the commands need them. */
#include "cli/support.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static bool lost;

void cli_output_lose(void)
{
    __atomic_store_n(&lost, true, __ATOMIC_RELAXED);
}

bool cli_output_lost(void)
{
    return __atomic_load_n(&lost, __ATOMIC_RELAXED);
}

bool cli_grow(void **array, int64_t *capacity, int64_t count, size_t element_size)
{
    if (count < *capacity)
        return true;
    int64_t next = *capacity ? *capacity * 2 : 16;
    void *bigger = realloc(*array, (size_t)next * element_size);
    if (!bigger)
        return false;
    *array = bigger;
    *capacity = next;
    return true;
}

double cli_time_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool cli_path_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool cli_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
