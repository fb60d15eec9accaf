/* Rotary positions in config.json: three ways to write them, two kinds of scaled frequencies. */
#include "store/names_rope.h"

#include "base/status.h"

#include <string.h>

json_t *mixt__rope_pack(const mixt__name_facts *f)
{
    if (f->rope_factor <= 0)
        return json_null();
    if (f->rope_high <= 0)
        return json_pack("{s:s, s:f}", "rope_type", "linear", "factor", f->rope_factor);
    return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", f->rope_factor, "low_freq_factor",
                     f->rope_low, "high_freq_factor", f->rope_high, "original_max_position_embeddings",
                     (json_int_t)f->rope_original);
}

/** A number of an object; what `value` holds where there is none. False: there is something else. */
static bool take(const json_t *object, const char *key, double *value)
{
    const json_t *found = json_object_get(object, key);
    if (found && !json_is_null(found) && !json_is_number(found))
        return false;
    *value = json_is_number(found) ? json_number_value(found) : *value;
    return true;
}

mixt_status mixt__rope_read(const json_t *config, const char *path, mixt__name_facts *f)
{
    const json_t *scaling = json_object_get(config, "rope_parameters");
    if (!json_is_object(scaling))
        scaling = json_object_get(config, "rope_scaling");
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));
    type = type ? type : json_string_value(json_object_get(scaling, "type"));
    type = type ? type : "default";
    f->rope_theta = 10000;
    f->rope_factor = f->rope_low = f->rope_high = f->rope_original = 0;
    bool good = take(config, "rope_theta", &f->rope_theta) && take(scaling, "rope_theta", &f->rope_theta);
    if (strcmp(type, "default")) {
        bool smooth = !strcmp(type, "llama3");
        if (!smooth && strcmp(type, "linear"))
            return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                              "%s: rotary positions of kind '%s': the model here has default, linear and llama3", path,
                              type);
        f->rope_factor = 1;
        good = good && take(scaling, "factor", &f->rope_factor);
        if (smooth)
            good = good && take(scaling, "low_freq_factor", &f->rope_low) &&
                   take(scaling, "high_freq_factor", &f->rope_high) &&
                   take(scaling, "original_max_position_embeddings", &f->rope_original);
        good = good && f->rope_factor > 0 &&
               (!smooth || (f->rope_high > f->rope_low && f->rope_low >= 0 && f->rope_original > 0));
    }
    if (!good || !(f->rope_theta > 0))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: its numbers for rotary positions (rope_…) make no sense", path);
    return MIXT_OK;
}

mixt_status mixt__rope_check(const json_t *config, const char *path, const mixt__name_facts *facts)
{
    mixt__name_facts there = {0};
    MIXT_TRY(mixt__rope_read(config, path, &there));
    const struct {
        const char *name;
        double there, here;
    } numbers[] = {{"rope_theta", there.rope_theta, facts->rope_theta},
                   {"rope_factor", there.rope_factor, facts->rope_factor},
                   {"rope_low", there.rope_low, facts->rope_low},
                   {"rope_high", there.rope_high, facts->rope_high},
                   {"rope_original", there.rope_original, facts->rope_original}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].there != numbers[i].here)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: %s is %g, the model here has %g: choose net.%s to fit", path,
                              numbers[i].name, numbers[i].there, numbers[i].here, numbers[i].name);
    return MIXT_OK;
}
