/* One table of the numbers that a configuration, a model of the zoo and a config.json have in common. */
#include "run/open/net_sizes.h"

#include "base/c_locale.h"
#include "base/status.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { SETTING_BYTES = 8192 };

typedef struct place {
    mixt__config_key key;
    uint64_t use;
    size_t size, fact; // offsets in mixt__model_sizes and mixt__name_facts
    bool real;         // a double in both, else an int64_t
    bool tensors;      // tensors tell it too, and of them alone facts are made
} place;

#define PLACE(name_of_key, name_of_use, name)                                                                          \
    .key = MIXT_KEY_NET_##name_of_key, .use = MIXT_USES_##name_of_use, .size = offsetof(mixt__model_sizes, name),      \
    .fact = offsetof(mixt__name_facts, name)

static const place places[] = {
    {PLACE(LAYERS, LAYERS, layers), .tensors = true},
    {PLACE(WIDTH, WIDTH, width), .tensors = true},
    {PLACE(HEADS, HEADS, heads), .tensors = true},
    {PLACE(KV_HEADS, KV_HEADS, kv_heads)},
    {PLACE(INNER, INNER, inner), .tensors = true},
    {PLACE(HEAD_DIM, HEAD_DIM, head_dim)},
    {PLACE(WINDOW, WINDOW, window)},
    {PLACE(FULL_EVERY, FULL_EVERY, full_every)},
    {PLACE(NOPE_EVERY, NOPE_EVERY, nope_every)},
    {PLACE(SOFTCAP, SOFTCAP, softcap), .real = true},
    {PLACE(LOGIT_CAP, LOGIT_CAP, logit_cap), .real = true},
    {PLACE(QUERY_SCALE, QUERY_SCALE, query_scale), .real = true},
    {PLACE(EPS, EPS, eps), .real = true},
    {PLACE(ROPE_THETA, ROPE, rope_theta), .real = true},
    {PLACE(ROPE_FACTOR, ROPE, rope_factor), .real = true},
    {PLACE(ROPE_LOW, ROPE, rope_low), .real = true},
    {PLACE(ROPE_HIGH, ROPE, rope_high), .real = true},
    {PLACE(ROPE_ORIGINAL, ROPE, rope_original), .real = true},
    {PLACE(ROPE_DIM, ROPE_DIM, rope_dim)},
    {PLACE(ROPE_LOCAL, ROPE_LOCAL, rope_local), .real = true},
    {PLACE(ROPE_MAGNITUDE, LONGROPE, rope_magnitude), .real = true},
};

enum { PLACES = sizeof places / sizeof places[0] };

static double number_at(const void *base, size_t offset, bool real)
{
    const char *at = (const char *)base + offset;
    return real ? *(const double *)(const void *)at : (double)*(const int64_t *)(const void *)at;
}

static void put_at(void *base, size_t offset, bool real, double value)
{
    char *at = (char *)base + offset;
    if (real)
        *(double *)(void *)at = value;
    else
        *(int64_t *)(void *)at = (int64_t)value;
}

static double number_of(const mixt_config *config, const place *p)
{
    return p->real ? mixt__config_float(config, p->key) : (double)mixt__config_int(config, p->key);
}

/* ---- divisors of frequencies: numbers between commas ---- */

static mixt_status read_divisors(const mixt_config *config, mixt__config_key key, int64_t *count, double *numbers)
{
    const char *text = mixt__config_string(config, key);
    *count = 0;
    while (*text) {
        char *end;
        double number = mixt__read_double(text, &end);
        end += strspn(end, " ");
        if (end == text || (*end && *end != ',') || !(number > 0 && number <= 1e30) || *count == MIXT_ROPE_PAIRS_MAX)
            return mixt__fail(MIXT_ERROR_CONFIG, "%s: expected numbers above 0 between commas, %d at most, got '%.40s'",
                              mixt__config_table[key].name, MIXT_ROPE_PAIRS_MAX, text);
        numbers[(*count)++] = number;
        text = *end ? end + 1 : end;
    }
    return MIXT_OK;
}

static mixt_status size_divisors(const mixt_config *config, mixt__config_key key, mixt__rope_divisors *divisors)
{
    double numbers[MIXT_ROPE_PAIRS_MAX];
    MIXT_TRY(read_divisors(config, key, &divisors->count, numbers));
    for (int64_t i = 0; i < divisors->count; i++)
        divisors->of[i] = (float)numbers[i];
    return MIXT_OK;
}

static mixt_status set_divisors(mixt_config *config, bool missing, mixt__config_key key,
                                const mixt__name_divisors *divisors, const char *origin)
{
    char text[SETTING_BYTES - 64] = "";
    size_t used = 0;
    for (int64_t i = 0; i < divisors->count && used + 32 < sizeof text; i++)
        used +=
            (size_t)mixt__print_number(text + used, sizeof text - used, i ? ",%.9g" : "%.9g", (double)divisors->of[i]);
    return mixt__net_size_set(config, missing, key, text, origin);
}

/* ---- the three places ---- */

mixt_status mixt__net_sizes_read(const mixt_config *config, mixt__model_sizes *sizes)
{
    for (int i = 0; i < PLACES; i++)
        put_at(sizes, places[i].size, places[i].real, number_of(config, &places[i]));
    sizes->tied = mixt__config_bool(config, MIXT_KEY_NET_TIED);
    MIXT_TRY(size_divisors(config, MIXT_KEY_NET_ROPE_SHORT, &sizes->rope_short));
    return size_divisors(config, MIXT_KEY_NET_ROPE_LONG, &sizes->rope_long);
}

mixt_status mixt__net_sizes_facts(const mixt_config *config, const mixt__zoo_entry *entry, mixt__name_facts *facts)
{
    int64_t positions = mixt__config_int(config, MIXT_KEY_NET_POSITIONS),
            seq = mixt__config_int(config, MIXT_KEY_DATA_SEQ);
    for (int i = 0; i < PLACES; i++) {
        const place *p = &places[i];
        double value = number_of(config, p);
        if (!p->tensors && entry->uses & p->use)
            put_at(facts, p->fact, p->real, value > 0 ? value : number_at(&entry->sizes, p->size, p->real));
    }
    facts->kv_heads = facts->kv_heads ? facts->kv_heads : facts->heads;
    facts->positions = positions ? positions : seq ? seq : entry->tokens;
    facts->tied = mixt__config_bool(config, MIXT_KEY_NET_TIED);
    facts->pad_token = -1; // unless a vocabulary has one
    MIXT_TRY(read_divisors(config, MIXT_KEY_NET_ROPE_SHORT, &facts->rope_short.count, facts->rope_short.of));
    return read_divisors(config, MIXT_KEY_NET_ROPE_LONG, &facts->rope_long.count, facts->rope_long.of);
}

mixt_status mixt__net_size_set(mixt_config *config, bool missing, mixt__config_key key, const char *value,
                               const char *origin)
{
    char setting[SETTING_BYTES];
    if (missing && mixt__config_was_set(config, key))
        return MIXT_OK;
    snprintf(setting, sizeof setting, "%s=%s", mixt__config_table[key].name, value);
    return mixt_config_set(config, setting, origin);
}

mixt_status mixt__net_size_set_number(mixt_config *config, bool missing, mixt__config_key key, double value,
                                      const char *origin)
{
    char text[64];
    mixt__print_number(text, sizeof text, "%.17g", value);
    return mixt__net_size_set(config, missing, key, text, origin);
}

mixt_status mixt__net_sizes_set(mixt_config *config, const mixt__zoo_entry *entry, const mixt__name_facts *facts,
                                bool missing, const char *origin)
{
    for (int i = 0; i < PLACES; i++)
        if (entry->uses & places[i].use)
            MIXT_TRY(mixt__net_size_set_number(config, missing, places[i].key,
                                               number_at(facts, places[i].fact, places[i].real), origin));
    if (entry->uses & MIXT_USES_LONGROPE) {
        MIXT_TRY(set_divisors(config, missing, MIXT_KEY_NET_ROPE_SHORT, &facts->rope_short, origin));
        MIXT_TRY(set_divisors(config, missing, MIXT_KEY_NET_ROPE_LONG, &facts->rope_long, origin));
    }
    if (entry->uses & MIXT_USES_ROPE && facts->positions)
        MIXT_TRY(mixt__net_size_set_number(config, missing, MIXT_KEY_NET_POSITIONS, (double)facts->positions, origin));
    if (entry->uses & MIXT_USES_TIED)
        MIXT_TRY(mixt__net_size_set(config, missing, MIXT_KEY_NET_TIED, facts->tied ? "true" : "false", origin));
    return MIXT_OK;
}
