/* Two shadows of the trainer that take turns. */
#include "steer/faster.h"

#include "base/rng.h"
#include "policy/policy.h"
#include "steer/glance.h"
#include "train/shadow.h"

#include <time.h>

/** Seconds that this process's threads have computed, all together. */
static double spent(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static mixt_status spend(mixt__shadow *shadow, const mixt__shadow_batch *batch, double *seconds)
{
    double loss, start = spent();
    MIXT_TRY(mixt__shadow_run(shadow, batch, &loss));
    *seconds = spent() - start;
    return MIXT_OK;
}

/** @param shadows FP32's, then the run's own */
static mixt_status take_turns(mixt__shadow *shadows[2], const mixt__shadow_batch *batch, double *ratios)
{
    double seconds[2];
    for (int pair = -1; pair < MIXT_FASTER_PAIRS; pair++) { // the first warms up
        for (int turn = 0; turn < 2; turn++) {
            int which = pair & 1 ? 1 - turn : turn; // neither is always the first
            MIXT_TRY(spend(shadows[which], batch, &seconds[which]));
        }
        if (pair >= 0)
            ratios[pair] = seconds[1] > 0 && seconds[0] > 0 ? seconds[0] / seconds[1] : 1;
    }
    return MIXT_OK;
}

static mixt_status compare(const mixt__trainer *t, const mixt__shadow_batch *batch, mixt_judgement *judgement)
{
    const mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    const mixt__shadow_options options[2] = {{.policy = &fp32, .like_step = true},
                                             {.policy = &mixt__trainer_settings_of(t)->policy, .like_step = true}};
    mixt__shadow *shadows[2] = {NULL, NULL};
    double ratios[MIXT_FASTER_PAIRS];
    mixt_status status = MIXT_OK;
    for (int i = 0; i < 2 && status == MIXT_OK; i++)
        status = mixt__shadow_new(t, &options[i], &shadows[i]);
    if (status == MIXT_OK)
        status = take_turns(shadows, batch, ratios);
    for (int i = 0; i < 2; i++)
        mixt__shadow_free(shadows[i]);
    MIXT_TRY(status);
    return mixt_judge_ratios(MIXT_CLAIM_FASTER, ratios, MIXT_FASTER_PAIRS, 1, judgement);
}

mixt_status mixt__faster_measure(const mixt__trainer *t, const mixt_data *data, mixt_judgement *judgement)
{
    const mixt__trainer_settings *s = mixt__trainer_settings_of(t);
    mixt__glance g = {.trainer = t, .samples = s->batch};
    g.input = mixt__alloc(mixt_data_input_bytes(data, g.samples));
    g.target = mixt__alloc(mixt_data_target_bytes(data, g.samples));
    mixt_status status = g.input && g.target ? mixt__glance_read(&g, data, mixt__trainer_position(t))
                                             : mixt__fail(MIXT_ERROR_MEMORY, "no memory to time a batch");
    const mixt__shadow_batch batch = {.input = g.input, .target = g.target, .scale = mixt__glance_scale(t)};
    if (status == MIXT_OK)
        status = compare(t, &batch, judgement);
    mixt__glance_close(&g);
    return status;
}
