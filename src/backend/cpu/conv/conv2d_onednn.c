/* Convolution and its gradients by oneDNN, in FP32 and BF16: activations stay NHWC, the weight is reordered at each run
 * into the layout that oneDNN prefers. Only the direct algorithm: Winograd's is inexact.
 */
#include "backend/cpu/conv/conv2d.h"
#include "backend/cpu/core/program_onednn.h"
#include "base/isa.h"

typedef struct descs {
    dnnl_memory_desc_t src, dst, weight, weight_any, bias; // as oneDNN counts: (N, C, H, W) and (O, C, KH, KW)
    dnnl_dims_t strides, pad;
} descs;

static dnnl_memory_desc_t any_layout(const dnnl_memory_desc_t *plain, dnnl_data_type_t type)
{
    dnnl_memory_desc_t desc;
    if (dnnl_memory_desc_init_by_tag(&desc, plain->ndims, plain->dims, type, dnnl_format_tag_any) != dnnl_success)
        desc = (dnnl_memory_desc_t){0};
    return desc;
}

static descs descs_of(const mixt__call *call)
{
    static const int channels_last[] = {0, 3, 1, 2}, vector[] = {0};
    mixt__conv v = mixt__conv_of(call);
    bool grad_weight = call->op == &mixt__op_conv2d_grad_weight;
    dnnl_data_type_t type = mixt__onednn_type(call->in[0].dtype);
    dnnl_data_type_t weight_type = mixt__onednn_type(grad_weight ? call->out[0].dtype : call->in[1].dtype);
    descs d = {.strides = {v.stride, v.stride}, .pad = {v.pad, v.pad}};
    d.src = mixt__onednn_plain((int64_t[]){v.n, v.h, v.w, v.c}, 4, channels_last, type);
    d.dst = mixt__onednn_plain((int64_t[]){v.n, v.out_h, v.out_w, v.o}, 4, channels_last, type);
    d.weight = mixt__onednn_plain((int64_t[]){v.o, v.kernel_h, v.kernel_w, v.c}, 4, channels_last, weight_type);
    d.weight_any = any_layout(&d.weight, weight_type);
    d.bias = mixt__onednn_plain(&v.o, 1, vector, dnnl_f32);
    return d;
}

static dnnl_status_t make_desc(const descs *d, dnnl_prop_kind_t kind, bool bias, const_dnnl_primitive_desc_t hint,
                               dnnl_primitive_desc_t *desc)
{
    dnnl_convolution_desc_t c;
    dnnl_status_t status = dnnl_success;
    const dnnl_memory_desc_t *w = &d->weight_any;
    if (kind == dnnl_forward_training)
        status = dnnl_convolution_forward_desc_init(&c, kind, dnnl_convolution_direct, &d->src, w,
                                                    bias ? &d->bias : NULL, &d->dst, d->strides, d->pad, d->pad);
    else if (kind == dnnl_backward_data)
        status = dnnl_convolution_backward_data_desc_init(&c, dnnl_convolution_direct, &d->src, w, &d->dst, d->strides,
                                                          d->pad, d->pad);
    else
        status = dnnl_convolution_backward_weights_desc_init(&c, dnnl_convolution_direct, &d->src, w, NULL, &d->dst,
                                                             d->strides, d->pad, d->pad);
    if (status != dnnl_success)
        return status;
    dnnl_primitive_attr_t attributes = mixt__onednn_attributes(false);
    status =
        attributes ? dnnl_primitive_desc_create(desc, &c, attributes, mixt__onednn_engine(), hint) : dnnl_out_of_memory;
    dnnl_primitive_attr_destroy(attributes);
    return status;
}

/** The primitive descriptor of a call; gradients need the forward's as a hint. */
static dnnl_status_t desc_of(const mixt__call *call, const descs *d, dnnl_primitive_desc_t *desc)
{
    const mixt__conv2d_attrs *attrs = call->attrs;
    if (call->op == &mixt__op_conv2d)
        return make_desc(d, dnnl_forward_training, attrs->bias, NULL, desc);
    dnnl_primitive_desc_t hint = NULL;
    descs forward = *d;
    forward.weight_any = any_layout(&d->weight, d->src.data_type); // a gradient may be FP32 where the weight is BF16
    dnnl_status_t status = make_desc(&forward, dnnl_forward_training, false, NULL, &hint);
    if (status == dnnl_success)
        status = make_desc(d, call->op == &mixt__op_conv2d_grad_src ? dnnl_backward_data : dnnl_backward_weights, false,
                           hint, desc);
    dnnl_primitive_desc_destroy(hint);
    return status;
}

static mixt_status forward_program(mixt__onednn_program *p, const mixt__call *call, const descs *d,
                                   const_dnnl_primitive_desc_t desc)
{
    const mixt__conv2d_attrs *attrs = call->attrs;
    bool back = call->op == &mixt__op_conv2d_grad_src;
    int in, user_weight, weight, out, bias = 0;
    const dnnl_memory_desc_t *preferred = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
    MIXT_TRY(mixt__onednn_memory(p, back ? &d->dst : &d->src, MIXT_ONEDNN_IN0, &in));
    MIXT_TRY(mixt__onednn_memory(p, &d->weight, MIXT_ONEDNN_IN1, &user_weight));
    MIXT_TRY(mixt__onednn_memory(p, preferred, MIXT_ONEDNN_WORKSPACE, &weight));
    MIXT_TRY(mixt__onednn_memory(p, back ? &d->src : &d->dst, MIXT_ONEDNN_OUT, &out));
    MIXT_TRY(mixt__onednn_reorder(p, user_weight, weight, false, MIXT_ONEDNN_ALWAYS));
    if (back) {
        mixt__onednn_arg args[] = {{DNNL_ARG_DIFF_DST, in}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DIFF_SRC, out}};
        return mixt__onednn_step(p, desc, MIXT_ONEDNN_ALWAYS, args, 3);
    }
    if (attrs->bias)
        MIXT_TRY(mixt__onednn_memory(p, &d->bias, MIXT_ONEDNN_IN2, &bias));
    mixt__onednn_arg args[] = {
        {DNNL_ARG_SRC, in}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, out}, {DNNL_ARG_BIAS, bias}};
    return mixt__onednn_step(p, desc, MIXT_ONEDNN_ALWAYS, args, attrs->bias ? 4 : 3);
}

static mixt_status grad_weight_program(mixt__onednn_program *p, const mixt__call *call, const descs *d,
                                       const_dnnl_primitive_desc_t desc)
{
    int src, grad, weight, out;
    const dnnl_memory_desc_t *preferred = dnnl_primitive_desc_query_md(desc, dnnl_query_diff_weights_md, 0);
    MIXT_TRY(mixt__onednn_memory(p, &d->src, MIXT_ONEDNN_IN0, &src));
    MIXT_TRY(mixt__onednn_memory(p, &d->dst, MIXT_ONEDNN_IN1, &grad));
    MIXT_TRY(mixt__onednn_memory(p, preferred, MIXT_ONEDNN_WORKSPACE, &weight));
    MIXT_TRY(mixt__onednn_memory(p, &d->weight, MIXT_ONEDNN_OUT, &out));
    mixt__onednn_arg args[] = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DIFF_DST, grad}, {DNNL_ARG_DIFF_WEIGHTS, weight}};
    MIXT_TRY(mixt__onednn_step(p, desc, MIXT_ONEDNN_ALWAYS, args, 3));
    MIXT_TRY(mixt__onednn_reorder(p, weight, out, false, MIXT_ONEDNN_IF_OVERWRITING));
    if (call->out[0].dtype == MIXT_DTYPE_FP32) // only parameter gradients are added to, and those are FP32
        MIXT_TRY(mixt__onednn_reorder(p, weight, out, true, MIXT_ONEDNN_IF_ACCUMULATING));
    return MIXT_OK;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    descs d = descs_of(call);
    dnnl_primitive_desc_t desc = NULL;
    mixt__onednn_program *program = mixt__arena_alloc(arena, sizeof *program);
    if (!program)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    MIXT_TRY_ONEDNN(desc_of(call, &d, &desc), "a convolution");
    mixt_status status = call->op == &mixt__op_conv2d_grad_weight ? grad_weight_program(program, call, &d, desc)
                                                                  : forward_program(program, call, &d, desc);
    dnnl_primitive_desc_destroy(desc);
    return mixt__onednn_keep(call, program, status);
}

static bool has_fast_code(const mixt__call *call)
{
    dnnl_primitive_desc_t desc = NULL;
    descs d = descs_of(call);
    if (desc_of(call, &d, &desc) != dnnl_success)
        return false;
    bool fast = mixt__onednn_is_fast(desc);
    dnnl_primitive_desc_destroy(desc);
    return fast;
}

static bool supports(const mixt__call *call, const char **reason)
{
    bool low = call->in[0].dtype == MIXT_DTYPE_BF16;
    mixt__conv v = mixt__conv_of(call);
    if (!mixt__conv_is_ordinary(call, reason))
        return false;
    if (mixt__onednn_type(call->in[0].dtype) == dnnl_data_type_undef || call->in[0].dtype != call->in[1].dtype)
        *reason = "oneDNN: fp32 or bf16 only";
    else if (call->out[0].dtype != MIXT_DTYPE_FP32 && call->out[0].dtype != call->in[0].dtype)
        *reason = "oneDNN: result must be fp32 or have the operands' format";
    else if (low && mixt__isa_level() < MIXT_ISA_AVX512_BF16)
        *reason = "this CPU has no BF16 products";
    else if (!low && v.kernel_h == 1 && v.kernel_w == 1 && v.stride == 1 && v.pad == 0)
        *reason = "a 1x1 convolution in FP32 is as fast as a product of the engine";
    else if (!mixt__onednn_engine())
        *reason = "oneDNN cannot start";
    else if (v.pad >= v.kernel_h || v.pad >= v.kernel_w)
        *reason = "oneDNN: padding as wide as the kernel";
    else if (!has_fast_code(call))
        *reason = "oneDNN has only its reference code for this shape";
    return !*reason;
}

const mixt__kernel mixt__conv2d_onednn = {.name = "onednn",
                                          .supports = supports,
                                          .prepare = prepare,
                                          .run = mixt__onednn_run,
                                          .release = mixt__onednn_release};
const mixt__kernel mixt__conv2d_grad_src_onednn = {.name = "onednn",
                                                   .supports = supports,
                                                   .prepare = prepare,
                                                   .run = mixt__onednn_run,
                                                   .release = mixt__onednn_release};
const mixt__kernel mixt__conv2d_grad_weight_onednn = {.name = "onednn",
                                                      .supports = supports,
                                                      .prepare = prepare,
                                                      .run = mixt__onednn_run,
                                                      .release = mixt__onednn_release};
