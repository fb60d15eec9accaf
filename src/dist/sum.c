/* Sums over ranks.
 *
 * A bucket is cut into one slice a rank. Each rank receives its own slice of all others, adds them in the order of
 * ranks, and sends the sum to all: as many bytes as a ring moves, in two rounds, and an order of additions that does
 * not depend on where a slice begins.
 */
#include "dist/group.h"

#include "base/threads.h"
#include "num/num.h"

#include <string.h>

enum { GRAIN = 16 }; // elements: slices begin at multiples of it

static mixt__range slice_of(int64_t count, int rank, int size)
{
    return mixt__range_part(count, GRAIN, rank, size);
}

static size_t element(mixt_dtype format)
{
    return mixt_dtype_size(format);
}

static int64_t slice_room(int size, int64_t bucket)
{
    return (bucket / size / GRAIN + 2) * GRAIN;
}

/** Rooms: everyone's numbers of the own slice; of 16-bit formats the bucket as it travels and the sum too. */
size_t mixt__group_sum_bytes(int size, int64_t bucket, mixt_dtype format)
{
    size_t slices = (size_t)(size * slice_room(size, bucket)) * element(format);
    if (format == MIXT_DTYPE_FP32)
        return slices;
    return slices + (size_t)((bucket + GRAIN) * (int64_t)element(format)) +
           (size_t)slice_room(size, bucket) * sizeof(float);
}

int64_t mixt__group_sum_sent(int rank, int size, int64_t count, int64_t bucket, mixt_dtype format)
{
    int64_t sent = 0;
    for (int64_t begin = 0; begin < count; begin += bucket) {
        int64_t here = count - begin < bucket ? count - begin : bucket;
        mixt__range own = slice_of(here, rank, size);
        sent += here - (own.end - own.begin) + (size - 1) * (own.end - own.begin);
    }
    return sent * (int64_t)element(format);
}

static void add(float *restrict sum, const float *restrict part, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += part[i];
}

/** sum = part, or sum += part, the part as it travels. */
static void add_travelled(float *sum, const void *part, int64_t count, mixt_dtype format, bool first)
{
    enum { TILE = 1024 };
    float tile[TILE];
    for (int64_t i = 0; i < count; i += TILE) {
        int64_t n = count - i < TILE ? count - i : TILE;
        const char *from = (const char *)part + (size_t)i * element(format);
        if (first) {
            mixt__widen(format)(sum + i, from, n);
            continue;
        }
        mixt__widen(format)(tile, from, n);
        add(sum + i, tile, n);
    }
}

void mixt__sum_part(float *sum, const float *part, int64_t count, mixt_dtype format, int64_t index, bool last)
{
    enum { TILE = 1024 };
    uint16_t low[TILE];
    for (int64_t i = 0; i < count; i += TILE) {
        int64_t n = count - i < TILE ? count - i : TILE;
        if (format == MIXT_DTYPE_FP32 && !index)
            memcpy(sum + i, part + i, (size_t)n * sizeof *sum);
        else if (format == MIXT_DTYPE_FP32)
            add(sum + i, part + i, n);
        if (format == MIXT_DTYPE_FP32)
            continue;
        mixt__narrow(format)(low, part + i, n);
        add_travelled(sum + i, low, n, format, !index);
        if (!last)
            continue;
        mixt__narrow(format)(low, sum + i, n);
        mixt__widen(format)(sum + i, low, n);
    }
}

/** One bucket under way. */
typedef struct bucket {
    mixt__group *g;
    float *data;
    int64_t count, room;
    mixt_dtype format;
    char *slices; // (size, room) what the others have of the own slice
    char *low;    // the bucket as it travels; FP32: data itself
    float *sum;   // of the own slice; FP32: made among the slices
} bucket;

static void post_slices(bucket *b, bool back)
{
    mixt__group *g = b->g;
    mixt__range own = slice_of(b->count, g->rank, g->size);
    size_t size = element(b->format);
    int count = 0;
    for (int peer = 0; peer < g->size; peer++) {
        if (peer == g->rank)
            continue;
        mixt__range theirs = slice_of(b->count, peer, g->size), out = back ? own : theirs, in = back ? theirs : own;
        char *to = back ? b->low + (size_t)in.begin * size : b->slices + (size_t)(peer * b->room) * size;
        g->out[count] = (mixt__message){peer, b->low + (size_t)out.begin * size, (size_t)(out.end - out.begin) * size};
        g->in[count++] = (mixt__message){peer, to, (size_t)(in.end - in.begin) * size};
    }
}

/** The own slice of all ranks, in their order, into `low`. */
static void add_slices(bucket *b)
{
    mixt__range own = slice_of(b->count, b->g->rank, b->g->size);
    int64_t count = own.end - own.begin;
    size_t size = element(b->format);
    char *mine = b->low + (size_t)own.begin * size;
    for (int rank = 0; rank < b->g->size; rank++) {
        const void *part = rank == b->g->rank ? mine : b->slices + (size_t)(rank * b->room) * size;
        if (b->format != MIXT_DTYPE_FP32)
            add_travelled(b->sum, part, count, b->format, rank == 0);
        else if (rank == 0)
            memcpy(b->sum, part, (size_t)count * sizeof(float));
        else
            add(b->sum, part, count);
    }
    if (b->format == MIXT_DTYPE_FP32)
        memcpy(mine, b->sum, (size_t)count * sizeof(float));
    else
        mixt__narrow(b->format)(mine, b->sum, count);
}

static mixt_status sum_bucket(bucket *b)
{
    int others = b->g->size - 1;
    if (b->format != MIXT_DTYPE_FP32)
        mixt__narrow(b->format)(b->low, b->data, b->count);
    post_slices(b, false);
    mixt_status status = mixt__group_exchange(b->g, others, others, 1);
    if (status != MIXT_OK)
        return status;
    add_slices(b);
    post_slices(b, true);
    status = mixt__group_exchange(b->g, others, others, 1);
    if (status == MIXT_OK && b->format != MIXT_DTYPE_FP32)
        mixt__widen(b->format)(b->data, b->low, b->count);
    return status;
}

mixt_status mixt__group_sum(mixt__group *g, float *data, int64_t count, int64_t most, mixt_dtype format,
                            void *workspace)
{
    bucket b = {.g = g, .format = format, .room = slice_room(g->size, most), .slices = workspace};
    size_t slices = (size_t)(g->size * b.room) * element(format);
    mixt_status status = MIXT_OK;
    for (int64_t begin = 0; begin < count && status == MIXT_OK; begin += most) {
        b.data = data + begin;
        b.count = count - begin < most ? count - begin : most;
        if (format == MIXT_DTYPE_FP32) {
            b.low = (char *)b.data;
            b.sum = (float *)(void *)(b.slices + (size_t)(g->rank * b.room) * sizeof(float)); // the own room is free
        } else {
            b.sum = (float *)(void *)(b.slices + slices);
            b.low = (char *)(b.sum + b.room);
        }
        status = sum_bucket(&b);
    }
    return status;
}

/* ---- shares ---- */

enum { PIECE = 1 << 26 }; // elements of a message at most: MPI counts bytes in an int

/** What rank `rank` has of piece number `piece` of its share. */
static mixt__range piece_of(int64_t count, int64_t room, int rank, int64_t piece)
{
    int64_t end = (rank + 1) * room < count ? (rank + 1) * room : count, begin = rank * room + piece * PIECE;
    begin = begin < end ? begin : end;
    return (mixt__range){begin, begin + PIECE < end ? begin + PIECE : end};
}

mixt_status mixt__group_gather_shards(mixt__group *g, float *data, int64_t count, int64_t room)
{
    mixt_status status = MIXT_OK;
    for (int64_t piece = 0; piece * PIECE < room && status == MIXT_OK; piece++) {
        mixt__range own = piece_of(count, room, g->rank, piece);
        int messages = 0;
        for (int peer = 0; peer < g->size; peer++) {
            mixt__range theirs = piece_of(count, room, peer, piece);
            if (peer == g->rank)
                continue;
            g->out[messages] = (mixt__message){peer, data + own.begin, (size_t)(own.end - own.begin) * sizeof *data};
            g->in[messages++] =
                (mixt__message){peer, data + theirs.begin, (size_t)(theirs.end - theirs.begin) * sizeof *data};
        }
        status = mixt__group_exchange(g, messages, messages, 1);
    }
    return status;
}

mixt_status mixt__group_collect_shards(mixt__group *g, const float *mine, float *all, int64_t count, int64_t room)
{
    enum { PATIENCE = 10 }; // rank 0 may still be writing what it collected before
    mixt_status status = MIXT_OK;
    for (int64_t piece = 0; piece * PIECE < room && status == MIXT_OK; piece++) {
        mixt__range own = piece_of(count, room, g->rank, piece);
        const float *from = mine + (own.begin - g->rank * room);
        int outs = 0, ins = 0;
        if (g->rank)
            g->out[outs++] = (mixt__message){0, (void *)(uintptr_t)from, (size_t)(own.end - own.begin) * sizeof *mine};
        else
            memcpy(all + own.begin, from, (size_t)(own.end - own.begin) * sizeof *mine);
        for (int peer = 1; peer < g->size && !g->rank; peer++) {
            mixt__range theirs = piece_of(count, room, peer, piece);
            g->in[ins++] = (mixt__message){peer, all + theirs.begin, (size_t)(theirs.end - theirs.begin) * sizeof *all};
        }
        status = mixt__group_exchange(g, outs, ins, PATIENCE);
    }
    return status;
}
