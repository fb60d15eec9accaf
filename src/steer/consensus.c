/* Gathers, and what follows from them. */
#include "steer/consensus.h"

#include <string.h>

enum { PATIENCE = 10 }; // times the timeout: one rank may look at samples while the others wait

mixt_status mixt__consensus_agree(const mixt__trainer *t, mixt_status status)
{
    return mixt__ranks_group(t) ? mixt__group_agree(mixt__ranks_group(t), status) : status;
}

mixt_status mixt__consensus_gather(const mixt__trainer *t, const void *mine, size_t bytes, void **all, int *count)
{
    mixt__group *g = mixt__ranks_group(t);
    *count = g ? g->size : 1;
    *all = mixt__alloc((size_t)*count * bytes);
    mixt_status status =
        mixt__consensus_agree(t, *all ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for what ranks have found"));
    if (status == MIXT_OK && g)
        status = mixt__group_gather(g, mine, bytes, *all, PATIENCE);
    else if (status == MIXT_OK)
        memcpy(*all, mine, bytes);
    if (status == MIXT_OK)
        return MIXT_OK;
    mixt__free(*all);
    *all = NULL;
    return status;
}

mixt_status mixt__consensus_any(const mixt__trainer *t, bool *so, int *rank)
{
    bool *all;
    int count;
    if (!mixt__ranks_group(t))
        return MIXT_OK;
    MIXT_TRY(mixt__consensus_gather(t, so, sizeof *so, (void **)&all, &count));
    *so = false;
    for (int i = 0; i < count && !*so; i++) {
        *so = all[i];
        *rank = all[i] ? i : *rank;
    }
    mixt__free(all);
    return MIXT_OK;
}

mixt_status mixt__consensus_take(const mixt__trainer *t, int rank, void *data, size_t bytes)
{
    char *all;
    int count;
    if (!mixt__ranks_group(t))
        return MIXT_OK;
    MIXT_TRY(mixt__consensus_gather(t, data, bytes, (void **)&all, &count));
    memcpy(data, all + (size_t)rank * bytes, bytes);
    mixt__free(all);
    return MIXT_OK;
}
