/* The mixed-precision step, part by part, in FP16: scale, backward, unscale, check, clip, update, and the scale itself.
 *
 * mixt_trainer_step does all of this; here is what it does.
 */
#include <mixt/mixt.h>

#include <stdio.h>

enum { BATCH = 64, STEPS = 200, PIXELS = 28 * 28 };

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "fc1", mixt_flatten(b, x), .features = 128));
    return mixt_linear(b, "fc2", x, .features = 10);
}

/** Doubles after 50 clean steps, halves after an overflow. */
typedef struct loss_scale {
    float value;
    int clean, skipped;
} loss_scale;

static void loss_scale_update(loss_scale *scale, bool finite)
{
    scale->clean = finite ? scale->clean + 1 : 0;
    scale->skipped += !finite;
    if (!finite)
        scale->value *= 0.5f;
    else if (scale->clean % 50 == 0)
        scale->value *= 2;
}

static mixt_status step(mixt_trainer *t, mixt_data *data, loss_scale *scale, float lr, double *loss, double *norm)
{
    static float input[BATCH * PIXELS];
    static int32_t label[BATCH];
    bool finite;
    mixt_status status = mixt_data_next(data, BATCH, input, label);
    if (status == MIXT_OK) // forward in FP16, loss in FP32, backward in FP16 from a gradient of `scale` instead of 1
        status = mixt_trainer_backward(t, input, label, scale->value, loss);
    if (status == MIXT_OK) // gradients are FP32 from here on
        status = mixt_trainer_unscale(t, scale->value, &finite);
    if (status != MIXT_OK)
        return status;
    if (!finite)
        status = mixt_trainer_discard(t); // weights, moments and step count stay as they are
    else if ((status = mixt_trainer_clip(t, 1.0f, norm)) == MIXT_OK)
        status = mixt_trainer_apply(t, lr); // updates the FP32 masters and their FP16 copies
    loss_scale_update(scale, finite);
    return status;
}

int main(void)
{
    mixt_context *ctx = mixt_open();
    mixt_model *model = mixt_model_new(ctx, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(model, .precision = "fp16", .optimizer = "adamw", .batch = BATCH);
    mixt_data *train = mixt_data_new(ctx, "digits:", .samples = 6400),
              *val = mixt_data_new(ctx, "digits:", .split = "val");
    mixt_trainer_compile(t, train);

    loss_scale scale = {.value = 16777216.0f}; // too high on purpose: the first steps overflow and are skipped
    double loss = 0, norm = 0;
    mixt_status status = MIXT_OK;
    for (int i = 1; i <= STEPS && status == MIXT_OK; i++) {
        float before = scale.value;
        status = step(t, train, &scale, 2e-3f, &loss, &norm);
        if (scale.value < before)
            printf("step %3d  overflow: skipped, scale %g -> %g\n", i, before, scale.value);
        else if (i % 40 == 0)
            printf("step %3d  loss %.4f  norm %.3f  scale %g\n", i, loss, norm, scale.value);
    }

    mixt_evaluation result = {0};
    mixt_trainer_evaluate(t, val, &result);
    printf("%.1f%% right, %d steps skipped\n", 100 * result.accuracy, scale.skipped);
    if (*mixt_error(ctx))
        fprintf(stderr, "%s\n", mixt_error(ctx));
    mixt_close(ctx);
    return result.accuracy > 0.8 && scale.skipped > 0 && scale.skipped < 20 ? 0 : 1;
}
