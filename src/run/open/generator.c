/* A run's language model and its tokenizer, opened without the run's data: sizes come from the configuration and from
 * the shapes of the weights. */
#include "mixt/generate.h"

#include "data/text/tokenizer.h"
#include "run/open/adapter.h"
#include "run/open/experiment.h"
#include "run/open/generator.h"
#include "run/open/hf_folder.h"
#include "run/open/init.h"
#include "run/open/inputs.h"
#include "run/open/lora.h"
#include "run/open/policy.h"
#include "run/open/weights.h"
#include "num/quantise.h"
#include "store/safetensors.h"
#include "train/finetune.h"

#include <string.h>

/** Rows of the token table in the weights: the vocabulary, and perhaps padding. */
static mixt_status read_rows(const char *path, int64_t *vocab)
{
    static const char *const tables[] = {"wte.weight", "emb.weight"};
    mixt__safetensors *file;
    MIXT_TRY(mixt__safetensors_open_weights(path, &file));
    const mixt__file_tensor *table = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] && !table; i++)
        table = mixt__safetensors_find(file, tables[i]);
    *vocab = table && table->rank == 2 ? table->dims[0] : 0;
    mixt__safetensors_close(file);
    return *vocab ? MIXT_OK
                  : mixt__fail(MIXT_ERROR_FORMAT, "%s: no token embedding in it: it is not a language model", path);
}

/** Whether a run's tokens are others than the bytes that it would take without a vocabulary: it was trained on ready
 *  ones, and nobody said which. */
static bool are_unknown(const mixt_config *config, const mixt_tokenizer *tokenizer, int64_t rows)
{
    bool of_text = strcmp(mixt__config_string(config, MIXT_KEY_DATA_KIND), "tokens") &&
                   mixt__config_int(config, MIXT_KEY_NET_VOCAB); // bytes, and room for more tokens was asked for
    return tokenizer->kind == &mixt__tokenizer_bytes && rows > tokenizer->size && !of_text;
}

/** Tokens of the tokenizer that the model knows; what its table has beyond them is padding. A tokenizer that is not the
 *  run's is closed: there is none then. */
static mixt_status count_tokens(const mixt_config *config, const char *weights, mixt_tokenizer **tokenizer,
                                int64_t *tokens)
{
    int64_t rows, given = mixt__config_int(config, MIXT_KEY_NET_VOCAB);
    MIXT_TRY(read_rows(weights, &rows));
    if (are_unknown(config, *tokenizer, rows)) {
        mixt_tokenizer_close(*tokenizer);
        *tokenizer = NULL;
        *tokens = given && given < rows ? given : rows;
        return MIXT_OK;
    }
    *tokens = rows < (*tokenizer)->size ? rows : (*tokenizer)->size;
    if ((*tokenizer)->kind != &mixt__tokenizer_bytes && rows < (*tokenizer)->size)
        return mixt__fail(MIXT_ERROR_DATA, "%s has %lld tokens, the vocabulary of data.vocab %lld", weights,
                          (long long)rows, (long long)(*tokenizer)->size);
    return MIXT_OK;
}

static mixt_status check_writes(const char *folder, const mixt__zoo_entry *entry)
{
    if (entry->input != MIXT_MODEL_TOKENS)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: its model is %s: only language models (gpt, llama, lstm, gru, rnn) generate text",
                          folder, entry->name);
    if (entry->bidirectional)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: %s is a masked language model: it fills gaps and cannot continue a text", folder,
                          entry->name);
    return MIXT_OK;
}

/** The run's model as its weights say; `sizes` lives with it. */
static mixt_status make_model(const mixt_config *config, const mixt__zoo_entry *entry, int64_t tokens, int64_t seq,
                              mixt__model_sizes *sizes, mixt__model *model)
{
    mixt__experiment e = {.config = config};
    mixt_data_info info = {.kind = "text", .input_dtype = MIXT_DTYPE_INT32, .target_dtype = MIXT_DTYPE_INT32};
    info.input_dims[0] = info.input_elements = info.target_elements = seq;
    info.input_rank = 1;
    info.target = MIXT_TARGET_TOKENS;
    info.classes = tokens;
    MIXT_TRY(mixt__experiment_sizes(&e));
    *sizes = e.sizes;
    return mixt__zoo_model(entry->name, &info, sizes, model);
}

/** Makes a generator with the weights of a run, or of a folder that another program wrote: then with its names. */
static mixt_status make_generator(mixt_context *context, const mixt_config *config, const mixt__model *model,
                                  const mixt_generator_options *options, const char *foreign, int64_t tokens,
                                  mixt_generator **generator)
{
    mixt__name_facts facts;
    mixt__weights_request request = {.path = foreign, .facts = &facts, .positions = options->context};
    request.vocab = tokens;
    if (foreign)
        MIXT_TRY(mixt__experiment_names(config, &request.names, &facts));
    mixt_status status = mixt__generator_make(context, model, options, foreign ? &request : NULL, generator);
    return status == MIXT_OK ? MIXT_OK : MIXT_ERROR_STATE;
}

/** Rounds a parameter as training keeps it. */
static mixt_status round_param(mixt__params *params, int32_t index, mixt_dtype format)
{
    const mixt__param *p = &params->table[index];
    mixt__nf4_matrix matrix = mixt__param_matrix(p);
    int64_t words = format == MIXT_DTYPE_NF4 ? mixt__nf4_words(&matrix) : matrix.rows;
    float *values = mixt__alloc_uninit((size_t)p->count * sizeof *values + 1);
    float *scales = mixt__alloc((size_t)words * sizeof *scales);
    void *numbers = mixt__alloc_uninit(mixt__format_bytes(format, p->count) + 1);
    bool room = values && scales && numbers;
    mixt_status status = room ? mixt__params_get(params, index, values) : MIXT_ERROR_MEMORY;
    if (status == MIXT_OK && format == MIXT_DTYPE_NF4) {
        room = mixt__nf4_quantise(&matrix, values, numbers, scales);
        mixt__nf4_values(&matrix, numbers, scales, values);
    } else if (status == MIXT_OK) {
        mixt__quantise_rows(numbers, format, scales, values, matrix.rows, matrix.cols);
        mixt__dequantise_rows(values, numbers, format, scales, matrix.rows, matrix.cols);
    }
    if (status == MIXT_OK && room)
        status = mixt__params_set(params, index, values);
    mixt__free(values);
    mixt__free(scales);
    mixt__free(numbers);
    return room ? status : mixt__fail(MIXT_ERROR_MEMORY, "no memory to round '%s'", p->name);
}

/** Gives frozen weights the values that the run computed with. */
static mixt_status round_base(mixt__params *params, const mixt__model *model, const mixt_config *config)
{
    mixt_dtype format = mixt__format_of_frozen(mixt__config_string(config, MIXT_KEY_TRAIN_FROZEN)); // "auto" is none
    mixt__batch_spec spec = {.input_dtype = MIXT_DTYPE_INT32, .input = {2, {1, 8}}};
    mixt__graph *graph;
    if (format == MIXT_DTYPE_NONE)
        return MIXT_OK;
    MIXT_TRY(mixt__model_build_outputs(model, &spec, 0, &graph));
    mixt_status status = mixt__freeze(graph, NULL, format);
    for (int32_t i = 0; status == MIXT_OK && i < params->count; i++)
        if (graph->params[i].frozen_in == format)
            status = round_param(params, i, format);
    mixt__graph_free(graph);
    return status;
}

/** The same of a run whose weights are adapters alone: those that they stand beside are where the run began. */
static mixt_status make_adapted(mixt_context *context, const mixt_config *config, const mixt__model *model,
                                const mixt_generator_options *options, int64_t tokens, mixt_generator **generator)
{
    mixt_generator_options base = *options;
    base.weights = mixt__config_string(config, MIXT_KEY_INIT);
    mixt_status status = make_generator(context, config, model, &base, base.weights, tokens, generator);
    if (status != MIXT_OK)
        return status;
    mixt__params *params = (*generator)->inner.params;
    MIXT_TRY(mixt__context_note(context, round_base(params, model, config)));
    return mixt__context_note(context, mixt__weights_load(params, options->weights));
}

/** @param foreign the folder of another program's model; NULL: weights are a run's
 *  @param tokenizer of NULL: there is none */
static mixt_status open_generator(mixt_context *context, const mixt_config *config, const mixt__zoo_entry *entry,
                                  const char *weights, const char *foreign, mixt_tokenizer **tokenizer,
                                  mixt_generator **generator)
{
    mixt__model model;
    mixt_generator_options options = MIXT_OPTIONS(mixt_generator_options, .weights = weights);
    const mixt_policy *all;
    mixt_policy *policy;
    int64_t tokens = mixt__config_int(config, MIXT_KEY_NET_VOCAB), seq = mixt__config_int(config, MIXT_KEY_DATA_SEQ);
    mixt__model_sizes *sizes = mixt__arena_alloc(&context->arena, sizeof *sizes);
    if (!sizes)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a generator");
    options.context = seq ? seq : entry->tokens;
    bool partial = false;
    if (!foreign)
        MIXT_TRY(mixt__weights_are_partial(weights, &partial));
    if (partial && !tokens && *tokenizer)
        tokens = (*tokenizer)->size;
    if (!foreign && !partial)
        MIXT_TRY(count_tokens(config, weights, tokenizer, &tokens));
    MIXT_TRY(make_model(config, entry, tokens, options.context, sizes, &model));
    MIXT_TRY(mixt__experiment_lora(config, &context->arena, &model.lora));
    MIXT_TRY(mixt__config_policy(config, &all));
    MIXT_TRY(mixt__run_last_policy(all, &policy));
    options.policy = policy;
    mixt_status status = partial ? make_adapted(context, config, &model, &options, tokens, generator)
                                 : make_generator(context, config, &model, &options, foreign, tokens, generator);
    mixt_policy_free(policy);
    MIXT_TRY(status);
    mixt__generator *core = &(*generator)->inner;
    if (*tokenizer && (*tokenizer)->size < core->vocab)
        core->vocab = (*tokenizer)->size; // the rest has no text
    return MIXT_OK;
}

static mixt_status load(mixt_context *context, const mixt_config *config, const char *folder, const char *weights,
                        mixt_generator **generator, mixt_tokenizer **tokenizer)
{
    const mixt__zoo_entry *entry;
    char path[MIXT_WEIGHTS_PATH];
    MIXT_TRY(mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry));
    MIXT_TRY(check_writes(folder, entry));
    bool foreign = mixt__hf_folder_is(folder);
    if (!foreign || mixt__hf_folder_has_tokenizer(folder))
        MIXT_TRY(mixt_tokenizer_open(mixt__config_string(config, MIXT_KEY_DATA_TOKENIZER),
                                     mixt__config_string(config, MIXT_KEY_DATA_VOCAB), tokenizer));
    MIXT_TRY(mixt__run_folder_weights(folder, weights, path, sizeof path));
    return open_generator(context, config, entry, path, foreign ? folder : NULL, tokenizer, generator);
}

/** A Hugging Face folder with an adapter beside it: the configuration says so. */
static mixt_status name_adapter(mixt_config *config, const char *folder, const char *adapter)
{
    char setting[MIXT_WEIGHTS_PATH + 16];
    if (!mixt__hf_folder_is(folder))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: an adapter is put beside a Hugging Face folder; a run has its own already", folder);
    snprintf(setting, sizeof setting, "init=%s", folder);
    MIXT_TRY(mixt_config_set(config, setting, "adapter"));
    snprintf(setting, sizeof setting, "lora.init=%s", adapter);
    MIXT_TRY(mixt_config_set(config, setting, "adapter"));
    return mixt__adapter_config_fill(config);
}

/** Tokens that are looked back at, where somebody says how many: no more than the model has positions for. */
static mixt_status set_places(mixt_config *config, const char *folder, int64_t places)
{
    const mixt__zoo_entry *entry;
    char setting[64];
    MIXT_TRY(mixt__model_find(mixt__config_string(config, MIXT_KEY_MODEL), &entry));
    int64_t most = mixt__config_int(config, MIXT_KEY_DATA_SEQ);
    int64_t positions = mixt__config_int(config, MIXT_KEY_NET_POSITIONS);
    if (entry->uses & MIXT_USES_ROPE && positions)
        most = positions;
    most = most ? most : entry->tokens;
    if (places > most)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: a context of %lld tokens, but the model has %lld positions", folder,
                          (long long)places, (long long)most);
    snprintf(setting, sizeof setting, "data.seq=%lld", (long long)places);
    return mixt_config_set(config, setting, "context");
}

static mixt_status load_all(mixt_context *context, const char *folder, const char *weights, const char *adapter,
                            int64_t places, mixt_generator **generator, mixt_tokenizer **tokenizer)
{
    mixt_config *config;
    MIXT_TRY(mixt_run_folder_config(folder, &config));
    mixt_status status = mixt__run_inputs_vocab(folder, config);
    if (status == MIXT_OK && places)
        status = set_places(config, folder, places);
    if (status == MIXT_OK && adapter)
        status = name_adapter(config, folder, adapter);
    if (status == MIXT_OK)
        status = load(context, config, folder, weights ? weights : "final", generator, tokenizer);
    if (status == MIXT_OK && adapter)
        status = mixt__adapter_load(config, (*generator)->inner.params);
    mixt_config_free(config);
    return status;
}

mixt_status mixt__generator_load(mixt_context *context, const char *folder, const char *weights, const char *adapter,
                                 int64_t places, mixt_generator **generator, mixt_tokenizer **tokenizer)
{
    *generator = NULL;
    *tokenizer = NULL;
    mixt_status status = load_all(context, folder, weights, adapter, places, generator, tokenizer);
    if (status == MIXT_OK)
        return MIXT_OK;
    mixt_tokenizer_close(*tokenizer);
    *tokenizer = NULL;
    return mixt__context_note(context, status);
}

mixt_status mixt_generator_load(mixt_context *context, const char *folder, const char *weights,
                                mixt_generator **generator, mixt_tokenizer **tokenizer)
{
    MIXT_TRY(mixt__need_made(context, "context"));
    MIXT_TRY(mixt__need_in(context, folder));
    MIXT_TRY(mixt__need_in(context, generator));
    MIXT_TRY(mixt__need_in(context, tokenizer));
    return mixt__generator_load(context, folder, weights, NULL, 0, generator, tokenizer);
}
