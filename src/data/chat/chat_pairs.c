/* A pair as a row: tokens, the place of each in its own text, what it should say next, on which side that counts, and
 * the reference's score; the target, 1, says that the pair counts.
 */
#include "data/chat/chat_pairs.h"

#include "data/data.h"

#include <string.h>

enum { IDS, POSITIONS, NEXT, SIDE, REFERENCE, TARGET };

/** Tokens of a row: twice the longest text, so that another set of the same shape cuts texts where this one did. */
static int64_t places_of(const mixt__chat_set *set)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < set->count; i++)
        longest = set->sample[i].count > longest ? set->sample[i].count : longest;
    return 2 * (longest - 1);
}

mixt_status mixt__chat_pairs_describe(mixt_data *data, const mixt__chat_state *state, int64_t places)
{
    mixt_data_info *info = &data->info;
    int64_t seq = places ? places : places_of(&state->set);
    mixt_data_array *arrays = mixt__arena_alloc(&data->arena, MIXT_PAIR_ARRAYS * sizeof *arrays);
    if (!arrays)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its samples", data->kind->name, data->path);
    const mixt_data_array token = {.dtype = MIXT_DTYPE_INT32, .rank = 1, .dims = {seq}, .elements = seq},
                          one = {.dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {1}, .elements = 1};
    arrays[IDS] = arrays[POSITIONS] = arrays[NEXT] = arrays[SIDE] = token;
    arrays[REFERENCE] = arrays[TARGET] = one;
    arrays[IDS].name = "input";
    arrays[IDS].ids = data->tokenizer->size;
    arrays[POSITIONS].name = MIXT_POSITIONS_INPUT;
    arrays[POSITIONS].ids = seq;
    arrays[NEXT].name = MIXT_NEXT_INPUT;
    arrays[SIDE].name = MIXT_SIDE_INPUT;
    arrays[SIDE].dtype = MIXT_DTYPE_FP32;
    arrays[REFERENCE].name = MIXT_REFERENCE_INPUT;
    arrays[TARGET].name = "target";
    arrays[TARGET].target = true;
    info->samples = state->set.count / 2;
    info->arrays = arrays;
    info->array_count = MIXT_PAIR_ARRAYS;
    info->target = MIXT_TARGET_TOKENS;
    info->next_tokens = true;
    info->classes = data->tokenizer->size;
    return MIXT_OK;
}

/** One text from `filled` on; returns where it ends. */
static int64_t read_text(const mixt__chat_state *state, int64_t sample, float side, int64_t filled, int64_t places,
                         char *const *at)
{
    const mixt__chat_sample *s = &state->set.sample[sample];
    const uint32_t *ids = state->set.tokens.ids + s->begin;
    int32_t *tokens = (int32_t *)(void *)at[IDS], *positions = (int32_t *)(void *)at[POSITIONS],
            *next = (int32_t *)(void *)at[NEXT];
    float *sides = (float *)(void *)at[SIDE];
    int64_t count = s->count - 1 < places - filled ? s->count - 1 : places - filled;
    for (int64_t i = 0; i < count; i++) {
        bool counts = ids[i + 1] & MIXT_CHAT_TRAINED;
        tokens[filled + i] = (int32_t)(ids[i] & ~MIXT_CHAT_TRAINED);
        positions[filled + i] = (int32_t)i;
        next[filled + i] = counts ? (int32_t)(ids[i + 1] & ~MIXT_CHAT_TRAINED) : -1;
        sides[filled + i] = counts ? side : 0;
    }
    return filled + count;
}

void mixt__chat_pairs_read(const mixt__chat_state *state, int64_t index, int64_t places, char *const *at)
{
    int64_t filled = read_text(state, 2 * index, 1, 0, places, at);
    filled = read_text(state, 2 * index + 1, -1, filled, places, at);
    for (; filled < places; filled++) { // texts of one token each, which nothing is asked of
        ((int32_t *)(void *)at[IDS])[filled] = ((int32_t *)(void *)at[POSITIONS])[filled] = 0;
        ((int32_t *)(void *)at[NEXT])[filled] = -1;
        ((float *)(void *)at[SIDE])[filled] = 0;
    }
    *(float *)(void *)at[REFERENCE] = state->reference[index];
    *(float *)(void *)at[TARGET] = 1;
}

int64_t mixt__chat_pairs_count(const mixt_data *data)
{
    const mixt__chat_state *state = mixt__chat_state_of(data);
    return state && state->set.pairs ? state->set.count / 2 : 0;
}

mixt_status mixt__chat_pairs_refer(mixt_data *data, const float *scores)
{
    mixt__chat_state *state = data->state;
    size_t bytes = (size_t)(mixt__chat_pairs_count(data) + 1) * sizeof *scores;
    if (!state->reference)
        state->reference = mixt__alloc(bytes);
    if (!state->reference)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the reference's scores", data->path);
    memcpy(state->reference, scores, bytes - sizeof *scores);
    return MIXT_OK;
}
