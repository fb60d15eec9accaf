/* The rows of layers.jsonl for a page. */
#ifndef MIXT_PAGE_LAYERS_DATA_H
#define MIXT_PAGE_LAYERS_DATA_H

#include <jansson.h>
#include <stdint.h>

enum { MIXT_PAGE_LAYER_ROWS = 1000 };

/** An array of rows; empty where the run has none. Of a long run, rows that follow each other are put together until
 *  about MIXT_PAGE_LAYER_ROWS are left: the worst of each number stands for them, so that nothing that is wrong is
 * lost.
 *  @param damaged receives how many were left out, and the number of the first such line */
json_t *mixt__page_layers(const char *folder, int64_t *damaged, int64_t *first);

#endif
