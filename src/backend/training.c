/* The arithmetic of a training step that every device shares, as functions of the host: control.h has its text.
 *
 * Pure functions of their arguments.
 */
#include "backend/training.h"

#include "backend/control.h"

int64_t mixt__update_chunks(const mixt__segment *segments, int64_t segment_count, int64_t chunk)
{
    int64_t chunks = 0;
    for (int64_t i = 0; i < segment_count; i++)
        chunks += (segments[i].count + chunk - 1) / chunk;
    return chunks;
}

size_t mixt__update_workspace(const mixt__segment *segments, int64_t segment_count)
{
    // Per chunk: its statistics, or LAMB's two sums of squares; per segment: LAMB's trust ratio.
    size_t chunks = (size_t)mixt__update_chunks(segments, segment_count, MIXT_UPDATE_CHUNK_MIN);
    return (32 * chunks + sizeof(float) * (size_t)segment_count + 63) / 64 * 64;
}

int mixt__optimizer_moments(const mixt__optimizer *optimizer)
{
    if (optimizer->kind == MIXT_OPTIMIZER_SGD)
        return optimizer->momentum != 0 ? 1 : 0;
    return 2;
}

float mixt__schedule_lr(const mixt__schedule *s, int64_t applied)
{
    return mixt__lr_after(s, applied);
}

void mixt__control_seal(mixt__control *control)
{
    control->sum = mixt__control_sum(control);
}

void mixt__control_bias(mixt__control *control, const mixt__optimizer *optimizer)
{
    control->inv_bias1 = mixt__inv_bias1(optimizer, control->step);
    control->inv_sqrt_bias2 = mixt__inv_sqrt_bias2(optimizer, control->step);
}

mixt__control mixt__control_start(const mixt__update *update)
{
    mixt__control control = {.scale = update->scaling.enabled ? update->scaling.initial : 1.0f, .bad_segment = -1};
    control.used_scale = control.scale;
    control.seed = mixt__seed(control.scale, update->accumulate);
    control.overflows_left = mixt__hysteresis(&update->scaling);
    control.lr = mixt__schedule_lr(&update->schedule, 0);
    mixt__control_bias(&control, &update->optimizer);
    mixt__control_seal(&control);
    return control;
}

void mixt__control_advance(mixt__control *control, const mixt__update *update, double sum_squares, bool found_inf)
{
    mixt__coming coming = {.lr = mixt__lr_after(&update->schedule, control->step),
                           .inv_bias1 = mixt__inv_bias1(&update->optimizer, control->step + 1),
                           .inv_sqrt_bias2 = mixt__inv_sqrt_bias2(&update->optimizer, control->step + 1)};
    mixt__control_next(control, update, sum_squares, found_inf, &coming);
}
