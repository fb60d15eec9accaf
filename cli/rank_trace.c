/* A trace of communication as a table and as JSON. */
#include "cli/rank_trace.h"

#include "cli/json.h"
#include "cli/table.h"

#include <mixt/ranks.h>

#include <stdio.h>

/** Seconds of a bucket's sum that went by before the pass ended. */
static double hidden_of(const mixt_rank_trace *t, const mixt_rank_bucket *b)
{
    double end = b->ended < t->pass ? b->ended : t->pass;
    return end > b->begun ? end - b->begun : 0;
}

static void print_buckets(const mixt_run *run, const mixt_rank_trace *t)
{
    static const char *const heads[] = {"bucket", "bytes", "ready ms", "start ms", "ended ms", "hidden ms"};
    mixt_rank_bucket b;
    cli_table table = {0};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        cli_table_column(&table, heads[i], CLI_RIGHT);
    double sums = 0, hidden = 0;
    for (int64_t i = 0; i < t->buckets && mixt_run_rank_bucket(run, i, &b) == MIXT_OK; i++) {
        cli_table_cell(&table, "%lld", (long long)i + 1);
        cli_table_cell(&table, "%lld", (long long)b.bytes);
        cli_table_cell(&table, "%.3f", 1e3 * b.ready);
        cli_table_cell(&table, "%.3f", 1e3 * b.begun);
        cli_table_cell(&table, "%.3f", 1e3 * b.ended);
        cli_table_cell(&table, "%.3f", 1e3 * hidden_of(t, &b));
        sums += b.ended - b.begun;
        hidden += hidden_of(t, &b);
    }
    printf("communication of the last update, from the start of its last pass, which took %.3f ms\n", 1e3 * t->pass);
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
    printf("%.3f ms of %.3f ms of sums overlap with it\n", 1e3 * hidden, 1e3 * sums);
}

void cli_rank_trace_print(const mixt_run *run)
{
    mixt_rank_trace t;
    if (mixt_run_rank_trace(run, &t) != MIXT_OK) {
        puts("communication: none, there is one process");
        return;
    }
    if (t.buckets)
        print_buckets(run, &t);
    printf("communication of all updates: %lld bytes sent by this rank; sums took %.3f s, %.1f%% of it hidden behind "
           "the backward pass\n",
           (long long)t.sent, t.seconds, 100 * t.hidden);
}

json_t *cli_rank_trace_json(const mixt_run *run)
{
    mixt_rank_trace t;
    mixt_rank_bucket b;
    if (mixt_run_rank_trace(run, &t) != MIXT_OK)
        return NULL;
    json_t *rows = json_array();
    for (int64_t i = 0; i < t.buckets && mixt_run_rank_bucket(run, i, &b) == MIXT_OK; i++)
        cli_json_add(rows, cli_json_pack("{s:I, s:f, s:f, s:f, s:f}", "bytes", (json_int_t)b.bytes, "ready", b.ready,
                                         "begun", b.begun, "ended", b.ended, "hidden", hidden_of(&t, &b)));
    return cli_json_pack("{s:I, s:f, s:f, s:f, s:f, s:o}", "sent", (json_int_t)t.sent, "seconds", t.seconds, "waited",
                         t.waited, "hidden", t.hidden, "pass", t.pass, "buckets", rows);
}
