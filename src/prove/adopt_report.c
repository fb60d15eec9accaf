/* An adoption as a page for people: where it stands, the figures of each stage, every decision and how to go back. */
#include "prove/adopt.h"

#include "base/status.h"
#include "store/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/** A number of a table; "-" where there is none. */
static void cell(FILE *out, const char *format, double value)
{
    fputs(" ", out);
    if (isnan(value))
        fputs("-", out);
    else if (*format == 'b')
        fprintf(out, "%.2f MiB", value / 1048576);
    else
        fprintf(out, *format == 'm' ? "%.3f ms" : "%.5g", *format == 'm' ? 1e3 * value : value);
    fputs(" |", out);
}

static void print_figures(const mixt_adoption *a, FILE *out)
{
    mixt_adopt_figure f;
    fputs("## What was measured\n\n| stage | what | loss | accuracy | per update | memory | "
          "|\n|---|---|---|---|---|---|---|\n",
          out);
    for (int64_t i = 0; mixt_adoption_figure(a, i, &f); i++) {
        fprintf(out, "| %s | %s |", mixt_adopt_stage_name(f.stage), f.name);
        cell(out, "loss", f.loss);
        cell(out, "accuracy", f.accuracy);
        cell(out, "ms", f.step_seconds);
        cell(out, "bytes", f.memory);
        fprintf(out, " %s |\n", f.note);
    }
}

static void print_history(const mixt_adoption *a, FILE *out)
{
    mixt_adopt_entry e;
    fputs("\n## What was decided\n\n", out);
    for (int64_t i = 0; mixt_adoption_entry(a, i, &e); i++)
        if (e.undo)
            fprintf(out, "- %s: **%s** was dropped.\n", e.time, mixt_adopt_stage_name(e.stage));
        else
            fprintf(out, "- %s: **%s**: %s: %s. Evidence: `%s`. Version %lld: `%s`, `%s`.\n", e.time,
                    mixt_adopt_stage_name(e.stage), e.decision, e.reason, e.evidence, (long long)e.version, e.config,
                    e.policy);
}

static void print(const mixt_adoption *a, FILE *out)
{
    mixt_adoption_info info = mixt_adoption_describe(a);
    fprintf(out, "# Mixed precision for %s: %s\n\n%lld of %d stages are done.", a->name,
            mixt_adopt_outcome_name(info.outcome), (long long)info.done, (int)MIXT_ADOPT_STAGES);
    if (a->current)
        fprintf(out, " Use now: `%s/adopted.yaml` (%s), policy `%s`.", a->folder, info.precision, info.policy);
    fputs("\n\n", out);
    print_figures(a, out);
    print_history(a, out);
    fprintf(out,
            "\n## How to undo\n\n`mixt adopt CONFIG --name %s --undo` drops the newest stage, `--from STAGE` repeats a "
            "stage and those after it.\nAll versions are kept: each configuration above can be used at any time.\n",
            a->name);
}

mixt_status mixt__adopt_report_write(const mixt_adoption *a, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a report");
    print(a, out);
    bool good = !ferror(out);
    if (fclose(out) || !good) {
        free(text);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a report");
    }
    mixt_status status = mixt__file_put(path, text, length, true);
    free(text);
    return status;
}
