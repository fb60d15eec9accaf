/* Cross-entropy, mean squared error, binary cross-entropy and their gradients.
 *
 * metrics = {sum of losses, correct, targets that count}. `skip=k` leaves every k-th target out; `classes=n`: logits
 * past n are padding. A classifier's head is here too: it ends in a loss. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

static int64_t skip_of(test_case *c)
{
    return problem_int(c, "skip", 0);
}

static void class_make(test_case *c)
{
    mixt__shape x = problem_shape(c, "logits"), labels = x;
    int64_t skip = skip_of(c);
    double range = problem_real(c, "range", 4);
    c->attrs.loss.smoothing = (float)problem_real(c, "smoothing", 0);
    c->attrs.loss.classes = problem_int(c, "classes", 0);
    labels.rank--;
    case_input_between(c, c->dtype, x, -range, range);
    test_tensor *t = case_indices(c, labels, 0, mixt__loss_classes(&c->attrs.loss, x.dims[x.rank - 1]));
    for (int64_t i = 0; skip && i < t->count; i += skip)
        t->value[i] = -1;
}

typedef struct row_loss {
    double lse, elogits, loss, error;
    int correct; // 1 yes, 0 no, -1 a tie decides
} row_loss;

static row_loss class_row(const double *x, int64_t classes, int64_t label, double smoothing)
{
    row_loss r = {0};
    double most = -INFINITY, least = INFINITY, total = 0, sum = 0, size = 0, n = (double)classes;
    for (int64_t i = 0; i < classes; i++) {
        most = fmax(most, x[i]);
        least = fmin(least, x[i]);
        sum += x[i];
        size += fabs(x[i]);
    }
    for (int64_t i = 0; i < classes; i++)
        total += exp(x[i] - most);
    r.lse = most + log(total);
    r.elogits = U32 * (n + 2 * (most - least) + 2 * U_MATHS + 2 * fabs(r.lse) + fabs(most) + 4);
    if (label < 0)
        return r;
    r.loss = r.lse - (1 - smoothing) * x[label] - smoothing / n * sum;
    r.error = r.elogits + 4 * U32 * (fabs(r.lse) + fabs(x[label])) + (n + 4) * U32 * smoothing / n * size;
    int64_t ties = 0;
    for (int64_t i = 0; i < classes; i++)
        ties += x[i] == most;
    r.correct = x[label] != most ? 0 : ties == 1 ? 1 : -1;
    return r;
}

/** Sum, mean and count of `terms` losses into loss and metrics; a mean of nothing is 0. */
static void finish(test_tensor *loss, test_tensor *metrics, double sum, double size, double error, double count,
                   double terms)
{
    double all = error + terms * U32 * size, by = count > 0 ? count : 1;
    loss->value[0] = sum / by;
    loss->slack[0] = all / by + 2 * U32 * fabs(sum / by);
    metrics->value[0] = sum;
    metrics->slack[0] = all;
    metrics->value[2] = count;
}

static void class_expect(test_case *c)
{
    const test_tensor *x = &c->in[0], *t = &c->in[1];
    int64_t classes = x->shape.dims[x->shape.rank - 1];
    double sum = 0, size = 0, error = 0, count = 0;
    for (int64_t i = 0; i < t->count; i++) {
        row_loss r = class_row(x->value + i * classes, mixt__loss_classes(&c->attrs.loss, classes),
                               (int64_t)t->value[i], c->attrs.loss.smoothing);
        c->out[2].value[i] = r.lse;
        c->out[2].slack[i] = t->value[i] < 0 ? INFINITY : r.elogits; // of a row left out nobody reads it
        if (t->value[i] < 0)
            continue;
        sum += r.loss;
        size += fabs(r.loss);
        error += r.error;
        count++;
        c->out[1].value[1] += r.correct == 1 ? 1 : r.correct == 0 ? 0 : 0.5; // a tie may go either way
        c->out[1].slack[1] += r.correct == -1 ? 0.5 : 0;
    }
    finish(&c->out[0], &c->out[1], sum, size, error, count, (double)t->count);
}

static void make_grad(test_case *c, const char *forward, void (*make)(test_case *))
{
    test_case *f = case_inner(c, forward);
    make(f);
    case_run(f);
    c->error = f->error;
    if (c->error)
        return;
    c->attrs = f->attrs;
    case_copy(c, &f->in[0]);
    if (f->in_count > 1)
        case_copy(c, &f->in[1]);
    if (f->out_count > 2)
        case_copy(c, &f->out[2]);
    f->out[1].value[1] = floor(f->out[1].value[1]);
    case_copy(c, &f->out[1]);
    c->grad_dst = c->in_count;
    case_input_between(c, MIXT_DTYPE_FP32, (mixt__shape){0}, 3, 40);
}

static void class_make_grad(test_case *c)
{
    make_grad(c, "cross_entropy", class_make);
}

static void class_expect_grad(test_case *c)
{
    const test_tensor *x = &c->in[0], *t = &c->in[1], *dx = &c->out[0];
    int64_t classes = x->shape.dims[x->shape.rank - 1], valid = mixt__loss_classes(&c->attrs.loss, classes);
    double count = c->in[3].value[2], factor = c->in[4].value[0] / (count > 0 ? count : 1),
           smoothing = c->attrs.loss.smoothing;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t row = i / classes, label = (int64_t)t->value[row];
        if (label < 0 || i % classes >= valid)
            continue;
        double lse = c->in[2].value[row], p = exp(x->value[i] - lse);
        double q = smoothing / (double)valid + (label == i % classes ? 1 - smoothing : 0);
        dx->value[i] = factor * (p - q);
        dx->slack[i] = fabs(factor) * U32 * (p * (2 * fabs(x->value[i]) + 2 * fabs(lse) + U_MATHS) + 5 * (p + q));
    }
}

/* ---- cross-entropy and its gradient at once: (logits, target, seed) → (grad_logits, loss, metrics) ---- */

static void step_make(test_case *c)
{
    class_make(c);
    case_input_between(c, MIXT_DTYPE_FP32, (mixt__shape){0}, 3, 40);
    int64_t more = problem_int(c, "more", 0); // targets of the rest of the batch
    if (!more)
        return;
    mixt__shape all = {1, {c->in[1].count + more}};
    test_tensor *t = case_input_between(c, MIXT_DTYPE_INT32, all, 0, 1);
    for (int64_t i = 0; i < t->count; i++)
        t->value[i] = i < c->in[1].count ? c->in[1].value[i] : i % 3 == 0 ? -1 : 0;
}

static void step_gradient(test_case *c, int64_t row, const row_loss *r, double factor)
{
    const test_tensor *x = &c->in[0], *dx = &c->out[0];
    int64_t classes = x->shape.dims[x->shape.rank - 1], label = (int64_t)c->in[1].value[row];
    int64_t valid = mixt__loss_classes(&c->attrs.loss, classes);
    double smoothing = c->attrs.loss.smoothing;
    for (int64_t k = 0; label >= 0 && k < valid; k++) {
        double value = x->value[row * classes + k], p = exp(value - r->lse);
        double q = smoothing / (double)valid + (label == k ? 1 - smoothing : 0);
        dx->value[row * classes + k] = factor * (p - q);
        dx->slack[row * classes + k] =
            fabs(factor) * (p * r->elogits + U32 * (p * (2 * fabs(value) + 2 * fabs(r->lse) + U_MATHS) + 5 * (p + q)));
    }
}

static void step_expect(test_case *c)
{
    const test_tensor *x = &c->in[0], *t = &c->in[1];
    int64_t classes = x->shape.dims[x->shape.rank - 1];
    double sum = 0, size = 0, error = 0, count = 0;
    const test_tensor *all = c->in_count > 3 ? &c->in[3] : t;
    for (int64_t i = 0; i < all->count; i++)
        count += all->value[i] >= 0;
    for (int64_t i = 0; i < t->count; i++) {
        row_loss r = class_row(x->value + i * classes, mixt__loss_classes(&c->attrs.loss, classes),
                               (int64_t)t->value[i], c->attrs.loss.smoothing);
        step_gradient(c, i, &r, c->in[2].value[0] / (count > 0 ? count : 1));
        if (t->value[i] < 0)
            continue;
        sum += r.loss;
        size += fabs(r.loss);
        error += r.error;
        c->out[2].value[1] += r.correct == 1 ? 1 : r.correct == 0 ? 0 : 0.5;
        c->out[2].slack[1] += r.correct == -1 ? 0.5 : 0;
    }
    finish(&c->out[1], &c->out[2], sum, size, error, count, (double)t->count);
    c->out[2].value[2] = 0; // of this part, whatever divides
    for (int64_t i = 0; i < t->count; i++)
        c->out[2].value[2] += t->value[i] >= 0;
}

/* ---- a classifier's head: (x, w[, bias], target, seed) → (grad_x, loss, metrics, grad_w[, grad_bias]) ---- */

static void head_make(test_case *c)
{
    mixt__shape x = problem_shape(c, "x"), labels = {1, {x.dims[0]}};
    int64_t n = problem_int(c, "n", 10), skip = skip_of(c);
    c->attrs.head = (mixt__head_attrs){.bias = problem_int(c, "bias", 0) != 0, .relu = problem_int(c, "relu", 0) != 0};
    c->attrs.head.loss.smoothing = (float)problem_real(c, "smoothing", 0);
    c->attrs.head.loss.classes = problem_int(c, "classes", 0);
    case_input(c, c->dtype, x);
    case_input(c, c->dtype, (mixt__shape){2, {n, x.dims[x.rank - 1]}});
    if (c->attrs.head.bias)
        case_input(c, MIXT_DTYPE_FP32, (mixt__shape){1, {n}});
    test_tensor *t = case_indices(c, labels, 0, mixt__loss_classes(&c->attrs.head.loss, n));
    for (int64_t i = 0; skip && i < t->count; i += skip)
        t->value[i] = -1;
    case_input_between(c, MIXT_DTYPE_FP32, (mixt__shape){0}, 3, 40);
}

/** The logits of a row. Returns by how much a right kernel's may be off: K products and a bias summed in FP32. */
static double head_logits(const test_case *c, int64_t row, double *logits)
{
    const test_tensor *x = &c->in[0], *w = &c->in[1];
    int64_t k = x->shape.dims[1];
    double error = 0;
    for (int64_t n = 0; n < w->shape.dims[0]; n++) {
        double size = logits[n] = c->attrs.head.bias ? c->in[2].value[n] : 0;
        size = fabs(size);
        for (int64_t i = 0; i < k; i++) {
            double product = x->value[row * k + i] * w->value[n * k + i];
            logits[n] += product;
            size += fabs(product);
        }
        error = fmax(error, ((double)k + 2) * U32 * size);
    }
    return error;
}

/** Whether logits that are off by at most `error` may put another class first. */
static bool head_close(const double *logits, int64_t classes, int64_t label, double error)
{
    double other = -INFINITY;
    for (int64_t i = 0; i < classes; i++)
        if (i != label)
            other = fmax(other, logits[i]);
    return fabs(logits[label] - other) <= 2 * error;
}

/** A logit's gradient, and by how much a right kernel's may be off. */
typedef struct uncertain {
    double value, slack;
} uncertain;

static uncertain head_logit_grad(const test_case *c, int64_t number, int64_t label, const double *logits,
                                 const row_loss *r, double error, double factor)
{
    int64_t valid = mixt__loss_classes(&c->attrs.head.loss, c->in[1].shape.dims[0]);
    double smoothing = c->attrs.head.loss.smoothing;
    if (label < 0 || number >= valid)
        return (uncertain){0, 0};
    double x = logits[number], p = exp(x - r->lse);
    double q = smoothing / (double)valid + (label == number ? 1 - smoothing : 0);
    double maths = U32 * (p * (2 * fabs(x) + 2 * fabs(r->lse) + U_MATHS) + 5 * (p + q));
    return (uncertain){factor * (p - q), fabs(factor) * (p * (r->elogits + 2 * error) + maths)};
}

/** output[i] += a term that is one of `terms`. */
static void add_term(test_tensor *output, int64_t i, uncertain g, double by, int64_t terms)
{
    output->value[i] += g.value * by;
    output->slack[i] += fabs(by) * (g.slack + ((double)terms + 2) * U32 * fabs(g.value));
}

static void head_gradients(test_case *c, int64_t row, int64_t number, uncertain g)
{
    const test_tensor *x = &c->in[0], *w = &c->in[1];
    int64_t k = x->shape.dims[1];
    for (int64_t i = 0; i < k; i++) {
        double in = x->value[row * k + i];
        if (!c->attrs.head.relu || in > 0)
            add_term(&c->out[0], row * k + i, g, w->value[number * k + i], w->shape.dims[0]);
        add_term(&c->out[3], number * k + i, g, in, x->shape.dims[0]);
    }
    if (c->attrs.head.bias)
        add_term(&c->out[4], number, g, 1, x->shape.dims[0]);
}

static void head_expect(test_case *c)
{
    const test_tensor *t = &c->in[2 + c->attrs.head.bias], *seed = t + 1;
    int64_t n = c->in[1].shape.dims[0], valid = mixt__loss_classes(&c->attrs.head.loss, n);
    double *logits = case_alloc(c, (size_t)(n > 0 ? n : 1) * sizeof *logits);
    double sum = 0, size = 0, error = 0, count = 0;
    for (int64_t i = 0; i < t->count; i++)
        count += t->value[i] >= 0;
    for (int64_t i = 0; i < t->count; i++) {
        int64_t label = (int64_t)t->value[i];
        double off = head_logits(c, i, logits), factor = seed->value[0] / (count > 0 ? count : 1);
        row_loss r = class_row(logits, valid, label, c->attrs.head.loss.smoothing);
        for (int64_t number = 0; number < n; number++)
            head_gradients(c, i, number, head_logit_grad(c, number, label, logits, &r, off, factor));
        if (label < 0)
            continue;
        sum += r.loss;
        size += fabs(r.loss);
        error += r.error + 3 * off; // of log-sum-exp, of the label's logit, of the mean of all
        bool open = r.correct == -1 || (valid > 1 && head_close(logits, valid, label, off));
        c->out[2].value[1] += open ? 0.5 : r.correct;
        c->out[2].slack[1] += open ? 0.5 : 0;
    }
    finish(&c->out[1], &c->out[2], sum, size, error, count, (double)t->count);
}

/* ---- targets that are numbers ---- */

static void real_make(test_case *c)
{
    mixt__shape x = problem_shape(c, "src");
    int64_t skip = skip_of(c);
    bool binary = !strcmp(c->op->name, "bce");
    case_input_between(c, c->dtype, x, -3, 3);
    test_tensor *t = case_input_between(c, MIXT_DTYPE_FP32, x, binary ? 0 : -3, binary ? 1 : 3);
    for (int64_t i = 0; i < t->count; i++) {
        if (binary && i % 2)
            t->value[i] = rint(t->value[i]);
        if (skip && i % skip == 0)
            t->value[i] = NAN;
    }
}

/** Elements that are losses themselves; their targets, values, labels or none, say which of them count. */
static void mean_make(test_case *c)
{
    mixt__shape x = problem_shape(c, "src");
    int64_t skip = skip_of(c), labels = problem_int(c, "labels", 0);
    case_input_between(c, c->dtype, x, -3, 3);
    if (problem_int(c, "all", 0))
        return;
    test_tensor *t = labels ? case_indices(c, x, 0, 3) : case_input_between(c, MIXT_DTYPE_FP32, x, 0, 3);
    for (int64_t i = 0; i < t->count; i++) {
        if (skip && i % skip == 0)
            t->value[i] = labels ? -1 : (double)NAN;
    }
}

static bool mean_counts(const test_case *c, bool given, int64_t i)
{
    return !given || !(isnan(c->in[1].value[i]) || (c->in[1].dtype == MIXT_DTYPE_INT32 && c->in[1].value[i] < 0));
}

static void mean_expect(test_case *c)
{
    double sum = 0, size = 0, count = 0;
    for (int64_t i = 0; i < c->in[0].count; i++)
        if (mean_counts(c, c->in_count > 1, i)) {
            sum += c->in[0].value[i];
            size += fabs(c->in[0].value[i]);
            count++;
        }
    finish(&c->out[0], &c->out[1], sum, size, 0, count, (double)c->in[0].count);
}

static void mean_make_grad(test_case *c)
{
    make_grad(c, "mean_loss", mean_make);
}

static void mean_expect_grad(test_case *c)
{
    int last = c->in_count - 1;
    double count = c->in[last - 1].value[2], factor = c->in[last].value[0] / (count > 0 ? count : 1);
    for (int64_t i = 0; i < c->in[0].count; i++)
        if (mean_counts(c, last > 2, i)) {
            c->out[0].value[i] = factor;
            c->out[0].slack[i] = fabs(factor) * 2 * U32;
        }
}

static double squared(double x, double t, double *error)
{
    *error = 3 * U32 * (x - t) * (x - t);
    return (x - t) * (x - t);
}

static double binary(double x, double t, double *error)
{
    double soft = log1p(exp(-fabs(x)));
    *error = U32 * (3 * (U_MATHS + 2) + 4 * fabs(x)); // log(1 + e) with a rounded 1 + e is off by u, not by u·result
    return fmax(x, 0) - x * t + soft;
}

static void real_expect(test_case *c)
{
    bool is_binary = !strcmp(c->op->name, "bce");
    double sum = 0, size = 0, error = 0, count = 0;
    for (int64_t i = 0; i < c->in[0].count; i++) {
        double t = c->in[1].value[i], e;
        if (isnan(t))
            continue;
        double loss = is_binary ? binary(c->in[0].value[i], t, &e) : squared(c->in[0].value[i], t, &e);
        sum += loss;
        size += fabs(loss);
        error += e;
        count++;
        if (is_binary)
            c->out[1].value[1] += (c->in[0].value[i] > 0) == (t > 0.5);
    }
    finish(&c->out[0], &c->out[1], sum, size, error, count, (double)c->in[0].count);
}

static void mse_make_grad(test_case *c)
{
    make_grad(c, "mse", real_make);
}

static void bce_make_grad(test_case *c)
{
    make_grad(c, "bce", real_make);
}

static void real_expect_grad(test_case *c)
{
    bool is_binary = !strcmp(c->op->name, "bce_grad");
    double count = c->in[2].value[2], factor = c->in[3].value[0] / (count > 0 ? count : 1);
    for (int64_t i = 0; i < c->in[0].count; i++) {
        double x = c->in[0].value[i], t = c->in[1].value[i], p = 1 / (1 + exp(-x));
        if (isnan(t))
            continue;
        c->out[0].value[i] = factor * (is_binary ? p - t : 2 * (x - t));
        c->out[0].slack[i] = fabs(factor) * U32 * (is_binary ? (U_MATHS + 6) * (p + fabs(t)) : 8 * fabs(x - t));
    }
}

const oracle oracle_cross_entropy = {.op = "cross_entropy", .make = class_make, .expect = class_expect};
const oracle oracle_cross_entropy_grad = {
    .op = "cross_entropy_grad", .make = class_make_grad, .expect = class_expect_grad};
const oracle oracle_cross_entropy_step = {.op = "cross_entropy_step", .make = step_make, .expect = step_expect};
const oracle oracle_head_step = {.op = "head_step", .make = head_make, .expect = head_expect};
const oracle oracle_mse = {.op = "mse", .make = real_make, .expect = real_expect};
const oracle oracle_mse_grad = {.op = "mse_grad", .make = mse_make_grad, .expect = real_expect_grad};
const oracle oracle_bce = {.op = "bce", .make = real_make, .expect = real_expect};
const oracle oracle_mean_loss = {.op = "mean_loss", .make = mean_make, .expect = mean_expect};
const oracle oracle_mean_loss_grad = {.op = "mean_loss_grad", .make = mean_make_grad, .expect = mean_expect_grad};
const oracle oracle_bce_grad = {.op = "bce_grad", .make = bce_make_grad, .expect = real_expect_grad};
