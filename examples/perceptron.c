/* A 100-50-10 perceptron, trained by SGD with momentum on data that this program makes itself. */
#include <mixt/mixt.h>

#include <stdio.h>

enum { INPUTS = 100, HIDDEN = 50, CLASSES = 10, BATCH = 64, STEPS = 300 };

static mixt_value perceptron(mixt_builder *b, mixt_value x) // x: (N, 100)
{
    x = mixt_relu(b, mixt_linear(b, "hidden", x, .features = HIDDEN));
    return mixt_linear(b, "output", x, .features = CLASSES);
}

/** Uniform in [-1, 1). */
static float noise(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)(int32_t)state / 2147483648.0f;
}

/** Each class is a point in 100 dimensions; a sample is its point in loud noise. */
static void make_batch(float centre[CLASSES][INPUTS], float *input, int32_t *label)
{
    for (int n = 0; n < BATCH; n++) {
        label[n] = n % CLASSES;
        for (int i = 0; i < INPUTS; i++)
            input[n * INPUTS + i] = centre[label[n]][i] + 2 * noise();
    }
}

int main(void)
{
    static float centre[CLASSES][INPUTS], input[BATCH * INPUTS];
    int32_t label[BATCH];
    for (int c = 0; c < CLASSES; c++)
        for (int i = 0; i < INPUTS; i++)
            centre[c][i] = noise();

    mixt_context *ctx = mixt_open();
    mixt_model *net = mixt_model_new(ctx, perceptron, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(net, .precision = "bf16", .optimizer = "momentum", .momentum = 0.9f, .lr = 0.02f,
                                       .batch = BATCH);
    mixt_trainer_compile_for(
        t, &(mixt_sample_shape){.input_dtype = MIXT_DTYPE_FP32, .input_rank = 1, .input_dims = {INPUTS}, .targets = 1});

    double correct = 0;
    for (int i = 1; i <= STEPS; i++) {
        mixt_step step = {0};
        make_batch(centre, input, label);
        if (mixt_trainer_step_on(t, input, label, &step) != MIXT_OK)
            break;
        if (i % 50 == 0)
            printf("step %3d  loss %.4f  accuracy %5.1f%%\n", i, step.loss, 100 * step.accuracy);
        if (i > STEPS - 50) // every batch is new: its accuracy, measured before the update, is an honest test
            correct += step.accuracy / 50;
    }
    printf("last 50 steps: %.1f%% right\n", 100 * correct);
    if (*mixt_error(ctx))
        fprintf(stderr, "%s\n", mixt_error(ctx));
    mixt_close(ctx);
    return correct > 0.95 ? 0 : 1;
}
