/* mixt debug: one training step looked into. */
#include "cli/commands.h"

#include "cli/debug_print.h"
#include "cli/progress.h"
#include "cli/support.h"
#include "cli/watch.h"

#include <mixt/debug.h>
#include <mixt/plan.h>
#include <mixt/run.h>

#include <math.h>

/** A configuration's run at its start, or a directory's where a checkpoint left it: the newest before the update that
 *  is wanted. */
static mixt_status open_run(const cli_args *args, mixt_run **run)
{
    const char *path = cli_word(args, 0);
    mixt_run_options options =
        MIXT_OPTIONS(mixt_run_options, .settings = (const char *const *)args->settings, .observer = cli_warn);
    options.before = cli_int(args, "step");
    return cli_is_folder(path) ? mixt_run_resume_with(path, &options, run) : mixt_run_open_with(path, &options, run);
}

/** Before the work is shown: a name that no layer has is a mistake. */
static mixt_status check_layer(mixt_run *run, const char *layer)
{
    if (!layer || mixt_plan_next(mixt_run_trainer(run), layer, 0) >= 0)
        return MIXT_OK;
    return mixt_fail(MIXT_ERROR_ARGUMENT, "--layer '%s': no layer has such a name; mixt plan --graph lists all", layer);
}

/** Makes updates up to the one before `wanted`; where that takes more than a second, a line says how far they are. */
static mixt_status replay(mixt_run *run, int64_t wanted)
{
    int64_t first = mixt_trainer_steps(mixt_run_trainer(run)), at = first;
    double began = cli_time_now();
    bool shown = false;
    cli_progress progress;
    cli_progress_info info = {.steps = wanted - 1, .epoch = 1, .epochs = 1, .part = "replay"};
    info.loss = info.accuracy = info.items_s = info.scale = NAN;
    mixt_status status = mixt_run_advance(run, first);
    while (status == MIXT_OK && at + 1 < wanted) {
        status = mixt_run_advance(run, ++at);
        info.step = at;
        if (!shown && cli_time_now() - began > 1) {
            cli_progress_start(&progress, stderr, false, at);
            shown = true;
        }
        if (shown)
            cli_progress_update(&progress, &info);
    }
    if (shown)
        cli_progress_finish(&progress, &info);
    return status;
}

static mixt_status look(const cli_args *args, mixt_run *run, mixt_debug **debug)
{
    mixt_debug_options options = MIXT_OPTIONS(mixt_debug_options, .overwrite = cli_flag(args, "overwrite"));
    mixt_data *data;
    if (cli_given(args, "dump"))
        options.dump = cli_text(args, "dump");
    if (cli_given(args, "out"))
        options.folder = cli_text(args, "out");
    if (options.dump && !options.folder)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--dump '%s' needs --out DIR, where the files go", options.dump);
    CLI_TRY(mixt_run_data(run, "train", &data));
    CLI_TRY(replay(run, cli_int(args, "step")));
    return mixt_debug_step_with(mixt_run_trainer(run), data, &options, debug);
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
        cli_debug_json(debug, layer, mixt_run_describe(opened).checkpoint, stdout);
    else if (status == MIXT_OK)
        cli_debug_text(debug, layer, mixt_run_describe(opened).checkpoint, stdout);
    mixt_debug_free(debug);
    mixt_run_close(opened);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_debug_command = {
    .name = "debug",
    .summary = "inspect one training step: NaN, Inf, lost gradients",
    .description =
        "Runs one update with the kernels and bits of training and checks every value: which op first made NaN or Inf, "
        "which gradients vanish, explode or are 0, which values are close to the limits of their format, and what to "
        "do about it. A run is not changed.\n\n"
        "It is the first update of a configuration, or the next update of a run from its newest checkpoint; --step N "
        "repeats update N of a run, from the newest checkpoint before it or from the beginning, with the same batches "
        "and bits as in training.\n\n"
        "The table shows mean, deviation, range, zeros, NaN and Inf of each value, and the headroom: how many powers "
        "of two are left before its format overflows. An FP32 pass over the same batch shows how errors grow from "
        "layer to layer, forward and backward, where they jump, and what became 0.\n\n"
        "For a number that is not finite it names the first op that made it, with that op's inputs, and leaves out the "
        "ops that only passed it on; or the parameter, the sample or the loss scale that had it before. Nothing is "
        "written except what --dump asks for.\n\n"
        "Gradients are shown multiplied by the loss scale, as the step computes them. Values inside fused kernels are "
        "not in the table, but an op inside of one is named where it is the first to fail.",
    .arguments =
        {
            {"CONFIG|RUN", CLI_ARGUMENT_FILE, .help = "YAML file of a run, or a run directory"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file"},
        },
    .options =
        {
            {"step", .kind = CLI_INT, .metavar = "N", .fallback = "0", .min = 0, .max = 1e9,
             .help = "repeat update N of a run; 0: the next update"},
            {"layer", .kind = CLI_TEXT, .metavar = "GLOB",
             .help = "show the values of these layers with exponents: 'h.0.*'"},
            {"dump", .kind = CLI_TEXT, .metavar = "GLOB", .help = "write these values as .npy files",
             .more = "By their names: LAYER.OP.forward, PARAMETER.grad, PARAMETER"},
            {"out", 'o', CLI_TEXT, "DIR", .help = "folder for --dump"},
            {"overwrite", .kind = CLI_FLAG, .help = "let --dump replace files"},
            {"json", .kind = CLI_FLAG, .help = "print everything as one JSON object"},
        },
    .examples =
        {
            {"mixt debug configs/digits.yaml precision=fp16", "the first update"},
            {"mixt debug runs/a --step 4100", "update 4100 of a run, repeated"},
            {"mixt debug runs/a --layer '*attn*'", "attention layers in the next update of a run"},
            {"mixt debug runs/a --dump 'fc.*' --out values", "all values and weights of these layers as .npy files"},
        },
    .see_also = "sensitivity|plan|train",
    .run = run,
};
