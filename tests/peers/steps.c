/* Trains a benchmark model for some steps and leaves everything that another system needs to do the same: initial
 * weights, batches, and the loss of each step.
 *
 * Usage: steps MODEL PRECISION DEVICE STEPS BATCH SEQ FOLDER [SEED [LR [DATA [LAYERS]]]]   (BATCH, SEQ, LR or LAYERS 0:
 * the model's own; DATA: as in "tokens:FILE", "-" or none for random samples)
 * Writes FOLDER/weights.safetensors, input.bin, target.bin (STEPS batches, one after the other) unless they are there,
 * and prints one JSON object. Used by compare_steps.py, which runs PyTorch on the same files.
 */
#include "api/api.h"
#include "models/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct run {
    const mixt__bench_model *model;
    const char *precision, *device, *folder, *spec;
    int64_t steps, batch, seq, layers;
    uint64_t seed;
    float lr; // 0: the model's own
    mixt_context *context;
    mixt_trainer *trainer;
    mixt_data *data;
    mixt__model_sizes sizes;
} run;

static mixt_status open(run *r)
{
    (void)mixt_open_with(MIXT_OPTIONS_AT(mixt_context_options, .device = r->device), &r->context);
    if (!r->context)
        return MIXT_ERROR_DEVICE;
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .seq = r->seq, .classes = r->model->classes,
                                       .samples = r->batch * r->steps, .seed = r->seed);
    (void)mixt_data_new_with(r->context, r->spec, &o, &r->data);
    if (!r->data)
        return MIXT_ERROR_DATA;
    mixt__model model;
    r->sizes = r->model->sizes;
    if (r->layers > 0)
        r->sizes.layers = r->layers;
    MIXT_TRY(mixt__zoo_model(r->model->model, mixt_data_describe(r->data), &r->sizes, &model));
    mixt_trainer_options trainer = mixt__bench_options(r->model);
    trainer.precision = r->precision;
    trainer.batch = r->batch;
    trainer.seed = r->seed;
    if (r->lr > 0)
        trainer.lr = r->lr;
    (void)mixt__trainer_open(r->context, &model, &trainer, &r->trainer);
    if (!r->trainer)
        return MIXT_ERROR_CONFIG;
    MIXT_TRY(mixt_trainer_compile(r->trainer, r->data));
    return mixt__trainer_allocate(r->trainer->inner);
}

static mixt_status append(const char *path, const void *bytes, size_t size, bool first)
{
    FILE *file = fopen(path, first ? "wb" : "ab");
    bool good = file && fwrite(bytes, 1, size, file) == size;
    if (file && fclose(file))
        good = false;
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_FILE, "%s: cannot be written", path);
}

/** Runs the steps; with `keep`, writes each batch too. */
static mixt_status train(run *r, bool keep, const char *input_path, const char *target_path)
{
    const mixt_data_info *info = mixt_data_describe(r->data);
    size_t input = (size_t)(r->batch * info->input_elements) * mixt_dtype_size(info->input_dtype);
    size_t target = (size_t)(r->batch * info->target_elements) * mixt_dtype_size(info->target_dtype);
    void *x = mixt__alloc(input), *y = mixt__alloc(target);
    mixt_status status = x && y ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a batch");
    printf("{\"model\": \"%s\", \"precision\": \"%s\", \"losses\": [", r->model->name, r->precision);
    for (int64_t i = 0; status == MIXT_OK && i < r->steps; i++) {
        mixt_step step = {0};
        status = mixt_data_batch(r->data, r->batch, i, x, y);
        if (status == MIXT_OK && keep)
            status = append(input_path, x, input, i == 0);
        if (status == MIXT_OK && keep)
            status = append(target_path, y, target, i == 0);
        if (status == MIXT_OK)
            status = mixt_trainer_step_on(r->trainer, x, y, &step);
        printf("%s%.9g", i ? ", " : "", step.loss);
    }
    printf("]}\n");
    mixt__free(x);
    mixt__free(y);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 8 || argc > 12 || !mixt__bench_find(argv[1])) {
        fprintf(stderr, "usage: %s MODEL PRECISION DEVICE STEPS BATCH SEQ FOLDER [SEED [LR [DATA [LAYERS]]]]\n",
                argv[0]);
        return 2;
    }
    run r = {.model = mixt__bench_find(argv[1]), .precision = argv[2], .device = argv[3], .folder = argv[7]};
    char weights[4096], input[4096], target[4096];
    r.steps = atoll(argv[4]);
    r.batch = atoll(argv[5]) ? atoll(argv[5]) : r.model->batch;
    r.seq = atoll(argv[6]) ? atoll(argv[6]) : r.model->seq;
    r.seed = argc > 8 ? strtoull(argv[8], NULL, 10) : 1;
    r.lr = argc > 9 ? strtof(argv[9], NULL) : 0;
    r.spec = argc > 10 && strcmp(argv[10], "-") ? argv[10] : r.model->data;
    r.layers = argc > 11 ? atoll(argv[11]) : 0;
    snprintf(weights, sizeof weights, "%s/weights.safetensors", r.folder);
    snprintf(input, sizeof input, "%s/input.bin", r.folder);
    snprintf(target, sizeof target, "%s/target.bin", r.folder);
    bool keep = access(weights, R_OK) != 0;
    mixt_status status = open(&r);
    if (status == MIXT_OK)
        status = keep ? mixt_trainer_save(r.trainer, weights) : mixt_trainer_load(r.trainer, weights);
    if (status == MIXT_OK)
        status = train(&r, keep, input, target);
    if (status != MIXT_OK)
        fprintf(stderr, "steps: %s\n", mixt_error_text());
    mixt_close(r.context);
    return status == MIXT_OK ? 0 : 1;
}
