/* Copies between tensors of any strides.
 *
 * Neighbouring dimensions that both sides walk through alike are joined, then neighbouring elements are joined up to 16
 * bytes. What is still contiguous in the last dimension on both sides goes thread by thread, four elements in flight;
 * what is contiguous in another dimension on the source's side goes through tiles in shared memory, so that both sides
 * see whole lines. Bytes moved: the tensor twice.
 */
#include "backend/cuda/core/device.cuh"

#include "backend/cuda/movement/strided_copy.h"

namespace
{

enum { THREADS = 256, MANY = 4, TILE_ROWS = 8 };

struct places {
    int64_t src, dst;
};

/** Where element `index` of the first `rank` dimensions lies. */
__device__ __forceinline__ places place(const mixt__cuda_copy &c, int rank, unsigned index)
{
    places p = {0, 0};
    for (int d = rank - 1; d >= 0; d--) {
        unsigned size = static_cast<unsigned>(c.dims[d]), position = d ? index % size : index;
        p.src += position * c.src_strides[d];
        p.dst += position * c.dst_strides[d];
        index = d ? index / size : 0;
    }
    return p;
}

template <typename E, int UNROLL>
__global__ void __launch_bounds__(THREADS) copy_elements(const __grid_constant__ mixt__cuda_copy c, unsigned count)
{
    unsigned first = blockIdx.x * (THREADS * UNROLL) + threadIdx.x;
    places p[UNROLL];
    E x[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        if (first + u * THREADS < count) {
            p[u] = place(c, c.rank, first + u * THREADS);
            x[u] = reinterpret_cast<const E *>(c.src)[p[u].src];
        }
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
        if (first + u * THREADS < count)
            reinterpret_cast<E *>(c.dst)[p[u].dst] = x[u];
}

/** The last two dimensions: the source is contiguous in the first of them, the destination in the second. */
template <typename E, int TILE>
__global__ void __launch_bounds__(32 * TILE_ROWS)
    copy_tiles(const __grid_constant__ mixt__cuda_copy c, unsigned row_tiles, unsigned column_tiles)
{
    __shared__ E tile[TILE][TILE + (sizeof(E) < 4 ? 4 / sizeof(E) : 1)]; // neighbours of a column in other banks
    int a = c.rank - 2, b = c.rank - 1;
    unsigned rest = blockIdx.x / column_tiles;
    int64_t column = static_cast<int64_t>(blockIdx.x % column_tiles) * TILE;
    int64_t row = static_cast<int64_t>(rest % row_tiles) * TILE;
    places p = place(c, a, rest / row_tiles);
    const E *src = reinterpret_cast<const E *>(c.src) + p.src + row + column * c.src_strides[b];
    E *dst = reinterpret_cast<E *>(c.dst) + p.dst + row * c.dst_strides[a] + column;
    int64_t rows = c.dims[a] - row, columns = c.dims[b] - column; // left from here on
#pragma unroll
    for (int y = 0; y < TILE; y += TILE_ROWS)
#pragma unroll
        for (int x = 0; x < TILE; x += 32)
            if (x + threadIdx.x < rows && y + threadIdx.y < columns)
                tile[y + threadIdx.y][x + threadIdx.x] = src[(y + threadIdx.y) * c.src_strides[b] + x + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int y = 0; y < TILE; y += TILE_ROWS)
#pragma unroll
        for (int x = 0; x < TILE; x += 32)
            if (x + threadIdx.x < columns && y + threadIdx.y < rows)
                dst[(y + threadIdx.y) * c.dst_strides[a] + x + threadIdx.x] = tile[x + threadIdx.x][y + threadIdx.y];
}

/* ---- simplifying ---- */

void join_dimensions(mixt__cuda_copy *c)
{
    int rank = 0;
    for (int d = 0; d < c->rank; d++) {
        if (c->dims[d] == 1)
            continue;
        if (rank > 0 && c->src_strides[rank - 1] == c->dims[d] * c->src_strides[d] &&
            c->dst_strides[rank - 1] == c->dims[d] * c->dst_strides[d])
            c->dims[rank - 1] *= c->dims[d];
        else
            c->dims[rank++] = c->dims[d];
        c->src_strides[rank - 1] = c->src_strides[d];
        c->dst_strides[rank - 1] = c->dst_strides[d];
    }
    if (rank == 0)
        c->dims[rank] = c->src_strides[rank] = c->dst_strides[rank] = 1, rank = 1;
    c->rank = rank;
}

/** Two neighbouring elements become one where everything is even. */
bool join_elements(mixt__cuda_copy *c)
{
    int last = c->rank - 1;
    int64_t odd = c->dims[last] & 1;
    for (int d = 0; d < last; d++)
        odd |= (c->src_strides[d] | c->dst_strides[d]) & 1;
    if (c->size == 16 || odd || c->src_strides[last] != 1 || c->dst_strides[last] != 1 ||
        (reinterpret_cast<uintptr_t>(c->src) | reinterpret_cast<uintptr_t>(c->dst)) % (2 * c->size))
        return false;
    c->size *= 2;
    c->dims[last] /= 2;
    for (int d = 0; d < last; d++) {
        c->src_strides[d] /= 2;
        c->dst_strides[d] /= 2;
    }
    return true;
}

void swap_dimensions(mixt__cuda_copy *c, int a, int b)
{
    for (int64_t *list : {c->dims, c->src_strides, c->dst_strides}) {
        int64_t kept = list[a];
        list[a] = list[b];
        list[b] = kept;
    }
}

/** Puts the dimension in which the source is contiguous before the last one; false: tiles would not help. */
bool ready_for_tiles(mixt__cuda_copy *c)
{
    enum { LEAST = 16 };
    int last = c->rank - 1;
    for (int d = 0; d < last; d++)
        if (c->src_strides[d] == 1 && c->src_strides[last] != 1 && c->dst_strides[last] == 1 && c->dims[d] >= LEAST &&
            c->dims[last] >= LEAST) {
            swap_dimensions(c, d, last - 1);
            return true;
        }
    return false;
}

/* ---- launching ---- */

template <typename E> void launch(const mixt__cuda_device *gpu, mixt__cuda_copy c, int64_t count)
{
    constexpr int TILE = sizeof(E) <= 4 ? 64 : 32;
    if (!ready_for_tiles(&c)) {
        bool few = count < static_cast<int64_t>(MANY * THREADS) * 2 * gpu->multiprocessors;
        auto kernel = few ? copy_elements<E, 1> : copy_elements<E, MANY>;
        kernel<<<static_cast<unsigned>(mixt__ceil_div(count, few ? THREADS : THREADS * MANY)), THREADS, 0,
                 gpu->stream>>>(c, static_cast<unsigned>(count));
        return;
    }
    int64_t rows = c.dims[c.rank - 2], columns = c.dims[c.rank - 1];
    int64_t row_tiles = mixt__ceil_div(rows, TILE), column_tiles = mixt__ceil_div(columns, TILE);
    copy_tiles<E, TILE>
        <<<static_cast<unsigned>(row_tiles * column_tiles * (count / rows / columns)), dim3(32, TILE_ROWS), 0,
           gpu->stream>>>(c, static_cast<unsigned>(row_tiles), static_cast<unsigned>(column_tiles));
}

/** Kernels number elements with 32 bits: more of them go in halves. */
void issue(const mixt__cuda_device *gpu, const mixt__cuda_copy &c)
{
    int64_t count = 1;
    for (int d = 0; d < c.rank; d++)
        count *= c.dims[d];
    if (count > INT32_MAX) {
        mixt__cuda_copy half = c;
        int longest = 0;
        for (int d = 1; d < c.rank; d++)
            longest = c.dims[d] > c.dims[longest] ? d : longest;
        half.dims[longest] = c.dims[longest] / 2;
        issue(gpu, half);
        half.src += half.dims[longest] * c.src_strides[longest] * c.size;
        half.dst += half.dims[longest] * c.dst_strides[longest] * c.size;
        half.dims[longest] = c.dims[longest] - half.dims[longest];
        issue(gpu, half);
        return;
    }
    if (count == 0)
        return;
    switch (c.size) {
    case 1:
        return launch<uint8_t>(gpu, c, count);
    case 2:
        return launch<uint16_t>(gpu, c, count);
    case 4:
        return launch<uint32_t>(gpu, c, count);
    case 8:
        return launch<uint2>(gpu, c, count);
    default:
        return launch<uint4>(gpu, c, count);
    }
}

} // namespace

extern "C" mixt_status mixt__cuda_copy_run(const mixt__cuda_device *gpu, mixt__cuda_copy copy)
{
    join_dimensions(&copy);
    while (join_elements(&copy))
        ;
    issue(gpu, copy);
    return mixt__cuda_launched("strided copy");
}
