/* Attention: every candidate at every instruction set (AMX by emulation) against plain maths in double, over awkward
 * sizes, packed (strided) and separate operands, causal and full, several thread counts. */
#include "kernel_call.h"

extern const mixt__kernel emulated_attention, emulated_attention_grad;

typedef struct problem {
    int64_t batch, heads, queries, keys, dim;
    bool causal, packed; // packed: q, k, v and their gradients are slices of one (B, T, 3C) tensor
    int64_t window;
    double softcap;
} problem;

static const problem problems[] = {
    {1, 1, 1, 1, 1, false, false, 0, 0},       {2, 3, 5, 7, 3, false, false, 0, 0},
    {1, 2, 17, 17, 8, true, true, 0, 0},       {2, 2, 64, 64, 16, true, true, 0, 0},
    {1, 2, 65, 130, 64, false, false, 0, 0},   {1, 1, 200, 200, 24, true, true, 0, 0},
    {2, 1, 140, 140, 64, true, true, 0, 0},    {1, 1, 70, 257, 130, false, false, 0, 0},
    {1, 1, 3, 0, 4, false, false, 0, 0},       {0, 2, 4, 4, 4, true, false, 0, 0},
    {3, 2, 33, 33, 96, true, false, 0, 0},     {1, 1, 150, 150, 20, false, true, 0, 0},
    {1, 2, 65, 65, 20, true, true, 1, 0},      {2, 1, 300, 300, 24, true, true, 40, 0},
    {1, 1, 300, 300, 64, true, false, 129, 2}, {1, 2, 70, 257, 40, false, false, 0, 1.5},
};

enum { Q, K, V, DST, LSE, GRAD_DST, GRAD_Q, GRAD_K, GRAD_V, PACKED, GRAD_PACKED, COUNT };

/** q · k of one pair in double. */
static double pair(const mixt__tensor *x, const mixt__tensor *y, const problem *p, int64_t b, int64_t h, int64_t i,
                   int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < p->dim; d++)
        sum += tensor_at(x, b * x->strides[0] + i * x->strides[1] + h * p->dim + d) *
               tensor_at(y, b * y->strides[0] + j * y->strides[1] + h * p->dim + d);
    return sum;
}

/** dst += w · row of src, both double (rows of C). */
static void axpy(const problem *p, double *dst, double w, const mixt__tensor *src, int64_t b, int64_t h, int64_t t)
{
    for (int64_t d = 0; d < p->dim; d++)
        dst[d] += w * tensor_at(src, b * src->strides[0] + t * src->strides[1] + h * p->dim + d);
}

typedef struct reference {
    double *dst, *lse, *grad_q, *grad_k, *grad_v;
} reference;

static void reference_row(const problem *p, const mixt__tensor *t, reference *r, int64_t b, int64_t h, int64_t i)
{
    double scale = 0.3, total = 0, product = 0, *w = calloc((size_t)p->keys + 1, sizeof *w);
    double *slope = calloc((size_t)p->keys + 1, sizeof *slope);
    int64_t first = p->window && i >= p->window ? i - p->window + 1 : 0;
    int64_t c = p->heads * p->dim, keys = p->causal ? i + 1 : p->keys, row = (b * p->queries + i) * c + h * p->dim;
    for (int64_t j = first; j < keys; j++) {
        double score = scale * pair(&t[Q], &t[K], p, b, h, i, j), part = tanh(score / p->softcap);
        slope[j] = p->softcap > 0 ? 1 - part * part : 1;
        total += w[j] = exp(p->softcap > 0 ? p->softcap * part : score);
    }
    for (int64_t j = first; j < keys; j++) {
        w[j] /= total;
        axpy(p, r->dst + row, w[j], &t[V], b, h, j);
        product += w[j] * pair(&t[GRAD_DST], &t[V], p, b, h, i, j);
    }
    r->lse[(b * p->heads + h) * p->queries + i] = log(total);
    for (int64_t j = first; j < keys; j++) {
        int64_t key = (b * p->keys + j) * c + h * p->dim;
        double g = w[j] * (pair(&t[GRAD_DST], &t[V], p, b, h, i, j) - product) * scale * slope[j];
        axpy(p, r->grad_v + key, w[j], &t[GRAD_DST], b, h, i);
        axpy(p, r->grad_k + key, g, &t[Q], b, h, i);
        axpy(p, r->grad_q + row, g, &t[K], b, h, j);
    }
    free(w);
    free(slope);
}

static reference reference_new(const problem *p, const mixt__tensor *t)
{
    size_t q = (size_t)(p->batch * p->queries * p->heads * p->dim) + 1,
           k = (size_t)(p->batch * p->keys * p->heads * p->dim) + 1;
    reference r = {calloc(q, 8), calloc((size_t)(p->batch * p->heads * p->queries) + 1, 8), calloc(q, 8), calloc(k, 8),
                   calloc(k, 8)};
    for (int64_t n = 0; n < p->batch * p->heads * p->queries; n++)
        reference_row(p, t, &r, n / p->queries / p->heads, n / p->queries % p->heads, n % p->queries);
    return r;
}

static mixt__tensor slice(const mixt__tensor *base, int64_t part, int64_t c)
{
    mixt__tensor t = *base;
    t.shape.dims[2] = c;
    t.contiguous = false;
    t.data = (char *)base->data + (size_t)(part * c) * mixt_dtype_size(base->dtype);
    return t;
}

static void tensors_new(const problem *p, mixt_dtype dtype, mixt__tensor *t, uint32_t seed)
{
    int64_t c = p->heads * p->dim;
    if (p->packed) {
        t[PACKED] = TENSOR(dtype, p->batch, p->queries, 3 * c);
        t[GRAD_PACKED] = TENSOR(dtype, p->batch, p->queries, 3 * c);
        tensor_fill(&t[PACKED], &seed, 1);
        for (int i = 0; i < 3; i++) {
            t[Q + i] = slice(&t[PACKED], i, c);
            t[GRAD_Q + i] = slice(&t[GRAD_PACKED], i, c);
        }
    } else {
        for (int i = 0; i < 3; i++) {
            t[Q + i] = TENSOR(dtype, p->batch, i ? p->keys : p->queries, c);
            t[GRAD_Q + i] = TENSOR(dtype, p->batch, i ? p->keys : p->queries, c);
            tensor_fill(&t[Q + i], &seed, 1);
        }
    }
    t[DST] = TENSOR(dtype, p->batch, p->queries, c);
    t[LSE] = TENSOR(MIXT_DTYPE_FP32, p->batch, p->heads, p->queries);
    t[GRAD_DST] = TENSOR(dtype, p->batch, p->queries, c);
    tensor_fill(&t[GRAD_DST], &seed, 1);
}

static void tensors_free(const problem *p, mixt__tensor *t)
{
    for (int i = 0; i < COUNT; i++) {
        bool of_packed = (i >= Q && i <= V) || (i >= GRAD_Q && i <= GRAD_V);
        if (p->packed ? !of_packed : i < PACKED)
            tensor_free(&t[i]);
    }
}

/** Largest error of a (B, T, C) view in units of its format's roundoff at magnitude `size`. */
static double view_error(const mixt__tensor *x, const double *want, double size)
{
    double worst = 0;
    int64_t rows = x->shape.dims[1], c = x->shape.dims[2];
    for (int64_t n = 0; n < x->shape.dims[0] * rows * c; n++) {
        double e = fabs(tensor_at(x, n / c / rows * x->strides[0] + n / c % rows * x->strides[1] + n % c) - want[n]);
        if (!(e <= worst))
            worst = e;
    }
    return worst / (size * mixt__dtype_roundoff(x->dtype));
}

static void check(const problem *p, mixt__tensor *t, const reference *r, const mixt__kernel *forward,
                  const mixt__kernel *backward)
{
    mixt_dtype dtype = t[Q].dtype;
    mixt__attention_attrs at = {.heads = p->heads, .causal = p->causal, .scale = 0.3f, .window = p->window};
    at.softcap = (float)p->softcap;
    mixt__tensor in[] = {t[Q], t[K], t[V], t[DST], t[LSE], t[GRAD_DST]}, out[] = {t[DST], t[LSE]};
    mixt__call call = {.op = &mixt__op_attention, .attrs = &at, .layer = "a", .in_count = 3, .out_count = 2, .in = in};
    call.out = out;
    mixt__call grad = {
        .op = &mixt__op_attention_grad, .attrs = &at, .layer = "a", .in_count = 6, .out_count = 3, .in = in};
    grad.out = &t[GRAD_Q];
    if (!kernel_can_run(forward, &call))
        return;
    kernel_run(forward, &call);
    kernel_run(backward, &grad);
    // FP32 rounds in sums of up to 300 terms of magnitude about 1; the others round once more, and dst enters the
    // gradient.
    double terms = dtype == MIXT_DTYPE_FP32 ? 4 * sqrt((double)(p->keys + p->dim + 16)) : 2, e[3];
    double forward_error = view_error(&t[DST], r->dst, 1), lse_error = p->keys ? tensor_error(&t[LSE], r->lse, 8) : 0;
    const double *want[] = {r->grad_q, r->grad_k, r->grad_v};
    for (int i = 0; i < 3; i++)
        e[i] =
            view_error(&t[GRAD_Q + i], want[i], 1 + sqrt((double)p->dim) / 4 + (i ? sqrt((double)p->queries) / 2 : 0));
    if (!(forward_error <= terms && lse_error <= 16 && e[0] <= terms && e[1] <= terms && e[2] <= terms))
        fail_msg("%s %s B%lld h%lld T%lld S%lld D%lld%s%s threads %d seed 7: dst %.2f lse %.2f grads %.2f %.2f %.2f "
                 "allowed %.2f",
                 forward->name, mixt_dtype_name(dtype), (long long)p->batch, (long long)p->heads, (long long)p->queries,
                 (long long)p->keys, (long long)p->dim, p->causal ? " causal" : "", p->packed ? " packed" : "",
                 mixt__threads_count(), forward_error, lse_error, e[0], e[1], e[2], terms);
}

static void test_candidates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++)
        for (int d = 0; d < 3; d++) {
            mixt__tensor t[COUNT];
            tensors_new(&problems[i], kernel_dtypes[d], t, 7);
            reference r = reference_new(&problems[i], t);
            for (int k = 0; mixt__cpu_attention_kernels[k]; k++)
                for (int threads = 1; threads <= (mixt__cpu_attention_kernels[k + 1] ? 3 : 1); threads++) {
                    mixt__threads_set(threads);
                    check(&problems[i], t, &r, mixt__cpu_attention_kernels[k], mixt__cpu_attention_grad_kernels[k]);
                }
            mixt__threads_set(2);
            check(&problems[i], t, &r, &emulated_attention, &emulated_attention_grad);
            double *all[] = {r.dst, r.lse, r.grad_q, r.grad_k, r.grad_v};
            for (int n = 0; n < 5; n++)
                free(all[n]);
            tensors_free(&problems[i], t);
        }
}

/** A NaN in one key reaches every query that sees it and no other. */
static void test_nan(void **state)
{
    (void)state;
    for (int k = 0; mixt__cpu_attention_kernels[k]; k++) {
        problem p = {1, 1, 40, 40, 8, true, false, 0, 0};
        mixt__tensor t[COUNT];
        mixt__attention_attrs at = {.heads = 1, .causal = true, .scale = 1};
        tensors_new(&p, MIXT_DTYPE_FP32, t, 3);
        ((float *)t[K].data)[20 * 8] = NAN;
        mixt__call call = {.attrs = &at, .layer = "a", .in_count = 3, .out_count = 2, .in = &t[Q], .out = &t[DST]};
        if (kernel_can_run(mixt__cpu_attention_kernels[k], &call)) {
            kernel_run(mixt__cpu_attention_kernels[k], &call);
            for (int64_t i = 0; i < 40 * 8; i++)
                assert_int_equal(isnan(tensor_at(&t[DST], i)) != 0, i / 8 >= 20);
        }
        tensors_free(&p, t);
    }
}

/** Runs both directions of a candidate; false where it cannot. @param lengths data NULL: all keys are there */
static bool run_both(mixt__tensor *t, const mixt__tensor *lengths, const mixt__kernel *forward,
                     const mixt__kernel *backward)
{
    mixt__attention_attrs at = {.heads = 2, .scale = 0.3f};
    mixt__tensor in[] = {t[Q], t[K], t[V], *lengths}, all[] = {t[Q], t[K], t[V], t[DST], t[LSE], t[GRAD_DST], *lengths};
    mixt__call call = {.op = &mixt__op_attention, .attrs = &at, .layer = "a", .out_count = 2, .in = in};
    mixt__call grad = {.op = &mixt__op_attention_grad, .attrs = &at, .layer = "a", .out_count = 3, .in = all};
    call.in_count = lengths->data ? 4 : 3;
    call.out = &t[DST];
    grad.in_count = lengths->data ? 7 : 6;
    grad.out = &t[GRAD_Q];
    if (!kernel_can_run(forward, &call))
        return false;
    kernel_run(forward, &call);
    kernel_run(backward, &grad);
    return true;
}

static bool same_bits(const mixt__tensor *x, const mixt__tensor *y)
{
    return !memcmp(x->data, y->data, (size_t)mixt__shape_count(&y->shape) * mixt_dtype_size(y->dtype));
}

/** NaN stands where keys are not there: no bit is another, and gradients of those keys are 0. */
static void check_padding(mixt_dtype dtype, const mixt__kernel *forward, const mixt__kernel *backward)
{
    problem whole = {1, 2, 70, 150, 24, false, false, 0, 0}, rest = {1, 2, 70, 90, 24, false, false, 0, 0};
    mixt__tensor a[COUNT], b[COUNT], none = {0}, lengths = TENSOR(MIXT_DTYPE_INT32, 1);
    int64_t there = rest.keys * 48, all = whole.keys * 48;
    *(int32_t *)lengths.data = (int32_t)rest.keys;
    tensors_new(&rest, dtype, b, 5);
    tensors_new(&whole, dtype, a, 6);
    const int same[] = {Q, K, V, GRAD_DST};
    for (int i = 0; i < 4; i++)
        memcpy(a[same[i]].data, b[same[i]].data, (size_t)mixt__shape_count(&b[same[i]].shape) * mixt_dtype_size(dtype));
    for (int64_t i = there; i < all; i++) {
        mixt__store(a[K].data, dtype, i, NAN);
        mixt__store(a[V].data, dtype, i, NAN);
    }
    if (run_both(a, &lengths, forward, backward) && run_both(b, &none, forward, backward)) {
        const int made[] = {DST, LSE, GRAD_Q, GRAD_K, GRAD_V};
        for (int i = 0; i < 5; i++)
            if (!same_bits(&a[made[i]], &b[made[i]]))
                fail_msg("%s %s: padding changes tensor %d", forward->name, mixt_dtype_name(dtype), made[i]);
        for (int64_t i = there; i < all; i++)
            assert_true(tensor_at(&a[GRAD_K], i) == 0 && tensor_at(&a[GRAD_V], i) == 0);
    }
    tensors_free(&whole, a);
    tensors_free(&rest, b);
    tensor_free(&lengths);
}

static void test_padding_changes_no_bit(void **state)
{
    (void)state;
    mixt__threads_set(2);
    for (int d = 0; d < 3; d++) {
        for (int k = 0; mixt__cpu_attention_kernels[k]; k++)
            check_padding(kernel_dtypes[d], mixt__cpu_attention_kernels[k], mixt__cpu_attention_grad_kernels[k]);
        check_padding(kernel_dtypes[d], &emulated_attention, &emulated_attention_grad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_candidates), cmocka_unit_test(test_nan),
                                       cmocka_unit_test(test_padding_changes_no_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
