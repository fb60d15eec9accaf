/* Finds NVIDIA's driver and loads libmixt_cuda.so: one mixt serves machines with and without a GPU.
 *
 * Where it looks: base/library.h, or the path in MIXT_CUDA_LIBRARY.
 */
#include "backend/backend.h"

#include "backend/cuda/open.h"
#include "base/env.h"
#include "base/library.h"
#include "base/log.h"
#include "base/status.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#define LIBRARY "libmixt_cuda.so"

static struct {
    mixt_status status;
    char text[2048]; // of the failure: said again at each call
    const mixt__backend *backend;
} loaded;

static mixt_status load(void)
{
    char problem[1024];
    void *library = mixt__library_open(LIBRARY, mixt__env_get(MIXT_ENV_CUDA_LIBRARY), false, problem, sizeof problem);
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
