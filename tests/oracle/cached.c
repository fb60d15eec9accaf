/* Attention and the LSTM that go on from caches: one token at a time in FP64.
 *
 * `at` is the place of the first new token. What a cache holds from there on is NaN before the run: a kernel that reads
 * past the newest token shows. Bounds as in attention.c and lstm.c. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

/* ---- attention ---- */

static void make_attention(test_case *c)
{
    mixt__attention_attrs *at = &c->attrs.attention;
    mixt__shape q = problem_shape(c, "q"), k = q;
    int64_t first = problem_int(c, "at", 0);
    at->heads = problem_int(c, "heads", 1);
    at->causal = true;
    at->scale = (float)problem_real(c, "scale", 1 / sqrt((double)q.dims[2] / (double)at->heads));
    at->window = problem_int(c, "window", 0);
    at->softcap = (float)problem_real(c, "cap", 0);
    k.dims[2] = q.dims[2] / at->heads * problem_int(c, "shared", at->heads);
    for (int i = 0; i < 3; i++)
        case_input_between(c, c->dtype, i ? k : q, -2, 2);
    mixt__shape cache = k;
    cache.dims[1] = problem_int(c, "rows", first + q.dims[1]);
    test_tensor *positions = case_indices(c, (mixt__shape){1, {q.dims[1]}}, 0, 1);
    for (int64_t t = 0; t < q.dims[1]; t++)
        positions->value[t] = (double)(first + t);
    for (int i = 0; i < 2; i++) {
        test_tensor *x = case_input_between(c, c->dtype, cache, -2, 2);
        for (int64_t k = 0; k < x->count; k++)
            if (k / cache.dims[2] % cache.dims[1] >= first)
                x->value[k] = NAN;
    }
}

/** The new rows go to their places. */
static void fill(test_case *c, int from, int cache)
{
    int64_t tokens = c->in[0].shape.dims[1], width = c->in[from].shape.dims[2], rows = c->in[cache].shape.dims[1];
    test_tensor *full = case_after(c, cache);
    for (int64_t i = 0; i < c->in[from].count; i++) {
        int64_t b = i / width / tokens, place = (int64_t)c->in[3].value[i / width % tokens];
        full->value[(b * rows + place) * width + i % width] = c->in[from].value[i];
    }
}

static void attention_row(test_case *c, int64_t b, int64_t t, int64_t h, double *score)
{
    const mixt__attention_attrs *attrs = &c->attrs.attention;
    int64_t tokens = c->in[0].shape.dims[1], width = c->in[4].shape.dims[2];
    int64_t dim = c->in[0].shape.dims[2] / attrs->heads, group = width ? c->in[0].shape.dims[2] / width : 1;
    int64_t at = ((b * tokens + t) * attrs->heads + h) * dim,
            cache = b * c->in[4].shape.dims[1] * width + h / group * dim;
    int64_t seen = (int64_t)c->in[3].value[t] + 1;
    int64_t first = attrs->window && seen > attrs->window ? seen - attrs->window : 0;
    double cap = (double)attrs->softcap;
    double most = -INFINITY, least = INFINITY, total = 0, error = 0;
    for (int64_t j = first; j < seen; j++) {
        double sum = 0, size = 0;
        for (int64_t d = 0; d < dim; d++) {
            double product = attrs->scale * c->in[0].value[at + d] * c->after[4].value[cache + j * width + d];
            sum += product;
            size += fabs(product);
        }
        if (cap > 0)
            sum = cap * tanh(sum / cap);
        score[j] = sum;
        error = fmax(error, ((double)dim + 2) * U32 * size + (cap > 0 ? fabs(sum) * (U_MATHS + 6) * U32 : 0));
        most = fmax(most, sum);
        least = fmin(least, sum);
    }
    for (int64_t j = first; j < seen; j++)
        total += exp(score[j] - most);
    double low = c->dtype == MIXT_DTYPE_FP16 || c->dtype == MIXT_DTYPE_BF16 ? number_roundoff(c->dtype) : 0;
    double relative = 2 * error + U32 * (2 * (most - least) + 2 * U_MATHS + 3 * (double)seen + 8) + low;
    for (int64_t i = first * dim; i < seen * dim; i++) {
        double product = exp(score[i / dim] - most) / total * c->after[5].value[cache + i / dim * width + i % dim];
        c->out[0].value[at + i % dim] += product;
        c->out[0].slack[at + i % dim] += fabs(product) * relative;
    }
}

static void expect_attention(test_case *c)
{
    int64_t heads = c->attrs.attention.heads, tokens = c->in[0].shape.dims[1];
    double *score = case_alloc(c, (size_t)c->in[4].shape.dims[1] * sizeof(double));
    fill(c, 1, 4);
    fill(c, 2, 5);
    for (int64_t i = 0; i < c->in[0].shape.dims[0] * tokens * heads; i++)
        attention_row(c, i / heads / tokens, i / heads % tokens, i % heads, score);
}

/* ---- LSTM ---- */

static void make_lstm(test_case *c)
{
    mixt__shape x = problem_shape(c, "gates");
    int64_t hidden = x.dims[2] / 4;
    mixt__shape state = {2, {x.dims[0], hidden}};
    double range = 1 / sqrt((double)hidden);
    case_input_between(c, c->dtype, x, -2, 2);
    case_input_between(c, c->dtype, (mixt__shape){2, {4 * hidden, hidden}}, -range, range);
    case_input(c, c->dtype, state);
    case_input_between(c, MIXT_DTYPE_FP32, state, -1.5, 1.5);
}

/** Gate `row` of one step, before its nonlinearity, with its error. */
static double gate_of(const test_case *c, int64_t step, int64_t row, const double *h, const double *eh, double low,
                      double *error)
{
    int64_t n = c->in[1].shape.dims[1];
    double sum = c->in[0].value[step * 4 * n + row], size = fabs(sum);
    *error = 0;
    for (int64_t j = 0; j < n; j++) {
        double w = c->in[1].value[row * n + j];
        sum += w * h[j];
        size += fabs(w * h[j]);
        *error += fabs(w) * (eh[j] + low * fabs(h[j]));
    }
    *error += ((double)n + 2) * U32 * size;
    return sum;
}

/** Step `step` of the call; h and eh are the state before it, cell and ecell go from before to after. */
static void lstm_step(test_case *c, int64_t step, const double *h, const double *eh, double low, double *cell,
                      double *ecell)
{
    int64_t n = c->in[1].shape.dims[1];
    for (int64_t j = 0; j < n; j++) {
        double g[4], e[4];
        for (int k = 0; k < 4; k++) {
            double x = gate_of(c, step, k * n + j, h, eh, low, &e[k]);
            g[k] = k == 2 ? tanh(x) : 1 / (1 + exp(-x));
            e[k] = (k == 2 ? e[k] : 0.25 * e[k]) + (U_MATHS + 4) * U32;
        }
        double made = g[1] * cell[j] + g[0] * g[2], size = fabs(g[1] * cell[j]) + fabs(g[0] * g[2]);
        ecell[j] = g[1] * ecell[j] + fabs(cell[j]) * e[1] + e[0] * fabs(g[2]) + g[0] * e[2] + 3 * U32 * size;
        cell[j] = made;
        double out = tanh(made);
        c->out[0].value[step * n + j] = g[3] * out;
        c->out[0].slack[step * n + j] =
            e[3] * fabs(out) + g[3] * (ecell[j] + (U_MATHS + 2) * U32) + 2 * U32 * fabs(g[3] * out);
    }
}

static void expect_lstm(test_case *c)
{
    int64_t batch = c->in[0].shape.dims[0], steps = c->in[0].shape.dims[1], n = c->in[1].shape.dims[1];
    double low = c->dtype == MIXT_DTYPE_FP16 || c->dtype == MIXT_DTYPE_BF16 ? number_roundoff(c->dtype) : 0;
    double *exact = case_alloc(c, (size_t)n * sizeof(double));
    test_tensor *state = case_after(c, 2), *cell = case_after(c, 3);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < steps; t++) {
            int64_t step = b * steps + t;
            const double *h = t ? c->out[0].value + (step - 1) * n : c->in[2].value + b * n;
            const double *eh = t ? c->out[0].slack + (step - 1) * n : exact;
            lstm_step(c, step, h, eh, t ? low : 0, cell->value + b * n, cell->slack + b * n);
            memcpy(state->value + b * n, c->out[0].value + step * n, (size_t)n * sizeof(double));
            memcpy(state->slack + b * n, c->out[0].slack + step * n, (size_t)n * sizeof(double));
        }
}

const oracle oracle_attention_cached = {.op = "attention_cached", .make = make_attention, .expect = expect_attention};
const oracle oracle_lstm_cached = {.op = "lstm_cached", .make = make_lstm, .expect = expect_lstm};
