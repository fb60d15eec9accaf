/* How one target to regress on is learned: with mean 0 and deviation 1 over the training part, or as it is stored. The
 * model does the arithmetic (model.h), so that predictions are in the target's units either way; here is decided which,
 * and told.
 */
#include "data/data.h"

/** Whether it is learned with mean 0 and deviation 1, by the options. */
static bool standard(const mixt_data *data)
{
    const mixt_data_options *o = &data->options;
    if (o->normalise_target != MIXT_NORMALISE_TARGET_AUTO)
        return o->normalise_target == MIXT_NORMALISE_TARGET_STANDARD;
    return !data->arrays && o->normalise == MIXT_NORMALISE_STANDARD; // a program's own are as it made them
}

mixt_status mixt__target_check(const mixt_data *data, bool values, int64_t elements, bool *one)
{
    bool asked = data->options.normalise_target == MIXT_NORMALISE_TARGET_STANDARD;
    *one = values && elements == 1;
    if (asked && !values)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: targets are classes, data.normalise_target=standard is for a target to regress on "
                          "(data.task=values)",
                          data->path);
    if (asked && !*one)
        return mixt__fail(
            MIXT_ERROR_CONFIG,
            "%s: %lld targets a sample, data.normalise_target=standard is for one: scale them in the file", data->path,
            (long long)elements);
    return MIXT_OK;
}

mixt_status mixt__target_learned(mixt_data *data, double mean, double deviation)
{
    mixt_data_info *info = &data->info;
    const mixt_data *like = data->options.like;
    bool scaled = like ? like->info.target_scale > 0 : standard(data) && deviation > 0;
    info->target_mean = !scaled ? 0 : like ? like->info.target_mean : mean;
    info->target_scale = !scaled ? 0 : like ? like->info.target_scale : deviation;
    if (like || data->arrays)
        return MIXT_OK;
    if (scaled)
        return mixt__data_note(data,
                               "target: mean %.4g, std %.4g: the loss is of (target - mean) / std, predictions and "
                               "other figures are in the target's units",
                               mean, deviation);
    if (data->options.normalise_target == MIXT_NORMALISE_TARGET_NONE)
        return mixt__data_note(
            data, "target: mean %.4g, std %.4g, learned as stored: the loss is in its units, squared", mean, deviation);
    return MIXT_OK;
}
