/* The data of a run that was trained before: looked for late, and compared with what the run remembers. */
#include "run/open/without_data.h"

#include "data/facts.h"
#include "run/open/hf_folder.h"
#include "run/open/inputs.h"
#include "run/report/summary.h"
#include "store/tensor.h"

#include <stdlib.h>
#include <string.h>

/** What a language model of others was trained on nobody knows: a text that mixt writes would say nothing of it. */
static mixt_status need_text(const mixt_run *run, const char *folder)
{
    if (!mixt__hf_folder_is(folder) || strcmp(mixt__config_string(run->config, MIXT_KEY_DATA_KIND), "text") ||
        *mixt__config_string(run->config, MIXT_KEY_DATA_PATH))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "%s: does not name its data: set data.path=… to a text", folder);
}

mixt_status mixt__without_data_open(mixt_run *run, const char *folder)
{
    mixt__without_data *known = &run->known;
    MIXT_TRY(mixt__run_inputs_read(folder, &known->inputs));
    if (!known->inputs && mixt__hf_folder_is(folder))
        MIXT_TRY(mixt__hf_folder_inputs(folder, run->config, &known->inputs));
    if (!known->inputs) {
        MIXT_TRY(need_text(run, folder));
        return mixt__experiment_open(&run->experiment, run->config);
    }
    known->folder = mixt__strdup(folder);
    if (!known->folder)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a run");
    mixt_status status = mixt__experiment_open_without_data(&run->experiment, run->config, known->inputs);
    return status == MIXT_ERROR_FORMAT && !run->experiment.facts
               ? mixt__fail_context(status, "%s/%s", folder, MIXT_INPUTS_FILE)
               : status;
}

/** Whether a part has the checksum that the run remembers; yes where one of both is not known. */
static bool same_samples(const mixt__without_data *known, const char *split, const mixt_data *data, uint64_t sum)
{
    const json_t *then = json_object_get(json_object_get(known->inputs, "trained_on"), split);
    const char *text = json_string_value(json_object_get(then, "checksum"));
    uint64_t wanted = text ? strtoull(text, NULL, 16) : 0;
    return !data || !sum || !wanted || sum == wanted;
}

static void compare(mixt_run *run)
{
    mixt__without_data *known = &run->known;
    mixt__experiment *e = &run->experiment;
    if (known->checked)
        return;
    known->checked = true;
    const uint64_t *sums = mixt__experiment_sums(e);
    if (same_samples(known, "train", e->train, sums[0]) && same_samples(known, "val", e->val, sums[1]))
        return;
    const mixt_data_info *info = mixt_data_describe(e->train ? e->train : e->val);
    mixt__run_note(
        run, true,
        "%s: is not the data that %s was trained on: figures are for these samples (normalised as in training)",
        *info->path ? info->path : info->kind, known->folder);
    mixt__warnings_tell_data(run, e->train ? e->train : e->val);
}

/** Training and validation part, as far as they are there: a part can be evaluated without the others. */
static mixt_status open_parts(mixt_run *run)
{
    mixt__experiment *e = &run->experiment;
    MIXT_TRY(mixt__experiment_open_train(e));
    if (!e->val && mixt__experiment_data(e, "val", &e->val) != MIXT_OK)
        e->val = NULL;
    return MIXT_OK;
}

mixt_status mixt__data_gone(const mixt_config *config, const char *folder, mixt_status status)
{
    const char *path = mixt__config_string(config, MIXT_KEY_DATA_PATH);
    size_t word = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789_"); // a kind may stand before
    path += path[word] == ':' ? word + 1 : 0;
    if (status == MIXT_OK || !*path || mixt__path_is_file(path) || mixt__path_is_directory(path))
        return status;
    return mixt__fail(MIXT_ERROR_FILE,
                      "%s: its data is no longer at %s: say where it is now with data.path=NEW (it is known by its "
                      "checksum)",
                      folder, path);
}

/** Classes that have names must have the same ones: folders of pictures are counted in their order. */
static mixt_status check_names(const char *folder, const mixt_data_info *now, const mixt_data_info *then)
{
    int64_t other = mixt__data_facts_other_class(now->class_names, now->classes, then->class_names, then->classes);
    if (other < 0)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_DATA, "%s: class %lld is '%s', but %s was trained with '%s' there", now->path,
                      (long long)other, now->class_names[other], folder, then->class_names[other]);
}

/** A run on ready tokens does not know their texts unless somebody named the vocabulary: bytes would be noise to it. */
static mixt_status check_tokens(const mixt_config *config, const char *folder, const mixt_data_info *now,
                                const mixt_data_info *then)
{
    bool named = *mixt__config_string(config, MIXT_KEY_DATA_VOCAB) ||
                 !strcmp(mixt__config_string(config, MIXT_KEY_DATA_TOKENIZER), "bytes");
    if (named || strcmp(then->kind, "tokens") || strcmp(now->kind, "text"))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG,
                      "%s: is text, but %s was trained on tokens of an unknown vocabulary: set data.vocab=FOLDER "
                      "(data.tokenizer=bytes where its tokens are bytes)",
                      now->path, folder);
}

mixt_status mixt__without_data_check(const mixt_config *config, const char *folder, const mixt_data *facts,
                                     const mixt_data *data)
{
    const mixt_data_info *now = &data->info, *then = &facts->info;
    if (then->input_dtype == MIXT_DTYPE_FP32 &&
        (now->input_rank != then->input_rank ||
         memcmp(now->input_dims, then->input_dims, (size_t)then->input_rank * sizeof then->input_dims[0])))
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: samples of shape %s, but %s was trained on %s", now->path,
                          mixt__dims_print(now->input_rank, now->input_dims).text, folder,
                          mixt__dims_print(then->input_rank, then->input_dims).text);
    bool captions = !strcmp(now->kind, "pairs") && !strcmp(then->kind, "pairs"); // which are no classes
    if (now->input_dtype != then->input_dtype || now->target != then->target ||
        (now->classes > then->classes && !captions))
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s: has other targets, or more classes (%lld) than %s was trained on (%lld): this is another data set",
            now->path, (long long)now->classes, folder, (long long)then->classes);
    MIXT_TRY(check_tokens(config, folder, now, then));
    return check_names(folder, now, then);
}

/** What is doubtful about a part, once; of what was trained on it was told then. */
static void tell_part(mixt_run *run, const char *split, const mixt_data *data)
{
    unsigned part = !strcmp(split, "val") ? 1 : !strcmp(split, "test") ? 2 : !strcmp(split, "all") ? 4 : 0;
    if (part & ~run->known.told)
        mixt__warnings_tell_data(run, data);
    run->known.told |= part;
}

mixt_status mixt__without_data_part(mixt_run *run, const char *split, mixt_data **data)
{
    mixt__experiment *e = &run->experiment;
    *data = NULL;
    MIXT_TRY(need_text(run, run->known.folder));
    mixt_status status = open_parts(run);
    *data = !strcmp(split, "train") ? e->train : !strcmp(split, "val") ? e->val : NULL;
    if (!*data && (status == MIXT_OK || strcmp(split, "train")))
        status = mixt__experiment_data(e, split, data);
    if (status != MIXT_OK) {
        *data = NULL;
        if (status != MIXT_ERROR_FILE)
            return status;
        status = mixt__fail_context(status, "the '%s' part of %s's data cannot be opened", split, run->known.folder);
        return mixt__data_gone(run->config, run->known.folder, status);
    }
    if (!strcmp(split, "val"))
        e->val = *data;
    compare(run);
    status = mixt__without_data_check(run->config, run->known.folder, e->facts, *data);
    if (status == MIXT_OK)
        tell_part(run, split, *data);
    if (status != MIXT_OK)
        *data = NULL;
    return status;
}

mixt_status mixt__without_data_data(mixt_run *run)
{
    if (!run->known.folder)
        return MIXT_OK;
    mixt_data *train;
    return mixt__without_data_part(run, "train", &train);
}

void mixt__without_data_close(mixt__without_data *known)
{
    mixt__free(known->folder);
    json_decref(known->inputs);
    *known = (mixt__without_data){0};
}
