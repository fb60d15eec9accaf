/* The rows of layers.jsonl for a page. */
#ifndef MIXT_PAGE_LAYERS_DATA_H
#define MIXT_PAGE_LAYERS_DATA_H

#include "page/rows_read.h"

enum { MIXT_PAGE_LAYER_ROWS = 1000 };

/** An array of rows; empty where the run has none. Of a long run, rows that follow each other are put together until
 *  about MIXT_PAGE_LAYER_ROWS are left: the worst of each number stands for them, so that nothing that is wrong is
 * lost.
 *  @param damage receives what was left out */
mixt_status mixt__page_layers(const char *folder, json_t **rows, mixt__page_damage *damage);

#endif
