/* Reads the affinity and the control group, of version 2 (cpu.max) or 1 (cpu.cfs_quota_us). */
#include "base/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>

/** The numbers in a file of one line; how many there are. */
static int read_numbers(const char *mount, const char *name, long long numbers[2])
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", mount, name);
    FILE *file = fopen(path, "re");
    int count = file ? fscanf(file, "%lld %lld", &numbers[0], &numbers[1]) : 0;
    if (file)
        fclose(file);
    return count > 0 ? count : 0;
}

int mixt__cores_given(const char *mount)
{
    long long quota[2] = {0, 0}, period[2];
    if (read_numbers(mount, "cpu.max", quota) < 2) { // "max 100000": no limit
        if (!read_numbers(mount, "cpu/cpu.cfs_quota_us", quota) ||
            !read_numbers(mount, "cpu/cpu.cfs_period_us", period))
            return 0;
        quota[1] = period[0];
    }
    if (quota[0] <= 0 || quota[1] <= 0 || quota[0] / quota[1] >= INT_MAX)
        return 0;
    return (int)(quota[0] / quota[1] + (quota[0] % quota[1] > 0));
}

int mixt__cores_usable(void)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int given = mixt__cores_given("/sys/fs/cgroup");
    return given && given < cores ? given : cores;
}
