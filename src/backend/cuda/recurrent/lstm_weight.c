/* grad_weight_hh as one matrix product over all steps: grad_gates_xᵀ (4H, B T) times the states before, (B T, H).
 *
 * The states before are dst moved by one step, with zeros where a sequence begins; they lie in the workspace (one copy
 * of dst), followed by the product's own workspace. The product is the best candidate of matmul, given a call of its
 * own, so its algorithms are timed and kept like any other's.
 */
#include "backend/cuda/recurrent/lstm.h"

#include "base/alloc.h"
#include "base/status.h"

typedef struct product {
    const mixt__kernel *kernel;
    mixt__call call;
    mixt__tensor in[2], out[1];
    mixt__matmul_attrs attrs;
    size_t shifted_bytes;
} product;

static mixt__tensor matrix(mixt_dtype dtype, int64_t rows, int64_t columns)
{
    return (mixt__tensor){.dtype = dtype, .shape = {2, {rows, columns}}, .strides = {columns, 1}, .contiguous = true};
}

static void describe(product *p, const mixt__call *call)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[2]);
    p->kernel = NULL;
    p->in[0] = matrix(call->out[0].dtype, s.batch * s.steps, 4 * s.hidden);
    p->in[1] = matrix(call->in[1].dtype, s.batch * s.steps, s.hidden);
    p->out[0] = matrix(call->out[1].dtype, 4 * s.hidden, s.hidden);
    p->attrs = (mixt__matmul_attrs){.trans_a = true, .alpha = 1.0f};
    p->call = (mixt__call){.op = call->op,
                           .attrs = &p->attrs,
                           .layer = call->layer,
                           .arithmetic = call->arithmetic,
                           .in_count = 2,
                           .out_count = 1,
                           .in = p->in,
                           .out = p->out};
    p->shifted_bytes = ((size_t)(s.batch * s.steps * s.hidden) * mixt_dtype_size(call->in[1].dtype) + 255) / 256 * 256;
}

mixt_status mixt__cuda_lstm_grad_prepare(mixt__call *call, mixt__arena *arena)
{
    const char *reason;
    product *p = mixt__arena_alloc(arena, sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the weight gradient's product", call->layer);
    describe(p, call);
    call->state = p;
    call->workspace_bytes = p->shifted_bytes;
    if (!p->shifted_bytes)
        return MIXT_OK;
    for (int k = 0; !p->kernel && mixt__cuda_matmul_kernels[k]; k++)
        if (!mixt__cuda_matmul_kernels[k]->supports || mixt__cuda_matmul_kernels[k]->supports(&p->call, &reason))
            p->kernel = mixt__cuda_matmul_kernels[k];
    if (p->kernel->prepare)
        MIXT_TRY(p->kernel->prepare(&p->call, arena));
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[2]);
    size_t own = (size_t)(s.batch * s.hidden) * sizeof(float);
    call->workspace_bytes += p->call.workspace_bytes;
    if (call->workspace_bytes < own)
        call->workspace_bytes = own;
    return MIXT_OK;
}

mixt_status mixt__cuda_lstm_grad_prepare_tensor(mixt__call *call, mixt__arena *arena)
{
    MIXT_TRY(mixt__cuda_lstm_grad_prepare(call, arena));
    return mixt__cuda_prepare_tensor(call, arena);
}

/** No steps, no gradient. */
static mixt_status clear(const mixt__tensor *grad_weight)
{
    size_t bytes = (size_t)mixt__tensor_count(grad_weight) * mixt_dtype_size(grad_weight->dtype);
    return mixt__cuda_check(cudaMemsetAsync(grad_weight->data, 0, bytes, mixt__cuda.stream),
                            "clearing a weight gradient");
}

mixt_status mixt__cuda_lstm_weight_run(const mixt__call *call)
{
    product *p = call->state;
    if (!p->kernel)
        return call->accumulate >> 1 & 1 ? MIXT_OK : clear(&call->out[1]);
    p->in[0].data = call->out[0].data;
    p->in[1].data = call->workspace;
    p->out[0].data = call->out[1].data;
    p->call.accumulate = call->accumulate >> 1 & 1;
    p->call.workspace = (char *)call->workspace + p->shifted_bytes;
    MIXT_TRY(mixt__cuda_lstm_shift(&call->in[1], call->workspace));
    return p->kernel->run(&p->call);
}

void mixt__cuda_lstm_grad_release(mixt__call *call)
{
    product *p = call->state;
    if (p && p->kernel && p->kernel->release)
        p->kernel->release(&p->call);
}
