/* A convolution with one tap, stride 1 and no padding is a matrix product over the pixels: so are its gradients, and
 * cuBLASLt adds to a parameter's gradient in FP32 without a second pass. The matrix product's own candidates do it. */
#include "backend/cuda/conv2d.h"
#include "backend/cuda/kernels.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

/** A call of the matrix product, and who runs it. */
typedef struct product {
    const mixt__kernel *kernel;
    mixt__call call;
    mixt__matmul_attrs attrs;
    mixt__tensor in[3], out[1];
} product;

/** The operands of the product among the convolution's inputs, and which of them is turned. */
typedef struct roles {
    int a, b;
    bool trans_a, trans_b;
} roles;

static const roles roles_of[] = {
    [MIXT_CONV_FORWARD] = {0, 1, false, true},     // dst (P, O) = src (P, C) · weight (O, C)ᵀ
    [MIXT_CONV_GRAD_SRC] = {0, 1, false, false},   // grad_src (P, C) = grad_dst (P, O) · weight (O, C)
    [MIXT_CONV_GRAD_WEIGHT] = {1, 0, true, false}, // grad_weight (O, C) = grad_dst (P, O)ᵀ · src (P, C)
};

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

static void make(product *p, const mixt__call *call, mixt__cuda_conv_kind kind)
{
    const roles *r = &roles_of[kind];
    bool bias = kind == MIXT_CONV_FORWARD && call->in_count == 3;
    *p = (product){.call = *call,
                   .attrs = {.trans_a = r->trans_a, .trans_b = r->trans_b, .bias = bias, .alpha = 1},
                   .in = {flat(&call->in[r->a]), flat(&call->in[r->b])},
                   .out = {flat(&call->out[0])}};
    if (bias)
        p->in[2] = call->in[2];
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
    if (v.kernel_h != 1 || v.kernel_w != 1 || v.stride != 1 || v.pad)
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

static mixt_status run(const mixt__call *call, mixt__cuda_conv_kind kind)
{
    product p = *(const product *)call->state;
    p.in[0].data = call->in[roles_of[kind].a].data;
    p.in[1].data = call->in[roles_of[kind].b].data;
    if (p.attrs.bias)
        p.in[2].data = call->in[2].data;
    p.out[0].data = call->out[0].data;
    p.call.attrs = &p.attrs;
    p.call.in = p.in;
    p.call.out = p.out;
    p.call.workspace = call->workspace;
    p.call.accumulate = call->accumulate;
    return p.kernel->run(&p.call);
}

/* ---- candidates ---- */

#define CANDIDATE(op, kind)                                                                                            \
    static bool op##_supports(const mixt__call *call, const char **reason)                                             \
    {                                                                                                                  \
        return supports(call, kind, reason);                                                                           \
    }                                                                                                                  \
    static mixt_status op##_prepare(mixt__call *call, mixt__arena *arena)                                              \
    {                                                                                                                  \
        return prepare(call, arena, kind);                                                                             \
    }                                                                                                                  \
    static mixt_status op##_run(const mixt__call *call)                                                                \
    {                                                                                                                  \
        return run(call, kind);                                                                                        \
    }                                                                                                                  \
    const mixt__kernel mixt__cuda_##op##_product = {                                                                   \
        .name = "product", .supports = op##_supports, .prepare = op##_prepare, .run = op##_run}

CANDIDATE(conv2d, MIXT_CONV_FORWARD);
CANDIDATE(conv2d_grad_src, MIXT_CONV_GRAD_SRC);
CANDIDATE(conv2d_grad_weight, MIXT_CONV_GRAD_WEIGHT);
