/* A profile as tables and as JSON. */
#include "cli/profile.h"

#include "cli/json.h"
#include "cli/table.h"

#include <math.h>

static void rate_cells(cli_table *table, double seconds, double flops, double bytes)
{
    cli_table_cell(table, "%.1f", 1e6 * seconds);
    cli_table_cell(table, "%.1f", seconds > 0 ? flops / seconds / 1e9 : 0.0);
    cli_table_cell(table, "%.1f", seconds > 0 ? bytes / seconds / 1e9 : 0.0);
}

static void print_ops(const mixt_profile *p, const mixt_profile_info *info)
{
    cli_table table = {0};
    cli_table_column(&table, "layer", CLI_LEFT);
    cli_table_column(&table, "op", CLI_LEFT);
    cli_table_column(&table, "kernel", CLI_LEFT);
    cli_table_column(&table, "us", CLI_RIGHT);
    cli_table_column(&table, "GFLOP/s", CLI_RIGHT);
    cli_table_column(&table, "GB/s", CLI_RIGHT);
    if (info->limits) {
        cli_table_column(&table, "of limit", CLI_RIGHT);
        cli_table_column(&table, "units", CLI_LEFT);
    }
    for (int64_t i = 0; i < info->rows; i++) {
        const mixt_profile_row *r = mixt_profile_at(p, i);
        cli_table_cell(&table, "%s%s", r->layer, r->recomputed ? " (again)" : r->backward ? " (backward)" : "");
        cli_table_cell(&table, "%s", r->op);
        cli_table_cell(&table, "%s", r->kernel);
        rate_cells(&table, r->seconds, r->flops, r->bytes);
        if (info->limits) {
            cli_table_cell(&table, "%.1f%%", 100 * r->limit_share);
            cli_table_cell(&table, "%s%s", r->tensor_cores ? "Tensor Cores, " : "",
                           r->tensor_cores ? mixt_dtype_name(r->format) : "");
        }
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

static void print_kinds(const mixt_profile *p, const mixt_profile_info *info)
{
    cli_table table = {0};
    cli_table_column(&table, "work", CLI_LEFT);
    cli_table_column(&table, "ops", CLI_RIGHT);
    cli_table_column(&table, "of step", CLI_RIGHT);
    cli_table_column(&table, "us", CLI_RIGHT);
    cli_table_column(&table, "GFLOP/s", CLI_RIGHT);
    cli_table_column(&table, "GB/s", CLI_RIGHT);
    if (info->limits)
        cli_table_column(&table, "of limit", CLI_RIGHT);
    for (int w = 0; w < MIXT_WORK_COUNT; w++) {
        mixt_profile_sum s = mixt_profile_work(p, (mixt_work)w);
        if (!s.ops)
            continue;
        cli_table_cell(&table, "%s", mixt_work_name((mixt_work)w));
        cli_table_cell(&table, "%lld", (long long)s.ops);
        cli_table_cell(&table, "%.1f%%", 100 * s.seconds / info->seconds);
        rate_cells(&table, s.seconds, s.flops, s.bytes);
        if (info->limits)
            cli_table_cell(&table, "%.1f%%", 100 * s.limit_share);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

void cli_profile_print(const mixt_profile *p)
{
    mixt_profile_info info = mixt_profile_describe(p);
    print_ops(p, &info);
    putchar('\n');
    print_kinds(p, &info);
    printf("%.3f ms in %lld ops, one by one", 1e3 * info.seconds, (long long)info.rows);
    if (info.limits && !isnan(info.tensor_cores))
        printf("; %.1f%% of matrix FLOPs on Tensor Cores", 100 * info.tensor_cores);
    putchar('\n');
}

static json_t *row_json(const mixt_profile_row *r, bool limits)
{
    json_t *o = cli_json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:f, s:f, s:f}", "layer", r->layer, "op", r->op, "kernel",
                              r->kernel, "work", mixt_work_name(r->work), "backward", r->backward, "dtype",
                              mixt_dtype_name(r->format), "seconds", r->seconds, "flops", r->flops, "bytes", r->bytes);
    cli_json_set(o, "recomputed", json_boolean(r->recomputed));
    if (limits) {
        cli_json_set(o, "limit_share", cli_json_real(r->limit_share));
        cli_json_set(o, "tensor_cores", json_boolean(r->tensor_cores));
    }
    return o;
}

json_t *cli_profile_json(const mixt_profile *p)
{
    mixt_profile_info info = mixt_profile_describe(p);
    json_t *ops = json_array(), *work = json_object();
    for (int64_t i = 0; i < info.rows; i++)
        cli_json_add(ops, row_json(mixt_profile_at(p, i), info.limits));
    for (int w = 0; w < MIXT_WORK_COUNT; w++) {
        mixt_profile_sum s = mixt_profile_work(p, (mixt_work)w);
        if (!s.ops)
            continue;
        json_t *o = cli_json_pack("{s:I, s:f, s:f, s:f, s:f}", "ops", (json_int_t)s.ops, "seconds", s.seconds, "share",
                                  s.seconds / info.seconds, "flops", s.flops, "bytes", s.bytes);
        if (info.limits)
            cli_json_set(o, "limit_share", cli_json_real(s.limit_share));
        cli_json_set(work, mixt_work_name((mixt_work)w), o);
    }
    json_t *all = cli_json_pack("{s:f, s:o, s:o}", "seconds", info.seconds, "work", work, "ops", ops);
    if (info.limits)
        cli_json_set(all, "tensor_core_share", cli_json_real(info.tensor_cores));
    return all;
}
