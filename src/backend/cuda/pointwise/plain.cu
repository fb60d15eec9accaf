/* Pointwise programs by interpretation: one thread an element, any strides, nothing to compile. For machines where the
 * compiler at plan time is missing or fails; several times slower than compiled programs.
 */
#include "backend/cuda/core/any_format.cuh"

#include "backend/cuda/kernels.h"
#include "backend/cuda/pointwise/pointwise.h"

#define MIXT_PW_CODE(...) __VA_ARGS__
#include "backend/cuda/pointwise/instructions.h"
#undef MIXT_PW_CODE

namespace
{

struct operand {
    const void *data;
    mixt_dtype dtype;
    int64_t strides[MIXT_MAX_RANK]; // 0 where repeated
};

struct instr {
    int code, a, b, c;
    float imm, imm2; // of DROPOUT: imm2 is the factor of what is kept
    unsigned stream, threshold;
};

struct program {
    int rank, in_count, instr_count, out_count;
    int64_t count, dims[MIXT_MAX_RANK];
    operand in[MIXT_PW_MAX_INPUTS];
    instr instrs[MIXT_PW_MAX_INSTRS];
    int outs[MIXT_PW_MAX_OUTPUTS];
    void *out[MIXT_PW_MAX_OUTPUTS];
    mixt_dtype out_dtypes[MIXT_PW_MAX_OUTPUTS];
    const uint64_t *rng_key;
};
static_assert(sizeof(program) <= 4096, "kernel parameters");

__device__ float dropped(const program &p, const instr &in, float a, int64_t index)
{
    uint4 block = pw_random(pw_stream_key(*p.rng_key, in.stream), static_cast<uint64_t>(index) / 4);
    return pw_dropout(a, pw_word(block, static_cast<unsigned>(index & 3)), in.threshold, in.imm2);
}

__device__ float arithmetic(const instr &in, float a, float b, float c)
{
    switch (in.code) {
    case MIXT_PW_ADD:
        return pw_add(a, b);
    case MIXT_PW_SUB:
        return pw_sub(a, b);
    case MIXT_PW_MUL:
        return pw_mul(a, b);
    case MIXT_PW_DIV:
        return pw_div(a, b);
    case MIXT_PW_MAX:
        return pw_max(a, b);
    case MIXT_PW_MIN:
        return pw_min(a, b);
    case MIXT_PW_SELECT_GE:
        return pw_select_ge(a, b, c);
    case MIXT_PW_SELECT_LT:
        return pw_select_lt(a, b, c);
    case MIXT_PW_WHERE:
        return pw_where(a, b);
    case MIXT_PW_AFFINE:
        return pw_affine(a, in.imm, in.imm2);
    case MIXT_PW_SQUARE:
        return pw_square(a);
    default:
        return pw_copy(a);
    }
}

__device__ float function(const instr &in, float a, float b)
{
    switch (in.code) {
    case MIXT_PW_RELU:
        return pw_relu(a);
    case MIXT_PW_RELU_GRAD:
        return pw_relu_grad(a, b);
    case MIXT_PW_GELU:
        return pw_gelu(a);
    case MIXT_PW_GELU_GRAD:
        return pw_gelu_grad(a, b);
    case MIXT_PW_GELU_ERF:
        return pw_gelu_erf(a);
    case MIXT_PW_GELU_ERF_GRAD:
        return pw_gelu_erf_grad(a, b);
    case MIXT_PW_SILU:
        return pw_silu(a);
    case MIXT_PW_SILU_GRAD:
        return pw_silu_grad(a, b);
    case MIXT_PW_SWIGLU:
        return pw_swiglu(a, b);
    case MIXT_PW_SIGMOID:
        return pw_sigmoid(a);
    case MIXT_PW_SIGMOID_GRAD:
        return pw_sigmoid_grad(a, b);
    case MIXT_PW_TANH:
        return pw_tanh(a);
    case MIXT_PW_TANH_GRAD:
        return pw_tanh_grad(a, b);
    case MIXT_PW_EXP:
        return pw_exp(a);
    case MIXT_PW_LOG:
        return pw_log(a);
    default:
        return pw_sqrt(a);
    }
}

__device__ float more(const instr &in, float a, float b, float c)
{
    switch (in.code) {
    case MIXT_PW_ABS:
        return pw_abs(a);
    case MIXT_PW_FLOOR:
        return pw_floor(a);
    case MIXT_PW_CEIL:
        return pw_ceil(a);
    case MIXT_PW_ROUND:
        return pw_round(a);
    case MIXT_PW_RECIPROCAL:
        return pw_reciprocal(a);
    case MIXT_PW_HARD_SWISH:
        return pw_hard_swish(a);
    case MIXT_PW_SIN:
        return pw_sin(a);
    case MIXT_PW_COS:
        return pw_cos(a);
    case MIXT_PW_ERF:
        return pw_erf(a);
    case MIXT_PW_SOFTPLUS:
        return pw_softplus(a);
    case MIXT_PW_MISH:
        return pw_mish(a);
    case MIXT_PW_ABS_GRAD:
        return pw_abs_grad(a, b);
    case MIXT_PW_RECIPROCAL_GRAD:
        return pw_reciprocal_grad(a, b);
    case MIXT_PW_HARD_SWISH_GRAD:
        return pw_hard_swish_grad(a, b);
    case MIXT_PW_EQUAL:
        return pw_equal(a, b);
    case MIXT_PW_LESS:
        return pw_less(a, b);
    case MIXT_PW_WHERE_NOT:
        return pw_where_not(a, b);
    case MIXT_PW_ERF_GRAD:
        return pw_erf_grad(a, b);
    case MIXT_PW_POW:
        return pw_pow(a, b);
    case MIXT_PW_SOFTPLUS_GRAD:
        return pw_softplus_grad(a, b);
    case MIXT_PW_MISH_GRAD:
        return pw_mish_grad(a, b);
    default:
        return pw_select(a, b, c);
    }
}

__device__ float with_constants(const instr &in, float a, float b)
{
    switch (in.code) {
    case MIXT_PW_LEAKY_RELU:
        return pw_leaky_relu(a, in.imm, in.imm2);
    case MIXT_PW_HARD_SIGMOID:
        return pw_hard_sigmoid(a, in.imm, in.imm2);
    case MIXT_PW_CLIP:
        return pw_clip(a, in.imm, in.imm2);
    case MIXT_PW_POWER:
        return pw_power(a, in.imm, in.imm2);
    case MIXT_PW_ELU:
        return pw_elu(a, in.imm, in.imm2);
    case MIXT_PW_LEAKY_RELU_GRAD:
        return pw_leaky_relu_grad(a, b, in.imm, in.imm2);
    case MIXT_PW_HARD_SIGMOID_GRAD:
        return pw_hard_sigmoid_grad(a, b, in.imm, in.imm2);
    case MIXT_PW_CLIP_GRAD:
        return pw_clip_grad(a, b, in.imm, in.imm2);
    default:
        return pw_elu_grad(a, b, in.imm, in.imm2);
    }
}

/** As mixt__pw_has_constants, for what stands behind DROPOUT. */
__device__ bool has_constants(int code)
{
    return code == MIXT_PW_LEAKY_RELU || code == MIXT_PW_LEAKY_RELU_GRAD || code == MIXT_PW_HARD_SIGMOID ||
           code == MIXT_PW_HARD_SIGMOID_GRAD || code == MIXT_PW_CLIP || code == MIXT_PW_CLIP_GRAD ||
           code == MIXT_PW_POWER || code == MIXT_PW_ELU || code == MIXT_PW_ELU_GRAD;
}

__global__ void pointwise_interpreted(const __grid_constant__ program p)
{
    float values[MIXT_PW_MAX_INPUTS + MIXT_PW_MAX_INSTRS];
    int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, rest = index;
    int64_t places[MIXT_PW_MAX_INPUTS] = {0};
    if (index >= p.count)
        return;
    for (int d = p.rank - 1; d >= 0; d--) {
        int64_t position = rest % p.dims[d];
        rest /= p.dims[d];
        for (int i = 0; i < p.in_count; i++)
            places[i] += position * p.in[i].strides[d];
    }
    for (int i = 0; i < p.in_count; i++)
        values[i] = load_any(p.in[i].data, p.in[i].dtype, places[i]);
    for (int k = 0; k < p.instr_count; k++) {
        const instr &in = p.instrs[k];
        float a = values[in.a], b = values[in.b], c = values[in.c];
        bool is_function = in.code >= MIXT_PW_RELU && in.code <= MIXT_PW_SQRT;
        values[p.in_count + k] = in.code == MIXT_PW_DROPOUT  ? dropped(p, in, a, index)
                                 : has_constants(in.code)    ? with_constants(in, a, b)
                                 : in.code > MIXT_PW_DROPOUT ? more(in, a, b, c)
                                 : is_function               ? function(in, a, b)
                                                             : arithmetic(in, a, b, c);
    }
    for (int o = 0; o < p.out_count; o++)
        store_any(p.out[o], p.out_dtypes[o], index, values[p.outs[o]]);
}

/** Operands that an instruction does not have are read all the same: they must name something that is there. */
instr instr_of(const mixt__pw_instr &in)
{
    static const int operands[] = {
#define MIXT_PW_OPERANDS(code, name, operands) operands,
        MIXT_POINTWISE_LIST(MIXT_PW_OPERANDS)
#undef MIXT_PW_OPERANDS
    };
    instr result = {.code = in.code,
                    .a = in.a,
                    .b = operands[in.code] > 1 ? in.b : in.a,
                    .c = operands[in.code] > 2 ? in.c : in.a,
                    .imm = in.imm,
                    .imm2 = in.imm2,
                    .stream = in.key,
                    .threshold = 0};
    if (in.code == MIXT_PW_DROPOUT) {
        result.imm2 = mixt__pw_scale(in.imm);
        result.threshold = mixt__pw_threshold(in.imm);
    }
    return result;
}

mixt_status run(const mixt__call *call)
{
    const mixt__pointwise_attrs *at = static_cast<const mixt__pointwise_attrs *>(call->attrs);
    mixt__pw_domain domain;
    program p = {};
    mixt__pw_domain_of(call, &domain);
    p.rank = domain.rank;
    p.in_count = at->in_count;
    p.instr_count = at->instr_count;
    p.out_count = at->out_count;
    p.count = domain.count;
    p.rng_key = call->rng_key;
    for (int d = 0; d < domain.rank; d++)
        p.dims[d] = domain.dims[d];
    for (int i = 0; i < at->in_count; i++) {
        p.in[i].data = call->in[i].data;
        p.in[i].dtype = call->in[i].dtype;
        for (int d = 0; d < domain.rank; d++)
            p.in[i].strides[d] = domain.strides[i][d];
    }
    for (int k = 0; k < at->instr_count; k++)
        p.instrs[k] = instr_of(at->instrs[k]);
    for (int o = 0; o < at->out_count; o++) {
        p.outs[o] = at->outs[o];
        p.out[o] = call->out[o].data;
        p.out_dtypes[o] = call->out[o].dtype;
    }
    if (p.count > 0)
        pointwise_interpreted<<<static_cast<unsigned>(mixt__ceil_div(p.count, MIXT_PW_THREADS)), MIXT_PW_THREADS, 0,
                                mixt__cuda_of(call)->stream>>>(p);
    return mixt__cuda_launched("pointwise");
}

} // namespace

extern "C" const mixt__kernel mixt__cuda_pointwise_plain = {.name = "plain", .run = run};
