/* What the batch-norm kernels share, and the candidates. */
#ifndef MIXT_BACKEND_CPU_NORM_BATCH_NORM_H
#define MIXT_BACKEND_CPU_NORM_BATCH_NORM_H

#include "backend/backend.h"
#include "ops/attrs.h"

/** The rows of a call that count. */
typedef struct mixt__norm_rows {
    const float *mask;      // NULL: all
    int64_t inner;          // rows that one number of the mask is for
    int64_t rows;           // of src
    int64_t counted, first; // how many; the first of them
} mixt__norm_rows;

mixt__norm_rows mixt__batch_norm_rows(const mixt__call *call);

static inline bool mixt__norm_row_counts(const mixt__norm_rows *r, int64_t row)
{
    return !r->mask || r->mask[row / r->inner] > 0;
}

/** The end of the run of rows, from `begin` and up to `end`, that count, or do not, as the first one. */
int64_t mixt__norm_run(const mixt__norm_rows *rows, int64_t begin, int64_t end);

/** From the batch's mean and sum of squared deviations of channel c, over `rows`, to the outputs mean and rstd; moves
 *  the running statistics in training and uses them in evaluation. */
void mixt__batch_norm_finish(const mixt__call *call, int64_t rows, int64_t c, double mean, double squares);

extern const mixt__kernel mixt__batch_norm_avx512, mixt__batch_norm_avx2;
extern const mixt__kernel mixt__batch_norm_grad_avx512, mixt__batch_norm_grad_avx2;

#endif
