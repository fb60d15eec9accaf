/* Samples to plan and measure a model that is a file with, where no data is named. */
#include "base/handles.h"
#include "config/config.h"
#include "mixt/onnx.h"
#include "onnx/onnx.h"
#include "run/open/net_sizes.h"

#include <stdio.h>

enum { SIDE = 224, TOKENS = 128 };

/** "224x224x3" of (N, 3, 224, 224): channels behind, as in mixt; sizes that the file leaves open are guessed. */
static void shape_text(int rank, const int64_t *dims, char *text, size_t size)
{
    size_t used = 0;
    bool turned = rank == 4 && (dims[1] < 0 || dims[1] <= 4 || dims[3] > 4);
    for (int i = 1; i < rank && used < size; i++) {
        int from = !turned ? i : i == rank - 1 ? 1 : i + 1;
        int64_t open = rank == 4 && from != (turned ? 1 : 3) ? SIDE : rank == 4 ? 3 : TOKENS;
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i > 1 ? "x" : "",
                                 (long long)(dims[from] > 0 ? dims[from] : open));
    }
}

static mixt_status set_random(mixt_config *config, const mixt__onnx *onnx)
{
    static const char origin[] = "as the file of the model has it";
    int64_t dims[MIXT_ONNX_RANK];
    mixt__onnx_type type;
    int rank;
    char shape[160] = "";
    bool known = mixt__onnx_input(onnx, 0, &type, &rank, dims);
    bool tokens = known && !mixt__onnx_type_is_float(type) && type != MIXT_ONNX_UINT8;
    MIXT_TRY(mixt__net_size_set(config, true, MIXT_KEY_DATA_KIND, "random", origin));
    if (tokens) {
        MIXT_TRY(mixt__net_size_set(config, true, MIXT_KEY_DATA_PATH, "tokens", origin));
        MIXT_TRY(mixt__net_size_set_number(config, true, MIXT_KEY_DATA_SEQ,
                                           rank > 1 && dims[1] > 0 ? (double)dims[1] : TOKENS, origin));
    } else if (known && rank > 1) {
        shape_text(rank, dims, shape, sizeof shape);
        MIXT_TRY(mixt__net_size_set(config, true, MIXT_KEY_DATA_SHAPE, shape, origin));
    }
    int64_t outputs = mixt__onnx_outputs(onnx);
    if (outputs > 1)
        MIXT_TRY(mixt__net_size_set_number(config, true, MIXT_KEY_DATA_CLASSES, (double)outputs, origin));
    return MIXT_OK;
}

mixt_status mixt_onnx_config(mixt_config *config)
{
    MIXT_TRY(mixt__need_open(config, "configuration"));
    const char *path = mixt__config_string(config, MIXT_KEY_MODEL);
    mixt__onnx_options options = {.head = mixt__config_int(config, MIXT_KEY_MODEL_HEAD),
                                  .output = mixt__config_string(config, MIXT_KEY_MODEL_OUTPUT)};
    mixt__onnx *onnx;
    if (!mixt__onnx_is(path) || mixt__config_was_set(config, MIXT_KEY_DATA_KIND) ||
        mixt__config_was_set(config, MIXT_KEY_DATA_PATH))
        return MIXT_OK;
    MIXT_TRY(mixt__onnx_open(path, &options, &onnx));
    mixt_status status = set_random(config, onnx);
    mixt__onnx_close(onnx);
    return status;
}
