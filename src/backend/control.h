/* The arithmetic of step control, written once for every device: schedules, bias corrections, loss scale, clip factor.
 *
 * Pure functions of their arguments, in C that nvcc compiles for the GPU too; training.c gives them their names on the
 * host. Not for use elsewhere: everyone else calls backend/training.h.
 */
#ifndef MIXT_BACKEND_CONTROL_H
#define MIXT_BACKEND_CONTROL_H

#include "backend/training.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#ifdef __CUDACC__
#define MIXT_DEVICE __host__ __device__
#else
#define MIXT_DEVICE
#endif

/** From `from` (progress 0) to `to` (progress 1) along half a cosine wave. */
static MIXT_DEVICE inline double mixt__cosine_between(double from, double to, double progress)
{
    const double pi = 3.14159265358979323846;
    return to + (from - to) * 0.5 * (1.0 + cos(pi * progress));
}

/** One cycle over n = total_steps updates, rise r = 0.3·n:
 *  lr(t) = cosine from lr/25 to lr at t/r for t < r, cosine from lr to min_lr at (t - r)/(n - r) after that. */
static MIXT_DEVICE inline double mixt__one_cycle(const mixt__schedule *s, double t)
{
    double n = (double)s->total_steps, rise = 0.3 * n;
    if (t >= n)
        return s->min_lr;
    if (t < rise)
        return mixt__cosine_between(s->lr / 25.0, s->lr, t / rise);
    return mixt__cosine_between(s->lr, s->min_lr, (t - rise) / (n - rise));
}

/* With a = applied updates, w = warmup, t = a - w, n = total_steps - w:
 *   warm-up (a < w)  lr·(a + 1)/(w + 1): the first update is not lost, and update w + 1 is the first at full lr
 *   constant         lr
 *   step             lr·gamma^floor(t/decay_steps), not below min_lr; decay_steps below 1 never decays
 *   cosine           min_lr + (lr - min_lr)·(1 + cos(pi·t/n))/2, min_lr from t = n on
 *   linear           lr + (min_lr - lr)·t/n, min_lr from t = n on
 *   one-cycle        see above; it has its own rise, so that warmup is not used */
static MIXT_DEVICE inline float mixt__lr_after(const mixt__schedule *s, int64_t applied)
{
    if (s->kind == MIXT_SCHEDULE_ONECYCLE)
        return (float)mixt__one_cycle(s, (double)applied);
    if (applied < s->warmup)
        return (float)(s->lr * ((double)applied + 1) / ((double)s->warmup + 1));
    int64_t t = applied - s->warmup, n = s->total_steps - s->warmup;
    double progress = t < n ? (double)t / (double)n : 1.0;
    switch (s->kind) {
    case MIXT_SCHEDULE_STEP: {
        int64_t drops = s->decay_steps < 1 ? 0 : t / s->decay_steps;
        double lr = s->lr * pow((double)s->gamma, (double)drops);
        return (float)fmax(lr, (double)s->min_lr);
    }
    case MIXT_SCHEDULE_COSINE:
        return (float)mixt__cosine_between(s->lr, s->min_lr, progress);
    case MIXT_SCHEDULE_LINEAR:
        return (float)(s->lr + ((double)s->min_lr - s->lr) * progress);
    default:
        return s->lr;
    }
}

/** 1/(1 - beta1^step): Adam's correction of its first moment; 1 for optimizers that need none. */
static MIXT_DEVICE inline float mixt__inv_bias1(const mixt__optimizer *optimizer, int64_t step)
{
    bool needed = optimizer->kind != MIXT_OPTIMIZER_SGD && step > 0;
    return needed ? (float)(1.0 / (1.0 - pow((double)optimizer->beta1, (double)step))) : 1.0f;
}

static MIXT_DEVICE inline float mixt__inv_sqrt_bias2(const mixt__optimizer *optimizer, int64_t step)
{
    bool needed = optimizer->kind != MIXT_OPTIMIZER_SGD && step > 0;
    return needed ? (float)(1.0 / sqrt(1.0 - pow((double)optimizer->beta2, (double)step))) : 1.0f;
}

static MIXT_DEVICE inline int32_t mixt__hysteresis(const mixt__scaling *scaling)
{
    return scaling->hysteresis > 1 ? scaling->hysteresis : 1;
}

static MIXT_DEVICE inline float mixt__seed(float scale, int64_t accumulate)
{
    return accumulate > 1 ? scale / (float)accumulate : scale;
}

/** Any overflow restarts the count of clean steps. The scale falls once `hysteresis` overflows came in a row, and from
 *  then on at each further overflow, until a clean step gives the full tolerance back: a scale that is known to be
 *  too high must not cost `hysteresis` updates for every halving. */
static MIXT_DEVICE inline void mixt__scale_after_overflow(mixt__control *control, const mixt__scaling *scaling)
{
    control->clean_steps = 0;
    if (control->overflows_left > 0)
        control->overflows_left--;
    if (control->overflows_left == 0)
        control->scale = fmaxf(control->scale * scaling->backoff, scaling->floor);
}

/** A ceiling of 0 means none; an interval below 1 never grows. */
static MIXT_DEVICE inline void mixt__scale_after_clean(mixt__control *control, const mixt__scaling *scaling)
{
    control->overflows_left = mixt__hysteresis(scaling);
    control->clean_steps++;
    if (scaling->interval < 1 || control->clean_steps < scaling->interval)
        return;
    control->clean_steps = 0;
    float ceiling = scaling->ceiling > 0 ? scaling->ceiling : FLT_MAX;
    control->scale = fminf(control->scale * scaling->growth, ceiling);
}

/** Of all of a control block but its sum. */
static MIXT_DEVICE inline uint64_t mixt__control_sum(const mixt__control *control)
{
    const uint32_t *words = (const uint32_t *)(const void *)control;
    uint64_t sum = 1; // a block of zeros is none
    for (size_t i = 0; i < offsetof(mixt__control, sum) / sizeof *words; i++)
        sum += words[i];
    return sum;
}

/** Whether what was read of a segment is not what was written. What an update that is applied has read went off what
 *  was written before it; what was read for one that is skipped stands below 0 by itself. */
static MIXT_DEVICE inline bool mixt__sums_differ(const mixt__update *update, const mixt__segment_sums *before,
                                                 const mixt__segment_sums *now, int what)
{
    if (update->control->found_inf)
        return before->words[what] + now->words[what] != 0;
    return before->words[what] != 0;
}

/** Notes that something is not as it was written; what was noted before stays. */
static MIXT_DEVICE inline void mixt__damage_note(mixt__damage *damage, int what, int64_t which)
{
    if (!damage->found++) {
        damage->what = what;
        damage->which = (int32_t)which;
    }
}

/** Before anything of it is changed: whether the block is what was written. */
static MIXT_DEVICE inline void mixt__control_check(const mixt__control *control, mixt__damage *damage)
{
    if (damage && control->sum != mixt__control_sum(control))
        mixt__damage_note(damage, MIXT_DAMAGED_CONTROL, -1);
}

/** What the coming update is made with if it is applied: known before its gradients are. */
typedef struct mixt__coming {
    float lr, inv_bias1, inv_sqrt_bias2;
} mixt__coming;

/* Gradients arrive as scale/gradient_factor times the mean gradient over the micro-steps. A non-finite one, or a norm
 * that FP32 cannot hold once it is divided by the scale, skips the update whatever the scaling: step, lr and the
 * schedule stay, and skipped counts. Otherwise, with norm = sqrt(sum_squares)·unscale, grad_factor = unscale · min(1,
 * clip_norm/(norm + 1e-6)) and lr is the schedule's at the updates applied before. */
static MIXT_DEVICE inline void mixt__control_next(mixt__control *control, const mixt__update *update,
                                                  double sum_squares, bool found_inf, const mixt__coming *coming)
{
    const mixt__scaling *scaling = &update->scaling;
    bool dynamic = scaling->enabled && scaling->dynamic;
    double unscale = update->gradient_factor / (double)control->scale, norm = sqrt(sum_squares) * unscale;
    control->grad_norm = (float)norm;
    found_inf = found_inf || update->skip || !(norm <= (double)FLT_MAX) || !(unscale <= (double)FLT_MAX);
    control->found_inf = found_inf;
    control->used_scale = control->scale;
    if (found_inf) {
        control->skipped++;
        control->grad_factor = 0;
        if (dynamic)
            mixt__scale_after_overflow(control, scaling);
    } else {
        double clip = update->clip_norm > 0 ? fmin(1.0, update->clip_norm / (norm + 1e-6)) : 1.0;
        control->grad_factor = (float)(unscale * clip);
        control->lr = coming->lr; // the schedule's at the updates applied before
        control->inv_bias1 = coming->inv_bias1;
        control->inv_sqrt_bias2 = coming->inv_sqrt_bias2;
        control->step++;
        if (dynamic)
            mixt__scale_after_clean(control, scaling);
    }
    control->seed = mixt__seed(control->scale, update->accumulate);
    control->sum = mixt__control_sum(control);
}

#endif
