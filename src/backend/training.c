/* The arithmetic of a training step that every device shares: schedules, the loss scale, workspace sizes.
 *
 * Pure functions of their arguments. Devices call mixt__control_advance (or mirror it) from their step_control.
 */
#include "backend/training.h"

#include <float.h>
#include <math.h>

static const double PI = 3.14159265358979323846;

int64_t mixt__update_chunks(const mixt__segment *segments, int64_t segment_count)
{
    int64_t chunks = 0;
    for (int64_t i = 0; i < segment_count; i++)
        chunks += (segments[i].count + MIXT_UPDATE_CHUNK - 1) / MIXT_UPDATE_CHUNK;
    return chunks;
}

size_t mixt__update_workspace(const mixt__segment *segments, int64_t segment_count)
{
    // Per chunk: its statistics, or LAMB's two sums of squares; per segment: LAMB's trust ratio.
    size_t bytes = 32 * (size_t)mixt__update_chunks(segments, segment_count) + sizeof(float) * (size_t)segment_count;
    return (bytes + 63) / 64 * 64;
}

int mixt__optimizer_moments(const mixt__optimizer *optimizer)
{
    if (optimizer->kind == MIXT_OPTIMIZER_SGD)
        return optimizer->momentum != 0 ? 1 : 0;
    return 2;
}

/** From `from` (progress 0) to `to` (progress 1) along half a cosine wave. */
static double cosine_between(double from, double to, double progress)
{
    return to + (from - to) * 0.5 * (1.0 + cos(PI * progress));
}

/** One cycle over n = total_steps updates, rise r = 0.3·n:
 *  lr(t) = cosine from lr/25 to lr at t/r for t < r, cosine from lr to min_lr at (t - r)/(n - r) after that. */
static double one_cycle(const mixt__schedule *s, double t)
{
    double n = (double)s->total_steps, rise = 0.3 * n;
    if (t >= n)
        return s->min_lr;
    if (t < rise)
        return cosine_between(s->lr / 25.0, s->lr, t / rise);
    return cosine_between(s->lr, s->min_lr, (t - rise) / (n - rise));
}

/* With a = applied updates, w = warmup, t = a - w, n = total_steps - w:
 *   warm-up (a < w)  lr·(a + 1)/(w + 1): the first update is not lost, and update w + 1 is the first at full lr
 *   constant         lr
 *   step             lr·gamma^floor(t/decay_steps), not below min_lr; decay_steps below 1 never decays
 *   cosine           min_lr + (lr - min_lr)·(1 + cos(pi·t/n))/2, min_lr from t = n on
 *   linear           lr + (min_lr - lr)·t/n, min_lr from t = n on
 *   one-cycle        see above; it has its own rise, so that warmup is not used */
float mixt__schedule_lr(const mixt__schedule *s, int64_t applied)
{
    if (s->kind == MIXT_SCHEDULE_ONECYCLE)
        return (float)one_cycle(s, (double)applied);
    if (applied < s->warmup)
        return (float)(s->lr * ((double)applied + 1) / ((double)s->warmup + 1));
    int64_t t = applied - s->warmup, n = s->total_steps - s->warmup;
    double progress = t < n ? (double)t / (double)n : 1.0;
    switch (s->kind) {
    case MIXT_SCHEDULE_STEP: {
        int64_t drops = s->decay_steps < 1 ? 0 : t / s->decay_steps;
        double lr = s->lr * pow(s->gamma, (double)drops);
        return (float)fmax(lr, s->min_lr);
    }
    case MIXT_SCHEDULE_COSINE:
        return (float)cosine_between(s->lr, s->min_lr, progress);
    case MIXT_SCHEDULE_LINEAR:
        return (float)(s->lr + ((double)s->min_lr - s->lr) * progress);
    default:
        return s->lr;
    }
}

static int32_t hysteresis(const mixt__scaling *scaling)
{
    return scaling->hysteresis > 1 ? scaling->hysteresis : 1;
}

static float seed(float scale, int64_t accumulate)
{
    return accumulate > 1 ? scale / (float)accumulate : scale;
}

mixt__control mixt__control_start(const mixt__update *update)
{
    mixt__control control = {.scale = update->scaling.enabled ? update->scaling.initial : 1.0f, .bad_segment = -1};
    control.seed = seed(control.scale, update->accumulate);
    control.overflows_left = hysteresis(&update->scaling);
    control.lr = mixt__schedule_lr(&update->schedule, 0);
    return control;
}

/** Any overflow restarts the count of clean steps. The scale falls once `hysteresis` overflows came in a row, and from
 *  then on at each further overflow, until a clean step gives the full tolerance back: a scale that is known to be
 *  too high must not cost `hysteresis` updates for every halving. */
static void scale_after_overflow(mixt__control *control, const mixt__scaling *scaling)
{
    control->clean_steps = 0;
    if (control->overflows_left > 0)
        control->overflows_left--;
    if (control->overflows_left == 0)
        control->scale = fmaxf(control->scale * scaling->backoff, scaling->floor);
}

/** A ceiling of 0 means none; an interval below 1 never grows. */
static void scale_after_clean(mixt__control *control, const mixt__scaling *scaling)
{
    control->overflows_left = hysteresis(scaling);
    control->clean_steps++;
    if (scaling->interval < 1 || control->clean_steps < scaling->interval)
        return;
    control->clean_steps = 0;
    float ceiling = scaling->ceiling > 0 ? scaling->ceiling : FLT_MAX;
    control->scale = fminf(control->scale * scaling->growth, ceiling);
}

/* Gradients arrive as scale times the mean gradient over the micro-steps. A non-finite one skips the update whatever
 * the scaling: step, lr and the schedule stay, and skipped counts. Otherwise, with norm = sqrt(sum_squares)/scale,
 * grad_factor = 1/scale · min(1, clip_norm/(norm + 1e-6)) and lr is the schedule's at the updates applied before. */
void mixt__control_advance(mixt__control *control, const mixt__update *update, double sum_squares, bool found_inf)
{
    const mixt__scaling *scaling = &update->scaling;
    bool dynamic = scaling->enabled && scaling->dynamic;
    double unscale = 1.0 / (double)control->scale, norm = sqrt(sum_squares) * unscale;
    control->used_scale = control->scale;
    control->grad_norm = (float)norm;
    control->found_inf = found_inf;
    if (found_inf) {
        control->skipped++;
        control->grad_factor = 0;
        if (dynamic)
            scale_after_overflow(control, scaling);
    } else {
        double clip = update->clip_norm > 0 ? fmin(1.0, update->clip_norm / (norm + 1e-6)) : 1.0;
        control->grad_factor = (float)(unscale * clip);
        control->lr = mixt__schedule_lr(&update->schedule, control->step);
        control->step++;
        if (dynamic)
            scale_after_clean(control, scaling);
    }
    control->seed = seed(control->scale, update->accumulate);
}
