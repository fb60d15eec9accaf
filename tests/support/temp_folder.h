/* A folder of its own for each test program, and small helpers for files in it. */
#ifndef MIXT_TESTS_TEMP_FOLDER_H
#define MIXT_TESTS_TEMP_FOLDER_H

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char temp_folder[256];

static inline void temp_folder_make(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(temp_folder, sizeof temp_folder, "%s/mixt-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(temp_folder)) {
        perror(temp_folder);
        exit(1);
    }
}

/** Path of a file in the folder; good until eight calls later. */
static inline const char *temp_path(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", temp_folder, name);
    return path;
}

/** Files in the folder; with `remove_them`, also deletes each. */
static inline int temp_folder_files(int remove_them)
{
    int count = 0;
    DIR *folder = opendir(temp_folder);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (remove_them)
            unlink(temp_path(entry->d_name));
    }
    if (folder)
        closedir(folder);
    return count;
}

static inline int temp_folder_unlink(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info, (void)type;
    return where->level ? remove(path) : 0;
}

/** Removes what is in the folder, folders in it too. */
static inline void temp_folder_empty(void)
{
    nftw(temp_folder, temp_folder_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void temp_folder_remove(void)
{
    temp_folder_empty();
    rmdir(temp_folder);
}

/** For a group of tests. */
static inline int temp_folder_setup(void **state)
{
    (void)state;
    temp_folder_make();
    return 0;
}

static inline int temp_folder_teardown(void **state)
{
    (void)state;
    temp_folder_remove();
    return 0;
}

static inline int temp_write(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    int ok = file && fwrite(data, 1, bytes, file) == bytes;
    return file && !fclose(file) && ok;
}

/** The whole file in malloc'ed memory; NULL when it cannot be read. */
static inline unsigned char *temp_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    *bytes = 0;
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(*bytes + 1);
    if (data && fread(data, 1, *bytes, file) != *bytes) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

#endif
