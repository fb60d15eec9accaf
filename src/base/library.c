/* Where mixt's own libraries lie. */
#include "base/library.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/** Folder of the file that holds this code, without a trailing slash; "." when that is not known. */
static void own_folder(char *folder)
{
    Dl_info info;
    ssize_t length = -1;
    if (dladdr((void *)(uintptr_t)mixt__library_open, &info) && info.dli_fname && strchr(info.dli_fname, '/') &&
        strstr(info.dli_fname, ".so")) {
        snprintf(folder, PATH_SIZE, "%s", info.dli_fname);
        length = (ssize_t)strlen(folder);
    } else {
        length = readlink("/proc/self/exe", folder, PATH_SIZE - 1);
    }
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    else
        strcpy(folder, ".");
}

void *mixt__library_open(const char *name, const char *given, bool global, char *problem, size_t size)
{
    static const char *const places[] = {"", "/mixt", "/..", "/../lib/mixt", "/../lib/x86_64-linux-gnu/mixt"};
    char folder[PATH_SIZE], path[PATH_SIZE + 64];
    int flags = RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL);
    void *library = NULL;
    own_folder(folder);
    for (size_t i = 0; !given[0] && i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s/%s", folder, places[i], name);
        if (access(path, R_OK) == 0) {
            library = dlopen(path, flags);
            snprintf(problem, size, "%s", library ? "" : dlerror());
            return library;
        }
    }
    library = dlopen(given[0] ? given : name, flags);
    snprintf(problem, size, "%s", library ? "" : dlerror());
    return library;
}
