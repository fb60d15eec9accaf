/* Frozen parameters of a plan, by the format that they are kept in. */
#include "cli/plan_frozen.h"

#include "cli/json.h"
#include "cli/support.h"
#include "cli/table.h"

#include <mixt/plan.h>

/** The next format from `format` on that some are kept in; NONE: no other. */
static mixt_dtype next(const mixt_trainer *trainer, int format, mixt_plan_frozen *frozen)
{
    for (; format < MIXT_DTYPE_COUNT; format++)
        if (mixt_plan_frozen_in(trainer, (mixt_dtype)format, frozen) == MIXT_OK && frozen->parameters)
            return (mixt_dtype)format;
    return MIXT_DTYPE_NONE;
}

void cli_plan_frozen_print(const mixt_trainer *trainer)
{
    char text[32];
    mixt_plan_frozen f;
    mixt_dtype format = next(trainer, MIXT_DTYPE_NONE + 1, &f);
    cli_table table = {0};
    if (format == MIXT_DTYPE_NONE)
        return;
    cli_table_column(&table, "frozen", CLI_LEFT);
    cli_table_column(&table, "parameters", CLI_RIGHT);
    cli_table_column(&table, "numbers", CLI_RIGHT);
    cli_table_column(&table, "bytes", CLI_RIGHT);
    cli_table_column(&table, "", CLI_RIGHT);
    cli_table_column(&table, "", CLI_LEFT);
    for (; format != MIXT_DTYPE_NONE; format = next(trainer, (int)format + 1, &f)) {
        cli_table_cell(&table, "%s", mixt_dtype_name(format));
        cli_table_cell(&table, "%lld", (long long)f.parameters);
        cli_table_cell(&table, "%lld", (long long)f.numbers);
        cli_table_cell(&table, "%zu", f.bytes);
        cli_table_cell(&table, "%s", cli_format_bytes(text, (double)f.bytes));
        if (f.scales)
            cli_table_cell(&table, "weights of linear layers and embeddings, with %lld scales", (long long)f.scales);
        else
            cli_table_cell(&table, "%s", "in the format that kernels read");
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
    putchar('\n');
}

json_t *cli_plan_frozen_json(const mixt_trainer *trainer)
{
    mixt_plan_frozen f;
    json_t *list = json_array();
    for (mixt_dtype format = next(trainer, MIXT_DTYPE_NONE + 1, &f); format != MIXT_DTYPE_NONE;
         format = next(trainer, (int)format + 1, &f))
        cli_json_add(list, cli_json_pack("{s:s, s:I, s:I, s:I, s:I}", "format", mixt_dtype_name(format), "parameters",
                                         (json_int_t)f.parameters, "numbers", (json_int_t)f.numbers, "scales",
                                         (json_int_t)f.scales, "bytes", (json_int_t)f.bytes));
    return list;
}
