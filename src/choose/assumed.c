/* Backends that plan and never run. The GPU's has one kernel for everything, which says on which units a product would
 * run; the CPU's has the real kernels and another amount of memory. Functions of a backend take no object, so the
 * machine is the thread's. */
#include "choose/assumed.h"

#include "api/api.h"
#include "backend/training.h"
#include "choose/cost.h"

static _Thread_local const mixt_machine *assumed;
static _Thread_local mixt__backend assumed_cpu;

static size_t room(void)
{
    return assumed->info.memory - assumed->info.reserved;
}

static size_t nothing_held(void)
{
    return 0;
}

static void *no_memory(size_t bytes)
{
    (void)bytes;
    return NULL;
}

static void nothing_to_free(void *block)
{
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
    return mixt__fail(MIXT_ERROR_STATE, "layer '%s': %s is assumed, nothing runs on it", call->layer,
                      assumed ? assumed->info.title : "the machine");
}

static const mixt__kernel *const *kernels(const mixt__op *op)
{
    static const mixt__kernel any = {.name = "assumed", .prepare = prepare, .run = cannot_run};
    static const mixt__kernel *const list[] = {&any, NULL};
    (void)op;
    return list;
}

static const mixt__backend assumed_gpu = {
    .name = "cuda",
    .fused = MIXT_FUSED_CUDA,
    .kernels = kernels,
    .alloc = no_memory,
    .free = nothing_to_free,
    .alloc_host = no_memory,
    .free_host = nothing_to_free,
    .available = room,
    .allocated = nothing_held,
    .update_workspace = mixt__update_workspace,
};

/* ---- either ---- */

void mixt__assume_begin(const mixt_machine *machine)
{
    bool gpu = machine->info.capability > 0;
    assumed = machine;
    assumed_cpu = mixt__backend_cpu;
    assumed_cpu.available = room;
    mixt__device_assume(gpu ? &assumed_gpu : &assumed_cpu);
}

void mixt__assume_end(void)
{
    mixt__device_assume(NULL);
}
