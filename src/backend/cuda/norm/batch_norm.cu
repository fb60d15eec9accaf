/* Batch norm, each channel over all rows of (rows, channels), and its gradient; fused with an addend and ReLU.
 *
 * Threads lie as teams of 8 to 32 side by side over 16-byte columns of channels, each team on a row of its own; a
 * thread keeps to its channels. Two passes each. The sums: a grid that just fills the GPU sweeps the rows front to
 * back; blocks add up in FP32, and the last block done with its channels adds the blocks' sums in double precision, in
 * order, whichever block that is, and makes the constants of the second pass, which goes back to front, while the end
 * is still in the cache, and leaves the front there for whoever reads the result next.
 *
 * Deviations are taken from the first row instead of the mean, which is not known yet, so no large mean cancels. Where
 * rows are masked, a kernel of one block counts those that do count and finds their first, before all else.
 * Bytes: forward two reads and a write of src's size (and a read of the addend's), gradient four reads and a write.
 */
#include "backend/cuda/core/pack.cuh"
#include "backend/cuda/kernels.h"

enum {
    SUM_THREADS = 512,
    WARPS = SUM_THREADS / 32,
    SUM_LANES = 8,
    APPLY_THREADS = 256,
    APPLY_ROWS = 8,
    UNROLL = 4,
    FOUND = 4, // floats of the workspace that job.found takes
    COUNTERS = MIXT_CUDA_COUNTERS_BATCH_NORM
};

/** Everything the kernels of one call need; T of the pointers is the kernels' own. */
typedef struct job {
    int64_t rows, cols;
    int lanes;     // threads side by side: a power of two
    int64_t tiles; // columns of blocks
    const void *src, *grad_dst, *addend;
    void *dst; // or grad_src
    const float *weight, *bias;
    float *mean, *rstd;                 // outputs of the forward, inputs of the gradient
    float *running_mean, *running_var;  // forward
    float *grad_weight, *grad_bias;     // gradient
    float *partials;                    // (chunks, 2, cols)
    float *scale, *shift, *slope, *off; // by channel: y = scale · x + shift, grad_src = scale · g + slope · x + off
    const float *mask;                  // NULL: all rows count
    int64_t inner;                      // rows that one number of the mask is for
    int64_t *found;                     // with a mask: how many rows count, and the first of them
    float eps, momentum;
    bool relu, add_weight, add_bias;
    bool repeated;      // forward: the running statistics have been updated
    unsigned *finished; // (COUNTERS) blocks that have their sums of a tile of channels; 0 again when a launch ends
} job;

/* ---- rows that count ---- */

static __device__ __forceinline__ bool counts(const job &j, int64_t row)
{
    return !j.mask || j.mask[row / j.inner] > 0;
}

static __device__ __forceinline__ int64_t counted_rows(const job &j)
{
    return j.mask ? j.found[0] : j.rows;
}

static __device__ __forceinline__ int64_t first_row(const job &j)
{
    return j.mask ? j.found[1] : 0;
}

/** One block: whole numbers, so the order of the additions says nothing. */
static __global__ void __launch_bounds__(SUM_THREADS) count_kernel(const job j)
{
    __shared__ long long count, first;
    long long groups = j.rows / j.inner, own = 0, lowest = groups;
    if (threadIdx.x == 0) {
        count = 0;
        first = groups;
    }
    __syncthreads();
    for (long long i = threadIdx.x; i < groups; i += SUM_THREADS)
        if (j.mask[i] > 0) {
            own++;
            lowest = i < lowest ? i : lowest;
        }
    atomicAdd((unsigned long long *)&count, (unsigned long long)own);
    atomicMin(&first, lowest);
    __syncthreads();
    if (threadIdx.x == 0) {
        j.found[0] = count * j.inner;
        j.found[1] = count ? first * j.inner : 0;
    }
}

/* ---- sums by channel ---- */

/** What one thread adds up: of x - centre and its square, or for the gradient of g and g · (x - centre). */
template <typename T, int V, bool GRAD> struct sums {
    float first[V], second[V], centre[V], scale[V], shift[V];

    __device__ __forceinline__ void start(const job &j, int64_t col)
    {
        for (int i = 0; i < V; i++)
            first[i] = second[i] = scale[i] = shift[i] = 0;
        if constexpr (GRAD) {
            load_constants<V>(centre, j.mean, col);
            if (j.relu) {
                float rstd[V];
                load_constants<V>(rstd, j.rstd, col);
                load_constants<V>(scale, j.weight, col);
                load_constants<V>(shift, j.bias, col);
                for (int i = 0; i < V; i++) {
                    scale[i] *= rstd[i];
                    shift[i] = fmaf(-centre[i], scale[i], shift[i]);
                }
            }
        } else {
            unpack(centre, load<T, V>(j.src, first_row(j) * j.cols + col));
        }
    }

    __device__ __forceinline__ void add(const pack<T, V> &x, const pack<T, V> &g, bool relu)
    {
        float value[V], grad[V];
        unpack(value, x);
        if constexpr (GRAD)
            unpack(grad, g);
        for (int i = 0; i < V; i++) {
            float away = value[i] - centre[i], term = away;
            if constexpr (GRAD)
                term = !relu || fmaf(value[i], scale[i], shift[i]) > 0 ? grad[i] : 0.0f;
            first[i] += term;
            second[i] = fmaf(term, away, second[i]);
        }
    }
};

/** From the sums of channel c to the forward's outputs and constants. */
static __device__ void finish_forward(const job &j, int64_t c, double sum, double squares, float first)
{
    int64_t counted = counted_rows(j);
    double rows = counted ? (double)counted : 1.0, mean = sum / rows;
    squares -= sum * mean;
    squares = squares < 0 ? 0 : squares; // NaN stays
    mean += counted ? (double)first : 0.0;
    double m = (double)j.momentum, var = squares / rows, unbiased = counted > 1 ? squares / (rows - 1) : var;
    if (!j.repeated && counted) {
        j.running_mean[c] = (float)((1 - m) * (double)j.running_mean[c] + m * mean);
        j.running_var[c] = (float)((1 - m) * (double)j.running_var[c] + m * unbiased);
    }
    j.mean[c] = (float)mean;
    j.rstd[c] = (float)(1 / sqrt(var + (double)j.eps));
    j.scale[c] = j.rstd[c] * j.weight[c];
    j.shift[c] = fmaf(-j.mean[c], j.scale[c], j.bias[c]);
}

static __device__ void finish_grad(const job &j, int64_t c, double sum_g, double sum_gx)
{
    double rstd = (double)j.rstd[c], scale = rstd * (double)j.weight[c];
    int64_t counted = counted_rows(j);
    double rows = counted ? (double)counted : 1.0;
    sum_gx *= rstd;
    double slope = -scale * rstd * (sum_gx / rows);
    j.scale[c] = j.rstd[c] * j.weight[c];
    j.shift[c] = j.relu ? fmaf(-j.mean[c], j.scale[c], j.bias[c]) : 0.0f;
    j.slope[c] = (float)slope;
    j.off[c] = (float)(-scale * (sum_g / rows) - slope * (double)j.mean[c]);
    j.grad_weight[c] = (float)(j.add_weight ? sum_gx + (double)j.grad_weight[c] : sum_gx);
    j.grad_bias[c] = (float)(j.add_bias ? sum_g + (double)j.grad_bias[c] : sum_g);
}

/** The block's sums over its rows, of the tile's channels, to its place in the partials. */
template <typename T, int V, bool GRAD>
static __device__ __forceinline__ void store_block(const job &j, sums<T, V, GRAD> &s, int64_t tile, float *shared)
{
    int width = j.lanes * V;
    for (int offset = j.lanes; offset < 32; offset <<= 1)
        for (int i = 0; i < V; i++) {
            s.first[i] += __shfl_xor_sync(0xffffffffu, s.first[i], offset);
            s.second[i] += __shfl_xor_sync(0xffffffffu, s.second[i], offset);
        }
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    if (lane < j.lanes)
        for (int i = 0; i < V; i++) {
            shared[(2 * warp + 0) * width + lane * V + i] = s.first[i];
            shared[(2 * warp + 1) * width + lane * V + i] = s.second[i];
        }
    __syncthreads();
    for (int at = threadIdx.x; at < 2 * width; at += SUM_THREADS) {
        int64_t col = tile * width + at % width;
        float sum = 0;
        for (int w = 0; w < WARPS; w++)
            sum += shared[2 * w * width + at];
        if (col < j.cols)
            j.partials[((int64_t)blockIdx.x * 2 + at / width) * j.cols + col] = sum;
    }
}

/** Whether this block is the last of its tile, so that all partials of the tile are there. */
static __device__ __forceinline__ bool last_of_tile(unsigned *finished, int64_t tile)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(&finished[tile % COUNTERS], gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    return last;
}

/** The chunks of a tile's channels added up: some threads a channel, each every so-many-th chunk, then those in order.
 */
template <typename T, bool GRAD> static __device__ void finish_tile(const job &j, int64_t tile, int width)
{
    __shared__ double totals[2][SUM_THREADS];
    int columns = width < SUM_THREADS ? width : SUM_THREADS, groups = SUM_THREADS / columns;
    int column = threadIdx.x % columns, group = threadIdx.x / columns;
    int64_t c = tile * width + column;
    double first = 0, second = 0;
    if (c < j.cols && group < groups)
#pragma unroll 8
        for (unsigned chunk = group; chunk < gridDim.x; chunk += groups) {
            first += (double)__ldcg(&j.partials[((int64_t)chunk * 2 + 0) * j.cols + c]);
            second += (double)__ldcg(&j.partials[((int64_t)chunk * 2 + 1) * j.cols + c]);
        }
    totals[0][threadIdx.x] = first;
    totals[1][threadIdx.x] = second;
    __syncthreads();
    if (group == 0 && c < j.cols) {
        for (int g = 1; g < groups; g++) {
            first += totals[0][g * columns + column];
            second += totals[1][g * columns + column];
        }
        if constexpr (GRAD)
            finish_grad(j, c, first, second);
        else
            finish_forward(j, c, first, second, to_float(static_cast<const T *>(j.src)[first_row(j) * j.cols + c]));
    }
    __syncthreads();
}

template <typename T, int V, bool GRAD>
static __global__ void __launch_bounds__(SUM_THREADS, GRAD ? 1 : 2) sum_kernel(const job j)
{
    __shared__ float shared[WARPS * 2 * (V == 1 ? 32 : SUM_LANES * V)];
    int lane = threadIdx.x & (j.lanes - 1), team = threadIdx.x / j.lanes, teams = SUM_THREADS / j.lanes;
    int64_t step = (int64_t)gridDim.x * teams;
    for (int64_t tile = blockIdx.y; tile < j.tiles; tile += gridDim.y) {
        int64_t col = (tile * j.lanes + lane) * V, row = (int64_t)blockIdx.x * teams + team;
        sums<T, V, GRAD> s;
        s.start(j, col < j.cols ? col : 0);
        for (; col < j.cols && row < j.rows; row += UNROLL * step) {
            pack<T, V> x[UNROLL], g[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                if (row + u * step < j.rows) {
                    x[u] = load<T, V>(j.src, (row + u * step) * j.cols + col);
                    if constexpr (GRAD)
                        g[u] = load<T, V>(j.grad_dst, (row + u * step) * j.cols + col);
                }
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                if (row + u * step < j.rows && counts(j, row + u * step))
                    s.add(x[u], g[u], j.relu);
        }
        store_block(j, s, tile, shared);
        if (last_of_tile(j.finished, tile))
            finish_tile<T, GRAD>(j, tile, j.lanes * V);
    }
}

/** The constants of evaluation, and of a batch without rows. */
static __global__ void fixed_statistics_kernel(const job j, bool running)
{
    int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= j.cols)
        return;
    double mean = running ? (double)j.running_mean[c] : 0.0, var = running ? (double)j.running_var[c] : 0.0;
    j.mean[c] = (float)mean;
    j.rstd[c] = (float)(1 / sqrt(var + (double)j.eps));
    j.scale[c] = j.rstd[c] * j.weight[c];
    j.shift[c] = fmaf(-j.mean[c], j.scale[c], j.bias[c]);
}

/** The gradient of a batch without rows. */
static __global__ void no_rows_grad_kernel(const job j)
{
    int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (c < j.cols && !j.add_weight)
        j.grad_weight[c] = 0;
    if (c < j.cols && !j.add_bias)
        j.grad_bias[c] = 0;
}

/* ---- the elements ---- */

/** One thread's constants and how they make a result. */
template <typename T, int V, bool GRAD> struct applied {
    float scale[V], shift[V], slope[V], off[V];

    __device__ __forceinline__ void start(const job &j, int64_t col)
    {
        load_constants<V>(scale, j.scale, col);
        load_constants<V>(shift, j.shift, col);
        if constexpr (GRAD) {
            load_constants<V>(slope, j.slope, col);
            load_constants<V>(off, j.off, col);
        }
    }

    /** second: the addend of the forward, g of the gradient. */
    __device__ __forceinline__ void put(const job &j, const pack<T, V> &x, const pack<T, V> &second, int64_t at,
                                        bool row_counts)
    {
        float value[V], other[V], r[V];
        unpack(value, x);
        if (GRAD || j.addend)
            unpack(other, second);
        for (int i = 0; i < V; i++) {
            float y = fmaf(value[i], scale[i], shift[i]);
            if constexpr (GRAD) {
                r[i] = fmaf(scale[i], !j.relu || y > 0 ? other[i] : 0.0f, fmaf(slope[i], value[i], off[i]));
            } else {
                y = j.addend ? y + other[i] : y;
                r[i] = j.relu && y <= 0 ? 0.0f : y;
            }
            r[i] = row_counts ? r[i] : 0.0f;
        }
        store<T, V>(j.dst, at, r);
    }
};

template <typename T, int V, bool GRAD>
static __global__ void __launch_bounds__(APPLY_THREADS) apply_kernel(const job j)
{
    int lane = threadIdx.x & (j.lanes - 1), team = threadIdx.x / j.lanes, teams = APPLY_THREADS / j.lanes;
    int64_t begin = (int64_t)(gridDim.x - 1 - blockIdx.x) * teams * APPLY_ROWS + team;
    const void *other = GRAD ? j.grad_dst : j.addend;
    for (int64_t tile = blockIdx.y; tile < j.tiles; tile += gridDim.y) {
        int64_t col = (tile * j.lanes + lane) * V;
        if (col >= j.cols)
            continue;
        applied<T, V, GRAD> a;
        a.start(j, col);
        for (int part = 0; part < APPLY_ROWS; part += UNROLL) {
            pack<T, V> x[UNROLL], second[UNROLL];
            int64_t row = begin + (int64_t)part * teams;
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                if (row + u * teams < j.rows) {
                    x[u] = load_last<T, V>(j.src, (row + u * teams) * j.cols + col);
                    if (GRAD || other)
                        second[u] = load_last<T, V>(other, (row + u * teams) * j.cols + col);
                }
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                if (row + u * teams < j.rows)
                    a.put(j, x[u], second[u], (row + u * teams) * j.cols + col, counts(j, row + u * teams));
        }
    }
}

/* ---- launches ---- */

/** How threads lie over the channels when each takes `v` of them. */
static void lay_over(job *j, int v, int most)
{
    int64_t vectors = j->cols / v;
    j->lanes = 1;
    while (j->lanes < most && j->lanes < vectors)
        j->lanes *= 2;
    j->tiles = mixt__ceil_div(vectors, j->lanes);
}

/** The same for sums; how many chunks the rows are cut into. Narrow tiles: fewer sums of blocks for the last one to
 *  add. */
static int64_t lay_out(const mixt__cuda_device *gpu, job *j, int v, bool grad)
{
    lay_over(j, v, v == 1 ? 32 : SUM_LANES);
    int64_t blocks = (int64_t)gpu->multiprocessors * (grad ? 1 : 2), chunks = blocks / (j->tiles ? j->tiles : 1);
    int64_t most = mixt__ceil_div(j->rows, SUM_THREADS / j->lanes);
    chunks = chunks < most ? chunks : most;
    return chunks > 1 ? chunks : 1;
}

static int vector_size(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_FP32 ? 4 : 8;
}

/** Channels of the constants, padded so that each starts at 16 bytes. */
static int64_t padded(int64_t cols)
{
    return (cols + 3) / 4 * 4;
}

template <typename T, int V, bool GRAD> static void launch_as(const mixt__cuda_device *gpu, job *j, bool with_sums)
{
    if (with_sums) {
        if (j->mask)
            count_kernel<<<1, SUM_THREADS, 0, gpu->stream>>>(*j);
        int64_t chunks = lay_out(gpu, j, V, GRAD);
        dim3 grid((unsigned)chunks, (unsigned)(j->tiles < COUNTERS ? j->tiles : COUNTERS));
        sum_kernel<T, V, GRAD><<<grid, SUM_THREADS, 0, gpu->stream>>>(*j);
    }
    lay_over(j, V, 32);
    unsigned columns = (unsigned)(j->tiles < COUNTERS ? j->tiles : COUNTERS);
    unsigned blocks = (unsigned)mixt__ceil_div(j->rows, APPLY_THREADS / j->lanes * APPLY_ROWS);
    apply_kernel<T, V, GRAD><<<dim3(blocks, columns), APPLY_THREADS, 0, gpu->stream>>>(*j);
}

template <typename T, bool GRAD> static void launch(const mixt__cuda_device *gpu, job *j, bool with_sums)
{
    constexpr int V = vec16<T>::size;
    bool wide = j->cols % V == 0 && aligned16(j->src) && aligned16(j->dst) && aligned16(j->grad_dst) &&
                aligned16(j->addend) && aligned16(j->weight) && aligned16(j->mean) && aligned16(j->rstd) &&
                aligned16(j->bias);
    if (wide)
        launch_as<T, V, GRAD>(gpu, j, with_sums);
    else
        launch_as<T, 1, GRAD>(gpu, j, with_sums);
}

/* ---- candidates ---- */

static job job_of(const mixt__call *call)
{
    const mixt__norm_attrs *at = (const mixt__norm_attrs *)call->attrs;
    job j = {};
    j.cols = mixt__tensor_last(&call->in[0]);
    j.rows = j.cols ? mixt__tensor_count(&call->in[0]) / j.cols : 0;
    j.src = call->in[0].data;
    j.weight = (const float *)call->in[1].data;
    j.dst = call->out[0].data;
    j.eps = at->eps;
    j.momentum = at->momentum;
    j.relu = at->relu;
    j.repeated = at->repeated;
    j.scale = (float *)call->workspace;
    j.shift = j.scale + padded(j.cols);
    j.slope = j.shift + padded(j.cols);
    j.off = j.slope + padded(j.cols);
    j.found = (int64_t *)(j.off + padded(j.cols)); // FOUND floats
    j.partials = j.off + padded(j.cols) + FOUND;
    j.finished = mixt__cuda_counter_at(call, MIXT_CUDA_COUNTER_BATCH_NORM);
    if (at->masked && j.rows) {
        j.mask = (const float *)call->in[5].data;
        j.inner = j.rows / mixt__tensor_count(&call->in[5]);
    }
    return j;
}

static mixt_status prepare(mixt__call *call, bool grad)
{
    job j = job_of(call);
    int v = vector_size(call->in[0].dtype);
    int64_t chunks = lay_out(mixt__cuda_of(call), &j, 1, grad),
            wide = j.cols % v ? 0 : lay_out(mixt__cuda_of(call), &j, v, grad);
    chunks = wide > chunks ? wide : chunks;
    call->workspace_bytes = (size_t)(4 * padded(j.cols) + FOUND + 2 * chunks * j.cols) * sizeof(float);
    return MIXT_OK;
}

static mixt_status forward_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    return prepare(call, false);
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    return prepare(call, true);
}

static mixt_status forward_run(const mixt__call *call)
{
    const mixt__norm_attrs *at = (const mixt__norm_attrs *)call->attrs;
    job j = job_of(call);
    j.bias = (const float *)call->in[2].data;
    j.running_mean = (float *)call->in[3].data;
    j.running_var = (float *)call->in[4].data;
    j.addend = at->addend ? call->in[5].data : NULL;
    j.mean = (float *)call->out[1].data;
    j.rstd = (float *)call->out[2].data;
    bool sums = at->training && j.rows;
    if (!j.cols)
        return MIXT_OK;
    if (!sums)
        fixed_statistics_kernel<<<(unsigned)mixt__ceil_div(j.cols, 256), 256, 0, mixt__cuda_of(call)->stream>>>(
            j, !at->training);
    if (j.rows)
        DISPATCH(call->in[0].dtype, T, (launch<T, false>(mixt__cuda_of(call), &j, sums)));
    return mixt__cuda_launched("batch_norm");
}

static mixt_status grad_run(const mixt__call *call)
{
    job j = job_of(call);
    j.mean = (float *)call->in[2].data;
    j.rstd = (float *)call->in[3].data;
    j.grad_dst = call->in[4].data;
    j.bias = j.relu ? (const float *)call->in[call->in_count - 1].data : NULL;
    j.grad_weight = (float *)call->out[1].data;
    j.grad_bias = (float *)call->out[2].data;
    j.add_weight = call->accumulate >> 1 & 1;
    j.add_bias = call->accumulate >> 2 & 1;
    if (!j.cols)
        return MIXT_OK;
    if (j.rows)
        DISPATCH(call->in[0].dtype, T, (launch<T, true>(mixt__cuda_of(call), &j, true)));
    else
        no_rows_grad_kernel<<<(unsigned)mixt__ceil_div(j.cols, 256), 256, 0, mixt__cuda_of(call)->stream>>>(j);
    return mixt__cuda_launched("batch_norm_grad");
}

static const mixt__kernel forward = {"two_pass", NULL, forward_prepare, forward_run, NULL};
static const mixt__kernel grad = {"two_pass", NULL, grad_prepare, grad_run, NULL};

extern "C" {
const mixt__kernel *const mixt__cuda_batch_norm_kernels[] = {&forward, NULL};
const mixt__kernel *const mixt__cuda_batch_norm_grad_kernels[] = {&grad, NULL};
}
