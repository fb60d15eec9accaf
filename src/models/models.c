/* Finding a model of the table (zoo.c), filling in its sizes, checking them against the data. */
#include "models/models.h"

#include "base/c_locale.h"
#include "base/words.h"

#include <stdio.h>
#include <string.h>

mixt_status mixt__model_find(const char *name, const mixt__zoo_entry **entry)
{
    char list[512] = "";
    size_t used = 0;
    mixt__nearest nearest = {.wanted = name};
    if (mixt__model_is_file(name)) {
        *entry = &mixt__zoo_onnx;
        return MIXT_OK;
    }
    for (const mixt__zoo_entry *e = mixt__zoo; e->name; e++) {
        if (!strcmp(e->name, name)) {
            *entry = e;
            return MIXT_OK;
        }
        mixt__nearest_offer(&nearest, e->name);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", e->name);
    }
    *entry = NULL;
    const char *guess = mixt__nearest_get(&nearest);
    if (guess)
        return mixt__fail(MIXT_ERROR_CONFIG, "unknown model '%s' (did you mean %s?); expected one of %s", name, guess,
                          list);
    return mixt__fail(MIXT_ERROR_CONFIG, "unknown model '%s'; expected one of %s", name, list);
}

/* ---- sizes ---- */

static const char *const size_names[] = {
    "hidden",     "channels",       "layers",     "width",     "heads",         "vocab",       "depth",    "classes",
    "seq",        "dropout",        "norm",       "shortcut",  "zero_init",     "kv_heads",    "inner",    "tied",
    "rope_theta", "rope_factor",    "rope_low",   "rope_high", "rope_original", "eps",         "penalty",  "pool",
    "head_dim",   "window",         "full_every", "softcap",   "logit_cap",     "query_scale", "rope_dim", "rope_local",
    "nope_every", "rope_magnitude", "rope_short", "rope_long"};

enum { SIZE_COUNT = sizeof size_names / sizeof size_names[0] };

static void list_text(const int64_t *list, int64_t count, char *text, size_t room)
{
    size_t used = 0;
    for (int64_t i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%lld", i ? ", " : "", (long long)list[i]);
}

/** A model's default for one of its numbers; 0: the data says. */
static int64_t number_of(const mixt__zoo_entry *entry, uint64_t use)
{
    const mixt__model_sizes *s = &entry->sizes;
    switch (use) {
    case MIXT_USES_LAYERS:
        return s->layers;
    case MIXT_USES_WIDTH:
        return s->width;
    case MIXT_USES_HEADS:
        return s->width ? mixt__model_default_heads(s->width) : 0;
    case MIXT_USES_DEPTH:
        return s->depth;
    case MIXT_USES_SEQ:
        return s->seq;
    case MIXT_USES_FULL_EVERY:
        return s->full_every;
    case MIXT_USES_NOPE_EVERY:
        return s->nope_every;
    default:
        return 0;
    }
}

/** A model's default for one of its numbers that need not be whole; NULL: it is none of them. */
static const double *real_of(const mixt__model_sizes *s, int bit)
{
    const double *const reals[SIZE_COUNT] = {
        [16] = &s->rope_theta,    &s->rope_factor, &s->rope_low,    &s->rope_high,
        &s->rope_original,        &s->eps, // from the first bit of MIXT_USES_ROPE on
        [27] = &s->softcap,       &s->logit_cap,   &s->query_scale, [31] = &s->rope_local,
        [33] = &s->rope_magnitude};
    return bit >= 0 && bit < SIZE_COUNT ? reals[bit] : NULL;
}

const char *mixt__model_size(const mixt__zoo_entry *entry, int bit, char *fallback, size_t room)
{
    static const char *const norms[] = {"", "none", "batch", "layer"}, *const shortcuts[] = {"", "projection", "pad"};
    static const char *const pools[] = {"", "first", "mean"};
    const mixt__model_sizes *s = &entry->sizes;
    if (bit < 0 || bit >= SIZE_COUNT)
        return NULL;
    fallback[0] = 0;
    uint64_t use = UINT64_C(1) << bit;
    if (use & (MIXT_USES_HIDDEN | MIXT_USES_CHANNELS))
        list_text(use == MIXT_USES_HIDDEN ? s->hidden : s->channels,
                  use == MIXT_USES_HIDDEN ? s->hidden_count : s->channel_count, fallback, room);
    else if (use == MIXT_USES_NORM || use == MIXT_USES_SHORTCUT)
        snprintf(fallback, room, "%s", use == MIXT_USES_NORM ? norms[s->norm] : shortcuts[s->shortcut]);
    else if (use == MIXT_USES_POOL)
        snprintf(fallback, room, "%s", pools[s->pool]);
    else if (use == MIXT_USES_DROPOUT || use == MIXT_USES_PENALTY)
        mixt__print_number(fallback, room, "%g", (double)(use == MIXT_USES_DROPOUT ? s->dropout : s->penalty));
    else if (use == MIXT_USES_ZERO_INIT || use == MIXT_USES_TIED)
        snprintf(fallback, room, "%s", (use == MIXT_USES_TIED ? s->tied : s->zero_init) ? "true" : "false");
    else if (real_of(s, bit))
        mixt__print_number(fallback, room, "%g", *real_of(s, bit));
    else if (number_of(entry, use))
        snprintf(fallback, room, "%lld", (long long)number_of(entry, use));
    return size_names[bit];
}

/** The sizes that are set, as a mask of MIXT_USES_…. */
static uint64_t sizes_set(const mixt__model_sizes *s)
{
    const bool set[SIZE_COUNT] = {s->hidden_count,
                                  s->channel_count,
                                  s->layers,
                                  s->width,
                                  s->heads,
                                  s->vocab,
                                  s->depth,
                                  s->classes,
                                  s->seq,
                                  s->dropout > 0,
                                  s->norm != MIXT_NORM_AUTO,
                                  s->shortcut != MIXT_SHORTCUT_AUTO,
                                  s->zero_init,
                                  s->kv_heads,
                                  s->inner,
                                  s->tied,
                                  s->rope_theta != 0,
                                  s->rope_factor != 0,
                                  s->rope_low != 0,
                                  s->rope_high != 0,
                                  s->rope_original != 0,
                                  s->eps != 0,
                                  s->penalty > 0,
                                  s->pool != MIXT_POOL_AUTO,
                                  s->head_dim,
                                  s->window,
                                  s->full_every,
                                  s->softcap != 0,
                                  s->logit_cap != 0,
                                  s->query_scale != 0,
                                  s->rope_dim,
                                  s->rope_local != 0,
                                  s->nope_every,
                                  s->rope_magnitude != 0,
                                  s->rope_short.count,
                                  s->rope_long.count};
    uint64_t mask = 0;
    for (int i = 0; i < SIZE_COUNT; i++)
        mask |= (uint64_t)set[i] << i;
    return mask;
}

static mixt_status check_used(const mixt__zoo_entry *entry, const mixt__model_sizes *sizes)
{
    uint64_t foreign = sizes_set(sizes) & ~entry->uses;
    char list[512] = "";
    size_t used = 0;
    int first = 0;
    if (!foreign)
        return MIXT_OK;
    while (!(foreign >> first & 1))
        first++;
    for (int i = 0; i < SIZE_COUNT; i++)
        if (entry->uses >> i & 1)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", size_names[i]);
    return mixt__fail(MIXT_ERROR_CONFIG, "model %s has no %s; it has %s", entry->name, size_names[first], list);
}

static mixt_status check_ranges(const mixt__model_sizes *s)
{
    const int64_t numbers[SIZE_COUNT] = {[2] = s->layers,
                                         s->width,
                                         s->heads,
                                         s->vocab,
                                         s->depth,
                                         s->classes,
                                         s->seq,
                                         [13] = s->kv_heads,
                                         s->inner,
                                         [24] = s->head_dim,
                                         s->window,
                                         s->full_every,
                                         [30] = s->rope_dim,
                                         [32] = s->nope_every};
    for (int i = 0; i < SIZE_COUNT; i++)
        if (numbers[i] < 0 || numbers[i] > INT32_MAX)
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s %lld: must be 0 (the model's own) or above", size_names[i],
                              (long long)numbers[i]);
    for (int bit = 0; bit < SIZE_COUNT; bit++)
        if (real_of(s, bit) && !(*real_of(s, bit) >= 0 && *real_of(s, bit) <= 1e12))
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s %g: must be 0 (the model's own) or above", size_names[bit],
                              *real_of(s, bit));
    if (s->hidden_count < 0 || s->hidden_count > MIXT_SIZES_MAX || s->channel_count < 0 ||
        s->channel_count > MIXT_SIZES_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld hidden, %lld channels: at most %d of each",
                          (long long)s->hidden_count, (long long)s->channel_count, MIXT_SIZES_MAX);
    for (int64_t i = 0; i < s->hidden_count; i++)
        if (s->hidden[i] < 1)
            return mixt__fail(MIXT_ERROR_ARGUMENT, "hidden %lld: must be at least 1", (long long)s->hidden[i]);
    for (int64_t i = 0; i < s->channel_count; i++)
        if (s->channels[i] < 1)
            return mixt__fail(MIXT_ERROR_ARGUMENT, "channels %lld: must be at least 1", (long long)s->channels[i]);
    if (!(s->dropout >= 0 && s->dropout < 1))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "dropout %g: must be at least 0 and below 1", (double)s->dropout);
    if (!(s->penalty >= 0 && s->penalty <= 1e6f))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "penalty %g: must be at least 0 and at most a million",
                          (double)s->penalty);
    return MIXT_OK;
}

static void fill_number(int64_t *size, int64_t fallback)
{
    if (!*size)
        *size = fallback;
}

/* The nearest divisor below, so that it fits every width. */
int64_t mixt__model_default_heads(int64_t width)
{
    int64_t heads = width >= 64 ? width / 64 : 1;
    while (width % heads)
        heads--;
    return heads;
}

/** Rows of a table of tokens. Products whose sizes are multiples of 64 are far faster on Tensor Cores (50257: 50304);
 *  small vocabularies gain nothing. The loss leaves the padding out, so that it never has a share of a probability. */
static int64_t padded(int64_t vocab)
{
    return vocab < 16 * MIXT_VOCAB_STEP ? vocab : (vocab + MIXT_VOCAB_STEP - 1) / MIXT_VOCAB_STEP * MIXT_VOCAB_STEP;
}

static void fill(const mixt__zoo_entry *entry, const mixt_data_info *data, mixt__model_sizes *s)
{
    const mixt__model_sizes *own = &entry->sizes;
    if (!s->hidden_count) {
        memcpy(s->hidden, own->hidden, sizeof s->hidden);
        s->hidden_count = own->hidden_count;
    }
    if (!s->channel_count && !(entry->either && s->hidden_count)) {
        memcpy(s->channels, own->channels, sizeof s->channels);
        s->channel_count = own->channel_count;
    }
    fill_number(&s->layers, own->layers);
    fill_number(&s->width, own->width);
    fill_number(&s->depth, own->depth);
    if (s->norm == MIXT_NORM_AUTO)
        s->norm = own->norm;
    if (entry->uses & MIXT_USES_HEADS)
        fill_number(&s->heads, mixt__model_default_heads(s->width));
    if (entry->uses & MIXT_USES_KV_HEADS)
        fill_number(&s->kv_heads, s->heads);
    if (entry->uses & MIXT_USES_INNER) // three matrices with the weights of two four times as wide, in whole blocks
        fill_number(&s->inner, (8 * s->width / 3 + 63) / 64 * 64);
    s->rope_theta = s->rope_theta > 0 ? s->rope_theta : own->rope_theta;
    s->eps = s->eps > 0 ? s->eps : own->eps;
    s->decoder = entry->decoder;
    fill_number(&s->full_every, own->full_every);
    fill_number(&s->nope_every, own->nope_every);
    s->rope_local = s->rope_local > 0 ? s->rope_local : own->rope_local;
    if (s->pool == MIXT_POOL_AUTO)
        s->pool = own->pool;
    if (entry->uses & MIXT_USES_VOCAB)
        fill_number(&s->vocab, entry->input == MIXT_MODEL_TEXTS ? data->arrays[0].ids : data->classes);
    s->rows = padded(s->vocab);
    s->transcribes = data->target == MIXT_TARGET_TEXT;
    s->prefers = mixt__model_prefers(data);
    if (entry->uses & MIXT_USES_CLASSES)
        fill_number(&s->classes, data->target == MIXT_TARGET_VALUES ? data->target_elements : data->classes);
    if (entry->uses & MIXT_USES_SEQ)
        fill_number(&s->seq, data->input_dims[0] > own->seq ? data->input_dims[0] : own->seq);
}

/* ---- data ---- */

/** Every label of the data needs an output of the model. */
static mixt_status check_outputs(const mixt__zoo_entry *entry, const mixt_data_info *data, const mixt__model_sizes *s)
{
    bool tokens = entry->uses & MIXT_USES_VOCAB && entry->input != MIXT_MODEL_TEXTS;
    if (entry->input == MIXT_MODEL_TEXTS && s->vocab < data->arrays[0].ids)
        return mixt__fail(MIXT_ERROR_SHAPE, "model %s: vocab %lld, but the data has %lld tokens", entry->name,
                          (long long)s->vocab, (long long)data->arrays[0].ids);
    int64_t outputs = tokens ? s->vocab : s->classes;
    if (data->target == MIXT_TARGET_VALUES && outputs != data->target_elements)
        return mixt__fail(MIXT_ERROR_SHAPE, "model %s: classes %lld, but a target of the data has %lld values",
                          entry->name, (long long)outputs, (long long)data->target_elements);
    if (data->target != MIXT_TARGET_VALUES && (outputs < data->classes || outputs < 1))
        return mixt__fail(MIXT_ERROR_SHAPE, "model %s: %s %lld, but the data has %lld", entry->name,
                          tokens ? "vocab" : "classes", (long long)outputs, (long long)data->classes);
    return MIXT_OK;
}

/** A vector for each word: its width grows with the square root of how many there are. */
static void take_words(const mixt_data_array *words, mixt__model_sizes *sizes)
{
    enum { LEAST = 8, MOST = 64 };
    sizes->words = words->elements;
    sizes->ids = words->ids;
    for (sizes->word_width = LEAST; sizes->word_width < MOST; sizes->word_width *= 2)
        if (4 * sizes->word_width * sizes->word_width > words->ids)
            break;
}

mixt_status mixt__zoo_model(const char *name, const mixt_data_info *data, mixt__model_sizes *sizes, mixt__model *model)
{
    const mixt__zoo_entry *entry;
    MIXT_TRY(mixt__model_find(name, &entry));
    MIXT_TRY(check_used(entry, sizes));
    mixt_status status = check_ranges(sizes);
    if (status != MIXT_OK)
        return mixt__fail_context(status, "model %s", name);
    if (entry == &mixt__zoo_onnx)
        return mixt__onnx_model(name, data, sizes, model);
    MIXT_TRY(mixt__model_check_input(entry, data));
    fill(entry, data, sizes);
    if (entry->input == MIXT_MODEL_PAIRS) {
        sizes->users = data->arrays[0].ids;
        sizes->items = data->arrays[1].ids;
        sizes->user_features = mixt__model_features(data, "user.features");
        sizes->item_features = mixt__model_features(data, "item.features");
        sizes->days = mixt__model_days(data);
        sizes->shift = (float)data->target_mean;
    } else if (mixt__model_words(data)) {
        take_words(mixt__model_words(data), sizes);
        MIXT_TRY(check_outputs(entry, data, sizes));
    } else if (entry->input != MIXT_MODEL_CAPTIONS) {
        MIXT_TRY(check_outputs(entry, data, sizes));
    }
    status = entry->check ? entry->check(sizes, data) : MIXT_OK;
    if (status != MIXT_OK)
        return mixt__fail_context(status, "model %s", name);
    bool values = data->target == MIXT_TARGET_VALUES;
    *model = (mixt__model){.fn = entry->fn, .user = sizes, .loss = values ? MIXT_LOSS_MSE : MIXT_LOSS_CROSS_ENTROPY};
    if (values && !entry->own_loss && data->target_scale > 0) {
        model->target_mean = (float)data->target_mean;
        model->target_scale = (float)data->target_scale;
    }
    model->compares = entry->compares;
    if (entry->own_loss || sizes->transcribes || sizes->prefers)
        model->loss = MIXT_LOSS_CUSTOM;
    if (entry->uses & MIXT_USES_VOCAB && entry->input != MIXT_MODEL_TEXTS && sizes->rows > sizes->vocab)
        model->classes = sizes->vocab;
    return MIXT_OK;
}

mixt_value mixt__model_norm_layer(mixt_builder *b, const char *name, mixt_value x, mixt__model_norm norm)
{
    return mixt__model_norm_masked(b, name, x, norm, (mixt_value){0});
}

mixt_value mixt__model_norm_masked(mixt_builder *b, const char *name, mixt_value x, mixt__model_norm norm,
                                   mixt_value mask)
{
    if (norm == MIXT_NORM_BATCH)
        return mixt_batch_norm(b, name, x, .mask = mask);
    return norm == MIXT_NORM_LAYER ? mixt_layer_norm(b, name, x) : x;
}
