/* A roofline of every op: its FLOPs at the rate of its units, its bytes at that of the memory, the longer of both, and
 * what it takes to begin an op at all. A product too small to give every multiprocessor a tile leaves some idle.
 *
 * The CPU does not say what it can do: its rates are what one core of each instruction set does in mixt's own kernels,
 * rounded. They need only be right to each other, since plans are compared and never timed by them.
 */
#include "runtime/roofline.h"

#include "base/isa.h"
#include "base/threads.h"
#include "graph/op.h"

#include <math.h>

static const double ATTAINED = 0.7;        // of what the units could do at most
static const double TILE = 128.0 * 128.0;  // results of a product that one multiprocessor makes at a time
static const double GPU_BEGIN = 2e-6;      // of a recorded kernel
static const double CPU_BEGIN = 4e-6;      // waking the threads
static const double CPU_CORE_BYTES = 10e9; // one core's share of the memory's rate, up to
static const double CPU_BYTES = 80e9;      // all of it
static const double CPU_FLOPS[MIXT_ISA_COUNT] = {2e9, 50e9, 90e9, 90e9, 90e9};
static const double CPU_BF16[MIXT_ISA_COUNT] = {1e9, 45e9, 80e9, 150e9, 600e9};

static mixt__roofline of_cpu(void)
{
    double cores = mixt__threads_count();
    mixt__roofline r = {.plain = cores * CPU_FLOPS[mixt__isa_level()], .begin = CPU_BEGIN};
    for (int i = 0; i < MIXT_DTYPE_COUNT; i++)
        r.flops[i] = r.plain;
    r.flops[MIXT_DTYPE_BF16] = cores * CPU_BF16[mixt__isa_level()];
    r.bytes = fmin(cores * CPU_CORE_BYTES, CPU_BYTES);
    return r;
}

mixt__roofline mixt__roofline_of(mixt__device *device)
{
    mixt_gpu_info gpu;
    if (!device->backend->describe || mixt__device_describe(device, &gpu) != MIXT_OK)
        return of_cpu();
    mixt__roofline r = {
        .plain = ATTAINED * gpu.flops[MIXT_DTYPE_FP32], .bytes = ATTAINED * gpu.bytes_s, .begin = GPU_BEGIN};
    for (int i = 0; i < MIXT_DTYPE_COUNT; i++)
        r.flops[i] = gpu.flops[i] > 0 ? ATTAINED * gpu.flops[i] : r.plain;
    r.units = gpu.multiprocessors;
    return r;
}

/** Over 1 where units have nothing to do: the last round of tiles is not full. */
static double idle_factor(const mixt__roofline *r, const mixt__graph *g, const mixt__node *n)
{
    if (!(r->units > 0) || !n->out_count)
        return 1;
    double tiles = ceil((double)mixt__shape_count(&g->values[n->out[0]].shape) / TILE);
    return fmin(ceil(tiles / r->units) * r->units / tiles, 4); // sums in parts fill more of them
}

double mixt__roofline_seconds(const mixt__roofline *r, const mixt__graph *g, const mixt__node *n)
{
    if (n->alias)
        return 0;
    double flops = mixt__node_flops(g, n), moved = mixt__node_bytes(g, n) / r->bytes;
    double work = n->op->matrix_work ? flops / r->flops[n->arithmetic] * idle_factor(r, g, n) : flops / r->plain;
    return fmax(work, moved) + r->begin;
}
