/* Backends that plan and never run. The GPU's has one kernel for everything, which says on which units a product would
 * run; the CPU's has the real kernels and another amount of memory. Kernels are asked without a device, so the machine
 * is the thread's. */
#include "choose/assumed.h"

#include "api/api.h"
#include "backend/training.h"
#include "choose/cost.h"

static _Thread_local const mixt_machine *assumed;
static _Thread_local mixt__backend assumed_cpu;
static _Thread_local mixt__device device;

static size_t room(mixt__device *of)
{
    (void)of;
    return assumed->info.memory - assumed->info.reserved;
}

static size_t nothing_held(mixt__device *of)
{
    (void)of;
    return 0;
}

static void *no_memory(mixt__device *of, size_t bytes)
{
    (void)of;
    (void)bytes;
    return NULL;
}

static void nothing_to_free(mixt__device *of, void *block)
{
    (void)of;
    (void)block;
}

/* ---- a GPU ---- */

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    bool units = call->arithmetic != MIXT_DTYPE_FP32 && mixt__machine_has(assumed, call->arithmetic);
    // before Ampere, 16-bit operands whose rows begin elsewhere are not for Tensor Cores
    bool any_shape = assumed->info.capability >= 80;
    call->tensor_cores = call->op->matrix_work && units && (any_shape || !mixt__cost_odd_dimension(call));
    return MIXT_OK;
}

static mixt_status cannot_run(const mixt__call *call)
{
    return mixt__fail(MIXT_ERROR_STATE, "layer '%s': %s is only assumed, nothing can run on it", call->layer,
                      assumed ? assumed->info.title : "the machine");
}

static const mixt__kernel *const *kernels(const mixt__op *op)
{
    static const mixt__kernel any = {.name = "assumed", .prepare = prepare, .run = cannot_run};
    static const mixt__kernel *const list[] = {&any, NULL};
    (void)op;
    return list;
}

static size_t update_workspace(mixt__device *of, const mixt__segment *segments, int64_t segment_count)
{
    (void)of;
    return mixt__update_workspace(segments, segment_count);
}

static void nothing_to_close(mixt__device *of)
{
    (void)of;
}

static const mixt__backend assumed_gpu = {
    .name = "cuda",
    .close = nothing_to_close,
    .fused = MIXT_FUSED_CUDA,
    .multiplies = MIXT_MAY_MULTIPLY_CUDA,
    .kernels = kernels,
    .alloc = no_memory,
    .free = nothing_to_free,
    .alloc_host = no_memory,
    .free_host = nothing_to_free,
    .available = room,
    .allocated = nothing_held,
    .update_workspace = update_workspace,
};

/* ---- either ---- */

void mixt__assume_begin(const mixt_machine *machine)
{
    bool gpu = machine->info.capability > 0;
    assumed = machine;
    assumed_cpu = mixt__backend_cpu;
    assumed_cpu.available = room;
    assumed_cpu.close = nothing_to_close;
    device = (mixt__device){.backend = gpu ? &assumed_gpu : &assumed_cpu};
    mixt__device_assume(&device);
}

void mixt__assume_end(void)
{
    mixt__device_assume(NULL);
}
