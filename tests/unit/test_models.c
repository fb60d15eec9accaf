/* The model zoo: parameter counts against PyTorch's, every model through all passes in each format, sizes that cannot
 * be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "models/bench.h"
#include "passes/passes.h"

#include <stdio.h>
#include <string.h>

static mixt_data_info images(int64_t h, int64_t w, int64_t c, int64_t classes)
{
    mixt_data_info info = {
        .input_dtype = MIXT_DTYPE_FP32, .input_rank = 3, .input_dims = {h, w, c}, .classes = classes};
    info.target = MIXT_TARGET_CLASS;
    info.target_dtype = MIXT_DTYPE_INT32;
    info.target_elements = 1;
    return info;
}

static mixt_data_info clips(int64_t frames, int64_t h, int64_t w, int64_t c, int64_t classes)
{
    mixt_data_info info = images(h, w, c, classes);
    info.input_rank = 4;
    memcpy(info.input_dims, (int64_t[]){frames, h, w, c}, 4 * sizeof(int64_t));
    return info;
}

static mixt_data_info rows(int64_t features, int64_t classes)
{
    mixt_data_info info = images(1, 1, 1, classes);
    info.input_rank = 1;
    info.input_dims[0] = features;
    return info;
}

static mixt_data_info tokens(int64_t seq, int64_t vocab)
{
    mixt_data_info info = {.input_dtype = MIXT_DTYPE_INT32, .input_rank = 1, .input_dims = {seq}, .classes = vocab};
    info.target = MIXT_TARGET_TOKENS;
    info.target_dtype = MIXT_DTYPE_INT32;
    info.target_elements = seq;
    return info;
}

static mixt__batch_spec batch_of(const mixt_data_info *info, int64_t batch)
{
    mixt__batch_spec spec = {.input_dtype = info->input_dtype, .target_dtype = info->target_dtype};
    spec.input = (mixt__shape){info->input_rank + 1, {batch}};
    memcpy(spec.input.dims + 1, info->input_dims, (size_t)info->input_rank * sizeof(int64_t));
    spec.target = info->target == MIXT_TARGET_CLASS ? (mixt__shape){1, {batch}}
                                                    : (mixt__shape){2, {batch, info->target_elements}};
    return spec;
}

static mixt__graph *build(const char *name, const mixt_data_info *info, mixt__model_sizes sizes, bool training)
{
    mixt__model model;
    mixt__graph *graph = NULL;
    mixt__batch_spec spec = batch_of(info, 2);
    if (mixt__zoo_model(name, info, &sizes, &model) != MIXT_OK ||
        mixt__model_build(&model, &spec, training, &graph) != MIXT_OK)
        fail_msg("%s: %s", name, mixt_error_text());
    return graph;
}

static int64_t trainable(const mixt__graph *graph)
{
    int64_t total = 0;
    for (int64_t i = 0; i < graph->param_count; i++)
        total += graph->params[i].trainable ? graph->params[i].count : 0;
    return total;
}

/* ---- counts ---- */

static void expect_count(const char *name, mixt_data_info info, mixt__model_sizes sizes, int64_t count)
{
    mixt__graph *graph = build(name, &info, sizes, true);
    if (trainable(graph) != count)
        fail_msg("%s has %lld parameters, expected %lld", name, (long long)trainable(graph), (long long)count);
    mixt__graph_free(graph);
}

// Counts are those of the same modules in PyTorch. Its LSTM has two bias vectors a layer that are only ever added; here
// one.
static void counts_of_known_models(void **state)
{
    (void)state;
    expect_count("mlp", rows(784, 10), (mixt__model_sizes){0}, 669706);
    expect_count("mlp", images(28, 28, 1, 10), (mixt__model_sizes){0}, 669706);
    expect_count("convnet", images(28, 28, 1, 10), (mixt__model_sizes){0}, 50186);
    expect_count("resnet", images(224, 224, 3, 1000), (mixt__model_sizes){0}, 11689512);
    expect_count("resnet", images(224, 224, 3, 1000), (mixt__model_sizes){.depth = 34}, 21797672);
    expect_count("bert_mlm", tokens(128, 30522), (mixt__model_sizes){0}, 109514298 + 6 * 769); // padded to 30528
    expect_count("resnet", images(224, 224, 3, 1000), (mixt__model_sizes){.depth = 50}, 25557032);
    expect_count("resnet", images(224, 224, 3, 1000), (mixt__model_sizes){.depth = 101}, 44549160);
    expect_count("resnet", images(224, 224, 3, 1000), (mixt__model_sizes){.depth = 152}, 60192808);
    expect_count("resnet", images(32, 32, 3, 10), (mixt__model_sizes){.depth = 20}, 272474);
    expect_count("resnet", images(32, 32, 3, 10),
                 (mixt__model_sizes){.depth = 20, .shortcut = MIXT_SHORTCUT_PAD, .zero_init = true}, 269722);
    expect_count("resnet", images(32, 32, 3, 10), (mixt__model_sizes){.depth = 110, .shortcut = MIXT_SHORTCUT_PAD},
                 1727962);
    expect_count("vgg", images(224, 224, 3, 1000), (mixt__model_sizes){.depth = 11}, 132863336);
    expect_count("vgg", images(224, 224, 3, 1000), (mixt__model_sizes){.depth = 13}, 133047848);
    expect_count("vgg", images(224, 224, 3, 1000), (mixt__model_sizes){0}, 138357544);
    expect_count("vgg", images(448, 448, 3, 1000), (mixt__model_sizes){0}, 138357544);
    expect_count("vgg", images(224, 224, 3, 1000), (mixt__model_sizes){.depth = 19}, 143667240);
    expect_count("vgg", images(224, 224, 3, 1000), (mixt__model_sizes){.norm = MIXT_NORM_BATCH}, 138365992);
    expect_count("vgg", images(32, 32, 3, 10), (mixt__model_sizes){0}, 14714688 + 512 * 512 + 512 + 5130);
    expect_count("c3d", clips(16, 112, 112, 3, 101), (mixt__model_sizes){0}, 78409573);
    expect_count("gpt", tokens(256, 256), (mixt__model_sizes){0}, 11139072);
    expect_count("gpt", tokens(1024, 50304), (mixt__model_sizes){.layers = 12, .width = 768}, 124475904);
    expect_count("bert", tokens(128, 30528), (mixt__model_sizes){0}, 108894720);
    expect_count("llama", tokens(128, 32000), // 2 x 32000 x 2048 and 22 blocks: TinyLlama 1.1B
                 (mixt__model_sizes){.layers = 22, .width = 2048, .heads = 32, .kv_heads = 4, .inner = 5632},
                 1100048384);
    expect_count("llama", tokens(256, 256), (mixt__model_sizes){.layers = 1, .width = 64, .heads = 4, .tied = true},
                 256 * 64 + 4 * 64 * 64 + 3 * 64 * 192 + 3 * 64);
    expect_count("lstm", tokens(256, 256), (mixt__model_sizes){0}, 4464896 - 2 * 4 * 512);
    expect_count("gru", tokens(256, 256), (mixt__model_sizes){0}, 3414272 - 2 * 2 * 512); // the new gate keeps both
    expect_count("rnn", tokens(256, 256), (mixt__model_sizes){0}, 1313024 - 2 * 512);
}

static void counts_follow_sizes(void **state)
{
    (void)state;
    expect_count("mlp", rows(100, 10), (mixt__model_sizes){.hidden = {50}, .hidden_count = 1},
                 100 * 50 + 50 + 50 * 10 + 10);
    expect_count("mlp", rows(8, 3), (mixt__model_sizes){.hidden = {4, 5}, .hidden_count = 2, .norm = MIXT_NORM_LAYER},
                 8 * 4 + 4 + 8 + 4 * 5 + 5 + 10 + 5 * 3 + 3);
    expect_count("convnet", images(8, 8, 3, 2),
                 (mixt__model_sizes){.channels = {4, 8, 16}, .channel_count = 3, .norm = MIXT_NORM_BATCH},
                 9 * (3 * 4 + 4 * 8 + 8 * 16) + 2 * (4 + 8 + 16) + 16 * 2 + 2);
    expect_count("c3d", clips(4, 8, 8, 3, 5),
                 (mixt__model_sizes){.channels = {4, 8, 16}, .channel_count = 3, .hidden = {6}, .hidden_count = 1},
                 27 * (3 * 4 + 4 * 8 + 8 * 16 + 16 * 16) + 4 + 8 + 16 + 16 + 16 * 6 + 6 + 6 * 5 + 5);
    // Positions grow with the data's sequences, past the model's own 1024.
    expect_count("gpt", tokens(2000, 11), (mixt__model_sizes){.layers = 1, .width = 8},
                 11 * 8 + 2000 * 8 + 12 * 64 + 13 * 8 + 16);
    // Tables of large vocabularies have padding, whose logits the loss leaves out.
    expect_count("gpt", tokens(1024, 50257), (mixt__model_sizes){.layers = 12, .width = 768}, 124475904);
    mixt_data_info values = rows(5, 0);
    values.target = MIXT_TARGET_VALUES;
    values.target_dtype = MIXT_DTYPE_FP32;
    values.target_elements = 3;
    expect_count("mlp", values, (mixt__model_sizes){.hidden = {4}, .hidden_count = 1}, 5 * 4 + 4 + 4 * 3 + 3);
}

static void padding_takes_no_part(void **state)
{
    (void)state;
    mixt_data_info text = tokens(4, 1100);
    mixt__model_sizes sizes = {.layers = 1, .width = 8};
    mixt__model model;
    assert_int_equal(mixt__zoo_model("gpt", &text, &sizes, &model), MIXT_OK);
    assert_int_equal(sizes.vocab, 1100);
    assert_int_equal(sizes.rows, 1152);
    assert_int_equal(model.classes, 1100);
    text = tokens(4, 1152);
    sizes = (mixt__model_sizes){.layers = 1, .width = 8};
    assert_int_equal(mixt__zoo_model("gpt", &text, &sizes, &model), MIXT_OK);
    assert_int_equal(model.classes, 0);
}

/* ---- compile ---- */

static void expect_compiles(const char *name, const mixt_data_info *info, mixt__model_sizes sizes)
{
    static const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_TF32, MIXT_DTYPE_FP16, MIXT_DTYPE_BF16};
    for (int mode = 0; mode < 2; mode++) {
        mixt__graph *graph = build(name, info, sizes, mode == 0);
        for (int f = 0; f < 4; f++) {
            mixt__compile_options options = {.policy = mixt__policy_of(formats[f]), .backward = mode == 0};
            mixt__graph *typed;
            if (mixt__passes_run(graph, &options, &typed) != MIXT_OK)
                fail_msg("%s in %s: %s", name, mixt_dtype_name(formats[f]), mixt_error_text());
            int64_t gradients = 0;
            for (int64_t i = 0; i < typed->param_count; i++)
                gradients += typed->params[i].grad > 0;
            int64_t wanted = 0;
            for (int64_t i = 0; i < graph->param_count; i++)
                wanted += graph->params[i].trainable && mode == 0;
            assert_int_equal(gradients, wanted); // every weight learns
            assert_true(typed->loss && typed->logits);
            mixt__graph_free(typed);
        }
        mixt__graph_free(graph);
    }
}

static void every_model_compiles_in_every_format(void **state)
{
    (void)state;
    mixt_data_info digits = images(28, 28, 1, 10), photos = images(64, 64, 3, 20), text = tokens(16, 256);
    expect_compiles("mlp", &digits, (mixt__model_sizes){0});
    expect_compiles("mlp", &digits, (mixt__model_sizes){.dropout = 0.1f, .norm = MIXT_NORM_BATCH});
    expect_compiles("convnet", &digits, (mixt__model_sizes){0});
    expect_compiles("convnet", &digits,
                    (mixt__model_sizes){.channels = {8}, .channel_count = 1, .dropout = 0.5f, .norm = MIXT_NORM_LAYER});
    expect_compiles("resnet", &photos, (mixt__model_sizes){0});
    expect_compiles("resnet", &photos, (mixt__model_sizes){.depth = 50, .width = 8});
    expect_compiles("resnet", &digits, (mixt__model_sizes){.depth = 20});
    expect_compiles("resnet", &digits, (mixt__model_sizes){.depth = 20, .shortcut = MIXT_SHORTCUT_PAD});
    expect_compiles("resnet", &photos, (mixt__model_sizes){.depth = 50, .width = 8, .shortcut = MIXT_SHORTCUT_PAD});
    expect_compiles("vgg", &photos, (mixt__model_sizes){.depth = 11, .dropout = 0.5f});
    expect_compiles("vgg", &photos, (mixt__model_sizes){.depth = 13, .norm = MIXT_NORM_BATCH});
    mixt_data_info video = clips(16, 32, 32, 1, 40);
    expect_compiles("c3d", &video, (mixt__model_sizes){.hidden = {32}, .hidden_count = 1});
    expect_compiles(
        "c3d", &video,
        (mixt__model_sizes){.channels = {8, 16}, .channel_count = 2, .dropout = 0.5f, .norm = MIXT_NORM_BATCH});
    expect_compiles("gpt", &text, (mixt__model_sizes){0});
    expect_compiles("gpt", &text, (mixt__model_sizes){.layers = 2, .width = 48, .heads = 3, .dropout = 0.2f});
    expect_compiles("llama", &text, (mixt__model_sizes){.layers = 2, .width = 48, .heads = 6, .kv_heads = 2});
    expect_compiles("llama", &text, (mixt__model_sizes){.layers = 1, .width = 16, .heads = 2, .tied = true});
    expect_compiles("bert", &text, (mixt__model_sizes){0});
    expect_compiles("lstm", &text, (mixt__model_sizes){0});
    expect_compiles("lstm", &text, (mixt__model_sizes){.layers = 3, .width = 20, .dropout = 0.2f});
    expect_compiles("gru", &text, (mixt__model_sizes){.layers = 3, .width = 20, .dropout = 0.2f});
    expect_compiles("rnn", &text, (mixt__model_sizes){.layers = 3, .width = 20, .dropout = 0.2f});
}

static bool has_param(const mixt__graph *graph, const char *name)
{
    for (int64_t i = 0; i < graph->param_count; i++)
        if (!strcmp(graph->params[i].name, name))
            return true;
    return false;
}

static void layers_are_named(void **state)
{
    (void)state;
    mixt_data_info text = tokens(16, 256), photos = images(64, 64, 3, 20);
    mixt__graph *gpt = build("gpt", &text, (mixt__model_sizes){0}, true);
    static const char *const gpt_names[] = {"wte.weight",          "wpe.weight",         "h.0.ln1.weight",
                                            "h.0.attn.qkv.weight", "h.0.ln2.bias",       "h.5.attn.proj.bias",
                                            "h.3.mlp.fc.weight",   "h.3.mlp.out.weight", "ln_f.weight"};
    for (size_t i = 0; i < sizeof gpt_names / sizeof gpt_names[0]; i++)
        if (!has_param(gpt, gpt_names[i]))
            fail_msg("gpt has no parameter %s", gpt_names[i]);
    mixt__graph_free(gpt);
    mixt__graph *resnet = build("resnet", &photos, (mixt__model_sizes){.depth = 50}, true);
    static const char *const resnet_names[] = {"conv1.weight",          "bn1.running_mean",
                                               "layer1.0.conv1.weight", "layer1.0.downsample.conv.weight",
                                               "layer4.2.bn3.bias",     "fc.bias"};
    for (size_t i = 0; i < sizeof resnet_names / sizeof resnet_names[0]; i++)
        if (!has_param(resnet, resnet_names[i]))
            fail_msg("resnet has no parameter %s", resnet_names[i]);
    assert_false(has_param(resnet, "conv1.bias"));
    mixt__graph_free(resnet);
    mixt_data_info full = images(224, 224, 3, 5);
    mixt__graph *vgg = build("vgg", &full, (mixt__model_sizes){.norm = MIXT_NORM_BATCH}, true);
    static const char *const vgg_names[] = {"features.0.weight",        "features.1.running_var", "features.40.bias",
                                            "features.41.running_mean", "classifier.0.weight",    "classifier.6.bias"};
    for (size_t i = 0; i < sizeof vgg_names / sizeof vgg_names[0]; i++)
        if (!has_param(vgg, vgg_names[i]))
            fail_msg("vgg has no parameter %s", vgg_names[i]);
    mixt__graph_free(vgg);
}

/* ---- what cannot be ---- */

static void expect_refused(const char *name, mixt_data_info info, mixt__model_sizes sizes, const char *words)
{
    mixt__model model;
    mixt_status status = mixt__zoo_model(name, &info, &sizes, &model);
    if (status == MIXT_OK || !strstr(mixt_error_text(), words))
        fail_msg("%s: expected \"%s\", got %s", name, words, status == MIXT_OK ? "no failure" : mixt_error_text());
}

static void bad_sizes_are_refused(void **state)
{
    (void)state;
    mixt__model_sizes none = {0};
    mixt_data_info digits = images(28, 28, 1, 10), text = tokens(64, 256), table = rows(784, 10);
    expect_refused("convnt", digits, none, "unknown model 'convnt' (did you mean convnet?)");
    expect_refused("perceiver", digits, none,
                   "expected one of mlp, convnet, resnet, vgg, c3d, gpt, llama, mistral, qwen2, qwen3, phi3, smollm3, "
                   "gemma2, gemma3, olmo2, bert, bert_mlm, bert_classify, lstm, gru, rnn, speech");
    expect_refused("gpt", digits, none, "model gpt needs tokens, the data has (28, 28, 1) images");
    expect_refused("lstm", table, none, "model lstm needs tokens, the data has rows of 784 numbers");
    expect_refused("convnet", table, none,
                   "model convnet needs images (height, width, channels), the data has rows of 784 numbers");
    expect_refused("vgg", digits, none, "model vgg: images of 28 x 28: must be square, from 32");
    expect_refused("vgg", images(256, 256, 3, 5), none, "a multiple of 224");
    expect_refused("vgg", images(64, 96, 3, 5), none, "must be square");
    expect_refused("vgg", images(64, 64, 3, 5), (mixt__model_sizes){.depth = 12}, "no depth 12; there are 11");
    expect_refused("vgg", images(64, 64, 3, 5), (mixt__model_sizes){.norm = MIXT_NORM_LAYER}, "none or batch");
    expect_refused("convnet", digits, (mixt__model_sizes){.zero_init = true}, "model convnet has no zero_init");
    expect_refused("resnet", text, none, "the data has sequences of 64 tokens");
    expect_refused("mlp", text, none, "model mlp needs images or rows of numbers");
    expect_refused("gpt", text, (mixt__model_sizes){.heads = 5}, "model gpt: heads 5 must divide width 384");
    expect_refused("llama", text, (mixt__model_sizes){.kv_heads = 4}, "model llama: kv_heads 4 must divide heads 6");
    expect_refused("llama", text, (mixt__model_sizes){.width = 30, .heads = 6}, "need an even number in each");
    expect_refused("llama", text, (mixt__model_sizes){.rope_high = 4}, "rope_high 4 needs rope_factor");
    expect_refused("llama", text, (mixt__model_sizes){.dropout = 0.1f}, "model llama has no dropout");
    expect_refused("gpt", text, (mixt__model_sizes){.tied = true}, "model gpt has no tied");
    expect_refused("gpt", text, (mixt__model_sizes){.seq = 32},
                   "sequences of 64 tokens, but the model has only 32 positions");
    expect_refused("gpt", text, (mixt__model_sizes){.vocab = 100}, "vocab 100, but the data has 256");
    expect_refused("gpt", text, (mixt__model_sizes){.layers = -1}, "layers -1");
    expect_refused("gpt", text, (mixt__model_sizes){.dropout = 1}, "dropout 1");
    expect_refused("mlp", digits, (mixt__model_sizes){.heads = 4},
                   "model mlp has no heads; it has hidden, classes, dropout, norm");
    expect_refused("mlp", digits, (mixt__model_sizes){.classes = 5}, "classes 5, but the data has 10");
    expect_refused("mlp", digits, (mixt__model_sizes){.hidden = {3, 0}, .hidden_count = 2}, "hidden 0");
    expect_refused("resnet", digits, (mixt__model_sizes){.depth = 51}, "no depth 51; there are 18, 34, 50");
    expect_refused("convnet", images(3, 28, 1, 10), none, "use at most 1 channels");
    expect_refused("c3d", digits, none,
                   "model c3d needs clips (frames, height, width, channels), the data has (28, 28, 1) images");
    expect_refused("convnet", clips(16, 32, 32, 1, 40), none, "the data has (16, 32, 32, 1) clips");
    expect_refused("c3d", clips(8, 112, 112, 3, 5), none,
                   "model c3d: 5 stages reduce clips of 8 frames of 112 x 112 to nothing; at most 4 channels fit");
    expect_refused("c3d", clips(16, 8, 9, 3, 5), none, "at most 3 channels fit");
}

/* ---- bench ---- */

static void bench_models_fit_their_data(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double items, flops;
    } expected[] = {
        {"gpt2", 32768, 26173765582848.0}, {"llama", 32768, 24298257383424.0}, {"gpt", 2048, 139292835840.0},
        {"bert", 32768, 21796120166400.0}, {"resnet50", 256, 6282240000000.0}, {"convnet", 64, 1486012416.0},
        {"c3d", 32, 7392000000000.0},      {"mlp", 128, 514326528.0},          {"lstm", 16384, 425201762304.0},
        {"gru", 16384, 322122547200.0},    {"rnn", 16384, 115964116992.0},
    };
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const mixt__bench_model *bench = mixt__bench_find(expected[i].name);
        assert_non_null(bench);
        assert_true((double)mixt__bench_items(bench, bench->batch, bench->seq) == expected[i].items);
        double flops = bench->flops(bench, bench->batch, bench->seq);
        if (flops != expected[i].flops)
            fail_msg("%s: %.1f FLOPs a step, expected %.1f", bench->name, flops, expected[i].flops);
        mixt_data *data;
        mixt_data_options options =
            MIXT_OPTIONS(mixt_data_options, .classes = bench->classes, .seq = bench->seq, .samples = 2);
        if (mixt_data_open_with(bench->data, &options, &data) != MIXT_OK)
            fail_msg("%s: %s", bench->name, mixt_error_text());
        mixt__model model;
        mixt__model_sizes sizes = bench->sizes;
        if (mixt__zoo_model(bench->model, mixt_data_describe(data), &sizes, &model) != MIXT_OK)
            fail_msg("%s: %s", bench->name, mixt_error_text());
        mixt_data_close(data);
    }
    assert_null(mixt__bench_find("gpt3"));
}

/** A table of positions has an end, rotary ones have none: `mixt bench llama --seq 8192`. */
static void rotary_positions_have_no_end(void **state)
{
    (void)state;
    const mixt__model_sizes sizes = {.layers = 1, .width = 16, .heads = 2, .kv_heads = 2, .vocab = 256, .seq = 1024};
    const mixt_data_info data = {.input_dims = {8192}};
    assert_int_equal(mixt__decoder_check(&sizes, &data), MIXT_OK);
    assert_int_equal(mixt__transformer_check(&sizes, &data), MIXT_ERROR_SHAPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotary_positions_have_no_end),
        cmocka_unit_test(counts_of_known_models),
        cmocka_unit_test(counts_follow_sizes),
        cmocka_unit_test(padding_takes_no_part),
        cmocka_unit_test(every_model_compiles_in_every_format),
        cmocka_unit_test(layers_are_named),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(bench_models_fit_their_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
