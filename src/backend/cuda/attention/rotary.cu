/* Rotary positions: the table of angles, and turning the heads of rows.
 *
 * A thread turns 16 bytes of the lower half of a head together with those of the upper half that belong to them; q and
 * k, side by side in a row, take one launch. In place nothing else is touched; else threads behind the last head copy
 * the rest of the row. Bytes: what is turned, read and written; the table comes from the caches.
 */
#include "backend/cuda/kernels.h"

#include "backend/cuda/core/pack.cuh"
extern "C" {
#include "ops/rotary_attrs.h"
}

enum { THREADS = 256 };

/* ---- the table ---- */

typedef struct frequencies {
    float of[MIXT_ROTARY_DIM_MAX / 2];
} frequencies;

/** places NULL: they count up from 0. The product is rounded before its cosine is taken, as the op says. */
static __global__ void __launch_bounds__(THREADS)
    rotary_table(const int32_t *places, float *table, int64_t rows, int half, float magnitude,
                 const __grid_constant__ frequencies f)
{
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = at / half;
    int i = (int)(at % half);
    if (row >= rows)
        return;
    float angle = __fmul_rn(places ? (float)places[row] : (float)row, f.of[i]), sine, cosine;
    sincosf(angle, &sine, &cosine);
    table[row * 2 * half + i] = cosine * magnitude;
    table[row * 2 * half + half + i] = sine * magnitude;
}

static mixt_status table_prepare(mixt__call *call, mixt__arena *arena)
{
    const mixt__rotary_table_attrs *at = (const mixt__rotary_table_attrs *)call->attrs;
    frequencies *f = (frequencies *)mixt__arena_alloc(arena, sizeof *f);
    if (!f)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to prepare rotary positions");
    for (int64_t i = 0; i < at->dim / 2; i++)
        f->of[i] = mixt__rotary_frequency(at, i);
    call->state = f;
    return MIXT_OK;
}

static mixt_status table_run(const mixt__call *call)
{
    const mixt__rotary_table_attrs *at = (const mixt__rotary_table_attrs *)call->attrs;
    int64_t rows = mixt__tensor_count(&call->out[0]) / at->dim;
    unsigned blocks = (unsigned)mixt__ceil_div(rows * (at->dim / 2), THREADS);
    if (blocks)
        rotary_table<<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(
            at->places ? (const int32_t *)call->in[0].data : NULL, (float *)call->out[0].data, rows, (int)(at->dim / 2),
            at->magnitude, *(const frequencies *)call->state);
    return mixt__cuda_launched("rotary_table");
}

static const mixt__kernel table_kernel = {.name = "plain", .prepare = table_prepare, .run = table_run};

extern "C" const mixt__kernel *const mixt__cuda_rotary_table_kernels[] = {&table_kernel, NULL};

/* ---- turning ---- */

typedef struct job {
    const void *src;
    void *dst;
    const float *table;
    int64_t rows, angles, cols, heads, half, width; // angles: rows of the table, T or B · T; width: from head to head
    int64_t pairs, packs; // of a row: packs that are turned with their partner, and all that a row's threads take
    bool inverse;
} job;

template <typename T, int V> static __global__ void __launch_bounds__(THREADS) rotary(const job j)
{
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = at / j.packs, pack = at % j.packs;
    if (row >= j.rows)
        return;
    if (pack >= j.pairs) { // the rest of the row, where that is not in its place
        float x[V];
        int64_t place = row * j.cols + j.heads * j.width + (pack - j.pairs) * V;
        unpack(x, load<T, V>(j.src, place));
        store<T, V>(j.dst, place, x);
        return;
    }
    int64_t i = pack * V % j.half, low = row * j.cols + pack * V / j.half * j.width + i;
    const float *angles = j.table + row % j.angles * 2 * j.half + i;
    float x[V], y[V], cosine[V], sine[V], turned[V];
    unpack(x, load<T, V>(j.src, low));
    unpack(y, load<T, V>(j.src, low + j.half));
    load_constants<V>(cosine, angles, 0);
    load_constants<V>(sine, angles, j.half);
#pragma unroll
    for (int k = 0; k < V; k++) {
        float s = j.inverse ? -sine[k] : sine[k];
        turned[k] = x[k] * cosine[k] - y[k] * s;
        y[k] = y[k] * cosine[k] + x[k] * s;
    }
    store<T, V>(j.dst, low, turned);
    store<T, V>(j.dst, low + j.half, y);
}

template <typename T, int V> static void launch(const mixt__cuda_device *gpu, job &j)
{
    int64_t rest = j.src == j.dst ? 0 : j.cols - j.heads * j.width;
    j.pairs = j.heads * j.half / V;
    j.packs = j.pairs + rest / V;
    unsigned blocks = (unsigned)mixt__ceil_div(j.rows * j.packs, THREADS);
    if (blocks)
        rotary<T, V><<<blocks, THREADS, 0, gpu->stream>>>(j);
}

template <typename T> static void launch_either(const mixt__cuda_device *gpu, job &j)
{
    constexpr int V = vec16<T>::size;
    bool vectors = j.half % V == 0 && j.cols % V == 0 && j.width % V == 0 && aligned16(j.src) && aligned16(j.dst) &&
                   aligned16(j.table);
    if (vectors)
        launch<T, V>(gpu, j);
    else
        launch<T, 1>(gpu, j);
}

static mixt_status run(const mixt__call *call)
{
    const mixt__rotary_attrs *at = (const mixt__rotary_attrs *)call->attrs;
    job j = {};
    j.src = call->in[0].data;
    j.dst = call->out[0].data;
    j.table = (const float *)call->in[1].data;
    j.angles = mixt__tensor_count(&call->in[1]) / at->dim;
    j.rows = call->in[0].shape.dims[0] * call->in[0].shape.dims[1];
    j.cols = call->in[0].shape.dims[2];
    j.heads = at->heads;
    j.half = at->dim / 2;
    j.width = mixt__rotary_width(at);
    j.inverse = at->inverse;
    if (j.width > at->dim && j.src != j.dst) // what is not turned lies between heads too: all is copied first
        MIXT_TRY(mixt__cuda_check(cudaMemcpyAsync(j.dst, j.src,
                                                  (size_t)(j.rows * j.cols) * mixt_dtype_size(call->in[0].dtype),
                                                  cudaMemcpyDeviceToDevice, mixt__cuda_of(call)->stream),
                                  "rotary"));
    DISPATCH(call->in[0].dtype, T, launch_either<T>(mixt__cuda_of(call), j));
    return mixt__cuda_launched("rotary");
}

static const mixt__kernel rows_kernel = {.name = "rows", .run = run};

extern "C" const mixt__kernel *const mixt__cuda_rotary_kernels[] = {&rows_kernel, NULL};
