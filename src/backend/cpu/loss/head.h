/* What the kernels of a classifier's head share: its loss is a step over logits that lie in the workspace. */
#ifndef MIXT_BACKEND_CPU_LOSS_HEAD_H
#define MIXT_BACKEND_CPU_LOSS_HEAD_H

#include "backend/cpu/loss/cross_entropy.h"

typedef struct mixt__head {
    const mixt__call *call;
    int64_t rows, classes, inputs;
    const void *x, *w; // (rows, inputs), (classes, inputs): both in the format of the call's input 0
    const float *bias; // (classes); NULL: none
    bool relu;
    float *logits; // (rows, classes), in whose place their gradient is made
    mixt__tensor in[3], out[3];
    mixt__call loss;          // cross_entropy_step
    mixt__loss_halves halves; // for mixt__loss_begin
    float *grad_w, *grad_bias;
    bool add_w, add_bias; // to what stands there
} mixt__head;

/** Fills `head`, which then points into itself. At plan time the pointers to data are NULL. */
void mixt__head_describe(const mixt__call *call, mixt__head *head);
/** A kernel's prepare: workspace for the loss and the logits. */
mixt_status mixt__head_prepare(mixt__call *call, mixt__arena *arena);
/** The bias's gradient, if there is one, once those of all logits are made. */
void mixt__head_grad_bias(const mixt__head *head);

#endif
