/* What a set of conversations tells of itself, and its samples one by one. */
#include "data/chat/chat.h"

#include "data/text/tokenizer.h"

#include <stdlib.h>

static int by_length(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

mixt_status mixt__chat_info_fill(mixt_data *data)
{
    mixt__chat_state *state = data->state;
    const mixt__chat_set *s = &state->set;
    mixt_chat_info *info = &state->info;
    int32_t *lengths = mixt__alloc_uninit((size_t)(s->count + 1) * sizeof *lengths);
    if (!lengths)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its lengths", data->kind->name, data->path);
    for (int64_t i = 0; i < s->count; i++)
        lengths[i] = s->sample[i].whole;
    qsort(lengths, (size_t)s->count, sizeof *lengths, by_length);
    *info = (mixt_chat_info){.form = mixt__chat_form_names[s->form],
                             .chat_template = state->chat->read ? state->chat->path : NULL,
                             .rows = s->rows,
                             .samples = s->count,
                             .tokens = s->tokens.count,
                             .trained_tokens = s->trained,
                             .cut = s->cut + s->lost,
                             .untrained = s->untrained,
                             .lost = s->lost,
                             .shortest = lengths[0],
                             .median = lengths[s->count / 2],
                             .longest = lengths[s->count - 1]};
    mixt__free(lengths);
    return MIXT_OK;
}

static mixt_status state_of(const mixt_data *data, const mixt__chat_state **state)
{
    MIXT_TRY(mixt__need_open(data, "data"));
    *state = mixt__chat_state_of(data);
    return *state ? MIXT_OK
                  : mixt__fail(MIXT_ERROR_ARGUMENT, "%s:%s: is %s, not a set of conversations (chat:%s)",
                               data->info.kind, data->path, data->kind->what, data->path);
}

mixt_status mixt_chat_describe(const mixt_data *data, const mixt_chat_info **info)
{
    const mixt__chat_state *state;
    MIXT_TRY(mixt__need(info));
    *info = NULL;
    MIXT_TRY(state_of(data, &state));
    *info = &state->info;
    return MIXT_OK;
}

mixt_status mixt_chat_read(const mixt_data *data, int64_t index, mixt_chat_sample *sample, int32_t *tokens,
                           bool *trained)
{
    const mixt__chat_state *state;
    MIXT_TRY(mixt__need(sample));
    MIXT_TRY(state_of(data, &state));
    if (index < 0 || index >= state->set.count)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "sample %lld, but %s:%s has %lld", (long long)index, data->info.kind,
                          data->path, (long long)state->set.count);
    const mixt__chat_sample *s = &state->set.sample[index];
    const uint32_t *ids = state->set.tokens.ids + s->begin;
    *sample = (mixt_chat_sample){.line = s->line, .count = s->count, .whole = s->whole};
    for (int64_t i = 0; tokens && i < s->count; i++)
        tokens[i] = (int32_t)(ids[i] & ~MIXT_CHAT_TRAINED);
    for (int64_t i = 0; trained && i < s->count; i++)
        trained[i] = i && ids[i] & MIXT_CHAT_TRAINED;
    return MIXT_OK;
}

const mixt_tokenizer *mixt_data_tokenizer(const mixt_data *data)
{
    return mixt__need_open(data, "data") == MIXT_OK ? data->tokenizer : NULL;
}
