/* A model that is an ONNX file: its loss by the data, and whether both fit. */
#include "models/models.h"

#include "base/status.h"
#include "onnx/onnx.h"

/** In the order of the choices of the key model.loss. */
enum { LOSS_AUTO, LOSS_CROSS_ENTROPY, LOSS_MSE, LOSS_BCE };

bool mixt__model_is_file(const char *name)
{
    return mixt__onnx_is(name);
}

static mixt_value build(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    return mixt__onnx_build_with(b, x, s->onnx);
}

const mixt__zoo_entry mixt__zoo_onnx = {
    .name = "onnx",
    .summary = "a model from an ONNX file",
    .fn = build,
    .input = MIXT_MODEL_FILE,
};

static mixt_status check_outputs(const char *name, const mixt_data_info *data, const mixt__onnx *onnx, bool classes)
{
    int64_t outputs = mixt__onnx_outputs(onnx), wanted = classes ? data->classes : data->target_elements;
    if (!outputs || !wanted || (classes ? outputs >= wanted : outputs == wanted))
        return MIXT_OK;
    return mixt__fail(
        MIXT_ERROR_SHAPE,
        "%s gives %lld outputs and the data has %lld %s: model.head=%lld puts a new last layer in its place", name,
        (long long)outputs, (long long)wanted, classes ? "classes" : "values", (long long)wanted);
}

mixt_status mixt__onnx_model(const char *name, const mixt_data_info *data, mixt__model_sizes *sizes, mixt__model *model)
{
    bool values = data->target == MIXT_TARGET_VALUES;
    int loss = sizes->onnx_loss;
    if (!sizes->onnx)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: an ONNX file cannot be the model here", name);
    if (data->target == MIXT_TARGET_TEXT)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: models from ONNX files are not trained on texts of recordings",
                          name);
    if (loss == LOSS_AUTO)
        loss = values ? LOSS_MSE : LOSS_CROSS_ENTROPY;
    if ((loss == LOSS_CROSS_ENTROPY) == values)
        return mixt__fail(MIXT_ERROR_CONFIG, "model.loss=%s, but the targets of the data are %s",
                          values             ? "cross_entropy"
                          : loss == LOSS_MSE ? "mse"
                                             : "bce",
                          values ? "values" : "classes");
    MIXT_TRY(check_outputs(name, data, sizes->onnx, !values));
    *model = (mixt__model){.fn = build, .user = sizes, .begin = mixt__onnx_begin, .begin_user = sizes->onnx};
    model->loss = loss == LOSS_MSE ? MIXT_LOSS_MSE : loss == LOSS_BCE ? MIXT_LOSS_BCE : MIXT_LOSS_CROSS_ENTROPY;
    if (loss == LOSS_MSE && data->target_scale > 0) {
        model->target_mean = (float)data->target_mean;
        model->target_scale = (float)data->target_scale;
    }
    return MIXT_OK;
}
