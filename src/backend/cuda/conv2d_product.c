/* The weight's gradient of a convolution with one tap, stride 1 and no padding is a matrix product over the pixels.
 * cuDNN would compile an engine for each such shape with an FP32 result, seconds a shape; cuBLASLt has it ready, reads
 * at 3.3 to 3.9 TB/s on an H200, and adds to a parameter's gradient without a second pass. The matrix product's own
 * candidates do it. */
#include "backend/cuda/conv2d.h"
#include "backend/cuda/kernels.h"

#include "base/alloc.h"
#include "base/status.h"

/** A call of the matrix product, and who runs it. */
typedef struct product {
    const mixt__kernel *kernel;
    mixt__call call;
    mixt__matmul_attrs attrs;
    mixt__tensor in[2], out[1];
} product;

/** (N, H, W, C) as (N · H · W, C). */
static mixt__tensor flat(const mixt__tensor *t)
{
    int64_t last = mixt__tensor_last(t);
    mixt__tensor r = *t;
    r.shape = (mixt__shape){2, {last ? mixt__tensor_count(t) / last : 0, last}};
    r.strides[0] = last;
    r.strides[1] = 1;
    return r;
}

/** grad_weight (O, C) = grad_dst (P, O)ᵀ · src (P, C). */
static void make(product *p, const mixt__call *call)
{
    *p = (product){.call = *call,
                   .attrs = {.trans_a = true, .alpha = 1},
                   .in = {flat(&call->in[1]), flat(&call->in[0])},
                   .out = {flat(&call->out[0])}};
    p->call.attrs = &p->attrs;
    p->call.in = p->in;
    p->call.out = p->out;
    p->call.workspace_bytes = 0;
}

/** The matrix product's first candidate that takes it, the plain one apart. */
static const mixt__kernel *find(const product *p, const char **reason)
{
    const mixt__kernel *const *list = mixt__cuda_matmul_kernels;
    *reason = "no matrix product takes it";
    for (; list && *list && list[1]; list++)
        if (!(*list)->supports || (*list)->supports(&p->call, reason))
            return *list;
    return NULL;
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__cuda_conv v = mixt__cuda_conv_of(call, MIXT_CONV_GRAD_WEIGHT);
    product p;
    *reason = "only one tap, stride 1 and no padding";
    if (v.kernel_h != 1 || v.kernel_w != 1 || v.stride != 1 || v.pad)
        return false;
    make(&p, call);
    return find(&p, reason) != NULL;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    const char *reason;
    product *p = mixt__arena_alloc(arena, sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    make(p, call);
    p->kernel = find(p, &reason);
    if (!p->kernel)
        return mixt__fail(MIXT_ERROR_DEVICE, "a convolution as a matrix product: %s", reason);
    if (p->kernel->prepare)
        MIXT_TRY(p->kernel->prepare(&p->call, arena));
    call->workspace_bytes = p->call.workspace_bytes;
    call->tensor_cores = p->call.tensor_cores;
    call->state = p;
    return MIXT_OK;
}

static mixt_status run(const mixt__call *call)
{
    product p = *(const product *)call->state;
    p.in[0].data = call->in[1].data;
    p.in[1].data = call->in[0].data;
    p.out[0].data = call->out[0].data;
    p.call.attrs = &p.attrs;
    p.call.in = p.in;
    p.call.out = p.out;
    p.call.workspace = call->workspace;
    p.call.accumulate = call->accumulate;
    return p.kernel->run(&p.call);
}

const mixt__kernel mixt__cuda_conv2d_grad_weight_product = {
    .name = "product", .supports = supports, .prepare = prepare, .run = run};
