/* How do I train a model that another program wrote? ONNX files as models: opened, fitted to data, explained.
 *
 *   mixt_model *model = mixt_onnx_model(context, "net.onnx", data, .head = 10);
 *   mixt_trainer *t = mixt_trainer_new(model, .precision = "bf16", .lr = 1e-3f);
 *
 * Layers and parameters have the names that the file gives them; parameters begin with the file's values. Images are
 * (N, H, W, C) in mixt and (N, C, H, W) in most files: inputs are turned where that is so.
 */
#ifndef MIXT_ONNX_H
#define MIXT_ONNX_H

#include "mixt/config.h"
#include "mixt/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_onnx_options {
    size_t struct_size;
    int64_t head;          /**< outputs of a new last layer, with random weights; default 0: as in the file */
    const char *output;    /**< which of the file's outputs is trained, by its name; default NULL: the first */
    const char *loss;      /**< "cross_entropy", "mse", "bce"; default NULL: by the targets of the data */
    float label_smoothing; /**< cross-entropy: share of the target spread over all classes; default 0 */
} mixt_onnx_options;
MIXT_API void mixt_onnx_options_default(mixt_onnx_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_onnx_options .struct_size = sizeof(mixt_onnx_options)

/**
 * A model from a file, for a data set.
 * @param path the .onnx file; external data is looked for in its folder. It is mapped until the context is closed.
 * @param model set to NULL on failure; it belongs to the context.
 * @return MIXT_ERROR_FORMAT for a file that is damaged, MIXT_ERROR_SHAPE where the data does not fit; what is not
 *  supported is told when the model is compiled, all at once.
 */
MIXT_API mixt_status mixt_onnx_model_with(mixt_context *context, const char *path, const mixt_data *data,
                                          const mixt_onnx_options *options, mixt_model **model);
#ifndef __cplusplus
/** mixt_onnx_model(context, "net.onnx", data, .head = 10); NULL on failure */
#define mixt_onnx_model(context, path, ...)                                                                            \
    MIXT_MADE(mixt_model, mixt_onnx_model_with, (context), (path), MIXT_OPTIONS_FIRST(__VA_ARGS__, 0),                 \
              MIXT_OPTIONS_AT(mixt_onnx_options, MIXT_OPTIONS_REST(__VA_ARGS__, )))
#endif

/**
 * Everything in a file that mixt does not support, a line each: the node's name, its op, and what is missing.
 * @param options NULL for the defaults
 * @param text receives it, "" where all is supported; for mixt_free
 */
MIXT_API mixt_status mixt_onnx_explain(const char *path, const mixt_onnx_options *options, char **text);

/** Where a configuration's model is an ONNX file and it names no data: random samples of the shape that the file asks
 *  for, so that it can be planned and measured. Nothing else is changed. */
MIXT_API mixt_status mixt_onnx_config(mixt_config *config);

#ifdef __cplusplus
}
#endif
#endif
