/* ResNet and VGG as torchvision names them. Kernels are (O, C, H, W) there; each batch norm also counts its batches. */
#include "store/names_families.h"

#include <stdio.h>
#include <string.h>

static const mixt__name_rule resnet_rules[] = {
    {"conv1.weight", "conv1.weight", .layout = MIXT_LAYOUT_CHANNELS},
    {"bn1.*", "bn1.*", .layout = MIXT_LAYOUT_SAME},
    {"bn1.running_mean", "bn1.num_batches_tracked", .layout = MIXT_LAYOUT_COUNTER},
    {"layer#.#.conv#.weight", "layer#.#.conv#.weight", .layout = MIXT_LAYOUT_CHANNELS},
    {"layer#.#.bn#.*", "layer#.#.bn#.*", .layout = MIXT_LAYOUT_SAME},
    {"layer#.#.bn#.running_mean", "layer#.#.bn#.num_batches_tracked", .layout = MIXT_LAYOUT_COUNTER},
    {"layer#.#.downsample.conv.weight", "layer#.#.downsample.0.weight", .layout = MIXT_LAYOUT_CHANNELS},
    {"layer#.#.downsample.bn.*", "layer#.#.downsample.1.*", .layout = MIXT_LAYOUT_SAME},
    {"layer#.#.downsample.bn.running_mean", "layer#.#.downsample.1.num_batches_tracked", .layout = MIXT_LAYOUT_COUNTER},
    {"fc.*", "fc.*", .layout = MIXT_LAYOUT_SAME},
    {.here = NULL},
};

static const mixt__name_rule vgg_rules[] = {
    {"features.#.*", "features.#.*", .layout = MIXT_LAYOUT_CHANNELS},
    {"features.#.running_mean", "features.#.num_batches_tracked", .layout = MIXT_LAYOUT_COUNTER},
    {"classifier.0.*", "classifier.0.*", .layout = MIXT_LAYOUT_FEATURES, .channels = 512},
    {"classifier.3.*", "classifier.3.*", .layout = MIXT_LAYOUT_SAME},
    {"classifier.6.*", "classifier.6.*", .layout = MIXT_LAYOUT_SAME},
    {"classifier.9.*", "classifier.9.*", .layout = MIXT_LAYOUT_SAME},
    {.here = NULL},
};

static const char *const ignored[] = {"*num_batches_tracked", NULL};

static const mixt__name_field fields[] = {
    {"architecture", .fact = MIXT_FACT(architecture)},
    {"num_classes", .fact = MIXT_FACT(classes), .free = true},
    {"in_channels", .fact = MIXT_FACT(channels), .free = true},
    {"torchvision", .fact = MIXT_FACT(fits), .free = true}, // torchvision.models.<architecture>(num_classes=…) fits
    {.key = NULL},
};

/* ---- what torchvision builds by itself ---- */

/** A dimension that torchvision's models all have. */
typedef struct usual_size {
    const char *tensor;
    int dim;
    int64_t size;
    const char *what;
} usual_size;

static const usual_size resnet_sizes[] = {
    {"conv1.weight", 0, 64, "a width of 64"},
    {"conv1.weight", 3, 3, "3 input channels"},
    {"layer2.0.downsample.conv.weight", 1, 1, "projections as shortcuts"},
    {.tensor = NULL},
};

static const usual_size vgg_sizes[] = {
    {"features.0.weight", 3, 3, "3 input channels"},
    {"classifier.0.weight", 1, 7 * 7 * 512, "7 x 7 pixels before its classifier"},
    {"classifier.0.weight", 0, 4096, "hidden layers of 4096 and 4096"},
    {"classifier.3.weight", 0, 4096, "hidden layers of 4096 and 4096"},
    {"classifier.6.weight", 1, 4096, "hidden layers of 4096 and 4096"},
    {.tensor = NULL},
};

static mixt__name_differs compare(const usual_size *sizes, const mixt__file_tensor *here, int64_t count,
                                  const char *architecture)
{
    mixt__name_differs found = {""};
    for (; sizes->tensor && !found.text[0]; sizes++) {
        int64_t has = 0;
        for (int64_t i = 0; i < count; i++)
            if (!strcmp(here[i].name, sizes->tensor) && sizes->dim < here[i].rank)
                has = here[i].dims[sizes->dim];
        if (has != sizes->size)
            snprintf(found.text, sizeof found.text, "torchvision's %s has %s, this model does not", architecture,
                     sizes->what);
    }
    return found;
}

/** Those for small images have three stages: torchvision has none of them. */
static mixt__name_differs resnet_differs(const mixt__file_tensor *here, int64_t count, const char *architecture)
{
    mixt__name_differs none;
    snprintf(none.text, sizeof none.text, "torchvision has no %s", architecture);
    for (int64_t i = 0; i < count; i++)
        if (!strncmp(here[i].name, "layer4.", 7))
            return compare(resnet_sizes, here, count, architecture);
    return none;
}

static mixt__name_differs vgg_differs(const mixt__file_tensor *here, int64_t count, const char *architecture)
{
    mixt__name_differs found = compare(vgg_sizes, here, count, architecture);
    for (int64_t i = 0; i < count && !found.text[0]; i++)
        if (!strcmp(here[i].name, "classifier.9.weight"))
            snprintf(found.text, sizeof found.text, "torchvision's %s has two hidden layers, this model has more",
                     architecture);
    return found;
}

const mixt__names mixt__names_resnet = {.family = "resnet",
                                        .prefix = "",
                                        .rules = resnet_rules,
                                        .ignored = ignored,
                                        .fields = fields,
                                        .differs = resnet_differs};

const mixt__names mixt__names_vgg = {
    .family = "vgg", .prefix = "", .rules = vgg_rules, .ignored = ignored, .fields = fields, .differs = vgg_differs};
