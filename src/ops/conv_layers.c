/* The public functions of convolutions: of planes, volumes and sequences, and transposed ones. */
#include "ops/rules.h"

#include <math.h>
#include <string.h>

enum { AXES = 3 };

/** What a caller said of one axis; MIXT_AUTO where an option was left out. */
typedef struct wish {
    int64_t kernel, stride, dilation, pad, pad_end, output_pad;
} wish;

/** A layer to be made: its axes, depth first where it has one, and its parameters. */
typedef struct layer {
    const mixt__op *op;
    bool transposed;
    int count; // of axes
    wish axes[AXES];
    int64_t channels, groups;
    bool no_bias;
    float init;
    const char *name;        // of the layer; NULL: weight and bias are the caller's
    mixt_value weight, bias; // the caller's; bias may be none
} layer;

static const char *name_of(const layer *l)
{
    return l->transposed ? "conv_transpose2d" : l->op->name;
}

/** An axis' sizes are real, and its pads are such that nothing overflows; false: an error has been recorded. */
static bool is_sound(mixt_builder *b, const layer *l)
{
    bool sound = l->channels > 0 && l->groups > 0;
    for (int i = 0; i < l->count; i++)
        sound = sound && l->axes[i].kernel > 0 && l->axes[i].stride > 0;
    if (!sound)
        mixt__builder_error(b, MIXT_ERROR_ARGUMENT, l->name,
                            "%s needs .channels, .kernel and .groups of at least 1 and a stride of at least 1",
                            name_of(l));
    for (int i = 0; sound && i < l->count; i++) {
        const wish *a = &l->axes[i];
        sound = a->dilation > 0 && a->dilation <= MIXT_ELEMENTS_MAX / a->kernel && a->stride <= MIXT_ELEMENTS_MAX;
        if (!sound)
            mixt__builder_error(b, MIXT_ERROR_ARGUMENT, l->name,
                                "%s with a dilation of %lld and a stride of %lld: must be"
                                " at least 1 and not beyond 2^44",
                                name_of(l), (long long)a->dilation, (long long)a->stride);
        const int64_t pads[3] = {a->pad, a->pad_end, a->output_pad};
        for (int p = 0; sound && p < 3; p++)
            if (pads[p] < 0 || pads[p] > MIXT_ELEMENTS_MAX) {
                sound = false;
                mixt__builder_error(b, MIXT_ERROR_ARGUMENT, l->name, "%s with a pad of %lld: must be from 0 to 2^44",
                                    name_of(l), (long long)pads[p]);
            }
    }
    return sound && (l->init == MIXT_AUTO || mixt__builder_number(b, l->name, ".init", l->init));
}

/** The size of the source of the convolution along axis i, from what the layer is given: of a transposed one it is the
 *  result's. 0: there is none. */
static int64_t source_size(const layer *l, int i, int64_t given)
{
    const wish *a = &l->axes[i];
    if (!l->transposed)
        return given;
    int64_t span = (a->kernel - 1) * a->dilation + 1, whole = given > 0 ? (given - 1) * a->stride : 0;
    return whole + span + a->output_pad - a->pad - a->pad_end;
}

static mixt__conv_axis axis_of(const layer *l, int i, int64_t given)
{
    const wish *a = &l->axes[i];
    return (mixt__conv_axis){.kernel = a->kernel,
                             .stride = a->stride,
                             .dilation = a->dilation,
                             .pad = a->pad,
                             .pad_end = a->pad_end,
                             .src = source_size(l, i, given)};
}

/** Fills the attributes; false: an error has been recorded. */
static bool fill(mixt_builder *b, const layer *l, const mixt__shape *s, mixt__conv3d_attrs *at)
{
    mixt__conv_axis axes[AXES];
    for (int i = 0; i < l->count; i++) {
        axes[i] = axis_of(l, i, s->dims[i + 1]);
        if (axes[i].src < 1 && l->transposed) {
            mixt__builder_error(b, MIXT_ERROR_SHAPE, l->name, "%s of %lld along an axis leaves nothing: less padding",
                                name_of(l), (long long)s->dims[i + 1]);
            return false;
        }
        if (l->transposed && l->axes[i].output_pad >= axes[i].stride && l->axes[i].output_pad >= axes[i].dilation) {
            mixt__builder_error(b, MIXT_ERROR_ARGUMENT, l->name,
                                "%s with an output_pad of %lld: must be below the stride, or below the dilation",
                                name_of(l), (long long)l->axes[i].output_pad);
            return false;
        }
    }
    if (l->count == AXES)
        at->d = axes[0];
    at->plane.h = axes[l->count - 2];
    at->plane.w = axes[l->count - 1];
    at->plane.groups = l->groups;
    return true;
}

/** The layer's weight and, where it has one, its bias. (O, K…, C / groups); of a transposed one O is the source's
 *  channels. */
static void params(mixt_builder *b, const layer *l, const mixt__shape *s, mixt_value *weight, mixt_value *bias)
{
    int64_t channels = s->dims[s->rank - 1], outer = l->transposed ? channels : l->channels;
    mixt__param w = {.shape = {.rank = s->rank, .dims = {outer}}, .trainable = true, .decay = true};
    int64_t inner = (l->transposed ? l->channels : channels) / l->groups;
    double inputs = (double)inner;
    for (int i = 0; i < l->count; i++) {
        w.shape.dims[i + 1] = l->axes[i].kernel;
        inputs *= (double)l->axes[i].kernel;
    }
    w.shape.dims[s->rank - 1] = inner;
    w.init = MIXT_INIT_UNIFORM;
    w.init_scale = 1.0f / sqrtf((float)inputs);
    mixt__param z = {
        .shape = {1, {l->channels}}, .trainable = true, .init = MIXT_INIT_UNIFORM, .init_scale = w.init_scale};
    if (l->init != MIXT_AUTO) {
        w.init = l->init > 0 ? MIXT_INIT_NORMAL : MIXT_INIT_ZERO;
        w.init_scale = l->init;
        z.init = MIXT_INIT_ZERO;
    }
    *weight = mixt__builder_param(b, l->name, "weight", &w);
    if (!l->no_bias)
        *bias = mixt__builder_param(b, l->name, "bias", &z);
}

static mixt_value convolve(mixt_builder *b, mixt_value x, layer *l)
{
    if (!mixt__builder_ready(b, l->name, &x, 1))
        return (mixt_value){0};
    mixt__shape s = b->graph->values[x.id].shape;
    mixt__conv3d_attrs at = {0};
    mixt_value weight = l->weight, bias = l->bias;
    if (s.rank != l->count + 2) {
        char text[128];
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, l->name, "%s needs (N, %sH, W, C), got %s", name_of(l),
                                   l->count == AXES ? "D, " : "", mixt__shape_text(&s, text, sizeof text));
    }
    if (!is_sound(b, l) || !fill(b, l, &s, &at))
        return (mixt_value){0};
    if (s.dims[s.rank - 1] % l->groups || l->channels % l->groups)
        return mixt__builder_error(
            b, MIXT_ERROR_SHAPE, l->name, "%s of %lld channels to %lld in %lld groups: both must be multiples of that",
            name_of(l), (long long)s.dims[s.rank - 1], (long long)l->channels, (long long)l->groups);
    if (l->name)
        params(b, l, &s, &weight, &bias);
    if (l->transposed) {
        x = mixt__builder_node(b, l->op, l->name, &at, (mixt_value[]){x, weight}, 2);
        return bias.id ? mixt_add(b, x, bias) : x;
    }
    at.plane.bias = bias.id != 0;
    return mixt__builder_node(b, l->op, l->name, &at, (mixt_value[]){x, weight, bias}, bias.id ? 3 : 2);
}

static int64_t chosen(int64_t own, int64_t otherwise)
{
    return own == MIXT_AUTO ? otherwise : own;
}

/** The axis of width, or with `high` of height, of any struct of options of a convolution of planes. */
#define PLANE_AXIS(o, high)                                                                                            \
    (wish)                                                                                                             \
    {                                                                                                                  \
        .kernel = chosen((high) ? (o)->kernel_h : (o)->kernel_w, (o)->kernel),                                         \
        .stride = chosen((high) ? (o)->stride_h : (o)->stride_w, (o)->stride),                                         \
        .dilation = chosen((high) ? (o)->dilation_h : (o)->dilation_w, (o)->dilation),                                 \
        .pad = chosen((high) ? (o)->pad_top : (o)->pad_left, (o)->pad),                                                \
        .pad_end = chosen((high) ? (o)->pad_bottom : (o)->pad_right, (o)->pad)                                         \
    }

/** Axes, channels and parameters of any struct of options; the first `deep` axes are the caller's. */
#define LAYER_OF(o, record, deep)                                                                                      \
    (layer)                                                                                                            \
    {                                                                                                                  \
        .op = &(record), .count = (deep) + 2, .channels = (o)->channels, .groups = (o)->groups,                        \
        .no_bias = (o)->no_bias, .init = (o)->init,                                                                    \
        .axes = {[(deep)] = PLANE_AXIS(o, true), [(deep) + 1] = PLANE_AXIS(o, false)},                                 \
    }

/* ---- planes ---- */

MIXT_PLAY(mixt_conv2d_with, out[0] = mixt_conv2d_with(b, c->name, in[0], options))

mixt_value mixt_conv2d_with(mixt_builder *b, const char *name, mixt_value x, const mixt_conv2d_options *given)
{
    mixt_conv2d_options own = MIXT_OPTIONS(mixt_conv2d_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_conv2d_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_conv2d_with, .name = name, .in = {x}, .in_count = 1, .options = &own,
                .options_size = sizeof own);
    layer l = LAYER_OF(o, mixt__op_conv2d, 0);
    l.name = name;
    return convolve(b, x, &l);
}

MIXT_PLAY(mixt_conv_transpose2d_with, out[0] = mixt_conv_transpose2d_with(b, c->name, in[0], options))

mixt_value mixt_conv_transpose2d_with(mixt_builder *b, const char *name, mixt_value x,
                                      const mixt_conv_transpose2d_options *given)
{
    mixt_conv_transpose2d_options own = MIXT_OPTIONS(mixt_conv_transpose2d_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_conv_transpose2d_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_conv_transpose2d_with, .name = name, .in = {x}, .in_count = 1, .options = &own,
                .options_size = sizeof own);
    layer l = LAYER_OF(o, mixt__op_conv2d_grad_src, 0);
    l.transposed = true;
    l.axes[0].output_pad = chosen(o->output_pad_h, o->output_pad);
    l.axes[1].output_pad = chosen(o->output_pad_w, o->output_pad);
    l.name = name;
    return convolve(b, x, &l);
}

/* ---- weights of the caller's ---- */

/** Takes kernel and channels from the weight; false: an error has been recorded. */
static bool take_weight(mixt_builder *b, layer *l, mixt_value weight, mixt_value bias)
{
    mixt_value values[2] = {weight, bias};
    if (!mixt__builder_ready(b, NULL, values, bias.id ? 2 : 1))
        return false;
    mixt__shape w = b->graph->values[weight.id].shape;
    char text[128];
    if (w.rank != l->count + 2) {
        mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL, "%s with a weight %s: needs %d dimensions", name_of(l),
                            mixt__shape_text(&w, text, sizeof text), l->count + 2);
        return false;
    }
    for (int i = 0; i < l->count; i++)
        l->axes[i].kernel = w.dims[i + 1];
    l->channels = l->transposed ? w.dims[w.rank - 1] * l->groups : w.dims[0];
    l->weight = weight;
    l->bias = bias;
    mixt__shape z = bias.id ? b->graph->values[bias.id].shape : mixt__vector_shape(l->channels);
    if (z.rank == 1 && z.dims[0] == l->channels)
        return true;
    mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL, "%s to %lld channels with a bias %s", name_of(l),
                        (long long)l->channels, mixt__shape_text(&z, text, sizeof text));
    return false;
}

MIXT_PLAY(mixt_conv2d_of_with,
          out[0] = mixt_conv2d_of_with(b, in[0], in[1], c->in_count > 2 ? in[2] : (mixt_value){0}, options))

mixt_value mixt_conv2d_of_with(mixt_builder *b, mixt_value x, mixt_value weight, mixt_value bias,
                               const mixt_conv2d_options *given)
{
    mixt_conv2d_options own = MIXT_OPTIONS(mixt_conv2d_options), *o = &own;
    if (!mixt__builder_options(b, NULL, mixt_conv2d_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_conv2d_of_with, .in = {x, weight, bias}, .in_count = bias.id ? 3 : 2, .options = &own,
                .options_size = sizeof own);
    layer l = LAYER_OF(o, mixt__op_conv2d, 0);
    return take_weight(b, &l, weight, bias) ? convolve(b, x, &l) : (mixt_value){0};
}

MIXT_PLAY(mixt_conv_transpose2d_of_with,
          out[0] = mixt_conv_transpose2d_of_with(b, in[0], in[1], c->in_count > 2 ? in[2] : (mixt_value){0}, options))

mixt_value mixt_conv_transpose2d_of_with(mixt_builder *b, mixt_value x, mixt_value weight, mixt_value bias,
                                         const mixt_conv_transpose2d_options *given)
{
    mixt_conv_transpose2d_options own = MIXT_OPTIONS(mixt_conv_transpose2d_options), *o = &own;
    if (!mixt__builder_options(b, NULL, mixt_conv_transpose2d_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_conv_transpose2d_of_with, .in = {x, weight, bias}, .in_count = bias.id ? 3 : 2, .options = &own,
                .options_size = sizeof own);
    layer l = LAYER_OF(o, mixt__op_conv2d_grad_src, 0);
    l.transposed = true;
    l.axes[0].output_pad = chosen(o->output_pad_h, o->output_pad);
    l.axes[1].output_pad = chosen(o->output_pad_w, o->output_pad);
    return take_weight(b, &l, weight, bias) ? convolve(b, x, &l) : (mixt_value){0};
}

/* ---- volumes ---- */

static layer volume_of(const mixt_conv3d_options *o)
{
    layer l = LAYER_OF(o, mixt__op_conv3d, 1);
    l.axes[0] = (wish){.kernel = chosen(o->kernel_d, o->kernel),
                       .stride = chosen(o->stride_d, o->stride),
                       .dilation = chosen(o->dilation_d, o->dilation),
                       .pad = chosen(o->pad_front, o->pad_d),
                       .pad_end = chosen(o->pad_back, o->pad_d)};
    return l;
}

MIXT_PLAY(mixt_conv3d_with, out[0] = mixt_conv3d_with(b, c->name, in[0], options))

mixt_value mixt_conv3d_with(mixt_builder *b, const char *name, mixt_value x, const mixt_conv3d_options *given)
{
    mixt_conv3d_options own = MIXT_OPTIONS(mixt_conv3d_options);
    if (!mixt__builder_options(b, name, mixt_conv3d_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_conv3d_with, .name = name, .in = {x}, .in_count = 1, .options = &own,
                .options_size = sizeof own);
    layer l = volume_of(&own);
    l.name = name;
    return convolve(b, x, &l);
}

MIXT_PLAY(mixt_conv3d_of_with,
          out[0] = mixt_conv3d_of_with(b, in[0], in[1], c->in_count > 2 ? in[2] : (mixt_value){0}, options))

mixt_value mixt_conv3d_of_with(mixt_builder *b, mixt_value x, mixt_value weight, mixt_value bias,
                               const mixt_conv3d_options *given)
{
    mixt_conv3d_options own = MIXT_OPTIONS(mixt_conv3d_options);
    if (!mixt__builder_options(b, NULL, mixt_conv3d_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_conv3d_of_with, .in = {x, weight, bias}, .in_count = bias.id ? 3 : 2, .options = &own,
                .options_size = sizeof own);
    layer l = volume_of(&own);
    return take_weight(b, &l, weight, bias) ? convolve(b, x, &l) : (mixt_value){0};
}

/* ---- sequences ---- */

MIXT_PLAY(mixt_conv1d_with, out[0] = mixt_conv1d_with(b, c->name, in[0], options))

mixt_value mixt_conv1d_with(mixt_builder *b, const char *name, mixt_value x, const mixt_conv1d_options *given)
{
    mixt_conv1d_options own = MIXT_OPTIONS(mixt_conv1d_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_conv1d_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_conv1d_with, .name = name, .in = {x}, .in_count = 1, .options = &own,
                .options_size = sizeof own);
    if (!mixt__builder_ready(b, name, &x, 1))
        return (mixt_value){0};
    mixt__shape s = b->graph->values[x.id].shape;
    if (s.rank != 3) {
        char text[128];
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, name, "conv1d needs (N, T, C), got %s",
                                   mixt__shape_text(&s, text, sizeof text));
    }
    layer l = {.op = &mixt__op_conv2d,
               .count = 2,
               .channels = o->channels,
               .groups = o->groups,
               .no_bias = o->no_bias,
               .init = o->init,
               .name = name};
    l.axes[0] = (wish){.kernel = 1, .stride = 1, .dilation = 1};
    l.axes[1] = (wish){.kernel = o->kernel,
                       .stride = o->stride,
                       .dilation = o->dilation,
                       .pad = chosen(o->pad_begin, o->pad),
                       .pad_end = chosen(o->pad_end, o->pad)};
    x = convolve(b, mixt_reshape(b, x, 4, (int64_t[]){s.dims[0], 1, s.dims[1], s.dims[2]}), &l);
    return mixt_reshape(b, x, 3, (int64_t[]){s.dims[0], mixt_value_dim(b, x, 2), o->channels});
}
