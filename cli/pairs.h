/* What eval and predict say of pictures with captions. */
#ifndef MIXT_CLI_PAIRS_H
#define MIXT_CLI_PAIRS_H

#include "cli/table.h"
#include "mixt/tasks/pairs.h"
#include "mixt/run.h"

#include <jansson.h>

bool cli_is_pairs(const mixt_data_info *info);
/** Recall both ways; zeros where the data has no captions. */
mixt_status cli_pairs_measure(mixt_run *run, const mixt_data *data, mixt_recall *recall);
/** ", picture to caption 90.1% (first), …"; "" where there is none. */
const char *cli_pairs_text(const mixt_recall *recall, char text[192]);
void cli_pairs_json(const mixt_recall *recall, json_t *object);
/** The closest captions of pictures [first, end) of a part. @param table NULL: as JSON lines */
mixt_status cli_pairs_show(mixt_run *run, const char *part, const mixt_data *data, int64_t first, int64_t end,
                           int64_t top, cli_table *table);

#endif
