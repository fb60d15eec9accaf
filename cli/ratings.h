/* What eval and predict say about models of ratings. */
#ifndef MIXT_CLI_RATINGS_H
#define MIXT_CLI_RATINGS_H

#include "cli/table.h"

#include <jansson.h>
#include <mixt/tasks/ratings.h>
#include <mixt/run.h>

/** Whether samples are ratings of items by users. */
bool cli_is_ratings(const mixt_data_info *info);

/** How a run ranks what a part holds out; of the training part, or of another set, nothing. */
mixt_status cli_ratings_rank(mixt_run *run, const char *split, const mixt_data *data, mixt_ranking *ranking);
/** ", hit rate 12.50%, NDCG 0.0731 among 100"; "" where nothing was ranked. */
const char *cli_ratings_text(const mixt_ranking *ranking, char text[128]);

/** "user:NAME": the name; NULL for any other INPUT. */
const char *cli_ratings_user(const char *input);
/** The items that a user would like most, as a row of the table or a line of JSON. @param table NULL: JSON */
mixt_status cli_ratings_show_top(mixt_run *run, const char *user, int64_t top, cli_table *table);

/** Names of a sample's user and item into an object of JSON. @param input one sample, as mixt_data_read gives it */
void cli_ratings_names(const mixt_data *data, int64_t batch, const void *input, int64_t number, json_t *object);

#endif
