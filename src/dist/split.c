/* Parts of a group: over a communicator of its own where the transport has them, else over the caller's, which carries
 * messages between some of its ranks as well. */
#include "base/alloc.h"
#include "base/status.h"
#include "dist/group.h"

/** Where a rank is to go. */
typedef struct place {
    int32_t colour, key;
} place;

/** Over what carries the whole group, by the ranks that it has there. */
static mixt_status exchange_through(void *user, const mixt_message *out, int outs, const mixt_message *in, int ins,
                                    double seconds)
{
    const mixt__group *part = user;
    mixt__group *whole = part->whole;
    for (int i = 0; i < outs; i++)
        whole->out[i] = (mixt__message){part->members[out[i].peer], out[i].data, out[i].bytes};
    for (int i = 0; i < ins; i++)
        whole->in[i] = (mixt__message){part->members[in[i].peer], in[i].data, in[i].bytes};
    return whole->own.exchange(whole->own.user, whole->out, outs, whole->in, ins, seconds);
}

static bool goes_before(const place *places, int a, int b)
{
    return places[a].key < places[b].key || (places[a].key == places[b].key && a < b);
}

/** Ranks of the part, in their order: each stands behind as many as go before it. */
static mixt_status find_members(const mixt__group *whole, const place *places, mixt__group *part)
{
    int32_t colour = places[whole->rank].colour;
    part->members = mixt__alloc((size_t)whole->size * sizeof *part->members);
    if (!part->members)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a group of %d ranks", whole->size);
    for (int rank = 0; rank < whole->size; rank++) {
        int before = 0;
        if (places[rank].colour != colour)
            continue;
        for (int other = 0; other < whole->size; other++)
            before += places[other].colour == colour && goes_before(places, other, rank);
        part->members[before] = rank;
        part->rank = rank == whole->rank ? before : part->rank;
        part->size++;
    }
    MIXT_TRY(mixt__group_prepare(part));
    for (int i = 0; i < part->size; i++)
        part->peers[i] = whole->peers[part->members[i]];
    return MIXT_OK;
}

static mixt_status open_carrier(mixt__group *whole, const place *mine, mixt__group *part)
{
    if (!whole->transport) {
        part->own = (mixt_communicator){part->rank, part->size, part, exchange_through};
        return MIXT_OK;
    }
    MIXT_TRY(whole->transport->split(whole->transport, mine->colour, mine->key, &part->transport));
    mixt__group_watch(part);
    return MIXT_OK;
}

static mixt_status check(const mixt__group *g, int colour)
{
    if (colour < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a split has colour %d: it must be 0 or more", colour);
    if (g->transport && !g->transport->split)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "the transport %s cannot split groups", g->transport->name);
    return MIXT_OK;
}

mixt_status mixt__group_split(mixt__group *g, int colour, int key, mixt__group **part)
{
    place mine = {colour, key}, *places = mixt__alloc((size_t)g->size * sizeof *places);
    mixt__group *p = mixt__alloc(sizeof *p);
    *part = NULL;
    mixt_status status = places && p ? check(g, colour) : mixt__fail(MIXT_ERROR_MEMORY, "no memory to split a group");
    status = mixt__group_agree_soon(g, status);
    if (status == MIXT_OK)
        status = mixt__group_gather(g, &mine, sizeof mine, places, 1);
    if (status == MIXT_OK) {
        p->whole = g;
        p->timeout = g->timeout;
        status = mixt__group_agree_soon(g, find_members(g, places, p));
    }
    if (status == MIXT_OK)
        status = mixt__group_agree_soon(g, open_carrier(g, &mine, p));
    mixt__free(places);
    if (status != MIXT_OK) {
        if (p)
            p->broken = true; // nobody waits for it
        mixt__group_close(p);
        return status;
    }
    *part = p;
    return MIXT_OK;
}
