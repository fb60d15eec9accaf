/* Residual networks by depth.
 *
 * 18 and 34 (two 3×3 convolutions a block) and 50, 101, 152 (1×1, 3×3, 1×1 with four times the channels) begin with a
 * 7×7 convolution and a pooling, for images of about 224 × 224. 20, 32, 44, 56 and 110 are the narrow ones for images
 * of about 32 × 32: a 3×3 beginning, three stages. Convolutions have no bias: the batch norm behind each has one. Where
 * a block shrinks the image, its (second) 3×3 convolution strides, as in torchvision.
 *
 * Where a block changes shape, its shortcut is a 1×1 convolution (option B of He et al. 2016, which torchvision has and
 * which their larger networks use), or takes every other pixel and adds channels of zeros (option A, which they used on
 * CIFAR: 0.27 million weights at depth 20 instead of 0.272). Weights begin normal with variance 2 / outputs. With
 * zero_init the last norm of each block begins at 0, so that blocks begin as their shortcuts (Goyal et al. 2017).
 */
#include "models/models.h"

#include <math.h>
#include <stdio.h>

enum { STAGES_MAX = 4 };

typedef struct resnet_plan {
    int64_t depth, width; // width: channels of the first stage
    bool bottleneck, small;
    int64_t blocks[STAGES_MAX]; // 0 ends the list
} resnet_plan;

static const resnet_plan plans[] = {
    {18, 64, false, false, {2, 2, 2, 2}},  {34, 64, false, false, {3, 4, 6, 3}},  {50, 64, true, false, {3, 4, 6, 3}},
    {101, 64, true, false, {3, 4, 23, 3}}, {152, 64, true, false, {3, 8, 36, 3}}, {20, 16, false, true, {3, 3, 3}},
    {32, 16, false, true, {5, 5, 5}},      {44, 16, false, true, {7, 7, 7}},      {56, 16, false, true, {9, 9, 9}},
    {110, 16, false, true, {18, 18, 18}},
};

enum { PLAN_COUNT = sizeof plans / sizeof plans[0] };

static const resnet_plan *find_plan(int64_t depth)
{
    for (int i = 0; i < PLAN_COUNT; i++)
        if (plans[i].depth == depth)
            return &plans[i];
    return NULL;
}

/** Convolution and batch norm under the names "conv" and "bn" with a suffix. */
static mixt_value conv_norm(mixt_builder *b, const char *suffix, mixt_value x, int64_t channels, int64_t kernel,
                            int64_t stride, bool zero)
{
    char conv[32], norm[32];
    snprintf(conv, sizeof conv, "conv%s", suffix);
    snprintf(norm, sizeof norm, "bn%s", suffix);
    x = mixt_conv2d(b, conv, x, .channels = channels, .kernel = kernel, .stride = stride, .pad = kernel / 2,
                    .no_bias = true, .init = sqrtf(2.0f / (float)(kernel * kernel * channels)));
    return mixt_batch_norm(b, norm, x, .zero = zero);
}

/** Every stride-th pixel, and zeros for the channels that are not there. */
static mixt_value pad_shortcut(mixt_builder *b, mixt_value x, int64_t channels, int64_t stride)
{
    int64_t have = mixt_value_dim(b, x, -1);
    if (stride > 1)
        x = mixt_max_pool(b, x, .size = 1, .stride = stride);
    mixt_value parts[4] = {x};
    int count = 1;
    for (int64_t c = have; c > 0 && c < channels; c += have)
        parts[count++] = mixt_affine(b, x, 0, 0);
    return count > 1 ? mixt_concat(b, parts, count, -1) : x;
}

static mixt_value shortcut(mixt_builder *b, mixt_value x, int64_t channels, int64_t stride)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    if (stride == 1 && mixt_value_dim(b, x, -1) == channels)
        return x;
    if (s->shortcut == MIXT_SHORTCUT_PAD)
        return pad_shortcut(b, x, channels, stride);
    mixt_scope_push(b, "downsample");
    x = conv_norm(b, "", x, channels, 1, stride, false);
    mixt_scope_pop(b);
    return x;
}

static mixt_value block(mixt_builder *b, mixt_value x, bool bottleneck, int64_t width, int64_t stride)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    int64_t channels = bottleneck ? 4 * width : width;
    mixt_value y;
    if (bottleneck) {
        y = mixt_relu(b, conv_norm(b, "1", x, width, 1, 1, false));
        y = mixt_relu(b, conv_norm(b, "2", y, width, 3, stride, false));
        y = conv_norm(b, "3", y, channels, 1, 1, s->zero_init);
    } else {
        y = mixt_relu(b, conv_norm(b, "1", x, width, 3, stride, false));
        y = conv_norm(b, "2", y, channels, 3, 1, s->zero_init);
    }
    return mixt_relu(b, mixt_add(b, y, shortcut(b, x, channels, stride)));
}

mixt_value mixt__model_resnet(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    const resnet_plan *plan = find_plan(s->depth);
    int64_t width = s->width ? s->width : plan->width;
    x = mixt_relu(b, plan->small ? conv_norm(b, "1", x, width, 3, 1, false) : conv_norm(b, "1", x, width, 7, 2, false));
    if (!plan->small)
        x = mixt_max_pool(b, x, .size = 3, .stride = 2, .pad = 1);
    for (int stage = 0; stage < STAGES_MAX; stage++) {
        for (int64_t i = 0; i < plan->blocks[stage]; i++) {
            char name[32];
            snprintf(name, sizeof name, "layer%d.%lld", stage + 1, (long long)i);
            mixt_scope_push(b, name);
            x = block(b, x, plan->bottleneck, width << stage, stage > 0 && i == 0 ? 2 : 1);
            mixt_scope_pop(b);
        }
    }
    return mixt_linear(b, "fc", mixt_global_avg_pool(b, x), .features = s->classes);
}

mixt_status mixt__resnet_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    (void)data;
    if (find_plan(s->depth))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT,
                      "no depth %lld; there are 18, 34, 50, 101, 152, and for small images 20, 32, 44, 56, 110",
                      (long long)s->depth);
}
