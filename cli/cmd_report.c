/* mixt report: runs as a page to look at in a browser. */
#include "cli/commands.h"

#include "cli/support.h"

#include <mixt/page.h>

#include <string.h>

static int run(const cli_args *args)
{
    const char *out = cli_text(args, "out");
    mixt_page_options options = MIXT_OPTIONS(mixt_page_options, .overwrite = cli_flag(args, "overwrite"));
    if (cli_output_check(args, out) != MIXT_OK)
        return cli_failed();
    if (mixt_page_write((const char *const *)args->settings, args->setting_count, out, &options) != MIXT_OK)
        return cli_failed();
    return CLI_OK;
}

const cli_command cli_report_command = {
    .name = "report",
    .summary = "write an HTML page about runs",
    .description =
        "One HTML file that opens in any browser: curves of loss, accuracy, gradient norm, loss scale, speed and "
        "memory "
        "with alerts and decisions marked on them, tables of figures with their trend, what happened and why, and what "
        "to do about it. Several runs are drawn over each other.\n\n"
        "The file needs no network and no other file. It holds every row: a spike of one update is visible at any "
        "zoom, and zooming in (drag over a chart) shows single updates. Runs that are still training, and runs with "
        "damaged or missing files, can be shown too; the page says what is missing.",
    .arguments = {{"RUN", CLI_ARGUMENT_FILES, .help = "run directories, 1 to 1000"}},
    .options =
        {
            {"out", 'o', CLI_TEXT, "FILE", .required = true, .help = "page to write, report.html"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace FILE if it exists"},
        },
    .examples =
        {
            {"mixt report runs/a --out report.html", "one run"},
            {"mixt report runs/* --out all.html --overwrite", "all runs on one page"},
        },
    .see_also = "plot|train",
    .run = run,
};
