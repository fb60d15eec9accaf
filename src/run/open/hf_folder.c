/* From config.json to keys of a configuration. */
#include "run/open/hf_folder.h"

#include "data/data.h"
#include "data/text/gpt2_files.h"
#include "models/models.h"
#include "run/open/inputs.h"
#include "run/open/net_sizes.h"
#include "store/file.h"
#include "store/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 2048, PATH_BYTES = 4400 }; // LONGEST: tokens of a text, where the model has room for more

static bool has(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && !access(path, F_OK);
}

bool mixt__hf_folder_is(const char *folder)
{
    return has(folder, "config.json") && !has(folder, "config.yaml") &&
           (has(folder, "model.safetensors") || has(folder, "model.safetensors.index.json"));
}

bool mixt__hf_folder_has_tokenizer(const char *folder)
{
    return has(folder, "tokenizer.json") || has(folder, "merges.txt") || has(folder, "vocab.bpe") ||
           has(folder, "vocab.txt");
}

mixt_status mixt__hf_folder_check_text(const char *folder, const mixt_config *config, const char *kind)
{
    bool named = *mixt__config_string(config, MIXT_KEY_DATA_VOCAB) ||
                 !strcmp(mixt__config_string(config, MIXT_KEY_DATA_TOKENIZER), "bytes");
    if (named || (strcmp(kind, "text") && strcmp(kind, "labelled") && strcmp(kind, "chat")))
        return MIXT_OK;
    return mixt__fail(
        MIXT_ERROR_CONFIG,
        "%s: has no tokenizer, and other tokens than its own are noise to it: copy its tokenizer.json, or the older "
        "files, into the folder, or set data.vocab=FOLDER (data.tokenizer=bytes where its tokens are bytes)",
        folder);
}

/** The model of the zoo whose files have these names. */
static const mixt__zoo_entry *entry_of(const mixt__names *names)
{
    for (const mixt__zoo_entry *e = mixt__zoo; e->name; e++)
        if (e->names && !strcmp(e->names, names->family))
            return e;
    return NULL;
}

static mixt_status set_sizes(mixt_config *config, const mixt__zoo_entry *entry, const mixt__name_facts *f, bool missing,
                             const char *origin)
{
    if (entry->uses & MIXT_USES_POOL && !strcmp(f->architecture, "mean"))
        MIXT_TRY(mixt__net_size_set(config, missing, MIXT_KEY_NET_POOL, "mean", origin));
    return mixt__net_sizes_set(config, entry, f, missing, origin);
}

/** Reads a folder's config.json: whose model it is, and its sizes. Where it fails of a known model, `entry` says which.
 */
static mixt_status read_folder(const char *folder, char path[PATH_BYTES], const mixt__zoo_entry **entry,
                               mixt__name_facts *facts)
{
    const mixt__names *names;
    *entry = NULL;
    if (snprintf(path, PATH_BYTES, "%s/config.json", folder) >= PATH_BYTES)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    mixt_status status = mixt__names_read_config(path, &names, facts);
    *entry = names ? entry_of(names) : NULL;
    MIXT_TRY(status);
    return *entry ? MIXT_OK
                  : mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: its tensor names are not those of a model that mixt has",
                               path);
}

/** Text with the folder's tokenizer, in pieces that the model can read. */
static mixt_status set_data(mixt_config *config, const char *folder, const mixt__zoo_entry *entry,
                            const mixt__name_facts *f, const char *origin)
{
    int64_t room = entry->bidirectional || entry->input == MIXT_MODEL_TEXTS ? entry->tokens : LONGEST;
    int64_t seq = f->positions && f->positions < room ? f->positions : room;
    MIXT_TRY(mixt__net_size_set(config, false, MIXT_KEY_DATA_KIND,
                                entry->input == MIXT_MODEL_TEXTS ? "labelled" : "text", origin));
    MIXT_TRY(mixt__net_size_set_number(config, false, MIXT_KEY_DATA_SEQ, (double)seq, origin));
    if (entry->bidirectional)
        MIXT_TRY(mixt__net_size_set(config, false, MIXT_KEY_DATA_MASK, "0.15", origin));
    return mixt__hf_folder_has_tokenizer(folder)
               ? mixt__net_size_set(config, false, MIXT_KEY_DATA_VOCAB, folder, origin)
               : MIXT_OK;
}

/** What mixt's own exports say of their data: its parts are cut as they were. */
static mixt_status set_cut(mixt_config *config, const char *folder)
{
    char path[PATH_BYTES];
    json_t *inputs;
    if (mixt__run_inputs_read(folder, &inputs) != MIXT_OK)
        return MIXT_OK; // whoever needs the file will say why
    snprintf(path, sizeof path, "%s/" MIXT_INPUTS_FILE, folder);
    mixt_status status = mixt__run_inputs_cut_set(json_object_get(inputs, "cut"), config, path);
    json_decref(inputs);
    return status;
}

static mixt_status fill_config(const char *folder, mixt_config *config)
{
    const mixt__zoo_entry *entry;
    mixt__name_facts facts;
    char path[PATH_BYTES];
    MIXT_TRY(read_folder(folder, path, &entry, &facts));
    MIXT_TRY(mixt__net_size_set(config, false, MIXT_KEY_MODEL, entry->name, path));
    MIXT_TRY(mixt__net_size_set(config, false, MIXT_KEY_PRECISION, "fp32", path));
    MIXT_TRY(set_sizes(config, entry, &facts, false, path));
    MIXT_TRY(mixt__net_size_set_number(config, false, MIXT_KEY_NET_VOCAB, (double)facts.vocab, path));
    if (entry->uses & MIXT_USES_CLASSES && facts.classes)
        MIXT_TRY(mixt__net_size_set_number(config, false, MIXT_KEY_NET_CLASSES, (double)facts.classes, path));
    MIXT_TRY(mixt__net_size_set_number(config, false, MIXT_KEY_TRAIN_BATCH, 1, path));
    MIXT_TRY(set_data(config, folder, entry, &facts, path));
    MIXT_TRY(set_cut(config, folder));
    return mixt_config_check(config);
}

mixt_status mixt__hf_folder_config(const char *folder, mixt_config **config)
{
    MIXT_TRY(mixt_config_new(config));
    mixt_status status = fill_config(folder, *config);
    if (status == MIXT_OK)
        return MIXT_OK;
    mixt_config_free(*config);
    *config = NULL;
    return status;
}

mixt_status mixt__hf_folder_fill(mixt_config *config)
{
    const char *folder = mixt__config_string(config, MIXT_KEY_INIT);
    const mixt__zoo_entry *entry;
    mixt__name_facts facts;
    char path[PATH_BYTES];
    if (!*folder || !mixt__hf_folder_is(folder))
        return MIXT_OK;
    mixt_status status = read_folder(folder, path, &entry, &facts);
    if (status == MIXT_ERROR_UNSUPPORTED && !entry) // of a program whose files tell their sizes otherwise
        return MIXT_OK;
    MIXT_TRY(status);
    MIXT_TRY(mixt__net_size_set(config, true, MIXT_KEY_MODEL, entry->name, path));
    const char *model = mixt__config_string(config, MIXT_KEY_MODEL);
    const mixt__zoo_entry *texts;
    if (!strcmp(model, "bert_classify") && !strcmp(entry->name, "bert_mlm")) { // another head on the same encoder
        MIXT_TRY(mixt__model_find(model, &texts));
        entry = texts;
    }
    if (strcmp(entry->name, model))
        return MIXT_OK;
    if (entry->input == MIXT_MODEL_TEXTS &&
        mixt__hf_folder_has_tokenizer(folder)) // tokens of other words would be noise
        MIXT_TRY(mixt__net_size_set(config, true, MIXT_KEY_DATA_VOCAB, folder, path));
    const char *vocab = mixt__config_string(config, MIXT_KEY_DATA_VOCAB);
    if (entry->uses & MIXT_USES_ROPE && *vocab && mixt__same_file(vocab, folder)) // tables have rows to spare
        MIXT_TRY(mixt__net_size_set_number(config, true, MIXT_KEY_NET_VOCAB, (double)facts.vocab, path));
    if (!(entry->uses & MIXT_USES_ROPE) && facts.positions && facts.positions < entry->tokens) // has no more
        MIXT_TRY(mixt__net_size_set_number(config, true, MIXT_KEY_DATA_SEQ, (double)facts.positions, path));
    return set_sizes(config, entry, &facts, true, path);
}

/** Whether names are those that transformers gives to classes without a name: LABEL_0, LABEL_1, … */
static bool are_numbers(const char *const *labels, int64_t count)
{
    char name[32];
    for (int64_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "LABEL_%lld", (long long)i);
        if (strcmp(labels[i], name))
            return false;
    }
    return true;
}

/** @param labels (facts->classes) in the arena; NULL: classes have no names */
static mixt_status read_labels(const char *path, const mixt__name_facts *facts, mixt__arena *arena,
                               const char *const **labels)
{
    MIXT_TRY(mixt__names_read_labels(path, facts->classes, arena, labels));
    if (*labels && are_numbers(*labels, facts->classes))
        *labels = NULL;
    return MIXT_OK;
}

mixt_status mixt__hf_folder_labels(const char *folder, const mixt_data *facts, mixt__arena *arena,
                                   const char *const **labels, int64_t *count)
{
    const mixt__zoo_entry *entry;
    mixt__name_facts sizes;
    char path[PATH_BYTES];
    *labels = facts ? facts->info.class_names : NULL;
    *count = facts ? facts->info.classes : 0;
    if (facts || !mixt__hf_folder_is(folder))
        return MIXT_OK;
    mixt_status status = read_folder(folder, path, &entry, &sizes);
    if (status != MIXT_OK || entry->input != MIXT_MODEL_TEXTS || !sizes.classes)
        return status == MIXT_ERROR_UNSUPPORTED ? MIXT_OK : status;
    *count = sizes.classes;
    return read_labels(path, &sizes, arena, labels);
}

/** NULL: no memory. @param labels (f->classes); NULL: they have no names */
static json_t *pack_inputs(const mixt__name_facts *f, int64_t seq, const char *const *labels)
{
    json_t *names = labels ? json_array() : json_null();
    for (int64_t i = 0; labels && i < f->classes; i++)
        if (mixt__json_add(names, mixt__json_string(labels[i])))
            return json_decref(names), NULL;
    json_t *arrays =
        json_pack("[{s:s,s:b,s:s,s:[I],s:I},{s:s,s:b,s:s,s:[],s:I},{s:s,s:b,s:s,s:[I],s:i},"
                  "{s:s,s:b,s:s,s:[],s:I}]",
                  "name", "text", "target", 0, "dtype", "int32", "shape", (json_int_t)seq, "ids", (json_int_t)f->vocab,
                  "name", "text.length", "target", 0, "dtype", "int32", "shape", "ids", (json_int_t)seq + 1, "name",
                  "text.mask", "target", 0, "dtype", "fp32", "shape", (json_int_t)seq, "ids", 0, "name", "label",
                  "target", 1, "dtype", "int32", "shape", "ids", (json_int_t)f->classes);
    return json_pack("{s:{s:s,s:s,s:s,s:[I],s:s,s:[],s:[],s:i,s:i,s:f,s:s,s:i,s:b,s:I,s:o,s:i,s:o}}", "data", "kind",
                     "labelled", "path", "", "input_dtype", "int32", "input_shape", (json_int_t)seq, "normalise",
                     "standard", "mean", "std", "crop", 0, "resize", 0, "min_area", 0.0, "target", "class", "targets",
                     1, "next_tokens", 0, "classes", (json_int_t)f->classes, "class_names", names, "samples", 1,
                     "arrays", arrays);
}

mixt_status mixt__hf_folder_inputs(const char *folder, const mixt_config *config, json_t **inputs)
{
    const mixt__zoo_entry *entry;
    mixt__name_facts facts;
    char path[PATH_BYTES];
    mixt__arena arena = {0};
    const char *const *labels;
    *inputs = NULL;
    MIXT_TRY(read_folder(folder, path, &entry, &facts));
    if (entry->input != MIXT_MODEL_TEXTS || !facts.classes)
        return MIXT_OK;
    mixt_status status = read_labels(path, &facts, &arena, &labels);
    if (status == MIXT_OK && (labels || !*mixt__config_string(config, MIXT_KEY_DATA_PATH))) {
        *inputs = pack_inputs(&facts, mixt__config_int(config, MIXT_KEY_DATA_SEQ), labels);
        if (!*inputs)
            status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for what %s says of its inputs", path);
    }
    mixt__arena_free(&arena);
    return status;
}
