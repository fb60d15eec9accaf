/* Finds libmixt_mpi.so and libmixt_nccl.so: one mixt serves machines with and without MPI and NCCL. */
#include "dist/load.h"

#include "base/env.h"
#include "base/library.h"
#include "base/status.h"
#include "mixt/ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    mixt__env given; // variable with its path
    bool global;     // what it links is for other libraries to see
    const char *need;
} transports[] = {
    {"mpi", MIXT_ENV_MPI_LIBRARY, true, "Open MPI, Debian's libopenmpi-dev"},
    {"nccl", MIXT_ENV_NCCL_LIBRARY, false, "the CUDA toolkit, cuDNN 9 and NCCL 2"},
};

static mixt_status find(const char *name, void **library)
{
    char file[64], problem[1024];
    *library = NULL;
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        if (strcmp(name, transports[i].name))
            continue;
        snprintf(file, sizeof file, "libmixt_%s.so", name);
        *library =
            mixt__library_open(file, mixt__env_get(transports[i].given), transports[i].global, problem, sizeof problem);
        return *library ? MIXT_OK
                        : mixt__fail(MIXT_ERROR_DEVICE,
                                     "the transport %s is not here: %s (build it on a machine with %s, and install "
                                     "that)",
                                     name, problem, transports[i].need);
    }
    return mixt__fail(MIXT_ERROR_ARGUMENT, "'%s' is not a transport: expected mpi or nccl", name);
}

/** A function of a transport's library. */
static mixt_status look_up(const char *name, const char *symbol, void **function)
{
    void *library;
    MIXT_TRY(find(name, &library));
    *function = dlsym(library, symbol);
    return *function ? MIXT_OK
                     : mixt__fail(MIXT_ERROR_DEVICE, "libmixt_%s.so is not mixt's: it lacks %s", name, symbol);
}

mixt_status mixt__transport_load(const char *name, int rank, int size, double timeout, mixt__transport **transport)
{
    void *open;
    MIXT_TRY(look_up(name, "mixt_transport_open", &open));
    return ((mixt__transport_open_fn *)(uintptr_t)open)(MIXT_TRANSPORT_ABI, rank, size, timeout, mixt__error_set,
                                                        transport);
}

mixt_status mixt__device_id(const char *name, char *id)
{
    void *make;
    MIXT_TRY(look_up(name, "mixt_device_id", &make));
    return ((mixt__device_id_fn *)(uintptr_t)make)(mixt__error_set, id);
}

mixt_status mixt__device_sums_load(const char *name, const mixt__sums_place *place, mixt__device_sums **sums)
{
    void *open;
    MIXT_TRY(look_up(name, "mixt_device_sums_open", &open));
    return ((mixt__device_sums_open_fn *)(uintptr_t)open)(MIXT_TRANSPORT_ABI, mixt__error_set, place, sums);
}

mixt_status mixt_ranks_transport(const char *name, const char **version)
{
    void *ask;
    MIXT_TRY(mixt__need(name));
    MIXT_TRY(mixt__need(version));
    *version = "";
    MIXT_TRY(look_up(name, "mixt_transport_version", &ask));
    *version = ((mixt__transport_version_fn *)(uintptr_t)ask)(); // its library stays loaded
    return MIXT_OK;
}
