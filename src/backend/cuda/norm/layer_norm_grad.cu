/* The gradient of layer norm and, with RMS, of root-mean-square norm, which has no mean and no bias, with a fused
 * addend and the sums of its result's columns, which are a bias's gradient.
 *
 * A team of threads side by side covers a row, 16 bytes each, and takes two rows at a time, the next ones already on
 * their way through shared memory; each thread keeps to its columns, so the sums of columns add up in its
 * registers until the grid, which just fills the GPU, has swept all rows. The two sums of a row go through shared
 * memory; two buffers in turn make one barrier a sweep enough. Blocks leave one partial sum a column, which a second
 * launch adds up in order. Bytes: reads of src, grad_dst (and the addend), a write of grad_src.
 *
 * Rows too long, odd or unaligned are left to kernels that take one element at a time.
 */
#include "backend/cuda/core/async_copy.cuh"
#include "backend/cuda/norm/layer_norm.cuh"

enum { TEAM_ROWS = 2, SUMS = 2 * TEAM_ROWS, STAGES = 3, GRAD_THREADS = 384, GRAD_BLOCKS = 2 };
enum { TILE = 32, SLICES = 8, MAX_SPLITS = 64 };

/* ---- teams ---- */

/** Sums of SUMS values over a warp: each exchange first halves the values that a lane is left with, so that lane l ends
 *  with the sum of value l / (32 / SUMS). */
static __device__ __forceinline__ float warp_sums(float *s)
{
    int lane = (int)threadIdx.x & 31, bit = 16;
#pragma unroll
    for (int half = SUMS / 2; half; half >>= 1, bit >>= 1) {
        bool upper = lane & bit;
#pragma unroll
        for (int i = 0; i < half; i++) {
            float kept = upper ? s[i + half] : s[i], given = upper ? s[i] : s[i + half];
            s[i] = kept + __shfl_xor_sync(0xffffffffu, given, bit);
        }
    }
#pragma unroll
    for (; bit; bit >>= 1)
        s[0] += __shfl_xor_sync(0xffffffffu, s[0], bit);
    return s[0];
}

/** The ring of shared memory in which a thread's 16 bytes of the coming rows arrive: STAGES times TEAM_ROWS rows of
 *  src, grad_dst and the addend. A thread reads what it copied itself, so a wait is all it needs. */
template <typename T, int V> struct ring {
    uint4 *slots; // of this thread; neighbours lie a block's width apart

    __device__ __forceinline__ uint4 *slot(int stage, int tensor, int r) const
    {
        return slots + ((stage * 3 + tensor) * TEAM_ROWS + r) * (int)(blockDim.x * blockDim.y);
    }

    __device__ __forceinline__ void ask(const job &j, int64_t row, int64_t col, int stage) const
    {
        const void *tensors[3] = {j.src, j.grad_dst, j.addend};
#pragma unroll
        for (int tensor = 0; tensor < 3; tensor++)
#pragma unroll
            for (int r = 0; r < TEAM_ROWS; r++) {
                bool something = row + r < j.rows && col < j.cols;
                const T *from = (const T *)tensors[tensor] + (something ? (row + r) * j.cols + col : 0);
                if (tensor < 2 || j.addend)
                    copy16_async(slot(stage, tensor, r), from, something);
            }
        copies_commit();
    }

    __device__ __forceinline__ void get(float *v, int stage, int tensor, int r) const
    {
        unpack(v, pack<T, V>{*slot(stage, tensor, r)});
    }
};

/** Statistics of a team's rows, asked for one sweep ahead. */
typedef struct row_stats {
    float mean[TEAM_ROWS], rstd[TEAM_ROWS];
} row_stats;

template <bool RMS> static __device__ __forceinline__ row_stats stats_load(const job &j, int64_t row)
{
    row_stats s;
#pragma unroll
    for (int r = 0; r < TEAM_ROWS; r++) {
        s.mean[r] = !RMS && row + r < j.rows ? j.mean[row + r] : 0.0f;
        s.rstd[r] = row + r < j.rows ? j.rstd[row + r] : 0.0f;
    }
    return s;
}

/** Adds to the parameters' gradients; s: for each row, the sums of g·w and of g·w·x̂ over this thread's columns. */
template <bool RMS, typename T, int V>
static __device__ __forceinline__ void team_sums(const ring<T, V> &rows, int stage, const row_stats &at,
                                                 const float *weight, float *grad_weight, float *grad_bias, float *s)
{
#pragma unroll
    for (int r = 0; r < TEAM_ROWS; r++) {
        float x[V], g[V];
        rows.get(x, stage, 0, r);
        rows.get(g, stage, 1, r);
        s[2 * r] = s[2 * r + 1] = 0;
#pragma unroll
        for (int k = 0; k < V; k++) {
            float hat = (x[k] - at.mean[r]) * at.rstd[r], h = g[k] * weight[k];
            if (!RMS)
                s[2 * r] += h;
            s[2 * r + 1] += h * hat;
            grad_weight[k] += g[k] * hat;
            if (!RMS)
                grad_bias[k] += g[k];
        }
    }
}

/** totals: NULL, or to which the results are added. */
template <typename T, int V>
static __device__ __forceinline__ void team_store(const job &j, int64_t row, int64_t col, const ring<T, V> &rows,
                                                  int stage, const row_stats &at, const float *weight, const float *s,
                                                  float *totals)
{
#pragma unroll
    for (int r = 0; r < TEAM_ROWS; r++) {
        float x[V], g[V], add[V] = {};
        if (row + r >= j.rows)
            return;
        rows.get(x, stage, 0, r);
        rows.get(g, stage, 1, r);
        if (j.addend)
            rows.get(add, stage, 2, r);
        float mean_h = s[2 * r] * j.inv_cols, mean_hx = s[2 * r + 1] * j.inv_cols;
#pragma unroll
        for (int k = 0; k < V; k++) {
            float hat = (x[k] - at.mean[r]) * at.rstd[r];
            x[k] = at.rstd[r] * (g[k] * weight[k] - mean_h - hat * mean_hx) + add[k];
            if (totals)
                totals[k] += x[k];
        }
        store<T, V>(j.dst, (row + r) * j.cols + col, x);
    }
}

/** Adds the teams' sums in order, through shared memory, and leaves the block's. */
template <int V>
static __device__ __forceinline__ void block_partial(const job &j, float *shared, float *sums, int64_t col, float *out)
{
    int team = (int)threadIdx.y, place = (int)threadIdx.x * V, span = (int)blockDim.x * V;
    __syncthreads();
    for (int k = 0; k < V; k++)
        shared[team * span + place + k] = sums[k];
    __syncthreads();
    if (team == 0 && col < j.cols)
        for (int k = 0; k < V; k++) {
            float total = sums[k];
            for (int other = 1; other < (int)blockDim.y; other++)
                total += shared[other * span + place + k];
            out[col + k] = total;
        }
}

/** The team's sums of its rows, in every thread; buffer: of this team and sweep. */
static __device__ __forceinline__ void team_total(float *s, float *buffer)
{
    int warps = (int)blockDim.x / 32, warp = (int)threadIdx.x / 32;
    float sum = warp_sums(s);
    if (threadIdx.x % (32 / SUMS) == 0)
        buffer[warp * SUMS + (threadIdx.x & 31) / (32 / SUMS)] = sum;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        s[i] = buffer[i];
    for (int w = 1; w < warps; w++)
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            s[i] += buffer[w * SUMS + i];
}

/** blockDim = (threads of a team, teams). Shared memory: two buffers of sums a team, then the ring. */
template <typename T, int V, bool TOTALS, bool RMS>
static __global__ void __launch_bounds__(GRAD_THREADS, GRAD_BLOCKS) layer_norm_grad_team(const job j)
{
    extern __shared__ uint4 shared[];
    int team = (int)threadIdx.y, width = (int)(blockDim.x / 32) * SUMS, teams = (int)blockDim.y, stage = 0;
    int64_t col = (int64_t)threadIdx.x * V, stride = (int64_t)gridDim.x * teams * TEAM_ROWS;
    int64_t first = ((int64_t)blockIdx.x * teams + team) * TEAM_ROWS, ahead = team * TEAM_ROWS;
    float *sums = (float *)shared + 2 * team * width;
    ring<T, V> rows = {shared + 2 * teams * width / 4 + team * blockDim.x + threadIdx.x};
    float weight[V] = {}, grad_weight[V] = {}, grad_bias[V] = {}, totals[V] = {};
    for (int s = 0; s < STAGES - 1; s++)
        rows.ask(j, first + s * stride, col, s);
    if (col < j.cols)
        load_constants<V>(weight, j.weight, col);
    row_stats coming = stats_load<RMS>(j, first);
    bool other = false;
    for (int64_t row = first; row - ahead < j.rows; row += stride) { // as often in every team: they share barriers
        float s[SUMS];
        row_stats at = coming;
        copies_wait<STAGES - 2>();
        rows.ask(j, row + (STAGES - 1) * stride, col, stage ? stage - 1 : STAGES - 1);
        coming = stats_load<RMS>(j, row + stride);
        team_sums<RMS>(rows, stage, at, weight, grad_weight, grad_bias, s);
        team_total(s, sums + (int)other * width);
        if (col < j.cols)
            team_store(j, row, col, rows, stage, at, weight, s, TOTALS ? totals : NULL);
        stage = stage + 1 < STAGES ? stage + 1 : 0;
        other = !other;
    }
    copies_wait<0>(); // the block's sums take the ring's place
    float *out = j.partials + (int64_t)blockIdx.x * j.kinds * j.cols;
    block_partial<V>(j, (float *)shared, grad_weight, col, out);
    if (!RMS)
        block_partial<V>(j, (float *)shared, grad_bias, col, out + j.cols);
    if (TOTALS)
        block_partial<V>(j, (float *)shared, totals, col, out + 2 * j.cols);
}

/* ---- one element at a time ---- */

template <typename T, bool RMS>
static __global__ void __launch_bounds__(PLAIN_THREADS) layer_norm_grad_plain(const job j)
{
    __shared__ float shared[32];
    for (int64_t row = blockIdx.x; row < j.rows; row += gridDim.x) {
        const T *src = (const T *)j.src + row * j.cols, *grad = (const T *)j.grad_dst + row * j.cols;
        const T *addend = (const T *)j.addend + (j.addend ? row * j.cols : 0);
        T *dst = (T *)j.dst + row * j.cols;
        float mean = RMS ? 0.0f : j.mean[row], rstd = j.rstd[row], sum_h = 0, sum_hx = 0;
        for (int64_t c = threadIdx.x; c < j.cols; c += PLAIN_THREADS) {
            float h = to_float(grad[c]) * j.weight[c];
            sum_h += h;
            sum_hx += h * ((to_float(src[c]) - mean) * rstd);
        }
        float mean_h = RMS ? 0.0f : block_sum(sum_h, shared) * j.inv_cols,
              mean_hx = block_sum(sum_hx, shared) * j.inv_cols;
        for (int64_t c = threadIdx.x; c < j.cols; c += PLAIN_THREADS) {
            float hat = (to_float(src[c]) - mean) * rstd, h = to_float(grad[c]) * j.weight[c];
            dst[c] = from_float<T>(rstd * (h - mean_h - hat * mean_hx) + (addend ? to_float(addend[c]) : 0.0f));
        }
    }
}

/** blockDim = (TILE, SLICES): a block takes TILE columns of every gridDim.y-th group of SLICES rows. Runs after
 *  layer_norm_grad_plain, whose result it reads. */
template <typename T, bool RMS>
static __global__ void __launch_bounds__(TILE *SLICES) layer_norm_grad_columns(const job j)
{
    __shared__ float sums[3][SLICES][TILE];
    int64_t col = (int64_t)blockIdx.x * TILE + threadIdx.x;
    float own[3] = {};
    for (int64_t row = (int64_t)blockIdx.y * SLICES + threadIdx.y; col < j.cols && row < j.rows;
         row += (int64_t)gridDim.y * SLICES) {
        float g = to_float(((const T *)j.grad_dst)[row * j.cols + col]);
        float mean = RMS ? 0.0f : j.mean[row];
        own[0] += g * ((to_float(((const T *)j.src)[row * j.cols + col]) - mean) * j.rstd[row]);
        own[1] += g;
        if (j.kinds == 3)
            own[2] += to_float(((const T *)j.dst)[row * j.cols + col]);
    }
    for (int kind = 0; kind < 3; kind++)
        sums[kind][threadIdx.y][threadIdx.x] = own[kind];
    __syncthreads();
    if (threadIdx.y || col >= j.cols)
        return;
    for (int kind = 0; kind < j.kinds; kind++) {
        float sum = sums[kind][0][threadIdx.x];
        for (int i = 1; i < SLICES; i++)
            sum += sums[kind][i][threadIdx.x];
        j.partials[((int64_t)blockIdx.y * j.kinds + kind) * j.cols + col] = sum;
    }
}

/** The parts' sums: kinds·cols columns; blockDim = (TILE, SLICES). */
static __global__ void __launch_bounds__(TILE *SLICES) layer_norm_grad_params(const job j)
{
    __shared__ float sums[SLICES][TILE];
    int64_t at = (int64_t)blockIdx.x * TILE + threadIdx.x, count = j.kinds * j.cols;
    float sum = 0;
#pragma unroll 8
    for (int64_t part = threadIdx.y; part < (at < count ? j.parts : 0); part += SLICES)
        sum += j.partials[part * count + at];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y || at >= count)
        return;
    for (int i = 1; i < SLICES; i++)
        sum += sums[i][threadIdx.x];
    int kind = (int)(at / j.cols);
    float *out = j.grads[kind] + (at - kind * j.cols);
    *out = j.add[kind] ? *out + sum : sum;
}

/* ---- the host's side ---- */

/** Partial sums that blocks may leave, whichever kernels run. */
static int64_t most_parts(const mixt__cuda_device *gpu)
{
    int64_t blocks = (int64_t)gpu->multiprocessors * GRAD_BLOCKS;
    return blocks > MAX_SPLITS ? blocks : MAX_SPLITS;
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    int64_t kinds = call->out_count - 1;
    call->workspace_bytes =
        (size_t)(most_parts(mixt__cuda_of(call)) * kinds * mixt__tensor_last(&call->in[0])) * sizeof(float);
    return MIXT_OK;
}

/** False: rows are too long for a team, or the GPU's shared memory too small. */
template <typename T, bool RMS> static bool gradient_teams(const mixt__cuda_device *gpu, job &j, cudaError_t *error)
{
    constexpr int V = vec16<T>::size;
    int64_t threads = mixt__ceil_div(j.cols, 32 * V) * 32,
            each = (STAGES * 3 * TEAM_ROWS * threads + 2 * SUMS / 4 * (threads / 32)) * (int64_t)sizeof(uint4);
    int64_t teams = GRAD_THREADS / threads, fit = gpu->shared_limit / each;
    teams = teams < fit ? teams : fit;
    if (!teams)
        return false;
    int64_t blocks = mixt__ceil_div(j.rows, teams * TEAM_ROWS);
    auto kernel = !RMS && j.kinds == 3 ? layer_norm_grad_team<T, V, !RMS, RMS> : layer_norm_grad_team<T, V, false, RMS>;
    j.parts = blocks < most_parts(gpu) ? blocks : most_parts(gpu);
    *error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(teams * each));
    if (*error == cudaSuccess)
        kernel<<<(unsigned)j.parts, dim3((unsigned)threads, (unsigned)teams), (size_t)(teams * each), gpu->stream>>>(j);
    return true;
}

template <typename T, bool RMS> static cudaError_t gradient(const mixt__cuda_device *gpu, job &j, bool vectors)
{
    cudaError_t error = cudaSuccess;
    if (vectors && gradient_teams<T, RMS>(gpu, j, &error))
        return error;
    int64_t splits = mixt__ceil_div(j.rows, 4 * SLICES);
    j.parts = splits < MAX_SPLITS ? splits : MAX_SPLITS;
    layer_norm_grad_plain<T, RMS><<<plain_grid(gpu, &j), PLAIN_THREADS, 0, gpu->stream>>>(j);
    layer_norm_grad_columns<T, RMS>
        <<<dim3((unsigned)mixt__ceil_div(j.cols, TILE), (unsigned)j.parts), dim3(TILE, SLICES), 0, gpu->stream>>>(j);
    return error;
}

/** rms: inputs are src, weight, rstd, grad_dst, and there is no bias. */
template <bool RMS> static mixt_status run(const mixt__call *call, const char *name)
{
    const mixt__norm_attrs *at = (const mixt__norm_attrs *)call->attrs;
    const mixt__tensor *in = call->in + (RMS ? 1 : 2); // the input in front of rstd
    job j = job_of(call);
    j.mean = RMS ? NULL : (float *)in[0].data;
    j.rstd = (float *)in[1].data;
    j.grad_dst = in[2].data;
    j.addend = at->addend ? in[3].data : NULL;
    j.kinds = call->out_count - 1;
    for (int kind = 0; kind < j.kinds; kind++) {
        j.grads[kind] = (float *)call->out[kind + 1].data;
        j.add[kind] = call->accumulate >> (kind + 1) & 1;
    }
    j.partials = (float *)call->workspace;
    cudaError_t error = cudaSuccess;
    if (j.rows)
        DISPATCH(call->in[0].dtype, T, (error = gradient<T, RMS>(mixt__cuda_of(call), j, all_aligned(call, &j))));
    if (error != cudaSuccess)
        return mixt__cuda_check(error, name);
    if (j.cols)
        layer_norm_grad_params<<<(unsigned)mixt__ceil_div(j.kinds * j.cols, TILE), dim3(TILE, SLICES), 0,
                                 mixt__cuda_of(call)->stream>>>(j);
    return mixt__cuda_launched(name);
}

static mixt_status grad_run(const mixt__call *call)
{
    return run<false>(call, "layer_norm_grad");
}

static mixt_status rms_grad_run(const mixt__call *call)
{
    return run<true>(call, "rms_norm_grad");
}

static const mixt__kernel grad_kernel = {.name = "rows", .prepare = grad_prepare, .run = grad_run};
static const mixt__kernel rms_grad_kernel = {.name = "rows", .prepare = grad_prepare, .run = rms_grad_run};

extern "C" const mixt__kernel *const mixt__cuda_layer_norm_grad_kernels[] = {&grad_kernel, NULL};
extern "C" const mixt__kernel *const mixt__cuda_rms_norm_grad_kernels[] = {&rms_grad_kernel, NULL};
