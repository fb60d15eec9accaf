/* The parts of a step, one by one, for loops written by hand. Works on host-readable gradients through the backend. */
#include "train/trainer_inside.h"

#include "base/rng.h"
#include "train/lengths.h"

#include <float.h>
#include <math.h>

static mixt_status need_compiled(mixt__trainer *t)
{
    if (!t->train)
        return mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: mixt_trainer_compile(trainer, data)");
    return mixt__trainer_allocate(t);
}

mixt_status mixt__trainer_need_gradients(const mixt__trainer *t)
{
    return t->hand_gradients
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_STATE, "no gradients are pending: call mixt_trainer_backward first");
}

static mixt_status check_positive(const char *name, float value)
{
    return value > 0 && isfinite(value)
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_ARGUMENT, "%s %g: must be finite and above 0", name, (double)value);
}

/** Runs with a seed of the caller's, and puts back the one that the next whole step needs. */
static mixt_status run_scaled(mixt__trainer *t, const mixt__run *run, float scale)
{
    MIXT_TRY(mixt__trainer_read_control(t));
    MIXT_TRY(mixt__device_upload(t->device, &t->control->seed, &scale, sizeof scale));
    mixt_status status = mixt__executable_run(t->train, run);
    mixt_status restored =
        mixt__device_upload(t->device, &t->control->seed, &t->control_copy.seed, sizeof t->control_copy.seed);
    return status == MIXT_OK ? restored : status;
}

mixt_status mixt__trainer_backward(mixt__trainer *t, const void *input, const void *target, float scale, double *loss)
{
    MIXT_TRY(check_positive("mixt_trainer_backward: scale", scale));
    MIXT_TRY(need_compiled(t));
    uint64_t key = mixt__rng_key(t->settings.seed, MIXT_RNG_STREAM_PASS, (uint64_t)t->runs++);
    mixt__lengths_select_whole(t);
    MIXT_TRY(mixt__feed_round(&t->feed, input, &input));
    mixt__run run = {.input = input, .target = target, .accumulate = t->hand_gradients, .rng_key = &key};
    if (!t->device->backend->host_memory) {
        MIXT_TRY(mixt__feed_put(&t->feed, 0, input, target, key, -1, true));
        run.input = mixt__feed_input(&t->feed, 0);
        run.target = mixt__feed_target(&t->feed, 0);
        run.rng_key = mixt__feed_key(&t->feed, 0);
    }
    mixt_status status = run_scaled(t, &run, scale);
    if (status != MIXT_OK && !t->hand_gradients)
        (void)mixt__params_restore_statistics(t->params);
    MIXT_TRY(status);
    t->hand_gradients = true;
    float value;
    MIXT_TRY(mixt__device_download(t->device, &value, mixt__executable_address(t->train, t->train->graph->loss),
                                   sizeof value));
    if (loss)
        *loss = value;
    return MIXT_OK;
}

/** Sum of squares over all segments; *finite false when any gradient is not. */
static mixt_status measure(mixt__trainer *t, double *sum, bool *finite)
{
    MIXT_TRY(mixt__device_gradient_stats(t->device, &t->update));
    *sum = 0;
    *finite = true;
    for (int64_t s = 0; s < t->params->segment_count; s++) {
        mixt__segment_stats stats;
        MIXT_TRY(mixt__device_download(t->device, &stats, &t->stats[s], sizeof stats));
        *finite &= stats.nonfinite == 0;
        *sum += stats.sum_squares;
    }
    return MIXT_OK;
}

/** Multiplies every gradient by `factor`, a piece at a time through the host. */
static mixt_status multiply(mixt__trainer *t, float factor)
{
    float piece[1024];
    for (int64_t i = 0; i < t->params->total; i += 1024) {
        int64_t n = t->params->total - i < 1024 ? t->params->total - i : 1024;
        MIXT_TRY(
            mixt__device_download(t->device, piece, mixt__params_gradients(t->params) + i, (size_t)n * sizeof *piece));
        for (int64_t k = 0; k < n; k++)
            piece[k] *= factor;
        MIXT_TRY(
            mixt__device_upload(t->device, mixt__params_gradients(t->params) + i, piece, (size_t)n * sizeof *piece));
    }
    return MIXT_OK;
}

mixt_status mixt__trainer_unscale(mixt__trainer *t, float scale, bool *finite)
{
    double sum;
    bool unused;
    MIXT_TRY(check_positive("mixt_trainer_unscale: scale", scale));
    if (scale < FLT_MIN)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_trainer_unscale: scale %g: must be %g at least", (double)scale,
                          (double)FLT_MIN);
    MIXT_TRY(need_compiled(t));
    MIXT_TRY(mixt__trainer_need_gradients(t));
    MIXT_TRY(multiply(t, 1.0f / scale));
    return measure(t, &sum, finite ? finite : &unused);
}

mixt_status mixt__trainer_clip(mixt__trainer *t, float limit, double *norm)
{
    double sum;
    bool finite;
    MIXT_TRY(check_positive("mixt_trainer_clip: limit", limit));
    MIXT_TRY(need_compiled(t));
    MIXT_TRY(mixt__trainer_need_gradients(t));
    MIXT_TRY(measure(t, &sum, &finite));
    double length = sqrt(sum);
    if (norm)
        *norm = length;
    return finite && length > limit ? multiply(t, (float)(limit / (length + 1e-6))) : MIXT_OK;
}

mixt_status mixt__trainer_apply(mixt__trainer *t, float lr)
{
    if (!(lr >= 0) || !isfinite(lr))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_trainer_apply: lr %g: must be finite and not below 0", (double)lr);
    MIXT_TRY(need_compiled(t));
    MIXT_TRY(mixt__trainer_need_gradients(t));
    MIXT_TRY(mixt__trainer_read_control(t));
    mixt__control control = t->control_copy;
    control.step++;
    control.lr = lr;
    control.grad_factor = 1.0f;
    control.found_inf = 0;
    mixt__control_bias(&control, &t->update.optimizer);
    MIXT_TRY(mixt__integrity_renew(t)); // by the number of the last update
    MIXT_TRY(mixt__trainer_put_control(t, &control));
    MIXT_TRY(mixt__integrity_read(t, &t->update));
    MIXT_TRY(mixt__device_optimizer_step(t->device, &t->update));
    MIXT_TRY(mixt__integrity_judge(t, &t->update));
    t->control_copy = control;
    t->first_step = ++t->attempts;
    t->hand_gradients = false;
    return mixt__integrity_look(t, t->attempts);
}

mixt_status mixt__trainer_discard(mixt__trainer *t)
{
    bool waiting = t->hand_gradients;
    t->hand_gradients = false;
    return waiting ? mixt__params_restore_statistics(t->params) : MIXT_OK;
}
