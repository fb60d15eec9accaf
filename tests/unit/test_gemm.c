/* The matrix-product engine against an FP64 oracle: every kernel this CPU can run (and AMX by emulation), formats,
 * layouts, edges, accumulation, bias, epilogue, gathers, batches, packed B, thread counts. */
#include "../support/sanitized.h"

#include "amx_emulation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/kernel.h"
#include "base/alloc.h"
#include "base/isa.h"
#include "base/rng.h"
#include "base/threads.h"
#include "num/num.h"

#define mixt__gemm_kernel_amx emulated_amx
extern const mixt__gemm_kernel emulated_amx;
#include "backend/cpu/gemm/kernel_amx.c"
#undef mixt__gemm_kernel_amx

enum { GUARD = 64, POISON = 0xa5 };

typedef struct gemm_case {
    int64_t m, n, k;
    mixt_dtype a, b, c;
    bool a_turned, b_turned; // unit stride along the rows instead of the columns
    float alpha;
    bool accumulate, bias, epilogue, gather_a, gather_b, low, packed, integers;
} gemm_case;

/** A stored operand and its values in FP64, row-major. */
typedef struct matrix {
    int64_t rows, cols;
    void *data;
    double *values;
    mixt__gemm_operand operand;
} matrix;

static const uint64_t seed = 20240607;

static void *take(int64_t bytes)
{
    void *block = malloc(bytes ? (size_t)bytes : 1); // not the library's: a sanitizer then sees every byte past the end
    assert_non_null(block);
    return block;
}

static void gather_values(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols, float *dst,
                          int64_t ld)
{
    const matrix *x = argument;
    if (row < 0 || rows <= 0 || row + rows > x->rows || col < 0 || cols <= 0 || col + cols > x->cols || ld < cols)
        abort(); // not always on the thread that cmocka can unwind
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            dst[r * ld + c] = (float)x->values[(row + r) * x->cols + col + c];
}

static void matrix_fill(matrix *x, int64_t rows, int64_t cols, mixt_dtype dtype, bool turned, bool gather,
                        bool integers, mixt__rng *rng)
{
    int64_t line = turned ? rows : cols, lines = turned ? cols : rows, lead = line + (int64_t)mixt__rng_below(rng, 4);
    int64_t elements = lines ? (lines - 1) * lead + line : 0;
    x->rows = rows;
    x->cols = cols;
    x->data = take(elements * (int64_t)mixt_dtype_size(dtype));
    x->values = take(rows * cols * (int64_t)sizeof(double));
    x->operand = (mixt__gemm_operand){
        .data = x->data, .dtype = dtype, .row_stride = turned ? 1 : lead, .col_stride = turned ? lead : 1};
    memset(x->data, 0x7f, (size_t)elements * mixt_dtype_size(dtype)); // what lies between rows is NaN or huge
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            float value = integers ? (float)mixt__rng_below(rng, 9) - 4.0f : 2.0f * mixt__rng_uniform(rng) - 1.0f;
            int64_t index = r * x->operand.row_stride + c * x->operand.col_stride;
            mixt__store(x->data, dtype, index, value);
            x->values[r * cols + c] = mixt__load(x->data, dtype, index);
        }
    if (gather) {
        x->operand.gather = gather_values;
        x->operand.gather_argument = x;
        x->operand.data = NULL;
    }
}

static void matrix_free(matrix *x)
{
    free(x->data);
    free(x->values);
}

/** C with guards before, after and between its rows. */
typedef struct target {
    int64_t m, n, ld, size;
    mixt_dtype dtype;
    unsigned char *bytes, *before; // before: as it was at the start
} target;

static target target_make(const gemm_case *g, mixt__rng *rng)
{
    target t = {.m = g->m, .n = g->n, .ld = g->n + 5, .dtype = g->c};
    t.size = 2 * GUARD + t.m * t.ld * (int64_t)mixt_dtype_size(t.dtype);
    t.bytes = take(t.size);
    t.before = take(t.size);
    memset(t.bytes, POISON, (size_t)t.size);
    for (int64_t r = 0; g->accumulate && r < t.m; r++)
        for (int64_t c = 0; c < t.n; c++)
            mixt__store(t.bytes + GUARD, t.dtype, r * t.ld + c,
                        g->integers ? (float)mixt__rng_below(rng, 5) : mixt__rng_uniform(rng));
    memcpy(t.before, t.bytes, (size_t)t.size);
    return t;
}

static bool target_guards_whole(const target *t)
{
    int64_t size = (int64_t)mixt_dtype_size(t->dtype);
    for (int64_t i = 0; i < t->size; i++) {
        int64_t at = i - GUARD, element = at / size;
        bool inside = at >= 0 && element < t->m * t->ld && element % t->ld < t->n;
        if (!inside && t->bytes[i] != POISON)
            return false;
    }
    return true;
}

typedef struct epilogue_log {
    unsigned char *seen; // (m, n)
    int64_t n;
} epilogue_log;

static void double_plus_one(const void *argument, int64_t row, int64_t rows, int64_t col, int64_t cols, float *block,
                            int64_t ld)
{
    const epilogue_log *log = argument;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            log->seen[(row + r) * log->n + col + c]++;
            block[r * ld + c] = 2.0f * block[r * ld + c] + 1.0f;
        }
}

static void describe(const gemm_case *g, const char *kernel, int threads, const char *what)
{
    print_error("seed %llu kernel %s threads %d: m %lld n %lld k %lld %s%s x %s%s -> %s alpha %g%s%s%s%s%s%s%s: %s\n",
                (unsigned long long)seed, kernel, threads, (long long)g->m, (long long)g->n, (long long)g->k,
                mixt_dtype_name(g->a), g->a_turned ? "T" : "", mixt_dtype_name(g->b), g->b_turned ? "T" : "",
                mixt_dtype_name(g->c), (double)g->alpha, g->accumulate ? " accumulate" : "", g->bias ? " bias" : "",
                g->epilogue ? " epilogue" : "", g->gather_a ? " gather-a" : "", g->gather_b ? " gather-b" : "",
                g->low ? " low" : "", g->packed ? " packed" : "", what);
}

/** Compares one element with its true value, within the error that rounding may cause. */
static bool element_right(const gemm_case *g, const matrix *a, const matrix *b, const float *bias, const target *t,
                          int64_t r, int64_t c)
{
    double sum = 0, size = 0;
    for (int64_t k = 0; k < g->k; k++) {
        double product = a->values[r * g->k + k] * b->values[k * g->n + c];
        sum += product;
        size += fabs(product);
    }
    double old = g->accumulate ? (double)mixt__load(t->before + GUARD, g->c, r * t->ld + c) : 0;
    double alpha = (double)g->alpha, shift = bias ? (double)bias[c] : 0, value = alpha * sum + old + shift;
    double slack = ((double)g->k + 4) * 0x1p-24 * (fabs(alpha) * size + fabs(old) + fabs(shift));
    if (g->epilogue) {
        value = 2 * value + 1;
        slack = 2 * slack + 0x1p-23 * (fabs(value) + 1);
    }
    slack += mixt__dtype_roundoff(g->c) * (fabs(value) + slack) + mixt__dtype_min_subnormal(g->c);
    double got = (double)mixt__load(t->bytes + GUARD, g->c, r * t->ld + c);
    bool right = g->integers && g->c == MIXT_DTYPE_FP32 ? got == value : fabs(got - value) <= slack;
    if (!right)
        print_error("C[%lld, %lld] = %.9g, expected %.9g within %.3g\n", (long long)r, (long long)c, got, value, slack);
    return right;
}

/** All elements, or those of nine rows where there are very many. */
static bool values_right(const gemm_case *g, const matrix *a, const matrix *b, const float *bias, const target *t)
{
    int64_t step = g->m * g->n * g->k > 3000000 ? g->m / 8 + 1 : 1;
    for (int64_t r = 0; r < g->m; r = r + step < g->m || r == g->m - 1 ? r + step : g->m - 1)
        for (int64_t c = 0; c < g->n; c++)
            if (!element_right(g, a, b, bias, t, r, c))
                return false;
    return true;
}

typedef struct trial {
    const gemm_case *g;
    matrix a, b;
    target t;
    epilogue_log log;
    float *bias;
    unsigned char *earlier; // bits of the run before
} trial;

/** One run on a poisoned workspace; NULL when all is well, else what is wrong. */
static const char *try_once(trial *x, const mixt__gemm_problem *p, bool first)
{
    const gemm_case *g = x->g;
    size_t bytes = mixt__gemm_workspace(p);
    unsigned char *workspace = mixt__alloc_uninit(bytes + GUARD);
    memset(workspace, POISON, bytes + GUARD);
    memcpy(x->t.bytes, x->t.before, (size_t)x->t.size);
    memset(x->log.seen, 0, (size_t)(g->m * g->n));
    mixt__gemm_run(p, workspace);
    bool whole = target_guards_whole(&x->t);
    for (size_t i = 0; i < GUARD; i++)
        whole = whole && workspace[bytes + i] == POISON;
    mixt__free(workspace);
    if (!whole)
        return "wrote outside C or the workspace";
    for (int64_t i = 0; g->epilogue && i < g->m * g->n; i++)
        if (x->log.seen[i] != 1)
            return "epilogue did not see each element once";
    if (first && !values_right(g, &x->a, &x->b, g->bias ? x->bias : NULL, &x->t))
        return "wrong value";
    if (!first && memcmp(x->earlier, x->t.bytes, (size_t)x->t.size) != 0)
        return "other bits than the run before";
    memcpy(x->earlier, x->t.bytes, (size_t)x->t.size);
    return NULL;
}

#if defined(__SANITIZE_ADDRESS__)
enum { EACH_TEAM = 2 }; // whose memory is what counts there: alone, several, more than there are panels
#else
enum { EACH_TEAM = 1 };
#endif

/** Runs a case on 1, 2, 5, 16 (more than there are panels) and again 16 threads: right, nothing else touched, the same
 * bits each time. */
static void check(const gemm_case *g, const mixt__gemm_kernel *kernel)
{
    static const int teams[] = {1, 2, 5, 16, 16};
    mixt__rng rng = mixt__rng_start(mixt__rng_key(seed, 1, 2));
    trial x = {.g = g};
    matrix_fill(&x.a, g->m, g->k, g->a, g->a_turned, g->gather_a, g->integers, &rng);
    matrix_fill(&x.b, g->k, g->n, g->b, g->b_turned, g->gather_b, g->integers, &rng);
    x.t = target_make(g, &rng);
    x.earlier = take(x.t.size);
    x.bias = take(4 * g->n);
    for (int64_t i = 0; i < g->n; i++)
        x.bias[i] = g->integers ? (float)(i % 7) : mixt__rng_uniform(&rng);
    x.log = (epilogue_log){take(g->m * g->n), g->n};
    mixt__gemm_problem p = {.m = g->m, .n = g->n, .k = g->k, .a = x.a.operand, .b = x.b.operand};
    p.c = x.t.bytes + GUARD;
    p.c_dtype = g->c;
    p.ldc = x.t.ld;
    p.alpha = g->alpha;
    p.accumulate = g->accumulate;
    p.bias = g->bias ? x.bias : NULL;
    p.epilogue = g->epilogue ? double_plus_one : NULL;
    p.epilogue_argument = &x.log;
    p.low = g->low;
    mixt__gemm_force(kernel);
    void *packed = g->packed ? mixt__alloc_uninit(mixt__gemm_packed_bytes(&p)) : NULL;
    if (packed) {
        mixt__gemm_pack_whole_b(&p, packed);
        p.b_packed = packed;
        p.b.data = NULL;
    }
    for (size_t i = 0; i < sizeof teams / sizeof *teams; i += EACH_TEAM) {
        mixt__threads_set(teams[i]);
        const char *wrong = try_once(&x, &p, i == 0);
        if (wrong) {
            describe(g, mixt__gemm_path(&p), teams[i], wrong);
            fail();
        }
    }
    mixt__gemm_force(NULL);
    mixt__free(packed);
    matrix_free(&x.a);
    matrix_free(&x.b);
    free(x.t.bytes);
    free(x.t.before);
    free(x.earlier);
    free(x.bias);
    free(x.log.seen);
}

static const mixt__gemm_kernel *kernels[8];
static int kernel_count;

static void find_kernels(void)
{
    const mixt__gemm_kernel *all[] = {&mixt__gemm_kernel_scalar, &mixt__gemm_kernel_avx2, &mixt__gemm_kernel_avx512,
                                      &mixt__gemm_kernel_avx512bf16, &mixt__gemm_kernel_amx};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (mixt__isa_level() >= all[i]->isa)
            kernels[kernel_count++] = all[i];
        else
            print_message("not on this CPU: %s\n", all[i]->name);
    if (mixt__isa_level() >= MIXT_ISA_AVX512)
        kernels[kernel_count++] = &emulated_amx;
    else
        print_message("AMX emulation needs AVX-512: skipped\n");
}

/** A plain case for a kernel: pairs need BF16 operands. */
static gemm_case base_case(const mixt__gemm_kernel *kernel, int64_t m, int64_t n, int64_t k)
{
    mixt_dtype in = kernel->pairs ? MIXT_DTYPE_BF16 : MIXT_DTYPE_FP32;
    gemm_case g = {.m = m, .n = n, .k = k, .a = in, .b = in, .c = MIXT_DTYPE_FP32, .alpha = 1, .low = kernel->pairs};
    return g;
}

static void edges_of_tiles_are_exact(void **state)
{
    (void)state;
    for (int i = 0; i < kernel_count; i++) {
        int64_t mr = kernels[i]->mr, nr = kernels[i]->nr, ks[] = {1, 2, 3, 31, 33};
        int64_t ms[] = {1, 2, mr - 1, mr, mr + 1, 2 * mr + 3};
        int64_t ns[] = {1, nr / 2, nr / 2 + 1, nr - 1, nr, nr + 1, 3 * nr + 2};
        for (int64_t x = 0; x < 6 * 7 * 5; x++) {
            gemm_case g = base_case(kernels[i], ms[x % 6], ns[x / 6 % 7], ks[x / 42]);
            g.integers = true;
            g.a_turned = x % 2;
            g.b_turned = x % 3 % 2;
            g.accumulate = x % 5 % 2;
            check(&g, kernels[i]);
        }
    }
}

/** Large teams read rows of A as they are where each thread has one panel of columns. */
static void rows_in_place_are_exact(void **state)
{
    static const int64_t ks[] = {32, 33, 64, 100, 784}, ms[] = {272, 480};
    (void)state;
    for (int i = 0; i < kernel_count; i++)
        for (int x = 0; x < 10; x += CASE_STRIDE) {
            gemm_case g = base_case(kernels[i], ms[x % 2], 12 * kernels[i]->nr + 5, ks[x / 2]);
            g.integers = true;
            g.b_turned = x % 3 % 2;
            g.bias = g.epilogue = x % 4 == 1;
            g.c = x % 3 ? MIXT_DTYPE_FP32 : MIXT_DTYPE_BF16;
            check(&g, kernels[i]);
        }
}

static void every_count_of_rows_is_exact(void **state)
{
    (void)state;
    for (int i = 0; i < kernel_count; i++)
        for (int64_t m = 1; m <= kernels[i]->mr; m++)
            for (int64_t n = kernels[i]->nr / 2; n <= kernels[i]->nr; n += kernels[i]->nr / 2) {
                gemm_case g = base_case(kernels[i], m, n, 37);
                g.integers = true;
                check(&g, kernels[i]);
            }
}

static void empty_sides_are_legal(void **state)
{
    (void)state;
    for (int i = 0; i < kernel_count; i++)
        for (int zero = 0; zero < 3; zero++)
            for (int c = 0; c < 2; c++) {
                gemm_case g = base_case(kernels[i], zero == 0 ? 0 : 17, zero == 1 ? 0 : 35, zero == 2 ? 0 : 9);
                g.c = c ? MIXT_DTYPE_BF16 : MIXT_DTYPE_FP32;
                g.accumulate = g.bias = g.epilogue = true;
                check(&g, kernels[i]);
            }
}

static mixt_dtype any_format(mixt__rng *rng)
{
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    return formats[mixt__rng_below(rng, 3)];
}

static gemm_case random_case(const mixt__gemm_kernel *kernel, mixt__rng *rng)
{
    static const int64_t sides[] = {1, 2, 5, 13, 14, 16, 29, 32, 47, 64, 97, 130};
    static const int64_t depths[] = {1, 7, 16, 50, 64, 255, 257, 385, 513, 1025, 1100};
    gemm_case g = base_case(kernel, sides[mixt__rng_below(rng, 12)], sides[mixt__rng_below(rng, 12)],
                            depths[mixt__rng_below(rng, 11)]);
    uint32_t bits = mixt__rng_u32(rng);
    if (!g.low) {
        g.a = any_format(rng);
        g.b = any_format(rng);
    }
    g.c = any_format(rng);
    g.a_turned = bits & 1;
    g.b_turned = bits & 2;
    g.accumulate = bits & 4;
    g.bias = bits & 8;
    g.epilogue = bits & 16;
    g.gather_a = (bits & 0x60) == 0x60;
    g.gather_b = (bits & 0x180) == 0x180;
    g.packed = !g.gather_b && (bits & 0x600) == 0x600;
    g.alpha = bits & 0x800 ? 1.0f : 0.375f;
    return g;
}

static void random_cases_are_within_bounds(void **state)
{
    (void)state;
    mixt__rng rng = mixt__rng_start(mixt__rng_key(seed, 3, 0));
    for (int i = 0; i < kernel_count; i++)
        for (int round = 0; round < 120; round++) {
            gemm_case g = random_case(kernels[i], &rng);
            check(&g, kernels[i]);
        }
}

static void many_steps_are_within_bounds(void **state)
{
    (void)state;
    for (int i = 0; i < kernel_count; i++) {
        if (kernels[i] == &emulated_amx)
            continue; // the emulation is slow, and steps are not the kernel's affair
        gemm_case wide = base_case(kernels[i], 30, 4500, 1030), tall = base_case(kernels[i], 2100, 520, 1030);
        wide.a_turned = wide.accumulate = true;
        if (CASE_STRIDE == 1 || i % 2)
            check(&wide, kernels[i]);
        tall.c = MIXT_DTYPE_BF16;
        tall.b_turned = tall.bias = tall.epilogue = true;
        if (kernels[i]->isa != MIXT_ISA_SCALAR && (CASE_STRIDE == 1 || i % 2 == 0))
            check(&tall, kernels[i]);
    }
}

static void low_needs_both_operands_in_bf16(void **state)
{
    (void)state;
    gemm_case g = {.m = 20, .n = 40, .k = 50, .a = MIXT_DTYPE_BF16, .b = MIXT_DTYPE_FP32, .c = MIXT_DTYPE_FP32};
    g.alpha = 1;
    g.low = true;
    check(&g, NULL);
    g.b = MIXT_DTYPE_BF16;
    check(&g, NULL);
}

static void batches_equal_their_items(void **state)
{
    (void)state;
    enum { COUNT = 7, M = 37, N = 45, K = 24 };
    static float a[COUNT * M * K], b[COUNT * N * K], c[COUNT][M * N], single[M * N];
    mixt__rng rng = mixt__rng_start(mixt__rng_key(seed, 5, 0));
    for (int i = 0; i < COUNT * M * K; i++)
        a[i] = mixt__rng_normal(&rng);
    for (int i = 0; i < COUNT * N * K; i++)
        b[i] = mixt__rng_normal(&rng);
    mixt__gemm_problem p = {.m = M, .n = N, .k = K, .c = c, .c_dtype = MIXT_DTYPE_FP32, .ldc = N, .alpha = 0.5f};
    p.a = (mixt__gemm_operand){.data = a, .dtype = MIXT_DTYPE_FP32, .row_stride = K, .col_stride = 1};
    p.b = (mixt__gemm_operand){.data = b, .dtype = MIXT_DTYPE_FP32, .row_stride = 1, .col_stride = K};
    for (int threads = 1; threads <= 9; threads += 4)
        for (int64_t count = 0; count <= COUNT; count += COUNT) {
            mixt__threads_set(threads);
            memset(c, POISON, sizeof c);
            void *workspace = mixt__alloc_uninit(mixt__gemm_workspace(&p) * (size_t)threads);
            mixt__gemm_run_batched(&p, count, M * K * 4, N * K * 4, sizeof c[0], workspace);
            for (int64_t i = 0; i < count; i++) {
                mixt__gemm_problem one = p;
                one.a.data = a + i * M * K;
                one.b.data = b + i * N * K;
                one.c = single;
                mixt__gemm_run(&one, workspace);
                assert_memory_equal(single, c[i], sizeof single);
            }
            for (size_t x = (size_t)count * sizeof c[0]; x < sizeof c; x++)
                assert_int_equal(((unsigned char *)c)[x], POISON);
            mixt__free(workspace);
        }
}

enum { SIDE = 96, CALLERS = 3 };

/** The same product for several callers, each with a result and a workspace of its own. */
typedef struct callers {
    mixt__gemm_problem problem;
    char *workspace;
    size_t slice; // bytes of each caller's workspace
    float c[CALLERS][SIDE * SIDE];
    struct caller {
        struct callers *all;
        int number;
    } caller[CALLERS];
} callers;

static void run_one(callers *all, int number)
{
    mixt__gemm_problem one = all->problem;
    one.c = all->c[number];
    mixt__gemm_run(&one, all->workspace + (size_t)number * all->slice);
}

static void run_in_team(void *argument, int first, int end, int threads)
{
    (void)threads;
    for (int part = first; part < end; part++)
        run_one(argument, part);
}

static void *run_in_thread(void *argument)
{
    struct caller *caller = argument;
    run_one(caller->all, caller->number);
    return NULL;
}

/** Runs the product by `run_all`, and expects the bits that a single caller gets. */
static void expect_same_bits(void (*run_all)(callers *))
{
    static float a[SIDE * SIDE], expected[SIDE * SIDE];
    static callers all;
    for (int i = 0; i < SIDE * SIDE; i++)
        a[i] = (float)(i % 11) - 5;
    mixt__threads_set(CALLERS);
    mixt__gemm_operand x = {.data = a, .dtype = MIXT_DTYPE_FP32, .row_stride = SIDE, .col_stride = 1};
    all.problem = (mixt__gemm_problem){
        .m = SIDE, .n = SIDE, .k = SIDE, .a = x, .b = x, .c_dtype = MIXT_DTYPE_FP32, .ldc = SIDE, .alpha = 1};
    all.slice = (mixt__gemm_workspace(&all.problem) + 63) / 64 * 64;
    all.workspace = mixt__alloc_uninit(CALLERS * all.slice);
    memset(all.c, POISON, sizeof all.c);
    run_all(&all);
    mixt__gemm_problem one = all.problem;
    one.c = expected;
    mixt__gemm_run(&one, all.workspace);
    for (int i = 0; i < CALLERS; i++)
        assert_memory_equal(all.c[i], expected, sizeof expected);
    mixt__free(all.workspace);
}

static void run_all_in_team(callers *all)
{
    assert_true(mixt__team_run(CALLERS, run_in_team, all));
}

static void run_all_in_threads(callers *all)
{
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        all->caller[i] = (struct caller){all, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_in_thread, &all->caller[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
}

/** Whether one thread ran all parts; where it did not, the others kept it waiting. */
static void keep_waiting(void *argument, int first, int end, int threads)
{
    bool *alone = argument;
    if (first == 0)
        *alone = end == threads;
    else
        usleep(10000);
}

static void one_thread_runs_all_parts_with_the_same_bits(void **state)
{
    enum { M = 150, N = 170, K = 600, THREADS = 4 };
    static float a[M * K], b[K * N], c[2][M * N];
    bool alone = false;
    (void)state;
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 23) / 7 - 1;
    for (int i = 0; i < K * N; i++)
        b[i] = (float)(i % 19) / 5 - 2;
    mixt__team *team = mixt__team_open(THREADS);
    mixt__team_hold before = mixt__team_use(team);
    mixt__gemm_problem p = {.m = M, .n = N, .k = K, .c_dtype = MIXT_DTYPE_FP32, .ldc = N, .alpha = 1};
    p.a = (mixt__gemm_operand){.data = a, .dtype = MIXT_DTYPE_FP32, .row_stride = K, .col_stride = 1};
    p.b = (mixt__gemm_operand){.data = b, .dtype = MIXT_DTYPE_FP32, .row_stride = N, .col_stride = 1};
    void *workspace = mixt__alloc_uninit(mixt__gemm_workspace(&p));
    p.c = c[0];
    mixt__gemm_run(&p, workspace);
    for (int i = 0; i < 100 && !alone; i++) // until the team rests: for 160 ms
        mixt__team_run(THREADS, keep_waiting, &alone);
    assert_true(alone);
    p.c = c[1];
    mixt__gemm_run(&p, workspace);
    assert_memory_equal(c[0], c[1], sizeof c[0]);
    mixt__free(workspace);
    mixt__team_use_again(before);
    mixt__team_close(team);
}

static void inside_a_parallel_region_it_runs_inline(void **state)
{
    (void)state;
    expect_same_bits(run_all_in_team);
}

static void threads_of_the_user_may_call_it_at_once(void **state)
{
    (void)state;
    expect_same_bits(run_all_in_threads);
}

int main(void)
{
    find_kernels();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_of_tiles_are_exact),
        cmocka_unit_test(rows_in_place_are_exact),
        cmocka_unit_test(every_count_of_rows_is_exact),
        cmocka_unit_test(empty_sides_are_legal),
        cmocka_unit_test(random_cases_are_within_bounds),
        cmocka_unit_test(many_steps_are_within_bounds),
        cmocka_unit_test(low_needs_both_operands_in_bf16),
        cmocka_unit_test(batches_equal_their_items),
        cmocka_unit_test(one_thread_runs_all_parts_with_the_same_bits),
        cmocka_unit_test(inside_a_parallel_region_it_runs_inline),
        cmocka_unit_test(threads_of_the_user_may_call_it_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
