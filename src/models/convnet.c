/* The small convolutional net: 1 → 32 → 64 channels, pooled after each, one linear layer. */
#include "models/models.h"

#include <stdio.h>

mixt_value mixt__model_conv_stack(mixt_builder *b, mixt_value x, mixt_value *mask)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    char name[32];
    for (int64_t i = 0; i < s->channel_count; i++) {
        snprintf(name, sizeof name, "conv%lld", (long long)i + 1);
        x = mixt_conv2d(b, name, x, .channels = s->channels[i], .kernel = 3, .pad = 1,
                        .no_bias = s->norm != MIXT_NORM_NONE);
        snprintf(name, sizeof name, "norm%lld", (long long)i + 1);
        x = mixt_relu(b, mixt__model_norm_masked(b, name, x, s->norm, *mask));
        *mask = mixt__mask_of_windows(b, *mask, 2, 2);
        x = mixt__masked(b, *mask, mixt_max_pool(b, x, .size = 2)); // zeros, as a convolution's own padding
    }
    return x;
}

mixt_value mixt__model_convnet(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    x = mixt__model_conv_stack(b, x, &(mixt_value){0});
    x = mixt_dropout(b, mixt_flatten(b, x), s->dropout);
    return mixt_linear(b, "fc", x, .features = s->classes);
}

mixt_status mixt__convnet_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    int64_t h = data->input_dims[0], w = data->input_dims[1];
    int64_t fits = 0;
    for (int64_t h2 = h, w2 = w; h2 >= 2 && w2 >= 2; h2 /= 2, w2 /= 2)
        fits++;
    if (s->channel_count <= fits)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_SHAPE,
                      "%lld layers reduce images of %lld x %lld to nothing: use at most %lld channels",
                      (long long)s->channel_count, (long long)h, (long long)w, (long long)fits);
}
