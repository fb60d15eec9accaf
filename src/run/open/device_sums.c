/* Rank 0's id to all, over what carries messages; then the library that sums. */
#include "run/open/device_sums.h"

#include "backend/beside.h"
#include "dist/load.h"

#include <string.h>

mixt_status mixt__device_sums_asked(const mixt_config *c, bool *asked)
{
    *asked = !strcmp(mixt__config_string(c, MIXT_KEY_DIST_TRANSPORT), "nccl");
    if (!*asked)
        return MIXT_OK;
    if (strcmp(mixt__config_string(c, MIXT_KEY_DIST_REDUCE), "fp32") ||
        strcmp(mixt__config_string(c, MIXT_KEY_DIST_COMPRESS), "none"))
        return mixt__fail(MIXT_ERROR_CONFIG, "dist.transport=nccl sums gradients in fp32 and uncompressed: leave out "
                                             "dist.reduce and dist.compress, or use dist.transport=mpi");
    return MIXT_OK;
}

static mixt_status check_device(const mixt__experiment *e)
{
    mixt__device *device = e->context->device;
    return device->backend->host_memory
               ? mixt__fail(MIXT_ERROR_CONFIG,
                            "dist.transport=nccl sums in the memory of GPUs, but this run is on the %s: use "
                            "dist.transport=mpi, or device=cuda",
                            device->backend->name)
               : MIXT_OK;
}

mixt_status mixt__device_sums_join(mixt__experiment *e)
{
    char id[MIXT_DEVICE_ID_SIZE] = "";
    int rank = e->group ? e->group->rank : 0, size = e->group ? e->group->size : 1;
    if (!e->on_device)
        return MIXT_OK;
    mixt_status status = check_device(e);
    if (status == MIXT_OK && !e->planned && !rank)
        status = mixt__device_id("nccl", id);
    if (e->group) {
        MIXT_TRY(mixt__group_agree(e->group, status));
        MIXT_TRY(mixt__group_broadcast(e->group, id, sizeof id, MIXT_PATIENCE));
    }
    MIXT_TRY(status);
    mixt__ranks_sum_on_device(e->trainer->inner, NULL);
    if (e->planned)
        return MIXT_OK;
    mixt__device *device = e->context->device;
    const mixt__beside *beside = device->backend->beside;
    mixt__sums_place place = {.id = id, .rank = rank, .size = size, .gpu = device->number};
    place.stream = beside ? beside->stream(device) : NULL;
    place.transport = e->group ? e->group->transport : NULL;
    status = mixt__device_sums_load("nccl", &place, &e->device_sums);
    if (e->group)
        status = mixt__group_agree(e->group, status);
    mixt__ranks_sum_on_device(e->trainer->inner, e->device_sums);
    return status;
}
