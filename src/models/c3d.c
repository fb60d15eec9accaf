/* C3D (Tran et al. 2015): a video clip through stages of 3 × 3 × 3 convolutions, then a perceptron.
 *
 * A stage is one or two convolutions and a pooling by 2 in each direction; the first leaves the frames as they are, so
 * that motion is not averaged away before it was looked at, and the fifth pads height and width by one pixel (112 × 112
 * becomes 4 × 4). Fewer channels mean fewer stages: smaller clips.
 */
#include "models/models.h"

#include <math.h>
#include <stdio.h>

enum { STAGES = 5 };

static const int64_t convolutions[STAGES] = {1, 1, 2, 2, 2};

/** A convolution and its norm. */
static mixt_value layer(mixt_builder *b, mixt_value x, const char *place, int64_t channels, mixt__model_norm norm)
{
    char name[40];
    float inputs = 27.0f * (float)mixt_value_dim(b, x, -1);
    snprintf(name, sizeof name, "conv%s", place);
    x = mixt_conv3d(b, name, x, .channels = channels, .kernel = 3, .pad = 1, .pad_d = 1,
                    .no_bias = norm != MIXT_NORM_NONE, .init = sqrtf(2.0f / inputs));
    snprintf(name, sizeof name, "norm%s", place);
    return mixt__model_norm_layer(b, name, x, norm);
}

mixt_value mixt__model_c3d(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    char name[32];
    for (int64_t stage = 0; stage < s->channel_count; stage++) {
        for (int64_t i = 0; i < convolutions[stage]; i++) {
            snprintf(name, sizeof name, "%lld%c", (long long)stage + 1, (char)('a' + i));
            x = layer(b, i ? mixt_relu(b, x) : x, name, s->channels[stage], s->norm);
        }
        // ReLU behind the maximum gives the same numbers and gradients as before it, on an eighth of the elements.
        x = mixt_relu(b, mixt_max_pool(b, x, .size = 2, .pad = stage == STAGES - 1, .size_d = stage == 0 ? 1 : 2));
    }
    x = mixt_flatten(b, x);
    for (int64_t i = 0; i <= s->hidden_count; i++) {
        snprintf(name, sizeof name, "fc%lld", (long long)(i + s->channel_count + 1));
        x = mixt_linear(b, name, x, .features = i < s->hidden_count ? s->hidden[i] : s->classes);
        if (i < s->hidden_count)
            x = mixt_dropout(b, mixt_relu(b, x), s->dropout);
    }
    return x;
}

mixt_status mixt__c3d_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    int64_t d = data->input_dims[0], h = data->input_dims[1], w = data->input_dims[2], fits = 0;
    while (fits < STAGES && h >= 1 && w >= 1 && d >= 1) {
        bool first = fits == 0, padded = fits == STAGES - 1;
        if ((!first && d < 2) || (!padded && (h < 2 || w < 2)))
            break;
        d = first ? d : d / 2;
        h = padded ? h / 2 + 1 : h / 2;
        w = padded ? w / 2 + 1 : w / 2;
        fits++;
    }
    if (s->channel_count <= fits)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_SHAPE,
                      "%lld stages reduce clips of %lld frames of %lld x %lld to nothing; at most %lld channels fit",
                      (long long)s->channel_count, (long long)data->input_dims[0], (long long)data->input_dims[1],
                      (long long)data->input_dims[2], (long long)fits);
}
