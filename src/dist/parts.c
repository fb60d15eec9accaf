/* What ranks own parts of: everyone's part to everyone, or to rank 0.
 *
 * Parts stand one after the other in the order of ranks: rank r's are the elements from cuts[r] to cuts[r + 1].
 */
#include "dist/group.h"

#include "base/status.h"
#include "base/threads.h"

#include <string.h>

enum { PIECE = 1 << 28 }; // bytes of a message at most: MPI counts them in an int

/** What rank `rank` has of piece number `piece` of its part, in bytes from the first of all. */
static mixt__range piece_of(const int64_t *cuts, size_t size, int rank, int64_t piece)
{
    int64_t begin = (cuts[rank] - cuts[0]) * (int64_t)size + piece * PIECE;
    int64_t end = (cuts[rank + 1] - cuts[0]) * (int64_t)size;
    begin = begin < end ? begin : end;
    return (mixt__range){begin, end - begin > PIECE ? begin + PIECE : end};
}

/** Pieces of the largest part. */
static int64_t count_pieces(const mixt__group *g, const int64_t *cuts, size_t size)
{
    int64_t most = 0;
    for (int rank = 0; rank < g->size; rank++)
        most = cuts[rank + 1] - cuts[rank] > most ? cuts[rank + 1] - cuts[rank] : most;
    return (most * (int64_t)size + PIECE - 1) / PIECE;
}

static mixt__message message(int peer, char *data, mixt__range range)
{
    return (mixt__message){peer, data + range.begin, (size_t)(range.end - range.begin)};
}

mixt_status mixt__group_gather_parts(mixt__group *g, void *data, const int64_t *cuts, size_t size)
{
    int64_t pieces = count_pieces(g, cuts, size);
    for (int64_t piece = 0; piece < pieces; piece++) {
        int messages = 0;
        for (int peer = 0; peer < g->size; peer++) {
            if (peer == g->rank)
                continue;
            g->out[messages] = message(peer, data, piece_of(cuts, size, g->rank, piece));
            g->in[messages++] = message(peer, data, piece_of(cuts, size, peer, piece));
        }
        MIXT_TRY(mixt__group_exchange(g, messages, messages, 1));
    }
    return MIXT_OK;
}

mixt_status mixt__group_collect_parts(mixt__group *g, const void *mine, void *all, const int64_t *cuts, size_t size)
{
    int64_t pieces = count_pieces(g, cuts, size);
    for (int64_t piece = 0; piece < pieces; piece++) {
        mixt__range own = piece_of(cuts, size, g->rank, piece);
        const char *from = (const char *)mine + piece * PIECE;
        int outs = 0, ins = 0;
        if (g->rank)
            g->out[outs++] = (mixt__message){0, (void *)(uintptr_t)from, (size_t)(own.end - own.begin)};
        else
            memcpy((char *)all + own.begin, from, (size_t)(own.end - own.begin));
        for (int peer = 1; peer < g->size && !g->rank; peer++)
            g->in[ins++] = message(peer, (char *)all, piece_of(cuts, size, peer, piece));
        MIXT_TRY(mixt__group_exchange(g, outs, ins, 1));
    }
    return MIXT_OK;
}
