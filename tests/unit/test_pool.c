/* Pooling: every candidate against plain maths: padding, overlapping windows, ties, NaN, several thread counts. */
#include "kernel_call.h"

typedef struct problem {
    int64_t n, h, w, c, size, stride, pad;
} problem;

static const problem problems[] = {
    {1, 1, 1, 1, 1, 1, 0},   {2, 7, 5, 3, 2, 2, 0},  {3, 8, 8, 16, 3, 2, 1},
    {1, 6, 9, 70, 3, 1, 1},  {2, 7, 7, 33, 7, 7, 0}, {0, 4, 4, 4, 2, 2, 0},
    {2, 5, 5, 130, 2, 3, 1}, {5, 4, 4, 1, 3, 1, 2},  {2, 6, 6, 0, 2, 2, 0},
};

static int64_t place(const mixt__tensor *t, int64_t n, int64_t y, int64_t x, int64_t c)
{
    const int64_t *d = t->shape.dims;
    return ((n * d[1] + y) * d[2] + x) * d[3] + c;
}

/** One output element and its gifts to grad_src, by the definition. */
static double expect_one(const problem *p, mixt__pool_kind kind, const mixt__tensor *src, const int64_t *o, double g,
                         double *grad_src)
{
    double sum = 0, best = 0;
    int64_t count = 0, first = -1;
    for (int64_t i = 0; i < p->size * p->size; i++) {
        int64_t y = o[1] * p->stride - p->pad + i / p->size, x = o[2] * p->stride - p->pad + i % p->size;
        if (y < 0 || x < 0 || y >= p->h || x >= p->w)
            continue;
        double v = tensor_at(src, place(src, o[0], y, x, o[3]));
        sum += v;
        count++;
        if (first < 0 || v > best || (isnan(v) && !isnan(best))) {
            best = v;
            first = place(src, o[0], y, x, o[3]);
        }
    }
    if (kind == MIXT_POOL_MAX) {
        grad_src[first] += g;
        return best;
    }
    for (int64_t i = 0; i < p->size * p->size; i++) {
        int64_t y = o[1] * p->stride - p->pad + i / p->size, x = o[2] * p->stride - p->pad + i % p->size;
        if (y >= 0 && x >= 0 && y < p->h && x < p->w)
            grad_src[place(src, o[0], y, x, o[3])] += g / (double)count;
    }
    return sum / (double)count;
}

static void compare(const mixt__tensor *t, const double *want, double allowed, const char *what, const char *kernel,
                    size_t problem)
{
    for (int64_t i = 0; i < mixt__shape_count(&t->shape); i++) {
        double got = tensor_at(t, i), bound = allowed * mixt__dtype_roundoff(t->dtype) * 4;
        if (!(fabs(got - want[i]) <= bound) && !(isnan(got) && isnan(want[i])))
            fail_msg("%s of %s %s, problem %zu, element %lld: %g, expected %g (seed 5)", what, kernel,
                     mixt_dtype_name(t->dtype), problem, (long long)i, got, want[i]);
    }
}

static void check(size_t index, mixt_dtype dtype, mixt__pool_kind kind)
{
    const problem *p = &problems[index];
    mixt__pool_attrs at = {.kind = kind, .h = {p->size, p->stride, 1, p->pad, p->pad}};
    at.w = at.h;
    int64_t oh = (p->h + 2 * p->pad - p->size) / p->stride + 1, ow = (p->w + 2 * p->pad - p->size) / p->stride + 1;
    uint32_t seed = 5;
    mixt__tensor src = TENSOR(dtype, p->n, p->h, p->w, p->c), dst = TENSOR(dtype, p->n, oh, ow, p->c);
    mixt__tensor grad_dst = TENSOR(dtype, p->n, oh, ow, p->c), grad_src = TENSOR(dtype, p->n, p->h, p->w, p->c);
    int64_t count = mixt__shape_count(&src.shape), outputs = mixt__shape_count(&dst.shape);
    for (int64_t i = 0; i < count; i++) // few distinct values: ties; now and then NaN
        mixt__store(src.data, dtype, i, i % 97 == 50 ? NAN : (float)(test_random(&seed) % 5) - 2);
    tensor_fill(&grad_dst, &seed, 1);
    double *want = calloc((size_t)outputs + 1, 8), *want_grad = calloc((size_t)count + 1, 8);
    for (int64_t i = 0; i < outputs; i++) {
        int64_t o[] = {i / p->c / ow / oh, i / p->c / ow % oh, i / p->c % ow, i % p->c};
        want[i] = expect_one(p, kind, &src, o, tensor_at(&grad_dst, i), want_grad);
    }
    for (int k = 0; mixt__cpu_pool_kernels[k]; k++)
        for (int threads = 1; threads <= 3; threads++) {
            mixt__tensor in[] = {src, dst, grad_dst};
            mixt__call call = {.attrs = &at, .layer = "p", .in_count = 1, .out_count = 1, .in = in, .out = &dst};
            mixt__call grad = {.attrs = &at, .layer = "p", .in_count = 3, .out_count = 1, .in = in, .out = &grad_src};
            mixt__threads_set(threads);
            if (!kernel_can_run(mixt__cpu_pool_kernels[k], &call))
                continue;
            kernel_run(mixt__cpu_pool_kernels[k], &call);
            kernel_run(mixt__cpu_pool_grad_kernels[k], &grad);
            compare(&dst, want, kind == MIXT_POOL_MAX ? 0 : 2, "dst", mixt__cpu_pool_kernels[k]->name, index);
            compare(&grad_src, want_grad, 2, "grad_src", mixt__cpu_pool_kernels[k]->name, index);
        }
    free(want);
    free(want_grad);
    tensor_free(&src);
    tensor_free(&dst);
    tensor_free(&grad_dst);
    tensor_free(&grad_src);
}

static void test_pool(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        for (int d = 0; d < 3; d++) {
            check(i, kernel_dtypes[d], MIXT_POOL_MAX);
            check(i, kernel_dtypes[d], MIXT_POOL_AVG);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pool)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
