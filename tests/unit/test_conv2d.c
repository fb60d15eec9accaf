/* Every candidate of convolution and its two gradients against sums in FP64, at several thread counts.
 *
 * Tolerances are computed: the roundoff of the result's format, plus that of FP32 sums times the sum of magnitudes,
 * growing with the square root of the count. Products of small integers must be exact.
 */
#include "../support/sanitized.h"

#include "backend/cpu/kernels.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 20240917, GUARD = 64 };

typedef struct problem {
    int64_t n, h, w, c, o, kernel_h, kernel_w, stride, pad;
    bool bias;
} problem;

static const problem problems[] = {
    {2, 9, 9, 1, 32, 3, 3, 1, 1, true},   {1, 17, 28, 1, 33, 3, 3, 1, 1, true},  {2, 13, 11, 3, 16, 7, 7, 2, 3, false},
    {3, 8, 8, 5, 7, 3, 3, 1, 1, true},    {1, 5, 7, 64, 64, 3, 3, 1, 1, true},   {1, 9, 11, 64, 40, 3, 3, 2, 1, true},
    {2, 6, 5, 64, 48, 1, 1, 1, 0, true},  {2, 9, 8, 64, 32, 1, 1, 2, 0, false},  {2, 5, 5, 3, 5, 5, 5, 1, 0, true},
    {1, 1, 1, 4, 3, 1, 1, 1, 0, true},    {1, 1, 1, 8, 8, 3, 3, 1, 1, false},    {2, 10, 17, 6, 65, 2, 3, 1, 0, true},
    {1, 12, 12, 8, 17, 3, 3, 3, 2, true}, {1, 11, 11, 2, 9, 2, 2, 5, 0, true},   {1, 6, 6, 16, 16, 1, 1, 1, 1, true},
    {1, 5, 6, 4, 6, 2, 2, 1, 3, true},    {1, 17, 31, 16, 16, 4, 4, 4, 0, true}, {5, 3, 3, 32, 32, 3, 3, 1, 1, true},
    {0, 5, 5, 3, 4, 3, 3, 1, 1, true},    {1, 4, 4, 0, 3, 3, 3, 1, 1, true},     {2, 14, 60, 10, 12, 3, 3, 1, 1, true},
    {1, 6, 300, 48, 8, 3, 3, 1, 1, true}, {1, 5, 8, 512, 40, 1, 1, 2, 0, true},
};

enum { PROBLEMS = sizeof problems / sizeof problems[0], FORMATS = 3 };
static const mixt_dtype formats[FORMATS] = {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16, MIXT_DTYPE_FP16};

/** One op on one problem: its tensors, and what comes out in FP64. */
typedef struct trial {
    const problem *p;
    int64_t out_h, out_w;
    mixt__conv2d_attrs attrs;
    const mixt__op *op;
    mixt__tensor in[3], out;
    int in_count;
    double *wide[2];              // the first two inputs
    double *expected, *magnitude; // of the sum, and Σ |a·b|
    int64_t terms;                // most terms of a sum
    char *block;                  // out between its guards
} trial;

static int64_t count_of(const mixt__tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->shape.rank; i++)
        count *= t->shape.dims[i];
    return count;
}

static mixt__tensor shaped(mixt_dtype dtype, int rank, const int64_t *dims)
{
    mixt__tensor t = {.dtype = dtype, .shape = {.rank = rank}, .contiguous = true};
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        t.shape.dims[i] = dims[i];
        t.strides[i] = step;
        step *= dims[i];
    }
    return t;
}

/** Uniform in [-1, 1), or small integers, rounded to the format. */
static mixt__tensor filled(mixt_dtype dtype, int rank, const int64_t *dims, uint64_t stream, bool integers)
{
    mixt__tensor t = shaped(dtype, rank, dims);
    t.data = mixt__alloc((size_t)count_of(&t) * mixt_dtype_size(dtype));
    uint64_t state = SEED + stream * 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < count_of(&t); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int32_t draw = (int32_t)(state >> 40) - (1 << 23);
        mixt__store(t.data, dtype, i, integers ? (float)(draw % 3) : (float)draw / (float)(1 << 23));
    }
    return t;
}

static double get(const mixt__tensor *t, int64_t index)
{
    return (double)mixt__load(t->data, t->dtype, index);
}

/** Adds one product of the convolution to the sum it belongs to. */
static void add_product(trial *t, int64_t src, int64_t weight, int64_t dst)
{
    bool grad_src = t->op == &mixt__op_conv2d_grad_src, grad_weight = t->op == &mixt__op_conv2d_grad_weight;
    int64_t to = grad_src ? src : grad_weight ? weight : dst;
    double a = t->wide[0][grad_src ? dst : src], b = t->wide[1][grad_weight ? dst : weight];
    t->expected[to] += a * b;
    t->magnitude[to] += fabs(a * b);
}

static void expect(trial *t)
{
    const problem *p = t->p;
    for (int i = 0; i < 2; i++) {
        t->wide[i] = mixt__alloc((size_t)count_of(&t->in[i]) * sizeof(double));
        for (int64_t e = 0; e < count_of(&t->in[i]); e++)
            t->wide[i][e] = get(&t->in[i], e);
    }
    for (int64_t i = 0; t->in_count > 2 && i < count_of(&t->out); i++) {
        t->expected[i] = get(&t->in[2], i % p->o);
        t->magnitude[i] = fabs(t->expected[i]);
    }
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t y = 0; y < t->out_h; y++)
            for (int64_t x = 0; x < t->out_w; x++)
                for (int64_t i = 0; i < p->kernel_h; i++)
                    for (int64_t k = 0; k < p->kernel_w; k++) {
                        int64_t sy = y * p->stride + i - p->pad, sx = x * p->stride + k - p->pad;
                        if (sy < 0 || sx < 0 || sy >= p->h || sx >= p->w)
                            continue;
                        for (int64_t o = 0; o < p->o; o++)
                            for (int64_t c = 0; c < p->c; c++)
                                add_product(t, ((n * p->h + sy) * p->w + sx) * p->c + c,
                                            ((o * p->kernel_h + i) * p->kernel_w + k) * p->c + c,
                                            ((n * t->out_h + y) * t->out_w + x) * p->o + o);
                    }
}

static trial make_trial(const problem *p, const mixt__op *op, mixt_dtype dtype, mixt_dtype out_dtype, bool integers)
{
    trial t = {.p = p, .op = op};
    t.out_h = (p->h + 2 * p->pad - p->kernel_h) / p->stride + 1;
    t.out_w = (p->w + 2 * p->pad - p->kernel_w) / p->stride + 1;
    t.attrs = (mixt__conv2d_attrs){.h = {p->kernel_h, p->stride, 1, p->pad, p->pad, p->h},
                                   .w = {p->kernel_w, p->stride, 1, p->pad, p->pad, p->w},
                                   .bias = p->bias};
    int64_t src[] = {p->n, p->h, p->w, p->c}, weight[] = {p->o, p->kernel_h, p->kernel_w, p->c},
            dst[] = {p->n, t.out_h, t.out_w, p->o};
    bool grad_src = op == &mixt__op_conv2d_grad_src, grad_weight = op == &mixt__op_conv2d_grad_weight;
    t.in[0] = filled(dtype, 4, grad_src ? dst : src, 1, integers);
    t.in[1] = filled(dtype, 4, grad_weight ? dst : weight, 2, integers);
    t.in_count = 2;
    if (op == &mixt__op_conv2d && p->bias)
        t.in[t.in_count++] = filled(MIXT_DTYPE_FP32, 1, &p->o, 3, integers);
    t.out = shaped(out_dtype, 4, grad_src ? src : grad_weight ? weight : dst);
    t.terms = grad_weight ? p->n * t.out_h * t.out_w : p->kernel_h * p->kernel_w * (grad_src ? p->o : p->c) + 1;
    t.expected = mixt__alloc((size_t)count_of(&t.out) * sizeof(double));
    t.magnitude = mixt__alloc((size_t)count_of(&t.out) * sizeof(double));
    t.block = mixt__alloc((size_t)count_of(&t.out) * mixt_dtype_size(out_dtype) + 2 * GUARD);
    t.out.data = t.block + GUARD;
    expect(&t);
    return t;
}

static void free_trial(trial *t)
{
    for (int i = 0; i < t->in_count; i++)
        mixt__free(t->in[i].data);
    mixt__free(t->wide[0]);
    mixt__free(t->wide[1]);
    mixt__free(t->expected);
    mixt__free(t->magnitude);
    mixt__free(t->block);
}

static void describe(const trial *t, const mixt__kernel *kernel, char *text, size_t size)
{
    const problem *p = t->p;
    snprintf(
        text, size,
        "%s/%s seed %d: n %lld h %lld w %lld c %lld o %lld kernel %lldx%lld stride %lld pad %lld %s -> %s threads %d",
        t->op->name, kernel->name, SEED, (long long)p->n, (long long)p->h, (long long)p->w, (long long)p->c,
        (long long)p->o, (long long)p->kernel_h, (long long)p->kernel_w, (long long)p->stride, (long long)p->pad,
        mixt_dtype_name(t->in[0].dtype), mixt_dtype_name(t->out.dtype), mixt__threads_count());
}

/** Compares the result with what is expected; `before` is what each element held when it was added to. */
static void check(const trial *t, const mixt__kernel *kernel, double before, bool exact)
{
    char text[256];
    describe(t, kernel, text, sizeof text);
    size_t bytes = (size_t)count_of(&t->out) * mixt_dtype_size(t->out.dtype);
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)t->block[i] != 0xab || (unsigned char)t->block[GUARD + bytes + (size_t)i] != 0xab)
            fail_msg("%s: wrote outside its result", text);
    double sums = mixt__dtype_roundoff(MIXT_DTYPE_FP32) * (2.0 * sqrt((double)t->terms) + 8.0);
    double tiny =
        4.0 * (double)t->terms * mixt__dtype_min_subnormal(MIXT_DTYPE_FP32) + mixt__dtype_min_subnormal(t->out.dtype);
    for (int64_t i = 0; i < count_of(&t->out); i++) {
        double want = t->expected[i] + before, got = get(&t->out, i);
        double allowed =
            sums * (t->magnitude[i] + fabs(before)) + 1.01 * mixt__dtype_roundoff(t->out.dtype) * fabs(want) + tiny;
        if (exact)
            allowed = 0.0;
        if (!(fabs(got - want) <= allowed))
            fail_msg("%s: element %lld is %.9g, expected %.9g within %.3g", text, (long long)i, got, want, allowed);
    }
}

static void run_once(const trial *t, const mixt__kernel *kernel, mixt__call *call, uint32_t accumulate)
{
    char text[256];
    describe(t, kernel, text, sizeof text);
    call->accumulate = accumulate;
    memset(t->block, 0xab, (size_t)count_of(&t->out) * mixt_dtype_size(t->out.dtype) + 2 * GUARD);
    for (int64_t i = 0; accumulate && i < count_of(&t->out); i++)
        mixt__store(t->out.data, t->out.dtype, i, 1.0f);
    memset(call->workspace, 0xff, call->workspace_bytes); // NaN: nothing may be read before it is written
    if (kernel->run(call) != MIXT_OK)
        fail_msg("%s: %s", text, mixt_error_text());
}

/** Runs one candidate on one trial: overwriting, the same again, adding. */
static bool run_kernel(trial *t, const mixt__kernel *kernel, bool exact)
{
    mixt__call call = {.op = t->op,
                       .attrs = &t->attrs,
                       .layer = "test",
                       .arithmetic = t->in[0].dtype,
                       .in_count = t->in_count,
                       .out_count = 1,
                       .in = t->in,
                       .out = &t->out};
    const char *reason = NULL;
    mixt__arena arena = {0};
    if (kernel->supports && !kernel->supports(&call, &reason)) {
        if (!reason)
            fail_msg("%s/%s refuses without a reason", t->op->name, kernel->name);
        return false;
    }
    if (kernel->prepare && kernel->prepare(&call, &arena) != MIXT_OK)
        fail_msg("%s/%s: prepare: %s", t->op->name, kernel->name, mixt_error_text());
    size_t bytes = (size_t)count_of(&t->out) * mixt_dtype_size(t->out.dtype);
    char *first = mixt__alloc(bytes);
    call.workspace = mixt__alloc(call.workspace_bytes);
    int64_t taken = mixt__alloc_count();
    run_once(t, kernel, &call, 0);
    check(t, kernel, 0.0, exact);
    memcpy(first, t->out.data, bytes);
    run_once(t, kernel, &call, 0);
    if (memcmp(first, t->out.data, bytes) != 0)
        fail_msg("%s/%s: two runs differ", t->op->name, kernel->name);
    if (t->op == &mixt__op_conv2d_grad_weight && t->out.dtype == MIXT_DTYPE_FP32) {
        run_once(t, kernel, &call, 1);
        check(t, kernel, 1.0, exact);
    }
    if (mixt__alloc_count() != taken)
        fail_msg("%s/%s allocates while it runs", t->op->name, kernel->name);
    if (kernel->release)
        kernel->release(&call);
    mixt__free(call.workspace);
    mixt__free(first);
    mixt__arena_free(&arena);
    return true;
}

static void run_op(const mixt__op *op, const mixt__kernel *const *kernels)
{
    for (int i = 0; i < PROBLEMS; i++)
        for (int f = i % CASE_STRIDE; f < 2 * FORMATS; f += CASE_STRIDE) {
            bool integers = f % 2, fp32_out = op == &mixt__op_conv2d_grad_weight && integers;
            mixt_dtype dtype = formats[f / 2], out = fp32_out ? MIXT_DTYPE_FP32 : dtype;
            trial t = make_trial(&problems[i], op, dtype, out, integers);
            // integers below 2^8 are exact in every format; sums may reach further only where the result is FP32
            bool exact = integers && (out == MIXT_DTYPE_FP32 || t.terms < 32);
            for (const mixt__kernel *const *k = kernels; *k; k++)
                for (int threads = 1; threads <= 3; threads++) {
                    if (!k[1] && threads != 1 + i % 3)
                        continue; // plain is slow, and the same loop whatever the count
                    mixt__threads_set(threads);
                    run_kernel(&t, *k, exact);
                }
            free_trial(&t);
        }
    mixt__threads_set(0);
}

static void forward_matches(void **state)
{
    (void)state;
    run_op(&mixt__op_conv2d, mixt__cpu_conv2d_kernels);
}

static void grad_src_matches(void **state)
{
    (void)state;
    run_op(&mixt__op_conv2d_grad_src, mixt__cpu_conv2d_grad_src_kernels);
}

static void grad_weight_matches(void **state)
{
    (void)state;
    run_op(&mixt__op_conv2d_grad_weight, mixt__cpu_conv2d_grad_weight_kernels);
}

/** Each list ends with plain, and plain takes everything. */
static void lists_end_with_plain(void **state)
{
    const mixt__kernel *const *lists[] = {mixt__cpu_conv2d_kernels, mixt__cpu_conv2d_grad_src_kernels,
                                          mixt__cpu_conv2d_grad_weight_kernels};
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const mixt__kernel *const *k = lists[i];
        while (k[1])
            k++;
        assert_string_equal((*k)->name, "plain");
        assert_null((*k)->supports);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_matches),
        cmocka_unit_test(grad_src_matches),
        cmocka_unit_test(grad_weight_matches),
        cmocka_unit_test(lists_end_with_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
