/* mixt train: trains a model as a configuration says. */
#include "cli/commands.h"

#include "cli/interchange.h"
#include "cli/resume.h"
#include "cli/table.h"
#include "cli/train_loop.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>

static void print_summary(const cli_experiment *e, const cli_run_dir *dir, const cli_train_result *r)
{
    char bytes[32], time[32], rate[32];
    cli_table table = {0};
    cli_table_column(&table, "", CLI_LEFT);
    cli_table_column(&table, "", CLI_LEFT);
    cli_table_cell(&table, "updates");
    cli_table_cell(&table, "%lld%s%s", (long long)r->steps, r->interrupted ? ", stopped by a signal" : "",
                   r->stopped_early ? ", stopped early: validation no longer improves" : "");
    if (r->skipped) {
        cli_table_cell(&table, "skipped");
        cli_table_cell(&table, "%lld (gradients not finite)", (long long)r->skipped);
    }
    cli_table_cell(&table, "time");
    cli_table_cell(&table, "%s, %s %s/s", cli_format_duration(time, r->seconds),
                   cli_format_count(rate, r->samples_s * (double)e->items_per_sample), e->item);
    cli_table_cell(&table, "memory");
    cli_table_cell(&table, "%s planned, %s allocated", cli_format_bytes(bytes, (double)r->memory.total),
                   cli_format_bytes(time, (double)r->memory.allocated));
    if (!isnan(r->energy)) {
        cli_table_cell(&table, "energy");
        cli_table_cell(&table, "%s J, %.0f W on average", cli_format_count(rate, r->energy), r->energy / r->seconds);
    }
    cli_table_cell(&table, "loss");
    cli_table_cell(&table, "%.4f", r->loss);
    if (!isnan(r->val_loss)) {
        cli_table_cell(&table, "validation");
        if (isnan(r->val_accuracy))
            cli_table_cell(&table, "loss %.4f", r->val_loss);
        else
            cli_table_cell(&table, "loss %.4f, accuracy %.2f%%", r->val_loss, 100 * r->val_accuracy);
    }
    cli_table_cell(&table, "run");
    cli_table_cell(&table, "%s", dir->path);
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

static void print_json(const cli_run_dir *dir, const cli_train_result *r)
{
    json_t *o = json_pack("{s:s, s:I, s:I, s:b, s:b}", "run", dir->path, "steps", (json_int_t)r->steps, "skipped",
                          (json_int_t)r->skipped, "interrupted", r->interrupted, "stopped_early", r->stopped_early);
    json_object_set_new(o, "loss", cli_json_real(r->loss));
    json_object_set_new(o, "accuracy", cli_json_real(r->accuracy));
    json_object_set_new(o, "val_loss", cli_json_real(r->val_loss));
    json_object_set_new(o, "val_accuracy", cli_json_real(r->val_accuracy));
    json_object_set_new(o, "seconds", json_real(r->seconds));
    json_object_set_new(o, "samples_s", json_real(r->samples_s));
    json_object_set_new(o, "memory_planned", json_integer((json_int_t)r->memory.total));
    json_object_set_new(o, "memory_allocated", json_integer((json_int_t)r->memory.allocated));
    json_object_set_new(o, "checkpoints_lost", json_integer(r->checkpoints_lost));
    if (!isnan(r->energy))
        json_object_set_new(o, "energy", json_real(r->energy));
    json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(o);
}

/** Validation that can never be, or in larger batches than training's: better refused now than after the first epoch.
 */
static mixt_status check_validation(const cli_experiment *e)
{
    mixt__trainer *t = &e->trainer->core;
    if (mixt__config_int(e->config, MIXT_KEY_TRAIN_EARLY_STOP) && !e->val)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "train.early_stop needs a validation part, which the data has not: set data.val_fraction");
    if (!e->val || t->settings.eval_batch <= t->settings.batch)
        return MIXT_OK;
    return mixt__trainer_check_evaluation(t, e->val);
}

/** A new run directory, or the old one and the trainer as a checkpoint left them. */
static mixt_status begin(cli_experiment *e, mixt_config *config, cli_resume *resume, bool quiet, cli_run_dir *dir)
{
    if (!resume) {
        MIXT_TRY(cli_init(e, quiet));
        return cli_run_dir_create(dir, config, mixt_data_describe(e->train)->kind);
    }
    MIXT_TRY(cli_resume_restore(resume, e, config, dir));
    if (!resume->checkpoint)
        MIXT_TRY(cli_init(e, quiet));
    if (quiet)
        return MIXT_OK;
    if (resume->checkpoint)
        fprintf(stderr, "%s goes on from %s\n", resume->run, resume->checkpoint->folder);
    else
        fprintf(stderr, "%s has no checkpoint yet and begins anew\n", resume->run);
    return MIXT_OK;
}

static mixt_status train(const cli_args *args, mixt_config *config, cli_resume *resume)
{
    cli_experiment e = {0};
    cli_run_dir dir = {0};
    cli_train_result result = {0};
    bool quiet = cli_flag(args, "quiet") || cli_flag(args, "json");
    mixt_status status = resume && cli_flag(args, "json") ? cli_json_name(resume->run) : MIXT_OK;
    if (status == MIXT_OK && resume)
        status = cli_resume_choose(resume, config);
    if (status == MIXT_OK)
        status = cli_experiment_open(&e, config);
    if (status == MIXT_OK)
        status = check_validation(&e);
    if (status == MIXT_OK)
        status = begin(&e, config, resume, quiet, &dir);
    if (status == MIXT_OK)
        status = cli_train_loop(&e, &dir, quiet, resume && resume->checkpoint ? &resume->state : NULL, &result);
    if (status == MIXT_OK)
        status = cli_metrics_flush(&dir.metrics);
    if (status == MIXT_OK) {
        if (cli_flag(args, "json"))
            print_json(&dir, &result);
        else if (!cli_flag(args, "quiet"))
            print_summary(&e, &dir, &result);
    }
    if (status != MIXT_OK && !result.steps)
        cli_run_dir_discard(&dir);
    cli_run_dir_close(&dir);
    cli_experiment_close(&e);
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config = NULL;
    cli_resume resume = {0};
    const char *file = cli_word(args, 0), *run_path = cli_given(args, "resume") ? cli_text(args, "resume") : NULL;
    if (!file == !run_path)
        return cli_usage(args->command,
                         file ? "--resume takes the configuration of the run: leave %s out"
                              : "missing argument CONFIG: a YAML file, or a run with --resume RUN",
                         file ? file : "");
    if (run_path && !*run_path)
        return cli_usage(args->command, "--resume needs the name of a run directory");
    signal(SIGPIPE, SIG_IGN); // who reads the result may be gone when it comes: that is a message then, not an end
    int status = run_path ? cli_resume_open(&resume, args, run_path, &config) : cli_config(args, file, &config);
    if (status == CLI_OK && train(args, config, run_path ? &resume : NULL) != MIXT_OK)
        status = cli_failed();
    cli_resume_close(&resume);
    mixt_config_free(config);
    return status;
}

const cli_command cli_train = {
    .name = "train",
    .summary = "train a model as a configuration says",
    .description =
        "Reads CONFIG, applies the settings given after it, and trains. The run directory ('out') then holds the "
        "resolved configuration (config.yaml), a row of metrics every train.log_every updates (metrics.jsonl) and the "
        "final weights (model.safetensors), which eval, predict, generate and export read. A run directory that exists "
        "already is refused: nothing is overwritten. config.yaml names data by absolute path and a policy file is "
        "copied beside it, so that the run can be evaluated from any folder.\n\n"
        "Ctrl-C and SIGTERM stop after the current step, save a checkpoint and leave a usable run directory. A run "
        "that fails before its first step leaves none; one of which no update can be applied ends with status 1.\n\n"
        "Checkpoints lie in RUN/checkpoints/step-NNNNNNNN, made as train.checkpoint_every and train.checkpoint_minutes "
        "say; the newest train.keep and the one with the best validation loss are kept, and --checkpoint lets eval, "
        "predict, generate and export use them. --resume RUN goes on from the newest one that is whole, bit for bit as "
        "if the run had never stopped. Saving runs beside training: a save "
        "that is due while another is written waits for it, and checkpoint_stall in metrics.jsonl says how long "
        "training stood still. One that cannot be saved does not end the run: the first of them is told at once, their "
        "number at the end (checkpoints_lost with --json).\n\n"
        "At a resume, train.steps, train.epochs, train.early_stop, out, data.threads and how often to log, validate "
        "and save may be changed; device and threads too, with other bits than before; the rest is refused. A schedule "
        "that falls over the whole run is then that of the new length. A run that ended without a checkpoint cannot go "
        "on: begin a new one with init=RUN. While a finished run goes on, model.safetensors is that of before and is "
        "refused as final weights.",
    .arguments =
        {
            {"CONFIG", CLI_ARGUMENT_FILE, .optional = true,
             .help = "YAML file of the run; 'mixt help config' lists the keys. Needed unless a run is resumed"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in train.lr=0.01"},
        },
    .options =
        {
            {"resume", 'r', CLI_TEXT, "RUN", .help = "go on with this run directory from its newest checkpoint"},
            {"quiet", 'q', CLI_FLAG, .help = "no progress line, no table: only errors"},
            {"json", .kind = CLI_FLAG, .help = "print the result as one JSON object on standard output"},
        },
    .examples =
        {
            {"mixt train configs/digits.yaml", "the conv net on digits that mixt draws itself"},
            {"mixt train configs/mnist.yaml data.path=mnist precision=fp16 out=runs/fp16",
             "another format, another folder"},
            {"mixt train configs/gpt.yaml data.path=FILE train.steps=200 train.batch=4 --json",
             "a short run for a script"},
            {"mixt train my.yaml init=resnet50/ init_new_head=fc train.freeze='conv1,bn1,layer1'",
             "fine-tune: torchvision's weights, a new head, the first layers as they are"},
            {"mixt train --resume runs/fp16 train.epochs=20", "go on with a run that was stopped, and for longer"},
        },
    .see_also = "eval|predict|generate|verify|export|plan|config",
    .run = run,
};
