/* Sound to words or to letters: convolutions over time and mel bands, or a perceptron that sees a window of frames at a
 * time; LSTM layers where asked for. A word is one answer for all frames; letters are one answer a frame, judged by
 * CTC. */
#include "models/models.h"

#include "mixt/loss.h"

#include <stdio.h>

enum { WINDOW = 16, STEP = 4 }; // frames that the perceptron sees, and from one look to the next
#define SURE 30.0f              // the score of a blank that is sure, where all others have 0

/** (N, T, F, 1) → (N, T', features). */
static mixt_value convolve(mixt_builder *b, mixt_value x, mixt_value *mask)
{
    x = mixt__model_conv_stack(b, x, mask);
    int64_t features = mixt_value_dim(b, x, 2) * mixt_value_dim(b, x, 3); // of one moment
    return mixt_reshape(b, x, 3, (int64_t[]){mixt_value_dim(b, x, 0), mixt_value_dim(b, x, 1), features});
}

/** The same by hidden layers: the first is a convolution as wide as all bands. */
static mixt_value perceive(mixt_builder *b, const mixt__model_sizes *s, mixt_value x, mixt_value *mask)
{
    char name[32];
    *mask = mixt__mask_of_windows(b, *mask, WINDOW, STEP);
    for (int64_t i = 0; i < s->hidden_count; i++) {
        snprintf(name, sizeof name, "hidden.%lld", (long long)i);
        bool no_bias = s->norm != MIXT_NORM_NONE;
        if (i == 0) {
            x = mixt_conv2d(b, name, x, .channels = s->hidden[0], .kernel_h = WINDOW, .no_bias = no_bias,
                            .kernel_w = mixt_value_dim(b, x, 2), .stride = STEP);
            x = mixt_reshape(b, x, 3, (int64_t[]){mixt_value_dim(b, x, 0), mixt_value_dim(b, x, 1), s->hidden[0]});
        } else {
            x = mixt_linear(b, name, x, .features = s->hidden[i], .no_bias = no_bias);
        }
        snprintf(name, sizeof name, "norm.%lld", (long long)i);
        x = mixt_dropout(b, mixt_relu(b, mixt__model_norm_masked(b, name, x, s->norm, *mask)), s->dropout);
    }
    return x;
}

void mixt__speech_window(const mixt__model_sizes *s, int64_t *window, int64_t *stride)
{
    *window = s->hidden_count ? WINDOW : (int64_t)1 << s->channel_count;
    *stride = s->hidden_count ? STEP : *window;
}

/** CTC over the frames that each sample has. */
static void judge(mixt_builder *b, const mixt__model_sizes *s, mixt_value logits, bool lengths)
{
    mixt_ctc_options o = MIXT_OPTIONS(mixt_ctc_options);
    if (lengths) {
        o.frames = mixt_input_lengths(b, "input");
        mixt__speech_window(s, &o.window, &o.stride);
    }
    mixt_loss_add(b, mixt_loss_ctc_with(b, logits, mixt_target(b, "target"), mixt_target(b, "target.length"), &o), 1);
}

/** Behind a sample's end there is nothing but blanks, so that whoever reads the outputs need not know its length. */
static mixt_value blank_behind(mixt_builder *b, mixt_value mask, mixt_value logits)
{
    int64_t batch = mixt_value_dim(b, logits, 0), frames = mixt_value_dim(b, logits, 1);
    mixt_value there = mixt__masked(b, mask, logits);
    mixt_value sure = mixt_reshape(b, mixt_affine(b, mask, -SURE, SURE), 3, (int64_t[]){batch, frames, 1});
    mixt_value blank = mixt_add(b, mixt_slice(b, there, 2, 0, 1), sure);
    mixt_value rest = mixt_slice(b, there, 2, 1, mixt_value_dim(b, logits, 2));
    return mixt_concat(b, (mixt_value[]){blank, rest}, 2, 2);
}

mixt_value mixt__model_speech(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    bool lengths = mixt_builder_has_input(b, "input.mask"); // data of runs of before has none
    mixt_value mask = lengths ? mixt_input_mask(b, "input") : (mixt_value){0};
    char name[32];
    x = mixt__masked(b, mask, x);
    x = mixt_reshape(b, x, 4,
                     (int64_t[]){mixt_value_dim(b, x, 0), mixt_value_dim(b, x, 1), mixt_value_dim(b, x, 2), 1});
    x = s->hidden_count ? perceive(b, s, x, &mask) : convolve(b, x, &mask);
    for (int64_t i = 0; i < s->layers; i++) { // they hear the past alone: padding comes behind all that counts
        snprintf(name, sizeof name, "rnn.%lld", (long long)i);
        x = mixt_lstm(b, name, mixt_dropout(b, x, s->dropout), .features = s->width);
    }
    if (!s->transcribes)
        x = lengths ? mixt__mean_of_masked(b, mask, x) : mixt_mean(b, x, .axes = {1}, .axis_count = 1);
    x = mixt_linear(b, "fc", mixt_dropout(b, x, s->dropout), .features = s->classes);
    if (s->transcribes && mixt_builder_has_loss(b))
        judge(b, s, x, lengths);
    return s->transcribes && lengths && !mixt_builder_has_loss(b) ? blank_behind(b, mask, x) : x;
}

static mixt_status check_letters(const mixt__model_sizes *s, const mixt_data_info *data)
{
    if (!s->transcribes || s->classes == data->classes)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "classes %lld: letters are as many as in the texts, %lld with the blank",
                      (long long)s->classes, (long long)data->classes);
}

mixt_status mixt__speech_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    int64_t frames = data->input_dims[0], bands = data->input_dims[1], fits = 0;
    if (s->hidden_count && s->channel_count)
        return mixt__fail(MIXT_ERROR_CONFIG, "takes either hidden layers or channels of convolutions: leave one empty");
    if (s->hidden_count && frames < WINDOW)
        return mixt__fail(MIXT_ERROR_SHAPE, "hidden layers see %d frames at a time, but there are %lld", WINDOW,
                          (long long)frames);
    if (s->hidden_count)
        return check_letters(s, data);
    for (int64_t t = frames, f = bands; t >= 2 && f >= 2; t /= 2, f /= 2)
        fits++;
    if (s->channel_count <= fits)
        return check_letters(s, data);
    return mixt__fail(MIXT_ERROR_SHAPE,
                      "%lld layers halve %lld frames of %lld features to nothing; at most %lld channels fit",
                      (long long)s->channel_count, (long long)frames, (long long)bands, (long long)fits);
}
