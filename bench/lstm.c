/* LSTM forward and backward in GFLOP/s: every candidate that this CPU can run. */
#include "kernel_bench.h"

static void lstm(mixt_dtype dtype, int64_t batch, int64_t steps, int64_t n)
{
    mixt__tensor in[] = {TENSOR(dtype, batch, steps, 4 * n), TENSOR(dtype, 4 * n, n)};
    mixt__tensor out[] = {TENSOR(dtype, batch, steps, n), TENSOR(dtype, batch, steps, 4 * n),
                          TENSOR(MIXT_DTYPE_FP32, batch, steps, n)};
    mixt__tensor grad_in[] = {in[1], out[0], out[1], out[2], TENSOR(dtype, batch, steps, n)};
    mixt__tensor grad_out[] = {TENSOR(dtype, batch, steps, 4 * n), TENSOR(MIXT_DTYPE_FP32, 4 * n, n)};
    mixt__call forward = {.layer = "", .in_count = 2, .out_count = 3, .in = in, .out = out};
    mixt__call backward = {.layer = "", .in_count = 5, .out_count = 2, .in = grad_in, .out = grad_out};
    double flops = 8.0 * (double)(batch * steps * n * n);
    for (int k = 0; mixt__cpu_lstm_kernels[k + 1]; k++) {
        double f = best_time(mixt__cpu_lstm_kernels[k], &forward),
               b = best_time(mixt__cpu_lstm_grad_kernels[k], &backward);
        if (f > 0 && b > 0)
            printf("lstm %s (%lld, %lld, %lld) %-7s forward %7.2f ms %6.1f GFLOP/s  backward %7.2f ms %6.1f GFLOP/s\n",
                   mixt_dtype_name(dtype), (long long)batch, (long long)steps, (long long)n,
                   mixt__cpu_lstm_kernels[k]->name, f * 1e3, flops / f * 1e-9, b * 1e3, 2 * flops / b * 1e-9);
    }
    void *blocks[] = {in[0].data,  in[1].data,      out[0].data,      out[1].data,
                      out[2].data, grad_in[4].data, grad_out[0].data, grad_out[1].data};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        mixt__free(blocks[i]);
}

int main(void)
{
    printf("%d threads\n", mixt__threads_count());
    lstm(MIXT_DTYPE_FP32, 64, 64, 512);
    lstm(MIXT_DTYPE_BF16, 64, 64, 512);
    lstm(MIXT_DTYPE_FP32, 8, 64, 128);
    return 0;
}
