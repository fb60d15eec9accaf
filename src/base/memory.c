/* Reads /proc, the control group and the limits of the process. A container sees the host's memory in /proc but dies at
 * its own limit. */
#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/** A number in a file of one line; false for "max" and for a file that is not there. */
static bool read_number(const char *path, size_t *number)
{
    FILE *file = fopen(path, "re");
    bool good = file && fscanf(file, "%zu", number) == 1;
    if (file)
        fclose(file);
    return good;
}

static size_t meminfo(const char *field)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128], name[64];
    size_t kib, bytes = 0;
    snprintf(name, sizeof name, "%s: %%zu kB", field);
    while (file && !bytes && fgets(line, sizeof line, file))
        if (sscanf(line, name, &kib) == 1)
            bytes = kib * 1024;
    if (file)
        fclose(file);
    return bytes;
}

size_t mixt__memory_total(void)
{
    size_t total = meminfo("MemTotal"), limit;
    return read_number("/sys/fs/cgroup/memory.max", &limit) && limit < total ? limit : total;
}

/** What the process's own limits leave it (ulimit -v, -d); SIZE_MAX: there are none. */
static size_t left_by_limits(void)
{
    struct rlimit space = {RLIM_INFINITY, RLIM_INFINITY}, data = space;
    size_t pages[6] = {0}, page = (size_t)sysconf(_SC_PAGESIZE), left = SIZE_MAX;
    getrlimit(RLIMIT_AS, &space);
    getrlimit(RLIMIT_DATA, &data);
    FILE *file = fopen("/proc/self/statm", "re");
    for (int i = 0; file && i < 6; i++)
        if (fscanf(file, "%zu", &pages[i]) != 1)
            break;
    if (file)
        fclose(file);
    const rlim_t limits[2] = {space.rlim_cur, data.rlim_cur};
    const size_t used[2] = {pages[0] * page, pages[5] * page};
    for (int i = 0; i < 2; i++) {
        size_t now = limits[i] == RLIM_INFINITY ? SIZE_MAX : limits[i] > used[i] ? limits[i] - used[i] : 1;
        left = now < left ? now : left;
    }
    return left;
}

/** What the machine and the control group leave; 0 when not known. */
static size_t left_by_system(void)
{
    size_t available = meminfo("MemAvailable"), limit, used;
    if (!read_number("/sys/fs/cgroup/memory.max", &limit) || !read_number("/sys/fs/cgroup/memory.current", &used))
        return available;
    size_t left = limit > used ? limit - used : 1;
    return left < available ? left : available;
}

size_t mixt__memory_available(void)
{
    size_t system = left_by_system(), limits = left_by_limits();
    return system && system < limits ? system : limits < SIZE_MAX ? limits : system;
}
