/* Rotary positions in GGUF: linear scaling is a key, the others are factors that frequencies are divided by. */
#include "store/gguf_model.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

static const double TURN = 6.283185307179586;

/** What config.json says of the positions of layers that see everything. */
static const json_t *parameters(const mixt__gguf_model *m)
{
    const json_t *all = json_object_get(m->config, "rope_parameters"), *full = json_object_get(all, "full_attention");
    if (json_is_object(full))
        return full;
    return json_is_object(all) ? all : json_object_get(m->config, "rope_scaling");
}

static double number(const json_t *object, const char *key, double otherwise)
{
    const json_t *found = json_object_get(object, key);
    return json_is_number(found) ? json_number_value(found) : otherwise;
}

static const char *type_of(const mixt__gguf_model *m)
{
    const char *type = json_string_value(json_object_get(parameters(m), "rope_type"));
    type = type ? type : json_string_value(json_object_get(parameters(m), "type"));
    return type ? type : "default";
}

static double theta_of(const mixt__gguf_model *m)
{
    return number(parameters(m), "rope_theta", mixt__gguf_number(m, "rope_theta", m->family->windows == 6 ? 1e6 : 1e4));
}

/** Numbers of a head that are rotated. */
static int64_t rotated(const mixt__gguf_model *m)
{
    double share = number(parameters(m), "partial_rotary_factor", mixt__gguf_number(m, "partial_rotary_factor", 1));
    return (int64_t)(share * (double)m->head);
}

static double original(const mixt__gguf_model *m)
{
    return number(parameters(m), "original_max_position_embeddings",
                  mixt__gguf_number(m, "original_max_position_embeddings", (double)m->positions));
}

/* ---- factors ---- */

/** Llama 3's: high frequencies stay, low ones are divided by the factor, those between by something between. */
static mixt_status add_smooth(mixt__gguf_model *m)
{
    const json_t *p = parameters(m);
    double factor = number(p, "factor", 8), low = number(p, "low_freq_factor", 1);
    double high = number(p, "high_freq_factor", 4), before = number(p, "original_max_position_embeddings", 8192);
    int64_t count = rotated(m) / 2;
    float *values = mixt__arena_alloc(&m->arena, (size_t)count * sizeof *values + 1);
    if (!values)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for rotary positions", m->path);
    for (int64_t i = 0; i < count; i++) {
        double wave = TURN * pow(theta_of(m), (double)(2 * i) / (double)(2 * count));
        double smooth = (before / wave - low) / (high - low);
        double between = 1 / ((1 - smooth) / factor + smooth);
        values[i] = (float)(wave < before / high ? 1 : wave > before / low ? factor : between);
    }
    return mixt__gguf_model_add(m, "rope_freqs.weight", values, count);
}

static mixt_status add_list(mixt__gguf_model *m, const char *key, const char *name)
{
    const json_t *list = json_object_get(parameters(m), key);
    int64_t count = (int64_t)json_array_size(list);
    if (count != rotated(m) / 2)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %s has %lld numbers, expected %lld", m->path, key, (long long)count,
                          (long long)(rotated(m) / 2));
    float *values = mixt__arena_alloc(&m->arena, (size_t)count * sizeof *values + 1);
    if (!values)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for rotary positions", m->path);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)json_number_value(json_array_get(list, (size_t)i));
    return mixt__gguf_model_add(m, name, values, count);
}

mixt_status mixt__gguf_rope_tensors(mixt__gguf_model *m)
{
    const char *type = type_of(m), *architecture = m->family->architecture;
    bool phi3 = !strcmp(architecture, "phi3");
    if (!strcmp(architecture, "gpt2"))
        return MIXT_OK;
    if (rotated(m) != m->head && !phi3)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: partial_rotary_factor: GGUF's architecture %s cannot express it",
                          m->path, architecture);
    if (!strcmp(type, "default") || !strcmp(type, "linear"))
        return MIXT_OK;
    if (!strcmp(type, "llama3") && m->family->smooth)
        return add_smooth(m);
    if (!strcmp(type, "longrope") && phi3) {
        MIXT_TRY(add_list(m, "long_factor", "rope_factors_long.weight"));
        return add_list(m, "short_factor", "rope_factors_short.weight");
    }
    return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                      "%s: rotary positions of kind '%s': GGUF's architecture %s cannot express them", m->path, type,
                      architecture);
}

/* ---- keys ---- */

/** How much longer contexts make attention sharper: what stands in config.json, or what transformers makes of it. */
static double sharper(const mixt__gguf_model *m)
{
    double by = (double)m->positions / original(m);
    double own = by > 1 ? sqrt(1 + log(by) / log(original(m))) : 1;
    return number(parameters(m), "attention_factor", own);
}

mixt_status mixt__gguf_rope_fields(mixt__gguf_model *m, mixt__gguf_fields *fields)
{
    const char *type = type_of(m);
    char key[96];
    mixt__gguf_model_put(m, fields, "rope.dimension_count", rotated(m));
    mixt__gguf_model_put_real(m, fields, "rope.freq_base", theta_of(m));
    if (!strcmp(type, "linear")) {
        snprintf(key, sizeof key, "%s.rope.scaling.type", m->family->architecture);
        mixt__gguf_put_text(fields, key, type);
        mixt__gguf_model_put_real(m, fields, "rope.scaling.factor", number(parameters(m), "factor", 1));
    }
    if (!strcmp(type, "longrope"))
        mixt__gguf_model_put_real(m, fields, "rope.scaling.attn_factor", sharper(m));
    if (!strcmp(m->family->architecture, "phi3"))
        mixt__gguf_model_put(m, fields, "rope.scaling.original_context_length", (int64_t)original(m));
    if (m->family->windows == 6) { // Gemma 3: layers with a window have positions of their own
        const json_t *all = json_object_get(m->config, "rope_parameters");
        double theta = number(json_object_get(all, "sliding_attention"), "rope_theta",
                              mixt__gguf_number(m, "rope_local_base_freq", 1e4));
        mixt__gguf_model_put_real(m, fields, "rope.freq_base_swa", theta);
    }
    return MIXT_OK;
}
