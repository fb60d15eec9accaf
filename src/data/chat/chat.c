/* Conversations and instructions as a data set: a sample is a row's tokens, and the targets are those that are trained,
 * one ahead; the others are -1, which no loss counts. Packed, several samples share a row of a batch, and the input
 * "positions" says where each begins: a model keeps them apart by it.
 *
 * Parts are files of a folder (train.jsonl, val.jsonl) or shares of one file. All is encoded when the set is opened.
 */
#include "data/chat/chat.h"

#include "data/chat/chat_pairs.h"
#include "data/chat/chat_spans.h"

#include <string.h>

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its samples", data->kind->name, data->path);
}

const mixt__chat_state *mixt__chat_state_of(const mixt_data *data)
{
    return data->kind == &mixt__data_chat ? data->state : NULL;
}

/* ---- files ---- */

static const char *find(mixt_data *data, const char *folder, mixt__part part)
{
    static const char *const names[][2] = {[MIXT_PART_TRAIN] = {"train", NULL},
                                           [MIXT_PART_VAL] = {"val", "validation"},
                                           [MIXT_PART_TEST] = {"test", NULL},
                                           [MIXT_PART_ALL] = {"train", NULL}};
    static const char *const endings[] = {".jsonl", ".json"};
    for (int i = 0; i < 4; i++) {
        const char *stem = names[part][i / 2];
        const char *name = stem ? mixt__arena_printf(&data->arena, "%s%s", stem, endings[i % 2]) : NULL;
        const char *path = name ? mixt__path_find(data, folder, name) : NULL;
        if (path)
            return path;
    }
    return NULL;
}

bool mixt__chat_is_in(mixt_data *data, const char *folder)
{
    return find(data, folder, MIXT_PART_TRAIN) != NULL;
}

/** The file of data->part, and which of its rows are the part's. @param chosen set to `count` rows, to be freed */
static mixt_status choose_rows(mixt_data *data, mixt__chat_rows *rows, int64_t **chosen, int64_t *count)
{
    bool folder = mixt__path_is_directory(data->path),
         rest = data->part == MIXT_PART_VAL || data->part == MIXT_PART_TEST;
    const char *train = folder ? find(data, data->path, MIXT_PART_TRAIN) : data->path;
    const char *own = folder && rest ? find(data, data->path, data->part) : NULL;
    mixt__shares shares;
    *count = 0;
    if (!own && !train)
        return mixt__part_missing(data);
    MIXT_TRY(mixt__chat_rows_read(own ? own : train, rows));
    mixt__part part = own ? MIXT_PART_ALL : data->part;
    MIXT_TRY(mixt__shares_of(data, rows->count, own || (folder && find(data, data->path, MIXT_PART_VAL)),
                             own || (folder && find(data, data->path, MIXT_PART_TEST)), &shares));
    *chosen = mixt__alloc_uninit((size_t)(rows->count + 1) * sizeof **chosen);
    if (!*chosen)
        return no_memory(data);
    int64_t most = data->options.limit ? data->options.limit : INT64_MAX;
    for (int64_t i = 0; i < rows->count && *count < most; i++)
        if (part == MIXT_PART_ALL || mixt__part_of_row(&shares, i) == part)
            (*chosen)[(*count)++] = i;
    return *count ? MIXT_OK : mixt__part_missing(data);
}

/* ---- tokenizer, template ---- */

/** What a text ends with: what the folder says, else what the vocabulary has for it. */
static mixt_status find_end(mixt_data *data, const mixt__chat_state *state, const char **end)
{
    const mixt_tokenizer *t = data->tokenizer;
    *end = mixt__chat_special(state->chat, "eos_token");
    if (*end || t->special.end < 0 || !t->vocabulary.count)
        return MIXT_OK;
    mixt__span piece = mixt__vocabulary_at(&t->vocabulary, t->special.end);
    char *text = mixt__arena_alloc(&data->arena, (size_t)piece.size + 1);
    if (!text)
        return no_memory(data);
    memcpy(text, piece.bytes, (size_t)piece.size);
    *end = text;
    return MIXT_OK;
}

static mixt_status take_codec(mixt_data *data, mixt__chat_state *state, mixt__chat_codec *codec)
{
    const mixt_data_options *o = &data->options;
    if (o->mask > 0)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s:%s: data.mask hides tokens of plain text, not of conversations",
                          data->kind->name, data->path);
    if (o->like && o->like->tokenizer && o->like->kind == data->kind)
        data->tokenizer = mixt__tokenizer_hold(o->like->tokenizer);
    else
        MIXT_TRY(mixt_tokenizer_open(o->tokenizer, o->vocab, &data->tokenizer));
    MIXT_TRY(mixt__chat_template_find(o->chat_template, o->vocab, &state->chat));
    *codec = (mixt__chat_codec){.tokenizer = data->tokenizer, .loss_on = o->loss_on};
    codec->chat = state->chat->read ? state->chat : NULL;
    codec->silent = codec->chat && mixt__chat_can_be_silent(codec->chat);
    return find_end(data, state, &codec->end);
}

/* ---- opening ---- */

/** Tells what became of rows. */
static mixt_status tell(mixt_data *data, const mixt__chat_set *s, int64_t most)
{
    const char *path = data->path;
    if (!s->count)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: not one of %lld rows has a token to train%s: raise data.seq, or see with 'mixt data' "
                          "what the template makes of them",
                          path, (long long)s->rows, s->lost ? " after the cut" : "");
    if (s->cut)
        MIXT_TRY(mixt__data_warn(data, "%s: %lld of %lld rows have more than %lld tokens and are cut there (data.seq)",
                                 path, (long long)(s->cut + s->lost), (long long)s->rows, (long long)most));
    if (s->untrained)
        MIXT_TRY(mixt__data_warn(data,
                                 "%s: %lld of %lld rows have no token to train and are left out (%lld lost all "
                                 "by the cut)",
                                 path, (long long)s->untrained, (long long)s->rows, (long long)s->lost));
    if (s->tally.alike)
        MIXT_TRY(mixt__data_warn(data,
                                 "%s: %lld of %lld pairs have the same answer twice: nothing is learned from them",
                                 path, (long long)s->tally.alike, (long long)s->rows));
    if (s->tally.thoughts)
        MIXT_TRY(mixt__data_note(data,
                                 "%s: the template writes an empty block of thoughts before %lld answers that "
                                 "have none: it is not trained",
                                 path, (long long)s->tally.thoughts));
    if (s->tally.found)
        MIXT_TRY(mixt__data_note(data,
                                 "%s: %lld answers are written otherwise in the whole conversation than where they "
                                 "end it: trained is what both have",
                                 path, (long long)s->tally.found));
    return MIXT_OK;
}

/** What this set must be like to be of use to the same model; NULL: nothing. */
static const mixt_data *model_of(const mixt_data *data)
{
    const mixt_data *like = data->options.like;
    return like && like->info.target == MIXT_TARGET_TOKENS && like->info.input_rank == 1 ? like : NULL;
}

static bool is_packed(const mixt_data *data)
{
    const mixt_data *like = model_of(data);
    return like ? mixt_data_array_find(&like->info, MIXT_POSITIONS_INPUT) > 0 : !data->options.unpacked;
}

static int64_t longest_of(const mixt__chat_set *set)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < set->count; i++)
        longest = set->sample[i].count > longest ? set->sample[i].count : longest;
    return longest;
}

/** Tokens of a row: those of the longest sample, or where several share one as many as were asked for. */
static int64_t places_of(const mixt_data *data, const mixt__chat_set *set)
{
    int64_t longest = longest_of(set) - 1, all = set->tokens.count - set->count;
    if (model_of(data))
        return model_of(data)->info.input_dims[0];
    return !is_packed(data) ? longest : all < data->options.seq ? all : data->options.seq;
}

static mixt_status describe(mixt_data *data, mixt__chat_state *state)
{
    mixt_data_info *info = &data->info;
    if (state->set.pairs)
        return mixt__chat_pairs_describe(data, state, model_of(data) ? model_of(data)->info.input_dims[0] : 0);
    int64_t seq = places_of(data, &state->set);
    bool packed = is_packed(data);
    mixt_data_array *arrays = mixt__arena_alloc(&data->arena, 3 * sizeof *arrays);
    if (!arrays)
        return no_memory(data);
    info->samples = state->set.count;
    if (packed)
        MIXT_TRY(mixt__chat_pack(&state->set, seq, data->options.in_order, &state->packing));
    if (packed)
        info->samples = state->packing.rows;
    if (packed && info->samples < state->set.count)
        MIXT_TRY(mixt__data_note(data, "%s: %lld samples share %lld rows of %lld tokens, of which %.1f%% are filled",
                                 data->path, (long long)state->set.count, (long long)info->samples, (long long)seq,
                                 100 * (double)(state->set.tokens.count - state->set.count) /
                                     ((double)info->samples * (double)seq)));
    const mixt_data_array ids = {.name = "input", .dtype = MIXT_DTYPE_INT32, .rank = 1, .dims = {seq}, .elements = seq};
    arrays[0] = arrays[1] = arrays[1 + packed] = ids;
    arrays[0].ids = arrays[1 + packed].ids = data->tokenizer->size;
    arrays[1].name = MIXT_POSITIONS_INPUT;
    arrays[1].ids = seq;
    arrays[1 + packed].ids = data->tokenizer->size;
    arrays[1 + packed].name = "target";
    arrays[1 + packed].target = true;
    info->arrays = arrays;
    info->array_count = 2 + packed;
    info->target = MIXT_TARGET_TOKENS;
    info->next_tokens = true;
    info->classes = data->tokenizer->size;
    return MIXT_OK;
}

/** Tokens that a sample may have: one more than a row, whose last one is only predicted. Of a pair both texts share it,
 *  half each. */
static int64_t most_of(const mixt_data *data)
{
    const mixt_data *like = model_of(data);
    bool shorter = like && like->info.input_dims[0] < data->options.seq;
    int64_t places = shorter ? like->info.input_dims[0] : data->options.seq;
    return (data->options.loss_on == MIXT_LOSS_ON_PREFERENCE ? places / 2 : places) + 1;
}

static mixt_status open(mixt_data *data)
{
    mixt__chat_rows rows = {0};
    mixt__chat_codec codec;
    int64_t *chosen = NULL, count = 0;
    mixt__teller teller = {data->options.progress, data->options.user};
    mixt_status status = MIXT_OK;
    mixt__chat_state *state = data->state = mixt__alloc(sizeof *state);
    if (!state)
        return no_memory(data);
    MIXT_TRY(mixt__need_seq(data));
    MIXT_TRY(take_codec(data, state, &codec));
    MIXT_TRY_CLEANUP(choose_rows(data, &rows, &chosen, &count));
    MIXT_TRY_CLEANUP(mixt__chat_set_make(&codec, &rows, chosen, count, most_of(data), teller, &state->set));
    MIXT_TRY_CLEANUP(tell(data, &state->set, most_of(data)));
    MIXT_TRY_CLEANUP(mixt__chat_info_fill(data));
    MIXT_TRY_CLEANUP(describe(data, state));
cleanup:
    mixt__chat_rows_free(&rows);
    mixt__free(chosen);
    return status;
}

/* ---- samples ---- */

/** Tokens and targets of one sample at the beginning of a row of `places`; returns how many of them it takes. */
static int64_t write_sample(const mixt__chat_state *state, int64_t index, int64_t places, int32_t *tokens,
                            int32_t *targets)
{
    const mixt__chat_sample *s = &state->set.sample[index];
    const uint32_t *ids = state->set.tokens.ids + s->begin;
    int64_t count = s->count - 1 < places ? s->count - 1 : places;
    for (int64_t i = 0; i < count; i++) {
        tokens[i] = (int32_t)(ids[i] & ~MIXT_CHAT_TRAINED);
        targets[i] = ids[i + 1] & MIXT_CHAT_TRAINED ? (int32_t)(ids[i + 1] & ~MIXT_CHAT_TRAINED) : -1;
    }
    return count;
}

/** A row: its samples one behind the other, and places that are texts of their own behind them. */
static mixt_status arrays(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                          char *const *at)
{
    const mixt__chat_state *state = data->state;
    if (state->set.pairs) {
        if (!state->reference)
            return mixt__fail(
                MIXT_ERROR_STATE,
                "%s: pairs of answers are trained and evaluated against a reference, whose scores are not "
                "known here: mixt train, finetune, eval and compare make them",
                data->path);
        mixt__chat_pairs_read(state, index, as->arrays[0].elements, at);
        return MIXT_OK;
    }
    bool packed = as->array_count == 3;
    int64_t places = as->arrays[0].elements, filled = 0;
    int32_t *tokens = (int32_t *)(void *)at[0], *positions = packed ? (int32_t *)(void *)at[1] : NULL,
            *targets = (int32_t *)(void *)at[1 + packed];
    int64_t first = packed ? state->packing.begin[index] : index,
            end = packed ? state->packing.begin[index + 1] : first + 1;
    (void)epoch;
    for (int64_t i = first; i < end; i++) {
        int64_t count = write_sample(state, packed ? state->packing.sample[i] : i, places - filled, tokens + filled,
                                     targets + filled);
        for (int64_t k = 0; k < count && packed; k++)
            positions[filled + k] = (int32_t)k;
        filled += count;
    }
    for (; filled < places; filled++) {
        tokens[filled] = 0; // behind all that counts: attention looks back only
        targets[filled] = -1;
        if (packed)
            positions[filled] = 0;
    }
    return MIXT_OK;
}

static void close(mixt_data *data)
{
    mixt__chat_state *state = data->state;
    if (!state)
        return;
    mixt__chat_set_free(&state->set);
    mixt__chat_packing_free(&state->packing);
    mixt__free(state->reference);
    mixt_chat_template_free(state->chat);
    mixt__free(state);
    data->state = NULL;
}

static const void *raw(const mixt_data *data, int index, size_t *bytes)
{
    const mixt__chat_set *set = &((const mixt__chat_state *)data->state)->set;
    *bytes = index ? (size_t)set->count * sizeof *set->sample : (size_t)set->tokens.count * sizeof *set->tokens.ids;
    return index == 0 ? (const void *)set->tokens.ids : index == 1 ? set->sample : NULL;
}

const mixt__data_kind mixt__data_chat = {
    .name = "chat",
    .what = "conversations and instructions",
    .uses = MIXT_DATA_WORDS | MIXT_DATA_SEQ | MIXT_DATA_CHAT,
    .open = open,
    .arrays = arrays,
    .close = close,
    .raw = raw,
};
