/* Words by their sound: convolutions over time and mel bands, LSTM layers where asked for, the mean over time. */
#include "models/models.h"

#include <stdio.h>

mixt_value mixt__model_speech(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    char name[32];
    x = mixt_reshape(b, x, 4,
                     (int64_t[]){mixt_value_dim(b, x, 0), mixt_value_dim(b, x, 1), mixt_value_dim(b, x, 2), 1});
    x = mixt__model_conv_stack(b, x);
    int64_t features = mixt_value_dim(b, x, 2) * mixt_value_dim(b, x, 3); // of one moment
    x = mixt_reshape(b, x, 3, (int64_t[]){mixt_value_dim(b, x, 0), mixt_value_dim(b, x, 1), features});
    for (int64_t i = 0; i < s->layers; i++) {
        snprintf(name, sizeof name, "rnn.%lld", (long long)i);
        x = mixt_lstm(b, name, mixt_dropout(b, x, s->dropout), .features = s->width);
    }
    x = mixt_mean(b, x, .axes = {1}, .axis_count = 1);
    return mixt_linear(b, "fc", mixt_dropout(b, x, s->dropout), .features = s->classes);
}

mixt_status mixt__speech_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    int64_t frames = data->input_dims[0], bands = data->input_dims[1], fits = 0;
    for (int64_t t = frames, f = bands; t >= 2 && f >= 2; t /= 2, f /= 2)
        fits++;
    if (s->channel_count <= fits)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_SHAPE,
                      "%lld layers halve %lld frames of %lld features to nothing; at most %lld channels fit",
                      (long long)s->channel_count, (long long)frames, (long long)bands, (long long)fits);
}
