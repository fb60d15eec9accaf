/* Speed of the passes that end a step: AdamW with bf16 working copies, and gradient statistics.
 *
 * Usage: optimizer [millions of parameters]... (default 11 and 124). AdamW moves 30 bytes a parameter: it reads
 * master, gradient and two moments and writes master, moments and the copy. The best of several runs is shown.
 */
#include "backend/cpu/update/training.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 9 };

typedef mixt_status pass_fn(const mixt__update *update);

static double best_seconds(pass_fn *pass, const mixt__update *update)
{
    double best = 1e30;
    for (int i = 0; i < RUNS; i++) {
        double start = mixt__time_now();
        pass(update);
        double seconds = mixt__time_now() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

static int bench(int64_t count)
{
    mixt__segment segment = {.count = count, .low = MIXT_DTYPE_BF16, .weight_decay = 0.01f, .lr_scale = 1};
    mixt__segment_stats stats;
    mixt__control control = {.step = 10, .lr = 1e-3f, .grad_factor = 1.0f / 1024};
    size_t bytes = (size_t)count * sizeof(float);
    mixt__update u = {.segments = &segment, .segment_count = 1, .total = count, .stats = &stats, .control = &control};
    u.gradient_factor = 1;
    u.optimizer = (mixt__optimizer){.kind = MIXT_OPTIMIZER_ADAMW, .beta1 = 0.9f, .beta2 = 0.95f, .eps = 1e-8f};
    mixt__update_role *roles[] = {&u.weight, &u.gradient, &u.moments[0], &u.moments[1]};
    for (int i = 0; i < 4; i++)
        *roles[i] = (mixt__update_role){.data = mixt__alloc(bytes), .format = MIXT_DTYPE_FP32};
    float *g = u.gradient.data;
    u.low[MIXT_DTYPE_BF16] = mixt__alloc(bytes / 2);
    u.workspace = mixt__alloc(mixt__update_workspace(&segment, 1));
    int failed =
        !u.weight.data || !g || !u.moments[0].data || !u.moments[1].data || !u.low[MIXT_DTYPE_BF16] || !u.workspace;
    for (int64_t i = 0; !failed && i < count; i++)
        g[i] = (float)(i % 2001 - 1000);
    if (!failed) {
        double adamw = best_seconds(mixt__cpu_optimizer_step, &u), passes = best_seconds(mixt__cpu_gradient_stats, &u);
        printf("%6.1f M parameters, %d threads: adamw %8.2f ms %6.2f GB/s   statistics %7.2f ms %6.2f GB/s\n",
               (double)count * 1e-6, mixt__threads_count(), adamw * 1e3, 30.0 * (double)count / adamw * 1e-9,
               passes * 1e3, 4.0 * (double)count / passes * 1e-9);
    } else {
        fprintf(stderr, "optimizer: no memory for %lld parameters\n", (long long)count);
    }
    void *blocks[] = {u.weight.data, g, u.moments[0].data, u.moments[1].data, u.low[MIXT_DTYPE_BF16], u.workspace};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        mixt__free(blocks[i]);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc < 2)
        failed = bench(11000000) | bench(124000000);
    for (int i = 1; i < argc; i++)
        failed |= bench((int64_t)(atof(argv[i]) * 1e6));
    return failed;
}
