/* Attention and its gradient, one query at a time.
 *
 * Bounds: D products a score; an error e of a score is a relative error e of its probability; the row's sum is over S
 * terms and may be rescaled as often; probabilities and score gradients may be rounded to the operands' format once,
 * because the products that take them run in that format; so may what each of several heads of q gives to the gradient
 * of a head of k and v that they share. With TF32 that holds for all operands, and errors are large
 * enough for their products to count: relative errors that add up to e make at most exp(e) - 1. */
#include "oracle/oracle.h"

#include <math.h>

typedef struct heads {
    int64_t batch, count, dim, queries, keys, group; // group: heads of q that share one of k and v
    double scale, low;                               // low: roundoff of the operands' format, 0 for FP32
    double operand;                                  // what operands are off by when they are multiplied
    bool causal;
    int64_t window;        // 0: none
    double softcap;        // 0: none
    const double *lengths; // (batch) of the keys; NULL: all are there
    const double *places;  // (batch, queries) of texts that share a row; NULL: a row is one
} heads;

static heads heads_of(const test_case *c)
{
    const mixt__attention_attrs *at = &c->attrs.attention;
    const int64_t *q = c->in[0].shape.dims;
    const double *last = c->in_count == 4 || c->in_count == 7 ? c->in[c->in_count - 1].value : NULL;
    bool low = c->dtype == MIXT_DTYPE_FP16 || c->dtype == MIXT_DTYPE_BF16;
    return (heads){.batch = q[0],
                   .count = at->heads,
                   .dim = q[2] / at->heads,
                   .queries = q[1],
                   .keys = c->in[1].shape.dims[1],
                   .group = c->in[1].shape.dims[2] ? q[2] / c->in[1].shape.dims[2] : 1,
                   .scale = at->scale,
                   .low = low ? number_roundoff(c->dtype) : number_operand(c),
                   .operand = number_operand(c),
                   .causal = at->causal,
                   .window = at->window,
                   .softcap = at->softcap,
                   .lengths = at->packed ? NULL : last,
                   .places = at->packed ? last : NULL};
}

/** The first key that query t sees. */
static int64_t first_seen(const heads *s, int64_t b, int64_t t)
{
    int64_t first = s->window && t >= s->window ? t - s->window + 1 : 0;
    int64_t begin = s->places ? t - (int64_t)s->places[b * s->queries + t] : 0;
    return begin > first ? begin : first;
}

/** What the soft cap makes of a score; `error` is what the score is off by, and then what the result is. */
static double capped(const heads *s, double score, double *error)
{
    if (s->softcap == 0)
        return score;
    double made = s->softcap * tanh(score / s->softcap);
    *error += fabs(made) * (U_MATHS + 6) * U32;
    return made;
}

/** The end of the keys that query t of batch entry b sees. */
static int64_t keys_seen(const heads *s, int64_t b, int64_t t)
{
    int64_t keys = s->lengths ? (int64_t)s->lengths[b] : s->keys;
    return s->causal && t + 1 < keys ? t + 1 : keys;
}

static double together(const heads *s, double errors)
{
    return s->operand > 0 ? expm1(errors) : errors;
}

/** What a product of n operand pairs is off by, relative to the sum of magnitudes. */
static double product_error(const heads *s, int64_t n)
{
    return (double)n * U32 + s->operand * (2 + s->operand);
}

/** Texts of one token up to about `length`, one behind the other. */
static void make_places(test_case *c, int64_t batch, int64_t queries, int64_t length)
{
    test_tensor *x = case_indices(c, (mixt__shape){2, {batch, queries}}, 0, length);
    for (int64_t i = 0; i < x->count; i++)
        x->value[i] = i % queries && x->value[i] > 0 ? x->value[i - 1] + 1 : 0;
}

static void make(test_case *c)
{
    mixt__attention_attrs *at = &c->attrs.attention;
    mixt__shape q = problem_shape(c, "q"), k = q;
    at->heads = problem_int(c, "heads", 1);
    at->causal = problem_int(c, "causal", 0) != 0;
    at->scale = (float)problem_real(c, "scale", 1 / sqrt((double)q.dims[2] / (double)at->heads));
    at->window = problem_int(c, "window", 0);
    at->softcap = (float)problem_real(c, "cap", 0);
    k.dims[1] = problem_int(c, "keys", q.dims[1]);
    k.dims[2] = q.dims[2] / at->heads * problem_int(c, "shared", at->heads);
    double range = problem_real(c, "range", 2);
    case_input_between(c, c->dtype, q, -range, range);
    case_input_between(c, c->dtype, k, -range, range);
    case_input(c, c->dtype, k);
    at->packed = problem_int(c, "packed", 0) > 0;
    if (at->packed)
        make_places(c, q.dims[0], q.dims[1], problem_int(c, "packed", 0));
    if (problem_int(c, "padded", 0))
        case_indices(c, (mixt__shape){1, {q.dims[0]}}, 0, k.dims[1] + 1);
}

/** Row t of head h of batch entry b. */
static const double *row(const test_tensor *x, const heads *s, int64_t b, int64_t t, int64_t h)
{
    return x->value + (b * x->shape.dims[1] + t) * x->shape.dims[2] + h * s->dim;
}

static double dot(const double *x, const double *y, int64_t n, double *size)
{
    double sum = 0;
    *size = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
        *size += fabs(x[i] * y[i]);
    }
    return sum;
}

static void forward_row(test_case *c, const heads *s, int64_t b, int64_t h, int64_t t, double *score)
{
    int64_t first = first_seen(s, b, t), seen = keys_seen(s, b, t), at = row(&c->out[0], s, b, t, h) - c->out[0].value;
    double most = -INFINITY, least = INFINITY, total = 0, error = 0, size;
    for (int64_t j = first; j < seen; j++) {
        score[j] = s->scale * dot(row(&c->in[0], s, b, t, h), row(&c->in[1], s, b, j, h / s->group), s->dim, &size);
        double off = product_error(s, s->dim + 2) * fabs(s->scale) * size;
        score[j] = capped(s, score[j], &off);
        error = fmax(error, off);
        most = fmax(most, score[j]);
        least = fmin(least, score[j]);
    }
    for (int64_t j = first; j < seen; j++)
        total += exp(score[j] - most);
    double relative =
        together(s, 2 * error + U32 * (2 * (most - least) + 2 * U_MATHS + 3 * (double)seen + 8) + s->low + s->operand);
    for (int64_t j = first; j < seen; j++) {
        double p = exp(score[j] - most) / total;
        for (int64_t d = 0; d < s->dim; d++) {
            double product = p * row(&c->in[2], s, b, j, h / s->group)[d];
            c->out[0].value[at + d] += product;
            c->out[0].slack[at + d] += fabs(product) * relative;
        }
    }
    int64_t l = (b * s->count + h) * s->queries + t;
    c->out[1].value[l] = most + log(total);
    if (seen <= first)
        return;
    c->out[1].slack[l] = error + U32 * (2 * (double)seen + 2 * U_MATHS + fabs(most) + 2 * (most - least) +
                                        2 * fabs(c->out[1].value[l]) + 2);
}

static void expect(test_case *c)
{
    heads s = heads_of(c);
    double *score = case_alloc(c, (size_t)s.keys * sizeof(double));
    for (int64_t i = 0; i < s.batch * s.count * s.queries; i++)
        forward_row(c, &s, i / s.queries / s.count, i / s.queries % s.count, i % s.queries, score);
}

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "attention");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    c->grad_dst = 5;
    for (int i = 0; i < 3; i++) {
        c->grad_of[i] = i;
        case_copy(c, &f->in[i]);
    }
    case_copy(c, &f->out[0]);
    case_copy(c, &f->out[1]);
    case_input(c, c->dtype, f->out[0].shape);
    if (f->in_count > 3)
        case_copy(c, &f->in[3]);
}

static void add(test_tensor *sum, int64_t at, double product, double error)
{
    sum->value[at] += product;
    sum->slack[at] += error;
}

typedef struct grad_row {
    double p[512], dp[512], ep[512], size[512]; // size: of the terms of dp
    double slope[512], eslope[512];             // of the soft cap
} grad_row;

static void grad_query(test_case *c, const heads *s, int64_t b, int64_t h, int64_t t, grad_row *r)
{
    int64_t first = first_seen(s, b, t), seen = keys_seen(s, b, t);
    const double *q = row(&c->in[0], s, b, t, h), *dy = row(&c->in[5], s, b, t, h);
    double lse = c->in[4].value[(b * s->count + h) * s->queries + t], mean = 0, mean_size = 0, worst = 0, size;
    for (int64_t j = first; j < seen; j++) {
        double score = s->scale * dot(q, row(&c->in[1], s, b, j, h / s->group), s->dim, &size), off = 0;
        score = capped(s, score, &off);
        double maths = U32 * (2 * fabs(score) + 2 * fabs(lse) + U_MATHS + 2) + off;
        r->ep[j] = product_error(s, s->dim + 2) * fabs(s->scale) * size + maths;
        double part = s->softcap > 0 ? score / s->softcap : 0;
        r->slope[j] = 1 - part * part;
        r->eslope[j] = s->softcap > 0 ? 2 * fabs(part) * r->ep[j] / s->softcap + 6 * U32 : 0;
        r->p[j] = exp(score - lse);
        r->dp[j] = dot(dy, row(&c->in[2], s, b, j, h / s->group), s->dim, &r->size[j]);
        mean += r->p[j] * r->dp[j];
        mean_size += r->p[j] * r->size[j];
        worst = fmax(worst, ((double)s->dim + 2) * U32 * fabs(s->scale) * size + maths);
    }
    // The mean is that of grad_dst · dst, in FP32 even with TF32.
    double emean = ((double)(seen + s->dim + 8) * U32 + (s->operand > 0 ? 0 : s->low) + worst) * mean_size;
    int64_t at_q = q - c->in[0].value, sums = (s->keys > s->queries ? s->keys : s->queries) + s->group - 1;
    double parts = s->group > 1 && s->operand == 0 ? s->low : 0;
    for (int64_t j = first; j < seen; j++) {
        const double *k = row(&c->in[1], s, b, j, h / s->group);
        int64_t at_k = k - c->in[1].value;
        double p = r->p[j], ds = p * (r->dp[j] - mean) * s->scale * r->slope[j], sum = ((double)sums + 3) * U32;
        double relative = together(s, r->ep[j] + 4 * U32 + s->low + s->operand + sum);
        double eds = fabs(s->scale) * p * (product_error(s, s->dim + 1) * r->size[j] + emean);
        eds = r->slope[j] * eds + fabs(p * (r->dp[j] - mean) * s->scale) * r->eslope[j];
        eds = (s->operand > 0 ? 1 + relative : 1) * eds + fabs(ds) * relative;
        for (int64_t d = 0; d < s->dim; d++) {
            add(&c->out[0], at_q + d, ds * k[d], eds * fabs(k[d]));
            add(&c->out[1], at_k + d, ds * q[d], eds * fabs(q[d]) + parts * fabs(ds * q[d]));
            add(&c->out[2], at_k + d, p * dy[d],
                (together(s, r->ep[j] + s->low + s->operand + sum) + parts) * p * fabs(dy[d]));
        }
    }
}

static void expect_grad(test_case *c)
{
    heads s = heads_of(c);
    grad_row *r = case_alloc(c, sizeof *r);
    if (s.keys > (int64_t)(sizeof r->p / sizeof r->p[0])) {
        c->error = "attention oracle: at most 512 keys";
        return;
    }
    for (int64_t i = 0; i < s.batch * s.count * s.queries; i++)
        grad_query(c, &s, i / s.queries / s.count, i / s.queries % s.count, i % s.queries, r);
}

const oracle oracle_attention = {.op = "attention", .make = make, .expect = expect};
const oracle oracle_attention_grad = {.op = "attention_grad", .make = make_grad, .expect = expect_grad};
