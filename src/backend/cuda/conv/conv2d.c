/* Convolution and its gradients through cuDNN's graph API, channels last, engines timed at plan time.
 *
 * folded:       few channels, folded into 16 first, on our own kernels (conv2d.h); not for the gradient of the source.
 * folded_cudnn: the same in other sizes.
 * product:      one tap: a matrix product (product.c).
 * implicit:     strict FP32 (implicit.cu).
 * cudnn:        the convolution as it is.
 * plain:        plain.cu, for what cuDNN has no engine for.
 *
 * A parameter's gradient comes out in FP32; cuDNN cannot add to it, so when it is added to, cuDNN writes beside it.
 */
#include "backend/cuda/conv/conv2d.h"
#include "backend/cuda/core/cudnn_graph.h"
#include "backend/cuda/kernels.h"

#include "base/alloc.h"
#include "base/log.h"
#include "base/status.h"

#include <string.h>

enum {
    ALIGNMENT = 256,
    FOLD_CHANNELS = 4,
    FOLD_DEPTH = 4,
    FOLD_STRIDE = 2,
    FOLD_ROWS = 32768,
    FOLD_SHARED = 48 * 1024,
    SMALL = 1 << 19
};

typedef enum way { WAY_CUDNN, WAY_IMPLICIT, WAY_FOLDED_CUDNN, WAY_FOLDED } way;

static bool is_folded(way way)
{
    return way >= WAY_FOLDED_CUDNN;
}

/** What prepare leaves for run. */
typedef struct plan {
    const mixt__cudnn_plan *cudnn; // NULL: our own kernels
    mixt__cuda_conv_kind kind;
    mixt__cuda_fold fold;
    size_t src_at, weight_at, result_at; // in the workspace; what the kernel itself needs begins it
} plan;

/* ---- the graph ---- */

/** Of planes, or with `volume` of volumes. */
static mixt__cudnn_shape channels_last(mixt_dtype dtype, bool volume, int64_t n, int64_t d, int64_t h, int64_t w,
                                       int64_t c)
{
    if (volume)
        return (mixt__cudnn_shape){.type = mixt__cudnn_type(dtype),
                                   .rank = 5,
                                   .dims = {n, c, d, h, w},
                                   .strides = {d * h * w * c, 1, h * w * c, w * c, c}};
    return (mixt__cudnn_shape){
        .type = mixt__cudnn_type(dtype), .rank = 4, .dims = {n, c, h, w}, .strides = {h * w * c, 1, w * c, c}};
}

/** Zeros behind an axis, as many as the last window reaches: those that no window sees are no part of it. */
static int64_t pad_after(int64_t size, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad)
{
    int64_t reach = (out - 1) * stride + (kernel - 1) * dilation + 1 - pad - size;
    return reach > 0 ? reach : 0;
}

/** The paddings, strides and dilations of a convolution, depth first where there is one. */
static mixt__cudnn_conv spatial_of(const mixt__cuda_conv *v)
{
    mixt__cudnn_conv conv = {.spatial = v->volume ? 3 : 2};
    const int64_t axes[3][6] = {{v->d, v->out_d, v->kernel_d, v->stride_d, v->dilation_d, v->pad_d},
                                {v->h, v->out_h, v->kernel_h, v->stride, v->dilation_h, v->pad},
                                {v->w, v->out_w, v->kernel_w, v->stride_w, v->dilation_w, v->pad_w}};
    for (int i = 0; i < conv.spatial; i++) {
        const int64_t *a = axes[i + (v->volume ? 0 : 1)];
        conv.stride[i] = a[3];
        conv.dilation[i] = a[4];
        conv.pad_before[i] = a[5];
        conv.pad_after[i] = v->uneven ? pad_after(a[0], a[1], a[2], a[3], a[4], a[5]) : a[5];
    }
    return conv;
}

/** How the result leaves the convolution: as it is, or through an operation that lets cuDNN compile an engine for it.
 */
typedef enum exit_kind { EXIT_DIRECT, EXIT_COPY, EXIT_BIAS } exit_kind;

static void describe(mixt__cudnn_graph *g, const mixt__cuda_conv *v, mixt__cuda_conv_kind kind, mixt_dtype in,
                     mixt_dtype out, exit_kind leaving)
{
    bool deep = v->volume;
    mixt__cudnn_shape src = channels_last(kind == MIXT_CONV_GRAD_SRC ? out : in, deep, v->n, v->d, v->h, v->w, v->c);
    mixt__cudnn_shape weight = channels_last(kind == MIXT_CONV_GRAD_WEIGHT ? out : in, deep, v->o, v->kernel_d,
                                             v->kernel_h, v->kernel_w, v->c / v->groups);
    mixt__cudnn_shape dst =
        channels_last(kind == MIXT_CONV_FORWARD ? out : in, deep, v->n, v->out_d, v->out_h, v->out_w, v->o);
    mixt__cudnn_shape bias = channels_last(MIXT_DTYPE_FP32, deep, 1, 1, 1, 1, v->o);
    src.by_batch = dst.by_batch = true;
    const mixt__cudnn_shape *operands[3][3] = {// of each kind: two inputs, the result
                                               {&src, &weight, &dst},
                                               {&dst, &weight, &src},
                                               {&src, &dst, &weight}};
    int a = mixt__cudnn_memory(g, operands[kind][0]), b = mixt__cudnn_memory(g, operands[kind][1]);
    int added = leaving == EXIT_BIAS ? mixt__cudnn_memory(g, &bias) : 0;
    int result = mixt__cudnn_memory(g, operands[kind][2]), raw = result;
    if (leaving != EXIT_DIRECT) {
        mixt__cudnn_shape exact = *operands[kind][2];
        exact.type = CUDNN_DATA_FLOAT;
        raw = mixt__cudnn_virtual(g, &exact);
    }
    mixt__cudnn_conv conv = spatial_of(v);
    conv.kind = (mixt__cudnn_conv_kind)kind;
    conv.src = kind == MIXT_CONV_GRAD_SRC ? raw : a;
    conv.weight = kind == MIXT_CONV_GRAD_WEIGHT ? raw : b;
    conv.dst = kind == MIXT_CONV_FORWARD ? raw : kind == MIXT_CONV_GRAD_SRC ? a : b;
    mixt__cudnn_convolve(g, &conv);
    if (leaving != EXIT_DIRECT) {
        mixt__cudnn_pointwise map = {
            .mode = added ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_IDENTITY, .x = raw, .b = added, .dst = result};
        mixt__cudnn_map(g, &map);
    }
}

/** The fastest engine over all ways out that the call allows. */
static mixt_status choose(const mixt__call *call, mixt__cuda_conv_kind kind, const mixt__cuda_conv *v, mixt_dtype out,
                          const mixt__cudnn_plan **best)
{
    const mixt__conv2d_attrs *at = call->attrs;
    mixt_dtype in = call->in[0].dtype;
    mixt__cudnn_wish wish = {.strict_fp32 = mixt__cuda_conv_strict(call)};
    bool bias = kind == MIXT_CONV_FORWARD && at->bias;
    exit_kind ways[2] = {bias ? EXIT_BIAS : EXIT_DIRECT, EXIT_COPY};
    int count = kind == MIXT_CONV_GRAD_WEIGHT && out != in ? 2 : 1;
    mixt_status status = MIXT_OK;
    *best = NULL;
    for (int i = 0; i < count; i++) {
        const mixt__cudnn_plan *one = NULL;
        mixt__cudnn_graph g;
        mixt__cudnn_begin(&g, mixt__cuda_of(call), call->op->name);
        describe(&g, v, kind, in, out, ways[i]);
        wish.few = ways[i] == EXIT_COPY;
        status = mixt__cudnn_choose(&g, &wish, &one);
        mixt__cudnn_end(&g);
        if (one && (!*best || mixt__cudnn_seconds(one) < mixt__cudnn_seconds(*best)))
            *best = one;
    }
    return *best ? MIXT_OK : status;
}

/* ---- what is supported ---- */

static bool is_float(const mixt__tensor *t)
{
    return t->dtype == MIXT_DTYPE_FP32 || t->dtype == MIXT_DTYPE_FP16 || t->dtype == MIXT_DTYPE_BF16;
}

static bool is_ordinary(const mixt__call *call, const mixt__cuda_conv *v, const char **reason)
{
    *reason = NULL;
    if (!is_float(&call->in[0]) || !is_float(&call->in[1]) || !is_float(&call->out[0]))
        *reason = "only fp32, fp16 and bf16";
    else if (!v->n || !v->d || !v->h || !v->w || !v->c || !v->out_d || !v->out_h || !v->out_w || !v->o)
        *reason = "nothing to multiply";
    return !*reason;
}

/** grad_weight leaves cuDNN in FP32 when it is unfolded or added to afterwards. */
static mixt_dtype result_dtype(const mixt__call *call, mixt__cuda_conv_kind kind, way way)
{
    return kind == MIXT_CONV_GRAD_WEIGHT && is_folded(way) ? MIXT_DTYPE_FP32 : call->out[0].dtype;
}

/** cuDNN's FP16 engines for small sizes, which are taken without timing, were seen to turn -inf into 0: an overflow
 * must stay one. */
static bool loses_infinity(const mixt__call *call, const mixt__cuda_conv *v, mixt__cuda_conv_kind kind)
{
    int64_t elements = v->n * (v->d * v->h * v->w * v->c + v->out_d * v->out_h * v->out_w * v->o);
    return kind == MIXT_CONV_FORWARD && call->in[0].dtype == MIXT_DTYPE_FP16 && elements < SMALL;
}

/** cuDNN 9.19 gives wrong FP32 gradients of weights from 16-bit values with 2 or 4 channels, or 132 outputs; odd
 * numbers and multiples of 8 are right. Groups were never run: they are left to the plain kernel. */
static bool loses_channels(const mixt__call *call, const mixt__cuda_conv *v, mixt__cuda_conv_kind kind,
                           mixt_dtype result)
{
    bool risky = (v->c % 2 == 0 && v->c % 8) || (v->o % 2 == 0 && v->o % 8) || v->groups > 1;
    return kind == MIXT_CONV_GRAD_WEIGHT && mixt_dtype_size(call->in[0].dtype) == 2 && result == MIXT_DTYPE_FP32 &&
           risky;
}

/** The weight's gradient from three channels of a plane in 16 bits is the one for which cuDNN needs no folding: of 1 or
 * 2 channels, and of volumes, it has no engine, of 4 a wrong one, in TF32 a slow one. */
static bool cudnn_is_quick(const mixt__call *call, const mixt__cuda_conv *v, mixt__cuda_conv_kind kind)
{
    return kind == MIXT_CONV_GRAD_WEIGHT && mixt_dtype_size(call->in[0].dtype) == 2 && !v->volume && v->c == 3;
}

/** cuDNN's strict FP32 gradients of weights come from engines that do not sum directly and do not say so: integers come
 * out 1e-5 off. It is left what our own kernel does not take. */
static bool sums_indirectly(const mixt__call *call, const mixt__cuda_conv *v, mixt__cuda_conv_kind kind)
{
    return !mixt__conv_unusual(v, false) && kind == MIXT_CONV_GRAD_WEIGHT && mixt__cuda_conv_strict(call) &&
           mixt__cuda_implicit_supports(mixt__cuda_of(call), v, kind);
}

/** The same was seen in TF32 of small planes folded from volumes: -123.9993 instead of -124. */
static bool folded_sums_indirectly(const mixt__call *call, const mixt__cuda_conv *v, mixt__cuda_conv_kind kind)
{
    return kind == MIXT_CONV_GRAD_WEIGHT && v->volume && call->in[0].dtype == MIXT_DTYPE_FP32;
}

/** cuDNN 9.19 adds the parts of a 16-bit gradient of one tap of a volume in 16 bits, and does not say so. */
static bool rounds_parts(const mixt__call *call, const mixt__cuda_conv *v, mixt__cuda_conv_kind kind)
{
    return kind == MIXT_CONV_GRAD_WEIGHT && v->volume && v->kernel_d * v->kernel_h * v->kernel_w == 1 &&
           mixt_dtype_size(call->out[0].dtype) == 2;
}

/** Whether folding is for this call at all. */
static bool folds(const mixt__call *call, const mixt__cuda_fold *fold, const char **reason)
{
    const mixt__cuda_conv *v = &fold->from;
    if (v->c > FOLD_CHANNELS || v->kernel_d > FOLD_DEPTH || v->stride > FOLD_STRIDE || v->h > FOLD_ROWS)
        *reason = "enough channels as they are, or a deep kernel, a large stride or image";
    else if (mixt__cuda_fold_shared(fold, call->in[0].dtype) > FOLD_SHARED)
        *reason = "rows too long to fold";
    return !*reason;
}

/** The format that a folded call's own kernel multiplies in. */
static mixt_dtype folded_format(const mixt__call *call)
{
    bool tf32 = call->in[0].dtype == MIXT_DTYPE_FP32 && !mixt__cuda_conv_strict(call);
    return tf32 && call->out[0].dtype == MIXT_DTYPE_FP32 ? MIXT_DTYPE_TF32 : call->in[0].dtype;
}

/** Ways on our own kernels. */
static bool own_supports(const mixt__call *call, mixt__cuda_conv_kind kind, way way, const mixt__cuda_fold *fold,
                         const char **reason)
{
    bool strict = mixt__cuda_conv_strict(call) && call->out[0].dtype == MIXT_DTYPE_FP32;
    if (way == WAY_IMPLICIT || strict) {
        *reason = "only strict FP32 from Ampere on, channels by sixteens and fours";
        return strict &&
               mixt__cuda_implicit_supports(mixt__cuda_of(call), way == WAY_IMPLICIT ? &fold->from : &fold->to, kind);
    }
    *reason = "only FP16, BF16 and TF32 from Ampere on, folded to 16 channels and a multiple of 64 outputs, few taps, "
              "rows of a multiple of 16 results that fit shared memory";
    return mixt__cuda_folded_supports(mixt__cuda_of(call), fold, folded_format(call));
}

static bool supports(const mixt__call *call, mixt__cuda_conv_kind kind, way way, const char **reason)
{
    const mixt__cudnn_plan *found;
    mixt__cuda_conv v = mixt__cuda_conv_of(call, kind);
    if (!is_ordinary(call, &v, reason))
        return false;
    const char *unusual = way == WAY_CUDNN ? NULL : mixt__conv_unusual(&v, false);
    if (unusual) {
        *reason = unusual;
        return false;
    }
    mixt__cuda_fold fold = mixt__cuda_fold_of(&v);
    if (is_folded(way) && !folds(call, &fold, reason))
        return false;
    if (way == WAY_FOLDED || way == WAY_IMPLICIT)
        return own_supports(call, kind, way, &fold, reason);
    if (way == WAY_FOLDED_CUDNN && mixt__cuda_conv_strict(call)) {
        *reason = "no matrix units in strict FP32";
        return false;
    }
    if (way == WAY_FOLDED_CUDNN && cudnn_is_quick(call, &v, kind)) {
        *reason = "cuDNN is as quick with three channels as they are";
        return false;
    }
    if (loses_infinity(call, &v, kind)) {
        *reason = "cuDNN's small FP16 convolutions turn -inf into 0";
        return false;
    }
    if (loses_channels(call, way == WAY_CUDNN ? &v : &fold.to, kind, result_dtype(call, kind, way))) {
        *reason = "cuDNN's FP32 gradients of weights are wrong for this number of channels";
        return false;
    }
    if (way == WAY_CUDNN && rounds_parts(call, &v, kind)) {
        *reason = "cuDNN adds parts of this gradient in 16 bits";
        return false;
    }
    if (way == WAY_CUDNN ? sums_indirectly(call, &v, kind) : folded_sums_indirectly(call, &v, kind)) {
        *reason = "cuDNN does not sum FP32 gradients of weights directly";
        return false;
    }
    if (choose(call, kind, way == WAY_CUDNN ? &v : &fold.to, result_dtype(call, kind, way), &found) == MIXT_OK)
        return true;
    MIXT_LOG(DISPATCH, "%s", mixt_error_text());
    *reason = "cuDNN has no engine for it (MIXT_LOG=dispatch says why)";
    return false;
}

/* ---- plans ---- */

/** Takes some of the end of the workspace. */
static size_t reserve(mixt__call *call, int64_t bytes)
{
    size_t at = (call->workspace_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    call->workspace_bytes = at + (size_t)bytes;
    return at;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena, mixt__cuda_conv_kind kind, way way)
{
    mixt__cuda_conv v = mixt__cuda_conv_of(call, kind);
    plan *p = mixt__arena_alloc(arena, sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    *p = (plan){.kind = kind, .fold = mixt__cuda_fold_of(&v)};
    const mixt__cuda_conv *to = is_folded(way) ? &p->fold.to : &v;
    mixt_dtype in = call->in[0].dtype, result = result_dtype(call, kind, way);
    bool implicit = way == WAY_IMPLICIT || (way == WAY_FOLDED && mixt__cuda_conv_strict(call));
    int64_t weights = to->o * to->kernel_d * to->kernel_h * to->kernel_w * (to->c / to->groups);
    call->workspace_bytes = implicit ? mixt__cuda_implicit_workspace(mixt__cuda_of(call), to, kind) : 0;
    if (way == WAY_CUDNN || way == WAY_FOLDED_CUDNN) {
        MIXT_TRY(choose(call, kind, to, result, &p->cudnn));
        call->workspace_bytes = mixt__cudnn_workspace(p->cudnn);
    }
    if (is_folded(way))
        p->src_at = reserve(call, to->n * to->h * to->w * to->c * (int64_t)mixt_dtype_size(in));
    if (is_folded(way) && kind == MIXT_CONV_FORWARD)
        p->weight_at = reserve(call, weights * (int64_t)mixt_dtype_size(in));
    if (way == WAY_FOLDED && !implicit && kind == MIXT_CONV_GRAD_WEIGHT)
        p->result_at =
            reserve(call, (int64_t)mixt__cuda_folded_partials(mixt__cuda_of(call), &p->fold, folded_format(call)));
    else if (way != WAY_IMPLICIT && kind == MIXT_CONV_GRAD_WEIGHT && result == MIXT_DTYPE_FP32)
        p->result_at = reserve(call, weights * (int64_t)sizeof(float));
    call->state = p;
    call->tensor_cores = mixt__cuda_tensor_format(call);
    return MIXT_OK;
}

/* ---- runs ---- */

static void *place(const mixt__call *call, size_t at)
{
    return (char *)call->workspace + at;
}

static mixt_status run_as_is(const mixt__call *call)
{
    const plan *p = call->state;
    void *pointers[4];
    int count = 0;
    for (int i = 0; i < call->in_count; i++)
        pointers[count++] = call->in[i].data;
    pointers[count] = call->out[0].data;
    return mixt__cudnn_run(p->cudnn, pointers, call->workspace);
}

static mixt_status run_folded(const mixt__call *call)
{
    const plan *p = call->state;
    bool implicit = !p->cudnn && mixt__cuda_conv_strict(call);
    mixt_dtype dtype = p->cudnn ? call->in[0].dtype : folded_format(call);
    void *src = place(call, p->src_at), *weight = place(call, p->weight_at);
    MIXT_TRY(mixt__cuda_fold_src(mixt__cuda_of(call), &p->fold, dtype, call->in[0].data, src));
    MIXT_TRY(mixt__cuda_fold_weight(mixt__cuda_of(call), &p->fold, dtype, call->in[1].data, weight));
    const float *bias = call->in_count == 3 ? call->in[2].data : NULL;
    if (implicit)
        return mixt__cuda_implicit_run(mixt__cuda_of(call), &p->fold.to, MIXT_CONV_FORWARD, src, weight, bias,
                                       call->out[0].data, call->workspace, false);
    if (!p->cudnn)
        return mixt__cuda_folded_forward(mixt__cuda_of(call), &p->fold, dtype, src, weight, bias, call->out[0].data);
    void *pointers[4] = {src, weight, call->out[0].data};
    if (call->in_count == 3) {
        pointers[2] = call->in[2].data;
        pointers[3] = call->out[0].data;
    }
    return mixt__cudnn_run(p->cudnn, pointers, call->workspace);
}

static mixt_status run_grad_weight(const mixt__call *call)
{
    const plan *p = call->state;
    if (!(call->accumulate & 1))
        return run_as_is(call);
    float *result = place(call, p->result_at);
    void *pointers[3] = {call->in[0].data, call->in[1].data, result};
    MIXT_TRY(mixt__cudnn_run(p->cudnn, pointers, call->workspace));
    return mixt__cuda_conv_add(mixt__cuda_of(call), call->out[0].data, result, mixt__tensor_count(&call->out[0]));
}

static mixt_status run_grad_weight_folded(const mixt__call *call)
{
    const plan *p = call->state;
    mixt_dtype dtype = p->cudnn ? call->in[0].dtype : folded_format(call);
    float *result = place(call, p->result_at);
    void *pointers[3] = {place(call, p->src_at), call->in[1].data, result};
    MIXT_TRY(mixt__cuda_fold_src(mixt__cuda_of(call), &p->fold, dtype, call->in[0].data, pointers[0]));
    if (p->cudnn)
        MIXT_TRY(mixt__cudnn_run(p->cudnn, pointers, call->workspace));
    else if (mixt__cuda_conv_strict(call))
        MIXT_TRY(mixt__cuda_implicit_run(mixt__cuda_of(call), &p->fold.to, MIXT_CONV_GRAD_WEIGHT, pointers[0],
                                         pointers[1], NULL, result, call->workspace, false));
    else
        return mixt__cuda_folded_grad_weight(mixt__cuda_of(call), &p->fold, dtype, pointers[0], pointers[1], result,
                                             &call->out[0], call->accumulate & 1);
    return mixt__cuda_unfold_weight(mixt__cuda_of(call), &p->fold, call->out[0].dtype, result, call->out[0].data,
                                    call->accumulate & 1);
}

static mixt_status run_implicit(const mixt__call *call)
{
    static const mixt__kernel *const plain[] = {&mixt__cuda_conv_plain, &mixt__cuda_conv_grad_src_plain,
                                                &mixt__cuda_conv_grad_weight_plain}; // by kind
    const plan *p = call->state;
    const float *a = call->in[0].data, *b = call->in[1].data, *bias = call->in_count == 3 ? call->in[2].data : NULL;
    float *dst = call->out[0].data;
    if (((uintptr_t)a | (uintptr_t)b | (uintptr_t)bias | (uintptr_t)dst) % 16)
        return plain[p->kind]->run(call);
    return mixt__cuda_implicit_run(mixt__cuda_of(call), &p->fold.from, p->kind, a, b, bias, dst, call->workspace,
                                   call->accumulate & 1);
}

/* ---- candidates ---- */

#define CANDIDATE(name, kind, way, text, run_fn)                                                                       \
    static bool name##_supports(const mixt__call *call, const char **reason)                                           \
    {                                                                                                                  \
        return supports(call, kind, way, reason);                                                                      \
    }                                                                                                                  \
    static mixt_status name##_prepare(mixt__call *call, mixt__arena *arena)                                            \
    {                                                                                                                  \
        return prepare(call, arena, kind, way);                                                                        \
    }                                                                                                                  \
    static const mixt__kernel name = {text, name##_supports, name##_prepare, run_fn, NULL}

CANDIDATE(forward, MIXT_CONV_FORWARD, WAY_CUDNN, "cudnn", run_as_is);
CANDIDATE(forward_folded_cudnn, MIXT_CONV_FORWARD, WAY_FOLDED_CUDNN, "folded_cudnn", run_folded);
CANDIDATE(forward_folded, MIXT_CONV_FORWARD, WAY_FOLDED, "folded", run_folded);
CANDIDATE(grad_src, MIXT_CONV_GRAD_SRC, WAY_CUDNN, "cudnn", run_as_is);
CANDIDATE(grad_weight, MIXT_CONV_GRAD_WEIGHT, WAY_CUDNN, "cudnn", run_grad_weight);
CANDIDATE(grad_weight_folded, MIXT_CONV_GRAD_WEIGHT, WAY_FOLDED, "folded", run_grad_weight_folded);
CANDIDATE(grad_weight_folded_cudnn, MIXT_CONV_GRAD_WEIGHT, WAY_FOLDED_CUDNN, "folded_cudnn", run_grad_weight_folded);

CANDIDATE(forward_implicit, MIXT_CONV_FORWARD, WAY_IMPLICIT, "implicit", run_implicit);
CANDIDATE(grad_src_implicit, MIXT_CONV_GRAD_SRC, WAY_IMPLICIT, "implicit", run_implicit);
CANDIDATE(grad_weight_implicit, MIXT_CONV_GRAD_WEIGHT, WAY_IMPLICIT, "implicit", run_implicit);

const mixt__kernel *const mixt__cuda_conv2d_kernels[] = {&forward_folded,
                                                         &forward_folded_cudnn,
                                                         &mixt__cuda_conv2d_product,
                                                         &forward_implicit,
                                                         &forward,
                                                         &mixt__cuda_conv_plain,
                                                         NULL};
const mixt__kernel *const mixt__cuda_conv2d_grad_src_kernels[] = {
    &mixt__cuda_conv2d_grad_src_product, &grad_src_implicit, &grad_src, &mixt__cuda_conv_grad_src_plain, NULL};
const mixt__kernel *const mixt__cuda_conv2d_grad_weight_kernels[] = {&grad_weight_folded,
                                                                     &grad_weight_folded_cudnn,
                                                                     &mixt__cuda_conv2d_grad_weight_product,
                                                                     &grad_weight_implicit,
                                                                     &grad_weight,
                                                                     &mixt__cuda_conv_grad_weight_plain,
                                                                     NULL};

const mixt__kernel *const mixt__cuda_conv3d_kernels[] = {&forward_folded, &forward_folded_cudnn, &forward,
                                                         &mixt__cuda_conv_plain, NULL};
const mixt__kernel *const mixt__cuda_conv3d_grad_src_kernels[] = {&grad_src, &mixt__cuda_conv_grad_src_plain, NULL};
const mixt__kernel *const mixt__cuda_conv3d_grad_weight_kernels[] = {
    &grad_weight_folded, &grad_weight_folded_cudnn,          &mixt__cuda_conv2d_grad_weight_product,
    &grad_weight,        &mixt__cuda_conv_grad_weight_plain, NULL};
