/* Choices that were timed, kept in one text file for a kind of GPU and these libraries' versions.
 *
 * A line is `key bytes-in-hex checksum`; a line that does not parse or whose checksum is wrong is as good as absent.
 * A device reads the file at first use; it gains a line with each new choice: under a lock beside it a new file takes
 * the old one's name, so that a reader sees either whole. Of processes and devices that time the same at once the first
 * to tell decides for all, else a later run would have other bits than one of them; what a checkpoint brought stays out
 * of the file for the same reason. Without a folder to write to, choices live as long as the process.
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

typedef struct mixt__cuda_choice_entry {
    char key[KEY_LIMIT];
    size_t bytes;
    unsigned char value[BYTES_LIMIT];
    bool ours; // in use by this device: stands against what the file says
} entry;

/** Where there is no file: what devices of this process told each other. */
typedef struct told_entry {
    char machine[NAME_LIMIT];
    entry entry;
} told_entry;

static struct {
    pthread_mutex_t lock; // of telling, too
    told_entry *list;
    int64_t count, capacity;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- entries and lines ---- */

static entry *find(const mixt__cuda_choices *c, const char *key)
{
    for (int64_t i = 0; i < c->count; i++)
        if (!strcmp(c->list[i].key, key))
            return &c->list[i];
    return NULL;
}

static void keep(mixt__cuda_choices *c, const entry *e)
{
    entry *old = find(c, e->key);
    if (old) {
        if (e->ours || !old->ours)
            *old = *e;
    } else if (mixt__grow((void **)&c->list, &c->capacity, c->count, sizeof *c->list)) {
        c->list[c->count++] = *e;
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

/** What the choices hold for: the kind of GPU and the libraries' versions. */
static void name_machine(const mixt__cuda_device *gpu, char *name, size_t size)
{
    char kind[sizeof gpu->name];
    memcpy(kind, gpu->name, sizeof kind);
    for (char *c = kind; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '-';
    snprintf(name, size, "%s-cublaslt%zu-cudnn%zu", kind, cublasLtGetVersion(), cudnnGetVersion());
}

static void find_path(mixt__cuda_device *gpu)
{
    char folder[PATH_LIMIT - NAME_LIMIT - 32], name[NAME_LIMIT], path[PATH_LIMIT];
    if (!find_folder(folder, sizeof folder))
        return;
    name_machine(gpu, name, sizeof name);
    snprintf(path, sizeof path, "%s/choices-%s.txt", folder, name);
    gpu->choices.path = mixt__strdup(path);
}

/** Takes over what the file says. @return whether it has this key (may be NULL), and its entry */
static bool read_file(mixt__cuda_choices *c, const char *key, entry *found)
{
    char line[LINE_LIMIT];
    bool has = false;
    entry e;
    FILE *file = c->path ? fopen(c->path, "r") : NULL;
    if (!file)
        return false;
    while (fgets(line, sizeof line, file))
        if (parse(line, &e)) {
            keep(c, &e);
            if (key && !strcmp(e.key, key)) {
                *found = e;
                has = true;
            }
        }
    fclose(file);
    return has;
}

/** The file's lines but for one of the same key, then this one. */
static bool copy_file(const char *path, FILE *to, const entry *added)
{
    char line[LINE_LIMIT];
    entry e;
    bool good = true;
    FILE *from = fopen(path, "r");
    while (from && fgets(line, sizeof line, from))
        if (parse(line, &e) && strcmp(e.key, added->key))
            good = print(to, &e) && good;
    if (from)
        fclose(from);
    return print(to, added) && good;
}

static void write_file(const char *path, const entry *added)
{
    char partial[PATH_LIMIT + 32];
    snprintf(partial, sizeof partial, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(partial, "w");
    if (!file)
        return;
    bool good = copy_file(path, file, added);
    good = fclose(file) == 0 && good;
    if (!good || rename(partial, path))
        unlink(partial);
}

/* ---- telling others ---- */

/** Whether what is there stands: of the same size, and not what did not serve. */
static bool stands(const entry *there, const entry *e, const entry *refused)
{
    return there->bytes == e->bytes &&
           !(refused && refused->bytes == e->bytes && !memcmp(there->value, refused->value, e->bytes));
}

/** In the file. Two devices of a process never write at once: they hold the lock of `told`. */
static bool tell_file(mixt__cuda_choices *c, entry *e, const entry *refused)
{
    char lock[PATH_LIMIT + 8];
    entry other;
    snprintf(lock, sizeof lock, "%s.lock", c->path);
    int held = open(lock, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (held >= 0 && flock(held, LOCK_EX)) // a file system without locks: another process's newest line may be lost
        (void)errno;
    bool first = !read_file(c, e->key, &other) || !stands(&other, e, refused);
    if (first)
        write_file(c->path, e);
    else
        memcpy(e->value, other.value, e->bytes);
    if (held >= 0)
        close(held);
    return first;
}

static told_entry *find_told(const char *machine, const char *key)
{
    for (int64_t i = 0; i < told.count; i++)
        if (!strcmp(told.list[i].entry.key, key) && !strcmp(told.list[i].machine, machine))
            return &told.list[i];
    return NULL;
}

static bool tell_process(const mixt__cuda_device *gpu, entry *e, const entry *refused)
{
    told_entry made = {.entry = *e};
    name_machine(gpu, made.machine, sizeof made.machine);
    told_entry *there = find_told(made.machine, e->key);
    if (there && stands(&there->entry, e, refused)) {
        memcpy(e->value, there->entry.value, e->bytes);
        return false;
    }
    if (there)
        *there = made;
    else if (mixt__grow((void **)&told.list, &told.capacity, told.count, sizeof *told.list))
        told.list[told.count++] = made;
    return true;
}

/** To other processes, or to other devices of this one; unless somebody was first with a good one: then that is the
 *  entry. @param refused what was there before, and did not serve; NULL: nothing */
static bool tell(mixt__cuda_device *gpu, entry *e, const entry *refused)
{
    pthread_mutex_lock(&told.lock);
    bool first = gpu->choices.path ? tell_file(&gpu->choices, e, refused) : tell_process(gpu, e, refused);
    pthread_mutex_unlock(&told.lock);
    return first;
}

/** What another device of this process told, where there is no file. */
static entry *ask(mixt__cuda_device *gpu, const char *key)
{
    char machine[NAME_LIMIT];
    if (gpu->choices.path)
        return NULL;
    name_machine(gpu, machine, sizeof machine);
    pthread_mutex_lock(&told.lock);
    const told_entry *there = find_told(machine, key);
    if (there)
        keep(&gpu->choices, &there->entry);
    pthread_mutex_unlock(&told.lock);
    return find(&gpu->choices, key);
}

static void load(mixt__cuda_device *gpu)
{
    if (gpu->choices.loaded)
        return;
    gpu->choices.loaded = true;
    find_path(gpu);
    (void)read_file(&gpu->choices, NULL, NULL);
}

/* ---- what others call ---- */

bool mixt__cuda_choice_get(mixt__cuda_device *gpu, const char *key, void *choice, size_t bytes)
{
    load(gpu);
    entry *e = find(&gpu->choices, key);
    if (!e)
        e = ask(gpu, key);
    bool found = e && e->bytes == bytes;
    if (found) {
        memcpy(choice, e->value, bytes);
        e->ours = true; // in use: what others choose later does not change what this run is made of
    }
    return found;
}

bool mixt__cuda_choice_put(mixt__cuda_device *gpu, const char *key, void *choice, size_t bytes)
{
    entry e = {.bytes = bytes, .ours = true}, before = {.bytes = 0};
    if (strlen(key) >= KEY_LIMIT || bytes > BYTES_LIMIT || !*key || strpbrk(key, " \t\r\n"))
        return true;
    memcpy(e.key, key, strlen(key));
    memcpy(e.value, choice, bytes);
    load(gpu);
    const entry *old = find(&gpu->choices, key);
    if (old)
        before = *old; // the table may move while the file is read
    bool first = tell(gpu, &e, old ? &before : NULL);
    memcpy(choice, e.value, bytes);
    keep(&gpu->choices, &e);
    return first;
}

size_t mixt__cuda_choices_print(mixt__device *device, char *text, size_t room)
{
    const mixt__cuda_device *gpu = mixt__cuda_device_of(device);
    char name[NAME_LIMIT], *all = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&all, &bytes);
    if (!stream)
        return 0;
    name_machine(gpu, name, sizeof name);
    fprintf(stream, "%s\n", name);
    for (int64_t i = 0; i < gpu->choices.count; i++)
        if (gpu->choices.list[i].ours)
            print(stream, &gpu->choices.list[i]);
    if (fclose(stream))
        bytes = 0;
    if (room)
        memcpy(text, all, bytes < room ? bytes : room);
    free(all);
    return bytes;
}

void mixt__cuda_choices_adopt(mixt__device *device, const char *text, size_t bytes)
{
    mixt__cuda_device *gpu = mixt__cuda_device_of(device);
    char name[NAME_LIMIT], line[LINE_LIMIT];
    const char *end = text + bytes;
    entry e;
    name_machine(gpu, name, sizeof name);
    size_t length = strlen(name);
    if (bytes <= length || memcmp(text, name, length) || text[length] != '\n')
        return;
    load(gpu);
    gpu->choices.adopted = true;
    for (const char *at = text + length + 1; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t width = (size_t)((newline ? newline : end) - at);
        snprintf(line, sizeof line, "%.*s", (int)(width < sizeof line ? width : sizeof line - 1), at);
        if (parse(line, &e)) {
            e.ours = true;
            keep(&gpu->choices, &e);
        }
        at += width + 1;
    }
}

void mixt__cuda_choices_drop(mixt__cuda_device *gpu)
{
    mixt__free(gpu->choices.list);
    mixt__free(gpu->choices.path);
    gpu->choices = (mixt__cuda_choices){0};
}
