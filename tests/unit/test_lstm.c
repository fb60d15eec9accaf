/* LSTM: every candidate against the definition in double, forward and through time, over awkward sizes and thread
 * counts. */
#include "kernel_call.h"

enum { GATES_X, WEIGHT, DST, GATES, CELL, GRAD_DST, GRAD_GATES, GRAD_WEIGHT, COUNT };

static const int64_t sizes[][3] = {{1, 1, 1}, {2, 3, 5}, {3, 4, 16}, {5, 7, 33},
                                   {2, 1, 8}, {0, 3, 4}, {4, 0, 4},  {17, 12, 40}};

typedef struct expected {
    double *h, *c, *gates, *grad_gates, *grad_weight;
} expected;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void expect_sequence(const mixt__tensor *t, const expected *e, int64_t b, int64_t steps, int64_t n)
{
    double *grad_h = calloc((size_t)n, 8), *grad_c = calloc((size_t)n, 8);
    for (int64_t s = b * steps; s < (b + 1) * steps; s++)
        for (int64_t j = 0; j < n; j++) {
            double *gate = e->gates + s * 4 * n;
            for (int64_t g = 0; g < 4; g++) {
                double x = tensor_at(&t[GATES_X], s * 4 * n + g * n + j);
                for (int64_t i = 0; s > b * steps && i < n; i++)
                    x += tensor_at(&t[WEIGHT], (g * n + j) * n + i) * e->h[(s - 1) * n + i];
                gate[g * n + j] = g == 2 ? tanh(x) : sigmoid(x);
            }
            double before = s > b * steps ? e->c[(s - 1) * n + j] : 0;
            e->c[s * n + j] = gate[n + j] * before + gate[j] * gate[2 * n + j];
            e->h[s * n + j] = gate[3 * n + j] * tanh(e->c[s * n + j]);
        }
    for (int64_t s = (b + 1) * steps - 1; s >= b * steps; s--) {
        double *gate = e->gates + s * 4 * n, *grad = e->grad_gates + s * 4 * n;
        for (int64_t j = 0; j < n; j++) {
            double in = gate[j], forget = gate[n + j], new = gate[2 * n + j], out = gate[3 * n + j],
                   th = tanh(e->c[s * n + j]);
            double dh = grad_h[j] + tensor_at(&t[GRAD_DST], s * n + j), dc = grad_c[j] + dh * out * (1 - th * th);
            double before = s > b * steps ? e->c[(s - 1) * n + j] : 0;
            grad[j] = dc * new *in *(1 - in);
            grad[n + j] = dc * before * forget * (1 - forget);
            grad[2 * n + j] = dc * in * (1 - new *new);
            grad[3 * n + j] = dh * th * out * (1 - out);
            grad_c[j] = dc * forget;
        }
        memset(grad_h, 0, (size_t)n * 8);
        for (int64_t r = 0; r < 4 * n; r++)
            for (int64_t i = 0; i < n; i++) {
                grad_h[i] += tensor_at(&t[WEIGHT], r * n + i) * grad[r];
                if (s > b * steps)
                    e->grad_weight[r * n + i] += grad[r] * e->h[(s - 1) * n + i];
            }
    }
    free(grad_h);
    free(grad_c);
}

static void check(mixt__tensor *t, const expected *e, int k, bool add)
{
    int64_t weights = mixt__shape_count(&t[WEIGHT].shape);
    mixt__call call = {.layer = "l", .in_count = 2, .out_count = 3, .in = &t[GATES_X], .out = &t[DST]};
    mixt__tensor in[] = {t[WEIGHT], t[DST], t[GATES], t[CELL], t[GRAD_DST]};
    mixt__call grad = {
        .layer = "l", .in_count = 5, .out_count = 2, .in = in, .out = &t[GRAD_GATES], .accumulate = add ? 2 : 0};
    if (!kernel_can_run(mixt__cpu_lstm_kernels[k], &call))
        return;
    double *want = calloc((size_t)weights + 1, 8);
    for (int64_t i = 0; i < weights; i++)
        want[i] = e->grad_weight[i] + (add ? tensor_at(&t[GRAD_WEIGHT], i) : 0);
    kernel_run(mixt__cpu_lstm_kernels[k], &call);
    kernel_run(mixt__cpu_lstm_grad_kernels[k], &grad);
    // Narrow states are rounded and fed back at every step: each step adds about one roundoff; so do its stored gates.
    double unit = mixt__dtype_roundoff(t[DST].dtype), steps = 4 + (double)t[DST].shape.dims[1];
    double h = tensor_error(&t[DST], e->h, 1), gates = tensor_error(&t[GATES], e->gates, 1),
           x = tensor_error(&t[GRAD_GATES], e->grad_gates, 1);
    double c = tensor_error(&t[CELL], e->c, unit / 0x1p-24),
           w = tensor_error(&t[GRAD_WEIGHT], want, unit / 0x1p-24 * (double)(t[DST].shape.dims[0] + 1));
    free(want);
    if (!(h <= 2 * steps && gates <= 2 * steps && c <= 4 * steps && x <= 2 * steps && w <= 2 * steps))
        fail_msg("%s %s (%lld, %lld, %lld) threads %d seed 9: dst %.2f gates %.2f cell %.2f grad_gates %.2f "
                 "grad_weight %.2f, steps %.0f",
                 mixt__cpu_lstm_kernels[k]->name, mixt_dtype_name(t[DST].dtype), (long long)t[DST].shape.dims[0],
                 (long long)t[DST].shape.dims[1], (long long)t[DST].shape.dims[2], mixt__threads_count(), h, gates, c,
                 x, w, steps);
}

static void test_lstm(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int d = 0; d < 3; d++) {
            mixt__tensor t[COUNT];
            uint32_t seed = 9;
            int64_t b = sizes[i][0], s = sizes[i][1], n = sizes[i][2];
            mixt_dtype dtype = kernel_dtypes[d];
            t[GATES_X] = TENSOR(dtype, b, s, 4 * n);
            t[WEIGHT] = TENSOR(dtype, 4 * n, n);
            t[DST] = TENSOR(dtype, b, s, n);
            t[GATES] = TENSOR(dtype, b, s, 4 * n);
            t[CELL] = TENSOR(MIXT_DTYPE_FP32, b, s, n);
            t[GRAD_DST] = TENSOR(dtype, b, s, n);
            t[GRAD_GATES] = TENSOR(dtype, b, s, 4 * n);
            t[GRAD_WEIGHT] = TENSOR(MIXT_DTYPE_FP32, 4 * n, n);
            tensor_fill(&t[GATES_X], &seed, 2);
            tensor_fill(&t[WEIGHT], &seed, 1 / sqrtf((float)n));
            tensor_fill(&t[GRAD_DST], &seed, 1);
            size_t steps = (size_t)(b * s * n) + 1;
            expected e = {calloc(steps, 8), calloc(steps, 8), calloc(4 * steps, 8), calloc(4 * steps, 8),
                          calloc((size_t)(4 * n * n), 8)};
            for (int64_t j = 0; j < b; j++)
                expect_sequence(t, &e, j, s, n);
            for (int k = 0; mixt__cpu_lstm_kernels[k]; k++)
                for (int threads = 1; threads <= 3; threads++) {
                    mixt__threads_set(threads);
                    check(t, &e, k, threads == 2);
                }
            double *all[] = {e.h, e.c, e.gates, e.grad_gates, e.grad_weight};
            for (int j = 0; j < 5; j++)
                free(all[j]);
            for (int j = 0; j < COUNT; j++)
                tensor_free(&t[j]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lstm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
