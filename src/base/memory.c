/* Reads /proc and the control group. A container sees the host's memory in /proc but dies at its own limit. */
#include "base/memory.h"

#include <stdbool.h>
#include <stdio.h>

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

size_t mixt__memory_available(void)
{
    size_t available = meminfo("MemAvailable"), limit, used;
    if (!read_number("/sys/fs/cgroup/memory.max", &limit) || !read_number("/sys/fs/cgroup/memory.current", &used))
        return available;
    size_t left = limit > used ? limit - used : 1;
    return left < available ? left : available;
}
