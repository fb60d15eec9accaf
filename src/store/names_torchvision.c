/* ResNet and VGG as torchvision names them. Kernels are (O, C, H, W) there; each batch norm also counts its batches. */
#include "store/names_families.h"

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
    {.key = NULL},
};

const mixt__names mixt__names_resnet = {
    .family = "resnet", .prefix = "", .rules = resnet_rules, .ignored = ignored, .fields = fields};

const mixt__names mixt__names_vgg = {
    .family = "vgg", .prefix = "", .rules = vgg_rules, .ignored = ignored, .fields = fields};
