/* Reading and writing parameters one by one, and the parts of a step by hand. */
#include "api/api.h"

#include "num/num.h"

#include <string.h>

static mixt_status need_params(const mixt__trainer *t, int64_t index)
{
    if (!t->params)
        return mixt__fail(MIXT_ERROR_STATE, "no parameters yet: compile the trainer first");
    if (index < 0 || index >= t->params->count)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "parameter %lld: there are %lld", (long long)index,
                          (long long)t->params->count);
    return MIXT_OK;
}

static mixt_status need_values(const mixt__trainer *t, int64_t index)
{
    MIXT_TRY(need_params(t, index));
    return mixt__trainer_has_weights(t)
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_STATE, "parameters have no values before the first step");
}

int64_t mixt_trainer_param_count(const mixt_trainer *t)
{
    return mixt__need_made(t, "trainer") == MIXT_OK && t->core.params ? t->core.params->count : 0;
}

mixt_status mixt_trainer_param(const mixt_trainer *t, int64_t index, mixt_param_info *info)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, info));
    MIXT_TRY(mixt__context_note(t->context, need_params(&t->core, index)));
    const mixt__param *p = &t->core.params->table[index];
    *info = (mixt_param_info){
        .name = p->name, .rank = p->shape.rank, .count = p->count, .trainable = p->trainable && !p->frozen};
    memcpy(info->dims, p->shape.dims, sizeof info->dims);
    info->copy = t->core.params->copies[index].dtype;
    return MIXT_OK;
}

mixt_status mixt_trainer_param_get(const mixt_trainer *t, int64_t index, float *values)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, values));
    MIXT_TRY(mixt__context_note(t->context, need_values(&t->core, index)));
    return mixt__context_note(t->context, mixt__params_get(t->core.params, (int32_t)index, values));
}

mixt_status mixt_trainer_grad_get(const mixt_trainer *t, int64_t index, float *values)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, values));
    MIXT_TRY(mixt__context_note(t->context, need_values(&t->core, index)));
    MIXT_TRY(mixt__context_note(t->context, mixt__trainer_need_gradients(&t->core)));
    return mixt__context_note(t->context, mixt__params_get_grad(t->core.params, (int32_t)index, values));
}

static mixt_status set(mixt__trainer *t, int64_t index, const float *values)
{
    MIXT_TRY(need_params(t, index));
    MIXT_TRY(mixt__trainer_take_weights(t));
    MIXT_TRY(mixt__params_set(t->params, (int32_t)index, values));
    return mixt__params_refresh_copies(t->params);
}

mixt_status mixt_trainer_param_set(mixt_trainer *t, int64_t index, const float *values)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, values));
    return mixt__context_note(t->context, set(&t->core, index, values));
}

mixt_status mixt_trainer_backward(mixt_trainer *t, const void *input, const void *target, float scale, double *loss)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, input));
    MIXT_TRY(mixt__need_in(t->context, target));
    return mixt__context_note(t->context, mixt__trainer_backward(&t->core, input, target, scale, loss));
}

mixt_status mixt_trainer_unscale(mixt_trainer *t, float scale, bool *finite)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    return mixt__context_note(t->context, mixt__trainer_unscale(&t->core, scale, finite));
}

mixt_status mixt_trainer_clip(mixt_trainer *t, float limit, double *norm)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    return mixt__context_note(t->context, mixt__trainer_clip(&t->core, limit, norm));
}

mixt_status mixt_trainer_apply(mixt_trainer *t, float lr)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    return mixt__context_note(t->context, mixt__trainer_apply(&t->core, lr));
}

mixt_status mixt_trainer_discard(mixt_trainer *t)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    return mixt__context_note(t->context, mixt__trainer_discard(&t->core));
}
