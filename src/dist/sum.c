/* Sums over ranks.
 *
 * A bucket is cut into one slice a rank. Each rank receives its own slice of all others, adds them in the order of
 * ranks, and sends the sum to all: as many bytes as a ring moves, in two rounds, and an order of additions that does
 * not depend on where a slice begins. Where a rank alone needs the sum of its slice, the second round is left out.
 */
#include "dist/group.h"

#include "base/status.h"
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
    const mixt__range *slices_of; // by rank, in `data`
    mixt_dtype format;
    bool packed;  // in `low` the slices stand `room` apart, else as in `data`
    char *slices; // (size, room) what the others have of the own slice
    char *low;    // the bucket as it travels; FP32: data itself
    float *sum;   // of the own slice; FP32: made among the slices
} bucket;

static int64_t slice_count(const bucket *b, int rank)
{
    return b->slices_of[rank].end - b->slices_of[rank].begin;
}

/** A rank's slice as it travels. */
static char *travelling(const bucket *b, int rank)
{
    int64_t at = b->packed ? rank * b->room : b->slices_of[rank].begin;
    return b->low + (size_t)at * element(b->format);
}

static void post_slices(bucket *b, bool back)
{
    mixt__group *g = b->g;
    size_t size = element(b->format);
    int count = 0;
    for (int peer = 0; peer < g->size; peer++) {
        if (peer == g->rank)
            continue;
        int out = back ? g->rank : peer, in = back ? peer : g->rank;
        char *to = back ? travelling(b, peer) : b->slices + (size_t)(peer * b->room) * size;
        g->out[count] = (mixt__message){peer, travelling(b, out), (size_t)slice_count(b, out) * size};
        g->in[count++] = (mixt__message){peer, to, (size_t)slice_count(b, in) * size};
    }
}

/** The own slice of all ranks, in their order, into `low`. */
static void add_slices(bucket *b)
{
    int64_t count = slice_count(b, b->g->rank);
    size_t size = element(b->format);
    char *mine = travelling(b, b->g->rank);
    for (int rank = 0; rank < b->g->size; rank++) {
        const void *part = rank == b->g->rank ? mine : b->slices + (size_t)(rank * b->room) * size;
        if (b->format != MIXT_DTYPE_FP32)
            add_travelled(b->sum, part, count, b->format, rank == 0);
        else if (rank == 0)
            memcpy(b->sum, part, (size_t)count * sizeof(float));
        else
            add(b->sum, part, count);
    }
    if (b->format != MIXT_DTYPE_FP32)
        mixt__narrow(b->format)(mine, b->sum, count);
}

/** Everyone's own slice to its owner, who adds. */
static mixt_status first_round(bucket *b)
{
    int others = b->g->size - 1;
    post_slices(b, false);
    MIXT_TRY(mixt__group_exchange(b->g, others, others, 1));
    add_slices(b);
    return MIXT_OK;
}

static mixt_status sum_bucket(bucket *b)
{
    int others = b->g->size - 1;
    if (b->format != MIXT_DTYPE_FP32)
        mixt__narrow(b->format)(b->low, b->data, b->count);
    MIXT_TRY(first_round(b));
    if (b->format == MIXT_DTYPE_FP32)
        memcpy(travelling(b, b->g->rank), b->sum, (size_t)slice_count(b, b->g->rank) * sizeof(float));
    post_slices(b, true);
    MIXT_TRY(mixt__group_exchange(b->g, others, others, 1));
    if (b->format != MIXT_DTYPE_FP32)
        mixt__widen(b->format)(b->data, b->low, b->count);
    return MIXT_OK;
}

/** Where sums and what travels stand in the workspace. */
static void use_workspace(bucket *b, char *workspace)
{
    b->slices = workspace;
    if (b->format == MIXT_DTYPE_FP32) {
        b->low = (char *)b->data;
        b->sum = (float *)(void *)(workspace + (size_t)(b->g->rank * b->room) * sizeof(float)); // the own room is free
    } else {
        b->sum = (float *)(void *)(workspace + (size_t)(b->g->size * b->room) * element(b->format));
        b->low = (char *)(b->sum + b->room);
    }
}

mixt_status mixt__group_sum(mixt__group *g, float *data, int64_t count, int64_t most, mixt_dtype format,
                            void *workspace)
{
    bucket b = {.g = g, .format = format, .room = slice_room(g->size, most), .slices_of = g->ranges};
    mixt_status status = MIXT_OK;
    for (int64_t begin = 0; begin < count && status == MIXT_OK; begin += most) {
        b.data = data + begin;
        b.count = count - begin < most ? count - begin : most;
        for (int rank = 0; rank < g->size; rank++)
            g->ranges[rank] = slice_of(b.count, rank, g->size);
        use_workspace(&b, workspace);
        status = sum_bucket(&b);
    }
    return status;
}

/* ---- sums that their owners keep ---- */

size_t mixt__group_reduce_bytes(int size, int64_t bucket, mixt_dtype format)
{
    size_t room = (size_t)slice_room(size, bucket), slices = (size_t)size * room * element(format);
    return format == MIXT_DTYPE_FP32 ? slices : 2 * slices + room * sizeof(float);
}

/** The next `room` elements of every rank's slice; false: there are none any more. */
static bool next_slices(bucket *b, const int64_t *cuts, int64_t done)
{
    bool any = false;
    for (int rank = 0; rank < b->g->size; rank++) {
        int64_t begin = cuts[rank] - cuts[0] + done, end = cuts[rank + 1] - cuts[0];
        begin = begin < end ? begin : end;
        b->g->ranges[rank] = (mixt__range){begin, begin + b->room < end ? begin + b->room : end};
        any = any || begin < end;
    }
    return any;
}

mixt_status mixt__group_reduce(mixt__group *g, float *data, const int64_t *cuts, int64_t most, mixt_dtype format,
                               void *workspace, float *mine)
{
    bucket b = {.g = g, .data = data, .format = format, .room = slice_room(g->size, most), .slices_of = g->ranges};
    b.packed = format != MIXT_DTYPE_FP32;
    use_workspace(&b, workspace);
    for (int64_t done = 0; next_slices(&b, cuts, done); done += b.room) {
        for (int rank = 0; b.packed && rank < g->size; rank++)
            mixt__narrow(format)(travelling(&b, rank), data + g->ranges[rank].begin, slice_count(&b, rank));
        MIXT_TRY(first_round(&b));
        int64_t count = slice_count(&b, g->rank);
        if (!b.packed)
            memcpy(mine + done, b.sum, (size_t)count * sizeof *mine);
        else
            mixt__widen(format)(mine + done, travelling(&b, g->rank), count);
    }
    return MIXT_OK;
}
