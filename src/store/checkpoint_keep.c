/* Folders of checkpoints: their names, which are there, which may go. */
#include "store/checkpoint.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/status.h"
#include "store/checkpoint_inside.h"
#include "store/file.h"
#include "store/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *mixt__checkpoint_path(const char *folder, int64_t step, char path[MIXT_CHECKPOINT_PATH])
{
    snprintf(path, MIXT_CHECKPOINT_PATH, "%s/step-%08lld", folder, (long long)step);
    return path;
}

/** The step that a name stands for; -1: it is no checkpoint's. */
static int64_t step_of(const char *name)
{
    if (strncmp(name, "step-", 5) || strlen(name) < 13 || strlen(name) > 5 + 18 ||
        strspn(name + 5, "0123456789") != strlen(name + 5) || (name[5] == '0' && strlen(name) > 13))
        return -1;
    return strtoll(name + 5, NULL, 10);
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

mixt_status mixt__checkpoints_list(const char *folder, int64_t **steps, int64_t *count)
{
    int64_t capacity = 0;
    *steps = NULL;
    *count = 0;
    DIR *entries = opendir(folder);
    if (!entries)
        return errno == ENOENT ? MIXT_OK
                               : mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", folder, strerror(errno));
    mixt_status status = MIXT_OK;
    struct dirent *entry;
    while (status == MIXT_OK && (errno = 0, entry = readdir(entries))) {
        int64_t step = step_of(entry->d_name);
        if (step < 0)
            continue;
        if (mixt__grow((void **)steps, &capacity, *count, sizeof **steps))
            (*steps)[(*count)++] = step;
        else
            status = mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to list it", folder);
    }
    if (status == MIXT_OK && errno) // else the newest would seem not to be there
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", folder, strerror(errno));
    closedir(entries);
    if (status != MIXT_OK) {
        mixt__free(*steps);
        *steps = NULL;
        *count = 0;
    }
    if (*count)
        qsort(*steps, (size_t)*count, sizeof **steps, newest_first);
    return status;
}

/** One that is half removed must not look whole, and must still be known: the manifest goes first, the state last. */
static void remove_at(int folder, const char *name)
{
    mixt__folder_remove_files(folder, name, MIXT_CHECKPOINT_MANIFEST, MIXT_CHECKPOINT_STATE);
}

void mixt__checkpoint_remove(const char *path)
{
    remove_at(AT_FDCWD, path);
}

static bool belongs(const char *name, const json_t *files, const mixt__checkpoint_content *content)
{
    if (!strcmp(name, MIXT_CHECKPOINT_MANIFEST) || !strcmp(name, MIXT_CHECKPOINT_STATE) || json_object_get(files, name))
        return true;
    for (int64_t i = 0; i < content->file_count; i++)
        if (!strcmp(name, content->files[i].name))
            return true;
    return false;
}

/** An entry of the folder that is no part of a checkpoint, in `name`; false: there is none. */
static bool find_hf_folder(DIR *entries, const json_t *files, const mixt__checkpoint_content *content, bool *empty,
                           char name[256])
{
    *empty = true;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        *empty = false;
        if (!belongs(entry->d_name, files, content)) {
            snprintf(name, 256, "%s", entry->d_name);
            return true;
        }
    }
    return false;
}

mixt_status mixt__checkpoint_replaceable(const char *path, const mixt__checkpoint_content *content)
{
    char inside[MIXT_CHECKPOINT_INSIDE], name[256] = "";
    struct stat info;
    if (lstat(path, &info))
        return MIXT_OK;
    DIR *entries = S_ISDIR(info.st_mode) ? opendir(path) : NULL;
    if (!entries)
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: exists and is not a checkpoint: choose another place (nothing was changed)", path);
    snprintf(inside, sizeof inside, "%s/%s", path, MIXT_CHECKPOINT_MANIFEST);
    json_t *manifest = NULL; // NULL: damaged, or not there
    mixt__file_map map;
    if (mixt__file_map_open(inside, &map) == MIXT_OK && map.data)
        (void)mixt__json_parse(inside, map.data, map.bytes, 0, &manifest);
    mixt__file_map_close(&map);
    const char *format = json_string_value(json_object_get(manifest, "format"));
    snprintf(inside, sizeof inside, "%s/%s", path, MIXT_CHECKPOINT_STATE);
    bool empty, ours = manifest ? format && !strcmp(format, MIXT_CHECKPOINT_FORMAT) : access(inside, F_OK) == 0;
    bool foreign = find_hf_folder(entries, json_object_get(manifest, "files"), content, &empty, name);
    closedir(entries);
    json_decref(manifest);
    if (empty || (ours && !foreign))
        return MIXT_OK;
    if (ours)
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: holds '%s' and a checkpoint: choose another place (nothing was changed)", path, name);
    return mixt__fail(MIXT_ERROR_FILE, "%s: exists and is not a checkpoint: choose another place (nothing was changed)",
                      path);
}

/** Whether a name is that of a folder which a process no longer alive was filling: .saving-PROCESS-NUMBER. */
static bool left_behind(const char *name)
{
    size_t prefix = strlen(MIXT_CHECKPOINT_TEMPORARY);
    char *end;
    if (strncmp(name, MIXT_CHECKPOINT_TEMPORARY, prefix))
        return false;
    long process = strtol(name + prefix, &end, 10);
    if (process < 0 || end == name + prefix || *end != '-' || !end[1] ||
        strspn(end + 1, "0123456789") != strlen(end + 1))
        return false;
    return process == 0 || process == (long)getpid() || (kill((pid_t)process, 0) && errno == ESRCH);
}

static void remove_left_behind(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (copy >= 0 && !entries)
        close(copy);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (left_behind(entry->d_name))
            remove_at(folder, entry->d_name);
    if (entries)
        closedir(entries);
}

/** A folder of checkpoints, in which some are to be removed; -1 in *handle: there is none. */
static mixt_status open_kept(const char *folder, int *handle)
{
    *handle = mixt__folder_open(AT_FDCWD, folder);
    if (*handle >= 0 || errno == ENOENT)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FILE, "%s: %s", folder, mixt__file_problem(errno));
}

mixt_status mixt__checkpoints_own(const char *folder)
{
    int handle;
    MIXT_TRY(open_kept(folder, &handle));
    if (handle >= 0)
        close(handle);
    return MIXT_OK;
}

static bool is_wanted(int64_t step, const int64_t *wanted, int count)
{
    for (int i = 0; i < count; i++)
        if (wanted[i] == step)
            return true;
    return false;
}

static void remove_step(int folder, int64_t step)
{
    char name[32];
    snprintf(name, sizeof name, "step-%08lld", (long long)step);
    remove_at(folder, name);
}

mixt_status mixt__checkpoints_prune(const char *folder, int64_t keep, const int64_t *wanted, int wanted_count)
{
    int64_t *steps = NULL, count = 0;
    int handle;
    MIXT_TRY(open_kept(folder, &handle));
    if (handle < 0)
        return MIXT_OK;
    remove_left_behind(handle);
    mixt_status status = mixt__checkpoints_list(folder, &steps, &count);
    for (int64_t i = keep; i < count; i++)
        if (!is_wanted(steps[i], wanted, wanted_count))
            remove_step(handle, steps[i]);
    close(handle);
    mixt__free(steps);
    return status;
}

mixt_status mixt__checkpoints_drop_after(const char *folder, int64_t step)
{
    int64_t *steps = NULL, count = 0;
    int handle;
    MIXT_TRY(open_kept(folder, &handle));
    if (handle < 0)
        return MIXT_OK;
    mixt_status status = mixt__checkpoints_list(folder, &steps, &count);
    for (int64_t i = 0; i < count && steps[i] > step; i++) // the newest first: what is left is a run up to some step
        remove_step(handle, steps[i]);
    close(handle);
    mixt__free(steps);
    return status;
}
