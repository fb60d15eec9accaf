/* Attention for every shape, format and stride, in FP32: the last candidate.
 *
 * A warp owns a row: a query for dst, lse and grad_q, a key for grad_k and grad_v. It goes over the other side's rows
 * 32 at a time: each lane makes the score of one of them from two dot products, then the lanes share the row's columns
 * and take the 32 weights round by shuffles. Columns are held 256 at a time; wider heads repeat the scores. Each sum is
 * made by one thread in a fixed order. Reads come from the caches: a warp's 32 rows stay there while its columns are
 * summed.
 */
#include "backend/cuda/attention/attention.cuh"

#define FULL 0xffffffffu

enum { WARPS = 4, COLUMNS = 8 }; // columns a lane holds

typedef mixt__attention_problem problem;

template <typename T> static __device__ float dot(const T *x, const T *y, int64_t n)
{
    float sum = 0;
    for (int64_t d = 0; d < n; d++)
        sum = fmaf(to_float(x[d]), to_float(y[d]), sum);
    return sum;
}

/** sum[c] += Σ over the warp's 32 rows of weight · row[column of c]. */
template <typename T>
static __device__ void add_rows(float *sum, float weight, const T *row, int64_t count, int64_t first, int64_t dim)
{
    int lane = threadIdx.x & 31;
    for (int j = 0; j < count; j++) {
        float w = __shfl_sync(FULL, weight, j);
        const T *r = (const T *)__shfl_sync(FULL, (unsigned long long)row, j);
        for (int c = 0; c < COLUMNS; c++) {
            int64_t d = first + c * 32 + lane;
            if (d < dim)
                sum[c] = fmaf(w, to_float(r[d]), sum[c]);
        }
    }
}

template <typename T> static __device__ void put(T *row, const float *sum, float factor, int64_t first, int64_t dim)
{
    for (int c = 0; c < COLUMNS; c++) {
        int64_t d = first + c * 32 + (threadIdx.x & 31);
        if (d < dim)
            row[d] = from_float<T>(sum[c] * factor);
    }
}

/** Which row of which head this warp owns, of `rows` a head; false: none. */
static __device__ bool own_row(const problem &p, int64_t rows, int64_t *head, int64_t *row)
{
    int64_t at = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5);
    *head = at / rows;
    *row = at % rows;
    return at < p.batch_heads * rows;
}

/** The first key that query i sees. */
static __device__ __forceinline__ int64_t first_key(const problem &p, int64_t head, int64_t i)
{
    int64_t first = p.window && i >= p.window ? i + 1 - p.window : 0;
    int64_t place = p.places ? p.places[head / p.heads * p.queries + i] : i;
    int64_t begin = place >= 0 && place <= i ? i - place : 0;
    return begin > first ? begin : first;
}

/** What the soft cap makes of a scaled score. */
static __device__ __forceinline__ float capped(const problem &p, float score)
{
    return p.softcap > 0 ? p.softcap * tanhf(score / p.softcap) : score;
}

template <typename T> __global__ void __launch_bounds__(WARPS * 32) forward(problem p)
{
    int64_t head, i;
    if (!own_row(p, p.queries, &head, &i))
        return;
    int lane = threadIdx.x & 31;
    const T *q = row_of<T>(p.q, p, head, i);
    int64_t keys = keys_of(p, head), seen = p.causal && i + 1 < keys ? i + 1 : keys;
    for (int64_t first = 0; first < p.dim; first += 32 * COLUMNS) {
        float sum[COLUMNS] = {0}, most = -INFINITY, total = 0;
        for (int64_t j0 = first_key(p, head, i); j0 < seen; j0 += 32) {
            int64_t count = seen - j0 < 32 ? seen - j0 : 32, j = j0 + (lane < count ? lane : 0);
            float score = capped(p, p.scale * dot(q, row_of<T>(p.k, p, head, j), p.dim));
            float larger = fmaxf(most, warp_max(lane < count ? score : -INFINITY));
            float base = larger == -INFINITY ? 0.0f : larger; // only minus infinities so far: all weights are 0
            float shrink = expf(most - base), weight = lane < count ? expf(score - base) : 0.0f;
            total = total * shrink + warp_sum(weight);
            for (int c = 0; c < COLUMNS; c++)
                sum[c] *= shrink;
            add_rows(sum, weight, row_of<T>(p.v, p, head, j), count, first, p.dim);
            most = larger;
        }
        put(row_of<T>(p.dst, p, head, i), sum, first_key(p, head, i) < seen ? 1.0f / total : 0.0f, first, p.dim);
        if (first == 0 && lane == 0)
            p.lse[head * p.queries + i] = most + logf(total);
    }
}

/** One warp a row: Σ grad_dst · dst. */
template <typename T> __global__ void __launch_bounds__(WARPS * 32) row_sums(problem p)
{
    int64_t head, i;
    if (!own_row(p, p.queries, &head, &i))
        return;
    const T *dst = row_of<T>(p.dst, p, head, i), *grad = row_of<T>(p.grad_dst, p, head, i);
    float sum = 0;
    for (int64_t d = threadIdx.x & 31; d < p.dim; d += 32)
        sum = fmaf(to_float(dst[d]), to_float(grad[d]), sum);
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0)
        p.sums[head * p.queries + i] = sum;
}

/** The probability of key j for query i, and the gradient of its scaled score. */
template <typename T>
static __device__ void score_grad(const problem &p, int64_t head, int64_t i, int64_t j, float *weight, float *grad)
{
    float score = capped(p, p.scale * dot(row_of<T>(p.q, p, head, i), row_of<T>(p.k, p, head, j), p.dim));
    float part = p.softcap > 0 ? score / p.softcap : 0.0f;
    float grad_p = dot(row_of<T>(p.grad_dst, p, head, i), row_of<T>(p.v, p, head, j), p.dim);
    *weight = expf(score - p.lse[head * p.queries + i]);
    *grad = *weight * (grad_p - p.sums[head * p.queries + i]) * p.scale * (1.0f - part * part);
}

template <typename T> __global__ void __launch_bounds__(WARPS * 32) grad_queries(problem p)
{
    int64_t head, i;
    if (!own_row(p, p.queries, &head, &i))
        return;
    int lane = threadIdx.x & 31;
    int64_t keys = keys_of(p, head), seen = p.causal && i + 1 < keys ? i + 1 : keys;
    for (int64_t first = 0; first < p.dim; first += 32 * COLUMNS) {
        float sum[COLUMNS] = {0};
        for (int64_t j0 = first_key(p, head, i); j0 < seen; j0 += 32) {
            int64_t count = seen - j0 < 32 ? seen - j0 : 32, j = j0 + (lane < count ? lane : 0);
            float weight, grad;
            score_grad<T>(p, head, i, j, &weight, &grad);
            add_rows(sum, grad, row_of<T>(p.k, p, head, j), count, first, p.dim);
        }
        put(row_of<T>(p.grad_q, p, head, i), sum, 1, first, p.dim);
    }
}

template <typename T> __global__ void __launch_bounds__(WARPS * 32) grad_keys(problem p)
{
    int64_t head, j;
    if (!own_row(p, p.keys, &head, &j))
        return;
    int lane = threadIdx.x & 31;
    int64_t queries = j < keys_of(p, head) ? p.queries : 0; // the end of those that see it
    if (p.window && queries > j + p.window)
        queries = j + p.window;
    for (int64_t first = 0; first < p.dim; first += 32 * COLUMNS) {
        float sum_k[COLUMNS] = {0}, sum_v[COLUMNS] = {0};
        for (int64_t i0 = p.causal ? j : 0; i0 < queries; i0 += 32) {
            int64_t count = queries - i0 < 32 ? queries - i0 : 32, i = i0 + (lane < count ? lane : 0);
            float weight, grad;
            if (p.places && first_key(p, head, i0) > j) // the same in all lanes: texts behind that of the key
                break;
            score_grad<T>(p, head, i, j, &weight, &grad);
            if (p.places && first_key(p, head, i) > j)
                weight = grad = 0;
            add_rows(sum_k, grad, row_of<T>(p.q, p, head, i), count, first, p.dim);
            add_rows(sum_v, weight, row_of<T>(p.grad_dst, p, head, i), count, first, p.dim);
        }
        put(row_of<T>(p.grad_k, p, head, j), sum_k, 1, first, p.dim);
        put(row_of<T>(p.grad_v, p, head, j), sum_v, 1, first, p.dim);
    }
}

/* ---- candidates ---- */

static mixt__head_rows rows_in(const mixt__tensor *t, int64_t group)
{
    return {t->data, t->strides[0], t->strides[1], (unsigned)group};
}

extern "C" mixt__attention_problem mixt__attention_problem_of(const mixt__call *call, bool gradient)
{
    mixt__heads s = mixt__heads_of(call);
    problem p = {};
    p.q = rows_in(&call->in[0], 1);
    p.k = rows_in(&call->in[1], s.group);
    p.v = rows_in(&call->in[2], s.group);
    p.dst = rows_in(gradient ? &call->in[3] : &call->out[0], 1);
    p.lse = (float *)(gradient ? call->in[4].data : call->out[1].data);
    if (gradient) {
        p.grad_dst = rows_in(&call->in[5], 1);
        p.grad_q = rows_in(&call->out[0], 1);
        p.grad_k = rows_in(&call->out[1], 1);
        p.grad_v = rows_in(&call->out[2], 1);
        p.sums = (float *)call->workspace;
    }
    p.batch_heads = s.batch * s.count;
    p.heads = s.count;
    p.dim = s.dim;
    p.queries = s.queries;
    p.keys = s.keys;
    p.scale = s.scale;
    p.softcap = s.softcap;
    p.causal = s.causal;
    p.window = s.window;
    const mixt__tensor *lengths = mixt__attention_lengths(call);
    p.lengths = lengths ? (const int32_t *)lengths->data : NULL;
    const mixt__tensor *places = mixt__attention_places(call);
    p.places = places ? (const int32_t *)places->data : NULL;
    return p;
}

static unsigned blocks(int64_t rows)
{
    return (unsigned)mixt__ceil_div(rows, WARPS);
}

static mixt_status run(const mixt__call *call)
{
    problem p = mixt__attention_problem_of(call, false);
    int64_t rows = p.batch_heads * p.queries;
    if (rows > 0)
        DISPATCH(call->in[0].dtype, T, (forward<T><<<blocks(rows), WARPS * 32, 0, mixt__cuda_of(call)->stream>>>(p)));
    return mixt__cuda_launched("attention");
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *)
{
    call->workspace_bytes = (size_t)mixt__tensor_count(&call->in[4]) * sizeof(float);
    mixt__attention_grouped_room(call);
    return MIXT_OK;
}

extern "C" void mixt__attention_row_sums(const mixt__cuda_device *gpu, const problem &p, mixt_dtype dtype)
{
    int64_t rows = p.batch_heads * p.queries;
    if (rows > 0)
        DISPATCH(dtype, T, (row_sums<T><<<blocks(rows), WARPS * 32, 0, gpu->stream>>>(p)));
}

template <typename T> static void launch_grad(const mixt__cuda_device *gpu, const problem &p)
{
    int64_t queries = p.batch_heads * p.queries, keys = p.batch_heads * p.keys;
    if (queries > 0)
        grad_queries<T><<<blocks(queries), WARPS * 32, 0, gpu->stream>>>(p);
    if (keys > 0)
        grad_keys<T><<<blocks(keys), WARPS * 32, 0, gpu->stream>>>(p);
}

static mixt_status grad_heads(const mixt__call *call)
{
    problem p = mixt__attention_problem_of(call, true);
    mixt__attention_row_sums(mixt__cuda_of(call), p, call->in[0].dtype);
    DISPATCH(call->in[0].dtype, T, launch_grad<T>(mixt__cuda_of(call), p));
    return mixt__cuda_launched("attention_grad");
}

static mixt_status grad_run(const mixt__call *call)
{
    return mixt__attention_grouped(call, grad_heads);
}

extern "C" const mixt__kernel mixt__attention_plain = {.name = "plain", .run = run};
extern "C" const mixt__kernel mixt__attention_grad_plain = {.name = "plain", .prepare = grad_prepare, .run = grad_run};
