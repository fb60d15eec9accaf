/* Device code for heads of 64 elements of 2 bytes: tiles in shared memory with rows of 128 bytes, whose 16-byte pieces
 * are permuted by the row's number so that reads of a column of pieces meet no bank twice. Tensor Cores of compute
 * capability 9.0 know the same permutation as 128-byte swizzling. */
#ifndef MIXT_BACKEND_CUDA_ATTENTION_TILE_CUH
#define MIXT_BACKEND_CUDA_ATTENTION_TILE_CUH

#include "backend/cuda/attention/attention.cuh"
#include "backend/cuda/core/async_copy.cuh"

enum { MIXT_HEAD_BYTES = 128 };

/** Where 16-byte piece `piece` of row `row` lies in a tile. */
static __device__ __forceinline__ int place(int row, int piece)
{
    return row * MIXT_HEAD_BYTES + ((piece ^ (row & 7)) << 4);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

template <typename T> static __device__ __forceinline__ unsigned pack_pair(float x, float y)
{
    union {
        T v[2];
        unsigned bits;
    } u;
    u.v[0] = from_float<T>(x);
    u.v[1] = from_float<T>(y);
    return u.bits;
}

/** 16 rows by 8 · count columns of results, from piece `piece` of tile row `row` on, through the warp's part of the
 * tile to memory, 16 bytes a store. Row 0 of the tile is `memory`, rows from `limit` on are not there. */
template <typename T, int count>
static __device__ __forceinline__ void put(char *tile, int row, int piece, const float (&sum)[count][4], T *memory,
                                           int64_t stride, int64_t limit)
{
    int lane = threadIdx.x & 31, high = row + (lane >> 2);
    for (int n = 0; n < count; n++) {
        *(unsigned *)(tile + place(high, piece + n) + 4 * (lane & 3)) = pack_pair<T>(sum[n][0], sum[n][1]);
        *(unsigned *)(tile + place(high + 8, piece + n) + 4 * (lane & 3)) = pack_pair<T>(sum[n][2], sum[n][3]);
    }
    __syncwarp();
    for (int n = lane; n < 16 * count; n += 32) {
        int i = row + n / count, at = piece + n % count;
        if (i < limit)
            store16(memory + i * stride + at * 8, load16((const T *)(tile + place(i, at))));
    }
}

/** `rows` rows from memory into a tile; zeros from row `limit` on. */
template <typename T, int rows, int threads>
static __device__ __forceinline__ void load_tile(char *tile, const T *memory, int64_t stride, int64_t limit)
{
    for (int n = threadIdx.x; n < rows * 8; n += threads) {
        int row = n >> 3, piece = n & 7;
        bool there = row < limit;
        copy16_async(tile + place(row, piece), memory + (there ? row : 0) * stride + piece * 8, there);
    }
}

/** Row sums of dst · a tile of grad_dst, 8 threads a row; `put` takes each row's. */
template <typename T, int rows, int threads, typename F>
static __device__ __forceinline__ void row_products(const char *tile, const T *memory, int64_t stride, int64_t limit,
                                                    F put)
{
    for (int n = threadIdx.x; n < rows * 8; n += threads) {
        int row = n >> 3, piece = n & 7;
        float sum = 0;
        if (row < limit) {
            vec16<T> x = load16(memory + row * stride + piece * 8), y = load16((const T *)(tile + place(row, piece)));
            for (int i = 0; i < 8; i++)
                sum = fmaf(to_float(x.v[i]), to_float(y.v[i]), sum);
        }
        for (int lane = 4; lane; lane >>= 1)
            sum += __shfl_xor_sync(0xffffffffu, sum, lane);
        if (piece == 0)
            put(row, sum);
    }
}

#endif

#endif
