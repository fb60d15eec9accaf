/* mixt finetune: a model's folder and a file of conversations, and training. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/shell.h"
#include "cli/support.h"
#include "cli/table.h"
#include "cli/tokenize_progress.h"
#include "cli/watch.h"

#include <mixt/chat.h>
#include <mixt/finetune.h>
#include <mixt/plan.h>
#include <mixt/run.h>

#include <math.h>
#include <signal.h>
#include <string.h>

/** What is told at the end. */
typedef struct outcome {
    mixt_run_result result;
    int64_t parameters, trainable, trained_tokens;
    char adapter[4400]; // "": all weights were trained
} outcome;

/* ---- before ---- */

/** What the step takes, by role: bytes that are there once training begins. */
static mixt_status print_plan(mixt_run *run)
{
    mixt_summary s;
    mixt_memory_role roles[MIXT_MEMORY_ROLES];
    cli_table table = {0};
    char text[32];
    CLI_TRY(mixt_run_summary(run, &s));
    mixt_memory_roles(&s.memory, roles);
    cli_table_column(&table, "memory", CLI_LEFT);
    cli_table_column(&table, "bytes", CLI_RIGHT);
    cli_table_column(&table, "", CLI_RIGHT);
    cli_table_column(&table, "", CLI_LEFT);
    for (int i = 0; i < MIXT_MEMORY_ROLES; i++) {
        if (!roles[i].bytes)
            continue;
        cli_table_cell(&table, "%s", roles[i].name);
        cli_table_cell(&table, "%zu", roles[i].bytes);
        cli_table_cell(&table, "%s", cli_format_bytes(text, (double)roles[i].bytes));
        cli_table_cell(&table, "%s", roles[i].text);
    }
    size_t all = s.run_memory.total.device ? s.run_memory.total.device : s.run_memory.total.host;
    cli_table_cell(&table, "run");
    cli_table_cell(&table, "%zu", all);
    cli_table_cell(&table, "%s", cli_format_bytes(text, (double)all));
    cli_table_cell(&table, "the step, validation, batches and checkpoints");
    cli_table_print(&table, stderr, 0);
    cli_table_free(&table);
    return MIXT_OK;
}

static mixt_status look(mixt_run *run, outcome *o)
{
    mixt_summary s;
    mixt_data *data;
    const mixt_chat_info *info;
    CLI_TRY(mixt_run_summary(run, &s));
    o->parameters = s.parameters;
    o->trainable = s.parameters - s.frozen;
    CLI_TRY(mixt_run_data(run, "train", &data));
    if (mixt_chat_describe(data, &info) == MIXT_OK)
        o->trained_tokens = info->trained_tokens;
    return MIXT_OK;
}

/* ---- after ---- */

static double tokens_s(const mixt_run *run, const mixt_run_result *r)
{
    return r->samples_s * (double)mixt_run_describe(run).items_per_sample;
}

/** Bytes where it trained, measured. */
static size_t memory_of(const mixt_run_result *r)
{
    return r->run_memory.allocated.device ? r->run_memory.allocated.device : r->run_memory.allocated.host;
}

static void print_table(const mixt_run *run, const outcome *o)
{
    const mixt_run_result *r = &o->result;
    char a[32], b[32];
    cli_table table = {0};
    cli_table_column(&table, "", CLI_LEFT);
    cli_table_column(&table, "", CLI_LEFT);
    cli_table_cell(&table, "updates");
    cli_table_cell(&table, "%lld%s", (long long)r->steps, r->diverged ? ", diverged" : "");
    cli_table_cell(&table, "trained");
    cli_table_cell(&table, "%s of %s numbers, on %s tokens", cli_format_count(a, (double)o->trainable),
                   cli_format_count(b, (double)o->parameters),
                   cli_format_count((char[32]){0}, (double)o->trained_tokens));
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s, %s tokens/s", cli_format_duration(a, r->seconds),
                   cli_format_count(b, tokens_s(run, r)));
    cli_table_cell(&table, "memory");
    cli_table_cell(&table, "%s", cli_format_bytes(a, (double)memory_of(r)));
    if (!isnan(r->val_loss)) {
        cli_table_cell(&table, "eval loss");
        cli_table_cell(&table, "%s", cli_format_loss(a, r->val_loss));
    }
    cli_table_cell(&table, "run");
    cli_table_cell(&table, "%s", mixt_run_describe(run).folder);
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

static void print_next(const char *before, const char *folder, const char *behind)
{
    fputs(before, stdout);
    cli_shell_word(stdout, folder);
    puts(behind);
}

static void print_commands(const mixt_run *run, const outcome *o)
{
    const char *folder = mixt_run_describe(run).folder;
    puts("\nnext:");
    print_next("  mixt chat ", folder, "");
    print_next("  mixt export ", folder, *o->adapter ? " --gguf" : " --gguf --type q8_0");
    if (*o->adapter)
        print_next("the adapter, as PEFT reads it: ", o->adapter, "");
}

static int print_json(const mixt_run *run, const outcome *o)
{
    const mixt_run_result *r = &o->result;
    json_t *out =
        cli_json_pack("{s:s, s:s?}", "run", mixt_run_describe(run).folder, "adapter", *o->adapter ? o->adapter : NULL);
    cli_json_set(out, "steps", json_integer((json_int_t)r->steps));
    cli_json_set(out, "tokens_s", cli_json_real(tokens_s(run, r)));
    cli_json_set(out, "memory", json_integer((json_int_t)memory_of(r)));
    cli_json_set(out, "loss", cli_json_real(r->loss));
    cli_json_set(out, "eval_loss", cli_json_real(r->val_loss));
    cli_json_set(out, "trained_tokens", json_integer((json_int_t)o->trained_tokens));
    cli_json_set(out, "parameters", json_integer((json_int_t)o->parameters));
    cli_json_set(out, "trainable", json_integer((json_int_t)o->trainable));
    cli_json_set(out, "interrupted", json_boolean(r->interrupted));
    cli_json_set(out, "diverged", json_boolean(r->diverged));
    cli_json_print(out, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    return CLI_OK;
}

static int tell(const cli_args *args, const mixt_run *run, const outcome *o)
{
    const mixt_run_result *r = &o->result;
    if (cli_flag(args, "json"))
        print_json(run, o);
    else if (!cli_flag(args, "quiet"))
        print_table(run, o);
    if (r->interrupted) {
        fputs("mixt: stopped; continue with: mixt train --resume ", stderr);
        cli_shell_word(stderr, mixt_run_describe(run).folder);
        fputc('\n', stderr);
        return CLI_SIGNAL + r->signal;
    }
    if (!cli_flag(args, "json") && !cli_flag(args, "quiet") && !r->diverged)
        print_commands(run, o);
    return r->diverged ? CLI_FAILED : CLI_OK;
}

/* ---- the command ---- */

static mixt_status train(const cli_args *args, mixt_run *run, outcome *o)
{
    char path[sizeof o->adapter];
    CLI_TRY(look(run, o));
    if (!cli_flag(args, "json") && !cli_flag(args, "quiet"))
        CLI_TRY(print_plan(run));
    CLI_TRY(mixt_run_train(run, &o->result));
    snprintf(path, sizeof path, "%s/adapter/adapter_config.json", mixt_run_describe(run).folder);
    if (cli_path_is_file(path))
        snprintf(o->adapter, sizeof o->adapter, "%s/adapter", mixt_run_describe(run).folder);
    return MIXT_OK;
}

static int begin(const cli_args *args, const mixt_config *config, const mixt_run_options *options)
{
    outcome o = {.parameters = 0};
    mixt_run *run;
    mixt_status status = mixt_run_open_config(config, options, &run);
    if (status == MIXT_OK)
        status = train(args, run, &o);
    int code = status == MIXT_OK ? tell(args, run, &o) : cli_failed();
    mixt_run_close(run);
    return code;
}

static int run(const cli_args *args)
{
    cli_watch watch = {.quiet = cli_flag(args, "quiet") || cli_flag(args, "json")};
    mixt_run_options run_options =
        MIXT_OPTIONS(mixt_run_options, .observer = cli_watch_observe, .user = &watch, .signals = true);
    mixt_finetune_options options =
        MIXT_OPTIONS(mixt_finetune_options, .lora = cli_int(args, "lora"), .full = cli_flag(args, "full"),
                     .base = cli_text(args, "base"), .memory = cli_text(args, "memory"), .out = cli_text(args, "out"),
                     .preference = cli_flag(args, "preference"), .settings = args->settings,
                     .progress = cli_tokenize_progress, .user = &watch);
    mixt_config *config;
    if (options.full && cli_given(args, "lora"))
        return cli_usage(args->command, "--full trains all weights, --lora adapters beside them: one of them");
    run_options.progress = cli_tokenize_progress;
    signal(SIGPIPE, SIG_IGN);
    if (mixt_finetune_config(cli_word(args, 0), cli_word(args, 1), &options, &config) != MIXT_OK)
        return cli_failed();
    int code = begin(args, config, &run_options);
    mixt_config_free(config);
    return code;
}

const cli_command cli_finetune = {
    .name = "finetune",
    .summary = "fine-tune a Hugging Face model on conversations",
    .description =
        "Takes model, tokenizer, template and sizes from FOLDER and conversations or instructions from DATA (JSONL or "
        "JSON: messages, prompt and completion, alpaca, sharegpt, text), and trains adapters (LoRA) beside all linear "
        "layers, or with --full all weights. What is not given has a sensible value: alpha twice the rank, a learning "
        "rate of 2e-4 (with --full 2e-5) that rises over 3% of the updates and falls along a cosine, three epochs, "
        "short samples packed into rows, one sample in twenty held out.\n\n"
        "What the run will take is told first, to the byte. The run directory is one like any other: config.yaml is "
        "the configuration that all this makes, 'mixt train --resume' goes on, 'mixt chat', 'eval' and 'export' use "
        "it; adapters lie in RUN/adapter as PEFT reads them.",
    .arguments = {{"FOLDER", CLI_ARGUMENT_FOLDER,
                   .help = "Hugging Face folder: config.json, weights, tokenizer, and a template where DATA needs one"},
                  {"DATA", CLI_ARGUMENT_FILE, .help = "conversations or instructions, JSONL or JSON"},
                  {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win, as in train.epochs=1 train.lr=1e-4"}},
    .options =
        {
            {"lora", 'l', CLI_INT, "R", .fallback = "16", .min = 1, .max = 65536, .help = "rank of the adapters"},
            {"full", .kind = CLI_FLAG, .help = "train all weights, without adapters"},
            {"preference", 'p', CLI_FLAG,
             .help = "learn which of two answers is better (DPO): rows with prompt, chosen and rejected"},
            {"base", 'b', CLI_CHOICE, "F", "bf16|fp32|fp8|int8|nf4", "bf16",
             .help = "format in which the frozen model is kept; with --full the precision, bf16 or fp32"},
            {"memory", 'm', CLI_TEXT, "SIZE",
             .help = "memory that the run may take, as in 24G: the plan is made to fit"},
            {"out", 'o', CLI_TEXT, "RUN", .help = "run directory to create"},
            {"quiet", 'q', CLI_FLAG, .help = "no plan, no progress line, no table: only warnings and errors"},
            {"json", .kind = CLI_FLAG, .help = "print the result as one JSON object on standard output"},
        },
    .examples =
        {
            {"mixt finetune Qwen3-0.6B chats.jsonl --out runs/tuned", "adapters of rank 16 in BF16"},
            {"mixt finetune Llama-3.2-1B chats.jsonl --lora 8 --base int8 --memory 12G",
             "a frozen model of a byte a weight, within 12 GiB"},
            {"mixt finetune SmolLM2-135M text.jsonl --full train.epochs=1", "all weights, one epoch"},
        },
    .see_also = "chat|train|eval|export|config",
    .run = run,
};
