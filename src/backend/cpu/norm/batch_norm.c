/* Batch norm, each channel over all other dimensions, and its gradient: the plain candidates and the lists.
 *
 * Training normalises with the batch's biased variance and moves the running statistics (in place, inputs 3 and 4)
 * towards the batch's mean and unbiased variance. Evaluation uses the running statistics as they are. Rows that a mask
 * leaves out (ops/attrs.h) have no part in any sum, and both results are 0 there. Only the plain candidates have the
 * fused forms: the passes make those for other devices.
 */
#include "backend/cpu/norm/batch_norm.h"
#include "backend/cpu/core/tensor.h"
#include "backend/cpu/kernels.h"
#include "num/num.h"

#include <math.h>

mixt__norm_rows mixt__batch_norm_rows(const mixt__call *call)
{
    const mixt__norm_attrs *at = call->attrs;
    mixt__norm_rows r = {.rows = mixt__tensor_rows(&call->in[0]), .inner = 1};
    r.counted = r.rows;
    if (!at->masked || !r.rows)
        return r;
    int64_t groups = mixt__shape_count(&call->in[5].shape);
    r.mask = call->in[5].data;
    r.inner = r.rows / groups;
    r.counted = 0;
    for (int64_t i = groups - 1; i >= 0; i--)
        if (r.mask[i] > 0) {
            r.counted += r.inner;
            r.first = i * r.inner;
        }
    return r;
}

int64_t mixt__norm_run(const mixt__norm_rows *r, int64_t begin, int64_t end)
{
    int64_t at = begin;
    if (!r->mask)
        return end;
    bool counts = r->mask[begin / r->inner] > 0;
    while (at < end && (r->mask[at / r->inner] > 0) == counts)
        at = (at / r->inner + 1) * r->inner;
    return at < end ? at : end;
}

static void plain_statistics(const mixt__tensor *src, const mixt__norm_rows *rows, int64_t c, double *mean,
                             double *squares)
{
    int64_t cols = mixt__tensor_cols(src);
    double sum = 0;
    for (int64_t r = 0; r < rows->rows; r++)
        sum += mixt__norm_row_counts(rows, r) ? (double)mixt__load(src->data, src->dtype, r * cols + c) : 0;
    *mean = rows->counted ? sum / (double)rows->counted : 0;
    *squares = 0;
    for (int64_t r = 0; r < rows->rows; r++) {
        double centred = (double)mixt__load(src->data, src->dtype, r * cols + c) - *mean;
        *squares += mixt__norm_row_counts(rows, r) ? centred * centred : 0;
    }
}

void mixt__batch_norm_finish(const mixt__call *call, int64_t rows, int64_t c, double mean, double squares)
{
    const mixt__norm_attrs *at = call->attrs;
    float *running_mean = call->in[3].data, *running_var = call->in[4].data;
    double var = rows ? squares / (double)rows : 0;
    if (at->training && rows && !at->repeated) {
        double m = (double)at->momentum, unbiased = rows > 1 ? squares / (double)(rows - 1) : var;
        running_mean[c] = (float)((1 - m) * (double)running_mean[c] + m * mean);
        running_var[c] = (float)((1 - m) * (double)running_var[c] + m * unbiased);
    } else if (!at->training) {
        mean = (double)running_mean[c];
        var = (double)running_var[c];
    }
    ((float *)call->out[1].data)[c] = (float)mean;
    ((float *)call->out[2].data)[c] = (float)(1 / sqrt(var + (double)at->eps));
}

static mixt_status plain_run(const mixt__call *call)
{
    const mixt__norm_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    const float *weight = call->in[1].data, *bias = call->in[2].data, *means = call->out[1].data,
                *rstds = call->out[2].data;
    mixt__norm_rows rows = mixt__batch_norm_rows(call);
    int64_t cols = mixt__tensor_cols(src);
    for (int64_t c = 0; c < cols; c++) {
        double mean = 0, squares = 0;
        if (at->training)
            plain_statistics(src, &rows, c, &mean, &squares);
        mixt__batch_norm_finish(call, rows.counted, c, mean, squares);
        for (int64_t r = 0; r < rows.rows; r++) {
            double x = (double)mixt__load(src->data, src->dtype, r * cols + c);
            double y = (x - (double)means[c]) * (double)rstds[c] * (double)weight[c] + (double)bias[c];
            if (at->addend)
                y += (double)mixt__load(call->in[5].data, dst->dtype, r * cols + c);
            bool zero = (at->relu && y <= 0) || !mixt__norm_row_counts(&rows, r);
            mixt__store(dst->data, dst->dtype, r * cols + c, zero ? 0 : (float)y);
        }
    }
    return MIXT_OK;
}

/** grad_dst at row r of channel c, as far as it counts: where the mask says so; with ReLU, where the forward's result
 *  was above 0. */
static double counted(const mixt__call *call, const mixt__norm_rows *rows, int64_t r, int64_t c)
{
    const mixt__norm_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *grad_dst = &call->in[4];
    const float *weight = call->in[1].data, *mean = call->in[2].data, *rstd = call->in[3].data;
    int64_t i = r * mixt__tensor_cols(src) + c;
    if (!mixt__norm_row_counts(rows, r))
        return 0;
    if (at->relu) {
        double x = ((double)mixt__load(src->data, src->dtype, i) - (double)mean[c]) * (double)rstd[c];
        if (!(x * (double)weight[c] + (double)((const float *)call->in[call->in_count - 1].data)[c] > 0))
            return 0;
    }
    return (double)mixt__load(grad_dst->data, grad_dst->dtype, i);
}

/** grad_src = weight · rstd · (g - mean(g) - x̂ · mean(g · x̂)): the batch's statistics depend on src. */
static mixt_status plain_grad_run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0], *grad_src = &call->out[0];
    const float *weight = call->in[1].data, *means = call->in[2].data, *rstds = call->in[3].data;
    float *grad_weight = call->out[1].data, *grad_bias = call->out[2].data;
    mixt__norm_rows rows = mixt__batch_norm_rows(call);
    int64_t cols = mixt__tensor_cols(src);
    for (int64_t c = 0; c < cols; c++) {
        double sum_g = 0, sum_gx = 0, mean = (double)means[c], rstd = (double)rstds[c];
        for (int64_t r = 0; r < rows.rows; r++) {
            double g = counted(call, &rows, r, c);
            sum_g += g;
            if (mixt__norm_row_counts(&rows, r))
                sum_gx += g * ((double)mixt__load(src->data, src->dtype, r * cols + c) - mean) * rstd;
        }
        for (int64_t r = 0; r < rows.rows; r++) {
            double g = counted(call, &rows, r, c);
            double x = ((double)mixt__load(src->data, src->dtype, r * cols + c) - mean) * rstd;
            double made = (double)weight[c] * rstd * (g - (sum_g + x * sum_gx) / (double)rows.counted);
            mixt__store(grad_src->data, grad_src->dtype, r * cols + c,
                        mixt__norm_row_counts(&rows, r) ? (float)made : 0);
        }
        grad_weight[c] = (float)(sum_gx + (mixt__call_adds(call, 1) ? (double)grad_weight[c] : 0));
        grad_bias[c] = (float)(sum_g + (mixt__call_adds(call, 2) ? (double)grad_bias[c] : 0));
    }
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = plain_run};
static const mixt__kernel plain_grad = {.name = "plain", .run = plain_grad_run};

const mixt__kernel *const mixt__cpu_batch_norm_kernels[] = {&mixt__batch_norm_avx512, &mixt__batch_norm_avx2, &plain,
                                                            NULL};
const mixt__kernel *const mixt__cpu_batch_norm_grad_kernels[] = {&mixt__batch_norm_grad_avx512,
                                                                 &mixt__batch_norm_grad_avx2, &plain_grad, NULL};
