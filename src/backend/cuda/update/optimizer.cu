/* The optimizer on the GPU: one pass over the flat arenas that writes masters, moments and working copies.
 *
 * Formulas as in backend/cpu/update/optimizer.c, in the same order for each element and compiled without contraction to
 * fused multiply-add: the same control block gives the same bits. A block takes an eighth of a chunk, each thread twice
 * 4 elements; AdamW with a 16-bit working copy reads 16 bytes a parameter and writes 14. LAMB has a first pass, a block
 * a chunk, that makes moments and norms; its last block turns those into one ratio a segment. Chunks start at multiples
 * of 16 elements and the arenas are padded to them, so whole vectors may always be read; only elements of a segment are
 * written.
 */
#include "backend/cuda/kernels.h"

#include "backend/cuda/core/dependent.cuh"
#include "backend/cuda/core/device.cuh"
#include "backend/cuda/core/last_block.cuh"
#include "backend/cuda/update/table.h"

extern "C" {
#include "base/status.h"
}

enum { CHUNK_THREADS = 512 };
enum { APPLY_THREADS = 256, APPLY_VECTORS = 2, APPLY_ELEMENTS = 4 * APPLY_THREADS * APPLY_VECTORS };
enum { APPLY_PARTS = (int)MIXT_CUDA_CHUNK / (int)APPLY_ELEMENTS };

/* ---- the update of one element ---- */

typedef enum rule_kind { RULE_SGD, RULE_MOMENTUM, RULE_NESTEROV, RULE_ADAM, RULE_ADAMW, RULE_LAMB } rule_kind;

/** What the host knows. */
typedef struct settings {
    float clip; // bound of the gradient's elements; infinity: none
    float momentum, beta1, beta2, one_minus_beta1, one_minus_beta2, eps;
    float others, share; // see mixt__optimizer; 1/(1 + others)
} settings;

/** What an element's update needs, all constants folded. */
typedef struct rule {
    settings s;
    float grad_factor, lr, weight_decay, inv_bias1, inv_sqrt_bias2;
} rule;

static __device__ __forceinline__ rule rule_of(const settings &s, const mixt__control *control,
                                               const mixt__cuda_chunk &chunk)
{
    return {s,
            control->grad_factor,
            control->lr * chunk.lr_scale,
            chunk.weight_decay,
            control->inv_bias1,
            control->inv_sqrt_bias2};
}

/** Unscaled and clipped by norm, then by value. */
static __device__ __forceinline__ float gradient(const rule &r, float g)
{
    g *= r.grad_factor;
    g = g > r.s.clip ? r.s.clip : g;
    return g < -r.s.clip ? -r.s.clip : g;
}

static __device__ __forceinline__ void moments(const rule &r, float d, float &m, float &v)
{
    m = r.s.beta1 * m + r.s.one_minus_beta1 * d;
    float mean = m * r.inv_bias1;
    if (r.s.others > 0)
        v = r.s.beta2 * v + r.s.one_minus_beta2 * ((d * d + r.s.others * (mean * mean)) * r.s.share);
    else
        v = r.s.beta2 * v + r.s.one_minus_beta2 * d * d;
}

/** m̂/(sqrt(v̂) + eps) from moments that are already those of this step. */
static __device__ __forceinline__ float adam_direction(const rule &r, float m, float v)
{
    return m * r.inv_bias1 / (sqrtf(v) * r.inv_sqrt_bias2 + r.s.eps);
}

static __device__ __forceinline__ float lamb_update(const rule &r, float w, float m, float v)
{
    return adam_direction(r, m, v) + r.weight_decay * w;
}

template <int KIND>
static __device__ __forceinline__ void update_one(const rule &r, float g, float &w, float &m, float &v)
{
    if (KIND == RULE_LAMB) { // its moments were made by the first pass
        w -= r.lr * lamb_update(r, w, m, v);
        return;
    }
    float d = gradient(r, g);
    if (KIND != RULE_ADAMW)
        d += r.weight_decay * w;
    if (KIND == RULE_SGD) {
        w -= r.lr * d;
    } else if (KIND == RULE_MOMENTUM || KIND == RULE_NESTEROV) {
        m = r.s.momentum * m + d;
        w -= r.lr * (KIND == RULE_NESTEROV ? d + r.s.momentum * m : m);
    } else {
        moments(r, d, m, v);
        float kept = KIND == RULE_ADAMW ? w - r.lr * r.weight_decay * w : w;
        w = kept - r.lr * adam_direction(r, m, v);
    }
}

/* ---- vectors of four elements ---- */

union four {
    float4 raw;
    float v[4];
};

static __device__ __forceinline__ void store_four(float *p, const four &x, int valid)
{
    if (valid >= 4) {
        *reinterpret_cast<float4 *>(p) = x.raw;
        return;
    }
    for (int i = 0; i < 4; i++)
        if (i < valid)
            p[i] = x.v[i];
}

template <typename T> static __device__ __forceinline__ void store_low(void *low, int64_t at, const four &x, int valid)
{
    union {
        uint2 raw;
        T v[4];
    } narrow;
    for (int i = 0; i < 4; i++)
        narrow.v[i] = from_float<T>(x.v[i]);
    T *p = (T *)low + at;
    if (valid >= 4) {
        *reinterpret_cast<uint2 *>(p) = narrow.raw;
        return;
    }
    for (int i = 0; i < 4; i++)
        if (i < valid)
            p[i] = narrow.v[i];
}

/** The arenas of an update. */
typedef struct arenas {
    float *master, *moment1, *moment2;
    const float *grad;
    void *bf16_copy, *fp16_copy;
    const mixt__control *control;
    const float *ratios; // LAMB's, one a segment
} arenas;

template <int KIND>
static __global__ void __launch_bounds__(APPLY_THREADS)
    optimizer_apply(const mixt__cuda_chunk *chunks, const arenas a, const settings s)
{
    constexpr bool uses_grad = KIND != RULE_LAMB, uses_m = KIND != RULE_SGD, uses_v = KIND >= RULE_ADAM;
    const mixt__cuda_chunk chunk = chunks[blockIdx.x / APPLY_PARTS];
    int begin = (int)(blockIdx.x % APPLY_PARTS) * APPLY_ELEMENTS + 4 * (int)threadIdx.x;
    four w[APPLY_VECTORS], g[APPLY_VECTORS], m[APPLY_VECTORS], v[APPLY_VECTORS];
    if (begin >= chunk.count)
        return;
    if (KIND == RULE_LAMB)
        dependency_wait(); // its first pass is the kernel before this one
#pragma unroll
    for (int i = 0; i < APPLY_VECTORS; i++) {
        int in_chunk = begin + 4 * i * APPLY_THREADS;
        int64_t at = chunk.at + (in_chunk < chunk.count ? in_chunk : begin);
        w[i].raw = *reinterpret_cast<const float4 *>(a.master + at);
        if (uses_grad)
            g[i].raw = *reinterpret_cast<const float4 *>(a.grad + at);
        if (uses_m)
            m[i].raw = *reinterpret_cast<const float4 *>(a.moment1 + at);
        if (uses_v)
            v[i].raw = *reinterpret_cast<const float4 *>(a.moment2 + at);
    }
    dependency_wait(); // only the control block is not there yet: see dependent.cuh
    if (a.control->found_inf)
        return;
    rule r = rule_of(s, a.control, chunk);
    if (KIND == RULE_LAMB)
        r.lr *= a.ratios[chunk.segment];
#pragma unroll
    for (int i = 0; i < APPLY_VECTORS; i++) {
        int in_chunk = begin + 4 * i * APPLY_THREADS, valid = chunk.count - in_chunk;
#pragma unroll
        for (int j = 0; j < 4; j++)
            update_one<KIND>(r, uses_grad ? g[i].v[j] : 0.0f, w[i].v[j], m[i].v[j], v[i].v[j]);
        store_four(a.master + chunk.at + in_chunk, w[i], valid);
        if (uses_m && KIND != RULE_LAMB)
            store_four(a.moment1 + chunk.at + in_chunk, m[i], valid);
        if (uses_v && KIND != RULE_LAMB)
            store_four(a.moment2 + chunk.at + in_chunk, v[i], valid);
        if (chunk.low == MIXT_DTYPE_BF16)
            store_low<bf16>(a.bf16_copy, chunk.low_at + in_chunk, w[i], valid);
        else if (chunk.low == MIXT_DTYPE_FP16)
            store_low<fp16>(a.fp16_copy, chunk.low_at + in_chunk, w[i], valid);
    }
}

/* ---- LAMB's first pass: moments, and the two norms of each segment ---- */

static __device__ void lamb_ratio(const mixt__cuda_table &table, const double2 *sums, int64_t segment, float *ratios)
{
    double weights = 0, updates = 0;
    for (int64_t i = table.first[segment] + (threadIdx.x & 31); i < table.first[segment + 1]; i += 32) {
        double2 s = __ldcg(&sums[i]);
        weights += s.x;
        updates += s.y;
    }
    weights = warp_sum_f64(weights);
    updates = warp_sum_f64(updates);
    if ((threadIdx.x & 31) == 0)
        ratios[segment] = weights > 0 && updates > 0 ? (float)sqrt(weights / updates) : 1.0f;
}

static __global__ void __launch_bounds__(CHUNK_THREADS)
    lamb_moments(const mixt__cuda_table table, const arenas a, const settings s, double2 *sums, float *ratios)
{
    __shared__ double2 warps[CHUNK_THREADS / 32];
    const mixt__cuda_chunk chunk = table.chunks[blockIdx.x];
    rule r = rule_of(s, a.control, chunk);
    double weights = 0, updates = 0;
    if (a.control->found_inf)
        return;
    for (int at = 4 * (int)threadIdx.x; at < chunk.count; at += 4 * CHUNK_THREADS) {
        four w, g, m, v;
        w.raw = *reinterpret_cast<const float4 *>(a.master + chunk.at + at);
        g.raw = *reinterpret_cast<const float4 *>(a.grad + chunk.at + at);
        m.raw = *reinterpret_cast<const float4 *>(a.moment1 + chunk.at + at);
        v.raw = *reinterpret_cast<const float4 *>(a.moment2 + chunk.at + at);
        for (int j = 0; j < 4; j++) {
            moments(r, gradient(r, g.v[j]), m.v[j], v.v[j]);
            double u = lamb_update(r, w.v[j], m.v[j], v.v[j]);
            weights += at + j < chunk.count ? (double)w.v[j] * (double)w.v[j] : 0;
            updates += at + j < chunk.count ? u * u : 0;
        }
        store_four(a.moment1 + chunk.at + at, m, chunk.count - at);
        store_four(a.moment2 + chunk.at + at, v, chunk.count - at);
    }
    weights = warp_sum_f64(weights);
    updates = warp_sum_f64(updates);
    if ((threadIdx.x & 31) == 0)
        warps[threadIdx.x / 32] = make_double2(weights, updates);
    __syncthreads();
    if (threadIdx.x == 0) {
        double2 total = warps[0];
        for (int i = 1; i < CHUNK_THREADS / 32; i++) {
            total.x += warps[i].x;
            total.y += warps[i].y;
        }
        sums[blockIdx.x] = total;
    }
    if (!ratios || !last_block(table.counter))
        return;
    for (int64_t i = threadIdx.x / 32; i < table.segment_count; i += CHUNK_THREADS / 32)
        lamb_ratio(table, sums, i, ratios);
}

/* ---- the step ---- */

/** Statistics of an update that is applied are kept, those of a skipped one are what they were. */
static __global__ void settle_statistics(float *statistics, float *kept, int64_t count, const mixt__control *control)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    if (control->found_inf)
        statistics[i] = kept[i];
    else
        kept[i] = statistics[i];
}

static mixt_status settle(const mixt__update *update)
{
    int64_t count = update->statistics_count;
    if (!count)
        return MIXT_OK;
    settle_statistics<<<(unsigned)mixt__ceil_div(count, APPLY_THREADS), APPLY_THREADS, 0, mixt__cuda.stream>>>(
        update->statistics, update->kept, count, update->control);
    return mixt__cuda_launched("running statistics");
}

static mixt_status check(const mixt__update *update)
{
    int moments = mixt__optimizer_moments(&update->optimizer);
    for (int i = 0; i < moments; i++)
        if (!update->moments[i].data)
            return mixt__fail(MIXT_ERROR_INTERNAL, "the optimizer keeps %d moments, but has no memory for them",
                              moments);
    for (int64_t i = 0; i < update->segment_count; i++) {
        mixt_dtype low = update->segments[i].low;
        if (low != MIXT_DTYPE_NONE && ((low != MIXT_DTYPE_BF16 && low != MIXT_DTYPE_FP16) || !update->low[low]))
            return mixt__fail(MIXT_ERROR_DTYPE, "parameter %d: no working copy in %s is possible on the GPU",
                              (int)update->segments[i].param, mixt_dtype_name(low));
    }
    return MIXT_OK;
}

static cudaError_t apply(rule_kind kind, const mixt__cuda_table &table, const arenas &a, const settings &s)
{
    unsigned grid = (unsigned)(table.chunk_count * APPLY_PARTS);
    switch (kind) {
    case RULE_SGD:
        return launch_dependent(optimizer_apply<RULE_SGD>, grid, APPLY_THREADS, table.chunks, a, s);
    case RULE_MOMENTUM:
        return launch_dependent(optimizer_apply<RULE_MOMENTUM>, grid, APPLY_THREADS, table.chunks, a, s);
    case RULE_NESTEROV:
        return launch_dependent(optimizer_apply<RULE_NESTEROV>, grid, APPLY_THREADS, table.chunks, a, s);
    case RULE_ADAM:
        return launch_dependent(optimizer_apply<RULE_ADAM>, grid, APPLY_THREADS, table.chunks, a, s);
    case RULE_ADAMW:
        return launch_dependent(optimizer_apply<RULE_ADAMW>, grid, APPLY_THREADS, table.chunks, a, s);
    default:
        return launch_dependent(optimizer_apply<RULE_LAMB>, grid, APPLY_THREADS, table.chunks, a, s);
    }
}

static rule_kind kind_of(const mixt__optimizer *o)
{
    switch (o->kind) {
    case MIXT_OPTIMIZER_ADAM:
        return RULE_ADAM;
    case MIXT_OPTIMIZER_ADAMW:
        return RULE_ADAMW;
    case MIXT_OPTIMIZER_LAMB:
        return RULE_LAMB;
    default:
        return o->momentum == 0 ? RULE_SGD : o->nesterov ? RULE_NESTEROV : RULE_MOMENTUM;
    }
}

static settings settings_of(const mixt__update *update)
{
    const mixt__optimizer *o = &update->optimizer;
    return {update->clip_value > 0 ? update->clip_value : INFINITY,
            o->momentum,
            o->beta1,
            o->beta2,
            (float)(1.0 - o->beta1),
            (float)(1.0 - o->beta2),
            o->eps,
            o->others,
            (float)(1.0 / (1.0 + (double)o->others))};
}

/** LAMB's workspace: two sums a chunk, then one ratio a segment. */
static float *ratios_of(const mixt__update *update, const mixt__cuda_table &table)
{
    return (float *)((double2 *)update->workspace + table.chunk_count);
}

static arenas arenas_of(const mixt__update *update, const mixt__cuda_table &table)
{
    return {(float *)update->weight.data,
            (float *)update->moments[0].data,
            (float *)update->moments[1].data,
            (const float *)update->gradient.data,
            update->low[MIXT_DTYPE_BF16],
            update->low[MIXT_DTYPE_FP16],
            update->control,
            ratios_of(update, table)};
}

/** LAMB's first pass. @param ratios NULL: the segments are parts, whose ratios follow from others' sums too */
static mixt_status make_moments(const mixt__update *update, const mixt__cuda_table &table, float *ratios)
{
    lamb_moments<<<(unsigned)table.chunk_count, CHUNK_THREADS, 0, mixt__cuda.stream>>>(
        table, arenas_of(update, table), settings_of(update), (double2 *)update->workspace, ratios);
    return mixt__cuda_launched("LAMB's moments");
}

static mixt_status make_weights(const mixt__update *update, const mixt__cuda_table &table)
{
    rule_kind kind = kind_of(&update->optimizer);
    MIXT_TRY(mixt__cuda_check(apply(kind, table, arenas_of(update, table), settings_of(update)), "optimizer"));
    return settle(update);
}

extern "C" mixt_status mixt__cuda_optimizer_step(mixt__device *device, const mixt__update *update)
{
    (void)device;
    mixt__cuda_table table;
    MIXT_TRY(check(update));
    MIXT_TRY(mixt__cuda_table_get(update, &table));
    if (!table.chunk_count)
        return settle(update);
    if (kind_of(&update->optimizer) == RULE_LAMB)
        MIXT_TRY(make_moments(update, table, ratios_of(update, table)));
    return make_weights(update, table);
}

/* ---- LAMB in two halves ---- */

extern "C" mixt_status mixt__cuda_lamb_moments(mixt__device *device, const mixt__update *update)
{
    (void)device;
    mixt__cuda_table table;
    MIXT_TRY(check(update));
    MIXT_TRY(mixt__cuda_table_get(update, &table));
    return table.chunk_count ? make_moments(update, table, NULL) : MIXT_OK;
}

extern "C" mixt_status mixt__cuda_lamb_weights(mixt__device *device, const mixt__update *update, const float *ratios)
{
    (void)device;
    mixt__cuda_table table;
    MIXT_TRY(mixt__cuda_table_get(update, &table));
    if (!table.chunk_count)
        return settle(update);
    MIXT_TRY(
        mixt__cuda_check(cudaMemcpyAsync(ratios_of(update, table), ratios, (size_t)table.segment_count * sizeof *ratios,
                                         cudaMemcpyHostToDevice, mixt__cuda.stream),
                         "copying LAMB's ratios"));
    return make_weights(update, table);
}
