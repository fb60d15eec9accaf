/* The two halves of LAMB, and what ranks tell each other in between. */
#include "train/lamb.h"

#include "backend/cpu/update/training.h"
#include "train/sharded.h"

#include <string.h>

bool mixt__lamb_shared(const mixt__trainer *t)
{
    return t->ranks.zero && t->settings.optimizer.kind == MIXT_OPTIMIZER_LAMB;
}

/** Sums of one segment so far. */
typedef struct norms {
    mixt__trainer *trainer;
    int64_t segment;
    double weights, directions;
} norms;

static void close_segment(const norms *n)
{
    if (n->segment >= 0)
        n->trainer->ranks.lamb_ratios[n->segment] = mixt__cpu_lamb_ratio(n->weights, n->directions);
}

static void add_chunk(void *user, int64_t segment, int64_t chunk)
{
    norms *n = user;
    const double *sums = n->trainer->ranks.lamb_sums + 2 * chunk;
    if (segment != n->segment) {
        close_segment(n);
        *n = (norms){.trainer = n->trainer, .segment = segment};
    }
    n->weights += sums[0];
    n->directions += sums[1];
}

/** The first half: leaves the own chunks' sums among all. */
static void update_moments(mixt__trainer *t, const mixt__update *update)
{
    mixt__ranks *r = &t->ranks;
    double *mine = r->lamb_sums + 2 * r->rank_chunks[r->group->rank];
    for (int64_t g = 0; g < r->owners.groups; g++) {
        mixt__update own = mixt__sharded_own(t, update, g);
        int64_t chunks = r->chunk_first[g + 1] - r->chunk_first[g];
        if (!chunks)
            continue;
        mixt__cpu_lamb_moments(&own);
        memcpy(mine + 2 * r->chunk_first[g], own.workspace, (size_t)chunks * 2 * sizeof *mine);
    }
}

mixt_status mixt__lamb_update(mixt__trainer *t, const mixt__update *update)
{
    mixt__ranks *r = &t->ranks;
    norms n = {.trainer = t, .segment = -1};
    float *own_ratios = r->lamb_ratios + t->params->segment_count;
    update_moments(t, update);
    MIXT_TRY(mixt__group_gather_parts(r->group, r->lamb_sums, r->rank_chunks, 2 * sizeof *r->lamb_sums));
    mixt__sharded_walk(t, add_chunk, &n);
    close_segment(&n);
    for (int64_t i = 0; i < r->own_first[r->owners.groups]; i++)
        own_ratios[i] = r->lamb_ratios[t->params->segment_of[r->own[i].param]];
    for (int64_t g = 0; g < r->owners.groups; g++) {
        mixt__update own = mixt__sharded_own(t, update, g);
        if (own.segment_count)
            mixt__cpu_lamb_weights(&own, own_ratios + r->own_first[g]);
    }
    return MIXT_OK;
}
