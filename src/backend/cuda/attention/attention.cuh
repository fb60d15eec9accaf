/* What our own attention kernels share: the call as a kernel takes it. A head is one of batch · heads. */
#ifndef MIXT_BACKEND_CUDA_ATTENTION_ATTENTION_CUH
#define MIXT_BACKEND_CUDA_ATTENTION_ATTENTION_CUH

#include "backend/cuda/attention/attention.h"
#include "backend/cuda/core/device.cuh"

struct mixt__head_rows {
    void *data;
    int64_t batch, row; // strides in elements
    unsigned group;     // heads of q that share one of these: 1 but for k and v
};

struct mixt__attention_problem {
    mixt__head_rows q, k, v, dst, grad_dst, grad_q, grad_k, grad_v;
    float *lse, *sums; // (head, query); sums: of grad_dst · dst
    int64_t batch_heads, heads, dim, queries, keys;
    float scale, softcap; // softcap 0: none
    bool causal;
    int64_t window;         // keys that a query sees, itself among them; 0: all before it
    const int32_t *lengths; // (batch) keys that are there; NULL: all are
    const int32_t
        *places; // (batch, queries) of texts that share a row: keys before itself that a query sees; NULL: all
};

/** Keys that are there for a head. */
static __device__ __forceinline__ int64_t keys_of(const mixt__attention_problem &p, int64_t head)
{
    int64_t keys = p.lengths ? p.lengths[head / p.heads] : p.keys;
    return keys < 0 ? 0 : keys < p.keys ? keys : p.keys;
}

template <typename T>
static __device__ __forceinline__ T *row_of(const mixt__head_rows &r, const mixt__attention_problem &p, int64_t head,
                                            int64_t row)
{
    return (T *)r.data + head / p.heads * r.batch + row * r.row + (unsigned)(head % p.heads) / r.group * p.dim;
}

#define MIXT_LOG2_E 1.44269504088896f
#define MIXT_LN_2 0.69314718055995f

/** Relative error at most 2^-22; infinity and 0 past the range. */
static __device__ __forceinline__ float power_of_2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/** The problem of an attention call, or with `gradient` of an attention_grad call, its row sums in the workspace. */
extern "C" mixt__attention_problem mixt__attention_problem_of(const mixt__call *call, bool gradient);

/** Issues the row sums of grad_dst · dst. */
extern "C" void mixt__attention_row_sums(const mixt__cuda_device *gpu, const mixt__attention_problem &p,
                                         mixt_dtype dtype);

#endif
