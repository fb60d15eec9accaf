/* Writing what a run knows of its inputs. */
#include "run/open/inputs.h"

#include "base/c_locale.h"
#include "base/files.h"
#include "base/status.h"
#include "data/facts.h"
#include "data/text/gpt2_files.h"
#include "data/text/inputs_text.h"
#include "data/text/tokenizer.h"
#include "onnx/onnx.h"
#include "store/file.h"
#include "store/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4400 };

#define MIXT_TEMPLATE_FILE "chat_template.jinja"

/** Names that a vocabulary's files may have: of each row the first that is there. */
static const char *const vocabulary_files[][2] = {
    {"encoder.json", "vocab.json"},  {"vocab.bpe", "merges.txt"},     {"vocab.txt", NULL},
    {"tokenizer.json", NULL},        {"tokenizer_config.json", NULL}, {MIXT_TEMPLATE_FILE, NULL},
    {"generation_config.json", NULL}}; // these for conversations

enum { VOCABULARY_FILES = sizeof vocabulary_files / sizeof vocabulary_files[0] };

/* ---- vocabulary ---- */

static mixt_status copy_vocabulary(const char *folder, const char *vocab)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    snprintf(to, sizeof to, "%s/%s", folder, MIXT_VOCAB_FOLDER);
    if (mkdir(to, 0777) && errno != EEXIST)
        return mixt__fail(MIXT_ERROR_FILE, "cannot create folder %s: %s", to, strerror(errno));
    for (int i = 0; i < VOCABULARY_FILES; i++) {
        const char *const *names = vocabulary_files[i];
        if (!mixt__vocabulary_file(vocab, names[0], names[1], from, sizeof from))
            continue;
        if (snprintf(to, sizeof to, "%s/%s%s", folder, MIXT_VOCAB_FOLDER, strrchr(from, '/')) >= (int)sizeof to)
            return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
        if (!mixt__same_file(from, to))
            MIXT_TRY(mixt__file_copy(from, to));
    }
    return MIXT_OK;
}

/** A template of its own, where that is a file that can be copied as it is, takes the place of the vocabulary's. */
static mixt_status copy_template(const char *folder, const char *chat_template)
{
    char to[PATH_BYTES];
    size_t length = strlen(chat_template);
    if (!length || (length > 5 && !strcmp(chat_template + length - 5, ".json")) ||
        mixt__path_is_directory(chat_template))
        return MIXT_OK;
    if (snprintf(to, sizeof to, "%s/%s/%s", folder, MIXT_VOCAB_FOLDER, MIXT_TEMPLATE_FILE) >= (int)sizeof to)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    return mixt__same_file(chat_template, to) ? MIXT_OK : mixt__file_copy(chat_template, to);
}

/** The configuration names the template that the run has a copy of. */
static mixt_status name_template(const char *folder, mixt_config *config)
{
    char setting[PATH_BYTES];
    if (!*mixt__config_string(config, MIXT_KEY_DATA_TEMPLATE))
        return MIXT_OK;
    if (snprintf(setting, sizeof setting, "data.template=%s/%s/%s", folder, MIXT_VOCAB_FOLDER, MIXT_TEMPLATE_FILE) >=
        (int)sizeof setting)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    if (!mixt__path_is_file(strchr(setting, '=') + 1))
        return MIXT_OK;
    return mixt_config_set(config, setting, mixt__config_origin(config, MIXT_KEY_DATA_TEMPLATE));
}

mixt_status mixt__run_inputs_vocab(const char *folder, mixt_config *config)
{
    char setting[PATH_BYTES];
    struct stat facts;
    if (snprintf(setting, sizeof setting, "data.vocab=%s/%s", folder, MIXT_VOCAB_FOLDER) >= (int)sizeof setting)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    if (stat(strchr(setting, '=') + 1, &facts) || !S_ISDIR(facts.st_mode))
        return MIXT_OK;
    MIXT_TRY(name_template(folder, config));
    return mixt_config_set(config, setting, mixt__config_origin(config, MIXT_KEY_DATA_VOCAB));
}

/* ---- write ---- */

static json_t *pack_sum(const mixt_data *data, uint64_t sum)
{
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    return data ? json_pack("{s:I, s:s}", "samples", (json_int_t)mixt_data_describe(data)->samples, "checksum", text)
                : json_null();
}

/** Places of a text that the run trains, or began with; 0: it has none. */
static int64_t positions_of(const mixt__experiment *e)
{
    const mixt_data_info *info = mixt_data_describe(e->train);
    int64_t seq = info->target == MIXT_TARGET_TOKENS || mixt__are_texts(info) ? info->input_dims[0] : 0;
    return seq && e->positions > seq ? e->positions : seq;
}

static const char *loss_of(const mixt__experiment *e)
{
    static const char *const names[] = {
        [MIXT_LOSS_CROSS_ENTROPY] = "cross_entropy",
        [MIXT_LOSS_MSE] = "mse",
        [MIXT_LOSS_BCE] = "bce",
        [MIXT_LOSS_CUSTOM] = "own",
    };
    return names[mixt__trainer_model(e->trainer->inner)->loss];
}

static json_t *pack(mixt__experiment *e)
{
    const uint64_t *sums = mixt__experiment_sums(e);
    return json_pack("{s:s, s:i, s:s, s:s, s:I, s:o, s:{s:o, s:o}}", "format", "mixt-inputs", "version",
                     MIXT_INPUTS_VERSION, "model", mixt__config_string(e->config, MIXT_KEY_MODEL), "loss", loss_of(e),
                     "positions", (json_int_t)positions_of(e), "data", mixt__data_facts_pack(e->train), "trained_on",
                     "train", pack_sum(e->train, sums[0]), "val", pack_sum(e->val, sums[1]));
}

/* ---- how data was cut ---- */

static const mixt__config_key cut_keys[] = {MIXT_KEY_DATA_VAL_FRACTION, MIXT_KEY_DATA_TEST_FRACTION,
                                            MIXT_KEY_DATA_LIMIT, MIXT_KEY_SEED};

enum { CUT_KEYS = sizeof cut_keys / sizeof cut_keys[0] };

json_t *mixt__run_inputs_cut(const mixt_config *config)
{
    json_t *cut = json_object();
    for (int i = 0; i < CUT_KEYS && cut; i++) {
        const mixt_config_record *record = &mixt__config_table[cut_keys[i]];
        if (!mixt__config_was_set(config, cut_keys[i]))
            continue;
        json_t *value = record->type == MIXT_CONFIG_FLOAT ? json_real(mixt__config_float(config, cut_keys[i]))
                                                          : json_integer(mixt__config_int(config, cut_keys[i]));
        if (mixt__json_set(cut, record->name, value))
            return json_decref(cut), NULL;
    }
    return cut;
}

mixt_status mixt__run_inputs_cut_set(const json_t *cut, mixt_config *config, const char *origin)
{
    for (int i = 0; i < CUT_KEYS; i++) {
        const char *name = mixt__config_table[cut_keys[i]].name;
        const json_t *value = json_object_get(cut, name);
        char number[64], setting[128];
        if (!json_is_number(value) || mixt__config_was_set(config, cut_keys[i]))
            continue;
        if (json_is_integer(value))
            snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        else
            mixt__print_number(number, sizeof number, "%.17g", json_real_value(value));
        snprintf(setting, sizeof setting, "%s=%s", name, number);
        MIXT_TRY(mixt_config_set(config, setting, origin));
    }
    return MIXT_OK;
}

/* ---- files ---- */

static mixt_status write_text(const char *path, const char *text, bool overwrite)
{
    mixt__file_writer writer = {.fd = -1};
    mixt_status status = mixt__file_writer_open(&writer, path, overwrite);
    if (status == MIXT_OK)
        status = mixt__file_writer_append(&writer, text, strlen(text));
    if (status == MIXT_OK)
        status = mixt__file_writer_append(&writer, "\n", 1);
    if (status == MIXT_OK)
        return mixt__file_writer_commit(&writer);
    mixt__file_writer_abandon(&writer);
    return status;
}

mixt_status mixt__run_json_write(const char *path, json_t *value, bool overwrite)
{
    char *text = value ? mixt__json_dumps(value, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(value);
    if (!text)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %s", path);
    mixt_status status = write_text(path, text, overwrite);
    free(text);
    return status;
}

mixt_status mixt__run_inputs_write(const char *folder, mixt__experiment *e)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, MIXT_GRAPH_FILE);
    if (e->onnx && access(path, F_OK))
        MIXT_TRY(mixt__onnx_write_graph(e->onnx, path));
    const char *vocab = mixt__config_string(e->config, MIXT_KEY_DATA_VOCAB);
    if (!*vocab && e->train && e->train->options.vocab)
        vocab = e->train->options.vocab; // learned from the data
    if (*vocab) {
        MIXT_TRY(copy_vocabulary(folder, vocab));
        MIXT_TRY(copy_template(folder, mixt__config_string(e->config, MIXT_KEY_DATA_TEMPLATE)));
    }
    if (e->train->learned && snprintf(path, sizeof path, "%s/%s", folder, MIXT_VOCAB_FOLDER) < (int)sizeof path)
        MIXT_TRY(mixt__vocabulary_write(&e->train->tokenizer->vocabulary, path));
    snprintf(path, sizeof path, "%s/%s", folder, MIXT_INPUTS_FILE);
    return mixt__run_json_write(path, pack(e), true);
}

void mixt__run_inputs_discard(const char *folder)
{
    char path[PATH_BYTES];
    mixt__folder_remove_file(folder, MIXT_INPUTS_FILE);
    snprintf(path, sizeof path, "%s/%s", folder, MIXT_VOCAB_FOLDER);
    for (int i = 0; i < VOCABULARY_FILES * 2; i++)
        if (vocabulary_files[i / 2][i % 2])
            mixt__folder_remove_file(path, vocabulary_files[i / 2][i % 2]);
    rmdir(path);
}
