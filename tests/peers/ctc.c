/* CTC and its gradient on problems from standard input, for compare_ctc.py:
 *
 *     ctc [cpu|cuda] [TIMES] <problems >answers
 *
 * A problem: int64 batch, frames, classes, labels, blank; FP32 logits; INT32 labels, lengths and frames of samples. An
 * answer: FP32 loss, metrics (3) and the gradient of the loss. Ends with the input. TIMES: loss and gradient so many
 * times, and the answer is a line, microseconds of one time.
 */
#include "backend/backend.h"
#include "base/threads.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 8 }; // logits, labels, lengths; alpha, metrics, seed; frames; loss. The gradient lies beside them

/** One tensor in the device's memory and its copy on the host. */
static mixt__tensor tensor(mixt__device *device, mixt_dtype dtype, int rank, const int64_t *dims, void **host)
{
    mixt__tensor t = {.dtype = dtype, .contiguous = true, .shape.rank = rank};
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        t.shape.dims[i] = dims[i];
        count *= dims[i];
    }
    t.data = mixt__device_alloc(device, (size_t)count * 4 + 64);
    *host = calloc((size_t)count + 16, 4);
    if (!t.data || !*host)
        exit(1);
    return t;
}

static size_t bytes_of(const mixt__tensor *t)
{
    size_t bytes = 4;
    for (int i = 0; i < t->shape.rank; i++)
        bytes *= (size_t)t->shape.dims[i];
    return bytes;
}

static void need(mixt_status status)
{
    if (status == MIXT_OK)
        return;
    fprintf(stderr, "ctc: %s\n", mixt_error_text());
    exit(1);
}

/** A call that is ready to run. */
typedef struct ready {
    mixt__call call;
    const mixt__kernel *kernel;
    mixt__arena arena;
} ready;

static void prepare(ready *r, mixt__device *device, const mixt__op *op, const mixt__ctc_attrs *attrs, mixt__tensor *in,
                    int in_count, mixt__tensor *out, int out_count)
{
    *r = (ready){
        .call =
            {.device = device, .op = op, .attrs = attrs, .layer = "loss", .in = in, .in_count = in_count, .out = out},
        .kernel = device->backend->kernels(op)[0]};
    r->call.out_count = out_count;
    need(r->kernel->prepare(&r->call, &r->arena));
    r->call.workspace = mixt__device_alloc(device, r->call.workspace_bytes + 64);
}

static void give_back(ready *r, mixt__device *device)
{
    mixt__device_free(device, r->call.workspace);
    mixt__arena_free(&r->arena);
}

/** Loss and gradient; seconds of one time. */
static double run(mixt__device *device, const ready calls[2], int64_t times)
{
    double start = mixt__time_now();
    for (int64_t i = 0; i < times; i++)
        for (int k = 0; k < 2; k++)
            need(calls[k].kernel->run(&calls[k].call));
    need(mixt__device_synchronize(device));
    return (mixt__time_now() - start) / (double)times;
}

static void solve(mixt__device *device, const int64_t size[5], int64_t times)
{
    const int64_t x[] = {size[0], size[1], size[2]}, labels[] = {size[0], size[3]}, one[] = {size[0]};
    const int64_t alpha[] = {size[0], size[1], 2 * size[3] + 1}, three[] = {3};
    mixt__ctc_attrs attrs = {.blank = size[4]};
    void *host[TENSORS + 1];
    mixt__tensor t[TENSORS + 1] = {
        tensor(device, MIXT_DTYPE_FP32, 3, x, &host[0]),     tensor(device, MIXT_DTYPE_INT32, 2, labels, &host[1]),
        tensor(device, MIXT_DTYPE_INT32, 1, one, &host[2]),  tensor(device, MIXT_DTYPE_FP32, 3, alpha, &host[3]),
        tensor(device, MIXT_DTYPE_FP32, 1, three, &host[4]), tensor(device, MIXT_DTYPE_FP32, 0, one, &host[5]),
        tensor(device, MIXT_DTYPE_INT32, 1, one, &host[6]),  tensor(device, MIXT_DTYPE_FP32, 0, one, &host[7]),
        tensor(device, MIXT_DTYPE_FP32, 3, x, &host[8]),
    };
    static const int asked[] = {0, 1, 2, 6}, answers[] = {7, 4, 8};
    *(float *)host[5] = 1;
    for (int i = 0; i < 4; i++)
        if (fread(host[asked[i]], 1, bytes_of(&t[asked[i]]), stdin) != bytes_of(&t[asked[i]]))
            exit(2);
    for (int i = 0; i < TENSORS; i++)
        need(mixt__device_upload(device, t[i].data, host[i], bytes_of(&t[i])));
    mixt__tensor in[4] = {t[0], t[1], t[2], t[6]}, out[3] = {t[7], t[4], t[3]};
    ready calls[2];
    prepare(&calls[0], device, &mixt__op_ctc, &attrs, in, 4, out, 3);
    prepare(&calls[1], device, &mixt__op_ctc_grad, &attrs, t, 7, &t[8], 1);
    (void)run(device, calls, times ? times : 1);
    if (times)
        printf("%.3f\n", 1e6 * run(device, calls, times));
    for (int i = 0; i < 3 && !times; i++) {
        const mixt__tensor *a = &t[answers[i]];
        need(mixt__device_download(device, host[answers[i]], a->data, bytes_of(a)));
        fwrite(host[answers[i]], 1, bytes_of(a), stdout);
    }
    for (int i = 0; i < 2; i++)
        give_back(&calls[i], device);
    for (int i = 0; i <= TENSORS; i++) {
        mixt__device_free(device, t[i].data);
        free(host[i]);
    }
}

static mixt_status open_gpu(mixt__device **device)
{
    const mixt__backend *cuda;
    MIXT_TRY(mixt__backend_cuda(&cuda));
    return cuda->open(0, 0, device);
}

int main(int argc, char **argv)
{
    mixt__device *device = &mixt__device_cpu;
    int64_t size[5];
    if (argc > 1 && !strcmp(argv[1], "cuda"))
        need(open_gpu(&device));
    while (fread(size, sizeof *size, 5, stdin) == 5)
        solve(device, size, argc > 2 ? atoll(argv[2]) : 0);
    return fflush(stdout) ? 1 : 0;
}
