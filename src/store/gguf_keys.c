/* The keys that describe a model, and what its architecture there would compute otherwise. */
#include "store/gguf_model.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double mixt__gguf_number(const mixt__gguf_model *m, const char *key, double otherwise)
{
    const json_t *found = json_object_get(m->config, key);
    return json_is_number(found) ? json_number_value(found) : otherwise;
}

static const char *full_key(const mixt__gguf_model *m, const char *key, char room[96])
{
    snprintf(room, 96, "%s.%s", m->family->architecture, key);
    return room;
}

void mixt__gguf_model_put(const mixt__gguf_model *m, mixt__gguf_fields *fields, const char *key, int64_t value)
{
    char room[96];
    mixt__gguf_put_uint(fields, full_key(m, key, room), (uint32_t)value);
}

void mixt__gguf_model_put_real(const mixt__gguf_model *m, mixt__gguf_fields *fields, const char *key, double value)
{
    char room[96];
    mixt__gguf_put_float(fields, full_key(m, key, room), value);
}

static mixt_status refuse(const mixt__gguf_model *m, const char *what)
{
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: %s: GGUF's architecture %s cannot express that", m->path, what,
                      m->family->architecture);
}

static bool is(const mixt__gguf_model *m, const char *architecture)
{
    return !strcmp(m->family->architecture, architecture);
}

/* ---- windows of attention ---- */

/** Tokens that attention looks back at, where the family has a window; 0: all. */
static int64_t window_of(const mixt__gguf_model *m)
{
    if (json_is_false(json_object_get(m->config, "use_sliding_window")))
        return 0;
    bool asks = !strncmp(m->family->type, "qwen", 4) || is(m, "smollm3"); // whose windows are off by default
    if (asks && !json_is_true(json_object_get(m->config, "use_sliding_window")))
        return 0;
    return (int64_t)mixt__gguf_number(m, "sliding_window", 0);
}

/** Whether a layer has the window. */
static bool has_window(const mixt__gguf_model *m, int64_t layer)
{
    const json_t *types = json_object_get(m->config, "layer_types");
    const char *type = json_string_value(json_array_get(types, (size_t)layer));
    int64_t every = (int64_t)mixt__gguf_number(m, "sliding_window_pattern", m->family->windows);
    return type ? !strcmp(type, "sliding_attention") : every > 0 && (layer + 1) % every != 0;
}

static void put_windows(mixt__gguf_model *m, mixt__gguf_fields *fields, int64_t window)
{
    char room[96];
    mixt__gguf_model_put(m, fields, "attention.sliding_window", window);
    mixt__gguf_put_array(fields, full_key(m, "attention.sliding_window_pattern", room), MIXT_GGUF_BOOL, m->layers);
    for (int64_t i = 0; i < m->layers; i++)
        mixt__gguf_add_bool(fields, has_window(m, i));
}

/** Where the architecture has no windows, a context that fits into one is the same model. */
static int64_t context_of(mixt__gguf_model *m)
{
    int64_t window = window_of(m);
    if (m->family->windows || window < 1 || window >= m->positions)
        return m->positions;
    snprintf(m->note, sizeof m->note,
             "attention looks back at %lld tokens (sliding_window), which GGUF's architecture %s cannot express: the "
             "context is written as %lld, within which both are the same",
             (long long)window, m->family->architecture, (long long)window);
    return window;
}

/* ---- what cannot be expressed ---- */

static mixt_status check_scale(const mixt__gguf_model *m)
{
    double scale = mixt__gguf_number(m, "query_pre_attn_scalar", (double)m->head);
    double there = m->layers == m->family->widest ? (double)(m->width / m->heads) : (double)m->head;
    if (scale == there)
        return MIXT_OK;
    char what[96];
    snprintf(what, sizeof what, "query_pre_attn_scalar %g with heads of %lld", scale, (long long)m->head);
    return refuse(m, what);
}

/** SmolLM3: each fourth layer has no rotary positions, and that is fixed there. */
static mixt_status check_rotated(const mixt__gguf_model *m)
{
    const json_t *rotated = json_object_get(m->config, "no_rope_layers"); // 1: has them
    int64_t every = (int64_t)mixt__gguf_number(m, "no_rope_layer_interval", 4);
    for (int64_t i = 0; i < m->layers; i++) {
        bool there = (i + 1) % 4 != 0, here = (i + 1) % every != 0;
        if (json_is_array(rotated))
            here = json_integer_value(json_array_get(rotated, (size_t)i)) != 0;
        if (here != there)
            return refuse(m, "layers without rotary positions other than each fourth (no_rope_layers)");
    }
    return MIXT_OK;
}

static mixt_status check(const mixt__gguf_model *m)
{
    if (m->family->windows)
        MIXT_TRY(check_scale(m));
    if (is(m, "smollm3"))
        MIXT_TRY(check_rotated(m));
    if (is(m, "gemma2") && (!json_is_number(json_object_get(m->config, "attn_logit_softcapping")) ||
                            !json_is_number(json_object_get(m->config, "final_logit_softcapping"))))
        return refuse(m, "no soft caps (attn_logit_softcapping, final_logit_softcapping)");
    if (is(m, "gemma3") && json_is_number(json_object_get(m->config, "attn_logit_softcapping")))
        return refuse(m, "a soft cap of attention (attn_logit_softcapping)");
    if (!m->family->windows && !is(m, "gpt2") && !is(m, "llama") && !is(m, "qwen3") && m->head != m->width / m->heads)
        return refuse(m, "heads that are not whole shares of its width (head_dim)");
    return MIXT_OK;
}

/* ---- keys ---- */

static void put_general(const mixt__gguf_model *m, mixt__gguf_fields *fields, const char *name)
{
    mixt__gguf_put_text(fields, "general.architecture", m->family->architecture);
    mixt__gguf_put_text(fields, "general.type", "model");
    mixt__gguf_put_text(fields, "general.name", name);
    mixt__gguf_put_uint(fields, "general.file_type", mixt__gguf_file_type(m->type));
    if (mixt__gguf_block(m->type) > 1)
        mixt__gguf_put_uint(fields, "general.quantization_version", 2);
}

static void put_sizes(mixt__gguf_model *m, mixt__gguf_fields *fields)
{
    bool gpt2 = is(m, "gpt2");
    double inner = mixt__gguf_number(m, gpt2 ? "n_inner" : "intermediate_size", (double)(4 * m->width));
    double eps = mixt__gguf_number(m, gpt2 ? "layer_norm_epsilon" : "rms_norm_eps", gpt2 ? 1e-5 : 1e-6);
    mixt__gguf_model_put(m, fields, "vocab_size", m->vocab);
    mixt__gguf_model_put(m, fields, "context_length", context_of(m));
    mixt__gguf_model_put(m, fields, "embedding_length", m->width);
    mixt__gguf_model_put(m, fields, "block_count", m->layers);
    mixt__gguf_model_put(m, fields, "feed_forward_length", (int64_t)inner);
    mixt__gguf_model_put(m, fields, "attention.head_count", m->heads);
    mixt__gguf_model_put_real(m, fields, gpt2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon",
                              eps);
    if (gpt2)
        return;
    mixt__gguf_model_put(m, fields, "attention.head_count_kv", m->kv_heads);
    mixt__gguf_model_put(m, fields, "attention.key_length", m->head);
    mixt__gguf_model_put(m, fields, "attention.value_length", m->head);
}

mixt_status mixt__gguf_model_fields(mixt__gguf_model *m, mixt__gguf_fields *fields, const char *name)
{
    MIXT_TRY(check(m));
    put_general(m, fields, name);
    put_sizes(m, fields);
    double cap = mixt__gguf_number(m, "attn_logit_softcapping", 0);
    if (cap > 0)
        mixt__gguf_model_put_real(m, fields, "attn_logit_softcapping", cap);
    cap = mixt__gguf_number(m, "final_logit_softcapping", 0);
    if (cap > 0)
        mixt__gguf_model_put_real(m, fields, "final_logit_softcapping", cap);
    int64_t window = m->family->windows ? window_of(m) : 0;
    if (window > 0)
        put_windows(m, fields, window);
    if (is(m, "phi3"))
        mixt__gguf_model_put(m, fields, "attention.sliding_window", 0); // its own has no windows
    return is(m, "gpt2") ? MIXT_OK : mixt__gguf_rope_fields(m, fields);
}
