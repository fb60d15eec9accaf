/* Nodes of a compiled step, as lines, a table and JSON. */
#include "cli/plan_nodes.h"

#include "cli/json.h"
#include "cli/table.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>

/* ---- text ---- */

static void write_line(void *user, int64_t index, const char *line)
{
    enum { NAMES = 51 }; // number, pass, layer and op stand in columns
    FILE *stream = user;
    (void)index;
    if (!cli_is_terminal(stream) || cli_text_width(line) <= cli_columns(stream)) {
        fprintf(stream, "%s\n", line);
        return;
    }
    int names = NAMES + (int)strcspn(line + NAMES, " ");
    fprintf(stream, "%.*s ", names, line);
    cli_wrap(stream, line + names, names + 1, 8, cli_columns(stream));
}

void cli_plan_graph_print(const mixt_trainer *trainer, const char *layer)
{
    (void)mixt_plan_text(trainer, layer, write_line, stdout);
}

/** The formats that a node reads or writes, each once: "bf16,fp32". */
static void format_list(const mixt_trainer *trainer, int64_t index, int count, bool output, char text[64])
{
    bool seen[MIXT_DTYPE_COUNT] = {false};
    text[0] = 0;
    for (int i = 0, used = 0; i < count && used < 64; i++) {
        mixt_plan_value v = {0};
        (void)(output ? mixt_plan_output : mixt_plan_input)(trainer, index, i, &v);
        if (!seen[v.dtype])
            used += snprintf(text + used, 64 - (size_t)used, "%s%s", used ? "," : "", mixt_dtype_name(v.dtype));
        seen[v.dtype] = true;
    }
}

/** What a node reads and writes: "bf16,fp32 > bf16". */
static void formats_cell(cli_table *table, const mixt_trainer *trainer, int64_t index, const mixt_plan_node *n)
{
    char in[64], out[64];
    format_list(trainer, index, n->inputs, false, in);
    format_list(trainer, index, n->outputs, true, out);
    cli_table_cell(table, "%s > %s", in, out);
}

/** What decided its formats, then why better kernels were refused. */
static void why_cell(cli_table *table, const mixt_trainer *trainer, int64_t index, const mixt_plan_node *n)
{
    char text[2048], *why = NULL;
    (void)mixt_plan_explain(trainer, index, &why);
    snprintf(text, sizeof text, "%s", why ? why : "");
    mixt_free(why);
    for (int i = 0; i < n->refusals; i++) {
        const char *kernel = "", *reason = "";
        size_t used = strlen(text);
        (void)mixt_plan_refusal(trainer, index, i, &kernel, &reason);
        snprintf(text + used, sizeof text - used, "; not %s: %s", kernel, reason);
    }
    cli_table_cell_styled(table, CLI_PLAIN, text);
}

void cli_plan_nodes_print(const mixt_trainer *trainer, const char *layer)
{
    cli_table table = {0};
    cli_table_column(&table, "layer", CLI_LEFT);
    cli_table_column(&table, "op", CLI_LEFT);
    cli_table_column(&table, "kernel", CLI_LEFT);
    cli_table_column(&table, "formats", CLI_LEFT);
    cli_table_column(&table, "MFLOP", CLI_RIGHT);
    cli_table_column(&table, "why", CLI_LEFT);
    for (int64_t i = 0; (i = mixt_plan_next(trainer, layer, i)) >= 0; i++) {
        mixt_plan_node n;
        (void)mixt_plan_node_at(trainer, i, &n);
        cli_table_cell(&table, "%s%s", n.layer, n.recomputed ? " (again)" : n.backward ? " (backward)" : "");
        cli_table_cell(&table, "%s", n.op);
        cli_table_cell(&table, "%s", n.kernel);
        formats_cell(&table, trainer, i, &n);
        cli_table_cell(&table, "%.2f", n.flops / 1e6);
        why_cell(&table, trainer, i, &n);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

/* ---- JSON ---- */

static json_t *json_values(const mixt_trainer *trainer, int64_t index, int count, bool output)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        mixt_plan_value v = {0};
        (void)(output ? mixt_plan_output : mixt_plan_input)(trainer, index, i, &v);
        cli_json_add(list, cli_json_string(mixt_dtype_name(v.dtype)));
    }
    return list;
}

static json_t *json_refusals(const mixt_trainer *trainer, int64_t index, int count)
{
    json_t *list = json_object();
    for (int i = 0; i < count; i++) {
        const char *kernel = "", *reason = "";
        (void)mixt_plan_refusal(trainer, index, i, &kernel, &reason);
        cli_json_set(list, kernel, cli_json_string(reason));
    }
    return list;
}

json_t *cli_plan_nodes_json(const mixt_trainer *trainer, const char *layer)
{
    json_t *list = json_array();
    for (int64_t i = 0; (i = mixt_plan_next(trainer, layer, i)) >= 0; i++) {
        mixt_plan_node n;
        mixt_plan_value out = {0};
        char *why = NULL;
        (void)mixt_plan_explain(trainer, i, &why);
        (void)mixt_plan_node_at(trainer, i, &n);
        (void)mixt_plan_output(trainer, i, 0, &out);
        json_t *o = cli_json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:f}", "layer", n.layer, "op", n.op, "kernel",
                                  n.kernel, "backward", n.backward, "dtype", mixt_dtype_name(out.dtype), "arithmetic",
                                  mixt_dtype_name(n.arithmetic), "flops", n.flops);
        cli_json_set(o, "recomputed", json_boolean(n.recomputed));
        cli_json_set(o, "index", json_integer((json_int_t)i));
        cli_json_set(o, "work", cli_json_string(mixt_work_name(n.work)));
        cli_json_set(o, "bytes", cli_json_real(n.bytes));
        cli_json_set(o, "reads", json_values(trainer, i, n.inputs, false));
        cli_json_set(o, "writes", json_values(trainer, i, n.outputs, true));
        cli_json_set(o, "why", why ? cli_json_string(why) : json_null());
        mixt_free(why);
        if (n.rule >= 0)
            cli_json_set(o, "rule", json_integer((json_int_t)n.rule));
        cli_json_set(o, "refused", json_refusals(trainer, i, n.refusals));
        cli_json_add(list, o);
    }
    return list;
}
