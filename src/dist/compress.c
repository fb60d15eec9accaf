/* Compressed sums: how a parameter travels, what a rank has to send, whether it can be sent. */
#include "dist/compress.h"

#include "base/status.h"
#include "base/threads.h"
#include "num/num.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>
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
    static const char *const shares[] = {[MIXT_COMPRESS_TOPK] = "75%", [MIXT_COMPRESS_POWERSGD] = "50%"};
    char *end = NULL;
    errno = 0;
    *updates = 0;
    if (!strcmp(text, "auto") && how->kind == MIXT_COMPRESS_NONE)
        return MIXT_OK;
    if (!strcmp(text, "auto"))
        text = shares[how->kind];
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
    r.largest = room(&r, c, c->ranks * n->pieces, sizeof(float));
    r.left = room(&r, c, c->parts * (n->left + n->whole), sizeof(float));
    r.right = room(&r, c, c->parts * n->right, sizeof(float));
    r.right_sum = room(&r, c, n->right, sizeof(float));
    r.pairs = room(&r, c, c->ranks * n->pairs, sizeof *r.pairs);
    r.bins = room(&r, c, n->pairs ? MIXT_SELECT_CHUNKS * MIXT_SELECT_BINS : 0, sizeof *r.bins);
    if (c->parts < c->ranks)
        r.sum = room(&r, c, (int64_t)mixt__group_sum_bytes((int)c->ranks, bucket_of(c), MIXT_DTYPE_FP32), 1);
    return r;
}

void mixt__compress_sizes(const mixt__compressor *c, size_t sizes[MIXT_COMPRESS_BLOCKS])
{
    mixt__compressor empty = *c;
    empty.workspace = NULL;
    sizes[MIXT_COMPRESS_PIECES] = (size_t)c->counts.pieces * sizeof *c->pieces;
    sizes[MIXT_COMPRESS_FEEDBACK] = (size_t)(c->parts * c->total) * sizeof *c->feedback;
    sizes[MIXT_COMPRESS_FACTORS] = (size_t)c->counts.right * sizeof *c->factors;
    sizes[MIXT_COMPRESS_MOVED] = c->parts > 1 ? (size_t)(c->parts * c->total) * sizeof *c->moved : 0;
    sizes[MIXT_COMPRESS_WORKSPACE] = mixt__compress_rooms_of(&empty).bytes;
}

int64_t mixt__compress_sent(const mixt__compressor *c, int rank, bool whole)
{
    const mixt__compress_counts *n = &c->counts;
    int size = (int)c->ranks;
    if (whole)
        return (size - 1) * n->pieces * (int64_t)sizeof(float) +
               mixt__group_sum_sent(rank, size, c->total, bucket_of(c), MIXT_DTYPE_FP32);
    int64_t rows = n->pieces * (int64_t)sizeof(float) + n->pairs * (int64_t)sizeof(mixt__compress_pair);
    return (size - 1) * rows + mixt__group_sum_sent(rank, size, n->left + n->whole, bucket_of(c), MIXT_DTYPE_FP32) +
           mixt__group_sum_sent(rank, size, n->right, bucket_of(c), MIXT_DTYPE_FP32);
}

/* ---- between parts and ranks ---- */

float *mixt__compress_moved(const mixt__compressor *c, int64_t part, float *sum)
{
    return c->moved ? c->moved + part * c->total : sum;
}

mixt_status mixt__compress_add_ranks(const mixt__compressor *c, float *data, int64_t count)
{
    if (!c->group)
        return MIXT_OK;
    return mixt__group_sum(c->group, data, count, bucket_of(c), MIXT_DTYPE_FP32, mixt__compress_rooms_of(c).sum);
}

mixt_status mixt__compress_add_rows(const mixt__compressor *c, float *rows, int64_t count, int64_t stride)
{
    for (int64_t part = 1; part < c->parts; part++)
        mixt__sum_part(rows, rows + part * stride, count, MIXT_DTYPE_FP32, part, part + 1 == c->parts);
    return mixt__compress_add_ranks(c, rows, count);
}

mixt_status mixt__compress_share_rows(const mixt__compressor *c, void *rows, size_t bytes)
{
    mixt__group *g = c->group;
    int count = 0;
    if (!g || !bytes)
        return MIXT_OK;
    for (int peer = 0; peer < g->size; peer++) {
        if (peer == g->rank)
            continue;
        g->out[count] = (mixt__message){peer, (char *)rows + (size_t)g->rank * bytes, bytes};
        g->in[count++] = (mixt__message){peer, (char *)rows + (size_t)peer * bytes, bytes};
    }
    return mixt__group_exchange(g, count, count, 1);
}

/* ---- what a rank has to send ---- */

typedef struct moving {
    const float *grad, *feedback;
    float *moved, scale;
    _Atomic uint32_t largest; // bits: those of magnitudes are in the order of the numbers, of NaN behind
} moving;

static void move(void *argument, int64_t begin, int64_t end, int thread)
{
    moving *m = argument;
    uint32_t largest = 0;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        m->moved[i] = m->grad[i] + m->scale * m->feedback[i];
        uint32_t bits = mixt__fp32_bits(m->moved[i]) & 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    uint32_t before = atomic_load(&m->largest);
    while (before < largest && !atomic_compare_exchange_weak(&m->largest, &before, largest))
        ;
}

void mixt__compress_part(mixt__compressor *c, int64_t part, float *grad, float scale)
{
    enum { GRAIN = 4096 };
    double start = mixt__time_now();
    float *largest = mixt__compress_rooms_of(c).largest + (c->group ? c->group->rank : part) * c->counts.pieces;
    for (int64_t i = 0; i < c->counts.pieces; i++) {
        const mixt__compress_piece *p = &c->pieces[i];
        moving m = {.grad = grad + p->offset, .scale = scale};
        m.feedback = c->feedback + part * c->total + p->offset;
        m.moved = mixt__compress_moved(c, part, grad) + p->offset;
        mixt__parallel(p->rows * p->columns, GRAIN, move, &m);
        uint32_t bits = atomic_load(&m.largest);
        memcpy(&largest[i], &bits, sizeof bits);
    }
    c->seconds += mixt__time_now() - start;
}

/** Whether all ranks together can send piece number `index`: neither a number of theirs, nor a norm, which bounds every
 *  number that is computed of them, is too large for FP32. */
static bool is_finite(const mixt__compressor *c, const float *largest, int64_t index)
{
    const mixt__compress_piece *p = &c->pieces[index];
    double norms = 0;
    for (int64_t rank = 0; rank < c->ranks; rank++)
        norms += (double)largest[rank * c->counts.pieces + index];
    return norms * sqrt((double)(p->rows * p->columns)) < (double)FLT_MAX; // false of NaN
}

/** All ranks find an overflow, in these pieces. */
static void overflow(const mixt__compressor *c, const float *largest, float *sum)
{
    memset(sum, 0, (size_t)c->total * sizeof *sum);
    for (int64_t i = 0; i < c->counts.pieces; i++)
        if (!is_finite(c, largest, i))
            sum[c->pieces[i].offset] = NAN;
}

/** The sum of all that parts have: they keep nothing. */
static mixt_status sum_whole(mixt__compressor *c, float *sum)
{
    for (int64_t i = 0; i < c->counts.pieces && c->moved; i++) { // between them there is nothing
        const mixt__compress_piece *p = &c->pieces[i];
        for (int64_t part = 0; part < c->parts; part++)
            mixt__sum_part(sum + p->offset, c->moved + part * c->total + p->offset, p->rows * p->columns,
                           MIXT_DTYPE_FP32, part, part + 1 == c->parts);
    }
    MIXT_TRY(mixt__compress_add_ranks(c, sum, c->total));
    mixt__parallel_zero(c->feedback, (size_t)(c->parts * c->total) * sizeof *c->feedback);
    return MIXT_OK;
}

mixt_status mixt__compress_sum(mixt__compressor *c, float *sum, float scale, bool whole)
{
    double start = mixt__time_now();
    float *largest = mixt__compress_rooms_of(c).largest;
    bool finite = true;
    MIXT_TRY(mixt__compress_share_rows(c, largest, (size_t)c->counts.pieces * sizeof *largest));
    for (int64_t i = 0; i < c->counts.pieces; i++)
        finite = finite && is_finite(c, largest, i);
    mixt_status status = MIXT_OK;
    if (!finite)
        overflow(c, largest, sum);
    else if (whole)
        status = sum_whole(c, sum);
    else if (c->how.kind == MIXT_COMPRESS_TOPK)
        status = mixt__compress_topk(c, sum, scale);
    else
        status = mixt__compress_powersgd(c, sum, scale);
    c->seconds += mixt__time_now() - start;
    return status;
}
