/* A convolutional net in a few lines, trained on the built-in digits in BF16 and saved. Usage: digits
 * [FILE.safetensors] */
#include <mixt/mixt.h>

#include <stdio.h>

static mixt_value digits(mixt_builder *b, mixt_value x) // x: (N, 28, 28, 1)
{
    x = mixt_relu(b, mixt_conv2d(b, "conv1", x, .channels = 16, .kernel = 3, .pad = 1));
    x = mixt_max_pool(b, x, .size = 2);
    x = mixt_relu(b, mixt_conv2d(b, "conv2", x, .channels = 32, .kernel = 3, .pad = 1));
    x = mixt_max_pool(b, x, .size = 2);
    return mixt_linear(b, "fc", mixt_flatten(b, x), .features = 10);
}

int main(int argc, char **argv)
{
    mixt_context *ctx = mixt_open();
    mixt_model *net = mixt_model_new(ctx, digits, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(net, .precision = "bf16", .optimizer = "adamw", .lr = 3e-3f, .batch = 64);
    mixt_data *train = mixt_data_new(ctx, "digits:", .samples = 6400),
              *val = mixt_data_new(ctx, "digits:", .split = "val");

    mixt_step step;
    while (mixt_trainer_epoch(t) < 2 && mixt_trainer_step(t, train, &step) == MIXT_OK)
        if (step.step % 50 == 0)
            printf("epoch %lld  step %3lld  loss %.4f\n", (long long)step.epoch, (long long)step.step, step.loss);

    mixt_evaluation result = {0};
    mixt_trainer_evaluate(t, val, &result);
    printf("%.1f%% of %lld unseen digits right\n", 100 * result.accuracy, (long long)result.count);
    if (argc > 1)
        mixt_trainer_save(t, argv[1]);
    int failed = *mixt_error(ctx) || !(result.accuracy > 0.9);
    if (*mixt_error(ctx))
        fprintf(stderr, "%s\n", mixt_error(ctx));
    mixt_close(ctx);
    return failed;
}
