/* Attention forward and backward in GFLOP/s, layer norm in GB/s: every candidate that this CPU can run. */
#include "kernel_bench.h"

static void attention(mixt_dtype dtype, int64_t batch, int64_t heads, int64_t t, int64_t dim, bool causal)
{
    int64_t c = heads * dim;
    mixt__attention_attrs at = {.heads = heads, .causal = causal, .scale = 1 / sqrtf((float)dim)};
    mixt__tensor qkv = TENSOR(dtype, batch, t, 3 * c), grad_qkv = TENSOR(dtype, batch, t, 3 * c), in[6], grads[3];
    for (int i = 0; i < 3; i++) {
        in[i] = qkv;
        grads[i] = grad_qkv;
        in[i].shape.dims[2] = grads[i].shape.dims[2] = c;
        in[i].data = (char *)qkv.data + (size_t)(i * c) * mixt_dtype_size(dtype);
        grads[i].data = (char *)grad_qkv.data + (size_t)(i * c) * mixt_dtype_size(dtype);
    }
    in[3] = TENSOR(dtype, batch, t, c);
    in[4] = TENSOR(MIXT_DTYPE_FP32, batch, heads, t);
    in[5] = TENSOR(dtype, batch, t, c);
    mixt__call forward = {.attrs = &at, .layer = "", .in_count = 3, .out_count = 2, .in = in, .out = &in[3]};
    mixt__call backward = {.attrs = &at, .layer = "", .in_count = 6, .out_count = 3, .in = in, .out = grads};
    double flops = 4.0 * (double)(batch * t * t * c) / (causal ? 2 : 1);
    for (int k = 0; mixt__cpu_attention_kernels[k + 1]; k++) {
        double f = best_time(mixt__cpu_attention_kernels[k], &forward),
               b = best_time(mixt__cpu_attention_grad_kernels[k], &backward);
        if (f > 0 && b > 0)
            printf("attention %s (%lld, %lld, %lld, %lld)%s %-7s forward %7.3f ms %6.1f GFLOP/s  backward %7.3f ms "
                   "%6.1f GFLOP/s\n",
                   mixt_dtype_name(dtype), (long long)batch, (long long)heads, (long long)t, (long long)dim,
                   causal ? " causal" : "", mixt__cpu_attention_kernels[k]->name, f * 1e3, flops / f * 1e-9, b * 1e3,
                   2.5 * flops / b * 1e-9);
    }
    for (int i = 3; i < 6; i++)
        mixt__free(in[i].data);
    mixt__free(qkv.data);
    mixt__free(grad_qkv.data);
}

static void layer_norm(mixt_dtype dtype, int64_t rows, int64_t cols)
{
    mixt__norm_attrs at = {.eps = 1e-5f};
    mixt__tensor src = TENSOR(dtype, rows, cols), dst = TENSOR(dtype, rows, cols),
                 weight = TENSOR(MIXT_DTYPE_FP32, cols);
    mixt__tensor bias = TENSOR(MIXT_DTYPE_FP32, cols), mean = TENSOR(MIXT_DTYPE_FP32, rows),
                 rstd = TENSOR(MIXT_DTYPE_FP32, rows);
    mixt__tensor grad = TENSOR(dtype, rows, cols);
    mixt__call forward = {.attrs = &at, .layer = "", .in_count = 3, .out_count = 3};
    forward.in = (mixt__tensor[]){src, weight, bias};
    forward.out = (mixt__tensor[]){dst, mean, rstd};
    mixt__call backward = {.attrs = &at, .layer = "", .in_count = 5, .out_count = 3};
    backward.in = (mixt__tensor[]){src, weight, mean, rstd, dst};
    backward.out = (mixt__tensor[]){grad, weight, bias};
    double bytes = 2.0 * (double)(rows * cols) * (double)mixt_dtype_size(dtype);
    for (int k = 0; mixt__cpu_layer_norm_kernels[k + 1]; k++) {
        double f = best_time(mixt__cpu_layer_norm_kernels[k], &forward),
               b = best_time(mixt__cpu_layer_norm_grad_kernels[k], &backward);
        if (f > 0 && b > 0)
            printf("layer_norm %s (%lld, %lld) %-7s forward %7.3f ms %6.1f GB/s  backward %7.3f ms %6.1f GB/s\n",
                   mixt_dtype_name(dtype), (long long)rows, (long long)cols, mixt__cpu_layer_norm_kernels[k]->name,
                   f * 1e3, bytes / f * 1e-9, b * 1e3, 1.5 * bytes / b * 1e-9);
    }
    void *blocks[] = {src.data, dst.data, weight.data, bias.data, mean.data, rstd.data, grad.data};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        mixt__free(blocks[i]);
}

int main(void)
{
    static const mixt_dtype dtypes[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16};
    printf("%d threads\n", mixt__threads_count());
    for (int d = 0; d < 2; d++) {
        attention(dtypes[d], 8, 6, 256, 64, true);
        attention(dtypes[d], 8, 6, 256, 64, false);
        attention(dtypes[d], 1, 12, 1024, 64, true);
        attention(dtypes[d], 2, 4, 256, 128, true);
        layer_norm(dtypes[d], 2048, 384);
        layer_norm(dtypes[d], 32768, 768);
    }
    return 0;
}
