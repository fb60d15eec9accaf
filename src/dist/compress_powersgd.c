/* PowerSGD: each matrix as a product of two thin ones, found by one step of subspace iteration an exchange.
 *
 * Factors are stored transposed, (rank, rows) and (rank, columns). Sums run in FP64 along a fixed order of their own
 * for every element, whatever the number of threads.
 */
#include "dist/compress.h"

#include "base/rng.h"
#include "base/status.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

enum {
    TILE = 256,  // columns that are worked on at once
    TOGETHER = 4 // rows of a factor that one look at a matrix serves
};

/** One matrix and its factors. */
typedef struct product {
    float *rest;              // (rows, columns) what this rank has to send, then what it has not sent
    const float *q;           // (rank, columns)
    float *left;              // (rank, rows)
    float *right;             // (rank, columns) of this rank
    const float *right_total; // (rank, columns) of all ranks
    float *common;            // (rows, columns)
    int64_t rank, rows, columns, ranks;
} product;

static double dot(const float *a, const float *b, int64_t count)
{
    enum { LANES = 8 };
    double lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += (double)a[i + k] * (double)b[i + k];
    for (; i < count; i++)
        lane[0] += (double)a[i] * (double)b[i];
    for (int k = 0; k < LANES; k++)
        sum += lane[k];
    return sum;
}

/* ---- factors ---- */

/** A row of length 1; one of zeros stays. */
static void normalise(float *row, int64_t count)
{
    double length = sqrt(dot(row, row, count));
    for (int64_t i = 0; i < count && length > 0; i++)
        row[i] = (float)((double)row[i] / length);
}

/** Rows that have no direction yet get a random one, the same on all ranks. */
static void give_directions(mixt__compressor *c)
{
    for (int64_t i = 0; i < c->counts.pieces; i++) {
        const mixt__compress_piece *p = &c->pieces[i];
        for (int64_t k = 0; k < c->how.rank && !p->whole; k++) {
            float *row = c->factors + p->right + k * p->columns;
            if (dot(row, row, p->columns) > 0)
                continue;
            mixt__rng rng = mixt__rng_start(mixt__rng_key(0, (uint64_t)i, (uint64_t)k));
            for (int64_t j = 0; j < p->columns; j++)
                row[j] = mixt__rng_normal(&rng);
            normalise(row, p->columns);
        }
    }
}

/** Rows at right angles and of length 1, by Gram and Schmidt, twice for the digits that the first time loses. One that
 *  lies in the span of those before it becomes zero. */
static void make_orthonormal(float *rows, int64_t rank, int64_t count)
{
    for (int64_t k = 0; k < rank; k++) {
        float *row = rows + k * count;
        double before = sqrt(dot(row, row, count));
        for (int64_t i = 0; i < 2 * k; i++) {
            const float *other = rows + i % k * count;
            double along = dot(row, other, count);
            for (int64_t j = 0; j < count; j++)
                row[j] = (float)((double)row[j] - along * (double)other[j]);
        }
        if (sqrt(dot(row, row, count)) <= 1e-6 * before)
            memset(row, 0, (size_t)count * sizeof *row);
        normalise(row, count);
    }
}

/* ---- products ---- */

/** left = d·q of some rows. */
static void multiply_left(void *argument, int64_t begin, int64_t end, int thread)
{
    const product *p = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = 0; k < p->rank; k++)
            p->left[k * p->rows + i] = (float)dot(p->rest + i * p->columns, p->q + k * p->columns, p->columns);
}

/** Some rows of right = dᵀ·left, of one tile of columns. */
static void multiply_tile(const product *p, int64_t begin, int64_t width, int64_t first, int64_t several)
{
    double sums[TOGETHER][TILE] = {{0}};
    for (int64_t i = 0; i < p->rows; i++) {
        const float *row = p->rest + i * p->columns + begin;
        for (int64_t k = 0; k < several; k++) {
            double factor = (double)p->left[(first + k) * p->rows + i];
            for (int64_t j = 0; j < width; j++)
                sums[k][j] += factor * (double)row[j];
        }
    }
    for (int64_t k = 0; k < several; k++)
        for (int64_t j = 0; j < width; j++)
            p->right[(first + k) * p->columns + begin + j] = (float)sums[k][j];
}

static void multiply_right(void *argument, int64_t begin, int64_t end, int thread)
{
    const product *p = argument;
    (void)thread;
    for (int64_t at = begin; at < end; at += TILE)
        for (int64_t first = 0; first < p->rank; first += TOGETHER) {
            int64_t several = p->rank - first;
            multiply_tile(p, at, end - at < TILE ? end - at : TILE, first, several < TOGETHER ? several : TOGETHER);
        }
}

/** to = left·right of a part of one row. */
static void expand(const product *p, const float *right, int64_t row, int64_t begin, int64_t width, double *to)
{
    memset(to, 0, (size_t)width * sizeof *to);
    for (int64_t k = 0; k < p->rank; k++) {
        double factor = (double)p->left[k * p->rows + row];
        for (int64_t j = 0; j < width; j++)
            to[j] += factor * (double)right[k * p->columns + begin + j];
    }
}

/** Of some rows: what all ranks send leaves the common weights, what this one sends leaves its own rest. */
static void take(void *argument, int64_t begin, int64_t end, int thread)
{
    const product *p = argument;
    double sent[TILE], all[TILE];
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        for (int64_t at = 0; at < p->columns; at += TILE) {
            int64_t width = p->columns - at < TILE ? p->columns - at : TILE, here = i * p->columns + at;
            expand(p, p->right, i, at, width, sent);
            expand(p, p->right_total, i, at, width, all);
            for (int64_t j = 0; j < width; j++) {
                p->rest[here + j] = (float)((double)p->rest[here + j] - sent[j]);
                p->common[here + j] = (float)((double)p->common[here + j] - all[j] / (double)p->ranks);
            }
        }
}

/* ---- the exchange ---- */

static product product_of(const mixt__compressor *c, const mixt__compress_rooms *rooms, int64_t index, float *rest)
{
    const mixt__compress_piece *piece = &c->pieces[index];
    product p = {.rank = c->how.rank, .rows = piece->rows, .columns = piece->columns, .ranks = c->ranks};
    p.rest = rest + piece->offset;
    p.q = c->factors + piece->right;
    p.left = rooms->left + piece->at;
    p.right = rooms->right + piece->right;
    p.right_total = rooms->right_sum + piece->right;
    return p;
}

/** Left factors, and behind them what travels whole. */
static void fill_left(const mixt__compressor *c, const mixt__compress_rooms *rooms, float *rest)
{
    for (int64_t i = 0; i < c->counts.pieces; i++) {
        const mixt__compress_piece *piece = &c->pieces[i];
        product p = product_of(c, rooms, i, rest);
        if (piece->whole)
            memcpy(rooms->left + c->counts.left + piece->at, p.rest, (size_t)(p.rows * p.columns) * sizeof *p.rest);
        else
            mixt__parallel(p.rows, 1, multiply_left, &p);
    }
}

/** This rank's right factors from the left one of all. */
static void fill_right(const mixt__compressor *c, const mixt__compress_rooms *rooms, float *rest)
{
    for (int64_t i = 0; i < c->counts.pieces; i++) {
        if (c->pieces[i].whole)
            continue;
        make_orthonormal(rooms->left + c->pieces[i].at, c->how.rank, c->pieces[i].rows);
        product p = product_of(c, rooms, i, rest);
        mixt__parallel(p.columns, TILE, multiply_right, &p);
    }
    memcpy(rooms->right_sum, rooms->right, (size_t)c->counts.right * sizeof *rooms->right);
}

static void finish_piece(mixt__compressor *c, const mixt__compress_rooms *rooms, int64_t index, float *rest,
                         float *common)
{
    const mixt__compress_piece *piece = &c->pieces[index];
    if (piece->whole) {
        mixt__compress_take_whole(c, piece, rooms->left + c->counts.left + piece->at, rest, common);
        return;
    }
    product p = product_of(c, rooms, index, rest);
    p.common = common + piece->offset;
    mixt__parallel(p.rows, 1, take, &p);
    float *q = c->factors + piece->right;
    memcpy(q, p.right_total, (size_t)(c->how.rank * p.columns) * sizeof *q);
    for (int64_t k = 0; k < c->how.rank; k++)
        normalise(q + k * p.columns, p.columns);
}

mixt_status mixt__compress_powersgd(mixt__compressor *c, float *rest, float *common)
{
    const mixt__compress_rooms rooms = mixt__compress_rooms_of(c);
    const mixt__compress_counts *n = &c->counts;
    give_directions(c);
    fill_left(c, &rooms, rest);
    MIXT_TRY(mixt__compress_add_ranks(c, rooms.left, n->left + n->whole));
    fill_right(c, &rooms, rest);
    MIXT_TRY(mixt__compress_add_ranks(c, rooms.right_sum, n->right));
    for (int64_t i = 0; i < n->pieces; i++)
        finish_piece(c, &rooms, i, rest, common);
    return MIXT_OK;
}
