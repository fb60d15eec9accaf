/* What a data set is, seen from models: which of them can take it. */
#include "models/models.h"

#include "data/data.h"

#include <stdio.h>
#include <string.h>

int64_t mixt__model_features(const mixt_data_info *data, const char *name)
{
    for (int i = 2; i < data->array_count; i++)
        if (!strcmp(data->arrays[i].name, name) && data->arrays[i].rank == 1 &&
            data->arrays[i].dtype == MIXT_DTYPE_FP32)
            return data->arrays[i].elements;
    return 0;
}

int64_t mixt__model_days(const mixt_data_info *data)
{
    return data->array_count > 3 && !strcmp(data->arrays[2].name, "user.day") ? data->arrays[2].ids : 0;
}

const mixt_data_array *mixt__model_words(const mixt_data_info *data)
{
    bool table = data->array_count == 3 && !strcmp(data->arrays[1].name, MIXT_WORDS_INPUT) && data->arrays[1].ids &&
                 !strcmp(data->arrays[0].name, "input") && data->input_rank == 1;
    return table ? &data->arrays[1] : NULL;
}

bool mixt__model_packed(const mixt_data_info *data)
{
    return (data->array_count == 3 || mixt__model_prefers(data)) &&
           !strcmp(data->arrays[1].name, MIXT_POSITIONS_INPUT) && data->next_tokens;
}

mixt_value mixt__model_places(mixt_builder *b)
{
    return mixt_builder_has_input(b, MIXT_POSITIONS_INPUT) ? mixt_input(b, MIXT_POSITIONS_INPUT) : (mixt_value){0};
}

/** Ids of users and items, days and features where there are any, and a rating. */
static bool is_ratings(const mixt_data_info *data)
{
    int beside = 3 + (mixt__model_days(data) > 0) + (mixt__model_features(data, "user.features") > 0) +
                 (mixt__model_features(data, "item.features") > 0);
    return data->array_count == beside && !strcmp(data->arrays[0].name, "user") &&
           !strcmp(data->arrays[1].name, "item") && !strcmp(data->arrays[beside - 1].name, "rating") &&
           data->arrays[0].ids && data->arrays[1].ids;
}

/** Sentences and their translations. */
static bool is_sentences(const mixt_data_info *data)
{
    return data->array_count == 4 && !strcmp(data->arrays[0].name, "source") &&
           !strcmp(data->arrays[1].name, "source.length") && !strcmp(data->arrays[2].name, "previous") &&
           data->target == MIXT_TARGET_TOKENS;
}

static bool is_captions(const mixt_data_info *data)
{
    return data->array_count == 5 && !strcmp(data->arrays[0].name, "picture") &&
           !strcmp(data->arrays[1].name, "caption") && data->input_rank == 3;
}

/** Recordings: frames of features of different lengths. */
static bool is_recordings(const mixt_data_info *data)
{
    return data->input_rank == 2 && data->input_dtype == MIXT_DTYPE_FP32 &&
           mixt_data_array_find(data, "input.length") == 1;
}

/** Tokens of different lengths, and a class. */
static bool is_texts(const mixt_data_info *data)
{
    return data->array_count == 4 && !strcmp(data->arrays[0].name, "text") && data->arrays[0].ids &&
           data->target == MIXT_TARGET_CLASS;
}

static const char *describe(const mixt_data_info *data, char *text, size_t size)
{
    char shape[128];
    mixt__shape dims = mixt__shape_of(data->input_rank, data->input_dims);
    const mixt_data_array *words = mixt__model_words(data);
    if (words)
        snprintf(text, size, "rows of %lld numbers and %lld words", (long long)data->input_dims[0],
                 (long long)words->elements);
    else if (is_ratings(data))
        snprintf(text, size, "ratings");
    else if (is_captions(data))
        snprintf(text, size, "images with captions");
    else if (data->target == MIXT_TARGET_TEXT)
        snprintf(text, size, "recordings and the text in them");
    else if (is_sentences(data))
        snprintf(text, size, "sentences and their translations");
    else if (is_texts(data))
        snprintf(text, size, "labelled texts");
    else if (data->input_dtype == MIXT_DTYPE_INT32)
        snprintf(text, size, "sequences of %lld tokens", (long long)data->input_dims[0]);
    else if (data->input_rank == 1)
        snprintf(text, size, "rows of %lld numbers", (long long)data->input_dims[0]);
    else
        snprintf(text, size, "%s %s", mixt__shape_text(&dims, shape, sizeof shape),
                 data->input_rank == 3   ? "images"
                 : data->input_rank == 4 ? "clips"
                                         : "arrays");
    return text;
}

mixt_status mixt__model_check_input(const mixt__zoo_entry *entry, const mixt_data_info *data)
{
    static const char *const wants[] = {
        [MIXT_MODEL_NUMBERS] = "images or rows of numbers",
        [MIXT_MODEL_IMAGES] = "images (height, width, channels)",
        [MIXT_MODEL_CLIPS] = "clips (frames, height, width, channels)",
        [MIXT_MODEL_TOKENS] = "tokens",
        [MIXT_MODEL_PAIRS] = "ratings of items by users",
        [MIXT_MODEL_SENTENCES] = "sentences and their translations",
        [MIXT_MODEL_CAPTIONS] = "images with captions",
        [MIXT_MODEL_FRAMES] = "frames of features (frames, features), as recordings are",
        [MIXT_MODEL_TEXTS] = "labelled texts (data.kind=labelled)",
    };
    bool packed = mixt__model_packed(data);
    bool tokens = data->input_dtype == MIXT_DTYPE_INT32 && (data->array_count <= 2 || packed);
    bool fits = entry->input == MIXT_MODEL_PAIRS       ? is_ratings(data)
                : entry->input == MIXT_MODEL_SENTENCES ? is_sentences(data)
                : entry->input == MIXT_MODEL_CAPTIONS  ? is_captions(data)
                : data->target == MIXT_TARGET_TEXT     ? entry->input == MIXT_MODEL_FRAMES
                : entry->input == MIXT_MODEL_TEXTS     ? is_texts(data)
                : is_recordings(data)                  ? entry->input == MIXT_MODEL_FRAMES
                : mixt__model_words(data)              ? entry->fn == mixt__model_mlp
                : packed                               ? entry->packs
                : data->array_count > 2                ? false
                : entry->input == MIXT_MODEL_TOKENS    ? tokens
                : entry->input == MIXT_MODEL_IMAGES    ? !tokens && data->input_rank == 3
                : entry->input == MIXT_MODEL_FRAMES    ? !tokens && data->input_rank == 2
                : entry->input == MIXT_MODEL_CLIPS     ? !tokens && data->input_rank == 4
                                                       : !tokens;
    char has[192];
    if (packed && !fits && entry->input == MIXT_MODEL_TOKENS)
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "model %s cannot keep texts apart that share a row: open the data unpacked (data.pack=false)",
                          entry->name);
    if (!fits)
        return mixt__fail(MIXT_ERROR_SHAPE, "model %s needs %s, the data has %s", entry->name, wants[entry->input],
                          describe(data, has, sizeof has));
    return MIXT_OK;
}
