/* grad_weight_hh as one matrix product over all steps: what flows back (rows, B T) times the states before, (B T, H);
 * and a GRU's grad_bias_hn.
 *
 * The workspace: what flows back where that is not grad_gates_x, the states before (dst moved by one step, with zeros
 * where a sequence begins), the bias's parts, and the product's own. The product is the best candidate of matmul, given
 * a call of its own, so its algorithms are timed and kept like any other's.
 */
#include "backend/cuda/recurrent/recurrent.h"

#include "base/alloc.h"
#include "base/status.h"

typedef struct product {
    const mixt__kernel *kernel;
    mixt__call call;
    mixt__tensor in[2], out[1];
    mixt__matmul_attrs attrs;
    size_t shifted, parts, own; // where the workspace's parts begin
} product;

static mixt__tensor matrix(mixt_dtype dtype, int64_t rows, int64_t columns)
{
    return (mixt__tensor){.dtype = dtype, .shape = {2, {rows, columns}}, .strides = {columns, 1}, .contiguous = true};
}

static size_t rounded(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static void describe(product *p, const mixt__call *call)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    p->kernel = NULL;
    p->in[0] = matrix(call->out[0].dtype, s.batch * s.steps, s.rows);
    p->in[1] = matrix(call->in[1].dtype, s.batch * s.steps, s.hidden);
    p->out[0] = matrix(call->out[1].dtype, s.rows, s.hidden);
    p->attrs = (mixt__matmul_attrs){.trans_a = true, .alpha = 1.0f};
    p->call = (mixt__call){.op = call->op,
                           .attrs = &p->attrs,
                           .layer = call->layer,
                           .arithmetic = call->arithmetic,
                           .in_count = 2,
                           .out_count = 1,
                           .in = p->in,
                           .out = p->out};
    p->shifted = mixt__recurrent_side_bytes(call);
    p->parts = p->shifted + rounded((size_t)(s.batch * s.steps * s.hidden) * mixt_dtype_size(call->in[1].dtype));
    p->own = p->parts;
    if (mixt__recurrent_side(call))
        p->own += rounded((size_t)(MIXT__CUDA_BIAS_PARTS * s.hidden) * sizeof(float));
}

mixt_status mixt__cuda_recurrent_grad_prepare(mixt__call *call, mixt__arena *arena)
{
    const char *reason;
    product *p = mixt__arena_alloc(arena, sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the weight gradient's product", call->layer);
    describe(p, call);
    call->state = p;
    call->workspace_bytes = p->own;
    if (p->shifted == p->parts)
        return MIXT_OK;
    for (int k = 0; !p->kernel && mixt__cuda_matmul_kernels[k]; k++)
        if (!mixt__cuda_matmul_kernels[k]->supports || mixt__cuda_matmul_kernels[k]->supports(&p->call, &reason))
            p->kernel = mixt__cuda_matmul_kernels[k];
    if (p->kernel->prepare)
        MIXT_TRY(p->kernel->prepare(&p->call, arena));
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    size_t steps = p->shifted + (size_t)(s.batch * s.hidden) * sizeof(float);
    call->workspace_bytes = p->own + p->call.workspace_bytes;
    if (call->workspace_bytes < steps)
        call->workspace_bytes = steps;
    return MIXT_OK;
}

mixt_status mixt__cuda_recurrent_grad_prepare_tensor(mixt__call *call, mixt__arena *arena)
{
    MIXT_TRY(mixt__cuda_recurrent_grad_prepare(call, arena));
    return mixt__cuda_prepare_tensor(call, arena);
}

float *mixt__cuda_recurrent_flow(const mixt__call *call)
{
    const product *p = call->state;
    return (float *)(void *)((char *)call->workspace + p->shifted);
}

/** No steps, no gradient. */
static mixt_status clear(const mixt__cuda_device *gpu, const mixt__tensor *grad)
{
    size_t bytes = (size_t)mixt__tensor_count(grad) * mixt_dtype_size(grad->dtype);
    return mixt__cuda_check(cudaMemsetAsync(grad->data, 0, bytes, gpu->stream), "clearing a gradient");
}

static mixt_status clear_all(const mixt__call *call)
{
    for (int o = 1; o < call->out_count; o++)
        if (!(call->accumulate >> o & 1))
            MIXT_TRY(clear(mixt__cuda_of(call), &call->out[o]));
    return MIXT_OK;
}

mixt_status mixt__cuda_recurrent_weight_run(const mixt__call *call)
{
    product *p = call->state;
    char *workspace = call->workspace;
    if (!p->kernel)
        return clear_all(call);
    if (mixt__recurrent_side(call))
        MIXT_TRY(mixt__cuda_recurrent_bias_run(call, (float *)(void *)(workspace + p->parts)));
    p->in[0].data = mixt__recurrent_grad_sums(call);
    p->in[1].data = workspace + p->shifted;
    p->out[0].data = call->out[1].data;
    p->call.accumulate = call->accumulate >> 1 & 1;
    p->call.workspace = workspace + p->own;
    MIXT_TRY(mixt__cuda_recurrent_shift(mixt__cuda_of(call), &call->in[1], p->in[1].data));
    return p->kernel->run(&p->call);
}

void mixt__cuda_recurrent_grad_release(mixt__call *call)
{
    product *p = call->state;
    if (p && p->kernel && p->kernel->release)
        p->kernel->release(&p->call);
}
