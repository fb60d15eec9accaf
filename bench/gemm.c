/* Speed of the matrix-product engine on the shapes of the benchmark models.
 *
 *     build/bench/gemm [--threads N] [--json] [--seconds S]
 *
 * Columns are GFLOP/s of the fastest of many short runs: FP32; BF16 operands and result, widened to FP32 while packing
 * (what a CPU without BF16 units does); BF16 multiplied as such.
 */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/kernel.h"
#include "base/alloc.h"
#include "base/isa.h"
#include "base/threads.h"
#include "num/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    const char *name;
    int64_t m, n, k;
    bool a_turned, b_turned, fp32_result; // weight gradients accumulate in FP32
} shape;

static const shape shapes[] = {
    {"mlp fc1 forward", 128, 512, 784, false, true, false},
    {"mlp fc1 grad_weight", 512, 784, 128, true, false, true},
    {"mlp fc2 forward", 128, 512, 512, false, true, false},
    {"mlp fc2 grad_src", 128, 512, 512, false, false, false},
    {"mlp fc2 grad_weight", 512, 512, 128, true, false, true},
    {"mlp fc3 forward", 128, 10, 512, false, true, false},
    {"mlp fc3 grad_weight", 10, 512, 128, true, false, true},
    {"gpt qkv forward", 2048, 1152, 384, false, true, false},
    {"gpt qkv grad_src", 2048, 384, 1152, false, false, false},
    {"gpt qkv grad_weight", 1152, 384, 2048, true, false, true},
    {"gpt fc forward", 2048, 1536, 384, false, true, false},
    {"gpt fc grad_src", 2048, 384, 1536, false, false, false},
    {"gpt fc grad_weight", 1536, 384, 2048, true, false, true},
    {"gpt out forward", 2048, 384, 1536, false, true, false},
    {"gpt out grad_src", 2048, 1536, 384, false, false, false},
    {"gpt out grad_weight", 384, 1536, 2048, true, false, true},
    {"gpt attention scores", 256, 256, 64, false, true, false},
    {"conv1 patches", 50176, 32, 9, false, true, false},
    {"conv2 patches", 12544, 64, 288, false, true, false},
    {"conv2 grad_weight", 64, 288, 12544, true, false, true},
    {"lstm step", 64, 2048, 512, false, true, false},
    {"square 1024", 1024, 1024, 1024, false, false, false},
};

typedef struct buffers {
    float *a, *b, *c;
    uint16_t *a16, *b16, *c16;
} buffers;

static double seconds = 0.15;
static volatile float sink;

/** What a core can do at best: the kernel's own tile on panels that stay in the first cache level. */
static double tile_peak(const mixt__gemm_kernel *kernel)
{
    enum { UNITS = 128, REPEAT = 2000 };
    _Alignas(64) static int32_t a[UNITS * 32], b[UNITS * 32];
    _Alignas(64) static float c[32 * 32];
    mixt__gemm_tile tile = {
        .a = a, .b = b, .k = UNITS, .c = c, .ldc = 32, .rows = kernel->mr, .cols = kernel->nr, .alpha = 1};
    double best = 1e9;
    if (kernel->begin)
        kernel->begin();
    for (int round = 0; round < 20; round++) {
        double start = mixt__time_now();
        for (int i = 0; i < REPEAT; i++)
            kernel->tile(&tile);
        double time = mixt__time_now() - start;
        best = time < best ? time : best;
    }
    if (kernel->end)
        kernel->end();
    sink = c[0];
    return 2.0 * kernel->mr * kernel->nr * UNITS * (kernel->pairs ? 2 : 1) * REPEAT / best * 1e-9;
}

typedef void call_fn(const shape *s, const buffers *x, void *state);

static double fastest(call_fn *call, const shape *s, const buffers *x, void *state)
{
    double best = 1e9, begin = mixt__time_now();
    for (int round = 0; round < 5 || mixt__time_now() - begin < seconds; round++) {
        double start = mixt__time_now();
        call(s, x, state);
        double time = mixt__time_now() - start;
        best = time < best ? time : best;
    }
    return 2.0 * (double)s->m * (double)s->n * (double)s->k / best * 1e-9;
}

static mixt__gemm_problem problem_of(const shape *s, const buffers *x, mixt_dtype dtype, bool low)
{
    bool wide = dtype == MIXT_DTYPE_FP32;
    mixt__gemm_problem p = {.m = s->m, .n = s->n, .k = s->k, .ldc = s->n, .alpha = 1, .low = low};
    p.a = (mixt__gemm_operand){.data = wide ? (void *)x->a : x->a16, .dtype = dtype};
    p.b = (mixt__gemm_operand){.data = wide ? (void *)x->b : x->b16, .dtype = dtype};
    p.a.row_stride = s->a_turned ? 1 : s->k;
    p.a.col_stride = s->a_turned ? s->m : 1;
    p.b.row_stride = s->b_turned ? 1 : s->n;
    p.b.col_stride = s->b_turned ? s->k : 1;
    p.accumulate = s->fp32_result;
    p.c_dtype = s->fp32_result ? MIXT_DTYPE_FP32 : dtype;
    p.c = p.c_dtype == MIXT_DTYPE_FP32 ? (void *)x->c : x->c16;
    return p;
}

typedef struct engine_call {
    mixt__gemm_problem problem;
    void *workspace;
} engine_call;

static void call_engine(const shape *s, const buffers *x, void *state)
{
    const engine_call *call = state;
    (void)s, (void)x;
    mixt__gemm_run(&call->problem, call->workspace);
}

static double run_engine(const shape *s, const buffers *x, mixt_dtype dtype, bool low)
{
    engine_call call = {problem_of(s, x, dtype, low), NULL};
    call.workspace = mixt__alloc(mixt__gemm_workspace(&call.problem));
    double speed = call.workspace ? fastest(call_engine, s, x, &call) : 0;
    mixt__free(call.workspace);
    return speed;
}

static const mixt__gemm_kernel *fp32_kernel(void)
{
    mixt__isa level = mixt__isa_level();
    return level >= MIXT_ISA_AVX512 ? &mixt__gemm_kernel_avx512
           : level >= MIXT_ISA_AVX2 ? &mixt__gemm_kernel_avx2
                                    : &mixt__gemm_kernel_scalar;
}

static buffers buffers_make(void)
{
    int64_t a = 0, b = 0, c = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        a = s->m * s->k > a ? s->m * s->k : a;
        b = s->k * s->n > b ? s->k * s->n : b;
        c = s->m * s->n > c ? s->m * s->n : c;
    }
    buffers x = {mixt__alloc((size_t)a * 4), mixt__alloc((size_t)b * 4), mixt__alloc((size_t)c * 4),
                 mixt__alloc((size_t)a * 2), mixt__alloc((size_t)b * 2), mixt__alloc((size_t)c * 2)};
    if (!x.a || !x.b || !x.c || !x.a16 || !x.b16 || !x.c16) {
        fprintf(stderr, "gemm: out of memory\n");
        exit(1);
    }
    for (int64_t i = 0; i < a; i++)
        x.a[i] = (float)(i % 17) * 0.0625f - 0.5f;
    for (int64_t i = 0; i < b; i++)
        x.b[i] = (float)(i % 13) * 0.0625f - 0.375f;
    mixt__narrow(MIXT_DTYPE_BF16)(x.a16, x.a, a);
    mixt__narrow(MIXT_DTYPE_BF16)(x.b16, x.b, b);
    return x;
}

typedef struct result {
    double fp32, bf16_widened, bf16;
} result;

static result measure(const shape *s, const buffers *x)
{
    result r = {0};
    r.fp32 = run_engine(s, x, MIXT_DTYPE_FP32, false);
    r.bf16_widened = run_engine(s, x, MIXT_DTYPE_BF16, false);
    r.bf16 = run_engine(s, x, MIXT_DTYPE_BF16, true);
    return r;
}

int main(int argc, char **argv)
{
    bool json = false;
    const char *only = "";
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json")) {
            json = true;
        } else if (!strcmp(argv[i], "--threads") && i + 1 < argc) {
            mixt__threads_set(atoi(argv[++i]));
        } else if (!strcmp(argv[i], "--seconds") && i + 1 < argc) {
            seconds = atof(argv[++i]);
        } else if (!strcmp(argv[i], "--only") && i + 1 < argc) {
            only = argv[++i];
        } else {
            fprintf(stderr, "usage: gemm [--threads N] [--seconds S] [--only NAME] [--json]\n");
            return 2;
        }
    }
    buffers x = buffers_make();
    double peak = tile_peak(fp32_kernel());
    if (!json) {
        printf("%s, %d threads; one core's FP32 tile in cache: %.0f GFLOP/s\n", mixt__cpu()->model,
               mixt__threads_count(), peak);
        printf("%-24s %6s %6s %6s %9s %9s %9s\n", "GFLOP/s", "m", "n", "k", "fp32", "widened", "bf16");
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const shape *s = &shapes[i];
        if (!strstr(s->name, only))
            continue;
        result r = measure(s, &x);
        printf(
            json ? "{\"shape\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"fp32\": %.1f, \"bf16_widened\": %.1f, "
                   "\"bf16\": %.1f}\n"
                 : "%-24s %6lld %6lld %6lld %9.1f %9.1f %9.1f\n",
            s->name, (long long)s->m, (long long)s->n, (long long)s->k, r.fp32, r.bf16_widened, r.bf16);
    }
    return 0;
}
