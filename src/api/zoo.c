/* The zoo behind its public header: the table in the user's words, and models that a context owns. */
#include "mixt/zoo.h"

#include "api/api.h"
#include "base/options.h"
#include "base/words.h"
#include "models/models.h"

#include <pthread.h>
#include <string.h>

static mixt_zoo_info info_of(const mixt__zoo_entry *e)
{
    static const mixt_zoo_input inputs[] = {
        [MIXT_MODEL_NUMBERS] = MIXT_ZOO_NUMBERS,     [MIXT_MODEL_IMAGES] = MIXT_ZOO_IMAGES,
        [MIXT_MODEL_CLIPS] = MIXT_ZOO_CLIPS,         [MIXT_MODEL_TOKENS] = MIXT_ZOO_TOKENS,
        [MIXT_MODEL_FRAMES] = MIXT_ZOO_FRAMES,       [MIXT_MODEL_PAIRS] = MIXT_ZOO_PAIRS,
        [MIXT_MODEL_SENTENCES] = MIXT_ZOO_SENTENCES, [MIXT_MODEL_TEXTS] = MIXT_ZOO_TEXTS,
        [MIXT_MODEL_CAPTIONS] = MIXT_ZOO_CAPTIONS,   [MIXT_MODEL_FILE] = MIXT_ZOO_FILE};
    return (mixt_zoo_info){e->name, e->summary, inputs[e->input], e->bidirectional, e->tokens};
}

bool mixt_zoo_at(int64_t index, mixt_zoo_info *info)
{
    int64_t at = 0;
    while (at < index && mixt__zoo[at].name)
        at++;
    if (index < 0 || !info || !mixt__zoo[at].name)
        return false;
    *info = info_of(&mixt__zoo[at]);
    return true;
}

mixt_status mixt_zoo_find(const char *name, mixt_zoo_info *info)
{
    const mixt__zoo_entry *entry;
    MIXT_TRY(mixt__need(name));
    MIXT_TRY(mixt__need(info));
    *info = (mixt_zoo_info){0};
    MIXT_TRY(mixt__model_find(name, &entry));
    *info = info_of(entry);
    return MIXT_OK;
}

enum { MODELS_MAX = 64, SIZES_MAX = 64 };
static char *fallbacks[MODELS_MAX][SIZES_MAX]; // by model and size, as long as the library is loaded

static void print_fallbacks(void)
{
    char text[64];
    for (int at = 0; mixt__zoo[at].name && at < MODELS_MAX; at++)
        for (int bit = 0; bit < SIZES_MAX && mixt__model_size(&mixt__zoo[at], bit, text, sizeof text); bit++)
            fallbacks[at][bit] = strdup(text);
}

int mixt_zoo_sizes(const char *model, mixt_zoo_size sizes[MIXT_ZOO_SIZES_MAX])
{
    const mixt__zoo_entry *entry;
    int count = 0;
    if (!model || mixt__model_find(model, &entry) != MIXT_OK)
        return 0;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char text[64];
    const char *name;
    pthread_once(&once, print_fallbacks);
    for (int bit = 0; count < MIXT_ZOO_SIZES_MAX && (name = mixt__model_size(entry, bit, text, sizeof text)); bit++) {
        const char *fallback = fallbacks[entry - mixt__zoo][bit];
        if (entry->uses >> bit & 1)
            sizes[count++] = (mixt_zoo_size){.name = name, .fallback = fallback ? fallback : ""};
    }
    return count;
}

/* ---- making one ---- */

static mixt_status copy_list(const char *what, const int64_t *from, int64_t count, int64_t *to, int64_t *to_count)
{
    if (count < 0 || count > MIXT_SIZES_MAX || (count && !from))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: %lld numbers%s; at most %d", what, (long long)count,
                          from ? "" : " at NULL", MIXT_SIZES_MAX);
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i];
    *to_count = count;
    return MIXT_OK;
}

static mixt_status copy_divisors(const char *what, const float *from, int64_t count, mixt__rope_divisors *to)
{
    if (count < 0 || count > MIXT_ROPE_PAIRS_MAX || (count && !from))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: %lld numbers%s; at most %d", what, (long long)count,
                          from ? "" : " at NULL", MIXT_ROPE_PAIRS_MAX);
    for (int64_t i = 0; i < count; i++)
        to->of[i] = from[i];
    to->count = count;
    return MIXT_OK;
}

/** NULL is the first choice: the model's own. */
static mixt_status choose(const char *what, const char *word, const char *choices, int *choice)
{
    char list[128], hint[96];
    *choice = word ? mixt__choice_find(choices, word) : 0;
    if (*choice >= 0)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT, "%s '%s': expected one of %s%s", what, word,
                      mixt__choice_list(choices, list, sizeof list),
                      mixt__choice_hint(choices, word, hint, sizeof hint));
}

/** Inside, 0 is the model's own. */
static mixt_status take_real(const char *name, double given, double *size)
{
    if (given == 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s 0: must be above 0", name);
    *size = given == MIXT_AUTO ? 0 : given;
    return MIXT_OK;
}

static mixt_status sizes_of(const mixt_zoo_options *o, mixt__model_sizes *s)
{
    int norm, shortcut, pool;
    MIXT_TRY(copy_list("hidden", o->hidden, o->hidden_count, s->hidden, &s->hidden_count));
    MIXT_TRY(copy_list("channels", o->channels, o->channel_count, s->channels, &s->channel_count));
    MIXT_TRY(choose("norm", o->norm, "auto|none|batch|layer", &norm)); // as the enums have them
    MIXT_TRY(choose("shortcut", o->shortcut, "auto|projection|pad", &shortcut));
    MIXT_TRY(choose("pool", o->pool, "auto|first|mean", &pool));
    s->layers = o->layers;
    s->width = o->width;
    s->heads = o->heads;
    s->vocab = o->vocab;
    s->depth = o->depth;
    s->classes = o->classes;
    s->seq = o->seq;
    s->dropout = o->dropout;
    s->norm = (mixt__model_norm)norm;
    s->shortcut = (mixt__model_shortcut)shortcut;
    s->zero_init = o->zero_init;
    s->kv_heads = o->kv_heads;
    s->inner = o->inner;
    s->tied = o->tied;
    MIXT_TRY(take_real("rope_theta", o->rope_theta, &s->rope_theta));
    s->rope_factor = o->rope_factor;
    s->rope_low = o->rope_low;
    s->rope_high = o->rope_high;
    s->rope_original = o->rope_original;
    MIXT_TRY(take_real("eps", o->eps, &s->eps));
    s->penalty = o->penalty;
    s->pool = (mixt__model_pool)pool;
    s->head_dim = o->head_dim;
    s->window = o->window;
    s->full_every = o->full_every;
    s->nope_every = o->nope_every;
    s->softcap = o->softcap;
    s->logit_cap = o->logit_cap;
    s->query_scale = o->query_scale;
    s->rope_dim = o->rope_dim;
    s->rope_local = o->rope_local;
    s->rope_magnitude = o->rope_magnitude;
    MIXT_TRY(copy_divisors("rope_short", o->rope_short, o->rope_pairs, &s->rope_short));
    MIXT_TRY(copy_divisors("rope_long", o->rope_long, o->rope_pairs, &s->rope_long));
    return MIXT_OK;
}

static mixt_status make(const char *name, const mixt_data *data, const mixt_zoo_options *o, mixt__model_sizes *sizes,
                        mixt__model *model)
{
    MIXT_TRY(mixt__need(name));
    MIXT_TRY(mixt__need_made(data, "data"));
    MIXT_TRY(sizes_of(o, sizes));
    const mixt_data_info *info = mixt_data_describe(data);
    MIXT_TRY(mixt__zoo_model(name, info, sizes, model));
    if (!(o->label_smoothing >= 0 && o->label_smoothing < 1))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "label_smoothing %g: must be from 0 to below 1",
                          (double)o->label_smoothing);
    if (o->label_smoothing > 0 && (info->target == MIXT_TARGET_VALUES || info->target == MIXT_TARGET_TEXT))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "label_smoothing is for classification, but the targets of %s are %s",
                          info->path, info->target == MIXT_TARGET_TEXT ? "texts" : "values");
    model->label_smoothing = o->label_smoothing;
    return MIXT_OK;
}

mixt_status mixt_zoo_model_with(mixt_context *context, const char *name, const mixt_data *data,
                                const mixt_zoo_options *options, mixt_model **model)
{
    mixt__model made = {0};
    MIXT_TRY(mixt__need(model));
    *model = NULL;
    MIXT_TRY(mixt__need_context(context));
    mixt__model_sizes *sizes = mixt__arena_alloc(&context->arena, sizeof *sizes);
    mixt_zoo_options o = MIXT_OPTIONS(mixt_zoo_options);
    mixt_status status = mixt__options(mixt_zoo_options, &o, options);
    if (status == MIXT_OK)
        status = sizes ? make(name, data, &o, sizes, &made) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a model");
    MIXT_TRY(mixt__context_note(context, status));
    *model = mixt__context_add_model(context, &made);
    return *model ? MIXT_OK : MIXT_ERROR_MEMORY;
}
