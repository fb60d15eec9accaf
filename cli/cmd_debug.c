/* mixt debug: one training step looked into. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/support.h"
#include "cli/table.h"
#include "cli/watch.h"

#include <mixt/debug.h>
#include <mixt/plan.h>
#include <mixt/run.h>

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS = 20 }; // shown unasked

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

/* ---- as JSON ---- */

static json_t *value_json(const mixt_debug_value *v)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "layer", v->layer, "op", v->op, "pass",
                          v->backward ? "backward" : "forward", "gradient_of", v->name, "format",
                          mixt_dtype_name(v->dtype), "count", (json_int_t)v->count, "zeros", (json_int_t)v->zeros,
                          "nan", (json_int_t)v->nan, "inf", (json_int_t)v->inf);
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"mean", v->mean},
                   {"std", v->std},
                   {"min", v->min},
                   {"max", v->max},
                   {"amax", v->amax},
                   {"margin", v->margin},
                   {"tiny", v->tiny},
                   {"beyond_fp16", v->beyond_fp16},
                   {"flushed_fp16", v->flushed_fp16}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        json_object_set_new(o, numbers[i].name, cli_json_real(numbers[i].value));
    return o;
}

static json_t *issues_json(const mixt_debug *d, mixt_debug_kind kind)
{
    json_t *list = json_array();
    const mixt_debug_issue *issue;
    for (int64_t i = 0; (issue = mixt_debug_issue_at(d, i)); i++)
        if (issue->kind == kind) {
            const mixt_debug_value *v = mixt_debug_value_at(d, issue->value);
            json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "layer", v ? v->layer : "", "text", issue->text,
                                                  "remedy", issue->remedy));
        }
    return list;
}

static void print_json(const mixt_debug *d, const char *layer)
{
    mixt_debug_info info = mixt_debug_describe(d);
    const mixt_debug_value *v, *first = mixt_debug_value_at(d, info.first_nonfinite);
    json_t *o =
        json_pack("{s:I, s:o, s:o, s:o}", "step", (json_int_t)info.step.step, "loss", cli_json_real(info.step.loss),
                  "loss_scale", cli_json_real(info.step.scale), "grad_norm", cli_json_real(info.step.grad_norm));
    json_object_set_new(o, "first_nonfinite",
                        first ? json_pack("{s:I, s:s, s:s, s:s}", "step", (json_int_t)info.step.step, "pass",
                                          first->backward ? "backward" : "forward", "layer", first->layer, "op",
                                          first->op)
                              : json_null());
    json_object_set_new(o, "bad_parameter", *info.source ? json_string(info.source) : json_null());
    json_object_set_new(o, "gradient_issues", issues_json(d, MIXT_DEBUG_GRADIENT));
    json_object_set_new(o, "precision_issues", issues_json(d, MIXT_DEBUG_PRECISION));
    json_t *remedies = json_array(), *tensors = json_array();
    for (int64_t i = 0; i < info.issues; i++)
        json_array_append_new(
            remedies, json_sprintf("%s: %s", mixt_debug_issue_at(d, i)->text, mixt_debug_issue_at(d, i)->remedy));
    for (int64_t i = 0; (v = mixt_debug_value_at(d, i)); i++)
        if (!layer || !fnmatch(layer, v->layer, 0))
            json_array_append_new(tensors, value_json(v));
    json_object_set_new(o, "recommendations", remedies);
    json_object_set_new(o, "tensors", tensors);
    json_dumpf(o, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(o);
}

/* ---- for people ---- */

static void add_row(cli_table *t, const mixt_debug_value *v)
{
    cli_table_cell(t, "%s", *v->name ? v->name : v->layer);
    cli_table_cell(t, "%s", v->op);
    cli_table_cell(t, "%s", v->backward ? "back" : "forw");
    cli_table_cell(t, "%s", mixt_dtype_name(v->dtype));
    cli_table_cell(t, "%.3g", v->amax);
    cli_table_cell(t, "%.3g", v->mean);
    cli_table_cell(t, "%.3g", v->std);
    cli_table_cell(t, "%.1f%%", v->count ? 100 * (double)v->zeros / (double)v->count : 0);
    cli_table_cell(t, "%lld", (long long)(v->nan + v->inf));
    cli_table_cell(t, "%.0f", v->margin);
}

/** By what is left to an overflow: the least first, what overflowed before all. */
static int by_margin(const void *x, const void *y)
{
    const mixt_debug_value *a = *(const mixt_debug_value *const *)x, *b = *(const mixt_debug_value *const *)y;
    bool bad_a = a->nan + a->inf > 0, bad_b = b->nan + b->inf > 0;
    if (bad_a != bad_b)
        return bad_a ? -1 : 1;
    return (a->margin > b->margin) - (a->margin < b->margin);
}

static void print_values(const mixt_debug *d, const char *layer)
{
    static const char *const heads[] = {"value of", "made by", "pass", "format", "largest",
                                        "mean",     "std",     "zero", "bad",    "bits left"};
    int64_t values = mixt_debug_describe(d).values, count = 0;
    const mixt_debug_value **shown = malloc((size_t)(values + 1) * sizeof *shown);
    cli_table t = {0};
    for (int i = 0; i < 10; i++)
        cli_table_column(&t, heads[i], i < 4 ? CLI_LEFT : CLI_RIGHT);
    for (int64_t i = 0; shown && i < values; i++)
        if (!layer || !fnmatch(layer, mixt_debug_value_at(d, i)->layer, 0))
            shown[count++] = mixt_debug_value_at(d, i);
    if (shown && !layer)
        qsort(shown, (size_t)count, sizeof *shown, by_margin);
    for (int64_t i = 0; i < count && (layer || i < ROWS); i++)
        add_row(&t, shown[i]);
    cli_table_print(&t, stdout, 0);
    if (!layer && count > ROWS)
        printf("the %d of %lld values that are nearest to an overflow; --layer '*' shows all, in order\n", ROWS,
               (long long)count);
    cli_table_free(&t);
    free(shown);
}

static void print_text(const mixt_debug *d, const char *layer)
{
    mixt_debug_info info = mixt_debug_describe(d);
    printf("step %lld: loss %g, gradient norm %g, loss scale %g%s\n\n", (long long)info.step.step,
           isnan(info.step.loss) ? (double)NAN : info.step.loss,
           isnan(info.step.grad_norm) ? (double)NAN : info.step.grad_norm, info.step.scale,
           info.step.skipped ? "; the update was skipped" : "");
    for (int64_t i = 0; i < info.issues; i++) {
        cli_line(stdout, "  ", "%s", mixt_debug_issue_at(d, i)->text);
        cli_line(stdout, "    ", "-> %s", mixt_debug_issue_at(d, i)->remedy);
    }
    if (!info.issues)
        printf("nothing is wrong with the numbers of this step\n");
    putchar('\n');
    print_values(d, layer);
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
        print_json(debug, layer);
    else if (status == MIXT_OK)
        print_text(debug, layer);
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
        "Inf, and how many powers of two are left before its format overflows. It names the first op that made a "
        "number that is not finite, apart from all that only passed it on, gradients that are 0 everywhere, and values "
        "in FP16 that are near its ends, each with what to do. Nothing is written; the run stays as it is.\n\n"
        "Gradients are shown as the step makes them, multiplied by the loss scale. Values that fused kernels keep in "
        "registers are not seen; MIXT_FUSION=0 shows them.",
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
             .help = "show the values of these layers, in order: 'h.0.*'"},
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
