/* A policy made in memory, rule by rule, and changed between two steps. */
#include <mixt/mixt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    mixt_policy *policy;
    mixt_policy_named("bf16", &policy);
    mixt_policy_add(policy,
                    &(mixt_policy_rule){.layer = "head*", .forward = MIXT_DTYPE_FP32}); // the last match decides

    mixt_context *ctx = mixt_open();
    mixt_model *model = mixt_model_new(ctx, net, MIXT_LOSS_CROSS_ENTROPY);
    mixt_trainer *t = mixt_trainer_new(model, .policy = policy, .lr = 2e-3f, .batch = 64);
    mixt_data *data = mixt_data_new(ctx, "digits:", .samples = 6400);

    double first = train(t, data, 60);
    int right = format_of(t, "body.weight") == MIXT_DTYPE_BF16 && format_of(t, "head.weight") == MIXT_DTYPE_FP32;

    mixt_policy_set_default(policy, MIXT_DTYPE_FP16, MIXT_DTYPE_NONE); // loss scaling begins with it
    mixt_policy_remove(policy, 0);
    mixt_trainer_set_policy(t, policy); // weights, moments, counters and the place in the data stay
    double second = train(t, data, 60);
    right &= format_of(t, "body.weight") == MIXT_DTYPE_FP16 && format_of(t, "head.weight") == MIXT_DTYPE_FP16;

    mixt_trainer_set_precision(t, "fp32"); // by name
    double third = train(t, data, 60);
    right &= format_of(t, "body.weight") == MIXT_DTYPE_FP32;

    mixt_policy_set_made_by(policy, "examples/custom_policy.c");
    mixt_policy_add(policy,
                    &(mixt_policy_rule){.op = "matmul", .forward = MIXT_DTYPE_BF16, .backward = MIXT_DTYPE_FP32});
    char *yaml;
    if (mixt_policy_print(policy, &yaml) == MIXT_OK)
        printf("\n%s", yaml); // what a file would hold
    free(yaml);

    if (*mixt_error(ctx))
        fprintf(stderr, "%s\n", mixt_error(ctx));
    right &= !*mixt_error(ctx) && second < 0.7 * first && third < second;
    mixt_close(ctx);
    mixt_policy_free(policy);
    return !right;
}
