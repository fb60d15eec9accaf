/* One recurrent layer, forward and backward in FP32, by one candidate: for comparison with other systems' layers.
 *
 * Usage: cells CELL CANDIDATE BATCH STEPS HIDDEN DEVICE   (CELL: lstm, gru, rnn, rnn_relu; CANDIDATE as in mixt plan
 * --explain, or best)
 * Reads gates_x, weight_hh, for gru bias_hn, and grad_dst as FP32 from standard input, one after the other, and writes
 * dst, grad_gates_x, grad_weight_hh and for gru grad_bias_hn to standard output. Used by compare_cells.py.
 */
#include "backend/backend.h"
#include "base/alloc.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct kind {
    const char *name;
    const mixt__op *forward, *grad;
    int gates, saved; // saved: outputs behind dst
    bool relu;
} kind;

static const kind kinds[] = {
    {"lstm", &mixt__op_lstm, &mixt__op_lstm_grad, 4, 2, false},
    {"gru", &mixt__op_gru, &mixt__op_gru_grad, 3, 2, false},
    {"rnn", &mixt__op_rnn, &mixt__op_rnn_grad, 1, 0, false},
    {"rnn_relu", &mixt__op_rnn, &mixt__op_rnn_grad, 1, 0, true},
};

static mixt__device *device;

static int fail(const char *what)
{
    fprintf(stderr, "cells: %s: %s\n", what, mixt_error_text());
    exit(1);
}

static mixt__tensor tensor(int rank, const int64_t *dims)
{
    mixt__tensor t = {.dtype = MIXT_DTYPE_FP32, .shape = mixt__shape_of(rank, dims), .contiguous = true};
    mixt__shape_strides(&t.shape, t.strides);
    t.data = mixt__device_alloc(device, (size_t)mixt__shape_count(&t.shape) * sizeof(float));
    return t.data ? t : (fail("no memory"), t);
}

#define TENSOR(...) tensor((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static mixt__tensor input(mixt__tensor t)
{
    size_t count = (size_t)mixt__shape_count(&t.shape);
    float *host = malloc(count * sizeof *host);
    if (!host || fread(host, sizeof *host, count, stdin) != count ||
        mixt__device_upload(device, t.data, host, count * sizeof *host) != MIXT_OK)
        fail("reading standard input");
    free(host);
    return t;
}

static void output(const mixt__tensor *t)
{
    size_t count = (size_t)mixt__shape_count(&t->shape);
    float *host = malloc(count * sizeof *host);
    if (!host || mixt__device_download(device, host, t->data, count * sizeof *host) != MIXT_OK ||
        fwrite(host, sizeof *host, count, stdout) != count)
        fail("writing standard output");
    free(host);
}

static void run(const mixt__op *op, const char *candidate, mixt__call *call)
{
    const mixt__kernel *const *list = device->backend->kernels(op), *kernel = NULL;
    const char *reason = "";
    mixt__arena arena = {0};
    call->op = op;
    call->layer = "cells";
    call->arithmetic = MIXT_DTYPE_FP32;
    for (int k = 0; !kernel && list[k]; k++)
        if ((!strcmp(candidate, "best") || !strcmp(candidate, list[k]->name)) &&
            (!list[k]->supports || list[k]->supports(call, &reason)))
            kernel = list[k];
    if (!kernel) {
        fprintf(stderr, "cells: no candidate %s: %s\n", candidate, reason);
        exit(77);
    }
    if (kernel->prepare && kernel->prepare(call, &arena) != MIXT_OK)
        fail("preparing");
    call->workspace = mixt__device_alloc(device, call->workspace_bytes + 64);
    if (!call->workspace || kernel->run(call) != MIXT_OK || mixt__device_synchronize(device) != MIXT_OK)
        fail("running");
    if (kernel->release)
        kernel->release(call);
    mixt__device_free(device, call->workspace);
    mixt__arena_free(&arena);
}

int main(int count, char **words)
{
    const kind *k = NULL;
    for (size_t i = 0; count == 7 && i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kinds[i].name, words[1]))
            k = &kinds[i];
    if (!k) {
        fprintf(stderr, "usage: cells CELL CANDIDATE BATCH STEPS HIDDEN DEVICE\n");
        return 2;
    }
    const mixt__backend *cuda;
    device = &mixt__device_cpu;
    if (!strcmp(words[6], "cuda") && (mixt__backend_cuda(&cuda) != MIXT_OK || cuda->open(0, 0, &device) != MIXT_OK))
        fail("the GPU");
    const int64_t b = atoll(words[3]), t = atoll(words[4]), h = atoll(words[5]), rows = k->gates * h;
    const bool gru = k->forward == &mixt__op_gru;
    mixt__rnn_attrs attrs = {.relu = k->relu};
    mixt__tensor in[3] = {input(TENSOR(b, t, rows)), input(TENSOR(rows, h))};
    if (gru)
        in[2] = input(TENSOR(h));
    mixt__tensor grad_dst = input(TENSOR(b, t, h)), out[3] = {TENSOR(b, t, h), TENSOR(b, t, 4 * h), TENSOR(b, t, h)};
    mixt__call forward = {.attrs = &attrs, .in_count = gru ? 3 : 2, .out_count = 1 + k->saved, .in = in, .out = out};
    run(k->forward, words[2], &forward);
    mixt__tensor back[5] = {in[1], out[0], out[1], out[2], grad_dst};
    back[2 + k->saved] = grad_dst;
    mixt__tensor grads[3] = {TENSOR(b, t, rows), TENSOR(rows, h), TENSOR(h)};
    mixt__call grad = {.attrs = &attrs, .in_count = 3 + k->saved, .out_count = gru ? 3 : 2, .in = back, .out = grads};
    run(k->grad, words[2], &grad);
    output(&out[0]);
    for (int o = 0; o < grad.out_count; o++)
        output(&grads[o]);
    return 0;
}
