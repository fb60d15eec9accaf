/* What the kernels of a classifier's head share: its loss as a step over logits that lie in the workspace. */
#ifndef MIXT_BACKEND_CPU_HEAD_H
#define MIXT_BACKEND_CPU_HEAD_H

#include "backend/cpu/cross_entropy.h"

typedef struct mixt__head {
    const mixt__call *call;
    int64_t rows, classes, inputs;
    const void *x, *w; // (rows, inputs), (classes, inputs): both in the format of the call's inputs 0 and 1
    const float *bias; // (classes); NULL: none
    bool relu;
    float *logits; // (rows, classes)
    mixt__tensor in[3], out[3];
    mixt__call loss;          // cross_entropy_step
    mixt__loss_halves halves; // for mixt__loss_begin
} mixt__head;

/** Fills `head`, which then points into itself. At plan time the pointers to data are NULL. */
void mixt__head_describe(const mixt__call *call, mixt__head *head);
/** Bytes for the loss and the logits. */
size_t mixt__head_workspace(const mixt__head *head);

#endif
