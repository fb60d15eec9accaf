/* Hashing weights, and finding the rank that has others. */
#include "train/dist/rank_hash.h"

#include "store/checksum.h"
#include "train/trainer_inside.h"

mixt_status mixt__rank_hash_take(mixt__trainer *t)
{
    mixt__ranks *r = &t->ranks;
    const float *weights = mixt__params_weights(t->params);
    size_t bytes = (size_t)t->params->total * sizeof *weights;
    if (!r->sums.check || t->attempts % r->sums.check || t->params->shard.masters) // of which nobody else has the same
        return MIXT_OK;
    if (!t->device->backend->host_memory) {
        MIXT_TRY(mixt__device_download(t->device, r->discrete.staged, weights, bytes));
        weights = r->discrete.staged;
    }
    r->sums.hash = (int64_t)mixt__checksum(weights, bytes);
    r->sums.hashed = t->attempts;
    return MIXT_OK;
}

static int count_like(const int64_t *hashes, int size, int rank)
{
    int count = 0;
    for (int other = 0; other < size; other++)
        count += hashes[other] == hashes[rank];
    return count;
}

mixt_status mixt__rank_hash_compare(const mixt__trainer *t, const int64_t *hashes)
{
    const mixt__group *g = t->ranks.group;
    char who[MIXT_HOST_SIZE + 64];
    int most = 0, odd = 0;
    for (int rank = 1; rank < g->size; rank++)
        if (hashes[rank] != hashes[most] && count_like(hashes, g->size, rank) > count_like(hashes, g->size, most))
            most = rank;
    while (odd < g->size && hashes[odd] == hashes[most])
        odd++;
    if (odd == g->size)
        return MIXT_OK;
    mixt__group_describe(g, odd, who, sizeof who);
    return mixt__fail(MIXT_ERROR_STATE,
                      "%s has computed other weights than rank %d%s, found after update %lld (dist.check): resume from "
                      "a checkpoint before that, on a reliable machine",
                      who, most, g->size > 2 ? " and most others" : "", (long long)t->ranks.sums.hashed);
}
