/* From a model's folder and a file of conversations to the configuration of a run. */
#include "mixt/finetune.h"

#include "base/alloc.h"
#include "base/c_locale.h"
#include "base/options.h"
#include "config/config.h"
#include "data/chat/chat.h"
#include "data/data.h"
#include "models/models.h"
#include "run/open/hf_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_BYTES = 4400,
    LONGEST = 2048, // tokens of a row, where the model has room for more
    SHORTEST = 512, // below that rows would be many and hardly cheaper
    TOKENS = 16384, // of an update
    UPDATES = 50,   // of an epoch, where there is enough for them
    EPOCHS = 3,
    VALIDATIONS = 6, // of a run
};

typedef struct maker {
    const char *folder, *data;
    const mixt_finetune_options *options;
    mixt_config *config;
    int64_t rows, longest; // of the training part: rows of batches, tokens of its longest sample
} maker;

static mixt_status set(maker *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Sets a key, unless the caller's settings do. */
static mixt_status set(maker *m, const char *format, ...)
{
    char setting[2 * PATH_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(setting, sizeof setting, format, values);
    va_end(values);
    return mixt_config_set(m->config, setting, "finetune");
}

static mixt_status apply_settings(maker *m)
{
    for (const char *const *s = m->options->settings; s && *s; s++)
        MIXT_TRY(mixt_config_set(m->config, *s, "command line"));
    return MIXT_OK;
}

/* ---- what is wrong with an order ---- */

static mixt_status check_base(const maker *m)
{
    const mixt_finetune_options *o = m->options;
    bool wide = !strcmp(o->base, "bf16") || !strcmp(o->base, "fp32");
    if (o->full && !wide)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "base %s: of full fine-tuning every weight is trained, which that format is too coarse for: "
                          "bf16 or fp32, or adapters beside it",
                          o->base);
    const char *choices = mixt__config_table[MIXT_KEY_TRAIN_FROZEN].choices;
    size_t length = strlen(o->base);
    for (const char *at = choices; !wide && at && *at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        wide = !strncmp(at, o->base, length) && (at[length] == '|' || !at[length]) && strcmp(o->base, "auto");
    return wide ? MIXT_OK
                : mixt__fail(MIXT_ERROR_UNSUPPORTED,
                             "base '%s': a frozen model is kept in bf16, fp32, or what train.frozen knows (%s)",
                             o->base, choices);
}

static mixt_status check(const maker *m)
{
    const mixt_finetune_options *o = m->options;
    if (!mixt__path_is_directory(m->folder))
        return mixt__fail(MIXT_ERROR_FILE, "%s: no such folder: expected that of a Hugging Face model", m->folder);
    if (!mixt__hf_folder_is(m->folder))
        return mixt__fail(
            MIXT_ERROR_FILE,
            "%s: is not a Hugging Face folder: expected config.json with model.safetensors, or several files "
            "with model.safetensors.index.json (of a run: mixt export makes one)",
            m->folder);
    if (!mixt__hf_folder_has_tokenizer(m->folder))
        return mixt__fail(
            MIXT_ERROR_FILE,
            "%s: has no tokenizer, and other tokens than its own are noise to it: put its tokenizer.json, "
            "or the older files, into the folder",
            m->folder);
    if (!mixt__path_is_file(m->data))
        return mixt__fail(MIXT_ERROR_FILE, "%s: no such file: expected conversations or instructions (JSONL or JSON)",
                          m->data);
    if (o->lora < 1)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "adapters of rank %lld: expected 1 or more (all weights are trained "
                          "with full)",
                          (long long)o->lora);
    return check_base(m);
}

/* ---- values ---- */

static mixt_status set_model(maker *m)
{
    const mixt_finetune_options *o = m->options;
    bool fp32 = !strcmp(o->base, "fp32");
    MIXT_TRY(set(m, "init=%s", m->folder));
    MIXT_TRY(set(m, "data.vocab=%s", m->folder));
    MIXT_TRY(set(m, "data.kind=chat"));
    MIXT_TRY(set(m, "data.path=%s", m->data));
    MIXT_TRY(set(m, "data.val_fraction=0.05"));
    MIXT_TRY(set(m, "precision=%s", fp32 ? "fp32" : "bf16"));
    MIXT_TRY(set(m, "train.lr=%s", o->preference ? o->full ? "1e-6" : "2e-5" : o->full ? "2e-5" : "2e-4"));
    MIXT_TRY(set(m, "train.weight_decay=%s", o->full ? "0.01" : "0"));
    MIXT_TRY(set(m, "train.clip=1.0"));
    MIXT_TRY(set(m, "train.schedule=cosine"));
    MIXT_TRY(set(m, "train.epochs=%d", o->preference ? 1 : EPOCHS));
    if (o->preference)
        MIXT_TRY(set(m, "data.loss_on=preference"));
    if (!o->full)
        MIXT_TRY(set(m, "lora.rank=%lld", (long long)o->lora));
    if (!fp32 && strcmp(o->base, "bf16"))
        MIXT_TRY(set(m, "train.frozen=%s", o->base));
    if (o->memory && *o->memory)
        MIXT_TRY(set(m, "train.memory=%s", o->memory));
    return o->out && *o->out ? set(m, "out=%s", o->out) : MIXT_OK;
}

/** Opens the training part to see how large it is. */
static mixt_status look(maker *m, int64_t seq, int64_t *rows)
{
    char spec[PATH_BYTES];
    mixt_data *data;
    const mixt_config *c = m->config;
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .split = "train", .seq = seq);
    o.seed = (uint64_t)mixt__config_int(c, MIXT_KEY_SEED);
    o.progress = m->options->progress;
    o.user = m->options->user;
    o.vocab = mixt__config_string(c, MIXT_KEY_DATA_VOCAB);
    o.tokenizer = mixt__config_string(c, MIXT_KEY_DATA_TOKENIZER);
    o.chat_template = mixt__config_string(c, MIXT_KEY_DATA_TEMPLATE);
    o.loss_on = (mixt_loss_on)mixt__config_choice(c, MIXT_KEY_DATA_LOSS_ON);
    o.unpacked = !mixt__config_bool(c, MIXT_KEY_DATA_PACK);
    o.val = mixt__config_float(c, MIXT_KEY_DATA_VAL_FRACTION);
    o.test = mixt__config_float(c, MIXT_KEY_DATA_TEST_FRACTION);
    o.limit = mixt__config_int(c, MIXT_KEY_DATA_LIMIT);
    snprintf(spec, sizeof spec, "%s:%s", mixt__config_string(c, MIXT_KEY_DATA_KIND),
             mixt__config_string(c, MIXT_KEY_DATA_PATH));
    MIXT_TRY(mixt_data_open_with(spec, &o, &data));
    const mixt__chat_state *state = mixt__chat_state_of(data);
    *rows = mixt_data_describe(data)->samples;
    m->longest = !state ? seq : state->set.pairs ? 2 * state->info.longest : state->info.longest;
    mixt_data_close(data);
    return MIXT_OK;
}

/** Rows as long as the longest sample, within bounds. */
static int64_t row_of(const maker *m, int64_t most)
{
    int64_t seq = (m->longest + 63) / 64 * 64;
    seq = seq < SHORTEST ? SHORTEST : seq;
    return seq < most ? seq : most;
}

static mixt_status set_sizes(maker *m)
{
    int64_t most = mixt__config_int(m->config, MIXT_KEY_DATA_SEQ), rows; // of the folder: its positions, 2048 at most
    bool given = mixt__config_was_set(m->config, MIXT_KEY_DATA_SEQ) &&
                 !strcmp(mixt__config_origin(m->config, MIXT_KEY_DATA_SEQ), "command line");
    most = most < LONGEST || given ? most : LONGEST;
    MIXT_TRY(look(m, most, &rows));
    int64_t seq = given ? most : row_of(m, most);
    if (seq != most)
        MIXT_TRY(look(m, seq, &rows));
    int64_t batch = TOKENS / seq > 0 ? TOKENS / seq : 1;
    batch = rows / UPDATES < batch ? rows / UPDATES : batch;
    MIXT_TRY(set(m, "data.seq=%lld", (long long)seq));
    MIXT_TRY(set(m, "train.batch=%lld", (long long)(batch < 1 ? 1 : batch)));
    m->rows = rows;
    return apply_settings(m);
}

/** By the number of updates that there will be. */
static mixt_status set_course(maker *m)
{
    const mixt_config *c = m->config;
    int64_t batch = mixt__config_int(c, MIXT_KEY_TRAIN_BATCH) * mixt__config_int(c, MIXT_KEY_TRAIN_ACCUMULATE);
    int64_t epoch = m->rows / batch > 0 ? m->rows / batch : 1, epochs = mixt__config_int(c, MIXT_KEY_TRAIN_EPOCHS);
    int64_t steps = mixt__config_int(c, MIXT_KEY_TRAIN_STEPS);
    if (epochs && (!steps || epochs * epoch < steps))
        steps = epochs * epoch;
    MIXT_TRY(set(m, "train.warmup=%lld", (long long)((3 * steps + 99) / 100)));
    MIXT_TRY(set(m, "train.validate_every=%lld", (long long)(steps / VALIDATIONS > 0 ? steps / VALIDATIONS : 1)));
    return apply_settings(m);
}

/** Only models that write on are asked by conversations. */
static mixt_status check_model(const maker *m)
{
    const mixt__zoo_entry *entry;
    MIXT_TRY(mixt__model_find(mixt__config_string(m->config, MIXT_KEY_MODEL), &entry));
    if (entry->input == MIXT_MODEL_TOKENS && !entry->bidirectional)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                      "%s: its model is %s, which does not write on: mixt train with init=%s fine-tunes it", m->folder,
                      entry->name, m->folder);
}

static mixt_status fill(maker *m)
{
    MIXT_TRY(check_model(m));
    MIXT_TRY(set_model(m));
    MIXT_TRY(apply_settings(m));
    MIXT_TRY(set_sizes(m));
    MIXT_TRY(set_course(m));
    return mixt_config_check(m->config);
}

mixt_status mixt_finetune_config(const char *folder, const char *data, const mixt_finetune_options *options,
                                 mixt_config **config)
{
    mixt_finetune_options o = MIXT_OPTIONS(mixt_finetune_options);
    MIXT_TRY(mixt__need(config));
    *config = NULL;
    MIXT_TRY(mixt__need(folder));
    MIXT_TRY(mixt__need(data));
    MIXT_TRY(mixt__options(mixt_finetune_options, &o, options));
    o.base = o.base && *o.base ? o.base : "bf16";
    maker m = {.folder = folder, .data = data, .options = &o};
    MIXT_TRY(check(&m));
    MIXT_TRY(mixt__hf_folder_config(folder, &m.config));
    mixt_status status = fill(&m);
    if (status == MIXT_OK)
        *config = m.config;
    else
        mixt_config_free(m.config);
    return status;
}
