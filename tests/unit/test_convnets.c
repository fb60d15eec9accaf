/* Small nets of the families that need grouped, dilated and transposed convolution train on the digits: the loss falls,
 * BF16 stays close to FP32, and a model that is built by calls gives the bits of its function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixt/mixt.h>

#include <math.h>
#include <string.h>

enum { SIDE = 28, BATCH = 32, UPDATES = 60 };

/** Expansion, depthwise convolution, squeeze and excitation, projection. */
static mixt_value inverted(mixt_builder *b, const char *name, mixt_value x, int64_t wide, int64_t channels,
                           int64_t stride)
{
    mixt_scope_push(b, name);
    int64_t given = mixt_value_dim(b, x, 3);
    mixt_value y = mixt_conv2d(b, "expand", x, .channels = wide, .kernel = 1, .no_bias = true);
    y = mixt_hard_swish(b, mixt_batch_norm(b, "bn1", y));
    y = mixt_conv2d(b, "depthwise", y, .channels = wide, .kernel = 3, .stride = stride, .pad = 1, .groups = wide,
                    .no_bias = true);
    y = mixt_hard_swish(b, mixt_batch_norm(b, "bn2", y));
    mixt_value gate = mixt_linear(b, "squeeze", mixt_global_avg_pool(b, y), .features = wide / 4);
    gate = mixt_hard_sigmoid(b, mixt_linear(b, "excite", mixt_relu(b, gate), .features = wide), 1.0f / 6, 0.5f);
    y = mixt_mul(b, y, mixt_reshape(b, gate, 4, (int64_t[]){-1, 1, 1, wide}));
    y = mixt_batch_norm(b, "bn3", mixt_conv2d(b, "project", y, .channels = channels, .kernel = 1, .no_bias = true));
    mixt_scope_pop(b);
    return stride == 1 && given == channels ? mixt_add(b, x, y) : y;
}

static mixt_value mobile(mixt_builder *b, mixt_value x) // (N, 28, 28, 1)
{
    x = mixt_conv2d(b, "stem", x, .channels = 8, .kernel = 3, .stride = 2, .pad = 1, .no_bias = true);
    x = mixt_hard_swish(b, mixt_batch_norm(b, "bn", x));
    x = inverted(b, "block1", x, 16, 8, 1);
    x = inverted(b, "block2", x, 32, 16, 2);
    x = mixt_conv2d(b, "wide", x, .channels = 16, .kernel = 3, .dilation = 2, .pad = 2, .groups = 4);
    return mixt_linear(b, "fc", mixt_global_avg_pool(b, mixt_hard_swish(b, x)), .features = 10);
}

/** Down, up by a transposed convolution and by resizing, with what was there before beside it. */
static mixt_value unet(mixt_builder *b, mixt_value x)
{
    mixt_value top = mixt_conv2d(b, "in", x, .channels = 8, .kernel = 3, .pad = 1);
    top = mixt_leaky_relu(b, mixt_group_norm(b, "gn1", top, 4), 0.1f);
    mixt_value middle =
        mixt_conv2d(b, "down1", mixt_max_pool(b, top, .size = 2), .channels = 12, .kernel = 3, .pad = 1);
    middle = mixt_leaky_relu(b, mixt_group_norm(b, "gn2", middle, 4), 0.1f);
    mixt_value y = mixt_conv2d(b, "down2", mixt_max_pool(b, middle, .size = 3, .stride = 2, .ceil = true),
                               .channels = 16, .kernel = 3, .pad = 1);
    y = mixt_conv_transpose2d(b, "up2", mixt_mish(b, y), .channels = 12, .kernel = 2, .stride = 2);
    y = mixt_concat(b, (mixt_value[]){y, middle}, 2, 3);
    y = mixt_mish(b, mixt_conv2d(b, "merge2", y, .channels = 8, .kernel = 3, .pad = 1));
    y = mixt_resize(b, mixt_resize(b, y, 1, SIDE, MIXT_RESIZE_LINEAR, MIXT_RESIZE_HALF_PIXEL, 0), 2, SIDE,
                    MIXT_RESIZE_NEAREST, MIXT_RESIZE_ASYMMETRIC, 0);
    y = mixt_concat(b, (mixt_value[]){y, top}, 2, 3);
    y = mixt_mish(b, mixt_group_norm(b, "gn3", mixt_conv2d(b, "merge1", y, .channels = 8, .kernel = 3, .pad = 1), 2));
    return mixt_linear(b, "fc", mixt_flatten(b, mixt_avg_pool(b, y, .size = 4)), .features = 10);
}

static mixt_model *built(mixt_context *context, mixt_model_fn net)
{
    mixt_builder *b;
    mixt_model *model;
    assert_int_equal(mixt_builder_new(context, &b), MIXT_OK);
    mixt_value x = net(b, mixt_builder_input(b, NULL, MIXT_DTYPE_FP32, 3, (int64_t[]){SIDE, SIDE, 1}));
    if (mixt_builder_finish(b, x, MIXT_LOSS_CROSS_ENTROPY, NULL, &model) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return model;
}

typedef struct course {
    float first, last; // means of the first and the last five losses
    float losses[UPDATES];
} course;

static course train(mixt_model_fn net, float lr, const char *precision, bool by_calls, int updates)
{
    course c = {0};
    mixt_context *context = mixt_open(.device = "cpu", .threads = 2);
    mixt_data *data = mixt_data_new(context, "digits:", .samples = 512, .seed = 3);
    mixt_model *model = by_calls ? built(context, net) : mixt_model_new(context, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t =
        mixt_trainer_new(model, .precision = precision, .batch = BATCH, .optimizer = "adamw", .lr = lr, .seed = 7);
    for (int i = 0; i < updates; i++) {
        mixt_step result;
        if (mixt_trainer_step(t, data, &result) != MIXT_OK)
            fail_msg("%s, update %d: %s", precision, i, mixt_error_text());
        c.losses[i] = (float)result.loss;
        c.first += i < 5 ? c.losses[i] / 5 : 0;
        c.last += i >= updates - 5 ? c.losses[i] / 5 : 0;
    }
    mixt_close(context);
    return c;
}

static void learns(mixt_model_fn net, float lr)
{
    course fp32 = train(net, lr, "fp32", false, UPDATES), bf16 = train(net, lr, "bf16", false, UPDATES);
    print_message("FP32 %.3f to %.3f, BF16 %.3f to %.3f\n", (double)fp32.first, (double)fp32.last, (double)bf16.first,
                  (double)bf16.last);
    assert_true(fp32.last < 0.75f * fp32.first);
    assert_true(bf16.last < 0.75f * bf16.first);
    assert_true(fabsf(bf16.losses[0] - fp32.losses[0]) < 0.02f * fp32.losses[0]); // the same weights, other formats
    assert_true(fabsf(bf16.last - fp32.last) < 0.1f * fp32.first);
    course calls = train(net, lr, "bf16", true, 3);
    assert_memory_equal(calls.losses, bf16.losses, 3 * sizeof(float));
}

static void mobile_net_learns(void **state)
{
    (void)state;
    learns(mobile, 0.01f);
}

static void u_net_learns(void **state)
{
    (void)state;
    learns(unet, 0.003f);
}

/* ---- what is refused ---- */

static mixt_value odd_groups(mixt_builder *b, mixt_value x)
{
    return mixt_conv2d(b, "conv", x, .channels = 8, .kernel = 3, .groups = 3);
}

static mixt_value no_dilation(mixt_builder *b, mixt_value x)
{
    return mixt_conv2d(b, "conv", x, .channels = 8, .kernel = 3, .dilation = -1);
}

static mixt_value far_apart(mixt_builder *b, mixt_value x)
{
    return mixt_conv2d(b, "conv", x, .channels = 8, .kernel = 3, .dilation = 20);
}

static mixt_value large_output_pad(mixt_builder *b, mixt_value x)
{
    return mixt_conv_transpose2d(b, "up", x, .channels = 8, .kernel = 3, .stride = 2, .output_pad = 2);
}

static mixt_value all_padding(mixt_builder *b, mixt_value x)
{
    return mixt_conv_transpose2d(b, "up", x, .channels = 8, .kernel = 1, .pad = 20);
}

static mixt_value wide_reflection(mixt_builder *b, mixt_value x)
{
    return mixt_pad(b, x, 1, SIDE, 0, MIXT_PAD_REFLECT);
}

static mixt_value past_the_end(mixt_builder *b, mixt_value x)
{
    return mixt_slice_step(b, x, 1, 0, 15, 2);
}

static mixt_value uneven_groups(mixt_builder *b, mixt_value x)
{
    return mixt_group_norm(b, "gn", mixt_linear(b, "fc", x, .features = 6), 4);
}

static mixt_value upside_down(mixt_builder *b, mixt_value x)
{
    return mixt_clip(b, x, 1, 0);
}

static void bad_arguments_are_refused(void **state)
{
    static const struct {
        mixt_model_fn net;
        const char *words;
    } cases[] = {{odd_groups, "1 channels to 8 in 3 groups"},
                 {no_dilation, "dilation of -1"},
                 {far_apart, "with dilation 20 does not fit"},
                 {large_output_pad, "output_pad of 2"},
                 {all_padding, "leaves nothing"},
                 {wide_reflection, "pad of 28 and 0 around a dimension of 28"},
                 {past_the_end, "slice of 15 positions from 0 on, each 2 behind"},
                 {uneven_groups, "in 4 groups"},
                 {upside_down, "clip from 1 to 0"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
        mixt_data *data = mixt_data_new(context, "digits:", .samples = 64);
        mixt_model *model = mixt_model_new(context, cases[i].net, MIXT_LOSS_CROSS_ENTROPY);
        mixt_trainer *t = mixt_trainer_new(model, .batch = 8);
        assert_int_not_equal(mixt_trainer_compile(t, data), MIXT_OK);
        if (!strstr(mixt_error_text(), cases[i].words))
            fail_msg("expected \"%s\", got \"%s\"", cases[i].words, mixt_error_text());
        mixt_close(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mobile_net_learns),
        cmocka_unit_test(u_net_learns),
        cmocka_unit_test(bad_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
