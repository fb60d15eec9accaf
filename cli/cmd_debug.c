/* mixt debug: one training step looked into. */
#include "cli/commands.h"

#include "cli/debug_print.h"
#include "cli/support.h"
#include "cli/watch.h"

#include <mixt/debug.h>
#include <mixt/plan.h>
#include <mixt/run.h>

/** A configuration's run at its start, or a directory's where its newest checkpoint left it. */
static mixt_status open_run(const cli_args *args, mixt_run **run)
{
    const char *path = cli_word(args, 0);
    mixt_run_options options = {.settings = (const char *const *)args->settings, .observer = cli_warn};
    return cli_is_folder(path) ? mixt_run_resume_with(path, &options, run) : mixt_run_open_with(path, &options, run);
}

/** Before the work is shown: a name that no layer has is a mistake. */
static mixt_status check_layer(mixt_run *run, const char *layer)
{
    if (!layer || mixt_plan_next(mixt_run_trainer(run), layer, 0) >= 0)
        return MIXT_OK;
    return mixt_fail(MIXT_ERROR_ARGUMENT, "--layer '%s': no layer has such a name; mixt plan --graph lists all", layer);
}

/** Makes updates up to the one before `step`, then that one. */
static mixt_status look(const cli_args *args, mixt_run *run, mixt_debug **debug)
{
    mixt_trainer *trainer = mixt_run_trainer(run);
    mixt_data *data;
    mixt_step made = {0};
    int64_t wanted = cli_int(args, "step"), at = mixt_trainer_steps(trainer);
    CLI_TRY(mixt_run_data(run, "train", &data));
    if (wanted && wanted <= at)
        return mixt_fail(MIXT_ERROR_STATE, "--step %lld: the newest checkpoint has done %lld updates already",
                         (long long)wanted, (long long)at);
    for (; wanted && at + 1 < wanted; at++)
        CLI_TRY(mixt_trainer_step(trainer, data, &made));
    return mixt_debug_step(trainer, data, debug);
}

static int run(const cli_args *args)
{
    mixt_run *opened = NULL;
    mixt_debug *debug = NULL;
    const char *layer = cli_given(args, "layer") ? cli_text(args, "layer") : NULL;
    mixt_status status = open_run(args, &opened);
    if (status == MIXT_OK)
        status = check_layer(opened, layer);
    if (status == MIXT_OK)
        status = look(args, opened, &debug);
    if (status == MIXT_OK && cli_flag(args, "json"))
        cli_debug_json(debug, layer, stdout);
    else if (status == MIXT_OK)
        cli_debug_text(debug, layer, stdout);
    mixt_debug_free(debug);
    mixt_run_close(opened);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_debug_command = {
    .name = "debug",
    .summary = "look into one training step: every value, and what is wrong",
    .description =
        "Makes one update of a configuration, or the next one of a run from its newest checkpoint, with the same "
        "kernels and bits as training, and looks at every value that they make: mean, deviation, range, zeros, NaN and "
        "Inf, and how many powers of two are left before its format overflows. A pass in FP32 over the same batch "
        "shows "
        "how errors grow layer by layer, forward and backward, where they jump, and what became 0.\n\n"
        "It names the first op that made a number that is not finite, with what that op read, apart from all that only "
        "passed it on, or the parameter, the sample or the loss scale that held it before; gradients that are 0 "
        "everywhere, vanish or explode; values that are near the ends of their format; each with what to do. Nothing "
        "is written; the run stays as it is.\n\n"
        "Gradients are shown as the step makes them, multiplied by the loss scale. Values that fused kernels keep in "
        "registers are not in the table; an op inside of one is found all the same when it is the first to fail.",
    .arguments =
        {
            {"CONFIG|RUN", CLI_ARGUMENT_FILE, .help = "YAML file of a run, or a run directory"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file"},
        },
    .options =
        {
            {"step", .kind = CLI_INT, .metavar = "N", .fallback = "0", .min = 0, .max = 1e9,
             .help = "the update to look into, those before it are made; 0: the next"},
            {"layer", .kind = CLI_TEXT, .metavar = "GLOB",
             .help = "show the values of these layers, in order, with their exponents: 'h.0.*'"},
            {"json", .kind = CLI_FLAG, .help = "print all of it as one JSON object"},
        },
    .examples =
        {
            {"mixt debug configs/digits.yaml precision=fp16", "the first update"},
            {"mixt debug runs/a --layer '*attn*'", "attention in the update after the newest checkpoint"},
        },
    .see_also = "sensitivity|plan|train",
    .run = run,
};
