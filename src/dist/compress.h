/* Sums over ranks of which only a part travels; what is left out is kept and added to the next gradient.
 *
 * A rank has g, its gradient, and e, its feedback: what it has not sent yet. It compresses m = g + scale·e, and keeps
 * what that leaves out as the new e. Feedback is kept without the loss scale, which may change between two updates.
 *
 *   top-k      of each matrix the largest elements, as pairs of index and value; of equal ones the first.
 *   PowerSGD   each matrix m (rows, columns) as P·Qᵀ of rank r: P = m·Q summed over ranks and made orthonormal, Q =
 * mᵀ·P summed over ranks. The next update begins with this Q.
 *
 * Vectors, and matrices that would not become smaller, travel whole. So does everything in the updates that a run
 * begins with, if its caller says so: their sum is that of all m, and nothing is left to keep. All additions are in the
 * order of ranks, so every rank gets the same bits, and one process that makes all parts gets them too. Where anything
 * is not finite on any rank, or would not be in the sum, nothing is sent, all ranks get NaN in the same place, and
 * feedback and factors stay as they were.
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
/** Updates that a run of `total` begins with and that travel whole: "200", "30%" of them, rounded up, or "auto": the
 * share that keeps a small language model within 1% of the loss, half with PowerSGD, three quarters with top-k.
 *  @param total 0: it is not known, and only what was written is looked at */
mixt_status mixt__compress_after_parse(const char *text, const mixt__compression *how, int64_t total, int64_t *updates);

/** A parameter in the flat arena of gradients. */
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

/** Memory that the caller takes, zeroed, and gives back: feedback and factors are state, the rest is not. */
enum {
    MIXT_COMPRESS_PIECES,
    MIXT_COMPRESS_FEEDBACK,
    MIXT_COMPRESS_FACTORS,
    MIXT_COMPRESS_MOVED,
    MIXT_COMPRESS_WORKSPACE,
    MIXT_COMPRESS_BLOCKS
};

typedef struct mixt__compressor {
    mixt__compression how;
    mixt__group *group;           // borrowed; NULL: this process makes all parts
    int64_t ranks, parts;         // of them, and that this process makes: all, or one
    int64_t total;                // elements of the arena
    int64_t bucket;               // elements that are under way at once
    mixt__compress_counts counts; // of the pieces
    mixt__compress_piece *pieces; // (counts.pieces)
    float *feedback;              // (parts, total)
    float *factors;               // (counts.right) PowerSGD: Qᵀ of the newest update, rows of length 1
    float *moved;                 // (parts, total) m of each part; NULL: it is made in the gradient's place
    void *workspace;
    double seconds; // that sums took so far
} mixt__compressor;

/** Bytes of each block; from how, ranks, parts, total, bucket and counts alone. */
void mixt__compress_sizes(const mixt__compressor *c, size_t sizes[MIXT_COMPRESS_BLOCKS]);
/** Bytes that one rank sends for a sum, exactly. @param whole of all elements */
int64_t mixt__compress_sent(const mixt__compressor *c, int rank, bool whole);

/** A part's gradient is complete. @param grad (total), where `moved` is not taken it becomes m. @param scale of the
 * loss
 */
void mixt__compress_part(mixt__compressor *c, int64_t part, float *grad, float scale);
/** After all parts: the sum of what they send. @param sum (total) the gradient's place @param whole that is all they
 * have
 */
mixt_status mixt__compress_sum(mixt__compressor *c, float *sum, float scale, bool whole);

/* ---- between the files of this ---- */

/** An element that travels. */
typedef struct mixt__compress_pair {
    uint32_t index; // in its piece
    float value;
} mixt__compress_pair;

enum { MIXT_SELECT_CHUNKS = 64, MIXT_SELECT_BINS = 2048 };

/** Rooms of the workspace. */
typedef struct mixt__compress_rooms {
    float *largest;             // (ranks, pieces) magnitude of each rank's m; not finite where anything is not
    float *left;                // (parts, left + whole) what the first sum adds; the sum is in the first
    float *right;               // (parts, right)
    float *right_sum;           // (right)
    mixt__compress_pair *pairs; // (ranks, pairs)
    uint32_t *bins;             // (MIXT_SELECT_CHUNKS, MIXT_SELECT_BINS)
    void *sum;                  // workspace of mixt__group_sum
    size_t bytes;               // of all
} mixt__compress_rooms;

mixt__compress_rooms mixt__compress_rooms_of(const mixt__compressor *c);
/** m of a part. */
float *mixt__compress_moved(const mixt__compressor *c, int64_t part, float *sum);
/** Sums rows (parts, stride) over parts and ranks, into the first. */
mixt_status mixt__compress_add_rows(const mixt__compressor *c, float *rows, int64_t count, int64_t stride);
/** Sums over ranks, where there are others. */
mixt_status mixt__compress_add_ranks(const mixt__compressor *c, float *data, int64_t count);
/** Everyone's row of (ranks, bytes) to everyone. */
mixt_status mixt__compress_share_rows(const mixt__compressor *c, void *rows, size_t bytes);

mixt_status mixt__compress_topk(mixt__compressor *c, float *sum, float scale);
mixt_status mixt__compress_powersgd(mixt__compressor *c, float *sum, float scale);

/** The `kept` elements of largest magnitude, of equal ones the first, in the order of their indices.
 *  @param bins see mixt__compress_rooms */
void mixt__compress_select(const float *values, int64_t count, int64_t kept, mixt__compress_pair *pairs,
                           uint32_t *bins);

#endif
