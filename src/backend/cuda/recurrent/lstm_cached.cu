/* The LSTM recurrence that goes on from a state: one launch a step.
 *
 * A warp takes one unit of one sequence: its lanes share the columns of the unit's four rows of weight_hh, which go
 * from memory once a step and sequence, and its first lane makes gates and cell. The state before step t is row t - 1
 * of dst, so that no warp overwrites what others still read; the last row becomes the state at the end.
 */
#include "backend/cuda/kernels.h"

#include "backend/cuda/core/device.cuh"

enum { THREADS = 256, WARPS = THREADS / 32 };

typedef struct problem {
    const void *gates_x, *weight, *before; // before: the state (B, H) of the run before
    float *cell;
    void *dst;
    int64_t batch, steps, hidden;
} problem;

static __device__ float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

template <typename T> static __global__ void __launch_bounds__(THREADS) lstm_cached_step(problem p, int64_t t)
{
    int64_t n = p.hidden, at = (int64_t)blockIdx.x * WARPS + (threadIdx.x >> 5), b = at / n, unit = at % n;
    int lane = threadIdx.x & 31;
    if (b >= p.batch)
        return;
    const T *state = t ? (const T *)p.dst + (b * p.steps + t - 1) * n : (const T *)p.before + b * n;
    const T *gates_x = (const T *)p.gates_x + (b * p.steps + t) * 4 * n;
    float gate[4];
    for (int g = 0; g < 4; g++) {
        const T *row = (const T *)p.weight + (g * n + unit) * n;
        float sum = 0;
        for (int64_t k = lane; k < n; k += 32)
            sum = fmaf(to_float(row[k]), to_float(state[k]), sum);
        float x = warp_sum(sum) + to_float(gates_x[g * n + unit]);
        gate[g] = g == 2 ? tanhf(x) : sigmoid(x);
    }
    if (lane == 0) {
        float cell = fmaf(gate[1], p.cell[b * n + unit], gate[0] * gate[2]);
        p.cell[b * n + unit] = cell;
        ((T *)p.dst)[(b * p.steps + t) * n + unit] = from_float<T>(gate[3] * tanhf(cell));
    }
}

static mixt_status run(const mixt__call *call)
{
    const int64_t *dims = call->in[0].shape.dims;
    problem p = {call->in[0].data,  call->in[1].data, call->in[2].data, (float *)call->in[3].data,
                 call->out[0].data, dims[0],          dims[1],          dims[2] / 4};
    unsigned blocks = (unsigned)mixt__ceil_div(p.batch * p.hidden, WARPS);
    size_t row = (size_t)p.hidden * mixt_dtype_size(call->out[0].dtype);
    if (!blocks || !p.steps)
        return MIXT_OK;
    for (int64_t t = 0; t < p.steps; t++)
        DISPATCH(call->in[0].dtype, T, (lstm_cached_step<T><<<blocks, THREADS, 0, mixt__cuda.stream>>>(p, t)));
    MIXT_TRY(mixt__cuda_launched("lstm_cached"));
    const char *last = (const char *)p.dst + (size_t)(p.steps - 1) * row;
    return mixt__cuda_check(cudaMemcpy2DAsync(call->in[2].data, row, last, (size_t)p.steps * row, row, (size_t)p.batch,
                                              cudaMemcpyDeviceToDevice, mixt__cuda.stream),
                            "keeping an LSTM's state");
}

static const mixt__kernel plain = {.name = "plain", .run = run};

extern "C" const mixt__kernel *const mixt__cuda_lstm_cached_kernels[] = {&plain, NULL};
