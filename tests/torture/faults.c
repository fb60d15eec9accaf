/* A library to preload: the allocation or the system call with a given number fails, once or from there on.
 *
 *   MIXT_TORTURE_ALLOC=N    the N-th allocation of the process (from 1) finds no memory
 *   MIXT_TORTURE_CALL=N     the N-th call that opens, reads, writes, renames, … a file fails
 *   MIXT_TORTURE_KIND=K     how: io (EIO), files (EMFILE, where something is opened), full (ENOSPC, where something is
 *                           written), intr (EINTR), short (half of the bytes are read or written, and no error)
 *   MIXT_TORTURE_ON=1       and so do all after it
 *   MIXT_TORTURE_COUNT=F    how many there were of both, as two 64-bit integers in the file F
 *   MIXT_TORTURE_LIBC=V     the C library says that it is version V
 *
 * What stands here are the C library's functions by their own names, as the program's calls find them. Streams are made
 * of calls too: fopen and fdopen give ones whose bytes go through the functions here. Files under /proc, /sys and /dev,
 * and the three standard streams, are left alone: what a machine is should not change.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ALLOC, CALL, COUNTERS };
enum kind { KIND_IO, KIND_FILES, KIND_FULL, KIND_INTR, KIND_SHORT };
enum does { DOES_OPEN = 1, DOES_READ = 2, DOES_WRITE = 4, DOES_WAIT = 8 }; // DOES_WAIT: may be interrupted

static int64_t own[COUNTERS], *counts = own, fail_at[COUNTERS];
static enum kind kind;
static int fail_on;

__attribute__((constructor)) static void begin(void)
{
    static const char *const names[] = {"MIXT_TORTURE_ALLOC", "MIXT_TORTURE_CALL"};
    static const char *const kinds[] = {"io", "files", "full", "intr", "short"};
    const char *file = getenv("MIXT_TORTURE_COUNT"), *how = getenv("MIXT_TORTURE_KIND");
    for (int i = 0; i < COUNTERS; i++)
        fail_at[i] = getenv(names[i]) ? strtoll(getenv(names[i]), NULL, 10) : 0;
    for (int i = 0; how && i < 5; i++)
        kind = strcmp(how, kinds[i]) ? kind : (enum kind)i;
    fail_on = getenv("MIXT_TORTURE_ON") != NULL;
    int fd = file ? (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd < 0 || syscall(SYS_ftruncate, fd, sizeof own))
        return;
    void *shared = (void *)syscall(SYS_mmap, NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED) // else it has counted in `own`
        counts = shared;
    syscall(SYS_close, fd);
}

static int is_due(int counter)
{
    int64_t mine = __atomic_add_fetch(&counts[counter], 1, __ATOMIC_RELAXED), at = fail_at[counter];
    return at > 0 && (mine == at || (fail_on && mine > at));
}

/* ---- memory ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static int no_memory(void)
{
    if (!is_due(ALLOC))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t bytes)
{
    return no_memory() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return no_memory() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    return no_memory() ? NULL : __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return no_memory() ? NULL : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **at, size_t alignment, size_t bytes)
{
    void *got = no_memory() ? NULL : __libc_memalign(alignment, bytes);
    if (!got)
        return ENOMEM;
    *at = got;
    return 0;
}

/* ---- calls ---- */

/** Whether this call fails, with errno; of the kinds that not every call can meet, those others are passed over. */
static int fails(int does)
{
    static const int errors[] = {EIO, EMFILE, ENOSPC, EINTR, 0};
    static const int concern[] = {~0, DOES_OPEN, DOES_WRITE, DOES_WAIT, 0};
    if (!is_due(CALL) || !(does & concern[kind]))
        return 0;
    errno = errors[kind];
    return 1;
}

/** The same for calls that may also move half of the bytes. */
static int fails_or_halves(int does, size_t *bytes)
{
    int64_t at = fail_at[CALL], mine = counts[CALL] + 1;
    if (kind == KIND_SHORT && *bytes > 1 && at > 0 && (mine == at || (fail_on && mine > at)))
        *bytes /= 2;
    return fails(does);
}

static int is_file(const char *path)
{
    return strncmp(path, "/proc/", 6) && strncmp(path, "/sys/", 5) && strncmp(path, "/dev/", 5);
}

static int open_at(int at, const char *path, int flags, mode_t mode)
{
    if (is_file(path) && fails(DOES_OPEN | (flags & O_CREAT ? DOES_WRITE : 0)))
        return -1;
    return (int)syscall(SYS_openat, at, path, flags, mode);
}

#define MODE_OF(flags)                                                                                                 \
    mode_t mode = 0;                                                                                                   \
    if ((flags)&O_CREAT) {                                                                                             \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode = va_arg(arguments, mode_t);                                                                              \
        va_end(arguments);                                                                                             \
    }

int open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_at(at, path, flags, mode);
}

ssize_t read(int fd, void *to, size_t bytes)
{
    return fd > 2 && fails_or_halves(DOES_READ | DOES_WAIT, &bytes) ? -1 : syscall(SYS_read, fd, to, bytes);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
    return fails_or_halves(DOES_READ | DOES_WAIT, &bytes) ? -1 : syscall(SYS_pread64, fd, to, bytes, at);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    return fd > 2 && fails_or_halves(DOES_WRITE | DOES_WAIT, &bytes) ? -1 : syscall(SYS_write, fd, from, bytes);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at)
{
    return fails_or_halves(DOES_WRITE | DOES_WAIT, &bytes) ? -1 : syscall(SYS_pwrite64, fd, from, bytes, at);
}

int fsync(int fd)
{
    return fails(DOES_WRITE) ? -1 : (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t bytes)
{
    return fails(DOES_WRITE) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int rename(const char *from, const char *to)
{
    return fails(DOES_WRITE) ? -1 : (int)syscall(SYS_rename, from, to);
}

int renameat2(int at, const char *from, int to_at, const char *to, unsigned flags)
{
    return fails(DOES_WRITE) ? -1 : (int)syscall(SYS_renameat2, at, from, to_at, to, flags);
}

int link(const char *from, const char *to)
{
    return fails(DOES_WRITE) ? -1 : (int)syscall(SYS_link, from, to);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(DOES_WRITE) ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

int unlink(const char *path)
{
    return fails(0) ? -1 : (int)syscall(SYS_unlink, path);
}

int unlinkat(int at, const char *path, int flags)
{
    return fails(0) ? -1 : (int)syscall(SYS_unlinkat, at, path, flags);
}

int stat(const char *path, struct stat *info)
{
    return is_file(path) && fails(0) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, 0);
}

int lstat(const char *path, struct stat *info)
{
    return is_file(path) && fails(0) ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}

int fstat(int fd, struct stat *info)
{
    return fd > 2 && fails(0) ? -1 : (int)syscall(SYS_fstat, fd, info);
}

int access(const char *path, int how)
{
    return is_file(path) && fails(0) ? -1 : (int)syscall(SYS_access, path, how);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && fails(DOES_READ))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/** What follows this library in the order of look-up. */
static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

DIR *fdopendir(int fd)
{
    static DIR *(*real)(int);
    if (!real)
        *(void **)&real = next("fdopendir");
    return fails(DOES_OPEN) ? NULL : real(fd);
}

DIR *opendir(const char *path)
{
    static DIR *(*real)(const char *);
    if (!real)
        *(void **)&real = next("opendir");
    return is_file(path) && fails(DOES_OPEN) ? NULL : real(path);
}

struct dirent *readdir(DIR *entries)
{
    static struct dirent *(*real)(DIR *);
    if (!real)
        *(void **)&real = next("readdir");
    return fails(0) ? NULL : real(entries);
}

/* ---- streams ---- */

static ssize_t stream_read(void *fd, char *to, size_t bytes)
{
    return read((int)(intptr_t)fd, to, bytes);
}

static ssize_t stream_write(void *fd, const char *from, size_t bytes)
{
    ssize_t done = write((int)(intptr_t)fd, from, bytes);
    return done < 0 ? 0 : done; // which is how such a stream is told of an error
}

static int stream_seek(void *fd, off64_t *at, int whence)
{
    *at = lseek((int)(intptr_t)fd, *at, whence);
    return *at < 0 ? -1 : 0;
}

static int stream_close(void *fd)
{
    return close((int)(intptr_t)fd);
}

FILE *fdopen(int fd, const char *mode)
{
    static const cookie_io_functions_t functions = {stream_read, stream_write, stream_seek, stream_close};
    return fails(0) ? NULL : fopencookie((void *)(intptr_t)fd, mode, functions); // NOLINT: a number in a pointer
}

FILE *fopen(const char *path, const char *mode)
{
    int flags = *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | (*mode == 'a' ? O_APPEND : O_TRUNC);
    if (!is_file(path)) {
        FILE *(*real)(const char *, const char *);
        *(void **)&real = next("fopen");
        return real(path, mode);
    }
    int fd = open_at(AT_FDCWD, path, flags | O_CLOEXEC, 0666);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, mode);
    if (fd >= 0 && !stream)
        close(fd);
    return stream;
}

/* ---- versions ---- */

const char *gnu_get_libc_version(void); // of a header that glibc alone has
const char *gnu_get_libc_version(void)
{
    static const char *(*real)(void);
    const char *other = getenv("MIXT_TORTURE_LIBC");
    if (!real)
        *(void **)&real = next("gnu_get_libc_version");
    return other ? other : real();
}

/* ---- the names that programs use which ask for 64-bit offsets ---- */

int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int openat64(int at, const char *path, int flags, ...) __attribute__((alias("openat")));
ssize_t pread64(int fd, void *to, size_t bytes, off_t at) __attribute__((alias("pread")));
ssize_t pwrite64(int fd, const void *from, size_t bytes, off_t at) __attribute__((alias("pwrite")));
int ftruncate64(int fd, off_t bytes) __attribute__((alias("ftruncate")));
void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) __attribute__((alias("mmap")));
struct dirent64 *readdir64(DIR *entries) __attribute__((alias("readdir")));
FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));
int stat64(const char *path, struct stat64 *info) __attribute__((alias("stat")));
int lstat64(const char *path, struct stat64 *info) __attribute__((alias("lstat")));
int fstat64(int fd, struct stat64 *info) __attribute__((alias("fstat")));
