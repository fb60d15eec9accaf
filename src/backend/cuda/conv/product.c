/* A convolution with one tap, stride 1 and no padding is a matrix product over the pixels, and so are its gradients.
 * The matrix product's own candidates do it.
 *
 * The weight's gradient: cuDNN would compile an engine for each such shape with an FP32 result, seconds a shape;
 * cuBLASLt has it ready, reads at 3.3 to 3.9 TB/s on an H200, and adds to a parameter's gradient without a second pass.
 * The others only in strict FP32, where cuDNN has no fast engine for channels last. */
#include "backend/cuda/conv/conv2d.h"
#include "backend/cuda/kernels.h"

#include "base/alloc.h"
#include "base/status.h"

/** A call of the matrix product, and who runs it. */
typedef struct product {
    const mixt__kernel *kernel;
    mixt__call call;
    mixt__matmul_attrs attrs;
    mixt__tensor in[3], out[1];
} product;

/** (N, H, W, C) as (N · H · W, C), a volume likewise. */
static mixt__tensor flat(const mixt__tensor *t)
{
    int64_t last = mixt__tensor_last(t);
    mixt__tensor r = *t;
    r.shape = (mixt__shape){2, {last ? mixt__tensor_count(t) / last : 0, last}};
    r.strides[0] = last;
    r.strides[1] = 1;
    return r;
}

/** dst (P, O) = src (P, C) · weight (O, C)ᵀ + bias; grad_src (P, C) = grad_dst (P, O) · weight (O, C);
 *  grad_weight (O, C) = grad_dst (P, O)ᵀ · src (P, C). */
static void make(product *p, const mixt__call *call, mixt__cuda_conv_kind kind)
{
    bool swapped = kind == MIXT_CONV_GRAD_WEIGHT;
    *p =
        (product){.call = *call,
                  .attrs = {.trans_a = kind == MIXT_CONV_GRAD_WEIGHT, .trans_b = kind == MIXT_CONV_FORWARD, .alpha = 1},
                  .in = {flat(&call->in[swapped]), flat(&call->in[!swapped])},
                  .out = {flat(&call->out[0])}};
    if (call->in_count == 3) {
        p->attrs.bias = true;
        p->in[2] = call->in[2];
    }
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

static bool supports(const mixt__call *call, mixt__cuda_conv_kind kind, const char **reason)
{
    mixt__cuda_conv v = mixt__cuda_conv_of(call, kind);
    product p;
    *reason = "only one tap, stride 1 and no padding";
    if (v.kernel_d != 1 || v.kernel_h != 1 || v.kernel_w != 1 || v.stride_d != 1 || v.stride != 1 || v.pad_d || v.pad ||
        mixt__conv_unusual(&v, false))
        return false;
    *reason = "only strict FP32";
    if (kind != MIXT_CONV_GRAD_WEIGHT && !mixt__cuda_conv_strict(call))
        return false;
    make(&p, call, kind);
    return find(&p, reason) != NULL;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena, mixt__cuda_conv_kind kind)
{
    const char *reason;
    product *p = mixt__arena_alloc(arena, sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    make(p, call, kind);
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
    bool swapped = p.attrs.trans_a;
    p.in[0].data = call->in[swapped].data;
    p.in[1].data = call->in[!swapped].data;
    if (call->in_count == 3)
        p.in[2].data = call->in[2].data;
    p.out[0].data = call->out[0].data;
    p.call.attrs = &p.attrs;
    p.call.in = p.in;
    p.call.out = p.out;
    p.call.workspace = call->workspace;
    p.call.accumulate = call->accumulate;
    return p.kernel->run(&p.call);
}

#define CANDIDATE(op, kind)                                                                                            \
    static bool op##_supports(const mixt__call *call, const char **reason)                                             \
    {                                                                                                                  \
        return supports(call, kind, reason);                                                                           \
    }                                                                                                                  \
    static mixt_status op##_prepare(mixt__call *call, mixt__arena *arena)                                              \
    {                                                                                                                  \
        return prepare(call, arena, kind);                                                                             \
    }                                                                                                                  \
    const mixt__kernel mixt__cuda_##op##_product = {                                                                   \
        .name = "product", .supports = op##_supports, .prepare = op##_prepare, .run = run}

CANDIDATE(conv2d, MIXT_CONV_FORWARD);
CANDIDATE(conv2d_grad_src, MIXT_CONV_GRAD_SRC);
CANDIDATE(conv2d_grad_weight, MIXT_CONV_GRAD_WEIGHT);
