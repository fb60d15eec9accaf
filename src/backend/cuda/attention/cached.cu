/* Attention that goes on from a cache: what one more token, or a piece of a prompt, costs.
 *
 * A block takes one head that the caches have, of one batch entry. It first puts the head's new keys and values into
 * the caches, which no other block touches there; then, token by token and for each head of q that shares it, each warp
 * makes the scores of every WARPS-th key seen (lanes share the columns), the block turns them into weights, and each
 * thread sums its columns of the values over all keys. The scores of a row wait in global workspace, as there may be
 * more of them than shared memory holds. Keys and values are read once a token, along their rows; sums are FP32 in a
 * fixed order.
 */
#include "backend/cuda/kernels.h"

#include "backend/cuda/core/device.cuh"

enum { THREADS = 256, WARPS = THREADS / 32 };

typedef struct problem {
    const void *q, *k, *v; // new: (B, T, C) by strides
    void *cache_k, *cache_v, *dst;
    const int32_t *positions;
    float *scores; // (B, heads, S)
    int64_t q_batch, q_row, k_batch, k_row, v_batch, v_row;
    int64_t heads, dim, width, tokens, rows; // heads and width: of the caches
    int64_t group;                           // heads of q that share one of them
    int64_t window;                          // places that a token sees, its own among them; 0: all before it
    float scale, softcap;
} problem;

/** This head's columns of the new rows, to their places. */
template <typename T>
static __device__ void fill(const problem &p, const T *from, int64_t row_stride, T *cache, const int32_t *positions)
{
    for (int64_t i = threadIdx.x; i < p.tokens * p.dim; i += THREADS) {
        int64_t t = i / p.dim, d = i % p.dim;
        cache[positions[t] * p.width + d] = from[t * row_stride + d];
    }
}

template <typename T>
static __device__ void make_scores(const problem &p, const T *q, const T *keys, int64_t seen, float *scores)
{
    int lane = threadIdx.x & 31;
    for (int64_t j = threadIdx.x >> 5; j < seen; j += WARPS) {
        float sum = 0;
        for (int64_t d = lane; d < p.dim; d += 32)
            sum = fmaf(to_float(q[d]), to_float(keys[j * p.width + d]), sum);
        sum = warp_sum(sum);
        sum *= p.scale;
        if (lane == 0)
            scores[j] = p.softcap > 0 ? p.softcap * tanhf(sum / p.softcap) : sum;
    }
    __syncthreads(); // the block reads what its warps wrote
}

/** Scores become weights; returns their sum. */
static __device__ float make_weights(float *scores, int64_t seen, float *shared)
{
    float most = -INFINITY, sum = 0;
    for (int64_t j = threadIdx.x; j < seen; j += THREADS)
        most = fmaxf(most, scores[j]);
    most = block_max(most, shared);
    for (int64_t j = threadIdx.x; j < seen; j += THREADS) {
        float weight = expf(scores[j] - most);
        scores[j] = weight;
        sum += weight;
    }
    return block_sum(sum, shared); // ends with a barrier: all weights are written
}

template <typename T> static __global__ void __launch_bounds__(THREADS) attention_cached(problem p)
{
    __shared__ float shared[32];
    int64_t b = blockIdx.x / p.heads, column = blockIdx.x % p.heads * p.dim;
    T *keys = (T *)p.cache_k + b * p.rows * p.width + column, *values = (T *)p.cache_v + b * p.rows * p.width + column;
    float *scores = p.scores + (int64_t)blockIdx.x * p.rows;
    fill(p, (const T *)p.k + b * p.k_batch + column, p.k_row, keys, p.positions);
    fill(p, (const T *)p.v + b * p.v_batch + column, p.v_row, values, p.positions);
    __syncthreads();
    for (int64_t n = 0; n < p.tokens * p.group; n++) {
        int64_t t = n / p.group, last = p.positions[t], own = column * p.group + n % p.group * p.dim;
        int64_t first = p.window && last >= p.window ? last + 1 - p.window : 0, seen = last + 1 - first;
        make_scores(p, (const T *)p.q + b * p.q_batch + t * p.q_row + own, keys + first * p.width, seen, scores);
        float total = make_weights(scores, seen, shared);
        T *dst = (T *)p.dst + (b * p.tokens + t) * p.width * p.group + own;
        for (int64_t d = threadIdx.x; d < p.dim; d += THREADS) {
            float sum = 0;
            for (int64_t j = 0; j < seen; j++)
                sum = fmaf(scores[j], to_float(values[(first + j) * p.width + d]), sum);
            dst[d] = from_float<T>(sum / total);
        }
        __syncthreads(); // the next token overwrites the weights
    }
}

static mixt_status prepare(mixt__call *call, mixt__arena *)
{
    const mixt__attention_attrs *at = (const mixt__attention_attrs *)call->attrs;
    const int64_t *cache = call->in[4].shape.dims;
    call->workspace_bytes = (size_t)(cache[0] * at->heads * cache[1]) * sizeof(float); // enough for one of each head
    return MIXT_OK;
}

static mixt_status run(const mixt__call *call)
{
    const mixt__attention_attrs *at = (const mixt__attention_attrs *)call->attrs;
    const mixt__tensor *q = &call->in[0], *k = &call->in[1], *v = &call->in[2];
    problem p = {};
    p.q = q->data;
    p.k = k->data;
    p.v = v->data;
    p.positions = (const int32_t *)call->in[3].data;
    p.cache_k = call->in[4].data;
    p.cache_v = call->in[5].data;
    p.dst = call->out[0].data;
    p.scores = (float *)call->workspace;
    p.q_batch = q->strides[0];
    p.q_row = q->strides[1];
    p.k_batch = k->strides[0];
    p.k_row = k->strides[1];
    p.v_batch = v->strides[0];
    p.v_row = v->strides[1];
    p.dim = q->shape.dims[2] / at->heads;
    p.width = call->in[4].shape.dims[2];
    p.group = p.width ? q->shape.dims[2] / p.width : 1;
    p.heads = at->heads / p.group;
    p.tokens = q->shape.dims[1];
    p.rows = call->in[4].shape.dims[1];
    p.scale = at->scale;
    p.softcap = at->softcap;
    p.window = at->window;
    unsigned blocks = (unsigned)(q->shape.dims[0] * p.heads);
    if (blocks && p.tokens)
        DISPATCH(q->dtype, T, (attention_cached<T><<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(p)));
    return mixt__cuda_launched("attention_cached");
}

static const mixt__kernel plain = {.name = "plain", .prepare = prepare, .run = run};

extern "C" const mixt__kernel *const mixt__cuda_attention_cached_kernels[] = {&plain, NULL};
