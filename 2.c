#line 90 "docs/c-api.md"
#include <mixt/data.h>
#include <stdlib.h>

mixt_status first_batch(void)
{
    mixt_data *data;
    mixt_status status = mixt_data_open("digits:", &data, .split = "val", .seed = 1);
    if (status != MIXT_OK)
        return status;
    const mixt_data_info *info = mixt_data_describe(data);
    float *input = malloc(64 * (size_t)info->input_elements * sizeof *input);
    int32_t label[64];
    status = input ? mixt_data_batch(data, 64, 0, input, label) : MIXT_ERROR_MEMORY;
    free(input);
    mixt_data_close(data);
    return status;
}
