/* Batch norm, each channel over all other dimensions, and its gradient: the plain candidates and the lists.
 *
 * Training normalises with the batch's biased variance and moves the running statistics (in place, inputs 3 and 4)
 * towards the batch's mean and unbiased variance. Evaluation uses the running statistics as they are. Only the plain
 * candidates have the fused forms: the passes make those for other devices.
 */
#include "backend/cpu/norm/batch_norm.h"
#include "backend/cpu/core/tensor.h"
#include "backend/cpu/kernels.h"
#include "num/num.h"

#include <math.h>

static void plain_statistics(const mixt__tensor *src, int64_t c, double *mean, double *squares)
{
    int64_t rows = mixt__tensor_rows(src), cols = mixt__tensor_cols(src);
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        sum += (double)mixt__load(src->data, src->dtype, r * cols + c);
    *mean = rows ? sum / (double)rows : 0;
    *squares = 0;
    for (int64_t r = 0; r < rows; r++) {
        double centred = (double)mixt__load(src->data, src->dtype, r * cols + c) - *mean;
        *squares += centred * centred;
    }
}

void mixt__batch_norm_finish(const mixt__call *call, int64_t c, double mean, double squares)
{
    const mixt__norm_attrs *at = call->attrs;
    float *running_mean = call->in[3].data, *running_var = call->in[4].data;
    int64_t rows = mixt__tensor_rows(&call->in[0]);
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
    int64_t rows = mixt__tensor_rows(src), cols = mixt__tensor_cols(src);
    for (int64_t c = 0; c < cols; c++) {
        double mean = 0, squares = 0;
        if (at->training)
            plain_statistics(src, c, &mean, &squares);
        mixt__batch_norm_finish(call, c, mean, squares);
        for (int64_t r = 0; r < rows; r++) {
            double x = (double)mixt__load(src->data, src->dtype, r * cols + c);
            double y = (x - (double)means[c]) * (double)rstds[c] * (double)weight[c] + (double)bias[c];
            if (at->addend)
                y += (double)mixt__load(call->in[5].data, dst->dtype, r * cols + c);
            mixt__store(dst->data, dst->dtype, r * cols + c, at->relu && y <= 0 ? 0 : (float)y);
        }
    }
    return MIXT_OK;
}

/** grad_dst at element i of channel c, as far as it counts: with ReLU, where the forward's result was above 0. */
static double counted(const mixt__call *call, int64_t i, int64_t c)
{
    const mixt__norm_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *grad_dst = &call->in[4];
    const float *weight = call->in[1].data, *mean = call->in[2].data, *rstd = call->in[3].data;
    if (at->relu) {
        double x = ((double)mixt__load(src->data, src->dtype, i) - (double)mean[c]) * (double)rstd[c];
        if (!(x * (double)weight[c] + (double)((const float *)call->in[5].data)[c] > 0))
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
    int64_t rows = mixt__tensor_rows(src), cols = mixt__tensor_cols(src);
    for (int64_t c = 0; c < cols; c++) {
        double sum_g = 0, sum_gx = 0, mean = (double)means[c], rstd = (double)rstds[c];
        for (int64_t r = 0; r < rows; r++) {
            double g = counted(call, r * cols + c, c);
            sum_g += g;
            sum_gx += g * ((double)mixt__load(src->data, src->dtype, r * cols + c) - mean) * rstd;
        }
        for (int64_t r = 0; r < rows; r++) {
            double g = counted(call, r * cols + c, c);
            double x = ((double)mixt__load(src->data, src->dtype, r * cols + c) - mean) * rstd;
            mixt__store(grad_src->data, grad_src->dtype, r * cols + c,
                        (float)((double)weight[c] * rstd * (g - (sum_g + x * sum_gx) / (double)rows)));
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
