/* Finds NVIDIA's driver and loads libmixt_cuda.so: one mixt serves machines with and without a GPU.
 *
 * Places, in order: MIXT_CUDA_LIBRARY; the folder of the program or library that holds this code (a build folder, or
 * bin/ with ../lib beside it); then wherever the system's loader looks.
 */
#include "backend/backend.h"

#include "backend/cuda/open.h"
#include "base/env.h"
#include "base/log.h"
#include "base/status.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libmixt_cuda.so"

enum { PATH_SIZE = 4096 };

static struct {
    mixt_status status;
    char text[2048]; // of the failure: said again at each call
    const mixt__backend *backend;
    bool roughly; // to be told to it
} loaded;

/** Folder of the file that holds this code, without a trailing slash; "." when that is not known. */
static void own_folder(char *folder)
{
    Dl_info info;
    ssize_t length = -1;
    if (dladdr((void *)(uintptr_t)mixt__backend_cuda, &info) && info.dli_fname && strchr(info.dli_fname, '/') &&
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

static void *open_library(char *problem, size_t size)
{
    const char *given = mixt__env_get(MIXT_ENV_CUDA_LIBRARY);
    static const char *const places[] = {"", "/..", "/../lib", "/../lib/x86_64-linux-gnu"};
    char folder[PATH_SIZE], path[PATH_SIZE + 64];
    void *library = NULL;
    own_folder(folder);
    for (size_t i = 0; !given[0] && !library && i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s%s/" LIBRARY, folder, places[i]);
        if (access(path, R_OK) == 0) {
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            snprintf(problem, size, "%s", library ? "" : dlerror());
            return library;
        }
    }
    library = dlopen(given[0] ? given : LIBRARY, RTLD_NOW | RTLD_LOCAL);
    snprintf(problem, size, "%s", library ? "" : dlerror());
    return library;
}

static mixt_status load(void)
{
    char problem[1024];
    void *library = open_library(problem, sizeof problem);
    if (!library)
        return mixt__fail(MIXT_ERROR_DEVICE,
                          "the CUDA backend is not here: %s (build it on a machine with the CUDA toolkit and cuDNN 9, "
                          "and install those libraries)",
                          problem);
    mixt__cuda_open_fn *open = (mixt__cuda_open_fn *)(uintptr_t)dlsym(library, "mixt_cuda_open");
    if (!open)
        return mixt__fail(MIXT_ERROR_DEVICE, LIBRARY " is not mixt's: it lacks mixt_cuda_open");
    return open(MIXT_CUDA_ABI, mixt__error_set, &loaded.backend);
}

static void load_once(void)
{
    loaded.status = load();
    snprintf(loaded.text, sizeof loaded.text, "%s", loaded.status == MIXT_OK ? "" : mixt_error_text());
    if (loaded.status == MIXT_OK)
        loaded.backend->plan_roughly(loaded.roughly);
}

mixt_status mixt__backend_cuda(const mixt__backend **backend)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_once);
    *backend = loaded.backend;
    return loaded.status == MIXT_OK ? MIXT_OK : mixt__fail(loaded.status, "%s", loaded.text);
}

mixt_status mixt__backend_gpu(const mixt__backend **backend)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    *backend = NULL;
    if (!driver)
        return mixt__fail(MIXT_ERROR_DEVICE, "NVIDIA's driver is not installed (%s)", dlerror());
    dlclose(driver);
    return mixt__backend_cuda(backend);
}

bool mixt__backend_plan_roughly(bool on)
{
    bool before = loaded.roughly;
    loaded.roughly = on;
    if (loaded.backend)
        loaded.backend->plan_roughly(on);
    return before;
}
