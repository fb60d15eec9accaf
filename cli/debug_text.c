/* A look into a step for people: what is wrong, where it comes from, how errors grow, single values. */
#include "cli/debug_print.h"

#include "cli/support.h"
#include "cli/table.h"
#include "cli/words.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS = 20, ISSUES = 12, BAR = 40 }; // shown unasked: values, issues; letters of the longest bar

/* ---- single numbers ---- */

/** A share as percent: small ones with as many digits as they need. */
static void share_cell(cli_table *t, double share)
{
    if (isnan(share))
        cli_table_cell(t, "-");
    else if (share != 0 && share < 0.001)
        cli_table_cell(t, "%.1g%%", 100 * share);
    else
        cli_table_cell(t, "%.1f%%", 100 * share);
}

static void error_cell(cli_table *t, double error)
{
    if (isnan(error))
        cli_table_cell(t, "-");
    else if (isinf(error))
        cli_table_cell(t, "lost");
    else
        cli_table_cell(t, "%.2g%%", 100 * error);
}

static void heads(cli_table *t, const char *const *names, int count, int left)
{
    for (int i = 0; i < count; i++)
        cli_table_column(t, names[i], i < left ? CLI_LEFT : CLI_RIGHT);
}

/* ---- what is wrong ---- */

static void print_inputs(const mixt_debug_origin *from, FILE *stream)
{
    static const char *const names[] = {"it read", "format", "largest", "mean", "std", "zero", "NaN", "Inf"};
    cli_table t = {0};
    heads(&t, names, 8, 2);
    for (int i = 0; i < from->input_count; i++) {
        const mixt_debug_value *v = &from->inputs[i];
        const char *who = *v->layer ? v->layer : v->name;
        cli_table_cell(&t, "%s%s%s", v->op, *v->layer ? " of " : *who ? " " : "", who);
        cli_table_cell(&t, "%s", mixt_dtype_name(v->dtype));
        cli_table_cell(&t, "%.3g", v->amax);
        cli_table_cell(&t, "%.3g", v->mean);
        cli_table_cell(&t, "%.3g", v->std);
        share_cell(&t, v->count ? (double)v->zeros / (double)v->count : 0);
        cli_table_cell(&t, "%lld", (long long)v->nan);
        cli_table_cell(&t, "%lld", (long long)v->inf);
    }
    cli_table_print(&t, stream, 4);
    cli_table_free(&t);
    if (from->fused)
        cli_line(stream, "    ",
                 "in training this op is part of a larger kernel; it was found by running each op by itself");
}

static void print_issues(const mixt_debug *d, FILE *stream)
{
    mixt_debug_info info = mixt_debug_describe(d);
    const mixt_debug_origin *from = mixt_debug_origin_of(d);
    const mixt_debug_issue *issue;
    bool shown = false;
    for (int64_t i = 0; i < ISSUES && (issue = mixt_debug_issue_at(d, i)); i++) {
        cli_line(stream, "  ", "%s", issue->text);
        cli_line(stream, "    ", "-> %s", issue->remedy);
        if (from && !shown && issue->kind == MIXT_DEBUG_NONFINITE && issue->value >= 0) {
            print_inputs(from, stream);
            shown = true;
        }
    }
    if (info.issues > ISSUES)
        fprintf(stream, "  and %lld more, which --json lists\n", (long long)(info.issues - ISSUES));
    if (!info.issues)
        fprintf(stream, "nothing is wrong with the numbers of this step\n");
    if (*info.why_not)
        cli_line(stream, "  ", "not compared with FP32: %s", info.why_not);
    fputc('\n', stream);
}

/* ---- formats, layers ---- */

static void bytes_cell(cli_table *t, int64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double size = (double)bytes;
    int unit = 0;
    for (; size >= 1024 && unit < 4; unit++)
        size /= 1024;
    cli_table_cell(t, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

static void print_use(const mixt_debug *d, FILE *stream)
{
    static const char *const names[] = {"format", "ops", "values", "numbers", "bytes", "weights", "bytes"};
    const mixt_debug_use *u;
    cli_table t = {0};
    heads(&t, names, 7, 1);
    for (int64_t i = 0; (u = mixt_debug_use_at(d, i)); i++) {
        cli_table_cell(&t, "%s", mixt_dtype_name(u->dtype));
        cli_table_cell(&t, "%lld", (long long)u->ops);
        cli_table_cell(&t, "%lld", (long long)u->values);
        cli_table_cell(&t, "%lld", (long long)u->numbers);
        bytes_cell(&t, u->value_bytes);
        cli_table_cell(&t, "%lld", (long long)u->parameters);
        bytes_cell(&t, u->parameter_bytes);
    }
    cli_table_print(&t, stream, 0);
    cli_table_free(&t);
    fputc('\n', stream);
}

static void side_cells(cli_table *t, const mixt_debug_side *s)
{
    error_cell(t, s->values ? s->error : NAN);
    share_cell(t, s->values ? s->flushed : NAN);
}

/** How the error against FP32 grows from layer to layer, forward and back. */
static void print_layers(const mixt_debug *d, FILE *stream)
{
    static const char *const names[] = {"layer", "error forward", "became 0", "error backward", "became 0", ""};
    const mixt_debug_layer *l;
    cli_table t = {0};
    if (!mixt_debug_describe(d).shadow)
        return;
    heads(&t, names, 6, 1);
    t.aligns[5] = CLI_LEFT;
    for (int64_t i = 0; (l = mixt_debug_layer_at(d, i)); i++) {
        if (isnan(l->forward.error) && isnan(l->backward.error))
            continue;
        cli_table_cell(&t, "%s", l->name);
        side_cells(&t, &l->forward);
        side_cells(&t, &l->backward);
        cli_table_cell(&t, "%s", l->blame >= 2 ? "<- overflows" : l->jumps ? "<- jumps" : "");
    }
    cli_table_print(&t, stream, 0);
    fprintf(stream, "errors: difference to an FP32 pass, relative to its values\n\n");
    cli_table_free(&t);
}

/* ---- values ---- */

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
    error_cell(t, v->error);
    share_cell(t, v->flushed);
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

static void print_values(const mixt_debug *d, const char *layer, FILE *stream)
{
    static const char *const names[] = {"value of", "made by", "pass", "format",    "largest", "mean",
                                        "std",      "zero",    "bad",  "bits left", "error",   "became 0"};
    int64_t values = mixt_debug_describe(d).values, count = 0;
    const mixt_debug_value **shown = malloc((size_t)(values + 1) * sizeof *shown);
    if (!shown)
        cli_output_lose();
    cli_table t = {0};
    heads(&t, names, 12, 4);
    for (int64_t i = 0; shown && i < values; i++)
        if (!layer || !fnmatch(layer, mixt_debug_value_at(d, i)->layer, 0))
            shown[count++] = mixt_debug_value_at(d, i);
    if (shown && !layer)
        qsort(shown, (size_t)count, sizeof *shown, by_margin);
    for (int64_t i = 0; i < count && (layer || i < ROWS); i++)
        add_row(&t, shown[i]);
    cli_table_print(&t, stream, 0);
    if (!layer && count > ROWS)
        fprintf(stream, "the %d of %lld values closest to an overflow; --layer '*' shows all, in order\n", ROWS,
                (long long)count);
    cli_table_free(&t);
    free(shown);
}

/** A bar for each power of two that occurs. */
static void print_exponents(const mixt_debug_value *v, FILE *stream)
{
    int64_t most = 1;
    int first = 0, last = -1;
    for (int e = 1; e < MIXT_DEBUG_EXPONENTS - 1; e++)
        if (v->exponents[e]) {
            first = first ? first : e;
            last = e;
            most = v->exponents[e] > most ? v->exponents[e] : most;
        }
    fprintf(stream, "\n%s: %s\n", v->tensor, mixt_dtype_name(v->dtype));
    for (int e = first; e <= last; e++) {
        int length = (int)((BAR * v->exponents[e] + most - 1) / most);
        fprintf(stream, "  2^%-4d %6.2f%% ", e - 127, 100 * (double)v->exponents[e] / (double)v->count);
        for (int i = 0; i < length; i++)
            fputc('#', stream);
        fputc('\n', stream);
    }
    if (v->zeros)
        fprintf(stream, "  0      %6.2f%%\n", 100 * (double)v->zeros / (double)v->count);
    if (v->nan + v->inf)
        fprintf(stream, "  NaN, Inf %lld\n", (long long)(v->nan + v->inf));
}

void cli_debug_text(const mixt_debug *d, const char *layer, const char *checkpoint, FILE *stream)
{
    mixt_debug_info info = mixt_debug_describe(d);
    const mixt_debug_value *v;
    char full[40] = "";
    if (!isnan(info.full_loss))
        snprintf(full, sizeof full, " (%g in FP32)", info.full_loss);
    fprintf(stream, "step %lld: loss %g%s, gradient norm %g, loss scale %g%s\n\n", (long long)info.step.step,
            isnan(info.step.loss) ? (double)NAN : info.step.loss, full,
            isnan(info.step.grad_norm) ? (double)NAN : info.step.grad_norm, info.step.scale,
            info.step.skipped ? "; the update was skipped" : "");
    if (*checkpoint)
        fprintf(stream, "replayed from %s\n\n", checkpoint);
    print_issues(d, stream);
    if (!layer) {
        print_use(d, stream);
        print_layers(d, stream);
    }
    print_values(d, layer, stream);
    for (int64_t i = 0; layer && (v = mixt_debug_value_at(d, i)); i++)
        if (v->count && !fnmatch(layer, v->layer, 0))
            print_exponents(v, stream);
}
