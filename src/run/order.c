/* The seed of an epoch's order, before and after a change of it. */
#include "run/order.h"

#include "data/data.h"

json_t *mixt__run_order_pack(const mixt__experiment *e)
{
    const mixt_data *data = e->train;
    return json_pack("{s:I, s:I, s:I}", "seed", (json_int_t)mixt__data_order_seed(data, data->order_from), "before",
                     (json_int_t)data->order_before, "from", (json_int_t)data->order_from);
}

mixt_status mixt__run_order_restore(mixt_run *run, const json_t *packed)
{
    const mixt__experiment *e = &run->experiment;
    const mixt__trainer *t = e->trainer->inner;
    int64_t seed = mixt__config_int(run->config, MIXT_KEY_SEED), before = 0, from = 0;
    int64_t per_epoch = mixt__trainer_epoch_passes(t) ? mixt__trainer_epoch_passes(t) : 1,
            epoch = mixt__trainer_position(t) / per_epoch;
    if (packed) {
        MIXT_TRY(mixt__json_get_int(packed, "seed", 0, INT64_MAX, &seed));
        MIXT_TRY(mixt__json_get_int(packed, "before", 0, INT64_MAX, &before));
        MIXT_TRY(mixt__json_get_int(packed, "from", 0, INT64_MAX, &from));
    }
    if (mixt__data_order_seed(e->train, from) != (uint64_t)seed) {
        before = epoch < from ? before : seed;
        from = epoch + (mixt__trainer_position(t) % per_epoch != 0);
        mixt__run_note(run, false, "samples come in the order of data.order_seed from epoch %lld on",
                       (long long)from + 1);
    }
    mixt__data_order_before(e->train, (uint64_t)before, from);
    return MIXT_OK;
}
