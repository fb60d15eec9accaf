/* Layer norm over rows and its gradient: the plain candidates and the lists. */
#include "backend/cpu/norm/layer_norm.h"

#include "backend/cpu/core/tensor.h"
#include "backend/cpu/kernels.h"
#include "num/num.h"

#include <math.h>

static mixt_status plain_run(const mixt__call *call)
{
    const mixt__norm_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    const float *weight = call->in[1].data, *bias = call->in[2].data;
    float *means = call->out[1].data, *rstds = call->out[2].data;
    int64_t rows = mixt__tensor_rows(src), cols = mixt__tensor_cols(src);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0, squares = 0;
        for (int64_t c = 0; c < cols; c++)
            sum += (double)mixt__load(src->data, src->dtype, r * cols + c);
        double mean = cols ? sum / (double)cols : 0;
        for (int64_t c = 0; c < cols; c++) {
            double centred = (double)mixt__load(src->data, src->dtype, r * cols + c) - mean;
            squares += centred * centred;
        }
        double rstd = 1 / sqrt((cols ? squares / (double)cols : 0) + (double)at->eps);
        for (int64_t c = 0; c < cols; c++) {
            double centred = (double)mixt__load(src->data, src->dtype, r * cols + c) - mean;
            mixt__store(dst->data, dst->dtype, r * cols + c,
                        (float)(centred * rstd * (double)weight[c] + (double)bias[c]));
        }
        means[r] = (float)mean;
        rstds[r] = (float)rstd;
    }
    return MIXT_OK;
}

/** One row of grad_src: rstd · (g - mean(g) - x̂ · mean(g · x̂)) with g = grad_dst · weight, plus the addend. */
static void plain_grad_row(const mixt__call *call, int64_t r, int64_t cols)
{
    const mixt__tensor *src = &call->in[0], *grad_dst = &call->in[4], *grad_src = &call->out[0];
    const mixt__norm_attrs *at = call->attrs;
    const mixt__tensor *addend = at->addend ? &call->in[5] : NULL;
    const float *weight = call->in[1].data;
    double mean = (double)((const float *)call->in[2].data)[r], rstd = (double)((const float *)call->in[3].data)[r];
    double sum_g = 0, sum_gx = 0;
    for (int64_t c = 0; c < cols; c++) {
        double x = ((double)mixt__load(src->data, src->dtype, r * cols + c) - mean) * rstd;
        double g = (double)mixt__load(grad_dst->data, grad_dst->dtype, r * cols + c) * (double)weight[c];
        sum_g += g;
        sum_gx += g * x;
    }
    for (int64_t c = 0; c < cols; c++) {
        double x = ((double)mixt__load(src->data, src->dtype, r * cols + c) - mean) * rstd;
        double g = (double)mixt__load(grad_dst->data, grad_dst->dtype, r * cols + c) * (double)weight[c];
        double add = addend ? (double)mixt__load(addend->data, addend->dtype, r * cols + c) : 0;
        mixt__store(grad_src->data, grad_src->dtype, r * cols + c,
                    (float)(rstd * (g - (sum_g + x * sum_gx) / (double)cols) + add));
    }
}

/** The sums of grad_src's columns. */
static void plain_totals(const mixt__call *call, int64_t rows, int64_t cols)
{
    const mixt__tensor *grad_src = &call->out[0];
    float *totals = call->out[3].data;
    for (int64_t c = 0; c < cols; c++) {
        double sum = mixt__call_adds(call, 3) ? (double)totals[c] : 0;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)mixt__load(grad_src->data, grad_src->dtype, r * cols + c);
        totals[c] = (float)sum;
    }
}

static mixt_status plain_grad_run(const mixt__call *call)
{
    const mixt__norm_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *grad_dst = &call->in[4];
    const float *means = call->in[2].data, *rstds = call->in[3].data;
    float *grad_weight = call->out[1].data, *grad_bias = call->out[2].data;
    int64_t rows = mixt__tensor_rows(src), cols = mixt__tensor_cols(src);
    for (int64_t r = 0; r < rows; r++)
        plain_grad_row(call, r, cols);
    for (int64_t c = 0; c < cols; c++) {
        double sum_w = mixt__call_adds(call, 1) ? (double)grad_weight[c] : 0;
        double sum_b = mixt__call_adds(call, 2) ? (double)grad_bias[c] : 0;
        for (int64_t r = 0; r < rows; r++) {
            double g = (double)mixt__load(grad_dst->data, grad_dst->dtype, r * cols + c);
            double x = (double)mixt__load(src->data, src->dtype, r * cols + c);
            sum_w += g * (x - (double)means[r]) * (double)rstds[r];
            sum_b += g;
        }
        grad_weight[c] = (float)sum_w;
        grad_bias[c] = (float)sum_b;
    }
    if (at->totals)
        plain_totals(call, rows, cols);
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = plain_run};
static const mixt__kernel plain_grad = {.name = "plain", .run = plain_grad_run};

const mixt__kernel *const mixt__cpu_layer_norm_kernels[] = {&mixt__layer_norm_avx512, &mixt__layer_norm_avx2, &plain,
                                                            NULL};
const mixt__kernel *const mixt__cpu_layer_norm_grad_kernels[] = {&mixt__layer_norm_grad_avx512,
                                                                 &mixt__layer_norm_grad_avx2, &plain_grad, NULL};
