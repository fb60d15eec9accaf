// The same from C++17: a model built by calls, trained on arrays, a parameter read where it lies, predictions.
#include <mixt/mixt.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static void ok(mixt_status status)
{
    if (status == MIXT_OK)
        return;
    std::fprintf(stderr, "%s\n", mixt_error_text());
    std::exit(1);
}

static void need(bool so, const char *what)
{
    if (so)
        return;
    std::fprintf(stderr, "FAILED: %s\n", what);
    std::exit(1);
}

static mixt_value linear(mixt_builder *b, const char *name, mixt_value x, int64_t features)
{
    mixt_linear_options o;
    mixt_linear_options_default(&o, sizeof o);
    o.features = features;
    return mixt_linear_with(b, name, x, &o);
}

int main()
{
    mixt_context *context;
    mixt_builder *b;
    mixt_model *model;
    mixt_trainer *trainer;
    const int64_t sample[] = {4};
    ok(mixt_open_with(nullptr, &context));
    ok(mixt_builder_new(context, &b));
    mixt_value x = mixt_builder_input(b, nullptr, MIXT_DTYPE_FP32, 1, sample);
    x = mixt_dropout(b, mixt_relu(b, linear(b, "fc1", x, 16)), 0.1f);
    x = linear(b, "fc2", x, 2);
    ok(mixt_builder_finish(b, x, MIXT_LOSS_CROSS_ENTROPY, nullptr, &model));

    std::vector<float> inputs(256 * 4);
    std::vector<int32_t> labels(256);
    std::srand(1);
    for (int i = 0; i < 256; i++) {
        float sum = 0;
        for (int k = 0; k < 4; k++)
            sum += inputs[i * 4 + k] = static_cast<float>(std::rand()) / static_cast<float>(RAND_MAX) * 2 - 1;
        labels[i] = sum > 0;
    }
    mixt_tensor *in, *target, *weight, *again, *out;
    mixt_data *data;
    const int64_t rows[] = {256, 4};
    ok(mixt_tensor_over(inputs.data(), MIXT_DTYPE_FP32, 2, rows, &in));
    ok(mixt_tensor_over(labels.data(), MIXT_DTYPE_INT32, 1, rows, &target));
    ok(mixt_data_from_tensors(in, target, nullptr, &data));
    mixt_trainer_options o;
    mixt_trainer_options_default(&o, sizeof o);
    o.batch = 32;
    o.lr = 0.01f;
    ok(mixt_trainer_new_with(model, &o, &trainer));
    for (int i = 0; i < 200; i++)
        ok(mixt_trainer_step(trainer, data, nullptr));

    mixt_dlpack *managed;
    ok(mixt_trainer_param_tensor(trainer, 0, &weight));
    ok(mixt_tensor_to_dlpack(weight, &managed));
    need(managed->dl_tensor.data == mixt_tensor_data(weight), "DLPack shows another place");
    const float *shown = static_cast<const float *>(managed->dl_tensor.data);
    std::vector<float> copy(64);
    ok(mixt_trainer_param_get(trainer, 0, copy.data()));
    need(copy[0] == shown[0] && copy[63] == shown[63], "the tensor has other numbers");
    ok(mixt_trainer_step(trainer, data, nullptr));
    need(copy[0] != shown[0], "an update is not seen: it is a copy");
    ok(mixt_tensor_from_dlpack(managed, &again)); // and in again: still the same place
    need(mixt_tensor_data(again) == shown && mixt_tensor_dim(again, 0) == 16, "in and out again is another place");
    mixt_tensor_free(weight);
    mixt_tensor_free(again); // calls the deleter

    int right = 0;
    ok(mixt_trainer_predict_tensor(trainer, in, &out));
    const float *logits = static_cast<const float *>(mixt_tensor_data(out));
    for (int i = 0; i < 256; i++)
        right += (logits[2 * i + 1] > logits[2 * i]) == (labels[i] == 1);
    need(right > 240, "it has not learned");
    mixt_tensor_free(in);
    mixt_tensor_free(target);
    mixt_tensor_free(out);
    mixt_close(context);
    mixt_data_close(data);
    std::printf("%d of 256 right\n", right);
}
