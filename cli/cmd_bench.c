/* mixt bench: the speed of one training step of a fixed model. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/profile.h"
#include "cli/term.h"

#include <mixt/bench.h>
#include <mixt/config.h>
#include <mixt/program.h>

#include <math.h>
#include <string.h>

static void print_text(const char *model, const char *precision, const mixt_bench_result *r)
{
    char bytes[32], rate[32];
    const char *items = r->seq ? "tokens" : "samples";
    printf("%s %s, batch %lld", model, precision, (long long)r->batch);
    if (r->seq)
        printf(" x %lld", (long long)r->seq);
    if (r->gpu)
        printf(", %s", r->gpu_info.name);
    else
        printf(", %d threads", r->threads);
    printf(": %.3f ms per step (spread %.1f%%), %s %s/s, %.3f TFLOP/s, %s", 1e3 * r->seconds, 100 * r->spread,
           cli_format_count(rate, (double)r->items / r->seconds), items, r->flops / r->seconds / 1e12,
           cli_format_bytes(bytes, (double)r->memory.allocated));
    if (r->gpu)
        printf(" (and %s for context and libraries)", cli_format_bytes(bytes, r->gpu_other));
    if (r->recomputed)
        printf(", %lld nodes recomputed in about %.3f ms", (long long)r->recomputed, 1e3 * r->recompute_seconds);
    if (!isnan(r->watts))
        printf(", %.0f W, %s %s/J", r->watts, cli_format_count(rate, r->items_j), items);
    if (r->counted)
        printf("; utilisation: multiprocessors %.0f%%, Tensor Cores %.0f%%, memory %.0f%%",
               100 * r->multiprocessors_active, 100 * r->tensor_cores_active, 100 * r->memory_active);
    putchar('\n');
}

static void print_json(const char *model, const char *precision, const mixt_bench_result *r)
{
    char peer[64];
    snprintf(peer, sizeof peer, "mixt %s", mixt_version());
    json_t *o = cli_json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:o, s:i, s:f}", "peer", peer, "device", r->device, "model",
        model, "precision", precision, "batch", (json_int_t)r->batch, "seq", (json_int_t)r->seq, "ms", 1e3 * r->seconds,
        "items_s", (double)r->items / r->seconds, "tflops", r->flops / r->seconds / 1e12, "spread", r->spread, "loss",
        cli_json_real(r->loss), "threads", r->threads, "peak_gib", (double)r->memory.allocated / 1073741824.0);
    if (r->gpu) {
        cli_json_set(o, "gpu", cli_json_string(r->gpu_info.name));
        cli_json_set(o, "overhead_gib", cli_json_real(r->gpu_other / 1073741824.0));
    }
    if (r->recomputed) {
        cli_json_set(o, "recomputed", json_integer((json_int_t)r->recomputed));
        cli_json_set(o, "recompute_ms", cli_json_real(1e3 * r->recompute_seconds));
    }
    if (!isnan(r->watts)) {
        cli_json_set(o, "watts", cli_json_real(r->watts));
        cli_json_set(o, "items_j", cli_json_real(r->items_j));
    }
    if (r->counted) {
        cli_json_set(o, "sm_active", cli_json_real(r->multiprocessors_active));
        cli_json_set(o, "tensor_active", cli_json_real(r->tensor_cores_active));
        cli_json_set(o, "memory_active", cli_json_real(r->memory_active));
    }
    if (r->profile)
        cli_json_set(o, "profile", cli_profile_json(r->profile));
    cli_json_print(o, stdout, JSON_REAL_PRECISION(7));
}

/** Whether a model has sequences. */
static bool has_sequences(const char *model)
{
    mixt_bench_model m;
    for (int i = 0; mixt_bench_at(i, &m); i++)
        if (!strcmp(m.name, model))
            return m.seq > 0;
    return false;
}

/** "9G": read as the key train.memory is. */
static int read_memory(const cli_args *args, size_t *bytes)
{
    char setting[128];
    mixt_config *config;
    const char *text = cli_text(args, "memory");
    if (!cli_given(args, "memory"))
        return CLI_OK;
    if (mixt_config_new(&config) != MIXT_OK)
        return cli_failed();
    snprintf(setting, sizeof setting, "train.memory=%s", text);
    if (mixt_config_set(config, setting, "--memory") == MIXT_OK)
        *bytes = (size_t)mixt_config_int(config, "train.memory");
    mixt_config_free(config);
    return *bytes ? CLI_OK : cli_usage(args->command, "--memory '%s': expected bytes, as in 9G or 512M", text);
}

static int run(const cli_args *args)
{
    const char *model = cli_word(args, 0), *precision = cli_text(args, "precision");
    if (cli_int(args, "seq") && !has_sequences(model))
        return cli_usage(args->command, "--seq %s: %s has no sequence: leave it out", cli_text(args, "seq"), model);
    mixt_bench_options options =
        MIXT_OPTIONS(mixt_bench_options, .precision = precision, .device = cli_text(args, "device"));
    options.threads = (int)cli_int(args, "threads");
    options.batch = cli_int(args, "batch");
    options.seq = cli_int(args, "seq");
    options.steps = cli_given(args, "steps") ? cli_int(args, "steps") : 0;
    options.profile = cli_flag(args, "profile");
    int usage = read_memory(args, &options.memory);
    if (usage != CLI_OK)
        return usage;
    mixt_bench_result result;
    mixt_status status = mixt_bench_run_with(model, &options, &result);
    if (status == MIXT_OK && cli_flag(args, "json")) {
        print_json(model, precision, &result);
    } else if (status == MIXT_OK) {
        print_text(model, precision, &result);
        if (result.profile)
            cli_profile_print(result.profile);
    }
    mixt_bench_free(&result);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_bench = {
    .name = "bench",
    .summary = "time a training step of a well-known model",
    .description =
        "Times whole training steps (forward, loss, backward, clipping where the model has it, optimizer) on random "
        "data and prints the median time, items per second, FLOP/s and peak memory. Models and sizes are fixed, so "
        "that figures can be compared between machines and with other systems.\n\n"
        "The data are in the device's memory, in the format that the step reads. On a GPU it also prints watts, items "
        "per joule and the utilisation of its units, where the GPU counts them; the memory of CUDA itself is shown "
        "separately.\n\n"
        "Models: gpt2 (124M), llama (of the same size), gpt (6 x 384, bytes), bert (base), resnet50, c3d (16 frames of "
        "112 x 112), convnet (1-32-64, 28 x 28), mlp (784-512-512-10), lstm, gru, rnn (2 x 512, bytes).",
    .arguments = {{"MODEL", CLI_ARGUMENT_CHOICE, "gpt2|llama|gpt|bert|resnet50|c3d|convnet|mlp|lstm|gru|rnn",
                   .help = "gpt2, llama, gpt, bert, resnet50, c3d, convnet, mlp, lstm, gru or rnn"}},
    .options =
        {
            {"precision", 'p', CLI_CHOICE, "P", "fp32|tf32|fp16|bf16", .required = true,
             .help = "format of matrix work"},
            {"batch", 'b', CLI_INT, "B", .fallback = "0", .max = 1 << 24,
             .help = "samples in a step; 0: the model's own"},
            {"seq", 't', CLI_INT, "T", .fallback = "0", .max = 1 << 20,
             .help = "tokens in a sequence; 0: the model's own"},
            {"steps", 'n', CLI_INT, "N", .fallback = "20", .min = 1, .max = 1000000, .help = "steps to time",
             .more = "Without this option fast models run for half a second, slow ones for at most 5 seconds"},
            {"memory", .kind = CLI_TEXT, .metavar = "SIZE", .help = "memory that the step may use, as in 512M",
             .more = "What does not fit is recomputed in the backward pass"},
            {"threads", .kind = CLI_INT, .metavar = "N", .fallback = "0", .max = 1024,
             .help = "CPU threads; 0: MIXT_THREADS, else all cores"},
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda|cuda:N", .fallback = "auto",
             .help = "where to run"},
            {"profile", .kind = CLI_FLAG, .help = "also time each op",
             .more = "FLOP/s, bytes/s and share of the device's limits"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object"},
        },
    .examples =
        {
            {"mixt bench mlp --precision bf16", "a perceptron at its own batch size"},
            {"mixt bench gpt --precision fp32 --batch 8 --seq 256 --threads 2 --json", "for a script"},
        },
    .see_also = "info|plan",
    .run = run,
};
