/* Which kind of data a path looks like: by the files of a folder, by a name's ending, by a file's first bytes.
 */
#include "data/audio/audio.h"
#include "data/chat/chat.h"
#include "data/image/folder.h"
#include "data/image/listed.h"
#include "data/table/array_files.h"
#include "data/table/json_lines.h"
#include "data/text/inputs_text.h"

#include <string.h>

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && !strcmp(text + length - tail, ending);
}

/** A table is one of texts where it has a column of sentences and hardly anything else. */
static const mixt__data_kind *guess_table(const mixt_data *data, const char *path, bool texts)
{
    if (mixt__listed_looks(path))
        return &mixt__data_images;
    bool asked = data->options.columns || data->options.drop || data->options.inputs;
    return texts || (!asked && mixt__labelled_looks(path)) ? &mixt__data_labelled : &mixt__data_csv;
}

/** Whether the first of JSON lines has a key of conversations or instructions: else the lines are a table. */
static bool holds_conversations(const char *path)
{
    static const char *const keys[] = {"\"messages\"", "\"conversations\"", "\"conversation\"", "\"instruction\"",
                                       "\"prompt\"",   "\"question\"",      "\"response\"",     "\"answer\"",
                                       "\"output\"",   "\"completion\"",    "\"instances\""};
    mixt__bytes file;
    bool found = false;
    if (mixt__bytes_read_most(path, 1 << 18, &file) != MIXT_OK)
        return false;
    char *end = memchr(file.bytes, '\n', (size_t)file.size);
    if (end)
        *end = '\0';
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        found = found || strstr((const char *)file.bytes, keys[i]);
    mixt__bytes_free(&file);
    return found;
}

/** The kind that a folder looks like by the files that it has. @param texts rows of a table are texts */
static const mixt__data_kind *guess_folder(mixt_data *data, const char *path, bool texts)
{
    const char *train = mixt__arena_printf(&data->arena, "%s/train", path);
    bool apart = train && mixt__path_is_directory(train);
    const char *listed = mixt__path_find(data, path, "train.tsv");
    if (mixt__labelled_is_in(data, path))
        return listed && mixt__listed_looks(listed) ? &mixt__data_images : &mixt__data_labelled;
    const char *table = mixt__path_find(data, path, "train.csv");
    if (table)
        return guess_table(data, table, texts);
    if (mixt__ratings_file(data, path))
        return &mixt__data_ratings;
    if (mixt__path_find(data, path, "data_batch_1.bin") || mixt__path_find(data, path, "test_batch.bin") ||
        mixt__path_find(data, path, "train.bin"))
        return &mixt__data_cifar;
    if (mixt__chat_is_in(data, path))
        return &mixt__data_chat;
    if (mixt__cifar_is_in(data, path))
        return &mixt__data_cifar;
    if (mixt__path_find(data, path, "train.tokens"))
        return &mixt__data_tokens;
    if (mixt__path_find(data, apart ? train : path, MIXT_CAPTIONS))
        return &mixt__data_pairs;
    if (mixt__array_files_are_in(path))
        return &mixt__data_npz;
    if (mixt__recordings_are_in(apart ? train : path))
        return &mixt__data_audio;
    if (!mixt__images_are_in(apart ? train : path) && mixt__clips_are_in(apart ? train : path))
        return &mixt__data_video;
    if (apart)
        return &mixt__data_images;
    if (mixt__path_find(data, path, "train.txt"))
        return &mixt__data_text;
    if (mixt__parallel_is_in(data, path))
        return &mixt__data_parallel;
    if (mixt__listed_table(data, path, MIXT_PART_TRAIN))
        return &mixt__data_images;
    return !mixt__idx_is_in(data, path) && mixt__images_are_in(path) ? &mixt__data_images : &mixt__data_idx;
}

static bool is_set(const char *option)
{
    return option && *option;
}

const mixt__data_kind *mixt__data_guess(mixt_data *data, const char *path)
{
    bool texts = data->options.text || (data->options.like && mixt__are_texts(&data->options.like->info));
    static const struct {
        const char *ending;
        const mixt__data_kind *kind;
    } endings[] = {
        {".csv", &mixt__data_csv},      {".csv.gz", &mixt__data_csv},    {".tsv", &mixt__data_csv},
        {".tsv.gz", &mixt__data_csv},   {".npy", &mixt__data_npy},       {".npz", &mixt__data_npz},
        {".dat", &mixt__data_ratings},  {"-ubyte", &mixt__data_idx},     {"-ubyte.gz", &mixt__data_idx},
        {".idx", &mixt__data_idx},      {".txt", &mixt__data_text},      {".txt.gz", &mixt__data_text},
        {"/train", &mixt__data_idx},    {"/test", &mixt__data_idx},      {".tokens", &mixt__data_tokens},
        {".jsonl", &mixt__data_chat},   {".jsonl.gz", &mixt__data_chat}, {".json", &mixt__data_chat},
        {".json.gz", &mixt__data_chat}, {".ndjson", &mixt__data_chat},
    };
    const mixt__data_kind *kind = mixt__data_kind_find(path, strlen(path));
    if (kind && !mixt__path_is_file(path) && !mixt__path_is_directory(path))
        return kind; // "digits" for "digits:"
    if (mixt__path_is_directory(path))
        return guess_folder(data, path, texts);
    if (mixt__json_table_is(path) && mixt__path_is_file(path) && !holds_conversations(path)) {
        kind = guess_table(data, path, texts);
        if (kind == &mixt__data_labelled || !(is_set(data->options.vocab) || is_set(data->options.chat_template)))
            return kind; // else these are for conversations, and reading says what is wrong with them
    }
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (ends_with(path, endings[i].ending))
            return endings[i].kind == &mixt__data_csv ? guess_table(data, path, texts) : endings[i].kind;
    if (!mixt__path_is_file(path))
        return NULL;
    kind = mixt__sniff_kind(path);
    if (!kind && mixt__cifar_is_in(data, path))
        return &mixt__data_cifar;
    return kind ? kind : &mixt__data_text;
}
