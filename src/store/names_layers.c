/* Windows and positions by layer in config.json: lists with an entry for each layer, or the rules that came before
 * them. Here every n-th layer differs from the others, counted from 1.
 */
#include "store/names_layers.h"

#include "base/status.h"
#include "store/json.h"

#include <string.h>

static const char *const full = "full_attention", *const sliding = "sliding_attention";

static bool has_window(const mixt__name_facts *f, int64_t layer)
{
    return f->window && !(f->full_every && (layer + 1) % f->full_every == 0);
}

static bool has_positions(const mixt__name_facts *f, int64_t layer)
{
    return !(f->nope_every && (layer + 1) % f->nope_every == 0);
}

/** Whether the list says so of a layer: 1 yes, 0 no, -1: it says something else. */
static int says(const json_t *list, const char *key, int64_t layer)
{
    const json_t *entry = json_array_get(list, (size_t)layer);
    const char *word = json_string_value(entry);
    if (!strcmp(key, "layer_types"))
        return word && !strcmp(word, sliding) ? 1 : word && !strcmp(word, full) ? 0 : -1;
    return json_is_true(entry) || json_integer_value(entry) == 1 ? 1
           : json_is_false(entry) || json_is_integer(entry)      ? 0
                                                                 : -1;
}

/** Which layers the list leaves out: each *every-th; one past the last layer: none. False: it has no such order. */
static bool find_order(const json_t *list, const char *key, int64_t layers, int64_t *every)
{
    *every = layers + 1;
    if ((int64_t)json_array_size(list) != layers)
        return false;
    for (int64_t i = 0; i < layers; i++) {
        int said = says(list, key, i);
        if (!said && *every > layers)
            *every = i + 1;
        if (said < 0 || said != ((i + 1) % *every != 0))
            return false;
    }
    return true;
}

static mixt_status order_fails(const char *path, const char *key)
{
    return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                      "%s: %s: the model here has an order in which every n-th layer differs from the others, and "
                      "an entry for each of its layers",
                      path, key);
}

/** Layers with a window by their list; where there is none, as `every` says. */
static mixt_status read_windows(const json_t *config, const char *path, int64_t every, mixt__name_facts *f)
{
    const json_t *list = json_object_get(config, "layer_types");
    f->full_every = every;
    if (json_is_array(list) && !find_order(list, "layer_types", f->layers, &f->full_every))
        return order_fails(path, "layer_types");
    if (f->full_every == 1)
        f->window = 0;
    return MIXT_OK;
}

/** Qwen's: where use_sliding_window is set, layers by their list, else those from max_window_layers on. */
static mixt_status read_used(const json_t *config, const char *path, mixt__name_facts *f)
{
    const json_t *from = json_object_get(config, "max_window_layers");
    int64_t first = json_is_integer(from) ? json_integer_value(from) : 28;
    if (!json_is_true(json_object_get(config, "use_sliding_window"))) {
        f->window = 0;
        return MIXT_OK;
    }
    if (json_is_array(json_object_get(config, "layer_types"))) {
        MIXT_TRY(read_windows(config, path, 0, f));
        first = !f->window ? f->layers : f->full_every > f->layers ? 0 : f->full_every - 1;
    }
    f->full_every = 0;
    if (first >= f->layers)
        f->window = 0;
    return first <= 0 || first >= f->layers
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_UNSUPPORTED,
                            "%s: the first %lld of %lld layers have no window, or others (max_window_layers, "
                            "layer_types): the model here has a window in all layers or in none",
                            path, (long long)first, (long long)f->layers);
}

static mixt_status read_pattern(const mixt__names *names, const json_t *config, const char *path, mixt__name_facts *f)
{
    const json_t *every = json_object_get(config, "sliding_window_pattern");
    every = every ? every : json_object_get(config, "_sliding_window_pattern");
    int64_t number = json_is_integer(every) ? json_integer_value(every) : names->full_every;
    return number > 0 ? read_windows(config, path, number, f)
                      : mixt__fail(MIXT_ERROR_FORMAT, "%s: sliding_window_pattern is %lld", path, (long long)number);
}

static mixt_status read_positions(const json_t *config, const char *path, mixt__name_facts *f)
{
    const json_t *list = json_object_get(config, "no_rope_layers");
    const json_t *every = json_object_get(config, "no_rope_layer_interval");
    f->nope_every = json_is_integer(every) ? json_integer_value(every) : 4;
    if (json_is_array(list) && json_array_size(list) && !find_order(list, "no_rope_layers", f->layers, &f->nope_every))
        return order_fails(path, "no_rope_layers");
    return f->nope_every > 0
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_FORMAT, "%s: no_rope_layer_interval is %lld", path, (long long)f->nope_every);
}

mixt_status mixt__layers_read(const mixt__names *names, const json_t *config, const char *path, mixt__name_facts *f)
{
    if (names->no_positions)
        MIXT_TRY(read_positions(config, path, f));
    switch (names->windows) {
    case MIXT_WINDOWS_USED:
        return read_used(config, path, f);
    case MIXT_WINDOWS_PATTERN:
        return f->window ? read_pattern(names, config, path, f) : MIXT_OK;
    case MIXT_WINDOWS_ALL:
        return MIXT_OK;
    case MIXT_WINDOWS_NONE:
        break;
    }
    if (!json_is_true(json_object_get(config, "use_sliding_window")))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: use_sliding_window is true: the model here has no window", path);
}

json_t *mixt__layers_pack(mixt__name_special special, const mixt__name_facts *f)
{
    if (special == MIXT_FIELD_USES_WINDOW)
        return json_boolean(f->window > 0);
    json_t *list = json_array();
    for (int64_t i = 0; i < f->layers; i++)
        if (mixt__json_add(list, special == MIXT_FIELD_LAYER_TYPES ? json_string(has_window(f, i) ? sliding : full)
                                                                   : json_integer(has_positions(f, i))))
            return json_decref(list), NULL;
    return list;
}
