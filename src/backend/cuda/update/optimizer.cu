/* The optimizer on the GPU: one pass over the flat arenas that writes masters, moments and working copies.
 *
 * Formulas as in backend/cpu/update/optimizer.c, in the same order for each element and compiled without contraction to
 * fused multiply-add: the same control block gives the same bits. A block takes an eighth of a chunk, each thread twice
 * 4 elements; AdamW with a 16-bit working copy reads 16 bytes a parameter and writes 14, with moments in BF16 12
 * and 10. LAMB has a first pass, a block a chunk, that makes moments and norms; its last block turns those into one
 * ratio a segment. Chunks start at multiples of 16 elements and the arenas are padded to them, so whole vectors may
 * always be read; only elements of a segment are written.
 */
#include "backend/cuda/kernels.h"

#include "backend/cuda/core/dependent.cuh"
#include "backend/cuda/core/device.cuh"
#include "backend/cuda/core/last_block.cuh"
#include "backend/cuda/core/random.cuh"
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

/* ---- moments in their format ---- */

static __device__ __forceinline__ void load_moment(four &x, const float *p)
{
    x.raw = *reinterpret_cast<const float4 *>(p);
}

static __device__ __forceinline__ void load_moment(four &x, const bf16 *p)
{
    union {
        uint2 raw;
        bf16 v[4];
    } narrow;
    narrow.raw = *reinterpret_cast<const uint2 *>(p);
    for (int i = 0; i < 4; i++)
        x.v[i] = to_float(narrow.v[i]);
}

static __device__ __forceinline__ void store_moment(float *p, const four &x, int valid)
{
    store_four(p, x, valid);
}

static __device__ __forceinline__ void store_moment(bf16 *p, const four &x, int valid)
{
    store_low<bf16>(p, 0, x, valid);
}

/** As mixt__stochastic_bf16 rounds. */
static __device__ __forceinline__ uint16_t round_stochastic(float x, uint32_t word)
{
    uint32_t bits = __float_as_uint(x), infinity = 0x7f800000u;
    uint32_t special = bits >> 16 | ((bits & ~0x80000000u) > infinity ? 0x40u : 0u);
    return (uint16_t)((bits & infinity) == infinity ? special : (bits + (0xffffu - (word >> 16))) >> 16);
}

/** @param element the first of the four among those of all ranks, a multiple of 4 */
static __device__ __forceinline__ void store_moment_stochastic(float *p, const four &x, int valid, uint64_t, int64_t)
{
    store_four(p, x, valid);
}

static __device__ __forceinline__ void store_moment_stochastic(bf16 *p, const four &x, int valid, uint64_t key,
                                                               int64_t element)
{
    uint4 random = random_block(key, (uint64_t)element / 4);
    const uint32_t words[4] = {random.x, random.y, random.z, random.w};
    union {
        uint2 raw;
        uint16_t v[4];
    } narrow;
    for (int i = 0; i < 4; i++)
        narrow.v[i] = round_stochastic(x.v[i], words[i]);
    if (valid >= 4) {
        *reinterpret_cast<uint2 *>(p) = narrow.raw;
        return;
    }
    for (int i = 0; i < 4; i++)
        if (i < valid)
            reinterpret_cast<uint16_t *>(p)[i] = narrow.v[i];
}

/** The arenas of an update. */
typedef struct arenas {
    float *master;
    void *moment1, *moment2;
    uint64_t key; // of the second moment's rounding
    const float *grad;
    void *bf16_copy, *fp16_copy;
    const mixt__control *control;
    const float *ratios; // LAMB's, one a segment
} arenas;

/** @tparam M format of the moments */
template <int KIND, typename M>
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
            load_moment(m[i], (const M *)a.moment1 + at);
        if (uses_v)
            load_moment(v[i], (const M *)a.moment2 + at);
    }
    dependency_wait(); // only the control block is not there yet: see dependent.cuh
    if (a.control->found_inf)
        return;
    rule r = rule_of(s, a.control, chunk);
    if (KIND == RULE_LAMB)
        r.lr *= a.ratios[chunk.segment];
    const uint64_t key = random_key(a.key, (uint64_t)a.control->step, 0);
#pragma unroll
    for (int i = 0; i < APPLY_VECTORS; i++) {
        int in_chunk = begin + 4 * i * APPLY_THREADS, valid = chunk.count - in_chunk;
#pragma unroll
        for (int j = 0; j < 4; j++)
            update_one<KIND>(r, uses_grad ? g[i].v[j] : 0.0f, w[i].v[j], m[i].v[j], v[i].v[j]);
        store_four(a.master + chunk.at + in_chunk, w[i], valid);
        if (uses_m && KIND != RULE_LAMB)
            store_moment((M *)a.moment1 + chunk.at + in_chunk, m[i], valid);
        if (uses_v && KIND != RULE_LAMB)
            store_moment_stochastic((M *)a.moment2 + chunk.at + in_chunk, v[i], valid, key,
                                    16 * (int64_t)chunk.first + in_chunk);
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

template <typename M>
static __global__ void __launch_bounds__(CHUNK_THREADS)
    lamb_moments(const mixt__cuda_table table, const arenas a, const settings s, double2 *sums, float *ratios)
{
    __shared__ double2 warps[CHUNK_THREADS / 32];
    const mixt__cuda_chunk chunk = table.chunks[blockIdx.x];
    rule r = rule_of(s, a.control, chunk);
    double weights = 0, updates = 0;
    const uint64_t key = random_key(a.key, (uint64_t)a.control->step, 0);
    if (a.control->found_inf)
        return;
    for (int at = 4 * (int)threadIdx.x; at < chunk.count; at += 4 * CHUNK_THREADS) {
        four w, g, m, v;
        w.raw = *reinterpret_cast<const float4 *>(a.master + chunk.at + at);
        g.raw = *reinterpret_cast<const float4 *>(a.grad + chunk.at + at);
        load_moment(m, (const M *)a.moment1 + chunk.at + at);
        load_moment(v, (const M *)a.moment2 + chunk.at + at);
        for (int j = 0; j < 4; j++) {
            moments(r, gradient(r, g.v[j]), m.v[j], v.v[j]);
            double u = lamb_update(r, w.v[j], m.v[j], v.v[j]);
            weights += at + j < chunk.count ? (double)w.v[j] * (double)w.v[j] : 0;
            updates += at + j < chunk.count ? u * u : 0;
        }
        store_moment((M *)a.moment1 + chunk.at + at, m, chunk.count - at);
        store_moment_stochastic((M *)a.moment2 + chunk.at + at, v, chunk.count - at, key,
                                16 * (int64_t)chunk.first + at);
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

static mixt_status settle(const mixt__cuda_device *gpu, const mixt__update *update)
{
    int64_t count = update->statistics_count;
    if (!count)
        return MIXT_OK;
    settle_statistics<<<(unsigned)mixt__ceil_div(count, APPLY_THREADS), APPLY_THREADS, 0, gpu->stream>>>(
        update->statistics, update->kept, count, update->control);
    return mixt__cuda_launched("running statistics");
}

static mixt_status check(const mixt__update *update)
{
    int moments = mixt__optimizer_moments(&update->optimizer);
    for (int i = 0; i < moments; i++) {
        const mixt__update_role *role = &update->moments[i];
        if (!role->data)
            return mixt__fail(MIXT_ERROR_INTERNAL, "the optimizer keeps %d moments, but has no memory for them",
                              moments);
        if (role->format != update->moments[0].format || role->stochastic != (i && role->format != MIXT_DTYPE_FP32) ||
            (role->format != MIXT_DTYPE_FP32 && role->format != MIXT_DTYPE_BF16))
            return mixt__fail(MIXT_ERROR_DTYPE, "no such moments in %s are possible on the GPU",
                              mixt_dtype_name(role->format));
    }
    for (int64_t i = 0; i < update->segment_count; i++) {
        mixt_dtype low = update->segments[i].low;
        if (low != MIXT_DTYPE_NONE && ((low != MIXT_DTYPE_BF16 && low != MIXT_DTYPE_FP16) || !update->low[low]))
            return mixt__fail(MIXT_ERROR_DTYPE, "parameter %d: no working copy in %s is possible on the GPU",
                              (int)update->segments[i].param, mixt_dtype_name(low));
    }
    return MIXT_OK;
}

template <typename M>
static cudaError_t apply_as(const mixt__cuda_device *gpu, rule_kind kind, const mixt__cuda_table &table,
                            const arenas &a, const settings &s)
{
    unsigned grid = (unsigned)(table.chunk_count * APPLY_PARTS);
    switch (kind) {
    case RULE_SGD:
        return launch_dependent(gpu, optimizer_apply<RULE_SGD, float>, grid, APPLY_THREADS, table.chunks, a, s);
    case RULE_MOMENTUM:
        return launch_dependent(gpu, optimizer_apply<RULE_MOMENTUM, M>, grid, APPLY_THREADS, table.chunks, a, s);
    case RULE_NESTEROV:
        return launch_dependent(gpu, optimizer_apply<RULE_NESTEROV, M>, grid, APPLY_THREADS, table.chunks, a, s);
    case RULE_ADAM:
        return launch_dependent(gpu, optimizer_apply<RULE_ADAM, M>, grid, APPLY_THREADS, table.chunks, a, s);
    case RULE_ADAMW:
        return launch_dependent(gpu, optimizer_apply<RULE_ADAMW, M>, grid, APPLY_THREADS, table.chunks, a, s);
    default:
        return launch_dependent(gpu, optimizer_apply<RULE_LAMB, M>, grid, APPLY_THREADS, table.chunks, a, s);
    }
}

static bool narrow_moments(const mixt__update *update)
{
    return update->moments[0].format == MIXT_DTYPE_BF16;
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
            update->moments[0].data,
            update->moments[1].data,
            update->moments[1].key,
            (const float *)update->gradient.data,
            update->low[MIXT_DTYPE_BF16],
            update->low[MIXT_DTYPE_FP16],
            update->control,
            ratios_of(update, table)};
}

/** LAMB's first pass. @param ratios NULL: the segments are parts, whose ratios follow from others' sums too */
static mixt_status make_moments(const mixt__cuda_device *gpu, const mixt__update *update, const mixt__cuda_table &table,
                                float *ratios)
{
    auto *kernel = narrow_moments(update) ? lamb_moments<bf16> : lamb_moments<float>;
    kernel<<<(unsigned)table.chunk_count, CHUNK_THREADS, 0, gpu->stream>>>(
        table, arenas_of(update, table), settings_of(update), (double2 *)update->workspace, ratios);
    return mixt__cuda_launched("LAMB's moments");
}

static mixt_status make_weights(const mixt__cuda_device *gpu, const mixt__update *update, const mixt__cuda_table &table)
{
    rule_kind kind = kind_of(&update->optimizer);
    auto *apply = narrow_moments(update) ? apply_as<bf16> : apply_as<float>;
    MIXT_TRY(mixt__cuda_check(apply(gpu, kind, table, arenas_of(update, table), settings_of(update)), "optimizer"));
    return settle(gpu, update);
}

extern "C" mixt_status mixt__cuda_optimizer_step(mixt__device *device, const mixt__update *update)
{
    mixt__cuda_enter(device);
    const mixt__cuda_device *gpu = mixt__cuda_device_of(device);
    mixt__cuda_table table;
    MIXT_TRY(check(update));
    MIXT_TRY(mixt__cuda_table_get(device, update, &table));
    if (!table.chunk_count)
        return settle(gpu, update);
    if (kind_of(&update->optimizer) == RULE_LAMB)
        MIXT_TRY(make_moments(gpu, update, table, ratios_of(update, table)));
    return make_weights(gpu, update, table);
}

/* ---- LAMB in two halves ---- */

extern "C" mixt_status mixt__cuda_lamb_moments(mixt__device *device, const mixt__update *update)
{
    mixt__cuda_enter(device);
    const mixt__cuda_device *gpu = mixt__cuda_device_of(device);
    mixt__cuda_table table;
    MIXT_TRY(check(update));
    MIXT_TRY(mixt__cuda_table_get(device, update, &table));
    return table.chunk_count ? make_moments(gpu, update, table, NULL) : MIXT_OK;
}

extern "C" mixt_status mixt__cuda_lamb_weights(mixt__device *device, const mixt__update *update, const float *ratios)
{
    mixt__cuda_enter(device);
    const mixt__cuda_device *gpu = mixt__cuda_device_of(device);
    mixt__cuda_table table;
    MIXT_TRY(mixt__cuda_table_get(device, update, &table));
    if (!table.chunk_count)
        return settle(gpu, update);
    MIXT_TRY(
        mixt__cuda_check(cudaMemcpyAsync(ratios_of(update, table), ratios, (size_t)table.segment_count * sizeof *ratios,
                                         cudaMemcpyHostToDevice, gpu->stream),
                         "copying LAMB's ratios"));
    return make_weights(gpu, update, table);
}
