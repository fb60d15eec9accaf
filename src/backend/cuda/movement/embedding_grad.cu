/* The gradient of an embedding: (ids, grad_dst) → grad_table, which adds up the rows of each index. No atomics on
 * floating-point numbers, and the same bits every time:
 *
 *   sort:  block b owns the indices that are b modulo OWNERS (neighbours, which are often frequent together, fall to
 *          different blocks). It reads all of them: those of earlier owners are counted, which says where its own
 *          begin; its own are listed in order and sorted by a counting sort, which keeps that order.
 *   tiles: a block adds up TOKENS neighbours of the sorted list, each thread in its columns, and writes a table row
 *          where an index begins and ends within the tile; what goes on in the next tile is left as a partial sum.
 *   join:  the tile where such an index begins adds up the partial sums in order and writes the row.
 *
 * Bytes: one read of grad_dst, a read and a write of the rows in use; overwriting clears the table first. Indices that
 * are no row of the table are left out.
 */
#include "backend/cuda/core/pack.cuh"
#include "backend/cuda/kernels.h"

enum { OWNERS = 128, SORT_THREADS = 1024, SORT_WARPS = SORT_THREADS / 32, KEYS = 4096, LIST = 3072 };
enum { TOKENS = 64, TILE_THREADS = 128, UNROLL = 8 };

/** One use of a table row. */
typedef struct use {
    int32_t id, at; // table row, row of grad_dst
} use;

typedef struct job {
    int64_t id_count, table_rows, cols, tiles;
    const int32_t *ids;
    const void *grad_dst;
    float *table;
    bool add;
    /* workspace */
    int64_t *used;  // entries of `sorted`
    use *sorted;    // (id_count)
    use *listed;    // (id_count), for owners whose list does not fit shared memory
    float *partial; // (tiles, 2, cols): of an index that began in an earlier tile, of one that goes on in the next
} job;

/* ---- sort ---- */

/** Exclusive sums over the block of one number a thread; *total: of all. */
static __device__ __forceinline__ int block_scan(int x, int *total)
{
    __shared__ int warps[SORT_WARPS];
    int lane = (int)threadIdx.x & 31, sum = x;
    for (int d = 1; d < 32; d <<= 1) {
        int below = __shfl_up_sync(0xffffffffu, sum, d);
        sum += lane >= d ? below : 0;
    }
    __syncthreads();
    if (lane == 31)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < SORT_WARPS; w++) {
        before += w < (int)threadIdx.x / 32 ? warps[w] : 0;
        all += warps[w];
    }
    *total = all;
    return before + sum - x;
}

/** What this block's warp owns of its stretch of the indices: ids in order. */
typedef struct stretch {
    int64_t begin, end;
    int own, below; // own: in this warp; below: in this thread
} stretch;

static __device__ __forceinline__ bool is_row(const job &j, int32_t id)
{
    return id >= 0 && id < j.table_rows;
}

static __device__ __forceinline__ stretch stretch_count(const job &j)
{
    int64_t each = (j.id_count + SORT_THREADS - 1) / SORT_THREADS * 32;
    stretch s = {(threadIdx.x / 32) * each, (threadIdx.x / 32 + 1) * each, 0, 0};
    s.end = s.end < j.id_count ? s.end : j.id_count;
#pragma unroll 8
    for (int64_t i = s.begin + (threadIdx.x & 31); i < s.end; i += 32) {
        int32_t id = j.ids[i], owner = id % OWNERS;
        s.own += is_row(j, id) && owner == (int)blockIdx.x;
        s.below += is_row(j, id) && owner < (int)blockIdx.x;
    }
    for (int lane = 16; lane; lane >>= 1)
        s.own += __shfl_xor_sync(0xffffffffu, s.own, lane);
    return s;
}

static __device__ __forceinline__ void stretch_list(const job &j, const stretch &s, int place, use *list)
{
    int lane = (int)threadIdx.x & 31;
#pragma unroll 4
    for (int64_t i = s.begin; i < s.end; i += 32) {
        int32_t id = i + lane < s.end ? j.ids[i + lane] : -1;
        bool own = is_row(j, id) && id % OWNERS == (int)blockIdx.x;
        unsigned mask = __ballot_sync(0xffffffffu, own);
        if (own)
            list[place + __popc(mask & ((1u << lane) - 1))] = {id, (int32_t)(i + lane)};
        place += __popc(mask);
    }
}

/** By one warp, 32 at a time, so that equal keys keep their order; next[k]: where the next entry of key k goes. */
static __device__ void place_in_order(const use *list, int count, int64_t first_key, int keys, int *next, use *sorted)
{
    int lane = (int)threadIdx.x & 31;
    for (int i = 0; i < count; i += 32) {
        use u = i + lane < count ? list[i + lane] : use{-1, 0};
        int64_t key = u.id < 0 ? -1 : u.id / OWNERS - first_key;
        bool mine = key >= 0 && key < keys;
        unsigned same = __match_any_sync(0xffffffffu, mine ? (int)key : -1);
        int rank = __popc(same & ((1u << lane) - 1)), at = mine ? next[key] + rank : 0;
        __syncwarp();
        if (mine && rank == 0)
            next[key] += __popc(same);
        __syncwarp();
        if (mine)
            sorted[at] = u;
    }
}

static __global__ void __launch_bounds__(SORT_THREADS) embedding_sort(const job j)
{
    __shared__ use near[LIST];
    __shared__ int next[KEYS];
    int below, count, begun = 0;
    stretch s = stretch_count(j);
    block_scan(s.below, &below);
    int place = block_scan((threadIdx.x & 31) == 0 ? s.own : 0, &count);
    place = __shfl_sync(0xffffffffu, place, 0);
    use *list = count <= LIST ? near : j.listed + below, *sorted = j.sorted + below;
    stretch_list(j, s, place, list);
    if (blockIdx.x == OWNERS - 1 && threadIdx.x == 0)
        *j.used = below + count;
    int64_t all_keys = (j.table_rows + OWNERS - 1) / OWNERS;
    for (int64_t first = 0; first < all_keys; first += KEYS) { // as a rule once
        int keys = (int)(all_keys - first < KEYS ? all_keys - first : KEYS), total;
        for (int k = (int)threadIdx.x; k < KEYS; k += SORT_THREADS)
            next[k] = 0;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < count; i += SORT_THREADS) {
            int64_t key = list[i].id / OWNERS - first;
            if (key >= 0 && key < keys)
                atomicAdd(&next[key], 1);
        }
        __syncthreads();
        int mine[KEYS / SORT_THREADS], sum = 0;
        for (int k = 0; k < KEYS / SORT_THREADS; k++) {
            mine[k] = next[threadIdx.x * (KEYS / SORT_THREADS) + k];
            sum += mine[k];
        }
        int at = begun + block_scan(sum, &total);
        for (int k = 0; k < KEYS / SORT_THREADS; k++) {
            next[threadIdx.x * (KEYS / SORT_THREADS) + k] = at;
            at += mine[k];
        }
        __syncthreads();
        if (all_keys == 1) // one key a block: the list is sorted
            for (int i = (int)threadIdx.x; i < count; i += SORT_THREADS)
                sorted[i] = list[i];
        else if (threadIdx.x < 32)
            place_in_order(list, count, first, keys, next, sorted);
        begun += total;
        __syncthreads();
    }
}

/* ---- tiles ---- */

template <int V>
static __device__ __forceinline__ void write_row(const job &j, int64_t id, int64_t col, const float *sum)
{
    float r[V], *to = j.table + id * j.cols + col;
    for (int k = 0; k < V; k++)
        r[k] = sum[k];
    if (j.add) {
        float old[V];
        load_constants<V>(old, to, 0);
        for (int k = 0; k < V; k++)
            r[k] += old[k];
    }
    if constexpr (V == 1)
        *to = r[0];
    else
        for (int k = 0; k < V; k += 4)
            *reinterpret_cast<float4 *>(to + k) = *reinterpret_cast<const float4 *>(r + k);
}

/** A tile's stretch of the sorted list, with the indices before and after it; -1: there is none. */
typedef struct tile {
    use uses[TOKENS];
    int count, before, after;
} tile;

static __device__ __forceinline__ void tile_load(const job &j, int64_t index, tile *t)
{
    int64_t used = *j.used, begin = index * TOKENS, left = used - begin;
    if (threadIdx.x == 0) {
        t->count = (int)(left < 0 ? 0 : left < TOKENS ? left : TOKENS);
        t->before = begin > 0 && left > 0 ? j.sorted[begin - 1].id : -1;
        t->after = left > TOKENS ? j.sorted[begin + TOKENS].id : -1;
    }
    for (int i = (int)threadIdx.x; i < TOKENS && i < left; i += (int)blockDim.x)
        t->uses[i] = j.sorted[begin + i];
    __syncthreads();
}

template <typename T, int V> static __global__ void __launch_bounds__(TILE_THREADS) embedding_tiles(const job j)
{
    __shared__ tile t;
    int64_t col = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V;
    float sum[V] = {};
    int begin = 0;
    tile_load(j, blockIdx.x, &t);
    if (col >= j.cols)
        return;
    for (int i = 0; i < t.count; i += UNROLL) {
        pack<T, V> rows[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            rows[u] = load_last<T, V>(j.grad_dst, (int64_t)t.uses[i + u < t.count ? i + u : i].at * j.cols + col);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            float v[V];
            if (i + u >= t.count)
                break;
            unpack(v, rows[u]);
            for (int k = 0; k < V; k++)
                sum[k] += v[k];
            int id = t.uses[i + u].id;
            bool last = i + u + 1 == t.count;
            if ((last ? -1 : t.uses[i + u + 1].id) == id)
                continue;
            bool continues = last && t.after == id, continued = begin == 0 && t.before == id;
            float *partial = j.partial + (2 * (int64_t)blockIdx.x + (continued ? 0 : 1)) * j.cols + col;
            if (!continues && !continued)
                write_row<V>(j, id, col, sum);
            for (int k = 0; k < V; k++) {
                if (continues || continued)
                    partial[k] = sum[k];
                sum[k] = 0;
            }
            begin = i + u + 1;
        }
    }
}

template <int V> static __global__ void __launch_bounds__(TILE_THREADS) embedding_join(const job j)
{
    __shared__ tile t;
    int64_t col = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * V, following = 0, used = *j.used;
    tile_load(j, blockIdx.x, &t);
    int id = t.count ? t.uses[t.count - 1].id : -1;
    if (id < 0 || t.after != id || (t.before == id && t.uses[0].id == id)) // the same for the whole block
        return;
    for (int64_t first = blockIdx.x + 1;; first += blockDim.x) { // tiles that begin with this index
        int64_t at = (first + threadIdx.x) * TOKENS;
        int found = __syncthreads_count(at < used && j.sorted[at].id == id);
        following += found;
        if (found < (int)blockDim.x)
            break;
    }
    if (col >= j.cols)
        return;
    float sum[V];
    load_constants<V>(sum, j.partial + (2 * (int64_t)blockIdx.x + 1) * j.cols, col);
#pragma unroll 8
    for (int64_t i = 1; i <= following; i++) {
        float v[V];
        load_constants<V>(v, j.partial + 2 * (blockIdx.x + i) * j.cols, col);
        for (int k = 0; k < V; k++)
            sum[k] += v[k];
    }
    write_row<V>(j, id, col, sum);
}

/* ---- the host's side ---- */

/** Workspace: `used`, then `sorted`, `listed`, `partial`. */
static job job_of(const mixt__call *call)
{
    const mixt__tensor *ids = &call->in[0], *table = &call->out[0];
    job j = {};
    j.id_count = mixt__tensor_count(ids);
    j.table_rows = table->shape.dims[0];
    j.cols = table->shape.dims[1];
    j.tiles = mixt__ceil_div(j.id_count, TOKENS);
    j.ids = (const int32_t *)ids->data;
    j.grad_dst = call->in[1].data;
    j.table = (float *)table->data;
    j.add = call->accumulate & 1;
    j.used = (int64_t *)call->workspace;
    j.sorted = (use *)(j.used + 2);
    j.listed = j.sorted + 2 * mixt__ceil_div(j.id_count, 2);
    j.partial = (float *)(j.listed + 2 * mixt__ceil_div(j.id_count, 2));
    return j;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    job j = job_of(call);
    (void)arena;
    call->workspace_bytes = 2 * sizeof(int64_t) + (size_t)mixt__ceil_div(j.id_count, 2) * 4 * sizeof(use) +
                            (size_t)(2 * j.tiles * j.cols) * sizeof(float);
    return MIXT_OK;
}

template <typename T, int V> static void add_up(const mixt__cuda_device *gpu, const job &j)
{
    int64_t packs = mixt__ceil_div(j.cols, V), threads = mixt__ceil_div(packs, 32) * 32;
    threads = threads < TILE_THREADS ? threads : TILE_THREADS;
    dim3 grid((unsigned)j.tiles, (unsigned)mixt__ceil_div(packs, threads));
    embedding_tiles<T, V><<<grid, (unsigned)threads, 0, gpu->stream>>>(j);
    embedding_join<V><<<grid, (unsigned)threads, 0, gpu->stream>>>(j);
}

static mixt_status run(const mixt__call *call)
{
    job j = job_of(call);
    bool vectors =
        j.cols % (16 / (int64_t)mixt_dtype_size(call->in[1].dtype)) == 0 && aligned16(j.grad_dst) && aligned16(j.table);
    if (!j.add && j.table_rows && j.cols) {
        size_t bytes = (size_t)(j.table_rows * j.cols) * sizeof(float);
        mixt_status status = mixt__cuda_check(cudaMemsetAsync(j.table, 0, bytes, mixt__cuda_of(call)->stream),
                                              "clearing an embedding's gradient");
        if (status != MIXT_OK)
            return status;
    }
    if (!j.id_count || !j.cols)
        return MIXT_OK;
    embedding_sort<<<OWNERS, SORT_THREADS, 0, mixt__cuda_of(call)->stream>>>(j);
    DISPATCH(call->in[1].dtype, T,
             vectors ? add_up<T, vec16<T>::size>(mixt__cuda_of(call), j) : add_up<T, 1>(mixt__cuda_of(call), j));
    return mixt__cuda_launched("embedding_grad");
}

static const mixt__kernel kernel = {.name = "sorted", .prepare = prepare, .run = run};

extern "C" const mixt__kernel *const mixt__cuda_embedding_grad_kernels[] = {&kernel, NULL};
