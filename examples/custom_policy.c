/* A precision policy by layer, from a file, and a change of precision between two steps. */
#define _POSIX_C_SOURCE 200809L // mkstemp, also with -std=c11
#include <mixt/mixt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char policy[] = "default: bf16\n"
                             "rules:              # the last rule that matches decides\n"
                             "  - layer: \"head*\"   # the output layer alone in full precision\n"
                             "    precision: fp32\n";

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "body", mixt_flatten(b, x), .features = 128));
    return mixt_linear(b, "head", x, .features = 10);
}

/** Format in which a weight is read by the model's products. */
static mixt_dtype format_of(mixt_trainer *t, const char *name)
{
    mixt_param_info info;
    for (int64_t i = 0; i < mixt_trainer_param_count(t); i++)
        if (mixt_trainer_param(t, i, &info) == MIXT_OK && !strcmp(info.name, name))
            return info.copy == MIXT_DTYPE_NONE ? MIXT_DTYPE_FP32 : info.copy; // no copy: the master itself
    return MIXT_DTYPE_NONE;
}

/** Trains for `steps` updates and says what ran; the mean loss. */
static double train(mixt_trainer *t, mixt_data *data, int steps)
{
    double loss = 0;
    for (int i = 0; i < steps; i++) {
        mixt_step step = {0};
        if (mixt_trainer_step(t, data, &step) != MIXT_OK)
            return 1e9;
        loss += step.loss / steps;
    }
    printf("body %s, head %s: mean loss of %d steps %.4f\n", mixt_dtype_name(format_of(t, "body.weight")),
           mixt_dtype_name(format_of(t, "head.weight")), steps, loss);
    return loss;
}

int main(void)
{
    char path[] = "/tmp/mixt-policy-XXXXXX";
    int file = mkstemp(path);
    if (file < 0 || write(file, policy, sizeof policy - 1) != (ssize_t)sizeof policy - 1 || close(file)) {
        perror(path);
        return 1;
    }
    mixt_context *ctx = mixt_open();
    mixt_model *model = mixt_model_new(ctx, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(model, .precision = path, .lr = 2e-3f, .batch = 64);
    mixt_data *data = mixt_data_new(ctx, "digits:", .samples = 6400);

    double first = train(t, data, 60);
    int right = format_of(t, "body.weight") == MIXT_DTYPE_BF16 && format_of(t, "head.weight") == MIXT_DTYPE_FP32;
    mixt_trainer_set_precision(t, "fp16"); // weights, moments and counters stay
    double second = train(t, data, 60);
    right &= format_of(t, "body.weight") == MIXT_DTYPE_FP16 && format_of(t, "head.weight") == MIXT_DTYPE_FP16;
    mixt_trainer_set_precision(t, "fp32");
    double third = train(t, data, 60);
    right &= format_of(t, "body.weight") == MIXT_DTYPE_FP32;

    if (*mixt_error(ctx))
        fprintf(stderr, "%s\n", mixt_error(ctx));
    right &= !*mixt_error(ctx) && second < 0.7 * first && third < second;
    mixt_close(ctx);
    unlink(path);
    return !right;
}
