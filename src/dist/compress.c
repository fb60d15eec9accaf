/* Compressed exchanges: how a parameter travels, what an exchange takes and sends. */
#include "dist/compress.h"

#include "base/status.h"
#include "base/threads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what travels how ---- */

mixt_status mixt__compression_parse(const char *text, mixt__compression *how)
{
    const char *colon = strchr(text, ':');
    char *end = NULL;
    *how = (mixt__compression){.kind = MIXT_COMPRESS_NONE};
    if (!strcmp(text, "none"))
        return MIXT_OK;
    double number = colon && colon[1] >= '0' && colon[1] <= '9' ? strtod(colon + 1, &end) : -1;
    if (end && !strncmp(text, "topk:", 5) && !strcmp(end, "%") && number > 0 && number <= 100) {
        *how = (mixt__compression){.kind = MIXT_COMPRESS_TOPK, .percent = number};
        return MIXT_OK;
    }
    if (end && !strncmp(text, "powersgd:", 9) && !*end && number >= 1 && number <= MIXT_COMPRESS_RANK_MAX &&
        number == floor(number)) {
        *how = (mixt__compression){.kind = MIXT_COMPRESS_POWERSGD, .rank = (int64_t)number};
        return MIXT_OK;
    }
    return mixt__fail(MIXT_ERROR_CONFIG,
                      "dist.compress '%s': expected none, topk:1%% (the share of the elements that is sent) or "
                      "powersgd:4 (the rank of what is sent, 1 to %d)",
                      text, MIXT_COMPRESS_RANK_MAX);
}

mixt_status mixt__compress_after_parse(const char *text, const mixt__compression *how, int64_t total, int64_t *updates)
{
    char *end = NULL;
    errno = 0;
    *updates = 0;
    if (!strcmp(text, "auto") && how->kind == MIXT_COMPRESS_NONE)
        return MIXT_OK;
    if (!strcmp(text, "auto"))
        text = "10%"; // kept a small language model within 1% of its loss
    double number = *text >= '0' && *text <= '9' ? strtod(text, &end) : -1;
    bool share = end && !strcmp(end, "%") && number <= 100, count = end && !*end && number == floor(number);
    if (errno || (!share && !count) || number > 1e15)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "dist.compress_after '%s': expected a number of updates, as in 500, or a share of the run's, "
                          "as in 30%%, or auto",
                          text);
    if (share && (double)total > 1e15)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "dist.compress_after '%s' of a run without an end: give a number of updates, as in 500",
                          text);
    *updates = (int64_t)(share ? ceil(number * (double)total / 100) : number);
    return MIXT_OK;
}

mixt__compress_piece mixt__compress_add(const mixt__compression *how, mixt__compress_counts *counts, int64_t offset,
                                        int64_t rows, int64_t columns)
{
    mixt__compress_piece piece = {.offset = offset, .rows = rows, .columns = columns, .whole = rows < 2};
    int64_t count = rows * columns, left = how->rank * rows, right = how->rank * columns;
    counts->pieces++;
    if (how->kind == MIXT_COMPRESS_TOPK) {
        piece.kept = (int64_t)ceil(how->percent * (double)count / 100);
        size_t sent = (size_t)piece.kept * sizeof(mixt__compress_pair);
        piece.whole = piece.whole || sent >= (size_t)count * sizeof(float) || count > UINT32_MAX;
    } else {
        piece.whole = piece.whole || left + right >= count;
    }
    if (piece.whole) {
        piece.at = counts->whole;
        counts->whole += count;
    } else if (how->kind == MIXT_COMPRESS_TOPK) {
        piece.at = counts->pairs;
        counts->pairs += piece.kept;
    } else {
        piece.at = counts->left;
        piece.right = counts->right;
        counts->left += left;
        counts->right += right;
    }
    return piece;
}

/* ---- memory ---- */

/** The largest message of a sum, in elements: of one of all that there is, too. */
static int64_t bucket_of(const mixt__compressor *c)
{
    return c->bucket < c->total ? c->bucket : c->total > 0 ? c->total : 1;
}

static void *room(mixt__compress_rooms *rooms, const mixt__compressor *c, int64_t count, size_t size)
{
    enum { LINE = 64 };
    char *at = c->workspace ? (char *)c->workspace + rooms->bytes : NULL;
    rooms->bytes += ((size_t)count * size + LINE - 1) / LINE * LINE;
    return at;
}

mixt__compress_rooms mixt__compress_rooms_of(const mixt__compressor *c)
{
    const mixt__compress_counts *n = &c->counts;
    mixt__compress_rooms r = {.bytes = 0};
    r.left = room(&r, c, n->left + n->whole, sizeof(float));
    r.right = room(&r, c, n->right, sizeof(float));
    r.right_sum = room(&r, c, n->right, sizeof(float));
    r.pairs = room(&r, c, c->ranks * n->pairs, sizeof *r.pairs);
    r.bins = room(&r, c, n->pairs ? MIXT_SELECT_CHUNKS * MIXT_SELECT_BINS : 0, sizeof *r.bins);
    r.sum = room(&r, c, (int64_t)mixt__group_sum_bytes((int)c->ranks, bucket_of(c), MIXT_DTYPE_FP32), 1);
    return r;
}

void mixt__compress_sizes(const mixt__compressor *c, size_t sizes[MIXT_COMPRESS_BLOCKS])
{
    mixt__compressor empty = *c;
    empty.workspace = NULL;
    sizes[MIXT_COMPRESS_PIECES] = (size_t)c->counts.pieces * sizeof *c->pieces;
    sizes[MIXT_COMPRESS_FACTORS] = (size_t)c->counts.right * sizeof *c->factors;
    sizes[MIXT_COMPRESS_WORKSPACE] = mixt__compress_rooms_of(&empty).bytes;
}

int64_t mixt__compress_sent(const mixt__compressor *c, int rank, bool whole)
{
    const mixt__compress_counts *n = &c->counts;
    int size = (int)c->ranks;
    if (whole)
        return mixt__group_sum_sent(rank, size, c->total, bucket_of(c), MIXT_DTYPE_FP32);
    return (size - 1) * n->pairs * (int64_t)sizeof(mixt__compress_pair) +
           mixt__group_sum_sent(rank, size, n->left + n->whole, bucket_of(c), MIXT_DTYPE_FP32) +
           mixt__group_sum_sent(rank, size, n->right, bucket_of(c), MIXT_DTYPE_FP32);
}

/* ---- an exchange ---- */

mixt_status mixt__compress_add_ranks(const mixt__compressor *c, float *data, int64_t count)
{
    if (!c->group)
        return MIXT_OK;
    return mixt__group_sum(c->group, data, count, bucket_of(c), MIXT_DTYPE_FP32, mixt__compress_rooms_of(c).sum);
}

typedef struct leaving {
    const float *sum;
    float *common, ranks;
} leaving;

static void leave_common(void *argument, int64_t begin, int64_t end, int thread)
{
    const leaving *l = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        l->common[i] -= l->sum[i] / l->ranks;
}

void mixt__compress_take_whole(const mixt__compressor *c, const mixt__compress_piece *p, const float *sum, float *rest,
                               float *common)
{
    enum { GRAIN = 4096 };
    int64_t count = p->rows * p->columns;
    leaving l = {sum, common + p->offset, (float)c->ranks};
    mixt__parallel(count, GRAIN, leave_common, &l);
    mixt__parallel_zero(rest + p->offset, (size_t)count * sizeof *rest);
}

static mixt_status exchange_whole(mixt__compressor *c, float *rest, float *common)
{
    MIXT_TRY(mixt__compress_add_ranks(c, rest, c->total));
    for (int64_t i = 0; i < c->counts.pieces; i++)
        mixt__compress_take_whole(c, &c->pieces[i], rest + c->pieces[i].offset, rest, common);
    return MIXT_OK;
}

mixt_status mixt__compress_exchange(mixt__compressor *c, float *rest, float *common, bool whole)
{
    double start = mixt__time_now();
    mixt_status status = whole                               ? exchange_whole(c, rest, common)
                         : c->how.kind == MIXT_COMPRESS_TOPK ? mixt__compress_topk(c, rest, common)
                                                             : mixt__compress_powersgd(c, rest, common);
    c->seconds += mixt__time_now() - start;
    return status;
}
