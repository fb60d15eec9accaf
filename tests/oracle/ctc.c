/* CTC in FP64, as the sum over all ways to place the labels, and its gradient by the same sums from both ends.
 *
 *     ctc logits=BxTxC labels=S [lengths=full|any] [stride=1] [window=1] [range=4] [same=1] [skip=k] [blank=0]
 *
 * `any` draws both lengths, also such that cannot be (`full`: frames are not given); `same`: all labels of a sample are
 * one class; `skip`: every k-th sample does not count. Errors of a right FP32 kernel are carried along: each sum of
 * exponentials passes on those of its terms by their shares and adds its own roundings, as large as the logarithms in
 * it. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

/** A logarithm and by how much a right kernel's may be off. */
typedef struct uncertain {
    double value, error;
} uncertain;

typedef struct sample {
    int64_t b, frames, length, states;
    bool counts;
} sample;

static void make(test_case *c)
{
    mixt__shape x = problem_shape(c, "logits");
    int64_t labels = problem_int(c, "labels", 1), skip = problem_int(c, "skip", 0);
    bool any = !strcmp(problem_text(c, "lengths", "full"), "any"), same = problem_int(c, "same", 0) != 0;
    double range = problem_real(c, "range", 4);
    c->attrs.ctc.blank = problem_int(c, "blank", 0);
    c->attrs.ctc.stride = problem_int(c, "stride", 0);
    c->attrs.ctc.window = problem_int(c, "window", 0);
    mixt__shape one = {1, {x.dims[0]}}, rows = {2, {x.dims[0], labels}};
    case_input_between(c, c->dtype, x, -range, range);
    test_tensor *l = case_indices(c, rows, 0, x.dims[2] > 1 ? x.dims[2] - 1 : 1);
    for (int64_t i = 0; i < l->count; i++) {
        l->value[i] += l->value[i] >= (double)c->attrs.ctc.blank; // never the blank
        if (same && i % labels)
            l->value[i] = l->value[i - 1];
    }
    test_tensor *lengths = case_indices(c, one, any ? 0 : labels, labels + 1);
    if (any)
        case_indices(c, one, 0, x.dims[1] * (c->attrs.ctc.stride ? c->attrs.ctc.stride : 1) + 1);
    for (int64_t b = 0; skip && b < lengths->count; b += skip)
        lengths->value[b] = -1;
}

/* ---- one sample ---- */

static int64_t label_at(const test_case *c, const sample *s, int64_t i)
{
    return (int64_t)c->in[1].value[s->b * c->in[1].shape.dims[1] + i];
}

static int64_t class_of(const test_case *c, const sample *s, int64_t state)
{
    return state % 2 ? label_at(c, s, state / 2) : c->attrs.ctc.blank;
}

static sample sample_at(const test_case *c, int64_t b)
{
    int last = c->op == &mixt__op_ctc ? 3 : 6;
    double stride = c->attrs.ctc.stride ? (double)c->attrs.ctc.stride : 1;
    double window = c->attrs.ctc.window ? (double)c->attrs.ctc.window : 1;
    sample s = {.b = b, .frames = c->in[0].shape.dims[1], .length = (int64_t)c->in[2].value[b]};
    if (c->in_count > last)
        s.frames = (int64_t)fmax(ceil((c->in[last].value[b] - window + 1) / stride), 0);
    if (s.length < 0)
        return s;
    int64_t needed = s.length;
    for (int64_t i = 1; i < s.length; i++)
        needed += label_at(c, &s, i) == label_at(c, &s, i - 1);
    s.states = 2 * s.length + 1;
    s.counts = needed <= s.frames;
    return s;
}

/** log softmax of class k in a frame. */
static uncertain log_of(const test_case *c, const sample *s, int64_t t, int64_t k)
{
    const test_tensor *x = &c->in[0];
    int64_t classes = x->shape.dims[2];
    const double *row = x->value + (s->b * x->shape.dims[1] + t) * classes;
    double most = -INFINITY, least = INFINITY, sum = 0;
    for (int64_t i = 0; i < classes; i++) {
        most = fmax(most, row[i]);
        least = fmin(least, row[i]);
    }
    for (int64_t i = 0; i < classes; i++)
        sum += exp(row[i] - most);
    double lse = most + log(sum);
    double error = (double)classes + 2 * (most - least) + 2 * U_MATHS + 3 * fabs(lse) + fabs(most) + fabs(row[k]) + 4;
    return (uncertain){row[k] - lse, U32 * error};
}

/** log(e^a + e^b + e^c), seen from `top`, the largest entry of its row: what a kernel rounds is that far from it. */
static uncertain log_add(const uncertain terms[3], double top)
{
    double most = fmax(terms[0].value, fmax(terms[1].value, terms[2].value)), sum = 0, error = 0;
    if (most == -INFINITY)
        return (uncertain){-INFINITY, 0};
    for (int i = 0; i < 3; i++)
        sum += exp(terms[i].value - most);
    for (int i = 0; i < 3; i++) {
        double share = exp(terms[i].value - most) / sum;
        if (share > 0)
            error += share * (terms[i].error + U32 * (2 * fabs(terms[i].value - most) + U_MATHS));
    }
    return (uncertain){most + log(sum), error + U32 * (3 * fabs(most - top) + U_MATHS + 6)};
}

static bool may_skip(const test_case *c, const sample *s, int64_t state)
{
    return state % 2 && state >= 3 && label_at(c, s, state / 2) != label_at(c, s, state / 2 - 1);
}

static double top_of(const uncertain *row, int64_t states, int64_t *where)
{
    *where = 0;
    for (int64_t i = 1; i < states; i++)
        *where = row[i].value > row[*where].value ? i : *where;
    return row[*where].value;
}

/** Adds a frame's logarithms. The kernel sees entries less the largest of the row before (`top`) and then its own. */
static void emit(const test_case *c, const sample *s, int64_t t, double top, uncertain *row)
{
    for (int64_t i = 0; i < s->states; i++) {
        uncertain y = log_of(c, s, t, class_of(c, s, i));
        if (row[i].value == -INFINITY)
            continue;
        row[i].value += y.value;
        row[i].error += y.error + 2 * U32 * (fabs(row[i].value - top) + fabs(y.value));
    }
    int64_t where;
    double own = top_of(row, s->states, &where);
    for (int64_t i = 0; i < s->states; i++)
        if (row[i].value > -INFINITY)
            row[i].error += U32 * (fabs(row[i].value - own) + fabs(own - top));
}

static const uncertain never = {-INFINITY, 0};

/** The table of a sample: (frames, states). */
static uncertain *forward(test_case *c, const sample *s)
{
    uncertain *table = case_alloc(c, (size_t)(s->frames * s->states + 1) * sizeof *table);
    int64_t where;
    for (int64_t t = 0; t < s->frames; t++) {
        uncertain *row = table + t * s->states, *before = row - s->states;
        double top = t ? top_of(before, s->states, &where) : 0;
        for (int64_t i = 0; i < s->states; i++) {
            uncertain first = i < 2 ? (uncertain){0, 0} : never;
            if (t) {
                uncertain terms[3] = {before[i], i >= 1 ? before[i - 1] : never,
                                      may_skip(c, s, i) ? before[i - 2] : never};
                first = log_add(terms, top);
            }
            row[i] = first;
        }
        emit(c, s, t, top, row);
    }
    return table;
}

/** How likely the labels are. */
static uncertain likelihood(const sample *s, const uncertain *table)
{
    const uncertain *row = table + (s->frames - 1) * s->states;
    int64_t where;
    if (!s->frames)
        return (uncertain){0, 0};
    uncertain terms[3] = {row[s->states - 1], s->length ? row[s->states - 2] : never, never};
    uncertain all = log_add(terms, top_of(row, s->states, &where));
    all.error += 2 * U32 * fabs(all.value);
    return all;
}

/** Whether the first of the largest logits of each frame, without repeats and blanks, are the labels. */
static bool spells(const test_case *c, const sample *s)
{
    const test_tensor *x = &c->in[0];
    int64_t classes = x->shape.dims[2], before = -1, spelled = 0;
    for (int64_t t = 0; t < s->frames; t++) {
        const double *row = x->value + (s->b * x->shape.dims[1] + t) * classes;
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            best = row[k] > row[best] ? k : best;
        bool letter = best != before && best != c->attrs.ctc.blank;
        before = best;
        if (letter && (spelled >= s->length || label_at(c, s, spelled) != best))
            return false;
        spelled += letter;
    }
    return spelled == s->length;
}

/** A sample's part of alpha: its rows less their largest; what is past it or has no way is nobody's business. */
static void keep(test_case *c, const sample *s, const uncertain *table)
{
    int64_t frames = c->in[0].shape.dims[1], states = c->out[2].shape.dims[2], where;
    for (int64_t i = 0; i < frames * states; i++) {
        int64_t t = i / states, state = i % states, at = s->b * frames * states + i;
        c->out[2].value[at] = -1e30;
        c->out[2].slack[at] = INFINITY;
        if (!s->counts || t >= s->frames || state >= s->states)
            continue;
        const uncertain *row = table + t * s->states;
        double top = top_of(row, s->states, &where);
        if (row[state].value == -INFINITY)
            continue;
        c->out[2].value[at] = row[state].value - top;
        c->out[2].slack[at] = row[state].error + row[where].error;
    }
}

static void expect(test_case *c)
{
    double sum = 0, size = 0, error = 0, count = 0;
    int64_t batch = c->in[0].shape.dims[0];
    for (int64_t b = 0; b < batch; b++) {
        sample s = sample_at(c, b);
        uncertain *table = s.counts ? forward(c, &s) : NULL;
        keep(c, &s, table);
        if (!s.counts)
            continue;
        uncertain all = likelihood(&s, table);
        sum -= all.value;
        size += fabs(all.value);
        error += all.error;
        count++;
        c->out[1].value[1] += spells(c, &s);
    }
    double by = count > 0 ? count : 1, off = error + (double)batch * U32 * size;
    c->out[0].value[0] = sum / by;
    c->out[0].slack[0] = off / by + 2 * U32 * fabs(sum / by);
    c->out[1].value[0] = sum;
    c->out[1].slack[0] = off;
    c->out[1].value[2] = count;
}

/* ---- gradient ---- */

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "ctc");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    for (int i = 0; i < 3; i++)
        case_copy(c, &f->in[i]);
    case_copy(c, &f->out[2]);
    case_copy(c, &f->out[1]);
    c->grad_dst = c->in_count;
    case_input_between(c, MIXT_DTYPE_FP32, (mixt__shape){0}, 3, 40);
    if (f->in_count > 3)
        case_copy(c, &f->in[3]);
}

/** How likely the rest is from each state of frame t, given the same with the next frame's logarithm in `next`. */
static void retreat(const test_case *c, const sample *s, int64_t t, const uncertain *next, uncertain *beta)
{
    int64_t where;
    double top = t + 1 < s->frames ? top_of(next, s->states, &where) : 0;
    for (int64_t i = 0; i < s->states; i++) {
        if (t + 1 == s->frames) {
            beta[i] = i >= s->states - 2 ? (uncertain){0, U32 * U_MATHS} : never;
            continue;
        }
        bool step = i + 1 < s->states, skip = i + 2 < s->states && may_skip(c, s, i + 2);
        uncertain terms[3] = {next[i], step ? next[i + 1] : never, skip ? next[i + 2] : never};
        beta[i] = log_add(terms, top);
    }
}

/** A frame's gradient: alpha is an input and as given, so beta and the roundings here are what may be off. */
static void grad_frame(test_case *c, const sample *s, int64_t t, const uncertain *beta, double *ways, double factor)
{
    int64_t frames = c->in[0].shape.dims[1], classes = c->in[0].shape.dims[2], states = c->in[3].shape.dims[2];
    const double *alpha = c->in[3].value + (s->b * frames + t) * states;
    double most = -INFINITY, all = 0, mean = 0, n = (double)s->states;
    for (int64_t i = 0; i < s->states; i++)
        if (beta[i].value > -INFINITY && alpha[i] > -1e29)
            most = fmax(most, alpha[i] + beta[i].value);
    for (int64_t i = 0; i < s->states; i++) {
        bool way = beta[i].value > -INFINITY && alpha[i] > -1e29;
        ways[2 * i] = way ? exp(alpha[i] + beta[i].value - most) : 0;
        double far = way ? fabs(alpha[i]) + fabs(alpha[i] + beta[i].value - most) + fabs(most) : 0;
        ways[2 * i + 1] = way ? beta[i].error + U32 * (4 * far + U_MATHS + n + 4) : 0;
        all += ways[2 * i];
    }
    for (int64_t i = 0; i < s->states; i++)
        mean += ways[2 * i] / all * ways[2 * i + 1];
    for (int64_t k = 0; k < classes; k++) {
        uncertain y = log_of(c, s, t, k);
        double share = 0, error = 0, p = exp(y.value);
        for (int64_t i = 0; i < s->states; i++)
            if (class_of(c, s, i) == k) {
                share += ways[2 * i] / all;
                error += ways[2 * i] / all * (ways[2 * i + 1] + mean);
            }
        int64_t at = (s->b * frames + t) * classes + k;
        c->out[0].value[at] = factor * (p - share);
        double own = p * (y.error + U32 * (fabs(y.value) + U_MATHS)) + number_smallest(MIXT_DTYPE_FP32);
        c->out[0].slack[at] = fabs(factor) * (own + error + 6 * U32 * (p + share));
    }
}

static void expect_grad(test_case *c)
{
    double count = c->in[4].value[2], factor = c->in[5].value[0] / (count > 0 ? count : 1);
    for (int64_t b = 0; b < c->in[0].shape.dims[0]; b++) {
        sample s = sample_at(c, b);
        if (!s.counts)
            continue;
        size_t bytes = (size_t)s.states * sizeof(uncertain);
        uncertain *next = case_alloc(c, bytes), *beta = case_alloc(c, bytes);
        double *ways = case_alloc(c, 2 * (size_t)s.states * sizeof *ways);
        for (int64_t t = s.frames - 1; t >= 0; t--) {
            int64_t where;
            double top = t + 1 < s.frames ? top_of(next, s.states, &where) : 0;
            retreat(c, &s, t, next, beta);
            // Seen from the row behind, as the kernel sees it: differences to its largest entry are what is rounded.
            grad_frame(c, &s, t, beta, ways, factor);
            memcpy(next, beta, bytes);
            emit(c, &s, t, top, next);
        }
    }
}

const oracle oracle_ctc = {.op = "ctc", .make = make, .expect = expect};
const oracle oracle_ctc_grad = {.op = "ctc_grad", .make = make_grad, .expect = expect_grad};
