/* Differences of ranks' weights to those that all have in common, of which only a part travels at a time.
 *
 * All ranks have the common weights x. A rank has d, by how much its own are below them. It sends c, a part of d, and
 * keeps the rest, d - c: then x becomes x - (the mean of all ranks' c), the same bits everywhere.
 *
 *   top-k      of each matrix the largest elements, as pairs of index and value; of equal ones the first.
 *   PowerSGD   each matrix d (rows, columns) as P·Qᵀ of rank r: P = d·Q summed over ranks and made orthonormal, Q =
 * dᵀ·P. What a rank sends is its own P·Qᵀ, and Q summed over ranks is what the next exchange begins with.
 *
 * Vectors, and matrices that would not become smaller, travel whole; so does everything where the caller says so. All
 * additions are in the order of ranks.
 */
#ifndef MIXT_DIST_COMPRESS_H
#define MIXT_DIST_COMPRESS_H

#include "dist/group.h"

typedef enum mixt__compress_kind {
    MIXT_COMPRESS_NONE,
    MIXT_COMPRESS_TOPK,
    MIXT_COMPRESS_POWERSGD,
} mixt__compress_kind;

typedef struct mixt__compression {
    mixt__compress_kind kind;
    double percent; // of the elements that top-k sends
    int64_t rank;   // of PowerSGD's factors
} mixt__compression;

enum { MIXT_COMPRESS_RANK_MAX = 64 };

/** "none", "topk:1%", "powersgd:4". */
mixt_status mixt__compression_parse(const char *text, mixt__compression *how);
/** Updates that a run of `total` begins with and that are not compressed: "200", "30%" of them, rounded up, or "auto":
 * 10%.
 *  @param total 0: it is not known, and only what was written is looked at */
mixt_status mixt__compress_after_parse(const char *text, const mixt__compression *how, int64_t total, int64_t *updates);

/** A parameter in the flat arenas. */
typedef struct mixt__compress_piece {
    int64_t offset, rows, columns; // a vector has one row
    bool whole;                    // it travels as it is
    int64_t kept;                  // top-k: elements of it that are sent
    int64_t at;                    // among those of all pieces: its first element if whole, pair or left factor
    int64_t right;                 // among those of all pieces: its right factor
} mixt__compress_piece;

/** Of all pieces so far: elements that travel whole, pairs, elements of factors. */
typedef struct mixt__compress_counts {
    int64_t pieces, whole, pairs, left, right;
} mixt__compress_counts;

/** How the next piece travels; it is counted. */
mixt__compress_piece mixt__compress_add(const mixt__compression *how, mixt__compress_counts *counts, int64_t offset,
                                        int64_t rows, int64_t columns);

/** Memory that the caller takes, zeroed, and gives back: factors are state, the rest is not. */
enum { MIXT_COMPRESS_PIECES, MIXT_COMPRESS_FACTORS, MIXT_COMPRESS_WORKSPACE, MIXT_COMPRESS_BLOCKS };

typedef struct mixt__compressor {
    mixt__compression how;
    mixt__group *group;           // borrowed; NULL: there is one rank, or they are only planned
    int64_t ranks;                // of them
    int64_t total;                // elements of the arenas
    int64_t bucket;               // elements that are under way at once
    mixt__compress_counts counts; // of the pieces
    mixt__compress_piece *pieces; // (counts.pieces)
    float *factors;               // (counts.right) PowerSGD: Qᵀ of the newest exchange, rows of length 1
    void *workspace;
    double seconds; // that exchanges took so far
} mixt__compressor;

/** Bytes of each block; from how, ranks, total, bucket and counts alone. */
void mixt__compress_sizes(const mixt__compressor *c, size_t sizes[MIXT_COMPRESS_BLOCKS]);
/** Bytes that one rank sends in an exchange, exactly. @param whole of all elements */
int64_t mixt__compress_sent(const mixt__compressor *c, int rank, bool whole);

/** One exchange. @param rest (total) this rank's differences, which become what it has not sent
 *  @param common (total) the weights that all ranks have @param whole all differences are sent */
mixt_status mixt__compress_exchange(mixt__compressor *c, float *rest, float *common, bool whole);

/* ---- between the files of this ---- */

/** An element that travels. */
typedef struct mixt__compress_pair {
    uint32_t index; // in its piece
    float value;
} mixt__compress_pair;

enum { MIXT_SELECT_CHUNKS = 64, MIXT_SELECT_BINS = 2048 };

/** Rooms of the workspace. */
typedef struct mixt__compress_rooms {
    float *left;                // (left + whole) what the first sum adds
    float *right;               // (right)
    float *right_sum;           // (right)
    mixt__compress_pair *pairs; // (ranks, pairs)
    uint32_t *bins;             // (MIXT_SELECT_CHUNKS, MIXT_SELECT_BINS)
    void *sum;                  // workspace of mixt__group_sum
    size_t bytes;               // of all
} mixt__compress_rooms;

mixt__compress_rooms mixt__compress_rooms_of(const mixt__compressor *c);
/** Sums over ranks. */
mixt_status mixt__compress_add_ranks(const mixt__compressor *c, float *data, int64_t count);
/** A piece that travels whole, once it was summed: its mean leaves the common weights, and nothing is kept. */
void mixt__compress_take_whole(const mixt__compressor *c, const mixt__compress_piece *p, const float *sum, float *rest,
                               float *common);

mixt_status mixt__compress_topk(mixt__compressor *c, float *rest, float *common);
mixt_status mixt__compress_powersgd(mixt__compressor *c, float *rest, float *common);

/** The `kept` elements of largest magnitude, of equal ones the first, in the order of their indices.
 *  @param bins see mixt__compress_rooms */
void mixt__compress_select(const float *values, int64_t count, int64_t kept, mixt__compress_pair *pairs,
                           uint32_t *bins);

#endif
