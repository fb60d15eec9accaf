/* One forward pass of a zoo model on given weights and inputs: what another system's outputs are held against.
 *
 * Usage: logits MODEL PRECISION DEVICE WEIGHTS INPUT OUTPUT BATCH DIMS [size=N ...]
 * MODEL "folder": WEIGHTS is a folder of Hugging Face, whose config.json says all of the model.
 * WEIGHTS is what init= takes ("-": drawn with seed 1 and saved to OUTPUT.safetensors). INPUT holds a batch of tokens
 * (INT32, DIMS is T) or images (FP32, DIMS is HxWxC). Writes the outputs as FP32. Sizes: layers, width, heads, vocab,
 * depth, classes, seq, kv_heads, inner, tied (1), and whole numbers for rope_theta, rope_factor, rope_low, rope_high,
 * rope_original. Used by compare_exports.py.
 */
#include "api/weights.h"
#include "models/models.h"
#include "run/open/experiment.h"
#include "run/open/hf_folder.h"
#include "run/open/init.h"
#include "train/trainer_inside.h"
#include "num/num.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    const mixt__zoo_entry *entry;
    const char *weights, *input, *output;
    mixt_data_info info;
    mixt__model_sizes sizes;
    mixt__model model;
    mixt_context *context;
    mixt_trainer *trainer;
    mixt__batch_spec spec;
    mixt__executable *forward;
    mixt_config *folder; // of a folder of Hugging Face, where that says which model it is
} job;

static mixt_status read_sizes(job *j, int count, char **words)
{
    mixt__model_sizes *s = &j->sizes;
    int64_t tied = 0;
    const struct {
        const char *name;
        int64_t *value;
        double *real;
    } names[] = {{"layers=", .value = &s->layers},
                 {"width=", .value = &s->width},
                 {"heads=", .value = &s->heads},
                 {"vocab=", .value = &s->vocab},
                 {"depth=", .value = &s->depth},
                 {"classes=", .value = &s->classes},
                 {"seq=", .value = &s->seq},
                 {"kv_heads=", .value = &s->kv_heads},
                 {"inner=", .value = &s->inner},
                 {"tied=", .value = &tied},
                 {"rope_theta=", .real = &s->rope_theta},
                 {"rope_factor=", .real = &s->rope_factor},
                 {"rope_low=", .real = &s->rope_low},
                 {"rope_high=", .real = &s->rope_high},
                 {"rope_original=", .real = &s->rope_original}};
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            size_t length = strlen(names[k].name);
            if (!strncmp(words[i], names[k].name, length) && names[k].real)
                *names[k].real = (double)atoll(words[i] + length);
            else if (!strncmp(words[i], names[k].name, length))
                *names[k].value = atoll(words[i] + length);
        }
    s->tied = j->folder ? s->tied : tied != 0;
    j->info.classes = s->vocab ? s->vocab : s->classes;
    return mixt__zoo_model(j->entry->name, &j->info, s, &j->model);
}

static void read_shape(job *j, int64_t batch, char *dims)
{
    bool tokens = j->entry->input == MIXT_MODEL_TOKENS;
    j->info = (mixt_data_info){.input_dtype = tokens ? MIXT_DTYPE_INT32 : MIXT_DTYPE_FP32,
                               .target = tokens ? MIXT_TARGET_TOKENS : MIXT_TARGET_CLASS};
    j->spec = (mixt__batch_spec){.input_dtype = j->info.input_dtype, .target_dtype = MIXT_DTYPE_INT32};
    j->spec.input = (mixt__shape){1, {batch}};
    for (char *next = dims; *next && j->info.input_rank < 3; next += *next == 'x') {
        j->info.input_dims[j->info.input_rank++] = strtoll(next, &next, 10);
        j->spec.input.dims[j->spec.input.rank++] = j->info.input_dims[j->info.input_rank - 1];
    }
    j->spec.target = tokens ? j->spec.input : (mixt__shape){1, {batch}};
}

/** The model of a folder: everything from config.json. */
static mixt_status read_folder(job *j)
{
    mixt__experiment e = {0};
    MIXT_TRY(mixt__hf_folder_config(j->weights, &j->folder));
    MIXT_TRY(mixt__model_find(mixt__config_string(j->folder, MIXT_KEY_MODEL), &j->entry));
    e.config = j->folder;
    MIXT_TRY(mixt__experiment_sizes(&e));
    j->sizes = e.sizes;
    return MIXT_OK;
}

static mixt_status load_folder(job *j)
{
    mixt__name_facts facts;
    mixt__weights_request request = {.path = j->weights, .facts = &facts, .vocab = j->sizes.vocab};
    mixt__weights *weights;
    MIXT_TRY(mixt__experiment_names(j->folder, &request.names, &facts));
    MIXT_TRY(mixt__trainer_init(j->trainer, &request, true, &weights));
    mixt__weights_close(weights);
    return MIXT_OK;
}

static mixt_status open_trainer(job *j, const char *precision, const char *device)
{
    (void)mixt_open_with(MIXT_OPTIONS_AT(mixt_context_options, .device = device), &j->context);
    if (!j->context)
        return MIXT_ERROR_DEVICE;
    mixt_trainer_options options =
        MIXT_OPTIONS(mixt_trainer_options, .precision = precision, .optimizer = "sgd", .seed = 1);
    options.batch = j->spec.input.dims[0];
    (void)mixt__trainer_open(j->context, &j->model, &options, &j->trainer);
    if (!j->trainer)
        return MIXT_ERROR_CONFIG;
    MIXT_TRY(mixt__trainer_compile(j->trainer->inner, &j->spec));
    MIXT_TRY(mixt__trainer_allocate(j->trainer->inner));
    if (!strcmp(j->weights, "-")) {
        char path[4096];
        snprintf(path, sizeof path, "%s.safetensors", j->output);
        return mixt_trainer_save(j->trainer, path);
    }
    const mixt__model_sizes *s = &j->sizes;
    if (j->folder)
        return load_folder(j);
    mixt__name_facts facts = {.heads = s->heads, .kv_heads = s->kv_heads, .tied = s->tied, .eps = s->eps};
    facts.rope_theta = s->rope_theta;
    facts.rope_factor = s->rope_factor;
    facts.rope_low = s->rope_low;
    facts.rope_high = s->rope_high;
    facts.rope_original = s->rope_original;
    snprintf(facts.architecture, sizeof facts.architecture, "%s%lld", j->entry->name, (long long)j->sizes.depth);
    mixt__weights_request request = {.path = j->weights, .names = mixt__names_find(j->entry->names), .facts = &facts};
    request.vocab = j->sizes.vocab;
    mixt__weights *weights;
    MIXT_TRY(mixt__trainer_init(j->trainer, &request, true, &weights));
    mixt__weights_close(weights);
    return MIXT_OK;
}

static mixt_status compile(job *j)
{
    mixt__trainer *t = j->trainer->inner;
    mixt__graph *source;
    MIXT_TRY(mixt__model_build(&t->model, &j->spec, false, &source));
    source->values[source->logits].output = true;
    mixt__compile_options options = {.policy = t->settings.policy, .fused = t->device->backend->fused};
    MIXT_TRY(mixt__compile_take(source, &options, t->device, &j->forward));
    MIXT_TRY(mixt__executable_allocate(j->forward));
    mixt__executable_bind(j->forward, t->params, &t->control->seed);
    return MIXT_OK;
}

static mixt_status copy_in(job *j, void *host, size_t bytes, void *device)
{
    FILE *file = fopen(j->input, "rb");
    bool good = file && fread(host, 1, bytes, file) == bytes;
    if (file)
        fclose(file);
    return good ? mixt__device_upload(j->trainer->inner->device, device, host, bytes)
                : mixt__fail(MIXT_ERROR_FILE, "%s: expected %zu bytes", j->input, bytes);
}

/** Outputs in the low format, downloaded and widened. */
static mixt_status copy_out(job *j)
{
    mixt__device *device = j->trainer->inner->device;
    const mixt__value *v = &j->forward->graph->values[j->forward->graph->logits];
    int64_t count = mixt__shape_count(&v->shape);
    void *raw = mixt__alloc((size_t)count * 4);
    float *wide = mixt__alloc((size_t)count * 4);
    mixt_status status = raw && wide ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the outputs");
    if (status == MIXT_OK)
        status = mixt__device_download(device, raw, mixt__executable_address(j->forward, j->forward->graph->logits),
                                       (size_t)count * mixt_dtype_size(v->dtype));
    if (status == MIXT_OK)
        status = mixt_convert(wide, MIXT_DTYPE_FP32, raw, v->dtype, count, NULL);
    FILE *file = status == MIXT_OK ? fopen(j->output, "wb") : NULL;
    if (status == MIXT_OK && (!file || fwrite(wide, 4, (size_t)count, file) != (size_t)count))
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be written", j->output);
    if (file)
        fclose(file);
    mixt__free(raw);
    mixt__free(wide);
    return status;
}

static mixt_status run(job *j)
{
    mixt__device *device = j->trainer->inner->device;
    size_t bytes = (size_t)mixt__shape_count(&j->spec.input) * mixt_dtype_size(j->spec.input_dtype);
    size_t target = (size_t)mixt__shape_count(&j->spec.target) * 4;
    void *host = mixt__alloc(bytes), *input = mixt__device_alloc(device, bytes),
         *labels = mixt__device_alloc(device, target);
    mixt_status status = host && input && labels ? copy_in(j, host, bytes, input) : MIXT_ERROR_MEMORY;
    if (status == MIXT_OK)
        status = mixt__device_zero(device, labels, target);
    if (status == MIXT_OK)
        status = mixt__executable_run(j->forward, &(mixt__run){.input = input, .target = labels});
    if (status == MIXT_OK)
        status = copy_out(j);
    mixt__free(host);
    mixt__device_free(device, input);
    mixt__device_free(device, labels);
    return status;
}

int main(int argc, char **argv)
{
    job j = {0};
    bool folder = argc > 4 && !strcmp(argv[1], "folder");
    j.weights = argc > 4 ? argv[4] : NULL;
    if (argc < 9 || (folder ? read_folder(&j) : mixt__model_find(argv[1], &j.entry)) != MIXT_OK) {
        fprintf(stderr, "logits: %s\n", mixt_error_text());
        fprintf(stderr, "usage: %s MODEL PRECISION DEVICE WEIGHTS INPUT OUTPUT BATCH DIMS [size=N ...]\n", argv[0]);
        return 2;
    }
    j.input = argv[5];
    j.output = argv[6];
    read_shape(&j, atoll(argv[7]), argv[8]);
    mixt_status status = read_sizes(&j, argc - 9, argv + 9);
    if (status == MIXT_OK)
        status = open_trainer(&j, argv[2], argv[3]);
    if (status == MIXT_OK)
        status = compile(&j);
    if (status == MIXT_OK)
        status = run(&j);
    if (status != MIXT_OK)
        fprintf(stderr, "logits: %s\n", mixt_error_text());
    mixt__executable_free(j.forward);
    mixt_close(j.context);
    mixt_config_free(j.folder);
    return status == MIXT_OK ? 0 : 1;
}
