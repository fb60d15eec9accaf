/* What the oracles of gru and rnn share: sums over the state, with the error that is carried from step to step.
 *
 * The state that is multiplied, and the gradients that flow back, are the stored ones: each adds a rounding to the
 * operands' format (`low`). */
#ifndef MIXT_TESTS_ORACLE_RECURRENT_H
#define MIXT_TESTS_ORACLE_RECURRENT_H

#include "oracle/oracle.h"

typedef struct flow { // a number on its way through the steps, with its error
    double value, error;
} flow;

typedef struct recurrent_sizes {
    int64_t batch, steps, hidden, rows; // rows: of weight_hh
    double low;                         // roundoff of the operands' format; 0 for FP32
} recurrent_sizes;

recurrent_sizes recurrent_sizes_of(const test_case *c, const test_tensor *sequence, const test_tensor *weight);

/** start + Σ weight[i·stride] · x[i], n of them; e: the error of x; x NULL: zeros. */
flow recurrent_sum(const recurrent_sizes *s, double start, const double *weight, int64_t stride, const double *x,
                   const double *e, int64_t n);

/** Adds what a step of one sequence adds to grad_weight_hh: `grad`, of each row's product, times the state before. */
void recurrent_weight_grad(test_case *c, const recurrent_sizes *s, int64_t step, const flow *grad);

#endif
