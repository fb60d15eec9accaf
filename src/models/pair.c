/* Two towers, pictures and captions, into one space (Radford et al. 2021): what belongs together lies close.
 *
 * Convolutions read the picture, GRU layers the bytes of the caption, whose states are averaged by its mask. Both end
 * in a vector of length 1. In training every picture of a pass is held against every caption of it, and each must find
 * its own, both ways: cross-entropy over cosines times a learned scale. Padding behind the last sample of a short batch
 * is no choice. What the model returns is both vectors side by side, in FP32: (N, 2 width).
 */
#include "models/models.h"

#include "mixt/loss.h"

#include <stdio.h>

#define SCALE_LOG 2.659f // e^2.659 = 1 / 0.07, what the scale begins with; it stays within e^2 of that
#define FAR 30000.0f     // from every choice: FP16 still holds it

/** Rows (N, C) made as long as 1, in FP32; a row of zeros stays one. */
static mixt_value unit(mixt_builder *b, mixt_value x)
{
    x = mixt_cast(b, x, MIXT_DTYPE_FP32);
    mixt_value squares = mixt_sum(b, mixt_square(b, x), .axes = {1}, .axis_count = 1, .keep_dims = true);
    return mixt_div(b, x, mixt_sqrt(b, mixt_affine(b, squares, 1, 1e-6f)));
}

static mixt_value see(mixt_builder *b, mixt_value picture)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_scope_push(b, "picture");
    mixt_value x = mixt_flatten(b, mixt__model_conv_stack(b, picture, &(mixt_value){0}));
    x = mixt_linear(b, "out", mixt_dropout(b, x, s->dropout), .features = s->width);
    mixt_scope_pop(b);
    return unit(b, x);
}

static mixt_value read(mixt_builder *b)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    mixt_value mask = mixt_input_mask(b, "caption"); // (N, T)
    int64_t n = mixt_value_dim(b, mask, 0), t = mixt_value_dim(b, mask, 1);
    char name[32];
    mixt_scope_push(b, "caption");
    mixt_value x = mixt_embedding(b, "bytes", mixt_input(b, "caption"), .count = 256, .features = s->width);
    for (int64_t i = 0; i < s->layers; i++) {
        snprintf(name, sizeof name, "rnn.%lld", (long long)i);
        x = mixt_gru(b, name, x, .features = s->width);
    }
    x = mixt_mul(b, x, mixt_reshape(b, mask, 3, (int64_t[]){n, t, 1}));
    mixt_value bytes = mixt_affine(b, mixt_sum(b, mask, .axes = {1}, .axis_count = 1, .keep_dims = true), 1, 1e-6f);
    x = mixt_div(b, mixt_sum(b, x, .axes = {1}, .axis_count = 1), bytes);
    x = mixt_linear(b, "out", mixt_dropout(b, x, s->dropout), .features = s->width);
    mixt_scope_pop(b);
    return unit(b, x);
}

/** Each row of `from` must find its own among those of `to`. */
static mixt_value find(mixt_builder *b, mixt_value from, mixt_value to, mixt_value scale, mixt_value absent)
{
    mixt_value cosines = mixt_cast(b, mixt_matmul(b, from, to, .trans_b = true), MIXT_DTYPE_FP32);
    mixt_value logits = mixt_add(b, mixt_mul(b, cosines, scale), absent);
    return mixt_loss_cross_entropy(b, logits, mixt_places(b, mixt_target(b, "target")));
}

static void judge(mixt_builder *b, mixt_value pictures, mixt_value captions)
{
    mixt_value raw = mixt_param(b, "scale", .rank = 1, .dims = {1}, .no_decay = true);
    mixt_value scale = mixt_exp(b, mixt_affine(b, mixt_tanh(b, raw), 2, SCALE_LOG));
    mixt_value there = mixt_slice(b, mixt_input_mask(b, "caption"), 1, 0, 1); // (N, 1)
    mixt_value absent =
        mixt_affine(b, mixt_reshape(b, there, 2, (int64_t[]){1, mixt_value_dim(b, there, 0)}), FAR, -FAR);
    mixt_value loss[2] = {find(b, pictures, captions, scale, absent), find(b, captions, pictures, scale, absent)};
    for (int i = 0; i < 2; i++)
        mixt_loss_add(b, loss[i], 0.5f);
}

mixt_value mixt__model_pair(mixt_builder *b, mixt_value x)
{
    mixt_value both[2] = {see(b, x), read(b)};
    judge(b, both[0], both[1]);
    return mixt_concat(b, both, 2, 1);
}
