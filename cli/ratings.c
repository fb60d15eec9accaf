/* Ranking figures and lists of the best items, through the library's functions. */
#include "cli/ratings.h"

#include "cli/cli.h"
#include "cli/json.h"
#include "cli/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool cli_is_ratings(const mixt_data_info *info)
{
    return info->array_count >= 3 && !strcmp(info->arrays[0].name, "user") && !strcmp(info->arrays[1].name, "item");
}

mixt_status cli_ratings_rank(mixt_run *run, const char *split, const mixt_data *data, mixt_ranking *ranking)
{
    mixt_data *train;
    *ranking = (mixt_ranking){.hit_rate = NAN, .ndcg = NAN};
    if (!cli_is_ratings(mixt_data_describe(data)) || (strcmp(split, "val") && strcmp(split, "test")))
        return MIXT_OK;
    CLI_TRY(mixt_run_data(run, "train", &train));
    return mixt_ratings_rank(mixt_run_trainer(run), train, data, NULL, ranking);
}

const char *cli_ratings_text(const mixt_ranking *r, char text[128])
{
    text[0] = 0;
    if (r->count)
        snprintf(text, 128, ", hit rate %.2f%%, NDCG %.4f (first 10 of %.4g)", 100 * r->hit_rate, r->ndcg, r->among);
    return text;
}

const char *cli_ratings_user(const char *input)
{
    return strncmp(input, "user:", 5) || cli_path_is_file(input) ? NULL : input + 5;
}

/** The number of a name; -1: there is none. */
static int64_t number_of(const mixt_data_array *array, const char *name)
{
    for (int64_t i = 0; array->names && i < array->ids; i++)
        if (!strcmp(array->names[i], name))
            return i;
    return -1;
}

static void print_json(const char *user, const mixt_data_array *items, const mixt_rated *best, int64_t found)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < found; i++)
        cli_json_add(list, cli_json_pack("{s:s, s:o}", "item", items->names[best[i].item], "rating",
                                         cli_json_real(best[i].rating)));
    json_t *o = cli_json_pack("{s:s, s:o}", "user", user, "items", list);
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

mixt_status cli_ratings_show_top(mixt_run *run, const char *user, int64_t top, cli_table *table)
{
    mixt_data *train;
    CLI_TRY(mixt_run_data(run, "train", &train));
    const mixt_data_info *info = mixt_data_describe(train);
    int64_t number = cli_is_ratings(info) ? number_of(&info->arrays[0], user) : -1, found;
    if (number < 0)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "user:%s: %s has no such user", user, info->path);
    mixt_rated *best = calloc((size_t)top, sizeof *best);
    if (!best)
        return mixt_fail(MIXT_ERROR_MEMORY, "no memory for a list of items");
    mixt_status status = mixt_ratings_top(mixt_run_trainer(run), train, number, top, best, &found);
    if (status == MIXT_OK && !table)
        print_json(user, &info->arrays[1], best, found);
    for (int64_t i = 0; status == MIXT_OK && table && i < found; i++) {
        cli_table_cell(table, "user:%s", user);
        cli_table_cell(table, "%.4f", best[i].rating);
        cli_table_cell(table, "%s", info->arrays[1].names[best[i].item]);
    }
    free(best);
    return status;
}

void cli_ratings_names(const mixt_data *data, int64_t batch, const void *input, int64_t number, json_t *object)
{
    const mixt_data_info *info = mixt_data_describe(data);
    for (int i = 0; i < info->array_count; i++) {
        const mixt_data_array *a = &info->arrays[i];
        const char *block = (const char *)input + mixt_data_array_at(data, batch, i);
        if (!a->names || a->target || a->elements != 1)
            continue;
        int32_t id = ((const int32_t *)(const void *)block)[number];
        json_t *name = cli_json_string(a->names[id]);
        cli_json_set(object, a->name, name ? name : json_integer(id));
    }
}
