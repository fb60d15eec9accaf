/* Regular files, and folders by handle. */
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MOST = 16 }; // folders in folders: ours have three

/** Closes what is neither a regular file nor a folder, which cannot be read anyway. */
static int regular_only(int fd)
{
    struct stat info;
    if (fd < 0)
        return -1;
    int problem = fstat(fd, &info) ? errno : S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) ? 0 : EINVAL;
    if (!problem)
        return fd;
    close(fd);
    errno = problem;
    return -1;
}

int mixt__file_open_read(const char *path)
{
    if (!strncmp(path, "/dev/", 5))
        return open(path, O_RDONLY | O_CLOEXEC);
    return regular_only(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // a pipe would wait for its writer
}

FILE *mixt__file_open_stream(const char *path)
{
    int fd = mixt__file_open_read(path);
    FILE *stream = fd < 0 ? NULL : fdopen(fd, "rb");
    if (fd >= 0 && !stream) {
        int problem = errno;
        close(fd);
        errno = problem;
    }
    return stream;
}

int mixt__file_open_write(const char *path, int flags)
{
    int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ELOOP)
        errno = EMLINK;
    return regular_only(fd);
}

const char *mixt__file_problem(int problem)
{
    if (problem == EINVAL || problem == ENXIO)
        return "it is not a regular file";
    return problem == EMLINK ? "it is a symbolic link, and nothing is written or removed through one"
                             : strerror(problem);
}

/* ---- folders ---- */

int mixt__folder_open(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat info;
    if (fd < 0 && errno == ENOTDIR && !fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) && S_ISLNK(info.st_mode))
        errno = EMLINK;
    return fd;
}

/** Whether `name` in a folder is of this kind, a link being a link. */
static bool is_kind(int at, const char *name, mode_t kind)
{
    struct stat info;
    return !fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) && (info.st_mode & S_IFMT) == kind;
}

static void remove_file(int at, const char *name)
{
    if (name && is_kind(at, name, S_IFREG))
        (void)unlinkat(at, name, 0);
}

static bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/** A folder's entries. The handle is theirs from now on. */
static DIR *entries_of(int fd)
{
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !entries)
        close(fd);
    return entries;
}

void mixt__folder_remove_files(int at, const char *name, const char *first, const char *last)
{
    DIR *entries = entries_of(mixt__folder_open(at, name));
    if (!entries)
        return;
    int fd = dirfd(entries);
    remove_file(fd, first);
    for (struct dirent *entry; (entry = readdir(entries));)
        if (!is_dots(entry->d_name) && (!last || strcmp(entry->d_name, last)))
            remove_file(fd, entry->d_name);
    remove_file(fd, last);
    closedir(entries);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

static void remove_all(int at, const char *name, int depth)
{
    DIR *entries = depth > DEPTH_MOST ? NULL : entries_of(mixt__folder_open(at, name));
    if (!entries) {
        (void)unlinkat(at, name, 0);
        return;
    }
    for (struct dirent *entry; (entry = readdir(entries));)
        if (!is_dots(entry->d_name))
            remove_all(dirfd(entries), entry->d_name, depth + 1);
    closedir(entries);
    (void)unlinkat(at, name, AT_REMOVEDIR);
}

/** The folder around a path of ours, not through a link, and the last name. */
static int open_around(const char *path, const char **name)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash)
        return mixt__folder_open(AT_FDCWD, ".");
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    if (length >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(folder, path, length);
    folder[length] = '\0';
    return mixt__folder_open(AT_FDCWD, folder);
}

void mixt__folder_remove_all(const char *path)
{
    const char *name;
    int folder = open_around(path, &name);
    if (folder >= 0) {
        remove_all(folder, name, 0);
        close(folder);
    }
}

void mixt__folder_remove_file(const char *folder, const char *name)
{
    int fd = mixt__folder_open(AT_FDCWD, folder);
    if (fd >= 0) {
        remove_file(fd, name);
        close(fd);
    }
}
