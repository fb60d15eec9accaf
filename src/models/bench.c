/* The fixed models of `mixt bench`. */
#include "models/bench.h"

#include <string.h>

/** 6 for each weight and token (forward 2, backward 4), positions not counted, and the products of attention:
 * 12·layers·width·seq a token, of which causal attention needs half. */
static double transformer_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    const mixt__model_sizes *s = &bench->sizes;
    double width = (double)s->width, layers = (double)s->layers;
    double weights = (double)s->vocab * width + layers * (12 * width * width + 13 * width) + 2 * width;
    double scores = (strcmp(bench->model, "gpt") ? 12 : 6) * layers * width * (double)seq;
    return (double)(batch * seq) * (6 * weights + scores);
}

/** As above; queries and the output of attention take width² weights each, keys and values a share of that. */
static double llama_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    const mixt__model_sizes *s = &bench->sizes;
    double width = (double)s->width, layers = (double)s->layers, inner = (double)s->inner;
    double shared = (double)s->kv_heads / (double)s->heads;
    double block = (2 + 2 * shared) * width * width + 3 * inner * width + 2 * width;
    double weights = (double)s->vocab * width + layers * block + width;
    return (double)(batch * seq) * (6 * weights + 6 * layers * width * (double)seq);
}

static double resnet_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    (void)bench;
    (void)seq;
    return (double)batch * 3 * 2 * 4.09e9; // multiply-adds of ResNet-50 at 224 × 224
}

static double c3d_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    (void)bench;
    (void)seq;
    return (double)batch * 3 * 2 * 38.5e9; // multiply-adds of 16 frames of 112 × 112
}

static double convnet_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    (void)bench;
    (void)seq;
    return (double)batch * 6 * (28 * 28 * 9 * 32 + 14 * 14 * 9 * 32 * 64 + 3136 * 10);
}

static double mlp_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    (void)bench;
    (void)seq;
    return (double)batch * 6 * (784 * 512 + 512 * 512 + 512 * 10 + 2 * 512); // weights and hidden biases
}

/** `gates`: rows of weights for each unit of a layer. */
static double recurrent_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq, double gates)
{
    double width = (double)bench->sizes.width;
    return (double)(batch * seq) * 6 *
           ((double)bench->sizes.layers * 2 * gates * width * width + width * (double)bench->sizes.vocab);
}

static double lstm_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    return recurrent_flops(bench, batch, seq, 4);
}

static double gru_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    return recurrent_flops(bench, batch, seq, 3);
}

static double rnn_flops(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    return recurrent_flops(bench, batch, seq, 1);
}

#define ADAMW .optimizer = "adamw", .lr = 3e-4f, .beta2 = 0.95f, .weight_decay = 0.1f

const mixt__bench_model mixt__bench_models[] = {
    {
        .name = "gpt2",
        .summary = "GPT-2 124M",
        .model = "gpt",
        .sizes = {.layers = 12, .width = 768, .heads = 12, .vocab = 50304, .seq = 1024},
        .data = "random:tokens",
        .classes = 50304,
        .batch = 32,
        .seq = 1024,
        .recipe = {ADAMW, .clip = 1.0f},
        .flops = transformer_flops,
    },
    {
        .name = "llama",
        .summary = "Llama of GPT-2's size, 4 heads of keys",
        .model = "llama",
        .sizes = {.layers = 12,
                  .width = 768,
                  .heads = 12,
                  .kv_heads = 4,
                  .inner = 2048,
                  .vocab = 50304,
                  .seq = 1024,
                  .tied = true},
        .data = "random:tokens",
        .classes = 50304,
        .batch = 32,
        .seq = 1024,
        .recipe = {ADAMW, .clip = 1.0f},
        .flops = llama_flops,
    },
    {
        .name = "gpt",
        .summary = "GPT, 6 layers of 384, bytes",
        .model = "gpt",
        .sizes = {.layers = 6, .width = 384, .heads = 6, .vocab = 256, .seq = 1024},
        .data = "random:tokens",
        .classes = 256,
        .batch = 8,
        .seq = 256,
        .recipe = {ADAMW, .clip = 1.0f},
        .flops = transformer_flops,
    },
    {
        .name = "bert",
        .summary = "BERT-Base",
        .model = "bert",
        .sizes = {.layers = 12, .width = 768, .heads = 12, .vocab = 30528, .seq = 512},
        .data = "random:tokens",
        .classes = 30528,
        .batch = 256,
        .seq = 128,
        .recipe = {ADAMW, .clip = 1.0f},
        .flops = transformer_flops,
    },
    {
        .name = "resnet50",
        .summary = "ResNet-50, 224 x 224",
        .model = "resnet",
        .sizes = {.depth = 50, .classes = 1000},
        .data = "random:224x224x3",
        .classes = 1000,
        .batch = 256,
        .recipe = {.optimizer = "momentum", .lr = 0.1f, .weight_decay = 1e-4f},
        .flops = resnet_flops,
    },
    {
        .name = "c3d",
        .summary = "C3D, 16 frames of 112 x 112",
        .model = "c3d",
        .sizes = {.classes = 101},
        .data = "random:16x112x112x3",
        .classes = 101,
        .batch = 32,
        .recipe = {.optimizer = "momentum", .lr = 0.001f, .weight_decay = 1e-4f},
        .flops = c3d_flops,
    },
    {
        .name = "convnet",
        .summary = "conv net 1-32-64, 28 x 28",
        .model = "convnet",
        .sizes = {.channels = {32, 64}, .channel_count = 2, .classes = 10},
        .data = "random:28x28x1",
        .classes = 10,
        .batch = 64,
        .recipe = {ADAMW},
        .flops = convnet_flops,
    },
    {
        .name = "mlp",
        .summary = "perceptron 784-512-512-10",
        .model = "mlp",
        .sizes = {.hidden = {512, 512}, .hidden_count = 2, .classes = 10},
        .data = "random:784",
        .classes = 10,
        .batch = 128,
        .recipe = {ADAMW},
        .flops = mlp_flops,
    },
    {
        .name = "lstm",
        .summary = "LSTM, 2 layers of 512, bytes",
        .model = "lstm",
        .sizes = {.layers = 2, .width = 512, .vocab = 256},
        .data = "random:tokens",
        .classes = 256,
        .batch = 64,
        .seq = 256,
        .recipe = {ADAMW, .clip = 1.0f},
        .flops = lstm_flops,
    },
    {
        .name = "gru",
        .summary = "GRU, 2 layers of 512, bytes",
        .model = "gru",
        .sizes = {.layers = 2, .width = 512, .vocab = 256},
        .data = "random:tokens",
        .classes = 256,
        .batch = 64,
        .seq = 256,
        .recipe = {ADAMW, .clip = 1.0f},
        .flops = gru_flops,
    },
    {
        .name = "rnn",
        .summary = "plain recurrent net, 2 layers of 512, bytes",
        .model = "rnn",
        .sizes = {.layers = 2, .width = 512, .vocab = 256},
        .data = "random:tokens",
        .classes = 256,
        .batch = 64,
        .seq = 256,
        .recipe = {ADAMW, .clip = 1.0f},
        .flops = rnn_flops,
    },
    {.name = NULL},
};

const mixt__bench_model *mixt__bench_find(const char *name)
{
    for (const mixt__bench_model *bench = mixt__bench_models; bench->name; bench++)
        if (!strcmp(bench->name, name))
            return bench;
    return NULL;
}

mixt_trainer_options mixt__bench_options(const mixt__bench_model *bench)
{
    const mixt__bench_recipe *r = &bench->recipe;
    return MIXT_OPTIONS(mixt_trainer_options, .optimizer = r->optimizer, .lr = r->lr, .beta2 = r->beta2,
                        .weight_decay = r->weight_decay, .settings.clip = r->clip);
}

int64_t mixt__bench_items(const mixt__bench_model *bench, int64_t batch, int64_t seq)
{
    return bench->seq ? batch * seq : batch;
}
