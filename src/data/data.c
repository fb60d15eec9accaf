/* Opening a set by its spec. The table of kinds is the only place that knows them all. */
#include "data/audio/audio.h"
#include "data/buckets.h"
#include "data/chat/chat.h"
#include "data/image/folder.h"
#include "data/table/array_files.h"
#include "data/text/inputs_text.h"
#include "data/text/tokenizer.h"

#include "base/options.h"
#include "base/threads.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const mixt__data_kind *const kinds[] = {
#define MIXT_DATA_KIND(name) &mixt__data_##name,
#include "data/kinds.def"
#undef MIXT_DATA_KIND
};

static const char KIND_NAMES[] =
#define MIXT_DATA_KIND(name) #name ": "
#include "data/kinds.def"
#undef MIXT_DATA_KIND
    "with what it reads behind";

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

const mixt__data_kind *mixt__data_kind_find(const char *name, size_t length)
{
    for (int i = 0; i < KIND_COUNT; i++)
        if (strlen(kinds[i]->name) == length && !strncmp(kinds[i]->name, name, length))
            return kinds[i];
    return NULL;
}

bool mixt__data_is_drawn(const char *name)
{
    const mixt__data_kind *kind = mixt__data_kind_find(name, strlen(name));
    return kind && kind->drawn;
}

bool mixt__data_can_draw(const char *name)
{
    const mixt__data_kind *kind = mixt__data_kind_find(name, strlen(name));
    return kind && (kind->drawn || kind->draws);
}

static bool is_given(uint64_t seed)
{
    return seed != (uint64_t)MIXT_AUTO;
}

uint64_t mixt__data_draw_seed(const mixt_data *data)
{
    return is_given(data->options.draw_seed) ? data->options.draw_seed : data->options.seed;
}

static mixt_status parse_spec(mixt_data *data, const char *spec)
{
    size_t word = strspn(spec, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (spec[word] == ':') {
        data->kind = mixt__data_kind_find(spec, word);
        data->path = mixt__arena_strdup(&data->arena, spec + word + 1);
        if (!data->kind)
            return mixt__fail(MIXT_ERROR_CONFIG, "data '%s': no kind '%.*s'; expected one of %s", spec, (int)word, spec,
                              KIND_NAMES);
    } else {
        data->kind = mixt__data_guess(data, spec);
        if (!data->kind)
            return mixt__fail(MIXT_ERROR_FILE, "data '%s': no such file or folder: check data.path", spec);
        bool there = mixt__path_is_file(spec) || mixt__path_is_directory(spec); // a folder may be called "images"
        bool word = !there && mixt__data_kind_find(spec, strlen(spec)) == data->kind;
        data->path = word ? "" : mixt__arena_strdup(&data->arena, spec);
        MIXT_LOG(DATA, "'%s' looks like %s (%s)", spec, data->kind->name, data->kind->what);
    }
    if (!data->path)
        return mixt__fail(MIXT_ERROR_MEMORY, "data '%s': no memory", spec);
    return mixt__other_format_check(data->path);
}

static mixt_status check_numbers(const mixt_data_options *options)
{
    if (!(options->val < 1) || !(options->test < 1))
        return mixt__fail(MIXT_ERROR_CONFIG, "data: val_fraction %g and test_fraction %g must sum to less than 1",
                          options->val, options->test);
    if (options->seq < 0 || options->seq > INT32_MAX || options->limit < 0 || options->samples < 0)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: seq %lld, limit %lld and samples %lld must not be negative or huge",
                          (long long)options->seq, (long long)options->limit, (long long)options->samples);
    if (options->classes < 0 || options->classes > 1 << 24)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: classes %lld, expected 1 to %d", (long long)options->classes,
                          1 << 24);
    if (!(options->std >= 0) || !isfinite(options->std) || !isfinite(options->mean) ||
        (options->mean != 0 && options->std == 0))
        return mixt__fail(MIXT_ERROR_CONFIG, "data: mean %g, std %g: expected both, finite, std above 0",
                          (double)options->mean, (double)options->std);
    if (options->vocab_size < 0 || options->vocab_size > 1 << 24)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: vocab_size %lld, expected at most %d",
                          (long long)options->vocab_size, 1 << 24);
    if (options->buckets < -1 || options->buckets > MIXT_BUCKETS_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: buckets %lld, expected -1 to %d", (long long)options->buckets,
                          MIXT_BUCKETS_MAX);
    if (!(options->mask >= 0 && options->mask < 1))
        return mixt__fail(MIXT_ERROR_CONFIG, "data: mask %g: expected a share from 0, below 1", options->mask);
    if ((unsigned)options->target > MIXT_TARGET_TEXT || options->target == MIXT_TARGET_TOKENS ||
        (unsigned)options->normalise > MIXT_NORMALISE_NONE || (unsigned)options->missing > MIXT_MISSING_FILL ||
        (unsigned)options->loss_on > MIXT_LOSS_ON_PREFERENCE ||
        (unsigned)options->normalise_target > MIXT_NORMALISE_TARGET_NONE)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "data: target %d, normalise %d, normalise_target %d, missing %d or loss_on %d is not an "
                          "allowed value",
                          (int)options->target, (int)options->normalise, (int)options->normalise_target,
                          (int)options->missing, (int)options->loss_on);
    return MIXT_OK;
}

static mixt_status check_images(const mixt_data_options *o)
{
    enum { MOST = 65536 };
    if (o->crop < 0 || o->crop > MOST || o->pad < 0 || o->pad > MOST || o->resize < 0 || o->resize > MOST)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: crop %lld, pad %lld, resize %lld: expected 0 to %d",
                          (long long)o->crop, (long long)o->pad, (long long)o->resize, MOST);
    if (!(o->min_area >= 0 && o->min_area <= 1))
        return mixt__fail(MIXT_ERROR_CONFIG, "data: min_area %g, expected 0 to 1", (double)o->min_area);
    if (o->resize && o->resize < o->crop)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: resize %lld is smaller than crop %lld", (long long)o->resize,
                          (long long)o->crop);
    if (o->pad && (o->resize || o->min_area > 0))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "data: pad %lld is for crops that keep their scale: leave out resize and min_area",
                          (long long)o->pad);
    if (o->frames < 0 || o->frames > MOST)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: frames %lld: expected 0 to %d", (long long)o->frames, MOST);
    if (o->threads < 0 || o->threads > 1024)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: threads %d, expected 0 to 1024", o->threads);
    if (!o->means != !o->stds || (o->stds && o->std != 0))
        return mixt__fail(MIXT_ERROR_CONFIG, "data: mean and std go together: set both, for all channels or for each");
    return MIXT_OK;
}

static mixt_status check_audio(const mixt_data_options *o)
{
    const struct {
        const char *name;
        double value, low, high; // beside 0
    } ranges[] = {
        {"rate", (double)o->rate, 100, 768000},
        {"mels", (double)o->mels, 1, 512},
        {"window", o->window, 0, 1000},
        {"hop", o->hop, 0, 1000},
        {"seconds", o->seconds, 0, 3600},
        {"shift", o->shift, 0, 3600},
        {"noise", o->noise, 0, 100},
        {"time_mask", (double)o->time_mask, 0, 1 << 20},
        {"mel_mask", (double)o->mel_mask, 0, 512},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].value != 0 && !(ranges[i].value >= ranges[i].low && ranges[i].value <= ranges[i].high))
            return mixt__fail(MIXT_ERROR_CONFIG, "data: %s %g, expected %g to %g", ranges[i].name, ranges[i].value,
                              ranges[i].low, ranges[i].high);
    if (o->tail != -1 && !(o->tail >= 0 && o->tail <= 60))
        return mixt__fail(MIXT_ERROR_CONFIG, "data: tail %g, expected 0 to 60, or -1 for none", o->tail);
    return MIXT_OK;
}

mixt_status mixt__data_check_use(const mixt_data *data, const char *name, unsigned group)
{
    char takers[256] = "";
    size_t used = 0;
    if (data->kind->uses & group)
        return MIXT_OK;
    for (int k = 0; k < KIND_COUNT; k++)
        if (kinds[k]->uses & group)
            used += (size_t)snprintf(takers + used, sizeof takers - used, "%s%s", used ? ", " : "", kinds[k]->name);
    return mixt__fail(MIXT_ERROR_CONFIG, "data: '%s' is not for %s (%s); leave it out, or use one of %s", name,
                      data->kind->name, data->kind->what, takers);
}

/** A frame and a sample have a length: 0 is none. Inside, 0 seconds are for the kind to say. */
static mixt_status take_lengths(mixt_data_options *o)
{
    const char *none = o->window == 0 ? "window" : o->hop == 0 ? "hop" : o->seconds == 0 ? "seconds" : NULL;
    if (none)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: %s 0: must be above 0", none);
    if (o->seconds == MIXT_AUTO)
        o->seconds = 0;
    return MIXT_OK;
}

static mixt_status check_vocab_size(const mixt_data *data)
{
    int64_t size = data->options.vocab_size;
    bool bytes = data->kind->uses & MIXT_DATA_PAIRS; // else words
    int64_t least = bytes ? 257 : 16;
    if (size && size < least)
        return mixt__fail(MIXT_ERROR_CONFIG, "data: vocab_size %lld, expected %lld (%s) to %d", (long long)size,
                          (long long)least, bytes ? "all bytes and an end" : "special tokens and a few words", 1 << 24);
    return MIXT_OK;
}

/** An option that the kind would pass over is a mistake of somebody's. */
static mixt_status check_used(const mixt_data *data)
{
    const mixt_data_options *o = &data->options;
    const struct {
        const char *name;
        unsigned group;
        bool set;
    } options[] = {
        {"labels", MIXT_DATA_LABELS, o->labels},
        {"inputs", MIXT_DATA_INPUTS, o->inputs},
        {"text", MIXT_DATA_TEXTS, o->text},
        {"tokenizer", MIXT_DATA_WORDS | MIXT_DATA_PAIRS, o->tokenizer && *o->tokenizer && strcmp(o->tokenizer, "auto")},
        {"vocab", MIXT_DATA_WORDS | MIXT_DATA_PAIRS, o->vocab && *o->vocab},
        {"vocab_size", MIXT_DATA_PAIRS | MIXT_DATA_TEXTS, o->vocab_size},
        {"source", MIXT_DATA_PAIRS, o->source_name && *o->source_name},
        {"target", MIXT_DATA_PAIRS, o->target_name && *o->target_name},
        {"mask", MIXT_DATA_WORDS, o->mask > 0},
        {"missing", MIXT_DATA_CELLS, o->missing != MIXT_MISSING_FILL},
        {"columns", MIXT_DATA_COLUMNS, o->columns},
        {"drop", MIXT_DATA_COLUMNS, o->drop},
        {"crop", MIXT_DATA_IMAGES, o->crop},
        {"pad", MIXT_DATA_IMAGES, o->pad},
        {"flip", MIXT_DATA_IMAGES, o->flip},
        {"min_area", MIXT_DATA_IMAGES, o->min_area > 0},
        {"resize", MIXT_DATA_IMAGES, o->resize},
        {"frames", MIXT_DATA_FRAMES, o->frames},
        {"draw_seed", MIXT_DATA_DRAWN, is_given(o->draw_seed)},
        {"mean", MIXT_DATA_IMAGES, o->means},
        {"std", MIXT_DATA_IMAGES, o->stds},
        {"rate", MIXT_DATA_AUDIO, o->rate},
        {"mels", MIXT_DATA_AUDIO, o->mels},
        {"window", MIXT_DATA_AUDIO, o->window != 25},
        {"hop", MIXT_DATA_AUDIO, o->hop != 10},
        {"seconds", MIXT_DATA_AUDIO, o->seconds > 0},
        {"tail", MIXT_DATA_AUDIO, o->tail > 0},
        {"shift", MIXT_DATA_AUDIO, o->shift > 0},
        {"noise", MIXT_DATA_AUDIO, o->noise > 0},
        {"time_mask", MIXT_DATA_AUDIO, o->time_mask},
        {"mel_mask", MIXT_DATA_AUDIO, o->mel_mask},
        {"val_files", MIXT_DATA_AUDIO, o->val_files},
        {"test_files", MIXT_DATA_AUDIO, o->test_files},
        {"split_by", MIXT_DATA_RATINGS, o->by_time},
        {"users", MIXT_DATA_RATINGS, o->users && *o->users},
        {"items", MIXT_DATA_RATINGS, o->items && *o->items},
        {"counts", MIXT_DATA_RATINGS, o->counts},
        {"numbers", MIXT_DATA_RATINGS, o->user_numbers || o->item_numbers},
        {"times", MIXT_DATA_RATINGS, o->times},
        {"template", MIXT_DATA_CHAT, o->chat_template && *o->chat_template},
        {"loss_on", MIXT_DATA_CHAT, o->loss_on != MIXT_LOSS_ON_ASSISTANT},
        {"normalise", MIXT_DATA_NUMBERS, o->normalise != MIXT_NORMALISE_STANDARD},
        {"normalise_target", MIXT_DATA_VALUES, o->normalise_target != MIXT_NORMALISE_TARGET_AUTO},
        {"shape", MIXT_DATA_SHAPE, o->shape},
        {"classes", MIXT_DATA_CLASSES, o->classes},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].set)
            MIXT_TRY(mixt__data_check_use(data, options[i].name, options[i].group));
    return check_vocab_size(data);
}

mixt_status mixt__need_seq(const mixt_data *data)
{
    if (data->options.seq > 0)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "%s:%s: seq 0: a sample needs at least 1 token", data->kind->name, data->path);
}

/** Copies the options, strings included: the caller's may be gone after the call. */
static mixt_status take_options(mixt_data *data, const mixt_data_options *options)
{
    data->options = MIXT_OPTIONS(mixt_data_options);
    MIXT_TRY(mixt__options(mixt_data_options, &data->options, options));
    if (data->options.tail == MIXT_AUTO || data->options.tail == 0) // inside, 0 is for the kind to say, and -1 none
        data->options.tail = data->options.tail == 0 ? -1 : 0;
    MIXT_TRY(take_lengths(&data->options));
    MIXT_TRY(check_numbers(&data->options));
    MIXT_TRY(check_images(&data->options));
    MIXT_TRY(check_audio(&data->options));
    mixt_data_options *o = &data->options;
    if (o->like)
        MIXT_TRY(mixt__need_open_at("mixt_data_open", "like", o->like, "data"));
    const char **strings[] = {&o->split,       &o->shape,  &o->labels,        &o->means,      &o->stds,
                              &o->tokenizer,   &o->vocab,  &o->val_files,     &o->test_files, &o->source_name,
                              &o->target_name, &o->text,   &o->users,         &o->items,      &o->columns,
                              &o->drop,        &o->inputs, &o->chat_template, &o->names};
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        if (*strings[i]) {
            *strings[i] = mixt__arena_strdup(&data->arena, *strings[i]);
            if (!*strings[i])
                return mixt__fail(MIXT_ERROR_MEMORY, "data: no memory for its options");
        }
    if (!data->options.split)
        return MIXT_OK;
    for (int part = 0; part < MIXT_PART_COUNT; part++)
        if (!strcmp(data->options.split, mixt__part_names[part])) {
            data->part = (mixt__part)part;
            return MIXT_OK;
        }
    return mixt__fail(MIXT_ERROR_CONFIG, "data: split '%s', expected train, val, test or all", data->options.split);
}

/** Targets of the sort that was asked for: readers that can choose have done so. */
static mixt_status check_target(const mixt_data *data)
{
    static const char *const words[] = {"", "classes", "values", "tokens", "text"};
    mixt_target_kind wanted = data->options.target, has = data->info.target;
    if (wanted == MIXT_TARGET_AUTO || wanted == has)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "%s:%s: targets are %s, not %s: leave data.task (in C: target) out",
                      data->kind->name, data->path, words[has], words[wanted]);
}

/** What all kinds have in common once one has opened. */
static mixt_status finish_open(mixt_data *data)
{
    mixt_data_info *info = &data->info;
    info->kind = data->kind->name;
    info->path = data->path;
    info->split = mixt__part_names[data->part];
    MIXT_TRY(check_target(data));
    info->target_dtype = info->target == MIXT_TARGET_VALUES ? MIXT_DTYPE_FP32 : MIXT_DTYPE_INT32;
    MIXT_TRY(mixt__class_names_take(data));
    MIXT_TRY(mixt__data_describe_arrays(data));
    if (data->options.limit && data->options.limit < info->samples)
        info->samples = data->options.limit;
    data->options.like = NULL;
    MIXT_TRY(mixt__data_buckets_make(data));
    MIXT_LOG(DATA, "%s:%s %s: %lld samples of %lld elements, %lld classes", info->kind, info->path, info->split,
             (long long)info->samples, (long long)info->input_elements, (long long)info->classes);
    return MIXT_OK;
}

/** No mistake to refuse: a run on samples that were drawn may be evaluated on a file. */
static mixt_status warn_of_samples(mixt_data *data)
{
    bool drawn = data->kind->drawn || (data->kind->draws && !*data->path);
    if (!data->options.samples || (drawn && data->kind->uses & MIXT_DATA_SAMPLES))
        return MIXT_OK;
    return mixt__data_warn(data,
                           "data: samples=%lld is for data that mixt generates and has no effect here: use 'limit' to "
                           "take the first N samples",
                           (long long)data->options.samples);
}

/** Opens a set whose options, kind and path are known. */
static mixt_status open_kind(mixt_data *data)
{
    MIXT_TRY(check_used(data));
    MIXT_TRY(data->kind->open(data));
    MIXT_TRY(finish_open(data));
    return warn_of_samples(data);
}

mixt_status mixt__data_look(const char *spec, const mixt_data_options *options, const char **kind, char *path,
                            size_t room)
{
    mixt_data *data = mixt__alloc(sizeof *data);
    *kind = "";
    if (!data)
        return mixt__fail(MIXT_ERROR_MEMORY, "data '%s': no memory", spec);
    mixt_status status = take_options(data, options);
    if (status == MIXT_OK)
        status = parse_spec(data, spec);
    if (status == MIXT_OK) {
        *kind = data->kind->name;
        snprintf(path, room, "%s", data->path);
    }
    mixt__arena_free(&data->arena);
    mixt__free(data);
    return status;
}

/** From here on what this thread takes is the set's; returns whose it was. */
static mixt__account *book(mixt_data *data)
{
    data->account = mixt__account_open(mixt__account_now());
    return mixt__account_use(data->account);
}

/** Hands the set out, or frees it. */
static mixt_status hand_out(mixt_status status, mixt_data *data, mixt_data **result)
{
    if (status == MIXT_OK) {
        mixt__handle_add(&data->handle, data, "data", NULL);
        *result = data;
    } else {
        mixt__data_drop(data);
    }
    return status;
}

mixt_status mixt_data_open_with(const char *spec, const mixt_data_options *options, mixt_data **result)
{
    if (result)
        *result = NULL;
    if (!spec || !result)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_data_open: spec and data must not be NULL");
    mixt_data *data = mixt__alloc(sizeof *data);
    if (!data)
        return mixt__fail(MIXT_ERROR_MEMORY, "data '%s': no memory", spec);
    mixt__account *before = book(data);
    mixt_status status = take_options(data, options);
    if (status == MIXT_OK)
        status = parse_spec(data, spec);
    if (status == MIXT_OK)
        status = open_kind(data);
    if (status == MIXT_OK && data->arena.short_of_memory) // a file that was there was passed over for want of its name
        status = mixt__fail(MIXT_ERROR_MEMORY, "data '%s': no memory", spec);
    mixt__account_use(before);
    return hand_out(status, data, result);
}

/** Opens a set of what a program has in memory: one of the two. */
static mixt_status open_memory(const mixt__data_kind *kind, const char *name, const mixt_data_arrays *arrays,
                               const struct mixt__columns *columns, const mixt_data_options *options,
                               mixt_data **result)
{
    mixt_data *data = mixt__alloc(sizeof *data);
    if (!data)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", kind->name);
    mixt__account *before = book(data);
    data->kind = kind;
    data->arrays = arrays;
    data->columns = columns;
    data->path = mixt__arena_strdup(&data->arena, name ? name : "memory");
    mixt_status status = data->path ? take_options(data, options) : mixt__fail(MIXT_ERROR_MEMORY, "no memory");
    if (status == MIXT_OK)
        status = open_kind(data);
    data->arrays = NULL;
    data->columns = NULL;
    mixt__account_use(before);
    return hand_out(status, data, result);
}

mixt_status mixt__data_open_arrays(const mixt__data_kind *kind, const mixt_data_arrays *arrays,
                                   const mixt_data_options *options, mixt_data **result)
{
    return open_memory(kind, arrays->name, arrays, NULL, options, result);
}

mixt_status mixt__data_open_columns(const mixt__data_kind *kind, const char *name, const struct mixt__columns *columns,
                                    const mixt_data_options *options, mixt_data **result)
{
    return open_memory(kind, name, NULL, columns, options, result);
}

/* Counts from 0 for the owner alone, so that whoever comes to -1 is the last. */

const mixt_data *mixt__data_hold(const mixt_data *data)
{
    __atomic_add_fetch(&((mixt_data *)data)->holders, 1, __ATOMIC_RELAXED);
    return data;
}

void mixt__data_drop(const mixt_data *held)
{
    mixt_data *data = (mixt_data *)held;
    if (__atomic_sub_fetch(&data->holders, 1, __ATOMIC_ACQ_REL) >= 0)
        return;
    if (data->kind)
        data->kind->close(data);
    mixt__data_buckets_free(data->buckets);
    mixt__tokenizer_drop(data->tokenizer);
    mixt__arena_free(&data->arena);
    mixt__account_close(data->account);
    mixt__free(data);
}

void mixt_data_close(mixt_data *data)
{
    if (!data || mixt__need_own(data, "data") != MIXT_OK)
        return;
    mixt__handle_remove(data);
    mixt__data_drop(data);
}

size_t mixt__data_bytes(const mixt_data *data)
{
    return sizeof *data + mixt__account_bytes(data->account);
}

size_t mixt__data_mapped(const mixt_data *data)
{
    return mixt__account_mapped(data->account);
}

const mixt_data_info *mixt_data_describe(const mixt_data *data)
{
    static const mixt_data_info none = {.kind = "", .path = "", .split = ""};
    return mixt__need_open(data, "data") == MIXT_OK ? &data->info : &none;
}
