/* mixt train: trains a model as a configuration says. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/rank_trace.h"
#include "cli/shell.h"
#include "cli/table.h"
#include "cli/tokenize_progress.h"
#include "cli/watch.h"

#include <mixt/ranks.h>
#include <mixt/suggest.h>

#include <math.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].number == number)
            return names[i].name;
    return "a signal";
}

static void add_validation(cli_table *table, const mixt_run_result *r)
{
    char step[48] = "", loss[32];
    if (isnan(r->val_loss))
        return;
    if (r->val_step >= 0)
        snprintf(step, sizeof step, " (step %lld)", (long long)r->val_step);
    cli_table_cell(table, "validation");
    if (isnan(r->val_accuracy))
        cli_table_cell(table, "loss %s%s", cli_format_loss(loss, r->val_loss), step);
    else
        cli_table_cell(table, "loss %s, accuracy %.2f%%%s", cli_format_loss(loss, r->val_loss), 100 * r->val_accuracy,
                       step);
    if (r->best_step >= 0 && r->best_step != r->val_step) {
        cli_table_cell(table, "best");
        cli_table_cell(table, "loss %s (step %lld)", cli_format_loss(loss, r->best_val_loss), (long long)r->best_step);
    }
    if (r->weights_step != r->steps) {
        cli_table_cell(table, "weights");
        cli_table_cell(table, "the best, of step %lld", (long long)r->weights_step);
    }
}

/** Of the step alone, and of all that the run held: of the host, and of a GPU. */
static void memory_cells(cli_table *table, const mixt_run_result *r)
{
    const mixt_run_memory *m = &r->run_memory;
    char planned[32], allocated[32];
    cli_table_cell(table, "memory");
    cli_table_cell(table, "step: %s planned, %s allocated", cli_format_bytes(planned, (double)r->memory.total),
                   cli_format_bytes(allocated, (double)r->memory.allocated));
    cli_table_cell_styled(table, CLI_PLAIN, "");
    cli_table_cell(table, "run: %s planned, %s allocated", cli_format_bytes(planned, (double)m->total.host),
                   cli_format_bytes(allocated, (double)m->allocated.host));
    if (!m->total.device)
        return;
    cli_table_cell_styled(table, CLI_PLAIN, "");
    cli_table_cell(table, "on the GPU: %s planned, %s allocated", cli_format_bytes(planned, (double)m->total.device),
                   cli_format_bytes(allocated, (double)m->allocated.device));
}

static void print_summary(const mixt_run *run, const mixt_run_result *r)
{
    const mixt_run_info info = mixt_run_describe(run);
    char loss[32], time[32], rate[32];
    cli_table table = {0};
    cli_table_column(&table, "", CLI_LEFT);
    cli_table_column(&table, "", CLI_LEFT);
    cli_table_cell(&table, "updates");
    cli_table_cell(&table, "%lld%s%s%s%s%s", (long long)r->steps, r->diverged ? ", diverged" : "",
                   r->stopped ? ", stopped" : "", r->interrupted ? ", stopped by " : "",
                   r->interrupted ? signal_name(r->signal) : "",
                   r->stopped_early ? ", stopped early: validation no longer improves" : "");
    if (r->skipped) {
        cli_table_cell(&table, "skipped");
        cli_table_cell(&table, "%lld (gradients not finite)", (long long)r->skipped);
    }
    if (r->decisions) {
        cli_table_cell(&table, "decisions");
        cli_table_cell(&table, "%lld, %lld of them back to the last good state: see %s/events.jsonl",
                       (long long)r->decisions, (long long)r->rollbacks, info.folder);
    }
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s, %s %s/s", cli_format_duration(time, r->seconds),
                   cli_format_count(rate, r->samples_s * (double)info.items_per_sample), info.item);
    memory_cells(&table, r);
    if (!isnan(r->energy)) {
        cli_table_cell(&table, "energy");
        cli_table_cell(&table, "%s J, %.0f W on average", cli_format_count(rate, r->energy), r->energy / r->seconds);
    }
    cli_table_cell(&table, "loss");
    cli_table_cell(&table, "%s", cli_format_loss(loss, r->loss));
    add_validation(&table, r);
    cli_table_cell(&table, "run");
    cli_table_cell(&table, "%s", info.folder);
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

static void print_json(const mixt_run *run, const mixt_run_result *r, bool profile)
{
    json_t *o = cli_json_pack("{s:s, s:I, s:I, s:b, s:b}", "run", mixt_run_describe(run).folder, "steps",
                              (json_int_t)r->steps, "skipped", (json_int_t)r->skipped, "interrupted", r->interrupted,
                              "stopped_early", r->stopped_early);
    cli_json_set(o, "diverged", json_boolean(r->diverged));
    cli_json_set(o, "loss", cli_json_real(r->loss));
    cli_json_set(o, "accuracy", cli_json_real(r->accuracy));
    cli_json_set(o, "signal", r->signal ? json_integer(r->signal) : json_null());
    cli_json_set(o, "val_step", r->val_step >= 0 ? json_integer(r->val_step) : json_null());
    cli_json_set(o, "val_loss", cli_json_real(r->val_loss));
    cli_json_set(o, "val_accuracy", cli_json_real(r->val_accuracy));
    cli_json_set(o, "best_step", r->best_step >= 0 ? json_integer(r->best_step) : json_null());
    cli_json_set(o, "best_val_loss", cli_json_real(r->best_val_loss));
    cli_json_set(o, "weights_step", json_integer(r->weights_step));
    cli_json_set(o, "seconds", cli_json_real(r->seconds));
    cli_json_set(o, "samples_s", cli_json_real(r->samples_s));
    cli_json_set(o, "memory_planned", json_integer((json_int_t)r->memory.total));
    cli_json_set(o, "memory_allocated", json_integer((json_int_t)r->memory.allocated));
    const mixt_bytes *total = &r->run_memory.total, *held = &r->run_memory.allocated;
    cli_json_set(o, "run_memory",
                 cli_json_pack("{s:I, s:I, s:I, s:I}", "host_planned", (json_int_t)total->host, "host_allocated",
                               (json_int_t)held->host, "device_planned", (json_int_t)total->device, "device_allocated",
                               (json_int_t)held->device));
    cli_json_set(o, "decisions", json_integer(r->decisions));
    cli_json_set(o, "rollbacks", json_integer(r->rollbacks));
    cli_json_set(o, "checkpoints_lost", json_integer(r->checkpoints_lost));
    if (!isnan(r->energy))
        cli_json_set(o, "energy", cli_json_real(r->energy));
    json_t *trace = profile ? cli_rank_trace_json(run) : NULL;
    if (trace)
        cli_json_set(o, "communication", trace);
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

/** Also under --quiet: the status tells that there is something to say. */
static int interrupted(const mixt_run *run, const mixt_run_result *r)
{
    fprintf(stderr, "mixt: stopped by %s after step %lld; continue with: mixt train --resume ", signal_name(r->signal),
            (long long)r->steps);
    cli_shell_word(stderr, mixt_run_describe(run).folder);
    putc('\n', stderr);
    return CLI_SIGNAL + r->signal;
}

/** What failed on all ranks is said by one, for which the others wait: a launcher kills what is left of them. It waits
 * for them too: where it ends before they know why, they take it for lost and speak themselves. Where ranks have not
 * found each other, the others have something to say themselves if they are still there after that. */
static int failed(void)
{
    bool speaks = mixt_ranks_speaks(), joined = mixt_ranks_joined();
    if (speaks)
        cli_failed();
    if (joined || !speaks)
        usleep(joined ? 500000 : 2000000);
    if (joined || speaks)
        return CLI_FAILED;
    fprintf(stderr, "mixt: rank %d: %s\n", mixt_ranks_find().rank, mixt_error_text());
    return CLI_FAILED;
}

/** Without what stands on the screen already: alerts and diagnoses came before. */
static int failed_after(const cli_watch *watch, mixt_status status)
{
    char text[2048];
    snprintf(text, sizeof text, "%s", mixt_error_text());
    cli_watch_trim(watch, text);
    mixt_fail(status, "%s", text);
    return failed();
}

static int train(const cli_args *args, mixt_run *run, const cli_watch *watch)
{
    mixt_run_result result;
    mixt_status status = mixt_run_train(run, &result);
    if (status != MIXT_OK)
        return failed_after(watch, status);
    int end = result.interrupted ? CLI_SIGNAL + result.signal : result.diverged ? CLI_FAILED : CLI_OK;
    if (mixt_run_describe(run).rank) // rank 0 speaks for all
        return end;
    if (cli_flag(args, "json"))
        print_json(run, &result, cli_flag(args, "profile"));
    else if (!cli_flag(args, "quiet"))
        print_summary(run, &result);
    if (cli_flag(args, "profile") && !cli_flag(args, "json"))
        cli_rank_trace_print(run);
    return result.interrupted ? interrupted(run, &result) : end;
}

/** Wrong settings are wrong usage, before anything is opened. */
static int check_settings(const cli_args *args)
{
    mixt_config *config;
    int status = CLI_OK;
    if (mixt_config_new(&config) != MIXT_OK)
        return cli_failed();
    for (int i = 0; i < args->setting_count && status == CLI_OK; i++)
        if (mixt_config_set(config, args->settings[i], "command line") != MIXT_OK)
            status = cli_usage(args->command, "%s", mixt_error_text());
    mixt_config_free(config);
    return status;
}

static int resume(const cli_args *args, const char *folder, const mixt_run_options *options)
{
    mixt_run *run;
    int status = check_settings(args);
    if (status != CLI_OK)
        return status;
    if (cli_flag(args, "json") && cli_json_name(folder) != MIXT_OK)
        return cli_failed();
    mixt_run_options with = *options;
    with.settings = args->settings;
    with.allow = cli_text(args, "allow");
    status = mixt_run_resume_with(folder, &with, &run) == MIXT_OK ? train(args, run, options->user) : failed();
    mixt_run_close(run);
    return status;
}

/** Without a file: what is left open is chosen by looking at the data. */
static int choose(const cli_args *args, mixt_config *config)
{
    mixt_suggestion *suggestion;
    if (mixt_suggest(config, &suggestion) != MIXT_OK)
        return failed();
    mixt_status status = mixt_suggestion_apply(suggestion, config);
    if (status == MIXT_OK && !cli_flag(args, "quiet") && !cli_flag(args, "json") && !mixt_ranks_find().rank)
        fprintf(stderr,
                "chosen   %s\n         the run's config.yaml has all settings; other ones: key=value, or mixt new\n",
                mixt_suggestion_summary(suggestion));
    mixt_suggestion_free(suggestion);
    return status == MIXT_OK ? CLI_OK : failed();
}

static int begin(const cli_args *args, const char *file, const mixt_run_options *options)
{
    mixt_run *run = NULL;
    mixt_config *config;
    int status = cli_config(args, file, &config);
    if (status != CLI_OK)
        return status;
    if (!file)
        status = choose(args, config);
    if (status == CLI_OK)
        status = mixt_run_open_config(config, options, &run) == MIXT_OK ? train(args, run, options->user) : failed();
    mixt_run_close(run);
    mixt_config_free(config);
    return status;
}

static int run(const cli_args *args)
{
    const char *file = cli_word(args, 0), *folder = cli_given(args, "resume") ? cli_text(args, "resume") : NULL;
    cli_watch watch = {.quiet = cli_flag(args, "quiet") || cli_flag(args, "json")};
    mixt_run_options options =
        MIXT_OPTIONS(mixt_run_options, .observer = cli_watch_observe, .user = &watch, .signals = true, .ranks = true);
    options.progress = cli_tokenize_progress;
    if (mixt_ranks_find().rank) { // one progress line, and notes once
        options.observer = NULL;
        options.progress = NULL;
    }
    if (file && folder)
        return cli_usage(args->command, "--resume uses the run's configuration: leave %s out", file);
    if (!file && !folder && !args->setting_count)
        return cli_usage(args->command, "missing argument CONFIG: a YAML file; or data.path=DATA, a file or folder to "
                                        "train on; or a run with --resume RUN");
    if (folder && !*folder)
        return cli_usage(args->command, "--resume needs the name of a run directory");
    if (!folder && cli_given(args, "allow"))
        return cli_usage(args->command, "--allow is for --resume: leave it out, a new run may have any setting");
    signal(SIGPIPE, SIG_IGN); // who reads the result may be gone when it comes: that is a message then, not an end
    return folder ? resume(args, folder, &options) : begin(args, file, &options);
}

const cli_command cli_train = {
    .name = "train",
    .summary = "train a model as a configuration says",
    .description =
        "Reads CONFIG, applies the settings given after it, and trains. The run directory (out=) receives the "
        "configuration, metrics, checkpoints and the final weights. A run directory that exists is refused: nothing "
        "is overwritten. Ctrl-C saves a checkpoint and prints the command that continues.\n\n"
        "The run directory holds config.yaml (every setting, with absolute paths of the data, so that the run can be "
        "evaluated from any folder), a copy of the policy file, metrics.jsonl, checkpoints and model.safetensors, the "
        "weights that eval, predict, generate and export read. They are those of the last update, or of the best "
        "validation with train.early_stop.\n\n"
        "Five lines before the first update show what will happen: data, input, model, formats, memory. Warnings of "
        "settings that make no sense follow, such as a warm-up longer than the run.\n\n"
        "Ctrl-C, SIGTERM, SIGHUP (a closed terminal), SIGUSR1 and SIGUSR2 (a scheduler's warning) stop the run after "
        "the current update: it saves a checkpoint, leaves a usable run directory and prints the command that "
        "continues. A second Ctrl-C or SIGTERM kills it. Signals that were ignored when mixt started, such as SIGHUP "
        "under nohup, stay ignored. A run that fails before its first update leaves no directory.\n\n"
        "Exit status: 0 when the run reached its end or stopped early as asked; 1 when it failed, also when no update "
        "could be applied; 2 when the command line is wrong; after a signal 128 plus its number: 130 for Ctrl-C, 143 "
        "for SIGTERM, 129 for SIGHUP, 138 for SIGUSR1, 140 for SIGUSR2.\n\n"
        "Checkpoints are folders RUN/checkpoints/step-NNNNNNNN. One is saved after each validation that is the best "
        "so far, at the end, and as train.checkpoint_every and train.checkpoint_minutes say. The newest train.keep "
        "and the one with the best validation loss are kept; --checkpoint of eval, predict, generate and export "
        "chooses one. --resume RUN continues from the newest complete checkpoint, with the same bits as if the run had "
        "never stopped. Checkpoints are written in the background: one that is due while another is being written "
        "waits, and checkpoint_stall in metrics.jsonl is the time that training stood still. A checkpoint that cannot "
        "be saved does not end the run: the first failure is shown at once, their number at the end "
        "(checkpoints_lost with --json).\n\n"
        "With --resume these settings may change: train.steps, train.epochs, train.early_stop, out, data.threads, how "
        "often to log, validate and save, memory (train.memory, memory_may, recompute), dist.transport, bucket, zero, "
        "check and timeout, and the place of the data (data.path), which is known by its checksums. These may change "
        "too, but then the bits differ: device, threads, auto.* and "
        "dist.ranks, reduce, compress and compress_after. These must be named with --allow: precision, the learning "
        "rate and its schedule (train.lr, min_lr, schedule, warmup, decay_steps, gamma, lr_groups), weight_decay, "
        "decay_groups, momentum, beta1, beta2, eps, moments, clip, clip_value, loss_scale and scale_*, and "
        "data, for a changed set. The new value "
        "holds from the next update on; data.order_seed changes the order of samples from the next epoch on. All "
        "other settings are refused. history.jsonl records each change. A schedule over the whole run is stretched to "
        "the new length. While a finished run continues, its model.safetensors is the old one and is not accepted as "
        "final weights.",
    .arguments =
        {
            {"CONFIG", CLI_ARGUMENT_FILE, .optional = true, .help = "YAML file of the run; not with --resume",
             .more = "Without one the settings must name data (data.path), and what they leave open is chosen by "
                     "looking at it, as mixt new does. 'mixt help config' shows the keys"},
            {"key=value", CLI_ARGUMENT_SETTING,
             .help = "settings that win over the file, as in train.lr=0.01; 'mixt help config' shows the keys"},
        },
    .options =
        {
            {"resume", 'r', CLI_TEXT, "RUN", .help = "continue this run from its newest checkpoint"},
            {"allow", .kind = CLI_TEXT, .metavar = "KEYS",
             .help = "with --resume: settings that may differ from the run's, separated by commas",
             .more = "As in precision,train.lr"},
            {"quiet", 'q', CLI_FLAG, .help = "print warnings and errors only"},
            {"json", .kind = CLI_FLAG, .help = "print the result as one JSON object"},
            {"profile", .kind = CLI_FLAG, .help = "with several ranks: time how gradients are exchanged",
             .more =
                 "Printed for the last update, bucket by bucket, with the share that was hidden behind the backward "
                 "pass"},
        },
    .examples =
        {
            {"mixt train data.path=photos/", "a folder of images: model and sizes are chosen for it"},
            {"mixt train configs/digits.yaml", "the small convolutional net on digits that mixt draws itself"},
            {"mixt train configs/mnist.yaml data.path=mnist precision=fp16 out=runs/fp16",
             "other data, another number format, a run directory of your choice"},
            {"mixt train my.yaml init=resnet50/ init_new_head=fc train.freeze='conv1,bn1,layer1'",
             "fine-tune: pretrained weights, a new head, the first layers frozen"},
            {"mixt train --resume runs/fp16 train.epochs=20 train.lr=1e-4 --allow train.lr",
             "continue a run, for longer and with a smaller learning rate"},
            {"mixt train configs/gpt.yaml data.path=FILE train.steps=200 train.batch=4 --json",
             "a short run for a script"},
        },
    .see_also = "eval|predict|generate|verify|export|plan|config",
    .run = run,
};
