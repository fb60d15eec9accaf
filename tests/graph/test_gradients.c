/* Gradient rules and passes: small models, differentiated, typed and fused by the library, evaluated in FP64 by the
 * oracles, against central differences of the forward graph as the builder made it.
 *
 * Nothing here rounds to a model's formats, so a wrong rule, a lost contribution or a fusion that changes the meaning
 * shows at 1e-6; kernels have their own tests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "graph/interpret.h"

#include "ops/attrs.h"
#include "ops/ops.h"
#include "mixt/graph.h"
#include "mixt/loss.h"
#include "mixt/ops.h"
#include "passes/passes.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- models that use every op with a gradient ---- */

static mixt_value mlp(mixt_builder *b, mixt_value x)
{
    x = mixt_gelu(b, mixt_linear(b, "fc1", x, .features = 5));
    x = mixt_relu(b, mixt_linear(b, "fc2", x, .features = 7, .no_bias = true));
    return mixt_linear(b, "fc3", mixt_dropout(b, x, 0.25f), .features = 4);
}

static mixt_value classifier(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc2", mixt_relu(b, mixt_linear(b, "fc1", x, .features = 6)), .features = 4);
}

static mixt_value convnet(mixt_builder *b, mixt_value x)
{
    x = mixt_conv2d(b, "conv1", x, .channels = 3, .kernel = 3, .pad = 1);
    x = mixt_relu(b, mixt_batch_norm(b, "bn1", x));
    mixt_value shortcut = mixt_conv2d(b, "down", x, .channels = 4, .kernel = 1, .stride = 2, .no_bias = true);
    x = mixt_conv2d(b, "conv2", x, .channels = 4, .kernel = 3, .stride = 2, .pad = 1, .no_bias = true);
    x = mixt_tanh(b, mixt_add(b, mixt_batch_norm(b, "bn2", x), shortcut));
    mixt_value largest = mixt_max_pool(b, x, .size = 2, .stride = 1),
               mean = mixt_avg_pool(b, x, .size = 3, .stride = 2, .pad = 1);
    mixt_value parts[2] = {mixt_flatten(b, largest), mixt_global_avg_pool(b, mean)};
    return mixt_linear(b, "fc", mixt_concat(b, parts, 2, 1), .features = 4);
}

/** Groups, dilations, paddings of each side, sequences, and convolutions that enlarge. */
static mixt_value convolutions(mixt_builder *b, mixt_value x) // (2, 6, 5, 4)
{
    x = mixt_conv2d(b, "deep", x, .channels = 4, .kernel = 3, .pad = 1, .groups = 4, .stride_w = 2, .pad_bottom = 2);
    x = mixt_tanh(b, mixt_conv2d(b, "groups", x, .channels = 6, .kernel = 2, .dilation_h = 2, .groups = 2));
    mixt_value up = mixt_conv_transpose2d(b, "up", x, .channels = 3, .kernel = 3, .stride = 2, .pad = 1,
                                          .output_pad = 1, .groups = 3);
    mixt_value t = mixt_param(b, "t", .rank = 4, .dims = {6, 2, 1, 3}, .normal = 1);
    mixt_value wide = mixt_conv_transpose2d_of(b, x, t, (mixt_value){0}, .dilation = 2, .stride_w = 3);
    mixt_value c = mixt_param(b, "c", .rank = 4, .dims = {2, 1, 1, 3}, .normal = 1);
    mixt_value bias = mixt_param(b, "z", .rank = 1, .dims = {2}, .normal = 1);
    wide = mixt_conv2d_of(b, wide, c, bias, .stride_h = 2);
    mixt_value rows = mixt_reshape(b, up, 3, (int64_t[]){2, -1, 3});
    rows = mixt_conv1d(b, "row", rows, .channels = 6, .kernel = 3, .groups = 3, .pad_begin = 2, .dilation = 2);
    mixt_value parts[2] = {mixt_flatten(b, mixt_tanh(b, rows)), mixt_flatten(b, mixt_tanh(b, wide))};
    return mixt_linear(b, "fc", mixt_concat(b, parts, 2, 1), .features = 4);
}

/** Functions of each element and comparisons, over broadcast operands. */
static mixt_value functions(mixt_builder *b, mixt_value x) // (3, 4)
{
    mixt_value p = mixt_param(b, "p", .rank = 2, .dims = {3, 4}, .normal = 1);
    mixt_value q = mixt_param(b, "q", .rank = 1, .dims = {4}, .normal = 1);
    mixt_value column = mixt_param(b, "column", .rank = 2, .dims = {3, 1}, .normal = 1);
    mixt_value base = mixt_affine(b, mixt_square(b, p), 1, 0.5f), y;
    y = mixt_add(b, mixt_pow(b, base, q), mixt_power(b, base, 1.5f));
    y = mixt_add(b, y, mixt_add(b, mixt_sin(b, p), mixt_cos(b, mixt_mul(b, q, column))));
    y = mixt_sub(b, y, mixt_add(b, mixt_erf(b, p), mixt_reciprocal(b, base)));
    y = mixt_add(b, y, mixt_add(b, mixt_elu(b, p, 0.7f), mixt_selu(b, mixt_sub(b, q, column))));
    y = mixt_mul(b, y, mixt_add(b, mixt_softplus(b, p), mixt_mish(b, q)));
    y = mixt_add(b, y, mixt_mul(b, mixt_hard_swish(b, p), mixt_hard_sigmoid(b, q, 0.2f, 0.5f)));
    y = mixt_add(b, y, mixt_mul(b, mixt_leaky_relu(b, q, 0.1f), mixt_prelu(b, x, column)));
    y = mixt_add(b, y, mixt_mul(b, mixt_clip(b, p, -0.5f, 0.6f), mixt_abs(b, column)));
    y = mixt_select(b, mixt_greater(b, p, x), y, mixt_mul(b, q, p));
    return mixt_add(b, y, mixt_mul(b, p, mixt_add(b, mixt_not(b, x), mixt_floor(b, q))));
}

/** Padding, resizing, gathering, repeating, norms over groups and sums along a dimension. */
static mixt_value rearranged(mixt_builder *b, mixt_value x) // (2, 4, 4, 4)
{
    mixt_value y = mixt_mul(b, x, mixt_param(b, "p", .rank = 3, .dims = {4, 4, 4}, .normal = 1)), z;
    y = mixt_pad(b, mixt_pad(b, y, 1, 2, 1, MIXT_PAD_REFLECT), 2, 1, 2, MIXT_PAD_EDGE); // (2, 7, 7, 4)
    y = mixt_resize(b, y, 1, 6, MIXT_RESIZE_LINEAR, MIXT_RESIZE_HALF_PIXEL, 0);
    y = mixt_resize(b, y, 2, 4, MIXT_RESIZE_NEAREST, MIXT_RESIZE_ASYMMETRIC, 0); // (2, 6, 4, 4)
    y = mixt_group_norm(b, "gn", mixt_tanh(b, y), 2);
    z = mixt_space_to_depth(b, mixt_slice_step(b, y, 1, 5, 6, -1), 2);      // (2, 3, 2, 16)
    z = mixt_depth_to_space(b, mixt_cumsum(b, z, 3, true, false), 2, true); // (2, 6, 4, 4)
    y = mixt_layer_norm_over(b, "ln", mixt_add(b, y, mixt_affine(b, z, 0.1f, 0)), 2);
    y = mixt_pad(b, mixt_max_pool(b, y, .size_h = 3, .size_w = 2, .stride = 2, .ceil = true), 3, 1, 0, MIXT_PAD_ZERO);
    z = mixt_avg_pool(b, y, .size = 2, .stride = 1, .pad = 1, .dilation_w = 2, .count_pad = true);
    mixt_value parts[3] = {
        mixt_reduce_max(b, z, .axes = {1, 2}, .axis_count = 2), mixt_reduce_l2(b, y, .axes = {2, 1}, .axis_count = 2),
        mixt_reshape(b, mixt_reduce_min(b, z, .axes = {1, 3}, .axis_count = 2), 2, (int64_t[]){2, -1})};
    y = mixt_concat(b, parts, 3, 1);
    y = mixt_linear(b, "fc", mixt_tile(b, y, (int64_t[]){1, 2}), .features = 16);
    y = mixt_trilu(b, mixt_reshape(b, y, 3, (int64_t[]){2, 4, 4}), true, -1);
    y = mixt_matmul_broadcast(b, mixt_param(b, "m", .rank = 3, .dims = {1, 4, 4}, .normal = 1), y);
    return mixt_sum(b, mixt_log_softmax(b, y, 1), .axes = {1}, .axis_count = 1);
}

/** A table looked up along its second dimension. */
static mixt_value gathered(mixt_builder *b, mixt_value ids) // (2, 5) below 9
{
    mixt_value p = mixt_param(b, "p", .rank = 3, .dims = {4, 9, 3}, .normal = 1);
    mixt_value y = mixt_gather(b, p, ids, 1); // (4, 2, 5, 3)
    y = mixt_transpose(b, y, (int[]){1, 2, 0, 3});
    return mixt_linear(b, "head", mixt_reshape(b, y, 3, (int64_t[]){2, 5, 12}), .features = 9);
}

static mixt_value clips(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_conv3d(b, "conv1", x, .channels = 3, .kernel = 3, .pad = 1, .pad_d = 1));
    mixt_value shortcut =
        mixt_conv3d(b, "down", x, .channels = 4, .kernel = 1, .stride = 2, .stride_d = 1, .no_bias = true);
    x = mixt_conv3d(b, "conv2", x, .channels = 4, .kernel = 3, .stride = 2, .stride_d = 1, .pad = 1, .pad_d = 1);
    x = mixt_tanh(b, mixt_add(b, mixt_batch_norm(b, "bn2", x), shortcut));
    mixt_value largest = mixt_max_pool(b, x, .size = 2, .stride = 1, .size_d = 2),
               mean = mixt_avg_pool(b, x, .size = 3, .stride = 2, .pad = 1, .size_d = 3, .stride_d = 1, .pad_d = 1);
    mixt_value parts[2] = {mixt_flatten(b, largest), mixt_global_avg_pool(b, mean)};
    return mixt_linear(b, "fc", mixt_concat(b, parts, 2, 1), .features = 4);
}

static mixt_value transformer(mixt_builder *b, mixt_value ids)
{
    mixt_value table = mixt_param(b, "wte", .rank = 2, .dims = {9, 8}, .normal = 1);
    mixt_value places = mixt_param(b, "wpe", .rank = 2, .dims = {6, 8}, .normal = 1);
    mixt_value x = mixt_add(b, mixt_embedding_lookup(b, table, ids), mixt_slice(b, places, 0, 0, 5)), qkv[3];
    mixt_value h = mixt_layer_norm(b, "ln1", x);
    mixt_split(b, mixt_linear(b, "qkv", h, .features = 24), 3, qkv);
    h = mixt_attention(b, qkv[0], qkv[1], qkv[2], .heads = 2, .causal = true);
    x = mixt_add(b, x, mixt_linear(b, "proj", h, .features = 8));
    h = mixt_gelu(b, mixt_linear(b, "up", mixt_layer_norm(b, "ln2", x), .features = 11));
    x = mixt_add(b, x, mixt_linear(b, "down", h, .features = 8));
    x = mixt_layer_norm(b, "ln3", x);
    return mixt_matmul(b, x, table, .trans_b = true); // tied: the table gains from both of its uses
}

static mixt_value llama(mixt_builder *b, mixt_value ids)
{
    mixt_value x = mixt_embedding(b, "embed", ids, .count = 9, .features = 8, .init = 1), qkv[3];
    mixt_value table = mixt_rotary_table(b, ids, .dim = 2, .theta = 30);
    mixt_value h = mixt_linear(b, "qkv", mixt_rms_norm(b, "ln1", x), .features = 12, .no_bias = true);
    mixt_split_at(b, mixt_rotary(b, h, table, 5), 3, (int64_t[]){8, 2, 2}, qkv);
    h = mixt_attention(b, qkv[0], qkv[1], qkv[2], .heads = 4, .causal = true);
    x = mixt_add(b, x, mixt_linear(b, "proj", h, .features = 8));
    h = mixt_rms_norm(b, "ln2", x, .eps = 0.1f);
    mixt_value gate = mixt_linear(b, "gate", h, .features = 5), up = mixt_linear(b, "up", h, .features = 5);
    h = mixt_swiglu(b, mixt_swiglu(b, gate, up), mixt_slice(b, mixt_silu(b, up), 1, 0, 1)); // the last is broadcast
    return mixt_linear(b, "head", mixt_add(b, x, mixt_linear(b, "down", h, .features = 8)), .features = 9);
}

static mixt_value recurrent(mixt_builder *b, mixt_value ids)
{
    mixt_value x = mixt_embedding(b, "embed", ids, .count = 9, .features = 4, .init = 1);
    x = mixt_lstm(b, "lstm1", x, .features = 5);
    x = mixt_gru(b, "gru", x, .features = 4);
    x = mixt_rnn(b, "rnn1", x, .features = 4);
    x = mixt_rnn(b, "rnn2", x, .features = 4, .relu = true);
    x = mixt_lstm(b, "lstm2", x, .features = 3);
    return mixt_linear(b, "head", x, .features = 9);
}

static mixt_value arithmetic(mixt_builder *b, mixt_value x) // (3, 4)
{
    mixt_value row = mixt_param(b, "row", .rank = 1, .dims = {4}, .normal = 1);
    mixt_value column = mixt_param(b, "column", .rank = 2, .dims = {3, 1}, .normal = 1);
    mixt_value full = mixt_param(b, "full", .rank = 2, .dims = {3, 4}, .normal = 1);
    mixt_value one = mixt_param(b, "one", .rank = 1, .dims = {1}, .normal = 1);
    mixt_value positive = mixt_affine(b, mixt_square(b, full), 1.5f, 0.5f);
    mixt_value y = mixt_div(b, mixt_mul(b, mixt_sub(b, x, row), column), positive);
    y = mixt_maximum(b, y, mixt_minimum(b, mixt_add(b, full, one), row));
    y = mixt_add(b, y, mixt_log(b, positive));
    y = mixt_mul(b, mixt_sigmoid(b, y), mixt_exp(b, mixt_neg(b, mixt_sqrt(b, positive))));
    return mixt_sub(b, y, mixt_softmax(b, mixt_mul(b, full, full)));
}

/** Rows that do not count, by an input's sign. */
static mixt_value masked(mixt_builder *b, mixt_value x) // (4, 6, 3)
{
    mixt_value mask = mixt_reshape(b, mixt_slice(b, x, 2, 0, 1), 2, (int64_t[]){4, 6});
    x = mixt_relu(b, mixt_batch_norm(b, "bn1", mixt_linear(b, "fc1", x, .features = 5), .mask = mask));
    x = mixt_batch_norm(b, "bn2", mixt_linear(b, "fc2", x, .features = 4), .mask = mask);
    return mixt_where(b, mixt_reshape(b, mask, 3, (int64_t[]){4, 6, 1}), mixt_tanh(b, mixt_affine(b, x, 1, 0.5f)));
}

static mixt_value shapes(mixt_builder *b, mixt_value x) // (3, 4)
{
    mixt_value p = mixt_param(b, "p", .rank = 3, .dims = {2, 3, 4}, .normal = 1), halves[2];
    mixt_value q = mixt_param(b, "q", .rank = 2, .dims = {3, 4}, .normal = 1);
    mixt_split(b, p, 2, halves);                                   // the second half is not used
    mixt_value t = mixt_transpose(b, halves[0], (int[]){1, 2, 0}); // (3, 2, 2)
    t = mixt_reshape(b, t, 2, (int64_t[]){3, 4});
    mixt_value mean = mixt_mean(b, p, .axes = {0, -1}, .axis_count = 2);                // (3)
    mixt_value sum = mixt_sum(b, p, .axes = {0}, .axis_count = 1);                      // (3, 4)
    mixt_value kept = mixt_mean(b, q, .axes = {1}, .axis_count = 1, .keep_dims = true); // (3, 1)
    mixt_value joined =
        mixt_concat(b, (mixt_value[]){mixt_slice(b, q, 1, 1, 3), t, mixt_slice(b, q, 1, 2, 4)}, 3, 1); // (3, 8)
    mixt_value y = mixt_mul(b, mixt_slice(b, joined, 1, 2, 6), mixt_tanh(b, sum));
    y = mixt_add(b, y, mixt_mul(b, kept, mixt_reshape(b, mean, 2, (int64_t[]){3, 1})));
    return mixt_add(b, mixt_mul(b, y, x), mixt_sum(b, mixt_square(b, q)));
}

static mixt_value products(mixt_builder *b, mixt_value x) // (3, 4)
{
    mixt_value p = mixt_param(b, "p", .rank = 3, .dims = {2, 3, 5}, .normal = 1);
    mixt_value q = mixt_param(b, "q", .rank = 3, .dims = {2, 5, 3}, .normal = 1);
    mixt_value nn = mixt_matmul(b, p, q, .alpha = 0.5f);                                      // (2, 3, 3)
    mixt_value tn = mixt_matmul(b, q, nn, .alpha = -1);                                       // (2, 5, 3)
    mixt_value nt = mixt_matmul(b, p, tn, .trans_a = true, .trans_b = false, .alpha = 0.25f); // wrong sizes are refused
    (void)nt;
    return x;
}

static mixt_value products_good(mixt_builder *b, mixt_value x) // (3, 4)
{
    mixt_value p = mixt_param(b, "p", .rank = 3, .dims = {2, 3, 5}, .normal = 1);
    mixt_value q = mixt_param(b, "q", .rank = 3, .dims = {2, 5, 3}, .normal = 1);
    mixt_value w = mixt_param(b, "w", .rank = 2, .dims = {3, 4}, .normal = 1);
    mixt_value nn = mixt_matmul(b, p, q, .alpha = 0.5f);                                   // (2, 3, 3)
    mixt_value tn = mixt_matmul(b, q, q, .trans_a = true);                                 // (2, 3, 3)
    mixt_value nt = mixt_matmul(b, p, p, .trans_b = true, .alpha = -0.3f);                 // (2, 3, 3)
    mixt_value tt = mixt_matmul(b, q, p, .trans_a = true, .trans_b = true, .alpha = 0.2f); // (2, 3, 3)
    mixt_value all = mixt_add(b, mixt_add(b, nn, tn), mixt_add(b, nt, tt));
    mixt_value rows = mixt_matmul(b, all, w); // (2, 3, 4): all leading dimensions are rows
    return mixt_add(b, x, mixt_mean(b, mixt_tanh(b, rows), .axes = {0}, .axis_count = 1));
}

/** A sum of losses on the same logits, and one made from ops. */
static mixt_value summed(mixt_builder *b, mixt_value x)
{
    mixt_value labels = mixt_target(b, NULL), logits = mlp(b, x);
    mixt_value other = mixt_linear(b, "other", x, .features = 4);
    mixt_loss_add(b, mixt_loss_cross_entropy(b, logits, labels), 0.75f);
    mixt_loss_add(b, mixt_loss_kl(b, logits, mixt_slice(b, x, 1, 0, 4), .temperature = 3), 2);
    mixt_loss_add(b, mixt_loss_cross_entropy(b, other, mixt_places(b, labels), .classes = 3), 0.5f);
    mixt_loss_add(b, mixt_mean(b, mixt_square(b, logits)), 0.1f);
    return logits;
}

/* ---- the check ---- */

typedef struct problem_spec {
    const char *name;
    mixt_model_fn fn;
    mixt_loss loss;
    float smoothing;
    mixt__shape input, target;
    int64_t ids, classes;  // ids: inputs are indices below this
    mixt_model_fn teacher; // NULL: none
} problem_spec;

static const problem_spec specs[] = {
    {"mlp", mlp, MIXT_LOSS_CROSS_ENTROPY, 0.1f, {2, {3, 6}}, {1, {3}}, 0, 4, NULL},
    {"classifier", classifier, MIXT_LOSS_CROSS_ENTROPY, 0, {2, {5, 6}}, {1, {5}}, 0, 4, NULL},
    {"convnet", convnet, MIXT_LOSS_CROSS_ENTROPY, 0, {4, {2, 6, 5, 2}}, {1, {2}}, 0, 4, NULL},
    {"convolutions", convolutions, MIXT_LOSS_CROSS_ENTROPY, 0, {4, {2, 6, 5, 4}}, {1, {2}}, 0, 4, NULL},
    {"functions", functions, MIXT_LOSS_MSE, 0, {2, {3, 4}}, {2, {3, 4}}, 0, 0, NULL},
    {"rearranged", rearranged, MIXT_LOSS_MSE, 0, {4, {2, 4, 4, 4}}, {2, {2, 4}}, 0, 0, NULL},
    {"gathered", gathered, MIXT_LOSS_CROSS_ENTROPY, 0, {2, {2, 5}}, {2, {2, 5}}, 9, 9, NULL},
    {"clips", clips, MIXT_LOSS_CROSS_ENTROPY, 0, {5, {2, 4, 5, 4, 2}}, {1, {2}}, 0, 4, NULL},
    {"llama", llama, MIXT_LOSS_CROSS_ENTROPY, 0, {2, {2, 5}}, {2, {2, 5}}, 9, 9, NULL},
    {"transformer", transformer, MIXT_LOSS_CROSS_ENTROPY, 0, {2, {2, 5}}, {2, {2, 5}}, 9, 9, NULL},
    {"recurrent", recurrent, MIXT_LOSS_CROSS_ENTROPY, 0, {2, {2, 4}}, {2, {2, 4}}, 9, 9, NULL},
    {"arithmetic", arithmetic, MIXT_LOSS_MSE, 0, {2, {3, 4}}, {2, {3, 4}}, 0, 0, NULL},
    {"masked", masked, MIXT_LOSS_MSE, 0, {3, {4, 6, 3}}, {3, {4, 6, 4}}, 0, 0, NULL},
    {"shapes", shapes, MIXT_LOSS_BCE, 0, {2, {3, 4}}, {2, {3, 4}}, 0, 0, NULL},
    {"taught classifier", classifier, MIXT_LOSS_CROSS_ENTROPY, 0.1f, {2, {5, 6}}, {1, {5}}, 0, 4, mlp},
    {"taught transformer", transformer, MIXT_LOSS_CROSS_ENTROPY, 0, {2, {2, 5}}, {2, {2, 5}}, 9, 9, transformer},
    {"taught llama", llama, MIXT_LOSS_CROSS_ENTROPY, 0, {2, {2, 4}}, {2, {2, 4}}, 9, 9, recurrent},
    {"summed", summed, MIXT_LOSS_CUSTOM, 0, {2, {3, 6}}, {1, {3}}, 0, 4, NULL},
    {"products", products_good, MIXT_LOSS_MSE, 0, {2, {3, 4}}, {2, {3, 4}}, 0, 0, NULL},
};

static uint64_t random_state;

static double uniform(double low, double high)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double)(random_state >> 33) * 0x1p-31;
}

typedef struct data {
    double *param[64], *input, *target;
} data;

static double *draw(const mixt__shape *shape, double low, double high, int64_t below)
{
    int64_t count = mixt__shape_count(shape);
    double *array = malloc((size_t)(count + 1) * sizeof(double));
    for (int64_t i = 0; array && i < count; i++)
        array[i] = below ? floor(uniform(0, (double)below)) : uniform(low, high);
    return array;
}

static data draw_data(const problem_spec *s, const mixt__graph *graph)
{
    data d = {.input = draw(&s->input, -1, 1, s->ids), .target = draw(&s->target, 0, 1, s->classes)};
    assert_true(graph->param_count < 64);
    for (int64_t p = 0; p < graph->param_count; p++)
        d.param[p] = draw(&graph->params[p].shape, 0.1, 1.1, 0);
    for (int64_t p = 0; p < graph->param_count; p++) // both signs, but running variances stay positive
        for (int64_t i = 0; i < graph->params[p].count && graph->params[p].trainable; i += 2)
            d.param[p][i] = -d.param[p][i];
    return d;
}

static void free_data(data *d, int64_t params)
{
    for (int64_t p = 0; p < params; p++)
        free(d->param[p]);
    free(d->input);
    free(d->target);
}

static double loss_of(interpretation *x)
{
    assert_true(interpretation_run(x));
    return x->value[x->graph->loss][0];
}

static void check_param(const problem_spec *s, interpretation *forward, interpretation *both, data *d, int64_t p,
                        const char *how)
{
    enum { SAMPLES = 10 };
    const mixt__param *param = &both->graph->params[p];
    int64_t count = param->count, samples = count < SAMPLES ? count : SAMPLES;
    assert_true(param->grad != 0);
    for (int64_t k = 0; k < samples; k++) {
        int64_t i = samples == count ? k : (int64_t)uniform(0, (double)count);
        double kept = d->param[p][i], h = 1e-5;
        d->param[p][i] = kept + h;
        double above = loss_of(forward);
        d->param[p][i] = kept - h;
        double slope = (above - loss_of(forward)) / (2 * h), got = both->value[param->grad][i];
        d->param[p][i] = kept;
        // h² times a third derivative of order 10, and two roundings of a loss of order 10 divided by 2h
        if (!(fabs(got - slope) <= 1e-8 + 1e-7 * fabs(slope))) {
            print_message("%s, %s: gradient of %s[%lld]: graph gives %.10g, differences give %.10g\n", s->name, how,
                          param->name, (long long)i, got, slope);
            fail();
        }
    }
}

/** How much fusion: none, pointwise groups, and every fused form that a backend may have. */
enum { FUSE_NOTHING, FUSE_POINTWISE, FUSE_ALL, FUSE_COUNT };
static const char *const fusions[] = {"", ", fused", ", all forms"};

/** Half the bytes that the logits take, with those of a teacher in BF16. */
static size_t half_of_logits(const problem_spec *s, const mixt__graph *source, const mixt__policy *policy)
{
    size_t count = (size_t)mixt__shape_count(&source->values[source->logits].shape);
    return count * (mixt_dtype_size(mixt__dtype_carrier(policy->forward)) + (s->teacher ? 2 : 0)) / 2;
}

/** Whether a head was cut into parts. */
static bool is_cut(const mixt__graph *graph)
{
    int64_t steps = 0;
    for (int64_t i = 0; i < graph->node_count; i++)
        steps += graph->nodes[i].op == &mixt__op_kl_step || graph->nodes[i].op == &mixt__op_cross_entropy_step;
    return steps > 1;
}

static void check_model(const problem_spec *s, const mixt__graph *source, const mixt__policy *policy, int fuse)
{
    char how[64];
    mixt__graph *graph = NULL;
    mixt__compile_options options = {.policy = *policy, .backward = true, .no_fusion = fuse == FUSE_NOTHING};
    options.fused = fuse == FUSE_ALL ? ~0u : 0;
    options.keep_all = true;
    options.logits_limit = fuse == FUSE_ALL ? half_of_logits(s, source, policy) : 0; // so that even these heads are cut
    snprintf(how, sizeof how, "%s and %s, keep %s%s", mixt_dtype_name(policy->forward),
             mixt_dtype_name(policy->backward), mixt_dtype_name(policy->keep), fusions[fuse]);
    const mixt__policy teacher = {.forward = MIXT_DTYPE_BF16, .backward = MIXT_DTYPE_BF16};
    options.teacher = &teacher; // rounds nothing here either
    if (mixt__passes_run(source, &options, &graph) != MIXT_OK) {
        print_message("%s, %s: %s\n", s->name, how, mixt_error_text());
        fail();
    }
    if (s->fn == transformer) // whose head has no bias
        assert_int_equal(is_cut(graph), fuse == FUSE_ALL);
    random_state = 4711;
    data d = draw_data(s, source);
    interpretation *forward = interpretation_new(source, d.param, d.input, d.target);
    interpretation *both = interpretation_new(graph, d.param, d.input, d.target);
    double expected = loss_of(forward), loss = loss_of(both);
    if (!(fabs(loss - expected) <= 1e-12 * (1 + fabs(expected)))) {
        print_message("%s, %s: loss %.15g, as built %.15g\n", s->name, how, loss, expected);
        fail();
    }
    for (int64_t p = 0; p < graph->param_count; p++)
        if (graph->params[p].trainable && !graph->params[p].frozen)
            check_param(s, forward, both, &d, p, how);
    interpretation_free(forward);
    interpretation_free(both);
    free_data(&d, source->param_count);
    mixt__graph_free(graph);
}

static void test_gradients(void **state)
{
    const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        const problem_spec *s = &specs[i];
        mixt__teacher teacher = {.fn = s->teacher, .weight = 0.3f, .temperature = 2};
        mixt__model model = {.fn = s->fn, .loss = s->loss, .label_smoothing = s->smoothing};
        model.teacher = s->teacher ? &teacher : NULL;
        mixt__batch_spec batch = {.input_dtype = s->ids ? MIXT_DTYPE_INT32 : MIXT_DTYPE_FP32,
                                  .target_dtype = s->classes ? MIXT_DTYPE_INT32 : MIXT_DTYPE_FP32,
                                  .input = s->input,
                                  .target = s->target};
        mixt__graph *source = NULL;
        if (mixt__model_build(&model, &batch, true, &source) != MIXT_OK) {
            print_message("%s: %s\n", s->name, mixt_error_text());
            fail();
        }
        for (int p = 0; p < 9; p++) // forward and backward together and apart
            for (int fuse = 0; fuse < FUSE_COUNT; fuse++)
                check_model(s, source, &(mixt__policy){.forward = formats[p / 3], .backward = formats[p % 3]}, fuse);
        // casts to BF16 round nothing here: what reads kept values must read the right ones
        for (int fuse = 0; fuse < FUSE_COUNT; fuse++)
            check_model(
                s, source,
                &(mixt__policy){.forward = MIXT_DTYPE_FP32, .backward = MIXT_DTYPE_FP32, .keep = MIXT_DTYPE_BF16},
                fuse);
        mixt__graph_free(source);
    }
}

/* ---- a classifier's head as one node ---- */

static mixt_value many_classes(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", mixt_relu(b, mixt_linear(b, "fc1", x, .features = 6)), .features = 33);
}

static mixt_value scaled(mixt_builder *b, mixt_value x)
{
    mixt_value w = mixt_param(b, "w", .rank = 2, .dims = {4, 6}, .normal = 1);
    return mixt_matmul(b, mixt_relu(b, mixt_linear(b, "fc1", x, .features = 6)), w, .trans_b = true, .alpha = 0.5f);
}

static mixt_value first_layer(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "fc", x, .features = 4);
}

/** The head of a model after all passes; NULL: it has none. `graph` is the caller's to free. */
static const mixt__node *head_of(mixt_model_fn fn, const mixt__compile_options *options, mixt__graph **graph)
{
    mixt__model model = {.fn = fn, .loss = MIXT_LOSS_CROSS_ENTROPY};
    mixt__batch_spec batch = {
        .input_dtype = MIXT_DTYPE_FP32, .target_dtype = MIXT_DTYPE_INT32, .input = {2, {5, 6}}, .target = {1, {5}}};
    mixt__graph *source = NULL;
    const mixt__node *head = NULL;
    assert_int_equal(mixt__model_build(&model, &batch, true, &source), MIXT_OK);
    assert_int_equal(mixt__passes_run(source, options, graph), MIXT_OK);
    mixt__graph_free(source);
    for (int64_t i = 0; i < (*graph)->node_count; i++)
        if ((*graph)->nodes[i].op == &mixt__op_head_step)
            head = &(*graph)->nodes[i];
    return head;
}

static void test_classifier(void **state)
{
    mixt__compile_options options = {.policy = mixt__policy_of(MIXT_DTYPE_BF16), .backward = true, .fused = ~0u};
    mixt__graph *graph;
    (void)state;
    const mixt__node *head = head_of(classifier, &options, &graph);
    assert_non_null(head);
    assert_true(((const mixt__head_attrs *)head->attrs)->relu && ((const mixt__head_attrs *)head->attrs)->bias);
    assert_string_equal(head->layer, "fc2");
    assert_int_equal(graph->values[head->in[0]].dtype, MIXT_DTYPE_BF16);
    mixt__graph_free(graph);
    const mixt_model_fn others[] = {many_classes, scaled, first_layer}; // the last has no gradient of its input
    for (int i = 0; i < 3; i++) {
        assert_null(head_of(others[i], &options, &graph));
        mixt__graph_free(graph);
    }
    options.no_fusion = true;
    assert_null(head_of(classifier, &options, &graph));
    mixt__graph_free(graph);
    options.no_fusion = false;
    options.fused = ~0u & ~(unsigned)MIXT_FUSED_HEAD;
    assert_null(head_of(classifier, &options, &graph));
    mixt__graph_free(graph);
}

static void test_misfit_is_refused(void **state)
{
    (void)state;
    mixt__model model = {.fn = products, .loss = MIXT_LOSS_MSE};
    mixt__batch_spec batch = {
        .input_dtype = MIXT_DTYPE_FP32, .target_dtype = MIXT_DTYPE_FP32, .input = {2, {3, 4}}, .target = {2, {3, 4}}};
    mixt__graph *graph = NULL;
    assert_int_equal(mixt__model_build(&model, &batch, true, &graph), MIXT_ERROR_SHAPE);
    assert_null(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_classifier),
        cmocka_unit_test(test_misfit_is_refused),
    };
    return cmocka_run_group_tests_name("gradients", tests, NULL, NULL);
}
