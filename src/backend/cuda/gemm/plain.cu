/* The product for every shape, format, stride and epilogue: FP32 arithmetic on the ordinary units.
 *
 * A block of 256 threads makes a 64×64 tile of one product, 4×4 results a thread, from slices of 16 of K in shared
 * memory, where both operands stand as FP32 with K outside. Tiles are numbered through all products of the batch and
 * dealt to the blocks in turn. Each result is one sum in the order of K. Reads each operand once per 64 results.
 * And what cuBLASLt needs besides: an activation of our own, its bias in another format, numbers to time it on.
 */
#include "backend/cuda/gemm/epilogue.cuh"

enum { TILE = 64, SLICE = 16, THREADS = 256, MOST_BLOCKS = 1 << 20 };

/** The leading dimensions of an operand. */
typedef struct leading {
    int rank;
    int64_t dims[MIXT_MAX_RANK], strides[MIXT_MAX_RANK];
} leading;

typedef struct plain_args {
    const void *a, *b;
    bool rows;
    int64_t batch, m, n, k;
    int64_t a_row, a_col, b_row, b_col; // element strides of op(a), op(b)
    leading a_lead, b_lead;             // with rows, a's index its rows
    epilogue_args out;
} plain_args;

static __device__ int64_t offset_of(const leading &l, int64_t index)
{
    int64_t offset = 0;
    for (int i = l.rank - 1; i >= 0; i--) {
        offset += index % l.dims[i] * l.strides[i];
        index /= l.dims[i];
    }
    return offset;
}

/** A slice of an operand into shared memory, its 64 lines at `lines` (negative: past the edge), zeros outside. */
template <typename T>
static __device__ void load_slice(float (*tile)[TILE + 4], const T *data, const int64_t *lines, int64_t k_stride,
                                  int64_t k0, int64_t k, bool k_contiguous)
{
    for (int i = threadIdx.x; i < TILE * SLICE; i += THREADS) {
        int line = k_contiguous ? i / SLICE : i % TILE, inner = k_contiguous ? i % SLICE : i / TILE;
        bool inside = lines[line] >= 0 && k0 + inner < k;
        tile[inner][line] = inside ? to_float(data[lines[line] + (k0 + inner) * k_stride]) : 0.0f;
    }
}

/** Not inlined: sixteen copies would take longer to compile than they save. */
static __device__ __noinline__ void finish_one(const epilogue_args &e, int64_t i, int64_t column, float sum)
{
    finish(e, i, column, sum);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) matmul_plain(const __grid_constant__ plain_args p)
{
    __shared__ float a_tile[SLICE][TILE + 4], b_tile[SLICE][TILE + 4];
    __shared__ int64_t a_lines[TILE], b_lines[TILE];
    int64_t tiles_n = (p.n + TILE - 1) / TILE, tiles_m = (p.m + TILE - 1) / TILE, tiles = p.batch * tiles_m * tiles_n;
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int64_t z = tile / (tiles_m * tiles_n), row0 = tile / tiles_n % tiles_m * TILE, col0 = tile % tiles_n * TILE;
        float sum[4][4] = {};
        if (threadIdx.x < TILE) {
            int64_t row = row0 + threadIdx.x;
            int64_t at = p.rows ? offset_of(p.a_lead, row) : offset_of(p.a_lead, z) + row * p.a_row;
            a_lines[threadIdx.x] = row < p.m ? at : -1;
        } else if (threadIdx.x < 2 * TILE) {
            int64_t col = col0 + threadIdx.x - TILE;
            b_lines[threadIdx.x - TILE] = col < p.n ? (p.rows ? 0 : offset_of(p.b_lead, z)) + col * p.b_col : -1;
        }
        __syncthreads();
        for (int64_t k0 = 0; k0 < p.k; k0 += SLICE) {
            load_slice(a_tile, static_cast<const T *>(p.a), a_lines, p.a_col, k0, p.k, p.a_col == 1);
            load_slice(b_tile, static_cast<const T *>(p.b), b_lines, p.b_row, k0, p.k, p.b_row == 1);
            __syncthreads();
            for (int k = 0; k < SLICE && k0 + k < p.k; k++) { // not past K: infinity times the padding is NaN
                float4 a4 = *reinterpret_cast<float4 *>(&a_tile[k][4 * y]),
                       b4 = *reinterpret_cast<float4 *>(&b_tile[k][4 * x]);
                const float a[4] = {a4.x, a4.y, a4.z, a4.w}, b[4] = {b4.x, b4.y, b4.z, b4.w};
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                int64_t row = row0 + 4 * y + i, col = col0 + 4 * x + j;
                if (row < p.m && col < p.n)
                    finish_one(p.out, (z * p.m + row) * p.n + col, col, sum[i][j]);
            }
        __syncthreads();
    }
}

static leading leading_of(const mixt__tensor *t, int rank)
{
    leading l = {};
    l.rank = rank;
    for (int i = 0; i < rank; i++) {
        l.dims[i] = t->shape.dims[i];
        l.strides[i] = t->strides[i];
    }
    return l;
}

static mixt_status run(const mixt__call *call)
{
    const mixt__matmul_attrs *at = static_cast<const mixt__matmul_attrs *>(call->attrs);
    const mixt__tensor *a = &call->in[0], *b = &call->in[1];
    mixt__cuda_product c = mixt__cuda_product_of(call);
    plain_args p = {.a = a->data, .b = b->data, .rows = c.rows, .batch = c.batch, .m = c.m, .n = c.n, .k = c.k};
    p.a_row = at->trans_a ? 1 : c.a_ld;
    p.a_col = at->trans_a ? c.a_ld : 1;
    p.b_row = at->trans_b ? 1 : c.b_ld;
    p.b_col = at->trans_b ? c.b_ld : 1;
    p.a_lead = leading_of(a, a->shape.rank - (c.rows ? 1 : 2));
    p.b_lead = leading_of(b, b->shape.rank - 2);
    p.out = epilogue_of(call);
    int64_t tiles = c.batch * mixt__ceil_div(c.m, TILE) * mixt__ceil_div(c.n, TILE);
    if (!tiles)
        return MIXT_OK;
    unsigned blocks = (unsigned)(tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS);
    DISPATCH(a->dtype, T, matmul_plain<T><<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(p));
    return mixt__cuda_launched("matmul_plain");
}

static bool supports(const mixt__call *call, const char **reason)
{
    *reason = mixt__cuda_product_refused(call);
    return !*reason;
}

extern "C" const mixt__kernel mixt__cuda_matmul_plain = {.name = "plain", .supports = supports, .run = run};

/* ---- helpers ---- */

/** dst = relu(src), gelu(src) or dst · gelu'(src); 4 elements a thread, two or three accesses an element. */
static __global__ void activation(void *dst, const void *src, mixt_dtype dtype, int64_t count, mixt__epilogue kind,
                                  bool vectors)
{
    for (int64_t i = 4 * (blockIdx.x * (int64_t)blockDim.x + threadIdx.x); i < count;
         i += 4 * (gridDim.x * (int64_t)blockDim.x)) {
        int left = (int)min((int64_t)4, count - i);
        float x[4], y[4];
        load4(x, src, dtype, i, left, vectors);
        if (kind == MIXT_EPILOGUE_GELU_GRAD)
            load4(y, dst, dtype, i, left, vectors);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (kind == MIXT_EPILOGUE_RELU)
                x[j] = x[j] <= 0.0f ? 0.0f : x[j]; // NaN stays
            else
                x[j] = kind == MIXT_EPILOGUE_GELU ? gelu(x[j]) : y[j] * gelu_slope(x[j]);
        store4(dst, dtype, i, left, vectors, x);
    }
}

template <typename T> static __global__ void convert(T *dst, const float *src, int64_t count)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (int64_t)blockDim.x)
        dst[i] = from_float<T>(src[i]);
}

template <typename T> static __global__ void fill_random(T *dst, int64_t count)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (int64_t)blockDim.x) {
        uint64_t z = (uint64_t)i * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 29) * 0xbf58476d1ce4e5b9u;
        dst[i] = from_float<T>((float)(int32_t)(z >> 32) * 0x1p-31f);
    }
}

static unsigned blocks_for(int64_t count)
{
    int64_t blocks = mixt__ceil_div(count, 256);
    return (unsigned)(blocks < 1 ? 1 : blocks < 4096 ? blocks : 4096);
}

extern "C" mixt_status mixt__cuda_activation(const mixt__call *call)
{
    const mixt__matmul_attrs *at = static_cast<const mixt__matmul_attrs *>(call->attrs);
    const mixt__tensor *pre = mixt__cuda_product_pre(call), *dst = &call->out[0];
    const mixt__tensor *src = pre ? pre : at->epilogue == MIXT_EPILOGUE_GELU ? &call->out[1] : dst;
    int64_t count = mixt__tensor_count(dst);
    activation<<<blocks_for(mixt__ceil_div(count, 4)), 256, 0, mixt__cuda_of(call)->stream>>>(
        dst->data, src->data, dst->dtype, count, at->epilogue, aligned16(src->data) && aligned16(dst->data));
    return mixt__cuda_launched("activation");
}

extern "C" mixt_status mixt__cuda_convert(const mixt__cuda_device *gpu, void *dst, mixt_dtype dtype, const float *src,
                                          int64_t count)
{
    DISPATCH(dtype, T, convert<<<blocks_for(count), 256, 0, gpu->stream>>>(static_cast<T *>(dst), src, count));
    return mixt__cuda_launched("convert");
}

extern "C" mixt_status mixt__cuda_fill_random(const mixt__cuda_device *gpu, void *dst, mixt_dtype dtype, int64_t count)
{
    DISPATCH(dtype, T, fill_random<<<blocks_for(count), 256, 0, gpu->stream>>>(static_cast<T *>(dst), count));
    return mixt__cuda_launched("fill_random");
}
