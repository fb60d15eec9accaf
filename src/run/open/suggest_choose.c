/* What suits data of each kind: small models that learn something of a small set in a minute or two on two cores, with
 * the settings that configs/ has for such data, and lengths of runs by the amount of data.
 */
#include "run/open/suggest.h"

#include "base/c_locale.h"
#include "data/image/folder.h"
#include "data/table/csv_text.h"
#include "data/table/json_lines.h"
#include "models/models.h"
#include "run/open/hf_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static const char *text(const mixt_suggestion *s, mixt__config_key key)
{
    return mixt__config_string(s->config, key);
}

static bool model_is(const mixt_suggestion *s, const char *name)
{
    return !strcmp(text(s, MIXT_KEY_MODEL), name);
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

#define CHOOSE(key, why, ...) MIXT_TRY(mixt__suggest(s, MIXT_KEY_##key, why, __VA_ARGS__))

/** Passes over `samples` that make up about `budget` of them, in words. */
static mixt_status choose_epochs(mixt_suggestion *s, int64_t samples, int64_t budget, int64_t least, int64_t most)
{
    int64_t epochs = clamp(budget / (samples ? samples : 1), least, most);
    if (mixt__config_was_set(s->config, MIXT_KEY_TRAIN_STEPS))
        return MIXT_OK;
    char why[96];
    snprintf(why, sizeof why, "passes over %lld samples", (long long)samples);
    return mixt__suggest(s, MIXT_KEY_TRAIN_EPOCHS, why, "%lld", (long long)epochs);
}

/** Batches that leave an epoch some 40 updates, from 16 to `most`. */
static mixt_status choose_batch(mixt_suggestion *s, int64_t samples, int64_t most)
{
    int64_t batch = 16;
    while (batch < most && batch * 2 * 40 <= samples)
        batch *= 2;
    batch = batch > samples && samples > 0 ? samples : batch;
    return mixt__suggest(s, MIXT_KEY_TRAIN_BATCH, "", "%lld", (long long)batch);
}

/** Falls to 0 by a cosine; rises over a twentieth of the run. */
static mixt_status choose_schedule(mixt_suggestion *s, int64_t samples)
{
    int64_t batch = mixt__config_int(s->config, MIXT_KEY_TRAIN_BATCH), most = 100;
    int64_t epochs = mixt__config_int(s->config, MIXT_KEY_TRAIN_EPOCHS),
            steps = mixt__config_int(s->config, MIXT_KEY_TRAIN_STEPS);
    int64_t updates = steps ? steps : samples / (batch ? batch : 1) * epochs;
    CHOOSE(TRAIN_SCHEDULE, "falls to 0 over the run", "cosine");
    if (!strcmp(text(s, MIXT_KEY_TRAIN_SCHEDULE), "onecycle"))
        return MIXT_OK;
    return mixt__suggest(s, MIXT_KEY_TRAIN_WARMUP, "", "%lld", (long long)clamp(updates / 20, 0, most));
}

/** Ends a run that no longer improves on the validation part, with the weights that were best there. */
static mixt_status choose_patience(mixt_suggestion *s, const mixt__experiment *e)
{
    int64_t validations = mixt__config_int(s->config, MIXT_KEY_TRAIN_EPOCHS),
            steps = mixt__config_int(s->config, MIXT_KEY_TRAIN_STEPS),
            every = mixt__config_int(s->config, MIXT_KEY_TRAIN_VALIDATE_EVERY);
    bool validates = mixt__config_float(s->config, MIXT_KEY_DATA_VAL_FRACTION) > 0;
    if (!validates)
        MIXT_TRY(mixt__experiment_has_part(e, "val", &validates));
    if (!validates)
        return MIXT_OK;
    if (every && steps)
        validations = steps / every;
    CHOOSE(TRAIN_EARLY_STOP, "validations without a better one; the best weights are kept", "%lld",
           (long long)(validations > 8 ? validations / 2 : 4));
    return MIXT_OK;
}

/* ---- pictures ---- */

static mixt_status image_sizes(mixt_suggestion *s, int64_t side)
{
    if (model_is(s, "convnet")) {
        const char *channels = side >= 48 ? "[32, 64, 128, 128]" : side >= 16 ? "[32, 64, 128]" : "[32, 64]";
        CHOOSE(NET_CHANNELS, "3x3 convolutions, each pooled by 2", "%s", channels);
        CHOOSE(NET_NORM, "", "batch");
        CHOOSE(NET_DROPOUT, "before the last layer", "0.3");
    } else if (model_is(s, "resnet")) {
        CHOOSE(NET_DEPTH, side < 100 ? "for small images" : "", side < 100 ? "20" : "18");
    }
    return MIXT_OK;
}

static mixt_status choose_images(mixt_suggestion *s, const mixt_data_info *info)
{
    int64_t side = info->input_dims[0] < info->input_dims[1] ? info->input_dims[0] : info->input_dims[1];
    int64_t pixels = info->input_dims[0] * info->input_dims[1];
    bool colour = info->input_dims[2] == 3, fine = !strcmp(s->kind, "images");
    MIXT_TRY(image_sizes(s, side));
    if (!fine && !mixt__config_was_set(s->config, MIXT_KEY_DATA_RESIZE) && side >= 16)
        CHOOSE(DATA_PAD, "moved at random by so many pixels", "%d", colour ? 4 : 2);
    if (colour && info->target == MIXT_TARGET_CLASS)
        CHOOSE(DATA_FLIP, "mirrored at random; not for writing or maps", "true");
    MIXT_TRY(choose_batch(s, info->samples, 128));
    MIXT_TRY(choose_epochs(s, info->samples, 200000 * 784 / (pixels > 64 ? pixels : 64), 3, 40));
    CHOOSE(TRAIN_LR, "", "0.003");
    CHOOSE(TRAIN_WEIGHT_DECAY, "", "0.05");
    return choose_schedule(s, info->samples);
}

/** Before a folder of pictures can be opened: how large a sample is. */
static mixt_status choose_crop(mixt_suggestion *s)
{
    enum { SMALL = 40, SIDE = 64 };
    char why[96];
    bool grey;
    char folder[sizeof s->path];
    snprintf(folder, sizeof folder, "%s", s->path);
    char *slash = strrchr(folder, '/');
    if (!mixt__path_is_directory(folder)) // a table, beside which they lie
        snprintf(slash ? slash : folder, 2, "%s", slash ? "" : ".");
    int64_t side = mixt__pictures_side(folder, &grey);
    if (!side || mixt__config_was_set(s->config, MIXT_KEY_DATA_CROP))
        return MIXT_OK;
    snprintf(why, sizeof why, "a square of each picture; their shorter side has %lld pixels", (long long)side);
    CHOOSE(DATA_CROP, why, "%lld", (long long)(side <= SMALL ? side : SIDE));
    if (side > SMALL)
        return mixt__suggest(s, MIXT_KEY_DATA_RESIZE, "shorter side, before that", "%d", SIDE + SIDE / 8);
    return mixt__suggest(s, MIXT_KEY_DATA_RESIZE, "", "%lld", (long long)side);
}

static mixt_status choose_clips(mixt_suggestion *s, const mixt_data_info *info)
{
    CHOOSE(NET_CHANNELS, "3x3x3 convolutions", "[8, 16, 32, 32]");
    CHOOSE(NET_HIDDEN, "", "[128]");
    CHOOSE(NET_NORM, "", "batch");
    MIXT_TRY(choose_batch(s, info->samples, 64));
    MIXT_TRY(choose_epochs(s, info->samples, 60000, 4, 30));
    CHOOSE(TRAIN_LR, "", "0.003");
    CHOOSE(TRAIN_WEIGHT_DECAY, "", "0.05");
    return choose_schedule(s, info->samples);
}

/* ---- numbers ---- */

static mixt_status choose_rows(mixt_suggestion *s, const mixt_data_info *info)
{
    int64_t rows = info->samples;
    CHOOSE(PRECISION, "a small model: nothing is gained by less", "fp32");
    if (model_is(s, "mlp")) {
        CHOOSE(NET_HIDDEN, "", rows < 500 ? "[32]" : rows < 20000 ? "[64, 32]" : "[128, 64]");
        if (rows < 20000)
            CHOOSE(NET_DROPOUT, "few rows overfit soon", "0.1");
    }
    MIXT_TRY(choose_batch(s, rows, 256));
    MIXT_TRY(choose_epochs(s, rows, 1000000, 5, 100));
    CHOOSE(TRAIN_LR, "", "0.003");
    CHOOSE(TRAIN_WEIGHT_DECAY, "", "0.1");
    return choose_schedule(s, rows);
}

static mixt_status choose_ratings(mixt_suggestion *s, const mixt_data_info *info)
{
    CHOOSE(NET_WIDTH, "factors of a user and of an item", "16");
    CHOOSE(NET_PENALTY, "keeps them small", "0.25");
    CHOOSE(DATA_COUNTS, "how many ratings a user and an item have", "true");
    CHOOSE(TRAIN_BATCH, "", "256");
    CHOOSE(TRAIN_OPTIMIZER, "", "sgd");
    CHOOSE(TRAIN_LR, "of sums over a few rows of large tables", "10");
    CHOOSE(TRAIN_WEIGHT_DECAY, "", "6e-5");
    MIXT_TRY(choose_epochs(s, info->samples, 3000000, 3, 30));
    return choose_schedule(s, info->samples);
}

/* ---- sound ---- */

static mixt_status choose_sound(mixt_suggestion *s, const mixt_data_info *info)
{
    bool letters = info->target == MIXT_TARGET_TEXT;
    if (!mixt__config_was_set(s->config, MIXT_KEY_NET_HIDDEN))
        CHOOSE(NET_CHANNELS, "convolutions, each halves the frames", letters ? "[32, 64, 64]" : "[32, 64, 128]");
    if (letters) {
        CHOOSE(NET_LAYERS, "LSTM", "1");
        CHOOSE(NET_WIDTH, "", "128");
    }
    CHOOSE(NET_DROPOUT, "", letters ? "0.2" : "0.3");
    CHOOSE(DATA_SHIFT, "seconds, moved at random", "0.1");
    CHOOSE(DATA_TIME_MASK, "frames that are hidden now and then", letters ? "8" : "12");
    CHOOSE(DATA_MEL_MASK, "bands that are", letters ? "8" : "6");
    CHOOSE(TRAIN_BATCH, "", letters || info->samples < 400 ? "8" : "16");
    MIXT_TRY(choose_epochs(s, info->samples, letters ? 30000 : 40000, 6, 80));
    CHOOSE(TRAIN_LR, "", letters ? "0.003" : "0.002");
    CHOOSE(TRAIN_WEIGHT_DECAY, "", "0.05");
    return choose_schedule(s, info->samples);
}

/* ---- text ---- */

static mixt_status choose_opinions(mixt_suggestion *s, const mixt_data_info *info)
{
    if (s->tuned) {
        CHOOSE(TRAIN_BATCH, "", "16");
        CHOOSE(TRAIN_LR, "small: the weights are trained already", "3e-5");
        MIXT_TRY(choose_epochs(s, info->samples, 20000, 2, 4));
        return choose_schedule(s, info->samples);
    }
    CHOOSE(NET_LAYERS, "", "1");
    CHOOSE(NET_WIDTH, "", "64");
    CHOOSE(NET_HEADS, "", "4");
    CHOOSE(NET_POOL, "the mean over a text's tokens stands for it", "mean");
    CHOOSE(NET_DROPOUT, "", "0.3");
    MIXT_TRY(choose_batch(s, info->samples, 64));
    MIXT_TRY(choose_epochs(s, info->samples, 200000, 3, 20));
    CHOOSE(TRAIN_LR, "", "0.001");
    return choose_schedule(s, info->samples);
}

static mixt_status choose_translator(mixt_suggestion *s, const mixt_data_info *info)
{
    CHOOSE(NET_LAYERS, "of the encoder, and of the decoder", "2");
    CHOOSE(NET_WIDTH, "", "96");
    CHOOSE(NET_HEADS, "", "4");
    CHOOSE(NET_DROPOUT, "", "0.1");
    MIXT_TRY(choose_batch(s, info->samples, 64));
    MIXT_TRY(choose_epochs(s, info->samples, 60000, 2, 20));
    CHOOSE(TRAIN_LR, "", "0.001");
    CHOOSE(TRAIN_BETA2, "", "0.98");
    CHOOSE(TRAIN_LABEL_SMOOTHING, "", "0.1");
    CHOOSE(TRAIN_CLIP, "", "1.0");
    return choose_schedule(s, info->samples);
}

static mixt_status choose_pairs(mixt_suggestion *s, const mixt_data_info *info)
{
    MIXT_TRY(choose_batch(s, info->samples, 128));
    MIXT_TRY(choose_epochs(s, info->samples, 200000, 5, 30));
    CHOOSE(TRAIN_LR, "", "0.002");
    return choose_schedule(s, info->samples);
}

/** Of a text, or of tokens: samples are windows of data.seq. */
static mixt_status choose_windows(mixt_suggestion *s, const mixt_data_info *info)
{
    int64_t seq = info->input_dims[0], batch, updates;
    int64_t epoch = info->samples; // windows that do not overlap
    CHOOSE(TRAIN_BATCH, "", "%lld", (long long)clamp(s->tuned ? 4 : 16, 1, epoch));
    batch = mixt__config_int(s->config, MIXT_KEY_TRAIN_BATCH);
    updates = clamp((s->tuned ? 3 : 20) * epoch / (batch ? batch : 1), 100, s->tuned ? 300 : seq <= 64 ? 2000 : 1500);
    if (!mixt__config_was_set(s->config, MIXT_KEY_TRAIN_EPOCHS)) {
        CHOOSE(TRAIN_EPOCHS, "no limit: train.steps decides", "0");
        CHOOSE(TRAIN_STEPS, "updates", "%lld", (long long)updates);
        CHOOSE(TRAIN_VALIDATE_EVERY, "", "%lld", (long long)clamp(updates / 4, 1, 500));
    }
    CHOOSE(TRAIN_LR, s->tuned ? "small: the weights are trained already" : "", s->tuned ? "5e-5" : "0.003");
    CHOOSE(TRAIN_BETA2, "", "0.95");
    CHOOSE(TRAIN_CLIP, "largest norm of a gradient", "1.0");
    return choose_schedule(s, info->samples);
}

/** Before a text is opened: the model by its length, of a byte a token or some four of a vocabulary. */
static mixt_status choose_language_model(mixt_suggestion *s)
{
    struct stat file;
    char why[96];
    int64_t bytes = !stat(s->path, &file) && S_ISREG(file.st_mode) ? (int64_t)file.st_size : 1 << 20;
    size_t length = strlen(s->path);
    if (length > 3 && !strcmp(s->path + length - 3, ".gz"))
        bytes *= 3;
    int size = bytes < 64 << 10 ? 0 : bytes < 4 << 20 ? 1 : bytes < 64 << 20 ? 2 : 3;
    static const struct {
        const char *layers, *width, *heads, *seq;
    } sizes[] = {{"2", "64", "2", "64"}, {"3", "96", "3", "64"}, {"4", "128", "4", "128"}, {"6", "256", "4", "128"}};
    if (model_is(s, "bert_mlm"))
        CHOOSE(DATA_MASK, "share of tokens to hide and predict", "0.15");
    if (s->tuned)
        return mixt__suggest(s, MIXT_KEY_DATA_SEQ, "tokens of a sample", "%lld",
                             (long long)(s->longest > 0 && s->longest < 256 ? s->longest : 256));
    snprintf(why, sizeof why, "for a text of %lld KB", (long long)(bytes >> 10));
    bool blocks = model_is(s, "gpt") || model_is(s, "llama") || model_is(s, "bert_mlm");
    if (blocks) {
        CHOOSE(NET_LAYERS, why, "%s", sizes[size].layers);
        CHOOSE(NET_WIDTH, "", "%s", sizes[size].width);
        if (!mixt__config_was_set(s->config, MIXT_KEY_NET_WIDTH) || s->chosen[MIXT_KEY_NET_WIDTH])
            CHOOSE(NET_HEADS, "", "%s", sizes[size].heads);
    }
    return mixt__suggest(s, MIXT_KEY_DATA_SEQ, "tokens of a sample", "%s", sizes[size].seq);
}

/** Before a translator's sentences are opened: from which language to which. */
static mixt_status choose_languages(mixt_suggestion *s)
{
    char source[3], target[3];
    if (mixt__config_was_set(s->config, MIXT_KEY_DATA_SOURCE) ||
        mixt__config_was_set(s->config, MIXT_KEY_DATA_TARGET) || !mixt__parallel_languages(s->path, source, target))
        return MIXT_OK;
    CHOOSE(DATA_SOURCE, "language to translate from", "%s", source);
    CHOOSE(DATA_TARGET, "language to translate into", "%s", target);
    return mixt__suggest(s, MIXT_KEY_DATA_SEQ, "tokens at most: longer pairs are left out", "64");
}

/** Before a table is opened: a column that is called as targets are, where it is not the last one anyway. */
static mixt_status choose_target(mixt_suggestion *s)
{
    static const char *const names[] = {"label", "target", "class", "y"};
    mixt__bytes file;
    int64_t line;
    char found[64] = "";
    if (mixt__config_was_set(s->config, MIXT_KEY_DATA_LABELS) || !mixt__path_is_file(s->path) ||
        mixt__bytes_read_most(s->path, 1 << 20, &file) != MIXT_OK)
        return MIXT_OK;
    bool read = mixt__json_table_convert(s->path, &file, &line) == MIXT_OK;
    mixt__csv_text table = {.at = (const char *)file.bytes, .end = (const char *)file.bytes + file.size};
    mixt__csv_field rest, field;
    read = read && mixt__csv_next_line(&table, &rest);
    table.separator = read ? mixt__csv_separator(&table, &rest) : ',';
    while (read && !*found && mixt__csv_next_field(&table, &rest, &field))
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if ((size_t)field.length == strlen(names[i]) && !strncasecmp(field.text, names[i], strlen(names[i])) &&
                rest.text)
                snprintf(found, sizeof found, "%.*s", (int)field.length, field.text);
    mixt__bytes_free(&file);
    return *found ? mixt__suggest(s, MIXT_KEY_DATA_LABELS, "the column that is called so", "%s", found) : MIXT_OK;
}

/* ---- all ---- */

typedef mixt_status choose_fn(mixt_suggestion *s, const mixt_data_info *info);

static const struct {
    const char *kind, *model, *why;
    choose_fn *choose;
} kinds[] = {
    {"digits", "convnet", "", choose_images},
    {"idx", "convnet", "", choose_images},
    {"cifar", "convnet", "", choose_images},
    {"images", "convnet", "", choose_images},
    {"npy", "", "", NULL}, // by the shape of a sample
    {"npz", "", "", NULL},
    {"random", "", "", NULL},
    {"moving", "c3d", "", choose_clips},
    {"video", "c3d", "", choose_clips},
    {"audio", "speech", "", choose_sound},
    {"csv", "mlp", "hidden layers over the columns", choose_rows},
    {"pairs", "pair", "a tower for pictures, one for captions", choose_pairs},
    {"ratings", "mf", "matrix factorisation", choose_ratings},
    {"labelled", "bert_classify", "texts with a class each", choose_opinions},
    {"parallel", "seq2seq", "a translator", choose_translator},
    {"text", "gpt", "", choose_windows},
    {"tokens", "gpt", "", choose_windows},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

/** The kind of arrays is that of samples of their shape. */
static choose_fn *by_shape(mixt_suggestion *s, const mixt_data_info *info, const char **model)
{
    (void)s;
    bool tokens = info->input_dtype == MIXT_DTYPE_INT32;
    enum { SIDE = 8 }; // narrower than that are series of a few values, not pictures
    const int64_t *dims = info->input_dims;
    bool pictures = info->input_rank == 3 && dims[2] <= 4 && dims[0] >= SIDE && dims[1] >= SIDE;
    *model = tokens ? "gpt" : info->input_rank == 4 ? "c3d" : pictures ? "convnet" : "mlp";
    return tokens ? choose_windows : info->input_rank == 4 ? choose_clips : pictures ? choose_images : choose_rows;
}

/** Weights to begin with say which model it is. */
static mixt_status choose_init(mixt_suggestion *s)
{
    const char *init = text(s, MIXT_KEY_INIT);
    mixt_config *theirs;
    if (!*init)
        return MIXT_OK;
    s->tuned = true;
    bool foreign = mixt__hf_folder_is(init);
    MIXT_TRY(foreign ? mixt__hf_folder_config(init, &theirs) : mixt_run_folder_config(init, &theirs));
    const char *model = mixt__config_string(theirs, MIXT_KEY_MODEL),
               *vocab = mixt__config_string(theirs, MIXT_KEY_DATA_VOCAB);
    bool texts = !strcmp(s->kind, "labelled");
    s->longest = mixt__config_int(theirs, MIXT_KEY_DATA_SEQ);
    if (texts && !strcmp(model, "bert_mlm"))
        model = "bert_classify";
    mixt_status status = mixt__suggest(s, MIXT_KEY_MODEL, "that of init", "%s", model);
    for (int key = MIXT_KEY_NET_HIDDEN; status == MIXT_OK && key <= MIXT_KEY_NET_POOL; key++) {
        char *value = mixt__config_text(theirs, (mixt__config_key)key);
        bool ours = key != MIXT_KEY_NET_CLASSES && key != MIXT_KEY_NET_VOCAB && key != MIXT_KEY_NET_DROPOUT;
        if (ours && value && mixt__config_was_set(theirs, (mixt__config_key)key) && !foreign)
            status = mixt__suggest(s, (mixt__config_key)key, "", "%s", value);
        free(value);
    }
    if (status == MIXT_OK && *vocab && (!strcmp(s->kind, "text") || texts))
        status = mixt__suggest(s, MIXT_KEY_DATA_VOCAB, "the tokens that the weights know", "%s", vocab);
    mixt_config_free(theirs);
    return status;
}

/** "1797 samples of [8, 8, 1], 10 classes". */
static const char *describe(mixt_suggestion *s, const mixt_data_info *info)
{
    char shape[200], target[96] = "";
    snprintf(shape, sizeof shape, "%s", mixt__dims_print(info->input_rank, info->input_dims).text);
    bool sequences = info->target == MIXT_TARGET_TOKENS || info->array_count > 2;
    if (info->target == MIXT_TARGET_CLASS)
        snprintf(target, sizeof target, ", %lld classes", (long long)info->classes);
    else if (info->target == MIXT_TARGET_VALUES)
        snprintf(target, sizeof target, ", %s to predict", info->target_elements > 1 ? "numbers" : "a number");
    return mixt__arena_text(&s->arena, "%s (%s): %lld samples to train on%s%s%s", *s->path ? s->path : s->kind, s->kind,
                            (long long)info->samples, sequences ? "" : " of ", sequences ? "" : shape, target);
}

/** One line: what the data is, and the model and length of the run. */
static void summarise(mixt_suggestion *s, const mixt_data_info *info)
{
    int64_t epochs = mixt__config_int(s->config, MIXT_KEY_TRAIN_EPOCHS),
            steps = mixt__config_int(s->config, MIXT_KEY_TRAIN_STEPS);
    char lr[40];
    mixt__print_number(lr, sizeof lr, "%g", mixt__config_float(s->config, MIXT_KEY_TRAIN_LR));
    s->summary = mixt__arena_text(&s->arena, "%s. Model: %s%s, %lld %s, batch %lld, learning rate %s",
                                  describe(s, info), text(s, MIXT_KEY_MODEL), s->tuned ? " with trained weights" : "",
                                  (long long)(steps ? steps : epochs), steps ? "updates" : "epochs",
                                  (long long)mixt__config_int(s->config, MIXT_KEY_TRAIN_BATCH), lr);
}

/** Opens the training part. A tenth of a small table is too few rows to tell good weights from lucky ones: more are
 * held out then. */
static mixt_status open_part(mixt_suggestion *s, const mixt__experiment *e, mixt_data **data)
{
    enum { SMALL = 450 };
    MIXT_TRY(mixt__experiment_part(e, "train", data));
    if (strcmp(s->kind, "csv") || mixt_data_describe(*data)->samples >= SMALL ||
        mixt__config_was_set(s->config, MIXT_KEY_DATA_VAL_FRACTION))
        return MIXT_OK;
    mixt_data_close(*data);
    *data = NULL;
    CHOOSE(DATA_VAL_FRACTION, "held out to choose the best weights by; few rows", "0.2");
    return mixt__experiment_part(e, "train", data);
}

mixt_status mixt__suggest_all(mixt_suggestion *s)
{
    const char *model = NULL, *why = "";
    choose_fn *choose = NULL;
    mixt__experiment e = {.config = s->config};
    mixt_data *data;
    MIXT_TRY(mixt__suggest(s, MIXT_KEY_DATA_KIND, "", "%s", s->kind));
    MIXT_TRY(choose_init(s));
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].kind, s->kind)) {
            model = kinds[i].model;
            why = kinds[i].why;
            choose = kinds[i].choose;
        }
    if (choose)
        MIXT_TRY(mixt__suggest(s, MIXT_KEY_MODEL, why, "%s", model));
    if (!strcmp(s->kind, "text"))
        MIXT_TRY(choose_language_model(s));
    if (!strcmp(s->kind, "images"))
        MIXT_TRY(choose_crop(s));
    if (!strcmp(s->kind, "parallel"))
        MIXT_TRY(choose_languages(s));
    if (!strcmp(s->kind, "csv"))
        MIXT_TRY(choose_target(s));
    MIXT_TRY(open_part(s, &e, &data));
    const mixt_data_info *info = mixt_data_describe(data);
    mixt_status status = MIXT_OK;
    if (!choose) {
        choose = by_shape(s, info, &model);
        status = mixt__suggest(s, MIXT_KEY_MODEL, "", "%s", model);
    }
    if (status == MIXT_OK)
        status = choose(s, info);
    if (status == MIXT_OK)
        status = choose_patience(s, &e);
    if (status == MIXT_OK)
        status = mixt__suggest(s, MIXT_KEY_PRECISION, "fp32, fp16 or auto are others", "bf16");
    if (status == MIXT_OK)
        summarise(s, info);
    mixt_data_close(data);
    return status;
}
