/* Rank 0 first, then its choices, then the others. */
#include "train/dist/rank0_first.h"

#include "base/alloc.h"
#include "base/status.h"

/** Rank 0's choices to all. */
static mixt_status share_choices(mixt__group *group, mixt__device *device)
{
    uint64_t bytes = group->rank ? 0 : mixt__device_choices(device, NULL, 0);
    MIXT_TRY(mixt__group_broadcast(group, &bytes, sizeof bytes, MIXT_PATIENCE));
    char *text = mixt__alloc((size_t)bytes + 1);
    MIXT_TRY(
        mixt__group_agree(group, text ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for choices of kernels")));
    if (!group->rank)
        mixt__device_choices(device, text, (size_t)bytes);
    mixt_status status = mixt__group_broadcast(group, text, (size_t)bytes, MIXT_PATIENCE);
    if (status == MIXT_OK && group->rank)
        mixt__device_choose(device, text, (size_t)bytes);
    mixt__free(text);
    return status;
}

mixt_status mixt__rank0_first(mixt__group *group, mixt__device *device, mixt_status (*work)(void *user), void *user)
{
    if (!group || !device->backend->choices)
        return work(user);
    MIXT_TRY(mixt__group_agree(group, group->rank ? MIXT_OK : work(user)));
    MIXT_TRY(share_choices(group, device));
    return group->rank ? work(user) : MIXT_OK;
}
