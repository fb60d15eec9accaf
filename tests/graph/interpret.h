/* Evaluates a graph in FP64 with the op oracles, node by node, whatever formats its values carry. */
#ifndef MIXT_TESTS_INTERPRET_H
#define MIXT_TESTS_INTERPRET_H

#include "graph/graph.h"

typedef struct interpretation {
    const mixt__graph *graph;
    double **value; // by value id; parameters of all formats share one array
    double **param; // by parameter, borrowed
} interpretation;

/** `param` has one array a parameter; `input` and `target` belong to the graph's well-known values; seed is 1. */
interpretation *interpretation_new(const mixt__graph *graph, double **param, const double *input, const double *target);
/** Computes everything again from parameters and inputs; false, with a message, when a node cannot be evaluated. */
bool interpretation_run(interpretation *x);
void interpretation_free(interpretation *x);

#endif
