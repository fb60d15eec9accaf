/* Recordings of words, by class: folders of WAV files, or words that mixt speaks itself.
 *
 * FOLDER/train, FOLDER/val and FOLDER/test, or FOLDER itself, which is then shared out: by the names that val_files and
 * test_files give, else at random. Files are read when a batch needs them, but each one's header when the set is
 * opened: what is cut off, of another coding or rate is named before the first step, and how long each is known. A
 * sample is the input "input", features of as many frames as the recording has, with "input.length" and "input.mask"
 * beside them; targets are classes, or what is said, letter by letter.
 */
#include "data/audio/audio.h"

#include <math.h>
#include <string.h>

enum { MEASURED = 512 }; // recordings that mean and deviation come from

/** The arrays of a set; the last where targets are texts. */
enum { INPUT, INPUT_LENGTH, INPUT_MASK, TARGET, TARGET_LENGTH };

static const int64_t voice_samples[MIXT_PART_COUNT] = {2000, 400, 400, 2000};

typedef struct audio_state {
    mixt__recordings list; // empty: words are drawn
    int64_t *rows;         // sample to recording; NULL: the same
    const char *const *classes;
    int64_t class_count;
    mixt__audio audio;
    float *mean, *std;       // (mels) in the data set's memory
    bool spells;             // targets are texts
    mixt__alphabet alphabet; // of those
    bool has_val, has_test;  // these parts have files of their own: the training folder is not shared with them
} audio_state;

/* ---- one sample ---- */

static uint64_t voice_key(const mixt_data *data, mixt__part part, int64_t row)
{
    return mixt__rng_key(data->options.seed, MIXT_STREAM_VOICE + (uint64_t)part, (uint64_t)row);
}

/** Recording `row` of a list, or word `row` of the part; its label where `label` is not NULL. */
static mixt_status load(const mixt_data *data, const mixt__recordings *list, mixt__part part, int64_t row,
                        mixt__wav *wav, int32_t *label)
{
    if (list->count) {
        if (label)
            *label = list->files[row].label;
        return mixt__audio_read(list->files[row].path, data->options.rate, wav);
    }
    *wav = (mixt__wav){.rate = MIXT_VOICE_RATE};
    wav->samples = mixt__alloc_uninit(MIXT_VOICE_SAMPLES * sizeof *wav->samples);
    if (!wav->samples)
        return mixt__fail(MIXT_ERROR_MEMORY, "audio: no memory for a word");
    uint64_t key = voice_key(data, part, row);
    int32_t drawn = mixt__voice_draw(key, wav->samples, &wav->count);
    if (label)
        *label = drawn;
    return MIXT_OK;
}

static mixt_status features_of(const mixt_data *data, const mixt__recordings *list, mixt__part part, int64_t row,
                               const uint64_t *key, float *features, int64_t *frames, int32_t *label)
{
    const audio_state *state = data->state;
    mixt__wav wav;
    MIXT_TRY(load(data, list, part, row, &wav, label));
    mixt_status status = mixt__audio_features(&state->audio, &wav, key, features, frames);
    mixt__wav_free(&wav);
    return status;
}

/** The part that words are drawn for. */
static mixt__part drawn_part(const mixt_data *data)
{
    return data->part == MIXT_PART_ALL ? MIXT_PART_TRAIN : data->part;
}

/** A sample's target: its class, or its letters and how many there are. */
static void write_target(const audio_state *state, int64_t row, int32_t label, char *const *at)
{
    const char *text = state->list.count ? state->list.files[row].text : mixt__voice_words[label];
    int32_t *target = (int32_t *)(void *)at[TARGET];
    if (state->spells)
        *(int32_t *)(void *)at[TARGET_LENGTH] = mixt__alphabet_spell(&state->alphabet, text, target);
    else
        *target = label;
}

/** What stands beside features: how many frames they have, and a mask; behind their end all is 0. */
static void write_lengths(const mixt_data_info *as, int64_t frames, char *const *at)
{
    float *features = (float *)(void *)at[INPUT], *mask = (float *)(void *)at[INPUT_MASK];
    int64_t room = as->arrays[INPUT].dims[0], mels = as->arrays[INPUT].dims[1];
    *(int32_t *)(void *)at[INPUT_LENGTH] = (int32_t)frames;
    for (int64_t t = 0; t < room; t++)
        mask[t] = t < frames ? 1.0f : 0.0f;
    memset(features + frames * mels, 0, (size_t)((room - frames) * mels) * sizeof *features);
}

static mixt_status sample_audio(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                                char *const *at)
{
    const audio_state *state = data->state;
    int64_t row = state->rows ? state->rows[index] : index, mels = state->audio.mel.mels, frames;
    uint64_t key =
        mixt__rng_key(mixt__rng_key(data->options.seed, MIXT_STREAM_AUGMENT, (uint64_t)epoch), (uint64_t)index, 0);
    float *features = (float *)(void *)at[INPUT];
    int32_t label = 0;
    MIXT_TRY(
        features_of(data, &state->list, drawn_part(data), row, epoch < 0 ? NULL : &key, features, &frames, &label));
    write_target(state, row, label, at);
    for (int64_t i = 0; i < frames * mels; i++)
        features[i] = (features[i] - state->mean[i % mels]) / state->std[i % mels];
    if (epoch >= 0 && (state->audio.time_mask || state->audio.mel_mask))
        mixt__audio_mask(&state->audio, mixt__rng_key(key, 1, 0), frames, features);
    write_lengths(as, frames, at);
    return MIXT_OK;
}

static int64_t length_audio(const mixt_data *data, int64_t index, int array)
{
    const audio_state *state = data->state;
    int64_t row = state->rows ? state->rows[index] : index;
    if (array != INPUT && array != INPUT_MASK)
        return -1;
    int64_t count =
        state->list.count ? state->list.files[row].samples : mixt__voice_length(voice_key(data, drawn_part(data), row));
    return mixt__audio_frames(&state->audio, count, true);
}

/** Frames that a text needs at least: one for each letter, and one between two that are the same. */
static int64_t frames_needed(const audio_state *state, const char *text, int32_t *letters)
{
    int64_t count = mixt__alphabet_spell(&state->alphabet, text, letters), needed = count;
    for (int64_t i = 1; i < count; i++)
        needed += letters[i] == letters[i - 1];
    return needed;
}

static void add_too_short(mixt__ctc_too_short *too_short, int64_t samples, const char *path, int64_t needed,
                          int64_t outputs)
{
    outputs = outputs > 0 ? outputs : 0;
    if (needed <= outputs)
        return;
    if (!too_short->count)
        *too_short = (mixt__ctc_too_short){.first = path, .needed = needed, .outputs = outputs};
    too_short->count += samples;
}

mixt_status mixt__audio_ctc_too_short(const mixt_data *data, int64_t window, int64_t stride,
                                      mixt__ctc_too_short *too_short)
{
    const audio_state *state = data->kind == &mixt__data_audio ? data->state : NULL;
    *too_short = (mixt__ctc_too_short){0};
    if (!state || !state->spells)
        return MIXT_OK;
    if (!state->list.count) {
        add_too_short(too_short, data->info.samples, "the longest word", MIXT_VOICE_LETTERS,
                      (state->audio.frames - window + stride) / stride);
        return MIXT_OK;
    }
    int32_t *letters = mixt__alloc((size_t)state->alphabet.longest * sizeof *letters);
    if (!letters)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
    for (int64_t i = 0; i < data->info.samples; i++) {
        const mixt__recording *r = &state->list.files[state->rows ? state->rows[i] : i];
        int64_t frames = mixt__audio_frames(&state->audio, r->samples, false);
        add_too_short(too_short, 1, r->path, frames_needed(state, r->text, letters),
                      (frames - window + stride) / stride);
    }
    mixt__free(letters);
    return MIXT_OK;
}

/* ---- statistics ---- */

/** Mean and deviation of each band over the frames of recordings of the training part, spread over the list. */
static mixt_status measure(const mixt_data *data, audio_state *state, const mixt__recordings *list, const int64_t *rows,
                           int64_t total)
{
    int64_t count = total < MEASURED ? total : MEASURED, mels = state->audio.mel.mels, frames = 0, all = 0;
    float *features = mixt__alloc_uninit((size_t)(state->audio.frames * mels) * sizeof *features);
    double *sums = mixt__alloc((size_t)mels * 2 * sizeof *sums);
    mixt_status status = features && sums ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
    for (int64_t i = 0; i < count && status == MIXT_OK; i++) {
        int64_t at = i * total / count;
        status = features_of(data, list, MIXT_PART_TRAIN, rows ? rows[at] : at, NULL, features, &frames, NULL);
        for (int64_t k = 0; k < frames * mels && status == MIXT_OK; k++) {
            sums[2 * (k % mels)] += (double)features[k];
            sums[2 * (k % mels) + 1] += (double)features[k] * (double)features[k];
        }
        all += frames;
    }
    for (int64_t m = 0; m < mels && status == MIXT_OK; m++) {
        double n = (double)all, mean = sums[2 * m] / n, variance = sums[2 * m + 1] / n - mean * mean;
        state->mean[m] = (float)mean;
        state->std[m] = variance > 1e-6 ? (float)sqrt(variance) : 1;
    }
    mixt__free(features);
    mixt__free(sums);
    return status;
}

/** `list` is where the training part's recordings are, `rows` which; both of the training part. */
static mixt_status normalise(mixt_data *data, audio_state *state, const mixt__recordings *list, const int64_t *rows,
                             int64_t count)
{
    const mixt_data_options *o = &data->options;
    int64_t mels = state->audio.mel.mels;
    state->mean = mixt__arena_alloc(&data->arena, (size_t)mels * 2 * sizeof *state->mean);
    if (!state->mean)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
    state->std = state->mean + mels;
    for (int64_t m = 0; m < mels; m++) {
        state->mean[m] = o->normalise == MIXT_NORMALISE_STANDARD ? o->mean : 0;
        state->std[m] = o->normalise == MIXT_NORMALISE_STANDARD && o->std != 0 ? o->std : 1;
    }
    if (o->normalise != MIXT_NORMALISE_STANDARD || o->std != 0)
        return MIXT_OK;
    if (!o->like)
        return measure(data, state, list, rows, count);
    if (o->like->info.channels != mels)
        return mixt__fail(MIXT_ERROR_DATA, "%s: %lld mel bands, but the data it must match (%s) has %lld", data->path,
                          (long long)mels, o->like->info.path, (long long)o->like->info.channels);
    memcpy(state->mean, o->like->info.mean, (size_t)mels * sizeof *state->mean);
    memcpy(state->std, o->like->info.std, (size_t)mels * sizeof *state->std);
    return MIXT_OK;
}

/* ---- opening ---- */

/** Every header of the list, for its length; where no rate was `given` all files get the lowest one: what a recording
 *  does not have, resampling does not add. */
static mixt_status probe(mixt_data *data, mixt__recordings *list, bool given)
{
    int64_t lowest = INT64_MAX, highest = 0;
    for (int64_t i = 0; i < list->count && !given; i++) {
        mixt__wav wav;
        MIXT_TRY(mixt__wav_probe(list->files[i].path, &wav));
        lowest = wav.rate < lowest ? wav.rate : lowest;
        highest = wav.rate > highest ? wav.rate : highest;
    }
    if (!given && list->count)
        data->options.rate = lowest;
    if (lowest < highest)
        MIXT_TRY(mixt__data_warn(data,
                                 "%s: recordings have %lld to %lld samples per second: all are resampled to %lld; "
                                 "data.rate sets another rate",
                                 data->path, (long long)lowest, (long long)highest, (long long)lowest));
    for (int64_t i = 0; i < list->count; i++) {
        mixt__wav wav;
        MIXT_TRY(mixt__wav_probe(list->files[i].path, &wav));
        list->files[i].samples = mixt__resampled(wav.count, wav.rate, data->options.rate);
    }
    return MIXT_OK;
}

/** No recording is longer than a sample: what would be cut off is part of its text. */
static mixt_status check_lengths(const mixt__audio *audio, const mixt__recordings *list)
{
    for (int64_t i = 0; i < list->count; i++)
        MIXT_TRY(mixt__audio_fits(audio, list->files[i].path, list->files[i].samples, audio->mel.rate));
    return MIXT_OK;
}

/** The recordings of `part` in a list that is shared out. */
static mixt_status choose_rows(const mixt_data *data, const mixt__recordings *list, mixt__part part, int64_t **rows,
                               int64_t *count)
{
    const audio_state *state = data->state;
    mixt__shares shares;
    int64_t open = 0, filled = 0;
    for (int64_t i = 0; i < list->count; i++)
        open += list->files[i].part == MIXT_PART_ALL;
    *rows = NULL;
    *count = list->count;
    if (part == MIXT_PART_ALL)
        return MIXT_OK;
    MIXT_TRY(mixt__shares_of(data, open, state->has_val, state->has_test, &shares));
    *rows = mixt__alloc_uninit((size_t)list->count * sizeof **rows);
    if (!*rows)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for an index of %lld files", data->path,
                          (long long)list->count);
    for (int64_t i = 0, row = 0; i < list->count; i++) {
        mixt__part its = list->files[i].part == MIXT_PART_ALL ? mixt__part_of_row(&shares, row++) : list->files[i].part;
        if (its == part)
            (*rows)[filled++] = i;
    }
    *count = filled;
    if (filled)
        return MIXT_OK;
    mixt__free(*rows);
    *rows = NULL;
    return mixt__part_missing(data);
}

/** The recordings of a folder: by class, or with what is said in them. */
static mixt_status list_in(mixt_data *data, const audio_state *state, const char *folder, mixt__recordings *list)
{
    if (!state->spells)
        return mixt__recordings_list(data, folder, list);
    MIXT_TRY(mixt__recordings_list_spoken(data, folder, list));
    return mixt__recordings_spell(data, !strcmp(folder, data->path), list);
}

/** Makes samples as long as a list's longest recording and text. */
static mixt_status make_room(mixt_data *data, audio_state *state, const mixt__recordings *list, double *seconds)
{
    for (int64_t i = 0; i < list->count; i++) {
        mixt__wav wav;
        int64_t letters = mixt__letters_of(list->files[i].text);
        MIXT_TRY(mixt__wav_probe(list->files[i].path, &wav));
        int64_t rate = data->options.rate ? data->options.rate : wav.rate;
        *seconds = fmax(*seconds, (double)mixt__resampled(wav.count, wav.rate, rate) / (double)rate);
        state->alphabet.longest = letters > state->alphabet.longest ? letters : state->alphabet.longest;
    }
    return MIXT_OK;
}

/** Samples of all parts have one shape, which has room for the longest of any part: that of the set that this one is
 *  like, else all parts are looked through. */
static mixt_status find_room(mixt_data *data, audio_state *state, bool parts)
{
    const mixt_data *like = data->options.like;
    double seconds = 0;
    state->alphabet.longest = 1;
    int target = like && like->info.target == MIXT_TARGET_TEXT ? mixt_data_array_find(&like->info, "target") : -1;
    if (target >= 0) {
        state->alphabet.longest = like->info.arrays[target].dims[0];
        return MIXT_OK;
    }
    for (int part = MIXT_PART_TRAIN; part <= MIXT_PART_TEST; part++) {
        mixt__recordings list = {0};
        const char *folder = parts ? mixt__path_of_folder(data, (mixt__part)part) : part ? NULL : data->path;
        mixt_status status = folder ? list_in(data, state, folder, &list) : MIXT_OK;
        if (status == MIXT_OK)
            status = make_room(data, state, &list, &seconds);
        mixt__recordings_free(&list);
        MIXT_TRY(status);
    }
    if (!(data->options.seconds > 0))
        data->options.seconds = seconds;
    return MIXT_OK;
}

/** The letters of the training part; each recording of the own list fits into a sample, and so does its text. */
static mixt_status find_letters(mixt_data *data, audio_state *state, const mixt__recordings *train)
{
    int64_t longest = state->alphabet.longest;
    MIXT_TRY(mixt__alphabet_make(data, train, &state->alphabet));
    state->alphabet.longest = longest;
    for (int64_t i = 0; i < state->list.count; i++) {
        const mixt__recording *r = &state->list.files[i];
        if (mixt__letters_of(r->text) > longest)
            return mixt__fail(MIXT_ERROR_DATA,
                              "%s: its text has %lld letters, but the longest text of training has %lld", r->path,
                              (long long)mixt__letters_of(r->text), (long long)longest);
    }
    MIXT_TRY(mixt__recordings_warn_of_lines(data, &state->list));
    return mixt__alphabet_check(data, &state->list, &state->alphabet);
}

/** Classes are those of `like` where it names some, else those of the training list. */
static mixt_status find_classes(mixt_data *data, audio_state *state, const mixt__recordings *train)
{
    const mixt_data_info *like = data->options.like ? &data->options.like->info : NULL;
    if (like && like->class_names) {
        state->class_count = like->classes;
        const char **names = mixt__arena_alloc(&data->arena, (size_t)(like->classes + 1) * sizeof *names);
        for (int64_t i = 0; names && i < like->classes; i++) {
            names[i] = mixt__arena_strdup(&data->arena, like->class_names[i]);
            if (!names[i])
                names = NULL;
        }
        state->classes = names;
        return names ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its classes", data->path);
    }
    return mixt__recordings_classes(data, train, &state->classes, &state->class_count);
}

static mixt_status name_arrays(mixt_data *data, const audio_state *state)
{
    mixt_data_array *arrays = mixt__arena_alloc(&data->arena, (TARGET_LENGTH + 1) * sizeof *arrays);
    int64_t frames = state->audio.frames, mels = state->audio.mel.mels, longest = state->alphabet.longest;
    if (!arrays)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
    arrays[INPUT] = (mixt_data_array){.name = "input", .dtype = MIXT_DTYPE_FP32, .rank = 2, .dims = {frames, mels}};
    arrays[INPUT].elements = frames * mels;
    arrays[INPUT_LENGTH] = (mixt_data_array){.name = "input.length", .dtype = MIXT_DTYPE_INT32, .elements = 1};
    arrays[INPUT_LENGTH].ids = frames + 1;
    arrays[INPUT_MASK] = (mixt_data_array){.name = "input.mask", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {frames}};
    arrays[INPUT_MASK].elements = frames;
    arrays[TARGET] = (mixt_data_array){.name = "target", .target = true, .dtype = MIXT_DTYPE_INT32, .elements = 1};
    arrays[TARGET].ids = data->info.classes;
    if (state->spells) {
        arrays[TARGET].rank = 1;
        arrays[TARGET].dims[0] = arrays[TARGET].elements = longest;
        arrays[TARGET_LENGTH] = (mixt_data_array){
            .name = "target.length", .target = true, .dtype = MIXT_DTYPE_INT32, .elements = 1, .ids = longest + 1};
    }
    data->info.arrays = arrays;
    data->info.array_count = state->spells ? TARGET_LENGTH + 1 : TARGET + 1;
    return MIXT_OK;
}

static mixt_status describe(mixt_data *data, audio_state *state, int64_t samples)
{
    mixt_data_info *info = &data->info;
    info->samples = samples;
    info->channels = state->audio.mel.mels;
    info->target = state->spells ? MIXT_TARGET_TEXT : MIXT_TARGET_CLASS;
    info->classes = data->options.classes > state->class_count ? data->options.classes : state->class_count;
    info->mean = state->mean;
    info->std = state->std;
    info->class_names = info->classes == state->class_count ? state->classes : NULL;
    if (state->spells) {
        info->classes = state->alphabet.count;
        info->class_names = state->alphabet.names;
    }
    return name_arrays(data, state);
}

/** Everything once the own list and that of the training part are there: the same one where no folder is the part's
 *  own. */
static mixt_status fill(mixt_data *data, audio_state *state, mixt__recordings *train)
{
    int64_t samples = state->list.count, trained = train->count, *train_rows = NULL;
    bool given = data->options.rate > 0;
    MIXT_TRY(state->spells ? find_letters(data, state, train) : find_classes(data, state, train));
    if (data->options.classes && data->options.classes < state->class_count)
        return mixt__fail(MIXT_ERROR_CONFIG, "audio:%s: has %lld classes, not %lld", data->path,
                          (long long)state->class_count, (long long)data->options.classes);
    if (!state->spells)
        MIXT_TRY(mixt__recordings_label(&state->list, state->classes, state->class_count));
    MIXT_TRY(probe(data, train, given));
    if (train != &state->list)
        MIXT_TRY(probe(data, &state->list, true)); // at the rate of the training part
    MIXT_TRY(mixt__audio_make(data->path, &data->options, &state->audio));
    if (state->spells)
        MIXT_TRY(check_lengths(&state->audio, &state->list));
    MIXT_TRY(mixt__recordings_share(data, train));
    if (train == &state->list)
        MIXT_TRY(choose_rows(data, train, data->part, &state->rows, &samples));
    bool all = data->part == MIXT_PART_ALL;
    MIXT_TRY(choose_rows(data, train, all ? MIXT_PART_ALL : MIXT_PART_TRAIN, &train_rows, &trained));
    mixt_status status = normalise(data, state, train, train_rows, trained);
    mixt__free(train_rows);
    MIXT_TRY(status);
    return describe(data, state, samples);
}

/** What samples look like must be as in the set that this one is like: what was asked for otherwise is refused. */
static mixt_status take_like(mixt_data *data)
{
    mixt_data_options *o = &data->options;
    const mixt_data *like = o->like && o->like->options.rate ? o->like : NULL;
    if (!like)
        return MIXT_OK;
    const mixt_data_options *its = &like->options;
    const struct {
        const char *name;
        double mine, its;
    } asked[] = {
        {"rate", (double)o->rate, (double)its->rate}, {"mels", (double)o->mels, (double)its->mels},
        {"window", o->window, its->window},           {"hop", o->hop, its->hop},
        {"seconds", o->seconds, its->seconds},        {"tail", o->tail, its->tail},
    };
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        if (asked[i].mine != 0 && fabs(asked[i].mine - asked[i].its) > 1e-6 * fabs(asked[i].its)) // written in 9 digits
            return mixt__fail(MIXT_ERROR_DATA, "audio:%s: %s %g, but the data it must match (%s) has %g: leave it out",
                              data->path, asked[i].name, asked[i].mine,
                              *like->info.path ? like->info.path : like->info.kind, asked[i].its);
    o->rate = its->rate;
    o->mels = its->mels;
    o->window = its->window;
    o->hop = its->hop;
    o->seconds = its->seconds;
    o->tail = its->tail;
    return MIXT_OK;
}

static mixt_status open_voice(mixt_data *data, audio_state *state)
{
    mixt_data_options *o = &data->options;
    if (o->val_files || o->test_files || o->labels)
        return mixt__fail(MIXT_ERROR_CONFIG, "audio: val_files, test_files and labels need recordings: set data.path");
    if (o->rate && o->rate != MIXT_VOICE_RATE)
        return mixt__fail(MIXT_ERROR_CONFIG, "audio: words have %d samples per second, not %lld", MIXT_VOICE_RATE,
                          (long long)o->rate);
    if (o->classes && o->classes < MIXT_VOICE_WORDS)
        return mixt__fail(MIXT_ERROR_CONFIG, "audio: has %d words, not %lld", MIXT_VOICE_WORDS, (long long)o->classes);
    o->rate = MIXT_VOICE_RATE;
    state->classes = mixt__voice_words;
    state->class_count = MIXT_VOICE_WORDS;
    MIXT_TRY(mixt__audio_make("audio:", o, &state->audio));
    if (state->spells) {
        MIXT_TRY(mixt__alphabet_make(data, &state->list, &state->alphabet));
        MIXT_TRY(mixt__audio_fits(&state->audio, "audio: the longest word", MIXT_VOICE_LONGEST, MIXT_VOICE_RATE));
        state->alphabet.longest = MIXT_VOICE_LETTERS;
    }
    int64_t samples = o->samples ? o->samples : voice_samples[data->part];
    MIXT_TRY(normalise(data, state, &state->list, NULL, o->samples ? o->samples : voice_samples[MIXT_PART_TRAIN]));
    return describe(data, state, samples);
}

static mixt_status open_audio(mixt_data *data)
{
    audio_state *state = data->state = mixt__alloc(sizeof *state);
    if (!state)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
    MIXT_TRY(take_like(data));
    if (!data->options.target && (data->options.labels || (*data->path && mixt__transcripts_are_in(data->path))))
        data->options.target = MIXT_TARGET_TEXT;
    state->spells = data->options.target == MIXT_TARGET_TEXT;
    if (state->spells && data->options.classes)
        return mixt__fail(MIXT_ERROR_CONFIG, "audio:%s: 'classes' is not for targets that are texts; leave it out",
                          data->path);
    if (!*data->path)
        return open_voice(data, state);
    if (!mixt__path_is_directory(data->path))
        return mixt__fail(MIXT_ERROR_FILE, "audio:%s: no such folder; check the path of the data set", data->path);
    const char *train = mixt__path_of_folder(data, MIXT_PART_TRAIN);
    if (state->spells)
        MIXT_TRY(find_room(data, state, train != NULL));
    state->has_val = data->options.val_files || (train && mixt__path_of_folder(data, MIXT_PART_VAL));
    state->has_test = data->options.test_files || (train && mixt__path_of_folder(data, MIXT_PART_TEST));
    bool apart = train && (data->part == MIXT_PART_VAL || data->part == MIXT_PART_TEST);
    const char *own = apart ? mixt__path_of_folder(data, data->part) : NULL;
    MIXT_TRY(list_in(data, state, own ? own : train ? train : data->path, &state->list));
    if (!own)
        return fill(data, state, &state->list);
    mixt__recordings list = {0};
    mixt_status status = list_in(data, state, train, &list);
    if (status == MIXT_OK)
        status = fill(data, state, &list);
    mixt__recordings_free(&list);
    return status;
}

static void close_audio(mixt_data *data)
{
    audio_state *state = data->state;
    if (!state)
        return;
    mixt__recordings_free(&state->list);
    mixt__free(state->rows);
    mixt__audio_free(&state->audio);
    mixt__free(state);
    data->state = NULL;
}

const mixt__data_kind mixt__data_audio = {
    .name = "audio",
    .what = "recordings of words",
    .uses = MIXT_DATA_AUDIO | MIXT_DATA_LABELS | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES | MIXT_DATA_SAMPLES,
    .open = open_audio,
    .arrays = sample_audio,
    .length = length_audio,
    .close = close_audio,
    .bucketed = true,
    .least = 32,
    .slow = true,
    .draws = true,
};
