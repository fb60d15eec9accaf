/* Every sample of a set decoded, and how far that is from what was said: character and word error rate. */
#include "mixt/tasks/transcript.h"

#include "api/api.h"

#include <math.h>
#include <string.h>

/** Rows of one sample: letters, and words as numbers. */
typedef struct work {
    void *input, *target;
    float *output;
    int32_t *letters;        // (frames) as decoded
    int32_t *spoken, *heard; // (longest, frames) where words begin, then a number for each
    int64_t frames;
    const mixt_data *data;
    int32_t space; // the letter between words; -1: the alphabet has none
} work;

/** Where words begin, as offsets; returns how many. */
static int64_t cut_words(const work *w, const int32_t *letters, int64_t count, int32_t *begins)
{
    int64_t words = 0;
    for (int64_t i = 0; i < count; i++)
        if (letters[i] != w->space && (i == 0 || letters[i - 1] == w->space))
            begins[words++] = (int32_t)i;
    return words;
}

static int64_t word_length(const work *w, const int32_t *letters, int64_t count, int64_t begin)
{
    int64_t end = begin;
    while (end < count && letters[end] != w->space)
        end++;
    return end - begin;
}

/** A row of letters with its words. */
typedef struct line {
    const int32_t *letters;
    int64_t count, words;
    int32_t *begins; // (words), which numbers of the words take the place of
} line;

static bool same_word(const work *w, const line *a, int32_t a_begin, const line *b, int32_t b_begin)
{
    int64_t length = word_length(w, a->letters, a->count, a_begin);
    return length == word_length(w, b->letters, b->count, b_begin) &&
           !memcmp(a->letters + a_begin, b->letters + b_begin, (size_t)length * sizeof *a->letters);
}

/** Numbers the words of both rows, the same word by the same number, and measures their distance. */
static mixt_status word_distance(const work *w, line *said, line *heard, int64_t *distance)
{
    for (int64_t i = 0; i < heard->words; i++) {
        int32_t number = -1 - (int32_t)i; // of a word that was not said
        for (int64_t k = 0; k < said->words && number < 0; k++)
            if (same_word(w, heard, heard->begins[i], said, said->begins[k]))
                number = said->begins[k];
        heard->begins[i] = number;
    }
    for (int64_t i = said->words - 1; i > 0; i--) // a word that was said before has the number of its first place
        for (int64_t k = 0; k < i; k++)
            if (same_word(w, said, said->begins[i], said, said->begins[k])) {
                said->begins[i] = said->begins[k];
                break;
            }
    return mixt_edit_distance(said->begins, said->words, heard->begins, heard->words, distance);
}

static mixt_status compare(const work *w, const int32_t *target, int64_t length, int64_t count,
                           mixt_transcript_rates *rates)
{
    line said = {.letters = target, .count = length, .begins = w->spoken};
    line heard = {.letters = w->letters, .count = count, .begins = w->heard};
    int64_t letters, words;
    MIXT_TRY(mixt_edit_distance(target, length, w->letters, count, &letters));
    said.words = cut_words(w, target, length, w->spoken);
    heard.words = cut_words(w, w->letters, count, w->heard);
    MIXT_TRY(word_distance(w, &said, &heard, &words));
    rates->samples++;
    rates->exact += !letters;
    rates->letters += length;
    rates->letter_errors += letters;
    rates->words += said.words;
    rates->word_errors += words;
    return MIXT_OK;
}

/** The array of what is said. */
static const mixt_data_array *letters_of(const mixt_data_info *info)
{
    return &info->arrays[mixt_data_array_find(info, "target")];
}

static mixt_status measure(const work *w, mixt_trainer *trainer, int64_t beam, mixt_transcript_rates *rates)
{
    const mixt_data_info *info = mixt_data_describe(w->data);
    int64_t size = mixt__trainer_settings_of(trainer->inner)->eval_batch, longest = letters_of(info)->elements;
    for (int64_t first = 0; first < info->samples; first += size) {
        int64_t valid, count = info->samples - first < size ? info->samples - first : size;
        MIXT_TRY(mixt_data_read(w->data, first, count, w->input, w->target, &valid));
        MIXT_TRY(mixt_trainer_predict(trainer, w->input, valid, w->output));
        const char *block = w->target;
        size_t at_letters = mixt_data_array_at(w->data, count, mixt_data_array_find(info, "target"));
        size_t at_lengths = mixt_data_array_at(w->data, count, mixt_data_array_find(info, "target.length"));
        const int32_t *letters = (const int32_t *)(const void *)(block + at_letters);
        const int32_t *lengths = (const int32_t *)(const void *)(block + at_lengths);
        for (int64_t i = 0; i < valid; i++) {
            int64_t found;
            MIXT_TRY(mixt_transcript_decode(w->output + i * w->frames * info->classes, w->frames, info->classes, beam,
                                            w->letters, &found));
            MIXT_TRY(compare(w, letters + i * longest, lengths[i], found, rates));
        }
    }
    return MIXT_OK;
}

/** Shapes fit: the outputs are letters for a number of moments. */
static mixt_status check(mixt_trainer *trainer, const mixt_data *data, int64_t *frames)
{
    const mixt_data_info *info = mixt_data_describe(data);
    int64_t outputs, inputs = mixt__shape_count(&mixt__trainer_spec(trainer->inner)->input) /
                              mixt__trainer_spec(trainer->inner)->input.dims[0];
    if (info->target != MIXT_TARGET_TEXT || mixt_data_array_find(info, "target.length") < 0)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s:%s: its targets are not texts", info->kind, info->path);
    MIXT_TRY(mixt_trainer_outputs(trainer, &outputs));
    *frames = outputs / info->classes;
    if (inputs != info->arrays[0].elements || outputs % info->classes || !*frames)
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "%s (%s): samples of %lld numbers and %lld letters, but the model takes %lld and gives %lld",
                          info->path, info->split, (long long)info->arrays[0].elements, (long long)info->classes,
                          (long long)inputs, (long long)outputs);
    return MIXT_OK;
}

static void finish(mixt_transcript_rates *r)
{
    r->character_error = r->letters ? (double)r->letter_errors / (double)r->letters : (double)NAN;
    r->word_error = r->words ? (double)r->word_errors / (double)r->words : (double)NAN;
}

mixt_status mixt_transcript_measure(mixt_trainer *trainer, const mixt_data *data, int64_t beam,
                                    mixt_transcript_rates *rates)
{
    MIXT_TRY(mixt__need(rates));
    *rates = (mixt_transcript_rates){.character_error = (double)NAN, .word_error = (double)NAN};
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__need_made(data, "data"));
    work w = {.data = data, .space = -1};
    MIXT_TRY(check(trainer, data, &w.frames));
    const mixt_data_info *info = mixt_data_describe(data);
    for (int64_t i = 1; i < info->classes && info->class_names; i++)
        if (!strcmp(info->class_names[i], " "))
            w.space = (int32_t)i;
    int64_t size = mixt__trainer_settings_of(trainer->inner)->eval_batch, longest = letters_of(info)->elements;
    w.input = mixt__alloc(mixt_data_input_bytes(data, size));
    w.target = mixt__alloc(mixt_data_target_bytes(data, size));
    w.output = mixt__alloc((size_t)(size * w.frames * info->classes) * sizeof *w.output);
    w.letters = mixt__alloc((size_t)w.frames * sizeof *w.letters);
    w.heard = mixt__alloc((size_t)w.frames * sizeof *w.heard);
    w.spoken = mixt__alloc((size_t)longest * sizeof *w.spoken);
    mixt_status status = w.input && w.target && w.output && w.letters && w.heard && w.spoken
                             ? measure(&w, trainer, beam, rates)
                             : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a batch of predictions");
    void *const blocks[] = {w.input, w.target, w.output, w.letters, w.heard, w.spoken};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        mixt__free(blocks[i]);
    finish(rates);
    return status;
}
