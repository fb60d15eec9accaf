/* A trace: what each update since a good state has left, enough to see where a replay differs first, on which rank, and
 * what in it stands out.
 *
 * Rows are of consecutive updates. Bits are compared, not values: a replay on the same machine is the same computation.
 */
#ifndef MIXT_STEER_TRACE_H
#define MIXT_STEER_TRACE_H

#include "train/trainer.h"

/** One update. All of it is compared but for the batch, which says what to run. */
typedef struct mixt__trace_row {
    int64_t step, batch; // batch: number of its first pass
    double loss;
    float grad_norm, lr, scale;
    int32_t skipped;
} mixt__trace_row;

/** What the passes of one rank have made of an update. */
typedef struct mixt__trace_mark {
    uint64_t figures; // a checksum of them
    double loss;      // its own
} mixt__trace_mark;

typedef struct mixt__trace {
    int64_t first;    // update of rows[0]
    int64_t count;    // rows
    int64_t capacity; // of them
    int64_t segments; // statistics a row
    int64_t ranks;    // marks a row; 0: of one rank there are none
    double healthy;   // logarithm of the loss at which training was healthy before the first row; NaN: not known
    mixt__trace_row *rows;
    mixt__segment_stats *stats; // (capacity, segments)
    mixt__trace_mark *marks;    // (capacity, ranks)
} mixt__trace;

/** Bytes for a trainer that is compiled. */
size_t mixt__trace_bytes(const mixt__trainer *trainer, int64_t capacity);
mixt_status mixt__trace_open(mixt__trace *trace, const mixt__trainer *trainer, int64_t capacity);
void mixt__trace_close(mixt__trace *trace);

/** Forgets everything; the next row is of update `first`. */
void mixt__trace_start(mixt__trace *trace, int64_t first);
/** Forgets rows before update `first`. */
void mixt__trace_drop_before(mixt__trace *trace, int64_t first);
/** Forgets rows from update `step` on. */
void mixt__trace_cut(mixt__trace *trace, int64_t step);
bool mixt__trace_full(const mixt__trace *trace);
/** The row of an update; NULL: there is none. */
const mixt__trace_row *mixt__trace_row_of(const mixt__trace *trace, int64_t step);
const mixt__segment_stats *mixt__trace_stats_of(const mixt__trace *trace, int64_t step);
/** NULL too where there is one rank. */
const mixt__trace_mark *mixt__trace_marks_of(const mixt__trace *trace, int64_t step);
/** Those of an update whose result is there. @param marks (ranks) */
mixt_status mixt__trace_mark_step(const mixt__trace *trace, mixt__trainer *trainer, int64_t step,
                                  mixt__trace_mark *marks);
/** The rank whose own loss of an update was the worst; -1: there is one rank. */
int mixt__trace_worst_rank(const mixt__trace *trace, int64_t step);

/** Adds what the trainer's update `step->step` has left, which must be the one behind the last row. */
mixt_status mixt__trace_add(mixt__trace *trace, mixt__trainer *trainer, const mixt_step *step);
/** The trace up to update `last` as one block of bytes, for mixt__free, and back; NULL: no memory. What is not of such
 * a trace is refused. */
void *mixt__trace_pack(const mixt__trace *trace, int64_t last, size_t *bytes);
mixt_status mixt__trace_unpack(mixt__trace *trace, const void *block, size_t bytes);
/** Whether two updates have the same bits. */
bool mixt__trace_same(const mixt__trace_row *a, const mixt__segment_stats *x, const mixt__trace_row *b,
                      const mixt__segment_stats *y, int64_t segments);

/* ---- what stands out ---- */

/** What is usual before an update, from up to 50 rows before it that were applied; where their losses have risen far
 *  above the best rows before them, from those: a loss that explodes is never usual. */
typedef struct mixt__usual_row {
    double loss, norm;                     // medians
    double loss_deviation, norm_deviation; // of the logarithms
    double lr;                             // median
    int64_t rows;                          // that it is known from
} mixt__usual_row;

mixt__usual_row mixt__trace_usual(const mixt__trace *trace, int64_t step);
/** Says at which loss training was healthy before the first row; it counts where the first rows are far above it. */
void mixt__trace_anchor(mixt__trace *trace, double loss);

/** What is wrong with an update; several bits may be set. */
typedef enum mixt__sign {
    MIXT_SIGN_LOSS = 1,       // not finite, or stands out
    MIXT_SIGN_NORM = 2,       // the gradient's norm stands out
    MIXT_SIGN_SKIPPED = 4,    // a gradient is not finite
    MIXT_SIGN_DEAD = 8,       // a parameter's gradient is 0 everywhere, and was not
    MIXT_SIGN_NOT_FINITE = 16 // the loss is not finite
} mixt__sign;

/** The signs of an update, held against what was usual before. @param usual may be of an earlier update */
unsigned mixt__row_signs(const mixt__trace_row *row, const mixt__usual_row *usual);
/** Whether the gradient of a segment is 0 everywhere while it was not in the rows before `step`. */
bool mixt__trace_dead_at(const mixt__trace *trace, int64_t step, const mixt__segment_stats *stats,
                         const mixt__segment *segments, int64_t segment);
/** The first segment whose gradient is 0 everywhere while it was not in the rows before `step`; -1: none.
 *  @param stats of the update that is looked at */
int64_t mixt__trace_dead(const mixt__trace *trace, int64_t step, const mixt__segment_stats *stats,
                         const mixt__segment *segments);
/** The update at which the trouble that is seen at `seen` began: back from there while rows show signs. */
int64_t mixt__trace_begin(const mixt__trace *trace, int64_t seen, const mixt__segment *segments, unsigned *signs);

#endif
