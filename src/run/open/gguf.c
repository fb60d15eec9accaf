/* A run, or a folder of Hugging Face's, as one GGUF file: weights, what the model is, and its tokenizer. */
#include "mixt/weights.h"

#include "base/options.h"
#include "data/text/gguf_tokens.h"
#include "run/open/adapter.h"
#include "run/open/experiment.h"
#include "run/open/export_inputs.h"
#include "run/open/hf_folder.h"
#include "run/open/init.h"
#include "run/open/inputs.h"
#include "run/open/merge.h"
#include "run/open/weights.h"
#include "store/file.h"
#include "store/gguf_model.h"
#include "store/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4400 };

/** What a file is made of. */
typedef struct maker {
    const char *source; // the run, or the folder
    const mixt_gguf_options *options;
    mixt_gguf_report *report;
    mixt__gguf_type type;
    mixt__view *view;
    mixt__merge merge;            // of a run with adapters
    json_t *model_config;         // config.json, or what it would be
    char config_path[PATH_BYTES]; // for messages
    mixt__gguf_vocabulary vocabulary;
} maker;

/** "runs/chat/" → "chat". */
static void base_name(const char *folder, char *room, size_t size)
{
    size_t end = strlen(folder), begin;
    while (end > 1 && folder[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && folder[begin - 1] != '/';)
        begin--;
    snprintf(room, size, "%.*s", (int)(end - begin), folder + begin);
}

static mixt_status write_file(maker *m, mixt__gguf_model *model)
{
    mixt__gguf_fields fields = {0};
    char name[256];
    base_name(m->source, name, sizeof name);
    mixt_status status = mixt__gguf_model_fields(model, &fields, name);
    m->vocabulary.config = m->model_config;
    m->vocabulary.rows = model->vocab;
    if (status == MIXT_OK)
        status = mixt__gguf_tokens_put(&m->vocabulary, &fields);
    if (status == MIXT_OK)
        status = mixt__gguf_write(m->report->file, m->options->overwrite, &fields, model->tensors, model->count,
                                  mixt__gguf_model_rows, model, &m->report->bytes);
    mixt__gguf_fields_free(&fields);
    m->report->tensors = model->count;
    m->report->architecture = model->family->architecture;
    if (status == MIXT_OK && *model->note)
        status = mixt__give_text(&m->report->note, "%s", model->note);
    return status;
}

static mixt_status make(maker *m)
{
    mixt__gguf_model model;
    mixt_status status = mixt__gguf_model_open(&model, m->config_path, m->model_config, m->view, m->type);
    if (status == MIXT_OK)
        status = write_file(m, &model);
    mixt__gguf_model_close(&model);
    return status;
}

/* ---- a folder of Hugging Face's ---- */

static mixt_status of_folder(maker *m, const char *weights)
{
    const mixt__names *names;
    mixt__name_facts facts;
    mixt_tokenizer *tokenizer;
    mixt__bytes file;
    snprintf(m->config_path, sizeof m->config_path, "%s/config.json", m->source);
    MIXT_TRY(mixt__names_read_config(m->config_path, &names, &facts)); // refuses what is not known
    if (!mixt__hf_folder_has_tokenizer(m->source))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: has no tokenizer, which belongs into a GGUF: put its tokenizer.json into the folder",
                          m->source);
    MIXT_TRY(mixt_tokenizer_open("auto", m->source, &tokenizer));
    m->vocabulary = (mixt__gguf_vocabulary){.kind = mixt_tokenizer_describe(tokenizer).kind, .folder = m->source};
    mixt_tokenizer_close(tokenizer);
    MIXT_TRY(mixt__bytes_read(m->config_path, &file));
    mixt_status status = mixt__json_parse(m->config_path, file.bytes, (size_t)file.size, 0, &m->model_config);
    mixt__bytes_free(&file);
    if (status == MIXT_OK)
        status = mixt__view_open(weights, &m->view);
    return status == MIXT_OK ? make(m) : status;
}

/* ---- a run ---- */

static mixt_status of_view(maker *m, const mixt__export_request *r)
{
    MIXT_TRY(mixt__view_export(r, &m->view));
    char *text = mixt__view_config(r, m->view);
    if (!text)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for what %s is", m->source);
    mixt_status status = mixt__json_parse(m->config_path, text, strlen(text), 0, &m->model_config);
    free(text);
    return status == MIXT_OK ? make(m) : status;
}

static mixt_status of_config(maker *m, const char *weights, mixt__export_inputs *x)
{
    mixt__export_request r = {.source = weights, .dtype = MIXT_DTYPE_FP32};
    const mixt_export_options vocab = MIXT_OPTIONS(mixt_export_options, .vocab = m->options->vocab,
                                                   .progress = m->options->progress, .user = m->options->user);
    MIXT_TRY(mixt__experiment_names(x->config, &r.names, &r.facts));
    if (!r.names || !r.names->fields)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: its model is %s: GGUF is for language models (gpt, llama)",
                          m->source, mixt__config_string(x->config, MIXT_KEY_MODEL));
    MIXT_TRY(mixt__export_vocab(&vocab, x->config, x->inputs, &r.vocab));
    MIXT_TRY(mixt__export_inputs_open(x, &r));
    if (!x->tokenizer)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: which vocabulary its tokens are of is not known, and it belongs into a GGUF: name its "
                          "folder as data.vocab in %s/config.yaml",
                          m->source, m->source);
    m->vocabulary.kind = mixt_tokenizer_describe(x->tokenizer).kind;
    m->vocabulary.folder = mixt__config_string(x->config, MIXT_KEY_DATA_VOCAB);
    if (mixt__config_int(x->config, MIXT_KEY_LORA_RANK)) { // one model, with its adapters in it
        MIXT_TRY(mixt__merge_open(&m->merge, m->source, m->options->weights ? m->options->weights : "final"));
        r.tensors = m->merge.tensors;
        r.tensor_count = m->merge.count;
        r.values = mixt__merge_values;
        r.user = &m->merge;
    }
    return of_view(m, &r);
}

static mixt_status of_run(maker *m, const char *weights)
{
    mixt_config *config;
    json_t *inputs = NULL;
    snprintf(m->config_path, sizeof m->config_path, "%s", m->source);
    MIXT_TRY(mixt_run_folder_config(m->source, &config));
    mixt_status status = mixt__run_inputs_vocab(m->source, config);
    if (status == MIXT_OK)
        status = mixt__run_inputs_read(m->source, &inputs);
    mixt__export_inputs x = {.inputs = inputs, .config = config};
    if (status == MIXT_OK)
        status = of_config(m, weights, &x);
    mixt__merge_close(&m->merge);
    mixt__export_inputs_close(&x);
    json_decref(inputs);
    mixt_config_free(config);
    return status;
}

/* ---- a run's adapter ---- */

static mixt_status read_object(const char *path, json_t **object)
{
    mixt__bytes file;
    MIXT_TRY(mixt__bytes_read(path, &file));
    mixt_status status = mixt__json_parse(path, file.bytes, (size_t)file.size, 0, object);
    mixt__bytes_free(&file);
    return status;
}

static mixt_status write_adapter(maker *m, const json_t *about)
{
    mixt__gguf_model model;
    mixt__gguf_fields fields = {0};
    char name[256];
    base_name(m->source, name, sizeof name);
    mixt_status status = mixt__gguf_adapter_open(&model, m->config_path, m->model_config, m->view, m->type);
    if (status == MIXT_OK)
        status = mixt__gguf_adapter_fields(&model, about, &fields, name);
    if (status == MIXT_OK)
        status = mixt__gguf_write(m->report->file, m->options->overwrite, &fields, model.tensors, model.count,
                                  mixt__gguf_model_rows, &model, &m->report->bytes);
    if (status == MIXT_OK)
        status = mixt__give_text(&m->report->note,
                                 "an adapter (LoRA) alone: llama.cpp puts it beside the model of %s "
                                 "(--lora)",
                                 m->config_path);
    m->report->tensors = model.count;
    m->report->architecture = model.family ? model.family->architecture : NULL;
    mixt__gguf_fields_free(&fields);
    mixt__gguf_model_close(&model);
    return status;
}

/** The model that it stands beside says what it is. */
static mixt_status of_adapter(maker *m)
{
    char path[PATH_BYTES];
    mixt_config *config;
    json_t *about = NULL;
    MIXT_TRY(mixt_run_folder_config(m->source, &config));
    const char *base = mixt__config_string(config, MIXT_KEY_INIT);
    mixt_status status =
        mixt__hf_folder_is(base)
            ? MIXT_OK
            : mixt__fail(MIXT_ERROR_FILE,
                         "%s: its adapter stands beside the weights of '%s', but there is no Hugging Face folder now",
                         m->source, base);
    snprintf(m->config_path, sizeof m->config_path, "%s/config.json", base);
    mixt_config_free(config);
    if (status == MIXT_OK)
        status = read_object(m->config_path, &m->model_config);
    snprintf(path, sizeof path, "%s/" MIXT_ADAPTER_FOLDER "/adapter_config.json", m->source);
    if (status == MIXT_OK)
        status = read_object(path, &about);
    snprintf(path, sizeof path, "%s/" MIXT_ADAPTER_FOLDER "/adapter_model.safetensors", m->source);
    if (status == MIXT_OK)
        status = mixt__view_open(path, &m->view);
    if (status == MIXT_OK)
        status = write_adapter(m, about);
    json_decref(about);
    return status;
}

/* ---- all ---- */

/** Names the file: chosen, or export/ of a run, made where it is missing, and beside a folder's weights. */
static mixt_status name_file(maker *m, bool run, bool adapter)
{
    const char *given = m->options->file, *type = mixt__gguf_type_name(m->type);
    struct stat facts;
    MIXT_TRY(given && *given ? mixt__give_text(&m->report->file, "%s", given)
                             : mixt__give_text(&m->report->file, "%s%s/%s-%s.gguf", m->source, run ? "/export" : "",
                                               adapter ? "adapter" : "model", type));
    if (!m->options->overwrite && !lstat(m->report->file, &facts))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: exists already and is not overwritten unless you ask for it (--overwrite)",
                          m->report->file);
    return MIXT_OK;
}

static mixt_status write_all(maker *m)
{
    const char *which = m->options->weights ? m->options->weights : "final";
    const char *type = m->options->type ? m->options->type : "bf16";
    char weights[MIXT_WEIGHTS_PATH], folder[PATH_BYTES];
    bool run = !mixt__hf_folder_is(m->source);
    int number = mixt__gguf_type_parse(type);
    if (number < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "GGUF of type '%s': expected f32, f16, bf16, q8_0 or q4_0", type);
    m->type = (mixt__gguf_type)number;
    MIXT_TRY(mixt__run_folder_weights(m->source, which, weights, sizeof weights));
    bool adapter = false;
    if (run)
        MIXT_TRY(mixt__weights_are_partial(weights, &adapter));
    if (adapter && strcmp(which, "final"))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: the adapter of a checkpoint is not written, but the final one",
                          m->source);
    MIXT_TRY(name_file(m, run, adapter));
    bool own = run && !(m->options->file && *m->options->file);
    bool made =
        own && snprintf(folder, sizeof folder, "%s/export", m->source) < (int)sizeof folder && !mkdir(folder, 0777);
    mixt_status status = adapter ? of_adapter(m) : run ? of_run(m, weights) : of_folder(m, weights);
    if (status != MIXT_OK && made)
        (void)rmdir(folder);
    return status;
}

mixt_status mixt_gguf_write(const char *run, const mixt_gguf_options *options, mixt_gguf_report *report)
{
    mixt_gguf_report own = {0};
    mixt_gguf_options o = MIXT_OPTIONS(mixt_gguf_options);
    maker m = {.source = run, .options = &o, .report = report ? report : &own};
    *m.report = (mixt_gguf_report){0};
    MIXT_TRY(mixt__options(mixt_gguf_options, &o, options));
    MIXT_TRY(mixt__need(run));
    mixt_status status = write_all(&m);
    mixt__view_close(m.view);
    json_decref(m.model_config);
    mixt_free(own.file);
    mixt_free(own.note);
    return status;
}
