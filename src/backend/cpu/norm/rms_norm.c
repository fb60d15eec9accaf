/* Root-mean-square norm over rows and its gradient: the plain candidates, and the lists; layer norm's kernels have
 * both.
 */
#include "backend/cpu/norm/layer_norm.h"

#include "backend/cpu/core/tensor.h"
#include "backend/cpu/kernels.h"
#include "num/num.h"

#include <math.h>

static mixt_status plain_run(const mixt__call *call)
{
    const mixt__norm_attrs *at = call->attrs;
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    const float *weight = call->in[1].data;
    float *rstds = call->out[1].data;
    int64_t rows = mixt__tensor_rows(src), cols = mixt__tensor_cols(src);
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t c = 0; c < cols; c++) {
            double x = (double)mixt__load(src->data, src->dtype, r * cols + c);
            squares += x * x;
        }
        double rstd = 1 / sqrt((cols ? squares / (double)cols : 0) + (double)at->eps);
        for (int64_t c = 0; c < cols; c++)
            mixt__store(dst->data, dst->dtype, r * cols + c,
                        (float)((double)mixt__load(src->data, src->dtype, r * cols + c) * rstd * (double)weight[c]));
        rstds[r] = (float)rstd;
    }
    return MIXT_OK;
}

/** One row of grad_src: rstd · (g - x̂ · mean(g · x̂)) with g = grad_dst · weight, plus the addend. */
static void plain_grad_row(const mixt__call *call, int64_t r, int64_t cols)
{
    const mixt__tensor *src = &call->in[0], *grad_dst = &call->in[3], *grad_src = &call->out[0];
    const mixt__norm_attrs *at = call->attrs;
    const mixt__tensor *addend = at->addend ? &call->in[4] : NULL;
    const float *weight = call->in[1].data;
    double rstd = (double)((const float *)call->in[2].data)[r], sum = 0;
    for (int64_t c = 0; c < cols; c++)
        sum += (double)mixt__load(grad_dst->data, grad_dst->dtype, r * cols + c) * (double)weight[c] *
               (double)mixt__load(src->data, src->dtype, r * cols + c) * rstd;
    for (int64_t c = 0; c < cols; c++) {
        double x = (double)mixt__load(src->data, src->dtype, r * cols + c) * rstd;
        double g = (double)mixt__load(grad_dst->data, grad_dst->dtype, r * cols + c) * (double)weight[c];
        double add = addend ? (double)mixt__load(addend->data, addend->dtype, r * cols + c) : 0;
        mixt__store(grad_src->data, grad_src->dtype, r * cols + c, (float)(rstd * (g - x * sum / (double)cols) + add));
    }
}

static mixt_status plain_grad_run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0], *grad_dst = &call->in[3];
    const float *rstds = call->in[2].data;
    float *grad_weight = call->out[1].data;
    int64_t rows = mixt__tensor_rows(src), cols = mixt__tensor_cols(src);
    for (int64_t c = 0; c < cols; c++) {
        double sum = mixt__call_adds(call, 1) ? (double)grad_weight[c] : 0;
        for (int64_t r = 0; r < rows; r++)
            sum += (double)mixt__load(grad_dst->data, grad_dst->dtype, r * cols + c) *
                   (double)mixt__load(src->data, src->dtype, r * cols + c) * (double)rstds[r];
        grad_weight[c] = (float)sum;
    }
    for (int64_t r = 0; r < rows; r++)
        plain_grad_row(call, r, cols);
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = plain_run};
static const mixt__kernel plain_grad = {.name = "plain", .run = plain_grad_run};

const mixt__kernel *const mixt__cpu_rms_norm_kernels[] = {&mixt__layer_norm_avx512, &mixt__layer_norm_avx2, &plain,
                                                          NULL};
const mixt__kernel *const mixt__cpu_rms_norm_grad_kernels[] = {&mixt__layer_norm_grad_avx512,
                                                               &mixt__layer_norm_grad_avx2, &plain_grad, NULL};
