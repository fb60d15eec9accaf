/* Finds libmixt_mpi.so: one mixt serves machines with and without MPI. */
#include "dist/load.h"

#include "base/env.h"
#include "base/library.h"
#include "base/status.h"
#include "mixt/ranks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static mixt_status find(const char *name, void **library)
{
    char file[64], problem[1024];
    *library = NULL;
    if (strcmp(name, "mpi"))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "'%s' is no transport: there is mpi", name);
    snprintf(file, sizeof file, "libmixt_%s.so", name);
    *library = mixt__library_open(file, mixt__env_get(MIXT_ENV_MPI_LIBRARY), true, problem, sizeof problem);
    return *library ? MIXT_OK
                    : mixt__fail(MIXT_ERROR_DEVICE,
                                 "the transport %s is not here: %s (build it on a machine with Open MPI, Debian's "
                                 "libopenmpi-dev, and install that)",
                                 name, problem);
}

mixt_status mixt__transport_load(const char *name, const mixt__transport **transport)
{
    void *library;
    MIXT_TRY(find(name, &library));
    mixt__transport_open_fn *open = (mixt__transport_open_fn *)(uintptr_t)dlsym(library, "mixt_transport_open");
    if (!open)
        return mixt__fail(MIXT_ERROR_DEVICE, "libmixt_%s.so is not mixt's: it lacks mixt_transport_open", name);
    return open(MIXT_TRANSPORT_ABI, mixt__error_set, transport);
}

mixt_status mixt_ranks_transport(const char *name, char *version, size_t size)
{
    void *library;
    MIXT_TRY(mixt__need(name));
    MIXT_TRY(mixt__need(version));
    MIXT_TRY(find(name, &library));
    mixt__transport_version_fn *ask = (mixt__transport_version_fn *)(uintptr_t)dlsym(library, "mixt_transport_version");
    snprintf(version, size, "%s", ask ? ask() : "");
    return ask ? MIXT_OK : mixt__fail(MIXT_ERROR_DEVICE, "libmixt_%s.so is not mixt's", name);
}
