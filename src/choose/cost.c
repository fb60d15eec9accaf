/* A roofline of each op. What is counted (FLOPs, bytes, launches) is exact; what of a machine's limits kernels reach is
 * in its profile, from measurements. */
#include "choose/cost.h"

#include <math.h>
#include <string.h>

/** A CPU without units for a format widens its operands to FP32 on the way: products lose this much. */
static const double widened = 0.96;
/** FLOPs that keep one multiprocessor or core busy, a tile of results over a part of the sum: with less, others have
 *  nothing to do. */
static const double tile = 2.0 * 32 * 32 * 128;
/** Share of its reach that a product keeps on Tensor Cores where rows do not begin at multiples of 16 bytes. */
static const double unaligned = 0.5;
/** Passes that end an update: statistics of gradients, control, optimizer. */
enum { UPDATE_PASSES = 3 };

bool mixt__cost_is_cast(const mixt__node *node)
{
    if (strcmp(node->op->name, "pointwise"))
        return false;
    const mixt__pointwise_attrs *at = node->attrs;
    return at->instr_count == 1 && at->instrs[0].code == MIXT_PW_COPY;
}

int64_t mixt__cost_odd_dimension(const mixt__call *call)
{
    const mixt__tensor *tensors[] = {&call->in[0], &call->in[call->in_count > 1], &call->out[0]};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        const mixt__shape *shape = &tensors[i]->shape;
        if (shape->rank && shape->dims[shape->rank - 1] % 8)
            return shape->dims[shape->rank - 1];
    }
    return 0;
}

/** Share of the machine that has something to do. */
static double busy(const mixt_machine *machine, double flops)
{
    return fmin(1, fmax(flops / tile, 1) / machine->info.cores);
}

/** Times that an op moves the fewest bytes that it could: statistics of a batch are taken in a pass of their own. */
static double passes_over(const mixt__node *node)
{
    return !strcmp(node->op->name, "batch_norm") ? 1.5 : !strcmp(node->op->name, "batch_norm_grad") ? 5.0 / 3 : 1;
}

/** FLOPs a second of matrix work. */
static double rate_of(const mixt_machine *machine, const mixt__call *call, mixt_work work, double flops)
{
    const mixt_machine_info *m = &machine->info;
    bool gpu = m->capability > 0, units = gpu ? call->tensor_cores : mixt__machine_has(machine, call->arithmetic);
    mixt_dtype format = units ? call->arithmetic : MIXT_DTYPE_FP32;
    mixt_work like = m->reach[format][work] > 0 ? work : MIXT_WORK_PRODUCTS; // a head's loss is mostly its product
    double rate = m->flops[format] * m->reach[format][like] * busy(machine, flops);
    if (units && gpu && mixt__format_low(format) && mixt__cost_odd_dimension(call))
        rate *= unaligned;
    return !gpu && !units && !mixt__dtype_way(call->arithmetic) ? rate * widened : rate;
}

mixt__op_cost mixt__cost_op(const mixt_machine *machine, const mixt__executable *step, int64_t node)
{
    const mixt__node *n = &step->graph->nodes[node];
    const mixt_machine_info *m = &machine->info;
    mixt__op_cost cost = {.launch = m->launch};
    if (n->alias)
        return (mixt__op_cost){0};
    double bytes = passes_over(n) * mixt__node_bytes(step->graph, n), flops = mixt__node_flops(step->graph, n);
    bytes /= m->bytes_s * m->reach_bytes[n->op->work];
    flops = n->op->matrix_work ? flops / rate_of(machine, &step->calls[node], n->op->work, flops) : 0;
    cost.seconds = fmax(flops, bytes);
    cost.bound = cost.seconds < cost.launch ? MIXT_BOUND_LAUNCH : flops > bytes ? MIXT_BOUND_FLOPS : MIXT_BOUND_BYTES;
    cost.seconds += cost.launch;
    return cost;
}

static void add(mixt__step_cost *sum, mixt_work work, const mixt__op_cost *cost, double times)
{
    double worked = cost->seconds - cost->launch;
    sum->seconds += times * cost->seconds;
    sum->work[work] += times * cost->seconds;
    sum->bound[MIXT_BOUND_LAUNCH] += times * cost->launch;
    sum->bound[cost->bound] += times * worked;
}

/** Of a GPU: products in 16 bits that must run as in FP32 for their shape alone. */
static void add_odd(mixt__step_cost *sum, const mixt_machine *machine, const mixt__call *call, double seconds)
{
    if (!machine->info.capability || !call->op->matrix_work || call->tensor_cores ||
        mixt_dtype_size(call->arithmetic) != 2 || !mixt__machine_has(machine, call->arithmetic))
        return;
    sum->odd += seconds;
    sum->odd_dimension = sum->odd_dimension ? sum->odd_dimension : mixt__cost_odd_dimension(call);
}

/** Bytes that the passes behind the gradients move: they are read for their statistics, then with masters and moments,
 *  which are written too, with the working copies. */
static double update_bytes(const mixt__trainer *t)
{
    const mixt__trainer_settings *settings = mixt__trainer_settings_of(t);
    double bytes = 0,
           moments = mixt__optimizer_moments(&settings->optimizer) * (double)mixt_dtype_size(settings->moments);
    for (int64_t i = 0; i < mixt__trainer_params(t)->segment_count; i++) {
        const mixt__segment *s = &mixt__trainer_params(t)->segments[i];
        double copy = s->low != MIXT_DTYPE_NONE ? (double)mixt_dtype_size(s->low) : 0;
        bytes += (double)s->count * (4 + 4 * 3 + 2 * moments + copy);
    }
    return bytes;
}

mixt__step_cost mixt__cost_step(const mixt_machine *machine, const mixt__trainer *trainer)
{
    const mixt__executable *step = mixt__trainer_compiled(trainer);
    mixt__step_cost sum = {0};
    double passes = (double)mixt__trainer_settings_of(trainer)->accumulate;
    for (int64_t i = 0; i < step->graph->node_count; i++) {
        const mixt__node *n = &step->graph->nodes[i];
        mixt__op_cost cost = mixt__cost_op(machine, step, i);
        add(&sum, n->op->work, &cost, passes);
        sum.casts += mixt__cost_is_cast(n) ? passes * cost.seconds : 0;
        if (!n->alias)
            add_odd(&sum, machine, &step->calls[i], passes * cost.seconds);
    }
    const mixt_machine_info *m = &machine->info;
    mixt__op_cost update = {.launch = UPDATE_PASSES * m->launch, .bound = MIXT_BOUND_BYTES};
    update.seconds = update.launch + update_bytes(trainer) / (m->bytes_s * m->reach_bytes[MIXT_WORK_OPTIMIZER]);
    add(&sum, MIXT_WORK_OPTIMIZER, &update, 1);
    return sum;
}
