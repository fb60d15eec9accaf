/* A classifier's head on the CPU: "rows_…" (head_kernel.c), where threads wait for each other just once, and "plain",
 * one thing after the other in double.
 */
#include "backend/cpu/loss/head.h"

#include "backend/cpu/core/tensor.h"
#include "backend/cpu/kernels.h"
#include "num/num.h"

static size_t logits_offset(const mixt__head *h)
{
    return (mixt__loss_workspace(h->rows) + 63) / 64 * 64;
}

void mixt__head_describe(const mixt__call *call, mixt__head *h)
{
    const mixt__head_attrs *at = call->attrs;
    *h = (mixt__head){.call = call, .x = call->in[0].data, .w = call->in[1].data, .relu = at->relu};
    h->rows = call->in[0].shape.dims[0];
    h->inputs = call->in[0].shape.dims[1];
    h->classes = call->in[1].shape.dims[0];
    h->bias = at->bias ? call->in[2].data : NULL;
    h->logits = call->workspace ? (float *)((char *)call->workspace + logits_offset(h)) : NULL;
    h->grad_w = call->out[3].data;
    h->grad_bias = at->bias ? call->out[4].data : NULL;
    h->add_w = mixt__call_adds(call, 3);
    h->add_bias = mixt__call_adds(call, 4);
    h->in[0] = (mixt__tensor){.data = h->logits, .dtype = MIXT_DTYPE_FP32, .shape = {2, {h->rows, h->classes}}};
    h->in[0].strides[0] = h->classes;
    h->in[0].strides[1] = 1;
    h->in[0].contiguous = true;
    h->in[1] = call->in[2 + at->bias];
    h->in[2] = call->in[3 + at->bias];
    h->out[0] = h->in[0];
    h->out[1] = call->out[1];
    h->out[2] = call->out[2];
    h->loss = *call;
    h->loss.attrs = &at->loss;
    h->loss.in = h->in;
    h->loss.out = h->out;
    h->loss.in_count = h->loss.out_count = 3;
}

mixt_status mixt__head_prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__head h;
    (void)arena;
    mixt__head_describe(call, &h);
    call->workspace_bytes = logits_offset(&h) + (size_t)(h.rows * h.classes) * sizeof *h.logits;
    return MIXT_OK;
}

static double x_at(const mixt__head *h, int64_t row, int64_t input)
{
    return (double)mixt__load(h->x, h->call->in[0].dtype, row * h->inputs + input);
}

static double w_at(const mixt__head *h, int64_t number, int64_t input)
{
    return (double)mixt__load(h->w, h->call->in[1].dtype, number * h->inputs + input);
}

static double grad_at(const mixt__head *h, int64_t row, int64_t number)
{
    return (double)h->logits[row * h->classes + number];
}

static void plain_logits(const mixt__head *h)
{
    for (int64_t i = 0; i < h->rows * h->classes; i++) {
        double sum = h->bias ? (double)h->bias[i % h->classes] : 0;
        for (int64_t k = 0; k < h->inputs; k++)
            sum += x_at(h, i / h->classes, k) * w_at(h, i % h->classes, k);
        h->logits[i] = (float)sum;
    }
}

static void plain_grad_x(const mixt__head *h)
{
    const mixt__tensor *grad = &h->call->out[0];
    for (int64_t i = 0; i < h->rows * h->inputs; i++) {
        int64_t row = i / h->inputs, k = i % h->inputs;
        double sum = 0;
        for (int64_t c = 0; c < h->classes && (!h->relu || x_at(h, row, k) > 0); c++)
            sum += grad_at(h, row, c) * w_at(h, c, k);
        mixt__store(grad->data, grad->dtype, i, (float)sum);
    }
}

static void plain_grad_w(const mixt__head *h)
{
    for (int64_t i = 0; i < h->classes * h->inputs; i++) {
        double sum = h->add_w ? (double)h->grad_w[i] : 0;
        for (int64_t row = 0; row < h->rows; row++)
            sum += grad_at(h, row, i / h->inputs) * x_at(h, row, i % h->inputs);
        h->grad_w[i] = (float)sum;
    }
}

void mixt__head_grad_bias(const mixt__head *h)
{
    for (int64_t c = 0; c < h->classes && h->grad_bias; c++) {
        double sum = 0;
        for (int64_t row = 0; row < h->rows; row++)
            sum += grad_at(h, row, c);
        // rounded before it is added, as ranks add their parts
        h->grad_bias[c] = h->add_bias ? (float)sum + h->grad_bias[c] : (float)sum;
    }
}

static mixt_status plain_run(const mixt__call *call)
{
    mixt__head h;
    mixt__head_describe(call, &h);
    plain_logits(&h);
    MIXT_TRY(mixt__loss_plain(&h.loss));
    plain_grad_x(&h);
    plain_grad_w(&h);
    mixt__head_grad_bias(&h);
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .prepare = mixt__head_prepare, .run = plain_run};

extern const mixt__kernel mixt__head_rows_avx512, mixt__head_rows_avx2;

const mixt__kernel *const mixt__cpu_head_step_kernels[] = {&mixt__head_rows_avx512, &mixt__head_rows_avx2, &plain,
                                                           NULL};
