/* Divergence from a teacher beside the cross-entropy with labels, and its gradient; threads split the rows.
 *
 * What a row gives: ops/kl.c. Log-sum-exps are taken tile by tile, with what was added up before rescaled where a tile
 * has a larger score; the divergence is the mean of (teacher - logits) / T under the teacher's distribution, less the
 * difference of the log-sum-exps. Losses of single rows go to the workspace and are added up in order in double, so the
 * result does not depend on the threads. A gradient that lies in the place of what it is made from is written behind
 * the last reading of its tile.
 */
#include "backend/cpu/core/rows.h"
#include "backend/cpu/kernels.h"
#include "base/threads.h"

#include <math.h>
#include <string.h>

enum { LEFT_OUT = 0, WRONG = 1, CORRECT = 2, ROWS_AT_MOST = 8 };
enum { LSE_WARM, LSE_TEACHER, LSE_PLAIN, LSE_COUNT }; // of logits / T, of teacher / T, of the logits

/** What a row leaves to be added up. */
typedef struct row_result {
    double loss;
    int32_t outcome;
} row_result;

typedef struct problem {
    const mixt__tensor *logits, *teacher;
    const int32_t *labels; // NULL: every row counts
    int64_t rows, classes, pitch, teacher_pitch;
    mixt__kl_attrs at;
    float cold; // 1 / temperature
    row_result *results;
    float *lse; // (rows, 3)
    const mixt__tensor *grad;
    double factor; // of the gradient: seed over rows that count
} problem;

static problem problem_of(const mixt__call *call, int labels)
{
    const mixt__shape *x = &call->in[0].shape, *t = &call->in[1].shape;
    problem p = {.logits = &call->in[0], .teacher = &call->in[1], .at = *(const mixt__kl_attrs *)call->attrs};
    p.labels = call->in_count > labels ? call->in[labels].data : NULL;
    p.pitch = x->dims[x->rank - 1];
    p.teacher_pitch = t->dims[t->rank - 1];
    p.classes = mixt__loss_classes(&p.at.loss, p.pitch);
    p.rows = 1;
    for (int i = 0; i + 1 < x->rank; i++)
        p.rows *= x->dims[i];
    p.cold = 1.0f / p.at.temperature;
    p.results = call->workspace;
    return p;
}

static mixt_status check_labels(const problem *p)
{
    for (int64_t r = 0; p->labels && r < p->rows; r++)
        if (p->labels[r] >= p->classes)
            return mixt__fail(MIXT_ERROR_DATA,
                              "row %lld has label %d, but there are %lld classes: labels go from 0 to %lld",
                              (long long)r, (int)p->labels[r], (long long)p->classes, (long long)p->classes - 1);
    return MIXT_OK;
}

static bool counts(const problem *p, int64_t row)
{
    return !p->labels || p->labels[row] >= 0;
}

static double load(const mixt__tensor *t, int64_t index)
{
    return (double)mixt__load(t->data, t->dtype, index);
}

/** Loss, metrics and, in a part of a batch, the loss as its share of the whole one's. @param whole rows that count in
 *  the batch; below 0: those that are here */
static void summarize(const problem *p, const mixt__tensor *out, double whole)
{
    double sum = 0;
    int64_t correct = 0, counted = 0;
    for (int64_t r = 0; r < p->rows; r++) {
        sum += p->results[r].loss;
        counted += p->results[r].outcome != LEFT_OUT;
        correct += p->results[r].outcome == CORRECT;
    }
    float *loss = out[0].data, *metrics = out[1].data;
    double by = whole < 0 ? (double)counted : whole;
    *loss = by > 0 ? (float)(sum / by) : 0.0f;
    metrics[0] = (float)sum;
    metrics[1] = (float)correct;
    metrics[2] = (float)counted;
}

/** The loss of a row from its log-sum-exps. @param moved mean of (teacher - logits) / T under the teacher's
 *  distribution @param total of the logits, for smoothing */
static double row_loss(const problem *p, int64_t row, const double lse[LSE_COUNT], double moved, double total)
{
    double loss = (double)p->at.weight * (moved + lse[LSE_WARM] - lse[LSE_TEACHER]);
    if (p->at.task == 0 || !p->labels)
        return loss;
    double smoothing = (double)p->at.loss.smoothing;
    double ce = lse[LSE_PLAIN] - (1.0 - smoothing) * load(p->logits, row * p->pitch + p->labels[row]);
    return loss + (double)p->at.task * (smoothing > 0 ? ce - smoothing / (double)p->classes * total : ce);
}

static void keep_row(const problem *p, int64_t row, const double lse[LSE_COUNT], double loss, bool correct)
{
    for (int i = 0; i < LSE_COUNT; i++)
        p->lse[row * LSE_COUNT + i] = (float)lse[i];
    p->results[row] = (row_result){loss, correct ? CORRECT : WRONG};
}

static void leave_out(const problem *p, int64_t row)
{
    memset(p->lse + row * LSE_COUNT, 0, LSE_COUNT * sizeof *p->lse);
    p->results[row] = (row_result){0};
}

/* ---- rows ---- */

/** A sum of exponentials so far, and of what they weigh. */
typedef struct peak {
    float max;
    double sum, weighed;
} peak;

/** Takes the exponentials of a tile in; they are left in `tile`. */
static void peak_add(peak *p, float *tile, const float *weighs, int64_t width)
{
    const mixt__row_loops *loops = mixt__row_loops_best();
    float most = loops->max(tile, width);
    if (most > p->max) {
        double less = isinf(p->max) ? 0 : exp((double)p->max - (double)most);
        p->sum *= less;
        p->weighed *= less;
        p->max = most;
    }
    loops->exp_below(tile, tile, isinf(p->max) ? 0 : p->max, width);
    p->sum += (double)loops->sum(tile, width);
    if (!weighs)
        return;
    float some[MIXT__ROW_TILE];
    for (int64_t i = 0; i < width; i++)
        some[i] = tile[i] > 0 ? weighs[i] : 0; // what the teacher excludes may be infinitely far away
    p->weighed += (double)loops->dot(tile, some, width);
}

static double peak_lse(const peak *p)
{
    return (double)p->max + log(p->sum);
}

/** How many of the classes from `first` on come before the label: larger, or as large and earlier. */
static int64_t ahead(const float *x, int64_t first, int64_t width, int64_t label, float at_label)
{
    int64_t before = label - first < 0 ? 0 : label - first < width ? label - first : width, found = 0;
    for (int64_t i = 0; i < before; i++)
        found += x[i] >= at_label;
    for (int64_t i = before; i < width; i++)
        found += x[i] > at_label;
    return found;
}

static void forward_row(const problem *p, int64_t row)
{
    const mixt__row_loops *loops = mixt__row_loops_best();
    float x_tile[MIXT__ROW_TILE], t_tile[MIXT__ROW_TILE], apart[MIXT__ROW_TILE], warm[MIXT__ROW_TILE];
    peak student = {.max = -INFINITY}, teacher = student, plain = student;
    int64_t label = p->labels ? p->labels[row] : 0, better = !p->labels;
    float at_label = (float)load(p->logits, row * p->pitch + label);
    double total = 0;
    for (int64_t c = 0; c < p->classes; c += MIXT__ROW_TILE) {
        int64_t width = p->classes - c < MIXT__ROW_TILE ? p->classes - c : MIXT__ROW_TILE;
        const float *x = mixt__row_load(x_tile, p->logits->data, p->logits->dtype, row * p->pitch + c, width);
        const float *t = mixt__row_load(t_tile, p->teacher->data, p->teacher->dtype, row * p->teacher_pitch + c, width);
        loops->scale(warm, x, p->cold, width);
        loops->scale(t_tile, t, p->cold, width);
        for (int64_t i = 0; i < width; i++)
            apart[i] = t_tile[i] - warm[i];
        peak_add(&student, warm, NULL, width);
        peak_add(&teacher, t_tile, apart, width);
        if (!p->labels)
            continue;
        better += ahead(x, c, width, label, at_label);
        total += p->at.loss.smoothing > 0 ? (double)loops->sum(x, width) : 0;
        if (x != x_tile)
            memcpy(x_tile, x, (size_t)width * sizeof *x);
        peak_add(&plain, x_tile, NULL, width);
    }
    double lse[LSE_COUNT] = {peak_lse(&student), peak_lse(&teacher), p->labels ? peak_lse(&plain) : 0};
    keep_row(p, row, lse, row_loss(p, row, lse, teacher.weighed / teacher.sum, total), !better);
}

static void no_gradient(const problem *p, int64_t row, int64_t from)
{
    memset(mixt__row_at(p->grad->data, p->grad->dtype, row * p->pitch + from), 0,
           (size_t)(p->pitch - from) * mixt_dtype_size(p->grad->dtype));
}

/** The share of the cross-entropy in a tile's gradient, `plain` being its logits; in place. */
static void add_task(const problem *p, int64_t row, int64_t c, int64_t width, float *plain, float *grad)
{
    const mixt__row_loops *loops = mixt__row_loops_best();
    float factor = (float)(p->factor * (double)p->at.task), smoothing = p->at.loss.smoothing;
    int64_t label = p->labels[row] - c;
    loops->exp_below_affine(plain, plain, p->lse[row * LSE_COUNT + LSE_PLAIN], smoothing / (float)p->classes, factor,
                            width);
    if (label >= 0 && label < width)
        plain[label] -= factor * (1.0f - smoothing);
    loops->add(grad, plain, width);
}

static void gradient_row(const problem *p, int64_t row)
{
    const mixt__row_loops *loops = mixt__row_loops_best();
    mixt__narrow_fn *narrow = mixt__narrow(p->grad->dtype);
    float x_tile[MIXT__ROW_TILE], t_tile[MIXT__ROW_TILE], warm[MIXT__ROW_TILE];
    const float *lse = p->lse + row * LSE_COUNT;
    float factor = (float)(p->factor * (double)p->at.weight * (double)p->cold);
    for (int64_t c = 0; c < p->classes; c += MIXT__ROW_TILE) {
        int64_t width = p->classes - c < MIXT__ROW_TILE ? p->classes - c : MIXT__ROW_TILE;
        const float *x = mixt__row_load(x_tile, p->logits->data, p->logits->dtype, row * p->pitch + c, width);
        const float *t = mixt__row_load(t_tile, p->teacher->data, p->teacher->dtype, row * p->teacher_pitch + c, width);
        loops->scale(warm, x, p->cold, width);
        loops->scale(t_tile, t, p->cold, width);
        loops->exp_below(warm, warm, lse[LSE_WARM], width);
        loops->exp_below(t_tile, t_tile, lse[LSE_TEACHER], width);
        for (int64_t i = 0; i < width; i++)
            warm[i] = (warm[i] - t_tile[i]) * factor;
        if (p->labels && p->at.task != 0) {
            if (x != x_tile)
                memcpy(x_tile, x, (size_t)width * sizeof *x);
            add_task(p, row, c, width, x_tile, warm);
        }
        narrow(mixt__row_at(p->grad->data, p->grad->dtype, row * p->pitch + c), warm, width);
    }
    no_gradient(p, row, p->classes);
}

/* ---- plain ---- */

static double plain_lse(const mixt__tensor *t, int64_t begin, int64_t classes, double by)
{
    double max = -INFINITY, sum = 0;
    for (int64_t c = 0; c < classes; c++)
        max = fmax(max, load(t, begin + c) * by);
    for (int64_t c = 0; c < classes; c++)
        sum += exp(load(t, begin + c) * by - (isinf(max) && max < 0 ? 0 : max));
    return sum == 0 ? -INFINITY : max + log(sum);
}

static void forward_row_plain(const problem *p, int64_t row)
{
    double cold = 1.0 / (double)p->at.temperature, moved = 0, total = 0;
    int64_t x = row * p->pitch, t = row * p->teacher_pitch, label = p->labels ? p->labels[row] : 0, better = !p->labels;
    double lse[LSE_COUNT] = {plain_lse(p->logits, x, p->classes, cold), plain_lse(p->teacher, t, p->classes, cold),
                             p->labels ? plain_lse(p->logits, x, p->classes, 1) : 0};
    for (int64_t c = 0; c < p->classes; c++) {
        double logit = load(p->logits, x + c), other = load(p->teacher, t + c) * cold;
        double share = exp(other - lse[LSE_TEACHER]), at_label = load(p->logits, x + label);
        total += logit;
        moved += share > 0 ? share * (other - logit * cold) : 0;
        better += c < label ? logit >= at_label : logit > at_label;
    }
    keep_row(p, row, lse, row_loss(p, row, lse, moved, total), !better);
}

static void gradient_row_plain(const problem *p, int64_t row)
{
    double cold = 1.0 / (double)p->at.temperature, smoothing = (double)p->at.loss.smoothing;
    const float *lse = p->lse + row * LSE_COUNT;
    bool task = p->labels && p->at.task != 0;
    for (int64_t c = 0; c < p->pitch; c++) {
        if (c >= p->classes) {
            mixt__store(p->grad->data, p->grad->dtype, row * p->pitch + c, 0);
            continue;
        }
        double x = load(p->logits, row * p->pitch + c), t = load(p->teacher, row * p->teacher_pitch + c);
        double apart = exp(x * cold - (double)lse[LSE_WARM]) - exp(t * cold - (double)lse[LSE_TEACHER]);
        double slope = (double)p->at.weight * cold * apart;
        if (task) {
            double target = smoothing / (double)p->classes + (c == p->labels[row] ? 1.0 - smoothing : 0);
            slope += (double)p->at.task * (exp(x - (double)lse[LSE_PLAIN]) - target);
        }
        mixt__store(p->grad->data, p->grad->dtype, row * p->pitch + c, (float)(slope * p->factor));
    }
}

/* ---- the ops ---- */

typedef void row_fn(const problem *p, int64_t row);

/** What is done with each row: either may be NULL. */
typedef struct job {
    const problem *p;
    row_fn *forward, *gradient;
} job;

static void do_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        bool counted = counts(j->p, r);
        if (j->forward && counted)
            j->forward(j->p, r);
        else if (j->forward)
            leave_out(j->p, r);
        if (j->gradient && counted)
            j->gradient(j->p, r);
        else if (j->gradient)
            no_gradient(j->p, r, 0);
    }
}

static mixt_status do_job(const job *j, bool threads)
{
    int64_t grain = mixt__row_grain(2 * j->p->classes);
    MIXT_TRY(check_labels(j->p));
    if (threads)
        mixt__parallel(j->p->rows, grain < ROWS_AT_MOST ? grain : ROWS_AT_MOST, do_rows, (void *)(uintptr_t)j);
    else
        do_rows((void *)(uintptr_t)j, 0, j->p->rows, 0);
    return MIXT_OK;
}

static mixt_status forward(const mixt__call *call, row_fn *row, bool threads)
{
    problem p = problem_of(call, 2);
    p.lse = call->out[2].data;
    MIXT_TRY(do_job(&(job){&p, row, NULL}, threads));
    summarize(&p, call->out, -1);
    return MIXT_OK;
}

static mixt_status gradient(const mixt__call *call, row_fn *row, bool threads)
{
    problem p = problem_of(call, 5);
    const float *metrics = call->in[3].data, *seed = call->in[4].data;
    p.lse = call->in[2].data;
    p.grad = &call->out[0];
    p.factor = metrics[2] > 0 ? (double)*seed / (double)metrics[2] : 0;
    return do_job(&(job){&p, NULL, row}, threads);
}

static mixt_status step(const mixt__call *call, row_fn *forward_fn, row_fn *gradient_fn, bool threads)
{
    problem p = problem_of(call, 3);
    const mixt__tensor *all = call->in_count > 4 ? &call->in[4] : call->in_count > 3 ? &call->in[3] : NULL;
    int64_t counted = all ? 0 : p.rows;
    for (int64_t i = 0; all && i < mixt__shape_count(&all->shape); i++)
        counted += ((const int32_t *)all->data)[i] >= 0;
    p.lse = (float *)(p.results + p.rows);
    p.grad = &call->out[0];
    p.factor = counted ? (double)*(const float *)call->in[2].data / (double)counted : 0;
    MIXT_TRY(do_job(&(job){&p, forward_fn, gradient_fn}, threads));
    summarize(&p, call->out + 1, (double)counted);
    return MIXT_OK;
}

static mixt_status forward_fast_run(const mixt__call *call)
{
    return forward(call, forward_row, true);
}

static mixt_status forward_plain_run(const mixt__call *call)
{
    return forward(call, forward_row_plain, false);
}

static mixt_status gradient_fast_run(const mixt__call *call)
{
    return gradient(call, gradient_row, true);
}

static mixt_status gradient_plain_run(const mixt__call *call)
{
    return gradient(call, gradient_row_plain, false);
}

static mixt_status step_fast_run(const mixt__call *call)
{
    return step(call, forward_row, gradient_row, true);
}

static mixt_status step_plain_run(const mixt__call *call)
{
    return step(call, forward_row_plain, gradient_row_plain, false);
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)problem_of(call, 2).rows * sizeof(row_result);
    return MIXT_OK;
}

/** The forward's, then the log-sum-exps. */
static mixt_status step_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)problem_of(call, 3).rows * (sizeof(row_result) + LSE_COUNT * sizeof(float));
    return MIXT_OK;
}

static const mixt__kernel forward_fast = {.name = "rows", .prepare = prepare, .run = forward_fast_run},
                          forward_plain = {.name = "plain", .prepare = prepare, .run = forward_plain_run},
                          gradient_fast = {.name = "rows", .run = gradient_fast_run},
                          gradient_plain = {.name = "plain", .run = gradient_plain_run},
                          step_fast = {.name = "rows", .prepare = step_prepare, .run = step_fast_run},
                          step_plain = {.name = "plain", .prepare = step_prepare, .run = step_plain_run};

const mixt__kernel *const mixt__cpu_kl_kernels[] = {&forward_fast, &forward_plain, NULL};
const mixt__kernel *const mixt__cpu_kl_grad_kernels[] = {&gradient_fast, &gradient_plain, NULL};
const mixt__kernel *const mixt__cpu_kl_step_kernels[] = {&step_fast, &step_plain, NULL};
