/* What the nodes of a step do and move: for plans and profiles. */
#ifndef MIXT_INSPECT_NODES_H
#define MIXT_INSPECT_NODES_H

#include "graph/op.h"
#include "mixt/plan.h"

mixt_work mixt__node_work(const mixt__node *node);

/** Each input read and each output written once; an output that is added to is read too. */
double mixt__node_bytes(const mixt__graph *graph, const mixt__node *node);

#endif
