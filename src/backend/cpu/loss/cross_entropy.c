/* Cross-entropy of logits (rows, classes) against INT32 labels, and its gradient; threads split the rows.
 *
 * With smoothing e, the target of a row is (1 - e) at its label plus e / classes everywhere. A negative label leaves
 * its row out: loss 0, gradient 0, log-sum-exp 0. Losses of single rows go to the workspace and are added up in order
 * in double, so the result does not depend on the threads. The logits are read once forward, once backward (in place).
 * Of a row of `pitch` logits the first `classes` count; the gradient of the padding behind them is 0.
 */
#include "backend/cpu/loss/cross_entropy.h"
#include "backend/cpu/core/rows.h"
#include "backend/cpu/kernels.h"
#include "base/threads.h"

#include <math.h>

enum { LEFT_OUT = 0, WRONG = 1, CORRECT = 2 };
enum { ROWS_AT_MOST = 8 }; // that a thread takes: short rows cost more than their classes say

typedef mixt__loss_problem problem;
typedef mixt__loss_halves halves;

static problem problem_of(const mixt__call *call)
{
    const mixt__loss_attrs *at = call->attrs;
    const mixt__shape *shape = &call->in[0].shape;
    problem p = {.call = call, .logits = &call->in[0], .labels = call->in[1].data, .smoothing = at->smoothing};
    p.pitch = shape->dims[shape->rank - 1];
    p.classes = mixt__loss_classes(at, p.pitch);
    p.rows = mixt__shape_count(&call->in[1].shape);
    p.results = call->workspace;
    return p;
}

static mixt_status check_labels(const problem *p)
{
    for (int64_t r = 0; r < p->rows; r++)
        if (p->labels[r] >= p->classes)
            return mixt__fail(MIXT_ERROR_DATA,
                              "row %lld has label %d, but there are %lld classes: labels go from 0 to %lld",
                              (long long)r, (int)p->labels[r], (long long)p->classes, (long long)p->classes - 1);
    return MIXT_OK;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)mixt__shape_count(&call->in[1].shape) * sizeof(mixt__loss_row);
    return MIXT_OK;
}

static double logit(const problem *p, int64_t row, int64_t class)
{
    return (double)mixt__load(p->logits->data, p->logits->dtype, row * p->pitch + class);
}

/** Loss, metrics {sum of losses, correct, counted} from what the rows left in the workspace. */
static void summarize(const problem *p)
{
    double sum = 0;
    int64_t correct = 0, counted = 0;
    for (int64_t r = 0; r < p->rows; r++) {
        sum += p->results[r].loss;
        counted += p->results[r].outcome != LEFT_OUT;
        correct += p->results[r].outcome == CORRECT;
    }
    float *loss = p->call->out[0].data, *metrics = p->call->out[1].data;
    *loss = counted ? (float)(sum / (double)counted) : 0.0f;
    metrics[0] = (float)sum;
    metrics[1] = (float)correct;
    metrics[2] = (float)counted;
}

/** The loss of a row from its log-sum-exp and, with smoothing, the sum of its logits. */
static double row_loss(const problem *p, int64_t row, double lse, double total)
{
    double smoothing = (double)p->smoothing, loss = lse - (1.0 - smoothing) * logit(p, row, p->labels[row]);
    return smoothing > 0 ? loss - smoothing / (double)p->classes * total : loss;
}

/* ---- forward, rows ---- */

/** The first position of the maximum lies in the first tile that has it. */
static bool is_first_maximum(const problem *p, int64_t row, const mixt__row_peak *peak)
{
    int64_t label = p->labels[row], before = label - peak->max_tile;
    if (before < 0 || before >= MIXT__ROW_TILE || logit(p, row, label) != (double)peak->max)
        return false;
    float tile[MIXT__ROW_TILE];
    const float *x = mixt__row_load(tile, p->logits->data, p->logits->dtype, row * p->pitch + peak->max_tile, before);
    int64_t ties = 0;
    for (int64_t c = 0; c < before; c++) // to the end: then several are compared at once
        ties += x[c] == peak->max;
    return ties == 0;
}

static double row_total(const problem *p, int64_t row)
{
    double total = 0;
    float tile[MIXT__ROW_TILE];
    for (int64_t c = 0; c < p->classes; c += MIXT__ROW_TILE) {
        int64_t width = p->classes - c < MIXT__ROW_TILE ? p->classes - c : MIXT__ROW_TILE;
        const float *x = mixt__row_load(tile, p->logits->data, p->logits->dtype, row * p->pitch + c, width);
        total += (double)mixt__row_loops_best()->sum(x, width);
    }
    return total;
}

static void forward_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const problem *p = argument;
    float *lse = p->call->out[2].data, tile[MIXT__ROW_TILE];
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        p->results[r] = (mixt__loss_row){0};
        lse[r] = 0;
        if (p->labels[r] < 0)
            continue;
        mixt__row_peak peak = mixt__row_peak_of(tile, p->logits->data, p->logits->dtype, r * p->pitch, p->classes);
        double exact = (double)peak.max + log(peak.sum);
        lse[r] = (float)exact;
        p->results[r].loss = row_loss(p, r, exact, p->smoothing > 0 ? row_total(p, r) : 0);
        p->results[r].outcome = is_first_maximum(p, r, &peak) ? CORRECT : WRONG;
    }
}

static int64_t grain(const problem *p)
{
    int64_t rows = mixt__row_grain(p->classes);
    return rows < ROWS_AT_MOST ? rows : ROWS_AT_MOST;
}

static mixt_status forward_run(const mixt__call *call)
{
    problem p = problem_of(call);
    MIXT_TRY(check_labels(&p));
    mixt__parallel(p.rows, grain(&p), forward_rows, &p);
    summarize(&p);
    return MIXT_OK;
}

/* ---- gradient, rows ---- */

/** What the difference of probability and target is multiplied by: seed over the number of targets that count. */
static float gradient_factor(const problem *p)
{
    const float *metrics = p->call->in[3].data, *seed = p->call->in[4].data;
    return metrics[2] > 0 ? *seed / metrics[2] : 0.0f;
}

static void gradient_row(const problem *p, int64_t row, float factor)
{
    const mixt__tensor *dst = &p->call->out[0];
    const mixt__row_loops *loops = mixt__row_loops_best();
    mixt__narrow_fn *narrow = mixt__narrow(dst->dtype);
    float tile[MIXT__ROW_TILE], lse = ((const float *)p->call->in[2].data)[row],
                                even = p->smoothing / (float)p->classes;
    for (int64_t c = 0; c < p->classes; c += MIXT__ROW_TILE) {
        int64_t width = p->classes - c < MIXT__ROW_TILE ? p->classes - c : MIXT__ROW_TILE, label = p->labels[row] - c;
        const float *x = mixt__row_load(tile, p->logits->data, p->logits->dtype, row * p->pitch + c, width);
        float at_label = 0;
        if (label >= 0 && label < width)
            loops->exp_below_affine(&at_label, x + label, lse, even + (1.0f - p->smoothing), factor, 1);
        loops->exp_below_affine(tile, x, lse, even, factor, width);
        if (label >= 0 && label < width)
            tile[label] = at_label;
        narrow(mixt__row_at(dst->data, dst->dtype, row * p->pitch + c), tile, width);
    }
    memset(mixt__row_at(dst->data, dst->dtype, row * p->pitch + p->classes), 0,
           (size_t)(p->pitch - p->classes) * mixt_dtype_size(dst->dtype));
}

static void gradient_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const problem *p = argument;
    const mixt__tensor *dst = &p->call->out[0];
    float factor = gradient_factor(p);
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        if (p->labels[r] < 0)
            memset(mixt__row_at(dst->data, dst->dtype, r * p->pitch), 0,
                   (size_t)p->pitch * mixt_dtype_size(dst->dtype));
        else
            gradient_row(p, r, factor);
    }
}

static mixt_status gradient_run(const mixt__call *call)
{
    problem p = problem_of(call);
    MIXT_TRY(check_labels(&p));
    mixt__parallel(p.rows, grain(&p), gradient_rows, &p);
    return MIXT_OK;
}

/* ---- plain ---- */

static void forward_plain_row(const problem *p, int64_t row)
{
    double max = -INFINITY, sum = 0, total = 0;
    int64_t first = 0;
    for (int64_t c = 0; c < p->classes; c++) {
        total += logit(p, row, c);
        if (logit(p, row, c) > max) {
            max = logit(p, row, c);
            first = c;
        }
    }
    for (int64_t c = 0; c < p->classes; c++)
        sum += exp(logit(p, row, c) - (isinf(max) && max < 0 ? 0 : max));
    double lse = sum == 0 ? -INFINITY : max + log(sum); // a row of -infinity, or none
    ((float *)p->call->out[2].data)[row] = (float)lse;
    p->results[row].loss = row_loss(p, row, lse, total);
    p->results[row].outcome = first == p->labels[row] ? CORRECT : WRONG;
}

static mixt_status forward_plain_run(const mixt__call *call)
{
    problem p = problem_of(call);
    MIXT_TRY(check_labels(&p));
    for (int64_t r = 0; r < p.rows; r++) {
        p.results[r] = (mixt__loss_row){0};
        ((float *)call->out[2].data)[r] = 0;
        if (p.labels[r] >= 0)
            forward_plain_row(&p, r);
    }
    summarize(&p);
    return MIXT_OK;
}

static mixt_status gradient_plain_run(const mixt__call *call)
{
    problem p = problem_of(call);
    const float *lse = call->in[2].data;
    MIXT_TRY(check_labels(&p));
    for (int64_t r = 0; r < p.rows; r++)
        for (int64_t c = 0; c < p.pitch; c++) {
            double target =
                (double)p.smoothing / (double)p.classes + (c == p.labels[r] ? 1.0 - (double)p.smoothing : 0.0);
            double difference = p.labels[r] < 0 || c >= p.classes ? 0 : exp(logit(&p, r, c) - (double)lse[r]) - target;
            double gradient = difference * (double)gradient_factor(&p);
            mixt__store(call->out[0].data, call->out[0].dtype, r * p.pitch + c, (float)gradient);
        }
    return MIXT_OK;
}

/* ---- both at once: (logits, target, seed) → (grad_logits, loss, metrics) ---- */

/** The forward's workspace, then the rows' log-sum-exp. */
size_t mixt__loss_workspace(int64_t rows)
{
    return (size_t)rows * (sizeof(mixt__loss_row) + sizeof(float));
}

static mixt_status step_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = mixt__loss_workspace(mixt__shape_count(&call->in[1].shape));
    return MIXT_OK;
}

static int64_t counted_labels(const mixt__tensor *labels)
{
    int64_t counted = 0;
    for (int64_t i = 0; i < mixt__shape_count(&labels->shape); i++)
        counted += ((const int32_t *)labels->data)[i] >= 0;
    return counted;
}

mixt_status mixt__loss_begin(const mixt__call *call, halves *h)
{
    int64_t rows = mixt__shape_count(&call->in[1].shape);
    bool part = call->in_count > 3; // of a batch
    mixt__tensor lse = {.dtype = MIXT_DTYPE_FP32, .shape = {1, {rows}}, .strides = {1}, .contiguous = true};
    lse.data = (mixt__loss_row *)call->workspace + rows;
    *h = (halves){.forward = *call, .gradient = *call, .part = part};
    h->whole[2] = (float)counted_labels(&call->in[part ? 3 : 1]);
    mixt__tensor metrics = call->out[2];
    metrics.data = h->whole;
    const mixt__tensor out[] = {call->out[1], call->out[2], lse};
    const mixt__tensor in[] = {call->in[0], call->in[1], lse, metrics, call->in[2]};
    memcpy(h->forward_out, out, sizeof out);
    memcpy(h->gradient_in, in, sizeof in);
    h->forward.out = h->forward_out;
    h->gradient.in = h->gradient_in;
    h->first = problem_of(&h->forward);
    h->second = problem_of(&h->gradient);
    return check_labels(&h->first);
}

void mixt__loss_rows(halves *h, int64_t begin, int64_t end)
{
    forward_rows(&h->first, begin, end, 0);
    gradient_rows(&h->second, begin, end, 0);
}

/** The loss of a part of a batch is its share of the whole one's. */
static void settle_loss(const halves *h)
{
    float *loss = h->forward_out[0].data, *metrics = h->forward_out[1].data;
    *loss = h->whole[2] > 0 ? metrics[0] / h->whole[2] : 0.0f;
}

void mixt__loss_end(const halves *h)
{
    summarize(&h->first);
    if (h->part)
        settle_loss(h);
}

static void step_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    mixt__loss_rows(argument, begin, end);
}

static mixt_status step_fast_run(const mixt__call *call)
{
    halves h;
    MIXT_TRY(mixt__loss_begin(call, &h));
    mixt__parallel(h.first.rows, grain(&h.first), step_rows, &h);
    mixt__loss_end(&h);
    return MIXT_OK;
}

mixt_status mixt__loss_plain(const mixt__call *call)
{
    halves h;
    MIXT_TRY(mixt__loss_begin(call, &h));
    MIXT_TRY(forward_plain_run(&h.forward));
    if (h.part)
        settle_loss(&h);
    return gradient_plain_run(&h.gradient);
}

static const mixt__kernel forward_fast = {.name = "rows", .prepare = prepare, .run = forward_run},
                          forward_plain = {.name = "plain", .prepare = prepare, .run = forward_plain_run},
                          gradient_fast = {.name = "rows", .run = gradient_run},
                          gradient_plain = {.name = "plain", .run = gradient_plain_run},
                          step_fast = {.name = "rows", .prepare = step_prepare, .run = step_fast_run},
                          step_plain = {.name = "plain", .prepare = step_prepare, .run = mixt__loss_plain};

const mixt__kernel *const mixt__cpu_cross_entropy_kernels[] = {&forward_fast, &forward_plain, NULL};
const mixt__kernel *const mixt__cpu_cross_entropy_grad_kernels[] = {&gradient_fast, &gradient_plain, NULL};
const mixt__kernel *const mixt__cpu_cross_entropy_step_kernels[] = {&step_fast, &step_plain, NULL};
