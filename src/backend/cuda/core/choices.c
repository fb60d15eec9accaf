/* Choices that were timed, kept in one text file for this GPU and these libraries' versions.
 *
 * A line is `key bytes-in-hex checksum`; a line that does not parse or whose checksum is wrong is as good as absent.
 * The file is read at first use, and gains a line with each new choice: under a lock beside it a new file takes the old
 * one's name, so that a reader sees either whole. Of processes that time the same at once the first to tell decides for
 * all, else a later run would have other bits than one of them; what a checkpoint brought stays out of the file for the
 * same reason. Without a folder to write to, choices live as long as the process.
 */
#include "backend/cuda/core/cuda.h"

#include "base/alloc.h"
#include "base/env.h"

#include <cublasLt.h>
#include <cudnn.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    KEY_LIMIT = 256,
    BYTES_LIMIT = 256,
    LINE_LIMIT = KEY_LIMIT + 2 * BYTES_LIMIT + 32,
    PATH_LIMIT = 1024,
    NAME_LIMIT = 384
};

typedef struct entry {
    char key[KEY_LIMIT];
    size_t bytes;
    unsigned char value[BYTES_LIMIT];
    bool ours; // made by this process: stands against what the file says
} entry;

static struct {
    pthread_mutex_t lock;
    bool loaded;
    char path[PATH_LIMIT]; // empty: nowhere to keep them
    entry *list;
    int64_t count, capacity;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- entries and lines ---- */

static entry *find(const char *key)
{
    for (int64_t i = 0; i < table.count; i++)
        if (!strcmp(table.list[i].key, key))
            return &table.list[i];
    return NULL;
}

static void keep(const entry *e)
{
    entry *old = find(e->key);
    if (old) {
        if (e->ours || !old->ours)
            *old = *e;
    } else if (mixt__grow((void **)&table.list, &table.capacity, table.count, sizeof *table.list)) {
        table.list[table.count++] = *e;
    }
}

static uint64_t checksum(const entry *e)
{
    uint64_t hash = 1469598103934665603u;
    for (const char *k = e->key; *k; k++)
        hash = (hash ^ (unsigned char)*k) * 1099511628211u;
    for (size_t i = 0; i < e->bytes; i++)
        hash = (hash ^ e->value[i]) * 1099511628211u;
    return hash;
}

static bool parse(const char *line, entry *e)
{
    unsigned long long sum;
    char hex[2 * BYTES_LIMIT + 1];
    memset(e, 0, sizeof *e);
    _Static_assert(KEY_LIMIT == 256 && BYTES_LIMIT == 256, "the field widths below");
    if (sscanf(line, "%255s %512[0-9a-f] %16llx", e->key, hex, &sum) != 3 || strlen(hex) % 2)
        return false;
    for (const char *h = hex; *h; h += 2) {
        unsigned byte;
        sscanf(h, "%2x", &byte);
        e->value[e->bytes++] = (unsigned char)byte;
    }
    return checksum(e) == sum;
}

static bool print(FILE *file, const entry *e)
{
    fprintf(file, "%s ", e->key);
    for (size_t i = 0; i < e->bytes; i++)
        fprintf(file, "%02x", e->value[i]);
    return fprintf(file, " %016llx\n", (unsigned long long)checksum(e)) > 0;
}

/* ---- the file ---- */

static bool make_folders(char *path)
{
    for (char *slash = path + 1; *slash; slash++)
        if (*slash == '/') {
            *slash = '\0';
            bool made = mkdir(path, 0777) == 0 || errno == EEXIST;
            *slash = '/';
            if (!made)
                return false;
        }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static bool find_folder(char *path, size_t size)
{
    const char *own = mixt__env_get(MIXT_ENV_CACHE), *shared = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length;
    if (*own)
        length = snprintf(path, size, "%s", own);
    else if (shared && *shared == '/')
        length = snprintf(path, size, "%s/mixt", shared);
    else if (home && *home)
        length = snprintf(path, size, "%s/.cache/mixt", home);
    else
        return false;
    return length > 0 && (size_t)length < size && make_folders(path);
}

/** What the choices hold for: the GPU and the libraries' versions. */
static void name_machine(char *name, size_t size)
{
    char gpu[sizeof mixt__cuda.name];
    memcpy(gpu, mixt__cuda.name, sizeof gpu);
    for (char *c = gpu; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '-';
    snprintf(name, size, "%s-cublaslt%zu-cudnn%zu", gpu, cublasLtGetVersion(), cudnnGetVersion());
}

static void find_path(void)
{
    char folder[PATH_LIMIT - NAME_LIMIT - 32], name[NAME_LIMIT];
    if (!find_folder(folder, sizeof folder))
        return;
    name_machine(name, sizeof name);
    snprintf(table.path, sizeof table.path, "%s/choices-%s.txt", folder, name);
}

/** Takes over what the file says. @return whether it has this key (may be NULL), and its entry */
static bool read_file(const char *key, entry *told)
{
    char line[LINE_LIMIT];
    bool found = false;
    entry e;
    FILE *file = table.path[0] ? fopen(table.path, "r") : NULL;
    if (!file)
        return false;
    while (fgets(line, sizeof line, file))
        if (parse(line, &e)) {
            keep(&e);
            if (key && !strcmp(e.key, key)) {
                *told = e;
                found = true;
            }
        }
    fclose(file);
    return found;
}

/** The file's lines but for one of the same key, then this one. */
static bool copy_file(FILE *to, const entry *added)
{
    char line[LINE_LIMIT];
    entry e;
    bool good = true;
    FILE *from = fopen(table.path, "r");
    while (from && fgets(line, sizeof line, from))
        if (parse(line, &e) && strcmp(e.key, added->key))
            good = print(to, &e) && good;
    if (from)
        fclose(from);
    return print(to, added) && good;
}

static void write_file(const entry *added)
{
    char partial[PATH_LIMIT + 32];
    snprintf(partial, sizeof partial, "%s.%ld", table.path, (long)getpid());
    FILE *file = fopen(partial, "w");
    if (!file)
        return;
    bool good = copy_file(file, added);
    good = fclose(file) == 0 && good;
    if (!good || rename(partial, table.path))
        unlink(partial);
}

/** Puts it into the file, unless another process was first with a good one: then that is the entry. @param refused what
 *  was there before, and did not serve; NULL: nothing */
static bool tell(entry *e, const entry *refused)
{
    char lock[PATH_LIMIT + 8];
    entry other;
    if (!table.path[0])
        return true;
    snprintf(lock, sizeof lock, "%s.lock", table.path);
    int held = open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (held >= 0 && flock(held, LOCK_EX)) // a file system without locks: another process's newest line may be lost
        (void)errno;
    bool first = !read_file(e->key, &other) || other.bytes != e->bytes ||
                 (refused && refused->bytes == e->bytes && !memcmp(other.value, refused->value, e->bytes));
    if (first)
        write_file(e);
    else
        memcpy(e->value, other.value, e->bytes);
    if (held >= 0)
        close(held);
    return first;
}

static void load(void)
{
    if (table.loaded)
        return;
    table.loaded = true;
    find_path();
    (void)read_file(NULL, NULL);
}

/* ---- what others call ---- */

bool mixt__cuda_choice_get(const char *key, void *choice, size_t bytes)
{
    pthread_mutex_lock(&table.lock);
    load();
    entry *e = find(key);
    bool found = e && e->bytes == bytes;
    if (found) {
        memcpy(choice, e->value, bytes);
        e->ours = true; // in use: what others choose later does not change what this run is made of
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

bool mixt__cuda_choice_put(const char *key, void *choice, size_t bytes)
{
    entry e = {.bytes = bytes, .ours = true}, before = {.bytes = 0};
    if (strlen(key) >= KEY_LIMIT || bytes > BYTES_LIMIT || !*key || strpbrk(key, " \t\r\n"))
        return true;
    memcpy(e.key, key, strlen(key));
    memcpy(e.value, choice, bytes);
    pthread_mutex_lock(&table.lock);
    load();
    const entry *old = find(key);
    if (old)
        before = *old; // the table may move while the file is read
    bool first = tell(&e, old ? &before : NULL);
    memcpy(choice, e.value, bytes);
    keep(&e);
    pthread_mutex_unlock(&table.lock);
    return first;
}

size_t mixt__cuda_choices_print(mixt__device *device, char *text, size_t room)
{
    (void)device;
    char name[NAME_LIMIT], *all = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&all, &bytes);
    if (!stream)
        return 0;
    name_machine(name, sizeof name);
    fprintf(stream, "%s\n", name);
    pthread_mutex_lock(&table.lock);
    for (int64_t i = 0; i < table.count; i++)
        if (table.list[i].ours)
            print(stream, &table.list[i]);
    pthread_mutex_unlock(&table.lock);
    if (fclose(stream))
        bytes = 0;
    if (room)
        memcpy(text, all, bytes < room ? bytes : room);
    free(all);
    return bytes;
}

void mixt__cuda_choices_adopt(mixt__device *device, const char *text, size_t bytes)
{
    (void)device;
    char name[NAME_LIMIT], line[LINE_LIMIT];
    const char *end = text + bytes;
    entry e;
    name_machine(name, sizeof name);
    size_t length = strlen(name);
    if (bytes <= length || memcmp(text, name, length) || text[length] != '\n')
        return;
    pthread_mutex_lock(&table.lock);
    load();
    for (const char *at = text + length + 1; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t width = (size_t)((newline ? newline : end) - at);
        snprintf(line, sizeof line, "%.*s", (int)(width < sizeof line ? width : sizeof line - 1), at);
        if (parse(line, &e)) {
            e.ours = true;
            keep(&e);
        }
        at += width + 1;
    }
    pthread_mutex_unlock(&table.lock);
}
