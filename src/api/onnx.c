/* Models from ONNX files behind their public header. */
#include "mixt/onnx.h"

#include "api/api.h"
#include "base/options.h"
#include "base/words.h"
#include "models/models.h"
#include "onnx/onnx.h"

#include <string.h>

enum { LOSS_MSE = 2 }; // of the choices of the key model.loss

/** The options in the words of the importer. */
static mixt_status read_options(const mixt_onnx_options *given, mixt_onnx_options *o, mixt__onnx_options *inside,
                                int *loss)
{
    char list[64];
    *o = MIXT_OPTIONS(mixt_onnx_options);
    MIXT_TRY(mixt__options(mixt_onnx_options, o, given));
    *loss = mixt__choice_find("auto|cross_entropy|mse|bce", o->loss ? o->loss : "auto");
    if (*loss < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "loss '%s': expected one of %s", o->loss,
                          mixt__choice_list("cross_entropy|mse|bce", list, sizeof list));
    if (o->head < 0 || o->head > INT32_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "head %lld: must be 0 (as in the file) or above", (long long)o->head);
    if (!(o->label_smoothing >= 0 && o->label_smoothing < 1))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "label_smoothing %g: must be from 0 to below 1",
                          (double)o->label_smoothing);
    *inside = (mixt__onnx_options){.head = o->head, .output = o->output, .logits = *loss != LOSS_MSE};
    return MIXT_OK;
}

/** Opens the file as a model of the context. */
static mixt_status open_file(mixt_context *context, const char *path, const mixt__onnx_options *options,
                             mixt__onnx **onnx)
{
    if (!mixt__grow((void **)&context->files, &context->file_capacity, context->file_count, sizeof(mixt__onnx *)))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to open %s", path);
    MIXT_TRY(mixt__onnx_open(path, options, onnx));
    context->files[context->file_count++] = *onnx;
    return MIXT_OK;
}

static mixt_status make(mixt_context *context, const char *path, const mixt_data *data, const mixt_onnx_options *given,
                        mixt__model *model)
{
    mixt_onnx_options o;
    mixt__onnx_options inside;
    int loss;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt__need_made(data, "data"));
    MIXT_TRY(read_options(given, &o, &inside, &loss));
    mixt__model_sizes *sizes = mixt__arena_alloc(&context->arena, sizeof *sizes);
    if (!sizes)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to open %s", path);
    MIXT_TRY(open_file(context, path, &inside, &sizes->onnx));
    sizes->onnx_loss = loss;
    MIXT_TRY(mixt__onnx_model(path, mixt_data_describe(data), sizes, model));
    model->label_smoothing = o.label_smoothing;
    return MIXT_OK;
}

mixt_status mixt_onnx_model_with(mixt_context *context, const char *path, const mixt_data *data,
                                 const mixt_onnx_options *options, mixt_model **model)
{
    mixt__model made = {0};
    MIXT_TRY(mixt__need(model));
    *model = NULL;
    MIXT_TRY(mixt__need_context(context));
    MIXT_TRY(mixt__context_note(context, make(context, path, data, options, &made)));
    *model = mixt__context_add_model(context, &made);
    return *model ? MIXT_OK : MIXT_ERROR_MEMORY;
}

void mixt__context_close_files(mixt_context *context)
{
    for (int64_t i = 0; i < context->file_count; i++)
        mixt__onnx_close(context->files[i]);
    mixt__free(context->files);
}

mixt_status mixt_onnx_explain(const char *path, const mixt_onnx_options *options, char **text)
{
    mixt_onnx_options o;
    mixt__onnx_options inside;
    char *lines;
    int loss;
    MIXT_TRY(mixt__need(text));
    *text = NULL;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(read_options(options, &o, &inside, &loss));
    MIXT_TRY(mixt__onnx_explain(path, &inside, &lines));
    mixt_status status = mixt__give_text(text, "%s", lines);
    mixt__free(lines);
    return status;
}
