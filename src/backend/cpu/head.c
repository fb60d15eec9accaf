/* A classifier's head on the CPU. "rows_…" (head_kernel.h): each thread takes some rows from the input to the input's
 * gradient, without waiting for the others in between. "plain": one thing after the other, in double.
 */
#include "backend/cpu/head.h"

#include "backend/cpu/kernels.h"
#include "num/num.h"

static size_t logits_offset(const mixt__head *h)
{
    return (mixt__loss_workspace(h->rows) + 63) / 64 * 64;
}

size_t mixt__head_workspace(const mixt__head *h)
{
    return logits_offset(h) + (size_t)(h->rows * h->classes) * sizeof *h->logits;
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
    h->in[0] = call->out[1]; // the logits have the shape of their gradient
    h->in[0].dtype = MIXT_DTYPE_FP32;
    h->in[0].data = h->logits;
    h->in[1] = call->in[2 + at->bias];
    h->in[2] = call->in[3 + at->bias];
    for (int o = 0; o < 3; o++)
        h->out[o] = call->out[1 + o];
    h->loss = *call;
    h->loss.attrs = &at->loss;
    h->loss.in = h->in;
    h->loss.out = h->out;
    h->loss.in_count = h->loss.out_count = 3;
}

static mixt_status plain_prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__head h;
    (void)arena;
    mixt__head_describe(call, &h);
    call->workspace_bytes = mixt__head_workspace(&h);
    return MIXT_OK;
}

static float plain_logit(const mixt__head *h, int64_t row, int64_t number)
{
    const mixt__tensor *x = &h->call->in[0], *w = &h->call->in[1];
    double sum = h->bias ? (double)h->bias[number] : 0;
    for (int64_t i = 0; i < h->inputs; i++)
        sum += (double)mixt__load(h->x, x->dtype, row * h->inputs + i) *
               (double)mixt__load(h->w, w->dtype, number * h->inputs + i);
    return (float)sum;
}

static float plain_grad(const mixt__head *h, int64_t row, int64_t input)
{
    const mixt__tensor *x = &h->call->in[0], *w = &h->call->in[1], *grad = &h->call->out[1];
    double sum = 0;
    if (h->relu && !(mixt__load(h->x, x->dtype, row * h->inputs + input) > 0))
        return 0;
    for (int64_t c = 0; c < h->classes; c++)
        sum += (double)mixt__load(grad->data, grad->dtype, row * h->classes + c) *
               (double)mixt__load(h->w, w->dtype, c * h->inputs + input);
    return (float)sum;
}

static mixt_status plain_run(const mixt__call *call)
{
    mixt__head h;
    mixt__head_describe(call, &h);
    for (int64_t i = 0; i < h.rows * h.classes; i++)
        h.logits[i] = plain_logit(&h, i / h.classes, i % h.classes);
    MIXT_TRY(mixt__loss_plain(&h.loss));
    for (int64_t i = 0; i < h.rows * h.inputs; i++)
        mixt__store(call->out[0].data, call->out[0].dtype, i, plain_grad(&h, i / h.inputs, i % h.inputs));
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .prepare = plain_prepare, .run = plain_run};

extern const mixt__kernel mixt__head_rows_avx512, mixt__head_rows_avx2;

const mixt__kernel *const mixt__cpu_head_step_kernels[] = {&mixt__head_rows_avx512, &mixt__head_rows_avx2, &plain,
                                                           NULL};
