/* Matrix products. "cublaslt" is the library's; what it refuses runs in "tiles", on the tensor cores, where operands
 * have 16 bits, else in "plain", which takes every form. A weight with scales goes through "scaled" to one of these.
 *
 * cuBLASLt gets bias, addend (its C), ReLU, GELU with its input kept, and GELU's gradient as epilogues. It wants the
 * bias in the result's format: an FP32 bias of a low-precision product is converted into the workspace first. It is
 * never asked for bias gradients: with them a product takes several times as long. Its GELU is good to 17 bits, and its
 * ReLU makes 0 of NaN in FP16: where that is wrong, ours follows in a pass of its own. Where columns are not a multiple
 * of 8 it adds a low-precision bias after rounding the product: refused.
 */
#include "backend/cuda/gemm/matmul.h"

#include "backend/cuda/kernels.h"
#include "base/alloc.h"
#include "base/status.h"

#include <limits.h>

/* ---- the call as products ---- */

/** Whether the first `dims` dimensions can be walked with one stride. */
static bool one_stride(const mixt__tensor *t, int dims)
{
    for (int i = 0; i + 1 < dims; i++)
        if (t->shape.dims[i] != 1 && t->strides[i] != t->strides[i + 1] * t->shape.dims[i + 1])
            return false;
    return true;
}

mixt__cuda_product mixt__cuda_product_of(const mixt__call *call)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *a = &call->in[0], *b = &call->in[1];
    int ra = a->shape.rank, rb = b->shape.rank;
    mixt__cuda_product p = {.rows = rb == 2 && ra != 2, .batch = 1, .m = 1};
    p.n = b->shape.dims[rb - 1 - at->trans_b];
    p.k = b->shape.dims[rb - 2 + at->trans_b];
    p.a_ld = ra > 1 ? a->strides[ra - 2] : p.k;
    p.b_ld = b->strides[rb - 2];
    p.regular = one_stride(a, ra - (p.rows ? 1 : 2)) && one_stride(b, rb - 2);
    for (int i = 0; i < ra - (p.rows ? 1 : 2); i++)
        *(p.rows ? &p.m : &p.batch) *= a->shape.dims[i];
    if (!p.rows)
        p.m = a->shape.dims[ra - 2 + at->trans_a];
    if (!p.rows && ra > 2) {
        p.a_step = a->strides[ra - 3];
        p.b_step = b->strides[rb - 3];
    }
    return p;
}

const mixt__tensor *mixt__cuda_product_bias(const mixt__call *call)
{
    const mixt__matmul_attrs *at = call->attrs;
    return at->bias ? &call->in[2] : NULL;
}

const mixt__tensor *mixt__cuda_product_addend(const mixt__call *call)
{
    const mixt__matmul_attrs *at = call->attrs;
    return at->addend ? &call->in[2 + at->bias] : NULL;
}

const char *mixt__cuda_product_refused(const mixt__call *call)
{
    const mixt__matmul_attrs *at = call->attrs;
    if (call->in[1].scale_kind != MIXT_SCALE_NONE)
        return "a weight with scales is scaled before it is multiplied";
    return at->row_sums || at->epilogue == MIXT_EPILOGUE_RELU_GRAD
               ? "sums of rows and the gradient of ReLU in a product are for the CPU"
               : NULL;
}

const mixt__tensor *mixt__cuda_product_pre(const mixt__call *call)
{
    const mixt__matmul_attrs *at = call->attrs;
    return at->epilogue == MIXT_EPILOGUE_GELU_GRAD ? &call->in[call->in_count - 1] : NULL;
}

/* ---- the products as cuBLASLt sees them ---- */

cublasLtHandle_t mixt__cuda_lt_handle(mixt__cuda_device *gpu)
{
    if (!gpu->lt && cublasLtCreate(&gpu->lt) != CUBLAS_STATUS_SUCCESS)
        gpu->lt = NULL;
    return gpu->lt;
}

static cudaDataType type_of(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_BF16 ? CUDA_R_16BF : dtype == MIXT_DTYPE_FP16 ? CUDA_R_16F : CUDA_R_32F;
}

static bool set(mixt__cuda_lt *lt, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    return cublasLtMatmulDescSetAttribute(&lt->desc, attribute, value, bytes) == CUBLAS_STATUS_SUCCESS;
}

/** A row-major matrix as stored, and its batch. */
static bool lay_out(cublasLtMatrixLayoutOpaque_t *layout, mixt_dtype dtype, int64_t rows, int64_t cols, int64_t ld,
                    int64_t batch, int64_t step)
{
    int32_t count = (int32_t)batch;
    if (rows == 1)
        ld = cols;
    return cublasLtMatrixLayoutInit(layout, type_of(dtype), (uint64_t)cols, (uint64_t)rows, ld) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count) ==
               CUBLAS_STATUS_SUCCESS &&
           cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step) ==
               CUBLAS_STATUS_SUCCESS;
}

/** Whether the activation stays out of cuBLASLt's epilogue, whose ReLU loses NaN in FP16 and TF32 products. */
static bool activation_is_separate(const mixt__call *call)
{
    const mixt__matmul_attrs *at = call->attrs;
    return at->epilogue >= MIXT_EPILOGUE_GELU
               ? call->in[0].dtype == MIXT_DTYPE_FP32
               : at->epilogue == MIXT_EPILOGUE_RELU &&
                     (call->arithmetic == MIXT_DTYPE_FP16 || call->arithmetic == MIXT_DTYPE_TF32);
}

static bool set_epilogue(const mixt__call *call, const mixt__cuda_product *p, mixt__cuda_lt *lt)
{
    static const uint32_t plain[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_GELU_AUX,
                                     CUBLASLT_EPILOGUE_DGELU};
    static const uint32_t biased[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
                                      CUBLASLT_EPILOGUE_GELU_AUX_BIAS};
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *bias = mixt__cuda_product_bias(call);
    mixt_dtype dtype = call->out[0].dtype;
    const void *somewhere = (const void *)256; // nothing is read before a run: only its alignment counts
    mixt__epilogue kind = activation_is_separate(call) ? MIXT_EPILOGUE_NONE : at->epilogue;
    int64_t step = p->m * p->n;
    lt->fused_gelu = kind >= MIXT_EPILOGUE_GELU;
    if (lt->fused_gelu && !(set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &somewhere, sizeof somewhere) &&
                            set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &p->n, sizeof p->n) &&
                            set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &step, sizeof step)))
        return false;
    if (!bias)
        return set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE, &plain[kind], sizeof plain[0]);
    if (bias->dtype != dtype)
        lt->bias_bytes = ((size_t)p->n * mixt_dtype_size(dtype) + 255) / 256 * 256;
    return set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE, &biased[kind], sizeof biased[0]) &&
           set(lt, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &somewhere, sizeof somewhere);
}

static bool describe(const mixt__call *call, const mixt__cuda_product *p, mixt__cuda_lt *lt)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *a = &call->in[0], *b = &call->in[1];
    bool tf32 = a->dtype == MIXT_DTYPE_FP32 && call->arithmetic == MIXT_DTYPE_TF32;
    int32_t op_a = at->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = at->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    lt->alpha = at->alpha;
    lt->a_align = a->contiguous ? 64 : 16;
    lt->b_align = b->contiguous ? 64 : 16;
    return cublasLtMatmulDescInit(&lt->desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
               CUBLAS_STATUS_SUCCESS &&
           set(lt, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof op_b) &&
           set(lt, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof op_a) &&
           lay_out(&lt->a, a->dtype, at->trans_a ? p->k : p->m, at->trans_a ? p->m : p->k, p->a_ld, p->batch,
                   p->a_step) &&
           lay_out(&lt->b, b->dtype, at->trans_b ? p->n : p->k, at->trans_b ? p->k : p->n, p->b_ld, p->batch,
                   p->b_step) &&
           lay_out(&lt->c, call->out[0].dtype, p->m, p->n, p->n, p->batch, p->m * p->n) && set_epilogue(call, p, lt);
}

cublasStatus_t mixt__cuda_lt_issue(mixt__cuda_device *gpu, mixt__cuda_lt *lt, const mixt__cuda_lt_data *data)
{
    if (data->bias && !set(lt, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &data->bias, sizeof data->bias))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (data->aux && !set(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &data->aux, sizeof data->aux))
        return CUBLAS_STATUS_INVALID_VALUE;
    return cublasLtMatmul(mixt__cuda_lt_handle(gpu), &lt->desc, &lt->alpha, data->b, &lt->b, data->a, &lt->a,
                          &data->beta, data->c, &lt->c, data->d, &lt->c, &lt->algo, data->workspace, lt->algo_bytes,
                          gpu->stream);
}

/* ---- the candidate ---- */

static const char *refusal(const mixt__call *call, const mixt__cuda_product *p)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *addend = mixt__cuda_product_addend(call);
    if (!(p->batch && p->m && p->n && p->k))
        return "there is nothing to multiply";
    if (!p->regular)
        return "an operand is a view whose leading dimensions have no common stride";
    const char *refused = mixt__cuda_product_refused(call);
    if (refused)
        return refused;
    if (p->batch > INT_MAX)
        return "more products than cuBLASLt takes in a batch";
    if (addend && addend->dtype != call->out[0].dtype)
        return "cuBLASLt: the addend has another format than the result";
    bool gelu = at->epilogue >= MIXT_EPILOGUE_GELU && !activation_is_separate(call);
    if (gelu && call->in[0].dtype != call->out[0].dtype)
        return "cuBLASLt: GELU's input has another format than the result";
    if (gelu && at->epilogue == MIXT_EPILOGUE_GELU_GRAD && at->bias)
        return "cuBLASLt has no bias before GELU's gradient";
    if (gelu && p->n % 8)
        return "cuBLASLt: GELU's input must have a multiple of 8 columns";
    if (at->bias && p->n % 8 && call->out[0].dtype != MIXT_DTYPE_FP32)
        return "cuBLASLt rounds before it adds the bias where columns are not a multiple of 8";
    return mixt__cuda_lt_handle(mixt__cuda_of(call)) ? NULL : "cuBLASLt cannot start";
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__cuda_product p = mixt__cuda_product_of(call);
    mixt__cuda_lt lt = {0};
    cublasLtMatmulHeuristicResult_t first;
    *reason = refusal(call, &p);
    if (!*reason && !(describe(call, &p, &lt) && mixt__cuda_lt_algorithms(mixt__cuda_of(call), &lt, &first, 1)))
        *reason = "cuBLASLt has no algorithm for this form";
    return !*reason;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__cuda_product p = mixt__cuda_product_of(call);
    mixt__cuda_lt *lt = mixt__arena_alloc(arena, sizeof *lt);
    if (!lt)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a matrix product");
    if (!describe(call, &p, lt))
        return mixt__fail(MIXT_ERROR_DEVICE, "cuBLASLt refused to describe a matrix product");
    MIXT_TRY(mixt__cuda_lt_choose(call, lt));
    call->state = lt;
    call->workspace_bytes = lt->bias_bytes + lt->algo_bytes;
    call->tensor_cores = mixt__cuda_tensor_format(call);
    return MIXT_OK;
}

static bool aligned(const void *data, uint32_t bytes)
{
    return (uintptr_t)data % bytes == 0;
}

static mixt__cuda_lt_data data_of(const mixt__call *call)
{
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__cuda_lt *lt = call->state;
    const mixt__tensor *bias = mixt__cuda_product_bias(call), *addend = mixt__cuda_product_addend(call),
                       *pre = mixt__cuda_product_pre(call);
    mixt__cuda_lt_data data = {.a = call->in[0].data,
                               .b = call->in[1].data,
                               .bias = lt->bias_bytes ? call->workspace
                                       : bias         ? bias->data
                                                      : NULL,
                               .d = call->out[0].data,
                               .workspace = (char *)call->workspace + lt->bias_bytes,
                               .beta = addend || call->accumulate & 1 ? 1.0f : 0.0f};
    if (at->epilogue == MIXT_EPILOGUE_GELU)
        *(activation_is_separate(call) ? &data.d : &data.aux) = call->out[1].data;
    else if (pre && !activation_is_separate(call))
        data.aux = pre->data;
    data.c = addend ? addend->data : data.d;
    return data;
}

static mixt_status run(const mixt__call *call)
{
    mixt__cuda_lt *lt = call->state;
    const mixt__matmul_attrs *at = call->attrs;
    const mixt__tensor *bias = mixt__cuda_product_bias(call);
    bool fused = at->addend || at->epilogue != MIXT_EPILOGUE_NONE; // then cuBLASLt would add before the epilogue
    if ((fused && call->accumulate & 1) || !aligned(call->in[0].data, lt->a_align) ||
        !aligned(call->in[1].data, lt->b_align))
        return mixt__cuda_matmul_plain.run(call);
    if (lt->bias_bytes)
        MIXT_TRY(mixt__cuda_convert(mixt__cuda_of(call), call->workspace, call->out[0].dtype, bias->data,
                                    mixt__tensor_count(bias)));
    mixt__cuda_lt_data data = data_of(call);
    cublasStatus_t status = mixt__cuda_lt_issue(mixt__cuda_of(call), lt, &data);
    if (status != CUBLAS_STATUS_SUCCESS)
        return mixt__fail(MIXT_ERROR_DEVICE, "a matrix product of cuBLASLt: %s", cublasLtGetStatusString(status));
    return activation_is_separate(call) ? mixt__cuda_activation(call) : MIXT_OK;
}

static const mixt__kernel cublaslt = {.name = "cublaslt", .supports = supports, .prepare = prepare, .run = run};

const mixt__kernel *const mixt__cuda_matmul_kernels[] = {
    &mixt__cuda_matmul_scaled, &cublaslt, &mixt__cuda_matmul_tiles, &mixt__cuda_matmul_plain, NULL,
};
