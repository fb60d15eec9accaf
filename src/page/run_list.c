/* Looking for runs, two folders deep. */
#include "page/run_list.h"

#include "base/alloc.h"
#include "base/status.h"
#include "mixt/page.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 2 };

static bool is_run(const char *folder)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
    return !access(path, F_OK);
}

static bool known(const mixt__run_list *list, const char *folder)
{
    for (int64_t i = 0; i < list->count; i++)
        if (!strcmp(list->folders[i], folder))
            return true;
    return false;
}

static void add(mixt__run_list *list, const char *folder)
{
    if (list->count == MIXT_PAGE_RUNS_MAX || known(list, folder))
        return;
    if (list->count == list->capacity) {
        int64_t room = 2 * list->capacity + 16;
        char **more = mixt__realloc(list->folders, (size_t)room * sizeof *more);
        if (!more)
            return; // it is found the next time
        list->folders = more;
        list->capacity = room;
    }
    char *name = mixt__strdup(folder);
    if (name)
        list->folders[list->count++] = name;
}

static void scan(mixt__run_list *list, const char *folder, int depth)
{
    struct dirent **entries;
    if (is_run(folder)) {
        add(list, folder);
        return;
    }
    int count = depth > 0 ? scandir(folder, &entries, NULL, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct stat info;
        bool fits = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name) < (int)sizeof path;
        if (entries[i]->d_name[0] != '.' && fits && !lstat(path, &info) && S_ISDIR(info.st_mode))
            scan(list, path, depth - 1);
        free(entries[i]);
    }
    if (count > 0)
        free(entries);
}

mixt_status mixt__run_list_open(mixt__run_list *list, const char *const *folders, int64_t count)
{
    struct stat info;
    *list = (mixt__run_list){0};
    list->roots = mixt__alloc((size_t)count * sizeof *list->roots);
    if (!list->roots)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a list of runs");
    for (int64_t i = 0; i < count; i++) {
        if (stat(folders[i], &info) || !S_ISDIR(info.st_mode))
            return mixt__fail(MIXT_ERROR_FILE, "%s: no such folder: expected a run directory, or a folder of them",
                              folders[i]);
        char *root = mixt__strdup(folders[i]);
        if (!root)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a list of runs");
        list->roots[list->root_count++] = root;
    }
    mixt__run_list_scan(list);
    return MIXT_OK;
}

void mixt__run_list_scan(mixt__run_list *list)
{
    for (int64_t i = 0; i < list->root_count; i++)
        scan(list, list->roots[i], DEPTH);
}

void mixt__run_list_close(mixt__run_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        mixt__free(list->folders[i]);
    mixt__free(list->folders);
    for (int64_t i = 0; i < list->root_count; i++)
        mixt__free(list->roots[i]);
    mixt__free(list->roots);
    *list = (mixt__run_list){0};
}
