/* Divergence from a teacher, alone (no `labels`) or beside the cross-entropy with labels, and its gradient.
 *
 * `teacher=FORMAT`: its scores come in another format than the logits; `width=n`: they have rows of n, `classes` of
 * which count. `skip=k` leaves every k-th row out. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

enum { WARM, TEACHER, PLAIN, SUMS };

static mixt_dtype teacher_format(test_case *c)
{
    static const struct {
        const char *name;
        mixt_dtype dtype;
    } formats[] = {{"fp32", MIXT_DTYPE_FP32}, {"fp16", MIXT_DTYPE_FP16}, {"bf16", MIXT_DTYPE_BF16}};
    const char *name = problem_text(c, "teacher", "");
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (!strcmp(name, formats[i].name))
            return formats[i].dtype;
    return c->dtype;
}

/** Logits, the teacher's scores, and labels where there are some; those are made last. */
static void make_scores(test_case *c)
{
    mixt__shape x = problem_shape(c, "logits"), t = x;
    double range = problem_real(c, "range", 4);
    mixt__kl_attrs *at = &c->attrs.kl;
    *at = (mixt__kl_attrs){.temperature = (float)problem_real(c, "temperature", 1)};
    at->weight = (float)problem_real(c, "weight", 1);
    at->task = (float)problem_real(c, "task", 0);
    at->loss.smoothing = (float)problem_real(c, "smoothing", 0);
    at->loss.classes = problem_int(c, "classes", 0);
    t.dims[t.rank - 1] = problem_int(c, "width", x.dims[x.rank - 1]);
    case_input_between(c, c->dtype, x, -range, range);
    case_input_between(c, teacher_format(c), t, -range, range);
}

static void make_labels(test_case *c)
{
    mixt__shape labels = problem_shape(c, "logits");
    int64_t width = labels.dims[labels.rank - 1], skip = problem_int(c, "skip", 0);
    if (!problem_int(c, "labels", 0))
        return;
    labels.rank--;
    test_tensor *t = case_indices(c, labels, 0, mixt__loss_classes(&c->attrs.kl.loss, width));
    for (int64_t i = 0; skip && i < t->count; i += skip)
        t->value[i] = -1;
}

static void make(test_case *c)
{
    make_scores(c);
    make_labels(c);
}

/** One row: where its scores begin, and what counts of them. */
typedef struct row {
    const double *x, *t;
    int64_t classes, label; // -1: left out, -2: there are no labels
    double lse[SUMS], error[SUMS];
} row;

static int64_t row_count(const test_case *c)
{
    const mixt__shape *s = &c->in[0].shape;
    int64_t rows = 1;
    for (int i = 0; i + 1 < s->rank; i++)
        rows *= s->dims[i];
    return rows;
}

/** Log-sum-exp of x / T, and by how much a right kernel's may be off. */
static double log_sum(const double *x, int64_t n, double temperature, double *error)
{
    double most = -INFINITY, least = INFINITY, total = 0, lse;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, x[i] / temperature);
        least = fmin(least, x[i] / temperature);
    }
    for (int64_t i = 0; i < n; i++)
        total += exp(x[i] / temperature - most);
    lse = most + log(total);
    double size = fmax(fabs(most), fabs(least)); // scores are divided first: each may be off by so much
    *error = U32 * ((double)n + 2 * (most - least) + 2 * U_MATHS + 2 * fabs(lse) + fabs(most) + 4 + 3 * size);
    return lse;
}

static row row_of(const test_case *c, const test_tensor *labels, int64_t i)
{
    const mixt__shape *x = &c->in[0].shape, *t = &c->in[1].shape;
    double temperature = c->attrs.kl.temperature;
    row r = {.x = c->in[0].value + i * x->dims[x->rank - 1], .t = c->in[1].value + i * t->dims[t->rank - 1]};
    r.classes = mixt__loss_classes(&c->attrs.kl.loss, x->dims[x->rank - 1]);
    r.label = !labels ? -2 : labels->value[i] < 0 ? -1 : (int64_t)labels->value[i];
    r.lse[WARM] = log_sum(r.x, r.classes, temperature, &r.error[WARM]);
    r.lse[TEACHER] = log_sum(r.t, r.classes, temperature, &r.error[TEACHER]);
    r.lse[PLAIN] = r.label < 0 ? 0 : log_sum(r.x, r.classes, 1, &r.error[PLAIN]);
    return r;
}

/** KL from the teacher. */
static double divergence(const test_case *c, const row *r, double *error)
{
    double temperature = c->attrs.kl.temperature, sum = 0, size = 0, scores = 0;
    for (int64_t k = 0; k < r->classes; k++) {
        double share = exp(r->t[k] / temperature - r->lse[TEACHER]), apart = (r->t[k] - r->x[k]) / temperature;
        sum += share * apart;
        size += share * fabs(apart);
        scores += share * (fabs(r->t[k]) + fabs(r->x[k])) / temperature;
    }
    double maths = r->error[TEACHER] + U32 * (2 * U_MATHS + (double)r->classes + 8);
    *error = r->error[WARM] + r->error[TEACHER] + size * maths + 4 * U32 * scores +
             4 * U32 * (fabs(r->lse[WARM]) + fabs(r->lse[TEACHER]) + size);
    return sum + r->lse[WARM] - r->lse[TEACHER];
}

static double task_loss(const test_case *c, const row *r, double *error)
{
    double sum = 0, size = 0, smoothing = c->attrs.kl.loss.smoothing, n = (double)r->classes;
    for (int64_t k = 0; k < r->classes; k++) {
        sum += r->x[k];
        size += fabs(r->x[k]);
    }
    *error =
        r->error[PLAIN] + 4 * U32 * (fabs(r->lse[PLAIN]) + fabs(r->x[r->label])) + (n + 4) * U32 * smoothing / n * size;
    return r->lse[PLAIN] - (1 - smoothing) * r->x[r->label] - smoothing / n * sum;
}

/** 1: the label's logit is the largest; 0: it is not; 0.5: a tie decides. */
static double correct(const row *r)
{
    int64_t ties = 0;
    for (int64_t k = 0; k < r->classes; k++) {
        if (r->x[k] > r->x[r->label])
            return 0;
        ties += r->x[k] == r->x[r->label];
    }
    return ties == 1 ? 1 : 0.5;
}

/** Sums over rows. */
typedef struct sums {
    double loss, size, error, count;
} sums;

static void add_row(test_case *c, const row *r, test_tensor *metrics, sums *s)
{
    const mixt__kl_attrs *at = &c->attrs.kl;
    double e_kl, e_task = 0, kl = divergence(c, r, &e_kl), task = r->label >= 0 ? task_loss(c, r, &e_task) : 0;
    double a = at->weight, b = r->label >= 0 ? at->task : 0, loss = a * kl + b * task;
    s->loss += loss;
    s->size += fabs(loss);
    s->error += fabs(a) * e_kl + fabs(b) * e_task + 4 * U32 * (fabs(a * kl) + fabs(b * task));
    s->count++;
    if (r->label < 0)
        return;
    double right = correct(r);
    metrics->value[1] += right;
    metrics->slack[1] += right == 0.5 ? 0.5 : 0;
}

/** @param whole rows that the loss is divided by */
static void finish(test_tensor *loss, test_tensor *metrics, const sums *s, double whole, double rows)
{
    double all = s->error + rows * U32 * s->size, by = whole > 0 ? whole : 1;
    loss->value[0] = s->loss / by;
    loss->slack[0] = all / by + 2 * U32 * fabs(s->loss / by);
    metrics->value[0] = s->loss;
    metrics->slack[0] = all;
    metrics->value[2] = s->count;
}

static void expect(test_case *c)
{
    const test_tensor *labels = c->in_count > 2 ? &c->in[2] : NULL;
    sums s = {0};
    for (int64_t i = 0; i < row_count(c); i++) {
        row r = row_of(c, labels, i);
        for (int k = 0; k < SUMS; k++) {
            bool unread = r.label == -1 || (k == PLAIN && r.label < 0);
            c->out[2].value[i * SUMS + k] = r.lse[k];
            c->out[2].slack[i * SUMS + k] = unread ? INFINITY : r.error[k];
        }
        if (r.label != -1)
            add_row(c, &r, &c->out[1], &s);
    }
    finish(&c->out[0], &c->out[1], &s, s.count, (double)row_count(c));
}

/* ---- gradient ---- */

static void make_grad(test_case *c)
{
    test_case *f = case_inner(c, "kl");
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    case_copy(c, &f->in[0]);
    case_copy(c, &f->in[1]);
    case_copy(c, &f->out[2]);
    f->out[1].value[1] = floor(f->out[1].value[1]);
    case_copy(c, &f->out[1]);
    c->grad_dst = c->in_count;
    case_input_between(c, MIXT_DTYPE_FP32, (mixt__shape){0}, 3, 40);
    if (f->in_count > 2)
        case_copy(c, &f->in[2]);
}

/** A row's gradient. @param exact the log-sum-exps are given, not computed */
static void row_gradient(test_case *c, const row *r, int64_t i, double factor, bool exact)
{
    const mixt__kl_attrs *at = &c->attrs.kl;
    const mixt__shape *shape = &c->in[0].shape;
    test_tensor *dx = &c->out[0];
    double temperature = at->temperature, smoothing = at->loss.smoothing, a = at->weight / temperature;
    for (int64_t k = 0; k < r->classes; k++) {
        int64_t place = i * shape->dims[shape->rank - 1] + k;
        double x = r->x[k], warm = x / temperature, cold = r->t[k] / temperature;
        double p = exp(warm - r->lse[WARM]), q = exp(cold - r->lse[TEACHER]), slope = a * (p - q);
        double slack = p * (3 * fabs(warm) + 2 * fabs(r->lse[WARM]) + U_MATHS) +
                       q * (3 * fabs(cold) + 2 * fabs(r->lse[TEACHER]) + U_MATHS) + 6 * (p + q);
        double off = fabs(a) * (U32 * slack + (exact ? 0 : p * r->error[WARM] + q * r->error[TEACHER]));
        if (r->label >= 0 && at->task != 0) {
            double s = exp(x - r->lse[PLAIN]);
            double target = smoothing / (double)r->classes + (r->label == k ? 1 - smoothing : 0);
            slope += at->task * (s - target);
            slack = s * (2 * fabs(x) + 2 * fabs(r->lse[PLAIN]) + U_MATHS) + 8 * (s + target);
            off += fabs(at->task) * (U32 * slack + (exact ? 0 : s * r->error[PLAIN]));
        }
        dx->value[place] = factor * slope;
        dx->slack[place] = fabs(factor) * (off + 4 * U32 * fabs(slope));
    }
}

static void expect_grad(test_case *c)
{
    const test_tensor *labels = c->in_count > 5 ? &c->in[5] : NULL;
    double count = c->in[3].value[2], factor = c->in[4].value[0] / (count > 0 ? count : 1);
    for (int64_t i = 0; i < row_count(c); i++) {
        row r = row_of(c, labels, i);
        for (int k = 0; k < SUMS; k++)
            r.lse[k] = c->in[2].value[i * SUMS + k];
        if (r.label != -1)
            row_gradient(c, &r, i, factor, true);
    }
}

/* ---- both at once ---- */

static void make_step(test_case *c)
{
    make_scores(c);
    case_input_between(c, MIXT_DTYPE_FP32, (mixt__shape){0}, 3, 40);
    make_labels(c);
    int64_t more = problem_int(c, "more", 0); // labels of the rest of the batch
    if (!more)
        return;
    mixt__shape all = {1, {c->in[3].count + more}};
    test_tensor *t = case_input_between(c, MIXT_DTYPE_INT32, all, 0, 1);
    for (int64_t i = 0; i < t->count; i++)
        t->value[i] = i < c->in[3].count ? c->in[3].value[i] : i % 3 == 0 ? -1 : 0;
}

static void expect_step(test_case *c)
{
    const test_tensor *labels = c->in_count > 3 ? &c->in[3] : NULL, *all = c->in_count > 4 ? &c->in[4] : labels;
    double count = all ? 0 : (double)row_count(c);
    sums s = {0};
    for (int64_t i = 0; all && i < all->count; i++)
        count += all->value[i] >= 0;
    for (int64_t i = 0; i < row_count(c); i++) {
        row r = row_of(c, labels, i);
        if (r.label == -1)
            continue;
        add_row(c, &r, &c->out[2], &s);
        row_gradient(c, &r, i, c->in[2].value[0] / (count > 0 ? count : 1), false);
    }
    finish(&c->out[1], &c->out[2], &s, count, (double)row_count(c));
}

const oracle oracle_kl = {.op = "kl", .make = make, .expect = expect};
const oracle oracle_kl_grad = {.op = "kl_grad", .make = make_grad, .expect = expect_grad};
const oracle oracle_kl_step = {.op = "kl_step", .make = make_step, .expect = expect_step};
