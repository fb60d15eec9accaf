/* A GPU for each process of a machine, by CUDA's own variable: whatever a process does then happens on its GPU. */
#include "backend/visible.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mixt__gpu_choose(const char *visible, int count, int local, char *name, size_t size)
{
    if (!visible) {
        if (count < 2)
            return false;
        snprintf(name, size, "%d", local % count);
        return true;
    }
    int listed = 1;
    for (const char *c = visible; *c; c++)
        listed += *c == ',';
    if (listed < 2)
        return false;
    for (int i = local % listed; i; i--)
        visible = strchr(visible, ',') + 1;
    snprintf(name, size, "%.*s", (int)strcspn(visible, ","), visible);
    return true;
}

/** GPUs that the system shows: /dev/nvidia0 and so on. */
static int count_gpus(void)
{
    int count = 0;
    DIR *folder = opendir("/dev");
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        count += !strncmp(entry->d_name, "nvidia", 6) && isdigit((unsigned char)entry->d_name[6]);
    if (folder)
        closedir(folder);
    return count;
}

void mixt__gpu_take(int local)
{
    char name[256];
    if (mixt__gpu_choose(getenv("CUDA_VISIBLE_DEVICES"), count_gpus(), local, name, sizeof name))
        setenv("CUDA_VISIBLE_DEVICES", name, 1);
}
