/* Mean squared error and binary cross-entropy (on logits) against FP32 targets, the mean of elements that are losses
 * themselves, and their gradients.
 *
 * A NaN target, or a negative label, leaves its element out. Threads take chunks of a fixed size; each chunk's sums go
 * to the workspace and are added up in order, so the result does not depend on the threads. Correct (BCE): the logit's
 * sign says which half of [0, 1] the target lies in; the others have no such thing and report 0.
 */
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>

enum { CHUNK = 8192 };

typedef struct chunk_sums {
    double loss;
    int64_t correct, counted;
} chunk_sums;

static double load(const mixt__tensor *t, int64_t index)
{
    return (double)mixt__load(t->data, t->dtype, index);
}

/** A target that does not count is a NaN. Elements of a mean may have labels, which only say what counts, or none. */
static double load_target(const mixt__call *call, bool given, int64_t index)
{
    if (!given)
        return 0;
    if (call->in[1].dtype == MIXT_DTYPE_INT32)
        return ((const int32_t *)call->in[1].data)[index] < 0 ? (double)NAN : 0;
    return load(&call->in[1], index);
}

static int64_t chunk_count(const mixt__call *call)
{
    return (mixt__shape_count(&call->in[0].shape) + CHUNK - 1) / CHUNK;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)chunk_count(call) * sizeof(chunk_sums);
    return MIXT_OK;
}

/* ---- one element ---- */

static double mse_loss(double x, double target)
{
    return (x - target) * (x - target);
}

static double mse_slope(double x, double target)
{
    return 2.0 * (x - target);
}

/** -t·log s(x) - (1 - t)·log(1 - s(x)), without overflow on either side. */
static double bce_loss(double x, double target)
{
    return fmax(x, 0) - x * target + log1p(exp(-fabs(x)));
}

static double bce_slope(double x, double target)
{
    return 1.0 / (1.0 + exp(-x)) - target;
}

static double mean_loss(double x, double target)
{
    (void)target;
    return x;
}

static double mean_slope(double x, double target)
{
    (void)x;
    (void)target;
    return 1;
}

/* ---- chunks ---- */

typedef double element_fn(double x, double target);

typedef struct job {
    const mixt__call *call;
    element_fn *fn;
    bool binary;
} job;

static chunk_sums sum_chunk(const job *j, int64_t begin, int64_t end)
{
    chunk_sums sums = {0};
    for (int64_t i = begin; i < end; i++) {
        double x = load(&j->call->in[0], i), target = load_target(j->call, j->call->in_count > 1, i);
        if (isnan(target))
            continue;
        sums.loss += j->fn(x, target);
        sums.counted++;
        sums.correct += j->binary && (x > 0) == (target > 0.5);
    }
    return sums;
}

static void forward_chunks(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    int64_t count = mixt__shape_count(&j->call->in[0].shape);
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        int64_t last = (c + 1) * CHUNK < count ? (c + 1) * CHUNK : count;
        ((chunk_sums *)j->call->workspace)[c] = sum_chunk(j, c * CHUNK, last);
    }
}

static mixt_status forward(const mixt__call *call, element_fn *fn, bool binary)
{
    job j = {.call = call, .fn = fn, .binary = binary};
    const chunk_sums *sums = call->workspace;
    chunk_sums total = {0};
    mixt__parallel(chunk_count(call), 1, forward_chunks, &j);
    for (int64_t c = 0; c < chunk_count(call); c++) {
        total.loss += sums[c].loss;
        total.counted += sums[c].counted;
        total.correct += sums[c].correct;
    }
    float *loss = call->out[0].data, *metrics = call->out[1].data;
    *loss = total.counted ? (float)(total.loss / (double)total.counted) : 0.0f;
    metrics[0] = (float)total.loss;
    metrics[1] = (float)total.correct;
    metrics[2] = (float)total.counted;
    return MIXT_OK;
}

static void gradient_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__tensor *dst = &j->call->out[0];
    int last = j->call->in_count - 1; // behind the targets, where there are some
    const float *metrics = j->call->in[last - 1].data, *seed = j->call->in[last].data;
    double factor = metrics[2] > 0 ? (double)*seed / (double)metrics[2] : 0;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        double x = load(&j->call->in[0], i), target = load_target(j->call, last > 2, i);
        mixt__store(dst->data, dst->dtype, i, isnan(target) ? 0.0f : (float)(j->fn(x, target) * factor));
    }
}

static mixt_status gradient(const mixt__call *call, element_fn *fn)
{
    job j = {.call = call, .fn = fn};
    mixt__parallel(mixt__shape_count(&call->out[0].shape), CHUNK, gradient_range, &j);
    return MIXT_OK;
}

/* ---- the ops ---- */

static mixt_status mse_run(const mixt__call *call)
{
    return forward(call, mse_loss, false);
}

static mixt_status mse_grad_run(const mixt__call *call)
{
    return gradient(call, mse_slope);
}

static mixt_status bce_run(const mixt__call *call)
{
    return forward(call, bce_loss, true);
}

static mixt_status bce_grad_run(const mixt__call *call)
{
    return gradient(call, bce_slope);
}

static mixt_status mean_run(const mixt__call *call)
{
    return forward(call, mean_loss, false);
}

static mixt_status mean_grad_run(const mixt__call *call)
{
    return gradient(call, mean_slope);
}

static const mixt__kernel mse = {.name = "plain", .prepare = prepare, .run = mse_run},
                          bce = {.name = "plain", .prepare = prepare, .run = bce_run},
                          mse_grad = {.name = "plain", .run = mse_grad_run},
                          bce_grad = {.name = "plain", .run = bce_grad_run},
                          mean = {.name = "plain", .prepare = prepare, .run = mean_run},
                          mean_grad = {.name = "plain", .run = mean_grad_run};

const mixt__kernel *const mixt__cpu_mse_kernels[] = {&mse, NULL};
const mixt__kernel *const mixt__cpu_bce_kernels[] = {&bce, NULL};
const mixt__kernel *const mixt__cpu_mse_grad_kernels[] = {&mse_grad, NULL};
const mixt__kernel *const mixt__cpu_bce_grad_kernels[] = {&bce_grad, NULL};
const mixt__kernel *const mixt__cpu_mean_loss_kernels[] = {&mean, NULL};
const mixt__kernel *const mixt__cpu_mean_loss_grad_kernels[] = {&mean_grad, NULL};
