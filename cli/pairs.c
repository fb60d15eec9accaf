/* Recall of pictures and captions, and the closest captions of a picture, through the library's functions. */
#include "cli/pairs.h"

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/support.h"

#include <stdlib.h>
#include <string.h>

bool cli_is_pairs(const mixt_data_info *info)
{
    return info->array_count == 5 && !strcmp(info->arrays[0].name, "picture") &&
           !strcmp(info->arrays[1].name, "caption");
}

mixt_status cli_pairs_measure(mixt_run *run, const mixt_data *data, mixt_recall *recall)
{
    *recall = (mixt_recall){0};
    if (!cli_is_pairs(mixt_data_describe(data)))
        return MIXT_OK;
    return mixt_pairs_recall(mixt_run_trainer(run), data, recall);
}

const char *cli_pairs_text(const mixt_recall *r, char text[192])
{
    text[0] = 0;
    if (r->pictures)
        snprintf(text, 192,
                 ", recall at 1 and 5: image to caption %.2f%% and %.2f%% of %lld, caption to image %.2f%% and %.2f%% "
                 "of %lld",
                 100 * r->captions_found[0], 100 * r->captions_found[1], (long long)r->captions,
                 100 * r->pictures_found[0], 100 * r->pictures_found[1], (long long)r->pictures);
    return text;
}

void cli_pairs_json(const mixt_recall *r, json_t *object)
{
    if (!r->pictures)
        return;
    cli_json_set(object, "pictures", json_integer(r->pictures));
    cli_json_set(object, "captions", json_integer(r->captions));
    cli_json_set(object, "captions_recall_1", cli_json_real(r->captions_found[0]));
    cli_json_set(object, "captions_recall_5", cli_json_real(r->captions_found[1]));
    cli_json_set(object, "pictures_recall_1", cli_json_real(r->pictures_found[0]));
    cli_json_set(object, "pictures_recall_5", cli_json_real(r->pictures_found[1]));
}

static void print_json(const char *input, const mixt_data_array *captions, int32_t own, const mixt_match *matches,
                       int64_t found)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < found; i++)
        cli_json_add(list, cli_json_pack("{s:s, s:o}", "caption", captions->names[matches[i].caption], "cosine",
                                         cli_json_real(matches[i].cosine)));
    json_t *o = cli_json_pack("{s:s, s:s, s:o}", "input", input, "label", captions->names[own], "captions", list);
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

static void print_row(const char *input, const mixt_data_array *captions, int32_t own, const mixt_match *matches,
                      int64_t found, cli_table *table)
{
    char rest[512] = "";
    size_t used = 0;
    for (int64_t i = 1; i < found && used < sizeof rest; i++)
        used += (size_t)snprintf(rest + used, sizeof rest - used, "%s%s %.3f", i > 1 ? ", " : "",
                                 captions->names[matches[i].caption], matches[i].cosine);
    cli_table_cell(table, "%s", input);
    cli_table_cell(table, "%s%s", captions->names[matches[0].caption], matches[0].caption == own ? "" : " (wrong)");
    cli_table_cell(table, "%s", captions->names[own]);
    cli_table_cell(table, "%.3f", matches[0].cosine);
    cli_table_cell(table, "%s", rest);
}

/** The captions that pictures have by themselves. */
static mixt_status read_own(const mixt_data *data, int64_t first, int64_t count, int32_t *own)
{
    void *input = malloc(mixt_data_input_bytes(data, 1));
    int64_t valid;
    mixt_status status = input ? MIXT_OK : mixt_fail(MIXT_ERROR_MEMORY, "no memory for an image");
    for (int64_t i = 0; status == MIXT_OK && i < count; i++)
        status = mixt_data_read(data, first + i, 1, input, own + i, &valid);
    free(input);
    return status;
}

mixt_status cli_pairs_show(mixt_run *run, const char *part, const mixt_data *data, int64_t first, int64_t end,
                           int64_t top, cli_table *table)
{
    const mixt_data_info *info = mixt_data_describe(data);
    int64_t count = end - first, found;
    mixt_match *matches = calloc((size_t)(count * top + 1), sizeof *matches);
    int32_t *own = calloc((size_t)(count + 1), sizeof *own);
    mixt_status status = matches && own ? MIXT_OK : mixt_fail(MIXT_ERROR_MEMORY, "no memory for captions");
    if (status == MIXT_OK)
        status = read_own(data, first, count, own);
    if (status == MIXT_OK)
        status = mixt_pairs_best(mixt_run_trainer(run), data, first, count, top, matches, &found);
    for (int64_t i = 0; status == MIXT_OK && i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s:%lld", part, (long long)(first + i));
        if (table)
            print_row(name, &info->arrays[4], own[i], matches + i * top, found, table);
        else
            print_json(name, &info->arrays[4], own[i], matches + i * top, found);
    }
    free(matches);
    free(own);
    return status;
}
