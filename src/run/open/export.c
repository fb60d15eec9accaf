/* The weights of a run for other programs: which weights, under which names, how many of the tokens, into which folder.
 * The work itself is store/export.c's. */
#include "mixt/weights.h"

#include "base/options.h"
#include "run/open/adapter.h"
#include "run/open/experiment.h"
#include "run/open/export_inputs.h"
#include "run/open/init.h"
#include "run/open/inputs.h"
#include "run/open/merge.h"
#include "run/run.h"
#include "run/open/weights.h"
#include "store/file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONGEST = 4096 }; // of a folder's name

mixt_status mixt__export_vocab(const mixt_export_options *o, const mixt_config *config, const json_t *inputs,
                               int64_t *vocab)
{
    const mixt__zoo_entry *entry;
    MIXT_TRY(mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry));
    bool padded = entry->names && entry->uses & MIXT_USES_VOCAB;
    if (o->vocab && !padded)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "vocab %lld is for gpt, llama, bert_mlm and bert_classify, where padding is left out: of %s "
                          "every row is written",
                          (long long)o->vocab, entry->name);
    *vocab = o->vocab ? o->vocab : mixt__config_int(config, MIXT_KEY_NET_VOCAB);
    const json_t *data = json_object_get(inputs, "data");
    if (!*vocab && padded)
        *vocab = json_integer_value(
            entry->input == MIXT_MODEL_TEXTS
                ? json_object_get(json_array_get(json_object_get(data, "arrays"), 0), "ids") // of its tokens
                : json_object_get(data, "classes"));
    if (*vocab || !padded)
        return MIXT_OK;
    mixt__experiment e = {.teller = {o->progress, o->user}};
    mixt_status status = mixt__experiment_open(&e, config);
    if (status == MIXT_OK)
        *vocab = e.sizes.vocab;
    mixt__experiment_close(&e);
    return status == MIXT_OK
               ? status
               : mixt__fail_context(status,
                                    "the number of tokens without padding is known only to the data: give it (vocab)");
}

static mixt_status make_folder(const char *path, bool *made)
{
    struct stat facts;
    *made = !mkdir(path, 0777);
    if (*made || (errno == EEXIST && !stat(path, &facts) && S_ISDIR(facts.st_mode)))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FILE, "cannot create folder %s: %s", path, strerror(errno));
}

static mixt_status keep_file(const char *folder, const char *name)
{
    char path[4200];
    struct stat facts;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (lstat(path, &facts) || S_ISDIR(facts.st_mode)) // a folder is never replaced: opening it will say so
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FILE, "%s: exists already and is not overwritten unless you ask for it (--overwrite)",
                      path);
}

/** All files or none: new weights beside an old config.json would be of another model. And what is exported has other
 *  names and maybe fewer bits: in the place of the run's own weights it would be their end. */
static mixt_status keep_others(const char *run, const mixt__export_request *r, const mixt__export_inputs *x)
{
    if (mixt__same_file(run, r->folder))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: is the run itself, whose weights would be replaced: choose another folder", r->folder);
    if (r->overwrite)
        return MIXT_OK;
    MIXT_TRY(keep_file(r->folder, "model.safetensors"));
    if (r->names)
        MIXT_TRY(keep_file(r->folder, "config.json"));
    for (int i = 0; mixt__export_inputs_file(x, i); i++)
        MIXT_TRY(keep_file(r->folder, mixt__export_inputs_file(x, i)));
    return MIXT_OK;
}

/** Whether a run's adapters are to be written as asked for. */
static mixt_status check_adapters(const char *run, const mixt_config *config, const mixt_export_options *o)
{
    bool has = mixt__config_int(config, MIXT_KEY_LORA_RANK) > 0;
    if (o->merged && o->adapter)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: adapters are merged, or written by themselves, not both", run);
    if (!has && (o->merged || o->adapter))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: has no adapters (lora.rank)", run);
    if (has && !o->merged && !o->adapter)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "%s: has adapters beside a frozen model: ask for both as one (merge), or for the adapters by "
                          "themselves (adapter)",
                          run);
    return MIXT_OK;
}

static mixt_status export_adapter(const char *run, const mixt_export_options *o, mixt_export_report *report)
{
    mixt_run *open;
    MIXT_TRY(mixt_run_load_with(run, o->weights ? o->weights : "final", NULL, &open));
    report->model = NULL;
    report->renamed = true;
    bool made = false;
    mixt_status status = make_folder(report->folder, &made);
    if (status == MIXT_OK)
        status = mixt__experiment_adapter_write(&open->experiment, report->folder, o->overwrite, &report->tensors);
    if (status != MIXT_OK && made)
        (void)rmdir(report->folder);
    mixt_run_close(open);
    return status;
}

/** Lets a request write a run merged with its adapters; `m` must outlive it. */
static mixt_status take_merged(mixt__export_request *r, mixt__merge *m, mixt_export_report *report)
{
    r->tensors = m->tensors;
    r->tensor_count = m->count;
    r->values = mixt__merge_values;
    r->user = m;
    MIXT_TRY(mixt__merge_compare(m, r->dtype));
    report->difference = m->difference;
    report->largest = m->largest;
    return MIXT_OK;
}

static mixt_status export_run(const char *run, mixt__export_inputs *x, const mixt_export_options *o, mixt__merge *merge,
                              mixt_export_report *report)
{
    const mixt_config *config = x->config;
    char source[MIXT_WEIGHTS_PATH];
    mixt__export_request r = {.source = source, .overwrite = o->overwrite, .not_finite = o->not_finite};
    const mixt__zoo_entry *entry;
    MIXT_TRY(mixt__run_folder_weights(run, o->weights ? o->weights : "final", source, sizeof source));
    bool given = o->folder && *o->folder;
    MIXT_TRY(given ? mixt__give_text(&report->folder, "%s", o->folder)
                   : mixt__give_text(&report->folder, "%s/export", run));
    if (strlen(report->folder) >= LONGEST)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", run);
    MIXT_TRY(check_adapters(run, config, o));
    if (o->adapter)
        return export_adapter(run, o, report);
    if (o->merged)
        MIXT_TRY(mixt__merge_open(merge, run, o->weights ? o->weights : "final"));
    r.folder = report->folder;
    MIXT_TRY(mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry));
    MIXT_TRY(mixt__experiment_names(config, &r.names, &r.facts));
    report->model = entry->name;
    report->renamed = r.names != NULL;
    r.dtype = o->dtype ? o->dtype : MIXT_DTYPE_FP32;
    char names[MIXT_FORMAT_NAMES];
    if (!mixt__format_may(r.dtype, MIXT_MAY_HOLD))
        return mixt__fail(MIXT_ERROR_DTYPE, "weights are exported as %s, not %s",
                          mixt__format_names(MIXT_MAY_HOLD, "or", names, sizeof names), mixt_dtype_name(r.dtype));
    MIXT_TRY(mixt__export_vocab(o, config, x->inputs, &r.vocab));
    MIXT_TRY(mixt__export_inputs_open(x, &r));
    report->tokens_unknown = x->unknown;
    MIXT_TRY(keep_others(run, &r, x));
    if (o->merged)
        MIXT_TRY(take_merged(&r, merge, report));
    bool made;
    MIXT_TRY(make_folder(r.folder, &made));
    mixt__name_differs differs;
    mixt_status status = mixt__weights_export(&r, &report->tensors, &differs);
    if (*differs.text && status == MIXT_OK)
        status = mixt__give_text(&report->differs, "%s", differs.text);
    if (status == MIXT_OK)
        status = mixt__export_inputs_write(x, &r);
    if (status != MIXT_OK && made)
        (void)rmdir(r.folder); // where nothing is in it
    return status;
}

mixt_status mixt_run_export(const char *run, const mixt_export_options *options, mixt_export_report *report)
{
    mixt_config *config;
    mixt_export_report own = {0};
    report = report ? report : &own;
    *report = (mixt_export_report){.difference = NAN, .largest = NAN};
    mixt_export_options o = MIXT_OPTIONS(mixt_export_options);
    MIXT_TRY(mixt__options(mixt_export_options, &o, options));
    MIXT_TRY(mixt__need(run));
    MIXT_TRY(mixt_run_folder_config(run, &config));
    json_t *inputs = NULL;
    mixt_status status = mixt__run_inputs_vocab(run, config);
    if (status == MIXT_OK)
        status = mixt__run_inputs_read(run, &inputs);
    mixt__export_inputs x = {.inputs = inputs, .config = config};
    mixt__merge merge = {0};
    if (status == MIXT_OK)
        status = export_run(run, &x, &o, &merge, report);
    mixt__merge_close(&merge);
    mixt__export_inputs_close(&x);
    json_decref(inputs);
    mixt_config_free(config);
    mixt_free(own.folder);
    mixt_free(own.differs);
    return status;
}
