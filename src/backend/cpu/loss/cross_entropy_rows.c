/* Cross-entropy of each row for itself, and its gradient; threads split the rows. The logits are read once forward,
 * once backward, tile by tile, where the gradient may take their place.
 */
#include "backend/cpu/core/rows.h"
#include "backend/cpu/kernels.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

enum { ROWS_AT_MOST = 8 }; // that a thread takes: short rows cost more than their classes say

typedef struct problem {
    const mixt__tensor *logits, *grad; // grad: where the gradient goes; NULL: forward
    const int32_t *labels;
    int64_t rows, classes, pitch;
    float *losses, *lse;
    const float *seeds; // gradients of the losses
} problem;

static problem problem_of(const mixt__call *call, bool forward)
{
    const mixt__shape *shape = &call->in[0].shape;
    problem p = {.logits = &call->in[0], .labels = call->in[1].data, .pitch = shape->dims[shape->rank - 1]};
    p.classes = mixt__loss_classes(call->attrs, p.pitch);
    p.rows = mixt__shape_count(&call->in[1].shape);
    p.losses = forward ? call->out[0].data : NULL;
    p.lse = forward ? call->out[1].data : call->in[2].data;
    p.grad = forward ? NULL : &call->out[0];
    p.seeds = forward ? NULL : call->in[3].data;
    return p;
}

static mixt_status check_labels(const problem *p)
{
    for (int64_t r = 0; r < p->rows; r++)
        if (p->labels[r] >= p->classes)
            return mixt__fail(MIXT_ERROR_DATA,
                              "row %lld has label %d, but there are %lld classes: labels go from 0 to %lld",
                              (long long)r, (int)p->labels[r], (long long)p->classes, (long long)p->classes - 1);
    return MIXT_OK;
}

static double logit(const problem *p, int64_t row, int64_t class)
{
    return (double)mixt__load(p->logits->data, p->logits->dtype, row * p->pitch + class);
}

static void no_gradient(const problem *p, int64_t row, int64_t from)
{
    memset(mixt__row_at(p->grad->data, p->grad->dtype, row * p->pitch + from), 0,
           (size_t)(p->pitch - from) * mixt_dtype_size(p->grad->dtype));
}

/* ---- rows ---- */

static void forward_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const problem *p = argument;
    float tile[MIXT__ROW_TILE];
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        p->lse[r] = p->losses[r] = 0;
        if (p->labels[r] < 0)
            continue;
        mixt__row_peak peak = mixt__row_peak_of(tile, p->logits->data, p->logits->dtype, r * p->pitch, p->classes);
        double lse = (double)peak.max + log(peak.sum);
        p->lse[r] = (float)lse;
        p->losses[r] = (float)(lse - logit(p, r, p->labels[r]));
    }
}

static void gradient_row(const problem *p, int64_t row)
{
    const mixt__row_loops *loops = mixt__row_loops_best();
    mixt__narrow_fn *narrow = mixt__narrow(p->grad->dtype);
    float tile[MIXT__ROW_TILE], lse = p->lse[row], seed = p->seeds[row];
    for (int64_t c = 0; c < p->classes; c += MIXT__ROW_TILE) {
        int64_t width = p->classes - c < MIXT__ROW_TILE ? p->classes - c : MIXT__ROW_TILE, label = p->labels[row] - c;
        const float *x = mixt__row_load(tile, p->logits->data, p->logits->dtype, row * p->pitch + c, width);
        float at_label = 0;
        if (label >= 0 && label < width)
            loops->exp_below_affine(&at_label, x + label, lse, 1, seed, 1);
        loops->exp_below_affine(tile, x, lse, 0, seed, width);
        if (label >= 0 && label < width)
            tile[label] = at_label;
        narrow(mixt__row_at(p->grad->data, p->grad->dtype, row * p->pitch + c), tile, width);
    }
    no_gradient(p, row, p->classes);
}

static void gradient_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const problem *p = argument;
    (void)thread;
    for (int64_t r = begin; r < end; r++)
        if (p->labels[r] < 0)
            no_gradient(p, r, 0);
        else
            gradient_row(p, r);
}

static mixt_status run(const mixt__call *call, bool forward)
{
    problem p = problem_of(call, forward);
    int64_t grain = mixt__row_grain(p.classes);
    MIXT_TRY(check_labels(&p));
    mixt__parallel(p.rows, grain < ROWS_AT_MOST ? grain : ROWS_AT_MOST, forward ? forward_rows : gradient_rows, &p);
    return MIXT_OK;
}

static mixt_status forward_run(const mixt__call *call)
{
    return run(call, true);
}

static mixt_status gradient_run(const mixt__call *call)
{
    return run(call, false);
}

/* ---- plain ---- */

static double plain_lse(const problem *p, int64_t row)
{
    double max = -INFINITY, sum = 0;
    for (int64_t c = 0; c < p->classes; c++)
        max = fmax(max, logit(p, row, c));
    for (int64_t c = 0; c < p->classes; c++)
        sum += exp(logit(p, row, c) - (isinf(max) && max < 0 ? 0 : max));
    return sum == 0 ? -INFINITY : max + log(sum);
}

static mixt_status forward_plain_run(const mixt__call *call)
{
    problem p = problem_of(call, true);
    MIXT_TRY(check_labels(&p));
    for (int64_t r = 0; r < p.rows; r++) {
        double lse = p.labels[r] < 0 ? 0 : plain_lse(&p, r);
        p.lse[r] = (float)lse;
        p.losses[r] = p.labels[r] < 0 ? 0 : (float)(lse - logit(&p, r, p.labels[r]));
    }
    return MIXT_OK;
}

static mixt_status gradient_plain_run(const mixt__call *call)
{
    problem p = problem_of(call, false);
    MIXT_TRY(check_labels(&p));
    for (int64_t r = 0; r < p.rows; r++)
        for (int64_t c = 0; c < p.pitch; c++) {
            bool counts = p.labels[r] >= 0 && c < p.classes;
            double share = counts ? exp(logit(&p, r, c) - (double)p.lse[r]) - (c == p.labels[r]) : 0;
            mixt__store(p.grad->data, p.grad->dtype, r * p.pitch + c, (float)(share * (double)p.seeds[r]));
        }
    return MIXT_OK;
}

static const mixt__kernel forward_fast = {.name = "rows", .run = forward_run},
                          forward_plain = {.name = "plain", .run = forward_plain_run},
                          gradient_fast = {.name = "rows", .run = gradient_run},
                          gradient_plain = {.name = "plain", .run = gradient_plain_run};

const mixt__kernel *const mixt__cpu_cross_entropy_rows_kernels[] = {&forward_fast, &forward_plain, NULL};
const mixt__kernel *const mixt__cpu_cross_entropy_rows_grad_kernels[] = {&gradient_fast, &gradient_plain, NULL};
