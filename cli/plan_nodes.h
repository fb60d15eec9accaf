/* What a step computes node by node, for mixt plan. */
#ifndef MIXT_CLI_PLAN_NODES_H
#define MIXT_CLI_PLAN_NODES_H

#include <jansson.h>

#include <mixt/mixt.h>

/** The graph, a line a node; on a terminal what does not fit goes on below. @param layer only nodes of these layers;
 *  NULL: all */
void cli_plan_graph_print(const mixt_trainer *trainer, const char *layer);
/** One line a node: kernel, formats, FLOPs, and why that is so. */
void cli_plan_nodes_print(const mixt_trainer *trainer, const char *layer);
/** The same. */
json_t *cli_plan_nodes_json(const mixt_trainer *trainer, const char *layer);

#endif
