/* ONNX files run by mixt, for compare_onnx.py.
 *
 * Usage: onnx_run            a case a line on stdin: FILE OUT [DTYPE:DIMS:PATH]…   (DTYPE f or i, DIMS as in 2x3x4,
 * PATH raw numbers: FP32 or INT32; no input: the graph has none) answers a line each: "ok DIMS", FP32 numbers in OUT,
 * or "no WHY" onnx_run train FILE X DTYPE:DIMS Y KIND:COUNT STEPS LR FOLDER [PRECISION] trains on batches of DIMS'
 * first size with plain SGD, one after the other out of X and Y (STEPS batches each; KIND class, tokens or values,
 * COUNT classes or values); prints the losses and writes FOLDER/weights.safetensors
 */
#include "api/api.h"
#include "base/block.h"
#include "infer/forward.h"
#include "mixt/onnx.h"
#include "onnx/onnx.h"
#include "train/finetune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 8, LINE = 8192 };

static bool read_file(const char *path, void *to, size_t bytes)
{
    FILE *f = fopen(path, "rb");
    bool good = f && fread(to, 1, bytes, f) == bytes;
    if (f)
        fclose(f);
    return good;
}

/** "f:2x3:path" */
static bool parse(char *text, mixt__array *a, char **path)
{
    char *dims = strchr(text, ':'), *end = dims ? strchr(dims + 1, ':') : NULL;
    if (!dims)
        return false;
    a->dtype = *text == 'f' ? MIXT_DTYPE_FP32 : MIXT_DTYPE_INT32;
    if (end)
        *end = 0;
    *path = end ? end + 1 : NULL;
    for (char *at = dims; at && *at && a->shape.rank < MIXT_MAX_RANK; at = strchr(at + 1, 'x'))
        a->shape.dims[a->shape.rank++] = strtoll(at + 1, NULL, 10);
    return true;
}

static mixt_status run_forward(mixt__forward *f, mixt__params *params, const mixt__model *model, const void *input,
                               const char *out)
{
    MIXT_TRY(mixt__params_allocate(params));
    MIXT_TRY(mixt__params_initialise(params, 1));
    MIXT_TRY(mixt__trainer_begin_with(params, model));
    MIXT_TRY(mixt__forward_bind(f, params));
    MIXT_TRY(mixt__forward_run(f, input, 0, NULL));
    const mixt__shape *shape = mixt__forward_output_shape(f);
    int64_t count = mixt__shape_count(shape);
    float *values = calloc((size_t)count + 1, sizeof *values);
    mixt_status status = mixt__forward_output(f, 0, count, values);
    FILE *file = fopen(out, "wb");
    if (!file || fwrite(values, sizeof *values, (size_t)count, file) != (size_t)count)
        status = mixt__fail(MIXT_ERROR_FILE, "%s", out);
    if (file)
        fclose(file);
    free(values);
    if (status == MIXT_OK) {
        printf("ok ");
        for (int i = 0; i < shape->rank; i++)
            printf("%s%lld", i ? "x" : "", (long long)shape->dims[i]);
        printf("\n");
    }
    return status;
}

static mixt_status forward(mixt_context *context, const char *path, const char *out, const mixt__batch_spec *spec,
                           const void *input)
{
    mixt__onnx *onnx;
    mixt__forward *f = NULL;
    mixt__params *params = NULL;
    mixt_policy *policy;
    MIXT_TRY(mixt_policy_open("fp32", &policy));
    mixt_status status = mixt__onnx_open(path, &(mixt__onnx_options){.any = true}, &onnx);
    if (status == MIXT_OK) {
        mixt__model model = {.fn = mixt__onnx_build, .user = onnx, .begin = mixt__onnx_begin, .begin_user = onnx};
        mixt__forward_shape shape = {.spec = spec};
        status = mixt__forward_new(&model, &policy->formats, context->device, &shape, &f);
        if (status == MIXT_OK)
            status = mixt__params_new(f->executable->graph, context->device, false, 0, MIXT_DTYPE_FP32, &params);
        if (status == MIXT_OK)
            status = run_forward(f, params, &model, input, out);
        mixt__forward_free(f);
        mixt__params_free(params);
        mixt__onnx_close(onnx);
    }
    mixt_policy_free(policy);
    return status;
}

static void one_case(mixt_context *context, char *line)
{
    char *words[INPUTS + 2], *save = NULL, *paths[INPUTS];
    int count = 0, inputs = 0;
    mixt__array arrays[INPUTS] = {{.target = false}};
    mixt__block block = {0};
    mixt__batch_spec spec = {.input_dtype = MIXT_DTYPE_FP32, .input = {2, {1, 1}}};
    for (char *w = strtok_r(line, " \n", &save); w && count < INPUTS + 2; w = strtok_r(NULL, " \n", &save))
        words[count++] = w;
    for (int i = 2; i < count; i++)
        inputs += parse(words[i], &arrays[inputs], &paths[inputs]);
    char *input = calloc(1, 1 << 28);
    for (int i = 0; i < inputs; i++) {
        size_t bytes = (size_t)mixt__shape_count(&arrays[i].shape) * 4;
        snprintf(arrays[i].name, sizeof arrays[i].name, "input%d", i);
        if (!read_file(paths[i], input + mixt__block_add(&block, bytes), bytes))
            printf("no input\n");
        if (i == 0) {
            spec.input_dtype = arrays[0].dtype;
            spec.input = arrays[0].shape;
        } else {
            spec.more[spec.more_count++] = arrays[i];
        }
    }
    if (forward(context, words[0], words[1], &spec, input) != MIXT_OK)
        printf("no %s\n", mixt_error_text());
    fflush(stdout);
    free(input);
}

static mixt_status train(char **a, const char *precision)
{
    mixt_context *context = mixt_open(.device = "cpu");
    mixt__array x = {.target = false};
    char *unused, *colon = strchr(a[4], ':');
    int64_t steps = strtoll(a[5], NULL, 10), count = strtoll(colon + 1, NULL, 10);
    mixt_data *data;
    parse(a[2], &x, &unused);
    int64_t batch = x.shape.dims[0], samples = batch * steps, elements = mixt__shape_count(&x.shape) / batch;
    mixt_target_kind kind = *a[4] == 'c' ? MIXT_TARGET_CLASS : *a[4] == 't' ? MIXT_TARGET_TOKENS : MIXT_TARGET_VALUES;
    int64_t each = kind == MIXT_TARGET_CLASS ? 1 : kind == MIXT_TARGET_TOKENS ? elements : count;
    void *inputs = malloc((size_t)(samples * elements) * 4), *targets = malloc((size_t)(samples * each) * 4);
    if (!read_file(a[1], inputs, (size_t)(samples * elements) * 4) ||
        !read_file(a[3], targets, (size_t)(samples * each) * 4))
        return mixt__fail(MIXT_ERROR_FILE, "inputs or targets");
    mixt_data_arrays arrays =
        MIXT_OPTIONS(mixt_data_arrays, .samples = samples, .input_dtype = x.dtype, .input_rank = x.shape.rank - 1,
                     .inputs = inputs, .target = kind, .targets = targets);
    for (int i = 1; i < x.shape.rank; i++)
        arrays.input_dims[i - 1] = x.shape.dims[i];
    if (kind == MIXT_TARGET_VALUES)
        arrays.target_elements = each;
    else
        arrays.classes = count;
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .normalise = MIXT_NORMALISE_NONE, .in_order = true);
    MIXT_TRY(mixt_data_from(&arrays, &o, &data));
    mixt_model *model = mixt_onnx_model(context, a[0], data);
    mixt_trainer *t = mixt_trainer_new(model, .precision = precision, .optimizer = "sgd", .weight_decay = 0,
                                       .lr = strtof(a[6], NULL), .batch = batch);
    char path[4096];
    for (int64_t i = 0; i < steps; i++) {
        mixt_step step;
        MIXT_TRY(mixt_trainer_step(t, data, &step));
        printf("%.9g\n", (double)step.loss);
    }
    snprintf(path, sizeof path, "%s/weights.safetensors", a[7]);
    MIXT_TRY(mixt_trainer_save(t, path));
    mixt_close(context);
    mixt_data_close(data);
    return MIXT_OK;
}

int main(int argc, char **argv)
{
    static char line[LINE];
    if (argc > 9 && !strcmp(argv[1], "train")) {
        if (train(argv + 2, argc > 10 ? argv[10] : "fp32") == MIXT_OK)
            return 0;
        fprintf(stderr, "onnx_run: %s\n", mixt_error_text());
        return 1;
    }
    mixt_context *context = mixt_open(.device = "cpu");
    while (fgets(line, sizeof line, stdin))
        one_case(context, line);
    mixt_close(context);
    return 0;
}
