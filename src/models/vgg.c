/* VGG by depth (Simonyan and Zisserman 2015), as torchvision builds and names it: stages of 3×3 convolutions, each
 * pooled by 2, then a perceptron.
 *
 * Images whose sides are multiples of 224 leave multiples of 7 × 7 pixels behind the last stage; these are averaged to
 * 7 × 7 and go through two hidden layers of 4096. Smaller images, from 32 × 32, skip that averaging and take one hidden
 * layer of 512 (Liu and Deng 2015). With batch norm the convolutions keep their bias, as torchvision's do. The first
 * linear layer sees pixels in the order (height, width, channels): its columns are a permutation of torchvision's.
 */
#include "models/models.h"

#include <math.h>
#include <stdio.h>

enum { STAGES = 5, FULL = 7 };

typedef struct vgg_plan {
    int64_t depth;
    int64_t convolutions[STAGES];
} vgg_plan;

static const vgg_plan plans[] = {
    {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
static const int64_t stage_channels[STAGES] = {64, 128, 256, 512, 512};

enum { PLAN_COUNT = sizeof plans / sizeof plans[0] };

static const vgg_plan *find_plan(int64_t depth)
{
    for (int i = 0; i < PLAN_COUNT; i++)
        if (plans[i].depth == depth)
            return &plans[i];
    return NULL;
}

/** Convolution, norm and ReLU; *index counts as the entries of a torch.nn.Sequential do. */
static mixt_value layer(mixt_builder *b, mixt_value x, int64_t channels, mixt__model_norm norm, int *index)
{
    char name[32];
    snprintf(name, sizeof name, "features.%d", (*index)++);
    x = mixt_conv2d(b, name, x, .channels = channels, .kernel = 3, .pad = 1,
                    .init = sqrtf(2.0f / (9.0f * (float)channels)));
    if (norm == MIXT_NORM_BATCH) {
        snprintf(name, sizeof name, "features.%d", (*index)++);
        x = mixt_batch_norm(b, name, x);
    }
    (*index)++;
    return mixt_relu(b, x);
}

mixt_value mixt__model_vgg(mixt_builder *b, mixt_value x)
{
    const mixt__model_sizes *s = mixt_builder_user(b);
    const vgg_plan *plan = find_plan(s->depth);
    int index = 0;
    for (int stage = 0; stage < STAGES; stage++) {
        for (int64_t i = 0; i < plan->convolutions[stage]; i++)
            x = layer(b, x, stage_channels[stage], s->norm, &index);
        x = mixt_max_pool(b, x, .size = 2);
        index++;
    }
    int64_t side = mixt_value_dim(b, x, 1);
    bool full = side >= FULL;
    if (side > FULL)
        x = mixt_avg_pool(b, x, .size = side / FULL);
    static const int64_t usual[] = {4096, 4096, 512};
    int64_t count = s->hidden_count ? s->hidden_count : full ? 2 : 1;
    const int64_t *hidden = s->hidden_count ? s->hidden : full ? usual : usual + 2;
    x = mixt_flatten(b, x);
    for (int64_t i = 0; i <= count; i++) {
        char name[32];
        snprintf(name, sizeof name, "classifier.%lld", 3 * (long long)i);
        x = mixt_linear(b, name, x, .features = i < count ? hidden[i] : s->classes,
                        .init = full ? 0.01f : (float)MIXT_AUTO);
        if (i < count)
            x = mixt_dropout(b, mixt_relu(b, x), s->dropout);
    }
    return x;
}

mixt_status mixt__vgg_check(const mixt__model_sizes *s, const mixt_data_info *data)
{
    int64_t h = data->input_dims[0], w = data->input_dims[1];
    if (!find_plan(s->depth))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "no depth %lld; there are 11, 13, 16 and 19", (long long)s->depth);
    if (s->norm == MIXT_NORM_LAYER)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "norm layer: must be none or batch");
    int64_t side = h / 32;
    if (h != w || side < 1 || (side > FULL && side % FULL))
        return mixt__fail(
            MIXT_ERROR_SHAPE,
            "images of %lld x %lld: must be square, from 32 to 255 pixels or a multiple of 224: crop them",
            (long long)h, (long long)w);
    return MIXT_OK;
}
