/* Speed of the memory-bound kernels of the CPU backend: bytes read and written a second, beside memcpy.
 *
 * usage: pointwise [--mib N] [--runs N] [--threads N]. Each pointwise operand has N MiB in FP32 (16); times are the
 * best of the runs, so that a noisy neighbour does not count.
 */
#include "backend/cpu/kernels.h"
#include "base/isa.h"
#include "base/threads.h"
#include "num/num.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct settings {
    int64_t mib;
    int runs, threads;
} settings;

static settings options = {.mib = 16, .runs = 15};

static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16};

static mixt__tensor new_tensor(mixt_dtype dtype, mixt__shape shape)
{
    mixt__tensor t = {.dtype = dtype, .shape = shape, .contiguous = true};
    mixt__shape_strides(&shape, t.strides);
    int64_t count = mixt__shape_count(&shape);
    size_t bytes = (size_t)count * mixt_dtype_size(dtype);
    t.data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!t.data)
        exit(1);
    for (int64_t i = 0; i < count; i++) {
        if (dtype == MIXT_DTYPE_INT32)
            ((int32_t *)t.data)[i] = (int32_t)(i % 200);
        else
            mixt__store(t.data, dtype, i, (float)(i % 977) / 200.0f - 2.4f);
    }
    return t;
}

static double bytes_of(const mixt__tensor *tensors, int count)
{
    double bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += (double)mixt__shape_count(&tensors[i].shape) * (double)mixt_dtype_size(tensors[i].dtype);
    return bytes;
}

/** Runs the best candidate and prints its speed. */
static void measure(const char *name, const mixt__kernel *const *list, mixt__call call)
{
    mixt__arena arena = {0};
    const char *reason;
    while (list[0]->supports && !list[0]->supports(&call, &reason))
        list++;
    if (list[0]->prepare && list[0]->prepare(&call, &arena) != MIXT_OK)
        exit(1);
    call.workspace = aligned_alloc(64, call.workspace_bytes / 64 * 64 + 64);
    double best = 1e30;
    for (int i = 0; i < options.runs; i++) {
        double start = mixt__time_now();
        if (list[0]->run(&call) != MIXT_OK)
            exit(1);
        double seconds = mixt__time_now() - start;
        best = seconds < best ? seconds : best;
    }
    double bytes = bytes_of(call.in, call.in_count) + bytes_of(call.out, call.out_count);
    printf("%-24s %-5s %-8s %9.3f ms %7.1f GB/s\n", name, mixt_dtype_name(call.in[0].dtype), list[0]->name, 1e3 * best,
           1e-9 * bytes / best);
    free(call.workspace);
    mixt__arena_free(&arena);
}

static void measure_pointwise(const char *name, mixt__pw_instr instr, mixt_dtype dtype, bool bias)
{
    int operands = mixt__pw_operands[instr.code];
    mixt__pointwise_attrs at = {.in_count = operands, .instr_count = 1, .out_count = 1, .outs = {operands}};
    mixt__shape shape = {2, {options.mib * 1024 * 1024 / 4 / 768, 768}};
    mixt__tensor in[2], out = new_tensor(dtype, shape);
    instr.b = operands > 1;
    at.instrs[0] = instr;
    for (int i = 0; i < operands; i++)
        in[i] = new_tensor(dtype, i && bias ? (mixt__shape){1, {768}} : shape);
    measure(name, mixt__cpu_pointwise_kernels,
            (mixt__call){.attrs = &at, .in = in, .in_count = operands, .out = &out, .out_count = 1});
    for (int i = 0; i < operands; i++)
        free(in[i].data);
    free(out.data);
}

static void measure_reduce(mixt_dtype dtype, int64_t rows, int64_t columns)
{
    mixt__reduce_attrs at = {.axes = 1};
    mixt__tensor in = new_tensor(dtype, (mixt__shape){2, {rows, columns}});
    mixt__tensor out = new_tensor(MIXT_DTYPE_FP32, (mixt__shape){1, {columns}});
    char name[64];
    snprintf(name, sizeof name, "column sum %lldx%lld", (long long)rows, (long long)columns);
    measure(name, mixt__cpu_reduce_kernels,
            (mixt__call){.attrs = &at, .in = &in, .in_count = 1, .out = &out, .out_count = 1});
    free(in.data);
    free(out.data);
}

static void measure_cross_entropy(mixt_dtype dtype, int64_t rows, int64_t classes)
{
    mixt__loss_attrs at = {0};
    mixt__shape matrix = {2, {rows, classes}}, vector = {1, {rows}}, one = {0}, three = {1, {3}};
    mixt__tensor in[5] = {new_tensor(dtype, matrix), new_tensor(MIXT_DTYPE_INT32, vector)};
    mixt__tensor out[3] = {new_tensor(MIXT_DTYPE_FP32, one), new_tensor(MIXT_DTYPE_FP32, three),
                           new_tensor(MIXT_DTYPE_FP32, vector)};
    char name[64];
    snprintf(name, sizeof name, "loss %lldx%lld", (long long)rows, (long long)classes);
    measure(name, mixt__cpu_cross_entropy_kernels,
            (mixt__call){.attrs = &at, .in = in, .in_count = 2, .out = out, .out_count = 3});
    in[2] = out[2];
    in[3] = out[1];
    in[4] = out[0];
    mixt__tensor grad = new_tensor(dtype, matrix);
    snprintf(name, sizeof name, "loss gradient %lldx%lld", (long long)rows, (long long)classes);
    measure(name, mixt__cpu_cross_entropy_grad_kernels,
            (mixt__call){.attrs = &at, .in = in, .in_count = 5, .out = &grad, .out_count = 1});
    free(grad.data);
    for (int i = 0; i < 5; i++)
        free(in[i].data);
}

static void copy_range(void *argument, int64_t begin, int64_t end, int thread)
{
    char **pair = argument;
    (void)thread;
    memcpy(pair[0] + begin, pair[1] + begin, (size_t)(end - begin));
}

static void measure_memcpy(void)
{
    mixt__shape shape = {1, {options.mib * 1024 * 1024 / 4}};
    mixt__tensor a = new_tensor(MIXT_DTYPE_FP32, shape), b = new_tensor(MIXT_DTYPE_FP32, shape);
    char *pair[2] = {a.data, b.data};
    double best = 1e30;
    for (int i = 0; i < options.runs; i++) {
        double start = mixt__time_now();
        mixt__parallel(4 * shape.dims[0], 65536, copy_range, pair);
        double seconds = mixt__time_now() - start;
        best = seconds < best ? seconds : best;
    }
    printf("%-24s %-5s %-8s %9.3f ms %7.1f GB/s\n", "memcpy", "", "", 1e3 * best, 8e-9 * (double)shape.dims[0] / best);
    free(a.data);
    free(b.data);
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--mib"))
            options.mib = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--runs"))
            options.runs = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--threads"))
            options.threads = atoi(argv[i + 1]);
    }
    mixt__threads_set(options.threads);
    printf("%s, %d threads\n", mixt__isa_name(mixt__isa_level()), mixt__threads_count());
    measure_memcpy();
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        mixt_dtype dtype = formats[f];
        measure_pointwise("add", (mixt__pw_instr){.code = MIXT_PW_ADD}, dtype, false);
        measure_pointwise("add bias", (mixt__pw_instr){.code = MIXT_PW_ADD}, dtype, true);
        measure_pointwise("relu", (mixt__pw_instr){.code = MIXT_PW_RELU}, dtype, false);
        measure_pointwise("gelu", (mixt__pw_instr){.code = MIXT_PW_GELU}, dtype, false);
        measure_pointwise("gelu_grad", (mixt__pw_instr){.code = MIXT_PW_GELU_GRAD}, dtype, false);
        measure_pointwise("dropout", (mixt__pw_instr){.code = MIXT_PW_DROPOUT, .imm = 0.1f}, dtype, false);
        measure_reduce(dtype, 2048, 1536);
        measure_reduce(dtype, 50176, 32);
        measure_cross_entropy(dtype, 2048, 50304);
        measure_cross_entropy(dtype, 2048, 256);
    }
    return 0;
}
