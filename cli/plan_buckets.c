/* What batches are padded to, for mixt plan. */
#include "cli/plan_buckets.h"

#include "cli/json.h"
#include "cli/support.h"
#include "cli/table.h"

#include <stdio.h>

static int64_t count_samples(const mixt_run *run)
{
    int64_t samples = 0;
    mixt_run_bucket b;
    for (int64_t i = 0; i < mixt_run_buckets(run) && mixt_run_get_bucket(run, i, &b) == MIXT_OK; i++)
        samples += b.samples;
    return samples;
}

static void add_row(cli_table *table, const mixt_run_bucket *b, int64_t samples)
{
    char text[32];
    for (int x = 0; x < 2 && b->names[x]; x++)
        cli_table_cell(table, "%lld", (long long)b->lengths[x]);
    cli_table_cell(table, "%.1f%%", 100 * (double)b->samples / (double)samples);
    cli_table_cell(table, "%lld", (long long)b->updates);
    cli_table_cell(table, "%zu", b->activations);
    cli_table_cell(table, "%s", cli_format_bytes(text, (double)b->activations));
}

void cli_plan_buckets_print(const mixt_run *run)
{
    mixt_run_bucket b;
    cli_table table = {0};
    double without, with;
    int64_t samples = count_samples(run);
    if (!mixt_run_buckets(run) || mixt_run_get_bucket(run, 0, &b) != MIXT_OK ||
        mixt_run_padding(run, &without, &with) != MIXT_OK)
        return;
    for (int x = 0; x < 2 && b.names[x]; x++)
        cli_table_column(&table, b.names[x], CLI_RIGHT);
    cli_table_column(&table, "samples", CLI_RIGHT);
    cli_table_column(&table, "updates", CLI_RIGHT);
    cli_table_column(&table, "activations", CLI_RIGHT);
    cli_table_column(&table, "", CLI_RIGHT);
    for (int64_t i = 0; i < mixt_run_buckets(run) && mixt_run_get_bucket(run, i, &b) == MIXT_OK; i++)
        add_row(&table, &b, samples);
    putchar('\n');
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
    cli_line(stdout, "",
             "batches are padded to these lengths, and all share the memory of the largest; %.0f%% of the elements are "
             "padding, with one length (data.buckets=1) it would be %.0f%%",
             100 * with, 100 * without);
}

json_t *cli_plan_buckets_json(const mixt_run *run)
{
    mixt_run_bucket b;
    double without = 0, with = 0;
    if (!mixt_run_buckets(run) || mixt_run_padding(run, &without, &with) != MIXT_OK)
        return json_null();
    json_t *list = json_array();
    for (int64_t i = 0; i < mixt_run_buckets(run) && mixt_run_get_bucket(run, i, &b) == MIXT_OK; i++) {
        json_t *lengths = json_object();
        for (int x = 0; x < 2 && b.names[x]; x++)
            cli_json_set(lengths, b.names[x], json_integer((json_int_t)b.lengths[x]));
        cli_json_add(list, cli_json_pack("{s:o, s:I, s:I, s:I, s:I}", "lengths", lengths, "samples",
                                         (json_int_t)b.samples, "updates", (json_int_t)b.updates, "activations",
                                         (json_int_t)b.activations, "workspace", (json_int_t)b.workspace));
    }
    return cli_json_pack("{s:o, s:f, s:f}", "steps", list, "padding", with, "padding_without", without);
}
