/* Speed of the convolution candidates on the shapes of the benchmark models.
 *
 *     build/bench/conv [--threads N] [--dtype fp32|fp16|bf16] [--seconds S] [--shape TEXT]
 *
 * GFLOP/s of the fastest of many short runs, for the forward and both gradients of each candidate; a dash where a
 * candidate refuses the shape. One thread is timed by its own CPU clock, so that other work on the machine disturbs
 * little.
 */
#include "backend/cpu/kernels.h"
#include "base/alloc.h"
#include "base/threads.h"
#include "num/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct shape {
    const char *name;
    int64_t n, size, c, o, kernel, stride, pad;
    int64_t groups; // 0: one
} shape;

static const shape shapes[] = {
    {"convnet 1", 64, 28, 1, 32, 3, 1, 1},
    {"convnet 2", 64, 14, 32, 64, 3, 1, 1},
    {"resnet 7x7/2", 4, 224, 3, 64, 7, 2, 3},
    {"resnet 56 3x3", 4, 56, 64, 64, 3, 1, 1},
    {"resnet 56 1x1 up", 4, 56, 64, 256, 1, 1, 0},
    {"resnet 56 1x1 down", 4, 56, 256, 64, 1, 1, 0},
    {"resnet 56 3x3/2", 4, 56, 128, 128, 3, 2, 1},
    {"resnet 56 1x1/2", 4, 56, 256, 512, 1, 2, 0},
    {"resnet 28 3x3", 4, 28, 128, 128, 3, 1, 1},
    {"resnet 14 3x3", 4, 14, 256, 256, 3, 1, 1},
    {"resnet 14 1x1 up", 4, 14, 256, 1024, 1, 1, 0},
    {"resnet 7 3x3", 4, 7, 512, 512, 3, 1, 1},
    {"depthwise 112 3x3", 4, 112, 16, 16, 3, 1, 1, 16},
    {"depthwise 56 3x3/2", 4, 56, 72, 72, 3, 2, 1, 72},
    {"depthwise 28 5x5", 4, 28, 120, 120, 5, 1, 2, 120},
    {"depthwise 14 3x3", 4, 14, 480, 480, 3, 1, 1, 480},
    {"depthwise 14 5x5/2", 4, 14, 672, 672, 5, 2, 2, 672},
    {"depthwise 7 5x5", 4, 7, 960, 960, 5, 1, 2, 960},
    {"depthwise 28 7x7", 4, 28, 192, 192, 7, 1, 3, 192},
    {"groups 56 3x3", 4, 56, 128, 128, 3, 1, 1, 32},
    {"groups 28 3x3 of 8", 4, 28, 256, 256, 3, 1, 1, 32},
    {"groups 14 3x3 of 16", 4, 14, 512, 512, 3, 1, 1, 32},
    {"groups 7 3x3 of 32", 4, 7, 1024, 1024, 3, 1, 1, 32},
    {"groups 28 3x3/2 of 24", 4, 28, 144, 144, 3, 2, 1, 6},
    {"groups 28 3x3 of 64", 4, 28, 256, 256, 3, 1, 1, 4},
};

typedef struct problem {
    mixt__conv2d_attrs attrs;
    mixt__tensor src, weight, bias, dst, grad_weight;
} problem;

static double seconds = 0.1;

static mixt__tensor tensor(mixt_dtype dtype, int rank, const int64_t *dims)
{
    mixt__tensor t = {.dtype = dtype, .shape = {.rank = rank}, .contiguous = true};
    int64_t count = 1;
    for (int i = rank - 1; i >= 0; i--) {
        t.shape.dims[i] = dims[i];
        t.strides[i] = count;
        count *= dims[i];
    }
    t.data = mixt__alloc((size_t)count * mixt_dtype_size(dtype));
    for (int64_t i = 0; t.data && i < count; i++)
        mixt__store(t.data, dtype, i, (float)(i * 7919 % 257 - 128) / 128.0f);
    return t;
}

static problem make_problem(const shape *s, mixt_dtype dtype)
{
    int64_t out = (s->size + 2 * s->pad - s->kernel) / s->stride + 1;
    const mixt__conv_axis axis = {s->kernel, s->stride, 1, s->pad, s->pad, s->size};
    int64_t groups = s->groups ? s->groups : 1;
    problem p = {.attrs = {.h = axis, .w = axis, .groups = groups, .bias = true}};
    p.src = tensor(dtype, 4, (int64_t[]){s->n, s->size, s->size, s->c});
    p.weight = tensor(dtype, 4, (int64_t[]){s->o, s->kernel, s->kernel, s->c / groups});
    p.grad_weight = tensor(MIXT_DTYPE_FP32, 4, p.weight.shape.dims);
    p.dst = tensor(dtype, 4, (int64_t[]){s->n, out, out, s->o});
    p.bias = tensor(MIXT_DTYPE_FP32, 1, &s->o);
    return p;
}

static void free_problem(problem *p)
{
    mixt__tensor *all[] = {&p->src, &p->weight, &p->bias, &p->dst, &p->grad_weight};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        mixt__free(all[i]->data);
}

static double clock_now(void)
{
    struct timespec now;
    if (mixt__threads_count() > 1)
        return mixt__time_now();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** Best seconds of one run; 0 when the candidate refuses the call or fails. */
static double time_kernel(const mixt__kernel *kernel, mixt__call *call)
{
    const char *reason;
    mixt__arena arena = {0};
    double best = 0;
    if (kernel->supports && !kernel->supports(call, &reason))
        return 0;
    call->workspace_bytes = 0;
    call->state = NULL;
    if (kernel->prepare && kernel->prepare(call, &arena) != MIXT_OK) {
        fprintf(stderr, "%s: %s\n", kernel->name, mixt_error_text());
        return 0;
    }
    call->workspace = mixt__alloc(call->workspace_bytes);
    double end = clock_now() + seconds;
    for (double now = 0; now < end;) {
        double start = clock_now();
        if (kernel->run(call) != MIXT_OK)
            fprintf(stderr, "%s: %s\n", kernel->name, mixt_error_text());
        now = clock_now();
        best = best == 0 || now - start < best ? now - start : best;
    }
    mixt__free(call->workspace);
    if (kernel->release)
        kernel->release(call);
    mixt__arena_free(&arena);
    return best;
}

static void bench_op(const shape *s, const mixt__op *op, const mixt__kernel *const *kernels, mixt__tensor *in,
                     int in_count, mixt__tensor *out, const problem *p)
{
    int64_t rows = p->dst.shape.dims[0] * p->dst.shape.dims[1] * p->dst.shape.dims[2];
    double flops = 2.0 * (double)(rows * s->o * s->kernel * s->kernel * s->c / (s->groups ? s->groups : 1));
    printf("%-20s %-20s", s->name, op->name);
    for (; *kernels && strcmp((*kernels)->name, "plain") != 0; kernels++) {
        mixt__call call = {
            .op = op, .attrs = &p->attrs, .layer = "", .in_count = in_count, .in = in, .out_count = 1, .out = out};
        double time = time_kernel(*kernels, &call);
        if (time > 0)
            printf("  %s %7.1f (%.3f ms)", (*kernels)->name, flops / time * 1e-9, time * 1e3);
        else
            printf("  %s       -           ", (*kernels)->name);
    }
    printf("\n");
    fflush(stdout);
}

static void bench_shape(const shape *s, mixt_dtype dtype)
{
    problem p = make_problem(s, dtype);
    mixt__tensor forward[] = {p.src, p.weight, p.bias}, grad_src[] = {p.dst, p.weight}, grad_weight[] = {p.src, p.dst};
    bench_op(s, &mixt__op_conv2d, mixt__cpu_conv2d_kernels, forward, 3, &p.dst, &p);
    bench_op(s, &mixt__op_conv2d_grad_weight, mixt__cpu_conv2d_grad_weight_kernels, grad_weight, 2, &p.grad_weight, &p);
    if (s->c > 3)
        bench_op(s, &mixt__op_conv2d_grad_src, mixt__cpu_conv2d_grad_src_kernels, grad_src, 2, &p.src, &p);
    free_problem(&p);
}

int main(int argc, char **argv)
{
    mixt_dtype dtype = MIXT_DTYPE_FP32;
    const char *only = "";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            mixt__threads_set(atoi(argv[i + 1]));
        else if (strcmp(argv[i], "--dtype") == 0)
            dtype = mixt_dtype_parse(argv[i + 1]);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = atof(argv[i + 1]);
        else if (strcmp(argv[i], "--shape") == 0)
            only = argv[i + 1];
    }
    printf("%s, %d threads, GFLOP/s\n", mixt_dtype_name(dtype), mixt__threads_count());
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strstr(shapes[i].name, only))
            bench_shape(&shapes[i], dtype);
    return 0;
}
