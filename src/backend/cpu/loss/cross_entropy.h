/* cross_entropy_step some rows at a time, for kernels that have more to do with them.
 *
 *   begin, on one thread; rows, on any threads, each row once; end, on one thread when all rows are done
 */
#ifndef MIXT_BACKEND_CPU_LOSS_CROSS_ENTROPY_H
#define MIXT_BACKEND_CPU_LOSS_CROSS_ENTROPY_H

#include "backend/backend.h"

/** What a row leaves to be added up. */
typedef struct mixt__loss_row {
    double loss;
    int32_t outcome;
} mixt__loss_row;

/** One of the two halves, forward or gradient. */
typedef struct mixt__loss_problem {
    const mixt__call *call;
    const mixt__tensor *logits;
    const int32_t *labels;
    int64_t rows, classes, pitch;
    float smoothing;
    mixt__loss_row *results; // forward: one a row
} mixt__loss_problem;

/** A step as the calls of its two halves. Points into itself: stays where begin filled it. */
typedef struct mixt__loss_halves {
    mixt__call forward, gradient;
    mixt__tensor forward_out[3], gradient_in[5];
    float whole[3]; // metrics of which the gradient reads the last: targets of the whole batch that count
    bool part;      // of a batch
    mixt__loss_problem first, second;
} mixt__loss_halves;

/** Bytes of the workspace of a step. */
size_t mixt__loss_workspace(int64_t rows);
/** Fails on a label that is none of the classes. */
mixt_status mixt__loss_begin(const mixt__call *step, mixt__loss_halves *halves);
void mixt__loss_rows(mixt__loss_halves *halves, int64_t begin, int64_t end);
void mixt__loss_end(const mixt__loss_halves *halves);

/** The whole step on one thread, in double. */
mixt_status mixt__loss_plain(const mixt__call *step);

#endif
