/* Rotary positions in config.json: three ways to write them, three kinds of scaled frequencies, and those of layers
 * with a window apart.
 */
#include "store/names_rope.h"

#include "base/status.h"
#include "store/json.h"

#include <math.h>
#include <string.h>

/* ---- writing ---- */

static json_t *pack_divisors(const mixt__name_divisors *divisors)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < divisors->count; i++)
        if (mixt__json_add(list, json_real(divisors->of[i])))
            return json_decref(list), NULL;
    return list;
}

/** What cosines and sines are multiplied by where nothing is said of it. */
static double usual_magnitude(double factor, double original)
{
    return factor > 1 ? sqrt(1 + log(factor) / log(original)) : 1;
}

static json_t *pack_long(const mixt__name_facts *f)
{
    json_t *o = json_pack("{s:s, s:o, s:o}", "type", "longrope", "short_factor", pack_divisors(&f->rope_short),
                          "long_factor", pack_divisors(&f->rope_long));
    double magnitude = f->rope_magnitude > 0 ? f->rope_magnitude : 1;
    if (o && fabs(magnitude - usual_magnitude((double)f->positions / f->rope_original, f->rope_original)) > 1e-9)
        mixt__json_set(o, "attention_factor", json_real(magnitude));
    return o;
}

json_t *mixt__rope_pack(const mixt__name_facts *f)
{
    if (f->rope_short.count)
        return pack_long(f);
    if (f->rope_factor <= 0)
        return json_null();
    if (f->rope_high <= 0)
        return json_pack("{s:s, s:f}", "rope_type", "linear", "factor", f->rope_factor);
    return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", f->rope_factor, "low_freq_factor",
                     f->rope_low, "high_freq_factor", f->rope_high, "original_max_position_embeddings",
                     (json_int_t)f->rope_original);
}

json_t *mixt__rope_pack_share(const mixt__name_facts *f)
{
    return json_real(f->rope_dim && f->head_dim ? (double)f->rope_dim / (double)f->head_dim : 1);
}

/* ---- reading ---- */

/** A number of an object; what `value` holds where there is none. False: there is something else. */
static bool take(const json_t *object, const char *key, double *value)
{
    const json_t *found = json_object_get(object, key);
    if (found && !json_is_null(found) && !json_is_number(found))
        return false;
    *value = json_is_number(found) ? json_number_value(found) : *value;
    return true;
}

static bool take_divisors(const json_t *object, const char *key, mixt__name_divisors *divisors)
{
    const json_t *list = json_object_get(object, key);
    size_t count = json_array_size(list);
    if (!count || count > MIXT_NAME_DIVISORS_MAX)
        return false;
    divisors->count = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        divisors->of[i] = json_number_value(json_array_get(list, i));
        if (!(divisors->of[i] > 0) || isinf(divisors->of[i]))
            return false;
    }
    return true;
}

/** @param scaling the object, with its factors */
static bool take_long(const json_t *config, const json_t *scaling, mixt__name_facts *f)
{
    double factor = 0;
    bool good = take_divisors(scaling, "short_factor", &f->rope_short) &&
                take_divisors(scaling, "long_factor", &f->rope_long) && f->rope_short.count == f->rope_long.count &&
                take(config, "original_max_position_embeddings", &f->rope_original) &&
                take(scaling, "original_max_position_embeddings", &f->rope_original) &&
                take(scaling, "factor", &factor) && take(scaling, "attention_factor", &f->rope_magnitude);
    if (!good || !(f->rope_original > 1) || f->rope_magnitude < 0)
        return false;
    if (f->rope_magnitude == 0)
        f->rope_magnitude =
            usual_magnitude(factor > 0 ? factor : (double)f->positions / f->rope_original, f->rope_original);
    return true;
}

/** A key that would change the angles and is none of those that are read. */
static const char *unknown_key(const json_t *object)
{
    static const char *const known[] = {"rope_type",
                                        "type",
                                        "rope_theta",
                                        "factor",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "original_max_position_embeddings",
                                        "short_factor",
                                        "long_factor",
                                        "attention_factor",
                                        "partial_rotary_factor",
                                        "full_attention",
                                        "sliding_attention",
                                        NULL};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        int i = 0;
        while (known[i] && strcmp(known[i], key))
            i++;
        if (!known[i] && !json_is_null(value))
            return key;
    }
    return NULL;
}

/** How many numbers of a head turn. */
static mixt_status read_share(const mixt__names *names, const json_t *config, const json_t *scaling, const char *path,
                              mixt__name_facts *f)
{
    double share = 1;
    bool good = take(config, "partial_rotary_factor", &share) && take(scaling, "partial_rotary_factor", &share);
    if (!good || !(share > 0 && share <= 1))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: partial_rotary_factor makes no sense", path);
    f->rope_dim = share < 1 ? (int64_t)((double)f->head_dim * share) : 0;
    if (f->rope_dim && !names->partial)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: partial_rotary_factor is %g: the model here turns whole heads",
                          path, share);
    return MIXT_OK;
}

/** Frequencies of layers with a window, where they are apart. @param scaling that of the other layers in its place */
static mixt_status read_local(const mixt__names *names, const json_t *config, const char *path, const json_t **scaling,
                              mixt__name_facts *f)
{
    const json_t *local = json_object_get(*scaling, "sliding_attention");
    const json_t *full = json_object_get(*scaling, "full_attention");
    const char *type = json_string_value(json_object_get(local, "rope_type"));
    f->rope_local = names->rope_local;
    if ((local || full) && names->rope_local <= 0)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: rotary positions by kinds of layers: those of the model here are the same in all layers",
                          path);
    if (type && strcmp(type, "default"))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: rotary positions of kind '%s' in layers with a window", path,
                          type);
    if (names->rope_local > 0 &&
        !(take(config, "rope_local_base_freq", &f->rope_local) && take(local, "rope_theta", &f->rope_local)))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: rope_local_base_freq is not a number", path);
    *scaling = full ? full : *scaling;
    return MIXT_OK;
}

static mixt_status read_scaling(const json_t *config, const json_t *scaling, const char *path, const char *type,
                                mixt__name_facts *f)
{
    bool smooth = !strcmp(type, "llama3"), longer = !strcmp(type, "longrope") || !strcmp(type, "su"), good = true;
    if (!smooth && !longer && strcmp(type, "linear"))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: rotary positions of kind '%s': the model here has default, linear, llama3 and longrope",
                          path, type);
    if (longer) {
        good = take_long(config, scaling, f);
    } else {
        f->rope_factor = 1;
        good = take(scaling, "factor", &f->rope_factor) && f->rope_factor > 0;
    }
    if (smooth)
        good = good && take(scaling, "low_freq_factor", &f->rope_low) &&
               take(scaling, "high_freq_factor", &f->rope_high) &&
               take(scaling, "original_max_position_embeddings", &f->rope_original) && f->rope_high > f->rope_low &&
               f->rope_low >= 0 && f->rope_original > 0;
    return good ? MIXT_OK
                : mixt__fail(MIXT_ERROR_FORMAT, "%s: its numbers for rotary positions (rope_…) make no sense", path);
}

mixt_status mixt__rope_read(const mixt__names *names, const json_t *config, const char *path, mixt__name_facts *f)
{
    const json_t *scaling = json_object_get(config, "rope_parameters");
    if (!json_is_object(scaling))
        scaling = json_object_get(config, "rope_scaling");
    f->rope_theta = names->rope_theta > 0 ? names->rope_theta : 10000;
    f->rope_factor = f->rope_low = f->rope_high = f->rope_original = f->rope_magnitude = 0;
    MIXT_TRY(read_local(names, config, path, &scaling, f));
    MIXT_TRY(read_share(names, config, scaling, path, f));
    const char *unknown = unknown_key(scaling), *type = json_string_value(json_object_get(scaling, "rope_type"));
    if (unknown)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: its rotary positions have %s, of which the model here knows nothing", path, unknown);
    if (names->partial) { // its config.json has it, scaled or not
        f->rope_original = 4096;
        (void)take(config, "original_max_position_embeddings", &f->rope_original);
    }
    type = type ? type : json_string_value(json_object_get(scaling, "type"));
    if (type && strcmp(type, "default"))
        MIXT_TRY(read_scaling(config, scaling, path, type, f));
    if (!take(config, "rope_theta", &f->rope_theta) || !take(scaling, "rope_theta", &f->rope_theta) ||
        !(f->rope_theta > 0) || f->rope_local < 0)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: its rope_… values are not possible", path);
    return MIXT_OK;
}

/* ---- comparing ---- */

static bool same_divisors(const mixt__name_divisors *a, const mixt__name_divisors *b)
{
    return a->count == b->count && !memcmp(a->of, b->of, (size_t)a->count * sizeof a->of[0]);
}

mixt_status mixt__rope_check(const char *path, const mixt__name_facts *there, const mixt__name_facts *facts)
{
    const struct {
        const char *name;
        double there, here;
    } numbers[] = {
        {"rope_theta", there->rope_theta, facts->rope_theta},
        {"rope_factor", there->rope_factor, facts->rope_factor},
        {"rope_low", there->rope_low, facts->rope_low},
        {"rope_high", there->rope_high, facts->rope_high},
        {"rope_original", there->rope_original, facts->rope_original},
        {"rope_magnitude", there->rope_magnitude, facts->rope_magnitude},
        {"rope_dim", (double)there->rope_dim, (double)facts->rope_dim},
        {"rope_local", there->window ? there->rope_local : 0, facts->window ? facts->rope_local : 0},
        {"full_every", there->window ? (double)there->full_every : 0, facts->window ? (double)facts->full_every : 0},
        {"nope_every", (double)there->nope_every, (double)facts->nope_every},
        {"window", (double)there->window, (double)facts->window}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i].there != numbers[i].here)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: %s is %g, the model here has %g: set net.%s to match", path,
                              numbers[i].name, numbers[i].there, numbers[i].here, numbers[i].name);
    if (!same_divisors(&there->rope_short, &facts->rope_short) || !same_divisors(&there->rope_long, &facts->rope_long))
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: short_factor and long_factor are not those of the model here: choose net.rope_short and "
                          "net.rope_long to fit",
                          path);
    return MIXT_OK;
}
