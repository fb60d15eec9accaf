/* Samples of different lengths inside a model: masks that follow windows over time, and means over what is there.
 *
 * A mask (N, T) is 1 where a sample has something and 0 behind its end. A window counts where all of it does, as if the
 * sample were alone and not padded: nothing that is made of padding is heard further on.
 */
#include "models/models.h"

mixt_value mixt__mask_of_windows(mixt_builder *b, mixt_value mask, int64_t window, int64_t stride)
{
    if (!mask.id)
        return mask;
    int64_t batch = mixt_value_dim(b, mask, 0), count = (mixt_value_dim(b, mask, 1) - window) / stride + 1;
    mixt_value ends = mixt_slice(b, mask, 1, window - stride, window - stride + count * stride); // of the windows
    ends = mixt_reshape(b, ends, 3, (int64_t[]){batch, count, stride});
    return mixt_reshape(b, mixt_slice(b, ends, 2, stride - 1, stride), 2, (int64_t[]){batch, count});
}

mixt_value mixt__masked(mixt_builder *b, mixt_value mask, mixt_value x)
{
    if (!mask.id)
        return x;
    int64_t dims[MIXT_MAX_RANK] = {mixt_value_dim(b, mask, 0), mixt_value_dim(b, mask, 1), 1, 1};
    return mixt_where(b, mixt_reshape(b, mask, mixt_value_rank(b, x), dims), x);
}

mixt_value mixt__mean_of_masked(mixt_builder *b, mixt_value mask, mixt_value x)
{
    mixt_value sum = mixt_sum(b, mixt__masked(b, mask, mixt_cast(b, x, MIXT_DTYPE_FP32)), .axes = {1}, .axis_count = 1);
    mixt_value count = mixt_sum(b, mask, .axes = {1}, .axis_count = 1, .keep_dims = true);
    return mixt_div(b, sum, mixt_maximum(b, count, mixt_affine(b, count, 0, 1))); // of nothing: 0, not NaN
}
