/* A layer of one's own: RMS normalisation with a learned gain, composed from the builder's ops. Its gradient, formats
 * and fusion follow by themselves.
 */
#include <mixt/mixt.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/** (…, C) → (…, C): x / sqrt(mean(x²) + 1e-6) · gain. Parameter name.gain (C). */
static mixt_value rms_norm(mixt_builder *b, const char *name, mixt_value x)
{
    mixt_scope_push(b, name);
    mixt_value gain =
        mixt_param(b, "gain", .rank = 1, .dims = {mixt_value_dim(b, x, -1)}, .ones = true, .no_decay = true);
    mixt_value power = mixt_mean(b, mixt_square(b, x), .axes = {-1}, .axis_count = 1, .keep_dims = true);
    x = mixt_div(b, x, mixt_sqrt(b, mixt_affine(b, power, 1, 1e-6f)));
    x = mixt_mul(b, x, gain);
    mixt_scope_pop(b);
    return x;
}

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_linear(b, "fc1", mixt_flatten(b, x), .features = 64);
    x = mixt_relu(b, rms_norm(b, "norm", x));
    return mixt_linear(b, "fc2", x, .features = 10);
}

/** How far the gain has moved from one, on average; 0 when it is not there. */
static double gain_moved(mixt_trainer *t)
{
    float gain[64];
    double sum = 0;
    mixt_param_info info;
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++)
        if (mixt_trainer_param(t, i, &info) == MIXT_OK && !strcmp(info.name, "norm.gain") && info.count == 64 &&
            mixt_trainer_param_get(t, i, gain) == MIXT_OK)
            for (int k = 0; k < 64; k++)
                sum += fabs(gain[k] - 1.0) / 64;
    return sum;
}

int main(void)
{
    mixt_context *ctx = mixt_open();
    mixt_model *model = mixt_model_new(ctx, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(model, .precision = "bf16", .lr = 3e-3f, .batch = 64);
    mixt_data *train = mixt_data_new(ctx, "digits:", .samples = 6400),
              *val = mixt_data_new(ctx, "digits:", .split = "val");
    while (mixt_trainer_epoch(t) < 3 && mixt_trainer_step(t, train, NULL) == MIXT_OK)
        ;
    mixt_evaluation result = {0};
    mixt_trainer_evaluate(t, val, &result);
    double moved = gain_moved(t);
    printf("%.1f%% right with RMS normalisation; its gain moved by %.3f on average\n", 100 * result.accuracy, moved);
    if (*mixt_error(ctx))
        fprintf(stderr, "%s\n", mixt_error(ctx));
    mixt_close(ctx);
    return result.accuracy > 0.85 && moved > 0.001 ? 0 : 1;
}
