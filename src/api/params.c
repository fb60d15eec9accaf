/* Reading and writing parameters one by one, and the parts of a step by hand. */
#include "api/api.h"

#include "num/num.h"

#include <string.h>

static mixt_status need_params(const mixt__trainer *t, int64_t index)
{
    if (!mixt__trainer_params(t))
        return mixt__fail(MIXT_ERROR_STATE, "no parameters yet: compile the trainer first");
    if (index < 0 || index >= mixt__trainer_params(t)->count)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "parameter %lld: there are %lld", (long long)index,
                          (long long)mixt__trainer_params(t)->count);
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
    return mixt__need_made(t, "trainer") == MIXT_OK && mixt__trainer_params(t->inner)
               ? mixt__trainer_params(t->inner)->count
               : 0;
}

mixt_status mixt_trainer_param(const mixt_trainer *t, int64_t index, mixt_param_info *info)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, info));
    MIXT_TRY(mixt__context_note(t->context, need_params(t->inner, index)));
    const mixt__param *p = &mixt__trainer_params(t->inner)->table[index];
    *info = (mixt_param_info){
        .name = p->name, .rank = p->shape.rank, .count = p->count, .trainable = p->trainable && !p->frozen};
    memcpy(info->dims, p->shape.dims, sizeof info->dims);
    info->copy = mixt__trainer_params(t->inner)->copies[index].dtype;
    return MIXT_OK;
}

mixt_status mixt_trainer_param_get(const mixt_trainer *t, int64_t index, float *values)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, values));
    MIXT_TRY(mixt__context_note(t->context, need_values(t->inner, index)));
    return mixt__context_note(t->context, mixt__params_get(mixt__trainer_params(t->inner), (int32_t)index, values));
}

mixt_status mixt_trainer_grad_get(const mixt_trainer *t, int64_t index, float *values)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, values));
    MIXT_TRY(mixt__context_note(t->context, need_values(t->inner, index)));
    MIXT_TRY(mixt__context_note(t->context, mixt__trainer_need_gradients(t->inner)));
    return mixt__context_note(t->context,
                              mixt__params_get_grad(mixt__trainer_params(t->inner), (int32_t)index, values));
}

static mixt_status set(mixt__trainer *t, int64_t index, const float *values)
{
    MIXT_TRY(need_params(t, index));
    MIXT_TRY(mixt__trainer_take_weights(t));
    MIXT_TRY(mixt__params_set(mixt__trainer_params(t), (int32_t)index, values));
    return mixt__params_refresh_copies(mixt__trainer_params(t));
}

mixt_status mixt_trainer_param_set(mixt_trainer *t, int64_t index, const float *values)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, values));
    return mixt__context_note(t->context, set(t->inner, index, values));
}

mixt_status mixt_trainer_backward(mixt_trainer *t, const void *input, const void *target, float scale, double *loss)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, input));
    MIXT_TRY(mixt__need_in(t->context, target));
    return mixt__context_note(t->context, mixt__trainer_backward(t->inner, input, target, scale, loss));
}

mixt_status mixt_trainer_unscale(mixt_trainer *t, float scale, bool *finite)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    return mixt__context_note(t->context, mixt__trainer_unscale(t->inner, scale, finite));
}

mixt_status mixt_trainer_clip(mixt_trainer *t, float limit, double *norm)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    return mixt__context_note(t->context, mixt__trainer_clip(t->inner, limit, norm));
}

mixt_status mixt_trainer_apply(mixt_trainer *t, float lr)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    return mixt__context_note(t->context, mixt__trainer_apply(t->inner, lr));
}

mixt_status mixt_trainer_discard(mixt_trainer *t)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    return mixt__context_note(t->context, mixt__trainer_discard(t->inner));
}
