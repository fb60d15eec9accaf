/* A profile as tables and as JSON. */
#include "cli/profile.h"

#include "cli/run_dir.h"
#include "cli/table.h"

#include <math.h>
#include <string.h>

static const char *const work_names[CLI_WORK_COUNT] = {
    "products", "attention", "convolution", "recurrent", "norms", "pointwise", "loss", "other", "optimizer",
};

/** What a kind of work adds up to. */
typedef struct sum {
    double seconds, flops, bytes, bound; // bound: seconds that the device's limits alone would take
    int64_t ops;
} sum;

static sum sum_of(const cli_profile *p, cli_work work)
{
    sum s = {0};
    for (int64_t i = 0; i < p->count; i++) {
        const cli_profile_row *r = &p->rows[i];
        if (r->work != work)
            continue;
        s.seconds += r->seconds;
        s.flops += r->flops;
        s.bytes += r->bytes;
        s.bound += p->limits && r->seconds > 0 ? cli_profile_share(p, r) * r->seconds : 0;
        s.ops++;
    }
    return s;
}

/** Share of the matrix FLOPs that ran on Tensor Cores; NaN when there are none. */
static double tensor_share(const cli_profile *p)
{
    double all = 0, tensor = 0;
    for (int64_t i = 0; i < p->count; i++) {
        all += p->rows[i].matrix ? p->rows[i].flops : 0;
        tensor += p->rows[i].tensor_cores ? p->rows[i].flops : 0;
    }
    return all > 0 ? tensor / all : (double)NAN;
}

static void rate_cells(cli_table *table, double seconds, double flops, double bytes)
{
    cli_table_cell(table, "%.1f", 1e6 * seconds);
    cli_table_cell(table, "%.1f", seconds > 0 ? flops / seconds / 1e9 : 0.0);
    cli_table_cell(table, "%.1f", seconds > 0 ? bytes / seconds / 1e9 : 0.0);
}

static void print_ops(const cli_profile *p)
{
    cli_table table = {0};
    cli_table_column(&table, "layer", CLI_LEFT);
    cli_table_column(&table, "op", CLI_LEFT);
    cli_table_column(&table, "kernel", CLI_LEFT);
    cli_table_column(&table, "us", CLI_RIGHT);
    cli_table_column(&table, "GFLOP/s", CLI_RIGHT);
    cli_table_column(&table, "GB/s", CLI_RIGHT);
    if (p->limits) {
        cli_table_column(&table, "of limit", CLI_RIGHT);
        cli_table_column(&table, "units", CLI_LEFT);
    }
    for (int64_t i = 0; i < p->count; i++) {
        const cli_profile_row *r = &p->rows[i];
        cli_table_cell(&table, "%s%s", r->layer, r->backward ? " (backward)" : "");
        cli_table_cell(&table, "%s", r->op);
        cli_table_cell(&table, "%s", r->kernel);
        rate_cells(&table, r->seconds, r->flops, r->bytes);
        if (p->limits) {
            cli_table_cell(&table, "%.1f%%", 100 * cli_profile_share(p, r));
            cli_table_cell(&table, "%s%s", r->tensor_cores ? "Tensor Cores, " : "",
                           r->tensor_cores ? mixt_dtype_name(r->format) : "");
        }
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

static void print_kinds(const cli_profile *p)
{
    cli_table table = {0};
    cli_table_column(&table, "work", CLI_LEFT);
    cli_table_column(&table, "ops", CLI_RIGHT);
    cli_table_column(&table, "of step", CLI_RIGHT);
    cli_table_column(&table, "us", CLI_RIGHT);
    cli_table_column(&table, "GFLOP/s", CLI_RIGHT);
    cli_table_column(&table, "GB/s", CLI_RIGHT);
    if (p->limits)
        cli_table_column(&table, "of limit", CLI_RIGHT);
    for (cli_work w = 0; w < CLI_WORK_COUNT; w++) {
        sum s = sum_of(p, w);
        if (!s.ops)
            continue;
        cli_table_cell(&table, "%s", work_names[w]);
        cli_table_cell(&table, "%lld", (long long)s.ops);
        cli_table_cell(&table, "%.1f%%", 100 * s.seconds / p->seconds);
        rate_cells(&table, s.seconds, s.flops, s.bytes);
        if (p->limits)
            cli_table_cell(&table, "%.1f%%", 100 * s.bound / s.seconds);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

void cli_profile_print(const cli_profile *p)
{
    print_ops(p);
    putchar('\n');
    print_kinds(p);
    printf("%.3f ms in %lld ops, one by one", 1e3 * p->seconds, (long long)p->count);
    if (p->limits && !isnan(tensor_share(p)))
        printf("; %.1f%% of matrix FLOPs on Tensor Cores", 100 * tensor_share(p));
    putchar('\n');
}

static json_t *row_json(const cli_profile *p, const cli_profile_row *r)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:f, s:f, s:f}", "layer", r->layer, "op", r->op, "kernel",
                          r->kernel, "work", work_names[r->work], "backward", r->backward, "dtype",
                          mixt_dtype_name(r->format), "seconds", r->seconds, "flops", r->flops, "bytes", r->bytes);
    if (p->limits) {
        json_object_set_new(o, "limit_share", cli_json_real(cli_profile_share(p, r)));
        json_object_set_new(o, "tensor_cores", json_boolean(r->tensor_cores));
    }
    return o;
}

json_t *cli_profile_json(const cli_profile *p)
{
    json_t *ops = json_array(), *work = json_object();
    for (int64_t i = 0; i < p->count; i++)
        json_array_append_new(ops, row_json(p, &p->rows[i]));
    for (cli_work w = 0; w < CLI_WORK_COUNT; w++) {
        sum s = sum_of(p, w);
        if (!s.ops)
            continue;
        json_t *o = json_pack("{s:I, s:f, s:f, s:f, s:f}", "ops", (json_int_t)s.ops, "seconds", s.seconds, "share",
                              s.seconds / p->seconds, "flops", s.flops, "bytes", s.bytes);
        if (p->limits)
            json_object_set_new(o, "limit_share", cli_json_real(s.bound / s.seconds));
        json_object_set_new(work, work_names[w], o);
    }
    json_t *all = json_pack("{s:f, s:o, s:o}", "seconds", p->seconds, "work", work, "ops", ops);
    if (p->limits)
        json_object_set_new(all, "tensor_core_share", cli_json_real(tensor_share(p)));
    return all;
}
