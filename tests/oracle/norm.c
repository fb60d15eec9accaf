/* Layer norm and batch norm and their gradients, over groups of n elements: rows, or channels.
 *
 * Bounds: the mean carries n additions; the variance is that of deviations from it, so a kernel must not take it as a
 * difference of large squares; the last step may be (x - mean)·rstd·w + b or x·scale + shift. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

typedef struct groups {
    int64_t count, n, columns;
    bool channels;
    const test_tensor *mask; // of rows; NULL: all count
    int64_t inner;           // rows that one number of it is for
    int64_t counted;         // elements of a group that count
} groups;

static groups groups_of(const test_case *c)
{
    const test_tensor *x = &c->in[0];
    groups g = {.columns = x->shape.dims[x->shape.rank - 1], .channels = !strncmp(c->op->name, "batch", 5)};
    int64_t rows = g.columns ? x->count / g.columns : 0;
    g.count = g.channels ? g.columns : rows;
    g.n = g.counted = g.channels ? rows : g.columns;
    if (!c->attrs.norm.masked || !rows)
        return g;
    g.mask = &c->in[5];
    g.inner = rows / g.mask->count;
    g.counted = 0;
    for (int64_t i = 0; i < g.mask->count; i++)
        g.counted += g.mask->value[i] > 0 ? g.inner : 0;
    return g;
}

/** Whether element k of a group counts. */
static bool is_counted(const groups *g, int64_t k)
{
    return !g->mask || g->mask->value[k / g->inner] > 0;
}

/** Element k of a group. */
static int64_t place(const groups *g, int64_t group, int64_t k)
{
    return g->channels ? k * g->columns + group : group * g->columns + k;
}

static int64_t channel(const groups *g, int64_t group, int64_t k)
{
    return g->channels ? group : k;
}

static void make(test_case *c)
{
    mixt__shape x = problem_shape(c, "src"), p = {1, {x.dims[x.rank - 1]}};
    double offset = problem_real(c, "offset", 0); // a mean far from 0 shows a variance computed as a difference
    c->attrs.norm = (mixt__norm_attrs){.eps = (float)problem_real(c, "eps", 1e-5),
                                       .momentum = (float)problem_real(c, "momentum", 0.1)};
    c->attrs.norm.training = problem_int(c, "training", 1) != 0;
    case_input_between(c, c->dtype, x, offset - 1.5, offset + 1.5);
    case_input_between(c, MIXT_DTYPE_FP32, p, 0.5, 1.5);
    case_input(c, MIXT_DTYPE_FP32, p);
    if (!strcmp(c->op->name, "batch_norm")) {
        case_input(c, MIXT_DTYPE_FP32, p);
        case_input_between(c, MIXT_DTYPE_FP32, p, 0.5, 2);
        c->attrs.norm.relu = problem_int(c, "relu", 0) != 0;
        int64_t masked = problem_int(c, "masked", 0); // dimensions of the mask
        c->attrs.norm.masked = masked != 0;
        if (masked) {
            mixt__shape shape = x;
            shape.rank = (int)masked;
            test_tensor *mask = case_indices(c, shape, 0, 2);
            mask->dtype = MIXT_DTYPE_FP32;
        }
        c->attrs.norm.addend = problem_int(c, "addend", 0) != 0;
        if (c->attrs.norm.addend)
            case_input(c, c->dtype, x);
    }
}

typedef struct statistics {
    double mean, var, emean, evar;
} statistics;

static statistics measure(const test_tensor *x, const groups *g, int64_t group)
{
    statistics s = {0};
    double size = 0, n = (double)g->counted;
    for (int64_t k = 0; k < g->n; k++) {
        if (!is_counted(g, k))
            continue;
        s.mean += x->value[place(g, group, k)] / n;
        size += fabs(x->value[place(g, group, k)]) / n;
    }
    s.emean = (n + 1) * U32 * size;
    for (int64_t k = 0; k < g->n; k++) {
        if (!is_counted(g, k))
            continue;
        double d = x->value[place(g, group, k)] - s.mean, ed = s.emean + U32 * fabs(d);
        s.var += d * d / n;
        s.evar += (2 * fabs(d) * ed + ed * ed) / n;
    }
    s.evar += (n + 3) * U32 * s.var;
    return s;
}

/** Where the running statistics go, and what evaluation uses instead of the batch's. */
static void running(test_case *c, const groups *g, int64_t group, statistics *s)
{
    int64_t counted = g->counted;
    double m = counted ? c->attrs.norm.momentum : 0, n = (double)counted, unbiased = counted > 1 ? n / (n - 1) : 1;
    double mean = c->in[3].value[group], var = c->in[4].value[group];
    if (!c->attrs.norm.training) {
        *s = (statistics){.mean = mean, .var = var};
        return;
    }
    c->after[3].value[group] = (1 - m) * mean + m * s->mean;
    c->after[3].slack[group] = m * s->emean + 4 * U32 * (fabs(mean) + m * fabs(s->mean));
    c->after[4].value[group] = (1 - m) * var + m * unbiased * s->var;
    c->after[4].slack[group] = m * unbiased * s->evar + 4 * U32 * (var + m * unbiased * s->var);
}

/** What a batch norm adds to element i of its result, and ReLU. */
static void fuse(test_case *c, int64_t i)
{
    test_tensor *y = &c->out[0];
    if (c->attrs.norm.addend) {
        y->value[i] += c->in[5].value[i];
        y->slack[i] += 2 * U32 * (fabs(y->value[i]) + fabs(c->in[5].value[i]));
    }
    if (c->attrs.norm.relu && y->value[i] < 0)
        y->value[i] = 0; // the slack stays: a kernel may see a small value above 0
}

static void expect(test_case *c)
{
    groups g = groups_of(c);
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    bool batch = g.channels;
    for (int i = 3; batch && c->attrs.norm.training && i <= 4; i++) {
        c->after[i] = c->in[i];
        c->after[i].value = case_alloc(c, (size_t)g.count * sizeof(double));
        c->after[i].slack = case_alloc(c, (size_t)g.count * sizeof(double));
    }
    for (int64_t group = 0; group < g.count; group++) {
        statistics s = measure(x, &g, group);
        if (batch)
            running(c, &g, group, &s);
        double rstd = 1 / sqrt(s.var + c->attrs.norm.eps),
               relative = s.evar / (2 * (s.var + c->attrs.norm.eps)) + 3 * U32;
        c->out[1].value[group] = s.mean;
        c->out[1].slack[group] = s.emean;
        c->out[2].value[group] = rstd;
        c->out[2].slack[group] = rstd * relative;
        for (int64_t k = 0; k < g.n; k++) {
            int64_t i = place(&g, group, k), p = channel(&g, group, k);
            if (!is_counted(&g, k)) // 0, to the bit
                continue;
            double w = c->in[1].value[p], b = c->in[2].value[p], d = x->value[i] - s.mean, scaled = d * rstd * w;
            y->value[i] = scaled + b;
            y->slack[i] = fabs(w) * rstd * (s.emean + 3 * U32 * (fabs(x->value[i]) + fabs(s.mean))) +
                          fabs(scaled) * relative + 4 * U32 * (fabs(scaled) + fabs(b));
            if (batch)
                fuse(c, i);
        }
    }
}

static void make_grad(test_case *c)
{
    char forward[32] = "layer_norm";
    if (!strncmp(c->op->name, "batch", 5))
        strcpy(forward, "batch_norm");
    test_case *f = case_inner(c, forward);
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    c->grad_dst = 4;
    for (int o = 0; o < 3; o++)
        c->grad_of[o] = o;
    case_copy(c, &f->in[0]);
    case_copy(c, &f->in[1]);
    case_copy(c, &f->out[1]);
    case_copy(c, &f->out[2]);
    case_input(c, c->dtype, f->out[0].shape);
    if (f->attrs.norm.masked)
        case_copy(c, &f->in[5]);
    if (f->attrs.norm.relu)
        case_copy(c, &f->in[2]);
    c->attrs.norm.totals = problem_int(c, "totals", 0) != 0;
    c->grad_of[3] = -1;
    if (!strcmp(c->op->name, "layer_norm_grad") && problem_int(c, "addend", 0)) {
        c->attrs.norm.addend = true;
        test_tensor *addend = case_input(c, c->dtype, f->out[0].shape);
        if (c->unrounded) // differences of the forward see the gradient alone
            memset(addend->value, 0, (size_t)addend->count * sizeof(double));
    }
}

/** How much of grad_dst counts at element i, where the normalised value is v: all of it, or with ReLU none where the
 *  forward's result was not above 0. `unsure`: what a kernel may count otherwise, since it rounds that result. */
static double counted(const test_case *c, int64_t i, int64_t p, double v, double ev, double *unsure)
{
    double dy = c->in[4].value[i], w = c->in[1].value[p];
    *unsure = 0;
    if (!c->attrs.norm.relu)
        return dy;
    double bias = c->in[c->in_count - 1].value[p], y = v * w + bias;
    if (fabs(y) <= 2 * fabs(w) * ev + 4 * U32 * (fabs(v * w) + fabs(bias)))
        *unsure = fabs(dy);
    return y > 0 ? dy : 0;
}

static void expect_grad(test_case *c)
{
    groups g = groups_of(c);
    const test_tensor *x = &c->in[0], *dx = &c->out[0], *dw = &c->out[1], *db = &c->out[2];
    double n = (double)g.counted, terms = g.channels ? n : (double)g.count;
    for (int64_t group = 0; group < g.count; group++) {
        double mean = c->in[2].value[group], rstd = c->in[3].value[group], a = 0, b = 0, ea = 0, eb = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t k = 0; k < g.n; k++) {
                int64_t i = place(&g, group, k), p = channel(&g, group, k);
                if (!is_counted(&g, k))
                    continue;
                double v = (x->value[i] - mean) * rstd, unsure;
                double ev = 3 * U32 * fabs(v) + 2 * U32 * (fabs(x->value[i]) + fabs(mean)) * rstd;
                double dy = counted(c, i, p, v, ev, &unsure), w = c->in[1].value[p], h = dy * w;
                if (pass == 0) {
                    a += h / n;
                    b += h * v / n;
                    ea += ((n + 2) * U32 * fabs(h) + unsure * fabs(w)) / n;
                    eb += ((n + 4) * U32 * fabs(h * v) + fabs(h) * ev + unsure * fabs(w * v)) / n;
                    dw->value[p] += dy * v;
                    dw->slack[p] += (terms + 3) * U32 * fabs(dy * v) + fabs(dy) * ev + unsure * fabs(v);
                    db->value[p] += dy;
                    db->slack[p] += terms * U32 * fabs(dy) + unsure;
                } else {
                    dx->value[i] = rstd * (h - a - v * b);
                    dx->slack[i] = rstd * (4 * U32 * (fabs(h) + fabs(a) + fabs(v * b)) + ea + fabs(v) * eb +
                                           ev * fabs(b) + unsure * fabs(w));
                    if (!g.channels && c->attrs.norm.addend) {
                        dx->value[i] += c->in[5].value[i];
                        dx->slack[i] += 2 * U32 * (fabs(dx->value[i]) + fabs(c->in[5].value[i]));
                    }
                    if (c->attrs.norm.totals) { // of what is stored, or of what it is rounded from
                        c->out[3].value[p] += dx->value[i];
                        c->out[3].slack[p] +=
                            dx->slack[i] + (terms * U32 + number_roundoff(c->dtype)) * fabs(dx->value[i]);
                    }
                }
            }
    }
}

const oracle oracle_layer_norm = {.op = "layer_norm", .make = make, .expect = expect};
const oracle oracle_layer_norm_grad = {.op = "layer_norm_grad", .make = make_grad, .expect = expect_grad};
const oracle oracle_batch_norm = {.op = "batch_norm", .make = make, .expect = expect};
const oracle oracle_batch_norm_grad = {.op = "batch_norm_grad", .make = make_grad, .expect = expect_grad};
