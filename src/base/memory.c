/* Reads /proc, the control groups and the limits of the process. A container sees the host's memory in /proc but dies
 * at its own limit; so does a process in a group of its own (a scheduler's job, systemd-run). */
#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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

/* ---- control groups ---- */

/** One of the two ways in which Linux shows them. */
typedef struct hierarchy {
    const char *line; // what stands before the group's path in /proc/self/cgroup, behind the number
    const char *root, *limit, *used;
    const char *cache; // of memory.stat: pages of files that can be given back at once
} hierarchy;

static const hierarchy hierarchies[] = {
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

typedef struct room {
    size_t limit, left; // the least of all groups; SIZE_MAX: there is none
} room;

/** The path of the process's own group, "" for the outermost one. */
static void own_group(const hierarchy *h, char *path, size_t size)
{
    char line[4096];
    FILE *file = fopen("/proc/self/cgroup", "re");
    *path = 0;
    while (file && fgets(line, sizeof line, file)) {
        const char *name = line + strspn(line, "0123456789");
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(name, h->line, strlen(h->line)))
            snprintf(path, size, "%s", name + strlen(h->line));
    }
    if (file)
        fclose(file);
    if (!strcmp(path, "/"))
        *path = 0;
}

static size_t cache_of(const char *stat_path, const char *field)
{
    char line[256];
    size_t bytes = 0;
    FILE *file = fopen(stat_path, "re");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, field, strlen(field)))
            sscanf(line + strlen(field), "%zu", &bytes);
    if (file)
        fclose(file);
    return bytes;
}

static void add_group(const hierarchy *h, const char *group, room *r)
{
    char path[8192];
    size_t limit, used;
    snprintf(path, sizeof path, "%s%s/%s", h->root, group, h->limit);
    if (!read_number(path, &limit))
        return;
    snprintf(path, sizeof path, "%s%s/%s", h->root, group, h->used);
    if (!read_number(path, &used))
        return;
    snprintf(path, sizeof path, "%s%s/memory.stat", h->root, group);
    size_t cache = cache_of(path, h->cache), held = used > cache ? used - cache : 0;
    size_t left = limit > held ? limit - held : 1;
    r->limit = limit < r->limit ? limit : r->limit;
    r->left = left < r->left ? left : r->left;
}

/** Of the process's group and all around it. */
static room left_by_groups(void)
{
    room r = {SIZE_MAX, SIZE_MAX};
    for (size_t i = 0; i < sizeof hierarchies / sizeof hierarchies[0]; i++) {
        char group[4096];
        own_group(&hierarchies[i], group, sizeof group);
        add_group(&hierarchies[i], group, &r);
        for (char *end; (end = strrchr(group, '/'));) {
            *end = 0;
            add_group(&hierarchies[i], group, &r);
        }
    }
    return r;
}

size_t mixt__memory_total(void)
{
    size_t total = meminfo("MemTotal"), limit = left_by_groups().limit;
    return limit < total ? limit : total;
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

/** What the machine and the control groups leave; 0 when not known. */
static size_t left_by_system(void)
{
    size_t available = meminfo("MemAvailable"), left = left_by_groups().left;
    return left < available ? left : available;
}

static _Atomic size_t withheld;

void mixt__memory_withhold(size_t bytes)
{
    withheld = bytes;
}

size_t mixt__memory_withheld(void)
{
    return withheld;
}

size_t mixt__memory_available(void)
{
    size_t system = left_by_system(), limits = left_by_limits(), taken = withheld;
    size_t room = system && system < limits ? system : limits < SIZE_MAX ? limits : system;
    return !room || !taken ? room : room > taken ? room - taken : 1; // 0 would mean that nobody knows
}
